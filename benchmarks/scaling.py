"""How training scales on one machine: one run on two processes, a plan with two workers.

    python benchmarks/scaling.py processes [--preset NAME] [--steps N]
    python benchmarks/scaling.py workers [--steps N]

Both give ratios to the same work on one, measured beside it.
"""

from __future__ import annotations

import dataclasses
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Literal

import cyclopts
import numpy as np
import torch

from farfield.theory.encodings import encoding
from farfield.validation.harness.configuration import Configuration
from farfield.validation.harness.corpus import corpus
from farfield.validation.harness.parallel import rank, together, total
from farfield.validation.harness.plan import Job
from farfield.validation.harness.positional import initialised
from farfield.validation.harness.presets import preset
from farfield.validation.harness.store import Store
from farfield.validation.harness.sweep import Processes, sweep
from farfield.validation.harness.training import train

TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone")


def processes(name: str, steps: int) -> None:
    """Tokens a second of one run divided among one and two processes of one thread each."""
    print(f"data-parallel training, preset {name}, load average {os.getloadavg()[0]:.1f}")
    found: dict[int, list[tuple[float, float]]] = {}
    for count in (1, 2, 1, 2):
        command = [*TORCHRUN, "--nproc-per-node", str(count), __file__, "divided", "--preset", name]
        command += ["--steps", str(steps)]
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        if done.returncode:
            sys.exit(done.stderr)
        rate, used = map(float, done.stdout.split()[-2:])
        found.setdefault(count, []).append((rate, used))
    best = {}  # the highest rate and the least processor time: other work disturbs them least
    for count, each in found.items():
        best[count] = max(rate for rate, _ in each), min(used for _, used in each)
    one, one_used = best[1]
    for count, (rate, used) in best.items():
        print(
            f"  {count} processes: {rate:,.0f} tokens a second, x{rate / one:.2f}; processor "
            f"time a token x{used / one_used:.2f} (best of 2)"
        )


def divided(name: str, steps: int) -> None:
    """One of the processes of `processes`; the first prints tokens a second, seconds a token."""
    torch.set_num_threads(1)
    shape = dataclasses.replace(preset(name), steps=steps + 3, precision="float32")
    text = np.random.default_rng(0).integers(0, 256, 1_000_000).astype(np.uint8)
    model, times, used = initialised(encoding("kerple_log"), shape, 0), [], []

    def progress(*_: object) -> None:
        times.append(time.perf_counter())
        used.append(time.process_time())

    with together(torch.device("cpu")):
        train(model, text, shape, 0, progress)
        first, spent = rank() == 0, (used[-1] - used[2]) / (len(used) - 3)
        spent = float(total(torch.tensor([spent])))
    if first:  # the first three steps warm up
        tokens = shape.batch * shape.length
        print(tokens / median(np.diff(times)[2:].tolist()), spent / tokens)


def workers(steps: int) -> None:
    """One plan of four equal jobs by one worker and by two, on the same cores."""
    shape = dataclasses.replace(
        preset("tiny"),
        layers=2,
        width=64,
        length=64,
        batch=32,
        steps=steps,
        measurement=dataclasses.replace(preset("tiny").measurement, lengths=(64,)),
    )
    found = {}
    words = random.Random(0).choices(["def ", "return ", "\n    ", "(x)"], k=40_000)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "words.txt").write_text("".join(words))
        source = corpus(folder / "words.txt")
        jobs = [
            Job(f"seed {s}", Configuration(encoding("type1"), source, shape, s)) for s in range(4)
        ]
        print(
            f"a plan of {len(jobs)} jobs of {steps} steps (2 layers of 64, 32 x 64 tokens), "
            f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}"
        )
        sweep(jobs[:1], Store(folder / "warm"), Processes(1))  # torch is loaded once
        for count in (1, 2):
            began = time.perf_counter()
            swept = sweep(jobs, Store(folder / str(count)), Processes(count))
            assert swept.failed == 0
            found[count] = time.perf_counter() - began
            print(f"  {count} workers: {found[count]:.1f} s, x{found[1] / found[count]:.2f}")


def main(
    part: Literal["processes", "workers", "divided"], *, preset: str = "demo", steps: int = 10
) -> None:
    """How training scales on one machine.

    Args:
        part: what is measured; `divided` is one of the processes of `processes`.
        preset: of the run that is divided.
        steps: of each run.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the command line does
    if part == "workers":
        workers(steps)
    else:
        {"processes": processes, "divided": divided}[part](preset, steps)


if __name__ == "__main__":
    cyclopts.run(main)
