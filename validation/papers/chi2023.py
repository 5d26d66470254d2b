"""[C] Chi et al., ACL 2023: claims on ALiBi's slopes, windows, empirical fields, Sandwich, T5."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import combinations

import numpy as np
import sympy

from farfield.numerics.masks import Mask
from farfield.theory.encodings import alibi_slope, encoding
from farfield.validation.papers.claim import (
    EXPERIMENT,
    IDENTITY,
    NUMBER,
    PRINTED,
    PROOF,
    PROPERTY,
    Finding,
    claim,
    rise_in_print,
    rise_of,
)
from farfield.validation.papers.plain_attention import decided, reached, seen_by, softmax, turned
from farfield.validation.papers.tables import curves, table
from farfield.validation.papers.trained_models import (
    Missing,
    Model,
    at_both_lengths,
    gradients,
    models,
    named,
    unmasked,
)
from farfield.validation.papers.words import (
    BY_CHANCE,
    EXPLODES,
    by_chance,
    crosses,
    falls,
    increase,
    increases,
    opposed,
    rank_correlation,
    rises,
    stays,
)

BOTH = ("chi2023_table1", "chi2023_table4")
"""The tables of slopes and windows, of ArXiv and of OpenWebText2."""
SHIFTS = tuple(f"delta={k}" for k in (-3, 0, 2, 4, 6, 8))
EQUAL = tuple(f"h={k}" for k in (0, 2, 4, 6, 8))
WINDOWS = tuple(f"w={k}" for k in (40, 80, 100, 120, 160, 320))
LAYERS = 12

SECTIONS = (
    "Abstract",
    "1 Introduction",
    "2.1 Length Extrapolation",
    "2.2 Positional Embeddings",
    "2.3 Windowed and Sparse Attention",
    "2.4 Receptive Field",
    "3.1 Transformer Language Model",
    "3.2 ALiBi",
    "3.3 Windowed Attention",
    "3.4 Evaluation of Length Extrapolation",
    "4.1 Slope Shift",
    "4.2 Slope Equalization",
    "4.3 Windowed Attention",
    "4.4 Other Observations",
    "5 Receptive Field Measurement",
    "5.1 Quantifying Empirical Receptive Field",
    "5.2 Fixing Failed Cases",
    "5.3 Analyses of Sinusoidal and Rotary",
    "6.1 Introduction to Sandwich",
    "6.2 Experiments and Discussion",
    "6.3 Connection to KERPLE and T5",
    "7 Conclusion",
    "Limitations",
    "A Results on OpenWebText2",
    "B Efficient Inference",
    "C Scientific Artifacts",
    "D Implementation Details",
    "E Python Implementation of Sandwich",
)
"""Of the paper, in order."""
SCALE = "12 layers, 768 wide, 12 heads, trained on 512 tokens"
"""Of the models of the paper."""


# -- columns, fields and fits ---------------------------------------------------------------------


def by_dataset(values: Mapping[str, float]) -> dict[str, list[float]]:
    """The values of each data set, which is the first word of a name, in the order of the table."""
    rows: dict[str, list[float]] = {}
    for name, value in values.items():
        rows.setdefault(name.split()[0], []).append(value)
    return rows


MEASURED_AT = 2048
"""The token at which the paper takes its gradients: no ERF can be larger."""


def printed_fields(*relations: str) -> dict[str, float]:
    """The printed ERFs by column, those with `=` or those below the training length, `<`."""
    cells = (c for c in table("chi2023_erf") if c.metric == "ERF" and c.marker in relations)
    return {c.variant: c.value for c in cells if c.value is not None}


def sandwich(n: np.ndarray) -> np.ndarray:
    """Sandwich at h = 8 [Eq. 6 as Appendix E sums it]."""
    return encoding("sandwich", heads=1).bias(n)[0]


@lru_cache(maxsize=16)
def logarithm(dialect: str, points: int) -> tuple[float, float, float]:
    """Least squares of Sandwich by slope log(1 + n) + constant on n < points: slope, constant, and
    the share of the variance that is left."""
    n = np.arange(points)
    bias = encoding("sandwich", heads=1, dialect=dialect).bias(n)[0]
    columns = np.stack([np.log1p(n), np.ones(points)], axis=1)
    slope, constant = np.linalg.lstsq(columns, bias, rcond=None)[0]
    rest = bias - columns @ np.array([slope, constant])
    return float(slope), float(constant), float(rest.var() / bias.var())


def largest_difference(one: Model, other: Model) -> float:
    """Of the cumulative gradients of two models."""
    return max(abs(v - other.gradient[n]) for n, v in one.gradient.items() if n in other.gradient)


# -- the claims, by section -----------------------------------------------------------------------


@claim(
    "first",
    "Abstract",
    place="also 6.2",
    quote=(
        "the first parameter-free relative positional embedding design that truly length "
        "information uses longer than the training sequence"
    ),
    says=(
        "By the paper's sign, a perplexity below that at 512 at a longer length, Sandwich "
        "(and its smoothed form) is the only parameter-free bias of the tables."
    ),
    refuted_by="another parameter-free column with a lower perplexity beyond 512",
    kind=PRINTED,
    label="measured",
    data="Tables 1, 3 and 4 without KERPLE and T5",
    scale=SCALE,
    about="sandwich",
)
def first_to_use_longer_rows() -> Finding:
    free = ("ALiBi", "Windowed", "Sinusoidal", "Rotary", "Sandwich", "Sandwich_Smoothed")
    columns = curves(*BOTH, "chi2023_table3", by="dataset encoding variant", encoding=free)
    lowest = {k: min(c, key=c.__getitem__) for k, c in columns.items()}
    gain = {k: 1 - columns[k][n] / columns[k][512] for k, n in lowest.items() if n > 512}
    others = {k: n for k, n in lowest.items() if n > 512 and "Sandwich" not in k}
    most = max(others, key=gain.__getitem__)
    return Finding(
        not others,
        {"not Sandwich, lowest at": others, "lower than at 512 by": {k: gain[k] for k in others}},
        n=len(lowest),
        because=(
            f"{most} falls from {columns[most][512]:g} at 512 tokens to "
            f"{columns[most][lowest[most]]:g} at {lowest[most]}."
        ),
    )


@claim(
    "extrapolate-better",
    "1 Introduction",
    place="Table 3",
    quote=(
        "they extrapolate to L_ex ≫ L_tr much better than other absolute and relative "
        "positional embeddings including Sinusoidal (Vaswani et al., 2017), Rotary (Su et "
        "al., 2021), and T5"
    ),
    says=(
        "On every data set the perplexities of ALiBi and KERPLE rise less, to 8192 tokens, "
        "than those of Sinusoidal, Rotary and T5."
    ),
    refuted_by="a data set with the other order",
    kind=PRINTED,
    label="measured",
    data="Table 3",
    scale=SCALE,
    exhibits="table3",
    about="alibi kerple_log t5 sinusoidal rope",
)
def rise_less() -> Finding:
    rise = increases(curves("chi2023_table3", by="dataset encoding"), 512)
    largest, least = {}, {}
    for data in ("ArXiv", "GitHub", "OpenWebText2"):
        largest[data] = max(rise[f"{data} {name}"] for name in ("ALiBi", "KERPLE"))
        least[data] = min(rise[f"{data} {name}"] for name in ("Sinusoidal", "Rotary", "T5"))
    return Finding(
        all(largest[data] < least[data] for data in least),
        {"largest rise of ALiBi, KERPLE": largest, "least of the others": least},
        n=5 * len(least),
    )


@claim(
    "wR.reach",
    "1 Introduction",
    place="also 5",
    quote=(
        "a theoretical (maximum) receptive field: wR for an R layer transformer model with "
        "windowed attention size w"
    ),
    says="w R is the number of tokens that contribute in R layers with windows of w.",
    refuted_by="windows and layers that reach another number",
    kind=PROOF,
    label="theorem",
    data="three stacks of windows, counted; theorem layered-reach",
    corrected="R (w - 1) + 1 tokens; w R is an upper bound that is not reached for R > 1.",
    about="window",
)
def reach_of_layers() -> Finding:
    cases = ((2, 3), (5, 4), (8, 12))
    tokens = {(w, r): reached(seen_by(Mask(window=w), w * r + 3), r) for w, r in cases}
    return Finding(
        all(count == w * r for (w, r), count in tokens.items()),
        {"tokens reached by (w, R)": tokens},
        instead=all(count == r * (w - 1) + 1 for (w, r), count in tokens.items()),
        n=len(tokens),
    )


@claim(
    "coverage.rotary",
    "1 Introduction",
    place="also 5.3",
    quote="showing their violation of the empirical receptive field coverage principle",
    says=(
        "The most recent L_tr tokens hold less than half of the gradient of sinusoidal and "
        "of rotary models, and more than half of ALiBi's."
    ),
    refuted_by="a share on the other side of one half",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs, at both training lengths",
    about="alibi rope sinusoidal",
)
def gradient_within() -> Finding:
    tested = at_both_lengths("alibi", "rope", "sinusoidal")
    share = {f"{m.name}, {m.trained}": m.gradient[m.trained] for m in tested}
    return Finding(
        all((v > 0.5) == name.startswith("alibi") for name, v in share.items()),
        {"share on the most recent L_tr tokens": share},
        models=tested,
    )


@claim(
    "eq3.slopes",
    "3.2 ALiBi",
    place="Eq. 3",
    quote="The range of h is n · 8/H, where n = {1 . . . H}",
    says="ALiBi's slopes for 12 heads are 2^{-8n/12}, n = 1 .. 12.",
    refuted_by="another slope in ALiBi's published rule",
    kind=IDENTITY,
    label="theorem",
    data="both rules for 12 heads, and for 1 to 32",
    corrected=(
        "Eq. 3 is ALiBi's rule for powers of two only; for 12 heads the original takes the "
        "8 slopes of 8 heads and 4 of 16."
    ),
    about="alibi",
)
def rule_of_slopes() -> Finding:
    def equal(heads: int) -> bool:
        every = range(1, heads + 1)
        return all(alibi_slope(h, heads) == alibi_slope(h, heads, "geometric") for h in every)

    heads = [count for count in range(1, 33) if equal(count)]
    return Finding(
        12 in heads, {"equal for heads =": heads}, instead=heads == [1, 2, 4, 8, 16, 32], n=32
    )


@claim(
    "eq3.scaling",
    "3.2 ALiBi",
    place="Eq. 3 with Eq. 1",
    quote="ALiBi modifies l_{m,n} to be",
    says="Eq. 3 put into Eq. 1 adds -2^-h (m - n) to the scaled logit.",
    refuted_by="another bias on the scaled logit",
    kind=IDENTITY,
    label="theorem",
    data="the exponent of Eq. 1 with l of Eq. 3",
    corrected="The bias stands outside the division by sqrt(d/H), as Eq. 6 is said to be added.",
    about="alibi",
)
def scale_of_slopes() -> Finding:
    qk, s, at = sympy.symbols("qk s n", real=True)
    printed, outside = (qk - s * at) / 8, qk / 8 - s * at
    return Finding(
        printed.diff(at) == -s,
        {"as printed, sqrt(d/H) = 8": printed},
        instead=outside.diff(at) == -s,
    )


@claim(
    "same-h",
    "4.2 Slope Equalization",
    place="Tables 1 and 4",
    quote=(
        "find that only large slopes (1/2^h), or equivalently small h, allow a model to "
        "extrapolate well"
    ),
    says="The equal slopes that keep the perplexity are the largest ones: some, and not all.",
    refuted_by="a slope that keeps it beside a larger one that does not",
    kind=PRINTED,
    label="measured",
    data="Tables 1 and 4",
    scale=SCALE,
    exhibits="table1 table4",
    about="alibi",
)
def equal_slopes(tolerance: float) -> Finding:
    rise = increases(curves(*BOTH, variant=EQUAL), 512)
    keeping = {data: crosses(row, tolerance) for data, row in by_dataset(rise).items()}
    return Finding(all(keeping.values()), {"increase by h": rise}, n=len(rise))


@claim(
    "same-h.experiment",
    "4.2 Slope Equalization",
    quote=(
        "find that only large slopes (1/2^h), or equivalently small h, allow a model to "
        "extrapolate well"
    ),
    says=(
        "In trained models with equal slopes perplexity rises the more, the smaller the "
        "slope, and only the larger slopes keep it."
    ),
    refuted_by="a larger slope with a larger rise, or all or none that keep it",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs",
    about="alibi",
)
def equal_slopes_in_training(tolerance: float) -> Finding:
    tested = named("alibi equal 2", "alibi equal 4", "alibi equal 6")
    rise = [m.increase for m in tested]
    return Finding(
        rises(rise) and crosses(rise, tolerance), {"increase at h = 2, 4, 6": rise}, models=tested
    )


@claim(
    "same-h.values",
    "4.2 Slope Equalization",
    quote="We then steadily increase the slope value from 0 to 8",
    says="The slope grows from the first column (h = 0) to the last (h = 8).",
    refuted_by="a slope that falls",
    kind=IDENTITY,
    label="theorem",
    data="2^-h at h = 0, 2, 4, 6, 8",
    corrected="h grows from 0 to 8, the slope falls from 1 to 1/256.",
    about="alibi",
)
def slope_by_h() -> Finding:
    slopes = [2.0**-h for h in (0, 2, 4, 6, 8)]
    ends = (slopes[0], slopes[-1]) == (1, 1 / 256)
    return Finding(rises(slopes), {"slopes": slopes}, instead=falls(slopes) and ends, n=len(slopes))


@claim(
    "windows.trade-off",
    "4.3 Windowed Attention",
    place="Tables 1 and 4",
    quote="The model underperforms at small w and diverges on long L_ex at large w",
    says=(
        "At 512 tokens perplexity falls from w = 40 to 100 to 320; beyond, w = 40 keeps it "
        "and 320 at least doubles."
    ),
    refuted_by="another order at 512, or another outcome beyond",
    kind=PRINTED,
    label="measured",
    data="Tables 1 and 4",
    scale=SCALE,
    exhibits="table1 table4",
    about="window",
)
def narrow_and_wide(tolerance: float) -> Finding:
    columns = curves(*BOTH, variant=("w=40", "w=100", "w=320"))
    home = by_dataset({name: c[512] for name, c in columns.items()})
    rise = increases(columns, 512)
    narrow = [r for name, r in rise.items() if name.endswith("w=40")]
    wide = [r for name, r in rise.items() if name.endswith("w=320")]
    return Finding(
        all(map(falls, home.values())) and max(narrow) < tolerance and min(wide) >= EXPLODES,
        {"perplexity at 512, w = 40, 100, 320": home, "increase, w = 40": narrow, "320": wide},
        n=len(rise),
    )


@claim(
    "trend",
    "4.3 Windowed Attention",
    place="Tables 1 and 4",
    quote="The same trend holds in the first two experiments when h is too small or large",
    says=(
        "In both experiments the smallest h has the highest perplexity at 512 of those "
        "that do not explode, and the largest h explodes."
    ),
    refuted_by="an experiment and a data set with another outcome",
    kind=PRINTED,
    label="measured",
    data="Tables 1 and 4",
    corrected=(
        "With equal slopes on both data sets, with shifts on ArXiv; on OpenWebText2 the "
        "shift by -3 is the best at 512 tokens."
    ),
    scale=SCALE,
    exhibits="table1 table4",
    about="alibi",
)
def trend_of_both() -> Finding:
    def first_is_highest(variants: tuple[str, ...]) -> dict[str, bool]:
        columns = curves(*BOTH, variant=variants)  # what explodes counts as lower than any
        kept = {k: c[512] if increase(c, 512) < EXPLODES else -math.inf for k, c in columns.items()}
        return {data: row[0] == max(row) for data, row in by_dataset(kept).items()}

    shifts, equal = first_is_highest(SHIFTS), first_is_highest(EQUAL)
    largest = increases(curves(*BOTH, variant=("delta=8", "h=8")), 512)
    explode = min(largest.values()) >= EXPLODES
    home = by_dataset({k: c[512] for k, c in curves(*BOTH, variant=SHIFTS).items()})
    best = min(home["OpenWebText2"]) == home["OpenWebText2"][0]
    return Finding(
        all(shifts.values()) and all(equal.values()) and explode,
        {"delta = -3 is highest": shifts, "h = 0 is highest": equal, "largest h": largest},
        instead=shifts["ArXiv"] and all(equal.values()) and explode and best,
        n=len(shifts) + len(equal),
    )


@claim(
    "alibi.all-increase",
    "4.4 Other Observations",
    place="Tables 1 and 4",
    quote=(
        "ALiBi does not in fact extrapolate since its perplexities all increase instead of "
        "staying the same when L_ex > L_tr"
    ),
    says="Beyond 512 tokens every perplexity of an ALiBi column is above that at 512.",
    refuted_by="one that is not",
    kind=PRINTED,
    label="measured",
    data="Tables 1 and 4",
    corrected=(
        "83 of 88 do; the exceptions are delta = 2 at 1024 tokens and h = 0, both on ArXiv."
    ),
    scale=SCALE,
    exhibits="table1 table4",
    about="alibi",
)
def alibi_beyond() -> Finding:
    change = {
        f"{name} at {n}": v - c[512]
        for name, c in curves(*BOTH, encoding="ALiBi").items()
        for n, v in c.items()
        if n > 512
    }
    lower = {k: v for k, v in change.items() if v <= 0}
    return Finding(
        not lower,
        {"lower or equal (minus that at 512)": lower},
        instead=all(k.startswith(("ArXiv h=0", "ArXiv delta=2 at 1024")) for k in lower),
        n=len(change),
    )


@claim(
    "alibi.experiment",
    "4.4 Other Observations",
    quote=(
        "ALiBi does not in fact extrapolate since its perplexities all increase instead of "
        "staying the same when L_ex > L_tr"
    ),
    says="A trained ALiBi model raises its perplexity beyond the training length.",
    refuted_by="a perplexity at or below that at the training length, at every length",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs, at both training lengths",
    corrected="At this scale it falls at every length, by less than 1 %.",
    about="alibi",
)
def alibi_in_training() -> Finding:
    tested = at_both_lengths("alibi")
    rise = {m.trained: m.increase for m in tested}
    return Finding(
        min(rise.values()) > 0,
        {"largest increase by training length": rise},
        instead=min(rise.values()) > -0.01 and max(rise.values()) < 0,
        models=tested,
    )


@claim(
    "same-or-explodes",
    "4.4 Other Observations",
    place="Tables 1 and 4",
    quote=(
        "once L_ex passes a certain threshold, the perplexity either remains the same or explodes"
    ),
    says=(
        "Beyond 512 tokens each column either stays within the tolerance of its perplexity "
        "at 512 or at least doubles it."
    ),
    refuted_by="a column in between",
    kind=PRINTED,
    label="measured",
    data="Tables 1 and 4",
    corrected="Many rise by a tenth to a half; from 2048 tokens on every column stays, to 2 %.",
    scale=SCALE,
    exhibits="table1 table4",
)
def same_or_explodes(tolerance: float) -> Finding:
    columns = curves(*BOTH)
    rise = increases(columns, 512)
    between = {k: r for k, r in rise.items() if tolerance <= r < EXPLODES}
    late = [[v for n, v in c.items() if n >= 2048] for c in columns.values()]
    return Finding(
        not between,
        {"in between": between},
        instead=all(stays(row, 0.02) for row in late),
        n=len(rise),
    )


@claim(
    "tables14.columns",
    "4.4 Other Observations",
    place="headings of Tables 1 and 4",
    quote="Shift all h by Δ",
    says=(
        "The columns headed delta = 6, delta = 8 and h = 8 are of three models: their numbers "
        "differ."
    ),
    refuted_by="columns that agree in every cell",
    kind=PRINTED,
    label="measured",
    data="Tables 1 and 4, ten cells a column",
    scale=SCALE,
    exhibits="table1 table4",
    about="alibi",
)
def three_models() -> Finding:
    columns = curves(*BOTH, by="variant dataset", variant=("delta=6", "delta=8", "h=8"))
    pairs = combinations(("delta=6", "delta=8", "h=8"), 2)
    equal = [
        f"{a}, {b}"
        for a, b in pairs
        if all(columns[f"{a} {d}"] == columns[f"{b} {d}"] for d in ("ArXiv", "OpenWebText2"))
    ]
    slopes = "2^(-2/3 - delta) with a shift, 2^-h with equal slopes: up to fourfold apart"
    return Finding(
        not equal,
        {"equal columns": equal, "their largest slopes": slopes},
        n=3,
        because="All ten numbers of the three columns are equal, though their slopes differ.",
    )


@claim(
    "wR.threshold",
    "5 Receptive Field Measurement",
    quote="as long as w < 42.6 = 512/12, TRF will be fully covered by L_tr",
    says="The widest window whose reach in 12 layers lies within 512 tokens is 42.",
    refuted_by="another widest window",
    kind=NUMBER,
    label="theorem",
    data="the reach R (w - 1) + 1, w = 1 .. 599",
    corrected="up to w = 43: 12 (43 - 1) + 1 = 505 tokens (and 512/12 = 42.67)",
    about="window",
)
def widest_window() -> Finding:
    widest = max(w for w in range(1, 600) if LAYERS * (w - 1) + 1 <= 512)
    return Finding(
        widest == 42,
        {"widest covered window": widest, "512/12": 512 / LAYERS},
        instead=widest == 43,
        n=599,
    )


@claim(
    "erf.definition",
    "5.1 Quantifying Empirical Receptive Field",
    place="ERF = min{m | c_m > 0.99}",
    quote="We define the ERF of a model as",
    says=(
        "With c_m the sum of s_n for n = m .. L, min{m | c_m > 0.99} counts the recent "
        "tokens with 0.99 of the gradient."
    ),
    refuted_by="shares for which it is another number",
    kind=IDENTITY,
    label="theorem",
    data="shares 2^-k of 11 tokens, nearest first",
    corrected=(
        "the length of the shortest suffix that holds more than 0.99: L + 1 - max{m | c_m > 0.99}"
    ),
)
def field_as_printed() -> Finding:
    shares = np.array([2.0**-k for k in range(1, 12)])
    nearest = shares / shares.sum()
    c = nearest.cumsum()[::-1]  # c_m sums from position m, 1 being the first token
    above = [m for m in range(1, len(c) + 1) if c[m - 1] > 0.99]
    suffix = int(np.searchsorted(nearest.cumsum(), 0.99, "right")) + 1
    return Finding(
        len(c) + 1 - min(above) == suffix,
        {
            "as printed, m": min(above),
            "shortest suffix": suffix,
            "why": "c_m falls as m grows and c_1 = 1: the minimum is always the first position",
        },
        instead=len(c) + 1 - max(above) == suffix,
        n=1,
    )


@claim(
    "erf.within-reach",
    "5.1 Quantifying Empirical Receptive Field",
    place="Figure 4",
    quote="models with w ∈ [120, 160, 320] have ERF = 768, 1024, and 1536 tokens, respectively",
    says="The printed ERFs of windows do not exceed what 12 layers can reach, 12 (w - 1) + 1.",
    refuted_by="a printed field beyond the reach",
    kind=PROOF,
    label="theorem",
    data="the ERFs of Figure 4; theorem layered-reach",
    exhibits="fig4",
    about="window",
)
def fields_of_windows() -> Finding:
    fields = {k: v for k, v in printed_fields("=").items() if k.startswith("w=")}
    reach = {k: LAYERS * (int(k[2:]) - 1) + 1 for k in fields}
    within = all(fields[k] <= reach[k] for k in fields)
    return Finding(within, {"ERF": fields, "reach": reach}, n=len(fields))


@claim(
    "erf.coverage",
    "5.1 Quantifying Empirical Receptive Field",
    place="Figures 4 and 5 against Table 1",
    quote="Since L_tr = 512 does not fully cover their ERFs, they fail to extrapolate well",
    says="The models whose ERF the training length covers are those whose perplexity stays.",
    refuted_by="a covered model that loses it, or another that keeps it",
    kind=PRINTED,
    label="measured",
    data="the ERFs of Section 5.1 against Table 1",
    scale=SCALE,
    exhibits="fig4 fig5 table1",
)
def fields_that_are_covered(tolerance: float) -> Finding:
    rise = increases(curves("chi2023_table1", by="variant", variant=(*WINDOWS, *SHIFTS)), 512)
    covered = printed_fields("<")
    against = [name for name, r in rise.items() if (r < tolerance) != (name in covered)]
    return Finding(not against, {"increase": rise, "against": against}, n=len(rise))


@claim(
    "erf.coverage.experiment",
    "5.1 Quantifying Empirical Receptive Field",
    quote="Since L_tr = 512 does not fully cover their ERFs, they fail to extrapolate well",
    says=(
        "Trained models whose gradient ERF exceeds the training length lose their "
        "perplexity, the others keep it."
    ),
    refuted_by="a model with the other outcome",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs",
    corrected="It is enough, not necessary: no covered model loses its perplexity.",
)
def covered_in_training(tolerance: float) -> Finding:
    tested = unmasked()
    kept = {m.name: m.increase < tolerance for m in tested}
    covered = {m.name for m in tested if m.gradient_field <= m.trained}
    against = [name for name in kept if kept[name] != (name in covered)]
    return Finding(
        not against,
        {"kept, not covered": [k for k in against if kept[k]]},
        instead=all(kept[name] for name in covered),
        models=tested,
    )


@claim(
    "erf.rank",
    "5.1 Quantifying Empirical Receptive Field",
    place="Figures 4 and 5 against Table 1",
    quote=(
        "the difference between L_tr and ERF is too large to be handled, resulting in "
        "exploded perplexities"
    ),
    says="The larger the printed ERF, the larger the increase of perplexity.",
    refuted_by="two models in the other order",
    kind=PRINTED,
    label="measured",
    data="the ERFs of Section 5.1 against Table 1",
    corrected=(
        "Among the windows it does; ALiBi with delta = -3 has the smallest ERF of the "
        "shifts and rises more than delta = 0 and 2."
    ),
    scale=SCALE,
    exhibits="fig4 fig5 table1",
)
def larger_fields() -> Finding:
    fields = printed_fields("=", "<")
    rise = increases(curves("chi2023_table1", by="variant", variant=tuple(fields)), 512)
    other = opposed(fields, rise)
    windows = [pair for pair in other if "delta" not in pair]
    least = all(fields[k] >= fields["delta=-3"] for k in SHIFTS)
    return Finding(
        not other,
        {"in the wrong order": other, "ERF": fields, "increase": rise},
        instead=not windows and least and max(rise["delta=0"], rise["delta=2"]) < rise["delta=-3"],
        n=math.comb(len(fields), 2),
    )


@claim(
    "erf.explains",
    "5.1 Quantifying Empirical Receptive Field",
    place="Figure 5 against Table 1",
    quote=(
        "For Δ ∈ [6, 8] models specifically, the difference between L_tr and ERF is too "
        "large to be handled, resulting in exploded perplexities"
    ),
    says="Models with the ERF of delta = 6 and 8 explode.",
    refuted_by="a model with the same ERF whose perplexity does not double",
    kind=PRINTED,
    label="measured",
    data="the ERFs of Section 5.1 against Table 1",
    scale=SCALE,
    exhibits="fig5 table1",
)
def fields_that_explode() -> Finding:
    at_the_end = [name for name, v in printed_fields("=", "<").items() if v == MEASURED_AT]
    raise Missing(
        f"the gradient was taken at token {MEASURED_AT}, so an ERF of {MEASURED_AT} is the most "
        "that it can be, and says nothing of how much farther a model sees",
        {"ERF at the end of the row": at_the_end},
    )


@claim(
    "plateau",
    "5.1 Quantifying Empirical Receptive Field",
    place="Table 1",
    quote="therefore its perplexity plateaus the soonest at L_ex = 1024 in Table 1",
    says="delta = -3 stays from 1024 tokens on, the other shifts from 2048 on and not before.",
    refuted_by="another length from which one of them stays",
    kind=PRINTED,
    label="measured",
    data="Table 1",
    scale=SCALE,
    exhibits="table1",
)
def plateaus(tolerance: float) -> Finding:
    settled = {}
    for name, c in curves("chi2023_table1", by="variant", variant=SHIFTS).items():
        settled[name] = min(n for n in c if stays((v for m, v in c.items() if m >= n), tolerance))
    expected = {name: 1024 if name == "delta=-3" else 2048 for name in settled}
    return Finding(settled == expected, {"stays from": settled}, n=len(settled))


@claim(
    "erf.experiment",
    "5.1 Quantifying Empirical Receptive Field",
    quote="Since L_tr = 512 does not fully cover their ERFs, they fail to extrapolate well",
    says=(
        "Over trained models a larger gradient ERF goes with a larger increase of "
        "perplexity, beyond chance."
    ),
    refuted_by="a rank correlation that chance reaches in one of twenty orders",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs",
)
def fields_and_increase() -> Finding:
    tested = unmasked()
    fields, rise = [m.gradient_field for m in tested], [m.increase for m in tested]
    chance = by_chance(fields, rise)
    beyond = [1 - m.gradient[m.trained] for m in tested]
    return Finding(
        chance < BY_CHANCE,
        {
            "Spearman rank correlation of gradient ERF, increase": rank_correlation(fields, rise),
            "by chance": chance,
            "of the gradient mass beyond the training length": rank_correlation(beyond, rise),
        },
        models=tested,
    )


@claim(
    "table2.alibi",
    "5.2 Fixing Failed Cases",
    place="Table 2",
    quote="For shifted ALiBi with Δ = 6, we need L_tr = 2048 tokens",
    says=(
        "ALiBi with delta = 6, trained on 2048 tokens, keeps its perplexity from 2048 to "
        "8192 tokens."
    ),
    refuted_by="a rise beyond the tolerance",
    kind=PRINTED,
    label="measured",
    data="Table 2",
    corrected="It jumps from 2048 to 4096 tokens (4.4 to 6.2, 15.2 to 19.8) and stays after.",
    scale="12 layers, 768 wide, 12 heads",
    exhibits="table2",
    about="alibi",
)
def shift_on_longer_rows(tolerance: float) -> Finding:
    columns = curves("chi2023_table2", by="dataset", encoding="ALiBi")
    rise = increases(columns, 2048)
    jump = min(c[4096] / c[2048] - 1 for c in columns.values())
    late = [[v for n, v in c.items() if n >= 4096] for c in columns.values()]
    return Finding(
        max(rise.values()) < tolerance,
        {"perplexity by length": columns, "increase": rise},
        instead=jump >= tolerance and all(stays(row, 0.01) for row in late),
        n=len(rise),
    )


@claim(
    "table2.windowed",
    "5.2 Fixing Failed Cases",
    place="Table 2",
    quote="We increase L_tr to 1024 for windowed attention with w = 160",
    says=(
        "The window of 160, trained on 1024 tokens, keeps its perplexity from 2048 to 8192 tokens."
    ),
    refuted_by="a rise beyond the tolerance",
    kind=PRINTED,
    label="measured",
    data="Table 2",
    scale="12 layers, 768 wide, 12 heads",
    exhibits="table2",
    about="window",
)
def window_on_longer_rows(tolerance: float) -> Finding:
    columns = curves("chi2023_table2", by="dataset", encoding="Windowed")
    return rise_in_print(columns, 2048, lambda r: r < tolerance)


@claim(
    "table2.experiment",
    "5.2 Fixing Failed Cases",
    quote=(
        "We fix the failed cases in Table 1 section 1 (varying Δ) and section 3 (varying "
        "w) by increasing L_tr to cover their ERFs"
    ),
    says="A window and a shift that lose their perplexity, trained on longer rows, keep it.",
    refuted_by="one that loses it still",
    kind=EXPERIMENT,
    label="measured",
    data="the runs of further/longer (window 64 trained on 128 tokens, shift 6 on 256)",
    about="window",
)
def longer_rows_in_training(tolerance: float) -> Finding:
    longer = (m for trained in (128, 256) for m in models(trained, "further/longer"))
    return rise_of([*longer], lambda r: r < tolerance)


@claim(
    "eq5.index",
    "5.3 Analyses of Sinusoidal and Rotary",
    place="Eq. 5",
    quote="constructs the positional embedding at position m and ∀i ∈ [1, d/2] as",
    says="The indices 2i and 2i + 1, i = 1 .. d/2, are the d coordinates.",
    refuted_by="a coordinate that is missing or too many",
    kind=IDENTITY,
    label="theorem",
    data="the indices at d = 8, counted from 0 or 1",
    corrected="With i = 0 .. d/2 - 1 they are 0 .. d - 1.",
)
def indices() -> Finding:
    d = 8
    printed = [k for i in range(1, d // 2 + 1) for k in (2 * i, 2 * i + 1)]
    first = [k for i in range(d // 2) for k in (2 * i, 2 * i + 1)]
    coordinates = ([*range(d)], [*range(1, d + 1)])
    return Finding(
        printed in coordinates, {"indices, d = 8": printed}, instead=first in coordinates
    )


@claim(
    "eq4.approximation",
    "5.3 Analyses of Sinusoidal and Rotary",
    place="Eq. 4, last line",
    quote="we drop the cross terms and keep only the inner product of two positional embeddings",
    says=(
        "In a random sinusoidal model what Eq. 4 drops is, on average, less than the "
        "tolerance of the term p_m . p_n that it keeps."
    ),
    refuted_by="a larger part that is dropped",
    kind=PROPERTY,
    label="measured",
    data="pairs of 60 positions, unit-variance contents and weights of variance 1/d, d = 64",
    corrected="It is exact where W_q^T W_k = 1 and contents are orthogonal to positions, here 0.",
    about="sinusoidal",
)
def dropped_terms(tolerance: float) -> Finding:
    d, random = 64, np.random.default_rng(0)
    angle = np.arange(60)[:, None] / 10_000.0 ** (2 * np.arange(d // 2) / d)
    p = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
    content = random.normal(size=(60, d))
    wq, wk = random.normal(size=(2, d, d)) / math.sqrt(d)

    def dropped(a: np.ndarray, e: np.ndarray) -> float:
        full = (e + p) @ a @ (e + p).T - e @ a @ e.T
        return float(np.abs(full - p @ p.T).mean() / np.abs(p @ p.T).mean())

    ratio = dropped(wq.T @ wk, content)
    return Finding(
        ratio < tolerance,
        {"mean size of what is dropped over what is kept": ratio},
        instead=dropped(np.eye(d), 0 * content) < 1e-12,
        n=60 * 60,
    )


@claim(
    "rotary.embedding",
    "5.3 Analyses of Sinusoidal and Rotary",
    quote=(
        "Rotary (Su et al., 2021) multiplies each token embedding with a position-specific "
        "rotation matrix R_m e_m"
    ),
    says="With R_m e_m in place of e_m the score depends on m - n alone, as Rotary's does.",
    refuted_by="a score that changes when both positions move",
    kind=PROPERTY,
    label="measured",
    data="one random head of 16, shifts by 1, 37 and 200",
    corrected="Rotary turns queries and keys: R_m W_q e_m; then it does.",
    about="rope",
)
def turned_embedding() -> Finding:
    random = np.random.default_rng(0)
    wq, wk = random.normal(size=(2, 16, 16)) / 4
    e, f = random.normal(size=(2, 16))

    def at(x: np.ndarray, place: int) -> np.ndarray:
        row: np.ndarray = turned(x[None], np.array([place]))[0]
        return row

    def change(score: Callable[[int, int], float]) -> float:
        return max(abs(score(9 + s, 4 + s) - score(9, 4)) for s in (1, 37, 200))

    embedded = change(lambda m, n: float((wq @ at(e, m)) @ (wk @ at(f, n))))
    queried = change(lambda m, n: float(at(wq @ e, m) @ at(wk @ f, n)))
    return Finding(
        embedded < 1e-9,
        {"largest change of the score": embedded, "of queries and keys": queried},
        instead=queried < 1e-9,
        n=3,
    )


@claim(
    "gradient-jump",
    "5.3 Analyses of Sinusoidal and Rotary",
    place="Figure 7",
    quote=(
        "Sinusoidal focuses on the 512-th token when L_tr = 512 and the 128-th token when "
        "L_tr = 128 as indicated by the sudden jump"
    ),
    says=(
        "In a long row the gradient of a sinusoidal model is largest, away from the last "
        "tokens, near the token at the training length, and moves with it."
    ),
    refuted_by="a largest share further than an eighth of the training length from it",
    kind=EXPERIMENT,
    label="measured",
    data=(
        "gradients by token of sinusoidal models trained on 64 and on 128 tokens, rows of "
        "1024 (results, gradient by token)"
    ),
    exhibits="fig7",
    about="sinusoidal",
)
def gradient_jump() -> Finding:
    peak, off = {}, []
    for name, (trained, shares) in gradients("sinusoidal", trained=(64, 128)).items():
        peak[name] = 4 * (len(shares) - 8 - int(np.argmax(shares[8:])))  # from the start
        off.append(abs(peak[name] / trained - 1))
    return Finding(
        max(off) <= 0.125, {"token with the largest share, from the start": peak}, n=len(peak)
    )


@claim(
    "eq6.after-softmax",
    "6.1 Introduction to Sandwich",
    place="Eq. 6",
    quote="Eq. (6) is added after the scaled softmax is done in Eq. (1)",
    says=(
        "Added to the weights of Eq. 1, Eq. 6 leaves weights that are not negative and sum to 1."
    ),
    refuted_by="a negative weight, or another sum",
    kind=PROPERTY,
    label="measured",
    data="random logits of 64 keys, head h = 8",
    corrected="It is added to the scaled logits, before the softmax.",
    about="sandwich",
)
def added_bias() -> Finding:
    logits, bias = np.random.default_rng(0).normal(size=64), sandwich(np.arange(64))
    after, before = softmax(logits) + bias, softmax(logits + bias)
    valid = [w.min() >= 0 and abs(w.sum() - 1) < 1e-9 for w in (after, before)]
    return Finding(
        bool(valid[0]),
        {"least weight, sum": [float(after.min()), float(after.sum())]},
        instead=bool(valid[1]),
        n=64,
    )


@claim(
    "table3.learned",
    "6.2 Experiments and Discussion",
    place="Table 3",
    quote="In general, models on the right achieve lower perplexities across the three datasets",
    says="KERPLE and T5 have lower perplexities than Sandwich at every length.",
    refuted_by="a length at which one of them has not",
    kind=PRINTED,
    label="measured",
    data="Table 3",
    corrected="KERPLE does in every cell; T5 does not at 4096 and 8192 tokens.",
    scale=SCALE,
    exhibits="table3",
    about="kerple_log sandwich t5",
)
def learned_below_sandwich() -> Finding:
    columns = curves("chi2023_table3", by="encoding dataset")
    higher = [
        f"{name} {data} {n}"
        for name in ("KERPLE", "T5")
        for data in ("ArXiv", "GitHub", "OpenWebText2")
        for n, v in columns[f"{name} {data}"].items()
        if v > columns[f"Sandwich {data}"][n]
    ]
    return Finding(
        not higher,
        {"higher than Sandwich": higher},
        instead=all(k.startswith("T5") and k.endswith(("4096", "8192")) for k in higher),
        n=2 * 3 * 5,
    )


@claim(
    "t5.slower",
    "6.2 Experiments and Discussion",
    quote="For example, T5 is 10% slower than Sandwich during the training stage",
    says="Training takes 10 % longer with T5 than with Sandwich.",
    refuted_by="another ratio, timed with the code and machine of the paper",
    kind=EXPERIMENT,
    label="measured",
    data="no times of such models",
    scale="12 layers, 768 wide, one A-100",
    about="sandwich t5",
)
def time_of_training() -> Finding:
    t5, other = (m.seconds for m in named("t5", "sandwich"))
    ours = {seed: t5[seed] / other[seed] - 1 for seed in t5 if seed in other}
    evidence = {"ours over Sandwich - 1, 4 layers on a CPU": ours}
    raise Missing("a time of other code on another machine, at another scale", evidence)


@claim(
    "table3.sandwich-best",
    "6.2 Experiments and Discussion",
    place="Table 3",
    quote="On ArXiv and GitHub, it is consistently better than all the baselines",
    says="Beyond 512 tokens Sandwich is below ALiBi, Sinusoidal and Rotary on both.",
    refuted_by="a length at which one of them is as low",
    kind=PRINTED,
    label="measured",
    data="Table 3",
    scale=SCALE,
    exhibits="table3",
    about="alibi sandwich sinusoidal rope",
)
def sandwich_below() -> Finding:
    columns = curves("chi2023_table3", by="encoding dataset")
    exceptions = [
        f"{name} {data} {n}"
        for name in ("ALiBi", "Sinusoidal", "Rotary")
        for data in ("ArXiv", "GitHub")
        for n, v in columns[f"Sandwich {data}"].items()
        if n > 512 and v >= columns[f"{name} {data}"].get(n, math.inf)
    ]
    return Finding(not exceptions, {"exceptions": exceptions}, n=3 * 2 * 4)


@claim(
    "table3.marginal",
    "6.2 Experiments and Discussion",
    place="Table 3",
    quote="but only marginally worse than ALiBi when L_ex ≥ 4096 on OpenWebText2",
    says=(
        "On OpenWebText2 Sandwich is above ALiBi from 4096 tokens on and not before, by "
        "less than the tolerance."
    ),
    refuted_by="a larger difference, or another length",
    kind=PRINTED,
    label="measured",
    data="Table 3",
    scale=SCALE,
    exhibits="table3",
    about="alibi sandwich",
)
def marginally_above(tolerance: float) -> Finding:
    by_name = curves("chi2023_table3", by="encoding", dataset="OpenWebText2")
    sandwich, alibi = by_name["Sandwich"], by_name["ALiBi"]
    change = {n: sandwich[n] / alibi[n] - 1 for n in alibi if n > 512}
    above = all((v > 0) == (n >= 4096) for n, v in change.items())
    close = max(change.values()) < tolerance
    return Finding(above and close, {"Sandwich over ALiBi - 1": change}, n=len(change))


@claim(
    "table3.beyond",
    "6.2 Experiments and Discussion",
    place="Table 3",
    quote="To see this, notice that lower (better) perplexities occur at L_ex > L_tr = 512",
    says="Sandwich reaches its lowest perplexity beyond 512 tokens, on each data set.",
    refuted_by="a data set with the lowest at 512",
    kind=PRINTED,
    label="measured",
    data="Table 3",
    scale=SCALE,
    exhibits="table3",
    about="sandwich",
)
def lowest_beyond() -> Finding:
    columns = curves("chi2023_table3", by="dataset", encoding="Sandwich")
    lowest = {data: min(c, key=c.__getitem__) for data, c in columns.items()}
    return Finding(
        min(lowest.values()) > 512, {"length of the lowest perplexity": lowest}, n=len(lowest)
    )


@claim(
    "beyond.experiment",
    "6.2 Experiments and Discussion",
    quote="To see this, notice that lower (better) perplexities occur at L_ex > L_tr = 512",
    says=(
        "A trained Sandwich model reaches its lowest last-token perplexity beyond the "
        "training length, at both training lengths."
    ),
    refuted_by="the lowest at the training length",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs, at both training lengths",
    about="sandwich",
)
def lowest_in_training() -> Finding:
    tested = at_both_lengths("sandwich")
    curve = {m.trained: m.perplexity() for m in tested}
    return Finding(
        all(min(c, key=c.__getitem__) > trained for trained, c in curve.items()),
        {"perplexity by training length": curve},
        models=tested,
    )


@claim(
    "sandwich.mass",
    "6.2 Experiments and Discussion",
    place="Figure 11",
    quote=(
        "Even though Sandwich allocates about 60% of the total cumulative gradient on the "
        "most recent L_tr = 512 tokens"
    ),
    says="Sandwich has about 60 % of its gradient on the most recent 512 tokens.",
    refuted_by="another share, measured in models of that scale",
    kind=EXPERIMENT,
    label="measured",
    data="no gradients of such models",
    scale="12 layers, trained on 512 tokens",
    exhibits="fig11",
    about="sandwich",
)
def gradient_of_sandwich() -> Finding:
    (m,) = named("sandwich")
    name = "ours on the most recent tokens, as many as in training"
    raise Missing("a number of models of 12 layers and 512 tokens", {name: m.gradient[m.trained]})


@claim(
    "sandwich.distant",
    "6.2 Experiments and Discussion",
    place="Figure 11",
    quote="distant tokens beyond L_tr still contribute substantially to the model prediction",
    says=(
        "Tokens beyond the training length hold more of a Sandwich model's gradient than "
        "the tolerance, at both training lengths."
    ),
    refuted_by="a smaller share",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs, at both training lengths",
    exhibits="fig11",
    about="sandwich",
)
def distant_gradient(tolerance: float) -> Finding:
    tested = at_both_lengths("sandwich")
    beyond = {m.trained: 1 - m.gradient[m.trained] for m in tested}
    return Finding(
        min(beyond.values()) > tolerance,
        {"share beyond, by training length": beyond},
        models=tested,
    )


@claim(
    "figure11.distinct",
    "6.2 Experiments and Discussion",
    place="Figure 11",
    quote=(
        "which reveals a receptive field pattern distinct from that of ALiBi and windowed attention"
    ),
    says=(
        "The cumulative gradient of a Sandwich model differs from those of ALiBi and of "
        "the windows by more than the tolerance somewhere."
    ),
    refuted_by="one that lies closer",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs",
    exhibits="fig11",
    about="window alibi sandwich",
)
def distinct_gradients(tolerance: float) -> Finding:
    sandwich, *others = tested = named("sandwich", "alibi", "window 16", "window 64")
    largest = {m.name: largest_difference(m, sandwich) for m in others}
    return Finding(
        min(largest.values()) > tolerance,
        {"largest difference from Sandwich": largest},
        models=tested,
    )


@claim(
    "log-fit.points",
    "6.2 Experiments and Discussion",
    place="footnote 7",
    quote="we fit the curve using the most recent 50 points of Sandwich",
    says="The printed curve is the fit to the most recent 50 points.",
    refuted_by="another slope or constant on 50 points",
    kind=NUMBER,
    label="approximate",
    data="fits to 50 and to 8192 points",
    corrected="It is the fit to all 8192 points; 50 points give about -1.02 log(1+n) - 0.02.",
    about="sandwich",
)
def points_of_fit() -> Finding:
    def off(points: int, printed: tuple[float, float], *dialects: str) -> float:
        fits = [logarithm(d, points) for d in dialects]
        return min(max(abs(fit[0] - printed[0]), abs(fit[1] - printed[1])) for fit in fits)

    printed, both = (-0.825, -0.8), ("appendix", "equation")
    whole, some = off(8192, printed, *both), off(50, (-1.02, -0.02), "appendix")
    return Finding(
        off(50, printed, *both) <= 0.01,
        {
            "slope, constant on 50 points": logarithm("appendix", 50)[:2],
            "on all 8192 points": logarithm("appendix", 8192)[:2],
            "printed": printed,
        },
        instead=max(whole, some) <= 0.01,
        n=2,
    )


@claim(
    "averaging.linear",
    "6.2 Experiments and Discussion",
    place="Figure 11",
    quote=(
        "The almost linear segment ranging from 1536 to 1792 suggests that Sandwich was "
        "trained to perform averaging within L_tr"
    ),
    says=(
        "In a Sandwich model the gradients of the tokens in the far half of the training "
        "length are alike: those of its two quarters differ by less than the tolerance, in "
        "every seed."
    ),
    refuted_by="a seed in which they differ by more",
    kind=EXPERIMENT,
    label="measured",
    data=(
        "gradients by token of models trained on 64 tokens, distances 32 to 47 and 48 to "
        "63 (results, gradient by token)"
    ),
    corrected=(
        "At this scale it falls by 30 to 40 % from one quarter to the next, as ALiBi's does."
    ),
    exhibits="fig11",
    about="sandwich",
)
def far_half_of_the_gradient(tolerance: float) -> Finding:
    # 4 tokens a share: distances 48 .. 63 over 32 .. 47
    by_seed = gradients("sandwich", "alibi", trained=(64,))
    ratio = {name: float(s[12:16].sum() / s[8:12].sum()) for name, (_, s) in by_seed.items()}
    return Finding(
        all(abs(r - 1) < tolerance for name, r in ratio.items() if name.startswith("sandwich")),
        {"gradient at 48 .. 63 over that at 32 .. 47, by seed": ratio},
        instead=min(ratio.values()) >= 0.6 and max(ratio.values()) <= 0.7,
        n=len(ratio),
    )


@claim(
    "table3.marks",
    "6.2 Experiments and Discussion",
    place="caption of Table 3",
    quote="means sandwich is statistically significantly better than x",
    says="A dagger stands where Sandwich's mean is better, a star where it is worse.",
    refuted_by="a mark on the other side",
    kind=PRINTED,
    label="measured",
    data="every marked cell of Table 3",
    corrected="All but one do: ALiBi on GitHub at 512 tokens should have a star.",
    scale=SCALE,
    exhibits="table3",
    about="sandwich",
)
def marks_of_significance() -> Finding:
    sandwich = curves("chi2023_table3", by="dataset", encoding="Sandwich")
    wrong = {}
    for c in table("chi2023_table3"):
        if c.marker and c.value is not None and c.eval_length is not None:
            gap = round(c.value - sandwich[c.dataset][c.eval_length], 2)
            if (gap > 0) != (c.marker == "dagger"):
                wrong[f"{c.marker}: {c.dataset} {c.encoding} {c.eval_length}"] = gap
    return Finding(
        not wrong,
        {"minus Sandwich": wrong},
        instead=[*wrong] == ["dagger: GitHub ALiBi 512"],
        n=sum(bool(c.marker) for c in table("chi2023_table3")),
    )


@claim(
    "table3.delta0",
    "6.2 Experiments and Discussion",
    place="Table 3 against Tables 1 and 4",
    quote=(
        "All models are trained for 50k steps with a training length of 512 and five random seeds"
    ),
    says=(
        "The columns delta = 0 and ALiBi are one model: their perplexities agree within "
        "two standard deviations."
    ),
    refuted_by="a cell further off",
    kind=PRINTED,
    label="measured",
    data="delta = 0 of Tables 1 and 4, ALiBi of Table 3",
    scale=SCALE,
    exhibits="table1 table3 table4",
    about="alibi",
)
def same_model_twice() -> Finding:
    single, apart = curves(*BOTH, by="dataset", variant="delta=0"), {}
    for c in table("chi2023_table3"):
        if c.encoding == "ALiBi" and c.dataset in single and c.std and c.value and c.eval_length:
            gap = single[c.dataset][c.eval_length] - c.value
            apart[f"{c.dataset} {c.eval_length}"] = gap / c.std
    name = "(Table 1 or 4 minus Table 3) over its std"
    return Finding(max(map(abs, apart.values())) < 2, {name: apart}, n=len(apart))


@claim(
    "kerple.case",
    "6.3 Connection to KERPLE and T5",
    quote="if we set r1 = 0.825 and r2 = 1, Sandwich becomes a special case of KERPLE",
    says="Sandwich is KERPLE with r1 = 0.825, r2 = 1, up to a constant.",
    refuted_by="biases that differ by more than a constant",
    kind=PROOF,
    label="theorem",
    data="both biases at h = 8, distances 0 .. 39,999",
    corrected=(
        "The fitted curve at h = 8 is (its constant cancels in the softmax), and its "
        "series diverges; Sandwich itself is bounded and no logarithm."
    ),
    about="kerple_log sandwich",
)
def case_of_kerple() -> Finding:
    at = np.arange(40_000)
    rows = (sandwich(at), encoding("sandwich_smoothed", heads=1).bias(at)[0])
    gap, fit = (float(np.ptp(row + 0.825 * np.log1p(at))) for row in rows)
    converges = decided("-r1*log(1+r2*n)").at(r1="0.825", r2=1)
    return Finding(
        gap < 1e-9,
        {
            "Sandwich minus KERPLE, largest minus least": gap,
            "the same for the fitted curve": fit,
            "series at these parameters converges": converges,
        },
        instead=fit < 1e-9 and not converges,
        n=at.size,
    )


@claim(
    "figure11.similar",
    "6.3 Connection to KERPLE and T5",
    place="Figure 11",
    quote=(
        "Figure 11 verifies that all three of them share a similar empirical receptive "
        "field pattern"
    ),
    says="The cumulative gradients of Sandwich, KERPLE and T5 models lie within the tolerance.",
    refuted_by="two of the three further apart, where T5 is as good as in print",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs",
    exhibits="fig11",
    about="kerple_log sandwich t5",
)
def similar_gradients(tolerance: float) -> Finding:
    sandwich, kerple, t5 = tested = named("sandwich", "kerple_log", "t5")
    behind = t5.perplexity()[64] / sandwich.perplexity()[64] - 1
    pairs = ((kerple, sandwich), (t5, sandwich), (kerple, t5))
    largest = {f"{a.name}, {b.name}": largest_difference(a, b) for a, b in pairs}
    evidence = {"T5 over Sandwich at the training length - 1": behind, "differences": largest}
    if behind > tolerance:
        why = "T5 is not learned at this scale: it lies above Sandwich, in print below it"
        raise Missing(why, evidence)
    return Finding(max(largest.values()) < tolerance, evidence, models=tested)


@claim(
    "table5.alibi",
    "B Efficient Inference",
    place="Table 5",
    quote="verify that ALiBi indeed allows for efficient inference",
    says=(
        "With a cache of 2048 tokens ALiBi's perplexity is that of Table 3, within the tolerance."
    ),
    refuted_by="a larger difference",
    kind=PRINTED,
    label="measured",
    data="Tables 3 and 5, 4096 and 8192 tokens",
    scale=SCALE,
    exhibits="table5",
    about="alibi",
    names=("ALiBi",),
    two_sided=True,
)
@claim(
    "table5.both",
    "B Efficient Inference",
    place="Table 5",
    quote="Both ALiBi and Sandwich permit efficient inference by setting w̄ = 2048",
    says=(
        "With a cache of 2048 tokens neither is above its own perplexity of Table 3 by "
        "more than the tolerance."
    ),
    refuted_by="a larger rise",
    kind=PRINTED,
    label="measured",
    data="Tables 3 and 5, 4096 and 8192 tokens",
    scale=SCALE,
    exhibits="table5",
    about="alibi sandwich",
    names=("ALiBi", "Sandwich"),
    two_sided=False,
)
def cached_in_print(tolerance: float, names: tuple[str, ...], two_sided: bool) -> Finding:
    tables = ("chi2023_table5", "chi2023_table3")
    cached, full = (curves(t, by="encoding dataset", encoding=names) for t in tables)
    change = {
        f"{name} {n}": v / full[name][n] - 1
        for name, c in cached.items()
        for n, v in c.items()
        if n in full[name]
    }
    worst = max(abs(v) if two_sided else v for v in change.values())
    return Finding(worst < tolerance, {"cached over full - 1": change}, n=len(change))


@claim(
    "cache.experiment",
    "B Efficient Inference",
    quote="verify that ALiBi indeed allows for efficient inference",
    says=(
        "A trained ALiBi model keeps its perplexity with a cache of four training lengths, "
        "up to 32 times the training length."
    ),
    refuted_by="a rise beyond the tolerance",
    kind=EXPERIMENT,
    label="measured",
    data="the runs of further/cache",
    about="alibi",
)
def cached_in_training(tolerance: float) -> Finding:
    return rise_of(named("alibi + window 256", folder="further/cache"), lambda r: r < tolerance)


@claim(
    "table7.hidden",
    "D Implementation Details",
    place="Table 7 against 3.1",
    quote="The configurations and hyperparameters are outlined in Table 7",
    says="The hidden size of Table 7 is that of Section 3.1, d = 768.",
    refuted_by="another number",
    kind=PRINTED,
    label="measured",
    data="Table 7 and Section 3.1",
    corrected="768; 64 = 768/12 is the size of a head.",
    scale=SCALE,
)
def hidden_size() -> Finding:
    (size,) = (c.value for c in table("chi2023_table7") if c.encoding == "Hidden Size")
    return Finding(
        size == 768, {"Table 7": size, "Section 3.1": 768}, instead=size == 768 / 12, n=1
    )


@claim(
    "appendixE.index",
    "E Python Implementation of Sandwich",
    place="Eq. 6 against the code",
    quote="readers can find the reference Python implementation in Appendix E",
    says="The code of Appendix E computes Eq. 6, up to a constant.",
    refuted_by="a distance at which the difference changes",
    kind=IDENTITY,
    label="theorem",
    data="both biases at h = 8, distances 0 .. 1999",
    corrected=(
        "The code sums i = 0 .. d/2 - 1, Eq. 6 i = 1 .. d/2; they differ by (cos n - "
        "cos(n/10000))/h, which no constant absorbs."
    ),
    about="sandwich",
)
def index_ranges() -> Finding:
    at = np.arange(2000)
    code, printed = (
        encoding("sandwich", heads=1, dialect=k).bias(at)[0] for k in ("appendix", "equation")
    )
    gap = code - printed
    differ = np.abs(gap - (np.cos(at) - np.cos(at / 10_000.0)) / 8).max()
    return Finding(
        float(np.ptp(gap)) < 1e-9,
        {
            "largest minus least difference": float(np.ptp(gap)),
            "counterexample": f"n = 3: {code[3]:.6f} against {printed[3]:.6f}",
        },
        instead=bool(differ < 1e-8),
        n=at.size,
    )
