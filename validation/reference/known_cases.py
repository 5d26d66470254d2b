"""Trials: every case whose perplexity beyond the training length is known, beside its quantities.

The trials are 16 encodings of the first registration, those with a fixed formula. Every case of a
further registration with a finished seed joins them. `outcomes.json` holds them, so that a forecast
need not read two hundred results. `collect` writes it anew.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from farfield.numerics.finite_length import KernelOrder, kernel_order, order_loss
from farfield.validation.json_files import write
from farfield.validation.reference.committed import HERE, OUTCOMES, rounded
from farfield.validation.reference.first import family
from farfield.validation.reference.registration import FIRST, REGISTRATIONS, titled


@dataclass(frozen=True)
class Trial:
    """One case that was forecast or seen, and what came out.

    Fields:
        label, family: of the encoding; families stand or fall together when a law is judged.
        registration: the folder of its registration; empty for the first.
        length, layers, width, steps, window, tested: as its plan says, in tokens.
        seeds: how many models.
        value: its order loss.
        kept, beyond, leak, drowned: what makes its kernel order loss (`order`).
        loss: the largest mean logarithm of the perplexity ratio at any tested length, in nats.
    """

    label: str
    family: str
    registration: str
    length: int
    layers: int
    width: int
    steps: int
    window: int | None
    tested: int
    seeds: int
    value: float
    kept: float
    beyond: float
    leak: float
    drowned: float
    loss: float

    @property
    def name(self) -> str:
        """The label, with the window at inference and what else is not usual."""
        return titled(vars(self))

    @property
    def order(self) -> KernelOrder:
        """What a forecast rests on."""
        return KernelOrder(self.kept, self.beyond, self.leak, self.drowned)


@functools.cache
def trials() -> tuple[Trial, ...]:
    """The committed trials."""
    rows = json.loads((HERE / OUTCOMES).read_text(encoding="utf-8"))
    return tuple(Trial(**row) for row in rows)


def gathered() -> Iterator[Trial]:
    """The trials of the committed results, computed anew."""
    for registration in (FIRST, *REGISTRATIONS):
        for named, c, outcome in registration.seen():
            kind = family(named["label"]) if registration is FIRST else named["family"].split()[0]
            own = {"family": kind, "registration": registration.name}
            yield Trial(
                **{**named, **own},
                seeds=len(outcome.seeds),
                loss=outcome.loss,
                value=order_loss(c.bias, c.trained, c.layers),
                **dataclasses.asdict(kernel_order(c.bias, c.trained, c.layers)),
            )


def write_outcomes() -> None:
    """Write `outcomes.json`, a trial a line."""
    rows = [json.dumps(rounded(dataclasses.asdict(t))) for t in gathered()]
    write(HERE / OUTCOMES, ("[" + ",\n".join(rows) + "]\n").encode())


def slope(quantity: np.ndarray, loss: np.ndarray) -> float:
    """Of the line through the origin, by least squares."""
    weight = float(quantity @ quantity)
    return float(quantity @ loss) / weight if weight else 0.0


def left_out(quantity: np.ndarray, loss: np.ndarray, families: Sequence[str]) -> np.ndarray:
    """The loss of each, forecast by the line through all that are not of its family."""
    names = np.array(families)
    others = {f: names != f for f in set(families)}
    return np.array(
        [
            slope(quantity[others[f]], loss[others[f]]) * q
            for f, q in zip(families, quantity, strict=True)
        ]
    )
