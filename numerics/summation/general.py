"""The kernel of a bias that is in none of the families: analytic, light, or put together.

* A bias with periodic parts is split into its residue classes, each with a kernel of its own.
* Steps -a floor(log(n + h)/log b), b an integer, are constant on [b^v - h, b^{v+1} - h): the sum
  over the steps is geometric.
* Waves of constant amplitude on a completely monotone term are expanded (`waves`), and so is one
  wave whose amplitude grows (`growing_waves`).
* A function of one rotation, added to a bias that falls, is averaged (`rotations`).
* Other bounded oscillations (sin, cos, frac, Mod, log|sin|) are replaced by their extremes, in the
  direction in which the bias depends on them: from `DIRECT` terms on (more, where that
  makes the rest negligible) the tail lies between those of the two biases, before it the terms are
  summed one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import sympy
from flint import arb, fmpq
from sympy import Expr, S
from sympy.core.relational import Relational

from farfield.numerics.outcomes import Unrecognised, recognising
from farfield.numerics.summation.analytic import analytic_kernel
from farfield.numerics.summation.analytic_bias import sign_from
from farfield.numerics.summation.kernel import ComposedKernel, Direct, Kernel, number
from farfield.numerics.summation.normal_form import sign
from farfield.numerics.summation.oscillatory.growing_waves import growing_wave_kernel
from farfield.numerics.summation.oscillatory.rotations import rotation_kernel
from farfield.numerics.summation.oscillatory.waves import ByParts, expanded, waves_kernel
from farfield.numerics.summation.recognition import kernel
from farfield.theory.algebra import door
from farfield.theory.algebra.outcomes import OutOfTime, Unreachable
from farfield.theory.decision.periods import common_period, residue_class
from farfield.theory.functions.balls import precision, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.functions.record import record_of

DIRECT = 1 << 14  # terms summed one by one before a bound of an oscillation takes over
SUFFICIENT = 24  # bits of the sum below which the rest beyond them matters no more
MAX_PERIOD = 48  # residue classes, each a kernel of its own; 48 holds 2, 3, 4, 6, 8, 12, 16
FEW = 6  # residue classes that may be put together in turn: the work multiplies
MAX_WAVES = 6  # oscillations replaced by bounds, which widen with each
MAX_OPERATIONS = 80  # of a formula whose products of waves are multiplied out


@recognising()
def general_kernel(p: Expr, start: int) -> Kernel:
    """A kernel for `p` on n >= start; Unrecognised where nothing is proved."""
    p = _linear_in_waves(p)
    for build in (
        _steps,
        _classes,
        analytic_kernel,
        kernel,
        partial(waves_kernel, find=_any_kernel),
        growing_wave_kernel,
        partial(rotation_kernel, find=_any_kernel),
        _envelope,
    ):
        try:
            found = build(p, start)
            if isinstance(found, ByParts) and found.converges:  # waves may be too dense to sum
                with precision(found.first_bits):
                    found.tail(start)
            return found
        except OutOfTime:
            raise
        except Unrecognised as why:
            reason = why
        except Unreachable as why:
            reason = Unrecognised(str(why))
    raise reason


def _linear_in_waves(p: Expr) -> Expr:
    """p with products and powers of sines and cosines as sums: sin^2 + cos^2 is 1."""
    waves = [w for w in p.atoms(sympy.sin, sympy.cos) if w.has(n)]
    if not waves or p.count_ops() > MAX_OPERATIONS:
        return p
    wide = expanded(p)
    products = [m for m in wide.atoms(sympy.Mul, sympy.Pow) if _factors(m, waves) > 1]
    return door.expand(door.products_to_sums(wide)) if products else p


def _factors(m: Expr, waves: list[Expr]) -> int:
    """How many waves a product or a power multiplies."""
    powers = [f.as_base_exp() for f in sympy.Mul.make_args(m)]
    return sum(int(k) for base, k in powers if base in waves and k.is_Integer and k > 0)


def _any_kernel(p: Expr, start: int) -> Kernel:
    """A family's kernel, else an analytic one."""
    try:
        return kernel(p, start)
    except Unrecognised:
        return analytic_kernel(p, start)


