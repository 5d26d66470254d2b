r"""The decision whether `sum exp(p(n))` converges: cells, residue classes, expansions, criterion.

The functions in calling order, with what each hands to the next:

    decide_series(p, domains)            the condition, with the steps that prove it
      cells.explore -> _cell             cells of the parameters, split where a sign is asked
        _decide_cell                     residue classes n = qk + r, where parts are periodic
          _decide_class                  expansions of rising order (`ORDERS`, after `OrderTooLow`)
            _from_expansion
              eventual(p)                comparisons, tables, windows as they are for large n
              transseries                rho = -p as a sum of monomials, exact or up to O()
              bertrand_test(rho)         the ladder: rho against log n, log log n, ...
              wave_rules.decide          only where a coefficient oscillates
      cells.condition                    the cells that converge, as one condition

*Order.* Monomials `n^a (log n)^b (log log n)^c ... exp(...)` are compared by the leading term of
the logarithm of their quotient: `log n < n^(1/9) < n < n log n < exp(sqrt(n))`. The leading term
whose coefficient is proved not to be 0 decides everything.

*Example.* `p = -log(n+1) - 2*log(log(n+2))`. Then rho = log n + 2 log log n + O(1/n). Rung 1:
rho / log n -> 1, a tie. Rung 2: (rho - log n) / log log n -> 2 > 1, so the series converges, like
sum 1/(n log(n)^2). With `FARFIELD_TRACE=1` the calls are printed as a tree.

*Parameters.* For `-a*log(n+1)` the first rung asks for the sign of a - 1. That raises `SignNeeded`;
the cells a > 1, a = 1, a < 1 are decided one by one and folded into the condition a > 1.

Every question about a number ends in `coefficients.signs`. What cannot be decided is undecided,
with the attempts; nothing is guessed, and no SymPy limit is taken. A certificate
(`theory/certificates`) is printed from the cells and their steps: it decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress

import sympy
from sympy import Expr, S

from farfield.theory.algebra import door
from farfield.theory.algebra.call_tree import traced
from farfield.theory.algebra.door import check_time
from farfield.theory.algebra.exceptions import NotReal, OrderTooLow, Undecided, Unreachable
from farfield.theory.coefficients.exact import expand, oscillates
from farfield.theory.coefficients.signs import Context
from farfield.theory.decision import cells
from farfield.theory.formula.bounded_nodes import substituted
from farfield.theory.functions.nodes import n
from farfield.theory.functions.record import UNDEFINED, kinds, record_of, symbols
from farfield.theory.proofs import Decay, Decision, Step
from farfield.theory.relations import BY_SIGNS
from farfield.theory.transseries.expansion import direction, eventual, transseries
from farfield.theory.transseries.scale import bertrand_test
from farfield.theory.transseries.waves import decide as decide_waves

MAX_POWER = 12  # of n in what is periodic


def common_period(p: Expr, rounding: bool = False) -> int:
    """A common period of the periodic parts of p; with `rounding`, of fractional parts too."""
    check_time()
    turning = (x for x in sympy.preorder_traversal(p) if x.is_Pow or record_of(type(x)) is not None)
    return math.lcm(*(k for x in turning if (k := _cycle(x, rounding))))


def _cycle(x: Expr, rounding: bool) -> int:
    """The period of `(-1)^P`, `Mod(P, b)`, `cos(pi P)`, `frac(P)` for a polynomial P with rational
    coefficients, its constant aside; 0 for anything else. If D is their common denominator,
    P(n + T) - P(n) is a multiple of T/D."""
    turning = _turning(x, rounding)
    if turning is None:
        return 0
    inside, modulus = turning
    slopes = _rational_slopes(inside) if modulus.is_Rational else []
    if len(slopes) == 1:
        return int((modulus / abs(slopes[0])).p)
    return int(modulus.p) * math.lcm(*(int(c.q) for c in slopes)) if slopes else 0


def _turning(x: Expr, rounding: bool) -> tuple[Expr, Expr] | None:
    """(inside, modulus) of a node that depends on `inside` modulo `modulus` alone."""
    if x.is_Pow and x.base is S.NegativeOne:
        return x.exp, sympy.Integer(2)
    record = record_of(x.func)
    if record is None or record.period is None or (record.rounds and not rounding):
        return None
    return record.period(*x.args)


def _rational_slopes(e: Expr) -> list[Expr]:
    """The coefficients of a polynomial in n but its constant, where they are rational; none of
    anything else."""
    powers = (x.exp for x in e.atoms(sympy.Pow) if x.has(n))
    if n not in symbols(e) or not all(k.is_Rational and abs(k) <= MAX_POWER for k in powers):
        return []
    k, rest = e.as_independent(n, as_Add=False)
    if rest == n and k.is_algebraic is False:  # so not rational either
        return []
    with suppress(Undecided):
        e = expand(e)
        slopes = door.polynomial(e, n).all_coeffs()[:-1] if e.is_polynomial(n) else []
        return slopes if all(c.is_Rational for c in slopes) else []
    return []


def residue_class(p: Expr, period: int, residue: int) -> Expr:
    """p at n = period k + residue, as an expression in k (called n again).

    >>> residue_class(sympy.floor(n / 2, evaluate=False), 2, 1)
    n
    """
    swap = {}
    for x in sympy.preorder_traversal(p):
        cycle = _cycle(x, True) if x.has(n) else 0
        if cycle and period % cycle == 0:
            value = sympy.frac(x.args[0]) if isinstance(x, (sympy.floor, sympy.ceiling)) else x
            value = value.xreplace({n: sympy.Integer(residue)})
            if isinstance(x, sympy.floor):
                value = x.args[0] - value
            elif isinstance(x, sympy.ceiling):  # -floor(-y) = y + frac(-y)
                value = x.args[0] + sympy.frac(-x.args[0]).xreplace({n: sympy.Integer(residue)})
            swap[x] = value
    return substituted(substituted(p, swap), {n: period * n + residue})


ORDERS = (4, 8, 16, 32)
MAX_PERIOD = 48
"""Residue classes that are decided one by one at once."""
MAX_CLASSES = 512
"""Those that are decided one by one where bounds of what is periodic do not decide."""


@traced(1, lambda decision: decision.condition)
def decide_series(p: Expr, domains: Mapping[str, sympy.Set]) -> Decision:
    """The decision on `sum exp(p(n))` for parameters in these domains, within `budget.until`.

    Raises:
        NotReal: when the formula is real for none of them.
    """
    try:
        return _decided(p, domains)
    except (Undecided, Unreachable) as why:
        return _undecided(str(why))


def _decided(p: Expr, domains: Mapping[str, sympy.Set]) -> Decision:
    """The leaves of the parameters' tree as one condition; one undecided leaf leaves all open."""
    tree = cells.explore(p, domains, _cell)
    leaves = [(path, leaf.outcome) for path, leaf in cells.leaves(tree)]
    if not any(decision.real for _, decision in leaves):
        raise NotReal(leaves[0][1].reason)
    steps: list[Step] = []
    for path, decision in leaves:
        where = (cells.relation(g, BY_SIGNS[s,]) for g, s in path)
        cell = (Step("cell", {"condition": sympy.And(*where)}),) if path else ()
        if decision.condition is None and decision.real:
            return _undecided(decision.reason, cell + decision.steps)
        steps += [*cell, *decision.steps]
    parameters = sorted(symbols(p) - {n}, key=lambda s: s.name)
    facts = [c for s in parameters for c in cells.domain_constraints(s, domains[s.name])]
    condition = cells.condition(tree, lambda decision: decision.converges, facts)
    real = all(decision.real for _, decision in leaves)
    decay = None if leaves[0][0] else leaves[0][1].decay
    return Decision(condition, tuple(steps), real=real, decay=decay, cells=tree)


