"""The transseries of an expression: the rule of each node, limits, signs from some distance on.

`transseries(e)` expands a SymPy expression. A function of an argument with a finite limit is
expanded by its Taylor series there. At infinity and at singular points the rule of its record
expands it. The error is at most a constant times the first omitted term (real arguments). The rules
get `t` (`OPERATIONS`): the limit, the sign and the series of a transseries.

`eventual(e)` first replaces Piecewise, Min, Max, Abs, sign and tables by their values for all large
n.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import sympy
from sympy import Basic, Expr, S

from farfield.theory.algebra import door
from farfield.theory.algebra.call_tree import traced
from farfield.theory.algebra.exceptions import NotReal, OrderTooLow, Undecided
from farfield.theory.coefficients.exact import (
    Atom,
    Coefficient,
    coefficient,
    expand,
    inverse,
    minus,
    oscillates,
    plus,
    to_sympy,
)
from farfield.theory.coefficients.oscillation import (
    below,
    bounded_atom,
    bounds,
    eventual_sign,
    low_sign,
    monotone,
    unbounded,
)
from farfield.theory.coefficients.signs import Context, with_proved_rationals
from farfield.theory.formula.bounded_nodes import TooLarge, rebuilt
from farfield.theory.functions.nodes import Lookup, n
from farfield.theory.functions.record import (
    UNDEFINED,
    Arithmetic,
    Function,
    Operation,
    kinds,
    record_of,
    symbols,
    value,
)
from farfield.theory.relations import BY_KIND
from farfield.theory.transseries.arithmetic import (
    Monomial,
    Transseries,
    add,
    drop_lead,
    iterated_log,
    log_of_monomial,
    monomial,
    of_constant,
    size,
    split,
    taylor,
    with_proved_lead,
)


@traced(1)
def transseries(e: Expr, context: Context) -> Transseries:
    """The transseries of an expression in n at infinity, to the order of the decision.

    >>> transseries(sympy.log(1 + n), Context())
    1*L1 + 1*n^-1 + -1/2*n^-2 + 1/3*n^-3 + O(n^-4)
    """
    return value(e, Expansion(context), context.memo)


class Expansion(Arithmetic):
    """Transseries within one decision, whose memory holds those already known."""

    rule: ClassVar[str] = "expansion"

    def __init__(self, context: Context) -> None:
        self.context = context
        self.operations = Operations(context)

    def _constant(self, e: Expr) -> Transseries:
        return of_constant(constant(e, self.context), self.context)

    def operation(self, e: Basic) -> Operation:
        if n not in symbols(e):
            return lambda: self._constant(e), ()
        if e == n:
            return lambda: monomial(iterated_log(0), self.context), ()
        if e.is_Add or e.is_Mul:
            fixed, moving = sympy.sift(e.args, lambda a: n not in symbols(a), binary=True)
            parts = [*moving, e.func(*fixed)] if fixed else moving
            return add if e.is_Add else _product, parts
        return super().operation(e)

    def power(self, e: Expr) -> Operation:
        if n not in symbols(e.exp):
            return lambda base: base ** constant(e.exp, self.context), (e.base,)
        if door.assumed(e.base, "negative") and door.assumed(e.exp, "integer"):
            wave = of_constant(bounded_atom(S.NegativeOne, S.One), self.context)
            return lambda size: wave * size, ((-e.base) ** e.exp,)
        return lambda exp, base: (exp * base.log()).exp(), (e.exp, e.base)

    def function(self, record: Function, e: Expr) -> Operation:
        rule = record.expansion
        if rule is not None:
            return lambda: rule(self.operations, e, *e.args), ()
        if record.reduced is not None:
            return super().function(record, e)
        return lambda argument: self._without_rule(record, argument), e.args

    def _without_rule(self, record: Function, g: Transseries) -> Transseries:
        """The Taylor series where the argument has a finite limit."""
        if direction(g) != 0:
            raise self.lacking(record.name, record.lacks[self.rule])
        return at_finite(record.node, g, record.name)

    def structure(self, e: Basic) -> Operation:
        if isinstance(e, sympy.Sum):
            raise Undecided("a sum whose terms are not written out has no expansion")
        raise self.lacking(e.func.__name__, "no rule")

    def lacking(self, name: str, why: str) -> Exception:
        return Undecided(f"{name} has no expansion: {why}")


def _product(*factors: Transseries) -> Transseries:
    """The product, the shortest factors first."""
    first, *others = sorted(factors, key=lambda g: len(g.terms))
    for g in others:
        first = first * g
    return first


# -- constants ------------------------------------------------------------------------------------


def constant(e: Expr, context: Context) -> Coefficient:
    """An expression without n as a coefficient, after asking whether each part is real;
    an expression that is proved to be rational becomes that number."""
    if e.is_Rational or e.is_Symbol:
        return coefficient(e)
    values = context.constants
    if e not in values:
        for part in sympy.postorder_traversal(e):
            if part.args and part not in values:
                _ask_real(part, context)
                values[part] = coefficient(part)
        values[e] = coefficient(with_proved_rationals(e, context))
    return values[e]


def _ask_real(e: Expr, context: Context) -> None:
    """Raise NotReal where one function of constants and parameters is not a real number."""
    if e.is_Pow:
        if e.exp.is_Integer and (e.exp > 0 or e.base.is_nonzero):
            return
        s = context.sign(coefficient(e.base))
        if s == 0 and context.sign(coefficient(e.exp)) <= 0:
            raise NotReal("a division by 0")
        if s < 0 and not e.exp.is_integer:
            raise NotReal("a real power of a negative quantity")
        return
    record = record_of(e.func)
    if record is not None and record.domain is not None:
        quantity, least = record.domain(*e.args)
        if context.sign(coefficient(quantity)) < least:
            raise NotReal(f"{record.name} outside its domain")
    elif record is not None and record.positive and context.sign(coefficient(e.args[-1])) <= 0:
        raise Undecided(f"{record.name} of a constant that is not positive")


def function_value(function: type[Basic], *args: Expr) -> Expr:
    """A function of numbers: evaluated at small rationals, elsewhere as the reader builds it."""
    small = all(a.is_Rational and max(abs(a.p), a.q) <= 1000 for a in args)
    return door.supervised(function, *args) if small else rebuilt(function, args)


# -- limits ---------------------------------------------------------------------------------------


def direction(g: Transseries) -> int | None:
    """1 or -1 if g -> +oo or -oo, 0 if it is bounded, None if it oscillates without bound."""
    try:
        infinite, _, _ = split(g)
    except OrderTooLow:
        if not (g.terms and size(g.terms[0][0], g.context) > 0):
            raise
        infinite = list(g.terms)
    if not infinite:
        return 0
    g = with_proved_lead(g)
    if not g.terms:
        return 0
    m, c = g.terms[0]
    if size(m, g.context) <= 0:
        return direction(g)
    if any(unbounded(d) for _, d in g.terms[1:]):
        return None
    try:
        return eventual_sign(c, g.context)
    except Undecided:
        return None


def eventual_sign_of(g: Transseries) -> int:
    """The sign of g for all large n."""
    g = with_proved_lead(g)
    if not g.terms:
        return 0
    if any(unbounded(c) for _, c in g.terms[1:]):
        raise Undecided("the sign of a sum with an unbounded oscillation")
    return eventual_sign(g.terms[0][1], g.context)


def finite(g: Transseries) -> tuple[Coefficient, Transseries]:
    """The limit and the transseries of the rest, for a bounded g."""
    infinite, limit, small = split(g)
    if infinite and direction(g) != 0:
        raise Undecided("a function of an argument without a finite limit")
    return limit, small


def at_finite(f: Callable[[Expr], Expr], g: Transseries, name: object) -> Transseries:
    """f at a finite limit by its Taylor series; its derivatives by symbolic differentiation."""
    limit, delta = finite(g)
    if oscillates(limit):
        raise Undecided(f"{name} of an oscillation")
    point = to_sympy(limit)
    x = sympy.Dummy("x", real=True)
    derivatives = [f(x)]

    def coef(k: int) -> Coefficient:
        while len(derivatives) <= k:
            derivatives.append(door.diff(derivatives[-1], x))
        value = door.replaced(derivatives[k], {x: point}) / math.factorial(k)
        if not UNDEFINED.isdisjoint(kinds(value)):
            raise Undecided(f"{name} at a singular point")
        if value.is_real is False:
            raise NotReal(f"{name} outside its domain")
        if value.has(sympy.Derivative, sympy.Subs):
            raise Undecided(f"derivatives of {name}")
        return coefficient(value)

    if not delta.literally_zero:
        coef(1)
    return taylor(coef, delta)


def increasing_or_taylor(f: type[Basic], g: Transseries) -> Transseries:
    """An increasing function of what is bounded: of an oscillation by its bounds, else by Taylor's
    series."""
    limit, delta = finite(g)
    if not oscillates(limit):
        return at_finite(f, g, f.__name__)
    if not delta.literally_zero:
        raise Undecided(f"{f.__name__} of an oscillation")
    return of_constant(monotone(f, limit, g.context), g.context)


def _weak_sign(g: Transseries) -> int:
    """The sign of g for large n, also where one exact oscillating term only touches 0; g is led by
    a term that is not 0."""
    c = g.terms[0][1]
    if oscillates(c) and len(g.terms) == 1 and g.exact:
        if low_sign(c, g.context) >= 0:
            return 1
        if low_sign(minus(c), g.context) >= 0:
            return -1
    return eventual_sign(c, g.context)


def has_bounded_atom(e: Expr) -> bool:
    """Whether a bounded atom is in an expression."""
    return any(isinstance(s, Atom) for s in e.free_symbols)


class Operations:
    """What the rules of records call beside operators, within one decision: `t.taylor(...)`."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.sign = context.sign

    def error(self, m: Monomial) -> Transseries:
        """O(m)."""
        return Transseries(self.context, [], m)

    def stays_positive(self, e: Expr) -> bool:
        """Whether e > 0 for all large n, but for zeros of one exact oscillating term."""
        g = with_proved_lead(transseries(e, self.context))
        return bool(g.terms) and _weak_sign(g) > 0

    def term(self, m: Monomial, c: Coefficient) -> Transseries:
        """c m."""
        return Transseries(self.context, [(m, c)])


