"""Theorems: every computed step holds, an altered one is caught, text and LaTeX are whole."""

import dataclasses

import pytest
import sympy

from farfield.numerics.theorems import counterexample, verify
from farfield.theory.results import InputError
from farfield.theory.theorems import Line, theorem, theorems

RELATIONS = [
    (name, number)
    for name, t in theorems().items()
    for number, step in enumerate(t.proof.steps)
    if step.rule != "sentence"
]


@pytest.mark.parametrize("name", theorems())
def test_every_computed_step_holds(name):
    assert all(verify(theorem(name), seed).passed for seed in range(3))


@pytest.mark.parametrize(("name", "number"), RELATIONS)
def test_an_altered_step_is_caught(name, number):
    step = theorem(name).proof.steps[number]
    left, right = step.values["left"], step.values["right"]
    if step.rule == "inequality":
        altered = {"left": right + 1, "right": left}
    else:
        altered = {"left": left, "right": right + sympy.Rational(1, 7)}
    assert counterexample(dataclasses.replace(step, values={**step.values, **altered})) is not None


def test_a_failing_theorem_says_where():
    t = theorem("resolution-identity")
    wrong = Line("identity", {**t.proof.steps[0].values, "right": sympy.Integer(3)})
    broken = dataclasses.replace(t, proof=dataclasses.replace(t.proof, steps=(wrong,)))
    found = verify(broken)
    assert not found.passed and "step 1 fails at x = " in str(found)


@pytest.mark.parametrize("name", theorems())
def test_text_and_latex(name):
    t = theorem(name)
    assert t.title in t.text() and "Hence: " in t.text(details=True)
    tex = t.latex()
    assert tex.count("{") - tex.count(r"\{") == tex.count("}") - tex.count(r"\}")
    assert tex.count("$") % 2 == 0 and r"\begin{enumerate}" in tex
    assert t.to_dict()["proof"]["steps"]


def test_names():
    with pytest.raises(InputError, match="did you mean 'resolution-bound'"):
        theorem("resolution-bounds")
