"""Quantities of rows: cells of printed tables, models of runs, and biases.

A claim's entry selects rows (`where`), groups them (`by`) and takes a measure of each group
(`MEASURES`). A measure looks at the curve of a group, value by length, or at one row. `at`, `start`
and `end` take a part of a curve; `than` names what it is compared with. The result has the form
of the groups, unless the entry wants another (`digits`, `pick`, `flip`, `join`, `list`).
"""

from __future__ import annotations

import fnmatch
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from polars import DataFrame

from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.theory.encodings import encoding
from farfield.validation.claims.claim import Data, Missing
from farfield.validation.claims.series_verdicts import by_head, decided, falling, verdict_of_layer
from farfield.validation.claims.words import EXPLODES, drift, increase, stays
from farfield.validation.published import PrintedNumber, bias_of, table
from farfield.validation.results import LAST, WHOLE, results

STEP = 4
"""Tokens, of the gradient by token."""
Spec = Mapping[str, Any]
Item = Any
Path = tuple[Any, ...]


@dataclass(frozen=True)
class Model:
    """The models of one encoding in one setting, one a seed; numbers are means over them.

    Fields:
        name: the label of the encoding, with the mask of inference behind it.
        label, mask, trained, verdict: as the table of results has them.
        scale, source: of the models, in words.
        seeds: of the models.
        nats: of perplexity, by protocol, length and seed.
        curve: share of the gradient on the most recent tokens, by their number.
        gradient, erf, trf: receptive fields by eps: of the gradient, of attention, and in theory.
        losses, resolutions: by step, and by length of the scores; both by seed.
        seconds: processor time of training by seed.
    """

    name: str
    label: str
    mask: str
    trained: int
    verdict: str
    scale: str
    source: str
    seeds: tuple[int, ...]
    nats: Mapping[str, Mapping[int, Mapping[int, float]]]
    curve: Mapping[int, float]
    gradient: Mapping[float, float]
    erf: Mapping[float, float]
    trf: Mapping[float, float]
    losses: Mapping[int, Mapping[int, float]]
    resolutions: Mapping[int, Mapping[int, float]]
    seconds: Mapping[int, float]

    def mean(self, protocol: str = LAST, most: int | None = None) -> dict[int, float]:
        """Perplexity by length, geometric means over seeds."""
        nats = sorted(_means(self.nats[protocol]).items())
        return {n: math.exp(v) for n, v in nats if most is None or n <= most}


def model(lines: DataFrame) -> Model:
    """The model that lines of the table are about."""

    def by(protocol: str, x: str, y: str) -> dict[Any, dict[int, float]]:
        found: dict[Any, dict[int, float]] = {}
        for at, seed, v in lines.filter(protocol=protocol).select(x, "seed", y).iter_rows():
            if at is not None and v is not None:
                found.setdefault(at, {})[seed] = v
        return found

    own = lines.row(0, named=True)
    return Model(
        name=f"{own['label']} + {own['mask']}" if own["mask"] else own["label"],
        label=own["label"],
        mask=own["mask"],
        trained=own["trained"],
        verdict=own["verdict"] or "",
        scale=f"{own['preset']}: {own['layers']} layers, {own['width']} wide, {own['heads']} "
        f"heads, trained on {own['trained']} tokens",
        source=f"results, experiment {own['experiment']}",
        seeds=tuple(lines["seed"].unique(maintain_order=True)),
        nats={protocol: by(protocol, "length", "nats") for protocol in (LAST, WHOLE)},
        curve=_means(by("gradient", "distance", "gradient")),
        gradient=_means(by("gradient", "eps", "erf")),
        erf=_means(by("attention", "eps", "erf")),
        trf=_means(by("attention", "eps", "trf")) if own["mechanism"] == "bias" else {},
        losses=by("training", "step", "nats"),
        resolutions=by("scores", "length", "resolution"),
        seconds=dict(lines.select("seed", "seconds").drop_nulls().iter_rows()),
    )


def _means(values: Mapping[Any, Mapping[int, float]]) -> dict[Any, float]:
    """The mean over seeds of each."""
    return {at: float(np.mean([*by.values()])) for at, by in values.items()}


