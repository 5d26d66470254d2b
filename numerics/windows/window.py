r"""The certified window (`certified_window`, `window_error`): enough keys, proved, or no number.

Keep only the w nearest keys, for logits bounded by `logit_bound` and values by `value_bound`. The
change in the head's output has this supremum over all inputs and row lengths:

    error(w) = 2 value_bound T_w / (T_w + e^{-2 logit_bound} B_w).

It does not increase with w (ours; upper half by [Q, Eq. 11-13]). `certified_window` finds the
least w with error(w) <= eta; no smaller window can be guaranteed. It speaks of one layer in exact
arithmetic, of the norm of the head's output before the output projection.

Where there is no additive bias, with `eta' = eta/(2 V - eta)` (ours):

* bounded logits: for a row of i keys `j >= i/(1 + eta' e^{-2 beta})` keys are enough and necessary,
  so no number serves all rows; half of the mass lies outside j keys, for every input, as soon as
  `i >= j (1 + e^{2 beta})`;
* logits that grow with the row, `s log(i) x`: the same with `i^{-2 s beta}`;
* gates of at most gamma < 1: the window of ALiBi with slope `log(1/gamma)`;
* stick breaking: `V sigma(beta)^j <= eta`, `j = ceil(log(V/eta)/log(1 + e^{-beta}))`.

`farfield papers NAME` prints the theorems.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import sympy
from flint import arb
from sympy import Expr

from farfield.numerics.questions import (
    BUDGET_S,
    Diverging,
    Fields,
    decisive,
    numeric,
    per_head,
    reason_of,
    resolve,
    row_of,
    summed,
    unknown,
    upper_end,
)
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.search import Exact, at_precision, doubled, least, settled
from farfield.numerics.summation.series import Series
from farfield.numerics.windows.question import (
    MAX_BITS,
    Window,
    WindowError,
    WindowQuestion,
    read_bounds,
)
from farfield.theory.algebra.door import check_time
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.answers.answer import Code, InputError, Label, Reason, Status
from farfield.theory.answers.number import inside, natural
from farfield.theory.functions.balls import Ball, outward, precision, rational, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.mechanisms import MECHANISMS
from farfield.theory.proofs import Proof, Step
from farfield.theory.windowability import beyond

RULE = Step("window", {})
"""The first step of every proof on a bias."""


def certified_window(
    f: object,
    error: object = "1/100",
    logit_bound: object = 1,
    value_bound: object = 1,
    *,
    sinks: object = 0,
    row: object = None,
    temper: object = None,
    gate: object = None,
    budget_s: float = BUDGET_S,
    **values: object,
) -> Window:
    """The least window whose output error is at most `error` for every input (ours).

    Args:
        f: a formula in `n`, a SymPy expression, a name of the catalogue or an `Encoding`.
        error: the budget eta > 0.
        logit_bound: a bound beta of |q.k|/sqrt(d), at least 0; of the whole logit where there is
            no additive bias.
        value_bound: a bound of ||v||, positive.
        sinks: first keys that are also kept, whatever their logits are.
        row: keys of one row, for a window that is enough there; None for every row.
        temper: s, where the content logits of a row of i keys are scaled by `s log i`.
        gate: the bound gamma of the gates of a gated decay.
        budget_s: seconds; whatever is open after them stays unknown.
        **values: parameters and options, as `farfield.theory.encodings.encoding` takes them.

    Raises:
        InputError: an error that is not positive; bounds out of range; free parameters; `temper`
            without `row`; a gated decay without `gate`.

    >>> certified_window("-n/2", "1/100", 1, 1).width
    15
    >>> certified_window("-n/2", "1/100", 1, 1, sinks=4).keys
    19
    >>> certified_window("-log(1+n)", "1/100", 1, 1).width
    inf
    >>> certified_window("rope", "1/10", 1, 1, row=1000).width
    993
    """
    row = row_of(row, "row")
    subject = resolve(f, values, row)
    asked = WindowQuestion.read(error, logit_bound, value_bound, sinks, row, temper)
    if subject.mechanism != "bias" and subject.bca is None:
        if subject.seen is not None:
            window = unknown(beyond(subject.mechanism, subject.seen))
        else:
            window = _of_mechanism(subject.mechanism, asked, gate)
        return replace(asked.blank(), subject=subject.name, **window)
    if gate is not None:
        raise InputError(f"{subject.name} has no gates: gate {gate} belongs to a gated decay")
    return per_head(
        subject,
        asked.blank(),
        lambda bias: _of_bias(bias, asked),
        decisive(lambda head: head.width),
        divergent=_none(RULE),
        in_row=(
            lambda size: certified_window(
                subject, error, logit_bound, value_bound, sinks=sinks, row=size
            )
        )
        if row is None
        else None,
        budget_s=budget_s,
    )


def window_error(
    f: object,
    width: object,
    logit_bound: object,
    value_bound: object,
    *,
    sinks: object = 0,
    sink_weight: object = 0,
    budget_s: float = BUDGET_S,
    **values: object,
) -> WindowError:
    """The worst-case error of keeping the `width` nearest keys, and the first ones (ours).

    Args:
        f: a formula in `n`, a SymPy expression, a name of the catalogue or an `Encoding`.
        width: keys that are kept, the query's own included, at least 1.
        logit_bound: a bound of |q.k|/sqrt(d), at least 0.
        value_bound: a bound of ||v||, positive.
        sinks: first keys that are also kept, at any logits.
        sink_weight: a lower bound S of the sum of exp(logit) over them, at least 0.
        budget_s: seconds; whatever is open after them stays unknown.
        **values: parameters and options, as `farfield.theory.encodings.encoding` takes them.

    Raises:
        InputError: a width that is no natural number; more sinks than that; bounds out of range;
            free parameters.

    >>> round(window_error("-2*log(1+n)", 61, 0, 1).value, 6)
    0.01977
    >>> window_error("rope", 4096, 1, 1).value
    2.0
    >>> round(window_error("-2*log(1+n)", 61, 0, 1, sinks=4, sink_weight=2).value, 6)
    0.008922
    """
    w, first = natural(width, "width"), natural(sinks, "sinks", 0)
    logit, value = read_bounds(logit_bound, value_bound)
    weight = inside(sink_weight, "sink_weight", "[0, oo)")
    if weight and not first:
        raise InputError(f"sink_weight {weight} without sinks; accepted: with sinks")
    if first > w:
        raise InputError(f"sinks {first} are more than the window of {w} keys")
    subject = resolve(f, values)
    asked, worst = WindowError(None, w, sinks=first), float(2 * value)
    whole: Fields = {"value": worst, "enclosure": (worst, worst), "label": Label.THEOREM}
    if subject.mechanism != "bias" and subject.bca is None:
        rule, error = MECHANISMS[subject.mechanism], whole
        if subject.seen is not None:
            error = unknown(beyond(subject.mechanism, subject.seen))
        elif rule.windowable is False:
            error = whole | {"reason": Reason(Code.BOUNDED_LOGITS, rule.words)}
        elif subject.mechanism == "stick_breaking":
            with precision(128):
                leaves = 1 / (1 + (-arb(rational(logit))).exp())
                ball = arb(rational(value)) * leaves**w
            error = {"value": float(ball.mid()), "enclosure": outward(ball)}
        else:
            error = unknown(rule.reason or Reason(Code.MISSING_BOUND, rule.words))
        return replace(asked, subject=subject.name, **error)
    return per_head(
        subject,
        asked,
        lambda bias: _error_of(bias, w, logit, value, weight),
        decisive(upper_end, lambda head: head.label is Label.THEOREM),
        divergent=whole,
        budget_s=budget_s,
    )


# -- additive biases ------------------------------------------------------------------------------


def _error_of(
    bias: Expr, w: int, logit: sympy.Rational, value: sympy.Rational, weight: sympy.Rational
) -> Fields:
    """The error of keeping `w` keys, of one bias, with a lower bound of the sinks' weight."""
    s = summed(bias)

    def formula() -> arb:
        tail, total, beta = to_arb(s.tail(w)), to_arb(s.total()), arb(rational(logit))
        kept = (-2 * beta).exp() * (total - tail) + (-beta).exp() * arb(rational(weight))
        return 2 * arb(rational(value)) * tail / (tail + kept)

    most = outward(arb(rational(2 * value)))[1]
    return numeric(to_arb(at_precision(formula, 128)), 0.0, most)


