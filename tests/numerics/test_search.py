"""The searches of all questions: what they return is proved at both ends, whatever is guessed."""

import random

import pytest
from flint import arb, ctx

from farfield.numerics.search import decide, doubled, least, narrowed


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
