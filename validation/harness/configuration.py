"""Configurations of runs: what is trained, in what model, what is measured, and the keys of both.

A run is named by the hash of its configuration in canonical JSON. What decides the weights
(encoding, architecture, schedule, seed, text) makes the key of the training. The settings of a
measurement make a key of their own, so one training serves many measurements. The name of an
encoding is a label and enters neither key; its formula does.

A model has one encoding in all layers, or is a hybrid whose layers are listed, as a plan has them.
An entry is a bias (`"-n/4"`), a list of biases one a head, or a table:

    mechanism   a name or formula: `rope`, `xpos`, `nope`, `-n/4`, or a list of biases one a head
    window      keys that a query sees, its own included, in training too
    sinks       true: each head learns a logit in the denominator
    share, base, scaling    of a rotation: share of the head size that turns, base, factor by which
                positions are compressed
    bias        added to a rotation: a bias, or a list of biases one a head
    scale       of the logits with the row's length: `log`, or a table of `form` (`log`,
                `1 + a log`), `a`, `length`, `when` (`both`, `training`, `inference`), `heads`
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
import sympy
from pydantic import BeforeValidator, StrictBool, StrictFloat, StrictStr
from sympy import Expr

from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.encodings import CATALOGUE, LISTED, Encoding, encoding
from farfield.validation.harness.corpus import BYTES, Corpus
from farfield.validation.harness.mechanism import LayerMechanism, Scale, Turn, Visibility
from farfield.validation.harness.presets import (
    PRESETS,
    Measurement,
    Natural,
    Preset,
    Probes,
    settings,
)
from farfield.validation.harness.tasks import Task
from farfield.validation.json_files import recorded

SCHEMA = 1
TRAINABLE = ("bias", "rotation", "rotation_decay", "sinusoidal", "learned_absolute")
"""The mechanisms that the model has."""


def trainable(encoding: Encoding) -> bool:
    """Whether a model is trained with it where all are; a surrogate replaces another encoding, and
    is not."""
    entry = CATALOGUE.get(encoding.name)
    surrogate = entry is not None and bool(entry.stands_for)
    values = all(p.learned or p.init[0] == p.init[1] for p in encoding.free)
    return encoding.mechanism in TRAINABLE and values and not surrogate


def require_mechanism(encoding: Encoding) -> None:
    """Raise InputError if the model has no such mechanism."""
    if encoding.mechanism in TRAINABLE:
        return
    others = (e.name for e in CATALOGUE.values() if e.mechanism in TRAINABLE[1:])
    raise InputError(
        f"{encoding.name} cannot be trained here (mechanism {encoding.mechanism}); accepted: "
        f"additive biases, {', '.join(others)}"
    )


def require_values(encoding: Encoding) -> None:
    """Raise InputError if a parameter has neither a value nor a way to be learned.

    A parameter that is not learned may be left to its reference value, if that is one point.
    """
    for parameter in encoding.free:
        refuse(
            not parameter.learned and parameter.init[0] != parameter.init[1],
            f"{encoding.name}: {parameter.name} is not learned and has no value; accepted: "
            f"{parameter.name}=..., in the domain {parameter.domain}",
        )


def variants(encoding: Encoding, length: int) -> tuple[Visibility, ...]:
    """How a model trained on this length is measured: rotations with BCA as well [S, 3.3]."""
    if encoding.mechanism in ("rotation", "rotation_decay"):
        return (Visibility(), Visibility(bca=encoding.bca or length // 2))
    return ()


# -- layers of their own ---------------------------------------------------------------------------


def _formulas(given: Any) -> Any:
    each = given if isinstance(given, (list, tuple)) else [given]
    refuse(
        not all(isinstance(one, str) for one in each),
        f"{given!r:.60} is no formula; accepted: a formula or a name, or a list of them, one a "
        "head",
    )
    return given


Formulas = Annotated[str | list[str], BeforeValidator(_formulas)]


@settings
class _Entry:
    mechanism: Formulas
    bias: Formulas | None = None
    window: Natural | None = None
    sinks: StrictBool = False
    share: StrictFloat | None = None
    base: StrictFloat | None = None
    scaling: StrictFloat | None = None
    scale: StrictStr | dict[str, Any] | None = None


@dataclasses.dataclass(frozen=True)
class LayerPlan:
    """One layer of a hybrid.

    Args:
        mechanism: how it attends.
        encoding: its bias; None for none.
    """

    mechanism: LayerMechanism
    encoding: Encoding | None = None

    def require(self, place: str, heads: int, size: int, length: int) -> None:
        """Raise InputError unless a model has room for it.

        Args:
            place: of the layer, in words.
            heads: of a layer.
            size: of a head.
            length: of the rows in training, in tokens.
        """
        wrong = None
        own, scale, turn = self.encoding, self.mechanism.scale, self.mechanism.turn
        if own is not None:
            require_values(own)
            if own.num_heads not in (1, heads):
                wrong = f"{own.num_heads} biases; accepted are 1 or {heads}, one a head"
        if self.mechanism.window is not None and not 1 <= self.mechanism.window <= length:
            wrong = (
                f"window {self.mechanism.window} in rows of {length} tokens; accepted are windows "
                f"from 1 to {length}"
            )
        if scale is not None and not all(1 <= h <= heads for h in scale.heads):
            wrong = f"scale of heads {list(scale.heads)}; accepted are heads from 1 to {heads}"
        if turn is not None and round(turn.share * size / 2) < 1:
            wrong = f"share {turn.share:g} of a head of {size}; accepted is a share of 2 or more"
        refuse(wrong is not None, f"{place}: {wrong}")


def read_layers(given: Sequence[Any], heads: int) -> tuple[LayerPlan, ...]:
    """The layers that a plan lists, for a model with so many heads.

    Raises:
        InputError: an entry that no layer can have; the line names the layer.

    >>> local, free = read_layers([{"mechanism": "rope", "window": 8}, "0"], heads=2)
    >>> local.mechanism.window, free.mechanism.biased
    (8, False)
    """
    return tuple(_layer(entry, at, heads) for at, entry in enumerate(given, 1))


def _layer(given: Any, at: int, heads: int) -> LayerPlan:
    try:
        if not isinstance(given, dict):
            given = {"mechanism": given}
        entry = _Entry(**given)
        scale = _scale(entry.scale)
        main = fitted(heads, name=entry.mechanism)
        turning = {k: v for k in ("share", "base", "scaling") if (v := getattr(entry, k))}
        turn = None
        if main.mechanism in ("rotation", "rotation_decay"):
            turn = Turn(**turning, decay=main.mechanism == "rotation_decay")
        elif turning or entry.bias is not None:
            wrong = [*turning, *(["bias"] if entry.bias is not None else [])][0]
            raise ValueError(f"{wrong} belongs to a rotation; accepted with mechanism = 'rope'")
        elif main.mechanism != "bias":
            raise ValueError(
                f"{main.name} acts on no single layer (mechanism {main.mechanism}); accepted are "
                "biases, rope and xpos"
            )
        bias = main if turn is None else None
        if entry.bias is not None:
            bias = fitted(heads, name=entry.bias)
            if bias.mechanism != "bias":
                raise ValueError(f"bias {bias.name}: accepted are additive biases")
    except ValueError as error:
        raise InputError(f"layer {at}: {error}") from None
    biased = bias is not None and any(one != 0 for one in bias.biases)
    mechanism = LayerMechanism(biased, turn, entry.window, entry.sinks, scale)
    return LayerPlan(mechanism, bias if biased else None)


def _scale(given: str | Mapping[str, Any] | None) -> Scale | None:
    if given is None:
        return None
    found = {"form": given} if isinstance(given, str) else given
    try:
        return Scale(**{**found, "heads": tuple(found.get("heads", ()))})
    except TypeError:
        known = ", ".join(f.name for f in dataclasses.fields(Scale))
        raise ValueError(f"scale {given!r}: accepted are {known}") from None


def fitted(heads: int, /, **options: Any) -> Encoding:
    """An encoding, with so many heads where it has one formula a head and nobody lists them.

    >>> fitted(4, name="alibi").num_heads, fitted(4, name="-n/4").num_heads
    (4, 1)
    """
    found = encoding(**options)
    if "heads" in options or found.source == LISTED or found.num_heads in (1, heads):
        return found
    return encoding(heads=heads, **options)


# -- one run ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Configuration:
    """One run: an encoding, a text, a preset and a seed, and what to measure.

    Args:
        encoding: a trainable encoding with one head or as many as the preset; or, as a list of
            formulas, one for each head of each layer, layer by layer.
        corpus: the text.
        preset: architecture and schedule.
        seed: from 0; of the initial weights and of the order of the text.
        measurement: None takes the preset's.
        inference: each is measured on the same weights; none given takes causal attention, with
            the encoding's `bca` if it has one.
        layers: of a hybrid, one a layer, whose mechanisms stand in place of the encoding's; the
            encoding is `hybrid(label)`.
        task: the task in place of the text.
        probes: of the task; None takes the usual ones.

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
    layers: tuple[LayerPlan, ...] = ()
    task: Task | None = None
    probes: Probes | None = None

    @property
    def vocabulary(self) -> int:
        """Different tokens."""
        return self.corpus.vocabulary if self.task is None else self.task.vocabulary

    @property
    def data(self) -> np.ndarray | Task:
        """The text or task of the training."""
        return self.corpus.train if self.task is None else self.task

    @property
    def longest(self) -> int:
        """Tokens of the longest row that is measured."""
        if self.task is not None:
            return self.asked.lengths[-1]
        return max(*self.settings.lengths, self.settings.row_length, self.settings.far)

    def described(self) -> dict[str, Any]:
        """Its text or its task, in JSON form."""
        if (task := self.task) is None:
            return self.corpus.describe()
        return {"source": f"task {task.kind}", **task.describe(), "sha256": task.sha256}

    @property
    def asked(self) -> Probes:
        """The probes of the task, with the lengths filled in and in order."""
        probes, known = self.probes or Probes(), self.preset.length
        lengths = probes.lengths or (4 * known, 16 * known)
        return dataclasses.replace(probes, lengths=tuple(sorted({known, *lengths})))

    @property
    def settings(self) -> Measurement:
        """The measurements, with every default filled in and the lengths in order."""
        measure, known = self.measurement or self.preset.measurement, self.preset.length
        fixed = self.encoding.mechanism == "learned_absolute"  # no position beyond is known
        lengths = measure.lengths or ((known,) if fixed else (known, 4 * known, 16 * known))
        found = dataclasses.replace(measure, lengths=tuple(sorted(set(lengths))))
        if not fixed:
            return found
        return dataclasses.replace(
            found,
            row_length=min(found.row_length, known),
            scores=min(found.scores, known),
            gradient_length=found.gradient_length and min(found.gradient_length, known),
            far=0,
        )

    @property
    def variants(self) -> tuple[Visibility, ...]:
        """How the trained model is run when it is measured, one measurement each."""
        return self.inference or (Visibility(bca=self.encoding.bca),)

    def __post_init__(self) -> None:
        encoding, preset, measure = self.encoding, self.preset, self.settings
        refuse(
            not 0 <= self.seed < 2**63,
            f"seed {self.seed}: accepted is a whole number from 0 to 2^63 - 1",
        )
        if not self.layers:
            require_mechanism(encoding)
        elif len(self.layers) != preset.layers:
            raise InputError(
                f"{encoding.name}: {len(self.layers)} layers are listed, the model of preset "
                f"{preset.name} has {preset.layers}; accepted is one entry a layer"
            )
        for at, layer in enumerate(self.layers, 1):
            place, size = f"{encoding.name}, layer {at}", preset.width // preset.heads
            layer.require(place, preset.heads, size, preset.length)
        accepted = [1, preset.heads]
        if encoding.source == LISTED:  # heads of the catalogue spread over the layers mean nothing
            accepted.append(preset.heads * preset.layers)
        refuse(
            encoding.mechanism == "bias" and encoding.num_heads not in accepted,
            f"{encoding.name} has {encoding.num_heads} heads, the model of preset "
            f"{preset.name} has {preset.heads}; accepted: heads="
            + " or heads=".join(map(str, accepted)),
        )
        require_values(encoding)
        longest = self.asked.lengths[-1] if self.task else measure.lengths[-1]
        refuse(
            encoding.mechanism == "learned_absolute" and longest > preset.length,
            f"{encoding.name} knows the positions 0 to {preset.length - 1} that it was "
            f"trained on; length {longest} was asked, accepted are lengths to {preset.length}",
        )
        if self.task is not None:
            for length in self.asked.lengths:
                self.task.require(length)
            for distance in self.asked.distances:
                self.task.require(longest, distance)
            return
        spare = max(measure.strides, default=0)  # a window may begin before the longest length
        others = (measure.row_length, measure.scores, measure.gradient_length or 0, measure.far)
        self.corpus.require(preset.length, max(longest + spare, *others))

    def training(self) -> dict[str, Any]:
        """What decides the weights, in JSON form."""
        described = _since(self.preset, "measurement")
        del described["measurement"], described["name"]
        found: dict[str, Any] = {"schema": SCHEMA, "encoding": describe(self.encoding)}
        found |= {"preset": described, "seed": self.seed}
        if self.task is not None:
            found["task"] = self.task.describe()
        else:
            found["text_sha256"] = self.corpus.sha256
            if self.corpus.vocabulary != BYTES:
                found["vocabulary"] = self.corpus.vocabulary
        if self.layers:
            found["layers"] = [
                {"bias": layer.encoding and describe(layer.encoding), **recorded(layer.mechanism)}
                for layer in self.layers
            ]
        return found

    def measured(self, visible: Visibility) -> dict[str, Any]:
        """What decides a measurement of the trained weights, in JSON form."""
        own = {"probes": recorded(self.asked)} if self.task else _since(self.settings, "share")
        return {"schema": SCHEMA, **own, "inference": visible.described()}


