"""How a user's function is called: on distances, on positions, as a score or mask function.

A function of the distance, of `(q, k)`, of a score with its positions is followed first
(`tracing`). What cannot be followed is called in the ways that it may be meant: on positions, as
FlexAttention maps it over scalars, as a module of a row (`row_modules`). Ways are tried in order;
the first whose result has a shape that the way allows is taken, and is named in the answer.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np
import sympy
from sympy import Expr

from farfield.theory.algebra.door import after
from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.encodings.branches import PROBED, powers
from farfield.theory.encodings.families import MASKED, shortest_decimal
from farfield.theory.encodings.layouts import layout
from farfield.theory.encodings.python_files import import_of
from farfield.theory.encodings.row_modules import HIDDEN, OWN, VECTORS, of_row
from farfield.theory.encodings.samples import (
    CAPPED,
    FACTOR,
    FAR,
    GROWING,
    LEAST,
    LONG,
    MAX_HEADS,
    MIDDLE,
    NOISE,
    PATIENCE,
    SHORT,
    QueryRow,
    Sample,
    Subject,
    T,
    Unfit,
    called,
    first_fitting,
    head_count,
    last_rows,
    rows_of_matrix,
    sample_of_rows,
    values_of,
)
from farfield.theory.encodings.tracing import Untraced, traced
from farfield.theory.formula.sympy_expressions import as_expression
from farfield.theory.functions.nodes import n
from farfield.theory.values import tabulate

ALL_S = 3.0
"""Seconds within which a function of one number is asked about one distance after the other."""
_ACCEPTED = (
    "accepted: a distance, (q, k), (h, q, k), mask_mod(b, h, q, k), score_mod(score, b, h, q, k), "
    "or a module of (q, k, i, j), (i, j), lengths, scores or hidden states"
)


def sampled(f: Any, heads: int | None = None) -> Sample:
    """The formulas of an object, or its values.

    Raises:
        InputError: no way of calling it gives a bias (the attempts, and what came back); it
            differs from call to call; it does not end.
    """
    name = getattr(f, "__name__", type(f).__name__)
    required = _required(f)
    import_of(f)
    try:
        return _followed(f, required, heads)
    except Untraced as reason:
        why = str(reason)
    ways = _WAYS.get(len(required), ())
    if not ways:
        raise InputError(f"{name} takes {len(required)} arguments; {_ACCEPTED}")
    if _takes_a_row(f, required):
        ways = (*ways[1:], ways[0])
    if len(required) == 4 and hasattr(f, "parameters") and required[0].startswith("q"):
        ways = ways[:1]  # (q, k, i, j) are no batch, head and positions
    if required[:1] and "head" in required[0]:
        ways = ways[::-1]
    torch = sys.modules.get("torch")
    quiet = torch.no_grad() if torch is not None else contextlib.nullcontext()
    with quiet, np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        try:
            sample = first_fitting(partial(w, f, heads) for w in ways)
            again = first_fitting(partial(w, f, heads) for w in ways) if sample.twice else sample
        except Unfit as unfit:
            raise InputError(f"{name} gives no bias; {unfit}; {_ACCEPTED}") from None
    if not np.array_equal(sample.all_values, again.all_values, equal_nan=True):
        raise InputError(_differs(f, sample.how))
    return replace(sample, why=f"not followed: {why}")


def _differs(f: Subject, how: str) -> str:
    name = getattr(f, "__name__", type(f).__name__)
    return f"{name} differs from call to call ({how}); call .eval() first"


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


_LENGTHS = r"\w*(len|length|size|seq|seqlen|rows|keys|queries)\w*|[ij]|[qk]l|[LST]"


def _takes_a_row(f: Subject, names: list[str]) -> bool:
    """Whether arguments are rather scores, lengths or hidden states than distances or positions."""
    if len(names) == 4:
        return hasattr(f, "parameters")
    if len(names) == 2:
        return all(re.fullmatch(rf"{_LENGTHS}|\w*heads?\w*", name) for name in names)
    if len(names) != 1 or re.fullmatch(r"n|d|t|delta|dist\w*|rel\w*|pos\w*", names[0]):
        return False
    scores = re.match(rf"score|logit|att|dots|qk|sim|hidden|{_LENGTHS}$", names[0])
    return hasattr(f, "parameters") or bool(scores)


def ways_of_two(f: Subject) -> tuple[str, ...]:
    """Whether two arguments are `lengths` or `positions`, the likelier first; none for others.

    >>> ways_of_two(lambda q_len, k_len: 0), ways_of_two(lambda a, b: 0), ways_of_two(len)
    (('lengths', 'positions'), ('positions', 'lengths'), ())
    """
    names = _required(f)
    if len(names) != 2:
        return ()
    return ("lengths", "positions") if _takes_a_row(f, names) else ("positions", "lengths")


# -- what is followed -----------------------------------------------------------------------------

_KINDS = {1: "n", 2: "qk", 3: "hqk", 4: "bhqk", 5: "sbhqk"}
_FOLLOWED = {
    "n": "a distance",
    "m": "a relative position, key less query",
    "qk": "positions q and k",
    "hqk": "(h, q, k)",
    "bhqk": "mask_mod(b, h, q, k)",
    "sbhqk": "score_mod(score, b, h, q, k)",
}


def _followed(f: Any, required: list[str], heads: int | None) -> Sample:
    """The formula of each head, and its values where anything happens."""
    kind = _KINDS.get(len(required), "")
    if not kind or hasattr(f, "parameters") or _takes_a_row(f, required):
        raise Untraced("it takes whole rows")
    if kind == "n" and re.match(r"rel|memory", required[0]):
        return _signed(f)
    how = _FOLLOWED[kind]
    if "h" in kind and not heads:
        with contextlib.suppress(Untraced):
            return _of_formulas([_read(f, kind, None)], how)
    count = (heads or head_count(f) or 8) if "h" in kind else 1
    formulas = [_read(f, kind)]
    for h in range(1, count):
        try:
            formulas.append(_read(f, kind, h))
        except Untraced:
            if heads or head_count(f) or _exists(f, kind, how, h):
                raise
            break
    if "h" in kind and not heads and head_count(f) is None:
        how += f", heads 0 to {len(formulas) - 1} (heads=... asks for others)"
    return _of_formulas(formulas, how)


def _read(f: Any, kind: str, head: int | None = 0) -> Expr:
    """A formula of a head, or of all, that was followed, as the reader would have built it."""
    formula = traced(f, kind, head)
    try:
        return as_expression(formula)
    except InputError as error:
        raise Untraced(str(error)) from None


def _signed(f: Any) -> Sample:
    """A relative position may be query less key or key less query: the one that says something."""
    ways: dict[str, Expr] = {}
    for kind in ("n", "m"):
        with contextlib.suppress(Untraced):
            ways[kind] = _read(f, kind)
    if not ways:
        _read(f, "n")  # says why
    values = {k: tabulate(way, [*range(SHORT), *FAR]) for k, way in ways.items()}
    both = [k for k in ways if np.ptp(np.nan_to_num(values[k]))] or [*ways]
    kind = next((k for k in both if not values[k][-1] > values[k][0]), both[0])
    return _of_formulas([ways[kind]], _FOLLOWED[kind])


def _of_formulas(formulas: list[Expr], how: str) -> Sample:
    """Formulas with their values: near, at powers of two and at every number in a condition."""
    ends = {
        int(x) + s
        for formula in formulas
        for c in formula.atoms(sympy.core.relational.Relational)
        for x in c.atoms(sympy.Integer)
        for s in (-1, 0, 1)
        if LONG <= x <= 2**53
    }
    distances = np.unique([*range(LONG), *FAR.tolist(), *ends])
    values = np.stack([tabulate(formula, distances) for formula in formulas])
    return Sample(distances, values, how, formulas=tuple(formulas))


def _arrays() -> Iterator[Callable[[np.ndarray], Any]]:
    """How positions become arrays of NumPy and torch, floats first."""
    torch: Any = sys.modules.get("torch")
    for kind in (np.float64, np.int64, np.float32):
        for make in (np.asarray, *([torch.from_numpy] if torch is not None else [])):
            yield partial(_array, make, kind)


def _array(make: Callable[[np.ndarray], Any], kind: type[np.number], positions: np.ndarray) -> Any:
    return make(positions.astype(kind))


# -- functions of the distance --------------------------------------------------------------------


def _of_distance(f: Subject, heads: int | None) -> Sample:
    """`f(n)` for an array of distances, or for one after the other; of a relative position that
    is the same for all of them, with the other sign."""

    def attempts(g: Subject) -> Iterator[Callable[[], Sample]]:
        for size in (LONG, MIDDLE, SHORT):
            distances = np.concatenate([np.arange(float(size)), FAR if size == LONG else ()])
            for given in (convert(distances) for convert in _arrays()):
                yield partial(_of_array_of_distances, g, distances, given)
                yield partial(_of_array_of_distances, g, distances, given[:, None])
        yield partial(_one_by_one, g)

    names = _required(f)
    if not (names and re.match(r"rel|memory", names[0])):
        return first_fitting(attempts(f))
    both = {g: s for g in (f, lambda n: f(-n)) if (s := _or_none(attempts(g))) is not None}
    plain = [s for s in both.values() if np.ptp(s.values) > 0] or [*both.values()]
    if not plain:
        return first_fitting(attempts(f))
    falling = [s for s in plain if s.values[0, -1] <= s.values[0, 0]]
    sample = (falling or plain)[0]
    less = "" if sample is both.get(f) else ", key less query"
    return replace(sample, how=f"{sample.how}{less}")


def _or_none(attempts: Iterable[Callable[[], T]]) -> T | None:
    with contextlib.suppress(Unfit):
        return first_fitting(attempts)
    return None


TRUTH = (
    "a function of the distance gives truth, which may be a mask or 1 and 0; accepted: "
    "np.where(n < 64, 0, -np.inf) and the like, or mask_mod(b, h, q, k)"
)


def _of_array_of_distances(f: Subject, distances: np.ndarray, given: Any) -> Sample:
    """The bias at each distance; of a function that sees the whole row, in rows of all lengths."""
    how = "an array of distances"
    result, size = called(f, how, given), len(distances)
    if isinstance(result, (int, float)):  # such as the length of the array
        for k in (0, size // 2, size - 1):
            if called(f, how, given[k : k + 1]) != result:
                raise Unfit(f"called with {how}: it gives one number of them all")
    sample = _table(result, distances, how)
    half = _table(called(f, how, given[: size // 2]), distances[: size // 2], how)
    if np.array_equal(sample.values[:, : size // 2], half.values, equal_nan=True):
        like = type(given[:1])

        def at(d: float) -> np.ndarray:
            one = given[:1] * 0 + d
            assert isinstance(one, like)
            return _table(called(f, how, one), np.array([d]), how).values[:, 0]

        return _with_edges(sample, at)
    each = [distances[: 2**k] for k in range(4, 13) if 2**k <= size]
    rows = [
        QueryRow(len(d) - 1, d, _table(called(f, how, given[: len(d)]), d, how).values)
        for d in each
    ]
    return sample_of_rows(rows, how, sample.kind)


def _with_edges(sample: Sample, at: Callable[[float], np.ndarray]) -> Sample:
    """With the two sides of each edge between neighbours of which one is masked."""
    distances, values = _between(sample.distances, sample.values, at)
    return replace(sample, distances=distances, values=values)


def _between(
    distances: np.ndarray, values: np.ndarray, at: Callable[[float], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Distances and values, with those that a bisection of each edge has asked."""
    added = dict[float, np.ndarray]()
    hidden: np.ndarray = np.any(values <= MASKED, axis=0, keepdims=True)[0]
    with contextlib.suppress(Unfit, InputError):
        for place in np.flatnonzero((hidden[1:] != hidden[:-1]) & (np.diff(distances) > 1)):
            low, high = distances[place], distances[place + 1]
            while high - low > 1:
                middle = (low + high) // 2
                added[middle] = at(middle)
                same = bool((added[middle] <= MASKED).any()) == bool(hidden[place])
                low, high = (middle, high) if same else (low, middle)
    if not added:
        return distances, values
    whole = np.append(distances, [*added])
    order = np.argsort(whole)
    return whole[order], np.concatenate([values, np.stack([*added.values()], axis=1)], 1)[:, order]