def _of_bias(bias: Expr, asked: WindowQuestion) -> Fields:
    """The least window of one bias."""
    if asked.error >= 2 * asked.value_bound:
        reason = "every window has an error of at most 2 value_bound"
        return _enough(1, RULE) | {"reason": Reason(Code.TRIVIAL_BUDGET, reason)}
    try:
        width = _least(summed(bias, asked.row), bias, asked)
    except Diverging:
        raise
    except Unreachable as why:
        proof = Proof("it is not known whether there is one", (RULE,))
        return unknown(reason_of(why)) | {"proof": proof}
    steps = [Step("enough", {"width": width, "budget": asked.error})]
    if width > 1:
        steps.append(Step("least", {"width": width - 1, "budget": asked.error}))
    return _enough(width, RULE, *steps, reason=f"{width} keys are enough, and necessary")


def _none(step: Step) -> Fields:
    """No window is enough."""
    proof = Proof("there is none", (step,))
    return {"width": math.inf, "proof": proof, "status": Status.INFINITE, "label": Label.THEOREM}


def _enough(width: int, *steps: Step, reason: str = "one key is enough") -> Fields:
    """A window that is enough, and why."""
    return {"width": width, "proof": Proof(reason, steps)}


def _least(s: Series, bias: Expr, asked: WindowQuestion) -> int:
    """error(w) <= eta iff T_w <= eps B with eps = x/(1 + x), x = eta' e^{-2 beta}: the receptive
    field at a rational near that eps is a guess, settled by ball comparisons."""
    with precision(256):
        share = to_arb(asked.share())
        eps = share / (1 + share)
        scale = 200 + max(0, -int(eps.log().mid().floor().unique_fmpz()) * 2)
        grid = (eps * arb(2) ** scale).mid().floor().unique_fmpz()
    near = sympy.Rational(int(grid), 2**scale)
    field = theoretical_receptive_field(bias, near, length=asked.row, exact=True)
    if not isinstance(field.answer, Exact):
        check_time()
        raise Unreachable(str(field.reason))
    w = field.answer.tokens
    return least(lambda j: _within(s, j, asked), 0, guesses=(w - 1, w, w + 1), first=w)


