r"""How people spell what the grammar reads: signs of print, LaTeX, the prefixes of libraries.

A text is cut into tokens by `spelled`, each with the column where it stands in the text as it was
given; what only looks different (`²`, `\cdot`, `np.`) becomes what the grammar knows, and nothing
is decided here about what it means.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

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
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
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
    "le": "<=",
    "leq": "<=",
    "ge": ">=",
    "geq": ">=",
    "ne": "!=",
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
        if text[at] == "#" and not text[at - 1 : at].strip():  # a comment, to the end of its line
            at = next((k for k in range(at, last) if text[k] == "\n"), last)
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
