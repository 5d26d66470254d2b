"""The page of the papers' figures and tables, and the files they are written to.

Everything is rendered before the first file is written, and each file takes its place whole, so
that a failure leaves nothing half-written.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator

from farfield.figures.document import Heading, Item, Section, page
from farfield.figures.exhibit import Exhibit
from farfield.figures.gallery import PAPERS, Gallery, exhibits
from farfield.figures.style import FORMATS, rendered
from farfield.theory.answers.answer import InputError
from farfield.theory.answers.blocks import Facts, note, table
from farfield.theory.answers.notation import Term, as_text, code, words
from farfield.validation.claims import checks, claim
from farfield.validation.files import writable_folder, write


def gallery_page(gallery: Gallery) -> str:
    """The drawings with their captions as one page of HTML."""
    sections = [
        Section(words("{paper}", paper=module.CITATION), items)
        for paper, module in PAPERS.items()
        if (items := list(_of_paper(gallery, paper)))
    ]
    lead = [gallery.blocks()[0], note("The data of each stand beside it as CSV.")]
    return page(words("Figures and tables of three papers, recomputed"), lead, sections)


def _of_paper(gallery: Gallery, paper: str) -> Iterator[Item]:
    shown = [e for e in exhibits() if e.paper == paper]
    for e in shown:
        if e.id in gallery.drawn:
            yield Heading(words("{id}: {title}", id=e.id, title=e.title), e.id)
            yield from gallery.drawn[e.id].items(e.title, e.id.replace(".", "-"), e.kind)
            yield from said_of(e)
    missing = gallery.missing
    absent = [(e.id, e.title, code(missing[e.id])) for e in shown if e.id in missing]
    if absent:
        yield Heading(words("Missing: not measured yet"))
        yield table(("figure", "shows", "why"), absent, "Missing")
        yield note("Nothing is drawn without results.")


def said_of(e: Exhibit) -> Iterator[Item]:
    """What the paper says its figure shows, in our words, and whether ours agrees."""
    number, _, panel = e.id.partition(".fig")[2].partition("-")
    if not number:
        return
    found = [
        claim(c.id)
        for c in checks(e.paper)
        if number in re.findall(r"\d+", "".join(re.findall(r"Figures? [\d ,and]+", c.place)))
        and (not panel or panel in c.place)
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
                        again=Term(c.command, "command"),
                    ),
                )
                for c in found
            )
        )


def save(
    gallery: Gallery, folder: str | os.PathLike[str], kind: str = "svg", page: bool = True
) -> Gallery:
    """Write each figure, its data as CSV, and a page of them all.

    Args:
        gallery: what to write.
        folder: where; made if need be.
        kind: `svg`, `png` or `pdf`.
        page: whether to write `index.html` too.

    Raises:
        InputError: an unknown format; a folder that cannot be written to.
    """
    if kind not in FORMATS:
        raise InputError(f"format {kind!r} is not known; accepted: {', '.join(FORMATS)}")
    content: dict[str, bytes] = {}
    for name, drawing in gallery.drawn.items():
        if drawing.figure is not None:
            content[f"{name}.{kind}"] = rendered(drawing.figure, kind, name, drawing.caption)
        content[f"{name}.csv"] = drawing.data.csv().encode()
    if page:
        content["index.html"] = gallery_page(gallery).encode()
    place = writable_folder(folder)
    for file, data in content.items():
        write(place / file, data)
    return dataclasses.replace(gallery, files=tuple(str(place / f) for f in content))
