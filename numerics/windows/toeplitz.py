r"""The certified window: how many keys are provably enough for an error budget.

Keep only the w nearest keys, for logits bounded by `logit_bound` and values by `value_bound`. The
change in the head's output has this supremum over all inputs and row lengths:

    error(w) = 2 value_bound T_w / (T_w + e^{-2 logit_bound} B_w).

It does not increase with w (ours; upper half by [Q, Eq. 11-13]). `certified_window` finds the
least w with error(w) <= eta; no smaller window can be guaranteed. It speaks of one layer in exact
arithmetic, of the norm of the head's output before the output projection.
"""

from __future__ import annotations

import math

import sympy
from flint import arb, fmpq
from sympy import Expr

from farfield.numerics.heads import Diverging, Found, numeric, reason_of, summed, unknown
from farfield.numerics.receptive_field import Exact, theoretical_receptive_field
from farfield.numerics.search import at_precision, decide, doubled, least
from farfield.numerics.summation.series import Series
from farfield.numerics.windows.question import MAX_BITS, WindowQuestion
from farfield.theory.algebra.budget import check_time
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.answers.answer import Code, Label, Reason, Status
from farfield.theory.functions.balls import outward, precision, rational, to_arb
from farfield.theory.proofs import Proof, Step


def error_of(
    bias: Expr, w: int, logit: sympy.Rational, value: sympy.Rational, weight: sympy.Rational
) -> Found:
    """The error of keeping `w` keys, of one bias, with a lower bound of the sinks' weight."""
    s = summed(bias)

    def formula() -> arb:
        tail, total, beta = to_arb(s.tail(w)), to_arb(s.total()), arb(rational(logit))
        kept = (-2 * beta).exp() * (total - tail) + (-beta).exp() * arb(rational(weight))
        return 2 * arb(rational(value)) * tail / (tail + kept)

    most = outward(arb(rational(2 * value)))[1]
    return numeric(to_arb(at_precision(formula, 128)), 0.0, most)


RULE = Step("window", {})
"""The first step of every proof."""


def no_window(step: Step = RULE) -> Found:
    """No window is enough."""
    proof = Proof("there is none", (step,))
    return {"width": math.inf, "proof": proof, "status": Status.INFINITE, "label": Label.THEOREM}


def of_bias(bias: Expr, asked: WindowQuestion) -> Found:
    """The least window of one bias."""
    if asked.error >= 2 * asked.value_bound:
        reason = Reason(Code.TRIVIAL_BUDGET, "every window has an error of at most 2 value_bound")
        return {"width": 1, "proof": Proof("one key is enough", (RULE,)), "reason": reason}
    try:
        width = _least(summed(bias, asked.row), bias, asked)
    except Diverging:
        raise
    except Unreachable as why:
        proof = Proof("it is not known whether there is one", (RULE,))
        return unknown(reason_of(why)) | {"proof": proof}
    steps = [RULE, Step("enough", {"width": width, "budget": asked.error})]
    if width > 1:
        steps.append(Step("least", {"width": width - 1, "budget": asked.error}))
    return {"width": width, "proof": Proof(f"{width} keys are enough, and necessary", tuple(steps))}


def _least(s: Series, bias: Expr, asked: WindowQuestion) -> int:
    """error(w) <= eta iff T_w <= eps B with eps = x/(1 + x), x = eta' e^{-2 beta}: the receptive
    field at a rational near that eps is a guess, settled by ball comparisons."""
    with precision(256):
        eps = asked.share() / (1 + asked.share())
        scale = 200 + max(0, -int(eps.log().mid().floor().unique_fmpz()) * 2)
        grid = (eps * arb(2) ** scale).mid().floor().unique_fmpz()
    near = sympy.Rational(int(grid), 2**scale)
    found = theoretical_receptive_field(bias, near, length=asked.row, exact=True)
    if not isinstance(found.answer, Exact):
        check_time()
        why = found.reason or "the width is not an exact integer in reach"
        raise Unreachable(str(why))
    w = max(1, found.answer.tokens)
    return least(lambda j: _within(s, j, asked), 0, guesses=(w - 1, w, w + 1), first=w)


def _within(s: Series, w: int, asked: WindowQuestion) -> bool:
    """Whether T_w <= eta' e^{-2 beta} B_w, proved either way."""
    tail, total, share = s.tail(w), s.total(), asked.exact_share()
    if share is not None and isinstance(tail, fmpq) and isinstance(total, fmpq):
        return bool(tail <= share * (total - tail))

    def within() -> bool | None:
        tail = to_arb(s.tail(w))
        allowed = asked.share() * (to_arb(s.total()) - tail)
        return True if tail <= allowed else False if tail > allowed else None

    found = decide(within, doubled(128 + 2 * w.bit_length(), MAX_BITS))
    if found is not None:
        return found
    raise Unreachable(f"the error of a window of {w} agrees with {asked.error} to all digits tried")
