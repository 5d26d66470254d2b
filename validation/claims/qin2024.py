"""[Q] Qin et al., Exploring Transformer Extrapolation, AAAI 2024: its claims and their checks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import sympy
from flint import arb, fmpq

from farfield.numerics.checking.checker import check_proof
from farfield.numerics.checking.stops import ProofError
from farfield.numerics.identities import never_exceeds, vanishes
from farfield.numerics.receptive_field import at_precision, theoretical_receptive_field
from farfield.numerics.summation.series import Series, series
from farfield.numerics.windows.window import window_error
from farfield.theory.convergence import Convergence, check_convergence
from farfield.theory.convergence import Verdict as Series_
from farfield.theory.encodings import encoding
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import precision, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.theorems import theorem
from farfield.theory.values import compile_ball, enclose
from farfield.validation.claims.claim import Data, Decisions, Finding, Missing
from farfield.validation.claims.results import all_models, models, of_models
from farfield.validation.claims.words import (
    drift,
    increase,
)
from farfield.validation.published import bias_of, columns, curve, select, table
from farfield.validation.reference.table import LAST, WHOLE, Model

decides = Decisions()

TYPE1, TYPE2 = "-2*log(1+n)", "-(log(1+n))^2"
EXAMPLE1, EXAMPLE2 = "-log(1+n)", "-log(n+3) - log(log(n+3))"
FIVE = ("alibi", "kerple_log", "sandwich", "type1", "type2")


@lru_cache(maxsize=64)
def _kept(bias: Any, options: tuple[tuple[str, Any], ...]) -> Convergence:
    found = check_convergence(bias, **dict(options))
    heads = found.heads or (found,)
    for head in (*heads[:1], *heads[1:][-1:]):
        try:
            if head.verdict in (Series_.CONVERGES, Series_.DIVERGES, Series_.CONDITIONAL):
                check_proof(head)
        except ProofError as why:
            raise Missing(f"the proof of the verdict fails its independent check: {why}") from None
    return found


def decided(bias: Any, **options: Any) -> Convergence:
    """The verdict on a bias, the proofs of its first and last head checked independently."""
    return _kept(bias, tuple(sorted(options.items())))


def verdicts(bias: Any, **options: Any) -> list[str]:
    """The verdict on each head of a bias."""
    found = decided(bias, **options)
    return [str(h.verdict) for h in found.heads or (found,)]


def _tokens(bias: str, eps: str, **values: Any) -> float:
    """The certified receptive field; no number where it is not known."""
    found = theoretical_receptive_field(bias, eps, **values).tokens
    return math.nan if found is None else found


def _all_converge(found: list[str]) -> bool:
    return all(v == "converges" for v in found)


def _biased(found: tuple[Model, ...], *names: str) -> list[Model]:
    """The models without a mask, those named if any are."""
    plain = [m for m in found if " + " not in m.name]
    return [m for m in plain if not names or m.name in names]


def _rises(found: list[Model], protocol: str = LAST) -> dict[str, float]:
    return {m.name: round(m.increase(protocol), 4) for m in found}


# -- abstract and introduction --------------------------------------------------------------------


@decides(
    "sufficiency.printed", lambda: {"cells": table("chi2023_table1") + table("chi2023_table4")}
)
def _sufficiency_printed(data: Data) -> Finding:
    """[C] prints shifted and equal slopes of ALiBi and windows, all of which converge."""
    rises = {
        f"{dataset} {variant}": increase(curve(cells), 512)
        for (dataset, _, variant), cells in columns(data["cells"]).items()
        if _all_converge(verdicts(bias_of(cells[0])))
    }
    failed = {k: v for k, v in rises.items() if v >= data["tolerance"]}
    top = max(rises, key=lambda k: rises[k])
    return Finding(
        not failed,
        {
            "convergent models": len(rises),
            "of them beyond the tolerance": len(failed),
            "counterexample": f"{top}: perplexity rises by {rises[top]:.0%}",
        },
        n=len(rises),
    )


@decides("quadratic", {"pairs": lambda n: n * (n + 1) // 2})
def _quadratic(data: Data) -> Finding:
    lengths = [2**k for k in range(9, 20)]
    ratios = [data["pairs"](2 * n) / data["pairs"](n) for n in lengths]
    return Finding(
        abs(ratios[-1] - 4) < 1e-4 and ratios == sorted(ratios),
        {"pairs at 2n over pairs at n, n = 2^9 and 2^19": [ratios[0], ratios[-1]]},
        n=len(lengths),
    )


@decides("alibi-is-kerple", {"kerple": "kerple_power", "r2": 1})
def _alibi_is_kerple(data: Data) -> Finding:
    slope = sympy.Rational(1, 4)
    alibi = encoding("alibi", heads=4).head(1)
    kerple = encoding(data["kerple"], r1=slope, r2=data["r2"]).head(1)
    return Finding(
        vanishes(alibi - kerple), {"ALiBi, head 1 of 4": alibi, "KERPLE": kerple, "r2": data["r2"]}
    )


@decides("no-effect", {"bias": "-n/2", "distances": (10, 1000, 10**6), "width": 64})
def _no_effect(data: Data) -> Finding:
    weight = sympy.exp(read(data["bias"]))
    balls = {d: enclose(weight, 64, {n: sympy.Integer(d)}) for d in data["distances"]}
    error = window_error(data["bias"], data["width"], 1, 1).value
    return Finding(
        not all(b is not None and b > 0 for b in balls.values()),
        {
            "weight relative to the nearest key, by distance": {
                str(d): None if b is None else b.str(3, radius=False) for d, b in balls.items()
            },
            f"largest change of the output without all beyond {data['width']} keys": error,
        },
        "Together they change the output by less than 10^-12, beyond 64 tokens at slope 1/2.",
        error is not None and error < 1e-12,
        n=len(balls),
    )


# -- preliminary ----------------------------------------------------------------------------------


@decides("mask", {"apply": lambda s, m: s + m})
def _mask(data: Data) -> Finding:
    scores = np.random.default_rng(0).normal(size=(12, 12))
    mask = np.where(np.tri(12, dtype=bool), 0.0, -np.inf)
    with np.errstate(invalid="ignore"):
        shifted = np.exp(data["apply"](scores, mask))
    weights = shifted / shifted.sum(1, keepdims=True)
    later = weights[~np.tri(12, dtype=bool)]
    return Finding(
        bool((later == 0).all()), {"largest later weight": float(later.max())}, n=later.size
    )


@decides("toeplitz", {"bias": TYPE1, "mask": lambda i, j: j <= i})
def _toeplitz(data: Data) -> Finding:
    size = 24
    bias = encoding(data["bias"]).bias(np.arange(size))[0]
    merged = [
        [bias[abs(i - j)] if data["mask"](i, j) else -math.inf for j in range(size)]
        for i in range(size)
    ]
    constant = all(
        merged[i][j] == merged[i + 1][j + 1] for i in range(size - 1) for j in range(size - 1)
    )
    return Finding(
        constant, {"neighbours on a diagonal compared": (size - 1) ** 2}, n=(size - 1) ** 2
    )


# -- windows --------------------------------------------------------------------------------------


@decides("eq7.preceding", {"first": lambda i, j: i - j + 1, "last": lambda i, j: i})
def _preceding(data: Data) -> Finding:
    taken = {j: range(data["first"](20, j), data["last"](20, j) + 1) for j in range(1, 10)}
    before = {j: sum(s < 20 for s in row) for j, row in taken.items()}
    return Finding(
        all(before[j] == j for j in before),
        {"tokens before the 20th, by j": before},
        "j tokens with its own: j - 1 before it.",
        all(before[j] == j - 1 and len(row) == j for j, row in taken.items()),
        n=len(before),
    )


@decides(
    "window-extrapolates",
    {"bias": "Piecewise((0, n < 128), (-oo, True))", "verdict": Series_.CONVERGES},
)
@decides("example1.diverges", {"bias": EXAMPLE1, "verdict": Series_.DIVERGES})
@decides("example2.diverges", {"bias": EXAMPLE2, "verdict": Series_.DIVERGES})
def _with_proof(data: Data) -> Finding:
    found = decided(data["bias"])
    return Finding(found.verdict is data["verdict"], {"proof": found.proof.text()})


@decides("table1.reencoded", {"windows": (16, 32, 64, 128, 256, 512), "stride": 1})
def _reencoded(data: Data) -> Finding:
    times = {w: Fraction(w, data["stride"]) for w in data["windows"]}
    return Finding(
        all(t > 1 for t in times.values()),
        {"encodings of a token, by window": times, "non-overlapping": 1},
        n=len(times),
    )


@decides("table1.slower", lambda: {"cells": table("qin2024_table1")})
def _table_1(data: Data) -> Finding:
    times = {c.encoding: c.value for c in data["cells"]}
    ratio = times["Sliding Window"] / times["Nonoverlapping Window"]
    return Finding(ratio > 44, {"ratio": ratio}, n=1)


@decides("table1.sizes", {"sizes": (16, 32, 64, 128, 258, 512)})
def _table_1_sizes(data: Data) -> Finding:
    sizes = data["sizes"]
    doubles = [b == 2 * a for a, b in itertools.pairwise(sizes)]
    wrong = [a for a, b in zip(sizes, (16, 32, 64, 128, 256, 512), strict=True) if a != b]
    return Finding(
        all(doubles),
        {"sizes": sizes, "doubles": doubles},
        "With 256 in place of 258 it does.",
        wrong == [258],
        n=len(doubles),
    )


def _windows_data() -> Data:
    return {"windows": models(folder="further/windows"), "models": models()}


@decides("figure1.sliding", _windows_data)
def _figure_1_sliding(data: Data) -> Finding:
    """The protocols score other tokens, so each is taken relative to its own widest window, where
    sliding is at least as good: what is found is less than the whole advantage."""
    gains = {}
    for m in data["windows"]:
        sliding, blocks = m.mean(LAST), m.mean(WHOLE)
        widest = max(sliding)
        gains[m.name] = {
            w: blocks[w] / blocks[widest] * sliding[widest] / sliding[w] - 1
            for w in sliding
            if w < widest
        }
    means = {k: float(np.mean(list(v.values()))) for k, v in gains.items()}
    return of_models(
        list(data["windows"]),
        {"non-overlapping over sliding - 1, by window": gains, "mean": means},
        all(v > data["tolerance"] for v in means.values())
        and all(x > 0 for v in gains.values() for x in v.values()),
    )


@decides("figure1.alibi", _windows_data)
def _figure_1_alibi(data: Data) -> Finding:
    (short,) = (m for m in data["windows"] if m.name == "alibi")
    (long,) = _biased(data["models"], "alibi")
    sliding, whole = short.mean(), long.mean()
    widest = max(sliding)
    change = {w: sliding[w] / sliding[widest] - 1 for w in sliding}
    beyond = whole[max(whole)] / whole[long.trained] - 1
    return of_models(
        [short, long],
        {
            f"window over {widest} tokens - 1": change,
            f"{max(whole)} tokens over {long.trained} - 1": beyond,
        },
        max(abs(change[widest // 2]), abs(beyond)) < data["tolerance"],
    )


@decides(
    "eq7-eq8",
    {"window": "Piecewise((0, n < w), (-oo, True))", "bias": "Piecewise((0, n <= w), (-oo, True))"},
)
def _window_sizes(data: Data) -> Finding:
    def keys(formula: str, w: int) -> int:
        return int((encoding(formula, w=w).bias(np.arange(80))[0] == 0).sum())

    sizes = {w: (keys(data["window"], w), keys(data["bias"], w)) for w in (1, 2, 7, 64)}
    narrower = [keys(data["bias"], w - 1) for w in sizes if w > 1]
    return Finding(
        all(a == b for a, b in sizes.values()),
        {"keys at w = 1, 2, 7, 64 (Eq. 7, Eq. 8)": list(sizes.values())},
        "Eq. 8 with i - j < w (it keeps w + 1 keys as printed)",
        narrower == [sizes[w][0] for w in sizes if w > 1],
        n=len(sizes),
    )


def _worst(bias: str, row: int, kept: int) -> float:
    """The worst delta(row, kept) over values of norm 1, without content logits."""
    b = np.exp(encoding(bias).bias(np.arange(row))[0])
    return float(2 * (1 - b[:kept].sum() / b.sum()))


@decides("eq9.uniform", {"local": "-n/2", "none": "0", "row": lambda j: 64})
def _eq_9(data: Data) -> Finding:
    def satisfies(bias: str, row: Callable[[int], int]) -> bool:
        return all(_worst(bias, max(row(j), j), j) < 0.01 for j in (64, 256))

    def growing(j: int) -> int:
        return 64 * j

    local, none = (satisfies(data[k], data["row"]) for k in ("local", "none"))
    uniform = {k: satisfies(data[k], growing) for k in ("local", "none")}
    return Finding(
        local and not none,
        {
            "worst delta at j = 64 in a row of 64 keys": [
                _worst(data[k], 64, 64) for k in ("local", "none")
            ],
            "in a row of 4096 keys": [_worst(data[k], 4096, 64) for k in ("local", "none")],
        },
        "It must hold for all i with one j_0: then it fails without a bias.",
        uniform["local"] and not uniform["none"],
        n=2,
    )


# -- the conditions -------------------------------------------------------------------------------


def _far_key(row: int) -> list[Fraction]:
    """Weights by distance: 1 on the query's own key and 1 on the first token of the text."""
    return [Fraction(int(t in (0, row - 1))) for t in range(row)]


