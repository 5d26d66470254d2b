"""Bounds of the logits and values of a model by the norms of its weights: they hold for every text.

A normalised input is `y = g z + s` with `||z|| <= sqrt(D)` (and `z` orthogonal to 1 under
LayerNorm). With `q = A z + a`, `k = B z' + b`, `v = V z' + c`, up to terms that all keys of a row
share and that change no weight,

    |q.k| <= D ||A^T B||_2 + sqrt(D) ||B^T a||,     ||v|| <= sqrt(D) ||V||_2.

Where entries are clamped, `|q.k| <= |q| |k|` with norms of at most the clamp times sqrt(d).

Weights do not change when a number is added to all logits of a row. They sum to 1, so a vector
added to all values leaves the difference of two outputs as it was. Spectral norms are computed in
float64 and enlarged by a millionth of the product of the Frobenius norms, which is more than
rounding amounts to. Only models with an additive bias are asked: elsewhere no window follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from farfield.theory.answers.errors import InputError, refuse
from farfield.validation.models.layers import RUN, LayerOutline, ModelOutline
from farfield.validation.models.weights import reader

Read = Callable[[str], np.ndarray | None]
"""Reads a tensor by its name, in float64; None where there is none."""

Linear = tuple[np.ndarray, np.ndarray]
"""Weights of shape (heads, head size, width), and what is added, of shape (heads, head size)."""

PROJECTIONS: dict[str, dict[str, Any]] = {
    "bloom": {
        "norm": ["transformer.h.{layer}.input_layernorm"],
        "joined": "transformer.h.{layer}.self_attention.query_key_value",
        "grouped": True,
    },
    "falcon": {
        "norm": ["transformer.h.{layer}.ln_attn", "transformer.h.{layer}.input_layernorm"],
        "joined": "transformer.h.{layer}.self_attention.query_key_value",
        "grouped": True,
    },
    "mpt": {
        "norm": ["transformer.blocks.{layer}.norm_1"],
        "joined": "transformer.blocks.{layer}.attn.Wqkv",
    },
    "t5": {
        "norm": ["decoder.block.{layer}.layer.0.layer_norm"],
        "each": "decoder.block.{layer}.layer.0.SelfAttention.{which}",
        "centred": False,
    },
    RUN: {"norm": ["layers.{layer}.ln_attn"], "joined": "layers.{layer}.qkv_proj"},
}
"""Where queries and keys come from: a norm, and projections of `each`, or all `joined`."""

_MARGIN = 1e-6
_LEAST = 1e-150  # smaller norms have squares that float64 rounds to 0
_ROUNDING = 1e-9  # more than float64 takes, relatively, from a product of norms of 10^6 numbers


@dataclass(frozen=True)
class HeadBounds:
    """Bounds of one head: `|logit| <= logit` up to a term common to the row, `||value|| <= value`
    up to a vector common to all."""

    logit: float
    value: float


@dataclass(frozen=True)
class Projections:
    """How queries, keys and values of a layer come from its normalised input, in float64.

    Args:
        gain, shift: of the norm, shape (width,).
        centred: whether the norm takes the mean away first (LayerNorm).
        query, key, value: each linear; heads that share a key have it each.
    """

    gain: np.ndarray
    shift: np.ndarray
    centred: bool
    query: Linear
    key: Linear
    value: Linear


def projections(
    layer: LayerOutline, width: int, places: Mapping[str, Any], at: int, read: Read
) -> Projections:
    """The projections of a layer, counted from 0.

    Raises:
        InputError: a tensor is missing or misshapen.
    """

    def found(name: str, *shape: int) -> np.ndarray | None:
        values = read(name.format(layer=at))
        if values is not None and values.shape != shape:
            raise InputError(
                f"the tensor {name.format(layer=at)!r} has shape {values.shape}; accepted: {shape}"
            )
        return values

    def linear(name: str, heads: int) -> Linear:
        rows = heads * layer.head_size
        weight, bias = found(f"{name}.weight", rows, width), found(f"{name}.bias", rows)
        if weight is None:
            raise InputError(f"the tensor {name.format(layer=at)!r} is missing; accepted: all")
        bias = np.zeros(rows) if bias is None else bias
        return weight.reshape(heads, -1, width), bias.reshape(heads, -1)

    gains = [(found(f"{norm}.weight", width), norm) for norm in places["norm"]]
    gain, norm = next((each for each in gains if each[0] is not None), (None, ""))
    if gain is None:
        raise InputError(
            f"the tensor {places['norm'][-1].format(layer=at)!r} is missing; accepted: all"
        )
    shift = found(f"{norm}.bias", width)
    groups = layer.key_heads
    each, parts = layer.heads // groups, (layer.heads, groups, groups)
    if "joined" not in places:
        names = [places["each"].replace("{which}", which) for which in "qkv"]
        linears = [linear(*part) for part in zip(names, parts, strict=True)]
    else:
        order = np.arange(sum(parts))
        if places.get("grouped"):  # each group holds its queries, then the key and value they share
            of = order.reshape(groups, -1)
            order = np.concatenate([of[:, :each].ravel(), of[:, each], of[:, each + 1]])
        weight, bias = linear(places["joined"], sum(parts))
        linears = [(weight[rows], bias[rows]) for rows in np.split(order, np.cumsum(parts)[:-1])]
    query = linears[0]
    key, value = ((w.repeat(each, 0), b.repeat(each, 0)) for w, b in linears[1:])
    shift = np.zeros(width) if shift is None else shift
    return Projections(gain, shift, places.get("centred", True), query, key, value)


def bounds_of(p: Projections, scale: float, clip: float | None = None) -> tuple[HeadBounds, ...]:
    """Bounds of each head of a layer that hold for every text.

    Args:
        p: the projections.
        scale: what q.k is multiplied with.
        clip: the most that an entry of a query, key or value can be; None without.
    """
    root = math.sqrt(len(p.gain))

    def acting(part: Linear) -> np.ndarray:
        scaled = part[0] * p.gain
        return scaled - scaled.mean(-1, keepdims=True) if p.centred else scaled

    def constant(part: Linear) -> np.ndarray:
        return np.asarray(part[0] @ p.shift + part[1])

    def rounding(part: Linear) -> np.ndarray:
        return np.asarray(_MARGIN * _norm(part[0]) * np.linalg.norm(p.shift))

    q, k, v = map(acting, (p.query, p.key, p.value))
    if clip is None:
        const = constant(p.query)[..., None]
        also = _norm(np.swapaxes(k, -2, -1) @ const)
        also += _norm(k) * (_MARGIN * _norm(const) + rounding(p.query))
        logit, size = root**2 * _of_product(q, k) + root * also, root * _spectral(v)
    else:
        sides = [
            np.minimum(
                root * _spectral(x) + _norm(constant(part)[..., None]) + rounding(part),
                clip * math.sqrt(q.shape[-2]),
            )
            for x, part in ((q, p.query), (k, p.key), (v, p.value))
        ]
        logit, size = sides[0] * sides[1], sides[2]
    pairs = np.stack([scale * logit, size], -1) * (1 + _ROUNDING) + _LEAST**2
    return tuple(HeadBounds(*pair) for pair in pairs.tolist())


def _norm(x: np.ndarray) -> np.ndarray:
    """Upper bounds of Frobenius norms."""
    return np.asarray(np.linalg.norm(x, axis=(-2, -1)) * (1 + _ROUNDING) + _LEAST)


def _spectral(x: np.ndarray) -> np.ndarray:
    """Upper bounds of `||X||_2`, by the eigenvalues of `X X^T`."""
    squares = np.linalg.eigvalsh(x @ np.swapaxes(x, -2, -1))[..., -1].clip(min=0)
    return np.asarray(np.sqrt(squares + _ROUNDING * _norm(x) ** 2) + _LEAST)


def _of_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Upper bounds of `||A^T B||_2`: with `A^T = Q R`, it is `||R_A R_B^T||_2`."""
    left, right = (np.linalg.qr(np.swapaxes(x, -2, -1), mode="r") for x in (a, b))
    product = np.linalg.norm(left @ np.swapaxes(right, -2, -1), 2, axis=(-2, -1))
    return np.asarray(product + _MARGIN * _norm(a) * _norm(b))


