"""Forecast and measure what far passages are worth, and judge: results.md.

    python experiments/far_text/run.py forecast FAR_FIELD_2 WHILE_TRAINING
    python experiments/far_text/run.py measure FAR_FIELD_2 WHILE_TRAINING
    python experiments/far_text/run.py judge

The folders are those in which the scripts of these experiments trained. Both go on where they were
stopped; `measure` takes a model once its forecast is committed.
"""

import argparse
import hashlib
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from scipy.stats import t as student

from farfield.validation.far_field.long_rows import Sampling, Stages
from farfield.validation.far_field.worth import passages, readings
from farfield.validation.harness import runs
from farfield.validation.harness.data import places, read_text
from farfield.validation.harness.measure import token_losses
from farfield.validation.harness.runs import model_of
from farfield.validation.harness.settings import read_plan
from farfield.validation.harness.train import read_tensors
from farfield.validation.models.network import TrainedNetwork

HERE = Path(__file__).parent
SAID, MEASURED = HERE / "forecasts.jsonl", HERE / "measured.jsonl"
GROUPS, ROWS, LAST, LENGTH, FAR, STEP = 8, 16, 16, 64, (256, 1024), 1000
BATCH = 16  # long rows at a time


def models(first, second):
    """Where the weights of each model are, with its run, by label; parts A and B."""
    plan = {run.name: run for run in read_plan(HERE.parent / "far_field_2/plan.toml").expand()}
    for label, run in plan.items():
        home = Path(first) / "".join(x if x.isalnum() else "-" for x in label)
        if run.steps == 4000:
            yield "A", label, run, home / runs.WEIGHTS
    for run in read_plan(HERE.parent / "while_training/plan.toml").expand():
        home = Path(second) / "".join(x if x.isalnum() else "-" for x in run.name)
        label = f"{run.name}, {STEP} of another training"
        yield "B", label, run, home / f"{STEP}.safetensors"


def trained(run, path):
    """A model, and the hash of its weights."""
    model = model_of(run)
    model.load_state_dict(read_tensors(path)[0])
    data = b"".join(x.contiguous().numpy().tobytes() for x in model.state_dict().values())
    return model.eval(), hashlib.sha256(data).hexdigest()[:12]


def found(text, to):
    """Where groups begin, with room for a long row before each, and the marked targets of those
    that have any."""
    starts = (max(FAR) + places(len(text) - max(FAR), GROUPS, ROWS * LENGTH)).tolist()
    every = passages(text, starts, ROWS, LENGTH, LAST, to)
    each = {g: (a, [x for x in every if x.group == g]) for g, a in enumerate(starts)}
    return {g: (a, marked) for g, (a, marked) in each.items() if marked}


def forecast(model, text):
    """By length, group means of the four readings at marked targets, and of the others."""
    network, line = TrainedNetwork(model), {}
    for to in FAR:
        rows = []
        for g, (start, marked) in found(text, to).items():
            part = torch.from_numpy(text[start : start + ROWS * LENGTH + 1].astype(np.int64))
            sampling = Sampling(1024, math.inf, g)
            stages = Stages(network, part.unfold(0, LENGTH + 1, LENGTH), LAST, sampling)
            each = readings(stages, text, start, marked, to)
            other = torch.stack([(each.stage - stages.plain())[r, k] for r, k in others(marked)])
            rows.append([float(x.mean()) for x in (*each[:4], other)])
        line[str(to)] = np.round(rows, 5).tolist()
    return line


def others(marked):
    """Targets that are not marked, of rows that have a marked one: rows and places."""
    taken = {(x.row, k) for x in marked for k in x.targets}
    rows = sorted({x.row for x in marked})
    return [(r, k) for r in rows for k in range(LAST) if (r, k) not in taken]


def measure(model, text):
    """By length, group means of nats: the short row, the real row, the passage replaced; and what
    the other targets of these rows lose."""
    line = {}
    for to in FAR:
        rows, random = [], np.random.default_rng([2026, to])
        for start, marked in found(text, to).values():
            real, replaced = [], []
            for x in marked:
                end = start + (x.row + 1) * LENGTH
                row = text[end - to : end + 1].astype(np.int64)
                at, size = to - end + x.begin, x.end - x.begin
                other = int(random.integers(len(text) - size))
                swapped = row.copy()
                swapped[at : at + size] = text[other : other + size]
                real.append(row)
                replaced.append(swapped)
            short = nats(model, [row[-LENGTH - 1 :] for row in real])
            long, without = nats(model, real), nats(model, replaced)
            pairs = [(n, k) for n, x in enumerate(marked) for k in x.targets]
            of_row = {x.row: n for n, x in enumerate(marked)}
            rest = [(of_row[r], k) for r, k in others(marked)]
            each = [np.mean([y[p] for p in pairs]) for y in (short, long, without)]
            rows.append([*each, np.mean([(long - short)[p] for p in rest])])
        line[str(to)] = np.round(rows, 5).tolist()
    return line


def nats(model, rows):
    """Nats of the last targets of rows, some rows at a time."""
    parts = [np.stack(rows[k : k + BATCH]) for k in range(0, len(rows), BATCH)]
    return np.concatenate([np.asarray(token_losses(model, x, last=LAST)) for x in parts])


# -- files ----------------------------------------------------------------------------------------


