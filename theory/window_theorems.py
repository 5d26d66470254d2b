"""Theorems on windows beyond additive biases (ours): every mechanism by the same two lines.

Keep some keys of a row, drop the others: the output moves by the share of the dropped mass,
`O/(O + I)`, times the distance of two means of values, at most 2 V. What differs is how O and I are
bounded. Notation as in `theorems`; `eta' = eta/(2 V - eta)`, i the keys of a row, j those kept.
"""

from __future__ import annotations

from collections.abc import Callable

from sympy import exp

from farfield.theory.proofs import Proof
from farfield.theory.statements import (
    EPS,
    LAM,
    B,
    H,
    I,
    J,
    K,
    L,
    N,
    O,
    Q,
    S,
    T,
    Theorem,
    U,
    V,
    W,
    X,
    Y,
    Z,
    at_most,
    equal,
    says,
    symbol,
    tends,
)

_ETA = EPS / (2 * V - EPS)


def _bounded() -> Theorem:
    steps = (
        says("Every weight e^logit lies between e^-L and e^L: the j keys inside weigh e^L j - y, "
             "the k = i - j outside e^-L k + x, x, y >= 0; I is the weight inside."),
        at_most("So for every input the share outside is at least k/(k + e^{2L} j)",
                (K / (K + exp(2 * L) * J)).subs(J, exp(-L) * (I + Y)),
                (exp(-L) * K + X) / (exp(-L) * K + X + I)),
        tends("With the row it grows to", K / (K + exp(2 * L) * J), 1, K),
        says("In a row of i = j (1 + e^{2L}) keys, where k = j e^{2L}, it is one half."),
        tends("Windows that grow more slowly than the row, i = j (k + 1), fail too",
              J * K / (J * K + exp(2 * L) * J), 1, K),
        says("The worst error of a row is window-error with p = 0 and is a maximum: 2 V k/(k + "
             "e^{-2L} j). It is at most eta if k/j <= eta' e^{-2L}, that is if j >= i/(1 + eta' "
             "e^{-2L}):"),
        equal("at k/j = eta' e^{-2L} it is", 2 * V * _ETA / (_ETA + 1), EPS),
    )
    return Theorem(
        "bounded-logits", "Bounded logits are never windowable", "ours",
        "every logit, position included, lie in [-L, L], nothing be masked but the future, and "
        "values be free of the logits",
        "outside any j keys lies a share of at least (i - j)/(i - j + j e^{2L}) of the mass, for "
        "every input: half of it from i = j (1 + e^{2L}) on, and all of it as i grows",
        Proof("no fixed window is ever enough, nor one that grows more slowly than the row", steps),
    )


def _growing() -> Theorem:
    y = (H + K * Z) / (H + K)
    steps = (
        says("Query scaled: logits s log(i) x + p(n), |x| <= L, so that content logits of row i "
             "lie within s L log i. With k = i^{2 s L}, window-error says that the worst error of "
             "the row is 2 V T/(T + B/k), T and B the sums over the row."),
        tends("As rows grow, with T > 0 for fixed j", T / (T + B / K), 1, K),
        says("So no fixed window is enough, even of ALiBi. For ALiBi, T = (q^j - q^i)/(1 - q), "
             "B = (1 - q^j)/(1 - q): with h = eta', z = q^i the error is at most eta if q^j is "
             "at most y = (h + k z)/(h + k):"),
        equal("there k T = h B", K * (y - Z), H * (1 - y)),
        says("Whole logit scaled: s log(i) (x + p(n)), p -> -oo. Take c > 1/s. Beyond some j, "
             "p(n) < max p - 2L - c: each key there weighs at most i^{-s c} of the best one, which "
             "is kept, all i of them at most i^{1 - s c} <= j^{1 - s c}."),
        tends("With k = j^{s c - 1} the share outside tends to 0, for all rows at once", 1 / K, 0,
              K),
        says("If instead some p(n) >= sup p - 2L + e beyond every j, that key can weigh i^{s e}/j "
             "of all inside: not windowable."),
    )
    return Theorem(
        "growing-logits", "Logits that grow with the row need windows that grow", "ours",
        "a row of i keys have logits s log(i) x + p(n), or s log(i) (x + p(n)), |x| <= L, s, L > 0",
        "in the first case no fixed window is enough unless T_j = 0; in the second one is, for "
        "every p -> -oo, whether its exp-series converges or not, and none is if limsup p > sup p "
        "- 2L",
        Proof("the window must grow with the row, or the bias with the scale", steps),
    )


