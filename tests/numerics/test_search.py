"""The searches of all questions: what they return is proved at both ends, whatever is guessed."""

import math
import random
import sys
import types

import pytest
from flint import arb, ctx, fmpq
from sympy import Rational

from farfield import theoretical_receptive_field
from farfield.numerics.field_search import TailComparison, _Tie, searched
from farfield.numerics.questions import NoCertifiedSum, reason_of
from farfield.numerics.search import (
    Bracket,
    Enclosure,
    Exact,
    Unrecognised,
    decide,
    doubled,
    least,
    narrowed,
)
from farfield.theory.algebra.exceptions import OutOfTime, Undecided, Unreachable
from farfield.theory.answers.answer import Code, Reason
from farfield.theory.functions.balls import Undefined


@pytest.mark.parametrize("seed", range(20))
def test_the_least_integer_is_found_from_any_guesses(seed):
    draw = random.Random(seed)
    answer = draw.choice((1, 2, draw.randrange(1, 100), draw.randrange(1, 10**30)))
    guesses = [draw.randrange(0, 2 * answer + 2) for _ in range(draw.randrange(4))]
    high = draw.choice((None, answer, answer + draw.randrange(10**6)))
    asked = []

    def proved(j):
        asked.append(j)
        return j >= answer

    assert least(proved, 0, high, guesses, first=draw.choice((None, answer, 7))) == answer
    assert len(asked) == len(set(asked)) < 400


def test_no_integer_beyond_the_cap_is_tried():
    for _, high in narrowed(lambda j: j >= 90, 0, None, cap=100):
        assert high is None or high <= 100
    assert high == 90


def test_precision_rises_until_an_answer_is_proved():
    tried = []

    def larger():
        tried.append(ctx.prec)
        ball = arb(2).sqrt() - arb("1.41421356237309504880168")
        return True if ball > 0 else False if ball < 0 else None

    assert decide(larger, doubled(8, 1024)) is True
    assert tried == [8, 16, 32, 64, 128]
    assert decide(lambda: None, (8, 16)) is None
    with pytest.raises(KeyError):
        decide(lambda: {}["a bug is no proof"], (8,))


class Tails:
    """T_j = 1/(j + 1), or one that falls far more slowly; each question after the first `known`
    raises."""

    first_bits = max_bits = 64
    period, support, kernel, bias = 1, None, None, None
    stretches = (1, 2)
    last = (types.SimpleNamespace(end=None),)

    def __init__(self, known=math.inf, why=None, slow=False):
        self.known, self.why, self.slow, self.asked, self.seen = known, why, slow, 0, [0]

    def total(self):
        return fmpq(1)

    def tail(self, j):
        self.asked += 1
        if self.asked > self.known:
            raise self.why
        self.seen.append(int(j))
        return fmpq(1, 1 + (int(j).bit_length() if self.slow else j))

    def term(self, j):
        return fmpq(1, (1 + j) * (2 + j))


@pytest.mark.parametrize("why", [OutOfTime(), Unreachable("hard")])
@pytest.mark.parametrize("known", [0, *range(1, 30, 3)])
def test_a_search_that_is_cut_off_tells_what_is_proved(known, why):
    """TRF(1/1000) is 1000: the least j with 1/(j + 1) < 1/1000."""
    sums = Tails(known, why)
    try:
        answer, reason = searched(TailComparison(sums), Rational(1, 1000), every_digit=False)
    except Unreachable as raised:
        assert raised is why and known == 0, "nothing was proved"
        return
    if isinstance(answer, Exact):
        assert (answer.tokens, reason) == (1000, None) and known > 6
        return
    above = min((j for j in sums.seen if j >= 1000), default=None)
    assert answer == Bracket(1 + max(j for j in sums.seen if j < 1000), above) and answer.low > 1
    code = "budget" if isinstance(why, OutOfTime) else "no_enclosure"
    assert (reason.code, str(reason)) == (code, str(why))


LARGEST = sys.float_info.max


@pytest.mark.parametrize(
    ("answer", "logs", "span"),
    [
        (Exact(7), (math.log(8), math.log(8)), None),
        (Bracket(3, 7), (math.log(4), math.log(8)), (3, 7)),
        (Bracket(3, None), (math.log(4), math.inf), (3, math.inf)),
        (Enclosure(2.5, 709.5), (2.5, 709.5), (math.exp(2.5), math.exp(709.5))),
        (Enclosure(700.5, 710.0), (700.5, 710.0), (math.exp(700.5), math.inf)),
        (Enclosure(710.0, 9e99), (710.0, 9e99), (LARGEST, math.inf)),
    ],
)
def test_a_number_of_tokens_lies_between_ends_that_floats_hold(answer, logs, span):
    assert answer.logs() == logs and (span is None or answer.span() == span)


@pytest.mark.parametrize(
    ("why", "code"),
    [
        (OutOfTime(), Code.BUDGET),
        (Unreachable("hard"), Code.NO_ENCLOSURE),
        (Undecided("open"), Code.UNDECIDED),
        (Unrecognised("no form"), Code.UNDECIDED),
        (NoCertifiedSum(Reason(Code.DIVERGES, "so")), Code.DIVERGES),
    ],
)
def test_what_ends_a_question_has_a_code(why, code):
    assert reason_of(why) == Reason(code, str(why))


