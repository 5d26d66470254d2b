"""What only a GPU measures, in six minutes at most, with the harness's own trainer.

    python benchmarks/gpu.py [exactness] [speed] [base] [--out out/gpu] [--device cuda]

*exactness*: logits and gradients in bfloat16 beside the specification in float64, by mechanism and
head size. *speed*: tokens a second and memory of a training step by length; the table gives the
same model without a bias as well. *base*: the preset of that name, as many steps as fit, trained
and measured.

Each row is a process of its own, several at a time, since a compilation keeps one core busy; steps
are timed by one process at a time. So a row that fails, hangs or breaks its device says so, and the
others go on. A row has the largest shared memory, the fewest stages and the spills of its kernels
of attention, and the seconds of compilation. Rows go to OUT/rows.jsonl as they are measured, and
the same command again measures what is missing. `--device cpu` runs small shapes, which prove the
program and nothing else.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from side_by_side import Row, program

from farfield.validation.harness.data import Text
from farfield.validation.harness.runs import chosen_device, model_of, run
from farfield.validation.harness.settings import Run, settle
from farfield.validation.harness.train import Process, adamw, backward, batch, scorer

GALLERY = Path(__file__).resolve().parents[1] / "docs" / "gallery"
SCALED = [{"mechanism": "0", "scale": {"form": "1 + a log", "heads": [2]}}, "alibi"]
MIXED = [{"mechanism": "rope", "bias": "-n/4"}, {"mechanism": "0", "window": 48, "sinks": True}]
MECHANISMS: dict[str, Any] = {
    "alibi": "alibi",
    "table": "-floor(n/3)",
    "kerple_log": "kerple_log",
    "fire": f"{GALLERY}/fire.py:Fire",
    "forget gate": f"{GALLERY}/forget_gate.py:ForgetGate",
    "scale": {"label": "scale", "layers": SCALED},
    "rope and bias, window, sinks": {"label": "mixed", "layers": MIXED},
    "t5": "t5",
    "rope": "rope",
    "nope": "nope",
}
EXACT = {
    64: (*MECHANISMS,),
    128: (*MECHANISMS,),
    16: ("alibi", "table", "kerple_log", "fire", "scale"),
}
TIMED = {
    2048: ("nope", "alibi", "kerple_log", "fire", "t5", "forget gate", "table", "rope"),
    512: ("nope", "alibi", "kerple_log", "fire", "forget gate"),
    8192: ("nope", "alibi", "kerple_log", "t5", "fire", "forget gate"),
}
BASE = 150  # seconds that are kept for the preset
TRAINING = 30  # of which its steps take so many
NUMBERS = np.random.default_rng(0).integers(0, 250, 400_000).astype(np.uint8)
TEXT = Text("random bytes", NUMBERS, NUMBERS)
SHORT = 100  # tokens of a row below the 128 from which one kernel serves all
FLOOR = 1e-3  # of the largest gradient: a smaller one is compared with this
ALLOWED = 0.05  # of the largest logit, and of a gradient's norm: eight bits, through two layers


def kernels() -> Row:
    """What Triton says of the kernels of attention that this process compiled."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    kept = [x for x in gc.get_objects() if type(x) is CachingAutotuner]  # no weak proxies
    launchers = [y for x in kept if "_tem_" in x.fn.__name__ for y in x.launchers]
    if not launchers:
        return {"shared": 0, "stages": 0, "spills": 0}
    return {
        "shared": max(x.shared for x in launchers),
        "stages": min(x.config.num_stages for x in launchers),
        "spills": max(x.n_spills or 0 for x in launchers),
    }


