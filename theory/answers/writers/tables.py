"""The rows of an answer for a paper or a program: a LaTeX table, CSV.

The rows are those of its tables; an answer without one has its named values, a line each.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from farfield.theory.answers.blocks import Block, Facts, Table
from farfield.theory.answers.errors import InputError
from farfield.theory.answers.notation import Text, as_text, latex, terminal


def tables(blocks: Sequence[Block]) -> list[Table]:
    """The tables among some blocks, else the named values as one.

    Raises:
        InputError: there is neither.
    """
    found = [block for block in blocks if isinstance(block, Table) and block.rows]
    if found:
        return found
    facts = tuple(row for block in blocks if isinstance(block, Facts) for row in block.rows)
    if not facts:
        raise InputError("this answer has no rows; accepted: its text, or JSON")
    return [Table((as_text("quantity"), as_text("value")), facts)]


def latex_tables(blocks: Sequence[Block]) -> str:
    r"""Each table as a `tabular` with the rules of the package booktabs.

    >>> from farfield.theory.answers.blocks import table
    >>> print(latex_tables([table(("`n`", "share"), [(1, "5 %")], numeric=(0,))]))
    \begin{tabular}{rl}
    \toprule
    $n$ & share \\
    \midrule
    1 & 5 \% \\
    \bottomrule
    \end{tabular}
    """
    return "\n\n".join(_tabular(table) for table in tables(blocks))


def _tabular(table: Table) -> str:
    """One table."""
    wide = len(table.rows[0])
    columns = "".join("r" if k in table.numeric else "l" for k in range(wide))
    head = [_row(table.header), r"\midrule"] if table.header else []
    body = [_row(row) for row in table.rows]
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", *head, *body, r"\bottomrule"]
    title = [f"% {terminal(table.title)}"] if table.title else []
    return "\n".join([*title, *lines, r"\end{tabular}"])


def _row(cells: Sequence[Text]) -> str:
    return " & ".join(latex(as_text(cell)) for cell in cells) + r" \\"


def csv_tables(blocks: Sequence[Block]) -> str:
    r"""Each table as CSV, an empty line between two.

    >>> from farfield.theory.answers.blocks import table
    >>> csv_tables([table(("a", "b"), [(1, "x, y")])])
    'a,b\n1,"x, y"'
    """
    return "\n\n".join(_csv(table) for table in tables(blocks))


def _csv(table: Table) -> str:
    """One table."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    for row in ([table.header] if table.header else []) + list(table.rows):
        writer.writerow([terminal(as_text(cell)) for cell in row])
    return written.getvalue().rstrip("\n")
