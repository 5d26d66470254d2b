"""How far each head of a model can use its context: by its weights, and as measured on a text.

An advantage is at most the range of the logits, so twice their bound. A key that all others share
their prior with has half of the attention only where its advantage is `log(N - 1)` among N keys or
more; under a bias, where it is at least the price of its distance. Bounds by the weights hold for
every text. An advantage on a text is measured, where a text is at hand: torch only there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from farfield.theory.answers.answer import Answer, Code, Label, Reason, Status
from farfield.theory.answers.blocks import Block, note, sentence, table
from farfield.theory.answers.number import natural, plural
from farfield.validation.checkpoints.configured import Attention, Folder
from farfield.validation.checkpoints.folder import UNCHECKED, describe
from farfield.validation.checkpoints.head_audit import farthest
from farfield.validation.checkpoints.layer_audit import bound_of, keys_text, longest_row, which
from farfield.validation.checkpoints.norms import weight_bounds
from farfield.validation.defaults import TRAINED
from farfield.validation.optional import library
from farfield.validation.progress import Progress, silent

Seen = dict[int, list[tuple[float, float]]]
"""The advantage and the attention of each head on a text, by layer from 1."""

EVERY_TEXT = "for every text, by the norms of its weights"


@dataclass(frozen=True)
class HeadReach:
    """One head.

    Fields:
        head: from 1.
        advantage: the most that its weights allow, in nats, in a row of the training length; None
            where no bound is known.
        tokens: no key farther back gets half of its attention; infinite where the bound allows
            that at any distance, None where no bound is known.
        measured: its median advantage on the repeated keys of a text; None without a text, or where
            the head sees no repetition.
        attention: its mean attention on them.
        measured_tokens: no key farther back gets half while its advantage is at most `measured`.
    """

    head: int
    advantage: float | None
    tokens: float | None
    measured: float | None = None
    attention: float | None = None
    measured_tokens: float | None = None


@dataclass(frozen=True)
class LayerReach:
    """One layer with attention.

    Fields:
        layer: from 1.
        keys: that a query sees at most; None for all before it.
        heads: one entry a head.
    """

    layer: int
    keys: int | None
    heads: tuple[HeadReach, ...]

    @property
    def tokens(self) -> float | None:
        """No key farther back gets half of the attention of any head; None if not known."""
        known = [h.tokens for h in self.heads if h.tokens is not None]
        return max(known) if len(known) == len(self.heads) else None

    @property
    def best(self) -> HeadReach | None:
        """The head with the largest measured advantage."""
        heads = [h for h in self.heads if h.measured is not None]
        return max(heads, key=lambda h: h.measured or 0.0, default=None)


@dataclass(frozen=True, repr=False)
class ModelReach(Answer):
    """How far the heads of a model can use their context; see `model_reach`.

    Fields:
        model: its name.
        row: the training length.
        tokens: no key farther back gets half of the attention of any head of any layer, for every
            text. It is infinite where the bounds allow it at any distance, None where they are not
            known.
        layers: one entry a layer with attention.
        biased: whether a bias by distance is added in some layer: then `tokens` holds for rows of
            the training length or longer.
        length, segments, text_source: the text on which advantages were measured.
        label: `certified`; the measured fields are measured.
    """

    VALUE: ClassVar[str] = "tokens"

    model: str
    row: int
    tokens: float | None = None
    layers: tuple[LayerReach, ...] = ()
    biased: bool = False
    length: int = 0
    segments: int = 0
    text_source: str = ""

    def _blocks(self) -> Iterator[Block]:
        said = {
            Status.UNKNOWN: "{model}: how far its weights let a head reach is not known: {why}.",
            Status.OUT_OF_SCOPE: "{model}: no positional claim is made: {why}.",
            Status.INFINITE: "{model}: its weights allow half of the attention on one key at any "
            "distance: {why}.",
        }.get(
            self.status,
            "{model}: {beyond}no head can put half of its attention on {one} key{rows}, "
            + EVERY_TEXT
            + ".",
        )
        yield sentence(
            said,
            self.label,
            model=self.model,
            beyond=f"beyond {keys_text(self.tokens)} tokens " if self.tokens else "",
            one="one" if self.tokens else "any",
            rows=f" in rows of {self.row} keys or more" if self.biased else "",
            why=self.reason,
        )
        best = [(k.layer, k.best) for k in self.layers if k.keys is None and k.best is not None]
        if best:
            layer, head = max(best, key=lambda each: each[1].measured or 0.0)
            yield sentence(
                "While advantages stay within {gain} nats, as in head {head} of layer {layer} on "
                "this text, no head puts half of its attention on one key beyond {tokens} tokens.",
                Label.MEASURED,
                gain=f"{head.measured:.3g}",
                head=head.head,
                layer=layer,
                tokens=keys_text(head.measured_tokens),
            )
        yield from self._table()
        if self.length:
            yield note(
                "Measured on {segments} of {length} tokens, each read twice. The key is the one "
                "that followed the same token before. The head is the one with the largest median "
                "advantage; its attention is a mean. Text: {text}.",
                segments=plural(self.segments, "segment"),
                length=self.length // 2,
                text=self.text_source,
            )
        if self.layers:
            yield note(
                "An advantage is how many nats the logit of a key lies above the others. Half of "
                "the attention on one of {row} keys takes {need}.",
                row=keys_text(self.row),
                need=f"{math.log(max(1, self.row - 1)):.4g}",
            )

    def _table(self) -> Iterator[Block]:
        """Each layer, those that are alike together."""
        header = ["layers", "sees", "advantage at most", "half within"]
        header += ["head", "measured", "attention", "half within"] * bool(self.length)
        rows: dict[tuple[str, ...], list[int]] = {}
        for k in self.layers:
            most = max((h.advantage for h in k.heads if h.advantage is not None), default=None)
            cells = ["all" if k.keys is None else keys_text(k.keys), _nats(most)]
            cells.append("not known" if k.tokens is None else keys_text(k.tokens))
            if self.length and (b := k.best) is not None:
                cells += [str(b.head), _nats(b.measured), f"{b.attention:.2g}"]
                cells.append(keys_text(b.measured_tokens))
            rows.setdefault(tuple(cells), []).append(k.layer)
        if rows:
            width = len(header) - 1
            cells_of = [
                (which(layers, len(self.layers)), *cells, *[""] * (width - len(cells)))
                for cells, layers in rows.items()
            ]
            title = "Half of the attention on one key: by the weights" + ", and on the text" * bool(
                self.length
            )
            yield table(header, cells_of, title, numeric=tuple(range(2, len(header))))


def _nats(value: float | None) -> str:
    return "not known" if value is None else f"{value:.4g}"


def model_reach(
    model: Any,
    *,
    text: Any = None,
    length: Any = None,
    segments: Any = 4,
    progress: Progress = silent,
) -> ModelReach:
    """How far each head of a model can put half of its attention on one key.

    Args:
        model: a folder that `folder.describe` knows, or what it says of one.
        text: a file, a folder or a `Corpus`, to measure advantages on: each segment is read twice.
            None reads the weights alone.
        length: tokens of a segment and its repetition; None takes the training length, at most
            1024.
        segments: how many.
        progress: told how far it is.

    Raises:
        InputError: as `folder.describe`, `norms.weight_bounds` and `loading.load`; a bad argument;
            a text too short.
    """
    length = None if length is None else natural(length, "length", 8)
    segments = natural(segments, "segments")
    folder = describe(model)
    row = folder.trained or TRAINED
    if folder.no_claim or all(a.encoding is None for a in folder.attention):
        why = folder.no_claim or "no layer has attention"
        reason = Reason(Code.NOT_COVERED, why)
        return ModelReach(folder.name, row, status=Status.OUT_OF_SCOPE, label=None, reason=reason)
    seen, count, source, size = Seen(), 0, "", 0
    if text is not None:
        library("torch", "a model on a text", "hf")
        from farfield.validation.checkpoints.measured.segments import repeated

        size = length or min(row, 1024)
        seen, count, source = repeated(folder, text, size, segments, progress)
    found = ModelReach(
        folder.name,
        row,
        layers=tuple(_layers(folder, row, seen)),
        biased=any(a.biased for a in folder.attention),
        length=size,
        segments=count,
        text_source=source,
        subject=folder.name,
    )
    return _summed(found, folder)


def half_within(a: Attention, head: int, gain: float, row: int) -> float | None:
    """Tokens beyond which no key gets half of the attention of a head, in rows of the training
    length or longer.

    Args:
        a: what its layer does with positions.
        head: from 1.
        gain: its advantage at most, in nats, before logits grow with the position.
        row: the training length.

    Returns:
        The number; infinite where every distance is possible, None where that is not known.

    >>> from farfield.theory.encodings import encoding
    >>> flat, steep = (Attention(encoding(name)) for name in ("nope", "-n/4"))
    >>> half_within(flat, 1, 7, 4096), half_within(steep, 1, 7, 4096)
    (1097.0, 22)
    """
    if not a.biased:
        return min(longest_row(gain / 2, a.temper), a.local or math.inf)
    far = farthest(a.bias(head), gain, row)
    return None if far is None else far + 1


def _layers(folder: Folder, row: int, seen: Seen) -> Iterator[LayerReach]:
    """Every layer with attention: the bounds of its heads, and what each did on a text."""
    proved = weight_bounds(folder) if folder.checked else [None] * len(folder.attention)
    known: dict[Any, float | None] = {}
    for layer, (a, heads) in enumerate(zip(folder.attention, proved, strict=True), 1):
        found = []
        for h in range(1, folder.shape.heads + 1 if a.encoding is not None else 1):
            most: float | None = None
            tokens: float | None = a.local if folder.checked else None
            bound = bound_of(a, None, None if heads is None else (heads[h - 1],))[0]
            if bound is not None and folder.checked:
                key = (id(a.encoding), a.temper, a.local, h if a.biased else 0, bound)
                if key not in known:
                    known[key] = half_within(a, h, 2 * bound, row)
                most = 2 * bound * (1.0 if a.temper is None else a.temper.at(row - 1))
                tokens = known[key]
            gain, share = seen[layer][h - 1] if layer in seen else (None, None)
            far = None if gain is None else half_within(replace(a, temper=None), h, gain, row)
            found.append(HeadReach(h, most, tokens, gain, share, far))
        if found:
            yield LayerReach(layer, a.local, tuple(found))


def _summed(found: ModelReach, folder: Folder) -> ModelReach:
    """The answer for all layers."""
    unknown = next((k for k in found.layers if k.tokens is None), None)
    if unknown is not None:
        why = f"no bound of the logits of layer {unknown.layer} is known for {folder.kind}"
        why = why if folder.checked else UNCHECKED
        reason = Reason(Code.NOT_COVERED, why)
        return replace(found, status=Status.UNKNOWN, label=None, reason=reason)
    far = max(found.layers, key=lambda k: k.tokens or 0.0)
    if math.isfinite(far.tokens or 0.0):
        return replace(found, tokens=far.tokens)
    most = max(h.advantage or 0.0 for h in far.heads)
    why = f"in layer {far.layer}, advantages are at most {most:.4g} nats"
    reason = Reason(Code.TOO_LARGE, why)
    return replace(found, tokens=math.inf, status=Status.INFINITE, reason=reason)