def _table(result: object, distances: np.ndarray, how: str) -> Sample:
    """A bias at each distance, one a head, as a row of keys that lie so far back."""
    size = len(distances)
    table, kind = values_of(result, how)
    refuse(kind == "bool", TRUTH)
    if isinstance(result, (int, float)):
        table = np.full(size, table)
    shape = table.shape
    table = np.atleast_2d(np.squeeze(table)) if table.size > 1 else table.reshape(1, 1)
    if table.shape[0] == size != table.shape[1] <= MAX_HEADS:
        table = table.T
    if table.shape[1:] != (size,):
        raise Unfit(f"called with {how} of shape ({size},): it gives shape {shape}")
    return Sample(distances, table, how, kind)


def _one_by_one(f: Subject) -> Sample:
    """`f(0), f(1), ...` for a function of one number, as far as it answers in time."""
    late = after(ALL_S, PATIENCE)
    each = (partial(_at_one, f, make) for make in (int, float))
    return first_fitting(partial(_at_each, f, at, late) for at in each)


ONE = "one distance after the other"


def _at_one(f: Subject, make: type[float], k: float) -> np.ndarray:
    """The values at one distance, one a head."""
    values, kind = values_of(called(f, ONE, make(k)), ONE)
    refuse(kind == "bool", TRUTH)
    if values.ndim > 1:
        raise Unfit(f"called with {ONE}: it gives {values.shape}")
    many = f"called with {ONE}: it gives {values.size} numbers; at most {MAX_HEADS} are heads"
    refuse(values.size > MAX_HEADS, many)
    return np.atleast_1d(values)


