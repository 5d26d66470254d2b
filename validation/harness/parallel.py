"""Data-parallel training: one model, its batches divided among processes.

    torchrun --nproc-per-node 2 -m farfield.cli train alibi --preset base --runs runs

All processes draw the same batch, which the seed and the step decide. Each runs its own rows, and
their gradients are summed, over gloo on CPUs and NCCL on GPUs. Process 0 leads: it alone has the
lock of the run, reads and writes checkpoints, and measures. The others begin in the state that it
sends them. A run continues with any number of processes.

The gradient is the sum that one process would make, in another order. Results therefore agree with
those of one process to rounding, not bit for bit. With dropout, whose masks each process draws for
its own rows, they agree in distribution.
"""

from __future__ import annotations

import datetime
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch import distributed as dist

from farfield.theory.answers.errors import refuse

_PATIENCE = datetime.timedelta(days=7)  # a run may wait for a lock; torchrun ends what is left over


class NothingToTrain(Exception):
    """The process that leads has found its run finished."""


def rank() -> int:
    """The number of this process, from 0; 0 where there is only one."""
    return dist.get_rank() if dist.is_initialized() else 0


def size() -> int:
    """The number of processes."""
    return dist.get_world_size() if dist.is_initialized() else 1


@contextmanager
def together(device: torch.device) -> Iterator[bool]:
    """Join the processes that torchrun started, if it did; says whether this one leads.

    Args:
        device: where this process computes; on GPUs each takes the one of its local rank.

    Raises:
        InputError: there are more processes on this machine than GPUs.
    """
    if int(os.environ.get("WORLD_SIZE", 1)) == 1:
        yield True
        return
    if device.type == "cuda":
        local, found = int(os.environ.get("LOCAL_RANK", 0)), torch.cuda.device_count()
        refuse(
            local >= found,
            f"process {local + 1} of this machine has no GPU of its own; accepted: "
            f"--nproc-per-node of at most {found}",
        )
        torch.cuda.set_device(local)
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, timeout=_PATIENCE)
    try:
        yield rank() == 0
    finally:  # after an error torchrun ends the others
        dist.destroy_process_group()


def nothing_to_train() -> None:
    """Tell the others, who wait in `begin`, that there is no training."""
    if size() > 1:
        dist.broadcast_object_list([None], 0)


def begin(model: nn.Module, optimise: torch.optim.Optimizer, first: int, rows: Tensor) -> int:
    """Begin where process 0 does: with its weights, its optimiser's state and its step.

    Args:
        model: the weights.
        optimise: their optimiser.
        first: steps done, in process 0.
        rows: inputs of step 0, which are the same everywhere or nothing is.

    Returns:
        The steps done.

    Raises:
        NothingToTrain: process 0 does not train.
        InputError: this process reads another text than process 0.
    """
    if size() == 1:
        return first
    own = zlib.crc32(np.ascontiguousarray(rows.numpy()).data)
    said: list[Any] = [(first, own, model.state_dict(), optimise.state_dict())]
    dist.broadcast_object_list(said, 0)
    if said == [None]:
        raise NothingToTrain
    first, theirs, weights, state = said[0]
    refuse(
        theirs != own,
        f"process {rank()} reads another text than process 0; accepted: the same text, and for "
        "the standard library's the same Python, on each machine",
    )
    if rank() > 0:
        model.load_state_dict(weights)
        optimise.load_state_dict(state)
    return first


def sum_gradients(model: nn.Module) -> None:
    """Give each process the gradient of the whole batch: the sum over all processes."""
    if size() > 1:
        for parameter in model.parameters():
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad)


def own_rows(rows: Tensor) -> Tensor:
    """The rows of a batch that this process runs; sizes differ by one where it does not divide."""
    count, ranks = len(rows), size()
    refuse(
        count < ranks,
        f"a batch of {count} sequences for {ranks} processes; accepted: at most {count}",
    )
    return rows[count * rank() // ranks : count * (rank() + 1) // ranks]


def total(values: Tensor) -> Tensor:
    """Numbers, shape (n,); in a process group their sum over all processes, shape (1,)."""
    if size() == 1:
        return values
    summed = values.double().sum(0, keepdim=True)
    dist.all_reduce(summed)
    return summed


def seed_for(seed: int, first: int) -> int:
    """The seed of torch's generators in this process: dropout differs between processes.

    >>> seed_for(7, 0)
    7
    """
    if rank() == 0:
        return seed
    return int(np.random.SeedSequence([seed, first, rank()]).generate_state(1, np.uint64)[0])
