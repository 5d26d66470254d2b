"""The law at finite length, drawn: the loss of every trial against the order that it loses."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from farfield.figures.style import COLOURS, INK, MARKERS, house
from farfield.validation.harness.measures.extrapolation import TOLERANCE
from farfield.validation.reference.registration import USUAL
from farfield.validation.reference.trials import slope, trials

FAMILIES = (
    "mixtures",
    "slopes",
    "windows",
    "powers",
    "shifted",
    "alibi",
    "nope",
    "floors",
    "stretched",
    "bells",
    "flat",
    "kernels",
    "sandwich",
    "layers",
    "heads",
    "none",
)
"""Each has one look, whichever of them have results."""


def _look(family: str) -> tuple[str, str]:
    looks = [(m, c) for m in MARKERS for c in COLOURS]
    return looks[FAMILIES.index(family) if family in FAMILIES else -1]


def _ratios(axes: Axes, largest: float) -> None:
    """Ticks of a logarithmic axis of ratios, up to the largest logarithm."""
    near = (1.05,) if largest < 1 else ()
    ticks = [r for r in (1, *near, 1.2, 1.5, 2, 4, 8, 16) if np.log(r) <= largest]
    axes.set_yticks(ticks, [str(r) for r in ticks])
    axes.yaxis.set_minor_formatter("")


def law_curve() -> Figure:
    """The ratio of perplexity of every committed trial against its order loss, by family.

    The line is the slope of those of 1,000 steps; those of more steps are drawn hollow.
    Below the dashed line perplexity holds.
    """
    every = trials()
    known = [t for t in every if t.steps == USUAL["steps"]]
    names = {t.family for t in known}
    families = [*(f for f in FAMILIES if f in names), *sorted(names - {*FAMILIES})]
    with house():
        figure = Figure(figsize=(8, 4.6))
        axes = figure.add_subplot()
        constant = slope(np.array([t.value for t in known]), np.array([t.loss for t in known]))
        at = np.linspace(0, max(t.value for t in known), 101)
        axes.plot(at, np.exp(constant * at), color=INK, linewidth=1)
        axes.axhline(1 + TOLERANCE, color=INK, linewidth=0.8, linestyle="--")
        for family in families:
            marker, colour = _look(family)
            rows = [t for t in known if t.family == family]
            axes.plot(
                [t.value for t in rows],
                [np.exp(t.loss) for t in rows],
                marker,
                color=colour,
                label=family,
                alpha=0.85,
            )
        for longer in sorted({t.steps for t in every} - {USUAL["steps"]}):
            rows = [t for t in every if t.steps == longer]
            axes.plot(
                [t.value for t in rows],
                [np.exp(t.loss) for t in rows],
                "o",
                color=INK,
                fillstyle="none",
                label=f"{longer} steps",
            )
        axes.set(
            xlabel="order loss, from the formula alone",
            yscale="log",
            ylabel="ratio of perplexity, measured",
        )
        _ratios(axes, max(t.loss for t in every))
        axes.legend(loc="upper left", ncols=2)
    return figure


SLOPES = {"1/2": "8 heads 1/2", "1/4": "alibi equal 2", "1/16": "alibi equal 4"}
"""Of the local heads, with the case in which all are local."""


def mixture_curve() -> Figure:
    """The ratio of perplexity by the number of local heads of eight, a line a slope."""
    loss = {t.name: t.loss for t in trials()}
    with house():
        figure = Figure(figsize=(6.4, 4))
        axes = figure.add_subplot()
        axes.axhline(1 + TOLERANCE, color=INK, linewidth=0.8, linestyle="--")
        for (slope_, whole), marker, colour in zip(SLOPES.items(), MARKERS, COLOURS, strict=False):
            labels = {0: "nope", 8: whole} | {
                k: f"{k} head{'s' * (k > 1)} {slope_}" for k in (1, 2, 4)
            }
            heads = [k for k in sorted(labels) if labels[k] in loss]
            ratios = [np.exp(loss[labels[k]]) for k in heads]
            axes.plot(heads, ratios, marker=marker, color=colour, label=f"slope {slope_}")
        axes.set(
            xlabel="local heads of eight",
            xticks=[0, 1, 2, 4, 8],
            yscale="log",
            ylabel="ratio of perplexity, measured",
        )
        _ratios(axes, max(loss[label] for label in ("nope", *SLOPES.values())))
        axes.legend(loc="upper right")
    return figure
