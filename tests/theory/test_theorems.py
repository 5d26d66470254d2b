"""Theorems: every relation in a proof holds exactly and at random points, an altered one does not,
and every theorem has its proof."""

import random
from pathlib import Path

import mpmath
import pytest
import sympy
from identities import Generators, vanishes
from sympy import Derivative, Function, cos, exp, log, pi, sin, symbols

from farfield import check_convergence, encodings
from farfield.theory.mechanisms import MECHANISMS
from farfield.theory.theorems import theorem, theorems
from farfield.theory.values import enclose

PROOFS = Path(__file__).parents[2] / "docs" / "theory" / "proofs"
identity, inequality, limit = "identity", "inequality", "limit"


class excess(Function):
    """`exp(x) - 1 - x`, which is not negative: `x^2` times the integral of `(1 - s) e^{s x}` over s
    from 0 to 1."""

    def doit(self, **hints):
        (x,) = self.args
        return exp(x) - 1 - x

    def _eval_is_nonnegative(self):
        return True if self.args[0].is_extended_real else None


A, B, I, L, O, S, T, V = symbols("A B I L O S T V", positive=True)
b, c, d, eps, h, half, j, k, lam, m = symbols("b c d eps h half j k lam m", positive=True)
q, r, rho, s, w, x, y, z = symbols("q r rho s w x y z", positive=True)
REAL = l, offset, place, theta, u, v = symbols("l offset place theta u v", real=True)

