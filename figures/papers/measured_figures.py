"""The measured figures of the papers, at the scale of the runs there are.

Each asks for the encodings of the printed figure, draws those that were trained in one setting,
and says which of them are not among the runs. Without any, it is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from polars import DataFrame, col, concat

from farfield.figures.charts import Named, Panel, charted
from farfield.figures.exhibit import Data, Drawing, NoResults, told
from farfield.figures.papers.measured_samples import (
    MODE,
    first,
    samples,
    subject,
)
from farfield.figures.style import COLOURS, LINES, MARKS_SAY, spoken, told_apart
from farfield.theory.answers.answer import InputError
from farfield.theory.answers.blocks import Table
from farfield.theory.answers.notation import listed
from farfield.theory.convergence import Verdict, check_convergence
from farfield.theory.encodings import encoding
from farfield.validation.papers.tables import PrintedNumber, curve, table
from farfield.validation.results import LAST, TOLERANCE, WHOLE, by_seed, perplexities

JUMP, WITHIN = "gradient_jump_position", "cumulative_gradient_most_recent_512"
"""What [C] prints of gradients."""
STEP = 4
"""Tokens, of the gradient by token."""
Values = Mapping[Any, Mapping[int, float]]
"""A measured quantity by x and seed."""


@cache
def verdict_of(label: str) -> Verdict | None:
    """The verdict on the series of an encoding; with a window or blockwise attention its support is
    bounded, so that it converges."""
    base, _, mode = label.partition(MODE)
    if mode.startswith(("BCA", "window")):
        return Verdict.CONVERGES
    with suppress(InputError):
        return check_convergence(subject(base)).verdict
    with suppress(InputError):  # a run of a formula of one's own; a module has none
        return check_convergence(encoding(label)).verdict
    return None


def mean(by_seed: Mapping[int, float]) -> float:
    """Over seeds."""
    return float(np.mean(list(by_seed.values())))


def line_of(label: str, values: Values, place: int, apart: Sequence[float] = ()) -> Named:
    """Means over seeds by x, with a band from the least to the greatest.

    Args:
        label: of the sample.
        values: the measured quantity.
        place: of the line among those of the figure.
        apart: values of x that were measured otherwise, to which no line is drawn.
    """
    points = [
        p for k, v in values.items() for p in [(np.nan, {0: np.nan})] * (k in apart) + [(k, v)]
    ]
    low, high = ([float(f(v.values())) for _, v in points] for f in (min, max))
    several = any(len(v) > 1 for v in values.values())
    colour, look = told_apart(place, verdict_of(label))
    return Named(
        spoken(label),
        [k for k, _ in points],
        [mean(v) for _, v in points],
        colour,
        look | {"clip_on": False},
        (low, high) if several else None,
    )


def lines_of(values: Mapping[str, Values], apart: Sequence[float] = ()) -> list[Named]:
    """A line for each sample."""
    return [line_of(label, v, k, apart) for k, (label, v) in enumerate(values.items())]


def cells(values: Mapping[Any, Values]) -> list[tuple[Any, ...]]:
    """Label, x, seed and value of everything measured."""
    return [
        (label, x, seed, y)
        for label, by_x in values.items()
        for x, by in by_x.items()
        for seed, y in by.items()
    ]


def by_length(lines: Sequence[Named], lengths: set[int], trained: int, x_name: str) -> Panel:
    """Perplexity by a number of tokens, both axes logarithmic, the training length marked."""
    shown = sorted(lengths)
    ticks = shown if len(shown) < 7 else shown[:: len(shown) // 6 + 1]
    scales = {"xscale": "log", "yscale": "log"}
    names = {"xlabel": x_name, "ylabel": "perplexity (log)", "xlim": (None, shown[-1])}
    return Panel(lines, scales | names, ticks, (), [trained])


def perplexity(
    runs: DataFrame,
    figure: str,
    *wanted: str,
    protocol: str = WHOLE,
    printed: str = "",
    beside: Mapping[str, str] | None = None,
) -> Drawing:
    """Perplexity by context length, the mean over seeds with its range; `beside` names models of
    the paper's first table of perplexities by our labels."""
    found, made = samples(runs, wanted, figure)
    values = {label: perplexities(s, protocol) for label, s in found.items()}
    trained = first(found)["trained"]
    far = _far(found, trained)
    x_name = "context length (tokens, log)"
    lines, lengths = lines_of(values, far), {n for v in values.values() for n in v}
    calm = [line for line in lines if _stays(line, lines)]
    split = len(calm) > 1 and _highest(lines) > 2 * _least(lines)
    above = [replace(line, told=line not in calm) for line in lines] if split else lines
    panels = [by_length(part, lengths, trained, x_name) for part in (above, calm)[: 1 + split]]
    places = listed([f"{n} tokens ({n / trained:g} times the training length)" for n in far])
    elsewhere = (
        f"At {places} other targets were scored, so no line goes there: "
        "drawn is the ratio on these times the perplexity at the training length."
    ) * bool(far)
    below = " Below: those that stay flat, on a scale of their own." * split
    return Drawing(
        Data(
            ("encoding", "seed", "length", "perplexity"),
            tuple((label, seed, n, y) for label, n, seed, y in cells(values)),
        ),
        f"{kept(values, trained)} {MARKS_SAY} Upright: the training length.{below}",
        charted(4.4 if split else 2.8, *panels),
        made=told(made, f"Protocol: {protocol}.", elsewhere, printed),
        beside=_growths(beside or {}, values, trained),
    )


