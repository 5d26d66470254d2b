r"""The infimum of a function of one angle, rigorously: an enclosure, or exactly with its order.

The functions have period 2 pi in `ANGLE` and are analytic but for finitely many corners and jumps:
built from sin, cos, frac, Abs, sign, Min, Max and elementary functions.

**Enclosure.** Arcs cover the circle, and balls bound the function on each arc. The arc
with the least lower bound is halved until the least upper bound is near. That upper bound holds on
a whole arc, so the function is at most this on a set of positive measure.

**Exactly.** A minimal point x* is guessed in closed form (a rational multiple of pi, or an angle
with a simple sine, cosine or tangent) and then proved. On either side, for 0 < t <= r, the
function equals an analytic g(t) once the signs inside Abs, Min, Max, ... are known there. Each
such sign, and the order of the minimum, come from one lemma (Taylor):

    Let g(0) = g'(0) = ... = g^(e-1)(0) = 0, and let g^(e) have no zero on [0, r].
    Then g(t) has the sign of g^(e) on (0, r], and |g(t)| is between multiples of t^e.

The vanishing derivatives are proved by exact zero tests, the last one is enclosed by balls. On the
rest of the circle balls prove that the function stays above its infimum. Let e be the largest order
found at the minimal points. As m -> oo,

    int exp(-m (f(x) - inf f)) dx   is between multiples of m^(-1/e).

The integrand is monotone on boundedly many arcs.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from functools import lru_cache

import sympy
from flint import arb, fmpq
from sympy import Basic, Expr, Rational, S, Symbol

from farfield.theory.algebra import door
from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.coefficients.exact import coefficient, to_sympy
from farfield.theory.coefficients.signs import Context, proved_rational
from farfield.theory.evaluation.real_balls import Environment
from farfield.theory.formula.bounded_nodes import branches_taken
from farfield.theory.functions.balls import Ball, Undefined, precision, to_arb
from farfield.theory.values import compile_ball
from farfield.theory.waves.phases import ANGLE

MAX_ARCS = 400
MAX_ORDER = 8
BITS = 96
_BRANCHES = (sympy.Abs, sympy.sign, sympy.Heaviside, sympy.Min, sympy.Max, sympy.frac)
Evaluator = Callable[[arb], arb]


# -- enclosure ------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _evaluator(f: Expr) -> Evaluator:
    """A function of a ball of angles; jumps inside the ball give all values between."""
    swap: dict[Expr, Expr] = {}
    jumps: list[tuple[Symbol, type[Basic], Callable[[Environment], Ball]]] = []
    for e in sympy.postorder_traversal(f):
        if isinstance(e, (sympy.sign, sympy.Heaviside, sympy.frac)) and e not in swap:
            symbol = sympy.Dummy(real=True)
            jumps.append((symbol, e.func, compile_ball(e.args[0].xreplace(swap))))
            swap[e] = symbol
    body = compile_ball(f.xreplace(swap))

    def value(x: arb) -> arb:
        env: dict[Symbol, Ball] = {ANGLE: x}
        for symbol, kind, inner in jumps:
            env[symbol] = _jump(kind, to_arb(inner(env)))
        return to_arb(body(env))

    return value


def _jump(kind: object, y: arb) -> arb:
    """A function with jumps on a ball, the values on both sides of a jump included."""
    if kind is sympy.frac:
        low, high = (end.floor().unique_fmpz() for end in (y.lower(), y.upper()))
        return y - low if low is not None and low == high else arb(0.5, 0.5)
    if y > 0 or y < 0:
        s = arb(1) if y > 0 else arb(-1)
    else:
        s = arb(0, 1)
    return s if kind is sympy.sign else (1 + s) / 2


@lru_cache(maxsize=256)
def enclosure(f: Expr, gap: float) -> tuple[fmpq | None, fmpq, tuple[tuple[float, float], ...]]:
    """(low, high, where): f >= low everywhere and f <= high on some arc, high - low at most `gap`
    where that can be reached; `low` is None where balls find no bound. `where` are arcs that may
    hold a minimum.

    Raises:
        Undecided: when balls find no bound on any arc.

    >>> low, high, _ = enclosure(sympy.sin(ANGLE) + sympy.cos(2 * ANGLE), 0.01)
    >>> float(low) < -2 <= float(high) < -1.98
    True
    """
    try:
        value = _evaluator(f)
    except Undefined:
        raise Undecided("the bounds of an oscillation") from None
    heap: list[tuple[float, int, int, fmpq]] = []
    best: fmpq | None = None
    with precision(BITS):

        def push(level: int, k: int) -> None:
            nonlocal best
            radius = 2.0**-level
            try:
                ball = value(arb((2 * k + 1) * radius, radius))
                low, high = ball.lower(), ball.upper()
            except Undefined:
                low = high = None
            if low is None or not (low.is_finite() and high.is_finite()):
                heapq.heappush(heap, (-math.inf, level, k, fmpq(0)))
                return
            if best is None or high.fmpq() < best:
                best = high.fmpq()
            heapq.heappush(heap, (float(low), level, k, low.fmpq()))

        for k in range(26):  # [0, 6.5] holds a period
            push(3, k)
        for _ in range(MAX_ARCS):
            least, level, k, _ = heap[0]
            if best is not None and least > -math.inf and float(best) - least < gap:
                break
            heapq.heappop(heap)
            push(level + 1, 2 * k)
            push(level + 1, 2 * k + 1)
    if best is None:
        raise Undecided("the bounds of an oscillation")
    near = tuple(
        (2 * k * 2.0**-level, 2 * (k + 1) * 2.0**-level)
        for low, level, k, _ in heap
        if low <= float(best)
    )
    return (None if heap[0][0] == -math.inf else heap[0][3]), best, near


# -- exactly --------------------------------------------------------------------------------------


def infimum(f: Expr, context: Context) -> tuple[Expr, int, int]:
    """inf f, the largest order of a minimum, and an exponent e, all proved.

    e is the largest with `f - inf f = O(|x - x*|^e)` on both sides of some x*, 0 if there is none.

    Raises:
        Undecided: when no guess can be proved.

    >>> infimum(sympy.sin(ANGLE) + sympy.cos(2 * ANGLE), Context())
    (-2, 2, 2)
    """
    points = list(dict.fromkeys(_closed_form(x) for x in _refined(f)))
    sides = [(p, _Side(f, p, way, context)) for p in points for way in (1, -1)]
    low = sides[0][1].limit
    for _, side in sides[1:]:
        low = side.limit if context.sign(coefficient(side.limit - low)) < 0 else low
    orders: dict[Expr, list[int]] = {p: [] for p in points}
    reach: dict[Expr, list[float]] = {p: [] for p in points}
    for p, side in sides:
        if context.sign(coefficient(side.limit - low)):
            radius = _radius_above(side.branch - low)
        else:
            e, s, radius = _leading(side.branch - low, context)
            assert s > 0
            orders[p].append(e)
        reach[p].append(min(radius, side.radius))
    _check_rest(f - low, [(float(p) - b, float(p) + a) for p, (a, b) in reach.items()])
    largest = max(max(pair, default=0) for pair in orders.values())
    return low, largest, max(min(pair) if len(pair) == 2 else 0 for pair in orders.values())


def _refined(f: Expr) -> list[float]:
    """Where the minima are, by ternary search in the arcs that the enclosure leaves."""
    low, high, near = enclosure(f, 1e-5)
    if low is None:
        raise Undecided("the bounds of an oscillation")
    value = _evaluator(f)

    def height(x: float) -> arb:
        try:
            return value(arb(x)).mid()
        except Undefined:
            return arb(10) ** 9

    clusters: list[list[float]] = []
    for a, b in sorted(near):
        if clusters and a - clusters[-1][1] < 0.01:
            clusters[-1][1] = max(b, clusters[-1][1])
        else:
            clusters.append([a, b])
    if len(clusters) > 12:
        raise Undecided("an oscillation with many minima")
    out = []
    with precision(160):
        for x, y in clusters:
            x, y = x - 0.01, y + 0.01
            for _ in range(60):
                a, b = x + (y - x) / 3, y - (y - x) / 3
                x, y = (x, b) if height(a) < height(b) else (a, y)
            if any(height(t) <= high + fmpq(1, 10**5) for t in (x, y, x - 1e-7, y + 1e-7)):
                out.append(x % (2 * math.pi))
    return out


def _closed_form(x: float) -> Expr:
    """A simple angle near x."""
    turn = Rational(x / math.pi).limit_denominator(60)
    if abs(float(turn) * math.pi - x) < 1e-6:
        return turn % 2 * sympy.pi
    for name, inverse in ((math.sin, sympy.asin), (math.cos, sympy.acos), (math.tan, sympy.atan)):
        ratio = Rational(name(x)).limit_denominator(60)
        if abs(float(ratio) - name(x)) < 1e-6:
            angle = inverse(ratio)
            for point in (angle, sympy.pi - angle, -angle, sympy.pi + angle):
                if abs((float(point) - x + math.pi) % (2 * math.pi) - math.pi) < 1e-6:
                    return point
    raise Undecided("no closed form of the minimum of an oscillation")


def _moved(f: Expr, point: Expr, way: int) -> Expr:
    """f(point + way t), t called ANGLE, with exact constants."""
    swap = {}
    for e in f.atoms(sympy.sin, sympy.cos, sympy.frac):
        if not e.has(ANGLE):
            continue
        slope = e.args[0].coeff(ANGLE)
        offset = e.args[0] - slope * ANGLE
        if isinstance(e, sympy.frac):
            swap[e] = sympy.frac(way * slope * ANGLE + slope * point + offset, evaluate=False)
            continue
        sine, cosine = _sine_cosine(slope * point, offset)
        s, c = sympy.sin(slope * ANGLE), sympy.cos(slope * ANGLE)
        if isinstance(e, sympy.sin):
            swap[e] = sine * c + way * cosine * s
        else:
            swap[e] = cosine * c - way * sine * s
    return f.xreplace(swap)


def _sine_cosine(angle: Expr, offset: Expr) -> tuple[Expr, Expr]:
    """sin and cos of angle + offset, expanded by the offset where no value is known."""
    if (angle / sympy.pi).is_Rational:
        return sympy.sin(angle + offset), sympy.cos(angle + offset)
    s, c = door.expand_trig(sympy.sin(angle)), door.expand_trig(sympy.cos(angle))
    so, co = sympy.sin(offset), sympy.cos(offset)
    return door.expand(s * co + c * so), door.expand(c * co - s * so)


class _Side:
    """f on one side of a point: on (0, radius] it is `branch`, analytic in ANGLE, the distance."""

    def __init__(self, f: Expr, point: Expr, way: int, context: Context) -> None:
        self.context = context
        self.radius = 0.5
        self.branch = branches_taken(_moved(f, point, way), self, _BRANCHES)
        self.limit = to_sympy(proved_rational(_at_zero(self.branch), context))

    def difference(self, x: Expr, y: Expr) -> int:
        """The sign of x - y on (0, radius]."""
        return self.sign(x - y)

    def sign(self, g: Expr) -> int:
        """The sign of g on (0, radius]."""
        if door.expand_trig(door.expand(g)) == 0:
            return 0
        if s := self.context.sign(coefficient(_at_zero(g))):
            radius = _radius_above(s * g)
        else:
            _, s, radius = _leading(g, self.context)
        self.radius = min(self.radius, radius)
        return s

    def floor(self, y: Expr) -> Expr:
        """The floor of y on (0, radius]."""
        start = _at_zero(y)
        with precision(BITS):
            near = (to_arb(compile_ball(start)({})) + fmpq(1, 2)).floor().unique_fmpz()
        if near is None:
            raise Undecided("a jump of an oscillation")
        k = sympy.Integer(int(near))
        k = k if self.sign(y - k) >= 0 else k - 1
        if self.sign(k + 1 - y) <= 0:
            raise Undecided("a jump of an oscillation")
        return k


def _at_zero(g: Expr) -> Expr:
    """The value at angle 0; Undecided at a pole."""
    value = g.xreplace({ANGLE: S.Zero})
    if value.has(S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity):
        raise Undecided("an oscillation that is not analytic at its minimum")
    return value


def _positive_on(g: Expr, radius: float) -> bool:
    """Whether g > 0 on [0, radius], by one ball."""
    with precision(BITS):
        try:
            return bool(to_arb(compile_ball(g)({ANGLE: arb(radius / 2, radius / 2)})) > 0)
        except Undefined:
            return False


def _radius_above(g: Expr) -> float:
    """An r with g > 0 on [0, r]."""
    for radius in (2.0**-k for k in range(1, 14)):
        if _positive_on(g, radius):
            return radius
    raise Undecided("the sign of an oscillation near its minimum")


def _leading(g: Expr, context: Context) -> tuple[int, int, float]:
    """(e, s, r) by the lemma: g has the sign s and the order e on (0, r]."""
    for e in range(MAX_ORDER + 1):
        if s := context.sign(coefficient(_at_zero(g))):
            return e, s, _radius_above(s * g)
        g = door.diff(g, ANGLE)
    raise Undecided("a minimum of high order")


def _check_rest(f: Expr, reach: list[tuple[float, float]]) -> None:
    """Prove f > 0 outside the given arcs."""
    value = _evaluator(f)
    arcs = [(2 * k * 2.0**-3, 2 * (k + 1) * 2.0**-3) for k in range(26)]
    turns = (-2 * math.pi, 0.0, 2 * math.pi)
    count = 0
    with precision(BITS):
        while arcs:
            a, b = arcs.pop()
            if any(x + t + 1e-9 < a and b < y + t - 1e-9 for x, y in reach for t in turns):
                continue
            try:
                if value(arb((a + b) / 2, (b - a) / 2)) > 0:
                    continue
            except Undefined:
                pass
            count += 1
            if count > MAX_ARCS:
                raise Undecided("the infimum of an oscillation")
            arcs += [(a, (a + b) / 2), ((a + b) / 2, b)]
