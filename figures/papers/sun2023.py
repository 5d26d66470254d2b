"""Figures of Sun et al., *A Length-Extrapolatable Transformer* (ACL 2023)."""

from __future__ import annotations

import numpy as np

from farfield.figures.exhibit import Data, Drawing, Exhibit, rows
from farfield.figures.masks import cells, positions
from farfield.figures.style import column_figure, house, look
from farfield.theory.encodings import encoding
from farfield.validation.settings.visibility import Visibility


def fig2() -> Drawing:
    """The expected attention g[n] of RoPE and of xPos over long distances."""
    d = 64
    distances = np.arange(4097)
    shown = (
        ("rope", "RoPE, zeta = 1", encoding("rope_surrogate", d=d)),
        ("xpos", "xPos, gamma = 0.4, code", encoding("xpos_surrogate", d=d)),
        ("", "xPos as printed", encoding("xpos_surrogate", d=d, dialect="printed")),
    )
    curves = [e.bias(distances)[0] for _, _, e in shown]
    curves = [g / g[0] for g in curves]
    with house(column=True):
        figure, panels = column_figure(3.2, rows=2)
        for axes, keep in zip(panels, ((0, 1), (1, 2)), strict=True):
            for k in keep:
                name, label, _ = shown[k]
                style = look(name) if name else {"color": "#8c6d31"}
                style |= {"marker": "", "linestyle": "-", "linewidth": 0.6}
                axes.plot(distances, curves[k], label=label, zorder=2 + k % 2, **style)
            axes.set(xlim=(0, 4096), ylim=(-0.3, 1.02), ylabel="g[n] / g[0]")
            axes.legend(loc="upper right", ncols=2)
        panels[1].set_xlabel("distance n (tokens)")
    return Drawing(
        Data(("n", "rope", "xpos code", "xpos printed"), rows(distances, *curves)),
        f"The sum g[n] of Eq. 10 over its value at 0, d = {d} (the paper's head size; not stated "
        "for the figure). Above: RoPE and xPos in the index range of Algorithm 1, where every zeta "
        "is below 1 and g tends to 0. Below: the index range printed in Eq. 10 and 12 reaches "
        "zeta = 1, so one wave is never damped. As additive biases all three stay bounded, so "
        "their exp-series diverge.",
        figure,
    )


def fig3() -> Drawing:
    """Causal masking in training, blockwise causal attention at inference."""
    length = 6
    training = positions(length)
    inference = positions(2 * length)
    masks = {
        "training": Visibility().sees(*training),
        "inference": Visibility(bca=length // 2).sees(*inference),
    }
    with house(column=True):
        figure, panels = column_figure(2.1, columns=2)
        for axes, (name, seen) in zip(panels, masks.items(), strict=True):
            cells(axes, seen)
            axes.set_title(f"{name}, {len(seen)} tokens")
            axes.set_xlabel("key position")
        panels[0].set_ylabel("query position")
        for block in range(1, 4):
            at = block * length // 2 - 0.5
            panels[1].plot([at, at], [-0.5, 2 * length - 0.5], color="#d55e00", linewidth=0.9)
            panels[1].plot([-0.5, 2 * length - 0.5], [at, at], color="#d55e00", linewidth=0.9)
    data = Data(
        ("phase", "query", "first key", "last key"),
        tuple(
            (name, q, int(np.flatnonzero(seen[q])[0]), q)
            for name, seen in masks.items()
            for q in range(len(seen))
        ),
    )
    return Drawing(
        data,
        f"Training: causal, {length} tokens. Inference: blocks of half the training length "
        f"({length // 2} tokens); key j is seen by query i if j <= i and floor(j / half) >= "
        "floor(i / half) - 1, so a row sees from half + 1 to 2 half keys (fewer in the first "
        "block). Positions from 0; drawn from the mask that the harness measures with.",
        figure,
    )


EXHIBITS = (
    Exhibit("sun2023.fig2", "Expected attention of RoPE and xPos", "theory", fig2),
    Exhibit("sun2023.fig3", "Blockwise causal attention", "schematic", fig3),
)
