"""The audit of models from outside, against the library's own biases."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
import torch

from farfield.cli import main
from farfield.figures.pages.audit import audit_page, write_audit
from farfield.numerics.windows.window import certified_window
from farfield.theory.answers.answer import Code, InputError, Label, Status
from farfield.theory.convergence import Verdict
from farfield.theory.encodings import encoding
from farfield.validation.checkpoints.audit import audit
from farfield.validation.checkpoints.configured import Temper
from farfield.validation.checkpoints.folder import describe
from farfield.validation.checkpoints.head_audit import upwards
from farfield.validation.checkpoints.layer_audit import longest_row
from farfield.validation.checkpoints.loading import load
from farfield.validation.checkpoints.norms import weight_bounds
from farfield.validation.harness.attention import fused
from farfield.validation.harness.configuration import Configuration
from farfield.validation.harness.experiment import train_and_measure, trained_model
from farfield.validation.harness.store import Store

N = np.arange(400)


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    """Decoders with a table for all layers, and with a table in each."""
    import transformers as hf

    root = tmp_path_factory.mktemp("tables")
    shape = {
        "vocab_size": 64,
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 32,
        "num_layers": 1,
        "num_decoder_layers": 2,
        "num_heads": 3,
    }
    models = {
        "t5": hf.T5ForConditionalGeneration(hf.T5Config(**shape)),
        "umt5": hf.UMT5ForConditionalGeneration(
            hf.UMT5Config(
                **shape, relative_attention_num_buckets=8, relative_attention_max_distance=20
            )
        ),
    }
    for name, model in models.items():
        model.save_pretrained(root / name)
    return root, models


@pytest.mark.parametrize("heads", [1, 6, 16, 71])
def test_slopes_are_those_of_the_library(heads, tmp_path):
    import transformers as hf
    from transformers.models.bloom.modeling_bloom import _get_alibi_slopes
    from transformers.models.falcon.modeling_falcon import build_alibi_tensor
    from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor

    def of(config):
        config.save_pretrained(tmp_path)
        return describe(tmp_path).encodings[0].bias(N)

    found = of(hf.BloomConfig(n_head=heads, hidden_size=8 * heads))
    slopes = _get_alibi_slopes(heads, "cpu").double().numpy()
    np.testing.assert_allclose(found, -slopes[:, None] * N, rtol=1e-5)
    for most in (8, 16):
        found = of(
            hf.MptConfig(n_heads=heads, d_model=8 * heads, attn_config={"alibi_bias_max": most})
        )
        theirs = build_mpt_alibi_tensor(heads, len(N), most)[:, 0].double().numpy()
        np.testing.assert_allclose(found, theirs[:, ::-1], rtol=1e-5)
    found = of(hf.FalconConfig(num_attention_heads=heads, hidden_size=16 * heads, alibi=True))
    theirs = build_alibi_tensor(torch.ones(1, len(N), dtype=torch.long), heads, torch.float32)
    np.testing.assert_allclose(
        found, -theirs[:, 0].double().numpy() / 4, rtol=3 * 2**-8
    )  # three roundings to bfloat16


def test_what_the_library_does_besides(outside_models, tmp_path):
    """What the notes of an audit say of the library itself."""
    from transformers import AutoModelForCausalLM
    from transformers.models.falcon.modeling_falcon import build_alibi_tensor

    steps = build_alibi_tensor(torch.ones(1, 400, dtype=torch.long), 4, torch.float32).diff()
    assert (steps[..., :256] == steps[..., :1]).all() and (steps[..., 256:] != steps[..., :1]).any()
    assert "bfloat16" in describe(outside_models.folder("falcon")).note
    falcon, x = load(describe(outside_models.folder("falcon"))), torch.arange(40)[None]
    eager = AutoModelForCausalLM.from_pretrained(
        outside_models.folder("falcon"), attn_implementation="eager"
    ).eval()
    once = falcon.bias_table
    falcon.bias_table = lambda length: 2 * once(length)
    with torch.no_grad():
        twice = falcon.logits(falcon.hidden(falcon.embed(x)))
        torch.testing.assert_close(twice, eager(x).logits, rtol=1e-4, atol=1e-4)
    assert "adds the bias twice" in describe(outside_models.folder("falcon")).note
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor as of_bloom

    rounded = of_bloom(torch.ones(1, 400, dtype=torch.long), 4, torch.bfloat16).double().diff()
    assert (rounded[..., 256:] != rounded[..., :1]).any()
    assert "16 bits" in describe(outside_models.folder("bloom")).note
    network = outside_models.network("mpt")
    x = torch.arange(50)[None]
    with torch.no_grad():
        before = network(x).logits
        network.config.attn_config.alibi_bias_max = 16
        assert (network(x).logits == before).all()
    network.save_pretrained(tmp_path)
    folder = describe(tmp_path)
    assert "alibi_bias_max is 16" in folder.note and str(folder.encodings[0].head(1)) == "-n/16"


@pytest.mark.parametrize("name", ["t5", "umt5"])
def test_tables_are_those_of_the_library(name, t5):
    root, models = t5
    folder = describe(root / name)
    layers = models[name].decoder.block
    assert len(folder.encodings) == (1 if name == "t5" else 2)
    for k, given in enumerate(folder.encodings):
        attention = layers[k].layer[0].SelfAttention
        theirs = attention.compute_bias(len(N), len(N))[0, :, -1].detach().double().numpy()
        np.testing.assert_array_equal(given.bias(N), theirs[:, ::-1])


def test_the_numbers_are_those_of_the_theory(outside_models, speaks):
    found = audit(outside_models.folder("mpt"), logit_bound=3, value_bound=2, error="1/100")
    assert [h.bias for h in found.heads] == ["-n/4", "-n/16", "-n/64", "-n/256", "-n/2", "-n/8"]
    assert all(h.layers == (1, 2) and h.verdict is Verdict.CONVERGES for h in found.heads)
    widest, steep = found.heads[3], found.heads[4]
    assert [f.tokens for f in widest.receptive_fields] == [590, 1179, 1769]
    assert steep.horizons == (35, 186, 208) and widest.horizons == (4437, 23778, 26617)
    assert found.trained == 64 and found.lengths == (128, 256, 1024)
    b = np.exp(-N / 256)
    assert widest.leaks[0] == pytest.approx(1 - b[:64].sum() / b[:128].sum())
    assert widest.window == certified_window("-n/256", "1/100", 3, 2).width
    assert found.sliding_window == int(found) == widest.window
    assert found.label is Label.CERTIFIED
    given = "if its logits stay within 3 and its values within 2."
    assert speaks(found).endswith(
        f"sliding_window = {int(found)} keeps the output of every head within 1/100, {given}"
    )
    assert json.loads(found.to_json())["heads"][4]["horizons"] == [35, 186, 208]


def test_no_certificate_rests_on_bounds_that_nobody_measured(outside_models, speaks):
    place = outside_models.folder("bloom")
    for given in ({}, {"logit_bound": 1}, {"value_bound": 1}):
        found = audit(place, **given)
        assert found.label is Label.APPROXIMATE and found.assumed
        assert "if its logits stay within 1 and its values within 1, which nobody" in speaks(found)
    found = audit(place, logit_bound=1, value_bound=1)
    assert found.label is Label.CERTIFIED and "nobody" not in speaks(found)
    proved = audit(place, bounds="weights")
    assert proved.label is Label.CERTIFIED and "for every text, by the norms" in speaks(proved)


def test_windows_by_the_weights(outside_models):
    place = outside_models.folder("bloom")
    found = audit(place, bounds="weights")
    folder = describe(place)
    proved = weight_bounds(folder)
    assert len(found.heads) == 12 and {h.layers for h in found.heads} == {(1,), (2,)}
    for h in found.heads:
        bound = proved[h.layers[0] - 1][h.head - 1]
        bias = folder.encodings[0].head(h.head)
        expected = certified_window(bias, "1/1000", upwards(bound.logit), upwards(bound.value))
        assert (h.window, h.logit_bound) == (expected.width, bound.logit)


def test_tables_have_no_window(t5, speaks):
    root, _ = t5
    one, each = (audit(root / name, trained=64, lengths=(128,)) for name in ("t5", "umt5"))
    assert [h.layers for h in one.heads] == [(1, 2)] * 3
    assert [h.layers for h in each.heads] == [(1,)] * 3 + [(2,)] * 3
    for h, row in zip(one.heads, describe(root / "t5").encodings[0].bias(N), strict=True):
        assert h.verdict is Verdict.DIVERGES and h.reason.code is Code.DIVERGES
        assert h.window == math.inf and h.horizons == (math.inf,) * 3
        assert [f.tokens for f in h.receptive_fields] == [math.inf] * 3
        b = np.exp(row[:128])
        assert h.leaks[0] == pytest.approx(1 - b[:64].sum() / b.sum())
        tails = b[::-1].cumsum()[::-1]
        assert h.row_fields[0].tokens == int((tails >= 0.1 * b.sum()).sum())
    assert one.sliding_window == math.inf and one.status is Status.INFINITE and speaks(one)


def test_rotations_are_decided(outside_models, speaks):
    """Partial rotation: half of 8 dimensions."""
    found = audit(outside_models.folder("gpt_neox"), trained=64)
    assert found.heads == () and found.status is Status.INFINITE
    assert "every layer sees every key, and no window is safe" in speaks(found)
    assert found.reason.code is Code.BOUNDED_LOGITS and found.label is Label.THEOREM
    assert found.note.startswith("4 of 8")


def test_each_layer_is_decided(outside_models, speaks):
    """Sliding layers by their support, full ones by their bounded logits."""
    found = audit(outside_models.folder("mistral"), trained=64, lengths=(100,))
    assert (
        found.sliding_window == 9
        and found.status is Status.EXACT
        and "set sliding_window = 9." in speaks(found)
    )
    (layer,) = found.layers_alike
    assert layer.windowable.value is True and layer.windowable.theorem == "window-support"
    assert found.reach == (9, 17) and [c.keys for c in found.caches] == [18, 18]
    assert found.caches[1].bytes == 2 * 2 * 2 * 6 * 18  # keys, values; 2 heads of 6; 16 bits
    found = audit(outside_models.folder("gemma3_text"), trained=64, error="1/10")
    sliding, full = found.layers_alike
    assert (sliding.layers, full.layers) == ((1, 2, 4), (3,))
    assert full.windowable.value is False and full.windowable.theorem == "bounded-logits"
    assert found.reach == (9, 17, math.inf, math.inf) and found.sliding_window == math.inf
    assert "layers: 3 local (9 keys), 1 that see every key" in speaks(found)
    assert (sliding.cached, full.cached) == (9, 64)
    assert found.caches[-1].keys == 3 * 9 + found.lengths[-1]
    written = json.loads(found.to_json())
    assert written["sliding_window"] is None and written["layers_alike"][1]["keys"] is None
    biased = audit(outside_models.folder("bloom"), trained=64)
    assert biased.layers_alike[0].windowable.theorem == "equivalence"


def configured(place, kind, **values):
    place.mkdir(exist_ok=True)
    (place / "config.json").write_text(json.dumps({"model_type": kind, **values}))
    return audit(place)


def test_a_hybrid_in_one_screen(tmp_path, speaks):
    """What is local, what is free, how far each reaches, what the cache takes: Llama 4 and SmolLM3
    at the sizes of their releases."""
    text = {"max_position_embeddings": 1 << 20}
    found = configured(tmp_path / "llama4", "llama4", text_config=text)
    local, free = found.layers_alike
    assert (len(local.layers), local.keys, local.chunked, local.cached) == (36, 8192, True, 8192)
    assert (len(free.layers), free.keys, free.cached) == (12, None, 1 << 20)
    assert local.windowable.value is True and free.windowable.value is False
    assert found.reach[:4] == (8192, 8192, 8192, math.inf)
    times = 1 + 0.1 * math.log1p((1 << 20) // 8192)
    even = math.log((1 << 20) - 1) / math.log(8191)
    assert free.growth == pytest.approx((times, even, 8192)) and free.logit_bound is None
    keys = 36 * 8192 + 12 * (1 << 20)
    assert (found.caches[0].keys, found.caches[0].bytes) == (keys, keys * 2 * 8 * 128 * 2)
    said = speaks(found)
    assert "layers: 36 local (8192 keys), 12 that see every key" in said
    said = " ".join(found.text().split())
    assert "Cache in 16 bits: 49.1 GiB at 1048576 tokens" in said
    assert "25.0% of full attention" in said
    assert len(found.text(width=80).splitlines()) <= 28
    assert "keeps the keys of the chunk, at most 8192, in all but every 4th layer from 4" in said
    assert f"takes an advantage of {math.log((1 << 20) - 1):.4g} nats" in said
    found = configured(tmp_path / "smollm3", "smollm3", max_position_embeddings=65_536)
    assert "27 rope, 9 nope; every layer sees every key" in speaks(found)
    assert [len(k.layers) for k in found.layers_alike] == [27, 9]
    assert {k.windowable.theorem for k in found.layers_alike} == {"bounded-logits", "equivalence"}
    assert len(found.text(width=80).splitlines()) <= 24
    values = {"use_sliding_window": True, "sliding_window": 512}
    slides = configured(tmp_path / "smollm3", "smollm3", **values).layers_alike[1]
    assert (slides.keys, slides.layers[:2]) == (512, (4, 8)) and not slides.chunked


@pytest.mark.parametrize(
    ("bound", "temper"),
    [(0.3, (0.1, 8192, 1)), (1.5, (0.3, 7, 1)), (2, None), (1.2, (0.1, 40, 0))],
)
def test_the_longest_row_in_which_bounded_logits_can_single_out_a_key(bound, temper):
    """Against every position, one after the other."""
    temper = None if temper is None else Temper(*temper)
    times = [1 if temper is None else temper.at(i) for i in range(300_000)]
    can = [i + 1 for i, t in enumerate(times) if i < 2 or math.log(i) <= 2 * bound * t]
    assert longest_row(bound, temper) == can[-1] < 300_000


def test_a_text_answers_what_a_configuration_cannot(outside_models, text, speaks):
    """A bias: windows for the logits of that text. A rotation has none."""
    found = audit(outside_models.folder("bloom"), trained=64, text=text, error="1/10")
    assert "the most on this text" in " ".join(found.text().split())
    assert found.measured.segments and found.measured.source == "text"
    with pytest.raises(InputError, match="has none; accepted: no text"):
        audit(outside_models.folder("llama"), text=text)


def test_an_audit_of_a_configuration_imports_no_sums(tmp_path):
    """What a model without a bias does not need is not loaded: an audit is quick."""
    code = "import sys; from farfield.validation.checkpoints.audit import audit\n"
    for kind in ("deepseek_v3", "llama4", "smollm3"):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "config.json").write_text(json.dumps({"model_type": kind}))
        code += f"audit({str(tmp_path / kind)!r})\n"
    code += "print(*sys.modules)"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = made.stdout.split()
    assert "farfield.validation.checkpoints.layer_audit" in loaded
    assert not {"torch", "transformers", "farfield.numerics.leak"} & {*loaded}


def test_what_a_layer_or_head_reaches_rests_on_bounds_that_are_known(tmp_path):
    configured(tmp_path / "free", "smollm3", max_position_embeddings=65_536)
    found = audit(tmp_path / "free", logit_bound=4)
    assert {k.longest for k in found.layers_alike} == {2981.0}
    assert "no head puts half of its attention on one key once it sees more than 2981 keys" in (
        " ".join(found.text().split())
    )
    assert {k.longest for k in audit(tmp_path / "free").layers_alike} == {None}


def test_chunks_and_windows_through_depth():
    from farfield.validation.checkpoints.configured import Attention
    from farfield.validation.checkpoints.layer_audit import reach

    rope = encoding("rope")
    chunk, window = Attention(rope, chunk=8), Attention(rope, window=5)
    assert reach([chunk, chunk, window, chunk]) == (8, 8, 12, 19)
    assert reach([window, chunk, Attention(None)]) == (5, 12, math.inf)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("bert", "every token sees those after it too"),
        ("modernbert", "every token sees those after it too"),
        ("mamba", "each layer has a state of fixed size in place of attention"),
        ("falcon_mamba", "each layer has a state"),
    ],
)
def test_no_claim_without_causal_positions(kind, why, tmp_path, speaks):
    found = configured(tmp_path / kind, kind)
    assert (found.status, found.label, found.sliding_window) == (Status.OUT_OF_SCOPE, None, None)
    assert f"no positional claim is made: {why}" in speaks(found)


def test_a_family_that_is_not_known_is_read_and_never_certified(tmp_path, speaks, capsys):
    values = {
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "hidden_size": 64,
        "vocab_size": 99,
        "max_position_embeddings": 4096,
        "rope_theta": 1e4,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "sliding_window": 64,
    }
    for shape in (values, {"text_config": values}):
        found = configured(tmp_path / "new", "new", **shape)
        assert (found.status, found.label, found.sliding_window) == (Status.UNKNOWN, None, None)
        assert "read from config.json, not checked against the library" in speaks(found)
        assert [k.keys for k in found.layers_alike] == [64, None]
        assert all(k.windowable.label is None for k in found.layers_alike)
        assert "[theorem]" not in found.text() and "[certified]" not in found.text()
        assert found.caches[0].keys == 2 * 64 + 2 * 4096
    bare = {k: v for k, v in values.items() if k != "rope_theta"}
    found = configured(tmp_path / "new", "new", **bare)
    assert found.status is Status.OUT_OF_SCOPE and "names no positions" in speaks(found)


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("llama", "sliding_window", 4096),
        ("llama", "layer_types", ["chunked_attention"] * 32),
        ("mistral", "layer_types", ["full_attention"] * 32),
        ("qwen3_moe", "attn_logit_softcapping", 50.0),
        ("gemma3_text", "attn_logit_softcapping", 50.0),
        ("olmo", "alibi", True),
    ],
)
def test_keys_that_the_library_does_not_read_are_named(kind, key, value, tmp_path):
    found = configured(tmp_path / kind, kind, **{key: value})
    assert f"{key} is left out of account, as the library does" in found.note
    assert all(k.keys in (None, 4096) and not k.chunked for k in found.layers_alike)


def test_logits_that_a_configuration_or_the_weights_bound(outside_models):
    capped = audit(outside_models.folder("gemma2"), trained=64).layers_alike[1]
    assert (capped.logit_bound, capped.bound_from) == (2.0, "the soft cap")
    assert "soft cap" in capped.windowable.hypotheses[0]
    sinks = audit(outside_models.folder("gpt_oss"), trained=160).layers_alike[1]
    assert sinks.sink and "changes no limit" in sinks.windowable.hypotheses[-1]
    for name, norms in (("qwen3", "_norm"), ("gemma3_text", "_norm"), ("phi", "_layernorm")):
        folder = describe(outside_models.folder(name))
        found = audit(folder, trained=64, bounds="weights").layers_alike
        bounded = [k for k in found if k.logit_bound is not None]
        assert all(k.bound_from == "the gains of queries and keys" for k in bounded)
        model, largest = load(folder), {}

        def path(query, key, value, bias, visible, seen=largest):
            size = query.shape[-1]
            seen[len(seen) + 1] = float((query @ key.mT).abs().max() / math.sqrt(size))
            return fused(query, key, value, bias, visible)

        x = torch.randint(0, 256, (1, 60), generator=torch.Generator().manual_seed(3))
        model.hidden(model.embed(x), path=path)
        for k in bounded:
            assert all(0.05 * k.logit_bound < largest[n] <= k.logit_bound for n in k.layers)
        module = getattr(model.blocks[bounded[0].layers[0] - 1].self_attn, "q" + norms)
        assert module.weight.numel() == folder.shape.head_size


def test_learned_biases_of_a_run(text, small, tmp_path):
    settings = Configuration(encoding("kerple_log"), text, small)
    place = tmp_path / train_and_measure(settings, Store(tmp_path))["key"]
    found = audit(place)
    learned = trained_model(settings, Store(tmp_path)).learned_values()
    assert len(found.heads) == 4 and found.trained == 12
    for h, r1, r2 in zip(found.heads, learned["r1"], learned["r2"], strict=True):
        assert h.verdict is (Verdict.CONVERGES if r1 > 1 else Verdict.DIVERGES)
        b = np.exp(-r1 * np.log1p(r2 * np.arange(24)))
        assert h.leaks[0] == pytest.approx(1 - b[:12].sum() / b.sum(), rel=1e-6)


def test_the_page(outside_models, t5, tmp_path):
    root, _ = t5
    for place in (outside_models.folder("bloom"), outside_models.folder("llama"), root / "t5"):
        found = audit(place, trained=64)
        page = audit_page(found)
        assert "http" not in page.replace("http://www.w3.org", "") and "<script src" not in page
        assert page.count("<table") == page.count("</table>") >= 1
        assert str(root) not in page and str(outside_models.root) not in page
        assert ("<svg" in page) == (found.status is Status.EXACT)
    written = write_audit(found, tmp_path / "out")
    assert written.read_text() == page
    assert json.loads((tmp_path / "out" / "audit.json").read_text())["kind"] == "Audit"


def test_the_verb_and_bad_input(capsys, outside_models, t5, tmp_path):
    root, _ = t5
    out = str(tmp_path / "out")

    def call(*args):
        with pytest.raises(SystemExit) as stop:
            main(["audit", *map(str, args), "--out", out])
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    bloom = outside_models.folder("bloom")
    gpt2 = outside_models.folder("gpt2")
    capsys.readouterr()  # the library's progress bars
    code, said, _ = call(bloom, "--eps", "1/10", "--length", "4096", "--trained", "1024")
    assert code == 0 and said.splitlines()[-1] == f"page: {out}/index.html"
    assert json.loads(call(bloom, "--json")[1])["trained_from"].startswith("assumed")
    (root / "t5" / "model.safetensors").rename(root / "t5" / "kept")
    bare = tmp_path / "bare"  # a configuration alone, where bounds need weights, with own code
    bare.mkdir()
    values = json.loads((outside_models.folder("qwen3") / "config.json").read_text())
    values["auto_map"] = {"AutoModel": "own.M"}
    (bare / "config.json").write_text(json.dumps(values))
    (bare / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    code, said, _ = call(bare)
    assert code == 0 and "code of the folder (auto_map) is not run" in " ".join(said.split())
    assert not (tmp_path / "ran").exists()
    for args, message in (
        ((tmp_path / "none",), "does not exist"),
        ((root / "t5",), "has no weights"),
        ((bare, "--bounds", "weights"), "has no weights"),
        ((bloom, "--length", "5", "--trained", "6"), "accepted are lengths from 6"),
        ((bloom, "--eps", "2"), "in (0, 1)"),
        ((bloom, "--bounds", "text"), "accepted: given, weights"),
        ((bloom, "--trained", "x"), "trained"),
        ((bloom, "--error", "0"), "error 0 is out of range; accepted: a positive number"),
        (
            (bloom, "--logit-bound", "1001"),
            "logit_bound 1001 is out of range; accepted: a number in [0, 1000]",
        ),
        ((gpt2, "--length", "91"), "up to 90, where the rows of 'gpt2' e"),
    ):
        code, _, err = call(*args)
        assert code == 2 and message in err and len(err.splitlines()) == 1
    (root / "t5" / "kept").rename(root / "t5" / "model.safetensors")
    with pytest.raises(InputError, match="can only be audited"):
        load(describe(root / "t5"))
