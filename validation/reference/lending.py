"""Which far keys can a model use? Forecast from logits that a trained model had at home.

A model of the registration *Hold and use* lends the content logits of its retrieving head, measured
on rows of the training length; the bias of the model that is asked about gives the attention at
every distance of a longer row (`retrieval_curve`). No constant is fitted. The nearest measured
model lends, by the prices of its heads; where that model has not learned to find a key at home,
nothing is forecast.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sympy
from sympy import Expr, S

from farfield.numerics.price import head_prices
from farfield.numerics.retrieval import RetrievalCurve, retrieval_curve
from farfield.theory.algebra.budget import unhurried
from farfield.theory.answers.answer import InputError
from farfield.theory.answers.number import listed
from farfield.theory.encodings import encoding
from farfield.theory.functions.nodes import n as distance
from farfield.validation.harness.configuration import LayerPlan
from farfield.validation.harness.mechanism import Scale
from farfield.validation.reference.committed import HERE, Row
from farfield.validation.reference.registration import HOLD, Registration
from farfield.validation.reference.table import grouped

LEARNED = 0.9  # mean accuracy at the training length from which a model has learned its task
FAR = 5.0  # nats between the prices of two models: nothing is lent beyond
DEAR = 20.0  # nats; no measured advantage pays more, so that dearer prices are alike
ROWS = 128  # rows of logits that are kept of a run
DISTANCES = 1024  # at which the attention is computed


@dataclass(frozen=True)
class Hybrid:
    """Biases and scales, layer by layer.

    Fields:
        biases: of each head of each layer, its window in it.
        scales: of the content logits of each layer.
    """

    biases: tuple[tuple[Expr, ...], ...]
    scales: tuple[Scale | None, ...]

    @classmethod
    def of(cls, layers: Sequence[LayerPlan], heads: int) -> Hybrid:
        """The layers of a plan, for models with so many heads."""
        return cls(
            tuple(
                windowed(S.Zero if own is None else own.biases, heads, layer.mechanism.window)
                for layer in layers
                for own in [layer.encoding]
            ),
            tuple(layer.mechanism.scale for layer in layers),
        )

    def prices(self, length: int) -> np.ndarray:
        """The cheapest price at each distance, in the first layer and behind it, shape (2, ...)."""
        found = [self._cheapest(layer, length) for layer in self.biases]
        return np.clip([found[0], np.min(found[1:] or found, axis=0)], -DEAR, DEAR)

    def away(self, other: Hybrid, length: int) -> float:
        """The largest difference of prices; a nat more where the logits are scaled otherwise."""
        apart = np.abs(self.prices(length) - other.prices(length)).max()
        return float(apart) + (self.scales != other.scales)

    @staticmethod
    def _cheapest(layer: Sequence[Expr], length: int) -> np.ndarray:
        rows = np.concatenate([row_of(b, length) for b in dict.fromkeys(layer)])
        return head_prices(rows)[:, reached(length)].min(axis=0)

    def retrieving(self, length: int) -> tuple[int, int]:
        """Layer and head, from 1, with the cheapest farthest key behind the first layer."""
        behind = range(min(1, len(self.biases) - 1), len(self.biases))
        each = [(at, h) for at in behind for h in range(len(self.biases[at]))]
        at, h = min(
            each, key=lambda p: float(head_prices(row_of(self.biases[p[0]][p[1]], length))[0, -1])
        )
        return at + 1, h + 1


def windowed(biases: Any, heads: int, window: int | None) -> tuple[Expr, ...]:
    """The bias of each head of a layer, its window in it."""
    each = (biases,) if isinstance(biases, Expr) else tuple(biases)
    if window is not None:
        masked = (-sympy.oo, True)
        each = tuple(sympy.Piecewise((b, distance < window), masked) for b in each)
    return each * (heads // len(each))


def rise(scale: Scale | None, head: int, seen: int, keys: int, trained: int) -> float:
    """By which factor the content logits of a head grow at inference, from a query that sees some
    keys to one that sees others."""
    if scale is None or (scale.heads and head not in scale.heads):
        return 1.0
    return scale.at(keys, trained) / scale.at(seen, trained)


def longer(
    logits: Mapping[str, np.ndarray], bias: Any, factor: float, **asked: Any
) -> RetrievalCurve:
    """The attention that measured logits, times a factor, let expect on a longer row.

    Args:
        logits: `target`, `others` and perhaps `near`, as `retrieval_curve` takes them.
        bias: of the head.
        factor: of the logits.
        **asked: `length`, `distances` and `draws` of `retrieval_curve`.
    """
    return retrieval_curve(
        f=bias, **{name: factor * values for name, values in logits.items()}, **asked
    )


def reached(length: int) -> np.ndarray:
    """The distances of a row at which the attention is computed: all, or evenly by ratio."""
    if length <= 2 * DISTANCES:
        return np.arange(length)
    return np.unique(np.geomspace(1, length - 1, DISTANCES).round().astype(int))


def row_of(bias: Expr, length: int) -> np.ndarray:
    """A bias at the distances of a row, shape (1, length)."""
    return encoding(bias).bias(np.arange(length))


# -- who lends ------------------------------------------------------------------------------------


def logits_of(result: Path) -> Path:
    """Where the logits of a committed result are.

    >>> logits_of(Path("hold_and_use/t5-64-0.json")).as_posix()
    'hold_and_use/logits/t5-64-0.npz'
    """
    return result.parent / "logits" / f"{result.stem}.npz"


def keep_logits(logits: Mapping[str, np.ndarray], path: Path) -> None:
    """Write some rows of measured logits, evenly taken, rounded to 1/32767 of the largest."""
    some = {name: values[:: max(1, len(values) // ROWS)] for name, values in logits.items()}
    unit = max(float(np.abs(values).max()) for values in some.values()) / 32767
    path.parent.mkdir(exist_ok=True)
    kept = {name: (values / unit).round().astype(np.int16) for name, values in some.items()}
    arrays: dict[str, Any] = {"unit": np.float64(unit), **kept}
    np.savez_compressed(path, **arrays)


def read_logits(path: Path) -> dict[str, np.ndarray]:
    """The logits that `keep_logits` wrote."""
    with np.load(path, allow_pickle=False) as kept:
        return {name: kept[name] * float(kept["unit"]) for name in kept.files if name != "unit"}


def cell_of(name: str, seed: int) -> str:
    """The name of a run without its seed.

    >>> cell_of("t5, 64, 0", 0)
    't5, 64'
    """
    return name.replace(f", {seed}", "", 1)


def at_home(result: Row, what: str) -> float:
    """The mean of a measurement on rows of the training length.

    Args:
        result: of a run on a task, in JSON form.
        what: `accuracy` or `attention`.
    """
    points, length = result["measurements"][0]["recall"]["points"], result["preset"]["length"]
    return float(np.mean([p[what] for p in points if p["length"] == length]))


def registered_biases(registration: Registration) -> dict[str, Any]:
    """The biases of each layer, by cell, as registered; None where they are learned."""
    return {cell["cell"]: cell["biases"] for cell in registration.predictions["cells"]}


@functools.cache
def measured() -> tuple[Row, ...]:
    """The committed runs of the registration whose biases are fixed, each with its `hybrid` and the
    `task` it was trained on, None for text; whether it has `learned` it."""
    registered, found = registered_biases(HOLD), []
    with unhurried():
        for run in HOLD.results():
            if biases := registered[cell_of(run["name"], run["seed"])]:
                made = run["training"]["configuration"]
                hybrid = Hybrid(
                    tuple(tuple(encoding(b).biases[0] for b in layer) for layer in biases),
                    tuple(
                        _scale(own.get("scale") or {})
                        for own in made.get("layers") or [{}] * len(biases)
                    ),
                )
                task = made.get("task", {}).get("kind")
                learned = task is not None and at_home(run, "accuracy") >= LEARNED
                found.append({**run, "hybrid": hybrid, "task": task, "learned": learned})
    return tuple(found)


def lenders() -> list[Row]:
    """The runs on the task `induction` whose logits are kept, and those that failed."""
    asked = (run for run in measured() if run["task"] == "induction")
    return [run for run in asked if not run["learned"] or logits_of(_file(run)).exists()]


def _file(run: Row) -> Path:
    return HERE.parent / str(run["file"])


def _alike(run: Row, asked: Hybrid, trained: int) -> bool:
    """Whether a run has as many layers and the same training length."""
    own = len(run["hybrid"].biases), run["preset"]["length"]
    return bool(own == (len(asked.biases), trained))


def ratios_on_text(asked: Hybrid, trained: int, tested: int) -> dict[str, float]:
    """The perplexity ratios of the language models that have these layers, by the name of the run.

    Args:
        asked: the layers.
        trained: length of the rows in training, in bytes.
        tested: length at which the perplexity is compared with that.
    """
    found: dict[str, float] = {}
    for run in measured():
        if run["task"] or not _alike(run, asked, trained) or run["hybrid"].scales != asked.scales:
            continue
        ratios = grouped([run])[0].last
        if tested in ratios and not run["hybrid"].away(asked, tested):
            found[run["name"]] = ratios[tested]
    return found


def _scale(given: Row) -> Scale | None:
    """A scale that a configuration wrote."""
    own: Any = {k: tuple(v) if isinstance(v, list) else v for k, v in given.items()}
    return Scale(**own) if own else None


# -- the forecast ---------------------------------------------------------------------------------


def use_of(asked: Hybrid, trained: int, tested: int, use: Any = None) -> dict[str, Any]:
    """The attention that a model can pay to a far key, as fields of a forecast.

    Args:
        asked: its layers.
        trained: length of the rows in training, in tokens.
        tested: keys of the row that is asked about.
        use: the name of a measured run; a mapping with `target`, `others` and perhaps `near`, the
            arrays of `retrieval_curve`; None for the nearest measured model.

    Returns:
        `use`: the model that lends its logits, or why none does. Where one does, `attention`: pairs
        of a distance and the mean attention, and `reach`: the farthest distance with half of it.

    Raises:
        InputError: a name that no run has, arrays of unequal shapes.
    """
    if isinstance(use, Mapping):
        if not {"target", "others"} <= {*use} <= {"target", "others", "near"}:
            given = listed([str(k) for k in use]) or "nothing"
            raise InputError(f"use has {given}; accepted are target, others and near, as arrays")
        own = {name: v for name, v in use.items() if name != "near" or v is not None}
        found = _curve(asked, asked.retrieving(tested), trained, tested, own)
        return {"use": "the arrays given", **found}
    known = {run["name"]: run for run in lenders()}
    if use is not None and (not isinstance(use, str) or use not in known):
        near = difflib.get_close_matches(str(use), known, 3, 0) or [*known][:3]
        raise InputError(
            f"use {str(use)[:60]!r} is none of the {len(known)} measured runs; accepted are their "
            f"names, such as {' or '.join(map(repr, near))}"
        )
    chosen = [known[use]] if use is not None else known.values()
    alike = [run for run in chosen if _alike(run, asked, trained)]
    depth = len(asked.biases)
    if not alike:
        return {"use": f"no model of {depth} layers was measured on rows of {trained} tokens"}
    if tested > 16 * trained:
        return {"use": "the evidence ends at 16 times the training length"}
    try:
        at = [(asked.away(run["hybrid"], tested), run) for run in alike]
    except InputError as why:  # a bias beyond what float64 holds has no price
        return {"use": str(why)}
    away, nearest = min(at, key=lambda pair: (pair[0], not pair[1]["learned"]))
    name, seeds = nearest["name"], [run for run in alike if run["hybrid"] == nearest["hybrid"]]
    if use is None and away > FAR:
        return {"use": f"no measured model is near; the nearest is {name}"}
    if not nearest["learned"]:
        why_not = f"the nearest measured model, {name}, does not find the key even at its "
        return {"use": f"{why_not}training length"}
    learned = sum(run["learned"] for run in seeds)
    recall = nearest["measurements"][0]["recall"]
    head = asked.retrieving(tested) if away else (recall["layer"], recall["head"])
    some = f" ({learned} of {len(seeds)} seeds learned the task)" * (learned < len(seeds))
    off = f", whose prices are {away:.2g} nats away" if away else ""
    logits = read_logits(logits_of(_file(nearest)))
    return {"use": name + off + some, **_curve(asked, head, trained, tested, logits)}


def _curve(
    asked: Hybrid, head: tuple[int, int], trained: int, tested: int, logits: Mapping[str, Any]
) -> dict[str, Any]:
    """The attention by distance, and how far back half of it reaches."""
    at, h = head
    curve = longer(
        {name: np.asarray(values, dtype=float) for name, values in logits.items()},
        asked.biases[at - 1][h - 1],
        rise(asked.scales[at - 1], h, trained, tested, trained),
        length=tested,
        distances=reached(tested).tolist(),
    )
    assert curve.attention is not None
    pairs = tuple(zip(curve.distances, curve.attention, strict=True))
    reach = max((d for d, share in pairs if share >= 0.5), default=None)
    return {"attention": pairs, "reach": reach}
