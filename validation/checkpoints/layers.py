"""What each layer of a model does with positions: whether a window is enough for it, and why.

Read from the configuration; where queries and keys are normalised and weights are there, their
gains bound every logit. No torch.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from farfield.numerics.windows.certified import certified_window
from farfield.numerics.windows.question import MAX_LOGIT
from farfield.theory.answers.blocks import Block, note, sentence, table
from farfield.theory.answers.wording import count, plural, runs
from farfield.theory.convergence import check_convergence
from farfield.theory.windowability import Windowable, of_support
from farfield.validation.checkpoints.family import Attention, Gains
from farfield.validation.checkpoints.folder import Folder
from farfield.validation.checkpoints.head_window import upwards
from farfield.validation.checkpoints.weights import headers, tensor

GIVEN = "as given"


@dataclass(frozen=True)
class LayerAudit:
    """Layers that are alike.

    Fields:
        layers: from 1.
        encoding: its name.
        keys: that a query sees at most, its own included; None for all before it.
        windowable: whether a window is ever enough for them, by which theorem.
        logit_bound: of every logit, position included, where there is no additive bias; None
            where a bias or a window makes it of no use.
        bound_from: where that is from: as given, a soft cap, the gains of the weights.
        half: half of the mass lies outside any j keys in rows of `half * j`, whatever the input;
            None as before.
        needed: keys that the error takes in a row of the audit's longest length; None as before.
        sink: whether there is a learned constant in each denominator.
    """

    layers: tuple[int, ...]
    encoding: str
    keys: int | None
    windowable: Windowable
    logit_bound: float | None = None
    bound_from: str = ""
    half: float | None = None
    needed: int | None = None
    sink: bool = False


@dataclass(frozen=True)
class LayerKeys:
    """Keys that the layers of a model hold in a row of one length.

    Fields:
        length: of the row.
        keys: over all layers, each at most as many as it sees.
        bytes: of keys and values in 16 bits.
        share: of what they would take if every layer saw all.
    """

    length: int
    keys: int
    bytes: int
    share: float


@dataclass(frozen=True)
class Terms:
    """What the layers of a model are asked about.

    Args:
        logit_bound: of every logit, where neither a soft cap nor gains bound it.
        value_bound: of the norms of values.
        error: the budget.
        row: the length of a row.
        weights: whether gains are read from the weights.
    """

    logit_bound: sympy.Rational
    value_bound: sympy.Rational
    error: sympy.Rational
    row: int
    weights: bool = False


def layers_of(folder: Folder, terms: Terms) -> tuple[LayerAudit, ...]:
    """The layers of a model, those that are alike together, in the order of their first.

    Raises:
        InputError: a gain is not there.
    """
    found: dict[Any, list[int]] = {}
    each: dict[Any, LayerAudit] = {}
    verdicts = {id(e): check_convergence(e).windowable for e in folder.encodings}
    for layer, attention in enumerate(folder.attention, 1):
        one = _layer(folder, attention, verdicts[id(attention.encoding)], terms)
        alike = (one.encoding, one.keys, one.logit_bound, one.bound_from, one.sink)
        found.setdefault(alike, []).append(layer)
        each.setdefault(alike, one)
    return tuple(
        _with_numbers(dataclasses.replace(each[k], layers=tuple(v)), folder, terms)
        for k, v in found.items()
    )


def _with_numbers(layer: LayerAudit, folder: Folder, terms: Terms) -> LayerAudit:
    if layer.logit_bound is None or layer.logit_bound > MAX_LOGIT:
        return layer
    width = certified_window(
        folder.attention[layer.layers[0] - 1].encoding,
        terms.error,
        upwards(layer.logit_bound),
        terms.value_bound,
        row=terms.row,
    ).width
    half = 1 + math.exp(min(700, 2 * layer.logit_bound))
    return dataclasses.replace(layer, half=half, needed=None if width is None else int(width))


def _layer(folder: Folder, a: Attention, verdict: Windowable, terms: Terms) -> LayerAudit:
    bare = LayerAudit((), a.encoding.name, a.window, verdict, sink=a.sink is not None)
    if a.window is not None:
        seen = of_support(a.window, a.encoding.name, "window-support")
        return dataclasses.replace(bare, windowable=seen)
    if a.encoding.biases:
        return bare
    bound, origin = float(terms.logit_bound), GIVEN
    why = ""
    if terms.weights and a.gains is None:
        origin = "as given: these weights are not read for bounds"
    if a.cap is not None:
        bound, origin = a.cap, "the soft cap"
        why = f"a soft cap keeps every logit within {a.cap:g}, for every input"
    if (
        a.gains is not None
        and terms.weights
        and (proved := _by_gains(folder, a.gains, a.factor))
        < (math.inf if origin == GIVEN else bound)
    ):
        bound, origin = proved, "the gains of queries and keys"
        why = f"queries and keys are normalised, so every logit is within {bound:.4g}"
    if why:
        rest = verdict.hypotheses[1:]
        verdict = dataclasses.replace(verdict, hypotheses=(why, *rest))
    if a.sink is not None:
        extra = "a constant in the denominator changes no limit"
        verdict = dataclasses.replace(verdict, hypotheses=(*verdict.hypotheses, extra))
    return dataclasses.replace(bare, windowable=verdict, logit_bound=bound, bound_from=origin)


def _by_gains(folder: Folder, gains: Gains, factor: float) -> float:
    """`|q.k| scale <= scale |q| |k|`, a norm's output at most `sqrt(d) max |gain| + |shift|`."""
    norms = []
    for name in (gains.query, gains.key):
        gain = np.abs(tensor(folder.path, name) + gains.offset).max()
        shift = name.removesuffix("weight") + "bias"
        moved = 0.0
        if shift in headers(folder.path):  # RMSNorm has none
            moved = float(np.linalg.norm(tensor(folder.path, shift)))
        norms.append(math.sqrt(folder.head_size) * float(gain) + moved)
    return gains.scale * factor * norms[0] * norms[1]


