"""[Q] Qin et al., AAAI 2024: claims on exp-series, conditions, Types 1 and 2, TRF beside ERF."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import sympy
from flint import arb

from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.search import at_precision
from farfield.numerics.summation.series import Series, series
from farfield.numerics.windows.window import window_error
from farfield.theory.encodings import encoding
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import precision, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.theorems import theorem
from farfield.theory.values import enclose
from farfield.validation.papers.claim import (
    EXPERIMENT,
    IDENTITY,
    NUMBER,
    PRINTED,
    PROOF,
    Finding,
    claim,
    rise_in_print,
    rise_of,
)
from farfield.validation.papers.plain_attention import by_head, decided, of_layer
from farfield.validation.papers.tables import curves, printed_encoding
from farfield.validation.papers.trained_models import Missing, Model, models, named, unmasked
from farfield.validation.papers.words import (
    BY_CHANCE,
    EXPLODES,
    by_chance,
    falls,
    increases,
    opposed,
    rank_correlation,
    rises,
    stays,
)
from farfield.validation.results import LAST, WHOLE

TYPE1, TYPE2 = "-2*log(1+n)", "-(log(1+n))^2"
FIVE = ("alibi", "kerple_log", "sandwich", "type1", "type2")
TABLES = ("chi2023_table1", "chi2023_table4")
"""[C] prints the perplexities of many slopes and windows on two data sets."""
THEIRS = "12 layers, 768 wide, 12 heads, trained on 512 tokens ([C])"

SECTIONS = (
    "Abstract",
    "Introduction",
    "Softmax Attention",
    "Relative Positional Encoding",
    "Definition Of Length Extrapolation",
    "Sliding Window Attention",
    "The Hypothesis",
    "The Conditions",
    "Theoretical Receptive Field",
    "Two New RPEs",
    "Setting and Dataset",
    "Validating The Sufficiency",
    "Validating The Necessity",
    "Validating TRF",
    "Visualizing RPE",
    "Conclusion",
)
"""Of the paper, in order."""
SCALE = "6 layers, 512 wide (WikiText-103) or 12 layers, 768 wide, trained on 512 tokens"
"""Of the models of the paper."""


# -- series and fields ----------------------------------------------------------------------------


def far_key(row: int) -> list[int]:
    """Weights by distance: 1 on the query's own key and 1 on the first token of the text."""
    return [int(t in (0, row - 1)) for t in range(row)]


def squares(row: int) -> list[Fraction]:
    """Weights 1/(t + 1)^2 by distance."""
    return [Fraction(1, (t + 1) ** 2) for t in range(row)]


def outside(weights: Sequence[Any], kept: int) -> Fraction:
    """The share of the weights beyond the nearest `kept`."""
    return Fraction(sum(weights[kept:]), sum(weights))


def field_of(terms: Sequence[Any], eps: Fraction) -> int:
    """The TRF of a finite series [Q, Eq. 22]."""
    return next(j for j in range(len(terms) + 1) if sum(terms[j:]) < eps * sum(terms))


def trf(bias: str, eps: str, **values: Any) -> float:
    """The certified receptive field in tokens; not a number where it is unknown."""
    tokens = theoretical_receptive_field(bias, eps, **values).tokens
    return math.nan if tokens is None else tokens


@lru_cache(maxsize=32)
def normalised_tails(bias: str) -> list[arb]:
    """T_j/B for j < 200, in balls."""
    s: Series = series(read(bias))
    with precision(128):
        whole = to_arb(s.total())
        return [to_arb(s.tail(j)) / whole for j in range(200)]


def has_fields(model: Model) -> bool:
    """Whether a model has a bias, and with it a theoretical receptive field."""
    return bool(model.run["mechanism"] == "bias")


# -- the claims, by section -----------------------------------------------------------------------


@claim(
    "sufficiency.printed",
    "Abstract",
    quote=(
        "a transformer is certain to possess this property as long as the series that "
        "corresponds to the RPE's exponential converges"
    ),
    says="Every transformer whose exp-series converges in all heads keeps its perplexity.",
    refuted_by="nothing but a model whose series converges and whose perplexity rises",
    kind=PRINTED,
    label="measured",
    data="perplexities printed in Tables 1 and 4 of [C]",
    scale=THEIRS,
)
def convergent_in_print(tolerance: float) -> Finding:
    columns = curves(*TABLES, where=lambda cell: of_layer(printed_encoding(cell)) == "converges")
    rise = increases(columns, 512)
    most = max(rise, key=rise.__getitem__)
    because = f"{most}: the series converges, and perplexity grows {1 + rise[most]:.0f}-fold."
    return replace(rise_in_print(columns, 512, lambda r: r < tolerance), because=because)


@claim(
    "sufficiency.experiment",
    "Abstract",
    quote=(
        "a transformer is certain to possess this property as long as the series that "
        "corresponds to the RPE's exponential converges"
    ),
    says="Every trained model whose exp-series converges in all heads keeps its perplexity.",
    refuted_by="a model whose series converges and whose perplexity rises",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs",
)
def convergent_in_training(tolerance: float) -> Finding:
    return rise_of(unmasked(lambda m: m.verdict == "converges"), lambda r: r < tolerance)


@claim(
    "no-effect",
    "Introduction",
    place="Figure 2",
    quote="only tokens within a certain range can influence the attention scores",
    says="Under ALiBi tokens beyond some distance have no effect on the attention output.",
    refuted_by="a weight that is positive at every distance",
    kind=NUMBER,
    label="certified",
    data="ALiBi with slope 1/2, content logits within [-1, 1], values of norm 1",
    corrected=(
        "Together they change the output by less than 10^-12, beyond 64 tokens at slope 1/2."
    ),
    exhibits="fig2",
    about="alibi",
)
def far_tokens() -> Finding:
    weight = sympy.exp(read("-n/2"))
    balls = {d: enclose(weight, 64, {n: sympy.Integer(d)}) for d in (10, 1000, 10**6)}
    change = window_error("-n/2", 64, 1, 1).value
    return Finding(
        not all(b is not None and b > 0 for b in balls.values()),
        {
            "weight relative to the nearest key, by distance": {
                d: b.str(3, radius=False) for d, b in balls.items() if b is not None
            },
            "largest change of the output without all beyond 64 keys": change,
        },
        instead=change is not None and change < 1e-12,
        n=len(balls),
    )


