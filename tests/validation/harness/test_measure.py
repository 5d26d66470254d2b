"""Measures are what their definitions say, computed by hand on small models."""

import itertools
import math

import numpy as np
import pytest
import torch

from farfield.numerics.masks import CAUSAL, Mask
from farfield.validation.harness import measure
from farfield.validation.harness.bias import table_of
from farfield.validation.harness.data import InductionRows
from farfield.validation.harness.measure import (
    attention_field,
    gradient_field,
    gradient_shares,
    led,
    perplexities,
    recall,
    token_losses,
)
from farfield.validation.harness.runs import model_of
from farfield.validation.harness.settings import Induction, Run

TEXT = np.random.default_rng(0).integers(32, 127, 700).astype(np.uint8)
MASKS = [CAUSAL, Mask(window=7), Mask(bca=9)]
HYBRID = {
    "label": "unlike layers",
    "layers": [{"mechanism": "rope", "window": 9, "sinks": True}, "[-n/4; 0; -n; -n/9]"],
}


def model(name="[-n/4; 0; -n; -log(1+n)]", spread=0.3):
    """A small model whose attention is far from even."""
    asked = Run(encoding=name, layers=2, width=32, heads=4, length=12, spread=spread)
    return model_of(asked).double().eval()


def nats(model, row, mask=CAUSAL):
    """Of each target of a row, one forward pass."""
    logits = model(torch.from_numpy(row[None, :-1]), mask).double().log_softmax(-1)[0]
    return -logits[torch.arange(len(row) - 1), torch.from_numpy(row[1:])].detach().numpy()


@pytest.mark.parametrize("last", [0, 1])
def test_progress_is_told_row_by_row_and_ends_at_the_whole(monkeypatch, last):
    monkeypatch.setattr(measure, "TOKENS", 12)  # a row a pass
    told = []
    perplexities(model(), TEXT, (12, 40), count=3, last=last, progress=lambda *at: told.append(at))
    done = [at for at, _ in told]
    assert done == sorted(done) and told[-1] == (80, 80) and {of for _, of in told} == {80}
    assert len(told) >= 6 and done[0] <= 14


@pytest.mark.parametrize("mask", MASKS)
def test_each_protocol_scores_the_same_targets_from_as_many_tokens_as_it_says(mask):
    made, lengths = model(), (12, 40)
    rows = measure.samples(TEXT, 5, 40)
    for (last, first), pick in {
        (0, None): lambda row, n: [nats(made, row[s : s + n + 1], mask) for s in range(0, 40, n)],
        (1, None): lambda row, n: [nats(made, row[40 - n :], mask)[-1:]],
        (4, None): lambda row, n: [nats(made, row[40 - n :], mask)[-4:]],
        (4, 65): lambda row, n: [nats(made, np.array([65, *row[41 - n :]]), mask)[-4:]],
    }.items():
        got = perplexities(made, TEXT, lengths, count=5, last=last, view=mask, first=first)
        by_hand = [np.array([np.concatenate(pick(row, n)) for row in rows]) for n in lengths]
        gain = by_hand[1].mean(1) - by_hand[0].mean(1)
        error = 1.959964 * gain.std(ddof=1) / math.sqrt(5)
        assert [p.nats for p in got] == pytest.approx([x.mean() for x in by_hand])
        ratios = got[1].ratio, got[1].low, got[1].high
        assert ratios == pytest.approx([math.exp(gain.mean() + d) for d in (0, -error, error)])
        assert [p.targets for p in got] == [by_hand[0].size] * 2 and got[0].ratio == 1
        assert got[1].perplexity == pytest.approx(math.exp(by_hand[1].mean()))