def read(source: Sequence[Any]) -> tuple[Item, ...]:
    """What an entry reads.

    Args:
        source: names of printed tables; `gradients`, by token; runs by training length and folder;
            biases, each with the options of its encoding.
    """

    def items(part: Any) -> Sequence[Item]:
        if part == "gradients":
            return gradients()
        if isinstance(part, str):
            return table(part)
        return [formula(**part)] if "bias" in part else models(**part)

    return tuple(item for part in source for item in items(part))


def gradients() -> list[Item]:
    """The models whose gradient was measured token by token, with its shares, nearest first."""
    lines = results().filter(protocol="gradient by token").sort("distance", maintain_order=True)
    return [
        SimpleNamespace(
            name=own["label"][0],
            trained=own["trained"][0],
            seed=own["seed"][0],
            scale=model(own).scale,
            shares=[*own["gradient"]],
        )
        for own in lines.partition_by("label", "trained", "seed", maintain_order=True)
    ]


@lru_cache(maxsize=32)
def models(*, trained: int | None = None, folder: str = "first") -> tuple[Model, ...]:
    """The models of one setting, with every mask of inference that was measured.

    Runs that differ in their seed alone make one model. Of several settings (preset, training
    length) the one with the most encodings is read, since perplexities of two do not compare.

    Args:
        trained: only models of this training length; None takes the setting with most encodings.
        folder: the experiment: `first`, the registered runs, `further/windows` and others.
    """
    lines = results().filter(experiment=folder)
    masked = lines.filter(lines["protocol"] != "training")
    alike: dict[str, list[Model]] = {}
    for own in masked.partition_by("label", "mask", "preset", "trained", maintain_order=True):
        same = {"label": own["label"][0], "trained": own["trained"][0]}
        found = model(own.vstack(lines.filter(**same, protocol="training")))
        if trained in (None, found.trained):
            alike.setdefault(found.scale, []).append(found)
    most: list[Model] = max([[], *alike.values()], key=len)
    return tuple(most)


def formula(bias: str, name: str = "", **options: Any) -> Item:
    """A bias as an item: its name, its options, and the encoding they make."""
    made = encoding(bias, **options)
    return SimpleNamespace(name=name or bias, bias=bias, encoding=made, **options)


def held(value: Any) -> Any:
    """What the results hold.

    Raises:
        Missing: it is nothing.
    """
    if value is None or value is False or (not isinstance(value, (int, float)) and not len(value)):
        raise Missing("the results do not hold the models, or not as far as they are asked")
    return value


FIELDS: Mapping[str, Callable[[Any], Any]] = {
    "covered": lambda model: min(model.gradient.values(), default=math.inf) <= model.trained,
    "falling": lambda model: falling(model.name),
    "has fields": lambda model: bool(model.trf),
    "has scores": lambda model: 2 * model.trained in model.resolutions,
    "steady": lambda model: stays(model.mean(), 0.01),
    "verdict": lambda item: (
        item.verdict if isinstance(item, Model) else verdict_of_layer(bias_of(item))
    ),
}
"""What else an item can be selected by: whether its gradient ERF lies within the training length,
whether its bias falls throughout, whether it has finite-row TRFs or mean scores to twice the
training length, whether its last token gains nothing from longer rows, and the verdict on its
series."""


def _field(item: Item, name: str) -> Any:
    """A field of a cell or model; the variant `delta=-3` of a cell is a field `delta` too."""
    if name in FIELDS:
        return FIELDS[name](item)
    if name == "length" and isinstance(item, PrintedNumber):
        return item.eval_length
    if hasattr(item, name):
        return getattr(item, name)
    key, _, value = item.variant.partition("=") if isinstance(item, PrintedNumber) else ("", "", "")
    return (int(value) if value.lstrip("-").isdigit() else value) if key == name else None


def _like(value: Any, pattern: Any) -> bool:
    if isinstance(pattern, str) and "*" in pattern:
        return fnmatch.fnmatchcase(str(value), pattern)
    return bool(value == pattern)


def _selected(items: Sequence[Item], where: Spec) -> list[Item]:
    """The items whose fields have the wanted values, in the order in which a list names these.

    Raises:
        Missing: no model has a name or training length that is wanted.
    """
    found = list(items)
    for name, wanted in where.items():
        values = wanted if isinstance(wanted, list) else [wanted]
        places = [[i for i in found if _like(_field(i, name), v)] for v in values]
        if name in ("name", "trained"):
            held(all(places))
        found = [item for place in places for item in place]
    return found


