"""Expressions as output: Unicode, ASCII, LaTeX, MathML, HTML; lists and shortened text.

A text is a tuple of words, of `Math` and of `StyledWord`s. `words` reads it from a template:
backticks hold mathematics in the spelling of a terminal, braces the values.

    words("As `n -> oo`, `rho_0 = -p = {rho}`.", rho=2 * sympy.log(n))

Each medium has one printer here; nothing is read back from what a printer wrote.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partialmethod
from html import escape
from typing import Any

import sympy
from flint import fmpz
from sympy import Basic, S
from sympy.printing.latex import LatexPrinter
from sympy.printing.str import StrPrinter

from farfield.theory.relations import SIX

LONG = 100


@dataclass(frozen=True)
class Math:
    """Mathematics: tokens of a terminal's spelling, and expressions."""

    parts: tuple[str | Basic, ...]


@dataclass(frozen=True)
class StyledWord:
    """A word with a role, which pages set off by a style.

    Args:
        word: as it is read.
        kind: the role: `verdict`, `label`, `status`, `code`, `strong`; `command`,
            which computes its neighbour;
            `to ADDRESS`, a link.
    """

    word: str
    kind: str


@dataclass(frozen=True)
class Latex:
    """Mathematics that is known in LaTeX alone; `said` is its plain text, read off it if empty."""

    source: str
    said: str = ""


Text = tuple[str | Math | StyledWord | Latex, ...]

_TOKEN = re.compile(r"[A-Za-z]+|\d+(?:\.\d+)?|->|<=|>=|!=|==|\.\.\.|\S|\s+")
_PLACE = re.compile(r"\{(\w+)\}")


def words(template: str, /, **values: object) -> Text:
    """A text from a template: backticks hold mathematics, braces the names of values.

    A value may be an expression, a text, or whatever `as_text` takes.

    >>> terminal(words("{p} falls as `n -> oo`.", p=-sympy.log(1 + sympy.Symbol("n"))))
    '−log(n + 1) falls as n → ∞.'
    """
    parts: list[str | Math | StyledWord | Latex] = []
    for k, part in enumerate(template.split("`")):
        if k % 2:
            parts.append(Math(tuple(_tokens(part, values))))
            continue
        for j, piece in enumerate(_PLACE.split(part)):
            if j % 2:
                parts += as_text(values[piece])
            elif piece:
                parts.append(piece)
    return tuple(parts)


def as_text(value: object) -> Text:
    """A value as a text: an expression as mathematics, a member of an enumeration as a term, a
    text as it is, all else as `str` says."""
    if isinstance(value, tuple):
        return value
    if isinstance(value, (Math, StyledWord, Latex)):
        return (value,)
    if isinstance(value, enum.Enum):
        return (StyledWord(str(value.value).replace("_", " "), type(value).__name__.lower()),)
    if isinstance(value, Basic):
        return (Math((value,)),)
    return (str(value),)


def _tokens(notation: str, values: dict[str, object]) -> Iterator[str | Basic]:
    """The words and signs of a notation, each placeholder replaced."""
    for k, piece in enumerate(_PLACE.split(notation)):
        if k % 2 == 0:
            yield from _TOKEN.findall(piece)
            continue
        value = values[piece]
        if isinstance(value, Basic):
            yield value
            continue
        for part in as_text(value):
            yield from part.parts if isinstance(part, Math) else _TOKEN.findall(_plain(part, False))


def code(text: str) -> Text:
    """A text in which backticks hold code instead of mathematics.

    >>> terminal(code("run `farfield check -n`"))
    'run farfield check -n'
    """
    parts = enumerate(text.split("`"))
    return tuple(StyledWord(part, "code") if k % 2 else part for k, part in parts if part)


_GREEK = {
    "alpha": ("α", r"\alpha"),
    "beta": ("β", r"\beta"),
    "gamma": ("γ", r"\gamma"),
    "delta": ("δ", r"\delta"),
    "eps": ("ε", r"\varepsilon"),
    "zeta": ("ζ", r"\zeta"),
    "eta": ("η", r"\eta"),
    "theta": ("θ", r"\theta"),
    "lambda": ("λ", r"\lambda"),
    "mu": ("μ", r"\mu"),
    "pi": ("π", r"\pi"),
    "rho": ("ρ", r"\rho"),
    "sigma": ("σ", r"\sigma"),
    "tau": ("τ", r"\tau"),
    "phi": ("φ", r"\phi"),
    "psi": ("ψ", r"\psi"),
    "omega": ("ω", r"\omega"),
}
_SIGNS = {
    "->": ("→", r"\to"),
    **{
        relation.symbol: (relation.shown, relation.tex)
        for relation in SIX
        if relation.symbol != "=="
    },
    "oo": ("∞", r"\infty"),
    "-": ("−", "-"),
    "*": ("·", r"\,"),
    "sum": ("Σ", r"\sum"),
    "...": ("…", r"\ldots"),
}
_SUBSCRIPT = str.maketrans("0123456789+-", "₀₁₂₃₄₅₆₇₈₉₊₋")
SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_FUNCTIONS = ("log", "exp", "lim", "inf", "min", "max", "sin", "cos", "mod", "floor")