def _normalised() -> Theorem:
    steps = (
        says("Adding a constant to all biases changes nothing: let 0 <= f <= log s on [0, d]. For "
             "any k, the j + k nearest keys have psi(n)/psi(i) <= d once the row is long enough: "
             "those outside weigh e^-L k + x, x >= 0, the j inside I = e^L s j - y, y >= 0."),
        at_most("So for every input the share outside is at least k/(k + e^{2L} s j)",
                (K / (K + exp(2 * L) * S * J)).subs(J, exp(-L) * (I + Y) / S),
                (exp(-L) * K + X) / (exp(-L) * K + X + I)),
        tends("As k is any number, with the row it grows to", K / (K + exp(2 * L) * S * J), 1, K),
    )
    return Theorem(
        "normalised-bias", "Biases of the normalised distance are never windowable", "ours",
        "a row of i keys have the biases f(psi(n)/psi(i)), psi grow without bound, f be bounded on "
        "some [0, d], content logits lie in [-L, L]",
        "for every input the mass outside any j keys tends to 1 as rows grow",
        Proof("what is normalised comes nearer to 0 than any d: only f near 0 counts", steps),
    )


def _scaled() -> Theorem:
    steps = (
        says("Row i has logits c(i) x + s(i) p(n), |x| <= L; let 0 be the largest p(n), s -> s', "
             "c -> c'. By window-error with c(i) L for L the worst error is 2 V T/(T + e^{-2 c L} "
             "B), and B >= 1 once the maximiser is kept."),
        says("c' finite, 0 < s' finite: if sum e^{t p} converges for a t < s', rows with s(i) >= t "
             "have T <= sum_{n>=j} e^{t p(n)}, which tends to 0: windowable. If it diverges for a "
             "t > s', then T >= sum_{j<=n<i} e^{t p(n)} in all long rows, while B <= j: the error"),
        tends("tends to 2 V times", T / (T + exp(-2 * L) * J), 1, T),
        says("So it does if s' = 0, where T >= (k - j)(1 - h) for any k and h > 0. A constant s is "
             "its own t."),
        says("c' infinite, s' finite, or c/s -> oo: for fixed j, e^{2 c L} T >= e^{2 c L + s p(j)} "
             "=: k grows without bound, and the error"),
        tends("tends to 2 V times", K / (K + J), 1, K),
        says("s' infinite, c <= b s, p -> -oo, q = the least -p(n) from j on, which grows without "
             "bound. If s >= a log(i), a > 0: e^{2 c L} T <= i e^{s (2 b L - q)} <= i^r <= j^r "
             "-> 0, r = 1 - a (q - 2 b L). If sum e^{t p} converges for some t: once q >= 4 b L, "
             "s >= 2 t, e^{2 c L} T <= sum_{n>=j} e^{s p(n)/2} <= sum_{n>=j} e^{t p(n)} -> 0. Both "
             "times windowable."),
    )
    return Theorem(
        "scaled-bias", "Biases scaled by the row", "ours",
        "a row of i keys have logits c(i) x + s(i) p(n), |x| <= L, L > 0, values be free of them, "
        "p be finite and fall without bound, c and s have limits",
        "windowable if c is bounded and s tends to an s' > t with sum e^{t p} convergent, or if s "
        "grows without bound, c within a multiple of it, and s is log(i) or more, up to a factor, "
        "or sum e^{t p} converges for some t; not windowable if c outgrows s, or c is bounded and "
        "s tends to an s' < t with sum e^{t p} divergent, or to 0",
        Proof("the supremum over rows of e^{2 c L} T/B, case by case", steps),
    )