def _growths(
    printed: Mapping[str, str], values: Mapping[str, Values], trained: int
) -> Table | None:
    """Perplexity over that at the training length, at 2, 4 and 8 times it, printed and ours."""
    rows = []
    for label, name in printed.items():
        ours = {n: mean(by) for n, by in values.get(label, {}).items()}
        theirs = curve("sun2023_table2", name)
        both = [(theirs, 1024, m) for m in (2, 4, 8)], [(ours, trained, m) for m in (2, 4, 8)]
        cells = [
            f"{each[m * base] / each[base]:.3g}" if m * base in each else ""
            for pair in zip(*both, strict=True)
            for each, base, m in pair
        ]
        rows += [(name, spoken(label), *cells)] * bool(ours)
    heads = (f"{m}×, {whose}" for m in (2, 4, 8) for whose in ("printed", "here"))
    return _table(
        ("printed", "here", *heads),
        rows,
        "Perplexity over that at the training length, at multiples of it; printed: Table 2, PG22",
    )


def _table(columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]], title: str) -> Table | None:
    """A table; None without rows."""
    return Data(columns, tuple(rows)).table(title) if rows else None


def _least(lines: Sequence[Named]) -> float:
    return min(float(np.nanmin(line.y)) for line in lines)


def _highest(lines: Sequence[Named]) -> float:
    return max(float(np.nanmax(line.y)) for line in lines)


def _stays(line: Named, lines: Sequence[Named]) -> bool:
    """Whether a line would lie on others below one that rises far above them."""
    return _highest([line]) < 1.5 * _least(lines)


def kept(values: Mapping[str, Values], trained: int) -> str:
    """Which perplexities hold from the training length to the longest row, which rise, and by
    which factor."""
    ratios = {spoken(label): mean(v[max(v)]) / mean(v[trained]) for label, v in values.items()}
    holds = [name for name, ratio in ratios.items() if ratio <= 1 + TOLERANCE]
    rise = [f"{name} {ratio:.3g}-fold" for name, ratio in ratios.items() if name not in holds]
    longest = max(n for v in values.values() for n in v)
    parts = [f"hold for {listed(holds)}"] * bool(holds) + [f"rise for {listed(rise)}"] * bool(rise)
    return f"From {trained} to {longest:g} tokens perplexities {'; they '.join(parts)}."


def _far(found: Mapping[str, DataFrame], trained: int) -> list[int]:
    """The lengths that were scored on a text of their own."""
    rows = concat(found.values()).filter(protocol=WHOLE)
    base = rows.filter(length=trained)["targets"].unique()
    return sorted(rows.filter(~col("targets").is_in(base.implode()))["length"].unique())


