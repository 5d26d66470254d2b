"""Figures of a study: biases and receptive fields beside the catalogue's, which need no training;
perplexity beyond the training length, and what was predicted against what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from farfield.figures.style import house, look, new_figure, plain_ticks, round_numbers
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.theory.encodings import Encoding
from farfield.theory.verdicts import Verdict
from farfield.validation.study.findings import last_token_ratio
from farfield.validation.study.place import references
from farfield.validation.study.prediction import Prediction
from farfield.validation.study.study import Study

EPS = tuple(Fraction(k, 10**e) for e in range(1, 6) for k in (5, 2, 1))
HORIZON = 4096
FRAME = 1e7
"""The greatest receptive field that is drawn."""
LEAST = 1e-12
"""Weights below are drawn as this: they lie under the frame."""


# -- without training -----------------------------------------------------------------------------


def _shown(s: Study) -> list[tuple[str, dict[str, Any], Encoding]]:
    """The encodings that were asked about, thick, then the reference heads, thin."""
    found = []
    for e in s.about(asked=True):
        p = e.prediction
        if p.row_fields:
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
            b = np.maximum(np.exp(row[1:] - row[0]), LEAST)
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


# -- of trained models ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """One measurement of a study: of which encoding, and whether with blockwise attention."""

    prediction: Prediction
    bca: bool
    numbers: Mapping[str, Any]

    @property
    def name(self) -> str:
        """As a legend has it."""
        return self.prediction.name + " + BCA" * self.bca

    def style(self) -> dict[str, Any]:
        """The look of the encoding, hollow and dotted with blockwise attention."""
        hollow = {"linestyle": ":", "markerfacecolor": "none"} if self.bca else {}
        return look(self.prediction.name) | hollow

    def point(self) -> dict[str, Any]:
        """The same without a line."""
        return self.style() | {"linestyle": ""}


def measured(s: Study) -> Sequence[Measured]:
    """What was measured, in the order of the study."""
    return [
        Measured(e.prediction, bca, m)
        for e in s.entries
        for bca in (False, True)
        if (m := e.measurement(bca)) is not None
    ]


def perplexity_curves(s: Study, protocol: str = "last token") -> Figure:
    """Perplexity over that at the training length, by context length, one curve an encoding."""
    with house():
        figure, axes = new_figure(4.8, 4.4)
        lengths: set[int] = set()
        for m in measured(s):
            rows = sorted(
                (p for p in m.numbers["perplexity"] if p["protocol"] == protocol),
                key=lambda p: p["length"],
            )
            x = [p["length"] for p in rows]
            lengths |= set(x)
            axes.plot(x, [p["ratio"] for p in rows], label=m.name, **m.style())
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        plain_ticks(axes.xaxis, sorted(lengths))
        plain_ticks(axes.yaxis, round_numbers(*axes.get_ylim()))
        axes.set_xlabel("context length (tokens)")
        axes.set_ylabel(f"perplexity / perplexity at {s.preset.length}")
        figure.legend(loc="outside lower center", ncols=3)
        return figure


def trf_against_erf(s: Study) -> Figure:
    """Finite-row TRF of the bias against the attention ERF of the trained model, each threshold."""
    with house():
        figure, axes = new_figure(4.8, 4.4)
        values: list[float] = []
        for m in measured(s):
            if m.bca or not m.prediction.encoding.biases:
                continue
            x = [f["trf"] for f in m.numbers["attention"]]
            y = [f["tokens"] for f in m.numbers["attention"]]
            values += x + y
            axes.plot(x, y, label=m.name, **(m.style() | {"linewidth": 0.9}))
        if values:
            ends = (max(min(values) * 0.8, 0.5), max(values) * 1.2)
            axes.plot(ends, ends, color="#888888", linewidth=0.8, zorder=0)
        axes.set_xscale("log")
        axes.set_yscale("log")
        plain_ticks(axes.xaxis, round_numbers(*axes.get_xlim()))
        plain_ticks(axes.yaxis, round_numbers(*axes.get_ylim()))
        axes.set_xlabel("finite-row TRF (tokens), from the formula")
        axes.set_ylabel("attention ERF (tokens), measured")
        figure.legend(loc="outside lower center", ncols=3)
        return figure


def predictors(s: Study) -> Figure:
    """The last-token perplexity ratio against the leak, and against the gradient mass."""
    with house():
        figure, left = new_figure(4.8, 3.6)
        left.remove()
        left, right = figure.subplots(1, 2, sharey=True)
        for m in measured(s):
            ratio = last_token_ratio(m.numbers)[1]
            leak = m.prediction.longest_leak
            if leak is not None and not m.bca:
                left.plot([leak], [ratio], **m.point())
            right.plot([m.numbers["gradient"]["mass"]], [ratio], label=m.name, **m.point())
        left.set_yscale("log")
        plain_ticks(left.yaxis, round_numbers(*left.get_ylim()))
        trained, *_, longest = s.lengths
        left.set_xlabel(f"leak from {trained}\nto {longest} tokens")
        right.set_xlabel(f"gradient mass on\nthe last {trained} tokens")
        left.set_ylabel(f"perplexity ratio {longest}/{trained}")
        figure.legend(loc="outside lower center", ncols=3)
        return figure
