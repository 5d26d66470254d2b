"""Figures and tables of Chi et al., *Dissecting Transformer Length Extrapolation via the Lens of
Receptive Field Analysis* (ACL 2023)."""

from __future__ import annotations

import numpy as np

from farfield.figures.charts import Named, Panel, charted
from farfield.figures.exhibit import Data, Drawing, rows
from farfield.figures.matrices import cells, heat_map, positions
from farfield.figures.style import COLOURS, SOFT, house, new_figure
from farfield.theory.answers.notation import listed
from farfield.theory.encodings import Encoding, encoding

LENGTH = 8192
BY_DISTANCE = {
    "xscale": "log",
    "xlabel": "n + 1 (tokens, log)",
    "ylabel": "bias",
    "xlim": (1, LENGTH),
}
"""The axes of a row of biases by its logarithmic distance."""
DECADES = [10**k for k in range(4)]
DIGITS = "₁₂₃₄₅"
"""Places of queries and keys, from 1 on."""


def fig1() -> Drawing:
    """ALiBi: the attention matrix, and the biases added to it."""
    return _additive(
        encoding("alibi", heads=8).head(1),
        "ALiBi",
        "ALiBi takes 1/2 from the logit for each token of distance, in the head of slope 1/2 (the "
        "paper leaves the slope, 1/2^h, a factor).",
    )


def fig2() -> Drawing:
    """Windowed attention with a window of 2: the attention matrix, and the biases."""
    return _additive(
        encoding("window", w=2).head(1),
        "window",
        "A window of 2 tokens, the query's own included, shuts all others out: −∞ beyond.",
    )


def _additive(bias: object, name: str, caption: str) -> Drawing:
    size = 5
    i, j = positions(size)
    values = encoding(bias).bias(np.arange(size))[0]
    seen = j <= i
    open_ = seen & np.isfinite(values)[np.abs(i - j)]

    def shown(query: int, key: int) -> str:
        value = values[query - key]
        return f"{value + 0:g}".replace("-", "−") if np.isfinite(value) else "−∞"

    with house(column=True):
        figure, (left, right) = new_figure(2.0, columns=2)
        cells(left, seen, lambda q, k: f"q{DIGITS[q]}k{DIGITS[k]}")
        cells(right, open_, shown)
        for query, key in zip(*np.nonzero(seen & ~open_), strict=True):
            right.text(key, query, "−∞", ha="center", va="center")
        left.set_title("content logits")
        right.set_title(f"temporal biases: {name}")
    data = Data(
        ("query", "key", "bias"),
        tuple((q + 1, k + 1, values[q - k]) for q in range(size) for k in range(q + 1)),
    )
    return Drawing(data, caption + " Rows are queries, columns keys, both from 1.", figure)


def fig3() -> Drawing:
    """The last-token protocol: the same tokens scored with different context lengths."""
    scored, contexts = 5, (5, 3)
    table = [
        (length, target, target - length, target - 1)
        for length in contexts
        for target in range(1, scored + 1)
    ]
    first = min(row[2] for row in table)
    with house(column=True):
        figure, panels = new_figure(2.3, rows=2)
        for axes, length in zip(panels, contexts, strict=True):
            target = np.arange(1, scored + 1)[:, None]
            place = np.arange(first, scored + 1)[None, :]
            inside = (place >= target - length) & (place <= target)
            cells(
                axes,
                inside,
                lambda q, k: str(k + first) if k + first == q + 1 else "",
                accent=place == target,
            )
            axes.set_ylabel(f"Lₑₓ = {length}")
            axes.set_aspect("auto")
        panels[1].set_xticks(
            range(scored + 1 - first), [str(k).replace("-", "−") for k in range(first, scored + 1)]
        )
        panels[1].set_xlabel("position of the token")
    return Drawing(
        Data(
            ("context length", "scored token", "first context token", "last context token"),
            tuple(table),
        ),
        "The same five tokens are scored (blue), only the number of tokens before them (grey) "
        "varies.",
        figure,
        made="Each of the tokens numbered 1 to 5 is scored in a segment of its own, as the token "
        "after the last of exactly L_ex tokens of context.",
    )