def weight_bounds(model: ModelOutline) -> list[tuple[HeadBounds, ...]]:
    """Bounds of every head that hold for every text, one tuple a layer.

    Raises:
        InputError: the model has no additive bias; a tensor is missing, misshapen or not finite;
            there are no weights.
    """
    kind = "t5" if model.kind in ("mt5", "umt5") else model.kind
    grow = any(o.temper or (o.rotation and o.rotation.kind == "xpos") for o in model.layers)
    refuse(
        not model.biased or kind not in PROJECTIONS or grow,
        f"model {model.name!r} ({model.kind}) has no additive bias, or logits that grow, so "
        "no window follows from its weights; accepted: bounds 'given', or farfield window "
        "--model on a text",
    )
    read, config = reader(model), model.values.get("attn_config") or {}
    attention = config if isinstance(config, dict) else {}
    try:
        return [
            bounds_of(
                projections(layer, model.width, PROJECTIONS[kind], at, read),
                1.0 if kind == "t5" else attention.get("softmax_scale") or layer.head_size**-0.5,
                attention.get("clip_qkv") or None,
            )
            for at, layer in enumerate(model.layers)
        ]
    except InputError as error:
        if "model" in str(error)[:6]:
            raise
        raise InputError(f"model {model.name!r}: {error}") from None
