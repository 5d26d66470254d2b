"""Needles in a few blocks of a row: where all blocks are kept it is the row."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from farfield.theory.answers.errors import InputError
from farfield.validation.far_field.needles import (
    AROUND,
    BLOCK,
    KINDS,
    blocks_of,
    needle_row,
    recalled,
)

LENGTH, DISTANCES = 2048, (600, 900, 1300)
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 512}


def encode(text):
    return list(text.encode())


def decode(tokens):
    return bytes(min(t, 255) for t in tokens).decode(errors="replace")


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    config = LlamaConfig(**SIZES, intermediate_size=32, initializer_range=0.2)
    return LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def row():
    return needle_row(encode, torch.full((LENGTH,), 400), LENGTH, DISTANCES, seed=1)


def test_needles_stand_where_they_should_and_the_end_asks_for_each(row):
    assert len(row.tokens) == LENGTH + 1
    assert [n.distance for n in row.needles] == list(DISTANCES)
    assert {n.kind for n in row.needles} == {*KINDS}
    for needle in row.needles:
        assert needle.place == LENGTH - needle.distance
        answer = decode(row.tokens[needle.answer.start : needle.answer.stop])
        sentence = decode(row.tokens[needle.place : needle.place + AROUND])
        question = decode(row.tokens[needle.answer.start - 70 : needle.answer.start])
        name = question.split()[-3] if needle.kind == "city" else question.split()[-2]
        assert answer.strip() in sentence and name in sentence
        assert needle.answer.start >= LENGTH - BLOCK


def test_with_all_places_kept_it_is_the_loss_of_the_row(network, row):
    with torch.no_grad():
        scores = network(row.tokens[None, :-1]).logits[0].double().log_softmax(-1)
    nats = scores.gather(-1, row.tokens[1:, None])[:, 0]
    for needle, got in zip(row.needles, recalled(network, row, torch.arange(LENGTH)), strict=True):
        at = slice(needle.answer.start - 1, needle.answer.stop - 1)
        assert got.log_probability == pytest.approx(float(nats[at].sum()), abs=1e-4)


def test_blocks_stand_at_their_true_positions(network, row):
    """The same blocks, moved together, are the same row for rotations."""
    kept = blocks_of(row)
    assert len(kept) <= 2 * BLOCK + len(DISTANCES) * AROUND
    assert {*range(BLOCK), *range(LENGTH - BLOCK, LENGTH)} <= {*kept.tolist()}
    for needle in row.needles:
        assert {*range(needle.place, needle.place + 40)} <= {*kept.tolist()}
    shifted = [r.log_probability for r in recalled(network, row, kept)]
    dense = [r.log_probability for r in recalled(network, row, torch.arange(LENGTH))]
    assert shifted != pytest.approx(dense, abs=1e-4)


def test_a_text_that_is_cut_has_lost_its_needles(network, row):
    cut = recalled(network, row, torch.arange(LENGTH), cut=1000)
    tokens = row.tokens.clone()
    tokens[: LENGTH - 1000] = 7
    other = type(row)(tokens, row.needles)
    assert recalled(network, other, torch.arange(LENGTH), cut=1000) == cut
    assert recalled(network, other, torch.arange(LENGTH)) != recalled(
        network, row, torch.arange(LENGTH)
    )


def test_rows_that_cannot_hold_their_needles_are_refused_in_a_line():
    text = torch.full((LENGTH,), 400)
    with pytest.raises(InputError, match="the text has 100 tokens; a row needs 2048"):
        needle_row(encode, text[:100], LENGTH, DISTANCES)
    for distances in ((400,), (700, 750), (2000,), ()):
        with pytest.raises(InputError, match="at least 512 tokens before the end"):
            needle_row(encode, text, LENGTH, distances)
