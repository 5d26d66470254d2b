"""Every number that an answer prints, in its order, beside the record that holds it."""

import json
import re

import pytest
import sympy

from farfield.theory.answers.answer import Label, Status
from farfield.validation.far_field.blame import Blame, Excess
from farfield.validation.far_field.change_scores import Mended
from farfield.validation.far_field.foresee import Foresight, Ratio
from farfield.validation.far_field.gap_probe import Gap, GapProbe
from farfield.validation.far_field.mend import Advice, Mending
from farfield.validation.far_field.recall import NeedleScore
from farfield.validation.harness.measure import Perplexity
from farfield.validation.models.audit import audit
from farfield.validation.models.empirical import EmpiricalReceptiveField
from farfield.validation.models.perplexities import PerplexityByLength
from farfield.validation.models.smallest_window import AS_IS, Cost, SmallestWindow

MADE = {"subject": "small", "label": Label.MEASURED}
NUMBER = re.compile(r"(?<![\w.])[-+−]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]\d+)?")


def told(answer):
    """The numbers of each line that has any, as text; tables row by row, nothing wrapped."""
    lines = (NUMBER.findall(line) for line in answer.text(details=True, width=1000).splitlines())
    return [" ".join(numbers) for numbers in lines if numbers]


def test_perplexities():
    lines = (
        Perplexity("last token", 16, 1.5, 4.48169, 0.0213, 31, 16, 1.0, 1.0, 1.0),
        Perplexity("last token", 64, 1.7, 5.47391, 0.0341, 32, 16, 1.2214, 1.1012, 1.3413),
    )
    found = PerplexityByLength("small", "last-token", 16, 1.2214, lines, **MADE)
    assert told(found) == [
        "5.4739 64 1.221 16 32",
        "95",
        "16 4.4817 0.021 1 1 1",
        "64 5.4739 0.034 1.221 1.101 1.341",
    ]


