"""Configurations of runs: what is trained, what is measured, and the keys of both.

A run is named by the hash of its configuration in canonical JSON. What decides the weights
(encoding, architecture, schedule, seed, text) makes the key of the training; what is measured on
them makes the key of a measurement, so one training serves many measurements. The name of an
encoding is a label and enters neither key; its formula does.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import Any

import sympy

from farfield.theory.encodings import Encoding
from farfield.theory.results import InputError, plain
from farfield.validation.corpus import BYTES, Corpus

SCHEMA = 1
TRAINABLE = ("bias", "rotation", "rotation_decay", "sinusoidal", "learned_absolute")


@dataclass(frozen=True)
class Visibility:
    """Which keys a query sees at inference, besides causality.

    Args:
        bca: `half` of blockwise causal attention [S, 3.3] in tokens, or None. Positions count
            from 0; key `j` is visible to query `i` when `floor(j/half) >= floor(i/half) - 1`.
        window: width of a sliding window in tokens, the query's own included, or None.

    >>> Visibility(bca=2).sees(5, 1), Visibility(bca=2).sees(5, 2), Visibility(window=3).sees(5, 2)
    (False, True, False)
    """

    bca: int | None = None
    window: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("bca", self.bca), ("window", self.window)):
            if value is not None and (not isinstance(value, int) or value < 1):
                raise InputError(f"{name} {value!r}: accepted is a whole number of tokens from 1")

    def sees(self, query: Any, key: Any) -> Any:
        """Whether the query at a position sees the key at another; arrays broadcast."""
        seen = key <= query
        if self.bca is not None:
            seen = seen & (key // self.bca >= query // self.bca - 1)
        if self.window is not None:
            seen = seen & (query - key < self.window)
        return seen

    def first(self, query: int) -> int:
        """The first position that the query at this position sees."""
        from_block = 0 if self.bca is None else (query // self.bca - 1) * self.bca
        from_window = 0 if self.window is None else query - self.window + 1
        return max(0, from_block, from_window)

    def __str__(self) -> str:
        parts = [f"{f.name} {v}" for f in dataclasses.fields(self) if (v := getattr(self, f.name))]
        return ", ".join(parts) or "causal"


CAUSAL = Visibility()


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
class Preset:
    """An architecture, a training schedule, and the measurement that goes with them by default.

    `tiny` takes seconds (tests); `demo` and `small` one and two minutes on two cores, for models
    where the phenomena of the papers show; `base` minutes on a GPU. The presets of the papers take
    a large GPU for hours; none of them says everything, so each has choices of ours:

    * `paper:qin2024` [Q]: printed are the architecture on WikiText-103 (6 layers of 512) and the
      length 512. Heads are the default of the laboratory's code. From a sibling script, not the
      paper: Adam (0.9, 0.98), 5e-4 by the inverse square root after 4000 steps, 128 x 512 tokens,
      50k steps, weight decay 0.2, clip 1.0, dropout 0.1. Ours: where dropout acts (embedding and
      residual branches), bfloat16, the decay of matrices alone.
    * `paper:chi2023` [C]: printed are 12 layers of 768, 12 heads, length 512, Adam 6e-4, batch 32,
      50k steps, bfloat16, the last-token protocol with 1000 targets, and the gradient at the
      2048-th token. The cosine is that of KERPLE's configuration. Ours: warm-up of 500 steps, betas
      (0.9, 0.95), weight decay 0.1, clip 1.0. Five seeds are five runs.
    * `paper:sun2023` [S]: printed are 24 layers of 1024, 16 heads, length 1024, 512 sequences a
      step, Adam (0.9, 0.98, 1e-6), 3e-4 with 20k steps of warm-up and polynomial decay, 50k steps,
      clip 2.0, weight decay 0.01. Ours: the power of the polynomial (1, to 0), bfloat16, and 50k
      as the end of the schedule.

    All have this model's pre-norm layers, GELU and tied embedding, which the papers' need not have.

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
        measurement: what `train_and_measure` measures when nothing else is asked.
    """

    name: str
    layers: int
    width: int
    heads: int
    length: int
    batch: int
    steps: int
    learning_rate: float = 2e-3
    warmup: int = 50
    weight_decay: float = 0.1
    clip: float = 1.0
    measurement: Measurement = Measurement()
    betas: tuple[float, float] = (0.9, 0.95)
    epsilon: float = 1e-8
    schedule: str = "cosine"
    dropout: float = 0.0
    precision: str = "float32"
    parts: int = 1

    def __post_init__(self) -> None:
        for name, accepted in (
            ("schedule", ("cosine", "linear", "inverse sqrt")),
            ("precision", ("float32", "bfloat16")),
        ):
            if getattr(self, name) not in accepted:
                raise InputError(
                    f"preset: {name} {getattr(self, name)!r}; accepted: {', '.join(accepted)}"
                )
        if not 0 <= self.dropout < 1:
            raise InputError(f"preset: dropout {self.dropout}; accepted is 0 or more, less than 1")
        if self.parts < 1 or self.batch % self.parts:
            raise InputError(
                f"preset: batch {self.batch} in {self.parts} parts; accepted are parts of equal "
                "size"
            )
        for name in ("layers", "width", "heads", "length", "batch", "steps"):
            if getattr(self, name) < 1:
                raise InputError(f"preset: {name} {getattr(self, name)}; accepted is 1 or more")
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
            "tiny", layers=2, width=32, heads=8, length=16, batch=8, steps=30, warmup=5,
            measurement=Measurement(
                blocks=4, last_tokens=8, row_length=64, row_segments=1, rows=4, gradient_segments=4
            ),
        ),
        Preset(
            "small", layers=4, width=128, heads=8, length=64, batch=32, steps=1000,
            measurement=Measurement(positions=16, scores=256),
        ),
        Preset(
            "base", layers=8, width=512, heads=8, length=256, batch=64, steps=4000,
            learning_rate=1e-3, warmup=200, precision="bfloat16",
            measurement=Measurement(positions=16, scores=1024, row_length=1024),
        ),
        Preset(
            "paper:qin2024", layers=6, width=512, heads=8, length=512, batch=128, steps=50_000,
            learning_rate=5e-4, warmup=4000, weight_decay=0.2, betas=(0.9, 0.98),
            schedule="inverse sqrt", dropout=0.1, precision="bfloat16", parts=4,
            measurement=Measurement(
                lengths=(512, 1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192, 9216),
                positions=18, row_length=1024, gradient_length=2048,
            ),
        ),
        Preset(
            "paper:chi2023", layers=12, width=768, heads=12, length=512, batch=32, steps=50_000,
            learning_rate=6e-4, warmup=500, precision="bfloat16", parts=2,
            measurement=Measurement(
                lengths=(512, 1024, 2048, 4096, 8192), last_tokens=1000, positions=16,
                row_length=1024, gradient_length=2048,
            ),
        ),
        Preset(
            "paper:sun2023", layers=24, width=1024, heads=16, length=1024, batch=512, steps=50_000,
            learning_rate=3e-4, warmup=20_000, weight_decay=0.01, clip=2.0, betas=(0.9, 0.98),
            epsilon=1e-6, schedule="linear", precision="bfloat16", parts=32,
            measurement=Measurement(
                lengths=(256, 512, 1024, 2048, 4096, 8192), positions=16, row_length=2048,
                scores=2048, gradient_length=2048,
            ),
        ),
    )
}  # fmt: skip


def preset(name: str) -> Preset:
    """The preset of this name.

    Raises:
        InputError: no preset has this name.

    >>> preset("demo").layers
    4
    """
    if name not in PRESETS:
        raise InputError(f"preset {name!r} is not known; accepted: {', '.join(PRESETS)}")
    return PRESETS[name]


@dataclass(frozen=True)
class Configuration:
    """One run: an encoding, a text, a preset and a seed, and what to measure.

    Args:
        encoding: a trainable encoding with one head or as many as the preset.
        corpus: the text.
        preset: architecture and schedule.
        seed: from 0; of the initial weights and of the order of the text.
        measurement: None takes the preset's.
        inference: each is measured on the same weights; none given takes causal attention, with
            the encoding's `bca` if it has one.

    Raises:
        InputError: the encoding cannot be trained, its heads do not fit, a length is beyond what
            the encoding knows, or the text is too short.
    """

    encoding: Encoding
    corpus: Corpus
    preset: Preset = PRESETS["demo"]
    seed: int = 0
    measurement: Measurement | None = None
    inference: tuple[Visibility, ...] = ()

    @property
    def settings(self) -> Measurement:
        """What is measured, with every default filled in and the lengths in order."""
        measure, known = self.measurement or self.preset.measurement, self.preset.length
        row_length = measure.row_length
        lengths = measure.lengths or (known, 4 * known, 16 * known)
        scores, far = measure.scores, measure.far
        gradient_length = measure.gradient_length
        if self.encoding.mechanism == "learned_absolute":
            lengths, row_length = measure.lengths or (known,), min(row_length, known)
            scores, far = min(scores, known), 0
            gradient_length = None if gradient_length is None else min(gradient_length, known)
        return dataclasses.replace(
            measure,
            lengths=tuple(sorted(set(lengths))),
            row_length=row_length,
            scores=scores,
            gradient_length=gradient_length,
            far=far,
        )

    @property
    def variants(self) -> tuple[Visibility, ...]:
        """How the trained model is run when it is measured, one measurement each."""
        return self.inference or (Visibility(bca=self.encoding.bca),)

    def __post_init__(self) -> None:
        encoding, preset, measure = self.encoding, self.preset, self.settings
        if encoding.mechanism not in TRAINABLE:
            raise InputError(
                f"{encoding.name} cannot be trained here (mechanism {encoding.mechanism}); "
                "accepted: additive biases, rope, xpos, sinusoidal, learned"
            )
        if encoding.mechanism == "bias" and encoding.num_heads not in (1, preset.heads):
            raise InputError(
                f"{encoding.name} has {encoding.num_heads} heads, the model of preset "
                f"{preset.name} has {preset.heads}; accepted: heads=1 or heads={preset.heads}"
            )
        require_values(encoding)
        longest = measure.lengths[-1]
        if encoding.mechanism == "learned_absolute" and longest > preset.length:
            raise InputError(
                f"{encoding.name} knows the positions 0 to {preset.length - 1} that it was "
                f"trained on; length {longest} was asked, accepted are lengths to {preset.length}"
            )
        if self.seed < 0:
            raise InputError(f"seed {self.seed}: accepted is a whole number from 0")
        spare = max(measure.strides, default=0)  # a window may begin before the longest length
        self.corpus.require(
            preset.length,
            max(
                longest + spare,
                measure.row_length,
                measure.scores,
                measure.gradient_length or 0,
                measure.far,
            ),
        )

    def training(self) -> dict[str, Any]:
        """What decides the weights, in JSON form."""
        described = _without_defaults(self.preset, _LATER[Preset])
        del described["measurement"], described["name"]
        vocabulary = self.corpus.vocabulary
        return {
            "schema": SCHEMA,
            "encoding": describe(self.encoding),
            "preset": described,
            "seed": self.seed,
            "text_sha256": self.corpus.sha256,
            **({} if vocabulary == BYTES else {"vocabulary": vocabulary}),
        }

    def measured(self, visible: Visibility) -> dict[str, Any]:
        """What decides a measurement of the trained weights, in JSON form."""
        settings = _without_defaults(self.settings, _LATER[Measurement])
        return {"schema": SCHEMA, **settings, "inference": plain(visible)}


# A setting that came later enters a key only where it is not what had been the only choice, so
# that the runs made before keep their keys.
_LATER: dict[type, tuple[str, ...]] = {
    Preset: ("betas", "epsilon", "schedule", "dropout", "precision", "parts"),
    Measurement: ("gradient_length", "strides", "positions", "scores", "far"),
}


def _without_defaults(value: Preset | Measurement, later: tuple[str, ...]) -> dict[str, Any]:
    defaults = {f.name: f.default for f in dataclasses.fields(value)}
    described: dict[str, Any] = plain(value)
    for name in later:
        if getattr(value, name) == defaults[name]:
            del described[name]
    return described


def require_values(encoding: Encoding) -> None:
    """Raise InputError if a parameter has neither a value nor a way to be learned.

    A parameter that is not learned may be left to its reference value, if that is one point.
    """
    for parameter in encoding.free:
        if not parameter.learned and parameter.init[0] != parameter.init[1]:
            raise InputError(
                f"{encoding.name}: {parameter.name} is not learned and has no value; accepted: "
                f"{parameter.name}=..., in the domain {parameter.domain}"
            )


def require_torch() -> None:
    """Raise InputError, which says how to install it, unless torch can be imported."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise InputError(
            "training needs torch, which is not installed; install it with "
            "pip install 'farfield[train]'"
        ) from None


