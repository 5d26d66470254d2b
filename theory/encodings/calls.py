"""A user's object as values: it is called on a grid of positions in the ways that it may be meant.

A function of the distance, of `(q, k)`, of a score with its positions; a module whose forward takes
positions, lengths, scores or hidden states; an array. Ways are tried in order; the first whose
result has a shape that the way allows is taken, and is named in the answer. A call ends after
`CALL_S`, and gets arrays of its own, since a function may write into them.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from sympy import Expr

from farfield.theory.algebra.door import Interrupted, watched
from farfield.theory.answers.errors import InputError
from farfield.theory.encodings.dual import Dual, floats
from farfield.theory.encodings.layouts import layout
from farfield.theory.encodings.recognition import shortest_decimal

CALL_S = 10.0
LONG, MIDDLE, SHORT, LEAST = 4096, 512, 64, 16
FAR = (10_000, 100_000, 1_000_000)
"""Distances beyond the table at which a function of the distance is asked too."""
MAX_HEADS = 128
FACTOR = "a bounded factor of the content logit"
_HEADS = ("heads", "num_heads", "n_heads", "n_head", "num_attention_heads", "H", "nheads")
_ACCEPTED = (
    "accepted: a distance, (q, k), (h, q, k), mask_mod(b, h, q, k), score_mod(score, b, h, q, k), "
    "or a module of lengths, scores or hidden states"
)
T = TypeVar("T")
Subject = Callable[..., object]


@dataclass(frozen=True)
class Sample:
    """Values of a bias on a grid.

    Fields:
        bias: float64, shape (heads, queries, keys).
        queries, keys: their positions; a query may occur again, in a row of another length; the
            keys are 0, 1, 2, ... and perhaps some far back, before the row.
        how: the call, in words.
        kind: the type of the values, as `float32`; `exact` where a symbol came back.
        texts: the formula of each head that was traced, or empty.
        content: what of the content the result depends on; empty where on nothing.
    """

    bias: np.ndarray
    queries: np.ndarray
    keys: np.ndarray
    how: str
    kind: str = "float64"
    texts: tuple[str | Expr, ...] = ()
    content: str = ""


class Unfit(Exception):
    """A way of calling that an object does not take, and why."""


def sampled(f: Any, heads: int | None = None) -> Sample:
    """The values of an object.

    Raises:
        InputError: no way of calling it gives a bias (the attempts, and what came back); it
            differs from call to call; it does not end.
    """
    name = getattr(f, "__name__", type(f).__name__)
    required = _required(f)
    ways = _WAYS.get(len(required), ())
    if not ways:
        raise InputError(f"{name} takes {len(required)} arguments; {_ACCEPTED}")
    if len(required) == 1 and _takes_a_row(f, required[0]):
        ways = (*ways[1:], ways[0])
    torch = sys.modules.get("torch")
    quiet = torch.no_grad() if torch is not None else contextlib.nullcontext()
    with quiet, np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        try:
            sample, again = (_first_fitting(partial(w, f, heads) for w in ways) for _ in range(2))
        except Unfit as why:
            raise InputError(f"{name} gives no bias; {why}; {_ACCEPTED}") from None
    if not np.array_equal(sample.bias, again.bias, equal_nan=True):
        raise InputError(f"{name} differs from call to call ({sample.how}); call .eval() first")
    return sample


def _first_fitting(attempts: Iterable[Callable[[], T]]) -> T:
    """What the first attempt gives that fits; else why the first and the last do not."""
    why: list[str] = []
    for attempt in attempts:
        try:
            return attempt()
        except Unfit as error:
            why.append(str(error))
    raise Unfit("; ".join(dict.fromkeys((why[0], why[-1]))) if why else "nothing fits")


def _required(f: Subject) -> list[str]:
    """The names of the arguments that have to be given."""
    call = getattr(f, "forward", f) if hasattr(f, "parameters") else f
    try:
        given = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):  # a ufunc, a function written in C
        return ["n"]
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in given if p.default is p.empty and p.kind in kinds]
    return names or ["n"] * any(p.kind is p.VAR_POSITIONAL for p in given)


def _takes_a_row(f: Subject, name: str) -> bool:
    """Whether a single argument is rather scores, a length or hidden states than a distance."""
    if re.fullmatch(r"n|d|t|delta|dist\w*|rel\w*|pos\w*", name):
        return False
    return hasattr(f, "parameters") or bool(re.match(r"score|logit|att|dots|qk|sim", name))


def _called(f: Subject, how: str, *args: object) -> object:
    """What a call gives; Unfit with what it raised."""
    end, arguments = time.monotonic() + CALL_S, list(map(_own, args))
    try:
        return watched(lambda: time.monotonic() > end, lambda: f(*arguments))
    except Interrupted:
        raise InputError(f"a call with {how} did not end within {CALL_S:g} s") from None
    except Exception as error:  # whatever a user's function raises on a value it did not expect
        reason = str(error).splitlines()[0][:80] if str(error) else type(error).__name__
        raise Unfit(f"called with {how}: {reason}") from None


def _own(given: object) -> object:
    if isinstance(given, Dual):
        return Dual(_own(given.value), given.text, given.binds)
    copied = getattr(given, "clone", getattr(given, "copy", lambda: given))
    return copied()


def _values(result: object, how: str) -> tuple[np.ndarray, str]:
    """Values and their type; truth is a mask."""
    if isinstance(result, (list, tuple)) and result:
        each = [_values(one, how) for one in result]
        if len({one.shape for one, _ in each}) == 1:
            return np.stack([one for one, _ in each]), each[0][1]
    result = getattr(result, "value", result) if isinstance(result, Dual) else result
    kind = str(getattr(result, "dtype", "float64")).rpartition(".")[2]
    try:
        values = floats([] if result is None else result)
    except (TypeError, ValueError):
        values = np.array([])
    if not values.size:
        raise Unfit(f"called with {how}: it gives {type(result).__name__}, no numbers")
    return (np.where(values != 0, 0.0, -np.inf) if kind == "bool" else values), kind


def _grids(*arrays: np.ndarray, names: str) -> Iterator[tuple[Any, ...]]:
    """The same positions as NumPy and torch have them, to be traced first, floats first."""
    torch: Any = sys.modules.get("torch")
    for traced in (True, False):
        for kind in (np.float64, np.int64, np.float32):
            for convert in (np.asarray, *([torch.from_numpy] if torch is not None else [])):
                grid = [convert(a.astype(kind)) for a in arrays]
                yield tuple(map(Dual, grid, names)) if traced else tuple(grid)


# -- functions of the distance --------------------------------------------------------------------


def _of_distance(f: Subject, heads: int | None) -> Sample:
    """`f(n)` for an array of distances, with the formula where it can be traced."""

    def attempts() -> Iterator[Callable[[], Sample]]:
        for size in (LONG, MIDDLE, SHORT):
            distances = np.concatenate([np.arange(float(size)), FAR if size == LONG else ()])
            for (given,) in _grids(distances, names="n"):
                yield partial(_of_array_of_distances, f, distances, given)
                if not isinstance(given, Dual):
                    yield partial(_of_array_of_distances, f, distances, given[:, None])
        yield partial(_one_by_one, f)

    return _first_fitting(attempts())


def _of_array_of_distances(f: Subject, distances: np.ndarray, given: Any) -> Sample:
    """The bias at each distance; of a function that sees the whole row, in rows of all lengths."""
    how = "an array of distances"
    sample = _table(_called(f, how, given), distances, how)
    if sample.kind == "exact":
        return sample
    plain, size = getattr(given, "value", given), len(distances)
    half = _table(_called(f, how, plain[: size // 2]), distances[: size // 2], how)
    if np.array_equal(sample.bias[..., : size // 2], half.bias, equal_nan=True):
        return sample
    lengths = [2**k for k in range(4, 13) if 2**k <= size]
    rows = [
        _table(_called(f, how, plain[:k]), distances[:k], how).bias[:, 0, ::-1] for k in lengths
    ]
    return _of_rows([(k - 1, row) for k, row in zip(lengths, rows, strict=True)], how, sample.kind)


def _of_rows(rows: list[tuple[int, np.ndarray]], how: str, kind: str) -> Sample:
    """Rows of several lengths, each the query's position with its keys, shape (heads, keys)."""
    size = max(row.shape[-1] for _, row in rows)
    bias = np.full((len(rows[0][1]), len(rows), size), -np.inf)
    for place, (_, row) in enumerate(rows):
        bias[:, place, : row.shape[-1]] = row
    return Sample(bias, np.array([q for q, _ in rows]), np.arange(size), how, kind)


