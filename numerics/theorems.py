"""Check the relations of a theorem's proof exactly, for all values of their symbols.

Symbols without a sign are real, the others positive, and so is what has a logarithm or a symbolic
exponent. Exponentials, such powers, sines and cosines are rewritten over independent generators
(`exp(L)`, `x^r`, `exp(i u)`), in which both sides are rational functions; then

* an identity holds if the numerator of left - right is the zero polynomial (`algebra`);
* an inequality holds if numerator and denominator of right - left have no negative coefficient
  (`coefficients`), or if right - left is identical to a gap that is a sum of products of terms
  plainly not negative (`gap`), or, between constants, if balls decide it (`balls`);
* a limit holds if, in the generator that grows, the numerator of left - right has the lower degree
  and the leading coefficient of the denominator has terms of one sign (`degrees`).

What a rule accepts is true; what is true, but not seen by any of them, fails. The sentences between
the relations are arguments for a reader: they are listed as not checked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import sympy
from sympy import Dummy, Expr, I, Poly, S, cos, exp, log, sin

from farfield.theory.answers.answer import Result
from farfield.theory.answers.blocks import Block, sentence
from farfield.theory.statements import Theorem, TheoremStep
from farfield.theory.theorems import theorem
from farfield.theory.values import enclose


@dataclass(frozen=True)
class Verification(Result):
    """Which steps of a proof were checked, how, and which were not.

    Fields:
        name: of the theorem.
        checked: 1-based numbers of the steps with a relation that holds, each with the rule.
        failed: those whose relation no rule decides, each with what is left of it.
        argued: numbers of the steps in words, which no program checks.
    """

    name: str
    checked: Mapping[int, str]
    failed: Mapping[int, str]
    argued: tuple[int, ...]
    label: str = "theorem"

    @property
    def passed(self) -> bool:
        """No relation failed."""
        return not self.failed

    def blocks(self) -> Sequence[Block]:
        if self.failed:
            said = "; ".join(f"step {k} fails: {why}" for k, why in self.failed.items())
            return (sentence("{said}.", said=said),)
        steps = ", ".join(f"{k} ({how})" for k, how in self.checked.items()) or "none"
        argued = ", ".join(map(str, self.argued)) or "none"
        said = "Checked exactly, for all values: steps {steps}; in words alone: steps {argued}."
        return (sentence(said, self.label, steps=steps, argued=argued),)


def verify(subject: Theorem) -> Verification:
    """Check every relation of a theorem's proof.

    >>> print(verify(theorem("resolution-identity")))
    Checked exactly, for all values: steps 1 (algebra); in words alone: steps 2.  [theorem]
    """
    checked: dict[int, str] = {}
    failed: dict[int, str] = {}
    argued = []
    for number, step in enumerate(subject.proof.steps, 1):
        if step.rule == "sentence":
            argued.append(number)
            continue
        assert isinstance(step, TheoremStep)
        how, why = _RULES[step.rule](step.values)
        (checked if how else failed)[number] = how or why
    return Verification(subject.name, checked, failed, tuple(argued))


def vanishes(e: Any) -> bool:
    """Whether an expression is 0 for all values of its symbols, by algebra alone.

    False says that it is not identically 0, or not seen to be.

    >>> u, v = sympy.symbols("u v", real=True)
    >>> vanishes(cos(u) * cos(v) + sin(u) * sin(v) - cos(u - v)), vanishes(cos(u) - 1)
    (True, False)
    """
    return _Field().fraction(sympy.sympify(e))[0] == 0


@dataclass
class _Field:
    """Expressions as rational functions of independent generators."""

    roots: dict[Expr, Dummy] = field(default_factory=dict)  # exp(m) by the monomial m
    logs: dict[Dummy, Expr] = field(default_factory=dict)  # what each logarithm is of

    def fraction(self, e: Expr) -> tuple[Expr, Expr]:
        """Numerator and denominator, polynomials in the generators."""
        lowered = self._lower(e.doit())
        for root in self.roots.values():
            powers = [p for p in lowered.atoms(sympy.Pow) if p.base == root]
            common = math.lcm(*(int(p.exp.q) for p in powers))
            whole = {p: root ** (common * p.exp) for p in powers} | {root: root**common}
            lowered = lowered.xreplace(whole)
        top, bottom = sympy.fraction(sympy.together(lowered))
        return sympy.expand(top), sympy.expand(bottom)

    def grown(self, e: Expr) -> Expr:
        """The generator that an expression such as `k` or `k^r` is."""
        (generator,) = self._lower(e).free_symbols
        return generator

    def _lower(self, e: Expr) -> Expr:
        if isinstance(e, cos):
            return (self._exp(I * e.args[0]) + self._exp(-I * e.args[0])) / 2
        if isinstance(e, sin):
            return (self._exp(I * e.args[0]) - self._exp(-I * e.args[0])) / (2 * I)
        if isinstance(e, exp):
            return self._exp(e.args[0])
        if isinstance(e, log):
            return self._log(e.args[0])
        if e.is_Pow and not e.exp.is_Integer:
            return self._exp(e.exp * self._log(e.base))
        if e.args:
            return e.func(*map(self._lower, e.args), evaluate=True)
        return e

    def _exp(self, exponent: Expr) -> Expr:
        """A product of powers of generators, one a monomial of the exponent."""
        result = S.One
        for term in sympy.Add.make_args(sympy.expand(exponent)):
            number, monomial = term.as_coeff_Mul(rational=True)
            if monomial in self.logs and number.is_Integer:
                result *= self.logs[monomial] ** number
            elif monomial == 1:
                result *= exp(number)
            else:
                positive = None if monomial.has(I) else True
                root = Dummy(f"exp({monomial})", positive=positive)
                result *= self.roots.setdefault(monomial, root) ** number
        return result

    def _log(self, e: Expr) -> Expr:
        """The logarithm of a positive expression, a sum over logarithms that are kept as they
        are."""
        if isinstance(e, exp):
            return e.args[0]
        if e.is_Mul:
            return sympy.Add(*map(self._log, e.args))
        if e.is_Pow:
            return e.exp * self._log(e.base)
        if e == 1:
            return S.Zero
        lowered = self._lower(e)
        known = next((d for d, of in self.logs.items() if of == lowered), None)
        if known is None:
            known = Dummy(f"log({e})", real=True)
            self.logs[known] = lowered
        return known


def _identity(values: Mapping[str, Any]) -> tuple[str, str]:
    rest = _Field().fraction(values["left"] - values["right"])[0]
    return ("algebra", "") if rest == 0 else ("", f"left - right has the numerator {rest}")


def _inequality(values: Mapping[str, Any]) -> tuple[str, str]:
    left, right = values["left"], values["right"]
    if "gap" in values:
        gap = values["gap"]
        if not gap.is_nonnegative:
            return "", f"the difference {gap} is not plainly >= 0"
        return ("gap", "") if vanishes(right - left - gap) else ("", f"right - left is not {gap}")
    if not (left.free_symbols | right.free_symbols):
        ball = enclose(right - left, 128)
        return ("balls", "") if ball is not None and ball >= 0 else ("", f"right - left is {ball}")
    top, bottom = _Field().fraction(right - left)
    if _one_sign(top * bottom):
        return "coefficients", ""
    return "", f"right - left is {top} over {bottom}"


def _one_sign(e: Expr) -> bool:
    """Whether a polynomial in positive symbols has no negative coefficient."""
    symbols = sorted(e.free_symbols, key=str)
    coefficients = Poly(e, *symbols).coeffs() if symbols else [e]
    return all(s.is_positive for s in symbols) and all(c.is_nonnegative for c in coefficients)


def _limit(values: Mapping[str, Any]) -> tuple[str, str]:
    space = _Field()
    generator = space.grown(values["at"])
    top, bottom = space.fraction(values["left"] - values["right"])
    if top == 0:
        return "algebra", ""
    above, below = Poly(top, generator), Poly(bottom, generator)
    leading = below.LC()
    if above.degree() < below.degree() and (_one_sign(leading) or _one_sign(-leading)):
        return "degrees", ""
    return "", f"left - right is {top} over {bottom}"


def never_exceeds(left: Any, right: Any, gap: Any = None) -> bool:
    """Whether left <= right for all values of the symbols, as an inequality of a proof is decided.

    >>> x = sympy.Symbol("x", positive=True)
    >>> never_exceeds(x / (1 + x), x), never_exceeds(x, x / (1 + x))
    (True, False)
    """
    values = {"left": sympy.sympify(left), "right": sympy.sympify(right)}
    return bool(_inequality(values if gap is None else values | {"gap": gap})[0])


@lru_cache(maxsize=64)
def proved(name: str) -> bool:
    """Whether the proof of a theorem has relations and all of them hold.

    >>> proved("window-error"), proved("theorem-0.5")  # the latter is argued in words alone
    (True, False)
    """
    found = verify(theorem(name))
    return found.passed and bool(found.checked)


_RULES = {"identity": _identity, "inequality": _inequality, "limit": _limit}
