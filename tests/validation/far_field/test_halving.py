"""Rounds of a search, on readings that are made up: what is read, what is left, what is told."""

from types import SimpleNamespace

import numpy as np
import pytest

from farfield.validation.far_field import cost, halving
from farfield.validation.far_field.change_scores import Mended
from farfield.validation.far_field.halving import Halving, ReadingPlan, reading_plan
from farfield.validation.far_field.intervals import mean_and_half
from farfield.validation.far_field.model_on_text import Settings
from farfield.validation.far_field.readings import RowReading, Way
from farfield.validation.far_field.recall import NeedleScore
from farfield.validation.models.outline import LayerOutline
from farfield.validation.models.repairs import Repair, recipe
from farfield.validation.models.speed import Work, lasting

CUT, NONE = Repair(cut=32), Repair()
SETTINGS = [Repair(setting=x, rope={"rope_type": x}) for x in "abcdef"]
A, B, C, D, E, F = SETTINGS
WINDOW, OTHER = Repair(window=20), Repair(window=40)


class Readings:
    """Losses and right answers of a change, by row, and losses by the gap probe."""

    to, trained = 256, 32

    def __init__(self, losses, gaps=None, right=None, turns=True):
        self.losses, self.probes, self.right = losses, gaps or {}, right or {}
        outline = SimpleNamespace(layers=[LayerOutline(key_heads=2, cached=64)] * 3)
        self.subject = SimpleNamespace(length=64, turns=lambda: turns, outline=outline)
        self.asked = []

    def of(self, repair, row):
        self.asked.append((repair, row))
        hits = self.right.get(repair, (False, False))
        needles = (NeedleScore("pet", 70, -1.0, hit, row=row) for hit in hits)
        return RowReading(self.losses[repair] + row / 8, tuple(needles))

    def gaps(self, repair):
        return np.array(self.probes[repair])[None]

    def within(self, repair, length):
        return length / 8


def search(readings, way=Way.REAL, rows=6, first=3):
    told = []
    plan = ReadingPlan(way, rows, first, (1.0, 2.0), "")
    return Halving(readings, plan, lambda *said: told.append(said)), told


def test_the_probe_drops_what_is_shown_to_lose_and_rounds_read_fewer_and_fewer():
    """By the probe what is .1 above the best is kept, .12 is not; what is noisy is not dropped."""
    gaps = {CUT: [0.5] * 4, NONE: [-0.1] * 4, A: [0.0] * 4, B: [0.02] * 4, F: [9.0] * 4}
    gaps |= {C: [-0.6, 0.6, 0.0, 0.1], D: [-0.05] * 4, E: [-0.04, -0.08, -0.07, -0.07]}
    right = {D: (True, False), CUT: (True, False), NONE: (True, True)}
    readings = Readings({NONE: 3.0, CUT: 1.0, D: 1.0, E: 0.5, A: 0.9, C: 0.9}, gaps, right)
    each, told = search(readings, first=5)
    each.halve([NONE, CUT, *SETTINGS, WINDOW])
    assert readings.asked == [
        *((repair, row) for row in (0, 1) for repair in (CUT, NONE, E, D, A, C)),
        *((repair, row) for row in range(2, 6) for repair in (CUT, D)),  # NONE is dear
    ]
    assert (each.base, each.left, each.probed[F], WINDOW in each.probed) == (CUT, [D], 9, False)
    lines = told[1::2]
    assert [line[:3] for line in lines] == [
        *(("settings", k, 8) for k in range(1, 9)),
        *(("rows", k, 20) for k in range(1, 21)),
    ]
    assert lines[0][3] == "text cut to 32, gap probe: log ratio +0.500"
    assert lines[17][3] == "d, row 2: 1 of 2 needles, loss +1.125"
    words = {"settings": "settings", "rows": "read"}
    notes = [(f"{line[3]} ({line[1]} of {line[2]} {words[line[0]]})", 0, 0) for line in lines]
    assert told[::2] == notes


