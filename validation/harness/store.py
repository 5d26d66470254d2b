"""A store of runs: one folder a training, named by its key, that no crash leaves half-written.

    <store>/<key>/weights.safetensors
    <store>/<key>/training.json             written last: a folder without it is unfinished
    <store>/<key>/measurement-<key>.json

Every file is written beside its place and then renamed into it. A process that works in a folder
holds its lock, which the system releases when the process dies. A folder that cannot be read is
set aside, never deleted.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farfield.theory.answers.answer import InputError
from farfield.validation.json_files import CorruptFile, read_json


def commit() -> str | None:
    """The commit that this package is a checkout of; None where it is none, or is changed."""

    def said(*words: str) -> str:
        git = ["git", "-C", str(Path(__file__).resolve().parent), *words]
        return subprocess.check_output(git, stderr=subprocess.DEVNULL, text=True).strip()

    try:
        changed = said("status", "--porcelain", "--untracked-files=no")
        return None if changed else said("rev-parse", "HEAD")
    except (OSError, subprocess.CalledProcessError):
        return None


def began(folder: Path, predictions: str | None) -> dict[str, Any]:
    """When a run began, at which commit, and which predictions were registered; of one that is
    resumed, the first time.

    Args:
        folder: of the run.
        predictions: their SHA-256, None for none.
    """
    with contextlib.suppress(CorruptFile):
        if (said := read_json(folder / "asked.json").get("began")) is not None:
            return dict(said)
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"time": now, "commit": commit(), "predictions": predictions}


class InUse(Exception):
    """Another process works on this run."""


@dataclass(frozen=True)
class Store:
    """The folder that holds the runs; made when first written to."""

    root: Path

    def __init__(self, root: str | os.PathLike[str]) -> None:
        object.__setattr__(self, "root", Path(root).expanduser())

    def folder(self, key: str) -> Path:
        """Where the run with this key is."""
        return self.root / key

    def require_writable(self) -> None:
        """Raise InputError unless the folder is there, or can be made, and takes files."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.root):
                pass
        except OSError as error:
            raise self._unwritable(error) from None

    def held(self, key: str) -> bool:
        """Whether a process works on a run at this moment."""

        def taken() -> None:
            raise InUse(key)

        if not (self.root / f"{key}.lock").exists():
            return False
        try:
            with self.locked(key, taken):
                return False
        except InUse:
            return True

    @contextlib.contextmanager
    def locked(self, key: str, waiting: Callable[[], None] | None = None) -> Iterator[Path]:
        """The folder of a run, held by this process alone; calls `waiting` before it waits.

        Raises:
            InputError: the store cannot be written to.
        """
        from filelock import FileLock, Timeout  # comes with torch; reading runs needs neither

        folder = self.folder(key)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.root / f"{key}.lock")
            try:
                lock.acquire(timeout=0)
            except Timeout:
                if waiting is not None:
                    waiting()
                lock.acquire()
        except OSError as error:
            raise self._unwritable(error) from None
        try:
            folder.mkdir(exist_ok=True)  # the process before may have set it aside
            for left_by_a_kill in folder.glob(".partial-*"):
                left_by_a_kill.unlink()
            yield folder
        finally:
            lock.release()

    def _unwritable(self, error: OSError) -> InputError:
        return InputError(
            f"runs folder {str(self.root)!r} cannot be written to: {error.strerror}; accepted: a "
            "folder that may be made and written to"
        )

    def set_aside(self, key: str) -> Path:
        """Rename the folder of a corrupted run so that the run can be made again."""
        places = (self.root / f"{key}.corrupt-{number}" for number in itertools.count(1))
        place = next(place for place in places if not place.exists())
        os.replace(self.folder(key), place)
        self.folder(key).mkdir()
        return place


def stored(folder: Path, measurements: Sequence[str] | None = None) -> dict[str, Any]:
    """The result of a finished run, as `train_and_measure` returns it, read from its folder.

    Args:
        folder: of the run.
        measurements: names of the files, without ending, in the order wanted; None takes all.

    Raises:
        CorruptFile: a file is missing, or was changed later.
    """
    training = read_json(folder / "training.json")
    described, labels = training["configuration"], training.get("labels", {})
    if measurements is None:
        measurements = [path.stem for path in sorted(folder.glob("measurement-*.json"))]
    named = {"name": labels.get("encoding"), "dialect": labels.get("dialect")}
    return {
        "schema": described["schema"],
        "key": folder.name,
        "encoding": {**named, **described["encoding"]},
        "seed": described["seed"],
        "preset": {"name": labels.get("preset"), **described["preset"]},
        "text": training["text"],
        "training": {k: v for k, v in training.items() if k not in ("configuration", "text")},
        "measurements": [read_json(folder / f"{name}.json") for name in measurements],
    }
