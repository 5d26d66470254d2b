"""Train models on a task of recall, forecast their use of far keys, then measure it.

    python experiments/recall/run.py train RUNS      # the models of plan.toml
    python experiments/recall/run.py forecast RUNS   # to forecasts.jsonl, from short rows
    python experiments/recall/run.py measure RUNS    # to measured.jsonl, what is committed
    python experiments/recall/run.py show            # a table

All go on where they were stopped.
"""

import json
import math
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy

from farfield.validation.far_field.long_rows import Sampling, Stages
from farfield.validation.harness import runs, train
from farfield.validation.harness.data import NOT_ASKED, InductionRows
from farfield.validation.harness.measure import recall
from farfield.validation.harness.settings import Induction, read_plan
from farfield.validation.models.network import TrainedNetwork

HERE = Path(__file__).parent
TIMES = (4, 16)  # the length of a row over that of training
GROUPS, ROWS = 16, 128  # of a forecast, and real rows
LEARNED, USED = 0.9, 0.5  # accuracy at the training length, and at the farthest key


def farthest(length):
    """The distance of the farthest key that is asked for."""
    return round(length * 1000 / 1024)


class AskedTargets:
    """The loss of the targets that are asked for alone, which is that of the harness."""

    def __init__(self):
        self.model, self.scorer = None, train.scorer

    def of(self, model, forward, run):
        """Remember the model."""
        self.model = model
        return self.scorer(model, forward, run)

    def backward(self, scores, parts, asked, size):
        """Add the gradients of the parts of a batch; the loss of all."""
        total = torch.zeros(())
        for x, y in parts:
            at = y != NOT_ASKED
            logits = self.model.logits(self.model.hidden(self.model.embed(x))[at])
            nats = cross_entropy(logits, y[at], reduction="sum") / asked
            nats.backward()
            total += nats.detach()
        return total


def trained(folder):
    """The models of the plan, in its order."""
    shorter = AskedTargets()
    train.scorer, train.backward = shorter.of, shorter.backward
    for run in read_plan(HERE / "plan.toml").expand():
        runs.run(run, folder, device="cpu")
        print(run.name, run.seed, time.strftime("%H:%M"), flush=True)


def forecast(run, model, rows):
    """Accuracy about the farthest key at each length, from blocks of the training length.

    A group is the blocks of one row. Each block from the third on asks, after the one before it,
    for the key in the first block. All other blocks give far keys.
    """
    length, network, said = run.length, TrainedNetwork(model), {}
    for times in TIMES:
        to, hits = times * length, []
        place = to - 1 - farthest(to)
        for g, tokens in enumerate(torch.from_numpy(rows.probe(1, GROUPS, to, farthest(to)))):
            group = tokens.unfold(0, length + 1, length)
            stages = Stages(network, group, 1, Sampling(1024, math.inf, g))
            stages.plain()
            stages.stage(1, [length, to])
            last = torch.arange(2, times)
            first = group[:1, :-1].expand(len(last), -1)
            asked = torch.cat([first, group[last - 1, :-1], group[last, :-1]], 1)
            asked[:, -1] = tokens[place]
            at = torch.cat([torch.arange(length), torch.arange(to - 2 * length, to)])
            own = torch.stack([last - 1, last], 1)
            scores = stages.blocks(asked, at, 1, [length, to], own)[:, 0]
            hits.append((scores.argmax(-1) == tokens[place + 1]).double().mean())
        said[to] = round(float(torch.stack(hits).mean()), 4)
    return {"said": said}


def measure(run, model, rows):
    """Accuracy about the farthest key on real rows."""
    lengths = [times * run.length for times in TIMES]
    each = [recall(model, rows, [to], distances=[farthest(to)], count=ROWS)[0] for to in lengths]
    return {"measured": {line.length: round(line.accuracy, 4) for line in each}}


def at_home(own):
    """Accuracy and attention on rows of the training length, as they were measured in training."""
    lines = [line for line in runs.rows_of(own) if line["protocol"] == "recall"]
    mean = lambda name: sum(line[name] for line in lines) / len(lines)  # noqa: E731
    return {"home": round(mean("accuracy"), 4), "attention": round(mean("attention"), 4)}


def lines_of(text):
    """The lines of a file, by run."""
    return {line["run"]: line for line in map(json.loads, text.splitlines())}


def committed():
    """The runs whose forecast is committed."""
    command = ["git", "show", "HEAD:./forecasts.jsonl"]
    shown = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True)
    return lines_of(shown.stdout)


def asked(what, folder):
    """Forecast or measure each finished model that has no line yet."""
    path = HERE / {"forecast": "forecasts.jsonl", "measure": "measured.jsonl"}[what]
    done = lines_of(path.read_text()) if path.exists() else {}
    known = committed() if what == "measure" else {}
    for file in sorted(Path(folder).glob(f"*/{runs.WEIGHTS}")):
        own = file.parent
        if own.name in done or (what == "measure" and own.name not in known):
            continue
        run, (model, _) = runs.asked_of(own), runs.load(own)
        rows = InductionRows(run.task or Induction())
        begun = time.process_time()
        line = {"run": own.name, "label": run.name, "seed": run.seed, "heads": run.heads}
        line |= {"layers": run.layers, "length": run.length, **at_home(own)}
        line |= (forecast if what == "forecast" else measure)(run, model, rows)
        line["seconds"] = round(time.process_time() - begun, 1)
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def show():
    """A table of all models, and the counts."""
    said, measured = (
        lines_of((HERE / name).read_text()) for name in ("forecasts.jsonl", "measured.jsonl")
    )
    far, right, always, home, learned = str(TIMES[-1]), 0, 0, 0, 0
    print("| model | learned | said | measured | right |\n|---|---|---|---|---|")
    for key, line in measured.items():
        to = str(int(far) * line["length"])
        guess, truth = said[key]["said"][to], line["measured"][to]
        knows, hit = line["home"] >= LEARNED, (guess >= USED) == (truth >= USED)
        shape = f"seed {line['seed']}, {line['heads']} heads, {line['layers']} layers"
        cells = (f"{line['home']:.2f}", f"{guess:.2f}", f"{truth:.2f}", "yes" if hit else "no")
        print("|", " | ".join((f"{line['label']}, {shape}", *cells)), "|")
        learned, right = learned + knows, right + (knows and hit)
        always += knows and truth >= USED
        home += knows and (line["attention"] >= 1 / 4) == (truth >= USED)
    print(f"\nOf {learned} that learned: {right} right; always {always}, attention at home {home}.")


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1] == "train":
        trained(sys.argv[2])
    elif sys.argv[1] == "show":
        show()
    else:
        asked(*sys.argv[1:])
