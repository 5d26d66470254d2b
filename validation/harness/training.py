"""Training of a small language model: AdamW, warm-up and cosine, clipping, one loop.

The text of step `t` depends on the seed and on `t` alone, so a run can be continued from any step.
A checkpoint holds a state whose loss was seen to be finite: it is written between the loss of a
step and its update, so a training that ends in numbers that are none leaves a good state behind.
From a checkpoint a training continues bit for bit:

    <run>/checkpoint-<step>.safetensors     weights, optimiser state, random state
    <run>/checkpoint.json                   written last: step, losses, SHA-256 of the tensors

The JSON names the tensors it belongs to, and the checkpoint before is removed only after it is in
place. A kill at any moment leaves one whole checkpoint, the old or the new.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from farfield.theory.answers.errors import InputError
from farfield.validation.harness import parallel
from farfield.validation.harness.attention import flex_works
from farfield.validation.harness.model import Transformer
from farfield.validation.harness.presets import Preset
from farfield.validation.harness.tasks import Task
from farfield.validation.json_files import CorruptFile, read_json, write, write_json
from farfield.validation.progress import Progress, silent

_FLOOR = 0.05  # the cosine ends at this share of the peak
_SMOOTHED = 20  # steps that the reported losses average over
UNASKED = -100
"""In place of a target that is no answer."""

_SHARE = 20  # a checkpoint is not written again before so many times what writing it took


class TrainingDiverged(InputError):
    """What was asked does not train: the loss or its gradient is no finite number. One line says
    where, and which state is kept."""


@dataclass(frozen=True)
class Training:
    """How a training went.

    Args:
        steps, tokens: of the whole run.
        losses: pairs (step, mean loss in nats a byte of the steps since the pair before).
        seconds, cpu_seconds: wall time, and processor time summed over threads; both over all
            parts of a training that was resumed.
        resumed: the steps after which it was resumed from a checkpoint.
    """

    steps: int
    tokens: int
    losses: tuple[tuple[int, float], ...]
    seconds: float
    cpu_seconds: float
    resumed: tuple[int, ...] = ()


def learning_rate(step: int, preset: Preset) -> float:
    """The rate at a step counted from 0: linear warm-up to the peak, then the preset's schedule.

    The cosine ends at 5 % of the peak; the warm-up takes at most a fifth of the steps, except that
    of `linear`, which takes what the preset says.

    >>> from farfield.validation.harness.presets import preset
    >>> [round(learning_rate(s, preset("demo")), 6) for s in (0, 49, 399)]
    [4e-05, 0.002, 0.0001]
    """
    warmup = preset.warmup
    if preset.schedule != "linear":
        warmup = min(warmup, preset.steps // 5)
    if step < warmup:
        return preset.learning_rate * (step + 1) / warmup
    if preset.schedule == "inverse sqrt":
        return preset.learning_rate * math.sqrt(max(1, warmup) / (step + 1))
    done = (step + 1 - warmup) / max(1, preset.steps - warmup)
    if preset.schedule == "linear":
        return preset.learning_rate * (1 - done)
    return preset.learning_rate * (_FLOOR + (1 - _FLOOR) * (1 + math.cos(math.pi * done)) / 2)


def batch(data: np.ndarray | Task, preset: Preset, seed: int, step: int) -> tuple[Tensor, Tensor]:
    """Inputs and the tokens that follow them, int64, both of shape (batch, length); of a task,
    tokens that are no answers are `UNASKED`."""
    random = np.random.default_rng([seed, step])
    if isinstance(data, Task):
        found = data.rows(random, preset.batch, preset.length)
        rows = torch.from_numpy(found.tokens)
        return rows[:, :-1], rows[:, 1:].masked_fill(~torch.from_numpy(found.asked), UNASKED)
    starts = random.integers(len(data) - preset.length, size=preset.batch)
    rows = torch.from_numpy(data[starts[:, None] + np.arange(preset.length + 1)].astype(np.int64))
    return rows[:, :-1], rows[:, 1:]


def optimiser(model: Transformer, preset: Preset) -> torch.optim.AdamW:
    """AdamW; only matrices decay, not norms nor learned biases."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": preset.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        groups, lr=preset.learning_rate, betas=preset.betas, eps=preset.epsilon, fused=True
    )


