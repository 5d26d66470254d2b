"""[Q] Qin et al., AAAI 2024: the quantities of its claims that need algebra, proofs or balls."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import sympy
from flint import arb, fmpq

from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.search import at_precision
from farfield.numerics.summation.series import Series, series
from farfield.numerics.windows.window import window_error
from farfield.theory.encodings import encoding
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import precision, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.theorems import theorem
from farfield.theory.values import compile_ball, enclose
from farfield.validation.claims.claim import Quantities
from farfield.validation.claims.plain_attention import softmax
from farfield.validation.claims.series_verdicts import by_head

Rule = Callable[..., Any]
TYPE1, TYPE2 = "-2*log(1+n)", "-(log(1+n))^2"


# -- introduction and preliminary -----------------------------------------------------------------


def pairs_at_twice(pairs: Rule = lambda n: n * (n + 1) // 2) -> Quantities:
    """Query-key pairs of a row of 2n tokens over those of n."""
    ratios = [pairs(2 * n) / pairs(n) for n in (2**k for k in range(9, 20))]
    return {
        "pairs at 2n over pairs at n, n = 2^9 and 2^19": [ratios[0], ratios[-1]],
        "_ratios": ratios,
    }


def alibi_as_kerple(kerple: str = "kerple_power", r2: int = 1) -> Quantities:
    """ALiBi and KERPLE with the same slope."""
    alibi = encoding("alibi", heads=4).head(1)
    other = encoding(kerple, r1=sympy.Rational(1, 4), r2=r2).head(1)
    return {"ALiBi, head 1 of 4": alibi, "KERPLE": other, "r2": r2, "_gap": alibi - other}


def far_weights(bias: str = "-n/2", distances: Sequence[int] = (10, 1000, 10**6)) -> Quantities:
    """The weight of far keys, and what all of them together change."""
    weight = sympy.exp(read(bias))
    balls = {str(d): enclose(weight, 64, {n: sympy.Integer(d)}) for d in distances}
    return {
        "weight relative to the nearest key, by distance": {
            d: None if b is None else b.str(3, radius=False) for d, b in balls.items()
        },
        "_positive": [b is not None and bool(b > 0) for b in balls.values()],
        "largest change of the output without all beyond 64 keys": window_error(
            bias, 64, 1, 1
        ).value,
    }


def later_weights(apply: Rule = lambda s, m: s + m) -> Quantities:
    """The weights of later keys under the mask M."""
    later = ~np.tri(12, dtype=bool)
    scores = np.random.default_rng(0).normal(size=(12, 12))
    weights = softmax(apply(scores, np.where(later, -np.inf, 0.0)))[later]
    return {"largest later weight": float(weights.max()), "n": weights.size}


def diagonals(bias: str = TYPE1, mask: Rule = lambda i, j: j <= i) -> Quantities:
    """Whether neighbours on a diagonal of the merged matrix are equal."""
    i, j = np.indices((24, 24))
    values = encoding(bias).bias(np.arange(24))[0]
    merged = np.where(np.vectorize(mask)(i, j), values[abs(i - j)], -np.inf)
    same = merged[:-1, :-1] == merged[1:, 1:]
    return {
        "neighbours on a diagonal compared": same.size,
        "_same": bool(same.all()),
        "n": same.size,
    }


# -- windows --------------------------------------------------------------------------------------


def preceding(first: Rule = lambda i, j: i - j + 1, last: Rule = lambda i, j: i) -> Quantities:
    """The tokens that Eq. 7 sums over, for the 20th."""
    taken = {j: range(first(20, j), last(20, j) + 1) for j in range(1, 10)}
    return {
        "tokens before the 20th, by j": {j: sum(s < 20 for s in row) for j, row in taken.items()},
        "_tokens": {j: len(row) for j, row in taken.items()},
        "_j": {j: j for j in taken},
        "_j - 1": {j: j - 1 for j in taken},
    }


def encoded_again(
    windows: Sequence[int] = (16, 32, 64, 128, 256, 512), stride: int = 1
) -> Quantities:
    """How often sliding windows encode a token."""
    times = {w: Fraction(w, stride) for w in windows}
    return {"encodings of a token, by window": times, "non-overlapping": 1}


def caption_sizes(sizes: Sequence[int] = (16, 32, 64, 128, 258, 512)) -> Quantities:
    """Whether each window is twice the one before, as printed and with 256 for 258."""

    def doubles(row: Sequence[int]) -> list[bool]:
        return [b == 2 * a for a, b in itertools.pairwise(row)]

    mended = [256 if s == 258 else s for s in sizes]
    return {"sizes": sizes, "doubles": doubles(sizes), "_with 256": doubles(mended)}


def window_sizes(
    window: str = "Piecewise((0, n < w), (-oo, True))",
    bias: str = "Piecewise((0, n <= w), (-oo, True))",
) -> Quantities:
    """The keys that the window of Eq. 7 and the bias of Eq. 8 keep."""

    def keys(formula: str, w: int) -> int:
        return int((encoding(formula, w=w).bias(np.arange(80))[0] == 0).sum())

    sizes = {w: (keys(window, w), keys(bias, w)) for w in (1, 2, 7, 64)}
    return {
        "keys at w = 1, 2, 7, 64 (Eq. 7, Eq. 8)": list(sizes.values()),
        "_more": [b - a for a, b in sizes.values()],
        "_more at w - 1": [keys(bias, w - 1) - a for w, (a, _) in sizes.items() if w > 1],
    }


def uniform_tails(local: str = "-n/2", none: str = "0", row: Rule = lambda j: 64) -> Quantities:
    """The worst delta over values of norm 1, without content logits, in rows of some lengths."""

    def worst(bias: str, size: int, kept: int) -> float:
        b = np.exp(encoding(bias).bias(np.arange(size))[0])
        return float(2 * (1 - b[:kept].sum() / b.sum()))

    def tails(bias: str, rows: Rule) -> list[float]:
        return [worst(bias, max(rows(j), j), j) for j in (64, 256)]

    return {
        "worst delta at j = 64 in a row of 64 keys": [worst(b, 64, 64) for b in (local, none)],
        "in a row of 4096 keys": [worst(b, 4096, 64) for b in (local, none)],
        "_local": tails(local, row),
        "_none": tails(none, row),
        "_local, any row": tails(local, lambda j: 64 * j),
        "_none, any row": tails(none, lambda j: 64 * j),
    }


# -- the conditions -------------------------------------------------------------------------------


def far_key(row: int) -> list[Fraction]:
    """Weights by distance: 1 on the query's own key and 1 on the first token of the text."""
    return [Fraction(int(t in (0, row - 1))) for t in range(row)]


