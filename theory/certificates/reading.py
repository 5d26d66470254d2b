"""Reading a certificate back: what its definition and theorem say.

The reader shares nothing with the writer, and accepts the generated grammar alone. A file begins
with one comment at most; behind it there is neither a comment nor a string, so that the prover's
lexer and this one see the same sentences. Every word of a proof is one that the writer has. The
definition of `p` and the theorem `verdict` are taken apart by the grammar of the prover's terms
below; the prover's functions have our values at every n (`totality`).

    term   := sum                              if c then t else t
    sum    := product (("+" | "-") product)*
    product:= signed (("*" | "/") signed)*
    signed := ("-" | "/") signed | power
    power  := applied ["^" natural]
    applied:= function atom* | atom
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import sympy
from sympy import Expr, Integer, S, Symbol

from farfield.theory.algebra.door import supervised
from farfield.theory.answers.errors import InputError
from farfield.theory.certificates.forms import NoCertificate, coq_name
from farfield.theory.certificates.totality import check_total
from farfield.theory.formula.limits import power
from farfield.theory.formula.parameters import DOMAINS, interval, parameter
from farfield.theory.functions.nodes import Lookup, n
from farfield.theory.functions.record import Refused


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
    farfield.theory.certificates.reading.NotTheStatement: the certificate has 'Admitted' ...
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
    symbols = {known[name]: parameter(name, domain) for name, domain in domains.items()}
    kind, body = re.fullmatch(r".*? : (R|Rbar) := (.*)", definition).groups()  # type: ignore[union-attr]
    formula = _Reader(body, symbols).whole(_Reader.term)
    if {s.name for s in formula.free_symbols - {n}} != set(known):
        raise NotTheStatement(f"the certificate has parameters {' '.join(names) or 'none'}")
    if (kind == "Rbar") != formula.has(S.NegativeInfinity):
        raise NotTheStatement("the certificate is about other values than the formula's")
    condition = _condition_of(verdict, bool(hypotheses), symbols)
    try:
        for e in (formula, *condition.atoms(sympy.core.relational.Relational)):
            for side in (e.lhs, e.rhs) if e.is_Relational else (e,):
                check_total(side)
    except NoCertificate as why:
        raise NotTheStatement(f"the certificate's p is no formula's: {why}") from None
    return Stated(module, formula, domains, condition, definition, theorem)


def compare(stated: Stated, formula: Expr, domains: Mapping[str, str], condition: Any) -> None:
    """Check that a certificate states this of this bias.

    Raises:
        NotTheStatement: it states something else.
    """
    if canonical(stated.formula) != canonical(formula):
        raise NotTheStatement(f"the certificate defines p(n) = {str(stated.formula)[:80]}")
    own = {s.name for s in formula.free_symbols - {n}}
    assumed = {name: interval(domain) for name, domain in stated.domains.items()}
    if assumed != {name: interval(domains[name]) for name in own}:
        raise NotTheStatement(f"the certificate assumes {dict(stated.domains) or 'nothing'}")
    if canonical(stated.condition) != canonical(condition):
        raise NotTheStatement(f"the certificate states {stated.theorem[:200]!r}")


# -- sentences ------------------------------------------------------------------------------------

_WORDS = frozenset(
    re.findall(
        r"\S+",
        """
    Finite INR PI PI_between Rabs Rbar_plus Reqb Rleb Rltb Rmax Rmin Rpower Rpower_one
    Rpower_value Rtotal_order Rtrigo_def.exp Some _ andb apply as assert assumption at_most
    at_most_minus at_most_mult at_most_mult_opp at_most_opp at_most_plus at_most_refl at_most_swap
    bounded by cancel class condition constant constant_by contrary converges_classes cos destruct
    else eventually eventually_equal eventually_less eventually_negative eventually_positive
    eventually_rbar_table eventually_table eventually_true ex_series exact exactly exfalso exists
    exp exp_above exp_below expands expands_abs expands_abs_opp expands_bounded expands_const
    expands_ext expands_n expo extended_classes extended_finite extended_masked false filter_and
    filter_imp fun gather gather_terms gathering if intros inverse inverse_between lead_converges
    lead_diverges led left less lia ln ln_above ln_below logarithm logs lower_bound lra m_infty mod
    mod_value nat natural_power negb nth orb p n pieces pose periodic product proj1 proj2 proof raw
    real_power reflexivity rest_diverges revert rewrite right root_between same sign_value sin
    split split_log sum sum_by sum_n_m then true unfold upper_bound wave_at_most wave_value with
    i'
    """,
    )
)
"""The words of a generated proof, but for parameters, numbers and names such as `E1`."""

_TACTICS = {"apply", "assert", "contrary", "destruct", "exfalso", "intros", "lra", "pose"}
_TACTICS |= {"rewrite", "split", "unfold"}
"""The words with which a sentence of a generated proof begins."""

_WORD = re.compile(r"[A-Za-z_][\w'.]*[\w']|[A-Za-z_]|\d+|\s+|/\\|\\/|[-+*/^()\[\]{};:,|<>=~?]|%nat")
_NAME = re.compile(r"[BCDEHPQSXY]\d*|case_\d{1,4}")


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
_COMPARED: dict[str, Any] = {
    ">": sympy.StrictGreaterThan,
    ">=": sympy.GreaterThan,
    "<": sympy.StrictLessThan,
    "<=": sympy.LessThan,
    "=": sympy.Equality,
    "<>": sympy.Unequality,
}


def _condition_of(verdict: str, assumed: bool, symbols: Mapping[str, Symbol]) -> Any:
    """Where the series converges: true, false, or a relation between parameters."""
    if verdict in (_SERIES, f"~ {_SERIES}"):
        return S.true if verdict == _SERIES else S.false
    if assumed and verdict.startswith("(") and verdict.endswith(")"):
        verdict = verdict[1:-1]
    if not verdict.startswith(f"{_SERIES} <-> "):
        raise NotTheStatement(f"the certificate states {verdict!r}")
    return _proposition(verdict.removeprefix(f"{_SERIES} <-> "), symbols)


def _domains(hypotheses: list[str], known: Mapping[str, str]) -> dict[str, str]:
    """The domains that the hypotheses say: ends of the parameters, each once."""
    reals = {shown: Symbol(name, real=True) for name, shown in known.items()}
    ends: dict[tuple[str, str], tuple[Any, bool]] = {}
    for said in hypotheses:
        name, side, end, closed = _end(_relation(said, reals), said)
        if (name, side) in ends:
            raise NotTheStatement(f"the certificate has the hypothesis {said!r} twice")
        ends[name, side] = end, closed
    return {name: _domain(ends.get((name, "low")), ends.get((name, "high"))) for name in known}


def _end(r: Any, said: str) -> tuple[str, str, Any, bool]:
    """(parameter, low or high, the end, closed) of `0 < r1` or `q <= 2`."""
    if isinstance(r, (sympy.StrictLessThan, sympy.LessThan)):
        closed = isinstance(r, sympy.LessThan)
        if r.lhs.is_Symbol and r.rhs.is_Rational:
            return r.lhs.name, "high", r.rhs, closed
        if r.rhs.is_Symbol and r.lhs.is_Rational:
            return r.rhs.name, "low", r.lhs, closed
    raise NotTheStatement(f"the certificate has the hypothesis {said!r}")


def _domain(low: tuple[Any, bool] | None, high: tuple[Any, bool] | None) -> str:
    """A domain as it is written; one that is empty would make any theorem true."""
    written = (
        f"{'[' if low and low[1] else '('}{low[0] if low else '-oo'}, "
        f"{high[0] if high else 'oo'}{']' if high and high[1] else ')'}"
    )
    try:
        ends = interval(written)
    except InputError as why:
        raise NotTheStatement(f"the certificate's hypotheses: {why}") from None
    return next((name for name in DOMAINS if interval(name) == ends), written)


def _proposition(text: str, symbols: Mapping[str, Symbol]) -> Any:
    r"""Comparisons joined by /\ and \/."""
    for joint, build in ((" \\/ ", sympy.Or), (" /\\ ", sympy.And)):
        parts = _split(text, joint)
        if len(parts) > 1:
            return build(*(_proposition(_unwrapped(p), symbols) for p in parts), evaluate=False)
    return _relation(text, symbols)


def _split(text: str, joint: str) -> list[str]:
    """Split at a joint that stands outside all brackets."""
    depth, parts, begin = 0, [], 0
    for at, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0 and text.startswith(joint, at):
            parts.append(text[begin:at])
            begin = at + len(joint)
    return [*parts, text[begin:]]


def _unwrapped(text: str) -> str:
    """Without the brackets around a whole junction."""
    return (
        text[1:-1]
        if text.startswith("(")
        and len(_split(text[1:-1], "\0")) == 1
        and (" /\\ " in text or " \\/ " in text)
        else text
    )


def _relation(text: str, symbols: Mapping[str, Symbol]) -> Any:
    """One comparison; anything else in the place of a proposition is refused."""
    parts = re.fullmatch(r"(.*?) (<=|>=|<>|<|>|=) (.*)", text)
    if parts is None:
        raise NotTheStatement(f"the certificate has the proposition {text[:60]!r}")
    left, sign, right = parts.groups()
    sides = (_Reader(t, symbols).whole(_Reader.term) for t in (left, right))
    return _COMPARED[sign](*sides, evaluate=False)


# -- terms ----------------------------------------------------------------------------------------

MAX_DIGITS = 1000
_TOKEN = re.compile(r"\s*(Rtrigo_def\.exp|[A-Za-z_][A-Za-z0-9_']*|\d+|=>|[-+*/^()\[\];])")


class _Reader:
    """Terms of the prover, as expressions."""

    def __init__(self, text: str, symbols: Mapping[str, Symbol]) -> None:
        self.text = text
        self.symbols: dict[str, Expr] = dict(symbols)
        self.tokens: list[str] = []
        at = 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            if found is None:
                raise NotTheStatement(f"the certificate has the term {text[at : at + 40]!r}")
            if len(found.group(1)) > MAX_DIGITS:
                raise NotTheStatement(f"the certificate has a number of over {MAX_DIGITS} digits")
            self.tokens.append(found.group(1))
            at = found.end()
        self.at = 0

    @property
    def token(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def accept(self, *tokens: str) -> str:
        if self.token and self.token in tokens:
            self.at += 1
            return self.tokens[self.at - 1]
        return ""

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise NotTheStatement(f"the certificate has {self.token!r} instead of {token!r}")

    def whole(self, part: Callable[[_Reader], Any]) -> Any:
        value = part(self)
        if self.token:
            raise NotTheStatement(f"the certificate has {self.token!r} after a term")
        return value

    def term(self) -> Any:
        if self.accept("if"):
            condition = self.condition()
            self.expect("then")
            value = self.term()
            self.expect("else")
            return _piecewise(value, condition, self.term())
        terms = [self.product()]
        while op := self.accept("+", "-"):
            other = self.product()
            terms.append(other if op == "+" else -other)
        return supervised(sympy.Add, *terms) if len(terms) > 1 else terms[0]

    def product(self) -> Any:
        factors = [self.signed()]
        while op := self.accept("*", "/"):
            other = self.signed()
            factors.append(other if op == "*" else 1 / other)
        return supervised(sympy.Mul, *factors) if len(factors) > 1 else factors[0]

    def signed(self) -> Any:
        if self.accept("-"):
            return -self.signed()
        if self.accept("/"):
            return 1 / self.signed()
        base = self.applied()
        return _power(base, self.natural()) if self.accept("^") else base

    def applied(self) -> Any:
        name = self.token
        if name in _FUNCTIONS:
            self.at += 1
            count, build = _FUNCTIONS[name]
            arguments = [self.atom() for _ in range(count)]
            return build(*arguments) if build is _power else supervised(build, *arguments)
        special = {"INR": self.index, "nth": self.table, "sum_n_m": self.finite_sum}.get(name)
        if special is not None:
            self.at += 1
            return special()
        return self.atom()

    def atom(self) -> Any:
        if self.accept("("):
            value = self.term()
            self.expect(")")
            return value
        token = self.token
        self.at += 1
        if token.isdigit():
            return Integer(token)
        if token == "PI":
            return S.Pi
        if token == "m_infty":
            return S.NegativeInfinity
        symbol = self.symbols.get(token)
        if symbol is None:
            raise NotTheStatement(f"the certificate has the name {token!r}")
        return symbol

    def natural(self) -> Any:
        """A natural number: n, a counter, a literal, or a n + b in brackets."""
        if self.accept("("):
            value = self.naturals()
            self.expect(")")
            return value
        token = self.token
        self.at += 1
        if token.isdigit():
            return Integer(token)
        if token == "n":
            return n
        if token in self.symbols and self.symbols[token].is_integer:
            return self.symbols[token]
        raise NotTheStatement(f"the certificate has {token!r} where a natural number belongs")

    def naturals(self) -> Any:
        value = self.natural()
        while op := self.accept("+", "*", "mod"):
            other = self.natural()
            if op == "*":
                value = value * other
            else:
                value = value + other if op == "+" else supervised(sympy.Mod, value, other)
        return value

    def index(self) -> Any:
        return self.natural()

    def table(self) -> Any:
        at = self.natural()
        self.expect("[")
        entries = []
        while self.token != "]":
            entries.append(self.term())
            if not self.accept(";"):
                break
        self.expect("]")
        return Lookup(at, sympy.Tuple(*entries), self.atom())

    def finite_sum(self) -> Any:
        self.expect("(")
        self.expect("fun")
        name = "i'"
        self.expect(name)
        if name in self.symbols:
            raise NotTheStatement("the certificate has a sum within a sum")
        self.expect("=>")
        counter = Symbol(name, integer=True, nonnegative=True)
        self.symbols[name] = counter
        body = self.term()
        del self.symbols[name]
        self.expect(")")
        return supervised(sympy.Sum, body, (counter, self.natural(), self.natural()))

    def condition(self) -> Any:
        if self.accept("("):
            value = self.condition()
            self.expect(")")
            return value
        name = self.token
        self.at += 1
        if name in ("true", "false"):
            return S.true if name == "true" else S.false
        if name in _COMPARISONS:
            return _COMPARISONS[name](self.atom(), self.atom(), evaluate=False)
        if name == "negb":
            return sympy.Not(self.condition(), evaluate=False)
        if name in ("andb", "orb"):
            build = sympy.And if name == "andb" else sympy.Or
            return build(self.condition(), self.condition(), evaluate=False)
        raise NotTheStatement(f"the certificate has the condition {name!r}")


def _power(base: Any, exponent: Any) -> Any:
    """A power, unless its value is too large to be written down."""
    try:
        return power(base, exponent)
    except Refused as why:
        raise NotTheStatement(f"the certificate has a power that {why}") from None


_FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "ln": (1, sympy.log),
    "exp": (1, sympy.exp),
    "cos": (1, sympy.cos),
    "sin": (1, sympy.sin),
    "Rabs": (1, sympy.Abs),
    "Rtrigo_def.exp": (1, sympy.exp),
    "Rpower": (2, _power),
    "Rmax": (2, sympy.Max),
    "Rmin": (2, sympy.Min),
    "Finite": (1, lambda a: a),
    "Rbar_plus": (2, sympy.Add),
}
_COMPARISONS = {"Rltb": sympy.Lt, "Rleb": sympy.Le, "Reqb": sympy.Eq}


def _piecewise(value: Any, condition: Any, other: Any) -> Any:
    """An if as a piece before those of its else."""
    rest = other.args if isinstance(other, sympy.Piecewise) else ((other, S.true),)
    return supervised(sympy.Piecewise, (value, condition), *rest, evaluate=False)


# -- comparing ------------------------------------------------------------------------------------


def canonical(e: Any) -> Any:
    """An expression in one of its forms: comparisons turned to < and <=, joints flattened, the
    counters of sums renamed, every node built anew."""
    if not getattr(e, "args", ()):
        return e
    if isinstance(e, sympy.Sum):
        index, low, high = e.limits[0]
        counter = Symbol("i", integer=True, nonnegative=True)
        return sympy.Sum(canonical(e.function.xreplace({index: counter})), (counter, low, high))
    args = [canonical(a) for a in e.args]
    if isinstance(e, (sympy.StrictGreaterThan, sympy.GreaterThan)):
        turned = sympy.StrictLessThan if isinstance(e, sympy.StrictGreaterThan) else sympy.LessThan
        return turned(args[1], args[0], evaluate=False)
    if isinstance(e, sympy.Unequality):
        return sympy.Not(_equal(*args), evaluate=False)
    if isinstance(e, sympy.Equality):
        return _equal(*args)
    if isinstance(e, (sympy.And, sympy.Or)):
        flat = [x for a in args for x in (a.args if isinstance(a, e.func) else (a,))]
        return e.func(*sorted(set(flat), key=sympy.default_sort_key), evaluate=False)
    if isinstance(e, (sympy.core.relational.Relational, sympy.Not, sympy.Piecewise)):
        return e.func(*args, evaluate=False)
    return e.func(*args)


def _equal(a: Any, b: Any) -> Any:
    """An equation with sides in a fixed order: SymPy compares them as written."""
    return sympy.Eq(*sorted((a, b), key=sympy.default_sort_key), evaluate=False)
