r"""Expansions along the logarithmic scale, computed and written down as steps of a proof.

`f = c_1 e_1 + c_2 e_2 + ... + O(r)` with monomials `e = n^a0 (log n)^a1 ...` in falling order. The
arithmetic mirrors `theory/formal/Expansions.v`, where each rule is a theorem; here it is only a
proposal, every step of which the prover checks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cmp_to_key
from typing import Any

import sympy
from sympy import Expr, Integer, Rational, S

from farfield.theory.certificates.forms import Form, NoCertificate, Root, form
from farfield.theory.certificates.periods import value_on_class
from farfield.theory.certificates.signs import Signs
from farfield.theory.coefficients.arithmetic import expand
from farfield.theory.functions.nodes import n

Expo = tuple[Expr, ...]
Rest = Expo | None  # the order of the remainder; None: exact
Terms = tuple[tuple[Expr, Expo], ...]

UNIT: Expo = ()
LINEAR = ("plus", "minus", "opp", "mult")


class NeedMore(Exception):
    """The answer hides in a remainder: expand further."""


@dataclass(frozen=True)
class Germ:
    """The terms of an expansion, leading one first, and its remainder."""

    terms: Terms
    rest: Rest


# -- exponents ------------------------------------------------------------------------------------


def _stripped(e: list[Expr]) -> Expo:
    while e and e[-1] == 0:
        e.pop()
    return tuple(e)


def add(e: Expo, f: Expo) -> Expo:
    """The exponents of a product."""
    size = max(len(e), len(f))
    padded = ([*x, *[S.Zero] * (size - len(x))] for x in (e, f))
    return _stripped([expand(a + b) for a, b in zip(*padded, strict=True)])


def times(c: Expr, e: Expo) -> Expo:
    """The exponents of a power."""
    return _stripped([expand(c * a) for a in e])


def unit(k: int) -> Expo:
    """The exponents of l_{k+1}."""
    return (*[S.Zero] * (k + 1), S.One)


def shift(e: Expo, rest: Rest) -> Rest:
    """The remainder of a product with a monomial."""
    return None if rest is None else add(e, rest)


@dataclass
class Expander:
    """Expands the parts of a formula on one cell, and writes the steps.

    `order` is how many terms a series keeps, `index` the distance in the prover's notation; in a
    residue class it is `q * n + r`, and `period` (q, r).
    """

    signs: Signs
    order: int
    index: str = "n"
    period: tuple[int, int] | None = None
    steps: list[str] = field(default_factory=list)
    known: dict[Form, tuple[str, Germ]] = field(default_factory=dict)
    count: int = 0

    # -- order of growth --

    def compare(self, e: Expo, f: Expo) -> int:
        """-1, 0 or 1 as the first monomial is of smaller, the same or larger growth."""
        for a in add(e, times(S.NegativeOne, f)):
            if s := self.signs.sign(a):
                return s
        return 0

    def within(self, e: Expo, rest: Rest) -> bool:
        """Whether a monomial is of the order of a remainder."""
        return rest is not None and self.compare(e, rest) <= 0

    def larger(self, *rests: Rest) -> Rest:
        """The largest of some remainders."""
        found = [r for r in rests if r is not None]
        return max(found, key=cmp_to_key(self.compare)) if found else None

    def lead(self, f: Form) -> tuple[str, Germ, int]:
        """A part, its expansion and the sign of its leading coefficient; terms that are 0 go.

        Raises:
            NeedMore: the leading term hides in the remainder.
        """
        name, germ = self.expand(f)
        while germ.terms:
            (c, e), *others = germ.terms
            if s := self.signs.sign(c):
                return name, germ, s
            germ = Germ(tuple(others), germ.rest)
            name = self.step(f, germ, adding_up([e]))
            self.known[f] = name, germ
        if germ.rest is None:
            raise NoCertificate(f"{str(f.expr)[:60]} is 0 from some point on")
        raise NeedMore

    # -- steps --

    def asserted(self, letter: str, claim: str, by: str) -> str:
        """Assert a claim, to be proved `by` a tactic; its name."""
        self.count += 1
        name = f"{letter}{self.count}"
        shown = by if by == "sum" else f"({by})"
        self.steps.append(f"assert ({name} : {claim})\n  by {shown}.")
        return name

    def step(self, f: Form, germ: Germ, by: str) -> str:
        """Assert an expansion."""
        function = f"(fun n : nat => {f.show(self.index)})"
        claim = f"expands {function} {listed(germ.terms)} {order(germ.rest)}"
        return self.asserted("E", claim, by)

    def gathered(self, raw: Terms, rest: Rest) -> tuple[Germ, list[Expo]]:
        """The terms put together, and the monomials that cancel; those of the remainder go."""
        groups: dict[Expo, list[Expr]] = {}
        for c, e in raw:
            if not self.within(e, rest):
                groups.setdefault(e, []).append(c)
        kept: list[tuple[Expr, Expo]] = []
        cancelled: list[Expo] = []
        for e, cs in self._merged(groups):
            if (total := expand(sympy.Add(*cs))) != 0:
                kept.append((total, e))
            elif any(cs):
                cancelled.append(e)
        return Germ(tuple(kept), rest), cancelled

    def _merged(self, groups: dict[Expo, list[Expr]]) -> list[tuple[Expo, list[Expr]]]:
        """The groups in falling order; those whose exponents are equal on this cell together."""
        merged: list[tuple[Expo, list[Expr]]] = []
        for e in sorted(groups, key=cmp_to_key(self.compare), reverse=True):
            if merged and self.compare(merged[-1][0], e) == 0:
                merged[-1][1].extend(groups[e])
            else:
                merged.append((e, list(groups[e])))
        return merged

    def expand(self, f: Form) -> tuple[str, Germ]:
        """The name of the step that expands a part, and the expansion."""
        if f not in self.known:
            self.known[f] = self._expanded(f)
        return self.known[f]

    def _expanded(self, f: Form) -> tuple[str, Germ]:
        if f.constant:
            return f"(expands_const ({f.show()}))", Germ(((kept_roots(f.expr), UNIT),), None)
        if (value := self._periodic(f)) is not None:
            return value
        if self._bounded(f):
            germ = Germ((), UNIT)
            return self.step(f, germ, "apply expands_bounded; bounded"), germ
        if f.op in LINEAR:
            germ, cancelled = self.linear(f)
            return self.step(f, germ, adding_up(cancelled)), germ
        rule = getattr(self, f"_{f.op}", None)
        if rule is None:
            raise NoCertificate(f"{str(f.expr)[:60]} is neither bounded nor expanded")
        result: tuple[str, Germ] = rule(f)
        return result

    def linear(self, f: Form) -> tuple[Germ, list[Expo]]:
        """The expansion of a sum of multiples of parts, and the monomials that cancel in it."""
        raw, rests = self._parts(f)
        return self.gathered(raw, self.larger(*rests))

    def _parts(self, f: Form) -> tuple[Terms, list[Rest]]:
        """The terms of the parts of a sum, not yet put together, and their remainders."""
        if f.constant or f.op not in LINEAR or self._bounded(f):
            _, germ = self.expand(f)
            return germ.terms, [germ.rest]
        if f.op == "mult":
            factor, rest = f.args
            if not factor.constant:
                _, germ = self._product(f)
                return germ.terms, [germ.rest]
            terms, rests = self._parts(rest)
            return tuple((kept_roots(factor.expr) * c, e) for c, e in terms), rests
        terms, rests = self._parts(f.args[0])
        if f.op == "opp":
            return tuple((-c, e) for c, e in terms), rests
        more, others = self._parts(f.args[1])
        sign = 1 if f.op == "plus" else -1
        return (*terms, *((sign * c, e) for c, e in more)), [*rests, *others]

    def _gather(self, f: Form, raw: Terms, rest: Rest, by: str) -> tuple[str, Germ]:
        """A step by a rule whose terms are then put together."""
        germ, cancelled = self.gathered(raw, rest)
        return self.step(f, germ, f"gathering ({by}) {gathering(cancelled)}"), germ

    # -- rules: one for each operation --

    def _index(self, f: Form) -> tuple[str, Germ]:
        if self.period is None:
            return "expands_n", Germ(((S.One, (S.One,)),), None)
        q, r = self.period
        raw = ((Integer(q), (S.One,)), (Integer(r), UNIT))
        germ, _ = self.gathered(raw, None)
        return self.step(f, germ, f"class {q}%nat {r}%nat"), germ

    def _div(self, f: Form) -> tuple[str, Germ]:
        a, b = f.args
        return self._product(Form("mult", (a, Form("inv", (b,), 1 / b.expr)), f.expr), f)

    def _product(self, f: Form, shown: Form | None = None) -> tuple[str, Germ]:
        """A product of two parts; `shown` is the quotient that stands for it."""
        if (shown or f) in self.known:
            return self.known[shown or f]
        (name, a), (other, b) = map(self.expand, f.args)
        both = None if a.rest is None or b.rest is None else add(a.rest, b.rest)
        rest = self.larger(
            *(shift(e, b.rest) for _, e in a.terms[:1]),
            *(shift(e, a.rest) for _, e in b.terms[:1]), both,
        )  # fmt: skip
        raw = tuple((c * d, add(e, g)) for c, e in a.terms for d, g in b.terms)
        result = self._gather(shown or f, raw, rest, f"product {name} {other}")
        self.known[shown or f] = result
        return result

    def _ln(self, f: Form) -> tuple[str, Germ]:
        name, germ, s = self.lead(f.args[0])
        if s < 0:
            raise NoCertificate(f"{str(f.expr)[:60]} is not real for large n")
        (c, e), order_of, series, rest = self._relative(germ)
        logs = tuple((a, (*[S.Zero] * (i + 1), S.One)) for i, a in enumerate(e))
        log_c, why = logarithm(c)
        series_terms = _series(self._logarithms(), series)
        raw = ((log_c, UNIT), *logs, *series_terms)
        if self.within(UNIT, rest):
            log_c, why = sympy.log(c, evaluate=False), "reflexivity"
        by = (
            f"logarithm {name} {order_of} {order(rest)} {self.order}%nat "
            f"({_text(log_c)}) by ({why})"
        )
        return self._gather(f, raw, rest, by)

    def _rpower(self, f: Form) -> tuple[str, Germ]:
        base, exponent = f.args
        if not exponent.constant:
            raise NoCertificate(f"the exponential {str(f.expr)[:60]}")
        name, germ, s = self.lead(base)
        if s < 0:
            raise NoCertificate(f"{str(f.expr)[:60]} is not real for large n")
        r = exponent.expr
        value, why = root((c := germ.terms[0][0]), r)
        return self._powered(
            f, germ, r, value,
            lambda m, o: f"real_power {name} {m} {o} {self.order}%nat ({_text(value)}) by ({why})",
            c,
        )  # fmt: skip

    def _power(self, f: Form) -> tuple[str, Germ]:
        name, germ, _ = self.lead(f.args[0])
        k = f.value
        c = germ.terms[0][0]
        value = expand(c**k)
        return self._powered(
            f, germ, Integer(k), value,
            lambda m, o: f"natural_power {name} {m} {o} {self.order}%nat {k}%nat ({k}) ({_text(value)})", c,
        )  # fmt: skip

    def _inv(self, f: Form) -> tuple[str, Germ]:
        name, germ, _ = self.lead(f.args[0])
        c = germ.terms[0][0]
        return self._powered(
            f, germ, S.NegativeOne, 1 / c,
            lambda m, o: f"inverse {name} {m} {o} {self.order}%nat", c,
        )  # fmt: skip

    def _powered(
        self, f: Form, germ: Germ, r: Expr, value: Expr, by: Any, c: Expr
    ) -> tuple[str, Germ]:
        (_, e), order_of, series, inner = self._relative(germ)
        scaled = times(r, e)
        raw = tuple(
            (value * d, add(scaled, g)) for d, g in _series(self._binomials(r), series)
        )
        return self._gather(f, raw, shift(scaled, inner), by(order_of, order(inner)))

    def _relative(self, germ: Germ) -> tuple[tuple[Expr, Expo], str, Terms, Rest]:
        """f = c e (1 + d): (c, e), an order of d, the terms of d, the order to which a series in d
        with `order` + 1 terms is known."""
        (c, e), *others = germ.terms
        back = times(S.NegativeOne, e)
        d = tuple((x / c, add(g, back)) for x, g in others)
        rest = shift(back, germ.rest)
        size = self.larger(rest, *(g for _, g in d[:1]))
        if size is None:
            return (c, e), order(None), d, None
        cut = size
        for _ in range(self.order):
            cut = add(cut, size)
        return (c, e), order(size), d, self.larger(rest, cut)

    def _logarithms(self) -> list[Expr]:
        return [S.Zero, *(Rational((-1) ** (j + 1), j) for j in range(1, self.order + 1))]

    def _binomials(self, r: Expr) -> list[Expr]:
        coefficients = [S.One]
        for j in range(self.order):
            coefficients.append(expand(coefficients[-1] * (r - j) / (j + 1)))
        return coefficients

    def _abs(self, f: Form) -> tuple[str, Germ]:
        name, germ, s = self.lead(f.args[0])
        if s > 0:
            return self.step(f, germ, f"apply (expands_abs _ _ _ _ _ {name}); [led | constant]"), germ
        raw = tuple((-c, e) for c, e in germ.terms)
        by = f"apply (expands_abs_opp _ _ _ _ _ {name}); [led | constant]"
        return self._gather(f, raw, germ.rest, by)

    def _max(self, f: Form) -> tuple[str, Germ]:
        a, b = f.args
        fact, less = self.decide(Form("lt", (a, b), a.expr < b.expr))
        chosen = b if less == (f.op == "max") else a
        return self._is_eventually(f, chosen, [fact])

    _min = _max

    def _if(self, f: Form) -> tuple[str, Germ]:
        facts: list[str] = []
        chosen = self.branch(f, facts)
        return self._is_eventually(f, chosen, facts)

    def _table(self, f: Form) -> tuple[str, Germ]:
        return self._is_eventually(f, f.args[-1], [self.table_fact(f)])

    def _is_eventually(self, f: Form, chosen: Form, facts: list[str]) -> tuple[str, Germ]:
        name, germ = self.expand(chosen)
        by = f"apply (expands_ext (fun n : nat => {chosen.show(self.index)})); "
        together = conjunction(facts)
        return self.step(f, germ, by + f"[pieces {together} | exact {name}]"), germ

    # -- what holds from some point on --

    def branch(self, f: Form, facts: list[str]) -> Form:
        """The value of a Piecewise from some point on; what says so is added to the facts."""
        while f.op == "if":
            condition, value, other = f.args
            f = value if self.holds(condition, facts) else other
        return f

    def holds(self, c: Form, facts: list[str]) -> bool:
        """Whether a condition holds from some point on (else its contrary does)."""
        if c.op in ("true", "false"):
            return c.op == "true"
        if c.op == "not":
            return not self.holds(c.args[0], facts)
        if c.op in ("and", "or"):
            both = [self.holds(a, facts) for a in c.args]
            return all(both) if c.op == "and" else any(both)
        fact, truth = self.decide(c)
        facts.append(fact)
        return truth

    def decide(self, c: Form) -> tuple[str, bool]:
        """A comparison, decided for all large n."""
        a, b = c.args
        difference = Form("minus", (b, a), b.expr - a.expr)
        _, germ = self.expand(difference)
        if not germ.terms and germ.rest is None:
            claim, by = f"{a.show(self.index)} = {b.show(self.index)}", "eventually_equal _ _"
            return self.fact(claim, f"apply ({by} {self.expand(difference)[0]})"), c.op != "lt"
        _, germ, s = self.lead(difference)
        if s < 0:
            a, b = b, a
            difference = Form("minus", (b, a), b.expr - a.expr)
        name, germ, _ = self.lead(difference)
        claim = f"{a.show(self.index)} < {b.show(self.index)}"
        by = f"apply (eventually_less _ _ _ _ _ _ {name}); [led | constant]"
        return self.fact(claim, by), c.op != "eq" and s > 0

    def table_fact(self, f: Form) -> str:
        """A table has its last value from some point on."""
        rule = "eventually_rbar_table" if f.args[-1].op in ("finite", "masked") else "eventually_table"
        by = f"apply {rule}; intros; lia"
        return self.fact(f"{f.show(self.index)} = {f.args[-1].show(self.index)}", by)

    def fact(self, claim: str, by: str) -> str:
        """Assert what holds from some point on; its name."""
        return self.asserted("H", f"eventually (fun n : nat => {claim})", by)

    # -- bounded and periodic parts --

    def _bounded(self, f: Form) -> bool:
        if f.constant or f.op in ("cos", "sin", "sign", "mod"):
            return f.constant or self._value(f) is None
        if f.op in ("plus", "minus", "opp", "mult", "power", "sum"):
            return all(map(self._bounded, f.args))
        if f.op == "rpower" and f.args[0].constant:  # z^(c n) with 0 < z <= 1, c >= 0
            z, exponent = (a.expr for a in f.args)
            return bool(z.is_Rational and 0 < z <= 1 and _is_slope(f.args[1], exponent))
        if f.op == "div":
            return self._bounded(f.args[0]) and f.args[1].constant
        return False

    def _periodic(self, f: Form) -> tuple[str, Germ] | None:
        """The value of a periodic part on a residue class."""
        found = self._value(f)
        if found is None:
            return None
        value, tactic = found
        germ = Germ(((value, UNIT),) if value != 0 else (), None)
        by = f"periodic ({_text(value)}) by ({tactic})"
        return self.step(f, germ, f"gathering ({by}) gather"), germ


    def _value(self, f: Form) -> tuple[Expr, str] | None:
        periodic = f.op in ("sign", "mod", "cos", "sin")
        return value_on_class(f, *self.period) if periodic and self.period else None


def _is_slope(f: Form, e: Expr) -> bool:
    slope = e / n
    return bool(slope.is_Rational and slope >= 0)


def _series(coefficients: list[Expr], d: Terms) -> Terms:
    """The terms of q_0 + q_1 d + ... by Horner's rule, unmerged, as the prover writes them."""
    if not coefficients:
        return ()
    inner = _series(coefficients[1:], d)
    return (
        (coefficients[0], UNIT),
        *((c * x, add(e, g)) for c, e in d for x, g in inner),
    )


