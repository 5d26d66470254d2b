"""Checkpoints: the whole state of a training, from which it continues bit for bit.

    <run>/checkpoint-<step>.safetensors     weights, optimiser state, random state
    <run>/checkpoint.json                   written last: step, losses, SHA-256 of the tensors

The JSON names the tensors it belongs to, and the checkpoint before is removed only after it is in
place. A kill at any moment leaves one whole checkpoint, the old or the new.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch
from torch import Tensor, nn

from farfield.validation.json_files import CorruptFile, read_json, write, write_json


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
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    for index, slots in optimise.state_dict()["state"].items():
        tensors |= {f"optimiser.{index}.{name}": value for name, value in slots.items()}
    whole = {name: value.detach().cpu().contiguous() for name, value in (tensors | random).items()}
    place = checkpoint_file(folder, step)
    sealed = {"step": step, "record": record, "tensors_sha256": write_tensors(place, whole)}
    write_json(folder / "checkpoint.json", sealed)
    for other in folder.glob("checkpoint-*.safetensors"):
        if other != place:
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


def write_tensors(place: Path, tensors: dict[str, Tensor]) -> str:
    """Write tensors; returns the SHA-256 of the file."""
    content = safetensors.torch.save(tensors)
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


def restore(checkpoint: Checkpoint, model: nn.Module, optimise: torch.optim.Optimizer) -> None:
    """Put a checkpoint's state into a model, its optimiser and torch's random generators.

    Raises:
        CorruptFile: a tensor is missing, is of another shape, or does not belong to the model.
    """
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "optimiser": {}, "random": {}}
    for name, value in checkpoint.tensors.items():
        part, _, rest = name.partition(".")
        parts.setdefault(part, {})[rest] = value
    what = f"the checkpoint of step {checkpoint.step}"
    require_tensors(model, parts["model"], what)
    state = optimise.state_dict()
    slots: dict[int, dict[str, Tensor]] = {}
    for name, value in parts["optimiser"].items():
        index, _, slot = name.partition(".")
        slots.setdefault(int(index), {})[slot] = value
    known = {index for group in state["param_groups"] for index in group["params"]}
    if checkpoint.step > 0 and set(slots) != known:
        raise CorruptFile(
            f"{what} has optimiser state of {len(slots)} parameters, the model has {len(known)}"
        )
    model.load_state_dict(parts["model"])
    optimise.load_state_dict({**state, "state": slots})
    torch.set_rng_state(parts["random"]["cpu"])
    if "cuda" in parts["random"] and torch.cuda.is_available():
        torch.cuda.set_rng_state(parts["random"]["cuda"])


def require_tensors(model: nn.Module, given: dict[str, Tensor], what: str) -> None:
    """Raise CorruptFile, in one line, unless the tensors are those of the model."""
    own = model.state_dict()
    missing, extra = sorted(own.keys() - given.keys()), sorted(given.keys() - own.keys())
    other = [k for k in own.keys() & given.keys() if own[k].shape != given[k].shape]
    for names, wrong in ((missing, "lacks"), (extra, "has unknown"), (other, "has misshapen")):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise CorruptFile(f"{what} {wrong} tensor {names[0]!r}{more}")


def set_aside(folder: Path) -> None:
    """Rename the checkpoint of a run so that it is kept, and read no more."""
    for path in folder.glob("checkpoint*"):
        if path.suffix != ".corrupt":
            os.replace(path, path.with_name(path.name + ".corrupt"))


def remove(folder: Path) -> None:
    """Remove the checkpoint of a finished run."""
    for path in (folder / "checkpoint.json", *folder.glob("checkpoint-*.safetensors")):
        path.unlink(missing_ok=True)
