"""Models that are opened: windows, first keys and protocols, each beside a loop of its own."""

import json
import math
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn.functional import cross_entropy

from farfield.numerics.masks import CAUSAL, Mask
from farfield.validation.far_field.foresee import foresee
from farfield.validation.harness.data import Text
from farfield.validation.models.empirical import empirical_receptive_field
from farfield.validation.models.folder import describe
from farfield.validation.models.network import scores_at
from farfield.validation.models.opened import open_model
from farfield.validation.models.perplexities import model_perplexity
from farfield.validation.models.repairs import Repair, Repaired
from farfield.validation.models.text import text_of

LENGTH = 30
TURNED = ("llama", "mistral", "qwen2", "qwen3", "gpt_neox", "gemma2", "gemma3_text", "phi")
NARROWED = (*TURNED, "gpt2", "opt", "gptj", "gpt_oss", "bloom", "mpt", "falcon", "falcon_rotary")


@pytest.fixture(scope="module")
def row():
    return torch.randint(3, 256, (1, LENGTH), generator=torch.Generator().manual_seed(1))


@pytest.fixture
def opened(name, outside_models):
    """The model that a test names."""
    return open_model(describe(outside_models.folder(name)))


@pytest.fixture(scope="module")
def tokens(numbers):
    return Text("numbers", numbers[:2000], numbers[2000:])


def scores(opened, row, view=CAUSAL, last=0):
    with torch.no_grad():
        return opened.hidden(opened.embed(row), view, last=last)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NARROWED)
def test_a_window_is_a_row_without_the_keys_before_it(opened, row):
    """In one layer, a window of w keys gives the last token what the last w tokens give it, at
    their positions; and windows wider than the row are none."""
    whole = scores(opened, row)
    assert torch.equal(scores(opened, row, Mask(LENGTH)), whole)
    with torch.no_grad():
        assert torch.allclose(opened.network(row).logits, whole, atol=1e-4)
    narrow = scores(opened, row, Mask(4))
    assert not torch.allclose(narrow[:, 12:], whole[:, 12:], atol=1e-3)
    torch.testing.assert_close(narrow[:, :4], whole[:, :4])
    changed = row.clone()
    reach = 1 + len(opened.model.layers) * 3
    changed[0, : LENGTH - reach] = 7
    torch.testing.assert_close(scores(opened, changed, Mask(4), 1), narrow[:, -1:])
    kept = scores(opened, row, Mask(4, sinks=2))
    assert not torch.allclose(kept, narrow, atol=1e-3) or all(
        layer.width for layer in opened.model.layers
    )


def test_layers_that_heed_no_window_are_refused_each_time(refusal, outside_models, row):
    opened = open_model(describe(outside_models.folder("llama")))
    for module in opened.attentions.values():
        module._forward_pre_hooks.clear()
    for _ in range(2):
        refusal("attention", scores, opened, row, Mask(4))


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt_neox"])
def test_windows_and_first_keys_are_masks_that_the_library_is_given(opened, row):
    at = torch.arange(LENGTH)
    distance = at[:, None] - at
    seen = (distance >= 0) & ((distance < 5) | (at < 3))
    mask = torch.zeros(LENGTH, LENGTH).masked_fill(~seen, torch.finfo(torch.float32).min)
    with torch.no_grad():
        expected = opened.network(row, attention_mask=mask[None, None]).logits
    torch.testing.assert_close(scores(opened, row, Mask(5, sinks=3)), expected)


def in_the_cache(opened, row, window, sinks):
    """Scores under a window with first keys at positions of the cache."""
    network = Repaired(opened.apart, Repair(window=window, sinks=sinks, in_cache=True))
    return scores_at(network, row, torch.arange(LENGTH), LENGTH)


