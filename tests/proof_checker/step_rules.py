"""What each rule of a step says: a relation between the bias and what the step states.

A relation is held against numbers at finitely many distances: a failure there refutes it, a success
confirms. `CHECKED` is the table of them all, `apply` the driver. A rule without a relation cites
its theorem.
"""

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import sympy
from flint import arb, fmpq
from sympy import Expr, Symbol

from farfield.theory.functions.balls import precision
from farfield.theory.functions.nodes import n
from proof_checker.growth import iterated, limit
from proof_checker.numbers import BITS, Numbers, Open, ProofError, expression

NEAR = (101, 317, 1009)  # where an exact expansion is compared
# Where errors are: an expansion that is wrong shows by then, and balls still reach it.
FAR = (10**40 + 7, 10**60 + 9, 10**90 + 49)
CLASSES = (10**9 + 7, 10**20 + 39)  # where the distances of one residue class are compared

Values = Mapping[str, Any]


@dataclass
class CheckState:
    """The state of the check of one cell: the bias at this step, and what led to it."""

    p: Expr
    numbers: Numbers
    rest: Expr | None = None  # what is left of rho on the ladder
    rung: int = 0
    limit: Expr | None = None  # of the rung; None where the next one may follow
    verdicts: list[bool] = field(default_factory=list)
    whole: Expr | None = None  # the bias of all classes
    period: int = 0  # of the classes
    seen: list[Any] = field(default_factory=list)  # residues so far

    def few(self, count: int) -> int:
        """How many distances to try: a part of them where each value needs a ball."""
        slow = self.p.has(sympy.frac, sympy.floor, sympy.ceiling, sympy.Mod)
        return count // 20 if slow else count


Relation = Callable[[Values, CheckState], bool]
Row = tuple[Relation | None, str, bool | None]
"""Whether numbers bear a step out (it raises Open where they cannot tell); which value of the step
is the bias from here on, with a sign; what it decides."""


def apply(name: str, values: Values, state: CheckState) -> bool:
    """Whether the step had something to compute; raises ProofError if it is false."""
    relation, leaves, verdict = CHECKED.get(name, (None, "", None))
    try:
        computed = relation is not None
        if relation is not None and not relation(values, state):
            shown = ", ".join(f"{key} {value}" for key, value in values.items())
            raise ProofError(f"a step {name!r} is false: {shown[:200]}")
    except Open:
        computed = False
    if leaves:
        state.p = -values[leaves[1:]] if leaves[0] == "-" else values[leaves]
    state.verdicts += () if verdict is None else (verdict,)
    return computed


def points(p: Expr, count: int = 40) -> list[int]:
    """Distances spread over many sizes, the same for the same formula."""
    rng = random.Random(str(p))
    return [rng.randrange(10**k, 10 ** (k + 1)) for k in range(6, 6 + count)]


# -- the bias, and its classes --------------------------------------------------


def _same_far_out(values: Values, state: CheckState) -> bool:
    """The formula for large n is the formula."""
    return not any(state.numbers.compare(state.p, values["p"], at) for at in FAR)


def _no_number(masked: bool, values: Values, state: CheckState) -> bool:
    """The bias is minus infinity far out where it is said to be masked, else plus infinity."""
    ball = state.numbers.value(state.p, {n: fmpq(FAR[0])})
    return not ball.is_finite() and bool(ball < 0) is masked