@pytest.mark.parametrize("bound", [1, 90, 600, 2**14])
def test_memory_is_bounded_and_the_bound_changes_nothing(bound, monkeypatch):
    """Tokens and scores of a pass, scores that are held at a time: or those of one row, of one
    position, of one head."""
    made, task = model(), InductionRows(Induction(vocabulary=256))
    rows, tokens, scores = measure.samples(TEXT, 4, 40), [0], [0]
    asked = {
        "losses": lambda: token_losses(made, rows),
        "last losses": lambda: token_losses(made, rows, last=3),
        "shares": lambda: gradient_shares(made, rows),
        "answers": lambda: [*measure.answers(made, task, 40, count=5).values()],
        "recall": lambda: recall(made, task, (40,), distances=(7,), count=5)[0],
        "field": lambda: attention_field(
            made, TEXT, thresholds=(0.1, 0.01), length=40, segments=2, rows=5
        ),
    }
    whole = {name: ask() for name, ask in asked.items()}
    for name in ("TOKENS", "SCORES", "PASS"):
        monkeypatch.setattr(measure, name, bound)
    plain, embed, fields = made.logits, made.embed, measure._row_fields
    monkeypatch.setattr(made, "embed", lambda x: tokens.append(x.numel()) or embed(x))
    monkeypatch.setattr(
        made, "logits", lambda h: scores.append(256 * h[..., 0].numel()) or plain(h)
    )
    monkeypatch.setattr(
        measure,
        "_row_fields",
        lambda *given: scores.append(len(given[4]) * 5 * 40) or fields(*given),
    )
    for name, ask in asked.items():
        del tokens[1:], scores[1:]
        np.testing.assert_allclose(ask(), whole[name], rtol=1e-9, err_msg=name)
        assert max(tokens) <= max(40, bound * (1 + (name == "recall"))), name
        least = {"losses": 4 * 256, "answers": 40 * 256, "shares": 4 * 256, "recall": 5 * 256}
        assert max(scores) <= max(bound, least.get(name, 4 * 256)), name


@pytest.mark.parametrize(
    ("value", "off", "alike"),
    [(-1e5, 1.000005, 1), (-1e5, 1.000015, 0), (0.0, 0.9e-5, 1), (0.0, 1.1e-5, 0)],
)
def test_a_bias_is_of_the_distance_where_pairs_are_within_1e_5_of_the_last_row(value, off, alike):
    table, at = torch.tensor([3.0, value, -2.0]).double(), torch.arange(3)

    def bias(q, k, i, j):
        found = table[(i[:, None] - j).clamp(min=0)]
        found[1, 0] -= off
        return found[None]

    q = torch.zeros(1, 1, 3, 8).double()
    found = table_of(bias, q, q, at)
    assert torch.equal(found, table[None]) if alike else found is None


def attention_by_hand(made, row, mask):
    """The whole matrix of each layer, content logits, and bias of a row, in float64."""
    layers = []

    def look(layer, q, k, v, given):
        i, j = torch.arange(len(row))[:, None], torch.arange(len(row))
        content = (q @ k.mT / math.sqrt(q.shape[-1]))[0]
        table = torch.zeros(1, len(row)) if given.bias is None else given.bias
        seen = given.mask.sees(i, j)
        bias = table[:, (i - j).clamp(min=0)].masked_fill(~seen, -math.inf).expand_as(content)
        layers.append((content, bias))
        return layer.attend(q, k, v, given)

    with torch.no_grad():
        made(torch.from_numpy(row[None]), mask, attend=look)
    return layers


def tokens_of(weights, eps):
    """The definition, key by key from the nearest."""
    for count in range(len(weights) + 1):
        if weights[::-1][count:].sum() < eps * weights.sum():
            return count
    raise AssertionError


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", ["[-n/4; 0; -n; -log(1+n)]", HYBRID])
def test_the_attention_field_is_its_definition_beside_that_of_the_bias(name, mask):
    made = model(name)
    row = measure.samples(TEXT, 1, 30)[0, :-1]
    at = [15, 17, 20, 23, 26, 29]
    fields = attention_field(
        made, TEXT, thresholds=(0.3, 0.05), length=30, segments=1, rows=6, mask=mask
    )
    layers = attention_by_hand(made, row, mask)
    for found in fields:
        erf, trf = [], []
        for content, bias in layers:
            each = [(content + bias).softmax(-1).numpy(), bias.softmax(-1).numpy()]
            for into, weights in zip((erf, trf), each, strict=True):
                by_head = [[tokens_of(w[i, : i + 1], found.eps) for i in at] for w in weights]
                into.append(np.array(by_head))
            for head, k in itertools.product(range(4), range(6)):  # the theorem on both sides
                row_bias = bias[head, at[k], : at[k] + 1]
                seen = content[head, at[k], : at[k] + 1][row_bias > -math.inf]
                prior, lam = row_bias.softmax(-1).numpy(), float(seen.max() - seen.min()) + 1e-9
                low, high = (tokens_of(prior, found.eps * math.exp(d)) for d in (lam, -lam))
                assert low <= erf[-1][head, k] <= high
                gap = lam - float(prior[prior > 0] @ (seen.numpy() - float(seen.min())))
                assert erf[-1][head, k] <= tokens_of(prior, found.eps * math.exp(-gap))  # Jensen
        assert found.erf == pytest.approx(np.mean(erf)) and found.trf == pytest.approx(np.mean(trf))