def _squares(row: int) -> list[Fraction]:
    return [Fraction(1, (t + 1) ** 2) for t in range(row)]


_ROWS = {"weights": _far_key, "toeplitz": _squares}
SIZES = (64, 128, 256, 512)


def _outside(weights: list[Fraction], kept: int) -> Fraction:
    return Fraction(sum(weights[kept:]), sum(weights))


def _rows_of_a_limit(data: Data, corrected: str) -> Finding:
    """Do the totals C_ii settle while delta(i, j) does not fall?"""
    totals = [sum(data["weights"](i), Fraction(0)) for i in SIZES]
    worst = [2 * _outside(data["weights"](512), j) for j in (2, 8, 64, 256, 511)]
    series = 2 * _outside(data["toeplitz"](512), 256)
    settles = abs(totals[-1] - totals[-2]) < Fraction(1, 100)
    return Finding(
        not settles or worst[-2] < Fraction(1, 100),
        {
            "C_ii at i = 64, 128, 256, 512": totals,
            "delta(512, j)/l at j = 2, 8, 64, 256, 511": worst,
            "at j = 256 for b_t = 1/(t+1)^2": float(series),
        },
        corrected,
        series < Fraction(1, 100),
        n=len(SIZES),
    )


@decides("lemma0.2", _ROWS)
def _lemma_02(data: Data) -> Finding:
    return _rows_of_a_limit(
        data,
        "It holds for c_ij = a_ij b_{i-j} with bounded content logits. In general each row is a "
        "sum of its own, not a partial sum of one series, and its mass may sit at the far end.",
    )


