"""Registry of the torch views of an encoding (`tensor`, `score_mod`), which validation fills.

The package provides them when it is imported (`farfield/__init__`). So this room imports nothing
that stands above it, and names nothing there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_LOADERS: dict[str, Callable[[], Callable[..., Any]]] = {}


def provide(name: str, load: Callable[[], Callable[..., object]]) -> None:
    """Make a view known; `load` is called when it is first wanted."""
    _LOADERS[name] = load


def view(name: str) -> Callable[..., Any]:
    """The view of this name."""
    return _LOADERS[name]()
