"""Read the registered rows under each setting.

    python experiments/rotary_5/run.py --model FILE.gguf --out measured.jsonl [--device cuda]

The model and the reading are those of `experiments/rotary_2/run.py`, which needs torch and NumPy.
The rows are beside this file. All settings of a row are read in turn, so that what is read before
the end is paired. The command goes on where it was stopped.
"""

import argparse
import importlib.util
import json
import time
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).parent
TRAINED, TO, ROWS = 8192, 12288, 18
TEXTS = ("syscalls", "networkx")
SETTINGS = {
    "text cut to 8192": {"cut": TRAINED},
    "Self-Extend, groups of 2 from 2048": {"group": (2, 2048)},
    "YaRN 1.5": {"rope": "yarn", "factor": 1.5},
    "dynamic NTK 1.5": {"rope": "dynamic", "factor": 1.5},
    "Llama 3 1.5": {"rope": "llama3", "factor": 1.5},
    "NTK-aware 1.5": {"rope": "base", "factor": 1.5},
    "none": {},
}
"""By name, as in `farfield mend`, in the order of reading."""

spec = importlib.util.spec_from_file_location("before", HERE.parent / "rotary_2/run.py")
before = importlib.util.module_from_spec(spec)
spec.loader.exec_module(before)


def registered():
    """By text: tokens of each row with its last target, and what is said of it."""
    said = json.loads((HERE / "rows.json").read_text())
    with np.load(HERE / "rows.npz") as kept:
        rows = {name: torch.from_numpy(kept[name].astype(np.int64)) for name in said}
    return {name: list(zip(rows[name], said[name], strict=True)) for name in said}


def main():
    """Read the rows that have no line yet."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    assert before.TRAINED == TRAINED
    out, before.TO, texts = Path(asked.out), TO, registered()
    lines = out.read_text().splitlines() if out.exists() else []
    done = {tuple(json.loads(line)["job"]) for line in lines}
    model = before.Model(asked.model, asked.device, torch.bfloat16)
    for job in [(t, k, name) for k in range(ROWS) for t in TEXTS for name in SETTINGS]:
        if job in done:
            continue
        begun = time.monotonic()
        result = before.read(model, *texts[job[0]][job[1]], SETTINGS[job[2]])
        line = {"job": job, **result, "seconds": round(time.monotonic() - begun, 2)}
        with out.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(job, line["loss"], sum(r for _, r in line["needles"]), line["seconds"], flush=True)


if __name__ == "__main__":
    main()