# -- logarithms and powers of leading coefficients ------------------------------------------------


def logarithm(c: Expr) -> tuple[Expr, str]:
    """log c in the logarithms of primes and parameters, and the tactic that proves it."""
    value = sympy.expand_log(sympy.log(c), force=True).replace(
        lambda e: isinstance(e, sympy.log) and isinstance(e.args[0], Root),
        lambda e: e.args[0].args[1] * sympy.expand_log(sympy.log(e.args[0].args[0]), force=True),
    )
    if value == sympy.log(c, evaluate=False):
        return value, "reflexivity"
    return value, f"logs; {_splits(c)}constant"


def root(c: Expr, r: Expr) -> tuple[Expr, str]:
    """c^r, and the tactic that proves it."""
    if c == 1:
        return S.One, "apply Rpower_one"
    value = kept_roots(c**r) if c.is_Rational and r.is_Rational else Root(c, r)
    if value == Root(c, r):
        return value, "reflexivity"
    return value, f"apply Rpower_value; [constant | logs; {_splits(c, value)}constant]"


def kept_roots(c: Expr) -> Expr:
    """A constant whose roots stay apart: SymPy would turn the product of two into one."""
    return c.replace(
        lambda e: e.is_Pow and e.base.is_Rational and e.exp.is_Rational and not e.exp.is_Integer,
        lambda e: Root(*e.args),
    )


