"""The family that a table resembles: ALiBi, KERPLE, a window, T5, fitted to agree to rounding.

A mask is split off first (a window, a stride, both). The rest is fitted by each shape in turn, with
the fewest digits of its numbers that agree with every value. Nothing that agrees less is a fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import product
from math import gcd

import numpy as np
import sympy
from sympy import Basic, Expr, Rational, S

from farfield.theory.encodings.catalogue_formulas import t5_bucket_starts
from farfield.theory.functions.nodes import Lookup, n

MASKED = -1e4
"""A number from here down stands for minus infinity in masks of models."""
EPSILON = {"float32": 2.0**-23, "bfloat16": 2.0**-8, "float16": 2.0**-10}


@dataclass(frozen=True)
class Fit:
    """A formula for values by distance, what it is called, and the largest difference from them."""

    formula: Expr
    family: str
    difference: float


Values = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class _Shape:
    """A shape that is 0 at distance 0: its values, its formula, where a search begins."""

    name: str
    values: Callable[..., np.ndarray]
    formula: Callable[..., Expr]
    starts: tuple[tuple[float, ...], ...]


def _log(b: object) -> Expr:
    return sympy.log(1 + b * n)


_SHAPES = (
    _Shape("linear, as ALiBi", lambda d, a: a * d, lambda a: a * n, ((-1.0,),)),
    _Shape(
        "logarithmic, as KERPLE-log",
        lambda d, a, b: a * np.log1p(np.abs(b) * d),
        lambda a, b: a * _log(abs(b)),
        ((-1.0, 1.0), (-1.0, 0.05), (-1.0, 10.0)),
    ),
    _Shape(
        "a power, as KERPLE-power",
        lambda d, a, b: a * d ** np.clip(b, 0.01, 8),
        lambda a, b: a * n**b,
        ((-1.0, 1.0), (-1.0, 2.0), (-1.0, 0.5)),
    ),
    _Shape(
        "a Cauchy or Student kernel",
        lambda d, a, b: a * np.log1p(np.abs(b) * d**2),
        lambda a, b: a * sympy.log(1 + abs(b) * n**2),
        ((-1.0, 1.0), (-1.0, 0.01), (-1.0, 0.0001)),
    ),
    _Shape(
        "a squared logarithm",
        lambda d, a, b: a * np.log1p(np.abs(b) * d) ** 2,
        lambda a, b: a * _log(abs(b)) ** 2,
        ((-1.0, 1.0), (-1.0, 0.1)),
    ),
    _Shape(
        "linear and logarithmic",
        lambda d, a, b: a * d + b * np.log1p(d),
        lambda a, b: a * n + b * _log(1),
        ((-0.1, -1.0),),
    ),
)


def _waves(size: int) -> _Shape:
    """Sandwich's sum of cosines of a width, less its value at distance 0."""
    i = sympy.Symbol("i", integer=True, nonnegative=True)
    wave = sympy.cos(n / sympy.Integer(10000) ** (2 * i / sympy.Integer(size)))
    angles = 10000.0 ** (-2 * np.arange(size // 2) / size)

    return _Shape(
        f"a sum of cosines, as Sandwich of width {size}",
        lambda d, a: a * (np.cos(np.outer(d, angles)).sum(1) - size // 2),
        lambda a: a * (sympy.Sum(wave, (i, 0, size // 2 - 1)) - size // 2),
        ((1.0,),),
    )


def visible(values: np.ndarray) -> np.ndarray:
    """Where a bias is no mask; one large negative number at several places is a mask too."""
    low = values <= MASKED
    hidden = values[low & np.isfinite(values)]
    several = hidden.size > 1 and hidden.min() == hidden.max()
    return ~low if several else np.isfinite(values)


@np.errstate(all="ignore")
def fitted(distances: np.ndarray, values: np.ndarray, kind: str, scale: float = 0.0) -> Fit | None:
    """The formula of values at distances, None where none agrees.

    Args:
        distances: from 0, ascending, shape (count,).
        values: finite or -inf, shape (count,).
        kind: the type in which they were computed, as `float32`.
        scale: of numbers that cancelled in them, as where rows differ by a constant.

    >>> at = np.arange(64.0)
    >>> fitted(at, np.float32(-1.3) * np.log1p(np.float32(0.5) * at), "float32").formula
    -13*log(n/2 + 1)/10
    >>> fitted(at, np.where(at % 4 == 0, 0, -np.inf), "float64").formula
    Piecewise((0, Eq(Mod(n, 4), 0)), (-oo, True))
    """
    seen = visible(values)
    if not seen.any():
        return None
    mask = _mask(distances, seen)
    if mask is None:
        return None
    condition, named = mask
    epsilon = EPSILON.get(kind, 2.0**-52)
    near = np.abs(values[seen])
    tolerance = epsilon * np.maximum(near, near.max() / 4) + epsilon * scale + 1e-300
    fit = _smooth(distances[seen], values[seen], tolerance, kind)
    if fit is None or condition == S.true:
        return fit
    hidden = values[~seen]
    if hidden.min() != hidden.max():
        return None
    rest = (shortest_decimal(hidden[0], kind), S.true)
    formula = sympy.Piecewise((fit.formula, condition), rest, evaluate=False)
    family = named if fit.formula == 0 else f"{fit.family}, in {named}"
    return Fit(formula, family, fit.difference)


def _mask(distances: np.ndarray, seen: np.ndarray) -> tuple[Basic, str] | None:
    """The condition under which a key is seen, in words too; None where no shape has it."""
    if seen.all():
        return S.true, ""
    place = int(np.argmin(seen))
    width = int(distances[place])
    if place and distances[place - 1] != width - 1:
        return None  # the edge lies between distances that were not asked
    inside = n < width
    if np.array_equal(seen, distances < width):
        return inside, f"a window of {width} keys"
    stride = reduce(gcd, (int(d) for d in distances[place:][seen[place:]]), 0)
    last = int(distances[seen].max())
    every = sympy.Eq(sympy.Mod(n, stride), 0)
    for held, condition, words in (
        (distances % stride == 0, every, f"every {stride}th key"),
        (
            (distances % stride == 0) & (distances <= last),
            every & (n <= last),
            f"every {stride}th of {last} keys",
        ),
        (
            (distances % stride == 0) | (distances < width),
            every | inside,
            f"every {stride}th key and the nearest {width}",
        ),
    ):
        if np.array_equal(seen, held):
            return condition, words
    return None


def _smooth(
    distances: np.ndarray, values: np.ndarray, tolerance: np.ndarray, kind: str
) -> Fit | None:
    """Values without a mask: constant, a shape, or buckets."""
    if np.abs(values - values[0]).max() <= tolerance.max():
        base = shortest_decimal(values[0], kind)
        return Fit(base, "no bias" if base == 0 else "constant", float(np.ptp(values)))
    if (buckets := _buckets(distances, values, kind)) is not None:
        return buckets
    if distances[0] != 0:
        return None
    steps = np.diff(values)
    plain = (steps >= -tolerance[1:]).all() or (steps <= tolerance[1:]).all()
    shapes = _SHAPES if plain else tuple(map(_waves, (16, 32, 64, 128, 256, 512)))
    shapes = shapes if len(distances) > 4 else shapes[:1]
    fits = (_of_shape(shape, distances, values, tolerance, kind) for shape in shapes)
    return next(filter(None, fits), None)


def _of_shape(
    shape: _Shape, distances: np.ndarray, values: np.ndarray, tolerance: np.ndarray, kind: str
) -> Fit | None:
    """A shape with the shortest numbers by which it agrees with every value."""
    base = float(values[0])
    few = np.unique(np.geomspace(1, len(distances), 48).astype(int) - 1)
    for start in shape.starts:
        numbers = _least_squares(shape, distances[few], values[few] - base, start)
        off = np.abs(shape.values(distances[few], *numbers) + base - values[few]).max()
        if not off < 1e-4 * np.abs(values).max() + tolerance.max():
            continue
        for loose, exact in product((1, 4), _shorter(numbers)):
            gap = np.abs(shape.values(distances, *map(float, exact)) + base - values)
            if (gap <= loose * tolerance).all():
                formula = shape.formula(*exact) + shortest_decimal(base, kind)
                return Fit(formula, shape.name, float(gap.max()))
    return None


def _least_squares(
    shape: _Shape, distances: np.ndarray, values: np.ndarray, start: tuple[float, ...]
) -> np.ndarray:
    """The numbers of a shape for which the squares of the relative differences are least."""
    from scipy.optimize import least_squares  # heavy, and of use to what was run alone

    if len(start) == 1:  # a factor of one curve
        curve = shape.values(distances, 1.0)
        return np.array([curve @ values / (curve @ curve)])
    weight = 1 / np.maximum(np.abs(values), np.abs(values).max() * 1e-3)

    def residual(theta: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            off = (shape.values(distances, *theta) - values) * weight
            return np.nan_to_num(off, posinf=1e9, neginf=-1e9)

    sizes = np.maximum(np.abs(shape.values(distances, *start)[1:]), 1e-9)
    factor = start[0] * np.median(np.abs(values[1:]) / sizes)
    best = least_squares(residual, (factor, *start[1:]), method="lm", xtol=1e-15, ftol=1e-15)
    return np.asarray(best.x)


def _shorter(numbers: np.ndarray) -> Iterator[tuple[Rational, ...]]:
    """Numbers near those, simple fractions first, then with more and more digits."""
    if np.isfinite(numbers).all() and (np.abs(numbers) < 1e12).all():
        for most in (64, 256):
            near = [Fraction(float(x)).limit_denominator(most) for x in numbers]
            yield tuple(Rational(x.numerator, x.denominator) for x in near)
        for digits in range(1, 18):
            yield tuple(Rational(f"{x:.{digits}g}") for x in numbers)


def shortest_decimal(value: float, kind: str) -> Expr:
    """A value as its type prints it, with the fewest digits that tell it from its neighbours.

    >>> shortest_decimal(0.1, "float64"), shortest_decimal(float(np.float32(0.1)), "float32")
    (1/10, 1/10)
    """
    if np.isinf(value):
        return S.NegativeInfinity
    return Rational(str(np.float32(value)) if kind == "float32" else repr(float(value)))


def _buckets(distances: np.ndarray, values: np.ndarray, kind: str) -> Fit | None:
    """Values that are constant on the buckets of T5 alone, a table with a constant end."""
    jumps = distances[1:][np.diff(values) != 0].astype(int).tolist()
    for buckets in (8, 16, 32, 64, 128):
        for far in (2**k for k in range(3, 11) if 2**k > buckets // 2):
            starts = sorted({*t5_bucket_starts(buckets, far)})  # some buckets may be empty
            if jumps == starts[1:] and np.array_equal(distances[: jumps[-1]], np.arange(jumps[-1])):
                table = sympy.Tuple(*(shortest_decimal(v, kind) for v in values[: jumps[-1]]))
                formula = Lookup(n, table, shortest_decimal(values[-1], kind))
                return Fit(formula, f"T5 with {buckets} buckets up to {far}", 0.0)
    return None
