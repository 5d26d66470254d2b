"""The words of the pages, each explained where it stands; `terms.toml` has their texts."""

from __future__ import annotations

import tomllib
from importlib.resources import files

from farfield.figures.document import Terms
from farfield.theory.answers.blocks import note
from farfield.theory.answers.notation import words
from farfield.validation.extrapolation import TOLERANCE

PAPERS = note(
    "[Q] Qin et al., Exploring Transformer Extrapolation, AAAI 2024. [S] Sun et al., A "
    "Length-Extrapolatable Transformer, ACL 2023. [C] Chi et al., Dissecting Transformer Length "
    "Extrapolation via the Lens of Receptive Field Analysis, ACL 2023."
)


def _read(kind: str) -> Terms:
    told = tomllib.loads((files(__package__) / "terms.toml").read_text(encoding="utf-8"))
    ratio = f"{1 + TOLERANCE:.2f}"
    return {key: (t["name"], words(t["said"], ratio=ratio)) for key, t in told[kind].items()}


THEORY, MEASURED = _read("theory"), _read("measured")
