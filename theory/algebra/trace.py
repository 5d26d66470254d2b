"""`FARFIELD_TRACE=1` prints how a question is decided, a line a step, on the standard error."""

from __future__ import annotations

import os
import sys
from typing import Any


def trace(line: str, *values: Any) -> None:
    """Print a line where tracing is asked for; the values are spelled only then."""
    if os.environ.get("FARFIELD_TRACE", "") not in ("", "0"):
        print("trace:", line.format(*values), file=sys.stderr)
