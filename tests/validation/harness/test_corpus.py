import hashlib
import importlib
import os

import numpy as np
import pytest

from farfield.theory.answers.answer import InputError
from farfield.validation.harness.corpus import Corpus, _builtin, corpus, samples_of


def test_builtin_text_is_the_library_without_tests():
    one = corpus()
    _builtin.cache_clear()
    two = corpus()
    assert one.sha256 == two.sha256
    assert 0.05 < len(one.held_out) / (len(one.train) + len(one.held_out)) < 0.2
    assert len(one.train) > 5_000_000
    both = one.train.tobytes() + one.held_out.tobytes()
    assert b"class ArgumentParser" in both
    assert b"\nclass TestCase(" in both  # unittest is library ...
    assert b"class BasicTestMappingProtocol" not in both  # ... test.mapping_tests is not


def test_what_the_library_says_in_english():
    found = corpus("builtin:documentation")
    assert found.source.startswith("documentation of the standard library of Python 3")
    both = found.train.tobytes() + found.held_out.tobytes()
    assert len(both) > 1_000_000 and 0.05 < len(found.held_out) / len(both) < 0.2
    assert b"Record of phased-in incompatible language changes." in both  # of __future__
    with pytest.raises(InputError, match="accepted: builtin:documentation"):
        corpus("builtin:manual")
    assert b"def astuple(" not in both and b"Return the fields of a dataclass instance" in both


def test_the_hash_is_of_both_parts_and_of_where_they_part():
    def make(a, b):
        return Corpus("", np.frombuffer(a, np.uint8), np.frombuffer(b, np.uint8), 1, "").sha256

    assert make(b"ab", b"cd") == make(b"ab", b"cd")
    assert (
        len({make(b"ab", b"cd"), make(b"abc", b"d"), make(b"ab", b"ce"), make(b"", b"abcd")}) == 4
    )


def test_a_file_is_cut_at_its_last_tenth(tmp_path):
    (tmp_path / "a.txt").write_bytes(bytes(range(1, 201)))
    found = corpus(tmp_path / "a.txt")
    assert found.train.tobytes() == bytes(range(1, 181))
    assert found.held_out.tobytes() == bytes(range(181, 201))
    assert found.describe()["source"] == "file a.txt"
    assert str(tmp_path) not in str(found.describe())


def test_a_folder_holds_out_whole_files(tmp_path):
    names = [f"f{k:02}.txt" for k in range(60)]
    for name in reversed(names):
        (tmp_path / name).write_text(name * 10)
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0\0")
    (tmp_path / ".hidden").write_text("hidden")
    found = corpus(tmp_path)
    held = [n for n in names if hashlib.sha256(n.encode()).digest()[0] * 10 < 256]
    assert 3 <= len(held) <= 12
    assert found.held_out.tobytes().decode() == "".join(n * 10 for n in held)
    assert found.train.tobytes().decode() == "".join(n * 10 for n in names if n not in held)
    assert found.files == 60


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "does not exist"),
        (b"", "is empty"),
        (b"text\0text", "is binary"),
    ],
)
def test_a_file_that_is_no_text(tmp_path, content, message):
    path = tmp_path / "given.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        corpus(path)
    assert "given.txt" in str(error.value) and "accepted" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_folder_without_text(tmp_path):
    with pytest.raises(InputError, match="is empty"):
        corpus(tmp_path)
    (tmp_path / "a").write_bytes(b"\0")
    with pytest.raises(InputError, match="only binary files"):
        corpus(tmp_path)


def test_what_would_never_end(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is no regular file"):
        corpus(tmp_path / "pipe")
    with pytest.raises(InputError, match="is empty"):
        corpus(tmp_path)


def test_a_text_that_is_too_short(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"x" * 100)
    found = corpus(tmp_path / "a.txt")
    found.require(89, 9)
    with pytest.raises(InputError, match="training part has 90 bytes, a segment takes 91"):
        found.require(90, 9)
    with pytest.raises(InputError, match="held-out part has 10 bytes, a segment takes 11"):
        found.require(89, 10)


def test_a_folder_is_read_as_far_as_it_fits_into_memory(tmp_path, monkeypatch):
    module = importlib.import_module("farfield.validation.harness.corpus")
    (tmp_path / "text").write_bytes(b"ab\n" * 3000)
    with open(tmp_path / "weights", "wb") as file:
        file.truncate(1 << 36)  # a sparse file; it begins with zeros
    assert corpus(tmp_path).files == 1
    monkeypatch.setattr(module, "_MOST", 8999)
    with pytest.raises(InputError, match="more than 0 GiB of text"):
        corpus(tmp_path)


@pytest.mark.parametrize(("count", "length"), [(1, 3), (4, 3), (10, 9), (50, 5)])
def test_segments_cover_the_text_evenly(count, length):
    text = np.arange(100, dtype=np.uint8)
    rows = samples_of(text, count, length)
    assert rows.shape[1] == length + 1 and len(rows) == min(count, 100 - length)
    assert (np.diff(rows) == 1).all()
    assert rows[0, 0] == 0 and (count == 1 or rows[-1, -1] == 99)


def test_a_file_stays_on_the_disk_and_has_the_same_parts(tmp_path):
    file = tmp_path / "text.txt"
    file.write_bytes(bytes(range(1, 201)) * 10)
    text = corpus(file)
    assert isinstance(text.train.base, np.memmap) or isinstance(text.train, np.memmap)
    assert text.train.tobytes() + text.held_out.tobytes() == file.read_bytes()
    assert len(text.held_out) == 200
