"""Receptive fields by farfield and by its peers: time, and wrong answers, in one run.

Peers: the search in the cumulative sums of N float64 terms, forward and from the far end (NumPy);
for the total alone `mpmath.nsum` and `scipy.integrate.nsum`. The reference is the integer that two
ball comparisons certify.

    python benchmarks/receptive_fields.py [--quick]

With --battery every convergent entry of a battery of formulas is asked at five eps instead:
parameters take the first admissible values of a short list, and a formula that is undefined at a
small n is shifted to start at n = 20, or at 10^7.

    python benchmarks/receptive_fields.py --battery [FILE] [--only TEXT]
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import sympy
from scipy import integrate

from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.summation.series import series
from farfield.theory.answers.answer import InputError
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
VALUES = ("3/2", "2", "1/2", "3", "1/4", "-1/2", "1")
BATTERY = Path(__file__).resolve().parents[1] / "tests" / "data" / "battery.jsonl"
BUDGET_S = 60.0
BATTERY_EPS = ("1/2", "1/10", "1/100", "1/10000", "1e-8")
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


def filled(case: dict[str, Any]) -> sympy.Expr:
    """The formula of an entry with the first values that meet its condition."""
    formula, names = read(case["expr"]), sorted(case["params"] or {})
    symbols = {str(s): s for s in formula.free_symbols}
    text = (case["condition"] or "True").replace("exp(-1)", "1/E")
    condition = sympy.sympify(text, locals={name: sympy.Symbol(name) for name in names})
    for values in itertools.product(map(sympy.Rational, VALUES), repeat=len(names)):
        point = {sympy.Symbol(name): v for name, v in zip(names, values, strict=True)}
        signs = all(v > 0 or case["params"][str(s)] == "real" for s, v in point.items())
        if signs and sympy.sympify(condition).subs(point) == sympy.true:
            return formula.subs({symbols[str(s)]: v for s, v in point.items() if str(s) in symbols})
    raise ValueError(f"no values for {case['id']}")


def battery(path: Path, only: str) -> None:
    """One line an entry: the kinds of the five answers, set-up and query times."""
    cases = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    kinds: dict[str, int] = {}
    setups, queries = [], []
    for case in cases:
        if case["verdict"] == "diverges" or only not in case["id"]:
            continue
        name = case["id"]
        for start in (0, 20, 10**7):
            formula = filled(case).subs(n, n + start)
            try:
                _, setup = timed(lambda: theoretical_receptive_field(formula, "1/3"))  # noqa: B023
                break
            except InputError:
                name = f"{case['id']} (later)"
        shown, times = [], []
        for eps in BATTERY_EPS:
            found, spent = timed(
                lambda: theoretical_receptive_field(formula, eps, budget_s=BUDGET_S)  # noqa: B023
            )
            kind = type(found.answer).__name__ if found.answer else "none"
            digits = len(str(sympy.Integer(found.tokens))) if found.tokens else 0
            shown.append(
                f"{kind} {found.tokens}"
                if 0 < digits < 9
                else f"{kind} {digits} digits"
                if digits
                else kind
            )
            kinds[kind] = kinds.get(kind, 0) + 1
            times.append(spent)
            last = found
        setups.append(setup)
        queries += times
        reason = f"  ({last.reason})" if last.tokens is None else ""
        print(
            f"{name:42s} set-up {setup:7.0f} ms, queries {np.median(times):6.0f} median "
            f"{max(times):6.0f} largest: {', '.join(shown)}{reason}",
            flush=True,
        )
    print(", ".join(f"{kind}: {count}" for kind, count in kinds.items()))
    print(f"set-up median {np.median(setups):.0f} ms, query median {np.median(queries):.1f} ms")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="sums of 10^6 terms alone")
    parser.add_argument("--battery", nargs="?", type=Path, const=BATTERY, help="a file of entries")
    parser.add_argument("--only", default="", help="entries whose name contains this")
    asked = parser.parse_args()
    if asked.battery:
        battery(asked.battery, asked.only)
    else:
        compare((10**6,) if asked.quick else (10**6, 10**7))


def compare(sizes: tuple[int, ...]) -> None:
    """The tables of times and wrong answers."""
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
    main()
