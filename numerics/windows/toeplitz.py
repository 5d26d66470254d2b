r"""The certified window: how many keys are provably enough for an error budget.

For logits bounded by `logit_bound` and values by `value_bound`, the supremum over all inputs and
row lengths of the change in the head's output, when only the w nearest keys are kept, equals

    error(w) = 2 value_bound T_w / (T_w + e^{-2 logit_bound} B_w),

which does not increase with w (ours; upper half by [Q, Eq. 11-13]). `certified_window` finds the
least w with error(w) <= eta; no smaller window can be guaranteed. It speaks of one layer in exact
arithmetic, of the norm of the head's output before the output projection.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import sympy
from flint import arb
from sympy import Expr

from farfield.numerics.receptive_field import (
    Exact,
    at_precision,
    obstacle,
    out_of_reach,
    resolve,
    theoretical_receptive_field,
)
from farfield.numerics.summation.series import Series, series
from farfield.theory.algebra.outcomes import Unreachable
from farfield.theory.answers.answer import (
    Answer,
    Code,
    InputError,
    Label,
    Reason,
    Status,
    decisive,
)
from farfield.theory.answers.blocks import Block, Formula, Sentence, facts, note
from farfield.theory.answers.notation import Text, expression_line, shortened, words
from farfield.theory.answers.number import exact, natural
from farfield.theory.answers.wording import decimal, listed, plural
from farfield.theory.functions.balls import precision, rational, to_arb
from farfield.theory.proofs import Proof, Step

MAX_BITS = 2_048
MAX_LOGIT = 1_000
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
        """Which blocks of keys each block of queries needs, (blocks, blocks), True where any
        pair 0 <= query - key < width lies in it; for kernels that skip blocks.

        >>> certified_window("-n/2", "1/100", 1, 1).block_mask(512, 128).sum(axis=1).tolist()
        [1, 2, 2, 2]
        """
        size, side = natural(length, "length"), natural(block, "block")
        starts = np.arange(0, size, side)
        last = np.minimum(starts + side, size) - 1
        nearest = starts[:, None] - last[None, :]
        return (last[:, None] >= starts[None, :]) & (nearest < self.sliding_window)

    def blocks(self) -> Sequence[Block]:
        return tuple(self._blocks())

    def _blocks(self) -> Iterator[Block]:
        yield Sentence(self._first(), self.label)
        if self.formula is not None:
            yield Formula(words("`p(n)`"), self.formula)
        bounds = words(
            "`|q.k|/sqrt(d) <= {logit}`, values of norm at most {value}",
            logit=self.logit_bound, value=self.value_bound,
        )  # fmt: skip
        each = listed(["none" if h.width is None else decimal(h.width) for h in self.heads])
        yield facts(
            where=bounds, by_head=each or None,
            why=None if self.reason is None else str(self.reason),
        )  # fmt: skip
        if self.status is Status.EXACT:
            yield note("{scope}.", scope=SCOPE)
            yield self.proof.block()

    def _first(self) -> Text:
        subject = shortened(self.subject or expression_line(self.formula or 0), 80)
        said = {
            Status.INFINITE: "no fixed window is enough: whatever is kept, some input changes the "
            "output by nearly {most}.",
            Status.UNKNOWN: "whether a window is enough is not known.",
            Status.OUT_OF_SCOPE: "no window is certified: {why}.",
        }.get(
            self.status,
            "the nearest {width} are provably enough for an error of at most {error}{where}, and "
            "no fewer are.",
        )
        where = ", in the widest head" if self.heads else ""
        where += "" if self.row is None else f", in a row of {plural(self.row, 'key')}"
        return words(
            "{subject}: " + said, subject=subject, error=self.error, where=where,
            width="" if self.status is not Status.EXACT else plural(int(self), "token"),
            most=2 * self.value_bound, why=str(self.reason),
        )  # fmt: skip


@dataclass(frozen=True, repr=False)
class WindowError(Answer):
    """The worst-case error of a window.

    Fields:
        formula: the bias, None where several heads are aggregated.
        width: keys that are kept.
        value: the error as a float; the worst head's; None where it is not known.
        enclosure: floats around it.
        heads: one answer a head where there are several; the worst speaks for all.
        label: `certified`; `theorem` for a divergent series.
    """

    formula: Expr | None
    width: int
    value: float | None = None
    enclosure: tuple[float, float] | None = None
    heads: tuple[WindowError, ...] = ()

    def blocks(self) -> Sequence[Block]:
        subject = shortened(self.subject or expression_line(self.formula or 0), 80)
        said = "a window of {width} changes no output by more than {value}{worst}."
        if self.value is None:
            said = "by how much a window of {width} may change an output is not known."
        worst = ", in the worst head" if self.heads else ""
        first = words(
            "{subject}: " + said, subject=subject, width=plural(self.width, "token"),
            value=decimal(self.value), worst=worst,
        )  # fmt: skip
        found: list[Block] = [Sentence(first, self.label)]
        if self.formula is not None:
            found.append(Formula(words("`p(n)`"), self.formula))
        each = listed([decimal(h.value) for h in self.heads])
        why = None if self.reason is None else str(self.reason)
        return [*found, facts(by_head=each or None, why=why)]


@dataclass(frozen=True)
class Question:
    """What a window is asked for.

    Args:
        error, logit_bound, value_bound: eta, beta, V.
        sinks: first keys that are kept besides.
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
    ) -> Question:
        """The question as a user puts it; raises InputError for what is out of range."""
        eta = exact(error, "error")
        if eta <= 0:
            raise InputError(
                f"error {eta} must be positive: only all keys of a finite support have error 0"
            )
        keys = None if row is None else natural(row, "row")
        if temper is not None and keys is None:
            raise InputError("temper scales the logits of a row: give row, the keys of one")
        first = natural(sinks, "sinks", 0)
        if keys is not None and first > keys:
            raise InputError(f"sinks {first} are more than the row of {keys} keys")
        scale = None if temper is None else exact(temper, "temper")
        if scale is not None and not 0 < scale <= MAX_LOGIT:
            raise InputError(f"temper {scale} must be positive, at most {MAX_LOGIT}")
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

    def answer(self, formula: Expr | None, width: float | None = None, **more: Any) -> Window:
        """The answer with what was asked."""
        return Window(
            formula, self.error, self.logit_bound, self.value_bound, width, self.sinks, self.row,
            **more,
        )  # fmt: skip