def _undecided(why: str, tried: tuple[Step, ...] = ()) -> Decision:
    """A decision that says why, with at least one step that was tried."""
    return Decision(None, tried or (Step("tried", {"what": "an expansion", "why": why}),), why)


def _cell(e: Expr, facts: list[cells.Constraint]) -> Decision:
    """The decision where these constraints hold."""
    try:
        return _decide_cell(e, cells.known_signs(facts))
    except Undecided as why:
        return Decision(None, why.steps, str(why))
    except NotReal as why:
        return Decision(None, reason=str(why), real=False)


@traced(1, lambda decision: decision.condition)
def _decide_cell(p: Expr, signs: dict[Expr, int]) -> Decision:
    """Decide one cell: residue classes, then the expansion, to higher orders as needed."""
    if _undefined(p):
        raise NotReal("a division by 0")
    period = common_period(p)
    if period == 1:
        try:
            return _decide_class(p, signs)
        except Undecided:
            period = common_period(p, rounding=True)
            if period == 1:
                raise
    if period > MAX_PERIOD:  # what is periodic is bounded: often that is enough
        try:
            return _decide_class(p, signs)
        except Undecided as why:
            if period > MAX_CLASSES:
                undecided = Undecided(f"its period of {period} is longer than {MAX_CLASSES}")
                undecided.steps = why.steps
                raise undecided from None
    steps = [Step("classes", {"period": period})]
    failure: Undecided | None = None
    for residue in range(period):
        part = residue_class(p, period, residue)
        head = Step("class", {"period": period, "residue": residue, "p": part})
        try:
            outcome = _decide_class(part, signs)
        except Undecided as why:
            failure = failure or _tried(why, steps[0], head)
            continue
        if not outcome.converges:
            return Decision(False, (steps[0], head, *outcome.steps))
        steps += [head, *outcome.steps]
    if failure is not None:
        raise failure
    return Decision(True, tuple(steps))