def _table(result: object, distances: np.ndarray, how: str) -> Sample:
    """A bias at each distance, one a head, as a row of keys that lie so far back."""
    size, last = len(distances), distances[-1]
    each = result if isinstance(result, (list, tuple)) else [result]
    texts = tuple(getattr(one, "text", None) for one in each)
    if hasattr(result, "free_symbols"):  # SymPy's own functions were called
        return Sample(
            np.zeros((1, 1, size)), distances[-1:], last - distances, "a symbol", "exact", (result,)
        )
    table, kind = _values(result, how)
    if kind == "bool":
        raise InputError(
            "a function of the distance gives truth, which may be a mask or 1 and 0; accepted: "
            "np.where(n < 64, 0, -np.inf) and the like, or mask_mod(b, h, q, k)"
        )
    if isinstance(result, (int, float)):
        table, texts = np.full(size, table), (repr(float(result)),)
    shape = table.shape
    table = np.atleast_2d(np.squeeze(table))
    if table.shape[0] == size != table.shape[1] <= MAX_HEADS:
        table = table.T
    if table.shape[1:] != (size,):
        raise Unfit(f"called with {how} of shape ({size},): it gives shape {shape}")
    texts = texts if None not in texts and len(texts) == len(table) else ()
    return Sample(table[:, None, :], distances[-1:], last - distances, how, kind, texts)


