"""Optional libraries: asked for by name, refused in one line that says how to install them."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from types import ModuleType

from farfield.theory.answers.answer import InputError


def require(name: str, what: str, extra: str = "") -> None:
    """Raise InputError, which says how to install it, unless a library is installed.

    Args:
        name: of its package.
        what: what needs it, as the line begins.
        extra: of farfield, which brings it; empty where the library is installed by its own name.

    >>> require("math", "counting")
    """
    if find_spec(name) is None:
        wanted = f"{' '.join(lacking(extra) or [name])} (farfield[{extra}])" if extra else name
        raise InputError(
            f"{what} needs {name}, which is not installed; install it with pip install {wanted}"
        )


def lacking(extra: str) -> list[str]:
    """The packages of an extra of farfield that are not installed, as pip takes them.

    >>> lacking("no such extra")
    []
    """
    found: list[str] = []
    for line in requires("farfield") or ():
        wanted, _, marker = line.partition(";")
        if f'extra == "{extra}"' not in marker:
            continue
        name = re.split(r"[^\w.-]", wanted.strip())[0]
        inner = re.fullmatch(r"farfield\[(\w+)\]", wanted.strip())
        found += lacking(inner[1]) if inner else [] if _has(name) else [shlex.quote(wanted.strip())]
    return found


def _has(package: str) -> bool:
    """Whether a package is installed."""
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def library(name: str, what: str, extra: str = "") -> ModuleType:
    """A library that is not among the dependencies, as `require` asks for it.

    >>> library("math", "counting").factorial(3)
    6
    """
    require(name, what, extra)
    return import_module(name)


def require_torch(what: str = "training") -> None:
    """Raise InputError, which says how to install it, unless torch can be imported."""
    require("torch", what, "train")


def first_line(error: BaseException, longest: int = 200) -> str:
    """What a library's error says, in one line: its first, or its kind where it says nothing.

    >>> first_line(RuntimeError("no room"), 2), first_line(KeyboardInterrupt())
    ('no', 'KeyboardInterrupt')
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:longest]
