"""Bounds of the logits and values of a model by the norms of its weights: they hold for every text.

A normalised input is `y = g z + s` with `||z|| <= sqrt(D)` (and `z` orthogonal to 1 under
LayerNorm). With `q = A z + a`, `k = B z' + b`, `v = V z' + c`, up to terms that all keys of a row
share and that change no weight,

    |q.k| <= D ||A^T B||_2 + sqrt(D) ||B^T a||,     ||v|| <= sqrt(D) ||V||_2.

A rotation between q and k keeps norms alone: then `|q.k| <= |q| |k|`, with
`|q| <= sqrt(D) ||A||_2 + ||a||`. A norm of queries bounds them by `sqrt(d) max |gain| + ||shift||`.

Latent attention makes queries, keys and values of normalised latents of ranks R and S. Some
dimensions stand still, the others turn, and their key `k'` comes from the input:
`|q.k| <= sqrt(R S) ||A^T B||_2 + sqrt(R) ||A'||_2 |k'|`.

Weights do not change when a number is added to all logits of a row. They sum to 1, so a vector
added to all values leaves the difference of two outputs as it was. Spectral norms are computed in
float64 and enlarged by a millionth of the product of the Frobenius norms, which is more than
rounding amounts to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from farfield.theory.answers.answer import InputError
from farfield.validation.checkpoints.configured import (
    Attention,
    Folder,
    Gains,
    HeadBounds,
    ModelSize,
)
from farfield.validation.checkpoints.guarded import reader

Read = Callable[[str], np.ndarray | None]
"""Reads a tensor by its name, in float64; None where there is none."""

Linear = tuple[np.ndarray, np.ndarray]
"""Weights of shape (heads, head size, width), and what is added, of shape (heads, head size)."""

_NORM = "model.layers.{layer}.input_layernorm"
_EACH = "model.layers.{layer}.self_attn.{which}_proj"
_MARGIN = 1e-6
_LEAST = 1e-150  # smaller norms have squares that float64 rounds to 0
_LARGEST = 1e100  # beyond every weight; its square is finite
_ROUNDING = 1e-9  # more than float64 takes, relatively, from a product of norms of 10^6 numbers


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


def _checked(
    read: Read, name: str, shape: tuple[int, ...], *, transposed: bool = False
) -> np.ndarray | None:
    """A tensor of finite numbers, of a shape whose -1 is any length; None where there is none."""
    values = read(name)
    if values is None:
        return None
    values = values.T if transposed else values
    fits = len(values.shape) == len(shape) and all(
        there == wanted or (wanted == -1 and there > 0)
        for there, wanted in zip(values.shape, shape, strict=True)
    )
    if not fits or not (np.abs(values) < _LARGEST).all():
        raise InputError(
            f"the tensor {name!r} has shape {values.shape} or is not finite; accepted: finite "
            f"numbers of shape {shape}"
        )
    return values


def projections(size: ModelSize, said: Mapping[str, Any], layer: int, read: Read) -> Projections:
    """The projections of a layer, counted from 0.

    Args:
        size: of the model.
        said: where they are, the table `projects` of a family.
        layer: which.
        read: reads a tensor.

    Raises:
        InputError: a tensor is missing, misshapen or not finite.
    """

    def found(name: str, shape: tuple[int, ...]) -> np.ndarray | None:
        turned = bool(said.get("transposed")) and len(shape) == 2
        return _checked(read, name.format(layer=layer), shape, transposed=turned)

    def linear(name: str, heads: int) -> Linear:
        rows = heads * size.head_size
        weight, bias = found(f"{name}.weight", (rows, size.width)), found(f"{name}.bias", (rows,))
        if weight is None:
            raise InputError(f"the tensor {name.format(layer=layer)!r} is missing")
        bias = np.zeros(rows) if bias is None else bias
        return weight.reshape(heads, -1, size.width), bias.reshape(heads, -1)

    norms, width, groups = said.get("norm", [_NORM]), (size.width,), size.key_heads
    gains = [(found(f"{norm}.weight", width), norm) for norm in norms]
    gain, norm = next((each for each in gains if each[0] is not None), (None, ""))
    if gain is None and norms:
        raise InputError(f"the tensor {norms[-1].format(layer=layer) + '.weight'!r} is missing")
    shift = found(f"{norm}.bias", width) if norm else None
    gain = np.ones(width) if gain is None else gain + said.get("offset", 0.0)
    each, parts = size.heads // groups, (size.heads, groups, groups)
    linears: list[Linear]
    if "joined" not in said:
        template = said.get("each", _EACH)
        names = (template.replace("{which}", which) for which in "qkv")
        linears = [linear(*part) for part in zip(names, parts, strict=True)]
    else:
        order = np.arange(sum(parts))
        if said.get("grouped"):  # each group holds its queries, then the key and value they share
            of = order.reshape(groups, -1)
            order = np.concatenate([of[:, :each].ravel(), of[:, each], of[:, each + 1]])
        if cores := said.get("cores"):  # each holds queries, values and keys of its heads
            if size.heads % cores:
                raise InputError(f"{size.heads} heads; accepted: a multiple of {cores}")
            order = order.reshape(cores, 3, -1)[:, [0, 2, 1]].swapaxes(0, 1).ravel()
        weight, bias = linear(said["joined"], sum(parts))
        at = np.split(order, np.cumsum(parts)[:-1])
        linears = [(weight[rows], bias[rows]) for rows in at]
    query = linears[0]
    key, value = ((w.repeat(each, 0), b.repeat(each, 0)) for w, b in linears[1:])
    shift = np.zeros(width) if shift is None else shift
    return Projections(gain, shift, bool(said.get("centred")), query, key, value)


def bounds_of(p: Projections, a: Attention) -> tuple[HeadBounds, ...]:
    """Bounds of each head of a layer that hold for every text."""
    root = math.sqrt(len(p.gain))

    def acting(part: Linear) -> np.ndarray:
        scaled = part[0] * p.gain
        return scaled - scaled.mean(-1, keepdims=True) if p.centred else scaled

    def constant(part: Linear) -> np.ndarray:
        return np.asarray(part[0] @ p.shift + part[1])

    def rounding(part: Linear) -> np.ndarray:
        return np.asarray(_MARGIN * _norm(part[0]) * np.linalg.norm(p.shift))

    q, k, v = map(acting, (p.query, p.key, p.value))
    size = root * _spectral(v)
    if a.turned is None and a.clip is None:
        const = constant(p.query)[..., None]
        also = _norm(np.swapaxes(k, -2, -1) @ const)
        also += _norm(k) * (_MARGIN * _norm(const) + rounding(p.query))
        logit = root**2 * _of_product(q, k) + root * also
    else:
        sides = [
            root * _spectral(x) + _norm(constant(part)[..., None]) + rounding(part)
            for x, part in ((q, p.query), (k, p.key), (v, p.value))
        ]
        if a.clip is not None:  # what keys share is clamped with them, so it is counted
            sides = [np.minimum(s, a.clip * math.sqrt(q.shape[-2])) for s in sides]
            size = sides[2]
        logit = max(1.0, a.factor) * sides[0] * sides[1]
    pairs = np.stack([a.scale * logit, size], -1) * (1 + _ROUNDING) + _LEAST**2
    return tuple(HeadBounds(*pair) for pair in pairs.tolist())


def latent_bounds(size: ModelSize, a: Attention, layer: int, read: Read) -> tuple[HeadBounds, ...]:
    """Bounds of each head of a layer with latent attention, counted from 0, for every text.

    Raises:
        InputError: a tensor is missing, misshapen or not finite.
    """
    assert a.turned is not None
    turning, own = a.turned[0], f"model.layers.{layer}.self_attn"
    still, rank = size.head_size - turning, size.cached - turning

    def of(name: str, *shape: int) -> np.ndarray:
        found = _checked(read, name, shape)
        if found is None:
            raise InputError(f"the tensor {name!r} is missing")
        return found

    gain = of(f"{_NORM.format(layer=layer)}.weight", size.width)
    middle = _checked(read, f"{own}.q_a_layernorm.weight", (-1,))
    source, name = (gain, "q_proj") if middle is None else (middle, "q_b_proj")
    query = of(f"{own}.{name}.weight", size.heads * size.head_size, len(source)) * source
    query = query.reshape(size.heads, size.head_size, -1)
    made = of(f"{own}.kv_b_proj.weight", -1, rank) * of(f"{own}.kv_a_layernorm.weight", rank)
    if len(made) % size.heads or len(made) // size.heads <= still:
        raise InputError(f"the tensor '{own}.kv_b_proj.weight' has {len(made)} rows")
    key, value = np.split(made.reshape(size.heads, -1, rank), [still], axis=1)
    other = f"{own}.kv_a_proj_with_mqa"
    shared = of(f"{other}.weight", rank + turning, size.width)[rank:] * gain
    bias = _checked(read, f"{other}.bias", (rank + turning,))
    moved = 0.0 if bias is None else float(np.linalg.norm(bias[rank:]))
    whole = math.sqrt(size.width) * _spectral(shared) + moved
    logit = math.sqrt(rank) * _of_product(query[:, :still], key)
    logit = math.sqrt(len(source)) * (logit + a.factor * _spectral(query[:, still:]) * whole)
    pairs = np.stack([a.scale * logit, math.sqrt(rank) * _spectral(value)], -1)
    return tuple(HeadBounds(*pair) for pair in (pairs * (1 + _ROUNDING)).tolist())


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


def by_gains(size: ModelSize, gains: Gains, factor: float, read: Read) -> float:
    """`|q.k| scale <= scale |q| |k|`, of queries and keys that a norm makes.

    Raises:
        InputError: a gain is missing, empty or not finite.
    """
    norms = []
    for name, heads in zip((gains.query, gains.key), gains.heads, strict=True):
        gain, shift = read(name), read(name.removesuffix("weight") + "bias")
        if gain is None or not gain.size or not np.isfinite(gain).all():
            raise InputError(f"the tensor {name!r} is missing, empty or not finite")
        moved = 0.0 if shift is None else float(np.linalg.norm(shift))  # RMSNorm has none
        most = float(np.abs(gain + gains.offset).max())
        norms.append(math.sqrt(size.head_size * heads) * most + moved)
    return gains.scale * max(1.0, factor) * norms[0] * norms[1] * (1 + _ROUNDING)


def weight_bounds(folder: Folder) -> list[tuple[HeadBounds, ...] | None]:
    """Bounds of every head that hold for every text, one tuple a layer.

    Args:
        folder: what a folder says of its model; its tensors are read.

    Returns:
        None for a layer without keys of its own, and where a family's projections are not known.

    Raises:
        InputError: a tensor is missing, misshapen or not finite; there are no weights.
    """
    read, size, said = reader(folder.path), folder.shape, folder.family.get("projects")
    if said is not None and any(
        folder.values.get(key, value) != value for key, value in said.get("when", {}).items()
    ):
        said = None

    def of(layer: int, a: Attention) -> tuple[HeadBounds, ...] | None:
        if a.held and a.bound is not None and a.clip is None:  # of a norm after the projections
            return (HeadBounds(a.bound[0], math.inf),) * size.heads
        if not a.held or (said is None and a.gains is None):
            return None
        if a.gains is not None:
            bound = by_gains(size, a.gains, a.factor, read)
            return (HeadBounds(bound, math.inf),) * size.heads
        if "latent" in folder.family:
            return latent_bounds(size, a, layer, read)
        return bounds_of(projections(size, said or {}, layer, read), a)

    try:
        return [of(layer, a) for layer, a in enumerate(folder.attention)]
    except InputError as error:
        raise InputError(f"model {folder.name!r}: {error}") from None