def test_without_a_cut_text_half_of_the_changes_are_left_and_the_recipe_always():
    default = recipe(64)
    changes = [WINDOW, OTHER, *SETTINGS, default]
    losses = {change: k / 4 for k, change in enumerate(changes)} | {NONE: 1.0}
    readings = Readings(losses, turns=False)
    each, _ = search(readings, Way.FAR, rows=3)
    each.halve([NONE, *changes])
    assert (each.base, each.left) == (NONE, [WINDOW, default])
    assert readings.asked == [
        *((repair, 0) for repair in (NONE, *changes)),
        *((repair, 1) for repair in (NONE, WINDOW, OTHER, A, default)),
        *((repair, 2) for repair in (NONE, WINDOW, default)),
    ]
    for left, base, less in (
        ([WINDOW, default], NONE, -2.0),
        ([OTHER, default], NONE, -1.75),
        ([WINDOW, OTHER], NONE, None),
        ([default], NONE, None),
        ([WINDOW, default], CUT, None),
    ):
        each.left, each.base = left, base
        rival = None if less is None else (left[0].name, (less, pytest.approx(0)))
        assert each.rival() == rival
    few, _ = search(Readings(losses, turns=False), Way.FAR, rows=3)
    few.halve([NONE, WINDOW, OTHER, A])
    assert [sum(r == change for r, _ in few.readings.asked) for change in (WINDOW, A)] == [3, 1]


@pytest.mark.parametrize("way", Way)
def test_a_line_says_what_was_read_of_a_change(way):
    """What it costs on short rows is asked for the first change that is left, if it turns."""
    readings = Readings({CUT: 1.0, D: 0.5}, right={D: (True, False)})
    each, _ = search(readings, way)
    each.base, each.left, each.probed = CUT, [D, E, CUT], {D: 7.0, E: 8.0}
    each.read = {D: {k: readings.of(D, k) for k in range(3)}, CUT: {0: readings.of(CUT, 0)}}
    real = way is Way.REAL

    def line(name, means, keys, needles, measured=None, **more):
        more |= {
            "real" if real else "recall": tuple(needles),
            "measured": measured if real else None,
        }
        mib = 3 * 64 * 2 * keys / 2**20  # numbers of two bytes, of each layer and key
        return Mended(name, means[not real], *more.pop("near", (None, None)), keys, mib, **more)

    whole = [n for row in each.read[D].values() for n in row.needles]
    losses = mean_and_half(np.array([0.5, 0.625, 0.75]))
    more = {"near": (8.0, 4.0), "difference": (-0.5, None), "rows": 3}
    assert each.line(D) == line("d", (7.0, 0.625), 256, whole, losses, **more)
    needles = each.read[CUT][0].needles
    assert each.line(CUT) == line(CUT.name, (None, 1.0), 32, needles, (1.0, None), rows=1)
    assert each.line(E) == line("e", (8.0, 8.0), 256, ()) and each.apart(E, D) == (0.0, None)
    for left, turns in (([CUT], True), ([D], False)):
        each.left, readings.subject.turns = left, lambda turns=turns: turns
        assert each.line(left[0]).short is None


WORK = Work(1000, 32, 2, 32, 1e-6)


def plan(to, text=10**6, measure=None, quick=False, minutes=None, probes=0, length=32, turns=True):
    outline, few = SimpleNamespace(trained=4 * length), Settings(groups=2, rows=4, last=4)
    how = {"length": length, "settings": few, "groups": (0, 0), "source": "t", "outline": outline}
    subject = SimpleNamespace(turns=lambda: turns, text=np.zeros(text), **how)
    return reading_plan(subject, to, WORK, measure, quick, minutes, probes)


