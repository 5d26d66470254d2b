"""What a verb says: answers for a reader or for a program, and the exit code that follows.

0  every question was answered: exact, enclosed, infinite or out of scope
1  something stayed unknown, or is not what `--expect` says
2  bad input
3  an error of this program
130  interrupted
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farfield.options import Kept, Output, Subject
from farfield.progress_bar import Step, progress
from farfield.progress_bar import print_error as print_error

if TYPE_CHECKING:
    from farfield.theory.answers.blocks import Table

OK, UNKNOWN, BAD_INPUT, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 130


def exit_code(answers: Iterable[Any]) -> int:
    """The exit code of what a verb has to say."""
    return int(any(str(getattr(answer, "status", "")) == "unknown" for answer in answers))


def ask(
    title: str,
    question: Callable[[Step], Any],
    output: Output,
    subject: Subject = Subject(),
    opening: str = "",
) -> int:
    """Ask within the budget, show progress, write the answers, and return the exit code.

    Args:
        title: of the progress.
        question: gives the answers; it is handed a place to report to.
        output: how they are written.
        subject: whose budget holds.
        opening: said before the work begins.
    """
    with subject.within_budget(), progress(title, opening) as step:
        found = question(step)
    return write_answers(found, output)


def reading(model: str, text: str | None, goes_on: str | None = None) -> str:
    """What a verb that reads a model says first; nothing where there is no such model.

    Args:
        model: as it was typed.
        text: to read, or None.
        goes_on: the folder from which a stopped command goes on.

    >>> reading("a/b", "c.txt", "out")
    'reads a/b on c.txt, times its first rows; Ctrl-C stops it, the same command goes on from out'
    """
    path = Path(os.path.expanduser(model))
    held = path.is_file() or any((path / f"{of}.json").is_file() for of in ("config", "run"))
    if not held and (path.exists() or not re.fullmatch(r"[\w-]+/[\w.-]+", model)):
        return ""
    read = "the text of its run, or the source of Python's library" if text is None else text
    kept = "nothing is kept" if goes_on is None else f"the same command goes on from {goes_on}"
    return f"reads {model} on {read}, times its first rows; Ctrl-C stops it, {kept}"


def write_answers(answers: Any, output: Output, *after: str) -> int:
    """Write one answer, or several, and return the exit code.

    Args:
        answers: one, or a tuple, which is a list in JSON too; a list of one is that one, as where
            one formula of a possible several was asked.
        output: how.
        after: lines below the text for a reader, as where a page lies.
    """
    many = answers if isinstance(answers, Sequence) else [answers]
    if isinstance(output, Kept):
        output.answers.extend(many)
    elif output.latex or output.csv:
        print_out(in_one(many, "latex" if output.latex else "csv"))
    elif output.json:
        found = [answer.to_dict() for answer in many]
        whole = found if isinstance(answers, tuple) or len(found) != 1 else found[0]
        print_out(json.dumps(whole, indent=2, ensure_ascii=output.ascii, allow_nan=False))
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


def in_one(answers: Sequence[Any], form: str) -> str:
    """The rows of several answers: one table where each row names its bias, else one each.

    Args:
        answers: at least one.
        form: `latex` or `csv`.

    Raises:
        InputError: one has no rows.
    """
    from farfield.theory.answers.blocks import Table
    from farfield.theory.answers.notation import as_text
    from farfield.theory.answers.writers.tables import csv_tables, latex_tables, tables

    write = {"latex": latex_tables, "csv": csv_tables}[form]
    if len(answers) == 1:
        return str(getattr(answers[0], form)())
    each = [tables(answer.table_blocks()) for answer in answers]
    if form == "csv":
        each = [[_naming(a, one) for one in found] for a, found in zip(answers, each, strict=True)]
    headers = {table.header for found in each for table in found}
    if len(headers) == 1 and min(headers)[:1] == (as_text("bias"),):
        rows = tuple(row for found in each for one in found for row in one.rows)
        return write([Table(min(headers), rows)])
    names = [getattr(a, "subject", "") if form == "latex" else "" for a in answers]
    forms = [
        f"% {name}\n" * bool(name) + write(found) for name, found in zip(names, each, strict=True)
    ]
    return "\n\n".join(forms)


def _naming(answer: Any, rows: Table) -> Table:
    """A table of an answer whose rows begin with the bias that it is about."""
    from farfield.theory.answers.notation import as_text

    named, subject = as_text("bias"), as_text(getattr(answer, "subject", ""))
    if not rows.header or rows.header[0] == named:
        return rows
    each = tuple((subject, *row) for row in rows.rows)
    return replace(rows, header=(named, *rows.header), rows=each)


def write_rows(header: Sequence[str], rows: Sequence[Sequence[str]], output: Output) -> int:
    """Write a list that claims nothing, a line a row; a program gets names with their values, or a
    table by its header."""
    named = [dict(zip(header, row, strict=True)) for row in rows]
    found: Any = {r[0]: r[1] for r in rows} if len(header) == 2 else named
    if isinstance(output, Kept):
        output.answers.append(found)
    elif output.json:
        print_out(json.dumps(found, indent=2))
    elif output.latex or output.csv:
        from farfield.theory.answers.blocks import table
        from farfield.theory.answers.writers.tables import csv_tables, latex_tables

        print_out((latex_tables if output.latex else csv_tables)([table(header, rows)]))
    else:
        lay_out(rows)
    return OK


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


def speaks_unicode(output: Output) -> bool:
    """Whether the signs of mathematics are wanted, and standard output takes them."""
    if output.ascii or isinstance(output, Kept):
        return False
    try:
        "−≤→ρ₀".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
