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
import subprocess
import sys
from pathlib import Path

import cyclopts
import torch
from side_by_side import peak

from farfield.validation.harness.experiment import train_and_measure
from farfield.validation.harness.store import Store
from farfield.validation.reference.collection import corpus, planned
from farfield.validation.reference.committed import rounded

WHERE = ("seconds", "cpu_seconds", "environment")


def again(path: Path, runs: str) -> None:
    committed = json.loads(path.read_text(encoding="utf-8"))
    jobs = {job.key: job for jobs, _, _ in planned(corpus()) for job in jobs}
    found = train_and_measure(jobs[committed["key"]].configuration, Store(runs), device="cpu")
    before, after = committed["training"], found["training"]
    measured = [{k: v for k, v in m.items() if k not in WHERE} for m in found["measurements"]]
    digest = hashlib.sha256(json.dumps(measured, sort_keys=True).encode()).hexdigest()[:16]
    same = {
        "weights": before["weights_sha256"] == after["weights_sha256"],
        "losses": before["losses"] == rounded(after["losses"]),
    }
    said = ", ".join(f"{what} {'the same' if is_so else 'DIFFER'}" for what, is_so in same.items())
    both = (
        (p["perplexity"], q["perplexity"])
        for m, n in zip(committed["measurements"], measured, strict=True)
        for p, q in zip(m["perplexity"], n["perplexity"], strict=True)
    )
    apart = max(abs(q / p - 1) for p, q in both)
    spent = after["cpu_seconds"] + sum(m["cpu_seconds"] for m in found["measurements"])
    print(
        f"{path.stem}: {said}, perplexities within {apart:.0e}; measured {digest}, "
        f"{spent:.0f} s of processor time, peak {peak() // 1024} MiB",
        flush=True,
    )


def main(*files: Path, runs: str) -> None:
    """Committed runs made once more.

    Args:
        files: committed results.
        runs: folder of the new runs.
    """
    for path in files if len(files) > 1 else ():
        subprocess.run([sys.executable, __file__, path, "--runs", runs], check=True)
    if len(files) == 1:
        torch.set_num_threads(1)
        again(files[0], runs)


if __name__ == "__main__":
    cyclopts.run(main)
