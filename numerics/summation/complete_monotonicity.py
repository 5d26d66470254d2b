"""Functions with a completely monotone derivative: exp(-g) of one is completely monotone."""

from __future__ import annotations

import sympy
from sympy import Expr

from farfield.numerics.summation.kernel import decided_sign
from farfield.theory.algebra.door import check_time
from farfield.theory.functions.nodes import n


def has_monotone_slope(g: Expr, start: int) -> bool:
    """Whether g is proved to have a completely monotone derivative on [start, oo), by the rules
    n;  g + h;  c g;  log g if g(start) > 0;  g^a, 0 < a <= 1, and -g^a, a < 0, if g(start) > 0.
    """
    check_time()
    if not g.has(n) or g == n:
        return True
    if g.is_Add:
        return all(has_monotone_slope(a, start) for a in g.args)
    if g.is_Mul:
        constant, rest = g.as_independent(n)
        if rest.is_Mul:
            return False
        if rest.is_Pow and not rest.exp.has(n) and decided_sign(rest.exp) < 0:
            return decided_sign(constant) < 0 and _rises_from_positive(rest.base, start)
        return decided_sign(constant) > 0 and has_monotone_slope(rest, start)
    if isinstance(g, sympy.log):
        return _rises_from_positive(g.args[0], start)
    if g.is_Pow and not g.exp.has(n) and decided_sign(g.exp) > 0 and decided_sign(1 - g.exp) >= 0:
        return _rises_from_positive(g.base, start)
    return False


def _rises_from_positive(g: Expr, start: int) -> bool:
    return decided_sign(g.subs(n, start)) > 0 and has_monotone_slope(g, start)
