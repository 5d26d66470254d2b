r"""An independent check of convergence proofs: it reads the steps, not the engine that wrote them.

The input is the JSON form of a `Convergence`: text only. Every step is read again by the reader of
formulas and tested by rigorous balls at huge distances, or by a small comparator of its own
(`order`); of the engine nothing is imported. A step is

* `computed`: its numbers were recomputed and agree;
* `cited`: it invokes a theorem without numbers of its own (`classes`, `term test`, ...).

Numbers at finitely many points confirm; they prove nothing by themselves. What the checker proves
is that a step says something false: then it raises `ProofError`.

The comparator
--------------
A product of powers of n, log n, log log n, ... is ordered by its first exponent that is not 0.
Where it has a factor exp(...) its logarithm is evaluated with n a tower, exp(exp(...exp(x))), by
balls so precise that nothing is rounded away. No expansion is made and nothing is sorted, so that
a slip of the engine's comparison shows.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy
from flint import arb, fmpq
from sympy import Expr, S, Symbol

from farfield.theory.answers.answer import Result
from farfield.theory.answers.blocks import Block, sentence
from farfield.theory.answers.errors import InputError
from farfield.theory.formula.grammar import read
from farfield.theory.formula.parameters import interval, parameter
from farfield.theory.functions.balls import Undefined, precision, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.proofs import RULES
from farfield.theory.values import compile_ball, tabulate

NEAR = (101, 317, 1009)
FAR = (10**40 + 7, 10**60 + 9, 10**90 + 49)
BITS = 4000
GRID = ("1/7", "1/3", "1/2", "1", "7/5", "2", "3", "19/3", "12", "-1/3", "-1", "-7/5", "-3", "0")
BOUNDS = ("upper bound", "lower bound", "recurrence", "infimum", "slow phase")


class ProofError(Exception):
    """A step of a proof is false; the message names the step and what disagrees."""


class _Open(Exception):
    """The checker cannot tell; the step counts as cited."""


@dataclass(frozen=True)
class Checked(Result):
    """Which steps of a proof were computed anew, and which cite a theorem."""

    computed: tuple[str, ...]
    cited: tuple[str, ...]
    label: str = "certified"

    def blocks(self) -> Sequence[Block]:
        said = "{computed} steps were computed anew, {cited} cite a theorem."
        return (sentence(said, self.label, computed=len(self.computed), cited=len(self.cited)),)


@dataclass
class _Context:
    """Where a check stands: the bias as it is at this step, and the values of the parameters."""

    p: Expr
    values: dict[Symbol, Expr] = field(default_factory=dict)
    rest: Expr | None = None  # what is left of rho on the ladder
    rung: int = 0
    limit: Expr | None = None
    tied: bool = True  # the next rung may follow
    unreadable: bool = False  # a named remainder stands in the expansion
    verdicts: list[bool] = field(default_factory=list)

    def at(self, e: Expr) -> Expr:
        """The expression with the sample values of the parameters."""
        return e.xreplace(self.values)


def check_proof(document: Mapping[str, Any] | Result) -> Checked:
    """Check each computable step of the proof of a `Convergence`, given as JSON or as the object.

    Raises:
        ProofError: when a step is false, out of order, or does not lead to the verdict.
        InputError: when it is no proof of a verdict on one formula.
    """
    if isinstance(document, Result):
        document = document.to_dict()
    if document.get("verdict") not in ("converges", "diverges", "conditional"):
        raise InputError("there is a proof to check only where a verdict was reached")
    domains = dict(document["assumptions"])
    p = _expression(document["formula"], domains)
    steps = document["proof"]["steps"]
    if not steps:
        raise ProofError("no steps")
    computed: list[str] = []
    cited: list[str] = []
    for cell, leaf in _cells(steps):
        values = _sample(cell, p, domains)
        if values is None:
            cited += [step["rule"] for step in leaf]
            continue
        outcome = _check_leaf(p, values, leaf, domains, computed, cited)
        wanted = _claimed(document, values, domains)
        if wanted is not None and outcome is not wanted:
            raise ProofError("the steps do not lead to the verdict")
    return Checked(tuple(computed), tuple(cited))


def _expression(text: str, domains: Mapping[str, str]) -> Expr:
    names = {k: d for k, d in domains.items() if k in _words(text)}
    try:
        return read(text, names)
    except InputError as error:
        raise ProofError(f"a step is unreadable: {error}") from None


def _words(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z]\w*", text))


def _condition(text: str, domains: Mapping[str, str]) -> Any:
    if text in ("True", "False"):
        return S.true if text == "True" else S.false
    return _expression(f"Piecewise((n, {text}), (0, True))", domains).args[0][1]


# -- cells ----------------------------------------------------------------------------------------


def _cells(steps: list[dict[str, Any]]) -> Iterator[tuple[str | None, list[dict[str, Any]]]]:
    """The parts of a proof, each with the condition under which it speaks."""
    starts = [i for i, step in enumerate(steps) if step["rule"] == "cell"]
    if not starts:
        yield None, steps
        return
    for i, j in itertools.pairwise([*starts, len(steps)]):
        yield steps[i]["values"]["condition"], steps[i + 1 : j]


def _sample(cell: str | None, p: Expr, domains: Mapping[str, str]) -> dict[Symbol, Expr] | None:
    """Rational values of the parameters in the cell; None if the grid has none."""
    symbols = [parameter(k, domains[k]) for k in sorted(domains)]
    condition = S.true if cell is None else _condition(cell, domains)
    parts = condition.args if isinstance(condition, sympy.And) else (condition,)
    solved = {c.lhs: c.rhs for c in parts if isinstance(c, sympy.Eq) and c.lhs in symbols}
    test = compile_ball(sympy.And(*(c for c in parts if getattr(c, "lhs", 0) not in solved or
                                         not isinstance(c, sympy.Eq)), evaluate=False))  # fmt: skip
    free = [s for s in symbols if s not in solved]
    axes = [[x for x in map(sympy.Rational, GRID) if _inside(x, domains[s.name])] for s in free]
    for point in itertools.islice(itertools.product(*axes), 20_000):
        values = dict(zip(free, point, strict=True))
        values |= {s: e.xreplace(values) for s, e in solved.items()}
        with precision(128):
            try:
                env = {s: compile_ball(v)({}) for s, v in values.items()}
                if test(env) and all(_in_domain(env[s], domains[s.name]) for s in solved):
                    return values
            except (Undefined, ZeroDivisionError, KeyError):
                continue
    return None


def _in_domain(value: Any, domain: str) -> bool:
    low, high, closed_low, closed_high = interval(domain)
    above = low.is_infinite or value > (end := fmpq(int(low.p), int(low.q)))
    below = high.is_infinite or value < (top := fmpq(int(high.p), int(high.q)))
    return bool(
        (above or (closed_low and value == end)) and (below or (closed_high and value == top))
    )


def _inside(x: Expr, domain: str) -> bool:
    low, high, closed_low, closed_high = interval(domain)
    return bool(low < x < high or (closed_low and x == low) or (closed_high and x == high))


def _claimed(
    document: Mapping[str, Any], values: Mapping[Symbol, Expr], domains: Mapping[str, str]
) -> bool | None:
    if document["verdict"] != "conditional":
        return bool(document["verdict"] == "converges")
    test = compile_ball(_condition(document["condition"], domains))
    with precision(128):
        try:
            return test({s: compile_ball(v)({}) for s, v in values.items()})
        except Undefined:
            return None


# -- one leaf -------------------------------------------------------------------------------------


def _check_leaf(
    p: Expr,
    values: dict[Symbol, Expr],
    steps: list[dict[str, Any]],
    domains: Mapping[str, str],
    computed: list[str],
    cited: list[str],
) -> bool:
    """Check the steps of one cell in order; the verdict they establish there."""
    own = _Context(p.xreplace(values), values)
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
            own.p = _checked_class(whole, said, residues)
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
            except _Open:
                cited.append(rule)
                if rule == "average":
                    own.p = -said["bound"]
                else:
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
        for at in _points(whole):
            if not any(_compare(whole, a, at) <= 0 for a in alternatives):
                raise ProofError("p is above all alternatives")
    return all(own.verdicts)


_TEXTS = ("how", "reason", "alternatives", "phase")
_NUMBERS = ("k", "k_before", "period", "residue", "at")


def _value(name: str, value: Any, domains: Mapping[str, str], own: _Context) -> Any:
    if name in _TEXTS:
        return value
    if name in _NUMBERS:
        return int(value)
    if name == "limit" and value in ("oo", "-oo"):
        return S.Infinity if value == "oo" else S.NegativeInfinity
    if name == "comparison":
        return _expression(value, {"c": "positive"})
    return own.at(_expression(str(value), domains))


def _check_step(rule: str, said: Mapping[str, Any], own: _Context) -> bool:
    """Whether the step had something to compute; raises ProofError if it is false."""
    if rule == "zero":
        _check_zero(said["constant"])
    elif rule == "eventual":
        for at in FAR:
            if _compare(own.p, said["p"], at):
                raise ProofError("the formula for large n is not the formula")
        own.p = said["p"]
    elif rule in ("masked", "infinite"):
        with precision(BITS):
            ball = to_arb(compile_ball(own.p)({n: fmpq(FAR[0])}))
        if ball.is_finite() or bool(ball < 0) is not (rule == "masked"):
            raise ProofError("the terms are not masked, or not infinite")
        own.verdicts.append(rule == "masked")
    elif rule in BOUNDS:
        _check_bound(rule, said, own)
        own.p = said["bound"]
    elif rule == "very slow phase":
        slack = 100 * (1 + abs(said["error"]))
        if any(_compare(said["bound"] + slack, -sympy.log(n), at) < 0 for at in FAR):
            raise ProofError("the terms of the intervals may be too small")
        own.verdicts.append(False)
    elif rule == "average":
        _check_average(said, own)
        own.p = -said["bound"]
    elif rule == "returns":
        _check_returns(own.p)
    elif rule == "one alternative":
        signs = {_compare(own.p, said["p"], at) for at in _points(own.p)}
        if {1, -1} <= signs:
            raise ProofError("the alternative does not bound p on one side")
        own.p = said["p"]
    elif rule == "expansion":
        _check_expansion(said, own)
    elif rule in ("rung", "tie"):
        _check_rung(rule, said, own)
    elif rule in ("converges", "diverges"):
        _check_end(rule, said, own)
    else:
        if rule in ("term test", "bounded support"):
            own.verdicts.append(rule == "bounded support")
        return False
    return True


def _ball(e: Expr, at: int) -> arb | None:
    for bits in (256, BITS):
        with precision(bits):
            try:
                ball = to_arb(compile_ball(e)({n: fmpq(at)}))
            except (Undefined, ZeroDivisionError, OverflowError, KeyError):
                continue
            if ball.rel_accuracy_bits() > 60 or bits == BITS or not ball.is_finite():
                return ball
    return None


def _compare(a: Expr, b: Expr, at: int) -> int:
    """The sign of a - b at a distance; 0 where balls do not tell them apart."""
    if a == b:
        return 0
    x, y = (_ball(e, at) for e in (a, b))
    if x is None or y is None or not (x.is_finite() and y.is_finite()):
        return 0
    with precision(BITS):
        return 1 if x > y else -1 if x < y else 0


def _points(p: Expr, count: int = 40) -> list[int]:
    """Distances spread over many sizes, the same for the same formula."""
    rng = random.Random(str(p))
    return [rng.randrange(10**k, 10 ** (k + 1)) for k in range(6, 6 + count)]


def _check_zero(constant: Expr) -> None:
    with precision(BITS):
        try:
            ball = to_arb(compile_ball(constant)({}))
        except (Undefined, ZeroDivisionError):
            raise ProofError("a constant said to be 0 has no value") from None
        if not ball.contains(0) or not ball.rad() < arb(2) ** (-BITS // 2):
            raise ProofError("a constant said to be 0 is not 0")


def _checked_class(whole: Expr, said: Mapping[str, Any], residues: dict[int, set[int]]) -> Expr:
    period, residue = said["period"], said["residue"]
    if period not in residues or residue in residues[period] or not 0 <= residue < period:
        raise ProofError("a residue class out of place")
    residues[period].add(residue)
    for k in (10**9 + 7, 10**20 + 39):
        x, y = _ball(whole, period * k + residue), _ball(said["p"], k)
        if x is not None and y is not None and x.is_finite() and not x.overlaps(y):
            raise ProofError("the bias of a residue class is not the bias")
    return said["p"]


# -- expansions and bounds ------------------------------------------------------------------------


def _excess(difference: Expr, error: Expr, at: int, since: int | None = None) -> float:
    """|difference|/error at a distance (less its value `since`); 0 where no ball tells it from
    0."""
    ball = _ball(difference, at)
    start = _ball(difference, since) if since is not None else None
    if ball is not None and start is not None and start.is_finite():
        with precision(BITS):
            ball = ball - start
    scale = _ball(error, at) if error != 0 else None
    if ball is None or (error != 0 and (scale is None or not scale > 0)):
        return 0.0
    with precision(BITS):
        if ball.contains(0):
            return 0.0
        return float("inf") if scale is None else float((abs(ball) / scale).mid())


def _check_expansion(said: Mapping[str, Any], own: _Context) -> None:
    """|p + rho| <= C error, for a C that does not grow from 10^40 to 10^90."""
    rho, error = said["rho"], said["error"]
    if own.rest is not None and not own.verdicts:
        raise ProofError("an expansion out of place")
    if error == 0 and any(_excess(own.p + rho, error, at) for at in NEAR):
        raise ProofError("the expansion is not that of -p")
    since = 10**20 if error == 1 else None  # a constant must not hide what grows
    sizes = [
        max(_excess(own.p + rho, error, at + j * at // 3, since) for j in range(6)) for at in FAR
    ]
    if max(sizes) > 1e12 or (sizes[2] > 1.3 * sizes[1] > 1.3**2 * sizes[0] and sizes[2] > 1e-6):
        raise ProofError("the expansion is not that of -p")
    own.rest, own.rung, own.limit, own.tied = rho, 0, None, True


def _check_bound(rule: str, said: Mapping[str, Any], own: _Context) -> None:
    """An upper (lower) bound lies above (below) p everywhere; the others on a set of returns."""
    bound, error = said["bound"], said["error"]
    if rule in ("upper bound", "lower bound"):
        side = 1 if rule == "upper bound" else -1
        tightest = float("inf")
        for at in _points(own.p, 60):
            x, y = _ball(own.p, at), _ball(bound, at)
            slack = _ball(error, at) if error != 0 else arb(0)
            if x is None or y is None or slack is None:
                continue
            with precision(BITS):
                gap = side * (y - x) + 100 * abs(slack)
                if gap < 0:
                    raise ProofError(f"the {rule} fails at n = {at}")
                size = abs(x) + abs(y) + 1
                tightest = min(tightest, float((gap / size).mid()))
        if tightest > 0.9:
            raise ProofError(f"the {rule} is nowhere near p")
        return
    found = 0
    for at in _returns(rule, said, own.p):
        x, y = _ball(own.p, at), _ball(bound, at)
        slack = _ball(error, at) if error != 0 else arb(0)
        if x is None or y is None or slack is None:
            continue
        with precision(BITS):
            gap = x - y + 100 * abs(slack)
            if not gap < 0:
                found += 1
    if not found:
        raise ProofError(f"p never reaches the bound of the {rule}")


def _returns(rule: str, said: Mapping[str, Any], p: Expr) -> list[int]:
    """Distances where the oscillation is near its value at `at`, or p is comparatively large."""
    if rule == "recurrence":
        turns = [
            float(sympy.expand(w.args[0]).coeff(n))
            for w in p.atoms(sympy.sin, sympy.cos)
            if w.has(n)
        ]
        steps = np.arange(1000, 3_000_000)
        away = np.zeros(len(steps))
        for w in turns:
            away = np.maximum(away, np.abs(np.sin(steps * w / 2)))
        return [int(said["at"] + steps[i]) for i in np.argsort(away)[:20]]
    far = np.unique(np.geomspace(1e5, 1e9, _samples(p, 40_000)).astype(np.int64))
    gaps = tabulate(p, far) - tabulate(said["bound"], far)
    return [int(far[i]) for i in np.argsort(-gaps)[:20]]


def _samples(p: Expr, count: int) -> int:
    """How many distances to try: fewer where each value needs a ball."""
    return count // 20 if p.has(sympy.frac, sympy.floor, sympy.ceiling, sympy.Mod) else count


def _turn(phase: str) -> int:
    """A factor >= 40 by which n must grow for a phase to turn once."""
    if phase.startswith("("):
        return 40
    e = _expression(phase, {})
    for width in (40, 700, 10**5):
        with np.errstate(all="ignore"):
            ends = tabulate(e, np.array([10**6, width * 10**6]))
        if not abs(ends[1] - ends[0]) < 2 * np.pi:
            return width
    raise _Open("the average over a phase that turns too slowly for numbers")


def _check_average(said: Mapping[str, Any], own: _Context) -> None:
    """The mean of exp(p + bound) over many distances stays between positive constants."""
    rng = np.random.default_rng(0)
    means = []
    width = _turn(said["phase"])
    for size in (1e6, 1e8, 1e10):
        at = np.unique(rng.integers(int(size), int(width * size), _samples(own.p, 200_000)))
        with np.errstate(all="ignore"):
            ratio = np.exp(tabulate(own.p, at) + tabulate(said["bound"], at))
        means.append(float(np.mean(ratio[np.isfinite(ratio)])))
    if not all(1e-4 < m < 1e4 for m in means) or not 0.2 < means[-1] / means[0] < 5:
        raise ProofError("the mean over a block is not that of the bound")


def _check_returns(p: Expr) -> None:
    """In each decade some term stays above a constant."""
    values = tabulate(p, np.arange(100, 3_000_000))
    peaks = [np.nanmax(values[10**k - 100 : 10 ** (k + 1) - 100]) for k in range(2, 6)]
    if min(peaks) < -50:
        raise ProofError("the terms do not return")


# -- the ladder -----------------------------------------------------------------------------------


def _iterated(k: int) -> Expr:
    e: Expr = n
    for _ in range(k):
        e = sympy.log(e)
    return e


def order(term: Expr, scale: Expr) -> tuple[int, Expr]:
    """1, 0, -1 as |term|/scale tends to oo, a constant, 0; and that constant.

    Both are constants times products of powers of n, iterated logarithms and exponentials; the
    quotient is compared with 1 by its logarithm at two towers.
    """
    factor, rest = sympy.factor_terms(term / scale).as_independent(n, as_Add=False)
    rest = sympy.powsimp(rest)
    if not rest.has(n):
        return 0, factor * rest
    exponents: dict[int, Expr] = {}
    for f in sympy.Mul.make_args(rest):
        base, power = f.as_base_exp()
        level = _depth(base)
        if base != _iterated(level) or power.has(n):
            break
        exponents[level] = exponents.get(level, S.Zero) + power
    else:
        for level in sorted(exponents):
            ball = _ball(exponents[level], 1)
            if ball is not None and not ball.contains(0):
                return (1, S.Infinity) if ball > 0 else (-1, S.Zero)
        raise _Open(f"the growth of {rest}")
    logs = []
    for x in (30, 60):
        ball = _log_at_tower(rest, x)
        if ball is None:
            raise _Open(f"the growth of {rest}")
        logs.append(ball)
    with precision(BITS):
        if logs[0] > 0 and logs[1] > logs[0]:
            return 1, S.Infinity
        if logs[0] < 0 and logs[1] < logs[0]:
            return -1, S.Zero
    raise _Open(f"the growth of {rest}")


def _log_at_tower(product: Expr, x: int) -> arb | None:
    """The logarithm of a product where the deepest logarithm in it is x."""
    total: Any = arb(0)
    depth = max((_depth(a) for a in product.atoms(sympy.log)), default=0)
    with precision(BITS):
        tower: list[Any] = [arb(x)]  # values of L_depth, ..., L_1, n
        for _ in range(max(depth, 1)):
            if not tower[-1] < 10**60:
                return None
            tower.append(tower[-1].exp())
        tower.reverse()
        chain = {_iterated(i): v for i, v in enumerate(tower)}
        for f in sympy.Mul.make_args(product):
            base, power = f.as_base_exp()
            if isinstance(f, sympy.exp):
                value = _with_chain(f.args[0], chain)
            else:
                inside = _with_chain(base, chain)
                value = inside.log() * _with_chain(power, chain)
            total = total + value
    return to_arb(total)


def _with_chain(e: Expr, chain: Mapping[Expr, arb]) -> arb:
    swap = {k: sympy.Dummy(positive=True) for k in sorted(chain, key=sympy.count_ops, reverse=True)}
    for k, symbol in swap.items():
        e = e.xreplace({k: symbol})
    return to_arb(compile_ball(e)({symbol: chain[k] for k, symbol in swap.items()}))


def _depth(e: Expr) -> int:
    depth = 0
    while isinstance(e, sympy.log):
        e, depth = e.args[0], depth + 1
    return depth


def _check_rung(rule: str, said: Mapping[str, Any], own: _Context) -> None:
    if own.unreadable:
        raise _Open("a named remainder")
    if own.rest is None:
        raise ProofError("a rung without its expansion")
    k = said["k"]
    if said["k_before"] != k - 1 or said["scale"] != _iterated(k):
        raise ProofError("the scale of a rung is not its logarithm")
    if rule == "tie":
        if own.rung != k or own.tied or not all(_is(x, 1) for x in (own.limit, said["limit"])):
            raise ProofError("a tie although the limit is not 1")
        own.rest, own.tied = sympy.expand(own.rest - said["scale"]), True
        return
    if k != own.rung + 1 or not own.tied:
        raise ProofError("a rung out of place")
    own.tied = False
    found = _limit(own.rest, said["scale"])
    if found != said["limit"] and (found.is_infinite or not _is(found - said["limit"], 0)):
        raise ProofError(f"the limit of rung {k} is {found}, not {said['limit']}")
    own.rung, own.limit = k, said["limit"]


def _limit(rest: Expr, scale: Expr) -> Expr:
    """lim rest/scale, from the growth of the single terms of rest."""
    total, largest = S.Zero, None
    for term in sympy.Add.make_args(sympy.expand(rest)):
        if term == 0:
            continue
        size, constant = order(term, scale)
        if size > 0:
            if largest is None or order(term, largest)[0] >= 0:
                same = largest is not None and order(term, largest)[0] == 0
                largest = largest + term if same else term
        elif size == 0:
            total += constant
    if largest is None:
        return total
    factor, _ = sympy.factor_terms(largest).as_independent(n, as_Add=False)
    ball = _ball(factor, 1)
    if ball is None or ball.contains(0):
        raise ProofError("the sign of a leading term is open")
    return S.Infinity if ball > 0 else S.NegativeInfinity


def _is(value: Expr | None, wanted: int) -> bool:
    if value is None or value in (S.Infinity, S.NegativeInfinity):
        return False
    ball = _ball(value, 1)
    return ball is not None and bool(ball.contains(wanted))


def _check_end(rule: str, said: Mapping[str, Any], own: _Context) -> None:
    if own.unreadable:
        own.verdicts.append(rule == "converges")
        own.unreadable = False
        raise _Open("a named remainder")
    if own.rest is None or own.limit is None or own.tied or said["k"] != own.rung:
        raise ProofError("the end of a ladder out of place")
    c = Symbol("c", positive=True)
    product = sympy.Mul(*(_iterated(j) for j in range(own.rung - 1)))
    wanted = 1 / (product * _iterated(own.rung - 1) ** c)
    if said["comparison"] != wanted:
        raise ProofError("the comparison series is not that of its rung")
    limit = own.limit
    if limit.is_infinite:
        above = limit is S.Infinity
    else:
        ball = _ball(limit, 1)
        if ball is None or not (ball > 1 or ball < 1):
            raise ProofError("the last limit is not told from 1")
        above = bool(ball > 1)
    if above is not (rule == "converges"):
        raise ProofError("the last limit is on the other side of 1")
    own.verdicts.append(above)
    own.rest, own.rung, own.limit, own.tied = None, 0, None, True
