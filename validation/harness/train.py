"""Training: AdamW, warm-up, clipping, one straight loop; its reports, its logs, its checkpoints.

The rows of step `t` depend on the seed and on `t` alone, so a run goes on from any step. A
checkpoint is one file that takes the place of the one before: weights, the optimiser's state, and
the history. From it a training goes on bit for bit on a CPU. It holds only
states whose losses and gradients were seen to be finite.

On a GPU the model is compiled whole. Tables and block masks are made outside, once a length
where nothing of them learns, and no step waits for the device but those that report. Under
`torchrun` each process takes its rows of every batch.
"""

from __future__ import annotations

import csv
import json
import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.encodings.python_files import load
from farfield.theory.files import write
from farfield.validation.harness.attention import flushed
from farfield.validation.harness.data import NOT_ASKED, Data
from farfield.validation.harness.model import Prepared, Transformer, adds
from farfield.validation.harness.own import own, whose
from farfield.validation.harness.settings import Run
from farfield.validation.optional import first_line, library
from farfield.validation.progress import Progress, silent

REPORT = 20  # steps between reports, over which losses are averaged
TIMED, LONG = 3, 10.0  # steps that are timed, and seconds of a training that are said by them
HELD_OUT = 10  # times that the held-out loss is measured in a training
FLOOR = 0.05  # the cosine ends at this share of the peak
PEAK_FLOPS = {"H100": 989e12, "H200": 989e12, "A100": 312e12}  # dense, in bfloat16


class Report(NamedTuple):
    """How far a training is: after `step` steps, with the mean `loss` in nats a token since the
    report before, the `held_out` loss where it was measured, the rate `lr`, and the speed."""

    step: int
    loss: float
    held_out: float | None
    lr: float
    tokens_per_second: float
    seconds: float

    @classmethod
    def at(cls, run: Run, done: int, loss: float, held: float | None, seconds: float) -> Report:
        """After this many steps of a run, which took this many seconds."""
        speed = done * run.batch * run.length / seconds
        return cls(done, loss, held, learning_rate(done - 1, run), speed, seconds)


