"""Models from outside: the same numbers as the library's own code, and one line for bad folders."""

import json
import math
import random
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM

from farfield.cli import main
from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding
from farfield.validation.checkpoints import loading
from farfield.validation.checkpoints.folder import describe
from farfield.validation.checkpoints.loading import load
from farfield.validation.checkpoints.measured.empirical import empirical_receptive_field
from farfield.validation.checkpoints.measured.perplexities import model_perplexity
from farfield.validation.checkpoints.measured.segments import tokens_of
from farfield.validation.checkpoints.measured.windows import model_window
from farfield.validation.harness.attention import materialised
from farfield.validation.harness.configuration import Configuration
from farfield.validation.harness.corpus import Corpus, corpus, samples_of
from farfield.validation.harness.experiment import train_and_measure, trained_model
from farfield.validation.harness.measures.receptive_fields import attention_rows, gradient_shares
from farfield.validation.harness.mechanism import Visibility
from farfield.validation.harness.presets import Measurement
from farfield.validation.harness.store import Store

sys.path.insert(0, str(Path(__file__).parent))
FAMILIES = (
    "bloom",
    "mpt",
    "falcon",
    "falcon_groups",
    "falcon_whole",
    "falcon_rotary",
    "gpt_neox",
    "llama",
    "gpt2",
    "opt",
    "gptj",
    "phi",
    "mistral",
    "qwen2",
    "qwen3",
    "gemma2",
    "gemma3_text",
    "gpt_oss",
)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_librarys_own_forward_pass(name, outside_models):
    """Logits of the library with its eager attention, and the gradient at its input embeddings."""
    model, theirs = load(describe(outside_models.folder(name))), outside_models.network(name)
    x = torch.randint(0, 256, (2, 60), generator=torch.Generator().manual_seed(1))
    embedded = theirs.get_input_embeddings()(x).detach().requires_grad_()
    expected = theirs(inputs_embeds=embedded).logits
    for path in (loading.fused, materialised):
        found = model.logits(model.hidden(model.embed(x), path=path))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    ours = model.embed(x).requires_grad_()
    score = model.logits(model.hidden(ours)[:, -1]).log_softmax(-1)[:, 7].sum()
    (found,) = torch.autograd.grad(score, ours)
    expected[:, -1].log_softmax(-1)[:, 7].sum().backward()
    torch.testing.assert_close(found, embedded.grad, rtol=1e-3, atol=1e-6)


def test_a_window_is_a_window(outside_models):
    model = load(describe(outside_models.folder("bloom")))
    x = torch.randint(0, 256, (1, 40), generator=torch.Generator().manual_seed(2))
    y = x.clone()
    y[:, 0] = (y[:, 0] + 1) % 256
    reach = 2 * (5 - 1)  # two layers of windows of 5

    def last(tokens):
        return model.hidden(model.embed(tokens), Visibility(window=5))[0]

    changed = (last(x) != last(y)).any(-1)
    assert changed[:reach].any() and not changed[reach + 1 :].any()


def test_gradient_field_of_a_model_from_outside(outside_models, numbers):
    found = empirical_receptive_field(
        outside_models.folder("mpt"), numbers, length=80, segments=3, q="0.9"
    )
    theirs = outside_models.network("mpt")
    curves = []
    for row in samples_of(numbers, 3, 80):
        embedded = theirs.get_input_embeddings()(torch.from_numpy(row[None, :-1])).detach()
        embedded.requires_grad_()
        mask = torch.ones(80, 80, dtype=torch.bool).triu(1)[None, None]
        # beyond max_seq_len = 64 the library has no bias to give: only its first 64 tokens
        theirs.transformer.config.max_seq_len = 80
        out = theirs(inputs_embeds=embedded, attention_mask=mask).logits
        out[0, -1].log_softmax(-1)[row[-1]].backward()
        norms = embedded.grad[0].norm(dim=-1).flip(0).double()
        curves.append((norms / norms.sum()).numpy())
    mean = np.mean(curves, 0)
    assert found.tokens == int(np.argmax(mean.cumsum() > 0.9)) + 1
    assert found.mass_in_training_length == pytest.approx(mean[:64].sum(), rel=1e-3)
    assert dict(found.curve)[16] == pytest.approx(mean[:16].sum(), rel=1e-3)
    low, high = found.interval
    assert low <= found.tokens <= high and found.label == "measured"


