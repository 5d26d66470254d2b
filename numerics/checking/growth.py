"""A comparator of growth that shares nothing with the engine's.

A product of powers of n, log n, log log n, ... is ordered by its first exponent that is not 0.
Where it has a factor exp(...) its logarithm is evaluated with n a tower, exp(exp(...exp(x))), by
balls so precise that nothing is rounded away. No expansion is made and nothing is sorted, so that
a slip of the engine's comparison shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy
from flint import arb
from sympy import Expr, S

from farfield.numerics.checking.numbers import BITS, Numbers
from farfield.numerics.checking.stops import Open, ProofError
from farfield.theory.functions.balls import precision, to_arb
from farfield.theory.functions.nodes import n


def iterated(k: int) -> Expr:
    """The iterated logarithm L_k of n, with L_0 = n."""
    e: Expr = n
    for _ in range(k):
        e = sympy.log(e)
    return e


def order(term: Expr, scale: Expr, numbers: Numbers) -> tuple[int, Expr]:
    """1, 0, -1 as |term|/scale tends to oo, a constant, 0; and that constant.

    Both are constants times products of powers of n, iterated logarithms and exponentials; the
    quotient is compared with 1 by its logarithm at two towers.
    """
    factor, rest = sympy.factor_terms(term / scale).as_independent(n, as_Add=False)
    rest = sympy.powsimp(rest)
    if not rest.has(n):
        return 0, factor * rest
    exponents: dict[int, Expr] = {}
    for f in sympy.Mul.make_args(rest):
        base, power = f.as_base_exp()
        level = _depth(base)
        if base != iterated(level) or power.has(n):
            break
        exponents[level] = exponents.get(level, S.Zero) + power
    else:
        for level in sorted(exponents):
            ball = numbers.ball(exponents[level], 1)
            if ball is not None and not ball.contains(0):
                return (1, S.Infinity) if ball > 0 else (-1, S.Zero)
        raise Open(f"the growth of {rest}")
    logs = []
    for x in (30, 60):
        ball = _log_at_tower(rest, x, numbers)
        if ball is None:
            raise Open(f"the growth of {rest}")
        logs.append(ball)
    with precision(BITS):
        if logs[0] > 0 and logs[1] > logs[0]:
            return 1, S.Infinity
        if logs[0] < 0 and logs[1] < logs[0]:
            return -1, S.Zero
    raise Open(f"the growth of {rest}")


def _log_at_tower(product: Expr, x: int, numbers: Numbers) -> arb | None:
    """The logarithm of a product where the deepest logarithm in it is x."""
    total: Any = arb(0)
    depth = max((_depth(a) for a in product.atoms(sympy.log)), default=0)
    with precision(BITS):
        tower: list[Any] = [arb(x)]  # values of L_depth, ..., L_1, n
        for _ in range(max(depth, 1)):
            if not tower[-1] < 10**60:
                return None
            tower.append(tower[-1].exp())
        tower.reverse()
        chain = {iterated(i): v for i, v in enumerate(tower)}
        for f in sympy.Mul.make_args(product):
            base, power = f.as_base_exp()
            if isinstance(f, sympy.exp):
                value = _with_chain(f.args[0], chain, numbers)
            else:
                inside = _with_chain(base, chain, numbers)
                value = inside.log() * _with_chain(power, chain, numbers)
            total = total + value
    return to_arb(total)


def _with_chain(e: Expr, chain: Mapping[Expr, arb], numbers: Numbers) -> arb:
    """The value with each tower of the chain put in as a ball, the largest first."""
    swap = {k: sympy.Dummy(positive=True) for k in sorted(chain, key=sympy.count_ops, reverse=True)}
    for k, symbol in swap.items():
        e = e.xreplace({k: symbol})
    return to_arb(numbers.compiled(e)({symbol: chain[k] for k, symbol in swap.items()}))


def _depth(e: Expr) -> int:
    """How many logarithms enclose the argument."""
    depth = 0
    while isinstance(e, sympy.log):
        e, depth = e.args[0], depth + 1
    return depth


def limit(rest: Expr, scale: Expr, numbers: Numbers) -> Expr:
    """lim rest/scale, from the growth of the single terms of rest."""
    total, largest = S.Zero, None
    for term in sympy.Add.make_args(sympy.expand(rest)):
        if term == 0:
            continue
        size, constant = order(term, scale, numbers)
        if size > 0:
            if largest is None or order(term, largest, numbers)[0] >= 0:
                same = largest is not None and order(term, largest, numbers)[0] == 0
                largest = largest + term if same else term
        elif size == 0:
            total += constant
    if largest is None:
        return total
    factor, _ = sympy.factor_terms(largest).as_independent(n, as_Add=False)
    ball = numbers.ball(factor, 1)
    if ball is None or ball.contains(0):
        raise ProofError("the sign of a leading term is open")
    return S.Infinity if ball > 0 else S.NegativeInfinity