@claim(
    "def0.1",
    "Definition Of Length Extrapolation",
    place="Definition 0.1, Eq. 6",
    quote="if for any n, there is,",
    says=(
        "Some model that was tested at shorter and at longer lengths has the property as "
        "printed, for any n."
    ),
    refuted_by="in every model a change beyond the tolerance at some n",
    kind=PRINTED,
    label="measured",
    data="Tables 2 and 6 of [S]",
    corrected=(
        "Read n > m, and one-sided, an increase alone counting: then LeX has it on each data set."
    ),
    scale="24 layers, 1024 wide, 16 heads, trained on 1024 tokens ([S])",
)
def any_length(tolerance: float) -> Finding:
    columns = curves("sun2023_table2", "sun2023_table6", by="dataset encoding")
    change = {k: max(abs(v / c[1024] - 1) for v in c.values()) for k, c in columns.items()}
    lex = increases({k: c for k, c in columns.items() if "LeX" in k}, 1024)
    least = min(change, key=change.__getitem__)
    return Finding(
        change[least] < tolerance,
        {
            "least of the largest changes, any n": {least: change[least]},
            "LeX's largest increase, n > m": lex,
        },
        instead=max(lex.values()) < tolerance,
        n=len(change),
    )


@claim(
    "eq7.preceding",
    "Sliding Window Attention",
    place="Eq. 7",
    quote=(
        "represents the attention output of the i-th token, which interacts with the j "
        "tokens preceding it"
    ),
    says="The sum of Eq. 7 takes j tokens before the i-th one.",
    refuted_by="another number of tokens before it",
    kind=IDENTITY,
    label="theorem",
    data="the limits of the sum, j = 1 .. 9",
    corrected="j tokens with its own: j - 1 before it.",
)
def preceding_tokens() -> Finding:
    before = {j: sum(s < 20 for s in range(20 - j + 1, 20 + 1)) for j in range(1, 10)}
    return Finding(
        all(count == j for j, count in before.items()),
        {"tokens before the 20th, by j": before},
        instead=all(count == j - 1 for j, count in before.items()),
        n=len(before),
    )


@claim(
    "window-extrapolates",
    "Sliding Window Attention",
    place="after Eq. 7",
    quote="Note that window attention naturally possesses the length extrapolation ability",
    says="The exp-series of a window converges: Eq. 9 holds for it.",
    refuted_by="a window whose series does not converge",
    kind=PROOF,
    label="theorem",
    data="the formula",
    about="window",
    bias="Piecewise((0, n < 128), (-oo, True))",
    wanted="converges",
)
@claim(
    "satisfies.kerple-power",
    "The Conditions",
    place="after Theorem 0.4",
    quote="Kerple [...] satisfy our derived conditions for length extrapolation",
    says="The exp-series of KERPLE in its power form converges for all r1, r2 > 0.",
    refuted_by="parameters for which it diverges",
    kind=PROOF,
    label="theorem",
    data="the formula with free parameters",
    about="kerple_power",
    bias="-r1*n^r2",
    wanted="converges",
)
@claim(
    "satisfies.type1",
    "Two New RPEs",
    place="Type 1 and Type 2",
    quote="we propose two new RPEs to empirically prove the conditions and hypothesis",
    says="The exp-series of b_n = 1/n^2 (shifted to n + 1) converges.",
    refuted_by="a divergent series",
    kind=PROOF,
    label="theorem",
    data="the formula",
    about="type1",
    bias=TYPE1,
    wanted="converges",
)
@claim(
    "satisfies.type2",
    "Two New RPEs",
    place="Type 1 and Type 2",
    quote="we propose two new RPEs to empirically prove the conditions and hypothesis",
    says="The exp-series of b_n = exp(-log^2 n) (shifted to n + 1) converges.",
    refuted_by="a divergent series",
    kind=PROOF,
    label="theorem",
    data="the formula",
    about="type2",
    bias=TYPE2,
    wanted="converges",
)
@claim(
    "example1.diverges",
    "Validating The Necessity",
    quote="Below is a brief mathematical proof that the above RPEs do not satisfy Theorem 0.4",
    says="The exp-series of b_n = 1/n diverges.",
    refuted_by="a proof that it converges",
    kind=PROOF,
    label="theorem",
    data="the formula",
    about="example1",
    bias="-log(1+n)",
    wanted="diverges",
)
@claim(
    "example2.diverges",
    "Validating The Necessity",
    quote="Below is a brief mathematical proof that the above RPEs do not satisfy Theorem 0.4",
    says="The exp-series of b_n = 1/(n log n) diverges.",
    refuted_by="a proof that it converges",
    kind=PROOF,
    label="theorem",
    data="the formula",
    about="example2",
    bias="-log(n+3) - log(log(n+3))",
    wanted="diverges",
)
def verdict_on_series(bias: str, wanted: str) -> Finding:
    verdict = of_layer(bias)
    return Finding(verdict == wanted, {"verdict": verdict, "proof": decided(bias).proof.text()})


@claim(
    "window.printed",
    "Sliding Window Attention",
    place="after Eq. 7",
    quote="Note that window attention naturally possesses the length extrapolation ability",
    says="A model trained with windows keeps its perplexity, whatever their size.",
    refuted_by="a window whose perplexity rises",
    kind=PRINTED,
    label="measured",
    data="perplexities printed in Tables 1 and 4 of [C], windows of 40 to 320",
    corrected=(
        "Windows of up to 100 do; those of 120 and more lose it: 12 layers carry them "
        "beyond the training length."
    ),
    scale=THEIRS,
    about="window",
)
def windows_in_print(tolerance: float) -> Finding:
    rise = increases(curves(*TABLES, encoding="Windowed"), 512)
    kept = {name for name, r in rise.items() if r < tolerance}
    narrow = {name for name in rise if name.endswith(("w=40", "w=80", "w=100"))}
    return Finding(kept == {*rise}, {"increase": rise}, instead=kept == narrow, n=len(rise))


@claim(
    "table1.sizes",
    "Sliding Window Attention",
    place="caption of Table 1",
    quote="over a set of window sizes {16, 32, 64, 128, 258, 512}",
    says="The set of window sizes doubles from 16 to 512.",
    refuted_by="a size that is not twice the one before",
    kind=PRINTED,
    label="theorem",
    data="the caption",
    corrected="With 256 in place of 258 it does.",
    scale=SCALE,
    exhibits="table1",
    about="window",
)
def caption_sizes() -> Finding:
    printed, mended = (16, 32, 64, 128, 258, 512), (16, 32, 64, 128, 256, 512)
    doubles = [all(b == 2 * a for a, b in pairwise(sizes)) for sizes in (printed, mended)]
    return Finding(doubles[0], {"sizes": printed}, instead=doubles[1], n=len(printed) - 1)


