"""The sentence that joins theory and rows: the field, what was measured or forecast, what fits."""

import math

import pytest
import sympy

from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.theory.answers.answer import Label
from farfield.theory.answers.blocks import Sentence
from farfield.theory.answers.notation import terminal
from farfield.theory.encodings import encoding
from farfield.validation.forecast import NEAR, forecast
from farfield.validation.study.beside_rows import BesideRows, _family, beside_rows
from farfield.validation.study.prediction import predict
from farfield.validation.table_cells import field_text


def said(answer):
    """The blocks as lines."""
    return [terminal(block.text) for block in answer.blocks()]


@pytest.mark.parametrize(
    "formula", ["-sqrt(n)*log(1+n)/50", "-log(1+n)", "-n/500", "-log(1+n)^2/9"]
)
def test_a_field_longer_than_the_rows_comes_with_a_size_that_fits(formula):
    found = beside_rows(encoding(formula), trained=64, tested=1024)
    assert found.field.tokens > 64 and found.fit.achieved == 64
    again = theoretical_receptive_field(found.family, "1/100", c=found.fit.value)
    assert again.tokens == 64  # what the printed command says, by the printed family
    c, family = found.fit.value, sympy.sympify(found.family.replace("^", "**"))
    formula = str(family.subs("c", c)).replace("**", "^")
    command = f'farfield design "{found.family}" --trf 64'
    assert said(found)[-1] == f"c = {c} fits 64 tokens: {formula}, by {command}."


@pytest.mark.parametrize(
    ("formula", "family"),
    [
        ("-n/64", "-n/c"),
        ("-2*log(1+n)", "-log(n + 1)/c"),
        ("log(1/(1+n))/2", "log(1/(n + 1))/c"),
        ("3*log(1/(1+n))", "log(1/(n + 1))/c"),
    ],
)
def test_a_family_keeps_the_sign_of_its_bias(formula, family):
    assert _family(encoding(formula)) == family


def test_what_fits_already_gets_no_advice():
    for formula, trained in (
        *(("-n/8", 64), ("-n/8", 37), ("-2*log(1+n)", 64), ("[-n/500; 0 x7]", 64), ("alibi", 64)),
    ):
        found = beside_rows(encoding(formula), trained=trained, tested=1024)
        assert found.fit is None and not any("fits" in line for line in said(found))


def test_the_field_is_told_in_training_rows():
    found = beside_rows(encoding("-n/8"), trained=16, tested=64)
    assert found.field.tokens == 37 and found.times == f"{37 / 16:.2g}"
    assert said(found)[0] == (
        "-n/8: the nearest 37 tokens hold 99 % of its mass, 2.3 times the training rows of 16."
    )
    heads = beside_rows(encoding("alibi"), trained=64, tested=1024)
    narrowest = min(head.tokens for head in heads.field.heads)
    assert f"in the widest head ({narrowest} in the narrowest)" in said(heads)[0]
    vast = beside_rows(encoding("-log(3+n)-2*log(log(3+n))"), "vast", trained=64, tested=1024)
    tokens = field_text(vast.field)
    assert said(vast)[0] == f"vast: the nearest {tokens} tokens hold 99 % of its mass."
    assert vast.times == "" and vast.fit is None
    never = beside_rows(encoding("nope"), trained=64, tested=1024)
    assert math.isinf(never.field.tokens) and "no number of tokens holds 99 %" in said(never)[0]


def test_what_has_no_field_says_nothing_of_one():
    for name in ("rope", "kerple_log"):
        assert beside_rows(encoding(name), trained=64, tested=1024) == BesideRows(name, 64)
        assert beside_rows(encoding(name), "mine", trained=64, tested=1024).name == "mine"


def test_the_forecast_is_that_of_the_rows_and_layers_asked_about():
    usual = forecast("-n/8", trained=64, tested=1024)
    found = beside_rows(encoding("-n/8"), trained=64, tested=1024)
    assert found.forecast.to_dict() == usual.to_dict(), "of four layers"
    for options in ({"tested": 256, "layers": 4}, {"tested": 1024, "layers": 2}):
        found = beside_rows(encoding("-n/8"), "mine", trained=64, **options)
        direct = forecast("-n/8", trained=64, **options)
        assert found.forecast.to_dict() == direct.to_dict() != usual.to_dict()
        assert found.name == "mine" and said(found)[1].startswith("mine, trained on rows of 64")


def test_neighbours_are_a_forecast_and_say_whether_they_are_near():
    """Their results never bear the label of what was measured."""
    for formula, near in (("-n/8", True), ("-sqrt(n)*log(1+n)/50", False)):
        p = predict(encoding(formula), formula)
        assert (p.forecast.distance <= NEAR) is near
        lines = [
            b for b in p.blocks() if isinstance(b, Sentence) and "trained case" in terminal(b.text)
        ]
        (line,) = lines
        assert line.label is Label.FORECAST
        assert ("(near, " if near else "(not near, ") in terminal(line.text)
        rows = [row for row in p._rows() if row[0].startswith("perplexity ratio")]
        assert [row[-1] for row in rows] == [Label.FORECAST] and rows[0][3].endswith(
            "cases, near" if near else "cases, not near"
        )


def test_check_joins_both_where_the_rows_are_told(run):
    code, out, _ = run("check", "-sqrt(n)*log(1+n)/50", "--trained", "64")
    out = " ".join(out.split())
    assert code == 0 and "the series converges" in out
    assert "the nearest 1535 tokens hold 99 % of its mass, 24 times the training rows of 64" in out
    assert "[forecast]" in out and "not near" in out and "c = 19/3 fits 64 tokens" in out
