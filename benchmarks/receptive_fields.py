"""Receptive fields by farfield and by its peers: time, and wrong answers, in one run.

Peers: the search in the cumulative sums of N float64 terms, forward and from the far end (NumPy);
for the total alone `mpmath.nsum` and `scipy.integrate.nsum`. The reference is the integer that two
ball comparisons certify.

    python benchmarks/receptive_fields.py [--quick]
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import cyclopts
import mpmath
import numpy as np
import sympy
from scipy import integrate

from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.summation.series import series
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import precision, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.values import tabulate

KERNELS = (
    "-2*log(1+n)",
    "-11/10*log(1+n)",
    "-log(1+n)^2",
    "-n/256",
    "-sqrt(n)",
    "-log(n+2)-2*log(log(n+2))",
    "-log(n+3)-log(log(n+3))-2*log(log(log(n+3)))",
    "-log(1+(n/256)^2)",
    "-log(3+n/256)^2",
    "-n^(3/10)/2",
)
GENERAL = ("-log(n+20)^(11/10)", "-2*asinh(n)", "-2*digamma(n+1)", "-log(n^2+exp(sqrt(n)))")
EPS = ("1/2", "1/10", "1/100", "1/10000", "1e-8", "1e-12")


def by_sums(text: str, terms: int, backward: bool) -> Callable[[float], int]:
    """The search in cumulative float64 sums."""
    weights = np.exp(tabulate(read(text), np.arange(terms)))
    if backward:
        tails = np.append(np.cumsum(weights[::-1])[::-1], 0)
        return lambda eps: int(np.argmax(tails < eps * tails[0]))
    sums = np.append(0, np.cumsum(weights))
    return lambda eps: int(np.argmax(sums[-1] - sums < eps * sums[-1]))


def totals(text: str) -> dict[str, float]:
    """The total by summation routines that extrapolate or bound."""
    e = read(text)
    function = sympy.lambdify(n, sympy.exp(e), "mpmath")
    vector = sympy.lambdify(n, sympy.exp(e), ["scipy", "numpy"])
    found = {}
    try:
        found["mpmath.nsum"] = float(mpmath.nsum(function, [0, mpmath.inf]))
    except (ValueError, ZeroDivisionError, mpmath.NoConvergence):
        found["mpmath.nsum"] = float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found["scipy.integrate.nsum"] = float(integrate.nsum(vector, 0, np.inf).sum)
    return found


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """A result and the milliseconds of processor time it took, on one thread."""
    started = time.process_time()
    result = function()
    return result, 1000 * (time.process_time() - started)


def main(*, quick: bool = False) -> None:
    """The tables of times and wrong answers.

    Args:
        quick: sums of 10^6 terms alone.
    """
    sizes = (10**6,) if quick else (10**6, 10**7)
    wrong: dict[str, int] = {}
    queries = {"closed form": [], "general": []}  # type: dict[str, list[float]]
    setups = {"closed form": [], "general": []}  # type: dict[str, list[float]]
    print(f"{'kernel':48s} {'set-up ms':>9s}  relative error of the total")
    for text in KERNELS + GENERAL:
        kind = "general" if text in GENERAL else "closed form"
        _, setup = timed(lambda text=text: theoretical_receptive_field(text, "1/3"))
        setups[kind].append(setup)
        with precision(64):
            total = float(to_arb(series(read(text)).total()).mid())
        errors = {name: abs(v / total - 1) for name, v in totals(text).items()}
        shown = ", ".join(f"{name} {e:.1e}" for name, e in errors.items())
        print(f"{text:48s} {setup:9.1f}  {shown}")
        for name, error in errors.items():
            wrong[f"{name}, total off by > 1e-9"] = wrong.get(f"{name}, total off by > 1e-9", 0) + (
                not error < 1e-9
            )
        truth = {}
        for eps in EPS:
            answer, spent = timed(lambda: theoretical_receptive_field(text, eps))  # noqa: B023
            truth[eps] = answer.tokens
            if eps != "1e-12":
                queries[kind].append(spent)
        if text in GENERAL:
            continue
        for size in sizes:
            for backward in (False, True):
                name = f"NumPy {size:.0e} {'backward' if backward else 'forward'}"
                search = by_sums(text, size, backward)
                misses = sum(search(float(sympy.Rational(e))) != truth[e] for e in EPS)
                wrong[name] = wrong.get(name, 0) + misses
    print()
    for kind, times in queries.items():
        print(
            f"farfield, {kind}: set-up median {np.median(setups[kind]):.1f} ms, "
            f"query at eps >= 1e-8 median {np.median(times):.1f} ms, "
            f"largest {max(times):.0f} ms"
        )
    for name, count in wrong.items():
        of = len(KERNELS + GENERAL) if "nsum" in name else len(KERNELS) * len(EPS)
        print(f"wrong: {name}: {count} of {of}")


if __name__ == "__main__":
    cyclopts.run(main)
