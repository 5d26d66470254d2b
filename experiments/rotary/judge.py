"""Forecasts beside measurements: docs/_static/rotary*.svg.

python experiments/rotary/judge.py
"""

import json
from pathlib import Path

from farfield.figures.style import COLOURS, SOFT, house, new_figure, rendered

HERE = Path(__file__).parent
STATIC = HERE.parents[1] / "docs" / "_static"
SHOWN = ("as it is", "YaRN 2", "text cut to 8192")


def lines(name):
    """The lines of a file, by job."""
    each = (json.loads(line) for line in (HERE / name).read_text().splitlines())
    return {tuple(line["job"]): line for line in each}


def said(text, setting):
    """Length and cost of the end of row 0, as the gap probe says it."""
    jobs = lines("forecasts.jsonl")
    alone = jobs["alone", text]["loss"][0]
    gaps = {k[3]: v["loss"][0] - alone for k, v in jobs.items() if k[:3] == ("gap", text, setting)}
    return sorted((length, cost) for length, cost in gaps.items() if length <= 16384)


def measured(text, setting):
    """Length and cost of the blocks of a real row."""
    line = lines("measured.jsonl")["real", text, 0, setting]
    return [(int(end), nats - line["alone"][end]) for end, nats in line["loss"].items()]


def needles(name, job):
    """Log probabilities of the needles of a row."""
    return [one["log_probability"] for one in lines(name)[job]["recall"]]


def draw(file, **sizes):
    """Cost by length, and needles, said against measured; panels beside each other or stacked."""
    with house():
        figure, (left, right) = new_figure(**sizes)
        left.axhline(0, color=SOFT, linewidth=0.8)
        left.axvline(8192, color=SOFT, linewidth=0.8, linestyle=":")
        for setting, colour in zip(SHOWN, COLOURS, strict=False):
            if guesses := said("handbook", setting):
                left.plot(*zip(*guesses, strict=True), color=colour, linewidth=1)
            x, y = zip(*measured("handbook", setting), strict=True)
            left.plot(x, y, "o", color=colour, markersize=4, label=setting)
            pairs = (needles("forecasts.jsonl", ("needles", "handbook", 0, setting)),)
            pairs += (needles("measured.jsonl", ("real", "handbook", 0, setting)),)
            right.plot(*pairs, "o", color=colour, markersize=4, label=setting)
        left.set(
            xlabel="tokens (dotted: the configuration)",
            ylabel="nats above the short row",
            title="Lines said, dots measured",
        )
        left.set_xticks([4096, 8192, 12288, 16384], ["4k", "8k", "12k", "16k"])
        right.plot([-32, 0], [-32, 0], color=SOFT, linewidth=0.8)
        right.legend(loc="upper left")
        right.set(xlabel="said", ylabel="measured", title="Needles, log probability")
        (STATIC / file).write_bytes(rendered(figure, "svg", "rotary"))


if __name__ == "__main__":
    draw("rotary.svg", height=3.4, width=7.6, columns=2)
    draw("rotary-narrow.svg", height=6.4, width=3.7, rows=2)
