"""Perplexity of a model by the length of its context; the protocols of others: strides, chunks.

*last-token*: every target is predicted from exactly as many tokens before it as the length says.
*non-overlapping*: every token of a segment is predicted from those before it in the segment.
*hf-stride* is the method of transformers' guide, *llama.cpp* that of its tool, *lm-eval* the
rolling windows of lm-evaluation-harness. All read the first tokens of the text.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from farfield.numerics.masks import CAUSAL, Mask
from farfield.theory.answers.answer import Answer, InputError, Label
from farfield.theory.answers.blocks import Block, note, sentence, table
from farfield.theory.answers.errors import refuse
from farfield.theory.answers.names import one_of
from farfield.theory.answers.number import natural, plural
from farfield.validation.harness.measure import (
    Perplexity,
    Sums,
    compared,
    led,
    perplexities,
    token_losses,
)
from farfield.validation.models.folder import describe
from farfield.validation.models.opened import Opened, OpenedRun, open_model
from farfield.validation.models.outline import ModelOutline
from farfield.validation.models.speed import foretell
from farfield.validation.models.text import TokenText, require_rows, text_of
from farfield.validation.progress import Progress, silent
from farfield.validation.uniform_guess import uniform_guess

OURS = {"last-token": 1, "non-overlapping": 0}
PROTOCOLS = (*OURS, "hf-stride", "llama.cpp", "lm-eval")

Scored = Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]
"""Rows with their targets, the place in the text of each target that counts, and its weight."""


@dataclass(frozen=True, repr=False)
class PerplexityByLength(Answer):
    """Perplexity at each length, on the same targets; see `model_perplexity`.

    Fields:
        model: its name.
        protocol: one of `PROTOCOLS`.
        trained: the training length that the configuration names; None if it does not.
        ratio: of the perplexity at the longest length to that at the base of the ratios.
        lengths: one entry a length.
        visible: which keys a query saw, in words; empty for all that its layer shows.
        text_source, first: the text, and what rows begin with.
        notes: further remarks.
        label: `measured`.
    """

    VALUE: ClassVar[str] = "ratio"

    model: str
    protocol: str
    trained: int | None
    ratio: float
    lengths: tuple[Perplexity, ...]
    visible: str = ""
    text_source: str = ""
    first: str = ""
    notes: tuple[str, ...] = ()

    def blocks(self) -> Sequence[Block]:
        last = self.lengths[-1]
        rows = [
            (
                p.length,
                f"{p.perplexity:.5g}",
                f"{p.error:.2g}",
                f"{p.ratio:.4g} ({p.low:.4g} to {p.high:.4g})",
            )
            for p in self.lengths
        ]
        return (
            sentence(
                "{model}{seen}: perplexity {value} with {length} of context, {ratio} times that "
                "with {base} ({protocol}, {targets}, {first}).",
                self.label,
                model=self.model,
                seen=f" under {self.visible}" if self.visible else "",
                value=f"{last.perplexity:.5g}",
                length=plural(last.length, "token"),
                ratio=f"{last.ratio:.4g}",
                base=last.base,
                protocol=self.protocol,
                targets=plural(last.targets, "target"),
                first=self.first,
            ),
            table(
                ("context", "perplexity", "standard error of nats", "ratio, 95 %"),
                rows,
                numeric=(0, 1, 2),
            ),
            note("Text: {text}.", text=self.text_source),
            *(note("{said}.", said=line[0].upper() + line[1:]) for line in self.notes),
        )


def model_perplexity(
    model: Any,
    lengths: Sequence[Any],
    *,
    text: Any = None,
    protocol: str = "last-token",
    samples: int = 64,
    bos: str = "auto",
    view: Mask = CAUSAL,
    device: Any = None,
    dtype: Any = None,
    progress: Progress = silent,
) -> PerplexityByLength:
    """Perplexity of a model at several lengths of context [S; C, 3.4].

    Args:
        model: a folder that `describe` knows, or what it says of one.
        lengths: of the context, in tokens.
        text: a file, a folder or a `Text`; None takes the source code of the standard library.
            Its held-out part is read.
        protocol: one of `PROTOCOLS`.
        samples: targets, or rows of the longest length.
        bos: one of `text.FIRST`.
        view: which keys a query sees.
        device: of torch; None for the CPU, or where a live model is.
        dtype: float32, bfloat16 or float16; None for float32, or that of a live model.
        progress: told how far it is.

    Raises:
        InputError: as `describe` and `open_model`; a bad argument; a text too short; rows longer
            than the model's table of positions.
    """
    sizes = sorted({natural(n, "length") for n in lengths})
    refuse(
        not sizes,
        "give at least one length of the context",
    )
    one_of(protocol, "protocol", PROTOCOLS)
    count, outline = natural(samples, "samples"), describe(model)
    opened = open_model(outline, tokens=sizes[-1], device=device, dtype=dtype)
    read = text_of(outline, text, bos)
    told, said = partial(progress, "lengths"), f"{count} rows at {plural(len(sizes), 'length')}"
    passes = [(_passes(protocol, count, sizes[-1], n), n) for n in sizes]
    foretell(opened, read.held_out, passes, said, progress)
    if protocol in OURS:
        how: dict[str, Any] = {"last": OURS[protocol], "count": count, "view": view}
        require_rows(read.held_out, sizes[-1])
        lines = perplexities(opened, read.held_out, sizes, first=read.bos, progress=told, **how)
    else:
        sums = _of_others(opened, read, sizes, count, protocol, view, told)
        lines = compared(protocol, sizes, sums, opened.length)
    guess = uniform_guess(min(line.nats for line in lines), opened.vocabulary)
    return PerplexityByLength(
        model=outline.name,
        protocol=protocol,
        trained=outline.trained,
        ratio=lines[-1].ratio,
        lengths=tuple(lines),
        visible=str(view),
        text_source=read.source,
        first=read.first,
        notes=(
            *[guess] * bool(guess),
            *hidden(outline, view),
            *(n for n in outline.notes if "the library" in n),
        ),
        label=Label.MEASURED,
        subject=outline.name,
    )


def hidden(model: ModelOutline, view: Mask) -> Iterator[str]:
    """What the windows of the model itself take from a view: a wider one is not claimed."""
    windows = [layer.width for layer in model.layers if layer.attends and layer.width is not None]
    if not windows or view == CAUSAL:
        return
    if min(windows) < (view.window or 0) or view.sinks:
        widths = ", ".join(map(str, sorted({*windows})))
        yield (
            f"{plural(len(windows), 'layer')} of the model with windows of {widths} keys hide keys "
            "beyond them, first keys too"
        )


def _passes(protocol: str, count: int, longest: int, length: int) -> float:
    """Rows of a length that are read."""
    if OURS.get(protocol):
        return count
    return count * longest / length * (2 if protocol == "hf-stride" else 1)


# -- protocols of others ---------------------------------------------------------------------------


def hf_stride(tokens: np.ndarray, length: int, bos: int | None) -> Scored:
    """Windows of a length that move by half a length; the tokens that are new in one are scored.

    As the guide of transformers computes it: the mean loss of a window counts as often as it has
    new tokens, less one.
    """
    stride, before = max(1, length // 2), 0
    for start in range(0, len(tokens), stride):
        end = min(start + length, len(tokens))
        new = min(end - before, end - start - 1)
        if new > 0:
            row, at = tokens[start:end], np.arange(end - new, end)
            share = (end - before - 1) / new if start else 1.0
            yield row, at - start, np.full(new, share)
        before = end
        if end == len(tokens):
            break


def llama_cpp(tokens: np.ndarray, length: int, bos: int | None) -> Scored:
    """Chunks of a length; each begins with the first token, and its second half is scored."""
    for start in range(0, len(tokens) - length + 1, length):
        row = led(tokens[None, start : start + length], bos)[0]
        at = np.arange(length // 2 + 1, length)
        yield row, at, np.ones(len(at))


def lm_eval(tokens: np.ndarray, length: int, bos: int | None) -> Scored:
    """Rolling windows: every token is scored once, the first ones after a prefix token."""
    if bos is None:
        raise InputError(
            "protocol 'lm-eval' puts a first token before the text; accepted: bos 'auto' of a "
            "tokenizer that has one, or 'yes'"
        )
    first = tokens[:length]
    yield np.concatenate([[bos], first]), np.arange(1, len(first) + 1), np.ones(len(first))
    done = len(first)
    while done < len(tokens):
        new = min(len(tokens) - done, length)
        end = done + new
        row = tokens[end - length - 1 : end]
        yield row, np.arange(len(row) - new, len(row)), np.ones(new)
        done = end


WINDOWS = {"hf-stride": hf_stride, "llama.cpp": llama_cpp, "lm-eval": lm_eval}
"""What each protocol scores: rows of tokens, places of the scored ones, and their weights."""


def _of_others(
    opened: Opened | OpenedRun,
    read: TokenText,
    sizes: Sequence[int],
    count: int,
    protocol: str,
    view: Mask,
    progress: Callable[[int, int], None],
) -> list[Sums]:
    """Weighted sums of nats, and of weights, of each stretch of the longest length."""
    longest = sizes[-1]
    tokens = read.held_out[: count * longest].astype(np.int64)
    require_rows(tokens, longest - 1)
    if protocol != "lm-eval" and read.bos is not None:
        tokens = np.concatenate([[read.bos], tokens])
    sums = []
    for step, length in enumerate(sizes):
        blocks = max(2, len(tokens) // longest)
        nats, weights = np.zeros(blocks), np.zeros(blocks)
        parts = list(WINDOWS[protocol](tokens, length, read.bos))
        places = itertools.accumulate((len(at) for _, at, _ in parts), initial=0)
        for done, ((row, at, weight), place) in enumerate(zip(parts, places, strict=False), 1):
            losses = token_losses(opened, row[None], view)[0][at - 1]
            block = min(place * blocks // len(tokens), blocks - 1)
            nats[block] += losses @ weight
            weights[block] += weight.sum()
            progress(step * len(parts) + done, len(sizes) * len(parts))
        sums.append((nats, weights))
    return sums
