"""Reference results: a plan, what the theory predicted before the first run, and what came out.

    plan.toml           the runs
    predictions.json    the predictions for every encoding, with the SHA-256 of plan.toml
    <run>.json          one finished run, with the SHA-256 of predictions.json
    further/            more plans and their runs, which no prediction is about
    <name>/             further registrations: every rule's forecast of every case
                        (`farfield.validation.reference.registration`)

    python -m farfield.validation.reference register NAME     writes the predictions of one
    python -m farfield.validation.reference collect FOLDER    takes finished runs into this folder
    python -m farfield.validation.reference missing FOLDER    makes the runs that are not here yet
    python -m farfield.validation.reference answers           what they say

A result that is here already is never replaced silently: one that differs is shown, by how much.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from farfield.theory.encodings import Encoding, encoding
from farfield.theory.results import InputError
from farfield.validation.configuration import preset
from farfield.validation.corpus import Corpus
from farfield.validation.plan import ROTATED, Job, Plan, Subject, read_plan, resized
from farfield.validation.reference.registration import Registration, rounded, sha256

HERE = Path(__file__).resolve().parent
EPS = ("1/10", "1/20", "1/100", "1/1000")
MIXING = "2/5"
LONG = 100
TOLERANCE = 0.02
COMMAND = "make reference"

Row = Mapping[str, Any]
REGISTRATIONS = (Registration(HERE / "heads_and_shapes"),)


def plan() -> Plan:
    """The plan of the reference runs."""
    return read_plan(HERE / "plan.toml")


@lru_cache
def predictions() -> Mapping[str, Any]:
    """The registered predictions; `encodings` has one entry a label, training length and mask."""
    found: dict[str, Any] = json.loads((HERE / "predictions.json").read_text(encoding="utf-8"))
    return found


def registered() -> str:
    """The SHA-256 of the file with the predictions, which every result carries."""
    return sha256(HERE / "predictions.json")


def results() -> tuple[Row, ...]:
    """The committed results, in the order of their names."""
    return tuple(json.loads(path.read_text(encoding="utf-8")) for path in _paths())


def _paths() -> list[Path]:
    return sorted(p for p in HERE.glob("*.json") if p.name != "predictions.json")


def place(job: Job, folder: Path = HERE) -> Path:
    """The file of a job's committed result, whether it is there or not."""
    return folder / (re.sub(r"[^a-z0-9]+", "-", job.name.lower()).strip("-") + ".json")


# -- predictions ----------------------------------------------------------------------------------


def predict() -> dict[str, Any]:
    """What the theory says of every encoding of the plan, before any training.

    The extrapolation forecast ranks the encodings by `beyond`, the share of the layered mass that
    lies outside the training length in the longest test row: more is worse. Learned biases are
    predicted at the middle of their initial range; encodings without an additive bias as if they
    had none, and with blockwise causal attention as a window of the training length, which is the
    widest that it lets a query see.
    """
    entries: list[dict[str, Any]] = []
    for sweep in plan().sweeps:
        for name in sweep.presets:
            for length in sweep.lengths:
                chosen = resized(preset(name), length)
                tested = [length * m for m in sweep.multiples]
                far = [length * sweep.far] if sweep.far else []
                for subject in sweep.encodings:
                    found = subject.encoding(chosen.heads)
                    masks = (False, True) if found.mechanism in ROTATED else (False,)
                    for bca in masks:
                        key = (subject.label, length, bca)
                        if not any((e["label"], e["length"], e["bca"]) == key for e in entries):
                            entries.append(
                                _prediction(subject, found, length, tested, far, chosen.layers, bca)
                            )
    for length in sorted({e["length"] for e in entries}):
        group = [e for e in entries if e["length"] == length]
        for e in group:
            e["rank"] = 1 + sum(f["layered"]["beyond"] < e["layered"]["beyond"] for f in group)
    return rounded(
        {"plan_sha256": sha256(HERE / "plan.toml"), "mixing": MIXING, "encodings": entries}
    )


