"""What the trained models say, drawn: the law at finite length, mixtures of heads, and which models
both hold their loss and use far keys. All three read the committed results of the registrations."""

from __future__ import annotations

from typing import Any

import numpy as np

from farfield.figures.exhibit import Data, Drawing, Exhibit
from farfield.figures.line_names import Named, name_lines, name_points
from farfield.figures.style import INK, LINES, MARKERS, house, new_figure, plain_ticks
from farfield.validation.extrapolation import TOLERANCE
from farfield.validation.reference.hold import both
from farfield.validation.reference.known_cases import Trial, left_out, slope, trials
from farfield.validation.reference.registration import USUAL

NAME = "farfield"
CITATION = "What the trained models say"
HOLDS = 1 + TOLERANCE
GREY = "#888888"
NEAR = 0.3
"""The order loss up to which the second panel of the law shows the trials."""
FAR = 4
"""Trials that the law's caption names, the farthest from the line."""


def _ratios(axes: Any, highest: float) -> None:
    """A logarithmic axis of ratios of perplexity, and the line up to which perplexity holds."""
    ticks = [1, 1.05, 1.2, 1.5] if highest < 2 else [1, 1.5, 2, 4, 8, 16]
    ticks = [r for r in ticks if r <= highest]
    axes.set_yscale("log")
    axes.set_yticks(ticks, [str(r) for r in ticks])
    axes.yaxis.set_minor_formatter("")
    axes.axhline(HOLDS, color=INK, linewidth=0.8, linestyle="--")


def law(runs: Any = None) -> Drawing:
    """The ratio of perplexity of every committed trial against its order loss."""
    every = trials()
    known = [t for t in every if t.steps == USUAL["steps"]]
    value, loss = (np.array([getattr(t, k) for t in known]) for k in ("value", "loss"))
    told = left_out(value, loss, [t.family for t in known])
    right = (told > np.log(HOLDS)) == (loss > np.log(HOLDS))
    explained = 1 - np.sum((loss - told) ** 2) / np.sum((loss - loss.mean()) ** 2)
    constant = slope(value, loss)
    farthest = [known[k].name for k in np.argsort(-np.abs(loss - told))[:FAR]]
    longer = [t for t in every if t.steps != USUAL["steps"]]
    with house(column=True):
        figure, (whole, near) = new_figure(4.6, rows=2)
        at = np.linspace(0, value.max(), 101)
        for axes, end in ((whole, value.max() * 1.25), (near, NEAR)):
            axes.plot(at, np.exp(constant * at), color=INK, linewidth=1)
            for side, look in ((right, {"color": GREY}), (~right, {"color": INK})):
                points = value[side], np.exp(loss[side])
                axes.plot(*points, "o", markersize=4, alpha=0.8, **look)
            axes.plot(
                [t.value for t in longer],
                [np.exp(t.loss) for t in longer],
                "o",
                color=INK,
                fillstyle="none",
            )
            axes.set(xlim=(-0.02 * end, end), ylabel="ratio of perplexity (log)")
        near.set_xlabel("order loss, from the formula alone")
        _ratios(whole, float(np.exp(max(t.loss for t in every))))
        _ratios(near, 1.3)
        near.set_ylim(0.96, 1.32)
    columns = ("name", "family", "steps", "order loss", "log ratio")
    data = tuple((t.name, t.family, t.steps, t.value, t.loss) for t in every)
    return Drawing(
        Data(columns, data),
        f"The order loss of the formula puts {right.sum()} of {len(known)} trials on the right "
        f"side of {TOLERANCE:.0%}: R² = {explained:.2f}, each family told by a line through the "
        f"others. Farthest from it: {'; '.join(farthest)}. Strong: on the wrong side. Circles: "
        "models that learned longer. Below: the corner of the first panel. Perplexity holds "
        "below the dashed line.",
        figure,
    )


SLOPES = {"1/2": "8 heads 1/2", "1/4": "alibi equal 2", "1/16": "alibi equal 4"}
"""Of the local heads, with the case in which all are local."""
HEADS = 8


def mixed(slope: str) -> dict[int, Trial]:
    """The trials with so many local heads of eight, all of one slope, the others without a bias."""
    known = {t.name: t for t in trials()}
    names = {k: f"{k} head{'s' * (k > 1)} {slope}" for k in range(1, HEADS)}
    names = {0: "nope", **names, HEADS: SLOPES[slope]}
    return {k: known[name] for k, name in names.items() if name in known}


