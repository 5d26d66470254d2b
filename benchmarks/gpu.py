"""What only a GPU measures, in nine minutes at most, with the harness's own trainer.

    python benchmarks/gpu.py [exactness] [speed] [base] [--out out/gpu] [--device cuda]

*exactness*: logits and gradients in bfloat16 beside the specification in float64, by encoding and
head size. *speed*: tokens a second and memory of a training step beside the same model without a
bias, by length. *base*: the preset of that name, trained and measured. A row that fails says so.
Each row says the largest shared memory, stages and spills of its kernels and the seconds of their
compilation. Rows go to OUT/rows.jsonl as they are measured, and the same command again measures
what is missing. `--device cpu` runs small shapes, which prove the program and nothing else.
"""

from __future__ import annotations

import gc
import itertools
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from side_by_side import Row, program

from farfield.validation.harness.bias import model_of
from farfield.validation.harness.data import Text
from farfield.validation.harness.runs import chosen_device, run
from farfield.validation.harness.settings import Run, settle
from farfield.validation.harness.train import Process, adamw, backward, batch, scorer

ENCODINGS = ("nope", "alibi", "-floor(n/3)", "kerple_log", "t5", "rope")
BUDGETS = {"exactness": 150, "speed": 180, "base": 210}  # seconds
NUMBERS = np.random.default_rng(0).integers(0, 250, 400_000).astype(np.uint8)
TEXT = Text("random bytes", NUMBERS, NUMBERS)
ALLOWED = 0.05  # of the largest logit, and of a gradient's norm: eight bits, through two layers


def kernels() -> Row:
    """What Triton says of the kernels that were compiled since `torch._dynamo.reset`."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    kept = [x for x in gc.get_objects() if isinstance(x, CachingAutotuner)]
    launchers = [each for x in kept for each in x.launchers if "_tem_" in x.fn.__name__]
    if not launchers:
        return {"shared": 0, "stages": 0, "spills": 0}
    return {
        "shared": max(x.shared for x in launchers),
        "stages": min(x.config.num_stages for x in launchers),
        "spills": max(x.n_spills for x in launchers),
    }


def exactness(device: torch.device, encoding: str, size: int) -> Row:
    """Largest errors of logits and of gradients, relative to the specification's."""
    gpu = device.type == "cuda"
    shape = {"layers": 2, "heads": 2, "width": 2 * size, "length": 512 if gpu else 64}
    asked = Run(encoding=encoding, precision="bfloat16" if gpu else "float32", **shape)
    fast, exact = model_of(asked).to(device), model_of(asked).double()
    tokens = torch.from_numpy(TEXT.batch(0, 0, 2, asked.length)[0])

    began = time.perf_counter()
    logits, wanted = scorer(fast, fast, asked)(tokens.to(device)), exact(tokens)
    for found in (logits, wanted):
        found.square().mean().backward()
    compiled, slopes = time.perf_counter() - began, 0.0
    for one, other in zip(fast.parameters(), exact.parameters(), strict=True):
        if other.grad is not None:
            size_of = other.grad.norm().clamp(min=1e-9)
            slopes = max(slopes, ((one.grad.double().cpu() - other.grad).norm() / size_of).item())
    error = ((logits.double().cpu() - wanted).abs().max() / wanted.abs().max()).item()
    faults = int(error > ALLOWED) + int(slopes > ALLOWED)
    return {"logits": error, "gradients": slopes, "compiled": compiled, "faults": faults}


def speed(device: torch.device, encoding: str, length: int) -> Row:
    """Tokens a second of a training step, and its memory."""
    gpu = device.type == "cuda"
    shape = {"layers": 8, "heads": 8, "width": 512} if gpu else {"layers": 1, "width": 64}
    precision = "bfloat16" if gpu else "float32"
    rows = max(1, (16_384 if gpu else 256) // length)
    asked = Run(encoding=encoding, length=length, batch=rows, precision=precision, **shape)
    model = model_of(asked).to(device).train()
    optimiser, scores = adamw(model, asked), scorer(model, model, asked)

    def step() -> None:
        parts, targets = batch(TEXT, asked, 0, Process(model), device)
        backward(scores, parts, targets, 1)
        optimiser.step()
        optimiser.zero_grad()
        model.project()

    def seconds(steps: int) -> float:
        began = time.perf_counter()
        for _ in range(steps):
            step()
        if gpu:
            torch.cuda.synchronize()
        return time.perf_counter() - began

    compiled = seconds(1)
    steps = 10 if gpu else 1
    mib = torch.cuda.max_memory_allocated() / 2**20 if gpu else 0.0
    return {"tokens/s": steps * rows * length / seconds(steps), "MiB": mib, "compiled": compiled}


def base(device: torch.device, out: Path) -> Row:
    """The last losses of preset `base`, and what its perplexity does at 16 times its length."""
    name = "base" if device.type == "cuda" else "tiny"
    rows = run(settle(name, {"encoding": "alibi"}), out / "runs", device=device.type)
    trained = [r["nats"] for r in rows if r["protocol"] == "training"]
    last = [r for r in rows if r["protocol"] == "last token"][-1]
    return {"loss": trained[-1], "length": last["length"], "ratio": last["ratio"]}


def main(
    *parts: Literal["exactness", "speed", "base"], out: Path = Path("out/gpu"), device: str = "cuda"
) -> Iterator[Row]:
    """Measure some parts, all where none is named."""
    place = chosen_device(device)
    gpu = place.type == "cuda"  # a processor compiles nothing
    lengths, sizes = ((512, 2048, 8192), (16, 64, 128)) if gpu else ((32,), (16,))
    cells: dict[str, Callable[[], Row]] = {"base": partial(base, place, out)}
    for part, measure, numbers in (("exactness", exactness, sizes), ("speed", speed, lengths)):
        for number, encoding in itertools.product(numbers, ENCODINGS):
            cells[f"{part}, {encoding}, {number}"] = partial(measure, place, encoding, number)
    out.mkdir(parents=True, exist_ok=True)
    file = out / "rows.jsonl"
    told = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    done = {row["row"]: row for row in told if "failed" not in row}
    for part in parts or BUDGETS:
        until = time.monotonic() + BUDGETS[part]
        for name in [name for name in cells if name.startswith(part)]:
            if name not in done and time.monotonic() < until:
                if gpu:
                    torch._dynamo.reset()
                    gc.collect()
                try:
                    row = {"row": name, **cells[name](), **(kernels() if gpu else {})}
                except Exception as error:  # whatever a compiler or a device says
                    row = {"row": name, "failed": str(error).splitlines()[0][:100], "faults": 1}
                done[name] = row
                with open(file, "a") as kept:
                    kept.write(json.dumps(row) + "\n")
            yield done.get(name, {"row": name, "failed": "not measured: its time was over"})


if __name__ == "__main__":
    program(main, faults="faults")
