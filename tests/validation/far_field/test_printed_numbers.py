"""Numbers that are printed beside a forecast, each computed another way."""

import math
from dataclasses import replace

import numpy as np
import pytest

from farfield.theory.answers.answer import Code, Label, Reason, Status
from farfield.theory.answers.blocks import Curve, Facts, Table
from farfield.theory.answers.notation import terminal
from farfield.validation.far_field import cost
from farfield.validation.far_field.blame import Blame, Excess
from farfield.validation.far_field.foresee import Foresight, Ratio, _disagreement, ratio_of
from farfield.validation.far_field.gap_probe import Gap, GapProbe
from farfield.validation.far_field.intervals import (
    Residual,
    around,
    elsewhere,
    mean_and_half,
    radius,
    residuals,
)
from farfield.validation.far_field.worth import Worth
from farfield.validation.models.repairs import Repair


@pytest.mark.parametrize("groups", [[0.1, 0.3], [0.1, 0.11, 0.12], [0.5, -0.5, 0.2]])
@pytest.mark.parametrize("side", [-1, 1])
def test_looks_agree_to_half_the_interval_and_a_little(groups, side):
    main = np.array(groups)
    mean, half = mean_and_half(main)
    for apart, agree in ((half + 0.02 - 1e-9, True), (half + 0.02 + 1e-9, False)):
        check = np.full(len(main), mean + side * apart)
        assert ratio_of(64, 4, main, check, check).agree == agree


def test_looks_that_differ_by_as_much_as_is_allowed_agree():
    zero = np.zeros(3)
    assert ratio_of(64, 4, zero, zero + 0.02, zero + 0.02).agree
    for order, agree in ((0.06, True), (-0.06, True), (0.0601, False)):
        found = ratio_of(64, 4, zero, zero, zero + order)
        assert (found.agree, found.looks) == (agree, (0, 0, pytest.approx(order)))
        assert (found.length, found.elsewhere) == (64, elsewhere(0, 4))


def told(blocks):
    """All that is printed, a line each: texts with a label, rows of tables, points of curves."""
    for block in blocks:
        if isinstance(block, Table):
            yield "numbers in columns {}".format(", ".join(map(str, block.numeric)))
            yield from (" | ".join(map(terminal, row)) for row in block.rows)
        elif isinstance(block, Curve):
            yield from (f"{line.name}: {line.x}, {line.y}" for line in block.lines)
        elif isinstance(block, Facts):
            yield from (f"{terminal(name)}: {terminal(value)}" for name, value in block.rows)
        else:
            label = getattr(block, "label", None)
            yield terminal(block.text) + (f" [{label}]" if label else "")


NEAR = Ratio(32, 0.125, (0.1, 0.15), (-0.25, 0.5), 0.125, 0.13, 0.14, True)
FAR = Ratio(64, 1.5, (1.0, 2.0), (0.5, 2.5), 1.5, 1.6, 1.75, True)
LAYERS = (Excess(1, 0.1, (0.05, 0.15)), Excess(2, -0.25, (-0.375, -0.125)))
GAPS = (Gap(32, 0.01, -0.02, 0.04), Gap(48, 0.3, 0.1, 0.5), Gap(64, 2.5, 2.25, 2.75))
PROBE = GapProbe(GAPS, 32, 48, 16, 4, 3.25, label=Label.FORECAST)
MADE = {"subject": "small", "to": 64, "length": 16, "pairs": (5000, 400, 2080)}
FORESEEN = Foresight(
    status=Status.ENCLOSED,
    label=Label.FORECAST,
    log_ratio=1.5,
    ratios=(NEAR, FAR),
    positions=PROBE,
    source="a text",
    **MADE,
)
PART = "32 | 0.125 | 0.100 to 0.150 | -0.25 to 0.50 | 0.125, 0.130, 0.140"
MARKED = ["numbers in columns 1", "what positions cost | +0.250 ± 0.125"]
MARKED += ["what dilution costs | +1.500 ± 0.250"]