def squares(row: int) -> list[Fraction]:
    """Weights 1/(t + 1)^2 by distance."""
    return [Fraction(1, (t + 1) ** 2) for t in range(row)]


def outside(weights: Sequence[Any], kept: int) -> Fraction:
    """The share of the weights beyond the nearest `kept`."""
    return Fraction(sum(weights[kept:]), sum(weights))


def rows_of_a_limit(weights: Rule = far_key, toeplitz: Rule = squares) -> Quantities:
    """Whether the totals C_ii settle, and whether delta(i, j) falls."""
    totals = [sum(weights(i), Fraction(0)) for i in (64, 128, 256, 512)]
    last, series = weights(512), toeplitz(512)
    return {
        "C_ii at i = 64, 128, 256, 512": totals,
        "delta(512, j)/l at j = 2, 8, 64, 256, 511": [
            2 * outside(last, j) for j in (2, 8, 64, 256, 511)
        ],
        "at j = 256 for b_t = 1/(t+1)^2": float(2 * outside(series, 256)),
        "_last step": totals[-1] - totals[-2],
        "C_ii - C_ij at i = 512, by j": {j: sum(last[j:], Fraction(0)) for j in (2, 64, 256, 511)},
        "_rest of the series": sum(series[256:], Fraction(0)),
    }


def outside_less_inside(
    right: Rule = lambda share, inside, outside: share * (inside - outside),
) -> Quantities:
    """Eq. 11 in the masses and means inside and outside of the window."""
    i, o = sympy.symbols("I O", positive=True)
    u, w = sympy.symbols("u w", real=True)
    less, printed = (i * u + o * w) / (i + o) - u, right(o / (i + o), u, w)
    return {
        "full minus window": sympy.factor(less),
        "as printed": printed,
        "_gap": less - printed,
        "_gap to the negative": less + printed,
    }


