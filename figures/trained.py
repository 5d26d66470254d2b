"""The measured figures of the papers, at the scale of the runs there are.

Each asks for the encodings of the printed figure, draws those that were trained in one setting,
and says which of them are not among the runs. Without any, it is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator, NullFormatter, ScalarFormatter

from farfield.figures.exhibit import Data, Drawing, Exhibit, Missing
from farfield.figures.results import Run, causal, conditions, matches, together
from farfield.figures.style import column_figure, house, look
from farfield.theory.encodings import encoding

SHADES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a6ff0", "#8c6d31")


@dataclass(frozen=True)
class Line:
    """One curve of a measured figure: all seeds of one encoding."""

    label: str
    name: str
    runs: tuple[Run, ...]


def lines(runs: Sequence[Run], wanted: Sequence[str], figure: str) -> list[Line]:
    """The curves of a figure.

    Args:
        runs: what there is.
        wanted: names of the catalogue: of the encoding as it is by default or, with a star behind
            the name, of each of its variants.
        figure: the id.

    Raises:
        Missing: none of the wanted encodings was trained; the message names the command.
    """
    asked = {w.rstrip("*"): w.rstrip("*") if w.endswith("*") else encoding(w) for w in wanted}
    kept = together(runs, asked.values())
    if not kept:
        raise Missing(f"no runs of {', '.join(asked)}; {_command(list(asked), figure)}")
    groups: dict[tuple[str, str], list[Run]] = {}
    for name, w in asked.items():
        for run in (r for r in kept if matches(r, w)):
            groups.setdefault((name, run["encoding"]["sha256"]), []).append(run)
    several = {name for name, _ in groups if sum(k[0] == name for k in groups) > 1}
    return [
        Line(_variant(name, group[0]) if name in several else name, name, tuple(group))
        for (name, _), group in groups.items()
    ]


def _variant(name: str, run: Run) -> str:
    head = str(run["encoding"]["heads"][0])
    if name == "window":
        return "w = " + head.partition("<")[2].partition(")")[0].strip(" =")
    return head.replace("**", "^") if len(head) < 24 else head[:21] + "..."


OPTIONS = {"chi2023.fig4": " --set w=16", "chi2023.fig5": " --dialect shift --set delta=2"}


def _command(names: Sequence[str], figure: str) -> str:
    train = f"farfield train {names[0]}{OPTIONS.get(figure, '')} --runs runs"
    if len(names) > 1:
        train = f"for e in {' '.join(names)}; do farfield train $e --runs runs; done"
    return f"to make them: {train}; farfield figures {figure} --runs runs"


def absent(found: Sequence[Line], wanted: Sequence[str]) -> str:
    """A sentence on what the printed figure shows and the runs do not hold."""
    present = {line.name for line in found}
    names = [name for w in wanted if (name := w.rstrip("*")) not in present]
    return f" Not among the runs: {', '.join(names)}." if names else ""


def perplexity(
    runs: Sequence[Run], *, figure: str, wanted: Sequence[str],
    protocol: str = "non-overlapping", printed: str = "",
) -> Drawing:  # fmt: skip
    """Perplexity by context length, the mean over seeds with its range."""
    found = lines(runs, wanted, figure)
    rows: list[tuple[Any, ...]] = []
    with house(column=True):
        drawn, axes = column_figure(2.6)
        for line in found:
            values: dict[int, list[float]] = {}
            for run in line.runs:
                for p in causal(run)["perplexity"]:
                    if p["protocol"] == protocol:
                        values.setdefault(p["length"], []).append(p["perplexity"])
                        rows.append((line.label, run["seed"], p["length"], p["perplexity"]))
            lengths = sorted(values)
            axes.plot(lengths, [np.mean(values[n]) for n in lengths], label=line.label,
                      **look(line.name))  # fmt: skip
            if len(line.runs) > 1:
                low, high = ([f(values[n]) for n in lengths] for f in (min, max))
                axes.fill_between(lengths, low, high, color=look(line.name)["color"], alpha=0.15)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(sorted({row[2] for row in rows}))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(ScalarFormatter())
            axis.set_minor_formatter(NullFormatter())
        low, high = axes.get_ylim()
        if high < 8 * low:
            axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.minorticks_off()
        axes.set(xlabel="context length (tokens)", ylabel="perplexity")
        drawn.legend(loc="outside upper center", ncols=3)
    return Drawing(
        Data(("encoding", "seed", "length", "perplexity"), tuple(rows)),
        f"{conditions(r for line in found for r in line.runs)} Protocol: {protocol}.{printed}"
        + absent(found, wanted),
        drawn,
    )


def cumulative_gradient(
    runs: Sequence[Run], *, figure: str, wanted: Sequence[str], printed: str
) -> Drawing:
    """Share of the input gradient on the nearest tokens, by their number."""
    found = lines(runs, wanted, figure)
    rows: list[tuple[Any, ...]] = []
    with house(column=True):
        drawn, axes = column_figure(2.6)
        for k, line in enumerate(found):
            style = look(line.name)
            if sum(other.name == line.name for other in found) > 1:
                style |= {"color": SHADES[k % 8], "marker": ("o", "s", "^", "D", "v", "P")[k % 6]}
            curves = [causal(run)["gradient"]["curve"] for run in line.runs]
            reach = [point[0] for point in curves[0]]
            axes.plot(reach, np.mean([[p[1] for p in c] for c in curves], axis=0),
                      label=line.label, **style)  # fmt: skip
            rows += [
                (line.label, run["seed"], tokens, share)
                for run, curve in zip(line.runs, curves, strict=True)
                for tokens, share in curve
            ]
        length = found[0].runs[0]["preset"]["length"]
        axes.axvline(length, color="#888888", linewidth=0.8, zorder=0)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.set(xlabel="nearest tokens", ylabel="cumulative gradient share", ylim=(0, 1.02))
        drawn.legend(loc="outside upper center", ncols=3)
    gradient = causal(found[0].runs[0])["gradient"]
    return Drawing(
        Data(("encoding", "seed", "nearest tokens", "gradient share"), tuple(rows)),
        f"{conditions(r for line in found for r in line.runs)} Gradient of the "
        f"{gradient['scalar']}, mean over {gradient['segments']} segments of "
        f"{gradient['length']} tokens; grey: the training length. The print shows the sum from "
        f"the first position on, at position 2048.{printed}{absent(found, wanted)}",
        drawn,
    )


def attention_fields(runs: Sequence[Run], *, figure: str, wanted: Sequence[str]) -> Drawing:
    """Attention ERF of trained models by eps, over the row length."""
    found = lines(runs, wanted, figure)
    rows: list[tuple[Any, ...]] = []
    with house(column=True):
        drawn, axes = column_figure(2.6)
        for line in found:
            fields = [causal(run)["attention"] for run in line.runs]
            for run, measured in zip(line.runs, fields, strict=True):
                rows += [
                    (line.label, run["seed"], f["eps"], f["length"], f["tokens"], f["trf"])
                    for f in measured
                ]
            eps = [f["eps"] for f in fields[0]]
            share = np.mean([[f["tokens"] / f["length"] for f in m] for m in fields], axis=0)
            axes.plot(eps, share, label=line.label, **look(line.name))
        axes.set(xscale="log", yscale="log", xlabel="eps", ylabel="attention ERF / row length")
        axes.set_xticks(eps)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(ScalarFormatter())
            axis.set_minor_formatter(NullFormatter())
        drawn.legend(loc="outside upper center", ncols=3)
    field = causal(found[0].runs[0])["attention"][0]
    return Drawing(
        Data(("encoding", "seed", "eps", "row", "attention ERF", "TRF of the rows"), tuple(rows)),
        f"{conditions(r for line in found for r in line.runs)} Attention ERF over the "
        f"{field['length']} tokens of a segment, {field['averaged']}. The paper does not say its "
        f"eps grid, normalisation or aggregation.{absent(found, wanted)}",
        drawn,
    )


def unmeasured(runs: Sequence[Run], *, why: str) -> Drawing:
    """An exhibit that the harness does not measure yet."""
    raise Missing(why)


def _gradients(id_: str, title: str, wanted: Sequence[str], printed: str) -> Exhibit:
    draw = partial(cumulative_gradient, figure=id_, wanted=wanted, printed=printed)
    return Exhibit(id_, title, "measured", draw)


def _perplexities(id_: str, title: str, names: Sequence[str], **options: Any) -> Exhibit:
    return Exhibit(id_, title, "measured",
                   partial(perplexity, figure=id_, wanted=names, **options))  # fmt: skip


EXHIBITS = (
    Exhibit("qin2024.fig1-left", "Perplexity of sliding and nonoverlapping windows", "measured",
            partial(unmeasured, why="no committed results by window size; the sliding-window "
                    "protocol of the harness measures it")),
    _perplexities("qin2024.fig3", "Sufficiency: convergent encodings",
                  ("type1", "type2", "alibi", "kerple_log", "sandwich", "sinusoidal"),
                  printed=" The paper shows four data sets, 512 to 9216 tokens."),
    _perplexities("qin2024.fig4", "Necessity: divergent encodings",
                  ("type1", "example1", "example2"),
                  printed=" The paper shows four data sets, 512 to 9216 tokens."),
    Exhibit("qin2024.fig5", "Attention receptive fields of trained models", "measured",
            partial(attention_fields, figure="qin2024.fig5",
                    wanted=("type1", "type2", "alibi", "kerple_log", "sandwich"))),
    _perplexities("sun2023.fig1", "Perplexity against input length",
                  ("sinusoidal", "alibi", "rope", "xpos"),
                  printed=" The paper measures its own model with blockwise causal attention."),
    _gradients("chi2023.fig4", "Cumulative gradient, windows", ("window*",),
               " Windows of 40 to 320 tokens at a training length of 512 in the print."),
    _gradients("chi2023.fig5", "Cumulative gradient, shifted ALiBi", ("alibi*",),
               " Shifts of -3 to 8 in the print; here each curve names the bias of head 1."),
    _gradients("chi2023.fig6", "Cumulative gradient, Rotary", ("rope",), ""),
    _gradients("chi2023.fig7", "Cumulative gradient, Sinusoidal", ("sinusoidal",), ""),
    _gradients("chi2023.fig11", "Cumulative gradient, logarithmic decay",
               ("sandwich_smoothed", "sandwich", "kerple_log", "t5*"), ""),
    *(
        Exhibit(f"chi2023.fig{k}", f"Cumulative gradient, {what}, second data set", "measured",
                partial(unmeasured, why=f"the repeat of Figure {first} on a second text; train on "
                        f"it with --text and draw chi2023.fig{first} with --runs"))
        for k, what, first in ((12, "windows", 4), (13, "shifted ALiBi", 5))
    ),
)  # fmt: skip
