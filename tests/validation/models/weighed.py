"""What tiny models with random weights do: attention of a real row, queries turned, a real cache.

Nothing here is shared with what is tested: the models have numbers, and these are looked at.
"""

import json
import random
import warnings
from contextlib import suppress

import torch
import transformers
from transformers import CONFIG_MAPPING
from transformers.models.auto import modeling_auto

LENGTH = 40
TYPES = sorted(
    {
        *modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        *modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
        *modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        *modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    }
)
"""Every type of the library that reads text."""

SMALL = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "moe_intermediate_size": 16,
    "num_experts": 4,
    "n_routed_experts": 4,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "shared_expert_intermediate_size": 16,
    "n_group": 1,
    "topk_group": 1,
    "sliding_window": 9,
    "global_head_dim": 16,
    "hidden_size_per_layer_input": 8,
    "vocab_size_per_layer_input": 64,
    "v_head_dim": 8,
    "local_attention": 18,
    "q_lora_rank": 16,
    "index_head_dim": 16,
    "index_n_heads": 2,
    "rotary_dim": 8,
    "mamba_n_heads": 4,
}
"""The keys of a tiny model, of whatever type; what a type does not read does nothing."""

OWN = {
    "llama4_text": {
        "attention_chunk_size": 7,
        "intermediate_size_mlp": 48,
        "num_experts_per_tok": 1,
        "sliding_window": None,
    },
    "gpt_neo": {
        "attention_types": [[["global", "local"], 3]],
        "window_size": 9,
        "num_hidden_layers": 6,
    },
    "minimax_m3_vl_text": {"dense_intermediate_size": 48, "index_n_heads": 2},
    "llama": {"sliding_window": None},
    **{
        kind: {"use_sliding_window": True, "max_window_layers": 3}
        for kind in ("qwen2", "qwen2_moe", "qwen3", "qwen3_moe")
    },
}
"""What single types need besides."""

ROPES = (
    {"rope_type": "default"},
    {"rope_type": "linear", "factor": 4.0},
    {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 16},
    {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
    },
)


def tiny(kind, **values):
    """A tiny model of a type in float32, drawn by chance, and its configuration."""
    config = CONFIG_MAPPING[kind](**(values or SMALL | OWN.get(kind, {})))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    return made.float().eval(), config


def drawn(kind, seed):
    """Values of a configuration, drawn at random: no number is the default of its class."""
    draw = random.Random(f"{kind} {seed}")
    heads = draw.choice((2, 4, 8))
    values = SMALL | {
        "num_attention_heads": heads,
        "num_key_value_heads": draw.choice([k for k in (1, 2, 4, 8) if heads % k == 0]),
        "head_dim": draw.choice((8, 16, 24)),
        "hidden_size": 8 * heads * draw.choice((1, 2)),
        "num_hidden_layers": draw.choice((3, 5, 7)),
        "sliding_window": draw.choice((5, 9, 14)),
        "window_size": draw.choice((5, 9, 14)),
        "attention_chunk_size": draw.choice((5, 7, 12)),
        "sliding_window_pattern": draw.choice((2, 3)),
        "local_attention": draw.choice((6, 18)),
        "partial_rotary_factor": draw.choice((0.5, 1.0)),
        "rope_theta": draw.choice((5e3, 3e4)),
        "index_topk": draw.choice((8, 16)),
        "kv_lora_rank": draw.choice((8, 16)),
        "qk_rope_head_dim": draw.choice((8, 16)),
        "qk_nope_head_dim": draw.choice((8, 16)),
        "v_head_dim": draw.choice((8, 16)),
    }
    usual = CONFIG_MAPPING[kind]()
    if draw.random() < 0.5:
        values["head_dim"] = values["hidden_size"] // heads
    if hasattr(usual, "qk_rope_head_dim"):
        values["head_dim"] = values["qk_rope_head_dim"]
    own = {k: v for k, v in OWN.get(kind, {}).items() if k != "sliding_window"}
    values |= own | {"use_sliding_window": True, "max_window_layers": draw.choice((0, 2))}
    rope = draw.choice(ROPES)
    if rope["rope_type"] != "default" and draw.random() < 0.5:
        values |= {"rope_scaling": rope, "partial_rotary_factor": 1.0}
    kinds = sorted({*(getattr(usual, "layer_types", None) or ())})
    if len(kinds) > 1:
        values["layer_types"] = [draw.choice(kinds) for _ in range(values["num_hidden_layers"])]
    if draw.random() < 0.3:
        values.pop("sliding_window")
    for dropped in ("head_dim", "layer_types"):
        with suppress(Exception):
            CONFIG_MAPPING[kind](**values)
            break
        values.pop(dropped, None)
    return values