# -- terminal -------------------------------------------------------------------------------------


def terminal(text: Text, *, unicode: bool = True) -> str:
    """A text for a terminal, in Unicode or in ASCII alone.

    >>> terminal(words("`b_n <= n^-2`"), unicode=False)
    'b_n <= n^-2'
    """
    return "".join(_plain(part, unicode) for part in text)


def _plain(part: str | Math | StyledWord | Latex, unicode: bool) -> str:
    """A part of a text as characters alone."""
    match part:
        case Math():
            return _math_line(part, unicode)
        case StyledWord(word, _):
            return word
        case Latex(source, said):
            return said or _on_a_line(source, unicode)
    return part


def _on_a_line(source: str, unicode: bool) -> str:
    r"""LaTeX of fractions, roots and powers as it is written on one line.

    >>> _on_a_line(r"\sim \left(\frac{2}{3\, B\, \varepsilon}\right)^{1/2}", True)
    '∼ (2/(3·B·ε))^(1/2)'
    """
    before = ""
    while source != before:  # from the innermost braces outwards
        before = source
        source = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", _quotient, source)
        source = re.sub(r"\\sqrt\{([^{}]*)\}", r"sqrt(\1)", source)
        source = re.sub(r"\^\{([^{}]*)\}", r"^(\1)", source)
    for command, (sign, ascii_sign) in _COMMANDS.items():
        source = source.replace(command, sign if unicode else ascii_sign)
    return " ".join(source.split())


def _quotient(match: re.Match[str]) -> str:
    """A fraction of LaTeX on one line, in brackets where more than a word stands above or below."""
    above, below = (x if re.fullmatch(r"\w+", x) else f"({x})" for x in match.groups())
    return f"{above}/{below}"


_COMMANDS = {
    r"\left\lfloor": ("⌊", "floor("),
    r"\right\rfloor": ("⌋", ")"),
    r"\left": ("", ""),
    r"\right": ("", ""),
    r"\, ": ("·", "*"),
    r"\,": ("·", "*"),
    r"\varepsilon": ("ε", "eps"),
    r"\sim": ("∼", "~"),
    r"\log": ("log", "log"),
    r"\exp": ("exp", "exp"),
    r"\zeta": ("ζ", "zeta"),
    r"\pi": ("π", "pi"),
}


def expression_line(e: object, *, unicode: bool = True) -> str:
    """An expression on one line.

    >>> expression_line(sympy.sympify("-n**2/4 + sqrt(n)"))
    '√n − n²/4'
    >>> expression_line(sympy.sympify("-n**2/4"), unicode=False)
    '-n^2/4'
    """
    return _printed(sympy.sympify(e), unicode)


@lru_cache(4096)
def _printed(e: Basic, unicode: bool) -> str:
    """Kept, since an encoding is made and named again wherever one of its heads is asked for."""
    printed: str = (_UNICODE if unicode else _ASCII).doprint(e)
    return printed


def beginning(value: object, most: int = 60) -> str:
    """A value's text, cut after this many characters.

    >>> beginning("0123456789", 7)
    '0123...'
    """
    text = str(value)
    return text if len(text) <= most else text[: most - 3] + "..."


def shortened(shown: str, width: int = LONG) -> str:
    """A line of at most this many characters, its middle left out.

    >>> shortened("0123456789", 7)
    '012…789'
    """
    if len(shown) <= width:
        return shown
    half = (width - 1) // 2
    return f"{shown[: width - 1 - half]}…{shown[len(shown) - half :]}"


def in_a_cell(e: Basic, width: int = 60) -> Text:
    """An expression in a cell of a table: LaTeX has the whole formula; a reader of a long one sees
    its ends.

    >>> terminal(in_a_cell(sympy.Symbol("n") ** 2 / 4)), terminal(in_a_cell(sympy.Symbol("n"), 0))
    ('n²/4', '…')
    """
    line = expression_line(e)
    if len(line) <= width:
        return as_text(e)
    return (
        (shortened(line, width),)
        if len(line) > 4 * width
        else (Latex(expression_latex(e), shortened(line, width)),)
    )


