"""Perplexity of a model on this machine by the length of its context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from farfield.theory.answers.answer import Answer, InputError, Label
from farfield.theory.answers.blocks import Block, note, sentence, table
from farfield.theory.answers.names import one_of
from farfield.theory.answers.number import natural, plural
from farfield.validation.checkpoints.folder import describe
from farfield.validation.checkpoints.loading import load
from farfield.validation.checkpoints.measured.segments import tokens_of
from farfield.validation.harness.measures.perplexity import Perplexity, perplexities
from farfield.validation.harness.mechanism import CAUSAL, Visibility
from farfield.validation.progress import Progress, silent

PROTOCOLS = ("last-token", "non-overlapping")


@dataclass(frozen=True, repr=False)
class PerplexityByLength(Answer):
    """Perplexity at each length, on the same targets; see `model_perplexity`.

    Fields:
        model: its name.
        trained: the training length that the configuration names; None if it does not.
        ratio: of the perplexity at the longest length to that at the base of the ratios.
        lengths: one entry a length.
        visible: which keys a query saw, in words; empty for all before it.
        text_source: what was read.
        label: `measured`.
    """

    VALUE: ClassVar[str] = "ratio"

    model: str
    trained: int | None
    ratio: float
    lengths: tuple[Perplexity, ...]
    visible: str = ""
    text_source: str = ""

    def blocks(self) -> Sequence[Block]:
        last = self.lengths[-1]
        rows = [
            (
                p.length,
                f"{p.perplexity:.5g}",
                f"{p.standard_error:.2g}",
                f"{p.ratio:.4g} ({p.ratio_low:.4g} to {p.ratio_high:.4g})",
            )
            for p in self.lengths
        ]
        return (
            sentence(
                "{model}{seen}: perplexity {value} with {length} of context, {ratio} times that "
                "with {base} ({protocol}, {targets}).",
                self.label,
                model=self.model,
                seen=f" under {self.visible}" if self.visible else "",
                value=f"{last.perplexity:.5g}",
                length=plural(last.length, "token"),
                ratio=f"{last.ratio:.4g}",
                base=last.base,
                protocol=last.protocol,
                targets=plural(last.targets, "target"),
            ),
            table(
                ("context", "perplexity", "standard error of nats", "ratio, 95 %"),
                rows,
                numeric=(0, 1, 2),
            ),
            note("Text: {text}. The targets are the same at every length.", text=self.text_source),
        )


def model_perplexity(
    model: Any,
    lengths: Sequence[Any],
    *,
    text: Any = None,
    protocol: str = "last-token",
    samples: int = 64,
    visible: Visibility = CAUSAL,
    progress: Progress = silent,
) -> PerplexityByLength:
    """Perplexity of a model at several lengths of context [S; C, 3.4].

    Args:
        model: a folder that `folder.describe` knows, or what it says of one.
        lengths: of the context, in tokens.
        text: a file, a folder or a `Corpus`; None takes the source code of the standard library.
            Its held-out part is read.
        protocol: `last-token`, every target from exactly so many tokens, or `non-overlapping`
            segments.
        samples: targets, or blocks of the longest length.
        visible: which keys a query sees.
        progress: told how far it is.

    Raises:
        InputError: as `folder.describe` and `loading.load`; a bad argument; a text too short; rows
            longer than the model's table of positions.
    """
    sizes = sorted({natural(n, "length") for n in lengths})
    if not sizes:
        raise InputError("give at least one length of the context")
    one_of(protocol, "protocol", PROTOCOLS)
    if not isinstance(samples, int) or samples < 1:
        raise InputError(f"samples {samples!r}: accepted is a whole number from 1")
    folder = describe(model)
    network = load(folder, tokens=sizes[-1])
    read = tokens_of(folder, text)

    def done(step: int, total: int) -> None:
        progress("lengths", step, total)

    last = int(protocol == "last-token")
    found = perplexities(
        network, read.held_out, sizes, samples, last, visible=visible, progress=done
    )
    return PerplexityByLength(
        folder.name,
        folder.trained,
        found[-1].ratio,
        found,
        "" if visible == CAUSAL else str(visible),
        read.source,
        label=Label.MEASURED,
        subject=folder.name,
    )
