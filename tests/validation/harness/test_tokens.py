import numpy as np
import pytest

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding
from farfield.validation.harness.configuration import Configuration
from farfield.validation.harness.corpus import corpus
from farfield.validation.harness.experiment import train_and_measure
from farfield.validation.harness.store import Store


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokens") / "words.npy"
    np.save(path, np.random.default_rng(0).integers(0, 300, 4000).astype(np.uint16))
    return path, corpus(path)


def test_tokens_stay_on_the_disk_and_are_cut_at_their_last_tenth(made):
    path, found = made
    whole = np.load(path)
    assert isinstance(found.train, np.memmap) and found.train.dtype == np.uint16
    assert np.concatenate([found.train, found.held_out]).tolist() == whole.tolist()
    assert (found.vocabulary, found.unit) == (whole.max() + 1, "token")
    assert found.describe()["train_tokens"] == 3600 and found.describe()["vocabulary"] == 300
    assert found.split == "the last tenth of all tokens held out"


def test_few_tokens_are_bytes(made, tmp_path):
    np.save(tmp_path / "few.npy", np.arange(200, dtype=np.uint32))
    assert corpus(tmp_path / "few.npy").vocabulary == 256


@pytest.mark.parametrize(
    "given", [np.zeros((2, 3), np.uint8), np.zeros(9), np.zeros(0, np.uint16), np.array([-1]), None]
)
def test_what_holds_no_tokens(given, tmp_path):
    path = tmp_path / "wrong.npy"
    path.write_bytes(b"no array") if given is None else np.save(path, given)
    with pytest.raises(InputError, match=r"wrong\.npy holds no tokens; accepted"):
        corpus(path)


def test_a_model_of_tokens_is_trained_and_found_again(made, small, tmp_path):
    configuration = Configuration(encoding("rope"), made[1], small)
    assert configuration.training()["vocabulary"] == made[1].vocabulary
    first = train_and_measure(configuration, Store(tmp_path))
    assert first["text"]["vocabulary"] == 300
    assert train_and_measure(configuration, Store(tmp_path)) == first
