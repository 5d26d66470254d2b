"""How far a bias sees, beside the rows it is trained on: what joins theory and training.

A convergent series may still need far more tokens than a training row has. On such a row the bias
is nearly flat. Whether perplexity then holds is measured: on this model, or on the nearest trained
ones, which is a forecast.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass

import sympy

from farfield.numerics.design.designs import Design
from farfield.numerics.design.solve import design
from farfield.numerics.receptive_field import ReceptiveField, theoretical_receptive_field
from farfield.theory.answers.answer import InputError, Label, Result
from farfield.theory.answers.blocks import Block, note, sentence
from farfield.theory.answers.notation import StyledWord
from farfield.theory.answers.number import plural
from farfield.theory.encodings import Encoding
from farfield.validation.forecast import Forecast, forecast
from farfield.validation.table_cells import field_text

EPS = "1/100"
"""The share that a field leaves outside: it holds 99 %."""
BUDGET_S = 3.0
"""Of the design."""


@dataclass(frozen=True, repr=False)
class BesideRows(Result):
    """The field of a bias beside training rows, the measured or forecast loss, and a design that
    fits.

    Fields:
        name: of the encoding.
        trained: tokens of a training row.
        field: TRF(1/100) of the whole series; None where there is none to ask for.
        forecast: what the nearest trained models lost; None for what no model is trained with.
        fit: the design whose field is a training row, where the bias has a longer one.
        family: of the design, with the free divisor `c`.
        lost: length, ratio with its interval, and loss in nats of a model that was trained here.
    """

    name: str
    trained: int
    field: ReceptiveField | None = None
    forecast: Forecast | None = None
    fit: Design | None = None
    family: str = ""
    lost: tuple[int, float, float, float, float] | None = None

    def _blocks(self) -> Iterator[Block]:
        yield from self.fields_beside_rows()
        if self.lost is not None:
            length, ratio, low, high, nats = self.lost
            yield sentence(
                "Trained here on rows of {rows}: perplexity at {length} tokens is {ratio} times "
                "that at {trained} ({low} to {high}), a loss of {nats} nats a token.",
                Label.MEASURED,
                rows=plural(self.trained, "token"),
                trained=self.trained,
                length=length,
                ratio=f"{ratio:.3f}",
                low=f"{low:.3f}",
                high=f"{high:.3f}",
                nats=f"{nats:.2f}",
            )
        if self.forecast is not None:
            yield from dataclasses.replace(self.forecast, subject=self.name).blocks()[:1]
        yield from self.suggested()

    def fields_beside_rows(self) -> Iterator[Block]:
        """How many tokens hold 99 % of the mass, and how many training rows that is."""
        if self.field is None:
            return
        rows = f"the training rows of {self.trained}"
        if self.field.tokens == math.inf:
            yield sentence(
                "{name}: no number of tokens holds 99 % of its mass; {rows} hold a share that "
                "falls as rows grow.",
                self.field.label,
                name=self.name,
                rows=rows,
            )
        elif self.field.answer is not None:
            times = "" if self.field.tokens is None else f", {self.times} times {rows}"
            heads = [head.tokens for head in self.field.heads if head.tokens is not None]
            widest = f" in the widest head ({min(heads):,} in the narrowest)" if heads else ""
            yield sentence(
                "{name}: the nearest {tokens} tokens hold 99 % of its mass{widest}{times}.",
                self.field.label,
                name=self.name,
                tokens=field_text(self.field),
                widest=widest,
                times=times,
            )

    @property
    def times(self) -> str:
        """The field over the training rows, in two digits."""
        tokens = None if self.field is None else self.field.tokens
        if tokens is None or not math.isfinite(tokens):
            return ""
        return f"{float(f'{tokens / self.trained:.2g}'):,g}"

    def suggested(self) -> Iterator[Block]:
        """The design that makes the field a training row."""
        if self.fit is not None and self.fit.value is not None and self.fit.encoding is not None:
            command = f'farfield design "{self.family}" --trf {self.trained}'
            yield note(
                "c = {value} fits {trained} tokens: {formula}, by {command}.",
                value=self.fit.value,
                trained=self.trained,
                formula=StyledWord(str(self.fit.encoding.head(1)).replace("**", "^"), "code"),
                command=StyledWord(command, "code"),
            )


def beside_rows(
    subject: Encoding,
    name: str | None = None,
    *,
    trained: int,
    tested: int,
    layers: int = 4,
    field: ReceptiveField | None = None,
    near: Forecast | None = None,
) -> BesideRows:
    """The field of a bias beside the rows it is trained on.

    Args:
        subject: the encoding.
        name: how to call it; its own name if not given.
        trained: tokens of a training row.
        tested: the longest row at inference, in tokens.
        layers: of the models that a forecast looks for.
        field: TRF(1/100) where it is known.
        near: the forecast where it is known.

    >>> from farfield.theory.encodings import encoding
    >>> idea = beside_rows(encoding("-sqrt(n)*log(1+n)/50"), trained=64, tested=1024)
    >>> idea.field.tokens, idea.times, idea.fit.value
    (1535, '24', 19/3)
    >>> beside_rows(encoding("-n/8"), trained=64, tested=1024).fit is None
    True
    """
    if not subject.biases or subject.bca is not None or subject.free:
        return BesideRows(name or subject.name, trained)
    field = field or theoretical_receptive_field(subject, EPS)
    near = near or forecast(subject, trained=trained, tested=tested, layers=layers)
    found = BesideRows(name or subject.name, trained, field, near)
    if field.tokens is None or field.tokens <= trained or subject.num_heads > 1:
        return found
    family = _family(subject)
    try:
        fit = design(family, trf=trained, eps=EPS, budget_s=BUDGET_S)
    except InputError:  # no divisor has such a field, or there is nothing to divide
        return found
    return dataclasses.replace(found, fit=fit, family=family)


def _family(subject: Encoding) -> str:
    """The formula of an encoding with its size replaced by a free divisor `c`."""
    size, shape = subject.head(1).as_coeff_Mul()
    scaled = (-1 if size < 0 else 1) * shape / sympy.Symbol("c", positive=True)
    return str(scaled).replace("**", "^")
