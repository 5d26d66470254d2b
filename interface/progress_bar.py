"""Progress of long work, in one interface: `with progress("deciding") as step: step(stage, 3, 9)`.

Nothing is shown at first. After two seconds a terminal shows a bar on standard error. A log gets
lines in its place: the first after ten seconds, then one at least every twenty, also where the work
reports nothing. A line has the stage, how much is done of how much, the newest number, and the time
that is left at the speed so far. What is done within two seconds, such as runs that were finished
before, does not count for the speed. Notes are shown at once.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

QUIET_S = 2.0
"""Seconds until a terminal shows a bar."""

LOG_S = 10.0
"""Seconds until a log gets its first line, and least seconds between two lines."""

SILENT_S = 20.0
"""Most seconds between two lines of a log."""

Step = Callable[..., None]
"""Called as `step(stage, done, total, note="")`; 0 of 0 is a note to be shown at once."""


@contextmanager
def progress(what: str, opening: str = "") -> Iterator[Step]:
    """A place to report progress to.

    Args:
        what: is done, as a title.
        opening: said before the work begins.
    """
    if opening:
        print_error(f"{what}: {opening}")
    shown = _Bar(what) if sys.stderr.isatty() else _Lines(what)
    ticker = threading.Thread(target=shown.watch, daemon=True)  # no exit waits for it
    ticker.start()
    try:
        yield shown
    finally:
        shown.over.set()
        ticker.join()
        shown.close()


def print_error(text: str) -> None:
    """A line on standard error, for progress and complaints."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr)


class _Shown:
    """The last report of some work, and a clock that calls `tick` until the work is over.

    Args:
        what: is done, as a title.
    """

    wait = QUIET_S

    def __init__(self, what: str) -> None:
        self.what, self.lock, self.over = what, threading.Lock(), threading.Event()
        self.began = time.monotonic()
        self.said, self.done, self.total = what, 0, 0
        self.since, self.before = self.began, 0

    def __call__(self, stage: str, done: int, total: int, note: str = "") -> None:
        with self.lock:
            if total == 0:
                self.note(f"{self.what}: {note or stage}")
                return
            said = f"{stage} ({note})" if stage and note else stage or note
            self.said = f"{self.what}: {said}" if said else self.what
            now = time.monotonic()
            if now < self.began + QUIET_S or total != (self.total or total) or done < self.done:
                self.since, self.before = now, done
            self.done, self.total = done, total

    def watch(self) -> None:
        """Call `tick` from the end of the quiet time on, several times a second."""
        wait = self.wait
        while not self.over.wait(wait):
            wait = min(self.wait, 0.2)
            with self.lock:
                self.tick()

    def note(self, line: str) -> None:
        """Show a line at once."""
        print_error(line)

    def tick(self) -> None:
        """Show how far the work is."""

    def close(self) -> None:
        """Show nothing more."""


class _Lines(_Shown):
    """Lines on a standard error that is no terminal."""

    wait = LOG_S

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.last, self.told = self.began, ""

    def tick(self) -> None:
        """A line where there is news, and where it has been silent for long."""
        now = time.monotonic()
        news = f"{self.said}, {self.done} of {self.total}" if self.total else self.said
        silent = now - self.last
        if silent < (SILENT_S if news == self.told else LOG_S):
            return
        self.last, self.told = now, news
        left = time_left(now - self.since, self.done - self.before, self.total - self.done)
        print_error(f"{news}; {now - self.began:.0f} s so far{left}")


class _Bar(_Shown):
    """A bar on a terminal."""

    wait = QUIET_S

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.bars: Any = None

    def note(self, line: str) -> None:
        """A line above the bar."""
        if self.bars is None:
            super().note(line)
        else:
            self.bars.console.print(line, markup=False)

    def tick(self) -> None:
        """Move the bar, which appears with its first move."""
        if self.bars is None:
            self.bars = _bars()
            self.bars.start()
            self.task = self.bars.add_task(self.what, total=None)
        total = self.total if self.total > 1 else None
        self.bars.update(self.task, description=self.said, completed=self.done, total=total)

    def close(self) -> None:
        """Take the bar away."""
        if self.bars is not None:
            self.bars.stop()


def time_left(seconds: float, done: int, remaining: int) -> str:
    """How long the rest takes at the speed so far; empty where there is none.

    >>> time_left(90, 3, 6), time_left(45, 0, 9), time_left(90, 3, -1)
    (', about 180 s left', '', '')
    """
    return f", about {seconds * remaining / done:.0f} s left" if done and remaining > 0 else ""


def _bars() -> Any:
    """Bars on standard error, one a task, that vanish when the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