@claim(
    "figure1.sliding",
    "Sliding Window Attention",
    place="Figure 1, left",
    quote="the sliding window inference has much lower ppl than the nonoverlapping one",
    says=(
        "At windows shorter than the training length, sliding inference has a perplexity "
        "lower than non-overlapping inference, on average over the windows by more than "
        "the tolerance."
    ),
    refuted_by="a model whose perplexity suffers as much from short windows when they slide",
    kind=EXPERIMENT,
    label="measured",
    data="the runs of further/windows",
    exhibits="fig1-left",
    about="window",
)
def sliding_windows(tolerance: float) -> Finding:
    # The protocols score other tokens, so each is taken relative to its own widest window, where
    # sliding is at least as good: the gain found is less than the whole advantage.
    tested, gains = models(folder="further/windows"), {}
    for m in tested:
        sliding, blocks = m.perplexity(LAST), m.perplexity(WHOLE)
        widest = max(sliding)
        both = {w: (blocks[w] / blocks[widest], sliding[w] / sliding[widest]) for w in sliding}
        gains[m.name] = {w: b / s - 1 for w, (b, s) in both.items() if w < widest}
    return Finding(
        all(np.mean([*g.values()]) > tolerance and min(g.values()) > 0 for g in gains.values()),
        {"non-overlapping over sliding - 1, by window": gains},
        models=tested,
    )


@claim(
    "figure1.alibi",
    "The Hypothesis",
    place="Figure 1, left",
    quote=(
        "the performance of Alibi is similar to the sliding window attention when the "
        "window size is sufficiently large"
    ),
    says=(
        "A model with ALiBi has with a sliding window of half its training length the "
        "perplexity that it has with all tokens, up to 16 times the training length."
    ),
    refuted_by="a difference beyond the tolerance",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs and further/windows",
    exhibits="fig1-left",
    about="window alibi",
)
def alibi_as_a_window(tolerance: float) -> Finding:
    (windowed,), (whole,) = named("alibi", folder="further/windows"), named("alibi")
    window, row = windowed.perplexity(), whole.perplexity()
    change = [window[32] / window[64] - 1, row[1024] / row[64] - 1]
    return Finding(
        max(map(abs, change)) < tolerance,
        {"window of 32 over 64 tokens - 1, 1024 tokens over 64 - 1": change},
        models=(windowed, whole),
    )


@claim(
    "eq7-eq8",
    "The Hypothesis",
    place="Eq. 8 against Eq. 7",
    quote=(
        "A sliding window attention with window size w is equivalent to the following RPE "
        "on full attention"
    ),
    says=(
        "A sliding window of w tokens [Eq. 7] is the bias that is 0 for i - j <= w and -oo beyond."
    ),
    refuted_by="two masks that keep different numbers of keys",
    kind=IDENTITY,
    label="theorem",
    data="both masks at w = 1, 2, 7, 64",
    corrected="Eq. 8 with i - j < w (it keeps w + 1 keys as printed)",
    about="window",
)
def window_as_a_bias() -> Finding:
    def keys(condition: str, w: int) -> int:
        values = encoding(f"Piecewise((0, {condition}), (-oo, True))", w=w).bias(np.arange(80))
        return int((values[0] == 0).sum())

    sizes = {w: (keys("n < w", w), keys("n <= w", w)) for w in (1, 2, 7, 64)}
    return Finding(
        all(a == b for a, b in sizes.values()),
        {"keys by w (Eq. 7, Eq. 8)": sizes},
        instead=all(keys("n <= w", w - 1) == a for w, (a, _) in sizes.items() if w > 1),
        n=len(sizes),
    )


@claim(
    "eq9.uniform",
    "The Hypothesis",
    place="Eq. 9",
    quote="∀ε > 0, ∃j_0, s.t. j > j_0, δ(i, j) < ε",
    says=(
        "Eq. 9 as printed, with i fixed, tells a bias that acts like a window from no bias at all."
    ),
    refuted_by="no bias at all, which satisfies it",
    kind=PROOF,
    label="theorem",
    data="worst cases of rows of 64 keys, and of 64 j keys",
    corrected="It must hold for all i with one j_0: then it fails without a bias.",
)
def uniform_in_the_row() -> Finding:
    def worst(bias: str, size: int, kept: int) -> float:
        b = np.exp(encoding(bias).bias(np.arange(size))[0])
        return float(2 * (1 - b[:kept].sum() / b.sum()))

    # one row of 64 keys, then rows of 64 j keys
    fixed = {b: [worst(b, max(64, j), j) for j in (64, 256)] for b in ("-n/2", "0")}
    longer = {b: [worst(b, 64 * j, j) for j in (64, 256)] for b in ("-n/2", "0")}
    tells = [max(rows["-n/2"]) < 0.01 <= max(rows["0"]) for rows in (fixed, longer)]
    return Finding(
        tells[0],
        {"worst delta at j = 64, 256 in a row of 64": fixed, "in rows of 64 j": longer},
        instead=tells[1],
        n=len(fixed),
    )


@claim(
    "lemma0.2",
    "The Conditions",
    place="Lemma 0.2",
    quote="When the following condition is satisfied, Eq. 9 holds",
    says=(
        "If the row sums C_ii converge to a finite limit, window attention approximates "
        "full attention."
    ),
    refuted_by="rows whose sums converge and whose window error does not fall",
    kind=PROOF,
    label="theorem",
    data="rows of up to 512 keys, exact; c_ij = 1 for j = i and for j = 1, else 0",
    corrected=(
        "It holds for c_ij = a_ij b_{i-j} with bounded content logits. In general each row "
        "is a sum of its own, not a partial sum of one series, and its mass may sit at the "
        "far end."
    ),
)
@claim(
    "thm0.3",
    "The Conditions",
    place="Theorem 0.3, Eq. 16",
    quote="When the following condition is satisfied, Eq. 9 holds",
    says=(
        "If the row sums B_ii of b_it converge to a finite limit, window attention "
        "approximates full attention."
    ),
    refuted_by="rows whose sums converge and whose window error does not fall",
    kind=PROOF,
    label="theorem",
    data="rows of up to 512 keys, exact; c_ij = 1 for j = i and for j = 1, else 0",
    corrected="It holds where b_it depends on i - t alone, which is Theorem 0.4.",
)
def rows_that_settle() -> Finding:
    rows = {i: far_key(i) for i in (64, 128, 256, 512)}
    totals = {i: sum(row) for i, row in rows.items()}
    if abs(totals[512] - totals[256]) >= 0.01:
        raise Missing("the totals C_ii do not settle")
    delta = {j: float(2 * outside(rows[512], j)) for j in (2, 8, 64, 256, 511)}
    series = float(2 * outside(squares(512), 256))
    return Finding(
        delta[256] < 0.01,
        {
            "C_ii by i": totals,
            "delta(512, j)/l by j": delta,
            "at j = 256 for b_t = 1/(t+1)^2": series,
        },
        instead=series < 0.01,
        n=len(totals),
    )


