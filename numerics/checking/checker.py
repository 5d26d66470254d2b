r"""An independent check of convergence proofs: it reads the steps, not the engine that wrote them.

The input is the JSON form of a `Convergence`: text only. Every step is read again by the reader of
formulas and tested by rigorous balls at huge distances, or by a small comparator of its own
(`growth`). It shares the reader and the balls with the engine and imports nothing else; whose
exact test of zero it believes, if any, is an argument. A step is

* `computed`: its numbers were recomputed and agree;
* `cited`: it invokes a theorem without numbers of its own (`classes`, `term test`, ...).

Numbers at finitely many points confirm; they prove nothing by themselves. What the checker proves
is that a step says something false: then it raises `ProofError`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
from flint import arb, fmpq
from sympy import Expr, S, Symbol

from farfield.numerics.checking.bounds import (
    FAR,
    check_average,
    check_bound,
    check_distance,
    check_expansion,
    check_least_exponent,
    check_returns,
    points,
)
from farfield.numerics.checking.check_state import CheckState, expression
from farfield.numerics.checking.growth import iterated, limit
from farfield.numerics.checking.numbers import BITS, Numbers
from farfield.numerics.checking.stops import Open, ProofError
from farfield.theory.answers.answer import Result
from farfield.theory.answers.blocks import Block, sentence
from farfield.theory.answers.errors import InputError
from farfield.theory.evaluation.real_balls import ZeroTest
from farfield.theory.formula.parameters import interval, parameter
from farfield.theory.functions.balls import Undefined, Undetermined, precision, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.proofs import RULES

# Values of parameters, tried in a cell.
GRID = ("1/7", "1/3", "1/2", "1", "7/5", "2", "3", "19/3", "12", "-1/3", "-1", "-7/5", "-3", "0")
BOUNDS = ("upper bound", "lower bound", "tangent", "recurrence", "infimum", "slow phase")


@dataclass(frozen=True)
class Checked(Result):
    """Which steps of a proof were computed anew, and which cite a theorem."""

    computed: tuple[str, ...]
    cited: tuple[str, ...]
    label: str = "certified"

    def blocks(self) -> Sequence[Block]:
        said = "{computed} steps were computed anew, {cited} cite a theorem."
        return (sentence(said, self.label, computed=len(self.computed), cited=len(self.cited)),)


def check_proof(document: Mapping[str, Any] | Result, is_zero: ZeroTest | None = None) -> Checked:
    """Check each computable step of the proof of a `Convergence`, given as JSON or as the object.

    Args:
        document: the proof.
        is_zero: an exact test whether a constant is 0, for values at a jump that balls leave open.
            Without one they stay open, and what depends on them is not confirmed.

    Raises:
        ProofError: when a step is false, out of order, or does not lead to the verdict.
        InputError: when it is no proof of a verdict on one formula.
    """
    if isinstance(document, Result):
        document = document.to_dict()
    if document.get("verdict") not in ("converges", "diverges", "conditional"):
        raise InputError("there is a proof to check only where a verdict was reached")
    domains = dict(document["assumptions"])
    numbers = Numbers(is_zero)
    p = expression(document["formula"], domains)
    steps = document["proof"]["steps"]
    if not steps:
        raise ProofError("no steps")
    computed: list[str] = []
    cited: list[str] = []
    for cell, leaf in _cells(steps):
        values = _sample(cell, domains, numbers)
        if values is None:
            cited += [step["rule"] for step in leaf]
            continue
        own = CheckState(p.xreplace(values), values, numbers)
        outcome = _check_leaf(own, leaf, domains, computed, cited)
        wanted = _claimed(document, values, domains, numbers)
        if wanted is not None and outcome is not wanted:
            raise ProofError("the steps do not lead to the verdict")
    return Checked(tuple(computed), tuple(cited))


def _condition(text: str, domains: Mapping[str, str]) -> Any:
    """A condition as it is printed, read as the first piece of a Piecewise."""
    if text in ("True", "False"):
        return S.true if text == "True" else S.false
    return expression(f"Piecewise((n, {text}), (0, True))", domains).args[0][1]


# -- cells ----------------------------------------------------------------------------------------


def _cells(steps: list[dict[str, Any]]) -> Iterator[tuple[str | None, list[dict[str, Any]]]]:
    """The parts of a proof, each with the condition under which it speaks."""
    starts = [i for i, step in enumerate(steps) if step["rule"] == "cell"]
    if not starts:
        yield None, steps
        return
    for i, j in itertools.pairwise([*starts, len(steps)]):
        yield steps[i]["values"]["condition"], steps[i + 1 : j]


def _sample(
    cell: str | None, domains: Mapping[str, str], numbers: Numbers
) -> dict[Symbol, Expr] | None:
    """Rational values of the parameters in the cell; None if the grid has none."""
    symbols = [parameter(k, domains[k]) for k in sorted(domains)]
    condition = S.true if cell is None else _condition(cell, domains)
    parts = condition.args if isinstance(condition, sympy.And) else (condition,)
    solved = {c.lhs: c.rhs for c in parts if isinstance(c, sympy.Eq) and c.lhs in symbols}
    rest = (c for c in parts if not (isinstance(c, sympy.Eq) and c.lhs in solved))
    test = numbers.compiled(sympy.And(*rest, evaluate=False))
    free = [s for s in symbols if s not in solved]
    axes = [[x for x in map(sympy.Rational, GRID) if x in interval(domains[s.name])] for s in free]
    for point in itertools.islice(itertools.product(*axes), 20_000):
        values = dict(zip(free, point, strict=True))
        values |= {s: e.xreplace(values) for s, e in solved.items()}
        with precision(128):
            try:
                env = {s: numbers.compiled(v)({}) for s, v in values.items()}
                if test(env) and all(_in_domain(env[s], domains[s.name]) for s in solved):
                    return values
            except (Undefined, ZeroDivisionError, KeyError):
                continue
    return None


def _in_domain(value: Any, domain: str) -> bool:
    """Whether a ball proves that the value lies in the domain."""
    own = interval(domain)
    low, high = own.inf, own.sup
    above = low.is_infinite or value > (end := fmpq(int(low.p), int(low.q)))
    below = high.is_infinite or value < (top := fmpq(int(high.p), int(high.q)))
    return bool(
        (above or (low in own and value == end)) and (below or (high in own and value == top))
    )


def _claimed(
    document: Mapping[str, Any],
    values: Mapping[Symbol, Expr],
    domains: Mapping[str, str],
    numbers: Numbers,
) -> bool | None:
    """The claim at these values of the parameters; None where the condition has no value."""
    if document["verdict"] != "conditional":
        return bool(document["verdict"] == "converges")
    test = numbers.compiled(_condition(document["condition"], domains))
    with precision(128):
        try:
            return test({s: numbers.compiled(v)({}) for s, v in values.items()})
        except Undefined:
            return None


# -- one leaf -------------------------------------------------------------------------------------


def _check_leaf(
    own: CheckState,
    steps: list[dict[str, Any]],
    domains: Mapping[str, str],
    computed: list[str],
    cited: list[str],
) -> bool:
    """Check the steps of one cell in order; the verdict they establish there."""
    if not steps:
        raise ProofError("a cell without steps")
    residues: dict[int, set[int]] = {}
    mode, whole = "one", own.p
    alternatives: list[Expr] = []
    for step in steps:
        rule, given = step["rule"], step["values"]
        if rule not in RULES:
            raise ProofError(f"unknown rule {rule!r}")
        if "bounded" in given:  # a named remainder has no value to check
            cited.append(rule)
            own.rest, own.unreadable = None, True
            continue
        said = {k: _value(k, v, domains, own) for k, v in given.items()}
        if rule == "classes":
            mode, whole = "classes", own.p
            residues = {int(said["period"]): set()}
            cited.append(rule)
        elif rule == "class":
            own.p = _checked_class(whole, said, residues, own.numbers)
            own.rest = None
            computed.append(rule)
        elif rule == "all alternatives":
            mode, whole = "alternatives", own.p
            cited.append(rule)
        elif rule == "alternative":
            own.p, own.rest = said["p"], None
            alternatives.append(said["p"])
            computed.append(rule)
        else:
            try:
                (computed if _check_step(rule, said, own) else cited).append(rule)
            except Open:
                cited.append(rule)
                if "bound" in said:
                    own.p = -said["bound"] if rule == "average" else said["bound"]
                elif "k" in said:
                    own.rung, own.limit = said["k"], said.get("limit", own.limit)
    if own.rest is not None and own.limit is not None and not own.verdicts:
        raise ProofError("the ladder has no end")
    if not own.verdicts:
        raise ProofError("no step gives a verdict")
    if mode == "classes" and all(own.verdicts):
        ((period, seen),) = residues.items()
        if seen != set(range(period)) or len(own.verdicts) != period:
            raise ProofError("a residue class is missing")
    if mode == "alternatives":
        if len(own.verdicts) != len(alternatives) or not all(own.verdicts):
            raise ProofError("an alternative is missing")
        for at in points(whole):
            if not any(own.numbers.compare(whole, a, at) <= 0 for a in alternatives):
                raise ProofError("p is above all alternatives")
    return all(own.verdicts)


_TEXTS = ("how", "reason", "alternatives", "phase")
_NUMBERS = ("k", "k_before", "period", "residue", "at")


def _value(name: str, value: Any, domains: Mapping[str, str], own: CheckState) -> Any:
    """What a step says under a name, read again from its text."""
    if name in _TEXTS:
        return value
    if name in _NUMBERS:
        return int(value)
    if name == "limit" and value in ("oo", "-oo"):
        return S.Infinity if value == "oo" else S.NegativeInfinity
    if name == "comparison":
        return expression(value, {"c": "positive"})
    return own.at(expression(str(value), domains))


def _check_step(rule: str, said: Mapping[str, Any], own: CheckState) -> bool:
    """Whether the step had something to compute; raises ProofError if it is false."""
    if rule == "zero":
        _check_zero(said["constant"], own.numbers)
    elif rule == "eventual":
        for at in FAR:
            if own.numbers.compare(own.p, said["p"], at):
                raise ProofError("the formula for large n is not the formula")
        own.p = said["p"]
    elif rule in ("masked", "infinite"):
        _check_infinite(rule == "masked", own)
    elif rule in BOUNDS:
        check_bound(rule, said, own)
        own.p = said["bound"]
    elif rule == "distance":
        check_distance(said, own)
        own.p = said["bound"]
    elif rule == "least exponent":
        check_least_exponent(said, own)
        own.p = said["bound"]
    elif rule == "very slow phase":
        slack = 100 * (1 + abs(said["error"]))
        if any(own.numbers.compare(said["bound"] + slack, -sympy.log(n), at) < 0 for at in FAR):
            raise ProofError("the terms of the intervals may be too small")
        own.verdicts.append(False)
    elif rule == "average":
        check_average(said, own)
        own.p = -said["bound"]
    elif rule == "returns":
        check_returns(own)
    elif rule == "one alternative":
        _check_alternative(said["p"], own)
    elif rule == "expansion":
        check_expansion(said, own)
    elif rule in ("rung", "tie"):
        _check_rung(rule, said, own)
    elif rule in ("converges", "diverges"):
        _check_end(rule, said, own)
    else:
        if rule in ("term test", "bounded support"):
            own.verdicts.append(rule == "bounded support")
        return False
    return True


def _check_infinite(masked: bool, own: CheckState) -> None:
    """The bias is minus infinity far out where it is said to be masked, else plus infinity."""
    own.verdicts.append(masked)
    try:
        with precision(BITS):
            ball = to_arb(own.numbers.compiled(own.p)({n: fmpq(FAR[0])}))
    except Undetermined as why:
        raise Open(str(why)) from None
    if ball.is_finite() or bool(ball < 0) is not masked:
        raise ProofError("the terms are not masked, or not infinite")


def _check_alternative(p: Expr, own: CheckState) -> None:
    """The alternative lies on one side of p, as far as it is tried."""
    if {1, -1} <= {own.numbers.compare(own.p, p, at) for at in points(own.p)}:
        raise ProofError("the alternative does not bound p on one side")
    own.p = p


def _check_zero(constant: Expr, numbers: Numbers) -> None:
    """The constant's ball holds 0 and is narrow: no proof of 0, but none of the contrary."""
    with precision(BITS):
        try:
            ball = to_arb(numbers.compiled(constant)({}))
        except Undetermined as why:
            raise Open(str(why)) from None
        except (Undefined, ZeroDivisionError):
            raise ProofError("a constant said to be 0 has no value") from None
        if not ball.contains(0) or not ball.rad() < arb(2) ** (-BITS // 2):
            raise ProofError("a constant said to be 0 is not 0")


def _checked_class(
    whole: Expr, said: Mapping[str, Any], residues: dict[int, set[int]], numbers: Numbers
) -> Expr:
    """The bias on a residue class, compared with the whole bias at two large distances."""
    period, residue = said["period"], said["residue"]
    if period not in residues or residue in residues[period] or not 0 <= residue < period:
        raise ProofError("a residue class out of place")
    residues[period].add(residue)
    for k in (10**9 + 7, 10**20 + 39):
        x, y = numbers.ball(whole, period * k + residue), numbers.ball(said["p"], k)
        if x is not None and y is not None and x.is_finite() and not x.overlaps(y):
            raise ProofError("the bias of a residue class is not the bias")
    return said["p"]


def _check_rung(rule: str, said: Mapping[str, Any], own: CheckState) -> None:
    """The limit of rest/L_k, found again; at a tie (limit 1) the scale leaves the rest."""
    if own.unreadable:
        raise Open("a named remainder")
    if own.rest is None:
        raise ProofError("a rung without its expansion")
    k = said["k"]
    if said["k_before"] != k - 1 or said["scale"] != iterated(k):
        raise ProofError("the scale of a rung is not its logarithm")
    if rule == "tie":
        ones = all(own.numbers.is_near(x, 1) for x in (own.limit, said["limit"]))
        if own.rung != k or own.tied or not ones:
            raise ProofError("a tie although the limit is not 1")
        own.rest, own.tied = sympy.expand(own.rest - said["scale"]), True
        return
    if k != own.rung + 1 or not own.tied:
        raise ProofError("a rung out of place")
    own.tied = False
    found = limit(own.rest, said["scale"], own.numbers)
    agree = found == said["limit"] or own.numbers.is_near(found - said["limit"], 0)
    if not agree:
        raise ProofError(f"the limit of rung {k} is {found}, not {said['limit']}")
    own.rung, own.limit = k, said["limit"]


def _check_end(rule: str, said: Mapping[str, Any], own: CheckState) -> None:
    """The last limit against 1, and the comparison series that belongs to its rung."""
    if own.unreadable:
        own.verdicts.append(rule == "converges")
        own.unreadable = False
        raise Open("a named remainder")
    if own.rest is None or own.limit is None or own.tied or said["k"] != own.rung:
        raise ProofError("the end of a ladder out of place")
    c = Symbol("c", positive=True)
    product = sympy.Mul(*(iterated(j) for j in range(own.rung - 1)))
    wanted = 1 / (product * iterated(own.rung - 1) ** c)
    if said["comparison"] != wanted:
        raise ProofError("the comparison series is not that of its rung")
    last = own.limit
    if last.is_infinite:
        above = last is S.Infinity
    else:
        ball = own.numbers.ball(last, 1)
        if ball is None or not (ball > 1 or ball < 1):
            raise ProofError("the last limit is not told from 1")
        above = bool(ball > 1)
    if above is not (rule == "converges"):
        raise ProofError("the last limit is on the other side of 1")
    own.verdicts.append(above)
    own.rest, own.rung, own.limit, own.tied = None, 0, None, True
