"""The command line: `farfield VERB FORMULA`, one verb a public function.

A formula may begin with a minus, so verbs have no short options. Exit codes: `farfield.output`.
"""

from __future__ import annotations

import gc
import os
import re
import shlex
import shutil
import signal
import sys
import textwrap
import threading
from collections.abc import Sequence
from functools import cache
from itertools import takewhile
from typing import Any, Literal

from cyclopts import (
    App,
    CycloptsError,
    Group,
    MissingArgumentError,
    Parameter,
    RepeatArgumentError,
    UnusedCliTokensError,
)

from farfield import __version__
from farfield.commands import explore, far, goals, models, pages, start, theory, training
from farfield.output import BAD_INPUT, INTERNAL, INTERRUPTED, OK, print_error, print_out
from farfield.theory.algebra.exceptions import OutOfTime
from farfield.theory.answers.errors import InputError, InternalError, MissingValues

GROUPS = {
    "Start here": (start.demo, pages.study, explore.explore),
    "Decide and certify": (
        theory.check,
        theory.lint,
        theory.trf,
        theory.reach,
        theory.forecast,
        models.window,
        theory.compare,
        theory.resolution,
    ),
    "From a goal": (goals.design, goals.plot, goals.map),
    "Look up": (pages.atlas, theory.prove, pages.claims, pages.figures, start.doctor),
    "Models": (
        models.audit,
        models.diff,
        models.erf,
        models.perplexity,
        far.foresee,
        far.mend,
        training.train,
        training.sweep,
        training.runs,
    ),
}

FORMER = {
    "leak": ("trf",),
    "verify": ("check", "--verify", "--certificate"),
    "encodings": ("atlas", "--list"),
    "report": ("atlas",),
    "--evaluated": ("--tested",),
}
"""Words of a command line in earlier versions, and what they are today."""

NAMED_BY_USERS = ("map",)
"""Verbs that take parameters of a formula as options, and refuse unknown ones themselves."""


def completion(shell: Literal["bash", "zsh", "fish"] = "bash", /) -> int:
    """The script that completes verbs and options: eval "$(farfield completion bash)".

    Args:
        shell: bash, zsh or fish.
    """
    print_out(application().generate_completion(shell=shell))
    return OK


