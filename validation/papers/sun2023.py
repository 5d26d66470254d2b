"""[S] Sun et al., ACL 2023: claims on resolution, rotation, xPos (LeX), blockwise attention."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import sympy
from flint import arb, fmpq

from farfield.numerics.masks import Mask
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.theory.encodings import Encoding, encoding
from farfield.theory.functions.balls import outward, precision, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.values import compile_ball
from farfield.validation.papers.claim import (
    EXPERIMENT,
    IDENTITY,
    NUMBER,
    PRINTED,
    PROOF,
    PROPERTY,
    Finding,
    claim,
    rise_of,
)
from farfield.validation.papers.plain_attention import (
    decided,
    of_layer,
    resolution,
    seen_by,
    softmax,
)
from farfield.validation.papers.tables import curve, curves, table
from farfield.validation.papers.trained_models import Missing, Model, named, unmasked
from farfield.validation.papers.words import (
    BY_CHANCE,
    EXPLODES,
    about,
    by_chance,
    falls,
    increases,
    opposed,
    rank_correlation,
    stays,
)
from farfield.validation.results import LAST, WHOLE

LENGTHS, TABLE5 = ("sun2023_table2", "sun2023_table6"), "sun2023_table5"
OTHERS, BCA = ("Transformer", "Alibi", "Roformer"), "attention=BCA"
D = 64
"""Head size of the LeX Transformer: 1024 wide, 16 heads (Table 7)."""
PAPER = Fraction(2, 5)
"""The gamma of the paper."""
BITS = 64
"""Of the balls of surrogates."""
ROW = {PAPER: 2048, None: 2048}
"""Keys of the longest row that is asked of a surrogate, by gamma; of others 512."""
FP16_MAX = 65504.0
"""The largest number of fp16; its inverse does not vanish there."""

SECTIONS = (
    "Abstract",
    "1 Introduction",
    "2.1 Order Variance",
    "2.2 Translation Invariance",
    "2.3 Length Extrapolation",
    "3.1 Attention Resolution",
    "3.2 Improve Resolution by Position Encoding",
    "3.3 Blockwise Causal Attention",
    "4.1 Pre-training",
    "4.2 Language Modeling",
    "4.3 Measuring Resolution",
    "4.4.1 Rotation Computation",
    "4.4.2 Blockwise Causal Attention",
    "5.1 Long-Sequence Transformers",
    "5.2.1 Absolute Position Embedding",
    "5.2.2 Relative Position Embedding",
    "6 Conclusion",
    "Limitations",
    "A Additional Experiments",
    "B Hyperparameters for Pre-Training",
)
"""Of the paper, in order."""
SCALE = "24 layers, 1024 wide, 16 heads, trained on 1024 tokens"
"""Of the models of the paper."""


# -- surrogates, differences and losses -----------------------------------------------------------


def surrogate(gamma: Any, **options: Any) -> Encoding:
    """g of xPos [Eq. 11] as a bias; of RoPE [Eq. 10], without decay, if gamma is None."""
    if gamma is None:
        return encoding("rope_surrogate", d=D, **options)
    return encoding("xpos_surrogate", d=D, gamma=gamma, **options)


@lru_cache(maxsize=8)
def scores(gamma: Fraction | None) -> np.ndarray:
    """The surrogate at the distances of the longest row of a claim, in balls."""
    bias = compile_ball(surrogate(gamma).head(1))
    with precision(BITS):
        balls = [to_arb(bias({n: fmpq(i)})) for i in range(ROW.get(gamma, 512))]
    return np.array(balls, dtype=object)


def weights(length: int, gamma: Fraction | None, scale: Fraction) -> np.ndarray:
    """The weights of a row of the surrogate at a scale, in balls."""
    s = scores(gamma)[:length]
    with precision(BITS):
        rate = arb(scale.numerator) / scale.denominator
        return np.array([(rate * (x - s[0])).exp() for x in s], dtype=object)


def enclosed(length: int, gamma: Fraction | None, scale: Fraction) -> tuple[float, float]:
    """Bounds of R [Eq. 4] of a row of the surrogate at a scale, without decay if gamma is None."""
    with precision(BITS):
        return outward(resolution(weights(length, gamma, scale)))


def in_blocks(half: int, gamma: Fraction, scale: Fraction) -> tuple[float, float]:
    """Bounds of the mean of R over the rows of a block with BCA: what a query sees ends there."""
    x = weights(2 * half, gamma, scale)
    with precision(BITS):
        gained, total = (x[:-1] * (x[:-1] - x[1:])).cumsum(), x.cumsum()
        rows = (gained[half - 1 :] + x[half:] ** 2) / total[half:] ** 2
        return outward(rows.sum() / half)


def difference(one: str, other: str, *names: str) -> dict[str, tuple[int, float]]:
    """The length, and one printed perplexity minus another there, by data set and length."""
    first, second = (curves(*names, by="dataset", encoding=e) for e in (one, other))
    return {
        f"{data} {one} {n}": (n, v - second[data][n])
        for data, c in first.items()
        for n, v in c.items()
    }


def without_positions(x: np.ndarray, causal: bool, layers: int) -> np.ndarray:
    """Layers of attention without positions, with a residual."""
    width, random = x.shape[1], np.random.default_rng(2)
    for _ in range(layers):
        wq, wk, wv = random.normal(size=(3, width, width)) / math.sqrt(width)
        s = (x @ wq) @ (x @ wk).T / math.sqrt(width)
        masked = np.where(np.tri(len(x)) > 0, s, -np.inf) if causal else s
        x = x + softmax(masked) @ (x @ wv)
    return x


def mean_loss(model: Model) -> dict[int, float]:
    """The mean training loss by seed."""
    losses = [*model.by("training", "step", "nats").values()]
    return {seed: float(np.mean([at[seed] for at in losses])) for seed in losses[0]}


# -- the claims, by section -----------------------------------------------------------------------


@claim(
    "abstract.maximize",
    "Abstract",
    quote=(
        "we introduce a relative position embedding to explicitly maximize attention resolution"
    ),
    says="No other gamma gives the surrogate of xPos a larger R than the paper's 0.4.",
    refuted_by="a gamma with a larger R",
    kind=NUMBER,
    label="certified",
    data="R(g) of rows of 512 tokens at the scales 1 and 1/8, d = 64, in balls",
    corrected="0.4 raises R above that of RoPE; another gamma raises it further, at each scale.",
    about="xpos",
)
def best_gamma() -> Finding:
    tried = [Fraction(k, 5) for k in (1, 2, 4, 6, 8)]
    biases, rows = {g: surrogate(g).bias(np.arange(512))[0] for g in tried}, {}
    for scale in (Fraction(1), Fraction(1, 8)):
        rate = {g: resolution(np.exp(float(scale) * b)) for g, b in biases.items()}
        best = max(tried, key=rate.__getitem__)
        rows[scale] = {str(g): enclosed(512, g, scale) for g in (best, PAPER, None)}
    order = [[*row.values()] for row in rows.values()]
    return Finding(
        all(best[0] <= paper[1] for best, paper, _ in order),
        {"R enclosed at the best gamma tried, at 2/5, without decay, by scale": rows},
        instead=all(best[0] > p[1] and p[0] > without[1] for best, p, without in order),
        n=len(rows),
    )


@claim(
    "indicator.printed",
    "Abstract",
    place="Table 3 against Tables 2 and 5",
    quote="We define attention resolution as an indicator of extrapolation",
    says=(
        "At 2048 tokens the model with the larger printed R has the smaller growth of perplexity."
    ),
    refuted_by="two models in the other order",
    kind=PRINTED,
    label="measured",
    data="five models, PG22, from 1024 to 2048 tokens",
    corrected="It is so for 8 of the 10 pairs; chance does as well in one of fifteen orders.",
    scale=SCALE,
    exhibits="table2 table3 table5",
)
def larger_resolution_in_print() -> Finding:
    resolutions = curves("sun2023_table3", by="encoding variant")
    pg22 = curves("sun2023_table2", by="encoding", dataset="PG22")
    growth = {k: v[2048] / v[1024] for k, v in pg22.items()}
    full = curve(TABLE5, "XPos", "attention=full")
    growth = {"LeX bca=1" if k == "LeX" else k: v for k, v in growth.items()}
    growth["LeX bca=0"] = full[2048] / pg22["LeX"][1024]
    rate = {k: -resolutions[k][2048] for k in growth}
    other, chance = opposed(rate, growth), by_chance([*rate.values()], [*growth.values()])
    return Finding(
        not other,
        {"R": {k: -v for k, v in rate.items()}, "growth": growth, "other order": other}
        | {"by chance": chance},
        instead=len(other) == 2 and about(chance, "0.07"),
        n=math.comb(len(rate), 2),
    )


@claim(
    "indicator.experiment",
    "Abstract",
    quote="We define attention resolution as an indicator of extrapolation",
    says=(
        "Over trained models a larger measured R at twice the training length goes with a "
        "smaller growth of perplexity, beyond chance."
    ),
    refuted_by="a rank correlation that chance reaches in one of twenty orders",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs",
)
def larger_resolution_in_training() -> Finding:
    scores = {"protocol": "scores"}
    tested = unmasked(lambda m: bool(m.lines.filter(**scores, length=2 * m.trained).height))
    rates = [m.means("scores", "length", "resolution")[2 * m.trained] for m in tested]
    negative, growth = [-r for r in rates], [m.increase for m in tested]
    chance = by_chance(negative, growth)
    return Finding(
        chance < BY_CHANCE,
        {
            "R": {m.name: r for m, r in zip(tested, rates, strict=True)},
            "Spearman rank correlation of -R and growth": rank_correlation(negative, growth),
            "by chance": chance,
        },
        models=tested,
    )


@claim(
    "figure1.rapidly",
    "1 Introduction",
    place="Figure 1",
    quote=(
        "the perplexity of previous Transformers increases rapidly when the input sequence "
        "is getting longer"
    ),
    says="The perplexity of each previous Transformer at least doubles from 1024 to 8192 tokens.",
    refuted_by="one with a smaller increase",
    kind=PRINTED,
    label="measured",
    data="Table 2",
    corrected=(
        "Those of Transformer and Roformer do, at least seventeenfold; Alibi's rises by a fifth."
    ),
    scale=SCALE,
    exhibits="fig1",
    about="sinusoidal alibi rope",
)
def previous_transformers() -> Finding:
    rise = increases(curves("sun2023_table2", by="dataset encoding", encoding=OTHERS), 1024)
    alibi = [r for name, r in rise.items() if "Alibi" in name]
    others = [r for name, r in rise.items() if "Alibi" not in name]
    return Finding(
        min(rise.values()) >= EXPLODES,
        {"increase": rise},
        instead=min(others) > 16 and min(alibi) > 0.15 and max(alibi) < 0.25,
        n=len(rise),
    )


@claim(
    "opposite",
    "1 Introduction",
    place="Figure 1",
    quote="has an opposite tendency compared with others",
    says=(
        "At every doubling beyond 1024 tokens LeX's perplexity falls and those of the others rise."
    ),
    refuted_by="a doubling at which LeX rises or another falls",
    kind=PRINTED,
    label="measured",
    data="Table 2",
    corrected="From 2048 tokens on; Alibi's falls too from 1024 to 2048.",
    scale=SCALE,
    exhibits="fig1",
)
def opposite_tendencies() -> Finding:
    against = []
    for name, c in curves("sun2023_table2", by="encoding dataset").items():
        steps = {b: c[b] - c[a] for a, b in pairwise(c) if a >= 1024}
        lex = name.startswith("LeX")
        against += [f"{name} at {n}" for n, d in steps.items() if (d >= 0 if lex else d < 0)]
    return Finding(
        not against,
        {"against": against},
        instead=all(k.startswith("Alibi") and k.endswith("2048") for k in against),
        n=4 * 3 * 2,
    )


@claim(
    "eq4.monotonicity",
    "1 Introduction",
    place="Eq. 4",
    quote="we propose attention resolution as a metric to measure position monotonicity",
    says="Read as: of the orders of the same scores, the decreasing one has the largest R.",
    refuted_by="another order with a larger R",
    kind=PROOF,
    label="theorem",
    data="the weights 3, 2, 1 in every order, 0 after them, exact",
    corrected="2 R = P_0^2 - P_{N+1}^2 + sum (P_i - P_{i+1})^2: R rewards steps, upwards too.",
)
def order_of_weights() -> Finding:
    rows = {k: [*map(Fraction, k), Fraction(0)] for k in permutations((3, 2, 1))}
    rates = {k: resolution(x) for k, x in rows.items()}
    best = max(rates, key=rates.__getitem__)
    by_steps = {
        k: (x[0] ** 2 - x[-1] ** 2 + sum((b - a) ** 2 for a, b in pairwise(x))) / (2 * 6**2)
        for k, x in rows.items()
    }
    return Finding(
        rates[best] <= rates[3, 2, 1],
        {
            "R of the decreasing order": rates[3, 2, 1],
            "order with the largest R": best,
            "its R": rates[best],
        },
        instead=rates == by_steps,
        n=len(rows),
    )


@claim(
    "eq1.bag-of-words",
    "2.1 Order Variance",
    quote="A transformer without position information is actually a bag-of-word model",
    says=(
        "Without positions the last output does not depend on the order of the tokens before it."
    ),
    refuted_by="a permutation that changes it",
    kind=PROPERTY,
    label="measured",
    data="two random causal layers on 9 tokens",
    corrected="So it is without a causal mask, or in one layer; two causal layers see the order.",
)
def order_of_tokens() -> Finding:
    x, order = np.random.default_rng(0).normal(size=(9, 16)), [3, 0, 6, 1, 7, 2, 5, 4, 8]

    def change(causal: bool, layers: int) -> float:
        last = [without_positions(rows, causal, layers)[-1] for rows in (x, x[order])]
        return float(np.abs(last[0] - last[1]).max())

    causal, free, one = change(True, 2), change(False, 2), change(True, 1)
    return Finding(
        causal < 1e-9,
        {
            "change of the last output under a permutation": causal,
            "without a causal mask": free,
            "one causal layer": one,
        },
        instead=max(free, one) < 1e-9,
        n=1,
    )


@claim(
    "table1.extrapolation",
    "2.3 Length Extrapolation",
    place="Table 1, right column",
    quote="Position modeling capabilities of Transformer variants for language modeling",
    says="The marks of length extrapolation are the order of the growth of perplexity.",
    refuted_by="two models in the other order",
    kind=PRINTED,
    label="measured",
    data="the marks against PG22 in Table 2",
    scale=SCALE,
    exhibits="table1",
)
def marks_of_extrapolation() -> Finding:
    names = {
        "Transformer (Sinusoidal)": "Transformer",
        "PaLM / Roformer (RoPE)": "Roformer",
        "BLOOM / Alibi": "Alibi",
        "LeX Transformer (Ours)": "LeX",
    }
    marks = {
        c.encoding: c.printed
        for c in table("sun2023_table1")
        if c.encoding in names and c.metric == "length_extrapolation"
    }
    ranks = ("double_no", "no", "yes", "double_yes")
    pg22 = curves("sun2023_table2", by="encoding", dataset="PG22")
    order = sorted(names, key=lambda k: ranks.index(marks[k]))
    growth = {k: pg22[names[k]][8192] / pg22[names[k]][1024] for k in order}
    return Finding(
        [marks[k] for k in order] == [*ranks] and falls(growth.values()),
        {"perplexity at 8192 over 1024 tokens (PG22), by mark": growth},
        n=len(growth),
    )


@claim(
    "table1.extrapolation.experiment",
    "2.3 Length Extrapolation",
    place="Table 1, right column",
    quote="Position modeling capabilities of Transformer variants for language modeling",
    says="In trained models the four growths of perplexity are in the order of the marks.",
    refuted_by="two of the four in the other order",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs",
    corrected="ALiBi and xPos with BCA stay within 2 %, the other two at least double.",
    exhibits="table1",
)
def marks_in_training() -> Finding:
    tested = named("sinusoidal", "rope", "alibi", "xpos + BCA")
    rise = [m.increase for m in tested]
    return Finding(
        falls(rise),
        {"largest increase": {m.name: m.increase for m in tested}},
        instead=min(rise[:2]) >= EXPLODES and max(rise[2:]) < 0.02,
        models=tested,
    )


@claim(
    "rope.experiment",
    "2.3 Length Extrapolation",
    quote="almost every position embedding's performance drops significantly",
    says=(
        "Trained with sinusoidal positions or with RoPE a model at least doubles its "
        "perplexity beyond the training length."
    ),
    refuted_by="one of the two with a smaller increase",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs",
    about="sinusoidal rope",
)
def rotation_in_training() -> Finding:
    return rise_of(named("sinusoidal", "rope"), lambda r: r >= EXPLODES)


@claim(
    "alibi-above-rope",
    "2.3 Length Extrapolation",
    place="Table 2",
    quote="Table 2 shows that Alibi's perplexity is larger than ROPE by about 0.3",
    says="At the training length Alibi's perplexity is larger than RoPE's by about 0.3.",
    refuted_by="a data set with another difference",
    kind=PRINTED,
    label="measured",
    data="Table 2 at 1024 tokens",
    corrected="0.66 on PG22 and 0.05 on QMSum at 1024 tokens (their mean is about 0.36).",
    scale=SCALE,
    exhibits="table2",
    about="alibi rope",
)
def alibi_above_rope() -> Finding:
    above = difference("Alibi", "Roformer", "sun2023_table2")
    trained = {name.split()[0]: round(d, 2) for name, (n, d) in above.items() if n == 1024}
    return Finding(
        all(about(d, "0.3") for d in trained.values()),
        {"Alibi minus RoPE at 1024 tokens": trained},
        instead=trained == {"PG22": 0.66, "QMSum": 0.05},
        n=len(trained),
    )


@claim(
    "rope-with-bca",
    "2.3 Length Extrapolation",
    place="Table 5",
    quote="With the proper attention mask, the relative position can deal with long text",
    says="RoPE with BCA keeps its perplexity to 8 times the training length.",
    refuted_by="an increase beyond the tolerance",
    kind=PRINTED,
    label="measured",
    data="PG22 in Tables 2 and 5",
    scale=SCALE,
    exhibits="table5",
    about="rope",
)
def rope_with_bca(tolerance: float) -> Finding:
    home = curve("sun2023_table2", "Roformer")[1024]
    change = {n: v / home - 1 for n, v in curve(TABLE5, "RoPE", BCA).items()}
    return Finding(
        max(change.values()) < tolerance, {"over RoPE at 1024 tokens - 1": change}, n=len(change)
    )


@claim(
    "figure2.oscillation",
    "3.2 Improve Resolution by Position Encoding",
    place="Figure 2",
    quote="its s[n] oscillates dramatically in Figure 2",
    says=(
        "From 1000 to 4000 tokens RoPE's g has more than ten times the total variation and "
        "more than twice the spread of g with the decay."
    ),
    refuted_by="a smaller ratio of either",
    kind=NUMBER,
    label="approximate",
    data="g/(d/2) at every distance, float64, d = 64",
    exhibits="fig2",
    about="rope",
)
def oscillation() -> Finding:
    at = np.arange(1000, 4001)
    rope, xpos = (surrogate(g).bias(at)[0] / (D / 2) for g in (None, 0.4))
    variation = [float(np.abs(np.diff(g)).sum()) for g in (rope, xpos)]
    spread = [float(np.ptp(g)) for g in (rope, xpos)]
    return Finding(
        variation[1] / variation[0] < 0.1 and spread[1] / spread[0] < 0.5,
        {"total variation of g/(d/2), RoPE and xPos": variation, "max minus min": spread},
        n=at.size,
    )


@claim(
    "resolution.xpos-above-rope",
    "3.2 Improve Resolution by Position Encoding",
    place="Figure 2",
    quote="which harms the resolution",
    says="R(g) of xPos is above that of RoPE, whatever scale the logits of Eq. 10 have.",
    refuted_by="a certified R in the other order at every scale",
    kind=NUMBER,
    label="certified",
    data="rows of 1024 tokens, d = 64, in balls: Eq. 10 as a sum, over sqrt(d), as a mean",
    exhibits="fig2",
    about="rope xpos",
)
def xpos_above_rope() -> Finding:
    scales = {"sum": Fraction(1), "over sqrt(d)": Fraction(1, 8), "mean": Fraction(1, 32)}
    fields = {k: [enclosed(1024, g, s) for g in (PAPER, None)] for k, s in scales.items()}
    above = {name: bool(xpos[0] > rope[1]) for name, (xpos, rope) in fields.items()}
    evidence = {"R of xPos, RoPE at 1024 tokens, enclosed": fields, "xPos is above": above}
    if len({*above.values()}) > 1:
        why = "the order depends on the scale of the logits, which the paper does not give"
        raise Missing(why, evidence)
    return Finding(all(above.values()), evidence, n=len(scales))


@claim(
    "eq9.inequality",
    "3.2 Improve Resolution by Position Encoding",
    place="Eq. 9",
    quote="For generative models, we assume E(∠q) ≤ E(∠k) to ensure the monotonicity",
    says=(
        "If the angle of q is at most that of k, Re(q conj(k) e^{i x}) <= |q conj(k)| cos "
        "x, x = (m - n) theta."
    ),
    refuted_by="angles within the assumption at which it fails",
    kind=IDENTITY,
    label="theorem",
    data="angle(q) - angle(k) = -k pi/12 and x = j pi/12 up to pi, and an identity by algebra",
    corrected=(
        "Under the opposite assumption, 0 <= angle(q) - angle(k) <= 2 pi - 2 x: the "
        "difference of the sides is 2 sin(x + phi/2) sin(phi/2) >= 0."
    ),
)
def angles() -> Finding:
    x, phi = sympy.symbols("x phi", real=True)
    grid = [(j, k) for j in range(13) for k in range(13) if 2 * j + k <= 24]

    def fails(sign: int) -> int:
        turn = math.pi / 12
        return sum(math.cos((j + sign * k) * turn) > math.cos(j * turn) + 1e-12 for j, k in grid)

    sides = sympy.cos(x) - sympy.cos(x + phi) - 2 * sympy.sin(x + phi / 2) * sympy.sin(phi / 2)
    return Finding(
        fails(-1) == 0,
        {
            "pairs that fail": fails(-1),
            "counterexample": "angle(q) - angle(k) = -pi/2, x = pi/2: 1 <= 0",
        },
        instead=sides.rewrite(sympy.exp).expand() == 0 and fails(1) == 0,
        n=len(grid),
    )


@claim(
    "eq9.proportional",
    "3.2 Improve Resolution by Position Encoding",
    place="Eq. 9, last line",
    quote="∝ Σ_x cos(m − n)θ_x e^{(m−n)ξ_x}",
    says="The bound is proportional to g whatever the mean sizes E|q_x k_x| of the planes.",
    refuted_by="sizes with which the ratio to g changes with the distance",
    kind=IDENTITY,
    label="theorem",
    data="sizes 1 .. 32 of 32 planes, n = 0 .. 99",
    corrected="With one size for all planes it is.",
)
def sizes_of_planes() -> Finding:
    plane, at = np.arange(D // 2), np.arange(100.0)
    zeta = (plane / (D // 2) + 0.4) / 1.4
    terms = np.cos(at[:, None] * 10_000.0 ** (-2 * plane / D)) * zeta ** (at[:, None] / 512)
    sizes = (plane + 1.0, 0 * plane + 3.0)
    growing, equal = (np.ptp(terms @ size / terms.sum(1)) for size in sizes)
    return Finding(
        growing < 1e-9,
        {"largest minus least ratio to g": float(growing)},
        instead=equal < 1e-9,
        n=at.size,
    )


@claim(
    "index-range",
    "3.2 Improve Resolution by Position Encoding",
    place="Eq. 9 to 12 against Algorithm 1",
    quote="θ = {θ_i = 10000^{−2i/d}, i ∈ [0, 1, ..., d/2]}",
    says="g of Eq. 10 (i = 0 .. d/2) is the score of the algorithm on d coordinates.",
    refuted_by="another number of terms than of planes",
    kind=IDENTITY,
    label="theorem",
    data="the number of terms, d = 64",
    corrected="i = 0 .. d/2 - 1, as in Algorithm 1; then every zeta < 1 and g decays to 0.",
)
def terms_of_sum() -> Finding:
    printed = len(range(D // 2 + 1))
    heights = {k: float(surrogate(PAPER, dialect=k).bias([0])[0, 0]) for k in ("printed", "code")}
    return Finding(
        printed == D // 2,
        {
            "terms as printed": printed,
            "planes of d coordinates": D // 2,
            "g[0] (printed, algorithm)": heights,
        },
        instead=heights["code"] == D // 2,
        n=1,
    )


@claim(
    "fp16.no-base",
    "3.2 Improve Resolution by Position Encoding",
    place="after Eq. 11",
    quote="can be represented by fp16 when n is big (8192 in our setting)",
    says=(
        "With gamma = 0.4 the powers of zeta up to n = 8192 are half-precision numbers, "
        "without a base."
    ),
    refuted_by="a power beyond the range of half precision",
    kind=NUMBER,
    label="theorem",
    data="zeta_0 to the powers 8192 and -8192",
    corrected="It fits with base 512 and positions centred at 0, as the released code has them.",
    base=1,
    centred=False,
)
@claim(
    "fp16.base-512",
    "3.2 Improve Resolution by Position Encoding",
    place="after Eq. 11",
    quote="can be represented by fp16 when n is big (8192 in our setting)",
    says=(
        "With gamma = 0.4 the powers of zeta up to n = 8192 are half-precision numbers, "
        "with base 512."
    ),
    refuted_by="a power beyond the range of half precision",
    kind=NUMBER,
    label="theorem",
    data="zeta_0 to the powers 8192 and -8192",
    corrected="It fits with base 512 and positions centred at 0, as the released code has them.",
    base=512,
    centred=False,
)
@claim(
    "fp16.centred",
    "3.2 Improve Resolution by Position Encoding",
    place="after Eq. 11",
    quote="can be represented by fp16 when n is big (8192 in our setting)",
    says=(
        "With gamma = 0.4 the powers of zeta up to n = 8192 are half-precision numbers, "
        "with base 512 and centred positions."
    ),
    refuted_by="a power beyond the range of half precision",
    kind=NUMBER,
    label="theorem",
    data="zeta_0 to the powers 8192 and -8192",
    corrected="It fits with base 512 and positions centred at 0, as the released code has them.",
    base=512,
    centred=True,
)
def fits_fp16(base: int, centred: bool) -> Finding:
    zeta = float(PAPER / (1 + PAPER))

    def largest(base: int, centred: bool) -> float:
        farthest = (8192 / 2 if centred else 8192) / base
        with np.errstate(over="ignore"):
            return float(np.exp(-np.log(zeta) * farthest))

    return Finding(
        largest(base, centred) <= FP16_MAX,
        {"zeta_0": zeta, "largest power": largest(base, centred)},
        instead=largest(512, True) <= FP16_MAX,
        n=1,
    )


@claim(
    "convergence.rope",
    "3.2 Improve Resolution by Position Encoding",
    quote=(
        "which causes bad extrapolation performance and restricts the model's convergence speed"
    ),
    says="The mean training loss with the decay is below that of RoPE in every seed.",
    refuted_by="a seed in which it is not",
    kind=EXPERIMENT,
    label="measured",
    data="training losses of the reference runs",
    corrected=(
        "The two learn alike: their mean losses differ by less than 0.01 nats in every seed."
    ),
    about="xpos rope",
)
def losses_beside_rope() -> Finding:
    tested = named("xpos", "rope")
    xpos, rope = map(mean_loss, tested)
    less = {seed: xpos[seed] - rope[seed] for seed in xpos}
    return Finding(
        max(less.values()) < 0,
        {"mean loss of xPos minus RoPE, nats, by seed": less},
        instead=max(map(abs, less.values())) < 0.01,
        models=tested,
    )


@claim(
    "algorithm1.base",
    "3.2 Improve Resolution by Position Encoding",
    place="Algorithm 1 against Eq. 12",
    quote=(
        "can be easily calculated by parallel addition and multiplication as shown in Algorithm 1"
    ),
    says="Algorithm 1 computes the powers of Eq. 12.",
    refuted_by="another exponent of zeta",
    kind=IDENTITY,
    label="theorem",
    data="the exponents as printed, B = 512",
    corrected="T_mn = zeta_n^{m/B} with B = 512, as in Eq. 12, whose scores depend on (m - n)/B",
)
def exponent_of_zeta() -> Finding:
    m, at, base = sympy.symbols("m n B", positive=True)
    return Finding(
        m == m / base,
        {"exponent of zeta in Algorithm 1, in Eq. 12": [m, m / base]},
        instead=sympy.expand(m / base - at / base - (m - at) / base) == 0,
    )


@claim(
    "algorithm1.mask",
    "3.2 Improve Resolution by Position Encoding",
    place="Algorithm 1, last lines",
    quote="output = softmax(QK^T/√d · M)V",
    says="The product with the mask gives later keys the weight 0.",
    refuted_by="a positive weight on a later key",
    kind=PROPERTY,
    label="theorem",
    data="scores of 3 tokens",
    corrected="softmax(Q K^T / sqrt(d) + M) with M = 0 or -oo does.",
)
def masked_weights() -> Finding:
    scores, mask = np.array([[0.3, 1.0, -0.2], [0.5, 0.1, 2.0], [0.4, 0.2, 0.1]]), np.tri(3) > 0
    masked = (scores * mask, np.where(mask, scores, -np.inf))
    product, added = (float(softmax(s)[~mask].max()) for s in masked)
    return Finding(
        product == 0,
        {"largest weight on a later key": product, "with an added -oo": added},
        instead=added == 0,
        n=3,
    )


@claim(
    "algorithm1.shape",
    "3.2 Improve Resolution by Position Encoding",
    place="Algorithm 1, input",
    quote="M ∈ R^{d×d}",
    says="The mask has the shape of Q K^T.",
    refuted_by="another shape",
    kind=IDENTITY,
    label="theorem",
    data="the shapes at l = 1024, d = 64",
    corrected="M is l x l, a score a pair of tokens.",
)
def shape_of_mask() -> Finding:
    queries = keys = np.zeros((1024, D))
    printed, scores = (D, D), (queries @ keys.T).shape
    return Finding(
        printed == scores, {"mask": printed, "Q K^T": scores}, instead=scores == (1024, 1024), n=1
    )


@claim(
    "cost.six-percent",
    "3.2 Improve Resolution by Position Encoding",
    place="also Limitations",
    quote="bigger than Absolute Position with 6% additional time",
    says="Inference with xPos takes 6 % more time than with absolute positions.",
    refuted_by="another ratio, timed with the kernels and models of the paper",
    kind=EXPERIMENT,
    label="measured",
    data="no times of such models",
    scale="that of Table 7",
    about="xpos",
)
def time_of_inference() -> Finding:
    xpos, sinusoidal = (m.seconds for m in named("xpos", "sinusoidal"))
    ours = {seed: xpos[seed] / sinusoidal[seed] - 1 for seed in xpos if seed in sinusoidal}
    evidence = {"ours over sinusoidal - 1, on a CPU": ours}
    raise Missing("a time of other code on other machines, at another scale", evidence)


@claim(
    "bca.support",
    "3.3 Blockwise Causal Attention",
    place="Figure 3",
    quote="each query interacts with its own block and the last block",
    says=(
        "With BCA a query beyond the first block sees half + 1 to 2 half keys, at most the "
        "training length."
    ),
    refuted_by="a row with another number",
    kind=PROOF,
    label="theorem",
    data="12 blocks of 16 tokens, and the theorem bca-support",
    exhibits="fig3",
)
def keys_of_rows() -> Finding:
    seen = seen_by(Mask(bca=16), 12 * 16).sum(1)[16:]
    counts = [int(seen.min()), int(seen.max())]
    return Finding(
        counts == [17, 32],
        {"keys of a row beyond the first block": counts, "half": 16},
        n=len(seen),
    )


@claim(
    "bca.resolution",
    "3.3 Blockwise Causal Attention",
    quote="The window constraint helps models encode longer input with improved resolution",
    says=(
        "At twice the training length R of the surrogate of xPos is larger with BCA than without."
    ),
    refuted_by="a smaller R at a scale",
    kind=NUMBER,
    label="certified",
    data="rows of 2048 tokens, d = 64; with BCA the mean over the rows of a block",
    about="xpos",
)
def masked_surrogate() -> Finding:
    scales = (Fraction(1), Fraction(1, 8), Fraction(1, 32))
    rows = {s: [in_blocks(512, PAPER, s), enclosed(2048, PAPER, s)] for s in scales}
    return Finding(
        all(masked[0] > whole[1] for masked, whole in rows.values()),
        {"R with BCA, without, enclosed, by scale": rows},
        n=len(rows),
    )


@claim(
    "interpolation.close",
    "4.2 Language Modeling",
    place="Table 2",
    quote="all Transformers' generalization capabilities are also close",
    says="Up to the training length the perplexities of the four lie within the tolerance.",
    refuted_by="a length at which they do not",
    kind=PRINTED,
    label="measured",
    data="Table 2, 256 to 1024 tokens",
    corrected="Those of the three relative encodings do, to 4 %.",
    scale=SCALE,
    exhibits="table2",
)
def close_when_short(tolerance: float) -> Finding:
    pg = curves("sun2023_table2", by="dataset encoding")

    def spreads(*names: str) -> dict[str, float]:
        values = {
            f"{data} {length}": [pg[f"{data} {name}"][length] for name in names]
            for data in ("PG22", "QMSum")
            for length in (256, 512, 1024)
        }
        return {k: max(v) / min(v) - 1 for k, v in values.items()}

    every, relative = spreads(*OTHERS, "LeX"), spreads("Alibi", "Roformer", "LeX")
    return Finding(
        max(every.values()) < tolerance,
        {"largest over least - 1": every},
        instead=max(relative.values()) < 0.04,
        n=len(every),
    )


@claim(
    "decrease.experiment",
    "4.2 Language Modeling",
    quote="XPOS shows a stable decrease when the sequence length increases",
    says=(
        "A trained xPos model with BCA has, in non-overlapping segments, a perplexity that "
        "falls with every doubling up to 16 times the training length."
    ),
    refuted_by="a doubling with a rise",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs",
    about="xpos",
)
def segments_in_training() -> Finding:
    (m,) = named("xpos + BCA")
    whole = {n: v for n, v in m.perplexity(WHOLE).items() if n <= 16 * m.trained}
    return Finding(falls(whole.values()), {"perplexity": whole}, models=(m,))


@claim(
    "longer-context.experiment",
    "4.2 Language Modeling",
    quote="which satisfies the assumption that a longer context makes the prediction better",
    says=(
        "The perplexity of the last token of a row falls when an xPos model with BCA sees "
        "a longer row."
    ),
    refuted_by="a longer row without a gain",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs",
    corrected=(
        "It stays, to 1 %, while that of segments falls: what falls is the share of tokens "
        "near the start of a segment."
    ),
    about="xpos",
)
def last_token_in_training() -> Finding:
    (m,) = named("xpos + BCA")
    last = m.perplexity(LAST)
    whole = {n: v for n, v in m.perplexity(WHOLE).items() if n <= 16 * m.trained}
    return Finding(
        falls(last.values()),
        {"last token": last, "non-overlapping segments": whole},
        instead=stays(last.values(), 0.01) and falls(whole.values()),
        models=(m,),
    )


@claim(
    "table2.only-lex",
    "4.2 Language Modeling",
    place="caption of Table 2",
    quote="is the only method that has lower perplexity along with increased evaluation length",
    says="Of the four methods LeX alone has a perplexity that falls with every longer length.",
    refuted_by="another that falls throughout, or LeX with a rise",
    kind=PRINTED,
    label="measured",
    data="Table 2",
    scale=SCALE,
    exhibits="table2",
    name="sun2023_table2",
)
@claim(
    "table6.only-lex",
    "A Additional Experiments",
    place="caption of Table 6",
    quote="is the only method that has lower perplexity along with increased evaluation length",
    says="Of the four methods LeX alone has a perplexity that falls with every longer length.",
    refuted_by="another that falls throughout, or LeX with a rise",
    kind=PRINTED,
    label="measured",
    data="Table 6",
    scale=SCALE,
    exhibits="table6",
    name="sun2023_table6",
)
def lex_alone_falls(name: str) -> Finding:
    columns = curves(name, by="dataset encoding")
    falling = [k for k, c in columns.items() if falls(c.values())]
    lex = [k for k in columns if k.endswith("LeX")]
    return Finding(falling == lex, {"perplexity falls throughout": falling}, n=len(columns))


@claim(
    "table2.lex-best",
    "4.2 Language Modeling",
    place="caption of Table 2",
    quote=(
        "obtains better performance not only on shorter texts (i.e., interpolation) but "
        "also on longer texts (i.e., extrapolation)"
    ),
    says="LeX has the lowest perplexity of the four at every length.",
    refuted_by="a length at which another has it",
    kind=PRINTED,
    label="measured",
    data="Table 2",
    scale=SCALE,
    exhibits="table2",
    name="sun2023_table2",
)
@claim(
    "table6.lex-best",
    "A Additional Experiments",
    place="caption of Table 6",
    quote=(
        "obtains better performance not only on shorter texts (i.e., interpolation) but "
        "also on longer texts (i.e., extrapolation)"
    ),
    says="LeX has the lowest perplexity of the four at every length.",
    refuted_by="a length at which another has it",
    kind=PRINTED,
    label="measured",
    data="Table 6",
    corrected="In all but one: Alibi is lower on arXiv at 2048 tokens, 15.38 against 15.81.",
    scale=SCALE,
    exhibits="table6",
    name="sun2023_table6",
)
def lex_lowest(name: str) -> Finding:
    above = {k: d for other in OTHERS for k, (_, d) in difference(other, "LeX", name).items()}
    lower = {k: d for k, d in above.items() if d <= 0}
    return Finding(
        not lower, {"minus LeX": lower}, instead=[*lower] == ["arXiv Alibi 2048"], n=len(above)
    )


@claim(
    "mask-not-decay",
    "4.2 Language Modeling",
    quote=(
        "a proper design for an attention mask is actually better to deal with long-context tasks"
    ),
    says="Not a decay on the attention but a mask bounds what a long row attends to.",
    refuted_by="a convergent series of the surrogate with decay, or a divergent one with a mask",
    kind=PROOF,
    label="theorem",
    data="the surrogate of xPos, without and with BCA of 512",
)
def mask_not_decay() -> Finding:
    decay, masked = of_layer("xpos_surrogate"), decided(encoding("xpos_surrogate", bca=512))
    return Finding(
        decay == "diverges" and str(masked.verdict) == "converges",
        {
            "exp-series of g with decay": decay,
            "with BCA": str(masked.verdict),
            "reason": masked.reason,
            "without the surrogate": "the divergent half of equivalence applies with p = 0",
        },
    )


@claim(
    "mask-better.printed",
    "4.2 Language Modeling",
    place="Table 5 against Table 2",
    quote=(
        "a proper design for an attention mask is actually better to deal with long-context tasks"
    ),
    says=(
        "RoPE with BCA, a mask without decay, has a lower perplexity than Alibi, a decay "
        "without mask, at 2048 and at 8192 tokens."
    ),
    refuted_by="a length at which it has not",
    kind=PRINTED,
    label="measured",
    data="Table 5, PG22",
    corrected="At 8192 tokens; at 2048 Alibi is lower.",
    scale=SCALE,
    exhibits="table2 table5",
    about="alibi rope",
)
def mask_beside_decay() -> Finding:
    rope = curve(TABLE5, "RoPE", BCA)
    alibi = curve(TABLE5, "Alibi", "attention=full")
    lower = {n: rope[n] < alibi[n] for n in rope}
    return Finding(
        all(lower.values()),
        {"RoPE with BCA": rope, "Alibi": alibi},
        instead=lower == {2048: False, 8192: True},
        n=len(lower),
    )


@claim(
    "eq4.last",
    "4.3 Measuring Resolution",
    place="Eq. 4 with Eq. 13",
    quote=(
        "the attention resolution can be calculated by combining Equation (4) and Equation (13)"
    ),
    says=(
        "With the scores s[0] .. s[N-1] that Eq. 13 gives for N tokens, the sum of Eq. 4 "
        "to N is defined."
    ),
    refuted_by="a score that it needs and that is not there",
    kind=IDENTITY,
    label="theorem",
    data="the indices of both equations, N = 2 .. 9",
    corrected="The sum to N - 2 is, whose last term takes s[N-1].",
)
def lacking_scores() -> Finding:
    def lacking(rows: int, last: int) -> list[int]:
        return sorted({i + k for i in range(last + 1) for k in (0, 1)} - {*range(rows)})

    printed = {rows: lacking(rows, rows) for rows in range(2, 10)}
    return Finding(
        not any(printed.values()),
        {"scores that are not there, by N": printed},
        instead=not any(lacking(rows, rows - 2) for rows in printed),
        n=len(printed),
    )


@claim(
    "table3.range",
    "4.3 Measuring Resolution",
    place="Table 3 against Eq. 4",
    quote=(
        "the attention resolution can be calculated by combining Equation (4) and Equation (13)"
    ),
    says="The values of Table 3 are resolutions R of Eq. 4.",
    refuted_by="a value above 1, which no R exceeds",
    kind=PROOF,
    label="theorem",
    data="Table 3, and the theorem resolution-bound",
    exhibits="table3",
)
def range_of_resolution() -> Finding:
    rates = {
        f"{name} {n}": v
        for name, c in curves("sun2023_table3", by="encoding variant").items()
        for n, v in c.items()
    }
    above = {k: v for k, v in rates.items() if v > 1.005}
    bound = "R <= sum_{i<=N} P_i^2 <= 1, and there is no lower bound in general"
    worst = max(rates, key=rates.__getitem__)
    because = f"{worst} has {rates[worst]:.2f}, and R of Eq. 4 is at most 1."
    evidence = {"printed above 1": above, "bound": bound}
    return Finding(not above, evidence, n=len(rates), because=because)


@claim(
    "table3.order",
    "4.3 Measuring Resolution",
    place="Table 3",
    quote=(
        "XPOS makes the position more recognizable in both 1024 (i.e., training length) and 2048"
    ),
    says="xPos, with BCA and without, has a larger R than the others at 1024 and at 2048 tokens.",
    refuted_by="another model with a larger R",
    kind=PRINTED,
    label="measured",
    data="Table 3",
    corrected="At 2048 tokens only together with BCA: without it 0.54, below Alibi's 0.88.",
    scale=SCALE,
    exhibits="table3",
    about="xpos",
)
def order_of_resolutions() -> Finding:
    rate = curves("sun2023_table3", by="encoding variant")
    lex, bare = rate["LeX bca=1"], rate["LeX bca=0"]
    best = {n: max(rate[name][n] for name in OTHERS) for n in lex}
    above = all(lex[n] > best[n] for n in lex)
    return Finding(
        above and all(bare[n] > best[n] for n in bare),
        {"LeX": lex, "LeX without BCA": bare, "best other": best},
        instead=above and bare[1024] > best[1024] and bare[2048] < best[2048],
        n=2 * len(best),
    )


@claim(
    "table3.order.experiment",
    "4.3 Measuring Resolution",
    quote=(
        "XPOS makes the position more recognizable in both 1024 (i.e., training length) and 2048"
    ),
    says=(
        "In trained models the measured R of xPos is above that of RoPE, at the training "
        "length and at twice that, in every seed."
    ),
    refuted_by="a seed with the other order",
    kind=EXPERIMENT,
    label="measured",
    data="mean expected scores of the reference runs",
    corrected=(
        "At twice the training length in every seed; at the training length not in every seed."
    ),
    about="rope xpos",
)
def resolutions_in_training() -> Finding:
    tested = named("xpos", "rope")
    xpos, rope = (m.by("scores", "length", "resolution") for m in tested)
    lengths = [k * tested[0].trained for k in (1, 2)]
    seeds = sorted({*xpos[lengths[1]]} & {*rope[lengths[1]]})
    above = {n: sum(xpos[n][seed] > rope[n][seed] for seed in seeds) for n in lengths}
    every = [above[n] == len(seeds) for n in lengths]
    return Finding(
        all(every),
        {"seeds in which the R of xPos is above, by length": above},
        instead=every[1],
        models=tested,
    )


@claim(
    "table3.alibi-stable",
    "4.3 Measuring Resolution",
    place="Table 3",
    quote="the stable resolution comes from explicit decay",
    says="Alibi's R at 2048 tokens is that at 1024, within the tolerance.",
    refuted_by="a larger change",
    kind=PRINTED,
    label="measured",
    data="Alibi in Table 3",
    scale=SCALE,
    exhibits="table3",
)
def alibi_stable(tolerance: float) -> Finding:
    rate = curve("sun2023_table3", "Alibi")
    change = rate[2048] / rate[1024] - 1
    return Finding(abs(change) < tolerance, {"R at 1024, 2048": rate, "change": change}, n=1)


@claim(
    "table3.bca",
    "4.3 Measuring Resolution",
    place="Table 3",
    quote=(
        "BCA helps the model distinguish positions better, achieving higher attention resolution"
    ),
    says="BCA raises the resolution at both lengths that are ablated, 1024 and 2048 tokens.",
    refuted_by="a length at which it does not",
    kind=PRINTED,
    label="measured",
    data="LeX in Table 3",
    corrected="Only at 2048 tokens; at the training length BCA masks nothing.",
    scale=SCALE,
    exhibits="table3",
)
def resolution_with_bca() -> Finding:
    rate = curves("sun2023_table3", by="variant", encoding="LeX")
    gain = {n: v - rate["bca=0"][n] for n, v in rate["bca=1"].items()}
    return Finding(
        min(gain.values()) > 0,
        {"R with BCA minus without": gain},
        instead=gain[1024] == 0 and gain[2048] > 0,
        n=len(gain),
    )


@claim(
    "table4.rotation",
    "4.4.1 Rotation Computation",
    place="Table 4",
    quote="rotation of XPOS is necessary for strong performance",
    says="Without rotation the perplexity is higher by more than the tolerance, at both lengths.",
    refuted_by="a length with a smaller loss",
    kind=PRINTED,
    label="measured",
    data="Table 4",
    scale=SCALE,
    exhibits="table4",
)
def without_rotation(tolerance: float) -> Finding:
    rows = curves("sun2023_table4", by="variant")
    change = {n: v / rows[""][n] - 1 for n, v in rows["rotation=0"].items()}
    return Finding(
        min(change.values()) > tolerance, {"without rotation over with - 1": change}, n=len(change)
    )


@claim(
    "table4.zeta0",
    "4.4.1 Rotation Computation",
    place="Table 4",
    quote="the setting of ζ = 0 is RoPE (Su et al., 2021)",
    says="With zeta = 0 the scores are those of RoPE.",
    refuted_by="another score",
    kind=IDENTITY,
    label="theorem",
    data="g at 0 .. 199 with zeta = 0 and with zeta = 1",
    corrected="zeta = 1 (xi = 0) is RoPE; with zeta = 0 every score beyond distance 0 vanishes.",
    exhibits="table4",
    about="rope",
)
def zeta_of_rope() -> Finding:
    at = np.arange(200)
    waves = np.cos(at[:, None] * 10_000.0 ** (-2 * np.arange(D // 2) / D))
    rope = surrogate(None).bias(at)[0]
    gap = [np.abs((waves * float(z) ** (at[:, None] / 512)).sum(1) - rope).max() for z in (0, 1)]
    return Finding(
        bool(gap[0] < 1e-9),
        {"largest gap to RoPE's g, zeta = 0 and 1": gap},
        instead=bool(gap[1] < 1e-9),
        n=at.size,
    )


@claim(
    "table4.vector",
    "4.4.1 Rotation Computation",
    place="Table 4",
    quote="also performs better than ζ = 0 and γ/(1 + γ)",
    says=(
        "The vector zeta has a lower perplexity than zeta = 0 and than a scalar, at both lengths."
    ),
    refuted_by="a length at which it has not",
    kind=PRINTED,
    label="measured",
    data="Table 4",
    scale=SCALE,
    exhibits="table4",
)
def vector_of_zeta() -> Finding:
    rows = curves("sun2023_table4", by="variant")
    lower = [v < rows[name][n] for n, v in rows[""].items() for name in ("zeta=0", "zeta=scalar")]
    return Finding(all(lower), {"perplexity by length": rows}, n=len(lower))


@claim(
    "table5.bca.alibi",
    "4.4.2 Blockwise Causal Attention",
    place="Table 5",
    quote=(
        "when the sequence length increases to 8192, windowed attention outperforms "
        "vanilla attention again"
    ),
    says="BCA raises Alibi's perplexity at 2048 tokens and lowers it at 8192.",
    refuted_by="a length with the other sign",
    kind=PRINTED,
    label="measured",
    data="Table 5, 2048 and 8192 tokens",
    scale=SCALE,
    exhibits="table5",
    about="alibi",
)
def alibi_with_bca() -> Finding:
    full, bca = (curve(TABLE5, "Alibi", f"attention={k}") for k in ("full", "BCA"))
    gain = {n: full[n] - bca[n] for n in full}
    return Finding(gain[2048] <= 0 < gain[8192], {"full minus BCA by length": gain}, n=len(gain))


@claim(
    "bca.experiment.rope",
    "4.4.2 Blockwise Causal Attention",
    quote="Blockwise Causal Attention works for ROPE whose perplexity will explode without that",
    says=(
        "A trained RoPE model at least doubles its perplexity without BCA and keeps it with BCA."
    ),
    refuted_by="an increase below 1 without BCA, or the other outcome with it",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs",
    about="rope",
    name="rope",
    kept=True,
)
@claim(
    "bca.experiment.xpos",
    "4.4.2 Blockwise Causal Attention",
    quote="XPOS can recognize position with BCA's constraint",
    says=(
        "A trained xPos model at least doubles its perplexity without BCA and keeps it with BCA."
    ),
    refuted_by="an increase below 1 without BCA, or the other outcome with it",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs",
    about="xpos",
    name="xpos",
    kept=True,
)
@claim(
    "bca.experiment.sinusoidal",
    "4.4.2 Blockwise Causal Attention",
    quote="with or without blockwise causal attention",
    says=(
        "A trained sinusoidal model at least doubles its perplexity without BCA, and does "
        "not keep it with BCA."
    ),
    refuted_by="an increase below 1 without BCA, or the other outcome with it",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs",
    about="sinusoidal",
    name="sinusoidal",
    kept=False,
)
def bca_in_training(tolerance: float, name: str, kept: bool) -> Finding:
    whole, masked = tested = named(name, f"{name} + BCA")
    return Finding(
        whole.increase >= EXPLODES and (masked.increase < tolerance) == kept,
        {"largest increase": {m.name: m.increase for m in tested}},
        models=tested,
    )


@claim(
    "alibi.broader",
    "4.4.2 Blockwise Causal Attention",
    quote="because its “soft window” is broader than a hard block window",
    says=(
        "In most heads ALiBi's TRF(1/100) exceeds the least number of keys that BCA leaves, 513."
    ),
    refuted_by="half of the heads, or fewer",
    kind=NUMBER,
    label="certified",
    data="certified TRF of 16 heads, blocks of 512",
    corrected="In three of 16 heads.",
    about="alibi",
)
def fields_of_alibi() -> Finding:
    heads = theoretical_receptive_field(encoding("alibi", heads=16), "1/100").heads
    tokens = [h.tokens or math.inf for h in heads]
    wider = [h for h, t in enumerate(tokens) if t > 513]
    return Finding(
        2 * len(wider) > len(tokens),
        {"TRF(1/100) by head": tokens, "wider": len(wider)},
        instead=wider == [13, 14, 15],
        n=len(tokens),
    )


@claim(
    "table5.increase-2048",
    "4.4.2 Blockwise Causal Attention",
    place="Table 5",
    quote="perplexity without BCA increases by about 1.5 in 2048, and 40 in 8192",
    says="Without BCA the perplexity of xPos is larger by about 1.5 at 2048 tokens.",
    refuted_by="a difference that does not round to it",
    kind=PRINTED,
    label="measured",
    data="Table 5",
    corrected="It is about 1.8.",
    scale=SCALE,
    exhibits="table5",
    about="xpos",
)
def increase_without_bca() -> Finding:
    full, bca = (curve(TABLE5, "XPos", f"attention={k}") for k in ("full", "BCA"))
    gap = round(full[2048] - bca[2048], 2)
    return Finding(about(gap, "1.5"), {"full minus BCA": gap}, instead=about(gap, "1.8"), n=1)


@claim(
    "table5.sliding",
    "4.4.2 Blockwise Causal Attention",
    place="Table 5",
    quote="Sliding Attention performs better as shown in the last row of Table 5",
    says="A sliding window has a lower perplexity than BCA, at both lengths.",
    refuted_by="a length at which it has not",
    kind=PRINTED,
    label="measured",
    data="xPos in Table 5",
    scale=SCALE,
    exhibits="table5",
    about="window",
)
def sliding_below_bca() -> Finding:
    sliding = curve(TABLE5, "XPos", "attention=sliding_window")
    bca = curve(TABLE5, "XPos", BCA)
    return Finding(
        all(sliding[n] < bca[n] for n in bca), {"sliding window": sliding, "BCA": bca}, n=len(bca)
    )


@claim(
    "eq14.wavelengths",
    "5.2.1 Absolute Position Embedding",
    place="Eq. 14",
    quote="different frequencies are encoded from 2π to 10000 × 2π",
    says="The wavelengths run from 2 pi to 10000 x 2 pi.",
    refuted_by="another longest wavelength",
    kind=NUMBER,
    label="theorem",
    data="the exponent of the last plane, d = 512",
    corrected="Up to 10000^{1 - 2/d} x 2 pi; 10000 x 2 pi is the limit of large d.",
)
def wavelengths() -> Finding:
    d = sympy.Symbol("d", positive=True)
    exponent = (d - 2) / d
    at_512 = exponent.subs(d, 512)
    return Finding(
        at_512 == 1,
        {"longest wavelength over 2 pi at d = 512": float(10_000**at_512)},
        instead=at_512 < 1 and sympy.limit(exponent, d, sympy.oo) == 1,
    )
