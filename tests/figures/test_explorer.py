"""The explorer without a browser: what sliders ask, and what is kept."""

import itertools
import runpy
import socket
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import marimo
import pytest

from farfield.figures.explorer import state
from farfield.figures.explorer.state import Explorer, read, slider
from farfield.numerics.leak import leak
from farfield.numerics.price import reach
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.windows.window import certified_window
from farfield.theory.answers.notation import terminal
from farfield.theory.formula.parameters import interval
from farfield.validation.forecast import forecast

QUARTERS = [Fraction(k, 4) for k in range(1, 33)]


def decided(formula, budget_s=state.WHOLE):
    """A formula as the explorer reads it, with its verdict."""
    session = Explorer().read(formula)
    return session.question, session.decided(session.question, budget_s)


def test_the_slider_of_a_slope_reaches_those_of_alibi():
    steps = slider("m", "positive").steps
    assert {Fraction(1, 2**h) for h in range(9)} <= {*steps}
    assert all(state.values_of({"m": float(v)}) == {"m": v} for v in steps)
    assert all(b / a <= Fraction(9, 8) for a, b in itertools.pairwise(steps))


def test_an_address_moves_a_slider_to_its_nearest_step():
    moved = slider("a", "positive")
    assert moved.nearest("9/8") == Fraction(9, 8) and moved.nearest("1e9") == 256
    assert moved.nearest("1.12") == Fraction(9, 8)
    for nothing in (None, "", "x", "1/0", "nan", "['1', '2']"):
        assert moved.nearest(nothing) == moved.value


def test_every_example_can_be_read():
    for formula in state.EXAMPLES.values():
        assert Explorer().read(formula).question and not Explorer().read(formula).trouble


def test_a_slider_asks_for_no_new_decision(monkeypatch):
    """A move reads the condition that was proved."""
    decide = Mock(wraps=state.check_convergence)
    monkeypatch.setattr(state, "check_convergence", decide)
    session = Explorer()
    for value in QUARTERS:
        session.read("-r*n")
        *_, shown = session.answers({"r": value})
        assert f"At r = {value}" in state.html(shown)
    assert decide.call_count == 1
    session.read("-log(1+n)")
    assert "diverges" in state.html(session.answer({})), "another formula is decided anew"


def test_the_verdict_at_a_value_is_that_of_the_formula_with_it():
    question, verdict = decided("-r*log(1+n)")
    for value in QUARTERS:
        fixed = state.check_convergence(f"-({value})*log(1+n)")
        here = state.answers_to(question, verdict, {"r": value})[0]
        assert terminal(here.text) == f"At r = {value}: {fixed.verdict}."


def test_what_cannot_be_read_keeps_the_last_answer():
    session = Explorer().read("-2*log(1+n)")
    kept = session.question
    session.read("-2*log(1+n")
    assert session.question == kept and "column 11" in session.trouble
    session.read("-n")
    assert not session.trouble and session.question != kept


def test_the_state_is_a_page():
    session, moved = Explorer().read("-r*log(1+n)"), state.values_of({"r": 1.5})
    written = state.export(session, moved)
    assert "exactly if" in written and "At r = 3/2" in written
    python, command = state.commands(session.question, moved)
    assert command == "farfield trf '-r*log(1+n)' --set r=3/2 --eps 1/100"
    told = {}
    exec(python.replace("farfield.trf", "tokens = farfield.trf"), told)
    assert told["tokens"] == theoretical_receptive_field("-3/2*log(1+n)", state.EPS).tokens
    assert "rotates queries and keys" in state.export(Explorer().read("rope"), {})


def test_the_explorer_shows_the_blocks_of_the_answers():
    (question, verdict), moved = decided("-r*log(1+n)"), {"r": Fraction(2)}
    told = state.answers_to(question, verdict, moved)
    field = theoretical_receptive_field("-2*log(1+n)", state.EPS)
    bias = "-2*log(1+n)"
    others = (
        theoretical_receptive_field(bias, "1/100", length=1024),
        leak(bias, 64, 1024),
        certified_window(bias, "1/100", 1, 1),
        reach(bias, 7, length=1024),
        forecast(bias, trained=64, tested=1024),
    )
    for answer in (verdict, field, *others):
        own = replace(answer, subject="−r·log(n + 1)").blocks()
        assert set(own) <= set(told), type(answer)


def test_too_little_time_is_an_enclosure_or_unknown_never_a_guess():
    question, verdict = decided("-log(1+n)*(1 + 1/log(log(n+20)))", 0.05)
    assert "window" in state.html(state.answers_to(question, verdict, {}, 0.05))


def test_a_quick_question_is_answered_once(monkeypatch):
    monkeypatch.setattr(state, "FIRST", 60.0)
    (shown,) = Explorer().read("-n").answers({})
    assert "A first answer" not in state.html(shown)


def test_a_slow_question_is_answered_twice_and_not_at_all_once_it_is_withdrawn(monkeypatch):
    monkeypatch.setattr(state, "FIRST", 1e-9)
    session = Explorer().read("-2*log(1+n)")
    early, whole = (state.html(shown) for shown in session.answers({}))
    assert "A first answer" in early and "undecided" in early
    assert "A first answer" not in whole and "converges" in whole
    waiting = Explorer().read("-2*log(1+n)")
    assert not list(waiting.answers({}, lambda: True))
    assert len(list(waiting.answers({}))) == 2, "nothing is kept of a question that was withdrawn"