def learning_rate(step: int, run: Run) -> float:
    """The rate at a step counted from 0: a linear warm-up, then the schedule.

    The warm-up takes at most a fifth of the steps, but before `linear`, where it takes what the
    run says.

    >>> [round(learning_rate(s, Run(encoding="alibi")), 6) for s in (0, 49, 399)]
    [4e-05, 0.002, 0.0001]
    """
    warmup = run.warmup if run.schedule == "linear" else min(run.warmup, run.steps // 5)
    if step < warmup:
        return run.lr * (step + 1) / warmup
    if run.schedule == "inverse sqrt":
        return run.lr * math.sqrt(max(1, warmup) / (step + 1))
    done = (step + 1 - warmup) / max(1, run.steps - warmup)
    if run.schedule == "linear":
        return run.lr * (1 - done)
    return run.lr * (FLOOR + (1 - FLOOR) * (1 + math.cos(math.pi * done)) / 2)


def adamw(model: Transformer, run: Run) -> torch.optim.AdamW:
    """The optimiser; only matrices decay, not norms nor learned biases."""
    learned = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in learned if p.ndim >= 2], "weight_decay": run.weight_decay},
        {"params": [p for p in learned if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=run.lr, betas=run.betas, eps=run.epsilon, fused=True)


OPTIMIZERS = {"adamw": adamw}
"""By name. One of the user's own, `FILE.py:NAME`, is called in the same way, and keeps tensors:

    def momentum(model, run):
        return torch.optim.SGD(model.parameters(), lr=run.lr, momentum=0.9)

Each step sets the rate of all its groups.
"""


def optimizer(model: Transformer, run: Run) -> torch.optim.Optimizer:
    """What a run is optimised by.

    Raises:
        InputError: the user's own code has no such function, or it raises.
    """
    if run.optimizer in OPTIMIZERS:
        return OPTIMIZERS[run.optimizer](model, run)
    code = own(run.optimizer)
    try:
        made = getattr(load(code.path), code.name)(model, run)
    except (AttributeError, TypeError, ValueError) as error:
        said = whose(error, [code]) or f"{code.name}: {error}"
        raise InputError(f"{said}; accepted: a function of a model and a run") from None
    refuse(
        not isinstance(made, torch.optim.Optimizer),
        f"{code.name} returns {made!r:.60}; accepted is an optimiser of torch",
    )
    return made


def operations(run: Run, vocabulary: int) -> int:
    """Floating-point operations of the products for one token of training [PaLM, App. B].

    With width `d`, `L` layers, length `n` and vocabulary `V`, three times `24 L d^2` of the
    matrices, `2 L d (n + 1)` of the half of the attention that causality leaves, and `2 d V` of the
    scores.

    >>> operations(Run(encoding="alibi", layers=12, width=768, heads=12, length=512), 50_257)
    769559040
    """
    d, layers = run.width, run.layers
    return 3 * (24 * layers * d**2 + 2 * layers * d * (run.length + 1) + 2 * d * vocabulary)


@flushed()
def train(
    model: Transformer,
    data: Data,
    run: Run,
    *,
    checkpoint: Path | None = None,
    every: float = 30.0,
    log: str | None = None,
    progress: Progress = silent,
) -> list[Report]:
    """Train a model in place to predict the next token; it ends in evaluation mode.

    Args:
        model: with fresh weights, on its device.
        data: a text, or rows of a task.
        run: the schedule.
        checkpoint: the file that is gone on from, and kept; None for none.
        every: seconds between checkpoints, from 0 (each step).
        log: `NAME.jsonl` or `NAME.csv`, which gets a line a report; else a folder for TensorBoard.
        progress: called after each step; once with how long a training of more than ten seconds
            will take, by its first steps.

    Raises:
        InputError: a loss or gradient that is not finite, a damaged checkpoint, a full disk.
    """
    device, optimiser, losses = model.device, optimizer(model, run), list[Tensor]()
    with together(model) as process, torch.random.fork_rng([device] * (device.type == "cuda")):
        history, first = list[Report](), 0
        if checkpoint is not None and checkpoint.exists():
            first, history, losses = resume(checkpoint, model, optimiser)
        scores = scorer(model, process.forward, run)
        report = reporter(log if process.rank == 0 else None, history)
        saved = time.perf_counter()
        began = saved - (history[-1].seconds if history else 0.0)
        foretell = foretold(run, first, progress)
        model.train()
        for done, step in enumerate(range(first, run.steps), first + 1):
            seen = stepped(model, optimiser, scores, data, run, step, process)
            losses.append(seen)
            if done % REPORT == 0 or done == run.steps:
                each = finite(losses, done, run)
                losses.clear()
                mean = process.mean(sum(each) / len(each))
                held = held_out(model, scores, data, run) if _due(done, run) else None
                history.append(Report.at(run, done, mean, held, time.perf_counter() - began))
                report(history[-1])
            late = time.perf_counter() - saved >= every and done < run.steps
            if checkpoint is not None and process.rank == 0 and late:
                finite(losses, done, run)
                keep(checkpoint, model, optimiser, done, history, losses)
                saved = time.perf_counter()
            progress("train", done, run.steps, note(history, run, model))
            foretell(done, seen)
    model.eval()
    return history


Scores = Callable[[Tensor], Tensor]


def stepped(
    model: Transformer,
    optimiser: torch.optim.Optimizer,
    scores: Scores,
    data: Data,
    run: Run,
    step: int,
    process: Process,
) -> Tensor:
    """Take a step of a training; its loss and the norm of its gradient, on the device."""
    for group in optimiser.param_groups:
        group["lr"] = learning_rate(step, run)
    if run.dropout:  # it depends on the step alone, as the rows do
        torch.manual_seed(_seed(run.seed, step, process.rank))
    rows, targets = batch(data, run, step, process, model.device)
    loss = backward(scores, rows, targets, process.size, process.apart)
    norm = nn.utils.clip_grad_norm_(model.parameters(), run.clip)
    optimiser.step()
    optimiser.zero_grad()
    model.project()
    return torch.stack([loss, norm.to(loss)])


def foretold(run: Run, first: int, progress: Progress) -> Callable[[int, Tensor], None]:
    """What is told each step, and says by the first ones how long a training takes that is long."""
    timed = list[float]()

    def tell(done: int, seen: Tensor) -> None:
        if done - first in (1, TIMED):
            seen[0].item()  # a GPU is done with the step
            timed.append(time.perf_counter())
            left = (timed[-1] - timed[0]) / (TIMED - 1) * (run.steps - done)
            if left > LONG:
                said = f"about {duration(left)} for {run.steps:,} steps, by the first {TIMED}"
                progress("train", 0, 0, said)

    return tell


def scorer(model: Transformer, forward: nn.Module, run: Run) -> Scores:
    """What gives the scores of a batch.

    On a GPU the model is compiled whole. A module of the user's own is compiled a chunk of queries
    at a time, since the graph of a whole row would grow with it.
    """
    flex = model.fused
    learned = any(p.requires_grad for p in model.biases.parameters())
    prepared: dict[int, list[Prepared]] = {}
    if flex:
        torch._dynamo.reset()  # graphs of the runs before
    if flex and not any(map(adds, model.biases)):
        model.compile(fullgraph=True, dynamic=False)

    def scores(tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        if flex and (learned or length not in prepared):
            prepared[length] = model.prepare(length, flex=True)
        low = run.precision == "bfloat16"
        with torch.autocast(model.device.type, torch.bfloat16, enabled=low):
            logits: Tensor = forward(tokens, prepared=prepared.get(length))
        return logits.float() if low else logits

    return scores


def backward(
    scores: Scores,
    parts: list[tuple[Tensor, Tensor]],
    asked: int,
    size: int,
    apart: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Tensor:
    """Add the gradients of the parts of a batch; the loss of all, on the device.

    Gradients are averaged over processes, so each counts `size` times; they meet once, after the
    last part, and those before are computed `apart`.
    """
    losses = []
    for at, (x, y) in enumerate(parts, 1):
        with nullcontext() if at == len(parts) else apart():
            nats = cross_entropy(
                scores(x).flatten(0, 1), y.flatten(), ignore_index=NOT_ASKED, reduction="sum"
            )
            (nats * (size / asked)).backward()
        losses.append(nats.detach() / asked)
    return torch.stack(losses).sum()


def batch(
    data: Data, run: Run, step: int, process: Process, device: torch.device
) -> tuple[list[tuple[Tensor, Tensor]], int]:
    """The rows of a step that a process runs, in parts, and how many targets the whole step has.

    On a GPU they are copied while it works on the step before.
    """
    inputs, targets = data.batch(run.seed, step, run.batch, run.length)
    rows = run.batch // run.accumulate // process.size
    refuse(
        rows * run.accumulate * process.size != run.batch,
        f"batch {run.batch} in {run.accumulate} parts of {process.size} processes; accepted is a "
        "multiple",
    )
    mine = [torch.from_numpy(part[process.rank :: process.size]) for part in (inputs, targets)]
    if device.type == "cuda":
        mine = [part.pin_memory().to(device, non_blocking=True) for part in mine]
    x, y = (part.split(rows) for part in mine)
    return list(zip(x, y, strict=True)), int((targets != NOT_ASKED).sum())


@torch.no_grad()
def held_out(model: Transformer, scores: Scores, data: Data, run: Run) -> float:
    """Nats a token on as many held-out rows as a step has."""
    model.eval()
    held = (torch.from_numpy(x).to(model.device) for x in data.held(run.batch, run.length))
    inputs, targets = (part.split(run.batch // run.accumulate) for part in held)
    losses = [
        cross_entropy(scores(x).flatten(0, 1), y.flatten(), reduction="sum").double()
        for x, y in zip(inputs, targets, strict=True)
    ]
    model.train()
    asked = sum(int((y != NOT_ASKED).sum()) for y in targets)
    return float(torch.stack(losses).sum()) / asked


def finite(losses: list[Tensor], done: int, run: Run) -> list[float]:
    """The losses since the last report, read from the device.

    Raises:
        InputError: one of them is no number, or its gradient is not; the line names the step.
    """
    table = torch.stack(losses).tolist() if losses else []
    for step, (loss, norm) in enumerate(table, done - len(table) + 1):
        what, value = ("loss", loss) if not math.isfinite(loss) else ("gradient", norm)
        refuse(
            not math.isfinite(value),
            f"the {what} is {value} at step {step} of {run.steps} (lr "
            f"{learning_rate(step - 1, run):.3g}); accepted: a smaller lr, or a "
            "bias that is milder or has a gradient at this step's values",
        )
    return [loss for loss, _ in table]


# -- several processes, random state, reports -----------------------------------------------------


class Process(NamedTuple):
    """What runs the model, and which of how many processes this is."""

    forward: nn.Module
    rank: int = 0
    size: int = 1

    def apart(self) -> AbstractContextManager[object]:
        """While gradients are not averaged over processes."""
        several = isinstance(self.forward, DistributedDataParallel)
        return self.forward.no_sync() if several else nullcontext()

    def mean(self, loss: float) -> float:
        """The loss of all processes; each knows the part of its rows."""
        if self.size == 1:
            return loss
        shared = torch.tensor(loss, device=next(self.forward.parameters()).device)
        torch.distributed.all_reduce(shared)
        return float(shared)


@contextmanager
def together(model: Transformer) -> Iterator[Process]:
    """Under `torchrun`, the model as one of several processes train it; else alone."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield Process(model)
        return
    torch.distributed.init_process_group("nccl" if model.device.type == "cuda" else "gloo")
    try:
        forward = DistributedDataParallel(model)
        yield Process(forward, torch.distributed.get_rank(), torch.distributed.get_world_size())
    finally:
        torch.distributed.destroy_process_group()


def _seed(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


def _due(done: int, run: Run) -> bool:
    """Whether the held-out loss is measured."""
    often = max(REPORT, run.steps // HELD_OUT // REPORT * REPORT)
    return done % often == 0 or done == run.steps


def note(history: list[Report], run: Run, model: Transformer) -> str:
    """What a training shows: losses, speed, the share of a GPU's arithmetic, the time left."""
    if not history:
        return ""
    last = history[-1]
    held = [f"held out {r.held_out:.3f}" for r in history if r.held_out is not None]
    parts = [f"loss {last.loss:.3f}", *held[-1:], f"{last.tokens_per_second:,.0f} tokens/s"]
    if model.device.type == "cuda":
        name = torch.cuda.get_device_name(model.device)
        done = operations(run, model.vocabulary) * last.tokens_per_second
        shares = (done / peak for gpu, peak in PEAK_FLOPS.items() if gpu in name)
        parts += [f"{share:.1%} of its arithmetic" for share in shares]
    left = (run.steps - last.step) * run.batch * run.length / last.tokens_per_second
    return ", ".join([*parts, f"{duration(left)} left"])


def duration(seconds: float) -> str:
    """Minutes and seconds.

    >>> duration(122.5), duration(8)
    ('2 min 2 s', '8 s')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min " * (minutes > 0) + f"{rest} s"


LOGS = (".jsonl", ".csv")
"""Endings of a log that is one file."""


def require_log(log: str | None) -> None:
    """Raise InputError for a file in a folder that is not there."""
    place = Path(log or ".").parent
    refuse(
        log is not None and log.endswith(LOGS) and not place.is_dir(),
        f"log {log!r} cannot be written: there is no folder {str(place)!r}",
    )


def reporter(log: str | None, history: Sequence[Report] = ()) -> Callable[[Report], None]:
    """What writes reports: a file of JSON lines or CSV, or a folder for TensorBoard.

    It begins with the reports of the history, in place of what was written after them.

    Raises:
        InputError: the file cannot be written to; TensorBoard is not installed.
    """
    if log is None:
        return lambda report: None
    if not log.endswith(LOGS):
        library("tensorboard", "--log FOLDER")
        last = history[-1].step if history else 0
        board = library("torch.utils.tensorboard", "--log FOLDER").SummaryWriter
        writer = board(log, purge_step=last + 1)

        def show(report: Report) -> None:
            for name, value in report._asdict().items():
                if value is not None and name != "step":
                    writer.add_scalar(name, value, report.step)
            writer.flush()

        return show

    def add(reports: Iterable[Report], mode: str = "a") -> None:
        try:
            with open(log, mode, newline="") as file:
                if log.endswith(".jsonl"):
                    file.writelines(json.dumps(report._asdict()) + "\n" for report in reports)
                else:
                    titles = [] if file.tell() else [Report._fields]
                    csv.writer(file).writerows([*titles, *reports])
        except OSError as error:
            raise InputError(f"log {log!r} cannot be written: {error.strerror}") from None

    add(history, "w")
    return lambda report: add([report])


# -- files of tensors -----------------------------------------------------------------------------


def keep(
    path: Path,
    model: Transformer,
    optimiser: torch.optim.Optimizer,
    done: int,
    history: list[Report],
    losses: list[Tensor],
) -> None:
    """Write a checkpoint in place of the one before."""
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    for index, slots in optimiser.state_dict()["state"].items():
        held = {name: value for name, value in slots.items() if value is not None}
        tensors |= {f"optimiser.{index}.{name}": torch.as_tensor(x) for name, x in held.items()}
    if losses:
        tensors["losses"] = torch.stack(losses)
    write_tensors(path, tensors, {"done": done, "history": [list(report) for report in history]})


def resume(
    path: Path, model: Transformer, optimiser: torch.optim.Optimizer
) -> tuple[int, list[Report], list[Tensor]]:
    """Put the state of a checkpoint in place; the steps done, the reports, and losses since.

    Raises:
        InputError: the file is damaged, or is of another model.
    """
    tensors, text = read_tensors(path)
    record, weights, slots = json.loads(text), {}, defaultdict[int, dict[str, Tensor]](dict)
    for name, value in tensors.items():
        what, _, rest = name.partition(".")
        index, _, slot = rest.partition(".")
        if what == "model":
            weights[rest] = value
        elif what == "optimiser":
            slots[int(index)][slot] = value
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise InputError(
            f"{str(path)!r} is of another model ({first_line(error)}); accepted: the checkpoint "
            "of this run, or none"
        ) from None
    optimiser.load_state_dict({**optimiser.state_dict(), "state": slots})
    history = [Report(*report) for report in record["history"]]
    return record["done"], history, [*tensors.get("losses", torch.empty(0)).to(model.device)]


def write_tensors(path: Path, tensors: dict[str, Tensor], record: Mapping[str, object]) -> None:
    """Write tensors and a record, whole or not at all.

    Raises:
        InputError: the place cannot be written to.
    """
    whole = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    write(path, safetensors.torch.save(whole, {"record": json.dumps(record, sort_keys=True)}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], str]:
    """Tensors, and the JSON text beside them.

    Raises:
        InputError: the file is not what was written; it is not touched.
    """
    with _opened(path) as (file, text):
        return {name: file.get_tensor(name) for name in file.keys()}, text  # noqa: SIM118


def read_record(path: Path) -> Any:
    """What the JSON text beside tensors says; they are not read.

    Raises:
        InputError: the file is not what was written; it is not touched.
    """
    with _opened(path) as (_, text):
        return json.loads(text)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, str]]:
    try:
        with safetensors.safe_open(path, "pt") as file:
            yield file, (file.metadata() or {})["record"]
    except (OSError, KeyError, safetensors.SafetensorError):
        raise InputError(
            f"{str(path)!r} is not what was written; accepted: the file as it was, or none, and "
            "the run is made again"
        ) from None