def largest_delta(factor: int = 2, trials: int = 200) -> Quantities:
    """The largest delta over its bound in random rows, every second with opposite values."""
    random = np.random.default_rng(0)
    found = []
    for trial in range(trials):
        row = int(random.integers(2, 40))
        kept = int(random.integers(1, row))
        c = np.exp(random.normal(size=row))
        v = random.normal(size=(row, 4))
        if trial % 2:
            v = np.where(np.arange(row) < kept, 1.0, -1.0)[:, None] * v[0]
        v /= np.linalg.norm(v, axis=1, keepdims=True)
        full, part = c @ v / c.sum(), c[:kept] @ v[:kept] / c[:kept].sum()
        bound = factor * (1 - c[:kept].sum() / c.sum())
        found.append(float(np.linalg.norm(full - part) / bound))
    return {"largest delta over bound": max(found), "n": trials}


def logit_bounds(power: int = 2, sharp: Rule = lambda l, d: l**2 / math.sqrt(d)) -> Quantities:
    """The bound l^2 against the largest logit l^2/sqrt(d), at q = k."""
    cases = [(k / 4, d) for k in range(1, 33) for d in (1, 4, 64, 1024)]
    return {
        "least slack": min(l**power - l**2 / math.sqrt(d) for l, d in cases),
        "distance of l^2/sqrt(d) from the largest": max(
            abs(sharp(l, d) - l**2 / math.sqrt(d)) for l, d in cases
        ),
        "n": len(cases),
    }


def alternating_totals(toeplitz: Rule = squares, logit: Rule = lambda i: (-1) ** i) -> Quantities:
    """Totals of rows whose content logit alternates; it cancels in the shares of a row."""
    sums = {i: math.exp(logit(i)) * float(sum(toeplitz(i))) for i in (255, 256, 511, 512)}
    bound = math.e * float(sum(toeplitz(512)))
    return {
        "C_ii by i": sums,
        "e B_ii": bound,
        "_last step": abs(sums[512] - sums[511]),
        "_bound": bound * (1 + 1e-12),
        "_outside": outside(toeplitz(512), 256),
    }


def bounded_logits(
    bias: str = TYPE1, logit_bound: float = 1.0, proved: str = "theorem-0.4"
) -> Quantities:
    """The worst delta(i, j) for content logits within a bound."""
    sums = np.exp(encoding(bias).bias(np.arange(40_000))[0]).cumsum()
    worst = {}
    for j in (10, 100, 1000):
        beyond = sums[[4_000, 40_000 - 1]] - sums[j - 1]
        inside = math.exp(-2 * logit_bound) * sums[j - 1]
        worst[j] = float((2 * beyond / (beyond + inside)).max())
    return {
        "proof": theorem(proved).hence,
        "exp-series": by_head(bias),
        "worst delta(i, j)/l, logits within [-1, 1], by j": worst,
    }


def row_sums(term: Rule = lambda i, t: Fraction(1, (i - t + 1) ** 2)) -> Quantities:
    """The totals of rows, and the partial sums of one series."""
    rows = [sum(term(i, t) for t in range(1, i + 1)) for i in range(1, 40)]
    partial = [sum(term(40, 40 - t) for t in range(i)) for i in range(1, 40)]
    return {"B_33": float(rows[32]), "_rows": rows, "_partial sums": partial}


def sandwich_sums(bias: str = "sandwich") -> Quantities:
    """The verdict, and the mean weight of the first keys."""
    sums = np.exp(encoding(bias, heads=1).bias(np.arange(100_000))).cumsum(1)
    return {
        "verdict": by_head(bias, heads=1),
        "B_j/j at j = 10^4, 10^5": [sums[-1, 9_999] / 1e4, sums[-1, -1] / 1e5],
        "the prover has checked that theorem": bool(theorem("trigonometric").checked),
    }


# -- receptive fields -----------------------------------------------------------------------------