def listed(items: Sequence[object], most: int = 12) -> str:
    """Items with commas, those in the middle left out where they are many.

    >>> listed(range(3)), listed(range(100), 4)
    ('0, 1, 2', '0, 1, …, 98, 99')
    """
    shown = [str(item) for item in items]
    if len(shown) > most:
        half = most // 2
        shown = [*shown[:half], "…", *shown[len(shown) - half :]]
    return ", ".join(shown)


def enumeration(items: Sequence[object]) -> str:
    """Items with commas, and an `and` before the last.

    >>> enumeration([1]), enumeration([1, 2, 3])
    ('1', '1, 2 and 3')
    """
    *others, last = map(str, items)
    return f"{', '.join(others)} and {last}" if others else last


def _math_line(m: Math, unicode: bool) -> str:
    """A short formula on one line; a digit behind _ or ^ is set small where Unicode is allowed."""
    shown: list[str] = []
    for part in m.parts:
        if isinstance(part, Basic):
            shown.append(expression_line(part, unicode=unicode))
        elif not unicode:
            shown.append(part)
        elif shown and shown[-1].endswith("_") and part.isdigit():
            shown[-1] = shown[-1][:-1] + part.translate(_SUBSCRIPT)
        elif shown and shown[-1].endswith("^") and part.isdigit():
            shown[-1] = shown[-1][:-1] + part.translate(SUPERSCRIPT)
        else:
            shown.append(_GREEK.get(part, _SIGNS.get(part, (part,)))[0])
    return "".join(shown)


class _AnyLength:
    """Integers of any length: Python writes none of more than 4,300 digits."""

    def _print_Integer(self, expr: Basic) -> str:
        return str(fmpz(int(expr)))

    _print_int = _print_Integer


_SHAPES = {
    "Abs": ("|{}|", "|{}|"),
    "floor": ("⌊{}⌋", "floor({})"),
    "ceiling": ("⌈{}⌉", "ceiling({})"),
    "Infinity": ("∞", "oo"),
    "NegativeInfinity": ("-∞", "-oo"),
    "Pi": ("π", "pi"),
    "Not": ("not ({})", "not ({})"),
    "BooleanTrue": ("always", "always"),
    "BooleanFalse": ("never", "never"),
}
"""A node with its parts, in Unicode and as it is typed."""


class _Line(_AnyLength, StrPrinter):
    """SymPy's printer of lines, with the signs of mathematics in place of Python's."""

    def __init__(self, unicode: bool) -> None:
        super().__init__({"order": None})
        self.unicode = unicode

    def doprint(self, expr: object) -> str:
        shown: str = super().doprint(expr)
        if self.unicode:
            shown = shown.replace("*", "·").replace("-", "−")
        return shown

    def _print(self, expr: Basic, **options: Any) -> str:
        shape = _SHAPES.get(type(expr).__name__)
        if shape is None:
            return str(super()._print(expr, **options))
        return shape[not self.unicode].format(*map(self._print, expr.args))

    def _print_Rational(self, expr: Basic) -> str:
        return f"{self._print(expr.p)}/{self._print(expr.q)}"

    def _print_Pow(self, expr: Basic, rational: bool = False) -> str:
        base, exponent = expr.args
        if exponent is S.Half:
            if not self.unicode:
                return f"sqrt({self._print(base)})"
            inner = self._print(base)
            return f"√{inner}" if base.is_Symbol or base.is_Integer else f"√({inner})"
        if exponent.is_Rational and exponent < 0 and base is not S.Exp1:
            below = base if exponent == -1 else sympy.Pow(base, -exponent, evaluate=False)
            return f"1/{self.parenthesize(below, 60, strict=True)}"
        under = self.parenthesize(base, 61)
        if self.unicode and exponent.is_Integer:
            return under + str(exponent).translate(SUPERSCRIPT)
        over = self.parenthesize(exponent, 61)
        return f"{under}^{over}"

    def _print_Symbol(self, expr: Basic) -> str:
        name: str = expr.name
        if not self.unicode:
            return name
        stem, digits = re.fullmatch(r"(.*?)_?(\d*)", name).groups()  # type: ignore[union-attr]
        return _GREEK.get(stem, (stem,))[0] + digits.translate(_SUBSCRIPT)

    def _print_Relational(self, expr: Basic) -> str:
        op = "=" if expr.rel_op == "==" else _SIGNS[expr.rel_op][0] if self.unicode else expr.rel_op
        return f"{self._print(expr.lhs)} {op} {self._print(expr.rhs)}"

    def _joined(self, expr: Basic, word: str) -> str:
        """And and Or by a word between, in an order of their own: SymPy's sets have none."""
        shown = []
        for arg in sorted(expr.args, key=sympy.default_sort_key):
            inner = self._print(arg)
            shown.append(f"({inner})" if isinstance(arg, (sympy.And, sympy.Or)) else inner)
        return f" {word} ".join(shown)

    _print_And = partialmethod(_joined, word="and")
    _print_Or = partialmethod(_joined, word="or")

    def _print_Piecewise(self, expr: Basic) -> str:
        shown = [
            f"{self._print(value)} "
            + ("otherwise" if condition == sympy.true else f"for {self._print(condition)}")
            for value, condition in expr.args
        ]
        return "{" + "; ".join(shown) + "}"

    def _print_Min(self, expr: Basic) -> str:
        parts = map(self._print, sorted(expr.args, key=sympy.default_sort_key))
        return f"{expr.func.__name__.lower()}({', '.join(parts)})"

    _print_Max = _print_Min

    def _print_Mod(self, expr: Basic) -> str:
        left, right = (self.parenthesize(a, 60) for a in expr.args)
        return f"({left} mod {right})"

    def _print_factorial(self, expr: Basic) -> str:
        return f"{self.parenthesize(expr.args[0], 100)}!"

    def _print_Sum(self, expr: Basic) -> str:
        index, low, high = (self._print(x) for x in expr.limits[0])
        sign = "Σ" if self.unicode else "sum"
        return f"{sign}_({index}={low}..{high}) {self._print(expr.function)}"