@pytest.mark.parametrize("mask", MASKS)
def test_the_gradient_field_is_the_gradient_at_each_embedding(mask):
    made = model()
    rows = measure.samples(TEXT, 3, 20)
    curves = gradient_shares(made, rows, mask)
    for row, curve in zip(rows, curves, strict=True):
        x = made.embed(torch.from_numpy(row[None, :-1])).detach().requires_grad_()
        made.logits(made.hidden(x, mask)[0, -1]).log_softmax(-1)[row[-1]].backward()
        norms = x.grad[0].norm(dim=-1).numpy()
        np.testing.assert_allclose(curve, norms[::-1] / norms.sum(), rtol=1e-9)
    found = gradient_field(made, TEXT, share=0.8, length=20, segments=3, mask=mask)
    mean = curves.mean(0)
    assert mean[: found.tokens].sum() > 0.8 >= mean[: found.tokens - 1].sum()
    assert found.low <= found.tokens <= found.high
    assert dict(found.curve)[4] == pytest.approx(mean[:4].sum())


def test_recall_is_told_by_a_model_that_looks_the_answer_up():
    made = model("nope")
    rows = InductionRows(Induction(vocabulary=256))
    found = recall(made, rows, (30, 50), distances=(1, 7, 40, 90), count=20)
    assert [(x.length, x.distance) for x in found] == [(30, 1), (30, 7), (50, 1), (50, 7), (50, 40)]

    for line in found[:2]:
        probe = rows.probe(0, 20, line.length, line.distance)
        by_hand = []
        for row in probe:
            at = [
                (c + b).softmax(-1)[:, -1, line.length - 1 - line.distance]
                for c, b in attention_by_hand(made, row[:-1], CAUSAL)
            ]
            by_hand.append(torch.cat(at))
        heads = torch.stack(by_hand).mean(0)
        assert any(line.attention == pytest.approx(h.item()) for h in heads)
    probe = torch.from_numpy(rows.probe(0, 20, 50, 40))
    last = made.hidden(made.embed(probe[:, :-1]))[:, -1]
    told = torch.where(torch.arange(20) < 5, probe[:, -1], probe[:, 0])  # a quarter is right

    def oracle(h):
        torch.testing.assert_close(h, last)
        return torch.nn.functional.one_hot(told, 256)

    made.logits = oracle
    assert recall(made, rows, (50,), distances=(40,), count=20)[0].accuracy == 1 / 4


def test_a_text_or_a_stride_that_does_not_fit_is_refused(refusal):
    for call in (
        lambda: perplexities(model(), TEXT, (12, 800)),
        lambda: perplexities(model(), TEXT, (12, 40), last=13),
        lambda: attention_field(model(), TEXT, thresholds=(0.1,), length=700, segments=2, rows=5),
    ):
        refusal("accepted", call)


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_rows_begin_with_a_token_in_a_copy_of_these_rows_alone(kind):
    text = kind(TEXT.copy())
    rows = text[:30].reshape(3, 10)
    changed = led(rows, 7)
    assert changed[:, 0].tolist() == [7, 7, 7] and (changed[:, 1:] == rows[:, 1:]).all()
    assert changed.dtype == rows.dtype and (text == kind(TEXT)).all() and led(rows, None) is rows
    assert torch.as_tensor(changed).untyped_storage().nbytes() == 30  # and not that of the text
