"""Forecasts beside measurements: one table by threshold, one by model.

python experiments/far_field/judge.py    # results.md here
"""

import json
import math
from pathlib import Path

import numpy as np
from scipy.stats import t as student

HERE = Path(__file__).parent
LINE = math.log(1.05)
MOST = {1024: 0.04, 4096: 0.08}
NULLS = ("last octave", "log-linear from 2L", "nearest trained model", "constant")
LEVELS_OFF = "the loss at 4 times stays"
"""A null that was added after measuring: it knows that the loss levels off."""
FIXED = ("window 64", "window 32", "log scale", "window 64, 4 first keys")


def lines(name):
    """The lines of a file."""
    return [json.loads(line) for line in (HERE / name).read_text().splitlines()]


def interval(groups):
    """Mean and half of its 95 % interval over groups."""
    half = np.std(groups, ddof=1) / math.sqrt(len(groups)) * student.ppf(0.975, len(groups) - 1)
    return float(np.mean(groups)), float(half)


def cases():
    """Each model at both lengths: forecast, measurement, and the nulls that a model has alone."""
    said = {line["run"]: line for line in lines("forecasts.jsonl")}
    for line in lines("measured.jsonl"):
        own, short = said[line["run"]], [np.mean(line["measured"][n]) for n in ("128", "256")]
        for to in MOST:
            main, check = (own["said"][f"{name} {to}"] for name in ("main", "check"))
            mean, half = interval(main)
            measured, spread = interval(line["measured"][str(to)])
            doublings = int(math.log2(to / 64))
            yield {
                **{name: line[name] for name in ("run", "label", "steps", "text")},
                "to": to,
                "said": mean,
                "half": half,
                "known": abs(mean - np.mean(check)) <= half + 0.02,
                "check": float(np.mean(check)),
                "measured": measured,
                "spread": spread,
                "paired": interval(np.subtract(main, line["measured"][str(to)]))[1],
                LEVELS_OFF: short[1],
                "last octave": short[1] + (doublings - 2) * (short[1] - short[0]),
                "log-linear from 2L": doublings * short[0],
            }


def with_nulls():
    """The same with the nulls that other models give; None where there is no such model."""
    every = list(cases())
    for case in every:
        others = [x for x in every if x["to"] == case["to"] and x["run"] != case["run"]]
        case["constant"] = float(np.mean([x["measured"] for x in others])) if others else None
        label = "ALiBi" if case["label"] == "slope 1/32" else case["label"]
        steps, text = case["steps"], case["text"]
        near = [
            x["measured"]
            for x in others
            if x["label"] == label
            and (
                (x["steps"] == steps and label != case["label"])
                or (steps == 1000 and x["steps"] == 1000 and x["text"] != text)
                or (steps == 4000 and x["steps"] == 1000 and x["text"] == text)
            )
        ]
        case["nearest trained model"] = near[0] if near else None
    return every


def repairs():
    """Of each model the log ratios of repairs and of layers alone, forecast and measured."""
    said = {line["run"]: line for line in lines("forecasts.jsonl")}
    for line in lines("measured.jsonl"):
        pairs = {
            name: (float(np.mean(said[line["run"]]["repairs"][name])), float(np.mean(each)))
            for name, each in line["repairs"].items()
        }
        layers = {name: pairs.pop(name) for name in list(pairs) if "layers" in name}
        first, second = (min(pairs, key=lambda name: pairs[name][k]) for k in (0, 1))
        worst = [max(layers, key=lambda name: layers[name][k]) for k in (0, 1)]
        yield {
            **{name: line[name] for name in ("run", "label", "steps", "text")},
            "pairs": pairs,
            "layers": layers,
            "chosen": first,
            "best": second,
            "regret": pairs[first][1] - pairs[second][1],
            "none": pairs["none"][1],
            "gain": pairs["window 64"][1] - pairs[first][1],
            "harm": pairs[first][1] - pairs["none"][1],
            "worst": [1 + list(layers).index(name) for name in worst],
        }