def _within(s: Series, w: int, asked: WindowQuestion) -> bool:
    """Whether the error of a window is within the budget, proved either way."""

    def within() -> bool | None:
        excess = asked.excess(s.tail(w), s.total())
        return bool(excess <= 1) if excess <= 1 or excess > 1 else None

    why = f"the error of a window of {w} agrees with {asked.error} to all digits tried"
    return settled(within, doubled(128 + 2 * w.bit_length(), MAX_BITS), why)


# -- other mechanisms -----------------------------------------------------------------------------


def _of_mechanism(name: str, asked: WindowQuestion, gate: object = None) -> Fields:
    """The window of a mechanism that is no additive bias.

    Args:
        name: of the mechanism.
        asked: the question.
        gate: the bound gamma of the gates, for a gated decay.
    """
    if gate is not None and name != "gated_decay":
        raise InputError(f"gate {gate} belongs to a gated decay, not to {name}")
    rule = MECHANISMS[name]
    if name == "gated_decay":
        return _gated(asked, gate)
    if name == "stick_breaking":
        return _stick(asked)
    if rule.windowable is None:
        return unknown(rule.reason)
    if name == "row_scaled" and asked.temper is None:
        asked = replace(asked, temper=sympy.Integer(1))
    if name == "row_dependent" and asked.row is not None and asked.error < 2 * asked.value_bound:
        return unknown(Reason(Code.MISSING_BOUND, "its function of the distance is learned"))
    return _bounded(asked, rule.theorem, rule.words if name == "row_dependent" else "")


def _bounded(asked: WindowQuestion, theorem: str, why: str = "") -> Fields:
    """With logits in [-L, L] a row of N keys needs N/(1 + share) of them; as N grows all."""
    step = Step("bounded logits", {"theorem": theorem})
    if asked.error >= 2 * asked.value_bound:
        return _enough(1, step)
    if asked.row is None:
        reason = Reason(Code.BOUNDED_LOGITS, why or _half_mass(asked.logit_bound))
        return _none(step) | {"reason": reason}
    row = asked.row
    width = _ceiling(lambda: row / (1 + asked.share()))
    return _enough(width, step, reason=f"{width} keys are enough in a row of {row}, and necessary")


def _gated(asked: WindowQuestion, gate: object) -> Fields:
    """A gate at most gamma < 1 weighs like the bias n log gamma."""
    if gate is None:
        return unknown(
            Reason(Code.MISSING_BOUND, "give gate (--gate), the bound gamma of the gates")
        )
    gamma = inside(gate, "gate", "(0, 1]")
    if gamma == 1:
        return _bounded(asked, "gated-decay")
    return _of_bias(n * sympy.log(gamma), asked)


def _stick(asked: WindowQuestion) -> Fields:
    """Each key takes at least a fixed share of the stick: the rest falls geometrically."""
    step = Step("stick breaking", {})
    if asked.error >= asked.value_bound:
        return _enough(1, step)
    ratio = arb(rational(asked.value_bound / asked.error))
    beta = rational(asked.logit_bound)
    if beta:
        width = _ceiling(lambda: ratio.log() / (-arb(beta)).exp().log1p())
    else:  # half of the stick is left by each key
        width = (int(sympy.ceiling(asked.value_bound / asked.error)) - 1).bit_length()
    return _enough(width, step, reason=f"{width} keys are enough, and necessary in long rows")


def _half_mass(logit_bound: sympy.Rational) -> str:
    """From which row length on j keys of bounded logits hold at most half: (1 + e^{2 beta}) j."""
    with precision(64):
        factor = float((1 + (2 * arb(rational(logit_bound))).exp()).mid())
    return (
        f"half of the mass lies outside any j keys, whatever the input, in rows of {factor:.4g} j "
        "keys and more; give row (--row) for the window of one row length"
    )


def _ceiling(value: Callable[[], Ball]) -> int:
    """The least integer that is no less than a positive number."""

    def whole() -> Ball | None:
        ceiling = value().ceil()
        return ceiling.unique_fmpz() if isinstance(ceiling, arb) else ceiling

    why = "the width agrees with an integer to all digits tried"
    return int(settled(whole, doubled(128, MAX_BITS), why))