def _at_each(f: Subject, at: Callable[[float], np.ndarray], late: Callable[[], bool]) -> Sample:
    """The values at one distance after the other, until it is late or one fails."""
    known, ends = {0: at(0)}, ""

    def alike(k: float) -> np.ndarray:
        values, first = at(k), known[0]
        if values.shape != first.shape:
            counts = f"{values.size} numbers at {k:g} and {first.size} at 0"
            raise Unfit(f"called with {ONE}: it gives {counts}")
        return values

    for k in (*range(1, LONG), *map(int, FAR)):
        if late():
            ends = f"up to distance {max(known)} it took {ALL_S:g} s"
            refuse(k < LEAST, f"called with {ONE}: {ends}")
            break
        try:
            known[k] = alike(k)
        except (Unfit, InputError) as error:
            if k < LEAST:
                raise
            ends = f"at distance {k}, {error}"
            break
    if any(not np.array_equal(at(k), known[k], equal_nan=True) for k in range(LEAST)):
        raise InputError(_differs(f, ONE))
    values = np.stack([*known.values()], axis=-1)
    sample = Sample(np.array([*map(float, known)]), values, ONE, ends=ends, twice=False)
    return _with_edges(sample, alike)


# -- functions of positions -----------------------------------------------------------------------


def _of_positions(
    f: Subject, heads: int | None, order: str = "qk", how: str = "positions q and k"
) -> Sample:
    """`f` of a column of queries and a row of keys; `order` names its arguments."""

    def attempts() -> Iterator[Callable[[], Sample]]:
        for size in (LONG, MIDDLE, SHORT, LEAST):
            queries = np.unique([0, 1, 2, 7, size // 8, size // 3, size // 2 - 1, size - 1])
            keys = np.arange(size)
            if "b" in order and "torch" in sys.modules:
                yield partial(_each_head, f, heads, order, how, queries, keys, _mapped)
            for convert in _arrays():
                call = partial(_on_grid, convert=convert)
                yield partial(_each_head, f, heads, order, how, queries, keys, call)
            if size <= MIDDLE:
                yield partial(_each_head, f, heads, order, how, queries, keys, _singly)

    return first_fitting(attempts())


Call = Callable[..., tuple[np.ndarray, str]]
Ask = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, str]]
"""The values of one head for queries, keys and scores, and their type."""
NO_SCORE = np.zeros(1)


