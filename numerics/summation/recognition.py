"""Which family sums a bias: by its normal form, else by the calculus of monotone terms."""

from __future__ import annotations

import sympy
from sympy import Expr, S

from farfield.numerics.outcomes import Unrecognised
from farfield.numerics.summation.families import (
    Bertrand,
    Constant,
    Geometric,
    LogNormal,
    Power,
    Rational,
    Stretched,
    above,
)
from farfield.numerics.summation.kernel import Kernel, number
from farfield.numerics.summation.monotone import Monotone, has_monotone_slope
from farfield.numerics.summation.normal_form import NormalForm, normal_form, sign
from farfield.theory.algebra import door
from farfield.theory.algebra.outcomes import Undecided
from farfield.theory.functions.nodes import n


def kernel(p: Expr, start: int = 0) -> Kernel:
    """The kernel of `p` on `n >= start`, found from its normal form alone.

    Raises:
        Unrecognised: when the normal form is none of the families.

    >>> kernel(-2 * sympy.log(1 + sympy.Symbol("n", integer=True, nonnegative=True)))
    Power(start=0, gamma=0, h=1, r=2)
    """
    try:
        form = normal_form(p, start)
    except Unrecognised as reason:
        general = _monotone(p, NormalForm(), start)
        if general is None:
            raise reason
        return general
    try:
        found = _from_form(form, start)
        _ = found.converges, found.direction  # signs, Unrecognised where they are not decided
        return found
    except Unrecognised as reason:
        general = _monotone(form.expression(), form, start)
        if general is None:
            raise reason
        return general


def _monotone(p: Expr, form: NormalForm, start: int) -> Monotone | None:
    """The generic kernel, where the calculus proves exp(p) completely monotone."""
    try:
        p = door.expand(p, deep=False) if p.is_Mul else p
        if not has_monotone_slope(-p, start):
            return None
        rate: tuple[str, Expr] | None = None
        h = S.One - start
        linear = p.coeff(n, 1) if p.is_Add or p.is_Mul else S.Zero
        logs = {
            t.as_independent(n)[1].args[0] - n: -t.as_independent(n)[0]
            for t in sympy.Add.make_args(p)
            if isinstance(t.as_independent(n)[1], sympy.log)
        }
        plain = {h: r for h, r in logs.items() if h.is_number}
        total = sympy.Add(*plain.values())
        if not linear.has(n) and sign(linear) < 0:
            rate = ("linear", -linear)
        elif plain and sign(total - 1) > 0:
            rate = ("log", total)
            h = max(plain, key=lambda h: number(h).mid())
        only = tuple(logs.items()) if set(_kinds(form)) == {"logs"} and form.alpha == 0 else ()
        return None if rate is None else Monotone(start, S.Zero, h, p, rate, only)
    except (Unrecognised, Undecided):
        return None


def _from_form(form: NormalForm, start: int) -> Kernel:
    """The family by which kinds of terms the form has; other combinations have none."""
    if form.iterated:
        return _bertrand(form, start)
    kinds = _kinds(form)
    sizes = [len(getattr(form, k)) for k in kinds]
    if any(size > 1 for size in sizes):
        raise Unrecognised("a sum of several terms of one kind")
    alpha, gamma = form.alpha, form.gamma
    if not kinds:
        return Geometric(start, gamma, alpha) if alpha != 0 else Constant(start, gamma)
    if kinds == ["logs"] and alpha == 0:
        ((h, d),) = form.logs.items()
        return Power(start, gamma, h, -d)
    if kinds == ["logs"] and sign(alpha) < 0:
        ((h, d),) = form.logs.items()
        return Stretched(start, gamma - alpha * h, h, -alpha, S.One, -d)
    if kinds == ["quadratics"] and alpha == 0:
        (((h, c), d),) = form.quadratics.items()
        return Rational(start, gamma, h, c, -d)
    if alpha == 0 and kinds in (["powers"], ["logs", "powers"]):
        (((h, q), r),) = form.powers.items()
        d = S.Zero if "logs" not in kinds else form.logs.get(h)
        if d is not None and sign(q) > 0 and sign(r) < 0:
            if sign(start + h) < 0:
                reason = Unrecognised("the bias increases first")
                reason.later = above(-h)
                raise reason
            return Stretched(start, gamma, h, -r, q, -d)
    if alpha == 0 and kinds in (["squares"], ["logs", "squares"]):
        ((h, c),) = form.squares.items()
        d = S.Zero if "logs" not in kinds else form.logs.get(h)
        if d is not None and sign(c) < 0:
            centre = -d / (2 * c)
            return LogNormal(start, gamma - c * centre**2, h, -c, centre)
    raise Unrecognised("this combination of terms has no certified sum yet")


def _kinds(form: NormalForm) -> list[str]:
    """The kinds of terms that a normal form has beside gamma + alpha n."""
    kinds = ("logs", "squares", "powers", "quadratics", "iterated")
    return [k for k in kinds if getattr(form, k)]


def _bertrand(form: NormalForm, start: int) -> Bertrand:
    """All exponents but the last must be 1, all shifts equal."""
    depth = max(k for _, k in form.iterated)
    shifts = {*form.logs, *(h for h, _ in form.iterated)}
    others = form.squares or form.powers or form.quadratics or form.alpha != 0
    if others or len(shifts) != 1:
        raise Unrecognised("an iterated logarithm with other terms")
    h = shifts.pop()
    chain = [form.logs.get(h, S.Zero)] + [
        form.iterated.get((h, k), S.Zero) for k in range(2, depth + 1)
    ]
    if any(sign(c + 1) != 0 for c in chain[:-1]) or sign(chain[-1]) >= 0:
        raise Unrecognised("an iterated logarithm that is not of Bertrand's form")
    return Bertrand(start, form.gamma, h, depth, -chain[-1])
