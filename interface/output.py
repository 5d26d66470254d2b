"""What a verb says: answers for a reader or for a program, and the exit code that follows.

0  every question was answered: exact, enclosed, infinite or out of scope
1  something stayed unknown, or is not what `--expect` says
2  bad input
3  an error of this program
130  interrupted
"""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from farfield.options import Output

if TYPE_CHECKING:
    from farfield.theory.answers.answer import Result

OK, UNKNOWN, BAD_INPUT, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 130


def exit_code(answers: Iterable[Any]) -> int:
    """The exit code of what a verb has to say."""
    return int(any(str(getattr(answer, "status", "")) == "unknown" for answer in answers))


def write_answers(answers: Result | Sequence[Result], output: Output, *after: str) -> int:
    """Write one answer, or several, and return the exit code.

    Args:
        answers: a list of JSON objects is written where a sequence is given.
        output: how.
        after: lines below the text for a reader, as where a page lies.
    """
    many = answers if isinstance(answers, Sequence) else [answers]
    if output.json:
        found = [answer.to_dict() for answer in many]
        whole = found if isinstance(answers, Sequence) else found[0]
        print_out(json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        from farfield.theory.answers.blocks import columns, in_colour

        unicode = speaks_unicode(output)
        each = [
            a.text(details=output.proof, unicode=unicode, width=columns(), colour=in_colour())
            for a in many
        ]
        print_out("\n\n".join(dict.fromkeys(each)))  # what several have to say alike is said once
        for line in after:
            print_out(line)
    return exit_code(many)


def write_each(answers: Sequence[Result], output: Output) -> int:
    """Write what was asked of one formula or of several: a single answer is no list."""
    return write_answers(answers[0] if len(answers) == 1 else answers, output)


def lay_out(rows: Sequence[Sequence[str]]) -> None:
    """Write rows in columns; on a terminal the last column takes several lines where it must."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    for *cells, last in rows:
        start = "".join(f"{cell:<{w}}  " for cell, w in zip(cells, widths, strict=True))
        if sys.stdout.isatty():
            columns = shutil.get_terminal_size().columns
            last = textwrap.fill(
                start + last, columns, subsequent_indent=" " * len(start), break_on_hyphens=False
            )[len(start) :]
        print_out(start + last)


def print_out(text: str) -> None:
    """A line on standard output."""
    print(text)


def print_error(text: str) -> None:
    """A line on standard error, for progress and complaints."""
    print(text, file=sys.stderr)


def speaks_unicode(output: Output) -> bool:
    """Whether the signs of mathematics are wanted, and standard output takes them."""
    if output.ascii:
        return False
    try:
        "−≤→ρ₀".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
