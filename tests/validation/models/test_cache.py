"""Keys, bytes and pages of a row, counted page by page and key by key."""

import inspect
import itertools

import pytest

from farfield.commands.models import audit
from farfield.validation.models.cache import Serving, longest, row_cache
from farfield.validation.models.outline import LayerOutline

OPTIONS = ("cache_dtype", "tensor_parallel", "page")  # of the verb
BITS = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4}
CASES = [*itertools.product([1, 7, 16, 17, 100, 1000], [1, 5, 16, 17, 64, 2000], [1, 4, 16])]


@pytest.mark.parametrize("length, width, page", CASES)
def test_pages_are_those_that_a_window_touches_at_worst(length, width, page):
    """A window slides by one token a step: the most pages over all places in a row."""
    layer = LayerOutline(key_heads=2, cached=256, width=width)
    found = row_cache([layer], length, Serving(page=page))
    kept, row = min(width, length), -(-length // page)
    places = [{j // page for j in range(start, start + kept)} for start in range(page)]
    touched = row if kept == length else min(row, max(map(len, places)))
    token = 256 * 2
    assert (found.keys, found.least) == (kept, kept * token)
    assert (found.paged, found.whole) == (touched * page * token, row * page * token)


@pytest.mark.parametrize(("dtype", "bits"), BITS.items())
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_bytes_are_those_of_the_heads_of_a_device(dtype, bits, ranks):
    layers = [
        LayerOutline(key_heads=4, cached=512),
        LayerOutline(key_heads=1, cached=128, width=10),
        LayerOutline(key_heads=1, indexed=64),
        LayerOutline(attends=False, state=96),
    ]
    assert Serving() == Serving(*(inspect.signature(audit).parameters[k].default for k in OPTIONS))
    found = row_cache(layers, 48, Serving(dtype, ranks, page=16))
    one, other = 512 / ranks * bits / 8, 128 * bits / 8  # a head is never divided
    assert found.keys == 48 + 10
    assert found.least == 48 * one + 10 * other
    assert found.paged == 48 * one + 32 * other and found.whole == 48 * (one + other)
    indexer, states = 48 * 64 * bits / 8, 4 * 96 / ranks  # of an indexer on every device
    assert (found.indexer, found.states) == (indexer, states)
    assert found.reserved == found.paged + indexer + states
    assert row_cache([LayerOutline(state=None)], 48, Serving()).states is None
    full = longest(layers[:1], found.paged, Serving(dtype, ranks, page=16))
    assert full * one <= found.paged < (full + 16) * one and full % 16 == 0
