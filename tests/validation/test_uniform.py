"""A model without training is named as what it is."""

import json

import pytest

from farfield.cli import main


def test_perplexity_names_a_model_without_training(tmp_path, capsys):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    shape = transformers.BloomConfig(vocab_size=256, hidden_size=32, n_layer=1, n_head=2)
    transformers.BloomForCausalLM(shape).save_pretrained(tmp_path / "model")
    (tmp_path / "text.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 500)
    words = ["perplexity", str(tmp_path / "model"), "--text", str(tmp_path / "text.txt")]
    with pytest.raises(SystemExit):
        main([*words, "--length", "16", "--samples", "8", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["notes"][0].startswith("the model has not learned: its loss of 5.")
    assert found["notes"][0].endswith("that of a uniform guess (5.545)")
