"""What each rule of a step says: a relation between the bias and what the step states.

A relation is held against numbers at finitely many distances: a failure there refutes it, a success
confirms. `CHECKED` is the table of them all, `apply` the driver. A rule without a relation cites
its theorem.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy
from flint import arb, fmpq
from sympy import Expr, Symbol

from farfield.numerics.checking.growth import iterated, limit
from farfield.numerics.checking.numbers import BITS, Numbers, Open, ProofError, expression
from farfield.theory.functions.balls import Undefined, Undetermined, precision, to_arb
from farfield.theory.functions.nodes import n

NEAR = (101, 317, 1009)  # where an exact expansion is compared
# Where errors are: an expansion that is wrong shows by then, and balls still reach it.
FAR = (10**40 + 7, 10**60 + 9, 10**90 + 49)
CLASSES = (10**9 + 7, 10**20 + 39)  # where the distances of one residue class are compared
ROWS = np.arange(1000, 3_000_000)
"""Distances where waves are tabulated, one by one."""

Said = Mapping[str, Any]


@dataclass
class CheckState:
    """The state of the check of one cell: the bias at this step, and what led to it."""

    p: Expr
    numbers: Numbers
    rest: Expr | None = None  # what is left of rho on the ladder
    rung: int = 0
    limit: Expr | None = None
    tied: bool = True  # the next rung may follow
    unreadable: bool = False  # a named remainder stands in the expansion
    verdicts: list[bool] = field(default_factory=list)
    whole: Expr | None = None  # the bias of all classes or alternatives
    period: int = 0  # of the classes
    seen: list[Any] = field(default_factory=list)  # residues or alternatives so far


Relation = Callable[[Said, CheckState], bool]


@dataclass(frozen=True)
class StepRule:
    """How a rule is checked, and what it leaves.

    Args:
        relation: whether numbers bear it out; raises Open where they cannot tell.
        leaves: the value of the step that is the bias from here on, with a sign.
        verdict: what it decides.
    """

    relation: Relation | None = None
    leaves: str = ""
    verdict: bool | None = None


def apply(name: str, said: Said, own: CheckState) -> bool:
    """Whether the step had something to compute; raises ProofError if it is false."""
    rule = CHECKED.get(name, StepRule())
    computed = rule.relation is not None
    try:
        if rule.relation is not None and not rule.relation(said, own):
            values = ", ".join(f"{key} {value}" for key, value in said.items())
            raise ProofError(f"a step {name!r} is false: {values[:200]}")
    except Open:
        computed = False
    if rule.leaves:
        own.p = -said[rule.leaves[1:]] if rule.leaves[0] == "-" else said[rule.leaves]
    if rule.verdict is not None:
        own.verdicts.append(rule.verdict)
    return computed


def points(p: Expr, count: int = 40) -> list[int]:
    """Distances spread over many sizes, the same for the same formula."""
    rng = random.Random(str(p))
    return [rng.randrange(10**k, 10 ** (k + 1)) for k in range(6, 6 + count)]


# -- the bias, its classes and its alternatives --------------------------------------------------


def _same_far_out(said: Said, own: CheckState) -> bool:
    """The formula for large n is the formula."""
    return not any(own.numbers.compare(own.p, said["p"], at) for at in FAR)


def _no_number(masked: bool) -> Relation:
    """The bias is minus infinity far out where it is said to be masked, else plus infinity."""

    def relation(said: Said, own: CheckState) -> bool:
        ball = _constant(own.p, own.numbers, {n: fmpq(FAR[0])})
        return not ball.is_finite() and bool(ball < 0) is masked

    return relation


def _constant(e: Expr, numbers: Numbers, env: Mapping[Symbol, Any]) -> arb:
    with precision(BITS):
        try:
            return to_arb(numbers.compiled(e)(env))
        except Undetermined as why:
            raise Open(str(why)) from None
        except (Undefined, ZeroDivisionError):
            raise ProofError(f"{e} has no value") from None


def _is_zero(said: Said, own: CheckState) -> bool:
    """The constant's ball holds 0 and is narrow: no proof of 0, but none of the contrary."""
    ball = _constant(said["constant"], own.numbers, {})
    return bool(ball.contains(0) and ball.rad() < arb(2) ** (-BITS // 2))


def _parts(said: Said, own: CheckState) -> bool:
    own.whole, own.period = own.p, said.get("period", 0)
    raise Open("what follows decides")


def _is_class(said: Said, own: CheckState) -> bool:
    """The bias on a residue class is the whole bias there."""
    residue, own.rest = said["residue"], None
    wanted = own.period == said["period"] and residue in {*range(own.period)} - {*own.seen}
    own.seen.append(residue)
    for k in CLASSES if wanted else ():
        at = own.period * k + residue
        x, y = own.numbers.ball(own.whole, at), own.numbers.ball(said["p"], k)
        if x is not None and y is not None and x.is_finite():
            wanted = wanted and bool(x.overlaps(y))
    return wanted


def _is_alternative(said: Said, own: CheckState) -> bool:
    own.seen.append(said["p"])
    own.rest = None
    return True


def _on_one_side(said: Said, own: CheckState) -> bool:
    sides = {own.numbers.compare(own.p, said["p"], at) for at in points(own.p)}
    return not {1, -1} <= sides


def verdict(own: CheckState) -> bool:
    """What the steps of a cell establish; ProofError where something is missing."""
    decided, whole = all(own.verdicts), bool(own.verdicts)
    if own.period and decided:
        whole = sorted(own.seen) == [*range(own.period)] and len(own.verdicts) == own.period
    elif own.whole is not None and not own.period:
        whole = decided and len(own.verdicts) == len(own.seen)
        for at in points(own.whole):
            whole = whole and any(own.numbers.compare(own.whole, a, at) <= 0 for a in own.seen)
    if not whole:
        raise ProofError("a step is missing: a verdict, a residue class or an alternative")
    return decided


# -- the ladder ----------------------------------------------------------------------------------


def _excess(e: Expr, error: Expr, at: int, numbers: Numbers, since: int | None = None) -> float:
    """|e|/error at a distance (less its value `since`); 0 where no ball tells it from 0."""
    ball = numbers.ball(e, at)
    start = arb(0) if since is None else numbers.ball(e, since)
    scale = arb(1) if error == 0 else numbers.ball(error, at)
    if ball is None or scale is None or not scale > 0:
        return 0.0
    with precision(BITS):
        ball = ball - start if start is not None and start.is_finite() else ball
        if ball.contains(0):
            return 0.0
        return float("inf") if error == 0 else float((abs(ball) / scale).mid())


def _expands(said: Said, own: CheckState) -> bool:
    """|p + rho| <= C error, for a C that does not grow from 10^40 to 10^90."""
    rho, error = said["rho"], said["error"]
    placed = own.rest is None or bool(own.verdicts)
    since = 10**20 if error == 1 else None  # a constant must not hide what grows
    near = [_excess(own.p + rho, error, at, own.numbers) for at in NEAR if error == 0]
    sizes = [
        max(_excess(own.p + rho, error, at + j * at // 3, own.numbers, since) for j in range(6))
        for at in FAR
    ]
    grows = sizes[2] > 1.3 * sizes[1] > 1.3**2 * sizes[0] and sizes[2] > 1e-6
    own.rest, own.rung, own.limit, own.tied = rho, 0, None, True
    return placed and not (any(near) or max(sizes) > 1e12 or grows)


def _is_rung(said: Said, own: CheckState) -> bool:
    """The limit of rest/L_k, found again."""
    follows, own.tied = own.tied and said["k"] == own.rung + 1, own.unreadable and own.tied
    own.rung, own.limit = said["k"], said["limit"]
    if not _scaled(said, own) or not follows:
        return False
    found = limit(own.rest, said["scale"], own.numbers)
    return bool(found == said["limit"]) or own.numbers.is_near(found - said["limit"], 0)


def _is_tie(said: Said, own: CheckState) -> bool:
    """At a limit of 1 the scale leaves the rest."""
    ones = all(own.numbers.is_near(x, 1) for x in (own.limit, said["limit"]))
    if not _scaled(said, own) or own.rung != said["k"] or own.tied or not ones:
        return False
    own.rest, own.tied = sympy.expand(own.rest - said["scale"]), True
    return True


def _scaled(said: Said, own: CheckState) -> bool:
    """The scale of a rung is its logarithm, and there is an expansion."""
    if own.unreadable:
        raise Open("a named remainder")
    before, scale = said["k_before"], said["scale"]
    return own.rest is not None and before == said["k"] - 1 and bool(scale == iterated(said["k"]))


def _ends(above: bool) -> Relation:
    """The last limit against 1, and the comparison series that belongs to its rung."""

    def relation(said: Said, own: CheckState) -> bool:
        unreadable, own.unreadable = own.unreadable, False
        if unreadable:
            raise Open("a named remainder")
        if own.rest is None or own.limit is None or own.tied or said["k"] != own.rung:
            return False
        logs = [iterated(j) for j in range(own.rung)]
        terms = 1 / (sympy.Mul(*logs[:-1]) * logs[-1] ** Symbol("c", positive=True))
        last = own.limit if own.limit.is_infinite else own.numbers.ball(own.limit, 1)
        own.rest, own.rung, own.limit, own.tied = None, 0, None, True
        beyond = last is not None and bool(last > 1 if above else last < 1)
        return beyond and bool(said["comparison"] == terms)

    return relation


# -- bounds --------------------------------------------------------------------------------------


def _known(said: Said, own: CheckState, distances: Iterable[int]) -> Iterator[tuple[arb, arb, arb]]:
    """The values of p, of its bound and of the error at each distance where balls know them."""
    for at in distances:
        x, y, slack = (own.numbers.ball(e, at) for e in (own.p, said["bound"], said["error"]))
        if x is not None and y is not None and slack is not None:
            yield x, y, slack


def _bounded(side: int) -> Relation:
    """An upper (lower) bound lies above (below) p everywhere, and near it somewhere."""

    def relation(said: Said, own: CheckState) -> bool:
        tightest = float("inf")
        for x, y, slack in _known(said, own, points(own.p, 60)):
            with precision(BITS):
                gap = side * (y - x) + 100 * abs(slack)
                if gap < 0:
                    return False
                tightest = min(tightest, float((gap / (abs(x) + abs(y) + 1)).mid()))
        if tightest == float("inf"):
            raise Open("values that balls leave open")
        waves = (sympy.sin, sympy.cos, sympy.frac, sympy.floor)
        rarely = any(e.exp.has(*waves) for e in own.p.atoms(sympy.Pow, sympy.exp))
        return tightest <= 0.9 or rarely  # an exponent that oscillates is seldom near its bound

    return relation


def _reached(returns: Callable[[Said, CheckState], list[int]]) -> Relation:
    """p comes up to the bound at some of the distances where it should."""

    def relation(said: Said, own: CheckState) -> bool:
        reached = []
        for x, y, slack in _known(said, own, returns(said, own)):
            with precision(BITS):
                reached.append(not x - y + 100 * abs(slack) < 0)
        several = said.get("phase", "").startswith("(")  # seldom near the infimum together
        if not reached or (several and not any(reached)):
            raise Open("values that balls leave open, or several phases")
        return any(reached)

    return relation


def _where_waves_return(said: Said, own: CheckState) -> list[int]:
    """Distances where the oscillation is near its value at `at`."""
    waves = (w for w in own.p.atoms(sympy.sin, sympy.cos) if w.has(n))
    turns = [float(sympy.expand(w.args[0]).coeff(n)) for w in waves]
    away = np.zeros(len(ROWS))
    for w in turns:
        away = np.maximum(away, np.abs(np.sin(ROWS * w / 2)))
    return [int(said["at"] + ROWS[i]) for i in _least(away)]


def _where_large(said: Said, own: CheckState) -> list[int]:
    """Distances where p is large beside the bound."""
    far = np.geomspace(1e5, 1e9, _samples(own.p, 40_000)).astype(np.int64)
    gaps = own.numbers.table(said["bound"], far) - own.numbers.table(own.p, far)
    return [int(far[i]) for i in _least(gaps)]


def _least(values: np.ndarray) -> np.ndarray:
    """The places of the 20 least of many values."""
    return np.argpartition(values, 20)[:20]


def _samples(p: Expr, count: int) -> int:
    """How many distances to try: fewer where each value needs a ball."""
    return count // 20 if p.has(sympy.frac, sympy.floor, sympy.ceiling, sympy.Mod) else count


def _adds_a_constant(said: Said, own: CheckState) -> bool:
    """The bound of p is `-log n` at least, so that each interval [x, 2x] adds a constant."""
    bound = said["bound"] + 100 * (1 + abs(said["error"]))
    return all(own.numbers.compare(bound, -sympy.log(n), at) >= 0 for at in FAR)


def _averaged(said: Said, own: CheckState) -> bool:
    """The mean of exp(p + bound) over many distances stays between positive constants."""
    rng, means = np.random.default_rng(0), []
    width = _turn(said["phase"], own.numbers)
    for size in (1e6, 1e8, 1e10):
        at = rng.integers(int(size), int(width * size), _samples(own.p, 200_000))
        with np.errstate(all="ignore"):
            ratio = np.exp(own.numbers.table(own.p, at) + own.numbers.table(said["bound"], at))
        ratio = ratio[np.isfinite(ratio)]
        if not ratio.size:
            raise Open("the mean of terms without numbers")
        means.append(float(np.mean(ratio)))
    return all(1e-4 < m < 1e4 for m in means) and 0.2 < means[-1] / means[0] < 5


def _turn(phase: str, numbers: Numbers) -> int:
    """A factor >= 40 by which n must grow for a phase to turn once."""
    if phase.startswith("("):
        return 40
    e, widths = expression(phase, {}), (40, 700, 10**5)
    with np.errstate(all="ignore"):
        start, *ends = numbers.table(e, np.array([10**6, *(w * 10**6 for w in widths)]))
    for width, end in zip(widths, ends, strict=True):
        if not abs(end - start) < 2 * np.pi:
            return width
    raise Open("the average over a phase that turns too slowly for numbers")


def _comes_back(said: Said, own: CheckState) -> bool:
    """In each decade some term stays above a constant."""
    values = own.numbers.table(own.p, np.arange(100, 10**6))
    peaks = (np.nanmax(values[10**k - 100 : 10 ** (k + 1) - 100]) for k in range(2, 6))
    return not min(peaks) < -50


def _kept_away(said: Said, own: CheckState) -> bool:
    """p is below the bound at the distances where it comes nearest."""
    if said["error"] != 0:
        raise Open("a bound up to an error")
    values, bound = (own.numbers.table(e, ROWS) for e in (own.p, said["bound"]))
    return all(values[i] < bound[i] * 1e-3 for i in _least(bound - values))


def _near_least_exponent(said: Said, own: CheckState) -> bool:
    """p >= bound - C wherever top - bound is small."""
    at = np.geomspace(1e3, 1e9, _samples(own.p, 400_000)).astype(np.int64)
    with np.errstate(all="ignore"):
        p, bound, top = (own.numbers.table(e, at) for e in (own.p, said["bound"], said["top"]))
        gaps = [(bound - p)[(top - bound <= most) & np.isfinite(p)] for most in (1, 0.1, 0.01)]
    if not gaps[0].size:
        raise Open("no distance is near enough")
    return not all(gap.size and gap.max() > 20 for gap in gaps)


CHECKED: dict[str, StepRule] = {
    "zero": StepRule(_is_zero),
    "eventual": StepRule(_same_far_out, "p"),
    "masked": StepRule(_no_number(True), verdict=True),
    "infinite": StepRule(_no_number(False), verdict=False),
    "classes": StepRule(_parts),
    "class": StepRule(_is_class, "p"),
    "all alternatives": StepRule(_parts),
    "alternative": StepRule(_is_alternative, "p"),
    "one alternative": StepRule(_on_one_side, "p"),
    "expansion": StepRule(_expands),
    "rung": StepRule(_is_rung),
    "tie": StepRule(_is_tie),
    "converges": StepRule(_ends(True), verdict=True),
    "diverges": StepRule(_ends(False), verdict=False),
    "upper bound": StepRule(_bounded(1), "bound"),
    "lower bound": StepRule(_bounded(-1), "bound"),
    "tangent": StepRule(_bounded(1), "bound"),
    "recurrence": StepRule(_reached(_where_waves_return), "bound"),
    "infimum": StepRule(_reached(_where_large), "bound"),
    "slow phase": StepRule(_reached(_where_large), "bound"),
    "very slow phase": StepRule(_adds_a_constant, verdict=False),
    "average": StepRule(_averaged, "-bound"),
    "returns": StepRule(_comes_back),
    "distance": StepRule(_kept_away, "bound"),
    "least exponent": StepRule(_near_least_exponent, "bound"),
    "term test": StepRule(verdict=False),
    "bounded support": StepRule(verdict=True),
}
"""The rules that state something of p or decide; the others cite a theorem."""
