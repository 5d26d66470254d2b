"""Runs: trained once, measured once, as rows of a folder; many of them by processes, or by Ray.

    RUNS/KEY/run.json               what is asked, as it is written
    RUNS/KEY/checkpoint.safetensors while it trains
    RUNS/KEY/weights.safetensors    of a finished training, with its history
    RUNS/KEY/measured-KEY.json      the rows of one measurement
    RUNS/KEY/source/                copies of the user's own files that it is made of
    RUNS/KEY/failure.txt            why it ended, with the traceback, until it is finished

A finished part is skipped, a killed one goes on from its checkpoint. Every file is written whole or
not at all. A damaged one is refused by its name, and nothing is deleted. Rows have the columns of
the results table.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import json
import math
import multiprocessing
import os
import re
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from filelock import FileLock
from pydantic import JsonValue

from farfield.numerics.masks import CAUSAL, Mask
from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.answers.names import one_of
from farfield.theory.encodings.python_files import handed
from farfield.theory.files import write
from farfield.validation.harness.bias import modules
from farfield.validation.harness.data import Data, InductionRows, OwnRows, Text, read_data
from farfield.validation.harness.measure import (
    answers,
    attention_field,
    gradient_field,
    perplexities,
    recall,
)
from farfield.validation.harness.mechanism import (
    facts_of,
    formula_of,
    mechanism_of,
    understood,
)
from farfield.validation.harness.model import DistanceBias, Transformer
from farfield.validation.harness.own import Own, keep, kept, own, whose
from farfield.validation.harness.settings import Measure, ModelSettings, Run, digest
from farfield.validation.harness.train import (
    Report,
    read_record,
    read_tensors,
    train,
    write_tensors,
)
from farfield.validation.json_files import (
    read_json,
    recorded,
    unrecorded,
    writable_folder,
    write_json,
)
from farfield.validation.optional import first_line, library
from farfield.validation.progress import Progress, silent

Row = dict[str, str | int | float | None]

WEIGHTS, CHECKPOINT, ASKED = "weights.safetensors", "checkpoint.safetensors", "run.json"
FAILED = "failure.txt"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
KILLED = "its process was killed; if memory ran out, accepted: a smaller batch, or more parts"
HANDED = 256  # runs that a cluster has at a time
COLUMNS = {"targets", "nats", "ratio", "low", "high", "distance", "accuracy", "attention"}
PROTOCOLS = """
A protocol of the user's own, `FILE.py:NAME`, is a function of the trained model in evaluation mode,
of what it was trained on, and of a length in tokens. It returns cells of the columns `COLUMNS`:

    def first_token(model, data, length):
        tokens, targets = (torch.from_numpy(x) for x in data.held(64, length))
        with torch.no_grad():
            right = model(tokens)[:, 0].argmax(-1) == targets[:, 0]
        return {"targets": 64, "accuracy": right.double().mean().item()}
"""
LEADS = os.environ.get("RANK", "0") == "0"  # of the processes that torchrun starts


class Job(NamedTuple):
    """A run with what its settings name: its model, its text or task, its key."""

    run: Run
    model: ModelSettings
    data: Data
    key: str

    @property
    def measure(self) -> Measure:
        """The measurements, with all lengths filled in and in order; none is longer than the
        training rows where positions are learned."""
        asked, trained = self.run.measure, self.run.length
        fixed = self.model.absolute == "learned"
        usual = (trained,) if fixed else (trained, 4 * trained, 16 * trained)
        lengths = tuple(sorted({*(asked.lengths or usual), trained}))
        rows = {"row_length": asked.row_length}
        rows["gradient_length"] = asked.gradient_length or lengths[-1]
        if fixed:
            rows = {name: min(tokens, trained) for name, tokens in rows.items()}
        return asked.but(lengths=lengths, **rows)

    @property
    def outside(self) -> dict[str, Own]:
        """The task and the optimiser that are the user's own."""
        named = {"task": self.run.task, "optimizer": self.run.optimizer}
        return {k: own(v) for k, v in named.items() if isinstance(v, str) and ".py:" in v}

    @property
    def facts(self) -> dict[str, JsonValue]:
        """What the settings name from outside, the encoding apart, by what it is."""
        codes = {name: code.sha256 for name, code in self.outside.items()}
        return {"data": self.data.sha256, "vocabulary": self.data.vocabulary, **codes}

    @property
    def codes(self) -> list[Own]:
        """The user's own code that it runs."""
        biases = (layer.bias for layer in self.model.layers if isinstance(layer.bias, Own))
        return [*biases, *self.outside.values(), *map(own, self.run.measure.protocols)]

    @property
    def masks(self) -> list[Mask]:
        """How the trained model is measured."""
        asked = self.run.measure
        windows, blocks = [Mask(window=w) for w in asked.windows], [Mask(bca=b) for b in asked.bca]
        return [CAUSAL, *windows, *blocks]

    @property
    def columns(self) -> Row:
        """What all rows of the run say."""
        run, data = self.run, self.data
        same = ("preset", "layers", "heads", "width", "batch", "steps", "seed")
        return {
            "experiment": "runs",
            "run": self.key,
            "label": run.name,
            "family": run.family or run.name,
            "mechanism": mechanism_of(self.model),
            "formula": formula_of(self.model),
            "trained": run.length,
            "learning_rate": run.lr,
            "text": data.source,
            "text_sha256": data.sha256[:12],
            **{name: getattr(run, name) for name in same},
        }


