"""How training scales: a slice of a run, processes on one machine, a store of many runs.

    python benchmarks/scaling.py slice [--preset NAME]... [--steps N] [--sequences N] [--device D]
    python benchmarks/scaling.py processes [--preset NAME] [--steps N]
    python benchmarks/scaling.py workers [--steps N]
    python benchmarks/scaling.py listing [--runs N]

`slice` trains a few steps of a preset and gives tokens a second, memory, utilisation and the time
that the whole run would take. Utilisation is the share of the rate of one large matrix product on
the same device in the same precision, and on GPUs that are known of the rate that their maker
states. On a CPU it runs float32 and as many sequences a step as asked for, and says so.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np
import torch
from harness import peak

from farfield.theory.encodings import encoding
from farfield.validation.harness.configuration import Configuration
from farfield.validation.harness.corpus import Corpus, corpus
from farfield.validation.harness.experiment import chosen_device, train_and_measure
from farfield.validation.harness.measures.cost import GPT2, flops_a_token, tokens
from farfield.validation.harness.parallel import rank, together, total
from farfield.validation.harness.plan import Job
from farfield.validation.harness.positional import initialised
from farfield.validation.harness.presets import Preset, preset
from farfield.validation.harness.store import Store
from farfield.validation.harness.sweep import Processes, sweep
from farfield.validation.harness.training import train
from farfield.validation.json_files import read_json, write_json

STATED = {"H200": 989e12, "H100": 989e12, "A100": 312e12}  # bfloat16, dense, by their maker
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone")


def text(vocabulary: int) -> np.ndarray:
    kind = np.uint8 if vocabulary <= 256 else np.uint16
    return np.random.default_rng(0).integers(0, vocabulary, 1_000_000).astype(kind)


def product_rate(device: torch.device, precision: str) -> float:
    """Operations a second of a large matrix product: the median of five."""
    n = 8192 if device.type == "cuda" else 1536
    a = torch.randn(n, n, device=device, dtype=getattr(torch, precision))
    seconds = []
    for _ in range(6):
        _wait(device)
        began = time.perf_counter()
        a @ a
        _wait(device)
        seconds.append(time.perf_counter() - began)
    return 2 * n**3 / median(seconds[1:])


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peak_memory(device: torch.device) -> str:
    if device.type == "cuda":
        return f"{torch.cuda.max_memory_allocated(device) / 2**30:.2f} GiB of the GPU"
    return f"{peak() / 2**20:.2f} GiB of the process"


def steps_of(shape: Preset, vocabulary: int, device: torch.device) -> tuple[list[float], float]:
    """Seconds of each step but the first three, which warm up, and their mean processor time."""
    times: list[float] = []
    used: list[float] = []
    model = initialised(encoding("kerple_log"), shape, 0, vocabulary).to(device)

    def progress(stage: str, done: int, total: int, note: str) -> None:
        times.append(time.perf_counter())
        used.append(time.process_time())

    train(model, text(vocabulary), shape, 0, progress)
    return np.diff(times)[2:].tolist(), (used[-1] - used[2]) / (len(used) - 3)


def sliced(
    whole: Preset, shape: Preset, vocabulary: int, device: torch.device
) -> dict[str, float | int | str]:
    """Numbers of some steps of a preset, in a shape that the device holds."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    seconds, _ = steps_of(shape, vocabulary, device)
    rate = shape.batch * shape.length / median(seconds)
    return {
        "steps": len(seconds),
        "tokens a second": rate,
        "memory": peak_memory(device),
        "operations a second": rate * flops_a_token(whole, vocabulary),
        "of a matrix product": product_rate(device, shape.precision),
        "hours of the whole run": tokens(whole) / rate / 3600,
    }


