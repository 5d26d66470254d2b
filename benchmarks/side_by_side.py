"""The runner of the benchmarks: candidates in turn in one process, memory in fresh ones.

Ratios of medians of processor time are what other work on the machine disturbs least.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


def in_turn(
    candidates: dict[str, Callable[[], object]],
    repeats: int,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Median seconds of each candidate, all run in turn; the first round is dropped."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(repeats + 1):
        for name, candidate in candidates.items():
            began = clock()
            candidate()
            seconds[name].append(clock() - began)
    return {name: statistics.median(each[1:]) for name, each in seconds.items()}


def fresh(*asked: object) -> float:
    """What `--measure` of the program prints in a fresh process, asked for so much."""
    command = [sys.executable, sys.argv[0], "--measure", json.dumps(asked)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def peak() -> int:
    """The most KiB this process has held; not `ru_maxrss`, which begins at the parent's."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if "VmHWM" in line).split()[1])