def test_positions_in_the_cache_are_those_of_a_row_of_what_it_holds(outside_models, row):
    """As StreamingLLM has it; in one layer, keys and values are those of their tokens alone."""
    network = outside_models.network("llama")
    del network.model.layers[1:]
    network.config.num_hidden_layers = 1
    opened = open_model(describe(network))
    held = [sorted({*range(min(3, t)), *range(max(0, t - 5), t + 1)}) for t in range(LENGTH)]
    with torch.no_grad():
        expected = torch.stack([network(row[:, kept]).logits[0, -1] for kept in held])
    in_cache = in_the_cache(opened, row, 6, 3)[0]
    torch.testing.assert_close(in_cache, expected, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(in_cache, scores(opened, row, Mask(6, sinks=3))[0], atol=1e-3)


@pytest.mark.parametrize("name", TURNED)
def test_positions_in_the_cache_change_only_what_lies_beyond_it(opened, row):
    text, cache = scores(opened, row, Mask(9, sinks=4)), in_the_cache(opened, row, 9, 4)
    torch.testing.assert_close(text[:, :13], cache[:, :13], rtol=1e-4, atol=1e-4)
    free = any(layer.width is None and layer.rotation for layer in opened.model.layers)
    assert torch.allclose(text, cache, rtol=1e-4, atol=1e-4) != free


# -- protocols ------------------------------------------------------------------------------------


def nats(network, window, at):
    """Sum of the nats of the tokens of a window from a place on, by the library."""
    with torch.no_grad():
        logits = network(torch.tensor(window.astype(np.int64))[None]).logits[0].double()
    target = torch.tensor(window[at:].astype(np.int64))
    return float(cross_entropy(logits[at - 1 : -1], target, reduction="sum"))


def by_hf(network, text, length):
    """The loop of the guide of transformers, labels and all."""
    stride, total, count, before = length // 2, 0.0, 0, 0
    ids = torch.tensor(text.astype(np.int64))[None]
    for begin in range(0, len(text), stride):
        end = min(begin + length, len(text))
        labels = ids[:, begin:end].clone()
        labels[:, : -(end - before)] = -100
        with torch.no_grad():
            loss = network(ids[:, begin:end], labels=labels).loss
        number = int((labels != -100).sum()) - 1
        total, count, before = total + float(loss) * number, count + number, end
        if end == len(text):
            break
    return math.exp(total / count)


def by_llama(network, text, length):
    total = count = 0.0
    for start in range(0, len(text) - length + 1, length):
        chunk = text[start : start + length].copy()
        chunk[0] = 1
        total += nats(network, chunk, length // 2 + 1)
        count += length - length // 2 - 1
    return math.exp(total / count)


def by_harness(network, text, length):
    total, done = nats(network, np.concatenate([[1], text[:length]]), 1), length
    while done < len(text):
        end = min(done + length, len(text))
        total += nats(network, text[end - length - 1 : end], length + 1 - (end - done))
        done = end
    return math.exp(total / len(text))


@pytest.mark.parametrize(
    ("protocol", "loop"), [("hf-stride", by_hf), ("llama.cpp", by_llama), ("lm-eval", by_harness)]
)
def test_protocols_are_those_of_the_tools(protocol, loop, outside_models, tokens):
    place = outside_models.folder("llama")
    network = open_model(describe(place)).network
    bos = "no" if protocol == "hf-stride" else "yes"
    text = tokens.held_out[: 10 * 40]
    if protocol == "llama.cpp":
        text = np.concatenate([[1], text])
    asked = {"text": tokens, "protocol": protocol, "samples": 10, "bos": bos}
    found = model_perplexity(place, [18, 40], **asked)
    for at in found.lengths:
        assert at.perplexity == pytest.approx(loop(network, text, at.length), rel=1e-5)
    assert found.protocol in str(found)


def test_our_protocols_are_loops_over_the_library(outside_models, tokens):
    place = outside_models.folder("llama")
    network = open_model(describe(place)).network
    starts = np.linspace(0, len(tokens.held_out) - 33, 6).astype(int)
    for protocol, last in (("last-token", True), ("non-overlapping", False)):
        for bos in ("no", "yes"):
            found = model_perplexity(
                place, [8, 32], text=tokens, protocol=protocol, samples=6, bos=bos
            )
            for at in found.lengths:
                total, count = 0.0, 0
                for start in starts:
                    row = tokens.held_out[start : start + 33].astype(np.int64)
                    cuts = [33 - at.length - 1] if last else range(0, 32, at.length)
                    for cut in cuts:
                        part = row[cut : cut + at.length + 1].copy()
                        part[0] = 1 if bos == "yes" else part[0]
                        total += nats(network, part, len(part) - 1 if last else 1)
                        count += 1 if last else at.length
                assert at.perplexity == pytest.approx(math.exp(total / count), rel=1e-5)
            assert ("the first token 1" in str(found).replace("\n", " ")) == (bos == "yes")


def test_windows_of_the_model_are_named(outside_models, tokens):
    asked = {"text": tokens, "samples": 4}
    found = model_perplexity(outside_models.folder("mistral"), [32], view=Mask(16), **asked)
    assert "windows of 9 keys hide" in str(found).replace("\n", " ")
    plain = model_perplexity(outside_models.folder("mistral"), [32], **asked)
    assert plain.ratio == found.ratio and "hide" not in str(plain)


# -- texts ----------------------------------------------------------------------------------------


@pytest.fixture
def worded(tmp_path, outside_models):
    """A folder with a tokenizer that was saved with truncation, padding and a first token."""
    tokenizers = pytest.importorskip("tokenizers")
    place = tmp_path / "worded"
    shutil.copytree(outside_models.folder("llama"), place)
    coder = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({"<s>": 0, "a": 1, "b": 2, "?": 3}, "?")
    )
    coder.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    coder.post_processor = tokenizers.processors.TemplateProcessing("<s> $A", None, [("<s>", 0)])
    coder.enable_truncation(max_length=20)
    coder.enable_padding(length=50)
    coder.save(str(place / "tokenizer.json"))
    file = tmp_path / "text.txt"
    file.write_text("a b " * 4000)
    return place, file


def test_a_text_is_read_whole_whatever_the_tokenizer_was_saved_with(worded):
    place, file = worded
    read = text_of(describe(place), file)
    assert len(read.train) + len(read.held_out) >= 7990 and set(read.train) == {1, 2}
    assert (read.bos, text_of(describe(place), file, "no").bos) == (0, None)


def test_texts_that_do_not_fit_are_refused(refusal, worded, outside_models, tokens):
    place, file = worded
    small = Text("few", tokens.train[:20], tokens.held_out[:20])
    refusal(
        "the text has 20 tokens, 66 are needed",
        model_perplexity,
        outside_models.folder("llama"),
        [32],
        text=small,
    )
    refusal("bos", text_of, describe(place), file, "perhaps")


# -- weights --------------------------------------------------------------------------------------


@pytest.fixture
def spoiled(tmp_path, outside_models):
    """Copies of a folder, each spoiled in one way."""

    def make(change, name="llama"):
        place = tmp_path / f"spoiled{len(list(tmp_path.iterdir()))}"
        shutil.copytree(outside_models.folder(name), place)
        change(place)
        return place

    return make


def weights_with(change):
    def spoil(place):
        file = place / "model.safetensors"
        save_file(change(load_file(file)), file, metadata={"format": "pt"})

    return spoil


def sharded(place):
    """Two shards with an index, and a stray file of other weights."""
    tensors = load_file(place / "model.safetensors")
    (place / "model.safetensors").unlink()
    names = sorted(tensors)
    table = {n: f"model-0000{1 + (k % 2)}-of-00002.safetensors" for k, n in enumerate(names)}
    for file in {*table.values()}:
        save_file(
            {n: tensors[n] for n in names if table[n] == file}, place / file, {"format": "pt"}
        )
    index = {"metadata": {}, "weight_map": table}
    (place / "model.safetensors.index.json").write_text(json.dumps(index))
    save_file({n: 0.1 * t for n, t in tensors.items()}, place / "zz_old.safetensors")


def configured(**more):
    def spoil(place):
        values = json.loads((place / "config.json").read_text())
        (place / "config.json").write_text(json.dumps(values | more))

    return spoil


NAN = float("nan")
SPOILED = {
    "nan": (
        weights_with(lambda t: {k: v * (NAN if "norm" in k else 1) for k, v in t.items()}),
        "NaN",
    ),
    "gone": (lambda p: (p / "model.safetensors").unlink(), "has no model.safetensors"),
    "cut": (
        lambda p: (p / "model.safetensors").write_bytes(
            (p / "model.safetensors").read_bytes()[:900]
        ),
        "damaged model.safetensors",
    ),
    "shape": (weights_with(lambda t: {k: v[:8] for k, v in t.items()}), "misshapen|stops"),
    "less": (weights_with(lambda t: dict(list(t.items())[3:])), "lacks tensor"),
    "lora": (weights_with(lambda t: {f"base_layer.{k}": v for k, v in t.items()}), "not merged"),
    "compiled": (weights_with(lambda t: {f"_orig_mod.{k}": v for k, v in t.items()}), "_orig_mod"),
    "awq": (weights_with(lambda t: {f"{k}.qweight": v for k, v in t.items()}), "quantised weights"),
    "adapter": (lambda p: (p / "adapter_config.json").write_text("{}"), "an adapter beside"),
    "fp8": (configured(quantization_config={"quant_method": "fp8"}), "quantised by 'fp8'"),
    "int4": (configured(quantization_config="int4"), "quantised by 'int4'"),
    "stray": (lambda p: (p / "model.safetensors").rename(p / "x.safetensors"), "no index names"),
    "type": (configured(model_type="bert"), "can only be audited"),
}


@pytest.mark.parametrize("how", SPOILED)
def test_weights_that_are_no_models_are_refused_by_name(refusal, how, spoiled, tokens):
    change, message = SPOILED[how]
    told = refusal(message, model_perplexity, spoiled(change), [8], text=tokens)
    assert "farfield window --model" not in told


def test_weights_that_are_missing_are_named_before_a_text_is_read(refusal, spoiled):
    refusal(SPOILED["gone"][1], foresee, spoiled(SPOILED["gone"][0]), "no such text.txt", to=64)


def test_only_the_files_that_the_index_names_are_read(refusal, spoiled, outside_models, tokens):
    plain = outside_models.folder("bloom")
    place = spoiled(sharded, "bloom")
    found = [model_perplexity(p, [16], text=tokens).lengths[0].perplexity for p in (plain, place)]
    assert found[0] == pytest.approx(found[1])
    next(place.glob("model-00001*")).unlink()
    refusal("has no model-00001-of-00002", model_perplexity, place, [16], text=tokens)


# -- bounds, fields -------------------------------------------------------------------------------


def test_the_gradient_of_a_window_is_that_of_the_window(outside_models, numbers):
    """The backward pass makes each layer again, under the same windows."""
    opened = open_model(describe(outside_models.folder("llama")))
    asked = {"length": 40, "segments": 2, "view": Mask(4)}
    assert empirical_receptive_field(opened, numbers, **asked).tokens <= 1 + 2 * 3


@pytest.mark.parametrize("name", ["bloom", "llama", "gemma2"])
def test_fields_are_those_of_a_loop(opened, numbers):
    """The gradient by the library alone; the attention by its weights."""
    found = empirical_receptive_field(opened, numbers, length=24, segments=2)
    starts = np.linspace(0, len(numbers) - 25, 2).astype(int)
    curves = []
    for start in starts:
        row = torch.from_numpy(numbers[start : start + 25].astype(np.int64))
        embedded = opened.network.get_input_embeddings()(row[None, :-1]).detach().requires_grad_()
        logits = opened.network(inputs_embeds=embedded, use_cache=False).logits[0, -1]
        (g,) = torch.autograd.grad(logits.log_softmax(-1)[row[-1]], embedded)
        norms = g[0].norm(dim=-1).flip(0).numpy()
        curves.append(norms / norms.sum())
    mean = np.mean(curves, 0).cumsum()
    assert dict(found.curve)[4] == pytest.approx(mean[3], rel=1e-4)
    assert found.tokens == int(np.searchsorted(mean, 0.99, side="right")) + 1


def test_a_change_of_the_bias_is_its_formula_in_the_layers_that_it_names():
    def bias(layer, i, j):
        n = (i[:, None] - j).float()
        return (-n / 4).masked_fill(n < 0, -math.inf)[None]

    network = SimpleNamespace(trained=64, longest=None, depth=2, bias=bias)
    grafted = Repair(graft=(3, 4), window=9, sinks=2, layers=(2,))
    cached = Repair(window=3, sinks=2, in_cache=True, layers=(2,))
    tail = {n: -n / 4 if n < 4 else -1 - 3 * math.log(n / 4) for n in range(12)}
    first = {(i, j): (j - min(i, 4)) / 4 for i in range(12) for j in range(2)}
    for repair, seen in (
        (grafted, lambda i, j: tail[i - j] if i - j < 9 or j < 2 else -math.inf),
        (cached, lambda i, j: first.get((i, j), (j - i) / 4 if i - j < 3 else -math.inf)),
    ):
        changed, at = Repaired(network, repair), torch.arange(12)
        wanted = [[seen(i, j) if j <= i else -math.inf for j in range(12)] for i in range(12)]
        assert torch.equal(changed.bias(0, at, at), bias(0, at, at))
        torch.testing.assert_close(changed.bias(1, at, at)[0], torch.tensor(wanted))