@pytest.mark.parametrize(
    ("blocks", "lines"),
    [
        (
            Blame(0.5, 0.125, LAYERS, 1, -0.75).table(),
            [
                "The far keys of layer 1 cost most.",
                "numbers in columns 1",
                "everything | 0.500 | ",
                "far keys in no layer | 0.125 | ",
                "far keys in layer 1 alone, over that | +0.100 | +0.050 to +0.150",
                "far keys in layer 2 alone, over that | -0.250 | -0.375 to -0.125",
                "positions moved alone, no far keys | -0.750 | ",
                "far keys: (1.0, 2.0), (0.1, -0.25)",
            ],
        ),
        (
            PROBE.blocks(),
            [
                "Positions alone cost nothing up to 32 tokens; +0.30 nats at 48; +2.50 nats at 64. "
                "[forecast]",
                "numbers in columns 0, 1",
                "32 | +0.010 | -0.020 to +0.040",
                "48 | +0.300 | +0.100 to +0.500",
                "64 | +2.500 | +2.250 to +2.750",
                "4 rows of 16 tokens, the second half of each moved to the end; by itself its "
                "loss is "
                "3.250 nats. Costs up to 0.05 count as nothing.",
            ],
        ),
        (
            replace(PROBE, breaks=None, guess="it has not learned").blocks()[:2],
            [
                "Positions alone cost nothing up to 32 tokens. [forecast]",
                "It has not learned. [measured]",
            ],
        ),
        (
            FORESEEN.blocks(),
            [
                "small: perplexity at 64 tokens is 4.48 times that in rows of 16 (1.65 to 12.2 "
                "on text "
                "like this). [forecast]",
                "numbers in columns 0, 1, 5, 6",
                f"{PART} | +0.010 | +0.115",
                "64 | 1.500 | 1.000 to 2.000 | 0.50 to 2.50 | 1.500, 1.600, 1.750 | +2.500 | "
                "-1.000",
                "Here is the text that was read, elsewhere text like it. Looks: doubling, one "
                "stage, "
                "in order.",
                "Positions alone cost nothing up to 32 tokens; +0.30 nats at 48; +2.50 nats at 64. "
                "[forecast]",
                "doubling: (32.0, 64.0), (0.125, 1.5)",
                "one stage: (32.0, 64.0), (0.13, 1.6)",
                "in order: (32.0, 64.0), (0.14, 1.75)",
                "text: a text",
                "queries times keys: 5,000 by doubling, 400 in one stage, 2,080 in a real row",
                "No row longer than 16 tokens passed the model.",
            ],
        ),
        (
            replace(
                FORESEEN,
                log_ratio=None,
                status=Status.UNKNOWN,
                label=None,
                positions=None,
                ratios=(NEAR, replace(FAR, log_ratio=None)),
                reason=Reason(Code.SETTINGS_DISAGREE, "they differ"),
            ).blocks()[:2],
            [
                "small: no forecast at 64 tokens, since they differ.",
                "numbers in columns 0, 1, 5, 6",
                PART,
                "64 | unknown | 1.000 to 2.000 | 0.50 to 2.50 | 1.500, 1.600, 1.750",
            ],
        ),
        (
            Worth(64, 1, 30, (0.25, 0.125), (1.5, 0.25), (0.75, 0.5), -0.125).table(),
            [
                "1 target, of 30, repeat a passage far back, which gives 0.75 nats.",
                *MARKED,
                "what far text gives | -0.750 ± 0.500",
                "marked targets lose | +1.000",
                "others lose | -0.125",
            ],
        ),
        (
            Worth(64, 9, 30, (0.25, 0.125), (1.5, 0.25), (-0.75, 0.5), 0.5).table(),
            [
                "9 targets, of 30, repeat a passage far back, which costs 0.75 nats.",
                *MARKED,
                "what far text gives | +0.750 ± 0.500",
                "marked targets lose | +2.500",
                "others lose | +0.500",
            ],
        ),
        (
            [*Worth(64, 9, 30, (0.25, 0.125), (1.5, 0.25), (0.5, 0.5), 0.5).table()][:1],
            [
                "9 targets, of 30, repeat a passage far back, which is not shown to be worth "
                "anything.",
            ],
        ),
    ],
)
def test_every_number_is_printed_where_it_belongs(blocks, lines):
    assert [*told(blocks)] == lines
    assert FORESEEN.span() == FAR.elsewhere


@pytest.mark.parametrize(
    ("third", "why"),
    [
        (
            1.75,
            "doubling says 1.500 and one stage 1.700, further apart than the interval of 1.000 "
            "to 2.000",
        ),
        (
            1.25,
            "one stage says 1.700 and far keys in order say 1.250: their order matters, and "
            "doubling leaves it out",
        ),
        (None, None),
    ],
)
def test_why_there_is_no_forecast_is_told_in_numbers(third, why):
    last = replace(FAR, log_ratio=None if why else 1.5, check=1.7, third=third)
    assert _disagreement(last) == (Reason(Code.SETTINGS_DISAGREE, why) if why else None)