@decides("eq11", {"right": lambda share, inside, outside: share * (inside - outside)})
def _eq_11(data: Data) -> Finding:
    i, o = sympy.symbols("I O", positive=True)
    u, w = sympy.symbols("u w", real=True)
    full, share = (i * u + o * w) / (i + o), o / (i + o)
    return Finding(
        vanishes(full - u - data["right"](share, u, w)),
        {"full minus window": sympy.factor(full - u), "as printed": data["right"](share, u, w)},
        "With outside minus inside; the norm in Eq. 13 is the same.",
        vanishes(full - u + data["right"](share, u, w)),
    )


@decides("eq13", {"factor": 2, "trials": 200})
def _eq_13(data: Data) -> Finding:
    random = np.random.default_rng(0)
    largest = 0.0
    for trial in range(data["trials"]):
        row = int(random.integers(2, 40))
        kept = int(random.integers(1, row))
        c = np.exp(random.normal(size=row))
        v = random.normal(size=(row, 4))
        if trial % 2:  # the worst case: opposite values inside and outside
            v = np.where(np.arange(row) < kept, 1.0, -1.0)[:, None] * v[0]
        v /= np.linalg.norm(v, axis=1, keepdims=True)
        full, part = c @ v / c.sum(), c[:kept] @ v[:kept] / c[:kept].sum()
        bound = data["factor"] * (1 - c[:kept].sum() / c.sum())
        largest = max(largest, float(np.linalg.norm(full - part) / bound))
    return Finding(
        largest <= 1 + 1e-9,
        {
            "largest delta over bound": largest,
            "sharp": "attained by opposite values inside and outside",
        },
        n=data["trials"],
    )