def _mapped(
    f: Subject, order: str, how: str, h: int, q: np.ndarray, k: np.ndarray, score: np.ndarray
) -> tuple[np.ndarray, str]:
    """As FlexAttention calls it: mapped over scalars."""
    torch: Any = sys.modules["torch"]
    shape = np.broadcast_shapes(q.shape, k.shape)
    zero = torch.zeros(shape, dtype=torch.long)
    args = {
        "s": torch.from_numpy(np.broadcast_to(score, shape).copy()),
        "b": zero,
        "h": zero + h,
        "q": torch.from_numpy(np.broadcast_to(q, shape).copy()),
        "k": torch.from_numpy(np.broadcast_to(k, shape).copy()),
    }
    mapped = torch.func.vmap(f)
    given = called(mapped, how, *(args[name].reshape(-1) for name in order))
    values, kind = values_of(given, how)
    if values.shape != (zero.numel(),):
        raise Unfit(f"called with {how}: it gives shape {values.shape[1:]} for each score")
    return values.reshape(shape), kind


def _on_grid(
    f: Subject,
    order: str,
    how: str,
    h: int,
    q: np.ndarray,
    k: np.ndarray,
    score: np.ndarray,
    convert: Callable[[np.ndarray], Any],
) -> tuple[np.ndarray, str]:
    """With arrays of NumPy or torch, as `convert` makes them."""
    queries, keys = convert(q), convert(k)
    torch = sys.modules.get("torch")
    whole: Any = getattr(torch, "tensor", np.asarray) if hasattr(queries, "detach") else np.asarray
    index = whole if hasattr(queries, "detach") else int
    shape = np.broadcast_shapes(q.shape, k.shape)
    level = whole(np.broadcast_to(score, shape).copy())
    args = {"s": level, "b": index(0), "h": index(h), "q": queries, "k": keys}
    values, kind = values_of(called(f, how, *(args[name] for name in order)), how)
    if values.shape[-2:] != shape and values.size > 1:
        raise Unfit(f"called with {how} of shape {shape}: it gives shape {values.shape}")
    return np.broadcast_to(values, (*values.shape[:-2], *shape)), kind


