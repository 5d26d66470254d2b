"""Named predicates judge every claim; its entry names the quantities and the predicates.

An entry *reads* tables, runs or biases and *finds* quantities by group, or its *formulas* are the
quantities, or a function of the paper's module has them *computed*. The entry says which predicates
must hold of the quantities. Two more lists have the same form: `instead` holds where the statement
fails, and `needs` makes it testable at all.

    read = { cells = ["chi2023_table3"] }
    find."lowest at" = { of = "lowest", where = { encoding = "Sandwich" }, by = ["dataset"] }
    holds = [{ is = "above", of = "lowest at", limit = 512 }]

    given = { product = "sin(a)*sin(b) + cos(a)*cos(b)" }
    symbols = { a = "real", b = "real" }
    formulas = { _gap = "{product} - cos(a - b)" }
    holds = [{ is = "vanishes", of = "_gap" }]

    computed = "uniform_tails"
    given = { local = "-n/2" }
    holds = [{ is = "below", of = "worst delta", limit = 0.01 }]

A quantity that is found takes a measure of each group of rows (`measures`), or ranks, or the keys
at which a predicate holds. A formula is one of the project's grammar, in which `{name}` is a given
one or an earlier one. A function takes the data read or `given`, over its own defaults. It returns
quantities by name; `n` is the number of cases it compared. Every quantity whose name does not begin
with `_` is evidence.

A predicate is asked of each number (`NUMBERS`) or of each row of numbers (`ROWS`). It has to hold
of all, unless it says `some`, `most` or `only`. `at` and `but` name a key, or a quantity that lists
keys; `than` compares with another quantity, wherever both have a number. The numbers at which the
predicate fails can be shown.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from farfield.numerics.identities import never_exceeds, vanishes
from farfield.theory.formula.grammar import Parser
from farfield.validation.claims.claim import Data, Finding, Missing, Quantities, Verdict
from farfield.validation.claims.measures import (
    Model,
    Path,
    Spec,
    each_row,
    leaves,
    measured,
    read,
    rows_of,
)
from farfield.validation.claims.words import (
    BY_CHANCE,
    EXPLODES,
    about,
    by_chance,
    falls,
    rank_correlation,
    stays,
)

LIMITS = {"double": EXPLODES, "chance": BY_CHANCE}
FEWEST = 4  # models whose ranks say something


def decision(
    entry: Spec, paper: ModuleType | None = None
) -> tuple[Callable[[], Data], Callable[[Data], Finding]]:
    """The data of an entry, and what judges them.

    Args:
        entry: what a claim's file says of it.
        paper: the module whose functions compute what is not found in tables or runs.
    """
    compute = getattr(paper, entry["computed"]) if "computed" in entry else lambda: {}
    parameters = inspect.signature(compute).parameters
    usual = {k: p.default for k, p in parameters.items() if p.default is not p.empty}

    def data() -> Data:
        sources = {key: read(source) for key, source in entry.get("read", {}).items()}
        return {**usual, **entry.get("given", {}), **sources}

    def judged(data: Data) -> Finding:
        def quantities() -> Quantities:
            return compute(**{k: data[k] for k in parameters}) | _formulas(entry, data)

        return _judged(entry, data, quantities)

    return data, judged


# -- quantities -----------------------------------------------------------------------------------


def _formulas(entry: Spec, data: Data) -> Quantities:
    """The formulas of an entry: expressions in its `symbols`, numbers where there are none."""
    texts = {name: f"({given})" for name, given in data.items()}

    def value(text: Any) -> Any:
        if isinstance(text, list):
            return [value(each) for each in text]
        found = Parser(text.format_map(texts), dict(entry.get("symbols", {}))).formula()
        if found.free_symbols:
            return found
        return int(found) if found.is_Integer else float(found)

    quantities = {}
    for name, text in entry.get("formulas", {}).items():
        quantities[name] = value(text)
        texts[name] = f"({quantities[name]})"
    return quantities


@dataclass
class _Found:
    """The quantities of an entry, with how many numbers they are and the rows behind them."""

    data: Data
    first: str
    values: dict[str, Any] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    items: dict[str, list[Any]] = field(default_factory=dict)

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
            found = measured(self.data, self.first, spec)
            self.values[name], self.sizes[name], self.items[name] = found


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


def _keys(value: Mapping[Any, Any], spec: Spec, tolerance: float) -> Any:
    """The keys of each row at which a predicate on numbers holds."""
    limit = _limit(spec.get("limit", spec.get("value")), tolerance)
    return rows_of(value, lambda row: [k for k, v in row.items() if NUMBERS[spec["is"]](v, limit)])


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
    "never negative": lambda x, _: never_exceeds(0, x),
    "stays or doubles": lambda x, limit: x < limit or x >= EXPLODES,
}
ROWS: Mapping[str, Callable[[Mapping[Any, float], Any], bool]] = {
    "falls": lambda row, _: falls(dict(enumerate(row.values()))),
    "rises": lambda row, _: falls({-n: v for n, v in enumerate(row.values())}),
    "never falls": lambda row, _: all(a <= b for a, b in itertools.pairwise(row.values())),
    "stays": stays,
    "crosses": _crosses,
    "is": lambda row, value: list(row.values()) == value,
    "first exceeds by less": lambda row, limit: row[0] / row[1] - 1 < limit,
}


def _limit(given: Any, tolerance: float) -> Any:
    if given == "tolerance":
        return tolerance
    return LIMITS.get(given, given) if isinstance(given, str) else given


def _against(spec: Spec, found: _Found) -> tuple[dict[Path, Any], dict[Path, Any]]:
    """The quantity that a predicate judges, and the part of the quantity that fails it."""
    value = found.values[spec["of"]]
    if spec["is"] in ROWS:
        asked: dict[Path, Any] = dict(each_row(value))
        judge: Callable[[Any, Any], bool] = ROWS[spec["is"]]
    else:
        asked, judge = leaves(value), NUMBERS[spec["is"]]
    if "at" in spec:
        asked = {p: v for p, v in asked.items() if found.names(spec["at"]) & set(map(str, p))}
    if "but" in spec:
        asked = {p: v for p, v in asked.items() if not found.names(spec["but"]) & set(map(str, p))}
    limits: dict[Path, Any] = {}
    if "than" in spec:
        others = leaves(found.values[spec["than"]])
        beside = {p: others[place] for p in asked if (place := _place(p, others)) is not None}
        limits = {p: spec.get("times", 1) * v for p, v in beside.items()}
        asked = {p: asked[p] for p in limits}
    if not asked:
        raise Missing("there is nothing to compare")
    fixed = _limit(spec.get("limit", spec.get("value")), found.data["tolerance"])
    return asked, {p: v for p, v in asked.items() if not judge(v, limits.get(p, fixed))}


def _place(path: Path, others: Mapping[Path, Any]) -> Path | None:
    """Where another quantity has its number for a place: there, or at the nearest place above."""
    above = (path[:k] for k in range(len(path), -1, -1))
    return next((place for place in above if place in others), None)


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
        why_not = entry.get("reason", str(why))
        return {"verdict": Verdict.NOT_TESTABLE, "evidence": found.evidence, "reason": why_not}
    counted = entry.get("count", list(found.sizes)[:1])
    items = [i for name in counted for i in found.items.get(name, ())]
    behind = {id(m): m for m in items if isinstance(m, Model)}
    if behind:
        shown |= {
            "seeds": {m.name: len(m.seeds) for m in behind.values()},
            "results": sorted({m.source for m in behind.values()}),
        }
    verdict = verdict_of(**answers)
    return {
        "verdict": verdict,
        "evidence": found.evidence | shown | entry.get("notes", {}),
        "reason": entry.get("reason", "") if verdict is Verdict.NOT_TESTABLE else "",
        "n": len(behind) or found.values.get("n", sum(map(found.size, counted)) or None),
        "scale": "; ".join(sorted({i.scale for i in items if hasattr(i, "scale")})),
    }


def verdict_of(needs: Sequence[bool], holds: Sequence[bool], instead: Sequence[bool]) -> Verdict:
    """The verdict that follows from what holds."""
    if not all(needs):
        return Verdict.NOT_TESTABLE
    if all(holds):
        return Verdict.CONFIRMED
    return Verdict.CORRECTED if instead and all(instead) else Verdict.REFUTED
