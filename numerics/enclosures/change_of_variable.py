r"""The change of variable x = e^s in a formula, done symbolically so that what cancels cancels.

`in_logarithm` writes p(e^s) with every logarithm of a product, power or exponential expanded and
every logarithm of a sum led by its largest term: log(A + B) = log A + log(1 + B/A). For
p = -log(n + n log(n)^2) it gives -3 s - ... without an e^s that would have to cancel numerically.
Used twice it gives the variable log log n. Which term leads is found numerically and needs no
proof: the identity holds for each choice.

Special functions are split into elementary terms and a remainder function of their own, as their
records say: loggamma(z) = (z - 1/2) log z - z + log(2 pi)/2 + binet(z).
"""

from __future__ import annotations

from contextlib import suppress

import sympy
from flint import acb, arb
from sympy import Expr, Symbol

from farfield.numerics.enclosures.compiled import compile_complex
from farfield.numerics.search import Unrecognised
from farfield.theory.algebra import door
from farfield.theory.algebra.door import check_time
from farfield.theory.functions.balls import Undefined, precision
from farfield.theory.functions.elementary import expm1, log1p
from farfield.theory.functions.record import record_of

MAX_TERMS = 60  # of an expression that is multiplied out
SMALL = -1.5  # log of what counts as small
_PROBES = (64, 6, 3)  # values of log x at which sizes are compared, the largest that is finite


def elementary(e: Expr) -> Expr:
    """A formula in functions that have rules on complex balls and tails, remainder functions among
    them."""
    check_time()
    if not e.args:
        return e
    record = record_of(e.func)
    if record is not None and (record.asymptotic is not None or record.complex_ball is None):
        reduced = None if record.reduced is None else record.reduced(*e.args)
        if reduced is None:
            why = record.lacks.get("complex_ball", "not for these arguments")
            raise Unrecognised(f"{record.name} has no analytic form here: {why}")
        return elementary(reduced)
    args = [elementary(a) for a in e.args]
    if isinstance(e, sympy.log) and args[0].is_Rational and args[0] > 0:
        return constant_log(args[0])
    if record is None and not (e.is_Add or e.is_Mul or e.is_Pow):
        raise Unrecognised(f"{e.func.__name__} has no analytic form here")
    return e.func(*args)


def in_logarithm(e: Expr, x: Symbol, s: Symbol) -> Expr:
    """`e`, elementary in x, as an expression in s = log x.

    >>> x, s = sympy.symbols("x s", positive=True)
    >>> in_logarithm(sympy.log(x + 1) - sympy.log(x), x, s)
    log1p(exp(-s))
    """
    check_time()
    if e == x:
        return sympy.exp(s)
    if not e.has(x):
        return e
    if e.is_Add:
        return _spread(sympy.Add(*(in_logarithm(a, x, s) for a in e.args)))
    if e.is_Mul:
        return _spread(sympy.Mul(*(in_logarithm(a, x, s) for a in e.args)))
    if e.is_Pow:
        base, q = in_logarithm(e.base, x, s), in_logarithm(e.exp, x, s)
        if q.is_Integer and 0 < q <= 8:
            return _spread(base**q)
        return _exp(_spread(q * _log(base, s)), s)
    if isinstance(e, sympy.log):
        return _log_of(e.args[0], x, s)
    inner = [in_logarithm(a, x, s) for a in e.args]
    if isinstance(e, sympy.exp):
        return _exp(inner[0], s)
    record = record_of(e.func)
    scaled = record.scaled(_Form(s), *inner) if record and record.scaled else None
    return e.func(*inner) if scaled is None else scaled


class _Form:
    """What the rules for large and small arguments ask for: sizes and signs at a large s,
    logarithms."""

    SMALL = SMALL

    def __init__(self, s: Symbol) -> None:
        self.s = s

    def size(self, e: Expr) -> float:
        """log |e| at a large s."""
        return _size(e, self.s)

    def sign(self, e: Expr) -> int:
        """The sign of e at a large s."""
        return 1 if _value(e, self.s) > 0 else -1

    def log(self, e: Expr) -> Expr:
        """log e, expanded."""
        return _log(e, self.s)

    def spread(self, e: Expr) -> Expr:
        """e multiplied out."""
        return _spread(e)


def _log_of(e: Expr, x: Symbol, s: Symbol) -> Expr:
    """log e, exponentials and products opened before they are expanded."""
    if isinstance(e, sympy.exp):
        return in_logarithm(e.args[0], x, s)
    if e.is_Pow and not e.exp.has(x):
        return _spread(e.exp * _log_of(e.base, x, s))
    if e.is_Mul and not any(f.is_number and not f.is_positive for f in e.args):
        return sympy.Add(*(_log_of(f, x, s) for f in e.args))
    return _log(in_logarithm(e, x, s), s)


def _exp(u: Expr, s: Symbol) -> Expr:
    """exp u, with the part of u that is small at large s in expm1."""
    terms = sympy.Add.make_args(u)
    small = [t for t in terms if t.has(s) and _size(t, s) < SMALL]
    if not small:
        return sympy.exp(u)
    large = sympy.exp(sympy.Add(*(t for t in terms if t not in small)))
    return large + large * expm1(sympy.Add(*small))


def constant_log(c: Expr) -> Expr:
    """log c with the logarithms of rationals written by primes, so that they cancel."""
    if c.is_Rational and max(c.p, c.q) < 10**12:
        return sympy.Add(*(k * sympy.log(q) for q, k in door.factorrat(c).items()))
    return door.expand_log(sympy.log(c))


def _spread(e: Expr) -> Expr:
    """Multiplied out, unless that has too many terms."""
    wide = door.expand_mul(door.expand_multinomial(e))
    return e if len(sympy.Add.make_args(wide)) > MAX_TERMS else wide


def _log(u: Expr, s: Symbol) -> Expr:
    """log u for u > 0 at large s, expanded."""
    if isinstance(u, sympy.exp):
        return u.args[0]
    if u.is_number:
        return constant_log(u)
    if u.is_Mul:
        constant, rest = u.as_independent(s)
        if constant.is_negative:
            return sympy.log(u)
        return constant_log(constant) + sympy.Add(*(_log(f, s) for f in sympy.Mul.make_args(rest)))
    if u.is_Pow and not u.exp.has(s):
        return _spread(u.exp * _log(u.base, s))
    if u.is_Add:
        terms = sorted(u.args, key=lambda a: _size(a, s))
        lead = terms.pop()
        if _value(lead, s) > 0:
            rest = sympy.Add(*(door.powsimp(t / lead) for t in terms))
            return _log(lead, s) + log1p(_spread(rest))
    return sympy.log(u)


def _value(e: Expr, s: Symbol) -> arb:
    """A ball of e at a large s, to compare with."""
    program = compile_complex(e, s)
    for at in _PROBES:
        with precision(600), suppress(Undefined):
            value = program(acb(at), False).real
            if value.is_finite():
                return value
    raise Unrecognised(f"{str(e)[:60]} is not evaluated at large distances")


def _size(e: Expr, s: Symbol) -> float:
    """log |e| at a large s."""
    value = abs(_value(e, s))
    with precision(600):
        size = value.log().mid() if value > 0 else None
    return float("-inf") if size is None else float(size)
