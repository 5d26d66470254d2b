"""What a model does on segments of a text, layer by layer and as a whole.

`through_layers` is the one way into a layer: every measurement is a function of its queries, keys
and values. Bounds of logits and values are half the widest range of the logits in a row, and the
radius of the values about their mean. They are maxima over the text, which another text may exceed;
`norms` has bounds for every text.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from farfield.theory.answers.answer import InputError
from farfield.theory.answers.number import natural
from farfield.validation.checkpoints.configured import RUN, Folder, HeadBounds
from farfield.validation.checkpoints.folder import describe
from farfield.validation.checkpoints.guarded import opened
from farfield.validation.checkpoints.loading import load
from farfield.validation.harness.attention import LogitTransform, Path, fused, with_hook
from farfield.validation.harness.corpus import Corpus, corpus, samples_of
from farfield.validation.harness.measures.perplexity import LanguageModel, require_finite
from farfield.validation.harness.measures.receptive_fields import resampled
from farfield.validation.harness.mechanism import CAUSAL, Visibility
from farfield.validation.optional import library
from farfield.validation.progress import Progress, silent

_TOKENIZER = 256 << 20  # bytes
_TEXT_BYTES = 2 << 20  # of each part of a text: seconds of a tokeniser, and more than is measured
_SCORES = 1 << 22  # numbers of scores held at a time

View = Visibility | Callable[[], Path]
"""Which keys are seen: by a rule for all heads, or by what makes a path that leaves keys out."""


@dataclass(frozen=True)
class Segments:
    """A loaded model, and segments of the held-out part of a text in its tokens.

    Args:
        folder: what its folder says.
        network: the model.
        read: the text.
        length: tokens of a segment.
        rows: int64, shape (segments, length + 1), as `corpus.samples_of` gives them.
    """

    folder: Folder
    network: LanguageModel
    read: Corpus
    length: int
    rows: np.ndarray


def segments_of(model: Any, text: Any, length: Any, segments: Any) -> Segments:
    """Load a model and read segments of a text.

    Args:
        model: a folder that `folder.describe` knows, or what it says of one.
        text: a file, a folder or a `Corpus`; None takes the source code of the standard library.
        length: tokens a segment; None takes the training length, at most 1024.
        segments: how many.

    Raises:
        InputError: as `folder.describe` and `loading.load`; a bad argument; a text too short.
    """
    size = None if length is None else natural(length, "length")
    count, folder = natural(segments, "segments"), describe(model)
    size = size or min(folder.trained or 1024, 1024)
    network, read = load(folder, tokens=size), tokens_of(folder, text)
    return Segments(folder, network, read, size, samples_of(read.held_out, count, size))


def tokens_of(folder: Folder, text: Any) -> Corpus:
    """A text, a `Corpus` or what `corpus` reads, in the tokens of a model; of each part at most
    2 MiB are taken.

    A folder with tokenizer.json is read by the library tokenizers; one without must have a
    vocabulary of 256, and takes bytes.

    Raises:
        InputError: the folder has no tokenizer, or one that does not fit the model.
    """
    text = text if isinstance(text, Corpus) else corpus(text)
    if text.vocabulary == folder.shape.vocabulary:
        return text
    name = "tokenizer.json"
    if folder.kind == RUN or not (folder.path / name).exists() or text.unit != "byte":
        raise InputError(
            f"model {folder.name!r} has {folder.shape.vocabulary} tokens, {text.source} has "
            f"{text.vocabulary}; accepted: a text of bytes for a folder with tokenizer.json, or "
            "the tokens it was trained on"
        )
    tokenizers = library("tokenizers", "a text in the tokens of a model", "hf")
    try:
        with opened(folder.path, name, most=_TOKENIZER) as file:
            coder = tokenizers.Tokenizer.from_buffer(file.read())
        coder.no_truncation()  # a text is read whole, whatever the tokenizer was saved with
        coder.no_padding()
    except InputError:
        raise
    except Exception as error:  # the library raises Exception itself
        why = " ".join(str(error).split())[:160]
        raise InputError(f"model {folder.name!r}: tokenizer.json: {why}") from None
    parts = []
    for part in (text.train, text.held_out):
        words = part[:_TEXT_BYTES].tobytes().decode(errors="replace")
        parts.append(np.array(coder.encode(words, add_special_tokens=False).ids, dtype=np.uint32))
    largest = max((int(p.max()) for p in parts if len(p)), default=0)
    if largest >= folder.shape.vocabulary:
        raise InputError(
            f"model {folder.name!r}: tokenizer.json gives token {largest}, the model has "
            f"{folder.shape.vocabulary}; accepted: the tokenizer of the model"
        )
    read = min(len(text.held_out), _TEXT_BYTES)
    return Corpus(
        f"{text.source}, in tokens of {folder.name}",
        parts[0],
        parts[1],
        text.files,
        text.split,
        folder.shape.vocabulary,
        read / max(1, len(parts[1])),
    )


@dataclass(frozen=True)
class LayerRows:
    """What one layer that attends is given on one segment.

    Args:
        layer: of those that attend, from 0.
        query, key, value: in float64, shape (heads, length, size).
        visible: which keys a query sees.
        weighting: what becomes of the logits.
        table: of the bias at each distance, shape (heads or 1, length); None without.
    """

    layer: int
    query: Tensor
    key: Tensor
    value: Tensor
    visible: Visibility
    weighting: LogitTransform
    table: Tensor | None

    def logits(self, at: Tensor, keys: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Content logits and biases of some rows, and what these see of so many first keys or all:
        shapes (heads, rows, keys), the last two with fewer dimensions or heads 1 where all share
        them."""
        key = self.key[:, :keys]
        content = self.query[:, at] @ key.transpose(-2, -1) / math.sqrt(key.shape[-1])
        places = torch.arange(key.shape[1])
        prior = torch.zeros(1, len(at), len(places), dtype=torch.float64)
        if self.table is not None:
            prior = self.table[:, (at[:, None] - places).clamp(min=0)]
        return self.weighting.content(content), prior, self.visible.sees(at[:, None], places)

    def blocks(self) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """All rows, so many at a time: their positions, content logits, biases, and which keys have
        a weight at all."""
        heads, length, _ = self.query.shape
        for at in torch.arange(length).split(max(1, _SCORES // (heads * length))):
            content, prior, seen = self.logits(at, int(at[-1]) + 1)
            yield at, content, prior, seen & (prior > -math.inf)


@torch.no_grad()
def through_layers(
    model: LanguageModel,
    rows: np.ndarray,
    measure: Callable[[LayerRows], Any],
    stage: str,
    report: Progress,
) -> dict[int, list[Any]]:
    """Full attention, one segment at a time: what `measure` finds in each layer that attends, from
    0, one entry a segment."""
    table, found = model.bias_table(rows.shape[1] - 1), dict[int, list[Any]]()
    for done, row in enumerate(torch.from_numpy(rows[:, :-1]), 1):
        layers = itertools.count()

        def look(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> None:
            layer, parts = next(layers), [x[0].double().cpu() for x in (query, key, value)]  # noqa: B023
            given = LayerRows(layer, parts[0], parts[1], parts[2], rest[0], rest[1], table)
            found.setdefault(layer, []).append(measure(given))

        model.hidden(model.embed(row[None].to(model.device)), CAUSAL, with_hook(look))
        report(stage, done, len(rows))
    return found


def text_bounds(
    model: LanguageModel, rows: np.ndarray, report: Progress = silent
) -> list[tuple[HeadBounds, ...]]:
    """Maxima over segments, one tuple of heads a layer: half the range of the logits that a row
    sees, over all its rows, and the radius of the values about their mean in the first segment.

    Args:
        model: the model.
        rows: int64, shape (segments, length + 1), as `corpus.samples_of` gives them.
        report: called as `report(stage, done, total)`.
    """
    centres: dict[int, Tensor] = {}

    def measure(given: LayerRows) -> Tensor:
        centre = centres.setdefault(given.layer, given.value.mean(1, keepdim=True))
        widest = torch.zeros(len(given.value), dtype=torch.float64)
        for _, content, _, seen in given.blocks():
            high = content.masked_fill(~seen, -math.inf).amax(-1)
            low = content.masked_fill(~seen, math.inf).amin(-1)
            widest = torch.maximum(widest, (high - low).amax(-1) / 2)
        return torch.stack([widest, (given.value - centre).norm(dim=-1).amax(-1)], -1)

    found = through_layers(model, rows, measure, "bounds", report)
    most = (torch.stack(found[layer]).amax(0).tolist() for layer in sorted(found))
    return [tuple(HeadBounds(*pair) for pair in pairs) for pairs in most]


@dataclass(frozen=True)
class Composed:
    """The whole model with its windows against the whole model without, measured.

    Fields:
        windows: which.
        nats, nats_full: mean loss in nats a token.
        ratio, ratio_low, ratio_high: of the perplexities, with a 95 % bootstrap interval over the
            segments, None for a single one.
        largest: the largest change of the log-probability of an observed token.
        relative: the largest change of a last residual, relative to its norm.
        tokens: scored.
    """

    windows: str
    nats: float
    nats_full: float
    ratio: float
    ratio_low: float | None
    ratio_high: float | None
    largest: float
    relative: float
    tokens: int

    def row(self) -> tuple[str, ...]:
        """The cells of a table."""
        between = (
            "" if self.ratio_low is None else f" ({self.ratio_low:.6f} to {self.ratio_high:.6f})"
        )
        return (
            self.windows,
            f"{self.ratio:.6f}{between}",
            f"within {self.largest:.3g}",
            f"within {self.relative:.2g} of its norm",
        )


@torch.no_grad()
def composed(
    model: LanguageModel, rows: np.ndarray, views: Mapping[str, View], progress: Progress
) -> tuple[Composed, ...]:
    """One result a view, in their order.

    Args:
        model: the model.
        rows: int64, shape (segments, length + 1).
        views: by its name in a table.
        progress: told how many are done.
    """
    full = [_scored(model, row, CAUSAL) for row in rows] if views else []
    found = []
    for done, (name, view) in enumerate(views.items(), 1):
        kept = [_scored(model, row, view) for row in rows]
        progress("the whole model", done, len(views))
        before, after = (np.stack([losses for losses, _ in each]) for each in (full, kept))
        relative = max(
            float(((a - b).norm(dim=-1) / b.norm(dim=-1)).max())
            for (_, a), (_, b) in zip(kept, full, strict=True)
        )
        ratios = np.exp(resampled((after - before).mean(1)))
        several = len(rows) > 1
        low, high = map(float, np.quantile(ratios, (0.025, 0.975))) if several else (None, None)
        found.append(
            Composed(
                name,
                float(after.mean()),
                float(before.mean()),
                float(np.exp((after - before).mean())),
                low,
                high,
                float(np.abs(after - before).max()),
                relative,
                after.size,
            )
        )
    return tuple(found)


def _scored(model: LanguageModel, row: np.ndarray, view: View) -> tuple[np.ndarray, Tensor]:
    """Losses of a segment in nats, and its last residuals."""
    visible, path = (view, fused) if isinstance(view, Visibility) else (CAUSAL, view())
    tokens = torch.from_numpy(row).to(model.device)
    hidden = model.hidden(model.embed(tokens[None, :-1]), visible, path)[0]
    losses = [
        cross_entropy(model.logits(part).double(), target, reduction="none")
        for part, target in zip(hidden.split(512), tokens[1:].split(512), strict=True)
    ]
    found = torch.cat(losses).cpu().numpy()
    require_finite(found)
    return found, hidden.double().cpu()
