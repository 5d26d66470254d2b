"""Constants beyond the range of floats, steps of what is undefined, tables that take long."""

import random
import time

import numpy as np
import pytest
from flint import fmpq

import farfield
from farfield import InputError, check_convergence, encoding
from farfield.theory import first_terms
from farfield.theory.algebra.door import until
from farfield.theory.algebra.exceptions import OutOfTime
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import precision
from farfield.theory.functions.record import records

UNARY = sorted(r.name for r in records() if r.names and r.arity[0] == 1)
HUGE = ("10^300", "-10^300", "10^17", "-10^6-1/3", "1/10^300", "sqrt(10^90)")
FORMS = ("({c})^n", "-({c})*n", "-n-({c})^n", "-log(n+2)*({c})", "sign(({c})-n)", "-n^({c})")


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(160))
def test_a_huge_argument_is_an_answer_or_bad_input(seed):
    draw = random.Random(seed)
    constant = f"{draw.choice(UNARY)}({draw.choice(HUGE)})"
    formula = draw.choice(FORMS).format(c=constant)
    try:
        found = check_convergence(formula, budget_s=5)
    except InputError:
        return
    assert found.status in ("exact", "unknown") and found.text()


@pytest.mark.parametrize(
    "text", ["(erfcx(10^300))^(n)", "sign(trunc(atanh(a)^log(n+2)+rsqrt(10^6+n+2)))"]
)
def test_what_sympy_cannot_evaluate_is_no_traceback(text):
    assert check_convergence(text).verdict == "diverges"


