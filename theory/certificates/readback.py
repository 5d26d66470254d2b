"""Reading a certificate back: what its definition and theorem say.

The reader accepts the generated grammar alone. A file begins with one comment at most. Behind it
there is neither a comment nor a string, so that the prover's lexer and this one see the same
sentences. Every word of a proof is one that the writer has. A term of the prover is spelled as a
formula (`ln (INR n + 1)` as `log(n + 1)`), which the grammar of formulas reads. Printed anew it has
to be the same text (`printed`), and the prover's functions have our values at every n (`totality`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy
from sympy import Expr, S, Symbol

from farfield.theory.answers.errors import InputError
from farfield.theory.certificates.prover_forms import Form, NoCertificate, bias_form, coq_name
from farfield.theory.certificates.totality import check_total
from farfield.theory.certificates.writer import sentences
from farfield.theory.formula.grammar import read as formula
from farfield.theory.formula.parameters import DOMAINS, interval
from farfield.theory.functions.nodes import Lookup, n


class NotTheStatement(InputError):
    """A certificate that does not say what it should; one line says where."""


@dataclass(frozen=True)
class Stated:
    """What a certificate states of one bias.

    Fields:
        module: where it stands, None where there is one bias alone.
        formula: the bias.
        domains: of its parameters.
        condition: where the series converges: true, false, or a relation.
        definition, theorem: the sentences themselves.
    """

    module: str | None
    formula: Expr
    domains: Mapping[str, str]
    condition: Any
    definition: str
    theorem: str


def read(text: str) -> tuple[Stated, ...]:
    """What a certificate states, of one bias or of several.

    Raises:
        NotTheStatement: it contains what no certificate does, or speaks of no bias.

    >>> text = '''From Farfield Require Import Certificate.
    ... Open Scope R_scope.
    ... Definition p (n : nat) : R := - ln (INR n + 1).
    ... Theorem verdict : ~ ex_series (fun n => exp (p n)).
    ... Proof. Qed.'''
    >>> [stated] = read(text)
    >>> stated.formula, stated.condition
    (-log(n + 1), False)
    >>> read(text.replace("Qed", "Admitted"))
    Traceback (most recent call last):
        ...
    farfield.theory.certificates.readback.NotTheStatement: the certificate has 'Admitted' ...
    """
    found = _Sentences(text)
    extended = found.take("From Farfield Require Import Certificate( Extended)?")[1] is not None
    found.take("Open Scope R_scope")
    stated: list[Stated] = []
    while not found.ended():
        several = found.next().startswith("Module ")
        if stated and not (several and stated[-1].module):
            found.refuse()
        module = found.take(r"Module (Head_[1-9][0-9]{0,3})")[1] if several else None
        stated.append(_stated(found, module))
        if module is not None:
            found.take(f"End {module}")
    if not stated:
        found.refuse()
    if extended != any(s.formula.has(S.NegativeInfinity) for s in stated):
        raise NotTheStatement("the certificate is about other values than the formula's")
    return tuple(stated)


def _stated(found: _Sentences, module: str | None) -> Stated:
    """One bias with its theorem, and the proofs between them."""
    names: list[str] = []
    if found.next() == "Section Verdict":
        found.take("Section Verdict")
        names = found.take("Variables ([a-zA-Z0-9_' ]+) : R")[1].split()
    known = {name.rstrip("'"): name for name in names}
    if len(known) < len(names) or any(coq_name(k) != name for k, name in known.items()):
        raise NotTheStatement(f"the certificate has parameters {' '.join(names)}")
    definition = found.take(r"Definition p \(n : nat\) : (?:R|Rbar) := .*").group()
    while re.match(r"Theorem case_\d+ : ", found.next()):
        found.words(found.take(r"Theorem case_\d+ : (.*)")[1], known)
        found.proof(known)
    theorem = found.take("Theorem verdict : .*").group()
    said = theorem.removeprefix("Theorem verdict : ")
    found.proof(known)
    if names:
        found.take("End Verdict")
    *hypotheses, verdict = said.split(" -> ")
    domains = _domains(hypotheses, known)
    kind, body = definition.removeprefix("Definition p (n : nat) : ").split(" := ", 1)
    bias = _Terms(body, domains, known).expression()
    if {s.name for s in bias.free_symbols - {n}} != set(known):
        raise NotTheStatement(f"the certificate has parameters {' '.join(names) or 'none'}")
    if (kind == "Rbar") != bias.has(S.NegativeInfinity):
        raise NotTheStatement("the certificate is about other values than the formula's")
    condition = _condition_of(verdict, bool(hypotheses), domains, known)
    try:
        for e in (bias, *condition.atoms(sympy.core.relational.Relational)):
            for side in (e.lhs, e.rhs) if e.is_Relational else (e,):
                check_total(side)
    except NoCertificate as why:
        raise NotTheStatement(f"the certificate's p is no formula's: {why}") from None
    return Stated(module, bias, domains, condition, definition, theorem)


def printed(stated: Stated) -> None:
    """Check that a certificate's statements are printed letter by letter.

    Raises:
        NotTheStatement: it is printed otherwise.
    """
    domains = {name: interval(said) for name, said in stated.domains.items()}
    said = sentences(stated.formula, domains, stated.condition)
    if said != (f"{stated.definition}.", f"{stated.theorem}."):
        raise NotTheStatement("the certificate's sentences are not as they are generated")


def compare(
    stated: Stated, formula: Expr, domains: Mapping[str, sympy.Set], condition: Any
) -> None:
    """Check that a certificate states this of this bias.

    Raises:
        NotTheStatement: it states something else.
    """
    printed(stated)
    definition, theorem = sentences(formula, domains, condition)
    if f"{stated.definition}." != definition or not _same(
        bias_form(stated.formula), bias_form(formula)
    ):
        raise NotTheStatement(f"the certificate defines p(n) = {str(stated.formula)[:80]}")
    if f"{stated.theorem}." != theorem:
        raise NotTheStatement(f"the certificate states {stated.theorem[:200]!r}")


def _same(f: Form, g: Form) -> bool:
    """Whether two forms are the same tree."""
    if (f.op, f.value, len(f.args)) != (g.op, g.value, len(g.args)):
        return False
    return all(map(_same, f.args, g.args)) if f.args else bool(f.expr == g.expr)


# -- sentences ------------------------------------------------------------------------------------

_WORDS = frozenset(
    re.findall(
        r"\S+",
        """
    Finite INR P PI PI_between Q Rabs Rbar_plus Reqb Rleb Rltb Rmax Rmin Rpower Rpower_value
    Rtotal_order Rtrigo_def.exp Some X Y _ andb apply as assert assumption at_most
    at_most_converges at_most_diverges between by condition constant contrary
    converges_classes cos decided destruct else eventually ex_series exact exactly exfalso exp
    expand expands extended_classes extended_finite extended_masked false fun if intros lia ln
    logs m_infty mod n nat negb nth orb p periodic pieces pose proof revert rewrite rung sin
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


