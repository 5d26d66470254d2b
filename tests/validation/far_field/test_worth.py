"""What a far passage is worth: which targets are marked, and readings that leave nothing out."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import farfield
from farfield.validation.far_field.intervals import mean_and_half
from farfield.validation.far_field.long_rows import Sampling, Stages
from farfield.validation.far_field.model_on_text import Settings, subject_of
from farfield.validation.far_field.worth import (
    BYTES,
    WORDS,
    Passage,
    passages,
    readings,
    worth,
)
from farfield.validation.harness.runs import model_of
from farfield.validation.harness.settings import Run
from farfield.validation.models.network import TrainedNetwork, losses, nats, scores_at

ROW, LAST = 16, 4


def nearest(text, target, first):
    """The place after the last occurrence of the tokens before a target, by comparing slices."""
    context = text[target - BYTES : target].tolist()
    ends = range(target - 1, first + BYTES - 1, -1)
    return next((end for end in ends if text[end - BYTES : end].tolist() == context), None)


@pytest.mark.parametrize("seed", range(4))
def test_marked_targets_are_those_of_a_search_by_hand(seed):
    """Phrases that come again between random tokens."""
    draw = np.random.default_rng(seed)
    phrases = draw.integers(0, 200, (5, 14))
    parts = [
        (phrases[draw.integers(5)], draw.integers(0, 200, draw.integers(9))) for _ in range(70)
    ]
    text = np.concatenate([x for pair in parts for x in pair]).astype(np.uint8)
    to, starts, expected = 6 * ROW, [200, 700], []
    for group, start in enumerate(starts):
        for r in range(1, 8):
            end, by_distance = start + (r + 1) * ROW, {}
            for place in range(LAST):
                target = end - LAST + 1 + place
                at = nearest(text, target, max(0, end - to + ROW))
                if at is not None:
                    by_distance.setdefault(target - at, []).append((place, at))
            for each in by_distance.values():
                begin, last = each[0][1] - 4, min(each[-1][1] + 4, end - ROW)
                if end - to + ROW <= begin and begin + 8 <= end - ROW:
                    places = tuple(place for place, _ in each)
                    expected.append(Passage(group, r, begin, last, places))
    assert passages(text, starts, 8, ROW, LAST, to) == expected and len(expected) > 2


@pytest.mark.parametrize(("place", "marked"), [(79, 0), (80, 1), (176, 1), (177, 0)])
def test_a_passage_has_room_between_the_first_row_and_its_own(place, marked):
    """Half a row around it; rows of 64 tokens, four to a long row."""
    text = np.arange(300)
    text[256 - WORDS : 256] = text[place - WORDS : place]
    found = passages(text, [0], 4, 64, LAST, 256)
    assert [x.targets for x in found] == [(3,)] * marked


@pytest.mark.parametrize(("largest", "count"), [(255, 0), (256, 1)])
def test_longer_tokens_have_a_shorter_context(largest, count):
    text = np.arange(80)
    text[59:64], text[79] = text[20:25], largest
    assert len(passages(text, [0], 4, ROW, LAST, 64)) == count


@pytest.mark.parametrize("encoding", ("0", "rope", "alibi"))
def test_a_passage_that_fills_the_row_gives_the_row_of_the_model(encoding):
    run = Run(encoding=encoding, layers=2, width=32, heads=4, length=ROW)
    network = TrainedNetwork(model_of(run).eval())
    draws = torch.Generator().manual_seed(2)
    text = torch.randint(0, 200, (5 * ROW + 1,), generator=draws)
    rows, targets = text.unfold(0, ROW + 1, ROW), (0, 2)
    begin, end = 3 * ROW - 9, 3 * ROW
    to = 2 * ROW + end - begin  # the first row, the passage, the row itself
    passage = Passage(0, 3, begin, end, targets)
    stages = Stages(network, rows, LAST, Sampling(1024, np.inf))
    each = readings(stages, text.numpy(), 0, [passage], to)
    long = torch.cat([text[:ROW], text[begin : 4 * ROW + 1]])[None]
    assert torch.allclose(each.whole, losses(network, long, LAST)[0, [0, 2]], atol=1e-4)
    assert torch.allclose(each.near, losses(network, rows[3:4], LAST)[0, [0, 2]], atol=1e-4)
    apart = torch.cat([text[:ROW], rows[3]])[None]
    places = torch.cat([torch.arange(ROW), torch.arange(to - ROW, to)])
    alone = nats(scores_at(network, apart[:, :-1], places, LAST), apart)[0, [0, 2]]
    assert torch.allclose(each.placed, alone, atol=1e-4)
    assert not torch.allclose(each.diluted, each.whole, atol=1e-3)


def test_what_a_copier_gains_by_a_far_passage_is_foreseen(copier):
    """Its last tokens come again from the second of eight rows. By measurement, the passage is
    replaced by other tokens in the real row."""
    network, length, row = copier(7), 512, 64
    said, measured = [], []
    for seed in range(4):
        text = torch.randperm(600, generator=torch.Generator().manual_seed(seed))
        other, text = text[length + 1 :], text[: length + 1].clone()
        text[length - 9 :] = text[100:110]
        (passage,) = passages(text.numpy(), [0], 8, row, LAST, length)
        assert passage.targets == (0, 1, 2, 3) and passage.begin == 106 - row // 4
        rows = text.unfold(0, row + 1, row)
        stages = Stages(network, rows, LAST, Sampling(1024, np.inf))
        each = readings(stages, text.numpy(), 0, [passage], length)
        said.append(float((each.diluted - each.whole).mean()))
        without = text.clone()
        without[passage.begin : passage.end] = other[: passage.end - passage.begin]
        real, replaced = (losses(network, x[None], LAST).mean() for x in (text, without))
        measured.append(float(replaced - real))
    assert abs(np.mean(said) - np.mean(measured)) < 0.1 * np.mean(measured)
    assert np.mean(measured) > 1


def test_the_parts_are_printed_and_add_up(trained, tmp_path):
    """A text of lines that come again: marked targets lose what the three parts say."""
    draw, path = np.random.default_rng(5), tmp_path / "lines.txt"
    lines = ["".join(map(chr, draw.integers(97, 123, 11))) for _ in range(6)]
    path.write_text("\n".join(lines[k] for k in draw.integers(0, 6, 800)))
    few = Settings(groups=3, rows=8, last=8)
    subject = subject_of(trained("-n/8"), path, None, few)
    found = worth(subject, 8 * ROW)
    assert 0 < found.marked < found.targets == 3 * 7 * 8
    assert worth(subject_of(trained("-n/8"), path, None, replace(few, groups=2)), 8 * ROW)
    each, losses_of_others = [], []
    for g, start in enumerate(subject.starts):
        marked = passages(subject.text, subject.starts, 8, ROW, 8, 8 * ROW)
        marked = [x for x in marked if x.group == g]
        marked = marked[:: -(-len(marked) // 16)]
        sampling = replace(few.check, seed=g)
        stages = Stages(subject.network, subject.groups[g], 8, sampling)
        read = readings(stages, subject.text, start, marked, 8 * ROW)
        each.append([float(x.mean()) for x in read[:4]])
        taken = {(x.row, k) for x in marked for k in x.targets}
        rows = (read.stage - stages.plain()).tolist()
        cells = [(r, k) for r in range(1, 8) for k in range(8) if (r, k) not in taken]
        losses_of_others += [rows[r][k] for r, k in cells]
    near, placed, diluted, whole = np.mean(each, 0)
    sums = placed - near, diluted - placed, diluted - whole
    means = [x[0] for x in (found.positions, found.dilution, found.text)]
    assert means == pytest.approx(sums) and found.others == pytest.approx(np.mean(losses_of_others))
    halves = [mean_and_half(x)[1] for x in np.transpose([np.subtract(x[1:3], x[:2]) for x in each])]
    assert [found.positions[1], found.dilution[1]] == pytest.approx(halves)
    told = farfield.foresee(trained("-n/8"), path, to=8 * ROW, settings=few, causes=True)
    assert told.worth == found and [*found.table()][1] in told.blocks()
    plain = tmp_path / "plain.txt"
    plain.write_bytes(bytes(draw.integers(1, 200, 4000, np.uint8)))
    assert worth(subject_of(trained("-n/8"), plain, None, few), 8 * ROW) is None
