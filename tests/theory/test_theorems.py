"""Theorems: every relation holds exactly and at random points, an altered one is refused, and what
is only argued is named."""

import dataclasses
import random

import mpmath
import pytest
import sympy
from sympy import cos, exp, log, sin

from farfield.numerics.theorems import vanishes, verify
from farfield.theory.answers.errors import InputError
from farfield.theory.convergence import check_convergence
from farfield.theory.encodings import encodings
from farfield.theory.mechanisms import MECHANISMS
from farfield.theory.statements import TheoremStep, excess
from farfield.theory.theorems import theorem, theorems

RELATIONS = [
    (name, number)
    for name, t in theorems().items()
    for number, step in enumerate(t.proof.steps)
    if step.rule != "sentence"
]
x, y, r = sympy.symbols("x y r", positive=True)
u, v = sympy.symbols("u v", real=True)


def of(rule, left, right, **more):
    """The check of one relation."""
    line = TheoremStep(
        rule, {"says": "", "left": sympy.sympify(left), "right": sympy.sympify(right)} | more
    )
    t = theorem("trigonometric")
    return verify(dataclasses.replace(t, proof=dataclasses.replace(t.proof, steps=(line,))))


@pytest.mark.parametrize("name", theorems())
def test_every_relation_holds_and_every_other_step_is_named(name):
    found = verify(theorem(name))
    steps = theorem(name).proof.steps
    assert found.passed, str(found)
    assert sorted((*found.checked, *found.argued)) == list(range(1, len(steps) + 1))
    assert all(steps[k - 1].rule == "sentence" for k in found.argued)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "number"), RELATIONS)
def test_relations_hold_at_random_points(name, number):
    """By another route: mpmath at 40 digits."""
    step = theorem(name).proof.steps[number]
    draw = random.Random(number)
    left, right = (step.values[k].doit() for k in ("left", "right"))
    symbols = sorted(left.free_symbols | right.free_symbols, key=str)
    with mpmath.workdps(40):
        for _ in range(10):
            least = 3 if left.has(log) else 1 if step.rule == "limit" else 0
            point = {s: least + sympy.Rational(draw.randint(1, 300), 100) for s in symbols}
            if step.rule == "limit":
                point[step.values["at"].as_base_exp()[0]] = sympy.Integer(10) ** 40
            a, b = (mpmath.mpf(sympy.N(e.subs(point), 40)) for e in (left, right))
            if step.rule == "inequality":
                assert a <= b + mpmath.mpf(10) ** -30
            else:
                near = 1e-20 if step.rule == "limit" else 1e-30
                assert abs(a - b) <= near * (1 + abs(b))


@pytest.mark.parametrize(("name", "number"), RELATIONS)
def test_an_altered_relation_is_refused(name, number):
    step = theorem(name).proof.steps[number]
    left, right = step.values["left"], step.values["right"]
    if step.rule == "inequality":
        altered = {"left": right + 1, "right": left}
    else:
        altered = {"left": left, "right": right + sympy.Rational(1, 7)}
    found = of(step.rule, **{k: e for k, e in (step.values | altered).items() if k != "says"})
    assert not found.passed and "step 1 fails: " in str(found)


def test_what_is_true_at_many_points_only_is_refused():
    product = sympy.Mul(*(x - sympy.Rational(k, 60) for k in range(1, 25)))
    assert not of("identity", x + product, x).passed
    assert not of("inequality", 0, cos(u)).passed
    assert not of("inequality", 0, 1 + cos(u)).passed  # true, and not seen without its gap
    assert of("inequality", 0, 1 + cos(u), gap=2 * cos(u / 2) ** 2).passed
    assert not of("inequality", 0, cos(u), gap=2 * cos(u / 2) ** 2).passed
    assert not of("inequality", 0, u, gap=u).passed
    assert not of("inequality", sympy.pi, sympy.Rational(22, 7) - sympy.Rational(1, 100)).passed
    assert of("inequality", sympy.pi, sympy.Rational(22, 7)).passed


def test_slips_of_antiderivatives_and_limits_are_refused():
    wrong = sympy.Derivative(x ** (-1 - r) / r, x)
    assert not of("identity", wrong, -(x ** (-1 - r))).passed
    assert of("identity", sympy.Derivative(-(x**-r) / r, x), x ** (-1 - r)).passed
    assert not of("limit", x**-r / r + 1, 0, at=x**r).passed
    assert not of("limit", (x + 1) / x, 0, at=x).passed
    assert not of("limit", (1 + y) / (x - y * x + 1), 0, at=x).passed  # 1 - y may be 0


def test_the_zero_test():
    assert vanishes(sin(u + v) - sin(u) * cos(v) - cos(u) * sin(v))
    assert vanishes(exp(u / 3 + x * u) - exp(u / 3) * exp(u) ** x)
    assert vanishes(sympy.sqrt(x) ** 3 - x * sympy.sqrt(x)) and vanishes((x * y) ** r - x**r * y**r)
    assert not vanishes(cos(u / 3) - cos(u)) and not vanishes(x**r - x)


def test_the_excess_of_the_exponential_is_an_integral():
    s, t = sympy.symbols("s t", positive=True)
    anti = exp(s * t) * (1 - t) / s + exp(s * t) / s**2
    assert vanishes(sympy.diff(anti, t) - (1 - t) * exp(s * t))
    assert vanishes(s**2 * (anti.subs(t, 1) - anti.subs(t, 0)) - excess(s).doit())


def test_a_failing_theorem_says_where():
    found = of("identity", x * (x - y), 3)
    assert not found.passed and "step 1 fails: left - right has the numerator" in str(found)


def test_hypotheses_that_the_statements_need():
    """The equivalence fails for V = 0; the order of receptive fields has nothing above eps* = 1."""
    assert "V > 0" in theorem("equivalence").hypotheses
    assert "b_0 > 0" in theorem("equivalence").hypotheses
    assert "u_j <= v_j for all large j" in theorem("crossover").hypotheses
    assert "where eps* < 1 it fails" in theorem("crossover").statement


@pytest.mark.parametrize("name", theorems())
def test_text_and_latex(name):
    t = theorem(name)
    assert t.title in t.text() and "Hence: " in t.text(details=True)
    tex = t.latex()
    assert tex.count("{") - tex.count(r"\{") == tex.count("}") - tex.count(r"\}")
    assert tex.count("$") % 2 == 0 and r"\begin{enumerate}" in tex
    assert t.to_dict()["proof"]["steps"]


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


def test_names():
    with pytest.raises(InputError, match="did you mean 'resolution-bound'"):
        theorem("resolution-bounds")