def test_attention_field_of_a_model_from_outside(outside_models, numbers, speaks):
    """Against the library's own attention weights."""
    found = empirical_receptive_field(
        outside_models.folder("bloom"),
        numbers,
        kind="attention",
        eps="1/10",
        length=50,
        segments=2,
        rows=6,
    )
    theirs = outside_models.network("bloom")
    at = torch.linspace(25, 49, 6).long()
    means, means_of = np.zeros((2, 6)), []
    share = 0.0
    for row in samples_of(numbers, 2, 50):
        before = means.copy()
        with torch.no_grad():
            out = theirs(torch.from_numpy(row[None, :-1]), output_attentions=True)
        for layer, weights in enumerate(out.attentions):
            for h in range(6):
                for i in at.tolist():
                    near = weights[0, h, i, : i + 1].flip(0).double().cumsum(0)
                    means[layer, h] += (int((near <= 0.9 * near[-1]).sum()) + 1) / 12
                    share += float(near[7] / near[-1]) / (2 * 6 * 12)
        means_of.append((means - before).mean() * 2)
    np.testing.assert_allclose(found.heads, means)
    assert found.tokens == pytest.approx(means.mean())
    assert dict(found.curve)[8] == pytest.approx(share, rel=1e-4)
    assert found.bounds.violations == 0 and found.bounds.logit_bound > 0.5
    low, high = found.interval
    assert low < found.tokens < high and low >= min(means_of) and high <= max(means_of)
    alone = empirical_receptive_field(
        outside_models.folder("bloom"), numbers, kind="attention", length=50, segments=1, rows=6
    )
    assert alone.interval is None and speaks(alone)
    assert found.training_length is None and found.mass_in_training_length is None


def test_a_field_says_what_the_queries_saw(outside_models, numbers, speaks):
    bloom, llama = outside_models.folder("bloom"), outside_models.folder("llama")
    found = empirical_receptive_field(
        bloom, numbers, length=64, segments=1, visible=Visibility(window=8)
    )
    assert found.to_dict()["visible"] == "window 8" and speaks(found)
    turned = empirical_receptive_field(
        llama, numbers, kind="attention", length=50, segments=1, rows=4
    )
    assert turned.visible == "" and turned.trf is None


def test_rotations_have_logits_too(outside_models, numbers):
    for name in ("llama", "gpt_neox", "falcon_rotary"):
        found = empirical_receptive_field(
            outside_models.folder(name), numbers, kind="attention", length=40, segments=1
        )
        assert found.bounds.violations == 0 and 1 < found.tokens <= 40
        assert describe(outside_models.folder(name)).encodings[0].out_of_scope


class Largest(TorchDispatchMode):
    """The bytes of the largest storage that an operation returns."""

    bytes = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        for x in result if isinstance(result, tuple | list) else [result]:
            if isinstance(x, torch.Tensor):
                self.bytes = max(self.bytes, x.untyped_storage().nbytes())
        return result


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["bloom", "mpt", "falcon", "llama", "gemma2", "gpt_oss"])
def test_no_matrix_of_all_pairs(name, outside_models, numbers):
    """Not of one head, not in any type: every tensor is smaller than length^2 bytes."""
    model, length = load(describe(outside_models.folder(name))), 3000
    for measure in (
        lambda: gradient_shares(model, samples_of(numbers, 1, length)),
        lambda: attention_rows(
            model, numbers, thresholds=(0.1,), length=length, segments=1, rows=4
        ),
    ):
        with Largest() as seen:
            measure()
        assert 0 < seen.bytes < length**2