@claim(
    "eq11",
    "The Conditions",
    place="Eq. 11",
    quote="Therefore we have",
    says=(
        "Full output minus window output is the outside share times (inside mean minus "
        "outside mean)."
    ),
    refuted_by="a difference of the two sides",
    kind=IDENTITY,
    label="theorem",
    data="both sides in masses and means, by algebra",
    corrected="With outside minus inside; the norm in Eq. 13 is the same.",
)
def outside_less_inside() -> Finding:
    (i, o), (u, w) = sympy.symbols("I O", positive=True), sympy.symbols("u w", real=True)
    full_minus_window, printed = (i * u + o * w) / (i + o) - u, o / (i + o) * (u - w)
    return Finding(
        sympy.cancel(full_minus_window - printed) == 0,
        {"full minus window": sympy.factor(full_minus_window), "as printed": printed},
        instead=sympy.cancel(full_minus_window + printed) == 0,
    )


@claim(
    "eq13",
    "The Conditions",
    place="Eq. 12 and 13",
    quote="We have",
    says="delta(i, j) <= 2 (1 - C_ij/C_ii) l.",
    refuted_by="a row whose change exceeds the bound",
    kind=PROOF,
    label="theorem",
    data="200 random rows, and the theorem window-error",
)
def error_bound(factor: float = 2) -> Finding:
    random, ratios = np.random.default_rng(0), []
    for trial in range(200):
        row = int(random.integers(2, 40))
        kept = int(random.integers(1, row))
        c, v = np.exp(random.normal(size=row)), random.normal(size=(row, 4))
        if trial % 2:  # opposite values inside and outside attain the bound
            v = np.where(np.arange(row) < kept, 1.0, -1.0)[:, None] * v[0]
        v /= np.linalg.norm(v, axis=1, keepdims=True)
        change = c @ v / c.sum() - c[:kept] @ v[:kept] / c[:kept].sum()
        ratios.append(np.linalg.norm(change) / (factor * (1 - c[:kept].sum() / c.sum())))
    return Finding(max(ratios) <= 1 + 1e-9, {"largest delta over bound": max(ratios)}, n=200)


@claim(
    "eq14",
    "The Conditions",
    place="Eq. 14",
    quote="the tail of convergence series is arbitrarily small",
    says="If C_ii converges, C_ii - C_ij < eps for all i >= j > j_0.",
    refuted_by="rows with convergent sums whose far end keeps a share",
    kind=PROOF,
    label="theorem",
    data="rows of up to 512 keys, exact; c_ij = 1 for j = i and for j = 1, else 0",
    corrected="It holds where the rows are the partial sums of one convergent series.",
)
def rest_of_a_row() -> Finding:
    rest = {j: sum(far_key(512)[j:]) for j in (2, 64, 256, 511)}
    series = float(sum(squares(512)[256:]))
    return Finding(
        rest[256] < 0.01,
        {"C_ii - C_ij at i = 512, by j": rest, "at j = 256 for b_t = 1/(t+1)^2": series},
        instead=series < 0.01,
        n=len(rest),
    )


@claim(
    "eq17.equality",
    "The Conditions",
    place="Eq. 17 against Eq. 2 and 7",
    quote="Since we assume ‖q_i‖ ≤ l, ‖k_i‖ ≤ l, then",
    says="a_ij = exp(q_i . k_j) of Eq. 17 is the a_ij of Eq. 7.",
    refuted_by="another exponent in Eq. 7",
    kind=IDENTITY,
    label="theorem",
    data="the exponents of Eq. 2, 7 and 17",
    corrected="a_ij = exp(q_i . k_j / sqrt(d)), which is Eq. 7 and the softmax of Eq. 2",
)
def scaled_logits() -> Finding:
    q, k, d = sympy.symbols("q k d", positive=True)
    eq2, eq7, eq17 = q * k / sympy.sqrt(d), q * k / sympy.sqrt(d), q * k
    return Finding(
        eq7 == eq17,
        {"logit of Eq. 7, of Eq. 17": [eq7, eq17], "d = 4, q . k = 1": "exp(1/2) against exp(1)"},
        instead=eq7 == eq2,
    )


@claim(
    "eq18",
    "The Conditions",
    place="Eq. 18",
    quote="Therefore, Eq. 10 can be derived from Eq. 16",
    says="If B_ii converges, so does C_ii.",
    refuted_by="content logits, within the bound, under which C_ii has no limit",
    kind=PROOF,
    label="theorem",
    data="b_t = 1/(t+1)^2 and content logits 1 and -1 in alternate rows, up to 512 keys",
    corrected="C_ii is bounded, which is enough: the outside share falls for all rows at once.",
)
def alternating_totals() -> Finding:
    # the content logit of row i is (-1)^i: it cancels in the shares of a row
    totals = {i: math.exp((-1) ** i) * float(sum(squares(i))) for i in (255, 256, 511, 512)}
    bound = math.e * float(sum(squares(512)))
    bounded = max(totals.values()) <= bound * (1 + 1e-12)
    return Finding(
        abs(totals[512] - totals[511]) < 0.01,
        {"C_ii by i": totals, "e B_ii": bound},
        instead=bounded and outside(squares(512), 256) < 0.01,
        n=len(totals),
    )


