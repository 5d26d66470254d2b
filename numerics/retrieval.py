"""How much attention a key draws at any distance, forecast from measured logits (ours).

Content logits know neither distance nor length; only the bias does. So rows of the training length
tell what a head does on longer ones: the logits of the other keys are drawn again from the same
row's values, since a row's logits share the size of their query. The nearest keys stay in place.
The target is put at the distance asked for. The bias is added, and the attention on the target is
averaged over the draws. No constant is fitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from farfield.numerics.arrays import floats
from farfield.numerics.float_rows import MAX_KEYS
from farfield.numerics.heads import out_of_reach, refused, resolve
from farfield.numerics.shown import BiasAnswer, Cases
from farfield.theory.answers.answer import InputError, Label
from farfield.theory.answers.blocks import Block, Curve, Formula, Line
from farfield.theory.answers.notation import words
from farfield.theory.answers.number import natural, plural

MAX_WORK = 10**9  # draws times keys of a row
MAX_LOGIT = 1e300  # beyond it a sum with a bias is no float
BLOCK = 1 << 22  # logits that are held at once


@dataclass(frozen=True, repr=False)
class RetrievalCurve(BiasAnswer):
    """The attention on a key by its distance.

    Fields:
        formula: the bias.
        length: keys of the row.
        distances: from the query to the key.
        attention: the mean attention on the key at each of them, in [0, 1]; None where it is not
            known.
        error: the standard error of each mean, from the draws alone.
        draws, seed: how many rows were drawn, and from which seed.
        label: `forecast`.
    """

    VALUE = "attention"
    OUTSIDE = "no attention belongs to the distance alone: {why}."

    length: int
    distances: tuple[int, ...]
    attention: tuple[float, ...] | None = None
    error: tuple[float, ...] = ()
    draws: int = 600
    seed: int = 0

    def blocks(self) -> Sequence[Block]:
        if self.attention is None or self.formula is None:
            return [self.first()]
        line = Line("attention", self.distances, self.attention)
        curve = Curve("attention on the key", "distance", "attention", (line,))
        return [self.first(), Formula(words("`p(n)`"), self.formula), curve]

    def _cases(self) -> Cases:
        template = "in a row of {length}, the key at distance {far} is forecast to draw {share} of "
        return ((True, template + "the attention."),)

    def _values(self) -> dict[str, object]:
        far, share = max(zip(self.distances, self.attention or self.distances, strict=True))
        return {
            "length": plural(self.length, "key"),
            "far": far,
            "share": f"{100 * share:.3g} %",
        }


def retrieval_curve(
    target: object,
    others: object,
    f: object,
    *,
    near: object = None,
    length: object,
    distances: object,
    draws: object = 600,
    seed: object = 0,
    **values: object,
) -> RetrievalCurve:
    """The mean attention on a key at each distance of a row, from logits measured on short rows.

    Args:
        target: content logits of the key that is sought, one a measured row, shape (rows,).
        others: content logits of other keys of the same rows, shape (rows, m), m at least 1.
        f: one bias: a formula in `n`, a SymPy expression, a name of the catalogue, a table.
        near: content logits of the k nearest keys in order of position, the query's own last, shape
            (rows, k); they stay in place. None: these keys are drawn as the others are.
        length: keys of the row.
        distances: from the query to the key, one or a sequence, each from 0 to length - 1.
        draws: rows that are drawn.
        seed: of the draws.
        **values: parameters and options, as `farfield.theory.encodings.encoding` takes them.

    Returns:
        A `RetrievalCurve`, label `forecast`.

    Raises:
        InputError: logits of unequal shapes or that are no finite numbers; several heads; a
            distance outside the row.

    >>> answer = retrieval_curve([9.0, 9.0], [[0.0], [0.0]], "0", length=1024, distances=[8, 500])
    >>> [round(a, 3) for a in answer.attention]
    [0.888, 0.888]
    """
    size, repeats = natural(length, "length"), natural(draws, "draws")
    start = natural(seed, "seed", 0)
    each = _distances(distances, size)
    measured = _Logits.read(target, others, near)
    if size > MAX_KEYS or size * repeats > MAX_WORK:
        raise InputError(
            f"{repeats} draws of {size} keys are too many: accepted are rows of up to "
            f"{MAX_KEYS} keys, and 10^9 logits in all"
        )
    subject = resolve(f, values, size)
    asked = RetrievalCurve(None, size, each, draws=repeats, seed=start, subject=subject.name)
    if reason := out_of_reach(subject):
        return replace(asked, **refused(reason))
    if subject.num_heads != 1:
        raise InputError(f"{subject.name} has {subject.num_heads} heads: give the bias of one head")
    bias = subject.bias(np.arange(size))[0]
    if not bias.max() <= MAX_LOGIT or not (bias > -np.inf).any():
        raise InputError(f"{subject.name} is undefined, infinite, or masks the whole row")
    rng = np.random.default_rng(start)
    block = max(1, BLOCK // size)
    parts = [
        measured.attention(rng, bias, min(block, repeats - done), np.array(each))
        for done in range(0, repeats, block)
    ]
    curve = np.concatenate(parts)
    spread = curve.std(axis=0) / np.sqrt(repeats)
    return replace(
        asked,
        formula=subject.biases[0],
        attention=tuple(curve.mean(axis=0).tolist()),
        error=tuple(spread.tolist()),
        label=Label.FORECAST,
    )


def _distances(given: Any, size: int) -> tuple[int, ...]:
    single = np.ndim(given) == 0
    each = tuple(natural(d, "distances", 0) for d in ([given] if single else given))
    if not each:
        raise InputError("distances is empty: give at least one, such as [8, 64, 512]")
    if outside := [d for d in each if d >= size]:
        raise InputError(
            f"distance {outside[0]} is outside a row of {plural(size, 'key')}: accepted are 0 to "
            f"{size - 1}"
        )
    return each


@dataclass(frozen=True)
class _Logits:
    """Content logits of measured rows: (rows,), (rows, m), (rows, k)."""

    target: np.ndarray
    others: np.ndarray
    near: np.ndarray

    @classmethod
    def read(cls, target: object, others: object, near: object) -> _Logits:
        """The logits as a user gives them; raises InputError where their shapes do not fit."""
        sought, rest = _numbers(target, "target", 1), _numbers(others, "others", 2)
        last = np.empty((len(sought), 0)) if near is None else _numbers(near, "near", 2)
        if not len(sought) == len(rest) == len(last):
            shapes = f"{sought.shape}, {rest.shape}" + ("" if near is None else f", {last.shape}")
            raise InputError(
                f"target, others and near have shapes {shapes}: accepted are (rows,), (rows, m), "
                "(rows, k)"
            )
        if not rest.size:
            raise InputError("target and others need at least one row and one other key")
        return cls(sought, rest, last)

    def attention(
        self, rng: np.random.Generator, bias: np.ndarray, draws: int, at: np.ndarray
    ) -> np.ndarray:
        """The attention on the target in rows drawn, shape (draws, distances)."""
        row = rng.integers(len(self.target), size=draws)
        drawn = rng.integers(self.others.shape[1], size=(draws, len(bias)))
        logits = self.others[row[:, None], drawn]
        kept = self.near[row][:, ::-1][:, : len(bias)]  # from the query on
        logits[:, : kept.shape[1]] = kept
        logits += bias
        sought = self.target[row][:, None] + bias[at]
        top = np.maximum(logits.max(axis=1, keepdims=True), sought.max(axis=1, keepdims=True))
        weights = np.exp(logits - top)
        before = np.cumsum(weights, axis=1)
        after = np.cumsum(weights[:, ::-1], axis=1)[:, ::-1]
        rest = np.where(at > 0, before[:, at - 1], 0)
        rest += np.where(at + 1 < len(bias), after[:, (at + 1) % len(bias)], 0)
        mine = np.exp(sought - top)
        return np.divide(mine, mine + rest, out=np.zeros_like(mine), where=mine > 0)


def _numbers(given: object, what: str, dimensions: int) -> np.ndarray:
    wanted = "(rows,)" if dimensions == 1 else "(rows, keys)"
    values = floats(given, what, f"an array of numbers of shape {wanted}")
    if values.ndim != dimensions:
        raise InputError(f"{what} has shape {values.shape}: accepted is {wanted}")
    if not (np.abs(values) <= MAX_LOGIT).all():
        raise InputError(f"{what} holds what is no finite number of at most 1e300")
    return values