RELATIONS = (  # theorem, relation, left, right, and the value that grows or the difference
    ("window-error", identity, -u + (I * u + O * v) / (I + O), O * (-u + v) / (I + O)),
    (
        "window-error",
        inequality,
        O / (B * exp(-L) + O + y),
        (O + x) * exp(-L) / (B * exp(-2 * L) + (O + x) * exp(-L)),
    ),
    (
        "window-error",
        limit,
        T * k / ((k + 1) * (B * exp(-2 * L) + T * k / (k + 1))),
        T / (B * exp(-2 * L) + T),
        k,
    ),
    ("theorem-0.4", inequality, T / (B * exp(-2 * L) + T), T * exp(2 * L) / B),
    ("theorem-0.4", limit, T * exp(2 * L) / (B * k), 0, k),
    (
        "equivalence",
        inequality,
        S / (S + (I + y) * exp(L)),
        (S * exp(-L) + x) / (I + S * exp(-L) + x),
    ),
    ("equivalence", limit, k / (B * exp(2 * L) + k), 1, k),
    (
        "certified-window",
        inequality,
        T / (T + (B + b) * exp(-2 * L)),
        (T + b) / (B * exp(-2 * L) + T + b),
    ),
    ("ladder", identity, Derivative(-1 / (r * x**r), x), x ** (-r - 1)),
    ("ladder", identity, Derivative(-1 / (r * log(x) ** r), x), log(x) ** (-r - 1) / x),
    (
        "ladder",
        identity,
        Derivative(-1 / (r * log(log(x)) ** r), x),
        log(log(x)) ** (-r - 1) / (x * log(x)),
    ),
    ("ladder", limit, 1 / (k**r * r), 0, k**r),
    ("ladder", identity, Derivative(x**r / r, x), x ** (r - 1)),
    ("ladder", limit, r / k**r, 0, k**r),
    ("trigonometric", inequality, -A, A * cos(u), 2 * A * cos(u / 2) ** 2),
    ("two-sided", identity, T * exp(-l) * exp(l + lam) / B, T * exp(lam) / B),
    ("two-sided", identity, T * exp(l) * exp(-l - lam) / B, T * exp(-lam) / B),
    (
        "jensen",
        inequality,
        x + y,
        x * exp(u * y) + y * exp(-u * x),
        x * excess(u * y) + y * excess(-u * x),
    ),
    ("trf-power", inequality, Derivative(x ** (-rho - 1), x), 0, x ** (-rho - 2) * (rho + 1)),
    ("trf-power", identity, Derivative(-1 / (rho * x**rho), x), x ** (-rho - 1)),
    ("trf-power", limit, j**rho * rho * (j ** (-rho - 1) + 1 / (j**rho * rho)), 1, j),
    (
        "trf-power",
        identity,
        A / (rho * (s / (B * eps * rho / A) ** (1 / rho)) ** rho),
        B * eps / s**rho,
    ),
    ("layered-reach", identity, j + k * (j - 1), (j - 1) * (k + 1) + 1),
    ("resolution-identity", identity, x * (x - y), x**2 / 2 - y**2 / 2 + (x - y) ** 2 / 2),
    ("resolution-bound", inequality, x * (x - y), x**2),
    ("resolution-bound", inequality, x**2 / (x + 1) ** 2, x / (x + 1)),
    ("resolution-bound", limit, (1 - k) / k, -1, k),
    ("resolution-monotone", inequality, y * (x + y), y * (x + y + z)),
    ("resolution-limit", inequality, x * y / B**2, y * (x + z) / B**2),
    ("resolution-limit", limit, 2 * m / k, 0, k),
    (
        "resolution-alibi",
        identity,
        (1 - (q / (q + 1)) ** (2 * k))
        * (-q / (q + 1) + 1) ** 3
        / ((1 - (q / (q + 1)) ** k) ** 2 * (-(q**2) / (q + 1) ** 2 + 1)),
        (-q / (q + 1) + 1) ** 2
        * ((q / (q + 1)) ** k + 1)
        / ((1 - (q / (q + 1)) ** k) * (q / (q + 1) + 1)),
    ),
    (
        "resolution-type1",
        identity,
        1 / (x**2 * (x + 1) ** 2),
        2 / (x + 1) + (x + 1) ** (-2) - 2 / x + x ** (-2),
    ),
    (
        "resolution-type1",
        inequality,
        -36 * (-(pi**2) / 3 + pi**4 / 90 + 3) / pi**4 + sympy.Rational(7321797, 25000000),
        sympy.Rational(1, 200000000),
    ),
    (
        "rotation-decay",
        identity,
        sin(place * theta) * sin(theta * (offset + place))
        + cos(place * theta) * cos(theta * (offset + place)),
        cos(offset * theta),
    ),
    (
        "rotation-decay",
        identity,
        -sin(place * theta) * cos(theta * (offset + place))
        + sin(theta * (offset + place)) * cos(place * theta),
        sin(offset * theta),
    ),
    ("rotation-decay", identity, z ** (offset + place) / z**place, z**offset),
    (
        "rotation-divergence",
        inequality,
        k / (k + (I + y) * exp(L)),
        (k * exp(-L) + x) / (I + k * exp(-L) + x),
    ),
    ("rotation-divergence", limit, k / (j * exp(2 * L) + k), 1, k),
    (
        "surrogate-diverges",
        inequality,
        -1,
        cos(u) / (z + 1),
        z / (z + 1) + 2 * cos(u / 2) ** 2 / (z + 1),
    ),
    ("bca-support", identity, c * half + d - half * (c - 1) + 1, d + half + 1),
    ("bca-support", inequality, 2 * d + h + 2, 2 * d + 2 * h + 2),
    (
        "bounded-logits",
        inequality,
        k / (k + (I + y) * exp(L)),
        (k * exp(-L) + x) / (I + k * exp(-L) + x),
    ),
    ("bounded-logits", limit, k / (j * exp(2 * L) + k), 1, k),
    ("bounded-logits", limit, j * k / (j * k + j * exp(2 * L)), 1, k),
    ("bounded-logits", identity, 2 * V * eps / ((2 * V - eps) * (eps / (2 * V - eps) + 1)), eps),
    ("growing-logits", limit, T / (B / k + T), 1, k),
    ("growing-logits", identity, k * (-z + (h + k * z) / (h + k)), h * (1 - (h + k * z) / (h + k))),
    ("growing-logits", limit, 1 / k, 0, k),
    (
        "normalised-bias",
        inequality,
        k / (k + (I + y) * exp(L)),
        (k * exp(-L) + x) / (I + k * exp(-L) + x),
    ),
    ("normalised-bias", limit, k / (S * j * exp(2 * L) + k), 1, k),
    ("scaled-bias", limit, T / (T + j * exp(-2 * L)), 1, T),
    ("scaled-bias", limit, k / (j + k), 1, k),
    ("gated-decay", identity, q * (-1 + 1 / q) / ((-1 + q ** (-j)) * (1 - q)), q**j / (1 - q**j)),
    ("stick-breaking", inequality, 1 / (y + 1 + exp(-L)), 1 / (1 + exp(-L))),
    ("stick-breaking", limit, V / k, 0, k),
    ("stick-breaking", inequality, z / (z + 1), z),
    (
        "kept-sinks",
        inequality,
        O / (B * exp(-L) + O + S + y),
        (O + x) * exp(-L) / (B * exp(-2 * L) + S * exp(-L) + (O + x) * exp(-L)),
    ),
    (
        "row-certificate",
        inequality,
        O / (O + z),
        (O + x) * exp(-L) / (z * exp(-L) + (O + x) * exp(-L)),
    ),
    ("row-certificate", identity, 2 * V * eps / ((2 * V - eps) * (eps / (2 * V - eps) + 1)), eps),
    (
        "average-leak",
        inequality,
        x / (c + w * y + x * (d + w))
        - x / (c + w * x + y * (d + w))
        - y / (c + w * y + x * (d + w))
        + y / (c + w * x + y * (d + w)),
        0,
        d * (x - y) ** 2 / ((c + w * x + y * (d + w)) * (c + w * y + x * (d + w))),
    ),
    ("average-leak", identity, k / (j + k), -j / (j + k) + 1),
    (
        "lipschitz-mixing",
        inequality,
        O / (B * exp(-L * (lam + 1)) + O + y),
        (O + x)
        * exp(-L * (lam + 1))
        / (B * exp(-2 * L * (lam + 1)) + (O + x) * exp(-L * (lam + 1))),
    ),
    ("trf-alibi", identity, (1 / (1 - exp(-m)) - 1 / (exp(m) - 1)) * exp(-j * m), exp(-j * m)),
    ("stick-breaking", identity, c * (1 - x) + c * x * (1 - d), c - c * x * d),
)