class _Losses:
    """The losses of a training: kept on the device, read every 20 steps.

    A step whose loss or gradient is not finite changes nothing, and no later step does. So the
    state is unchanged when the step is found.

    Fields:
        told: pairs (step, mean loss) so far.
        recent: losses since the last pair.
        failed: 1 where a step was not finite, on the device.
    """

    def __init__(self, device: torch.device) -> None:
        self.told: list[tuple[int, float]] = []
        self.recent: list[float] = []
        self.failed = torch.zeros((), device=device)
        self.pending: list[tuple[Tensor, dict[str, Tensor]]] = []

    def add(self, parts: list[Tensor], norm: Tensor, random: dict[str, Tensor]) -> None:
        """Those of a step: of its parts; with the gradient's norm, and how the step began."""
        losses = parallel.total(torch.stack(parts))
        values = torch.cat([losses, norm[None].to(losses)])
        self.pending.append((values, random))
        self.failed = torch.maximum(self.failed, (~values.isfinite().all()).float())

    def read(self, keeping: int = 0) -> tuple[str, int, dict[str, Tensor]] | None:
        """Read the pending values but the last few; names the value that is not finite, how many
        steps before the last, and how that step began."""
        count = len(self.pending)
        table = torch.stack([values for values, _ in self.pending]).tolist()
        for at, (*parts, norm) in enumerate(table):
            loss = sum(parts)
            if not math.isfinite(loss) or not math.isfinite(norm):
                what = "gradient" if math.isfinite(loss) else "loss"
                value = norm if what == "gradient" else loss
                return f"the {what} is {value}", count - 1 - at, self.pending[at][1]
            if at < count - keeping:
                self.recent.append(loss)
        self.pending = self.pending[count - keeping :]
        return None


def train(
    model: Transformer,
    data: np.ndarray | Task,
    preset: Preset,
    seed: int = 0,
    progress: Progress = silent,
    folder: Path | None = None,
    every: float = 30.0,
) -> Training:
    """Train a model in place to predict the next token.

    In a process group each process runs its rows of every batch; process 0 alone keeps
    checkpoints, and the others begin in its state (`farfield.validation.harness.parallel`).

    Args:
        model: with fresh weights.
        data: a text, `uint8`, shape (bytes,), longer than the training length; or a task, whose
            answers alone are learned.
        preset: the schedule.
        seed: of the order of the text, or of the rows.
        progress: called after each step.
        folder: where checkpoints are kept; one that is there is resumed. None keeps none.
        every: seconds between checkpoints, from 0 (each step).

    Raises:
        TrainingDiverged: the loss, or its gradient, is not finite.
        CorruptFile: the checkpoint in the folder was changed later.
        InputError: there are more processes than sequences in a batch.
    """
    model.train()
    optimise, device = optimiser(model, preset), model.device
    losses, resumed = _Losses(device), list[int]()
    first, kept, began = 0, None, _clock()
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        if folder is not None and (checkpoint := read_checkpoint(folder)) is not None:
            restore(checkpoint, model, optimise)
            first, record = checkpoint.step, checkpoint.record
            losses.told = [(step, loss) for step, loss in record["losses"]]
            losses.recent = record["recent"]
            began -= (record["seconds"], record["cpu_seconds"])
            resumed, kept = [*record["resumed"], first], checkpoint_file(folder, first)
        first = parallel.begin(model, optimise, first, batch(data, preset, seed, 0)[0])
        if parallel.rank() > 0:
            torch.manual_seed(parallel.seed_for(seed, first))
        scores = forward(model, preset)
        due = time.perf_counter() + every

        def keep(step: int, random: dict[str, Tensor]) -> Path:
            assert folder is not None
            record = {"losses": losses.told, "recent": losses.recent, "resumed": resumed}
            spent = dict(zip(("seconds", "cpu_seconds"), _clock() - began, strict=True))
            return write_checkpoint(folder, step, model, optimise, random, {**record, **spent})

        for step in range(first, preset.steps):
            random = random_state(device)
            parts = _backward(scores, batch(data, preset, seed, step), preset, device)
            parallel.sum_gradients(model)
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), preset.clip)
            losses.add(parts, norm, random)
            ended = len(losses.recent) + len(losses.pending) >= _SMOOTHED
            ended |= step + 1 == preset.steps
            saved = folder is not None and step > first and time.perf_counter() >= due
            if (ended or saved) and (found := losses.read(keeping=int(saved))) is not None:
                what, back, before = found
                if folder is not None and "gradient" in what:
                    kept = keep(step - back, before)
                state = "no state was kept"
                if kept is not None:
                    state = f"the last good state is kept as {kept.parent.name}/{kept.name}"
                rate = f" (learning rate {learning_rate(step - back, preset):.3g})"
                way = "a smaller rate or a milder bias may train"
                if what == "the gradient is nan":
                    rate, way = "", "a part of the model has no gradient at this step's values"
                raise TrainingDiverged(
                    f"{what} at step {step - back + 1} of {preset.steps}{rate}; {state}; {way}"
                )
            if saved:
                writing = time.perf_counter()
                kept = keep(step, random)
                due = time.perf_counter()
                due += max(every, _SHARE * (due - writing) if every else 0)
                losses.read()
            for group in optimise.param_groups:
                group["lr"] = learning_rate(step, preset)
            optimise.found_inf = losses.failed  # the step is not made where it is 1
            optimise.step()
            model.project()
            optimise.zero_grad()
            if ended:
                mean = round(sum(losses.recent) / len(losses.recent), 6)
                losses.told.append((step + 1, mean))
                losses.recent = []
            note = f"loss {losses.told[-1][1]:.3f}" if losses.told else ""
            progress("train", step + 1, preset.steps, note)
    model.eval()
    tokens = preset.steps * preset.batch * preset.length
    wall, processor = (round(float(seconds), 2) for seconds in _clock() - began)
    told = tuple(losses.told)
    return Training(preset.steps, tokens, told, wall, processor, tuple(resumed))


