"""The page of an audit: what a model's positional encoding is, head by head."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from farfield.figures.document import Columns, Fold, Item, Section, page, write_page
from farfield.figures.pages.terms import PAPERS, THEORY
from farfield.theory.answers.blocks import Curve, Table
from farfield.theory.answers.notation import words
from farfield.validation.json_files import write
from farfield.validation.models.audit import Audit


def write_audit(a: Audit, folder: str | os.PathLike[str]) -> Path:
    """Write `index.html` and `audit.json` into a folder; returns the page's path.

    Raises:
        InputError: the folder cannot be written to.
    """
    place = write_page(audit_page(a), folder)
    write(place.parent / "audit.json", a.to_json().encode())
    return place


def audit_page(a: Audit) -> str:
    """The page as HTML text."""
    title = words("Audit of {model}", model=a.model)
    return page(title, *audit_sections(a), THEORY, [PAPERS])


def audit_sections(a: Audit) -> tuple[Sequence[Item], Sequence[Section]]:
    """What the page begins with, and its sections."""
    answer, *what = a.what()
    fields = list(a.fields_by_head())
    curves = [b for b in fields if isinstance(b, Curve)]
    brief: list[Item] = [b for b in fields if not isinstance(b, Curve)]
    if a.heads:
        title = words("In rows, beyond the training length, in floating-point types")
        brief.append(Fold(title, [a.by_head()]))
    windows: list[Item] = [
        Fold(words("The window of each head"), [b]) if isinstance(b, Table) else b
        for b in a.windows()
    ]
    lead = [Columns([answer, *what, *windows[:1]], curves)] if curves else [answer, *what]
    parts: dict[str, Sequence[Item]] = {
        "Layer by layer": list(a.by_layer()),
        "How far each head sees": brief,
        "Certified windows": windows[bool(curves) :],
    }
    return lead, [Section(words(title), blocks) for title, blocks in parts.items() if blocks]
