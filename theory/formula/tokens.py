"""The symbols of a formula's text, and errors that name a place in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from farfield.theory.answers.errors import InputError
from farfield.theory.formula.limits import MAX_TOKENS
from farfield.theory.formula.spelling import POSITIONS, Token, distance_of, is_latex, spelled
from farfield.theory.formula.words import CALLED, RESERVED
from farfield.theory.functions.record import spellings


def quoted(text: str) -> str:
    r"""A piece of a formula between quotes, the backslashes of LaTeX as they are.

    >>> print(quoted(r"-10\% n"))
    '-10\% n'
    """
    return repr(text).replace("\\\\", "\\")


class Tokens:
    """A text as symbols that are read one by one."""

    def __init__(self, text: str, domains: Mapping[str, str]) -> None:
        self.text, self.domains = text, domains
        self.distance = distance_of(text)
        if not self.distance.isidentifier():
            self.fail(0, f"{self.distance[:20]!r} is no name for the distance; one is accepted")
        self.latex = is_latex(text)
        self.braces = self.latex or "{" in text
        self.position = 0
        self.tokens: list[Token] = []
        for token in spelled(text, {*spellings(), *CALLED, *RESERVED}):
            kind, value, at = token
            if kind == "bad":
                hint = "; several heads stand in brackets, [-n/4; 0 x7]" if value == ";" else ""
                self.fail(at, f"{quoted(value[:20])} is not part of a formula{hint}")
            self.tokens.append(token)
            if len(self.tokens) > MAX_TOKENS:
                raise InputError(f"the formula has more than {MAX_TOKENS} symbols")
        self._positions()
        self.tokens.append(("end", "", len(text.rstrip())))

    def _positions(self) -> None:
        """Read `i - j`, query less key, as the distance; `|i - j|` and `|j - i|` likewise."""
        names = {value for kind, value, _ in self.tokens if kind == "name"}
        for pair in POSITIONS:
            meant = {self.distance, *self.domains} - {"n"}
            if {*pair} <= names and not meant & {*pair}:
                self._distance_of(*pair, "n" in names)

    def _distance_of(self, query: str, key: str, named: bool) -> None:
        """Read one query less its key as the distance; `named`: n occurs in the text as well."""
        found: list[Token] = []
        rest = self.tokens
        read: set[int] = set()
        while rest:
            values = [value for _, value, _ in rest[:3]]
            column, after = rest[0][2], rest[3:6]
            if values not in ([query, "-", key], [key, "-", query]):
                found.append(rest[0])
                rest = rest[1:]
                continue
            alone = self._stands_alone(found, after[:1])
            if self._absolute(found, after):
                pass
            elif query == "i" and not alone:
                self.fail(column, "write i - j in brackets: (i - j), the distance n")
            elif query != "i" and (named or not alone):
                if alone:
                    self.fail(
                        column,
                        f"{' '.join(values)} may mean the distance n, of a query at {query} and a "
                        f"key at {key}, or a difference with a parameter; write n, or |{query} - "
                        f"{key}|, or say that it is a parameter: --assume {query}=positive",
                    )
                found += rest[:3]
                rest = rest[3:]
                continue
            elif values[0] == key:
                found.append(("op", "-", column))
            rest = rest[3:]
            read.add(len(found))
            found.append(("name", "n", column))
        others = {query, key, "n"} if read else {query, key} if query == "i" else set()
        for at, (kind, value, column) in enumerate(found):
            if kind == "name" and value in others and at not in read:
                self.fail(
                    column,
                    f"{value} beside {query} - {key}: a bias is a function of the distance alone, "
                    f"which is {query} - {key} or n; give a parameter or a length another name",
                )
        self.tokens = found

    @staticmethod
    def _absolute(before: list[Token], after: list[Token]) -> bool:
        """Whether the bars or the call enclose nothing else."""
        left = [value for _, value, _ in before[-2:]]
        right = [value for _, value, _ in after]
        if left[-1:] == ["|"]:
            return right[:1] == ["|"]
        called = left[:1] in (["abs"], ["Abs"]) or right[1:] in ([".", "abs"], [".", "Abs"])
        return left[-1:] == ["("] and right[:1] == [")"] and called

    @staticmethod
    def _stands_alone(before: list[Token], after: list[Token]) -> bool:
        """Whether no operator that binds closer is next to `i - j`."""
        left = before[-1][1] if before else "("
        right = after[0][1] if after else ")"
        compared = ("<", "<=", ">", ">=", "==", "!=", ",", "|")
        return left in ("(", "{", "=", "+", *compared) and right in (")", "}", "+", "-", *compared)

    def fail(self, column: int, what: str) -> NoReturn:
        """Raise InputError with the text around a column."""
        begin = max(0, column - 30)
        shown = self.text[begin : column + 30]
        shown = ("..." if begin else "") + shown + ("..." if column + 30 < len(self.text) else "")
        raise InputError(f"formula {quoted(shown)}, column {column + 1}: {what}")

    @property
    def token(self) -> Token:
        """The next symbol."""
        return self.tokens[self.position]

    @property
    def column(self) -> int:
        """Where the next symbol stands."""
        return self.token[2]

    def ahead(self, count: int) -> list[str]:
        """The texts of the next symbols."""
        return [value for _, value, _ in self.tokens[self.position : self.position + count]]

    def next(self) -> Token:
        """The next symbol, read."""
        token = self.token
        self.position = min(self.position + 1, len(self.tokens) - 1)  # the end stays the end
        return token

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
