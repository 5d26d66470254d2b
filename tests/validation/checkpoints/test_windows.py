"""Bounds from weights and from text, windows for each head, and what they do to the model."""

import dataclasses
import json
import math

import mpmath
import numpy as np
import pytest
import torch

from farfield.cli import main
from farfield.theory.answers.answer import Code, InputError, Label, Status
from farfield.theory.encodings import encoding
from farfield.validation.checkpoints import audit as audits
from farfield.validation.checkpoints.configured import Attention, HeadBounds
from farfield.validation.checkpoints.folder import describe
from farfield.validation.checkpoints.guarded import reader
from farfield.validation.checkpoints.loading import load
from farfield.validation.checkpoints.measured import windows
from farfield.validation.checkpoints.measured.segments import text_bounds
from farfield.validation.checkpoints.measured.windows import model_window
from farfield.validation.checkpoints.norms import Projections, bounds_of, projections, weight_bounds
from farfield.validation.harness.attention import materialised
from farfield.validation.harness.configuration import Configuration
from farfield.validation.harness.corpus import corpus, samples_of
from farfield.validation.harness.experiment import train_and_measure
from farfield.validation.harness.presets import Measurement
from farfield.validation.harness.store import Store

BIASED = ("bloom", "mpt", "falcon", "falcon_groups", "falcon_whole", "farfield")
PARTS = ("query", "key", "value")


def norms_of(folder):
    """Names of the norms that a family may have before its attention."""
    return folder.family["projects"]["norm"]


@pytest.fixture(scope="module")
def opened(outside_models, text, small, tmp_path_factory):
    """A model of each family that has an additive bias, ours too."""
    root = tmp_path_factory.mktemp("runs")
    settings = Configuration(
        encoding("alibi", heads=4),
        text,
        small,
        measurement=Measurement(
            lengths=(12,),
            blocks=1,
            last_tokens=2,
            row_length=20,
            row_segments=1,
            rows=2,
            gradient_segments=1,
        ),
    )
    run = root / train_and_measure(settings, Store(root))["key"]
    places = {name: outside_models.folder(name) for name in BIASED[:-1]}
    folders = {name: describe(place) for name, place in (places | {"farfield": run}).items()}
    return {name: (folder, load(folder)) for name, folder in folders.items()}


def recorder():
    """A path, and the list in which it leaves the queries, keys, values and biases it was given."""
    recorded = []

    def path(query, key, value, bias, visible):
        recorded.append((query.double(), key.double(), value.double(), bias))
        return materialised(query, key, value, bias, visible)

    return recorded, path


def projected(folder):
    """Of each layer, in tensors."""
    said, read = folder.family["projects"], reader(folder.path)
    for layer in range(folder.shape.layers):
        p = projections(folder.shape, said, layer, read)
        parts = {name: tuple(map(torch.tensor, getattr(p, name))) for name in PARTS}
        gain, shift = torch.from_numpy(p.gain), torch.from_numpy(p.shift)
        yield dataclasses.replace(p, gain=gain, shift=shift, **parts)


