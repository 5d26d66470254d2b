"""Bounds of a bias whose waves are not negligible: each wave is replaced by -1 or 1.

A bound above that converges decides, and so does a bound below that diverges.
"""

from __future__ import annotations

from sympy import S

from farfield.theory.certificates.expansions import Expander
from farfield.theory.certificates.prover_forms import Form, NoCertificate
from farfield.theory.coefficients.exact import coefficient
from farfield.theory.coefficients.signs import sign


def bound(f: Form, above: bool, x: Expander) -> tuple[Form, str]:
    """A form without waves that lies above (or below) from some point on, and the name of the step
    that says so."""
    if not has_waves(f):
        return f, f"(at_most_refl {x.function(f)})"
    if f.op in ("cos", "sin"):
        end = Form("number", (), S.One if above else S.NegativeOne)
        place = {("cos", True): 0, ("sin", True): 1, ("cos", False): 2, ("sin", False): 3}
        path = "proj1 " * (place[f.op, above] < 3)
        inner = f"(wave_at_most {x.function(f.args[0])})"
        for _ in range(place[f.op, above]):
            inner = f"(proj2 {inner})"
        return end, f"({path}{inner})"
    if f.op in ("plus", "minus"):
        a, first = bound(f.args[0], above, x)
        b, second = bound(f.args[1], above if f.op == "plus" else not above, x)
        by = f"apply at_most_{f.op}; [exact {first} | exact {second}]"
        combined = a.expr + b.expr if f.op == "plus" else a.expr - b.expr
        return _stated(f, Form(f.op, (a, b), combined), above, by, x)
    if f.op == "opp":
        a, inner = bound(f.args[0], not above, x)
        return _stated(f, Form("opp", (a,), -a.expr), above, f"apply at_most_opp; exact {inner}", x)
    if f.op == "mult":
        a, b = f.args
        if has_waves(a) and has_waves(b):
            raise NoCertificate("a product of waves that is not negligible")
        factor, wave = (b, a) if has_waves(a) else (a, b)
        fact, s = _sign(factor, x)
        other, inner = bound(wave, above == (s > 0), x)
        rule = "at_most_mult" if s > 0 else "at_most_mult_opp"
        by = f"apply ({rule} {x.function(factor)}); [exact {fact} | exact {inner}]"
        pair = (other, factor) if factor is b else (factor, other)
        if factor is b:
            by = f"apply at_most_swap; {by}"
        return _stated(f, Form("mult", pair, factor.expr * other.expr), above, by, x)
    raise NoCertificate(f"{str(f.expr)[:60]} has waves that are not negligible")


def has_waves(f: Form) -> bool:
    """Whether a wave that changes with the distance occurs."""
    return (f.op in ("cos", "sin") and not f.constant) or any(map(has_waves, f.args))


def _stated(f: Form, g: Form, above: bool, by: str, x: Expander) -> tuple[Form, str]:
    """The bound g with the step that proves f below it, or above."""
    low, high = (f, g) if above else (g, f)
    return g, x.asserted("B", f"at_most {x.function(low)} {x.function(high)}", by)


def _sign(f: Form, x: Expander) -> tuple[str, int]:
    """The sign of a factor from some point on, and the step that says so."""
    if f.constant:
        s = sign(coefficient(f.expr))
        claim = f"0 < {f.show()}" if s > 0 else f"{f.show()} < 0"
        by = "exists 0%nat; intros; constant"
    else:
        name, _, s = x.lead(f)
        shown = f.show(x.index)
        claim = f"0 < {shown}" if s > 0 else f"{shown} < 0"
        rule = "eventually_positive" if s > 0 else "eventually_negative"
        by = f"apply ({rule} _ _ _ _ _ {name}); [led | constant]"
    return x.asserted("S", f"eventually (fun n : nat => {claim})", by), s
