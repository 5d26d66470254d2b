"""A comparator of growth that shares nothing with the engine's.

A product of powers of n, log n, log log n, ... is ordered by its first exponent that is not 0. One
with a factor exp(...) is ordered by the limit of its logarithm, a sum of smaller products. No
expansion is made and nothing is sorted, so that a slip of the engine's comparison shows.
"""

import sympy
from sympy import Expr, S

from farfield.theory.functions.nodes import n
from proof_checker.numbers import Numbers, Open, ProofError


def iterated(k: int) -> Expr:
    """The iterated logarithm L_k of n, with L_0 = n."""
    e: Expr = n
    for _ in range(k):
        e = sympy.log(e)
    return e


def order(term: Expr, scale: Expr, numbers: Numbers) -> tuple[int, Expr]:
    """1, 0, -1 as |term|/scale tends to oo, a constant, 0; and that constant.

    Both are constants times products of powers of n, iterated logarithms and exponentials.
    """
    factor, rest = sympy.factor_terms(term / scale).as_independent(n, as_Add=False)
    rest = sympy.powsimp(rest)
    if not rest.has(n):
        return 0, factor * rest
    powers = rest.as_powers_dict()
    if any(base.has(n) and base != iterated(_depth(base)) for base in powers):
        raise Open(f"the growth of {rest}")
    if all(base.has(n) and not power.has(n) for base, power in powers.items()):
        for base in sorted(powers, key=_depth):
            ball = numbers.ball(powers[base], 1)
            if ball is not None and not ball.contains(0):
                return (1, S.Infinity) if ball > 0 else (-1, S.Zero)
        raise Open(f"the growth of {rest}")
    logarithm = sympy.Add(*(power * sympy.log(base) for base, power in powers.items()))
    size = limit(logarithm, S.One, numbers)
    if size.is_finite:
        return 0, factor * sympy.exp(size)
    return (1, S.Infinity) if size is S.Infinity else (-1, S.Zero)


def _depth(e: Expr) -> int:
    """How many logarithms enclose the argument."""
    return 1 + _depth(e.args[0]) if isinstance(e, sympy.log) else 0


def limit(rest: Expr, scale: Expr, numbers: Numbers) -> Expr:
    """lim rest/scale, from the growth of the single terms of rest."""
    total = largest = S.Zero
    for term in filter(bool, sympy.Add.make_args(sympy.expand(rest))):
        size, constant = order(term, scale, numbers)
        total += constant if size == 0 else 0
        if size > 0:
            beside = order(term, largest, numbers)[0] if largest else 1
            largest = (largest if beside <= 0 else S.Zero) + (term if beside >= 0 else S.Zero)
    if not largest:
        return total
    factor, _ = sympy.factor_terms(largest).as_independent(n, as_Add=False)
    ball = numbers.ball(factor, 1)
    if ball is None or ball.contains(0):
        raise ProofError("the sign of a leading term is open")
    return S.Infinity if ball > 0 else S.NegativeInfinity
