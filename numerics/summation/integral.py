"""Integrals of exp(p): by quadrature on an interval; beyond a point, panel by panel and a rest.

t = log ... log x, d-fold, d the least with e^{h(t)} dt = e^p dx falling exponentially. Rigorous
quadrature goes panel by panel: in s = log x up to where 2^-bits of x is lost in h, and in t beyond.
There h is simplified by leaving out what is tiny. The rest beyond the last panel is bounded by
e^{-cS}/c, h(t) <= -c t on [S, oo) by a `TailEnclosure`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import sympy
from flint import acb, arb, ctx, fmpq
from sympy import Expr, Symbol

from farfield.numerics.enclosures.compiled import compile_complex, compile_real
from farfield.numerics.enclosures.tails import TailEnclosure, Unproved, level, tail_enclosure
from farfield.numerics.summation.analytic_bias import falls, half_line
from farfield.numerics.summation.kept_sums import memory, remembered
from farfield.theory.algebra import door
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.functions.balls import precision
from farfield.theory.functions.elementary import expm1, expm1_rest, log1p, log1p_rest

_RESTS = {log1p: log1p_rest, expm1: expm1_rest}
MAX_OPERATIONS = 120  # of an exponent whose tiny parts are looked for
MAX_EVALUATIONS = 200_000  # of the integrand on one interval
MAX_PANELS = 2_000  # panels before an integral counts as not bounded
DROP = 40  # by how much the exponent may fall on a panel: e^-40 costs 58 bits there
FIRST_EDGE = 3.75  # log of the first x that a panel begins at; the terms before are summed
STEP = 1.5  # length of a panel in log x
LEVELS = (96, 128, 192, 320, 576, 832, 1_216)  # precisions that share panels


def integral(exponent: Expr, x: Symbol, a: arb, b: arb) -> arb:
    """int_a^b of e^h dx, h an expression in x, by FLINT: Gauss-Legendre rules on intervals that are
    halved as needed, with bounds on ellipses where h is proved analytic (Petras 2002).

    Raises:
        Unreachable: h is not analytic around the interval, or too rough; `OutOfTime`.

    >>> import sympy
    >>> x = sympy.Symbol("x")
    >>> print(integral(-x, x, arb(0), arb(1)).str(6))
    [0.632121 +/- 4.42e-7]
    """
    program, failures = compile_complex(exponent, x), list[BaseException]()

    def integrand(z: acb, analytic: bool) -> acb:
        if not failures:
            try:
                door.check_time()
                return program(z, analytic).exp()
            except BaseException as why:  # through FLINT it would end the process
                failures.append(why)
        return acb("nan")

    value = acb.integral(integrand, a, b, abs_tol=arb(0), eval_limit=MAX_EVALUATIONS)
    if failures:
        raise failures[0]
    if not value.is_finite():
        raise Unreachable("the integrand is not analytic near the half-line")
    return value.real


@dataclass(frozen=True)
class PanelEdge:
    """An end of panels: its s where the panel before it is one in s, the exponent there.

    `t` is exact where the panel before is one in t, else rounded.
    """

    t: arb
    near: arb | None
    height: arb


@dataclass(frozen=True)
class TailIntegral:
    """int_t^oo e^{h(t)} dt; `near` is the exponent in s, `h` in t, the (depth-1)-fold log of s."""

    s: Symbol
    near: Expr
    depth: int
    t: Symbol
    h: Expr

    def to_t(self, x: arb) -> arb:
        """The t of an x."""
        return self._down(x.log())

    def exponent(self, t: arb) -> arb:
        """h(t), its tiny terms aside."""
        value = compile_real(self.h, self.t)(t)
        if not value.is_finite():
            value = self._height(t, False)
        return value

    def rest(self, t: arb, goal: arb) -> arb:
        """A bound of int_t^oo e^h, below `goal` where that is proved."""
        proofs: list[tuple[arb, arb]] = memory(self).setdefault("rests", [])
        with precision(128):
            t = t.mid()
            best = arb.pos_inf()
            for since, c in proofs:
                if since <= t:
                    best = best.min((-c * t).exp() / c)
            if best < goal:
                return best
            size = self.exponent(t)
            with suppress(Unproved):
                g = self._on_half_line(self._up(t))
                for share in (0.95, 0.8, 0.5):
                    c = (-size / t * arb(share)).mid()
                    if c > 0 and falls(g, c, self.depth):
                        proofs.append((t, c))
                        return best.min((-c * t).exp() / c)
            return best

    def _on_half_line(self, log_x: arb) -> TailEnclosure:
        """h(t) enclosed for all x whose logarithm is at least this."""
        where = half_line(log_x)
        return tail_enclosure(self.h, self.t, TailEnclosure(where, {level(self.depth): fmpq(1)}))

    def _panel(self, a: arb, b: arb, near: bool) -> arb:
        """The integral from a to b, in s or in t."""
        if near:
            return integral(self.near, self.s, a, b)
        form, loss = self._far_form(ctx.prec)
        return integral(form, self.t, a, b) * (1 + arb(0, loss))

    @remembered
    def _far_since(self, bits: int) -> arb:
        """The t from which on terms below 2^-bits are left out: x = 2^(bits + 24)."""
        with precision(128):
            return self._down((bits + 24) * arb(2).log()).mid()

    @remembered
    def _far_form(self, bits: int) -> tuple[Expr, arb]:
        """h without the parts that are tiny beside 2^-bits, and the change that makes."""
        since = self._far_since(bits)
        with precision(128):
            variable = TailEnclosure(half_line(self._up(since)), {level(self.depth): fmpq(1)})
            return without_tiny(self.h, self.t, variable, arb(2) ** -(bits + 8))

    def _edge(self, k: int) -> PanelEdge:
        """Panel edges: steps in s up to x = 2^(bits + 24), steps in t beyond, longer and longer;
        shorter where the exponent falls by more than `DROP` on a panel."""
        edges: list[PanelEdge] = memory(self).setdefault(("edges", ctx.prec), [])
        while len(edges) <= k:
            since = self._far_since(ctx.prec)
            with precision(64):
                if not edges:
                    at = arb(FIRST_EDGE)
                    edges.append(PanelEdge(self._down(at), at, self._height(at, True)))
                    continue
                last = edges[-1]
                near = last.near is not None and last.t < since
                at, height = last.t, last.height
                if near and last.near is not None:
                    at = last.near
                elif last.near is not None:
                    height = self._height(at, False)
                width = arb(STEP) if near else arb(1).max(at / 4)
                while True:
                    trial = (at + width).mid()
                    value = self._height(trial, near)
                    if value - height > -DROP or width < fmpq(1, 1024):
                        break
                    width /= 2
                t = self._down(trial).mid() if near else trial
                edges.append(PanelEdge(t, trial if near else None, value))
        return edges[k]

    def _down(self, s: arb) -> arb:
        """The t of an s."""
        for _ in range(self.depth - 1):
            s = s.log()
        return s

    def _up(self, t: arb) -> arb:
        """The s of a t."""
        for _ in range(self.depth - 1):
            t = t.exp()
        return t

    def _height(self, at: arb, near: bool) -> arb:
        """The logarithm of the integrand, in the variable near the start or in t."""
        form, x = (self.near, self.s) if near else (self._far_form(ctx.prec)[0], self.t)
        value = compile_real(form, x)(at)
        if not value.is_finite():
            raise Unreachable("the integrand is not analytic on the whole half-line")
        return value

    def beyond(self, t: arb) -> arb:
        """int_t^oo e^h; panels are shared between nearby precisions."""
        bits = next((b for b in LEVELS if b >= ctx.prec), ctx.prec)
        with precision(bits):
            return self._area(t)

    def _area(self, t: arb) -> arb:
        """Panels of growing width, until the rest is below the precision; panels are kept."""
        bits, k, since = ctx.prec, 0, self._far_since(ctx.prec)
        while not self._edge(k).t > t:
            k += 1
        panels = memory(self).setdefault(("panels", bits), {})
        if t < since:
            end = self._edge(k)
            total = self._panel(
                self._up(t), self._up(end.t) if end.near is None else end.near, True
            )
        else:
            total = self._panel(t, self._edge(k).t, False)
        for i in range(k, k + MAX_PANELS):
            edge = self._edge(i)
            at = edge.t if edge.near is None else edge.near
            small = edge.height.exp() * (abs(at) + 1) < total * arb(2) ** -(bits + 4)
            if small or not memory(self).get("rests"):  # a proof holds from there on
                t = edge.t - (1 + abs(edge.t)) * fmpq(1, 2**40)
                rest = self.rest(t, total * arb(2) ** -bits)
                if rest < total * arb(2) ** -(bits - 4):
                    return total + arb(0).union(rest.upper())
            if i not in panels:
                after = self._edge(i + 1)
                if after.near is not None and edge.near is not None:
                    panels[i] = self._panel(edge.near, after.near, True)
                else:
                    start = edge.t if edge.near is None else self._down(edge.near)
                    panels[i] = self._panel(start, after.t, False)
            total += panels[i]
        raise Unreachable("the integral of exp(p) is not bounded within its panels")


def without_tiny(h: Expr, t: Symbol, variable: TailEnclosure, goal: arb) -> tuple[Expr, arb]:
    """h with its tiny sub-expressions set to 0, and a bound of what that changes:
    sum |dh/dtau_i| |tau_i|, the derivatives anywhere between 0 and tau."""
    if h.count_ops() > MAX_OPERATIONS:
        return h, arb(0)
    names: dict[Expr, Symbol] = {}
    sizes: dict[Expr, TailEnclosure] = {}

    def mark(e: Expr) -> Expr:
        if not e.has(t) or e == t:
            return e
        if e.is_Function:
            with suppress(Unproved):
                value = tail_enclosure(e, t, variable)
                if abs(value.small()).upper() < goal:
                    name = names.setdefault(e, sympy.Dummy())
                    sizes[name] = value.with_zero()
                    return name
        return e.func(*(mark(a) for a in e.args))

    def linear(e: Expr) -> Expr:
        """log1p and expm1 of a small x as x plus a rest, so that products cancel."""
        if not e.has(t) or e == t:
            return e
        e = e.func(*(linear(a) for a in e.args))
        rest = _RESTS.get(e.func)
        if rest is None:
            return e
        try:
            value = tail_enclosure(e.args[0], t, variable).small()
        except Unproved:
            return e
        return e.args[0] + rest(e.args[0]) if abs(value).upper() < fmpq(1, 8) else e

    marked, loss = mark(door.expand_mul(linear(h))), arb(0)
    try:
        for name, value in sizes.items():
            slope = tail_enclosure(door.diff(marked, name), t, variable, sizes)
            loss += abs((slope * value).small()).upper()
    except Unproved:
        return h, arb(0)
    if not loss < goal:
        return h, arb(0)
    return marked.subs(dict.fromkeys(sizes, 0)), (2 * loss).upper()