def job_of(run: Run) -> Job:
    """What a run asks for, read and checked: a wrong name is refused before anything is made.

    Raises:
        InputError: an encoding that cannot be trained, a text that is missing or too short, a bias
            that is not finite where attention looks.
    """
    model, data = understood(run), read_data(run)
    job = Job(run, model, data, "")
    job = job._replace(key=run.key(encoding=facts_of(model), **job.facts))
    measure = job.measure
    longest = measure.lengths[-1]
    refuse(
        model.absolute == "learned" and longest > run.length,
        f"{run.name} knows the {run.length} positions that it was trained on; length {longest} was "
        f"asked, accepted are lengths to {run.length}",
    )
    for window in measure.windows:
        refuse(
            window >= longest,
            f"window {window} hides nothing: rows are measured with {longest} tokens at most; "
            f"accepted are windows below {longest}",
        )
    if isinstance(data, Text):
        rows = (measure.row_length, measure.gradient_length or 0)
        longest = max(longest, *rows)
    data.require(run.length, longest)
    for code in measure.protocols:
        refuse(
            not callable(handed(code)),
            f"{code} is no function; accepted: NAME(model, data, length)",
        )
    for bias in set(modules(model)):
        if isinstance(bias, DistanceBias):
            bias.table(longest)
    return job


def model_of(run: Run, vocabulary: int = 256) -> Transformer:
    """The model of a run with its initial weights, which the seed alone decides.

    >>> model_of(Run(encoding="kerple_log", layers=2, width=32)).prepare(2)[0].bias.shape
    torch.Size([8, 2])
    """
    settings = understood(run).but(vocabulary=vocabulary)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        model = Transformer(settings)  # drawn first: models of one seed differ in their bias alone
        model.add_biases(modules(settings))
        return model


def chosen_device(name: str = "auto") -> torch.device:
    """The device of this name.

    Raises:
        InputError: the name is not known, or there is no GPU.

    >>> chosen_device("cpu")
    device(type='cpu')
    """
    one_of(name, "device", ("auto", "cpu", "cuda"))
    visible = torch.cuda.is_available()
    refuse(
        name == "cuda" and not visible,
        "device 'cuda': torch sees no GPU here; accepted: cpu, or auto",
    )
    if name == "cpu" or not visible:
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))


def run(
    asked: Run,
    folder: str | os.PathLike[str],
    *,
    device: str = "auto",
    every: float = 30.0,
    log: str | None = None,
    progress: Progress = silent,
) -> list[Row]:
    """Train a model and measure it, or what of that is not done yet.

    Args:
        asked: the run.
        folder: where runs are kept.
        device: `auto` (a GPU if there is one), `cpu` or `cuda`; it is in no key.
        every: seconds between checkpoints.
        log: as `train` takes it.
        progress: called as `progress(stage, done, total, note)`.

    Returns:
        Rows with the columns of the results table: of the training one a report, of each
        measurement one a protocol, length and threshold.

    Raises:
        InputError: what is asked cannot be trained or read, a loss that is not finite, a damaged
            file, a full disk. What was finished stays.
    """
    job, place = job_of(asked), chosen_device(device)
    home = writable_folder(Path(folder) / job.key)
    # No other process works on a run meanwhile; those of one training share it.
    alone = "RANK" not in os.environ
    try:
        with FileLock(home / ".lock") if alone else contextlib.nullcontext():
            for unfinished in home.glob(".partial-*") if alone else ():
                unfinished.unlink(missing_ok=True)  # a process was killed while it wrote
            if not (home / ASKED).exists():
                write(home / ASKED, asked.model_dump_json(indent=1).encode())
            for code in job.codes:
                keep(code.path, home)
            rows = _made(job, home, place, every, log, progress)
    except Exception as error:
        _note(error, job, home)
        raise
    (home / FAILED).unlink(missing_ok=True)
    return rows


