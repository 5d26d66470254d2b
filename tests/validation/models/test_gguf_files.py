"""A GGUF file: its weights are those of the model it was written from, and it is parsed once."""

import gguf
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from farfield.validation.models.folder import describe
from farfield.validation.models.opened import open_model

HEADS, KEYS = 4, 2


@pytest.fixture(scope="module")
def llama():
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 97, "intermediate_size": 48}
    heads = {"num_attention_heads": HEADS, "num_key_value_heads": KEYS}
    return LlamaForCausalLM(LlamaConfig(**sizes, **heads, max_position_embeddings=64)).eval()


def test_a_gguf_file_is_the_model_and_its_header_is_parsed_once(
    llama, packed, tmp_path, monkeypatch
):
    path, parsed = packed(tmp_path / "small.gguf", llama), []
    before = gguf.GGUFReader, gguf.get_tensor_name_map

    class Counted(gguf.GGUFReader):
        def __init__(self, file):
            parsed.append(file)
            super().__init__(file)

    monkeypatch.setattr(gguf, "GGUFReader", Counted)
    opened, tokens = open_model(describe(path)), torch.arange(20)[None]
    with torch.no_grad():
        assert torch.allclose(opened.network(tokens).logits, llama(tokens).logits, atol=1e-5)
    assert parsed == [str(path)]
    monkeypatch.undo()
    assert before == (gguf.GGUFReader, gguf.get_tensor_name_map)


def test_a_file_that_changes_is_parsed_again(llama, packed, tmp_path):
    path = packed(tmp_path / "small.gguf", llama)
    assert open_model(describe(path)).vocabulary == 97
    path.unlink()
    other = LlamaForCausalLM(LlamaConfig(**{**llama.config.to_dict(), "vocab_size": 50}))
    packed(path, other)
    assert open_model(describe(path)).vocabulary == 50
