"""How far heads can use their context: by the weights for every text, and measured on one."""

import math
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest
import torch

from farfield.cli import main
from farfield.theory.answers.answer import InputError, Label, Status
from farfield.theory.encodings import encoding
from farfield.validation.checkpoints.configured import Attention, Temper
from farfield.validation.checkpoints.folder import describe
from farfield.validation.checkpoints.loading import load
from farfield.validation.checkpoints.measured.segments import repeated
from farfield.validation.checkpoints.norms import Projections, bounds_of
from farfield.validation.checkpoints.reaches import farthest, half_within, model_reach
from farfield.validation.harness.attention import with_hook
from farfield.validation.harness.corpus import Corpus
from farfield.validation.harness.mechanism import CAUSAL

sys.path.insert(0, str(Path(__file__).parent))
from library import network, settings

TEXT = np.random.default_rng(0).integers(0, 64, 4000).astype(np.uint8)
CORPUS = Corpus("numbers", TEXT[:2000], TEXT[2000:], {}, "by place", 64)


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Models whose weights are large: content matters, and no head is within its bound by much."""
    root, found = tmp_path_factory.mktemp("reaches"), {}
    kinds = {
        "llama": {},
        "smollm3": {},
        "llama4_text": {},
        "cohere2": {},
        "gemma2": {"attn_logit_softcapping": 0.9},
        "gpt_oss": {},
        "bloom": {"vocab_size": 64, "hidden_size": 32, "n_layer": 2, "n_head": 4, "seq_length": 64},
    }
    for kind, more in kinds.items():
        made = network(settings(kind, **more))
        with torch.no_grad():
            for weight in made.parameters():
                weight.mul_(0.5 if kind != "gemma2" else 1.0)
        made.save_pretrained(root / kind)
        found[kind] = root / kind
    return found


def attentions(folder, rows):
    """Of each layer, the attention of every query on every key, shape (rows, heads, query, key)."""
    model, seen = load(folder), []

    def look(query, key, value, visible, weighting):
        q, k = query.double(), key.double()
        at = torch.arange(q.shape[-2])
        scores = weighting.content(q @ k.mT / math.sqrt(q.shape[-1]))
        table = model.bias_table(len(at))
        if table is not None:
            scores = scores + table[:, (at[:, None] - at).clamp(min=0)]
        scores = scores.masked_fill(~visible.sees(at[:, None], at), -math.inf)
        seen.append(weighting.softmax(scores))

    with torch.no_grad():
        model.hidden(model.embed(torch.from_numpy(rows.astype(np.int64))), CAUSAL, with_hook(look))
    return seen


@pytest.mark.parametrize(
    "kind", ["llama", "smollm3", "llama4_text", "cohere2", "gemma2", "gpt_oss"]
)
def test_no_key_beyond_the_reach_has_half(kind, places):
    folder = describe(places[kind])
    found = model_reach(folder)
    assert found.label is (None if found.status is Status.UNKNOWN else Label.CERTIFIED)
    seen = attentions(folder, TEXT[:120].reshape(2, 60))
    distance = torch.arange(60)[:, None] - torch.arange(60)
    for layer in found.layers:
        weights = seen[layer.layer - 1]
        for h in layer.heads:
            beyond = distance >= h.tokens
            assert not (weights[:, h.head - 1][:, beyond] > 0.5).any()


def test_a_bias_ends_the_reach_of_a_head(places):
    found = model_reach(places["bloom"])
    steep, *_, flat = found.layers[0].heads
    assert found.label is Label.CERTIFIED and found.biased and steep.tokens <= flat.tokens
    weights = attentions(describe(places["bloom"]), TEXT[:128].reshape(1, 128))
    distance = torch.arange(128)[:, None] - torch.arange(128)
    long = torch.arange(128)[:, None] >= found.row - 1
    for layer, seen in zip(found.layers, weights, strict=True):
        for h in layer.heads:
            assert not (seen[:, h.head - 1][:, (distance >= h.tokens) & long] > 0.5).any()


@pytest.mark.parametrize("gain", [0.0, 0.7, 1.0, 3.0, 5.5])
def test_a_reach_is_attained(gain):
    """A key at the end of the longest row takes half where the others are level, none beyond."""
    tokens = half_within(Attention(encoding("nope")), 1, gain, 64)
    share = [1 / (1 + (n - 1) * math.exp(-gain)) for n in (int(tokens), int(tokens) + 1)]
    assert share[0] >= 0.5 * (1 - 1e-9) and share[1] < 0.5
    assert half_within(Attention(encoding("nope"), window=2), 1, gain, 64) == min(tokens, 2)
    grown = Attention(encoding("nope"), temper=Temper(0.05, 4, 1))
    assert half_within(grown, 1, gain, 64) >= tokens
    bias = encoding("-n/16")
    weights = np.exp(-np.arange(64) / 16)
    reached = [n for n in range(64) if weights[n] * math.exp(gain) >= weights.sum() - weights[n]]
    assert farthest(bias.head(1), gain, 64) == max(reached, default=-1)
    assert half_within(Attention(bias), 1, gain, 64) == max(reached, default=-1) + 1


@pytest.mark.parametrize("kind", ["llama", "gpt_oss", "bloom", "llama4_text"])
def test_advantages_on_repeated_text(kind, places):
    """By the definition: the log-odds of the attention and the price, of the prior of the row."""
    folder = describe(places[kind])
    found, *_ = repeated(folder, CORPUS, 40, 1, lambda *_: None)
    row = CORPUS.held_out[:20]
    at = np.arange(20, 39)
    seen = attentions(folder, np.concatenate([row, row])[None])
    table = load(folder).bias_table(40)
    for layer, a in enumerate(folder.attention, 1):
        if a.local is not None:
            continue
        for h, (gain, share) in enumerate(found[layer]):
            attention = seen[layer - 1][0, h, at, at - 19].numpy()
            prior = np.zeros(40) if table is None else table[h].numpy()
            price = [np.log(np.exp(prior[: q + 1]).sum() / np.exp(prior[19]) - 1) for q in at]
            gains = np.log(attention / (1 - attention)) + price
            assert share == pytest.approx(attention.mean(), rel=1e-6)
            assert gain == pytest.approx(float(torch.tensor(gains).median()), rel=1e-5, abs=1e-6)
    local = {k for k, a in enumerate(folder.attention, 1) if a.local is not None}
    assert local <= found.keys() or kind == "llama4_text"  # chunks of 7: no repetition


def test_the_verb(places, tmp_path, capsys):
    (tmp_path / "words.txt").write_bytes(bytes(TEXT))
    for kind in ("smollm3", "bloom"):
        with pytest.raises(SystemExit) as stop:
            main(["reach", "--model", str(places[kind])])
        said = capsys.readouterr().out
        assert stop.value.code == 0 and "half of its attention on" in said
        assert "for every text, by the norms" in " ".join(said.split())
    for more, message in (
        (("--text", "nothing"), "nothing"),
        (("--advantage", "7"), "--model brings its own biases"),
        (("--length", "64"), "belong to --text"),
    ):
        with pytest.raises(SystemExit) as stop:
            main(["reach", "--model", str(places["llama"]), *more])
        err = capsys.readouterr().err
        assert stop.value.code == 2 and message in err and len(err.splitlines()) == 1
    with pytest.raises(InputError, match="length '4'"):
        model_reach(places["llama"], text=CORPUS, length=4)
    found = model_reach(places["smollm3"], text=CORPUS, length=40, segments=2)
    assert all(h.measured <= h.advantage for k in found.layers for h in k.heads)
    assert "measured" in str(found) and found.segments == 2


def test_what_is_not_known_is_said(tmp_path):
    given = '"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 8, "vocab_size": 9'
    for kind, status in (("unheard", Status.UNKNOWN), ("mamba", Status.OUT_OF_SCOPE)):
        place = tmp_path / kind
        place.mkdir()
        (place / "config.json").write_text(
            f'{{"model_type": "{kind}", "rope_theta": 100, {given}}}'
        )
        found = model_reach(place)
        assert found.status is status and found.tokens is None and found.label is None


@pytest.mark.parametrize("turned", [None, (2, 10_000.0)])
def test_bounds_by_norms_hold_under_rounding(turned):
    """Against 60 digits, with weights of 1e-200 to 1e60 and unlike sizes within one matrix."""
    rng, a = np.random.default_rng(0), Attention(encoding("rope"), turned)
    with mpmath.workdps(60):
        for case in range(60):
            width, size = int(rng.integers(2, 9)), 2
            scale = 10.0 ** rng.uniform(-200 if case % 3 else -60, 60)
            parts = [
                (rng.standard_normal((1, size, width)) * scale, rng.standard_normal((1, size)))
                for _ in range(3)
            ]
            gain, shift = rng.standard_normal(width), 10.0 ** rng.uniform(-5, 5, width)
            bound = bounds_of(Projections(gain, shift, False, *parts), a)[0]
            sides = []
            for weight, bias in parts:
                w = mpmath.matrix(weight[0].tolist())
                moved = w * mpmath.matrix(shift.tolist()) + mpmath.matrix(bias[0].tolist())
                sides.append((w * mpmath.diag(gain.tolist()), moved))
            (q, q0), (k, k0), (v, _) = sides
            root = mpmath.sqrt(width)

            def norm(x):
                return mpmath.sqrt(max(mpmath.eigsy(x * x.T, eigvals_only=True)))

            if turned is None:
                logit = width * norm(q.T * k) + root * mpmath.norm(k.T * q0)
            else:
                logit = (root * norm(q) + mpmath.norm(q0)) * (root * norm(k) + mpmath.norm(k0))
            assert logit <= mpmath.mpf(bound.logit) <= logit * (1 + mpmath.mpf("1e-3")) + 1e-100
            assert root * norm(v) <= mpmath.mpf(bound.value)