@claim(
    "thm0.4",
    "The Conditions",
    place="Theorem 0.4, Eq. 19",
    quote="By leveraging the property of RPE, Theorem 0.3 can be further simplified as",
    says=(
        "If sum b_t converges, window attention approximates full attention, uniformly in the row."
    ),
    refuted_by="a bias with a convergent series whose worst window error does not fall",
    kind=PROOF,
    label="theorem",
    data="the theorem theorem-0.4, and Type 1 in rows of 40,000 keys",
)
def bounded_logits() -> Finding:
    sums = np.exp(encoding(TYPE1).bias(np.arange(40_000))[0]).cumsum()
    worst = {}
    for j in (10, 100, 1000):
        beyond, inside = sums[[4_000, 39_999]] - sums[j - 1], math.exp(-2) * sums[j - 1]
        worst[j] = float((2 * beyond / (beyond + inside)).max())
    name = "worst delta(i, j)/l, logits within [-1, 1], by j"
    return Finding(
        of_layer(TYPE1) == "converges" and falls(worst.values()) and worst[1000] < 0.05,
        {"proof": theorem("theorem-0.4").hence, "exp-series": of_layer(TYPE1), name: worst},
        n=len(worst),
    )


@claim(
    "principle",
    "The Conditions",
    place="after Theorem 0.4",
    quote=(
        "we can mathematically determine whether an RPE allows for length extrapolation "
        "before conducting experiments"
    ),
    says="The verdict on the exp-series says which trained models keep their perplexity.",
    refuted_by="a model that keeps it with a divergent series, or loses it with a convergent one",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs",
)
def verdict_and_perplexity(tolerance: float) -> Finding:
    tested = unmasked(lambda m: m.verdict in ("converges", "diverges"))
    keeps = {m.name: m.increase < tolerance for m in tested}
    wrong = {m.name: m.increase for m in tested if keeps[m.name] != (m.verdict == "converges")}
    return Finding(
        not wrong,
        {"right": len(tested) - len(wrong), "increase where it is wrong": wrong},
        models=tested,
    )


@claim(
    "satisfies.alibi",
    "The Conditions",
    place="after Theorem 0.4",
    quote="Alibi [...] satisfy our derived conditions for length extrapolation",
    says="The exp-series of ALiBi converges in every head.",
    refuted_by="a head whose series diverges",
    kind=PROOF,
    label="theorem",
    data="1, 8 and 12 heads, and any slope m > 0",
    about="alibi",
)
def alibi_converges() -> Finding:
    verdicts = {heads: of_layer("alibi", heads=heads) for heads in (1, 8, 12)}
    any_slope = of_layer("-m*n")
    return Finding(
        {*verdicts.values(), any_slope} == {"converges"},
        {"by number of heads": verdicts, "any slope m > 0": any_slope},
        n=len(verdicts),
    )


@claim(
    "satisfies.kerple-log",
    "The Conditions",
    place="after Theorem 0.4",
    quote="Kerple [...] satisfy our derived conditions for length extrapolation",
    says="The exp-series of KERPLE in its logarithmic form converges for all r1, r2 > 0.",
    refuted_by="parameters for which it diverges",
    kind=PROOF,
    label="theorem",
    data="the formula with free parameters, and r1 = r2 = 1",
    corrected="It converges exactly if r1 > 1.",
    about="kerple_log",
)
def kerple_converges() -> Finding:
    general = decided("-r1*log(1 + r2*n)")
    at_one = of_layer(encoding("-r1*log(1 + r2*n)", r1=1, r2=1))
    return Finding(
        general.verdict == "converges",
        {
            "condition": str(general.condition),
            "at r1 = r2 = 1": at_one,
            "reference start": "r1 uniform on (0, 2): half of the heads start where it diverges",
        },
        instead=str(general.condition) == "r1 > 1" and at_one == "diverges",
    )


@claim(
    "satisfies.sandwich",
    "The Conditions",
    place="after Theorem 0.4",
    quote="Sandwich [...] satisfy our derived conditions for length extrapolation",
    says="The exp-series of Sandwich converges.",
    refuted_by="nothing but a convergent head",
    kind=PROOF,
    label="theorem",
    data="[C, Eq. 6 and Appendix E] at c = 8; other heads differ by the factor 1/c",
    about="sandwich",
)
def sandwich_converges() -> Finding:
    sums = np.exp(encoding("sandwich", heads=1).bias(np.arange(100_000))).cumsum(1)[-1]
    verdict = of_layer("sandwich", heads=1)
    return Finding(
        verdict == "converges",
        {
            "verdict": verdict,
            "B_j/j at j = 10^4, 10^5": [sums[9_999] / 1e4, sums[-1] / 1e5],
            "every head": "a finite sum of waves is bounded below (theorem trigonometric)",
        },
        because=(
            "Sandwich is a finite sum of cosines, so exp of it stays above a positive number at "
            "every distance, and the sum over all distances is infinite."
        ),
    )


@claim(
    "satisfies.sandwich-smoothed",
    "The Conditions",
    place="after Theorem 0.4",
    quote="Sandwich [...] satisfy our derived conditions for length extrapolation",
    says="The exp-series of Sandwich's printed logarithmic fit converges in every head.",
    refuted_by="a head whose series diverges",
    kind=PROOF,
    label="theorem",
    data="[C, Section 6.2] at c = 8, scaled to the other of 8 heads (our assumption)",
    corrected=(
        "It converges exactly if c < 33/5, in the heads with a compression ratio below 6.6."
    ),
    about="sandwich_smoothed",
)
def smoothed_converges() -> Finding:
    heads = by_head("sandwich_smoothed", heads=8)
    condition = str(decided("-(33/40*log(1+n) + 4/5)*8/c").condition)
    return Finding(
        {*heads} == {"converges"},
        {"verdict by head": heads, "condition": condition},
        instead=condition == "c < 33/5" and "diverges" in heads,
        n=len(heads),
    )


@claim(
    "nemp.gap",
    "Theoretical Receptive Field",
    place="before Eq. 22",
    quote=(
        "represents the minimal sequence length required to maintain the performance "
        "within a gap of ε"
    ),
    says="Keeping n_emp(eps) tokens changes the output by less than eps l.",
    refuted_by="weights and values with a larger change",
    kind=PROOF,
    label="theorem",
    data="weights 2^-t in a row of 40, opposite values, exact",
    corrected="By less than 2 eps l [Eq. 13], and no better in general.",
)
def gap_of_outputs() -> Finding:
    row, eps = [Fraction(1, 2**t) for t in range(40)], Fraction(1, 10)
    kept = next(j for j in range(len(row)) if outside(row, j) < eps)
    change = 2 * outside(row, kept)  # values 1 inside and -1 outside
    return Finding(
        change < eps,
        {"eps": eps, "n_emp(eps)": kept, "change of the output over l": float(change)},
        instead=change < 2 * eps,
        n=1,
    )


