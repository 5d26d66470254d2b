"""Tiny models of the library, one of each family, and a look into its attention."""

import json

import torch

BASE = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
TURNED = BASE | {"rope_theta": 30.0}
OWN = TURNED | {"head_dim": 12}
EXPERTS = {"moe_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2}
LOCAL = {"num_local_experts": 4, "num_experts_per_tok": 2}
OLD = {"vocab_size": 64, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 64}
OLD |= {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
STATES = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_n_groups": 1}
LINEAR = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
LATENT = {
    "q_lora_rank": 12,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 8,
    "v_head_dim": 6,
    "n_routed_experts": 4,
    "n_group": 2,
    "topk_group": 1,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "first_k_dense_replace": 1,
    "num_key_value_heads": 4,
}
TINY = {
    "llama": TURNED,
    "arcee": OWN,
    "helium": TURNED | {"head_dim": 8},
    "seed_oss": OWN,
    "ernie4_5": OWN,
    "mistral": OWN | {"sliding_window": 9},
    "mixtral": TURNED | LOCAL | {"sliding_window": 9},
    "ministral": OWN | {"sliding_window": 9},
    "starcoder2": TURNED | {"sliding_window": 9},
    "phi3": TURNED | {"sliding_window": 9, "partial_rotary_factor": 0.5},
    "phi": TURNED,
    "stablelm": TURNED | {"partial_rotary_factor": 0.25},
    "gpt_neox": {k: v for k, v in BASE.items() if "key" not in k}
    | {"rotary_pct": 0.5, "rotary_emb_base": 30.0},
    "nemotron": TURNED,
    "glm": OWN | {"partial_rotary_factor": 1 / 3},
    "glm4": TURNED | {"head_dim": 8},
    "qwen2": TURNED | {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 2},
    "qwen2_moe": TURNED | EXPERTS | {"shared_expert_intermediate_size": 16},
    "qwen3": OWN,
    "qwen3_moe": OWN | EXPERTS | {"use_sliding_window": True, "sliding_window": 9},
    "qwen3_next": OWN | EXPERTS | LINEAR | {"shared_expert_intermediate_size": 16, "head_dim": 16},
    "gemma": OWN,
    "gemma2": OWN
    | {"sliding_window": 9, "attn_logit_softcapping": 2.0, "query_pre_attn_scalar": 9},
    "gemma3_text": OWN
    | {"sliding_window": 9, "sliding_window_pattern": 3, "rope_local_base_freq": 11.0},
    "gemma3n_text": OWN
    | {
        "sliding_window": 9,
        "rope_local_base_freq": 11.0,
        "num_kv_shared_layers": 1,
        "num_hidden_layers": 6,
        "intermediate_size": 48,
        "vocab_size_per_layer_input": 64,
        "hidden_size_per_layer_input": 8,
        "laurel_rank": 4,
        "altup_num_inputs": 2,
    },
    "recurrent_gemma": TURNED | {"attention_window_size": 9},
    "gpt_oss": OWN | LOCAL | {"sliding_window": 9, "rope_scaling": {"rope_type": "default"}},
    "cohere": TURNED | {"use_qk_norm": True},
    "cohere2": TURNED | {"sliding_window": 9},
    "exaone4": TURNED | {"sliding_window": 9},
    "llama4_text": OWN
    | LOCAL
    | {
        "attention_chunk_size": 7,
        "floor_scale": 5,
        "attn_scale": 0.7,
        "intermediate_size_mlp": 48,
        "num_experts_per_tok": 1,
    },
    "smollm3": TURNED,
    "olmo": TURNED | {"clip_qkv": 0.4},
    "olmo2": TURNED,
    "olmoe": TURNED | EXPERTS,
    "olmo3": TURNED | {"sliding_window": 9},
    "granite": TURNED | {"attention_multiplier": 0.3, "logits_scaling": 2.0},
    "granitemoe": TURNED | LOCAL | {"attention_multiplier": 0.3},
    "granitemoehybrid": TURNED
    | LOCAL
    | STATES
    | {
        "layer_types": ["mamba", "attention", "mamba", "attention"],
        "attention_multiplier": 0.3,
        "position_embedding_type": "rope",
        "shared_intermediate_size": 16,
    },
    "deepseek_v3": TURNED | LATENT,
    "deepseek_v2": TURNED | LATENT | {"q_lora_rank": None},
    "minimax": TURNED | LOCAL | {"head_dim": 12, "block_size": 8},
    "jamba": BASE
    | {"num_experts": 2, "num_experts_per_tok": 1, "attn_layer_period": 2}
    | {"attn_layer_offset": 1, "use_mamba_kernels": False, "mamba_d_state": 4},
    "mamba": {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4},
    "gptj": OLD | {"rotary_dim": 4},
    "codegen": OLD | {"rotary_dim": 4},
    "gpt2": OLD | {"scale_attn_by_inverse_layer_idx": True},
    "gpt_bigcode": OLD,
    "gpt_neo": {
        "vocab_size": 64,
        "hidden_size": 32,
        "num_layers": 4,
        "num_heads": 4,
        "attention_types": [[["global", "local"], 2]],
        "window_size": 9,
        "max_position_embeddings": 64,
    },
    "opt": {k: v for k, v in BASE.items() if "key" not in k}
    | {"ffn_dim": 48, "word_embed_proj_dim": 32},
}
"""The keys of a tiny model of each family, by `model_type`."""


def settings(kind, **values):
    """The library's own configuration of a tiny model."""
    import transformers

    return transformers.CONFIG_MAPPING[kind](**TINY.get(kind, {}) | values)


def network(config):
    """A causal model in float32, its projections large enough for content to matter."""
    from transformers import AutoModelForCausalLM

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
        with torch.no_grad():
            for name, weight in made.named_parameters():
                if weight.dim() < 2 and ("norm" in name or "bias" in name or "sink" in name):
                    weight.add_(0.1 * torch.randn_like(weight))
                elif weight.dim() > 1:
                    weight.mul_(4.0)
    return made


def written(place, config):
    """A folder with the configuration, as the library writes it."""
    place.mkdir(exist_ok=True)
    (place / "config.json").write_text(json.dumps(config.to_dict()))
    return place


def looked(made, inputs):
    """What each attention of a model is given by the library: query, key, mask, scale, softcap."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    seen = []

    def spy(module, query, key, value, mask, scaling=None, softcap=None, **_):
        seen.append((module.layer_idx, query, key, mask, scaling, softcap))
        groups = query.shape[1] // value.shape[1]
        out = value.mean(-2, keepdim=True).repeat_interleave(groups, 1)
        return out.expand(-1, -1, query.shape[-2], -1).transpose(1, 2), None

    AttentionInterface.register("spy", spy)
    AttentionMaskInterface.register("spy", eager_mask)
    made.config._attn_implementation = "spy"
    with torch.no_grad():
        made(inputs_embeds=inputs, use_cache=False)
    return seen
