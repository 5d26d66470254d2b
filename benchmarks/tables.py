"""A table of float64 beside the same evaluation without its second row, and an entry by balls.

    python benchmarks/tables.py [--repeats 15]

The plain evaluation takes the same rules over the whole array at once, and knows nothing of what
rounding does.
An entry by balls is what a table asks for where floats do not tell it to 12 digits.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from side_by_side import Row, in_turn, program, timed
from sympy import Expr

from farfield.theory.evaluation.vectorised import Arrays, Floats, _NumPy
from farfield.theory.formula.grammar import read
from farfield.theory.functions.nodes import n
from farfield.theory.functions.record import Program
from farfield.theory.values import BALLS, tabulate

DISTANCES, ENTRIES = np.arange(10**5), np.arange(1, 2_001)
FORMULAS = (
    "-2*log(1+n)",
    "-n/256",
    "-sqrt(n)",
    "-log(1+n)^2",
    "-n/100+sin(n)",
    "-log(1+(n/256)^2)",
    "-3/2*log(1+n)-1/(1+n)",
    "-n^(3/10)/2",
    "-softplus(n)/5000",
    "-atan(n)-log(1+n)",
)


class Plain(Arrays):
    """The rules of floats in one row."""

    def __init__(self) -> None:
        super().__init__(_NumPy())

    def constant(self, e: Expr) -> float:
        return float(e)


def main(*, repeats: int = 15) -> Iterator[Row]:
    """Milliseconds of a table of 10^5 distances, microseconds of an entry by balls.

    Args:
        repeats: rounds of which the median is told.
    """
    floats = Floats(BALLS)
    for text in FORMULAS:
        formula = read(text)
        plain = Program(formula, Plain(), (n,))

        candidates = {
            "table": lambda p=formula: tabulate(p, DISTANCES),
            "plain": lambda p=plain: p(DISTANCES.astype(np.float64)),
        }
        seconds = in_turn(candidates, repeats)
        _, balls = timed(lambda p=formula: floats.by_balls(p, ENTRIES))
        yield {
            "formula": text,
            "table ms": 1e3 * seconds["table"],
            "plain ms": 1e3 * seconds["plain"],
            "ratio": seconds["table"] / seconds["plain"],
            "us an entry by balls": 1e6 * balls / ENTRIES.size,
        }


if __name__ == "__main__":
    program(main)
