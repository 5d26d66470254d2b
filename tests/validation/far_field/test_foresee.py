"""What is foreseen of a model, and what mends it: laws, and what is refused."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import farfield
from farfield.validation.far_field.blame import excesses
from farfield.validation.far_field.foresee import ratio_of
from farfield.validation.far_field.intervals import elsewhere, mean_and_half
from farfield.validation.far_field.model_on_text import (
    QUICK,
    Settings,
    _groups,
    reach_of,
    subject_of,
)
from farfield.validation.models.library_network import LibraryNetwork
from farfield.validation.models.network import losses, nats, scores_at
from farfield.validation.models.repairs import Repair, Repaired
from farfield.validation.models.text import text_of
from farfield.validation.uniform_guess import uniform_guess

FEW = Settings(groups=2, rows=6, last=4)


def test_doublings_are_foreseen_and_the_last_is_the_answer(trained):
    told = []
    how = {"to": 100, "settings": FEW, "progress": lambda *said: told.append(said)}
    found = farfield.foresee(trained("-n/8"), causes=True, **how)
    assert [r.length for r in found.ratios] == [32, 64, 100]
    steps = [said for said in told if said[0] == "far field"]
    assert [said[1:3] for said in steps] == [(k, 6) for k in range(1, 7)]
    assert all(said[3].startswith("log ratio ") and said[3].endswith(" at 100") for said in steps)
    last = found.ratios[-1]
    assert found.label == "forecast" and found.log_ratio == last.log_ratio == last.main
    assert found.span() == last.elsewhere
    row, most = 16, 5 * 16  # a query meets three rows, and keys of each stage up to its own
    stages = [row * (3 * row + s * most) for s in (1, 2, 3)]
    assert found.pairs == (row * row + sum(stages), row * row + stages[0], 5050)
    assert len(found.blame.layers) == 2 and found.positions is None
    plain = farfield.foresee(trained("-n/8"), to=32, settings=FEW)
    assert (plain.blame, plain.worth, plain.length, plain.to) == (None, None, 16, 32)
    subject = subject_of(trained("-n/8"), None, None, FEW)
    for look, r in zip(
        (FEW.main, FEW.check, FEW.third),
        zip(*(r.looks for r in found.ratios), strict=True),
        strict=True,
    ):
        direct = subject.ratios([32, 64, 100], look)
        assert r == pytest.approx([float(direct[n].mean()) for n in (32, 64, 100)])
    assert found.ratios[0].elsewhere == elsewhere(found.ratios[0].main, 2)
    assert json.loads(found.to_json())["ratios"][2]["length"] == 100


def test_looks_that_disagree_leave_the_answer_unknown(trained, monkeypatch):
    near, far = (np.array(x) for x in ([0.1, 0.11, 0.12], [0.3, 0.31, 0.32]))
    for each, why in (((near, far, far), "further apart"), ((near, near, far), "order matters")):
        apart = ratio_of(64, 4, *each)
        monkeypatch.setattr(
            "farfield.validation.far_field.foresee.ratio_of", lambda *_, apart=apart: apart
        )
        found = farfield.foresee(trained("-n/8"), to=64, settings=FEW)
        assert found.status == "unknown" and found.reason.code == "settings_disagree"
        assert found.label is None and found.log_ratio is None and found.span() is None
        assert "no forecast" in str(found) and why in str(found.reason)


def test_blame_has_a_zero_line(trained):
    """Where windows hide what each layer sees, far keys cost nothing, and no layer is named."""
    subject = subject_of(trained("0"), None, None, FEW)
    found = farfield.blame(subject, to=64)
    one, hidden = subject.settings.check, Repaired(subject.network, Repair(window=subject.length))
    zero = subject.ratios([64], one, hidden)[64]
    assert found.nowhere == pytest.approx(float(zero.mean()), abs=1e-6)
    assert found.everything == pytest.approx(float(subject.ratios([64], one)[64].mean()))
    for layer, other in ((1, 2), (2, 1)):  # far keys in one layer: a window in the other one
        alone = Repaired(subject.network, Repair(window=subject.length, layers=(other,)))
        mean, half = mean_and_half(subject.ratios([64], one, alone)[64] - zero)
        each = found.layers[layer - 1]
        assert (each.layer, each.mean) == (layer, pytest.approx(mean))
        assert each.interval == pytest.approx((mean - half, mean + half))
    local = farfield.blame(replace(subject, network=hidden), to=64)
    assert local.everything == pytest.approx(local.nowhere, abs=1e-6) and local.worst is None
    assert "No layer" in "".join(map(str, local.table()))


def test_the_layer_that_is_named_costs_more_than_none():
    zero, spread = np.array([0.2, 0.4, 0.3]), np.array([0.01, 0, -0.01])
    each, worst = excesses([zero + spread, zero + 0.25 + spread], zero)
    assert worst == 2 and each[1].mean == pytest.approx(0.25) and each[1].interval[0] > 0
    assert excesses([zero + 50 * spread, zero], zero)[1] is excesses([zero], zero)[1] is None


def test_rows_that_are_moved_lose_by_absolute_positions(trained):
    subject = subject_of(trained("sinusoidal"), None, None, FEW)
    found = farfield.blame(subject, to=64)
    moved = []
    for rows, base in zip(subject.groups, subject.base, strict=True):
        scores = scores_at(subject.network, rows[1:, :-1], torch.arange(48, 64), 4)
        moved.append(float((nats(scores, rows[1:]) - base).mean()))
    assert found.positions == pytest.approx(np.mean(moved)) and abs(found.positions) > 1e-4


@pytest.mark.parametrize(
    "given, why",
    {
        ("-n/8", 8, None): "to = 8 with rows of 16 tokens; accepted is twice as much or more",
        ("-n/8", 64, 8): "rows of 8 tokens; accepted are rows of 16 or more",
        ("learned", 64, None): "has vectors for 16 positions, 64 are asked for",
    }.items(),
    ids=lambda x: str(x)[:20],
)
def test_bad_input_is_one_line(refusal, trained, given, why):
    encoding, to, length = given
    refusal(why, farfield.foresee, trained(encoding), to=to, length=length, settings=FEW)


def test_a_text_that_is_too_short_is_refused(refusal):
    words = np.zeros(98, dtype=int)
    for size, why in (
        (96, "has 96 tokens to read, 6 rows of 16 take 97; accepted"),
        (97, "one gr"),
    ):
        refusal(why, _groups, words[:size], "a text", 16, FEW)
    rows, starts = _groups(words, "a text", 16, FEW)
    assert (rows.shape, starts) == ((2, 6, 17), [0, 1])


def test_a_limit_of_positions_is_asked_before_anything_runs(refusal, trained):
    subject = subject_of(trained("learned"), None, None, FEW)
    refusal("accepted: to that length", reach_of, subject, 32)
    subject.network.longest = 32
    assert reach_of(subject, 32) == 32
    assert np.array_equal(subject.text, text_of(subject.outline, None).held_out)
    refusal("vectors for 32 positions, 33 are asked for", reach_of, subject, 33)
    refusal("to = 31 with rows of 16", reach_of, subject, 31)


def test_the_far_field_has_the_probe_beside_it(small_llama):
    """Both stand in one table: what positions cost, and the rest."""
    small = small_llama(num_hidden_layers=1, vocab_size=300, max_position_embeddings=32)
    words = np.random.default_rng(0).integers(0, 300, 2000)
    found = farfield.foresee(small, words, to=128, settings=FEW, causes=True)
    (alone,) = found.blame.layers  # of one layer
    assert alone.mean == pytest.approx(found.blame.everything - found.blame.nowhere)
    costs = {g.length: g.cost for g in found.positions.gaps}
    assert {r.length for r in found.ratios} <= {*costs}
    alone = farfield.gap_probe(small, words, to=128)
    assert (alone.row, alone.rows) == (32, 4) and {64, 128} <= {g.length for g in alone.gaps}
    assert alone.subject == found.subject
    assert "not learned" in alone.guess and "not learned" in found.guess


@pytest.mark.parametrize(
    ("trained", "length", "settings", "shape", "last"),
    [
        (64, 32, None, (12, 16, 33), 16),
        (64, None, None, (12, 16, 65), 16),
        (64, 511, None, (12, 16, 512), 16),
        (64, 512, None, (4, 5, 513), 128),
        (4096, None, None, (4, 5, 1025), 128),
        (4096, None, QUICK, (4, 1, 1025), 16),
    ],
)
def test_how_much_is_read_depends_on_the_length_of_rows(
    trained, length, settings, shape, last, small_llama
):
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "vocab_size": 300, "initializer_range": 0.02}
    words = np.arange(9000) % 300
    model = small_llama(**sizes, max_position_embeddings=trained)
    subject = subject_of(model, words, length, settings)
    assert (subject.groups.shape, subject.settings.last) == (shape, last)
    assert (subject.length, subject.bos, subject.encode) == (shape[2] - 1, None, None)
    assert subject.starts[0] == 0 and subject.starts[-1] == 9000 - shape[1] * subject.length - 1
    for start, rows in zip(subject.starts, subject.groups, strict=True):
        assert rows[-1].tolist() == [
            x % 300
            for x in range(
                start + (shape[1] - 1) * subject.length, start + shape[1] * subject.length + 1
            )
        ]
    one = (1024, math.inf, 0)
    looks = [
        (x.samples, x.growth, x.seed, x.ordered)
        for x in (subject.settings.main, subject.settings.check, subject.settings.third)
    ]
    assert looks == [(1024, 2, 0, False), (*one, False), (*one, True)]
    assert subject.first("a minute") == "a minute"
    alone = losses(subject.network, subject.groups[:2, 0], subject.length // 2)
    assert subject.guess == uniform_guess(float(alone.mean()), 300) != ""
    assert replace(subject, held=3 << 20).first("a minute") == (
        "a minute; the model does not fit into memory, so its layers are read one at a time, 3 MiB "
        "at most"
    )


@pytest.mark.parametrize("kind", ["bloom", "llama"])
def test_blame_asks_the_network_one_row_at_a_time(kind, outside_models, monkeypatch):
    """A pass through a model is over before another begins: its hook answers one caller."""
    inside, scores = [], LibraryNetwork.scores

    def once(network, *given):
        assert not inside, "a pass within a pass"
        inside.append(True)
        try:
            return scores(network, *given)
        finally:
            inside.clear()

    monkeypatch.setattr(LibraryNetwork, "scores", once)
    few = Settings(groups=2, rows=4)
    found = farfield.blame(outside_models.folder(kind), to=128, length=32, settings=few)
    assert len(found.layers) == 2
