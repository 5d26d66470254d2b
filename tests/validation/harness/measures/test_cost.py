import dataclasses

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from farfield.theory.encodings import encoding
from farfield.validation.harness.attention import materialised
from farfield.validation.harness.positional import initialised
from farfield.validation.harness.presets import preset


@pytest.mark.parametrize("change", [{}, {"layers": 3}, {"width": 64, "heads": 4}, {"length": 48}])
def test_the_products_are_those_that_torch_counts(change):
    """Torch counts the products with keys that causality hides too, and no product twice."""
    shape = dataclasses.replace(preset("tiny"), **change)
    model = initialised(encoding("nope"), shape, 0)
    rows = torch.zeros(2, shape.length, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:
        model(rows, path=materialised)
    hidden = 2 * shape.layers * shape.width * (shape.length - 1)
    forward = shape.operations() // 3 + hidden
    assert counter.get_total_flops() == forward * rows.numel()


def test_training_takes_three_times_the_forward_pass():
    """All products but one have two in the backward pass; the embedding is looked up."""
    shape = dataclasses.replace(preset("tiny"), layers=4, width=64)
    model = initialised(encoding("nope"), shape, 0)
    rows = torch.zeros(2, shape.length, dtype=torch.long)
    counts = []
    for backward in (False, True):
        with FlopCounterMode(display=False) as counter:
            scores = model(rows, path=materialised)
            if backward:
                scores.sum().backward()
        counts.append(counter.get_total_flops())
    assert counts[1] == 3 * counts[0]


def test_tokens_and_operations_of_a_paper():
    chi = preset("paper:chi2023")
    assert chi.tokens == 50_000 * 32 * 512
    # six operations a weight and token, for weights outweigh all else; [C, Table 7] has 162M
    assert chi.operations(2 * 50_257) == pytest.approx(6 * 162e6, rel=0.05)
