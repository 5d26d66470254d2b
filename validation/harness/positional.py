"""The torch views of a positional encoding: additive bias, rotation, absolute vectors.

A bias with fixed parameters is the float64 table of its formula, rounded once to the type of the
model. A bias with learned parameters is the same formula evaluated on tensors, so that gradients
reach the parameters: one set a head, shared by all layers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import sympy
import torch
from torch import Tensor, nn

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import Encoding, Parameter
from farfield.theory.evaluation.arrays import Arrays, Lacking
from farfield.theory.evaluation.fold import value
from farfield.theory.formula.parameters import interval
from farfield.theory.functions.nodes import n
from farfield.validation.harness.trainable import require_values

_MARGIN = 0.01  # how far a learned parameter keeps from an open end of its domain, as in KERPLE


class FixedBias(nn.Module):
    """The bias of an encoding whose parameters have values: its float64 table."""

    def __init__(self, encoding: Encoding) -> None:
        super().__init__()
        self.encoding = encoding
        self.known = np.empty((encoding.num_heads, 0))

    @torch.compiler.disable
    def forward(self, length: int) -> Tensor:
        """`p(n)` for n = 0 .. length - 1 in float64, shape (heads or 1, length)."""
        if self.known.shape[1] < length:
            table = self.encoding.bias(np.arange(length))
            bad = np.isnan(table) | (table == np.inf)
            bad[:, 0] |= ~np.isfinite(table[:, 0])
            if bad.any():
                unreal = np.isnan(table)
                head, at = np.argwhere(unreal if unreal.any() else bad)[0]
                value = "no real number" if unreal.any() else table[head, at]
                raise InputError(
                    f"the bias {self.encoding.head(head + 1)} is {value} at distance {at}; a model "
                    "takes finite values, and -oo from distance 1"
                )
            self.known = table
        return torch.from_numpy(self.known[:, :length])


class LearnedBias(nn.Module):
    """The bias of an encoding with learned parameters: its formula on tensors.

    Each free parameter is a tensor of shape (heads,), drawn uniformly from the interval of its
    reference initialisation; `project` keeps it within its clamps and its domain.
    """

    def __init__(self, encoding: Encoding, heads: int) -> None:
        super().__init__()
        require_values(encoding)
        every = range(1, heads + 1)
        self.formulas = [encoding.head(h if encoding.num_heads > 1 else 1) for h in every]
        self.bounds = {p.name: _bounds(p) for p in encoding.free}
        self.values = nn.ParameterDict()
        for parameter in encoding.free:
            drawn = torch.empty(heads).uniform_(*parameter.init)
            if self.bounds[parameter.name][1] <= 0:
                drawn = -drawn
            self.values[parameter.name] = nn.Parameter(drawn, requires_grad=parameter.learned)
        self.symbols = {p.name: p.symbol for p in encoding.free}
        self.project()

    @torch.no_grad()
    def project(self) -> None:
        """Move each learned value to the nearest one allowed; training does so at every step."""
        for name, bound in self.bounds.items():
            if self.values[name].requires_grad:
                self.values[name].clamp_(*bound)

    def forward(self, length: int) -> Tensor:
        """`p(n)` for n = 0 .. length - 1 in the type of the parameters, shape (heads, length)."""
        any_value = next(iter(self.values.values()))
        distance = torch.arange(length, dtype=any_value.dtype, device=any_value.device)
        if len(set(self.formulas)) == 1:  # one pass serves all heads
            rows = _rows(self.formulas[0], self._at(slice(None), distance), distance)
            return rows.expand(len(self.formulas), length)
        each = [
            _rows(formula, self._at(slice(head, head + 1), distance), distance)
            for head, formula in enumerate(self.formulas)
        ]
        return torch.cat(each)

    def _at(self, heads: slice, distance: Tensor) -> dict[sympy.Symbol, Tensor]:
        values = {symbol: self.values[name][heads, None] for name, symbol in self.symbols.items()}
        return {**values, n: distance[None]}


def additive_bias(encoding: Encoding, heads: int) -> FixedBias | LearnedBias:
    """The module that gives the bias of an additive encoding in a model with this many heads."""
    return LearnedBias(encoding, heads) if encoding.free else FixedBias(encoding)


def rows_of(table: Tensor, layer: int, heads: int) -> Tensor:
    """The rows of a table of biases that a layer has: all, or its own where each has its own.

    Args:
        table: of 1, `heads` or `layers * heads` rows, a column a distance.
        layer: counted from 0.
        heads: of a layer.

    >>> rows_of(torch.arange(4.0)[:, None], 1, 2).tolist()
    [[2.0], [3.0]]
    """
    return table if len(table) <= heads else table[layer * heads : (layer + 1) * heads]


def _bounds(parameter: Parameter) -> tuple[float, float]:
    """The narrower of clamp and domain, kept off the open ends of the domain."""
    low, high, closed_low, closed_high = interval(parameter.domain)
    lows = [float(low) + (0 if closed_low else _MARGIN)]
    highs = [float(high) - (0 if closed_high else _MARGIN)]
    if parameter.clamp[0] is not None:
        lows.append(float(parameter.clamp[0]))
    if parameter.clamp[1] is not None:
        highs.append(float(parameter.clamp[1]))
    return max(lows), min(highs)


# -- a SymPy formula on tensors -------------------------------------------------------------------


class _Torch:
    """The names of the array API standard in torch, and its special functions."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def minimum(self, a: Any, b: Any) -> Tensor:
        return torch.minimum(*_tensors(a, b))

    def maximum(self, a: Any, b: Any) -> Tensor:
        return torch.maximum(*_tensors(a, b))

    def pow(self, base: Any, exponent: Any) -> Any:
        return base**exponent

    def special(self, name: str) -> Callable[..., Any]:
        found = getattr(torch.special, name, None)
        if found is None:
            raise Lacking
        return found