def _made(
    job: Job, home: Path, device: torch.device, every: float, log: str | None, progress: Progress
) -> list[Row]:
    model, history = _trained(job, home, device, every, log, progress if LEADS else silent)
    if not LEADS:
        return []
    paths = {home / f"measured-{_measurement(job, mask)}.json": mask for mask in job.masks}
    for path, mask in paths.items():
        if not path.exists():
            lines = [{**line, "mask": _name(mask)} for line in measured(job, model, mask, progress)]
            write_json(path, {"mask": _name(mask), "rows": recorded(lines)})
    return _rows(job.columns, history, [*paths])


def _note(error: Exception, job: Job, home: Path) -> None:
    """Keep in the run's folder why it ended.

    Raises:
        InputError: code of the user's own has raised, memory ran out, or a file is not written.
    """
    said = whose(error, job.codes)
    if isinstance(error, OSError) and not said:
        said = first_line(error)
        if error.errno in FULL:
            said = f"{error.filename or home}: {error.strerror}; accepted: a disk that has space"
    full = isinstance(error, RuntimeError) and "allocate memory" in str(error)  # on a processor
    if full or isinstance(error, MemoryError | torch.OutOfMemoryError):
        said = f"memory ran out ({first_line(error)}); accepted: a smaller batch, or more parts"
    with contextlib.suppress(InputError):  # a full disk may be what ended it
        why = str(error) if isinstance(error, InputError) else said or first_line(error)
        trace = "".join(traceback.format_exception(error))
        write(home / FAILED, f"{why}\n\n{trace}".encode())
    if said and not isinstance(error, InputError):
        raise InputError(f"{said} (all of it: {home / FAILED})") from error


def _trained(
    job: Job, home: Path, device: torch.device, every: float, log: str | None, progress: Progress
) -> tuple[Transformer, list[Report]]:
    """The trained model in evaluation mode, and its reports."""
    if (home / WEIGHTS).exists():
        return load(home, device)
    model = model_of(job.run, job.data.vocabulary).to(device)
    kept = home / CHECKPOINT
    history = train(
        model, job.data, job.run, checkpoint=kept, every=every, log=log, progress=progress
    )
    if LEADS:
        record = {
            "columns": job.columns,
            "facts": job.facts,
            "history": [list(report) for report in history],
        }
        write_tensors(home / WEIGHTS, model.state_dict(), record)
        kept.unlink(missing_ok=True)
    return model, history


def load(home: Path, device: torch.device | str = "cpu") -> tuple[Transformer, list[Report]]:
    """The trained model of a finished run's folder, in evaluation mode, and its reports.

    Raises:
        InputError: it is not finished, or a file is damaged; a module of the user's own that has
            changed since.
    """
    refuse(not (home / WEIGHTS).exists(), f"run {home.name} is not finished; accepted: train it")
    asked, (tensors, text) = asked_of(home, copies=True), read_tensors(home / WEIGHTS)
    record = json.loads(text)
    refuse(
        not {"facts", "history"} <= {*record},
        f"{str(home / WEIGHTS)!r} was written by no run; accepted: the weights of a finished one",
    )
    refuse(
        asked.key(encoding=facts_of(understood(asked)), **record["facts"]) != home.name,
        f"run {home.name} was made with another file or formula than {ASKED} names now; accepted: "
        "what it was made with",
    )
    model = model_of(asked, record["facts"]["vocabulary"])
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise InputError(f"{str(home / WEIGHTS)!r}: {first_line(error)}") from None
    history = [Report(*report) for report in record["history"]]
    return model.to(device).eval(), history


def rows_of(home: Path, *protocols: str) -> list[Row]:
    """Rows of a finished run's folder: of its training, and of every measurement.

    Args:
        home: the folder.
        *protocols: whose rows are read; none given reads all.

    Raises:
        InputError: a file is damaged.
    """
    record = read_record(home / WEIGHTS)
    columns, history = record["columns"], [Report(*report) for report in record["history"]]
    measurements = sorted(path for path in home.iterdir() if path.name.startswith("measured-"))
    return _rows(columns, history, measurements, protocols)


