"""Atomic writes: no crash leaves a half-written file."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
from pathlib import Path

from farfield.theory.answers.errors import InputError


def write(path: Path, content: bytes) -> None:
    """Write a file so that, whatever happens, its place holds the old content or all of the new.

    A link stays, and the file behind it is written. A device or a pipe takes the content. What
    processes that were killed left half-written in its folder goes.

    Raises:
        InputError: the place cannot be written to.
    """
    temporary = None
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            path.write_bytes(content)
            return
        place = Path(os.path.realpath(path))
        _remove_unfinished(place.parent)
        temporary = place.parent / f".partial-{secrets.token_hex(8)}"
        with open(temporary, "xb") as file:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            if place.is_file():
                shutil.copymode(place, temporary)
            os.replace(temporary, place)
    except BaseException as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        if isinstance(error, OSError):
            raise InputError(
                f"{str(path)!r} cannot be written: {error.strerror}; accepted: a folder that may "
                "be written to and has space"
            ) from None
        raise


def _remove_unfinished(folder: Path) -> None:
    """Remove the files that no process writes any more: each is locked while it is written."""
    for left in folder.glob(f".partial-{16 * '[0-9a-f]'}"):
        with contextlib.suppress(OSError), open(left, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file.fileno()).st_size:  # an empty one may be about to be locked
                left.unlink()