@decides("eq14", _ROWS)
def _eq_14(data: Data) -> Finding:
    rest = {j: sum(data["weights"](512)[j:], Fraction(0)) for j in (2, 64, 256, 511)}
    series = sum(data["toeplitz"](512)[256:], Fraction(0))
    return Finding(
        rest[256] < Fraction(1, 100),
        {"C_ii - C_ij at i = 512, by j": rest},
        "It holds where the rows are the partial sums of one convergent series.",
        series < Fraction(1, 100),
        n=len(rest),
    )


@decides("eq15", {"last": lambda eps, c: 4 * eps / c})
def _eq_15(data: Data) -> Finding:
    eps, x = sympy.symbols("epsilon x", positive=True)
    c = 2 * eps + x
    middle = 2 * eps / (c - c / 2)
    return Finding(
        never_exceeds(2 * eps / (c - eps), middle) and vanishes(middle - data["last"](eps, c)),
        {
            "with C = 2 eps + x, the difference of the first two": sympy.factor(
                middle - 2 * eps / (c - eps)
            )
        },
    )


@decides("concentration", lambda: {"models": models(), "names": ("example1", "example2")})
def _concentration(data: Data) -> Finding:
    found = _biased(data["models"], *data["names"])
    falling = {
        m.name: bool((np.diff(encoding(m.name).bias(np.arange(1024))[0]) < 0).all()) for m in found
    }
    lost = [m.name for m in found if falling[m.name] and m.increase() >= data["tolerance"]]
    return of_models(
        found,
        {"largest increase": _rises(found), "weights fall": falling},
        bool(lost) if found else None,
        reason="the results hold none of them",
    )


@decides("thm0.3", _ROWS)
def _theorem_03(data: Data) -> Finding:
    return _rows_of_a_limit(
        data, "It holds where b_it depends on i - t alone, which is Theorem 0.4."
    )


@decides(
    "eq17.equality",
    {
        "eq2": lambda q, k, d: q * k / sympy.sqrt(d),
        "eq7": lambda q, k, d: q * k / sympy.sqrt(d),
        "eq17": lambda q, k, d: q * k,
    },
)
def _eq_17_equality(data: Data) -> Finding:
    q, k, d = sympy.symbols("q k d", positive=True)
    attention, used, printed = (data[key](q, k, d) for key in ("eq2", "eq7", "eq17"))
    return Finding(
        vanishes(used - printed),
        {
            "Eq. 7": used,
            "Eq. 17": printed,
            "counterexample": "d = 4, q . k = 1: exp(1/2) against exp(1)",
        },
        "a_ij = exp(q_i . k_j / sqrt(d)), which is Eq. 7 and the softmax of Eq. 2",
        vanishes(used - attention),
    )


@decides(
    "eq17.bound", {"power": 2, "sizes": (1, 4, 64, 1024), "sharp": lambda l, d: l**2 / math.sqrt(d)}
)
def _eq_17_bound(data: Data) -> Finding:
    cases = [(Fraction(k, 4), d) for k in range(1, 33) for d in data["sizes"]]
    largest = {(l, d): float(l) ** 2 / math.sqrt(d) for l, d in cases}
    slack = min(float(l) ** data["power"] - x for (l, d), x in largest.items())
    sharp = max(abs(data["sharp"](float(l), d) - x) for (l, d), x in largest.items())
    return Finding(
        slack >= 0,
        {"least slack": slack, "distance of l^2/sqrt(d) from the largest": sharp},
        "a_ij <= exp(l^2/sqrt(d)), attained at q = k",
        sharp < 1e-12,
        n=len(cases),
    )


@decides("eq18", {"toeplitz": _squares, "logit": lambda i: (-1) ** i})
def _eq_18(data: Data) -> Finding:
    sums = {
        i: math.exp(data["logit"](i)) * float(sum(data["toeplitz"](i)))
        for i in (255, 256, 511, 512)
    }
    series = float(sum(data["toeplitz"](512)))
    bounded = all(c <= math.e * series * (1 + 1e-12) for c in sums.values())
    outside = _outside(data["toeplitz"](512), 256)  # the logit of a row cancels in its shares
    return Finding(
        abs(sums[512] - sums[511]) < 0.01,
        {"C_ii by i": sums, "e B_ii": math.e * series},
        "C_ii is bounded, which is enough: the outside share falls for all rows at once.",
        bounded and outside < Fraction(1, 100),
        n=len(sums),
    )


@decides("thm0.4", {"bias": TYPE1, "logit_bound": 1.0, "theorem": "theorem-0.4"})
def _theorem_04(data: Data) -> Finding:
    sums = np.exp(encoding(data["bias"]).bias(np.arange(40_000))[0]).cumsum()
    worst = {}
    for j in (10, 100, 1000):
        outside = sums[[4_000, 40_000 - 1]] - sums[j - 1]
        inside = math.exp(-2 * data["logit_bound"]) * sums[j - 1]
        worst[j] = float((2 * outside / (outside + inside)).max())
    found = verdicts(data["bias"])
    return Finding(
        found == ["converges"] and worst[1000] < worst[100] < worst[10] and worst[1000] < 0.05,
        {
            "proof": theorem(data["theorem"]).hence,
            "exp-series": found,
            "worst delta(i, j)/l, logits within [-1, 1], by j": worst,
        },
        n=len(worst),
    )


