"""What is measured on a trained model, and on how much text."""

from __future__ import annotations

from dataclasses import dataclass

from farfield.theory.answers.answer import InputError


@dataclass(frozen=True)
class Measurement:
    """What is measured on a trained model, and on how much text.

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

    lengths: tuple[int, ...] = ()
    blocks: int = 64
    last_tokens: int = 512
    row_length: int = 512
    row_segments: int = 2
    rows: int = 32
    thresholds: tuple[float, ...] = (0.1, 0.05, 0.01)
    gradient_segments: int = 32
    share: float = 0.99
    gradient_length: int | None = None
    strides: tuple[int, ...] = ()
    positions: int = 0
    scores: int = 0
    far: int = 0

    def __post_init__(self) -> None:
        counts = ("blocks", "last_tokens", "row_length", "row_segments", "rows")
        for name in (*counts, "gradient_segments"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} {getattr(self, name)}: accepted is a number from 1")
        if min(self.positions, self.scores, self.far) < 0:
            raise InputError("positions, scores, far: accepted is a number from 1, or 0 for none")
        for name in ("lengths", "strides"):
            if min(getattr(self, name), default=1) < 1:
                given = getattr(self, name)
                raise InputError(f"{name} {given}: accepted are numbers of tokens from 1")
        if self.gradient_length is not None and self.gradient_length < 1:
            given = self.gradient_length
            raise InputError(f"gradient_length {given}: accepted is a number of tokens from 1")
        for value in (*self.thresholds, self.share):
            if not 0 < value < 1:
                raise InputError(f"threshold {value}: accepted is a number between 0 and 1")


@dataclass(frozen=True)
class Probes:
    """What is asked of a model that was trained on a task.

    Args:
        lengths: of the rows, in tokens; none given takes the training length and 4 and 16 times it.
        distances: from the query to the key of the answer, in tokens, where a row has room; none
            given takes up to 8 in each length, evenly spaced in their logarithm.
        rows: asked at each length and distance.
        near: keys nearest to the query, its own included, whose content logits are kept in place
            beside those of the target and the others.
        seed: of the rows.
    """

    lengths: tuple[int, ...] = ()
    distances: tuple[int, ...] = ()
    rows: int = 96
    near: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rows < 1 or self.near < 1 or self.seed < 0:
            raise InputError(
                f"probe: rows {self.rows}, near {self.near}, seed {self.seed}; accepted are "
                "numbers from 1, a seed from 0"
            )
        if min((*self.lengths, *self.distances), default=1) < 1:
            raise InputError("probe: accepted are lengths and distances in tokens from 1")


USUAL = Measurement()
"""What is measured where nothing is said."""
