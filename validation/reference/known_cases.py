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

import numpy as np

from farfield.numerics.finite_length import KernelOrder, kernel_order, order_loss
from farfield.validation.json_files import write
from farfield.validation.reference.committed import HERE, OUTCOMES, Row, rounded
from farfield.validation.reference.first import family
from farfield.validation.reference.registration import FIRST, REGISTRATIONS, titled


@functools.cache
def trials() -> tuple[Row, ...]:
    """The committed trials, one a case.

    Each row has what names the case in its plan, in tokens, with its `registration` (empty for the
    first) and its `family`: families stand or fall together when a law is judged. Its `seeds` say
    how many models there are, `loss` the largest mean logarithm of their perplexity ratio at any
    tested length, in nats. Its `value` is the order loss, and its `order` what a forecast rests on.
    Its `name` is the label with the window at inference and what else is not usual.
    """
    rows = json.loads((HERE / OUTCOMES).read_text(encoding="utf-8"))
    parts = [field.name for field in dataclasses.fields(KernelOrder)]
    return tuple(
        {**row, "name": titled(row), "order": KernelOrder(*(row[part] for part in parts))}
        for row in rows
    )


def gathered() -> Iterator[Row]:
    """The trials of the committed results as `outcomes.json` has them, computed anew."""
    shape = ("length", "layers", "width", "steps", "window", "tested")
    for registration in (FIRST, *REGISTRATIONS):
        for named, c, outcome in registration.seen():
            kind = family(named["label"]) if registration is FIRST else named["family"].split()[0]
            yield rounded(
                {
                    **{"label": named["label"], "family": kind, "registration": registration.name},
                    **{part: named[part] for part in shape},
                    "seeds": len(outcome.seeds),
                    "value": order_loss(c.bias, c.trained, c.layers),
                    **dataclasses.asdict(kernel_order(c.bias, c.trained, c.layers)),
                    "loss": outcome.loss,
                }
            )


def write_outcomes() -> None:
    """Write `outcomes.json`, a trial a line."""
    lines = ",\n".join(map(json.dumps, gathered()))
    write(HERE / OUTCOMES, f"[{lines}]\n".encode())


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
