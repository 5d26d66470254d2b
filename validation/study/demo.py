"""The demonstration: what the theory says of an idea, and three small models trained beside it.

An idea, ALiBi and no bias, in models of two layers on rows of 64 tokens. Rows of 512 tokens show
which of them hold. The results come one by one.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from farfield.theory.answers.answer import InputError
from farfield.theory.answers.number import plural
from farfield.validation.harness.mechanism import with_encoding
from farfield.validation.harness.own import spec_of
from farfield.validation.harness.settings import settle
from farfield.validation.json_files import writable_folder
from farfield.validation.optional import require_torch
from farfield.validation.progress import Progress, silent
from farfield.validation.study.study import BASELINES, Studied, Study, named_encodings, survey

WORKERS = 2
"""Models at a time, one thread each."""

COLUMNS = ("encoding", "series", "TRF 99%", "ERF 99%", "forecast", "measured")
LEGEND = """
TRF and ERF: nearest tokens that hold 99 % of the attention in rows of 512 tokens, by the bias alone
and in the trained model. measured: perplexity at 512 tokens over that at 64, with its 95 % interval
over targets. forecast: the same ratio of the nearest of farfield's trained models; * none is near.
"""


def demonstration(
    f: Any,
    store: str | os.PathLike[str],
    *,
    preset: str = "first",
    module: type | str | None = None,
    notice: Progress = silent,
) -> Iterator[Study]:
    """The study of an idea beside ALiBi and no bias: first the theory, then with each model more.

    Args:
        f: a formula in `n`, a name of the catalogue, or an `Encoding`; one.
        store: folder of the runs; a finished run is never repeated, a killed one continues.
        preset: architecture and schedule.
        module: a class, or its place `"FILE.py:Class"`, that is trained in place of its values.
        notice: called as `notice(stage, done, total, note)`.

    Raises:
        InputError: an idea that cannot be read or trained, a folder that cannot be written to;
            after the theory, torch is missing or a training fails.
    """
    name, idea = named_encodings(f)[0]
    others = [pair for pair in named_encodings(BASELINES) if pair[0] != name]
    subjects = [(name, idea), *others]
    whole = survey(subjects, preset_name=preset, notice=notice)
    whole = dataclasses.replace(whole, asked=(name,))
    yield whole
    require_torch("a trained model beside the theory")
    from farfield.validation.harness.runs import job_of, local

    usual = settle(preset, {"encoding": "nope"})
    runs = [with_encoding(usual, name, encoding) for name, encoding in others]
    if module is None:
        runs.insert(0, with_encoding(usual, name, idea))
    else:
        spec = spec_of(module, Path(store) / "own") if isinstance(module, type) else module
        runs.insert(0, usual.but(encoding=spec, label=name))
    for run in runs:
        job_of(run)
    folder = str(writable_folder(store))
    notice("", 0, 0, f"{len(runs)} models of {usual.layers} layers, {WORKERS} at a time")
    engine = local(runs, folder, device="cpu", workers=WORKERS, progress=notice)
    for done, (run, lines) in enumerate(engine, 1):
        if isinstance(lines, str):
            raise InputError(f"{run.name}: {lines}")
        notice("", 0, 0, f"{run.name}, {trained_in(lines)}; {done} of {len(runs)} models")
        entries = tuple(
            e.with_lines(lines) if e.prediction.name == run.label else e for e in whole.entries
        )
        whole = dataclasses.replace(whole, entries=entries)
        yield whole


def trained_in(lines: Sequence[Mapping[str, Any]]) -> str:
    """The last loss of a run, its steps and its time."""
    last = [line for line in lines if line["protocol"] == "training"][-1]
    loss, steps = f"loss {last['nats']:.3f} nats", plural(last["steps"], "step")
    return f"{loss} after {steps} in {last['seconds']:.0f} s"


def predicted(entry: Studied) -> str:
    """What the theory says of one encoding, in a line."""
    return entry.prediction.convergence.text(width=10_000).splitlines()[0]


def row(entry: Studied) -> tuple[str, ...]:
    """The cells of `COLUMNS` for one trained encoding."""
    p = entry.prediction
    near = p.forecast if p.forecast and p.forecast.ratio else None
    field = entry.field("attention")
    _, ratio, low, high, _ = entry.lost()
    return (
        p.name,
        str(p.convergence.verdict),
        *("" if field[k] is None else str(math.ceil(field[k])) for k in ("trf", "erf")),
        "" if near is None else f"{near.ratio:.2f}" + "*" * (not near.near),
        f"{ratio:.3f} ({low:.3f}-{high:.3f})",
    )
