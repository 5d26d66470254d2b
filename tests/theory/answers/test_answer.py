"""Answers: their JSON form, their order, and the head that speaks for all."""

import dataclasses
import itertools
import json
import math
import operator
from contextlib import nullcontext
from fractions import Fraction

import numpy as np
import pytest

from farfield.theory.answers.answer import (
    Answer,
    Code,
    Reason,
    Status,
    deciding_head,
    folded,
    plain,
)
from farfield.theory.answers.blocks import sentence
from farfield.theory.answers.errors import InternalError, MissingValues, unforeseen
from farfield.theory.functions.nodes import n


@dataclasses.dataclass(frozen=True, repr=False, kw_only=True)
class Count(Answer):
    value: object = None
    most: object = None
    formula: object = "all"
    heads: tuple = ()

    def span(self):
        return super().span() and (self.value, self.value if self.most is None else self.most)

    def _blocks(self):
        return [sentence("a count " * 50)]


def known(value, most=None, status=Status.EXACT):
    return Count(value=value, most=most, status=status)


UNKNOWN = Count(status=Status.UNKNOWN, label=None, reason=Reason(Code.BUDGET, "late"))
VAST, ENDLESS = known(10, math.inf, Status.ENCLOSED), known(math.inf, status=Status.INFINITE)
JSON = {
    "kind": "Count",
    "status": "exact",
    "label": "certified",
    "reason": None,
    "subject": "",
    "origin": "",
    "seen": None,
    "value": 3,
    "most": None,
    "formula": "all",
    "heads": [],
}


@pytest.mark.parametrize(
    ("ask", "given", "wanted"),
    [
        (
            plain,
            [None, True, 3, "s", 0.5, math.inf, -math.inf],
            [None, True, 3, "s", 0.5, None, None],
        ),
        (plain, {1: (n / 2, Fraction(1, 3)), "b": {4}}, {"1": ["n/2", "1/3"], "b": [4]}),
        (
            plain,
            [Status.INFINITE, Reason(Code.TIE, "why")],
            ["infinite", {"code": "tie", "sentence": "why"}],
        ),
        (plain, [np.float32(0.5), np.arange(2), np.inf, Count], [0.5, [0, 1], None, str(Count)]),
        (plain, known(3), JSON),
        (Count.to_dict, known(3), {"schema": 2} | JSON),
        (lambda c: c.to_json().splitlines()[:2], known(3), ["{", '  "schema": 2,']),
        (lambda c: json.loads(c.to_json(None)), known(3), {"schema": 2} | JSON),
        (lambda c: (len(repr(c)), repr(c)[:16]), known(3), (200, "<Count: a count ")),
        (lambda c: (int(c), float(c)), known(Fraction(7, 2)), (3, 3.5)),
        (float, ENDLESS, math.inf),
        (lambda c: (c > VAST, c >= VAST, c < VAST, c <= VAST), ENDLESS, (True, True, False, False)),
        (lambda c: (c < 10**99, c > 10**99), ENDLESS, (False, True)),
        (lambda c: (c < c, c <= c, c > c, c >= c), ENDLESS, (False, True, False, True)),
        (lambda status: type(plain(status)), Status.INFINITE, str),
        (lambda c: c == dataclasses.replace(c, subject="s", origin="o", seen=1), known(3), True),
        (lambda c: c == known(4), known(3), False),
    ],
)
def test_an_answer_as_a_value(ask, given, wanted):
    assert ask(given) == wanted


@pytest.mark.parametrize(
    ("ask", "error", "why"),
    [
        (lambda: int(ENDLESS), OverflowError, "is infinite: it is no integer"),
        (lambda: float(UNKNOWN), ValueError, "has no exact value: late"),
        (lambda: int(Count()), ValueError, "has no exact value: nothing is known"),
        (lambda: VAST < VAST, ValueError, "the order of .* is not known"),
        (lambda: operator.lt(UNKNOWN, known(3)), ValueError, "the order of .* is not known"),
        (lambda: known(3) < UNKNOWN, ValueError, "the order of .* is not known"),
        (lambda: known(3) < Answer(), TypeError, "Count and Answer have no order"),
        (lambda: Count(label=None), TypeError, "label None of an answer with status exact"),
        (lambda: Count(status=Status.UNKNOWN), TypeError, "label certified of an answer"),
        (lambda: Count(status=Status.OUT_OF_SCOPE), TypeError, "label certified of an answer"),
    ],
)
def test_what_is_not_known_is_no_value(ask, error, why):
    with pytest.raises(error, match=why):
        ask()


SPANS = [(a, b) for a in range(4) for b in range(a, 4)]


@pytest.mark.parametrize("order", [operator.lt, operator.le, operator.gt, operator.ge])
def test_an_order_holds_for_all_values_within_the_spans(order):
    for x, y in itertools.product(SPANS, repeat=2):
        outcomes = {order(a, b) for a in x for b in y}
        with pytest.raises(ValueError) if len(outcomes) > 1 else nullcontext():
            assert {order(known(*x), known(*y))} == outcomes


@pytest.mark.parametrize(
    ("heads", "place"),
    [
        ([known(1), known(7), known(3)], 1),
        ([known(9), UNKNOWN, known(3)], 1),
        ([known(9), UNKNOWN, ENDLESS], 2),
        ([known(9), Count(status=Status.OUT_OF_SCOPE, label=None), known(3)], 1),
    ],
)
def test_the_head_that_speaks_for_all(heads, place):
    spoken = folded(heads, lambda head: head.value)
    assert deciding_head(heads, lambda head: head.value) is heads[place]
    assert spoken == dataclasses.replace(heads[place], formula=None, heads=tuple(heads))
    assert folded(heads[:1], lambda head: head.value) is heads[0]
    assert deciding_head(heads[place:], lambda head: head.value + 0) is heads[place]


def test_what_an_error_says_is_cut_and_names_some_of_many_parameters():
    assert str(InternalError(ValueError("x" * 400))).count("x") == 300 - len("ValueError: ")
    assert str(unforeseen(ImportError("x" * 400))).count("x") == 300
    assert type(unforeseen(ImportError("x", name="farfield.theory"))) is InternalError
    for count, named in ((8, "a, b, c, d, e, f, g, h"), (9, "a, b, c, d, …, h, i")):
        missing = MissingValues("it", "abcdefghi"[:count], {"a": "2"})
        assert f"give values for {named}, as a = 2, or write" in str(missing)
        assert missing.names == tuple("abcdefghi"[:count])
    assert "values for a, or write" in str(MissingValues("it", ["a"]))