def test_an_answer_that_takes_all_of_its_first_time_is_followed_by_another(monkeypatch):
    clock = itertools.count(0, state.FIRST)
    monkeypatch.setattr(state, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(Explorer, "answer", lambda self, moved, budget_s: [])
    assert len([*Explorer().answers({})]) == 2


def test_a_formula_that_is_not_real_says_so():
    session = Explorer().read("log(-n)")
    *_, shown = session.answers({})
    assert "is not real for large n" in state.html(shown)
    assert "is not real" in state.export(session, {})


def test_a_taken_port_is_one_line(complaint):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert str(port) in complaint("explore", "--port", port, "--headless")


def test_without_marimo_it_says_how_to_get_it(monkeypatch, complaint):
    monkeypatch.setattr("farfield.validation.optional.find_spec", lambda name: None)
    assert "pip install marimo (farfield[explore])" in complaint("explore")


@pytest.mark.parametrize(
    ("domain", "ends", "step", "value"),
    [
        ("real", (-8, 8), Fraction(1, 8), 1),
        ("nonnegative", (0, 256), None, 1),
        ("negative", (-8, Fraction(-1, 8)), Fraction(1, 8), Fraction(-1, 8)),
        ("[9, oo)", (9, 10), Fraction(1, 16), 9),
        ("(-oo, -20]", (-21, -20), Fraction(1, 16), -20),
        ("[0, 1/2]", (0, Fraction(1, 2)), Fraction(1, 32), Fraction(1, 2)),
        ("[1, 5]", (1, 5), Fraction(1, 8), 1),
        ("positive", (Fraction(1, 256), 256), None, 1),
        ("nonpositive", (-8, 0), Fraction(1, 8), 0),
        ("[0, 2)", (0, Fraction(15, 8)), Fraction(1, 8), 1),
        ("(0, 1]", (Fraction(1, 16), 1), Fraction(1, 16), 1),
    ],
)
def test_a_slider_goes_in_eighths_or_sixteen_steps_to_its_ends(domain, ends, step, value):
    found = slider("a", domain)
    assert (found.steps[0], found.steps[-1], found.value) == (*ends, value)
    assert step in (None, *{b - a for a, b in itertools.pairwise(found.steps)})
    assert len(found.steps) >= 10 and all(value in interval(domain) for value in found.steps)


def test_six_parameters_have_sliders_and_seven_have_none():
    letters = "abcdfg"
    assert len(read(f"-({'+'.join(letters)})*n").sliders) == 6
    assert read(f"-({'+'.join(letters)}+h)*n").sliders == ()


def test_a_notebook_whose_first_formula_cannot_be_read_says_so(monkeypatch):
    from farfield.figures.explorer.app import app

    monkeypatch.setattr(state, "START", "-n*(")
    _, defined = app.run()
    assert defined["explorer"].trouble and defined["explorer"].question is None
    assert defined["commands"] == ("", "") and not defined["moved"].elements


def test_the_notebook_begins_with_the_start_and_has_all_that_is_clicked(monkeypatch):
    """Its cells run in order, as marimo runs them."""
    from farfield.figures.explorer.app import app

    asked = []
    spied = dict.fromkeys(("callout", "hstack", "download"), marimo)
    for name, place in (spied | dict.fromkeys(("slider", "text", "button"), marimo.ui)).items():
        own = getattr(place, name)
        told = lambda *a, own=own, **k: asked.append(k.items()) or own(*a, **k)  # noqa: E731
        monkeypatch.setattr(place, name, told)
    _, defined = app.run()
    slides = {"include_input": True, "debounce": False, "full_width": True}
    row = {"widths": "equal", "wrap": True}
    field = {"value": state.START, "full_width": True, "debounce": True}
    field["label"] = "A formula in n, or a name of the catalogue"
    kept = {"filename": "farfield.html", "mimetype": "text/html", "label": "farfield.html"}
    buttons = ({"label": name} for name in state.EXAMPLES)
    begun = {"justify": "start", "wrap": True}
    for options in ({"kind": "warn"}, row, begun, slides, field, kept, *buttons):
        assert any(options.items() <= each for each in asked), options
    assert sum("on_click" in dict(each) for each in asked) == len(state.EXAMPLES)
    typed, moved = defined["typed"], defined["moved"]
    assert typed.value == state.START and defined["explorer"].question.text == state.START
    assert moved.value == {"r": 1.0} and defined["values"] == {"r": Fraction(1)}
    assert [*moved.elements["r"].steps] == [float(v) for v in slider("r", "positive").steps]
    assert "style" in defined and ":root {" not in defined["scoped"]
    assert defined["commands"] == state.commands(defined["explorer"].question, {"r": Fraction(1)})
    assert app._config.width == "full" and app._config.app_title == "farfield"
    monkeypatch.setattr(type(app), "run", lambda self: pytest.fail("it runs as it is imported"))
    runpy.run_path(str(Path(state.__file__).with_name("app.py")))
