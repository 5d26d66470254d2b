"""What is measured of a model, beside loops over the library's attention; and what it says."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sympy
import torch

from farfield.numerics.masks import Mask
from farfield.theory.answers.answer import Label, Status
from farfield.validation.harness.measure import Perplexity
from farfield.validation.models.empirical import (
    EmpiricalReceptiveField,
    _answer,
    _Measured,
    empirical_receptive_field,
)
from farfield.validation.models.folder import describe
from farfield.validation.models.opened import open_model
from farfield.validation.models.outline import LayerOutline, ModelOutline
from farfield.validation.models.perplexities import PerplexityByLength
from farfield.validation.models.smallest_window import AS_IS, Cost, SmallestWindow
from farfield.validation.models.text import TokenText


def reaches(row, eps):
    """Keys back that hold more than all but `eps`, one at a time."""
    return next(k for k in range(1, len(row) + 1) if row[:-k].sum() < eps * row.sum())


@pytest.mark.parametrize("name", ["llama", "bloom"])
def test_attention_is_that_of_the_library(name, outside_models, numbers):
    opened = open_model(describe(outside_models.folder(name)))
    found = empirical_receptive_field(
        opened, numbers, kind="attention", length=24, segments=2, rows=4, eps="1/20"
    )
    before = opened.network.config._attn_implementation
    fields, curves, at = [], [], [12, 15, 19, 23]
    for start in (0, len(numbers) - 25):
        row = torch.from_numpy(numbers[start : start + 24].astype(np.int64))
        with torch.no_grad():
            opened.network.set_attn_implementation("eager")
            each = opened.network(row[None], output_attentions=True).attentions
            opened.network.set_attn_implementation(before)
        for (k, seen), own in zip(opened.weights(row), each, strict=True):
            assert k < len(each) and torch.equal(seen, own[0])
        assert opened.network.config._attn_implementation == before
        each = torch.stack(each)[:, 0].double().numpy()
        fields.append([[[reaches(h[i, : i + 1], 0.05) for i in at] for h in x] for x in each])
        back = [np.pad(each[:, :, i, i::-1], ((0, 0), (0, 0), (0, 23 - i))) for i in at]
        curves.append(np.mean(back, (0, 1, 2)))
    fields = np.array(fields)
    assert found.tokens == pytest.approx(fields.mean())
    assert np.array(found.heads) == pytest.approx(fields.mean((0, 3)))
    shares = np.mean(curves, 0).cumsum()
    assert found.curve == tuple((n, pytest.approx(shares[n - 1])) for n in (1, 2, 4, 8, 16))
    low, high = found.interval
    ends = sorted(fields.mean((1, 2, 3)))
    assert (low, high) == pytest.approx(ends)  # of two segments: both are drawn alone often
    alone = []
    for layer in opened.model.layers if name == "bloom" else ():
        bias = np.exp(layer.encoding.bias(np.arange(24)))
        alone.append(np.mean([[reaches(h[i::-1], 0.05) for i in at] for h in bias]))
    assert found.trf == (pytest.approx(np.mean(alone)) if alone else None)


READ = TokenText(np.arange(3), np.arange(3), 5, "a text")
MODEL = ModelOutline(Path("/nowhere/small"), "toy", (LayerOutline(width=9, cached=8),))


def test_a_field_near_the_most_that_a_segment_shows_is_at_least_so_long():
    curves, most = np.full((3, 20), 1 / 20), 20.0
    for tokens, at_least in ((17.9, False), (18.0, True)):
        field = _Measured(tokens, (1.0, 2.0), curves, most, ((1.5,),), 3.0)
        found = _answer(MODEL, "attention", 0.05, field, READ, Mask(16))
        assert found.at_least == at_least and (found.length, found.segments) == (20, 3)
        assert found.curve == tuple((n, pytest.approx(n / 20)) for n in (1, 2, 4, 8, 16))
    assert (found.model, found.method, found.threshold) == ("small", "attention", 0.05)
    assert (found.interval, found.heads, found.trf) == ((1.0, 2.0), ((1.5,),), 3.0)
    assert (found.text_source, found.first) == ("a text", "the first token 5 in each row")
    assert found.visible == str(Mask(16)) and "hide keys" in found.notes[0]
    assert "hold more than 1 - eps of a row's attention" in found.definition


MADE = {"subject": "small", "label": Label.MEASURED}
LINES = (
    Perplexity("last token", 16, 1.5, 4.48169, 0.0213, 31, 16, 1.0, 1.0, 1.0),
    Perplexity("last token", 64, 1.7, 5.47391, 0.0341, 32, 16, 1.2214, 1.1012, 1.3413),
)
PLAIN = Cost(None, 70, 6720.0, 7.12345, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
NARROW = Cost(7, 33, 3168.0, 7.34567, 1.03124, 1.01, 1.04, 1.05, 1.02, 1.08)
LOSS, REST = sympy.Rational(1, 50), (35, 1, "a text", "no token")
COLUMNS = "windows keys of each keys cache perplexity ratio on the other part"
AS = "as it is - 70 6.56 KiB 7.1235 1.0000 (1.0000 to 1.0000) 1.0000 (1.0000 to 1.0000)"
OTHERS = (
    "Targets are the second half of each row, so that each is predicted from 17 tokens or more. "
    "Rows are those of this text: another one may need more."
)
CURVE = ((1, 0.3), (2, 0.45678), (8, 0.99994), (16, 0.99996))
GRADIENT = EmpiricalReceptiveField(
    "small",
    "gradient",
    0.95,
    12.345,
    False,
    (11.21, 13.44),
    CURVE[3:],
    24,
    3,
    "a text",
    "no token",
    "the view",
    definition="it",
    notes=("some",),
    **MADE,
)
MEASURED = ["nearest tokens share", "16 1", "text: a text; no token", "Some.", "It."]
SAID = [
    (
        PerplexityByLength(
            "small",
            "last-token",
            16,
            1.2,
            LINES,
            "the view",
            "a text",
            "no token",
            ("some",),
            **MADE,
        ),
        [
            "small under the view: perplexity 5.4739 with 64 tokens of context, 1.221 times that "
            "with 16 (last-token, 32 targets, no token). [measured]",
            "context perplexity standard error of nats ratio, 95 %",
            "16 4.4817 0.021 1 (1 to 1)",
            "64 5.4739 0.034 1.221 (1.101 to 1.341)",
            "Text: a text.",
            "Some.",
        ],
    ),
    (
        SmallestWindow(
            "small", LOSS, math.inf, {AS_IS: PLAIN}, *REST, status=Status.INFINITE, **MADE
        ),
        [
            "small: no window below 35 tokens costs at most 2 % of perplexity. [measured]",
            "Rows of 35 tokens; ratios with 95 % intervals, paired",
            COLUMNS,
            AS,
            "text: a text; 1 row in each part, no token",
            OTHERS,
        ],
    ),
    (
        SmallestWindow(
            "small",
            LOSS,
            7,
            {AS_IS: PLAIN, "one window": NARROW},
            *REST,
            status=Status.EXACT,
            **MADE,
        ),
        [
            "small: sliding_window = 7 costs at most 2 % of perplexity on this text. [measured]",
            "Rows of 35 tokens; ratios with 95 % intervals, paired",
            COLUMNS,
            AS,
            "one window 7 33 3.09 KiB 7.3457 1.0312 (1.0100 to 1.0400) 1.0500 (1.0200 to 1.0800)",
            "text: a text; 1 row in each part, no token",
            OTHERS,
        ],
    ),
    (
        EmpiricalReceptiveField(
            "small",
            "attention",
            0.05,
            12.345,
            True,
            (11.21, 13.44),
            CURVE,
            24,
            3,
            "a text",
            "no token",
            heads=((1.23, 4.56), (7.89, 2.34)),
            trf=5.67,
            definition="it",
            **MADE,
        ),
        [
            "small: by its attention, at least the nearest 12.3 tokens (11.2 to 13.4) hold all but "
            "5 % (by its bias alone 5.7), measured on 3 segments of 24 tokens, 95 %. [measured]",
            "The field fills segments of 24 tokens: longer ones may show more.",
            "nearest tokens share",
            "1 0.3",
            "2 0.4568",
            "8 0.9999",
            "TRF of the bias alone on the same rows: 5.7 tokens",
            "by head: 1.2, 4.6; 7.9, 2.3",
            "text: a text; no token",
            "It.",
        ],
    ),
    (
        GRADIENT,
        [
            "small under the view: by its gradient, the nearest 12 tokens (11 to 13) hold all but "
            "5 %, measured on 3 segments of 24 tokens, 95 %. [measured]",
            *MEASURED,
        ],
    ),
    (
        replace(GRADIENT, interval=None, visible="", threshold=0.99),
        [
            "small: by its gradient, the nearest 12 tokens hold all but 1 %, measured on 3 "
            "segments of 24 tokens, 95 %. [measured]",
            *MEASURED,
        ],
    ),
]


@pytest.mark.parametrize(("answer", "lines"), SAID)
def test_what_answers_say(answer, lines):
    """Each number in its place; tables row by row, nothing wrapped."""
    text = answer.text(details=True, width=1000)
    assert [" ".join(line.split()) for line in text.splitlines()] == lines
