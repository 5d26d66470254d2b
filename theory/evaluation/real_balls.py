"""Real balls: the rigorous value of a formula at given values of its symbols.

Rational values stay exact (`fmpq`), so that comparisons and jumps are decided wherever the
arithmetic is rational; everything else is a ball that contains the true value (`functions.balls`).
Where a ball straddles a jump, as log(8)/log(2) does in a floor, an exact zero test may decide. The
test is the arithmetic's one parameter: the independent checker of proofs passes its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import ClassVar

import sympy
from flint import acb, arb, fmpq
from sympy import Basic, Expr, S, Symbol

from farfield.theory.functions.balls import (
    Ball,
    BeyondBalls,
    Undefined,
    Undetermined,
    finite_at,
    floor_of,
    power_of,
    precision,
    rational,
    sign_of,
    to_arb,
)
from farfield.theory.functions.nodes import Lookup, OpaqueRational, Root
from farfield.theory.functions.record import Arithmetic, Function, Operation, Program
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

    def power(self, e: Expr) -> Operation:
        return power_of, e.args

    def function(self, record: Function, e: Expr) -> Operation:
        if record.ball is None and record.complex_ball is not None:
            return _real_part(record.complex_ball), e.args
        operation, parts = super().function(record, e)
        if record.jumps and self.is_zero is not None:
            symbols = _symbols(e)
            return self._at_jumps(record, e, operation, symbols), (*parts, *symbols)
        return operation, parts

    def _at_jumps(
        self, record: Function, e: Expr, rule: Callable[..., Ball], symbols: tuple[Symbol, ...]
    ) -> Callable[..., Ball]:
        """The rule or, where the ball of the argument straddles a jump, the value at the jump if
        the argument is proved to be there: the integer itself, or the lower end of the range."""
        assert record.period is not None and self.is_zero is not None
        inside, modulus = record.period(*e.args)
        is_zero, count = self.is_zero, len(e.args)
        grows = any(e.exp.free_symbols for e in inside.atoms(sympy.Pow, sympy.exp))

        def decided(*values: Ball) -> Ball:
            try:
                return rule(*values[:count])
            except Undetermined:
                points = values[count:]
                if not all(isinstance(v, fmpq) for v in points):
                    raise
                if grows and any(abs(v) > MAX_EXPONENT for v in points):
                    raise  # SymPy would write the power out
                exact = {s: _sympy(v) for s, v in zip(symbols, points, strict=True)}
                turns = (inside / modulus).xreplace(exact)
                k = (to_arb(self.constant(turns)) + fmpq(1, 2)).floor().unique_fmpz()
                if k is None or not is_zero(turns - int(k)):
                    raise
                return fmpq(k) if record.range is None else fmpq(0)

        return decided

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
            return lambda difference: sign_of(difference) in relation.signs, (e.lhs - e.rhs,)
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
        """The formula as a program over its symbols; what has no value there is Undefined."""
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
    return tuple(sorted(e.free_symbols, key=lambda s: (s.name, str(s.sort_key()))))


def _sympy(value: fmpq) -> sympy.Rational:
    return sympy.Rational(int(value.p), int(value.q))


def _real_part(rule: Callable[..., acb]) -> Callable[..., arb]:
    """A rule on complex balls for real arguments."""
    return lambda *values: finite_at(rule(False, *(acb(to_arb(v)) for v in values)).real, *values)


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
        if b - a > MAX_LOOP:
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
