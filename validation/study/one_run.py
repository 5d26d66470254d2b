"""One small model with an encoding, trained and measured."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from farfield.validation.harness.mechanism import read, with_encoding
from farfield.validation.harness.own import Own, spec_of
from farfield.validation.harness.settings import Run, settle
from farfield.validation.inventory import TrainedRun
from farfield.validation.optional import require_torch
from farfield.validation.progress import Progress, silent
from farfield.validation.study.study import named_encodings


def train(
    f: Any,
    *,
    preset: str = "demo",
    store: str | os.PathLike[str] = "runs",
    device: str = "auto",
    log: str | None = None,
    notice: Progress = silent,
    **settings: JsonValue,
) -> TrainedRun:
    """Train a small model with an encoding and measure it; a finished run is never repeated.

    Args:
        f: a formula in `n`, a name of the catalogue, formulas of the heads, an `Encoding`, a class
            of a torch module or its place `"FILE.py:Class"`, or a whole `Run`, to which no settings
            are added. A class is made as `Class(heads, size)` and called as `module(q, k, i, j)`.
        preset: architecture and schedule, by name or as a TOML file.
        store: folder of the runs; a killed run continues.
        device: `auto` (a GPU if there is one), `cpu` or `cuda`.
        log: file for a line a report, `NAME.jsonl` or `NAME.csv`; else a folder for TensorBoard.
        notice: called as `notice(stage, done, total, note)`.
        **settings: in place of the preset's, as in a plan: `text`, `seed`, `length` (tokens of a
            training row), `layers`, `width`, `heads`, `batch` (rows), `steps`, `lr`, `precision`,
            `measure` (a table, as `{"lengths": [64, 256]}`), `task`, `optimizer`.

    Raises:
        InputError: an encoding that cannot be trained, an unknown or bad setting, torch missing, a
            loss that is not finite, a full disk.
    """
    whole = f
    if not isinstance(f, Run):
        usual = settle(preset, {"encoding": "nope", **settings})
        spec = spec_of(f, Path(store) / "own") if isinstance(f, type) else f
        source = read(spec if isinstance(spec, (str, dict)) else {"name": spec}, usual.heads)
        if isinstance(source, Own):
            whole = usual.but(encoding=spec, label=usual.label or source.name)
        else:
            ((name, found),) = named_encodings(source)
            whole = with_encoding(usual, name, found)
    require_torch()
    from farfield.validation.harness.runs import run

    return TrainedRun(tuple(run(whole, store, device=device, log=log, progress=notice)))