def tokens(bias: str, eps: str, **values: Any) -> float:
    """The certified receptive field; no number where it is not known."""
    found = theoretical_receptive_field(bias, eps, **values).tokens
    return math.nan if found is None else found


def field_of(terms: Sequence[Any], eps: Fraction) -> int:
    """The TRF of a finite series [Q, Eq. 22]."""
    return next(j for j in range(len(terms) + 1) if sum(terms[j:]) < eps * sum(terms))


def gap_of_outputs(
    weights: Rule = lambda t: Fraction(1, 2**t), values: Sequence[int] = (1, -1)
) -> Quantities:
    """What the keys beyond n_emp(eps) change, with one value inside and one outside."""
    row, eps = [weights(t) for t in range(40)], Fraction(1, 10)
    kept = next(j for j in range(len(row)) if outside(row, j) < eps)
    change = outside(row, kept) * abs(values[1] - values[0])
    return {"eps": eps, "n_emp(eps)": kept, "change of the output over l": float(change)}


def fields_of_rows(bias: str = "-n/8", spread: float = 2.0) -> Quantities:
    """The attention ERF of rows with random content logits."""
    values, random = encoding(bias).bias(np.arange(64))[0], np.random.default_rng(0)
    rows = (np.exp(values + spread * random.uniform(-1, 1, 64)) for _ in range(20))
    fields = [int(np.searchsorted(c.cumsum(), 0.9 * c.sum(), "right")) + 1 for c in rows]
    return {
        "ERF(0.1), least and largest": [min(fields), max(fields)],
        "_spread": max(fields) - min(fields),
        "n": len(fields),
    }


def content_sum(
    logits: Sequence[float] = (0.5, 0.5, 0.5),
    terms: Sequence[float] = (1.0, 0.25, 0.0625),
    logit_bound: float = 0.5,
) -> Quantities:
    """C_ij with content logits, and B_ij without."""
    b = sum(terms)
    return {
        "C_ij": sum(t * math.exp(a) for a, t in zip(logits, terms, strict=True)),
        "B_ij": b,
        "content logits": logits,
        "e^logit_bound B_ij": b * math.exp(logit_bound),
        "_bound": b * math.exp(logit_bound) * (1 + 1e-12),
    }


def two_forms(below: Rule = lambda tail, bound: tail < bound) -> Quantities:
    """How often the partial sum and the tail of Eq. 22 give another TRF."""
    random, different = np.random.default_rng(0), []
    for _ in range(15):
        b = [*map(int, random.integers(0, 9, 30)), 1]
        for eps in (Fraction(k, 10) for k in range(1, 10)):
            partial = next(j for j in range(32) if sum(b[:j]) > sum(b) * (1 - eps))
            tail = next(j for j in range(32) if below(sum(b[j:]), sum(b) * eps))
            different.append(partial != tail)
    return {"cases that differ": sum(different), "n": len(different)}


def lighter_series(
    a: Sequence[int] = (4, 2, 1, 1),
    b: Sequence[int] = (3, 1),
    light: str = "-n/4",
    heavy: str = TYPE1,
) -> Quantities:
    """The TRF of two finite series, and of two biases."""
    return {
        "a": a,
        "b": b,
        "TRF_a, TRF_b at eps = 10^-6": [field_of(x, Fraction(1, 10**6)) for x in (a, b)],
        "TRF(10^-6) of -n/4 and -2*log(1+n)": [tokens(x, "1e-6") for x in (light, heavy)],
    }


GAPPED = (1, Fraction(1, 2), 0, *(Fraction(1, 2**t) for t in range(3, 24)))
"""2^-t without t = 2."""


def fields_by_eps(terms: Sequence[Any] = GAPPED) -> Quantities:
    """Which t_0 are a TRF, and of how many eps."""
    shares = [outside(terms, j) for j in range(len(terms))]
    reached = {field_of(terms, x) for x in shares if 0 < x < 1}
    same = []
    for t in range(2, 12):
        eps = (shares[t] + shares[t - 1]) / 2
        if eps > 0 and field_of(terms, eps) == field_of(terms, (eps + shares[t]) / 2) == t:
            same.append(t)
    return {
        "t_0 that are no TRF": [t for t in range(2, 12) if t not in reached],
        "t_0 that a smaller eps has too": same,
        "_beyond": [x > 0 and field_of(terms, x) > t for t, x in enumerate(shares[:12]) if t],
        "n": 10,
    }


