"""The smallest window that a text bears, the same for all layers.

A window is enough where perplexity rises by at most a given share, with the upper end of the paired
95 % interval. Both parts of the comparison predict the same targets, those of the second half of
each row. Widths are found by bisection, and checked on a part of the text that they were not fitted
on.

Every measurement is written down as it is made, so that a search that was stopped goes on.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import sympy

from farfield.numerics.masks import CAUSAL, Mask
from farfield.theory.answers.answer import Answer, Label, Status
from farfield.theory.answers.blocks import Block, facts, note, sentence, table
from farfield.theory.answers.errors import refuse
from farfield.theory.answers.notation import code
from farfield.theory.answers.number import inside, natural, plural, share
from farfield.validation.harness.measure import ratio_of, token_losses
from farfield.validation.json_files import Book
from farfield.validation.models.cache import Serving, bytes_text, row_cache
from farfield.validation.models.folder import describe
from farfield.validation.models.opened import Opened, OpenedRun, open_model
from farfield.validation.models.outline import ModelOutline, keys_text
from farfield.validation.models.speed import foretell
from farfield.validation.models.text import TokenText, rows_of, text_of
from farfield.validation.models.weights import stamped
from farfield.validation.progress import Progress, silent
from farfield.validation.uniform_guess import uniform_guess, warned

SINKS = 4
"""First keys that are kept besides, where they are."""


@dataclass(frozen=True)
class Cost:
    """What windows cost: a ratio of perplexities with its 95 % interval, and keys of a row.

    Fields:
        width: keys of each layer, first ones apart; None where layers differ.
        keys, bytes: that a row of the measured length takes over all layers, in 16 bits.
        perplexity: on the part that windows were fitted on.
        ratio, low, high: to the perplexity there without them.
        held_out, held_low, held_high: the same on the other part.
    """

    width: int | None
    keys: int
    bytes: float
    perplexity: float
    ratio: float
    low: float
    high: float
    held_out: float
    held_low: float
    held_high: float


AS_IS = "as it is"


@dataclass(frozen=True, repr=False)
class SmallestWindow(Answer):
    """The smallest window within a budget of perplexity; see `smallest_window`.

    Fields:
        model: its name.
        loss: the share by which perplexity may rise.
        sliding_window: the smallest width for all layers; infinite where none below the row is
            enough.
        costs: by name what each costs: the model `as it is`, and `one window` for all layers,
            without and with first keys.
        length, rows, text_source, first: the text and its beginning.
        guess: a warning where the model has not learned; empty where it has.
        label: `measured`.
    """

    VALUE: ClassVar[str] = "sliding_window"

    model: str
    loss: sympy.Rational
    sliding_window: float
    costs: dict[str, Cost]
    length: int
    rows: int
    text_source: str
    first: str
    guess: str = ""

    def _blocks(self) -> Iterator[Block]:
        text = "no window below {length} tokens costs at most {loss} of perplexity"
        if self.status is Status.EXACT:
            text = "{setting} = {width} costs at most {loss} of perplexity on this text"
        yield sentence(
            "{model}: " + text + ".",
            self.label,
            model=self.model,
            length=self.length,
            setting=code("sliding_window"),
            width=keys_text(self.sliding_window),
            loss=share(self.loss),
        )
        yield from warned(self.guess)
        yield table(
            (
                "windows",
                "keys of each",
                "keys",
                "cache",
                "perplexity",
                "ratio",
                "on the other part",
            ),
            [
                (
                    name,
                    "-" if cost.width is None else cost.width,
                    cost.keys,
                    bytes_text(cost.bytes),
                    f"{cost.perplexity:.5g}",
                    f"{cost.ratio:.4f} ({cost.low:.4f} to {cost.high:.4f})",
                    f"{cost.held_out:.4f} ({cost.held_low:.4f} to {cost.held_high:.4f})",
                )
                for name, cost in self.costs.items()
            ],
            f"Rows of {self.length} tokens; ratios with 95 % intervals, paired",
            numeric=(1, 2, 4),
        )
        rows = f"{plural(self.rows, 'row')} in each part, {self.first}"
        yield facts(text=f"{self.text_source}; {rows}")
        yield note(
            "Targets are the second half of each row, so that each is predicted from {half} tokens "
            "or more. Rows are those of this text: another one may need more.",
            half=self.length // 2,
        )


class Search:
    """Measurements of one model on one text, each made once and kept in a file.

    Args:
        opened: the model.
        parts: rows that windows are fitted on, and rows that they are checked on.
        place: of the file.
        progress: told of each measurement.
    """

    def __init__(
        self,
        opened: Opened | OpenedRun,
        parts: tuple[np.ndarray, np.ndarray],
        place: Path,
        progress: Progress,
    ) -> None:
        self.opened, self.parts, self.progress = opened, parts, progress
        self.length = parts[0].shape[1] - 1
        self.half = self.length - self.length // 2
        self.book, self.total = Book(place), 2 * self.length.bit_length() + 6
        self.before = len(self.book.kept)

    def nats(self, view: Mask, part: int) -> np.ndarray:
        """Mean nats of each row of a part."""

        def read(done: int, of: int) -> None:
            if done < of:
                self._report(f"row {done} of {of}")

        def measure() -> list[float]:
            rows = self.parts[part]
            if len(self.book.kept) == self.before:
                self._foretell(len(rows))
            return [*token_losses(self.opened, rows, view, self.half, progress=read).mean(1)]

        made = len(self.book.kept)
        key = json.dumps([part, view.window, view.sinks])
        nats = np.array(self.book.of(key, measure))
        if len(self.book.kept) > made:
            seen = "all keys" if view.window is None else f"a window of {view.window}"
            self._report(f"perplexity {math.exp(float(nats.mean())):.4g} with {seen}")
        return nats

    def _foretell(self, count: int) -> None:
        """Say how long the search takes at most, before the first row is read."""
        left = max(0, self.total - self.before)
        said = f"at most {left} windows on {count} rows of {self.length} tokens"
        rows = [(left * count, self.length)]
        foretell(self.opened, self.parts[0].ravel(), rows, said, self.progress)

    def _report(self, note: str) -> None:
        """Say how many measurements are made, and a note on the newest."""
        self.progress("windows", min(len(self.book.kept), self.total), self.total, note)

    def ratio(self, view: Mask, part: int = 0) -> tuple[float, float, float]:
        """The ratio of perplexities to that without windows, and its interval."""
        one = np.ones(len(self.parts[part]))
        return ratio_of((self.nats(view, part), one), (self.nats(CAUSAL, part), one))

    def smallest(
        self, candidates: Sequence[int], view: Callable[[int], Mask], most: float
    ) -> int | None:
        """The first of several widths, in ascending order, that costs at most so much, by
        bisection; None where none does."""
        low, high = -1, len(candidates)
        while high - low > 1:
            middle = (low + high) // 2
            enough = self.ratio(view(candidates[middle]))[2] <= 1 + most
            low, high = (low, middle) if enough else (middle, high)
        return candidates[high] if high < len(candidates) else None

    def cost(self, view: Mask = CAUSAL, width: int | None = None) -> Cost:
        """What windows cost on both parts, and what they keep."""
        row = row_cache(narrowed(self.opened.model, view), self.length, Serving())
        (ratio, low, high), other = self.ratio(view), self.ratio(view, 1)
        return Cost(
            width=width,
            keys=row.keys,
            bytes=row.least,
            perplexity=math.exp(float(self.nats(view, 0).mean())),
            ratio=ratio,
            low=low,
            high=high,
            held_out=other[0],
            held_low=other[1],
            held_high=other[2],
        )


def narrowed(model: ModelOutline, view: Mask) -> list[Any]:
    """The layers of a model under windows."""
    if view.window is None:
        return [*model.layers]
    width = view.window + view.sinks
    return [
        dataclasses.replace(layer, width=min(width, layer.width or width))
        if layer.attends
        else layer
        for layer in model.layers
    ]


def smallest_window(
    model: Any,
    text: Any = None,
    *,
    loss: Any = "1/100",
    length: Any = None,
    segments: Any = 16,
    bos: str = "auto",
    device: Any = None,
    dtype: Any = None,
    folder: str | os.PathLike[str] = "out/window",
    progress: Progress = silent,
) -> SmallestWindow:
    """The smallest sliding window within a budget of perplexity.

    Args:
        model: a folder of the library transformers or of a finished run, or what `describe` says.
        text: a file, a folder or a `Text`; None takes the source code of the standard library.
            The first half of its held-out part is fitted on, the second half checks.
        loss: the share by which perplexity may rise, exact.
        length: tokens a row; None takes the training length, at most 1024.
        segments: rows of each half.
        bos: one of `text.FIRST`.
        device: of torch; None for the CPU, or where a live model is.
        dtype: float32, bfloat16 or float16; None for float32, or a live model's own.
        folder: where measurements are written down; a search that was stopped goes on from there.
        progress: told of each measurement.

    Raises:
        InputError: as `describe` and `open_model`; its attention cannot be narrowed; a bad
            argument; a text too short.
    """
    most, count = inside(loss, "loss", "(0, 1)"), natural(segments, "segments")
    outline = describe(model)
    size = min(outline.trained or 1024, 1024) if length is None else natural(length, "length")
    refuse(
        size < 4 or count < 2,
        f"rows of {size} tokens, {count} of them; accepted: rows of 4 or more, at least 2",
    )
    opened = open_model(outline, tokens=size, device=device, dtype=dtype)
    read = text_of(outline, text, bos)
    halves = np.split(read.held_out, [len(read.held_out) // 2])
    parts = tuple(rows_of(read, part, count, size) for part in halves)
    kind = str(next(opened.network.parameters()).dtype)
    values = json.dumps([kind, outline.values], sort_keys=True, default=str).encode()
    place = Path(folder) / stamped(outline, values, *(part.tobytes() for part in parts))
    search = Search(opened, (parts[0], parts[1]), place, progress)
    return _found(search, read, most)


def _found(search: Search, read: TokenText, most: sympy.Rational) -> SmallestWindow:
    length, budget = search.length, float(most)

    def sunk(width: int) -> Mask:
        return Mask(width, sinks=SINKS)

    width = search.smallest(range(1, length), Mask, budget)
    near = search.smallest(range(1, max(2, length - SINKS)), sunk, budget)
    costs = {AS_IS: search.cost()}
    if width is not None:
        costs["one window"] = search.cost(Mask(width), width)
    if near is not None:
        costs[f"one window, {SINKS} first keys"] = search.cost(sunk(near), near)
    return SmallestWindow(
        model=search.opened.model.name,
        loss=most,
        sliding_window=math.inf if width is None else width,
        costs=costs,
        length=length,
        rows=len(search.parts[0]),
        text_source=read.source,
        first=read.first,
        guess=uniform_guess(math.log(costs[AS_IS].perplexity), search.opened.vocabulary),
        status=Status.INFINITE if width is None else Status.EXACT,
        label=Label.MEASURED,
        subject=search.opened.model.name,
    )