def test_a_run_by_its_folder(text, small, tmp_path, capsys):
    for name in ("kerple_log", "t5", "xpos"):
        given = {"buckets": 4, "max_distance": 8} if name == "t5" else {}
        settings = Configuration(
            encoding(name, **given),
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
        key = train_and_measure(settings, Store(tmp_path))["key"]
        folder = describe(tmp_path / key)
        assert (folder.trained, folder.shape.layers, folder.shape.heads) == (12, 2, 4)
        model = trained_model(settings, Store(tmp_path))
        direct = empirical_receptive_field(model, text.held_out, length=30, segments=2)
        again = empirical_receptive_field(tmp_path / key, text, length=30, segments=2)
        assert again.tokens == direct.tokens and again.curve == direct.curve
        assert again.mass_in_training_length == direct.mass_in_training_length
        words = tmp_path / "words.txt"
        words.write_bytes(bytes(text.train) + bytes(text.held_out))
        with pytest.raises(SystemExit) as stop:
            main(
                [
                    "erf",
                    key[:8],
                    "--runs",
                    str(tmp_path),
                    "--text",
                    str(words),
                    "--length",
                    "30",
                    "--segments",
                    "2",
                    "--json",
                ]
            )
        assert stop.value.code == 0
        assert json.loads(capsys.readouterr().out)["tokens"] == direct.tokens
        if name != "xpos":  # the learned values, exactly
            (learned,) = folder.encodings
            table = model.bias_table(20).numpy()
            np.testing.assert_allclose(learned.bias(np.arange(20)), table, rtol=1e-5, atol=1e-6)


def test_texts_in_the_tokens_of_the_model(outside_models, tmp_path, text):
    import tokenizers

    place = tmp_path / "model"
    shutil.copytree(outside_models.folder("llama"), place)
    settings = json.loads((place / "config.json").read_text())
    (place / "config.json").write_text(json.dumps(settings | {"vocab_size": 300}))
    with pytest.raises(InputError, match="has 300 tokens, file words"):
        tokens_of(describe(place), text)
    coder = tokenizers.Tokenizer(tokenizers.models.BPE())
    coder.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    coder.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=alphabet, show_progress=False
    )
    coder.train_from_iterator([bytes(text.train).decode()], trainer)
    coder.save(str(place / "tokenizer.json"))
    read = tokens_of(describe(place), text)
    for change in (
        lambda c: c.enable_truncation(max_length=7),
        lambda c: c.enable_padding(length=40_000, pad_id=3),
        lambda c: c.enable_padding(pad_to_multiple_of=64, direction="left"),
    ):  # as a tokenizer keeps what it was trained with
        change(coder)
        coder.save(str(place / "tokenizer.json"))
        again = tokens_of(describe(place), text)
        assert np.array_equal(again.train, read.train)
        assert np.array_equal(again.held_out, read.held_out)
    assert coder.decode(read.held_out.tolist()) == bytes(text.held_out).decode()
    assert read.vocabulary == 300 and read.bytes_a_token > 1.5
    (place / "config.json").write_text(json.dumps(settings | {"vocab_size": 270}))
    with pytest.raises(InputError, match="the model has 270"):
        tokens_of(describe(place), text)


def _config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def _without(folder, tensor):
    weights = load_file(folder / "model.safetensors")
    del weights[next(k for k in weights if k.endswith(tensor))]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


