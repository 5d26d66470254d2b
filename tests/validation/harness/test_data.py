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
    for folder in ("test", ".git", "tests"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.txt").write_text("left out")
    text = read_text(tmp_path)
    train, held = (bytes(part).decode().split("\n") for part in (text.train, text.held_out))
    assert not set(train[:-1]) & set(held[:-1]) and len(train) + len(held) == 602
    assert train[:-1] == sorted(train[:-1]) and train[-1] == held[-1] == ""
    assert min(held[:-1]) < max(train)  # by their names, not from the end
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


def test_a_folder_is_read_to_its_most_and_no_file_with_a_zero_byte(refusal, tmp_path, monkeypatch):
    monkeypatch.setattr("farfield.validation.harness.data._MOST", 100)
    monkeypatch.setattr("farfield.validation.harness.data._CHUNK", 10)
    for name, content in (("a", b"a" * 60), ("b", b"b" * 40), ("early", b"\0" * 500)):
        (tmp_path / name).write_bytes(content)
    text = read_text(tmp_path)
    assert bytes(text.train) + bytes(text.held_out) == b"a" * 60 + b"b" * 40
    (tmp_path / "b").write_bytes(b"b" * 39 + b"\0")  # behind what is looked at first
    text = read_text(tmp_path)
    assert bytes(text.train) + bytes(text.held_out) == b"a" * 60
    refusal("file b is binary", read_text, tmp_path / "b")
    refusal("file early is binary", read_text, tmp_path / "early")
    (tmp_path / "b").write_bytes(b"b" * 41)
    refusal("has more than 0 GiB of text; accepted: less, or one", read_text, tmp_path)


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
    np.save(tmp_path / "none.npy", np.zeros(0, np.uint8))
    refusal("file none.npy holds no tokens", read_text, tmp_path / "none.npy")


def test_seed_and_step_alone_decide_a_batch():
    text = Text("numbers", np.arange(200, dtype=np.uint8), np.arange(50, dtype=np.uint8))
    for source in (text, InductionRows(Induction(vocabulary=64))):
        x, y = source.batch(1, 5, 4, 20)
        assert x.shape == y.shape == (4, 20)
        assert ((y[:, :-1] == x[:, 1:]) | (y[:, :-1] == NOT_ASKED)).all()
        assert (source.batch(1, 5, 4, 20)[0] == x).all()
        assert all((source.batch(*other, 4, 20)[0] != x).any() for other in ((2, 5), (1, 6)))


def test_rows_are_evenly_spaced_and_refused_where_the_text_is_short(refusal):
    assert samples(np.arange(100), 3, 9)[:, 0].tolist() == [0, 45, 90]
    assert samples(np.arange(100), 10**15, 9)[:, 0].tolist() == [*range(91)]
    text = Text("numbers", np.arange(10, dtype=np.uint8), np.arange(10, dtype=np.uint8))
    refusal("has 10 tokens, a row takes 11", samples, text.train, 1, 10)
    for lengths in ((10, 9), (9, 10)):
        refusal("too short", text.require, *lengths)


def test_an_answer_of_the_task_stood_behind_the_same_token_once_before(refusal):
    """The key is 2 tokens before or more, at each distance that there is room for; a token and its
    answer are asked for once, and never two in a row."""
    rows = InductionRows(Induction(vocabulary=64))
    tokens, targets = rows.batch(0, 0, 2000, 12)
    asked, distances = targets != NOT_ASKED, {t: set() for t in range(3, 12)}
    assert not (asked[:, 1:] & asked[:, :-1]).any()
    assert np.mean(asked[:, 3]) == pytest.approx(0.35, abs=0.03)  # the chance that is usual
    for row, answers in zip(tokens, targets, strict=True):
        questions = np.flatnonzero(answers != NOT_ASKED)
        for t in questions:
            (key,) = np.flatnonzero(row[:t] == row[t])
            assert answers[t] == row[key + 1]
            distances[t].add(int(t - key))
        repeats = {*questions, *(questions + 1)} & {*range(12)}
        assert len({*row}) == 12 - len(repeats)
    assert distances == {t: {*range(2, t + 1)} for t in range(3, 12)}
    held, first = rows.held(5, 12), rows.batch(2**63, 0, 5, 12)  # above the seeds of runs
    assert all((a == b).all() for a, b in zip(held, first, strict=True))
    rows = InductionRows(Induction(vocabulary=200))
    for distance in (1, 7, 58):
        probe = rows.probe(0, 5, 60, distance)
        assert (probe[:, 59] == probe[:, 58 - distance]).all()
        assert (probe[:, 60] == probe[:, 59 - distance]).all()
        assert all(len(set(p[:59])) == 59 for p in probe)
    for lengths in ((60, 200), (200, 60), (3, 60), (60, 3)):
        refusal("of 200; accepted are rows from 4 tokens, shorter than", rows.require, *lengths)
    rows.require(4, 199), rows.require(199, 4)
