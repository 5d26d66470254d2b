"""What a verdict says: every sentence, fact and table, and the steps of its proof."""

import numpy as np
import pytest

from farfield import check_convergence, encoding
from farfield.theory.windowability import of_series

TABLE = [0, -1, -0.5]
SQUARE = -np.tril(np.subtract.outer(np.arange(8.0), np.arange(8.0)))
SAID = {
    "-log(1+n)": (
        "-log(1+n): the series diverges, like the harmonic series; no fixed window is "
        "enough, the share outside any window tends to 1.  [theorem] | p(n) = −log(n + 1) |"
        " Proof: | 1. As n → ∞, ρ₀ = −p = log(n) + 1/n − 1/(2·n²) + 1/(3·n³) + O(1/n⁴). | "
        "2. Rung 1: ρ₀ / log(n) → 1. | 3. The limit is exactly 1: go on with ρ₁ = ρ₀ − "
        "log(n). | 4. Rung 2: ρ₁ / log(log(n)) → 0. | 5. The limit is below 1: b_n = "
        "exp(−ρ₀) ≥ 1/(n·log(n)^c) for all large n, for some c in (limit, 1); that series "
        "diverges, so Σ b_n diverges. | Hence: the exp-series diverges.",
        "-log(1+n): no fixed window is ever enough: outside it the mass tends to 1 as rows "
        "grow.  [theorem]",
        "theorem: equivalence",
    ),
    "-2*log(1+n)": (
        "-2*log(1+n): the series converges, its terms fall about like 1/n²; a long enough "
        "window matches full attention to any accuracy you ask for.  [theorem] | p(n) = "
        "−2·log(n + 1) | Proof: | 1. As n → ∞, ρ₀ = −p = 2·log(n) + 2/n − 1/n² + 2/(3·n³) +"
        " O(1/n⁴). | 2. Rung 1: ρ₀ / log(n) → 2. | 3. The limit exceeds 1: b_n = exp(−ρ₀) ≤"
        " n^(−c) for all large n, for any c in (1, limit); that series converges, so Σ b_n "
        "converges. | Hence: the exp-series converges.",
        "-2*log(1+n): a long enough window matches full attention to any accuracy you ask "
        "for.  [theorem]",
        "theorem: equivalence",
    ),
    "-n/8": (
        "−n/8: the series converges, its terms fall faster than any power of n; a long "
        "enough window matches full attention to any accuracy you ask for.  [theorem] | "
        "p(n) = −n/8 | Proof: | 1. As n → ∞, ρ₀ = −p = n/8. | 2. Rung 1: ρ₀ / log(n) → ∞. |"
        " 3. The limit exceeds 1: b_n = exp(−ρ₀) ≤ n^(−c) for all large n, for any c in (1,"
        " limit); that series converges, so Σ b_n converges. | Hence: the exp-series "
        "converges.",
        "-n/8: a long enough window matches full attention to any accuracy you ask for.  [theorem]",
        "theorem: equivalence",
    ),
    "-sqrt(log(1+n))": (
        "-sqrt(log(1+n)): the series diverges, its terms do not fall fast enough, more "
        "slowly than any power of n; no fixed window is enough, the share outside any "
        "window tends to 1.  [theorem] | p(n) = −√(log(n + 1)) | Proof: | 1. As n → ∞, ρ₀ ="
        " −p = √(log(n)) + 1/(2·n·√(log(n))) − 1/(4·n²·√(log(n))) − 1/(8·n²·log(n)^(3/2)) +"
        " O(1/(n³·√(log(n)))). | 2. Rung 1: ρ₀ / log(n) → 0. | 3. The limit is below 1: b_n"
        " = exp(−ρ₀) ≥ n^(−c) for all large n, for some c in (limit, 1); that series "
        "diverges, so Σ b_n diverges. | Hence: the exp-series diverges.",
        "-sqrt(log(1+n)): no fixed window is ever enough: outside it the mass tends to 1 as"
        " rows grow.  [theorem]",
        "theorem: equivalence",
    ),
    "0": (
        "0: the series diverges, its terms are all equal; no fixed window is enough, the "
        "share outside any window tends to 1.  [theorem] | p(n) = 0 | Proof: | 1. As n → ∞,"
        " ρ₀ = −p = 0. | 2. Rung 1: ρ₀ / log(n) → 0. | 3. The limit is below 1: b_n = "
        "exp(−ρ₀) ≥ n^(−c) for all large n, for some c in (limit, 1); that series diverges,"
        " so Σ b_n diverges. | Hence: the exp-series diverges.",
        "0: no fixed window is ever enough: outside it the mass tends to 1 as rows grow.  "
        "[theorem]",
        "theorem: equivalence",
    ),
    "n": (
        "n: the series diverges; no fixed window is enough, the share outside any window "
        "tends to 1.  [theorem] | p(n) = n | This bias grows with the distance. If a sign "
        "is lost, write -(n). | Proof: | 1. As n → ∞, ρ₀ = −p = −n. | 2. Rung 1: ρ₀ / "
        "log(n) → −∞. | 3. The limit is below 1: b_n = exp(−ρ₀) ≥ n^(−c) for all large n, "
        "for some c in (limit, 1); that series diverges, so Σ b_n diverges. | Hence: the "
        "exp-series diverges.",
        "n: no fixed window is ever enough: outside it the mass tends to 1 as rows grow.  "
        "[theorem]",
        "theorem: equivalence",
    ),
    "-log(n+3)-2*log(log(n+3))": (
        "-log(n+3)-2*log(log(n+3)): the series converges, its terms fall about like "
        "1/(n·log(n)²); a long enough window matches full attention to any accuracy you ask"
        " for.  [theorem] | p(n) = −log(n + 3) − 2·log(log(n + 3)) | Proof: | 1. As n → ∞, "
        "ρ₀ = −p = log(n) + 2·log(log(n)) + 3/n + 6/(n·log(n)) + O(1/n²). | 2. Rung 1: ρ₀ /"
        " log(n) → 1. | 3. The limit is exactly 1: go on with ρ₁ = ρ₀ − log(n). | 4. Rung "
        "2: ρ₁ / log(log(n)) → 2. | 5. The limit exceeds 1: b_n = exp(−ρ₀) ≤ 1/(n·log(n)^c)"
        " for all large n, for any c in (1, limit); that series converges, so Σ b_n "
        "converges. | Hence: the exp-series converges.",
        "-log(n+3)-2*log(log(n+3)): a long enough window matches full attention to any "
        "accuracy you ask for.  [theorem]",
        "theorem: equivalence",
    ),
    "-log(n+3)-log(log(n+3))-2*log(log(log(n+20)))": (
        "-log(n+3)-log(log(n+3))-2*log(log(log(n+20))): the series converges; a long enough"
        " window matches full attention to any accuracy you ask for.  [theorem] | p(n) = "
        "−log(n + 3) − log(log(n + 3)) − 2·log(log(log(n + 20))) | Proof: | 1. As n → ∞, ρ₀"
        " = −p = log(n) + log(log(n)) + 2·log(log(log(n))) + 3/n + O(1/(n·log(n))). | 2. "
        "Rung 1: ρ₀ / log(n) → 1. | 3. The limit is exactly 1: go on with ρ₁ = ρ₀ − log(n)."
        " | 4. Rung 2: ρ₁ / log(log(n)) → 1. | 5. The limit is exactly 1: go on with ρ₂ = "
        "ρ₁ − log(log(n)). | 6. Rung 3: ρ₂ / log(log(log(n))) → 2. | 7. The limit exceeds "
        "1: b_n = exp(−ρ₀) ≤ 1/(n·log(n)·log(log(n))^c) for all large n, for any c in (1, "
        "limit); that series converges, so Σ b_n converges. | Hence: the exp-series "
        "converges.",
        "-log(n+3)-log(log(n+3))-2*log(log(log(n+20))): a long enough window matches full "
        "attention to any accuracy you ask for.  [theorem]",
        "theorem: equivalence",
    ),
    "-r1*log(1+r2*n)": (
        "-r1*log(1+r2*n): the series converges exactly if r₁ > 1; there a long enough "
        "window is enough, elsewhere none is.  [theorem] | p(n) = −r₁·log(n·r₂ + 1) | "
        "Assumed: r1 positive, r2 positive. | Proof: | 1. Where r₁ > 1: | 2. As n → ∞, ρ₀ ="
        " −p = r₁·log(n) + r₁·log(r₂) + r₁/(n·r₂) − r₁/(2·n²·r₂²) + O(1/n³). | 3. Rung 1: "
        "ρ₀ / log(n) → r₁. | 4. The limit exceeds 1: b_n = exp(−ρ₀) ≤ n^(−c) for all large "
        "n, for any c in (1, limit); that series converges, so Σ b_n converges. | 5. Where "
        "r₁ = 1: | 6. As n → ∞, ρ₀ = −p = log(n) + log(r₂) + 1/(n·r₂) − 1/(2·n²·r₂²) + "
        "O(1/n³). | 7. Rung 1: ρ₀ / log(n) → 1. | 8. The limit is exactly 1: go on with ρ₁ "
        "= ρ₀ − log(n). | 9. Rung 2: ρ₁ / log(log(n)) → 0. | 10. The limit is below 1: b_n "
        "= exp(−ρ₀) ≥ 1/(n·log(n)^c) for all large n, for some c in (limit, 1); that series"
        " diverges, so Σ b_n diverges. | 11. Where r₁ < 1: | 12. As n → ∞, ρ₀ = −p = "
        "r₁·log(n) + r₁·log(r₂) + r₁/(n·r₂) − r₁/(2·n²·r₂²) + O(1/n³). | 13. Rung 1: ρ₀ / "
        "log(n) → r₁. | 14. The limit is below 1: b_n = exp(−ρ₀) ≥ n^(−c) for all large n, "
        "for some c in (limit, 1); that series diverges, so Σ b_n diverges. | Hence: the "
        "exp-series converges exactly if r1 > 1.",
        "-r1*log(1+r2*n): a long enough window is enough exactly if r₁ > 1.  [theorem]",
        "theorem: equivalence",
    ),
    "alibi heads=2": (
        "alibi: the series of all 2 heads converges; a long enough window matches full "
        "attention to any accuracy you ask for.  [theorem] | p(n) = −m·n | head  verdict"
        "    converges if  p(n) | 1  converges                −n/16 | 2  converges"
        "                −n/256 | Proof for head 1: | 1. As n → ∞, ρ₀ = −p = n/16. | 2. "
        "Rung 1: ρ₀ / log(n) → ∞. | 3. The limit exceeds 1: b_n = exp(−ρ₀) ≤ n^(−c) for all"
        " large n, for any c in (1, limit); that series converges, so Σ b_n converges. | "
        "Hence: 2 of 2 heads: converges.",
        "alibi: a long enough window matches full attention to any accuracy you ask for.  "
        "[theorem]",
        "theorem: equivalence",
    ),
    "sandwich_smoothed heads=6": (
        "sandwich_smoothed: the series of 2 of 6 heads diverges; there no fixed window is "
        "enough.  [theorem] | p(n) = (−33·log(n + 1)/5 − 32/5)/c | head  verdict    "
        "converges if  p(n) | 1  converges                −99·log(n + 1)/20 − 24/5 | 2  "
        "converges                −99·log(n + 1)/40 − 12/5 | 3  converges                "
        "−33·log(n + 1)/20 − 8/5 | 4  converges                −99·log(n + 1)/80 − 6/5 | 5"
        "  diverges                 −99·log(n + 1)/100 − 24/25 | 6  diverges"
        "                 −33·log(n + 1)/40 − 4/5 | Proof for head 5: | 1. As n → ∞, ρ₀ = "
        "−p = 99·log(n)/100 + 24/25 + 99/(100·n) − 99/(200·n²) + O(1/n³). | 2. Rung 1: ρ₀ /"
        " log(n) → 99/100. | 3. The limit is below 1: b_n = exp(−ρ₀) ≥ n^(−c) for all large"
        " n, for some c in (limit, 1); that series diverges, so Σ b_n diverges. | Hence: 2 "
        "of 6 heads: diverges.",
        "sandwich_smoothed: no fixed window is ever enough: outside it the mass tends to 1 "
        "as rows grow.  [theorem]",
        "theorem: equivalence",
    ),
    "kerple_log heads=2": (
        "kerple_log: the series of all 2 heads converges under a condition, of the others "
        "always.  [theorem] | p(n) = −r₁·log(n·r₂ + 1) | Assumed: r1 positive, r2 positive."
        " | head  verdict      converges if  p(n) | 1  conditional  r₁ > 1        "
        "−r₁·log(n·r₂ + 1) | 2  conditional  r₁ > 1        −r₁·log(n·r₂ + 1) | Proof for "
        "head 1: | 1. Where r₁ > 1: | 2. As n → ∞, ρ₀ = −p = r₁·log(n) + r₁·log(r₂) + "
        "r₁/(n·r₂) − r₁/(2·n²·r₂²) + O(1/n³). | 3. Rung 1: ρ₀ / log(n) → r₁. | 4. The limit"
        " exceeds 1: b_n = exp(−ρ₀) ≤ n^(−c) for all large n, for any c in (1, limit); that"
        " series converges, so Σ b_n converges. | 5. Where r₁ = 1: | 6. As n → ∞, ρ₀ = −p ="
        " log(n) + log(r₂) + 1/(n·r₂) − 1/(2·n²·r₂²) + O(1/n³). | 7. Rung 1: ρ₀ / log(n) → "
        "1. | 8. The limit is exactly 1: go on with ρ₁ = ρ₀ − log(n). | 9. Rung 2: ρ₁ / "
        "log(log(n)) → 0. | 10. The limit is below 1: b_n = exp(−ρ₀) ≥ 1/(n·log(n)^c) for "
        "all large n, for some c in (limit, 1); that series diverges, so Σ b_n diverges. | "
        "11. Where r₁ < 1: | 12. As n → ∞, ρ₀ = −p = r₁·log(n) + r₁·log(r₂) + r₁/(n·r₂) − "
        "r₁/(2·n²·r₂²) + O(1/n³). | 13. Rung 1: ρ₀ / log(n) → r₁. | 14. The limit is below "
        "1: b_n = exp(−ρ₀) ≥ n^(−c) for all large n, for some c in (limit, 1); that series "
        "diverges, so Σ b_n diverges. | Hence: 2 of 2 heads: conditional.",
        "kerple_log: a long enough window is enough exactly if r₁ > 1.  [theorem]",
        "theorem: equivalence",
    ),
    "rope": (
        "rope: no fixed window is ever enough: its rotations keep every logit bounded, so "
        "outside any window the mass tends to 1 as rows grow, for every input.  [theorem] |"
        " theorem: bounded-logits | where: every logit, position included, lies in [-beta, "
        "beta]: |q|, |k| are bounded, and the rotation keeps norms; the mask is causal and "
        "hides nothing else; value norms are bounded and do not depend on the logits | The "
        "exp-series does not apply: not additive: it rotates queries and keys instead of "
        "adding a bias; its additive surrogate is rope_surrogate.",
        "rope: no fixed window is ever enough: outside it the mass tends to 1 as rows grow."
        "  [theorem]",
        "theorem: bounded-logits",
    ),
    "fox": (
        "fox: a long enough window is enough exactly if the gates stay below one: gamma < "
        "1, gamma their least bound over all inputs.  [theorem] | theorem: gated-decay | "
        "where: every gate is at most gamma, for all inputs; content logits lie in [-beta, "
        "beta]; value norms are bounded and do not depend on the logits | The exp-series "
        "does not apply: content-dependent: the bias depends on the tokens, not on the "
        "distance alone; ALiBi is the constant case.",
        "fox: a long enough window is enough exactly if γ < 1.  [theorem]",
        "theorem: gated-decay",
    ),
    "learned": (
        "learned: no fixed window is ever enough: absolute vectors keep every logit "
        "bounded, so outside any window the mass tends to 1 as rows grow, for every input."
        "  [theorem] | theorem: bounded-logits | where: every logit, position included, "
        "lies in [-beta, beta]: |q|, |k| are bounded, positions included; the mask is "
        "causal and hides nothing else; value norms are bounded and do not depend on the "
        "logits; rows as long as one likes, though they end with the table of positions | "
        "The exp-series does not apply: absolute: added to the embeddings, not a function "
        "of the distance alone.",
        "learned: no fixed window is ever enough: outside it the mass tends to 1 as rows "
        "grow.  [theorem]",
        "theorem: bounded-logits",
    ),
    "cope": (
        "cope: no fixed window is ever enough: interpolated vectors of bounded size keep "
        "every logit bounded, so outside any window the mass tends to 1 as rows grow, for "
        "every input.  [theorem] | theorem: bounded-logits | where: every logit, position "
        "included, lies in [-beta, beta]: content and the position vectors are bounded; the"
        " mask is causal and hides nothing else; value norms are bounded and do not depend "
        "on the logits | The exp-series does not apply: content-dependent: the bias depends"
        " on the tokens, not on the distance alone.",
        "cope: no fixed window is ever enough: outside it the mass tends to 1 as rows grow."
        "  [theorem]",
        "theorem: bounded-logits",
    ),
    "ssmax": (
        "ssmax: no fixed window is ever enough: the scale of the logits grows with the row "
        "and no bias falls, so for some inputs the mass outside any window tends to 1.  "
        "[theorem] | theorem: growing-logits | where: logits are s log(i) x for a row of i "
        "keys, |x| <= beta, s, beta > 0; value norms are bounded and do not depend on the "
        "logits | The exp-series does not apply: not a softmax with bounded logits: the "
        "scale grows with the row length.",
        "ssmax: no fixed window is ever enough: outside it the mass tends to 1 as rows "
        "grow.  [theorem]",
        "theorem: growing-logits",
    ),
    "stick_breaking": (
        "stick_breaking: a long enough window matches full attention to any accuracy you "
        "ask for: nearer keys use up the stick, whatever the bias.  [theorem] | theorem: "
        "stick-breaking | where: logits are at least -beta; value norms are bounded and do "
        "not depend on the logits | The exp-series does not apply: not a softmax with "
        "bounded logits: weights by stick breaking.",
        "stick_breaking: a long enough window matches full attention to any accuracy you "
        "ask for.  [theorem]",
        "theorem: stick-breaking",
    ),
    "t5": (
        "t5: the series diverges, its terms are equal beyond the table; no fixed window is "
        "enough, the share outside any window tends to 1.  [theorem] | p(n) = table[n; 113 "
        "values, then b31] | Assumed: b0 real, b1 real, b2 real, …, b29 real, b30 real, b31"
        " real. | Proof: | 1. Finitely many terms do not matter: for all large n, p = b₃₁. "
        "| 2. As n → ∞, ρ₀ = −p = −b₃₁. | 3. Rung 1: ρ₀ / log(n) → 0. | 4. The limit is "
        "below 1: b_n = exp(−ρ₀) ≥ n^(−c) for all large n, for some c in (limit, 1); that "
        "series diverges, so Σ b_n diverges. | Hence: the exp-series diverges.",
        "t5: no fixed window is ever enough: outside it the mass tends to 1 as rows grow.  "
        "[theorem]",
        "theorem: equivalence",
    ),
    "alibi bca=8": (
        "alibi: the series converges; a long enough window matches full attention to any "
        "accuracy you ask for.  [theorem] | p(n) = −m·n | Proof: | 1. bounded support: each"
        " row sees at most 16 keys | Hence: every window of that width is exact.",
        "alibi: a long enough window matches full attention to any accuracy you ask for.  "
        "[theorem]",
        "theorem: bca-support",
    ),
    "window w=5": (
        "window: the series converges, it is a finite sum; a long enough window matches "
        "full attention to any accuracy you ask for.  [theorem] | p(n) = {0 for n < 5; −∞ "
        "otherwise} | Proof: | 1. For all large n, p = −∞: the terms are 0, the sum is "
        "finite. | Hence: the exp-series converges.",
        "window: a long enough window matches full attention to any accuracy you ask for.  "
        "[theorem]",
        "theorem: equivalence",
    ),
    "where(n<9,0,-1e9)": (
        "where(n<9,0,-1e9): the series diverges, its terms do not fall fast enough, more "
        "slowly than any power of n; no fixed window is enough, the share outside any "
        "window tends to 1.  [theorem] | p(n) = {0 for n < 9; −1000000000 otherwise} | A "
        "number of -10000 or less may stand for minus infinity. With -inf in its place the "
        "bias is Piecewise((0, n < 9), (-oo, True)), and its series converges. | Proof: | "
        "1. Finitely many terms do not matter: for all large n, p = −1000000000. | 2. As n "
        "→ ∞, ρ₀ = −p = 1000000000. | 3. Rung 1: ρ₀ / log(n) → 0. | 4. The limit is below "
        "1: b_n = exp(−ρ₀) ≥ n^(−c) for all large n, for some c in (limit, 1); that series "
        "diverges, so Σ b_n diverges. | Hence: the exp-series diverges.",
        "where(n<9,0,-1e9): no fixed window is ever enough: outside it the mass tends to 1 "
        "as rows grow.  [theorem]",
        "theorem: equivalence",
    ),
    "where(n>=0,-n,0)": (
        "where(n>=0,-n,0): the series converges, its terms fall faster than any power of n;"
        " a long enough window matches full attention to any accuracy you ask for.  "
        "[theorem] | p(n) = {−n for n ≥ 0; 0 otherwise} | This reads keys in the past, n >="
        " 0, alone. Values for n < 0 are no part of a causal bias. | Proof: | 1. Finitely "
        "many terms do not matter: for all large n, p = −n. | 2. As n → ∞, ρ₀ = −p = n. | "
        "3. Rung 1: ρ₀ / log(n) → ∞. | 4. The limit exceeds 1: b_n = exp(−ρ₀) ≤ n^(−c) for "
        "all large n, for any c in (1, limit); that series converges, so Σ b_n converges. |"
        " Hence: the exp-series converges.",
        "where(n>=0,-n,0): a long enough window matches full attention to any accuracy you "
        "ask for.  [theorem]",
        "theorem: equivalence",
    ),
    "exp(-n/64)": (
        "exp(−n/64): the series diverges, its terms do not fall fast enough, more slowly "
        "than any power of n; no fixed window is enough, the share outside any window tends"
        " to 1.  [theorem] | p(n) = exp(−n/64) | p(n) is the bias of a logit. If exp(-n/64)"
        " is the weight itself, write -n/64. | Proof: | 1. As n → ∞, ρ₀ = −p = −exp(−n/64)."
        " | 2. Rung 1: ρ₀ / log(n) → 0. | 3. The limit is below 1: b_n = exp(−ρ₀) ≥ n^(−c) "
        "for all large n, for some c in (limit, 1); that series diverges, so Σ b_n "
        "diverges. | Hence: the exp-series diverges.",
        "exp(-n/64): no fixed window is ever enough: outside it the mass tends to 1 as rows"
        " grow.  [theorem]",
        "theorem: equivalence",
    ),
    "-n/L": (
        "−n/L: the series converges, its terms fall faster than any power of n; a long "
        "enough window matches full attention to any accuracy you ask for.  [theorem] | "
        "p(n) = −n/L | L is read as a constant. If it is the row's length, the bias is "
        "normalised by the row, and no fixed window is ever enough (farfield papers "
        "normalised-bias). | Assumed: L positive. | Proof: | 1. As n → ∞, ρ₀ = −p = n/L. | "
        "2. Rung 1: ρ₀ / log(n) → ∞. | 3. The limit exceeds 1: b_n = exp(−ρ₀) ≤ n^(−c) for "
        "all large n, for any c in (1, limit); that series converges, so Σ b_n converges. |"
        " Hence: the exp-series converges.",
        "-n/L: a long enough window matches full attention to any accuracy you ask for.  [theorem]",
        "theorem: equivalence",
    ),
    "-2*log(n-3)": (
        "-2*log(n-3): undefined or infinite at n = 0 to 3, so no model can use it as it is."
        " Elsewhere the series converges, its terms fall about like 1/n²; a long enough "
        "window matches full attention to any accuracy you ask for.  [theorem] | p(n) = "
        "−2·log(n − 3) | Proof: | 1. As n → ∞, ρ₀ = −p = 2·log(n) − 6/n − 9/n² − 18/n³ + "
        "O(1/n⁴). | 2. Rung 1: ρ₀ / log(n) → 2. | 3. The limit exceeds 1: b_n = exp(−ρ₀) ≤ "
        "n^(−c) for all large n, for any c in (1, limit); that series converges, so Σ b_n "
        "converges. | Hence: the exp-series converges.",
        "-2*log(n-3): a long enough window matches full attention to any accuracy you ask "
        "for.  [theorem]",
        "theorem: equivalence",
    ),
    "-n*log(n-20)": (
        "-n*log(n-20): undefined or infinite at n = 0 to 7 and further distances, so no "
        "model can use it as it is. Elsewhere the series converges, its terms fall faster "
        "than any power of n; a long enough window matches full attention to any accuracy "
        "you ask for.  [theorem] | p(n) = −n·log(n − 20) | Proof: | 1. As n → ∞, ρ₀ = −p = "
        "n·log(n) − 20 − 200/n − 8000/(3·n²) + O(1/n³). | 2. Rung 1: ρ₀ / log(n) → ∞. | 3. "
        "The limit exceeds 1: b_n = exp(−ρ₀) ≤ n^(−c) for all large n, for any c in (1, "
        "limit); that series converges, so Σ b_n converges. | Hence: the exp-series "
        "converges.",
        "-n*log(n-20): a long enough window matches full attention to any accuracy you ask "
        "for.  [theorem]",
        "theorem: equivalence",
    ),
    "-log(1+n)*(1+sin(n))": (
        "-log(1+n)*(1+sin(n)): the series diverges; no fixed window is enough, the share "
        "outside any window tends to 1.  [theorem] | p(n) = −(sin(n) + 1)·log(n + 1) | "
        "Proof: | 1. n is equidistributed modulo 2π, up to a power of n: the mean of exp(−m"
        " (f − inf f)) over a block, m = log(n), inf f = 0, is between multiples of "
        "m^(−1/2), since f is a sinusoid; the series behaves like Σ exp(−(log(log(n))/2 + "
        "O(1))). | 2. As n → ∞, ρ₀ = −p = log(log(n))/2 + O(1). | 3. Rung 1: ρ₀ / log(n) → "
        "0. | 4. The limit is below 1: b_n = exp(−ρ₀) ≥ n^(−c) for all large n, for some c "
        "in (limit, 1); that series diverges, so Σ b_n diverges. | Hence: the exp-series "
        "diverges.",
        "-log(1+n)*(1+sin(n)): no fixed window is ever enough: outside it the mass tends to"
        " 1 as rows grow.  [theorem]",
        "theorem: equivalence",
    ),
    "-2*log(1+n)+sin(n)": (
        "-2*log(1+n)+sin(n): the series converges, its terms fall about like 1/n²; a long "
        "enough window matches full attention to any accuracy you ask for.  [theorem] | "
        "p(n) = −2·log(n + 1) + sin(n) | Proof: | 1. As n → ∞, ρ₀ = −p = 2·log(n) + O(1). |"
        " 2. Rung 1: ρ₀ / log(n) → 2. | 3. The limit exceeds 1: b_n = exp(−ρ₀) ≤ n^(−c) for"
        " all large n, for any c in (1, limit); that series converges, so Σ b_n converges. "
        "| Hence: the exp-series converges.",
        "-2*log(1+n)+sin(n): a long enough window matches full attention to any accuracy "
        "you ask for.  [theorem]",
        "theorem: equivalence",
    ),
    "-(1+Mod(n,2))*log(1+n)": (
        "-(1+Mod(n,2))*log(1+n): the series diverges; no fixed window is enough, the share "
        "outside any window tends to 1.  [theorem] | p(n) = (−(n mod 2) − 1)·log(n + 1) | "
        "Proof: | 1. The series is the sum of its 2 residue classes modulo 2; terms are "
        "positive, so it converges if and only if each of them does. | 2. Residue class n ="
        " 2k + 0, k = 0, 1, 2, …: p = −log(2·n + 1). | 3. As n → ∞, ρ₀ = −p = log(n) + "
        "log(2) + 1/(2·n) − 1/(8·n²) + O(1/n³). | 4. Rung 1: ρ₀ / log(n) → 1. | 5. The "
        "limit is exactly 1: go on with ρ₁ = ρ₀ − log(n). | 6. Rung 2: ρ₁ / log(log(n)) → "
        "0. | 7. The limit is below 1: b_n = exp(−ρ₀) ≥ 1/(n·log(n)^c) for all large n, for"
        " some c in (limit, 1); that series diverges, so Σ b_n diverges. | Hence: the "
        "exp-series diverges.",
        "-(1+Mod(n,2))*log(1+n): no fixed window is ever enough: outside it the mass tends "
        "to 1 as rows grow.  [theorem]",
        "theorem: equivalence",
    ),
    "-n/8 budget_s=0": (
        "−n/8: undecided, the time budget was spent (budget_s, --budget). | p(n) = −n/8 | "
        "What was tried: | 1. Tried an expansion: inconclusive, the time budget was spent "
        "(budget_s, --budget).",
        "-n/8: whether a window is ever enough is not known: the time budget was spent "
        "(budget_s, --budget).",
        "theorem: equivalence",
    ),
    "table tail=constant": (
        "table of 3 values, constant beyond: the series diverges, its terms are equal "
        "beyond the table; no fixed window is enough, the share outside any window tends to"
        " 1.  [theorem] | p(n) = table[n; 3 values, then −1/2] | Proof: | 1. Finitely many "
        "terms do not matter: for all large n, p = −1/2. | 2. As n → ∞, ρ₀ = −p = 1/2. | 3."
        " Rung 1: ρ₀ / log(n) → 0. | 4. The limit is below 1: b_n = exp(−ρ₀) ≥ n^(−c) for "
        "all large n, for some c in (limit, 1); that series diverges, so Σ b_n diverges. | "
        "Hence: the exp-series diverges.",
        "table of 3 values, constant beyond: no fixed window is ever enough: outside it the"
        " mass tends to 1 as rows grow.  [theorem]",
        "theorem: equivalence",
    ),
    "table tail=cut": (
        "table of 3 values, masked beyond: the series converges, it is a finite sum; a long"
        " enough window matches full attention to any accuracy you ask for.  [theorem] | "
        "p(n) = table[n; 3 values, then −oo] | Proof: | 1. For all large n, p = −∞: the "
        "terms are 0, the sum is finite. | Hence: the exp-series converges.",
        "table of 3 values, masked beyond: a long enough window matches full attention to "
        "any accuracy you ask for.  [theorem]",
        "theorem: equivalence",
    ),
    "alibi heads=4": (
        "alibi: the series of all 4 heads converges; a long enough window matches full "
        "attention to any accuracy you ask for.  [theorem] | p(n) = −m·n | head  verdict"
        "    converges if  p(n) | 1  converges                −n/4 | 2  converges"
        "                −n/16 | 3  converges                −n/64 | 4  converges"
        "                −n/256 | Proof for head 1: | 1. As n → ∞, ρ₀ = −p = n/4. | 2. Rung"
        " 1: ρ₀ / log(n) → ∞. | 3. The limit exceeds 1: b_n = exp(−ρ₀) ≤ n^(−c) for all "
        "large n, for any c in (1, limit); that series converges, so Σ b_n converges. | "
        "Hence: 4 of 4 heads: converges.",
        "alibi: a long enough window matches full attention to any accuracy you ask for.  "
        "[theorem]",
        "theorem: equivalence",
    ),
    "square": (
        'the array: undecided, known up to distance 7 and query 7; tail="constant" '
        'diverges, tail="linear" converges. | What was tried: | 1. Tried a table: '
        'inconclusive, known up to distance 7 and query 7; tail="constant" diverges, '
        'tail="linear" converges.',
        "the array: whether a window is ever enough is not known: known up to distance 7 "
        'and query 7; tail="constant" diverges, tail="linear" converges.',
        "theorem: equivalence",
    ),
}


