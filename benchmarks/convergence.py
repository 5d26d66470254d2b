"""Side by side: our engine, `Sum.is_convergent`, and a ladder on `sympy.limit`.

    python benchmarks/convergence.py [--cap SECONDS] [NAME ...] [--every K]

Each engine answers every series of `tests/data/battery.jsonl`; a wrong or missing answer is
counted as such, a parameter counts as missing where an engine refuses it. Times are processor time.
Each engine runs in a worker process that is killed at the cap, which is wall time.
"""

from __future__ import annotations

import multiprocessing
import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import sympy
from series import battery
from side_by_side import Row, program, timed

from farfield.theory.convergence import check_convergence
from farfield.theory.formula.grammar import read


def ours(case: dict[str, Any]) -> str | None:
    """The verdict of `check_convergence`."""
    verdict = check_convergence(case["expr"], assumptions=case["params"]).verdict.value
    return None if verdict == "undecided" else verdict


def is_convergent(case: dict[str, Any]) -> str | None:
    """The verdict of `Sum(exp(p)).is_convergent()`."""
    n = sympy.Symbol("n", integer=True, positive=True)
    p = read(case["expr"], case["params"])
    p = p.xreplace({s: n for s in p.free_symbols if s.name == "n"})
    answer = sympy.Sum(sympy.exp(p), (n, 20, sympy.oo)).is_convergent()
    return "converges" if answer else "diverges"


def limit_ladder(case: dict[str, Any]) -> str | None:
    """The decision ladder with `sympy.limit`, after n = exp(y)."""
    y = sympy.Symbol("y", positive=True)
    p = read(case["expr"], case["params"])
    rest = -p.xreplace({s: sympy.exp(y) for s in p.free_symbols if s.name == "n"})
    scale = y
    for _ in range(6):
        c = sympy.limit(rest / scale, y, sympy.oo)
        if not c.is_number or not (c.is_extended_real or c.is_infinite):
            return None
        if c != 1:
            return "converges" if c > 1 else "diverges"
        rest, scale = rest - scale, sympy.log(scale)
    return None


ENGINES: dict[str, Callable[[dict[str, Any]], str | None]] = {
    "farfield": ours,
    "is_convergent": is_convergent,
    "limit_ladder": limit_ladder,
}


def answered(engine: str, case: dict[str, Any]) -> tuple[str | None, float]:
    """What an engine says of a case, and the seconds it took."""

    def said() -> str | None:
        try:
            return ENGINES[engine](case)
        except Exception:  # SymPy refuses in many ways; all of them are no answer
            return None

    return timed(said)


def measured(engine: str, cases: list[dict[str, Any]], cap: float) -> Row:
    """Right, wrong and missing answers with the times of all."""
    said, times = Counter[str](), list[float]()
    warm = {"initializer": answered, "initargs": (engine, {"expr": "-2*log(n)", "params": {}})}
    pool = multiprocessing.Pool(1, **warm)
    for case in cases:
        try:
            asked = pool.apply_async(answered, (engine, case))
            answer, seconds = asked.get(cap + (20 if not times else 0))
        except multiprocessing.TimeoutError:
            pool.terminate()
            pool, answer, seconds = multiprocessing.Pool(1, **warm), None, cap
        times.append(1e3 * seconds)
        said[
            "missing" if answer is None else "right" if answer == case["verdict"] else "wrong"
        ] += 1
    pool.terminate()
    return {
        "engine": engine,
        **{kind: said[kind] for kind in ("right", "wrong", "missing")},
        "median ms": statistics.median(times),
        "mean ms": statistics.fmean(times),
        "p95 ms": sorted(times)[int(0.95 * len(times))],
    }


def main(*only: str, cap: float = 5.0, every: int = 1) -> Iterator[Row]:
    """Our engine and its peers on the battery.

    Args:
        only: engines; all if none.
        cap: seconds a SymPy engine may take.
        every: every so many-th case only.
    """
    for engine in only or ENGINES:
        yield measured(engine, battery()[::every], cap)


if __name__ == "__main__":
    program(main)
