"""Train the encodings of the plan to a checkpoint, forecast and measure its long rows, judge.

    python experiments/while_training/run.py train RUNS STEP
    python experiments/while_training/run.py forecast RUNS STEP    # appends to forecasts.jsonl
    python experiments/while_training/run.py measure RUNS STEP     # appends to measured.jsonl
    python experiments/while_training/run.py judge                 # writes results.md

Each goes on where it was stopped. `measure` takes a checkpoint once its forecast is committed.
"""

import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

from farfield.validation.far_field.long_rows import Sampling, far_losses
from farfield.validation.harness import train as training
from farfield.validation.harness.data import read_text
from farfield.validation.harness.measure import token_losses
from farfield.validation.harness.runs import model_of
from farfield.validation.harness.settings import read_plan
from farfield.validation.models.network import TrainedNetwork

HERE = Path(__file__).parent
PLAN, SAID, MEASURED = (HERE / x for x in ("plan.toml", "forecasts.jsonl", "measured.jsonl"))
STEPS = (250, 500, 1000, 2000, 4000)
ROWS, GROUPS, LAST = 16, 6, 16  # rows of a group, groups of the text, targets of a row
FOUR, FAR, SCORED = 256, 1024, (3, 7, 11, 15)  # bytes; rows of a group whose targets are measured
EVERY = 50  # steps between files of a training


def planned():
    """The runs of the plan by label, in its order."""
    return {run.name: run for run in read_plan(PLAN).expand()}


def home_of(folder, label):
    """The folder of a training."""
    return Path(folder) / "".join(x if x.isalnum() else "-" for x in label)


def weights_of(folder, label, step):
    """The weights of a checkpoint."""
    return home_of(folder, label) / f"{step}.safetensors"


def train(run, text, folder, to):
    """Train to a checkpoint, from the last one that was kept."""
    home = home_of(folder, run.name)
    home.mkdir(parents=True, exist_ok=True)
    state, model = home / "state.safetensors", model_of(run)
    optimiser, first = training.optimizer(model, run), 0
    if state.exists():
        first, _, _ = training.resume(state, model, optimiser)
    process = training.Process(model)
    scores = training.scorer(model, model, run)
    model.train()
    for step in range(first, to):
        for group in optimiser.param_groups:
            group["lr"] = training.learning_rate(step, run)
        rows, targets = training.batch(text, run, step, process, model.device)
        loss = training.backward(scores, rows, targets, 1)
        torch.nn.utils.clip_grad_norm_(model.parameters(), run.clip)
        optimiser.step()
        optimiser.zero_grad()
        model.project()
        if (step + 1) % EVERY == 0:
            training.keep(state, model, optimiser, step + 1, [], [])
    record = {"loss of the last step": float(loss)}
    training.write_tensors(weights_of(folder, run.name, to), model.state_dict(), record)
    return record


def trained(run, folder, step):
    """The model of a checkpoint, and the hash of its weights."""
    model = model_of(run)
    model.load_state_dict(training.read_tensors(weights_of(folder, run.name, step))[0])
    data = b"".join(x.contiguous().numpy().tobytes() for x in model.state_dict().values())
    return model.eval(), hashlib.sha256(data).hexdigest()[:12]


def starts(text, length):
    """Where groups begin; there is room for a long row before each."""
    return np.linspace(4096, len(text) - ROWS * length - 1, GROUPS).astype(int)


def means(each):
    """Mean over the targets of each group, rounded."""
    return [round(float(np.mean(x)), 5) for x in each]


def forecast(model, text):
    """Log ratios of each group by doubling, on the rows that are measured."""
    network, length, each = TrainedNetwork(model), model.length, []
    for group, start in enumerate(starts(text, length)):
        part = torch.from_numpy(text[start : start + ROWS * length + 1].astype(np.int64))
        rows = part.unfold(0, length + 1, length)
        found = far_losses(network, rows, [FAR], Sampling(1024, 2, group), LAST)
        each.append((found[FAR] - found[length])[[row - 1 for row in SCORED]].numpy())
    return {"said": means(each)}


def measure(model, text):
    """Nats of the same targets at the training length, at 4 and at 16 times."""
    length, nats = model.length, {}
    ends = [[a + (row + 1) * length for row in SCORED] for a in starts(text, length)]
    for to in (length, FOUR, FAR):
        long = [np.stack([text[end - to : end + 1] for end in x]).astype(np.int64) for x in ends]
        nats[str(to)] = means(token_losses(model, rows, last=LAST) for rows in long)
    return {"nats": nats}


def keys(lines):
    """Which checkpoints some lines are of."""
    return {(line["label"], line["step"]) for line in map(json.loads, lines.splitlines())}


def committed():
    """The checkpoints whose forecast is committed."""
    command = ["git", "show", f"HEAD:./{SAID.name}"]
    return keys(subprocess.run(command, cwd=HERE, capture_output=True, text=True).stdout)


def main():
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["train", "forecast", "measure", "judge"])
    parser.add_argument("folder", nargs="?", default="out/while_training")
    parser.add_argument("step", nargs="?", type=int, choices=STEPS)
    args = parser.parse_args()
    if args.what == "judge":
        from judge import write

        return write()
    torch.set_num_threads(1)
    text = read_text(None)
    path = {"forecast": SAID, "measure": MEASURED}.get(args.what)
    done = keys(path.read_text()) if path is not None and path.exists() else set()
    for label, run in planned().items():
        at, ready = (label, args.step), weights_of(args.folder, label, args.step).exists()
        if args.what == "train":
            if not ready:
                print(label, args.step, train(run, text, args.folder, args.step), flush=True)
            continue
        if not ready or at in done or (args.what == "measure" and at not in committed()):
            continue
        model, weights = trained(run, args.folder, args.step)
        line = {"label": label, "step": args.step, "text": text.source, "weights": weights}
        line |= (forecast if args.what == "forecast" else measure)(model, text.held_out)
        with open(path, "a") as file:
            file.write(json.dumps(line) + "\n")
        print(args.what, label, args.step, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