@dataclass(frozen=True)
class _Group:
    """What a measure looks at: value by length, the training length, and the items behind them."""

    items: Sequence[Item]
    spec: Spec
    tolerance: float
    source: Sequence[Item] = ()

    @property
    def one(self) -> Item:
        """The only row of the group."""
        (found,) = self.items
        return found

    @property
    def trained(self) -> int:
        first = self.items[0]
        length = first.train_length if isinstance(first, PrintedNumber) else first.trained
        return int(self.spec.get("trained", length))

    def curve(self, items: Sequence[Item] | None = None) -> dict[int, float]:
        """Value by length of this group or of others, or what `along` says; never empty."""
        found = self.items if items is None else items
        if isinstance(first := found[0], Model):
            most = self.spec.get("times")
            values = (
                ALONG[self.spec["along"]](first)
                if "along" in self.spec
                else first.mean(self.spec.get("protocol", LAST), most and most * first.trained)
            )
        else:
            values = {
                c.eval_length: c.value for c in found if c.eval_length and c.value is not None
            }
        return held(values)

    def beyond(self) -> dict[int, float]:
        """The curve, which has the training length and a longer one."""
        values = self.curve()
        held(self.trained in values and max(values) > self.trained)
        return values

    def bounded(self, values: Mapping[int, float]) -> Any:
        """A curve between `start` and `end`; a number where one length is wanted."""
        if "at" in self.spec:
            return held(values.get(self.spec["at"]))
        start, end = self.spec.get("start", 0), self.spec.get("end", max(values, default=0))
        found = {n: v for n, v in values.items() if start <= n <= end}
        return next(iter(found.values())) if "length" in self.spec.get("by", ()) else found

    def other(self) -> list[Item]:
        """What this group is compared with: itself where `than` names a length alone, else the rows
        that `than` selects, of the same group where it says nothing else."""
        if self.spec["than"].keys() == {"at"}:
            return list(self.items)
        than = {k: v for k, v in self.spec["than"].items() if k not in ("from", "at")}
        by = {"dataset", *self.spec.get("by", ())} - {"length"}
        same = {name: value for name in by if (value := _field(self.items[0], name))}
        return held(_selected(self.source, same | than))

    def compared(self, how: Callable[[float, float], float]) -> Any:
        """The curve beside the other one, at the same length or at the one that `than` names."""
        mine, other, at = self.curve(), self.curve(self.other()), self.spec["than"].get("at")
        if at == "trained":
            at = self.trained
        beside = dict.fromkeys(mine, held(other.get(at))) if at else other
        return self.bounded({n: how(v, beside[n]) for n, v in mine.items() if n in beside})


def _settled(g: _Group) -> int:
    values = g.curve()
    late = ({m: v for m, v in values.items() if m >= n} for n in sorted(values))
    return min(next(part for part in late if stays(part, g.tolerance)))


def _doublings(g: _Group) -> dict[int, float]:
    values = g.bounded(g.curve())
    return {b: values[b] - values[a] for a, b in itertools.pairwise(sorted(values))}


def _gain(g: _Group) -> float:
    values = g.beyond()
    return 1 - values[max(values)] / values[g.trained]


def _from_lowest(g: _Group) -> dict[int, float]:
    values = g.curve()
    return {n: v for n, v in sorted(values.items()) if n >= min(values, key=values.__getitem__)}


def _sliding_gain(g: _Group) -> dict[int, float]:
    """The protocols score other tokens, so each is taken relative to its own widest window, where
    sliding is at least as good: what is found is less than the whole advantage."""
    sliding, blocks = g.one.mean(LAST), g.one.mean(WHOLE)
    widest = max(sliding)
    return {
        w: blocks[w] / blocks[widest] * sliding[widest] / sliding[w] - 1
        for w in sliding
        if w < widest
    }


def _deviations(g: _Group) -> Any:
    """By how many printed deviations the other column lies above."""
    spread = {c.eval_length: c.std for c in g.items if isinstance(c, PrintedNumber) and c.std}
    apart = g.compared(lambda mine, other: other - mine)
    return {n: v / spread[n] for n, v in apart.items()}