def mixtures(runs: Any = None) -> Drawing:
    """The ratio of perplexity by the number of local heads of eight, a line a slope."""
    ratios = {s: {k: float(np.exp(t.loss)) for k, t in mixed(s).items()} for s in SLOPES}
    lines = [Named(f"slope {s}", [*found], [*found.values()], INK) for s, found in ratios.items()]
    rows = tuple((s, k, y) for s, found in ratios.items() for k, y in found.items())
    with house(column=True):
        figure, axes = new_figure(2.6)
        for line, dash, marker in zip(lines, LINES, MARKERS, strict=False):
            axes.plot(line.x, line.y, dash, marker=marker, color=INK, label=line.name)
        axes.set(
            xlabel="local heads of eight",
            xticks=[0, 1, 2, 4, 8],
            xlim=(-0.2, 8.05),
            ylabel="ratio of perplexity (log)",
        )
        _ratios(axes, max(y for *_, y in rows))
        name_lines(figure, (axes, lines))
    return Drawing(
        Data(("slope", "local heads", "ratio of perplexity"), rows),
        f"One local head of eight is enough: slope 1/4 takes the ratio of perplexity at 16 times "
        f"the training length from {ratios['1/4'][0]:.2f} to {ratios['1/4'][1]:.2f}. The other "
        f"heads have no bias. Perplexity holds below the dashed line ({HOLDS:g}).",
        figure,
    )


def _short(label: str) -> str:
    """The name of a mechanism in the picture: its layers in brackets, windows of rotary layers."""
    return label.replace(" rotary", "").replace(", layers 4", " (4)")


def hold_and_use(runs: Any = None) -> Drawing:
    """How well keys beyond the training length are used, against how far the loss holds."""
    found = sorted(both(), key=lambda b: -b.used)
    with_loss = [b for b in found if b.ratio is not None]
    learned = [b for b in found if b.learned]
    aside = [b for b in learned if b.ratio is None]
    end = 1.2 * max(b.ratio or 1 for b in with_loss)
    with house(column=True):
        figure, axes = new_figure(4)
        for b in with_loss:
            style = {} if b.learned else {"fillstyle": "none"}
            axes.plot([b.ratio], [b.used], "o", color=INK, clip_on=False, **style)
        axes.axvline(HOLDS, color=INK, linewidth=0.8, linestyle="--")
        axes.set(
            xscale="log",
            xlim=(0.96, end),
            ylim=(-0.06, 1.04),
            xlabel="perplexity ratio (log)",
            ylabel="right answers beyond the training length",
        )
        plain_ticks(axes.xaxis, (1, 1.5, 2))
        figure.canvas.draw()
        named = [
            Named(_short(b.label), [b.ratio], [b.used], INK)
            for b in with_loss
            if b.learned and b.ratio is not None
        ]
        name_points(axes, [p for p in named if p.x[0] <= HOLDS], 0.14)
        name_points(axes, [p for p in named if p.x[0] > HOLDS], 0.88)
    well = [b for b in learned if b.used >= 0.5]
    known = {b.label: b.ratio for b in well if b.ratio is not None}
    held = [label for label, ratio in known.items() if ratio <= HOLDS]
    return Drawing(
        Data(
            ("mechanism", "models", "learned", "used", "ratio of perplexity"),
            tuple((b.label, b.seeds, str(b.learned).lower(), b.used, b.ratio) for b in found),
        ),
        f"{len(well)} of the {len(learned)} mechanisms that learned their task still answer most "
        f"questions beyond the training length, on rows of 16 times that length. The loss was "
        f"measured for {len(known)} of these; it holds for {'; '.join(held) or 'none'}. Hollow: "
        "mechanisms that did not learn the task at home, so they say nothing of far keys. The loss "
        "holds left of the dashed line. Windows are those of rotary layers; (4): four layers.",
        figure,
        made="Answers: models of 2 layers (of 4 where a name says so) and 4 heads that repeat what "
        "once followed a token. Loss: language models of 4 layers and 8 heads with the same "
        "biases, as many heads local. "
        f"Hollow: {'; '.join(b.label for b in with_loss if not b.learned)}. Right answers of those "
        f"whose loss was not measured: {'; '.join(f'{b.label} {b.used:.2f}' for b in aside)}.",
    )


EXHIBITS = (
    Exhibit("farfield.hold-and-use", hold_and_use),
    Exhibit("farfield.law", law),
    Exhibit("farfield.mixtures", mixtures),
)
