"""Figures of a study that need no training: biases and receptive fields beside the catalogue's."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from farfield.figures.style import house, look, new_figure
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.theory.encodings import Encoding
from farfield.theory.verdicts import Verdict
from farfield.validation.study.place import references
from farfield.validation.study.study import Study

EPS = tuple(Fraction(k, 10**e) for e in range(1, 6) for k in (5, 2, 1))
HORIZON = 4096
FRAME = 1e7
"""The greatest receptive field that is drawn."""


def _shown(s: Study) -> list[tuple[str, dict[str, Any], Encoding]]:
    """The encodings that were asked about, thick, then the reference heads, thin."""
    found = []
    for e in s.entries:
        p = e.prediction
        if p.name in s.asked and p.row_fields:
            found.append((p.name, look(p.name) | {"linewidth": 2.4, "zorder": 3}, p.encoding))
    known: list[str] = []
    for label, name, subject in references():
        style = look(name) | {"linewidth": 1.0, "markersize": 4, "alpha": 0.85}
        if name in known:  # another head of the same encoding
            style |= {"linestyle": (0, (1, 1) * (known.count(name) + 1)), "marker": "x"}
        known.append(name)
        found.append((label, style, subject))
    return found


def biases(s: Study) -> Figure:
    """exp(p(n) - p(0)) by distance; of several heads the one that falls slowest."""
    n = np.unique(np.geomspace(1, HORIZON, 160).astype(int))
    with house():
        figure, axes = new_figure(4.8, 4.8)
        for label, style, subject in _shown(s):
            values = subject.bias(np.concatenate([[0], n]))
            row = values[int(np.argmax(values[:, -1] - values[:, 0]))]
            b = np.maximum(np.exp(row[1:] - row[0]), 1e-12)
            axes.plot(n + 1, b, label=label, **(style | {"marker": ""}))
        axes.set(xscale="log", yscale="log", xlim=(2, HORIZON + 1), ylim=(1e-8, 3))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axes.set(xlabel="n + 1 (tokens)", ylabel="exp(p(n) - p(0))")
        figure.legend(loc="outside lower center", ncols=2)
        return figure


def _within(subject: Encoding) -> Iterator[tuple[float, float]]:
    """(eps, TRF(eps)) from the largest eps on, up to the first beyond the frame."""
    for eps in EPS:
        tokens = theoretical_receptive_field(subject, eps).tokens
        if tokens is None:
            return
        yield float(eps), float(min(tokens, 10**12))
        if tokens > FRAME:
            return


def fields(s: Study) -> Figure:
    """TRF(eps) of the whole series; encodings whose series diverges have none."""
    with house():
        figure, axes = new_figure(4.8, 4.8)
        verdicts = {e.prediction.name: e.prediction.convergence.verdict for e in s.entries}
        for label, style, subject in _shown(s):
            if verdicts.get(label, Verdict.CONVERGES) is not Verdict.CONVERGES:
                continue
            points = list(_within(subject))
            if points:
                x, y = zip(*points, strict=True)
                axes.plot(x, y, label=label, **style)
        axes.set(xscale="log", yscale="log", ylim=(0.7, FRAME))
        axes.set(xlabel="eps, share of the mass left outside", ylabel="TRF(eps) in tokens")
        figure.legend(loc="outside lower center", ncols=2)
        return figure
