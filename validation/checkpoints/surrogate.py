"""The additive surrogate of a rotation: what its logits are where queries and keys are all ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import sympy

from farfield.numerics.finite_length import head_fields, head_leaks
from farfield.theory.answers.answer import InputError, Label
from farfield.theory.answers.blocks import Block, note, sentence, table
from farfield.theory.answers.number import count
from farfield.theory.convergence import Verdict, check_convergence
from farfield.theory.encodings import Encoding
from farfield.validation.table_cells import share_text

LONGEST = 1 << 22
"""Of the rows, which are summed in float64."""


@dataclass(frozen=True)
class Surrogate:
    """The additive surrogate of a rotation: the logits of queries and keys of all ones.

    Fields:
        bias, scale: the formula, and its scale `2/sqrt(head size)`.
        lengths, eps: of the numbers.
        verdict: of its exp-series, proved.
        row_fields, leaks: as of a head, in float64: approximate.
    """

    bias: str
    scale: str
    verdict: Verdict
    lengths: tuple[int, ...]
    eps: tuple[sympy.Rational, ...]
    row_fields: tuple[int, ...]
    leaks: tuple[float, ...]
    label: Label = Label.APPROXIMATE

    def blocks(self, trained: int) -> Iterator[Block]:
        """What it says, for a model of this training length."""
        known = self.verdict is not Verdict.UNDECIDED
        yield sentence(
            "The exp-series of its additive surrogate {verdict}.",
            Label.THEOREM if known else None,
            verdict=self.verdict if known else f"is {self.verdict}",
        )
        rows = [
            (f"TRF({e}), row of {self.lengths[-1]} keys", count(tokens), self.label)
            for e, tokens in zip(self.eps, self.row_fields, strict=True)
        ]
        rows += [
            (f"leak from {trained} to {n}", share_text(share), self.label)
            for n, share in zip(self.lengths, self.leaks, strict=True)
        ]
        yield table(("quantity", "value", "label"), rows, numeric=(1,))
        yield note(
            "Where queries and keys are all ones, the logit is {bias} with a = {scale}, a function "
            "of the distance alone. This is the surrogate, not the model: with other queries and "
            "keys a rotation gives other logits. In float64.",
            bias=self.bias,
            scale=self.scale,
        )


def surrogate_of(
    made: Encoding,
    head_size: int,
    trained: int,
    lengths: tuple[int, ...],
    eps: tuple[sympy.Rational, ...],
) -> Surrogate:
    """The numbers of a surrogate at the scale of a logit: queries and keys of all ones give
    `2 sum cos / sqrt(head size)`.

    Raises:
        InputError: a length beyond `LONGEST`.
    """
    if lengths[-1] > LONGEST:
        raise InputError(
            f"length {lengths[-1]}: accepted for a rotation are lengths up to {LONGEST}"
        )
    symbol, bias = made.parameters[0].symbol, made.head(1)
    scale = 2 / sympy.sqrt(head_size)
    row = made.bias(np.arange(lengths[-1]))[:1] * float(scale)
    return Surrogate(
        f"{symbol}*sum of cos(n theta_i), {len(bias.args) or 1} angles",
        str(scale),
        check_convergence(made).verdict,
        lengths,
        eps,
        tuple(head_fields(row, float(e)).item() for e in eps),
        tuple(head_leaks(row[:, :n], trained).item() for n in lengths),
    )