def _is_zero(values: Values, state: CheckState) -> bool:
    """The constant's ball holds 0 and is narrow: no proof of 0, but none of the contrary."""
    ball = state.numbers.value(values["constant"], {})
    return bool(ball.contains(0) and ball.rad() < arb(2) ** (-BITS // 2))


def _parts(values: Values, state: CheckState) -> bool:
    state.whole, state.period = state.p, values["period"]
    raise Open("what follows decides")


def _is_class(values: Values, state: CheckState) -> bool:
    """The bias on a residue class is the whole bias there."""
    residue, period = values["residue"], values["period"]
    wanted = state.period == period and residue in {*range(period)} - {*state.seen}
    state.rest, state.seen = None, [*state.seen, residue]
    for k in CLASSES if wanted else ():
        x, y = (
            state.numbers.ball(state.whole, period * k + residue),
            state.numbers.ball(values["p"], k),
        )
        wanted &= x is None or y is None or not x.is_finite() or bool(x.overlaps(y))
    return wanted


def verdict(state: CheckState) -> bool:
    """What the steps of a cell establish; ProofError where something is missing."""
    decided, whole = all(state.verdicts), bool(state.verdicts)
    if state.period and decided:
        whole = sorted(state.seen) == [*range(state.period)] and len(state.verdicts) == state.period
    if not whole:
        raise ProofError("a step is missing: a verdict or a residue class")
    return decided


# -- the ladder ----------------------------------------------------------------------------------


def _excess(e: Expr, error: Expr, numbers: Numbers, at: int) -> float:
    """|e|/error at a distance; 0 where no ball tells it from 0. A constant must not hide what
    grows: for an error of 1 the value at 10^20 is taken off."""
    ball, scale = numbers.ball(e, at), arb(1) if error == 0 else numbers.ball(error, at)
    start = numbers.ball(e, 10**20) if error == 1 else arb(0)
    if ball is None or scale is None or not scale > 0:
        return 0.0
    with precision(BITS):
        ball = ball - start if start is not None and start.is_finite() else ball
        size = float("inf") if error == 0 else float((abs(ball) / scale).mid())
    return 0.0 if ball.contains(0) else size


def _expands(values: Values, state: CheckState) -> bool:
    """|p + rho| <= C error, for a C that does not grow from 10^40 to 10^90."""
    placed = state.rest is None or bool(state.verdicts)
    state.rest, state.rung, state.limit = values["rho"], 0, None
    excess = partial(_excess, state.p + values["rho"], values["error"], state.numbers)
    near = values["error"] == 0 and any(map(excess, NEAR))
    sizes = [max(excess(at + j * at // 3) for j in range(6)) for at in FAR]
    grows = sizes[2] > 1.3 * sizes[1] > 1.3**2 * sizes[0] and sizes[2] > 1e-6
    return placed and not (near or max(sizes) > 1e12 or grows)


def _on_the_ladder(values: Values, state: CheckState) -> Expr:
    """What is left of the expansion; the scale of a rung is its logarithm."""
    scaled = values["k_before"] == values["k"] - 1 and values["scale"] == iterated(values["k"])
    return state.rest if scaled else None


def _is_rung(values: Values, state: CheckState) -> bool:
    """The limit of rest/L_k, found again."""
    rest, follows = (
        _on_the_ladder(values, state),
        state.limit is None and values["k"] == state.rung + 1,
    )
    state.rung, state.limit = values["k"], values["limit"]
    if rest is None or not follows:
        return False
    value = limit(rest, values["scale"], state.numbers)
    return bool(value == state.limit) or state.numbers.is_near(value - state.limit, 0)


def _is_tie(values: Values, state: CheckState) -> bool:
    """At a limit of 1 the scale leaves the rest."""
    rest = _on_the_ladder(values, state)
    ones = all(state.numbers.is_near(x, 1) for x in (state.limit, values["limit"]))
    if rest is None or state.rung != values["k"] or not ones:
        return False
    state.rest, state.limit = sympy.expand(rest - values["scale"]), None
    return True


def _ends(above: bool, values: Values, state: CheckState) -> bool:
    """The last limit against 1, and the comparison series that belongs to its rung."""
    rest, last, rung = state.rest, state.limit, state.rung
    state.rest, state.rung, state.limit = None, 0, None
    if rest is None or last is None or values["k"] != rung:
        return False
    logs = [iterated(j) for j in range(rung)]
    terms = 1 / (sympy.Mul(*logs[:-1]) * logs[-1] ** Symbol("c", positive=True))
    last = last if last.is_infinite else state.numbers.ball(last, 1)
    beyond = last is not None and bool(last > 1 if above else last < 1)
    return beyond and bool(values["comparison"] == terms)


# -- bounds --------------------------------------------------------------------------------------


def _gaps(side: int, values: Values, state: CheckState, at: Iterable[int]) -> list[tuple[arb, arb]]:
    """How far the bound lies above p (below it for a side of -1), up to the error, and the size of
    both, at each distance where balls know them."""
    wanted = state.p, values["bound"], values["error"]
    each = ([ball for e in wanted if (ball := state.numbers.ball(e, k)) is not None] for k in at)
    complete = [balls for balls in each if len(balls) == len(wanted)]
    if not complete:
        raise Open("values that balls leave open")
    with precision(BITS):
        return [
            (side * (y - x) + 100 * abs(slack), abs(x) + abs(y) + 1) for x, y, slack in complete
        ]


def _bounded(side: int, values: Values, state: CheckState) -> bool:
    """An upper (lower) bound lies above (below) p everywhere, and near it somewhere."""
    gaps = _gaps(side, values, state, points(state.p, 60))
    with precision(BITS):
        tightest = min(float((gap / size).mid()) for gap, size in gaps)
    return not any(gap < 0 for gap, _ in gaps) and tightest <= 0.9


def _averaged(values: Values, state: CheckState) -> bool:
    """The mean of exp(p + bound) over many distances stays between positive constants."""
    rng, means, width = np.random.default_rng(0), [], _turn(values["phase"], state.numbers)
    for size in (1e6, 1e8, 1e10):
        at = rng.integers(int(size), int(width * size), state.few(200_000))
        with np.errstate(all="ignore"):
            ratio = np.exp(sum(state.numbers.table(at, state.p, values["bound"])))
        ratio = ratio[np.isfinite(ratio)]
        if not ratio.size:
            raise Open("the mean of terms without numbers")
        means.append(float(np.mean(ratio)))
    return all(1e-4 < m < 1e4 for m in means) and 0.2 < means[-1] / means[0] < 5


def _turn(phase: str, numbers: Numbers) -> int:
    """A factor >= 40 by which n must grow for a phase to turn once."""
    widths = (40, 700, 10**5)
    with np.errstate(all="ignore"):
        at = np.array([10**6, *(w * 10**6 for w in widths)])
        ((start, *ends),) = numbers.table(at, expression(phase, {}))
    for width, end in zip(widths, ends, strict=True):
        if not abs(end - start) < 2 * np.pi:
            return width
    raise Open("the average over a phase that turns too slowly for numbers")


def _comes_back(values: Values, state: CheckState) -> bool:
    """In each decade some term stays above a constant."""
    (p,) = state.numbers.table(np.arange(100, 10**6), state.p)
    return not min(np.nanmax(p[10**k - 100 : 10 ** (k + 1) - 100]) for k in range(2, 6)) < -50


CHECKED: dict[str, Row] = {
    "zero": (_is_zero, "", None),
    "eventual": (_same_far_out, "p", None),
    "masked": (partial(_no_number, True), "", True),
    "infinite": (partial(_no_number, False), "", False),
    "classes": (_parts, "", None),
    "class": (_is_class, "p", None),
    "expansion": (_expands, "", None),
    "rung": (_is_rung, "", None),
    "tie": (_is_tie, "", None),
    "converges": (partial(_ends, True), "", True),
    "diverges": (partial(_ends, False), "", False),
    "upper bound": (partial(_bounded, 1), "bound", None),
    "lower bound": (partial(_bounded, -1), "bound", None),
    "average": (_averaged, "-bound", None),
    "returns": (_comes_back, "", None),
    "term test": (None, "", False),
    "bounded support": (None, "", True),
}
"""The rules that state something of p or decide; the others cite a theorem."""