class _Sentences:
    """The sentences of a certificate, on one line each, without their full stops."""

    def __init__(self, text: str) -> None:
        body = text.lstrip()
        if body.startswith("(*"):
            comment, end, body = body[2:].partition("*)")
            if not end or "(*" in comment or '"' in comment:
                raise NotTheStatement("the certificate's comment holds a string or does not end")
        for hidden, what in (("(*", "a comment"), ("*)", "a comment"), ('"', "a string")):
            if hidden in body:
                raise NotTheStatement(f"the certificate has {what} behind its first words")
        if strange := re.search(r"[^\x20-\x7e\t\r\n]", body):
            raise NotTheStatement(f"the certificate has the character {strange.group()!r}")
        parts = re.split(r"\.(?=\s|$)", body)
        if parts[-1].strip():
            raise NotTheStatement("the certificate does not end with a sentence")
        self.sentences = [" ".join(part.split()) for part in parts[:-1]]
        self.at = 0

    def ended(self) -> bool:
        return self.at >= len(self.sentences)

    def next(self) -> str:
        return "" if self.ended() else self.sentences[self.at]

    def refuse(self) -> None:
        shown = self.next()[:60] or "its end"
        raise NotTheStatement(f"the certificate has {shown!r} where none belongs")

    def take(self, pattern: str) -> re.Match[str]:
        """The next sentence, which must be of this form."""
        found = re.fullmatch(pattern, self.next())
        if self.ended() or found is None:
            self.refuse()
        self.at += 1
        assert found is not None
        return found

    def proof(self, known: Mapping[str, str]) -> None:
        """Pass a proof: generated tactics, with generated words, and Qed."""
        self.take("Proof")
        while not self.ended() and (tactic := self.next().lstrip("{} ")) != "Qed":
            if tactic.split(" ")[0].split(";")[0] not in _TACTICS:
                raise NotTheStatement(f"the certificate has {tactic[:60]!r} within a proof")
            self.words(tactic, known)
            self.at += 1
        self.take("[{} ]*Qed")

    def words(self, sentence: str, known: Mapping[str, str]) -> None:
        """Check that every word is one of the generated ones, or a parameter."""
        at = 0
        while at < len(sentence):
            found = _WORD.match(sentence, at)
            word = sentence[at : at + 40] if found is None else found.group()
            allowed = word in _WORDS or word in known.values() or _NAME.fullmatch(word)
            if found is None or (re.match("[A-Za-z_]", word) and not allowed):
                raise NotTheStatement(f"the certificate has {word!r} within a proof")
            at = found.end()


