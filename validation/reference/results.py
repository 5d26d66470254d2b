"""The committed results of the reference plan, read."""

from __future__ import annotations

import json
from pathlib import Path

from farfield.validation.reference.committed import HERE, OUTCOMES, Row


def results() -> tuple[Row, ...]:
    """The committed results, in the order of their names."""
    return tuple(json.loads(path.read_text(encoding="utf-8")) for path in _paths())


def _paths() -> list[Path]:
    return sorted(p for p in HERE.glob("*.json") if p.name not in ("predictions.json", OUTCOMES))
