"""A user's object as values: it is called on a grid of positions in the ways that it may be meant.

A function of the distance, of `(q, k)`, of a score with its positions; a module whose forward takes
positions, lengths, scores or embeddings; an array. Ways are tried in order; the first whose result
has a shape that the way allows is taken, and is named in the answer. A call ends after `CALL_S`.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from farfield.theory.algebra.door import Interrupted, watched
from farfield.theory.answers.errors import InputError
from farfield.theory.encodings.dual import Dual, floats
from farfield.theory.encodings.layouts import layout

CALL_S = 10.0
LONG, MIDDLE, SHORT = 4096, 512, 64
FAR = (10_000, 100_000, 1_000_000)
"""Distances beyond the table at which a function of the distance is asked too."""
MAX_HEADS = 128
_HEADS = ("heads", "num_heads", "n_heads", "n_head", "num_attention_heads", "H", "nheads")


@dataclass(frozen=True)
class Sample:
    """Values of a bias on a grid.

    Fields:
        bias: float64, shape (heads, queries, keys).
        queries, keys: their positions; a negative key lies before the row, as far as a function of
            the distance allows.
        how: the call, in words.
        kind: the type of the values, as `float32`.
        texts: the formula of each head that was traced, or empty.
        content: what of the content the result depends on; empty where on nothing.
        other: the values in a shorter row, shape (heads, shorter, shorter), or None.
    """

    bias: np.ndarray
    queries: np.ndarray
    keys: np.ndarray
    how: str
    kind: str = "float64"
    texts: tuple[str, ...] = ()
    content: str = ""
    other: np.ndarray | None = None


class Unfit(Exception):
    """A way of calling that an object does not take, and why."""


def sampled(f: Any, heads: int | None = None) -> Sample:
    """The values of an object.

    Raises:
        InputError: none of the ways of calling it gives a bias; what was tried, and what came back.
    """
    name = getattr(f, "__name__", type(f).__name__)
    required = _required(f)
    ways = _WAYS.get(len(required), ())
    if len(required) == 1 and _takes_scores(f, required[0]):
        ways = (_of_scores, *ways[2:], *ways[:1])
    if not ways:
        raise InputError(
            f"{name} takes {len(required)} arguments; accepted: a distance, (q, k), (h, q, k), "
            "mask_mod(b, h, q, k), score_mod(score, b, h, q, k), or a module of lengths or scores"
        )
    tried = []
    for way in ways:
        try:
            with _without_gradients():
                found = way(f, heads)
                again = way(f, heads)
        except Unfit as why:
            tried.append(str(why))
            continue
        if not np.array_equal(found.bias, again.bias, equal_nan=True):
            raise InputError(f"{name} differs from call to call ({found.how}); call .eval() first")
        return found
    raise InputError(f"{name} gives no bias; tried: {'; '.join(dict.fromkeys(tried))}"[:600])


def _takes_scores(f: Any, name: str) -> bool:
    """Whether a single argument is rather a row's scores, length or states than a distance."""
    if re.match(r"(n|d|t|delta|distances?|rel\w*|pos\w*)$", name):
        return False
    return hasattr(f, "parameters") or bool(
        re.match(r"scores?|logits?|attn|attention|dots|qk|sim", name)
    )


def _required(f: Any) -> list[str]:
    """The names of the arguments that have to be given."""
    call = getattr(f, "forward", f) if hasattr(f, "parameters") else f
    try:
        given = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):  # a ufunc, a function written in C
        return ["n"]
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in given if p.default is p.empty and p.kind in kinds]


@contextlib.contextmanager
def _without_gradients() -> Iterator[None]:
    """No graph of torch, and no warnings on values that are tried."""
    torch = sys.modules.get("torch")
    quiet = torch.no_grad() if torch is not None else contextlib.nullcontext()
    with quiet, np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        yield


