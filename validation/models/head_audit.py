"""The heads of a model with a bias: how far each sees, and which window is enough for it.

Numbers are those of the theory, on the formula or table that the folder holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import sympy

from farfield.numerics.receptive_field import ReceptiveField, theoretical_receptive_field
from farfield.numerics.windows.question import Window
from farfield.numerics.windows.window import certified_window
from farfield.theory.answers.answer import Label, Reason, Status
from farfield.theory.answers.notation import shortened
from farfield.theory.convergence import Verdict, check_convergence
from farfield.theory.functions.nodes import Lookup
from farfield.validation.models.outline import ModelOutline, alike


@dataclass(frozen=True)
class Head:
    """One head, or the same head of several layers.

    Fields:
        layers: from 1, those that have this bias and these bounds.
        head: from 1.
        bias: the formula, or the table's size and range.
        logit_bound, value_bound: for which the window is certified.
        window: keys that are enough for the error budget, at most those that the layer sees;
            infinite where none are, None where that is not known.
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
    logit: sympy.Rational,
    value: sympy.Rational,
    error: sympy.Rational,
    eps: Sequence[sympy.Rational],
) -> tuple[list[Head], list[Window]]:
    """The heads of every layer with a bias, and their windows in the same order; layers that share
    a bias share their entries.

    Args:
        model: what a folder says of its model.
        logit: bound of the logits of every head.
        value: bound of its values.
        error: the budget of the windows.
        eps: shares of the receptive fields.
    """
    heads, windows = [], []
    for layers in alike(model.layers, lambda layer: (id(layer.encoding), layer.width)).values():
        layer = model.layers[layers[0] - 1]
        if (encoding := layer.encoding) is None:
            continue
        theory: list[Any] = [check_convergence(encoding)]
        theory += theoretical_receptive_field(encoding, eps)
        for h in range(1, layer.heads + 1):
            bias = encoding.head(h if encoding.num_heads > 1 else 1)
            verdict, *fields = (a.heads[(h - 1) % len(a.heads)] if a.heads else a for a in theory)
            window = certified_window(bias, error, logit, value)
            if layer.width is not None and not (window.width or math.inf) <= layer.width:
                window = replace(
                    window,
                    width=layer.width,
                    status=Status.EXACT,
                    label=Label.THEOREM,
                    reason=None,
                )
            windows.append(window)
            heads.append(
                Head(
                    layers=tuple(layers),
                    head=h,
                    bias=bias_text(bias),
                    logit_bound=float(logit),
                    value_bound=float(value),
                    window=window.width,
                    reason=window.reason,
                    verdict=verdict.verdict,
                    receptive_fields=tuple(fields),
                )
            )
    return heads, windows


def bias_text(bias: sympy.Expr) -> str:
    """A bias in a few characters.

    >>> from farfield.theory.encodings import encoding
    >>> table = encoding(values=[0, -1, -3], tail="constant")
    >>> bias_text(encoding("alibi").head(1)), bias_text(table.head(1))
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
