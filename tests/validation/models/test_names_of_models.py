"""A GGUF file, a name in the hub's cache and a live model are models like a folder."""

import gguf
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from farfield.numerics.masks import CAUSAL, Mask
from farfield.validation.models.folder import describe, place_of
from farfield.validation.models.opened import open_model
from farfield.validation.models.perplexities import model_perplexity
from farfield.validation.models.text import text_of


@pytest.fixture(scope="module")
def network(small_llama):
    sizes = {"intermediate_size": 48, "vocab_size": 258, "max_position_embeddings": 64}
    rope = {"rope_type": "default", "rope_theta": 5000.0}
    return small_llama(**sizes, rope_parameters=rope, bos_token_id=257, initializer_range=0.02)


def letters():
    """The characters that byte-level tokenizers have for the bytes, in order."""
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    table = bytes_to_unicode()
    return [table[byte] for byte in range(256)]


def tokens(writer):
    """A tokenizer of bytes, with one merge and a first token."""
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([*letters(), letters()[97] + letters()[98], "<first>"])
    writer.add_token_types([1] * 257 + [3])
    writer.add_token_merges([f"{letters()[97]} {letters()[98]}"])
    writer.add_bos_token_id(257)


@pytest.fixture(scope="module")
def small(network, packed, tmp_path_factory):
    """The model as a GGUF file."""
    pytest.importorskip("accelerate", reason="the package accelerate is not installed")
    return packed(tmp_path_factory.mktemp("packed") / "small.gguf", network, tokens)


@pytest.fixture(scope="module")
def row():
    return torch.randint(0, 256, (1, 40), generator=torch.Generator().manual_seed(1))


def scores(model, row, view=CAUSAL):
    opened = open_model(describe(model))
    with torch.no_grad():
        return opened.hidden(opened.embed(row), view)


def test_a_gguf_file_gives_the_scores_of_its_model_and_its_header_is_parsed_once(
    network, packed, row, tmp_path, monkeypatch
):
    path, parsed = packed(tmp_path / "small.gguf", network), []
    before = gguf.GGUFReader, gguf.get_tensor_name_map

    class Counted(gguf.GGUFReader):
        def __init__(self, file):
            parsed.append(file)
            super().__init__(file)

    monkeypatch.setattr(gguf, "GGUFReader", Counted)
    with torch.no_grad():
        assert torch.allclose(scores(path, row), network(row).logits, atol=1e-5)
    assert parsed == [str(path)]
    monkeypatch.undo()
    assert before == (gguf.GGUFReader, gguf.get_tensor_name_map)


def test_a_gguf_file_that_changes_is_parsed_again(network, packed, tmp_path):
    path = packed(tmp_path / "small.gguf", network)
    assert open_model(describe(path)).vocabulary == 258
    path.unlink()
    packed(path, LlamaForCausalLM(LlamaConfig(**{**network.config.to_dict(), "vocab_size": 50})))
    assert open_model(describe(path)).vocabulary == 50


def test_a_gguf_file_reads_a_text_in_its_own_tokens(small, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the cab and the dab " * 400)
    read = text_of(describe(small), str(text), "yes")
    assert read.bos == 257 and len(read.held_out) > 100
    assert set(read.held_out.tolist()) == {*b"the cand", 256}  # of the bytes a and b together
    found = model_perplexity(small, [8, 16], text=str(text), samples=8)
    assert found.model == "small.gguf" and len(found.lengths) == 2


def test_a_file_that_cannot_be_read_is_refused_in_a_line(refusal, small, tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(small.read_bytes()[:4000])
    refusal(r"'broken.gguf' is no whole GGUF file", describe, broken)
    strange = tmp_path / "strange.gguf"
    writer = gguf.GGUFWriter(strange, "plamo")
    for add in (writer.add_block_count, writer.add_head_count, writer.add_embedding_length):
        add(2)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    refusal(r"cannot read this GGUF file .*plamo.*; accepted", open_model, describe(strange))


def test_a_live_model_is_read_and_stays_as_it_is(network, row):
    hooks = sum(len(m._forward_pre_hooks) for m in network.modules())
    narrow = scores(network, row, Mask(4))
    with torch.no_grad():
        whole = network(row).logits
    assert torch.equal(scores(network, row), whole) and not torch.allclose(narrow, whole)
    assert hooks == sum(len(m._forward_pre_hooks) for m in network.modules())
    assert all(weight.requires_grad for weight in network.parameters())


def test_a_name_is_looked_up_in_the_cache_of_the_hub(refusal, network, row, tmp_path, monkeypatch):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    refusal(r"is not in the hub's cache; .* hf download owner/small", describe, "owner/small")
    kept = tmp_path / "models--owner--small"
    network.save_pretrained(kept / "snapshots" / ("0" * 40))
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("0" * 40)
    found = describe("owner/small")
    assert found.name == "owner/small" and found.trained == 64
    with torch.no_grad():
        assert torch.allclose(scores("owner/small", row), network(row).logits, atol=1e-6)


def test_a_run_is_known_by_its_key_and_a_folder_by_its_place(refusal, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "runs" / ("abc" + "0" * 13)
    run.mkdir(parents=True)
    (run / "weights.safetensors").write_text("")
    assert place_of("abc", "runs").name == run.name
    (tmp_path / "abc").mkdir()
    assert place_of("abc", "runs") == "abc"
    assert place_of("owner/small", "runs") == "owner/small"
    refusal("names no finished runs", place_of, "def", "runs")


def test_what_is_no_model_is_refused_in_a_line(refusal):
    refusal("model 'int' is no model; accepted: a folder", describe, 7)