def fields_at_shares(field: Rule = field_of) -> Quantities:
    """The TRF at the shares T_j/A of a geometric series, and just above."""
    a, js = [Fraction(1, 2**t) for t in range(60)], list(range(1, 11))
    return {
        "j": js,
        "TRF(T_j/A)": [field(a, outside(a, j)) for j in js],
        "_just above": [field(a, outside(a, j) * Fraction(11, 10)) for j in js],
    }


def smaller_series(
    a: Sequence[int] = (1, 1, 1, 1), b: Sequence[int] = (9, 1, 1, 1), eps: str = "1/3"
) -> Quantities:
    """The TRF and the normalised tails of two series, one smaller in every term."""
    fields = [field_of(x, Fraction(eps)) for x in (a, b)]
    return {
        "a (every term at most b's)": a,
        "b": b,
        "eps": eps,
        "TRF_a, TRF_b": fields,
        "_TRF_b, TRF_a": fields[::-1],
        "_tails of b, a": [[outside(b, j), outside(a, j)] for j in range(len(a))],
    }


# -- the two new encodings ------------------------------------------------------------------------


def first_terms(
    type1: Rule = lambda n: n**-2, type2: Rule = lambda n: sympy.exp(-(sympy.log(n) ** 2))
) -> Quantities:
    """b_0, b_1 and b_2 as printed, and with n + 1 in place of n."""
    at, rules = sympy.Symbol("n", nonnegative=True), {"type1": type1, "type2": type2}

    def proper(values: Sequence[Any]) -> list[bool]:
        return [bool(v.is_finite and v.is_positive) for v in values]

    printed = {k: [sympy.limit(f(at), at, j, "+") for j in (0, 1, 2)] for k, f in rules.items()}
    shifted = {k: [f(sympy.Integer(j)) for j in (1, 2, 3)] for k, f in rules.items()}
    return {
        "b_0, b_1, b_2 as printed": printed,
        "_proper": {k: proper(v) for k, v in printed.items()},
        "_proper with n + 1": {k: proper(v) for k, v in shifted.items()},
    }


def total(bias: str = TYPE1) -> Quantities:
    """The sum of the series from n = 0, enclosed."""
    found = to_arb(at_precision(series(read(bias)).total, 128))
    with precision(128):
        return {
            "B": found.str(20),
            "_may be 1": bool(found.overlaps(arb(1))),
            "_may be pi^2/6": bool(found.overlaps(arb.pi() ** 2 / 6)),
        }


def fields_of_type1(
    bias: str = TYPE1, printed: Rule = lambda eps: math.floor(1 / eps) + 1
) -> Quantities:
    """The certified TRF by eps, and that by Eq. 29."""
    by_eps = ["1/10", "1/100", "1/1000", "1/10000"]
    fields = [tokens(bias, e) for e in by_eps]
    return {
        "eps": by_eps,
        "TRF": fields,
        "by Eq. 29": [printed(Fraction(e)) for e in by_eps],
        "_off 1/(B eps)": [
            f - 6 / math.pi**2 / float(Fraction(e)) for f, e in zip(fields, by_eps, strict=True)
        ],
    }


def order_of_type1(bias: str = TYPE1) -> Quantities:
    """eps times the certified TRF."""
    return {"eps TRF(eps)": [tokens(bias, f"1e-{k}") / 10.0**k for k in (1, 2, 4, 8, 12)]}


@lru_cache(maxsize=32)
def normalised_tails(bias: str, count: int = 200) -> list[arb]:
    """T_j/B for j < count, in balls."""
    s: Series = series(read(bias))
    with precision(128):
        whole = to_arb(s.total())
        return [to_arb(s.tail(j)) / whole for j in range(count)]


def crossover(light: str, heavy: str, count: int = 80) -> float:
    """min{v_j : u_j > v_j} over j < count of the normalised tails; infinite if there is none."""
    pairs = zip(*(normalised_tails(b, count) for b in (light, heavy)), strict=True)
    return min((float(y.mid()) for x, y in pairs if x > y), default=math.inf)


