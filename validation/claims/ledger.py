"""The claims of one paper, read from its file in `validation/published`.

A file names the sections and says of each claim what it is: the sentence, where it stands, what it
says in our own words, what would refute it, the quantities, and the predicates of `judge` that must
hold of them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from farfield.validation.claims import chi2023, judge, qin2024, sun2023
from farfield.validation.claims.claim import EXACT, Check

MODULES = {"qin2024": qin2024, "sun2023": sun2023, "chi2023": chi2023}
PAPERS = tuple(MODULES)


Sections = dict[str, tuple[tuple[Check, ...], tuple[Mapping[str, str], ...]]]
"""By section, in order: its checks, and the sentences that look checkable and have none, each with
its `quote`, and `why`."""


@cache
def ledger(paper: str) -> Sections:
    """What was looked at in each section of one paper."""
    text = files("farfield.validation.published").joinpath(f"{paper}.toml").read_text("utf-8")
    return parsed(paper, text)


def parsed(paper: str, text: str) -> Sections:
    """The same from the text of a file."""
    found = tomllib.loads(text)
    scales = {"printed tables": found["scale"], "experiment": "that of the runs"}
    sections: dict[str, tuple[list[Check], list[Mapping[str, str]]]]
    sections = {name: ([], []) for name in found["sections"]}
    for entry in found["claim"]:
        whole = {"scale": scales.get(entry["kind"], EXACT), **entry}
        decided = judge.decision(entry, MODULES[paper])
        sections[entry["section"]][0].append(Check(f"{paper}.{entry['id']}", whole, *decided))
    for passage in found["passage"]:
        sections[passage["section"]][1].append(passage)
    return {name: (tuple(own), tuple(others)) for name, (own, others) in sections.items()}