_UNICODE, _ASCII = _Line(True), _Line(False)


# -- LaTeX ----------------------------------------------------------------------------------------


class _Latex(_AnyLength, LatexPrinter):
    """SymPy's printer of LaTeX, with conditions in words."""

    def _print_Rational(self, expr: Basic) -> str:
        above, below = (self._print(abs(k)) for k in (expr.p, expr.q))
        return rf"{'- ' * (expr.p < 0)}\frac{{{above}}}{{{below}}}"

    def _words(self, expr: Basic, word: str) -> str:
        """And and Or by a word between, in an order of their own: SymPy's sets have none."""
        parts = sorted(expr.args, key=sympy.default_sort_key)
        return rf" \text{{ {word} }} ".join(self._print(a) for a in parts)

    _print_And = partialmethod(_words, word="and")
    _print_Or = partialmethod(_words, word="or")


def expression_latex(e: object) -> str:
    """An expression in LaTeX."""
    printed: str = _Latex({"fold_frac_powers": True}).doprint(sympy.sympify(e))
    return printed


_ESCAPED = {
    **{c: rf"\{c}" for c in "%#&_${}"},
    **{"^": r"\^{}", "~": r"\~{}", "<": "$<$", ">": "$>$", "√": r"$\surd$"},
    **{sign: f"${tex}$" for sign, tex in (_SIGNS | _GREEK).values() if not sign.isascii()},
    **{chr(sign): rf"\textsuperscript{{{chr(c)}}}" for c, sign in SUPERSCRIPT.items()},
    **{chr(sign): rf"\textsubscript{{{chr(c)}}}" for c, sign in _SUBSCRIPT.items()},
    **{"·": r"$\cdot$", "…": r"\ldots{}"},
}
"""What LaTeX reads otherwise, or not at all: the signs of formulas that are written as text too."""


_ESCAPED_MATH = {c: rf"\{c}" for c in "%#&${}"}


def latex(text: Text) -> str:
    r"""A text in LaTeX, its mathematics between dollars.

    >>> print(latex(words("as `n -> oo`")))
    as $n \to \infty$
    """
    shown = []
    for part in text:
        if isinstance(part, Math):
            shown.append("$" + " ".join(_latex_parts(part)) + "$")
        elif isinstance(part, Latex):
            shown.append(f"${part.source}$")
        else:
            shown.append("".join(_ESCAPED.get(c, c) for c in _plain(part, True)))
    return "".join(shown)


def _latex_parts(m: Math) -> Iterator[str]:
    for part in m.parts:
        if isinstance(part, Basic):
            yield "{" + expression_latex(part) + "}"
        elif part in _FUNCTIONS:
            yield rf"\{part}" if part not in ("mod", "floor") else rf"\operatorname{{{part}}}"
        elif part in _GREEK or part in _SIGNS:
            yield (_GREEK | _SIGNS)[part][1]
        elif part.isdigit() and len(part) > 1:
            yield f"{{{part}}}"  # an index or a power is the whole number
        elif not part.isspace():
            word = part.isalpha() and len(part) > 1
            yield rf"\text{{{part}}}" if word else "".join(_ESCAPED_MATH.get(c, c) for c in part)