def _tensors(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    like = a if isinstance(a, Tensor) else b
    return torch.as_tensor(a, dtype=like.dtype), torch.as_tensor(b, dtype=like.dtype)


class Tensors(Arrays):
    """Tensors, differentiable in the values of the symbols."""

    def constant(self, e: sympy.Expr) -> float:
        return float(e)

    def look_up(self, at: Any, *entries: Any) -> Any:
        like = next(e for e in entries if isinstance(e, Tensor))
        columns = [e if isinstance(e, Tensor) else like.new_full((1, 1), e) for e in entries]
        table = torch.cat(torch.broadcast_tensors(*columns), -1)
        return table[..., at[0].long().clamp(max=len(entries) - 1)]

    def lacking(self, name: str, why: str) -> Exception:
        return InputError(
            f"{name} has no differentiable form here; accepted with learned parameters: Piecewise, "
            "Min, Max, and functions that torch knows, such as exp, log and erf"
        )


_TENSORS = Tensors(_Torch())


def evaluate(expression: Any, values: Mapping[sympy.Symbol, Tensor]) -> Any:
    """A SymPy expression on tensors, differentiable in them.

    Args:
        expression: built from functions that torch knows, `Piecewise` and `Lookup`.
        values: a tensor for each symbol; they broadcast. A `Lookup` needs its distance to have
            one row and its values one column.

    Returns:
        A tensor, or a float where no symbol occurs.

    Raises:
        InputError: a function has no differentiable form here.

    >>> evaluate(-2 * sympy.log(1 + n), {n: torch.tensor([0.0, 1.0])})
    tensor([-0.0000, -1.3863])
    """
    return value(expression, _TENSORS, dict(values))


def _rows(formula: Any, values: Mapping[sympy.Symbol, Tensor], distance: Tensor) -> Tensor:
    value = torch.as_tensor(evaluate(formula, values), dtype=distance.dtype)
    return (value if value.ndim else value.reshape(1, 1)).expand(-1, len(distance))


# -- rotations and absolute vectors ---------------------------------------------------------------


class Rotation:
    """Rotation of queries and keys by angles that grow with the position; with decay, xPos.

    Pair `i` of `size/2` turns by `theta_i = 10000^(-2i/size)` a token; with decay, queries are
    scaled by `zeta_i^(m/512)` and keys by its inverse, `zeta_i = (2i/size + 0.4) / 1.4`
    [S, Algorithm 1]. Positions are centred, which keeps the scales in range and changes no score.
    """

    def __init__(self, size: int, *, decay: bool) -> None:
        pair = torch.arange(size // 2, dtype=torch.float64)
        self.theta = 10000.0 ** (-2 * pair / size)
        self.log_zeta = ((2 * pair / size + 0.4) / 1.4).log() if decay else None
        self.known: dict[tuple[int, torch.dtype, torch.device], tuple[Tensor, ...]] = {}

    @torch.compiler.disable
    def _turns(self, length: int, like: Tensor) -> tuple[Tensor, ...]:
        known = (length, like.dtype, like.device)
        if known in self.known:
            return self.known[known]
        position = torch.arange(length, dtype=torch.float64)[:, None] - length // 2
        angle = position * self.theta
        turns = (angle.cos(), angle.sin())
        if self.log_zeta is not None:
            scale = (position / 512 * self.log_zeta).exp()
            turns = tuple(t * s for s in (scale, 1 / scale) for t in turns)
        self.known[known] = tuple(t.to(like) for t in turns)
        return self.known[known]

    def __call__(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys, shape (batch, heads, length, size), at their positions.

        Fewer queries than keys are the last ones, as with a cache of keys.
        """
        turns, new = self._turns(key.shape[-2], key), query.shape[-2]
        return _turned(query, *(turn[-new:] for turn in turns[:2])), _turned(key, *turns[-2:])


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


@torch.compiler.disable
def sinusoid(length: int, width: int, rms: float, first: int = 0) -> Tensor:
    """Absolute sinusoidal vectors of a given root mean square, float64, shape (length, width).

    They are those of the positions from `first`.

    >>> sinusoid(3, 4, 0.5)[0]
    tensor([0.0000, 0.0000, 0.7071, 0.7071], dtype=torch.float64)
    """
    pair = torch.arange(width // 2, dtype=torch.float64)
    position = torch.arange(first, first + length, dtype=torch.float64)[:, None]
    angle = position * 10000.0 ** (-2 * pair / width)
    return torch.cat([angle.sin(), angle.cos()], -1) * rms * math.sqrt(2)
