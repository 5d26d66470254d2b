"""Rigorous quadrature of exp(h), h analytic around the interval of integration."""

from __future__ import annotations

from flint import acb, arb
from sympy import Expr, Symbol

from farfield.numerics.enclosures.compiled import compile_complex
from farfield.theory.algebra.door import check_time
from farfield.theory.algebra.exceptions import Unreachable

MAX_EVALUATIONS = 200_000  # of the integrand on one interval


def integral(exponent: Expr, x: Symbol, a: arb, b: arb) -> arb:
    """int_a^b of e^h dx, h an expression in x, by FLINT: Gauss-Legendre rules on intervals that are
    halved as needed, with bounds on ellipses where h is proved analytic (Petras 2002).

    Raises:
        Unreachable: h is not analytic around the interval, or too rough; `OutOfTime`.

    >>> import sympy
    >>> x = sympy.Symbol("x")
    >>> print(integral(-x, x, arb(0), arb(1)).str(6))
    [0.632121 +/- 4.42e-7]
    """
    program, failures = compile_complex(exponent, x), list[BaseException]()

    def integrand(z: acb, analytic: bool) -> acb:
        if not failures:
            try:
                check_time()
                return program(z, analytic).exp()
            except BaseException as why:  # through FLINT it would end the process
                failures.append(why)
        return acb("nan")

    value = acb.integral(integrand, a, b, abs_tol=arb(0), eval_limit=MAX_EVALUATIONS)
    if failures:
        raise failures[0]
    if not value.is_finite():
        raise Unreachable("the integrand is not analytic near the half-line")
    return value.real
