"""The claims of one paper, read from its file in `validation/published`.

A file names the sections and says of each claim what it is: the sentence, where it stands, what it
says in our own words, what would refute it, the quantities, and the predicates of `judge` that must
hold of them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from farfield.validation.claims import chi2023, judge, qin2024, sun2023
from farfield.validation.claims.claim import EXACT, Check

MODULES = {"qin2024": qin2024, "sun2023": sun2023, "chi2023": chi2023}
PAPERS = tuple(MODULES)


@dataclass(frozen=True)
class Ledger:
    """The claims of one paper; `passages` are the sentences that look checkable and have no entry,
    each with its `section`, its `quote`, and `why`."""

    sections: tuple[str, ...]
    checks: tuple[Check, ...]
    passages: tuple[Mapping[str, str], ...]


@cache
def ledger(paper: str) -> Ledger:
    """What is said of one paper, its claims in the order of its sections."""
    text = files("farfield.validation.published").joinpath(f"{paper}.toml").read_text("utf-8")
    return parsed(paper, text)


def parsed(paper: str, text: str) -> Ledger:
    """The same from the text of a file."""
    found = tomllib.loads(text)
    scales = {"printed tables": found["scale"], "experiment": "that of the runs"}
    order = found["sections"]
    checks = (
        Check(
            f"{paper}.{entry['id']}",
            {"scale": scales.get(entry["kind"], EXACT), **entry},
            *judge.decision(entry, MODULES[paper]),
        )
        for entry in sorted(found["claim"], key=lambda entry: order.index(entry["section"]))
    )
    return Ledger(tuple(order), tuple(checks), tuple(found["passage"]))
