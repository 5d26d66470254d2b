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

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import sympy
from sympy import Expr, S, Symbol

from farfield.theory.answers.answer import Result
from farfield.theory.answers.errors import InputError
from farfield.theory.evaluation.real_balls import ZeroTest
from farfield.theory.formula.parameters import interval, parameter
from farfield.theory.proofs import RULES
from proof_checker.numbers import Numbers, ProofError, expression
from proof_checker.step_rules import CheckState, apply, verdict

# Values of parameters, tried in a cell.
GRID = ("1/7", "1/3", "1/2", "1", "7/5", "2", "3", "19/3", "12", "-1/3", "-1", "-7/5", "-3", "0")
PLAIN = ("how", "reason", "phase", "k", "k_before", "period", "residue", "at")
"""Texts and integers of a step; all else is a formula."""
INFINITE = {"oo": S.Infinity, "-oo": S.NegativeInfinity}
Steps = list[dict[str, Any]]


class Checked(NamedTuple):
    """Which steps of a proof were computed anew, and which cite a theorem."""

    computed: tuple[str, ...]
    cited: tuple[str, ...]


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
    claimed = {"converges": "True", "diverges": "False", "conditional": document.get("condition")}
    if document.get("verdict") not in claimed:
        raise InputError("there is a proof to check only where a verdict was reached")
    domains, numbers = dict(document["assumptions"]), Numbers(is_zero)
    p = expression(document["formula"], domains)
    computed, cited = list[str](), list[str]()
    for cell, steps in _cells(document["proof"]["steps"]):
        values = _sample(cell, domains, numbers)
        if values is None:
            cited += [step["rule"] for step in steps]
            continue
        state = CheckState(p.xreplace(values), numbers)
        for step in steps:
            (computed if _checked(step, state, domains, values) else cited).append(step["rule"])
        wanted = numbers.holds(_condition(claimed[document["verdict"]], domains), values)
        if wanted not in (None, verdict(state)):
            raise ProofError("the steps do not lead to the verdict")
    return Checked(tuple(computed), tuple(cited))


def _condition(text: str | None, domains: Mapping[str, str]) -> Any:
    """A condition as it is printed, read as the first piece of a Piecewise."""
    if text in (None, "True", "False"):
        return S.false if text == "False" else S.true
    return expression(f"Piecewise((n, {text}), (0, True))", domains).args[0][1]


def _cells(steps: Steps) -> Iterator[tuple[str | None, Steps]]:
    """The parts of a proof, each with the condition under which it speaks."""
    starts = [i for i, step in enumerate(steps) if step["rule"] == "cell"]
    if not starts:
        yield None, steps
    for i, j in itertools.pairwise([*starts, len(steps)]):
        yield steps[i]["values"]["condition"], steps[i + 1 : j]


def _sample(
    cell: str | None, domains: Mapping[str, str], numbers: Numbers
) -> dict[Symbol, Expr] | None:
    """Rational values of the parameters in the cell; None if the grid has none."""
    symbols = [parameter(k, domains[k]) for k in sorted(domains)]
    parts = sympy.And.make_args(_condition(cell, domains))
    solved = {c.lhs: c.rhs for c in parts if isinstance(c, sympy.Eq) and c.lhs in symbols}
    rest = (c for c in parts if not (isinstance(c, sympy.Eq) and c.lhs in solved))
    test = sympy.And(*rest, evaluate=False)
    free = [s for s in symbols if s not in solved]
    axes = [[x for x in map(sympy.Rational, GRID) if x in interval(domains[s.name])] for s in free]
    for point in itertools.islice(itertools.product(*axes), 20_000):
        values = dict(zip(free, point, strict=True))
        values |= {s: e.xreplace(values) for s, e in solved.items()}
        inside = (interval(domains[s.name]).contains(values[s]) for s in solved)
        if numbers.holds(test, values) and all(fact is S.true for fact in inside):
            return values
    return None


def _checked(
    step: Mapping[str, Any],
    state: CheckState,
    domains: Mapping[str, str],
    values: Mapping[Symbol, Expr],
) -> bool:
    """Whether a step was computed anew; what it says is read again from its text."""

    def read_value(name: str, value: Any) -> Any:
        if name in PLAIN:
            return value
        if name == "limit" and value in INFINITE:
            return INFINITE[value]
        if name == "comparison":
            return expression(value, {"c": "positive"})
        return expression(str(value), domains).xreplace(values)

    rule, given = step["rule"], step["values"]
    if rule not in RULES:
        raise ProofError(f"unknown rule {rule!r}")
    return apply(rule, {k: read_value(k, v) for k, v in given.items()}, state)
