"""[S] Sun et al., A Length-Extrapolatable Transformer, ACL 2023: its claims and their checks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import sympy

from farfield.numerics.identities import vanishes
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.resolution import attention_resolution, fp16_range, surrogate_scores
from farfield.theory.closed_forms import rotation, rotation_with_decay
from farfield.theory.convergence import check_convergence
from farfield.theory.encodings import encoding
from farfield.theory.theorems import theorem
from farfield.validation.claims.claim import Data, Decisions, Finding
from farfield.validation.claims.results import all_models, named, of_models, slower
from farfield.validation.claims.words import (
    BY_CHANCE,
    about,
    by_chance,
    increase,
    rank_correlation,
)
from farfield.validation.harness.visibility import Visibility
from farfield.validation.published import curve, keys, select, table

decides = Decisions()

D = 64
"""Head size of the LeX Transformer: 1024 wide, 16 heads (Table 7)."""
TRAINED = 1024
FOUR = ("Transformer", "Alibi", "Roformer", "LeX")


def _tables(*names: str) -> Callable[[], Data]:
    return lambda: {name: table(f"sun2023_{name}") for name in names}


def _given(make: Callable[[], Data], **more: Any) -> Callable[[], Data]:
    return lambda: {**make(), **more}


def _cell(cells: Any, length: int, **wanted: Any) -> float:
    (found,) = select(cells, eval_length=length, **wanted)
    assert found.value is not None
    return found.value


# -- resolutions of the surrogate -----------------------------------------------------------------


def _rate(weights: Iterable[Any]) -> Any:
    """R [Eq. 4] of weights x_0 .. x_{N+1}: balls, fractions or floats."""
    x = list(weights)
    return sum(a * (a - b) for a, b in itertools.pairwise(x)) / sum(x[:-1]) ** 2


@lru_cache(maxsize=128)
def _resolution(
    length: int, gamma: Fraction | None, scale: Fraction, mask: str | None = None
) -> tuple[float, float]:
    """Bounds of R [Eq. 4] of a row of the surrogate at a scale, without decay if gamma is None."""
    options: dict[str, Any] = {} if gamma is None else {"gamma": gamma}
    surrogate = encoding("xpos_surrogate" if options else "rope_surrogate", d=D, **options)
    found = attention_resolution(surrogate, length, scale=scale, mask=mask).enclosure
    assert found is not None, "these rows are summed in balls"
    return found


SCALES = {"raw": Fraction(1), "sqrt": Fraction(1, 8), "mean": Fraction(1, 32)}
PAPER = Fraction(2, 5)


def _best(length: int, scale: Fraction) -> Fraction:
    """The gamma of a grid with the largest R, in float64."""
    at = np.arange(float(length))
    return max(
        (Fraction(k, 50) for k in range(1, 101, 3)),
        key=lambda g: _rate(np.exp(float(scale) * surrogate_scores(at, D, gamma=float(g)))),
    )


def _gammas(data: Data) -> dict[Fraction, list[tuple[Fraction | None, tuple[float, float]]]]:
    """By scale, R at the best gamma tried, at that of the data, and without decay."""
    length = data["length"]
    return {
        scale: [
            (gamma, _resolution(length, gamma, scale))
            for gamma in (_best(length, scale), data["gamma"], None)
        ]
        for scale in data["scales"]
    }


# -- abstract and introduction --------------------------------------------------------------------


@decides(
    "abstract.maximize", {"gamma": PAPER, "scales": (Fraction(1), Fraction(1, 8)), "length": 512}
)
def _maximize(data: Data) -> Finding:
    rows = _gammas(data)
    bounds = [[r for _, r in found] for found in rows.values()]
    return Finding(
        not any(best[0] > here[1] for best, here, _ in bounds),
        {
            "by scale: (gamma, R) of the best tried, of 0.4, and without decay": {
                str(s): [[str(g), r[0]] for g, r in found] for s, found in rows.items()
            }
        },
        "0.4 raises R above that of RoPE; another gamma raises it further, at each scale.",
        all(best[0] > here[1] and here[0] > none[1] for best, here, none in bounds),
        n=len(rows),
    )


def _growths() -> Data:
    """R at 2048 tokens [Table 3] and perplexity there over that at 1024 [Tables 2 and 5]."""
    third, second, fifth = (table(f"sun2023_table{k}") for k in (3, 2, 5))
    pairs = {}
    for name in FOUR:
        variant = "bca=1" if name == "LeX" else ""
        values = curve(second, dataset="PG22", encoding=name)
        pairs[name] = (
            _cell(third, 2048, encoding=name, variant=variant),
            values[2048] / values[1024],
        )
    home = curve(second, dataset="PG22", encoding="LeX")[1024]
    full = _cell(fifth, 2048, encoding="XPos", variant="attention=full")
    pairs["LeX without BCA"] = (_cell(third, 2048, encoding="LeX", variant="bca=0"), full / home)
    return {"pairs": pairs}


@decides("indicator.printed", _growths)
def _indicator(data: Data) -> Finding:
    pairs = data["pairs"]
    combos = list(itertools.combinations(pairs, 2))
    against = [
        f"{a}, {b}"
        for a, b in combos
        if (pairs[a][0] - pairs[b][0]) * (pairs[a][1] - pairs[b][1]) >= 0
    ]
    return Finding(
        not against,
        {"R, growth": pairs, "other order": against},
        "It is so for 8 of the 10 pairs; chance does as well in one of fifteen orders.",
        len(combos) - len(against) == 8
        and len(combos) == 10
        and about(
            by_chance([-p[0] for p in pairs.values()], [p[1] for p in pairs.values()]), "0.07"
        ),
        n=len(combos),
    )


def _row_resolution(scores: tuple[float, ...], length: int) -> float:
    """R of the first scores of a row."""
    return float(_rate(np.exp(np.array(scores[:length]))))


@decides("indicator.experiment", all_models)
def _indicator_experiment(data: Data) -> Finding:
    found = [
        m
        for m in data["models"]
        if " + " not in m.name
        and all(len(s) >= 2 * m.trained for s in m.scores.values())
        and m.scores
    ]
    if len(found) < 4:
        return Finding(None, {}, reason="fewer than four models with measured scores")
    rates = [
        float(np.mean([_row_resolution(s, 2 * m.trained) for s in m.scores.values()]))
        for m in found
    ]
    growth = [m.increase() for m in found]
    pair = [-r for r in rates], growth
    return of_models(
        found,
        {
            "Spearman rank correlation of -R and growth": rank_correlation(*pair),
            "by chance": by_chance(*pair),
            "R": dict(zip([m.name for m in found], rates, strict=True)),
        },
        by_chance(*pair) < BY_CHANCE,
    )


@decides("bca.efficiency", {"half": 16, "visible": Visibility(bca=16)})
def _efficiency(data: Data) -> Finding:
    half = data["half"]
    seen = {}
    for blocks in (16, 32, 64):
        place = np.arange(blocks * half)
        seen[blocks] = int(data["visible"].sees(place[:, None], place[None, :]).sum())
    exponents = [math.log2(b / a) for a, b in itertools.pairwise(seen.values())]
    return Finding(
        abs(exponents[-1] - 1) < 0.05,
        {"visible pairs by half blocks": seen, "exponent of the length": exponents},
        n=len(seen),
    )


@decides(
    "eq4.monotonicity",
    {
        "weights": (3, 2, 1),
        "after": 0,
        "resolution": _rate,
        "steps": lambda x: sum((a - b) ** 2 for a, b in itertools.pairwise(x)),
    },
)
def _monotonicity(data: Data) -> Finding:
    """The weights in every order, the score after them unchanged."""
    after, rate = Fraction(data["after"]), data["resolution"]
    rows = {
        order: [*map(Fraction, order), after] for order in itertools.permutations(data["weights"])
    }
    found = {order: rate(x) for order, x in rows.items()}
    total = sum(map(Fraction, data["weights"]))
    identity = {
        order: (x[0] ** 2 - x[-1] ** 2 + data["steps"](x)) / (2 * total**2)
        for order, x in rows.items()
    }
    falling = tuple(sorted(data["weights"], reverse=True))
    best = max(found, key=lambda k: found[k])
    return Finding(
        found[best] <= found[falling],
        {
            "R of the decreasing order": found[falling],
            "order with the largest R": best,
            "its R": found[best],
        },
        "2 R = P_0^2 - P_{N+1}^2 + sum (P_i - P_{i+1})^2: R rewards steps, upwards too.",
        identity == found,
        n=len(found),
    )


# -- Section 2 ------------------------------------------------------------------------------------


def _turned(x: np.ndarray, place: np.ndarray, decay: float = 0.0) -> np.ndarray:
    """Pairs of coordinates rotated by their position, times zeta^(decay place)."""
    half = x.shape[-1] // 2
    angle = place[:, None] * 10_000.0 ** (-np.arange(half) / half)
    zeta = ((np.arange(half) / half + 0.4) / 1.4) ** (decay * place[:, None] / 512)
    a, b = x[:, :half], x[:, half:]
    c, s = np.cos(angle), np.sin(angle)
    return np.concatenate([(a * c - b * s) * zeta, (a * s + b * c) * zeta], axis=1)


def _sinusoid(place: np.ndarray, width: int) -> np.ndarray:
    angle = place[:, None] / 10_000.0 ** (2 * np.arange(width // 2) / width)
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=1)


def scores_at(mechanism: str, place: np.ndarray, x: np.ndarray, seed: int = 1) -> np.ndarray:
    """Attention scores of one random head on contents x at positions, shape (T, T)."""
    width = x.shape[1]
    random = np.random.default_rng(seed)
    wq, wk = random.normal(size=(2, width, width)) / math.sqrt(width)
    gap = place[:, None] - place[None, :]
    if mechanism == "sinusoidal":
        x = x + _sinusoid(place, width)
    if mechanism == "learned":
        x = x + random.normal(size=(512, width))[place.astype(int)]
    q, k = x @ wq, x @ wk
    if mechanism == "rope":
        q, k = _turned(q, place), _turned(k, place)
    if mechanism == "lex":
        q, k = _turned(q, place, 1.0), _turned(k, place, -1.0)
    bias = np.zeros_like(gap)
    if mechanism == "alibi":
        bias = -0.125 * np.abs(gap)
    if mechanism == "t5":
        bias = random.normal(size=32)[np.minimum(np.abs(gap), 31).astype(int)]
    scores: np.ndarray = q @ k.T / math.sqrt(width) + bias
    return scores


MECHANISMS = ("sinusoidal", "learned", "rope", "t5", "alibi", "lex")


def _two_layers(x: np.ndarray, causal: bool, layers: int = 2) -> np.ndarray:
    """Attention without positions, with a residual, `layers` times."""
    width = x.shape[1]
    random = np.random.default_rng(2)
    for _ in range(layers):
        wq, wk, wv = random.normal(size=(3, width, width)) / math.sqrt(width)
        s = (x @ wq) @ (x @ wk).T / math.sqrt(width)
        if causal:
            s = np.where(np.tri(len(x), dtype=bool), s, -np.inf)
        w = np.exp(s - s.max(1, keepdims=True))
        x = x + (w / w.sum(1, keepdims=True)) @ (x @ wv)
    return x


ORDERED = np.array([3, 0, 6, 1, 7, 2, 5, 4, 8])


@decides("eq1.bag-of-words", {"causal": True, "layers": 2, "without": False})
def _bag_of_words(data: Data) -> Finding:
    x = np.random.default_rng(0).normal(size=(9, 16))

    def change(causal: bool, layers: int) -> float:
        both = (_two_layers(y, causal, layers)[-1] for y in (x, x[ORDERED]))
        return float(np.abs(np.subtract(*both)).max())

    found, without = change(data["causal"], data["layers"]), change(data["without"], 2)
    single = change(True, 1)
    return Finding(
        found < 1e-9,
        {
            "change of the last output under a permutation": found,
            "without a causal mask": without,
            "one causal layer": single,
        },
        "So it is without a causal mask, or in one layer; two causal layers see the order.",
        without < 1e-9 and single < 1e-9,
        n=1,
    )


@decides("eq1.variant", {"mechanisms": MECHANISMS})
def _variant(data: Data) -> Finding:
    x, place = np.random.default_rng(0).normal(size=(9, 16)), np.arange(9.0)
    changes = {}
    for name in data["mechanisms"]:
        here = scores_at(name, place, x)[np.ix_(ORDERED, ORDERED)]
        changes[name] = float(np.abs(scores_at(name, place, x[ORDERED]) - here).max())
    return Finding(
        all(v > 1e-3 for v in changes.values()),
        {"largest change of a score": changes},
        n=len(changes),
    )


def _translation(data: Data) -> Finding:
    """[S, Eq. 2]: padding in front only moves the positions, its keys are masked."""
    x = np.random.default_rng(0).normal(size=(20, 16))
    here = scores_at(data["mechanism"], np.arange(20.0), x)
    moved = [scores_at(data["mechanism"], np.arange(20.0) + t, x) for t in (1, 37, 200)]
    gap = float(max(np.abs(m - here).max() for m in moved))
    return Finding(
        (gap < 1e-8) is data["mark"],
        {
            "mark": "invariant" if data["mark"] else "not invariant",
            "largest change of a score under shifts by 1, 37, 200": gap,
        },
        n=3,
    )


for _name, _mark in (
    ("sinusoidal", False),
    ("learned", False),
    ("rope", True),
    ("t5", True),
    ("alibi", True),
    ("lex", True),
):
    decides(f"table1.translation.{_name}", {"mechanism": _name, "mark": _mark})(_translation)


@decides("table1.extrapolation", _tables("table1", "table2"))
def _extrapolation_marks(data: Data) -> Finding:
    rank = {"double_no": 0, "no": 1, "yes": 2, "double_yes": 3}
    names = {
        "Transformer (Sinusoidal)": "Transformer",
        "PaLM / Roformer (RoPE)": "Roformer",
        "BLOOM / Alibi": "Alibi",
        "LeX Transformer (Ours)": "LeX",
    }
    marks = {
        c.encoding: rank[c.printed] for c in data["table1"] if c.metric == "length_extrapolation"
    }
    growth = {
        name: _cell(data["table2"], 8192, dataset="PG22", encoding=short)
        / _cell(data["table2"], 1024, dataset="PG22", encoding=short)
        for name, short in names.items()
    }
    by_mark = sorted(names, key=lambda k: marks[k])
    by_growth = sorted(names, key=lambda k: -growth[k])
    return Finding(
        by_mark == by_growth and len({marks[k] for k in names}) == 4,
        {"perplexity at 8192 over 1024 tokens (PG22)": growth, "not in Table 2": ["T5", "GPT-2"]},
        n=len(names),
    )


@decides("alibi.exponential", {"bias": lambda m, n: -m * n})
def _exponential(data: Data) -> Finding:
    m, n = sympy.symbols("m n", positive=True)
    ratio = sympy.exp(data["bias"](m, n + 1) - data["bias"](m, n))
    return Finding(vanishes(sympy.diff(ratio, n)), {"b_{n+1}/b_n": sympy.simplify(ratio)})


@decides("rope-with-bca", _tables("table2", "table5"))
def _rope_with_bca(data: Data) -> Finding:
    rope = {1024: _cell(data["table2"], 1024, dataset="PG22", encoding="Roformer")}
    for n in (2048, 8192):
        rope[n] = _cell(data["table5"], n, encoding="RoPE", variant="attention=BCA")
    return Finding(increase(rope, TRAINED) < data["tolerance"], {"RoPE with BCA": rope}, n=2)


# -- Section 3.1 and 3.2 --------------------------------------------------------------------------


@decides("eq4.preferred", {"summand": lambda a, b: a * (a - b)})
def _preferred(data: Data) -> Finding:
    y, z = sympy.symbols("y z", positive=True)
    above = sympy.expand(data["summand"](y + z, y))
    below = sympy.expand(data["summand"](y, y + z))
    equal = sympy.expand(data["summand"](y, y))
    return Finding(
        bool(above.is_positive and below.is_negative and equal == 0),
        {"at x = y + z, at y after y + z, at equality": [above, below, equal]},
    )


@decides("figure2.oscillation", {"d": D, "from": 1000, "to": 4000, "gamma": 0.4})
def _oscillation(data: Data) -> Finding:
    at = np.arange(data["from"], data["to"] + 1.0)
    half = data["d"] / 2
    rope = surrogate_scores(at, data["d"], gamma=None) / half
    xpos = surrogate_scores(at, data["d"], gamma=data["gamma"]) / half
    variation = {k: float(np.abs(np.diff(v)).sum()) for k, v in (("RoPE", rope), ("xPos", xpos))}
    spread = {k: float(np.ptp(v)) for k, v in (("RoPE", rope), ("xPos", xpos))}
    return Finding(
        variation["xPos"] < variation["RoPE"] / 10 and spread["xPos"] < spread["RoPE"] / 2,
        {"total variation of g/(d/2)": variation, "max minus min": spread},
        n=at.size,
    )


def _scaled(data: Data) -> Finding:
    """R of the xPos and RoPE surrogates at one scale, enclosed."""
    pairs = {
        t: [_resolution(t, g, data["scale"]) for g in (data["gamma"], None)]
        for t in data["lengths"]
    }
    apart = [a[1] < b[0] or b[1] < a[0] for a, b in pairs.values()]
    above = [a[0] > b[1] for a, b in pairs.values()]
    return Finding(
        all(above) if all(apart) else None,
        {
            "R (xPos, RoPE) by tokens": {t: [a[0], b[0]] for t, (a, b) in pairs.items()},
            "scale of s": data["scale"],
            "d": D,
            "dialect": "code",
        },
        "At this scale RoPE's surrogate has the larger R: the order depends on the scale of s.",
        not any(above),
        "the enclosures overlap",
        n=len(pairs),
    )


for _key, _scale in SCALES.items():
    decides(
        f"resolution.xpos-above-rope.{_key}", {"scale": _scale, "lengths": (1024,), "gamma": PAPER}
    )(_scaled)


@decides(
    "gamma.sub-optimal", {"gamma": PAPER, "scales": (Fraction(1), Fraction(1, 8)), "length": 512}
)
def _gamma(data: Data) -> Finding:
    rows = {scale: [r for _, r in found] for scale, found in _gammas(data).items()}
    return Finding(
        all(best[0] > here[1] and here[0] > none[1] for best, here, none in rows.values()),
        {
            "R at the best gamma tried, at 0.4, without decay": {
                str(s): [r[0] for r in found] for s, found in rows.items()
            }
        },
        n=len(rows),
    )


@decides("pseudo-inner", {"product": lambda x, y: x * sympy.conjugate(y)})
def _pseudo(data: Data) -> Finding:
    a, b, c, d = sympy.symbols("a b c d", real=True)
    value = sympy.re(sympy.expand(data["product"](a + sympy.I * b, c + sympy.I * d)))
    return Finding(vanishes(value - (a * c + b * d)), {"Re(x conj(y))": value})


def _defect(query: Callable[[Any], Any], key: Callable[[Any], Any]) -> sympy.Matrix:
    """f_q(n + r)^T f_k(n) - f_q(r)^T f_k(0) of pairs of coordinates."""
    n, r = sympy.symbols("n r", real=True)
    return query(n + r).T * key(n) - query(r).T * key(sympy.Integer(0))


@decides("eq6.xpos", lambda: dict(zip(("query", "key"), rotation_with_decay(), strict=True)))
def _eq_6(data: Data) -> Finding:
    defect = _defect(data["query"], data["key"])
    return Finding(
        all(map(vanishes, defect)),
        {
            "f_q(n + r)^T f_k(n) - f_q(r)^T f_k(0)": "0"
            if all(map(vanishes, defect))
            else str(list(defect))
        },
        n=len(defect),
    )


@decides("eq7.solution", {"key": lambda xi, theta, n: (-xi + sympy.I * theta) * n})
def _eq_7(data: Data) -> Finding:
    xi, theta, n, r = sympy.symbols("xi theta n r", real=True)
    query = (xi + sympy.I * theta) * (n + r)
    key = sympy.conjugate(data["key"](xi, theta, n))
    rest = sympy.exp(query + sympy.expand(key)) - sympy.exp((xi + sympy.I * theta) * r)
    return Finding(vanishes(rest), {"exponent of the product": sympy.expand(query + key)})


@decides("eq8.rope", {"zeta": 1})
def _eq_8(data: Data) -> Finding:
    query, _ = rotation_with_decay()
    theta, place = sympy.Symbol("theta", real=True), sympy.Symbol("n", real=True)
    at = query(place).subs(sympy.Symbol("zeta", positive=True), data["zeta"])
    return Finding(
        all(map(vanishes, at - rotation(theta * place))), {"xi = 0 means": "zeta = e^xi = 1"}, n=4
    )


@decides("cosine", {"function": np.cos})
def _cosine(data: Data) -> Finding:
    steps = np.diff(data["function"](np.arange(49) * np.pi / 24))
    return Finding(
        bool((steps[:24] < 0).all() and (steps[24:] > 0).any()),
        {
            "steps down before pi, up after": [
                int((steps[:24] < 0).sum()),
                int((steps[24:] > 0).sum()),
            ]
        },
        n=len(steps),
    )


@decides(
    "eq9.inequality",
    {"sign": -1, "half": lambda x, phi: 2 * sympy.sin(x + phi / 2) * sympy.sin(phi / 2)},
)
def _eq_9(data: Data) -> Finding:
    """cos x - cos(x + phi) = 2 sin(x + phi/2) sin(phi/2)."""
    x, phi = sympy.symbols("x phi", real=True)
    grid = [(j, k) for j in range(13) for k in range(13) if 2 * j + k <= 24]

    def fails(sign: int) -> list[tuple[int, int]]:
        return [
            (j, k)
            for j, k in grid
            if math.cos((j + sign * k) * math.pi / 12) > math.cos(j * math.pi / 12) + 1e-12
        ]

    found = fails(data["sign"])
    identity = vanishes(sympy.cos(x) - sympy.cos(x + phi) - data["half"](x, phi))
    return Finding(
        not found,
        {
            "pairs that fail": len(found),
            "counterexample": "angle(q) - angle(k) = -pi/2, x = pi/2: 1 <= 0",
            "there": [math.cos(0), round(math.cos(math.pi / 2), 12)],
        },
        "Under the opposite assumption, 0 <= angle(q) - angle(k) <= 2 pi - 2 x: the difference of "
        "the sides is 2 sin(x + phi/2) sin(phi/2) >= 0.",
        identity and not fails(1),
        n=len(grid),
    )


@decides("eq9.proportional", {"sizes": tuple(range(1, D // 2 + 1)), "equal": (3,) * (D // 2)})
def _proportional(data: Data) -> Finding:
    planes, at = np.arange(D // 2), np.arange(100.0)
    zeta = (planes / (D // 2) + 0.4) / 1.4
    terms = np.cos(at[:, None] * 10_000.0 ** (-2 * planes / D)) * zeta ** (at[:, None] / 512)
    g = terms.sum(1)

    def spread(sizes: Any) -> float:
        return float(np.ptp(terms @ np.asarray(sizes, float) / g))

    return Finding(
        spread(data["sizes"]) < 1e-9,
        {"largest minus least ratio to g": spread(data["sizes"])},
        "With one size for all planes it is.",
        spread(data["equal"]) < 1e-9,
        n=at.size,
    )


@decides("index-range", {"printed": D // 2 + 1, "coordinates": D})
def _index_range(data: Data) -> Finding:
    planes = data["coordinates"] // 2
    heights = {k: float(surrogate_scores([0.0], D, dialect=k)[0]) for k in ("printed", "code")}
    return Finding(
        data["printed"] == planes,
        {
            "terms as printed": data["printed"],
            "planes of d coordinates": planes,
            "g[0] (printed, algorithm)": list(heights.values()),
            "also": "Eq. 12 starts at theta_1; only i = d/2 has zeta = 1",
        },
        "i = 0 .. d/2 - 1, as in Algorithm 1; then every zeta < 1 and g decays to 0.",
        heights["code"] == planes,
        n=1,
    )


@decides("oscillation.large-theta", {"base": 10_000.0})
def _large_theta(data: Data) -> Finding:
    planes, at = np.arange(D // 2), np.arange(4001.0)
    waves = np.cos(at[:, None] * data["base"] ** (-2 * planes / D))
    variation = np.abs(np.diff(waves, axis=0)).sum(0)
    share = float(variation[: D // 4].sum() / variation.sum())
    return Finding(share > 0.5 + 1e-9, {"share of the half with the larger theta": share}, n=D // 2)


def _zeta(gamma: Fraction, half: int) -> list[Fraction]:
    return [(Fraction(i, half) + gamma) / (1 + gamma) for i in range(half + 1)]


@decides("eq11.range", {"gamma": PAPER, "half": D // 2})
def _eq_11(data: Data) -> Finding:
    zeta = _zeta(data["gamma"], data["half"])
    return Finding(
        min(zeta) >= 0 and max(zeta) <= 1,
        {"least": zeta[0], "largest, at i = d/2": zeta[-1]},
        n=len(zeta),
    )


@decides("eq11.monotone", {"gamma": PAPER, "theta": lambda i: Fraction(1, 10**i)})
def _eq_11_monotone(data: Data) -> Finding:
    zeta = _zeta(data["gamma"], D // 2)
    theta = [data["theta"](i) for i in range(len(zeta))]  # any falling theta_i
    pairs = list(itertools.combinations(range(len(zeta)), 2))
    return Finding(
        all((zeta[a] - zeta[b]) * (theta[a] - theta[b]) < 0 for a, b in pairs),
        {"zeta_0, zeta_1, zeta_{d/2}": [zeta[0], zeta[1], zeta[-1]]},
        n=len(pairs),
    )


@decides("zeta-near-one", {"gamma": 0.4, "far": 4000, "near": 8, "last": D // 2 - 1})
def _near_one(data: Data) -> Finding:
    def power(i: int, n: int) -> float:
        return float(((i / (D / 2) + data["gamma"]) / (1 + data["gamma"])) ** (n / 512))

    last, near = power(data["last"], data["far"]), power(0, data["near"])
    return Finding(
        max(abs(1 - last), abs(1 - near)) < data["tolerance"],
        {
            f"last plane at {data['far']}": last,
            f"first plane at {data['near']}": near,
            "last plane at 8192": power(data["last"], 8192),
        },
        "When n is small: within 2 % up to 8 tokens. A large i is not enough; i = d/2, where zeta "
        "is 1, is no plane of Algorithm 1.",
        abs(1 - near) < 0.02 and power(D // 2, data["far"]) == 1 and abs(1 - last) >= 0.1,
        n=data["far"],
    )


def _half_precision(data: Data) -> Finding:
    found = fp16_range(data["gamma"], data["length"], base=data["base"], centred=data["centred"])
    repaired = fp16_range(data["gamma"], data["length"], base=512, centred=True)
    return Finding(
        found.fits,
        {
            "zeta_0": found.zeta,
            "largest power": found.largest,
            "smallest power": found.smallest,
            "fits from gamma =": found.least_gamma,
        },
        "It fits with base 512 and positions centred at 0, as the released code has them.",
        repaired.fits,
        n=1,
    )


for _key, _base, _centred in (
    ("no-base", 1, False),
    ("base-512", 512, False),
    ("centred", 512, True),
):
    decides(f"fp16.{_key}", {"gamma": "2/5", "length": 8192, "base": _base, "centred": _centred})(
        _half_precision
    )


@decides("convergence.rope", all_models)
def _convergence_rope(data: Data) -> Finding:
    found = named(data["models"], "xpos", "rope")
    x, r = found["xpos"].losses, found["rope"].losses
    seeds = sorted(set(x[min(x)]) & set(r[min(r)]))
    gaps = {s: float(np.mean([x[t][s] - r[t][s] for t in x])) for s in seeds}
    return of_models(
        found.values(),
        {"mean loss of xPos minus RoPE, nats, by seed": gaps},
        all(v < 0 for v in gaps.values()),
        "The two learn alike: their mean losses differ by less than 0.01 nats in every seed.",
        all(abs(v) < 0.01 for v in gaps.values()),
    )


@decides("algorithm1.base", {"algorithm": lambda m, base: m, "equation": lambda m, base: m / base})
def _algorithm_base(data: Data) -> Finding:
    m, n, base = sympy.symbols("m n B", positive=True)
    first, second = (data[k](m, base) for k in ("algorithm", "equation"))
    repaired = data["equation"](m, base) - data["equation"](n, base) - (m - n) / base
    return Finding(
        vanishes(first - second),
        {"exponent of zeta in Algorithm 1, in Eq. 12": [first, second]},
        "T_mn = zeta_n^{m/B} with B = 512, as in Eq. 12, whose scores depend on (m - n)/B",
        vanishes(repaired),
        n=1,
    )


@decides("algorithm1.rot", {"rot": lambda x: [-x[1], x[0], -x[3], x[2]]})
def _algorithm_rot(data: Data) -> Finding:
    x = sympy.symbols("x0:4", real=True)
    a, b = sympy.symbols("a b", real=True)
    angles = (a, a, b, b)
    turned = [
        q * sympy.cos(t) + r * sympy.sin(t)
        for q, r, t in zip(x, data["rot"](x), angles, strict=True)
    ]
    wanted = [*(rotation(a) * sympy.Matrix(x[:2])), *(rotation(b) * sympy.Matrix(x[2:]))]
    return Finding(
        all(vanishes(s - t) for s, t in zip(turned, wanted, strict=True)), {"first": turned[0]}, n=4
    )


def _softmax(scores: np.ndarray) -> np.ndarray:
    w = np.exp(scores - scores.max(-1, keepdims=True))
    weights: np.ndarray = w / w.sum(-1, keepdims=True)
    return weights


@decides(
    "algorithm1.mask", {"apply": lambda s, m: s * m, "add": lambda s, m: np.where(m, s, -np.inf)}
)
def _algorithm_mask(data: Data) -> Finding:
    scores = np.array([[0.3, 1.0, -0.2], [0.5, 0.1, 2.0], [0.4, 0.2, 0.1]])
    mask = np.tri(3, dtype=bool)
    leaked = float(_softmax(data["apply"](scores, mask))[~mask].max())
    added = float(_softmax(data["add"](scores, mask))[~mask].max())
    return Finding(
        leaked == 0,
        {
            "largest weight on a later key": leaked,
            "with an added -oo": added,
            "why": "a product with 0 makes the score 0, whose weight is e^0",
        },
        "softmax(Q K^T / sqrt(d) + M) with M = 0 or -oo does.",
        added == 0,
        n=3,
    )


@decides("algorithm1.shape", {"mask": lambda l, d: (d, d), "query": lambda l, d: (l, d)})
def _algorithm_shape(data: Data) -> Finding:
    l, d = 1024, D
    rows = data["query"](l, d)[0]
    return Finding(
        data["mask"](l, d) == (rows, rows),
        {"mask": data["mask"](l, d), "Q K^T": (rows, rows)},
        "M is l x l, a score a pair of tokens.",
        (rows, rows) == (l, l),
        n=1,
    )


@decides("cost.as-rope", {"width": 1024, "size": D, "rotation": 3, "table": 2})
def _as_rope(data: Data) -> Finding:
    matrices = 2 * 12 * data["width"] ** 2
    rope = matrices + 2 * data["rotation"] * data["width"]
    extra = 2 * data["table"] * data["size"]
    return Finding(extra / rope < 1e-3, {"operations with RoPE": rope, "more": extra}, n=1)


decides(
    "cost.six-percent",
    _given(
        all_models,
        times=None,
        pair=("xpos", "absolute", "sinusoidal"),
        printed=("6", "additional time, percent"),
        reason="a time of other code on other machines, at another scale",
        ours="training on a CPU takes {} longer",
    ),
)(slower)


# -- blockwise causal attention -------------------------------------------------------------------


def _masked_pairs(length: int, half: int) -> int:
    """Pairs of a causal row that BCA hides."""
    place = np.arange(length)
    seen = Visibility(bca=half).sees(place[:, None], place[None, :])
    return int(length * (length + 1) // 2 - seen.sum())


@decides("bca.identity", {"length": 1024, "half": 512})
def _bca_identity(data: Data) -> Finding:
    hidden = _masked_pairs(data["length"], data["half"])
    return Finding(
        hidden == 0,
        {
            "hidden pairs": hidden,
            "at twice the length": _masked_pairs(2 * data["length"], data["half"]),
        },
        n=data["length"] * (data["length"] + 1) // 2,
    )


@decides("bca.support", {"half": 16, "visible": Visibility(bca=16)})
def _bca_support(data: Data) -> Finding:
    half, place = data["half"], np.arange(12 * data["half"])
    seen = data["visible"].sees(place[:, None], place[None, :]).sum(1)[half:]
    return Finding(
        int(seen.min()) == half + 1 and int(seen.max()) == 2 * half,
        {"keys of a row beyond the first block": [int(seen.min()), int(seen.max())], "half": half},
        n=len(seen),
    )


@decides("bca.reach", {"half": 8, "visible": Visibility(bca=8)})
def _bca_reach(data: Data) -> Finding:
    place = np.arange(12 * data["half"])
    seen = data["visible"].sees(place[:, None], place[None, :]).astype(int)
    reach, power = [], np.eye(len(place), dtype=int)
    for _ in range(4):
        power = ((power @ seen) > 0).astype(int)
        reach.append(int(power[-1].sum()))
    return Finding(
        all(b > a for a, b in itertools.pairwise(reach)),
        {"tokens reached by 1, 2, 3, 4 layers": reach},
        n=len(reach),
    )


@decides(
    "bca.resolution",
    {"gamma": PAPER, "mask": "bca 512", "length": 2048, "scales": (1.0, 1 / 8, 1 / 32)},
)
def _bca_resolution(data: Data) -> Finding:
    rows = {
        scale: [
            _resolution(data["length"], data["gamma"], Fraction(scale), mask)
            for mask in (data["mask"], None)
        ]
        for scale in data["scales"]
    }
    return Finding(
        all(masked[0] > plain[1] for masked, plain in rows.values()),
        {"R with BCA, without, by scale": {s: [low for low, _ in r] for s, r in rows.items()}},
        n=len(rows),
    )


# -- Section 4 ------------------------------------------------------------------------------------


@decides("batch.tokens", {"batch": 512, "length": TRAINED})
def _batch(data: Data) -> Finding:
    millions = data["batch"] * data["length"] / 1e6
    return Finding(about(millions, "0.5"), {"million tokens": millions}, n=1)


@decides("gpt3-medium", {"layers": 24, "width": 1024, "vocabulary": 50_257, "wanted": 350})
def _gpt3(data: Data) -> Finding:
    d = data["width"]
    millions = (data["layers"] * (12 * d * d + 13 * d) + 2 * d + data["vocabulary"] * d) / 1e6
    return Finding(
        abs(millions / data["wanted"] - 1) < data["tolerance"], {"millions": millions}, n=1
    )


@decides(
    "mask-not-decay",
    {
        "decay": "xpos_surrogate",
        "masked": {"bca": 512},
    },
)
def _mask_not_decay(data: Data) -> Finding:
    decay = check_convergence(data["decay"])
    masked = check_convergence(encoding(data["decay"], **data["masked"]))
    return Finding(
        decay.converges is False and masked.converges is True,
        {
            "exp-series of g with decay": decay.verdict,
            "with BCA": masked.verdict,
            "reason": masked.reason or decay.reason,
            "without the surrogate": theorem("rotation-divergence").hence,
        },
    )


@decides("eq13.count", {"first": lambda n: n, "last": lambda big: big - 1})
def _eq_13(data: Data) -> Finding:
    cases = [(big, n) for big in range(1, 13) for n in range(big)]
    counts = [data["last"](big) - data["first"](n) + 1 for big, n in cases]
    return Finding(
        all(c == big - n for c, (big, n) in zip(counts, cases, strict=True)),
        {"cases": len(cases)},
        n=len(cases),
    )


@decides("eq4.last", {"given": lambda n: range(n), "last": lambda n: n})
def _last(data: Data) -> Finding:
    def lacking(last: Callable[[int], int]) -> dict[int, list[int]]:
        needed = {n: {i + k for i in range(last(n) + 1) for k in (0, 1)} for n in range(2, 10)}
        return {n: sorted(needed[n] - set(data["given"](n))) for n in needed}

    printed, shorter = lacking(data["last"]), lacking(lambda n: n - 2)
    return Finding(
        not any(printed.values()),
        {"scores that are not there, by N": printed},
        "The sum to N - 2 is, whose last term takes s[N-1].",
        not any(shorter.values()),
        n=len(printed),
    )


@decides("table3.range", _tables("table3"))
def _table_3_range(data: Data) -> Finding:
    values = {(c.encoding, c.variant, c.eval_length): c.exact for c in data["table3"]}
    above = {" ".join(map(str, k)): float(v) for k, v in values.items() if v - Fraction(1, 200) > 1}
    return Finding(
        not above,
        {
            "printed above 1": above,
            "bound": theorem("resolution-bound").statement,
            "so": "an R of 0.9 needs one key with more than 0.9 of the mass on average",
        },
        n=len(values),
    )


@decides("table3.order.experiment", all_models)
def _order_experiment(data: Data) -> Finding:
    found = named(data["models"], "xpos", "rope")
    x, r = found["xpos"], found["rope"]
    pairs = {
        (k, s): [_row_resolution(m.scores[s], k * m.trained) for m in (x, r)]
        for k in (1, 2)
        for s in sorted(set(x.scores) & set(r.scores))
    }
    above = {k: [a > b for (j, _), (a, b) in pairs.items() if j == k] for k in (1, 2)}
    return of_models(
        found.values(),
        {"R of xPos, RoPE": {f"{k}x, seed {s}": v for (k, s), v in pairs.items()}},
        all(above[1]) and all(above[2]),
        "At twice the training length in every seed; at the training length in one of three.",
        all(above[2]) and sum(above[1]) == 1 and len(above[1]) == 3,
    )


# -- Section 4.4 ----------------------------------------------------------------------------------


@decides("theta0", {"theta": 0})
def _theta_0(data: Data) -> Finding:
    query, _ = rotation_with_decay()
    n, zeta = sympy.Symbol("n", real=True), sympy.Symbol("zeta", positive=True)
    at = query(n).subs(sympy.Symbol("theta", real=True), data["theta"])
    return Finding(all(map(vanishes, at - zeta**n * sympy.eye(2))), {"f_q": str(at.tolist())}, n=4)


@decides("table4.zeta0", {"zeta": 0.0, "right": 1.0})
def _zeta_zero(data: Data) -> Finding:
    at = np.arange(0, 200.0)
    rope = surrogate_scores(at, D, gamma=None)
    waves = np.cos(at[:, None] * 10_000.0 ** (-2 * np.arange(D // 2) / D))

    def with_zeta(zeta: float) -> np.ndarray:
        total: np.ndarray = (waves * np.power(zeta, at / 512)[:, None]).sum(1)
        return total

    gaps = [float(np.abs(with_zeta(z) - rope).max()) for z in (data["zeta"], data["right"])]
    return Finding(
        gaps[0] < 1e-9,
        {
            "largest gap to RoPE's g": gaps[0],
            "with zeta = 1": gaps[1],
            "g[1] with this zeta": float(with_zeta(data["zeta"])[1]),
        },
        "zeta = 1 (xi = 0) is RoPE; with zeta = 0 every score beyond distance 0 vanishes.",
        gaps[1] < 1e-9,
        n=at.size,
    )


@decides("alibi.broader", {"heads": 16, "eps": "1/100", "keys": 513})
def _broader(data: Data) -> Finding:
    found = theoretical_receptive_field("alibi", data["eps"], heads=data["heads"])
    fields = [h.tokens for h in found.heads]
    wider = sum(f > data["keys"] for f in fields)
    return Finding(
        2 * wider > len(fields),
        {"TRF(1/100) by head": fields, "wider": wider},
        "In three of 16 heads.",
        (wider, len(fields)) == (3, 16),
        n=len(fields),
    )


@decides("sliding.broader", {"window": 1024, "half": 512})
def _sliding_broader(data: Data) -> Finding:
    blocks = [data["half"] + k + 1 for k in range(data["half"])]
    return Finding(
        all(data["window"] >= k for k in blocks) and data["window"] > sum(blocks) / len(blocks),
        {"keys of BCA, mean": sum(blocks) / len(blocks), "sliding": data["window"]},
        n=len(blocks),
    )


# -- Section 5 and after --------------------------------------------------------------------------


@decides("eq14.wavelengths", {"last": lambda d: (d - 2) / d, "d": sympy.Integer(512)})
def _wavelengths(data: Data) -> Finding:
    d = sympy.Symbol("d", positive=True)
    last, limit = data["last"](data["d"]), sympy.limit(data["last"](d), d, sympy.oo)
    return Finding(
        last == 1,
        {"longest wavelength over 2 pi": float(10_000**last), "d": int(data["d"])},
        "Up to 10000^{1 - 2/d} x 2 pi; 10000 x 2 pi is the limit of large d.",
        bool(last < 1 and limit == 1),
        n=1,
    )


@decides("eq14.linear", {"code": lambda a: (sympy.cos(a), sympy.sin(a))})
def _sinusoid_linear(data: Data) -> Finding:
    a, b = sympy.symbols("a b", real=True)
    here, moved = sympy.Matrix(data["code"](a)), sympy.Matrix(data["code"](a + b))
    defect = moved - rotation(b) * here
    return Finding(all(map(vanishes, defect)), {"map": "a rotation by k theta"}, n=2)


@decides("eq15.clip", {"index": lambda distance, k: min(distance, k), "k": 16})
def _clip(data: Data) -> Finding:
    rows = [data["index"](n, data["k"]) for n in range(64)]
    return Finding(
        len(set(rows[data["k"] :])) == 1 and len(set(rows[: data["k"] + 1])) == data["k"] + 1,
        {"vectors used": len(set(rows))},
        n=len(rows),
    )


@decides("convergence.absolute", all_models)
def _convergence_absolute(data: Data) -> Finding:
    found = named(data["models"], "xpos", "sinusoidal")
    x, a = found["xpos"].losses, found["sinusoidal"].losses
    last = max(a)
    steps = {
        s: min(t for t in x if x[t][s] <= a[last][s]) / last
        for s in sorted(set(x[last]) & set(a[last]))
    }
    return of_models(
        found.values(), {"share of the steps by seed": steps}, all(v <= 0.5 for v in steps.values())
    )


@decides(
    "table7.consistent",
    lambda: {
        "table": keys("sun2023_table7"),
        "text": {
            "Layers": "24",
            "Hidden size": "1024",
            "FFN inner hidden size": "4096",
            "Attention heads": "16",
            "Batch tokens per task": "0.5M",
            "Adam epsilon": "1e-6",
            "Adam beta": "(0.9, 0.98)",
            "Learning rate": "3e-4",
            "Warmup steps": "20,000",
        },
    },
)
def _table_7(data: Data) -> Finding:
    differ = {
        k: [v, data["table"].get(k)] for k, v in data["text"].items() if data["table"].get(k) != v
    }
    return Finding(not differ, {"differ (text, table)": differ}, n=len(data["text"]))
