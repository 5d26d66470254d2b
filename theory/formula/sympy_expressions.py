"""A user's SymPy expression as a formula: its symbols are renamed, its nodes built anew."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import sympy
from sympy import Basic, Expr, S, Symbol

from farfield.theory.answers.errors import InputError
from farfield.theory.answers.number import MAX_BITS, exact
from farfield.theory.formula.bounded_nodes import rebuilt
from farfield.theory.formula.conditions import ENDED, ended
from farfield.theory.formula.finite_sums import sum_of_sympy
from farfield.theory.formula.parameters import domain_of, parameter
from farfield.theory.functions.nodes import Lookup, n
from farfield.theory.functions.record import Refused, record_of

_BUILT = (
    sympy.Add,
    sympy.Mul,
    sympy.Pow,
    sympy.Symbol,
    sympy.Rational,
    sympy.Piecewise,
    sympy.Tuple,
    sympy.Sum,
    sympy.NumberSymbol,
    Lookup,
    sympy.core.relational.Relational,
    sympy.logic.boolalg.Boolean,
    type(S.Infinity),
    type(S.NegativeInfinity),
)
_ALMOST_N = Symbol("n", integer=True, positive=True).assumptions0  # true of all distances but 0


def as_expression(f: object, domains: Mapping[str, str] | None = None) -> Expr:
    """A SymPy expression in the project's own symbols.

    In a SymPy expression the symbol called n, or else the only symbol, becomes the distance; other
    symbols become parameters of the domain said (else of what they assume; else positive), floats
    the decimals they print as.

    Raises:
        InputError: for anything that the reader of formulas would not have built; several symbols,
            none called n; a distance that SymPy took for negative, even or the like; a parameter
            that it took for complex; integers that Python does not write.

    >>> as_expression(-sympy.log(1 + sympy.Symbol("x")))
    -log(n + 1)
    """
    expr = _sympy_expression(f)
    domains, distance = domains or {}, _distance(expr, f)
    swap: dict[Basic, Expr] = {x: exact(x) for x in expr.atoms(sympy.Float)}
    for s in expr.free_symbols:
        swap[s] = n if s == distance else parameter(s.name, domains.get(s.name) or domain_of(s))
    try:
        expr = _as_read(expr.xreplace({k: v for k, v in swap.items() if k != v}))
    except Refused as wrong:
        raise InputError(f"a part of {str(f)[:40]!r} {wrong}") from None
    for node in sympy.preorder_traversal(expr):
        record = record_of(node.func)
        if not isinstance(node, _BUILT) and not (record and record.names):
            raise InputError(f"{type(node).__name__} in {str(f)[:40]!r} is not part of a formula")
    if expr.has(S.NaN, S.ComplexInfinity, S.ImaginaryUnit):
        raise InputError(f"formula {str(f)[:40]!r} is not real or undefined")
    return expr


def _sympy_expression(f: object) -> Expr:
    """A number or an expression as one of SymPy's; InputError for all that is no formula."""
    if hasattr(f, "item") and getattr(f, "ndim", None) == 0:
        f = exact(f, "formula")
    if not isinstance(f, (sympy.Basic, int, float)) or isinstance(f, bool):
        raise InputError(
            "a formula is text, a SymPy expression, a function, a module or an array, "
            f"not {type(f).__name__}"
        )
    expr = sympy.sympify(f)
    if not isinstance(expr, Expr) or expr.has(sympy.MatrixExpr):
        raise InputError(f"{str(f)[:40]!r} is not a formula with a number at each distance")
    if any(max(abs(x.p), x.q).bit_length() > MAX_BITS for x in expr.atoms(sympy.Rational)):
        raise InputError(f"the formula has a number of more than {MAX_BITS} bits")
    return expr


def _as_read(e: Basic) -> Basic:
    """Rebuild functions of several arguments with the constructors of the grammar, and sums by
    SymPy's convention."""
    args = tuple(map(_as_read, e.args))
    if isinstance(e, sympy.Piecewise) and ended(e.args):
        raise InputError(f"{str(e)[:40]!r}: {ENDED}")
    if isinstance(e, sympy.Sum):
        return sum_of_sympy(e.func(*args))
    record = record_of(e.func) if len(args) > 1 else None
    if record is not None and record.build is not None:
        return record.build(*args)
    return e if args == e.args else rebuilt(e.func, args)


def _distance(expr: Expr, f: object) -> Symbol | None:
    """The symbol of the distance."""
    symbols = sorted(expr.free_symbols, key=lambda s: str(s.name))
    for one, other in itertools.pairwise(symbols):
        if one.name == other.name != "n":
            raise InputError(
                f"formula {str(f)[:40]!r} has two symbols of SymPy called {one.name}; "
                "accepted: one of each name"
            )
    named = [s for s in symbols if s.name == "n"] or symbols
    if len(named) > 1:
        names = ", ".join(str(s.name) for s in named)
        raise InputError(
            f"formula {str(f)[:40]!r} has several symbols that may be the distance: {names}; "
            "accepted: one called n, or a single symbol"
        )
    for symbol in named:
        for name, value in symbol.assumptions0.items():
            if value not in (_ALMOST_N.get(name), n.assumptions0.get(name)):
                raise InputError(
                    f"formula {str(f)[:40]!r}: SymPy took {symbol.name} for "
                    f"{'' if value else 'not '}{name.replace('_', ' ')}; accepted: a symbol "
                    "without assumptions, integer, real, positive or nonnegative"
                )
    return named[0] if named else None
