"""Reading a certificate back: what it proves, and whether it is one that could have been written.

A file says in its first comment what it proves, as formulas are spelled. That is only read: all
sentences but cases and proofs are printed anew from it, and have to be the same, the comment too.
Behind the comment there is neither a comment nor a string, so that the prover's lexer and this one
see the same sentences. Every word of a case or a proof is one that the writer has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

import sympy
from sympy import S

from farfield.theory.algebra import door
from farfield.theory.answers.errors import InputError
from farfield.theory.certificates.writer import (
    Certifiable,
    Claims,
    source,
    statement,
    without_proof,
)
from farfield.theory.formula.grammar import read as formula
from farfield.theory.functions.nodes import Lookup, n


class NotTheStatement(InputError):
    """A certificate that does not say what it should; one line says where."""


_SAID = re.compile(
    r"(?:(Head_[1-9]\d{0,3}): t|T)he exp-series of p\(n\) = (.+)\n"
    r"(?:    for (\w+ [^;\n]+(?:; \w+ [^;\n]+)*)\n)?    (converges|diverges|converges if (.+))\.\n"
)


def read(text: str) -> Claims:
    """What a certificate says that it proves, of one bias or of several.

    Raises:
        InputError: it says nothing, or what is no formula.

    >>> read('''(** The exp-series of p(n) = -a*log(n + 1)
    ...     for a positive
    ...     converges if a > 1.
    ... ''')
    {None: Certifiable(formula=-a*log(n + 1), domains={'a': 'positive'}, condition=a > 1)}
    """
    claims: dict[str | None, Certifiable] = {}
    comment = text.replace("\r\n", "\n").partition("*)")[0]
    for name, bias, said, verdict, condition in _SAID.findall(comment):
        domains = dict(part.split(" ", 1) for part in said.split("; ") if part)
        found = _expression(bias, domains)
        if {s.name for s in found.free_symbols - {n}} != set(domains):
            raise NotTheStatement("the certificate's domains are of other parameters")
        where: Any = S.false if verdict == "diverges" else S.true
        if condition:
            chosen = _expression(f"where({condition}, 1, 0)", domains)
            if not isinstance(chosen, sympy.Piecewise):
                raise NotTheStatement(f"the certificate's condition {condition[:60]} is none")
            where = chosen.args[0][1]
        claims[name or None] = Certifiable(found, domains, where)
    if not claims:
        raise NotTheStatement("the certificate does not begin with what it proves")
    return claims


def _expression(text: str, domains: Mapping[str, str]) -> Any:
    """The expression of a formula, or a table."""
    if table := re.fullmatch(r"table\((.+)\)", text):
        *entries, tail = (_expression(entry, domains) for entry in re.split("[,;] ", table[1]))
        return Lookup(n, sympy.Tuple(*entries), tail)
    words = set(re.findall(r"\w+", text))
    known = {name: domain for name, domain in domains.items() if name in words}
    return S.NegativeInfinity if text == "-oo" else formula(text, known)


def check(text: str, claims: Claims | None = None) -> Claims:
    """What a certificate states, once it is found to state that, these claims, and nothing else.

    Raises:
        InputError: it does not.
    """
    found = read(text)
    for given, wanted in zip_longest(_sentences(text), _sentences(source(found, without_proof))):
        if given != wanted:
            shown = (given or "its end")[:200]
            raise NotTheStatement(f"the certificate has {shown!r} where another sentence belongs")
    if claims is not None and not (
        list(found) == list(claims) and all(map(_same, found.values(), claims.values()))
    ):
        raise NotTheStatement(f"the certificate states {' '.join(statements(found))[:200]!r}")
    return found


def statements(claims: Claims) -> list[str]:
    """The theorems of a certificate."""
    return [statement(c) for c in claims.values()]


def _same(a: Certifiable, b: Certifiable) -> bool:
    """Whether two claims are the same; a formula that is read may have its products expanded."""
    same = a.formula == b.formula or door.expand(a.formula - b.formula) == 0
    return same and statement(a) == statement(b)


_WORDS = frozenset(
    re.findall(
        r"\S+",
        """
    Finite INR IZR Int_part P PI PI_between Q Rabs Reqb Rleb Rltb Rmax Rmin Rpower Rpower_value
    Rtotal_order Rtrigo_def.exp Some X Y _ andb apply as assert assumption at_most
    at_most_converges at_most_diverges between by condition constant contrary
    converges_classes cos decided destruct else eventually ex_series exact exactly exfalso exp
    expand expands extended_classes extended_finite extended_masked false fun if intros lia ln
    logs m_infty mod n nat negb nth orb p periodic pieces pose power proof revert rewrite rung sin
    split split_log sum_n_m table then true unfold wave
    i'
    """,
    )
)
"""The words of a generated proof, but for parameters, numbers and names such as `E1`."""

_TACTICS = {"apply", "assert", "contrary", "destruct", "exfalso", "intros", "pose", "rewrite"}
_TACTICS |= {"rung", "split"}
"""The words with which a sentence of a generated proof begins."""

_WORD = re.compile(r"[A-Za-z_][\w'.]*[\w']|[A-Za-z_]|\d+|\s+|/\\|\\/|[-+*/^()\[\]{};:,|<>=~?]|%nat")
_NAME = re.compile(r"[CDPQXY]\d*|case_\d{1,4}")


def _sentences(text: str) -> list[str]:
    """The comment and the sentences of a certificate, each on a line, without cases and proofs.

    Raises:
        NotTheStatement: a case or a proof has a word that is not generated.
    """
    comment, _, body = text.strip().partition("*)")
    if not comment.startswith("(** ") or '"' in comment or "(*" in comment[2:]:
        raise NotTheStatement("the certificate does not begin with a comment, or one with a string")
    if strange := re.search(r'[^\x20-\x7e\t\r\n]|"|\(\*|\*\)', body):
        raise NotTheStatement(f"the certificate has {strange.group()!r} behind its first comment")
    *sentences, rest = (" ".join(s.split()) for s in re.split(r"\.(?=\s|$)", body))
    kept, proof = [" ".join(comment.split())], False
    variables = re.findall(r"\bVariables ([\w' ]+) : R\.", body)
    parameters = set(" ".join(variables).split())
    for sentence in sentences:
        tactic = sentence.lstrip("{} ")
        if proof and tactic == "Qed":
            proof = False
        elif sentence == "Proof":
            proof = True
        elif proof or re.match(r"Theorem case_\d+ : ", sentence):
            if proof and tactic.split(" ")[0].split(";")[0] not in _TACTICS:
                raise NotTheStatement(f"the certificate has {tactic[:60]!r} within a proof")
            _check_words(tactic.removeprefix("Theorem "), parameters)
        else:
            kept.append(sentence)
    if rest or proof:
        raise NotTheStatement("the certificate does not end with a sentence")
    return kept


def _check_words(sentence: str, parameters: set[str]) -> None:
    """Check that every word is one of the generated ones, or a parameter."""
    at = 0
    while at < len(sentence):
        found = _WORD.match(sentence, at)
        word = sentence[at : at + 40] if found is None else found.group()
        allowed = word in _WORDS or word in parameters or _NAME.fullmatch(word)
        if found is None or (re.match("[A-Za-z_]", word) and not allowed):
            raise NotTheStatement(f"the certificate has {word!r} within a proof")
        at = found.end()
