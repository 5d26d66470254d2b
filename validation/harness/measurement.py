"""Measurements of a trained model, and their amount of text."""

from __future__ import annotations

from farfield.validation.harness.settings import Count, Counts, Natural, Share, settings


@settings
class Measurement:
    """Measurements of a trained model, and their amount of text.

    Args:
        lengths: context lengths of both perplexity protocols, in tokens; none given takes the
            training length and 4 and 16 times it, or what the encoding knows.
        blocks: number of blocks, each of the longest length, scored without overlap.
        last_tokens: number of targets of the last-token protocol.
        row_length, row_segments, rows: tokens a segment, segments, and query rows a head and
            segment of the attention receptive field.
        thresholds: the `eps` of the attention receptive field.
        gradient_segments: segments of the gradient receptive field.
        share: the `q` of the gradient receptive field.
        gradient_length: tokens of those segments; None takes the longest length.
        strides: of the sliding-window protocol at each length, in tokens; none by default.
        positions: bins of the perplexity by position in segments of the longest length.
        scores: tokens of the segments on which the expected score s[n] [S, Eq. 13] is measured.
        far: one further length in tokens, scored without overlap only, on about as much text; 0
            for none.
    """

    lengths: Counts = ()
    blocks: Count = 64
    last_tokens: Count = 512
    row_length: Count = 512
    row_segments: Count = 2
    rows: Count = 32
    thresholds: tuple[Share, ...] = (0.1, 0.05, 0.01)
    gradient_segments: Count = 32
    share: Share = 0.99
    gradient_length: Count | None = None
    strides: Counts = ()
    positions: Natural = 0
    scores: Natural = 0
    far: Natural = 0


@settings
class Probes:
    """Questions to a model that was trained on a task.

    Args:
        lengths: of the rows, in tokens; none given takes the training length and 4 and 16 times it.
        distances: from the query to the key of the answer, in tokens, where a row has room; none
            given takes up to 8 in each length, evenly spaced in their logarithm.
        rows: asked at each length and distance.
        near: keys nearest to the query, its own included, whose content logits are kept in place
            beside those of the target and the others.
        seed: of the rows.
    """

    lengths: Counts = ()
    distances: Counts = ()
    rows: Count = 96
    near: Count = 3
    seed: Natural = 0


USUAL = Measurement()
"""What is measured where nothing is said."""
