"""Libraries that some tasks need and others do not: asked for by name, refused in one line."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from farfield.theory.answers.answer import InputError


def library(name: str, what: str, extra: str = "") -> ModuleType:
    """A library that is not among the dependencies.

    Args:
        name: of its package.
        what: what needs it, as the line begins.
        extra: of farfield, which brings it; empty where the library is installed by its own name.

    Raises:
        InputError: it is not installed; the line says how to install it.

    >>> library("math", "counting").factorial(3)
    6
    """
    try:
        return import_module(name)
    except ImportError:
        wanted = f"'farfield[{extra}]'" if extra else name
        raise InputError(
            f"{what} needs {name}, which is not installed; install it with pip install {wanted}"
        ) from None


def require_torch(what: str = "training") -> None:
    """Raise InputError, which says how to install it, unless torch can be imported."""
    library("torch", what, "train")