def _sandwich(d_bar: int = 128, c: int = 8) -> Encoding:
    return encoding("sandwich", dialect="equation", d_bar=d_bar, c=c)


def fig8(*, length: int = LENGTH, d_bar: int = 128, c: int = 8) -> Drawing:
    """The Sandwich bias of Eq. 6 as an image."""
    step = max(1, length // 256)
    places = np.arange(0, length, step)
    values = _sandwich(d_bar, c).bias(places)[0]
    with house(column=True):
        figure, axes = new_figure(2.9)
        shown = heat_map(axes, values, extent=(0, length, length, 0))
        axes.set(xlabel="key position", ylabel="query position")
        figure.colorbar(shown, ax=axes, label="bias", shrink=0.8)
    return Drawing(
        Data(("n", "bias"), rows(places, values)),
        f"The bias falls with the distance, in waves: from {values[0]:.3g} to {values[-1]:.3g} at "
        f"{places[-1]} tokens.",
        figure,
        made=f"Eq. 6 with compression ratio {c} and d_bar = {d_bar} (i from 1 to {d_bar // 2}, "
        f"constant {d_bar // 2}), the causal half, in steps of {step} positions to {length}.",
    )


def fig9() -> Drawing:
    """The last row of Figure 8 with logarithmic fits."""
    n = np.arange(LENGTH)
    row = _sandwich().bias(n)[0]
    printed = -0.825 * np.log1p(n) - 0.8
    fits = {}
    for label, size in (("the 50 nearest", 50), ("all", LENGTH)):
        slope, constant = np.polyfit(np.log1p(n[:size]), row[:size], 1)
        fits[label] = (float(slope), float(constant))
    curves = {k: a * np.log1p(n) + c for k, (a, c) in fits.items()}
    shown = (
        ("printed fit", printed, "-"),
        ("least squares, 50 nearest", curves["the 50 nearest"], "--"),
        ("least squares, all", curves["all"], ":"),
    )
    whole = Named("Eq. 6, last row", n + 1, row, SOFT, {"linewidth": 0.6}, told=False)
    lines = [Named(name, n + 1, values, look={"linestyle": dash}) for name, values, dash in shown]
    return Drawing(
        Data(
            ("key position", "n", "bias", "printed fit", "fit to 50", "fit to all"),
            rows(LENGTH - n, n, row, printed, curves["the 50 nearest"], curves["all"]),
        ),
        "The printed slope is nearer to least squares over all keys than to those over the 50 "
        "nearest, which the paper names.",
        charted(2.4, Panel([whole, *lines], BY_DISTANCE, DECADES)),
        made=f"Grey: Eq. 6 for the query at {LENGTH}, compression ratio 8, d_bar = 128. The 50 "
        "nearest keys are those of footnote 7. The paper draws the row by key position, where its "
        "fall is a wall at the right end.",
        beside=Data(
            ("fit", "slope of log(1+n)", "constant"),
            (
                ("printed", "−0.825", "−0.8"),
                *((f"here, {k}", *(f"{v:.3f}".replace("-", "−") for v in fits[k])) for k in fits),
            ),
        ).table("The logarithmic fit"),
    )


def fig10(*, length: int = LENGTH, c: int = 8) -> Drawing:
    """The Sandwich bias for three values of d_bar."""
    n = np.arange(length)
    sizes = (64, 128, 256)
    curves = [_sandwich(d, c).bias(n)[0] for d in sizes]
    thin = {"linewidth": 0.6}
    each = zip(sizes, curves, COLOURS, strict=False)
    lines = [Named(f"d_bar = {d}", n + 1, y, colour, thin) for d, y, colour in each]
    ends = listed([f"−{-line.y[-1]:.1f} for {line.name}" for line in lines])
    return Drawing(
        Data(("key position", "n", *(f"d_bar {d}" for d in sizes)), rows(length - n, n, *curves)),
        f"A larger d_bar deepens the bias: {n[-1]} tokens back it is {ends}.",
        charted(2.3, Panel(lines, BY_DISTANCE, DECADES)),
        made=f"Eq. 6 for the query at {length}, compression ratio {c} (ours: the caption does not "
        "state it), by distance; the paper draws it by key position.",
    )