# -- MathML ---------------------------------------------------------------------------------------


_BRACKET = re.compile(
    '<mo stretchy="[a-z]+"[^>]*>(&#x(?:00028|00029|0005B|0005D|0007B|0007D);)</mo>'
)
_APPLIED = re.compile(r"(?<=[A-Za-z0-9})]) (?=\\(?:log|exp|sin|cos|operatorname)\b)")
_OPENING = ("&#x00028;", "&#x0005B;", "&#x0007B;")
_SIGN = re.compile(
    r"(<mo[^>]*>(?!&#x0(?:0029|005D|007C|007D|2016|230B);|\])[^<]+</mo>)<mo>&#x02212;</mo>"
)
_TALL = ("<mfrac", "<mtable", "<munder", "<mover")


@lru_cache(maxsize=4096)
def _mathml(source: str) -> str:
    r"""LaTeX as the inside of a MathML element, brackets no taller than what they enclose.

    Without a font for mathematics a browser draws brackets that may stretch far too high.

    >>> 'stretchy="false"' in _mathml(r"\left(n\right)")
    True
    """
    from latex2mathml.converter import convert  # a quarter of a second, for pages alone

    spaced = _APPLIED.sub(r" \\, ", source)  # between a factor and a function
    parts, opened = _BRACKET.split(convert(spaced).partition(">")[2]), list[int]()
    stretchy = [False] * len(parts)
    for k in range(1, len(parts), 2):
        if parts[k] in _OPENING:
            opened.append(k)
        elif opened:
            first = opened.pop()
            tall = any(tag in part for part in parts[first + 1 : k : 2] for tag in _TALL)
            stretchy[first] = stretchy[k] = tall
    bracket = ('<mo stretchy="false">{}</mo>', "<mo>{}</mo>")
    shown = (bracket[stretchy[k]].format(p) if k % 2 else p for k, p in enumerate(parts))
    return signed("".join(shown))


def signed(mathml: str) -> str:
    """MathML in which a minus behind an operator that closes nothing is a sign: no space follows.

    >>> signed("<mo>=</mo><mo>&#x02212;</mo><mi>n</mi>")
    '<mo>=</mo><mo form="prefix">&#x02212;</mo><mi>n</mi>'
    """
    return _SIGN.sub(r'\1<mo form="prefix">&#x02212;</mo>', mathml)


def expression_mathml(e: object) -> str:
    """An expression as a MathML element, its plain text beside it for those who cannot see it."""
    label, inner = escape(expression_line(e)), _mathml(expression_latex(e))
    return f'<math displaystyle="true" aria-label="{label}">{inner}'


def html(text: Text) -> str:
    """A text as HTML, its mathematics as MathML, which needs no script and no network; powers of
    ten are raised.

    >>> html(words("as `n -> oo`"))[:40], html(words("5.66e+19"))
    ('as <math aria-label="n → ∞"><mrow><mi>n<', '5.66·10<sup>19</sup>')
    """
    shown = []
    for part in text:
        if isinstance(part, StyledWord):
            shown.append(_styled(part))
        elif isinstance(part, str):
            shown.append(_EXPONENT.sub(_raised, escape(part)))
        else:
            source = part.source if isinstance(part, Latex) else " ".join(_latex_parts(part))
            shown.append(f'<math aria-label="{escape(_plain(part, True))}">{_mathml(source)}')
    return "".join(shown)


_EXPONENT = re.compile(r"(?<![\w.])(\d(?:\.\d+)?)e([+-])0*(\d+)\b")


def _raised(number: re.Match[str]) -> str:
    """A float's text as a product with a power of ten, or as a power of ten alone."""
    digits, sign, power = number.groups()
    product = "" if digits == "1" else f"{digits}·"
    return f"{product}10<sup>{'−' * (sign == '-')}{power}</sup>"


def _styled(term: StyledWord) -> str:
    """A word that a page sets apart, explains on the spot, or hides behind a button."""
    word = escape(term.word)
    if term.kind in ("code", "strong"):
        return f"<{term.kind}>{word}</{term.kind}>"
    if term.kind.startswith("to "):
        return f'<a href="{escape(term.kind.removeprefix("to "))}">{word}</a>'
    if term.kind == "command":
        return f'<details class="again"><summary>command</summary><code>{word}</code></details>'
    return f'<span class="{term.kind} {word.replace(" ", "-")}">{word}</span>'
