"""Does a model find a far sequence again? Foreseen from short rows, and measured on real ones.

A *needle* is a sequence of random tokens of the text, in the middle of a row. The row that asks
ends with the same sequence, and its last tokens are to be said. In the far field the needle's row
stands at its own positions, key by key, with the states that all layers give it there. All other
far keys are samples.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from farfield.theory.answers.errors import refuse
from farfield.validation.far_field.network import Network, losses
from farfield.validation.far_field.stages import Sampling, Stages

NEEDLE, ASKED = 8, 4  # tokens of the sequence, and of its end that is to be said


class FarRecall(NamedTuple):
    """At a distance: the mean probability, geometric, of a token that is asked for."""

    distance: int
    probability: float


def distances(length: int, to: int) -> list[int]:
    """Where needles stand: 4, 8, 16, ... rows back, the last one in the second row of the text.

    >>> distances(64, 1024), distances(64, 128)
    ([256, 512, 929], [])
    """
    far = to - 2 * length + length // 2 + 1
    near = (length << k for k in range(2, 64))
    return sorted({*(d for d in near if d < far), far}) if to >= 4 * length else []


def needles(tokens: Tensor, seed: int) -> Tensor:
    """A sequence for each row, of the row's own tokens, shape (rows, 8)."""
    draws = torch.Generator().manual_seed(seed)
    picks = torch.randint(tokens.shape[1], (len(tokens), NEEDLE), generator=draws)
    return tokens.gather(1, picks)


@torch.no_grad()
def foreseen(
    network: Network, groups: Tensor, to: int, distance: int, sampling: Sampling
) -> FarRecall:
    """From short rows.

    Args:
        network: the network.
        groups: (groups, rows, T + 1).
        to: tokens of the row that asks.
        distance: from the needle to the question, from `5 T / 2` to `to - 2 T`.
        sampling: how far keys are drawn.

    Raises:
        InputError: a distance with no room for the needle's row.
    """
    row, said = groups.shape[2] - 1, []
    end = to - distance + row // 2 + 1
    refuse(
        not 2 * row <= end <= to - 2 * row,
        f"distance {distance} in rows of {to} tokens; accepted are {2 * row + row // 2 + 1} to "
        f"{to - 2 * row + row // 2 + 1}",
    )
    for g, tokens in enumerate(groups):
        tokens, half = tokens.clone(), len(tokens) // 2
        sequences = needles(tokens[half:, :-1], g)
        at = row // 2 - NEEDLE
        for r in range(half + 1, len(tokens)):
            tokens[r - half, at : at + NEEDLE] = sequences[r - half]
            tokens[r, -NEEDLE:] = sequences[r - half]
        drawn = Sampling(sampling.samples, math.inf, sampling.seed + g)
        stages = Stages(network, tokens, ASKED, drawn, paired=half)
        stages.plain()
        stages.stage(1, [row, end])
        said.append(stages.stage(2, [row, end, to])[half + 1 :])
    return FarRecall(distance, float((-torch.cat(said).mean()).exp()))


def measured(network: Network, rows: Tensor, distance: int) -> FarRecall:
    """On real rows (rows, to + 1): the same question, the needle set into the text."""
    rows = rows.clone()
    sequences = needles(rows[:, -64:], 0)
    at = rows.shape[1] - distance - NEEDLE
    rows[:, at : at + NEEDLE] = sequences
    rows[:, -NEEDLE:] = sequences
    each = [losses(network, row[None], ASKED) for row in rows]
    return FarRecall(distance, float(np.exp(-torch.cat(each).mean())))
