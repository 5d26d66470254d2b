"""Labels of encodings: the names of runs and curves, short and the same everywhere.

A label is the encoding's name plus the options that distinguish its variant: `window 16`, `alibi
shift -3`. The options are the dialect, unless it is the entry's first, the values of parameters,
and the options that this dialect alone reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import CATALOGUE
from farfield.theory.encodings.catalogue import Entry


def options_of(label: str) -> dict[str, Any]:
    """The options of the encoding that a label names.

    Raises:
        InputError: no entry has this name, or it has no such variant.

    >>> options_of("alibi shift -3")
    {'name': 'alibi', 'dialect': 'shift', 'delta': -3}
    >>> options_of("window 48")
    {'name': 'window', 'w': 48}
    """
    name, *rest = label.split(" ")
    entry = CATALOGUE.get(name)
    if entry is None:
        raise InputError(f"label {label[:40]!r}: no encoding of the catalogue is called {name!r}")
    options: dict[str, Any] = {"name": name}
    if rest and rest[0] in entry.dialects:
        options["dialect"] = rest.pop(0)
    values = _told(entry, options.get("dialect"))
    if len(rest) > len(values) or not all(_whole(value) for value in rest):
        raise InputError(f"label {label[:40]!r}: {name} has no variant {' '.join(rest)!r}")
    return options | {k: int(v) for k, v in zip(values, rest, strict=False)}


def _told(entry: Entry, dialect: str | None) -> Sequence[str]:
    """The options that a label tells the values of: those that this dialect alone reads, or the
    parameters that nothing else gives a value."""
    keys = [k for k, dialects in entry.needs.items() if dialect in dialects]
    if keys or callable(entry.parameters) or entry.values is not None:
        return keys
    return [p.name for p in entry.parameters if not p.learned]


def _whole(value: str) -> bool:
    return value.removeprefix("-").isdigit()
