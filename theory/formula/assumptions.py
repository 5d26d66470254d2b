r"""What a page prints behind a formula: `, \quad r_1, r_2 > 0` or `where 0 < p <= 2`."""

from __future__ import annotations

import re

from farfield.theory.answers.errors import InputError
from farfield.theory.formula.reading import POSITIONS, canonical, spelled, uncommented
from farfield.theory.formula.vocabulary import CALLED, RESERVED
from farfield.theory.functions.record import spellings

_NAME = r"[A-Za-z]\w*"
_VALUE = r"-? ?[\d.]+(?: / \d+)?"
_PART = re.compile(
    rf"(?:(?P<low>{_VALUE}) (?P<above><=?) )?(?P<names>{_NAME}(?: (?:,|and) {_NAME})*)"
    rf"(?: (?P<sign>[<>]=?) (?P<high>{_VALUE}|{_NAME})| in (?P<within>[\[(] .+? [\])]))?"
)
BEHIND = re.compile(r"(?:,|\bwhere\b|\bwith\b).*(?:[<>∈≤≥]|\\(?:in|[gl]eq?)\b)", re.DOTALL)
"""What a formula has that may end with conditions."""
_LEADING = ("where", "with", "for", "and")
_SIGNS = {"> 0": "positive", ">= 0": "nonnegative", "< 0": "negative", "<= 0": "nonpositive"}


def parted(text: str) -> tuple[str, dict[str, str]]:
    r"""A formula and the domains of parameters that are said behind its last commas.

    What is said of the distance or of positions (`n >= 0`, `j <= i`) is true of every bias.

    >>> parted(r"-r_1 \log(1 + r_2 n), \quad r_1, r_2 > 0")
    ('-r_1 \\log(1 + r_2 n)', {'r1': 'positive', 'r2': 'positive'})
    >>> parted("-a*n**p, a > 0, 0 < p <= 2")
    ('-a*n**p', {'a': 'positive', 'p': '(0, 2]'})
    """
    plain = uncommented(text)
    if plain.strip().startswith("["):
        return text, {}
    words = {*spellings(), *CALLED, *RESERVED}
    tokens = [(canonical(value), at) for _, value, at in spelled(plain, words)]
    depth = 0
    for k, (value, at) in enumerate(tokens):
        depth += (value in "([{") - (value in ")]}") if len(value) == 1 else 0
        if depth == 0 and k and (value == "," or value in ("where", "with")):
            said = _domains([value for value, _ in tokens[k + (value == ",") :]])
            if said is not None:
                return re.sub(r"(?:\s|\\q?quad|\\[,;!])+$", "", text[:at]), said
    return text, {}


def _domains(tokens: list[str]) -> dict[str, str] | None:
    """The domains that these tokens say, None where they say something else."""
    while tokens and tokens[0] in _LEADING:
        tokens = tokens[1:]
    rest, found = " ".join(tokens), dict[str, str]()
    while rest:
        part = _PART.match(rest)
        if part is None or not (part["sign"] or part["above"] or part["within"]):
            return None
        names = re.findall(_NAME, part["names"].replace(" and ", " , "))
        pair = {*names, part["high"]}
        if names != ["n"] and not any(pair == {*positions} for positions in POSITIONS):
            if part["high"] and re.fullmatch(_NAME, part["high"]):
                return None
            for name in names:
                if found.setdefault(name, _domain(part)) != _domain(part):
                    raise InputError(f"two domains of {name} are printed behind the formula")
        rest = rest[part.end() :]
        rest = re.sub(r"^ (?:,|and|&) ", "", rest)
        if rest.startswith(" "):
            return None
    return found


def _domain(part: re.Match[str]) -> str:
    """An interval, or one of the five words."""
    if part["within"]:
        inner = part["within"].replace(" ", "").replace(",", ", ")
        return inner.replace("infty", "oo")
    low, high = part["low"], part["high"]
    if low is None and f"{part['sign']} {high}" in _SIGNS:
        return _SIGNS[f"{part['sign']} {high}"]
    ends: dict[str, tuple[str, bool]] = {}
    if low is not None:
        ends["low"] = (low, part["above"] == "<")
    if high is not None:
        ends["high" if part["sign"][0] == "<" else "low"] = (high, "=" not in part["sign"])
    (least, below), (most, above) = ends.get("low", ("-oo", True)), ends.get("high", ("oo", True))
    inside = f"{least}, {most}".replace(" / ", "/").replace("- ", "-")
    return f"{'(' if below else '['}{inside}{')' if above else ']'}"
