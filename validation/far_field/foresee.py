"""What does a trained model lose on longer rows? Foreseen from short ones.

    log ratio at N = mean loss of targets in rows of N less that of the same targets in rows of T

Three looks are taken. The main one doubles the length stage by stage, the check jumps to it. Both
suppose that far keys may change places. The third look jumps as well, and keeps the drawn keys in
the order of the text. Where the looks differ by too much, nothing is said.

Two intervals are given. The one on the text that was read is over its groups. The one on text that
nobody has read is conformal (`intervals`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from farfield.theory.answers.answer import Answer, Code, Label, Reason, Status
from farfield.theory.answers.blocks import Block, Curve, Line, facts, note, sentence, table
from farfield.validation.far_field.blame import Blame, blame
from farfield.validation.far_field.cost import staged, timed
from farfield.validation.far_field.gap_probe import GapProbe, probe
from farfield.validation.far_field.intervals import elsewhere, mean_and_half
from farfield.validation.far_field.long_rows import Sampling
from farfield.validation.far_field.model_on_text import (
    Settings,
    reach_of,
    subject_of,
)
from farfield.validation.far_field.worth import Worth, worth
from farfield.validation.models.speed import lasting
from farfield.validation.progress import Progress, silent
from farfield.validation.uniform_guess import warned

CLOSE = 0.02  # a difference of log ratios that is none
LOOKS = ("doubling", "one stage", "in order")
ORDER = 0.06  # a difference of log ratios that the order of far keys may make: of good models
# one in ten exceeds it (experiments/far_field_2)


@dataclass(frozen=True)
class Ratio:
    """The forecast at a length.

    Fields:
        length: tokens.
        log_ratio: of perplexities, to rows of the short length; None where the looks disagree.
        interval: 95 %, over the groups of the text that was read.
        elsewhere: on text like it that nobody has read; nine of ten such intervals hold for models
            of families that were left out.
        main, check, third: what each look says.
        agree: whether main and check differ by at most half the interval and `CLOSE`, and check
            and third by at most `ORDER`.
    """

    length: int
    log_ratio: float | None
    interval: tuple[float, float]
    elsewhere: tuple[float, float]
    main: float
    check: float
    third: float
    agree: bool

    @property
    def looks(self) -> tuple[float, float, float]:
        """What each look says."""
        return self.main, self.check, self.third


def ratio_of(
    length: int, times: float, main: np.ndarray, check: np.ndarray, third: np.ndarray
) -> Ratio:
    """From the log ratios of each group by the three looks, at `times` the short length.

    >>> near, far = np.array([0.1, 0.2]), np.array([0.1, 0.9])
    >>> ratio_of(64, 4, near, far, far).agree, ratio_of(64, 4, near, near, far).agree
    (True, False)
    """
    (mean, half), other, ordered = mean_and_half(main), float(check.mean()), float(third.mean())
    agree = abs(mean - other) <= half + CLOSE and abs(other - ordered) <= ORDER
    return Ratio(
        length,
        mean if agree else None,
        (mean - half, mean + half),
        elsewhere(mean, times),
        mean,
        other,
        ordered,
        agree,
    )


@dataclass(frozen=True, repr=False, kw_only=True)
class Foresight(Answer):
    """What a model loses on longer rows.

    Fields:
        to: the longest length, in tokens.
        length: of the rows that were read.
        log_ratio: at `to`; None where the looks disagree.
        ratios: at each doubling.
        pairs: of queries and keys a target row: by main setting, by check, in a real row.
        positions: what positions alone cost a model that turns its queries; None for another.
        blame: what causes it; none where it was not asked.
        worth: what far text gives; None where it was not asked, or no target repeats any.
        source: the text.
        guess: what is said of a model that has not learned.
    """

    VALUE: ClassVar[str] = "log_ratio"

    to: int
    length: int
    log_ratio: float | None
    ratios: tuple[Ratio, ...]
    pairs: tuple[int, int, int]
    positions: GapProbe | None = None
    blame: Blame | None = None
    worth: Worth | None = None
    source: str = ""
    guess: str = ""

    def span(self) -> tuple[float, float] | None:
        return None if self.log_ratio is None else self.ratios[-1].elsewhere

    def _blocks(self) -> Iterator[Block]:
        last = self.ratios[-1]
        if self.log_ratio is None:
            yield sentence(
                "{model}: no forecast at {to} tokens, since {why}.",
                model=self.subject,
                to=self.to,
                why=str(self.reason),
            )
        else:
            low, high = last.elsewhere
            yield sentence(
                "{model}: perplexity at {to} tokens is {ratio} times that in rows of {length} "
                "({low} to {high} on text like this).",
                self.label,
                model=self.subject,
                to=self.to,
                ratio=f"{math.exp(self.log_ratio):.3g}",
                length=self.length,
                low=f"{math.exp(low):.3g}",
                high=f"{math.exp(high):.3g}",
            )
        yield from warned(self.guess)
        alone = {} if self.positions is None else {g.length: g.cost for g in self.positions.gaps}
        parts = {
            r.length: (alone[r.length], r.main - alone[r.length]) for r in self.ratios if alone
        }
        more = ("positions alone", "the rest") if alone else ()
        yield table(
            ("tokens", "log ratio", "95 % here", "90 % elsewhere", "three looks", *more),
            [
                (
                    r.length,
                    "unknown" if r.log_ratio is None else f"{r.log_ratio:.3f}",
                    "{:.3f} to {:.3f}".format(*r.interval),
                    "{:.2f} to {:.2f}".format(*r.elsewhere),
                    ", ".join(f"{x:.3f}" for x in r.looks),
                    *(f"{x:+.3f}" for x in parts.get(r.length, ())),
                )
                for r in self.ratios
            ],
            numeric=(0, 1, 5, 6),
        )
        yield note(
            "Here is the text that was read, elsewhere text like it. Looks: {looks}.",
            looks=", ".join(LOOKS),
        )
        if self.positions is not None:
            yield self.positions.blocks()[0]
        if self.blame is not None:
            yield from self.blame.table()
        if self.worth is not None:
            yield from self.worth.table()
        yield Curve(
            "What the model loses, by length, as the three looks say.",
            "tokens",
            "log ratio",
            tuple(
                Line(name, tuple(float(r.length) for r in self.ratios), values)
                for name, values in zip(
                    LOOKS, zip(*(r.looks for r in self.ratios), strict=True), strict=True
                )
            ),
            log_x=True,
        )
        yield facts(
            text=self.source,
            queries_times_keys="{:,} by doubling, {:,} in one stage, {:,} in a real row".format(
                *self.pairs
            ),
        )
        yield note("No row longer than {length} tokens passed the model.", length=self.length)


def foresee(
    model: Any,
    text: Any = None,
    *,
    to: Any,
    length: Any = None,
    settings: Settings | None = None,
    causes: bool = False,
    device: Any = None,
    dtype: Any = None,
    progress: Progress = silent,
) -> Foresight:
    """The log ratio of perplexity on rows up to `to` tokens, from short rows.

    Args:
        model: a folder of a finished run, or of the library transformers.
        text: a file or a folder; None takes the text of the run, or the standard library's code.
        to: tokens of the longest row.
        length: tokens of the rows that are read; None takes the training length, at most 1,024.
        settings: how much is read, and how; None reads less of a model with long rows.
        causes: whether to add `blame` and `worth`.
        device: of torch, as of `mend`.
        dtype: of the weights, as of `mend`.
        progress: called as `progress(stage, done, total, note)`; the note is the newest number.

    Raises:
        InputError: a model without keys to be had, rows below 16 tokens, a text that is too short,
            `to` below the length or beyond the positions that there are.
    """
    subject = subject_of(model, text, length, settings, device, dtype)
    far, how = reach_of(subject, to), subject.settings
    lengths = Sampling().ends(subject.length, far)[1:]
    done, total, looks = 0, 3 * len(subject.groups), (how.main, how.check, how.third)
    work, each = timed(subject), [staged(subject, lengths, sampling) for sampling in looks]
    lasts = len(subject.groups) * how.rows * sum(work.of(*one) for one in each)
    read = f"{len(subject.groups)} groups of {how.rows} rows of {subject.length} tokens"
    progress(subject.first(f"about {lasting(lasts)}: {read}, three looks"), 0, 0)
    gaps = None
    if subject.turns():  # the first numbers come from it
        report = functools.partial(progress, "positions")
        gaps = probe(subject.network, subject.groups[:, 0], lengths, report)

    def step(note: str) -> None:
        nonlocal done
        done += 1
        progress("far field", done, total, note)

    results = [subject.ratios(lengths, sampling, step=step) for sampling in looks]
    ratios = tuple(
        ratio_of(n, n / subject.length, *(result[n] for result in results)) for n in lengths
    )
    reason = _disagreement(ratios[-1])
    main, check = (staged(subject, [far], sampling)[1] for sampling in looks[:2])
    return Foresight(
        status=Status.UNKNOWN if reason else Status.ENCLOSED,
        label=None if reason else Label.FORECAST,
        reason=reason,
        subject=subject.outline.name,
        to=far,
        length=subject.length,
        log_ratio=ratios[-1].log_ratio,
        ratios=ratios,
        pairs=(main, check, far * (far + 1) // 2),
        positions=gaps,
        blame=blame(subject, to=far) if causes else None,
        worth=worth(subject, far) if causes else None,
        source=subject.source,
        guess=subject.guess,
    )


def _disagreement(last: Ratio) -> Reason | None:
    """Why the looks give no forecast at a length; None where they agree."""
    if last.log_ratio is not None:
        return None
    why = (
        f"doubling says {last.main:.3f} and one stage {last.check:.3f}, further apart than "
        "the interval of {:.3f} to {:.3f}".format(*last.interval)
    )
    if abs(last.check - last.third) > ORDER:
        why = (
            f"one stage says {last.check:.3f} and far keys in order say {last.third:.3f}: their "
            "order matters, and doubling leaves it out"
        )
    return Reason(Code.SETTINGS_DISAGREE, why)
