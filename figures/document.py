"""Pages: self-contained HTML made of blocks and pictures, without network.

Formulas are MathML, figures inline SVG; the templates are those of the one writer of HTML, with a
frame around them. A page follows the reader's light or dark scheme, fits a phone (rows of wide
tables become cards) and prints. It says all it says without scripts; with them, curves tell the
value under the pointer and tables are sorted.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, PackageLoader
from markupsafe import Markup

from farfield.theory.answers.blocks import Block, Facts
from farfield.theory.answers.notation import StyledWord, Text, html, terminal, words
from farfield.theory.answers.writers import html as writer
from farfield.validation.json_files import writable_folder, write


@dataclass(frozen=True)
class Picture:
    """A drawn figure.

    Args:
        svg: the element, its identifiers unlike those of any other figure of the page.
        caption: its content below.
        alt: what it shows, in a few words, for those who cannot see it.
        label: the weight of what it shows.
        narrow: the same drawn for a phone; empty where one drawing does for both.
    """

    svg: str
    caption: Text
    alt: str
    label: str | None = None
    narrow: str = ""


@dataclass(frozen=True)
class Heading:
    """A heading within a section."""

    text: Text


@dataclass(frozen=True)
class Fold:
    """A part that is shown when it is asked for."""

    text: Text
    items: Sequence[Item]


@dataclass(frozen=True)
class Columns:
    """Two parts side by side where the page is wide enough: words, and the picture of them."""

    left: Sequence[Item]
    right: Sequence[Item]


@dataclass(frozen=True)
class Tiles:
    """Items of equal weight, as many beside each other as the page has room for; `small` ones are
    looked over and have their text below them alone."""

    items: Sequence[Item]
    small: bool = False


@dataclass(frozen=True)
class Number:
    """One number of a page's head.

    Args:
        name: of the quantity.
        value: the number.
        said: of what it is.
        label: its weight.
        command: what computes it again.
    """

    name: Text
    value: Text
    said: Text = ()
    label: str | None = None
    command: str = ""


@dataclass(frozen=True)
class KeyNumbers:
    """The numbers that a page begins with."""

    numbers: Sequence[Number]


Item = Block | Picture | Heading | Fold | Columns | Tiles | KeyNumbers


@dataclass(frozen=True)
class Section:
    """A section of a page, which its table of contents names."""

    title: Text
    items: Sequence[Item]


@dataclass(frozen=True)
class Sheet:
    """A page among others: its heading, the part above its sections, its sections."""

    title: Text
    lead: Sequence[Item]
    sections: Sequence[Section] = ()


Terms = Mapping[str, tuple[str, Text]]
"""What a page explains on the spot: name and explanation by the key of a term."""


def about(key: str, word: str) -> StyledWord:
    """A word that the page explains where it stands.

    Args:
        key: of the explanation among the page's `Terms`.
        word: as it is read.
    """
    return StyledWord(word, f"about {key}")


@cache
def environment() -> Environment:
    """The templates of blocks, and those of pages around them."""
    blocks: Environment = writer.environment()
    assert blocks.loader is not None
    own = PackageLoader("farfield.figures")
    found = blocks.overlay(loader=ChoiceLoader([own, blocks.loader]))
    found.filters = {
        **blocks.filters,
        "kind": lambda item: type(item).__name__,
        "told": lambda text: Markup(html(text)),
        "line": terminal,
        "values": writer.values,
    }
    return found


@cache
def math_font() -> str:
    """The font of formulas as a style: STIX Two Math (`math.LICENSE`), cut by fonttools to the
    characters that formulas have."""
    font = files(__package__).joinpath("templates", "math.woff").read_bytes()
    source = f"url(data:font/woff;base64,{base64.b64encode(font).decode()})"
    return f'@font-face {{ font-family: "STIX Two Math"; src: {source}; }}\n'


def typeset(page: str) -> str:
    """A page with the font of formulas, where it has any."""
    return page.replace("<style>", f"<style>\n{math_font()}", 1) if "<math" in page else page


def piece(items: Sequence[Item], terms: Terms | None = None) -> str:
    r"""Items as a part of a page, with the terms that they explain.

    >>> from farfield.theory.answers.blocks import note
    >>> piece([note("a < b")])
    '<p class="note">a &lt; b</p>\n'
    """
    template = environment().get_template("piece.html")
    return template.render(items=items, terms=terms or {})


def occurring(items: Sequence[Item], terms: Terms) -> Terms:
    """The terms that items explain, in their order."""
    used = set(re.findall(r'popovertarget="term-([^"]+)"', piece(items)))
    return {key: said for key, said in terms.items() if key in used}


def page(
    title: Text,
    lead: Sequence[Item],
    sections: Sequence[Section],
    terms: Terms | None = None,
    sources: Sequence[Item] = (),
) -> str:
    """A page with a table of contents; a title breaks at its spaces alone.

    Args:
        title: of the page.
        lead: the part above the contents.
        sections: its parts; those of `terms` that occur in them are defined in one more.
        terms: explanations by their keys.
        sources: what follows the definitions.
    """
    if terms:
        terms = occurring([*lead, *(item for s in sections for item in s.items)], terms)
    if terms:
        defined = Facts(tuple((words(name), said) for name, said in terms.values()))
        sections = [*sections, Section(words("What the words mean"), [defined, *sources])]
    template = environment().get_template("page.html")
    return typeset(
        template.render(
            title=terminal(title), heading=title, lead=lead, sections=sections, terms=terms or {}
        )
    )


def write_page(content: str, folder: str | os.PathLike[str]) -> Path:
    """Write a page as `index.html` into a folder, which is made if need be; returns its path.

    Raises:
        InputError: the folder cannot be written to.
    """
    place = writable_folder(folder) / "index.html"
    write(place, content.encode())
    return place