def _prediction(
    subject: Subject, found: Encoding, length: int, tested: list[int], far: list[int],
    layers: int, bca: bool,
) -> dict[str, Any]:  # fmt: skip
    from farfield.numerics.depth import layered_mass, layered_receptive_field
    from farfield.numerics.leak import leak
    from farfield.numerics.receptive_field import theoretical_receptive_field
    from farfield.theory.convergence import check_convergence

    assumed, basis = stand_in(found, length, bca)
    verdict = check_convergence(found)
    heads = [str(h.verdict) for h in verdict.heads] or [str(verdict.verdict)]
    row, longest = 512, max(tested)

    def fields(row: int | None) -> dict[str, Any]:
        several = theoretical_receptive_field(assumed, list(EPS), length=row)
        return {
            eps: [_tokens(h) for h in f.heads or (f,)] for eps, f in zip(EPS, several, strict=True)
        }

    convergent = str(check_convergence(assumed).verdict) == "converges"
    leaks = {}
    for n in [*(t for t in tested if t > length), *far]:
        value = leak(assumed, length, n)
        leaks[str(n)] = [h.value for h in value.heads or (value,)]
    mass = layered_mass(assumed, layers, length, mixing=MIXING, length=longest)
    layered = layered_receptive_field(assumed, layers, mixing=MIXING, length=longest)
    return {
        "label": subject.label,
        "length": length,
        "bca": bca,
        "verdict": str(verdict.verdict),
        "heads": heads,
        "condition": str(verdict.condition) if heads == ["conditional"] else None,
        "basis": basis,
        "trf": fields(None) if convergent else None,
        "row": row,
        "row_trf": fields(row),
        "leak": leaks,
        "layered": {"q": "99/100", "row": longest, "tokens": layered.tokens, "beyond": 1 - mass},
        "extrapolates": bool(bca or str(verdict.verdict) == "converges"),
    }


def stand_in(found: Encoding, length: int, bca: bool) -> tuple[Encoding, str]:
    """The bias whose numbers stand for an encoding, and why."""
    if bca:
        return encoding("window", w=length), "blockwise causal attention: a window of its width"
    if not found.biases:
        return encoding("nope"), "no additive bias: as if there were none"
    if not found.free:
        return found, "the formula"
    middle: dict[str, Any] = {p.name: (p.init[0] + p.init[1]) / 2 for p in found.free}
    if found.name == "t5" or set(middle) - {"r1", "r2"}:
        return encoding("nope"), "a table that begins at 0"
    return encoding(found.name, **middle), "learned: the middle of the initial range"


def _tokens(field: Any) -> Any:
    if field.tokens is not None and field.tokens != math.inf:
        return field.tokens if field.tokens < 10**15 else str(field.tokens)[:12] + "..."
    return field.value_text()


# -- results --------------------------------------------------------------------------------------


def condensed(result: Row, label: str, hashed: str | None) -> dict[str, Any]:
    """A result as it is committed: rounded, without long formulas and the score curve a layer."""
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
            **({"commit": made} if (made := commit()) else {}),
        }
    )


def commit() -> str | None:
    """The commit that this package is a checkout of; None where it is none, or is changed."""
    git = ["git", "-C", str(HERE)]
    try:
        changed = subprocess.run(
            [*git, "status", "--porcelain", "--untracked-files=no"], capture_output=True, check=True
        )
        found = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return None if changed.stdout else found.stdout.decode().strip()


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

    Raises:
        InputError: there is no such folder.
    """
    from farfield.validation.corpus import corpus
    from farfield.validation.runs import Store, write
    from farfield.validation.sweep import finished

    if not Path(folder).is_dir():
        raise InputError(f"runs folder {str(folder)!r} does not exist; `make reference` makes it")
    lines, count = [], 0
    for jobs, home, hashed in planned(corpus()):
        home.mkdir(exist_ok=True)
        for job in jobs:
            result = finished(job, Store(folder))
            if result is None:
                continue
            count += 1
            path = place(job, home)
            new = condensed(result, job.label, hashed)
            if path.exists() and not replace:
                old = json.loads(path.read_text(encoding="utf-8"))
                lines += [f"{job.name}: {line}" for line in differences(old, new)]
                continue
            text = json.dumps(new, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
            write(path, (text + "\n").encode())
            lines.append(f"{job.name}: new")
    return [*lines, f"{count} finished runs of the plans"]


def planned(text: Corpus) -> Iterator[tuple[Sequence[Job], Path, str | None]]:
    """For each plan its jobs, the folder of their results, and the hash that they carry."""
    yield plan().jobs(text), HERE, registered()
    for registration in REGISTRATIONS:
        yield registration.plan.jobs(text), registration.folder, registration.digest
    for path in sorted((HERE / "further").glob("*.toml")):
        yield read_plan(path).jobs(text), path.with_suffix(""), None
