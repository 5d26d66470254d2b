"""Needles in a few blocks of a row: where all blocks are read it is the row."""

import functools
import itertools
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from farfield.validation.far_field.long_rows import Sampling, Stages
from farfield.validation.far_field.readings import RowReadings, Way, begins
from farfield.validation.far_field.recall import (
    KINDS,
    MOST,
    NeedleScore,
    Told,
    distances,
    drawn,
    needle_row,
    needles_of,
    part_of,
    recalled,
)
from farfield.validation.harness.runs import model_of
from farfield.validation.harness.settings import Run
from farfield.validation.models.network import TrainedNetwork, scores_at
from farfield.validation.models.repairs import Repair, Repaired

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
    assert len(row.tokens) == LENGTH + 1 and len({n.kind for n in row.needles}) == 3
    for needle in row.needles:
        place, at = LENGTH - needle.distance, needle.answer
        answer = decode(row.tokens[at.start : at.stop]).strip()
        sentence = decode(row.tokens[place : place + 64]).split("\n")[1]
        before = decode(row.tokens[at.start - 40 : at.start]).split("\n")[-1]
        assert sentence.startswith(f"{before} {answer}") and at.start >= LENGTH - BLOCK
        assert needle.chance == pytest.approx(-math.log(len(KINDS[needle.kind].answers)))


def test_each_kind_asks_for_names_of_its_own():
    each = drawn(MOST, 3)
    assert len({n.question for n in each}) == MOST and {n.kind for n in each} == {*KINDS}
    assert all(n.context.startswith(f"{n.question} {n.answer}") for n in each)
    assert drawn(MOST, 3) == each != drawn(MOST, 4)
    assert [drawn(1, seed)[0].kind for seed in range(10)] == [*KINDS] * 2
    assert [len({n.question for n in drawn(k, 0)}) for k in (100, 101)] == [100, 100]
    numbers = {kind: (min(KINDS[kind].answers), max(KINDS[kind].answers)) for kind in KINDS}
    assert [numbers[kind] for kind in ("code", "setting", "function")] == [
        ("1111", "9999"),
        *[("100", "999")] * 2,
    ]


def test_a_sequence_is_asked_for_by_its_first_half():
    """In a text of 100 tokens, which begins again."""
    far = distances(64, 1024, 256)
    row = needle_row(None, torch.arange(100) * 2, 1024, far, block=64)
    assert [n.distance for n in row.needles] == far and len(row.tokens) == 1025
    for needle in row.needles:
        place, end = 1024 - needle.distance, needle.answer.stop
        assert torch.equal(row.tokens[place : place + 8], row.tokens[end - 8 : end])
        assert len(needle.answer) == 4 and {*range(place, place + 8)} <= {*row.places().tolist()}
        assert needle.chance == pytest.approx(-4 * math.log(100))
    assert (row.size, row.block, row.length) == (8 * len(far), 64, 1024) and len(far) == 8


def test_needles_of_a_file_are_asked_in_its_words(tmp_path, refusal):
    file = tmp_path / "needles.jsonl"
    own = [
        {"context": f"Bay {k}: {k}9.", "question": f"Bay {k}:", "answer": f"{k}9"}
        for k in (1, 2, 3)
    ]
    file.write_text("\n".join(map(json.dumps, own)))
    told = needles_of(file, encode)
    assert [n.context for n in told] == ["Bay 1: 19.", "Bay 2: 29.", "Bay 3: 39."]
    assert {n.chance for n in told} == {-math.log(3)}
    row = needle_row(encode, torch.full((LENGTH,), 40), LENGTH, (600, 900), told=told)
    assert {n.kind for n in row.needles} == {"file"} and "Bay" in decode(row.tokens[-60:-1])
    for letters, fits in ((94, True), (95, False)):  # of three quarters of a part, and two ends
        long = [told[0]._replace(context="x" * letters)]
        asked = encode, torch.full((LENGTH,), 40), LENGTH, (600,), 0, BLOCK, long
        if fits:
            assert len(needle_row(*asked).needles) == 1
        else:
            refusal("1 questions take .* a needle 97; accepted: .* 512 .* 96", needle_row, *asked)


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        "no json",
        '{"context": "a", "question": 3, "answer": "b"}',
        '{"context": "a", "question": " ", "answer": "b"}',
        "[1]",
    ],
)
def test_a_file_of_another_form_is_refused_by_its_line(refusal, tmp_path, line):
    file = tmp_path / "needles.jsonl"
    good = json.dumps({"context": "a is b", "question": "a is", "answer": "b"})
    file.write_text(f"{good}\n{line}\n")
    refusal(r"line 2: .*accepted: a line such as", needles_of, file, encode)
    refusal("accepted: a text file", needles_of, tmp_path / "none.jsonl", encode)
    file.write_text(good)
    refusal("1 lines; accepted", needles_of, file, encode)


