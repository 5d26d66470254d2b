"""The smallest window that a text bears: for all layers alike, and layer by layer.

A window is enough where perplexity rises by at most a given share, with the upper end of the paired
95 % interval. Both parts of the comparison predict the same targets, those of the second half of
each row. Widths are found by bisection. The plan by layer goes through the layers from the one that
needs least, gives each an equal part of the share, and is checked on a part of the text that it was
not fitted on.

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
import torch

from farfield.theory.answers.answer import Answer, Label, Status
from farfield.theory.answers.blocks import Block, Curve, Line, facts, note, sentence, table
from farfield.theory.answers.errors import refuse
from farfield.theory.answers.names import one_of
from farfield.theory.answers.notation import code
from farfield.theory.answers.number import inside, natural, plural, share
from farfield.validation.harness.measure import ratio_of, token_losses
from farfield.validation.json_files import Book
from farfield.validation.models.cache import Serving, row_cache, size_text
from farfield.validation.models.empirical import attention_fields, bias_field
from farfield.validation.models.folder import describe
from farfield.validation.models.layers import ModelOutline, keys_text
from farfield.validation.models.opened import ALL, POSITIONS, Opened, OpenedRun, View, open_model
from farfield.validation.models.text import TokenText, rows_of, text_of
from farfield.validation.models.transformers_config import library_config
from farfield.validation.models.weights import stamped
from farfield.validation.progress import Progress, silent

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


AS_IS, PLAN = "as it is", "plan by layer"


@dataclass(frozen=True, repr=False)
class SmallestWindow(Answer):
    """The smallest windows within a budget of perplexity; see `smallest_window`.

    Fields:
        model: its name.
        loss: the share by which perplexity may rise.
        sliding_window: the smallest width for all layers; infinite where none below the row is
            enough.
        plan: a width for each layer; None for a layer that keeps what it sees.
        need: the width that each layer needs alone, the others being free, for an equal part of
            the loss.
        field: beside it, how far the layer's bias sees, or its attention; `field_name`: which.
        costs: by name what each costs: the model `as it is`, `one window` for all layers, without
            and with first keys, the `plan by layer`, and one window with as many keys as the plan.
        setting: the plan as keys of `config.json`, where the library's class has them.
        length, rows, text_source, first: the text and its beginning.
        label: `measured`.
    """

    VALUE: ClassVar[str] = "sliding_window"

    model: str
    loss: sympy.Rational
    sliding_window: float
    plan: tuple[int | None, ...]
    need: tuple[int, ...]
    field: tuple[float, ...]
    field_name: str
    costs: dict[str, Cost]
    setting: str
    length: int
    rows: int
    text_source: str
    first: str

    def _blocks(self) -> Iterator[Block]:
        text = "no window below {length} tokens costs at most {loss} of perplexity"
        if self.status is Status.EXACT:
            text = "{setting} = {width} costs at most {loss} of perplexity on this text"
        planned = any(width is not None for width in self.plan)
        text += (
            "; a plan by layer keeps {kept} of the keys" if planned else "; nor in single layers"
        )
        yield sentence(
            "{model}: " + text + ".",
            self.label,
            model=self.model,
            length=self.length,
            setting=code("sliding_window"),
            width=keys_text(self.sliding_window),
            loss=share(self.loss),
            kept=f"{self.costs[PLAN].keys / max(1, self.costs[AS_IS].keys):.0%}",
        )
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
                    size_text(cost.bytes),
                    f"{cost.perplexity:.5g}",
                    f"{cost.ratio:.4f} ({cost.low:.4f} to {cost.high:.4f})",
                    f"{cost.held_out:.4f} ({cost.held_low:.4f} to {cost.held_high:.4f})",
                )
                for name, cost in self.costs.items()
            ],
            f"Rows of {self.length} tokens; ratios with 95 % intervals, paired",
            numeric=(1, 2, 4),
        )
        yield from self._by_layer()
        if self.setting:
            yield note("As keys of config.json: {setting}", setting=code(f"`{self.setting}`"))
        rows = f"{plural(self.rows, 'row')} in each part, {self.first}"
        yield facts(text=f"{self.text_source}; {rows}")
        yield note(
            "Targets are the second half of each row, so that each is predicted from {half} tokens "
            "or more. Rows are those of this text: another one may need more.",
            half=self.length // 2,
        )

    def _by_layer(self) -> Iterator[Block]:
        """What each layer needs, drawn and listed."""
        layers = tuple(float(k) for k in range(1, len(self.need) + 1))
        yield Curve(
            f"Keys that each layer needs alone for an equal part of {share(self.loss)} of "
            "perplexity, beside how far it looks.",
            "layer",
            "keys",
            (
                Line("need", layers, tuple(map(float, self.need))),
                Line(self.field_name, layers, self.field),
            ),
            marks=(),
        )
        yield table(
            ("layer", "needs alone", "plan", self.field_name),
            [
                (k, self.need[k - 1], "all" if w is None else w, f"{f:.0f}")
                for k, (w, f) in enumerate(zip(self.plan, self.field, strict=True), 1)
            ],
            numeric=(0, 1, 2, 3),
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
        self.stage, self.book = "windows", Book(place)
        each = len(_grid(self.length)).bit_length()  # a bisection asks so often
        self.total = 2 * self.length.bit_length() + 2 * each * len(opened.model.layers) + 10

    def nats(self, view: View, part: int) -> np.ndarray:
        """Mean nats of each row of a part."""

        def measure() -> list[float]:
            losses = token_losses(self.opened, self.parts[part], view, self.half)
            return list(losses.mean(1))

        key, made = json.dumps([part, view.widths, view.sinks, view.in_cache]), len(self.book.kept)
        nats = np.array(self.book.of(key, measure))
        if len(self.book.kept) > made:
            self.progress(self.stage, min(len(self.book.kept), self.total), self.total)
        return nats

    def ratio(self, view: View, part: int = 0) -> tuple[float, float, float]:
        """The ratio of perplexities to that without windows, and its interval."""
        one = np.ones(len(self.parts[part]))
        return ratio_of((self.nats(view, part), one), (self.nats(ALL, part), one))

    def smallest(
        self, candidates: Sequence[int], view: Callable[[int], View], most: float
    ) -> int | None:
        """The first of several widths, in ascending order, that costs at most so much, by
        bisection; None where none does."""
        low, high = -1, len(candidates)
        while high - low > 1:
            middle = (low + high) // 2
            enough = self.ratio(view(candidates[middle]))[2] <= 1 + most
            low, high = (low, middle) if enough else (middle, high)
        return candidates[high] if high < len(candidates) else None

    def cost(self, view: View = ALL, width: int | None = None) -> Cost:
        """What windows cost on both parts, and what they keep."""
        row = row_cache(narrowed(self.opened.model, view), self.length, Serving())
        perplexity = math.exp(float(self.nats(view, 0).mean()))
        ratios = self.ratio(view), self.ratio(view, 1)
        return Cost(width, row.keys, row.least, perplexity, *ratios[0], *ratios[1])


def narrowed(model: ModelOutline, view: View) -> list[Any]:
    """The layers of a model under windows."""
    layers = []
    for k, layer in enumerate(model.layers):
        width = view.width(k)
        if layer.attends and width is not None:
            width += view.sinks
            width = width if layer.width is None else min(width, layer.width)
            layer = dataclasses.replace(layer, width=width)
        layers.append(layer)
    return layers


def smallest_window(
    model: Any,
    text: Any = None,
    *,
    loss: Any = "1/100",
    length: Any = None,
    segments: Any = 16,
    bos: str = "auto",
    positions: str = "text",
    folder: str | os.PathLike[str] = "out/window",
    progress: Progress = silent,
) -> SmallestWindow:
    """The smallest sliding window within a budget of perplexity, and a plan by layer.

    Args:
        model: a folder of the library transformers or of a finished run, or what `describe` says.
        text: a file, a folder or a `Text`; None takes the source code of the standard library.
            The first half of its held-out part is fitted on, the second half checks.
        loss: the share by which perplexity may rise, exact.
        length: tokens a row; None takes the training length, at most 1024.
        segments: rows of each half.
        bos: one of `text.FIRST`.
        positions: `text` or `cache`: where the first keys that are kept stand.
        folder: where measurements are written down; a search that was stopped goes on from there.
        progress: told of each measurement.

    Raises:
        InputError: as `describe` and `open_model`; its attention cannot be narrowed; a bad
            argument; a text too short.
    """
    one_of(positions, "positions", POSITIONS)
    most, count = inside(loss, "loss", "(0, 1)"), natural(segments, "segments")
    outline = describe(model)
    size = min(outline.trained or 1024, 1024) if length is None else natural(length, "length")
    refuse(
        size < 4 or count < 2,
        f"rows of {size} tokens, {count} of them; accepted: rows of 4 or more, at least 2",
    )
    opened, read = open_model(outline, tokens=size), text_of(outline, text, bos)
    halves = np.split(read.held_out, [len(read.held_out) // 2])
    parts = tuple(rows_of(read, part, count, size) for part in halves)
    values = json.dumps(outline.values, sort_keys=True, default=str).encode()
    place = Path(folder) / stamped(outline, values, *(part.tobytes() for part in parts))
    search = Search(opened, (parts[0], parts[1]), place, progress)
    return _found(search, read, most, positions == "cache")


def _found(search: Search, read: TokenText, most: sympy.Rational, in_cache: bool) -> SmallestWindow:
    outline, length, budget = search.opened.model, search.length, float(most)

    def sunk(width: int) -> View:
        return View(width, SINKS, in_cache=in_cache)

    search.stage = "one window for all layers"
    width = search.smallest(range(1, length), View, budget)
    near = search.smallest(range(1, max(2, length - SINKS)), sunk, budget)
    search.stage = "layer by layer"
    need, plan = _plan(search, budget)
    costs = {AS_IS: search.cost()}
    if width is not None:
        costs["one window"] = search.cost(View(width), width)
    if near is not None:
        costs[f"one window, {SINKS} first keys"] = search.cost(sunk(near), near)
    costs[PLAN] = by_layer = search.cost(View(tuple(plan)))
    if any(w is not None for w in plan):
        keys = (
            (w, row_cache(narrowed(outline, View(w)), length, Serving()).keys)
            for w in range(1, length)
        )
        same = next((w for w, kept in keys if kept >= by_layer.keys), None)
        if same is not None:
            costs["one window, as many keys"] = search.cost(View(same), same)
    field, name = _field(search)
    return SmallestWindow(
        model=outline.name,
        loss=most,
        sliding_window=math.inf if width is None else width,
        plan=tuple(plan),
        need=tuple(need),
        field=field,
        field_name=name,
        costs=costs,
        setting=_setting(outline, plan),
        length=length,
        rows=len(search.parts[0]),
        text_source=read.source,
        first=read.first,
        status=Status.INFINITE if width is None else Status.EXACT,
        label=Label.MEASURED,
        subject=outline.name,
    )


def _grid(length: int) -> list[int]:
    """Widths of 2, 3, 4, 6, 8, 12 and so on, below a length."""
    widths = sorted({1, *(m << k for k in range(length.bit_length()) for m in (2, 3))})
    return [w for w in widths if w < length]


def _plan(search: Search, budget: float) -> tuple[list[int], list[int | None]]:
    """What each layer needs alone, and the width that the plan gives it."""
    layers, length = search.opened.model.layers, search.length
    attending = [k for k, layer in enumerate(layers) if layer.attends and not layer.shares]
    grid, each = _grid(length), budget / max(1, len(attending))
    need = [0] * len(layers)

    def with_width(plan: Sequence[int | None], layer: int) -> Callable[[int], View]:
        return lambda w: View(tuple(w if k == layer else v for k, v in enumerate(plan)))

    free: list[int | None] = [None] * len(layers)
    for layer in attending:
        full = layers[layer].width or length
        fits = [w for w in grid if w < full]
        width = search.smallest(fits, with_width(free, layer), each)
        need[layer] = min(full, length) if width is None else width
    plan = list(free)
    for turn, layer in enumerate(sorted(attending, key=lambda k: (need[k], k)), 1):
        full = layers[layer].width or length
        fits = [w for w in grid if w < full]
        plan[layer] = search.smallest(fits, with_width(plan, layer), turn * each)
    return need, plan


def _field(search: Search) -> tuple[tuple[float, ...], str]:
    """How far each layer looks: its bias, by the widest head, or its attention on the text."""
    outline, length = search.opened.model, search.length
    if outline.biased:
        last = torch.tensor([length - 1])
        fields = (
            length if layer.encoding is None else float(bias_field(layer, last, 0.01).max())
            for layer in outline.layers
        )
        return tuple(fields), "TRF(1/100) of the widest head"
    by_layer, _ = attention_fields(search.opened, search.parts[0][:2], 0.01, length)
    means = {k: float(field.mean()) for k, field in by_layer.items()}
    return tuple(means.get(k, 0.0) for k in range(len(outline.layers))), "attention field (1/100)"


def _setting(outline: ModelOutline, plan: Sequence[int | None]) -> str:
    """The plan as keys of a configuration, with one width for all layers that have one; empty
    where the library's class has no such keys."""
    widths = [w for w in plan if w is not None]
    if not widths or outline.kind == "farfield":
        return ""
    config, _, _ = library_config(outline.path, outline.values)
    if config is None:  # the header of a GGUF file has other keys
        return ""
    text = config.get_text_config(decoder=True)
    if not all(hasattr(text, key) for key in ("sliding_window", "layer_types")):
        return ""
    kinds = [
        "sliding_attention" if w is not None or layer.width is not None else kind
        for w, layer, kind in zip(plan, outline.layers, text.layer_types or [], strict=True)
    ]
    widest = max([*widths, *(o.width for o in outline.layers if o.width is not None)])
    return json.dumps({"sliding_window": widest, "layer_types": kinds})
