"""A model and the groups of rows of a text that the far field reads: lengths, losses, settings.

A group is some rows that follow each other. Groups are evenly spaced in the text.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from farfield.theory.answers.errors import refuse
from farfield.theory.answers.number import natural, plural
from farfield.validation.far_field.long_rows import Begun, Sampling, begin, far_losses
from farfield.validation.far_field.recall import Encode
from farfield.validation.harness.data import places, samples
from farfield.validation.harness.runs import asked_of
from farfield.validation.models.network import Network, losses
from farfield.validation.models.outline import RUN, ModelOutline
from farfield.validation.uniform_guess import uniform_guess

LEAST = 16  # tokens of a row
LONG = 512  # tokens of rows that are dear
DOUBLING, ONE_STAGE = Sampling(1024, 2), Sampling(1024, math.inf)
IN_ORDER = Sampling(1024, math.inf, ordered=True)


@dataclass(frozen=True)
class Settings:
    """How much of a text is read, and how.

    Args:
        groups: evenly spaced in the text; intervals are over them.
        rows: of a group, which share their far keys.
        last: targets at the end of a row.
        main, check, third: the three samplings. Group `g` adds `g` to their seeds.
    """

    groups: int = 12
    rows: int = 16
    last: int = 16
    main: Sampling = DOUBLING
    check: Sampling = ONE_STAGE
    third: Sampling = IN_ORDER


USUAL = Settings()
DEAR = Settings(groups=4, rows=5, last=128)
"""Of rows of 512 tokens or more."""
QUICK = Settings(groups=4, rows=1)
"""Of the gap probe."""


@dataclass(frozen=True)
class ModelOnText:
    """A model and the rows that are read.

    Args:
        outline: what its folder says.
        network: its layers.
        live: the model itself, whose rotations can be changed.
        groups: (groups, rows, length + 1).
        starts: where each group begins in the text.
        text: what they are taken from, one-dimensional.
        source: the text, in words.
        bos: the token that a text begins with, None for none.
        encode: its tokenizer; None without one.
        settings: how much is read.
        held: bytes at most of a model that is read one layer at a time; None for one in memory.
    """

    outline: ModelOutline
    network: Network
    live: Any
    groups: Tensor
    starts: Sequence[int]
    text: np.ndarray
    source: str
    bos: int | None
    encode: Encode | None
    settings: Settings
    held: int | None

    @property
    def length(self) -> int:
        """Tokens of a row."""
        return self.groups.shape[2] - 1

    @functools.cached_property
    def begun(self) -> list[Begun]:
        """The rows of each group by themselves."""
        return [begin(self.network, x, self.settings.last, self.bos) for x in self.groups]

    @functools.cached_property
    def base(self) -> Tensor:
        """Losses of each group in rows of its own, (groups, rows - 1, last)."""
        return torch.stack([begun.losses[1:] for begun in self.begun])

    @functools.cached_property
    def guess(self) -> str:
        """The warning about a model that knows no more than a uniform guess, by the first row of
        each of two groups."""
        nats = losses(self.network, self.groups[:2, 0], self.length // 2).mean()
        return uniform_guess(float(nats), self.outline.vocabulary)

    def first(self, said: str) -> str:
        """The lines before rows are read, with the memory of a model that does not fit."""
        if self.held is None:
            return said
        layers = "the model does not fit into memory, so its layers are read one at a time"
        return f"{said}; {layers}, {self.held >> 20:,} MiB at most"

    def turns(self) -> bool:
        """Whether its positions are rotations."""
        return any(layer.rotation is not None for layer in self.outline.layers)

    def ratios(
        self,
        lengths: Sequence[int],
        sampling: Sampling,
        network: Network | None = None,
        step: Callable[[str], None] = lambda note: None,
    ) -> dict[int, np.ndarray]:
        """Log ratios to the unchanged model in rows of its own, one a group, by length."""
        each: dict[int, list[float]] = {n: [] for n in (self.length, *lengths)}
        for g, rows in enumerate(self.groups):
            drawn = replace(sampling, seed=sampling.seed + g)
            own = network is None or network is self.network
            losses = far_losses(
                network or self.network,
                rows,
                lengths,
                drawn,
                self.settings.last,
                self.bos,
                self.begun[g] if own else None,
            )
            for n, at in losses.items():
                each[n].append(float((at - self.base[g]).mean()))
            step(f"log ratio {each[max(each)][-1]:+.3f} at {max(each):,}")
        return {n: np.array(x) for n, x in each.items()}


def reach_of(subject: ModelOnText, to: Any) -> int:
    """The length that is asked for, checked."""
    far, longest = natural(to, "to"), subject.network.longest
    refuse(
        far < 2 * subject.length,
        f"to = {far} with rows of {subject.length} tokens; accepted is twice as much or more",
    )
    refuse(
        longest is not None and far > longest,
        f"{subject.outline.name} has vectors for {longest} positions, {far} are asked for; "
        "accepted: to that length",
    )
    return far


def subject_of(
    model: Any,
    text: Any,
    length: Any,
    settings: Settings | None = None,
    device: Any = None,
    dtype: Any = None,
) -> ModelOnText:
    """The model and the rows of a text: of the held-out part for a run, else of all of it.

    Without a type, weights in bfloat16 stay so where the device multiplies it, and quantised ones
    become so.

    Raises:
        InputError: as `foresee`.
    """
    from farfield.validation.models.folder import describe
    from farfield.validation.models.opened import network_of, open_model, openable
    from farfield.validation.models.text import encoder_of, text_of

    outline = describe(model)
    openable(outline, device, dtype)  # before a text is read
    size = min(outline.trained or 1024, 1024) if length is None else natural(length, "length")
    settings = settings or (USUAL if size < LONG else DEAR)
    if dtype is None and outline.network is None and _in_bfloat16(outline, device):
        dtype = "bfloat16"
    if outline.kind == RUN:
        read = text_of(outline, asked_of(outline.path).text if text is None else text)
        tokens, encode = read.held_out, None
    else:
        read = text_of(outline, text)
        tokens, encode = np.concatenate([read.train, read.held_out]), encoder_of(outline)
    groups, starts = _groups(tokens, read.source, size, settings)
    opened = open_model(outline, tokens=settings.rows * size, device=device, dtype=dtype)
    return ModelOnText(
        outline=outline,
        network=network_of(opened),
        live=opened.network,
        groups=groups,
        starts=starts,
        text=tokens,
        source=read.source,
        bos=read.bos,
        encode=encode,
        settings=settings,
        held=opened.held,
    )


def _in_bfloat16(outline: ModelOutline, device: Any) -> bool:
    """Whether weights are in bfloat16 or quantised, and the device multiplies it."""
    named = outline.values.get("dtype", outline.values.get("torch_dtype"))
    quantised = outline.values.get("general.file_type", 0) not in (0, 1)  # float32, float16
    other = device is not None and not str(device).startswith("cpu")
    multiplies = other or torch.cpu._is_avx512_bf16_supported()
    return (named == "bfloat16" or quantised) and multiplies


def _groups(
    text: np.ndarray, source: str, length: int, settings: Settings
) -> tuple[Tensor, list[int]]:
    """Rows of each group, (groups, rows, length + 1), and where groups begin."""
    refuse(
        length < LEAST, f"rows of {plural(length, 'token')}; accepted are rows of {LEAST} or more"
    )
    most = settings.rows * length
    refuse(
        len(text) <= most,
        f"{source} has {len(text)} tokens to read, {settings.rows} rows of {length} take "
        f"{most + 1}; accepted: a longer text, or a shorter length",
    )
    starts = places(len(text), settings.groups, most).tolist()
    refuse(len(starts) < 2, f"{source} has one group of rows; accepted: a longer text")
    long = torch.from_numpy(samples(text, settings.groups, most))
    return long.unfold(1, length + 1, length), starts