@pytest.mark.parametrize(
    ("how", "rows", "first", "way"),
    [
        ({"to": 900_000}, 2, 3, Way.FAR),
        ({"to": 900_000, "quick": True}, 2, 3, Way.PROBE),
        ({"to": 256, "quick": True}, 2, 3, Way.PROBE),
        ({"to": 256, "probes": 9, "minutes": 60}, 12, 5, Way.REAL),
    ],
)
def test_a_plan_says_its_time_and_that_of_each_kind_of_row(how, rows, first, way):
    found, to = plan(**how), how["to"]
    real = cost.real(WORK, NONE, to)
    said = cost.probed(WORK, 32) if way is Way.PROBE else cost.foreseen(WORK, 32, 4, 1024)
    base, before = said, 0.0
    if way is Way.REAL:
        base, before = cost.real(WORK, Repair(cut=128), to), 9 * WORK.of(32, 512)
    row = 1.1 * (real if way is Way.REAL else said)
    time = before + rows / 3 * (row * (first + 2) + 3 * base)
    assert (found.way, found.rows, found.first, found.seconds) == (way, rows, first, (real, said))
    assert found.text == (
        f"about {lasting(time)}: {rows} rows, as {way}, since a real row takes about "
        f"{lasting(real)} and its forecast {lasting(said)}"
    )


def test_the_plan_has_as_many_rows_as_there_is_time_for():
    """A text that is cut costs less. Without minutes, there is the time of eight rows."""
    one, cut = (cost.real(WORK, repair, 256) for repair in (NONE, Repair(cut=128)))
    short = WORK.of(32, 512)
    assert cut < 0.6 * one < plan(256).seconds[1] < cost.real(WORK, NONE, 900_000)
    for rounds, first, probes in ((1, 3, 9), (1, 4, 0), (2, 3, 9), (3, 4, 0), (4, 4, 5)):
        time = rounds * (1.1 * (first + 2) * one + 3 * cut) + probes * short
        enough = plan(256, minutes=time / 60 + 1e-9, probes=probes)
        assert (enough.rows, enough.first) == (3 * rounds, first)
    for minutes, most in ((1e-9, (3, 3)), (60, (12, 5))):
        assert (plan(256, minutes=minutes).rows, plan(256, minutes=minutes).first) == most
    for probes in (0, 20, 60):
        free = int((8 * one - 3 * cut - probes * short) / (1.1 * one)) - 2
        assert plan(256, probes=probes).first == max(3, min(5, free))
    whole = plan(256, turns=False, minutes=60)
    assert (whole.way, whole.rows, whole.first) == (Way.REAL, 2, 3)  # of each group one


def test_further_ends_are_counted_where_there_is_room_for_them():
    """Of 768 tokens that see a row of 4,096; every row but the first has one, under each setting
    that is read and for the cut text: of six rows one in the first round with three settings, four
    with the best. So many minutes, and no fewer, are enough for six rows."""
    further = cost.further(WORK, 512, 4096)
    assert further == pytest.approx(1e-6 * (2000 * 768 + 128 * 768 * 4096))
    assert cost.further(WORK, 511, 4096) == cost.further(WORK, 512, 4095) == 0
    one, cut = (cost.real(WORK, repair, 4096) for repair in (NONE, Repair(cut=2048)))
    time = 2 * (1.1 * 5 * one + 3 * cut) + (1 * 4 + 4 * 2) * further
    for minutes, rows in ((1.0001 * time / 60, 6), (0.9999 * time / 60, 3)):
        assert plan(4096, measure=True, minutes=minutes, length=512).rows == rows


def test_real_rows_need_room_in_the_text_and_in_memory(refusal, monkeypatch):
    assert (plan(256, text=257).way, plan(256, text=256).way) == (Way.REAL, Way.FAR)
    assert plan(256, text=256, measure=False).way is plan(256, measure=False).way is Way.FAR
    said = refusal("accepted: a longer text", plan, 256, text=256, measure=True)
    assert said.startswith("t has 256 tokens, a real row takes 257; ")
    for free, way in ((WORK.memory(256), Way.FAR), (WORK.memory(256) + 1, Way.REAL)):
        monkeypatch.setattr(halving, "available", lambda free=free: free)
        assert plan(256).way is way
    monkeypatch.setattr(halving, "available", lambda: 3 << 30)
    said = refusal("accepted: a shorter row", plan, 900_000, measure=True)
    most = 4 * 900_000 * (16 * 32 + 3 * 256 * 2) >> 20
    assert said.startswith(
        f"a real row of 900000 tokens takes about {most:,} MiB beside the weights, 3,072 MiB are"
    )
