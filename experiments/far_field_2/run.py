"""Train the models of the plan, forecast their long rows, measure these, and judge.

    python experiments/far_field_2/run.py train RUNS       # in the order of the plan
    python experiments/far_field_2/run.py forecast RUNS    # appends to forecasts.jsonl
    python experiments/far_field_2/run.py measure RUNS     # appends to measured.jsonl
    python experiments/far_field_2/run.py judge            # writes results.md

All go on where they were stopped. `--only "A;B"` takes the models with these labels, `--part A`
those of one part, `--workers K` reads or trains so many at once. `measure` takes a model once its
forecast is committed.

For another machine `texts FOLDER` writes the two texts. There `--texts FOLDER` reads them in place
of its own library's, and `--lines FOLDER` keeps the two files of lines elsewhere. Trained models go
into files of 16 MB by `pack RUNS FOLDER`, and come out by `unpack FOLDER RUNS`. Weights are rounded
to half precision when a model is trained, so that both are the same model.
"""

import argparse
import hashlib
import json
import multiprocessing
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
import safetensors.torch
import torch

from farfield.validation.far_field.long_rows import Sampling, far_losses
from farfield.validation.harness import runs
from farfield.validation.harness.data import DOCUMENTATION, Text, read_text
from farfield.validation.harness.measure import token_losses
from farfield.validation.harness.runs import model_of
from farfield.validation.harness.settings import read_plan
from farfield.validation.harness.train import read_tensors, train, write_tensors
from farfield.validation.models.network import TrainedNetwork, losses
from farfield.validation.models.repairs import Repair, Repaired

HERE = Path(__file__).parent
PLAN, SAID, MEASURED = (HERE / x for x in ("plan.toml", "forecasts.jsonl", "measured.jsonl"))
GATES = ("FoX", "CoPE", "Cable")  # read at 16 times alone
ROWS, GROUPS, LAST = 16, 6, 16  # rows of a group, groups of a text, targets of a row
SHORT, FAR = (128, 256), (1024, 4096)  # tokens: for the nulls alone, and what is forecast
SCORED = {1024: (3, 7, 11, 15), 4096: (15,)}  # rows of a group whose targets are measured
LAYERED = (7, 15)  # the same, for windows in one layer
OTHER = {1024: 24, 4096: 12}  # rows of other text
LOOKS = {
    "doubling": Sampling(1024, 2),
    "one stage": Sampling(1024, np.inf),
    "in order": Sampling(1024, np.inf, ordered=True),
}
BUNDLE = 15 << 20  # bytes


def planned():
    """The runs of the plan by label, in its order."""
    return {asked.name: asked for asked in read_plan(PLAN).expand()}


def far_of(label):
    """The long rows of a model."""
    return FAR[:1] if label.split(",")[0] in GATES else FAR


def text_of(asked, folder):
    """The text of a run: this machine's, or from a folder that `texts` wrote."""
    if folder is None:
        return read_text(asked.text)
    with np.load(Path(folder) / f"{'code' if asked.text is None else 'English'}.npz") as file:
        return Text(str(file["source"]), file["train"], file["held_out"])


