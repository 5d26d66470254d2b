"""The pages of the figures and tables, an index to look over and a page each, and their files.

Everything is rendered before the first file is written, and each file takes its place whole, so
that a failure leaves nothing half-written.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from farfield.figures.document import Columns, Item, Picture, Section, Sheet, Tiles
from farfield.figures.document import page as whole
from farfield.figures.gallery import Gallery
from farfield.figures.index import INDEX as EXHIBITS
from farfield.figures.index import PAPERS, Exhibit
from farfield.figures.style import FORMATS, rendered
from farfield.theory.answers.blocks import Facts, note, table
from farfield.theory.answers.names import one_of
from farfield.theory.answers.notation import StyledWord, as_text, code, words
from farfield.validation.json_files import writable_folder, write

if TYPE_CHECKING:
    from farfield.validation.papers.claim import Claim

INDEX = "index"
TITLE = "Figures and tables, recomputed"


def sheets(gallery: Gallery) -> dict[str, Sheet]:
    """The pages by name, the index first."""
    parts = {
        name: drawing.items(EXHIBITS[name].title, name.replace(".", "-"), EXHIBITS[name].kind)
        for name, drawing in gallery.drawn.items()
    }
    sections = []
    for paper, cited in PAPERS.items():
        shown = [e for e in EXHIBITS.values() if e.paper == paper]
        own = [(e, gallery.drawn[e.id]) for e in shown if e.id in gallery.drawn]
        drawn = [(e, parts[e.id][0]) for e, _ in own]
        cards = [_card(e, own) for e, own in drawn if isinstance(own, Picture)]
        lists = [
            (StyledWord(_number(e), f"to {e.id}.html"), e.title)
            for e, drawing in own
            if drawing.figure is None
        ]
        why = gallery.missing
        absent = [(e.id, e.title, code(why[e.id])) for e in shown if e.id in why]
        items: list[Item] = [Tiles(cards, small=True)] * bool(cards)
        items += [table(("table", "shows"), lists)] * bool(lists)
        items += [table(("missing", "shows", "why"), absent, "Not measured yet")] * bool(absent)
        sections += [Section(words("{paper}", paper=cited), items)] * bool(items)
    lead = [
        gallery.blocks()[0],
        note(
            "Nothing is drawn without results. Each comes with its data as CSV. A dot is "
            "a sentence of the paper on its figure: green where it holds as printed, violet where "
            "it needs a correction or cannot be tested, orange where it is wrong."
        ),
    ]
    found = {INDEX: Sheet(words(TITLE), lead, sections)}
    return found | {
        e.id: _sheet(e, parts[e.id]) for e in EXHIBITS.values() if e.id in gallery.drawn
    }


def _card(e: Exhibit, drawn: Picture) -> Item:
    """A figure in small, with the link to its page and a dot for each verdict on it."""
    dots = tuple(StyledWord("●", c.verdict.value.replace("_", "-")) for c in _claims(e.id))
    link = StyledWord(e.title, f"to {e.id}.html")
    said = words("{link} {id} {dots}", link=link, id=_number(e), dots=dots)
    return Picture(drawn.narrow, said, e.title, e.kind)


def _number(e: Exhibit) -> str:
    """What the paper calls it; nothing for what is in none."""
    said = re.match(r"(fig|table)(.*)", e.id.partition(".")[2])
    if said is None:
        return ""
    return {"fig": "Figure ", "table": "Table "}[said[1]] + said[2].replace("-", ", ")


def _sheet(e: Exhibit, parts: Sequence[Item]) -> Sheet:
    """The page of an exhibit, with what its paper says of it beside the figure, or below the
    table."""
    home = note("{index}", index=StyledWord(TITLE, f"to {INDEX}.html"))
    first, *items = parts
    if said := list(said_of(e)):
        said = [note("{of}", of=StyledWord("What the paper says", "strong")), *said]
        figure = isinstance(first, Picture)
        first, items = (Columns([first], said), items) if figure else (first, [*items, *said])
    again = note("{again}", again=StyledWord(f"farfield figures {e.id}", "code"))
    return Sheet(words("{title}", title=e.title), [home, first, *items, again])


def said_of(e: Exhibit) -> Iterator[Item]:
    """What the paper says its figure or table shows, in our words, and whether ours agrees."""
    if found := _claims(e.id):
        yield Facts(
            tuple(
                (
                    as_text(c.verdict),
                    words(
                        "{said}{holds} {again}",
                        said=c.statement,
                        holds=f" Holds instead: {c.corrected}" * bool(c.corrected),
                        again=StyledWord(c.command, "command"),
                    ),
                )
                for c in found
            )
        )


@cache
def _claims(identifier: str) -> tuple[Claim, ...]:
    """The claims that speak of an exhibit, judged."""
    paper, _, exhibit = identifier.removesuffix("-measured").partition(".")
    if paper == "farfield":
        return ()
    from farfield.validation.papers.ledger import checks  # an exhibit of ours has none

    return tuple(c.run() for c in checks(paper) if exhibit in c.exhibits)


def save(
    gallery: Gallery, folder: str | os.PathLike[str], kind: str = "svg", page: bool = True
) -> Gallery:
    """Write each figure, its data as CSV, and the pages.

    Args:
        gallery: what to write.
        folder: where; made if need be.
        kind: `svg`, `png` or `pdf`.
        page: whether to write `index.html` and a page each too.

    Raises:
        InputError: an unknown format; a folder that cannot be written to.
    """
    one_of(kind, "format", FORMATS)
    content: dict[str, bytes] = {}
    for name, drawing in gallery.drawn.items():
        if drawing.figure is not None:
            content[f"{name}.{kind}"] = rendered(drawing.figure, kind, name, drawing.caption)
        content[f"{name}.csv"] = drawing.data.csv().encode()
    for name, s in sheets(gallery).items() if page else ():
        content[f"{name}.html"] = whole(s.title, s.lead, s.sections).encode()
    place = writable_folder(folder)
    for file, data in content.items():
        write(place / file, data)
    return dataclasses.replace(gallery, files=tuple(str(place / f) for f in content))