def _clock() -> np.ndarray:
    """Seconds of wall time, and of the processor."""
    return np.array([time.perf_counter(), time.process_time()])


def forward(model: Transformer, preset: Preset, **options: Any) -> Callable[..., Tensor]:
    """What gives the scores of a batch in training; compiled whole on a GPU, if it has a compiler.

    With options of `torch.compile` it is compiled on a CPU too.
    """
    device = model.device
    size = model.embedding.embedding_dim // model.layers[0].heads
    kind = getattr(torch, preset.precision)
    compiled = bool(options) or (device.type == "cuda" and flex_works(device, size, kind))
    if compiled:
        model.compile(fullgraph=True, **options)
    kept: tuple[Any, Any] | None = None

    def scores(tokens: Tensor, asked: Tensor | None = None) -> Tensor:
        nonlocal kept
        with torch.autocast(device.type, torch.bfloat16, enabled=preset.precision == "bfloat16"):
            if not compiled:
                return model(tokens, asked=asked)
            bias, mask = kept or model.given(tokens.shape[1], flex=device.type == "cuda")
            learned = any(isinstance(b, Tensor) and b.requires_grad for b in bias)
            kept = None if learned else (bias, mask)
            found: Tensor = model(tokens, bias, mask)
            return found if asked is None else found[asked]

    return scores


def _backward(
    scores: Callable[..., Tensor],
    rows: tuple[Tensor, Tensor],
    preset: Preset,
    device: torch.device,
) -> list[Tensor]:
    """The gradient of a batch; the loss of each of its parts, as it counts, on the device."""
    found = []
    answers = int((rows[1] != UNASKED).sum())  # of the processor
    for inputs, targets in _parts(rows, preset, device):
        if answers < rows[1].numel():
            asked = targets != UNASKED
            chosen = scores(inputs, asked).float()
            loss = cross_entropy(chosen, targets[asked], reduction="sum") / answers
        else:
            given = scores(inputs)
            given = given.float() if preset.precision == "bfloat16" else given
            loss = cross_entropy(given.flatten(0, 1), targets.flatten())
            loss = loss / (preset.batch / len(inputs))
        loss.backward()
        found.append(loss.detach())
    return found


def _parts(
    rows: tuple[Tensor, Tensor], preset: Preset, device: torch.device
) -> list[tuple[Tensor, Tensor]]:
    """Rows of a batch that this process runs, in parts no larger than one process would make."""
    most = preset.batch // preset.parts
    own = [parallel.own_rows(row) for row in rows]
    if device.type == "cuda":  # while the device works on the step before
        own = [row.pin_memory().to(device, non_blocking=True) for row in own]
    inputs, targets = (row.split(most) for row in own)
    return list(zip(inputs, targets, strict=True))


# -- checkpoints ----------------------------------------------------------------------------------

_SLOTS = ("step", "exp_avg", "exp_avg_sq")  # what AdamW keeps of a parameter