def _rows(
    columns: Row,
    history: Sequence[Report],
    measurements: Sequence[Path],
    protocols: Sequence[str] = (),
) -> list[Row]:
    lines = [*_training_rows(history, columns["trained"])]
    for path in measurements:
        lines += read_json(path)["rows"]
    common = {**columns, "seconds": history[-1].seconds}
    wanted = (line for line in lines if not protocols or line["protocol"] in protocols)
    return [common | unrecorded(line) for line in wanted]


def asked_of(home: Path, *, copies: bool = False) -> Run:
    """What a run's folder was asked for; with `copies`, the user's code by those in the folder."""

    def table(settings: dict[str, Any]) -> dict[str, Any]:
        return {k: kept(v, home) if isinstance(v, str) else v for k, v in settings.items()}

    try:
        asked = json.loads((home / ASKED).read_bytes(), object_hook=table if copies else None)
        refuse(not isinstance(asked, dict), "it holds no table; accepted: settings")
        return Run.of(asked)
    except (OSError, ValueError) as error:
        raise InputError(f"{str(home / ASKED)!r} is no run: {first_line(error)}") from None


def _measurement(job: Job, mask: Mask) -> str:
    """The key of a measurement."""
    apart = {"windows", "bca", *["precision"] * (job.measure.precision == "float32")}
    asked = job.measure.model_dump(mode="json", exclude=apart)
    return digest({**asked, "mask": [mask.window, mask.bca]})


def _name(mask: Mask) -> str:
    return f"window {mask.window}" if mask.window else "BCA" if mask.bca else ""


def _training_rows(history: Sequence[Report], length: str | int | float | None) -> Iterator[Row]:
    for report in history:
        line: Row = {"protocol": "training", "length": length, "step": report.step, "mask": ""}
        yield {**line, "nats": report.loss}
        if report.held_out is not None:
            yield {**line, "protocol": "held out", "nats": report.held_out}


def measured(
    job: Job, model: Transformer, mask: Mask = CAUSAL, progress: Progress = silent
) -> Iterator[Row]:
    """The rows of a measurement, by what the run asks for.

    Raises:
        InputError: a model whose losses are not finite.
    """
    asked = job.measure
    for code, length in itertools.product(asked.protocols, asked.lengths):
        cells, name = handed(code)(model, job.data, length), code.rpartition(":")[2]
        refuse(
            not isinstance(cells, dict) or not cells.keys() <= COLUMNS,
            f"protocol {name} returns {cells!r:.60}; accepted: a table with columns among "
            f"{', '.join(sorted(COLUMNS))}",
        )
        yield {"protocol": name, "length": length, **cells}
    if isinstance(job.data, OwnRows):
        for length in asked.lengths:
            cells = answers(model, job.data, length, count=asked.probes, mask=mask)
            yield {"protocol": "task", "length": length, **cells}
        return
    if isinstance(job.data, InductionRows):
        first = sorted(asked.lengths, key=lambda length: length != job.run.length)
        distances, count = asked.distances, asked.probes
        for line in recall(model, job.data, first, distances=distances, count=count, mask=mask):
            yield {"protocol": "recall", **line._asdict()}
        return
    told = ("protocol", "length", "targets", "nats", "ratio", "low", "high")
    counts = {0: asked.blocks, 1: asked.last_tokens, **dict.fromkeys(asked.strides, asked.blocks)}
    stage, text = functools.partial(progress, "perplexity"), job.data.held_out
    for last, count in counts.items():
        if count:
            for score in perplexities(
                model,
                text,
                asked.lengths,
                count=count,
                last=last,
                view=mask,
                precision=asked.precision,
                progress=stage,
            ):
                yield {name: getattr(score, name) for name in told}
    yield from _fields(asked, job.run.length, model, text, mask)


def _fields(
    asked: Measure, trained: int, model: Transformer, text: np.ndarray, mask: Mask
) -> Iterator[Row]:
    """The rows of receptive fields."""
    n, segments = asked.row_length, asked.row_segments
    eps, rows = asked.thresholds, asked.rows
    for field in attention_field(
        model, text, thresholds=eps, length=n, segments=segments, rows=rows, mask=mask
    ):
        line: Row = {"protocol": "attention", "length": n, "targets": segments}
        trf = None if math.isnan(field.trf) else field.trf
        yield {**line, "eps": field.eps, "erf": field.erf, "trf": trf}
    n, segments = asked.gradient_length or trained, asked.gradient_segments
    gradient = gradient_field(
        model, text, share=asked.share, length=n, segments=segments, mask=mask
    )
    line = {"protocol": "gradient", "length": n, "targets": segments}
    yield {**line, "eps": round(1 - asked.share, 9), "erf": gradient.tokens}
    for far, part in gradient.curve:
        yield {**line, "distance": far, "gradient": part}


