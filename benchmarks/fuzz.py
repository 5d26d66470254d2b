"""Hostile and random input: no crash, no hang, no execution, bounded memory, no wrong verdict.

    python benchmarks/fuzz.py [--seed N] [--reader N] [--engine N] [--series N]

The reader gets random strings, the engine random formulas with a budget of 0.2 seconds, and the
generator of `series.py` makes formulas whose verdict is known.
"""

from __future__ import annotations

import random
import resource
from collections.abc import Iterator

from series import random_series
from side_by_side import Row, program, timed

from farfield.theory.answers.answer import InputError
from farfield.theory.convergence import check_convergence
from farfield.theory.formula.grammar import read
from farfield.theory.formula.vocabulary import CONSTANTS
from farfield.theory.functions.record import SPELLINGS

WORDS = r"""
    n n n a x Piecewise Sum True import __ np. if else where clip \frac \log { } $ ² ½ √
    |i-j| i-j ! % // \begin{cases} \\ # = α ( ( ) ) , + - * / ** ^ | < <= == & ~ . 1 2 0
    10**9 1e99 0.5 ' " ; \ é − λ
"""
PIECES = (*SPELLINGS, *CONSTANTS, *WORDS.split(), "lambda n:", "p(n) =", " ", "\t", "\x00")
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
    name = rng.choice(list(SPELLINGS))
    least = SPELLINGS[name].least
    return f"{name}({a})" if least == 1 else f"{name}({rng.randint(0, 3)}, {b})"


def fuzz_reader(count: int, rng: random.Random) -> Row:
    """The longest processor time the reader took; anything but InputError is a failure."""

    def asked(text: str) -> None:
        try:
            read(text)
        except InputError as error:
            if "\n" in str(error):
                raise AssertionError(f"several lines for {text!r}") from error

    slowest = max(timed(lambda: asked(random_text(rng)))[1] for _ in range(count))
    return {"what": "reader", "inputs": count, "slowest s": slowest, "wrong": 0, "undecided": 0}


def fuzz_engine(count: int, rng: random.Random) -> Row:
    """The longest processor time the engine took with a budget of 0.2 s, and on which formula."""

    def asked(text: str) -> None:
        try:
            check_convergence(text, budget_s=BUDGET)
        except InputError:
            pass
        except Exception as error:
            raise AssertionError(f"{error!r} on {text}") from error

    slowest = (0.0, "")
    for _ in range(count):
        text = "-" + random_formula(rng)
        slowest = max(slowest, (timed(lambda: asked(text))[1], text))  # noqa: B023
    named = {"slowest s": slowest[0], "wrong": 0, "undecided": 0, "on": slowest[1][:200]}
    return {"what": f"engine, budget {BUDGET} s", "inputs": count, **named}


def generated(count: int, rng: random.Random) -> Row:
    """How many verdicts are wrong or missing, of series whose verdict is known."""
    wrong, undecided, slowest = list[str](), 0, 0.0
    for _ in range(count):
        text, converges = random_series(rng)
        verdict, seconds = timed(lambda: check_convergence(text))  # noqa: B023
        undecided += verdict.converges is None
        wrong += [text] if verdict.converges is (not converges) else []
        slowest = max(slowest, seconds)
    found = {"slowest s": slowest, "wrong": len(wrong), "undecided": undecided}
    return {"what": "series", "inputs": count, **found, **({"on": str(wrong)} if wrong else {})}


def main(
    *, seed: int = 0, reader: int = 100_000, engine: int = 5_000, series: int = 10_000
) -> Iterator[Row]:
    """So many inputs of each kind."""
    rng = random.Random(seed)
    yield fuzz_reader(reader, rng)
    yield fuzz_engine(engine, rng)
    yield generated(series, rng)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    yield {"what": "memory", "GB at most": used}


if __name__ == "__main__":
    program(main, "wrong")
