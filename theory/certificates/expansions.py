"""Expansions of the parts of a formula, computed and written down as steps of a proof.

Each rule mirrors a theorem of `theory/formal/Expansions.v`. Here it only proposes: what a step
asserts, the prover checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import sympy
from sympy import Expr, Integer, S

from farfield.theory.algebra.outcomes import NeedMore
from farfield.theory.certificates.constants import kept_roots, logarithm, root
from farfield.theory.certificates.forms import Form, NoCertificate
from farfield.theory.certificates.monomials import (
    UNIT,
    Expo,
    FiniteExpansion,
    Rest,
    Terms,
    adding_up,
    binomials,
    logarithm_of,
    logarithms,
    order,
    power,
    product,
    series,
    shown,
    times,
)
from farfield.theory.certificates.periods import bounded, value_on_class
from farfield.theory.certificates.script import Script, Step
from farfield.theory.coefficients.arithmetic import expand

LINEAR = ("plus", "minus", "opp", "mult")


@dataclass(frozen=True)
class Factored:
    """`f = c e (1 + d)` with d tending to 0.

    Fields:
        c, e: the leading term.
        d: the terms of d.
        size: an order of d.
        rest: of a series in d that is cut.
    """

    c: Expr
    e: Expo
    d: Terms
    size: Rest
    rest: Rest

    @property
    def orders(self) -> str:
        """What the tactics are told."""
        return f"{order(self.size)} {order(self.rest)}"


@dataclass
class Expander(Script):
    """Expands the parts of a formula, each part once.

    Fields:
        cut: series are written to this power.
        known: the parts expanded so far.
    """

    cut: int = field(kw_only=True)
    known: dict[Form, Step] = field(default_factory=dict)

    # -- parts ------------------------------------------------------------------------------------

    def expand(self, f: Form) -> Step:
        """The step that expands a part."""
        if f not in self.known:
            self.known[f] = self._expanded(f)
        return self.known[f]

    def lead(self, f: Form) -> tuple[str, FiniteExpansion, int]:
        """The step that expands a part, and the sign of its leading coefficient.

        Raises:
            NeedMore: the leading term hides in the remainder.
        """
        name, expansion, s = self._led(f)
        if s:
            return name, expansion, s
        if expansion.rest is None:
            raise NoCertificate(f"{told(f)} is 0 from some point on")
        raise NeedMore

    def _led(self, f: Form) -> tuple[str, FiniteExpansion, int]:
        """The step that expands a part, and the sign of its leading coefficient, 0 where no term is
        left; terms that are 0 are left out."""
        name, expansion = self.expand(f)
        while expansion.terms:
            (c, e), *others = expansion.terms
            if s := self.signs.sign(c):
                return name, expansion, s
            name, expansion = self.step(
                f, FiniteExpansion(tuple(others), expansion.rest), adding_up([e])
            )
            self.known[f] = name, expansion
        return name, expansion, 0

    def _expanded(self, f: Form) -> Step:
        """As a constant, a periodic or bounded part, a linear combination, else by its rule."""
        if f.constant:
            return f"(expands_const ({f.show()}))", FiniteExpansion(
                ((kept_roots(f.expr), UNIT),), None
            )
        if (found := value_on_class(f, self.period)) is not None:
            value, tactic = found
            by = f"periodic ({shown(value)}) by ({tactic})"
            return self.ruled(f, ((value, UNIT),), None, by)
        if bounded(f, self.period):
            return self.step(f, FiniteExpansion((), UNIT), "apply expands_bounded; bounded")
        if f.op in LINEAR and not self._is_product(f):
            expansion, cancelled = self.linear(f)
            return self.step(f, expansion, adding_up(cancelled))
        rule = getattr(self, f"_{f.op}", None)
        if rule is None:
            raise NoCertificate(f"{told(f)} is neither bounded nor expanded")
        found_by_rule: Step = rule(f)
        return found_by_rule

    def linear(self, f: Form) -> tuple[FiniteExpansion, list[Expo]]:
        """The expansion of a sum of multiples of parts, and the monomials that cancel in it."""
        terms, rests = self._parts(f)
        return self.gathered(terms, self.largest(*rests))

    def _parts(self, f: Form) -> tuple[Terms, list[Rest]]:
        """The terms of the parts of a sum, not yet put together, and their remainders."""
        if f.constant or f.op not in LINEAR or self._is_product(f) or bounded(f, self.period):
            _, expansion = self.expand(f)
            return expansion.terms, [expansion.rest]
        terms, rests = self._parts(f.args[-1])
        if f.op == "opp":
            return _scaled(S.NegativeOne, terms), rests
        if f.op == "mult":
            return _scaled(kept_roots(f.args[0].expr), terms), rests
        before, more = self._parts(f.args[0])
        return (*before, *_scaled(S.One if f.op == "plus" else S.NegativeOne, terms)), more + rests

    @staticmethod
    def _is_product(f: Form) -> bool:
        return f.op == "mult" and not f.args[0].constant

    # -- rules: one for each operation ------------------------------------------------------------

    def _index(self, f: Form) -> Step:
        """n itself; on the residue class r modulo q it is q n + r."""
        if self.period is None:
            return "expands_n", FiniteExpansion(((S.One, (S.One,)),), None)
        q, r = self.period
        expansion, _ = self.gathered(((Integer(q), (S.One,)), (Integer(r), UNIT)), None)
        return self.step(f, expansion, f"class {q}%nat {r}%nat")

    def _mult(self, f: Form) -> Step:
        return self._product_of(f, *f.args)

    def _div(self, f: Form) -> Step:
        a, b = f.args
        return self._product_of(f, a, Form("inv", (b,), 1 / b.expr))

    def _product_of(self, f: Form, first: Form, second: Form) -> Step:
        """Terms times terms; the rest is the largest of what meets a rest."""
        (name, a), (other, b) = self.expand(first), self.expand(second)
        rest = self.largest(
            *(times(e, b.rest) for _, e in a.terms[:1]),
            *(times(e, a.rest) for _, e in b.terms[:1]),
            None if a.rest is None else times(a.rest, b.rest),
        )
        terms = tuple((c * d, product(e, g)) for c, e in a.terms for d, g in b.terms)
        return self.ruled(f, terms, rest, f"product {name} {other}")

    def _ln(self, f: Form) -> Step:
        """log(c m (1 + d)) = log c + log m + the series of log(1 + d), cut."""
        name, expansion, s = self.lead(f.args[0])
        if s < 0:
            raise NoCertificate(f"{told(f)} is not real for large n")
        x = self._factored(expansion)
        value, why = logarithm(x.c)
        if self.within(UNIT, x.rest):
            value, why = sympy.log(x.c, evaluate=False), "reflexivity"
        terms = (
            (value, UNIT),
            *((a, logarithm_of(i)) for i, a in enumerate(x.e, 1)),
            *series(logarithms(self.cut), x.d),
        )
        by = f"logarithm {name} {x.orders} {self.cut}%nat ({shown(value)}) by ({why})"
        return self.ruled(f, terms, x.rest, by)

    def _rpower(self, f: Form) -> Step:
        """A power with a constant real exponent; the base must be positive in the end."""
        base, exponent = f.args
        if not exponent.constant:
            raise NoCertificate(f"the exponential {told(f)}")
        name, expansion, s = self.lead(base)
        if s < 0:
            raise NoCertificate(f"{told(f)} is not real for large n")
        value, why = root(expansion.terms[0][0], exponent.expr)
        tactic = f"({shown(value)}) by ({why})"
        return self._powered(f, expansion, exponent.expr, value, f"real_power {name}", tactic)

    def _power(self, f: Form) -> Step:
        name, expansion, _ = self.lead(f.args[0])
        value = expand(expansion.terms[0][0] ** f.value)
        tactic = f"{f.value}%nat ({f.value}) ({shown(value)})"
        return self._powered(f, expansion, Integer(f.value), value, f"natural_power {name}", tactic)

    def _inv(self, f: Form) -> Step:
        name, expansion, _ = self.lead(f.args[0])
        return self._powered(
            f, expansion, S.NegativeOne, 1 / expansion.terms[0][0], f"inverse {name}"
        )

    def _powered(
        self, f: Form, expansion: FiniteExpansion, r: Expr, value: Expr, tactic: str, more: str = ""
    ) -> Step:
        """The power r of a part, `value` being that of its leading coefficient."""
        x = self._factored(expansion)
        e = power(x.e, r)
        terms = ((value * c, product(e, g)) for c, g in series(binomials(r, self.cut), x.d))
        by = f"{tactic} {x.orders} {self.cut}%nat {more}".rstrip()
        return self.ruled(f, tuple(terms), times(e, x.rest), by)

    def _factored(self, expansion: FiniteExpansion) -> Factored:
        """The expansion as its leading term times 1 + d, with the sizes of d and of what is cut."""
        (c, e), *others = expansion.terms
        back = power(e, S.NegativeOne)
        d = tuple((x / c, product(g, back)) for x, g in others)
        rest = times(back, expansion.rest)
        size = self.largest(rest, *(g for _, g in d[:1]))
        if size is None:
            return Factored(c, e, d, None, None)
        return Factored(c, e, d, size, self.largest(rest, power(size, Integer(self.cut + 1))))

    def _abs(self, f: Form) -> Step:
        """By the sign of the leading term."""
        name, expansion, s = self.lead(f.args[0])
        if s > 0:
            return self.step(
                f, expansion, f"apply (expands_abs _ _ _ _ _ {name}); [led | constant]"
            )
        by = f"apply (expands_abs_opp _ _ _ _ _ {name}); [led | constant]"
        return self.ruled(f, _scaled(S.NegativeOne, expansion.terms), expansion.rest, by)

    def _max(self, f: Form) -> Step:
        """The larger, or smaller, of two, by a comparison that holds from some n on."""
        a, b = f.args
        fact, less = self.decide(Form("lt", (a, b), a.expr < b.expr))
        return self._eventually(f, b if less == (f.op == "max") else a, [fact])

    _min = _max

    def _if(self, f: Form) -> Step:
        """The branch whose condition holds from some n on."""
        facts: list[str] = []
        return self._eventually(f, self.branch(f, facts), facts)

    def _table(self, f: Form) -> Step:
        """Beyond the table its last entry."""
        return self._eventually(f, f.args[-1], [self.last_entry(f)])

    def _eventually(self, f: Form, chosen: Form, facts: Sequence[str]) -> Step:
        """A part that is another from some point on."""
        name, expansion = self.expand(chosen)
        ends = f"pieces {together(facts)} | exact {name}"
        return self.step(f, expansion, f"apply (expands_ext {self.function(chosen)}); [{ends}]")

    # -- what holds from some point on ------------------------------------------------------------

    def branch(self, f: Form, facts: list[str]) -> Form:
        """The value of a Piecewise from some point on; what says so is added to the facts."""
        while f.op == "if":
            condition, value, other = f.args
            f = value if self._holds(condition, facts) else other
        return f

    def _holds(self, c: Form, facts: list[str]) -> bool:
        """Whether a condition holds from some point on; otherwise its contrary does."""
        if c.op in ("true", "false"):
            return c.op == "true"
        if c.op == "not":
            return not self._holds(c.args[0], facts)
        if c.op in ("and", "or"):
            both = [self._holds(a, facts) for a in c.args]
            return all(both) if c.op == "and" else any(both)
        fact, truth = self.decide(c)
        facts.append(fact)
        return truth

    def decide(self, c: Form) -> tuple[str, bool]:
        """A comparison, decided for all large n: the step that says so, and its truth."""
        a, b = c.args
        name, expansion, s = self._led(_difference(b, a))
        if s == 0 and expansion.rest is None:
            by = f"apply (eventually_equal _ _ {name})"
            return self.fact(f"{a.show(self.index)} = {b.show(self.index)}", by), c.op != "lt"
        if s == 0:
            raise NeedMore
        low, high = (a, b) if s > 0 else (b, a)
        name = self.lead(_difference(high, low))[0]
        by = f"apply (eventually_less _ _ _ _ _ _ {name}); [led | constant]"
        claim = f"{low.show(self.index)} < {high.show(self.index)}"
        return self.fact(claim, by), c.op != "eq" and s > 0

    def last_entry(self, f: Form) -> str:
        """The step that says that a table has its last value from some point on."""
        tail = f.args[-1]
        rule = "eventually_rbar_table" if tail.op in ("finite", "masked") else "eventually_table"
        claim = f"{f.show(self.index)} = {tail.show(self.index)}"
        return self.fact(claim, f"apply {rule}; intros; lia")


def told(f: Form) -> str:
    """A part, for a message."""
    text = str(f.expr)
    return text if len(text) <= 60 else text[:57] + "..."


def together(facts: Sequence[str]) -> str:
    """What holds from some point on, in one term."""
    joint = "eventually_true"
    for fact in reversed(facts):
        joint = fact if joint == "eventually_true" else f"(filter_and _ _ {fact} {joint})"
    return joint


def _scaled(c: Expr, terms: Terms) -> Terms:
    return tuple((c * d, e) for d, e in terms)


def _difference(a: Form, b: Form) -> Form:
    return Form("minus", (a, b), a.expr - b.expr)
