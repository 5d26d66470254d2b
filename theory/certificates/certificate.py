"""A verdict that carries its own certificate: written, and read back before it is handed on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sympy import Expr

from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.answers.answer import Label, Result
from farfield.theory.answers.blocks import Block, Sentence, note
from farfield.theory.answers.notation import words
from farfield.theory.certificates.prover_forms import NoCertificate
from farfield.theory.certificates.readback import NotTheStatement, check, read, statements
from farfield.theory.certificates.writer import Claims, source, with_proof, without_proof


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


def certificate(formula: Expr | None, claims: Claims) -> Certificate:
    """The certificate of a claim; see `Convergence.certificate`.

    Raises:
        NoCertificate: no rule covers the form.
    """
    try:
        stated = read(source(claims, without_proof))
        recorded = {name: replace(s, cells=claims[name].cells) for name, s in stated.items()}
        text = source(recorded, with_proof)
        check(text, claims)
    except (Undecided, NotTheStatement) as why:
        raise NoCertificate(str(why)) from None
    return Certificate(formula, "\n".join(statements(stated)), text)
