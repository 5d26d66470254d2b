r"""Does the exp-series of a bias converge?

For a bias p(n) the exp-series is `sum_n exp(p(n))`. If it converges, full attention is
approximated by window attention, uniformly in the inputs, as the window grows [Q, Theorem 0.4];
and only then (ours: the worst-case error of a window of j tokens is exactly
`2 value_bound T_j/(T_j + e^{-2 logit_bound} B_j)`, which tends to 0 iff the series converges).

How it is decided
-----------------
1. `eventual` (module `functions`): comparisons, tables and windows are replaced by what they are
   for all large n. If p = -oo there, the sum is finite.
2. Periodic parts (`(-1)^n`, `cos(pi n/3)`, `Mod(n, 7)`) split the series into residue classes;
   all must converge.
3. `germ` expands rho = -p at infinity, exactly, with more terms whenever an answer hides in a
   remainder (`ORDERS`).
4. `climb` (module `ladder`) compares rho with log n, log log n, ...; `recurrence` handles
   oscillating coefficients.
5. With parameters, 1 to 4 run on symbols; `cells` splits the parameter space wherever a sign
   depends on it.

Every question about a number ends in `constants.sign`. What cannot be decided is `undecided`, with
what was tried; nothing is guessed, and no SymPy limit is taken.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sympy
from sympy import Expr, S

from farfield.theory.algebra.outcomes import NeedMore, NotReal, Undecided
from farfield.theory.answers.answer import Code, InputError, Label, Reason, Status, decisive
from farfield.theory.answers.notation import expression_line, shortened
from farfield.theory.coefficients.arithmetic import expand
from farfield.theory.coefficients.context import Context, deciding
from farfield.theory.decision import parameters as cells
from farfield.theory.decision.recurrence import decide
from farfield.theory.encodings import Encoding, encoding
from farfield.theory.formula.building import substituted
from farfield.theory.functions.nodes import n
from farfield.theory.proofs import Proof, Step
from farfield.theory.transseries.arithmetic import negate
from farfield.theory.transseries.expansion import eventual, transseries
from farfield.theory.transseries.scale import Outcome
from farfield.theory.verdicts import Convergence, Verdict

ORDERS = ((4, False), (8, False), (4, True), (8, True), (16, False), (32, False))
MAX_PERIOD = 48
DEFAULT_BUDGET = 10.0


# What SymPy raises on expressions it cannot handle, and Python on those nested too deeply.
_ALGEBRA_FAILS = (
    AttributeError, ArithmeticError, NotImplementedError, RecursionError, TypeError, ValueError,
    sympy.PolynomialError,
)  # fmt: skip


def check_convergence(
    f: Any,
    *,
    assumptions: Mapping[str, str] | None = None,
    budget_s: float = DEFAULT_BUDGET,
    **options: Any,
) -> Convergence:
    """Decide whether the exp-series of a bias converges, with a proof.

    Args:
        f: a formula in `n` and named parameters, a SymPy expression, the name of an encoding, or
            an `Encoding`.
        assumptions: domain of each parameter: positive (the default), nonnegative, negative,
            nonpositive, real, or an interval such as `[0, 2)`.
        budget_s: seconds after which the verdict is `undecided`.
        **options: values of parameters, or what `encoding` takes (`heads`, `dialect`, ...).

    Returns:
        A `Convergence`. Finitely many terms at the beginning that are undefined or infinite are
        left out of the series (`skipped_terms`).

    Raises:
        InputError: for what is no formula, is not real for large n, or contradicts itself.

    >>> check_convergence("-log(1+n)").verdict.value
    'diverges'
    >>> check_convergence("-r1*log(1+r2*n)").condition
    r1 > 1
    >>> str(check_convergence("alibi").verdict)
    'converges'
    """
    budget = _budget(budget_s)
    subject = encoding(f, **_merged(assumptions, options))
    domains = {p.name: p.domain for p in subject.parameters}
    if subject.bca is not None:
        said = f"bounded support: each row sees at most {2 * subject.bca} keys"
        step = Step("bounded support", {"reason": said})
        proof = Proof("every window of that width is exact", (step,))
        reason = Reason(Code.BOUNDED_SUPPORT, said)
        return Convergence(
            subject.formula, Verdict.CONVERGES, S.true, proof, support=2 * subject.bca,
            label=Label.THEOREM, reason=reason, subject=subject.name,
        )  # fmt: skip
    if subject.out_of_scope is not None:
        step = Step("scope", {"reason": str(subject.out_of_scope)})
        proof = Proof("nothing follows from the theorem", (step,))
        return Convergence(
            None, Verdict.OUT_OF_SCOPE, None, proof, mechanism=subject.mechanism,
            status=Status.OUT_OF_SCOPE, label=None, reason=subject.out_of_scope,
            subject=subject.name,
        )  # fmt: skip
    deadline = time.monotonic() + budget
    decided: dict[Expr, Convergence] = {}
    for bias in subject.biases:
        if bias not in decided:
            present = {s.name for s in bias.free_symbols}
            own = {name: d for name, d in domains.items() if name in present}
            decided[bias] = _decide_bias(bias, own, deadline)
    results = tuple(decided[b] for b in subject.biases)
    if len(results) == 1:
        return dataclasses.replace(results[0], subject=subject.name)
    return _together(subject, results)


def _budget(budget_s: Any) -> float:
    if not isinstance(budget_s, (int, float)) or not 0 < budget_s < math.inf:
        raise InputError(f"budget_s {budget_s!r} must be a positive number of seconds")
    return float(budget_s)


def _merged(assumptions: Mapping[str, str] | None, options: dict[str, Any]) -> dict[str, Any]:
    both = sorted(set(assumptions or {}) & set(options))
    if both:
        raise InputError(f"{both[0]!r} is given a value and an assumption; give one of them")
    return options | {"assumptions": assumptions} if assumptions else options


def _together(subject: Encoding, results: tuple[Convergence, ...]) -> Convergence:
    """Several heads: `diverges` as soon as one does, `converges` only if all do."""
    worst = decisive(
        results, lambda r: r.verdict is Verdict.CONDITIONAL, lambda r: r.verdict is Verdict.DIVERGES
    )
    v = worst.verdict
    count = sum(r.verdict is v for r in results)
    claim = f"{count} of {len(results)} heads: {v}"
    condition = S.false if v is Verdict.DIVERGES else None
    if v in (Verdict.CONDITIONAL, Verdict.CONVERGES):
        condition = sympy.And(*(r.condition for r in results))
    assumed = dict(a for r in results for a in r.assumptions)
    return Convergence(
        subject.formula, v, condition, Proof(claim, worst.proof.steps), tuple(assumed.items()),
        results, status=worst.status, label=worst.label, reason=worst.reason, subject=subject.name,
    )  # fmt: skip


def _decide_bias(p: Expr, domains: Mapping[str, str], deadline: float) -> Convergence:
    assumptions = tuple(domains.items())

    def run(e: Expr, signs: dict[Expr, int]) -> Outcome | _Open:
        try:
            return _run(e, signs, deadline)
        except Undecided as why:
            return _Open(str(why), why.steps)
        except NotReal as why:
            return _Open(str(why), real=False)
        except _ALGEBRA_FAILS as why:
            return _Open(f"the algebra failed ({type(why).__name__})")

    try:
        tree = cells.explore(p, domains, run)
    except Undecided as why:
        return _undecided(p, str(why), assumptions, why.steps)
    except _ALGEBRA_FAILS as why:
        return _undecided(p, f"the algebra failed ({type(why).__name__})", assumptions)
    leaves = list(_leaves(tree))
    outcomes = [outcome for _, outcome in leaves]
    not_real = [o for o in outcomes if isinstance(o, _Open) and not o.real]
    if len(not_real) == len(outcomes):
        raise InputError(
            f"formula {shortened(str(p))!r} is not real for large n ({not_real[0].reason})"
        )
    for where, o in leaves:
        if isinstance(o, _Open) and o.real:
            cell = (Step("cell", {"condition": sympy.And(*where)}),) if where else ()
            return _undecided(p, o.reason, assumptions, cell + o.steps)
    facts = [c for s in p.free_symbols - {n} for c in cells.domain_constraints(s, domains[s.name])]
    truth = cells.condition(tree, lambda o: isinstance(o, Outcome) and o.converges, facts)
    verdict = {S.true: Verdict.CONVERGES, S.false: Verdict.DIVERGES}.get(truth, Verdict.CONDITIONAL)
    claim = f"the exp-series {verdict.value}"
    if verdict is Verdict.CONDITIONAL:
        claim = f"the exp-series converges exactly if {truth}"
    reason = Reason(Code.CONDITIONAL, "where the formula is not real there is no series")
    steps: list[Step] = []
    for where, outcome in leaves:
        steps += [Step("cell", {"condition": sympy.And(*where)})] if where else []
        steps += outcome.steps
    return Convergence(
        p, verdict, truth, Proof(claim, tuple(steps)), assumptions, label=Label.THEOREM,
        reason=reason if not_real else None,
    )  # fmt: skip


@dataclass(frozen=True)
class _Open:
    """Why one cell is not decided, and what was tried there."""

    reason: str
    steps: tuple[Step, ...] = ()
    real: bool = True


def _undecided(
    p: Expr, why: str, assumptions: tuple[tuple[str, str], ...], tried: tuple[Step, ...] = ()
) -> Convergence:
    steps = tried or (Step("tried", {"what": "an expansion", "why": why}),)
    proof = Proof("", steps)
    return Convergence(
        p, Verdict.UNDECIDED, None, proof, assumptions, status=Status.UNKNOWN, label=None,
        reason=Reason(Code.UNDECIDED, why),
    )  # fmt: skip


def _leaves(
    tree: cells.Tree, above: tuple[Any, ...] = ()
) -> Iterator[tuple[tuple[Any, ...], Outcome | _Open]]:
    """The outcomes of the cells, each with the relations that define it."""
    if isinstance(tree, cells.Leaf):
        yield above, tree.outcome
        return
    for part, op in ((tree.positive, ">"), (tree.zero, "=="), (tree.negative, "<")):
        if part is not None:
            yield from _leaves(part, (*above, cells.relation(tree.on, op)))


def _run(p: Expr, signs: dict[Expr, int], deadline: float) -> Outcome:
    """Decide one cell: residue classes, then the germ, to higher orders as needed."""
    if p.has(S.ComplexInfinity, S.NaN):
        raise NotReal("a division by 0")
    period = common_period(p)
    if period == 1:
        try:
            return _run_class(p, signs, deadline)
        except Undecided:
            period = common_period(p, rounding=True)
            if period == 1:
                raise
    if period > MAX_PERIOD:
        raise Undecided(f"a period of {period}")
    steps = [Step("classes", {"period": period})]
    failure: Undecided | None = None
    for residue in range(period):
        own = residue_class(p, period, residue)
        head = Step("class", {"period": period, "residue": residue, "p": own})
        try:
            outcome = _run_class(own, signs, deadline)
        except Undecided as why:
            failure = failure or _tried(why, steps[0], head)
            continue
        if not outcome.converges:
            return Outcome(False, (steps[0], head, *outcome.steps))
        steps += [head, *outcome.steps]
    if failure is not None:
        raise failure
    return Outcome(True, tuple(steps))


def _tried(why: Undecided, *before: Step) -> Undecided:
    """The exception with steps put before its own; these begin with what it says itself."""
    own = why.steps or (Step("tried", {"what": "an expansion", "why": str(why)}),)
    why.steps = (*before, *own)
    return why


def _run_class(p: Expr, signs: dict[Expr, int], deadline: float) -> Outcome:
    orders: list[Step] = []
    for order, named in ORDERS:
        current = Context(signs=signs, order=order, named=named, deadline=deadline)
        with deciding(current):
            try:
                outcome = _alternatives(p, signs, deadline)
            except NeedMore:
                kind = f"an expansion of order {order}" + named * " with named remainders"
                why = "the answer hides in its remainder"
                orders.append(Step("tried", {"what": kind, "why": why}))
                continue
            except Undecided as why:
                raise _tried(why, *orders) from None
        zeros = tuple(
            Step("zero", {"constant": c, "how": how})
            for c, (s, how) in current.trace.items()
            if s == 0
        )
        return Outcome(outcome.converges, zeros + outcome.steps)
    undecided = Undecided(f"expansions to order {ORDERS[-1][0]} leave the answer open")
    undecided.steps = tuple(orders)
    raise undecided


def _alternatives(p: Expr, signs: dict[Expr, int], deadline: float) -> Outcome:
    """Decide p; where a comparison inside it stays open, decide it from its alternatives."""
    try:
        return _from_germ(p)
    except Undecided as why:
        options, kind = _open_choice(p)
        if not options:
            raise
        undecided = why
    outcomes: list[Outcome] = []
    tried: list[Step] = []
    for option in options:
        try:
            outcome = _run(option, signs, deadline)
        except (Undecided, NotReal) as why:  # it may be undefined where it does not apply
            tried.append(
                Step(
                    "tried",
                    {
                        "what": f"the alternative {shortened(expression_line(option))}",
                        "why": str(why),
                    },
                )
            )
            continue
        verdict = "it converges" if outcome.converges else "it diverges"
        tried.append(
            Step(
                "tried",
                {
                    "what": f"the alternative {shortened(expression_line(option))}",
                    "why": verdict + ", which alone does not decide",
                },
            )
        )
        step = Step("one alternative", {"p": option})
        if (kind == "min" and outcome.converges) or (kind == "max" and not outcome.converges):
            return Outcome(outcome.converges, (step, *outcome.steps))
        outcomes.append(outcome)
    if len(outcomes) == len(options) and all(o.converges for o in outcomes):
        step = Step("all alternatives", {"alternatives": ", ".join(map(str, options))})
        each = zip(options, outcomes, strict=True)
        parts = (s for p, o in each for s in (Step("alternative", {"p": p}), *o.steps))
        return Outcome(True, (step, *parts))
    raise _tried(undecided, *tried)


def _open_choice(p: Expr) -> tuple[list[Expr], str]:
    """The alternatives of the first Min, Max or Piecewise that is a term of p, and its kind."""
    for term in sympy.Add.make_args(p):
        factor, choice = term.as_independent(sympy.Min, sympy.Max, sympy.Piecewise, as_Add=False)
        if factor.has(n) or not isinstance(choice, (sympy.Min, sympy.Max, sympy.Piecewise)):
            continue
        if isinstance(choice, sympy.Piecewise):
            values, kind = [v for v, c in choice.args if c != S.false], "any"
        else:
            values = list(choice.args)
            smaller = isinstance(choice, sympy.Min) == bool(factor.is_positive)
            kind = "min" if smaller else "max"
            if not factor.is_positive and not factor.is_negative:
                continue
        return [p - term + factor * v for v in values], kind
    return [], ""


def _from_germ(p: Expr) -> Outcome:
    tail = eventual(p)
    steps: tuple[Step, ...] = ()
    if tail is S.NegativeInfinity:
        return Outcome(True, (Step("masked", {}),))
    if tail is S.Infinity:
        return Outcome(False, (Step("infinite", {}),))
    if tail != p:
        steps = (Step("eventual", {"p": tail}),)
    rho = negate(transseries(tail))
    outcome = decide(rho)
    return Outcome(outcome.converges, steps + outcome.steps)


def common_period(p: Expr, rounding: bool = False) -> int:
    """A common period of what is periodic in p; with `rounding`, of fractional parts too."""
    periods = (_cycle(x, rounding) for x in sympy.preorder_traversal(p) if x.has(n))
    return math.lcm(*(k for k in periods if k))


def _cycle(x: Expr, rounding: bool) -> int:
    """The period of `(-1)^P`, `Mod(P, b)`, `cos(pi P)`, `frac(P)` for a polynomial P with rational
    coefficients, its constant aside; 0 for anything else. If D is their common denominator,
    P(n + T) - P(n) is a multiple of T/D."""
    if x.is_Pow and x.base == -1:
        inside, modulus = x.exp, sympy.Integer(2)
    elif isinstance(x, (sympy.sin, sympy.cos, sympy.tan, sympy.cot)):
        inside, modulus = x.args[0] / sympy.pi, sympy.Integer(2)
    elif isinstance(x, sympy.Mod) and x.args[1].is_Rational:
        inside, modulus = x.args
    elif rounding and isinstance(x, (sympy.floor, sympy.ceiling, sympy.frac)):
        inside, modulus = x.args[0], sympy.Integer(1)
    else:
        return 0
    powers = (e.exp for e in inside.atoms(sympy.Pow) if e.has(n))
    if not all(k.is_Rational and abs(k) <= 12 for k in powers):
        return 0
    try:
        inside = expand(inside)
    except Undecided:
        return 0
    if not inside.is_polynomial(n):
        return 0
    slopes = sympy.Poly(inside, n).all_coeffs()[:-1]
    if not slopes or not all(c.is_Rational for c in slopes):
        return 0
    if len(slopes) == 1:
        return int((modulus / abs(slopes[0])).p)
    return int(modulus.p) * math.lcm(*(int(c.q) for c in slopes))


def residue_class(p: Expr, period: int, residue: int) -> Expr:
    """p at n = period k + residue, as an expression in k (called n again)."""
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
