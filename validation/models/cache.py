"""What a row of tokens takes in the cache of a model: the least, and as engines reserve it."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.answers.names import one_of
from farfield.theory.answers.number import natural
from farfield.validation.models.outline import LayerOutline, ModelOutline

BITS = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4}
"""Bits of a number in a cache, by its type."""

_STATE_BYTES = 4  # engines keep states in float32
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_LONGEST = 1 << 40


@dataclass(frozen=True)
class Serving:
    """How an engine keeps a cache.

    Args:
        dtype: of its numbers, one of `BITS`.
        ranks: over how many devices heads are spread (tensor parallelism).
        page: tokens of a page, the least that is reserved.
    """

    dtype: str = "bf16"
    ranks: int = 1
    page: int = 16

    def token(self, layer: LayerOutline) -> float:
        """Bytes that a token takes in one layer of one device; a head is never divided."""
        heads = max(1, layer.key_heads)
        share = math.ceil(heads / self.ranks) / heads
        return layer.cached * share * BITS[self.dtype] / 8

    def indexer(self, layer: LayerOutline) -> float:
        """Bytes that a token takes for an indexer, which every device has."""
        return layer.indexed * BITS[self.dtype] / 8


@dataclass(frozen=True)
class RowCache:
    """What one row of a length takes on one device.

    Fields:
        length: of the row.
        keys: over all layers, each at most as many as it sees.
        least: bytes of these keys and values, or of the latents that make them.
        indexer: bytes of what an indexer keeps in addition.
        paged: bytes in whole pages, where layers that slide keep their window alone.
        whole: bytes in whole pages, where every layer keeps the row.
        states: bytes of states of fixed size; None where they are not known.
    """

    length: int
    keys: int
    least: float
    paged: float
    whole: float
    indexer: float
    states: float | None

    @property
    def reserved(self) -> float:
        """Bytes of one row in whole pages, with all that it keeps in addition."""
        return self.paged + self.indexer + (self.states or 0)


def kept(layer: LayerOutline, length: int) -> int:
    """Keys of a row that a layer keeps."""
    most = (layer.width or length) if layer.keeps is None else layer.keeps
    return int(min(most, length)) if layer.cached else 0


def row_cache(layers: Sequence[LayerOutline], length: int, serving: Serving) -> RowCache:
    """What a row takes.

    >>> near, far = (LayerOutline(key_heads=2, cached=256, width=width) for width in (100, None))
    >>> found = row_cache([near, far], 1000, Serving(page=16))
    >>> found.keys, int(found.least), int(found.paged), int(found.whole)
    (1100, 563200, 581632, 1032192)
    """
    page = serving.page
    row = math.ceil(length / page)
    keys, least, paged, whole = 0, 0.0, 0.0, 0.0
    for layer in layers:
        count, token = kept(layer, length), serving.token(layer)
        keys, least = keys + count, least + count * token
        # a window begins anywhere in a page, so it may touch one more
        pages = row if count >= length else min(row, math.ceil((count - 1) / page) + 1)
        paged += pages * page * token
        whole += row * page * token
    indexer = sum(serving.indexer(layer) * row * page for layer in layers)
    sizes = [layer.state for layer in layers if layer.state is not None]
    states = _STATE_BYTES * sum(sizes) / serving.ranks if len(sizes) == len(layers) else None
    return RowCache(
        length=length,
        keys=keys,
        least=least,
        paged=paged,
        whole=whole,
        indexer=indexer,
        states=states,
    )


def serving_of(model: ModelOutline, dtype: str, ranks: object, page: object) -> Serving:
    """How an engine keeps the cache of a model.

    Raises:
        InputError: an unknown type; heads that the devices cannot share.
    """
    one_of(dtype, "cache-dtype", BITS)
    serving = Serving(dtype, natural(ranks, "tensor-parallel"), natural(page, "page"))
    heads = {layer.heads for layer in model.layers if layer.attends}
    refuse(
        wrong := next((h for h in sorted(heads) if h % serving.ranks), None),
        f"tensor-parallel {serving.ranks} with {wrong} heads; accepted: a divisor of them",
    )
    return serving


def longest(layers: Sequence[LayerOutline], budget: float, serving: Serving) -> float:
    """The longest row whose cache fits into a budget of bytes, in whole pages; infinite where every
    row fits, 0 where none does."""

    def too_long(length: int) -> bool:
        return row_cache(layers, length, serving).reserved > budget

    every = range(1, _LONGEST + 1)
    return bisect_left(every, True, key=too_long) if too_long(_LONGEST) else math.inf


def bytes_of(text: str) -> int:
    """Bytes from a text such as `24GiB` or `512 MiB`.

    Raises:
        InputError: it is no such text.

    >>> bytes_of("24GiB"), bytes_of("1.5 MiB")
    (25769803776, 1572864)
    """
    for unit, size in {**_UNITS, **{k.replace("i", ""): v for k, v in _UNITS.items()}}.items():
        number = text.removesuffix(unit).strip()
        if text.endswith(unit) and number.replace(".", "", 1).isdigit() and 0 < float(number) < 1e9:
            return int(float(number) * size)
    raise InputError(f"budget {text!r}; accepted: bytes such as 24GiB or 512MiB")


def bytes_text(size: float) -> str:
    """Bytes in a few characters.

    >>> bytes_text(9214 * 2**20), bytes_text(100)
    ('9.00 GiB', '100 bytes')
    """
    for unit, least in reversed(_UNITS.items()):
        if size >= least:
            value = size / least
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{size:g} bytes"