def _splits(*es: Expr) -> str:
    """Tactics that split the logarithms of composite numbers into those of primes."""
    numbers = {abs(k) for e in es for q in e.atoms(Rational) for k in (q.p, q.q)}
    composite = sorted(k for k in numbers if k > 3 and not sympy.isprime(k))
    primes = (
        " * ".join(str(p) for p, k in sympy.factorint(m).items() for _ in range(k))
        for m in composite
    )
    return "".join(f"split_log {m} ({t}); " for m, t in zip(composite, primes, strict=True))


# -- text -----------------------------------------------------------------------------------------


def _text(e: Expr) -> str:
    return form(e).show()


def gathering(cancelled: list[Expo]) -> str:
    """The tactic that puts terms together, some of which cancel."""
    cancels = "".join(f"cancel ({exponents(e)} : expo); " for e in cancelled)
    return f"(raw; {cancels}gather_terms)" if cancels else "gather"


def adding_up(cancelled: list[Expo]) -> str:
    """The tactic that adds up the parts of a sum."""
    return f"sum_by {gathering(cancelled)}" if cancelled else "sum"


def exponents(e: Expo) -> str:
    """Exponents in the prover's notation."""
    return f"[{'; '.join(map(_text, e))}]"


def order(rest: Rest) -> str:
    """A remainder in the prover's notation."""
    return "exactly" if rest is None else f"(Some {exponents(rest)})"


def listed(terms: Terms) -> str:
    """Terms in the prover's notation."""
    return f"[{'; '.join(f'({_text(c)}, {exponents(e)})' for c, e in terms)}]"


def conjunction(facts: list[str]) -> str:
    """What holds from some point on, together."""
    *others, last = facts
    for fact in reversed(others):
        last = f"(filter_and _ _ {fact} {last})"
    return last