def _within(operation: Callable[..., Any]) -> Callable[..., Any]:
    """An operation of a decision as a method, which knows the decision."""
    return lambda self, *given: operation(*given, self.context)


for _asking in (below, bounds, log_of_monomial, low_sign, of_constant, size, transseries):
    setattr(Operations, _asking.__name__, _within(_asking))
for _operation in (
    add,
    at_finite,
    bounded_atom,
    coefficient,
    direction,
    drop_lead,
    eventual_sign_of,
    expand,
    finite,
    function_value,
    has_bounded_atom,
    increasing_or_taylor,
    inverse,
    minus,
    oscillates,
    plus,
    split,
    taylor,
    to_sympy,
    with_proved_lead,
):
    setattr(Operations, _operation.__name__, staticmethod(_operation))


# -- what an expression is for all large n --------------------------------------------------------


@traced(1)
def eventual(e: Expr, context: Context) -> Expr:
    """The expression with comparisons decided for all large n; may be -oo or oo.

    >>> eventual(sympy.Piecewise((n, n < 100), (-n, True)), Context())
    -n
    """
    if _DECIDED.isdisjoint(kinds(e)):
        return e
    if isinstance(e, sympy.Piecewise):
        for piece, condition in e.args:
            if holds(condition, context):
                if piece is S.NaN:
                    raise NotReal("a division by 0")
                return eventual(piece, context)
        raise Undecided("no piece applies for large n")
    if isinstance(e, Lookup):
        return e.args[2]
    args = [eventual(a, context) for a in e.args]
    record = record_of(e.func)
    if record is not None and record.branch is not None and not record.jumps:
        try:
            return record.branch(_AtInfinity(context), *args)
        except Undecided:
            extreme = isinstance(e, (sympy.Min, sympy.Max))
            return door.supervised(e.func, *args, **({"evaluate": False} if extreme else {}))
    if isinstance(e, sympy.log) and args[0] == 0:
        return S.NegativeInfinity
    if (e.is_Add or e.is_Mul) and any(a in _INFINITE for a in args):
        return _with_infinity(e.func, args, context)
    try:
        return e if tuple(args) == e.args else rebuilt(e.func, tuple(args))
    except TooLarge:
        raise Undecided("a constant is too large") from None


