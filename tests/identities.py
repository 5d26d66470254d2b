"""Identities between expressions, decided for all values of their symbols.

Symbols without a sign are real, the others positive. The argument of a logarithm and the base of a
symbolic exponent are positive too. Exponentials, such powers, sines and cosines are rewritten over
independent generators (`exp(L)`, `x^r`, `exp(i u)`), in which both sides are rational functions. An
identity holds if the numerator of left - right is the zero polynomial. An identity that this rule
accepts is true. A true one that it does not see is refused.
"""

import math
from dataclasses import dataclass, field

import sympy
from sympy import Dummy, Expr, I, S, cos, exp, log, sin


def vanishes(e: object) -> bool:
    """Whether an expression is 0 for all values of its symbols, by algebra alone.

    False says that it is not identically 0, or not seen to be.

    >>> u, v = sympy.symbols("u v", real=True)
    >>> vanishes(cos(u) * cos(v) + sin(u) * sin(v) - cos(u - v)), vanishes(cos(u) - 1)
    (True, False)
    """
    return Generators().fraction(sympy.sympify(e))[0] == 0


@dataclass
class Generators:
    """Expressions as rational functions of independent generators."""

    roots: dict[Expr, Dummy] = field(default_factory=dict)  # exp(m) by the monomial m
    logs: dict[Dummy, Expr] = field(default_factory=dict)  # what each logarithm is of

    def fraction(self, e: Expr) -> tuple[Expr, Expr]:
        """Numerator and denominator, polynomials in the generators."""
        lowered = self._lower(e.doit().rewrite((cos, sin), exp))
        for root in self.roots.values():
            powers = [p for p in lowered.atoms(sympy.Pow) if p.base == root]
            common = math.lcm(*(int(p.exp.q) for p in powers))
            whole = {p: root ** (common * p.exp) for p in powers} | {root: root**common}
            lowered = lowered.xreplace(whole)
        top, bottom = sympy.fraction(sympy.together(lowered))
        return sympy.expand(top), sympy.expand(bottom)

    def _lower(self, e: Expr) -> Expr:
        if isinstance(e, exp):
            return self._exp(e.args[0])
        if isinstance(e, log):
            return self._log(e.args[0])
        if e.is_Pow and not e.exp.is_Integer:
            return self._exp(e.exp * self._log(e.base))
        if e.args:
            return e.func(*map(self._lower, e.args))
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
        generator = next((d for d, of in self.logs.items() if of == lowered), None)
        if generator is None:
            generator = Dummy(f"log({e})", real=True)
            self.logs[generator] = lowered
        return generator
