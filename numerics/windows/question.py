"""The question about a window: width, sinks, row, bounds; its answers `Window`, `WindowError`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import sympy
from flint import arb

from farfield.numerics.questions import Cases, HeadAnswer, of_row
from farfield.theory.answers.answer import InputError, Status
from farfield.theory.answers.blocks import Block, note
from farfield.theory.answers.notation import words
from farfield.theory.answers.number import decimal, inside, natural, plural
from farfield.theory.functions.balls import Ball, rational
from farfield.theory.proofs import Proof

MAX_BITS = 2_048  # at which a width is settled or given up
MAX_LOGIT = 1_000  # e^(2 beta) stays a number that balls hold
SCOPE = "one head, one layer, exact arithmetic, before the output projection"


@dataclass(frozen=True, repr=False)
class Window(HeadAnswer):
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

    VALUE = "width"
    OUTSIDE = "no window is certified: {why}."

    error: sympy.Rational
    logit_bound: sympy.Rational
    value_bound: sympy.Rational
    width: float | None = None
    sinks: int = 0
    row: int | None = None
    proof: Proof = field(default_factory=lambda: Proof(""))

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
        >>> answer = certified_window("-n/2", "1/100", 1, 1, sinks=4)
        >>> answer.block_mask(512, 128).sum(axis=1).tolist()
        [1, 2, 3, 3]
        """
        size, side = natural(length, "length"), natural(block, "block")
        starts = np.arange(0, size, side)
        last = np.minimum(starts + side, size) - 1
        nearest = starts[:, None] - last[None, :]
        kept = (nearest < self.sliding_window) | (starts < self.sinks)
        return (last[:, None] >= starts[None, :]) & kept

    def head_text(self) -> str:
        return "none" if self.width is None else decimal(self.width)

    def blocks(self) -> Sequence[Block]:
        if self.status is not Status.EXACT:
            return super().blocks()
        return [*super().blocks(), note("{scope}.", scope=SCOPE), self.proof.block()]

    def _cases(self) -> Cases:
        return (
            (
                self.status is Status.INFINITE,
                "no fixed window is enough: whatever is kept, some input changes the output by "
                "nearly {most}.",
            ),
            (self.width is None, "whether a window is enough is not known."),
            (
                self.width == 1,
                "the nearest token alone{first} is provably enough for an error of at most "
                "{error}{where}.",
            ),
            (
                True,
                "the nearest {width}{first} are provably enough for an error of at most "
                "{error}{where}, and no fewer are.",
            ),
        )

    def _values(self) -> dict[str, object]:
        kept, of = _first_keys(self.sinks), of_row(self.row)
        return {
            "error": self.error,
            "where": self.among("the widest head") + (of and "," + of),
            "width": "" if self.status is not Status.EXACT else plural(int(self), "token"),
            "most": 2 * self.value_bound,
            "first": kept and f", with {kept} kept besides,",
        }

    def _facts(self) -> dict[str, object]:
        template = "`|q.k|/sqrt(d) <= {logit}`, values of norm at most {value}"
        bounds = words(template, logit=self.logit_bound, value=self.value_bound)
        return {"where": bounds} | super()._facts()


def _first_keys(sinks: int) -> str:
    return ("", "the first key")[sinks] if sinks < 2 else f"the first {sinks} keys"


@dataclass(frozen=True, repr=False)
class WindowError(HeadAnswer):
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

    width: int
    value: float | None = None
    enclosure: tuple[float, float] | None = None
    sinks: int = 0

    def _cases(self) -> Cases:
        unknown = "by how much a window of {width}{first} may change an output is not known."
        return (
            (self.status is Status.UNKNOWN, unknown),
            (True, "a window of {width}{first} changes no output by more than {value}{worst}."),
        )

    def _values(self) -> dict[str, object]:
        kept, ends = _first_keys(self.sinks), self.enclosure
        most = self.value if self.status is Status.EXACT or ends is None else ends[1]
        return {
            "width": plural(self.width, "token"),
            "value": decimal(most),
            "worst": self.among("the worst head"),
            "first": kept and f" with {kept}",
        }


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
        cls,
        error: object,
        logit_bound: object,
        value_bound: object,
        sinks: object,
        row: object,
        temper: object,
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

    def share(self) -> Ball:
        """eta' e^{-2 beta}, eta' = eta/(2 V - eta): what T may be of B_w; a rational where content
        logits are 0."""
        eta = rational(self.error)
        whole = eta / (2 * rational(self.value_bound) - eta)
        return self.spread() * whole if self.logit_bound else whole

    def excess(self, tail: Ball, total: Ball) -> Ball:
        """T/(eta' e^{-2 beta} (B - T)): at most 1 exactly where the error is within the budget."""
        return tail / (self.share() * (total - tail))

    def blank(self) -> Window:
        """The answer with its question and no value."""
        bounds = self.error, self.logit_bound, self.value_bound
        return Window(None, *bounds, sinks=self.sinks, row=self.row)


def read_bounds(logit_bound: object, value_bound: object) -> tuple[sympy.Rational, sympy.Rational]:
    """The bounds of logits and values, exact; raises InputError where they are out of range."""
    logit = inside(logit_bound, "logit_bound", f"[0, {MAX_LOGIT}]")
    return logit, inside(value_bound, "value_bound", "(0, oo)")
