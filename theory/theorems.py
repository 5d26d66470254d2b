"""The theorems behind the numbers, each as a proof object with steps that a program can re-check.

Sources: [Q] Qin et al. 2024, [S] Sun et al. 2023, [C] Chi et al. 2023; what is marked ours is in
none of them. Those on windows beyond additive biases stand in `window_theorems`.

Notation: `b_t = exp(p(t))`, `B_j` the sum below j, `T_j` the tail from j, L a bound of the content
logits, V of the values; `x_i = e^{s_i}`, `P_i = x_i / sum_{k<=N} x_k`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sympy import Rational, Symbol, cos, exp, log, pi, sin

from farfield.theory.answers.answer import InputError
from farfield.theory.answers.names import nearest
from farfield.theory.proofs import Proof
from farfield.theory.statements import (
    EPS,
    LAM,
    OFFSET,
    PLACE,
    ROW,
    THETA,
    A,
    B,
    H,
    I,
    J,
    K,
    L,
    M,
    O,
    Q,
    R,
    S,
    T,
    Theorem,
    U,
    W,
    X,
    Y,
    Z,
    at_most,
    equal,
    excess,
    product,
    says,
    slope,
    symbol,
    tends,
)
from farfield.theory.window_theorems import WINDOWS


def _window_error() -> Theorem:
    worst = T / (T + exp(-2 * L) * B)
    steps = (
        equal(
            "With u, w the averages of the values inside and outside the window and I, O their "
            "attention masses, full output minus window output is [Q, Eq. 11]",
            (I * U + O * W) / (I + O) - U, O / (I + O) * (W - U),
        ),
        says("u and w are averages of vectors of norm <= V, so ||w - u|| <= 2 V [Q, Eq. 12]."),
        says("O <= e^L T_j and I >= e^-L B_j: e^L T_j = O + x, I = e^-L B_j + y, x, y >= 0."),
        at_most(
            "The share outside is at most its value at x = y = 0",
            O / (O + exp(-L) * B + Y), worst.subs(T, exp(-L) * (O + X)),
        ),
        says(
            "Attained in the limit: logits -L and values +v inside, logits +L and values -v "
            "outside, ||v|| = V; the outside mass of row i is e^L (B_i - B_j) -> e^L T_j."
        ),
        tends("With S = B_i - B_j = T k/(k+1)", worst.subs(T, T * K / (K + 1)), worst, K),
    )
    return Theorem(
        "window-error", "The exact worst-case error of a window", "ours, sharpens [Q, Eq. 13]",
        ROW + ", j >= 1, B_j > 0, and T_j finite",
        "the supremum of delta(i, j) over all rows and inputs is 2 V T_j / (T_j + e^{-2L} B_j)",
        Proof("sup delta(i, j) = 2 V T_j/(T_j + e^{-2L} B_j): one layer, exact arithmetic", steps),
    )


def _theorem_04() -> Theorem:
    steps = (
        says(
            "By window-error, delta(i, j) <= 2 V T_j / (T_j + e^{-2L} B_j) for every row i >= j."
        ),
        at_most("Drop T_j below", T / (T + exp(-2 * L) * B), exp(2 * L) * T / B),
        says("B_j >= b_0 > 0 does not fall, and T_j -> 0 because the series converges."),
        tends("With T_j = T/k, k growing, the bound falls to 0, for all rows at once",
               exp(2 * L) * (T / K) / B, 0, K),
    )
    return Theorem(
        "theorem-0.4", "Convergence suffices", "[Q, Theorem 0.4], for Toeplitz biases",
        ROW + ", and let sum b_t converge with b_0 > 0",
        "for every eps > 0 there is a j_0 with delta(i, j) < eps for all i >= j > j_0",
        Proof("Eq. 9 holds, uniformly in i and in the inputs", steps),
    )


def _equivalence() -> Theorem:
    share = S / (S + exp(2 * L) * B)
    steps = (
        says("If sum b_t converges, the supremum tends to 0: theorem-0.4."),
        says("If it diverges, fix j. With S = B_i - B_j the mass outside is O = e^-L S + x, that "
              "inside I = e^L B_j - y, x, y >= 0, for every input."),
        at_most("So the share outside is at least S/(S + e^{2L} B_j)",
                 share.subs(B, exp(-L) * (I + Y)), (exp(-L) * S + X) / (exp(-L) * S + X + I)),
        tends("S grows without bound with i", share.subs(S, K), 1, K),
        says("With values +v inside and -v outside, ||v|| = V, delta is 2 V times that share and "
              "tends to 2 V > 0; so the supremum over rows is 2 V for every j."),
    )
    return Theorem(
        "equivalence", "Windowable exactly if the series converges", "ours",
        ROW + ", V > 0, L >= 0 fixed, b_0 > 0 and every b_t finite",
        "sup delta(i, j) tends to 0 as j grows if and only if sum b_t converges",
        Proof("uniformly windowable <=> the exp-series converges; a statement about one layer's "
              "outputs, not about perplexity", steps),
    )


def _certified_window() -> Theorem:
    step = Symbol("b", positive=True)
    steps = (
        says("One key more in the window moves b = b_j from the tail to the inside: T = T' + b."),
        at_most(
            "The bound does not grow", T / (T + exp(-2 * L) * (B + step)),
            (T + step) / (T + step + exp(-2 * L) * B),
        ),
        says("So the widths that meet the budget are all widths from the least one on; by "
              "window-error no smaller one can be guaranteed."),
    )
    return Theorem(
        "certified-window", "The least certified window", "ours",
        ROW + ", and an error budget",
        "the widths w with 2 V T_w/(T_w + e^{-2L} B_w) <= budget are w_0, w_0 + 1, ...; each is "
        "enough and none below w_0 is",
        Proof("the least certified width is sharp", steps),
    )


def _theorem_05() -> Theorem:
    steps = (
        says("For j >= t_0, sum a_t/A <= b_t/B over t >= j: T^a_j / A <= T^b_j / B."),
        says("b has infinitely many positive terms, so T^b_j > 0 for every j; for eps <= T^b_j/B "
              "at j = t_0 (where T^b_j >= eps B, as for every j below) TRF_b(eps) > t_0."),
        says("At j = TRF_b(eps), T^b_j < eps B strictly, by [Q, Eq. 22]; so T^a_j/A <= T^b_j/B < "
              "eps, that is T^a_j < eps A, and TRF_a(eps) <= j. (With <= in place of <, as [Q] "
              "prints it, this last step would not follow.)"),
    )
    return Theorem(
        "theorem-0.5", "Lighter terms, smaller receptive field",
        "[Q, Theorem 0.5], with the hypothesis it needs",
        "a_t/A <= b_t/B for all t >= t_0, both series convergent, infinitely many b_t > 0",
        "TRF_a(eps) <= TRF_b(eps) for all small eps > 0",
        Proof("TRF_a(eps) <= TRF_b(eps) for all 0 < eps <= T^b_{t_0}/B", steps),
    )


def _crossover() -> Theorem:
    steps = (
        says("TRF_a(eps) = min{j : u_j < eps}, TRF_b(eps) = min{j : v_j < eps}, u_j and v_j the "
              "normalised tails, non-increasing."),
        says("TRF_a(eps) <= TRF_b(eps) fails exactly if some j has v_j < eps <= u_j."),
        says("By hypothesis only finitely many j have u_j > v_j, so the minimum exists if there "
              "are any. For eps <= eps* none of them has v_j < eps."),
        says("If eps* = v_k < 1, every eps in (v_k, u_k] has v_k < eps <= u_k: the order fails. "
              "If eps* = 1 there is nothing above it."),
    )
    return Theorem(
        "crossover", "Where the order of two receptive fields changes", "ours",
        "u_j = T_j/B of a, v_j of b, both series convergent, u_j <= v_j for all large j, and "
        "eps* = min{v_j : u_j > v_j} (1 if there is none)",
        "TRF_a(eps) <= TRF_b(eps) for all 0 < eps <= eps*, and where eps* < 1 it fails just above",
        Proof("the order holds up to eps* and, where eps* < 1, fails just above", steps),
    )


def _two_sided() -> Theorem:
    low = Symbol("l", real=True)
    steps = (
        says("In the row, b_t e^l <= c_t <= b_t e^{l + lambda}, l the least content logit."),
        equal("Tail over total is at most", product(exp(low + LAM) * T, exp(-low) / B),
               exp(LAM) * T / B),
        says("If T_j < eps e^-lambda B this is below eps: attention ERF(eps) <= TRF(eps "
              "e^-lambda)."),
        equal("and at least", product(exp(low) * T, exp(-low - LAM) / B),
               exp(-LAM) * T / B),
        says("If T_j >= eps e^lambda B this is not below eps: attention ERF(eps) >= TRF(eps "
              "e^lambda)."),
    )
    return Theorem(
        "two-sided", "The attention receptive field between two theoretical ones", "ours",
        "one query row whose content logits span lambda over the keys with b_t > 0; TRF of that "
        "row",
        "TRF(eps e^lambda) <= attention ERF(eps) <= TRF(eps e^-lambda)",
        Proof("it holds for every model, trained or not", steps),
    )


def _jensen() -> Theorem:
    steps = (
        says("The tail of the row is at most e^max T_j. The total is at least B e^mean, mean the "
              "b-weighted mean logit, since exp is convex: a shift of all logits makes mean = 0."),
        at_most(
            "For two keys with b = x, y the logits are then y u and -x u; excess(s) = e^s - 1 - s "
            "is s^2 times the integral of (1 - r) e^{r s} over r from 0 to 1, so not negative",
            X + Y, X * exp(Y * U) + Y * exp(-X * U), X * excess(Y * U) + Y * excess(-X * U),
        ),
        says("With more keys there is one excess a key: sum b_t e^{l_t} = sum b_t (1 + l_t + "
              "excess(l_t)), and sum b_t l_t = 0."),
        says("So tail/total <= e^{max - mean} T_j/B, which is below eps if T_j < eps e^{mean-max} "
              "B."),
    )
    return Theorem(
        "jensen", "A sharper upper bound of the attention receptive field", "ours",
        "one query row with largest content logit max and b-weighted mean logit mean",
        "attention ERF(eps) <= TRF(eps e^{-(max - mean)}) of that row",
        Proof("max - mean <= lambda, so this is at least as sharp as two-sided", steps),
    )


def _trf_line() -> Theorem:
    steps = (
        equal("Geometric tails, q = e^-m", product(exp(-M * J) / (1 - exp(-M)), 1 - exp(-M)),
               exp(-M * J)),
        says("e^{-m j} < eps exactly if j > log(1/eps)/m; the least such integer is the floor "
              "plus 1."),
    )
    return Theorem(
        "trf-alibi", "The receptive field of a linear bias", "ours",
        "p(n) = -m n, m > 0, 0 < eps < 1", "TRF(eps) = floor(log(1/eps)/m) + 1",
        Proof("TRF(eps) = floor(log(1/eps)/m) + 1", steps),
    )


def _trf_power() -> Theorem:
    rho, scale = symbol("rho"), symbol("s")
    tail = J**-rho / rho
    steps = (
        says("Write r = 1 + rho. For every delta in (0, 1) there is an n_0 with (1 - delta) A "
              "n^{-1-rho} <= b_n <= (1 + delta) A n^{-1-rho} for all n >= n_0."),
        at_most("x^{-1-rho} falls", slope(X ** (-1 - rho), X), 0, (1 + rho) * X ** (-2 - rho)),
        says("So t^{-1-rho} lies between its integrals over [t, t+1] and [t-1, t], and its sum "
              "over t >= j between j^{-rho}/rho and j^{-1-rho} + j^{-rho}/rho, by the "
              "antiderivative -x^{-rho}/rho."),
        equal("Indeed", slope(-(X**-rho) / rho, X), X ** (-1 - rho)),
        tends("The ratio of the two bounds tends to 1", (J ** (-1 - rho) + tail) / tail, 1, J),
        says("Hence (1 - delta) A j^{-rho}/rho <= T_j <= (1 + delta)^2 A j^{-rho}/rho for all "
              "large j."),
        equal("At j = s x, x = (rho B eps/A)^{-1/rho}, A j^{-rho}/rho is",
               A * (scale * (rho * B * EPS / A) ** (-1 / rho)) ** (-rho) / rho,
               scale**-rho * EPS * B),
        says("So T_j < eps B as soon as s^{-rho} (1 + delta)^2 < 1, and T_j >= eps B as long as "
              "s^{-rho} (1 - delta) >= 1. As eps -> 0, x grows without bound and TRF(eps)/x ends "
              "between (1 - delta)^{1/rho} and (1 + delta)^{2/rho}, for every delta."),
    )
    return Theorem(
        "trf-power", "The receptive field of a power law", "ours",
        "b_n ~ A n^-r (the ratio tends to 1) with A > 0 and r > 1",
        "TRF(eps) ~ ((r-1) B eps / A)^{-1/(r-1)} as eps -> 0",
        Proof("for the inverse square TRF(eps) ~ 1/(B eps), of the order 1/eps", steps),
    )


def _ladder() -> Theorem:
    second, third = log(X), log(log(X))
    steps = (
        equal("With l_0 = x, the comparison term of rung k with exponent 1 + r is the derivative "
               "of -l_{k-1}^{-r}/r: at rung 1", slope(-(X ** (-R)) / R, X), X ** (-1 - R)),
        equal("at rung 2", slope(-(second ** (-R)) / R, X), 1 / (X * second ** (1 + R))),
        equal("at rung 3", slope(-(third ** (-R)) / R, X),
               1 / (X * second * third ** (1 + R))),
        says("and so on by the chain rule: the derivative of l_k is 1/(x l_1 ... l_{k-1})."),
        tends("The antiderivative stays bounded, here k = l_{k-1}, so the series converges",
               K ** (-R) / R, 0, K**R),
        equal("With exponent 1 - r, 0 < r < 1, the antiderivative is l_k^r/r, at rung 1",
               slope(X**R / R, X), X ** (R - 1)),
        tends("which grows without bound, so the series diverges; its reciprocal",
               R / K**R, 0, K**R),
        says("The terms fall from some n on: series and integral converge or diverge together."),
        says("Rung k finds c = lim rho_{k-1}/l_k. If c > 1, b_n is eventually at most the rung's "
              "comparison term with an exponent in (1, c), which converges; if c < 1, at least the "
              "one with an exponent in (c, 1), which diverges; if c = 1, subtract l_k and go on."),
    )
    return Theorem(
        "ladder", "The decision ladder", "ours, after Bertrand",
        "p be an exp-log function and rho_0 = -p, l_1 = log n, l_{k+1} = log l_k, "
        "rho_k = rho_{k-1} - l_k",
        "the first rung with a limit other than 1 decides: above 1 the exp-series converges, below "
        "it diverges",
        Proof("each rung decides or leaves a strictly lighter remainder", steps),
    )


def _trigonometric() -> Theorem:
    steps = (
        at_most("A wave is at least minus its amplitude", -A, A * cos(U), 2 * A * cos(U / 2) ** 2),
        says(
            "So p is bounded below and the terms b_n = e^p do not tend to 0: the series diverges."
        ),
    )
    return Theorem(
        "trigonometric", "A finite trigonometric sum diverges", "ours",
        "p be a finite sum of waves and a constant (Sandwich of [C, Eq. 6], RoPE's surrogate)",
        "the exp-series diverges", Proof("by the term test", steps),
    )


def _resolution_identity() -> Theorem:
    steps = (
        equal("Term by term", X * (X - Y), (X**2 - Y**2 + (X - Y) ** 2) / 2),
        says("Sum over i = 0 .. N with x = P_i, y = P_{i+1}: the differences of squares telescope "
              "to P_0^2 - P_{N+1}^2."),
    )
    return Theorem(
        "resolution-identity", "The identity of attention resolution", "ours",
        "R be the resolution [S, Eq. 4] of s_0 .. s_{N+1}",
        "2 R = P_0^2 - P_{N+1}^2 + sum_{i<=N} (P_i - P_{i+1})^2",
        Proof("2 R = P_0^2 - P_{N+1}^2 + sum (P_i - P_{i+1})^2", steps),
    )


def _resolution_bound() -> Theorem:
    steps = (
        at_most("Drop P_i P_{i+1} >= 0 from each term", X * (X - Y), X**2),
        says("So R <= sum P_i^2; and P_i <= 1 with sum P_i = 1."),
        at_most("P_i^2 <= P_i; with P_i = x/(1+x)", (X / (1 + X)) ** 2, X / (1 + X)),
        tends("There is no lower bound: s = (0, log k), N = 0, has R = 1 - k, so R/k",
               (1 - K) / K, -1, K),
    )
    return Theorem(
        "resolution-bound", "Bounds of attention resolution", "ours",
        "R be the resolution [S, Eq. 4] of any real s_0 .. s_{N+1}",
        "R <= sum_{i<=N} P_i^2 <= 1, and there is no lower bound in general",
        Proof("R <= sum P_i^2 <= 1", steps),
    )


def _resolution_monotone() -> Theorem:
    steps = (
        says("Lower bound: drop the squares from resolution-identity."),
        at_most("Upper bound: P_i <= P_0 and P_i - P_{i+1} >= 0; with P_0 = x + y + z, P_i = x + "
                 "y, P_{i+1} = x", (X + Y) * Y, (X + Y + Z) * Y),
        says("Sum over i: R <= P_0 sum (P_i - P_{i+1}) = P_0 (P_0 - P_{N+1})."),
    )
    return Theorem(
        "resolution-monotone", "Attention resolution of a non-increasing row", "ours",
        "s_0 >= s_1 >= ... >= s_{N+1}",
        "(P_0^2 - P_{N+1}^2)/2 <= R <= P_0 (P_0 - P_{N+1})",
        Proof("(P_0^2 - P_{N+1}^2)/2 <= R <= P_0 (P_0 - P_{N+1})", steps),
    )


def _resolution_limit() -> Theorem:
    steps = (
        says("If B = sum e^s is finite, the sums of x_i^2 and of x_i x_{i+1} converge too and "
              "P_{N+1} -> 0; pass to the limit in resolution-identity. The first term, x_0^2/B^2, "
              "is positive."),
        says("If B is infinite and x_i <= m: with B_N the sum to N, P_i <= m/B_N and so is "
              "P_{N+1}."),
        at_most("A factor P_i = y/B times another, P = x/B with x <= m = x + z, is at most",
                 X / B * Y / B, (X + Z) / B * Y / B),
        says("Summed, with sum P_i = 1: |R| <= sum P_i^2 + sum P_i P_{i+1} <= 2 m/B_N."),
        tends("which vanishes, k = B_N", 2 * M / K, 0, K),
    )
    return Theorem(
        "resolution-limit", "The limit of attention resolution", "ours; links [S] and [Q]",
        "N grow for a fixed s, bounded above",
        "R -> (P_0^2 + sum (P_i - P_{i+1})^2)/2 > 0 if the exp-series converges, R -> 0 if it "
        "diverges",
        Proof("the limit is positive exactly if the exp-series converges", steps),
    )


def _resolution_line() -> Theorem:
    q = Q / (1 + Q)  # in (0, 1)
    total = (1 - q**K) / (1 - q)
    squares = (1 - q ** (2 * K)) / (1 - q**2)
    steps = (
        says("x_i = q^i, q = e^-m; sum x_i = (1 - q^k)/(1 - q), sum x_i^2 = (1 - q^{2k})/(1 - "
              "q^2), k = N + 1, and x_i - x_{i+1} = (1 - q) x_i."),
        equal("So R is", (1 - q) * squares / total**2,
               (1 - q) ** 2 * (1 + q**K) / ((1 + q) * (1 - q**K))),
        says("As k grows q^k -> 0 and R -> (1 - q)^2/(1 + q)."),
    )
    return Theorem(
        "resolution-alibi", "Attention resolution of a linear bias", "ours",
        "s_n = -m n, q = e^-m",
        "R = (1-q)^2 (1 + q^{N+1}) / ((1+q)(1 - q^{N+1})), with the limit (1-q)^2/(1+q)",
        Proof("the closed form holds for every N", steps),
    )


def _resolution_type1() -> Theorem:
    limit = (pi**4 / 90 - pi**2 / 3 + 3) / (pi**4 / 36)
    steps = (
        equal("Partial fractions", 1 / (X**2 * (X + 1) ** 2),
               1 / X**2 + 1 / (X + 1) ** 2 - 2 / X + 2 / (X + 1)),
        says("Summed over x = 1, 2, ...: sum x_i x_{i+1} = 2 zeta(2) - 1 - 2 = pi^2/3 - 3."),
        says("sum x_i^2 = zeta(4) = pi^4/90 and sum x_i = zeta(2) = pi^2/6."),
        equal("So the limit (Q - C)/B^2 is", (pi**4 / 90 - (pi**2 / 3 - 3)) / (pi**2 / 6) ** 2,
               limit),
        at_most("which is 0.29287188 to its last digit", abs(limit - Rational("0.29287188")),
                 Rational("0.000000005")),
    )
    return Theorem(
        "resolution-type1", "Attention resolution of the inverse square", "ours",
        "s_n = -2 log(1 + n)", "R -> (pi^4/90 - pi^2/3 + 3)/(pi^4/36) = 0.29287188",
        Proof("R -> 0.29287188", steps),
    )


def _resolution_window() -> Theorem:
    steps = (
        says("x_i = 1 for i < w, else 0: every difference vanishes but the last one inside."),
        says("For N >= w - 1 it is summed: R = 1 (1 - 0)/w^2."),
        says("For N <= w - 2 that difference is not summed, and R = 0."),
    )
    return Theorem(
        "resolution-window", "Attention resolution of a window", "ours",
        "s_n = 0 for n < w and -oo from w on", "R = 1/w^2 for N >= w - 1, and 0 for N <= w - 2",
        Proof("R = 1/w^2 once the row is longer than the window", steps),
    )


def _rotation_decay() -> Theorem:
    far = THETA * (PLACE + OFFSET)
    near = THETA * PLACE
    steps = (
        equal("Diagonal of Rot((n+r) theta)^T Rot(n theta)",
               cos(far) * cos(near) + sin(far) * sin(near), cos(THETA * OFFSET)),
        equal("Off the diagonal", sin(far) * cos(near) - cos(far) * sin(near),
               sin(THETA * OFFSET)),
        equal("The decay cancels up to the offset", product(Z ** (PLACE + OFFSET), Z ** (-PLACE)),
               Z**OFFSET),
        says("So f_q(q, n+r)^T f_k(k, n) = zeta^r q^T Rot(-r theta) k, free of n; at n = 0 it is "
              "the right side of [S, Eq. 6]. zeta = 1 is RoPE."),
    )
    return Theorem(
        "rotation-decay", "xPos depends on the offset alone", "[S, Eq. 6]",
        "f_q multiply a pair of coordinates by zeta^n Rot(n theta), f_k by zeta^-n Rot(n theta)",
        "<f_q(q, n+r), f_k(k, n)> = <f_q(q, r), f_k(k, 0)> for all n, r, q, k",
        Proof("[S, Eq. 6] holds for rotations with decay", steps),
    )


def _rotation_divergence() -> Theorem:
    steps = (
        says("A rotation keeps norms and zeta <= 1 does not raise them, so every logit stays "
              "within [-L, L] at every distance; there is no bias, p = 0."),
        at_most("j keys inside weigh at most e^L each, in all e^L j - y, the k = i - j outside at "
                 "least e^-L, in all e^-L k + x; with I the weight inside, the share outside is at "
                 "least k/(k + e^{2L} j)", (K / (K + exp(2 * L) * J)).subs(J, exp(-L) * (I + Y)),
                 (exp(-L) * K + X) / (exp(-L) * K + X + I)),
        tends("With the row it grows to", K / (K + exp(2 * L) * J), 1, K),
    )
    return Theorem(
        "rotation-divergence", "RoPE and xPos are not windowable by themselves", "ours",
        "logits be those of a rotation with decay zeta <= 1 of queries and keys, |logit| <= L",
        "for every input the attention mass outside a fixed window tends to 1 as the row grows",
        Proof("without a mask the divergent half of equivalence applies with p = 0", steps),
    )


def _surrogate() -> Theorem:
    fade = 1 / (1 + Z)
    steps = (
        at_most("Each wave is bounded below: with zeta^{n/base} = 1/(1 + z) in (0, 1]", -1,
                 cos(U) * fade, fade * Z + 2 * fade * cos(U / 2) ** 2),
        says("There are d/2 of them (d/2 + 1 as printed), so a g[n] >= -a (d/2 + 1)."),
        says("So b_n >= e^{-a (d/2 + 1)} > 0: the terms do not tend to 0."),
    )
    return Theorem(
        "surrogate-diverges", "The surrogate bias of RoPE and xPos diverges", "ours",
        "g[n] = sum_i cos(n theta_i) zeta_i^{n/base} [S, Eq. 10], every zeta_i in (0, 1], a > 0",
        "the exp-series of a g diverges, with decay or without",
        Proof("by the term test; BCA or a window makes the support finite", steps),
    )


def _bca() -> Theorem:
    block, inside, half = symbol("c"), symbol("d"), symbol("half")
    steps = (
        says("Write i = half c + d with 0 <= d < half. Key j is visible if floor(j/half) >= c - "
              "1, so from j = half (c - 1) on."),
        equal("The row sees i - j + 1 keys from there",
               (half * block + inside) - half * (block - 1) + 1, half + inside + 1),
        at_most("which is at most 2 half, as d <= half - 1; with half = h + d + 1",
                 (H + inside + 1) + inside + 1, 2 * (H + inside + 1)),
        says("So T_j = 0 for j >= 2 half: the window of 2 half tokens is exact for every row."),
    )
    return Theorem(
        "bca-support", "Blockwise causal attention has bounded support", "ours, of [S, 3.3]",
        "key j be visible to query i if j <= i and floor(j/half) >= floor(i/half) - 1",
        "a row beyond the first block sees half + 1 to 2 half keys, and delta(i, j) = 0 for j >= 2 "
        "half",
        Proof("every row has its support within 2 half keys; not by [Q, Theorem 0.4]", steps),
    )


def _reach() -> Theorem:
    steps = (
        says("One layer reaches w - 1 keys back. Layer r of R reads outputs that each reached (w "
              "- 1) keys further back."),
        equal("With k layers reaching k (w - 1) + 1 tokens, one more reaches",
               K * (J - 1) + 1 + (J - 1), (K + 1) * (J - 1) + 1),
    )
    return Theorem(
        "layered-reach", "How far a stack of windows reaches", "ours; [C, 5] prints w R",
        "R layers attend in windows of w tokens, the query's own included",
        "the output depends on R (w - 1) + 1 input tokens and on no more",
        Proof("the exact reach is R (w - 1) + 1, below w R for R > 1", steps),
    )


_MAKERS: tuple[Callable[[], Theorem], ...] = (
    _window_error, _theorem_04, _equivalence, _certified_window, _ladder, _trigonometric,
    _theorem_05, _crossover, _two_sided, _jensen, _trf_line, _trf_power, _reach,
    _resolution_identity, _resolution_bound, _resolution_monotone, _resolution_limit,
    _resolution_line, _resolution_window, _resolution_type1, _rotation_decay,
    _rotation_divergence, _surrogate, _bca, *WINDOWS,
)


def theorems() -> Mapping[str, Theorem]:
    """All theorems by name, in the order of their use.

    >>> list(theorems())[:3]
    ['window-error', 'theorem-0.4', 'equivalence']
    """
    return {t.name: t for t in (make() for make in _MAKERS)}


def theorem(name: str) -> Theorem:
    """A theorem by name.

    Raises:
        InputError: unknown names, with the nearest known one.

    >>> theorem("resolution-bound").statement
    'R <= sum_{i<=N} P_i^2 <= 1, and there is no lower bound in general'
    """
    known = theorems()
    if name in known:
        return known[name]
    close = nearest(str(name), known, 0.5)
    hint = f"did you mean {close!r}?" if close else f"known: {', '.join(known)}"
    raise InputError(f"no theorem {str(name)[:40]!r}; {hint}")
