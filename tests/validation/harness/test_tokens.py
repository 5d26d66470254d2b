import sys
import types
from importlib.machinery import ModuleSpec

import numpy as np
import pytest
import tokenizers

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding
from farfield.validation.harness.configuration import Configuration
from farfield.validation.harness.corpus import corpus, opened, tokenized
from farfield.validation.harness.experiment import train_and_measure
from farfield.validation.harness.store import Store


@pytest.fixture(scope="module")
def made(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokens")
    return folder, tokenized(text, 300, folder)


def test_tokens_stand_for_the_same_text(made, text):
    folder, found = made
    coder = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    for part, original in ((found.train, text.train), (found.held_out, text.held_out)):
        assert isinstance(part, np.memmap) and part.dtype == np.uint16
        assert coder.decode(part.tolist()).encode() == original.tobytes()
    assert 256 < found.vocabulary <= 300 and found.train.max() < found.vocabulary
    assert found.bytes_a_token == len(text.held_out) / len(found.held_out) > 2
    assert found.describe()["train_tokens"] == len(found.train)


def test_tokens_are_deterministic_and_made_once(made, text, tmp_path, monkeypatch):
    folder, found = made
    assert tokenized(text, 300, tmp_path).sha256 == found.sha256 != text.sha256
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert tokenized(text, 300, folder).sha256 == found.sha256
    assert corpus(folder).sha256 == opened(folder).sha256 == found.sha256
    with pytest.raises(InputError, match="tokens of another text or size"):
        tokenized(text, 301, folder)
    with pytest.raises(InputError, match="needs tokenizers"):
        tokenized(text, 300, tmp_path / "other")


def test_bytes_that_are_no_text_and_wide_vocabularies(tmp_path):
    (tmp_path / "a").write_bytes(bytes(range(1, 256)) * 200)
    found = tokenized(corpus(tmp_path / "a"), 257, tmp_path / "tokens")
    assert len(found.train) > 0


def test_damaged_token_files(text, tmp_path):
    tokenized(text, 270, tmp_path)
    with open(tmp_path / "train.bin", "ab") as file:
        file.write(b"more")
    with pytest.raises(InputError, match=r"train\.bin is not what was written"):
        corpus(tmp_path)
    (tmp_path / "tokens.json").write_text("{")
    with pytest.raises(InputError, match="is not readable"):
        corpus(tmp_path)


def test_what_cannot_be_tokenized(made, text, tmp_path):
    for given, size in ((made[1], 300), (text, 256)):
        with pytest.raises(InputError, match="accepted is a text of bytes, and more than 256"):
            tokenized(given, size, tmp_path)


def test_a_model_of_tokens_is_trained_and_found_again(made, small, tmp_path):
    configuration = Configuration(encoding("rope"), made[1], small)
    assert configuration.training()["vocabulary"] == made[1].vocabulary
    first = train_and_measure(configuration, Store(tmp_path))
    assert first["text"]["bytes_a_token"] > 2
    assert train_and_measure(configuration, Store(tmp_path)) == first


def library(splits, monkeypatch):
    """A stand-in for the library `datasets`: what its cache holds."""

    def load_dataset(path, name=None):
        if (path, name) != ("some/thing", "raw"):
            raise FileNotFoundError(f"Couldn't reach '{path}'\nand a long story")
        return {
            k: Rows(v) if isinstance(v, dict) else types.SimpleNamespace(column_names=["image"])
            for k, v in splits.items()
        }

    class Rows(dict):
        column_names = ("text",)

    spec = ModuleSpec("datasets", None)  # a library that is asked for must have one
    stand_in = types.SimpleNamespace(load_dataset=load_dataset, __spec__=spec)
    monkeypatch.setitem(sys.modules, "datasets", stand_in)


def test_a_data_set_from_the_local_cache(monkeypatch):
    library({"train": {"text": ["a b", "c"] * 50}, "test": {"text": ["d é"]}}, monkeypatch)
    found = corpus("dataset:some/thing/raw")
    assert found.train.tobytes() == b"\n".join([b"a b", b"c"] * 50)
    assert found.held_out.tobytes().decode() == "d é"
    library({"train": {"text": ["x" * 99]}}, monkeypatch)
    assert len(corpus("dataset:some/thing/raw").held_out) == 9
    with pytest.raises(InputError, match="is not in the local cache") as error:
        corpus("dataset:other")
    assert "\n" not in str(error.value)
    library({"train": None}, monkeypatch)
    with pytest.raises(InputError, match="no column 'text'"):
        corpus("dataset:some/thing/raw")
    library({}, monkeypatch)
    with pytest.raises(InputError, match="no training part"):
        corpus("dataset:some/thing/raw")


def test_without_the_library_of_data_sets(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match="which is not installed"):
        corpus("dataset:wikitext")