def weighed(config):
    """What a tiny model does, or None where the library does not build or run it.

    Returns:
        `seen`: by layer keys with attention in the last row and in the one in the middle;
        `turned`: by layer entries of the queries that surely change with the place, and may;
        `kept`: numbers of each layer's cache after 40 tokens and after 41, states apart.
    """
    if not config.is_encoder_decoder and config.get_text_config(decoder=True) is not config:
        return None  # its text part is a type of its own
    for auto in (transformers.AutoModel, transformers.AutoModelForCausalLM):
        with (
            suppress(Exception),
            torch.random.fork_rng(devices=[]),
            warnings.catch_warnings(),
            torch.no_grad(),
        ):
            warnings.simplefilter("ignore")
            with torch.device("meta"):
                numbers = sum(w.numel() for w in auto.from_config(config).parameters())
            if numbers < 2e7:
                torch.manual_seed(0)
                network = auto.from_config(config, attn_implementation="eager").float().eval()
                for weight in network.parameters():
                    weight.mul_(4 if weight.dim() > 1 else 1)
                return _weighed(network)
    return None


def _weighed(network):
    tokens = torch.randint(3, 64, (1, LENGTH + 1), generator=torch.Generator().manual_seed(1))
    more = {}
    if network.config.is_encoder_decoder:
        more = {"input_ids": tokens[:, :7]}
    name = "decoder_input_ids" if more else "input_ids"
    seen, turned = {}, {}

    def attention(module, query, key, value, attention_mask=None, **named):
        layer, mask = getattr(module, "layer_idx", None), attention_mask
        if layer is None or query.shape[2] != LENGTH or key.shape[2] != LENGTH:
            return eager(module, query, key, value, mask, **named)
        out, weights = eager(module, query, key, value, mask, **named)
        if layer not in seen:
            turned[layer] = query[0, :, [0, LENGTH - 1]]
            seen[layer] = [
                (weights[0, :, row] > 0).any(0).nonzero().flatten().tolist()
                for row in (LENGTH - 1, LENGTH // 2)
            ]
        return out, weights

    def eager(module, query, key, value, mask, scaling=None, softcap=None, s_aux=None, **named):
        groups = query.shape[1] // key.shape[1]
        key, value = (x.repeat_interleave(groups, 1) for x in (key, value))
        scores = query @ key.transpose(-1, -2) * (scaling or query.shape[-1] ** -0.5)
        if mask is None and named.get("is_causal", getattr(module, "is_causal", True)):
            rows, keys = scores.shape[-2:]
            mask = torch.ones(rows, keys, dtype=torch.bool).tril(keys - rows)
        if mask is not None and mask.dtype == torch.bool:
            mask = torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)
        scores = scores.clamp(-30, 30)  # a key that is seen keeps a weight above 0
        weights = (scores if mask is None else scores + mask).softmax(-1)
        return (weights @ value).transpose(1, 2).contiguous(), weights

    masks = transformers.masking_utils.ALL_MASK_ATTENTION_FUNCTIONS
    transformers.AttentionInterface.register("weighed", attention)
    transformers.AttentionMaskInterface.register("weighed", masks["eager"])
    with torch.no_grad(), suppress(Exception):
        network.set_attn_implementation("weighed")
    with torch.no_grad():
        out = network(**more, **{name: tokens[:, :LENGTH]}, use_cache=True)
        cache = _cache(out)
        before = None if cache is None else [_numbers(layer) for layer in cache.layers]
        if cache is not None:
            how = "past_key_values" if getattr(out, "cache", None) is None else "cache"
            whole = getattr(out, how)
            out = network(**more, **{name: tokens[:, LENGTH:], how: whole}, use_cache=True)
            after = [_numbers(layer) for layer in _cache(out).layers]
        same = torch.full((1, LENGTH), 5)
        seen_before, seen = dict(seen), {}
        turned = {}
        network(**more, **{name: same}, use_cache=False)
    changed = {}
    for layer, pair in turned.items():
        moved = ((pair[:, 0] - pair[:, 1]).abs() / pair.abs().max()).amax(0)
        changed[layer] = int((moved > 3e-6).sum()), int((moved > 1e-7).sum())
    kept = None if cache is None else list(zip(before, after, strict=True))
    return {"seen": seen_before, "turned": changed, "kept": kept}


def _cache(out):
    named = (getattr(out, n, None) for n in ("cache", "past_key_values", "cache_params"))
    cache = next((c for c in named if c is not None), None)
    return getattr(cache, "self_attention_cache", cache)


def _numbers(layer):
    """How many numbers a layer of a cache holds, those of states apart."""
    growing, state = 0, 0
    for name, value in vars(layer).items():
        parts = value.values() if isinstance(value, dict) else value
        for part in parts if isinstance(value, dict | list | tuple) else [value]:
            if isinstance(part, torch.Tensor) and part.dim() > 1:
                state += part.numel() * ("state" in name)
                growing += part.numel() * ("state" not in name)
    return growing, state


def as_file(config):
    """A configuration as the file says it, under the names of one version."""
    values = json.loads(json.dumps(config.to_dict(), default=str))
    for name in ("rope_scaling", "rope_theta"):
        if values.get("rope_parameters"):
            values.pop(name, None)
    return values
