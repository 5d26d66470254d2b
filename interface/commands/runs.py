"""Verbs of training: one run, a plan of many, and the runs there are."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.types import NonNegativeInt

from farfield.options import CountOrNone, Formula, Output, Subject
from farfield.output import OK, UNKNOWN, print_out, write_answers
from farfield.progress_bar import board, progress
from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.answers.names import one_of


def train(
    *formulas: Formula,
    subject: Subject = Subject(),
    preset: str = "demo",
    text: str | None = None,
    seed: NonNegativeInt = 0,
    runs: str = "runs",
    device: str = "auto",
    length: CountOrNone = None,
    tested: str | None = None,
    window: CountOrNone = None,
    output: Output = Output(),
) -> int:
    """Train a model with each encoding and measure it; a killed training continues.

    Args:
        formulas: a formula in n, a name of the catalogue, or heads as "[-n/4; 0 x7]"; several are
            trained one after the other.
        preset: architecture and schedule.
        text: a file or folder to train on; NAME.npy holds tokens.
        seed: of the initial weights and of the order of the text.
        runs: folder where runs are kept.
        device: auto, cpu or cuda.
        length: training length in tokens, as 64 or 4k (4096); the preset's if not given.
        tested: context lengths to measure in tokens, as 64,256,1024.
        window: measure with a sliding window of so many tokens.
    """
    from farfield.theory.answers.number import natural
    from farfield.validation.harness import configuration, mechanism, presets, store
    from farfield.validation.optional import require_torch

    chosen = presets.resized(presets.preset(preset), length or presets.preset(preset).length)
    measure = chosen.measurement
    if tested is not None:
        lengths = tuple(natural(part, "--tested") for part in tested.split(","))
        measure = dataclasses.replace(measure, lengths=lengths)
    refuse(
        window is not None and subject.bca is not None,
        "--window and --bca: accepted is one of them",
    )
    subjects = subject.read_each(formulas, chosen.heads)
    require_torch()
    from farfield.validation.harness import corpus, experiment, parallel

    with parallel.together(experiment.chosen_device(device)) as leads:
        seen = None if window is None else (mechanism.Visibility(window=window),)
        source, trained = corpus.corpus(text), []
        asked = [
            configuration.Configuration(
                found,
                source,
                chosen,
                seed,
                measure,
                seen or configuration.variants(found, chosen.length),
            )
            for found in subjects
        ]
        for one in asked:
            if not leads:
                experiment.follow(one, device)
                continue
            with progress(one.encoding.name[:40], output) as step:
                result = experiment.train_and_measure(one, store.Store(runs), step, device=device)
            trained.append(store.Trained(result))
    return write_answers(trained, output) if leads else 0


def sweep(
    plan: str,
    /,
    *,
    runs: str = "runs",
    text: str | None = None,
    engine: str = "local",
    workers: int | None = None,
    device: str = "auto",
    address: str | None = None,
    cpus_per_job: float | None = None,
    gpus_per_job: float | None = None,
    predictions: str | None = None,
    output: Output = Output(),
) -> int:
    """Run every job of a plan that is not finished; killed and begun again, it continues.

    Args:
        plan: a TOML file.
        runs: folder where runs are kept.
        text: a file or folder to train on.
        engine: local or ray.
        workers: jobs at a time; 1 if not given.
        device: auto, cpu or cuda.
        address: with --engine ray, of a cluster, or auto.
        cpus_per_job: with --engine ray.
        gpus_per_job: with --engine ray.
        predictions: a file of predictions; each run says its SHA-256 as it begins.
    """
    from farfield.validation.harness.plan import read_plan
    from farfield.validation.harness.store import Store
    from farfield.validation.optional import require_torch

    one_of(engine, "--engine", ("local", "ray"))
    refuse(
        engine == "local" and (address, cpus_per_job, gpus_per_job) != (None, None, None),
        "--address, --cpus-per-job and --gpus-per-job belong to --engine ray",
    )
    read = read_plan(plan)
    require_torch()
    from farfield.validation.harness import corpus, experiment, sweep

    said = None if predictions is None else _hash_of(predictions)
    jobs = [dataclasses.replace(job, predictions=said) for job in read.jobs(corpus.corpus(text))]
    chosen: sweep.SameProcess
    if engine == "ray":
        refuse(
            device != "auto", "--device belongs to --engine local; --gpus-per-job decides for Ray"
        )
        chosen = sweep.Cluster(workers, address, cpus=cpus_per_job or 1, gpus=gpus_per_job or 0)
    else:
        experiment.chosen_device(device)  # refused now, not by every job
        alone = workers in (None, 1)
        chosen = sweep.SameProcess(device) if alone else sweep.Processes(workers or 0, device)
    with board(read.title, len(jobs)) as watch:
        swept = sweep.sweep(jobs, Store(runs), chosen, watch)
    failed = any(found["state"] == "failed" for found in swept.runs)
    return max(write_answers(swept, output), UNKNOWN * failed)


def _hash_of(path: str) -> str:
    import hashlib

    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(f"--predictions {path!r} cannot be read: {error.strerror}") from None


def runs(
    *,
    folder: Annotated[str, Parameter(name="--runs")] = "runs",
    csv: bool = False,
    output: Output = Output(),
) -> int:
    """List the runs of a folder.

    Args:
        folder: where runs are kept.
        csv: print everything measured as CSV, in the columns of farfield's own table of results.
    """
    from farfield.validation.harness.store import Store, inventory

    if csv:
        from farfield.validation.results import results

        print_out(results(folder).write_csv().rstrip())
        return OK
    return write_answers(inventory(Store(folder)), output)
