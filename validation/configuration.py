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
from farfield.validation.corpus import Corpus

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
        gradient_segments: segments, each of the longest length, of the gradient receptive field.
        share: the `q` of the gradient receptive field.
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

    def __post_init__(self) -> None:
        counts = ("blocks", "last_tokens", "row_length", "row_segments", "rows")
        for name in (*counts, "gradient_segments"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} {getattr(self, name)}: accepted is a number from 1")
        if self.lengths and min(self.lengths) < 1:
            raise InputError(f"lengths {self.lengths}: accepted are numbers of tokens from 1")
        for value in (*self.thresholds, self.share):
            if not 0 < value < 1:
                raise InputError(f"threshold {value}: accepted is a number between 0 and 1")


@dataclass(frozen=True)
class Preset:
    """An architecture, a training schedule, and the measurement that goes with them by default.

    Args:
        name: a label, in no key.
        layers, width, heads: depth, model width, heads; `width` is a multiple of `heads`.
        length, batch, steps: training length in tokens, sequences a step, steps.
        learning_rate, warmup: peak of the cosine schedule, and the steps that lead up to it.
        weight_decay, clip: AdamW's decay of the matrices; bound of the gradient norm.
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

    def __post_init__(self) -> None:
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
        if self.encoding.mechanism == "learned_absolute":
            lengths, row_length = measure.lengths or (known,), min(row_length, known)
        return dataclasses.replace(
            measure, lengths=tuple(sorted(set(lengths))), row_length=row_length
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
        self.corpus.require(preset.length, max(longest, measure.row_length))

    def training(self) -> dict[str, Any]:
        """What decides the weights, in JSON form."""
        described = plain(self.preset)
        del described["measurement"], described["name"]
        return {
            "schema": SCHEMA,
            "encoding": describe(self.encoding),
            "preset": described,
            "seed": self.seed,
            "text_sha256": self.corpus.sha256,
        }

    def measured(self, visible: Visibility) -> dict[str, Any]:
        """What decides a measurement of the trained weights, in JSON form."""
        return {"schema": SCHEMA, **plain(self.settings), "inference": plain(visible)}


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
        "parameters": plain(encoding.parameters),
    }


def key(described: dict[str, Any]) -> str:
    """16 hexadecimal digits of the SHA-256 of a description in canonical JSON.

    >>> key({"b": 1, "a": 2}) == key({"a": 2, "b": 1})
    True
    """
    text = json.dumps(described, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