def _singly(
    f: Subject, order: str, how: str, h: int, q: np.ndarray, k: np.ndarray, score: np.ndarray
) -> tuple[np.ndarray, str]:
    """With plain numbers, one pair of positions after the other."""
    q, k, score = np.broadcast_arrays(q, k, score)
    at = zip(q.flat, k.flat, score.flat, strict=True)
    each = ({"b": 0, "h": h, "q": i, "k": j, "s": s} for i, j, s in at)

    def all_of() -> list[object]:
        return [f(*(_number(one[name]) for name in order)) for one in each]

    values, kind = values_of(called(all_of, how), how)
    if values.shape != (q.size,):
        raise Unfit(f"called with {how}: it gives shape {values.shape[1:]} for each pair")
    return values.reshape(q.shape), kind


def _number(x: Any) -> Any:
    return x.item() if hasattr(x, "item") else x


def _each_head(
    f: Subject,
    heads: int | None,
    order: str,
    how: str,
    queries: np.ndarray,
    keys: np.ndarray,
    call: Call,
) -> Sample:
    """The values of each head, until the object has no further one."""
    asked: list[tuple[Ask, Sample]] = []
    for h in range((heads or head_count(f) or 8) if "h" in order else 1):
        ask = partial(call, f, order, how, h)
        try:
            near = _near(ask, how, queries, keys)
            content = _of_scores(ask, queries, keys) if "s" in order else ""
        except Unfit as error:
            if h == 0 or heads:
                raise
            if _exists(f, order, how, h):
                raise Unfit(f"{error}, for head {h}; heads={h} asks for those before it") from None
            break
        asked.append((ask, replace(near, content=content)))
    size = len(keys)
    samples = [_with_far(near, ask, size) for ask, near in asked]
    first, *others = samples
    if not heads and all(_agree(first, one) for one in others):
        return replace(_together(samples, how), values=first.values, rows=first.rows)
    edges = reduce(np.union1d, (one.distances for one in samples))
    if any(len(one.distances) < len(edges) for one in samples):  # each head at the edges of all
        samples = [_with_far(near, ask, size, edges) for ask, near in asked]
    if not heads and head_count(f) is None and len(samples) > 1:
        how += f", heads 0 to {len(samples) - 1} (heads=... asks for others)"
    return _together(samples, how)


