"""The forms that compete, judged on the cases that were open when they were written down.

A case is *decided* where its log ratio, on the further targets of its result, lies at least two
standard errors from the logarithm of the tolerance. `reference/README.md` says beforehand how the
forms are judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from farfield.theory.answers.number import plural
from farfield.validation.evidence.rule_scores import Outcome, outcomes
from farfield.validation.evidence.sentences import Evidence
from farfield.validation.evidence.told import told
from farfield.validation.extrapolation import LIMIT
from farfield.validation.forms import FORMS
from farfield.validation.reference.registration import REGISTRATIONS

SEEN = ("slope 1/32, steps 4000", "1 head 1/4, steps 4000")
"""Cases that had been measured before the forms were written down."""

LAWS = tuple(form for form in FORMS if form not in ("constant", "nearest"))
"""The forms that are a law of the formula; the other two are nulls."""

DECIDED = 2.0  # standard errors from the tolerance
PARTS = (
    ("four times the steps", "steps", 4000),
    ("8 layers", "layers", 8),
    ("training length 256", "length", 256),
    ("training length 128", "length", 128),
    ("twice the width", "width", 256),
)


def decided(case: Outcome) -> bool:
    """Whether it is beyond measurement error that a case holds, or that it does not."""
    loss, error, _ = case.further
    return abs(loss - LIMIT) >= DECIDED * error


def holds(case: Outcome) -> bool:
    """Whether a case holds, on the further targets."""
    return bool(case.further[0] < LIMIT)


def right(case: Outcome, form: str) -> bool:
    """Whether a form was on the right side."""
    return bool((case.said[form]["log_ratio"] <= LIMIT) == holds(case))


def everything() -> tuple[Outcome, ...]:
    """Every case that the forms predicted and that was measured on further targets."""
    return tuple(
        case
        for r in REGISTRATIONS
        for case in outcomes(r)
        if case.further[-1] and FORMS.keys() <= case.said.keys()
    )


def tally(found: Sequence[Outcome]) -> tuple[list[Outcome], dict[str, int], dict[str, float]]:
    """How the forms did on the cases that no one had seen.

    Returns:
        The decided cases. By form, how many of them it has right, and the mean absolute error of
        its log ratio over the decided and the open ones.
    """
    tests = [c for c in found if c.name not in SEEN]
    clear = [c for c in tests if decided(c)]
    hits = {form: sum(right(c, form) for c in clear) for form in FORMS}
    away = {form: [abs(c.said[form]["log_ratio"] - c.further[0]) for c in tests] for form in FORMS}
    off = {form: float(np.mean(errors)) if errors else math.nan for form, errors in away.items()}
    return clear, hits, off


def answers() -> Iterator[Evidence]:
    """For each part that has results, which form was right."""
    every = everything()
    for words, what, value in PARTS:
        found = [c for c in every if c.named[what] == value]
        if found:
            yield _answer(words, found)


def _answer(words: str, found: Sequence[Outcome]) -> Evidence:
    tests = [c for c in found if c.name not in SEEN]
    clear, hits, off = tally(found)
    held = sum(map(holds, clear))
    best = max(FORMS, key=lambda form: (hits[form], -off[form]))
    return told(
        "competing",
        len(found),
        {"right": hits, "off": off, "decided": len(clear), "hold": held},
        (
            ("form", "right", "mean error", *(c.name for c in found)),
            *(
                (
                    form,
                    f"{hits[form]} of {len(clear)}",
                    f"{off[form]:.3f}",
                    *(f"{c.said[form]['log_ratio']:+.3f}" for c in found),
                )
                for form in sorted(FORMS, key=lambda form: off[form])
            ),
            ("measured", "", "", *("{:+.3f} ± {:.3f}".format(*c.further) for c in found)),
            ("on the registered 512", "", "", *(f"{c.loss:+.3f}" for c in found)),
        ),
        tuple(f"{c.name}, {plural(c.further[2], 'seed')}" for c in found),
        words=words,
        cases=plural(len(clear), "decided case"),
        best=best,
        null=max(held, len(clear) - held),
        undecided=len(tests) - len(clear),
        seen=[(c.name, *c.further[:2]) for c in found if c not in tests],
    )
