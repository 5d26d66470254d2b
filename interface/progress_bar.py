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
    shown = _Progress(what, output.progress)
    timer = threading.Timer(QUIET_S, shown.open)
    timer.daemon = True
    timer.start()
    try:
        yield shown
    finally:
        timer.cancel()
        shown.close()


def print_error(text: str) -> None:
    """A line on standard error, for progress and complaints."""
    print(text, file=sys.stderr)


class _Progress:
    """The last message, shown as a bar on a terminal, or as a line each two seconds if asked."""

    def __init__(self, what: str, lines: bool) -> None:
        self.what, self.lines, self.lock = what, lines, threading.Lock()
        self.said, self.done, self.total, self.last = what, 0, 0, 0.0
        self.shows: bool | None = None  # before the quiet time is over; False after the end
        self.bars: Any = None

    def __call__(self, stage: str, done: int, total: int, note: str = "") -> None:
        with self.lock:
            if total == 0:
                line = f"{self.what}: {note or stage}"
                print_error(line) if self.bars is None else self.bars.console.print(
                    line, markup=False
                )
                return
            said = f"{stage} ({note})" if stage and note else stage or note
            self.said, self.done, self.total = f"{self.what}: {said}", done, total
            self._show()

    def open(self) -> None:
        """Begin to show the last message; called when the quiet time is over."""
        with self.lock:
            if self.shows is None:
                self.shows = True
                self._show()

    def close(self) -> None:
        """Show nothing more."""
        with self.lock:
            self.shows = False
            if self.bars is not None:
                self.bars.stop()

    def _show(self) -> None:
        """Show the last message."""
        if not self.shows:
            return
        if sys.stderr.isatty():
            if self.bars is None:
                self.bars = _bars()
                self.bars.start()
                self.task = self.bars.add_task(self.what, total=None)
            total = self.total if self.total > 1 else None
            self.bars.update(self.task, description=self.said, completed=self.done, total=total)
        elif self.lines and time.monotonic() - self.last >= QUIET_S:
            self.last = time.monotonic()
            print_error(f"{self.said}, {self.done} of {self.total}" if self.total else self.said)


def _bars() -> Any:
    """Bars on standard error, one a task, that vanish when the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
