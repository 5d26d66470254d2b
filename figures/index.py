"""The figures and tables of the three papers: which there are, what they show, how they are drawn.

`exhibits.toml` has them: what the trained models say, then the papers in order, figures before
tables. The list imports no library that draws, so that it is shown at once.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

KINDS = ("theory", "schematic", "published", "measured")


@dataclass(frozen=True)
class Exhibit:
    """A figure or table of a paper.

    Fields:
        id: `paper.figN` or `paper.tableN`.
        kind: one of `KINDS`; a table whose printed numbers are beside ours is `published`.
        title: what it shows, in a few words.
        draw: the function that draws it, as `module.name`; empty for the function of the paper's
            own module that has the name of the figure.
        encodings: labels of the runs that it asks for.
        options: what else that function takes.
    """

    id: str
    kind: str
    title: str
    draw: str = ""
    encodings: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def paper(self) -> str:
        """The key of its paper."""
        return self.id.partition(".")[0]


def _read(given: dict[str, Any]) -> Exhibit:
    fields = {k: given.pop(k) for k in Exhibit.__dataclass_fields__ if k in given}
    return Exhibit(**fields, options=given)


_TOLD = tomllib.loads(files(__package__).joinpath("exhibits.toml").read_text(encoding="utf-8"))
PAPERS: Mapping[str, str] = _TOLD["papers"]
"""What each paper is cited as, by its key."""
INDEX = {e.id: e for e in map(_read, _TOLD["exhibit"])}
"""All of them by their ids."""
