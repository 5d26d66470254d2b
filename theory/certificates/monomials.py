"""Finite sums of monomials with a remainder, and how the prover writes them.

A monomial `n^a0 (log n)^a1 (log log n)^a2 ...` is the tuple of its exponents, without zeros at the
end. The prover's own arithmetic of such sums is `theory/formal/Expansions.v`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from sympy import Expr, Rational, S

from farfield.theory.algebra.budget import check_time
from farfield.theory.certificates.forms import form
from farfield.theory.coefficients.arithmetic import expand

Expo = tuple[Expr, ...]
Rest = Expo | None  # the order of a remainder; None where there is none
Terms = tuple[tuple[Expr, Expo], ...]

UNIT: Expo = ()


@dataclass(frozen=True)
class FiniteExpansion:
    """The terms of an expansion, the leading one first, and the order of its remainder."""

    terms: Terms
    rest: Rest


# -- arithmetic -----------------------------------------------------------------------------------


def product(e: Expo, f: Expo) -> Expo:
    """The product of two monomials.

    >>> product((S.One, S.One), (S.NegativeOne,)), product((S.One,), (S.NegativeOne,))
    ((0, 1), ())
    """
    sums = [expand(a + b) for a, b in zip_longest(e, f, fillvalue=S.Zero)]
    while sums and sums[-1] == 0:
        sums.pop()
    return tuple(sums)


def power(e: Expo, c: Expr) -> Expo:
    """A power of a monomial."""
    return product(tuple(c * a for a in e), UNIT)


def logarithm_of(level: int) -> Expo:
    """l_{level}, the iterated logarithm; `n` itself for level 0."""
    return (*[S.Zero] * level, S.One)


def times(e: Expo, rest: Rest) -> Rest:
    """The remainder of a product with a monomial."""
    return None if rest is None else product(e, rest)


def series(coefficients: Sequence[Expr], d: Terms) -> Terms:
    """The terms of q_0 + q_1 d + q_2 d^2 + ... by Horner's rule, not yet put together."""
    check_time()
    if not coefficients:
        return ()
    inner = series(coefficients[1:], d)
    return (
        (coefficients[0], UNIT),
        *((c * x, product(e, f)) for c, e in d for x, f in inner),
    )


def logarithms(k: int) -> list[Expr]:
    """The coefficients of log(1 + x) to x^k."""
    return [S.Zero, *(Rational((-1) ** (j + 1), j) for j in range(1, k + 1))]


def binomials(r: Expr, k: int) -> list[Expr]:
    """The coefficients of (1 + x)^r to x^k.

    >>> binomials(Rational(1, 2), 2)
    [1, 1/2, -1/8]
    """
    coefficients = [S.One]
    for j in range(k):
        coefficients.append(expand(coefficients[-1] * (r - j) / (j + 1)))
    return coefficients


# -- the prover's notation ------------------------------------------------------------------------


def shown(e: Expr) -> str:
    """A constant."""
    return form(e).show()


def exponents(e: Expo) -> str:
    """A monomial.

    >>> exponents((S.Zero, Rational(1, 2)))
    '[0; 1 / 2]'
    """
    return f"[{'; '.join(map(shown, e))}]"


def order(rest: Rest) -> str:
    """A remainder."""
    return "exactly" if rest is None else f"(Some {exponents(rest)})"


def listed(terms: Terms) -> str:
    """A list of terms."""
    return f"[{'; '.join(f'({shown(c)}, {exponents(e)})' for c, e in terms)}]"


def gathering(cancelled: Sequence[Expo]) -> str:
    """The tactic that puts terms together, some of which cancel."""
    cancels = "".join(f"cancel ({exponents(e)} : expo); " for e in cancelled)
    return f"(raw; {cancels}gather_terms)" if cancels else "gather"


def adding_up(cancelled: Sequence[Expo]) -> str:
    """The tactic that adds up the parts of a sum."""
    return f"sum_by {gathering(cancelled)}" if cancelled else "sum"
