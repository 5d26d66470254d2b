"""SymPy's printer of MathML, with cases in a brace and tables by their letter."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import sympy
from sympy.printing.mathml import MathMLPresentationPrinter
from sympy.printing.precedence import PRECEDENCE

_WORD = r"<mrow>(?:<msup><mrow>|<msub><mrow>)?<mi>[a-z]{2,}</mi>"
_TYPESET = (
    (re.compile("<mo>-</mo>"), "<mo>\u2212</mo>"),
    (re.compile("<mn>-"), "<mo>\u2212</mo><mn>"),
    (re.compile(rf"<mo>\u2062</mo>(?=(?:<msup>)?{_WORD})"), '<mspace width="0.17em"></mspace>'),
    (re.compile(r"(<mi>[a-z]{2,}</mi>)(?=<mrow><mo>\()"), "\\1<mo>\u2061</mo>"),
    (re.compile("</mrow><mo>\u2062</mo>(?=<mi>)"), '</mrow><mspace width="0.17em"></mspace>'),
)
"""A true minus, a thin space between a factor and a function, a function applied: what SymPy's
printer leaves to the reader of its markup."""


_BRACKET = re.compile(r"<mo>([()\[\]{}])</mo>")
_TALL = ("<mfrac", "<mtable", "<munder", "<mover")


def unstretched(markup: str) -> str:
    """Brackets around what is no taller than a line keep their size: without a font for
    mathematics a browser draws those that may stretch far too high.

    >>> unstretched("<mi>p</mi><mo>(</mo><mi>n</mi><mo>)</mo>")[10:36]
    '<mo stretchy="false">(</mo'
    """
    parts, opened = _BRACKET.split(markup), list[int]()
    shown = [p if k % 2 == 0 else f"<mo>{p}</mo>" for k, p in enumerate(parts)]
    for k in range(1, len(parts), 2):
        if parts[k] in "([{":
            opened.append(k)
        elif opened:
            first = opened.pop()
            if not any(tall in part for part in parts[first + 1 : k : 2] for tall in _TALL):
                for end in (first, k):
                    shown[end] = f'<mo stretchy="false">{parts[end]}</mo>'
    return "".join(shown)


class MathML(MathMLPresentationPrinter):
    """The printer; `markup` is its result without an element around it."""

    def markup(self, e: Any) -> str:
        """An expression as MathML."""
        found = self._print(e).toxml()
        found = re.sub(r"&(?!lt;|gt;|amp;|quot;|#)\w+;", lambda m: unescape(m.group()), found)
        for pattern, instead in _TYPESET:
            found = pattern.sub(instead, found)
        return found

    def _cells(self, *parts: Any) -> Any:
        """A row of a table of MathML, one cell a part."""
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

    def _print_Pow(self, e: Any) -> Any:
        power = e.exp
        if not power.is_Rational or power.is_Integer or abs(power) == sympy.S.Half or power < 0:
            return super()._print_Pow(e)
        raised, row = self.dom.createElement("msup"), self.dom.createElement("mrow")
        for tag, text in (("mn", str(power.p)), ("mo", "/"), ("mn", str(power.q))):
            row.appendChild(self._word(text, tag))
        raised.appendChild(self.parenthesize(e.base, PRECEDENCE["Pow"]))
        raised.appendChild(row)
        return raised

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