def errors(every, name):
    """Mean absolute errors of a predictor, over the models that it has."""
    return [abs(case[name] - case["measured"]) for case in every if case[name] is not None]


def verdicts():
    """Each threshold with what was reached."""
    every, mended = with_nulls(), list(repairs())
    models = len(mended)
    table = []
    for to, most in MOST.items():
        at = [case for case in every if case["to"] == to]
        decided = [case for case in at if case["known"]]
        mean = float(np.mean(errors(decided, "said")))
        table.append(
            (
                f"mean error at {to // 64} times",
                f"at most {most:.2f}",
                f"{mean:.3f} over {len(decided)} of {models} models that are not unknown",
                mean <= most,
            )
        )
        compared, better = [], []
        for name in NULLS:
            known = [case for case in at if case[name] is not None]
            if known:
                null, own = (float(np.mean(errors(known, x))) for x in (name, "said"))
                compared.append(f"{name} {null:.3f} against {own:.3f} on {len(known)} models")
                better.append(own < null)
        table.append(
            (
                f"better than every null at {to // 64} times",
                "all of them",
                "; ".join(compared),
                all(better),
            )
        )
    doubled = [c for c in every if c["measured"] > math.log(2) and c["known"]]
    if doubled:
        share = float(np.mean([abs(c["said"] - c["measured"]) / c["measured"] for c in doubled]))
        table.append(
            ("error where perplexity doubles", "at most 15 %", f"{share:.1%}", share <= 0.15)
        )
    clear = [c for c in every if c["known"] and abs(c["measured"] - LINE) > c["spread"]]
    right = sum((c["said"] > LINE) == (c["measured"] > LINE) for c in clear)
    table.append(
        (
            "right about 5 %",
            "95 % of the decided",
            f"{right} of {len(clear)}",
            right >= 0.95 * len(clear),
        )
    )
    broken = [m for m in mended if m["none"] > 0.1]
    near = sum(m["regret"] <= 0.02 for m in broken)
    table.append(
        (
            "the chosen repair is within .02 of the best",
            "90 % of models that break",
            f"{near} of {len(broken)}, largest regret {max(m['regret'] for m in broken):.3f}",
            near >= 0.9 * len(broken),
        )
    )
    free = [m for m in mended if m["label"] == "no bias"]
    table.append(
        (
            "better than the window of 64, no bias",
            "by .1 in each",
            ", ".join(f"{m['gain']:.3f}" for m in free),
            all(m["gain"] >= 0.1 for m in free),
        )
    )
    hold = [m for m in mended if m["none"] <= 0.1]
    harm = max((m["harm"] for m in hold), default=0.0)
    table.append(
        (
            "never worse than no change where a model holds",
            "by .01",
            f"worst {harm:+.3f} of {len(hold)} models",
            harm <= 0.01,
        )
    )
    same = sum(m["worst"][0] == m["worst"][1] for m in broken)
    table.append(
        (
            "the layer named worst is the worst",
            "80 % of models that break",
            f"{same} of {len(broken)}",
            same >= 0.8 * len(broken),
        )
    )
    return table


def times():
    """Processor seconds a target row at 64 times: doubling (16 times included), one stage, real.

    The first lines of `forecasts.jsonl` told both lengths of the check apart.
    """
    runs = {line["run"] for line in lines("measured.jsonl")}
    said = [line["seconds"] for line in lines("forecasts.jsonl") if line["run"] in runs]
    rows, real = 12 * 15, 12 * 2
    main = np.median([s.get("main") or s["main 1024"] + s["main 4096"] for s in said]) / rows
    one = np.median([s["check 4096"] if "check 4096" in s else s["check"] / 2 for s in said]) / rows
    long = np.median([line["seconds"]["4096"] for line in lines("measured.jsonl")]) / real
    return float(main), float(one), float(long)


