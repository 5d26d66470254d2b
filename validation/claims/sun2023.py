"""[S] Sun et al., ACL 2023: the quantities of its claims that need algebra, a proof or balls."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import sympy

from farfield.numerics.identities import vanishes
from farfield.numerics.resolution import attention_resolution
from farfield.theory.closed_forms import rotation, rotation_with_decay
from farfield.theory.encodings import Encoding, encoding
from farfield.validation.claims.claim import Quantities
from farfield.validation.claims.plain_attention import reached, resolution, seen_by, softmax, turned
from farfield.validation.claims.words import by_chance
from farfield.validation.harness.mechanism import Visibility
from farfield.validation.published import PrintedNumber, curve

Rule = Callable[..., Any]
Cells = Sequence[PrintedNumber]
D = 64
"""Head size of the LeX Transformer: 1024 wide, 16 heads (Table 7)."""
PAPER = Fraction(2, 5)
"""The gamma of the paper."""
FP16_MAX = 65504.0
"""The largest number of fp16; its inverse does not vanish there."""
QUERY, KEY = rotation_with_decay()
BLOCKS_OF_16 = Visibility(bca=16)
BLOCKS_OF_8 = Visibility(bca=8)


# -- resolutions of the surrogate -----------------------------------------------------------------


def surrogate(gamma: Any, **options: Any) -> Encoding:
    """g of xPos [Eq. 11] as a bias; of RoPE [Eq. 10], without decay, if gamma is None."""
    if gamma is None:
        return encoding("rope_surrogate", d=D, **options)
    return encoding("xpos_surrogate", d=D, gamma=gamma, **options)


@lru_cache(maxsize=128)
def enclosed(
    length: int, gamma: Fraction | None, scale: Fraction, mask: str | None = None
) -> tuple[float, float]:
    """Bounds of R [Eq. 4] of a row of the surrogate at a scale, without decay if gamma is None."""
    found = attention_resolution(surrogate(gamma), length, scale=scale, mask=mask).enclosure
    assert found is not None, "these rows are summed in balls"
    return found


def best_gamma(length: int, scale: Fraction) -> Fraction:
    """The gamma of a grid with the largest R, in float64."""
    at = np.arange(length)
    return max(
        (Fraction(k, 50) for k in range(1, 101, 3)),
        key=lambda g: resolution(np.exp(float(scale) * surrogate(g).bias(at)[0])),
    )


def gammas(
    gamma: Fraction = PAPER, scales: Sequence[str] = ("1", "1/8"), length: int = 512
) -> Quantities:
    """R at the best gamma tried, at one gamma and without decay, by scale."""
    by_scale = {s: Fraction(s) for s in scales}
    best = {k: best_gamma(length, s) for k, s in by_scale.items()}
    rows = {
        k: [enclosed(length, g, s) for g in (best[k], gamma, None)] for k, s in by_scale.items()
    }
    return {
        "best gamma tried": best,
        "R at the best gamma tried, at 0.4, without decay": {
            k: [low for low, _ in row] for k, row in rows.items()
        },
        "_best, at least": {k: row[0][0] for k, row in rows.items()},
        "_at gamma, at least": {k: row[1][0] for k, row in rows.items()},
        "_at gamma, at most": {k: row[1][1] for k, row in rows.items()},
        "_without, at most": {k: row[2][1] for k, row in rows.items()},
    }


def surrogates(
    scale: str, lengths: Sequence[int] = (1024,), gamma: Fraction | None = PAPER
) -> Quantities:
    """R of the xPos and RoPE surrogates at one scale, enclosed."""
    pairs = {t: [enclosed(t, g, Fraction(scale)) for g in (gamma, None)] for t in lengths}
    return {
        "R (xPos, RoPE) by tokens": {t: [x[0], r[0]] for t, (x, r) in pairs.items()},
        "scale of s": scale,
        "_apart": [x[1] < r[0] or r[1] < x[0] for x, r in pairs.values()],
        "_xPos, at least": [x[0] for x, _ in pairs.values()],
        "_RoPE, at most": [r[1] for _, r in pairs.values()],
    }


def masked_surrogate(scales: Sequence[float] = (1.0, 1 / 8, 1 / 32)) -> Quantities:
    """R with BCA and without, by scale."""
    rows = {
        s: [enclosed(2048, PAPER, Fraction(s), mask) for mask in ("bca 512", None)] for s in scales
    }
    return {
        "R with BCA, without, by scale": {s: [low for low, _ in r] for s, r in rows.items()},
        "_with, at least": {s: masked[0] for s, (masked, _) in rows.items()},
        "_without, at most": {s: plain[1] for s, (_, plain) in rows.items()},
    }


# -- abstract and introduction --------------------------------------------------------------------


def indicator(table2: Cells, table3: Cells, table5: Cells) -> Quantities:
    """R at 2048 tokens [Table 3], and perplexity there over that at 1024 [Tables 2 and 5]."""
    rates = {(c.encoding, c.variant): float(c.exact) for c in table3 if c.eval_length == 2048}
    pairs = {}
    for name in ("Transformer", "Alibi", "Roformer", "LeX"):
        values = curve(table2, dataset="PG22", encoding=name)
        growth = values[2048] / values[1024]
        pairs[name] = (rates[name, "bca=1" if name == "LeX" else ""], growth)
    home = curve(table2, dataset="PG22", encoding="LeX")[1024]
    full = curve(table5, encoding="XPos", variant="attention=full")[2048]
    pairs["LeX without BCA"] = (rates["LeX", "bca=0"], full / home)
    products = {
        f"{a}, {b}": (pairs[a][0] - pairs[b][0]) * (pairs[a][1] - pairs[b][1])
        for a, b in itertools.combinations(pairs, 2)
    }
    return {
        "R, growth": pairs,
        "by chance": by_chance([-r for r, _ in pairs.values()], [g for _, g in pairs.values()]),
        "pairs in this order": sum(p < 0 for p in products.values()),
        "_products": products,
    }


def visible_pairs(visible: Visibility = BLOCKS_OF_16) -> Quantities:
    """The visible pairs by half blocks, and the exponents of the length."""
    seen = {blocks: int(seen_by(visible, blocks * 16).sum()) for blocks in (16, 32, 64)}
    exponents = [math.log2(b / a) for a, b in itertools.pairwise(seen.values())]
    return {"visible pairs by half blocks": seen, "exponent of the length": exponents}


def squared_steps(x: Sequence[Fraction]) -> Fraction:
    """The sum of the squared steps of a row."""
    return sum(((b - a) ** 2 for a, b in itertools.pairwise(x)), Fraction(0))


def orders(rate: Rule = resolution, steps: Rule = squared_steps) -> Quantities:
    """R of the weights 3, 2, 1 in every order, the score after them unchanged."""
    rows = {k: [*map(Fraction, k), Fraction(0)] for k in itertools.permutations((3, 2, 1))}
    found = {k: rate(x) for k, x in rows.items()}
    best = max(found, key=lambda k: found[k])
    return {
        "R of the decreasing order": found[3, 2, 1],
        "order with the largest R": best,
        "its R": found[best],
        "_R": list(found.values()),
        "_by steps": [(x[0] ** 2 - x[-1] ** 2 + steps(x)) / (2 * 6**2) for x in rows.values()],
    }


# -- Section 2 ------------------------------------------------------------------------------------


def scores_at(mechanism: str, place: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Attention scores of one random head on contents x at positions, shape (T, T)."""
    width, random = x.shape[1], np.random.default_rng(1)
    wq, wk = random.normal(size=(2, width, width)) / math.sqrt(width)
    gap = np.abs(place[:, None] - place[None, :])
    if mechanism == "sinusoidal":
        angle = place[:, None] / 10_000.0 ** (2 * np.arange(width // 2) / width)
        x = x + np.concatenate([np.cos(angle), np.sin(angle)], axis=1)
    if mechanism == "learned":
        x = x + random.normal(size=(512, width))[place.astype(int)]
    q, k = x @ wq, x @ wk
    if mechanism in ("rope", "lex"):
        decay = float(mechanism == "lex")
        q, k = turned(q, place, decay), turned(k, place, -decay)
    scores: np.ndarray = q @ k.T / math.sqrt(width)
    if mechanism == "alibi":
        scores = scores - 0.125 * gap
    if mechanism == "t5":
        scores = scores + random.normal(size=32)[np.minimum(gap, 31).astype(int)]
    return scores


def without_positions(x: np.ndarray, causal: bool, layers: int) -> np.ndarray:
    """Layers of attention without positions, with a residual."""
    width, random = x.shape[1], np.random.default_rng(2)
    for _ in range(layers):
        wq, wk, wv = random.normal(size=(3, width, width)) / math.sqrt(width)
        s = (x @ wq) @ (x @ wk).T / math.sqrt(width)
        x = x + softmax(np.where(np.tri(len(x), dtype=bool), s, -np.inf) if causal else s) @ (
            x @ wv
        )
    return x


ORDERED = np.array([3, 0, 6, 1, 7, 2, 5, 4, 8])
"""Another order of nine tokens, the last in its place."""


def permuted_outputs(causal: bool = True, layers: int = 2, without: bool = False) -> Quantities:
    """How the last output changes with the order of the tokens before it."""
    x = np.random.default_rng(0).normal(size=(9, 16))

    def change(causal: bool, layers: int) -> float:
        here, there = (without_positions(y, causal, layers)[-1] for y in (x, x[ORDERED]))
        return float(np.abs(here - there).max())

    return {
        "change of the last output under a permutation": change(causal, layers),
        "without a causal mask": change(without, 2),
        "one causal layer": change(True, 1),
    }


def permuted_scores(
    mechanisms: Sequence[str] = ("sinusoidal", "learned", "rope", "t5", "alibi", "lex"),
) -> Quantities:
    """How the scores change with the order of the tokens, by mechanism."""
    x, place = np.random.default_rng(0).normal(size=(9, 16)), np.arange(9.0)
    changes = {}
    for name in mechanisms:
        here = scores_at(name, place, x)[np.ix_(ORDERED, ORDERED)]
        changes[name] = float(np.abs(scores_at(name, place, x[ORDERED]) - here).max())
    return {"largest change of a score": changes}


def translated(mechanism: str) -> Quantities:
    """How the scores change where padding in front moves the positions [Eq. 2]."""
    x, place, shifts = np.random.default_rng(0).normal(size=(20, 16)), np.arange(20.0), (1, 37, 200)
    here = scores_at(mechanism, place, x)
    gaps = [float(np.abs(scores_at(mechanism, place + t, x) - here).max()) for t in shifts]
    return {"largest change of a score under shifts by 1, 37, 200": max(gaps), "n": len(gaps)}


def marks(table1: Cells, table2: Cells) -> Quantities:
    """Perplexity at 8192 over 1024 tokens, from the worst mark of Table 1 to the best."""
    names = {
        "Transformer (Sinusoidal)": "Transformer",
        "PaLM / Roformer (RoPE)": "Roformer",
        "BLOOM / Alibi": "Alibi",
        "LeX Transformer (Ours)": "LeX",
    }
    ranks = {"double_no": 0, "no": 1, "yes": 2, "double_yes": 3}
    printed = {c.encoding: c.printed for c in table1 if c.metric == "length_extrapolation"}
    growth = {}
    for name in sorted(names, key=lambda k: ranks[printed[k]]):
        values = curve(table2, dataset="PG22", encoding=names[name])
        growth[name] = values[8192] / values[1024]
    return {
        "perplexity at 8192 over 1024 tokens (PG22)": growth,
        "_marks": [ranks[printed[k]] for k in growth],
    }


# -- Section 3.1 and 3.2 --------------------------------------------------------------------------


def signs(summand: Rule = lambda a, b: a * (a - b)) -> Quantities:
    """A summand of R at a fall, a rise and an equal step."""
    y, z = sympy.symbols("y z", positive=True)
    above, below, equal = (sympy.expand(summand(a, b)) for a, b in ((y + z, y), (y, y + z), (y, y)))
    return {
        "at x = y + z, at y after y + z, at equality": [above, below, equal],
        "_signs": [bool(above.is_positive), bool(below.is_negative), bool(equal == 0)],
    }


def oscillation(gamma: float | None = 0.4) -> Quantities:
    """How much the surrogates of RoPE and xPos vary from 1000 to 4000 tokens."""
    at = np.arange(1000, 4001)
    rows = {
        name: surrogate(g).bias(at)[0] / (D / 2) for name, g in (("RoPE", None), ("xPos", gamma))
    }
    variation = {k: float(np.abs(np.diff(v)).sum()) for k, v in rows.items()}
    spread = {k: float(np.ptp(v)) for k, v in rows.items()}
    return {
        "total variation of g/(d/2)": variation,
        "max minus min": spread,
        "_variation": variation["xPos"] / variation["RoPE"],
        "_spread": spread["xPos"] / spread["RoPE"],
        "n": at.size,
    }


def pseudo_inner(product: Rule = lambda x, y: x * sympy.conjugate(y)) -> Quantities:
    """The real part of a product of complex numbers, and the inner product of their parts."""
    a, b, c, d = sympy.symbols("a b c d", real=True)
    value = sympy.re(sympy.expand(product(a + sympy.I * b, c + sympy.I * d)))
    return {"Re(x conj(y))": value, "_gap": value - (a * c + b * d)}


def offsets_alone(query: Rule = QUERY, key: Rule = KEY) -> Quantities:
    """f_q(n + r)^T f_k(n) - f_q(r)^T f_k(0) of pairs of coordinates."""
    n, r = sympy.symbols("n r", real=True)
    defect = query(n + r).T * key(n) - query(r).T * key(sympy.Integer(0))
    return {"entries of f_q(n + r)^T f_k(n) - f_q(r)^T f_k(0) that are 0": [*map(vanishes, defect)]}


def exponent_of_product(
    key: Rule = lambda xi, theta, n: (-xi + sympy.I * theta) * n,
) -> Quantities:
    """The exponent of the product of query and key."""
    xi, theta, n, r = sympy.symbols("xi theta n r", real=True)
    rate = xi + sympy.I * theta
    exponent = rate * (n + r) + sympy.expand(sympy.conjugate(key(xi, theta, n)))
    return {
        "exponent of the product": sympy.expand(exponent),
        "_gap": sympy.exp(exponent) - sympy.exp(rate * r),
    }


def map_of_query(**values: Any) -> sympy.Matrix:
    """The map of Eq. 8 at the position n, with some symbols replaced."""
    symbols = {
        "zeta": sympy.Symbol("zeta", positive=True),
        "theta": sympy.Symbol("theta", real=True),
    }
    return QUERY(sympy.Symbol("n", real=True)).subs({symbols[k]: v for k, v in values.items()})


def without_decay(zeta: int = 1) -> Quantities:
    """The map of Eq. 8 less a rotation by n theta."""
    theta, n = sympy.symbols("theta n", real=True)
    defect = map_of_query(zeta=zeta) - rotation(theta * n)
    return {"entries equal to those of a rotation": [*map(vanishes, defect)]}


def without_rotation(theta: int = 0) -> Quantities:
    """The map of Eq. 8 less zeta^n."""
    n, zeta = sympy.Symbol("n", real=True), sympy.Symbol("zeta", positive=True)
    at = map_of_query(theta=theta)
    return {"f_q": str(at.tolist()), "_defect": list(at - zeta**n * sympy.eye(2))}


def steps_of_cosine(function: Rule = np.cos) -> Quantities:
    """Steps of pi/24 from 0 to 2 pi."""
    steps = np.diff(function(np.arange(49) * np.pi / 24))
    down, up = int((steps[:24] < 0).sum()), int((steps[24:] > 0).sum())
    return {"steps down before pi, up after": [down, up], "n": len(steps)}


def angles(
    sign: int = -1, half: Rule = lambda x, phi: 2 * sympy.sin(x + phi / 2) * sympy.sin(phi / 2)
) -> Quantities:
    """Pairs of angles at which Eq. 9 fails; cos x - cos(x + phi) = 2 sin(x + phi/2) sin(phi/2)."""
    x, phi = sympy.symbols("x phi", real=True)
    grid = [(j, k) for j in range(13) for k in range(13) if 2 * j + k <= 24]

    def fails(sign: int) -> int:
        sides = (
            (math.cos((j + sign * k) * math.pi / 12), math.cos(j * math.pi / 12)) for j, k in grid
        )
        return sum(left > right + 1e-12 for left, right in sides)

    return {
        "pairs that fail": fails(sign),
        "there": [math.cos(0), round(math.cos(math.pi / 2), 12)],
        "_opposite": fails(1),
        "_identity": sympy.cos(x) - sympy.cos(x + phi) - half(x, phi),
        "n": len(grid),
    }


def planes(sizes: Sequence[int] = tuple(range(1, D // 2 + 1)), size: Any = 3) -> Quantities:
    """How far the score over g is from constant, for planes of some sizes and of one size."""
    plane, at = np.arange(D // 2), np.arange(100.0)
    zeta = (plane / (D // 2) + 0.4) / 1.4
    terms = np.cos(at[:, None] * 10_000.0 ** (-2 * plane / D)) * zeta ** (at[:, None] / 512)
    spreads = [
        float(np.ptp(terms @ (np.asarray(s, float) * np.ones(D // 2)) / terms.sum(1)))
        for s in (sizes, size)
    ]
    return {
        "largest minus least ratio to g": spreads[0],
        "_planes of one size": spreads[1],
        "n": at.size,
    }


def terms_of_sum(printed: int = D // 2 + 1, coordinates: int = D) -> Quantities:
    """How many terms Eq. 10 has, and how many planes there are."""
    heights = [float(surrogate(PAPER, dialect=k).bias([0])[0, 0]) for k in ("printed", "code")]
    return {
        "terms as printed": printed,
        "planes of d coordinates": coordinates // 2,
        "g[0] (printed, algorithm)": heights,
        "_g[0] of the algorithm": heights[1],
    }


def large_theta(base: float = 10_000.0) -> Quantities:
    """The share of the variation of the waves in the half with the larger theta."""
    at = np.arange(4001.0)
    waves = np.cos(at[:, None] * base ** (-2 * np.arange(D // 2) / D))
    variation = np.abs(np.diff(waves, axis=0)).sum(0)
    share = float(variation[: D // 4].sum() / variation.sum())
    return {"share of the half with the larger theta": share, "n": D // 2}


def zetas(gamma: Fraction = PAPER, theta: Rule = lambda i: Fraction(1, 10**i)) -> Quantities:
    """zeta_i [Eq. 11], and its steps times those of any theta_i that falls."""
    half = D // 2
    zeta = [(Fraction(i, half) + gamma) / (1 + gamma) for i in range(half + 1)]
    return {
        "zeta_0, zeta_1, zeta_{d/2}": [zeta[0], zeta[1], zeta[-1]],
        "least": min(zeta),
        "largest": max(zeta),
        "_products": [
            (zeta[a] - zeta[b]) * (theta(a) - theta(b))
            for a, b in itertools.combinations(range(half + 1), 2)
        ],
        "_zeta": zeta,
    }


def powers_near_one(far: int = 4000, near: int = 8) -> Quantities:
    """How far the powers of zeta are from 1: of the last plane, the first, and i = d/2."""

    def power(i: int, n: int) -> float:
        return float(((i / (D / 2) + 0.4) / 1.4) ** (n / 512))

    last, first = power(D // 2 - 1, far), power(0, near)
    return {
        "last plane at 4000": last,
        "first plane at 8": first,
        "last plane at 8192": power(D // 2 - 1, 8192),
        "_1 minus the last": 1 - last,
        "_1 minus the first": 1 - first,
        "_i = d/2": power(D // 2, far),
        "n": far,
    }


def fits_fp16(base: int, centred: bool, gamma: str | int = "2/5", length: int = 8192) -> Quantities:
    """The powers of zeta_0 in fp16, as given and as the released code has them."""
    zeta = float(Fraction(gamma)) / (1 + float(Fraction(gamma)))
    farthest = (length / 2 if centred else length) / base
    with np.errstate(over="ignore", divide="ignore"):
        powers = np.exp(np.log(zeta) * np.array([-farthest, farthest, -length / 2 / 512]))
    largest, smallest, code = map(float, powers)
    least = FP16_MAX ** (-1 / farthest)
    return {
        "zeta_0": zeta,
        "largest power": largest,
        "smallest power": smallest,
        "fits from gamma =": least / (1 - least),
        "_fits": largest <= FP16_MAX,
        "_fits as released": code <= FP16_MAX,
    }


# -- Algorithm 1 ----------------------------------------------------------------------------------


def rotated_pairs(rot: Rule = lambda x: [-x[1], x[0], -x[3], x[2]]) -> Quantities:
    """The rotation of Algorithm 1 less that of two pairs of coordinates."""
    x, (a, b) = sympy.symbols("x0:4", real=True), sympy.symbols("a b", real=True)
    found = [
        q * sympy.cos(t) + r * sympy.sin(t) for q, r, t in zip(x, rot(x), (a, a, b, b), strict=True)
    ]
    wanted = [*(rotation(a) * sympy.Matrix(x[:2])), *(rotation(b) * sympy.Matrix(x[2:]))]
    return {
        "first": found[0],
        "_defect": [p - q for p, q in zip(found, wanted, strict=True)],
    }


def masked_weights(
    apply: Rule = lambda s, m: s * m, add: Rule = lambda s, m: np.where(m, s, -np.inf)
) -> Quantities:
    """The largest weight on a later key, under a mask that multiplies and one that adds."""
    scores = np.array([[0.3, 1.0, -0.2], [0.5, 0.1, 2.0], [0.4, 0.2, 0.1]])
    mask = np.tri(3, dtype=bool)
    leaks = [float(softmax(rule(scores, mask))[~mask].max()) for rule in (apply, add)]
    return {"largest weight on a later key": leaks[0], "with an added -oo": leaks[1], "n": 3}


def shapes(mask: Rule = lambda l, d: (d, d), query: Rule = lambda l, d: (l, d)) -> Quantities:
    """The shapes of the mask and of the scores at l = 1024."""
    rows = query(1024, D)[0]
    return {"mask": mask(1024, D), "Q K^T": (rows, rows), "_l x l": (1024, 1024), "n": 1}


# -- blockwise causal attention -------------------------------------------------------------------


def hidden_pairs(half: int = 512) -> Quantities:
    """How many pairs of a causal row BCA hides."""
    pairs = {n: n * (n + 1) // 2 for n in (1024, 2048)}
    hidden = [int(p - seen_by(Visibility(bca=half), n).sum()) for n, p in pairs.items()]
    return {"hidden pairs": hidden[0], "at twice the length": hidden[1], "n": pairs[1024]}


def keys_of_rows(visible: Visibility = BLOCKS_OF_16) -> Quantities:
    """The keys of the rows beyond the first block."""
    seen = seen_by(visible, 12 * 16).sum(1)[16:]
    counts = [int(seen.min()), int(seen.max())]
    return {"keys of a row beyond the first block": counts, "half": 16, "n": len(seen)}


def reach_of_layers(visible: Visibility = BLOCKS_OF_8) -> Quantities:
    """How many tokens the last query reaches through 1 to 4 layers."""
    seen = seen_by(visible, 12 * 8)
    return {"tokens reached by 1, 2, 3, 4 layers": [reached(seen, k) for k in range(1, 5)]}


# -- Section 4 and after --------------------------------------------------------------------------


def terms_of_eq13(first: Rule = lambda n: n, last: Rule = lambda big: big - 1) -> Quantities:
    """How many terms the sum of Eq. 13 has, less N - n."""
    cases = [(big, n) for big in range(1, 13) for n in range(big)]
    gaps = [last(big) - first(n) + 1 - (big - n) for big, n in cases]
    return {"cases": len(cases), "_gaps": gaps}


def lacking_scores(given: Rule = lambda n: range(n), last: Rule = lambda n: n) -> Quantities:
    """The scores that the sum of Eq. 4 takes and Eq. 3 does not give."""

    def lacking(last: Rule) -> dict[int, list[int]]:
        needed = {n: {i + k for i in range(last(n) + 1) for k in (0, 1)} for n in range(2, 10)}
        return {n: sorted(needed[n] - set(given(n))) for n in needed}

    printed = lacking(last)
    return {
        "scores that are not there, by N": printed,
        "_to N - 2": lacking(lambda n: n - 2),
        "n": len(printed),
    }


def surrogate_with_zeta(zeta: float = 0.0, right: float = 1.0) -> Quantities:
    """The largest gap to RoPE's g at 0 .. 199, with a zeta of all planes."""
    at = np.arange(200)
    rope = surrogate(None).bias(at)[0]
    waves = np.cos(at[:, None] * 10_000.0 ** (-2 * np.arange(D // 2) / D))
    rows = [(waves * np.power(z, at / 512)[:, None]).sum(1) for z in (zeta, right)]
    return {
        "largest gap to RoPE's g": float(np.abs(rows[0] - rope).max()),
        "with zeta = 1": float(np.abs(rows[1] - rope).max()),
        "g[1] with this zeta": float(rows[0][1]),
        "n": at.size,
    }


def keys_of_block(window: int = 1024, half: int = 512) -> Quantities:
    """The keys of the rows of a block, and of a sliding window."""
    keys = [half + k + 1 for k in range(half)]
    return {
        "keys of BCA, mean": sum(keys) / len(keys),
        "sliding": window,
        "_keys of BCA": keys,
        "_most keys of BCA": max(keys),
    }


def wavelengths(last: Rule = lambda d: (d - 2) / d) -> Quantities:
    """The exponent of the last plane at d = 512, and in the limit."""
    d, at = sympy.Symbol("d", positive=True), last(sympy.Integer(512))
    return {
        "longest wavelength over 2 pi": float(10_000**at),
        "d": 512,
        "_exponent": at,
        "_limit": sympy.limit(last(d), d, sympy.oo),
    }


def shifted_sinusoid(code: Rule = lambda a: (sympy.cos(a), sympy.sin(a))) -> Quantities:
    """A sinusoid further on, less its rotation."""
    a, b = sympy.symbols("a b", real=True)
    defect = sympy.Matrix(code(a + b)) - rotation(b) * sympy.Matrix(code(a))
    return {"_defect": list(defect)}


def clipped(index: Rule = lambda distance, k: min(distance, k)) -> Quantities:
    """The vectors that distances 0 .. 63 take with k = 16."""
    rows = [index(n, 16) for n in range(64)]
    return {
        "vectors used": len(set(rows)),
        "_within 16, beyond": [len(set(rows[:17])), len(set(rows[16:]))],
        "n": len(rows),
    }
