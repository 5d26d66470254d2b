"""[C] Chi et al., ACL 2023: the quantities of its claims that need algebra, a proof or a count."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import sympy

from farfield.theory.convergence import check_convergence
from farfield.theory.encodings import alibi_slope, encoding
from farfield.validation.claims.claim import Quantities
from farfield.validation.claims.plain_attention import reached, seen_by, softmax, turned
from farfield.validation.harness.mechanism import Visibility

Rule = Callable[..., Any]
LAYERS = 12


def sandwich(n: np.ndarray) -> np.ndarray:
    """Sandwich at h = 8 [Eq. 6 as Appendix E sums it]."""
    return encoding("sandwich", heads=1).bias(n)[0]


# -- windows and slopes ---------------------------------------------------------------------------


def reaches(
    reach: Rule = lambda w, layers: w * layers,
    exact: Rule = lambda w, layers: layers * (w - 1) + 1,
) -> Quantities:
    """Tokens reached in three stacks of windows, and by two formulas."""
    cases = ((2, 3), (5, 4), (8, 12))
    found = [reached(seen_by(Visibility(window=w), w * layers + 3), layers) for w, layers in cases]
    printed = [reach(*case) for case in cases]
    return {
        "tokens reached, as printed (w, R)": {
            str(case): pair for case, *pair in zip(cases, found, printed, strict=True)
        },
        "_reached": found,
        "_printed": printed,
        "_exact": [exact(*case) for case in cases],
    }


def slopes(heads: int = 12, rule: Rule = alibi_slope) -> Quantities:
    """ALiBi's slopes by its rule and by Eq. 3, and for how many heads they are equal."""

    def pairs(heads: int) -> list[tuple[Any, Any]]:
        both = (rule, lambda h, heads: alibi_slope(h, heads, "geometric"))
        return [tuple(slope(h, heads) for slope in both) for h in range(1, heads + 1)]

    return {
        "original rule, Eq. 3 (first four heads)": [
            (float(a), float(b)) for a, b in pairs(heads)[:4]
        ],
        "equal for heads =": [h for h in range(1, 33) if all(a == b for a, b in pairs(h))],
        "_gaps": [sympy.simplify(a - b) for a, b in pairs(heads)],
    }


def keys_of_window(keeps: Rule = lambda m, n, w: n + w > m >= n) -> Quantities:
    """The keys of a window, by its width."""
    found = {w: sum(keeps(64, n, w) for n in range(1, 65)) for w in (1, 2, 7, 40)}
    return {"keys by w": found, "_w": {w: w for w in found}}


def slope_values(slope: Rule = lambda h: Fraction(1, 2**h)) -> Quantities:
    """The slopes at h = 0, 2, 4, 6, 8."""
    return {"slopes": [slope(h) for h in (0, 2, 4, 6, 8)]}


def widest_window(reach: Rule = lambda w, layers: layers * (w - 1) + 1) -> Quantities:
    """The widest window whose reach is within the training length."""
    widths = range(1, 600)
    return {
        "widest covered window": max(w for w in widths if reach(w, LAYERS) <= 512),
        "512/12": 512 / LAYERS,
        "_reach of 43": reach(43, LAYERS),
        "n": len(widths),
    }


def erf_as_printed(pick: Rule = min, tokens: Rule = lambda length, m: length + 1 - m) -> Quantities:
    """The ERF of shares 2^-k, nearest first; c_m sums from position m (1 = the first token)."""
    shares = np.array([2.0**-k for k in range(1, 12)])
    nearest = shares / shares.sum()
    c = nearest.cumsum()[::-1]
    above = [m for m in range(1, len(c) + 1) if c[m - 1] > 0.99]
    return {
        "c_m": [round(float(x), 4) for x in c],
        "as printed, m": pick(above),
        "shortest suffix": int(np.searchsorted(nearest.cumsum(), 0.99, "right")) + 1,
        "_tokens as printed": tokens(len(c), pick(above)),
        "_tokens by the largest m": tokens(len(c), max(above)),
    }


# -- Section 5.3 ----------------------------------------------------------------------------------


