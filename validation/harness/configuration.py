"""Configurations of runs: training, measurements, and the keys of both.

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

import numpy as np
import sympy

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import LISTED, Encoding
from farfield.validation.files import recorded
from farfield.validation.harness.corpus import BYTES, Corpus
from farfield.validation.harness.layers import LayerPlan
from farfield.validation.harness.measurement import Measurement, Probes
from farfield.validation.harness.presets import PRESETS, Preset
from farfield.validation.harness.tasks import Task
from farfield.validation.harness.trainable import require_mechanism, require_values
from farfield.validation.harness.visibility import Visibility

SCHEMA = 1


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
        settings = self.settings
        return max(*settings.lengths, settings.row_length, settings.far)

    def described(self) -> dict[str, Any]:
        """Its text or its task, in JSON form."""
        if self.task is None:
            return self.corpus.describe()
        return {
            "source": f"task {self.task.kind}",
            **self.task.describe(),
            "sha256": self.task.sha256,
        }

    @property
    def asked(self) -> Probes:
        """The probes of the task, with the lengths filled in and in order."""
        probes, known = self.probes or Probes(), self.preset.length
        lengths = probes.lengths or (known, 4 * known, 16 * known)
        return dataclasses.replace(probes, lengths=tuple(sorted({known, *lengths})))

    @property
    def settings(self) -> Measurement:
        """The measurements, with every default filled in and the lengths in order."""
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
        if self.seed < 0:
            raise InputError(f"seed {self.seed}: accepted is a whole number from 0")
        self._require_layers()
        if self.task is not None:
            self._require_room(self.task)
            return
        accepted = [1, preset.heads]
        if encoding.source == LISTED:  # heads of the catalogue spread over the layers mean nothing
            accepted.append(preset.heads * preset.layers)
        if encoding.mechanism == "bias" and encoding.num_heads not in accepted:
            raise InputError(
                f"{encoding.name} has {encoding.num_heads} heads, the model of preset "
                f"{preset.name} has {preset.heads}; accepted: heads="
                + " or heads=".join(map(str, accepted))
            )
        require_values(encoding)
        longest = measure.lengths[-1]
        if encoding.mechanism == "learned_absolute" and longest > preset.length:
            raise InputError(
                f"{encoding.name} knows the positions 0 to {preset.length - 1} that it was "
                f"trained on; length {longest} was asked, accepted are lengths to {preset.length}"
            )
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

    def _require_layers(self) -> None:
        preset = self.preset
        if not self.layers:
            require_mechanism(self.encoding)
        elif len(self.layers) != preset.layers:
            raise InputError(
                f"{self.encoding.name}: {len(self.layers)} layers are listed, the model of preset "
                f"{preset.name} has {preset.layers}; accepted is one entry a layer"
            )
        for at, layer in enumerate(self.layers, 1):
            layer.require(at, preset.heads, preset.width // preset.heads, preset.length)

    def _require_room(self, task: Task) -> None:
        if self.encoding.mechanism == "learned_absolute":
            raise InputError(
                f"{self.encoding.name}: a task asks rows longer than those of training"
            )
        for length in self.asked.lengths:
            task.require(length)
        for distance in self.asked.distances:
            task.require(self.asked.lengths[-1], distance)

    def training(self) -> dict[str, Any]:
        """What decides the weights, in JSON form."""
        described = _without_defaults(self.preset, _LATER[Preset])
        del described["measurement"], described["name"]
        vocabulary = self.corpus.vocabulary
        text: dict[str, Any] = {"text_sha256": self.corpus.sha256}
        if vocabulary != BYTES:
            text["vocabulary"] = vocabulary
        layers = [
            {
                "bias": None if layer.encoding is None else describe(layer.encoding),
                **recorded(layer.mechanism),
            }
            for layer in self.layers
        ]
        return {
            "schema": SCHEMA,
            "encoding": describe(self.encoding),
            "preset": described,
            "seed": self.seed,
            **(text if self.task is None else {"task": self.task.describe()}),
            **({"layers": layers} if layers else {}),
        }

    def measured(self, visible: Visibility) -> dict[str, Any]:
        """What decides a measurement of the trained weights, in JSON form."""
        if self.task is not None:
            return {
                "schema": SCHEMA,
                "probes": recorded(self.asked),
                "inference": recorded(visible),
            }
        settings = _without_defaults(self.settings, _LATER[Measurement])
        return {"schema": SCHEMA, **settings, "inference": recorded(visible)}


# A setting that came later enters a key only where it is not what had been the only choice, so
# that the runs made before keep their keys.
_LATER: dict[type, tuple[str, ...]] = {
    Preset: (
        "betas",
        "epsilon",
        "schedule",
        "dropout",
        "precision",
        "parts",
        "spread",
        "embedding_spread",
    ),
    Measurement: ("gradient_length", "strides", "positions", "scores", "far"),
}


def _without_defaults(value: Preset | Measurement, later: tuple[str, ...]) -> dict[str, Any]:
    defaults = {f.name: f.default for f in dataclasses.fields(value)}
    described: dict[str, Any] = recorded(value)
    for name in later:
        if getattr(value, name) == defaults[name]:
            del described[name]
    return described


def hybrid(label: str) -> Encoding:
    """What a configuration whose layers are listed has in place of an encoding: a name."""
    return Encoding(label, None, mechanism="layers", source="layers of their own")


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
        "parameters": [{k: recorded(p)[k] for k in _PARAMETER} for p in encoding.parameters],
    }


def key(described: dict[str, Any]) -> str:
    """16 hexadecimal digits of the SHA-256 of a description in canonical JSON.

    >>> key({"b": 1, "a": 2}) == key({"a": 2, "b": 1})
    True
    """
    text = json.dumps(described, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
