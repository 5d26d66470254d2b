"""Receptive fields by farfield and by its peers: time, and wrong answers, in one run.

Peers: the search in the cumulative sums of N float64 terms, forward and from the far end (NumPy);
for the total alone `mpmath.nsum` and `scipy.integrate.nsum`. The reference is the integer that two
ball comparisons certify.

    python benchmarks/receptive_fields.py [--quick]
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import mpmath
import numpy as np
import sympy
from scipy import integrate
from series import CASES
from side_by_side import Row, program, timed

from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.summation import series as summation
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import precision, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.values import tabulate

EPS = ("1/2", "1/10", "1/100", "1/10000", "1e-8", "1e-12")


def by_sums(text: str, terms: int, backward: bool) -> Callable[[float], int]:
    """The search in cumulative float64 sums."""
    weights = np.exp(tabulate(read(text), np.arange(terms)))
    if backward:
        tails = np.append(np.cumsum(weights[::-1])[::-1], 0)
        return lambda eps: int(np.argmax(tails < eps * tails[0]))
    sums = np.append(0, np.cumsum(weights))
    return lambda eps: int(np.argmax(sums[-1] - sums < eps * sums[-1]))


def totals(text: str) -> Iterator[tuple[str, float]]:
    """The total by summation routines that extrapolate or bound."""
    terms = sympy.exp(read(text))
    function = sympy.lambdify(n, terms, "mpmath")
    vector = sympy.lambdify(n, terms, ["scipy", "numpy"])
    try:
        yield "mpmath.nsum", float(mpmath.nsum(function, [0, mpmath.inf]))
    except (ValueError, ZeroDivisionError, mpmath.NoConvergence):
        yield "mpmath.nsum", float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield "scipy.integrate.nsum", float(integrate.nsum(vector, 0, np.inf).sum)


def main(*, quick: bool = False) -> Iterator[Row]:
    """The tables of times and wrong answers.

    Args:
        quick: sums of 10^6 terms alone.
    """
    misses: dict[str, list[bool]] = {}
    times: dict[str, list[tuple[float, list[float]]]] = {"closed": [], "general": []}
    for text in CASES["closed"] + CASES["general"]:
        _, setup = timed(lambda: theoretical_receptive_field(text, "1/3"))  # noqa: B023
        with precision(64):
            total = float(to_arb(summation.series(read(text)).total()).mid())
        errors = {name: abs(v / total - 1) for name, v in totals(text)}
        for name, error in errors.items():
            misses.setdefault(f"{name}, total off by > 1e-9", []).append(not error < 1e-9)
        truth, spent = {}, []
        for eps in EPS:
            answer, seconds = timed(lambda: theoretical_receptive_field(text, eps))  # noqa: B023
            truth[eps] = answer.tokens
            spent += [1e3 * seconds] if eps != "1e-12" else []
        times["closed" if text in CASES["closed"] else "general"].append((1e3 * setup, spent))
        yield {
            "formula": text,
            "set-up ms": 1e3 * setup,
            "query ms, eps >= 1e-8": float(np.median(spent)),
            "largest": max(spent),
            **errors,
        }
        for size in (10**6, 10**7)[: 1 if quick else 2] if text in CASES["closed"] else ():
            for backward in (False, True):
                search = by_sums(text, size, backward)
                wrong = [search(float(sympy.Rational(e))) != truth[e] for e in EPS]
                way = "backward" if backward else "forward"
                misses.setdefault(f"NumPy {size:.0e} {way}", []).extend(wrong)
    for kind, found in times.items():
        queries = [ms for _, each in found for ms in each]
        setup = float(np.median([ms for ms, _ in found]))
        middle = {"set-up ms": setup, "query ms, eps >= 1e-8": float(np.median(queries))}
        yield {"medians": kind, **middle, "largest": max(queries)}
    for name, each in misses.items():
        yield {"wrong answers": name, "wrong": sum(each), "of": len(each)}


if __name__ == "__main__":
    program(main)