BROKEN = {
    "no_config": (lambda f: (f / "config.json").unlink(), "has no config.json"),
    "no_type": (lambda f: (f / "config.json").write_text("[1]"), "config.json is no table of keys"),
    "no_json": (lambda f: (f / "config.json").write_text("{"), "is not valid JSON"),
    "unknown": (
        lambda f: f.joinpath("config.json").write_text('{"model_type": "custom", "n_layer": 2}'),
        "config.json has no num_attention_heads",
    ),
    "own_code": (
        lambda f: _config(
            f,
            model_type="custom",
            num_hidden_layers=2,
            num_attention_heads=6,
            auto_map={"AutoModelForCausalLM": "x.Y"},
        ),
        "is no architecture of the library, it can only be audited",
    ),
    "invalid": (lambda f: _config(f, n_head=7), "n_head 7, which does not divide hidden_size 48"),
    "pickled": (
        lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"),
        "has pickled weights \\(pytorch_model.bin\\), which may run code",
    ),
    "no_weights": (lambda f: (f / "model.safetensors").unlink(), "has no weights"),
    "truncated": (
        lambda f: (f / "model.safetensors").write_bytes(b"\x10" * 64),
        "model.safetensors is no whole safetensors file",
    ),
    "missing": (
        lambda f: _without(f, "h.1.self_attention.dense.weight"),
        "lacks tensor 'transformer.h.1.self_attention.dense.weight'",
    ),
    "misshapen": (
        lambda f: _config(f, vocab_size=255),
        "has misshapen tensor .*of shape \\[256, 48\\]",
    ),
    "missing_shard": (
        lambda f: (f / "model.safetensors.index.json").write_text(
            json.dumps({"weight_map": {"a": "model-00002-of-00002.safetensors"}})
        ),
        "lacks the file 'model-00002-of-00002.safetensors'",
    ),
}


@pytest.mark.parametrize("how", BROKEN)
def test_one_line_for_a_bad_folder(how, outside_models, tmp_path, numbers):
    place = tmp_path / "model"
    shutil.copytree(outside_models.folder("bloom"), place)
    spoil, message = BROKEN[how]
    spoil(place)
    with pytest.raises(InputError, match=message) as caught:
        empirical_receptive_field(place, numbers, length=20, segments=1)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_other_bad_input(outside_models, numbers, monkeypatch, tmp_path):
    bloom = outside_models.folder("bloom")
    for call, message in (
        (lambda: empirical_receptive_field(tmp_path / "none", numbers), "does not exist"),
        (lambda: empirical_receptive_field(3, numbers), "accepted are a folder and a loaded"),
        (lambda: empirical_receptive_field(bloom, numbers[:20], length=20), "takes 21"),
        (lambda: empirical_receptive_field(bloom, numbers.astype(int) + 9), "outside 0 to 255"),
        (lambda: empirical_receptive_field(bloom, numbers, kind="both"), "gradient, attention"),
        (lambda: empirical_receptive_field(bloom, numbers, q=1), r"in \(0, 1\)"),
        (lambda: empirical_receptive_field(bloom, numbers, length=0), "whole number from 1"),
    ):
        with pytest.raises(InputError, match=message):
            call()
    monkeypatch.setattr(loading, "available", lambda: 100_000)
    with pytest.raises(InputError, match=r"takes about \d+ MiB in float32 .* 0 MiB are free"):
        load(describe(bloom))


def test_code_of_the_folder_is_not_run(outside_models, tmp_path, numbers):
    place = tmp_path / "model"
    shutil.copytree(outside_models.folder("falcon"), place)
    (place / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    _config(place, auto_map={"AutoConfig": "own.C", "AutoModelForCausalLM": "own.M"})
    assert empirical_receptive_field(place, numbers, length=20, segments=1).tokens >= 1
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("kind", ["mamba", "gemma3n_text", "diffllama", "xglm"])
def test_perplexity_and_gradients_refuse_nobody(kind, numbers, tmp_path):
    """A model whose positions are not known here is run as the library runs it."""
    from library import settings

    small = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16, "vocab_size": 256}
    more = {"xglm": {"num_layers": 2, "d_model": 16, "attention_heads": 2, "ffn_dim": 16}}
    given = small | {"intermediate_size": 16} | more.get(kind, {}) if kind != "mamba" else {}
    config = settings(kind, **given, **({"vocab_size": 256} if kind == "mamba" else {}))
    made = AutoModelForCausalLM.from_config(config).float().eval()
    made.save_pretrained(tmp_path / "m")
    (found,) = model_perplexity(tmp_path / "m", [20], text=words(numbers), samples=2).lengths
    assert 1 < found.perplexity < 1e6
    gradient = empirical_receptive_field(tmp_path / "m", numbers, length=20, segments=1)
    assert 1 <= gradient.tokens <= 20
    with pytest.raises(InputError, match="is run as the library runs it; accepted: its perplexity"):
        empirical_receptive_field(
            tmp_path / "m", numbers, length=20, segments=1, visible=Visibility(window=4)
        )


