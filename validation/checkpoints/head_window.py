"""The certified window of one head of a model, for the bounds of its logits and values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import sympy
from sympy import Expr

from farfield.numerics.windows.certified import certified_window
from farfield.numerics.windows.question import MAX_LOGIT, Window
from farfield.theory.answers.answer import Code, Reason, Status


@dataclass(frozen=True)
class HeadBounds:
    """Bounds of one head: `|logit| <= logit` up to a term common to the row, `||value|| <= value`
    up to a vector common to all."""

    logit: float
    value: float


def head_window(bias: Expr, bound: HeadBounds, error: sympy.Rational) -> Window:
    """The certified window of a head; unknown where its bounds are of no use.

    Args:
        bias: of the head.
        bound: of its logits and values.
        error: the budget of its output.

    >>> import sympy
    >>> from farfield.theory.functions.nodes import n
    >>> head_window(-n / 2, HeadBounds(1.0, 1.0), sympy.Rational(1, 100)).width
    15
    """
    if not (math.isfinite(bound.logit) and math.isfinite(bound.value)):
        reason = Reason(Code.NO_ENCLOSURE, "its bounds are not finite")
    elif bound.logit > MAX_LOGIT:
        reason = Reason(Code.TOO_LARGE, f"the logit bound {bound.logit:.4g} exceeds {MAX_LOGIT}")
    else:
        least = 2.0**-20  # a value that is 0 everywhere is within any positive bound
        logit, value = upwards(bound.logit), upwards(max(bound.value, least))
        return certified_window(bias, error, logit, value)
    nothing = sympy.Integer(0)
    return Window(bias, error, nothing, nothing, status=Status.UNKNOWN, label=None, reason=reason)


def upwards(x: float) -> sympy.Rational:
    """The least multiple of 2^-20 that is not below.

    >>> upwards(0.1) >= sympy.Rational(1, 10), float(upwards(0.1)) < 0.100001
    (True, True)
    """
    return sympy.Rational(math.ceil(sympy.Rational(*x.as_integer_ratio()) * 2**20), 2**20)
