"""The class `Encoding`: one bias formula in the distance `n`, its heads, table, slopes, views."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import sympy
from sympy import Expr, Symbol

from farfield.theory.algebra.door import check_time, within
from farfield.theory.algebra.exceptions import OutOfTime
from farfield.theory.answers.answer import InputError, Reason, Result, Seen
from farfield.theory.answers.blocks import Block, Formula, facts, note, sentence
from farfield.theory.answers.errors import guarded
from farfield.theory.answers.notation import (
    expression_latex,
    expression_line,
    listed,
    shortened,
    words,
)
from farfield.theory.encodings.head_lists import notation
from farfield.theory.first_terms import defined
from farfield.theory.formula.parameters import interval, parameter
from farfield.theory.functions.nodes import Lookup, n
from farfield.theory.views import view

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Parameter:
    """A parameter of a bias: its domain and, where it is learned, its reference initialisation.

    `init` is the interval of a uniform distribution, `clamp` the bounds (None: no bound) that
    the reference code enforces at every forward pass. `zero` says that a head may also have the
    value 0, by which it has no bias.
    """

    name: str
    domain: str = "positive"
    learned: bool = False
    init: tuple[float, float] = (0.0, 1.0)
    clamp: tuple[float | None, float | None] = (None, None)
    zero: bool = False

    @property
    def symbol(self) -> Symbol:
        return parameter(self.name, self.domain)

    @property
    def interval(self) -> sympy.Set:
        """The values of its domain."""
        return interval(self.domain)


TABLE_S = 60.0
"""Seconds that a table may take where nothing is said."""
LISTED = "one formula a head"
"""The source of an encoding that is a list of formulas."""


@dataclass(frozen=True, repr=False)
class Encoding(Result):
    """One bias formula with its heads; everything else in the project is its view.

    Fields:
        name, dialect, source: its name, its variant, and the place that prints it.
        formula: the bias in `n` and its parameters; None where the encoding is not additive.
        parameters: those the formula has, in order.
        biases: the bias of each head, fixed values substituted; empty where there is no formula.
        mechanism: `bias`, or how a model applies it: `rotation`, `gated_decay`, and all others of
            `farfield.theory.mechanisms.MECHANISMS`.
        out_of_scope: the hypothesis of [Q, Theorem 0.4] that fails; None where it applies.
        bca: half-width in tokens of blockwise causal attention [S, 3.3], None without.
        note: further facts for a reader.
        title: how it is written in prose.
        origin: `formula`; `traced` where every path of a program was followed; `tabulated` where
            values are known at the positions that were asked, and nowhere else.
        seen: of a tabulated bias, the last distance and the last query that were asked.
        known: of a tabulated bias, the values of each head up to there. It has no `biases`, so
            that no question about the whole series finds one; `row` has them.
        resembles: the formula of a family that a tabulated bias agrees with where it was seen.
    """

    name: str
    formula: Expr | None
    biases: tuple[Expr, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    dialect: str | None = None
    source: str = "user formula"
    mechanism: str = "bias"
    out_of_scope: Reason | None = None
    bca: int | None = None
    note: str = ""
    title: str = field(default="", compare=False)
    origin: str = "formula"
    seen: Seen | None = None
    known: tuple[Expr, ...] = field(default=(), repr=False)
    resembles: str = ""

    @property
    def num_heads(self) -> int:
        """How many heads the formula has values for; 1 where all heads share it."""
        return max(1, len(self.biases), len(self.known))

    @property
    def free(self) -> tuple[Parameter, ...]:
        """The parameters that have no value yet in some head (learned ones, as a rule)."""
        names = {s.name for b in self.biases for s in b.free_symbols}
        return tuple(p for p in self.parameters if p.name in names)

    def head(self, h: int) -> Expr:
        """The bias of head `h`, counted from 1, as an expression in `n`.

        Raises InputError where there is no such head, or no bias.

        >>> from farfield import encoding
        >>> encoding("alibi").head(1)
        -n/2
        """
        if not self.biases:
            raise InputError(f"{self.name} has no additive bias: {self.out_of_scope}")
        if not 1 <= h <= self.num_heads:
            raise InputError(f"{self.name} has heads 1 to {self.num_heads}; {h} was asked for")
        return self.biases[h - 1]

    def one_head(self, h: int) -> Encoding:
        """The encoding of head `h` alone, counted from 1.

        >>> from farfield import encoding
        >>> encoding("alibi").one_head(8).formula
        -n/256
        """
        bias = self.row(1).head(h)
        if self.num_heads == 1:
            return self
        return dataclasses.replace(
            self,
            name=f"{self.name}, head {h}",
            formula=bias if self.biases else None,
            biases=self.biases[h - 1 : h],
            known=self.known[h - 1 : h],
            title="",
        )

    @property
    def provenance(self) -> dict[str, Any]:
        """The facts that every answer repeats: fields of an answer."""
        return {"subject": self.name, "origin": self.origin, "seen": self.seen}

    def row(self, length: int | None) -> Encoding:
        """The encoding as a question about rows of `length` keys may use it; None: all rows.

        The one place that decides what a tabulated bias answers: it has values at the distances
        that were asked, and no bias beyond them.

        >>> from farfield import encoding
        >>> table = encoding([0, -1, -2])
        >>> len(table.row(3).biases), len(table.row(4).biases), len(table.row(None).biases)
        (1, 0, 0)
        """
        if self.seen is None or length is None or length > self.seen.distance + 1:
            return self
        return dataclasses.replace(self, biases=self.known, out_of_scope=None)

    @guarded
    def bias(self, distances: object, *, budget_s: float = TABLE_S) -> np.ndarray:
        """The bias as float64, shape `(num_heads, len(distances))`, -inf where it masks; nan or inf
        where the formula has no value, also where float64 would find one (`1/log(n)` at n = 0). A
        number is one distance.

        Raises InputError while a parameter has no value, beyond the last known distance of a
        tabulated bias, and after `budget_s` seconds.

        >>> from farfield import encoding
        >>> encoding("alibi").bias([0, 1, 2])[0].tolist()
        [0.0, -0.5, -1.0]
        """
        subject = self
        if getattr(distances, "ndim", 1) == 0 or isinstance(distances, (int, float)):
            distances = [distances]
        if self.seen is not None:
            subject = self.row(1 + max(map(int, distances), default=0))  # type: ignore[call-overload]
        subject.head(1)  # refuses what has no bias
        try:
            with within(budget_s):
                return defined(subject.biases, distances)
        except OutOfTime:
            check_time()  # the question that asks may have less
            raise InputError(
                f"the table of {shortened(self.name, 60)} is not ready after {budget_s:g} s "
                "(budget_s); accepted: a larger budget, or fewer distances"
            ) from None

    @guarded
    def slopes(self) -> np.ndarray:
        """The slopes of an ALiBi bias `-m n + constant`, float64, shape `(num_heads,)`, for kernels
        that take them (`alibi_slopes` of FlashAttention, in float32).

        Raises InputError where a head is not linear in the distance, or has no values.

        >>> from farfield import encoding
        >>> encoding("alibi", heads=4).slopes().tolist()
        [0.25, 0.0625, 0.015625, 0.00390625]
        """
        import numpy as np

        slopes = []
        for h in range(1, self.num_heads + 1):
            bias = self.head(h)
            slope = None if bias.has(Lookup, sympy.Piecewise) else -sympy.diff(bias, n)
            if slope is None or not slope.is_number:
                text = shortened(str(bias), 60)
                raise InputError(f"{self.name}, head {h} is no ALiBi bias -m*n: {text}")
            slopes.append(float(slope))
        return np.array(slopes)

    @guarded
    def tensor(self, length: int, **options: object) -> Any:
        """The bias at distances 0 .. length - 1 as a torch tensor, shape (heads, length).

        Raises InputError without torch, and where a parameter has no value in `values`.
        """
        return view("tensor")(self.row(length), length, **options)

    @guarded
    def score_mod(self, length: int, **options: object) -> Any:
        """The score function of FlexAttention for texts up to this length, which adds the bias."""
        return view("score_mod")(self.row(length), length, **options)

    @guarded
    def block_mask(self, length: int, **options: object) -> Any:
        """The block mask of FlexAttention for a text of this length."""
        return view("block_mask")(self.row(length), length, **options)

    def latex(self) -> str:
        """The formula in LaTeX; empty where there is none.

        >>> from farfield import encoding
        >>> print(encoding("kerple_power").latex())
        - n^{r_{2}} r_{1}
        """
        return "" if self.formula is None else expression_latex(self.formula)

    def blocks(self) -> Sequence[Block]:
        dialect = f" ({self.dialect})" if self.dialect else ""
        formula = self.formula_text()
        if not self.biases:
            formula = f"no bias by distance ({self.out_of_scope})"
        if self.seen is not None:
            formula = f"values up to distance {self.seen.distance}"
        blocks: list[Block] = [
            sentence(
                "{name}{dialect}: {said}.",
                name=self.title or self.name,
                dialect=dialect,
                said=shortened(formula, 120),
            ),
        ]
        if self.formula is not None:
            blocks.append(Formula(words("`p(n)`"), self.formula))
        free = listed([f"{p.name} ({p.domain}{', learned' * p.learned})" for p in self.free], 6)
        blocks.append(
            facts(
                heads=self.num_heads if self.num_heads > 1 else None,
                with_values=expression_line(self.biases[0])
                if len(self.biases) == 1 and self.biases[0] != self.formula
                else None,
                free_parameters=free or None,
                blockwise_causal_attention=f"half = {self.bca} tokens" if self.bca else None,
                source=self.source,
            )
        )
        return [*blocks, *([note("{note}.", note=self.note)] if self.note else [])]

    def formula_text(self) -> str:
        """The formula as plain text; those of the heads where they differ, `-` where none is.

        >>> from farfield import encoding
        >>> encoding("[-n/4; 0 x2]").formula_text()
        '[−n/4; 0 x2]'
        """
        if self.formula is not None or not self.biases:
            return "-" if self.formula is None else expression_line(self.formula)
        return notation([expression_line(bias) for bias in self.biases])
