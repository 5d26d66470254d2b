"""A finished run of a store as a model from outside: what it was trained as, and has learned."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import sympy
from sympy import Expr

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import (
    CATALOGUE,
    Encoding,
    Parameter,
    encoding,
    of_mechanism,
    surrogate_of,
)
from farfield.theory.formula.grammar import read
from farfield.theory.functions.nodes import n
from farfield.validation.checkpoints.configured import THETA, Attention, Folder, ModelSize
from farfield.validation.checkpoints.guarded import DOCUMENT, Config, opened
from farfield.validation.harness.configuration import describe
from farfield.validation.harness.corpus import BYTES
from farfield.validation.harness.presets import Preset
from farfield.validation.json_files import CorruptFile, read_json

_TEXT, _LEARNED = 4000, 1000.0  # characters of a formula, and the size of a learned value
PROJECTS = {
    "centred": True,
    "norm": ["layers.{layer}.attention_norm"],
    "joined": "layers.{layer}.mixed",
}
"""Where a run keeps how queries and keys come from a normalised input."""


def describe_run(path: Path) -> tuple[Folder, Mapping[str, Any]]:
    """The description of a run, and its record.

    Raises:
        InputError: its files were changed later, or are those of another version.
    """
    opened(path, "training.json", most=DOCUMENT).close()
    try:
        record = read_json(path / "training.json")
        own = Config(path.name, record["configuration"]["preset"], "training.json")
        for name in ("layers", "heads", "width", "length"):
            own.whole(name, usual=None)
        preset = preset_of(record)
        if "layers" in record["configuration"]:
            raise InputError(
                f"run {path.name!r} is a hybrid, whose layers differ; accepted are runs with one "
                "encoding in all layers"
            )
        _require_sane(record)
        found = _learned(encoding_of(record), record["learned"], preset.heads)
        if any(bias.free_symbols - {n} for bias in found.biases):
            raise KeyError("a parameter without a value")
    except CorruptFile as error:
        raise InputError(f"run {path.name!r} cannot be read: {error}") from None
    except InputError:
        raise
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, StopIteration):
        raise InputError(f"run {path.name!r} was written by another version") from None
    size = preset.width // preset.heads
    turned = None if surrogate_of(found.name) is None else (size, THETA)
    trained = record["configuration"]
    vocabulary = trained.get("task", trained).get("vocabulary", BYTES)
    cached = 2 * preset.width
    shape = ModelSize(
        preset.layers, preset.heads, size, preset.width, vocabulary, preset.heads, cached
    )
    attention = (Attention(found, turned, scale=size**-0.5),) * preset.layers
    return Folder(shape, attention, preset.length, family={"projects": PROJECTS}), record


def _require_sane(record: Mapping[str, Any]) -> None:
    """Raise ValueError for texts and numbers that no run has."""
    texts = [
        *record["configuration"]["encoding"]["heads"],
        record.get("labels", {}).get("encoding", ""),
    ]
    values = [value for each in record["learned"].values() for value in each]
    if any(len(str(text)) > _TEXT or not isinstance(text, str) for text in texts):
        raise ValueError("a formula is no text, or long")
    if not all(abs(value) <= _LEARNED for value in values):
        raise ValueError("a learned value is beyond every run")


def preset_of(record: Mapping[str, Any]) -> Preset:
    """The architecture and schedule of a run."""
    given = dict(record["configuration"]["preset"])
    if "betas" in given:
        given["betas"] = tuple(given["betas"])
    return Preset(name="run", **given)


def encoding_of(record: Mapping[str, Any]) -> Encoding:
    """The encoding of a run as it was trained, its learned parameters free.

    Raises:
        InputError: its formula is a table of a shape that is not found again.
    """
    described = record["configuration"]["encoding"]
    if described["mechanism"] != "bias":
        return encoding(of_mechanism(described["mechanism"]).name)
    for made in _candidates(record, described):
        if describe(made)["sha256"] == described["sha256"]:
            return made
    raise InputError(f"a run with the bias {described['heads'][0][:40]!r} cannot be read back")


def _candidates(record: Mapping[str, Any], described: Mapping[str, Any]) -> Iterator[Encoding]:
    """Encodings that the record may describe; the hash of their formulas says which does.

    A formula is read again from its text. One that holds a table cannot be: then it is an entry of
    the catalogue with the options that it is trained with, or with others for as many parameters.
    """
    labels = record.get("labels", {})
    parameters = tuple(
        Parameter(**{**p, "init": tuple(p["init"]), "clamp": tuple(p["clamp"])})
        for p in described["parameters"]
    )
    domains = {p.name: p.domain for p in parameters}
    try:
        heads = tuple(_read(text, domains) for text in described["heads"])
        name = labels.get("encoding", "run")
        yield Encoding(name, heads[0], heads, parameters, source="a trained run")
    except InputError:  # a table is no formula
        pass
    entry = CATALOGUE.get(labels.get("encoding", ""))
    if entry is not None:
        length = record["configuration"]["preset"]["length"]
        tables = entry.tables(len(parameters)) if entry.tables else ()
        for options in ({}, entry.trained(length), *tables):
            yield encoding(entry.name, dialect=labels.get("dialect"), **options)


def _read(text: str, domains: Mapping[str, str]) -> Expr:
    """A formula, its parameters with the domains that they have."""
    names = {str(symbol) for symbol in read(text).free_symbols}
    return read(text, {name: d for name, d in domains.items() if name in names})


def _learned(made: Encoding, values: Mapping[str, list[float]], heads: int) -> Encoding:
    """The encoding with the learned values of each head in place of its parameters, exactly."""
    if not made.free:
        return made
    biases = []
    for h in range(heads):
        own = {p.symbol: sympy.Rational(*values[p.name][h].as_integer_ratio()) for p in made.free}
        biases.append(made.head(h + 1 if made.num_heads > 1 else 1).xreplace(own))
    return dataclasses.replace(made, biases=tuple(biases), source="values learned in a run")
