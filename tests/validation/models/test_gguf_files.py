"""A GGUF file: its weights are those of the model it was written from, and it is parsed once."""

import gguf
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from farfield.validation.models.folder import describe
from farfield.validation.models.opened import open_model

HEADS, KEYS = 4, 2


def neighbours(weight, heads):
    """Rows of queries or keys as llama.cpp turns them: neighbouring numbers are a pair."""
    return weight.unflatten(0, (heads, 2, -1)).transpose(1, 2).reshape(weight.shape)


def packed(path, model):
    """Write a Llama as a GGUF file in float32."""
    config, writer = model.config, gguf.GGUFWriter(path, "llama")
    writer.add_name("small")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEYS)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(config.vocab_size)
    writer.add_file_type(0)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, weight in model.state_dict().items():
        heads = HEADS if "q_proj" in name else KEYS if "k_proj" in name else 0
        weight = neighbours(weight, heads) if heads else weight
        stem = name.removesuffix(".weight")
        writer.add_tensor(f"{names.get_name(stem)}.weight", weight.contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def llama():
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 97, "intermediate_size": 48}
    heads = {"num_attention_heads": HEADS, "num_key_value_heads": KEYS}
    return LlamaForCausalLM(LlamaConfig(**sizes, **heads, max_position_embeddings=64)).eval()


def test_a_gguf_file_is_the_model_and_its_header_is_parsed_once(llama, tmp_path, monkeypatch):
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


def test_a_file_that_changes_is_parsed_again(llama, tmp_path):
    path = packed(tmp_path / "small.gguf", llama)
    assert open_model(describe(path)).vocabulary == 97
    path.unlink()
    other = LlamaForCausalLM(LlamaConfig(**{**llama.config.to_dict(), "vocab_size": 50}))
    packed(path, other)
    assert open_model(describe(path)).vocabulary == 50
