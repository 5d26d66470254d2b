"""The answer of `verify_certificate`: does the prover accept a received file, what does it prove?

The file has to be the one that farfield writes: the formula that its first comment spells is
decided and printed anew, and both files have to be the same. Then the prover's kernel has to accept
it, and says on which axioms the theorems rest.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, ClassVar

from sympy import Expr, S

from farfield.theory.algebra.door import seconds, within
from farfield.theory.algebra.exceptions import Undecided, Unreachable
from farfield.theory.answers.answer import Answer, Code, InputError, Label, Reason, Status
from farfield.theory.answers.blocks import Block, Formula, facts, note, sentence, table
from farfield.theory.answers.notation import Text, expression_line, listed, shortened, words
from farfield.theory.certificates.certificate import regenerated
from farfield.theory.certificates.prover import CLASSICAL, Rejected, axioms_named, checked
from farfield.theory.certificates.source import Certifiable, Claims, statement

MAX_BYTES = 1_000_000
BUDGET = 120.0
ACCEPTED = "accepted: a certificate as `farfield check --certificate` writes it"


@dataclass(frozen=True, repr=False, kw_only=True)
class ReceivedCertificate(Answer):
    """Whether a received certificate proves its theorem.

    Fields:
        proved: True where the prover accepts the file; None where it does not.
        statement: the theorem, a line a head where there are several.
        formulas: the bias of each theorem.
        axioms: what the theorem rests on: at most the four axioms of the classical reals.
        label: `theorem`, or None where nothing is proved.
    """

    VALUE: ClassVar[str] = "proved"

    proved: bool | None
    statement: str
    formulas: tuple[Expr, ...]
    axioms: tuple[str, ...] = ()
    stated: Claims = field(default_factory=dict)

    def blocks(self) -> Sequence[Block]:
        file, theorems = shortened(self.subject, 80), self.stated
        if not self.proved:
            template = "{file} proves no theorem: {why}."
            return (sentence(template, file=file, why=str(self.reason)), note(self.statement))
        if len(theorems) > 1:
            rows = [
                (name, *_in_words(s), shortened(expression_line(s.formula), 60))
                for name, s in theorems.items()
            ]
            first = sentence(
                "{file} proves {count} verdicts.", self.label, file=file, count=len(theorems)
            )
            return (
                first,
                table(("theorem", "the series", "for", "p(n)"), rows),
                facts(axioms=", ".join(self.axioms) or "none"),
            )
        [only] = theorems.values()
        verdict, where = _in_words(only)
        template = "{file} proves: the series {verdict}{where}."
        return (
            sentence(
                template, self.label, file=file, verdict=verdict, where=where and f", for {where}"
            ),
            Formula(words("`p(n)`"), only.formula),
            note("{statement}", statement=self.statement),
            facts(axioms=", ".join(self.axioms) or "none"),
        )

    def fields(self) -> dict[str, Any]:
        return {k: v for k, v in super().fields().items() if k != "stated"} | {
            "formulas": [str(f) for f in self.formulas],
        }


def verify_certificate(
    path: str | os.PathLike[str], *, budget_s: float = BUDGET
) -> ReceivedCertificate:
    """Check a received certificate: whether farfield writes the same file, and whether the prover
    accepts it without further axioms.

    Args:
        path: a file as `farfield check --certificate` writes it, of at most a megabyte.
        budget_s: seconds after which the answer is `unknown`.

    Returns:
        A `ReceivedCertificate`: the theorem and its axioms; `unknown` where the prover rejects it.

    Raises:
        InputError: the file cannot be read or is no certificate; there is no prover (Rocq, Coq
            8.16 with Coquelicot).
    """
    budget = seconds(budget_s)
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise InputError(f"a path is text, not {type(path).__name__}; {ACCEPTED}")
    name = os.fsdecode(path)
    stated: Claims = {}
    text = _content(name)
    try:
        with within(budget):
            try:
                stated = _stated(text)
            except (InputError, Undecided, RecursionError) as why:
                expected = isinstance(why, InputError)
                reason = str(why) if expected else "it is nested too deeply, or not decided"
                raise InputError(f"{name!r} is no certificate: {reason}; {ACCEPTED}") from None
            verdicts = ", ".join(
                f"@{module}.verdict" if module else "@verdict" for module in stated
            )
            axioms = _axioms(
                checked(f"{text}\nDefinition all := ({verdicts}).\nPrint Assumptions all.\n")
            )
    except Unreachable as why:
        return _answer(name, stated, reason=Reason(Code.BUDGET, str(why)))
    except Rejected as why:
        reason = f"the prover rejects it: {why}"
        return _answer(name, stated, reason=Reason(Code.NOT_PROVED, reason))
    return _answer(name, stated, proved=True, axioms=axioms)


def _stated(text: str) -> Claims:
    """The claims of a file that is the one that its first comment gives.

    Raises:
        InputError: it is not.
    """
    stated, ours = regenerated(text)
    for k, (line, wanted) in enumerate(zip_longest(text.split("\n"), ours.split("\n")), 1):
        if line != wanted:
            raise InputError(f"line {k} is {(line or 'missing')[:80]!r}, not as farfield writes it")
    return stated


def _answer(
    name: str, stated: Claims, proved: bool | None = None, **fields: Any
) -> ReceivedCertificate:
    return ReceivedCertificate(
        proved=proved,
        status=Status.EXACT if proved else Status.UNKNOWN,
        label=Label.THEOREM if proved else None,
        statement="\n".join(map(statement, stated.values())),
        formulas=tuple(s.formula for s in stated.values()),
        stated=stated,
        subject=name,
        **fields,
    )


def _in_words(s: Certifiable) -> tuple[str | Text, str]:
    """The verdict, and for which parameters."""
    verdict: str | Text | None = {S.true: "converges", S.false: "diverges"}.get(s.condition)
    if verdict is None:
        verdict = words("converges exactly if {condition}", condition=s.condition)
    return verdict, listed([f"{name} {domain}" for name, domain in s.domains.items()], 6)


def _content(name: str) -> str:
    """The text of a regular file of bounded size; a pipe or a device is never waited for."""
    try:
        handle = os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as file:
            regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            content = file.read(MAX_BYTES + 1) if regular else b""
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read {name[:200]!r}: {why}; {ACCEPTED}") from None
    if not regular:
        raise InputError(f"{name!r} is no regular file; {ACCEPTED}")
    if len(content) > MAX_BYTES:
        raise InputError(f"{name!r} has more than {MAX_BYTES} bytes; {ACCEPTED}")
    try:
        return content.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise InputError(f"{name!r} is not text in UTF-8; {ACCEPTED}") from None


def _axioms(printed: str) -> tuple[str, ...]:
    """The axioms that the prover names.

    Raises:
        Rejected: it names none, nor says that there are none; or one beyond the classical reals.
    """
    if "Closed under the global context" in printed:
        return ()
    axioms = axioms_named(printed)
    if not axioms:
        raise Rejected("it does not say which axioms the theorem rests on")
    if foreign := axioms - CLASSICAL:
        listing = ", ".join(sorted(foreign))
        raise Rejected(f"it rests on axioms beyond those of the classical reals: {listing}")
    return tuple(sorted(a.rpartition(".")[2] for a in axioms))