def test_needles_that_a_row_has_no_room_for_are_refused_by_their_line(refusal, tmp_path):
    file, good = tmp_path / "needles.jsonl", {"context": "a", "question": "a", "answer": "b"}
    for key in good:
        long = good | {key: "b" * 95}
        file.write_text(f"{json.dumps(good)}\n{json.dumps(long)}\n")
        refusal(r"line 2: 9\d tokens; accepted: .* of up to 94", needles_of, file, encode)
    full = {"context": "c" * 94, "question": "q" * 93, "answer": "b"}
    file.write_text(f"{json.dumps(full)}\n" * 2)
    assert {n.chance for n in needles_of(file, encode)} == {-math.log(2)}
    refusal("the model has no tokenizer", needles_of, file, None)


@pytest.mark.parametrize(("block", "part"), [(512, 128), (1024, 128), (1024, 48), (512, 97)])
def test_more_needles_are_asked_for_until_no_room_is_left(block, part):
    """A band that is full has a needle in each part: rounding to even numbers left half of them."""
    before = 0
    for most in (6, 12, 24, 48, 96, 192):
        found = distances(block, 16384, 4096, most, part)
        assert before <= len(found) <= most and sorted({*found}) == found
        apart = [b - a for a, b in itertools.pairwise([*found, 16384])]
        assert min(found) >= block and min(apart) >= part
        before = len(found)
    near = [n for n in distances(1024, 16384, 8192, 96, 128) if n < 2048]
    assert near == [*range(1024, 2048, 128)]


def test_needles_stand_nearest_to_the_middles_of_equal_pieces_of_a_band():
    """In parts of 128 tokens from where the band begins; of two that are as near, the nearer one
    to the end. A quarter of 24 are within 2,048 tokens."""
    near, within, beyond = (512, 2048, 6), (2048, 8192, 9), (8192, 16384 - 128, 9)
    places = iter(distances(512, 16384, 8192, 24))
    for low, high, count in (near, within, beyond):
        for k in range(count):
            part, middle = next(places) - low, (k + 1 / 2) * (high - low) / count
            assert part % 128 == 0 and -64 <= part - middle < 64
    assert not [*places]


