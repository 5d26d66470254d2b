"""Every family against the library: its configuration class, its masks, its rotations, its forward
pass. The models are tiny and drawn by chance."""

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from farfield.validation.checkpoints.configured import families
from farfield.validation.checkpoints.folder import describe
from farfield.validation.checkpoints.loading import Chunked, OutsideModel, load
from farfield.validation.checkpoints.norms import weight_bounds
from farfield.validation.harness.attention import with_hook
from farfield.validation.harness.mechanism import CAUSAL

sys.path.insert(0, str(Path(__file__).parent))
from library import TINY, looked, network, settings, written

OWN_ATTENTION = ("gptj", "gpt_neo", "codegen")
PEOPLE_RUN = """
    mixtral cohere cohere2 llama4 smollm3 olmo olmo2 olmo3 phi3 deepseek_v3 granite gemma gemma3n
    granitemoehybrid stablelm starcoder2 gpt_neo glm glm4 exaone4 ministral nemotron minimax jamba
    mamba qwen3_moe qwen3_next recurrent_gemma bert modernbert codegen gpt_bigcode bloom falcon mpt
    gemma2 gemma3 gemma3_text gpt2 gpt_neox gpt_oss gptj llama mistral opt phi qwen2 qwen3 t5 mt5
    umt5
"""
LENGTH = 40
MASKED = [k for k in TINY if k not in ("gptj", "codegen", "gpt_neo", "mamba")]
NEVER = ("bert", "modernbert")
OUTPUTS = ("o_proj", "out_proj", "linear_out", "attn.c_proj", "attention.dense", "self_attn.dense")


def test_each_of_the_models_people_run_is_known():
    assert set(PEOPLE_RUN.split()) <= set(families()) and len(families()) >= 60


