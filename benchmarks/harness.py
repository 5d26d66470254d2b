"""Speed and memory of the harness beside a plain model of the same size without a bias.

    python benchmarks/harness.py [training] [evaluation] [memory] [--lengths 128,512,2048]

The rival is a GPT as one writes it in an afternoon: torch's layers, causal fused attention, and a
dense mask where an edit of it adds a bias. All candidates run in turn in one process; the cells are
ratios of medians of its processor time, or of the growth of the peak of a fresh process. A step has
4,096 tokens. The model has 4 layers of 128, 8 heads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
import torch
from side_by_side import Row, fresh, in_turn, peak, program
from torch import Tensor, nn
from torch.nn import functional

from farfield.validation.harness.bias import model_of
from farfield.validation.harness.data import Text
from farfield.validation.harness.measure import token_losses
from farfield.validation.harness.settings import Run
from farfield.validation.harness.train import Process, adamw, backward, batch, scorer

NUMBERS = np.random.default_rng(0).integers(0, 250, 200_000).astype(np.uint8)
TEXT = Text("random bytes", NUMBERS, NUMBERS)
TOKENS, LAYERS, WIDTH, HEADS = 4096, 4, 128, 8
ENCODINGS = ("nope", "alibi", "kerple_log", "t5", "rope")


class PlainLayer(nn.Module):
    """Attention and an MLP; `kind` says which dense mask it adds."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.ln_attn, self.ln_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = (nn.Linear(WIDTH, n * WIDTH, bias=False) for n in (3, 1))
        self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)
        self.r1, self.r2 = (nn.Parameter(torch.rand(HEADS, 1, 1) + 0.1) for _ in range(2))

    def mask(self, length: int) -> Tensor | None:
        """Of the whole row, shape (heads, length, length)."""
        distance = torch.arange(length)[:, None] - torch.arange(length)
        n = distance.clamp(min=0)
        if self.kind == "dense alibi":
            bias = -(2.0 ** -torch.arange(1, HEADS + 1)[:, None, None]) * n
        elif self.kind == "dense kerple":
            bias = -self.r1 * torch.log1p(self.r2 * n)
        else:
            return None
        return bias.masked_fill(distance < 0, -math.inf)

    def forward(self, x: Tensor) -> Tensor:
        split = self.qkv(self.ln_attn(x)).split(WIDTH, -1)
        q, k, v = (y.unflatten(-1, (HEADS, -1)).transpose(1, 2) for y in split)
        mask = self.mask(x.shape[1])
        y = functional.scaled_dot_product_attention(q, k, v, mask, is_causal=mask is None)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.ln_mlp(x))))


class Plain(nn.Module):
    """The rival."""

    def __init__(self, kind: str = "plain") -> None:
        super().__init__()
        self.tokens = nn.Embedding(256, WIDTH)
        self.layers = nn.Sequential(*(PlainLayer(kind) for _ in range(LAYERS)))
        self.ln = nn.LayerNorm(WIDTH)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, tokens: Tensor, last: int = 0) -> Tensor:
        hidden = self.ln(self.layers(self.tokens(tokens)))[:, -last:]
        return functional.linear(hidden, self.tokens.weight)


def plain_step(kind: str, length: int) -> Callable[[], None]:
    """A step of training of the rival."""
    model = Plain(kind)
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.95), fused=True)

    def step() -> None:
        x, y = (torch.from_numpy(part) for part in TEXT.batch(0, 0, TOKENS // length, length))
        functional.cross_entropy(model(x).flatten(0, 1), y.flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()

    return step


def step_of(encoding: str, length: int) -> Callable[[], None]:
    """A step of training of the harness, as `train` makes it."""
    if encoding.startswith(("plain", "dense")):
        return plain_step(encoding, length)
    size = {"layers": LAYERS, "width": WIDTH, "heads": HEADS, "batch": TOKENS // length}
    asked = Run(encoding=encoding, length=length, **size)
    model = model_of(asked).train()
    optimiser, scores = adamw(model, asked), scorer(model, model, asked)

    def step() -> None:
        parts, targets = batch(TEXT, asked, 0, Process(model), model.device)
        backward(scores, parts, targets, 1)
        nn.utils.clip_grad_norm_(model.parameters(), asked.clip)
        optimiser.step()
        optimiser.zero_grad()
        model.project()

    return step


def relative(what: str, seconds: dict[str, float]) -> Row:
    """Times or sizes over the rival's."""
    return {"over a plain model": what, **{k: v / seconds["plain"] for k, v in seconds.items()}}


def training(lengths: list[int], repeats: int) -> Iterator[Row]:
    """A step, by the length of its rows."""
    for length in lengths:
        candidates = {name: step_of(name, length) for name in ("plain", *ENCODINGS)}
        yield relative(f"training, rows of {length}", in_turn(candidates, repeats))


def evaluation(lengths: list[int], repeats: int) -> Iterator[Row]:
    """The last token of a row predicted from all before it."""
    size = {"layers": LAYERS, "width": WIDTH, "heads": HEADS}
    for length in lengths:
        rows = TEXT.batch(0, 0, 1, length + 1)[0]
        rival = Plain().eval()

        @torch.no_grad()
        def plain(rival: Plain = rival, rows: np.ndarray = rows) -> None:
            logits = rival(torch.from_numpy(rows[:, :-1]), last=1)
            functional.cross_entropy(logits.flatten(0, 1), torch.from_numpy(rows[:, -1]))

        models = {name: model_of(Run(encoding=name, **size)).eval() for name in ENCODINGS}
        candidates: dict[str, Callable[[], object]] = {"plain": plain}
        for name, model in models.items():
            candidates[name] = lambda model=model, rows=rows: token_losses(model, rows, last=1)
        yield relative(f"last token, rows of {length}", in_turn(candidates, repeats))


def grown(encoding: str, length: int) -> float:
    """KiB that two steps of training add to the peak of this process."""
    torch.set_num_threads(1)
    step_of(encoding, 64)()
    before = peak()
    step = step_of(encoding, length)
    step()
    step()
    return float(peak() - before)


def memory(length: int) -> Row:
    """The growth of the peak in training."""
    names = ("plain", *ENCODINGS, "dense alibi", "dense kerple")
    return relative(f"peak, rows of {length}", {name: fresh(grown, name, length) for name in names})


def main(
    *parts: Literal["training", "evaluation", "memory"],
    lengths: str = "128,512,2048",
    evaluated: str = "1024,8192",
    repeats: int = 5,
) -> Iterator[Row]:
    """Measure some parts, all where none is named."""
    torch.set_num_threads(1)
    asked = parts or ("training", "evaluation", "memory")
    if "training" in asked:
        yield from training([int(n) for n in lengths.split(",")], repeats)
    if "evaluation" in asked:
        yield from evaluation([int(n) for n in evaluated.split(",")], repeats)
    if "memory" in asked:
        yield memory(int(lengths.split(",")[-1]))


if __name__ == "__main__":
    program(main)
