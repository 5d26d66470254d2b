"""Changes at inference: what the table says of each is what far field, probe and needles say."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import farfield
from farfield.theory.answers.answer import Label, Status
from farfield.validation.far_field import cost
from farfield.validation.far_field.change_scores import Mended
from farfield.validation.far_field.cost import real, timed
from farfield.validation.far_field.halving import FEW as LEAST
from farfield.validation.far_field.halving import WIDE, Halving, reading_plan
from farfield.validation.far_field.mend import Advice, Mending, _advised, _changes
from farfield.validation.far_field.model_on_text import Settings, subject_of
from farfield.validation.far_field.readings import begins
from farfield.validation.far_field.recall import NeedleScore, distances, needle_row
from farfield.validation.far_field.rotary import applied, pastes, settings_of
from farfield.validation.json_files import Book
from farfield.validation.models import speed
from farfield.validation.models.network import losses
from farfield.validation.models.repairs import Repair, Repaired, recipe
from farfield.validation.models.speed import Work

FEW = Settings(groups=2, rows=6, last=4)
TRAINED, TO = 64, 256


@pytest.fixture(scope="module")
def rotary():
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 300}
    sizes |= {"intermediate_size": 32, "initializer_range": 0.3}
    return LlamaForCausalLM(LlamaConfig(**sizes, max_position_embeddings=TRAINED)).eval()


@pytest.fixture(scope="module")
def words():
    return np.random.default_rng(0).integers(0, 300, 2000)


def test_a_stopped_search_goes_on_where_it_stopped(trained, tmp_path):
    folder, how = trained("-n/8"), {"to": 128, "settings": FEW, "measure": True}

    def stop(stage, done, total, note=""):
        if stage == "rows" and done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        farfield.mend(folder, folder=tmp_path / "stopped", progress=stop, **how)
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


def test_few_keys_leave_few_changes(trained, tmp_path):
    found = farfield.mend(trained("-n/8"), to=64, keys=16, settings=FEW, folder=tmp_path)
    assert all(row.keys <= 16 for row in found.rows if row.repair != "none")
    assert found.best != "none" and found.window <= 16
    assert farfield.check_convergence(found.encoding[0]).verdict == "converges"


def test_what_is_written_is_not_asked_again(tmp_path):
    book = Book(tmp_path / "book.json")
    assert book.of("a", lambda: [1.0]) == [1.0]
    assert Book(tmp_path / "book.json").of("a", lambda: [2.0]) == [1.0]


WAYS = {"far field": {"measure": False}, "probe": {"quick": True}, "real": {"measure": True}}


@pytest.fixture(scope="module", params=WAYS)
def found(request, rotary, words, tmp_path_factory):
    few = Settings(groups=3, rows=1 if request.param == "probe" else 4, last=4)
    how = {"length": 32, "settings": few, "folder": tmp_path_factory.mktemp("mend")}
    return farfield.mend(rotary, words, to=TO, **how, **WAYS[request.param])


def test_every_setting_has_a_line_and_what_was_read_is_halved(rotary, found, speaks):
    asked = {s.name: s for s in settings_of(rotary.config, TRAINED, TO)} | {"none": Repair()}
    rows = {row.repair: row for row in found.rows}
    assert rows.keys() == asked.keys() and len(found.rows) == len(asked)
    for row in found.rows:
        assert row.keys == asked[row.repair].keys(TO) and row.mib > 0
        assert row.rows == 0 or asked[row.repair].window is None
        assert bool(row.needles) == bool(row.rows) and row.rows in (0, 1, 2, 3)
    read = sorted((row.rows for row in found.rows if row.rows), reverse=True)
    assert 1 + LEAST <= len(read) <= 1 + WIDE and rows[f"text cut to {TRAINED}"].rows == 3
    assert sum(n > 1 for n in read) == sum(n == 3 for n in read) == 2
    speaks(found)
    whole = found.way == "real rows"
    assert found.label == (Label.MEASURED if whole else Label.FORECAST)
    assert any(row.measured for row in found.rows) == whole
    if found.best != "none":
        named = found.alternative or found.best
        assert found.pastes == pastes(asked[named], rotary.config, TO)
    told = found.text(details=True)
    assert "needles" in told and f"text cut to {TRAINED}" in told and found.way in told


def test_losses_are_those_of_real_rows(rotary, words, tmp_path):
    how = {"to": TO, "length": 32, "measure": True, "folder": tmp_path}
    rows = {row.repair: row for row in farfield.mend(rotary, words, **how).rows}
    subject = subject_of(rotary, words, 32)
    asked = {s.name: s for s in settings_of(rotary.config, TRAINED, TO)} | {"none": Repair()}
    starts = [begins(len(words) - TO, k) for k in range(3)]
    far = distances(32, TO, TRAINED)
    for row in (row for row in rows.values() if row.rows == 3):
        setting, differences = asked[row.repair], []
        for k, start in enumerate(starts):
            text = torch.from_numpy(words[start:]).long()
            tokens = needle_row(None, text, TO, far, k, 32)
            end, begin = tokens.asks - 1, TO - (setting.cut or TO)
            own = losses(subject.network, tokens.tokens[None, end - 32 : end + 1], 16)
            with applied(subject.live, setting):
                network = Repaired(subject.network, setting)
                whole = losses(network, tokens.tokens[None, begin : end + 1], 16)
            differences.append(float(whole.mean() - own.mean()))
        assert row.measured[0] == pytest.approx(np.mean(differences), abs=1e-4)


def test_the_plan_reads_what_is_cheaper(refusal, rotary, words, tmp_path, monkeypatch):
    how = {"length": 32, "settings": Settings(groups=2, rows=4, last=4), "folder": tmp_path}
    near = farfield.mend(rotary, words, to=TO, **how)
    assert near.way == "real rows" and near.seconds[0] < near.seconds[1]
    far = farfield.mend(rotary, words, to=TO, measure=False, **how)
    assert far.way == "far field" and far.label == Label.FORECAST
    assert farfield.mend(rotary, words[:240], to=TO, **how).way == "far field"
    refusal(
        r"has 240 tokens, a real row takes 257; accepted: a longer",
        farfield.mend,
        rotary,
        words[:240],
        to=TO,
        measure=True,
        **how,
    )
    monkeypatch.setattr("farfield.validation.far_field.halving.available", lambda: 1000)
    refusal(
        r"MiB beside the weights.*accepted: a shorter row",
        farfield.mend,
        rotary,
        words,
        to=TO,
        measure=True,
        **how,
    )
    assert farfield.mend(rotary, words, to=TO, **how).way == "far field"
    refusal("minutes 0; accepted", farfield.mend, rotary, words, to=TO, minutes=0, **how)


def test_numbers_of_rows_with_other_ends_are_not_taken_up(rotary, words, tmp_path, monkeypatch):
    """What was written down of fewer needles a row is not read for more of them."""
    how = {"length": 32, "settings": Settings(groups=2, rows=4, last=4), "quick": True}
    for ends, books in ((2, 1), (2, 1), (3, 2)):
        monkeypatch.setattr("farfield.validation.far_field.mend.ENDS", ends)
        farfield.mend(rotary, words, to=TO, folder=tmp_path, **how)
        assert len([*tmp_path.iterdir()]) == books


def test_short_rows_are_read_where_long_ones_cost_more_than_their_forecast():
    few = Settings(groups=2, rows=4, last=4)
    how = {"text": np.zeros(10**6), "length": 32, "settings": few, "groups": (0, 0), "source": "t"}
    outline = SimpleNamespace(trained=128)
    subject = SimpleNamespace(turns=lambda: True, outline=outline, **how)
    work = Work(1000, 32, 2, 32, 1e-9)

    def plan(to, quick=False, minutes=None, probes=0):
        return reading_plan(subject, to, work, None, quick, minutes, probes)

    assert real(work, Repair(), 256) < plan(256).seconds[1] < real(work, Repair(), 900_000)
    near, far = plan(256), plan(900_000)
    assert (near.way, near.rows, far.way, far.rows) == ("real rows", 3, "far field", 2)
    assert plan(900_000, minutes=9).way == "real rows" and plan(256, quick=True).way == "gap probe"
    one, cut, short = real(work, Repair(), 256), real(work, Repair(cut=128), 256), work.of(32, 512)
    assert cut < 0.6 * one  # a text that is cut costs less, so the same time has more rows
    for rounds, first, probes in ((1, 3, 9), (1, 4, 0), (2, 3, 9), (3, 4, 0), (4, 4, 5)):
        time = rounds * (1.1 * (first + 2) * one + 3 * cut) + probes * short
        enough = plan(256, minutes=time / 60 + 1e-9, probes=probes)
        assert (enough.rows, enough.first) == (3 * rounds, first)
    assert (plan(256, minutes=1e-9).rows, plan(256, minutes=1e-9).first) == (3, 3)
    assert (plan(256, minutes=60).rows, plan(256, minutes=60).first) == (12, 5)
    for probes in (0, 20, 60):  # without minutes, what fits into the time of eight rows
        free = int((8 * one - 3 * cut - probes * short) / (1.1 * one)) - 2
        assert plan(256, probes=probes).first == max(3, min(5, free))


def test_further_ends_are_counted_where_there_is_room_for_them():
    """Of 768 tokens that see a row of 4,096; every row but the first has one, under each setting
    that is read and for the cut text: of six rows one in the first round with three settings, four
    with the best. So many minutes, and no fewer, are enough for six rows."""
    work, few = Work(1000, 32, 2, 32, 1e-9), Settings(groups=2, rows=4, last=4)
    further = cost.further(work, 512, 4096)
    assert further == pytest.approx(1e-9 * (2000 * 768 + 128 * 768 * 4096))
    assert cost.further(work, 511, 4096) == cost.further(work, 512, 4095) == 0
    how = {"text": np.zeros(10**6), "length": 512, "settings": few, "groups": (0, 0), "source": "t"}
    outline = SimpleNamespace(trained=2048)
    subject = SimpleNamespace(turns=lambda: True, outline=outline, **how)
    one, cut = real(work, Repair(), 4096), real(work, Repair(cut=2048), 4096)
    time = 2 * (1.1 * 5 * one + 3 * cut) + (1 * 4 + 4 * 2) * further
    for minutes, rows in ((1.0001 * time / 60, 6), (0.9999 * time / 60, 3)):
        assert reading_plan(subject, 4096, work, True, False, minutes, 0).rows == rows


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


def test_near_needles_that_are_lost_make_it_a_trade():
    def recalling(name, near, far):
        each = [(10, k < near) for k in range(9)] + [(200, k < far) for k in range(20)]
        scores = tuple(NeedleScore("pet", d, -1.0, right) for d, right in each)
        return replace(line(name, (0.0, 0.1)), recall=scores)

    cut, yarn = recalling(CUT.name, 9, 0), recalling(YARN.name, 2, 20)
    none = replace(recalling("none", 0, 0), difference=(3.0, 0.1))
    rows = {Repair(): none, CUT: cut, YARN: yarn}
    assert advice(rows) == (CUT, Advice.TRADE)
    assert advice(rows | {YARN: recalling(YARN.name, 8, 20)}) == (YARN, Advice.TAKE)
    made = {"to": TO, "length": 32, "trained": 64, "log_ratio": 1.0, "encoding": (), "window": None}
    made |= {
        "status": Status.ENCLOSED,
        "label": Label.MEASURED,
        "subject": "small",
        "way": "real rows",
    }
    answer = Mending(
        rows=(cut, yarn, none), best=CUT.name, alternative=YARN.name, advice=Advice.TRADE, **made
    )
    said = " ".join(answer.text().split())
    assert (
        "YaRN 4 trades near needles for far ones: it alone recalls 20, the text cut to 64 alone 7"
        in said
    )
    assert "but from 0 to 16 tokens back 0 and 7" in said


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


def test_a_model_in_which_nothing_differs_is_told_so(trained, tmp_path):
    found = farfield.mend(trained("-n/8"), to=64, settings=FEW, folder=tmp_path)
    assert found.best == "none" and "nothing is to be mended" in str(found)


def test_whether_a_search_pays_is_said_by_the_rows_that_both_were_read_with(trained, tmp_path):
    found = farfield.mend(trained("0"), to=64, settings=FEW, folder=tmp_path)
    rows = {row.repair: row for row in found.rows}
    name, (mean, _) = found.rival
    default = rows[recipe(16).name]
    assert name != default.repair and rows[name].rows == default.rows == 2
    assert mean == pytest.approx(rows[name].difference[0] - default.difference[0])
    for less, words in (((-0.3, 0.2), "A search pays: "), ((-0.3, 0.4), "No search pays: ")):
        told = replace(found, rival=(name, less), advice=Advice.TAKE).text()
        text = " ".join(told.split())
        assert words in text and f"-0.300 ± {less[1]:.3f} nats beside {default.repair}" in text
    assert "search pays" not in replace(found, advice=Advice.NOTHING).text()


def test_what_cannot_be_mended_is_refused_in_a_line(refusal, rotary, words, trained, tmp_path):
    refusal(
        "nothing is to be mended at 64",
        farfield.mend,
        rotary,
        words,
        to=TRAINED,
        length=32,
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


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"folder": "/proc/none"}, "output folder '/proc/none'"),
        ({"device": "nosuch"}, "device 'nosuch': .*; accepted: cpu"),
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
