"""Pages: self-contained HTML made of blocks and pictures, without network.

Formulas are MathML, figures inline SVG; the templates are those of the one writer of HTML, with a
frame around them. A page follows the reader's light or dark scheme, fits a phone (rows of wide
tables become cards) and prints. It says all it says without scripts; with them, curves tell the
value under the pointer and tables are sorted.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from jinja2 import ChoiceLoader, Environment, PackageLoader
from markupsafe import Markup

from farfield.theory.answers.blocks import Block, Curve, Ladder, Table
from farfield.theory.answers.notation import StyledWord, Text, html, terminal
from farfield.theory.answers.writers import html as writer


@dataclass(frozen=True)
class Picture:
    """A drawn figure.

    Args:
        svg: the element, its identifiers unlike those of any other figure of the page.
        caption: its content below.
        alt: what it shows, in a few words, for those who cannot see it.
        label: the weight of what it shows.
    """

    svg: str
    caption: Text
    alt: str
    label: str | None = None


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
class Thumbs:
    """Pictures to look over, as many beside each other as the page has room for, their own text
    left out."""

    items: Sequence[Item]


Item = Block | Picture | Fold | Columns | Thumbs


@dataclass(frozen=True)
class Section:
    """A section of a page; one without a title continues the heading of the page."""

    title: Text
    items: Sequence[Item]


@dataclass(frozen=True)
class Sheet:
    """A page: its heading and its sections."""

    title: Text
    sections: Sequence[Section]


COLUMNS = 5
"""Columns from which on a table takes the width of the page."""


def laid_out(blocks: Sequence[Block], pictures: Sequence[Item] = ()) -> list[Item]:
    """Blocks in their order, drawings beside the words, all below from the first wide table on.

    >>> from farfield.theory.answers.blocks import note
    >>> laid_out([note("a")])
    [Note(text=('a',))]
    """
    drawn: list[Item] = [b for b in blocks if isinstance(b, (Curve, Ladder))]
    drawn += pictures
    words = [b for b in blocks if not isinstance(b, (Curve, Ladder))]
    wide = (k for k, b in enumerate(words) if isinstance(b, Table) and len(b.header) >= COLUMNS)
    first = next(wide, len(words))
    return [Columns(words[:first], drawn), *words[first:]] if drawn else list(words)


def folded(items: Sequence[Item], shown: int = 4) -> list[Item]:
    """Items with the rows of long tables folded away, below a few that are shown: the first ones,
    or those around the row that is asked about.

    >>> from farfield.theory.answers.blocks import table
    >>> short, whole = folded([table(("n",), [(k,) for k in range(20)])])
    >>> len(short.rows), whole.text
    (4, ('all 20 rows',))
    """
    found: list[Item] = []
    for item in items:
        if isinstance(item, Table) and len(item.rows) > 3 * shown // 2:
            found += [_excerpt(item, shown)] * bool(shown)
            item = Fold((f"all {len(item.rows)} rows",), [item])
        found.append(item)
    return found


def _excerpt(whole: Table, shown: int) -> Table:
    """A few rows of a table, without the columns that are empty in them."""
    strong = (k for k, (name, *_) in enumerate(whole.rows) if _is_strong(name))
    first = min(max(0, next(strong, 0) - shown // 2), len(whole.rows) - shown)
    rows = whole.rows[first : first + shown]
    kept = [k for k in range(len(whole.header)) if any(terminal(row[k]) for row in rows)]
    return Table(
        tuple(whole.header[k] for k in kept),
        tuple(tuple(row[k] for k in kept) for row in rows),
        whole.title,
        tuple(place for place, k in enumerate(kept) if k in whole.numeric),
    )


def _is_strong(cell: Text) -> bool:
    return any(isinstance(part, StyledWord) and part.kind == "strong" for part in cell)


@cache
def environment() -> Environment:
    """The templates of blocks, and those of pages around them."""
    blocks: Environment = writer.environment()
    assert blocks.loader is not None
    pages = PackageLoader("farfield.figures")
    found = blocks.overlay(loader=ChoiceLoader([pages, blocks.loader]))
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
    """A page with the font of formulas, where it has any.

    >>> typeset("<style></style><math></math><style></style>").count("@font-face")
    1
    >>> typeset("<style></style>")
    '<style></style>'
    """
    return page.replace("<style>", f"<style>\n{math_font()}", 1) if "<math" in page else page


def piece(items: Sequence[Item]) -> str:
    r"""Items as a part of a page.

    >>> from farfield.theory.answers.blocks import note
    >>> piece([note("a < b")])
    '<p class="note">a &lt; b</p>\n'
    """
    return environment().get_template("piece.html").render(items=items)


def page(sheet: Sheet) -> str:
    """A page with a table of contents; its title breaks at its spaces alone."""
    template = environment().get_template("page.html")
    return typeset(template.render(title=sheet.title, sections=sheet.sections))
