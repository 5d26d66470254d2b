"""Formulas of ALiBi, Sandwich, T5 and of the surrogates of RoPE and xPos, with values a head."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import sympy
from sympy import Expr, Integer, Rational, S, Symbol

from farfield.theory.answers.answer import InputError
from farfield.theory.answers.number import exact, natural
from farfield.theory.encodings.encoding import Parameter
from farfield.theory.formula.parameters import parameter
from farfield.theory.functions.nodes import Lookup, n

Values = Mapping[str, Expr]


def alibi_slope(h: int, heads: int, dialect: str = "press") -> Expr:
    """The slope of head `h` (from 1), exact. `press` is the original code's rule, `geometric`
    [C, Eq. 3]; they differ only where `heads` is no power of two.

    >>> alibi_slope(1, 8), alibi_slope(9, 12), alibi_slope(9, 12, "geometric")
    (1/2, sqrt(2)/2, 1/64)
    """
    if dialect == "geometric" or heads & (heads - 1) == 0:
        return Integer(2) ** Rational(-8 * h, heads)
    closest = 1 << (heads.bit_length() - 1)
    if h <= closest:
        return Integer(2) ** Rational(-8 * h, closest)
    return Integer(2) ** Rational(-8 * (2 * (h - closest) - 1), 2 * closest)


def alibi_values(
    h: int, heads: int, dialect: str, delta: object = 0, slope_exponent: object = 0
) -> Values:
    """The slope of a head in each dialect."""
    if dialect == "equal":
        return {"m": Integer(2) ** -exact(slope_exponent, "slope_exponent")}
    if dialect == "shift":
        return {"m": Integer(2) ** -(Rational(8 * h, heads) + exact(delta, "delta"))}
    return {"m": alibi_slope(h, heads, dialect)}


def slope(h: int, heads: int, dialect: str) -> Values:
    """The slope `k` inside the argument, of Qin et al.'s public code."""
    return {"k": alibi_slope(h, heads)} if dialect == "code" else {}


def sandwich(dialect: str, d_bar: object, d_model: object, heads: int) -> Expr:
    """A finite sum of cosines less its value at distance 0 [C, Eq. 6, Appendix E]."""
    size = (
        2 * (natural(d_model, "d_model") // heads)
        if dialect == "code"
        else (natural(d_bar, "d_bar", 2))
    )
    if size % 2 or not 2 <= size <= 4096:
        raise InputError(f"d_bar {size} must be even, from 2 to 4096")
    i = Symbol("i", integer=True, nonnegative=True)
    first = 0 if dialect == "appendix" else 1
    constant = Rational(size, 2) + (Rational(1, 10**4) if dialect == "code" else 0)
    waves = sympy.Sum(
        sympy.cos(n / Integer(10000) ** (2 * i / Integer(size))),
        (i, first, first + size // 2 - 1),
    )
    return (waves - constant) / parameter("c")


def scale_values(h: int, heads: int, **_: object) -> Values:
    """The divisor of a head, `8 h / H`."""
    return {"c": Rational(8 * h, heads)}


def t5_bucket_starts(buckets: int, max_distance: int) -> list[int]:
    """The least distance of each bucket of the causal T5 rule, in exact integer arithmetic.

    >>> t5_bucket_starts(32, 128)[16:]
    [16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]
    """
    near = buckets // 2
    far = buckets - near
    starts = list(range(near))
    distance = near
    for k in range(far):  # floor(log(t/near)/log(max/near) * far) >= k
        while distance**far * near**k < max_distance**k * near**far:
            distance += 1
        starts.append(distance)
    return starts


def t5(dialect: str, buckets: object, max_distance: object, d_head: object, heads: int) -> Expr:
    """A learned value for each bucket of distances."""
    count, far = natural(buckets, "buckets", 2), natural(max_distance, "max_distance", 2)
    if count % 2 or count > 512 or far <= count // 2 or far > 10**6:
        raise InputError(
            f"buckets {count} and max_distance {far}: the buckets must be an even number up to "
            "512, the distance greater than half of it and at most 10^6"
        )
    starts = t5_bucket_starts(count, far)
    factor = sympy.sqrt(natural(d_head, "d_head")) if dialect == "scaled" else S.One
    symbols = [factor * parameter(f"b{k}", "real") for k in range(count)]
    table = [symbols[sum(s <= t for s in starts) - 1] for t in range(starts[-1])]
    return Lookup(n, sympy.Tuple(*table), symbols[-1])


def t5_parameters(buckets: object, **_: object) -> tuple[Parameter, ...]:
    """The values of the buckets, which begin at 0."""
    count = natural(buckets, "buckets", 2)
    return tuple(Parameter(f"b{k}", "real", True, (0.0, 0.0)) for k in range(min(count, 512)))


def t5_tables(count: int) -> Iterator[Mapping[str, int]]:
    """The options with this many buckets, by their greatest distance, powers of two first."""
    if count >= 2 and count % 2 == 0:
        for far in sorted(range(count // 2 + 1, 4097), key=lambda d: (d & (d - 1) != 0, d)):
            yield {"buckets": count, "max_distance": far}


def surrogate(
    dialect: str, d: object, gamma: object, base: object, theta: object, decay: bool, heads: int
) -> Expr:
    """The score of RoPE or xPos for constant content [S, Eq. 10, 12; Algorithm 1]."""
    size = natural(d, "d", 2)
    if size % 2 or size > 4096:
        raise InputError(f"d {size} must be even, from 2 to 4096")
    half = size // 2
    softness, period = exact(gamma, "gamma"), exact(base, "base")
    if softness < 0 or period <= 0:
        raise InputError("gamma must be >= 0 and base > 0")
    total = S.Zero
    for i in range(half + (1 if dialect == "printed" else 0)):
        wave = sympy.cos(n * exact(theta, "theta") ** Rational(-2 * i, size))
        if decay:
            zeta = (Rational(i, half) + softness) / (1 + softness)
            at_once = sympy.Piecewise((S.One, n < 1), (S.Zero, S.true))  # 0**n
            wave = wave * (zeta ** (n / period) if zeta else at_once)
        total = total + wave
    return parameter("a", "real") * total
