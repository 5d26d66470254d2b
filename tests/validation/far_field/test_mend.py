"""Changes at inference: what the table says of each is what far field, probe and needles say."""

import json

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import farfield
from farfield.theory.answers.errors import InputError
from farfield.validation.far_field.mend import BUDGET, Mended, _best, _ranked
from farfield.validation.far_field.network import losses
from farfield.validation.far_field.probe import gap_losses
from farfield.validation.far_field.recall import NeedleScore
from farfield.validation.far_field.repairs import Repair, Repaired
from farfield.validation.far_field.rotary import applied, pastes, settings_of
from farfield.validation.far_field.subject import QUICK, Settings, subject_of
from farfield.validation.json_files import Book

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


def test_no_change_is_one_of_the_changes_and_a_stopped_search_goes_on(trained, tmp_path):
    folder, how = trained("-n/8"), {"to": 128, "settings": FEW, "measure": True}

    def stop(stage, done, total):
        if stage == "real rows":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        farfield.mend(folder, folder=tmp_path / "stopped", progress=stop, **how)
    (kept,) = (tmp_path / "stopped").iterdir()
    before = kept.read_text()
    found = farfield.mend(folder, folder=tmp_path / "stopped", **how)
    assert found == farfield.mend(folder, folder=tmp_path / "whole", **how)
    assert set(json.loads(before)) < set(json.loads(kept.read_text()))
    plain = next(row for row in found.rows if row.repair == "none")
    assert plain.measured is not None and plain.short == 0 and plain.keys == 128
    assert sum(row.measured is not None for row in found.rows) in (3, 4)
    assert found.best in {row.repair for row in found.rows} and not found.pastes
    assert {n.kind for n in plain.recall} == {"sequence"}
    assert [n.distance for n in plain.real] == [n.distance for n in plain.recall]


def test_few_keys_leave_few_changes(trained, tmp_path):
    found = farfield.mend(trained("-n/8"), to=64, keys=16, settings=FEW, folder=tmp_path)
    assert all(row.keys <= 16 for row in found.rows if row.repair != "none")
    assert found.best != "none" and found.window <= 16
    kept = farfield.check_convergence(found.encoding[0])
    assert kept.verdict == "converges"


def test_what_is_written_is_not_asked_again(tmp_path):
    book = Book(tmp_path / "book.json")
    assert book.of("a", lambda: [1.0]) == [1.0]
    assert Book(tmp_path / "book.json").of("a", lambda: [2.0]) == [1.0]


@pytest.fixture(scope="module", params=(False, True), ids=("far field", "probe"))
def found(request, rotary, words, tmp_path_factory):
    how = {"quick": request.param, "folder": tmp_path_factory.mktemp("mend")}
    few = Settings(groups=2, rows=1 if request.param else 4, last=4)
    return farfield.mend(rotary, words, to=TO, length=32, settings=few, measure=True, **how)


def test_every_setting_has_a_line_and_the_cut_text_is_among_them(rotary, found, speaks):
    asked = {s.name: s for s in settings_of(rotary.config, TRAINED, TO)} | {"none": Repair()}
    assert {row.repair for row in found.rows} == {*asked} and len(found.rows) == len(asked)
    for row in found.rows:
        assert row.keys == asked[row.repair].keys(TO) and row.mib > 0
        moves = bool(asked[row.repair].rope) or asked[row.repair].group is not None
        assert (row.trained is not None) == moves
        if found.quick:
            assert (row.log_ratio is None) == (asked[row.repair].window is not None)
    speaks(found)
    best, pasted = asked[found.best], asked[found.pasted]
    if best != Repair():
        assert found.pastes == pastes(pasted, rotary.config, TO)
        assert any(p.text for p in found.pastes)
        assert best == pasted or not any(p.text for p in pastes(best, rotary.config, TO))
    told = found.text(details=True)
    assert "needles" in told and "transformers" in told and f"text cut to {TRAINED}" in told


