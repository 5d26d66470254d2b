"""Certificates on models from outside: by their definition, and never exceeded."""

import json
import math

import numpy as np
import pytest
import torch

from farfield.cli import main
from farfield.numerics.windows.row_bound import window_certificate
from farfield.theory.answers.answer import InputError, Status
from farfield.validation.checkpoints.folder import describe
from farfield.validation.checkpoints.loading import load
from farfield.validation.checkpoints.measured.certificates import model_certificate
from farfield.validation.checkpoints.measured.windows import model_window
from farfield.validation.harness.attention import fused, materialised
from farfield.validation.harness.corpus import samples_of
from farfield.validation.harness.mechanism import Visibility

NAMES = ("bloom", "gpt2", "mistral", "qwen3", "gemma2", "gemma3_text", "gpt_oss")


@pytest.mark.parametrize("name", NAMES)
def test_no_row_moves_by_more_than_its_bound(name, outside_models, text, speaks):
    found = model_certificate(
        outside_models.folder(name), 12, "1/2", sinks=3, text=text, length=60, segments=2
    )
    slides = [
        a.window is not None and a.window <= 12
        for a in describe(outside_models.folder(name)).attention
    ]
    assert [k.rows == 0 for k in found.layers] == slides and speaks(found)
    assert (found.share is None) == all(slides) and (found.composed == ()) == all(slides)
    for k in found.layers:
        assert k.exceeded == 0 and k.error <= 2 * k.value_bound
        if k.rows:
            assert 0 < k.error <= max(k.bound, 2 * k.value_bound) and k.error_without > 0
            # exchangeable by construction, and no bias of these models rises
            assert k.permuted >= k.leak - 5 * k.deviation


def test_the_rows_are_those_of_the_certificate(outside_models, text):
    """Against the certificate of one head, and outputs of the specification."""
    folder = describe(outside_models.folder("llama"))
    model, recorded = load(folder), []
    row = samples_of(text.held_out, 1, 50)[0][None, :-1].astype(np.int64)

    def path(query, key, value, bias, visible):
        recorded.append((query, key, value))
        return fused(query, key, value, bias, visible)

    with torch.no_grad():
        model.hidden(model.embed(torch.from_numpy(row)), path=path)
    found = model_certificate(folder, 9, "1/2", sinks=2, text=text, length=50, segments=1)
    for k, (query, key, value) in zip(found.layers, recorded, strict=True):
        certified = without = rows = 0
        for h in range(folder.shape.heads):
            v = value[0, h].double()
            radius = float((v - v.mean(0)).norm(dim=-1).max())
            for sinks in (2, 0):
                one = window_certificate(
                    query[0, h], key[0, h], window=9, sinks=sinks, error="1/2", value_bound=radius
                )
                counted = np.arange(50) >= 9 + 2
                total = int((one.certified & counted).sum())
                certified, without = (
                    (certified + total, without) if sinks else (certified, without + total)
                )
            rows += int(counted.sum())
        assert k.rows == rows
        assert k.certified == pytest.approx(certified / rows)
        assert k.certified_without == pytest.approx(without / rows)
        full = materialised(query, key, value)
        for view, error in (
            (Visibility(window=9, sinks=2), k.error),
            (Visibility(window=9), k.error_without),
        ):
            change = (full - materialised(query, key, value, visible=view)).norm(dim=-1)
            assert error == pytest.approx(float(change[..., 11:].max()), rel=1e-5)


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


def test_a_dropped_sink_and_a_kept_one(outside_models, tmp_path, text):
    """[Q, Lemma 0.2]: a first key that every row looks at defeats a window, and is no matter once
    it is kept."""
    network = outside_models.network("gpt2")
    along = torch.tensor([1.0, -1.0]).repeat(16) / math.sqrt(32)
    with torch.no_grad():
        network.transformer.wpe.weight[0] = 1000 * along  # what the norm makes of it is along too
        for block in network.transformer.h:
            weight, bias = block.attn.c_attn.weight, block.attn.c_attn.bias
            weight[:, :64] *= 0.02  # little content in queries and keys
            weight[:, 32:64] += along[:, None]
            bias[:32] = 1.0  # every query answers that key
    network.save_pretrained(tmp_path / "sink")
    found = model_certificate(
        tmp_path / "sink", 8, "1/2", sinks=1, text=text, length=60, segments=1
    )
    layer = found.layers[0]
    assert layer.exceeded == 0 and layer.error_without > 0.5 * layer.value_bound
    assert layer.error < 0.05 * layer.error_without and layer.outside > 0.9
    assert layer.certified == 1 and layer.certified_without == 0
    # the first key is always the same one: not exchangeable, permuted it would be
    assert layer.outside > layer.permuted + 5 * layer.deviation


def test_a_window_of_a_model_without_bias_is_that_of_its_layers(outside_models, text):
    sliding = model_window(outside_models.folder("mistral"), "1/100", text=text)
    assert (sliding.sliding_window, sliding.status) == (9, Status.EXACT)
    mixed = model_window(outside_models.folder("gemma2"), "1/100", text=text)
    assert mixed.sliding_window == math.inf and "layer 2 sees all keys" in str(mixed.reason)


def test_the_verb_and_bad_input(capsys, outside_models, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("one word after another, " * 400)
    given = ("--model", str(outside_models.folder("qwen2")), "--text", str(words))
    capsys.readouterr()

    def call(*args):
        with pytest.raises(SystemExit) as stop:
            main(["window", *args, "--error", "1/2"])
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    code, out, _ = call(
        *given, "--keep", "16", "--sinks", "2", "--length", "40", "--json", "--segments", "1"
    )
    found = json.loads(out)
    assert code == 0 and (found["keep"], found["sinks"], found["label"]) == (16, 2, "measured")
    assert len(found["layers"]) == 3 and found["layers"][1]["certified"] is None
    for args, message in (
        ((*given, "--sinks", "4"), "give --keep"),
        ((*given, "--keep", "4", "--sinks", "5"), "sinks 5 are more than the window of 4"),
        ((*given, "--keep", "x"), "keep"),
        ((*given, "--keep", "4", "--bounds", "text"), "leave --bounds out"),
        (("alibi", "--keep", "4"), "belong to --model"),
    ):
        code, _, err = call(*args)
        assert code == 2 and message in err and len(err.splitlines()) == 1
    with pytest.raises(InputError, match="at most as many as the window"):
        Visibility(window=3, sinks=4)
