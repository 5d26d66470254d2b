r"""Windows where there is no additive bias (ours): bounded logits, gates, stick breaking.

With `eta' = eta/(2 V - eta)`:

* bounded logits: for a row of i keys `j >= i/(1 + eta' e^{-2 beta})` keys are enough and necessary,
  so no number serves all rows; half of the mass lies outside j keys, for every input, as soon as
  `i >= j (1 + e^{2 beta})`;
* logits that grow with the row, `s log(i) x`: the same with `i^{-2 s beta}`;
* gates of at most gamma < 1: the window of ALiBi with slope `log(1/gamma)`;
* stick breaking: `V sigma(beta)^j <= eta`, `j = ceil(log(V/eta)/log(1 + e^{-beta}))`.

`farfield prove NAME` prints the theorems.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import sympy
from flint import arb

from farfield.numerics.heads import Found, unknown
from farfield.numerics.search import decide, doubled
from farfield.numerics.windows.question import MAX_BITS, WindowQuestion
from farfield.numerics.windows.toeplitz import no_window, of_bias
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.answers.answer import Code, InputError, Label, Reason
from farfield.theory.answers.number import inside
from farfield.theory.functions.balls import outward, precision, rational
from farfield.theory.functions.nodes import n
from farfield.theory.mechanisms import MECHANISMS
from farfield.theory.proofs import Proof, Step


def of_mechanism(name: str, asked: WindowQuestion, gate: Any = None) -> Found:
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
        return unknown(rule.reason or Reason(Code.MISSING_BOUND, rule.words))
    if name == "row_scaled" and asked.temper is None:
        asked = replace(asked, temper=sympy.Integer(1))
    if name == "row_dependent" and asked.row is not None and asked.error < 2 * asked.value_bound:
        said = "its function of the distance is learned; row_window_error of a NormalisedBias tells"
        return unknown(Reason(Code.MISSING_BOUND, said))
    return _bounded(asked, rule.theorem, rule.words if name == "row_dependent" else "")


def error_of_mechanism(
    name: str, width: int, logit_bound: sympy.Rational, value_bound: sympy.Rational
) -> Found:
    """The worst error of a window of a mechanism that is no additive bias, over all rows: `2 V`
    where no window is ever enough, `V sigma(beta)^j` for stick breaking; else the bound that is
    missing."""
    rule = MECHANISMS[name]
    if rule.windowable is False:
        worst, reason = float(2 * value_bound), Reason(Code.BOUNDED_LOGITS, rule.words)
        known = {"value": worst, "enclosure": (worst, worst), "label": Label.THEOREM}
        return known | {"reason": reason}
    if name != "stick_breaking":
        return unknown(rule.reason or Reason(Code.MISSING_BOUND, rule.words))
    with precision(128):
        leaves = 1 / (1 + (-arb(rational(logit_bound))).exp())
        ball = arb(rational(value_bound)) * leaves**width
    return {"value": float(ball.mid()), "enclosure": outward(ball)}


def _bounded(asked: WindowQuestion, theorem: str, why: str = "") -> Found:
    """With logits in [-L, L] a row of N keys needs N/(1 + share) of them; as N grows all."""
    step = Step("bounded logits", {"theorem": theorem})
    if asked.error >= 2 * asked.value_bound:
        return {"width": 1, "proof": Proof("one key is enough", (step,))}
    if asked.row is None:
        reason = Reason(Code.BOUNDED_LOGITS, why or half_mass_text(asked.logit_bound))
        return no_window(step) | {"reason": reason}
    row = asked.row
    share = asked.exact_share()
    if share is None:
        width = _ceiling(lambda: arb(row) / (1 + asked.share()))
    else:  # which may be an integer itself
        width = max(1, int((row / (1 + share)).ceil()))
    said = f"{width} keys are enough in a row of {row}, and necessary"
    return {"width": width, "proof": Proof(said, (step,))}


def _gated(asked: WindowQuestion, gate: Any) -> Found:
    """A gate at most gamma < 1 weighs like the bias n log gamma."""
    if gate is None:
        said = "give gate (--gate), the bound gamma of the gates"
        return unknown(Reason(Code.MISSING_BOUND, said))
    gamma = inside(gate, "gate", "(0, 1]")
    if gamma == 1:
        return _bounded(asked, "gated-decay")
    return of_bias(n * sympy.log(gamma), asked)


def _stick(asked: WindowQuestion) -> Found:
    """Each key takes at least a fixed share of the stick: the rest falls geometrically."""
    step = Step("stick breaking", {})
    if asked.error >= asked.value_bound:
        return {"width": 1, "proof": Proof("one key is enough", (step,))}
    ratio = arb(rational(asked.value_bound / asked.error))
    beta = rational(asked.logit_bound)
    if beta:
        width = _ceiling(lambda: ratio.log() / (-arb(beta)).exp().log1p())
    else:  # half of the stick is left by each key
        width = (int(sympy.ceiling(asked.value_bound / asked.error)) - 1).bit_length()
    said = f"{width} keys are enough, and necessary in long rows"
    return {"width": width, "proof": Proof(said, (step,))}


def half_mass_text(logit_bound: sympy.Rational) -> str:
    """From which row length on j keys of bounded logits hold at most half: (1 + e^{2 beta}) j."""
    with precision(64):
        factor = float((1 + (2 * arb(rational(logit_bound))).exp()).mid())
    return (
        f"half of the mass lies outside any j keys, whatever the input, in rows of {factor:.4g} j "
        "keys and more; give row (--row) for the window of one row length"
    )


def _ceiling(value: Callable[[], arb]) -> int:
    """The least integer that is no less than a ball's number, at least 1."""
    found = decide(lambda: value().ceil().unique_fmpz(), doubled(128, MAX_BITS))
    if found is None:
        raise Unreachable("the width agrees with an integer to all digits tried")
    return max(1, int(found))