def _gated() -> Theorem:
    ratio = Q**J / (1 - Q**J)
    steps = (
        says("b_n is the product of n gates of at most q < 1, so b_{n+1} <= q b_n: the tail is at "
             "most b_{j-1} (q + q^2 + ...), the inside at least b_{j-1} (1 + 1/q + ... + "
             "q^{-(j-1)})."),
        equal("Their ratio", (Q / (1 - Q)) / ((Q**-J - 1) / (1 / Q - 1)), ratio),
        equal("ALiBi of slope log(1/q) has the same", (Q**J / (1 - Q)) / ((1 - Q**J) / (1 - Q)),
              ratio),
        says("Constant gates approach it as the row grows: by window-error the window is that of "
             "this ALiBi. Gates with supremum 1 may be as near to 1 as a row needs: p near 0, and "
             "bounded-logits applies."),
    )
    return Theorem(
        "gated-decay", "Gated decays are windowable exactly if the gates stay below one", "ours",
        "p_i(n) be the sum of log f over the n latest tokens, 0 < f <= q, content logits within "
        "[-L, L]",
        "T/B <= q^j/(1 - q^j) in every row for q < 1: the window is that of ALiBi with slope "
        "log(1/q); for gates with supremum 1 there is none",
        Proof("windowable exactly if gamma < 1, the least bound of the gates over all inputs",
              steps),
    )


def _stick() -> Theorem:
    one, two = symbol("c"), symbol("d")
    steps = (
        says("Key n takes the share sigma(l_n) of what nearer keys left. With c left before some "
             "keys, of which they leave the part d, they take"),
        equal("together, of one key and the next", (one - one * X) + (one * X - one * X * two),
              one - one * X * two),
        says("Dropping far keys changes no kept weight: the error is at most V times what the keys "
             "from j on take, the product of 1 - sigma(l_n) over n < j, times at most 1."),
        at_most("A key leaves at most sigma(L): with e^l = e^-L + y", 1 / (1 + exp(-L) + Y),
                1 / (1 + exp(-L))),
        tends("So the error is at most V sigma(L)^j; with k = (1 + e^-L)^j", V / K, 0, K),
        says("Attained with logits -L inside and L outside: V sigma(L)^j (1 - sigma(-L)^{i-j})."),
        at_most("With a bias p, sigma(p(n) + x) <= e^{p(n) + x}", Z / (1 + Z), Z),
        says("so far keys take at most e^L T_j, and near keys leave at most the product of "
             "1 - sigma(p(n) - L): if the series diverges this product is 0, if it converges T_j "
             "tends to 0."),
    )
    return Theorem(
        "stick-breaking", "Stick breaking is windowable, for every bias", "ours",
        "weights be those of stick breaking, logits at least -L, values of norm <= V",
        "the worst error is V sigma(L)^j (1 - sigma(-L)^{i-j}); with content in [-L, L] and any "
        "bias p it is at most V min(prod_{n<j} (1 - sigma(p(n) - L)), e^L T_j)",
        Proof("a window of log(V/eta)/log(1 + e^-L) keys is enough", steps),
    )


def _sinks() -> Theorem:
    steps = (
        says("The first keys are kept with their own weight S, whatever their logits. Between "
             "them and the window, O = e^L T - x; inside, I = e^-L B + y, x, y >= 0."),
        at_most("The share dropped is at most", O / (O + exp(-L) * B + Y + S),
                (T / (T + exp(-2 * L) * B + exp(-L) * S)).subs(T, exp(-L) * (O + X))),
        says("Attained as in window-error. For S as small as one likes it is window-error of the "
             "row, so windowable exactly if the series converges, with no bound on the sinks."),
        equal("Dropped, a sink defeats every window: with weights b_{i1} = b_{ii} = 1, all others "
              "0, the row gives (u + w)/2, any window short of it w; they differ by",
              (U + W) / 2 - W, (U - W) / 2),
        says("for all 1 <= j < i, though B_ii = 2 for every i: [Q, Lemma 0.2] needs one series, "
             "whose tail does not depend on the row."),
    )
    return Theorem(
        "kept-sinks", "Kept first keys need no bound", "ours; against [Q, Lemma 0.2] as printed",
        "the first keys of a row be kept besides its j nearest, with any logits, of weight S in "
        "all; the other content logits lie in [-L, L]",
        "the worst error is 2 V T/(T + e^{-2L} B_j + e^-L S), T the sum between them; windowable "
        "exactly if the exp-series converges",
        Proof("kept sinks may have any logits; dropped ones defeat every window", steps),
    )


