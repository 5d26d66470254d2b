"""The words of the pages, each explained where it stands."""

from __future__ import annotations

from farfield.figures.document import Terms
from farfield.theory.answers.blocks import Facts
from farfield.theory.answers.notation import words
from farfield.validation.harness.measures.extrapolation import TOLERANCE

PAPERS = words(
    "[Q] Qin et al., Exploring Transformer Extrapolation, AAAI 2024. [S] Sun et al., A "
    "Length-Extrapolatable Transformer, ACL 2023. [C] Chi et al., Dissecting Transformer Length "
    "Extrapolation via the Lens of Receptive Field Analysis, ACL 2023."
)
LABELS = words(
    "theorem: proved for every n; certified: enclosed by rigorous ball arithmetic; approximate: a "
    "model without a bound; forecast: by rules that were judged on trained models; measured: read "
    "off trained models."
)
THEORY: Terms = {
    "verdict": (
        "verdict",
        words(
            "does `sum b_n`, `b_n = exp(p(n))`, converge? [Q, Theorem 0.4] and its converse (ours): "
            "exactly then a fixed window approximates full attention, uniformly over inputs, in one "
            "layer. Not a statement about perplexity."
        ),
    ),
    "trf": (
        "TRF(ε), the theoretical receptive field",
        words(
            "the least number of nearest keys that hold all but a share `eps` of the prior mass, "
            "`min { j >= 0 : T_j < eps*B }`, `T_j` the tail of the series, `B` its sum [Q, Eq. 22]; "
            "that of a row uses the sums of the row. Of several heads the worst."
        ),
    ),
    "leak": (
        "leak",
        words(
            "`1 - B_m/B_n`: the share of the prior mass of a row of `n` tokens that lies beyond the "
            "`m` trained on (ours)."
        ),
    ),
    "reach": (
        "reach",
        words(
            "the farthest key that gets half of the attention when its logit leads the others by an "
            "advantage of so many nats; `log((B - b_n)/b_n)` is the price of distance `n` (ours). Of "
            "several heads the best."
        ),
    ),
    "window": (
        "certified window",
        words(
            "keys that are provably enough for an error of the output, for all inputs within the "
            "bounds of logits and values; no smaller window can be guaranteed (ours)."
        ),
    ),
    "horizon": (
        "dtype horizon",
        words(
            "the distance from which on weights round to 0 in a floating-point type, relative to that "
            "of the query's own key (ours)."
        ),
    ),
    "resolution": (
        "attention resolution",
        words("how much the scores tell neighbours apart, from 0 to 1 [S, Eq. 4]."),
    ),
    "layered": (
        "layered receptive field",
        words(
            "the receptive field of several layers, a quantile of the repeated convolution of the "
            "kernel of one (ours, approximate)."
        ),
    ),
    "forecast": (
        "ratio of perplexity",
        words(
            "the perplexity at the longer length over that at the training length, as a regression on "
            "small models of bytes forecasts it from the formula (ours)."
        ),
    ),
    "label": ("labels", LABELS),
}
MEASURED: Terms = {
    "erf": (
        "attention ERF(ε)",
        words(
            "per query row the least number of nearest keys that hold more than `1 - eps` of the "
            "attention mass; mean over sampled rows, heads, layers [Q, after Eq. 21]."
        ),
    ),
    "gradient": (
        "gradient ERF(0.99)",
        words(
            "the shortest suffix with more than 99 % of the summed norms of the input gradient of the "
            "log-probability of the next token [C, 5.1; the scalar is our choice]."
        ),
    ),
    "last": (
        "last token",
        words(
            "each target predicted from exactly so many tokens, the same targets at every length "
            "[C, 3.4]."
        ),
    ),
    "segments": ("non-overlapping", words("segments of that length, all tokens scored [S].")),
    "bca": (
        "BCA",
        words(
            "blockwise causal attention at inference, blocks of half the training length [S, 3.3]."
        ),
    ),
    "ratio": (
        "ratio",
        words(
            "last-token perplexity at the longest length over that at the training length, paired on "
            "the same targets; a model extrapolates here if it is below {ratio} (Definition 0.1 of "
            "[Q], one-sided).",
            ratio=f"{1 + TOLERANCE:.2f}",
        ),
    ),
}


def definitions(terms: Terms) -> Facts:
    """The terms as a list."""
    return Facts(tuple((words(name), said) for name, said in terms.values()))