@pytest.mark.parametrize("kind", sorted(set(families()) - {"t5", "mt5", "umt5"}))
@pytest.mark.parametrize("tiny", [False, True], ids=["default", "tiny"])
def test_facts_are_those_of_the_configuration_class(kind, tiny, tmp_path):
    """From an empty file, and from what the library writes."""
    import transformers

    theirs = settings(kind) if tiny else transformers.CONFIG_MAPPING[kind]()
    place = written(tmp_path / "x", theirs)
    if not tiny:
        (place / "config.json").write_text(json.dumps({"model_type": kind}))
    found = describe(place)
    theirs = theirs.get_text_config()

    def of(name, usual=None):
        value = getattr(theirs, name, None)
        return usual if value is None else value

    shape, heads = found.shape, of("num_attention_heads", 1)
    assert (shape.layers, shape.heads, shape.width) == (
        theirs.num_hidden_layers,
        heads,
        theirs.hidden_size,
    )
    assert shape.vocabulary == theirs.vocab_size
    trained = {"bloom": "seq_length", "mpt": "max_seq_len"}.get(kind, "max_position_embeddings")
    assert found.trained == of(trained)
    if "deepseek" in kind:
        assert shape.head_size == theirs.qk_nope_head_dim + theirs.qk_rope_head_dim
        assert shape.cached == theirs.kv_lora_rank + theirs.qk_rope_head_dim
    elif "mamba" not in kind:
        assert shape.head_size == of("head_dim", theirs.hidden_size // heads)
        assert kind == "falcon" or shape.key_heads == of("num_key_value_heads", heads)
    if kind in NEVER:
        assert found.no_claim and not found.attention
        return
    kinds = of("layer_types")
    if kinds is not None:
        width, chunk = of("sliding_window"), of("attention_chunk_size")
        for name, a in zip(kinds, found.attention, strict=True):
            assert (a.encoding is None) == (name == "linear_attention")
            assert a.window == (width if name == "sliding_attention" else None)
            assert a.chunk == (chunk if name == "chunked_attention" else None)
    rope = of("rope_parameters") or {}
    for k, a in enumerate(found.attention):
        own = rope.get((kinds or [""] * shape.layers)[k], rope)
        if a.turned is not None and kind not in ("gptj", "codegen"):
            share = own.get("partial_rotary_factor", 1.0)
            size = theirs.qk_rope_head_dim if "deepseek" in kind else shape.head_size
            assert a.turned == (int(size * share), own["rope_theta"])


@pytest.mark.parametrize("kind", sorted(TINY))
def test_the_described_mechanism_gives_the_outputs_of_the_library(kind, tmp_path):
    """Windows, chunks, caps, sinks, scales and states, with queries as the library rotates them."""
    config = settings(kind)
    theirs = network(config)
    x = torch.randint(0, 64, (1, LENGTH), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        embedded = theirs.get_input_embeddings()(x)
        expected = theirs(inputs_embeds=embedded, use_cache=False).logits
        model = OutsideModel(describe(written(tmp_path, config)), network(config))
        found = model.logits(model.hidden(model.embed(x)))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))
    assert model.opened == (kind not in ("mamba", "gemma3n_text"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", MASKED)
def test_masks_scales_and_rotations_are_those_of_the_library(kind, tmp_path):
    """Masks position by position. Where every token is alike, the logit of a query and a key is
    what their positions make of it: constant without positions, cosines of the described angles
    with a rotation."""
    config = settings(kind)
    folder, made = describe(written(tmp_path, config)), network(config)
    with torch.no_grad():
        for name, weight in made.named_parameters():
            if any(part in name for part in OUTPUTS):
                weight.zero_()
        one = made.get_input_embeddings()(torch.tensor([[3]]))
        seen = looked(made, one.expand(1, LENGTH, -1).contiguous())
    attending = [k for k, a in enumerate(folder.attention) if a.encoding is not None]
    assert [layer for layer, *_ in seen] == attending
    at = torch.arange(LENGTH)
    absolute = families()[kind].get("position") == "absolute"
    for layer, query, key, mask, scaling, softcap in seen:
        a = folder.attention[layer]
        visible = CAUSAL.within(a.window)
        visible = visible if a.chunk is None else Chunked(seen=visible, chunk=a.chunk)
        sees = visible.sees(at[:, None], at)
        assert (
            torch.equal(mask[0, 0] > -1, sees)
            if mask.is_floating_point()
            else (torch.equal(mask[0, 0], sees))
        )
        scale = 1.0 if kind == "opt" else a.scale  # its queries come scaled
        assert scaling == pytest.approx(scale) and softcap == a.cap
        if absolute:
            continue
        q, k = query[0, 0].double(), key[0, 0].double()
        logits = (q @ k.T).numpy()
        if a.temper is not None:
            logits /= np.array([a.temper.at(i) for i in range(LENGTH)])[:, None]
        size, distance = np.abs(logits).max(), (at[:, None] - at).numpy()
        lines = [logits[distance == n] for n in range(1 - LENGTH, LENGTH)]
        assert max(np.ptp(line) for line in lines) < 1e-5 * size  # of the distance alone
        turned, base = a.turned or (0, 1.0)
        angles = base ** (-2 * np.arange(turned // 2) / max(1, turned))
        waves = np.arange(1 - LENGTH, LENGTH)[:, None] * angles
        columns = np.hstack([np.ones((2 * LENGTH - 1, 1)), np.cos(waves), np.sin(waves)])
        means = np.array([line.mean() for line in lines])
        fitted, *_ = np.linalg.lstsq(columns, means, rcond=1e-12)
        assert np.abs(columns @ fitted - means).max() < 1e-5 * size
        whole = np.hypot(fitted[1 : 1 + turned // 2], fitted[1 + turned // 2 :])
        assert (whole > 1e-6 * size).all()  # each described angle is there
        assert a.flat == (np.ptp(means) < 1e-5 * size)


@pytest.mark.parametrize("kind", ["gemma3", "llama4"])
def test_the_language_model_within_a_larger_one(kind, tmp_path):
    """Its layers are opened from weights that hold an eye as well."""
    import transformers

    eye = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "image_size": 32}
    eye |= {"num_attention_heads": 2, "patch_size": 8, "vision_output_dim": 16}
    eye |= {"projector_input_dim": 16, "projector_output_dim": 16}
    config = transformers.CONFIG_MAPPING[kind](text_config=TINY[f"{kind}_text"], vision_config=eye)
    theirs = getattr(transformers, f"{kind.capitalize()}ForConditionalGeneration")(config).eval()
    theirs.save_pretrained(tmp_path / "m")
    model = load(describe(tmp_path / "m"))
    x = torch.randint(3, 64, (1, LENGTH), generator=torch.Generator().manual_seed(1))
    seen = []
    with torch.no_grad():
        hidden = model.hidden(model.embed(x), path=with_hook(lambda *given: seen.append(given)))
        # transformers 5.24 runs Llama 4 on text alone by its language model, not by the whole
        speaks = theirs.language_model if kind == "llama4" else theirs
        torch.testing.assert_close(model.logits(hidden), speaks(input_ids=x).logits)
    assert len(seen) == 4


def test_a_wrong_description_is_noticed(tmp_path):
    """The checks above can fail: one key more, one angle less, another scale."""
    config = settings("gemma3_text")
    values = config.to_dict()
    x = torch.randint(0, 64, (1, LENGTH), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        theirs = network(config)
        expected = theirs(inputs_embeds=theirs.get_input_embeddings()(x)).logits
        for change in ({"sliding_window": 10}, {"layer_types": ["full_attention"] * 4}):
            place = written(tmp_path / "x", config)
            (place / "config.json").write_text(json.dumps(values | change))
            model = OutsideModel(describe(place), network(config))
            found = model.logits(model.hidden(model.embed(x)))
            assert float((found - expected).abs().max()) > 1e-2


def test_rescaled_and_latent_logits(tmp_path):
    """YaRN in latent attention multiplies the scale, as DeepSeek's released models have it."""
    for all_dim in (0.0, 1.0):
        rope = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
        config = settings("deepseek_v3", rope_scaling=rope | {"mscale_all_dim": all_dim})
        made = network(config)
        folder = describe(written(tmp_path / "x", config))
        theirs = made.model.layers[0].self_attn.scaling
        assert folder.attention[0].scale == pytest.approx(theirs)
        assert (theirs > 12**-0.5 * 1.01) == bool(all_dim)


def test_what_a_token_takes_is_what_the_library_keeps(tmp_path):
    """The numbers in the library's own cache, latent attention and shared keys among them."""
    from transformers import DynamicCache

    for kind in ("llama", "mixtral", "gemma3_text", "cohere2", "deepseek_v3", "gpt_oss", "olmo3"):
        config = settings(kind)
        folder, made = describe(written(tmp_path / kind, config)), network(config)
        cache = DynamicCache(config=config)
        with torch.no_grad():
            made(torch.arange(LENGTH)[None] % 64, past_key_values=cache, use_cache=True)
        for a, layer in zip(folder.attention, cache.layers, strict=True):
            kept = layer.keys[0].numel() + layer.values[0].numel()
            held = min(a.local or LENGTH, LENGTH) - (a.window is not None)  # the next one's place
            assert kept == held * folder.shape.cached and math.isfinite(kept)


NORMED = ("qwen3", "qwen3_moe", "qwen3_next", "exaone4", "gemma3_text", "gemma3n_text", "cohere")
NORMED += ("olmo2", "olmo3", "olmoe", "phi", "olmo", "llama4_text")
PROJECTED = [
    kind
    for kind in TINY
    if "projects" in families()[kind] and kind not in (*NORMED, *OWN_ATTENTION)
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", [*NORMED, *PROJECTED])
def test_logits_stay_within_what_weights_bound(kind, tmp_path):
    """Gains, unit norms, clipped entries and projections, on inputs far from every training; an
    input along the largest singular vectors comes near the bound of the first layer."""
    more = {"qk_layernorm": True} if kind == "phi" else {}
    config = settings(kind, **more)
    made = network(config)
    made.save_pretrained(tmp_path / "m")
    folder = describe(written(tmp_path / "m", config))
    inputs = 30 * torch.randn(1, LENGTH, 32, generator=torch.Generator().manual_seed(2))
    seen = {layer: (q, k, scaling) for layer, q, k, _, scaling, _ in looked(made, inputs)}
    bounded = 0
    for layer, (a, heads) in enumerate(zip(folder.attention, weight_bounds(folder), strict=True)):
        if heads is None or not a.held:
            continue
        assert len(heads) == folder.shape.heads
        query, key, scaling = seen[layer]
        groups = query.shape[1] // key.shape[1]
        logits = (scaling * query @ key.repeat_interleave(groups, 1).mT)[0]
        for most, bound in zip(logits.abs().amax((-2, -1)).tolist(), heads, strict=True):
            limit = bound.logit if a.bound is None else min(bound.logit, a.bound[0])
            assert 0.02 * limit < most <= limit * (1 + 1e-5), (layer, most, limit)
        bounded += 1
    assert bounded >= 1


@pytest.mark.parametrize("kind", [*OWN_ATTENTION, "deepseek_v3", "deepseek_v2", "llama"])
def test_logits_and_values_stay_within_what_weights_bound(kind, tmp_path):
    """As the layers give them to a path of ours; the heads are those of the fused projections."""
    config = settings(kind)
    made = network(config)
    made.save_pretrained(tmp_path / "m")
    folder, seen = describe(written(tmp_path / "m", config)), []
    model = OutsideModel(folder, made)
    inputs = 30 * torch.randn(1, LENGTH, 32, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        model.hidden(inputs, path=with_hook(lambda *given: seen.append(given[:3])))
    assert len(seen) == folder.shape.layers
    for (query, key, value), heads in zip(seen, weight_bounds(folder), strict=True):
        logits = (query[0] @ key[0].mT / math.sqrt(query.shape[-1])).abs().amax((-2, -1))
        for h, bound in enumerate(heads):
            assert 0.05 * bound.logit < float(logits[h]) <= bound.logit * (1 + 1e-5), (h, bound)
            most = float(value[0, h].norm(dim=-1).max())
            assert 0.2 * bound.value < most
            if kind in ("deepseek_v3", "deepseek_v2", "llama"):  # no vector that all values share
                assert most <= bound.value * (1 + 1e-5)
