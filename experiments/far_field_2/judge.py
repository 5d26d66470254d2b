"""Forecasts beside measurements: a table by threshold, tables by model, residuals for intervals.

python experiments/far_field_2/run.py judge    # results.md here, residuals.csv of the far field
"""

import hashlib
import json
import math
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from farfield.validation.far_field.intervals import RESIDUALS, Residual, around
from farfield.validation.harness.settings import read_plan

HERE = Path(__file__).parent
NULLS = (
    "the loss at 4 times stays",
    "fitted decay",
    "nearest model",
    "constant",
    "last octave",
)
MOST, OTHER, LARGE, BREAKS = {1024: 0.03, 4096: 0.04}, 0.09, 0.15, 0.1
GATES = ("FoX", "CoPE", "Cable")


def lines(name):
    """The lines of a file by label."""
    path = HERE / name
    text = path.read_text() if path.exists() else ""
    return {line["label"]: line for line in map(json.loads, text.splitlines())}


def interval(groups):
    """Mean and half of its 95 % interval over groups."""
    half = np.std(groups, ddof=1) / math.sqrt(len(groups)) * student.ppf(0.975, len(groups) - 1)
    return float(np.mean(groups)), float(half)


def planned():
    """The runs of the plan by label."""
    return {run.name: run for run in read_plan(HERE / "plan.toml").expand()}


def first_half(labels):
    """The models on which the threshold of the third look is chosen."""
    return set(sorted(labels, key=lambda x: hashlib.sha256(x.encode()).hexdigest())[::2])


# -- cases ----------------------------------------------------------------------------------------


def cases():
    """Each model that was read, at each length."""
    said, plan = lines("forecasts.jsonl"), planned()
    half = first_half(plan)
    for label, line in lines("measured.jsonl").items():
        own = said[label]
        if own["weights"] != line["weights"]:
            raise ValueError(f"{label}: forecast of other weights than those measured")
        short = [float(np.mean(line["measured"][n])) for n in ("128", "256")]
        for to in (1024, 4096):
            if str(to) not in line["measured"]:
                continue
            looks = {x: own["said"][f"{x} {to}"] for x in ("doubling", "one stage", "in order")}
            measured, spread = interval(line["measured"][str(to)])
            mean, width = interval(looks["doubling"])
            stage, order = (float(np.mean(looks[x])) for x in ("one stage", "in order"))
            yield {
                "label": label,
                "family": line["family"],
                "steps": line["steps"],
                "text": "English" if "documentation" in line["text"] else "code",
                "part": "B" if line["steps"] == 4000 else "A",
                "to": to,
                "short": short,
                "said": mean,
                "half": width,
                "one stage": stage,
                "in order": order,
                "distance": abs(order - stage),
                "agree": abs(mean - stage) <= width + 0.02,
                "first": label in half,
                "measured": measured,
                "spread": spread,
                "error": mean - measured,
                "paired": interval(np.subtract(looks["doubling"], line["measured"][str(to)]))[1],
                "elsewhere": float(np.mean(own["rows"][f"doubling {to}"])),
                "other": float(np.mean(line["other"][str(to)])),
                "other spread": interval(line["other"][str(to)])[1],
            }


def doublings(case):
    """From 4 times the training length on."""
    return int(math.log2(case["to"] / 256))


def decayed(case, q):
    """The log ratio if each doubling adds `q` times the last; `q` may be an array."""
    r2, r4 = case["short"]
    return r4 + (r4 - r2) * sum(q**k for k in range(1, doublings(case) + 1))


SHARES = np.arange(201) / 100
"""Of a change, that the next doubling adds."""


def with_nulls(every):
    """The same with what each null says, from the other models that were read."""
    misfits = [(decayed(x, SHARES) - x["measured"]) ** 2 for x in every]
    for case in every:
        left = [y for x, y in zip(every, misfits, strict=True) if x["label"] != case["label"]]
        share = float(SHARES[np.sum(left, 0).argmin()])
        others = [x for x in every if x["label"] != case["label"]]
        same = [x for x in others if x["to"] == case["to"]]
        family = [x for x in same if x["family"] == case["family"]] or same
        near = [x for x in family if (x["text"], x["steps"]) == (case["text"], case["steps"])]
        r2, r4 = case["short"]
        case["nulls"] = dict(
            zip(
                NULLS,
                (
                    r4,
                    decayed(case, share),
                    float(np.mean([x["measured"] for x in near or family])),
                    float(np.mean([x["measured"] for x in same])),
                    r4 + doublings(case) * (r4 - r2),
                ),
                strict=True,
            )
        )
    return every


