"""Named predicates judge every claim; its entry names the quantities and the predicates.

An entry *reads* tables or runs and *finds* quantities by group, or a function of the paper's module
has them *computed*. The entry says which predicates must hold of the quantities. It says the same
of what holds *instead* where the statement fails, and of what it *needs* to be testable at all.

    read = { cells = ["chi2023_table3"] }
    find."lowest at" = { of = "lowest", where = { encoding = "Sandwich" }, by = ["dataset"] }
    holds = [{ is = "above", of = "lowest at", limit = 512 }]

    computed = "uniform_tails"
    given = { local = "-n/2" }
    holds = [{ is = "below", of = "worst delta", limit = 0.01 }]

A quantity that is found takes a measure of each group of rows (`MEASURES`), or ranks, or the keys
at which a predicate holds. A function takes what is read or `given`, over its own defaults, and
returns quantities by name; `n` is the number of cases it compared. Every quantity whose name does
not begin with `_` is evidence.

A predicate is asked of each number (`NUMBERS`) or of each row of numbers (`ROWS`). It has to hold
of all, unless it says `some`, `most` or `only`. `at` and `but` name a key, or a quantity that lists
keys. The numbers at which the predicate fails can be shown.
"""

from __future__ import annotations

import fnmatch
import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from farfield.numerics.identities import vanishes
from farfield.validation.claims.claim import Data, Finding, Missing, Quantities
from farfield.validation.claims.gradients import STEP, gradients
from farfield.validation.claims.plain_attention import resolution
from farfield.validation.claims.results import models
from farfield.validation.claims.series_verdicts import falling, verdict_of_layer
from farfield.validation.claims.words import (
    BY_CHANCE,
    EXPLODES,
    about,
    by_chance,
    drift,
    falls,
    increase,
    rank_correlation,
    stays,
)
from farfield.validation.published import PrintedNumber, bias_of, table
from farfield.validation.reference.table import LAST, WHOLE, Model

Spec = Mapping[str, Any]
Item = Any
Path = tuple[Any, ...]
KEYS = (
    *("read", "given", "computed", "find", "count", "needs", "holds", "instead"),
    *("notes", "reason"),
)
LIMITS = {"double": EXPLODES, "chance": BY_CHANCE}
FEWEST = 4  # models whose ranks say something


def decision(
    entry: Spec, paper: ModuleType | None = None
) -> tuple[Callable[[], Data], Callable[[Data], Finding]]:
    """The data of an entry, and what judges them.

    Args:
        entry: what a claim's file says of it, as far as `KEYS` name it.
        paper: the module whose functions compute what is not found in tables or runs.
    """
    compute = getattr(paper, entry["computed"]) if "computed" in entry else _nothing
    parameters = inspect.signature(compute).parameters
    usual = {k: p.default for k, p in parameters.items() if p.default is not p.empty}

    def data() -> Data:
        read = {key: _read(source) for key, source in entry.get("read", {}).items()}
        return {**usual, **entry.get("given", {}), **read}

    def judged(data: Data) -> Finding:
        return _judged(entry, data, lambda: compute(**{k: data[k] for k in parameters}))

    return data, judged


def _nothing() -> Quantities:
    return {}


def _read(source: Sequence[Any]) -> tuple[Item, ...]:
    """Printed tables by name, runs by training length and folder, or `gradients` by token."""

    def items(part: Any) -> Sequence[Item]:
        if part == "gradients":
            return [SimpleNamespace(**entry) for entry in gradients()]
        return table(part) if isinstance(part, str) else models(**part)

    return tuple(item for part in source for item in items(part))


# -- rows and groups ------------------------------------------------------------------------------