def _steps(g: _Group) -> dict[int, float]:
    """The share of the other model's steps after which the loss is no larger than its last one."""
    (other,) = g.other()
    mine, last = held(g.one.losses), max(held(other.losses))
    found = {}
    for s in sorted(set(mine[last]) & set(other.losses[last])):
        reached = (step for step in mine if mine[step][s] <= other.losses[last][s])
        found[s] = min(reached, default=math.inf) / last
    return found


def _home(g: _Group) -> float:
    """At the training length; a column that explodes counts as lower than any."""
    values = g.beyond()
    return values[g.trained] if increase(values, g.trained) < EXPLODES else -math.inf


def _home_by_seed(g: _Group) -> dict[int, float]:
    by = held(g.one.nats[g.spec.get("protocol", LAST)])
    return {seed: math.exp(nats) for seed, nats in by[g.trained].items()}


def _mass(g: _Group) -> float:
    """The share of the gradient in the training length."""
    return float(held(g.one.curve.get(g.trained)))


def _peak(g: _Group) -> int:
    """The token with the largest share of the gradient before the last 8 steps, from the start."""
    far = int(np.argmax(g.one.shares[8:])) + 8
    return STEP * (len(g.one.shares) - far)


def _quarters(g: _Group) -> float:
    """The share of the gradient at distances 48 .. 63 over that at 32 .. 47."""
    near, far = (sum(g.one.shares[k // STEP : (k + 16) // STEP]) for k in (32, 48))
    return float(far / near)


def _verdict(g: _Group) -> str | list[str]:
    """On the series of a bias, one a head."""
    found = by_head(g.one.encoding)
    return found if len(found) > 1 else found[0]


def _tokens(g: _Group) -> Any:
    """The certified receptive field, one a head."""
    found = theoretical_receptive_field(g.one.encoding, g.spec["eps"], length=g.spec.get("length"))
    return [h.tokens for h in found.heads] or found.tokens


def _resolutions(g: _Group) -> dict[int, float]:
    """R of the mean scores of a row of `times` the training length, by seed."""
    return held(g.one.resolutions.get(g.spec["times"] * g.trained))


MEASURES: Mapping[str, Callable[[_Group], Any]] = {
    "verdict": _verdict,
    "condition": lambda g: str(decided(g.one.encoding).condition),
    "proof": lambda g: decided(g.one.encoding).proof.text(),
    "reason": lambda g: decided(g.one.encoding).reason,
    "tokens": _tokens,
    "curve": lambda g: g.bounded(g.curve()),
    "increase": lambda g: increase(g.beyond(), g.trained),
    "drift": lambda g: drift(g.beyond(), g.trained),
    "gain": _gain,
    "doublings": _doublings,
    "from the lowest": _from_lowest,
    "lowest": lambda g: min(g.curve(), key=g.curve().__getitem__),
    "printed": lambda g: g.one.printed,
    "value": lambda g: g.one.value,
    "sliding gain": _sliding_gain,
    "over": lambda g: g.compared(lambda mine, other: mine / other - 1),
    "minus": lambda g: g.compared(lambda mine, other: mine - other),
    "deviations": _deviations,
    "home": _home,
    "reach": lambda g: g.spec["layers"] * (_field(g.one, "w") - 1) + 1,
    "peak": _peak,
    "peak off": lambda g: abs(_peak(g) / g.trained - 1),
    "first share": lambda g: sum(g.items[0].shares[-g.trained // STEP :]),
    "quarters": _quarters,
    "steps": _steps,
    "resolutions": _resolutions,
    "resolution": lambda g: float(np.mean([*_resolutions(g).values()])),
    "minus resolution": lambda g: -float(np.mean([*_resolutions(g).values()])),
    "settled": _settled,
    "trained": lambda g: g.trained,
    "mass": _mass,
    "mass beyond": lambda g: 1 - _mass(g),
    "gradient": lambda g: min(held(g.one.gradient).values()),
    "even share": lambda g: g.spec["tokens"] / max(held(g.one.curve)),
    "erf": lambda g: g.one.erf,
    "trf": lambda g: g.one.trf,
    "off": lambda g: max(abs(g.one.erf[e] / g.one.trf[e] - 1) for e in g.one.trf),
    "by seed": _home_by_seed,
}
"""Of a group; some compare it with another."""

ALONG: Mapping[str, Callable[[Model], dict[int, float]]] = {
    "gradient": lambda model: {**model.curve},
    "losses": lambda model: {
        seed: float(np.mean([by[seed] for by in model.losses.values()]))
        for seed in sorted(next(iter(model.losses.values()), {}))
    },
    "seconds": lambda model: dict(sorted(model.seconds.items())),
}
"""Curves of a model beside its perplexity: share of the gradient by tokens, mean training loss and
seconds of training by seed."""


# -- the form of a quantity -----------------------------------------------------------------------


def measured(data: Data, first: str, spec: Spec) -> tuple[Any, int, list[Item]]:
    """A quantity that is found in rows.

    Args:
        data: what the entry reads, and the tolerance.
        first: what is read where the quantity does not say `from`.
        spec: the measure with its options; `where` selects rows and `by` groups them.

    Returns:
        The quantity by group, of how many cases it is, and the rows behind it.

    Raises:
        Missing: there are no such rows.
    """
    own = spec.get("from", first)
    source = data[spec.get("than", {}).get("from", own)]
    items = held(_selected(data[own], spec.get("where", {})))
    groups: dict[Path, list[Item]] = {}
    for item in items:
        path = tuple(_field(item, by) for by in spec.get("by", ()))
        groups.setdefault(path, []).append(item)
    values = {
        path: MEASURES[spec["of"]](_Group(group, spec, data["tolerance"], source))
        for path, group in groups.items()
    }
    shaped = _shaped(values, spec)
    return shaped, len(groups) if spec.get("series") else len(leaves(shaped)), items


PICKS: Mapping[str, Callable[[Any], float]] = {
    "largest": max,
    "least": min,
    "spread": lambda row: max(row) / min(row) - 1,
    "furthest": lambda row: max(map(abs, row)),
    "mean": lambda row: sum(row) / len(row),
}
"""Of each row of a quantity."""


def _shaped(values: Mapping[Path, Any], spec: Spec) -> Any:
    """Values by path as nested mappings, with what the entry wants of their form."""
    if "digits" in spec:
        values = {p: round(v, spec["digits"]) for p, v in leaves(values, ()).items()}
    nested: Any = {}
    for path, value in values.items():
        place = nested
        flat = _flat(path)
        if not flat:
            return value
        for key in flat[:-1]:
            place = place.setdefault(key, {})
        place[flat[-1]] = value
    if "pick" in spec:
        nested = rows_of(nested, lambda row: PICKS[spec["pick"]](row.values()))
    if spec.get("flip"):
        shared = set.intersection(*map(set, nested.values()))
        return {key: [row[key] for row in nested.values()] for key in sorted(shared)}
    if "join" in spec:
        return {spec["join"].join(map(str, p)): v for p, v in leaves(nested).items()}
    return rows_of(nested, lambda row: list(row.values())) if spec.get("list") else nested


def _flat(path: Path) -> Path:
    return tuple(k for part in path for k in (_flat(part) if isinstance(part, tuple) else (part,)))


def leaves(value: Any, path: Path = ()) -> dict[Path, Any]:
    """The numbers of nested mappings and lists, each by its path."""
    if isinstance(value, Mapping):
        parts = value.items()
    elif isinstance(value, (list, tuple)):
        parts = dict(enumerate(value)).items()
    else:
        return {_flat(path): value}
    return {k: v for key, part in parts for k, v in leaves(part, (*path, key)).items()}


def rows_of(value: Any, of: Callable[[Mapping[Any, Any]], Any]) -> Any:
    """The innermost mappings, each replaced."""
    if all(isinstance(v, Mapping) for v in value.values()):
        return {k: rows_of(v, of) for k, v in value.items()}
    return of(value)


def each_row(value: Any, path: Path = ()) -> Iterator[tuple[Path, Mapping[Any, float]]]:
    """The innermost rows of nested mappings and lists, each with its path."""
    row = value if isinstance(value, Mapping) else dict(enumerate(value))
    if any(isinstance(v, (Mapping, list, tuple)) for v in row.values()):
        for key, part in row.items():
            yield from each_row(part, (*path, key))
    else:
        yield path, row