@claim(
    "cij-bij",
    "Theoretical Receptive Field",
    place="before Eq. 22",
    quote="C_ij is upper bounded by B_ij",
    says="C_ij is at most B_ij, whatever the content logits.",
    refuted_by="content logits with C_ij above B_ij",
    kind=PROOF,
    label="theorem",
    data="three keys with content logits 1/2",
    corrected=(
        "C_ij <= e^{l^2/sqrt(d)} B_ij; the factor cancels in no ratio of tail to total, so "
        "the TRF bounds the attention ERF only at eps e^{-lambda} (theorem two-sided)"
    ),
)
def content_sum() -> Finding:
    terms, logit = (1.0, 0.25, 0.0625), 0.5
    b, c = sum(terms), sum(t * math.exp(logit) for t in terms)
    bound = b * math.exp(logit)
    return Finding(
        c <= b,
        {"C_ij": c, "B_ij": b, "content logits": logit, "e^logit B_ij": bound},
        instead=c <= bound * (1 + 1e-12),
        n=1,
    )


@claim(
    "thm0.5",
    "Theoretical Receptive Field",
    place="Theorem 0.5",
    quote="If the following conditions hold",
    says="If a_t/A <= b_t/B for all large t, then TRF_a(eps) <= TRF_b(eps) for all small eps.",
    refuted_by="two series with the hypothesis and the other order",
    kind=PROOF,
    label="theorem",
    data="two finite series; ALiBi against Type 1, certified",
    corrected="It needs infinitely many b_t > 0; with finite support compare the supports.",
)
def lighter_series() -> Finding:
    finite = [field_of(x, Fraction(1, 10**6)) for x in ((4, 2, 1, 1), (3, 1))]
    biases = [trf(x, "1e-6") for x in ("-n/4", TYPE1)]
    return Finding(
        finite[0] <= finite[1],
        {
            "TRF at eps = 10^-6 of a = (4, 2, 1, 1), b = (3, 1)": finite,
            "hypothesis": "a_t = b_t = 0 for t >= 4, so it holds there",
            "TRF(10^-6) of -n/4 and -2*log(1+n)": biases,
        },
        instead=biases[0] <= biases[1],
        n=1,
    )


@claim(
    "thm0.5.eps0",
    "Theoretical Receptive Field",
    place="Eq. 26 and 27",
    quote="Let ε < ε_0, where",
    says=(
        "For every t_0 there is an eps_0 whose TRF is t_0, and TRF(eps) > t_0 for all smaller eps."
    ),
    refuted_by="a t_0 that is no TRF, or a smaller eps with the same TRF",
    kind=PROOF,
    label="theorem",
    data="b_t = 2^-t with b_2 = 0, t up to 24, exact",
    corrected="TRF(eps) > t_0 for all eps up to T_{t_0}/B, where infinitely many b_t > 0.",
)
def fields_by_eps() -> Finding:
    terms = [Fraction(int(t != 2), 2**t) for t in range(24)]  # 2^-t without t = 2
    shares = [outside(terms, j) for j in range(len(terms))]
    fields = {field_of(terms, x) for x in shares if 0 < x < 1}
    absent, again = [t for t in range(2, 12) if t not in fields], []
    for t in range(2, 12):
        eps = (shares[t] + shares[t - 1]) / 2
        if field_of(terms, eps) == field_of(terms, (eps + shares[t]) / 2) == t:
            again.append(t)
    return Finding(
        not absent and not again,
        {"t_0 that are no TRF": absent, "t_0 that a smaller eps has too": again},
        instead=all(field_of(terms, shares[t]) > t for t in range(1, 12)),
        n=10,
    )


@claim(
    "thm0.5.last-step",
    "Theoretical Receptive Field",
    place="after Eq. 27",
    quote="According to Eq. 22, we have",
    says="From sum_{t >= j} a_t <= A eps follows TRF_a(eps) <= j.",
    refuted_by="a series with equality, whose TRF is larger",
    kind=PROOF,
    label="theorem",
    data="a_t = 2^-t to t = 60, eps = T_j/A for j = 1 .. 10, exact",
    corrected="It follows from <, which Eq. 22 gives for b; Eq. 27 weakens it to <=.",
)
def fields_at_shares() -> Finding:
    a, js = [Fraction(1, 2**t) for t in range(60)], range(1, 11)
    fields = {j: field_of(a, outside(a, j)) for j in js}
    above = {j: field_of(a, outside(a, j) * Fraction(11, 10)) for j in js}
    return Finding(
        all(f <= j for j, f in fields.items()),
        {"TRF(T_j/A) by j": fields},
        instead=all(f <= j for j, f in above.items()),
        n=len(js),
    )


@claim(
    "thm0.5.smaller-series",
    "Theoretical Receptive Field",
    place="after Theorem 0.5",
    quote="the smaller the series, the smaller the TRF",
    says="A series with smaller terms has the smaller TRF.",
    refuted_by="two series, one below the other, with the other order",
    kind=PROOF,
    label="theorem",
    data="1, 1, 1, 1 and 9, 1, 1, 1 at eps = 1/3",
    corrected=(
        "What counts is the normalised tail T_j/B: it is larger for a at every j, and so "
        "is the TRF."
    ),
)
def smaller_series() -> Finding:
    a, b, eps = (1, 1, 1, 1), (9, 1, 1, 1), Fraction(1, 3)
    fields = [field_of(x, eps) for x in (a, b)]
    larger_tails = all(outside(b, j) <= outside(a, j) for j in range(len(a)))
    return Finding(
        fields[0] <= fields[1],
        {"a (every term at most b's)": a, "b": b, "eps": eps, "TRF_a, TRF_b": fields},
        instead=larger_tails and fields[1] <= fields[0],
        n=1,
    )


@claim(
    "types.zero",
    "Two New RPEs",
    place="Type 1 and Type 2",
    quote="Type1 : b_n = 1/n^2 = exp(-2 ln n)",
    says=(
        "b_n of both types is a finite positive weight at every distance, the query's own "
        "key included."
    ),
    refuted_by="a distance with an infinite weight, or with none",
    kind=NUMBER,
    label="theorem",
    data="both formulas as printed, n = 0, 1, 2",
    corrected="With n + 1 in place of n, as Eq. 29 sums them, they are.",
)
def first_terms() -> Finding:
    at = sympy.Symbol("n", nonnegative=True)
    terms = {"type1": at**-2, "type2": sympy.exp(-(sympy.log(at) ** 2))}
    printed = {k: [sympy.limit(f, at, j, "+") for j in (0, 1, 2)] for k, f in terms.items()}
    shifted = [f.subs(at, j) for f in terms.values() for j in (1, 2, 3)]
    return Finding(
        all(v.is_finite and v.is_positive for row in printed.values() for v in row),
        {"b_0, b_1, b_2 as printed": printed},
        instead=all(v.is_finite and v.is_positive for v in shifted),
        n=len(shifted),
    )