def _agree(a: Sample, b: Sample) -> bool:
    """Whether two heads have the same values at the same distances."""
    return np.array_equal(a.distances, b.distances) and np.array_equal(a.all_values, b.all_values)


def _together(samples: Sequence[Sample], how: str) -> Sample:
    """Samples of one head each as one, where all of them have values."""
    distances = reduce(np.intersect1d, (one.distances for one in samples))
    # the far rows come last, and are kept where all heads have them
    rows = zip(*(one.rows for one in samples), strict=False)
    return replace(
        samples[0],
        distances=distances,
        values=np.concatenate([s.values[:, np.isin(s.distances, distances)] for s in samples]),
        rows=tuple(replace(r[0], values=np.concatenate([x.values for x in r])) for r in rows),
        content=" and ".join(sorted({one.content for one in samples} - {""})),
        ends="; ".join(sorted({one.ends for one in samples} - {""})),
        how=how,
    )


def _exists(f: Subject, order: str, how: str, h: int) -> bool:
    """Whether an object has a head: it raises nowhere, or gives what is not masked at some pair of
    positions, asked singly."""
    calls: list[Call] = [_singly, *(partial(_on_grid, convert=c) for c in _arrays())]
    pairs = np.array([(1, 0), (9, 7), (FAR[-1], FAR[-1] - 2), (FAR[-1], 7)])[..., None, None]
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        given = [
            _or_none(partial(call, f, order, how, h, q, k, np.zeros(1)) for call in calls)
            for q, k in pairs
        ]
    masked = [bool((one[0] <= MASKED).all()) for one in given if one is not None]
    return None not in given or not all(masked)


def _near(ask: Ask, how: str, queries: np.ndarray, keys: np.ndarray) -> Sample:
    """The values of a head in the rows of these queries."""
    values, kind = ask(queries[:, None], keys[None, :], NO_SCORE)
    return sample_of_rows(
        rows_of_matrix(queries, values.reshape(-1, *values.shape[-2:])), how, kind
    )


def _with_far(
    near: Sample, ask: Ask, size: int, edges: Sequence[float] | np.ndarray = ()
) -> Sample:
    """With the values at far queries, and of the farthest at far distances and at `edges`."""
    at, apart = _far_positions(size)

    def back(distances: np.ndarray) -> np.ndarray:
        """The farthest query's values, shape (heads, distances)."""
        values = ask(FAR[-1:, None], FAR[-1] - distances[None, :], NO_SCORE)[0]
        return values.reshape(-1, len(distances))

    try:
        far = ask(at, np.maximum(at - apart, 0), NO_SCORE)[0]
        distances = np.unique([*FAR, size - 1, *(d for d in edges if d >= size)])
        distances, beyond = _between(
            distances, back(distances), lambda d: back(np.array([int(d)]))[:, 0]
        )
    except (Unfit, InputError) as error:
        return replace(near, ends=f"beyond query {size - 1}, {error}")
    heads_last = np.moveaxis(far.reshape(-1, *far.shape[-2:]), 1, 0)
    rows = [
        QueryRow(int(q), apart[apart <= q], one[:, apart <= q])
        for q, one in zip(at[:, 0], heads_last, strict=True)
    ]
    return replace(
        near,
        distances=np.append(near.distances, distances[1:]),
        values=np.concatenate([near.values, beyond[:, 1:]], axis=1),
        rows=(*near.rows, *rows),
    )


