import json
import random

import numpy as np
import pytest
import torch

from farfield.theory.answers.blocks import Sentence
from farfield.theory.answers.notation import terminal
from farfield.validation.settings.measurement import Measurement
from farfield.validation.settings.presets import Preset
from farfield.validation.text.reading import corpus

torch.set_num_threads(1)  # the tests share the cores

SMALL = Preset(
    "small", layers=2, width=32, heads=4, length=12, batch=4, steps=12, warmup=2,
    measurement=Measurement(
        lengths=(12, 40), blocks=3, last_tokens=6, row_length=30, row_segments=2, rows=5,
        gradient_segments=3,
    ),
)  # fmt: skip


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
def small():
    return SMALL


@pytest.fixture(scope="session")
def text(tmp_path_factory):
    """A corpus of made-up words, 60 kB."""
    words = random.Random(0).choices(
        [w * k for w in ("def ", "return", "\n    ", "(x)", "=") for k in (1, 2)], k=12_000
    )
    path = tmp_path_factory.mktemp("text") / "words.txt"
    path.write_text("".join(words))
    return corpus(path)


def configurations():
    """One of each family; heads that are no power of two, shared keys and partial rotations."""
    import transformers as hf

    small = {"vocab_size": 256}
    return {
        "bloom": hf.BloomConfig(hidden_size=48, n_layer=2, n_head=6, **small),
        "mpt": hf.MptConfig(
            d_model=48, n_layers=2, n_heads=6, max_seq_len=64,
            attn_config={"softmax_scale": 0.4}, **small,
        ),
        "falcon": hf.FalconConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, alibi=True,
            multi_query=True, parallel_attn=False, bias=True, **small,
        ),
        "falcon_groups": hf.FalconConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, alibi=True,
            num_kv_heads=2, new_decoder_architecture=True, **small,
        ),
        "falcon_whole": hf.FalconConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, alibi=True,
            multi_query=False, **small,
        ),
        "falcon_rotary": hf.FalconConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_kv_heads=2,
            new_decoder_architecture=True, **small,
        ),
        "gpt_neox": hf.GPTNeoXConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
            rotary_pct=0.5, **small,
        ),
        "llama": hf.LlamaConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            intermediate_size=64, **small,
        ),
    }  # fmt: skip


def network(config, seed=0, gain=5.0):
    """A causal model of a configuration, its projections large enough for content to matter."""
    from transformers import AutoModelForCausalLM

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = AutoModelForCausalLM.from_config(config).float().eval()
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
