r"""What a page prints behind a formula: `, \quad r_1, r_2 > 0` or `where 0 < p <= 2`."""

from __future__ import annotations

import re

from farfield.theory.answers.errors import InputError
from farfield.theory.formula.reading import POSITIONS, canonical, spelled, uncommented
from farfield.theory.formula.vocabulary import CALLED, RESERVED
from farfield.theory.functions.record import SPELLINGS

_NAME = r"[A-Za-z]\w*"
_VALUE = r"-? ?[\d.]+(?: / \d+)?"
_PART = re.compile(
    rf"(?:(?P<low>{_VALUE}) (?P<above><=?) )?(?P<names>{_NAME}(?: (?:,|and) {_NAME})*)"
    rf"(?: (?P<sign>[<>]=?) (?P<high>{_VALUE}|{_NAME})| in (?P<within>[\[(] .+? [\])]))?"
)
BEHIND = re.compile(r"(?:,|\bwhere\b|\bwith\b).*(?:[<>∈≤≥]|\\(?:in|[gl]eq?)\b)", re.DOTALL)
"""What a formula has that may end with conditions."""
_LEADING = ("where", "with", "for", "and")


def parted(text: str) -> tuple[str, dict[str, str]]:
    r"""A formula and the domains of parameters that are said behind its last commas.

    Assumptions on the distance or on positions (`n >= 0`, `j <= i`) hold for every bias.

    >>> parted(r"-r_1 \log(1 + r_2 n), \quad r_1, r_2 > 0")
    ('-r_1 \\log(1 + r_2 n)', {'r1': 'positive', 'r2': 'positive'})
    >>> parted("-a*n**p, a > 0, 0 < p <= 2")
    ('-a*n**p', {'a': 'positive', 'p': '(0, 2]'})
    """
    plain = uncommented(text)
    if plain.strip().startswith("["):
        return text, {}
    words = {*SPELLINGS, *CALLED, *RESERVED}
    tokens = [(canonical(value), place) for _, value, place in spelled(plain, words)]
    for k, (value, place) in enumerate(tokens):  # a bracket that ends behind leaves no domains
        if k and value in (",", "where", "with"):
            domains = _domains([value for value, _ in tokens[k + (value == ",") :]])
            if domains is not None:
                return re.sub(r"(?:\s|\\q?quad|\\[,;!])+$", "", text[:place]), domains
    return text, {}


def _domains(tokens: list[str]) -> dict[str, str] | None:
    """The domains that these tokens say, None where they say something else."""
    while tokens and tokens[0] in _LEADING:
        tokens = tokens[1:]
    rest, domains = " ".join(tokens), dict[str, str]()
    while rest:
        part = _PART.match(rest)
        if part is None or not (part["sign"] or part["above"] or part["within"]):
            return None
        if part["low"] and (part["within"] or (part["sign"] or "").startswith(">")):
            shown = part[0].replace(" ,", ",")
            raise InputError(
                f"{shown!r} has two lower bounds; write each bound behind its parameter, as "
                "a > 1, b in (0, 1)"
            )
        names = re.findall(_NAME, part["names"].replace(" and ", " , "))
        pair = {*names, part["high"]}
        if names != ["n"] and not any(pair == {*positions} for positions in POSITIONS):
            if part["high"] and re.fullmatch(_NAME, part["high"]):
                return None
            for name in names:
                if domains.setdefault(name, _domain(part)) != _domain(part):
                    raise InputError(f"two domains of {name} are printed behind the formula")
        rest = rest[part.end() :]
        rest = re.sub(r"^(?: (?:,|and|&))+ ", "", rest)
        if rest.startswith(" "):
            return None
    return domains


def _domain(part: re.Match[str]) -> str:
    """An interval, or the word for it."""
    if part["within"]:
        return part["within"].replace(" ", "").replace(",", ", ").replace("infty", "oo")
    sign, end = part["sign"] or "", (part["high"], "=" not in (part["sign"] or ""))
    low = (part["low"], part["above"] == "<") if part["low"] else ("-oo", True)
    least, below = end if sign[:1] == ">" else low
    most, above = end if sign[:1] == "<" else ("oo", True)
    inside = f"{least}, {most}".replace(" / ", "/").replace("- ", "-")
    text = f"{'(' if below else '['}{inside}{')' if above else ']'}"
    return _WORDS.get(text, text)


_WORDS = {
    "(0, oo)": "positive",
    "[0, oo)": "nonnegative",
    "(-oo, 0)": "negative",
    "(-oo, 0]": "nonpositive",
}