@claim(
    "type1.total",
    "Two New RPEs",
    place="Eq. 29",
    quote="B_ij = Σ 1/(i+1)^2 ≈ ∫ 1/x^2 dx = 1 − 1/j, B = 1",
    says="The Type 1 series has B = 1.",
    refuted_by="a certified total away from 1",
    kind=NUMBER,
    label="certified",
    data="the series from n = 0, in balls",
    corrected="B = pi^2/6; 1 is the integral from 1, which leaves out 0.645 of the sum.",
    about="type1",
)
def total_of_type1() -> Finding:
    total = to_arb(at_precision(series(read(TYPE1)).total, 128))
    with precision(128):
        squared = bool(total.overlaps(arb.pi() ** 2 / 6))
    return Finding(bool(total.overlaps(arb(1))), {"B": total.str(20)}, instead=squared, n=1)


@claim(
    "type1.trf",
    "Two New RPEs",
    place="Eq. 29",
    quote="= inf_j (1 − 1/j > 1 − ε)",
    says="The TRF of Type 1 is the least j with 1 - 1/j > 1 - eps, that is above 1/eps.",
    refuted_by="an eps whose certified TRF is another",
    kind=NUMBER,
    label="certified",
    data="certified TRF at four eps",
    corrected="6/(pi^2 eps), that is 1/(B eps), within one token",
    about="type1",
)
def fields_of_type1() -> Finding:
    fields = {k: trf(TYPE1, f"1/{k}") for k in (10, 100, 1000, 10_000)}
    printed = {k: k + 1 for k in fields}
    return Finding(
        fields == printed,
        {"TRF by 1/eps": fields, "by Eq. 29": printed},
        instead=all(abs(f - 6 / math.pi**2 * k) < 1 for k, f in fields.items()),
        n=len(fields),
    )


@claim(
    "type1.order",
    "Two New RPEs",
    place="Eq. 29",
    quote="= Θ(1/ε)",
    says="The TRF of Type 1 is of the exact order 1/eps.",
    refuted_by="a product eps TRF(eps) that is not bounded on both sides",
    kind=PROOF,
    label="theorem",
    data="certified TRF for eps = 10^-1 .. 10^-12; theorem trf-power",
    about="type1",
)
def order_of_type1() -> Finding:
    order = {k: trf(TYPE1, f"1e-{k}") / 10.0**k for k in (1, 2, 4, 8, 12)}
    return Finding(
        stays(order.values(), 1),
        {"eps TRF(eps) at eps = 10^-k": order, "limit": "6/pi^2 (theorem trf-power)"},
        n=len(order),
    )


@claim(
    "type2-below-type1.small-eps",
    "Two New RPEs",
    place="after Eq. 29",
    quote=(
        "the TRF of Type 2 is smaller than the TRF of Type 1 using Theorem 0.5 and the "
        "inequality below"
    ),
    says="The TRF of Type 2 is at most that of Type 1 for all small eps.",
    refuted_by="normalised tails in the other order far out",
    kind=PROOF,
    label="theorem",
    data="normalised tails from 8 to 199 in balls; biases to 10^15",
    about="type1 type2",
)
def light_tails() -> Finding:
    u, v = (normalised_tails(b) for b in (TYPE2, TYPE1))
    below, above = (encoding(b).bias(10 ** np.arange(1, 16))[0] for b in (TYPE2, TYPE1))
    gap = (below - above).tolist()
    lighter = all(bool(x < y) for x, y in zip(u[8:], v[8:], strict=True))
    return Finding(
        lighter and falls(gap) and gap[14] < -100,
        {"p_2 - p_1 at n = 10, 10^5, 10^15": [gap[k] for k in (0, 4, 14)]},
        n=len(u) - 8,
    )


@claim(
    "figure3",
    "Validating The Sufficiency",
    place="Figure 3",
    quote="All these methods demonstrate good length extrapolation capability",
    says=(
        "ALiBi, KERPLE, Sandwich, Type 1 and Type 2 keep their perplexity up to 16 times "
        "the training length."
    ),
    refuted_by="one of the five whose perplexity rises",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs",
    exhibits="fig3",
    about="alibi kerple_log sandwich type1 type2",
)
def five_encodings(tolerance: float) -> Finding:
    return rise_of(named(*FIVE), lambda r: r < tolerance)


@claim(
    "figure3.sinusoidal",
    "Validating The Sufficiency",
    place="Figure 3",
    quote="which grows rapidly as the inference sequence length increases",
    says=(
        "With sinusoidal positions perplexity more than doubles within 16 times the "
        "training length."
    ),
    refuted_by="an increase below 1",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs",
    exhibits="fig3",
    about="sinusoidal",
)
def sinusoidal_positions() -> Finding:
    return rise_of(named("sinusoidal"), lambda r: r >= EXPLODES)


@claim(
    "figure4.rapidly",
    "Validating The Necessity",
    place="Figure 4",
    quote="the PPLs of both RPEs grow rapidly as the length of the testing sequence increases",
    says="The perplexity of both examples at least doubles within 16 times the training length.",
    refuted_by="an increase below 1",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs",
    corrected="They grow at every doubling of the length, by less than a quarter in all.",
    exhibits="fig4",
)
def rapid_growth() -> Finding:
    tested = named("example1", "example2")
    rise = {m.name: m.increase for m in tested}
    grow = all(rises(m.perplexity().values()) for m in tested)
    return Finding(
        min(rise.values()) >= EXPLODES,
        {"largest increase": rise, "perplexity": {m.name: m.perplexity() for m in tested}},
        instead=grow and max(rise.values()) < 0.25,
        models=tested,
    )


@claim(
    "figure4.cannot",
    "Validating The Necessity",
    place="Figure 4",
    quote="It demonstrates that both of them cannot extrapolate",
    says="The perplexity of both examples rises beyond the tolerance.",
    refuted_by="one of them that keeps its perplexity",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs",
    exhibits="fig4",
)
def examples_cannot(tolerance: float) -> Finding:
    return rise_of(named("example1", "example2"), lambda r: r >= tolerance)


