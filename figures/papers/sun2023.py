"""Figures and tables of Sun et al., *A Length-Extrapolatable Transformer* (ACL 2023)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from farfield.figures.charts import Named, Panel, charted
from farfield.figures.exhibit import Data, Drawing, rows
from farfield.figures.matrices import mask_panels, positions, spans
from farfield.figures.papers.printed_tables import (
    MARKS,
    by_row,
    spelled,
    verdict,
    yes_or_no,
)
from farfield.figures.style import INK, SOFT
from farfield.numerics.float_rows import resolution_curve
from farfield.numerics.masks import Mask
from farfield.theory.encodings import encoding
from farfield.validation.papers.sun2023 import PAPER, enclosed, in_blocks
from farfield.validation.papers.tables import PrintedNumber, printed_encoding, table

SCALE_OF_S = Fraction(1, 8)
"""Of the surrogates beside Table 3: 1/sqrt(64)."""


def fig2(*, length: int = 4096, d: int = 64) -> Drawing:
    """The expected attention g[n] of RoPE and of xPos over long distances."""
    distances = np.arange(length + 1)
    shown = (
        ("RoPE, zeta = 1", encoding("rope_surrogate", d=d)),
        ("xPos, gamma = 0.4, code", encoding("xpos_surrogate", d=d)),
        ("xPos as printed", encoding("xpos_surrogate", d=d, dialect="printed")),
    )
    curves = [e.bias(distances)[0] for _, e in shown]
    curves = [g / g[0] for g in curves]
    rope, code, printed = (
        Named(name, distances, g, ink, {"linewidth": 0.6})
        for (name, _), g, ink in zip(shown, curves, (SOFT, INK, SOFT), strict=True)
    )
    axes: dict[str, Any] = {"xlim": (0, length), "ylim": (-0.3, 1.02)}
    axes |= {"xlabel": "distance n (tokens)", "ylabel": "g[n] / g[0]"}
    return Drawing(
        Data(("n", "rope", "xpos code", "xpos printed"), rows(distances, *curves)),
        "RoPE's expected attention never fades, xPos's does as coded; as printed one wave is "
        "never damped. As additive biases all three are bounded, so their series diverge.",
        charted(3.2, *(Panel([other, code], axes) for other in (rope, printed))),
        made=f"The sum g[n] of Eq. 10 over its value at 0, d = {d} (the paper's head size; not "
        "stated for the figure). Above: RoPE and xPos in the index range of Algorithm 1, where "
        "every zeta is below 1 and g tends to 0. Below: the index range printed in Eq. 10 and 12 "
        "reaches zeta = 1.",
    )


def fig3(*, length: int = 6) -> Drawing:
    """Causal masking in training, blockwise causal attention at inference."""
    masks = {
        "training": Mask().sees(*positions(length)),
        "inference": Mask(bca=length // 2).sees(*positions(2 * length)),
    }
    titled = {f"{phase}, {len(seen)} tokens": seen for phase, seen in masks.items()}
    figure, panels = mask_panels(2.1, titled)
    for block in range(1, 4):
        at = block * length // 2 - 0.5
        panels[1].plot([at, at], [-0.5, 2 * length - 0.5], color=INK, linewidth=1.2)
        panels[1].plot([-0.5, 2 * length - 0.5], [at, at], color=INK, linewidth=1.2)
    return Drawing(
        Data(("phase", "query", "first key", "last key"), tuple(spans(masks))),
        f"A row of {2 * length} tokens at inference shows no token more keys than one of {length} "
        "in training does.",
        figure,
        made=f"Training: causal, {length} tokens. Inference: blocks of half the training length "
        f"({length // 2} tokens); key j is seen by query i if j ≤ i and ⌊j/half⌋ ≥ "
        "⌊i/half⌋ − 1, so a row sees from half + 1 to 2 half keys (fewer in the first "
        "block). Positions from 0; drawn from the mask that the harness measures with.",
    )


def table1() -> Drawing:
    """Marks of capability, beside scope and verdict."""
    rows = []
    by_name: dict[str, dict[str, PrintedNumber]] = {}
    for c in table("sun2023_table1"):
        by_name.setdefault(c.encoding, {})[c.metric] = c
    for name, marks in by_name.items():
        subject = printed_encoding(next(iter(marks.values())))
        rows.append(
            (
                name,
                MARKS[marks["translation_invariance"].printed],
                MARKS[marks["length_extrapolation"].printed],
                subject.name + (" + BCA" if subject.bca else ""),
                yes_or_no(subject.mechanism not in ("sinusoidal", "learned_absolute")),
                spelled(verdict(subject)),
            )
        )
    alone = sum(row[4] == "yes" for row in rows)
    return Drawing(
        Data(
            (
                "model",
                "translation invariance, printed",
                "length extrapolation, printed",
                "encoding",
                "function of the distance",
                "verdict",
            ),
            tuple(rows),
        ),
        f"In {alone} of {len(rows)} models the logit depends on positions through their distance "
        "alone.",
        made="Capability marks as printed. Distance alone: of the encoding by itself; BCA blocks "
        "do not. Verdict: on the exp-series (theorem). LeX is xPos with blockwise causal "
        "attention: bounded support.",
    )


def table3() -> Drawing:
    """Attention resolution as printed, beside the position part's own."""
    alibi = encoding("alibi", heads=16)
    subjects: dict[str, Callable[[int], Any]] = {
        "Alibi": lambda n: [resolution_curve(bias)[-1] for bias in alibi.bias(np.arange(n))],
        "Roformer": lambda n: enclosed(n, None, SCALE_OF_S),
        "LeX bca=1": lambda n: (  # within the training length nothing is masked
            in_blocks(512, PAPER, SCALE_OF_S) if n > 1024 else enclosed(n, PAPER, SCALE_OF_S)
        ),
        "LeX bca=0": lambda n: enclosed(n, PAPER, SCALE_OF_S),
    }
    rows = []
    for (_, name, variant, _), row in by_row(table("sun2023_table3")).items():
        label = f"{name} {variant}".strip()
        ours: tuple[str | None, ...] = (None, None)
        if label in subjects:
            ours = tuple(f"{np.mean(subjects[label](n)):.3g}" for n in row)
        rows.append((label, *(c.printed for c in row.values()), *ours))
    sides = (f"{n}, {whose}" for whose in ("printed", "position part") for n in (1024, 2048))
    return Drawing(
        Data(("model", *sides), tuple(rows)),
        "R as defined in Eq. 4 cannot exceed 1, the printed 1.08 does.",
        made="Attention resolution R [Eq. 4] as printed (trained models, mean over texts and "
        "layers), beside R of the position part alone: ALiBi's bias (mean of 16 heads), the "
        "surrogate g of RoPE and xPos (d = 64, sum of Eq. 10 divided by √d), BCA with half = 512 "
        f"at 2048 tokens. The value and even the order of R depend on the scale given to g, here "
        f"{SCALE_OF_S}.",
    )
