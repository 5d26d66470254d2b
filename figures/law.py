"""The law at finite length, drawn: the loss of every trial against the order that it loses."""

from __future__ import annotations

import itertools

import numpy as np
from matplotlib.figure import Figure

from farfield.figures.style import COLOURS, INK, MARKERS, house
from farfield.validation.measures.extrapolation import TOLERANCE
from farfield.validation.reference.trials import slope, trials


def law_curve() -> Figure:
    """The ratio of perplexity of every committed trial against its order loss, by family.

    The line is the law, its one constant fitted on all of them; below the dashed line perplexity
    holds.
    """
    known = trials()
    families = sorted({t.family for t in known}, key=lambda f: -sum(t.family == f for t in known))
    looks = itertools.product(MARKERS, COLOURS)
    with house():
        figure = Figure(figsize=(8, 4.6))
        axes = figure.add_subplot()
        constant = slope(np.array([t.value for t in known]), np.array([t.loss for t in known]))
        at = np.linspace(0, 1, 101)
        axes.plot(at, np.exp(constant * at), color=INK, linewidth=1)
        axes.axhline(1 + TOLERANCE, color=INK, linewidth=0.8, linestyle="--")
        for family, (marker, colour) in zip(families, looks, strict=False):
            rows = [t for t in known if t.family == family]
            axes.plot(
                [t.value for t in rows],
                [np.exp(t.loss) for t in rows],
                marker,
                color=colour,
                label=family,
                alpha=0.85,
            )
        axes.set(
            xlabel="order loss, from the formula alone",
            yscale="log",
            ylabel="ratio of perplexity, measured",
            yticks=[1, 1.05, 1.2, 1.5],
            yticklabels=["1", "1.05", "1.2", "1.5"],
        )
        axes.yaxis.set_minor_formatter("")
        axes.legend(loc="upper left", ncols=2)
    return figure