FIELDS: Mapping[str, Callable[[Any], Any]] = {
    "covered": lambda model: model.gradient <= model.trained,
    "falling": lambda model: falling(model.name),
    "has fields": lambda model: bool(model.trf),
    "has scores": lambda model: (
        bool(model.scores) and min(map(len, model.scores.values())) >= 2 * model.trained
    ),
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
        if name in ("name", "trained") and not all(places):
            raise Missing("the results do not hold the models")
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
    def model(self) -> Model:
        (found,) = self.items
        assert isinstance(found, Model)
        return found

    @property
    def cell(self) -> PrintedNumber:
        (found,) = self.items
        assert isinstance(found, PrintedNumber)
        return found

    @property
    def trained(self) -> int:
        first = self.items[0]
        length = first.train_length if isinstance(first, PrintedNumber) else first.trained
        return int(self.spec.get("trained", length))

    def curve(self, items: Sequence[Item] | None = None) -> dict[int, float]:
        found = self.items if items is None else items
        if found and isinstance(found[0], Model):
            if along := self.spec.get("along"):
                return ALONG[along](found[0])
            most = self.spec.get("times")
            return found[0].mean(self.spec.get("protocol", LAST), most and most * found[0].trained)
        cells = (c for c in found if isinstance(c, PrintedNumber))
        return {c.eval_length: c.value for c in cells if c.eval_length and c.value is not None}

    def bounded(self, values: Mapping[int, float]) -> Any:
        """A curve between `start` and `end`; a number where one length is wanted."""
        if "at" in self.spec:
            if self.spec["at"] not in values:
                raise Missing(f"the results do not hold rows of {self.spec['at']} tokens")
            return values[self.spec["at"]]
        start, end = self.spec.get("start", 0), self.spec.get("end", max(values, default=0))
        found = {n: v for n, v in values.items() if start <= n <= end}
        return next(iter(found.values())) if "length" in self.spec.get("by", ()) else found

    def other(self) -> list[Item]:
        """What this group is compared with: of the same group where `than` says nothing else."""
        by = {"dataset", *self.spec.get("by", ())} - {"length"}
        same = {name: value for name in by if (value := _field(self.items[0], name))}
        than = {k: v for k, v in self.spec["than"].items() if k not in ("from", "at")}
        if not (found := _selected(self.source, same | than)):
            raise Missing("the results do not hold the models")
        return found

    def compared(self, how: Callable[[float, float], float]) -> Any:
        """The curve beside the other one, at the same length or at the one that `than` names."""
        mine, other, at = self.curve(), self.curve(self.other()), self.spec["than"].get("at")
        beside = dict.fromkeys(mine, other[at]) if at else other
        return self.bounded({n: how(v, beside[n]) for n, v in mine.items() if n in beside})


def _settled(g: _Group) -> int:
    values = g.curve()
    late = ({m: v for m, v in values.items() if m >= n} for n in sorted(values))
    return min(next(part for part in late if stays(part, g.tolerance)))


def _doublings(g: _Group) -> dict[int, float]:
    values = g.bounded(g.curve())
    return {b: values[b] - values[a] for a, b in itertools.pairwise(sorted(values))}


def _gain(g: _Group) -> float:
    values = g.curve()
    return 1 - values[max(values)] / values[g.trained]


def _farthest(g: _Group) -> float:
    values = g.curve()
    return max(abs(v / values[g.trained] - 1) for v in values.values())


def _change(g: _Group) -> float:
    values, (a, b) = g.curve(), g.spec["to"]
    return values[b] / values[a] - 1


def _from_lowest(g: _Group) -> dict[int, float]:
    values = g.curve()
    return {n: v for n, v in sorted(values.items()) if n >= min(values, key=values.__getitem__)}


def _sliding_gain(g: _Group) -> dict[int, float]:
    """The protocols score other tokens, so each is taken relative to its own widest window, where
    sliding is at least as good: what is found is less than the whole advantage."""
    sliding, blocks = g.model.mean(LAST), g.model.mean(WHOLE)
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
    assert isinstance(other, Model)
    losses, last = g.model.losses, max(other.losses)
    seeds = sorted(set(losses[last]) & set(other.losses[last]))
    return {
        s: min(t for t in losses if losses[t][s] <= other.losses[last][s]) / last for s in seeds
    }


def _home(g: _Group) -> float:
    """At the training length; a column that explodes counts as lower than any."""
    values = g.curve()
    return values[g.trained] if increase(values, g.trained) < EXPLODES else -math.inf


def _peak(g: _Group) -> int:
    """The token with the largest share of the gradient before the last 8 steps, from the start."""
    (found,) = g.items
    far = int(np.argmax(found.shares[8:])) + 8
    return STEP * (len(found.shares) - far)


def _quarters(g: _Group) -> float:
    """The share of the gradient at distances 48 .. 63 over that at 32 .. 47."""
    (found,) = g.items
    near, far = (sum(found.shares[k // STEP : (k + 16) // STEP]) for k in (32, 48))
    return float(far / near)


def _resolutions(g: _Group) -> dict[int, float]:
    """R of the first scores of a row, to `times` the training length, by seed."""
    most = g.spec["times"] * g.trained
    rows = {seed: np.array(scores[:most]) for seed, scores in g.model.scores.items()}
    return {seed: float(resolution(np.exp(row))) for seed, row in sorted(rows.items())}


MEASURES: Mapping[str, Callable[[_Group], Any]] = {
    "perplexity": lambda g: g.bounded(g.curve()),
    "increase": lambda g: increase(g.curve(), g.trained),
    "farthest": _farthest,
    "drift": lambda g: drift(g.curve(), g.trained),
    "change": _change,
    "gain": _gain,
    "step": lambda g: g.curve()[g.spec["to"][1]] - g.curve()[g.spec["to"][0]],
    "doublings": _doublings,
    "above home": lambda g: g.bounded({n: v - g.curve()[g.trained] for n, v in g.curve().items()}),
    "from the lowest": _from_lowest,
    "lowest": lambda g: min(g.curve(), key=g.curve().__getitem__),
    "printed": lambda g: g.cell.printed,
    "value": lambda g: g.cell.value,
    "sliding gain": _sliding_gain,
    "over": lambda g: g.compared(lambda mine, other: mine / other - 1),
    "minus": lambda g: g.compared(lambda mine, other: mine - other),
    "deviations": _deviations,
    "home": _home,
    "reach": lambda g: g.spec["layers"] * (_field(g.cell, "w") - 1) + 1,
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
    "mass": lambda g: g.model.mass,
    "mass beyond": lambda g: 1 - g.model.mass,
    "gradient": lambda g: g.model.gradient,
    "share": lambda g: g.model.curve[g.spec["tokens"]],
    "even share": lambda g: g.spec["tokens"] / max(g.model.curve),
    "erf": lambda g: g.model.erf,
    "trf": lambda g: g.model.trf,
    "off": lambda g: max(abs(g.model.erf[e] / g.model.trf[e] - 1) for e in g.model.trf),
    "by seed": lambda g: g.model.perplexity[g.spec.get("protocol", LAST)][g.trained],
}
"""Of a group; some compare it with another."""

ALONG: Mapping[str, Callable[[Model], dict[int, float]]] = {
    "gradient": lambda model: dict(model.curve),
    "losses": lambda model: {
        seed: float(np.mean([by[seed] for by in model.losses.values()]))
        for seed in sorted(next(iter(model.losses.values()), {}))
    },
    "seconds": lambda model: dict(sorted(model.seconds.items())),
}
"""Curves of a model beside its perplexity: share of the gradient by tokens, mean training loss and
seconds of training by seed."""


# -- quantities -----------------------------------------------------------------------------------


@dataclass
class _Found:
    """The quantities of an entry, with how many numbers they are and the models behind them."""

    data: Data
    first: str
    values: dict[str, Any] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    models: dict[str, list[Model]] = field(default_factory=dict)
    scales: dict[str, set[str]] = field(default_factory=dict)

    @property
    def evidence(self) -> Quantities:
        """The quantities that are shown."""
        return {k: v for k, v in self.values.items() if k != "n" and not k.startswith("_")}

    def names(self, given: str | list[str]) -> set[str]:
        """The keys of a quantity or those that it lists; else what is given itself."""
        listed = given if isinstance(given, list) else self.values.get(given, [given])
        return set(map(str, listed))

    def size(self, name: str) -> int:
        """How many numbers a quantity is made of."""
        return self.sizes.get(name, len(leaves(self.values[name])))

    def add(self, name: str, spec: Spec) -> None:
        if "rank" in spec or "chance" in spec:
            judge = rank_correlation if "rank" in spec else _chance
            first, second = (self.values[k] for k in spec.get("rank", spec.get("chance")))
            self.values[name] = (
                {k: judge(first[k], second[k]) for k in first}
                if spec.get("each")
                else judge(*([*leaves(each).values()] for each in (first, second)))
            )
        elif "disagree" in spec:
            first, second = (self.values[k] for k in spec["disagree"])
            self.values[name] = _disagreements(first, second)
            self.sizes[name] = len(list(itertools.combinations(first, 2)))
        elif "least" in spec:
            name_of, value = min(self.values[spec["least"]].items(), key=lambda pair: pair[1])
            self.values[name] = {name_of: value}
        elif "keys" in spec:
            self.values[name] = _keys(self.values[spec["keys"]], spec, self.data["tolerance"])
        else:
            self._measured(name, spec)

    def _measured(self, name: str, spec: Spec) -> None:
        own = spec.get("from", self.first)
        source = self.data[spec.get("than", {}).get("from", own)]
        items = _selected(self.data[own], spec.get("where", {}))
        if not items:
            raise Missing("the results do not hold the models")
        groups: dict[Path, list[Item]] = {}
        for item in items:
            path = tuple(_field(item, by) for by in spec.get("by", ()))
            groups.setdefault(path, []).append(item)
        values = {
            path: MEASURES[spec["of"]](_Group(group, spec, self.data["tolerance"], source))
            for path, group in groups.items()
        }
        self.models[name] = [i for i in items if isinstance(i, Model)]
        self.scales[name] = {i.scale for i in items if not isinstance(i, PrintedNumber)}
        self.values[name] = _shaped(values, spec)
        self.sizes[name] = len(groups) if spec.get("series") else len(leaves(self.values[name]))


def _chance(first: Sequence[float], second: Sequence[float]) -> float:
    if len(set(first)) < FEWEST:
        raise Missing("fewer than four models to rank")
    return by_chance(first, second)


def _disagreements(first: Mapping[Any, Any], second: Mapping[Any, Any]) -> list[str]:
    """The pairs of rows that two quantities put in another order, and where."""
    return [
        f"{a}, {b} at {key}"
        for a, b in itertools.combinations(first, 2)
        for key in first[a]
        if (first[a][key] - first[b][key]) * (second[a][key] - second[b][key]) < 0
    ]


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
        nested = _rows(nested, lambda row: PICKS[spec["pick"]](row.values()))
    if spec.get("flip"):
        shared = set.intersection(*map(set, nested.values()))
        return {key: [row[key] for row in nested.values()] for key in sorted(shared)}
    if "join" in spec:
        return {spec["join"].join(map(str, p)): v for p, v in leaves(nested).items()}
    return _rows(nested, lambda row: list(row.values())) if spec.get("list") else nested


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


def _rows(value: Any, of: Callable[[Mapping[Any, Any]], Any]) -> Any:
    """The innermost mappings, each replaced."""
    if all(isinstance(v, Mapping) for v in value.values()):
        return {k: _rows(v, of) for k, v in value.items()}
    return of(value)


def _each_row(value: Any, path: Path = ()) -> Iterator[tuple[Path, Mapping[Any, float]]]:
    row = value if isinstance(value, Mapping) else dict(enumerate(value))
    if any(isinstance(v, (Mapping, list, tuple)) for v in row.values()):
        for key, part in row.items():
            yield from _each_row(part, (*path, key))
    else:
        yield path, row


def _keys(value: Mapping[Any, Any], spec: Spec, tolerance: float) -> Any:
    """The keys of each row at which a predicate on numbers holds."""
    limit = _limit(spec.get("limit", spec.get("value")), tolerance)
    return _rows(value, lambda row: [k for k, v in row.items() if NUMBERS[spec["is"]](v, limit)])


# -- predicates -----------------------------------------------------------------------------------


def _crosses(row: Mapping[Any, float], limit: float) -> bool:
    """Below the limit at first, and from some place on not any more."""
    lost = [v >= limit for v in row.values()]
    return lost == sorted(lost) and not lost[0] and lost[-1]


NUMBERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "below": lambda x, limit: x < limit,
    "at most": lambda x, limit: x <= limit,
    "above": lambda x, limit: x > limit,
    "at least": lambda x, limit: x >= limit,
    "within": lambda x, limit: abs(x) < limit,
    "near 1": lambda x, limit: abs(x - 1) < limit,
    "about": about,
    "equals": lambda x, value: x == value,
    "other than": lambda x, value: x != value,
    "true": lambda x, _: bool(x),
    "vanishes": lambda x, _: vanishes(x),
    "stays or doubles": lambda x, limit: x < limit or x >= EXPLODES,
}
ROWS: Mapping[str, Callable[[Mapping[Any, float], Any], bool]] = {
    "falls": lambda row, _: falls(dict(enumerate(row.values()))),
    "rises": lambda row, _: falls({-n: v for n, v in enumerate(row.values())}),
    "never falls": lambda row, _: all(a <= b for a, b in itertools.pairwise(row.values())),
    "stays": lambda row, limit: stays(row, limit),
    "crosses": _crosses,
    "is": lambda row, value: list(row.values()) == value,
    "first exceeds by less": lambda row, limit: row[0] / row[1] - 1 < limit,
}


def _limit(given: Any, tolerance: float) -> Any:
    if given == "tolerance":
        return tolerance
    return LIMITS.get(given, given) if isinstance(given, str) else given


def _against(spec: Spec, found: _Found) -> tuple[dict[Path, Any], dict[Path, Any]]:
    """What a predicate is asked of, and the part of it of which it does not hold."""
    value = found.values[spec["of"]]
    if spec["is"] in ROWS:
        asked: dict[Path, Any] = dict(_each_row(value))
        judge: Callable[[Any, Any], bool] = ROWS[spec["is"]]
    else:
        asked, judge = leaves(value), NUMBERS[spec["is"]]
    if "at" in spec:
        asked = {p: v for p, v in asked.items() if found.names(spec["at"]) & set(map(str, p))}
    if "but" in spec:
        asked = {p: v for p, v in asked.items() if not found.names(spec["but"]) & set(map(str, p))}
    if not asked:
        raise Missing("there is nothing to compare")
    limits: dict[Path, Any] = {}
    if "than" in spec:
        others = leaves(found.values[spec["than"]])
        limits = {p: spec.get("times", 1) * _beside(p, others) for p in asked}
    fixed = _limit(spec.get("limit", spec.get("value")), found.data["tolerance"])
    return asked, {p: v for p, v in asked.items() if not judge(v, limits.get(p, fixed))}


def _beside(path: Path, others: Mapping[Path, Any]) -> Any:
    """The number of another quantity at the same place, or at the nearest place above it."""
    return next(others[path[:k]] for k in range(len(path), -1, -1) if path[:k] in others)


def _true(spec: Spec, asked: Mapping[Path, Any], against: Mapping[Path, Any]) -> bool:
    if spec.get("some"):
        return len(against) < len(asked)
    if spec.get("most"):
        return 2 * len(against) < len(asked)
    if "only" in spec:
        return all((p in against) != (spec["only"] in map(str, p)) for p in asked)
    return not against


def _shown(spec: Spec, asked: Mapping[Path, Any], against: Mapping[Path, Any]) -> Iterator[Any]:
    named = {" ".join(map(str, p)): v for p, v in against.items()}
    if "shows" in spec:
        yield spec["shows"], named
    if "lists" in spec:
        yield spec["lists"], list(named)
    if "counts" in spec:
        yield spec["counts"], len(asked) - len(against)


def _judged(entry: Spec, data: Data, compute: Callable[[], Quantities]) -> Finding:
    """The finding of an entry on some data."""
    found = _Found(data, next(iter(entry.get("read", ())), ""))
    shown: Quantities = {}
    answers: dict[str, list[bool]] = {}
    try:
        found.values |= compute()
        for name, spec in entry.get("find", {}).items():
            found.add(name, spec)
        for part in ("needs", "holds", "instead"):
            answers[part] = []
            for spec in entry.get(part, ()):
                asked, against = _against(spec, found)
                answers[part].append(_true(spec, asked, against))
                shown |= dict(_shown(spec, asked, against))
    except Missing as why:
        return Finding(None, found.evidence, reason=entry.get("reason", str(why)))
    counted = entry.get("count", list(found.sizes)[:1])
    behind = {id(m): m for name in counted for m in found.models.get(name, ())}
    if behind:
        shown |= {
            "seeds": {m.name: len(m.seeds) for m in behind.values()},
            "results": sorted({m.source for m in behind.values()}),
        }
    return Finding(
        all(answers["holds"]) if all(answers["needs"]) else None,
        found.evidence | shown | entry.get("notes", {}),
        instead=bool(answers["instead"]) and all(answers["instead"]),
        reason=entry.get("reason", ""),
        n=len(behind) or found.values.get("n", sum(map(found.size, counted)) or None),
        scale="; ".join(sorted(set().union(*(found.scales.get(k, ()) for k in counted)))),
    )
