"""Changes at inference: what the table says of each is what far field, probe and needles say."""

import functools
import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import farfield
from farfield.theory.answers.answer import Label, Status
from farfield.theory.answers.blocks import Facts, Table, facts
from farfield.theory.answers.notation import terminal
from farfield.theory.encodings import encoding
from farfield.validation.far_field.change_scores import Mended, share
from farfield.validation.far_field.cost import real, timed
from farfield.validation.far_field.gap_probe import gap_losses
from farfield.validation.far_field.halving import Halving, ReadingPlan
from farfield.validation.far_field.long_rows import Stages
from farfield.validation.far_field.mend import (
    Advice,
    Mending,
    _advised,
    _changes,
    _formula,
    _mending,
)
from farfield.validation.far_field.model_on_text import Settings, subject_of
from farfield.validation.far_field.readings import RowReadings, Way, begins
from farfield.validation.far_field.recall import NeedleScore, distances, needle_row, recalled
from farfield.validation.far_field.rotary import Paste, applied, settings_of
from farfield.validation.json_files import Book
from farfield.validation.models import speed
from farfield.validation.models.network import losses
from farfield.validation.models.repairs import Repair, Repaired, candidates, recipe

FEW = Settings(groups=2, rows=6, last=4)
TRAINED, TO = 64, 256


@pytest.fixture(scope="module")
def rotary(small_llama):
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 300}
    return small_llama(**sizes, max_position_embeddings=TRAINED)


@pytest.fixture(scope="module")
def words():
    return np.random.default_rng(0).integers(0, 300, 2000)


def test_a_stopped_search_goes_on_where_it_stopped(interrupted, trained, tmp_path):
    folder, how = trained("-n/8"), {"to": 128, "settings": FEW, "measure": True}
    interrupted(7, farfield.mend, folder, folder=tmp_path / "stopped", **how)
    (kept,) = (tmp_path / "stopped").iterdir()
    before, asked = kept.read_text(), []

    def count(stage, done, total, note=""):
        asked.append((stage, done, total))

    found = farfield.mend(folder, folder=tmp_path / "stopped", progress=count, **how)
    whole = farfield.mend(folder, folder=tmp_path / "whole", **how)
    assert replace(found, seconds=(0, 0)) == replace(whole, seconds=(0, 0))
    assert set(json.loads(before)) < set(json.loads(kept.read_text()))
    rows = [(done, total) for stage, done, total in asked if stage == "rows"]
    assert rows == [(k, len(rows)) for k in range(1, len(rows) + 1)]
    plain = next(row for row in found.rows if row.repair == "none")
    assert plain.measured is not None and plain.keys == 128 and not found.pastes
    assert found.best in {row.repair for row in found.rows}
    assert {n.kind for n in plain.real} == {"sequence"}


def readings_of(subject, way, folder):
    return RowReadings(subject, TO, way, Book(folder / f"{way}, {subject.bos}.json"))


@pytest.mark.parametrize("bos", [None, 7])
@pytest.mark.parametrize("name", ["none", "YaRN 4", "text cut to 64", "log scale"])
def test_losses_are_those_of_real_rows(name, bos, rotary, words, tmp_path):
    """A text begins with a token of its own, where the model has one."""
    subject = replace(subject_of(rotary, words, 32, FEW), bos=bos)
    readings = readings_of(subject, Way.REAL, tmp_path)
    known = [Repair(), *settings_of(rotary.config, TRAINED, TO)]
    setting = next(s for s in known if s.name == name)
    for k, start in enumerate(begins(len(words) - TO, row) for row in range(3)):
        text = torch.from_numpy(words[start:]).long()
        row = needle_row(None, text, TO, distances(32, TO, TRAINED), k, 32)
        end, begin = row.asks - 1, TO - (setting.cut or TO)
        short, whole = (row.tokens[at : end + 1].clone() for at in (end - 32, begin))
        if bos is not None:
            short[0] = whole[0] = bos
        own = losses(subject.network, short[None], 16)
        with applied(subject.live, setting):
            changed = losses(Repaired(subject.network, setting), whole[None], 16)
        found = readings.of(setting, k)
        assert found.loss == pytest.approx(float(changed.mean() - own.mean()), abs=1e-4)
        assert {n.row for n in found.needles} == {k} and len(found.needles) == len(row.needles)


