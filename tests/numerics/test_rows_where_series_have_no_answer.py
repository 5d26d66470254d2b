"""Where the whole series has no answer, that of a row of 4,096 keys stands beside it, and is the
one that is given when the row is asked about."""

import numpy as np
import pytest

from farfield import (
    attention_ceiling,
    certified_window,
    compare_tails,
    encoding,
    leak,
    price_of_distance,
    reach,
    theoretical_receptive_field,
)

ROW = 4096
QUESTIONS = {
    "trf": (lambda f, row: theoretical_receptive_field(f, "1/100", length=row), "tokens"),
    "leak": (lambda f, row: leak(f, 512, row), "value"),
    "reach": (lambda f, row: reach(f, 7, length=row), "tokens"),
    "price": (lambda f, row: price_of_distance(f, 100, length=row), "value"),
    "window": (lambda f, row: certified_window(f, "1/10", 1, 1, sinks=2, row=row), "width"),
}
WITHOUT = ("-log(1+n)", "0", "[-log(1+n); -n]", "log(erfc(n/8))")


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("f", WITHOUT)
def test_the_row_stands_beside_the_series(question, f):
    ask, value = QUESTIONS[question]
    whole, row = ask(f, None), ask(f, ROW)
    if whole.finite is None:  # another head has an answer
        assert f.startswith("[") and question in ("reach", "price") and getattr(whole, value)
        return
    assert row.finite is None and getattr(whole.finite, value) == getattr(row, value)
    assert row.first().text in [block.text for block in whole.blocks()[:2]]
    assert f"{ROW}" in str(whole).split("p(n)")[0]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_series_with_an_answer_has_no_row_beside_it(question):
    ask, _ = QUESTIONS[question]
    assert ask("-n/8", None).finite is None


def test_a_row_that_cannot_be_asked_leaves_the_answer_of_the_series():
    found = leak("-floor(10*tanh(n))", 8)
    assert (found.value, found.finite) == (1.0, None)


def test_several_shares_and_several_biases_have_their_rows():
    several = theoretical_receptive_field("-log(1+n)", ["1/10", "1/100"])
    assert [found.finite.tokens for found in several] == [1683, 3748]
    assert "3748 in a row of 4096" in str(compare_tails("-log(1+n)", "-n"))
    assert leak("0", 8192).finite.value == 0.5  # the row is twice the training length


def test_the_command_says_the_row(run):
    code, out, _ = run("trf", "-log(1+n)")
    said = "In a row of 4096 keys, 1683, 3748, 4060 tokens hold all but 10 %, 1 %, 0.1 %"
    assert code == 0 and said in " ".join(out.split())


def test_what_is_known_for_rows_alone_is_asked_for_rows():
    def swinging(n):
        if hasattr(n, "__len__"):
            raise TypeError("one number at a time")
        return -n / 16 - 2 * (int(n).bit_length() % 5 == 0)

    given = encoding(swinging)
    assert given.seen.distance == 4095
    table = given.bias(np.arange(4096))[0]
    for question, (ask, value) in QUESTIONS.items():
        if question != "leak":
            whole, row = ask(given, None), ask(given, 4096)
            assert (whole.status, whole.reason.code) == ("unknown", "beyond_seen")
            assert getattr(whole.finite, value) == getattr(row, value) and "4096" in str(whole)
    beyond = attention_ceiling(given, 4, length=8192)
    assert (beyond.status, beyond.reason.code) == ("unknown", "beyond_seen")
    kept = np.exp(table).cumsum()
    assert leak(given, 64).finite.value == pytest.approx(1 - kept[63] / kept[-1])
