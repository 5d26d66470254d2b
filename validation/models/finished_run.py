"""A finished run of a store as a model: what it was trained as, what it has learned, and its net.

This is the only module here that knows how runs are kept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sympy
from sympy import Expr

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import CATALOGUE, Encoding, Parameter, encoding, of_mechanism
from farfield.theory.formula.grammar import read
from farfield.theory.functions.nodes import n
from farfield.validation.harness.configuration import LayerPlan, describe
from farfield.validation.harness.corpus import BYTES
from farfield.validation.harness.mechanism import LayerMechanism, Scale, Turn
from farfield.validation.harness.presets import Preset
from farfield.validation.json_files import CorruptFile, read_json
from farfield.validation.models.layers import RUN, LayerOutline, ModelOutline, Rotary

if TYPE_CHECKING:
    from farfield.validation.harness.model import Transformer

WEIGHTS = "weights.safetensors"


def describe_run(path: Path) -> ModelOutline:
    """What a run says of its model.

    Raises:
        InputError: its files were changed later, or are those of another version.
    """
    try:
        record = read_json(path / "training.json")
        preset, plans = preset_of(record), plans_of(record)
        size = preset.width // preset.heads
        bare = LayerOutline(heads=preset.heads, key_heads=preset.heads, head_size=size)
        bare = dataclasses.replace(bare, cached=2 * preset.width)
        if plans:
            layers = tuple(_layer(bare, p.mechanism, p.encoding) for p in plans)
        else:
            layers = (_whole(bare, record, preset),) * preset.layers
        trained = record["configuration"]
        vocabulary = trained.get("task", trained).get("vocabulary", BYTES)
    except CorruptFile as error:
        raise InputError(f"run {path.name!r} cannot be read: {error}") from None
    except InputError:
        raise
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, StopIteration):
        raise InputError(f"run {path.name!r} was written by another version") from None
    return ModelOutline(
        path, RUN, layers, preset.width, vocabulary, preset.length, "by the run", values=record
    )


def _whole(bare: LayerOutline, record: Mapping[str, Any], preset: Preset) -> LayerOutline:
    """The layer of a run with one encoding."""
    made = _learned(encoding_of(record), record["learned"], preset.heads)
    if any(bias.free_symbols - {n} for bias in made.biases):
        raise KeyError("a parameter without a value")
    turned = made.mechanism in ("rotation", "rotation_decay")
    return _layer(bare, LayerMechanism(turn=Turn() if turned else None), made)


def _layer(bare: LayerOutline, mechanism: LayerMechanism, made: Encoding | None) -> LayerOutline:
    turn = mechanism.turn
    rotation = None
    if turn is not None:
        size = 2 * round(turn.share * bare.head_size / 2)
        kind, note = ("default", "") if turn.scaling == 1 else ("linear", f"by {turn.scaling:g}")
        rotation = Rotary(size, turn.base, kind, note=note)
    flat = made is None or made.mechanism != "bias" or set(made.biases) <= {0}
    positions = "none" if made is None or made.mechanism == "bias" else "absolute"
    positions = "rotation" if rotation else positions if flat else "bias"
    return dataclasses.replace(
        bare,
        width=mechanism.window,
        rotation=rotation,
        positions=positions,
        encoding=None if flat else made,
        sink=mechanism.sinks,
    )


def preset_of(record: Mapping[str, Any]) -> Preset:
    """The architecture and schedule of a run."""
    given = dict(record["configuration"]["preset"])
    if "betas" in given:
        given["betas"] = tuple(given["betas"])
    return Preset(name="run", **given)


def plans_of(record: Mapping[str, Any]) -> tuple[LayerPlan, ...]:
    """The layers of a hybrid; none for a run with one encoding in all of them.

    Raises:
        InputError: a layer has learned parameters, whose values belong to the whole.
    """
    return tuple(_plan(dict(one)) for one in record["configuration"].get("layers", ()))


def _plan(given: dict[str, Any]) -> LayerPlan:
    said = given.pop("bias")
    turn, scale = given.pop("turn"), given.pop("scale")
    if scale is not None:
        scale = Scale(**{**scale, "heads": tuple(scale.get("heads", ()))})
    turn = None if turn is None else Turn(**turn)
    if said is not None and said["parameters"]:
        raise InputError("a hybrid with learned biases; accepted: layers with fixed ones")
    heads = () if said is None else tuple(read(text) for text in said["heads"])
    made = Encoding("run", heads[0], heads, source="a trained run") if heads else None
    return LayerPlan(LayerMechanism(turn=turn, scale=scale, **given), made)


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


def _learned(made: Encoding, values: Mapping[str, Sequence[float]], heads: int) -> Encoding:
    """The encoding with the learned values of each head in place of its parameters, exactly."""
    if not made.free:
        return made
    biases = []
    for h in range(heads):
        own = {p.symbol: sympy.Rational(*values[p.name][h].as_integer_ratio()) for p in made.free}
        biases.append(made.head(h + 1 if made.num_heads > 1 else 1).xreplace(own))
    return dataclasses.replace(made, biases=tuple(biases), source="values learned in a run")


def load_run(model: ModelOutline) -> Transformer:
    """The trained net of a run, in evaluation mode.

    Raises:
        InputError: its weights are missing, damaged, or not those of its record.
    """
    import safetensors.torch

    from farfield.validation.harness.positional import transformer
    from farfield.validation.harness.training import require_tensors

    record = model.values
    plans = plans_of(record)
    made = encoding("nope") if plans else encoding_of(record)
    net = transformer(made, preset_of(record), model.vocabulary, plans)
    try:
        weights = safetensors.torch.load((model.path / WEIGHTS).read_bytes())
        require_tensors(net, weights, f"run {model.name!r}")
    except (OSError, safetensors.SafetensorError):
        raise InputError(
            f"run {model.name!r} has no readable {WEIGHTS}; accepted: a finished run"
        ) from None
    except CorruptFile as error:
        raise InputError(str(error)) from None
    net.load_state_dict(weights)
    return net.eval()