@decides("eq20", {"term": lambda i, t: Fraction(1, (i - t + 1) ** 2)})
def _eq_20(data: Data) -> Finding:
    term = data["term"]
    rows = [sum(term(i, t) for t in range(1, i + 1)) for i in range(1, 40)]
    partial = [sum(term(40, 40 - t) for t in range(i)) for i in range(1, 40)]
    return Finding(rows == partial, {"B_33": float(rows[32])}, n=len(rows))


@decides("principle", all_models)
def _principle(data: Data) -> Finding:
    found = [m for m in _biased(data["models"]) if m.verdict in ("converges", "diverges")]
    kept = {m.name: m.increase() < data["tolerance"] for m in found}
    wrong = [m.name for m in found if kept[m.name] != (m.verdict == "converges")]
    most = max(sum(kept.values()), len(kept) - sum(kept.values()))
    return of_models(
        found,
        {
            "right": len(found) - len(wrong),
            "wrong": wrong,
            "right for who says the same of all": most,
        },
        None if not found else not wrong,
        reason="the results hold no model with a verdict",
    )


@decides("satisfies.alibi", {"bias": "alibi", "heads": (1, 8, 12), "general": "-m*n"})
def _alibi(data: Data) -> Finding:
    found = {h: verdicts(data["bias"], heads=h) for h in data["heads"]}
    general = decided(data["general"])
    return Finding(
        all(map(_all_converge, found.values())) and general.converges is True,
        {
            "heads": {h: f"{v.count('converges')} converge" for h, v in found.items()},
            "any slope m > 0": general.verdict,
        },
        n=sum(data["heads"]),
    )


@decides("satisfies.kerple-log", {"bias": "-r1*log(1 + r2*n)", "instance": {"r1": 1, "r2": 1}})
def _kerple_log(data: Data) -> Finding:
    found = decided(data["bias"])
    instance = verdicts(data["bias"], **data["instance"])
    return Finding(
        found.verdict is Series_.CONVERGES,
        {
            "condition": found.condition,
            "counterexample": f"{data['instance']}: {instance[0]}",
            "reference start": "r1 uniform on (0, 2): half of the heads start where it diverges",
        },
        "It converges exactly if r1 > 1.",
        str(found.condition) == "r1 > 1" and instance == ["diverges"],
    )


@decides("satisfies.sandwich", {"bias": "sandwich", "options": {"heads": 1}})
def _sandwich(data: Data) -> Finding:
    found = verdicts(data["bias"], **data["options"])
    sums = np.exp(encoding(data["bias"], **data["options"]).bias(np.arange(100_000))).cumsum(1)
    return Finding(
        _all_converge(found),
        {
            "verdict": found,
            "B_j/j at j = 10^4, 10^5": [sums[-1, 9_999] / 1e4, sums[-1, -1] / 1e5],
            "every head": "a finite sum of waves is bounded below (theorem trigonometric)",
            "the prover has checked that theorem": bool(theorem("trigonometric").checked),
        },
        n=len(found),
    )


@decides(
    "satisfies.sandwich-smoothed",
    {"bias": "sandwich_smoothed", "heads": 8, "general": "-(33/40*log(1+n) + 4/5)*8/c"},
)
def _sandwich_smoothed(data: Data) -> Finding:
    found = verdicts(data["bias"], heads=data["heads"])
    general = decided(data["general"])
    return Finding(
        _all_converge(found),
        {"verdict by head": found, "condition": general.condition},
        "It converges exactly if c < 33/5, in the heads with a compression ratio below 6.6.",
        str(general.condition) == "c < 33/5" and "diverges" in found,
        n=len(found),
    )


# -- receptive fields -----------------------------------------------------------------------------


@decides(
    "nemp.gap", {"weights": lambda t: Fraction(1, 2**t), "eps": Fraction(1, 10), "values": (1, -1)}
)
def _gap(data: Data) -> Finding:
    row = [data["weights"](t) for t in range(40)]
    kept = next(j for j in range(len(row)) if _outside(row, j) < data["eps"])
    inside, outside = data["values"]
    change = _outside(row, kept) * abs(outside - inside)
    return Finding(
        change < data["eps"],
        {"eps": data["eps"], "n_emp(eps)": kept, "change of the output over l": float(change)},
        "By less than 2 eps l [Eq. 13], and no better in general.",
        change < 2 * data["eps"],
        n=1,
    )


@decides("nemp.training", {"bias": "-n/8", "spread": 2.0})
def _training(data: Data) -> Finding:
    bias = encoding(data["bias"]).bias(np.arange(64))[0]
    random = np.random.default_rng(0)
    fields = set()
    for _ in range(20):
        c = np.exp(bias + data["spread"] * random.uniform(-1, 1, 64))
        fields.add(int(np.searchsorted(c.cumsum(), 0.9 * c.sum(), "right")) + 1)
    return Finding(
        len(fields) > 1,
        {
            "ERF(0.1), least and largest": [min(fields), max(fields)],
            "bounds before training": "TRF(eps e^lambda) to TRF(eps e^-lambda) (theorem two-sided)",
        },
        n=20,
    )


