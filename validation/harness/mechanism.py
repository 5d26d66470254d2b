"""What the encoding of a run means: how each layer treats positions, and its bias.

An encoding is one of the catalogue, a formula or a list of them, a class of a user's file, or a
hybrid. Nothing here needs torch.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal, NamedTuple

import sympy
from pydantic import JsonValue

from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.encodings import CATALOGUE, LISTED, Encoding
from farfield.theory.encodings import encoding as read_encoding
from farfield.theory.encodings.head_lists import notation
from farfield.validation.harness.own import Own, own
from farfield.validation.harness.settings import (
    Hybrid,
    LayerEntry,
    LayerSettings,
    RopeSettings,
    Run,
    ScaleSettings,
    Spec,
)

ROTATIONS = ("rotation", "rotation_decay")
ABSOLUTE: dict[str, Literal["none", "sinusoidal", "learned"]] = {
    "sinusoidal": "sinusoidal",
    "learned_absolute": "learned",
}


Source = Encoding | Own


def read(spec: Spec, heads: int) -> Source:
    """An encoding, with this many heads where it has one formula a head; or a class of a file.

    Raises:
        InputError: no such encoding or file; a parameter without a value that is not learned.

    >>> read("alibi", 4).num_heads, read("-n/4", 4).num_heads
    (4, 1)
    """
    if isinstance(spec, str) and ".py:" in spec:
        return own(spec)
    options: dict[str, Any] = dict(spec) if isinstance(spec, dict) else {"name": spec}
    return fitted(heads, **options)


def fitted(heads: int, /, **options: Any) -> Encoding:
    """An encoding that models with this many heads have, as `read` refuses others."""
    built = read_encoding(**options)
    if "heads" not in options and built.source != LISTED and built.num_heads not in (1, heads):
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


class Understood(NamedTuple):
    """What the encoding of a run says of each layer: its settings and its bias; and what vectors
    are added to the embedding."""

    layers: tuple[LayerSettings, ...]
    biases: tuple[Source | None, ...]
    absolute: Literal["none", "sinusoidal", "learned"] = "none"

    @property
    def mechanism(self) -> str:
        """In a word: `bias`, `rotation`, `layers` of a hybrid, and others."""
        if any(
            each != (self.layers[0], self.biases[0])
            for each in zip(self.layers, self.biases, strict=True)
        ):
            return "layers"
        rope, bias = self.layers[0].rope, self.biases[0]
        if rope is not None:
            return "rotation_decay" if rope.decay else "rotation"
        if self.absolute != "none":
            return next(name for name, kind in ABSOLUTE.items() if kind == self.absolute)
        return "module" if isinstance(bias, Own) else "bias"

    @property
    def formula(self) -> str | None:
        """The bias of all layers as `encoding` reads it; None where there is none, or several."""
        bias = self.biases[0]
        if self.mechanism != "bias" or isinstance(bias, Own):
            return None
        return "[0]" if bias is None else notation([str(b) for b in bias.biases])

    @property
    def facts(self) -> list[JsonValue]:
        """What decides the weights, in JSON form: formulas in place of names."""
        biases = [None if b is None else _described(b) for b in self.biases]
        settings = [layer.model_dump(mode="json") for layer in self.layers]
        return [self.absolute, *({"bias": b, **s} for b, s in zip(biases, settings, strict=True))]


def understood(run: Run) -> Understood:
    """The layers of a run.

    Raises:
        InputError: an encoding that no layer can have; the line names the layer of a hybrid.
    """
    if isinstance(run.encoding, Hybrid):
        layers = [_layer(entry, at, run) for at, entry in enumerate(run.encoding.layers, 1)]
        return Understood(tuple(x for x, _ in layers), tuple(bias for _, bias in layers))
    source = read(run.encoding, run.heads)
    same = LayerSettings()
    if isinstance(source, Own) or source.mechanism == "bias":
        bias = source if isinstance(source, Own) or any(b != 0 for b in source.biases) else None
        return Understood((same,) * run.layers, (bias,) * run.layers)
    if source.mechanism in ROTATIONS:
        same = LayerSettings(rope=RopeSettings(decay=source.mechanism == "rotation_decay"))
    elif source.mechanism not in ABSOLUTE:
        names = [e.name for e in CATALOGUE.values() if e.mechanism in (*ROTATIONS, *ABSOLUTE)]
        raise InputError(
            f"{source.name} cannot be trained here (mechanism {source.mechanism}); accepted: "
            f"additive biases, a module of your own, {', '.join(names)}"
        )
    nothing = (None,) * run.layers
    return Understood((same,) * run.layers, nothing, ABSOLUTE.get(source.mechanism, "none"))


def _layer(entry: LayerEntry, at: int, run: Run) -> tuple[LayerSettings, Source | None]:
    try:
        turn = {k: v for k in ("share", "base", "scaling") if (v := getattr(entry, k)) is not None}
        main = read(entry.mechanism, run.heads)
        mechanism = "bias" if isinstance(main, Own) else main.mechanism
        rotates = mechanism in ROTATIONS
        refuse(
            mechanism != "bias" and not rotates,
            f"{entry.mechanism} acts on no single layer; accepted are biases, rope and xpos",
        )
        refuse(
            not rotates and (turn or entry.bias is not None),
            f"{[*turn, 'bias'][0]} belongs to a rotation; accepted with mechanism = 'rope'",
        )
        rope = RopeSettings(**turn, decay=mechanism == "rotation_decay") if rotates else None
        bias = main if rope is None else entry.bias and read(entry.bias, run.heads)
        if isinstance(bias, Encoding):
            refuse(bias.mechanism != "bias", f"bias {bias.name}: accepted are additive biases")
            bias = bias if any(b != 0 for b in bias.biases) else None
        scale = ScaleSettings(form=entry.scale) if isinstance(entry.scale, str) else entry.scale
        size = run.width // run.heads
        refuse(
            rope is not None and round(rope.share * size / 2) < 1,
            f"share {entry.share} of a head of {size}; accepted is a share of 2 dimensions or more",
        )
        refuse(
            scale is not None and any(h > run.heads for h in scale.heads),
            f"scale of heads {scale and scale.heads}; accepted are heads from 1 to {run.heads}",
        )
        settings = LayerSettings(rope=rope, window=entry.window, sinks=entry.sinks, scale=scale)
        return settings, bias or None
    except ValueError as error:
        raise InputError(f"layer {at}: {error}") from None


def _described(source: Source) -> JsonValue:
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
