"""Needles in a few blocks of a row: where all blocks are read it is the row."""

import functools

import pytest
import torch

from farfield.theory.answers.errors import InputError
from farfield.validation.far_field.network import TrainedNetwork, nats, scores_at
from farfield.validation.far_field.recall import (
    KINDS,
    distances,
    needle_row,
    part_of,
    recalled,
)
from farfield.validation.harness.bias import model_of
from farfield.validation.harness.settings import Run

LENGTH, BLOCK = 2048, 512


def encode(text):
    return list(text.encode())


def decode(tokens):
    return bytes(min(t, 255) for t in tokens).decode(errors="replace")


@pytest.fixture(scope="module")
def network():
    run = Run(encoding="rope", layers=2, width=32, heads=4, length=64, spread=0.3)
    return TrainedNetwork(model_of(run).eval())


@pytest.fixture(scope="module")
def row():
    return needle_row(encode, torch.full((LENGTH,), 40), LENGTH, (600, 900, 1300), seed=1)


def test_needles_stand_where_they_should_and_the_end_asks_for_each(row):
    assert len(row.tokens) == LENGTH + 1 and {n.kind for n in row.needles} == {*KINDS}
    for needle in row.needles:
        place = LENGTH - needle.distance
        answer = decode(row.tokens[needle.answer.start : needle.answer.stop])
        sentence = decode(row.tokens[place : place + 100])
        question = decode(row.tokens[needle.answer.start - 70 : needle.answer.start])
        name = question.split()[-3] if needle.kind == "city" else question.split()[-2]
        assert answer.strip() in sentence and name in sentence
        assert needle.answer.start >= LENGTH - BLOCK


def test_a_sequence_is_asked_for_by_its_first_half():
    """In a text of 100 tokens, which begins again."""
    far = distances(64, 1024)
    row = needle_row(None, torch.arange(100) * 2, 1024, far, block=64)
    assert [n.distance for n in row.needles] == far and len(row.tokens) == 1025
    for needle in row.needles:
        place, end = 1024 - needle.distance, needle.answer.stop
        assert torch.equal(row.tokens[place : place + 8], row.tokens[end - 8 : end])
        assert len(needle.answer) == 4 and {*range(place, place + 8)} <= {*row.places().tolist()}


def test_with_all_places_read_it_is_the_loss_of_the_row(network, row):
    read = functools.partial(scores_at, network)
    whole = nats(read(row.tokens[None, :-1], torch.arange(LENGTH), LENGTH), row.tokens[None])[0]
    scores = recalled(row, read, whole=True)
    for needle, score in zip(row.needles, scores, strict=True):
        own = whole[needle.answer.start - 1 : needle.answer.stop - 1]
        assert score.log_probability == pytest.approx(-float(own.sum()), abs=1e-3)


def test_blocks_are_read_at_their_true_positions(row):
    """Of the row, and of the row that is cut: it begins with a block of its own."""
    asked = []

    def read(tokens, positions, keep):
        asked.append((tokens[0], positions, keep))
        return torch.zeros(1, len(keep), 256)

    for cut in (None, 1000):
        recalled(row, read, cut)
        tokens, positions, keep = asked[-1]
        begin = LENGTH - (cut or LENGTH)
        assert torch.equal(tokens, row.tokens[positions + begin])
        last = range(LENGTH - BLOCK - begin, LENGTH - begin)
        assert {*range(BLOCK), *last} <= {*positions.tolist()}
        assert len(positions) <= 2 * BLOCK + 3 * part_of(BLOCK)
        answers = [place for needle in row.needles for place in needle.answer]
        assert (positions[keep] + begin + 1).tolist() == answers


def test_a_text_that_is_cut_has_lost_its_needles(network, row):
    read = functools.partial(scores_at, network)
    tokens = row.tokens.clone()
    tokens[: LENGTH - 1000] = 7
    other = row._replace(tokens=tokens)
    assert recalled(other, read, 1000, whole=True) == recalled(row, read, 1000, whole=True)
    assert recalled(other, read, whole=True) != recalled(row, read, whole=True)


def test_rows_that_cannot_hold_their_needles_are_refused_in_a_line():
    text = torch.full((LENGTH,), 40)
    for far in ((400,), (700, 750), (2000,), ()):
        with pytest.raises(InputError, match="at least 512 tokens before the end"):
            needle_row(encode, text, LENGTH, far)
    with pytest.raises(InputError, match="questions take"):
        needle_row(encode, text, LENGTH, range(600, 1900, 130))
