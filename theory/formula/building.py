"""Nodes built anew, as the reader would build them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy
from sympy import Expr

from farfield.theory.formula.limits import TooLarge, power
from farfield.theory.functions.record import Refused, record_of


def substituted(e: Any, swap: Mapping[Expr, Expr]) -> Any:
    """e with some parts replaced.

    >>> from farfield.theory.functions.nodes import n
    >>> x = sympy.Symbol("x", positive=True)
    >>> substituted(sympy.Piecewise((x, x < 3), (n, True)), {x: n + 1})
    Piecewise((n + 1, n + 1 < 3), (n, True))
    """
    if e in swap:
        return swap[e]
    args = tuple(substituted(a, swap) for a in e.args)
    return e if args == e.args else rebuilt(e.func, args)


def rebuilt(func: Any, args: tuple[Any, ...]) -> Any:
    """A node with new arguments, built as the reader would: unevaluated where SymPy might hang.

    Raises:
        TooLarge: for a power that the reader would refuse.
    """
    if func is sympy.Piecewise or issubclass(func, sympy.core.relational.Relational):
        return func(*args, evaluate=False)
    record = record_of(func)
    make = power if func is sympy.Pow else func if record is None else record.build or func
    try:
        return make(*args)
    except Refused as why:
        if func is sympy.Pow and args[0] != 0:
            raise TooLarge(str(why)) from None
        return func(*args, evaluate=func is sympy.Pow)


def branches_taken(e: Expr, decide: Any, kinds: tuple[Any, ...]) -> Expr:
    """e with the branch of each function of these kinds that `decide` chooses, innermost first.

    `decide` has methods `sign(e)`, `difference(x, y)` (the sign of x - y) and `floor(e)`, as far as
    the kinds need them.

    >>> class Positive:
    ...     sign = staticmethod(lambda e: 1)
    >>> x = sympy.Symbol("x", real=True)
    >>> branches_taken(sympy.Abs(x) + sympy.sign(x), Positive, (sympy.Abs, sympy.sign))
    x + 1
    """
    if not e.args or not e.has(*kinds):
        return e
    args = [branches_taken(a, decide, kinds) for a in e.args]
    record = record_of(e.func)
    if isinstance(e, kinds) and record is not None and record.branch is not None:
        return record.branch(decide, *args)
    return e.func(*args)


def primitive(e: Expr) -> tuple[Expr, Expr]:
    """(s, q) with e = s q, s a positive rational number that its terms share.

    >>> from farfield.theory.functions.nodes import n
    >>> primitive(-n / 2), primitive(2 * n - 4)
    ((1/2, -n), (2, n - 2))
    """
    s, q = e.primitive() if e.is_Add else e.as_coeff_Mul(rational=True)
    return (-s, -q) if s < 0 else (s, q)
