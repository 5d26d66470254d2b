"""How training scales on one machine: one run on two processes, a plan with two workers.

    python benchmarks/scaling.py processes [--preset NAME] [--steps N]
    python benchmarks/scaling.py workers [--steps N]

Both give ratios to the same work on one, measured beside it.
"""

from __future__ import annotations

import dataclasses
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Literal

import numpy as np
import torch
from side_by_side import Row, fresh, program, timed

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

TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node")


def processes(name: str, steps: int) -> Iterator[Row]:
    """Tokens a second of one run divided among one and two processes of one thread each, the best
    of two: other work disturbs it least."""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    found: dict[int, list[list[float]]] = {1: [], 2: []}
    for count in (1, 2, 1, 2):
        found[count].append(fresh(divided, name, steps, by=(*TORCHRUN, str(count)), env=env))
    best = {count: np.min(each, axis=0) for count, each in found.items()}
    for count, (seconds, used) in best.items():
        yield {
            f"processes, preset {name}": str(count),
            "tokens a second": float(1 / seconds),
            "speed": float(best[1][0] / seconds),
            "processor time a token": float(used / best[1][1]),
        }


def divided(name: str, steps: int) -> list[float] | None:
    """One of the processes of `processes`; the first tells seconds and processor seconds a
    token, without the first three steps, which warm up."""
    torch.set_num_threads(1)
    shape = dataclasses.replace(preset(name), steps=steps + 3, precision="float32")
    text = np.random.default_rng(0).integers(0, 256, 1_000_000).astype(np.uint8)
    model, times = initialised(encoding("kerple_log"), shape, 0), []
    with together(torch.device("cpu")):
        watch = lambda *_: times.append((time.perf_counter(), time.process_time()))  # noqa: E731
        train(model, text, shape, 0, watch)
        each = np.diff(times, axis=0)[2:]
        spent = float(total(torch.tensor([each[:, 1].mean()])))
        first = rank() == 0
    tokens = shape.batch * shape.length
    return [median(each[:, 0].tolist()) / tokens, spent / tokens] if first else None


def workers(steps: int) -> Iterator[Row]:
    """One plan of four equal jobs by one worker and by two, on the same cores."""
    tiny = preset("tiny")
    measured = dataclasses.replace(tiny.measurement, lengths=(64,))
    sizes = {"layers": 2, "width": 64, "length": 64, "batch": 32, "steps": steps}
    shape = dataclasses.replace(tiny, **sizes, measurement=measured)
    words = random.Random(0).choices(["def ", "return ", "\n    ", "(x)"], k=40_000)
    seconds = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "words.txt").write_text("".join(words))
        made = [
            Configuration(encoding("type1"), corpus(folder / "words.txt"), shape, s)
            for s in range(4)
        ]
        jobs = [Job(f"seed {s}", configuration) for s, configuration in enumerate(made)]
        sweep(jobs[:1], Store(folder / "warm"), Processes(1))  # torch is loaded once
        for count in (1, 2):
            run = lambda c=count: sweep(jobs, Store(folder / str(c)), Processes(c))  # noqa: E731
            swept, seconds[count] = timed(run, time.perf_counter)
            assert all(job["state"] == "finished" for job in swept.runs)
            yield {
                f"workers, {len(jobs)} jobs of {steps} steps": str(count),
                "seconds": seconds[count],
                "speed": seconds[1] / seconds[count],
            }


def main(
    part: Literal["processes", "workers"], *, preset: str = "demo", steps: int = 10
) -> Iterator[Row]:
    """How training scales on one machine.

    Args:
        part: what is measured.
        preset: of the run that is divided.
        steps: of each run.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the command line does
    yield {"cores": str(os.cpu_count()), "load average": os.getloadavg()[0]}
    yield from workers(steps) if part == "workers" else processes(preset, steps)


if __name__ == "__main__":
    program(main)
