"""A verdict that carries its own certificate: written, and read back before it is handed on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sympy import Expr, Set

from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.answers.answer import Label, Result
from farfield.theory.answers.blocks import Block, Sentence, note
from farfield.theory.answers.notation import shortened, words
from farfield.theory.certificates.prover_forms import NoCertificate
from farfield.theory.certificates.readback import NotTheStatement, compare, read
from farfield.theory.certificates.totality import total
from farfield.theory.certificates.writer import source

NOTE = """`coqc -Q theory/formal Farfield FILE.v` checks this file, after `make formal`.
    At every n >= 0, p n is the value of the formula. A term without a value is left out of the
    series: there p n is -oo."""


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
        said = Sentence(words(self.statement.replace("\n", " ")), str(self.label))
        return [said, note(f"for Rocq (Coq), {len(self.source.splitlines())} lines")]


@dataclass(frozen=True)
class Certifiable:
    """What a certificate is to state of one bias: where its series converges."""

    formula: Expr
    domains: Mapping[str, Set]
    condition: Any


Claims = Mapping[
    str | None, Certifiable
]  # by the name of the module, None where there is one bias alone


def certificate(formula: Expr | None, claims: Claims) -> Certificate:
    """The certificate of a claim; see `Convergence.certificate`.

    Raises:
        NoCertificate: no rule covers the form.
    """
    try:
        parts = [
            source(total(c.formula), c.domains, c.condition, name) for name, c in claims.items()
        ]
        return _checked(formula, claims, parts)
    except Undecided as why:
        raise NoCertificate(str(why)) from None


def check(text: str, claims: Claims) -> list[str]:
    """The theorems of a certificate, once they are found to state the claims.

    Raises:
        NotTheStatement: they do not.
    """
    found = read(text)
    if [s.module for s in found] != list(claims):
        raise NotTheStatement(f"the certificate speaks of {len(found)} heads")
    for stated, claim in zip(found, claims.values(), strict=True):
        compare(stated, total(claim.formula), claim.domains, claim.condition)
    return [f"{s.theorem}." for s in found]


def _checked(formula: Expr | None, claims: Claims, parts: list[str]) -> Certificate:
    """The file, after its statements have been read back and found to be those claimed."""
    extended = any(": Rbar :=" in part for part in parts)
    modules = "Certificate Extended" if extended else "Certificate"
    of = "each head" if formula is None else f"p(n) = {shortened(str(formula), 80)}"
    text = (
        "\n\n".join(
            [
                f"(** The exp-series of {of}.\n\n    {NOTE} *)",
                f"From Farfield Require Import {modules}.\nOpen Scope R_scope.",
                *parts,
            ]
        )
        + "\n"
    )
    try:
        statements = check(text, claims)
    except NotTheStatement as why:
        raise NoCertificate(f"it does not read back as the formula ({why})") from None
    return Certificate(formula, "\n".join(statements), text)