def markdown():
    """The tables."""
    yield "# Results\n\nWritten by `judge.py` from `forecasts.jsonl` and `measured.jsonl`.\n"
    yield "| what | threshold | reached | |\n|---|---|---|---|"
    for what, most, reached, passed in verdicts():
        yield f"| {what} | {most} | {reached} | {'yes' if passed else '**no**'} |"
    main, one, real = times()
    passed = "yes" if real >= 20 * one else "**no**"
    yield (
        f"| processor time a target row at 64 times | a twentieth | one stage {1000 * one:.0f} ms, "
        f"doubling {1000 * main:.0f} ms, real row {1000 * real:.0f} ms: {real / one:.0f} and "
        f"{real / main:.0f} times less | {passed} for one stage |"
    )
    yield "\n| model | steps | text | times | forecast | check | measured | error |"
    yield "|---|---|---|---|---|---|---|---|"
    for c in with_nulls():
        text = "English" if c["text"].startswith("documentation") else "code"
        known = "" if c["known"] else " (unknown)"
        yield (
            f"| {c['label']} | {c['steps']} | {text} | {c['to'] // 64} | {c['said']:.3f} ± "
            f"{c['half']:.3f}{known} | {c['check']:.3f} | {c['measured']:.3f} ± {c['spread']:.3f} "
            f"| {c['said'] - c['measured']:+.3f} ± {c['paired']:.3f} |"
        )
    yield "\n| model | steps | text | none | chosen | it | best | regret | worst layer |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for m in repairs():
        text = "English" if m["text"].startswith("documentation") else "code"
        yield (
            f"| {m['label']} | {m['steps']} | {text} | {m['none']:.3f} | {m['chosen']} | "
            f"{m['pairs'][m['chosen']][1]:.3f} | {m['best']} | {m['regret']:.3f} | "
            f"said {m['worst'][0]}, measured {m['worst'][1]} |"
        )
    fixed = {name: [m["pairs"][name][1] - m["none"] for m in repairs()] for name in FIXED}
    yield (
        "\nAlways the same repair, mean change of the log ratio: "
        + ", ".join(f"{name} {np.mean(x):+.3f}" for name, x in fixed.items())
        + ". The chosen one: "
        + f"{np.mean([m['harm'] for m in repairs()]):+.3f}."
    )


def told():
    """The sentences of the README and of the findings, with their numbers."""
    every, mended, (main, one, real) = with_nulls(), list(repairs()), times()
    mean = {
        to: [
            np.mean(errors([c for c in every if c["to"] == to], x) or [math.nan])
            for x in ("said", *NULLS)
        ]
        for to in MOST
    }
    free = next(m for m in mended if m["label"] == "no bias")
    both = "graft -2 log(n/16), window 64"
    yield (
        f"Of {len(mended)} models, mean error {mean[1024][0]:.3f} at 16 times and "
        f"{mean[4096][0]:.3f} at 64 times the length"
    )
    yield (
        f"the last octave carried on errs by {mean[1024][1]:.2f} and {mean[4096][1]:.2f}, a "
        f"constant by {mean[1024][4]:.2f} and {mean[4096][4]:.2f}"
    )
    yield (
        f"loses {free['none']:.2f} in log perplexity at 16 times; the window of 64 leaves "
        f"{free['pairs']['window 64'][1]:.2f}, the graft with the same window "
        f"{free['pairs'][both][1]:.2f}"
    )
    long = [c for c in every if c["steps"] == 4000 and c["to"] == 1024]
    yield "; ".join(f"{c['label']} {c['said']:.2f} and {c['measured']:.2f}" for c in long)
    yield f"{real / one:.0f} times less processor time in one stage, {real / main:.0f} by doubling"
    names = ("none", "window 64", "window 32", "log scale", "graft -2 log(n/16)", both)
    for m in mended:
        text = "English" if m["text"].startswith("documentation") else "code"
        cells = " | ".join(f"{m['pairs'][name][1]:.2f}" for name in names)
        yield f"| {m['label']}, {text}, {m['steps']} steps | {cells} |"


if __name__ == "__main__":
    (HERE / "results.md").write_text("\n".join(markdown()) + "\n")
