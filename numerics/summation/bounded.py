"""Sums of steps, and of oscillations between two bounds.

* Steps -a floor(log(n + h)/log b), b an integer, are constant on [b^v - h, b^{v+1} - h): the sum
  over the steps is geometric.
* Bounded oscillations (sin, cos, frac, Mod, log|sin|) are replaced by their extremes, in the
  direction in which the bias depends on them. From `DIRECT` terms on (more, where that makes the
  rest negligible) the tail lies between those of the two biases; the terms before it are summed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import ClassVar

import sympy
from flint import arb, ctx
from sympy import Expr, S

from farfield.numerics.search import Unrecognised
from farfield.numerics.summation.analytic_bias import sign_from
from farfield.numerics.summation.kernel import Direct, Kernel, decided_sign, number, terms
from farfield.theory.algebra import door
from farfield.theory.algebra.call_tree import traced
from farfield.theory.functions.balls import precision, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.functions.record import record_of
from farfield.theory.values import compile_ball

Find = Callable[[Expr, int], Kernel]

DIRECT = 1 << 14  # least terms summed one by one before a bound of an oscillation takes over
MOST_DIRECT = 1 << 17  # most of them
SUFFICIENT = 24  # bits of the sum below which the rest beyond them matters no more
MAX_WAVES = 6  # oscillations replaced by bounds, which widen with each
# -- steps ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StepsKernel(Kernel):
    """p = gamma - a floor(log(n + h)/log b)."""

    a: Expr
    h: int
    b: int

    checked: ClassVar[bool] = False

    @property
    def converges(self) -> bool:
        return decided_sign(self.a - sympy.log(self.b)) > 0

    def tail(self, j: int) -> arb:
        v, end = 0, self.b
        while end <= j + self.h:
            v, end = v + 1, end * self.b
        q = (-number(self.a)).exp()
        later = (self.b - 1) * (self.b * q) ** (v + 1) / (1 - self.b * q)
        return number(self.gamma).exp() * ((end - self.h - j) * q**v + later)


@traced(2)
def by_steps(p: Expr, start: int) -> StepsKernel:
    """a floor(log_b (n + h)): constant between powers of b, so a geometric series."""
    gamma, rest = p.as_independent(n, as_Add=True)
    a, floor = rest.as_independent(n)
    if not isinstance(floor, sympy.floor):
        raise Unrecognised("no steps")
    scale, log = floor.args[0].as_independent(n, as_Add=False)
    base = sympy.exp(1 / scale)
    if isinstance(log, sympy.log) and base.is_Integer:
        h = log.args[0] - n
        if h.is_Integer and start + h >= 1:
            return StepsKernel(start, gamma, -a, int(h), int(base))
    raise Unrecognised("no steps of a logarithm")


# -- bounded oscillations -------------------------------------------------------------------------


@dataclass(frozen=True)
class Envelope(Direct):
    """A bias p between two others from `first` on."""

    p: Expr
    weight: Callable[[int], arb] = field(compare=False, repr=False)
    first: int
    low: Kernel | None
    high: Kernel

    first_bits: ClassVar[int] = 64  # the bounds are wider than that
    checked: ClassVar[bool] = False

    def term(self, j: int) -> arb:
        return self.weight(j)

    def _begin(self, bits: int) -> int:
        return self.first

    def _beyond(self, j: int) -> arb:
        """Between the sums of the lower and the upper bound."""
        with precision(ctx.prec + 32):
            least = arb(0) if self.low is None else to_arb(self.low.tail(j))
            return least.union(to_arb(self.high.tail(j)))


@traced(2)
def by_envelope(p: Expr, start: int, find: Find) -> Envelope:
    """Bounded oscillations at both ends of their ranges: two biases with sums of their own."""
    q = p.replace(sympy.floor, lambda u: u - sympy.frac(u))
    waves = _waves(q)
    if not 0 < len(waves) <= MAX_WAVES:
        raise Unrecognised("no bounded oscillation that a bound replaces")
    first = start + DIRECT
    low, high = _between(q, waves, first)
    if high.has(S.Infinity, S.NaN, S.NegativeInfinity):
        raise Unrecognised("an oscillation without a bound from above")
    below: Kernel | None = None
    if not low.has(S.NegativeInfinity, S.Infinity, S.NaN):
        with suppress(Unrecognised):
            kernel = find(door.expand(low), first)
            below = kernel if kernel.converges else None
    above = find(door.expand(high), first)
    if not above.converges:
        raise Unrecognised("the bound from above diverges")
    with precision(64):
        least = to_arb(above.tail(first)) * arb(2) ** -SUFFICIENT
        enough = (start + (DIRECT << k) for k in range(1, 3))
        first = next((at for at in enough if to_arb(above.tail(at)) < least), start + MOST_DIRECT)
    return Envelope(start, S.Zero, p, terms(p), first, below, above)


def _between(q: Expr, waves: Mapping[Expr, tuple[Expr, Expr]], first: int) -> tuple[Expr, Expr]:
    """The bias with each wave at one end of its range, from `first` on at most and at least the
    bias; Unrecognised where it is not linear in them."""
    names = {e: sympy.Dummy(real=True) for e in waves}
    marked = q.xreplace(names)
    steps = marked.atoms(sympy.Piecewise, sympy.sign, sympy.floor, sympy.ceiling, sympy.Heaviside)
    if any(e.has(*names.values()) for e in steps):
        raise Unrecognised("a bias that jumps with its oscillations")
    low = high = marked
    for e, name in names.items():
        slope = door.diff(marked, name)
        if door.diff(slope, name) != 0 or slope.has(*(set(names.values()) - {name})):
            raise Unrecognised("a bias that is not linear in its oscillations")
        rising, (least, most) = sign_from(slope, first) > 0, waves[e]
        high = high.subs(name, most if rising else least)
        low = low.subs(name, least if rising else most)
    return low, high


def _waves(q: Expr) -> dict[Expr, tuple[Expr, Expr]]:
    """The outermost oscillating sub-expressions with their ranges."""
    if not q.has(n):
        return {}
    low, high = _range(q)
    if low is S.NegativeInfinity or (high - low).is_positive:
        return {q: (low, high)}
    return {wave: ends for part in q.args for wave, ends in _waves(part).items()}


def _range(e: Expr) -> tuple[Expr, Expr]:
    """The bounds of a wave, or by balls of a function of waves alone; (0, 0) of any other."""
    record = record_of(e.func)
    if record is not None and record.range is not None:
        return record.range(*e.args)
    if isinstance(e, sympy.sign):
        return S.NegativeOne, S.One
    inside = e.args[0] if isinstance(e, sympy.log) else e
    names = {w: sympy.Dummy() for w in inside.atoms(sympy.sin, sympy.cos, sympy.frac)}
    if not e.is_Function or (free := inside.xreplace(names)).has(n):
        return S.Zero, S.Zero
    with precision(64):
        balls = {name: arb.union(*map(number, _range(w))) for w, name in names.items()}
        ball = to_arb(compile_ball(free)(balls))
        ends = (end.man_exp() for end in (ball.lower(), ball.upper()))
        least, most = (sympy.Integer(int(man)) * S(2) ** int(exp) for man, exp in ends)
    if isinstance(e, sympy.log):
        return sympy.log(least) if least > 0 else S.NegativeInfinity, sympy.log(most)
    return (max(least, S.Zero) if isinstance(e, sympy.Abs) else least), most
