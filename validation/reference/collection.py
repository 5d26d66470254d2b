"""Finished runs are taken from a store into the committed results, or compared with them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from farfield.theory.answers.answer import InputError
from farfield.validation.harness.corpus import Corpus, corpus
from farfield.validation.harness.plan import Job, read_plan
from farfield.validation.harness.store import Store, commit
from farfield.validation.harness.sweep import finished
from farfield.validation.json_files import read_json, write
from farfield.validation.reference.committed import HERE, Row, place, rounded
from farfield.validation.reference.known_cases import write_outcomes
from farfield.validation.reference.registration import FIRST, REGISTRATIONS

LONG = 100
TOLERANCE = 0.02
COMMAND = "make reference"
MORE = "more-targets.json"  # beside a run in its store; see `missing`
STARTED = "started.json"  # beside runs of the code before training itself said when it began


def condensed(
    result: Row, label: str, hashed: str | None, beside: Path | None = None
) -> dict[str, Any]:
    """A result as it is committed: rounded, without long formulas and the score curve a layer.

    Args:
        result: of a run.
        label: of its encoding in the plan.
        hashed: the hash of the predictions.
        beside: the run's folder in its store, for what is kept beside it.
    """
    more = {}
    if beside is not None and (beside / MORE).exists():
        more = {"started": _began(result, beside), "more_targets": read_json(beside / MORE)}
    encoding = result["encoding"]
    heads = [h if len(h) < LONG else h[:LONG] + "..." for h in encoding["heads"]]
    measurements = []
    for m in result["measurements"]:
        if "scores" in m:
            m = {**m, "scores": {k: v for k, v in m["scores"].items() if k != "layers"}}
        measurements.append(m)
    return rounded(
        {
            **result,
            "encoding": {**encoding, "heads": heads, "label": label},
            "measurements": measurements,
            "registered": hashed,
            "command": COMMAND,
            **more,
            **({"commit": made} if (made := commit()) else {}),
        }
    )


def _began(result: Row, beside: Path) -> Row:
    """When training began, at which commit, and the hash of what was said before it."""
    began: Row = result["training"].get("began", {})
    return read_json(beside / STARTED) if not began and (beside / STARTED).exists() else began


def write_result(path: Path, result: Row) -> None:
    """Write a result as it is committed."""
    text = json.dumps(result, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    write(path, (text + "\n").encode())


def differences(old: Row, new: Row, tolerance: float = TOLERANCE) -> Iterator[str]:
    """Lines for the perplexities of a new result that are not those of the old one."""
    if old["text"]["sha256"] != new["text"]["sha256"]:
        yield "another text"
    for before, after in zip(old["measurements"], new["measurements"], strict=False):
        for p, q in zip(before["perplexity"], after["perplexity"], strict=False):
            change = q["perplexity"] / p["perplexity"] - 1
            if abs(change) > tolerance:
                yield (
                    f"{before['inference']['label']}, {p['protocol']} at {p['length']}: "
                    f"{p['perplexity']:.4g} is now {q['perplexity']:.4g} ({change:+.1%})"
                )


def collect(folder: str | Path, *, replace: bool = False) -> list[str]:
    """Take the finished runs of a store into the committed results; returns what to report.

    A run that began with registered predictions is taken once `missing` has measured more targets.

    Raises:
        InputError: there is no such folder.
    """

    if not Path(folder).is_dir():
        raise InputError(f"runs folder {str(folder)!r} does not exist; `make reference` makes it")
    lines, count = [], 0
    for jobs, home, hashed in planned(corpus()):
        home.mkdir(exist_ok=True)
        for job in jobs:
            result = finished(job, Store(folder))
            beside = Store(folder).folder(job.key)
            if result is None:
                continue
            if _began(result, beside) and not (beside / MORE).exists():
                lines.append(f"{job.name}: left out, `missing` has yet to measure more targets")
                continue
            count += 1
            path = place(job, home)
            new = condensed(result, job.label, hashed, beside)
            if path.exists() and not replace:
                old = json.loads(path.read_text(encoding="utf-8"))
                lines += [f"{job.name}: {line}" for line in differences(old, new)]
                continue
            write_result(path, new)
            lines.append(f"{job.name}: new")
    write_outcomes()
    return [*lines, f"{count} finished runs of the plans"]


def planned(text: Corpus) -> Iterator[tuple[Sequence[Job], Path, str | None]]:
    """For each plan its jobs, the folder of their results, and the hash that they carry."""
    for registration in (FIRST, *REGISTRATIONS):
        yield registration.plan.jobs(text), registration.folder, registration.digest
    for path in sorted((HERE / "further").glob("*.toml")):
        yield read_plan(path).jobs(text), path.with_suffix(""), None
