"""What causes a loss on longer rows: which layer's far keys, or positions alone.

The *zero line* is the log ratio with far keys in no layer: each layer has a window of the row. A
layer's *excess* is the log ratio with far keys in it alone, less the zero line. The layer of the
largest excess is named where the interval of its excess over the groups is above 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from farfield.theory.answers.blocks import Block, Curve, Line, sentence, table
from farfield.validation.far_field.intervals import mean_and_half
from farfield.validation.far_field.model_on_text import ModelOnText, Settings, reach_of, subject_of
from farfield.validation.models.network import nats, scores_at
from farfield.validation.models.repairs import Repair, Repaired


@dataclass(frozen=True)
class Excess:
    """What the far keys of one layer cost over the zero line.

    Fields:
        layer: from 1.
        mean: a difference of log ratios.
        interval: 95 %, over the groups of the text.
    """

    layer: int
    mean: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Blame:
    """Causes of the loss at a length, log ratios of one stage.

    Fields:
        everything: the loss with all far keys.
        nowhere: the zero line.
        layers: the excess of each.
        worst: the layer whose far keys cost most, from 1; None where no interval is above 0.
        positions: rows moved to the end of the text, no far keys.
    """

    everything: float
    nowhere: float
    layers: tuple[Excess, ...]
    worst: int | None
    positions: float

    def table(self) -> Iterator[Block]:
        """The layer that is named, a table of the causes, and the excess by layer."""
        if self.worst is None:
            yield sentence("No layer's far keys cost more than a window of the row.")
        else:
            yield sentence("The far keys of layer {worst} cost most.", worst=self.worst)
        rows = [
            ("everything", f"{self.everything:.3f}", ""),
            ("far keys in no layer", f"{self.nowhere:.3f}", ""),
            *(
                (
                    f"far keys in layer {x.layer} alone, over that",
                    f"{x.mean:+.3f}",
                    "{:+.3f} to {:+.3f}".format(*x.interval),
                )
                for x in self.layers
            ),
            ("positions moved alone, no far keys", f"{self.positions:.3f}", ""),
        ]
        yield table(("cause", "log ratio", "95 %"), rows, numeric=(1,))
        points = tuple(zip(*((float(x.layer), x.mean) for x in self.layers), strict=True))
        yield Curve(
            "What the far keys of one layer alone cost, over far keys in no layer.",
            "layer",
            "log ratio",
            (Line("far keys", points[0], points[1]),),
        )


def blame(
    model: Any,
    text: Any = None,
    *,
    to: Any,
    length: Any = None,
    settings: Settings | None = None,
) -> Blame:
    """What causes the loss at a length, by one stage; the arguments are those of `foresee`."""
    subject = model if isinstance(model, ModelOnText) else subject_of(model, text, length, settings)
    far, network, one = reach_of(subject, to), subject.network, subject.settings.check

    def ratios(repair: Repair | None = None) -> np.ndarray:
        changed = network if repair is None else Repaired(network, repair)
        return subject.ratios([far], one, changed)[far]

    every = range(1, network.depth + 1)
    nowhere, everything = ratios(Repair(window=subject.length)), ratios()
    alone = []
    for layer in every:
        others = tuple(k for k in every if k != layer)
        hidden = Repair(window=subject.length, layers=others) if others else None
        alone.append(ratios(hidden) if hidden else everything)
    layers, worst = excesses(alone, nowhere)
    at = torch.arange(far - subject.length, far)
    moved = [
        nats(scores_at(network, rows[:, :-1], at, subject.settings.last), rows)[1:] - base
        for rows, base in zip(subject.groups, subject.base, strict=True)
    ]
    return Blame(
        everything=float(everything.mean()),
        nowhere=float(nowhere.mean()),
        layers=layers,
        worst=worst,
        positions=float(torch.stack(moved).mean()),
    )


def excesses(
    alone: Sequence[np.ndarray], nowhere: np.ndarray
) -> tuple[tuple[Excess, ...], int | None]:
    """The excess of each layer, and the layer that is named.

    Args:
        alone: log ratios of each group with far keys in one layer alone, by layer.
        nowhere: the same with far keys in no layer.

    >>> zero = np.array([0.0, 0.1, 0.0])
    >>> excesses([zero + [0.4, 0.5, 0.6], zero + [-0.1, 0.1, 0.0]], zero)[1]
    1
    >>> excesses([zero + [-0.1, 0.1, 0.0]], zero)[1] is None
    True
    """
    layers = []
    for layer, each in enumerate(alone, 1):
        mean, half = mean_and_half(each - nowhere)
        layers.append(Excess(layer, mean, (mean - half, mean + half)))
    largest = max(layers, key=lambda x: x.mean)
    return tuple(layers), largest.layer if largest.interval[0] > 0 else None