# -- many runs ------------------------------------------------------------------------------------


class Swept(NamedTuple):
    """What a sweep did: of each finished run what is kept of its rows; the names of others, and
    why they are not."""

    finished: list[Any]
    failed: list[tuple[str, str]]


def attempt(asked: Run, folder: str, device: str, progress: Progress = silent) -> list[Row] | str:
    """The rows of a run, or in one line why there are none: whatever ends it ends it alone."""
    try:
        return run(asked, folder, device=device, progress=progress)
    except InputError as error:
        return str(error)
    except Exception as error:
        return f"farfield's own code raised {type(error).__name__}: {first_line(error)}"


def local(
    runs: Sequence[Run], folder: str, *, device: str, workers: int, progress: Progress
) -> Iterator[tuple[Run, list[Row] | str]]:
    """Runs by processes of this machine; one worker is this process.

    Several report the steps of all of them together, with the newest loss and whose it is.
    """
    if workers == 1:
        for asked in runs:
            yield asked, attempt(asked, folder, device, progress)
        return
    left, alone = deque(range(len(runs))), deque[int]()
    steps, whole = [0] * len(runs), sum(asked.steps for asked in runs)

    def told(k: int, stage: str, done: int, note: str) -> None:
        steps[k] = done if stage == "train" else runs[k].steps
        progress(f"{runs[k].name}: {stage}" if stage else runs[k].name, sum(steps), whole, note)

    while left or alone:
        # Runs that were at work when a process was killed are tried one by one: one of them did it.
        source, most = (alone, 1) if alone else (left, workers)
        lost = yield from _side_by_side(runs, source, most, folder, device, told)
        if most == 1:
            yield from ((runs[k], KILLED) for k in lost)
        else:
            alone += lost


def _side_by_side(
    runs: Sequence[Run],
    source: deque[int],
    most: int,
    folder: str,
    device: str,
    told: Callable[[int, str, int, str], None],
) -> Generator[tuple[Run, list[Row] | str], None, list[int]]:
    """Runs by so many processes, until one of them is killed; those at work then are returned.

    Args:
        runs: all of them.
        source: the places of those that are left, which are taken from it.
        most: processes.
        folder: where runs are kept.
        device: as `run` takes it.
        told: called with the place of a run, its stage, the steps done, and a note.
    """
    start = multiprocessing.get_context("spawn")
    reports = start.SimpleQueue()  # of this pool alone: a process that is killed may hold it
    at_work: dict[Future[list[Row] | str], int] = {}
    with ProcessPoolExecutor(most, start, initializer=_begin, initargs=(reports,)) as pool:
        try:
            while source or at_work:
                while source and len(at_work) < most:
                    k = source[0]
                    future = pool.submit(_reported, k, runs[k], folder, device)
                    at_work[future] = source.popleft()
                found = wait(at_work, timeout=REPORT_S, return_when=FIRST_COMPLETED).done
                while not reports.empty():
                    told(*reports.get())
                for future in found:
                    result, k = future.result(), at_work.pop(future)
                    told(k, "", 0, "")  # of the steps before none was reported
                    yield runs[k], result
        except BrokenProcessPool:
            pass
        finally:  # a process whose reports nobody takes would wait for ever
            while wait(at_work, timeout=REPORT_S).not_done:
                while not reports.empty():
                    reports.get()
    return [*at_work.values()]


REPORT_S = 1.0
"""Seconds between two reports of a process."""

_REPORTS: list[SimpleQueue[Any]] = []
"""Of a process of the pool: where it reports to."""


def _reported(k: int, asked: Run, folder: str, device: str) -> list[Row] | str:
    """The k-th run, by a process that reports what it does."""
    last = -REPORT_S

    def report(stage: str, done: int, total: int, note: str = "", /) -> None:
        nonlocal last
        if total and time.monotonic() >= last + REPORT_S:
            last = time.monotonic()
            _REPORTS[-1].put((k, stage, done, note))

    return attempt(asked, folder, device, report)


