"""Numbers that are printed beside a forecast, each computed another way."""

import re
from dataclasses import replace

import numpy as np
import pytest

import farfield
from farfield.theory.answers.answer import Code, Label, Reason, Status
from farfield.theory.answers.notation import terminal
from farfield.validation.far_field import cost
from farfield.validation.far_field.blame import Blame, Excess
from farfield.validation.far_field.foresee import Foresight, Ratio, _disagreement, ratio_of
from farfield.validation.far_field.gap_probe import Gap, GapProbe
from farfield.validation.far_field.intervals import elsewhere, mean_and_half
from farfield.validation.far_field.model_on_text import Settings, subject_of
from farfield.validation.models.repairs import Repair

FEW = Settings(groups=2, rows=6, last=4)


def rows_of(table):
    return [tuple(map(terminal, row)) for row in table.rows]


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


def test_the_causes_are_printed_layer_by_layer():
    layers = (Excess(1, 0.1, (0.05, 0.15)), Excess(2, -0.25, (-0.375, -0.125)))
    said, causes, curve = Blame(0.5, 0.125, layers, 1, -0.75).table()
    assert terminal(said.text) == "The far keys of layer 1 cost most."
    assert rows_of(causes) == [
        ("everything", "0.500", ""),
        ("far keys in no layer", "0.125", ""),
        ("far keys in layer 1 alone, over that", "+0.100", "+0.050 to +0.150"),
        ("far keys in layer 2 alone, over that", "-0.250", "-0.375 to -0.125"),
        ("positions moved alone, no far keys", "-0.750", ""),
    ]
    assert causes.numeric == (1,)
    assert [(line.x, line.y) for line in curve.lines] == [((1, 2), (0.1, -0.25))]


def test_positions_that_cost_are_printed_from_where_they_do():
    gaps = (Gap(64, 0.01, -0.02, 0.04), Gap(96, 0.3, 0.1, 0.5), Gap(128, 2.5, 2.25, 2.75))
    found = GapProbe(gaps, 64, 96, 32, 4, 3.25, label=Label.FORECAST)
    said, table, note = found.blocks()
    assert terminal(said.text) == (
        "Positions alone cost nothing up to 64 tokens; +0.30 nats at 96; +2.50 nats at 128."
    )
    assert rows_of(table) == [
        ("64", "+0.010", "-0.020 to +0.040"),
        ("96", "+0.300", "+0.100 to +0.500"),
        ("128", "+2.500", "+2.250 to +2.750"),
    ]
    assert (said.label, table.numeric) == (Label.FORECAST, (0, 1))
    assert terminal(note.text) == (
        "4 rows of 32 tokens, the second half of each moved to the end; by itself its loss is "
        "3.250 nats. Costs up to 0.05 count as nothing."
    )
    none = replace(found, breaks=None, guess="it has not learned").blocks()
    assert terminal(none[0].text) == "Positions alone cost nothing up to 64 tokens."
    assert [terminal(block.text) for block in none[1:2]] == ["It has not learned."]


def test_a_forecast_is_printed_by_length_beside_what_positions_cost():
    near = Ratio(32, 0.125, (0.1, 0.15), (-0.25, 0.5), 0.125, 0.13, 0.14, True)
    far = Ratio(64, 1.5, (1.0, 2.0), (0.5, 2.5), 1.5, 1.6, 1.75, True)
    gaps = (Gap(32, 0.25, 0.0, 0.5), Gap(48, 9.0, 9.0, 9.0), Gap(64, 0.5, 0.0, 1.0))
    made = {"status": Status.ENCLOSED, "label": Label.FORECAST, "subject": "small", "to": 64}
    made |= {"length": 16, "log_ratio": 1.5, "ratios": (near, far), "pairs": (5000, 400, 2080)}
    probe = GapProbe(gaps, 32, 64, 16, 4, 3.25, label=Label.FORECAST)
    found = Foresight(**made, positions=probe, source="a text")
    said, table, looks, positions, curve, facts, last = found.blocks()
    assert (said.label, found.span()) == (Label.FORECAST, (0.5, 2.5))
    assert terminal(said.text) == (
        "small: perplexity at 64 tokens is 4.48 times that in rows of 16 (1.65 to 12.2 on text "
        "like this)."
    )
    first = ("32", "0.125", "0.100 to 0.150", "-0.25 to 0.50", "0.125, 0.130, 0.140")
    assert rows_of(table) == [
        (*first, "+0.250", "-0.125"),
        (
            "64",
            "1.500",
            "1.000 to 2.000",
            "0.50 to 2.50",
            "1.500, 1.600, 1.750",
            "+0.500",
            "+1.000",
        ),
    ]
    assert table.numeric == (0, 1, 5, 6) and positions == probe.blocks()[0]
    assert "Looks: doubling, one stage, in order." in terminal(looks.text)
    assert [(line.name, line.x, line.y) for line in curve.lines] == [
        ("doubling", (32, 64), (0.125, 1.5)),
        ("one stage", (32, 64), (0.13, 1.6)),
        ("in order", (32, 64), (0.14, 1.75)),
    ]
    assert curve.log_x and [terminal(value) for _, value in facts.rows] == [
        "a text",
        "5,000 by doubling, 400 in one stage, 2,080 in a real row",
    ]
    assert terminal(last.text) == "No row longer than 16 tokens passed the model."
    open_ = replace(far, log_ratio=None)
    made |= {"status": Status.UNKNOWN, "label": None, "log_ratio": None, "ratios": (near, open_)}
    unknown = Foresight(**made, reason=Reason(Code.SETTINGS_DISAGREE, "they differ"))
    said, table, *_ = unknown.blocks()
    assert terminal(said.text) == "small: no forecast at 64 tokens, since they differ."
    assert rows_of(table)[0] == first and rows_of(table)[1][1] == "unknown"


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
    ],
)
def test_why_there_is_no_forecast_is_told_in_numbers(third, why):
    last = Ratio(64, None, (1.0, 2.0), (0.5, 2.5), 1.5, 1.7, third, False)
    assert _disagreement(last) == Reason(Code.SETTINGS_DISAGREE, why)
    assert _disagreement(replace(last, log_ratio=1.5)) is None


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


def test_keys_and_mebibytes_of_a_change_are_those_that_it_keeps(trained, tmp_path):
    """Two numbers of 16 bits for each width, layer and key that is kept."""
    folder = trained("-n/8")
    found = farfield.mend(folder, to=128, settings=FEW, folder=tmp_path, measure=False)
    layers, width = subject_of(folder, None, None, FEW).network.depth, 32
    assert {row.keys for row in found.rows} > {128}
    for row in found.rows:
        named = [re.search(form, row.repair) for form in (r"window (\d+)", r"(\d+) first keys")]
        window, first = (int(match[1]) if match else 0 for match in named)
        assert row.keys == (window + first if window else 128)
        assert row.mib == pytest.approx(2 * 2 * layers * width * row.keys / 2**20), row.repair
