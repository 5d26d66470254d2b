"""Blocks as HTML, for notebooks and pages: mathematics as MathML, curves as SVG, no script."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from farfield.theory.answers.blocks import (
    Block,
    Curve,
    Facts,
    Formula,
    Ladder,
    Note,
    Sentence,
    Steps,
    Table,
)
from farfield.theory.answers.notation import Math, Text, expression_mathml, html, terminal
from farfield.theory.answers.writers import svg


@cache
def environment() -> Any:
    """The templates of blocks, everything escaped that is no markup."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("farfield.theory.answers.writers"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )


def fragment(blocks: Sequence[Block]) -> str:
    r"""Blocks as a piece of a page, proofs folded.

    >>> from farfield.theory.answers.blocks import note
    >>> fragment([note("a < b")])
    '<p class="note">a &lt; b</p>\n'
    """
    text: str = (
        environment()
        .get_template("fragment.html")
        .render(blocks=[values(block) for block in blocks])
    )
    return text


def notebook(blocks: Sequence[Block]) -> str:
    """Blocks as a cell of a notebook shows them, proofs folded."""
    return f'<div class="farfield"><style>{stylesheet()}</style>{fragment(blocks)}</div>'


@cache
def stylesheet() -> str:
    """How drawings and labels look, within an element of the class `farfield`."""
    source: str = environment().get_template("blocks.css").render()
    return source


def _alone(cell: Text) -> bool:
    """Whether a cell is a formula and nothing else: it keeps to one line, since typeset fractions
    and exponents would be too small to read."""
    return len(cell) == 1 and isinstance(cell[0], Math)


def values(block: Block) -> dict[str, Any]:
    """What a template shows of a block, its texts as markup."""
    from markupsafe import Markup

    def m(text: Text) -> Any:
        return Markup(html(text))

    match block:
        case Sentence(text, label):
            shown: dict[str, Any] = {"text": m(text), "label": label}
        case Formula(name, expression):
            shown = {"name": m(name), "expression": Markup(expression_mathml(expression))}
        case Facts(rows):
            shown = {"rows": [(m(name), m(value)) for name, value in rows]}
        case Steps(title, steps, conclusion, deciding):
            decides = m(steps[deciding].words()) if deciding >= 0 else None
            shown = {
                "title": m(title),
                "steps": [m(s.words()) for s in steps],
                "conclusion": m(conclusion),
                "deciding": decides,
            }
        case Table(header, rows, title, numeric):
            shown = {
                "title": m(title),
                "name": terminal(title) or "table",
                "numeric": numeric,
                "header": [m(h) for h in header],
                "rows": [[m((terminal(c),) if _alone(c) else c) for c in row] for row in rows],
                "labels": [terminal(h) for h in header],
            }
        case Curve(title):
            shown = {
                "title": title,
                "legend": svg.named(block),
                "drawings": [Markup(svg.drawn(block, shape)) for shape in (svg.WIDE, svg.NARROW)],
            }
        case Ladder(title):
            drawings = [Markup(svg.climbed(block, shape)) for shape in (svg.WIDE, svg.NARROW)]
            shown = {"title": title, "drawings": drawings, "legend": ()}
        case Note(text):
            shown = {"text": m(text)}
    return {"kind": type(block).__name__, **shown}
