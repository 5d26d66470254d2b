"""[S] Sun et al., A Length-Extrapolatable Transformer, ACL 2023: its claims and their checks."""

# fmt: off
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import sympy
from flint import acb, arb, fmpq

from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.resolution import fp16_range, surrogate_scores
from farfield.numerics.theorems import proved, vanishes
from farfield.theory.convergence import check_convergence
from farfield.theory.encodings import encoding
from farfield.theory.functions.balls import precision
from farfield.theory.resolution import rotation, rotation_with_decay
from farfield.theory.theorems import theorem
from farfield.validation.claims.claim import Data, Finding, Ledger
from farfield.validation.claims.results import LAST, WHOLE, Model, all_models, named, of_models
from farfield.validation.claims.words import (
    BY_CHANCE,
    EXPLODES,
    about,
    by_chance,
    falls,
    increase,
    rank_correlation,
    stays,
)
from farfield.validation.published import curve, keys, select, table
from farfield.validation.settings.visibility import Visibility

ABSTRACT, INTRODUCTION = "Abstract", "1 Introduction"
ORDER, TRANSLATION = "2.1 Order Variance", "2.2 Translation Invariance"
LENGTH, RESOLUTION = "2.3 Length Extrapolation", "3.1 Attention Resolution"
ENCODING = "3.2 Improve Resolution by Position Encoding"
BLOCKS, TRAINING = "3.3 Blockwise Causal Attention", "4.1 Pre-training"
MODELING, MEASURING = "4.2 Language Modeling", "4.3 Measuring Resolution"
ROTATION, ABLATION = "4.4.1 Rotation Computation", "4.4.2 Blockwise Causal Attention"
LONG, ABSOLUTE = "5.1 Long-Sequence Transformers", "5.2.1 Absolute Position Embedding"
RELATIVE, CONCLUSION = "5.2.2 Relative Position Embedding", "6 Conclusion"
LIMITATIONS, MORE = "Limitations", "A Additional Experiments"
HYPER = "B Hyperparameters for Pre-Training"
LEDGER = Ledger(
    "sun2023",
    (ABSTRACT, INTRODUCTION, ORDER, TRANSLATION, LENGTH, RESOLUTION, ENCODING, BLOCKS, TRAINING,
     MODELING, MEASURING, ROTATION, ABLATION, LONG, ABSOLUTE, RELATIVE, CONCLUSION, LIMITATIONS,
     MORE, HYPER),
    "24 layers, 1024 wide, 16 heads, trained on 1024 tokens",
)
check, passed = LEDGER.check, LEDGER.passed

D = 64
"""Head size of the LeX Transformer: 1024 wide, 16 heads (Table 7)."""
TRAINED = 1024
SETS = {"PG22": "sun2023_table2", "QMSum": "sun2023_table2", "arXiv": "sun2023_table6",
        "NarrativeQA": "sun2023_table6"}
FOUR = ("Transformer", "Alibi", "Roformer", "LeX")
RUNS = "the reference runs"


def _tables(*names: str) -> Callable[[], Data]:
    return lambda: {name: table(f"sun2023_{name}") for name in names}


def _given(make: Callable[[], Data], **more: Any) -> Callable[[], Data]:
    return lambda: {**make(), **more}


def _cell(cells: Any, length: int, **wanted: Any) -> float:
    (found,) = select(tuple(cells), eval_length=length, **wanted)
    assert found.value is not None
    return found.value


def _curves() -> Data:
    """Perplexity by data set, encoding and length, of Tables 2 and 6."""
    return {"curves": {(d, e): curve(table(t), dataset=d, encoding=e)
                       for d, t in SETS.items() for e in FOUR}}


def _of(curves: Mapping[Any, dict[int, float]], *names: str) -> dict[Any, dict[int, float]]:
    return {k: c for k, c in curves.items() if k[1] in names}


def _keyed(found: Mapping[Any, Any]) -> dict[str, Any]:
    return {" ".join(map(str, k)) if isinstance(k, tuple) else str(k): v for k, v in found.items()}


def _increases(found: Mapping[str, Model], protocol: str = LAST) -> dict[str, float]:
    return {k: round(m.increase(protocol), 4) for k, m in found.items()}


# -- resolutions of the surrogate -----------------------------------------------------------------


