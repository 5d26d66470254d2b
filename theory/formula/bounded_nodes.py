"""SymPy nodes with a bound on their size: numbers, powers, substitution, before algebra can hang.

Numbers are bounded before they are formed, powers before they are multiplied out. The bounds are
far beyond what biases need. Each is where SymPy began to take seconds, or Python refuses.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy
from flint import arb
from sympy import Basic, Expr, S

from farfield.theory.algebra import door
from farfield.theory.answers.number import MAX_BITS
from farfield.theory.evaluation.real_balls import PLAIN
from farfield.theory.functions.balls import Undefined, Undetermined, precision, to_arb
from farfield.theory.functions.record import UNDEFINED, Refused, kinds, record_of, symbols

MAX_LENGTH = 10_000  # characters
MAX_DEPTH = 60  # brackets in brackets
MAX_TOKENS = 4_000
MAX_DIGITS = 1_000  # of a number that is written
MAX_SUM_TERMS = 1_000
MAX_EXPONENT = 10**4
MAX_DEGREE = 100  # of a power of a sum within a power of a sum
MAX_SIZE = 100_000  # log2 of a constant
MAX_FACTOR = 10**6  # bits of a number that is split off a power: a millisecond to multiply
LARGEST = arb(2) ** MAX_SIZE  # as an int, it takes longer to compare than all else here
READ_S = 2.0  # seconds of processor time
STEEP = 40  # a degree from which SymPy hangs on expanding, factoring, isolating roots


class TooLarge(ArithmeticError):
    """A power that cannot be written down."""


def bounded(e: Expr) -> Expr:
    """Refuse constants that SymPy or a reader could not handle: not real, or too large."""
    if type(S.ImaginaryUnit) in kinds(e):
        raise Refused("is not a real number")
    if not UNDEFINED.isdisjoint(kinds(e)):
        raise Refused("is undefined (a division by zero, or a singular point)")
    coefficient = e.as_coeff_Mul()[0] if isinstance(e, Expr) else S.One
    if coefficient.is_Rational and max(abs(coefficient.p), coefficient.q).bit_length() > MAX_BITS:
        raise Refused(f"is a number of more than {MAX_BITS} bits")
    if e.is_Rational or symbols(e) or e in (S.Infinity, S.NegativeInfinity):
        return e
    for bits in (64, 640):  # acos(tanh(53)) lies at an end of a domain for the first
        try:
            with precision(bits):
                size = abs(to_arb(PLAIN.compiled(e)({}))).upper()
        except Undetermined:  # a jump or a comparison that needs a proof: not the reader's business
            return e
        except Undefined:
            continue
        if size > LARGEST:
            raise Refused(f"is a constant beyond 2**{MAX_SIZE}")
        return e
    raise Refused("is not a finite real number that can be evaluated")


def degree(e: Expr, sums_alone: bool = False) -> int:
    """The degree of an expression as a polynomial; `sums_alone`: only powers of sums count above
    1."""
    if e.is_Add:
        return max(degree(a, sums_alone) for a in e.args)
    if e.is_Mul:
        return sum(degree(a, sums_alone) for a in e.args)
    if e.is_Pow and e.exp.is_Integer and (e.base.is_Add or not sums_alone):
        return degree(e.base, sums_alone) * abs(int(e.exp))
    return int(bool(symbols(e)))


def steep(e: Expr) -> bool:
    """Whether e, as a polynomial in whatever occurs in it, has a degree that SymPy hangs on."""
    powers = (x.exp.as_coeff_Mul()[0] for x in e.atoms(sympy.Pow, sympy.exp))
    return degree(e) > STEEP or any(max(abs(c.p), c.q) > STEEP for c in powers if c.is_Rational)


def power(base: Expr, exponent: Expr) -> Expr:
    """A power that can be written down."""
    if base.is_Rational and exponent.is_Rational:
        if base == 0 and exponent < 0:
            raise Refused("is undefined (a division by zero)")
        size = max(abs(base.p), base.q).bit_length() * abs(exponent)
        if size > MAX_BITS:
            raise Refused(f"is a number of more than {MAX_BITS} bits")
    elif exponent.is_Rational:
        if abs(exponent) > MAX_EXPONENT:
            raise Refused(f"has an exponent beyond {MAX_EXPONENT}")
        nested = base.is_Add and base.has(sympy.Pow)
        if nested and degree(base, sums_alone=True) * abs(exponent) > MAX_DEGREE:
            raise Refused(f"is a nested power of a degree beyond {MAX_DEGREE}")
        coefficient = base.as_coeff_Mul()[0]
        if coefficient.is_Rational:
            size = max(abs(coefficient.p), coefficient.q).bit_length() * abs(exponent)
            if size > MAX_BITS:
                raise Refused(f"has a constant factor of more than {MAX_BITS} bits")
    else:  # multiplied out, (a b)^(n + c) has the factor a^c
        shift, factor = exponent.as_coeff_Add()[0], base.as_coeff_Mul()[0]
        if shift.is_Rational and factor.is_Rational:
            size = max(abs(factor.p), factor.q).bit_length() * abs(shift)
            if size > MAX_FACTOR:
                raise Refused(f"has a constant factor of more than {MAX_FACTOR} bits")
    factor, rest = base.as_coeff_Mul()
    if exponent.is_Rational and factor.is_Rational and factor > 0:
        return sympy.Mul(door.raised(factor, exponent), sympy.Pow(rest, exponent))
    return sympy.Pow(base, exponent)


def substituted(e: Basic, swap: Mapping[Expr, Expr]) -> Basic:
    """e with some parts replaced.

    >>> from farfield.theory.functions.nodes import n
    >>> x = sympy.Symbol("x", positive=True)
    >>> substituted(sympy.Piecewise((x, x < 3), (n, True)), {x: n + 1})
    Piecewise((n + 1, n + 1 < 3), (n, True))
    >>> substituted(sympy.Piecewise((x, x < 3), (n, True)), {x: sympy.Integer(3)})  # 3 < 3 is false
    n
    """
    if e in swap:
        return swap[e]
    args = tuple(substituted(a, swap) for a in e.args)
    return e if args == e.args else rebuilt(e.func, args)


def valued(e: Expr, values: Mapping[Expr, Expr]) -> Expr:
    """e with numbers for symbols, chosen so that SymPy does not hang on a power.

    >>> a, b = sympy.symbols("a b", positive=True)
    >>> valued(a**b, {a: sympy.Integer(135), b: sympy.Rational(7_200_001, 10**7)})
    9*3**(1600003/10000000)*5**(7200001/10000000)
    """
    powers = any(x.exp.has(*values) for x in e.atoms(sympy.Pow)) if values else False
    return substituted(e, values) if powers else e.xreplace(dict(values))


def rebuilt(func: type[Basic], args: tuple[Basic, ...]) -> Basic:
    """A node with new arguments, built as the reader would: unevaluated where SymPy might hang.

    Raises:
        TooLarge: for a power that the reader would refuse.
    """
    if func is sympy.Piecewise or issubclass(func, sympy.core.relational.Relational):
        return func(*args, evaluate=all(a.is_Rational for a in args))
    record = record_of(func)
    make = power if func is sympy.Pow else func if record is None else record.build or func
    try:
        return make(*args)
    except Refused as why:
        if func is sympy.Pow and args[0] != 0:
            raise TooLarge(str(why)) from None
        return func(*args, evaluate=func is sympy.Pow)


def primitive(e: Expr) -> tuple[Expr, Expr]:
    """(s, q) with e = s q, s a positive rational number that its terms share.

    >>> from farfield.theory.functions.nodes import n
    >>> primitive(-n / 2), primitive(2 * n - 4)
    ((1/2, -n), (2, n - 2))
    """
    s, q = e.primitive() if e.is_Add else e.as_coeff_Mul(rational=True)
    return (-s, -q) if s < 0 else (s, q)