def _called(f: Any, how: str, *args: Any) -> Any:
    """What a call gives; Unfit with what it raised."""
    end = time.monotonic() + CALL_S
    try:
        own = [_own(a) for a in args]
        return watched(lambda: time.monotonic() > end, lambda: f(*own))
    except Interrupted:
        raise InputError(f"a call with {how} did not end within {CALL_S:g} s") from None
    except Exception as error:  # whatever a user's function raises on a value it did not expect
        said = str(error).splitlines()[0][:80] if str(error) else type(error).__name__
        raise Unfit(f"with {how}: {said}") from None


def _own(given: Any) -> Any:
    """An array of the call's own, since a function may write into it."""
    if isinstance(given, Dual):
        return Dual(_own(given.value), given.text, given.binds)
    copied = getattr(given, "clone", getattr(given, "copy", None))
    return given if copied is None else copied()


def _values(result: Any, how: str) -> tuple[np.ndarray, str]:
    """Values and their type; truth is a mask."""
    if isinstance(result, Dual):
        result = result.value
    if isinstance(result, (list, tuple)):
        each = [_values(one, how) for one in result]
        if not each or len({one.shape for one, _ in each}) > 1:
            raise Unfit(f"with {how}: it gives {type(result).__name__} of unlike parts")
        return np.stack([one for one, _ in each]), each[0][1]
    kind = str(getattr(result, "dtype", type(result).__name__)).rpartition(".")[2]
    if result is None:
        raise Unfit(f"with {how}: it gives nothing, None")
    try:
        found = floats(result)
    except (TypeError, ValueError):
        raise Unfit(f"with {how}: it gives {type(result).__name__}") from None
    return (np.where(found != 0, 0.0, -np.inf) if kind == "bool" else found), kind


def _types(*arrays: np.ndarray) -> Iterator[tuple[Any, ...]]:
    """The same positions as NumPy and torch have them, floats first."""
    torch = sys.modules.get("torch")
    yield arrays
    if torch is not None:
        yield tuple(torch.from_numpy(a.copy()) for a in arrays)
        yield tuple(torch.from_numpy(a.astype(np.int64)) for a in arrays)
    yield tuple(a.astype(np.int64) for a in arrays)
    if torch is not None:
        yield tuple(torch.from_numpy(a.astype(np.float32)) for a in arrays)


# -- functions of the distance --------------------------------------------------------------------


