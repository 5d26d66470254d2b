"""How an exp-series is summed: the ordered list of methods, and the one place that chooses.

`find` takes the first method of `METHODS` that proves a sum of exp(p(n)) on n >= start. To add a
method, write a function that returns a `Kernel` or raises `Unrecognised`, and give it a line here.
With `FARFIELD_TRACE=1` in the environment the tree of calls shows each choice, with the reasons
for which the methods before it were passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import sympy
from sympy import Expr

from farfield.numerics.search import Divergent, Unrecognised, recognising
from farfield.numerics.summation.analytic import analytic_kernel
from farfield.numerics.summation.bounded import by_envelope, by_steps
from farfield.numerics.summation.kernel import Kernel, family
from farfield.theory.algebra import door
from farfield.theory.algebra.call_tree import traced
from farfield.theory.algebra.door import check_time
from farfield.theory.algebra.exceptions import OutOfTime, Unreachable
from farfield.theory.functions.nodes import n

MAX_OPERATIONS = 80  # of a formula whose products of waves are multiplied out


def _part(p: Expr, start: int) -> Kernel:
    """The sum of the part of a bias that remains without its oscillations."""
    return find(p, start, smooth=True)


@dataclass(frozen=True)
class Method:
    """One way to sum; a `smooth` one sums no oscillations, a `row` one also finite stretches."""

    name: str
    sums: str
    build: Callable[[Expr, int], Kernel]
    smooth: bool = False
    row: bool = False


METHODS = (
    Method("family", "a closed form by its normal form", family, True, True),
    Method("steps", "steps of a logarithm as a geometric series", by_steps),
    Method("analytic", "analytic terms, or terms that fall fast", analytic_kernel, smooth=True),
    Method("envelope", "oscillations between two bounds", partial(by_envelope, find=_part)),
)


@traced(1)
def find(
    p: Expr,
    start: int = 0,
    *,
    smooth: bool = False,
    row: bool = False,
    diverges: Callable[[Expr], bool] | None = None,
) -> Kernel:
    """The kernel of the first method that sums exp(p(n)) on n >= start.

    Args:
        p: the bias, without free parameters.
        start: the first distance.
        smooth: only methods that sum no oscillations.
        row: only methods that sum finite stretches too.
        diverges: whether a series is proved to diverge, where the caller can tell.

    Raises:
        Unrecognised: no method sums it; with the last method's reason. `Divergent` where
            `diverges` says so.

    >>> find(-2 * sympy.log(1 + n))
    Power(start=0, gamma=0, h=1, r=2)
    """
    passed: list[Unrecognised] = []
    taken = None
    for method in METHODS:
        check_time()
        if row > method.row or smooth > method.smooth:
            continue
        if not method.row and taken is None:
            if diverges is not None and diverges(p):
                raise Divergent("the series diverges")
            with recognising():
                taken = p if smooth else _linear_in_waves(p)
        try:
            with recognising():
                kernel = method.build(p if taken is None else taken, start)
        except OutOfTime:
            raise
        except Unrecognised as why:
            passed.append(why)
        except Unreachable as why:
            passed.append(Unrecognised(str(why)))
        else:
            return kernel
    raise passed[0 if row else -1]


def _linear_in_waves(p: Expr) -> Expr:
    """p with products and powers of sines and cosines as sums: sin^2 + cos^2 is 1."""
    waves = [w for w in p.atoms(sympy.sin, sympy.cos) if w.has(n)]
    if not waves or p.count_ops() > MAX_OPERATIONS:
        return p
    names = {w: sympy.Dummy(real=True) for w in waves}  # sin(a + pi n) stays one wave
    wide = door.expand(p.xreplace(names)).xreplace({name: w for w, name in names.items()})
    products = [m for m in wide.atoms(sympy.Mul, sympy.Pow) if _factors(m, waves) > 1]
    return door.expand(door.products_to_sums(wide)) if products else p


def _factors(m: Expr, waves: list[Expr]) -> int:
    """How many waves a product or a power multiplies."""
    powers = [f.as_base_exp() for f in sympy.Mul.make_args(m)]
    return sum(int(k) for base, k in powers if base in waves and k.is_Integer and k > 0)
