r"""Which of two exp-series has the lighter tail, decided from the transseries of their biases.

[Q, Theorem 0.5]: if a_t/A <= b_t/B for all large t, then TRF_a(eps) <= TRF_b(eps) for all small
eps; `b` must have infinitely many positive terms. With x = lim (p_a - p_b):

* x = -oo: a is lighter; x = +oo: b is;
* x finite: a_t/A over b_t/B tends to e^x B_b/B_a, so the sums decide;
* no limit: this test says nothing.
"""

from __future__ import annotations

from sympy import Expr, S

from farfield.theory.algebra import door
from farfield.theory.algebra.exceptions import NotReal, OrderTooLow, SignNeeded, Undecided
from farfield.theory.coefficients.exact import oscillates, to_sympy
from farfield.theory.coefficients.signs import Context
from farfield.theory.transseries.arithmetic import size
from farfield.theory.transseries.expansion import eventual, transseries

ORDERS = (4, 8, 16)


def limit_of_difference(p: Expr, q: Expr) -> Expr | None:
    """lim (p - q) as n -> oo, in [-oo, oo]; None where there is none or it is not decided.

    Raises:
        OutOfTime: the time of the question is spent.

    >>> from farfield.theory.formula.grammar import read
    >>> limit_of_difference(read("-2*log(1+n)"), read("-2*log(3+n)"))
    0
    >>> limit_of_difference(read("-n/256"), read("-2*log(1+n)"))
    -oo
    """
    for order in ORDERS:
        context = Context(order=order)
        try:
            return _limit(eventual(p, context), eventual(q, context), context)
        except OrderTooLow:
            continue
        except (Undecided, NotReal, SignNeeded):
            return None
    return None


def _limit(p: Expr, q: Expr, context: Context) -> Expr | None:
    """The limit of p - q, infinite with its sign, or None where it oscillates."""
    if p is S.NegativeInfinity or q is S.NegativeInfinity:
        return None if p == q else (p if p is S.NegativeInfinity else S.Infinity)
    g = transseries(door.expand(p - q), context)
    lead = g.leading()
    if lead is None:
        return S.Zero
    m, c = lead
    order = size(m, context)
    if order < 0:
        return S.Zero
    if oscillates(c):
        return None
    value = to_sympy(c)
    return value if order == 0 else S.Infinity * context.sign(c)
