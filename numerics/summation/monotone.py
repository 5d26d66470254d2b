"""Completely monotone exp-series: -p is a sum of functions with completely monotone derivative."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import sympy
from flint import acb, arb, ctx
from sympy import Expr, S

from farfield.numerics.enclosures.compiled import compile_complex, compile_real
from farfield.numerics.enclosures.quadrature import line_integral
from farfield.numerics.outcomes import Unrecognised, recognising
from farfield.numerics.summation.euler_maclaurin import Smooth
from farfield.numerics.summation.kernel import number
from farfield.numerics.summation.normal_form import normal_form, sign
from farfield.theory.algebra import door
from farfield.theory.algebra.budget import check_time
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.functions.nodes import n

MAX_EVALUATIONS = 40_000  # of one integrand by adaptive quadrature


@dataclass(frozen=True)
class Monotone(Smooth):
    """Any completely monotone exp(p) whose tail is bounded by one of its factors.

    -p is a sum of functions with completely monotone derivative (`has_monotone_slope`), and p
    contains `rate`: alpha n with alpha < 0 (`rate` = ("linear", -alpha)), or logs with coefficients
    that add up to -r, r > 1 (("log", r)). As the other terms of p do not increase,

        int_X^oo exp(p) <= exp(p(X)) / m,   respectively   exp(p(X)) (X + h) / (r - 1).

    Here h is the largest shift among the logs. If p is a sum of logs (`only_logs`), the latter is
    also at least that divided by `prod ((X+h)/(X+h_i))^{r_i}`. So X = 2^(bits+16) ends the
    quadrature there.
    Up to X the integral is done by rigorous quadrature, in the variable log(x + h).
    """

    bias: Expr
    rate: tuple[str, Expr]
    only_logs: tuple[tuple[Expr, Expr], ...] = ()

    @property
    def completely_monotone(self) -> bool:
        return True

    def decreasing(self, u: arb) -> bool:
        return True

    def exponent(self, u: Any) -> Any:
        return compile_real(self.bias, n)(u - number(self.h))

    def _rest(self, u: arb) -> arb:
        """The integral from u on, of a bound of p that falls at its least rate."""
        kind, r = self.rate[0], number(self.rate[1])
        bound = self.exponent(u).exp() * (1 / r if kind == "linear" else u / (r - 1))
        if not self.only_logs:
            return bound.union(arb(0))
        log = arb(0)
        for h, q in self.only_logs:
            log += number(q) * (u / (u - number(self.h) + number(h))).log()
        return bound.union(bound * (-log).exp())

    def area(self, u: arb) -> arb:
        bits, h = ctx.prec, number(self.h)
        kind, r = self.rate[0], number(self.rate[1])
        drop = (bits + 8) * arb(2).log()
        end = (u + drop / r if kind == "linear" else u * (drop / (r - 1)).exp()).mid()
        if self.only_logs:
            end = end.min(arb(2) ** (bits + 16))
        if not end > u:
            return self._rest(u)
        scale, p = self.exponent(u) + u.log(), compile_complex(self.bias, n)

        def integrand(t: acb, analytic: bool) -> acb:
            return (p(t.exp() - h, analytic) + t - scale).exp()

        found = line_integral(
            integrand,
            acb(u.log()),
            acb(end.log()),
            rel_tol=arb(2) ** -bits,
            abs_tol=arb(2) ** (-bits - 8),
            eval_limit=MAX_EVALUATIONS,
        ).real
        if found.rel_accuracy_bits() < bits // 4:
            raise Unreachable("the integral of exp(p) needs too many evaluations")
        return found * scale.exp() + self._rest(end)


def has_monotone_slope(g: Expr, start: int) -> bool:
    """Whether g is proved to have a completely monotone derivative on [start, oo), by the rules
    n;  g + h;  c g;  log g if g(start) > 0;  g^a, 0 < a <= 1, and -g^a, a < 0, if g(start) > 0.
    """
    check_time()
    if not g.has(n) or g == n:
        return True
    if g.is_Add:
        return all(has_monotone_slope(a, start) for a in g.args)
    if g.is_Mul:
        constant, rest = g.as_independent(n)
        if rest.is_Mul:
            return False
        if rest.is_Pow and not rest.exp.has(n) and sign(rest.exp) < 0:
            return sign(constant) < 0 and _rises_from_positive(rest.base, start)
        return sign(constant) > 0 and has_monotone_slope(rest, start)
    if isinstance(g, sympy.log):
        return _rises_from_positive(g.args[0], start)
    if g.is_Pow and not g.exp.has(n) and sign(g.exp) > 0 and sign(1 - g.exp) >= 0:
        return _rises_from_positive(g.base, start)
    return False


def _rises_from_positive(g: Expr, start: int) -> bool:
    return sign(g.subs(n, start)) > 0 and has_monotone_slope(g, start)


@recognising()
def monotone_kernel(p: Expr, start: int) -> Monotone:
    """The kernel of a bias whose exp the calculus proves completely monotone, in its normal form
    where it has one; Unrecognised for any other."""
    with contextlib.suppress(Unrecognised):
        p = normal_form(p, start).expression()
    p = door.expand(p, deep=False) if p.is_Mul else p
    if not has_monotone_slope(-p, start):
        raise Unrecognised("not proved completely monotone")
    linear = p.coeff(n, 1) if p.is_Add or p.is_Mul else S.Zero
    split = [t.as_independent(n) for t in sympy.Add.make_args(p) if t.has(n)]
    logs = {f.args[0] - n: -r for r, f in split if isinstance(f, sympy.log)}
    plain = {h: r for h, r in logs.items() if h.is_number}
    total = sympy.Add(*plain.values())
    if not linear.has(n) and sign(linear) < 0:
        return Monotone(start, S.Zero, S.One - start, p, ("linear", -linear))
    if plain and sign(total - 1) > 0:
        only = tuple(plain.items()) if len(plain) == len(split) else ()
        h = max(plain, key=lambda h: number(h).mid())
        return Monotone(start, S.Zero, h, p, ("log", total), only)
    raise Unrecognised("no term that bounds the tail")