def test_windows():
    plain = Cost(None, 70, 6720.0, 7.12345, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    narrow = Cost(7, 33, 3168.0, 7.34567, 1.03124, 1.01, 1.04, 1.05, 1.02, 1.08)
    costs = {AS_IS: plain, "one window": narrow}
    given = ("small", sympy.Rational(1, 50), 7, costs, 35, 6, "a text", "no first token")
    assert told(SmallestWindow(*given, status=Status.EXACT, **MADE)) == [
        "7 2",
        "35 95",
        "70 6.56 7.1235 1.0000 1.0000 1.0000 1.0000 1.0000 1.0000",
        "7 33 3.09 7.3457 1.0312 1.0100 1.0400 1.0500 1.0200 1.0800",
        "6",
        "17",
    ]


@pytest.mark.parametrize(
    ("method", "share", "first"),
    [
        ("attention", 0.05, "12.3 11.2 13.4 5 5.7 3 24 95"),
        ("gradient", 0.95, "12 11 13 5 5.7 3 24 95"),
    ],
)
def test_measured_receptive_fields(method, share, first):
    curve = ((1, 0.3), (2, 0.45678), (8, 0.99994), (16, 0.99996))
    heads = ((1.23, 4.56), (7.89, 2.34))
    given = ("small", method, share, 12.345, True, (11.21, 13.44), curve, 24, 3, "a text")
    found = EmpiricalReceptiveField(*given, heads=heads, trf=5.67, definition="it", **MADE)
    rows = ["1 0.3", "2 0.4568", "8 0.9999"]
    assert told(found) == [first, "24", *rows, "5.7", "1.2 4.6 7.9 2.3"]


def test_forecasts_and_their_causes():
    def ratio(length, said, known=True):
        looks = said, said + 0.021, said - 0.032
        ends = (said - 0.011, said + 0.012), (said - 0.3, said + 0.4)
        return Ratio(length, said if known else None, *ends, *looks, known)

    excesses = Excess(1, 0.2, (0.1, 0.3)), Excess(2, -0.05, (-0.07, -0.03))
    causes = Blame(0.456, 0.123, excesses, 1, 0.0123)
    gaps = (Gap(32, 0.011, 0.01, 0.012), Gap(64, 0.456, 0.4, 0.5))
    probe = GapProbe(gaps, 32, 64, 16, 5, 3.21, subject="small", label=Label.FORECAST)
    found = Foresight(
        status=Status.ENCLOSED,
        label=Label.FORECAST,
        subject="small",
        to=64,
        length=16,
        log_ratio=0.5,
        ratios=(ratio(32, 0.25, False), ratio(64, 0.5)),
        pairs=(12345, 2345, 2080),
        positions=probe,
        blame=causes,
    )
    assert told(found) == [
        "64 1.65 16 1.22 2.46",  # exp(0.5), exp(0.2), exp(0.9)
        "95 90",
        "32 0.239 0.262 -0.05 0.65 0.250 0.271 0.218 +0.011 +0.239",
        "64 0.500 0.489 0.512 0.20 0.90 0.500 0.521 0.468 +0.456 +0.044",
        "32 +0.46 64",
        "1",
        "95",
        "0.456",
        "0.123",
        "1 +0.200 +0.100 +0.300",
        "2 -0.050 -0.070 -0.030",
        "0.012",
        "12,345 2,345 2,080",
        "16",
    ]
    assert told(probe)[1:] == [
        "95",
        "32 +0.011 +0.010 +0.012",
        "64 +0.456 +0.400 +0.500",
        "5 16 3.210 0.05",
    ]


def test_changes_of_a_model():
    """Shares by Wilson: of 2 of 2, 1 of 1 and 6 of 6 the lower ends are 1 / (1 + z^2 / n)."""

    def needles(*right):
        places = (9, 16, 40, 100, 120, 130, 200, 250, 256)
        return tuple(NeedleScore("pet", d, -1.0, r) for d, r in zip(places, right, strict=True))

    yarn, cut = needles(*[True] * 9), needles(True, False, True, *[False] * 6)
    rows = (
        Mended("YaRN", 0.111, 0.222, 0.333, 640, 1.25, (), (0.444, 0.05), yarn, (-0.066, 0.007), 3),
        Mended("text cut to 64", 0.5, None, None, 64, 0.125, (), (0.51, None), cut, None, 3),
        Mended("none", None, None, None, 256, 0.5),
    )
    found = Mending(
        status=Status.ENCLOSED,
        to=256,
        length=32,
        trained=64,
        log_ratio=0.444,
        rows=rows,
        best="YaRN",
        advice=Advice.TAKE,
        encoding=(None,),
        window=None,
        way="real rows",
        seconds=(1.234, 5.678),
        **MADE,
    )
    assert told(found) == [
        "256 9 9 64 2 7 0 0.016",
        "32 64 16 64 256",
        "0.111 0.444 -0.066 0.007 0.222 +0.333 640 1.25 3 "
        "2 2 0.34 1.00 1 1 0.21 1.00 6 6 0.61 1.00 7 0 0.016",
        "64 0.500 0.510 64 0.125 3 1 2 0.09 0.91 1 1 0.21 1.00 0 6 0.00 0.39",
        "256 0.5",
        "1 6",  # whole seconds
        "95",
    ]


def folder(place, **values):
    place.mkdir()
    (place / "config.json").write_text(json.dumps(values))
    return place


def test_bytes_of_an_audit(tmp_path):
    """A token takes 2 x 4 x 256 numbers of a byte over two devices, 1 KiB, in each layer. A window
    of 1024 keys touches 17 pages of 64. What 10 windows leave of a third of 24 GiB is two layers'.
    """
    shape = {"hidden_size": 2560, "num_hidden_layers": 12, "num_attention_heads": 8}
    shape |= {"num_key_value_heads": 4, "sliding_window": 1024, "max_position_embeddings": 32768}
    place = folder(tmp_path / "g", model_type="gemma3_text", **shape)
    how = {"tensor_parallel": 2, "cache_dtype": "fp8", "page": 64}
    found = audit(place, lengths=["8k", "100000"], rows=3, budget="24GiB", **how)
    near, paged = 10 * 1024, 10 * 17 * 64
    longest = ((8 << 20) - paged) // 2 // 64 * 64
    together = (24 << 20) // (paged + 2 * 8192)
    assert told(found) == [
        "12 10 1024 2 3 8192 78.0",
        "26.0 8192 2 64 26.6 96.0",  # (10 x 1024 + 2 x 8192) / 1024, in pages, 12 x 8
        "3 8192 78.0 79.9",
        f"24.0 {longest} 3 {together} 8192",
        "32768",
        "32768",
        "1 5 7 11 10 1024 256 256 10000 8 256 4 1.00 1.00",
        "6 12 2 256 256 1e+06 8 256 4 1.00 32.0",
        f"32768 {near + 2 * 32768:,} 74.0 74.6 384",
        f"8192 {near + 2 * 8192:,} 26.0 26.6 96.0",
        f"100000 {near + 2 * 100000:,} 205 206 1.14",
    ]


def test_heads_of_an_audit(tmp_path):
    """Slopes 1/16 and 1/256: all but 1/10 of a geometric series lies within log(10) / slope."""
    shape = {"hidden_size": 64, "n_layer": 3, "n_head": 2, "seq_length": 2048}
    place = folder(tmp_path / "b", model_type="bloom", **shape)
    found = audit(place, error="1/10", logit_bound=2, value_bound="1/2", budget="1MiB")
    lines = told(found)
    assert lines[:3] == ["3 1588 1 10 2 1 2", "1.50 2048 16 1.50 1.50", "1.00 1360 0 2048"]
    assert [line for line in lines if line.startswith("1 3 ")] == [
        "1 3 1 16 37 74 111 100 2 0.5",
        "1 3 2 256 590 1179 1769 1588 2 0.5",
    ]
    assert told(audit(place, trained=1000, error="1/10", logit_bound=2, value_bound="1/2"))[0] == (
        "3 1588 1000 1 10 2 1 2"
    )
