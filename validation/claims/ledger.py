"""The claims of one paper, read from its file in `validation/published`.

A file names the sections and says of each claim what it is: the sentence, where it stands, what it
says in our own words, what would refute it, the quantities, and the predicates of `judge` that must
hold of them.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from farfield.validation.claims import chi2023, judge, qin2024, sun2023
from farfield.validation.claims.claim import EXACT, Check

MODULES = {"qin2024": qin2024, "sun2023": sun2023, "chi2023": chi2023}
PAPERS = tuple(MODULES)


@dataclass(frozen=True)
class Passage:
    """A sentence that looks checkable and has no entry, and why."""

    section: str
    quote: str
    why: str


@dataclass(frozen=True)
class Ledger:
    """The claims of one paper and the sentences that have none, by section."""

    sections: tuple[str, ...]
    checks: tuple[Check, ...]
    passages: tuple[Passage, ...]


@cache
def ledger(paper: str) -> Ledger:
    """What is said of one paper, its claims in the order of its sections."""
    text = files("farfield.validation.published").joinpath(f"{paper}.toml").read_text("utf-8")
    return parsed(paper, text)


def parsed(paper: str, text: str) -> Ledger:
    """The same from the text of a file."""
    found = tomllib.loads(text)
    scales = {"printed tables": found["scale"], "experiment": "that of the runs"}
    checks = []
    for entry in found["claim"]:
        name = entry.pop("id")
        judged = {key: entry.pop(key) for key in judge.KEYS if key in entry}
        data, decide = judge.decision(judged, MODULES[paper])
        scale = entry.pop("scale", scales.get(entry["kind"], EXACT))
        checks.append(Check(id=f"{paper}.{name}", scale=scale, data=data, decide=decide, **entry))
    order = found["sections"]
    return Ledger(
        tuple(order),
        tuple(sorted(checks, key=lambda c: order.index(c.section))),
        tuple(Passage(**p) for p in found["passage"]),
    )