# -- residue classes ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Classes(ComposedKernel):
    """exp(p) as the sum of its residue classes n = period k + r."""

    period: int
    parts: tuple[Kernel, ...]

    @property
    def converges(self) -> bool:
        return all(k.converges for k in self.parts)

    def tail(self, j: int) -> Any:
        total: Any = fmpq(0)
        for r, part in enumerate(self.parts):
            total = total + part.tail(max(part.start, -((r - j) // self.period)))
        return total


def _classes(p: Expr, start: int) -> Classes:
    """One kernel a residue class of the period, that of oscillations or else of roundings."""
    period = common_period(p)
    if period == 1:
        period = common_period(p, rounding=True)
    if not 1 < period <= MAX_PERIOD:
        raise Unrecognised("no period")
    parts = []
    for r in range(period):
        first = max(0, -((r - start) // period))
        part = residue_class(p, period, r)
        decided = {c: c.func(*c.args) for c in part.atoms(Relational) if not c.free_symbols}
        part = part.xreplace(decided)
        try:
            parts.append(_any_kernel(part, first))
        except Unrecognised:
            if period > FEW or common_period(part, rounding=True) > 1:
                raise
            parts.append(general_kernel(part, first))
    return Classes(start, S.Zero, period, tuple(parts))


# -- steps ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StepsKernel(ComposedKernel):
    """p = gamma - a floor(log(n + h)/log b)."""

    a: Expr
    h: int
    b: int

    @property
    def converges(self) -> bool:
        return sign(self.a - sympy.log(self.b)) > 0

    def tail(self, j: int) -> arb:
        v, end = 0, self.b
        while end <= j + self.h:
            v, end = v + 1, end * self.b
        q = (-number(self.a)).exp()
        later = (self.b - 1) * (self.b * q) ** (v + 1) / (1 - self.b * q)
        return number(self.gamma).exp() * ((end - self.h - j) * q**v + later)


def _steps(p: Expr, start: int) -> StepsKernel:
    """a floor(log_b (n + h)): constant between powers of b, so a geometric series."""
    gamma, rest = p.as_independent(n, as_Add=True)
    a, floor = rest.as_independent(n, as_Add=False)
    if not isinstance(floor, sympy.floor):
        raise Unrecognised("no steps")
    scale, log = floor.args[0].as_independent(n, as_Add=False)
    base = sympy.exp(1 / scale)
    if isinstance(log, sympy.log) and base.is_Integer and base > 1:
        h = log.args[0] - n
        if h.is_Integer and start + h >= 1:
            return StepsKernel(start, gamma, -a, int(h), int(base))
    raise Unrecognised("no steps of a logarithm")


# -- bounded oscillations -------------------------------------------------------------------------


@dataclass(frozen=True)
class Envelope(Direct):
    """A bias between two others from `first` on."""

    low: Kernel | None
    high: Kernel

    def _beyond(self, j: int) -> arb:
        """Between the sums of the lower and the upper bound."""
        least = arb(0) if self.low is None else to_arb(self.low.tail(j))
        return least.union(to_arb(self.high.tail(j)))


def _envelope(p: Expr, start: int) -> Envelope:
    """Bounded oscillations at both ends of their ranges: two biases with sums of their own."""
    q = p.replace(sympy.floor, lambda u: u - sympy.frac(u))
    waves = _waves(q)
    if not 0 < len(waves) <= MAX_WAVES:
        raise Unrecognised("no bounded oscillation that a bound replaces")
    first = start + DIRECT
    names = {e: sympy.Dummy(real=True) for e in waves}
    marked = q.xreplace(names)
    steps = marked.atoms(sympy.Piecewise, sympy.sign, sympy.floor, sympy.ceiling, sympy.Heaviside)
    if any(e.has(*names.values()) for e in steps):
        raise Unrecognised("a bias that jumps with its oscillations")
    high = low = marked
    for e, name in names.items():
        slope = door.diff(marked, name)
        if door.diff(slope, name) != 0 or slope.has(*(set(names.values()) - {name})):
            raise Unrecognised("a bias that is not linear in its oscillations")
        rising, (least, most) = sign_from(slope, first) > 0, waves[e]
        high = high.subs(name, most if rising else least)
        low = low.subs(name, least if rising else most)
    if high.has(S.Infinity, S.NaN, S.NegativeInfinity):
        raise Unrecognised("an oscillation without a bound from above")
    below: Kernel | None = None
    if not low.has(S.NegativeInfinity, S.Infinity, S.NaN):
        try:
            below = _any_kernel(door.expand(low), first)
            below = below if below.converges else None
        except Unrecognised:
            below = None
    above = _any_kernel(door.expand(high), first)
    if not above.converges:
        raise Unrecognised("the bound from above diverges")
    with precision(64):
        least = to_arb(above.tail(first)) * arb(2) ** -SUFFICIENT
        enough = (start + (DIRECT << k) for k in range(1, 4))
        first = next((at for at in enough if to_arb(above.tail(at)) < least), first)
    return Envelope(start, S.Zero, p, first, below, above)


def _waves(q: Expr) -> dict[Expr, tuple[Expr, Expr]]:
    """The outermost oscillating sub-expressions with their ranges."""
    found: dict[Expr, tuple[Expr, Expr]] = {}

    def visit(e: Expr) -> None:
        if not e.has(n):
            return
        if isinstance(e, sympy.log) and e.args[0].func in (sympy.Abs,):
            inner = e.args[0].args[0]
            if inner.func in (sympy.sin, sympy.cos):
                found[e] = (S.NegativeInfinity, S.Zero)
                return
        record = record_of(e.func)
        low, high = record.range(*e.args) if record and record.range else (S.Zero, S.Zero)
        if (high - low).is_positive:
            found[e] = low, high
        else:
            for a in e.args:
                visit(a)

    visit(q)
    return found
