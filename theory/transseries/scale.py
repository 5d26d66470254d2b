r"""The logarithmic scale 1, log n, log log n: the Bertrand test of a transseries, rung by rung.

For `rho_0 = -p`, `l_1 = log n`, `l_2 = log log n`, ...: rung k looks at

    c = lim rho_{k-1} / l_k   in [-oo, +oo].

* c > 1: `b_n <= 1/(n l_1 ... l_{k-2} l_{k-1}^{c'})`, 1 < c' < c: converges.
* c < 1: the same series with c' between c and 1 lies below: diverges.
* c = 1: `rho_k = rho_{k-1} - l_k`, next rung.

The transseries gives each c exactly; a remainder below l_k leaves c = 0. For exp-log p there are
at most m + 1 rungs, m the number of nested logarithms in p.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import starmap

import sympy
from flint import fmpq
from sympy import Expr, S

from farfield.theory.algebra.call_tree import traced
from farfield.theory.algebra.exceptions import OrderTooLow, Undecided
from farfield.theory.coefficients.exact import ONE, Coefficient, plus, to_sympy
from farfield.theory.functions.nodes import n
from farfield.theory.proofs import Decay, Decision, Step
from farfield.theory.transseries.arithmetic import (
    Monomial,
    Transseries,
    compare,
    drop_lead,
    iterated_log,
)

MAX_RUNGS = 40


@lru_cache(maxsize=64)
def log_expression(k: int) -> Expr:
    """l_k as an expression; l_0 is n."""
    e: Expr = n
    for _ in range(k):
        e = sympy.log(e)
    return e


@lru_cache(maxsize=64)
def comparison(k: int) -> Expr:
    """The comparison series of rung k: 1/(n l_1 ... l_{k-2} l_{k-1}^c)."""
    c = sympy.Symbol("c", positive=True)
    product = sympy.Mul(*(log_expression(j) for j in range(k - 1)))
    return 1 / (product * log_expression(k - 1) ** c)


def term_expression(m: Monomial, c: Coefficient = ONE) -> Expr:
    """A monomial with its coefficient as an expression."""
    factors = [log_expression(i) ** to_sympy(a) for i, a in enumerate(m.chain) if a]
    if m.exponent:
        factors.append(sympy.exp(sympy.Add(*starmap(term_expression, m.exponent))))
    return sympy.Mul(to_sympy(c), *factors)


class StepValues(Mapping[str, Expr]):
    """A transseries as a step has it: its terms, and what the `error` is O() of (0: exact). They
    are expressions once somebody looks at them: a verdict alone needs none."""

    def __init__(self, name: str, g: Transseries) -> None:
        self._given = name, g.terms, g.remainder

    @cached_property
    def _values(self) -> dict[str, Expr]:
        name, terms, remainder = self._given
        error = S.Zero if remainder is None else term_expression(remainder)
        return {name: sympy.Add(*starmap(term_expression, terms)), "error": error}

    def __getitem__(self, name: str) -> Expr:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@traced(1, lambda decision: decision.condition)
def bertrand_test(rho: Transseries) -> Decision:
    """Decide sum exp(-rho) for a rho without oscillating coefficients."""
    return bertrand_test_and_rest(rho)[0]


def bertrand_test_and_rest(rho: Transseries) -> tuple[Decision, Transseries]:
    """The same with the rest of rho: without the logarithms of the rungs, and without leading
    terms that are 0."""
    steps = [Step("expansion", StepValues("rho", rho))]
    rest, limits = rho, list[Expr]()
    for k in range(1, MAX_RUNGS + 1):
        rest, limit, strict = _limit(rest, iterated_log(k))
        values = {"k": k, "k_before": k - 1, "scale": log_expression(k), "limit": limit}
        steps.append(Step("rung", values))
        limits.append(limit)
        if strict:
            name = "converges" if strict > 0 else "diverges"
            steps.append(Step(name, {"comparison": comparison(k), "k": k}))
            return Decision(strict > 0, tuple(steps), decay=Decay(tuple(limits))), rest
        steps.append(Step("tie", values))
        rest = drop_lead(rest)
    raise Undecided("the ladder did not end")


@traced(2, lambda rung: rung[1])
def _limit(rho: Transseries, scale: Monomial) -> tuple[Transseries, Expr, int]:
    """rho without leading terms that are proved to be 0, lim rho/scale, the sign of that limit
    minus 1."""
    for k, (m, c) in enumerate(rho.terms):
        order = compare(m, scale, rho.context)
        rest = rho.of(rho.terms[k:], rho.remainder)
        if order < 0:
            return rest, S.Zero, -1
        if s := rho.context.sign(c):
            if order > 0:
                return rest, S.Infinity * s, s
            return rest, to_sympy(c), rho.context.sign(plus(c, fmpq(-1)))
    if rho.remainder is None or compare(rho.remainder, scale, rho.context) < 0:
        return rho.of([], rho.remainder), S.Zero, -1
    raise OrderTooLow