def _since(value: Preset | Measurement, last: str) -> dict[str, Any]:
    """A record in JSON form. A field after the `last` came later: it enters a key only where it is
    not its default, so that runs made before keep their keys."""
    described, fields = recorded(value), dataclasses.fields(value)
    later = fields[[f.name for f in fields].index(last) + 1 :]
    new = {f.name for f in later if getattr(value, f.name) == f.default}
    return {name: said for name, said in described.items() if name not in new}


def hybrid(label: str) -> Encoding:
    """What a configuration whose layers are listed has in place of an encoding: a name."""
    return Encoding(label, None, mechanism="layers", source="layers of their own")


def describe(encoding: Encoding) -> dict[str, Any]:
    """What an encoding computes, in JSON form: mechanism, formula of each head, parameters."""
    heads: list[Expr] = []
    if encoding.mechanism == "bias":
        heads = [encoding.head(h) for h in range(1, encoding.num_heads + 1)]
    exact = "\n".join(_written(head)[1] for head in heads)
    entering = ("name", "domain", "learned", "init", "clamp")
    return {
        "mechanism": encoding.mechanism,
        "heads": [_written(head)[0] for head in heads],
        "sha256": hashlib.sha256(exact.encode()).hexdigest(),
        "parameters": [{k: recorded(p)[k] for k in entering} for p in encoding.parameters],
    }


@lru_cache(maxsize=1024)
def _written(head: Expr) -> tuple[str, str]:
    """A formula as it is read, and as the tree that it is: all seeds of a plan have the same."""
    return str(head), sympy.srepr(head)


def key(described: dict[str, Any]) -> str:
    """16 hexadecimal digits of the SHA-256 of a description in canonical JSON.

    >>> key({"b": 1, "a": 2}) == key({"a": 2, "b": 1})
    True
    """
    text = json.dumps(described, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
