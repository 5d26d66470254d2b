"""The prior of a bias, drawn: weights beside the critical one, the share of the nearest tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from farfield.numerics.leak import leak
from farfield.theory.algebra.door import Budget, budget, unhurried
from farfield.theory.answers.blocks import Curve, Line, Weight
from farfield.theory.answers.notation import Text, as_text, shortened
from farfield.theory.answers.number import runs
from farfield.theory.encodings import CATALOGUE, Encoding, encoding
from farfield.validation.study.place import Rank, references

HORIZON = 4096
LONG = 160
"""Characters beyond which a formula is told by its note."""
LEAST = 1e-8
"""The least weight that is drawn."""
BELOW = 1e-10
"""A weight where a line ends, below the frame."""
NEAREST = 64
"""Tokens whose share is drawn as the text grows."""
LENGTHS = tuple(round(NEAREST * 10 ** (k / 10)) for k in (*range(25), *range(27, 75, 3)))
"""Of that text; fewer where it is long, since shares change slowly there."""
SHORT = 20_000
"""The longest text whose keys are summed one by one."""
GREY = (("ALiBi 1/64", "-n/64"), ("no bias", "0"))
"""Biases that everyone knows, drawn behind others."""


def name_of(e: Encoding) -> Text:
    """What an encoding is called: its formula, where it has no other name."""
    unnamed = e.source == encoding("0").source
    if unnamed and e.formula is not None and len(str(e.formula)) <= LONG:
        return as_text(e.formula)
    return as_text((e.title or e.name).replace(" -", " −"))


def weights(subject: Encoding, name: str, last: float = HORIZON, **look: Any) -> Iterator[Line]:
    """exp(p(n) - p(0)) by n + 1 up to the last n, or the last that was seen; of several heads the
    one that falls slowest."""
    last = last if subject.seen is None else min(last, subject.seen.distance)
    n = np.unique(np.geomspace(1, last, 120).astype(int))
    with unhurried():
        rows = subject.bias(np.concatenate([[0], n]))
    row = rows[np.argmax(rows[:, -1] - rows[:, 0])]
    values = np.exp((row[1:] - row[0]).clip(max=80))
    kept = int(np.flatnonzero([True, *(values > BELOW)])[-1]) + 1
    x, y = n[:kept] + 1.0, values[:kept].clip(BELOW)
    yield Line(name, tuple(x.tolist()), tuple(y.tolist()), **look)


def against_critical(shown: Sequence[tuple[str, Encoding]], ranks: Sequence[Rank] = ()) -> Curve:
    """The weight of the prior against the critical one, 1/(n + 1), with known encodings behind it.

    Args:
        shown: names and encodings, every parameter with a value.
        ranks: their place among the catalogue: its heads are drawn in the colours of their
            verdicts, the neighbours named; without any the baselines are drawn.
    """
    biases = {e.biases for _, e in shown}
    near = {r.name for pair in pairwise(ranks) for r in pair if any(x.asked for x in pair)}
    verdicts = {r.name: str(r.verdict) for r in ranks}
    lines = [
        line
        for k, (name, e) in enumerate(shown)
        for line in weights(e, shortened(name, 40), colour=k, weight=Weight.STRONG)
    ]
    exact = any(np.allclose(np.array(line.y) * line.x, 1) for line in lines)
    for title, name, head in references():
        if head.biases not in biases and (verdicts or CATALOGUE[name].baseline):
            named, colour = not ranks or title in near, verdicts.get(title)
            lines += weights(head, title, colour=colour, told=named, weight=Weight.CONTEXT)
    x = (2.0, HORIZON + 1.0)
    name = "exactly critical" if exact else "critical 1/n"
    lines.append(Line(name, x, (1 / x[0], 1 / x[1]), "ink", 1))
    several = any(e.num_heads > 1 for _, e in shown)
    return Curve(
        "A curve that stays clearly below the dashed line converges; near it, the proof decides. "
        "Drawn is the weight of a token at distance n, relative to the current token."
        + several * " Of several heads the one that falls slowest."
        + any(e.seen for _, e in shown)
        * " A table of values ends where nobody has seen it, so its curve decides nothing."
        + bool(ranks) * " Known encodings: green converges, orange diverges.",
        "n + 1 (tokens)",
        "exp(p(n) − p(0))",
        tuple(lines),
        True,
        True,
        frame=(LEAST, max(2.0, *(max(line.y) for line in lines))),
    )


def kept_share(shown: Sequence[tuple[str, Encoding, int | str]]) -> Curve:
    """The share of the mass that the nearest 64 tokens keep as the text grows.

    Args:
        shown: names and encodings, every parameter with a value, each with its colour: a place in
            the palette or a verdict.
    """
    several = any(e.num_heads > 1 for _, e, _ in shown)
    alone = len(shown) == 1 and len(set(shown[0][1].biases)) > 1
    if alone:
        shown, several = list(_each_head(shown[0][1], shown[0][2])), False
    biases = {e.biases for _, e, _ in shown}
    with unhurried():
        grey = [(name, encoding(formula), None) for name, formula in GREY]
    known = [(name, e, None) for name, e, _ in grey if e.biases not in biases]
    lines = []
    for name, e, colour in (*known, *shown):
        if len(points := _kept(e, budget())) > 1:
            x, y = zip(*points, strict=True)
            weight = Weight.CONTEXT if colour is None else Weight.PLAIN
            lines.append(Line(shortened(name, 40), x, y, colour, weight=weight))
    least = min((line.y[-1] for line in lines if line.weight is Weight.PLAIN), default=0)
    lines = [
        replace(line, weight=Weight.STRONG)
        if line.weight is Weight.PLAIN and (not alone or line.y[-1] == least)
        else line
        for line in lines
    ]
    return Curve(
        f"The share of the attention that the nearest {NEAREST} tokens keep as the text grows, all "
        "contents alike. It levels off above 0: a window is enough. It falls to 0: none is."
        + several * " Of several heads the one that keeps least."
        + alone * " Bold: the head that keeps least.",
        "length of the text (tokens)",
        f"share of the nearest {NEAREST}",
        tuple(lines),
        True,
        frame=(0.0, 1.0),
    )


def _each_head(e: Encoding, colour: int | str) -> Iterator[tuple[str, Encoding, int | str]]:
    """Every bias of an encoding with the heads that have it."""
    for bias in dict.fromkeys(e.biases):
        heads = [h for h, other in enumerate(e.biases, 1) if other == bias]
        noun = "head" if len(heads) == 1 else "heads"
        with unhurried():
            alone = encoding(bias)
        yield f"{noun} {runs(heads)}", alone, colour


@lru_cache(maxsize=64)
def _kept(e: Encoding, limits: Budget) -> tuple[tuple[float, float], ...]:
    """The length of a text, and the share of its mass that the nearest tokens keep: summed in
    float64 while the text is short, certified from there on, as far as the limits allow."""
    short = [n for n in LENGTHS if n <= SHORT]
    with unhurried():
        biases = e.bias(np.arange(short[-1]))
    masses = np.exp(biases - biases.max(axis=1, keepdims=True)).cumsum(axis=1)
    shares = (masses[:, NEAREST - 1, None] / masses[:, np.array(short) - 1]).min(axis=0)
    lost = [(n, leak(e, NEAREST, n).value) for n in LENGTHS[len(short) :]]
    points = [*zip(short, shares, strict=True), *((n, 1 - x) for n, x in lost if x is not None)]
    return tuple((float(n), float(share)) for n, share in points)