def _begin(reports: SimpleQueue[Any]) -> None:
    """Of a process of the pool: one thread, and no longer a life than the sweep's."""
    torch.set_num_threads(1)
    _REPORTS.append(reports)
    threading.Thread(target=_end_with, args=[multiprocessing.parent_process()], daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def on_ray(
    runs: Sequence[Run], folder: str, *, address: str | None, cpus: float, gpus: float
) -> Iterator[tuple[Run, list[Row] | str]]:
    """Runs by a Ray cluster, whose machines share the folder."""
    ray = library("ray", "--engine ray", "cluster")
    try:
        ray.init(address=address, ignore_reinit_error=True, log_to_driver=False)
    except ConnectionError as error:
        raise InputError(
            f"no cluster at address {address!r}: {first_line(error)}; accepted: that of a cluster "
            "that runs, or none, which starts one here"
        ) from None
    try:
        remote = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=3)(attempt)
        device = "cuda" if gpus else "cpu"
        place = os.path.realpath(folder)
        left, waiting = iter(runs), dict[Any, Run]()
        while True:
            for asked in itertools.islice(left, HANDED - len(waiting)):
                waiting[remote.remote(asked, place, device)] = asked
            if not waiting:
                break
            (ready,), _ = ray.wait(list(waiting), num_returns=1)
            asked = waiting.pop(ready)
            try:
                yield asked, ray.get(ready)
            except ray.exceptions.RayError as error:
                yield asked, f"lost by Ray: {first_line(error)}"
    finally:
        ray.shutdown()


def sweep(
    done: Iterator[tuple[Run, list[Row] | str]],
    total: int,
    progress: Progress = silent,
    of: Callable[[list[Row]], Any] = lambda rows: rows,
) -> Swept:
    """Collect what an engine yields, of each finished run what `of` keeps of its rows."""
    swept = Swept([], [])
    for at, (asked, result) in enumerate(done, 1):
        name = f"{asked.name}, seed {asked.seed}"
        if isinstance(result, str):
            swept.failed.append((name, result))
        else:
            swept.finished.append(of(result))
        progress("sweep", at, total, name)
        told = f"failed, {result}" if isinstance(result, str) else "finished"
        progress("sweep", 0, 0, f"{at} of {total}, {name}: {told}")
    return swept


def finished_run(folder: str | os.PathLike[str], key: str) -> Path:
    """The folder of the one finished run whose key begins with these digits.

    Raises:
        InputError: there is none, or several.
    """
    refuse(
        not re.fullmatch("[0-9a-f]{0,16}", key),
        f"run {key[:60]!r} is no key; accepted: its first digits, 0 to 9 and a to f",
    )
    kept = [path.parent for path in Path(folder).glob(f"{key}*/{WEIGHTS}")]
    keys = sorted(path.parent.name for path in Path(folder).glob(f"*/{WEIGHTS}"))
    refuse(
        len(kept) != 1,
        f"run {key!r} names {'several' if kept else 'no'} finished runs in {str(folder)!r}; "
        f"there: {', '.join(keys[:3]) or 'none'}",
    )
    return kept[0]


class RunState(NamedTuple):
    """A run of a folder: where it is, `finished`, `unfinished` or `failed`, and why it failed."""

    home: Path
    state: str
    note: str = ""

    @property
    def key(self) -> str:
        """What names it."""
        return self.home.name

    @property
    def run(self) -> Run:
        """Its settings."""
        return asked_of(self.home)

    @property
    def step(self) -> int:
        """The step that it is at."""
        if (self.home / WEIGHTS).exists():
            return self.run.steps
        kept = self.home / CHECKPOINT
        return int(read_record(kept)["done"]) if kept.exists() else 0


def listed(folder: str | os.PathLike[str]) -> Iterator[RunState]:
    """The runs of a folder, by their keys; of each only the names of its files are read.

    Raises:
        InputError: there is no such folder.
    """
    wrong = "is no folder" if Path(folder).exists() else "does not exist"
    refuse(
        not Path(folder).is_dir(),
        f"runs folder {str(folder)!r} {wrong}; accepted: one that farfield train has made",
    )
    for name in sorted(entry.name for entry in os.scandir(folder) if entry.is_dir()):
        home = Path(folder) / name
        files = os.listdir(home)
        if ASKED not in files:
            continue
        if FAILED in files:
            yield RunState(home, "failed", (home / FAILED).read_text().partition("\n")[0])
        else:
            yield RunState(home, "finished" if WEIGHTS in files else "unfinished")