def exactness(device: torch.device, name: str, size: int) -> Row:
    """Largest errors of logits, of gradients, and of a short row without gradients."""
    gpu = device.type == "cuda"
    shape = {"layers": 2, "heads": 2, "width": 2 * size, "length": 512 if gpu else 64}
    precision = "bfloat16" if gpu else "float32"
    asked = Run(encoding=MECHANISMS[name], precision=precision, **shape)
    fast, exact = model_of(asked).to(device), model_of(asked).double()
    tokens = torch.from_numpy(TEXT.batch(0, 0, 2, asked.length)[0])

    began = time.perf_counter()
    scores = scorer(fast, fast, asked)
    logits, wanted = scores(tokens.to(device)), exact(tokens)
    for found in (logits, wanted):
        found.square().mean().backward()
    if gpu:
        torch.cuda.synchronize()
    compiled, slopes, worst = time.perf_counter() - began, 0.0, ""
    norms = [0.0 if p.grad is None else p.grad.norm().item() for p in exact.parameters()]
    pairs = zip(fast.named_parameters(), exact.parameters(), norms, strict=True)
    for (which, one), other, norm in pairs:
        if other.grad is not None:  # that of a constant bias is 0, and its rounding is not
            apart = (one.grad.double().cpu() - other.grad).norm().item()
            slopes, worst = max((slopes, worst), (apart / max(norm, FLOOR * max(norms)), which))
    few = tokens[:, : SHORT if gpu else 16]
    with torch.no_grad():  # torch has another kernel for few queries
        short = apart_by(scores(few.to(device)), exact(few))
    error = apart_by(logits, wanted)
    faults = sum(not found <= ALLOWED for found in (error, slopes, short))
    return {
        "logits": error,
        "gradients": slopes,
        "short": short,
        "of": worst,
        "compiled": compiled,
        "faults": faults,
    }


def apart_by(logits: torch.Tensor, wanted: torch.Tensor) -> float:
    """The largest error, relative to the largest of the specification's logits."""
    return ((logits.detach().double().cpu() - wanted).abs().max() / wanted.abs().max()).item()


