"""Forecast the models of the plan from short rows, then measure them on long ones.

    python experiments/far_field/run.py forecast RUNS    # appends to forecasts.jsonl
    python experiments/far_field/run.py measure RUNS     # appends to measured.jsonl

A model has a line in each file. Both commands take the runs that are finished and not yet there,
so that they go on where they were stopped. `measure` takes a model once its forecast is committed.
"""

import json
import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch

from farfield.validation.far_field.long_rows import Sampling, far_losses
from farfield.validation.harness.data import read_text
from farfield.validation.harness.measure import token_losses
from farfield.validation.harness.runs import WEIGHTS, asked_of, model_of
from farfield.validation.harness.train import read_tensors
from farfield.validation.models.network import TrainedNetwork, losses
from farfield.validation.models.repairs import Repair, Repaired, candidates

HERE = Path(__file__).parent
ROWS, GROUPS, LAST = 16, 12, 16  # rows of a group, groups of a text, targets of a row
SHORT, FAR = (128, 256), (1024, 4096)  # tokens: for the nulls alone, and what is forecast
SCORED = {1024: (3, 7, 11, 15), 4096: (7, 15)}  # rows of a group whose targets are measured
MAIN, CHECK = Sampling(1024, 2), Sampling(1024, math.inf)
REPAIRED = range(0, GROUPS, 2)  # groups on which repairs and layers are forecast and measured


def changes(depth, length):
    """The repairs, and each layer alone with keys beyond a window of the training length."""
    every = range(1, depth + 1)
    alone = [Repair(window=length, layers=tuple(k for k in every if k != x)) for x in every]
    return [Repair(), *candidates(length), *alone]


def starts(text, length):
    """Where groups begin; there is room for a long row before each."""
    return np.linspace(max(FAR), len(text) - ROWS * length - 1, GROUPS).astype(int)


def short_rows(text, start, length):
    """The rows of a group, (rows, length + 1)."""
    part = text[start : start + ROWS * length + 1].astype(np.int64)
    return torch.from_numpy(part).unfold(0, length + 1, length)


def long_rows(text, start, length, to, scored):
    """Rows of `to` tokens that end where some rows of a group end."""
    ends = [start + (row + 1) * length for row in scored]
    return np.stack([text[end - to : end + 1] for end in ends]).astype(np.int64)


def means(each):
    """Mean over the targets of each group, rounded: a list of numbers."""
    return [round(float(x.mean()), 5) for x in each]


def forecast(model, text):
    """Log ratios of each group, from rows of the training length."""
    network, length = TrainedNetwork(model), model.length
    rows = [short_rows(text, start, length) for start in starts(text, length)]
    line = {"said": {}, "rows": {}, "seconds": {}}
    for name, sampling in (("main", MAIN), ("check", CHECK)):
        begun = time.process_time()
        each = {to: [] for to in FAR}
        for group, x in enumerate(rows):
            settings = Sampling(sampling.samples, sampling.growth, group)
            if sampling is MAIN:  # its stages to 1,024 are those to 4,096
                found = far_losses(network, x, FAR, settings, LAST)
            else:
                found = {}
                for to in FAR:
                    found |= far_losses(network, x, [to], settings, LAST)
            for to in FAR:
                each[to].append(found[to] - found[length])
        for to in FAR:
            scored = [row - 1 for row in SCORED[to]]
            line["said"][f"{name} {to}"] = means(x[scored] for x in each[to])
            line["rows"][f"{name} {to}"] = means(each[to])
        line["seconds"][name] = round(time.process_time() - begun, 2)
    to, scored = FAR[0], [row - 1 for row in SCORED[FAR[0]]]
    base = {group: losses(network, rows[group], LAST)[1:] for group in REPAIRED}
    line["repairs"] = {}
    for repair in changes(network.depth, length):
        changed, each = Repaired(network, repair), []
        for group in REPAIRED:
            settings = Sampling(CHECK.samples, CHECK.growth, group)
            found = far_losses(changed, rows[group], [to], settings, LAST)[to]
            each.append((found - base[group])[scored])
        line["repairs"][repair.name] = means(each)
    return line


def measure(model, text):
    """The same log ratios on real rows; 2 and 4 times the length for the nulls."""
    network, length = TrainedNetwork(model), model.length
    line = {"measured": {}, "seconds": {}, "repairs": {}}
    for to in (*SHORT, *FAR):
        begun, scored = time.process_time(), SCORED[max(to, FAR[0])]
        each = []
        for start in starts(text, length):
            long = long_rows(text, start, length, to, scored)
            base = token_losses(model, long[:, -length - 1 :], last=LAST)
            each.append(token_losses(model, long, last=LAST) - base)
        line["measured"][str(to)] = means(each)
        line["seconds"][str(to)] = round(time.process_time() - begun, 2)
    for repair in changes(network.depth, length):
        changed, each = Repaired(network, repair), []
        for start in starts(text, length)[list(REPAIRED)]:
            long = torch.from_numpy(long_rows(text, start, length, FAR[0], SCORED[FAR[0]]))
            base = losses(network, long[:, -length - 1 :], LAST)
            each.append(losses(changed, long, LAST) - base)
        line["repairs"][repair.name] = means(each)
    return line


def kept(path):
    """The runs that have a line in a file."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {json.loads(line)["run"] for line in lines}


def committed():
    """The runs whose forecast is committed."""
    command = ["git", "show", "HEAD:./forecasts.jsonl"]
    shown = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True)
    return {json.loads(line)["run"] for line in shown.stdout.splitlines()}


def trained(own):
    """The model of a run's folder and what was asked, whatever version wrote the folder."""
    asked = asked_of(own)
    model = model_of(asked)
    model.load_state_dict(read_tensors(own / WEIGHTS)[0])
    return asked, model.eval()


def main(what, folder):
    """Do what is asked for each finished run of a folder."""
    torch.set_num_threads(1)
    said, done = HERE / "forecasts.jsonl", HERE / "measured.jsonl"
    path, ask = (said, forecast) if what == "forecast" else (done, measure)
    finished = [own for own in Path(folder).iterdir() if (own / WEIGHTS).exists()]
    for own in sorted(finished, key=lambda own: asked_of(own).steps):
        ready = what == "forecast" or own.name in committed()
        if own.name in kept(path) or not ready:
            continue
        asked, model = trained(own)
        text = read_text(asked.text)
        about = {"run": own.name, "label": asked.name, "steps": asked.steps, "text": text.source}
        with open(path, "a") as file:
            file.write(json.dumps(about | ask(model, text.held_out)) + "\n")
        print(asked.name, asked.steps, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
