"""What was said of each checkpoint beside what was measured: results.md.

python experiments/while_training/run.py judge
"""

import itertools
import json
import math
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
STEPS, HOLDS, MODELS = (250, 500, 1000, 2000, 4000), math.log(1.05), 8
NULLS = ("stays", "the loss at 4 times stays", "measured stays", "constant", "no loss")
READS_NO_LONG_ROW = ("stays", "constant", "no loss")


def lines(name):
    """The lines of a file by label and step."""
    text = (HERE / name).read_text() if (HERE / name).exists() else ""
    return {(line["label"], line["step"]): line for line in map(json.loads, text.splitlines())}


def checkpoints():
    """Each checkpoint that was read: its far field, and what was measured."""
    said, each = lines("forecasts.jsonl"), {}
    for at, line in lines("measured.jsonl").items():
        if said[at]["weights"] != line["weights"]:
            raise ValueError(f"{at}: forecast of other weights than those measured")
        short, four, far = (float(np.mean(line["nats"][n])) for n in ("64", "256", "1024"))
        each[at] = {
            "far field": float(np.mean(said[at]["said"])),
            "measured": far - short,
            "r4": four - short,
            "short": short,
            "long": far,
        }
    return each


def foreseen(each):
    """Each checkpoint that has one before, with what was said of it and by each null."""
    for (label, step), own in each.items():
        before, first = each.get((label, step // 2)), each.get((label, step // 4))
        if before is None:
            continue
        fell = first or before
        f, s = before["far field"], before["short"]
        trend = f + (f - fell["far field"])
        same = [x["measured"] for at, x in each.items() if at[1] == step and at[0] != label]
        yield own | {
            "label": label,
            "step": step,
            "trend": trend,
            "level": s + 0.7 * (s - fell["short"]) + trend,
            "level stays": s + f,
            "measured level stays": before["long"],
            "nulls": {
                "stays": f,
                "the loss at 4 times stays": before["r4"],
                "measured stays": before["measured"],
                "constant": float(np.mean(same)) if same else math.nan,
                "no loss": 0.0,
            },
        }


def crossing(values):
    """The step at which 5 % is crossed for the first time, from log ratios by step."""
    steps = sorted(values)
    for a, b in itertools.pairwise(steps):
        if values[a] <= HOLDS < values[b]:
            share = (HOLDS - values[a]) / (values[b] - values[a])
            return a * (b / a) ** share
    return None


def crossings(each):
    """Models that are measured to cross 5 %: by measurement, and by the far field."""
    for label in dict.fromkeys(label for label, _ in each):
        own = {step: x for (name, step), x in each.items() if name == label}
        measured = crossing({step: x["measured"] for step, x in own.items()})
        if measured is not None:
            yield label, measured, crossing({step: x["far field"] for step, x in own.items()})


def error(pairs):
    """Mean absolute difference."""
    return float(np.mean([abs(a - b) for a, b in pairs]))


def judged(each, cases):
    """Rows of the table: what, threshold, found, reached."""
    whole = len(each) == MODELS * len(STEPS)

    def reached(ok):
        return ("yes" if ok else "no") if whole else "not read whole"

    own = error((x["far field"], x["measured"]) for x in each.values())
    yield "far field of the same checkpoint", "at most .03", f"{own:.3f}", reached(own <= 0.03)
    trend = error((x["trend"], x["measured"]) for x in cases)
    nulls = {n: error((x["nulls"][n], x["measured"]) for x in cases) for n in NULLS}
    found = "; ".join(f"{n} {e:.3f}" for n, e in nulls.items())
    ok = trend <= 0.08 and all(trend < nulls[n] for n in READS_NO_LONG_ROW)
    yield "next checkpoint, trend", "at most .08, lowest", f"{trend:.3f}; {found}", reached(ok)

    def right(values):
        return sum((a <= HOLDS) == (x["measured"] <= HOLDS) for a, x in values)

    hits = right((x["trend"], x) for x in cases)
    others = {n: right((x["nulls"][n], x) for x in cases) for n in NULLS}
    found = "; ".join(f"{n} {k}" for n, k in others.items())
    ok = hits >= 0.9 * len(cases) and hits >= max(others.values())
    yield "next checkpoint holds", "9 of 10", f"{hits} of {len(cases)}; {found}", reached(ok)
    cross = list(crossings(each))
    near = sum(b is not None and max(a, b) <= 2 * min(a, b) for _, a, b in cross)
    outcome = reached(near >= 0.8 * len(cross)) if len(cross) >= 3 else "undecided"
    yield "step of crossing 5 %", "within 2 in 8 of 10", f"{near} of {len(cross)}", outcome
    level = error((x["level"], x["long"]) for x in cases)
    names = ("level stays", "measured level stays")
    first, second = (error((x[n], x["long"]) for x in cases) for n in names)
    found = f"{level:.3f}; {names[0]} {first:.3f}; {names[1]} {second:.3f}"
    yield "level at the next", "at most .1 nats", found, reached(level <= 0.1 and level < first)


def write():
    """Write results.md."""
    each = checkpoints()
    cases = list(foreseen(each))
    rounds = {s: sum(at[1] == s for at in each) for s in STEPS}
    out = [
        "# Results",
        "",
        "Written by `run.py judge` from `forecasts.jsonl` and `measured.jsonl`.",
        "",
        f"{len(each)} of {MODELS * len(STEPS)} checkpoints were read, {len(cases)} of "
        f"{MODELS * (len(STEPS) - 1)} of them foreseen from the one before. By step: "
        + ", ".join(f"{n} of {MODELS} at {s}" for s, n in rounds.items())
        + ".",
        "",
        "| what | threshold | found | reached |",
        "|---|---|---|---|",
        *(f"| {' | '.join(row)} |" for row in (judged(each, cases) if cases else ())),
        "",
        "## Checkpoints",
        "",
        "Nats of the same targets at 64 and 1,024 bytes. Log ratios: measured, by the far field "
        "of the checkpoint, by the trend of those before it.",
        "",
        "| model | step | 64 bytes | 1,024 bytes | measured | far field | trend |",
        "|---|---|---|---|---|---|---|",
    ]
    said = {(x["label"], x["step"]): f"{x['trend']:.3f}" for x in cases}
    for at, x in sorted(each.items(), key=lambda y: y[0]):
        numbers = (x["short"], x["long"], x["measured"], x["far field"])
        cells = [at[0], str(at[1]), *(f"{n:.3f}" for n in numbers), said.get(at, "")]
        out.append(f"| {' | '.join(cells)} |")
    cross = list(crossings(each))
    if cross:
        out += ["", "## Crossing 5 %", "", "| model | measured | far field |", "|---|---|---|"]
        out += [f"| {a} | {b:.0f} | {'none' if c is None else f'{c:.0f}'} |" for a, b, c in cross]
    (HERE / "results.md").write_text("\n".join(out) + "\n")
    print("\n".join(out[:16]))
    return 0
