r"""Which of two exp-series has the lighter tail, decided from the transseries of their biases.

[Q, Theorem 0.5]: if a_t/A <= b_t/B for all large t, then TRF_a(eps) <= TRF_b(eps) for all small
eps; `b` must have infinitely many positive terms. With x = lim (p_a - p_b):

* x = -oo: a is lighter; x = +oo: b is;
* x finite: a_t/A over b_t/B tends to e^x B_b/B_a, so the sums decide;
* no limit: this test says nothing.
"""

from __future__ import annotations

import time

from sympy import Expr, S

from farfield.theory.algebra import door
from farfield.theory.algebra.budget import until
from farfield.theory.algebra.exceptions import (
    NotReal,
    OrderTooLow,
    SignNeeded,
    Undecided,
    Unreachable,
)
from farfield.theory.coefficients.exact import Context, deciding, oscillates, to_sympy
from farfield.theory.coefficients.signs import sign
from farfield.theory.transseries.arithmetic import size
from farfield.theory.transseries.expansion import eventual, transseries

ORDERS = (4, 8, 16)
BUDGET = 5.0


def limit_of_difference(p: Expr, q: Expr) -> Expr | None:
    """lim (p - q) as n -> oo, in [-oo, oo]; None where there is none or it is not decided.

    >>> from farfield.theory.formula.grammar import read
    >>> limit_of_difference(read("-2*log(1+n)"), read("-2*log(3+n)"))
    0
    >>> limit_of_difference(read("-n/256"), read("-2*log(1+n)"))
    -oo
    """
    for order in ORDERS:
        with until(time.monotonic() + BUDGET), deciding(Context(order=order)):
            try:
                return _limit(eventual(p), eventual(q))
            except OrderTooLow:
                continue
            except (Undecided, Unreachable, NotReal, SignNeeded):
                return None
    return None


def _limit(p: Expr, q: Expr) -> Expr | None:
    """The limit of p - q, infinite with its sign, or None where it oscillates."""
    if p is S.NegativeInfinity or q is S.NegativeInfinity:
        return None if p == q else (p if p is S.NegativeInfinity else S.Infinity)
    g = transseries(door.expand(p - q))
    lead = g.leading()
    if lead is None:
        return S.Zero
    m, c = lead
    order = size(m)
    if order < 0:
        return S.Zero
    if oscillates(c):
        return None
    value = to_sympy(c)
    return value if order == 0 else S.Infinity * sign(c)
