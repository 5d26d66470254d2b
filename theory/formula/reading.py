r"""Tokens of a text, its heading (`p(x) =`, `lambda q, k:`), columns and depth as it is read.

People spell what the grammar reads in many ways: signs of print, LaTeX, prefixes of libraries.
`spelled` cuts a text into tokens, each with the column where it begins in the given text. What only
looks different (`²`, `\cdot`, `np.`) becomes what the grammar knows; `spelled` decides no meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NoReturn, TypeVar

from sympy import Expr

from farfield.theory.algebra.door import supervised
from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.answers.errors import InputError
from farfield.theory.formula.bounded_nodes import MAX_DEPTH, MAX_TOKENS, bounded
from farfield.theory.formula.vocabulary import CALLED, RESERVED
from farfield.theory.functions.record import SPELLINGS, Refused
from farfield.theory.relations import SIX

R = TypeVar("R")
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
    "self",
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

_INVISIBLE = dict.fromkeys(
    map(ord, "\u00ad\u200b\u200c\u200d\u2060\u2061\u2062\u2063\u2064\ufeff"), " "
)
"""What HTML, KaTeX and PDF leave between signs."""
_LETTERS = dict(zip("αβγδεζηθκλμνξρστφχψω", GREEK, strict=True)) | {
    "ϵ": "epsilon",
    "ϕ": "phi",
    "Δ": "Delta",
    "∆": "Delta",
}
_SIGNS = {
    "\u2212": "-",
    "\u2013": "-",
    "×": "*",
    "·": "*",
    "⋅": "*",
    "∗": "*",
    "÷": "/",
    **{relation.shown: relation.symbol for relation in SIX if not relation.shown.isascii()},
    "⌊": "floor(",
    "⌋": ")",
    "⌈": "ceiling(",
    "⌉": ")",
    "‖": "|",
    "∣": "|",
    "𝟙": " Indicator ",
    "∈": " in ",
}
_NAMES = {"Γ": "Gamma", "ζ": "zeta", "π": "pi", "∞": "oo", "√": "sqrt", "∛": "cbrt"}
_POWERS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ", "0123456789-+n", strict=True))
_INDICES = dict(zip("₀₁₂₃₄₅₆₇₈₉ₕᵢⱼₖₗₘₙ", "0123456789hijklmn", strict=True))
_PARTS = {"½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅛": "1/8"}

_TEX_SIGNS = {
    "cdot": "*",
    "times": "*",
    "ast": "*",
    "div": "/",
    **{relation.name.lower(): relation.symbol for relation in SIX if relation.tex[0] == "\\"},
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
    "Delta": "Delta",
    "sum": "Sum",
    "prod": "Product",
    "in": "in",
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
_TEX_ARGUMENT = (
    "operatorname",
    "mathrm",
    "text",
    "textrm",
    "mathit",
    "mathbf",
    "mbox",
    "boldsymbol",
    "bm",
)
_INDEX = r"_(?:\{\s*[A-Za-z0-9]+\s*\}|[A-Za-z0-9])"
_RAISED = r"\^\{\s*\(\s*[A-Za-z]\s*\)\s*\}"  # m^{(h)}: of head h, no power
_ESCAPED = {"{": "(", "}": ")", "|": "|", **dict.fromkeys(",;:! \n>", "")}

_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_WORD = r"[A-Za-z_][A-Za-z0-9_]*"
_OP = r"\*\*|//|<=|>=|==|!=|[-+*/^(),|<>&~%!=.{}\[\]:]"
_TOKEN = re.compile(rf"\s*(?:(?P<number>{_NUMBER})|(?P<name>{_WORD})|(?P<op>{_OP}))")
_COMMENT = re.compile(r"(?<!\S)#[^\n]*")
_HINTS = {
    ";": "; several heads need brackets, [-n/4; 0 x7]",
    "#": "; a comment begins with # behind a blank, and goes to the end of its line",
}
_LATEX_WORD = re.compile(r"[A-Za-z]{2,}")
_HEADING = re.compile(  # possessive: a text of nothing else would be tried at every length
    r"""[\s$]*(?:
        lambda\s++(?P<of>[^:=]*):
      | def\s++\w++\s*+\((?P<given>[^)]*)\)\s*+(?:->[^:]*)?:\s*+return\b
      | (?:\\(?:text|mathrm|mathbf|boldsymbol|bm|operatorname)\s*+\{[^{}]*\}|\\?[A-Za-z]++)
        (?:_\{(?P<below>[^{}]*)\}|_?\w*+)
        \s*+(?:[(\[](?P<at>[^()\[\]=<>]*)[)\]]\s*+)?(?<![<>=!])=(?!=)
    )""",
    re.VERBOSE,
)
_COMMANDS = {
    "environment": r"\\(?:begin|end)\s*\{\s*(?:cases|dcases|aligned|split)\s*\}",
    "log_to": r"\\log\s*_\s*(?:\{\s*)?(?:2|10|e)\b\s*\}?",
    "indicator": r"\\(?:mathbb|mathbf|mathds)\s*\{\s*1\s*\}",
    "argument": rf"\\(?:{'|'.join(_TEX_ARGUMENT)})\s*\{{[^{{}}]*\}}(?:{_INDEX}|{_RAISED})?",
    "command": rf"\\(?:var)?(?:{'|'.join(GREEK)})\s*(?:{_INDEX}|{_RAISED})|\\[A-Za-z]+",
    "escaped": r"\\[\s\S]?",
}
"""What begins with a backslash, by kind."""
_WRITTEN: dict[str, tuple[str, Callable[[str], str]]] = {
    "blank": (r"\s+", lambda _: ""),
    "infinite": (
        r"(?i:float\s*\(\s*(?P<quote>['\"])\s*[+-]?inf(?:inity)?\s*(?P=quote)\s*\))",
        lambda part: f"({'-' if '-' in part else '+'}oo)",
    ),
    "typeset": (
        rf"[A-Za-z](?:_?\d+|{_INDEX}|[{''.join(_INDICES)}]+|(?<![en]){_RAISED})?",
        lambda part: indexed(part[0], part[1:]),
    ),
    "dotted": (rf"(?:(?:{'|'.join(PREFIXES)})\s*\.\s*)+(?=[A-Za-z])", lambda _: ""),
    "raised": (
        f"[{''.join(_POWERS)}]+",
        lambda part: f"^({''.join(_POWERS[c] for c in part)})",
    ),
    "part": (f"[{''.join(_PARTS)}]", lambda part: f"({_PARTS[part]})"),
    "sign": (f"[{''.join([*_SIGNS, *_NAMES])}]", lambda part: (_SIGNS | _NAMES)[part]),
    "letter": (
        rf"[{''.join(_LETTERS)}](?:[{''.join(_INDICES)}]+|{_INDEX}|_\w+)?",
        lambda part: indexed(_LETTERS[part[0]], part[1:]),
    ),
    "number": (_NUMBER, str),
    "word": (
        rf"{_WORD}(?:(?<!\b[en]){_RAISED}|[{''.join(_INDICES)}]*)",
        lambda part: indexed(*re.findall(r"^[A-Za-z0-9_]+|.*$", part)[:2]),
    ),
    "op": (_OP, str),
}
"""What people write, by kind: how it looks, and its text in signs of the grammar."""


def indexed(base: str, index: str) -> str:
    """The one name of a parameter with an index, however that is printed.

    >>> indexed("r", "_{1}"), indexed("m", "_h"), indexed("m", "^{(h)}"), indexed("beta", "₂")
    ('r1', 'm_h', 'm_h', 'beta2')
    """
    inner = re.sub(r"[{}()^\s_]", "", "".join(_INDICES.get(c, c) for c in index))
    return f"{base}_{inner}" if inner and not inner.isdigit() else base + inner


def canonical(name: str) -> str:
    """A name as the reader has it: `r_1` is `r1`, as it is in print.

    >>> canonical("r_1"), canonical("m_h"), canonical("log_2")
    ('r1', 'm_h', 'log_2')
    """
    match = re.fullmatch(r"([A-Za-z]+)_(\d+)", name)
    return name if match is None or match[1] in ("e", "E", *SPELLINGS) else match[1] + match[2]


def _lexer(patterns: Mapping[str, str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in patterns.items()))


_LOOKS = {kind: look for kind, (look, _) in _WRITTEN.items()}
_LATEX = _lexer({**_COMMANDS, **_LOOKS, "blank": r"[\s$~]+"})
_PLAIN = _lexer({kind: look for kind, look in _LOOKS.items() if kind != "typeset"})


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
    return _COMMENT.sub(lambda match: " " * len(match.group()), text)


def distance_of(text: str) -> str:
    """What the heading of a text, as `p(x) =` or `lambda x:`, calls the distance; `n` without one.

    >>> distance_of("f(x) = -x"), distance_of("lambda t: -t"), distance_of("b_{i-j} = -|i-j|")
    ('x', 't', 'n')
    """
    name = _said_of(text).partition(":")[0].strip()
    return "n" if positions_of(text) else name


def _said_of(text: str) -> str:
    match = _HEADING.match(text)
    return next((g for g in match.groups() if g), "n") if match else "n"


def positions_of(text: str) -> tuple[str, str] | None:
    """The names of query and key that a heading says, as `b_{m,n} =` or `lambda q, k:`.

    >>> positions_of("b_{m,n} = -s(m-n)"), positions_of("-s(m-n)")
    (('m', 'n'), None)
    """
    words = {*re.findall(r"[A-Za-z_]+", _said_of(text))}
    return next(((q, k) for q, k in POSITIONS if words in ({q, k}, {q + k})), None)


def settings(text: str) -> dict[str, str]:
    """The values of a text that is no formula but one NAME=VALUE, or several.

    >>> settings("window=4096"), settings("a=3, b = 1/2"), settings("p = -n"), settings("p(n) = 1")
    ({'window': '4096'}, {'a': '3', 'b': '1/2'}, {'p': '-n'}, {})
    """
    parts = re.split(r"[\s,;]+(?=[A-Za-z_]\w*\s*=(?!=))", text.strip())
    value = "[^=]+?" if len(parts) == 1 else "[^()={}]+?"  # no argument by name
    pairs = [re.fullmatch(rf"([A-Za-z_]\w*)\s*=(?!=)\s*({value})[\s,;]*", part) for part in parts]
    return {pair[1]: pair[2] for pair in pairs if pair} if all(pairs) else {}


def spelled(text: str, words: Collection[str] = ()) -> Iterator[Token]:
    """The tokens of a text after its heading; kind `bad` for characters that no formula has.

    In LaTeX letters side by side are a product, but for those that are one of the `words`.

    >>> [value for _, value, _ in spelled("½n² − np.log1p(n)")]
    ['(', '1', '/', '2', ')', 'n', '^', '(', '2', ')', '-', 'log1p', '(', 'n', ')']
    """
    latex = is_latex(text)
    heading = _HEADING.match(text)
    place = heading.end() if heading else 0
    last = len(text.rstrip(" \t\n,;"))
    while place < last:
        match = _LATEX_WORD.match(text, place) if latex else None
        if match and match.group() in words:
            yield ("name", match.group(), place)
            place = match.end()
            continue
        match = (_LATEX if latex else _PLAIN).match(text, place)
        if match is None:
            yield ("bad", text[place], place)
            return
        kind, value = str(match.lastgroup), match.group()
        if kind in _COMMANDS:
            kind, value = _command(kind, value, words)
        else:
            kind, value = "", _WRITTEN[kind][1](value)
        if kind:
            yield (kind, value, place)
        else:
            yield from (
                (t.lastgroup or "", t[t.lastgroup or 0], place) for t in _TOKEN.finditer(value)
            )
        place = match.end()


def _command(kind: str, command: str, words: Collection[str]) -> tuple[str, str]:
    """The kind and the text of the token that a command is; the kind is empty where the text is
    cut into tokens again."""
    if kind == "environment":
        where, what = re.findall("[a-z]+", command)
        return ("tex", f"{where} cases") if what.endswith("cases") else ("", "")
    if kind == "log_to":
        return "", f"log{''.join(filter(str.isdigit, command))}"
    if kind == "indicator":
        return "name", "Indicator"
    if kind == "argument":
        inner, _, index = command.partition("{")[2].partition("}")
        return "", indexed(" ".join(re.findall("[A-Za-z]+", inner)), index)
    name, _, index = command[1:].partition("_" if "_" in command else "^")
    name = name.strip()
    if kind == "escaped":
        name = command[1:]
        if name == "\\":
            return "tex", "row"
        return ("", _ESCAPED[name]) if name in _ESCAPED else ("bad", command)
    if name in _TEX_SILENT or name in _TEX_SIGNS:
        return "", _TEX_SIGNS.get(name, "")
    name = _TEX_NAMES.get(name, name)
    named = name in words or name in GREEK or name in _TEX_NAMES.values()
    return ("name", indexed(name, index)) if named else ("bad", command)


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
        text = uncommented(text).translate(_INVISIBLE)
        self.text, self.domains = text, domains
        self.distance = distance_of(text)
        if not self.distance.isidentifier():
            self.fail(0, f"{self.distance[:20]!r} is no name for the distance; one is accepted")
        self.latex = is_latex(text)
        self.braces = self.latex or "{" in text
        self.position = 0
        self.tokens: list[Token] = []
        written: dict[str, str] = {}
        for kind, value, place in spelled(text, {*SPELLINGS, *CALLED, *RESERVED}):
            if kind == "bad":
                hint = _HINTS.get(value, "")
                self.fail(place, f"{quoted(value[:20])} is not part of a formula{hint}")
            name = canonical(value) if kind == "name" and value not in domains else value
            if written.setdefault(name, value) != value and not self.latex:
                self.fail(place, f"{written[name]} and {value} are one name; give one another name")
            self.tokens.append((kind, name, place))
            if len(self.tokens) > MAX_TOKENS:
                raise InputError(f"the formula has more than {MAX_TOKENS} symbols")
        names = {value for kind, value, _ in self.tokens if kind == "name"}
        if "Delta" in names and not {self.distance, "Delta"} & {*domains, *(names - {"Delta"})}:
            self.distance = "Delta"
        self.tokens.append(("end", "", len(text.rstrip())))

    def fail(self, column: int, what: str) -> NoReturn:
        """Raise InputError with the text around a column."""
        begin = max(0, column - 30)
        shown = self.text[begin : column + 30]
        shown = ("..." if begin else "") + shown + ("..." if column + 30 < len(self.text) else "")
        line = " ".join(what.splitlines())  # a formula may have several
        raise InputError(f"formula {quoted(shown)}, column {column + 1}: {line}")

    @property
    def token(self) -> Token:
        """The next symbol."""
        return self.tokens[self.position]

    @property
    def column(self) -> int:
        """Where the next symbol stands."""
        return self.tokens[self.position][2]

    def ahead(self, count: int) -> list[str]:
        """The texts of the next symbols."""
        return [value for _, value, _ in self.tokens[self.position : self.position + count]]

    def next(self) -> Token:
        """The next symbol, read."""
        token = self.tokens[self.position]
        self.position = min(self.position + 1, len(self.tokens) - 1)  # the end stays the end
        return token

    def begins(self, op: str) -> bool:
        """Whether this operator comes next."""
        return self.tokens[self.position][:2] == ("op", op)

    def accept(self, *ops: str) -> str | None:
        """Read one of these operators, if it comes next."""
        kind, value, _ = self.tokens[self.position]
        if kind == "op" and value in ops:
            self.position += 1
            return value
        return None

    def accept_name(self, name: str) -> bool:
        """Read this name, if it comes next."""
        accepted = self.tokens[self.position][:2] == ("name", name)
        self.position += accepted
        return accepted

    def expect(self, op: str) -> None:
        """Read this operator; nothing else may come next."""
        if self.accept(op) is None:
            kind, value, column = self.token
            reason = "the end of the formula" if kind == "end" else repr(value)
            self.fail(column, f"expected {op!r}, found {reason}")


# -- nodes ----------------------------------------------------------------------------------------


class Reading(Tokens):
    """What the rules of the grammar share, and those of the grammar's own rules that others use: a
    sum of products, a choice, an operand without sign and power, what follows `^`, a parameter."""

    sum: Callable[[], Expr]
    product: Callable[[], Expr]
    choice: Callable[[], Expr]
    bare: Callable[[], Expr]
    exponent: Callable[[], Expr]
    parameter: Callable[[str, int], Expr]

    def __init__(self, text: str, domains: Mapping[str, str]) -> None:
        super().__init__(text, domains)
        self.bound: dict[str, Expr] = {}  # the indices of the sums around
        self.depth = 0
        self.bars = 0
        self.sum_terms = 0

    def build(self, column: int, make: Callable[..., Expr], *args: object) -> Expr:
        """A node, or an error with its place."""
        try:
            return bounded(supervised(make, *args))
        except Refused as wrong:
            self.fail(column, str(wrong))
        except Undecided:
            self.fail(column, "this part cannot be evaluated")

    def within_bars(self, part: Callable[[], R]) -> R:
        """A part in which `|` ends something, so that it begins no factor."""
        self.bars += 1
        value = part()
        self.bars -= 1
        return value

    def apart(self, part: Callable[[], R]) -> R:
        """A part in brackets, in which `|` may begin a factor again."""
        bars, self.bars = self.bars, 0
        value = part()
        self.bars = bars
        return value

    def nested(self, part: Callable[[], R]) -> R:
        """A part one level deeper."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(self.column, f"the formula is nested deeper than {MAX_DEPTH}")
        value = part()
        self.depth -= 1
        return value
