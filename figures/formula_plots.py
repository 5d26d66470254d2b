"""Formulas in one figure: their biases, weights, receptive fields, leaks or windows."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count, groupby, takewhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from sympy import Expr

from farfield.figures.charts import Named, Panel, charted
from farfield.figures.exhibit import Data, saved
from farfield.figures.style import COLOURS, LINES, svg
from farfield.numerics.float_rows import head_prices
from farfield.numerics.leak import leak
from farfield.numerics.questions import resolve
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.windows.window import certified_window
from farfield.theory.answers.answer import InputError, Result
from farfield.theory.answers.blocks import Block, Sentence, note
from farfield.theory.answers.names import one_of
from farfield.theory.answers.notation import listed, shortened, words
from farfield.theory.answers.number import inside, natural, share
from farfield.theory.encodings import CATALOGUE, Encoding
from farfield.theory.first_terms import defined
from farfield.theory.values import tabulate

MAX_LENGTH = 10**6
MAX_LINES = 200
WIDTH = 6.4
"""Of a figure, in inches."""
FRAME = 1e8
"""Numbers of tokens beyond are not drawn."""
LOWEST = {"bias": -18.0, "weights": 1e-8, "leak": 1e-8}
"""Values below lie under the frame."""

Points = Iterator[tuple[float, float]]
Draw = Callable[[Expr, int, Fraction], Points]


class Point(NamedTuple):
    """One point of a line, as a row of the CSV has it; heads count from 1."""

    formula: str
    head: int
    x: float
    y: float


@dataclass(frozen=True, repr=False)
class Plot(Result):
    """A figure of several formulas, with its data.

    Fields:
        what: the quantity that is drawn.
        x_name, y_name: what the axes show, with units.
        data: every point: formula, head, x, y.
        missing: formulas with nothing to draw, with the reason.
        figure: of matplotlib.
    """

    what: str
    x_name: str
    y_name: str
    data: tuple[Point, ...]
    missing: tuple[tuple[str, str], ...]
    figure: Figure

    def save(self, path: str | os.PathLike[str]) -> tuple[Path, Path]:
        """Write the figure (svg, png or pdf, by its ending) and its data as CSV beside it.

        Raises:
            InputError: another ending, or a file that cannot be written.
        """
        table = Data(Point._fields, self.data)
        return saved(self.figure, path, table, f"plot-{self.what}", self._said())

    def blocks(self) -> Sequence[Block]:
        found: list[Block] = [Sentence(words("{said}", said=self._said()))]
        found += [
            note("{name} is not drawn: {why}.", name=shortened(f, 60), why=why)
            for f, why in self.missing
        ]
        return found

    def _said(self) -> str:
        drawn = listed(list(dict.fromkeys(shortened(p.formula, 40) for p in self.data)), 6)
        return f"{self.y_name}, by {self.x_name}: {drawn}."

    def fields(self) -> dict[str, Any]:
        found = {"what": self.what, "x_name": self.x_name, "y_name": self.y_name}
        return {**found, "missing": self.missing, "columns": Point._fields, "rows": self.data}

    def _repr_html_(self) -> str:
        return svg(self.figure, f"plot-{self.what}")


@dataclass(frozen=True)
class _Kind:
    """One thing that can be drawn: its axes, and the points of one head."""

    x_name: str
    y_name: str
    points: Draw
    log_y: bool = True
    falling: bool = False


def _distances(length: int) -> np.ndarray:
    return np.unique(np.concatenate([[0], np.geomspace(1, max(length - 1, 1), 200).astype(int)]))


def _by_distance(values: Callable[[Expr, np.ndarray, int], Sequence[float]]) -> Draw:
    """The values of a formula at distances of a row, those that are finite."""

    def points(p: Expr, length: int, eps: Fraction) -> Points:
        n = _distances(length)
        known = zip(n, values(p, n, length), strict=True)
        return ((float(x + 1), float(y)) for x, y in known if math.isfinite(y))

    return points


def _weights(p: Expr, n: np.ndarray, length: int) -> Sequence[float]:
    values = defined([p], n)[0]
    most = values[np.isfinite(values)].max(initial=-np.inf)
    return [math.exp(y - most) if y < np.inf else math.nan for y in values]


def _by_share(ask: Callable[[Expr, Fraction], float | None]) -> Draw:
    """A number of tokens by a share, from 1/2 to a thousandth of eps, as far as it is drawn."""

    def points(p: Expr, length: int, eps: Fraction) -> Points:
        shares = (Fraction(k, 10**e) for e in count(1) for k in (5, 2, 1))
        for at in sorted({*takewhile(lambda e: e >= eps / 1000, shares), eps}, reverse=True):
            tokens = ask(p, at)
            if tokens is None or tokens > FRAME:
                return
            yield float(at), float(tokens)

    return points


def _leaks(p: Expr, length: int, eps: Fraction) -> Points:
    for trained in np.unique(np.geomspace(1, length, 40).round().astype(int)):
        value = leak(p, int(trained)).value
        if value is not None:
            yield float(trained), value


KINDS = {
    "bias": _Kind(
        "n + 1 (tokens)",
        "bias p(n)",
        _by_distance(lambda p, n, _: defined([p], n)[0]),
        log_y=False,
    ),
    "weights": _Kind("n + 1 (tokens)", "weight over the largest", _by_distance(_weights)),
    "trf": _Kind(
        "eps, share of the mass left outside",
        "TRF(eps) in tokens",
        _by_share(lambda p, eps: theoretical_receptive_field(p, eps).tokens),
        falling=True,
    ),
    "leak": _Kind("training length (tokens)", "leak, share of the mass beyond", _leaks),
    "price": _Kind(
        "n + 1 (tokens)",
        "price of distance n in the row (nats)",
        _by_distance(lambda p, n, length: head_prices(tabulate(p, np.arange(length))[None])[0, n]),
        log_y=False,
    ),
    "window": _Kind(
        "error budget, for |logits| and |values| up to 1",
        "certified window in tokens",
        _by_share(lambda p, error: certified_window(p, error, 1, 1).width),
        falling=True,
    ),
}
"""What can be drawn, by its name."""


def plot(
    *formulas: Any,
    what: str = "bias",
    length: Any = 1024,
    eps: Any = "1/100",
    notice: Callable[..., None] | None = None,
) -> Plot:
    """Several formulas and encodings of the catalogue, each head a line, in one figure.

    Args:
        formulas: formulas in `n`, names of the catalogue or any `Encoding`, with a value for every
            parameter.
        what: `bias`, p(n); `weights`, exp(p(n)) over the largest; `trf`, TRF(eps) by eps; `leak`,
            the leak by training length; `price`, the logit advantage that half of the attention on
            a key costs in a row of `length` keys; `window`, the certified window by error budget,
            for logits and values of at most 1.
        length: the largest distance or training length that is drawn, in tokens.
        eps: receptive fields and windows are drawn from a share of 1/2 to a thousandth of this one.
        notice: called as `notice(stage, done, total)`.

    Raises:
        InputError: nothing to draw, a parameter without a value, an encoding that is no bias, a
            length or a share out of range.

    >>> drawn = plot("-n/8", "-2*log(1+n)", what="trf")
    >>> [round(p.y) for p in drawn.data if p.x == 0.01]
    [37, 61]
    """
    if not formulas:
        raise InputError("give a formula, or several")
    one_of(what, "what", KINDS)
    last = natural(length, "length", 2, MAX_LENGTH)
    goal = inside(eps, "eps", "(0, 1)")
    subjects = [resolve(f, {}) for f in formulas]
    if sum(s.num_heads for s in subjects) > MAX_LINES:
        raise InputError(f"more than {MAX_LINES} heads; accepted are fewer formulas, or heads=8")
    kind, data, missing = KINDS[what], list[Point](), list[tuple[str, str]]()
    names = _names(subjects)
    for k, (name, subject) in enumerate(zip(names, subjects, strict=True)):
        if notice is not None:
            notice(shortened(name, 40), k, len(subjects))
        shown, end = _as_far_as_seen(subject, what, last)
        if not shown.biases:
            missing.append((name, str(shown.out_of_scope)))
        for h, bias in enumerate(shown.biases, 1):
            points = kind.points(bias, end, Fraction(int(goal.p), int(goal.q)))
            found = [Point(name, h, x, y) for x, y in points]
            data += found
            if not found and name not in dict(missing):
                missing.append((name, _why(what)))
    if not data:
        raise InputError("; ".join(f"{name} has nothing to draw: {why}" for name, why in missing))
    drawn = _draw(what, kind, dict(zip(names, subjects, strict=True)), data, goal)
    return Plot(what, kind.x_name, kind.y_name, tuple(data), tuple(missing), drawn)


def _as_far_as_seen(subject: Encoding, what: str, last: int) -> tuple[Encoding, int]:
    """An encoding with the biases that a quantity asks for, and the row that it is drawn for: the
    values of a tabulated one end where nobody has seen it."""
    end = last
    if subject.seen is not None and what in ("bias", "weights"):
        end = min(last, subject.seen.distance + 1)
    return subject.row(end if what in ("bias", "weights", "price") else None), end


def _names(subjects: Sequence[Encoding]) -> list[str]:
    """Unlike names of the subjects: encodings of one name have a number each."""
    found: list[str] = []
    for subject in subjects:
        count = sum(name.partition(" #")[0] == subject.name for name in found)
        found.append(f"{subject.name} #{count + 1}" if count else subject.name)
    return found


def _why(what: str) -> str:
    named = {"trf": "receptive field", "window": "certified window"}.get(what)
    beyond = f"its {named} is infinite, beyond {FRAME:.0e} tokens or not known"
    return beyond if named else "its values are not known"


def _draw(
    what: str, kind: _Kind, subjects: dict[str, Encoding], data: Sequence[Point], eps: Any
) -> Figure:
    lines = []
    for (name, head), group in groupby(data, lambda p: (p.formula, p.head)):
        place, heads = list(subjects).index(name), subjects[name].num_heads
        fade = 1.0 if heads == 1 else 1 - 0.6 * (head - 1) / (heads - 1)
        _, _, x, y = zip(*group, strict=True)
        marker = "o" if len(x) == 1 else ""
        look = {"alpha": fade, "linestyle": LINES[place % len(LINES)], "marker": marker}
        colour, title = COLOURS[place % len(COLOURS)], _title(subjects[name], name, head)
        lines.append(Named(title, x, y, colour, look, told=head in (1, heads)))
    xs, ys = [p.x for p in data], [p.y for p in data if math.isfinite(p.y)]
    low, high = min(xs), max(xs)
    marked = kind.falling and bool(low < eps < high)
    axes = {
        "xscale": "log",
        "yscale": "log" if kind.log_y else "linear",
        "xlabel": kind.x_name,
        "ylabel": kind.y_name,
        "xlim": (high, low) if kind.falling else (low, max(high, 2 * low)),
        "ylim": _ends(what, ys),
        "title": f"vertical line: eps = {share(eps)}" if marked else "",
    }
    decades = [t for k in range(7) if low <= (t := 10**k) <= max(high, 2 * low)]
    panel = Panel(lines, axes, None if kind.falling else decades, upright=[float(eps)] * marked)
    return charted(4.2, panel, width=WIDTH)


def _ends(what: str, ys: Sequence[float]) -> tuple[float, float]:
    """The least and the greatest y that are drawn.

    >>> _ends("leak", [0.0, 0.5, 0.002]), _ends("leak", [1e-9]), _ends("trf", [1.0, 5.0])
    ((0.001, 2), (1e-08, 2), (0.8, 10.0))
    """
    least = LOWEST.get(what)
    if what in ("bias", "price"):
        bottom = min(ys) if least is None else max(min(ys), max(ys) + least)
        pad = 0.04 * (max(ys) - bottom or 1)
        return bottom - pad, max(ys) + pad
    if least is not None:
        return max(least, min((y for y in ys if y > 0), default=least) / 2), 2
    return 0.8, 2 * max(ys)


def _title(subject: Encoding, name: str, head: int) -> str:
    title = subject.title if subject.name in CATALOGUE else shortened(name, 32)
    if " #" in name and subject.name in CATALOGUE:
        title += f" #{name.partition(' #')[2]}"
    title += f" (seen to {subject.seen.distance})" if subject.seen else ""
    return title if subject.num_heads == 1 else f"{title}, head {head}"
