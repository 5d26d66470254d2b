"""Real balls: the rigorous value of a formula at given values of its symbols.

Rational values stay exact (`fmpq`), so that comparisons and jumps are decided wherever the
arithmetic is rational; everything else is a ball that contains the true value (`functions.balls`).
Where a ball straddles a jump, as log(8)/log(2) does in a floor, an exact zero test may decide. The
test is the arithmetic's one parameter: the independent checker of proofs passes its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from typing import ClassVar

import sympy
from flint import acb, arb, fmpq
from sympy import Basic, Expr, S, Symbol

from farfield.theory.evaluation.logarithms import accurate
from farfield.theory.evaluation.residues import quotient, residue
from farfield.theory.functions.balls import (
    Ball,
    BeyondBalls,
    NoValue,
    Undefined,
    Undetermined,
    ball_sign,
    finite_at,
    floor_of,
    power_of,
    precision,
    rational,
    to_arb,
)
from farfield.theory.functions.nodes import Lookup, OpaqueRational, Root
from farfield.theory.functions.record import Arithmetic, Function, Operation, Program, symbols
from farfield.theory.relations import BY_KIND

Environment = Mapping[Symbol, Ball]
ZeroTest = Callable[[Expr], bool]
MAX_LOOP = 100_000  # terms of a finite sum
MAX_EXPONENT = 100_000  # at which a power is proved to be at a jump


class RealBalls(Arithmetic):
    """Real balls, with an exact test whether a constant is 0, or without one."""

    rule: ClassVar[str] = "ball"

    def __init__(self, is_zero: ZeroTest | None = None) -> None:
        self.is_zero = is_zero
        self.compiled = lru_cache(maxsize=4096)(self._compiled)

    def operation(self, e: Basic) -> Operation:
        form = accurate(e)
        return super().operation(e) if form is None else (lambda x: x, (form,))

    def power(self, e: Expr) -> Operation:
        if e.base == -1 and e.exp.free_symbols and quotient(e.exp)[0].is_integer:
            q = quotient(e.exp)[1].denominator
            return partial(_parity, q), (sympy.Mod(e.exp, 2, evaluate=False),)
        return power_of, e.args

    def function(self, record: Function, e: Expr) -> Operation:
        if record.period is not None and not record.jumps and (turned := _turned(record, e)):
            return lambda x: x, (turned,)
        if record.ball is None and record.complex_ball is not None:
            return _real_part(record.complex_ball), e.args
        operation, parts = super().function(record, e)
        if record.jumps:
            symbols = _symbols(e)
            return self._at_jumps(record, e, operation, symbols), (*parts, *symbols)
        return operation, parts

    def _at_jumps(
        self, record: Function, e: Expr, rule: Callable[..., Ball], symbols: tuple[Symbol, ...]
    ) -> Callable[..., Ball]:
        """The rule or, where the ball of the argument straddles a jump, the remainder by residues,
        or the value at the jump if the argument is proved to be there: the integer itself, or the
        lower end of the range."""
        assert record.period is not None
        inside, modulus = record.period(*e.args)
        is_zero, count = self.is_zero, len(e.args)
        rest = self._rest(record, inside, modulus, symbols)
        apart = self._apart(inside, symbols)
        # SymPy multiplies out as many factors of a gamma function as a distance has units
        grows = _grows(inside) or any(x.free_symbols for x in inside.atoms(sympy.gamma))

        def decided(*values: Ball) -> Ball:
            try:
                return rule(*values[:count])
            except Undetermined:
                points = values[count:]
                if not all(isinstance(v, fmpq) for v in points):
                    raise
                if rest is not None and all(v.q == 1 for v in points):
                    return rest(*(int(v.p) for v in points))
                if apart is not None:
                    whole, small = (part(*points) for part in apart)
                    if _at_jump(whole, *values[1:count]):
                        with suppress(Undetermined):
                            side = rule(small, *values[1:count])
                            return side + whole if record.range is None else side
                if is_zero is None or (grows and any(abs(v) > MAX_EXPONENT for v in points)):
                    raise  # SymPy would write the power out
                exact = {s: _sympy(v) for s, v in zip(symbols, points, strict=True)}
                turns = (inside / modulus).xreplace(exact)
                k = (to_arb(self.constant(turns)) + fmpq(1, 2)).floor().unique_fmpz()
                if k is None or not is_zero(turns - int(k)):
                    raise
                return fmpq(k) if record.range is None else fmpq(0)

        return decided

    def _apart(self, inside: Expr, symbols: tuple[Symbol, ...]) -> list[Program] | None:
        """The polynomial terms of a sum, and the others, which may be small; None without both."""
        exact = [x for x in sympy.Add.make_args(inside) if x.is_polynomial(*symbols)]
        small = inside - sympy.Add(*exact)
        if not exact or small == 0:
            return None
        return [Program(x, self, symbols) for x in (sympy.Add(*exact), small)]

    def _rest(
        self, record: Function, inside: Expr, modulus: Expr, symbols: tuple[Symbol, ...]
    ) -> Callable[..., Ball] | None:
        """The fractional part of a rational multiple of an integer that grows, times the modulus;
        None for others."""
        if record.range is None or not modulus.is_Rational or not _grows(inside):
            return None
        whole, factor = quotient(inside / modulus)
        if not whole.is_integer:
            return None
        p, q = factor.as_integer_ratio()
        unit, remainder = rational(modulus) / q, residue(whole, q, self, symbols)
        return lambda *values: unit * (p * remainder(*values) % q)

    def structure(self, e: Basic) -> Operation:
        if e.is_Rational or isinstance(e, OpaqueRational):
            number = rational(e.value if isinstance(e, OpaqueRational) else e)
            return lambda: number, ()
        if e in _CONSTANTS:
            return _CONSTANTS[e], ()
        if isinstance(e, Root):
            return lambda power: power, (e.plain,)
        if e in (S.true, S.false):
            return lambda: bool(e), ()
        if relation := BY_KIND.get(type(e)):
            return lambda difference: ball_sign(difference) in relation.signs, (e.lhs - e.rhs,)
        if isinstance(e, sympy.Not):
            return lambda holds: not holds, e.args
        build = next((f for kind, f in _DEFERRED if isinstance(e, kind)), None)
        if build is None:
            raise self.lacking(type(e).__name__, "")
        symbols = _symbols(e)
        return build(e, lambda part, *more: Program(part, self, (*symbols, *more))), symbols

    def lacking(self, name: str, why: str) -> Exception:
        return Undefined(f"{name} has no enclosure")

    def _compiled(self, e: Basic) -> Callable[[Environment], Ball]:
        """The formula as a program over its symbols; a function without a value there is
        Undefined."""
        symbols = _symbols(e)
        program = Program(e, self, symbols)

        def run(env: Environment) -> Ball:
            try:
                values = [env[s] for s in symbols]
            except KeyError as missing:
                raise Undefined(f"{missing} has no value") from None
            try:
                return program(*values)
            except ZeroDivisionError:
                raise Undefined("a division by zero") from None
            except OverflowError:
                raise BeyondBalls("a number too large to be enclosed") from None

        return run

    def enclose(
        self, e: Expr, bits: int = 64, values: Mapping[Symbol, object] | None = None
    ) -> arb | None:
        """A ball that contains `e` at the given rational values, or None where it is undefined."""
        given = (values or {}).items()
        env = {s: v if isinstance(v, (fmpq, arb)) else rational(v) for s, v in given}
        with precision(bits):
            try:
                return to_arb(self.compiled(e)(env))
            except Undefined:
                return None


def _symbols(e: Basic) -> tuple[Symbol, ...]:
    """The symbols of a formula, in an order that does not depend on hashes."""
    free = symbols(e)
    ordered = sorted(free, key=lambda s: (s.name, str(s.sort_key()))) if len(free) > 1 else free
    return tuple(ordered)


def _sympy(value: fmpq) -> sympy.Rational:
    return sympy.Rational(int(value.p), int(value.q))


def _grows(e: Expr) -> bool:
    """Whether it has integers beyond the precision of balls: powers, or factorials."""
    powers = e.atoms(sympy.Pow, sympy.exp)
    return any(power.exp.free_symbols for power in powers) or e.has(sympy.factorial, sympy.binomial)


def _at_jump(whole: Ball, *modulus: Ball) -> bool:
    """Whether it is an integer, or a multiple of the modulus."""
    turns = whole / modulus[0] if modulus else whole
    return isinstance(turns, fmpq) and turns.q == 1


def _turned(record: Function, e: Expr) -> Expr | None:
    """A periodic function, of the rest of many turns, where they are a rational multiple of an
    integer that grows; None of others."""
    assert record.period is not None
    inside, modulus = record.period(*e.args)
    whole, factor = quotient(inside / modulus)
    if not whole.is_integer or not _grows(whole):
        return None
    turns = sympy.Mod(whole * sympy.Rational(*factor.as_integer_ratio()), 1, evaluate=False)
    return e.func(e.args[0] / inside * modulus * turns, evaluate=False)


def _parity(q: int, rest: Ball) -> fmpq:
    """(-1)^k, from k modulo 2, where q k is an integer, which a ball may enclose."""
    if isinstance(rest, arb):
        known = (q * rest).unique_fmpz()
        if known is None:
            raise Undetermined("a power of -1 is not decided at this precision")
        rest = fmpq(known, q)
    if rest not in (0, 1):
        raise NoValue("a negative number to a power that is no integer")
    return 1 - 2 * rest


def _real_part(rule: Callable[..., acb]) -> Callable[..., arb]:
    """A rule on complex balls for real arguments."""

    def at_real(*values: Ball) -> arb:
        value = rule(False, *(acb(to_arb(v)) for v in values))
        if not value.imag.contains(0):
            raise NoValue("no real number")
        return finite_at(value.real, *values)

    return at_real


_CONSTANTS: dict[Expr, Callable[[], Ball]] = {
    S.Pi: arb.pi,
    S.Exp1: arb.const_e,
    S.EulerGamma: arb.const_euler,
    S.Catalan: arb.const_catalan,
    S.GoldenRatio: lambda: (1 + arb(5).sqrt()) / 2,
    S.Infinity: arb.pos_inf,
    S.NegativeInfinity: arb.neg_inf,
}


# -- nodes of which not every part is evaluated ---------------------------------------------------

Compile = Callable[..., Program]


def _joined(
    join: Callable[[Iterable[bool]], bool],
) -> Callable[[Basic, Compile], Callable[..., bool]]:
    """`all` or `any` of the parts, as far as they have to be looked at."""

    def rule(e: Basic, compiled: Compile) -> Callable[..., bool]:
        parts = [compiled(a) for a in e.args]
        return lambda *values: join(p(*values) for p in parts)

    return rule


def _if_else(e: Basic, compiled: Compile) -> Callable[..., bool]:
    """Only the chosen branch is evaluated: the other may be undefined there."""
    test, yes, no = (compiled(a) for a in e.args)
    return lambda *values: yes(*values) if test(*values) else no(*values)


def _piecewise(e: sympy.Piecewise, compiled: Compile) -> Callable[..., Ball]:
    """The first piece that applies, its successors never evaluated."""
    pieces = [(compiled(v), compiled(c)) for v, c in e.args]

    def first(*values: Ball) -> Ball:
        for piece, condition in pieces:
            if condition(*values):
                return piece(*values)
        raise Undefined("no piece applies")

    return first


def _lookup(e: Lookup, compiled: Compile) -> Callable[..., Ball]:
    """The table's entry at a natural number, its tail behind the last."""
    index, (_, table, tail) = compiled(e.args[0]), e.args
    entries: dict[int, Program] = {}  # a table may be long, and most of it never asked for

    def entry(*values: Ball) -> Ball:
        place = index(*values)
        if not (isinstance(place, fmpq) and place.q == 1 and place >= 0):
            raise Undefined("a table needs a distance that is a natural number")
        i = min(int(place.p), len(table.args))
        if i not in entries:
            entries[i] = compiled(table.args[i] if i < len(table.args) else tail)
        return entries[i](*values)

    return entry


def _finite_sum(e: sympy.Sum, compiled: Compile) -> Callable[..., Ball]:
    """Term by term, up to MAX_LOOP of them."""
    k, low, high = e.limits[0]
    first, last, body = compiled(low), compiled(high), compiled(e.function, k)

    def total(*values: Ball) -> Ball:
        a, b = floor_of(first(*values)), floor_of(last(*values))
        if b - a >= MAX_LOOP:
            raise Undefined(f"a sum of more than {MAX_LOOP} terms")
        result: Ball = fmpq(0)
        for i in range(int(a.p), int(b.p) + 1):
            result = result + body(*values, fmpq(i))
        return result

    return total


_DEFERRED: tuple[tuple[type[Basic], Callable[[Basic, Compile], Callable[..., Ball]]], ...] = (
    (sympy.And, _joined(all)),
    (sympy.Or, _joined(any)),
    (sympy.ITE, _if_else),
    (sympy.Piecewise, _piecewise),
    (Lookup, _lookup),
    (sympy.Sum, _finite_sum),
)

PLAIN = RealBalls()
"""Real balls without a zero test: what needs a proof at a jump is undetermined."""