def holds(rule, left, right, *more):
    """Whether a relation holds for all values of its symbols."""
    if rule == "identity":
        return vanishes(left - right)
    if rule == "inequality":
        return never_exceeds(left, right, *more)
    (at,) = more
    return sympy.limit(left - right, at.as_base_exp()[0], sympy.oo) == 0


def _one_sign(e):
    """Whether a polynomial in positive symbols has no negative coefficient."""
    symbols = sorted(e.free_symbols, key=str)
    coefficients = sympy.Poly(e, *symbols).coeffs() if symbols else [e]
    return all(s.is_positive for s in symbols) and all(c.is_nonnegative for c in coefficients)


def never_exceeds(left, right, gap=None):
    """Whether left <= right for all values of the symbols: numerator and denominator of the
    difference have no negative coefficient; or it is a gap that is plainly not negative; or,
    between constants, balls decide it."""
    rest = sympy.sympify(right) - sympy.sympify(left)
    if gap is not None:
        return bool(gap.is_nonnegative) and vanishes(rest - gap)
    if not rest.free_symbols:
        ball = enclose(rest, 128)
        return ball is not None and bool(ball >= 0)
    top, bottom = Generators().fraction(rest)
    return _one_sign(top * bottom)


def test_every_theorem_has_its_proof():
    assert {p.stem for p in PROOFS.glob("*.md")} == set(theorems())


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r[0])
def test_every_relation_holds(relation):
    assert holds(*relation[1:])


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r[0])
def test_relations_hold_at_random_points(relation):
    """By another route: mpmath at 40 digits."""
    name, rule, *sides = relation
    left, right = (sympy.sympify(e).doit() for e in sides[:2])
    draw = random.Random(name)
    among = sorted(left.free_symbols | right.free_symbols, key=str)
    with mpmath.workdps(40):
        for _ in range(3):
            least = 3 if left.has(log) else 1 if rule == "limit" else 0
            point = {s: least + sympy.Rational(draw.randint(1, 300), 100) for s in among}
            if rule == "limit":
                point[sides[2].as_base_exp()[0]] = sympy.Integer(10) ** 40
            a, b = (mpmath.mpf(sympy.N(e.subs(point), 40)) for e in (left, right))
            if rule == "inequality":
                assert a <= b + mpmath.mpf(10) ** -30
            else:
                near = 1e-20 if rule == "limit" else 1e-30
                assert abs(a - b) <= near * (1 + abs(b))


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r[0])
def test_an_altered_relation_is_refused(relation):
    _, rule, left, right, *more = relation
    altered = (right + 1, left) if rule == "inequality" else (left, right + sympy.Rational(1, 7))
    assert not holds(rule, *altered, *more)


