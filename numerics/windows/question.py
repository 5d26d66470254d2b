"""The question about a window, and the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import sympy
from flint import arb, fmpq
from sympy import Expr

from farfield.numerics.shown import shown, subject_of
from farfield.theory.answers.answer import Answer, InputError, Status
from farfield.theory.answers.blocks import Block, note
from farfield.theory.answers.notation import Text, words
from farfield.theory.answers.number import decimal, inside, listed, natural, plural
from farfield.theory.functions.balls import rational
from farfield.theory.proofs import Proof

MAX_BITS = 2_048  # at which a width is settled or given up
MAX_LOGIT = 1_000  # e^(2 beta) stays a number that balls hold
SCOPE = "one head, one layer, exact arithmetic, before the output projection"


@dataclass(frozen=True, repr=False)
class Window(Answer):
    """A window that is provably enough.

    Fields:
        formula: the bias, None where several heads are aggregated.
        error: the budget eta, exact.
        logit_bound, value_bound: the bounds on content logits and value norms, exact.
        width: keys to keep, the query's own included; the widest head's; infinite where no window
            is enough; None where it is not known.
        proof: the two ball comparisons.
        heads: one answer a head where there are several; the widest speaks for all.
    """

    VALUE: ClassVar[str] = "width"

    formula: Expr | None
    error: sympy.Rational
    logit_bound: sympy.Rational
    value_bound: sympy.Rational
    width: float | None = None
    sinks: int = 0
    row: int | None = None
    proof: Proof = field(default_factory=lambda: Proof(""))
    heads: tuple[Window, ...] = ()

    @property
    def keys(self) -> float | None:
        """Keys that are kept in all: the window and the sinks."""
        return None if self.width is None else self.width + self.sinks

    @property
    def sliding_window(self) -> int:
        """The width as the plain integer that `sliding_window` settings take."""
        if self.status is not Status.EXACT:
            raise InputError(f"there is no certified window: {self.reason}")
        return int(self)

    def block_mask(self, length: int, block: int = 128) -> np.ndarray:
        """Which blocks of keys each block of queries needs, (blocks, blocks). True where any pair
        `0 <= query - key < width` lies in the block, or a key that is kept as a sink. For kernels
        that skip blocks.

        >>> from farfield import certified_window
        >>> certified_window("-n/2", "1/100", 1, 1).block_mask(512, 128).sum(axis=1).tolist()
        [1, 2, 2, 2]
        >>> found = certified_window("-n/2", "1/100", 1, 1, sinks=4)
        >>> found.block_mask(512, 128).sum(axis=1).tolist()
        [1, 2, 3, 3]
        """
        size, side = natural(length, "length"), natural(block, "block")
        starts = np.arange(0, size, side)
        last = np.minimum(starts + side, size) - 1
        nearest = starts[:, None] - last[None, :]
        kept = (nearest < self.sliding_window) | (starts < self.sinks)
        return (last[:, None] >= starts[None, :]) & kept

    def _blocks(self) -> Iterator[Block]:
        bounds = words(
            "`|q.k|/sqrt(d) <= {logit}`, values of norm at most {value}",
            logit=self.logit_bound,
            value=self.value_bound,
        )
        each = listed(["none" if h.width is None else decimal(h.width) for h in self.heads])
        yield from shown(self, self._first(), where=bounds, by_head=each or None)
        if self.status is Status.EXACT:
            yield note("{scope}.", scope=SCOPE)
            yield self.proof.block()

    def _first(self) -> Text:
        """The answer in one sentence, for each status."""
        said = {
            Status.INFINITE: "no fixed window is enough: whatever is kept, some input changes the "
            "output by nearly {most}.",
            Status.UNKNOWN: "whether a window is enough is not known.",
            Status.OUT_OF_SCOPE: "no window is certified: {why}.",
        }.get(
            self.status,
            "the nearest {width}{first} are provably enough for an error of at most "
            "{error}{where}, and no fewer are.",
        )
        first = f", with {_first_keys(self.sinks)} kept besides," if self.sinks else ""
        where = ", in the widest head" if self.heads else ""
        where += "" if self.row is None else f", in a row of {plural(self.row, 'key')}"
        return words(
            "{subject}: " + said,
            subject=subject_of(self),
            error=self.error,
            where=where,
            width="" if self.status is not Status.EXACT else plural(int(self), "token"),
            most=2 * self.value_bound,
            why=str(self.reason),
            first=first,
        )


def _first_keys(sinks: int) -> str:
    return "the first key" if sinks == 1 else f"the first {sinks} keys"


@dataclass(frozen=True, repr=False)
class WindowError(Answer):
    """The worst-case error of a window.

    Fields:
        formula: the bias, None where several heads are aggregated.
        width: keys that are kept.
        value: the error as a float; the worst head's; None where it is not known.
        enclosure: floats around it.
        heads: one answer a head where there are several; the worst speaks for all.
        sinks: first keys that are also kept.
        label: `certified`; `theorem` for a divergent series, or bounded logits without a bias.
    """

    formula: Expr | None
    width: int
    value: float | None = None
    enclosure: tuple[float, float] | None = None
    heads: tuple[WindowError, ...] = ()
    sinks: int = 0

    def span(self) -> tuple[Any, Any] | None:
        return self.enclosure if self.value is None else super().span()

    def blocks(self) -> Sequence[Block]:
        said = "a window of {width}{first} changes no output by more than {value}{worst}."
        most = self.value if self.enclosure is None else self.enclosure[1]
        if most is None:
            said = "by how much a window of {width}{first} may change an output is not known."
        first_keys = f" with {_first_keys(self.sinks)}" if self.sinks else ""
        worst = ", in the worst head" if self.heads else ""
        first = words(
            "{subject}: " + said,
            subject=subject_of(self),
            width=plural(self.width, "token"),
            value=decimal(self.value if self.status is Status.EXACT else most),
            worst=worst,
            first=first_keys,
        )
        each = listed([decimal(h.value) for h in self.heads])
        return shown(self, first, by_head=each or None)


@dataclass(frozen=True)
class WindowQuestion:
    """What a window is asked for.

    Args:
        error, logit_bound, value_bound: eta, beta, V.
        sinks: first keys that are also kept.
        row: keys of the row, None for every row.
        temper: s, where content logits are scaled by `s log row`.
    """

    error: sympy.Rational
    logit_bound: sympy.Rational
    value_bound: sympy.Rational
    sinks: int = 0
    row: int | None = None
    temper: sympy.Rational | None = None

    @classmethod
    def read(
        cls, error: Any, logit_bound: Any, value_bound: Any, sinks: Any, row: Any, temper: Any
    ) -> WindowQuestion:
        """The question as a user puts it; raises InputError for values out of range."""
        eta = inside(error, "error", "(0, oo)")
        keys = None if row is None else natural(row, "row")
        if temper is not None and keys is None:
            raise InputError("temper scales the logits of a row: give row (--row), the keys of one")
        first = natural(sinks, "sinks", 0)
        if keys is not None and first > keys:
            raise InputError(f"sinks {first} are more than the row of {keys} keys")
        scale = None if temper is None else inside(temper, "temper", f"(0, {MAX_LOGIT}]")
        return cls(eta, *read_bounds(logit_bound, value_bound), first, keys, scale)

    def spread(self) -> arb:
        """e^{-2 beta}, or i^{-2 s beta} in a row of i keys, at the precision at work."""
        beta = arb(rational(self.logit_bound))
        if self.temper is not None and self.row is not None:
            beta = beta * arb(rational(self.temper)) * arb(self.row).log()
        return (-2 * beta).exp()

    def share(self) -> arb:
        """eta' e^{-2 beta}, eta' = eta/(2 V - eta): what T may be of B_w."""
        eta = rational(self.error)
        return self.spread() * arb(eta) / (2 * rational(self.value_bound) - eta)

    def exact_share(self) -> fmpq | None:
        """The same as a rational, where it is one: content logits that are 0."""
        eta = rational(self.error)
        return None if self.logit_bound else eta / (2 * rational(self.value_bound) - eta)

    def answer(self, formula: Expr | None, width: float | None = None, **more: Any) -> Window:
        """The answer, with its question."""
        return Window(
            formula,
            self.error,
            self.logit_bound,
            self.value_bound,
            width,
            self.sinks,
            self.row,
            **more,
        )


def read_bounds(logit_bound: Any, value_bound: Any) -> tuple[sympy.Rational, sympy.Rational]:
    """The bounds of logits and values, exact; raises InputError where they are out of range."""
    logit = inside(logit_bound, "logit_bound", f"[0, {MAX_LOGIT}]")
    return logit, inside(value_bound, "value_bound", "(0, oo)")