def test_beside_a_setting_of_no_library_stands_one_to_paste(rotary, words, tmp_path, monkeypatch):
    def grouped_first(rows):
        return next((row for row in rows if "grouped" in row.repair), rows[-1])

    monkeypatch.setattr("farfield.validation.far_field.mend._best", grouped_first)
    how = {"quick": True, "folder": tmp_path, "settings": Settings(groups=2, rows=1, last=4)}
    found = farfield.mend(rotary, words, to=TO, length=32, **how)
    assert "grouped" in found.best and "grouped" not in found.pasted
    assert any(paste.text for paste in found.pastes)
    assert f"No library has {found.best}" in " ".join(found.text().split())


def test_losses_are_those_of_the_gap_probe_and_of_real_rows(rotary, words, tmp_path):
    how = {"to": TO, "length": 32, "measure": True, "folder": tmp_path}
    rows = {row.repair: row for row in farfield.mend(rotary, words, quick=True, **how).rows}
    subject = subject_of(rotary, words, 32, QUICK)
    own = gap_losses(subject.network, subject.groups[:, 0], 32)
    for setting in (*settings_of(rotary.config, TRAINED, TO), Repair()):
        if setting.window is None:
            with applied(subject.live, setting):
                network = Repaired(subject.network, setting)
                far = gap_losses(network, subject.groups[:, 0], setting.cut or TO)
            said = rows[setting.name].log_ratio
            assert said == pytest.approx(float((far - own).mean()), abs=1e-6)
    starts = np.linspace(0, len(words) - TO - 1, 4).astype(int)
    long = torch.stack([torch.from_numpy(words[s : s + TO + 1]) for s in starts])
    whole, short = (losses(subject.network, x, 16) for x in (long, long[:, -33:]))
    measured = rows["none"].measured[0]
    assert measured == pytest.approx(float((whole - short).mean()), abs=1e-5)


def line(name, loss, log_probabilities, right):
    recall = [NeedleScore("pet", 600, p, k < right) for k, p in enumerate(log_probabilities)]
    return Mended(name, loss, 0.0, 0.0, 9, 1.0, tuple(recall))


def test_recall_decides_within_the_budget_and_loss_beyond():
    near = [line(f"near {k}", 1 + BUDGET * k / 4, (-3, -3), k) for k in (0, 2, 1)]
    far = [line(f"far {k}", 2 + k, (-1, -1), 2) for k in (1, 0)]
    cut = line("text cut to 9", 1.5, (-9, -9), 0)
    ranked = _ranked([*far, *near, cut])
    names = [row.repair for row in ranked]
    assert names == ["near 2", "near 1", "near 0", "text cut to 9", "far 0", "far 1"]
    assert [row.repair for row in _ranked([*far, *near])][:3] == [
        "near 0",
        "near 1",
        "near 2",
    ]


def test_another_setting_is_taken_where_it_is_shown_to_recall_more():
    cut = line("text cut to 9", 1.0, (-5, -6, -7, -8), 1)
    sure, no_more, unsure = (
        line("other", 1.0, each, right)
        for each, right in (((-4, -5.1, -6, -7), 2), ((-4, -5.1, -6, -7), 1), ((-1, -9, -4, -9), 2))
    )
    assert _best([sure, cut]) is sure
    assert _best([no_more, cut]) is cut and _best([unsure, cut]) is cut


def test_what_cannot_be_mended_is_refused_in_a_line(rotary, words, trained, tmp_path):
    with pytest.raises(InputError, match="nothing is to be mended at 64"):
        farfield.mend(rotary, words, to=TRAINED, length=32, quick=True, folder=tmp_path)
    with pytest.raises(InputError, match="no change keeps at most 2 keys; the least keeps 8"):
        farfield.mend(trained("-n/8"), to=64, keys=2, settings=FEW, folder=tmp_path)
