r"""A certificate at run time, for any softmax mechanism (ours).

With `Z` the kept weight of a row (its window, its sinks, a learned constant), `N` dropped keys
whose logits are at most `M`, and `G = log Z - M`, the output moves by at most

    2 V N / (N + e^G),

attained where there is no learned constant. `log Z` is the log-sum-exp that a kernel returns,
`M <= |q| max |k_dropped| / sqrt(d)` takes one running number. A row is certified at error eta if
`N <= eta' e^G`, `eta' = eta/(2 V - eta)`. No hypothesis on the encoding: rotations, absolute
vectors, gates and biases are all in the logits of the keys that are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from farfield.theory.answers.answer import InputError, Label, Result
from farfield.theory.answers.blocks import Block, facts, note, sentence
from farfield.theory.answers.number import exact, natural
from farfield.theory.answers.wording import decimal, plural

CHUNK = 256  # query rows at a time, which bounds the memory


@dataclass(frozen=True, repr=False)
class RowCertificates(Result):
    """What is certified of each row of one head.

    Fields:
        window, sinks: keys that are kept: the nearest, and the first.
        error: the budget.
        bound: of the change of the output, a row; float64, shape (rows,), 0 where nothing is
            dropped.
        certified: whether it is within the budget, shape (rows,).
        share: of the rows that drop keys, how many are certified; 1 where none drops any.
        label: `certified`: an inequality for this row's own numbers, evaluated in float64.
    """

    window: int
    sinks: int
    error: float
    bound: np.ndarray = field(compare=False)
    certified: np.ndarray = field(compare=False)
    share: float
    label: Label = Label.CERTIFIED

    def blocks(self) -> Sequence[Block]:
        dropping = self.bound[self.bound > 0]
        middle = None if not len(dropping) else decimal(float(np.median(dropping)), 3)
        return (
            sentence(
                "A window of {window} with {sinks} is certified for {share} of the rows that drop "
                "keys, at an error of {error}.",
                self.label,
                window=plural(self.window, "token"),
                sinks=plural(self.sinks, "sink"),
                share=f"{self.share:.1%}",
                error=decimal(self.error),
            ),
            facts(rows=len(self.bound), rows_that_drop_keys=len(dropping), median_bound=middle),
            note("One head, one layer, before the output projection; float64."),
        )


def window_certificate(
    query: Any,
    keys: Any,
    *,
    window: Any,
    sinks: Any = 0,
    error: Any,
    value_bound: Any = 1,
    scale: Any = None,
) -> RowCertificates:
    """Which rows of a head a window is certified for, from its queries and keys alone (ours).

    Args:
        query: of one causal head, after any rotation; shape (rows, size), NumPy or torch.
        keys: as many, at the same positions, shape (rows, size).
        window: nearest keys that are kept, the row's own included, at least 1.
        sinks: first keys that are kept besides.
        error: the budget eta for the change of the output, positive.
        value_bound: a bound V of ||v||, positive.
        scale: of the logits; 1/sqrt(size) where nothing is said.

    Raises:
        InputError: misshapen or not finite arrays; numbers out of range.

    >>> rng = np.random.default_rng(0)
    >>> found = window_certificate(rng.normal(size=(64, 8)), rng.normal(size=(64, 8)), window=32,
    ...                            sinks=4, error="1/2")
    >>> bool(found.certified[:36].all()), bool(found.bound[:36].max() == 0)
    (True, True)
    """
    q, k = _array(query, "query"), _array(keys, "keys")
    if q.shape != k.shape:
        raise InputError(
            f"query has shape {q.shape}, keys {k.shape}; accepted: the same shape (rows, size)"
        )
    w, first = natural(window, "window"), natural(sinks, "sinks", 0)
    eta, bound = float(exact(error, "error")), float(exact(value_bound, "value_bound"))
    if eta <= 0 or bound <= 0:
        raise InputError(f"error {eta}, value_bound {bound}: accepted are positive numbers")
    factor = q.shape[1] ** -0.5 if scale is None else float(exact(scale, "scale"))
    if not factor > 0:
        raise InputError(f"scale {factor}: accepted is a positive number")
    moved = _moved(q * factor, k, w, first, bound)
    certified = moved <= eta
    dropping = moved > 0
    share = float(certified[dropping].mean()) if dropping.any() else 1.0
    return RowCertificates(w, first, eta, moved, certified, share)


def _moved(q: np.ndarray, k: np.ndarray, window: int, sinks: int, bound: float) -> np.ndarray:
    """2 V N / (N + e^G) of each row, in logarithms."""
    rows = len(q)
    norms = np.linalg.norm(k, axis=1)
    moved = np.zeros(rows)
    # the greatest norm among dropped keys: positions sinks .. i - window, a running maximum
    running = np.maximum.accumulate(norms[sinks:]) if sinks < rows else np.empty(0)
    for start in range(0, rows, CHUNK):
        at = np.arange(start, min(start + CHUNK, rows))
        dropped = at - window + 1 - sinks  # positions sinks .. at - window
        if not (dropped > 0).any():
            continue
        low = max(0, start - window + 1)
        near = q[at] @ k[low : at[-1] + 1].T
        position = np.arange(low, at[-1] + 1)
        seen = (position <= at[:, None]) & (position > at[:, None] - window)
        logits = [np.where(seen, near, -np.inf)]
        if sinks:
            early = np.arange(sinks)[None, :] <= (at - window)[:, None]
            logits.append(np.where(early, q[at] @ k[:sinks].T, -np.inf))
        kept = np.concatenate(logits, axis=1)
        top = kept.max(axis=1)
        log_z = top + np.log(np.exp(kept - top[:, None]).sum(axis=1))
        live = dropped > 0
        most = np.linalg.norm(q[at[live]], axis=1) * running[dropped[live] - 1]
        gap = log_z[live] - most - np.log(dropped[live])
        moved[at[live]] = 2 * bound / (1 + np.exp(np.minimum(gap, 700)))
    return moved


def _array(given: Any, what: str) -> np.ndarray:
    """A float64 array of shape (rows, size) from NumPy or torch."""
    if hasattr(given, "detach"):
        given = given.detach().to("cpu").double().numpy()
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} holds no numbers; accepted: an array (rows, size)") from None
    if found.ndim != 2 or not found.size or not np.isfinite(found).all():
        raise InputError(
            f"{what} has shape {found.shape}; accepted: finite numbers of shape (rows, size)"
        )
    return found
