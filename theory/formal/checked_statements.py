"""The checked statements: what each says, and which theorems and claims of farfield it carries."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Statement:
    """A theorem that the prover has checked.

    Fields:
        file, name: where it stands; the verdicts of the catalogue have the file `catalogue`.
        says: in words, the comment above it.
        printed: as the prover prints it.
        proves: the theorems of farfield (`farfield papers NAME`) that it is.
        claims: the claims of the ledger that rest on it.
        item: of the page on windows beyond biases, None elsewhere.
    """

    file: str
    name: str
    says: str
    printed: str
    proves: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    item: int | None = None

    @property
    def place(self) -> str:
        """Where it stands, as `Windowable.theorem_0_4`."""
        return f"{self.file}.{self.name}"


@cache
def statements() -> tuple[Statement, ...]:
    """All of them, in the order of the index.

    >>> [s.place for s in statements() if "theorem-0.4" in s.proves]
    ['Windowable.theorem_0_4']
    """
    recorded = json.loads((HERE / "statements.json").read_bytes())
    index = tomllib.loads((HERE / "index.toml").read_bytes().decode())
    checked = {(file, s["name"]): s for file, names in recorded.items() for s in names}
    return tuple(
        Statement(
            file,
            name,
            checked[file, name]["says"],
            checked[file, name]["statement"],
            tuple(more.get("proves", ())),
            tuple(more.get("claims", ())),
            more.get("item"),
        )
        for file, names in index.items()
        for name, more in names.items()
    )


def proving(theorem: str) -> tuple[Statement, ...]:
    """The statements that a theorem of farfield is, or that carry parts of it."""
    return tuple(s for s in statements() if theorem in s.proves)


def carrying(claim: str) -> tuple[Statement, ...]:
    """The statements on which a claim of the ledger rests.

    >>> [s.place for s in carrying("qin2024.satisfies.kerple-log")]
    ['catalogue.kerple_log']
    """
    return tuple(s for s in statements() if claim in s.claims)


def definitions(file: str) -> Iterator[str]:
    """The definitions of a file as they stand, each with the comment above it."""
    text = (HERE / f"{file}.v").read_bytes().decode()
    for block in text.split("\n\n"):
        if any(line.startswith(("Definition", "Fixpoint")) for line in block.split("\n")):
            yield block
