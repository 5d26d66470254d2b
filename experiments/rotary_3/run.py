"""Read the registered rows under each setting.

    python experiments/rotary_3/run.py --model FILE.gguf --out measured.jsonl

The model is that of `experiments/rotary_2/run.py`, a Llama of its own. Its attention is as the
library's plain one in bfloat16: logits in bfloat16, their softmax in float32. A line is a row under
a setting. The command goes on where it was stopped.
"""

import argparse
import importlib.util
import json
import math
import time
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).parent
TRAINED, TO, TARGETS, QUERIES = 8192, 12288, 256, 128
TEXTS = ("git", "sympy")
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
FIRST = 3
"""Settings that all rows are read with before others are."""

spec = importlib.util.spec_from_file_location("before", HERE.parent / "rotary_2/run.py")
before = importlib.util.module_from_spec(spec)
spec.loader.exec_module(before)


class Model(before.Model):
    """As there, with an attention for one core."""

    def attention(self, q, k, v, setting):
        at, shared = torch.arange(q.shape[1]), self.heads // self.key_heads
        near = self.parts(self.turned(q, at), shared), self.turned(k, at)
        far, width = None, math.inf
        if "group" in setting:
            g, width = setting["group"]
            moved = self.turned(q, at // g + width - width // g)
            far = self.parts(moved, shared), self.turned(k, at // g)
        mixed = []
        for part in at.split(QUERIES):
            begin, end = int(part[0]), int(part[-1]) + 1
            low = max(0, begin - width + 1) if far else 0
            logits = products(*near, begin, end, low, end)
            if far and low:
                other = products(*far, begin, end, 0, end - width)
                distance = part[:, None] - torch.arange(low, end - width)
                both = logits[..., : end - width - low], other[..., low:]
                mixed_part = torch.where(distance >= width, both[1], both[0])
                logits = torch.cat(
                    [other[..., :low], mixed_part, logits[..., end - width - low :]], -1
                )
            hidden = part[:, None] < part
            logits[..., begin:].masked_fill_(hidden, -math.inf)
            weights = logits.softmax(-1).flatten(1, 2)
            mixed.append((weights @ v[:, :end]).unflatten(1, (shared, -1)).flatten(0, 1))
        return torch.cat(mixed, 1)

    def parts(self, q, shared):
        """Queries by the keys that they share, scaled: a power of two, so nothing is rounded."""
        return (q / math.sqrt(self.size)).unflatten(0, (-1, shared))


def products(q, k, begin, end, low, high):
    """Logits (key heads, shared, queries, keys) of some queries and keys."""
    some = q[:, :, begin:end]
    logits = some.flatten(1, 2) @ k[:, low:high].transpose(1, 2)
    return logits.unflatten(1, (q.shape[1], -1))


def registered():
    """By text: tokens of each row with its last target, and what is said of it."""
    said = json.loads((HERE / "rows.json").read_text())
    with np.load(HERE / "rows.npz") as kept:
        rows = {name: torch.from_numpy(kept[name].astype(np.int64)) for name in said}
    return {name: list(zip(rows[name], said[name], strict=True)) for name in said}


def jobs():
    """Rows under settings, in the order they are read."""
    names, rows = [*SETTINGS], range(6)
    parts = (names[:FIRST], names[FIRST:])
    return [(t, k, name) for some in parts for k in rows for t in TEXTS for name in some]


def main():
    """Read the rows that have no line yet."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", required=True)
    asked = parser.parse_args()
    out, before.TO = Path(asked.out), TO
    dynamic = before.TRAINED == TRAINED and before.TARGETS == TARGETS
    assert dynamic, "both scripts have one model"
    lines = out.read_text().splitlines() if out.exists() else []
    done = {tuple(json.loads(line)["job"]) for line in lines}
    model, texts = Model(asked.model, "cpu", torch.bfloat16), registered()
    for job in jobs():
        if job in done:
            continue
        begun = time.process_time()
        result = before.read(model, *texts[job[0]][job[1]], SETTINGS[job[2]])
        line = {"job": job, **result, "seconds": round(time.process_time() - begun, 1)}
        with out.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(job, line["loss"], sum(r for _, r in line["needles"]), line["seconds"], flush=True)


if __name__ == "__main__":
    main()