# -- the theorem ----------------------------------------------------------------------------------

_SERIES = "ex_series (fun n => exp (p n))"
_NUMBER = r"-?\d+(?: / \d+)?"
_HYPOTHESIS = re.compile(rf"({_NUMBER}) (<=?) ([\w']+)|([\w']+) (<=?) ({_NUMBER})")


def _condition_of(
    verdict: str, assumed: bool, domains: Mapping[str, str], known: Mapping[str, str]
) -> Any:
    """Where the series converges: true, false, or relations between parameters."""
    if verdict in (_SERIES, f"~ {_SERIES}"):
        return S.true if verdict == _SERIES else S.false
    if assumed and verdict.startswith("(") and verdict.endswith(")"):
        verdict = verdict[1:-1]
    if not verdict.startswith(f"{_SERIES} <-> "):
        raise NotTheStatement(f"the certificate states {verdict!r}")
    said = verdict.removeprefix(f"{_SERIES} <-> ")
    return _Terms(said, domains, known).condition()


def _domains(hypotheses: list[str], known: Mapping[str, str]) -> dict[str, str]:
    """The domains that the hypotheses say: ends of the parameters, each once."""
    ends: dict[tuple[str, str], str] = {}
    names = {shown: name for name, shown in known.items()}
    for said in hypotheses:
        found = _HYPOTHESIS.fullmatch(said)
        low, above, over, under, below, high = found.groups() if found else [None] * 6
        side = (names.get(over or under or ""), "low" if over else "high")
        if found is None or side[0] is None or side in ends:
            raise NotTheStatement(f"the certificate has the hypothesis {said!r}")
        end = (low or high or "").replace(" ", "")
        closed = (above or below) == "<="
        ends[side[0], side[1]] = f"{'[' if closed else '('}{end}" if low else end + ")]"[closed]
    return {n: _domain(ends.get((n, "low"), "(-oo"), ends.get((n, "high"), "oo)")) for n in known}


def _domain(low: str, high: str) -> str:
    """A domain by its name where it has one; one that is empty would make any theorem true."""
    try:
        own = interval(f"{low}, {high}")
    except InputError as why:
        raise NotTheStatement(f"the certificate's hypotheses: {why}") from None
    return next((name for name, reals in DOMAINS.items() if reals == own), f"{low}, {high}")


# -- terms ----------------------------------------------------------------------------------------

_TOKEN = re.compile(r"\s*(Rtrigo_def\.exp|[A-Za-z_][A-Za-z0-9_']*|\d+|=>|/\\|\\/|<>|[<>]=?|\S)")
_OPERATORS = ("+", "-", "*", "/", "1 /", "&", "|", "<", "<=", ">", ">=", "==", "!=")
_JOINTS = {"/\\": "&", "\\/": "|", "=": "==", "<>": "!="}
_FUNCTIONS = {  # how many arguments, and how a formula has it
    "INR": (1, "{}"),
    "Finite": (1, "{}"),
    "ln": (1, "log({})"),
    "exp": (1, "exp({})"),
    "Rtrigo_def.exp": (1, "exp({})"),
    "cos": (1, "cos({})"),
    "sin": (1, "sin({})"),
    "Rabs": (1, "abs({})"),
    "Rpower": (2, "(({})^({}))"),
    "Rmax": (2, "Max({}, {})"),
    "Rmin": (2, "Min({}, {})"),
    "Rbar_plus": (2, "({} + {})"),
    "Rltb": (2, "Lt({}, {})"),
    "Rleb": (2, "Le({}, {})"),
    "Reqb": (2, "Eq({}, {})"),
    "negb": (1, "Not({})"),
    "andb": (2, "And({}, {})"),
    "orb": (2, "Or({}, {})"),
}
_NAMES = {"n": "n", "PI": "pi", "m_infty": "(-oo)", "true": "True", "false": "False"}