def write_texts(folder):
    """Both texts, for a machine with another library."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, which in (("code", None), ("English", DOCUMENTATION)):
        text = read_text(which)
        parts = {"source": text.source, "train": text.train, "held_out": text.held_out}
        np.savez_compressed(Path(folder) / f"{name}.npz", **parts)


# -- rows -----------------------------------------------------------------------------------------


def starts(text, length):
    """Where groups begin; there is room for a long row before each."""
    return np.linspace(max(FAR), len(text) - ROWS * length - 1, GROUPS).astype(int)


def short_rows(text, start, length):
    """The rows of a group, (rows, length + 1)."""
    part = text[start : start + ROWS * length + 1].astype(np.int64)
    return torch.from_numpy(part).unfold(0, length + 1, length)


def long_rows(text, ends, to):
    """Rows of `to` tokens and their last target, (rows, to + 1)."""
    return np.stack([text[end - to : end + 1] for end in ends]).astype(np.int64)


def other_ends(text, length, at):
    """Where rows of other text end: drawn for each model, none touches a group."""
    random, taken = np.random.default_rng([2026, at]), starts(text, length)
    ends = []
    while len(ends) < max(OTHER.values()):
        end = int(random.integers(max(FAR), len(text) - 1))
        if all(end < a or end - max(FAR) > a + ROWS * length for a in taken):
            ends.append(end)
    return ends


def means(each):
    """Mean over the targets of each group, rounded: a list of numbers."""
    return [round(float(np.mean(x)), 5) for x in each]


# -- a model --------------------------------------------------------------------------------------


def forecast(label, model, text):
    """Log ratios of each group, from rows of the training length."""
    network, length, far = TrainedNetwork(model), model.length, far_of(label)
    rows = [short_rows(text, start, length) for start in starts(text, length)]
    line = {"said": {}, "rows": {}, "seconds": {}}
    for name, look in LOOKS.items():
        begun = time.process_time()
        each = {to: [] for to in far}
        for group, x in enumerate(rows):
            own = Sampling(look.samples, look.growth, group, look.ordered)
            asked = [far] if name == "doubling" else [[to] for to in far]
            for lengths in asked:
                found = far_losses(network, x, lengths, own, LAST)
                for to in lengths:
                    each[to].append((found[to] - found[length]).numpy())
        for to in far:
            scored = [row - 1 for row in SCORED[to]]
            line["said"][f"{name} {to}"] = means(x[scored] for x in each[to])
            line["rows"][f"{name} {to}"] = means(each[to])
        line["seconds"][name] = round(time.process_time() - begun, 2)
    to = far[0]
    base = [far_losses(network, x, [], last=LAST)[length] for x in rows]
    line["layers"] = {}
    for name, changed in by_layer(network, alone=True).items():
        each = []
        for group, x in enumerate(rows):
            found = far_losses(changed, x, [to], Sampling(1024, np.inf, group), LAST)[to]
            each.append((found - base[group]).numpy())
        line["layers"][name] = means(each)
    return line


def by_layer(network, alone):
    """Far keys nowhere, and in each layer alone; or the reverse, a window in one layer."""
    every, window = range(1, network.depth + 1), network.trained
    changed = {"nowhere": Repaired(network, Repair(window=window))}
    for layer in every:
        others = tuple(k for k in every if (k != layer) == alone)
        changed[f"layer {layer}"] = Repaired(network, Repair(window=window, layers=others))
    return changed


def measure(label, model, text, at):
    """The same log ratios on real rows; 2 and 4 times the length for the nulls; other text."""
    network, length, far = TrainedNetwork(model), model.length, far_of(label)
    line = {"measured": {}, "other": {}, "layers": {}, "seconds": {}}
    for to in (*SHORT, *far):
        begun, scored = time.process_time(), SCORED[max(to, FAR[0])]
        each = []
        for start in starts(text, length):
            long = long_rows(text, [start + (row + 1) * length for row in scored], to)
            base = token_losses(model, long[:, -length - 1 :], last=LAST)
            each.append(token_losses(model, long, last=LAST) - base)
        line["measured"][str(to)] = means(each)
        line["seconds"][str(to)] = round(time.process_time() - begun, 2)
    for to in far:
        long = long_rows(text, other_ends(text, length, at)[: OTHER[to]], to)
        base = token_losses(model, long[:, -length - 1 :], last=LAST)
        line["other"][str(to)] = means(token_losses(model, long, last=LAST) - base)
    ends = [[start + (row + 1) * length for row in LAYERED] for start in starts(text, length)]
    long = torch.from_numpy(np.concatenate([long_rows(text, x, far[0]) for x in ends]))
    base = losses(network, long[:, -length - 1 :], LAST)
    for name, changed in {"none": network, **by_layer(network, alone=False)}.items():
        found = torch.cat([losses(changed, row[None], LAST) for row in long])
        line["layers"][name] = means((found - base).unflatten(0, (GROUPS, -1)).numpy())
    return line


def train_one(asked, folder, text, device):
    """Train a model, or go on with it; its run's folder has its settings and its weights."""
    home = Path(folder) / "".join(x if x.isalnum() else "-" for x in asked.name)
    home.mkdir(parents=True, exist_ok=True)
    (home / runs.ASKED).write_text(asked.model_dump_json(indent=1))
    model = model_of(asked).to(device)
    history = train(model, text, asked, checkpoint=home / runs.CHECKPOINT)
    record = {"text": text.sha256, "history": [list(report) for report in history]}
    weights = {name: x.half().float() for name, x in model.state_dict().items()}
    write_tensors(home / runs.WEIGHTS, weights, record)
    (home / runs.CHECKPOINT).unlink(missing_ok=True)
    return {"nats": history[-1].held_out}


def trained(home):
    """The model of a run's folder, whatever version wrote the folder."""
    asked = runs.asked_of(home)
    model = model_of(asked)
    model.load_state_dict(read_tensors(home / runs.WEIGHTS)[0])
    return asked, model.eval()


def bytes_of(x):
    """The numbers of a tensor."""
    return x.contiguous().numpy().tobytes()


# -- all models -----------------------------------------------------------------------------------


def homes(folder):
    """The finished runs of a folder by label."""
    each = [path.parent for path in Path(folder).glob(f"*/{runs.WEIGHTS}")]
    return {runs.asked_of(home).name: home for home in each}


def lines(path):
    """The lines of a file by label."""
    text = path.read_text() if path.exists() else ""
    return {line["label"]: line for line in map(json.loads, text.splitlines())}


