"""Verbs of training (train, sweep, runs): one run, a plan of many, and the runs there are."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.types import NonNegativeInt

from farfield.options import NUMBER, CountOrNone, Formula, Output, Subject, lengths, own_class
from farfield.output import OK, UNKNOWN, print_out, write_answers
from farfield.progress_bar import progress
from farfield.theory.answers.errors import InputError, refuse

if TYPE_CHECKING:
    from farfield.validation.harness.settings import Run


@Parameter(name="*", negative=())
@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """What is trained on which text, and how; the encoding apart."""

    preset: str = "demo"
    """architecture and schedule: tiny, first, demo, small, recall, base, paper:qin2024,
    paper:chi2023, paper:sun2023, or a TOML file."""
    text: str | None = None
    "a file or folder to train on; NAME.npy holds tokens."
    seed: NonNegativeInt = 0
    "of the initial weights and of the order of the text."
    length: CountOrNone = None
    "training length in tokens, as 64 or 4k (4096); the preset's if not given."
    layers: CountOrNone = None
    "of the model."
    width: CountOrNone = None
    "of the model; an even multiple of its heads, 8 in demo, others with --heads."
    batch: CountOrNone = None
    "rows a step."
    steps: CountOrNone = None
    "of training."
    lr: float | None = None
    "peak of the learning rate."
    precision: Literal["float32", "bfloat16"] | None = None
    "of products; float32 or bfloat16."
    task: str | None = None
    "a class of your own in place of the text, FILE.py:Class."
    optimizer: str | None = None
    "a function of your own in place of AdamW, FILE.py:NAME."
    protocol: str | None = None
    "a measurement of your own, FILE.py:NAME; several with commas."
    tested: str | None = None
    "context lengths to measure in tokens, as 64,256,1024."
    window: CountOrNone = None
    "measure with a sliding window of this many tokens too."

    def run(self, heads: int | None) -> Run:
        """The run of a model without positional encoding, with this many heads."""
        from farfield.validation.harness.settings import settle

        said: dict[str, Any] = {k: v for k, v in asdict(self).items() if v is not None}
        tested, window = said.pop("tested", None), said.pop("window", None)
        measure: dict[str, Any] = {} if window is None else {"windows": [window]}
        if protocols := said.pop("protocol", None):
            measure["protocols"] = protocols.split(",")
        if tested is not None:
            measure["lengths"] = lengths(tested)
        said |= {"encoding": "nope", "measure": measure} | ({"heads": heads} if heads else {})
        return settle(said.pop("preset"), said)


MEASURED = ("tested", "window", "protocol")
"""Options of a model that say how it is measured."""

SETTINGS = (*{*ModelOptions.__dataclass_fields__} - {"preset", *MEASURED}, "heads")
"""Those that are settings of a run."""


def train(
    *formulas: Formula,
    subject: Subject = Subject(),
    bias: Formula | None = None,
    model: ModelOptions = ModelOptions(),
    runs: str = "runs",
    device: str = "auto",
    log: str | None = None,
    output: Output = Output(),
) -> int:
    """Train a model with each encoding and measure it; it resumes after an interruption.

    --heads gives the model its heads; the preset's if not given.

    Args:
        formulas: a formula in n, a name of the catalogue, heads as "[-n/4; 0 x7]", or a torch
            module of your own, FILE.py:Class; several are trained one after the other.
        bias: one more of them.
        runs: folder where runs are kept.
        device: auto, cpu or cuda.
        log: file for a line a report, NAME.jsonl or NAME.csv; else a folder for TensorBoard.
    """
    from farfield.theory.answers.number import plural
    from farfield.validation.harness.mechanism import with_encoding
    from farfield.validation.optional import require_torch
    from farfield.validation.progress import about
    from farfield.validation.study.one_run import train as train_one
    from farfield.validation.study.study import named_encodings

    formulas = formulas if bias is None else (*formulas, bias)
    for formula in map(str, formulas):
        refuse(
            re.fullmatch(NUMBER, formula),
            f"{formula!r} is a number, and a bias that is the same at every distance is none; "
            "accepted: a formula in n, or nope, the model without a bias",
        )
    usual = model.run(subject.heads)
    places = [own_class(f) for f in formulas]
    others = [f for f, place in zip(formulas, places, strict=True) if not place]
    each = named_encodings(subject.read_each(others, usual.heads)) if others or not places else ()
    found = iter(with_encoding(usual, *one) for one in each)
    asked = [
        usual.but(encoding=place, label=place.rpartition(":")[2]) if place else next(found)
        for place in places
    ]
    refuse(log is not None and len(asked) > 1, "--log belongs to one training; several are asked")
    require_torch()
    size = f"{plural(usual.steps, 'step')} on rows of {usual.length} tokens"
    said = f"{plural(len(asked), 'model')} of {plural(usual.layers, 'layer')}, {size}"
    trained, failed = [], []
    from farfield.validation.harness.runs import chosen_device, job_of
    from farfield.validation.harness.train import require_log
    from farfield.validation.json_files import writable_folder

    chosen_device(device)
    require_log(log)
    for one in asked:
        _ = job_of(one).codes  # all that can be wrong is said before the first step
    writable_folder(runs)
    with progress("train", f"{said}; {_going_on(runs)}") as step:
        for one in asked:
            notice = about(one.name[:40], step)
            try:
                result = train_one(one, store=runs, device=device, log=log, notice=notice)
            except InputError as error:  # the others go on
                failed.append(f"{one.name}: {error}" if len(asked) > 1 else str(error))
                continue
            trained += [result] if result.lines else []  # of several processes one tells
    code = write_answers(trained, output) if trained else OK
    refuse(bool(failed), "; ".join(failed))
    return code


def sweep(
    plan: str,
    /,
    *,
    runs: str = "runs",
    text: str | None = None,
    engine: Literal["local", "ray"] = "local",
    workers: CountOrNone = None,
    device: str = "auto",
    address: str | None = None,
    cpus_per_job: float | None = None,
    gpus_per_job: float | None = None,
    output: Output = Output(),
) -> int:
    """Make every unfinished run of a plan; it resumes after an interruption.

    Args:
        plan: a TOML file.
        runs: folder where runs are kept.
        text: a file or folder to train on.
        engine: local or ray.
        workers: with --engine local, runs at a time; 1 if not given.
        device: with --engine local, auto, cpu or cuda.
        address: with --engine ray, of a cluster, or auto.
        cpus_per_job: with --engine ray, 1 if not given.
        gpus_per_job: with --engine ray, 0 if not given.
    """
    from farfield.theory.answers.number import plural
    from farfield.validation.harness.settings import read_plan
    from farfield.validation.optional import require_torch

    refuse(
        engine == "local" and (address, cpus_per_job, gpus_per_job) != (None, None, None),
        "--address, --cpus-per-job and --gpus-per-job belong to --engine ray",
    )
    refuse(
        engine == "ray" and (device != "auto" or workers is not None),
        "--device and --workers belong to --engine local; Ray has as many runs at a time as "
        "--cpus-per-job and --gpus-per-job allow",
    )
    read = read_plan(plan)
    require_torch()
    from farfield.validation.harness import runs as engines
    from farfield.validation.inventory import RunList, summary
    from farfield.validation.json_files import writable_folder

    every = read.expand(engines.job_of, **({} if text is None else {"text": text}))
    engines.chosen_device(device)
    folder = str(writable_folder(runs))
    said = f"{plural(len(every), 'run')} of {read.title}; {_going_on(runs)}"
    with progress("sweep", said) as step:
        done = (
            engines.local(every, folder, device=device, workers=workers or 1, progress=step)
            if engine == "local"
            else engines.on_ray(
                every, folder, address=address, cpus=cpus_per_job or 1, gpus=gpus_per_job or 0
            )
        )
        swept = engines.sweep(done, len(every), step, of=summary)
    finished = sorted(swept.finished, key=lambda one: (one["label"], one["seed"]))
    failed = [{"state": "failed", "label": name, "note": why} for name, why in swept.failed]
    return max(write_answers(RunList((*finished, *failed)), output), UNKNOWN * bool(failed))


def _going_on(runs: str) -> str:
    """The line before the first step of a training."""
    return (
        "the first steps are timed; finished runs are not repeated; Ctrl-C stops it, the same "
        f"command goes on from {runs}"
    )


def runs(
    which: Annotated[str | None, Parameter(name="KEY")] = None,
    /,
    *,
    runs: str = "runs",
    output: Output = Output(),
) -> int:
    """List the runs of a folder, or show one of them.

    Args:
        which: the first digits of a finished run's key, to show what it is and what it measured;
            or a folder.
        runs: folder where runs are kept; with --csv everything measured in them, in the columns of
            farfield's own table of results.
    """
    from farfield.validation.optional import require_torch

    require_torch("a list of runs")
    from farfield.validation.harness.runs import finished_run, listed, rows_of
    from farfield.validation.inventory import RunList, TrainedRun, summary
    from farfield.validation.results import LAST, results

    if which is not None and re.fullmatch("[0-9a-f]{1,16}", which) and not Path(which).exists():
        return write_answers(TrainedRun(tuple(rows_of(finished_run(runs, which)))), output)
    folder = which or runs
    if output.csv:
        print_out(results(folder).write_csv().rstrip())
        return OK
    found = []
    for one in listed(folder):
        if one.state == "finished":
            told = summary(rows_of(one.home, "training", LAST))
        else:
            asked = one.run
            told = {"key": one.key, "state": one.state, "label": asked.name}
            told |= {"preset": asked.preset, "trained": asked.length}
            told |= {"seed": asked.seed, "steps": one.step}
            told |= {"note": one.note} if one.note else {}
        found.append(told)
    found.sort(key=lambda one: (one["label"], one["seed"]))
    return write_answers(RunList(tuple(found)), output)
