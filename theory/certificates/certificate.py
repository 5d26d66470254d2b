"""A verdict that carries its own certificate: written, and read back before it is handed on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sympy import Expr

from farfield.theory.algebra.outcomes import Undecided
from farfield.theory.answers.answer import Label, Result
from farfield.theory.answers.blocks import Block, Sentence, note
from farfield.theory.answers.errors import InputError
from farfield.theory.answers.notation import shortened, words
from farfield.theory.certificates.forms import NoCertificate, is_extended
from farfield.theory.certificates.reading import NotTheStatement, read_back
from farfield.theory.certificates.writer import source

if TYPE_CHECKING:
    from farfield.theory.verdicts import Convergence

NOTE = """`coqc -Q theory/formal Farfield FILE.v` checks this file, after `make formal`.
    The prover's ln, Rpower and / are total: where the formula has no value, as log n has none at
    n = 0, they have some. That concerns finitely many terms, on which no verdict depends."""


@dataclass(frozen=True, repr=False)
class Certificate(Result):
    """A file whose theorem is the verdict on a formula.

    Fields:
        formula: the bias.
        statement: the theorem, a line a head where heads differ.
        source: the file, for Rocq (Coq) 8.16 with Coquelicot.
        label: `theorem`.
    """

    formula: Expr
    statement: str
    source: str
    label: Label = Label.THEOREM

    def blocks(self) -> Sequence[Block]:
        said = Sentence(words(self.statement.replace("\n", " ")), str(self.label))
        return [said, note(f"for Rocq (Coq), {len(self.source.splitlines())} lines")]


@dataclass(frozen=True)
class Claim:
    """What a certificate is to state of one bias: where its series converges."""

    formula: Expr
    domains: Mapping[str, str]
    condition: Any


def certificate(result: Convergence) -> Certificate:
    """The certificate of a verdict; see `Convergence.certificate`."""
    claims = _claims(result)
    try:
        parts = [source(c.formula, c.domains, c.condition, name) for name, c in claims.items()]
    except Undecided as why:
        raise NoCertificate(str(why)) from None
    assert result.formula is not None
    return _checked(result.formula, list(claims.values()), parts)


def check(text: str, result: Convergence) -> list[str]:
    """The theorems of a certificate, after they have been found to state this verdict.

    Raises:
        NotTheStatement: they do not.
    """
    return read_back(text, [(c.formula, c.domains, c.condition) for c in _claims(result).values()])


def _claims(result: Convergence) -> dict[str | None, Claim]:
    """What is to be stated, by the name of its module: one a head where heads differ."""
    first = {h.formula: k for k, h in reversed(list(enumerate(result.heads, 1)))}
    if len(first) > 1:
        return {f"Head_{k}": _claim(result.heads[k - 1]) for k in sorted(first.values())}
    return {None: _claim(result.heads[0] if first else result)}


def _claim(result: Convergence) -> Claim:
    if result.verdict.value in ("undecided", "out_of_scope") or result.formula is None:
        raise InputError(
            f"no certificate: the verdict is {result.verdict.value}; accepted: converges, "
            "diverges, conditional"
        )
    if result.support is not None:
        raise NoCertificate("the verdict rests on bounded support, not on the exp-series")
    if result.reason is not None:
        raise NoCertificate(str(result.reason))
    return Claim(result.formula, dict(result.assumptions), result.condition)


def _checked(formula: Expr, claims: list[Claim], parts: list[str]) -> Certificate:
    """The file, after its statements have been read back and found to be those claimed."""
    modules = (
        "Certificate Extended" if any(is_extended(c.formula) for c in claims) else "Certificate"
    )
    text = "\n\n".join([
        f"(** The exp-series of p(n) = {shortened(str(formula), 80)}.\n\n    {NOTE} *)",
        f"From Farfield Require Import {modules}.\nOpen Scope R_scope.", *parts,
    ]) + "\n"  # fmt: skip
    try:
        statements = read_back(text, [(c.formula, c.domains, c.condition) for c in claims])
    except NotTheStatement as why:
        raise NoCertificate(f"it does not read back as the formula ({why})") from None
    return Certificate(formula, "\n".join(statements), text)