@pytest.mark.parametrize("name", BIASED)
def test_the_projections_are_those_of_the_model(name, opened, numbers):
    folder, model = opened[name]
    inputs, (recorded, path) = [], recorder()
    layers = list(projected(folder))
    network = getattr(model, "network", model)
    modules = {f".{found}": module for found, module in network.named_modules()}
    named = [norm.format(layer=k) for k in range(len(layers)) for norm in norms_of(folder)]
    norms = [modules[f".{one}"] for one in named if f".{one}" in modules]
    hooks = [
        norm.register_forward_hook(lambda *call: inputs.append(call[-1][0].double()))
        for norm in norms
    ]
    assert len(norms) == len(layers)
    x = torch.from_numpy(numbers[:40].astype(np.int64))[None]
    with torch.no_grad():
        model.hidden(model.embed(x), path=path)
    for hook in hooks:
        hook.remove()
    for p, y, (query, key, value, _) in zip(layers, inputs, recorded, strict=True):
        z = (y - p.shift) / p.gain
        assert z.norm(dim=-1).max() <= math.sqrt(folder.shape.width) * (1 + 1e-6)
        assert z.mean(-1).abs().max() < 1e-5
        factor = folder.attention[0].scale * math.sqrt(folder.shape.head_size)
        for found, (weight, bias), times in (
            (query, p.query, factor),
            (key, p.key, 1),
            (value, p.value, 1),
        ):
            expected = times * (torch.einsum("hdw,lw->hld", weight, y) + bias[:, None])
            torch.testing.assert_close(found[0], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", BIASED)
def test_bounds_from_weights_hold_and_are_attained(name, opened):
    """Inputs of norm sqrt(width) along the singular vectors reach each of the terms."""
    folder, _ = opened[name]
    root = math.sqrt(folder.shape.width)
    scale = folder.attention[0].scale
    for p, heads in zip(projected(folder), weight_bounds(folder), strict=True):
        a, b, v = (w * p.gain for w, _ in (p.query, p.key, p.value))
        constant = p.query[0] @ p.shift + p.query[1]
        centre = torch.eye(folder.shape.width, dtype=torch.float64) - 1 / folder.shape.width
        for h, bound in enumerate(heads):
            product = centre @ a[h].T @ b[h] @ centre
            left, _, right = torch.linalg.svd(product)
            zq, zk = root * left[:, 0], root * right[0]
            logits = [scale * float((a[h] @ zq + constant[h]) @ b[h] @ (s * zk)) for s in (1, -1)]
            also = scale * root * float((b[h] @ centre).T.mv(constant[h]).norm())
            whole = scale * root**2 * float(torch.linalg.matrix_norm(product, 2)) + also
            assert max(map(abs, logits)) <= bound.logit
            assert whole <= bound.logit <= whole * (1 + 1e-4)
            worst = torch.linalg.svd(v[h] @ centre)[2][0]
            assert float((v[h] @ worst).norm()) * root <= bound.value
            assert bound.value <= float((v[h] @ worst).norm()) * root * (1 + 1e-4)


@pytest.mark.parametrize("name", BIASED)
def test_text_stays_within_the_bounds_of_the_weights(name, opened, numbers):
    folder, model = opened[name]
    rows = samples_of(numbers, 2, 60)
    measured = text_bounds(model, rows)
    for proved, found in zip(weight_bounds(folder), measured, strict=True):
        for p, f in zip(proved, found, strict=True):
            assert 0 < f.logit <= p.logit and f.value > 0
    # by the definition, the last head of the last layer
    recorded, path = recorder()
    halves, values = [], []
    for row in torch.from_numpy(rows[:, :-1]):
        with torch.no_grad():
            model.hidden(model.embed(row[None]), path=path)
        query, key, value = (x[0, -1] for x in recorded[-1][:3])
        scores = query @ key.T / math.sqrt(folder.shape.head_size)
        halves += [float(s[: i + 1].max() - s[: i + 1].min()) / 2 for i, s in enumerate(scores)]
        values.append(value)
    assert measured[-1][-1].logit == pytest.approx(max(halves))
    radius = (torch.cat(values) - values[0].mean(0)).norm(dim=-1).max()
    assert measured[-1][-1].value == pytest.approx(float(radius))


def test_a_clamped_projection(outside_models, numbers, tmp_path):
    """MPT's clip_qkv: the bound is that of clamped vectors, and holds on text."""
    network = outside_models.network("mpt")
    network.config.attn_config.clip_qkv = 0.5
    network.save_pretrained(tmp_path / "mpt")
    folder = describe(tmp_path / "mpt")
    model = load(folder)
    for proved, found in zip(
        weight_bounds(folder), text_bounds(model, samples_of(numbers, 1, 60)), strict=True
    ):
        for p, f in zip(proved, found, strict=True):
            assert f.logit <= p.logit <= 0.5**2 * folder.shape.head_size * 0.4 * (1 + 1e-8)
            assert p.value <= 0.5 * math.sqrt(folder.shape.head_size) * (1 + 1e-9)


def test_windows_of_a_model(outside_models, text, speaks):
    place = outside_models.folder("bloom")
    proved = model_window(place, "1/100", bounds="weights", text=text, length=200, segments=2)
    found = model_window(place, "1/100", text=text, length=200, segments=2)
    assert (proved.label, found.label) == (Label.CERTIFIED, Label.MEASURED)
    assert len(found.heads) == 12 and found.sliding_window == max(h.window for h in found.heads)
    assert any(h.error for h in found.heads)
    for wide, h in zip(proved.heads, found.heads, strict=True):
        assert h.window <= wide.window and wide.exceeded == 0
        for one in (wide, h):  # a window that drops no key has nothing measured
            assert one.rows == 2 * max(0, 200 - one.window)
            assert one.error is None if one.window >= 200 else one.error <= 0.01
    assert found.sliding_window >= found.length
    (own,) = found.composed
    said = speaks(found)
    assert f"sliding_window = {found.sliding_window} keeps" in said
    assert "while logits stay within" in said and "the most on this text" in said
    idle = sum(h.window >= 200 for h in found.heads)
    assert f"The windows of {idle} of 12 heads drop no key" in " ".join(found.text().split())
    assert "for every text, by the norms of the weights" in speaks(proved)
    assert int(found) == found.sliding_window
    assert 0 < own.largest < 0.05 and own.ratio_low <= own.ratio <= own.ratio_high
    assert abs(own.ratio - 1) < 0.01 and own.tokens == 400
    data = json.loads(found.to_json())
    assert data["sliding_window"] == found.sliding_window and len(data["heads"]) == 12


def test_a_measurement_withdraws_a_bound_that_it_breaks(
    outside_models, monkeypatch, text, tmp_path, speaks, capsys
):
    """Bounds of other weights than those that run: window, audit and exit code say so."""
    place = outside_models.folder("bloom")

    def smaller(folder):
        return [tuple(HeadBounds(1e-6, 1e-6) for _ in layer) for layer in weight_bounds(folder)]

    for module in (windows, audits):
        monkeypatch.setattr(module, "weight_bounds", smaller)
    how = {"bounds": "weights", "text": text}
    found = model_window(place, "1/10000000", **how, length=60, segments=1)
    audited = audits.audit(place, trained=64, error="1/10000000", **how)
    for answer in (found, audited):
        assert (answer.status, answer.label) == (Status.UNKNOWN, None)
        assert answer.sliding_window is None and answer.reason.code is Code.BROKEN_BOUND
        assert "do not hold of the model that was measured" in speaks(answer)
        assert "for every text" not in answer.text()
    words = tmp_path / "words.txt"
    words.write_text("one word after another, " * 2000)
    given = ("--error", "1e-7", "--bounds", "weights", "--text", str(words))
    for verb in (("window", "--model", str(place)), ("audit", str(place), "--out", str(tmp_path))):
        with pytest.raises(SystemExit) as stop:
            main([*verb, *given])
        assert stop.value.code == 1 and "certified" not in capsys.readouterr().out.split(":")[1]


def test_the_error_of_a_head_by_its_definition(opened, text, numbers):
    """A budget so large that windows bite: errors of 0.05 and more, none above the bound."""
    folder, model = opened["falcon"]
    found = model_window(folder, "3/2", text=text, length=64, segments=1)
    recorded, path = recorder()
    row = torch.from_numpy(samples_of(text.held_out, 1, 64)[0])[None, :-1]
    with torch.no_grad():
        model.hidden(model.embed(row), path=path)
    for h in found.heads:
        query, key, value, bias = recorded[h.layers[0] - 1]
        cut = bias[h.head - 1 : h.head].clone()
        cut[:, h.window :] = -math.inf
        one = slice(h.head - 1, h.head)
        args = [x[:, one] for x in (query, key, value)]
        change = materialised(*args, bias[one]) - materialised(*args, cut)
        most = float(change.norm(dim=-1).max())
        assert (h.error or 0.0) == pytest.approx(most, rel=1e-6, abs=1e-9)
        assert h.exceeded == 0
    assert max(h.error or 0.0 for h in found.heads) > 0.05


def test_no_window(outside_models, small, text, tmp_path, speaks):
    llama = model_window(outside_models.folder("llama"), "1/100", text=text)
    assert llama.sliding_window == math.inf and llama.status is Status.INFINITE
    assert llama.reason.code is Code.BOUNDED_LOGITS and speaks(llama)
    settings = Configuration(encoding("-log(1+n)/2"), text, small)
    place = tmp_path / train_and_measure(settings, Store(tmp_path))["key"]
    found = model_window(place, "1/100", text=text, length=40, segments=1)
    assert found.sliding_window == math.inf and found.reason.code is Code.DIVERGES
    assert (found.status, found.label) == (Status.INFINITE, Label.THEOREM)
    assert found.composed == () and speaks(found)
    assert json.loads(found.to_json())["sliding_window"] is None
    with pytest.raises(InputError, match="accepted: text, weights"):
        model_window(place, 1, bounds="guess", text=text)
    with pytest.raises(InputError, match="accepted: a positive number"):
        model_window(place, 0, text=text)


def test_windows_beyond_every_integer_of_a_machine(small, text, tmp_path, speaks):
    """A heavy tail: windows of more than 2^63 keys are printed, and keep every key."""
    settings = Configuration(encoding("-11/10*log(1+n)"), text, small)
    place = tmp_path / train_and_measure(settings, Store(tmp_path))["key"]
    found = model_window(place, "1/1000", bounds="weights", text=text, length=30, segments=1)
    assert found.sliding_window > 2**63 and found.status is Status.EXACT and speaks(found)
    assert all(h.error is None and h.rows == 0 for h in found.heads)
    assert found.composed == ()


def test_a_bound_beyond_reach(outside_models, text, tmp_path, speaks):
    network = outside_models.network("bloom")
    with torch.no_grad():
        for block in network.transformer.h:
            block.self_attention.query_key_value.weight.mul_(30)
    network.save_pretrained(tmp_path / "steep")
    found = model_window(
        tmp_path / "steep", "1/100", bounds="weights", text=text, length=40, segments=1
    )
    assert found.sliding_window is None and found.status is Status.UNKNOWN
    assert found.reason.code is Code.TOO_LARGE and speaks(found)


def test_the_verb(capsys, outside_models, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("one word after another, " * 400)

    def call(*args):
        with pytest.raises(SystemExit) as stop:
            main(["window", *args, "--error", "1e-3"])
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    given = ("--model", str(outside_models.folder("mpt")), "--text", str(words), "--length", "50")
    code, out, _ = call(*given, "--segments", "1", "--bounds", "weights", "--json")
    found = json.loads(out)
    assert code == 0 and (found["model"], found["label"]) == ("mpt", "certified")
    assert call("--model", str(outside_models.folder("gpt_neox")))[0] == 0
    assert call("alibi", "--logit-bound", "1")[0] == 0
    for args, message in (
        ((), "give a formula, or a model's folder"),
        (("alibi", *given), "give a formula, or a model's folder"),
        (("alibi",), "as --logit-bound 1"),
        ((*given, "--logit-bound", "1"), "brings its own biases and bounds"),
        (("alibi", "--logit-bound", "1", "--bounds", "text"), "belong to --model"),
        ((*given[:4], "--length", "100000"), "takes 100001"),
        ((*given[:4], "--length", "-5"), "--length '-5' is out of range"),
    ):
        code, _, err = call(*args)
        assert code == 2 and message in err and len(err.splitlines()) == 1
    assert corpus(str(words)).unit == "byte"


def test_a_window_of_a_model_without_bias_is_that_of_its_layers(outside_models, text):
    sliding = model_window(outside_models.folder("mistral"), "1/100", text=text)
    assert (sliding.sliding_window, sliding.status) == (9, Status.EXACT)
    mixed = model_window(outside_models.folder("gemma2"), "1/100", text=text)
    assert mixed.sliding_window == math.inf and "layer 2 sees all keys" in str(mixed.reason)


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