class _AtInfinity:
    """How branches are taken for all large n."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def sign(self, e: Expr) -> int:
        """The sign of e."""
        if e in _INFINITE:
            return 1 if e is S.Infinity else -1
        return eventual_sign_of(transseries(e, self.context))

    def difference(self, x: Expr, y: Expr) -> int:
        """The sign of x - y, weakly where it only touches 0."""
        if x in _INFINITE:
            return 1 if x is S.Infinity else -1
        if y in _INFINITE:
            return -1 if y is S.Infinity else 1
        g = with_proved_lead(transseries(x - y, self.context))
        return _weak_sign(g) if g.terms else 0


def _with_infinity(operation: type[Basic], args: list[Expr], context: Context) -> Expr:
    """A sum or product in which some arguments are -oo or oo, the others finite."""
    infinite, others = sympy.sift(args, lambda a: a in _INFINITE, binary=True)
    total = operation(*infinite)
    if operation is sympy.Mul:
        total = total * _AtInfinity(context).sign(sympy.Mul(*others))
    if total not in _INFINITE:
        raise NotReal("oo - oo or 0 oo")
    return total


_INFINITE = (S.Infinity, S.NegativeInfinity)
_DECIDED = {
    sympy.Piecewise,
    Lookup,
    sympy.Min,
    sympy.Max,
    sympy.sign,
    sympy.Heaviside,
    sympy.Abs,
}


def holds(condition: Basic, context: Context) -> bool:
    """Whether a condition is true for all large n (it must be true or false for all of them)."""
    if condition in (True, S.true):
        return True
    if condition in (False, S.false):
        return False
    if isinstance(condition, sympy.And):
        return all(holds(c, context) for c in condition.args)
    if isinstance(condition, sympy.Or):
        return any(holds(c, context) for c in condition.args)
    if isinstance(condition, sympy.Not):
        return not holds(condition.args[0], context)
    if isinstance(condition, sympy.ITE):
        test, yes, no = condition.args
        return holds(yes if holds(test, context) else no, context)
    relation = BY_KIND.get(type(condition))
    if relation is None:
        raise Undecided(f"a condition of the kind {type(condition).__name__}")
    return (
        _AtInfinity(context).sign(eventual(condition.lhs - condition.rhs, context))
        in relation.signs
    )
