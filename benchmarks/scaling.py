"""How training scales on one machine: one run on two processes, a plan with two workers.

    python benchmarks/scaling.py processes [--preset NAME] [--steps N]
    python benchmarks/scaling.py workers [--steps N]

Both give ratios to the same work on one, measured beside it.
"""

from __future__ import annotations

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

from farfield.validation.harness.data import Text
from farfield.validation.harness.runs import local, model_of, sweep
from farfield.validation.harness.settings import Run, settle
from farfield.validation.harness.train import train
from farfield.validation.progress import silent

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
            "processor time a token": float(count * used / best[1][1]),
        }


def divided(name: str, steps: int) -> list[float] | None:
    """One of the processes of `processes`; the first tells seconds and its processor seconds a
    token, without the first three steps, which warm up."""
    torch.set_num_threads(1)
    asked = settle(name, {"encoding": "kerple_log", "steps": steps + 3, "precision": "float32"})
    numbers = np.random.default_rng(0).integers(0, 256, 1_000_000).astype(np.uint8)
    times: list[tuple[float, float]] = []
    watch = lambda *_: times.append((time.perf_counter(), time.process_time()))  # noqa: E731
    train(model_of(asked), Text("random bytes", numbers, numbers), asked, progress=watch)
    each, tokens = np.diff(times, axis=0)[2:], asked.batch * asked.length
    if os.environ["RANK"] != "0":
        return None
    return [median(each[:, 0].tolist()) / tokens, each[:, 1].mean() / tokens]


def workers(steps: int) -> Iterator[Row]:
    """One plan of four equal runs by one worker and by two, on the same cores."""
    sizes = {"layers": 2, "width": 64, "length": 64, "batch": 32, "steps": steps}
    words = random.Random(0).choices(["def ", "return ", "\n    ", "(x)"], k=40_000)
    seconds = {}
    with tempfile.TemporaryDirectory() as place:
        text = Path(place, "words.txt")
        text.write_text("".join(words))
        said = {"encoding": "type1", "text": str(text), "measure": {"lengths": [64]}, **sizes}
        runs = [settle("tiny", {**said, "seed": seed}) for seed in range(4)]

        def swept(runs: list[Run], count: int, folder: str) -> int:
            where = str(Path(place, folder))
            done = local(runs, where, device="cpu", workers=count, progress=silent)
            return len(sweep(done, len(runs)).finished)

        swept(runs[:1], 1, "warm")  # torch is loaded once
        for count in (1, 2):
            go = lambda c=count: swept(runs, c, str(c))  # noqa: E731
            finished, seconds[count] = timed(go, time.perf_counter)
            assert finished == len(runs)
            yield {
                f"workers, {len(runs)} runs of {steps} steps": str(count),
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
