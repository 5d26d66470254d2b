"""Several heads, or a table of values, as people write them: `[-n/4; 0 x7]`, `[0, -1, -2]`.

A list of formulas is one bias a head, with `;` or `,` between them; `x7` repeats a formula in seven
heads. A list of numbers is a table of one head's bias at distances 0, 1, ..., with `;` between the
rows of several heads. A text that may be either is refused.
"""

from __future__ import annotations

import itertools
import numbers
import re
from collections.abc import Sequence
from typing import Any

import sympy
from sympy import Expr, S

from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.answers.notation import beginning
from farfield.theory.answers.number import exact
from farfield.theory.formula.reading import uncommented

MAX_LISTED = 4096
"""Heads of a list, with those of several layers."""

_COUNTED = re.compile(r"(.*\S)\s+(?:[xX]\s?|×)(\d+)", re.DOTALL)
_COUNT_FIRST = re.compile(r"(\d+)\s*[xX]\s+(\S.*)", re.DOTALL)
_NO_COUNT = re.compile(r".*\S\s+[xX×]\s*(?:[-+]\s*\d\S*|\d*\.\d*)", re.DOTALL)
_PRODUCT = re.compile(r"(.*\S)(?:\s*×\s*|(?<=\b0)\s*[*x]\s*)(\d+)", re.DOTALL)
_NUMBER = re.compile(
    r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:\s*/\s*\d+)?|inf(?:inity)?|oo|∞)"
)
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def as_list(text: str) -> list[Any] | None:
    """What a text in brackets lists: formulas, one a head, or the numbers of a table; else None.

    Raises:
        InputError: no end, nothing between two separators, a text that may be read in two ways.

    >>> as_list("[-n/4; 0 x2]"), as_list("[0, -1, -1/2]"), as_list("[0]"), as_list("-n")
    (['-n/4', '0', '0'], [0, -1, -1/2], ['0'], None)
    """
    inner = uncommented(text).strip()
    if not inner.startswith("["):
        return None
    if not inner.endswith("]"):
        raise InputError(f"{_shown(text)} begins a list of heads; expected ']' at its end")
    if inner.startswith("[[") and inner.endswith("]]"):
        inner = re.sub(r"\]\s*,\s*\[", ";", inner[1:-1].strip())  # rows as Python writes them
    rows = [[part.strip() for part in _split(row, ",")] for row in _split(inner[1:-1], ";")]
    items = [part for row in rows for part in row]
    for part in items:
        _require_one_meaning(part, text)
    both = len(rows) > 1 and max(map(len, rows)) > 1
    numeric = all(_NUMBER.fullmatch(part.replace("\N{MINUS SIGN}", "-")) for part in items)
    if not numeric or items == ["0"]:  # "[0]" is one head without a bias
        refuse(both, f"{_shown(text)} has both ; and , between its heads; accepted: one of them")
        return repeated(items, text)
    table = [[_table_entry(part) for part in row] for row in rows]
    if both or len(rows) == 1:
        return table if both else table[0]
    refuse(
        any(entry != 0 for row in table for entry in row),
        f"{_shown(text)} may be a table of one head, [{', '.join(items)}], or heads with a "
        "constant bias each, which is no bias: write commas for the table, 0 for a head "
        "without bias",
    )
    return repeated(items, text)


def repeated(items: Sequence[Any], text: str = "") -> list[Any]:
    """The formulas of a list, those with a count as often as it says.

    >>> repeated(["-n/4", "0 x2"])
    ['-n/4', '0', '0']
    """
    heads: list[Any] = []
    for item in items:
        counted = _COUNTED.fullmatch(item.strip()) if isinstance(item, str) else None
        count = 1 if counted is None else int(min(float(counted[2]), MAX_LISTED + 1))
        if count < 1 or len(heads) + count > MAX_LISTED:
            raise InputError(
                f"{_shown(text or item)} repeats {item[:40]!r}; accepted: 1 to {MAX_LISTED} heads"
            )
        heads += [item if counted is None else counted[1]] * count
    return heads


