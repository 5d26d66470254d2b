"""Forecasts beside measurements: tables, and docs/_static/rotary*.svg.

python experiments/rotary/judge.py
"""

import json
from pathlib import Path

from farfield.figures.style import COLOURS, SOFT, house, new_figure, picture_file

HERE = Path(__file__).parent
STATIC = HERE.parents[1] / "docs" / "_static"
POINTS = (1024, 3072, 6144, 9216, 12288, 15360)
BLOCKS = (4096, 8192, 9216, 10240, 11264, 12288, 14336, 24576, 32768)
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


def both(kind):
    """Jobs with needles that were forecast and measured, each with its rows of needles."""
    said, read = lines("forecasts.jsonl"), lines("measured.jsonl")
    for job, line in read.items():
        forecast = said.get((kind, *job[1:]))
        if forecast is not None and "recall" in line:
            yield job, forecast["recall"], line["recall"]


def mean(numbers):
    """Of some numbers."""
    each = [*numbers]
    return sum(each) / len(each)


def points(kind):
    """By setting and distance: pairs of a needle as it was said and as it was read."""
    cells = {}
    for (_, _, _, setting), said, read in both(kind):
        for one, other in zip(said, read, strict=True):
            point = min(POINTS, key=lambda d: abs(d - one["distance"]))
            cells.setdefault((setting, point), []).append((one, other))
    return cells


def means(pairs, what):
    """Of some needles, as they were said and as they were read."""
    return tuple(mean(float(pair[k][what]) for pair in pairs) for k in (0, 1))


def recall_table(kind):
    """Needles by setting and distance: how many, log probability and accuracy."""
    for (setting, point), pairs in sorted(points(kind).items()):
        log, right = means(pairs, "log_probability"), means(pairs, "right")
        print(
            f"| {setting} | {point} | {len(pairs)} | {log[0]:.2f} | {log[1]:.2f} "
            f"| {right[0]:.2f} | {right[1]:.2f} |"
        )


def told():
    """What pages say of needles, from the files."""
    cells = {key: pairs for key, pairs in points("needles").items() if key[0] in SHOWN}
    count = {}
    for (setting, _), pairs in cells.items():
        right = [sum(pair[k]["right"] for pair in pairs) for k in (0, 1)]
        before = count.get(setting, (0, 0, 0))
        count[setting] = [x + y for x, y in zip(before, (*right, len(pairs)), strict=True)]
    (said, read, all_), (said_cut, read_cut, all_cut) = (count[s] for s in SHOWN[1:])
    near = {
        what: sum(abs(a - b) <= limit for a, b in (means(p, what) for p in cells.values()))
        for what, limit in (("log_probability", 0.5), ("right", 0.1))
    }
    yield f"YaRN 2 recalls {read} of {all_} needles, the cut text {read_cut} of {all_cut}"
    yield f"{said} and {said_cut} were said"
    yield f"at {near['log_probability']} of {len(cells)} points: six distances"
    yield f"accuracy within .1 | at {near['right']} of {len(cells)} points"


def cost_table():
    """Costs of the ends of real rows, by setting: mean over rows, how many, and the spread."""
    cells = {}
    for (_, text, _, setting, *_), line in lines("measured.jsonl").items():
        for end, nats in line["loss"].items():
            point = int(end) if int(end) in BLOCKS else 16384
            cells.setdefault((setting, text, point), []).append(nats - line["alone"][end])
    for (setting, text, end), costs in sorted(cells.items()):
        each = " ".join(f"{cost:+.3f}" for cost in costs)
        print(f"| {setting} | {text} | {end} | {len(costs)} | {mean(costs):+.3f} | {each} |")


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
            title="Lines foreseen, dots measured",
        )
        left.set_xticks([4096, 8192, 12288, 16384], ["4k", "8k", "12k", "16k"])
        right.plot([-32, 0], [-32, 0], color=SOFT, linewidth=0.8)
        right.legend(loc="upper left")
        right.set(xlabel="foreseen", ylabel="measured", title="Needles, log probability")
        (STATIC / file).write_text(picture_file(figure, "rotary"), encoding="utf-8")


if __name__ == "__main__":
    for kind in ("needles", "far"):
        print(f"{kind}: setting, distance, needles, log probability said and measured, accuracy")
        recall_table(kind)
    print("setting, text, tokens, rows, mean cost, costs")
    cost_table()
    draw("rotary.svg", height=3.4, width=7.6, columns=2)
    draw("rotary-narrow.svg", height=6.4, width=3.7, rows=2)
