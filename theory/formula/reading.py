r"""A text being read: its symbols, the nodes built so far, how deep they are nested.

People spell what the grammar reads in many ways: signs of print, LaTeX, prefixes of libraries.
`spelled` cuts a text into tokens, each with the column where it begins in the given text. What only
looks different (`²`, `\cdot`, `np.`) becomes what the grammar knows; `spelled` decides no meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NoReturn

from sympy import Expr

from farfield.theory.algebra.door import supervised
from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.answers.errors import InputError
from farfield.theory.formula.bounded_nodes import MAX_DEPTH, MAX_TOKENS, bounded
from farfield.theory.formula.vocabulary import CALLED, RESERVED
from farfield.theory.functions.record import Refused, spellings
from farfield.theory.relations import BY_SIGN, SIX

Token = tuple[str, str, int]  # its kind, its text, its column

PREFIXES = (
    "np",
    "numpy",
    "math",
    "torch",
    "jnp",
    "jax",
    "sp",
    "sympy",
    "scipy",
    "special",
    "nn",
    "functional",
    "F",
    "cupy",
    "cp",
    "tf",
)
GREEK = (
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "zeta",
    "eta",
    "theta",
    "kappa",
    "lambda",
    "mu",
    "nu",
    "xi",
    "rho",
    "sigma",
    "tau",
    "phi",
    "chi",
    "psi",
    "omega",
)

POSITIONS = (("i", "j"), ("m", "n"), ("q", "k"), ("q_idx", "kv_idx"), ("t", "s"))
"""What a query's position and its key's are called; their difference is the distance."""

_LETTERS = dict(zip("αβγδεζηθκλμνξρστφχψω", GREEK, strict=True)) | {"ϵ": "epsilon", "ϕ": "phi"}
_SIGNS = {
    "\u2212": "-",
    "\u2013": "-",
    "×": "*",
    "·": "*",
    "⋅": "*",
    "∗": "*",
    "÷": "/",
    **{relation.shown: relation.sign for relation in SIX if not relation.shown.isascii()},
    "⌊": "floor(",
    "⌋": ")",
    "⌈": "ceiling(",
    "⌉": ")",
    "‖": "|",
    "∣": "|",
}
_NAMES = {"Γ": "Gamma", "ζ": "zeta", "π": "pi", "∞": "oo", "√": "sqrt", "∛": "cbrt"}
_POWERS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ", "0123456789-+n", strict=True))
_INDICES = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
_PARTS = {"½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅛": "1/8"}

_TEX_SIGNS = {
    "cdot": "*",
    "times": "*",
    "ast": "*",
    "div": "/",
    **{relation.name.lower(): relation.sign for relation in SIX if relation.tex[0] == "\\"},
    "leq": "<=",
    "geq": ">=",
    "neq": "!=",
    "lvert": "|",
    "rvert": "|",
    "vert": "|",
    "lVert": "|",
    "rVert": "|",
    "lbrace": "(",
    "rbrace": ")",
    "lfloor": "floor(",
    "rfloor": ")",
    "lceil": "ceiling(",
    "rceil": ")",
    "land": "&",
    "lor": "|",
}
_TEX_NAMES = {
    "infty": "oo",
    "dfrac": "frac",
    "tfrac": "frac",
    "cfrac": "frac",
    "varepsilon": "epsilon",
    "varphi": "phi",
    "bmod": "mod",
    "arcsin": "asin",
    "arctan": "atan",
}
_TEX_SILENT = {
    "left",
    "right",
    "big",
    "Big",
    "bigl",
    "bigr",
    "Bigl",
    "Bigr",
    "displaystyle",
    "quad",
    "qquad",
    "limits",
    "nolimits",
}
_TEX_ARGUMENT = {"operatorname", "mathrm", "text", "textrm", "mathit", "mathbf", "mbox"}

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<op>\*\*|//|<=|>=|==|!=|[-+*/^(),|<>&~%!=.{}\[\]:]))"
)
_COMMENT = re.compile(r"(?<!\S)#[^\n]*")
_HINTS = {
    ";": "; several heads stand in brackets, [-n/4; 0 x7]",
    "#": "; a comment begins with # behind a blank, and goes to the end of its line",
}
_DOTTED = re.compile(rf"(?:(?:{'|'.join(PREFIXES)})\s*\.\s*)+(?=[A-Za-z])")
_TEX = re.compile(r"\\(?:([A-Za-z]+)|(.))", re.DOTALL)
_WORD = re.compile(r"[A-Za-z]{2,}")
_TEX_NAME = re.compile(r"[A-Za-z](?:_?\d+|_\{\s*[A-Za-z0-9]+\s*\}|_[A-Za-z0-9])?")
_INFINITE = re.compile(r"float\s*\(\s*(['\"])\s*([+-]?)inf(?:inity)?\s*\1\s*\)", re.IGNORECASE)
_LOG_TO = re.compile(r"\\log\s*_\s*(?:\{\s*)?(2|10)\b\s*\}?")
_HEADING = re.compile(
    r"""[\s$]*(?:
        lambda\s+(?P<of>[^:=]*):
      | def\s+\w+\s*\((?P<given>[^)]*)\)\s*(?:->[^:]*)?:\s*return\b
      | (?:\\(?:text|mathrm|operatorname)\s*\{[^{}]*\}|\\?[A-Za-z]+)
        (?:_\{(?P<below>[^{}]*)\}|_?\w*)
        \s*(?:[(\[](?P<at>[^()\[\]=<>]*)[)\]])?\s*(?<![<>=!])=(?!=)
    )""",
    re.VERBOSE,
)
_ENVIRONMENT = re.compile(r"\\(begin|end)\s*\{\s*(cases|dcases|aligned|split)\s*\}")


def is_latex(text: str) -> bool:
    r"""Whether a text is meant as LaTeX.

    >>> is_latex(r"-\log(1+n)"), is_latex("-log(1+n)")
    (True, False)
    """
    return "\\" in text or text.strip().startswith("$")


def uncommented(text: str) -> str:
    """A text with blanks for its comments: from a `#` behind a blank to the end of the line.

    >>> uncommented("-n # slope")
    '-n        '
    """
    return _COMMENT.sub(lambda found: " " * len(found.group()), text)


def distance_of(text: str) -> str:
    """What the heading of a text, as `p(x) =` or `lambda x:`, calls the distance; `n` without one.

    >>> distance_of("f(x) = -x"), distance_of("lambda t: -t"), distance_of("b_{i-j} = -|i-j|")
    ('x', 't', 'n')
    """
    found = _HEADING.match(text)
    said = next((g for g in found.groups() if g), "n") if found else "n"
    name = said.partition(":")[0].strip()
    said_of = {*re.findall(r"[A-Za-z_]+", said)}
    positions = any(said_of in ({q, k}, {q + k}) for q, k in POSITIONS)
    return "n" if positions else name


def spelled(text: str, words: Collection[str] = ()) -> Iterator[Token]:
    """The tokens of a text after its heading; kind `bad` for characters that no formula has.

    In LaTeX letters side by side are a product, but for those that are one of the `words`.

    >>> [value for _, value, _ in spelled("½n² − np.log1p(n)")]
    ['(', '1', '/', '2', ')', 'n', '^', '(', '2', ')', '-', 'log1p', '(', 'n', ')']
    """
    latex = is_latex(text)
    heading = _HEADING.match(text)
    at = heading.end() if heading else 0
    last = len(text.rstrip(" \t\n,;"))
    while at < last:
        if text[at].isspace() or (latex and text[at] in "$~"):
            at += 1
            continue
        if found := _INFINITE.match(text, at):
            sign = "-" if found.group(2) == "-" else "+"
            yield from (("op", s, at) for s in ("(", sign))
            yield from (("name", "oo", at), ("op", ")", at))
            at = found.end()
        elif latex and text[at] == "\\":
            begin, at = at, _end_of_tex(text, at)
            yield from _tex(text[begin:at], begin, words)
        elif latex and (match := _WORD.match(text, at)) and match.group() in words:
            yield ("name", match.group(), at)
            at = match.end()
        elif latex and (match := _TEX_NAME.match(text, at)):
            yield ("name", re.sub(r"[{}\s]", "", match.group()).replace("_", ""), at)
            at = match.end()
        elif prefix := _DOTTED.match(text, at):
            at = prefix.end()
        elif text[at] in _POWERS:
            begin = at
            while at < len(text) and text[at] in _POWERS:
                at += 1
            inner = "".join(_POWERS[c] for c in text[begin:at])
            yield from _plain(f"^({inner})", begin)
        elif text[at] in _PARTS:
            yield from _plain(f"({_PARTS[text[at]]})", at)
            at += 1
        elif text[at] in _SIGNS or text[at] in _NAMES or text[at] in _LETTERS:
            sign = text[at]
            index = at + 1
            while index < len(text) and text[index] in _INDICES:
                index += 1
            digits = "".join(_INDICES[c] for c in text[at + 1 : index])
            name = _SIGNS.get(sign) or _NAMES.get(sign) or _LETTERS[sign] + digits
            yield from _plain(name, at)
            at = index if sign in _LETTERS else at + 1
        else:
            match = _TOKEN.match(text, at)
            if match is None:
                yield ("bad", text[at], at)
                return
            kind = match.lastgroup or ""
            value, end = match.group(kind), match.end()
            while kind == "name" and end < len(text) and text[end] in _INDICES:
                value, end = value + _INDICES[text[end]], end + 1
            yield (kind, value, match.start(kind))
            at = end


def _plain(text: str, column: int) -> Iterator[Token]:
    """The tokens of a replacement, all at the column of what it replaces."""
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        yield (kind, match.group(kind), column)


def _end_of_tex(text: str, at: int) -> int:
    """Where a command ends, with the argument of those that only set type."""
    if match := _ENVIRONMENT.match(text, at) or _LOG_TO.match(text, at):
        return match.end()
    match = _TEX.match(text, at)
    if match is None:
        return at + 1
    if match.group(1) in _TEX_ARGUMENT and (
        argument := re.compile(r"\s*\{[^{}]*\}").match(text, match.end())
    ):
        return argument.end()
    return match.end()


def _tex(command: str, column: int, words: Collection[str]) -> Iterator[Token]:
    """The tokens of one command."""
    if environment := _ENVIRONMENT.match(command):
        if environment.group(2).endswith("cases"):
            yield ("tex", f"{environment.group(1)} cases", column)
        return
    if base := _LOG_TO.match(command):
        yield ("name", f"log{base.group(1)}", column)
        return
    match = _TEX.match(command)
    name = match.group(1) if match else None
    if name is None:  # \, \; \! \{ \\ and the like
        sign = command[1:2]
        if sign == "\\":
            yield ("tex", "row", column)
        elif sign and sign in "{}|":
            yield ("op", {"{": "(", "}": ")", "|": "|"}[sign], column)
        elif not sign or sign not in ",;:! \n>":
            yield ("bad", command, column)
    elif name in _TEX_SILENT:
        return
    elif name in _TEX_ARGUMENT:
        inner = command[command.find("{") + 1 : command.rfind("}")].strip()
        words = re.findall(r"[A-Za-z]+", inner)
        yield from (("name", word, column) for word in words)
    elif name in _TEX_SIGNS:
        yield from _plain(_TEX_SIGNS[name], column)
    else:
        name = _TEX_NAMES.get(name, name)
        known = name in words or name in GREEK or name in _TEX_NAMES.values()
        yield ("name" if known else "bad", name if known else command, column)


# -- symbols --------------------------------------------------------------------------------------


def quoted(text: str) -> str:
    r"""A piece of a formula between quotes, the backslashes of LaTeX as they are.

    >>> print(quoted(r"-10\% n"))
    '-10\% n'
    """
    return repr(text).replace("\\\\", "\\")


class Tokens:
    """A text as symbols that are read one by one."""

    def __init__(self, text: str, domains: Mapping[str, str]) -> None:
        text = uncommented(text)
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
                hint = _HINTS.get(value, "")
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
        compared = (*BY_SIGN, ",", "|")
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


# -- nodes ----------------------------------------------------------------------------------------


class Reading(Tokens):
    """What the rules of the grammar share; what raises here is the grammar's own."""

    def __init__(self, text: str, domains: Mapping[str, str]) -> None:
        super().__init__(text, domains)
        self.bound: dict[str, Expr] = {}  # the indices of the sums around
        self.depth = 0
        self.bars = 0
        self.sum_terms = 0

    def sum(self) -> Expr:
        """A sum of products, as the grammar has it."""
        raise NotImplementedError

    def choice(self) -> Expr:
        """A sum, or `value if condition else value`."""
        raise NotImplementedError

    def bare(self) -> Expr:
        """An operand without sign and power."""
        raise NotImplementedError

    def exponent(self) -> Expr:
        """What follows `^`."""
        raise NotImplementedError

    def parameter(self, name: str, column: int) -> Expr:
        """A name that is no function, as a symbol of its domain."""
        raise NotImplementedError

    def build(self, column: int, make: Callable[..., Expr], *args: Any) -> Expr:
        """A node, or an error with its place."""
        try:
            return bounded(supervised(make, *args))
        except Refused as wrong:
            self.fail(column, str(wrong))
        except Undecided:
            self.fail(column, "this part cannot be evaluated")

    def within_bars(self, part: Callable[[], Any]) -> Any:
        """A part in which `|` ends something, so that it begins no factor."""
        self.bars += 1
        value = part()
        self.bars -= 1
        return value

    def apart(self, part: Callable[[], Any]) -> Any:
        """A part in brackets, in which `|` may begin a factor again."""
        bars, self.bars = self.bars, 0
        value = part()
        self.bars = bars
        return value

    def nested(self, part: Callable[[], Any]) -> Any:
        """A part one level deeper."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(self.column, f"the formula is nested deeper than {MAX_DEPTH}")
        value = part()
        self.depth -= 1
        return value
