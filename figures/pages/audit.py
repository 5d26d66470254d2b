"""The page of an audit: what a model's positional encoding is, head by head."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from farfield.figures.document import Item, Section, page, write_page
from farfield.figures.pages.terms import CERTIFIED, PAPERS, VERDICT
from farfield.theory.answers.blocks import Facts, Note, note
from farfield.theory.answers.notation import words
from farfield.validation.files import write
from farfield.validation.outside.audit import Audit


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
    parts: dict[str, Sequence[Item]] = {
        "What the encoding is": list(a.what())[1:],
        "Layer by layer": list(a.by_layer()),
        "How far each head sees": list(a.fields_by_head()),
        "Certified windows": list(a.windows()),
        "The additive surrogate": list(a.stand_in()),
        "What the numbers are": _definitions(a),
    }
    sections = [Section(title, blocks) for title, blocks in parts.items() if blocks]
    return page(f"Audit of {a.model}", list(a.what())[:1], sections)


def _definitions(a: Audit) -> list[Item]:
    rows = {
        "verdict": VERDICT,
        "TRF(eps)": words(
            "the least number of nearest keys that hold all but a share eps of the prior mass, of "
            "the whole series or of one row [Q, Eq. 22]."
        ),
        "leak": words(
            "prior mass of a row beyond the training length of {trained} tokens (ours).",
            trained=a.trained,
        ),
        "horizon": words(
            "the distance from which on weights round to 0 in a floating-point type, relative to "
            "that of the query's own key (ours)."
        ),
        "certified window": words(
            "keys that are provably enough for the error budget, for all inputs within the "
            "bounds; no smaller window can be guaranteed (ours)."
        ),
    }
    defined = Facts(tuple((words(name), said) for name, said in rows.items()))
    return [defined, note(CERTIFIED), Note(PAPERS)]