class Both:
    """Tokens, and pairs of queries and keys, in place of the seconds that they take."""

    def of(self, tokens, pairs):
        return np.array([tokens, pairs])


def test_the_work_of_each_reading_is_that_of_its_tokens_and_of_the_keys_that_they_meet():
    """A query meets half of its row on average, a window, or half of its own row, the row before,
    the first row and the far keys that are drawn. A row of needles has its first and last block and
    a part around each of 24 needles, of 16 tokens or a quarter of a block."""
    work = Both()
    for repair, tokens, keys in (
        (Repair(), 300, 150),
        (Repair(window=20, sinks=4), 300, 24),
        (Repair(cut=100), 100, 50),
        (Repair(cut=500), 300, 150),
    ):
        assert cost.real(work, repair, 300).tolist() == [tokens, tokens * keys]
    for row, block, part in ((32, 32, 16), (128, 128, 32), (1024, 512, 128)):
        places = 2 * block + 24 * part
        pairs = places * places / 2 + row * row / 2
        assert cost.probed(work, row).tolist() == [places + row, pairs]
        first, far = 3 * row * row / 2, 3 * row * (row / 2 + row + row + 50)
        pairs = first + far + places * (places / 2 + row + 50)
        assert cost.foreseen(work, row, 3, 50).tolist() == [2 * 3 * row + places, pairs]


@pytest.mark.parametrize(("rows", "first"), [(3, 5), (6, 3), (12, 4)])
def test_the_time_of_a_search_is_that_of_all_that_it_reads(rows, first):
    """Rounds of as many rows: the first reads some changes beside the base, the later ones one.
    The first row has one end, the others have further ones."""
    time = cost.SearchSeconds(row=7.0, base=2.0, end=0.25, before=11.0)
    total = 11.0
    for row in range(rows):
        changes = first if row < rows // 3 else 1
        total += 7.0 * changes + 2.0 + 0.25 * (changes + 1) * (row > 0)
    assert time.of(rows, first, 3) == pytest.approx(total)
    assert cost.SearchSeconds(7.0, 2.0).of(rows, first, 3) == pytest.approx(
        rows / 3 * (7.0 * (first + 2) + 6.0)
    )


# -- intervals of text that nobody has read --------------------------------------------------------


@pytest.mark.parametrize("share", (0.5, 0.8, 0.9))
def test_intervals_cover_what_is_exchangeable(share):
    """Exactly: the new score is within the radius with probability ceil(share (n+1)) / (n+1)."""
    random, n, trials = np.random.default_rng(0), 19, 4000
    scores = random.standard_cauchy((trials, n + 1))
    inside = [abs(row[-1]) <= radius(row[:-1], share) for row in scores]
    exact = math.ceil(share * (n + 1)) / (n + 1)
    assert np.mean(inside) == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / trials))


def test_too_few_scores_bound_nothing():
    assert radius([0.1] * 8, 0.9) == math.inf and radius([0.1] * 9, 0.9) == 0.1
    assert around(1.0, [], 0.9) == (-math.inf, math.inf)


def test_an_interval_is_the_inverse_of_a_score():
    """A model is inside its interval just if its score is within the radius."""
    scores = [0.1, -0.25, 0.3]
    for measured in np.linspace(-1, 3, 41):
        low, high = around(0.8, scores, 0.75)
        inside = abs(Residual("x", 16, 0.8, measured).score) <= radius(scores, 0.75) + 1e-12
        assert inside == (low - 1e-12 <= measured <= high + 1e-12)
    assert Residual("x", 16, 0.0, 0.1).score == Residual("x", 16, -0.4, 0.1).score == 1


@pytest.mark.parametrize(
    ("times", "nearest"), [(2, 16), (16, 16), (31, 16), (33, 64), (64, 64), (900, 64)]
)
def test_intervals_are_those_of_the_nearest_length_by_ratios(times, nearest):
    scores = [x.score for x in residuals() if x.times == nearest]
    for said in (0.3, 1.0):
        assert elsewhere(said, times) == around(said, scores, 0.9)
        assert elsewhere(said, times, 0.5) == around(said, scores, 0.5)


def test_intervals_hold_on_families_that_are_left_out():
    """What the page promises, of the table that is used."""
    inside = []
    for x in residuals():
        others = [y.score for y in residuals() if y.family != x.family and y.times == x.times]
        low, high = around(x.said, others)
        inside.append(low <= x.measured <= high)
    assert len(inside) >= 36 and 0.85 <= np.mean(inside) <= 1
