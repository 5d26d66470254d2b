"""The public `Certificate` of a verdict, and the way back from a file's first comment.

The comment spells the formula and the domains of its parameters. They are read, decided, and
printed: the same words always give the same bytes. So a received file is one of ours if it is what
its words give.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import sympy
from sympy import Expr, S

from farfield.theory.algebra import door
from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.answers.answer import Label, Result
from farfield.theory.answers.blocks import Block, Sentence, note
from farfield.theory.answers.errors import InputError
from farfield.theory.answers.notation import words
from farfield.theory.certificates.prover_forms import NoCertificate
from farfield.theory.certificates.source import Certifiable, Claims, in_words, source, statement
from farfield.theory.decision.engine import decide_series
from farfield.theory.formula.grammar import read as formula_of
from farfield.theory.formula.parameters import interval
from farfield.theory.functions.nodes import Lookup, n

_WORDS = re.compile(
    r"(?:(Head_[1-9]\d{0,3}): t|T)he exp-series of p\(n\) = (.+)\n"
    r"(?:    for (\w+ [^;\n]+(?:; \w+ [^;\n]+)*)\n)?    (?:converges|diverges)"
)


@dataclass(frozen=True, repr=False)
class Certificate(Result):
    """A file whose theorem is the verdict on a formula.

    Fields:
        formula: the bias, None of several heads that are given one by one.
        statement: the theorem, a line a head where heads differ.
        source: the file, for Rocq (Coq) 8.16 with Coquelicot.
        label: `theorem`.
    """

    formula: Expr | None
    statement: str
    source: str
    label: Label = Label.THEOREM

    def blocks(self) -> Sequence[Block]:
        sentence = Sentence(words(self.statement.replace("\n", " ")), str(self.label))
        return [sentence, note(f"for Rocq (Coq), {len(self.source.splitlines())} lines")]


def certificate(formula: Expr | None, claims: Claims) -> Certificate:
    """The certificate of a claim; see `Convergence.certificate`.

    Raises:
        NoCertificate: no rule covers the form.
    """
    try:
        decided, text = regenerated(in_words(claims))
    except Undecided as why:
        raise NoCertificate(str(why)) from None
    if list(decided) != list(claims) or not all(map(_same, decided.values(), claims.values())):
        raise NoCertificate("the formula as it is spelled is decided otherwise")
    return Certificate(formula, "\n".join(map(statement, decided.values())), text)


def _same(a: Certifiable, b: Certifiable) -> bool:
    """Whether two claims are the same; a formula that is read may have its products expanded."""
    same = a.formula == b.formula or door.expand(a.formula - b.formula) == 0
    return same and statement(a) == statement(b)


def regenerated(text: str) -> tuple[Claims, str]:
    """What a certificate with this first comment proves, decided anew, and the whole file.

    Raises:
        InputError: the comment spells no formula, or one without a certificate (`NoCertificate`).
        Undecided: a constant is not decided.

    >>> claims, text = regenerated('''(** The exp-series of p(n) = -a*log(n + 1)
    ...     for a positive
    ...     converges if a > 1.''')
    >>> claims[None].condition, text.startswith("(** The exp-series of p(n) = -a*log(n + 1)")
    (a > 1, True)
    """
    claims = dict(_spelled(text.partition("*)")[0]))
    if not claims:
        raise InputError("it does not begin with what it proves")
    return claims, source(claims)


def _spelled(comment: str) -> Iterator[tuple[str | None, Certifiable]]:
    """Each bias that a comment spells, by the name of its module, decided."""
    for name, bias, parameters in _WORDS.findall(comment):
        domains = dict(part.split(" ", 1) for part in parameters.split("; ") if part)
        p = _expression(bias, domains)
        if {s.name for s in p.free_symbols - {n}} != set(domains):
            raise InputError("its domains are of other parameters than its formula's")
        decision = decide_series(p, {s: interval(domain) for s, domain in domains.items()})
        if decision.condition is None:
            raise NoCertificate(decision.reason)
        yield name or None, Certifiable(p, domains, decision.condition, decision.cells)


def _expression(text: str, domains: Mapping[str, str]) -> Expr:
    """The expression of a formula, or a table."""
    if table := re.fullmatch(r"table\((.+)\)", text):
        *entries, tail = (_expression(entry, domains) for entry in re.split("[,;] ", table[1]))
        return Lookup(n, sympy.Tuple(*entries), tail)
    names = set(re.findall(r"\w+", text))
    inside = {name: domain for name, domain in domains.items() if name in names}
    return S.NegativeInfinity if text == "-oo" else formula_of(text, inside)