def certified_window(
    f: Any, error: Any, logit_bound: Any, value_bound: Any, *, sinks: Any = 0, row: Any = None,
    temper: Any = None, gate: Any = None, **values: Any,
) -> Window:  # fmt: skip
    """The least window whose output error is at most `error` for every input (ours).

    Args:
        f: a formula in `n`, a SymPy expression, a name of the catalogue or an `Encoding`.
        error: the budget eta > 0.
        logit_bound: a bound beta of |q.k|/sqrt(d), at least 0; of the whole logit where there is
            no additive bias.
        value_bound: a bound of ||v||, positive.
        sinks: first keys that are kept besides, whatever their logits are.
        row: keys of one row, for a window that is enough there; None for every row.
        temper: s, where the content logits of a row of i keys are scaled by `s log i`.
        gate: the bound gamma of the gates of a gated decay.
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
    asked = Question.read(error, logit_bound, value_bound, sinks, row, temper)
    subject = resolve(f, values)
    if not subject.biases and subject.bca is None:
        from farfield.numerics.windows.mechanisms import of_mechanism

        return replace(of_mechanism(subject.mechanism, asked, gate), subject=subject.name)
    if gate is not None:
        raise InputError(f"{subject.name} has no gates: gate {gate} belongs to a gated decay")
    if reason := out_of_reach(subject):
        return asked.answer(
            None, status=Status.OUT_OF_SCOPE, label=None, reason=reason, subject=subject.name
        )
    known = {b: of_bias(b, asked) for b in dict.fromkeys(subject.biases)}
    heads = tuple(known[b] for b in subject.biases)
    if len(heads) == 1:
        return replace(heads[0], subject=subject.name)
    worst = decisive(heads, lambda h: h.width)
    return replace(worst, formula=None, heads=heads, subject=subject.name)


def window_error(
    f: Any, width: Any, logit_bound: Any, value_bound: Any, *, sinks: Any = 0,
    sink_weight: Any = 0, **values: Any,
) -> WindowError:  # fmt: skip
    """The worst-case error of keeping the `width` nearest keys, and the first ones (ours).

    Args:
        f: a formula in `n`, a SymPy expression, a name of the catalogue or an `Encoding`.
        width: keys that are kept, the query's own included, at least 1.
        logit_bound: a bound of |q.k|/sqrt(d), at least 0.
        value_bound: a bound of ||v||, positive.
        sinks: first keys that are kept besides, at any logits.
        sink_weight: a lower bound S of the sum of exp(logit) over them, at least 0.
        **values: parameters and options, as `farfield.theory.encodings.encoding` takes them.

    Raises:
        InputError: a width that is no natural number; bounds out of range; free parameters.

    >>> round(window_error("-2*log(1+n)", 61, 0, 1).value, 6)
    0.01977
    >>> round(window_error("-2*log(1+n)", 61, 0, 1, sinks=4, sink_weight=2).value, 6)
    0.008923
    """
    w, first = natural(width, "width"), natural(sinks, "sinks", 0)
    logit, value = read_bounds(logit_bound, value_bound)
    weight = exact(sink_weight, "sink_weight")
    if weight < 0 or (weight and not first):
        raise InputError(
            f"sink_weight {weight} with {first} sinks: accepted is 0 or more, of sinks"
        )
    subject = resolve(f, values)
    if reason := out_of_reach(subject):
        return WindowError(
            None, w, status=Status.OUT_OF_SCOPE, label=None, reason=reason, subject=subject.name
        )
    heads = tuple(_error_of(b, w, logit, value, weight) for b in subject.biases)
    if len(heads) == 1:
        return replace(heads[0], subject=subject.name)
    worst = decisive(heads, lambda h: h.value, lambda h: h.label is Label.THEOREM)
    return replace(worst, formula=None, heads=heads, subject=subject.name)


def read_bounds(logit_bound: Any, value_bound: Any) -> tuple[sympy.Rational, sympy.Rational]:
    """The bounds of logits and values, exact; raises InputError where they are out of range."""
    logit, value = exact(logit_bound, "logit_bound"), exact(value_bound, "value_bound")
    if not 0 <= logit <= MAX_LOGIT:
        raise InputError(f"logit_bound {logit} must be from 0 to {MAX_LOGIT}")
    if value <= 0:
        raise InputError(f"value_bound {value} must be positive")
    return logit, value


def _error_of(
    bias: Expr, w: int, logit: sympy.Rational, value: sympy.Rational, weight: sympy.Rational
) -> WindowError:
    s = series(bias)
    reason = obstacle(s)
    if reason is not None and reason.code is Code.DIVERGES:
        worst = float(2 * value)
        return WindowError(bias, w, worst, (worst, worst), label=Label.THEOREM, reason=reason)
    if reason is not None:
        return WindowError(bias, w, status=Status.UNKNOWN, label=None, reason=reason)

    def formula() -> arb:
        tail, total, beta = to_arb(s.tail(w)), to_arb(s.total()), arb(rational(logit))
        kept = (-2 * beta).exp() * (total - tail) + (-beta).exp() * arb(rational(weight))
        return 2 * arb(rational(value)) * tail / (tail + kept)

    ball = to_arb(at_precision(formula, 128))
    return WindowError(bias, w, float(ball.mid()), (float(ball.lower()), float(ball.upper())))


def of_bias(bias: Expr, asked: Question) -> Window:
    """The least window of one bias."""
    rule = Step("window", {})
    if asked.error >= 2 * asked.value_bound:
        reason = Reason(Code.TRIVIAL_BUDGET, "every window has an error of at most 2 value_bound")
        return asked.answer(bias, 1, proof=Proof("one key is enough", (rule,)), reason=reason)
    s = series(bias)
    reason_against = obstacle(s) if asked.row is None else None
    if reason_against is not None and reason_against.code is Code.DIVERGES:
        return asked.answer(
            bias, math.inf, proof=Proof("there is none", (rule,)), status=Status.INFINITE,
            label=Label.THEOREM, reason=reason_against,
        )  # fmt: skip
    try:
        if reason_against is not None:
            raise Unreachable(reason_against.sentence)
        width = _least(s if asked.row is None else s.truncated(asked.row), bias, asked)
    except Unreachable as why:
        return asked.answer(
            bias, proof=Proof("it is not known whether there is one", (rule,)),
            status=Status.UNKNOWN, label=None,
            reason=reason_against or Reason(Code.NO_ENCLOSURE, str(why)),
        )  # fmt: skip
    steps = [rule, Step("enough", {"width": width, "budget": asked.error})]
    if width > 1:
        steps.append(Step("least", {"width": width - 1, "budget": asked.error}))
    proof = Proof(f"{width} keys are enough, and necessary", tuple(steps))
    return asked.answer(bias, width, proof=proof)


def _least(s: Series, bias: Expr, asked: Question) -> int:
    """error(w) <= eta iff T_w <= eps B with eps = x/(1 + x), x = eta' e^{-2 beta}: the receptive
    field at a rational near that eps is a guess, settled by ball comparisons."""
    with precision(256):
        eps = asked.share() / (1 + asked.share())
        scale = 200 + max(0, -int(eps.log().mid().floor().unique_fmpz()) * 2)
        grid = (eps * arb(2) ** scale).mid().floor().unique_fmpz()
    found = theoretical_receptive_field(bias, sympy.Rational(int(grid), 2**scale), length=asked.row)
    if not isinstance(found.answer, Exact):
        why = found.reason or "the width is not an exact integer in reach"
        raise Unreachable(str(why))
    w = max(1, found.answer.tokens)
    while not _within(s, w, asked):
        w += 1
    while w > 1 and _within(s, w - 1, asked):
        w -= 1
    return w


def _within(s: Series, w: int, asked: Question) -> bool:
    """Whether T_w <= eta' e^{-2 beta} B_w, proved either way."""
    bits = 128 + 2 * w.bit_length()
    while bits <= MAX_BITS:
        with precision(bits):
            tail = to_arb(s.tail(w))
            allowed = asked.share() * (to_arb(s.total()) - tail)
            if tail <= allowed:
                return True
            if tail > allowed:
                return False
        bits *= 2
    raise Unreachable(f"the error of a window of {w} agrees with {asked.error} to all digits tried")
