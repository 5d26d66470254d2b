"""The heads of a model with a bias: how far each sees, and which window is enough for it.

Numbers are those of the theory, on the formula or table that the folder holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy
from sympy import Expr

from farfield.numerics.receptive_field import ReceptiveField, theoretical_receptive_field
from farfield.numerics.windows.question import MAX_LOGIT, Window
from farfield.numerics.windows.window import certified_window
from farfield.theory.answers.answer import Code, Reason, Status
from farfield.theory.answers.notation import shortened
from farfield.theory.convergence import Verdict, check_convergence
from farfield.theory.functions.nodes import Lookup
from farfield.validation.models.layers import ModelOutline
from farfield.validation.models.norms import HeadBounds


@dataclass(frozen=True)
class Head:
    """One head, or the same head of several layers.

    Fields:
        layers: from 1, those that have this bias and these bounds.
        head: from 1.
        bias: the formula, or the table's size and range.
        logit_bound, value_bound: for which the window is certified.
        window: keys that are enough for the error budget; infinite where none are, None where that
            is not known.
        reason: why the window is no number.
        verdict: of the exp-series.
        receptive_fields: TRF at each `eps` of the audit.
    """

    layers: tuple[int, ...]
    head: int
    bias: str
    logit_bound: float
    value_bound: float
    window: float | None
    reason: Reason | None
    verdict: Verdict
    receptive_fields: tuple[ReceptiveField, ...] = ()


def heads_of(
    model: ModelOutline,
    limits: Sequence[tuple[HeadBounds, ...]],
    error: sympy.Rational,
    eps: Sequence[sympy.Rational],
) -> tuple[list[Head], list[Window]]:
    """The heads of every layer with a bias, and their windows in the same order; layers that share
    a bias and its bounds share their entries.

    Args:
        model: what a folder says of its model.
        limits: the bounds of the heads of each layer.
        error: the budget of the windows.
        eps: shares of the receptive fields.
    """
    alike: dict[tuple[int, tuple[HeadBounds, ...]], list[int]] = {}
    for at, (layer, limit) in enumerate(zip(model.layers, limits, strict=True), 1):
        if layer.encoding is not None:
            alike.setdefault((id(layer.encoding), limit), []).append(at)
    heads, windows, theory = [], [], dict[int, tuple[Any, ...]]()
    for (of, limit), layers in alike.items():
        encoding = model.layers[layers[0] - 1].encoding
        assert encoding is not None
        if of not in theory:
            theory[of] = check_convergence(encoding), *theoretical_receptive_field(encoding, eps)
        for h, bound in enumerate(limit, 1):
            bias = encoding.head(h if encoding.num_heads > 1 else 1)
            verdict, *fields = (
                a.heads[(h - 1) % len(a.heads)] if a.heads else a for a in theory[of]
            )
            window = head_window(bias, bound, error)
            windows.append(window)
            row = (tuple(layers), h, bias_text(bias), bound.logit, bound.value)
            heads.append(Head(*row, window.width, window.reason, verdict.verdict, tuple(fields)))
    return heads, windows


def bias_text(bias: sympy.Expr) -> str:
    """A bias in a few characters.

    >>> from farfield.theory.encodings import encoding
    >>> bias_text(encoding("alibi").head(1)), bias_text(encoding(values=[0, -1, -3]).head(1))
    ('-n/2', 'table of 3 values, from -3 to 0')
    >>> bias_text(encoding("alibi", heads=16).head(1))
    '-sqrt(2)*n/2'
    """
    if isinstance(bias, Lookup):
        finite = [float(v) for v in (*bias.args[1].args, bias.args[2]) if v.is_finite]
        return (
            f"table of {len(bias.args[1].args)} values, from {min(finite):.4g} to {max(finite):.4g}"
        )
    text = str(bias)
    if len(text) <= 40:
        return text
    rounded = {x: x.evalf(6) for x in bias.atoms(sympy.Rational) if not x.is_Integer}
    return f"≈ {shortened(str(bias.xreplace(rounded).evalf(6)), 60)}"


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
