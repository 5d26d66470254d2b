"""Exit codes, decided by the status of answers in one place.

0  every question was answered: exact, enclosed, infinite or out of scope
1  something stayed unknown, or is not what `--expect` says
2  bad input
3  an error of this program
130  interrupted
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

OK, UNKNOWN, BAD_INPUT, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 130


def exit_code(answers: Iterable[Any]) -> int:
    """The exit code of what a verb has to say."""
    return int(any(str(getattr(answer, "status", "")) == "unknown" for answer in answers))
