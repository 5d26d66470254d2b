"""Periodic parts of a formula: their periods, and their values on a residue class."""

from __future__ import annotations

import math
from collections.abc import Iterator

import sympy
from sympy import Expr, Integer, S

from farfield.theory.certificates.forms import Form
from farfield.theory.functions.nodes import n

Place = tuple[int, int] | None  # the residue class q n + r as (q, r); None for all n


def period(p: Form) -> int:
    """A common period of the signs, residues and waves of a formula; 1 where there are none."""
    return math.lcm(*_periods(p))


def _periods(f: Form) -> Iterator[int]:
    """The periods of all parts, each with a multiple that brings the whole back."""
    yield 1
    if f.op == "sign":
        yield 2
    elif f.op == "mod":
        yield f.value[1]
    elif f.op in ("cos", "sin") and (speed := _speed(f)) is not None:
        yield int((speed / 2).q)
    for a in f.args:
        yield from _periods(a)


def _speed(f: Form) -> Expr | None:
    """The s of a wave of the phase pi s n + ..., a rational number."""
    phase = f.args[0].expr
    slope = phase.coeff(n, 1)
    speed = slope / S.Pi
    rest = sympy.expand(phase - slope * n)
    return speed if speed.is_Rational and speed != 0 and not rest.has(n) else None


def bounded(f: Form, place: Place) -> bool:
    """Whether a part is put together from waves, signs, residues and constants, and has no
    value of its own on the residue class at hand."""
    if f.op in ("cos", "sin", "sign", "mod"):
        return value_on_class(f, place) is None
    if f.op == "rpower" and f.args[0].constant:  # z^(c n) with 0 < z <= 1 and c >= 0
        z, speed = f.args[0].expr, f.args[1].expr / n
        return bool(z.is_Rational and 0 < z <= 1 and speed.is_Rational and speed >= 0)
    if f.op == "div":
        return bounded(f.args[0], place) and f.args[1].constant
    parts = f.op in ("plus", "minus", "opp", "mult", "power", "sum")
    return f.constant or (parts and all(bounded(a, place) for a in f.args))


def value_on_class(f: Form, place: Place) -> tuple[Expr, str] | None:
    """The rational value of a periodic part at q n + r, and the tactic that proves it."""
    if place is None:
        return None
    q, r = place
    if f.op == "sign":
        a, b = f.value
        if (a * q) % 2:
            return None
        value = Integer((-1) ** (a * r + b))
        return value, f"sign_value {a * q}%nat {a * r + b}%nat"
    if f.op == "mod":
        (a, b), d = f.value
        if (a * q) % d:
            return None
        return Integer((a * r + b) % d), f"mod_value {a * q}%nat {a * r + b}%nat"
    return _wave_value(f, q, r) if f.op in ("cos", "sin") else None


# t -> y with cos (pi t) = cos y, and likewise for sin: where the values are rational
_COSINES = {
    "0": "0",
    "1/3": "PI / 3",
    "1/2": "PI / 2",
    "2/3": "2 * (PI / 3)",
    "1": "PI",
    "4/3": "PI / 3 + PI",
    "3/2": "PI / 2 + PI",
    "5/3": "2 * (PI / 3) + PI",
}
_SINES = {
    "0": "0",
    "1/6": "PI / 6",
    "1/2": "PI / 2",
    "5/6": "PI - PI / 6",
    "1": "PI",
    "7/6": "PI / 6 + PI",
    "3/2": "PI / 2 + PI",
    "11/6": "PI - PI / 6 + PI",
}


def _wave_value(f: Form, q: int, r: int) -> tuple[Expr, str] | None:
    """A wave of speed s pi, s q an even number, where its value is rational."""
    speed = _speed(f)
    if speed is None or speed < 0 or not (speed * q / 2).is_Integer:
        return None
    at = sympy.expand(f.args[0].expr.subs(n, r)) / S.Pi
    if not at.is_Rational or at < 0:
        return None
    angle = (_COSINES if f.op == "cos" else _SINES).get(str(at % 2))
    if angle is None:
        return None
    value = (sympy.cos if f.op == "cos" else sympy.sin)(S.Pi * at)
    return value, f"wave_value ({angle}) {speed * q / 2}%nat {at // 2}%nat"
