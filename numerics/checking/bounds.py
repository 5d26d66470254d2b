"""Steps that compare p with another formula: expansions, bounds, averages, returns.

Numbers at finitely many distances: a failure there refutes, a success confirms.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import sympy
from flint import arb
from sympy import Expr

from farfield.numerics.checking.check_state import CheckState, expression
from farfield.numerics.checking.numbers import BITS, Numbers
from farfield.numerics.checking.stops import Open, ProofError
from farfield.theory.functions.balls import precision
from farfield.theory.functions.nodes import n

NEAR = (101, 317, 1009)  # where an exact expansion is compared
# Where errors are: an expansion that is wrong shows by then, and balls still reach it.
FAR = (10**40 + 7, 10**60 + 9, 10**90 + 49)


def points(p: Expr, count: int = 40) -> list[int]:
    """Distances spread over many sizes, the same for the same formula."""
    rng = random.Random(str(p))
    return [rng.randrange(10**k, 10 ** (k + 1)) for k in range(6, 6 + count)]


def _excess(
    difference: Expr, error: Expr, at: int, numbers: Numbers, since: int | None = None
) -> float:
    """|difference|/error at a distance (less its value `since`); 0 where no ball tells it from
    0."""
    ball = numbers.ball(difference, at)
    start = numbers.ball(difference, since) if since is not None else None
    if ball is not None and start is not None and start.is_finite():
        with precision(BITS):
            ball = ball - start
    scale = numbers.ball(error, at) if error != 0 else None
    if ball is None or (error != 0 and (scale is None or not scale > 0)):
        return 0.0
    with precision(BITS):
        if ball.contains(0):
            return 0.0
        return float("inf") if scale is None else float((abs(ball) / scale).mid())


def check_expansion(said: Mapping[str, Any], own: CheckState) -> None:
    """|p + rho| <= C error, for a C that does not grow from 10^40 to 10^90."""
    rho, error = said["rho"], said["error"]
    if own.rest is not None and not own.verdicts:
        raise ProofError("an expansion out of place")
    if error == 0 and any(_excess(own.p + rho, error, at, own.numbers) for at in NEAR):
        raise ProofError("the expansion is not that of -p")
    since = 10**20 if error == 1 else None  # a constant must not hide what grows
    sizes = [
        max(_excess(own.p + rho, error, at + j * at // 3, own.numbers, since) for j in range(6))
        for at in FAR
    ]
    if max(sizes) > 1e12 or (sizes[2] > 1.3 * sizes[1] > 1.3**2 * sizes[0] and sizes[2] > 1e-6):
        raise ProofError("the expansion is not that of -p")
    own.rest, own.rung, own.limit, own.tied = rho, 0, None, True


def check_bound(rule: str, said: Mapping[str, Any], own: CheckState) -> None:
    """An upper (lower) bound lies above (below) p everywhere; the others on a set of returns."""
    if rule in ("upper bound", "lower bound", "tangent"):
        side = -1 if rule == "lower bound" else 1
        tightest = float("inf")
        for at, x, y, slack in _known(said, own, points(own.p, 60)):
            with precision(BITS):
                gap = side * (y - x) + 100 * abs(slack)
                if gap < 0:
                    raise ProofError(f"the {rule} fails at n = {at}")
                size = abs(x) + abs(y) + 1
                tightest = min(tightest, float((gap / size).mid()))
        if tightest == float("inf"):
            raise Open("values that balls leave open")
        if tightest > 0.9 and not _rarely_near(own.p):
            raise ProofError(f"the {rule} is nowhere near p")
        return
    reached = []
    for _, x, y, slack in _known(said, own, _returns(rule, said, own)):
        with precision(BITS):
            reached.append(not x - y + 100 * abs(slack) < 0)
    if not reached:
        raise Open("values that balls leave open")
    if not any(reached) and said.get("phase", "").startswith("("):
        raise Open("several phases that are seldom near the infimum together")
    if not any(reached):
        raise ProofError(f"p never reaches the bound of the {rule}")


def _known(
    said: Mapping[str, Any], own: CheckState, distances: Iterable[int]
) -> Iterator[tuple[int, arb, arb, arb]]:
    """Each distance with the values of p, of its bound and of the error, where balls know them."""
    for at in distances:
        x, y = own.numbers.ball(own.p, at), own.numbers.ball(said["bound"], at)
        slack = own.numbers.ball(said["error"], at) if said["error"] != 0 else arb(0)
        if x is not None and y is not None and slack is not None:
            yield at, x, y, slack


def _rarely_near(p: Expr) -> bool:
    """Whether p is near its bounds at a small share of the distances: an exponent oscillates."""
    waves = (sympy.sin, sympy.cos, sympy.frac, sympy.floor)
    return any(e.exp.has(*waves) for e in p.atoms(sympy.Pow, sympy.exp))


def _returns(rule: str, said: Mapping[str, Any], own: CheckState) -> list[int]:
    """Distances where the oscillation is near its value at `at`, or p is comparatively large."""
    if rule == "recurrence":
        turns = [
            float(sympy.expand(w.args[0]).coeff(n))
            for w in own.p.atoms(sympy.sin, sympy.cos)
            if w.has(n)
        ]
        steps = np.arange(1000, 3_000_000)
        away = np.zeros(len(steps))
        for w in turns:
            away = np.maximum(away, np.abs(np.sin(steps * w / 2)))
        return [int(said["at"] + steps[i]) for i in _least(away)]
    far = np.geomspace(1e5, 1e9, _samples(own.p, 40_000)).astype(np.int64)
    gaps = own.numbers.table(own.p, far) - own.numbers.table(said["bound"], far)
    return [int(far[i]) for i in _least(-gaps)]


def _least(values: np.ndarray) -> np.ndarray:
    """The places of the 20 least of many values."""
    return np.argpartition(values, 20)[:20]


def _samples(p: Expr, count: int) -> int:
    """How many distances to try: fewer where each value needs a ball."""
    return count // 20 if p.has(sympy.frac, sympy.floor, sympy.ceiling, sympy.Mod) else count


def _turn(phase: str, numbers: Numbers) -> int:
    """A factor >= 40 by which n must grow for a phase to turn once."""
    if phase.startswith("("):
        return 40
    e = expression(phase, {})
    for width in (40, 700, 10**5):
        with np.errstate(all="ignore"):
            ends = numbers.table(e, np.array([10**6, width * 10**6]))
        if not abs(ends[1] - ends[0]) < 2 * np.pi:
            return width
    raise Open("the average over a phase that turns too slowly for numbers")


def check_average(said: Mapping[str, Any], own: CheckState) -> None:
    """The mean of exp(p + bound) over many distances stays between positive constants."""
    rng = np.random.default_rng(0)
    means = []
    width = _turn(said["phase"], own.numbers)
    for size in (1e6, 1e8, 1e10):
        at = rng.integers(int(size), int(width * size), _samples(own.p, 200_000))
        with np.errstate(all="ignore"):
            ratio = np.exp(own.numbers.table(own.p, at) + own.numbers.table(said["bound"], at))
        ratio = ratio[np.isfinite(ratio)]
        if not ratio.size:
            raise Open("the mean of terms without numbers")
        means.append(float(np.mean(ratio)))
    if not all(1e-4 < m < 1e4 for m in means) or not 0.2 < means[-1] / means[0] < 5:
        raise ProofError("the mean over a block is not that of the bound")


def check_returns(own: CheckState) -> None:
    """In each decade some term stays above a constant."""
    values = own.numbers.table(own.p, np.arange(100, 3_000_000))
    peaks = [np.nanmax(values[10**k - 100 : 10 ** (k + 1) - 100]) for k in range(2, 6)]
    if min(peaks) < -50:
        raise ProofError("the terms do not return")


def check_distance(said: Mapping[str, Any], own: CheckState) -> None:
    """p is below the bound at the distances where it comes nearest."""
    if said["error"] != 0:
        raise Open("a bound up to an error")
    at = np.arange(1000, 3_000_000)
    values, bound = own.numbers.table(own.p, at), own.numbers.table(said["bound"], at)
    near = _least(bound - values)
    if not all(values[i] < bound[i] * 1e-3 for i in near):
        raise ProofError("p exceeds the bound of the distance")


def check_least_exponent(said: Mapping[str, Any], own: CheckState) -> None:
    """p >= bound - C wherever top - bound is small."""
    at = np.geomspace(1e3, 1e9, _samples(own.p, 400_000)).astype(np.int64)
    tables = (own.numbers.table(e, at) for e in (own.p, said["bound"], said["top"]))
    with np.errstate(all="ignore"):
        p, bound, top = tables
        gaps = [(bound - p)[(top - bound <= most) & np.isfinite(p)] for most in (1, 0.1, 0.01)]
    if not gaps[0].size:
        raise Open("no distance is near enough")
    if all(gap.size and gap.max() > 20 for gap in gaps):
        raise ProofError("near the least exponent p is not what is said")
