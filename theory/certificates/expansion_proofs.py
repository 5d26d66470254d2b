"""The tactics that prove an expansion: each part of a formula is asserted with its leading terms.

An expansion is the engine's own `Transseries`. Each operation is one of `transseries.arithmetic`,
which the decision uses, too. Its result is asserted in the prover's notation. The prover's tactic
`expand` then proves it: by a theorem of `theory/formal/Expansions.v`, from the assertions about the
parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import sympy
from flint import fmpq
from sympy import Expr, S

from farfield.theory.algebra.door import check_time
from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.answers.notation import beginning
from farfield.theory.certificates.constants import kept_roots, logarithm, root
from farfield.theory.certificates.prover_forms import Form, NoCertificate, form
from farfield.theory.coefficients.exact import (
    Coefficient,
    coefficient,
    expand,
    to_sympy,
)
from farfield.theory.coefficients.signs import Context
from farfield.theory.functions.nodes import Root, n
from farfield.theory.functions.trigonometric import cosine_coefficient, sine_coefficient
from farfield.theory.transseries.arithmetic import (
    UNIT,
    Monomial,
    Transseries,
    add,
    binomials,
    compare,
    factored,
    iterated_log,
    log1p_coefficient,
    log_of_monomial,
    monomial,
    of_constant,
    size,
    taylor,
    with_proved_lead,
)
from farfield.theory.transseries.expansion import transseries

LINEAR = ("plus", "minus", "opp", "mult")


def shown(c: Coefficient) -> str:
    """A constant."""
    return form(to_sympy(c)).show()


def exponents(m: Monomial) -> str:
    """A monomial `n^a0 (log n)^a1 ...` by its exponents.

    >>> exponents(Monomial([S.Zero, sympy.Rational(1, 2)]))
    '[0; 1 / 2]'
    """
    return f"[{'; '.join(map(shown, m.chain))}]"


@dataclass
class Expander:
    """Expands the parts of a formula on one cell of the parameters, each part once.

    Fields:
        context: the decision on that cell.
        steps: the assertions so far.
        expansions: those so far.
    """

    context: Context
    steps: list[str] = field(default_factory=list)
    expansions: dict[Form, Transseries] = field(default_factory=dict)

    # -- assertions -------------------------------------------------------------------------------

    def function(self, f: Form) -> str:
        """A part as a function of the distance."""
        return f"(fun n : nat => {f.show()})"

    def asserted(self, claim: str, by: str) -> None:
        """Assert a claim, to be proved by a tactic."""
        check_time()
        self.steps.append(f"assert ({claim})\n  by {by if by.isalpha() else f'({by})'}.")

    def fact(self, claim: str, by: str) -> None:
        """Assert a fact that holds from some point on."""
        self.asserted(f"eventually (fun n : nat => {claim})", by)

    def expands(self, function: str, g: Transseries, by: str = "expand") -> None:
        """Assert an expansion."""
        terms = "; ".join(f"({shown(c)}, {exponents(m)})" for m, c in g.terms)
        rest = "exactly" if g.remainder is None else f"(Some {exponents(g.remainder)})"
        self.asserted(f"expands {function} [{terms}] {rest}", by)

    def equal(self, e: Expr, value: Expr, by: str) -> None:
        """Assert the value of a logarithm or a power of a constant, unless it is itself."""
        if by:
            self.asserted(f"{form(e).show()} = {shown(value)}", by)

    # -- parts ------------------------------------------------------------------------------------

    def expand(self, f: Form) -> Transseries:
        """The expansion of a part: a constant or bounded one, a sum, else by its rule."""
        if f in self.expansions:
            return self.expansions[f]
        if f.constant:  # 0 is a term, too: the prover has it as one
            g = Transseries(self.context, [(UNIT, coefficient(kept_roots(f.expr)))])
        elif _bounded(f, self.context):
            g = Transseries(self.context, [], UNIT)
        elif f.op in LINEAR and not _is_product(f):
            g = add(*self.parts(f))
        elif (rule := getattr(self, f"_{f.op}", None)) is not None:
            g = rule(f)
        else:
            raise NoCertificate(f"{beginning(f.expr)} is neither bounded nor expanded")
        self.expansions[f] = g
        if not f.constant and f.op != "index":
            self.expands(self.function(f), g)
        return g

    def form_sign(self, f: Form) -> int:
        """The sign of a part for all large n; leading terms that are 0 are left out.

        Raises:
            OrderTooLow: the leading term hides in the remainder.
        """
        g = self.expand(f)
        led = with_proved_lead(g)
        if len(led.terms) < len(g.terms) and not f.constant:
            self.expansions[f] = led
            self.expands(self.function(f), led)
        return self.context.sign(led.terms[0][1]) if led.terms else 0

    def lead(self, f: Form) -> int:
        """The same of a part that may not be 0."""
        if s := self.form_sign(f):
            return s
        raise NoCertificate(f"{beginning(f.expr)} is 0 from some point on")

    def parts(self, f: Form, factor: Coefficient = fmpq(1)) -> Iterator[Transseries]:  # noqa: B008
        """The expansions of the parts of a sum, each with its factor."""
        if f.constant or f.op not in LINEAR or _is_product(f) or _bounded(f, self.context):
            yield self.expand(f) * factor
        elif f.op == "mult":
            product = coefficient(to_sympy(factor) * kept_roots(f.args[0].expr))
            yield from self.parts(f.args[1], product)
        else:
            for a in f.args[:-1]:
                yield from self.parts(a, factor)
            yield from self.parts(f.args[-1], factor if f.op == "plus" else -factor)

    # -- rules: one for each operation ------------------------------------------------------------

    def _index(self, f: Form) -> Transseries:
        return monomial(iterated_log(0), self.context)

    def _mult(self, f: Form) -> Transseries:
        return self.expand(f.args[0]) * self.expand(f.args[1])

    def _div(self, f: Form) -> Transseries:
        a, b = f.args
        return self.expand(a) * self.expand(Form("inv", (b,), 1 / b.expr))

    def _ln(self, f: Form) -> Transseries:
        """log(c m (1 + d)) = log c + log m + the series of log(1 + d)."""
        c, m, delta = self._factored(f.args[0], f)
        value, by = logarithm(c)
        rest = [log_of_monomial(m, self.context), taylor(log1p_coefficient, delta)]
        g = add(*rest, of_constant(coefficient(value), self.context))
        if g.remainder is None or compare(UNIT, g.remainder, self.context) > 0:
            self.equal(sympy.log(c, evaluate=False), value, by)
        return g

    def _exp(self, f: Form) -> Transseries:
        """By its series; what falls faster than every power of n is as small as the order of the
        decision asks."""
        s, g = self.lead(f.args[0]), self.expansions[f.args[0]]
        if size(g.terms[0][0], self.context) < 0:
            return g.exp()
        if s == 1 or compare(g.terms[0][0], iterated_log(1), self.context) <= 0:
            raise NoCertificate(f"the exponential {beginning(f.expr)}")
        return Transseries(self.context, [], Monomial([fmpq(-self.context.order)]))

    def _sin(self, f: Form) -> Transseries:
        """Of what tends to 0, by its series; a cosine's begins with 1."""
        coef = sine_coefficient if f.op == "sin" else cosine_coefficient
        return taylor(coef, self.expand(f.args[0]))

    _cos = _sin

    def _floor(self, f: Form) -> Transseries:
        return add(self.expand(f.args[0]), Transseries(self.context, [], UNIT))

    def _power(self, f: Form) -> Transseries:
        """(c m (1 + d))^r = c^r m^r (1 + d)^r for a constant r. The base of a real power is
        positive in the end, or 0 where it may be (`power0`)."""
        base, *real = f.args
        if real and not real[0].constant:
            raise NoCertificate(f"the exponential {beginning(f.expr)}")
        if f.op in ("power", "power0") and self.form_sign(base) == 0:
            return Transseries(self.context)
        r = real[0].expr if real else (S.NegativeOne if f.op == "inv" else f.expr.exp)
        c, m, delta = self._factored(base, f if real else None)
        value, by = root(c, r) if real else (expand(c**r), "")
        self.equal(Root(c, r), value, by)
        return taylor(binomials(coefficient(r)), delta) * coefficient(value) * m ** coefficient(r)

    _rpower = _power0 = _inv = _power

    def _factored(
        self, f: Form, positive: Form | None = None
    ) -> tuple[Expr, Monomial, Transseries]:
        """A part as c m (1 + d); c > 0 where it is asked."""
        if self.lead(f) < 0 and positive is not None:
            raise NoCertificate(f"{beginning(positive.expr)} is not real for large n")
        parts = factored(self.expansions[f])
        assert parts is not None
        return to_sympy(parts[0]), *parts[1:]

    def _abs(self, f: Form) -> Transseries:
        """By the sign of the leading term."""
        s = self.lead(f.args[0])
        return self.expansions[f.args[0]] * fmpq(s)

    def _max(self, f: Form) -> Transseries:
        """The larger, or smaller, of two, by a comparison that holds from some n on."""
        a, b = f.args
        less = self.decide(Form("lt", (a, b), a.expr < b.expr))
        return self.expand(b if less == (f.op == "max") else a)

    _min = _max

    def _if(self, f: Form) -> Transseries:
        """The branch whose condition holds from some n on."""
        while f.op == "if":
            condition, value, other = f.args
            f = value if self.decide(condition) else other
        return self.expand(f)

    def _table(self, f: Form) -> Transseries:
        """Beyond the table its last entry."""
        self.fact(f"{f.show()} = {f.args[-1].show()}", "table")
        return self.expand(f.args[-1])

    # -- what holds from some point on ------------------------------------------------------------

    def decide(self, c: Form) -> bool:
        """Whether a condition holds from some point on; otherwise its contrary does."""
        if c.op in ("true", "false"):
            return c.op == "true"
        if c.op == "not":
            return not self.decide(c.args[0])
        if c.op in ("and", "or"):
            parts = map(self.decide, sorted(c.args, key=lambda a: not a.expr.has(n)))
            return all(parts) if c.op == "and" else any(parts)
        low, high = c.args
        s = self.form_sign(_difference(high, low))
        if s < 0:
            low, high = high, low
            self.lead(_difference(high, low))
        relation = "<" if s else "="
        self.fact(f"{low.show()} {relation} {high.show()}", "decided")
        return c.op != "lt" if s == 0 else c.op != "eq" and s > 0


def _is_product(f: Form) -> bool:
    return f.op == "mult" and not f.args[0].constant


def _difference(a: Form, b: Form) -> Form:
    return Form("minus", (a, b), a.expr - b.expr)


# -- bounded parts --------------------------------------------------------------------------------


def _bounded(f: Form, context: Context) -> bool:
    """Whether a part is put together from waves and constants."""
    if f.op in ("cos", "sin"):
        return not settles(f, context)
    if f.op == "rpower" and f.args[0].constant:  # z^(c n) with 0 < z <= 1 and c >= 0
        z, speed = f.args[0].expr, f.args[1].expr / n
        return bool(z.is_Rational and 0 < z <= 1 and speed.is_Rational and speed >= 0)
    if f.op == "div":
        return _bounded(f.args[0], context) and f.args[1].constant
    parts = f.op in ("plus", "minus", "opp", "mult", "power", "sum")
    return f.constant or (parts and all(_bounded(a, context) for a in f.args))


def settles(f: Form, context: Context) -> bool:
    """Whether a wave is one of what tends to 0."""
    with suppress(Undecided):
        return size(transseries(f.args[0].expr, context).top(), context) < 0
    return False
