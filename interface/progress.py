"""Progress of long work, in one interface: `with progress("deciding") as step: step(stage, 3, 9)`.

Nothing is shown for the first two seconds; then a bar on a terminal, and elsewhere a line on
standard error as each stage begins.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

QUIET_S = 2.0

Step = Callable[..., None]
"""Called as `step(stage, done, total, note="")`; 0 of 0 is a note to be shown at once."""


@contextmanager
def progress(what: str) -> Iterator[Step]:
    """A place to report progress to.

    Args:
        what: is done, as a title.
    """
    shown = _Bar(what) if sys.stderr.isatty() else _Lines(what)
    try:
        yield shown
    finally:
        shown.close()


class _Lines:
    """A line as each stage begins, once two seconds have passed."""

    def __init__(self, what: str) -> None:
        self.what, self.began, self.seen = what, time.monotonic(), set[str]()

    def __call__(self, stage: str, done: int, total: int, note: str = "") -> None:
        if total == 0:
            print(f"{self.what}: {note or stage}", file=sys.stderr)
        elif stage not in self.seen and time.monotonic() - self.began >= QUIET_S:
            self.seen.add(stage)
            print(f"{self.what}: {stage}", file=sys.stderr)

    def close(self) -> None:
        """Nothing is left open."""


class _Bar:
    """A bar for the stage at work, once two seconds have passed."""

    def __init__(self, what: str) -> None:
        self.what, self.began = what, time.monotonic()
        self.bars: Any = None

    def __call__(self, stage: str, done: int, total: int, note: str = "") -> None:
        if self.bars is None:
            if time.monotonic() - self.began < QUIET_S and total:
                return
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
            self.bars = Progress(*columns, console=Console(stderr=True), transient=True)
            self.bars.start()
            self.task = self.bars.add_task(self.what, total=None)
        if total == 0:
            self.bars.console.print(f"{self.what}: {note or stage}", markup=False)
            return
        said = f"{self.what}: {stage}" + (f" ({note})" if note else "")
        self.bars.update(self.task, description=said, completed=done, total=total)

    def close(self) -> None:
        """Take the bar away."""
        if self.bars is not None:
            self.bars.stop()