def _one_by_one(f: Subject) -> Sample:
    """`f(0), f(1), ...` for a function of one number."""
    how, distances = "one distance after the other", np.arange(float(MIDDLE))

    def all_of(make: type[float]) -> Sample:
        values = [_values(_called(f, how, make(k)), how)[0] for k in range(MIDDLE)]
        if len({v.shape for v in values}) > 1 or values[0].ndim > 1:
            raise Unfit(f"called with {how}: it gives {values[0].shape}")
        return _table(np.stack(values, axis=-1), distances, how)

    return _first_fitting(partial(all_of, make) for make in (int, float))


# -- functions of positions -----------------------------------------------------------------------


def _of_positions(
    f: Subject, heads: int | None, order: str = "qk", how: str = "positions q and k"
) -> Sample:
    """`f` of a column of queries and a row of keys; `order` names its arguments."""

    def attempts() -> Iterator[Callable[[], Sample]]:
        for size, far in ((LONG, FAR), (LONG, ()), (MIDDLE, ()), (SHORT, ()), (LEAST, ())):
            queries = np.unique([0, 1, 2, 7, size // 8, size // 3, size // 2 - 1, size - 1])
            keys = np.append(np.arange(size), [size - 1 - d for d in far])
            for q, k in _grids(queries[:, None], keys[None, :], names="ij"):
                yield partial(_each_head, f, heads, order, how, q, k)

    return _first_fitting(attempts())


def _each_head(f: Subject, heads: int | None, order: str, how: str, q: object, k: object) -> Sample:
    """The values of each head, until the object has no further one."""
    count = heads or _head_count(f) or 8
    samples: list[Sample] = []
    for h in range(count if "h" in order else 1):
        try:
            samples.append(_one_head(f, order, how, q, k, h))
        except Unfit:
            if h == 0 or heads:
                raise
            break
    if not heads and all(np.array_equal(samples[0].bias, one.bias) for one in samples):
        return samples[0]
    texts = tuple(text for one in samples for text in one.texts)
    bias, first = np.concatenate([one.bias for one in samples]), samples[0]
    if not heads and _head_count(f) is None and len(samples) > 1:
        how += f", heads 0 to {len(samples) - 1} (heads=... asks for others)"
    texts = texts if len(texts) == len(bias) else ()
    return Sample(bias, first.queries, first.keys, how, first.kind, texts, first.content)


def _one_head(f: Subject, order: str, how: str, q: Any, k: Any, h: int) -> Sample:
    """The values of a head, of a function of `(q, k)` perhaps of all heads."""
    queries, keys = (getattr(x, "value", x) for x in (q, k))
    tensor = getattr(sys.modules.get("torch"), "tensor", np.asarray)
    whole = tensor if hasattr(queries, "detach") else np.asarray
    index = whole if whole is tensor else int
    shape = (len(queries), keys.shape[1])

    def result(level: float) -> tuple[np.ndarray, str, str | None]:
        score: Any = whole(np.full(shape, level))
        score = Dual(score, "0") if isinstance(q, Dual) else score
        args = {"s": score, "b": index(0), "h": index(h), "q": q, "k": k}
        given = _called(f, how, *(args[name] for name in order))
        values, kind = _values(given, how)
        if values.shape[-2:] != shape and values.size > 1:
            raise Unfit(f"called with {how} of shape {shape}: it gives shape {values.shape}")
        return (
            np.broadcast_to(values, (*values.shape[:-2], *shape)),
            kind,
            getattr(given, "text", None),
        )

    values, kind, text = result(0.0)
    if kind == "bool" and text is not None:
        text = f"where({text}, 0, -oo)"
    content = ""
    if "s" in order:
        seen = np.isfinite(values)
        bias = np.where(seen, values, 0)
        one, two = (np.where(seen, result(s)[0] - bias, s) for s in (1.0, -2.0))
        if ((abs(one - 1) + abs(two + 2)) / (1 + abs(bias))).max() > 1e-5:
            near = abs(floats(queries) - floats(keys)) < MIDDLE
            bounded = abs(one).max() <= 1.01 * abs(one[..., near]).max()
            linear = np.allclose(two, -2 * one) and bounded
            text, content = None, FACTOR if linear else "the content logit"
    positions = (floats(queries)[:, 0].astype(int), floats(keys)[0].astype(int))
    return Sample(
        values.reshape((-1, *shape)),
        *positions,
        how,
        kind,
        () if text is None else (text,),
        content,
    )


def _head_count(f: Subject) -> int | None:
    """The number of heads that an object says: an attribute, or a number that it closes over."""
    counts = [getattr(f, name, None) for name in _HEADS]
    with contextlib.suppress(TypeError):
        outer = inspect.getclosurevars(f)
        counts += [{**outer.globals, **outer.nonlocals}.get(name) for name in _HEADS]
    return next((x for x in counts if isinstance(x, int) and 0 < x <= 1024 and x is not True), None)


# -- modules of a whole row -----------------------------------------------------------------------


def _of_row(f: Subject, heads: int | None, how: str) -> Sample:
    """A module that gives the matrix of a row, from its length, its scores or its hidden states."""
    torch: Any = sys.modules.get("torch")
    if torch is None and "length" not in how:
        raise Unfit(f"called with {how}: no torch is loaded")
    count = heads or _head_count(f) or 1
    weights = f.parameters() if hasattr(f, "parameters") else ()
    widths = dict.fromkeys(s for p in weights for s in tuple(p.shape)[::-1])

    def given(size: int, width: int, noise: bool) -> tuple[object, ...]:
        if "length" in how:
            return (size,) * (1 if how == "a length" else 2)
        shape = (1, size, width) if how == "hidden states" else (1, count, size, size)
        random = torch.Generator().manual_seed(1 + noise)
        return (torch.randn(shape, generator=random) * float(noise or how == "hidden states"),)

    def matrix(size: int, width: int) -> Sample:
        args = given(size, width, False)
        square, kind = _values(_called(f, how, *args), how)
        square = _square(square, how, size)
        if "length" not in how:
            args = given(size, width, True)
            other = _square(_values(_called(f, how, *args), how)[0], how, size)
            seen = np.isfinite(square)
            apart = np.subtract(other, square, out=np.zeros_like(square), where=seen)
            added = floats(args[0]) * seen if how == "scores" else 0.0
            if apart.any() and not np.allclose(apart, added, atol=1e-4):
                places = np.arange(size)
                return Sample(square, places, places, how, kind, content=f"the {how}")
        half, _ = _values(_called(f, how, *given(size // 2, width, False)), how)
        half = _square(half, how, size // 2)
        pairs = ((square, size), (half, size // 2))
        rows = [
            (end - len(x[0]) + places, x[:, places])
            for x, end in pairs
            for places in range(len(x[0]))
        ]
        return _of_rows(rows, how, kind)

    sizes = (SHORT,) if how == "hidden states" else (MIDDLE, SHORT, LEAST)
    widths = widths if how == "hidden states" else {0: None}
    return _first_fitting(partial(matrix, size, width) for size in sizes for width in widths)


def _square(values: np.ndarray, how: str, size: int) -> np.ndarray:
    """Heads of square matrices, or of one row."""
    shape = values.shape
    while values.ndim > 3 and values.shape[0] == 1:
        values = values[0]
    values = values[None] if values.ndim == 2 else values
    if values.ndim != 3 or values.shape[1:] not in ((size, size), (1, size)):
        raise Unfit(f"called with {how}, {size}: it gives shape {shape}")
    return values


def of_array(array: object) -> Sample:
    """The biases of an array, as its layout says."""
    kind = str(getattr(array, "dtype", "float64")).rpartition(".")[2]
    axes, values = layout(array)
    if axes == "matrix":
        queries, size = values.shape[1:]
        return Sample(values, np.arange(size - queries, size), np.arange(size), "an array", kind)
    distances = np.arange(float(MIDDLE if axes == "slopes" else values.shape[-1]))
    values = -values[:, None] * distances if axes == "slopes" else np.atleast_2d(values)
    how, texts = f"an array of {axes}", tuple[str, ...]()
    if axes == "slopes":
        texts = tuple(str(-shortest_decimal(v, kind)) + "*n" for v in -values[:, 1])
    keys = distances[-1] - distances
    return Sample(values[:, None, :], distances[-1:], keys, how, kind, texts)


_WAYS: dict[int, tuple[Callable[[Subject, int | None], Sample], ...]] = {
    1: (_of_distance, *(partial(_of_row, how=h) for h in ("scores", "a length", "hidden states"))),
    2: (_of_positions, partial(_of_row, how="two lengths")),
    3: (partial(_of_positions, order="hqk", how="(h, q, k)"),),
    4: (partial(_of_positions, order="bhqk", how="mask_mod(b, h, q, k)"),),
    5: (partial(_of_positions, order="sbhqk", how="score_mod(score, b, h, q, k)"),),
}
"""Ways of calling, by the number of arguments that have to be given."""
