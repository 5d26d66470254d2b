"""The symbols of a formula's text, and what is said of the place where one is wrong."""

from __future__ import annotations

import re
from typing import NoReturn

from farfield.theory.formula.limits import MAX_TOKENS
from farfield.theory.results import InputError

Token = tuple[str, str, int]  # its kind, its text, its column

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<op>\*\*|<=|>=|==|!=|[-+*/^(),|<>&~]))"
)
_REPLACED = str.maketrans({"\u2212": "-", "\u00d7": "*", "\u00b7": "*", "\u03c0": " pi "})


class Tokens:
    """A text as symbols that are read one by one."""

    def __init__(self, text: str) -> None:
        self.text = text = text.translate(_REPLACED)
        self.position = 0
        self.tokens: list[Token] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                at += len(text[at:]) - len(text[at:].lstrip())
                self.fail(at, f"{text[at]!r} is not part of a formula")
            kind = match.lastgroup or ""
            self.tokens.append((kind, match.group(kind), match.start(kind)))
            at = match.end()
            if len(self.tokens) > MAX_TOKENS:
                raise InputError(f"the formula has more than {MAX_TOKENS} symbols")
        self.tokens.append(("end", "", end))

    def fail(self, column: int, what: str) -> NoReturn:
        """Raise InputError with the text around a column."""
        begin = max(0, column - 30)
        shown = self.text[begin : column + 30]
        shown = ("..." if begin else "") + shown + ("..." if column + 30 < len(self.text) else "")
        raise InputError(f"formula {shown!r}, column {column + 1}: {what}")

    @property
    def token(self) -> Token:
        """The next symbol."""
        return self.tokens[self.position]

    @property
    def column(self) -> int:
        """Where the next symbol stands."""
        return self.token[2]

    def next(self) -> Token:
        """The next symbol, read."""
        self.position += 1
        return self.tokens[self.position - 1]

    def begins(self, op: str) -> bool:
        """Whether this operator comes next."""
        return self.token[:2] == ("op", op)

    def accept(self, *ops: str) -> str | None:
        """Read one of these operators, if it comes next."""
        kind, value, _ = self.token
        if kind == "op" and value in ops:
            self.position += 1
            return value
        return None

    def accept_name(self, name: str) -> bool:
        """Read this name, if it comes next."""
        found = self.token[:2] == ("name", name)
        self.position += found
        return found

    def expect(self, op: str) -> None:
        """Read this operator; nothing else may come next."""
        if self.accept(op) is None:
            kind, value, column = self.token
            found = "the end of the formula" if kind == "end" else repr(value)
            self.fail(column, f"expected {op!r}, found {found}")