def speed(device: torch.device, name: str, length: int, lock: Path) -> Row:
    """Tokens a second of a training step, by the median of ten, and its memory."""
    gpu = device.type == "cuda"
    shape = {"layers": 4, "heads": 8, "width": 512} if gpu else {"layers": 1, "width": 64}
    precision, rows = ("bfloat16", 16_384 // length) if gpu else ("float32", 256 // length)
    encoding = MECHANISMS[name]
    asked = Run(encoding=encoding, length=length, batch=rows, precision=precision, **shape)
    model = model_of(asked).to(device).train()
    optimiser, scores = adamw(model, asked), scorer(model, model, asked)

    def seconds() -> float:
        began = time.perf_counter()
        parts, targets = batch(TEXT, asked, 0, Process(model), device)
        backward(scores, parts, targets, 1)
        optimiser.step()
        optimiser.zero_grad()
        model.project()
        if gpu:
            torch.cuda.synchronize()
        return time.perf_counter() - began

    compiled = seconds()
    with open(lock, "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # no other process times its steps meanwhile
        taken = [seconds() for _ in range(13 if gpu else 2)][-10:]
    mib = torch.cuda.max_memory_allocated() / 2**20 if gpu else 0.0
    return {"tokens/s": rows * length / statistics.median(taken), "MiB": mib, "compiled": compiled}


def base(device: torch.device, out: Path, steps: int) -> Row:
    """The last losses of preset `base`, and what its perplexity does at 16 times its length."""
    gpu = device.type == "cuda"
    name, precision = ("base", "bfloat16") if gpu else ("tiny", "float32")
    asked = settle(name, {"encoding": "alibi", "measure": {"precision": precision}})
    asked = asked.but(steps=min(steps, asked.steps))
    rows = run(asked, out / "runs", device=device.type)
    trained = [r for r in rows if r["protocol"] == "training"]
    last = [r for r in rows if r["protocol"] == "last token"][-1]
    row = {"steps": asked.steps, "loss": trained[-1]["nats"], "seconds": last["seconds"]}
    return {**row, "length": last["length"], "ratio": last["ratio"]}


def steps_of_base(done: dict[str, Row]) -> int:
    """As many as take `TRAINING` seconds, by the speed of half of its layers."""
    speed = done.get("speed: alibi, 512", {}).get("tokens/s", 500_000.0)
    return max(100, int(TRAINING * speed / 2 / 16_384) // 100 * 100)


def measured(name: str, device: str, out: Path, steps: int) -> Row:
    """The row of this name."""
    part, _, rest = name.partition(": ")
    mechanism, _, number = rest.rpartition(", ")
    place = chosen_device(device)
    out.mkdir(parents=True, exist_ok=True)
    if part == "exactness":
        row = exactness(place, mechanism, int(number))
    elif part == "speed":
        row = speed(place, mechanism, int(number), out / "lock")
    else:
        row = base(place, out, steps)
    return {"row": name, **row, **(kernels() if place.type == "cuda" else {})}


def alone(name: str, device: str, out: Path, steps: int, limit: float) -> Row:
    """The same by a process of its own, within this many seconds."""
    command = [sys.executable, __file__, "--row", name, "--device", device, "--out", str(out)]
    command += ["--steps", str(steps)]
    env = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "2", "OMP_NUM_THREADS": "2"}
    if limit < 5:
        return {"row": name, "failed": "not measured: the time was over"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=limit)
        row: Row = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"row": name, "failed": f"not finished in {limit:.0f} seconds", "faults": 1}
    except (IndexError, ValueError):  # the process was killed, or its device broke
        with open(out / "errors.log", "a") as log:
            log.write(f"{name}\n{done.stderr}\n")
        said = [x for x in done.stderr.splitlines() if "Error" in x] or [f"exit {done.returncode}"]
        return {"row": name, "failed": said[-1][:200], "faults": 1}
    return row


def main(
    *parts: Literal["exactness", "speed", "base"],
    out: Path = Path("out/gpu"),
    device: str = "cuda",
    minutes: float = 6.0,
    workers: int | None = None,
    row: str | None = None,
    steps: int = 100,
) -> Iterator[Row]:
    """Measure some parts, all where none is named.

    Args:
        parts: exactness, speed, base.
        out: the folder of the rows.
        device: cuda or cpu.
        minutes: the time for all.
        workers: rows at a time; half of the cores if not given.
        row: the only row, measured by this process and not kept.
        steps: at most, of the preset in this row.
    """
    if row is not None:
        print(json.dumps(measured(row, device, out, steps)), flush=True)
        os._exit(0)  # what is left of compilers is not waited for
    gpu = chosen_device(device).type == "cuda"
    exact, timed = (EXACT, TIMED) if gpu else ({16: EXACT[16]}, {32: TIMED[512]})
    cells = [f"exactness: {name}, {size}" for size, names in exact.items() for name in names]
    cells += [f"speed: {name}, {length}" for length, names in timed.items() for name in names]
    cells = [name for name in [*cells, "base"] if not parts or name.partition(":")[0] in parts]
    out.mkdir(parents=True, exist_ok=True)
    file = out / "rows.jsonl"
    kept = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    done = {one["row"]: one for one in kept if "failed" not in one}
    yield from (done[name] for name in cells if name in done)
    missing = [name for name in cells if name not in done]
    until = time.monotonic() + 60 * minutes

    def attempt(name: str) -> Row:
        left = until - time.monotonic() - BASE * ("base" in missing and name != "base")
        return alone(name, device, out, steps_of_base(done), left)

    for last in (False, True):  # nothing else runs beside the preset
        with ThreadPoolExecutor(workers or max(1, (os.cpu_count() or 2) // 2)) as pool:
            group = [name for name in missing if (name == "base") == last]
            for future in as_completed([pool.submit(attempt, name) for name in group]):
                one = done[future.result()["row"]] = future.result()
                with open(file, "a") as rows:
                    rows.write(json.dumps(one) + "\n")
                yield one


if __name__ == "__main__":
    program(main, faults="faults")