def windows(runs: DataFrame, figure: str, *wanted: str) -> Drawing:
    """Perplexity of sliding and of non-overlapping windows no longer than the training length."""
    modes = {"sliding window": LAST, "nonoverlapping window": WHOLE}
    found, made = samples(runs, wanted, figure, shorter=True)
    trained = first(found)["trained"]
    values = {
        (label, mode): {n: by for n, by in perplexities(s, protocol).items() if n <= trained}
        for label, s in found.items()
        for mode, protocol in modes.items()
    }
    lines = [
        replace(
            line,
            name=f"{spoken(label)}, {mode.removesuffix(' window')}",
            look={**line.look, "linestyle": LINES[k % 2]},
            band=None,
        )
        for k, ((label, mode), v) in enumerate(values.items())
        for line in [line_of(label, v, k // 2)]
    ]
    pairs = list(zip(lines[::2], lines[1::2], strict=True))
    better = [a <= b for one, two in pairs for a, b in zip(one.y, two.y, strict=True)]
    rows = cells(values)
    name = "inference window (tokens, log)"
    return Drawing(
        Data(
            ("encoding", "mode", "seed", "window", "perplexity"),
            tuple((*label, seed, n, y) for label, n, seed, y in rows),
        ),
        f"Sliding windows have the lower perplexity in {sum(better)} of {len(better)} cases. "
        "Solid: sliding windows, scored at their last token (stride 1). Dashed: windows that do "
        f"not overlap, scored at every token. {MARKS_SAY}",
        charted(2.8, by_length(lines, {n for _, n, *_ in rows}, trained, name)),
        made=f"{made} The targets of the two differ; those of sliding windows are sampled. The "
        "paper lists windows of 16 to 512 tokens and does not name the data.",
    )


def cumulative_gradient(
    runs: DataFrame,
    figure: str,
    *wanted: str,
    printed: str = "",
    beside: Mapping[str, str] | None = None,
) -> Drawing:
    """Share of the input gradient on the nearest tokens, by their number; `beside` names models of
    the paper by our labels."""
    found, made = samples(runs, wanted, figure)
    values = {label: by_seed(s, "gradient", "distance", "gradient") for label, s in found.items()}
    trained, tokens = first(found)["trained"], list(next(iter(values.values())))
    lines = lines_of(values)
    axes = {
        "xscale": "log",
        "xlim": (None, tokens[-1]),
        "ylim": (0, 1.02),
        "xlabel": "nearest tokens (log)",
        "ylabel": "cumulative gradient share",
    }
    ticks = [t for t in tokens if int(t).bit_length() % 2]
    within = [
        f"{mean(v[trained]):.0%} for {spoken(label)}" for label, v in values.items() if trained in v
    ]
    gradients = concat(found.values()).filter(protocol="gradient")
    targets, lengths = (
        " or ".join(map(str, sorted({*gradients[column]}))) for column in ("targets", "length")
    )
    return Drawing(
        Data(
            ("encoding", "trained", "seed", "nearest tokens", "gradient share"),
            tuple((label, trained, seed, n, y) for label, n, seed, y in cells(values)),
        ),
        f"Within the training length lies a share of the gradient of {listed(within, 20)}. "
        f"Upright: the training length. {MARKS_SAY}",
        charted(2.8, Panel(lines, axes, ticks, upright=[trained])),
        made=told(
            f"{made} Gradient of the log-probability of the observed next byte at the last "
            f"position, mean over {targets} segments of {lengths} tokens. "
            "The print shows the sum from the first position on, at position 2048.",
            printed,
        ),
        beside=_fields(beside or {}, found, values),
    )


def _of(metric: str, name: str) -> list[PrintedNumber]:
    """What [C] prints of the gradients of a model."""
    named = (c for c in table("chi2023_erf") if f"{c.encoding} {c.variant}".strip() == name)
    return [c for c in named if c.metric == metric]


def _fields(
    printed: Mapping[str, str], found: Mapping[str, DataFrame], values: Mapping[str, Values]
) -> Table | None:
    """ERF over the training length, and the share of the gradient within it, printed and ours."""
    rows, whole = [], 0.0
    for label, name in printed.items():
        if label not in found:
            continue
        whole = found[label].filter(protocol="gradient")["length"][0] / first(found)["trained"]
        erf = found[label].filter(protocol="gradient").drop_nulls("erf").select("trained", "erf")
        ours = [n / trained for trained, n in erf.iter_rows()]
        fields = [f"{c.marker}{c.value / 512:.3g}".lstrip("=") for c in _of("ERF", name) if c.value]
        shares = [f"{c.marker}{c.printed}".replace("~", "about ") for c in _of(WITHIN, name)]
        near = values[label].get(first(found)["trained"])
        field, share = f"{np.mean(ours):.3g}" if ours else "", f"{mean(near):.2f}" if near else ""
        called = name.partition(" ")[2]
        rows.append((called, spoken(label), "".join(fields), field, "".join(shares), share))
    heads = ("ERF (99 %)", "share")
    sides = (f"{head}, {whose}" for head in heads for whose in ("printed", "here"))
    return _table(
        ("printed", "here", *sides),
        rows,
        "ERF, the tokens with 99 % of the gradient, in training lengths (a row has 4 in the paper, "
        f"{whole:g} here), and share of the gradient within one training length",
    )


def gradient_by_position(
    runs: DataFrame, figure: str, wanted: str, printed: str = "", beside: str = ""
) -> Drawing:
    """The cumulative gradient from the first position on, token by token as the print has it.

    Most runs have it at powers of two only: these are drawn as `cumulative_gradient` does.
    """
    found = runs.filter(label=wanted, protocol="gradient by token")
    if found.is_empty():
        return cumulative_gradient(runs, figure, wanted, printed=printed)
    ordered = found.sort("trained", "seed", "distance", descending=[False, False, True])
    models = [
        (g["trained"][0], g["seed"][0], g["gradient"].to_numpy())
        for g in ordered.partition_by("trained", "seed")
    ]
    lengths = sorted({n for n, *_ in models})
    shares = {n: np.cumsum([g for m, _, g in models if m == n], axis=1) for n in lengths}
    position = STEP * np.arange(1, shares[lengths[0]].shape[1] + 1)
    panels = []
    for end in (int(position[-1]), 2 * lengths[-1]):
        near = position <= end
        lines = [
            Named(
                f"trained on {n}",
                position[near],
                g[:, near].mean(0),
                colour,
                band=(g[:, near].min(0), g[:, near].max(0)),
            )
            for (n, g), colour in zip(shares.items(), COLOURS, strict=False)
        ]
        axes = {"xlim": (0, end), "ylim": (0, 1.02), "xticks": np.linspace(0, end, 5)}
        names = {"xlabel": "position in the row (tokens)", "ylabel": "cumulative gradient"}
        panels.append(Panel(lines, axes | names, upright=lengths))
    about = {n: np.abs(position - n) <= n / 8 for n in lengths}
    jumps = ", ".join(
        f"{np.mean([g[about[n]].sum() for m, _, g in models if m == n]):.0%} where that is {n}"
        for n in lengths
    )
    rows = (
        (wanted, n, seed, int(p), float(share))
        for n, seed, g in models
        for p, share in zip(position, np.cumsum(g), strict=True)
    )
    steepest = {
        n: int(position[np.argmax(np.diff(g.mean(0), prepend=0)[:-1])]) for n, g in shares.items()
    }
    rises = [("printed", str(c.train_length), c.printed) for c in _of(JUMP, beside)]
    rises += [("here", str(n), str(at)) for n, at in steepest.items()]
    line = found.row(0, named=True)
    return Drawing(
        Data(("encoding", "trained", "seed", "position", "cumulative gradient"), tuple(rows)),
        f"Near the training length, within an eighth of it, lies a share of the gradient of "
        f"{jumps}. Upright: the training length; below: the positions around it.",
        charted(4.2, *panels),
        made=told(
            f"Measured: {line['preset']}: {line['layers']} layers, {line['width']} wide, "
            f"{line['heads']} heads; trained on {' and '.join(map(str, lengths))} tokens, "
            f"{len(models)} models of the registered runs, the gradient in steps of {STEP} tokens, "
            f"rows of {position[-1]}, predicting the last.",
            printed,
        ),
        beside=_table(
            ("source", "trained on", "steepest at"),
            rises if beside else [],
            "The position at which the cumulative gradient rises most",
        ),
    )


def attention_fields(runs: DataFrame, figure: str, *wanted: str) -> Drawing:
    """Attention ERF of trained models by eps, over the row length."""
    found, made = samples(runs, wanted, figure)
    each = {
        label: s.filter(protocol="attention").with_columns(share=col("erf") / col("length"))
        for label, s in found.items()
    }
    values = {
        label: dict(reversed(by_seed(s, "attention", "eps", "share").items()))
        for label, s in each.items()
    }
    length = int(next(iter(each.values()))["length"][0])
    eps = sorted(next(iter(values.values())))
    axes = {
        "xscale": "log",
        "yscale": "log",
        "xlim": (eps[-1], eps[0]),
        "xlabel": "eps (log)",
        "ylabel": "attention ERF / row length (log)",
    }
    needs = [f"{mean(v[eps[0]]):.0%} for {spoken(label)}" for label, v in values.items()]
    return Drawing(
        Data(
            ("encoding", "seed", "eps", "row", "attention ERF", "TRF of the rows"),
            tuple(
                (label, *row)
                for label, s in each.items()
                for row in s.select("seed", "eps", "length", "erf", "trf").iter_rows()
            ),
        ),
        f"All but {eps[0]:g} of the attention needs a share of the {length} tokens of "
        f"{listed(needs, 20)}. {MARKS_SAY}",
        charted(2.8, Panel(lines_of(values), axes, eps, ())),
        made=f"{made} Attention ERF, mean over rows and segments, then heads, then layers; rows "
        "evenly spaced in the second half of a segment. The paper does not say its eps grid, "
        "normalisation or aggregation.",
    )


def absent(runs: DataFrame, figure: str, why: str) -> Drawing:
    """A figure that no committed run can show, with the reason."""
    raise NoResults(why)