def reach(attention: Sequence[Attention]) -> tuple[float, ...]:
    """Input tokens that the output of each layer depends on at most: `1 + sum (w - 1)`.

    >>> from farfield.theory.encodings import encoding
    >>> reach([Attention(encoding("rope"), window=4096)] * 32)[-1]
    131041.0
    """
    steps = [math.inf if a.window is None else a.window - 1 for a in attention]
    return tuple(float(1 + sum(steps[: k + 1])) for k in range(len(steps)))


def cache_of(folder: Folder, length: int) -> LayerKeys:
    """What a row of so many tokens takes."""
    shape = folder.description.shape
    keys = sum(length if a.window is None else min(a.window, length) for a in folder.attention)
    numbers = 2 * (shape.key_heads or shape.heads) * shape.head_size
    return LayerKeys(length, keys, 2 * numbers * keys, keys / (length * shape.layers))


def layer_blocks(
    layers: Sequence[LayerAudit],
    reaches: Sequence[float],
    caches: Sequence[LayerKeys],
    row: int,
    error: sympy.Rational,
) -> Iterator[Block]:
    """What is said of the layers.

    Args:
        layers: as `layers_of` gives them.
        reaches: as `reach` gives them.
        caches: of several lengths.
        row: the length of the row that an entry's `needed` is for.
        error: the budget of it.
    """
    header = ("layers", "positions", "keys seen", "a window is enough", "by", "logits within")
    named = {id(k): which(k.layers, len(reaches)) for k in layers}
    rows = [
        (
            named[id(k)],
            k.encoding + " + sink" * k.sink,
            "all" if k.keys is None else count(k.keys),
            _word(k),
            k.windowable.theorem,
            "" if k.logit_bound is None else f"{k.logit_bound:.4g}, {k.bound_from}",
        )
        for k in layers
    ]
    yield table(header, rows, "Whether a fixed window is ever enough, layer by layer", numeric=(2,))
    said: dict[str, list[str]] = {}
    for k in layers:
        if k.windowable.hypotheses:
            said.setdefault(k.windowable.theorem, []).append("; ".join(k.windowable.hypotheses))
    for theorem, hypotheses in said.items():
        yield note("{name}: {where}.", name=theorem, where="; or ".join(dict.fromkeys(hypotheses)))
    yield _depth(layers, reaches)
    for k in layers:
        if k.needed is not None:
            most = "at most " if k.sink else ""  # a constant in the denominator makes it no more
            yield note(
                "Layers ({which}): for logits within {bound}, an error of {error} takes {keys} of "
                "a row of {row}, and half of the mass of its keys lies outside any j keys in rows "
                "of {half} j, whatever the input.",
                which=named[id(k)],
                bound=f"{k.logit_bound:.4g}",
                error=error,
                keys=most + plural(k.needed, "key"),
                row=count(row),
                half=f"{k.half:.4g}",
            )
    if any(k.windowable.value is False for k in layers):
        yield note(
            "Which rows of a text a window serves nonetheless, with or without kept first keys: "
            "{command}.",
            command="farfield window --model FOLDER --error ETA --keep J --sinks K",
        )
    if any(k.keys is not None for k in layers):
        cells = [(count(c.length), count(c.keys), f"{c.share:.1%}", _size(c.bytes)) for c in caches]
        yield table(
            ("row", "keys in the cache", "of full attention", "16-bit cache"),
            cells,
            "Keys that all layers together hold of one row; dropping others changes nothing",
            numeric=(0, 1, 2, 3),
        )


def which(layers: Sequence[int], of: int) -> str:
    """Layers in words, where a pattern repeats.

    >>> which([1, 2, 3], 3), which([2, 4, 6, 8], 8), which([1, 2, 4, 5, 7, 8, 10, 11], 12)
    ('all', 'every 2nd from 2', 'all but every 3rd from 3')
    """
    if len(layers) == of:
        return "all"
    others = [k for k in range(1, of + 1) if k not in {*layers}]
    for named, prefix in ((list(layers), ""), (others, "all but ")):
        steps = {b - a for a, b in itertools.pairwise(named)}
        if len(named) > 3 and len(steps) == 1 and (step := steps.pop()) > 1:
            ending = {2: "nd", 3: "rd"}.get(step, "th")
            return f"{prefix}every {step}{ending} from {named[0]}"
    return runs(layers)


def _word(k: LayerAudit) -> str:
    known = {True: "yes", False: "never", None: "not known"}[k.windowable.value]
    if k.keys is not None:
        return f"{known}: {count(k.keys)}"
    return f"if {k.windowable.condition}" if k.windowable.condition is not None else known


def _depth(layers: Sequence[LayerAudit], reaches: Sequence[float]) -> Block:
    if math.isfinite(reaches[-1]):
        return sentence(
            "Through depth, the last output depends on the nearest {tokens} and on no more.",
            "theorem",
            tokens=plural(int(reaches[-1]), "token"),
        )
    first = next(k for k, r in enumerate(reaches, 1) if not math.isfinite(r))
    below = (
        ""
        if first == 1
        else (f"; the layers below reach {plural(int(reaches[first - 2]), 'token')}")
    )
    return sentence(
        "Through depth, the last output depends on every token: layer {first} sees all{below}.",
        "theorem",
        first=first,
        below=below,
    )


def _size(bytes: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if bytes >= size:
            return f"{bytes / size:.1f} {unit}"
    return f"{bytes} bytes"
