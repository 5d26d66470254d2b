import functools
import json

import numpy as np
import pytest
import torch

from farfield.theory.answers.blocks import Sentence
from farfield.theory.answers.notation import terminal

torch.set_num_threads(1)  # the tests share the cores


@pytest.fixture(scope="session")
def speaks():
    """What every result does: its first block is a sentence, it is one short line, it is written
    in each medium. Gives the sentence."""

    def check(result):
        first = result.blocks()[0]
        assert isinstance(first, Sentence)
        assert len(repr(result)) <= 200 and "\n" not in repr(result)
        assert result.text(details=True) and result._repr_html_()
        assert json.loads(result.to_json())["schema"] == 2
        return terminal(first.text)

    return check


@pytest.fixture(scope="session")
def interrupted():
    """Calls a function, and interrupts it where it reports so many steps as done."""

    def interrupted(step, call, *given, **options):
        def progress(stage, done, total, note=""):
            if done == step:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            call(*given, progress=progress, **options)

    return interrupted


def configurations():
    """One of each family; heads that are no power of two, shared keys and partial rotations."""
    import transformers as hf

    small = {"vocab_size": 256}
    half = {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2} | small
    tokens = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    return {
        "bloom": hf.BloomConfig(hidden_size=48, n_layer=2, n_head=6, **small),
        "mpt": hf.MptConfig(
            d_model=48,
            n_layers=2,
            n_heads=6,
            max_seq_len=64,
            attn_config={"softmax_scale": 0.4},
            **small,
        ),
        "falcon": hf.FalconConfig(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            alibi=True,
            multi_query=True,
            parallel_attn=False,
            bias=True,
            **small,
        ),
        "falcon_groups": hf.FalconConfig(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            alibi=True,
            num_kv_heads=2,
            new_decoder_architecture=True,
            **small,
        ),
        "falcon_whole": hf.FalconConfig(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            alibi=True,
            multi_query=False,
            **small,
        ),
        "falcon_rotary": hf.FalconConfig(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_kv_heads=2,
            new_decoder_architecture=True,
            **small,
        ),
        "gpt_neox": hf.GPTNeoXConfig(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            rotary_pct=0.5,
            **small,
        ),
        "llama": hf.LlamaConfig(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            intermediate_size=64,
            **small,
        ),
        "gpt2": hf.GPT2Config(
            n_embd=32,
            n_layer=2,
            n_head=4,
            n_positions=90,
            scale_attn_by_inverse_layer_idx=True,
            **small,
            **tokens,
        ),
        "opt": hf.OPTConfig(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            ffn_dim=64,
            max_position_embeddings=90,
            word_embed_proj_dim=16,
            do_layer_norm_before=False,
            **small,
            **tokens,
        ),
        "gptj": hf.GPTJConfig(
            n_embd=32, n_layer=2, n_head=4, n_positions=90, rotary_dim=4, **small, **tokens
        ),
        "phi": hf.PhiConfig(
            num_hidden_layers=2, intermediate_size=64, qk_layernorm=True, **half, **tokens
        ),
        "mistral": hf.MistralConfig(
            num_hidden_layers=2,
            intermediate_size=64,
            head_dim=6,
            sliding_window=9,
            **half,
            **tokens,
        ),
        "qwen2": hf.Qwen2Config(
            num_hidden_layers=3,
            intermediate_size=64,
            use_sliding_window=True,
            sliding_window=9,
            max_window_layers=1,
            **half,
            **tokens,
        ),
        "qwen3": hf.Qwen3Config(
            num_hidden_layers=2,
            intermediate_size=64,
            head_dim=8,
            rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4},
            **half,
            **tokens,
        ),
        "gemma2": hf.Gemma2Config(
            num_hidden_layers=2,
            intermediate_size=64,
            head_dim=8,
            sliding_window=9,
            query_pre_attn_scalar=12,
            attn_logit_softcapping=2.0,
            final_logit_softcapping=3.0,
            **half,
            **tokens,
        ),
        "gemma3_text": hf.Gemma3TextConfig(
            num_hidden_layers=4,
            intermediate_size=64,
            head_dim=8,
            sliding_window=9,
            query_pre_attn_scalar=12,
            sliding_window_pattern=3,
            **half,
            **tokens,
        ),
        "gpt_oss": hf.GptOssConfig(
            num_hidden_layers=3,
            intermediate_size=32,
            head_dim=8,
            sliding_window=9,
            num_local_experts=4,
            num_experts_per_tok=2,
            max_position_embeddings=160,
            rope_parameters={
                "rope_type": "yarn",
                "factor": 4.0,
                "rope_theta": 1e4,
                "original_max_position_embeddings": 40,
            },
            **half,
            **tokens,
        ),
    }


def network(config, seed=0, gain=5.0):
    """A causal model of a configuration, its projections large enough for content to matter."""
    from transformers import AutoModelForCausalLM

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        eager = None if config.model_type == "falcon" else "eager"
        made = AutoModelForCausalLM.from_config(config, attn_implementation=eager)
        made = made.float().eval()
        with torch.no_grad():
            for name, weight in made.named_parameters():
                if "bias" in name or "norm" in name or name.endswith("ln_f.weight"):
                    weight.add_(0.1 * torch.randn_like(weight))
                else:
                    weight.mul_(gain)
    return made


class Outside:
    """Tiny models from outside, made from the library's own configurations, saved as it saves."""

    def __init__(self, root):
        self.root, self.folders = root, {}

    def network(self, name):
        return network(configurations()[name])

    def folder(self, name):
        if name not in self.folders:
            self.folders[name] = self.root / name
            self.network(name).save_pretrained(self.folders[name])
        return self.folders[name]


@pytest.fixture(scope="session")
def outside_models(tmp_path_factory):
    return Outside(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def numbers():
    """4000 bytes by chance."""
    return np.random.default_rng(0).integers(0, 256, 4000).astype(np.uint8)


@pytest.fixture(scope="session")
def small_llama():
    """Makes a small Llama with random weights; sizes that are given go before these."""
    from transformers import LlamaConfig, LlamaForCausalLM

    usual = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 97}
    usual |= {"intermediate_size": 32, "num_key_value_heads": 2, "initializer_range": 0.3}

    def made(**sizes):
        torch.manual_seed(0)
        return LlamaForCausalLM(LlamaConfig(**usual | sizes)).eval()

    return made


@pytest.fixture
def counted(small_llama, monkeypatch):
    """A model of 128 positions, and how many tokens have passed it."""
    from transformers import LlamaForCausalLM

    model = small_llama(num_hidden_layers=1, max_position_embeddings=128)
    passed, plain = [0], LlamaForCausalLM.forward

    @functools.wraps(plain)
    def forward(self, input_ids=None, inputs_embeds=None, **more):
        read = input_ids if inputs_embeds is None else inputs_embeds[..., 0]
        passed[0] += read.numel()
        return plain(self, input_ids, inputs_embeds=inputs_embeds, **more)

    monkeypatch.setattr(LlamaForCausalLM, "forward", forward)
    return model, passed


@pytest.fixture(scope="session")
def words():
    """3000 tokens of 97 by chance."""
    return np.random.default_rng(0).integers(0, 97, 3000)
