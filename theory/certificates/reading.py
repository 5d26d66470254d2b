"""Reading a certificate back: what its definition and theorem say, compared with the formula.

The reader shares nothing with the writer. It accepts exactly the sentences that a certificate has
outside its proofs, takes the definition of `p` and the theorem `verdict` apart by the grammar of
the prover's terms below, and compares with the formula, its domains and the condition.

    term   := sum                              if c then t else t
    sum    := product (("+" | "-") product)*
    product:= signed (("*" | "/") signed)*
    signed := ("-" | "/") signed | power
    power  := applied ["^" natural]
    applied:= function atom* | atom
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy
from sympy import Expr, Integer, S, Symbol

from farfield.theory.answers.errors import InputError
from farfield.theory.formula.parameters import interval
from farfield.theory.functions.nodes import Lookup, n

Bias = tuple[Expr, Mapping[str, str], Any]  # formula, domains, condition


class NotTheStatement(InputError):
    """A certificate that does not say what it should; one line says where."""


def read_back(text: str, biases: Sequence[Bias]) -> list[str]:
    """Check that a certificate states the verdicts on these biases; its theorems, as they stand.

    Raises:
        NotTheStatement: it states something else, or contains what no certificate does.

    >>> text = '''From Farfield Require Import Certificate.
    ... Open Scope R_scope.
    ... Definition p (n : nat) : R := - ln (INR n + 1).
    ... Theorem verdict : ~ ex_series (fun n => exp (p n)).
    ... Proof. Qed.'''
    >>> read_back(text, [(-sympy.log(n + 1), {}, S.false)])
    ['Theorem verdict : ~ ex_series (fun n => exp (p n)).']
    >>> read_back(text, [(-2*sympy.log(n + 1), {}, S.true)])
    Traceback (most recent call last):
        ...
    farfield.theory.certificates.reading.NotTheStatement: the certificate defines p(n) = ...
    """
    sentences = list(_sentences(_without_comments(text)))
    at = 0

    def take(pattern: str) -> re.Match[str]:
        nonlocal at
        found = re.fullmatch(pattern, sentences[at]) if at < len(sentences) else None
        if found is None:
            shown = sentences[at][:60] if at < len(sentences) else "its end"
            raise NotTheStatement(f"the certificate has {shown!r} where none belongs")
        at += 1
        return found

    extended = take("From Farfield Require Import Certificate( Extended)?").group(1) is not None
    take("Open Scope R_scope")
    statements = []
    for formula, domains, condition in biases:
        names = sorted(s.name for s in formula.free_symbols - {n})
        module = take(r"Module (\w+)").group(1) if len(biases) > 1 else None
        if names:
            take("Section Verdict")
            variables = take("Variables ([a-zA-Z0-9_' ]+) : R").group(1).split()
            if [v.rstrip("'") for v in variables] != names:
                raise NotTheStatement(f"the certificate has parameters {' '.join(variables)}")
        kind, body = take(r"Definition p \(n : nat\) : (R|Rbar) := (.*)").groups()
        symbols = {s.name: s for s in formula.free_symbols - {n}}
        defined = _Reader(body, symbols).whole(_Reader.term)
        if (kind == "Rbar") != formula.has(S.NegativeInfinity) or (kind == "Rbar" and not extended):
            raise NotTheStatement("the certificate is about other values than the formula's")
        if canonical(defined) != canonical(formula):
            raise NotTheStatement(f"the certificate defines p(n) = {str(defined)[:80]}")
        while at < len(sentences) and re.match(r"Theorem case_\d+ ", sentences[at]):
            take(r"Theorem case_\d+ : .*")
            at = _past_proof(sentences, at)
        said = take("Theorem verdict : (.*)").group(1)
        _check_verdict(said, symbols, domains, condition)
        statements.append(f"Theorem verdict : {said}.")
        at = _past_proof(sentences, at)
        if names:
            take("End Verdict")
        if module is not None:
            take(f"End {module}")
    if at != len(sentences):
        take("$")
    return statements


# -- sentences ------------------------------------------------------------------------------------


def _without_comments(text: str) -> str:
    """The text without its comments, which may be nested."""
    depth, kept = 0, []
    for token in re.split(r"(\(\*|\*\))", text):
        depth += (token == "(*") - (token == "*)")
        if depth == 0 and token != "*)":
            kept.append(token)
    if depth:
        raise NotTheStatement("the certificate has a comment that does not end")
    return "".join(kept)


def _sentences(text: str) -> list[str]:
    """The sentences, on one line each, without their full stops."""
    parts = re.split(r"\.(?=\s|$)", text)
    if parts[-1].strip():
        raise NotTheStatement("the certificate does not end with a sentence")
    return [" ".join(part.split()) for part in parts[:-1]]


def _past_proof(sentences: list[str], at: int) -> int:
    """The place after a proof, whose sentences are tactics: none is a command."""
    if at >= len(sentences) or sentences[at] != "Proof":
        raise NotTheStatement("the certificate has a theorem without a proof")
    at += 1
    while at < len(sentences) and (tactic := sentences[at].lstrip("{} ")) != "Qed":
        if not re.match("[a-z]|$", tactic) or "admit" in tactic:
            raise NotTheStatement(f"the certificate has {tactic[:60]!r} within a proof")
        at += 1
    if at >= len(sentences):
        raise NotTheStatement("the certificate has a proof without an end")
    return at + 1


# -- the theorem ----------------------------------------------------------------------------------

_SERIES = r"ex_series \(fun n => exp \(p n\)\)"
_COMPARED: dict[str, Any] = {
    ">": sympy.StrictGreaterThan,
    ">=": sympy.GreaterThan,
    "<": sympy.StrictLessThan,
    "<=": sympy.LessThan,
    "=": sympy.Equality,
    "<>": sympy.Unequality,
}


def _check_verdict(
    said: str, symbols: Mapping[str, Symbol], domains: Mapping[str, str], condition: Any
) -> None:
    """The hypotheses are the domains of the parameters, the rest is the verdict."""
    *hypotheses, verdict = re.split(r" -> (?!.*<->.* -> )", said)
    wanted = {
        (name, low, closed)
        for name in symbols
        for bound in [interval(domains[name])]
        for low, closed in _ends(bound)
    }
    found = {_domain_end(_relation(h, symbols), h) for h in hypotheses}
    if found != wanted:
        raise NotTheStatement(f"the certificate assumes {' and '.join(hypotheses) or 'nothing'}")
    if condition == S.true or condition == S.false:
        expected = ("" if condition == S.true else "~ ") + _SERIES
        if not re.fullmatch(expected, verdict):
            raise NotTheStatement(f"the certificate states {verdict!r}")
        return
    parts = re.fullmatch(rf"\(?{_SERIES} <-> (.*?)\)?", verdict)
    if parts is None:
        raise NotTheStatement(f"the certificate states {verdict!r}")
    stated = _proposition(parts.group(1), symbols)
    if canonical(stated) != canonical(condition):
        raise NotTheStatement(f"the certificate states the condition {stated}")


def _ends(bound: tuple[Any, ...]) -> list[tuple[Any, bool]]:
    """The finite ends of a domain, each with whether it belongs to it."""
    low, high, closed_low, closed_high = bound
    ends = [(("low", low), closed_low)] if low.is_finite else []
    return [*ends, *([(("high", high), closed_high)] if high.is_finite else [])]


def _domain_end(r: Any, shown: str) -> tuple[str, Any, bool]:
    """(parameter, ("low" or "high", end), closed) of `0 < r1` or `q <= 2`."""
    closed = isinstance(r, (sympy.LessThan, sympy.GreaterThan))
    if isinstance(r, (sympy.StrictLessThan, sympy.LessThan)):
        if r.lhs.is_Symbol and not r.rhs.free_symbols:
            return r.lhs.name, ("high", r.rhs), closed
        if r.rhs.is_Symbol and not r.lhs.free_symbols:
            return r.rhs.name, ("low", r.lhs), closed
    raise NotTheStatement(f"the certificate has the hypothesis {shown!r}")


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

_TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_']*|\d+|=>|[-+*/^()\[\];])")


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
        return sympy.Add(*terms) if len(terms) > 1 else terms[0]

    def product(self) -> Any:
        factors = [self.signed()]
        while op := self.accept("*", "/"):
            other = self.signed()
            factors.append(other if op == "*" else 1 / other)
        return sympy.Mul(*factors) if len(factors) > 1 else factors[0]

    def signed(self) -> Any:
        if self.accept("-"):
            return -self.signed()
        if self.accept("/"):
            return 1 / self.signed()
        base = self.applied()
        return base ** self.natural() if self.accept("^") else base

    def applied(self) -> Any:
        name = self.token
        if name in _FUNCTIONS:
            self.at += 1
            count, build = _FUNCTIONS[name]
            return build(*(self.atom() for _ in range(count)))
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
        symbol = self.symbols.get(token.rstrip("'"))
        if symbol is None or not token:
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
                value = value + other if op == "+" else sympy.Mod(value, other)
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
        name = self.token
        self.at += 1
        self.expect("=>")
        counter = Symbol(name, integer=True, nonnegative=True)
        self.symbols[name] = counter
        body = self.term()
        del self.symbols[name]
        self.expect(")")
        return sympy.Sum(body, (counter, self.natural(), self.natural()))

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


_FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "ln": (1, sympy.log),
    "exp": (1, sympy.exp),
    "cos": (1, sympy.cos),
    "sin": (1, sympy.sin),
    "Rabs": (1, sympy.Abs),
    "Rpower": (2, sympy.Pow),
    "Rmax": (2, sympy.Max),
    "Rmin": (2, sympy.Min),
    "Finite": (1, lambda a: a),
    "Rbar_plus": (2, sympy.Add),
}
_COMPARISONS = {"Rltb": sympy.Lt, "Rleb": sympy.Le, "Reqb": sympy.Eq}


def _piecewise(value: Any, condition: Any, other: Any) -> Any:
    """An if as a piece before those of its else."""
    rest = other.args if isinstance(other, sympy.Piecewise) else ((other, S.true),)
    return sympy.Piecewise((value, condition), *rest, evaluate=False)


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