@pytest.mark.parametrize("every_digit", [True, False])
def test_an_answer_beyond_all_bits_is_a_lower_bound(every_digit):
    """T_j = 1/(1 + bits of j) is below 1/1000 from 2^999 on."""
    compare = TailComparison(Tails(slow=True))
    answer, reason = searched(compare, Rational(1, 1000), every_digit=every_digit)
    assert answer == Bracket(1 + max(compare.series.seen), None) and math.log2(answer.low) > 64
    assert sorted(compare.series.seen)[-2] <= 2**64
    assert (reason.code, str(reason)) == ("too_large", "the answer has more than 64 bits")


class Balls(Tails):
    """The same as balls that are right to a quarter of the bits at work."""

    max_bits = 200

    def tail(self, j):
        return arb(super().tail(j)) * (1 + arb(0, arb(2) ** (-ctx.prec // 4)))


@pytest.mark.parametrize(("sign", "below"), [(1, True), (-1, False)])
def test_precision_rises_by_some_bits_until_a_comparison_is_proved(sign, below):
    """T_5 is 1/6, right to a part in 2^64 at 256 bits."""
    decided, open_ = (Rational(1, 6) * (1 + sign * Rational(1, 2**gap)) for gap in (62, 66))
    assert TailComparison(Balls()).below(5, decided) is below
    with pytest.raises(_Tie, match="differ by at most"):
        TailComparison(Balls()).below(5, open_)


def test_a_magnitude_is_asked_for_at_a_second_precision():
    low, high = searched(TailComparison(Balls()), Rational(1, 10**20), every_digit=False)[0].logs()
    assert low <= 20 * math.log(10) <= high < low + 1e-8


@pytest.mark.parametrize("why", [OutOfTime(), Unreachable("hard")])
@pytest.mark.parametrize("known", [*range(6, 24, 2), math.inf])
def test_a_magnitude_that_is_cut_off_holds_the_answer(known, why):
    """TRF(10^-20) is 10^20: its logarithm lies between the ends, the finer the later."""
    sums = Tails(known, why)
    sums.max_bits = 200
    answer, reason = searched(TailComparison(sums), Rational(1, 10**20), every_digit=False)
    low, high = answer.logs()
    assert low <= 20 * math.log(10) <= high
    if isinstance(answer, Bracket):
        assert answer.low == 1 + max(j for j in sums.seen if j < 10**20)
    if isinstance(answer, Enclosure):
        assert known >= 8 and high - low < (1e-8 if sums.asked < known else 20)
    late = isinstance(why, OutOfTime) and sums.asked > known
    began = low > 18 * math.log(10) - 1e-9
    code = "budget" if late else "too_large" if began else "no_enclosure"
    assert reason.code == code


@pytest.mark.parametrize("known", range(8, 40, 4))
def test_a_magnitude_without_an_upper_end_is_a_lower_bound(known):
    """TRF(1/100) of 1/(1 + bits of j) is 2^99, and no guess from the density is near it."""
    sums = Tails(known, OutOfTime(), slow=True)
    sums.max_bits = 200
    answer, reason = searched(TailComparison(sums), Rational(1, 100), every_digit=False)
    assert answer.logs()[0] <= 99 * math.log(2) <= answer.logs()[1]
    if isinstance(answer, Bracket):
        assert answer.low == 1 + max(j for j in sums.seen if j < 2**99)
        assert answer.high in (None, *sums.seen) and reason.code in ("budget", "too_large")


def test_a_field_whose_logarithm_is_beyond_floats_is_a_lower_bound():
    """`T_j / B` is about `log(j)^-0.01`: TRF(1/1000) is about e^(10^300), and 2^1100 is proved."""
    field = theoretical_receptive_field("-log(1+n)-1.01*log(1+log(1+n))", "1/1000")
    assert field.answer == Bracket(2**1_100 + 1, None)


class Fog(Tails):
    """Tails that no precision tells from eps B at some j."""

    def __init__(self, first, last, why=None):
        super().__init__(2 if why else math.inf, why)
        self.fog = range(first, last + 1)

    def tail(self, j):
        exact = super().tail(j)
        return arb(exact) + arb(0, 1) if j in self.fog else exact


@pytest.mark.parametrize(
    ("first", "last", "answer", "said"),
    [
        (1000, 1000, Bracket(1000, 1001), "1000 if T_1000 is less, otherwise 1001"),
        (998, 1003, Bracket(998, 1004), "as far as known"),
        (990, 2**80, Bracket(990, None), "as far as known"),
    ],
)
def test_a_tie_is_told_with_the_nearest_decided_on_both_sides(first, last, answer, said):
    found, reason = searched(TailComparison(Fog(first, last)), Rational(1, 1000), every_digit=True)
    assert found == answer and reason.code == "tie"
    assert "differ by at most" in str(reason) and str(reason).endswith(said)


def test_a_tie_whose_second_precision_is_out_of_reach_says_both():
    compare = TailComparison(Fog(5, 5, Unreachable("hard")))
    compare.series.known = 1
    with pytest.raises(_Tie, match=r"differ by at most 6\.0 of them; hard"):
        compare.below(5, Rational(1, 6))


def test_terms_that_are_undefined_leave_the_search_without_a_guess(monkeypatch):
    def term(self, j):
        raise Undefined("no value")

    monkeypatch.setattr(Tails, "term", term)
    assert searched(TailComparison(Tails()), Rational(1, 1000), every_digit=True)[0] == Exact(1000)