@pytest.mark.parametrize("bos", [None, 7])
@pytest.mark.parametrize(
    "repair",
    [
        Repair(),
        Repair(scale=True),
        Repair(cut=48),
        Repair(cut=32),
        Repair(rope={"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4}),
    ],
)
def test_a_forecast_of_a_row_is_one_stage_of_its_group(repair, bos, rotary, words, tmp_path):
    subject = replace(subject_of(rotary, words, 32, replace(FEW, groups=3)), bos=bos)
    readings, check = readings_of(subject, Way.FAR, tmp_path), subject.settings.check
    network, ends = Repaired(subject.network, repair), [32, repair.cut or TO]
    for row in (0, 2):  # the first one before the unchanged model has read anything
        found = readings.of(repair, row)
        with applied(subject.live, repair):
            direct = subject.ratios(ends[1:], check, network)[ends[1]]
        assert found.loss == pytest.approx(direct[row], abs=1e-6)
        with applied(subject.live, repair):
            drawn = replace(check, seed=row)
            stages = Stages(network, subject.groups[row], 4, drawn, bos=bos)
            for stage in [1] * (ends[1] > 32):
                stages.stage(stage, ends)
            read = functools.partial(stages.blocks, ends=ends)
            _, scores = recalled(readings.rows[row], read, repair.cut)
        assert [n.log_probability for n in found.needles] == pytest.approx(
            [n.log_probability for n in scores], abs=1e-5
        )
        assert [n.right for n in found.needles] == [n.right for n in scores]
        again = readings_of(subject, Way.FAR, tmp_path)
        again._foreseen = None  # it stands in the book
        assert again.of(repair, row) == found


def test_the_probe_reads_a_row_of_each_group(rotary, words, tmp_path):
    subject = subject_of(rotary, words, 32, replace(FEW, groups=3))
    near, far = (readings_of(subject, way, tmp_path) for way in (Way.PROBE, Way.FAR))
    rows = subject.groups[:, 0]
    for repair, length in ((Repair(), TO), (Repair(cut=64), 64), (Repair(window=20), 32)):
        network = Repaired(subject.network, repair)
        costs = gap_losses(network, rows, length) - gap_losses(subject.network, rows, 32)
        assert near.gaps(repair) == pytest.approx(costs.numpy())
        assert far.gaps(repair) == pytest.approx(costs[:1].numpy())
        assert near.of(repair, 1).loss == pytest.approx(float(costs[1].mean()))
    plain = gap_losses(subject.network, rows[:1], 48)
    costs = gap_losses(network, rows[:1], 48) - plain
    assert near.within(repair, 48) == far.within(repair, 48) == pytest.approx(float(costs.mean()))
    assert near.trained == TRAINED
    bare = replace(subject, outline=replace(subject.outline, trained=None))
    assert readings_of(bare, Way.FAR, tmp_path).trained == 32


def test_the_plan_reads_what_is_cheaper(refusal, rotary, words, tmp_path):
    how = {"length": 32, "settings": Settings(groups=2, rows=4, last=4), "folder": tmp_path}
    near = farfield.mend(rotary, words, to=TO, **how)
    assert near.way == "real rows" and near.seconds[0] < near.seconds[1]
    far = farfield.mend(rotary, words, to=TO, measure=False, **how)
    assert far.way == "far field" and far.label == Label.FORECAST
    for minutes in (0, 1e6):
        refusal("a number above 0", farfield.mend, rotary, words, to=TO, minutes=minutes, **how)
    refusal("^output folder", farfield.mend, rotary, words, to=TO, minutes=0.5, folder="/proc/x")


def test_numbers_of_rows_with_other_ends_are_not_taken_up(rotary, words, tmp_path, monkeypatch):
    """What was written down of fewer needles a row is not read for more of them."""
    how = {"length": 32, "settings": Settings(groups=2, rows=4, last=4), "quick": True}
    for ends, books in ((2, 1), (2, 1), (3, 2)):
        monkeypatch.setattr("farfield.validation.far_field.mend.ENDS", ends)
        farfield.mend(rotary, words, to=TO, folder=tmp_path, **how)
        assert len([*tmp_path.iterdir()]) == books


def test_work_is_what_the_layers_multiply(rotary, words):
    """Of each token: projections, the feed-forward part, the output; of each pair: two products."""
    work = timed(subject_of(rotary, words, 32))
    of_a_token = 4 * 32 * 32 + 3 * 32 * 32 + 300 * 32 + 3 * 32
    assert work.operations(1, 0) == 2 * of_a_token and work.operations(0, 1) == 4 * 32
    assert real(work, Repair(), TO) == work.of(TO, TO**2 / 2)
    assert work.seconds > 0 and real(work, Repair(cut=64), TO) < real(work, Repair(), TO)


@pytest.mark.parametrize(("cuda", "first"), [(True, 200), (False, 16)])
def test_a_gpu_prepares_the_row_that_is_timed(cuda, first):
    """Its kernels of another length are others: a row was said to take forty times as long."""
    weight = SimpleNamespace(is_cuda=cuda, numel=lambda: 10)
    live = SimpleNamespace(modules=list, parameters=lambda: [weight])
    read, outline = list[int](), SimpleNamespace(layers=(), width=4)
    assert speed.timed(outline, live, read.append, 200).parameters == 10 and read == [first, 200]


def line(name, difference=None, right=(), loss=1.0):
    scores = tuple(NeedleScore("pet", 60 + 200 * (k > 3), -1.0, hit) for k, hit in enumerate(right))
    return Mended(name, loss, 0.0, 0.0, 9, 1.0, scores, difference=difference, rows=2)


CUT, YARN = Repair(cut=64), Repair(setting="YaRN 4", rope={"rope_type": "yarn"})


def advice(rows, left=(YARN,), base=CUT, most=TO):
    readings = SimpleNamespace(subject=SimpleNamespace(length=64), trained=64, to=TO)
    search = Halving(readings, None, None, base, left=[*left])
    search.apart = lambda one, other: rows[one].apart
    return _advised(rows, search, most)


NEAR, ALL = (True,) * 4 + (False,) * 8, (True,) * 12


NONE = (False,) * 12


@pytest.mark.parametrize(
    ("none", "yarn", "answer"),
    [
        ((0.0, NEAR), (0.0, ALL), (Repair(), Advice.NOTHING)),
        ((3.0, NEAR), (0.0, ALL), (YARN, Advice.TAKE)),
        ((3.0, NEAR), (0.2, ALL), (CUT, Advice.NO_DIFFERENCE)),
        ((3.0, NEAR), (0.0, NEAR), (CUT, Advice.NO_DIFFERENCE)),
        ((0.0, NONE), (0.0, ALL), (YARN, Advice.TAKE)),
    ],
)
def test_over_the_cut_text_right_answers_decide(none, yarn, answer):
    cut = line("text cut to 64", None, NEAR if any(none[1]) else (True,) * 6 + (False,) * 6)
    lines = (line(name, (x, 0.1), y) for name, (x, y) in (("none", none), ("YaRN 4", yarn)))
    rows = dict(zip((Repair(), YARN), lines, strict=True))
    assert advice(rows | {CUT: cut}) == answer
    left = answer if answer[1] is Advice.NOTHING else (CUT, Advice.NO_DIFFERENCE)
    assert advice(rows | {CUT: cut}, left=()) == left  # where the probe drops all others
    few = advice(rows | {CUT: cut}, left=(Repair(),), most=CUT.cut)
    assert few == (CUT, Advice.NO_DIFFERENCE)


def recalling(name, *right, difference=None, **more):
    """A change that recalls so many of 9 needles at 10 tokens, of 4 at 64 and of 20 at 200."""
    each = [
        (n, k < r)
        for n, most, r in zip((10, 64, 200), (9, 4, 20), right, strict=True)
        for k in range(most)
    ]
    scores = tuple(NeedleScore("pet", n, -1.0, hit, row=k % 2) for k, (n, hit) in enumerate(each))
    found = Mended(name, 0.75, None, None, 64, 1.25, scores, difference=difference, rows=3)
    return replace(found, **more)


LEFT = recalling(CUT.name, 9, 4, 0)
TRADING = recalling(
    "YaRN 4",
    2,
    4,
    20,
    difference=(-0.25, 0.125),
    keys=TO,
    mib=5.0,
    rows=2,
    short=0.125,
    trained=-0.25,
    measured=(0.5, 0.1),
)
PLAIN = replace(recalling("none", 0, 0, 0, difference=(3.0, None)), recall=(), rows=0)
MADE = {"status": Status.ENCLOSED, "label": Label.MEASURED, "subject": "small", "to": TO}
MADE |= {"length": 32, "trained": 64, "log_ratio": 1.0, "encoding": (), "window": None}
MADE |= {"way": "real rows", "seconds": (7.0, 600.0), "source": "a text"}


def said(found):
    """What an answer says first, and what it notes, in words."""
    first, *others = found.blocks()
    return terminal(first.text), [terminal(x.text) for x in others if hasattr(x, "text")]


@pytest.mark.parametrize(
    ("yarn", "none", "best", "told"),
    [
        (TRADING, PLAIN, CUT, {"advice": Advice.TRADE, "alternative": "YaRN 4"}),
        (recalling("YaRN 4", 8, 4, 20, keys=TO), PLAIN, YARN, {"advice": Advice.TAKE}),
        (
            TRADING,
            recalling("none", 9, 4, 0, difference=(0.0, 0.1), log_ratio=None),
            Repair(),
            {"advice": Advice.NOTHING, "log_ratio": 0.0},
        ),
    ],
)
def test_an_answer_is_the_state_of_its_search(yarn, none, best, told, monkeypatch):
    monkeypatch.setattr("farfield.validation.far_field.mend.pastes", lambda *given: given)
    yarn = replace(yarn, difference=(0.0, 0.1))
    rows = {Repair(): none, CUT: LEFT, YARN: yarn}
    layers = [SimpleNamespace(encoding=x and encoding(x)) for x in ("-n/8", None)]
    outline, live = SimpleNamespace(name="small", layers=layers), SimpleNamespace(config="its own")
    given = {"outline": outline, "length": 32, "source": "a text", "guess": "little"}
    subject = SimpleNamespace(live=live, turns=lambda: True, **given)
    readings = SimpleNamespace(subject=subject, trained=64, to=TO)
    plan = ReadingPlan(Way.REAL, 6, 3, (7.0, 600.0), "")
    search = Halving(readings, plan, None, CUT, left=[YARN])
    search.line, search.rival = rows.__getitem__, lambda: ("x", (1.0, None))
    found = _mending(search, [*rows], TO)
    others = [rows[k] for k in (YARN, CUT, Repair()) if k != best]  # by right answers
    changed = () if best == Repair() else (YARN, "its own", TO)
    made = MADE | {"log_ratio": 0.75, "encoding": ("-n/8", None), "guess": "little"} | told
    made |= {"rows": (rows[best], *others), "best": best.name, "rival": ("x", (1.0, None))}
    assert found == Mending(pastes=changed, **made)
    search.plan = replace(plan, way=Way.FAR)
    forecast = made | {"label": Label.FORECAST, "way": "far field", "pastes": ()}
    for live.config, subject.turns in ((None, lambda: True), ("its own", lambda: False)):
        assert _mending(search, [*rows], TO) == Mending(**forecast)


def test_every_number_of_a_change_has_its_column():
    rows = (TRADING, LEFT, PLAIN)
    found = Mending(rows=rows, best="YaRN 4", advice=Advice.TAKE, **MADE)
    (table,) = (block for block in found.blocks() if isinstance(block, Table))
    right = {}
    for row in rows:
        shares = [share([n for n in row.recall if n.distance == at]) for at in (10, 64, 200)]
        right[row] = [
            f"{x.right}/{x.asked} ({x.low:.2f} to {x.high:.2f})" if x else "" for x in shares
        ]
    assert [
        dict(zip(map(terminal, table.header), map(terminal, row), strict=True))
        for row in table.rows
    ] == [
        {
            "change": row.repair,
            "forecast": "0.750",
            "measured": measured,
            "loss": loss,
            "at 32": short,
            "at 64": trained,
            "keys": keys,
            "MiB": mib,
            "rows": count,
            **dict(zip(("recall to 16", "recall to 64", "recall to 256"), right[row], strict=True)),
            "it alone, cut alone": alone,
        }
        for row, measured, loss, short, trained, keys, mib, count, alone in (
            (
                TRADING,
                "0.500",
                "-0.250 ± 0.125",
                "0.125",
                "-0.250",
                "256",
                "5",
                "2",
                "20, 7 (p 0.019, loses near)",
            ),
            (LEFT, "", "", "", "", "64", "1.25", "3", ""),
            (PLAIN, "", "+3.000", "", "", "64", "1.25", "", ""),
        )
    ]
    assert [*table.numeric] == [1, 2, 3]
    better = recalling("YaRN 4", 8, 4, 20)
    (table,) = (b for b in replace(found, rows=(better, LEFT)).blocks() if isinstance(b, Table))
    assert terminal(table.rows[0][-1]) == "20, 1 (p 2.1e-05)"
    assert "rows" in map(terminal, table.header) and "loss" not in map(terminal, table.header)


LOST = "Nothing helps enough: {} of 20 short facts beyond 64 tokens are lost. Take a model trained "
BLIND = replace(LEFT, recall=())


@pytest.mark.parametrize(
    ("best", "rows", "advice", "answer", "lost"),
    [
        (
            LEFT,
            (LEFT, TRADING),
            "TRADE",
            "YaRN 4 trades near needles for far ones: it alone recalls 20, the text cut to 64 "
            "alone 7, but from 0 to 16 tokens back 0 and 7; take it only for what is far",
            20,
        ),
        (LEFT, (LEFT,), "NOTHING", "it does not break, so nothing is to be mended", 20),
        (
            LEFT,
            (LEFT,),
            "NO_DIFFERENCE",
            "no difference is shown: no setting recalls more than the "
            "text cut to 64, which recalls 13 of 33 needles",
            20,
        ),
        (
            BLIND,
            (BLIND,),
            "NO_DIFFERENCE",
            "no difference is shown: no setting recalls more than the text cut to 64",
            0,
        ),
        (PLAIN, (PLAIN,), "NO_DIFFERENCE", "no change is shown to help", 0),
        (TRADING, (TRADING,), "TAKE", "take YaRN 4: it changes the loss by -0.250 ± 0.125 nats", 0),
        (PLAIN, (PLAIN,), "TAKE", "take none: it changes the loss by +3.000 nats", 0),
        (
            recalling("YaRN 4", 8, 4, 10),
            (LEFT,),
            "TAKE",
            "take YaRN 4: it recalls 22 of 33 "
            "needles, the text cut to 64 13 (10 are recalled by it alone, 1 by the cut text alone, "
            "p = 0.012)",
            0,
        ),
        (
            recalling("YaRN 4", 9, 4, 9),
            (LEFT,),
            "TAKE",
            "take YaRN 4: it recalls 22 of 33 needles, "
            "the text cut to 64 13 (9 are recalled by it alone, 0 by the cut text alone, p = "
            "0.0039)",
            11,
        ),
    ],
)
def test_an_answer_says_in_words_what_was_counted(best, rows, advice, answer, lost):
    cut = LEFT in rows or BLIND in rows
    given = [
        Paste("vLLM", "all", None, "it has no flag"),
        Paste("llama.cpp", "new", "--flag 2", "its server"),
    ]
    rows = (best, *(row for row in rows if row != best))
    known = {"rows": rows, "best": best.repair, "alternative": rows[-1].repair, "pastes": given}
    found = Mending(advice=Advice[advice], **known, **MADE)
    first, notes = said(found)
    assert first == f"small at 256 tokens: {answer}."
    assert [x.startswith(LOST.format(lost)) for x in notes[: bool(lost)]] == [True] * bool(lost)
    flags, other, read, recall = notes[bool(lost) :]
    assert flags == "vLLM (all), it has no flag: nothing to paste"
    assert other == "llama.cpp (new), its server: --flag 2"
    assert read == "Read: real rows. A real row takes about 7 s here, its forecast 10 min."
    assert f"loss are to {'the cut text' if cut else 'no change'} on" in recall
    probed = said(replace(found, way="gap probe", guess="it knows nothing"))[1]
    assert probed[0] == "It knows nothing." and probed[-1].startswith(
        "The gap probe sees positions"
    )
    assert [f for f in found.blocks() if isinstance(f, Facts)] == [facts(text="a text")]


@pytest.mark.parametrize(
    ("half", "words"),
    [
        (0.2, "A search pays: x changes it by"),
        (0.3, "No search pays: the best other change, x, is not shown to help more:"),
    ],
)
def test_whether_a_search_pays_is_said_by_the_rows_that_both_were_read_with(half, words):
    told = {"advice": Advice.TAKE, "rival": ("x", (-0.3, half))}
    found = Mending(rows=(TRADING,), best="YaRN 4", **told, **MADE)
    recipe = "graft -2 log(n/8), window 32"
    assert said(found)[1][0] == f"{words} -0.300 ± {half:.3f} nats beside {recipe}."
    assert "search pays" not in replace(found, advice=Advice.NOTHING).text()


@pytest.mark.parametrize(
    ("repair", "layer", "trained", "formula"),
    [
        (Repair(window=4), 1, None, None),
        (Repair(graft=(2, 4)), 1, None, "Piecewise((0, n < 4), (-2*log(n/4), True))"),
        (Repair(window=4), 1, "-n/8", "-n/8"),
        (Repair(window=4), 1, "[-n; -2*n]", "[-n; -2*n]"),
        (Repair(graft=(2, 4), layers=(2,)), 1, "-n", "-n"),
        (
            Repair(graft=(2, 4), layers=(2,)),
            2,
            "-n",
            "Piecewise((-n, n < 4), (-2*log(n/4) - 4, True))",
        ),
    ],
)
def test_the_bias_of_a_layer_is_told_as_it_is_under_the_change(repair, layer, trained, formula):
    assert _formula(repair, layer, trained and encoding(trained)) == formula


def test_changes_to_choose_from_are_told_by_the_training_length():
    grafts = [f"graft -{rate} log(n/16), window 64" for rate in (2, 4)]
    windows = ["window 64", "window 32", "window 64, 4 first keys"]
    alone = ["log scale", "graft -2 log(n/64)", "graft -2 log(n/16)"]
    assert [change.name for change in candidates(64)] == [*windows, *alone, *grafts]
    assert recipe(64).name == grafts[0]


@pytest.mark.parametrize("turns", [True, False])
def test_a_model_without_settings_of_rotations_has_windows_and_grafts(turns, rotary):
    held = [Repair(window=32, sinks=4, in_cache=True)] * turns
    for live, trained in ((SimpleNamespace(), TRAINED), (rotary, None)):
        outline = SimpleNamespace(trained=trained)
        given = SimpleNamespace(live=live, outline=outline, length=32, turns=lambda: turns)
        assert _changes(given, TO) == [*candidates(32), *held]
    given.outline.trained = TRAINED
    if turns:
        assert _changes(given, TO) == settings_of(rotary.config, TRAINED, TO)


def test_without_a_cut_text_a_paired_interval_of_the_loss_decides():
    """The recipe is the default: another change has to beat it."""
    default, other = recipe(64), Repair(scale=True)

    def rows(recipe_helps, apart, none=1.0):
        each = {
            Repair(): line("none", None, loss=none),
            default: line("recipe", recipe_helps),
            other: line("log scale", (-0.5, 0.1)),
        }
        for row in each.values():
            object.__setattr__(row, "apart", apart)
        return each

    both = (other, default)
    helps, beats, unsure = (-0.4, 0.1), (-0.1, 0.05), (-0.1, 0.2)
    assert advice(rows(helps, beats), both, Repair()) == (other, Advice.TAKE)
    assert advice(rows(helps, unsure), both, Repair()) == (default, Advice.TAKE)
    assert advice(rows((-0.0001, 0.1), unsure), both, Repair()) == (Repair(), Advice.NO_DIFFERENCE)
    assert advice(rows((-0.1, None), unsure), both, Repair())[0] == Repair()
    nothing = rows((0.1, 0.2), unsure, none=-0.01)
    assert advice(nothing, both, Repair()) == (Repair(), Advice.NOTHING)
    assert advice(nothing, both, Repair(), most=16)[0] == default
    for loss, said in ((0.05, Advice.NOTHING), (0.051, Advice.NO_DIFFERENCE)):
        assert advice(rows((0.1, 0.2), unsure, none=loss), both, Repair()) == (Repair(), said)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("how", [{"quick": True}, {"measure": True}], ids=str)
@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize(
    ("turns", "others"), [*((True, k) for k in range(4)), *((False, k) for k in range(1, 5))]
)
def test_few_changes_have_rounds_and_an_answer_with_a_number(
    turns, others, limited, how, trained, rotary, words, tmp_path, monkeypatch
):
    """A law at all small counts: what is advised keeps the limit of keys, and was read."""

    def few(subject, to):
        found = _changes(subject, to)
        cut, rest = [r for r in found if r.cut], [r for r in found if not r.cut]
        return [*cut, *rest[len(rest) - others :]]

    monkeypatch.setattr("farfield.validation.far_field.mend._changes", few)
    model = {"model": rotary, "text": words, "length": 32} if turns else {"model": trained("0")}
    to, length = (TO, TRAINED) if turns else (64, 16)
    how = how | {"to": to, "keys": length if limited else None, "settings": FEW, "folder": tmp_path}
    found = farfield.mend(**model, **how)
    rows = {row.repair: row for row in found.rows}
    best, base = rows[found.best], rows[f"text cut to {length}" if turns else "none"]
    assert best.keys <= (length if limited else to)
    assert turns or max(row.rows for row in found.rows if row != base) == base.rows
    said = found.text().split(" tokens: ")[1].split("\n\n")[0]
    assert found.advice != Advice.TAKE or re.search(r"by [-+]\d|recalls \d", said)


def test_what_cannot_be_mended_is_refused_in_a_line(refusal, rotary, words, trained, tmp_path):
    refusal(
        "length 128 is beyond the training length, 64 tokens",
        farfield.mend,
        rotary,
        words,
        to=256,
        length=128,
        quick=True,
        folder=tmp_path,
    )
    refusal(
        "no change keeps at most 2 keys; the least keeps 8",
        farfield.mend,
        trained("-n/8"),
        to=64,
        keys=2,
        settings=FEW,
        folder=tmp_path,
    )


def test_numbers_that_are_none_are_refused_and_not_kept(refusal, tmp_path):
    book = Book(tmp_path / "book.json")
    for number in ("nan", "inf"):
        refusal("^loss: the model gives NaN or infinity; ", book.of, "loss", ["1", number].copy)
    assert not any(tmp_path.iterdir()) and book.of("loss", lambda: [1]) == [1.0]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"folder": "/proc/none"}, "output folder '/proc/none'"),
        ({"device": "nosuch"}, "device 'nosuch': .*; accepted: cpu, or a device"),
        ({"device": "cuda:9"}, "accepted: cpu, or a device"),
        ({"device": "meta"}, "device 'meta': it holds no numbers; accepted: cpu"),
        ({"dtype": "int8"}, "dtype 'int8' is not known; accepted: float32"),
        ({"minutes": -1}, "minutes -1; accepted"),
        ({"needles": "none.jsonl"}, "needles 'none.jsonl': .*; accepted: a text file"),
        ({"length": 1000}, "tokens to read, .*accepted: a longer text"),
    ],
)
def test_bad_input_is_one_line_before_weights_are_read(
    refusal, how, said, rotary, words, tmp_path, monkeypatch
):
    rotary.save_pretrained(tmp_path)
    opened = "farfield.validation.models.opened._from_files"
    monkeypatch.setattr(opened, lambda *args: pytest.fail("weights are read"))
    refusal(said, farfield.mend, tmp_path, words, **{"to": TO, "folder": tmp_path / "out"} | how)


def test_a_full_disk_is_refused(refusal, monkeypatch, tmp_path, rotary, words):
    monkeypatch.setattr("shutil.disk_usage", lambda place: SimpleNamespace(free=1000))
    refusal(
        "lies on a full disk; accepted: 8 MiB free",
        farfield.mend,
        rotary,
        words,
        to=TO,
        folder=tmp_path,
    )