NEAR_22_7 = sympy.Rational(22, 7) - sympy.Rational(1, 100)
POINTS = sympy.Mul(*(x - sympy.Rational(k, 60) for k in range(1, 25)))


@pytest.mark.parametrize(
    ("relation", "holding"),
    [
        ((identity, x + POINTS, x), False),  # true at many points only
        ((inequality, 0, cos(u)), False),
        ((inequality, 0, 1 + cos(u)), False),  # true, and not seen without its gap
        ((inequality, 0, 1 + cos(u), 2 * cos(u / 2) ** 2), True),
        ((inequality, 0, cos(u), 2 * cos(u / 2) ** 2), False),
        ((inequality, 0, u, u), False),
        ((inequality, pi, NEAR_22_7), False),
        ((inequality, pi, sympy.Rational(22, 7)), True),
        ((identity, sin(u + v), sin(u) * cos(v) + cos(u) * sin(v)), True),
        ((identity, exp(u / 3 + x * u), exp(u / 3) * exp(u) ** x), True),
        ((identity, sympy.sqrt(x) ** 3, x * sympy.sqrt(x)), True),
        ((identity, (x * y) ** r, x**r * y**r), True),
        ((identity, cos(u / 3), cos(u)), False),
        ((identity, x**r, x), False),
    ],
)
def test_what_is_true_everywhere_alone_holds(relation, holding):
    assert holds(*relation) is holding


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("equivalence", "V > 0"),  # else it fails
        ("equivalence", "b_0 > 0"),
        ("crossover", "u_j <= v_j for all large j"),
        ("crossover", "where eps* < 1 it fails"),  # nothing is above eps* = 1
    ],
)
def test_hypotheses_that_the_statements_need(name, words):
    assert words in f"{theorem(name).hypotheses} {theorem(name).statement}"


@pytest.mark.parametrize("name", theorems())
def test_text_and_latex(name):
    t = theorem(name)
    assert t.title in t.text() and "Hence: " in t.text(details=True)
    tex = t.latex()
    assert tex.count("{") - tex.count(r"\{") == tex.count("}") - tex.count(r"\}")
    assert tex.count("$") % 2 == 0 and t.title in tex
    assert t.to_dict()["statement"] == t.statement


def test_every_mechanism_has_its_theorem():
    known = theorems()
    assert all(m.theorem in known for m in MECHANISMS.values())
    named = {check_convergence(name).windowable.theorem for name in ("rope", "fox", "alibi")}
    assert named == {"bounded-logits", "gated-decay", "equivalence"}


@pytest.mark.parametrize("name", encodings())
def test_every_entry_is_decided_or_names_what_is_missing(name):
    found = check_convergence(name).windowable
    assert found.theorem in theorems() and found.hypotheses
    decided = found.value is not None or found.condition is not None
    assert decided or found.reason.code == "missing_bound"


def test_names(refusal):
    refusal("did you mean 'resolution-bound'", theorem, "resolution-bounds")