def committed(path):
    """The labels whose forecast is committed; of files that are elsewhere, those that are there."""
    if path != SAID:
        return set(lines(path))
    command = ["git", "show", f"HEAD:./{SAID.name}"]
    shown = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    return {json.loads(line)["label"] for line in shown.stdout.splitlines()}


def work(what, label, folder, device, texts):
    """One model: trained, forecast or measured; a line of a file, or why there is none."""
    torch.set_num_threads(1)
    asked, at = planned()[label], list(planned()).index(label)
    text = text_of(asked, texts)
    about = {"label": label, "family": asked.family, "steps": asked.steps, "text": text.source}
    try:
        if what == "train":
            return about | train_one(asked, folder, text, device)
        asked, model = trained(homes(folder)[label])
        about["weights"] = hashlib.sha256(b"".join(map(bytes_of, model.state_dict().values())))
        about["weights"] = about["weights"].hexdigest()[:12]
        if what == "forecast":
            return about | forecast(label, model, text.held_out)
        return about | measure(label, model, text.held_out, at)
    except Exception as error:  # the other models go on
        return f"{type(error).__name__}: {error}"


def waiting(what, folder, said, measured):
    """The models that are left to do."""
    every, ready = list(planned()), homes(folder)
    if what == "train":
        return [label for label in every if label not in ready]
    if what == "forecast":
        return [label for label in every if label in ready and label not in lines(said)]
    asked, done = committed(said), lines(measured)
    return [label for label in every if label in ready and label in asked and label not in done]


def part_of(asked):
    """A or B."""
    return "B" if asked.steps == 4000 else "A"


def each_model(what, args):
    """Do what is asked for all models that are left."""
    said, measured = (Path(args.lines) / x.name for x in (SAID, MEASURED))
    path, every = {"forecast": said, "measure": measured}.get(what), planned()
    left = [
        label
        for label in waiting(what, args.folder, said, measured)
        if (not args.only or label in args.only) and args.part in ("", part_of(every[label]))
    ]
    start = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(args.workers, start) as pool:
        shared = (args.folder, args.device, args.texts)
        futures = {pool.submit(work, what, x, *shared): x for x in left}
        for future in as_completed(futures):
            label, line = futures[future], future.result()
            if isinstance(line, str):
                print(f"{label}: {line}", flush=True)
                continue
            if path is not None:
                with open(path, "a") as file:
                    file.write(json.dumps(line) + "\n")
            print(what, label, line.get("nats", ""), flush=True)


def pack(source, target):
    """Put trained models into files of some MB, in half precision."""
    bundles, size = [{}], 0
    for label, home in homes(source).items():
        tensors = {k: x.half() for k, x in read_tensors(home / runs.WEIGHTS)[0].items()}
        more = sum(x.nbytes for x in tensors.values())
        if size + more > BUNDLE:
            bundles.append({})
            size = 0
        size += more
        bundles[-1] |= {f"{label}|{name}": x for name, x in tensors.items()}
    for at, tensors in enumerate(bundles):
        Path(target).mkdir(parents=True, exist_ok=True)
        safetensors.torch.save_file(tensors, Path(target) / f"models-{at}.safetensors")


def unpack(source, target):
    """Take models out of such files, those that are not there already."""
    found, ready, every = {}, homes(target), planned()
    for path in Path(source).glob("models-*.safetensors"):
        for name, x in safetensors.torch.load_file(path).items():
            label, _, rest = name.partition("|")
            found.setdefault(label, {})[rest] = x.float()
    for label in set(found) - set(ready):
        home = Path(target) / "".join(x if x.isalnum() else "-" for x in label)
        home.mkdir(parents=True, exist_ok=True)
        (home / runs.ASKED).write_text(every[label].model_dump_json(indent=1))
        write_tensors(home / runs.WEIGHTS, found[label], {"unpacked": True})
        print("unpack", label)


def main():
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    every = ["train", "forecast", "measure", "judge", "texts", "pack", "unpack"]
    parser.add_argument("what", choices=every)
    parser.add_argument("folder", nargs="?", default="runs/far_field_2")
    parser.add_argument("target", nargs="?")
    parser.add_argument("--only", type=lambda x: x.split(";"), default=[])
    parser.add_argument("--part", choices=["", "A", "B"], default="")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--texts")
    parser.add_argument("--lines", default=HERE)
    args = parser.parse_args()
    if args.what == "judge":
        from judge import write

        write()
    elif args.what == "texts":
        write_texts(args.folder)
    elif args.what in ("pack", "unpack"):
        {"pack": pack, "unpack": unpack}[args.what](args.folder, args.target)
    else:
        each_model(args.what, args)


if __name__ == "__main__":
    sys.exit(main())