def lines(path):
    """The lines of a file by label."""
    text = path.read_text() if path.exists() else ""
    return {line["label"]: line for line in map(json.loads, text.splitlines())}


def committed():
    """The labels whose forecast is committed."""
    command = ["git", "show", f"HEAD:./{SAID.name}"]
    shown = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    return {json.loads(line)["label"] for line in shown.stdout.splitlines()}


def interval(groups):
    """Mean and half of its 95 % interval over groups."""
    half = np.std(groups, ddof=1) / math.sqrt(len(groups)) * student.ppf(0.975, len(groups) - 1)
    return float(np.mean(groups)), float(half)


def cases():
    """Each model at each length."""
    said = lines(SAID)
    for label, line in lines(MEASURED).items():
        if said[label]["weights"] != line["weights"]:
            raise ValueError(f"{label}: forecast of other weights than those measured")
        for to in map(str, FAR):
            near, placed, diluted, whole, other = np.transpose(said[label]["nats"][to])
            short, long, without, rest = np.transpose(line["nats"][to])
            yield {
                "label": label,
                "part": line["part"],
                "to": to,
                "said": interval(diluted - whole),
                "measured": interval(without - long),
                "positions": float((placed - near).mean()),
                "dilution": float((diluted - placed).mean()),
                "level": (float((whole - near).mean()), float((long - short).mean())),
                "keys alone": float((diluted - near).mean()),
                "others": (float(other.mean()), float(rest.mean())),
            }


def error(pairs):
    """Mean absolute difference."""
    return float(np.mean([abs(a - b) for a, b in pairs]))


def judged(every, whole):
    """Rows of the table."""

    def reached(ok):
        return ("yes" if ok else "no") if whole else "not read whole"

    clear = [x for x in every if abs(x["measured"][0]) > x["measured"][1]]
    hits = sum(x["said"][0] * x["measured"][0] > 0 for x in clear)
    gives = sum(x["measured"][0] > 0 for x in clear)
    ok = reached(hits >= 0.9 * len(clear)) if len(clear) >= 5 else "undecided"
    yield "sign", "9 of 10", f"{hits} of {len(clear)}; it gives {gives}", ok
    size = error((x["said"][0], x["measured"][0]) for x in every)
    nothing = error((0, x["measured"][0]) for x in every)
    constant = error(
        (
            np.mean(
                [y["measured"][0] for y in every if y["to"] == x["to"] and y["label"] != x["label"]]
            ),
            x["measured"][0],
        )
        for x in every
    )
    found_ = f"{size:.3f}; nothing {nothing:.3f}; constant {constant:.3f}"
    yield (
        "size",
        "at most .05, lowest",
        found_,
        reached(size <= 0.05 and size < min(nothing, constant)),
    )
    level = error(x["level"] for x in every)
    alone = error((x["keys alone"], x["level"][1]) for x in every)
    rest = error(x["others"] for x in every)
    found_ = f"{level:.3f}; far keys alone {alone:.3f}; the other targets {rest:.3f}"
    yield "level of marked targets", "lower than far keys alone", found_, reached(level < alone)


def write():
    """Write results.md."""
    every = list(cases())
    out = ["# Results", "", "Written by `run.py judge` from the files beside it.", ""]
    for part, count in (("A", 9), ("B", 8), ("A and B", 17)):
        some = [x for x in every if x["part"] in part]
        if len({x["part"] for x in some}) < len(part.replace(" and ", "")):
            continue
        out += [f"## Part {part}: {len(some) // 2} of {count} models", ""]
        out += ["| what | threshold | found | reached |", "|---|---|---|---|"]
        out += [f"| {' | '.join(row)} |" for row in judged(some, len(some) == 2 * count)] + [""]
    out += [
        "## Cases",
        "",
        "Nats at marked targets. What far text gives, by forecast and measured; the other two "
        "parts; what marked targets and the others lose, each by forecast and measured.",
        "",
        "| model | bytes | said | measured | positions | dilution | marked | others |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for x in every:
        cells = [x["label"], x["to"]]
        cells += [f"{a:+.3f} ± {b:.3f}" for a, b in (x["said"], x["measured"])]
        cells += [f"{x[name]:+.3f}" for name in ("positions", "dilution")]
        cells += [f"{a:+.3f}, {b:+.3f}" for a, b in (x["level"], x["others"])]
        out.append(f"| {' | '.join(cells)} |")
    (HERE / "results.md").write_text("\n".join(out) + "\n")
    print("\n".join(out[:20]))
    return 0


def main():
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["forecast", "measure", "judge"])
    parser.add_argument("first", nargs="?", default="out/far_field_2")
    parser.add_argument("second", nargs="?", default="out/while_training")
    args = parser.parse_args()
    if args.what == "judge":
        return write()
    torch.set_num_threads(1)
    path, text = {"forecast": SAID, "measure": MEASURED}[args.what], read_text(None)
    ready = committed() if args.what == "measure" else None
    for part, label, run, weights in models(args.first, args.second):
        left = weights.exists() and label not in lines(path)
        if not left or (ready is not None and label not in ready):
            continue
        model, own = trained(run, weights)
        work = forecast if args.what == "forecast" else measure
        line = {"label": label, "part": part, "text": text.source, "weights": own}
        line["nats"] = work(model, text.held_out)
        with open(path, "a") as file:
            file.write(json.dumps(line) + "\n")
        print(args.what, label, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
