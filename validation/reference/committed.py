"""Files of committed results: where they are, and how their numbers are written."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from farfield.validation.harness.plan import Job

HERE = Path(__file__).resolve().parent
OUTCOMES = "outcomes.json"  # see `trials`
DIGITS = 6  # of the floats that are written: more than any of them is known to

Row = Mapping[str, Any]
"""A result, or a part of one, in JSON form."""


def sha256(path: Path) -> str:
    """Of the content of a file, in hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def rounded(value: Any) -> Any:
    """The value with floats to six digits."""
    if isinstance(value, float):
        return value if value == 0 or not math.isfinite(value) else float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(v) for v in value]
    return value


def place(job: Job, folder: Path = HERE) -> Path:
    """The file of a job's committed result, whether it is there or not."""
    return folder / (re.sub(r"[^a-z0-9]+", "-", job.name.lower()).strip("-") + ".json")
