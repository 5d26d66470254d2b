"""The pages of the figures and tables, an index to look over and a page each, and their files.

Everything is rendered before the first file is written, and each file takes its place whole, so
that a failure leaves nothing half-written.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator

from farfield.figures.document import Item, Picture, Section, Sheet, Tiles
from farfield.figures.document import page as whole
from farfield.figures.exhibit import Drawing
from farfield.figures.gallery import Gallery
from farfield.figures.index import INDEX as EXHIBITS
from farfield.figures.index import PAPERS, Exhibit
from farfield.figures.style import FORMATS, rendered, svg
from farfield.theory.answers.blocks import Facts, Note, note, table
from farfield.theory.answers.names import one_of
from farfield.theory.answers.notation import StyledWord, as_text, code, words
from farfield.validation.claims import checks, claim
from farfield.validation.json_files import writable_folder, write

INDEX = "index"
TITLE = "Figures and tables, recomputed"


def sheets(gallery: Gallery) -> dict[str, Sheet]:
    """The pages by name, the index first."""
    sections = []
    for paper, cited in PAPERS.items():
        shown = [e for e in EXHIBITS.values() if e.paper == paper]
        cards = [_card(e, gallery.drawn[e.id]) for e in shown if e.id in gallery.drawn]
        why = gallery.missing
        absent = [(e.id, e.title, code(why[e.id])) for e in shown if e.id in why]
        items: list[Item] = [Tiles(cards, small=True)] * bool(cards)
        items += [table(("missing", "shows", "why"), absent, "Not measured yet")] * bool(absent)
        sections += [Section(words("{paper}", paper=cited), items)] * bool(items)
    lead = [
        gallery.blocks()[0],
        note("Nothing is drawn without results. The data of each stand beside it as CSV."),
    ]
    found = {INDEX: Sheet(words(TITLE), lead, sections)}
    return found | {
        e.id: _sheet(e, gallery.drawn[e.id]) for e in EXHIBITS.values() if e.id in gallery.drawn
    }


def _card(e: Exhibit, drawing: Drawing) -> Item:
    """An exhibit in small, with the link to its page."""
    said = words("{link} {id}", link=StyledWord(e.title, f"to {e.id}.html"), id=_number(e))
    if drawing.figure is None:
        return Note(said)
    return Picture(svg(drawing.figure, f"{e.id}-small".replace(".", "-")), said, e.title, e.kind)


def _number(e: Exhibit) -> str:
    """What the paper calls it; nothing for what is in none."""
    said = re.match(r"(fig|table)(.*)", e.id.partition(".")[2])
    if said is None:
        return ""
    return {"fig": "Figure ", "table": "Table "}[said[1]] + said[2].replace("-", ", ")


def _sheet(e: Exhibit, drawing: Drawing) -> Sheet:
    """The page of an exhibit: what its paper says of it first, then the exhibit."""
    home = note("{index}", index=StyledWord(TITLE, f"to {INDEX}.html"))
    items = drawing.items(e.title, e.id.replace(".", "-"), e.kind)
    again = note("{again}", again=StyledWord(f"farfield figures {e.id}", "code"))
    return Sheet(words("{title}", title=e.title), [home, *said_of(e), *items, again])


def said_of(e: Exhibit) -> Iterator[Item]:
    """What the paper says its figure shows, in our words, and whether ours agrees."""
    number, _, panel = e.id.partition(".fig")[2].partition("-")
    if not number:
        return
    found = [
        claim(c.id)
        for c in checks(e.paper)
        for place in [c.entry.get("place", "")]
        if number in re.findall(r"\d+", "".join(re.findall(r"Figures? [\d ,and]+", place)))
        and (not panel or panel in place)
    ]
    if found:
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