def answer(asked):
    """The verdict on a bias with its options."""
    name, *given = asked.split()
    options = {k: int(v) if v.isdigit() else v for k, v in (one.split("=") for one in given)}
    if name == "square":
        return check_convergence(SQUARE)
    if name == "table":
        return check_convergence(encoding(values=TABLE, **options))
    return check_convergence(name, **options)


@pytest.mark.parametrize("asked", SAID)
def test_a_verdict_says_what_it_holds(asked):
    found = answer(asked)
    lines = found.text(width=1000, details=True).splitlines()
    assert (found.implication in map(str.strip, lines)) == (found.verdict != "out_of_scope")
    said = [line.strip() for line in lines if line.strip() != found.implication]
    window, theorem, *where = map(str.strip, found.windowable.text(width=1000).splitlines())
    assert (" | ".join(said), window, theorem) == SAID[asked]
    assert theorem.endswith(found.windowable.theorem)
    assert where == [f"where: {'; '.join(held)}" for held in (found.windowable.hypotheses,) if held]


def test_a_long_subject_has_its_ends():
    assert of_series(True, "x" * 81).text().startswith(f"{40 * 'x'}…{39 * 'x'}: ")


@pytest.mark.parametrize(
    ("asked", "rows"),
    [
        ("-r1*log(1+r2*n)", ["-r1*log(1+r2*n),−r₁·log(n·r₂ + 1),conditional,r₁ > 1"]),
        ("alibi heads=2", [f'"alibi, head {h}",−n/{16**h},converges,' for h in (1, 2)]),
        ("rope", ["rope,,out of scope,"]),
    ],
)
def test_the_rows_of_a_verdict_are_its_heads(asked, rows):
    assert answer(asked).csv().splitlines() == ["bias,p(n),series,converges if", *rows]
