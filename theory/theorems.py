"""The theorems behind the numbers: data of `theorems.toml`, with the prover's statements.

Their proofs are pages of the documentation; the relations in the proofs are checked by tests.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from farfield.theory.answers.answer import Result, plain
from farfield.theory.answers.blocks import Block, note, sentence
from farfield.theory.answers.names import one_of
from farfield.theory.formal.checked_statements import proving
from farfield.theory.relations import SIX


@dataclass(frozen=True)
class Theorem(Result):
    """A theorem: what it says, where it stands, and which statements of the prover carry it.

    Fields:
        name, title, source: its name, its title and its place (`ours`: in none of the papers).
        hypotheses, statement: in words.
        hence: the conclusion in one line.
        checked: the statements that the prover's kernel has accepted; none where it has no proof.
        label: `theorem`.
    """

    name: str
    title: str
    source: str
    hypotheses: str
    statement: str
    hence: str
    checked: tuple[str, ...]
    label: str = "theorem"

    def blocks(self) -> Sequence[Block]:
        places = ", ".join(self.checked) or "no statement yet"
        return (
            sentence("{title} ({source}).", self.label, title=self.title, source=self.source),
            note("Let {hypotheses}.", hypotheses=self.hypotheses),
            note("Then {statement}.", statement=self.statement),
            note("Hence: {hence}.", hence=self.hence),
            note("Checked by the prover: {places}.", places=places),
            note("The documentation has the proof: theory/theorems.html#{at}", at=self.name),
        )

    def latex(self) -> str:
        """The theorem as a LaTeX fragment."""
        return (
            rf"\paragraph{{{self.title}}} ({self.source}) {_tex(f'Let {self.hypotheses}.')} "
            rf"\emph{{{_tex(f'Then {self.statement}.')}}}"
        )

    def fields(self) -> dict[str, Any]:
        return {f.name: plain(getattr(self, f.name)) for f in fields(self)}


_ESCAPED = {"_": r"\_", "^": r"\^{}", "{": r"\{", "}": r"\}", "%": r"\%", "&": r"\&", "#": r"\#"}


def _tex(words: str) -> str:
    """Words as LaTeX text, their relation signs in math mode."""
    signs = {"<=>": r"\iff", "->": r"\to"} | {r.symbol: r.tex for r in SIX}
    escaped = "".join(_ESCAPED.get(c, c) for c in words)
    return re.sub("<=>|<=|>=|->|<|>", lambda match: f"${signs[match.group()]}$", escaped)


@cache
def theorems() -> Mapping[str, Theorem]:
    """All theorems by name, in the order of their use.

    >>> list(theorems())[:3]
    ['window-error', 'theorem-0.4', 'equivalence']
    """
    text = Path(__file__).with_name("theorems.toml").read_text(encoding="utf-8")
    return {
        name: Theorem(name, **entry, checked=tuple(s.place for s in proving(name)))
        for name, entry in tomllib.loads(text).items()
    }


def theorem(name: str) -> Theorem:
    """A theorem by name.

    Raises:
        InputError: unknown names, with the nearest known one.

    >>> theorem("resolution-bound").statement
    'R <= sum_{i<=N} P_i^2 <= 1, and there is no lower bound in general'
    """
    table = theorems()
    return table[one_of(name, "theorem", table)]
