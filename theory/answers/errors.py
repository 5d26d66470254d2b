"""Errors that a user reads: `InputError`, `MissingValues`, and `refuse`, which raises them."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class InputError(ValueError):
    """A question that farfield cannot read.

    The message is one line for a user: the text that was given, its defect, and the accepted forms.
    """


def refuse(wrong: object, why: str) -> None:
    """Raise InputError where something is wrong: `why` says what, and the accepted forms."""
    if wrong:
        raise InputError(why)


class InternalError(InputError):
    """A question at which farfield itself fails: one line with what was raised, its cause behind.

    Args:
        why: the exception that nobody expected.
    """

    def __init__(self, why: Exception) -> None:
        super().__init__(
            f"internal error, {_one_line(f'{type(why).__name__}: {why}')}; FARFIELD_TRACEBACK=1 "
            "shows where, please report it"
        )


def _one_line(text: str) -> str:
    """The beginning of a text on one line."""
    return " ".join(text.split())[:300]


def unforeseen(why: Exception) -> InputError:
    """An exception that nobody expected as the line that a user reads.

    >>> unforeseen(ImportError("libcudnn.so.9: no such file", name="torch")).args
    ('torch cannot be imported: libcudnn.so.9: no such file; accepted: a whole installation',)
    """
    library = getattr(why, "name", None) or "a library"
    if isinstance(why, ImportError) and not library.startswith("farfield"):
        what = _one_line(str(why))
        return InputError(f"{library} cannot be imported: {what}; accepted: a whole installation")
    if place := _own_code(why):
        what = _one_line(f"{type(why).__name__}: {why}")
        return InputError(f"{place}: what was given raises {what}; accepted: code that runs")
    return InternalError(why)


def _own_code(why: Exception) -> str:
    """The line of the user's own code that raised, libraries that it calls left out; empty if the
    line is farfield's."""
    for frame, line in reversed([*traceback.walk_tb(why.__traceback__)]):
        file, known = frame.f_code.co_filename, frame.f_globals
        module = str(known.get("__name__", "")).partition(".")[0]
        if module == "farfield":
            break
        library = "-packages" in str(known.get("__file__", file))  # of compiled code as well
        if module and module not in sys.stdlib_module_names and not library:
            return f"{os.path.basename(file)}, line {line}"
    return ""


def guarded(question: Callable[P, R], name: str = "") -> Callable[P, R]:
    """A public question that raises InputError or answers: any other error is an `InternalError`.

    Errors of files stay, and so does a call that Python refuses, which says the name that was
    typed. With FARFIELD_TRACEBACK=1, as in the tests, all do.

    Args:
        question: the function.
        name: by which it was asked; its own if empty.
    """

    @functools.wraps(question)
    def asked(*given: P.args, **options: P.kwargs) -> R:
        try:
            return question(*given, **options)
        except (InputError, OSError):
            raise
        except Exception as why:
            if isinstance(why, TypeError) and not _takes(question, given, options):
                typed = f"{name or question.__name__}()"
                why.args = (str(why).replace(f"{question.__name__}()", typed),)
                raise
            if os.environ.get("FARFIELD_TRACEBACK"):
                raise
            raise unforeseen(why) from why

    return asked


def _takes(question: Callable[..., Any], given: Sequence[Any], options: Mapping[str, Any]) -> bool:
    """Whether Python calls a function with these arguments."""
    try:
        inspect.signature(question).bind(*given, **options)
    except TypeError:
        return False
    return True


class MissingValues(InputError):
    """A question about numbers, of a formula whose parameters have none.

    Args:
        what: the formula or encoding.
        names: of its free parameters.
        usual: values that they have elsewhere, by name.
    """

    def __init__(self, what: str, names: Sequence[str], usual: Mapping[str, str] = {}) -> None:
        many = [*names[:4], "…", *names[-2:]] if len(names) > 8 else names
        such = f", as {', '.join(f'{k} = {v}' for k, v in usual.items())}" if usual else ""
        super().__init__(
            f"{what} has free parameters: give values for {', '.join(many)}{such}, or write its "
            "formula with numbers"
        )
        self.names, self.usual = tuple(names), usual