def variants(encoding: Encoding, length: int) -> tuple[Visibility, ...]:
    """How a model trained on this length is measured: rotations with BCA as well [S, 3.3]."""
    if encoding.mechanism in ("rotation", "rotation_decay"):
        return (Visibility(), Visibility(bca=encoding.bca or length // 2))
    return ()


_PARAMETER = ("name", "domain", "learned", "init", "clamp")  # what enters a key


def describe(encoding: Encoding) -> dict[str, Any]:
    """What an encoding computes, in JSON form: mechanism, formula of each head, parameters."""
    heads = []
    if encoding.mechanism == "bias":
        heads = [encoding.head(h) for h in range(1, encoding.num_heads + 1)]
    exact = "\n".join(sympy.srepr(head) for head in heads)
    return {
        "mechanism": encoding.mechanism,
        "heads": [str(head) for head in heads],
        "sha256": hashlib.sha256(exact.encode()).hexdigest(),
        "parameters": [{k: plain(p)[k] for k in _PARAMETER} for p in encoding.parameters],
    }


def key(described: dict[str, Any]) -> str:
    """16 hexadecimal digits of the SHA-256 of a description in canonical JSON.

    >>> key({"b": 1, "a": 2}) == key({"a": 2, "b": 1})
    True
    """
    text = json.dumps(described, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
