"""Hostile and random input: no crash, no hang, no execution, bounded memory, no wrong verdict.

    python benchmarks/fuzz.py [--seed N] [--reader N] [--engine N] [--series N]

The reader gets random strings, the engine random formulas with a budget of 0.2 seconds, and the
generator of `series.py` makes formulas whose verdict is known.
"""

from __future__ import annotations

import random
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import cyclopts
import series as known

from farfield.theory.answers.answer import InputError
from farfield.theory.convergence import check_convergence
from farfield.theory.formula.grammar import read
from farfield.theory.formula.vocabulary import CONSTANTS
from farfield.theory.functions.record import spellings

WORDS = r"""
    n n n a x Piecewise Sum True import __ np. if else where clip \frac \log { } $ ² ½ √
    |i-j| i-j ! % // \begin{cases} \\ # = α ( ( ) ) , + - * / ** ^ | < <= == & ~ . 1 2 0
    10**9 1e99 0.5 ' " ; \ é − λ
"""
PIECES = (
    *spellings(),
    *CONSTANTS,
    *WORDS.split(),
    "lambda n:",
    "p(n) =",
    " ",
    "\t",
    "\x00",
)
BUDGET = 0.2


def random_text(rng: random.Random) -> str:
    """Tokens of the grammar in random order, now and then a random character."""
    return "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 25)))


def random_formula(rng: random.Random, depth: int = 3) -> str:
    """A random formula of the grammar, real or not."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(("n", "n", "n", "a", "2", "1/3", "pi", "log(n)", "sin(n)", "10**6"))
    a, b = random_formula(rng, depth - 1), random_formula(rng, depth - 1)
    kind = rng.randrange(8)
    if kind < 3:
        return f"({a}{rng.choice('+-*/')}{b})"
    if kind == 3:
        return f"({a})**({b})"
    if kind == 4:
        return f"Piecewise(({a}, {b} < 3), ({b}, True))"
    name = rng.choice(list(spellings()))
    least = spellings()[name].least
    return f"{name}({a})" if least == 1 else f"{name}({rng.randint(0, 3)}, {b})"


def fuzz_reader(count: int, rng: random.Random) -> float:
    """The longest processor time the reader took; anything but InputError is a failure."""
    slowest = 0.0
    for _ in range(count):
        text = random_text(rng)
        start = time.process_time()
        try:
            read(text)
        except InputError as error:
            if "\n" in str(error):
                raise AssertionError(f"several lines for {text!r}") from error
        slowest = max(slowest, time.process_time() - start)
    return slowest


def fuzz_engine(count: int, rng: random.Random) -> tuple[float, str]:
    """The longest processor time the engine took with a budget of 0.2 s, and on which formula."""
    slowest = (0.0, "")
    for _ in range(count):
        text = "-" + random_formula(rng)
        start = time.process_time()
        try:
            check_convergence(text, budget_s=BUDGET)
        except InputError:
            pass
        except Exception as error:
            raise AssertionError(f"{error!r} on {text}") from error
        slowest = max(slowest, (time.process_time() - start, text))
    return slowest


def generated(count: int, rng: random.Random) -> tuple[int, int]:
    """(wrong, undecided) among series whose verdict is known."""
    wrong = undecided = 0
    for _ in range(count):
        text, converges = known.random_series(rng)
        found = check_convergence(text).converges
        undecided += found is None
        if found is (not converges):
            wrong += 1
            print("WRONG", text)
    return wrong, undecided


def main(
    *, seed: int = 0, reader: int = 100_000, engine: int = 5_000, series: int = 10_000
) -> None:
    """So many inputs of each kind."""
    rng = random.Random(seed)
    print(f"reader: {reader} inputs, slowest {fuzz_reader(reader, rng):.3f} s")
    slowest, text = fuzz_engine(engine, rng)
    print(f"engine: {engine} inputs, slowest {slowest:.2f} s at a budget of {BUDGET} s")
    print(f"        {text[:200]}")
    wrong, undecided = generated(series, rng)
    print(f"series: {series} generated, {wrong} wrong, {undecided} undecided")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"memory: {memory:.2f} GB at most")


if __name__ == "__main__":
    cyclopts.run(main)