@pytest.mark.parametrize("size", [7, 2**53, 2**53 + 1, 10**20, 10**400])
def test_roundings_of_quotients_by_integers_of_any_size(size):
    at = [0, 1, 5, 2**53 - 1, 2**53 + 1]
    for text, value in (
        ("floor(n/{0})", lambda k: k // size),
        ("ceiling(n/{0})", lambda k: -(-k // size)),
        ("Mod(n,{0})", lambda k: k % size),
        ("Mod(3001*n,-10000019)", lambda k: 3001 * k % -10000019),
        ("floor(-3*n/{0})", lambda k: -3 * k // size),
    ):
        table = encoding(text.format(size)).bias(at)[0]
        np.testing.assert_allclose(table, [float(value(k)) for k in at], rtol=2**-52)


@pytest.mark.parametrize(
    "question, told",
    [
        (lambda: encoding("-n").bias(None), "distances None: accepted is a list"),
        (lambda: encoding("-n").bias(1.5), "integers >= 0"),
        (lambda: encoding("-n").bias(10**30), "integers >= 0"),
        (lambda: encoding("-n").tensor(10**400), "more than 10^18 numbers"),
        (lambda: check_convergence("-a*n", a=[]), "a has no value"),
        (
            lambda: check_convergence("-a*n", assumptions={"a": []}),
            "assumption '[]' is not known",
        ),
        (lambda: check_convergence("-a*n", assumptions=[1]), "assumptions [1]: accepted is"),
        (lambda: check_convergence("-a*n", a=np.True_), "a True is not a number"),
        (lambda: farfield.leak("-n", np.True_), "'True' is not a number"),
        (lambda: farfield.theoretical_receptive_field("-n", {}), "eps {} has no number"),
        (lambda: farfield.theoretical_receptive_field("-n", []), "eps [] has no number"),
        (lambda: encoding([0, -(10**400)]), "a table of values holds '-10000"),
        (lambda: encoding([-np.inf] * 3, tail="cut"), "masks every key"),
    ],
)
def test_values_of_the_wrong_kind_are_refused_with_what_is_accepted(refusal, question, told):
    assert told in refusal("", question)


def test_a_view_of_memory_is_the_table_it_shows():
    shown = encoding(memoryview(np.array([0, -0.5, -2])), tail="linear")
    assert shown.bias([1, 2, 4]).tolist() == [[-0.5, -2, -5]]


def test_a_number_is_one_distance():
    assert encoding("alibi").bias(3).tolist() == encoding("alibi").bias([3]).tolist()
    assert encoding("-n/8").bias(np.array(5)).tolist() == [[-0.625]]


@pytest.mark.parametrize("mask", [-np.inf, "where(n<0,0,-inf)", "where(n>5,-inf,-inf)"])
@pytest.mark.parametrize(
    "ask",
    [
        check_convergence,
        lambda p: farfield.theoretical_receptive_field(p, "1/2"),
        lambda p: farfield.reach(p, 2),
        lambda p: farfield.leak(p, 8),
        lambda p: farfield.price_of_distance(p, 3),
        lambda p: farfield.compare_tails(p, "-n"),
        lambda p: farfield.attention_resolution(p, 30),
    ],
)
def test_a_bias_that_masks_every_key_has_no_attention(refusal, ask, mask):
    refusal("masks every key", ask, mask)


@pytest.mark.parametrize("at_zero", ["", ",0", ",1/3", ",7"])
@pytest.mark.parametrize("inside", ["1/n-1", "frac(n+1/n^2)", "log(n)-1", "sqrt(n-2)", "n/n-1/n"])
def test_a_step_of_what_is_undefined_is_undefined(inside, at_zero):
    found = encoding(f"Heaviside({inside}{at_zero})").bias(np.arange(6))[0]
    values = encoding(inside).bias(np.arange(6))[0]
    zero = float(at_zero[1:].replace("1/3", "0.3333333333333333") or "0.5")
    right = np.where(values > 0, 1.0, np.where(values < 0, 0.0, zero))
    assert np.array_equal(found, np.where(np.isfinite(values), right, np.nan), equal_nan=True)


@pytest.mark.parametrize("text", ["-loggamma(n+1)", "-LambertW(n+1)", "-2*log(n+1)", "-n"])
def test_a_table_keeps_its_budget(refusal, text):
    subject = encoding(text)
    refusal(
        r"is not ready after 0 s \(budget_s\); accepted: a larger",
        subject.bias,
        np.arange(9),
        budget_s=0,
    )
    with until(time.monotonic() - 1), pytest.raises(OutOfTime):
        subject.bias(np.arange(9))
    refusal("a number of seconds", subject.bias, [1], budget_s=-1)


@pytest.mark.parametrize(
    "text",
    [
        "-log(n-300)",
        "log(1-(n-40)^2)",
        "-log(log(n))",
        "-log(abs(n-200)-100)",
        "-sqrt((n-5)*(n-9)*(n-900))",
        "-1/(n-3)-1/(n-70)",
        "-gamma(gamma(n+1))",
        "-1/n",
        "-n",
        "-log((n-4096)^2)",
        "-log(abs(n-70)-40)-1/(n-200)",
        "-1/((n-63)*(n-4094)*(n-4095))",
        "-1/(n*(n-64))",
        "-log(max(6-n,min(n-64,1)))",
    ],
)
def test_the_search_of_undefined_terms_is_that_of_each_distance(text, monkeypatch):
    p = read(text)
    with precision(256):
        each = [t for t in range(first_terms.MOST_TERMS) if not first_terms._has_value(p, fmpq(t))]
    fine = next(
        (t for t in range(first_terms.MOST_TERMS - 64) if not {*range(t, t + 64)} & {*each}), None
    )
    if fine is not None and {*range(fine + 63, first_terms.MOST_TERMS, first_terms.APART)} & {
        *each
    }:
        fine = None
    last = first_terms.MOST_TERMS if fine is None else fine
    right = [t for t in each if t < last]
    while fine is None and right and right[-1] == last - 1:
        last = right.pop()
    terms = first_terms.skipped_terms(p)
    assert terms[: len(right)] == tuple(right) and {*terms} <= {*each}  # balls may see farther
    by_balls = first_terms._skipped.__wrapped__(p)
    assert by_balls[: len(right)] == tuple(right) and {*by_balls} <= {*each}
    monkeypatch.setattr(first_terms, "MOST_BALLS", 0)
    assert first_terms._skipped.__wrapped__(p) == tuple(right)


@pytest.mark.parametrize(
    ("needs", "found"),
    [
        ([("n", "positive")], ((0,), True)),
        ([("n", "nonnegative"), ("n-2", "nonzero")], ((2,), True)),
        ([("n-5", "nonzero")], ((), False)),
        ([("n*log(2)-log(4)", "nonzero")], ((), False)),
        ([("n-3", "positive"), ("n+1", "nonzero")], ((0, 1, 2, 3), True)),
        ([("n-3", "nonnegative")], ((0, 1, 2), True)),
        ([("1/(n-1)", "positive")], ((0,), False)),  # whether 1/0 is positive, no ball tells
        ([("1/(n-1)", "nonzero"), ("n-1", "nonzero")], ((1,), True)),
    ],
)
def test_needs_fail_where_balls_show_it(needs, found):
    assert first_terms._failing([(read(text), fact) for text, fact in needs]) == found


def test_a_masked_distance_has_a_value_and_an_undefined_one_has_none():
    masked = read("log(exp(where(n<3,-inf,-n))+exp(where(n<5,-inf,-n)))")
    assert [t for t in range(9) if first_terms.is_masked(masked, fmpq(t))] == [0, 1, 2]
    for text, at in [("where(n<3,-inf,-1/(n-4))", 4), ("log(n)", 0)]:
        assert not first_terms.is_masked(read(text), fmpq(at))
    nowhere = first_terms.skipped_terms(read("-log(n-5000)"))
    assert nowhere == tuple(range(first_terms.MOST_TERMS))
    with np.errstate(all="ignore"):
        table = first_terms.defined([masked, read("-log(n)"), read("-sqrt(2-n)")], [0, 1, 4])
    np.testing.assert_array_equal(np.isnan(table), [[0, 0, 0], [0, 0, 0], [0, 0, 1]])
    assert table[:, 0].tolist() == [-np.inf, np.inf, -np.sqrt(2)]
