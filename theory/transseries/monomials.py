"""Monomials of transseries, `n^a0 L1^a1 L2^a2 ... exp(c1 M1 + c2 M2 + ...)`, and their order.

`L1 = log n`, `L2 = log log n`, ... and the M_i -> oo are monomials themselves, in descending order,
none of them an `L_j` (an `exp(c L_j)` belongs to the chain). Exponents and coefficients are exact
(room `coefficients`), so `n^sqrt(2)`, `n^q` with a parameter q, and nested exponentials need
nothing special, and no basis has to be maintained as in Gruntz's algorithm.

The logarithm of a monomial is `a0 L1 + a1 L2 + ... + sum c_i M_i`: its largest term decides
whether the monomial tends to oo, to 0, or is 1 (`size`), and so how two monomials compare
(`compare`: the size of their quotient). The recursion ends since each M_i nests less deeply.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cmp_to_key
from typing import Any

from flint import fmpq

from farfield.theory.coefficients.arithmetic import (
    ONE,
    ZERO,
    Coefficient,
    is_zero_literally,
    minus,
    plus,
    times,
    total,
)
from farfield.theory.coefficients.signs import sign

Term = tuple["Monomial", Coefficient]


class Monomial:
    """`n^chain[0] L1^chain[1] ... * exp(sum c M for (M, c) in exponent)`."""

    __slots__ = ("_hash", "chain", "exponent")

    def __init__(self, chain: Iterable[Coefficient] = (), exponent: Iterable[Term] = ()) -> None:
        powers = list(chain)
        while powers and is_zero_literally(powers[-1]):
            powers.pop()
        self.chain: tuple[Coefficient, ...] = tuple(powers)
        self.exponent: tuple[Term, ...] = tuple(exponent)
        self._hash = hash((self.chain, self.exponent))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Monomial)
            and self._hash == other._hash
            and self.chain == other.chain
            and self.exponent == other.exponent
        )

    def __mul__(self, other: Monomial) -> Monomial:
        a, b = self.chain, other.chain
        if len(a) < len(b):
            a, b = b, a
        chain = tuple(plus(x, y) for x, y in zip(a, b, strict=False)) + a[len(b) :]
        if self.exponent and other.exponent:
            return Monomial(chain, collected([*self.exponent, *other.exponent]))
        return Monomial(chain, self.exponent or other.exponent)

    def __pow__(self, r: Coefficient) -> Monomial:
        if is_zero_literally(r):
            return UNIT
        return Monomial(
            [times(a, r) for a in self.chain], [(m, times(c, r)) for m, c in self.exponent]
        )

    def __repr__(self) -> str:
        names = ["n" if i == 0 else f"L{i}" for i in range(len(self.chain))]
        parts = [
            f"{name}^{a}" if a != 1 else name
            for name, a in zip(names, self.chain, strict=True)
            if not is_zero_literally(a)
        ]
        if self.exponent:
            parts.append("exp(" + " + ".join(f"{c}*{m}" for m, c in self.exponent) + ")")
        return "*".join(parts) or "1"


UNIT = Monomial()


def iterated_log(k: int) -> Monomial:
    """L_k: n for k = 0, log n for k = 1, log log n for k = 2, ..."""
    return Monomial((ZERO,) * k + (ONE,))


def size(m: Monomial) -> int:
    """1 if m -> oo, -1 if m -> 0, 0 if m is 1: the sign of the leading term of log m."""
    power, index = 0, 0
    for index, a in enumerate(m.chain):  # noqa: B007
        power = sign(a)
        if power:
            break
    for inner, c in m.exponent:
        s = sign(c)
        if s:
            return s if power == 0 or compare(inner, iterated_log(index + 1)) > 0 else power
    return power


def compare(a: Monomial, b: Monomial) -> int:
    """1 if a/b -> oo, -1 if a/b -> 0, 0 if they are equal."""
    if a is b:
        return 0
    if a.exponent or b.exponent:
        return size(a * b ** fmpq(-1))
    for i in range(max(len(a.chain), len(b.chain))):
        x = a.chain[i] if i < len(a.chain) else ZERO
        y = b.chain[i] if i < len(b.chain) else ZERO
        s = sign(plus(x, minus(y)))
        if s:
            return s
    return 0


def _descending(x: Term, y: Term) -> int:
    return -compare(x[0], y[0])


_DESCENDING: Any = cmp_to_key(_descending)


def collected(terms: Iterable[Term]) -> list[Term]:
    """Like terms added up, in descending order."""
    like: dict[Monomial, list[Coefficient]] = {}
    for m, c in terms:
        like.setdefault(m, []).append(c)
    sums = ((m, total(cs)) for m, cs in like.items())
    items = [t for t in sums if not is_zero_literally(t[1])]
    if len(items) < 2:
        return items
    items.sort(key=_DESCENDING)
    out = items[:1]
    for m, c in items[1:]:
        if out and not (_literal(m) and _literal(out[-1][0])) and compare(out[-1][0], m) == 0:
            m, d = out.pop()  # equal, though written differently
            c = plus(d, c)
            if is_zero_literally(c):
                continue
        out.append((m, c))
    return out


def _literal(m: Monomial) -> bool:
    """Monomials with rational powers of the chain are equal only if they look equal."""
    return not m.exponent and all(type(a) is fmpq for a in m.chain)


def log_scale(m: Monomial) -> Monomial | None:
    """The leading monomial of log m."""
    i = next((i for i, a in enumerate(m.chain) if sign(a)), None)
    lead = None if i is None else iterated_log(i + 1)
    for inner, c in m.exponent:
        if sign(c):
            return inner if lead is None or compare(inner, lead) > 0 else lead
    return lead


def larger(a: Monomial | None, b: Monomial | None) -> Monomial | None:
    """The larger of two monomials; None is 0."""
    if a is None or b is None:
        return b if a is None else a
    return a if compare(a, b) >= 0 else b


def log_index(m: Monomial) -> int:
    """j if m is L_j, j >= 1, else 0."""
    j = len(m.chain) - 1
    return j if not m.exponent and j >= 1 and compare(m, iterated_log(j)) == 0 else 0