def measure_slice(name: str, steps: int, sequences: int | None, device: torch.device) -> None:
    whole, vocabulary = preset(name), GPT2 if name.startswith("paper:") else 256
    shape = dataclasses.replace(whole, steps=steps + 3)
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    if device.type == "cpu":
        few = sequences or max(1, 2048 // whole.length)
        shape = dataclasses.replace(shape, batch=few, parts=1, precision="float32")
        where += f", {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}"
    found = sliced(whole, shape, vocabulary, device)
    done, product = found["operations a second"], found["of a matrix product"]
    print(
        f"{name} on {where}, {shape.precision}, {shape.batch} x {shape.length} tokens a step, "
        f"vocabulary {vocabulary}: median of {found['steps']} steps [measured]"
    )
    print(f"  {found['tokens a second']:,.0f} tokens a second; {found['memory']}")
    print(
        f"  {done / 1e12:.3g} TFLOP/s, {done / product:.0%} of a large matrix product "
        f"({product / 1e12:.3g} TFLOP/s)"
    )
    for known, stated in STATED.items():
        if known in where and shape.precision == "bfloat16":
            print(f"  {done / stated:.0%} of the {stated / 1e12:.0f} TFLOP/s stated for {known}")
    print(
        f"  the whole run, {tokens(whole):,} tokens: {found['hours of the whole run']:,.1f} hours "
        "[approximate: from this slice]"
    )


def measure_processes(name: str, steps: int) -> None:
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
    one, one_used = fastest(found[1])
    for count, each in found.items():
        rate, used = fastest(each)
        print(
            f"  {count} processes: {rate:,.0f} tokens a second, x{rate / one:.2f}; processor "
            f"time a token x{used / one_used:.2f} (best of {len(each)})"
        )


def fastest(measured: list[tuple[float, float]]) -> tuple[float, float]:
    """The highest rate and the least processor time, which other work disturbs least."""
    return max(rate for rate, _ in measured), min(used for _, used in measured)


def divided(name: str, steps: int) -> None:
    """One of the processes of `processes`; the first prints tokens a second, seconds a token."""
    torch.set_num_threads(1)
    shape = dataclasses.replace(preset(name), steps=steps + 3, precision="float32")
    with together(torch.device("cpu")):
        first = rank() == 0
        seconds, used = steps_of(shape, 256, torch.device("cpu"))
        used = float(total(torch.tensor([used])))
    if first:
        print(shape.batch * shape.length / median(seconds), used / (shape.batch * shape.length))


@contextmanager
def made_up(seconds: int) -> Iterator[tuple[Corpus, Path]]:
    """A text of made-up words, and a folder, for a while."""
    with tempfile.TemporaryDirectory() as folder:
        words = random.Random(seconds).choices(["def ", "return ", "\n    ", "(x)"], k=40_000)
        path = Path(folder) / "words.txt"
        path.write_text("".join(words))
        yield corpus(path), Path(folder)


def measure_workers(steps: int) -> None:
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
    with made_up(0) as (source, folder):
        jobs = [
            Job(f"seed {s}", Configuration(encoding("type1"), source, shape, s)) for s in range(4)
        ]
        print(
            f"a plan of {len(jobs)} jobs of {steps} steps (2 layers of 64, 32 x 64 tokens), "
            f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}"
        )
        sweep(jobs[:1], Store(folder / "warm"), Processes(1))  # torch is loaded once
        for workers in (1, 2):
            began = time.perf_counter()
            swept = sweep(jobs, Store(folder / str(workers)), Processes(workers))
            assert swept.failed == 0
            found[workers] = time.perf_counter() - began
            print(f"  {workers} workers: {found[workers]:.1f} s, x{found[1] / found[workers]:.2f}")


def measure_listing(runs: int) -> None:
    """`farfield runs` on a store of copies of one run, each with its own seed and seal."""
    with made_up(0) as (source, folder):
        store = Store(folder / "runs")
        shape = dataclasses.replace(preset("tiny"), measurement=preset("small").measurement)
        result = train_and_measure(Configuration(encoding("type1"), source, shape), store)
        one = store.folder(result["key"])
        record = read_json(one / "training.json")
        (measurement,) = one.glob("measurement-*.json")
        content = measurement.read_bytes()
        for seed in range(1, runs):
            place = store.folder(f"{seed:016x}")
            place.mkdir()
            record["configuration"]["seed"] = seed
            write_json(place / "training.json", record)
            (place / measurement.name).write_bytes(content)
        size_of_json = len(content) + (one / "training.json").stat().st_size
        print(
            f"farfield runs on {runs:,} runs of {size_of_json / 1024:.0f} KiB of JSON each, load "
            f"average {os.getloadavg()[0]:.1f}"
        )
        before, began = os.times(), time.perf_counter()
        command = [sys.executable, "-m", "farfield.cli", "runs", "--runs", str(store.root)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        used = sum(os.times()[2:4]) - sum(before[2:4])
        assert done.stdout.startswith(f"{runs} runs: {runs} finished"), done.stdout[:200]
        print(f"  {time.perf_counter() - began:.2f} s, {used:.2f} s of processor time")


def main() -> None:
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the command line does
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = ("slice", "processes", "workers", "listing", "divided")
    parser.add_argument("part", choices=parts)
    parser.add_argument("--preset", action="append", dest="presets")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--sequences", type=int, help="a step, on a CPU; as many as 2048 tokens")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--runs", type=int, default=10_000)
    given = parser.parse_args()
    match given.part:
        case "slice":
            for name in given.presets or ("base", "paper:chi2023"):
                device = chosen_device(given.device)
                measure_slice(name, given.steps, given.sequences, device)
        case "processes":
            for name in given.presets or ("demo",):
                measure_processes(name, given.steps)
        case "divided":
            divided(given.presets[0], given.steps)
        case "workers":
            measure_workers(given.steps)
        case "listing":
            measure_listing(given.runs)


if __name__ == "__main__":
    main()