def indices(planes: Rule = lambda d: range(1, d // 2 + 1), d: int = 8) -> Quantities:
    """The indices of the coordinates, and whether they count from 0 or from 1."""

    def taken(planes: Iterable[int]) -> list[int]:
        return sorted(k for i in planes for k in (2 * i, 2 * i + 1))

    accepted = ([*range(d)], [*range(1, d + 1)])
    return {
        "indices": taken(planes(d)),
        "_accepted": taken(planes(d)) in accepted,
        "_accepted from 0": taken(range(d // 2)) in accepted,
    }


def expansion(
    terms: Rule = lambda a, e, f, p, q: e @ a @ f + e @ a @ q + p @ a @ f + p @ a @ q,
) -> Quantities:
    """Both sides of Eq. 4 for random integers."""
    random = np.random.default_rng(0)
    wq, wk = random.integers(-9, 9, (2, 6, 6))
    e, f, p, q = random.integers(-9, 9, (4, 6))
    sides = [int((wq @ (e + p)) @ (wk @ (f + q))), int(terms(wq.T @ wk, e, f, p, q))]
    return {"left, right": sides, "_gap": sides[0] - sides[1]}


def dropped_terms(
    weights: np.ndarray | None = None, content: float = 1.0, kept: Rule = lambda p: p @ p.T
) -> Quantities:
    """The size of what the approximation of Eq. 4 drops over what it keeps."""
    d, random = 64, np.random.default_rng(0)
    angle = np.arange(60)[:, None] / 10_000.0 ** (2 * np.arange(d // 2) / d)
    p = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
    e = content * random.normal(size=(60, d))
    wq, wk = random.normal(size=(2, d, d)) / math.sqrt(d)

    def ratio(a: np.ndarray, content: np.ndarray) -> float:
        full = (content + p) @ a @ (content + p).T - content @ a @ content.T
        return float(np.abs(full - kept(p)).mean() / np.abs(kept(p)).mean())

    return {
        "mean size of what is dropped over what is kept": ratio(
            wq.T @ wk if weights is None else weights, e
        ),
        "_without contents": ratio(np.eye(d), 0 * e),
        "n": 60 * 60,
    }


def rotated(place: str = "embedding", right: str = "query") -> Quantities:
    """How the score of two tokens changes with a shift, by what Rotary turns."""
    random = np.random.default_rng(0)
    wq, wk = random.normal(size=(2, 16, 16)) / 4
    e, f = random.normal(size=(2, 16))

    def at(x: np.ndarray, place: int) -> np.ndarray:
        row: np.ndarray = turned(x[None], np.array([place]))[0]
        return row

    def change(what: str) -> float:
        def score(m: int, n: int) -> float:
            if what == "embedding":
                return float((wq @ at(e, m)) @ (wk @ at(f, n)))
            return float(at(wq @ e, m) @ at(wk @ f, n))

        return max(abs(score(9 + s, 4 + s) - score(9, 4)) for s in (1, 37, 200))

    return {
        "largest change of the score": change(place),
        "of queries and keys": change(right),
        "n": 3,
    }


# -- Sandwich -------------------------------------------------------------------------------------


def largest_product(
    waves: Rule = lambda n: np.cos(n[:, None] / 10_000.0 ** (np.arange(1, 65) / 64)),
) -> Quantities:
    """The sum of 64 waves at 0, and its largest value beyond."""
    values = waves(np.arange(0, 20_000.0)).sum(1)
    return {
        "at 0": values[0],
        "largest beyond, n < 20000": values[1:].max(),
        "_at 0 less 64": values[0] - 64,
        "n": values.size,
    }


def added_bias(where: str = "weights", right: str = "logits") -> Quantities:
    """The least weight and the sum of the weights, by what the bias is added to."""
    logits, bias = np.random.default_rng(0).normal(size=64), sandwich(np.arange(64))

    def weights(where: str) -> np.ndarray:
        return softmax(logits + bias) if where == "logits" else softmax(logits) + bias

    found, other = ([float(w.min()), float(w.sum())] for w in map(weights, (where, right)))
    return {
        "least weight, sum": found,
        "_sum less 1": found[1] - 1,
        "_right": other,
        "_right sum less 1": other[1] - 1,
        "n": 64,
    }


def octaves(bias: Rule = sandwich) -> Quantities:
    """The mean of the bias over octaves, and where it rises."""
    values = bias(np.arange(8192))
    steps = np.diff(values)
    return {
        "means over octaves": [float(values[2**k : 2 ** (k + 1)].mean()) for k in range(13)],
        "but the first distance above the one before": (
            int((steps > 0).argmax()) + 1 if (steps > 0).any() else None
        ),
        "share of steps upwards": float((steps > 0).mean()),
    }


@lru_cache(maxsize=16)
def fitted(name: str, dialect: str | None, points: int) -> tuple[float, float, float]:
    """Least squares of a bias by slope log(1 + n) + constant on n < points: slope, constant, and
    the share of the variance that is left."""
    n = np.arange(points)
    bias = encoding(name, heads=1, dialect=dialect).bias(n)[0]
    columns = np.stack([np.log1p(n), np.ones(points)], axis=1)
    slope, constant = np.linalg.lstsq(columns, bias, rcond=None)[0]
    rest = bias - columns @ np.array([slope, constant])
    return float(slope), float(constant), float(rest.var() / bias.var())


def log_fit(dialect: str = "appendix", printed: Sequence[float] = (-0.825, -0.8)) -> Quantities:
    """Slope and constant of the fit to 8192 points."""
    fit = fitted("sandwich", dialect, 8192)[:2]
    return {
        "fit": fit,
        "with the index range of Eq. 6": fitted("sandwich", "equation", 8192)[:2],
        "printed": printed,
        "_off": [a - b for a, b in zip(fit, printed, strict=True)],
        "n": 8192,
    }


def log_fits(points: int = 50, printed: Sequence[float] = (-0.825, -0.8)) -> Quantities:
    """The fits to some points and to all, each with how far it is from the printed one."""

    def off(fit: Sequence[float], printed: Sequence[float] = printed) -> float:
        return max(abs(a - b) for a, b in zip(fit, printed, strict=True))

    dialects = ("appendix", "equation")
    some, whole = (
        {d: fitted("sandwich", d, count)[:2] for d in dialects} for count in (points, 8192)
    )
    return {
        "slope, constant on these points": some,
        "on all 8192 points": whole,
        "printed": printed,
        "_off": {d: off(fit) for d, fit in some.items()},
        "_off on all": {d: off(fit) for d, fit in whole.items()},
        "_50 points off -1.02, -0.02": off(fitted("sandwich", "appendix", 50)[:2], (-1.02, -0.02)),
    }


def left_variance(
    bias: str = "sandwich", dialect: str | None = "appendix", points: int = 8192
) -> Quantities:
    """The share of the variance that the fit leaves."""
    rest = fitted(bias, dialect, points)[2]
    return {"share of the variance left": rest, "_percent explained": 100 * (1 - rest), "n": points}


def curvature(
    curve: Rule = lambda n: -sympy.Rational(33, 40) * sympy.log(1 + n) - sympy.Rational(4, 5),
) -> Quantities:
    """The second derivative of the printed curve, and where it and its slope tend."""
    n = sympy.Symbol("n", positive=True)
    bend = sympy.simplify(sympy.diff(curve(n), n, 2))
    return {
        "second derivative": bend,
        "but its limit": sympy.limit(curve(n), n, sympy.oo),
        "_bends upwards": bool(bend.is_positive),
        "_slope": sympy.limit(sympy.diff(curve(n), n), n, sympy.oo),
    }


# -- Section 6.3 and after ------------------------------------------------------------------------


def less_kerple(bias: Rule = sandwich, smoothed: str = "sandwich_smoothed") -> Quantities:
    """How far Sandwich and its fitted curve are from KERPLE and a constant."""
    n = np.arange(0, 40_000)
    kerple = -0.825 * np.log1p(n)
    rows = (bias(n), encoding(smoothed, heads=1).bias(n)[0])
    gap, fit = (float(np.ptp(row - kerple)) for row in rows)
    return {
        "Sandwich minus KERPLE, largest minus least": gap,
        "the same for the fitted curve": fit,
        "series at these parameters converges": check_convergence("-r1*log(1+r2*n)").at(
            r1="0.825", r2=1
        ),
        "n": n.size,
    }


def buckets(last: int = 31) -> Quantities:
    """T5's buckets, as many as are used near, far and at all."""

    def bucket(n: int) -> int:
        far = 16 + int(math.log(max(n, 16) / 16) / math.log(8) * 16)
        return n if n < 16 else min(last, far)

    row = [bucket(n) for n in range(4096)]
    return {
        "buckets": len(set(row)),
        "first distance of the last": row.index(max(row)),
        "_below 16, shared, from 128": [
            len(set(row[:16])),
            len({*row[:16]} & {*row[16:]}),
            len(set(row[128:])),
        ],
        "n": len(row),
    }


# -- appendices -----------------------------------------------------------------------------------


def cached_scores(length: int, window: int) -> int:
    """Scores of generating `length` tokens with a cache of `window` keys."""
    return sum(min(i, window) for i in range(1, length + 1))


def encoded_again(length: int, window: int) -> int:
    """The same where the window is encoded again for every token after the first window."""
    return (1 + length - window) * (window * (window + 1) // 2)


def growth(cost: Rule | None = None, cached: bool = True) -> Quantities:
    """Exponents of the length and of the window in the cost of generating, from doubling both; with
    a cache, or where the window is encoded again."""
    cost = cost or (cached_scores if cached else encoded_again)
    length, window = 1 << 14, 64
    once = cost(length, window)
    twice = (cost(2 * length, window), cost(length, 2 * window))
    return {"exponents of L and w": [round(math.log2(c / once), 2) for c in twice], "n": 3}


def shifted_bias(shift: Any = -8.0) -> Quantities:
    """How the weights change with a constant on the bias."""
    logits, bias = np.random.default_rng(0).normal(size=(2, 5, 30))
    gap = np.abs(softmax(logits + bias) - softmax(logits + bias + shift))
    return {"largest change of a weight": float(gap.max()), "n": gap.size}


def index_ranges(
    code: str = "appendix",
    change: Rule = lambda n: (np.cos(n) - np.cos(n / 10_000.0)) / 8,
) -> Quantities:
    """The bias with the index range of the code less that of Eq. 6."""
    at = np.arange(0, 2000)
    first, printed = (
        encoding("sandwich", heads=1, dialect=k).bias(at)[0] for k in (code, "equation")
    )
    gap = first - printed
    return {
        "largest minus least difference": float(np.ptp(gap)),
        "counterexample": f"n = 3: {first[3]:.6f} against {printed[3]:.6f}",
        "_off the difference": float(np.abs(gap - change(at)).max()),
        "n": at.size,
    }
