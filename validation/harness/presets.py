"""Presets: an architecture, a training schedule, and the measurement that goes with them."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal

from pydantic import Field, StrictFloat, StrictStr

from farfield.theory.answers.answer import InputError
from farfield.theory.answers.names import one_of
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


@settings
class Preset:
    """An architecture, a training schedule, and the measurement that goes with them by default.

    `tiny` takes seconds (tests). `demo` and `small` one and two minutes on two cores, for models
    where the phenomena of the papers show. `recall`, for tasks, five on one core. `base` minutes on
    a GPU. The presets of the papers take a large GPU for hours; none of them says everything, so
    each has choices of ours:

    * `paper:qin2024` [Q]: printed are the architecture on WikiText-103 (6 layers of 512) and the
      length 512. Heads are the default of the laboratory's code. From a sibling script, not the
      paper: Adam (0.9, 0.98), 5e-4 by the inverse square root after 4000 steps, 128 x 512 tokens,
      50k steps, weight decay 0.2, clip 1.0, dropout 0.1. Ours: where dropout acts (embedding and
      residual branches), bfloat16, the decay of matrices alone.
    * `paper:chi2023` [C]: printed are 12 layers of 768, 12 heads, length 512, Adam 6e-4, batch 32,
      50k steps, bfloat16, the last-token protocol with 1000 targets, and the gradient at the
      2048-th token. The cosine comes from KERPLE's configuration. Ours: warm-up of 500 steps, betas
      (0.9, 0.95), weight decay 0.1, clip 1.0. Five seeds are five runs.
    * `paper:sun2023` [S]: printed are 24 layers of 1024, 16 heads, length 1024, 512 sequences a
      step, Adam (0.9, 0.98, 1e-6), 3e-4 with 20k steps of warm-up and polynomial decay, 50k steps,
      clip 2.0, weight decay 0.01. Ours: the power of the polynomial (1, to 0), bfloat16, and 50k
      as the end of the schedule.

    All have this model's pre-norm layers and GELU, and all but `recall` tie the embedding to the
    output; the papers' models need not.

    Args:
        name: a label, in no key.
        layers, width, heads: depth, model width, heads; `width` is a multiple of `heads`.
        length, batch, steps: training length in tokens, sequences a step, steps.
        learning_rate, warmup: peak of the cosine schedule, and the steps that lead up to it.
        weight_decay, clip: AdamW's decay of the matrices; bound of the gradient norm.
        betas, epsilon: of AdamW.
        schedule: after the warm-up, `cosine` to 5 % of the peak, `linear` to 0, or `inverse sqrt`.
        dropout: share of the embedding and of each residual branch set to 0 in training.
        precision: `float32`, or `bfloat16` for products under autocast; weights, optimiser, loss
            and the bias of the attention stay in float32.
        parts: a step's sequences go through the model in so many parts, to save memory.
        spread: standard deviation of the initial weights.
        embedding_spread: spread of the initial embedding; the output then has a matrix of its
            own; None ties the two.
        measurement: what `train_and_measure` measures when nothing else is asked.
    """

    name: StrictStr
    layers: Count
    width: Count
    heads: Count
    length: Count
    batch: Count
    steps: Count
    learning_rate: StrictFloat = 2e-3
    warmup: Natural = 50
    weight_decay: StrictFloat = 0.1
    clip: StrictFloat = 1.0
    measurement: Measurement = USUAL
    betas: tuple[StrictFloat, StrictFloat] = (0.9, 0.95)
    epsilon: StrictFloat = 1e-8
    schedule: Literal["cosine", "linear", "inverse sqrt"] = "cosine"
    dropout: Annotated[StrictFloat, Field(ge=0, lt=1)] = 0.0
    precision: Literal["float32", "bfloat16"] = "float32"
    parts: Count = 1
    spread: StrictFloat = 0.02
    embedding_spread: StrictFloat | None = None

    def __post_init__(self) -> None:
        if self.batch % self.parts:
            raise InputError(
                f"preset: batch {self.batch} in {self.parts} parts; accepted are parts of equal "
                "size"
            )
        if self.width % (2 * self.heads):
            raise InputError(
                f"preset: width {self.width} with {self.heads} heads; accepted is a width that "
                "is an even multiple of the heads"
            )


PRESETS = {
    p.name: p
    for p in (
        Preset("demo", layers=4, width=128, heads=8, length=64, batch=32, steps=400),
        Preset(
            "tiny",
            layers=2,
            width=32,
            heads=8,
            length=16,
            batch=8,
            steps=30,
            warmup=5,
            measurement=Measurement(
                blocks=4, last_tokens=8, row_length=64, row_segments=1, rows=4, gradient_segments=4
            ),
        ),
        Preset(
            "small",
            layers=4,
            width=128,
            heads=8,
            length=64,
            batch=32,
            steps=1000,
            measurement=Measurement(positions=16, scores=256),
        ),
        Preset(
            "recall",
            layers=2,
            width=64,
            heads=4,
            length=64,
            batch=64,
            steps=3000,
            warmup=100,
            weight_decay=0.01,
            betas=(0.9, 0.98),
            spread=0.072,
            embedding_spread=0.5,
        ),
        Preset(
            "base",
            layers=8,
            width=512,
            heads=8,
            length=256,
            batch=64,
            steps=4000,
            learning_rate=1e-3,
            warmup=200,
            precision="bfloat16",
            measurement=Measurement(positions=16, scores=1024, row_length=1024),
        ),
        Preset(
            "paper:qin2024",
            layers=6,
            width=512,
            heads=8,
            length=512,
            batch=128,
            steps=50_000,
            learning_rate=5e-4,
            warmup=4000,
            weight_decay=0.2,
            betas=(0.9, 0.98),
            schedule="inverse sqrt",
            dropout=0.1,
            precision="bfloat16",
            parts=4,
            measurement=Measurement(
                lengths=(512, 1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192, 9216),
                positions=18,
                row_length=1024,
                gradient_length=2048,
            ),
        ),
        Preset(
            "paper:chi2023",
            layers=12,
            width=768,
            heads=12,
            length=512,
            batch=32,
            steps=50_000,
            learning_rate=6e-4,
            warmup=500,
            precision="bfloat16",
            parts=2,
            measurement=Measurement(
                lengths=(512, 1024, 2048, 4096, 8192),
                last_tokens=1000,
                positions=16,
                row_length=1024,
                gradient_length=2048,
            ),
        ),
        Preset(
            "paper:sun2023",
            layers=24,
            width=1024,
            heads=16,
            length=1024,
            batch=512,
            steps=50_000,
            learning_rate=3e-4,
            warmup=20_000,
            weight_decay=0.01,
            clip=2.0,
            betas=(0.9, 0.98),
            epsilon=1e-6,
            schedule="linear",
            precision="bfloat16",
            parts=32,
            measurement=Measurement(
                lengths=(256, 512, 1024, 2048, 4096, 8192),
                positions=16,
                row_length=2048,
                scores=2048,
                gradient_length=2048,
            ),
        ),
    )
}


def preset(name: str) -> Preset:
    """The preset of this name.

    Raises:
        InputError: no preset has this name.

    >>> preset("demo").layers
    4
    """
    return PRESETS[one_of(name, "preset", PRESETS)]


def resized(chosen: Preset, length: int) -> Preset:
    """A preset with another training length and as many tokens a step.

    >>> resized(preset("small"), 128).batch
    16
    """
    if length == chosen.length:
        return chosen
    batch = max(chosen.parts, chosen.batch * chosen.length // length)
    return dataclasses.replace(chosen, length=length, batch=batch)