@cache
def application() -> App:
    """The verbs with their options."""
    app = App(
        name="farfield",
        help="How far can a positional encoding see? "
        'Begin with: farfield study "-2*log(1+n)", everything farfield knows of one idea. '
        "A share is 1/100, 0.01 or 1%; a number of tokens is 4096 or 4k; [-n/4; 0 x7] is a formula "
        "a head.",
        version=__version__,
        version_flags=["--version"],
        help_flags=["--help"],
        default_parameter=Parameter(negative=(), show_default=_default),
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for title, verbs in GROUPS.items():
        group = Group.create_ordered(title)
        for verb in verbs:
            app.command(verb, name=verb.__name__, group=group)
    app.command(completion, group=Group.create_ordered("Shell"))
    return app


def _default(value: Any) -> str | None:
    """A default as the help shows it; none where it says nothing."""
    if value in (None, False, True, ()):
        return None
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    gc.set_threshold(50_000, 20, 20)  # most of what starting makes stays: look at it less often
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # spinning wastes cores that are shared
    typed = asked_for_help(sys.argv[1:] if args is None else args)
    given = todays(typed)
    app = application()
    sys.unraisablehook = _unraisable
    try:
        _require_known(app, given)
        code = app(given, exit_on_error=False, print_error=False) or OK
        if given != typed:
            today = f"farfield {shlex.join(given)}"
            print_error(f"farfield: this command is now: {today}")
    except MissingValues as error:
        options = " ".join(f"--set {name}=VALUE" for name in error.names[:4])
        code = _complain(f"{error}: {options}", BAD_INPUT)
    except InternalError as error:
        code = _complain(str(error), INTERNAL)
    except InputError as error:
        code = _complain(str(error), BAD_INPUT)
    except CycloptsError as error:
        code = _complain(_plainly(app, error, given), BAD_INPUT)
    except OutOfTime as error:
        code = _complain(f"{error}, and nothing is written; accepted: a larger one", BAD_INPUT)
    except KeyboardInterrupt:
        code = _complain("interrupted", INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        code = OK
    except Exception as error:
        if os.environ.get("FARFIELD_TRACEBACK"):
            raise
        code = _complain(str(InternalError(error)), INTERNAL)
    sys.exit(code)


def asked_for_help(words: Sequence[str]) -> list[str]:
    """A command line in which `-h` and `help` are `--help`, and `-V` is `--version`.

    >>> asked_for_help(["help", "check"]), asked_for_help(["check", "-h"]), asked_for_help(["-n"])
    (['check', '--help'], ['check', '--help'], ['-n'])
    """
    line = [*words[1:], "--help"] if words[:1] == ["help"] else list(words)
    return [{"-h": "--help", "-V": "--version"}.get(word, word) for word in line]


def todays(given: Sequence[str]) -> list[str]:
    """A command line in the words of this version.

    >>> todays(["leak", "-n", "--trained", "64", "--evaluated=4k"])
    ['trf', '-n', '--trained', '64', '--tested=4k']
    """
    found = list(FORMER.get(given[0], given[:1])) if given else []
    for word in given[1:]:
        name, equals, value = word.partition("=")
        found += [now + equals + value for now in FORMER[name]] if name == "--evaluated" else [word]
    return found


def _plainly(app: App, error: CycloptsError, given: Sequence[str]) -> str:
    """The defect of a command line, with the accepted forms."""
    verb, argument = given[0] if given else "farfield", error.argument
    if isinstance(error.__cause__, InputError):
        return str(error.__cause__)
    if isinstance(error, MissingArgumentError) and argument is not None:
        said = _help(app, verb, argument.name)
        name = argument.name if argument.name.startswith("--") else argument.name.upper()
        if name in given:
            return f"{verb}: {name} has no value ({said})"
        return f"{verb} needs {name} ({said})"
    if isinstance(error, RepeatArgumentError) and error.token.keyword:
        return f"{verb}: {error.token.keyword} is given twice; accepted: once"
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return (
            f"{verb}: {error.unused_tokens[0]!r} is one argument too many; "
            f"farfield {verb} --help says what it takes"
        )
    return " ".join(str(error).split())


def _help(app: App, verb: str, name: str) -> str:
    """What the help of a verb says of an argument."""
    arguments = app[verb].assemble_argument_collection(parse_docstring=True)
    said = next((a.parameter.help for a in arguments if name in a.names), None)
    return " ".join(str(said or "value").split()).rstrip(".")


def _unraisable(seen: Any) -> None:
    """An interrupt that came where none can be raised, as in a weak reference's callback, comes
    again; all other errors are reported as usual."""
    if seen.exc_type is KeyboardInterrupt:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()  # once this is over
    else:
        sys.__unraisablehook__(seen)


def _complain(what: str, code: int) -> int:
    """Print the error, wrapped at words on a terminal, and return the exit code."""
    said = f"farfield: {what}"
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        said = textwrap.fill(said, width, break_long_words=False, break_on_hyphens=False)
    print_error(said)
    return code


@cache
def _names(verb: str) -> set[str]:
    """The arguments and options of a verb."""
    arguments = application()[verb].assemble_argument_collection()
    return {name for one in arguments for name in one.names} | {"--help", "--version"}


def _require_known(app: App, given: Sequence[str]) -> None:
    """Refuse an unknown option by its name, before its value is taken for the formula."""
    for word in takewhile(lambda word: word != "--", given):
        name = word.partition("=")[0]
        if re.fullmatch("-[A-Za-z]", name) and name != "-n":
            options = sorted(_names(given[0]) if given[0] in app else ("--help", "--version"))
            alike = [o for o in options if re.match(f"-{name}(?!mpty)", o, re.IGNORECASE)]
            meant = f"did you mean {' or '.join(alike)}? " if alike else ""
            raise InputError(
                f"{name} is no option, and no formula in n; {meant}accepted: options by their long "
                "names"
            )
    if not given or given[0].startswith("-") or given[0] not in app or given[0] in NAMED_BY_USERS:
        return
    known = _names(given[0])
    for word in takewhile(lambda word: word != "--", given[1:]):
        name = word.partition("=")[0]
        if re.fullmatch("--[a-z][a-z-]+", name) and name not in known:
            from farfield.theory.answers.names import nearest

            close = nearest(name, known, 0.6)
            accepted = ", ".join(sorted(n for n in known if n.startswith("--")))
            hint = f"did you mean {close}? " if close else ""
            raise InputError(f"{given[0]} has no option {name}; {hint}accepted: {accepted}")


if __name__ == "__main__":
    main()
