"""What the encoding of a run means: how each layer treats positions, and its bias.

An encoding is one of the catalogue, a formula or a list of them, a class of a user's file, or a
hybrid. Nothing here needs torch.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import sympy
from pydantic import JsonValue

from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.encodings import CATALOGUE, LISTED, Encoding
from farfield.theory.encodings import encoding as read_encoding
from farfield.theory.encodings.head_lists import notation
from farfield.validation.harness.own import Own, own
from farfield.validation.harness.settings import (
    ROTATIONS,
    Hybrid,
    LayerSettings,
    ModelSettings,
    RopeSettings,
    Run,
    Sizes,
    Spec,
)

ABSOLUTE: dict[str, Literal["none", "sinusoidal", "learned"]] = {
    "sinusoidal": "sinusoidal",
    "learned_absolute": "learned",
}


Source = Encoding | Own


def read(spec: Spec | Source, heads: int) -> Source:
    """An encoding, with this many heads where it has one formula a head; or a class of a file.

    Raises:
        InputError: no such encoding or file; a parameter without a value that is not learned.

    >>> read("alibi", 4).num_heads, read("-n/4", 4).num_heads
    (4, 1)
    """
    if isinstance(spec, Source):
        return spec
    if isinstance(spec, str) and ".py:" in spec:
        return own(spec)
    options: dict[str, Any] = dict(spec) if isinstance(spec, dict) else {"name": spec}
    return fitted(heads, **options)


def fitted(heads: int, /, **options: Any) -> Encoding:
    """An encoding that models with this many heads have, as `read` refuses others."""
    built = read_encoding(**options)
    whole = (
        "heads" in options or isinstance(options.get("name"), Encoding) or built.source == LISTED
    )
    if not whole and built.num_heads not in (1, heads):
        built = read_encoding(heads=heads, **options)
    refuse(built.seen is not None, f"{built.name} cannot be trained: {built.out_of_scope}")
    for parameter in built.free:
        refuse(
            not parameter.learned and parameter.init[0] != parameter.init[1],
            f"{built.name}: {parameter.name} is not learned and has no value; accepted: "
            f"{parameter.name}=..., in the domain {parameter.domain}",
        )
    refuse(
        built.mechanism == "bias" and built.num_heads not in (1, heads),
        f"{built.name} has {built.num_heads} heads, the model has {heads}; accepted are 1 or "
        f"{heads}",
    )
    return built


def written(encoding: Encoding, length: int) -> Spec:
    """An encoding as a run writes it: by its formulas, or by its name where parameters are free.

    Args:
        encoding: that is read back from what is returned.
        length: of the training rows, for the options of an entry that depend on it.

    Raises:
        InputError: it has options or values that neither says.

    >>> from farfield.theory.encodings import encoding
    >>> written(encoding("alibi", heads=2), 64), written(encoding("kerple_log"), 64)
    ('[-n/16; -n/256]', {'name': 'kerple_log'})
    """
    refuse(
        encoding.seen is not None,
        f"{encoding.name} is known by its values alone; accepted: farfield train "
        "FILE.py:Class, which trains the class itself",
    )
    each = [str(bias) for bias in encoding.biases]
    ways: list[Spec] = [notation(each) if len(each) > 1 else "".join(each)]
    if encoding.free or not encoding.biases:
        name = {"name": encoding.name, "dialect": encoding.dialect}
        plain: dict[str, JsonValue] = {k: v for k, v in name.items() if v is not None}
        entry = CATALOGUE.get(encoding.name)
        ways = [plain, {**plain, **(entry.trained(length) if entry else {})}]
    for way in ways:
        back = read(way, encoding.num_heads)
        if isinstance(back, Encoding) and _described(back) == _described(encoding):
            return way
    raise InputError(
        f"{encoding.name} has options that no setting of a run says; accepted: a plan, whose "
        "encoding is a table with a name and options"
    )


def with_encoding(run: Run, name: str, encoding: Encoding) -> Run:
    """The same run with an encoding, called by this name; a rotation is measured with blockwise
    causal attention as well [S, 3.3]."""
    blocks = encoding.bca or (run.length // 2 if encoding.mechanism in ROTATIONS else 0)
    measure = run.measure.but(bca=(blocks,)) if blocks else run.measure
    return run.but(encoding=written(encoding, run.length), label=name, measure=measure)


def trainable(encoding: Encoding) -> bool:
    """Whether a model is trained with it where all are; a surrogate of another encoding is not."""
    entry = CATALOGUE.get(encoding.name)
    values = all(p.learned or p.init[0] == p.init[1] for p in encoding.free)
    mechanisms = ("bias", *ROTATIONS, *ABSOLUTE)
    return encoding.mechanism in mechanisms and values and not (entry and entry.stands_for)


def mechanism_of(model: ModelSettings) -> str:
    """How a model treats positions, in a word: `bias`, `rotation`, `layers` of a hybrid."""
    first = model.layers[0]
    if any(layer != first for layer in model.layers):
        return "layers"
    if first.rope is not None:
        return "rotation_decay" if first.rope.decay else "rotation"
    if model.absolute != "none":
        return next(name for name, kind in ABSOLUTE.items() if kind == model.absolute)
    return "module" if isinstance(first.bias, Own) else "bias"


def formula_of(model: ModelSettings) -> str | None:
    """The bias of all layers as `encoding` reads it; None where there is none, or several."""
    bias = model.layers[0].bias
    if mechanism_of(model) != "bias":
        return None
    return notation([str(b) for b in bias.biases]) if isinstance(bias, Encoding) else "[0]"


def facts_of(model: ModelSettings) -> list[JsonValue]:
    """What decides the weights, sizes apart, in JSON form: formulas in place of names."""
    each = [layer.model_dump(mode="json", exclude={"bias"}) for layer in model.layers]
    biases = [None if x.bias is None else _described(x.bias) for x in model.layers]
    return [model.absolute, *({"bias": b, **s} for b, s in zip(biases, each, strict=True))]


def understood(run: Run) -> ModelSettings:
    """The model of a run, the vocabulary apart: its layers with their biases read.

    Raises:
        InputError: an encoding that no layer can have; the line names the layer of a hybrid.
    """
    model: dict[str, Any] = {name: getattr(run, name) for name in Sizes.model_fields}
    if isinstance(run.encoding, Hybrid):
        layers = [_read(layer, at, run) for at, layer in enumerate(run.encoding.layers, 1)]
        return ModelSettings.of({**model, "layers": layers})
    source, layer = read(run.encoding, run.heads), LayerSettings()
    if isinstance(source, Own) or source.mechanism == "bias":
        layer = LayerSettings(bias=_some(source))
    elif source.mechanism in ROTATIONS:
        layer = LayerSettings(rope=RopeSettings(decay=source.mechanism == "rotation_decay"))
    elif source.mechanism in ABSOLUTE:
        model["absolute"] = ABSOLUTE[source.mechanism]
    else:
        names = [e.name for e in CATALOGUE.values() if e.mechanism in (*ROTATIONS, *ABSOLUTE)]
        raise InputError(
            f"{source.name} cannot be trained here (mechanism {source.mechanism}); accepted: "
            f"additive biases, a module of your own, {', '.join(names)}"
        )
    return ModelSettings.of({**model, "layers": [layer] * run.layers})


def _some(source: Source) -> Source | None:
    """A bias, or None if it is 0 everywhere."""
    return source if isinstance(source, Own) or any(b != 0 for b in source.biases) else None


def _read(layer: LayerSettings, at: int, run: Run) -> LayerSettings:
    """A layer of a hybrid with its bias read."""
    try:
        size, heads = run.width // run.heads, layer.scale.heads if layer.scale else ()
        refuse(
            layer.rope is not None and round(layer.rope.share * size / 2) < 1,
            f"share {layer.rope and layer.rope.share} of a head of {size}; accepted is a share of "
            "2 dimensions or more",
        )
        refuse(
            any(h > run.heads for h in heads),
            f"scale of heads {heads}; accepted are heads from 1 to {run.heads}",
        )
        if layer.bias is None:
            return layer
        bias = read(layer.bias, run.heads)
        refuse(
            isinstance(bias, Encoding) and bias.mechanism != "bias",
            f"{layer.bias} acts on no single layer; accepted are biases, rope and xpos",
        )
        return layer.but(bias=_some(bias))
    except ValueError as error:
        raise InputError(f"layer {at}: {error}") from None


def _described(source: object) -> JsonValue:
    assert isinstance(source, Source)
    if isinstance(source, Own):
        return {"class": source.name, "sha256": source.sha256}
    exact = "\n".join(sympy.srepr(b) for b in source.biases)
    return {
        "heads": [str(b) for b in source.biases],
        "sha256": hashlib.sha256(exact.encode()).hexdigest(),
        "learned": [
            [p.name, p.domain, p.learned, *map(str, (*p.init, *p.clamp))] for p in source.free
        ],
    }
