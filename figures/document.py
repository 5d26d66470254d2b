"""Pages: self-contained HTML made of blocks and pictures, without scripts or network.

Formulas are MathML, figures inline SVG; the templates are those of the one writer of HTML, with a
frame around them. A page follows the reader's light or dark scheme, fits a phone (wide tables
scroll within themselves) and prints.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader
from markupsafe import Markup, escape

from farfield.theory.answers.blocks import Block
from farfield.theory.answers.notation import Text, html
from farfield.theory.answers.writers import html as writer
from farfield.validation.files import writable_folder, write


@dataclass(frozen=True)
class Picture:
    """A drawn figure.

    Args:
        svg: the element, its identifiers unlike those of any other figure of the page.
        caption: what stands below it.
        alt: what it shows, in a few words, for those who cannot see it.
        label: the weight of what it shows.
        column: whether it is drawn for a column of a paper, and so is not stretched.
    """

    svg: str
    caption: Text
    alt: str
    label: str | None = None
    column: bool = False


@dataclass(frozen=True)
class Heading:
    """A heading within a section."""

    text: Text
    anchor: str = ""


@dataclass(frozen=True)
class Fold:
    """A part that is shown when it is asked for."""

    text: Text
    items: Sequence[Item]
    label: str | None = None


Item = Block | Picture | Heading | Fold


@dataclass(frozen=True)
class Section:
    """A section of a page, which its table of contents names."""

    title: str
    items: Sequence[Item]


@cache
def _environment() -> Environment:
    """The templates of blocks, and those of pages around them."""
    blocks: Environment = writer.environment()
    assert blocks.loader is not None
    own = PackageLoader("farfield.figures")
    return blocks.overlay(loader=ChoiceLoader([own, blocks.loader]))


def piece(items: Sequence[Item]) -> str:
    r"""Items as a part of a page.

    >>> from farfield.theory.answers.blocks import note
    >>> piece([note("a < b")])
    '<p class="note">a &lt; b</p>\n'
    """
    return _environment().get_template("piece.html").render(items=list(map(_values, items)))


def page(title: str, lead: Sequence[Item], sections: Sequence[Section]) -> str:
    """A page with a table of contents; a title breaks at its spaces alone."""
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=title,
            heading=escape(title).replace("-", Markup("-&NoBreak;")),
            lead=list(map(_values, lead)),
            sections=[{"title": s.title, "inside": list(map(_values, s.items))} for s in sections],
        )
    )


def _values(item: Item) -> dict[str, Any]:
    """What the template shows of an item."""
    match item:
        case Picture(svg, caption, alt, label, column):
            return {
                "kind": "Picture", "svg": Markup(svg), "caption": Markup(html(caption)),
                "alt": alt, "label": label, "column": column,
            }  # fmt: skip
        case Heading(text, anchor):
            return {"kind": "Heading", "text": Markup(html(text)), "anchor": anchor}
        case Fold(text, items, label):
            inside = list(map(_values, items))
            return {"kind": "Fold", "text": Markup(html(text)), "label": label, "inside": inside}
    return writer.values(item)


def write_page(content: str, folder: str | os.PathLike[str]) -> Path:
    """Write a page as `index.html` into a folder, which is made if need be; returns its path.

    Raises:
        InputError: the folder cannot be written to.
    """
    place = writable_folder(folder) / "index.html"
    write(place, content.encode())
    return place
