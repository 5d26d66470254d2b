"""Committed runs made once more: are weights, losses and measurements the same, to the last bit?

    python benchmarks/again.py FILE... --runs FOLDER

A file is a committed result, such as `validation/reference/alibi-64-0.json`. The same command with
the Python of an older checkout says what its code makes of the run: equal digests of what was
measured are equal numbers, before they are rounded for the committed file. Memory is the peak of
the process, which is a fresh one for each run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from side_by_side import Row, fresh, peak, program

WHERE = ("seconds", "cpu_seconds", "environment")


def again(file: str, runs: str) -> Row:
    """A committed run and the same run made here, compared."""
    import torch

    from farfield.validation.harness.experiment import train_and_measure
    from farfield.validation.harness.store import Store
    from farfield.validation.reference.collection import corpus, planned
    from farfield.validation.reference.committed import rounded

    torch.set_num_threads(1)
    committed = json.loads(Path(file).read_text(encoding="utf-8"))
    asked = [m["settings"] for m in committed["measurements"]]
    configuration = next(  # of the registrations that train this run, the one that measures so
        one
        for jobs, _, _ in planned(corpus())
        for one in (job.configuration for job in jobs if job.key == committed["key"])
        if [one.measured(visible) for visible in one.variants] == asked
    )
    found = train_and_measure(configuration, Store(runs), device="cpu")
    before, after = committed["training"], found["training"]
    measured = [{k: v for k, v in m.items() if k not in WHERE} for m in found["measurements"]]
    both = (
        (p["perplexity"], q["perplexity"])
        for m, n in zip(committed["measurements"], measured, strict=True)
        for p, q in zip(m["perplexity"], n["perplexity"], strict=True)
    )
    return {
        "run": Path(file).stem,
        "same weights": before["weights_sha256"] == after["weights_sha256"],
        "same losses": before["losses"] == rounded(after["losses"]),
        "perplexities within": max(abs(q / p - 1) for p, q in both),
        "digest": hashlib.sha256(json.dumps(measured, sort_keys=True).encode()).hexdigest()[:16],
        "cpu s": after["cpu_seconds"] + sum(m["cpu_seconds"] for m in found["measurements"]),
        "peak MiB": peak() // 1024,
    }


def main(*files: Path, runs: str) -> Iterator[Row]:
    """Committed runs made once more.

    Args:
        files: committed results.
        runs: folder of the new runs.
    """
    for file in files:
        yield fresh(again, str(file), runs)


if __name__ == "__main__":
    program(main)
