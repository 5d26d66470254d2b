"""The command line: `farfield VERB FORMULA`, one verb a public function; slips that are refused.

A formula may begin with a minus, so verbs have no short options. Exit codes: `farfield.output`.
"""

from __future__ import annotations

import atexit
import gc
import os
import re
import shlex
import shutil
import signal
import sys
import textwrap
import threading
from collections.abc import Collection, Sequence
from functools import cache
from itertools import takewhile
from typing import Any, Literal, get_args

from cyclopts import (
    App,
    CoercionError,
    CycloptsError,
    Group,
    MissingArgumentError,
    Parameter,
    RepeatArgumentError,
    UnusedCliTokensError,
)

from farfield import GROUPS, __version__
from farfield.help import Help
from farfield.options import MEANT
from farfield.output import BAD_INPUT, INTERNAL, INTERRUPTED, OK, print_error, print_out
from farfield.theory.algebra.exceptions import OutOfTime
from farfield.theory.answers.errors import InputError, InternalError, MissingValues, unforeseen

VERBS = tuple(path.partition(".")[2] for part in GROUPS.values() for path in part)
"""Their names."""

FORMER = {
    "leak": ("trf",),
    "verify": ("check", "--verify", "--certificate"),
    "encodings": ("atlas", "--list"),
    "report": ("atlas",),
    "prove": ("papers",),
    "--evaluated": ("--tested",),
    "--progress": (),
}
"""Words of a command line in earlier versions, and what they are today."""

ALL = "--help-all"
"""Shows the options that many verbs share too."""

NAMED_BY_USERS = ("map",)
"""Verbs that take parameters of a formula as options, and refuse unknown ones themselves."""


def completion(shell: Literal["bash", "zsh", "fish"] = "bash", /) -> int:
    """The script that completes verbs and options in a shell.

    Args:
        shell: bash, zsh or fish.
    """
    print_out(application().generate_completion(shell=shell))
    return OK