class Checkpoint(NamedTuple):
    """A state read back: steps done; `model.*`, `optimiser.*`, `random.*`; and what else the
    training wants to know again, in JSON form."""

    step: int
    tensors: dict[str, Tensor]
    record: dict[str, Any]


def random_state(device: torch.device) -> dict[str, Tensor]:
    """The state of torch's random generators that a model on this device draws from."""
    states = {"random.cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["random.cuda"] = torch.cuda.get_rng_state(device)
    return states


def checkpoint_file(folder: Path, step: int) -> Path:
    """The file of the tensors of a checkpoint."""
    return folder / f"checkpoint-{step}.safetensors"


def write_checkpoint(
    folder: Path,
    step: int,
    model: nn.Module,
    optimise: torch.optim.Optimizer,
    random: dict[str, Tensor],
    record: dict[str, Any],
) -> Path:
    """Write a checkpoint, then remove those before it.

    `random` is from `random_state`, of the moment the step began. The record, in JSON form, comes
    back as it is. Returns the file of the tensors.

    Raises:
        InputError: the folder cannot be written to; the checkpoint before is still there.
    """
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()} | random
    for index, slots in optimise.state_dict()["state"].items():
        tensors |= {f"optimiser.{index}.{name}": slots[name] for name in _SLOTS}
    place = checkpoint_file(folder, step)
    sealed = {"step": step, "record": record, "tensors_sha256": write_tensors(place, tensors)}
    write_json(folder / "checkpoint.json", sealed)
    for other in {*folder.glob("checkpoint-*.safetensors")} - {place}:
        other.unlink(missing_ok=True)
    return place


def read_checkpoint(folder: Path) -> Checkpoint | None:
    """The checkpoint of a run, None if there is none.

    Raises:
        CorruptFile: it was changed later.
    """
    if not (folder / "checkpoint.json").exists():
        return None
    sealed = read_json(folder / "checkpoint.json")
    tensors = read_tensors(checkpoint_file(folder, sealed["step"]), sealed["tensors_sha256"])
    return Checkpoint(sealed["step"], tensors, sealed["record"])


def restore(checkpoint: Checkpoint, model: nn.Module, optimise: torch.optim.Optimizer) -> None:
    """Put a checkpoint's state into a model, its optimiser and torch's random generators.

    Raises:
        CorruptFile: a tensor is missing, is of another shape, or does not belong to the model.
    """
    step, tensors, _ = checkpoint
    what, state = f"the checkpoint of step {step}", optimise.state_dict()
    own = {k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")}
    require_tensors(model, own, what)
    known = [index for group in state["param_groups"] for index in group["params"]] if step else []
    try:
        slots = {i: {slot: tensors[f"optimiser.{i}.{slot}"] for slot in _SLOTS} for i in known}
    except KeyError as lacking:
        raise CorruptFile(f"{what} lacks tensor {lacking}") from None
    model.load_state_dict(own)
    optimise.load_state_dict({**state, "state": slots})
    torch.set_rng_state(tensors["random.cpu"])
    if "random.cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["random.cuda"])


def write_tensors(place: Path, tensors: dict[str, Tensor]) -> str:
    """Write tensors; returns the SHA-256 of the file."""
    whole = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    content = safetensors.torch.save(whole)
    write(place, content)
    return hashlib.sha256(content).hexdigest()


def read_tensors(place: Path, sha256: str) -> dict[str, Tensor]:
    """Read what `write_tensors` wrote.

    Raises:
        CorruptFile: the file was changed later.
    """
    name = f"{place.parent.name}/{place.name}"
    try:
        content = place.read_bytes()
    except OSError:
        raise CorruptFile(f"{name} is not readable") from None
    if hashlib.sha256(content).hexdigest() != sha256:
        raise CorruptFile(f"{name} has changed since it was written")
    return safetensors.torch.load(content)


def require_tensors(model: nn.Module, given: dict[str, Tensor], what: str) -> None:
    """Raise CorruptFile, in one line, unless the tensors are those of the model."""
    own = model.state_dict()
    missing, extra = sorted(own.keys() - given.keys()), sorted(given.keys() - own.keys())
    other = [k for k in own.keys() & given.keys() if own[k].shape != given[k].shape]
    for names, wrong in ((missing, "lacks"), (extra, "has unknown"), (other, "has misshapen")):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise CorruptFile(f"{what} {wrong} tensor {names[0]!r}{more}")
