"""A live table of the jobs of a sweep on a terminal, a line for each event elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from farfield.validation.harness.plan import Job

ENDS = ("finished", "failed", "held", "lost")

Watch = Callable[["Job", str, int, int, str], None]


@contextmanager
def board(title: str, count: int) -> Iterator[Watch]:
    """A place to report what becomes of the jobs of a plan.

    Args:
        title: of the plan.
        count: of its jobs.
    """
    if not sys.stderr.isatty():
        yield _line
        return
    from rich.console import Console
    from rich.live import Live

    states: dict[str, str] = {}
    running: dict[str, tuple[Job, str, int, int, str]] = {}
    console = Console(stderr=True)

    def table() -> Table:
        return _table(title, count, states, running)

    with Live(console=console, get_renderable=table, refresh_per_second=4, transient=True):

        def show(job: Job, stage: str, done: int, total: int, note: str) -> None:
            if stage in ENDS:
                running.pop(job.key, None)
                states[job.key] = stage
            elif stage != "notice":
                running[job.key] = (job, stage, done, total, note)
            if stage in ("failed", "lost", "notice"):
                console.print(f"{job.name}: {stage}, {note}", markup=False, highlight=False)

        yield show


def _line(job: Job, stage: str, done: int, total: int, note: str) -> None:
    if stage in (*ENDS, "started", "notice") and note != "before":
        print(f"{job.name}: {stage}" + (f", {note}" if note else ""), file=sys.stderr)


def _table(
    title: str,
    count: int,
    states: dict[str, str],
    running: dict[str, tuple[Job, str, int, int, str]],
) -> Table:
    from rich.markup import escape
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    now = list(states.values())
    line = f"{title}: {now.count('finished')} of {count} jobs finished"
    for state, what in (("failed", "failed"), ("held", "held by other processes")):
        line += f", {now.count(state)} {what}" if state in now else ""
    grid = Table(title=escape(line), title_justify="left", box=None, show_header=False)
    for job, stage, done, total, note in list(running.values()):
        bar = ProgressBar(total=max(total, 1), completed=done, width=24)
        named = (job.name, job.configuration.preset.name, stage)
        grid.add_row(*map(escape, named), bar, escape(note))
    return grid