def _certificate() -> Theorem:
    steps = (
        says("The dropped keys weigh O <= N e^M: N e^M = O + x, x >= 0."),
        at_most("The share dropped is at most N/(N + e^G), e^G = Z e^-M; here M = L",
                O / (O + Z), (N / (N + Z * exp(-L))).subs(N, exp(-L) * (O + X))),
        says("The output moves by that share times ||o_out - o_kept|| <= 2 V (a learned constant "
             "has the value 0, which is within V). Equal keys, values +v kept and -v dropped "
             "attain it where there is no such constant."),
        equal("At N = eta' e^G the bound is", 2 * V * _ETA / (_ETA + 1), EPS),
        says("log Z is the log-sum-exp of the kept logits; M <= ||q|| max ||k|| / sqrt(d) over "
             "the dropped keys, one running number."),
    )
    return Theorem(
        "row-certificate", "A certificate of one row, for any softmax mechanism", "ours",
        "Z be the kept weight of a row (window, sinks, a learned constant), N keys be dropped "
        "whose logits are at most M, G = log Z - M, and values be within V",
        "the output moves by at most 2 V N/(N + e^G): at most eta if N <= eta' e^G",
        Proof("no hypothesis on the encoding: rotations, vectors, gates, biases", steps),
    )


def _leak() -> Theorem:
    near, more, rest = symbol("w"), symbol("d"), symbol("c")
    left = X / ((near + more) * X + near * Y + rest) - Y / ((near + more) * X + near * Y + rest)
    right = Y / ((near + more) * Y + near * X + rest) - X / ((near + more) * Y + near * X + rest)
    below = ((near + more) * X + near * Y + rest) * ((near + more) * Y + near * X + rest)
    steps = (
        says("Let y = e^x of the content, w_n = b_n, r_n = E[y_n / sum w_m y_m], so that the "
             "expected mass at n is w_n r_n and sum w_n r_n = 1. Take n < m, w_n = w_m + d, d >= "
             "0, and exchange x_n and x_m, which leaves their law: E[(y_n - y_m)/sum] is the mean "
             "of two values whose sum, with y_n = x, y_m = y, is"),
        at_most("never positive", left + right, 0, more * (X - Y) ** 2 / below),
        says("So r does not decrease along the row, w does not increase: by Chebyshev's sum "
             "inequality the part from j on has at least its share of the prior mass, "
             "sum_{n>=j} w_n / sum w_n = leak(j, i)."),
        equal("For constant p it is the share of keys: with k = i - j", K / (K + J),
              1 - J / (K + J)),
    )
    return Theorem(
        "average-leak", "On average the leak bounds the outside mass from below", "ours",
        "the content logits of a row be exchangeable, of any size, and p not increase",
        "the expected mass outside j keys is at least leak(j, i), with equality for constant p; "
        "expected outside mass below eps needs j >= TRF_i(eps)",
        Proof("no bound of the logits; the hypothesis is tested by permuting them", steps),
    )


def _mixing() -> Theorem:
    whole = (1 + LAM) * L
    steps = (
        says("|x_h + F_h(x, b(n)) - F_h(0, b(n))| <= |x_h| + lambda max|x| <= (1 + lambda) L: the "
             "logit is that of the bias p(n) = F_h(0, b(n)) with content within (1 + lambda) L."),
        at_most("As in window-error, with O = e^L' T - x, I = e^-L' B + y, L' = (1 + lambda) L",
                O / (O + exp(-whole) * B + Y),
                (T / (T + exp(-2 * whole) * B)).subs(T, exp(-whole) * (O + X))),
        says("From below as in equivalence. Without a Lipschitz bound, or with content that is "
             "not bounded, nothing follows."),
    )
    return Theorem(
        "lipschitz-mixing", "Networks over a bias", "ours",
        "a logit be x_h + F_h(x, b(n)), |x| <= L, F_h lambda-Lipschitz in the logits of the heads",
        "it is windowable exactly if the exp-series of p(n) = F_h(0, b(n)) converges",
        Proof("a bounded change of the logits changes no verdict", steps),
    )


def _support() -> Theorem:
    steps = (
        says("Keys beyond the window have weight 0, so T_j = 0 for j >= w."),
        equal("The error of window-error is then, with T = z - z", 2 * V * (Z - Z) / (Z - Z + B),
              Z - Z),
    )
    return Theorem(
        "window-support", "A sliding window has bounded support", "ours",
        "every row see its w nearest keys and no others",
        "delta(i, j) = 0 for j >= w, for every input and every mechanism",
        Proof("keys beyond the window may be dropped; through depth see layered-reach", steps),
    )


WINDOWS: tuple[Callable[[], Theorem], ...] = (
    _bounded, _growing, _normalised, _scaled, _gated, _stick, _sinks, _certificate, _leak, _mixing,
    _support,
)
"""The theorems of this module, in the order of their use."""
