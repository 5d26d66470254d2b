"""Bounded and periodic parts of a formula: their values on a residue class."""

from __future__ import annotations

import sympy
from sympy import Expr, S

from farfield.theory.certificates.prover_forms import Form
from farfield.theory.decision.engine import residue_class
from farfield.theory.functions.nodes import n

Place = tuple[int, int] | None  # the residue class q n + r as (q, r); None for all n


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


def value_on_class(f: Form, place: Place) -> tuple[Expr, str] | None:
    """The rational value of a periodic part at q n + r, and the tactic that proves it."""
    if place is None or f.op not in ("sign", "mod", "cos", "sin", "power"):
        return None
    if f.op == "power":
        found = value_on_class(f.args[0], place)
        if found is None:
            return None
        return found[0] ** f.value, f"power_value ({found[0]}) by ({found[1]})"
    q, r = place
    value = residue_class(f.expr, q, r)
    if not value.is_Rational:
        return None
    if f.op in ("cos", "sin"):
        turns = _turns(f, r)
        angle = turns >= 0 and (_COSINES if f.op == "cos" else _SINES).get(str(turns % 2))
        speed = f.args[0].expr.coeff(n, 1) / S.Pi
        by = f"wave_value ({angle}) {speed * q / 2}%nat {turns // 2}%nat"
        return (value, by) if angle and speed > 0 else None
    a, b = f.value if f.op == "sign" else f.value[0]
    return value, f"{f.op}_value {a * q}%nat {a * r + b}%nat"


def _turns(f: Form, r: int) -> Expr:
    """The phase of a wave at r, in multiples of pi."""
    return sympy.expand(f.args[0].expr.subs(n, r)) / S.Pi
