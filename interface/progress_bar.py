"""Progress of long work, in one interface: `with progress("deciding") as step: step(stage, 3, 9)`.

Nothing is shown for the first two seconds. Then a terminal shows a bar on standard error, which
says how long it has taken also where the work reports nothing. Elsewhere nothing is shown but
notes, or a line at a time where `--progress` asks for it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from farfield.options import Output

QUIET_S = 2.0

Step = Callable[..., None]
"""Called as `step(stage, done, total, note="")`; 0 of 0 is a note to be shown at once."""


@contextmanager
def progress(what: str, output: Output = Output()) -> Iterator[Step]:
    """A place to report progress to.

    Args:
        what: is done, as a title.
        output: whether it is shown where there is no terminal.
    """
    shown = _Bar(what) if sys.stderr.isatty() else _Lines(what) if output.progress else _Notes(what)
    timer = threading.Timer(QUIET_S, shown.open)
    timer.daemon = True
    timer.start()
    try:
        yield shown
    finally:
        timer.cancel()
        shown.close()


class _Notes:
    """Notes alone."""

    def __init__(self, what: str) -> None:
        self.what, self.lock = what, threading.Lock()
        self.said, self.done, self.total = what, 0, 0
        self.shows, self.closed = False, False

    def __call__(self, stage: str, done: int, total: int, note: str = "") -> None:
        with self.lock:
            if total == 0:
                self.note(f"{self.what}: {note or stage}")
                return
            said = f"{stage} ({note})" if stage and note else stage or note
            self.said, self.done, self.total = f"{self.what}: {said}", done, total
            if self.shows:
                self.show()

    def open(self) -> None:
        """Begin to show the last message; called when the quiet time is over."""
        with self.lock:
            if not self.closed:
                self.shows = True
                self.show()

    def close(self) -> None:
        """Show nothing more."""
        with self.lock:
            self.closed, self.shows = True, False
            self.end()

    def note(self, line: str) -> None:
        print(line, file=sys.stderr)

    def show(self) -> None:
        """Show the last message."""

    def end(self) -> None:
        """Clear the line."""


class _Lines(_Notes):
    """A line whenever two seconds have passed since the last one."""

    last = 0.0

    def show(self) -> None:
        if time.monotonic() - self.last >= QUIET_S:
            self.last = time.monotonic()
            self.note(f"{self.said}, {self.done} of {self.total}" if self.total else self.said)


class _Bar(_Notes):
    """A bar for the stage at work."""

    bars: Any = None

    def note(self, line: str) -> None:
        if self.bars is None:
            super().note(line)
        else:
            self.bars.console.print(line, markup=False)

    def show(self) -> None:
        if self.bars is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
            self.bars = Progress(*columns, console=Console(stderr=True), transient=True)
            self.bars.start()
            self.task = self.bars.add_task(self.what, total=None)
        total = self.total if self.total > 1 else None
        self.bars.update(self.task, description=self.said, completed=self.done, total=total)

    def end(self) -> None:
        if self.bars is not None:
            self.bars.stop()