@decides("cij-bij", {"logits": (0.5, 0.5, 0.5), "terms": (1.0, 0.25, 0.0625), "logit_bound": 0.5})
def _content_sum(data: Data) -> Finding:
    c = sum(b * math.exp(a) for a, b in zip(data["logits"], data["terms"], strict=True))
    b = sum(data["terms"])
    bound = b * math.exp(data["logit_bound"])
    return Finding(
        c <= b,
        {"C_ij": c, "B_ij": b, "content logits": data["logits"], "e^logit_bound B_ij": bound},
        "C_ij <= e^{l^2/sqrt(d)} B_ij; the factor cancels in no ratio of tail to total, so the TRF "
        "bounds the attention ERF only at eps e^{-lambda} (theorem two-sided)",
        c <= bound * (1 + 1e-12),
        n=1,
    )


@decides("eq22.forms", {"below": lambda tail, bound: tail < bound})
def _forms(data: Data) -> Finding:
    random = np.random.default_rng(0)
    different = 0
    for _ in range(15):
        b = [Fraction(int(x)) for x in random.integers(0, 9, 30)] + [Fraction(1)]
        total = sum(b)
        for eps in (Fraction(k, 10) for k in range(1, 10)):
            partial = next(j for j in range(32) if sum(b[:j]) > total * (1 - eps))
            tail = next(j for j in range(32) if data["below"](sum(b[j:]), total * eps))
            different += partial != tail
    return Finding(different == 0, {"cases that differ": different}, n=135)


def _field_of(terms: tuple[Any, ...], eps: Fraction, strict: bool = True) -> int:
    total = sum(terms)
    return next(
        j
        for j in range(len(terms) + 1)
        if sum(terms[j:]) < eps * total or (not strict and sum(terms[j:]) == eps * total)
    )


@decides("thm0.5", {"a": (4, 2, 1, 1), "b": (3, 1), "light": "-n/4", "heavy": TYPE1})
def _theorem_05(data: Data) -> Finding:
    a, b = data["a"], data["b"]
    fields = [_field_of(x, Fraction(1, 10**6)) for x in (a, b)]
    infinite = [_tokens(data[k], "1e-6") for k in ("light", "heavy")]
    return Finding(
        fields[0] <= fields[1],
        {
            "a": a,
            "b": b,
            "TRF_a, TRF_b at eps = 10^-6": fields,
            "hypothesis": f"a_t = b_t = 0 for t >= {max(len(a), len(b))}, so it holds there",
            f"TRF(10^-6) of {data['light']} and {data['heavy']}": infinite,
        },
        "It needs infinitely many b_t > 0; with finite support compare the supports.",
        infinite[0] <= infinite[1],
        n=2,
    )


@decides("thm0.5.eps0", {"terms": tuple(Fraction(int(t != 2), 2**t) for t in range(24))})
def _eps_0(data: Data) -> Finding:
    b = data["terms"]
    shares = [_outside(list(b), j) for j in range(len(b))]
    reached = {_field_of(b, x) for x in shares if 0 < x < 1}
    missed = [t for t in range(2, 12) if t not in reached]
    between = [(shares[t] + shares[t - 1]) / 2 for t in range(2, 12)]
    same = [
        t
        for t, x in zip(range(2, 12), between, strict=True)
        if x > 0 and _field_of(b, x) == _field_of(b, (x + shares[t]) / 2) == t
    ]
    return Finding(
        not missed and not same,
        {"t_0 that are no TRF": missed, "t_0 that a smaller eps has too": same},
        "TRF(eps) > t_0 for all eps up to T_{t_0}/B, where infinitely many b_t > 0.",
        all(x > 0 and _field_of(b, x) > t for t, x in enumerate(shares[:12]) if t),
        n=10,
    )


@decides("thm0.5.last-step", {"ratio": Fraction(1, 2), "field": _field_of})
def _last_step(data: Data) -> Finding:
    a = tuple(data["ratio"] ** t for t in range(60))
    equal = [_outside(list(a), j) for j in range(1, 11)]
    fields = [data["field"](a, eps) for eps in equal]
    above = [data["field"](a, eps * Fraction(11, 10)) for eps in equal]
    return Finding(
        all(f <= j for j, f in enumerate(fields, 1)),
        {"j": list(range(1, 11)), "TRF(T_j/A)": fields},
        "It follows from <, which Eq. 22 gives for b; Eq. 27 weakens it to <=.",
        all(f <= j for j, f in enumerate(above, 1)),
        n=len(fields),
    )


@decides("thm0.5.smaller-series", {"a": (1, 1, 1, 1), "b": (9, 1, 1, 1), "eps": Fraction(1, 3)})
def _smaller_series(data: Data) -> Finding:
    a, b = data["a"], data["b"]
    assert all(x <= y for x, y in zip(a, b, strict=True))
    fields = [_field_of(x, data["eps"]) for x in (a, b)]
    shares = [[_outside(list(x), j) for j in range(len(x))] for x in (a, b)]
    return Finding(
        fields[0] <= fields[1],
        {"a (every term at most b's)": a, "b": b, "eps": data["eps"], "TRF_a, TRF_b": fields},
        "What counts is the normalised tail T_j/B: it is larger for a at every j, and so is the "
        "TRF.",
        all(x >= y for x, y in zip(*shares, strict=True)) and fields[0] >= fields[1],
        n=1,
    )


# -- the two new encodings ------------------------------------------------------------------------


@decides("satisfies.type1", {"bias": TYPE1, "for": {}})
@decides("satisfies.type2", {"bias": TYPE2, "for": {}})
@decides("satisfies.kerple-power", {"bias": "-r1*n^r2", "for": {"for": "all r1, r2 > 0"}})
def _new(data: Data) -> Finding:
    found = decided(data["bias"])
    return Finding(found.verdict is Series_.CONVERGES, {"proof": found.proof.claim, **data["for"]})