def _of_distance(f: Any, heads: int | None) -> Sample:
    """`f(n)` for an array of distances, with the formula where it can be traced."""
    how, why = "an array of distances", Unfit("")
    for size in (LONG, MIDDLE, SHORT):
        at = np.concatenate([np.arange(float(size)), FAR if size == LONG else ()])
        for traced in (True, False):
            for (given,) in _types(at):
                for shape in ((len(at),), (len(at), 1)):
                    given = given.reshape(shape)
                    try:
                        result = _called(f, how, Dual(given, "n") if traced else given)
                        found = _rows(result, at, how)
                        if found.kind == "exact":
                            return found
                        part = _rows(_called(f, how, given[: size // 2]), at[: size // 2], how)
                        whole = found.bias[..., : size // 2]
                        same = np.array_equal(whole, part.bias, equal_nan=True)
                        return found if same else _of_rows(f, given, size)
                    except Unfit as error:
                        why = why if str(why) else error
    return _one_by_one(f, why)


def _of_rows(f: Any, given: Any, size: int) -> Sample:
    """A function that sees the whole row: the bias of rows of several lengths."""
    how = "the distances of rows of several lengths"
    lengths = [k for k in (16, 32, 64, 128, 256, 512, 1024, 2048, 4096) if k <= size]
    rows = [_rows(_called(f, how, given[:k]), np.arange(float(k)), how) for k in lengths]
    bias = np.full((len(rows[0].bias), len(lengths), lengths[-1]), -np.inf)
    for row, one in enumerate(rows):
        bias[:, row, : lengths[row]] = one.bias[:, 0, ::-1]
    queries = np.array(lengths) - 1
    return Sample(bias, queries, np.arange(lengths[-1]), how, rows[0].kind)


def _rows(result: Any, at: np.ndarray, how: str) -> Sample:
    """A bias at each distance, one a head, as a row of keys that lie so far back."""
    if hasattr(result, "free_symbols"):  # SymPy's own functions were called
        return _table(np.zeros((1, len(at))), at, "a symbol", "exact", (result,))
    texts: tuple[Any, ...] = ()
    if isinstance(result, Dual) and result.text is not None:
        texts = (result.text,)
    if isinstance(result, (list, tuple)) and all(isinstance(r, Dual) and r.text for r in result):
        texts = tuple(r.text for r in result)
    found, kind = _values(result, how)
    if kind == "bool":
        raise InputError(
            "a function of the distance gives truth, which may be a mask or 1 and 0; accepted: "
            "np.where(n < 64, 0, -np.inf) and the like, or mask_mod(b, h, q, k)"
        )
    size = len(at)
    if found.ndim == 0 and isinstance(result, (int, float)):
        texts, found = (repr(float(result)),), np.full(size, found)
    found = found.reshape([s for s in found.shape if s != 1] or [1])
    if found.ndim == 2 and found.shape[0] == size != found.shape[1] <= MAX_HEADS:
        found = found.T
    if found.shape[-1] != size or found.ndim > 2:
        raise Unfit(f"with {how} of shape ({size},): it gives shape {found.shape}")
    return _table(np.atleast_2d(found), at, how, kind, texts)


def _table(
    bias: np.ndarray, at: np.ndarray, how: str, kind: str, texts: tuple[Any, ...] = ()
) -> Sample:
    if len(texts) != len(bias):
        texts = ()
    last = at[-1]
    return Sample(bias[:, None, :], np.array([last]), last - at, how, kind, texts)


def _one_by_one(f: Any, why: Unfit) -> Sample:
    """`f(0), f(1), ...` for a function of one number."""
    how = "one distance after the other"
    for make in (int, float):
        try:
            found = [_called(f, how, make(k)) for k in range(MIDDLE)]
            values = np.stack([_values(one, how)[0] for one in found], axis=-1)
        except (Unfit, ValueError):
            continue
        if values.ndim <= 2:
            kind = _values(found[-1], how)[1].replace("float", "float64", 1)
            kind = kind if kind in _DIGITS else "float64"
            return _table(np.atleast_2d(values), np.arange(float(MIDDLE)), how, kind)
    raise why


_DIGITS = ("float32", "float64", "bfloat16", "float16")

# -- functions of positions -----------------------------------------------------------------------


def _of_positions(
    f: Any,
    heads: int | None,
    order: str = "qk",
    how: str = "positions q and k",
) -> Sample:
    """`f` of a column of queries and a row of keys; `order` names its arguments."""
    why = Unfit(f"with {how}: nothing came back")
    for size in (LONG, MIDDLE, SHORT, 16):
        queries = np.unique([0, 1, 2, 7, size // 8, size // 3, size // 2 - 1, size - 1])
        keys = np.arange(size)
        for pair in _types(queries[:, None].astype(float), keys[None, :].astype(float)):
            for traced in (True, False):
                q, k = (Dual(x, t) for x, t in zip(pair, "ij", strict=True)) if traced else pair
                try:
                    each = _each_head(f, heads, order, how, q, k)
                except Unfit as error:
                    why = error
                    continue
                return Sample(
                    np.stack([values for values, _, _, _ in each]),
                    queries,
                    keys,
                    how,
                    each[0][1],
                    tuple(t for _, _, t, _ in each) if all(t for _, _, t, _ in each) else (),
                    each[0][3],
                )
    raise why


def _each_head(f: Any, heads: int | None, order: str, how: str, q: Any, k: Any) -> list[Any]:
    """The values of each head, their type, their text, and what of the score they depend on."""
    count = heads or _head_count(f) or (8 if "h" in order else 1)
    found: list[Any] = []
    for h in range(count if "h" in order else 1):
        try:
            found.append(_one_head(f, order, how, q, k, h))
        except Unfit:
            if h == 0 or heads:
                raise
            break
    same = all(np.array_equal(found[0][0], one[0]) for one in found)
    if order == "qk" and found[0][0].ndim == 3:
        values, kind, _, content = found[0]
        return [(one, kind, None, content) for one in values]
    return found[:1] if same and not heads else found


def _one_head(f: Any, order: str, how: str, q: Any, k: Any, h: int) -> tuple[Any, ...]:
    torch: Any = sys.modules.get("torch")
    inner = getattr(q, "value", q)
    tensors = torch is not None and isinstance(inner, torch.Tensor)
    index = torch.tensor if tensors else int
    shape = np.broadcast_shapes(tuple(inner.shape), tuple(getattr(k, "value", k).shape))

    def result(level: float) -> tuple[np.ndarray, str, str | None]:
        score: Any = np.full(shape, level)
        score = torch.from_numpy(score) if tensors else score
        if isinstance(q, Dual):
            score = Dual(score, "0")
        args = {"s": score, "b": index(0), "h": index(h), "q": q, "k": k}
        given = _called(f, how, *(args[name] for name in order))
        values, kind = _values(given, how)
        if values.shape not in (shape, ()) and not (order == "qk" and values.shape[1:] == shape):
            raise Unfit(f"with {how} of shape {shape}: it gives shape {values.shape}")
        values = np.broadcast_to(values, shape) if values.ndim < 3 else values
        return values, kind, given.text if isinstance(given, Dual) else None

    values, kind, text = result(0.0)
    if kind == "bool" and text is not None:
        text = f"where({text}, 0, -oo)"
    if "s" not in order:
        return values, kind, text, ""
    steps = [np.where(np.isfinite(values), result(s)[0] - values - s, 0) for s in (1.0, -2.0)]
    if max(abs(step).max() for step in steps) < 1e-5:
        return values, kind, text, ""
    return (
        values,
        kind,
        None,
        _content_of([step + s for step, s in zip(steps, (1, -2), strict=True)]),
    )


def _content_of(steps: Sequence[np.ndarray]) -> str:
    """What a score becomes: a factor of itself, or another bounded or unbounded function."""
    one, two = steps
    return "a factor of the content logit" if np.allclose(two, -2 * one) else "the content logit"


def _head_count(f: Any) -> int | None:
    """The number of heads that an object says: an attribute, or a number that it closes over."""
    said = [getattr(f, name, None) for name in _HEADS]
    with contextlib.suppress(TypeError):
        outer = inspect.getclosurevars(f)
        said += [{**outer.globals, **outer.nonlocals}.get(name) for name in _HEADS]
    found = next((x for x in said if isinstance(x, int) and not isinstance(x, bool)), None)
    return found if found is None or 0 < found <= 1024 else None


# -- modules of lengths, scores, embeddings -------------------------------------------------------


def _of_lengths(f: Any, heads: int | None, count: int = 2) -> Sample:
    """`f(length, length)` or `f(length)`: the matrix of a row, at two lengths."""
    how = "two lengths" if count == 2 else "a length"
    why = Unfit("")
    for size in (MIDDLE, SHORT, 16):
        try:
            found, kind = _values(_called(f, how, *[size] * count), how)
            other, _ = _values(_called(f, how, *[size // 2] * count), how)
            return _matrix(found, how, kind, _square(other, how, size // 2))
        except Unfit as error:
            why = error
    raise why


def _square(found: np.ndarray, how: str, size: int) -> np.ndarray:
    """Heads of square matrices."""
    while found.ndim > 3 and found.shape[0] == 1:
        found = found[0]
    found = found[None] if found.ndim == 2 else found
    if found.ndim != 3 or found.shape[1:] not in ((size, size), (1, size)):
        raise Unfit(f"with {how}, {size}: it gives shape {found.shape}")
    return found


def _matrix(found: np.ndarray, how: str, kind: str, other: np.ndarray | None = None) -> Sample:
    """The values of heads, queries and keys; a single query is the last of its row."""
    size = found.shape[-1]
    if how != "an array":
        found = _square(found, how, size)
    queries = np.arange(size - found.shape[1], size)
    return Sample(found, queries, np.arange(size), how, kind, other=other)


def _of_scores(f: Any, heads: int | None) -> Sample:
    """`f(scores)`, which gives the scores with the bias, or the bias alone."""
    torch = sys.modules.get("torch")
    if torch is None:
        raise Unfit("with scores: no torch is loaded")
    count = heads or _head_count(f) or 1
    how, generator = "scores", torch.Generator().manual_seed(0)
    for size in (MIDDLE, SHORT):
        shape = (1, count, size, size)
        noise = torch.randn(shape, generator=generator)
        zero, kind = _values(_called(f, how, torch.zeros(shape)), how)
        other, _ = _values(_called(f, how, noise), how)
        if zero.shape[-2:] != (size, size):
            raise Unfit(f"with {how} of shape {shape}: it gives shape {zero.shape}")
        finite = np.isfinite(zero)
        added = np.where(finite, other - zero, 0)
        alone = np.abs(added).max() == 0
        passed = np.allclose(np.where(finite, added - floats(noise), 0), 0, atol=1e-4)
        if not (alone or passed):
            return _depends(zero, how, kind, "the scores")
        half, _ = _values(_called(f, how, torch.zeros((1, count, size // 2, size // 2))), how)
        return _matrix(zero, how, kind, _square(half, how, size // 2))
    raise Unfit(f"with {how}: nothing came back")


def _of_embeddings(f: Any, heads: int | None) -> Sample:
    """`f(x)` for hidden states: what it gives depends on the content, or is the bias alone."""
    torch = sys.modules.get("torch")
    how = "hidden states"
    if torch is None or not hasattr(f, "parameters"):
        raise Unfit(f"with {how}: it has no weights")
    why = Unfit(f"with {how}: no width fits")
    generator = torch.Generator().manual_seed(0)
    for width in dict.fromkeys(s for p in f.parameters() for s in tuple(p.shape)[::-1]):
        given = [torch.randn((1, SHORT, width), generator=generator) for _ in range(2)]
        try:
            (one, kind), (two, _) = (_values(_called(f, how, x), how) for x in given)
            if one.shape[-2:] == (SHORT, SHORT):
                if not np.array_equal(one, two):
                    return _depends(one, how, kind, "the hidden states")
                return _matrix(one, how, kind)
        except Unfit as error:
            why = error
    raise why


def _depends(found: np.ndarray, how: str, kind: str, content: str) -> Sample:
    found = found.reshape((-1, *found.shape[-2:]))
    keys = np.arange(found.shape[-1])
    return Sample(found, keys, keys, how, kind, content=content)


def of_array(array: Any) -> Sample:
    """The biases of an array, as its layout says."""
    kind = str(getattr(array, "dtype", "float64")).rpartition(".")[2]
    axes, found = layout(array)
    if axes == "slopes":
        at = np.arange(float(MIDDLE))
        return _table(-found[:, None] * at, at, "an array of slopes", kind)
    if axes == "table":
        return _table(np.atleast_2d(found), np.arange(float(found.shape[-1])), "an array", kind)
    return _matrix(found, "an array", kind)


_MASK = partial(_of_positions, order="bhqk", how="mask_mod(b, h, q, k)")
_SCORE = partial(_of_positions, order="sbhqk", how="score_mod(score, b, h, q, k)")
_WAYS: dict[int, tuple[Callable[[Any, int | None], Sample], ...]] = {
    1: (_of_distance, _of_scores, partial(_of_lengths, count=1), _of_embeddings),
    2: (_of_positions, _of_lengths),
    3: (partial(_of_positions, order="hqk", how="(h, q, k)"),),
    4: (_MASK,),
    5: (_SCORE,),
}
"""Ways of calling, by the number of arguments that have to be given."""