def _far_positions(size: int) -> tuple[np.ndarray, np.ndarray]:
    """A column of queries beyond so many keys, and the distances that are asked there."""
    near = [d for d in (0, 1, 2, 5, 17, 64, *powers(PROBED)) if d < size - 1]
    return FAR[size <= FAR][:, None], np.unique([*near, *FAR])


def _of_scores(ask: Ask, queries: np.ndarray, keys: np.ndarray) -> str:
    """What a function of scores does with them: it adds, scales, caps them, or none of these.

    Each is named only where its identity holds for random scores, at near and at far queries.
    """
    rng = np.random.default_rng(0)
    at, apart = _far_positions(len(keys))
    q, k, back = queries[:, None], keys[None, :], np.maximum(at - apart, 0)
    grids = [(q, k, ask(q, k, NO_SCORE)[0])]
    with contextlib.suppress(Unfit, InputError):
        grids.append((at, back, ask(at, back, NO_SCORE)[0]))
    near, most, caps, plain, linear = 0.0, 0.0, list[bool](), True, True
    for q, k, values in grids:
        zero = values.reshape(np.broadcast_shapes(q.shape, k.shape))
        seen = np.isfinite(zero) & (zero > MASKED)
        base = np.where(seen, zero, 0)
        one, two = (rng.normal(size=zero.shape) for _ in range(2))
        a, b, both, large = (
            np.where(seen, ask(q, k, s)[0].reshape(zero.shape) - base, 0)
            for s in (one, two, one + two, 1000 * one)
        )
        slack = 1e-4 * (1 + np.abs(base) + np.abs(a) + np.abs(b))
        as_large = (np.abs(large - 1000 * a) <= 1000 * slack).all()  # a clamp far out is none
        plain &= bool((np.abs(np.where(seen, a - one, 0)) <= slack).all() and as_large)
        linear &= bool((np.abs(a + b - both) <= slack).all() and as_large)
        caps.append(bool(np.abs(large).max() <= 50 * max(1e-9, np.abs(a).max())))
        ratio = np.where(seen & (np.abs(one) > 0.1), np.abs(a / np.where(one == 0, 1, one)), 0)
        near = max(near, ratio[(q < LONG)[:, 0]].max(initial=0))
        most = max(most, ratio.max(initial=0))
    if plain:
        return ""
    if linear and len(grids) > 1:
        return FACTOR if most <= NOISE * near else GROWING
    return CAPPED if all(caps) and len(grids) > 1 else "the content logit"


# -- arrays, and every way -----------------------------------------------------------------------


def of_array(array: object) -> Sample:
    """The biases of an array, as its layout says."""
    kind = str(getattr(array, "dtype", "float64")).rpartition(".")[2]
    axes, values = layout(array)
    if axes == "matrix":
        return sample_of_rows(last_rows(values), "an array", kind)
    how, formulas = f"an array of {axes}", tuple[Expr, ...]()
    distances = np.arange(float(MIDDLE if axes == "slopes" else values.shape[-1]))
    if axes == "slopes":
        formulas = tuple(-shortest_decimal(v, kind) * n for v in values)
        values = -values[:, None] * distances
    return Sample(distances, np.atleast_2d(values), how, kind, formulas)


_WAYS: dict[int, tuple[Callable[[Subject, int | None], Sample], ...]] = {
    1: (_of_distance, *(partial(of_row, how=h) for h in ("scores", "a length", HIDDEN))),
    2: (
        _of_positions,
        *(partial(of_row, how=h) for h in (VECTORS, "two lengths", "heads and a length")),
    ),
    3: (partial(_of_positions, order="hqk", how="(h, q, k)"),),
    4: (
        partial(_of_positions, order="bhqk", how="mask_mod(b, h, q, k)"),
        partial(of_row, how=OWN),
    ),
    5: (partial(_of_positions, order="sbhqk", how="score_mod(score, b, h, q, k)"),),
}
"""Ways of calling, by the number of arguments that have to be given."""