def _undefined(p: Expr) -> bool:
    """Whether a part is undefined that no condition may leave out."""
    if isinstance(p, sympy.Piecewise) or UNDEFINED.isdisjoint(kinds(p)):
        return False
    return not p.args or any(map(_undefined, p.args))


def _tried(why: Undecided, *before: Step) -> Undecided:
    """The exception with steps put before its own; these begin with what it says itself."""
    steps = why.steps or (Step("tried", {"what": "an expansion", "why": str(why)}),)
    why.steps = (*before, *steps)
    return why


@traced(1, lambda decision: decision.condition)
def _decide_class(p: Expr, signs: dict[Expr, int]) -> Decision:
    """Expansions of rising order until one decides; the attempts are kept for the reader."""
    orders: list[Step] = []
    for order in ORDERS:
        context = Context(signs=signs, order=order)
        try:
            outcome = _from_expansion(p, context)
        except OrderTooLow:
            what, why = f"an expansion of order {order}", "the answer hides in its remainder"
            orders.append(Step("tried", {"what": what, "why": why}))
            continue
        except Undecided as why:
            raise _tried(why, *orders) from None
        zeros = tuple(
            Step("zero", {"constant": c, "how": how})
            for c, (s, how, _) in context.evidence.items()
            if s == 0 and how
        )
        return outcome.after(*zeros)
    undecided = Undecided(f"expansions to order {ORDERS[-1]} leave the answer open")
    undecided.steps = tuple(orders)
    raise undecided


def _from_expansion(p: Expr, context: Context) -> Decision:
    """By the form that holds from some n on."""
    tail = eventual(p, context)
    steps: tuple[Step, ...] = ()
    if tail is S.NegativeInfinity:
        return Decision(True, (Step("masked", {}),), decay=Decay())
    if tail is S.Infinity:
        return Decision(False, (Step("infinite", {}),))
    if tail != p:
        steps = (Step("eventual", {"p": tail}),)
    rho = -transseries(tail, context)
    waves = any(oscillates(c) for _, c in rho.terms)
    return (decide_waves(rho) if waves else bertrand_test(rho)).after(*steps)


def bounded_above(p: Expr) -> bool:
    """Whether p(n), without parameters, is bounded above for all large n (False: not known).

    >>> bounded_above(sympy.cos(n) - sympy.log(1 + n)), bounded_above(n)
    (True, False)
    """
    try:
        context = Context()
        tail = eventual(p, context)
        if tail is S.NegativeInfinity or door.assumed(tail, "nonpositive"):
            return True
        return direction(transseries(tail, context)) in (0, -1)
    except (OrderTooLow, NotReal):
        return False
    except Undecided:
        return any(all(map(bounded_above, options)) for options in _choices(p))


def _choices(p: Expr) -> Iterator[list[Expr]]:
    """p with each value of its first term that is a Min, Max or Piecewise."""
    for term in sympy.Add.make_args(p):
        factor, choice = term.as_independent(sympy.Min, sympy.Max, sympy.Piecewise)
        if isinstance(choice, (sympy.Min, sympy.Max, sympy.Piecewise)):
            pieces = isinstance(choice, sympy.Piecewise)
            values = [v for v, _ in choice.args] if pieces else choice.args
            yield [p - term + factor * v for v in values]
            return
