"""Progress of long work, reported in one way."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called as `progress(stage, done, total, note)`; 0 of 0 is a note to be shown at once."""

    def __call__(self, stage: str, done: int, total: int, note: str = "", /) -> None:
        """Hear how far it is."""


def silent(stage: str, done: int, total: int, note: str = "", /) -> None:
    """Report nothing."""


def about(name: str, progress: Progress | None) -> Progress:
    """Progress on one of several things, which its name tells apart."""
    if progress is None:
        return silent

    def told(stage: str, done: int, total: int, note: str = "", /) -> None:
        if total == 0:
            progress(name, 0, 0, f"{name}: {note or stage}")
        else:
            progress(f"{name}: {stage}", done, total, note)

    return told
