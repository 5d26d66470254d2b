"""Formulas and results as MathML and HTML, for pages and notebooks.

MathML needs no script and no network: a browser draws it. SymPy's printer does the work; where its
output is no good reading (cases, tables of values, relations) it is put right here.
"""

from __future__ import annotations

import re
from html import escape, unescape
from itertools import groupby
from typing import Any

import sympy
from sympy.printing.mathml import MathMLPresentationPrinter

from farfield.theory.proofs import Proof, Step


class _MathML(MathMLPresentationPrinter):
    """SymPy's printer, with cases in a brace and tables by their letter."""

    def _cells(self, *parts: Any) -> Any:
        row = self.dom.createElement("mtr")
        for part in parts:
            cell = self.dom.createElement("mtd")
            cell.appendChild(part)
            row.appendChild(cell)
        return row

    def _word(self, text: str, tag: str = "mtext") -> Any:
        word = self.dom.createElement(tag)
        word.appendChild(self.dom.createTextNode(text))
        return word

    def _print_Piecewise(self, e: Any) -> Any:
        row, cases = self.dom.createElement("mrow"), self.dom.createElement("mtable")
        for value, condition in e.args:
            last = condition == sympy.true
            when = self._word("otherwise") if last else self._print(condition)
            cases.appendChild(self._cells(self._print(value), when))
        row.appendChild(self._word("{", "mo"))
        row.appendChild(cases)
        return row

    def _print_Relational(self, e: Any) -> Any:
        row = self.dom.createElement("mrow")
        sign = {"==": "=", "!=": "≠", "<=": "≤", ">=": "≥", "<": "&lt;", ">": "&gt;"}[e.rel_op]
        for part in (self._print(e.lhs), self._word(sign, "mo"), self._print(e.rhs)):
            row.appendChild(part)
        return row

    def _print_Lookup(self, e: Any) -> Any:
        row = self.dom.createElement("mrow")
        for part in (self._word("T", "mi"), self._word("[", "mo"), self._print(e.args[0])):
            row.appendChild(part)
        row.appendChild(self._word("]", "mo"))
        return row

    def _print_AppliedUndef(self, e: Any) -> Any:
        row = self.dom.createElement("mrow")
        row.appendChild(self._word(e.func.__name__, "mi"))
        for part in (self._word("(", "mo"), self._print(e.args[0]), self._word(")", "mo")):
            row.appendChild(part)
        return row


def math(e: Any) -> str:
    """An expression as MathML, its plain text beside it for those who cannot see it."""
    inner = _MathML()._print(sympy.sympify(e)).toxml()
    inner = re.sub(r"&(?!lt;|gt;|amp;|quot;|#)\w+;", lambda m: unescape(m.group()), inner)
    return f'<math displaystyle="true" aria-label="{escape(str(e))}">{inner}</math>'


def _show(value: Any) -> str:
    expression = getattr(value, "expression", value)
    value = expression() if callable(expression) and value is not expression else expression
    if isinstance(value, sympy.Basic):
        return math(value)
    return escape(str(value))


def step_html(step: Step) -> str:
    """A step of a proof, its expressions as MathML."""
    shown: list[str] = []

    def place(value: Any) -> str:
        shown.append(_show(value))
        return f"\0{len(shown) - 1}\0"

    text = escape(step.render(place))
    for latex, sign in (("$=$", "="), ("$\\le$", "≤"), ("$\\to$", "→")):
        text = text.replace(latex, sign)
    parts = text.split("\0")
    return "".join(shown[int(p)] if i % 2 else p for i, p in enumerate(parts))


def proof_html(proof: Proof) -> str:
    """A proof as a numbered list."""
    items = "".join(f"<li>{step_html(s)}</li>" for s in proof.steps)
    return f"<ol>{items}</ol><p>Hence: {escape(proof.claim)}.</p>"


def result_html(result: Any) -> str:
    """A public result as HTML: its text, with the formula and the steps of a proof as MathML."""
    first, *rest = result.text().splitlines()
    proof = result if isinstance(result, Proof) else getattr(result, "proof", None)
    formula = getattr(result, "formula", None)
    parts = [f"<p><strong>{escape(first.strip())}</strong></p>"]
    if isinstance(formula, sympy.Basic) and len(str(formula)) < 200:
        parts.append(f"<p><i>p</i>(<i>n</i>) = {math(formula)}</p>")
    lines = [line for line in rest if not line.strip().startswith("p(n) = ")]
    if not isinstance(proof, Proof) or not proof.steps:
        parts.append(_lines_html(lines))
    else:
        starts = [k for k, line in enumerate(lines) if line.strip().lower().startswith("proof")]
        before = lines[: starts[0]] if starts else []
        parts = parts[isinstance(result, Proof) :]
        parts.append(_lines_html(before))
        parts.append(proof_html(proof))
        parts += [f"<p>{escape(line)}.</p>" for line in lines if line.startswith("so: ")]
    return f'<div class="farfield">{"".join(parts)}</div>'


def _lines_html(lines: list[str]) -> str:
    """Lines of text; neighbours with the same number of columns, two spaces apart, as a table.

    >>> _lines_html(["of a table:", "  alibi   5", "  type1  61"])
    '<div>of a table:</div><table><tr><td>alibi</td><td>5</td></tr><tr><td>type1</td>...'
    """
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines if line.strip()]
    parts = []
    for columns, group in groupby(rows, key=len):
        table = list(group)
        if columns == 1 or len(table) == 1:
            parts += [f"<div>{escape('  '.join(row))}</div>" for row in table]
            continue
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table
        )
        parts.append(f"<table>{body}</table>")
    return "".join(parts)