@decides("infinite-kinds", {"bias": "-(1 + d)*log(1 + n)"})
def _infinite(data: Data) -> Finding:
    found = decided(data["bias"])
    return Finding(
        found.verdict is Series_.CONVERGES,
        {"for all d > 0": found.verdict, "proof": found.proof.claim},
    )


@decides(
    "types.zero", {"type1": lambda n: n**-2, "type2": lambda n: sympy.exp(-(sympy.log(n) ** 2))}
)
def _zero(data: Data) -> Finding:
    at = sympy.Symbol("n", nonnegative=True)
    values = {
        k: [sympy.limit(data[k](at), at, j, "+") for j in (0, 1, 2)] for k in ("type1", "type2")
    }
    shifted = {k: [data[k](sympy.Integer(j + 1)) for j in (0, 1, 2)] for k in values}

    def good(found: dict[str, list[Any]]) -> bool:
        return all(v.is_finite and v.is_positive for row in found.values() for v in row)

    return Finding(
        good(values),
        {"b_0, b_1, b_2 as printed": values},
        "With n + 1 in place of n, as Eq. 29 sums them, they are.",
        good(shifted),
        n=6,
    )


@decides("type1.total", {"bias": TYPE1})
def _type1_total(data: Data) -> Finding:
    total = to_arb(at_precision(series(read(data["bias"])).total, 128))
    with precision(128):
        zeta = arb.pi() ** 2 / 6
        return Finding(
            bool(total.overlaps(arb(1))),
            {"B": total.str(20)},
            "B = pi^2/6; 1 is the integral from 1, which leaves out 0.645 of the sum.",
            bool(total.overlaps(zeta)),
            n=1,
        )


@decides(
    "type1.trf",
    {
        "bias": TYPE1,
        "eps": ("1/10", "1/100", "1/1000", "1/10000"),
        "printed": lambda eps: math.floor(1 / eps) + 1,
    },
)
def _type1_trf(data: Data) -> Finding:
    fields = [_tokens(data["bias"], e) for e in data["eps"]]
    printed = [data["printed"](Fraction(e)) for e in data["eps"]]
    near = [6 / math.pi**2 / float(Fraction(e)) for e in data["eps"]]
    return Finding(
        fields == printed,
        {"eps": data["eps"], "TRF": fields, "by Eq. 29": printed},
        "6/(pi^2 eps), that is 1/(B eps), within one token",
        all(abs(f - x) <= 1 for f, x in zip(fields, near, strict=True)),
        n=len(fields),
    )


@decides("type1.order", {"bias": TYPE1, "powers": (1, 2, 4, 8, 12)})
def _type1_order(data: Data) -> Finding:
    fields = [_tokens(data["bias"], f"1e-{k}") for k in data["powers"]]
    products = [f / 10.0**k for f, k in zip(fields, data["powers"], strict=True)]
    return Finding(
        max(products) < 2 * min(products),
        {"eps TRF(eps)": products, "limit": "6/pi^2 (theorem trf-power)"},
        n=len(products),
    )


@lru_cache(maxsize=32)
def _normalised_tails(bias: str, count: int) -> list[arb]:
    s: Series = series(read(bias))
    with precision(128):
        total = to_arb(s.total())
        return [to_arb(s.tail(j)) / total for j in range(count)]


def crossover(light: str, heavy: str, count: int = 80) -> arb | None:
    """min{v_j : u_j > v_j} over j < count; None if there is none."""
    u, v = (_normalised_tails(b, count) for b in (light, heavy))
    above = [y for x, y in zip(u, v, strict=True) if x > y]
    return min(above, key=lambda x: float(x.mid())) if above else None


@decides("type2-below-type1.small-eps", {"light": TYPE2, "heavy": TYPE1, "from": 8})
def _type2_small(data: Data) -> Finding:
    u, v = (_normalised_tails(data[k], 200) for k in ("light", "heavy"))
    ordered = all(x < y for x, y in zip(u[data["from"] :], v[data["from"] :], strict=True))
    light, heavy = (encoding(data[k]).bias(10 ** np.arange(1, 16))[0] for k in ("light", "heavy"))
    gap = light - heavy
    return Finding(
        bool(ordered and (np.diff(gap) < 0).all() and gap[-1] < -100),
        {"p_2 - p_1 at n = 10, 10^5, 10^15": gap[[0, 4, 14]].tolist()},
        n=200 - data["from"],
    )


@decides("type-inequality", {"left": lambda x: -(x**2), "right": lambda x: -2 * x})
def _type_inequality(data: Data) -> Finding:
    z, s = sympy.symbols("z s", positive=True)
    x, ratio = 2 + z + s, (1 + z) ** 2 - 1
    return Finding(
        never_exceeds(data["left"](x) + ratio, data["right"](x)),
        {
            "holds from log n =": "1 + sqrt(1 + log(c2/c1))",
            "log of right over left": sympy.factor(data["right"](x) - data["left"](x) - ratio),
        },
    )


# -- experiments of the paper ---------------------------------------------------------------------


@decides("examples.close", {"biases": ("-(1+d)*log(1+n)", "-log(n+3) - (1+d)*log(log(n+3))")})
def _close(data: Data) -> Finding:
    found = [decided(b) for b in data["biases"]]
    return Finding(
        all(f.verdict is Series_.CONVERGES for f in found),
        {b: str(f.verdict) for b, f in zip(data["biases"], found, strict=True)},
        n=len(found),
    )