@cache
def application(whole: bool = False) -> App:
    """The verbs with their options; each is imported when it is called.

    Args:
        whole: whether the help of a verb shows the options that many verbs share.
    """
    app = App(
        name="farfield",
        help="How far can a positional encoding see?\n\n"
        "A bias is a formula in n, the distance, or a name of the catalogue. A share is 1/100, "
        "0.01 or 1%; a number of tokens is 4096 or 4k; [-n/4; 0 x7] is one formula per head.",
        help_formatter=Help("", whole),
        help_epilogue="farfield VERB -h: its examples and options. docs/reference/commands.md: "
        "an answer of each.",
        version=__version__,
        help_flags=["--help"],
        group_parameters=Group.create_default_parameters("Options"),
        default_parameter=Parameter(negative=(), show_default=_default),
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    app["--help"].show = app["--version"].show = False
    for title, verbs in GROUPS.items():
        group = Group.create_ordered(title)
        for place, path in enumerate(verbs):
            module, _, name = path.partition(".")
            app.command(
                f"farfield.{'' if module == 'cli' else 'commands.'}{module}:{name}",
                name=name,
                group=group,
                sort_key=place,
                help_formatter=Help(name, whole),
                help_epilogue="",
            )
    return app


def _default(value: Any) -> str | None:
    """A default as the help shows it; none where it says nothing."""
    if value is None or isinstance(value, bool) or value == ():
        return None
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    gc.set_threshold(50_000, 20, 20)  # most of what starting makes stays: look at it less often
    atexit.register(gc.freeze)  # the process frees its memory as a whole, a third of a short answer
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # spinning wastes cores that are shared
    typed = asked_for_help(sys.argv[1:] if args is None else args)
    given = todays(typed)
    app = application(ALL in given)
    given = ["--help" if word == ALL else word for word in given]
    sys.unraisablehook = _unraisable
    if not given or given[0] in ("--help", "completion"):
        for verb in VERBS:
            app[verb]  # imported, for what its help says
    try:
        _require_known(given)
        code = app(given, exit_on_error=False, print_error=False) or OK
        if given != typed and ALL not in typed:
            today = f"farfield {shlex.join(given)}"
            print_error(f"farfield: this command is now: {today}")
        sys.stdout.flush()
    except MissingValues as error:
        options = " ".join(f"--set {x}={error.usual.get(x, 'VALUE')}" for x in error.names[:4])
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
    except BrokenPipeError as error:
        code = unwritten(error)
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        code = OK  # a page of help that nobody reads on
    except Exception as error:
        remote = isinstance(error, ConnectionError)  # has no file either; a template no number
        if isinstance(error, OSError) and error.errno and error.filename is None and not remote:
            sys.exit(unwritten(error))
        if os.environ.get("FARFIELD_TRACEBACK"):
            raise
        told = unforeseen(error)
        code = _complain(str(told), INTERNAL if isinstance(told, InternalError) else BAD_INPUT)
    sys.exit(code)


def unwritten(error: OSError) -> int:
    """Tell that standard output takes nothing, as on a full disk; the rest of it goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):  # who reads it has enough
        return OK
    return _complain(f"standard output cannot be written: {error.strerror}", BAD_INPUT)


def asked_for_help(words: Sequence[str]) -> list[str]:
    """A command line in which `-h` and `help` are `--help`, and `-V` is `--version`.

    >>> asked_for_help(["help", "check"]), asked_for_help(["check", "-h"]), asked_for_help(["-n"])
    (['check', '--help'], ['check', '--help'], ['-n'])
    """
    line = [*words[1:], "--help"] if words[:1] == ["help"] else list(words)
    return [{"-h": "--help", "-V": "--version"}.get(word, word) for word in line]


def todays(given: Sequence[str]) -> list[str]:
    """A command line in the words of this version.

    >>> todays(["leak", "-n", "--trained", "64", "--evaluated=4k", "--progress"])
    ['trf', '-n', '--trained', '64', '--tested=4k']
    """
    found = list(FORMER.get(given[0], given[:1])) if given else []
    for word in given[1:]:
        name, equals, value = word.partition("=")
        former = FORMER[name] if name.startswith("--") and name in FORMER else None
        found += [word] if former is None else [now + equals + value for now in former]
    return found


def _plainly(app: App, error: CycloptsError, given: Sequence[str]) -> str:
    """The defect of a command line, with the accepted forms."""
    verb, argument = given[0], error.argument
    if isinstance(error.__cause__, InputError):
        return str(error.__cause__)
    if isinstance(error, MissingArgumentError) and argument is not None:
        said = _help(app, verb, argument.name)
        named = argument.index is None or argument.name in given
        name = argument.name if named else argument.name.lstrip("-").upper()
        if name in given:
            return f"{verb}: {name} has no value ({said})"
        return f"{verb} needs {name} ({said})"
    if isinstance(error, RepeatArgumentError):
        return f"{verb}: {error.token.keyword} is given twice; accepted: once"
    if isinstance(error, CoercionError) and error.token is not None:
        wanted = ", ".join(map(str, get_args(error.target_type)))
        wanted = wanted or ("a whole number" if error.target_type is int else "a number")
        where = error.token.keyword or verb
        return f"{where} {error.token.value!r} is not known; accepted: {wanted}"
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
    """The options of a verb."""
    app = application()
    each = app[verb].assemble_argument_collection(default_parameter=app.default_parameter)
    return {name for one in each for name in one.names} | {"--help", "--version"}


UNITS = ("token", "tokens", "key", "keys", "head", "heads", "nat", "nats", "layer", "layers", "%")
"""Words that people write behind a number."""

COUNT = r"[-+]?\d[\d_,]*[kKmM]?"


def _require_known(given: Sequence[str]) -> None:
    """Refuse slips that would be read as a verb or as a formula: short flags, unknown options,
    units, and numbers beside formulas."""
    words = list(takewhile(lambda word: word != "--", given))
    if not words:
        return
    verb = words[0] if words[0] in VERBS else ""
    if not verb and not words[0].startswith("--"):
        raise InputError(_no_verb(words[0]))
    known = _names(verb) if verb else {"--help", "--help-all", "--version"}
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        name = word.partition("=")[0]
        if re.fullmatch("-[A-Za-z]", name) and name != "-n":
            alike = sorted(o for o in known if re.match(f"-{name}", o, re.IGNORECASE))
            hint = f"did you mean {' or '.join(alike)}? " if alike else ""
            raise InputError(
                f"{name} is no option, and no formula in n; {hint}accepted: options by their long "
                "names"
            )
        if re.fullmatch("--[A-Za-z][A-Za-z-]*", name) and name not in known:
            if verb in NAMED_BY_USERS:
                continue
            raise InputError(_no_option(verb or "farfield", word, after, known))
        if f"--{name}" in known and name != word and before not in ("--set", "--assume"):
            raise InputError(f"{word!r} is no formula; write it as an option: --{word}")
        if word in UNITS and re.fullmatch(rf"{COUNT}|[\d./]+", before):
            shown = f"{before}%" if word == "%" else before
            raise InputError(f"{word!r} is a unit, which is not written; write {shown}")


def _no_verb(word: str) -> str:
    """What to type for a first word that is no verb."""
    from farfield.theory.answers.names import closest, nearest
    from farfield.theory.encodings import CATALOGUE

    if re.search(r"\bn\b|\(", word) or word.lower() in CATALOGUE:
        return f"{word[:40]!r} is a bias, and a verb comes first: farfield study {word[:40]!r}"
    if re.match("(qin2024|sun2023|chi2023)", word):
        return f"{word[:40]!r} is of a paper, and a verb comes first: farfield papers {word[:40]}"
    close = nearest(word, [*VERBS, "help"], 0.6)
    hint = f"did you mean {close!r}? " if close else ""
    return f"{word[:40]!r} is no verb; {hint}{closest(word, VERBS)}; farfield --help lists them"


def _no_option(verb: str, word: str, after: str, known: Collection[str]) -> str:
    """What to type for an option that a verb does not have, before the word after it."""
    from farfield.theory.answers.names import closest, nearest

    name, _, value = word.partition("=")
    value = value or ("" if after.startswith("-") else after)
    options = sorted(o for o in known if o.startswith("--") and o not in ("--help", "--version"))
    start = max((o for o in options if name.startswith(o) or o.startswith(name)), default=None)
    meant = f"--{MEANT.get(name[2:])}"
    close = meant if meant in known else start or nearest(name, options, 0.6)
    hint = f"did you mean {close}? " if close else ""
    if close is None and "--set" in known:
        hint = f"a parameter is written --set {name[2:]}={value or 'VALUE'}; "
    return f"{verb} has no option {name}; {hint}{closest(name, options)}"