class _Terms:
    """A term of the prover, spelled as a formula.

    Tables and sums are read separately, and the formula has a name for each."""

    def __init__(self, text: str, domains: Mapping[str, str], known: Mapping[str, str]) -> None:
        self.tokens = [*_TOKEN.findall(text), ""]
        self.at = 0
        self.domains = dict(domains)
        self.names = _NAMES | {shown: name for name, shown in known.items()}
        self.held: dict[str, Expr] = {}

    def expression(self) -> Expr:
        return self.read(self.group(""))

    def condition(self) -> Any:
        return self.read(f"where({self.group('')}, 1, 0)").args[0][1]

    def read(self, text: str) -> Any:
        """The expression of a formula."""
        words = set(re.findall(r"\w+", text))
        domains = {name: domain for name, domain in self.domains.items() if name in words}
        try:
            found = formula(text, domains)
        except InputError as why:
            raise NotTheStatement(f"the certificate has a term that is no formula: {why}") from None
        return found.xreplace({s: self.held[s.name] for s in _held(found, self.held)})

    def take(self, *expected: str) -> str:
        token = self.tokens[self.at]
        if not token or (expected and token not in expected):
            raise NotTheStatement(f"the certificate has {token!r} within a term")
        self.at += 1
        return token

    def group(self, *ends: str) -> str:
        """The text before one of the tokens that end it."""
        parts: list[str] = []
        while self.tokens[self.at] not in ends:
            token = _JOINTS.get(word := self.take(), word)
            if token == "/" and (not parts or parts[-1] in _OPERATORS):
                parts.append("1 /")
            elif token in _OPERATORS:
                parts.append(token)
            elif token == "^" and parts:
                parts[-1] = f"(({parts[-1]})^({self.atom()}))"
            elif token == "mod":
                parts = [f"Mod({' '.join(parts)}, {self.atom()})"]
            elif token == "if":
                parts.append(self.pieces(ends))
            else:
                self.at -= 1
                parts.append(self.applied())
        return " ".join(parts)

    def pieces(self, ends: tuple[str, ...]) -> str:
        """`if c then t else if ...`, after its first word."""
        pieces = []
        while True:
            condition = self.group("then")
            self.take("then")
            pieces.append(f"({self.group('else')}, {condition})")
            self.take("else")
            if self.tokens[self.at] != "if":
                return f"Piecewise({', '.join(pieces)}, ({self.group(*ends)}, True))"
            self.take()

    def applied(self) -> str:
        """A function with its arguments, or an atom."""
        name = self.tokens[self.at]
        if name in ("nth", "sum_n_m"):
            self.at += 1
            shown = f"held{len(self.held)}"
            if shown in self.domains:
                raise NotTheStatement(f"the certificate has the parameter {shown}")
            self.held[shown] = self.table() if name == "nth" else self.finite_sum()
            self.domains[shown] = "real"
            return shown
        if name not in _FUNCTIONS:
            return self.atom()
        self.at += 1
        count, written = _FUNCTIONS[name]
        return written.format(*(self.atom() for _ in range(count)))

    def atom(self) -> str:
        token = self.take()
        if token == "(":
            inner = self.group(")")
            self.take(")")
            return f"({inner})"
        if not token.isdigit() and token not in self.names:
            raise NotTheStatement(f"the certificate has the name {token!r}")
        return self.names.get(token, token)

    def table(self) -> Expr:
        at = self.read(self.atom())
        entries: list[Expr] = []
        self.take("[")
        while not entries or self.take(";", "]") == ";":
            entries.append(self.read(self.group(";", "]")))
        return Lookup(at, sympy.Tuple(*entries), self.read(self.atom()))

    def finite_sum(self) -> Expr:
        for token in ("(", "fun", "i'", "=>"):
            self.take(token)
        if "i'" in self.names:
            raise NotTheStatement("the certificate has a sum within a sum")
        self.names["i'"], self.domains["counter"] = "counter", "nonnegative"
        body = self.read(self.group(")"))
        del self.names["i'"], self.domains["counter"]
        self.take(")")
        counter = Symbol("i'", integer=True, nonnegative=True)
        body = body.xreplace({s: counter for s in body.free_symbols if s.name == "counter"})
        return sympy.Sum(body, (counter, self.read(self.atom()), self.read(self.atom())))


def _held(e: Any, held: Mapping[str, Expr]) -> list[Any]:
    return [s for s in e.free_symbols if s.name in held]
