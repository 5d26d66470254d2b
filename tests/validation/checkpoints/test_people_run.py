"""Models people run: receptive fields, windows and perplexity by length through one interface."""

import dataclasses
import json
import math

import numpy as np
import pytest
import torch

from farfield.cli import main
from farfield.theory.answers.answer import Code, InputError, Status
from farfield.validation.checkpoints.audit import audit
from farfield.validation.checkpoints.folder import describe
from farfield.validation.checkpoints.loading import load
from farfield.validation.checkpoints.measured import empirical
from farfield.validation.checkpoints.measured.empirical import empirical_receptive_field
from farfield.validation.checkpoints.measured.perplexities import model_perplexity
from farfield.validation.harness.corpus import corpus
from farfield.validation.harness.measures.perplexity import perplexities
from farfield.validation.harness.measures.receptive_fields import attention_rows
from farfield.validation.harness.mechanism import Visibility

NAMES = (
    "gpt2",
    "opt",
    "gptj",
    "phi",
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "gemma2",
    "gemma3_text",
    "gpt_oss",
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NAMES)
def test_one_interface(name, outside_models, numbers):
    folder = describe(outside_models.folder(name))
    model, theirs = load(folder), outside_models.network(name)
    found = audit(folder, trained=32)
    widest = max((k.keys or math.inf) for k in found.layers_alike)
    assert found.sliding_window == widest and len(found.reach) == folder.shape.layers

    gradient = empirical_receptive_field(model, numbers, length=40, segments=2, q="0.999999")
    assert 1 <= gradient.tokens <= min(40, found.reach[-1])
    rows = empirical_receptive_field(
        model, numbers, kind="attention", length=40, segments=1, rows=4, eps="1/1000"
    )
    assert rows.bounds.violations == 0
    for k, layer in enumerate(rows.heads):
        assert max(layer) <= (folder.attention[k].window or 40)

    measured = perplexities(model, numbers, (20, 40), 3)
    ours = perplexities(model, numbers, (20, 40), 4, 1)
    segment = torch.from_numpy(numbers[:41].astype(np.int64))[None]
    with torch.no_grad():
        scores = theirs(segment[:, :-1]).logits[0].double().log_softmax(-1)
    nats = -scores.gather(1, segment[0, 1:, None]).mean()
    (whole,) = perplexities(model, numbers[:41], (40,), 1)
    assert whole.nats == pytest.approx(float(nats), rel=1e-4)
    assert [m.length for m in (*measured, *ours)] == [20, 40, 20, 40]


def test_a_row_that_breaks_a_bound_withdraws_the_field(
    outside_models, numbers, monkeypatch, speaks
):
    def broken(*given, **how):
        found = attention_rows(*given, **how)
        return dataclasses.replace(found, bounds=dataclasses.replace(found.bounds, jensen=3))

    monkeypatch.setattr(empirical, "attention_rows", broken)
    how = {"kind": "attention", "length": 40, "segments": 1}
    found = empirical.empirical_receptive_field(outside_models.folder("gpt2"), numbers, **how)
    assert (found.status, found.label) == (Status.UNKNOWN, None)
    assert found.reason.code is Code.BROKEN_BOUND and "3 of" in speaks(found)


def test_rows_end_with_the_table_of_positions(outside_models, numbers):
    for name in ("gpt2", "opt", "gptj"):
        with pytest.raises(InputError, match="has positions for 90 tokens, 91 are asked for"):
            empirical_receptive_field(outside_models.folder(name), numbers, length=91, segments=1)


def test_perplexity_by_length(capsys, outside_models, tmp_path, speaks):
    words = tmp_path / "words.txt"
    words.write_text("one word after another, " * 400)
    given = ("--model", str(outside_models.folder("gpt2")), "--text", str(words))
    capsys.readouterr()

    def call(*args):
        with pytest.raises(SystemExit) as stop:
            main(["perplexity", *args])
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    code, out, _ = call(*given, "--length", "64", "--length", "16", "--samples", "9", "--json")
    found = json.loads(out)
    assert code == 0 and [p["length"] for p in found["lengths"]] == [16, 64]
    model = load(describe(outside_models.folder("gpt2")))
    expected = perplexities(model, corpus(str(words)).held_out, [16, 64], 9, 1)
    assert [p["nats"] for p in found["lengths"]] == [p.nats for p in expected]
    assert found["ratio"] == expected[-1].ratio
    sinks = model_perplexity(
        outside_models.folder("gpt2"),
        [16, 64],
        text=corpus(str(words)),
        samples=3,
        protocol="non-overlapping",
        visible=Visibility(window=16, sinks=2),
    )
    assert "under window 16, sinks 2" in speaks(sinks) and sinks.lengths[0].targets == 3 * 64
    for args, message in (
        ((*given, "--length", "91"), "has positions for 90 tokens"),
        ((*given, "--length", "0"), "length"),
        ((*given, "--length", "9", "--protocol", "x"), "accepted: last-token, non-overlapping"),
        ((*given, "--length", "9", "--sinks", "2"), "give --window"),
        ((*given, "--length", "9", "--samples", "0"), "--samples '0' is out of range"),
    ):
        code, _, err = call(*args)
        assert code == 2 and message in err and len(err.splitlines()) == 1


def test_kept_first_keys_are_those_of_the_library(outside_models):
    """The library's own forward pass under the mask of a window with first keys."""
    for name in ("llama", "gpt2", "phi"):
        model, theirs = load(describe(outside_models.folder(name))), outside_models.network(name)
        x = torch.randint(0, 256, (1, 40), generator=torch.Generator().manual_seed(5))
        view, at = Visibility(window=6, sinks=2), torch.arange(40)
        mask = torch.zeros(40, 40).masked_fill(~view.sees(at[:, None], at), -math.inf)
        with torch.no_grad():
            expected = theirs(x, attention_mask=mask[None, None]).logits
            found = model.logits(model.hidden(model.embed(x), view))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