@pytest.mark.parametrize("repair", [Repair(), Repair(group=(2, 128)), Repair(window=300)])
def test_an_end_of_several_says_what_it_says_alone(network, repair):
    """Each end of a row sees the row and itself: with another end in its place, or alone."""
    far = range(1200, 1800, 60)
    row = needle_row(encode, torch.full((LENGTH,), 40), LENGTH, far, 1, BLOCK, ends=2, part=50)
    size, read = row.size, functools.partial(scores_at, Repaired(network, repair))
    assert len(row.tokens) == LENGTH + size + 1 and len(row.needles) == len(far)
    both = [n.answer.start >= LENGTH for n in row.needles]
    assert sum(both) == 5 and {n.answer.stop for n in row.needles} & {LENGTH - 1, LENGTH + size - 1}
    for cut in (None, 1500):
        _, scores = recalled(row, read, cut, whole=True)
        for end, moved in ((0, 0), (1, size)):
            tail = row.tokens[LENGTH - size + moved : LENGTH + moved]
            tokens = torch.cat(
                [row.tokens[: LENGTH - size], tail, torch.zeros(1, dtype=torch.long)]
            )
            own = [n for n, second in zip(row.needles, both, strict=True) if second == bool(end)]
            asked = (
                n._replace(answer=range(n.answer.start - moved, n.answer.stop - moved)) for n in own
            )
            alone = row._replace(tokens=tokens, needles=tuple(asked))
            _, wanted = recalled(alone, read, cut, whole=True)
            found = [s for s, second in zip(scores, both, strict=True) if second == bool(end)]
            for one, other in zip(found, wanted, strict=True):
                assert one.distance == other.distance and one.right == other.right
                assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)


@pytest.mark.parametrize("whole", [False, True])
def test_places_are_read_at_their_true_positions(row, whole):
    """Of the row, and of the row that is cut: it begins with a block of its own."""
    asked = []

    def read(tokens, positions, keep):
        asked.append((tokens[0], positions, keep))
        return torch.zeros(1, len(keep), 256)

    for cut in (None, 1000):
        recalled(row, read, cut, whole, 10 * whole)
        tokens, positions, keep = asked[-1]
        begin = LENGTH - (cut or LENGTH)
        assert torch.equal(tokens, row.tokens[positions + begin])
        read_ = {*range(begin, begin + BLOCK), *range(LENGTH - BLOCK, LENGTH)}
        for needle in row.needles:  # a quarter of the part before it
            at = LENGTH - needle.distance - 32
            read_ |= {*range(max(begin, at), at + 128)}
        places = [*range(begin, LENGTH)] if whole else sorted(read_)
        assert (positions + begin).tolist() == places
        answers = [place for needle in row.needles for place in needle.answer]
        targets = [*range(row.asks - 10 * whole, row.asks), *answers]
        assert (positions[keep] + begin + 1).tolist() == targets


def test_a_needle_is_recalled_by_all_tokens_of_its_answer(row):
    """By a model that says each token but two, of a text of 256, and gives every other e^-9."""
    missed = torch.tensor([row.needles[1].answer[-1], row.asks - 3])

    def read(tokens, positions, keep):
        scores = torch.zeros(1, len(keep), 256)
        scores[0, range(len(keep)), row.tokens[positions[keep] + 1]] = 9.0
        scores[0, torch.isin(positions[keep] + 1, missed)] *= -1
        return scores

    each, other = math.log1p(255 * math.exp(-9)), 9 + math.log(255 + math.exp(-9))
    loss, scores = recalled(row, read, cut=9 * LENGTH, whole=True, last=10)
    assert loss.tolist() == pytest.approx([each] * 7 + [other] + [each] * 2, rel=1e-4)
    for needle, score in zip(row.needles, scores, strict=True):
        wrong = needle == row.needles[1]
        total = -each * len(needle.answer) - wrong * (other - each)
        assert score.log_probability == pytest.approx(total, rel=1e-4)
        assert (score.right, score.row, score.chance) == (not wrong, 1, needle.chance)
        assert (score.kind, score.distance) == (needle.kind, needle.distance)
        assert score.gain == max(0, score.log_probability - needle.chance)
    assert row.asks == min(n.answer.start for n in row.needles) - 64
    assert NeedleScore("pet", 9, -1.0, True).gain == math.inf


def test_rows_that_cannot_hold_their_needles_are_refused_in_a_line(refusal):
    text = torch.full((LENGTH,), 40)
    for far in ((400,), (511,), (700, 750), (700, 827), (2000,), (1921,), ()):
        said = refusal("512 tokens before the end", needle_row, encode, text, LENGTH, far)
        assert said.endswith("and 128 tokens apart")
    assert len(needle_row(encode, text, LENGTH, (512, 640, 1920)).needles) == 3
    refusal(
        "questions take", needle_row, encode, text, LENGTH, range(600, 1900, 130), seed=5, block=128
    )