def _require_one_meaning(part: str, text: str) -> None:
    if not part:
        raise InputError(
            f"{_shown(text)} has nothing between two separators; accepted: [-n/4; 0 x7], a "
            "formula a head, or [0, -1, -2], a table of the bias at distances 0, 1, 2"
        )
    if part.startswith("["):
        raise InputError(
            f"{_shown(text)} has a list among its heads; give it alone, or write one formula a "
            "head: [-n/4; 0 x7]"
        )
    if _NO_COUNT.fullmatch(part):
        raise InputError(
            f"{part[:40]!r} in {_shown(text)} ends with x and no count of heads; accepted: 0 x7, "
            "or a product with a parameter, written with *"
        )
    if (first := _COUNT_FIRST.fullmatch(part)) and not _COUNTED.fullmatch(part):
        raise InputError(
            f"{part[:40]!r} in {_shown(text)} may mean {first[1]} heads, written {first[2]} "
            f"x{first[1]}, or a product with a parameter x, written {first[1]}*x"
        )
    product = _PRODUCT.fullmatch(part)
    if product and not _COUNTED.fullmatch(part):
        base, count = product.groups()
        raise InputError(
            f"{part[:40]!r} in {_shown(text)} may mean {count} heads, written {base} x{count}, "
            f"or a product, written ({base})*{count}"
        )


def _split(text: str, separator: str) -> list[str]:
    """The parts between separators outside all brackets."""
    parts, depth, begin = [], 0, 0
    for place, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == separator and depth == 0:
            parts.append(text[begin:place])
            begin = place + 1
    return [*parts, text[begin:]]


def _table_entry(text: str) -> Expr:
    plain = text.replace("\N{MINUS SIGN}", "-")
    if plain.lstrip("+-") in ("inf", "infinity", "oo", "∞"):
        return S.NegativeInfinity if plain[0] == "-" else S.Infinity
    return exact(plain, "entry of the table")


def _shown(text: str) -> str:
    return repr(beginning(text))


def is_table(given: Any) -> bool:
    """Whether a list or tuple holds numbers alone, or rows of them, so that it is a table.

    >>> is_table([0, -1, -2.5]), is_table([[0, -1], [0, -2]]), is_table(["0", "-n"])
    (True, True, False)
    """
    return bool(given) and all(
        is_table(item) if isinstance(item, (list, tuple)) else _is_number(item) for item in given
    )


def _is_number(value: object) -> bool:
    if hasattr(value, "item"):
        return getattr(value, "ndim", None) == 0
    infinite = isinstance(value, sympy.Expr) and value.is_infinite
    numeric = isinstance(value, (numbers.Real, sympy.Number)) and not isinstance(value, bool)
    return numeric or bool(infinite)


def notation(names: Sequence[str]) -> str:
    """Formulas, one a head, as `as_list` reads them.

    >>> notation(["-n/4", "0", "0"]), notation(["-n"])
    ('[-n/4; 0 x2]', '[-n]')
    """
    return "[" + "; ".join(f"{name} x{k}" if k > 1 else name for name, k in _runs(names)) + "]"


def worded(names: Sequence[str]) -> str:
    """What the heads of a list have, in words; in the notation of lists where that is long.

    >>> worded(["-n/4", *["0"] * 7]), worded(["0", "0"]), worded(["-n", "-2n", "-3n", "0"])
    ('one head -n/4, seven without bias', 'two heads without bias', '[-n; -2n; -3n; 0]')
    """
    each = _runs(names)
    if len(each) > 3:
        return notation(names)
    parts = [
        f"{_WORDS[k] if k < len(_WORDS) else k} {'without bias' if name == '0' else name}"
        for name, k in each
    ]
    count, _, rest = parts[0].partition(" ")
    return ", ".join([f"{count} {'head' if each[0][1] == 1 else 'heads'} {rest}", *parts[1:]])


def _runs(names: Sequence[str]) -> list[tuple[str, int]]:
    return [(name, len(list(same))) for name, same in itertools.groupby(names)]
