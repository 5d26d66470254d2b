"""Models as GGUF files."""

import gguf
import pytest


def neighbours(weight, heads):
    """Rows of queries or keys as llama.cpp turns them: neighbouring numbers are a pair."""
    return weight.unflatten(0, (heads, 2, -1)).transpose(1, 2).reshape(weight.shape)


@pytest.fixture(scope="session")
def packed():
    """Writes a Llama as a GGUF file in float32; `add` is called with the writer."""

    def packed(path, model, add=lambda writer: None):
        config, writer = model.config, gguf.GGUFWriter(path, "llama")
        writer.add_name("small")
        writer.add_context_length(config.max_position_embeddings)
        writer.add_embedding_length(config.hidden_size)
        writer.add_block_count(config.num_hidden_layers)
        writer.add_feed_forward_length(config.intermediate_size)
        writer.add_head_count(config.num_attention_heads)
        writer.add_head_count_kv(config.num_key_value_heads)
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
        writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
        writer.add_vocab_size(config.vocab_size)
        writer.add_file_type(0)
        add(writer)
        names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
        counts = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
        for name, weight in model.state_dict().items():
            heads = next((count for part, count in counts.items() if part in name), 0)
            weight = neighbours(weight, heads) if heads else weight
            stem = name.removesuffix(".weight")
            writer.add_tensor(f"{names.get_name(stem)}.weight", weight.contiguous().numpy())
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    return packed