def words(numbers):
    return Corpus("numbers", numbers[:2000], numbers[2000:], 1, "", 256, 1.0)


MEASURED = {
    "gradient": lambda m, t: empirical_receptive_field(m, t, length=20, segments=1),
    "attention": lambda m, t: empirical_receptive_field(
        m, t, kind="attention", length=20, segments=1
    ),
    "perplexity": lambda m, t: model_perplexity(m, [20], text=t, samples=3),
    "window": lambda m, t: model_window(m, "1/10", text=t, length=20, segments=1),
}


@pytest.mark.parametrize("seed", range(4))
def test_weights_that_are_not_finite(seed, outside_models, tmp_path, numbers):
    """A nan or an infinity in any weight of any model: every measurement names the tensor."""
    draw = random.Random(seed)
    kind = draw.choice(["bloom", "gpt2", "llama", "gpt_oss", "mpt"])
    made = outside_models.network(kind)
    name, weight = draw.choice(list(made.named_parameters()))
    with torch.no_grad():
        weight.view(-1)[draw.randrange(weight.numel())] = draw.choice([math.nan, math.inf])
    made.save_pretrained(tmp_path / "bad")
    biased = any(a.biased for a in describe(tmp_path / "bad").attention)
    for asked, measure in MEASURED.items():
        if asked != "window" or biased:
            with pytest.raises(InputError, match=f"tensor '{re.escape(name)}' has numbers") as said:
                measure(tmp_path / "bad", words(numbers))
            assert "\n" not in str(said.value)


def test_activations_that_are_not_finite(outside_models, tmp_path, numbers):
    made = outside_models.network("bloom")
    with torch.no_grad():
        made.transformer.h[0].mlp.dense_4h_to_h.weight.fill_(3e38)
    made.save_pretrained(tmp_path / "large")
    for measure in MEASURED.values():
        with pytest.raises(InputError, match="not finite"):
            measure(tmp_path / "large", words(numbers))


@pytest.mark.parametrize("kind", ["gradient", "attention"])
def test_progress(kind, outside_models, numbers):
    seen = []
    empirical_receptive_field(
        outside_models.folder("bloom"),
        numbers,
        kind=kind,
        length=20,
        segments=3,
        progress=lambda *step: seen.append(step),
    )
    assert seen[-1] == ("segments", 3, 3)


def test_the_verb(capsys, outside_models, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("one word after another, " * 400)

    def call(*args):
        with pytest.raises(SystemExit) as stop:
            main(["erf", *args])
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    given = ("--model", str(outside_models.folder("llama")), "--text", str(words), "--length", "40")
    code, out, _ = call(*given, "--segments", "2", "--kind", "attention")
    assert code == 0 and str(tmp_path) not in out
    window = json.loads(call(*given, "--segments", "1", "--window", "6", "--json")[1])
    assert window["tokens"] <= 2 * (6 - 1) + 1
    code, out, _ = call(*given, "--segments", "2", "--json")
    found = json.loads(out)
    assert (
        found["kind"] == "EmpiricalReceptiveField"
        and found["method"] == "gradient"
        and found["training_length"] == 2048
    )
    assert found["mass_in_training_length"] is None  # longer than the segments
    for args in ((), ("abc", *given), ("abc", "--runs", str(tmp_path))):
        code, _, err = call(*args)
        assert code == 2 and len(err.splitlines()) == 1


def test_other_corpora_are_read_as_bytes(outside_models):
    assert tokens_of(describe(outside_models.folder("bloom")), corpus()).vocabulary == 256
