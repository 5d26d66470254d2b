"""Texts and tasks: what is held out, what decides a batch, what is refused."""

import numpy as np
import pytest

from farfield.validation.harness.data import NOT_ASKED, InductionRows, Text, read_text, samples
from farfield.validation.harness.settings import Induction


def test_a_folder_is_split_by_whole_files_in_the_order_of_their_names(tmp_path):
    for k in range(60):
        (tmp_path / f"part{k:02}.txt").write_text(f"file {k:02}\n" * 10)
    (tmp_path / "binary").write_bytes(b"a\0b")
    (tmp_path / ".hidden").write_text("hidden")
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "x.txt").write_text("left out")
    text = read_text(tmp_path)
    train, held = (bytes(part).decode().split("\n") for part in (text.train, text.held_out))
    assert not set(train[:-1]) & set(held[:-1]) and len(train) + len(held) == 602
    assert train[:-1] == sorted(train[:-1]) and "hidden" not in "".join(train + held)
    assert 0.05 <= len(text.held_out) / (len(text.held_out) + len(text.train)) < 0.2
    assert read_text(tmp_path).sha256 == text.sha256


def test_of_one_file_the_last_tenth_is_held_out(tmp_path):
    path = tmp_path / "one.txt"
    path.write_bytes(bytes(range(1, 101)))
    text = read_text(path)
    assert bytes(text.train) == bytes(range(1, 91)) and bytes(text.held_out) == bytes(
        range(91, 101)
    )
    assert isinstance(text.train, np.memmap)
    tokens = tmp_path / "tokens.npy"
    np.save(tokens, np.arange(1000, dtype=np.uint16))
    assert read_text(tokens).vocabulary == 1000 and read_text(tokens).train[-1] == 899


def test_the_library_comes_as_code_and_as_english():
    code, english = read_text(), read_text("builtin:documentation")
    assert len(code.train) > 5e6 and b"def " in bytes(code.train[:100_000])
    assert 1e5 < len(english.train) < len(code.train)


@pytest.mark.parametrize("content", [b"", b"a\0b"])
@pytest.mark.parametrize("name", ["x.txt", "folder/x.txt", "x.npy"])
def test_what_is_no_text_is_refused(refusal, content, name, tmp_path):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    given = path.parent if "folder" in name else path
    refusal(r"accepted: (text in|what numpy)", read_text, given)
    for missing in (tmp_path / "none", "builtin:other"):
        refusal("accepted", read_text, missing)


def test_seed_and_step_alone_decide_a_batch():
    text = Text("numbers", np.arange(200, dtype=np.uint8), np.arange(50, dtype=np.uint8))
    for data in (text, InductionRows(Induction(vocabulary=64))):
        x, y = data.batch(1, 5, 4, 20)
        assert x.shape == y.shape == (4, 20)
        assert ((y[:, :-1] == x[:, 1:]) | (y[:, :-1] == NOT_ASKED)).all()
        assert (data.batch(1, 5, 4, 20)[0] == x).all()
        assert (data.batch(2, 5, 4, 20)[0] != x).any() and (data.batch(1, 6, 4, 20)[0] != x).any()


def test_rows_are_evenly_spaced_and_refused_where_the_text_is_short(refusal):
    assert samples(np.arange(100), 3, 9)[:, 0].tolist() == [0, 45, 90]
    assert samples(np.arange(100), 10**15, 9)[:, 0].tolist() == [*range(91)]
    text = Text("numbers", np.arange(10, dtype=np.uint8), np.arange(10, dtype=np.uint8))
    refusal("has 10 tokens, a row takes 11", samples, text.train, 1, 10)
    for lengths in ((10, 9), (9, 10)):
        refusal("too short", text.require, *lengths)


def test_an_answer_of_the_task_stood_behind_the_same_token_before(refusal):
    rows = InductionRows(Induction(vocabulary=200))
    tokens, targets = rows.batch(0, 0, 8, 60)
    row, at = np.nonzero(targets != NOT_ASKED)
    assert len(row) > 50
    for r, t in zip(row, at, strict=True):
        before = np.flatnonzero(tokens[r, :t] == tokens[r, t])
        assert targets[r, t] in tokens[r, before + 1]
    for distance in (1, 7, 58):
        probe = rows.probe(0, 5, 60, distance)
        assert (probe[:, 59] == probe[:, 58 - distance]).all()
        assert (probe[:, 60] == probe[:, 59 - distance]).all()
        assert all(len(set(p[:59])) == 59 for p in probe)
    refusal("accepted are rows from 4 tokens, shorter than the voc", rows.require, 60, 200)
