"""A finished run described as a model: its layers, with the values that its biases have learned."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from farfield.theory.answers.number import runs
from farfield.validation.harness.model import Layer, Transformer
from farfield.validation.harness.runs import load
from farfield.validation.harness.settings import ScaleSettings
from farfield.validation.models.network import encoding_of
from farfield.validation.models.outline import RUN, LayerOutline, ModelOutline, Rotary


def describe_run(path: Path) -> ModelOutline:
    """What a finished run says of its model, with the values that its biases have learned.

    Raises:
        InputError: its files are damaged, or those of another version.
    """
    net, _ = load(path)
    layers = []
    for layer, bias in zip(net.layers, net.bias_of, strict=True):
        assert isinstance(layer, Layer)
        layers.append(_outline(net, layer, bias))
    width, absolute = net.settings.width, net.absolute is not None
    return ModelOutline(
        path,
        RUN,
        tuple(layers),
        width=width,
        vocabulary=net.vocabulary,
        trained=net.length,
        trained_from="by the run",
        longest=net.length if absolute else None,
    )


def _outline(net: Transformer, layer: Layer, bias: object) -> LayerOutline:
    heads, width = net.settings.heads, net.settings.width
    bare = LayerOutline(heads=heads, key_heads=heads, head_size=width // heads, cached=2 * width)
    rope, encoding = layer.settings.rope, encoding_of(bias)
    positions = "none" if net.settings.absolute == "none" else "absolute"
    rotation = None
    if rope is not None:
        size = 2 * round(rope.share * bare.head_size / 2)
        note = f"all angles divided by {rope.scaling:g}" if rope.scaling != 1 else ""
        kind = "xpos" if rope.decay else "linear" if note else "default"
        rotation, positions = Rotary(size, rope.base, kind, note=note), "rotation"
    if bias is not None:  # a module of the user's own says nothing of itself
        positions = "" if encoding is None else positions if rotation else "bias"
    return dataclasses.replace(
        bare,
        width=layer.settings.window,
        rotation=rotation,
        positions=positions,
        encoding=encoding,
        sink=layer.settings.sinks,
        temper=_temper(layer.settings.scale, net.length),
    )


def _temper(scale: ScaleSettings | None, trained: int) -> str:
    """The factor of the logits at inference of a query in place i, from 1."""
    if scale is None or scale.when == "training":
        return ""
    length = scale.length or trained
    heads = f" in heads {runs(scale.heads)}" if scale.heads else ""
    if scale.form == "1 + a log":
        return f"1 + {scale.a:g} log(1 + floor(i/{length}))" + heads
    factor = f"log(i)/log({length})"
    return (f"max(1, {factor})" if scale.when == "inference" else factor) + heads