@decides("examples.concentrate", {"biases": (EXAMPLE1, EXAMPLE2), "row": 9216, "near": 512})
def _concentrate(data: Data) -> Finding:
    shares = {}
    for bias in data["biases"]:
        b = np.exp(encoding(bias).bias(np.arange(data["row"]))[0])
        shares[bias] = float(b[: data["near"]].sum() / b.sum())
    return Finding(
        all(s > 0.5 for s in shares.values()),
        {
            "share of the nearest 512": shares,
            "in ever longer rows": "it tends to 0, as the series diverge (theorem equivalence)",
        },
        n=len(shares),
    )


def _lower_bound(data: Data) -> Finding:
    """sum_{n=first}^k term(n) > antiderivative(k+1) - antiderivative(first), in balls."""
    at = sympy.Symbol("n", positive=True)
    term, primitive = data["term"](at), data["primitive"](at)
    slope = sympy.simplify(sympy.diff(primitive, at) - term)
    first, last = data["first"], 120
    total, least = arb(0), arb("inf")
    with precision(96):
        value, area = compile_ball(term), compile_ball(primitive)
        below = to_arb(area({at: fmpq(first)}))
        for k in range(first, last):
            total += to_arb(value({at: fmpq(k)}))
            gap = total - (to_arb(area({at: fmpq(k + 1)})) - below)
            least = min(least, gap, key=lambda x: float(x.mid()))
        falls = bool(to_arb(compile_ball(sympy.diff(term, at))({at: fmpq(5)})) < 0)
        return Finding(
            bool(slope == 0 and falls and least > 0),
            {
                "derivative of the integral minus the term": slope,
                "least gap": float(least.mid()),
                "why": "the term decreases, so it exceeds its integral over [n, n + 1]",
            },
            n=last - first,
        )


decides("example1.bound", {"term": lambda n: 1 / n, "primitive": sympy.log, "first": 1})(
    _lower_bound
)
decides(
    "example2.bound",
    {
        "term": lambda n: 1 / (n * sympy.log(n)),
        "primitive": lambda n: sympy.log(sympy.log(n)),
        "first": 3,
    },
)(_lower_bound)


def _sandwich_cells() -> Data:
    return {"bias": "sandwich", "cells": table("chi2023_table3"), "name": "Sandwich"}


def _necessary(data: Data, change: Callable[[Mapping[int, float], int], float]) -> Finding:
    diverges = "diverges" in verdicts(data["bias"], heads=1)
    found = {
        d: change(curve(data["cells"], dataset=d, encoding=data["name"]), 512)
        for d in sorted({c.dataset for c in select(data["cells"], encoding=data["name"])})
    }
    return Finding(
        not (diverges and min(found.values()) < data["tolerance"]),
        {
            "bias": data["bias"],
            "some head diverges": diverges,
            "largest change of perplexity from 512 to 8192 tokens": found,
        },
        n=len(found),
    )


@decides("necessity.printed", _sandwich_cells)
def _necessity_printed(data: Data) -> Finding:
    return _necessary(data, increase)


@decides("necessity.two-sided", _sandwich_cells)
def _necessity_two_sided(data: Data) -> Finding:
    return _necessary(data, drift)


# -- receptive fields against measurements --------------------------------------------------------


@decides(
    "type2-below-type1.all-eps",
    {"light": TYPE2, "heavy": TYPE1, "eps": ("1/4", "1/5", "1/10", "1/100", "1/1000")},
)
def _type2_all(data: Data) -> Finding:
    fields = {e: [_tokens(data[k], e) for k in ("light", "heavy")] for e in data["eps"]}
    last = crossover(data["light"], data["heavy"])
    point = None if last is None else float(last.mid())
    small = [pair for e, pair in fields.items() if point is None or Fraction(e) <= point]
    return Finding(
        all(a <= b for a, b in fields.values()),
        {"TRF of Type 2, of Type 1 by eps": fields, "crossover": point},
        "For all eps <= 0.2400911227; it fails just above, as at 1/4.",
        point is not None
        and abs(point - 0.2400911227) < 1e-10
        and bool(small)
        and all(a <= b for a, b in small),
        n=len(fields),
    )


@decides("figure7.closer", {"light": TYPE2, "heavy": TYPE1, "from": 3})
def _figure_7(data: Data) -> Finding:
    u, v = (_normalised_tails(data[k], 200) for k in ("light", "heavy"))
    other = [j for j in range(1, 200) if not u[j] < v[j]]
    return Finding(
        not other,
        {
            "j with the other order": other,
            "share of the own key (Type 2, Type 1)": [float(1 - x[1].mid()) for x in (u, v)],
        },
        "From j = 3 on; Type 1 holds more on the nearest one and the nearest two.",
        other == list(range(1, data["from"])),
        n=199,
    )


@decides(
    "trf.without-training", {"names": FIVE, "values": ({"r1": "6/5", "r2": 1}, {"r1": 2, "r2": 1})}
)
def _without_training(data: Data) -> Finding:
    free = {name: [p.name for p in encoding(name).free] for name in data["names"]}
    learned = sorted(k for k, v in free.items() if v)
    fields = [_tokens("kerple_log", "1/10", **v) for v in data["values"]]
    return Finding(
        not learned,
        {
            "learned parameters": {k: free[k] for k in learned},
            "TRF(0.1) of KERPLE at r1 = 6/5 and 2": fields,
        },
        "For all but KERPLE, whose TRF depends on what is learned.",
        learned == ["kerple_log"] and fields[0] != fields[1],
        n=len(free),
    )