@pytest.mark.parametrize("sharpness", (5, 6))
def test_recall_is_foreseen_with_its_dilution(sharpness, copier):
    """A row of 512 different tokens asks for one in its first block. The blocks of the question
    alone say it is recalled; with far keys between, it is as likely as on the whole row."""
    network, draws = copier(sharpness), torch.Generator().manual_seed(1)
    said, real, alone = [], [], []
    for _ in range(6):
        row = torch.randperm(600, generator=draws)[:513]
        stages = Stages(network, row.unfold(0, 65, 64), 1, Sampling(1024, math.inf))
        stages.plain()
        stages.stage(1, [64, 512])
        asked, answer = row[:-1].clone(), row[21]
        asked[-1] = row[20]
        at = torch.cat([torch.arange(64), torch.arange(384, 512)])
        far = stages.blocks(asked[None, at], at, 1, [64, 512], torch.tensor([[6, 7]]))
        whole, blocks = (
            scores_at(network, asked[None], torch.arange(512), 1),
            scores_at(network, asked[None, at], at, 1),
        )
        for into, scores in ((said, far), (real, whole), (alone, blocks)):
            into.append(float(scores[0, 0].softmax(-1)[answer]))
    said, real, alone = (torch.tensor(x).log().mean() for x in (said, real, alone))
    assert abs(said - real) < 0.1 < alone - real


TEXT = np.arange(9000) % 251


def needles_in(way, length, row, to=4096, told=()):
    """The row with needles that a model of bytes is read with."""
    subject = SimpleNamespace(
        length=length, text=TEXT, encode=encode, outline=SimpleNamespace(trained=2048)
    )
    return RowReadings(subject, to, way, None, told)._needles(row)


@pytest.mark.parametrize(
    ("way", "length", "row", "to", "block", "ends"),
    [
        (Way.FAR, 512, 0, 4096, 512, 1),
        (Way.FAR, 256, 2, 4096, 256, 1),
        (Way.REAL, 512, 0, 4096, 1024, 1),
        (Way.REAL, 512, 1, 4096, 1024, 2),
        (Way.REAL, 512, 1, 4095, 512, 1),
        (Way.REAL, 256, 1, 4096, 256, 1),
    ],
)
def test_a_row_asks_in_words_where_its_end_has_room_and_twice_where_it_is_read_whole(
    way, length, row, to, block, ends
):
    found = needles_in(way, length, row, to)
    assert (found.block, found.length, found.row) == (block, to, row)
    assert len(found.tokens) == to + (ends - 1) * found.size + 1
    words = length >= 512
    assert ({n.kind for n in found.needles} <= {*KINDS}) is words
    assert words or {n.kind for n in found.needles} == {"sequence"}
    far = [n.distance for n in found.needles]
    begin = begins(len(TEXT) - to, row)
    assert found.tokens[:40].tolist() == TEXT[begin : begin + 40].tolist()
    most, part = (24, 48)[block > 512] * ends, part_of(block)
    if words:  # even if each question were the longest, three quarters of an end had room
        longest = max(len(f"{n.question} {n.answer}") + 1 for n in drawn(5, 0))
        most = min(most, ends * int(0.75 * block / longest))
        stands = max(len(n.context) + 2 for n in drawn(5, 0))
        part = min(part, max(48, 2 * stands)) if block > 512 else part
    assert far == distances(block, to, 2048, most, part)
    told = [Told("file", f"k{k} is {k}.", f"k{k} is", str(k), -1.0) for k in range(3)]
    own = needles_in(way, length, row, to, told).needles
    assert {n.kind for n in own} == {"file" if words else "sequence"}
    few = distances(block, to, 2048, 3, 48 if block > 512 else part)
    assert [n.distance for n in own] == (few if words else far)
