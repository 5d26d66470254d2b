"""A pass through a model is over before another begins: its hook answers one caller."""

import pytest

import farfield
from farfield.validation.far_field.model_on_text import Settings
from farfield.validation.models.library_network import LibraryNetwork

KINDS = {
    "bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 4},
    "llama": {
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 256,
    },
}


@pytest.mark.parametrize("kind", KINDS)
def test_blame_asks_the_network_one_row_at_a_time(kind, tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    shape = transformers.AutoConfig.for_model(kind, vocab_size=256, **KINDS[kind])
    transformers.AutoModelForCausalLM.from_config(shape).save_pretrained(tmp_path / kind)
    inside, scores = [], LibraryNetwork.scores

    def once(network, *given):
        assert not inside, "a pass within a pass"
        inside.append(True)
        try:
            return scores(network, *given)
        finally:
            inside.clear()

    monkeypatch.setattr(LibraryNetwork, "scores", once)
    few = Settings(groups=2, rows=4)
    found = farfield.blame(tmp_path / kind, to=128, length=32, settings=few)
    assert len(found.layers) == 2
