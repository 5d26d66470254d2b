"""Expansions of the parts of a formula by the engine's operations, written down as steps.

Each rule calls the operation of `transseries.arithmetic` that the decision uses, and asserts its
result by the theorem of `theory/formal/Expansions.v` that justifies it. The prover checks what a
step asserts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import sympy
from flint import fmpq
from sympy import Expr, S

from farfield.theory.algebra.exceptions import OrderTooLow
from farfield.theory.answers.notation import beginning
from farfield.theory.certificates.constants import kept_roots, logarithm, root
from farfield.theory.certificates.prover_forms import Form, NoCertificate
from farfield.theory.certificates.script import (
    Period,
    Script,
    Step,
    adding_up,
    order,
    shown,
    together,
)
from farfield.theory.coefficients.exact import (
    Coefficient,
    coefficient,
    context,
    expand,
    to_sympy,
)
from farfield.theory.coefficients.signs import sign
from farfield.theory.decision.engine import residue_class
from farfield.theory.functions.nodes import n
from farfield.theory.transseries.arithmetic import (
    UNIT,
    Monomial,
    Transseries,
    add,
    binomials,
    compare,
    drop_lead,
    factored,
    iterated_log,
    log1p_coefficient,
    log_of_monomial,
    number,
    taylor,
)

LINEAR = ("plus", "minus", "opp", "mult")


@dataclass
class Expander(Script):
    """Expands the parts of a formula, each part once."""

    known: dict[Form, Step] = field(default_factory=dict)

    # -- parts ------------------------------------------------------------------------------------

    def expand(self, f: Form) -> Step:
        """The step that expands a part."""
        if f not in self.known:
            self.known[f] = self._expanded(f)
        return self.known[f]

    def lead(self, f: Form) -> tuple[str, Transseries, int]:
        """The step that expands a part, and the sign of its leading coefficient.

        Raises:
            OrderTooLow: the leading term hides in the remainder.
        """
        name, g, s = self._led(f)
        if s:
            return name, g, s
        if g.exact:
            raise NoCertificate(f"{beginning(f.expr)} is 0 from some point on")
        raise OrderTooLow

    def _led(self, f: Form) -> tuple[str, Transseries, int]:
        """The step that expands a part, and the sign of its leading coefficient, 0 where no term is
        left; terms that are 0 are left out."""
        name, g = self.expand(f)
        while g.terms:
            m, c = g.terms[0]
            if s := sign(c):
                return name, g, s
            rest = drop_lead(g)
            name, g = self.known[f] = self.step(f, rest, adding_up(rest, [m]))
        return name, g, 0

    def _expanded(self, f: Form) -> Step:
        """As a constant, a periodic or bounded part, a linear combination, else by its rule."""
        if f.constant:
            value = coefficient(kept_roots(f.expr))  # 0 is a term, too: the prover has it as one
            return f"(expands_const ({f.show()}))", Transseries([(UNIT, value)])
        if (found := _value_on_class(f, self.period)) is not None:
            periodic, tactic = found
            by = f"periodic ({shown(periodic)}) by ({tactic})"
            return self.ruled(f, number(coefficient(periodic)), by, [UNIT])
        if _bounded(f, self.period):
            return self.step(f, Transseries([], UNIT), "apply expands_bounded; bounded")
        if f.op in LINEAR and not self._is_product(f):
            parts = list(self.parts(f))
            g = add(*parts)
            return self.step(f, g, adding_up(g, _monomials(parts)))
        rule = getattr(self, f"_{f.op}", None)
        if rule is None:
            raise NoCertificate(f"{beginning(f.expr)} is neither bounded nor expanded")
        found_by_rule: Step = rule(f)
        return found_by_rule

    def parts(self, f: Form, factor: Coefficient = fmpq(1)) -> Iterator[Transseries]:  # noqa: B008
        """The expansions of the parts of a sum, each with its factor."""
        if f.constant or f.op not in LINEAR or self._is_product(f) or _bounded(f, self.period):
            yield self.expand(f)[1] * factor
        elif f.op == "mult":
            own = coefficient(to_sympy(factor) * kept_roots(f.args[0].expr))
            yield from self.parts(f.args[1], own)
        else:
            for a in f.args[:-1]:
                yield from self.parts(a, factor)
            yield from self.parts(f.args[-1], factor if f.op == "plus" else -factor)

    @staticmethod
    def _is_product(f: Form) -> bool:
        return f.op == "mult" and not f.args[0].constant

    # -- rules: one for each operation ------------------------------------------------------------

    def _index(self, f: Form) -> Step:
        """n itself; on the residue class r modulo q it is q n + r."""
        q, r = self.period or (1, 0)
        g = Transseries([(iterated_log(0), fmpq(q)), *([(UNIT, fmpq(r))] if r else [])])
        if self.period is None:
            return "expands_n", g
        return self.step(f, g, f"class {q}%nat {r}%nat")

    def _mult(self, f: Form) -> Step:
        return self._product_of(f, *f.args)

    def _div(self, f: Form) -> Step:
        a, b = f.args
        return self._product_of(f, a, Form("inv", (b,), 1 / b.expr))

    def _product_of(self, f: Form, first: Form, second: Form) -> Step:
        (name, a), (other, b) = self.expand(first), self.expand(second)
        raw = [m * k for m, _ in a.terms for k, _ in b.terms]
        return self.ruled(f, a * b, f"product {name} {other}", raw)

    def _ln(self, f: Form) -> Step:
        """log(c m (1 + d)) = log c + log m + the series of log(1 + d)."""
        name, (c, m, delta) = self._factored(f.args[0], positive=f)
        value, why = logarithm(c)
        parts = [log_of_monomial(m), number(coefficient(value)), taylor(log1p_coefficient, delta)]
        g = add(*parts)
        if g.remainder is not None and compare(UNIT, g.remainder) <= 0:
            value, why = sympy.log(c, evaluate=False), "reflexivity"
        by = f"{_orders(delta, g.remainder)} ({shown(value)}) by ({why})"
        raw = [*_monomials(parts), *_powers(delta, g.remainder)]
        return self.ruled(f, g, f"logarithm {name} {by}", raw)

    def _exp(self, f: Form) -> Step:
        """What falls faster than every power of n; as small as the order of the decision asks."""
        name, g, s = self.lead(f.args[0])
        if s > 0 or compare(g.terms[0][0], iterated_log(1)) <= 0:
            raise NoCertificate(f"the exponential {beginning(f.expr)}")
        k = -context().order
        by = f"apply (expands_exp_small _ _ _ _ _ ({k}) {name}); [led | constant | less]"
        return self.step(f, Transseries([], Monomial([fmpq(k)])), by)

    def _rpower(self, f: Form) -> Step:
        """A power with a constant real exponent; the base must be positive in the end."""
        base, exponent = f.args
        if not exponent.constant:
            raise NoCertificate(f"the exponential {beginning(f.expr)}")

        def written(name: str, orders: str, c: Expr) -> tuple[Expr, str]:
            value, why = root(c, exponent.expr)
            return value, f"real_power {name} {orders} ({shown(value)}) by ({why})"

        return self._powered(f, base, exponent.expr, written, positive=f)

    def _power(self, f: Form) -> Step:
        def written(name: str, orders: str, c: Expr) -> tuple[Expr, str]:
            value = expand(c**f.value)
            by = f"natural_power {name} {orders} {f.value}%nat ({f.value}) ({shown(value)})"
            return value, by

        return self._powered(f, f.args[0], sympy.Integer(f.value), written)

    def _inv(self, f: Form) -> Step:
        return self._powered(
            f, f.args[0], S.NegativeOne, lambda name, orders, c: (1 / c, f"inverse {name} {orders}")
        )

    def _powered(
        self,
        f: Form,
        base: Form,
        exponent: Expr,
        written: Callable[[str, str, Expr], tuple[Expr, str]],
        positive: Form | None = None,
    ) -> Step:
        """(c m (1 + d))^r = c^r m^r (1 + d)^r; `written` gives c^r and the tactic."""
        name, (c, m, delta) = self._factored(base, positive)
        r = coefficient(exponent)
        rest = taylor(binomials(r), delta)
        value, by = written(name, _orders(delta, rest.remainder), c)
        g = rest * coefficient(value) * m**r
        raw = [k * m**r for k in _powers(delta, rest.remainder)]
        return self.ruled(f, g, by, raw)

    def _factored(
        self, f: Form, positive: Form | None = None
    ) -> tuple[str, tuple[Expr, Monomial, Transseries]]:
        """The step that expands a part, and the part as c m (1 + d); c > 0 where it is asked."""
        name, g, s = self.lead(f)
        if positive is not None and s < 0:
            raise NoCertificate(f"{beginning(positive.expr)} is not real for large n")
        parts = factored(g)
        assert parts is not None
        return name, (to_sympy(parts[0]), *parts[1:])

    def _abs(self, f: Form) -> Step:
        """By the sign of the leading term."""
        name, g, s = self.lead(f.args[0])
        rule = "expands_abs" if s > 0 else "expands_abs_opp"
        by = f"apply ({rule} _ _ _ _ _ {name}); [led | constant]"
        return self.step(f, g, by) if s > 0 else self.ruled(f, -g, by, ())

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
        name, g = self.expand(chosen)
        ends = f"pieces {together(facts)} | exact {name}"
        return self.step(f, g, f"apply (expands_ext {self.function(chosen)}); [{ends}]")

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
        name, g, s = self._led(_difference(b, a))
        if s == 0 and g.exact:
            by = f"apply (eventually_equal _ _ {name})"
            return self.fact(f"{a.show(self.index)} = {b.show(self.index)}", by), c.op != "lt"
        if s == 0:
            raise OrderTooLow
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


def _difference(a: Form, b: Form) -> Form:
    return Form("minus", (a, b), a.expr - b.expr)


# -- series ---------------------------------------------------------------------------------------


def _monomials(parts: Sequence[Transseries]) -> Iterator[Monomial]:
    return (m for g in parts for m, _ in g.terms)


def _orders(delta: Transseries, remainder: Monomial | None) -> str:
    """The arguments of a series' tactic: the size of d, the remainder, the last power of d that
    is above it."""
    if delta.literally_zero or remainder is None:
        return f"exactly {_typed(remainder)} 1%nat"
    size, k = delta.top(), 0
    while compare(size ** fmpq(k + 1), remainder) > 0:
        k += 1
    return f"{_typed(size)} {_typed(remainder)} {k}%nat"


def _typed(remainder: Monomial | None) -> str:
    """A remainder where the prover cannot see that it is one."""
    return order(remainder).replace("[]", "([] : expo)")


def _powers(delta: Transseries, remainder: Monomial | None) -> list[Monomial]:
    """The monomials above the remainder in the powers of d."""
    found, last = [UNIT], [UNIT]
    while last and remainder is not None:
        products = dict.fromkeys(m * k for m in last for k, _ in delta.terms)
        last = [m for m in products if compare(m, remainder) > 0]
        found += last
    return found


# -- bounded and periodic parts -------------------------------------------------------------------


def _bounded(f: Form, period: Period) -> bool:
    """Whether a part is put together from waves, signs, residues and constants, and has no
    value of its own on the residue class at hand."""
    if f.op in ("cos", "sin", "sign", "mod"):
        return _value_on_class(f, period) is None
    if f.op == "rpower" and f.args[0].constant:  # z^(c n) with 0 < z <= 1 and c >= 0
        z, speed = f.args[0].expr, f.args[1].expr / n
        return bool(z.is_Rational and 0 < z <= 1 and speed.is_Rational and speed >= 0)
    if f.op == "div":
        return _bounded(f.args[0], period) and f.args[1].constant
    parts = f.op in ("plus", "minus", "opp", "mult", "power", "sum")
    return f.constant or (parts and all(_bounded(a, period) for a in f.args))


# t -> y with cos (pi t) = cos y, and likewise for sin: where the values are rational
_COSINES = {
    "0": "0",
    "1/3": "PI / 3",
    "1/2": "PI / 2",
    "2/3": "2 * (PI / 3)",
    "1": "PI",
    "4/3": "PI / 3 + PI",
    "3/2": "PI / 2 + PI",
    "5/3": "2 * (PI / 3) + PI",
}
_SINES = {
    "0": "0",
    "1/6": "PI / 6",
    "1/2": "PI / 2",
    "5/6": "PI - PI / 6",
    "1": "PI",
    "7/6": "PI / 6 + PI",
    "3/2": "PI / 2 + PI",
    "11/6": "PI - PI / 6 + PI",
}


def _value_on_class(f: Form, period: Period) -> tuple[Expr, str] | None:
    """The rational value of a periodic part at q n + r, and the tactic that proves it."""
    if period is None or f.op not in ("sign", "mod", "cos", "sin", "power"):
        return None
    if f.op == "power":
        found = _value_on_class(f.args[0], period)
        if found is None:
            return None
        return found[0] ** f.value, f"power_value ({found[0]}) by ({found[1]})"
    q, r = period
    value = residue_class(f.expr, q, r)
    if not value.is_Rational:
        return None
    if f.op in ("cos", "sin"):
        turns = _turns(f, r)
        angle = turns >= 0 and (_COSINES if f.op == "cos" else _SINES).get(str(turns % 2))
        speed = f.args[0].expr.coeff(n, 1) / S.Pi
        by = f"wave_value ({angle}) {speed * q / 2}%nat {turns // 2}%nat"
        return (value, by) if angle and speed > 0 else None
    a, b = f.value if f.op == "sign" else f.value[0]
    return value, f"{f.op}_value {a * q}%nat {a * r + b}%nat"


def _turns(f: Form, r: int) -> Expr:
    """The phase of a wave at r, in multiples of pi."""
    return sympy.expand(f.args[0].expr.subs(n, r)) / S.Pi
