"""The dtype horizon: from which distance on a bias rounds to nothing in a floating-point type.

The dtype horizon is the least n_0 such that `b_n / b_0` rounds to 0 for all n >= n_0 (ours):
round to nearest, ties to even. With subnormals kept, x rounds to 0 iff `x <= s/2`, `s` the
smallest subnormal. With `flush_to_zero`, also what rounds to a subnormal becomes 0: `x` stays
iff it is at least the smallest normal number less `s/2`.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass

import sympy
from flint import arb, fmpq
from sympy import Expr, S

from farfield.numerics.levels import BeyondCounting, SuperlevelSet
from farfield.numerics.questions import (
    BUDGET_S,
    Cases,
    Fields,
    HeadAnswer,
    decisive,
    per_head,
    resolve,
)
from farfield.numerics.search import Unrecognised, decide
from farfield.numerics.summation.kernel import decided_sign
from farfield.numerics.summation.series import Series, series
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.answers.answer import Code, Reason, Status
from farfield.theory.answers.names import one_of
from farfield.theory.answers.number import tokens as tokens_text
from farfield.theory.answers.number import without_noun
from farfield.theory.functions.balls import to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.values import compile_ball

FORMATS = {"fp16": (11, -14), "bf16": (8, -126), "fp32": (24, -126), "fp64": (53, -1022)}
"""Bits of the significand, exponent of the smallest normal number."""

_NAMES = {
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float": "fp32",
    "float64": "fp64",
    "double": "fp64",
}
MAX_BALLS = 20_000  # balls of the bias that decide one horizon
MAX_BITS = 14_000  # of a horizon that is written as an integer


@dataclass(frozen=True, repr=False)
class Horizon(HeadAnswer):
    """The dtype horizon of a bias.

    Fields:
        formula: the bias, None where several heads are aggregated.
        dtype, flush_to_zero: the floating-point type and what becomes of subnormals.
        tokens: the least distance from which on b_n/b_0 rounds to 0; the farthest head's; infinite
            if it never does; None if it is not known.
        heads: one answer a head where there are several; the farthest speaks for all.
    """

    VALUE = "tokens"
    OUTSIDE = "there are no weights by distance: {why}."

    dtype: str
    flush_to_zero: bool
    tokens: float | None = None

    def head_text(self) -> str:
        return without_noun(tokens_text(self.tokens))

    def _cases(self) -> Cases:
        return (
            (
                self.status is Status.INFINITE,
                "the weights never round to 0 for good in {kind}{worst}.",
            ),
            (
                self.status is Status.UNKNOWN,
                "it is not known from where on the weights round to 0 in {kind}.",
            ),
            (True, "from distance {tokens} on every weight rounds to 0 in {kind}{worst}."),
        )

    def _values(self) -> dict[str, object]:
        return {
            "kind": self.dtype + (" with subnormals flushed" if self.flush_to_zero else ""),
            "worst": self.among("the farthest head"),
            "tokens": str(self.tokens),
        }


def dtype_horizon(
    f: object,
    dtype: object,
    *,
    flush_to_zero: bool = False,
    budget_s: float = BUDGET_S,
    **values: object,
) -> Horizon:
    """The least n_0 such that exp(p(n) - p(0)) rounds to 0 in `dtype` for all n >= n_0.

    Args:
        f: a formula in `n`, a SymPy expression, a name of the catalogue or an `Encoding`.
        dtype: fp16, bf16, fp32 or fp64 (or float16, bfloat16, ..., or a torch or NumPy dtype).
        flush_to_zero: whether subnormal numbers become 0.
        budget_s: seconds; whatever is open after them stays unknown.
        **values: parameters and options, as `farfield.theory.encodings.encoding` takes them.

    Raises:
        InputError: a dtype that is not known; free parameters; terms that are undefined.

    >>> [dtype_horizon("-n/2", t).tokens for t in ("fp16", "bf16", "fp32")]
    [35, 186, 208]
    """
    kind = getattr(dtype, "__name__", str(dtype)).removeprefix("torch.").lower()
    kind = one_of(_NAMES.get(kind, kind), "dtype", FORMATS)
    return per_head(
        resolve(f, values),
        Horizon(None, kind, flush_to_zero),
        lambda bias: _last(bias, *threshold(kind, flush_to_zero)),
        decisive(lambda head: head.tokens),
        outside=lambda given: None if given.biases else given.out_of_scope,
        budget_s=budget_s,
    )


def threshold(kind: str, flush_to_zero: bool) -> tuple[fmpq, bool]:
    """The positive number up to which everything rounds to 0, and whether it does so itself."""
    bits, exponent = FORMATS[kind]
    half = fmpq(2) ** (exponent - bits)
    return (fmpq(2) ** exponent - half, False) if flush_to_zero else (half, True)


def _last(bias: Expr, limit: fmpq, closed: bool) -> Fields:
    """The last n whose weight does not round to 0; infinite where there is no last."""
    row, start = series(bias), compile_ball(bias)
    last = [s for s in row.last if s.bias is not S.NegativeInfinity]
    for s in last:
        if s.kernel is None and s.falls_from() is None:
            raise Unreachable(f"not proved monotone for all large n: {s.gap}")
        why = "the bias increases" if s.kernel is not None and s.kernel.direction > 0 else ""
        at = s.first
        if not s.bias.has(n) and not _vanishes(row, at, limit, closed):
            why = "the bias is constant at all large distances"
        if why:
            reason = Reason(
                Code.NEVER, why + f" {at % s.period} modulo {s.period}" * (s.period > 1)
            )
            return {"tokens": math.inf, "status": Status.INFINITE, "reason": reason}

    kept = tuple(s for s in row.stretches if s.end is not None or s.bias.has(n))
    above = SuperlevelSet(
        Series(bias, kept),
        lambda: to_arb(start({n: fmpq(0)})) + arb(limit).log(),
        lambda run: not _vanishes(row, run[0], limit, closed),
        MAX_BITS,
        MAX_BALLS,
    )
    try:
        return {"tokens": above.end()}
    except BeyondCounting:
        raise Unreachable(f"the horizon has more than {MAX_BITS} bits") from None


def _vanishes(row: Series, j: int, limit: fmpq, closed: bool) -> bool:
    """Whether exp(p(j) - p(0)) rounds to 0, proved by balls."""
    (bias, k), (origin, first) = row.at(j), row.at(0)
    at, start = compile_ball(bias), compile_ball(origin)

    def below() -> bool | None:
        gap = to_arb(at({n: fmpq(k)})) - to_arb(start({n: fmpq(first)})) - arb(limit).log()
        return True if gap < 0 else False if gap > 0 else None

    vanishes = decide(below, (128, 512, 2048, 4 * j.bit_length() + 2048))
    if vanishes is not None:
        return vanishes
    if j.bit_length() <= 256:
        goal = sympy.log(sympy.Rational(int(limit.p), int(limit.q)))
        with suppress(Unrecognised):
            side = decided_sign(bias.subs(n, k) - origin.subs(n, first) - goal)
            return side < 0 or (side == 0 and closed)
    raise Unreachable(f"b_{_short(j)}/b_0 agrees with the rounding threshold to all digits tried")


def _short(j: int) -> str:
    """A number as it is said; beyond 10^30 by its power of 2."""
    return str(j) if j < 10**30 else f"(about 2^{j.bit_length()})"