def light_tails(light: str = TYPE2, heavy: str = TYPE1) -> Quantities:
    """Normalised tails from 8 on, and the difference of the biases at powers of ten."""
    u, v = (normalised_tails(b) for b in (light, heavy))
    below, above = (encoding(b).bias(10 ** np.arange(1, 16))[0] for b in (light, heavy))
    gap = (below - above).tolist()
    return {
        "p_2 - p_1 at n = 10, 10^5, 10^15": [gap[k] for k in (0, 4, 14)],
        "_gap": gap,
        "_lighter": [bool(x < y) for x, y in zip(u[8:], v[8:], strict=True)],
    }


def nearest_share(
    biases: Sequence[str] = ("-log(1+n)", "-log(n+3) - log(log(n+3))"),
) -> Quantities:
    """The share of the nearest 512 keys in a row of 9216."""
    rows = {b: np.exp(encoding(b).bias(np.arange(9216))[0]) for b in biases}
    return {
        "share of the nearest 512": {k: float(b[:512].sum() / b.sum()) for k, b in rows.items()}
    }


def lower_bound(term: str = "1/n", primitive: str = "log(n)", first: int = 1) -> Quantities:
    """sum_{n=first}^k term(n) less antiderivative(k+1) - antiderivative(first), in balls."""
    each, whole, last = read(term), read(primitive), 120
    slope = sympy.simplify(sympy.diff(whole, n) - each)
    partial, gaps = arb(0), []
    with precision(96):
        value, area = compile_ball(each), compile_ball(whole)
        below = to_arb(area({n: fmpq(first)}))
        for k in range(first, last):
            partial += to_arb(value({n: fmpq(k)}))
            gaps.append(partial - (to_arb(area({n: fmpq(k + 1)})) - below))
        falls = to_arb(compile_ball(sympy.diff(each, n))({n: fmpq(5)})) < 0
        least = min(gaps, key=lambda x: float(x.mid()))
        return {
            "derivative of the integral minus the term": slope,
            "least gap": float(least.mid()),
            "_proved": [bool(slope == 0), bool(falls), bool(least > 0)],
            "n": len(gaps),
        }


# -- receptive fields against measurements --------------------------------------------------------


def fields_of_types(light: str = TYPE2, heavy: str = TYPE1) -> Quantities:
    """The certified TRF of Type 2 and Type 1 by eps, and where their order changes."""
    fields = {
        e: [tokens(b, e) for b in (light, heavy)] for e in ("1/4", "1/5", "1/10", "1/100", "1/1000")
    }
    point = crossover(light, heavy)
    return {
        "TRF of Type 2, of Type 1 by eps": fields,
        "crossover": None if math.isinf(point) else point,
        "_off 0.2400911227": point - 0.2400911227,
        "_below": {e: pair for e, pair in fields.items() if Fraction(e) <= point},
        "n": len(fields),
    }


def nearest_keys(light: str = TYPE2, heavy: str = TYPE1, since: int = 3) -> Quantities:
    """Where Type 1 holds more on the nearest keys."""
    u, v = (normalised_tails(b) for b in (light, heavy))
    lighter = {j: bool(u[j] < v[j]) for j in range(1, 200)}
    return {
        "j with the other order": [j for j, holds in lighter.items() if not holds],
        "share of the own key (Type 2, Type 1)": [float(1 - x[1].mid()) for x in (u, v)],
        "_lighter": {j: holds for j, holds in lighter.items() if j >= since},
        "n": len(lighter),
    }


def learned(
    names: Sequence[str] = ("alibi", "kerple_log", "sandwich", "type1", "type2"),
) -> Quantities:
    """What is learned by the encodings, and how the TRF of KERPLE depends on it."""
    free = {name: [p.name for p in encoding(name).free] for name in names}
    fields = [tokens("kerple_log", "1/10", r1=r1, r2=1) for r1 in ("6/5", 2)]
    return {
        "learned parameters": {k: v for k, v in free.items() if v},
        "TRF(0.1) of KERPLE at r1 = 6/5 and 2": fields,
        "_parameters": {k: len(v) for k, v in free.items()},
        "_difference of the TRF": fields[0] - fields[1],
    }
