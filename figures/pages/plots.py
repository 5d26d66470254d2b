"""Figures of a study: perplexity beyond the training length, predicted against measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from farfield.figures.remeasured import Entry
from farfield.figures.style import house, look, new_figure, plain_ticks, round_numbers
from farfield.validation.study.findings import last_token_ratio
from farfield.validation.study.study import Study


def _measured(s: Study) -> list[tuple[str, Entry, Mapping[str, Any]]]:
    rows = []
    for e in s.entries:
        for bca in (False, True):
            m = e.measurement(bca)
            if m is not None:
                rows.append((e.prediction.name + (" + BCA" if bca else ""), e, m))
    return rows


def perplexity_curves(s: Study, protocol: str = "last token") -> Figure:
    """Perplexity over that at the training length, by context length, one curve an encoding."""
    with house():
        figure, axes = new_figure(4.8, 4.4)
        lengths: set[int] = set()
        for name, _, m in _measured(s):
            rows = sorted(
                (p for p in m["perplexity"] if p["protocol"] == protocol),
                key=lambda p: p["length"],
            )
            x = [p["length"] for p in rows]
            lengths |= set(x)
            style = look(name)
            if name.endswith("BCA"):
                style |= {"linestyle": ":", "markerfacecolor": "none"}
            axes.plot(x, [p["ratio"] for p in rows], label=name, **style)
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
        for name, e, m in _measured(s):
            if not e.prediction.encoding.biases or name.endswith("BCA"):
                continue
            x = [f["trf"] for f in m["attention"]]
            y = [f["tokens"] for f in m["attention"]]
            values += x + y
            axes.plot(x, y, label=name, **(look(name) | {"linewidth": 0.9}))
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
        for name, e, m in _measured(s):
            style = {k: v for k, v in look(name).items() if k != "linestyle"}
            if name.endswith("BCA"):
                style["markerfacecolor"] = "none"
            ratio = last_token_ratio(m)[1]
            leak = e.prediction.longest_leak
            if leak is not None and not name.endswith("BCA"):
                left.plot([leak], [ratio], linestyle="", **style)
            right.plot([m["gradient"]["mass"]], [ratio], linestyle="", label=name, **style)
        left.set_yscale("log")
        plain_ticks(left.yaxis, round_numbers(*left.get_ylim()))
        trained, *_, longest = s.lengths
        left.set_xlabel(f"leak from {trained}\nto {longest} tokens")
        right.set_xlabel(f"gradient mass on\nthe last {trained} tokens")
        left.set_ylabel(f"perplexity ratio {longest}/{trained}")
        figure.legend(loc="outside lower center", ncols=3)
        return figure
