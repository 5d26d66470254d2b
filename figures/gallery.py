"""The gallery: the exhibits that are asked for, drawn; those without results, missing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from polars import DataFrame

from farfield.figures.exhibit import Drawing, NoResults
from farfield.figures.index import INDEX, PAPERS, Exhibit
from farfield.theory.answers.answer import InputError, Result
from farfield.theory.answers.blocks import Block, sentence, table
from farfield.theory.answers.names import nearest
from farfield.theory.answers.notation import code
from farfield.theory.answers.number import plural
from farfield.validation.results import results

MODULES = {
    "farfield": "papers.farfield",
    "qin2024": "papers.qin2024",
    "sun2023": "papers.sun2023",
    "chi2023": "papers.chi2023",
    "curves": "curves",
    "printed_tables": "papers.printed_tables",
    "remeasured": "papers.remeasured",
}
"""Where the functions that draw are; a module is loaded when one of its exhibits is asked for."""


def recompute(e: Exhibit, table: DataFrame | None = None) -> Drawing:
    """Draw an exhibit.

    Args:
        e: one of the index.
        table: the results that a measured one is drawn from; None for the committed ones.

    Raises:
        NoResults: a measured one that has none among them.
    """
    place, _, name = (e.draw or e.id.replace("-", "_")).partition(".")
    function = getattr(import_module(f"farfield.figures.{MODULES[place]}"), name)
    given: tuple[Any, ...] = (e.id, *e.encodings) if e.draw else ()
    if e.draw and e.kind == "measured":
        given = (results() if table is None else table, *given)
    drawn: Drawing = function(*given, **e.options)
    return drawn


def named(name: str) -> tuple[Exhibit, ...]:
    """The exhibits that a name means: one by its id, all of a paper, those of one number.

    Raises:
        InputError: there is none; the message names the nearest.

    >>> [e.id for e in named("Figure 6")], [e.id for e in named("qin2024.fig1")]
    (['qin2024.fig6', 'chi2023.fig6'], ['qin2024.fig1-left', 'qin2024.fig1-right'])
    """
    asked = re.sub(r"fig(ure)?\.?\s*(?=\d)", "fig", name.strip().lower()).replace(" ", "")
    every = tuple(INDEX.values())
    if exact := tuple(e for e in every if e.id == asked):
        return exact
    if found := tuple(e for e in every if asked in _spellings(e)):
        return found
    close = nearest(name, [*PAPERS, *(e.id for e in every)])
    hint = f"did you mean {close!r}?" if close else "`farfield figures --list` names them"
    raise InputError(f"figure {name[:40]!r} is not known; {hint}")


def _spellings(e: Exhibit) -> tuple[str, ...]:
    """The paper, the id without its part, and both without the paper."""
    whole = e.id.partition("-")[0]
    return e.paper, whole, e.id.partition(".")[2], whole.partition(".")[2]


@dataclass(frozen=True, repr=False)
class Gallery(Result):
    """The exhibits drawn and those missing.

    Fields:
        drawn: the drawing of each exhibit that has one, by id.
        missing: why an exhibit has none, and the command that changes it, by id.
        files: what was written.
    """

    drawn: dict[str, Drawing]
    missing: dict[str, str]
    files: tuple[str, ...] = ()

    def blocks(self) -> Sequence[Block]:
        drawn = [(k, INDEX[k].kind, INDEX[k].title) for k in self.drawn]
        missing = [(k, code(why)) for k, why in self.missing.items()]
        return (
            sentence(
                "{drawn} of {all} recomputed, {missing} missing.",
                drawn=len(drawn),
                all=plural(len(drawn) + len(missing), "exhibit"),
                missing=len(missing),
            ),
            *([table(("id", "kind", "shows"), drawn)] if drawn else []),
            *([table(("missing", "why"), missing)] if missing else []),
        )

    def fields(self) -> dict[str, Any]:
        return {
            "drawn": {
                k: {"kind": INDEX[k].kind, "title": INDEX[k].title, "caption": d.caption}
                for k, d in self.drawn.items()
            },
            "missing": dict(self.missing),
            "files": list(self.files),
        }


def draw(
    names: Iterable[str] = (),
    *,
    runs: str | os.PathLike[str] | None = None,
    notice: Callable[[str], None] | None = None,
) -> Gallery:
    """Draw the named exhibits, or all of them; those without results are listed as missing.

    Args:
        names: ids of exhibits, of papers, or numbers such as `fig6`; all of them if none is given.
        runs: a folder of runs, or a CSV file of results, to draw the measured ones from; the
            committed results if None.
        notice: called with each id before it is drawn.

    Raises:
        InputError: a name that is not known; results that cannot be read.
    """
    wanted = {e.id: e for name in names for e in named(name)}
    chosen = list(wanted.values()) or list(INDEX.values())
    table = results(None if runs is None else os.fspath(runs))
    drawn, missing = {}, {}
    for e in chosen:
        if notice is not None:
            notice(e.id)
        try:
            drawn[e.id] = recompute(e, table)
        except NoResults as why:
            missing[e.id] = str(why)
    return Gallery(drawn, missing)
