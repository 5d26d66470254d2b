"""A SymPy formula on tensors, differentiable in its parameters.

The rules of the functions are those of NumPy's arrays. A bias with learned parameters is its
formula in float64 at every distance, rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy
import torch
from torch import Tensor

from farfield.theory.answers.errors import InputError
from farfield.theory.evaluation.fold import value
from farfield.theory.evaluation.vectorised import Arrays, Lacking
from farfield.theory.functions.nodes import n


class _Torch:
    """The names of the array API standard in torch, and its special functions."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def minimum(self, a: Any, b: Any) -> Tensor:
        return torch.minimum(*_tensors(a, b))

    def maximum(self, a: Any, b: Any) -> Tensor:
        return torch.maximum(*_tensors(a, b))

    def pow(self, base: Any, exponent: Any) -> Any:
        """A power; one that is steep at base 0, where the distance is 0, has no slope there."""
        fixed = not isinstance(exponent, Tensor)
        if not isinstance(base, Tensor) or (fixed and (exponent >= 1 or exponent % 1 == 0)):
            return base**exponent
        zero, plain = base == 0, exponent if fixed else exponent.detach()
        return torch.where(zero, base.detach() ** plain, torch.where(zero, 1.0, base) ** exponent)

    def log(self, x: Any) -> Tensor:
        """A logarithm without a slope at 0, where it is -inf."""
        return torch.where(x == 0, -math.inf, torch.where(x == 0, 1.0, x).log())

    def special(self, name: str) -> Callable[..., Any]:
        function = getattr(torch.special, name, None)
        if function is None:
            raise Lacking
        return function


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

    The tensors of the symbols broadcast. A `Lookup` needs its distance to have one row and its
    values one column. The result is a float where no symbol occurs.

    Raises:
        InputError: a function has no differentiable form here.

    >>> evaluate(-2 * sympy.log(1 + n), {n: torch.tensor([0.0, 1.0])})
    tensor([-0.0000, -1.3863])
    """
    return value(expression, _TENSORS, dict(values))


def learned_rows(
    formulas: Sequence[Any], values: Mapping[sympy.Symbol, Tensor], length: int
) -> Tensor:
    """`p(n)` for n = 0 .. length - 1, a formula a head, shape (heads, length), computed in float64.

    Gradients reach the values, a tensor of shape (heads,) for each symbol.
    """
    like = next(iter(values.values()))
    exact = {symbol: value.double() for symbol, value in values.items()}
    distance = torch.arange(length, dtype=torch.float64, device=like.device)
    alike = len(set(formulas)) == 1  # one pass serves all heads
    rows = []
    for heads in [slice(None)] if alike else [slice(h, h + 1) for h in range(len(formulas))]:
        at = {symbol: value[heads, None] for symbol, value in exact.items()}
        bias = evaluate(formulas[heads][0], {**at, n: distance[None]})
        row = torch.as_tensor(bias, dtype=distance.dtype, device=distance.device)
        rows.append((row if row.ndim else row.reshape(1, 1)).expand(-1, length))
    return torch.cat(rows).expand(len(formulas), length).to(like.dtype)
