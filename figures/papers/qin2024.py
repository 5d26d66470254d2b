"""Figures and tables of Qin et al., *Exploring Transformer Extrapolation* (AAAI 2024)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm

from farfield.figures.charts import Named, Panel, charted
from farfield.figures.exhibit import Data, Drawing
from farfield.figures.matrices import heat_map, mask_panels, positions, spans
from farfield.figures.style import COLOURS, MARKS_SAY, house, new_figure, told_apart
from farfield.numerics.masks import Mask
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.theory.answers.number import share as share_text
from farfield.theory.convergence import check_convergence
from farfield.theory.encodings import Encoding, encoding
from farfield.validation.papers.tables import table

STEPS = tuple(Fraction(k, 10**e) for e in range(1, 13) for k in (5, 3, 2, 1))
"""Shares of the mass left out, of which Figure 6 shows those down to its smallest."""


def fig1_right(*, tokens: int = 12, window: int = 4) -> Drawing:
    """The two ways to run window attention: which keys are encoded to score each token."""
    i, j = positions(tokens)
    modes = {
        "sliding window": Mask(window=window).sees(i, j),
        "nonoverlapping": (j <= i) & (i // window == j // window),
    }
    figure, _ = mask_panels(1.95, modes, "scored token", accent=i == j)
    sliding = int(modes["sliding window"].sum())
    data = Data(
        ("mode", "scored token", "first key", "last key", "keys"),
        tuple((*span, span[3] - span[2] + 1) for span in spans(modes, 1)),
    )
    return Drawing(
        data,
        f"A sliding window encodes {sliding} tokens to score {tokens}, nonoverlapping windows "
        f"{tokens}. The scored token is blue, its context grey.",
        figure,
        made=f"Windows of {window} tokens. Sliding: each token is scored in a pass of its own, "
        "which encodes its whole context again. Nonoverlapping: each window is one pass, and the "
        "first token of a window sees only itself. Drawn from the masks of the harness.",
    )


def fig2(*, window: int = 32, length: int = 64) -> Drawing:
    """How a sliding window and ALiBi reweigh the attention, by distance."""
    distances = np.arange(length + 1)
    alibi = encoding("alibi")
    shown = {f"window of {window}": encoding("window", w=window).head(1)}
    shown |= {f"ALiBi, slope 1/{2**h}": alibi.head(h) for h in (2, 4, 6)}
    columns = [np.exp(encoding(bias).bias(distances)[0]) for bias in shown.values()]
    each = zip(shown, columns, COLOURS, strict=False)
    window_line, *others = (Named(label, distances, b, colour) for label, b, colour in each)
    lines = [replace(window_line, look={"drawstyle": "steps-post"}), *others]
    axes = {"xlabel": "distance n (tokens)", "ylabel": "exp(p(n))"}
    return Drawing(
        Data(("n", *shown), tuple(zip(distances, *columns, strict=True))),
        "A window shuts keys out at once, ALiBi fades them out, later where the slope is smaller. "
        "All four series converge.",
        charted(2.1, Panel(lines, axes | {"xlim": (0, length), "ylim": (0, 1.08)})),
        made="Factor by which the bias multiplies the attention to a key at distance n, before the "
        f"softmax is normalised: a window of {window} keys, the query's own included (the mask of "
        f"Eq. 8 with w = {window - 1}), and three of the eight heads of ALiBi. The "
        "paper gives neither w nor the slopes.",
    )


def _subjects() -> tuple[tuple[str, str, Encoding], ...]:
    return (
        ("alibi", "ALiBi, 8 heads", encoding("alibi")),
        ("kerple_log", "KERPLE-log, r1 = 6/5", encoding("kerple_log", r1="6/5", r2=1)),
        ("sandwich", "Sandwich, 8 heads", encoding("sandwich")),
        ("type1", "Type 1", encoding("type1")),
        ("type2", "Type 2", encoding("type2")),
    )


def fig6(*, eps: Fraction = Fraction(1, 1000), length: int = 1024) -> Drawing:
    """Theoretical receptive fields: of a row (normalised), and of the whole series.

    Args:
        eps: the smallest share of the mass left out.
        length: keys of the row; the paper trains on half as many.
    """
    shares = (*(share for share in STEPS if share > eps), eps)
    rows = []
    lines: dict[int | None, list[Named]] = {length: [], None: []}
    x = [float(share) for share in shares]
    for place, (name, label, subject) in enumerate(_subjects()):
        colour, look = told_apart(place, check_convergence(subject).verdict)
        for row in (length, None) if name != "sandwich" else (length,):  # it diverges: infinite
            fields = theoretical_receptive_field(subject, shares, length=row)
            heads = np.array([[h.tokens for h in (f.heads or (f,))] for f in fields], float)
            scaled = heads / (row or 1)
            several = len(heads[0]) > 1 and row is None
            band = (scaled.min(axis=1), scaled.max(axis=1)) if several else None
            drawn = Named(label, x, scaled.mean(axis=1), colour, look, band)
            lines[row].append(drawn)
            rows += [
                (name, str(subject.formula), row, e, h, g.tokens)
                for e, f in zip(shares, fields, strict=True)
                for h, g in enumerate(f.heads or (f,), 1)
            ]
    axes = {"xscale": "log", "yscale": "log", "xlim": (0.6, x[-1])}
    axes["xlabel"] = "eps, falling (log)"
    least = 0.7 / length
    of_row = axes | {"ylabel": f"TRF(eps, {length}) / {length}", "ylim": (least, 1.3)}
    others = [line for line in lines[None] if not line.name.startswith("KERPLE")]
    highest = max(float(np.max(line.band[1] if line.band else line.y)) for line in others)
    series = axes | {"ylabel": "TRF(eps) in tokens", "ylim": (0.7, 100 * highest)}
    tens = [10.0**-e for e in range(13)]
    at = [0.5, *(ten for ten in tens if 2.5 * x[-1] < ten < 0.5), x[-1]]
    levels = [ten for ten in tens if ten > least]
    panels = Panel(lines[length], of_row, at, levels), Panel(lines[None], series, at)
    whole = {line.name: line.y[-1] for line in lines[None]}
    return Drawing(
        Data(("encoding", "bias", "row", "eps", "head", "tokens"), tuple(rows)),
        f"{whole['Type 2']:.0f} tokens hold {share_text(1 - eps)} of the mass of Type 2, "
        f"{whole['Type 1']:.0f} that of Type 1; KERPLE needs "
        f"{whole['KERPLE-log, r1 = 6/5']:.2g}, and no number does for Sandwich, whose series "
        "diverges. Top: one row of keys. Bottom: the infinite series; shaded: ALiBi's heads. "
        f"{MARKS_SAY}",
        charted(4.6, *panels),
        made=f"Above: finite-row TRF(eps, {length}), the least number of nearest keys that hold "
        f"more than 1 - eps of the prior mass of a row of {length} keys, over {length}. Below: "
        "TRF(eps) of the whole series [Eq. 22], in tokens. Exact integers, certified by balls, at "
        f"{len(shares)} values of eps from 1/2 to {eps}; lines are means over heads, the band "
        "below reaches from the least to the greatest head of ALiBi. The paper does not say its "
        "eps grid, horizon, normalisation, aggregation over heads, or KERPLE parameters; these are "
        "ours.",
    )


def fig7(*, length: int = 64) -> Drawing:
    """exp(RPE) of Type 1 and Type 2 as heat maps."""
    titles, n = {"type1": "Type 1", "type2": "Type 2"}, np.arange(length)
    values = {name: np.exp(encoding(name).bias(n)[0]) for name in titles}
    with house(column=True):
        figure, panels = new_figure(2.5, columns=2)
        for axes, (name, title) in zip(panels, titles.items(), strict=True):
            shown = heat_map(axes, values[name], norm=LogNorm(1e-6, 1))
            ticks = [0, length // 2, length - 1]
            axes.set(title=title, xlabel="key position", xticks=ticks, yticks=ticks)
        panels[0].set_ylabel("query position")
        below: dict[str, Any] = {"location": "bottom", "extend": "min", "ticks": [1e-6, 1e-3, 1]}
        figure.colorbar(shown, ax=list(panels), label="exp(p)", **below)
    return Drawing(
        Data(
            ("encoding", "n", "exp(p(n))"),
            tuple((name, k, b[k]) for name, b in values.items() for k in range(length)),
        ),
        f"{length - 1} tokens back Type 1 leaves a key a weight of {values['type1'][-1]:.1e}, "
        f"Type 2 {values['type2'][-1]:.1e}.",
        figure,
        made=f"exp(RPE) of a query row at a key column, {length} tokens, dialect paper (Type 1: "
        "(n + 1)⁻², Type 2: exp(−log²(n + 1))). Logarithmic colours from 1e-6, since on a linear "
        "scale both are a bright diagonal; the paper gives neither size nor scale.",
    )


def table1() -> Drawing:
    """Relative inference time, beside the tokens that each mode encodes per scored token."""
    windows = (16, 32, 64, 128, 256, 512)
    work = {"Sliding Window": sum(windows) / len(windows)}
    rows = tuple(
        (c.encoding, c.printed, f"{work.get(c.encoding, 1):g}") for c in table("qin2024_table1")
    )
    return Drawing(
        Data(("method", "relative time, printed", "encoded tokens a scored token"), rows),
        f"A sliding window encodes {work['Sliding Window']:g} tokens for each that it scores, all "
        "others one.",
        made="Relative average inference time as printed, beside the number of tokens that each "
        f"mode encodes to score one, averaged over windows {', '.join(map(str, windows))} (the "
        "caption prints 258 for 256). A count of work, not a time: a pass over many tokens takes "
        "less time a token.",
    )
