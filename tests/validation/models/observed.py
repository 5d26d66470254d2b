"""What the models of the library do, layer by layer: built without weights and run on no numbers.

Every type is built with its default configuration on the device `meta`, where tensors have shapes
and no content, and one row of tokens goes through. Its cache then says what a layer keeps, and
which layers called the function that turns queries and keys.
"""

import sys
import warnings
from contextlib import suppress

import torch
import transformers
from transformers import CONFIG_MAPPING
from transformers.models.auto import modeling_auto

LENGTH = 40
MORE = {
    kind: {"head_dim": 128, "eos_token_id": 1}
    for kind in ("hunyuan_v1_dense", "hunyuan_v1_moe", "ministral", "nemotron")
}
"""What the default configurations of these types lack."""
MORE["bamba"] = {"attn_layer_indices": [9, 18, 27]}
MORE["granitemoehybrid"] = {"layer_types": ["linear_attention", "full_attention"] * 16}
MORE["deepseek_v2"] = {"n_group": 1, "topk_group": 1, "topk_method": "greedy"}
CAUSAL = {**modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES}
SEEN = {**modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES}
TYPES = sorted({*CAUSAL, *SEEN})


def built(config, device):
    """A model without weights, of the part that reads text where it is one."""
    text = config.get_text_config(decoder=True)
    autos = transformers.AutoModelForCausalLM, transformers.AutoModel
    wanted = [(text, auto) for auto in autos]
    wanted += [(config, autos[0]), (config, transformers.AutoModelForImageTextToText)]
    error = None
    for given, auto in wanted:
        for how in ({"attn_implementation": "eager"}, {}):
            try:
                with torch.device(device):
                    return auto.from_config(given, **how).eval()
            except Exception as e:
                error = e
    raise error


def rotations(network):
    """The angles of each module that makes them: their number, the first two, and the scale."""
    found = {}
    for name, module in network.named_modules():
        for key, _ in list(module.named_buffers(recurse=False)):
            if not key.endswith("inv_freq") or "original" in key or "vis" in name:
                continue
            with suppress(Exception):
                made = type(module)(config=module.config)
                angles = getattr(made, key).double()
                scale = getattr(made, key.replace("inv_freq", "attention_scaling"), 1.0)
                found[key.removesuffix("inv_freq").strip("_") or name] = (angles.tolist(), scale)
    return found


def observed(kind, more, device="meta"):
    """`layers` (numbers a token takes, window, numbers of state), `turned` and `rotations`."""
    warnings.simplefilter("ignore")
    config = CONFIG_MAPPING[kind](**MORE.get(kind, {}) | more)
    network = built(config, device)
    with suppress(Exception):
        network.set_experts_implementation("batched_mm")
    now, turned, patched = [None], set(), []
    for module in network.modules():
        if isinstance(getattr(module, "layer_idx", None), int):
            home = sys.modules[type(module).__module__]
            module.register_forward_pre_hook(
                lambda m, *_: now.__setitem__(0, m.layer_idx), prepend=True
            )
            for name in [n for n in vars(home) if n.startswith("apply_") and "rot" in n]:
                given = getattr(home, name)
                if not hasattr(given, "spied"):

                    def spy(*args, given=given, **named):
                        turned.add(now[0])
                        return given(*args, **named)

                    spy.spied = True
                    setattr(home, name, spy)
                    patched.append((home, name, given))
    try:
        with torch.no_grad(), torch.device(device):
            tokens = torch.zeros(1, LENGTH, dtype=torch.long)
            more = {"decoder_input_ids": tokens} if config.is_encoder_decoder else {}
            out = network(input_ids=tokens, use_cache=True, **more)
    finally:
        for home, name, given in patched:
            setattr(home, name, given)
    cache = next(
        c for n in ("past_key_values", "cache_params", "cache") if (c := getattr(out, n, None))
    )
    cache = getattr(cache, "self_attention_cache", cache)
    return {
        "layers": [kept(layer) for layer in cache.layers],
        "turned": sorted(k for k in turned if k is not None),
        "rotations": rotations(network),
    }


def kept(layer):
    """What one layer of a cache holds: numbers a token, its window, numbers of fixed size."""
    token, state = 0, 0
    for name, value in vars(layer).items():
        parts = value if isinstance(value, (list, tuple)) else [value]
        parts = list(value.values()) if isinstance(value, dict) else parts
        for part in parts:
            if not torch.is_tensor(part) or not part.numel():
                continue
            if name in ("keys", "values", "indexer_keys"):
                token += part.numel() // part.shape[-2]
            elif name in ("conv_states", "recurrent_states"):
                state += part.numel()
    return token, getattr(layer, "sliding_window", None), state


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
    },
    **{
        kind: {"use_sliding_window": True, "max_window_layers": 3}
        for kind in ("qwen2", "qwen2_moe", "qwen3", "qwen3_moe")
    },
}
WINDOWED = [
    "afmoe",
    "beam",
    "cohere2",
    "cohere2_moe",
    "cwm",
    "exaone4",
    "exaone_moe",
    "flint",
    "gemma2",
    "gemma3_text",
    "gemma4_text",
    "gpt_neo",
    "gpt_oss",
    "granite_swa",
    "kolibri1",
    "lara_mini",
    "lfm3",
    "llama4_text",
    "mimo_v2_flash",
    "ministral",
    "mistral",
    "mixtral",
    "modernbert-decoder",
    "olmo3",
    "phi3",
    "phimoe",
    "qwen2",
    "qwen2_moe",
    "qwen3",
    "qwen3_moe",
    "starcoder2",
    "vaultgemma",
]
"""Types with windows that a tiny model can be made of."""


def tiny(kind, **values):
    """A tiny model of a type in float32, drawn by chance, and its configuration."""
    config = CONFIG_MAPPING[kind](**(values or SMALL | OWN.get(kind, {})))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    return made.float().eval(), config