# -- thresholds -----------------------------------------------------------------------------------


def mean_error(every):
    """Mean absolute error."""
    return float(np.mean([abs(x["error"]) for x in every]))


def same_bytes(every):
    """Threshold 1: what, threshold, reached, whether."""
    for to, most in MOST.items():
        at = [x for x in every if x["to"] == to]
        error = mean_error(at)
        nulls = {
            name: float(np.mean([abs(x["nulls"][name] - x["measured"]) for x in at]))
            for name in NULLS
        }
        best = min(nulls, key=nulls.get)
        what = f"same bytes, {to // 64} times"
        yield f"{what}: mean error", f"at most {most}", f"{error:.3f} of {len(at)}", error <= most
        told = "; ".join(f"{name} {value:.3f}" for name, value in nulls.items())
        yield f"{what}: nulls", "half of the best", told, error <= nulls[best] / 2


def other_text(every):
    """Threshold 2."""
    for to in MOST:
        at = [abs(x["elsewhere"] - x["other"]) for x in every if x["to"] == to]
        error = float(np.mean(at))
        what = f"other text, {to // 64} times: mean error"
        yield what, f"at most {OTHER}", f"{error:.3f} of {len(at)}", error <= OTHER


def residual(case):
    """What intervals are made of."""
    return Residual(case["family"], case["to"] // 64, case["elsewhere"], case["other"])


def covered(every):
    """Whether each case is inside its interval, made of other families at the same length."""
    for case in every:
        scores = [
            residual(x).score
            for x in every
            if x["family"] != case["family"] and x["to"] == case["to"]
        ]
        low, high = around(case["elsewhere"], scores)
        yield low <= case["other"] <= high


def coverage(every):
    """Threshold 3."""
    inside = list(covered(every))
    share = float(np.mean(inside))
    told = f"{sum(inside)} of {len(inside)}, {share:.0%}"
    yield "intervals of 90 %, families left out", "85 to 95 %", told, 0.85 <= share <= 0.95


def order_threshold(every):
    """The distance that one in ten of the good cases of the first half exceed at most."""
    good = sorted(x["distance"] for x in every if x["first"] and abs(x["error"]) <= LARGE)
    return good[math.ceil(0.9 * len(good)) - 1] if good else math.inf


def third_look(every):
    """Threshold 4."""
    threshold = order_threshold(every)
    second = [x for x in every if not x["first"]]
    large = [x for x in second if abs(x["error"]) > LARGE]
    small = [x for x in second if abs(x["error"]) <= LARGE]
    found, alarms = (sum(x["distance"] > threshold for x in some) for some in (large, small))
    what = f"third look, distance above {threshold:.3f}"
    decided = None if len(large) < 2 else found >= len(large) / 2
    yield f"{what}: large errors", "half of them", f"{found} of {len(large)}", decided
    yield f"{what}: others", "one in ten", f"{alarms} of {len(small)}", alarms <= len(small) / 10


def gates(every):
    """Threshold 5."""
    at = [x for x in every if x["label"].split(",")[0] in GATES]
    if at:
        error = mean_error(at)
        whole = len(at) == 6
        told = f"{error:.3f} of {len(at)}"
        yield "FoX, CoPE, Cable, 16 times", "at most 0.05", told, error <= 0.05 and whole


def layers(every):
    """Of each model that breaks: the layer named, the layer whose window helps most, as numbers."""
    said, measured = lines("forecasts.jsonl"), lines("measured.jsonl")
    for case in every:
        if case["to"] != 1024 or case["measured"] <= BREAKS:
            continue
        own, real = said[case["label"]]["layers"], measured[case["label"]]["layers"]
        excess = {
            name: interval(np.subtract(own[name], own["nowhere"]))
            for name in own
            if name != "nowhere"
        }
        worst = max(excess, key=lambda name: excess[name][0])
        named = worst if excess[worst][0] > excess[worst][1] else "no layer"
        left = {name: np.array(x) for name, x in real.items() if name.startswith("layer")}
        first, second = sorted(left, key=lambda name: float(left[name].mean()))[:2]
        gain, half = interval(left[second] - left[first])
        yield {
            "label": case["label"],
            "all": case["measured"],
            "excess": excess,
            "named": named,
            "best": first if gain > half else "none",
            "left": {name: float(x.mean()) for name, x in left.items()},
        }


def layers_named(every):
    """Threshold 6."""
    decided = [x for x in layers(every) if x["best"] != "none"]
    right = sum(x["named"] == x["best"] for x in decided)
    told = f"{right} of {len(decided)}"
    reached = right >= 0.8 * len(decided) if decided else None
    yield "the layer named is the one whose window helps most", "8 of 10", told, reached


JUDGES = (same_bytes, other_text, coverage, third_look, gates, layers_named)


# -- pages ----------------------------------------------------------------------------------------


def judged(every, whole):
    """A row for each threshold; nothing is reached on a part that is not read whole."""
    for judge in JUDGES:
        for what, threshold, found, reached in judge(every):
            word = "undecided" if reached is None else "yes" if reached else "no"
            word = word if whole else "not all is read"
            yield f"| {what} | {threshold} | {found} | {word} |"


def markdown():
    """The page of results, line by line."""
    plan, every = planned(), list(cases())
    read = {x["label"] for x in every}
    yield "# Results"
    yield ""
    yield "Written by `run.py judge` from `forecasts.jsonl` and `measured.jsonl`."
    parts = {"Part A": [x for x in plan if plan[x].steps != 4000], "Parts A and B": list(plan)}
    for name, labels in parts.items():
        own = [x for x in every if x["label"] in labels]
        left = [x for x in labels if x not in read]
        yield ""
        yield f"## {name}: {len(labels) - len(left)} of {len(labels)} models"
        yield ""
        if left:
            yield f"Not read: {'; '.join(left)}."
            yield ""
        yield "| what | threshold | found | reached |"
        yield "|---|---|---|---|"
        yield from judged(with_nulls([dict(x) for x in own]), not left)
    every = with_nulls(every)
    yield ""
    yield "## Models"
    yield ""
    yield (
        "Log ratios. Same bytes: the forecast by doubling, one stage, one stage in order, what was "
        "measured, and their paired difference. Other text: forecast and measurement."
    )
    yield ""
    columns = ("model", "times", "said", "one stage", "in order", "measured", "error")
    yield "| " + " | ".join((*columns, "other text", "at 4 times")) + " |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for x in every:
        yield (
            f"| {x['label']} | {x['to'] // 64} | {x['said']:.3f} ± {x['half']:.3f} | "
            f"{x['one stage']:.3f} | {x['in order']:.3f} | {x['measured']:.3f} | "
            f"{x['error']:+.3f} ± {x['paired']:.3f} | {x['elsewhere']:.3f}, {x['other']:.3f} ± "
            f"{x['other spread']:.3f} | {x['short'][1]:.3f} |"
        )
    yield ""
    yield "## Layers"
    yield ""
    yield (
        "Of models that lose more than .1 at 16 times: the excess of each layer, forecast; the log "
        "ratio that is left with a window of 64 in that layer alone, measured."
    )
    yield ""
    yield "| model | all | excess by layer | named | left by layer | helps most |"
    yield "|---|---|---|---|---|---|"
    for x in layers(every):
        excess = ", ".join(f"{a:+.3f} ± {b:.3f}" for a, b in x["excess"].values())
        left = ", ".join(f"{a:.3f}" for a in x["left"].values())
        yield f"| {x['label']} | {x['all']:.3f} | {excess} | {x['named']} | {left} | {x['best']} |"


def write():
    """The page, and the residuals that `foresee` makes intervals of once all of part A is read."""
    (HERE / "results.md").write_text("\n".join(markdown()) + "\n")
    plan, every = planned(), list(cases())
    if {x for x in plan if plan[x].steps != 4000} <= {x["label"] for x in every}:
        rows = ["family,times,said,measured"]
        for case in every:
            x = residual(case)
            rows.append(f"{x.family},{x.times},{x.said:.4f},{x.measured:.4f}")
        RESIDUALS.write_text("\n".join(rows) + "\n")
