"""JSON files, never torn; a `Book` of numbers, so that stopped work goes on; writable folders."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from farfield.theory.answers.answer import InputError, plain
from farfield.theory.answers.errors import refuse
from farfield.theory.files import write as write

_DISK = 8 << 20  # bytes that a folder needs for what is written to it


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a JSON object under another name first, so that no file is ever torn."""
    write(path, json.dumps(value, sort_keys=True, allow_nan=False).encode())


class Book:
    """Numbers that are made once and kept in a file, so that a stopped search goes on.

    Args:
        place: of the file.

    Raises:
        InputError: the file is damaged; numbers that are not finite.
    """

    def __init__(self, place: Path) -> None:
        self.place, self.kept = place, dict[str, list[float]]()
        if place.is_file():
            self.kept = {k: v for k, v in read_json(place).items() if isinstance(v, list)}

    def of(self, name: str, make: Callable[[], Sequence[float]]) -> list[float]:
        """The numbers of this name."""
        if name not in self.kept:
            made = [float(x) for x in make()]
            refuse(
                not all(map(math.isfinite, made)),
                f"{name}: the model gives NaN or infinity; accepted: one whose losses are finite",
            )
            self.kept[name] = made
            self.place.parent.mkdir(parents=True, exist_ok=True)
            write_json(self.place, self.kept)
        return self.kept[name]


def recorded(value: Any) -> Any:
    """The JSON form of what runs record: numbers that are none, or infinite, as text.

    >>> recorded({"ratios": (1.5, float("nan"))})
    {'ratios': [1.5, 'nan']}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: recorded(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(k): recorded(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [recorded(v) for v in value]
    return plain(value)


def unrecorded(value: Any) -> Any:
    """What `recorded` wrote, with its numbers as numbers again.

    >>> unrecorded({"ratios": [1.5, "nan"]})
    {'ratios': [1.5, nan]}
    """
    if isinstance(value, dict):
        return {name: unrecorded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [unrecorded(inner) for inner in value]
    return float(value) if value in ("nan", "inf", "-inf") else value


def read_json(path: Path) -> dict[str, Any]:
    """Read what `write_json` wrote.

    Raises:
        InputError: it is no JSON object.
    """
    try:
        value: dict[str, Any] = from_json(path.read_bytes(), allow_inf_nan=False)
        value.pop("sha256", None)  # a seal of earlier files
    except (ValueError, AttributeError, TypeError, OSError):
        raise InputError(
            f"{path.parent.name}/{path.name} is not readable; accepted: the file as it was, or "
            "none, and it is made again"
        ) from None
    return value


def writable_folder(folder: str | os.PathLike[str]) -> Path:
    """The folder, made if need be.

    Raises:
        InputError: it cannot be made or written to.
    """
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"output folder {str(folder)!r}: {error.strerror}; accepted: a folder that may be "
            "made and written to"
        ) from None
    if not os.access(place, os.W_OK):
        raise InputError(f"output folder {str(folder)!r} cannot be written to")
    if shutil.disk_usage(place).free < _DISK:
        raise InputError(
            f"output folder {str(folder)!r} lies on a full disk; accepted: {_DISK >> 20} MiB free"
        )
    return place