@lru_cache(maxsize=64)
def _waves(length: int, gamma: Fraction | None, planes: int = D // 2) -> tuple[arb, ...]:
    """g[n] of Eq. 10 for n < length in balls, without decay if gamma is None; a plane is split at
    n = 32 a + b."""
    total = [arb(0)] * length
    with precision(96):
        for i in range(planes):
            theta = (arb(10_000).log() * fmpq(-i, planes)).exp()
            decay = arb(0)
            if gamma is not None:
                zeta = (Fraction(i, planes) + gamma) / (1 + gamma)
                decay = arb(fmpq(zeta.numerator, zeta.denominator)).log() / 512
            near, far = ([(acb(decay, theta) * (k * s)).exp() for k in range(32)] for s in (1, 32))
            for n in range(length):
                total[n] += (far[n // 32] * near[n % 32]).real
    return tuple(total)


@lru_cache(maxsize=128)
def _resolution(length: int, gamma: Fraction | None, scale: Fraction) -> tuple[float, float]:
    """Bounds of R [Eq. 4] of a row of the surrogate at a scale."""
    with precision(96):
        factor = fmpq(scale.numerator, scale.denominator)
        x = [(g * factor).exp() for g in _waves(length, gamma)]
        gained = sum((a * (a - b) for a, b in itertools.pairwise(x)), arb(0))
        value = gained / sum(x[:-1], arb(0)) ** 2
        return float(value.lower()), float(value.upper())


SCALES = {"raw": (Fraction(1), "the raw sum"), "sqrt": (Fraction(1, 8), "the sum over sqrt(d)"),
          "mean": (Fraction(1, 32), "the mean over the d/2 planes")}
PAPER = Fraction(2, 5)


def _best(length: int, scale: Fraction) -> Fraction:
    """The gamma of a grid with the largest R, in float64."""
    at = np.arange(float(length))

    def rate(gamma: Fraction) -> float:
        x = np.exp(float(scale) * surrogate_scores(at, D, gamma=float(gamma)))
        return float((x[:-1] * (x[:-1] - x[1:])).sum() / x[:-1].sum() ** 2)

    return max((Fraction(k, 50) for k in range(1, 101, 3)), key=rate)


# -- abstract and introduction --------------------------------------------------------------------


@check(
    "abstract.maximize", ABSTRACT, "",
    "we introduce a relative position embedding to explicitly maximize attention resolution",
    "No other gamma gives the surrogate of xPos a larger R than the paper's 0.4.",
    "a gamma with a larger R",
    kind="certified number", label="certified",
    source="R(g) of rows of 512 tokens at the scales 1 and 1/8, d = 64, in balls",
    data={"gamma": PAPER, "scales": (Fraction(1), Fraction(1, 8)), "length": 512},
)
def _maximize(data: Data) -> Finding:
    rows = {}
    for scale in data["scales"]:
        best = _best(data["length"], scale)
        rows[scale] = [(g, _resolution(data["length"], g, scale)) for g in
                       (best, data["gamma"], None)]
    beaten = {s: r[0][1][0] > r[1][1][1] for s, r in rows.items()}
    above = {s: r[1][1][0] > r[2][1][1] for s, r in rows.items()}
    return Finding(
        not any(beaten.values()),
        {"by scale: (gamma, R) of the best tried, of 0.4, and without decay":
         {str(s): [[str(g), r[0]] for g, r in found] for s, found in rows.items()}},
        "0.4 raises R above that of RoPE; another gamma raises it further, at each scale.",
        all(beaten.values()) and all(above.values()), n=len(rows),
    )


def _growths() -> Data:
    """R at 2048 tokens [Table 3] and perplexity there over that at 1024 [Tables 2 and 5]."""
    third, second, fifth = (table(f"sun2023_table{k}") for k in (3, 2, 5))
    pairs = {}
    for name in FOUR:
        variant = "bca=1" if name == "LeX" else ""
        values = curve(second, dataset="PG22", encoding=name)
        pairs[name] = (_cell(third, 2048, encoding=name, variant=variant),
                       values[2048] / values[1024])
    home = curve(second, dataset="PG22", encoding="LeX")[1024]
    full = _cell(fifth, 2048, encoding="XPos", variant="attention=full")
    pairs["LeX without BCA"] = (_cell(third, 2048, encoding="LeX", variant="bca=0"), full / home)
    return {"pairs": pairs}


@check(
    "indicator.printed", ABSTRACT, "Table 3 against Tables 2 and 5",
    "We define attention resolution as an indicator of extrapolation",
    "At 2048 tokens the model with the larger printed R has the smaller growth of perplexity.",
    "two models in the other order",
    kind="printed tables", label="measured", source="five models, PG22, from 1024 to 2048 tokens",
    data=_growths,
)
def _indicator(data: Data) -> Finding:
    pairs = data["pairs"]
    combos = list(itertools.combinations(pairs, 2))
    against = [
        f"{a}, {b}" for a, b in combos
        if (pairs[a][0] - pairs[b][0]) * (pairs[a][1] - pairs[b][1]) >= 0
    ]
    return Finding(
        not against, {"R, growth": pairs, "other order": against},
        "It is so for 8 of the 10 pairs; chance does as well in one of fifteen orders.",
        len(combos) - len(against) == 8 and len(combos) == 10
        and about(by_chance([-p[0] for p in pairs.values()], [p[1] for p in pairs.values()]),
                  "0.07"), n=len(combos),
    )


def _row_resolution(scores: tuple[float, ...], length: int) -> float:
    """R [Eq. 4] of the first scores of a row."""
    x = np.exp(np.array(scores[:length]))
    return float((x[:-1] * (x[:-1] - x[1:])).sum() / x[:-1].sum() ** 2)


@check(
    "indicator.experiment", ABSTRACT, "",
    "We define attention resolution as an indicator of extrapolation",
    "Over trained models a larger measured R at twice the training length goes with a smaller "
    "growth of perplexity, beyond chance.",
    "a rank correlation that chance reaches in one of twenty orders",
    kind="experiment", label="measured", source=RUNS, data=all_models,
)
def _indicator_experiment(data: Data) -> Finding:
    found = [m for m in data["models"] if " + " not in m.name
             and all(len(s) >= 2 * m.trained for s in m.scores.values()) and m.scores]
    if len(found) < 4:
        return Finding(None, {}, reason="fewer than four models with measured scores")
    rates = [float(np.mean([_row_resolution(s, 2 * m.trained) for s in m.scores.values()]))
             for m in found]
    growth = [m.increase() for m in found]
    pair = [-r for r in rates], growth
    return of_models(
        found, {"Spearman rank correlation of -R and growth": rank_correlation(*pair),
                "by chance": by_chance(*pair),
                "R": dict(zip([m.name for m in found], rates, strict=True))},
        by_chance(*pair) < BY_CHANCE,
    )


passed(ABSTRACT, "our model achieves better performance in both interpolation and extrapolation "
       "settings", "judged as table2.lex-best and table6.lex-best")


@check(
    "bca.efficiency", ABSTRACT, "",
    "we use blockwise causal attention during inference for better efficiency",
    "With BCA the number of scores grows linearly with the row, not quadratically.",
    "an exponent of the length other than 1",
    kind="certified number", label="theorem", source="visible pairs of rows of 4 to 32 half blocks",
    data={"half": 16, "visible": Visibility(bca=16)},
)
def _efficiency(data: Data) -> Finding:
    half = data["half"]
    seen = {}
    for blocks in (16, 32, 64):
        place = np.arange(blocks * half)
        seen[blocks] = int(data["visible"].sees(place[:, None], place[None, :]).sum())
    exponents = [math.log2(b / a) for a, b in itertools.pairwise(seen.values())]
    return Finding(
        abs(exponents[-1] - 1) < 0.05, {"visible pairs by half blocks": seen,
                                        "exponent of the length": exponents}, n=len(seen),
    )


@check(
    "figure1.rapidly", INTRODUCTION, "Figure 1",
    "the perplexity of previous Transformers increases rapidly when the input sequence is getting "
    "longer",
    "The perplexity of each previous Transformer at least doubles from 1024 to 8192 tokens.",
    "one with a smaller increase",
    kind="printed tables", label="measured", source="Table 2", data=_curves,
)
def _figure_1(data: Data) -> Finding:
    rises = {k: increase(c, TRAINED) for k, c in data["curves"].items()
             if k[0] in ("PG22", "QMSum") and k[1] != "LeX"}
    slow = {k[1] for k, v in rises.items() if v < EXPLODES}
    return Finding(
        not slow, {"increase": _keyed(rises)},
        "Those of Transformer and Roformer do, at least seventeenfold; Alibi's rises by a fifth.",
        slow == {"Alibi"} and all(v > 16 for k, v in rises.items() if k[1] != "Alibi")
        and all(0.15 < v < 0.25 for k, v in rises.items() if k[1] == "Alibi"), n=len(rises),
    )


@check(
    "absolute.worse", INTRODUCTION, "",
    "The absolute design is computation-efficient, but not comparable with subsequent relative "
    "ones",
    "Up to the training length the sinusoidal Transformer has the highest perplexity.",
    "a relative encoding with a higher one",
    kind="printed tables", label="measured", source="Tables 2 and 6, 256 to 1024 tokens",
    data=_curves,
)
def _absolute_worse(data: Data) -> Finding:
    curves = data["curves"]
    against = [
        f"{d} {e} {n}" for (d, e), c in curves.items() for n, v in c.items()
        if e != "Transformer" and n <= TRAINED and v >= curves[d, "Transformer"][n]
    ]
    return Finding(not against, {"exceptions": against}, n=36)


@check(
    "rope.exceeding", INTRODUCTION, "",
    "However, it can't deal with sequences with exceeding length",
    "RoPE's perplexity rises beyond the training length on every data set.",
    "a data set on which it stays",
    kind="printed tables", label="measured", source="Roformer in Tables 2 and 6", tolerant=True,
    data=_curves,
)
def _rope_exceeding(data: Data) -> Finding:
    rises = {k: increase(c, TRAINED) for k, c in _of(data["curves"], "Roformer").items()}
    return Finding(all(v >= data["tolerance"] for v in rises.values()),
                   {"increase": _keyed(rises)}, n=len(rises))


@check(
    "alibi.sacrifices", INTRODUCTION, "also 5.2.2",
    "mitigates the extrapolation problem but sacrifices the general performance",
    "Up to the training length Alibi's perplexity is above RoPE's.",
    "a length and data set at which it is not",
    kind="printed tables", label="measured", source="Tables 2 and 6, 256 to 1024 tokens",
    data=_curves,
)
def _sacrifices(data: Data) -> Finding:
    curves = data["curves"]
    gaps = {
        (d, n): round(curves[d, "Alibi"][n] - curves[d, "Roformer"][n], 2)
        for d in SETS for n in (256, 512, 1024)
    }
    return Finding(all(v > 0 for v in gaps.values()), {"Alibi minus RoPE": _keyed(gaps)},
                   n=len(gaps))


@check(
    "alibi.sacrifices.experiment", INTRODUCTION, "also 5.2.2",
    "mitigates the extrapolation problem but sacrifices the general performance",
    "At the training length ALiBi's perplexity is above RoPE's in every seed.",
    "a seed in which it is not",
    kind="experiment", label="measured", source=RUNS, data=all_models,
)
def _sacrifices_experiment(data: Data) -> Finding:
    found = named(data["models"], "alibi", "rope")
    if len(found) < 2:
        return of_models([], {}, None)
    home = {k: m.perplexity[WHOLE][m.trained] for k, m in found.items()}
    seeds = sorted(set(home["alibi"]) & set(home["rope"]))
    return of_models(
        found.values(), {"perplexity by seed": home},
        all(home["alibi"][s] > home["rope"][s] for s in seeds),
    )


def _extrapolated(data: Data) -> dict[Any, dict[int, float]]:
    return {k: c for k, c in data["curves"].items() if k[0] in ("PG22", "QMSum")}


@check(
    "opposite", INTRODUCTION, "Figure 1",
    "has an opposite tendency compared with others",
    "At every doubling beyond 1024 tokens LeX's perplexity falls and those of the others rise.",
    "a doubling at which LeX rises or another falls",
    kind="printed tables", label="measured", source="Table 2", data=_curves,
)
def _opposite(data: Data) -> Finding:
    steps = {
        (*k, b): c[b] - c[a] for k, c in _extrapolated(data).items()
        for a, b in itertools.pairwise(sorted(n for n in c if n >= TRAINED))
    }
    against = [k for k, v in steps.items() if (v < 0) != (k[1] == "LeX")]
    return Finding(
        not against, {"against": [" ".join(map(str, k)) for k in against]},
        "From 2048 tokens on; Alibi's falls too from 1024 to 2048.",
        bool(against) and all(k[1:] == ("Alibi", 2048) for k in against), n=len(steps),
    )


@check(
    "others-increase", INTRODUCTION, "",
    "while other methods either can't extrapolate (i.e., perplexity increases) when the input "
    "length is very long",
    "At 8192 tokens every other method has a higher perplexity than at 1024, and LeX a lower one.",
    "another method without an increase, or LeX with one",
    kind="printed tables", label="measured", source="Table 2", data=_curves,
)
def _others_increase(data: Data) -> Finding:
    change = {k: c[8192] / c[TRAINED] - 1 for k, c in _extrapolated(data).items()}
    return Finding(all((v > 0) == (k[1] != "LeX") for k, v in change.items()),
                   {"change from 1024 to 8192": _keyed(change)}, n=len(change))


def _exact_resolution(x: Iterable[Fraction]) -> Fraction:
    """R of exact weights x_0 .. x_{N+1}."""
    w = list(x)
    gained = sum((a * (a - b) for a, b in itertools.pairwise(w)), Fraction(0))
    return Fraction(gained, sum(w[:-1], Fraction(0)) ** 2)


@check(
    "eq4.monotonicity", INTRODUCTION, "Eq. 4",
    "we propose attention resolution as a metric to measure position monotonicity",
    "Read as: of the orders of the same scores, the decreasing one has the largest R.",
    "another order with a larger R",
    kind="proof", label="theorem", source="the weights 3, 2, 1 in every order, 0 after them, exact",
    data={"weights": (3, 2, 1), "after": 0, "resolution": _exact_resolution,
          "steps": lambda x: sum((a - b) ** 2 for a, b in itertools.pairwise(x))},
)
def _monotonicity(data: Data) -> Finding:
    """The weights in every order, the score after them unchanged."""
    after, rate = Fraction(data["after"]), data["resolution"]
    rows = {order: [*map(Fraction, order), after]
            for order in itertools.permutations(data["weights"])}
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
        {"R of the decreasing order": found[falling], "order with the largest R": best,
         "its R": found[best]},
        "2 R = P_0^2 - P_{N+1}^2 + sum (P_i - P_{i+1})^2: R rewards steps, upwards too.",
        identity == found and proved("resolution-identity"), n=len(found),
    )


passed(INTRODUCTION, "behaves stably at long-term dependency", "judged as figure2.oscillation")
passed(INTRODUCTION, "the calculation is done along the sequence order in O(N) time",
       "about recurrent networks")


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


@check(
    "eq1.bag-of-words", ORDER, "",
    "A transformer without position information is actually a bag-of-word model",
    "Without positions the last output does not depend on the order of the tokens before it.",
    "a permutation that changes it",
    kind="property test", label="measured", source="two random causal layers on 9 tokens",
    data={"causal": True, "layers": 2, "without": False},
)
def _bag_of_words(data: Data) -> Finding:
    x = np.random.default_rng(0).normal(size=(9, 16))

    def change(causal: bool, layers: int) -> float:
        both = (_two_layers(y, causal, layers)[-1] for y in (x, x[ORDERED]))
        return float(np.abs(np.subtract(*both)).max())

    found, without = change(data["causal"], data["layers"]), change(data["without"], 2)
    single = change(True, 1)
    return Finding(
        found < 1e-9,
        {"change of the last output under a permutation": found,
         "without a causal mask": without, "one causal layer": single},
        "So it is without a causal mask, or in one layer; two causal layers see the order.",
        without < 1e-9 and single < 1e-9, n=1,
    )


@check(
    "eq1.variant", ORDER, "Eq. 1",
    "Most of the existing position modeling satisfies this goal",
    "With each of the six encodings of Table 1 the scores change when the tokens are permuted "
    "(and not only their places).",
    "an encoding under which they do not",
    kind="property test", label="measured", source="one random head, 9 tokens",
    data={"mechanisms": MECHANISMS},
)
def _variant(data: Data) -> Finding:
    x, place = np.random.default_rng(0).normal(size=(9, 16)), np.arange(9.0)
    changes = {}
    for name in data["mechanisms"]:
        here = scores_at(name, place, x)[np.ix_(ORDERED, ORDERED)]
        changes[name] = float(np.abs(scores_at(name, place, x[ORDERED]) - here).max())
    return Finding(all(v > 1e-3 for v in changes.values()),
                   {"largest change of a score": changes}, n=len(changes))


def _translation(data: Data) -> Finding:
    """[S, Eq. 2]: padding in front only moves the positions, its keys are masked."""
    x = np.random.default_rng(0).normal(size=(20, 16))
    here = scores_at(data["mechanism"], np.arange(20.0), x)
    moved = [scores_at(data["mechanism"], np.arange(20.0) + t, x) for t in (1, 37, 200)]
    gap = float(max(np.abs(m - here).max() for m in moved))
    return Finding(
        (gap < 1e-8) is data["mark"],
        {"mark": "invariant" if data["mark"] else "not invariant",
         "largest change of a score under shifts by 1, 37, 200": gap}, n=3,
    )


for _name, _shown, _mark in (
    ("sinusoidal", "Transformer (Sinusoidal)", False), ("learned", "GPT-2 (Learnable)", False),
    ("rope", "PaLM / Roformer (ROPE)", True), ("t5", "T5", True), ("alibi", "BLOOM / Alibi", True),
    ("lex", "LEX Transformer (Ours)", True),
):
    check(
        f"table1.translation.{_name}", TRANSLATION, "Table 1, Eq. 2", _shown,
        f"{_shown} is {'' if _mark else 'not '}translation invariant.",
        f"scores that {'change' if _mark else 'stay'} under every shift of the positions",
        kind="property test", label="measured", source="one random head, 20 tokens, three shifts",
        data={"mechanism": _name, "mark": _mark},
    )(_translation)
passed(TRANSLATION, "the spread form of QK^T has 4 components whose geometric connection with "
       "position is unclear", "four terms of a product of two sums ([C] eq4.expansion)")
passed(TRANSLATION, "PE_{pos+k} can be represented as a linear function of PE_{pos}",
       "judged in 5.2.1 (eq14.linear)")


@check(
    "table1.extrapolation", LENGTH, "Table 1, right column",
    "Position modeling capabilities of Transformer variants for language modeling",
    "The marks of length extrapolation are the order of the growth of perplexity.",
    "two models in the other order",
    kind="printed tables", label="measured", source="the marks against PG22 in Table 2",
    data=_tables("table1", "table2"),
)
def _extrapolation_marks(data: Data) -> Finding:
    rank = {"double_no": 0, "no": 1, "yes": 2, "double_yes": 3}
    names = {"Transformer (Sinusoidal)": "Transformer", "PaLM / Roformer (RoPE)": "Roformer",
             "BLOOM / Alibi": "Alibi", "LeX Transformer (Ours)": "LeX"}
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


@check(
    "table1.extrapolation.experiment", LENGTH, "Table 1, right column",
    "Position modeling capabilities of Transformer variants for language modeling",
    "In trained models the four growths of perplexity are in the order of the marks.",
    "two of the four in the other order",
    kind="experiment", label="measured", source=RUNS, data=all_models,
)
def _marks_experiment(data: Data) -> Finding:
    order = ("sinusoidal", "rope", "alibi", "xpos + BCA")
    found = named(data["models"], *order)
    if len(found) < 4:
        return of_models([], {}, None)
    rises = _increases(found)
    row = [rises[k] for k in order]
    return of_models(
        found.values(), {"largest increase": rises}, row == sorted(row, reverse=True),
        "ALiBi and xPos with BCA stay within 2 %, the other two at least double.",
        max(row[2:]) < 0.02 and min(row[:2]) >= EXPLODES,
    )


@check(
    "table1.t5", LENGTH, "Table 1, right column",
    "Position modeling capabilities of Transformer variants for language modeling",
    "T5 does not extrapolate: its perplexity rises on every data set.",
    "a data set on which it stays",
    kind="printed tables", label="measured", source="T5 in Table 3 of [C], 512 to 8192 tokens",
    scale="12 layers, 768 wide, 12 heads, trained on 512 tokens ([C])", tolerant=True,
    data=lambda: {"cells": table("chi2023_table3")},
)
def _t5(data: Data) -> Finding:
    rises = {d: increase(curve(tuple(data["cells"]), dataset=d, encoding="T5"), 512)
             for d in ("OpenWebText2", "ArXiv", "GitHub")}
    return Finding(all(v >= data["tolerance"] for v in rises.values()), {"increase": rises},
                   n=len(rises))


@check(
    "rope.experiment", LENGTH, "",
    "almost every position embedding's performance drops significantly",
    "Trained with sinusoidal positions or with RoPE a model at least doubles its perplexity beyond "
    "the training length.",
    "one of the two with a smaller increase",
    kind="experiment", label="measured", source=RUNS, data=all_models,
)
def _rope_experiment(data: Data) -> Finding:
    found = named(data["models"], "sinusoidal", "rope")
    return of_models(
        found.values(), {"largest increase": _increases(found)},
        all(m.increase() >= EXPLODES for m in found.values()) if len(found) == 2 else None,
    )


@check(
    "alibi.exponential", LENGTH, "also Eq. 17",
    "solves this problem by adding an exponential decay on the attention matrix",
    "Under ALiBi the weight falls by the same factor with every token of distance.",
    "a factor that depends on the distance",
    kind="symbolic identity", label="theorem", source="e^{-m n} for all m, n",
    data={"bias": lambda m, n: -m * n},
)
def _exponential(data: Data) -> Finding:
    m, n = sympy.symbols("m n", positive=True)
    ratio = sympy.exp(data["bias"](m, n + 1) - data["bias"](m, n))
    return Finding(vanishes(sympy.diff(ratio, n)), {"b_{n+1}/b_n": sympy.simplify(ratio)})


@check(
    "alibi-above-rope", LENGTH, "Table 2",
    "Table 2 shows that Alibi's perplexity is larger than ROPE by about 0.3",
    "At the training length Alibi's perplexity is larger than RoPE's by about 0.3.",
    "a data set with another difference",
    kind="printed tables", label="measured", source="Table 2 at 1024 tokens",
    data=_tables("table2"),
)
def _alibi_above(data: Data) -> Finding:
    gaps = {
        f"{d} {n}": round(_cell(data["table2"], n, dataset=d, encoding="Alibi")
                          - _cell(data["table2"], n, dataset=d, encoding="Roformer"), 2)
        for d in ("PG22", "QMSum") for n in (256, 512, 1024)
    }
    trained = [gaps["PG22 1024"], gaps["QMSum 1024"]]
    return Finding(
        all(about(v, "0.3") for v in trained), {"Alibi minus RoPE": gaps},
        "0.66 on PG22 and 0.05 on QMSum at 1024 tokens (their mean is about 0.36).",
        trained == [0.66, 0.05] and about(sum(trained) / 2, "0.36"), n=len(trained),
    )


@check(
    "rope-with-bca", LENGTH, "Table 5",
    "With the proper attention mask, the relative position can deal with long text",
    "RoPE with BCA keeps its perplexity to 8 times the training length.",
    "an increase beyond the tolerance",
    kind="printed tables", label="measured", source="PG22 in Tables 2 and 5", tolerant=True,
    data=_tables("table2", "table5"),
)
def _rope_with_bca(data: Data) -> Finding:
    rope = {1024: _cell(data["table2"], 1024, dataset="PG22", encoding="Roformer")}
    for n in (2048, 8192):
        rope[n] = _cell(data["table5"], n, encoding="RoPE", variant="attention=BCA")
    return Finding(increase(rope, TRAINED) < data["tolerance"], {"RoPE with BCA": rope}, n=2)


passed(LENGTH, "the absence of long-term dependency contributes to a performance drop",
       "a cause that no table isolates")
passed(LENGTH, "learnable absolute position embedding", "it has no entry beyond its table")
passed(LENGTH, "the perplexity should decrease as the input length increases", "a wish")


# -- Section 3.1 and 3.2 --------------------------------------------------------------------------


@check(
    "eq4.preferred", RESOLUTION, "Eq. 4",
    "First, s[i] > s[i+1] is preferred to ensure monotonicity",
    "A summand of Eq. 4 is positive exactly where s[i] > s[i+1].",
    "scores with a summand of the other sign",
    kind="proof", label="theorem", source="all weights y > 0 and x = y + z or x = y - z, by sign",
    data={"summand": lambda a, b: a * (a - b)},
)
def _preferred(data: Data) -> Finding:
    y, z = sympy.symbols("y z", positive=True)
    above = sympy.expand(data["summand"](y + z, y))
    below = sympy.expand(data["summand"](y, y + z))
    equal = sympy.expand(data["summand"](y, y))
    return Finding(
        bool(above.is_positive and below.is_negative and equal == 0),
        {"at x = y + z, at y after y + z, at equality": [above, below, equal]},
    )


passed(RESOLUTION, "To mitigate the influence of long-tail distribution", "no measure is given")


@check(
    "figure2.oscillation", ENCODING, "Figure 2",
    "its s[n] oscillates dramatically in Figure 2",
    "From 1000 to 4000 tokens RoPE's g has more than ten times the total variation and more than "
    "twice the spread of g with the decay.",
    "a smaller ratio of either",
    kind="certified number", label="approximate",
    source="g/(d/2) at every distance, float64, d = 64",
    data={"d": D, "from": 1000, "to": 4000, "gamma": 0.4},
)
def _oscillation(data: Data) -> Finding:
    at = np.arange(data["from"], data["to"] + 1.0)
    half = data["d"] / 2
    rope = surrogate_scores(at, data["d"], gamma=None) / half
    xpos = surrogate_scores(at, data["d"], gamma=data["gamma"]) / half
    variation = {k: float(np.abs(np.diff(v)).sum()) for k, v in (("RoPE", rope), ("xPos", xpos))}
    spread = {k: float(np.ptp(v)) for k, v in (("RoPE", rope), ("xPos", xpos))}
    return Finding(
        variation["xPos"] < variation["RoPE"] / 10 and spread["xPos"] < spread["RoPE"] / 2,
        {"total variation of g/(d/2)": variation, "max minus min": spread}, n=at.size,
    )


def _scaled(data: Data) -> Finding:
    """R of the xPos and RoPE surrogates at one scale, enclosed."""
    pairs = {t: [_resolution(t, g, data["scale"]) for g in (data["gamma"], None)]
             for t in data["lengths"]}
    apart = [a[1] < b[0] or b[1] < a[0] for a, b in pairs.values()]
    above = [a[0] > b[1] for a, b in pairs.values()]
    return Finding(
        all(above) if all(apart) else None,
        {"R (xPos, RoPE) by tokens": {t: [a[0], b[0]] for t, (a, b) in pairs.items()},
         "scale of s": data["scale"], "d": D, "dialect": "code"},
        "At this scale RoPE's surrogate has the larger R: the order depends on the scale of s.",
        not any(above), "the enclosures overlap", n=len(pairs),
    )


for _key, (_scale, _words) in SCALES.items():
    check(
        f"resolution.xpos-above-rope.{_key}", ENCODING, "Figure 2",
        "which harms the resolution",
        f"R(g) of xPos is above that of RoPE, s being {_words} of Eq. 10.",
        "a certified R in the other order",
        kind="certified number", label="certified", source="rows of 1024 tokens, d = 64, in balls",
        data={"scale": _scale, "lengths": (1024,), "gamma": PAPER},
    )(_scaled)


@check(
    "gamma.sub-optimal", ENCODING, "after Eq. 11",
    "Finally, we find a sub-optimal solution by manually setting γ",
    "gamma = 0.4 does not maximise R(g), and raises it above R without decay.",
    "no gamma with a larger R, or no gain over RoPE",
    kind="certified number", label="certified",
    source="R(g) of rows of 512 tokens at the scales 1 and 1/8, d = 64, in balls",
    data={"gamma": PAPER, "scales": (Fraction(1), Fraction(1, 8)), "length": 512},
)
def _gamma(data: Data) -> Finding:
    rows = {}
    for scale in data["scales"]:
        best = _best(data["length"], scale)
        rows[scale] = [_resolution(data["length"], g, scale) for g in (best, data["gamma"], None)]
    return Finding(
        all(best[0] > here[1] and here[0] > none[1] for best, here, none in rows.values()),
        {"R at the best gamma tried, at 0.4, without decay":
         {str(s): [r[0] for r in found] for s, found in rows.items()}}, n=len(rows),
    )


@check(
    "pseudo-inner", ENCODING, "before Eq. 5",
    "which is consistent with the exact inner product's definition when we map C^{d/2} → R^d",
    "Re(x conj(y)) is the inner product of the pairs of coordinates.",
    "a difference of the two",
    kind="symbolic identity", label="theorem", source="one plane, by algebra",
    data={"product": lambda x, y: x * sympy.conjugate(y)},
)
def _pseudo(data: Data) -> Finding:
    a, b, c, d = sympy.symbols("a b c d", real=True)
    value = sympy.re(sympy.expand(data["product"](a + sympy.I * b, c + sympy.I * d)))
    return Finding(vanishes(value - (a * c + b * d)), {"Re(x conj(y))": value})


def _defect(query: Callable[[Any], Any], key: Callable[[Any], Any]) -> sympy.Matrix:
    """f_q(n + r)^T f_k(n) - f_q(r)^T f_k(0) of pairs of coordinates."""
    n, r = sympy.symbols("n r", real=True)
    return query(n + r).T * key(n) - query(r).T * key(sympy.Integer(0))


@check(
    "eq6.xpos", ENCODING, "Eq. 6 to 8",
    "Formally, the encoding must satisfy",
    "Rotation with decay satisfies Eq. 6: the score depends on the offset.",
    "a score that depends on both positions",
    kind="symbolic identity", label="theorem", source="one pair of coordinates, by algebra",
    data=lambda: dict(zip(("query", "key"), rotation_with_decay(), strict=True)),
)
def _eq_6(data: Data) -> Finding:
    defect = _defect(data["query"], data["key"])
    return Finding(
        all(map(vanishes, defect)) and proved("rotation-decay"),
        {"f_q(n + r)^T f_k(n) - f_q(r)^T f_k(0)": "0" if all(map(vanishes, defect)) else
         str(list(defect))}, n=len(defect),
    )


@check(
    "eq7.solution", ENCODING, "Eq. 7",
    "A simple solution is as follows",
    "q e^{lambda n} and k e^{-conj(lambda) n} satisfy Eq. 6.",
    "a product that depends on n",
    kind="symbolic identity", label="theorem", source="lambda = xi + i theta, by algebra",
    data={"key": lambda xi, theta, n: (-xi + sympy.I * theta) * n},
)
def _eq_7(data: Data) -> Finding:
    xi, theta, n, r = sympy.symbols("xi theta n r", real=True)
    query = (xi + sympy.I * theta) * (n + r)
    key = sympy.conjugate(data["key"](xi, theta, n))
    rest = sympy.exp(query + sympy.expand(key)) - sympy.exp((xi + sympy.I * theta) * r)
    return Finding(vanishes(rest), {"exponent of the product": sympy.expand(query + key)})


@check(
    "eq8.rope", ENCODING, "after Eq. 8",
    "If ξ = 0, the form is the same as ROPE",
    "With xi = 0 the map of Eq. 8 is a rotation.",
    "another matrix",
    kind="symbolic identity", label="theorem", source="one pair of coordinates, by algebra",
    data={"zeta": 1},
)
def _eq_8(data: Data) -> Finding:
    query, _ = rotation_with_decay()
    theta, place = sympy.Symbol("theta", real=True), sympy.Symbol("n", real=True)
    at = query(place).subs(sympy.Symbol("zeta", positive=True), data["zeta"])
    return Finding(all(map(vanishes, at - rotation(theta * place))),
                   {"xi = 0 means": "zeta = e^xi = 1"}, n=4)


@check(
    "cosine", ENCODING, "after Eq. 8",
    "the cosine function is not monotonic if the rotating angle is large than π",
    "The cosine falls with the angle up to pi and not beyond.",
    "a rise before pi, or none after",
    kind="property test", label="approximate", source="steps of pi/24 from 0 to 2 pi, float64",
    data={"function": np.cos},
)
def _cosine(data: Data) -> Finding:
    steps = np.diff(data["function"](np.arange(49) * np.pi / 24))
    return Finding(bool((steps[:24] < 0).all() and (steps[24:] > 0).any()),
                   {"steps down before pi, up after": [int((steps[:24] < 0).sum()),
                                                       int((steps[24:] > 0).sum())]},
                   n=len(steps))


@check(
    "eq9.inequality", ENCODING, "Eq. 9",
    "For generative models, we assume E(∠q) ≤ E(∠k) to ensure the monotonicity",
    "If the angle of q is at most that of k, Re(q conj(k) e^{i x}) <= |q conj(k)| cos x, x = (m - "
    "n) theta.",
    "angles within the assumption at which it fails",
    kind="symbolic identity", label="theorem",
    source="angle(q) - angle(k) = -k pi/12 and x = j pi/12 up to pi, and an identity by algebra",
    data={"sign": -1, "half": lambda x, phi: 2 * sympy.sin(x + phi / 2) * sympy.sin(phi / 2)},
)
def _eq_9(data: Data) -> Finding:
    """cos x - cos(x + phi) = 2 sin(x + phi/2) sin(phi/2)."""
    x, phi = sympy.symbols("x phi", real=True)
    grid = [(j, k) for j in range(13) for k in range(13) if 2 * j + k <= 24]

    def fails(sign: int) -> list[tuple[int, int]]:
        return [(j, k) for j, k in grid
                if math.cos((j + sign * k) * math.pi / 12) > math.cos(j * math.pi / 12) + 1e-12]

    found = fails(data["sign"])
    identity = vanishes(sympy.cos(x) - sympy.cos(x + phi) - data["half"](x, phi))
    return Finding(
        not found,
        {"pairs that fail": len(found),
         "counterexample": "angle(q) - angle(k) = -pi/2, x = pi/2: 1 <= 0",
         "there": [math.cos(0), round(math.cos(math.pi / 2), 12)]},
        "Under the opposite assumption, 0 <= angle(q) - angle(k) <= 2 pi - 2 x: the difference of "
        "the sides is 2 sin(x + phi/2) sin(phi/2) >= 0.",
        identity and not fails(1), n=len(grid),
    )


@check(
    "eq9.proportional", ENCODING, "Eq. 9, last line",
    "∝ Σ_x cos(m − n)θ_x e^{(m−n)ξ_x}",
    "The bound is proportional to g whatever the mean sizes E|q_x k_x| of the planes.",
    "sizes with which the ratio to g changes with the distance",
    kind="symbolic identity", label="theorem", source="sizes 1 .. 32 of 32 planes, n = 0 .. 99",
    data={"sizes": tuple(range(1, D // 2 + 1)), "equal": (3,) * (D // 2)},
)
def _proportional(data: Data) -> Finding:
    planes, at = np.arange(D // 2), np.arange(100.0)
    zeta = (planes / (D // 2) + 0.4) / 1.4
    terms = np.cos(at[:, None] * 10_000.0 ** (-2 * planes / D)) * zeta ** (at[:, None] / 512)
    g = terms.sum(1)

    def spread(sizes: Any) -> float:
        return float(np.ptp(terms @ np.asarray(sizes, float) / g))

    return Finding(
        spread(data["sizes"]) < 1e-9, {"largest minus least ratio to g": spread(data["sizes"])},
        "With one size for all planes it is.", spread(data["equal"]) < 1e-9, n=at.size,
    )


@check(
    "index-range", ENCODING, "Eq. 9 to 12 against Algorithm 1",
    "θ = {θ_i = 10000^{−2i/d}, i ∈ [0, 1, ..., d/2]}",
    "g of Eq. 10 (i = 0 .. d/2) is the score of the algorithm on d coordinates.",
    "another number of terms than of planes",
    kind="symbolic identity", label="theorem", source="the number of terms, d = 64",
    data={"printed": D // 2 + 1, "coordinates": D},
)
def _index_range(data: Data) -> Finding:
    planes = data["coordinates"] // 2
    heights = {k: float(surrogate_scores([0.0], D, dialect=k)[0]) for k in ("printed", "code")}
    return Finding(
        data["printed"] == planes,
        {"terms as printed": data["printed"], "planes of d coordinates": planes,
         "g[0] (printed, algorithm)": list(heights.values()),
         "also": "Eq. 12 starts at theta_1; only i = d/2 has zeta = 1"},
        "i = 0 .. d/2 - 1, as in Algorithm 1; then every zeta < 1 and g decays to 0.",
        heights["code"] == planes, n=1,
    )


@check(
    "oscillation.large-theta", ENCODING, "after Eq. 10",
    "Obviously, the oscillation mainly comes from large θ_i",
    "The half of the planes with the larger theta has more than half of the total variation of the "
    "waves.",
    "half of it, or less",
    kind="certified number", label="approximate", source="32 waves at 0 .. 4000, float64",
    data={"base": 10_000.0},
)
def _large_theta(data: Data) -> Finding:
    planes, at = np.arange(D // 2), np.arange(4001.0)
    waves = np.cos(at[:, None] * data["base"] ** (-2 * planes / D))
    variation = np.abs(np.diff(waves, axis=0)).sum(0)
    share = float(variation[: D // 4].sum() / variation.sum())
    return Finding(share > 0.5 + 1e-9, {"share of the half with the larger theta": share},
                   n=D // 2)


def _zeta(gamma: Fraction, half: int) -> list[Fraction]:
    return [(Fraction(i, half) + gamma) / (1 + gamma) for i in range(half + 1)]


@check(
    "eq11.range", ENCODING, "Eq. 11",
    "∈ [0, 1]",
    "zeta_i lies in [0, 1].", "a zeta outside",
    kind="proof", label="theorem", source="i = 0 .. d/2 at gamma = 2/5, exact",
    data={"gamma": PAPER, "half": D // 2},
)
def _eq_11(data: Data) -> Finding:
    zeta = _zeta(data["gamma"], data["half"])
    return Finding(min(zeta) >= 0 and max(zeta) <= 1,
                   {"least": zeta[0], "largest, at i = d/2": zeta[-1]}, n=len(zeta))


@check(
    "eq11.monotone", ENCODING, "Eq. 11",
    "becomes smaller when θ_i is larger",
    "zeta_i falls where theta_i rises.", "two planes in the other order",
    kind="proof", label="theorem", source="i = 0 .. d/2 at gamma = 2/5, exact",
    data={"gamma": PAPER, "theta": lambda i: Fraction(1, 10**i)},
)
def _eq_11_monotone(data: Data) -> Finding:
    zeta = _zeta(data["gamma"], D // 2)
    theta = [data["theta"](i) for i in range(len(zeta))]  # any falling theta_i
    pairs = list(itertools.combinations(range(len(zeta)), 2))
    return Finding(
        all((zeta[a] - zeta[b]) * (theta[a] - theta[b]) < 0 for a, b in pairs),
        {"zeta_0, zeta_1, zeta_{d/2}": [zeta[0], zeta[1], zeta[-1]]}, n=len(pairs),
    )


@check(
    "zeta-near-one", ENCODING, "after Eq. 12",
    "because ζ_i^n ≈ 1 when i is large or n is small",
    "zeta_i^{n/512} is 1 within the tolerance, in the last plane at every distance of Figure 2 and "
    "in every plane at up to 8 tokens.",
    "a power further from 1",
    kind="certified number", label="approximate", source="d = 64, gamma = 0.4, n up to 4000",
    tolerant=True, data={"gamma": 0.4, "far": 4000, "near": 8, "last": D // 2 - 1},
)
def _near_one(data: Data) -> Finding:
    def power(i: int, n: int) -> float:
        return float(((i / (D / 2) + data["gamma"]) / (1 + data["gamma"])) ** (n / 512))

    last, near = power(data["last"], data["far"]), power(0, data["near"])
    return Finding(
        max(abs(1 - last), abs(1 - near)) < data["tolerance"],
        {f"last plane at {data['far']}": last, f"first plane at {data['near']}": near,
         "last plane at 8192": power(data["last"], 8192)},
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
        {"zeta_0": found.zeta, "largest power": found.largest, "smallest power": found.smallest,
         "fits from gamma =": found.least_gamma},
        "It fits with base 512 and positions centred at 0, as the released code has them.",
        repaired.fits, n=1,
    )


for _key, _base, _centred, _words in (
    ("no-base", 1, False, "without a base"), ("base-512", 512, False, "with base 512"),
    ("centred", 512, True, "with base 512 and centred positions"),
):
    check(
        f"fp16.{_key}", ENCODING, "after Eq. 11",
        "can be represented by fp16 when n is big (8192 in our setting)",
        f"With gamma = 0.4 the powers of zeta up to n = 8192 are half-precision numbers, {_words}.",
        "a power beyond the range of half precision",
        kind="certified number", label="theorem", source="zeta_0 to the powers 8192 and -8192",
        data={"gamma": "2/5", "length": 8192, "base": _base, "centred": _centred},
    )(_half_precision)


@check(
    "fitting", ENCODING, "Table 4",
    "it does not hurt pure rotation's fitting ability",
    "At the training length xPos has no higher perplexity than RoPE (zeta = 0 in Table 4).",
    "a higher one",
    kind="printed tables", label="measured",
    source="Table 4 at 1024 tokens", data=_tables("table4"),
)
def _fitting(data: Data) -> Finding:
    lex, rope = (_cell(data["table4"], 1024, variant=v) for v in ("", "zeta=0"))
    return Finding(lex <= rope, {"xPos": lex, "RoPE": rope}, n=1)


def _paired(found: Mapping[str, Model], protocol: str = WHOLE) -> dict[int, list[float]]:
    """Perplexities at the training length of xPos and RoPE, by seed of both."""
    x, r = (found[k].perplexity[protocol][found[k].trained] for k in ("xpos", "rope"))
    return {s: [x[s], r[s]] for s in sorted(set(x) & set(r))}


@check(
    "fitting.experiment", ENCODING, "",
    "it does not hurt pure rotation's fitting ability",
    "At the training length xPos's perplexity is above RoPE's by less than the tolerance, in every "
    "seed.",
    "a seed with a larger loss",
    kind="experiment", label="measured", source=RUNS, tolerant=True,
    data=all_models,
)
def _fitting_experiment(data: Data) -> Finding:
    found = named(data["models"], "xpos", "rope")
    if len(found) < 2:
        return of_models([], {}, None)
    pairs = _paired(found)
    return of_models(found.values(), {"perplexity of xPos, RoPE by seed": pairs},
                     all(x / r - 1 < data["tolerance"] for x, r in pairs.values()))


@check(
    "convergence.rope", ENCODING, "",
    "which causes bad extrapolation performance and restricts the model's convergence speed",
    "The mean training loss with the decay is below that of RoPE in every seed.",
    "a seed in which it is not",
    kind="experiment", label="measured", source="training losses of the reference runs",
    data=all_models,
)
def _convergence_rope(data: Data) -> Finding:
    found = named(data["models"], "xpos", "rope")
    if len(found) < 2:
        return of_models([], {}, None)
    x, r = found["xpos"].losses, found["rope"].losses
    seeds = sorted(set(x[min(x)]) & set(r[min(r)]))
    gaps = {s: float(np.mean([x[t][s] - r[t][s] for t in x])) for s in seeds}
    return of_models(
        found.values(), {"mean loss of xPos minus RoPE, nats, by seed": gaps},
        all(v < 0 for v in gaps.values()),
        "The two learn alike: their mean losses differ by less than 0.01 nats in every seed.",
        all(abs(v) < 0.01 for v in gaps.values()),
    )


@check(
    "algorithm1.base", ENCODING, "Algorithm 1 against Eq. 12",
    "can be easily calculated by parallel addition and multiplication as shown in Algorithm 1",
    "Algorithm 1 computes the powers of Eq. 12.",
    "another exponent of zeta",
    kind="symbolic identity", label="theorem", source="the exponents as printed, B = 512",
    data={"algorithm": lambda m, base: m, "equation": lambda m, base: m / base},
)
def _algorithm_base(data: Data) -> Finding:
    m, n, base = sympy.symbols("m n B", positive=True)
    first, second = (data[k](m, base) for k in ("algorithm", "equation"))
    repaired = data["equation"](m, base) - data["equation"](n, base) - (m - n) / base
    return Finding(
        vanishes(first - second), {"exponent of zeta in Algorithm 1, in Eq. 12": [first, second]},
        "T_mn = zeta_n^{m/B} with B = 512, as in Eq. 12, whose scores depend on (m - n)/B",
        vanishes(repaired), n=1,
    )


@check(
    "algorithm1.rot", ENCODING, "Algorithm 1 against Eq. 12",
    "return [−x1, x0, −x3, x2, ...]",
    "Q C + rot(Q) S turns each pair of coordinates by its angle, as Eq. 12 does.",
    "another matrix",
    kind="symbolic identity", label="theorem", source="two pairs of coordinates, by algebra",
    data={"rot": lambda x: [-x[1], x[0], -x[3], x[2]]},
)
def _algorithm_rot(data: Data) -> Finding:
    x = sympy.symbols("x0:4", real=True)
    a, b = sympy.symbols("a b", real=True)
    angles = (a, a, b, b)
    turned = [q * sympy.cos(t) + r * sympy.sin(t)
              for q, r, t in zip(x, data["rot"](x), angles, strict=True)]
    wanted = [*(rotation(a) * sympy.Matrix(x[:2])), *(rotation(b) * sympy.Matrix(x[2:]))]
    return Finding(
        all(vanishes(s - t) for s, t in zip(turned, wanted, strict=True)), {"first": turned[0]}, n=4
    )


def _softmax(scores: np.ndarray) -> np.ndarray:
    w = np.exp(scores - scores.max(-1, keepdims=True))
    weights: np.ndarray = w / w.sum(-1, keepdims=True)
    return weights


@check(
    "algorithm1.mask", ENCODING, "Algorithm 1, last lines",
    "output = softmax(QK^T/√d · M)V",
    "The product with the mask gives later keys the weight 0.",
    "a positive weight on a later key",
    kind="property test", label="theorem", source="scores of 3 tokens",
    data={"apply": lambda s, m: s * m, "add": lambda s, m: np.where(m, s, -np.inf)},
)
def _algorithm_mask(data: Data) -> Finding:
    scores = np.array([[0.3, 1.0, -0.2], [0.5, 0.1, 2.0], [0.4, 0.2, 0.1]])
    mask = np.tri(3, dtype=bool)
    leaked = float(_softmax(data["apply"](scores, mask))[~mask].max())
    added = float(_softmax(data["add"](scores, mask))[~mask].max())
    return Finding(
        leaked == 0,
        {"largest weight on a later key": leaked, "with an added -oo": added,
         "why": "a product with 0 makes the score 0, whose weight is e^0"},
        "softmax(Q K^T / sqrt(d) + M) with M = 0 or -oo does.", added == 0, n=3,
    )


@check(
    "algorithm1.shape", ENCODING, "Algorithm 1, input",
    "M ∈ R^{d×d}",
    "The mask has the shape of Q K^T.",
    "another shape",
    kind="symbolic identity", label="theorem", source="the shapes at l = 1024, d = 64",
    data={"mask": lambda l, d: (d, d), "query": lambda l, d: (l, d)},
)
def _algorithm_shape(data: Data) -> Finding:
    l, d = 1024, D
    rows = data["query"](l, d)[0]
    return Finding(
        data["mask"](l, d) == (rows, rows), {"mask": data["mask"](l, d), "Q K^T": (rows, rows)},
        "M is l x l, a score a pair of tokens.", (rows, rows) == (l, l), n=1,
    )


@check(
    "cost.as-rope", ENCODING, "",
    "the cost is almost the same with ROPE",
    "xPos adds less than a thousandth to the operations of a layer with RoPE.",
    "more operations",
    kind="certified number", label="theorem",
    source="multiplications and additions of one token in one layer, 1024 wide, 16 heads",
    data={"width": 1024, "size": D, "rotation": 3, "table": 2},
)
def _as_rope(data: Data) -> Finding:
    matrices = 2 * 12 * data["width"] ** 2
    rope = matrices + 2 * data["rotation"] * data["width"]
    extra = 2 * data["table"] * data["size"]
    return Finding(extra / rope < 1e-3, {"operations with RoPE": rope, "more": extra}, n=1)


@check(
    "cost.six-percent", ENCODING, "also Limitations",
    "bigger than Absolute Position with 6% additional time",
    "Inference with xPos takes 6 % more time than with absolute positions.",
    "another ratio, timed with the kernels and models of the paper",
    kind="experiment", label="measured", source="no times of such models", scale="that of Table 7",
    data=_given(all_models, times=None),
)
def _six_percent(data: Data) -> Finding:
    if data["times"] is not None:
        more = 100 * (data["times"]["xpos"] / data["times"]["absolute"] - 1)
        return Finding(about(more, "6"), {"additional time, percent": more}, n=1)
    found = named(data["models"], "xpos", "sinusoidal")
    means = {k: float(np.mean(list(m.seconds.values()))) for k, m in found.items() if m.seconds}
    ours = ("" if len(means) < 2 else
            f"; training on a CPU takes {means['xpos'] / means['sinusoidal'] - 1:.0%} longer")
    return Finding(None, {}, reason="a time of other code on other machines, at another scale"
                   + ours)


passed(ENCODING, "The scaling factor A_q, A_k is unnecessary because q, k is obtained by a linear "
       "transformation", "true as written: two products of matrices")
passed(ENCODING, "the inequality scaling of (Su et al., 2021) is too strong to lose generality",
       "about another paper")
passed(ENCODING, "Numerical optimization methods are tried to find optimal values for ζ",
       "nothing is printed of them")
passed(ENCODING, "short-term and long-term dependencies are divided continuously",
       "no measure is given")


# -- blockwise causal attention -------------------------------------------------------------------


def _masked_pairs(length: int, half: int) -> int:
    """Pairs of a causal row that BCA hides."""
    place = np.arange(length)
    seen = Visibility(bca=half).sees(place[:, None], place[None, :])
    return int(length * (length + 1) // 2 - seen.sum())


@check(
    "bca.identity", BLOCKS, "also 5.1",
    "we use vanilla attention in the training phase",
    "Up to the training length BCA with half of it masks nothing, so that training may do without.",
    "a hidden pair",
    kind="property test", label="theorem", source="all pairs of 1024 tokens, blocks of 512",
    data={"length": 1024, "half": 512},
)
def _bca_identity(data: Data) -> Finding:
    hidden = _masked_pairs(data["length"], data["half"])
    return Finding(
        hidden == 0,
        {"hidden pairs": hidden,
         "at twice the length": _masked_pairs(2 * data["length"], data["half"])},
        n=data["length"] * (data["length"] + 1) // 2,
    )


@check(
    "bca.support", BLOCKS, "Figure 3",
    "each query interacts with its own block and the last block",
    "With BCA a query beyond the first block sees half + 1 to 2 half keys, at most the training "
    "length.",
    "a row with another number",
    kind="proof", label="theorem", source="12 blocks of 16 tokens, and the theorem bca-support",
    data={"half": 16, "visible": Visibility(bca=16)},
)
def _bca_support(data: Data) -> Finding:
    half, place = data["half"], np.arange(12 * data["half"])
    seen = data["visible"].sees(place[:, None], place[None, :]).sum(1)[half:]
    return Finding(
        int(seen.min()) == half + 1 and int(seen.max()) == 2 * half and proved("bca-support"),
        {"keys of a row beyond the first block": [int(seen.min()), int(seen.max())], "half": half},
        n=len(seen),
    )


@check(
    "bca.reach", BLOCKS, "Figure 3",
    "the context information can be delivered by the reuse of key and value",
    "With BCA every further layer reaches tokens that the one before did not.",
    "a layer that reaches no further",
    kind="property test", label="theorem",
    source="the last of 12 blocks of 8 tokens, 1 to 4 layers",
    data={"half": 8, "visible": Visibility(bca=8)},
)
def _bca_reach(data: Data) -> Finding:
    place = np.arange(12 * data["half"])
    seen = data["visible"].sees(place[:, None], place[None, :]).astype(int)
    reach, power = [], np.eye(len(place), dtype=int)
    for _ in range(4):
        power = ((power @ seen) > 0).astype(int)
        reach.append(int(power[-1].sum()))
    return Finding(all(b > a for a, b in itertools.pairwise(reach)),
                   {"tokens reached by 1, 2, 3, 4 layers": reach}, n=len(reach))


@check(
    "bca.resolution", BLOCKS, "",
    "The window constraint helps models encode longer input with improved resolution",
    "At twice the training length R of the surrogate of xPos is larger with BCA than without.",
    "a smaller R at a scale",
    kind="certified number", label="approximate",
    source="rows of 2048 tokens, float64, d = 64; with BCA the mean over the rows of a block",
    data={"gamma": 0.4, "half": 512, "scales": (1.0, 1 / 8, 1 / 32)},
)
def _bca_resolution(data: Data) -> Finding:
    g = surrogate_scores(np.arange(2048.0), D, gamma=data["gamma"])
    rows = {}
    for scale in data["scales"]:
        x = np.exp(scale * g)
        gains, sums = (x[:-1] * (x[:-1] - x[1:])).cumsum(), x.cumsum()
        windows = np.arange(data["half"] + 1, 2 * data["half"] + 1)  # the last key seen loses all
        cut = gains[windows - 2] + x[windows - 1] ** 2
        masked = cut / sums[windows - 1] ** 2
        rows[scale] = [float(masked.mean()), float(gains[-1] / sums[-2] ** 2)]
    return Finding(all(a > b for a, b in rows.values()), {"R with BCA, without, by scale": rows},
                   n=len(rows))


passed(BLOCKS, "it is cache-friendly and easy to implement", "a judgement")


# -- Section 4 ------------------------------------------------------------------------------------


@check(
    "batch.tokens", TRAINING, "",
    "The global batch size is 512 to follow GPT-3 (Brown et al., 2020), i.e., 0.5M token size",
    "512 texts of 1024 tokens are about 0.5 million tokens.", "another number",
    kind="printed tables", label="theorem", source="the numbers of the sentence",
    data={"batch": 512, "length": TRAINED},
)
def _batch(data: Data) -> Finding:
    millions = data["batch"] * data["length"] / 1e6
    return Finding(about(millions, "0.5"), {"million tokens": millions}, n=1)


@check(
    "gpt3-medium", TRAINING, "also B",
    "comparable to medium-size GPT-3",
    "The model has the parameters of GPT-3 medium, 350 million, within the tolerance.",
    "a number further off",
    kind="certified number", label="approximate", tolerant=True,
    source="24 layers, 1024 wide, GPT-2's vocabulary, tied; 350M of Brown et al., Table 2.1",
    data={"layers": 24, "width": 1024, "vocabulary": 50_257, "wanted": 350},
)
def _gpt3(data: Data) -> Finding:
    d = data["width"]
    millions = (data["layers"] * (12 * d * d + 13 * d) + 2 * d + data["vocabulary"] * d) / 1e6
    return Finding(abs(millions / data["wanted"] - 1) < data["tolerance"], {"millions": millions},
                   n=1)


passed(TRAINING, "The training procedure is performed on 16×V100 GPUs",
       "nothing to compare it with")
passed(MODELING, "above 9k length on average", "about a data set")


def _at_home(curves: Mapping[Any, dict[int, float]], names: Iterable[str]) -> dict[Any, float]:
    """Largest over least perplexity - 1 at each data set and length up to the training length."""
    return {
        (d, n): max(row) / min(row) - 1
        for d in ("PG22", "QMSum") for n in (256, 512, 1024)
        for row in ([curves[d, e][n] for e in names],)
    }


@check(
    "interpolation.close", MODELING, "Table 2",
    "all Transformers' generalization capabilities are also close",
    "Up to the training length the perplexities of the four lie within the tolerance.",
    "a length at which they do not",
    kind="printed tables", label="measured", source="Table 2, 256 to 1024 tokens", tolerant=True,
    data=_curves,
)
def _close(data: Data) -> Finding:
    spread = _at_home(data["curves"], FOUR)
    relative = _at_home(data["curves"], FOUR[1:])
    return Finding(
        all(v < data["tolerance"] for v in spread.values()), {"largest over least - 1":
                                                              _keyed(spread)},
        "Those of the three relative encodings do, to 4 %.",
        all(v < 0.04 for v in relative.values()), n=len(spread),
    )


@check(
    "table2.stable-advantage", MODELING, "Table 2",
    "XPOS have a stable advantage on others with a 0.09 perplexity drop on PG22, and 0.27 on QMSum",
    "Up to 1024 tokens LeX is below the best other, at 1024 by 0.09 on PG22 and 0.27 on QMSum.",
    "another drop at 1024, or none at a length",
    kind="printed tables", label="measured", source="Table 2, 256 to 1024 tokens", data=_curves,
)
def _advantage(data: Data) -> Finding:
    curves = data["curves"]
    drops = {
        (d, n): round(min(curves[d, e][n] for e in FOUR[:3]) - curves[d, "LeX"][n], 2)
        for d in ("PG22", "QMSum") for n in (256, 512, 1024)
    }
    return Finding(
        (drops["PG22", 1024], drops["QMSum", 1024]) == (0.09, 0.27) and min(drops.values()) > 0,
        {"best other minus LeX": _keyed(drops)}, n=len(drops),
    )


@check(
    "table2.stable-decrease", MODELING, "Table 2",
    "XPOS shows a stable decrease when the sequence length increases",
    "LeX's perplexity in Table 2 (xPos with BCA) falls with every longer length.",
    "a length with a rise",
    kind="printed tables", label="measured", source="LeX in Table 2", data=_curves,
)
def _stable_decrease(data: Data) -> Finding:
    found = {k: c for k, c in _extrapolated(data).items() if k[1] == "LeX"}
    return Finding(all(map(falls, found.values())), {"perplexity": _keyed(found)}, n=len(found))


@check(
    "decrease.experiment", MODELING, "",
    "XPOS shows a stable decrease when the sequence length increases",
    "A trained xPos model with BCA has, in non-overlapping segments, a perplexity that falls with "
    "every doubling up to 16 times the training length.",
    "a doubling with a rise",
    kind="experiment", label="measured", source=RUNS, data=all_models,
)
def _decrease_experiment(data: Data) -> Finding:
    found = named(data["models"], "xpos + BCA")
    if not found:
        return of_models([], {}, None)
    (m,) = found.values()
    values = m.mean(WHOLE, 16 * m.trained)
    return of_models([m], {"perplexity": values}, falls(values))


@check(
    "longer-context.experiment", MODELING, "",
    "which satisfies the assumption that a longer context makes the prediction better",
    "The perplexity of the last token of a row falls when an xPos model with BCA sees a longer "
    "row.",
    "a longer row without a gain",
    kind="experiment", label="measured", source=RUNS, data=all_models,
)
def _longer_context(data: Data) -> Finding:
    found = named(data["models"], "xpos + BCA")
    if not found:
        return of_models([], {}, None)
    (m,) = found.values()
    last, whole = m.mean(LAST), m.mean(WHOLE, 16 * m.trained)
    return of_models(
        [m], {"last token": last, "non-overlapping segments": whole}, falls(last),
        "It stays, to 1 %, while that of segments falls: what falls is the share of tokens near "
        "the start of a segment.",
        stays(last, 0.01) and falls(whole),
    )


@check(
    "others-4096", MODELING, "Table 2",
    "While others' perplexity increases when the input length is 4096",
    "From 2048 to 4096 tokens the perplexity of each other method rises.",
    "one that does not rise",
    kind="printed tables", label="measured", source="Table 2", data=_curves,
)
def _others_4096(data: Data) -> Finding:
    steps = {k: c[4096] - c[2048] for k, c in _extrapolated(data).items() if k[1] != "LeX"}
    return Finding(all(v > 0 for v in steps.values()), {"at 4096 minus at 2048": _keyed(steps)},
                   n=len(steps))


@check(
    "alibi-increases", MODELING, "Figure 1, Table 2",
    "When the length is larger than 4096, Alibi's perplexity increases gradually",
    "From 4096 to 8192 tokens Alibi's perplexity rises, by less than its double.",
    "a fall, or a jump",
    kind="printed tables", label="measured", source="Alibi in Table 2", data=_curves,
)
def _alibi_increases(data: Data) -> Finding:
    steps = {k: c[8192] / c[4096] - 1 for k, c in _extrapolated(data).items() if k[1] == "Alibi"}
    return Finding(all(0 < v < EXPLODES for v in steps.values()),
                   {"at 8192 over 4096 - 1": _keyed(steps)}, n=len(steps))


def _falling(curves: Mapping[Any, dict[int, float]], sets: tuple[str, ...]) -> dict[str, list[str]]:
    return {d: [e for e in FOUR if falls(curves[d, e])] for d in sets}


def _lex_alone(data: Data) -> Finding:
    found = _falling(data["curves"], data["sets"])
    return Finding(all(v == ["LeX"] for v in found.values()),
                   {"perplexity falls throughout": found}, n=len(FOUR) * len(found))


def _lex_best(data: Data) -> Finding:
    curves, cells = data["curves"], 0
    wrong: dict[str, str] = {}
    for (d, e), c in curves.items():
        if d in data["sets"] and e != "LeX":
            cells += len(c)
            wrong |= {f"{d} {n}": f"{e} {v}, LeX {curves[d, 'LeX'][n]}" for n, v in c.items()
                      if v <= curves[d, "LeX"][n]}
    return Finding(
        not wrong, {"comparisons": cells, "exceptions": wrong},
        "In all but one: Alibi is lower on arXiv at 2048 tokens, 15.38 against 15.81.",
        set(wrong.values()) == {"Alibi 15.38, LeX 15.81"}, n=cells,
    )


for _number, _sets, _where in (
    (2, ("PG22", "QMSum"), MODELING), (6, ("arXiv", "NarrativeQA"), MORE),
):
    check(
        f"table{_number}.only-lex", _where, f"caption of Table {_number}",
        "is the only method that has lower perplexity along with increased evaluation length",
        "Of the four methods LeX alone has a perplexity that falls with every longer length.",
        "another that falls throughout, or LeX with a rise",
        kind="printed tables", label="measured", source=f"Table {_number}",
        data=_given(_curves, sets=_sets),
    )(_lex_alone)
    check(
        f"table{_number}.lex-best", _where, f"caption of Table {_number}",
        "obtains better performance not only on shorter texts (i.e., interpolation) but also on "
        "longer texts (i.e., extrapolation)",
        "LeX has the lowest perplexity of the four at every length.",
        "a length at which another has it",
        kind="printed tables", label="measured", source=f"Table {_number}",
        data=_given(_curves, sets=_sets),
    )(_lex_best)


@check(
    "mask-not-decay", MODELING, "",
    "a proper design for an attention mask is actually better to deal with long-context tasks",
    "Not a decay on the attention but a mask bounds what a long row attends to.",
    "a convergent series of the surrogate with decay, or a divergent one with a mask",
    kind="proof", label="theorem", source="the surrogate of xPos, without and with BCA of 512",
    data={"decay": "xpos_surrogate", "masked": {"bca": 512},
          "theorems": ("rotation-divergence", "surrogate-diverges", "bca-support")},
)
def _mask_not_decay(data: Data) -> Finding:
    decay = check_convergence(data["decay"])
    masked = check_convergence(encoding(data["decay"], **data["masked"]))
    return Finding(
        decay.converges is False and masked.converges is True
        and all(map(proved, data["theorems"])),
        {"exp-series of g with decay": decay.verdict, "with BCA": masked.verdict,
         "reason": masked.reason or decay.reason,
         "without the surrogate": theorem("rotation-divergence").proof.claim},
    )


@check(
    "mask-better.printed", MODELING, "Table 5 against Table 2",
    "a proper design for an attention mask is actually better to deal with long-context tasks",
    "RoPE with BCA, a mask without decay, has a lower perplexity than Alibi, a decay without mask, "
    "at 2048 and at 8192 tokens.",
    "a length at which it has not",
    kind="printed tables", label="measured", source="Table 5, PG22", data=_tables("table5"),
)
def _mask_better(data: Data) -> Finding:
    rows = {n: [_cell(data["table5"], n, encoding="RoPE", variant="attention=BCA"),
                _cell(data["table5"], n, encoding="Alibi", variant="attention=full")]
            for n in (2048, 8192)}
    return Finding(
        all(a < b for a, b in rows.values()), {"RoPE with BCA, Alibi": rows},
        "At 8192 tokens; at 2048 Alibi is lower.",
        rows[8192][0] < rows[8192][1] and rows[2048][0] > rows[2048][1], n=2,
    )


@check(
    "eq13.count", MEASURING, "Eq. 13",
    "The expectation of s[n] is computed as",
    "The sum of Eq. 13 has N - n terms, by which it is divided.",
    "another number of terms",
    kind="symbolic identity", label="theorem", source="N = 1 .. 12 and all n below",
    data={"first": lambda n: n, "last": lambda big: big - 1},
)
def _eq_13(data: Data) -> Finding:
    cases = [(big, n) for big in range(1, 13) for n in range(big)]
    counts = [data["last"](big) - data["first"](n) + 1 for big, n in cases]
    return Finding(all(c == big - n for c, (big, n) in zip(counts, cases, strict=True)),
                   {"cases": len(cases)}, n=len(cases))


@check(
    "eq4.last", MEASURING, "Eq. 4 with Eq. 13",
    "the attention resolution can be calculated by combining Equation (4) and Equation (13)",
    "With the scores s[0] .. s[N-1] that Eq. 13 gives for N tokens, the sum of Eq. 4 to N is "
    "defined.",
    "a score that it needs and that is not there",
    kind="symbolic identity", label="theorem", source="the indices of both equations, N = 2 .. 9",
    data={"given": lambda n: range(n), "last": lambda n: n},
)
def _last(data: Data) -> Finding:
    def lacking(last: Callable[[int], int]) -> dict[int, list[int]]:
        needed = {n: {i + k for i in range(last(n) + 1) for k in (0, 1)} for n in range(2, 10)}
        return {n: sorted(needed[n] - set(data["given"](n))) for n in needed}

    printed, shorter = lacking(data["last"]), lacking(lambda n: n - 2)
    return Finding(
        not any(printed.values()), {"scores that are not there, by N": printed},
        "The sum to N - 2 is, whose last term takes s[N-1].", not any(shorter.values()),
        n=len(printed),
    )


@check(
    "table3.range", MEASURING, "Table 3 against Eq. 4",
    "the attention resolution can be calculated by combining Equation (4) and Equation (13)",
    "The values of Table 3 are resolutions R of Eq. 4.",
    "a value above 1, which no R exceeds",
    kind="proof", label="theorem", source="Table 3, and the theorem resolution-bound",
    data=_tables("table3"),
)
def _table_3_range(data: Data) -> Finding:
    values = {(c.encoding, c.variant, c.eval_length): c.exact for c in data["table3"]}
    above = {" ".join(map(str, k)): float(v) for k, v in values.items() if v - Fraction(1, 200) > 1}
    return Finding(
        not (above and proved("resolution-bound")),
        {"printed above 1": above, "bound": theorem("resolution-bound").statement,
         "so": "an R of 0.9 needs one key with more than 0.9 of the mass on average"},
        n=len(values),
    )


@check(
    "table3.order", MEASURING, "Table 3",
    "XPOS makes the position more recognizable in both 1024 (i.e., training length) and 2048",
    "xPos, with BCA and without, has a larger R than the others at 1024 and at 2048 tokens.",
    "another model with a larger R",
    kind="printed tables", label="measured", source="Table 3", data=_tables("table3"),
)
def _table_3_order(data: Data) -> Finding:
    cells = data["table3"]
    lex, plain = (
        {n: _cell(cells, n, encoding="LeX", variant=v) for n in (1024, 2048)}
        for v in ("bca=1", "bca=0")
    )
    others = {
        n: max(c.value for c in cells if c.encoding != "LeX" and c.eval_length == n) for n in lex
    }
    return Finding(
        all(v > others[n] for d in (lex, plain) for n, v in d.items()),
        {"LeX": lex, "LeX without BCA": plain, "best other": others},
        "At 2048 tokens only together with BCA: without it 0.54, below Alibi's 0.88.",
        all(lex[n] > others[n] for n in lex) and (plain[2048], others[2048]) == (0.54, 0.88), n=4,
    )


@check(
    "table3.order.experiment", MEASURING, "",
    "XPOS makes the position more recognizable in both 1024 (i.e., training length) and 2048",
    "In trained models the measured R of xPos is above that of RoPE, at the training length and at "
    "twice that, in every seed.",
    "a seed with the other order",
    kind="experiment", label="measured", source="mean expected scores of the reference runs",
    data=all_models,
)
def _order_experiment(data: Data) -> Finding:
    found = named(data["models"], "xpos", "rope")
    if len(found) < 2:
        return of_models([], {}, None)
    x, r = found["xpos"], found["rope"]
    pairs = {
        (k, s): [_row_resolution(m.scores[s], k * m.trained) for m in (x, r)]
        for k in (1, 2) for s in sorted(set(x.scores) & set(r.scores))
    }
    above = {k: [a > b for (j, _), (a, b) in pairs.items() if j == k] for k in (1, 2)}
    return of_models(
        found.values(),
        {"R of xPos, RoPE": {f"{k}x, seed {s}": v for (k, s), v in pairs.items()}},
        all(above[1]) and all(above[2]),
        "At twice the training length in every seed; at the training length in one of three.",
        all(above[2]) and sum(above[1]) == 1 and len(above[1]) == 3,
    )


@check(
    "table3.alibi-stable", MEASURING, "Table 3",
    "the stable resolution comes from explicit decay",
    "Alibi's R at 2048 tokens is that at 1024, within the tolerance.",
    "a larger change",
    kind="printed tables", label="measured", source="Alibi in Table 3", tolerant=True,
    data=_tables("table3"),
)
def _alibi_stable(data: Data) -> Finding:
    here, twice = (_cell(data["table3"], n, encoding="Alibi") for n in (1024, 2048))
    return Finding(abs(twice / here - 1) < data["tolerance"],
                   {"R at 1024, 2048": [here, twice], "change": twice / here - 1}, n=1)


@check(
    "table3.bca", MEASURING, "Table 3",
    "BCA helps the model distinguish positions better, achieving higher attention resolution",
    "BCA raises the resolution at both lengths that are ablated, 1024 and 2048 tokens.",
    "a length at which it does not",
    kind="printed tables", label="measured", source="LeX in Table 3", data=_tables("table3"),
)
def _table_3_bca(data: Data) -> Finding:
    gain = {
        n: _cell(data["table3"], n, encoding="LeX", variant="bca=1")
        - _cell(data["table3"], n, encoding="LeX", variant="bca=0")
        for n in (1024, 2048)
    }
    return Finding(
        all(v > 0 for v in gain.values()), {"R with BCA minus without": gain},
        "Only at 2048 tokens; at the training length BCA masks nothing.",
        gain[1024] == 0 and gain[2048] > 0 and _masked_pairs(1024, 512) == 0, n=2,
    )


# -- Section 4.4 ----------------------------------------------------------------------------------


def _table_4(data: Data) -> dict[str, list[float]]:
    return {
        v or "LeX": [_cell(data["table4"], n, variant=v) for n in (1024, 8192)]
        for v in ("", "rotation=0", "zeta=0", "zeta=scalar")
    }


@check(
    "table4.rotation", ROTATION, "Table 4",
    "rotation of XPOS is necessary for strong performance",
    "Without rotation the perplexity is higher by more than the tolerance, at both lengths.",
    "a length with a smaller loss",
    kind="printed tables", label="measured",
    source="Table 4", tolerant=True, data=_tables("table4"),
)
def _rotation_needed(data: Data) -> Finding:
    rows = _table_4(data)
    worse = [b / a - 1 for a, b in zip(rows["LeX"], rows["rotation=0"], strict=True)]
    return Finding(min(worse) > data["tolerance"], {"without rotation over with - 1": worse}, n=2)


@check(
    "theta0", ROTATION, "after Table 4",
    "without rotation means Equation (12) degenerates to θ_i = 0",
    "At theta = 0 the map of Eq. 12 multiplies each pair by zeta^n alone.",
    "another matrix",
    kind="symbolic identity", label="theorem", source="one pair of coordinates, by algebra",
    data={"theta": 0},
)
def _theta_0(data: Data) -> Finding:
    query, _ = rotation_with_decay()
    n, zeta = sympy.Symbol("n", real=True), sympy.Symbol("zeta", positive=True)
    at = query(n).subs(sympy.Symbol("theta", real=True), data["theta"])
    return Finding(all(map(vanishes, at - zeta**n * sympy.eye(2))), {"f_q": str(at.tolist())}, n=4)


@check(
    "table4.zeta0", ROTATION, "Table 4",
    "the setting of ζ = 0 is RoPE (Su et al., 2021)",
    "With zeta = 0 the scores are those of RoPE.",
    "another score",
    kind="symbolic identity", label="theorem",
    source="g at 0 .. 199 with zeta = 0 and with zeta = 1",
    data={"zeta": 0.0, "right": 1.0},
)
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
        {"largest gap to RoPE's g": gaps[0], "with zeta = 1": gaps[1],
         "g[1] with this zeta": float(with_zeta(data["zeta"])[1])},
        "zeta = 1 (xi = 0) is RoPE; with zeta = 0 every score beyond distance 0 vanishes.",
        gaps[1] < 1e-9, n=at.size,
    )


@check(
    "table4.roformer-row", ROTATION, "Table 4 against Tables 2 and 5",
    "the setting of ζ = 0 is RoPE (Su et al., 2021)",
    "The row zeta = 0 of Table 4 is the row Roformer of Table 2.",
    "another value",
    kind="printed tables", label="measured", source="1024 and 8192 tokens, PG22",
    data=_tables("table2", "table4", "table5"),
)
def _roformer_row(data: Data) -> Finding:
    row = dict(zip((1024, 8192), _table_4(data)["zeta=0"], strict=True))
    other = {n: _cell(data["table2"], n, dataset="PG22", encoding="Roformer") for n in row}
    masked = _cell(data["table5"], 8192, encoding="RoPE", variant="attention=BCA")
    return Finding(
        row == other,
        {"zeta = 0": row, "Roformer, Table 2": other, "RoPE with BCA, Table 5": masked},
        "At 1024 tokens; at 8192 it is RoPE with BCA of Table 5.",
        row[1024] == other[1024] and row[8192] == masked != other[8192], n=2,
    )


@check(
    "table4.vector", ROTATION, "Table 4",
    "also performs better than ζ = 0 and γ/(1 + γ)",
    "The vector zeta has a lower perplexity than zeta = 0 and than a scalar, at both lengths.",
    "a length at which it has not",
    kind="printed tables", label="measured", source="Table 4", data=_tables("table4"),
)
def _vector_zeta(data: Data) -> Finding:
    rows = _table_4(data)
    return Finding(
        all(a < b for k in ("zeta=0", "zeta=scalar")
            for a, b in zip(rows["LeX"], rows[k], strict=True)),
        {"perplexity at 1024, 8192 tokens": rows}, n=4,
    )


passed(ROTATION, "simple scaling operation cannot match the performance",
       "judged as table4.vector")
passed(ROTATION, "the combination of rotation and decay means the combination of in-distribution "
       "and out-of-distribution capability", "no measure is given")


def _bca_gains(data: Data, name: str) -> dict[int, float]:
    return {
        n: round(_cell(data["table5"], n, encoding=name, variant="attention=full")
                 - _cell(data["table5"], n, encoding=name, variant="attention=BCA"), 2)
        for n in (2048, 8192)
    }


def _bca_helps(data: Data) -> Finding:
    gains = _bca_gains(data, data["encoding"])
    return Finding(tuple(v > 0 for v in gains.values()) == data["helps"],
                   {"full minus BCA by length": gains}, n=len(gains))


for _name, _helps, _words, _quote in (
    ("RoPE", (True, True), "BCA lowers RoPE's perplexity at both lengths.",
     "Blockwise Causal Attention works for ROPE whose perplexity will explode without that"),
    ("Alibi", (False, True), "BCA raises Alibi's perplexity at 2048 tokens and lowers it at 8192.",
     "when the sequence length increases to 8192, windowed attention outperforms vanilla attention "
     "again"),
    ("XPos", (True, True), "BCA lowers xPos's perplexity at both lengths.",
     "XPOS can recognize position with BCA's constraint"),
    ("Absolute", (False, False), "BCA raises the perplexity of absolute positions at both lengths.",
     "with or without blockwise causal attention"),
):
    check(
        f"table5.bca.{_name.lower()}", ABLATION, "Table 5", _quote, _words,
        "a length with the other sign",
        kind="printed tables", label="measured", source="Table 5, 2048 and 8192 tokens",
        data=_given(_tables("table5"), encoding=_name, helps=_helps),
    )(_bca_helps)


def _blocked(data: Data) -> Finding:
    """Does a model explode without BCA and keep its perplexity with it?"""
    found = named(data["models"], data["name"], f"{data['name']} + BCA")
    if len(found) < 2:
        return of_models([], {}, None)
    rises = _increases(found)
    return of_models(
        found.values(), {"largest increase": rises},
        rises[data["name"]] >= EXPLODES
        and (rises[f"{data['name']} + BCA"] < data["tolerance"]) is data["keeps"],
    )


for _name, _keeps, _words, _quote in (
    ("rope", True, "A trained RoPE model at least doubles its perplexity without BCA and keeps it "
     "with BCA.", "Blockwise Causal Attention works for ROPE whose perplexity will explode without "
     "that"),
    ("xpos", True, "A trained xPos model at least doubles its perplexity without BCA and keeps it "
     "with BCA.", "XPOS can recognize position with BCA's constraint"),
    ("sinusoidal", False, "A trained sinusoidal model at least doubles its perplexity without BCA, "
     "and does not keep it with BCA.", "with or without blockwise causal attention"),
):
    check(
        f"bca.experiment.{_name}", ABLATION, "", _quote, _words,
        "an increase below 1 without BCA, or the other outcome with it",
        kind="experiment", label="measured", source=RUNS, tolerant=True,
        data=_given(all_models, name=_name, keeps=_keeps),
    )(_blocked)


@check(
    "alibi.broader", ABLATION, "",
    "because its “soft window” is broader than a hard block window",
    "In most heads ALiBi's TRF(1/100) exceeds the least number of keys that BCA leaves, 513.",
    "half of the heads, or fewer",
    kind="certified number", label="certified", source="certified TRF of 16 heads, blocks of 512",
    data={"heads": 16, "eps": "1/100", "keys": 513},
)
def _broader(data: Data) -> Finding:
    found = theoretical_receptive_field("alibi", data["eps"], heads=data["heads"])
    fields = [h.tokens for h in found.heads]
    wider = sum(f > data["keys"] for f in fields)
    return Finding(
        2 * wider > len(fields), {"TRF(1/100) by head": fields, "wider": wider},
        "In three of 16 heads.", (wider, len(fields)) == (3, 16), n=len(fields),
    )


def _increase(data: Data) -> Finding:
    gap = _bca_gains(data, "XPos")[data["length"]]
    return Finding(
        about(gap, data["about"]), {"full minus BCA": gap, "printed": data["about"]},
        "It is about 1.8.", about(gap, "1.8"), n=1,
    )


for _length, _about in ((2048, "1.5"), (8192, "40")):
    check(
        f"table5.increase-{_length}", ABLATION, "Table 5",
        "perplexity without BCA increases by about 1.5 in 2048, and 40 in 8192",
        f"Without BCA the perplexity of xPos is larger by about {_about} at {_length} tokens.",
        "a difference that does not round to it",
        kind="printed tables", label="measured", source="Table 5",
        data=_given(_tables("table5"), length=_length, about=_about),
    )(_increase)


@check(
    "table5.sliding", ABLATION, "Table 5",
    "Sliding Attention performs better as shown in the last row of Table 5",
    "A sliding window has a lower perplexity than BCA, at both lengths.",
    "a length at which it has not",
    kind="printed tables", label="measured", source="xPos in Table 5", data=_tables("table5"),
)
def _sliding(data: Data) -> Finding:
    rows = {
        n: [_cell(data["table5"], n, encoding="XPos", variant=f"attention={v}")
            for v in ("sliding_window", "BCA")]
        for n in (2048, 8192)
    }
    return Finding(all(a < b for a, b in rows.values()), {"sliding window, BCA": rows}, n=2)


@check(
    "sliding.broader", ABLATION, "",
    "because its interaction range is broader than Block Causal Attention",
    "A sliding window of 1024 keeps more keys than BCA with blocks of 512, on average over rows, "
    "and never fewer.",
    "a row with fewer keys",
    kind="certified number", label="theorem", source="keys of the rows of a block beyond the first",
    data={"window": 1024, "half": 512},
)
def _sliding_broader(data: Data) -> Finding:
    blocks = [data["half"] + k + 1 for k in range(data["half"])]
    return Finding(
        all(data["window"] >= k for k in blocks) and data["window"] > sum(blocks) / len(blocks),
        {"keys of BCA, mean": sum(blocks) / len(blocks), "sliding": data["window"]}, n=len(blocks),
    )


passed(ABLATION, "the training speed of Blockwise Attention is 1.5x faster than using sliding "
       "windows", "a time of another paper")
passed(ABLATION, "our method is also compatible with Sliding Attention and other local attention "
       "variants", "says that it can be done; judged for the one printed (table5.sliding)")


# -- Section 5 and after --------------------------------------------------------------------------


@check(
    "retained", LONG, "Tables 2 and 6",
    "the performance on regular length is perfectly retained, without trade-offs for long-sequence "
    "modeling",
    "Up to the training length LeX has no higher perplexity than RoPE.",
    "a length and data set with a higher one",
    kind="printed tables", label="measured", source="Tables 2 and 6, 256 to 1024 tokens",
    data=_curves,
)
def _retained(data: Data) -> Finding:
    curves = data["curves"]
    gaps = {(d, n): round(curves[d, "LeX"][n] - curves[d, "Roformer"][n], 2)
            for d in SETS for n in (256, 512, 1024)}
    return Finding(all(v <= 0 for v in gaps.values()), {"LeX minus RoPE": _keyed(gaps)},
                   n=len(gaps))


@check(
    "eq14.wavelengths", ABSOLUTE, "Eq. 14",
    "different frequencies are encoded from 2π to 10000 × 2π",
    "The wavelengths run from 2 pi to 10000 x 2 pi.", "another longest wavelength",
    kind="certified number", label="theorem", source="the exponent of the last plane, d = 512",
    data={"last": lambda d: (d - 2) / d, "d": sympy.Integer(512)},
)
def _wavelengths(data: Data) -> Finding:
    d = sympy.Symbol("d", positive=True)
    last, limit = data["last"](data["d"]), sympy.limit(data["last"](d), d, sympy.oo)
    return Finding(
        last == 1, {"longest wavelength over 2 pi": float(10_000**last), "d": int(data["d"])},
        "Up to 10000^{1 - 2/d} x 2 pi; 10000 x 2 pi is the limit of large d.",
        bool(last < 1 and limit == 1), n=1,
    )


@check(
    "eq14.linear", ABSOLUTE, "also 2.2",
    "is represented as a linear function of PE_{pos}",
    "PE(pos + k) is a linear function of PE(pos), the same for every pos.",
    "a difference of the two sides",
    kind="symbolic identity", label="theorem", source="one plane, by algebra",
    data={"code": lambda a: (sympy.cos(a), sympy.sin(a))},
)
def _sinusoid_linear(data: Data) -> Finding:
    a, b = sympy.symbols("a b", real=True)
    here, moved = sympy.Matrix(data["code"](a)), sympy.Matrix(data["code"](a + b))
    defect = moved - rotation(b) * here
    return Finding(all(map(vanishes, defect)), {"map": "a rotation by k theta"}, n=2)


@check(
    "eq15.clip", RELATIVE, "Eq. 15",
    "The clipping strategy helps length generalization but cannot distinguish the positions that "
    "are larger than k",
    "Distances of k and more share one vector, smaller ones have one each.",
    "two distances beyond k that differ, or two below that do not",
    kind="property test", label="theorem", source="min(i - j, k) for k = 16, distances 0 .. 63",
    data={"index": lambda distance, k: min(distance, k), "k": 16},
)
def _clip(data: Data) -> Finding:
    rows = [data["index"](n, data["k"]) for n in range(64)]
    return Finding(
        len(set(rows[data["k"] :])) == 1 and len(set(rows[: data["k"] + 1])) == data["k"] + 1,
        {"vectors used": len(set(rows))}, n=len(rows),
    )


passed(RELATIVE, "performance tends to be inferior to ROPE for the context whose length is shorter "
       "than the pre-training length", "judged as alibi.sacrifices")
passed(RELATIVE, "explicitly build an exponential decay on the attention matrix",
       "judged as alibi.exponential")
passed(RELATIVE, "where log-bucket scalars are added to attention scores", "a definition")
passed(CONCLUSION, "our method achieves lower perplexity on longer sequences while training on "
       "short texts", "judged as table2.lex-best and table6.lex-best")


@check(
    "convergence.absolute", LIMITATIONS, "",
    "although it accelerates training convergence",
    "xPos reaches the last training loss of absolute positions within half of the steps, in every "
    "seed.",
    "a seed that needs more",
    kind="experiment", label="measured", source="training losses of the reference runs",
    data=all_models,
)
def _convergence_absolute(data: Data) -> Finding:
    found = named(data["models"], "xpos", "sinusoidal")
    if len(found) < 2:
        return of_models([], {}, None)
    x, a = found["xpos"].losses, found["sinusoidal"].losses
    last = max(a)
    steps = {s: min(t for t in x if x[t][s] <= a[last][s]) / last
             for s in sorted(set(x[last]) & set(a[last]))}
    return of_models(found.values(), {"share of the steps by seed": steps},
                     all(v <= 0.5 for v in steps.values()))


passed(LIMITATIONS, "introduces about 6% inference cost compared with absolute position embeddings",
       "judged in 3.2 (cost.six-percent)")
passed(MORE, "The article length of Arxiv is usually less than 8192", "about a data set")


@check(
    "table7.consistent", HYPER, "Table 7 against 4.1 and B",
    "As shown in Table 7, we present the hyperparameters for pre-training",
    "Table 7 has the numbers of the text.", "a number that differs",
    kind="printed tables", label="theorem", source="nine numbers of Section 4.1 and Appendix B",
    data=lambda: {"table": keys("sun2023_table7"), "text": {
        "Layers": "24", "Hidden size": "1024", "FFN inner hidden size": "4096",
        "Attention heads": "16", "Batch tokens per task": "0.5M", "Adam epsilon": "1e-6",
        "Adam beta": "(0.9, 0.98)", "Learning rate": "3e-4", "Warmup steps": "20,000"}},
)
def _table_7(data: Data) -> Finding:
    differ = {k: [v, data["table"].get(k)] for k, v in data["text"].items()
              if data["table"].get(k) != v}
    return Finding(not differ, {"differ (text, table)": differ}, n=len(data["text"]))
