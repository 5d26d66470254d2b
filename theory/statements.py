"""Statements with proofs: what a theorem is here, and the steps it is written with.

A step is a sentence, and where it computes something, the relation it uses: an identity, an
inequality or a limit between two expressions in symbols with stated ranges. `verify` of
`farfield.numerics.theorems` decides every relation exactly, for all values of its symbols; the
sentences between them it does not check, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy
from sympy import Expr, Function, Symbol, exp

from farfield.theory.answers.answer import Result, plain
from farfield.theory.answers.blocks import Block, note, sentence
from farfield.theory.answers.notation import Text, as_text, words
from farfield.theory.proofs import Proof, Step

_SIGNS = {"identity": "=", "inequality": "<=", "limit": "->"}


@dataclass(frozen=True)
class TheoremStep(Step):
    """A step of a theorem's proof.

    `rule` is `sentence`, `identity`, `inequality` (left <= right) or `limit` (left -> right as the
    value `at` grows without bound); `values` has `says` and, but for a sentence, `left` and
    `right`; an inequality may have `gap`, right - left written so that it is plainly not negative.
    Symbols are positive unless they say otherwise.
    """

    def words(self) -> Text:
        says = str(self.values["says"])
        if self.rule == "sentence":
            return as_text(says)
        relation = words(
            "`{left} " + _SIGNS[self.rule] + " {right}`",
            left=self.values["left"],
            right=self.values["right"],
        )
        if self.rule == "limit":
            relation = (*relation, *words(" as {at} grows", at=self.values["at"]))
        if "gap" in self.values:
            relation = (*relation, *words(", by the difference {gap}", gap=self.values["gap"]))
        return (*as_text(f"{says}: "), *relation)


@dataclass(frozen=True)
class Theorem(Result):
    """A statement with its proof.

    Fields:
        name, title, source: what it is called and where it stands (`ours`: in none of the papers).
        hypotheses, statement: in words.
        proof: the steps in order.
        label: `theorem`.
    """

    name: str
    title: str
    source: str
    hypotheses: str
    statement: str
    proof: Proof
    label: str = "theorem"

    def blocks(self) -> Sequence[Block]:
        return (
            sentence("{title} ({source}).", self.label, title=self.title, source=self.source),
            note("Let {hypotheses}.", hypotheses=self.hypotheses),
            note("Then {statement}.", statement=self.statement),
            self.proof.block(),
        )

    def latex(self) -> str:
        """The theorem as a LaTeX fragment."""
        return "\n".join(
            [
                rf"\paragraph{{{self.title}}} ({self.source}) {_tex(f'Let {self.hypotheses}.')} "
                rf"\emph{{{_tex(f'Then {self.statement}.')}}}",
                self.proof.latex(),
            ]
        )

    def fields(self) -> dict[str, Any]:
        return {
            k: plain(getattr(self, k))
            for k in ("name", "title", "source", "hypotheses", "statement", "label")
        } | {"proof": self.proof.fields()}


_ESCAPED = {"_": r"\_", "^": r"\^{}", "{": r"\{", "}": r"\}", "%": r"\%", "&": r"\&", "#": r"\#"}


def _tex(words: str) -> str:
    """Words as LaTeX text, their relation signs in math mode."""
    signs = {"<=>": r"\iff", "<=": r"\le", ">=": r"\ge", "->": r"\to", "<": "<", ">": ">"}
    escaped = "".join(_ESCAPED.get(c, c) for c in words)
    return re.sub("<=>|<=|>=|->|<|>", lambda found: f"${signs[found.group()]}$", escaped)


class excess(Function):
    """`exp(x) - 1 - x`, which is not negative: `x^2` times the integral of `(1 - s) e^{s x}` over s
    from 0 to 1."""

    def doit(self, **hints: Any) -> Expr:
        (x,) = self.args
        return exp(x) - 1 - x

    def _eval_is_nonnegative(self) -> bool | None:
        return True if self.args[0].is_extended_real else None


def symbol(name: str) -> Expr:
    """A positive symbol."""
    return Symbol(name, positive=True)


def slope(e: Expr, x: Expr) -> Expr:
    """The derivative, left standing so that it is shown and checked."""
    return sympy.Derivative(e, x)


def product(left: Expr, right: Expr) -> Expr:
    """A product that is shown and checked as it stands."""
    return sympy.Mul(left, right, evaluate=False)


def says(words: str) -> TheoremStep:
    """A step in words, which no program checks."""
    return TheoremStep("sentence", {"says": words})


def equal(words: str, left: Any, right: Any) -> TheoremStep:
    """An identity."""
    return TheoremStep(
        "identity", {"says": words, "left": sympy.sympify(left), "right": sympy.sympify(right)}
    )


def at_most(words: str, left: Any, right: Any, gap: Any = None) -> TheoremStep:
    """An inequality, with the gap where it is shown."""
    values = {"says": words, "left": sympy.sympify(left), "right": sympy.sympify(right)}
    return TheoremStep(
        "inequality", values if gap is None else values | {"gap": sympy.sympify(gap)}
    )


def tends(words: str, left: Any, right: Any, at: Any) -> TheoremStep:
    """A limit, as the value `at` grows without bound."""
    return TheoremStep(
        "limit",
        {"says": words, "left": sympy.sympify(left), "right": sympy.sympify(right), "at": at},
    )


B, T, L, V, S, I, O = (symbol(k) for k in ("B", "T", "L", "V", "S", "I", "O"))
A, X, Y, EPS, M, Q, LAM = (symbol(k) for k in ("A", "x", "y", "epsilon", "m", "q", "lambda"))
U, W = Symbol("u", real=True), Symbol("w", real=True)
J, K, R, Z, H, N = (symbol(k) for k in ("j", "k", "r", "z", "h", "N"))
THETA, PLACE, OFFSET = Symbol("theta", real=True), Symbol("n", real=True), Symbol("r", real=True)

ROW = "a row see the keys at distances 0 .. i-1, content logits within [-L, L], values of norm <= V"