@claim(
    "trf-trend",
    "Validating TRF",
    place="Figures 5 and 6",
    quote="TRF estimates a similar overall trend of ERFs",
    says=(
        "Over all models with a bias the finite-row TRF and the attention ERF are ranked "
        "alike, beyond chance, at each eps."
    ),
    refuted_by="an eps at which chance does as well in one of twenty orders",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs",
    exhibits="fig5 fig6",
)
def ranks_of_fields() -> Finding:
    tested = unmasked(has_fields)
    chance, rank = {}, {}
    for eps in tested[0].field("trf"):
        theory, measured = ([m.field(kind)[eps] for m in tested] for kind in ("trf", "erf"))
        chance[eps], rank[eps] = by_chance(theory, measured), rank_correlation(theory, measured)
    return Finding(
        max(chance.values()) < BY_CHANCE,
        {"Spearman rank correlation by eps": rank, "by chance": chance},
        models=tested,
    )


@claim(
    "figure6.order",
    "Validating TRF",
    place="Figures 5 and 6",
    quote="TRF estimates a similar overall trend of ERFs",
    says="The TRF puts the five encodings in the order of their attention ERF, at each eps.",
    refuted_by="two of the five in the other order",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs",
    exhibits="fig5 fig6",
)
def order_of_fields() -> Finding:
    tested, wrong = named(*FIVE), {}
    for eps in tested[0].field("trf"):
        theory, measured = ({m.name: m.field(k)[eps] for m in tested} for k in ("trf", "erf"))
        wrong[eps] = opposed(theory, measured)
    return Finding(not any(wrong.values()), {"other order, by eps": wrong}, models=tested)


@claim(
    "type2-below-type1.all-eps",
    "Validating TRF",
    place="caption of Figure 6",
    quote="The TRF of Type 1 is larger than Type 2",
    says="The TRF of Type 1 is at least that of Type 2, whatever eps.",
    refuted_by="an eps with the other order",
    kind=NUMBER,
    label="certified",
    data="certified TRF at five eps, tails in balls",
    corrected="For all eps <= 0.2400911227; it fails just above, as at 1/4.",
    exhibits="fig6",
    about="type1 type2",
)
def fields_of_types() -> Finding:
    fields = {e: [trf(b, e) for b in (TYPE2, TYPE1)] for e in ("1/4", "1/5", "1/10", "1/100")}
    tails = zip(*(normalised_tails(b)[:80] for b in (TYPE2, TYPE1)), strict=True)
    crossover = min(float(heavy.mid()) for light, heavy in tails if light > heavy)
    below = [pair for e, pair in fields.items() if Fraction(e) <= crossover]
    return Finding(
        all(light <= heavy for light, heavy in fields.values()),
        {"TRF of Type 2, of Type 1 by eps": fields, "crossover": f"{crossover:.10g}"},
        instead=abs(crossover - 0.2400911227) < 1e-10 and all(x <= y for x, y in below),
        n=len(fields),
    )


@claim(
    "figure7.closer",
    "Visualizing RPE",
    place="Figure 7",
    quote="Type 2 concentrates weights on closer neighboring tokens than Type 1",
    says="For every j the nearest j keys hold a larger share under Type 2 than under Type 1.",
    refuted_by="a j with the other order",
    kind=NUMBER,
    label="certified",
    data="normalised tails, j = 1 .. 199, in balls",
    corrected="From j = 3 on; Type 1 holds more on the nearest one and the nearest two.",
    exhibits="fig7",
    about="type1 type2",
)
def nearest_keys() -> Finding:
    u, v = (normalised_tails(b) for b in (TYPE2, TYPE1))
    other = [j for j in range(1, 200) if not u[j] < v[j]]
    return Finding(
        not other,
        {
            "j with the other order": other,
            "share of the own key (Type 2, Type 1)": [float(1 - x[1].mid()) for x in (u, v)],
        },
        instead=max(other) < 3,
        n=199,
    )


@claim(
    "figure5.types",
    "Visualizing RPE",
    place="Figures 5 and 6",
    quote="indicating a smaller TRF and ERF as shown in Figure 6 and Figure 5",
    says=(
        "The attention ERF of Type 2 is smaller than that of Type 1 in trained models, at each eps."
    ),
    refuted_by="an eps with the other order",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs",
    exhibits="fig5 fig6",
    about="type1 type2",
)
def measured_types() -> Finding:
    tested = named("type1", "type2")
    first, second = (m.field("erf") for m in tested)
    return Finding(
        all(second[eps] < first[eps] for eps in first),
        {"ERF of Type 1": first, "of Type 2": second},
        models=tested,
    )


@claim(
    "trf.without-training",
    "Conclusion",
    quote="we can estimate TRFs of RPEs solely based on their formulations",
    says="The TRF of each of the five encodings compared follows from its formula alone.",
    refuted_by="an encoding with learned parameters on which its TRF depends",
    kind=NUMBER,
    label="certified",
    data="free parameters in the catalogue; two TRF",
    corrected="For all but KERPLE, whose TRF depends on what is learned.",
)
def free_parameters() -> Finding:
    free = {name: [p.name for p in encoding(name).free] for name in FIVE}
    fields = [trf("kerple_log", "1/10", r1=r1, r2=1) for r1 in ("6/5", 2)]
    learned = [name for name in FIVE if free[name]]
    return Finding(
        not learned,
        {"learned parameters": free, "TRF(0.1) of KERPLE at r1 = 6/5 and 2": fields},
        instead=learned == ["kerple_log"] and fields[0] != fields[1],
        n=len(free),
    )


@claim(
    "accurately",
    "Conclusion",
    quote="our TRFs can accurately reflect the actual receptive fields of RPEs before training",
    says=(
        "The finite-row TRF is the attention ERF, within the tolerance, for every trained model."
    ),
    refuted_by="a model whose two fields differ by more",
    kind=EXPERIMENT,
    label="measured",
    data="the reference runs",
    corrected=(
        "Half of the models are within 15 % at every eps; the furthest is off by a factor below 4."
    ),
)
def fields_in_training(tolerance: float) -> Finding:
    tested, off = unmasked(has_fields), {}
    for m in tested:
        theory, measured = m.field("trf"), m.field("erf")
        off[m.name] = max(abs(measured[eps] / theory[eps] - 1) for eps in theory)
    close = sum(v < 0.15 for v in off.values())
    return Finding(
        max(off.values()) < tolerance,
        {"largest |ERF/TRF - 1|": off},
        instead=2 * close > len(off) and max(off.values()) < 3,
        models=tested,
    )
