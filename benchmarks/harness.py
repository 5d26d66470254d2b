"""Speed and memory of the harness beside a plain GPT of the same size without a bias.

    python benchmarks/harness.py [training] [own] [evaluation] [memory] [--lengths 128,512,2048]

The rival is a GPT written like nanoGPT: one matrix for queries, keys and values, causal fused
attention, an MLP, a tied embedding. As an afternoon's edit adds them, it also has a dense mask of
ALiBi, KERPLE, FIRE or the gate of FoX. All candidates run in turn in one process of one thread.
The cells are ratios of medians of its processor time, or of the growth of the peak of a fresh
process. A step has 4,096 tokens, the model 4 layers of 128 with 8 heads. Denormals are flushed for
all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from side_by_side import Row, fresh, in_turn, peak, program
from torch import Tensor, nn
from torch.nn import functional

from farfield.validation.harness.attention import flushed
from farfield.validation.harness.data import Text
from farfield.validation.harness.measure import token_losses
from farfield.validation.harness.runs import model_of
from farfield.validation.harness.settings import Run
from farfield.validation.harness.train import Process, adamw, backward, batch, scorer

NUMBERS = np.random.default_rng(0).integers(0, 250, 200_000).astype(np.uint8)
TEXT = Text("random bytes", NUMBERS, NUMBERS)
TOKENS, LAYERS, WIDTH, HEADS = 4096, 4, 128, 8
GALLERY = Path(__file__).resolve().parents[1] / "docs" / "gallery"
ENCODINGS = {
    "nope": "nope",
    "alibi": "alibi",
    "steep": "[-n/2; -n; -2*n; -4*n; -n/4; -n/8; -n/16; -n/32]",
    "-log(1+n)": "-log(1+n)",
    "kerple_log": "kerple_log",
    "t5": "t5",
    "rope": "rope",
}
OWN = {"fire": f"{GALLERY}/fire.py:Fire", "fox": f"{GALLERY}/forget_gate.py:ForgetGate"}


class Attention(nn.Module):
    """Causal attention; with a kind, by a dense mask that is made for every row."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.c_attn = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.c_proj = nn.Linear(WIDTH, WIDTH, bias=False)
        self.r1, self.r2 = (nn.Parameter(torch.rand(HEADS, 1, 1) + 0.1) for _ in range(2))
        self.gate = nn.Linear(WIDTH, HEADS)
        self.mlp = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, HEADS))

    def mask(self, x: Tensor) -> Tensor | None:
        """Of the whole row, shape (heads, length, length), for the gate one a row of the batch."""
        length = x.shape[1]
        distance = torch.arange(length)[:, None] - torch.arange(length)
        n = distance.clamp(min=0)
        if self.kind == "dense alibi":
            bias = -(2.0 ** -torch.arange(1, HEADS + 1)[:, None, None]) * n
        elif self.kind == "dense kerple":
            bias = -self.r1 * torch.log1p(self.r2 * n)
        elif self.kind == "dense fire":
            rows = torch.arange(1, length + 1)[:, None].clamp(min=64)
            share = torch.log1p(0.1 * n) / torch.log1p(0.1 * rows)
            bias = self.mlp(share[..., None]).permute(2, 0, 1)
        elif self.kind == "dense fox":
            kept = functional.logsigmoid(self.gate(x) + 4).cumsum(1).transpose(1, 2)
            bias = kept[..., None] - kept[..., None, :]
        else:
            return None
        return bias.masked_fill(distance < 0, -math.inf)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        split = self.c_attn(x).split(WIDTH, 2)
        q, k, v = (y.view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2) for y in split)
        mask = self.mask(x)
        y = functional.scaled_dot_product_attention(q, k, v, mask, is_causal=mask is None)
        projected: Tensor = self.c_proj(y.transpose(1, 2).contiguous().view(batch, length, WIDTH))
        return projected


class Block(nn.Module):
    """Attention and an MLP, each on a normalised residual."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = (nn.LayerNorm(WIDTH, bias=False) for _ in range(2))
        self.attn = Attention(kind)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH, bias=False),
            nn.GELU(),
            nn.Linear(4 * WIDTH, WIDTH, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        out: Tensor = x + self.mlp(self.ln_2(x))
        return out


class Plain(nn.Module):
    """The rival."""

    def __init__(self, kind: str = "plain") -> None:
        super().__init__()
        self.wte = nn.Embedding(256, WIDTH)
        self.h = nn.Sequential(*(Block(kind) for _ in range(LAYERS)))
        self.ln_f = nn.LayerNorm(WIDTH, bias=False)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, tokens: Tensor, last: int = 0) -> Tensor:
        hidden = self.ln_f(self.h(self.wte(tokens)))[:, -last:]
        return functional.linear(hidden, self.wte.weight)


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
    asked = Run(encoding={**ENCODINGS, **OWN}[encoding], length=length, **size)
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
        with flushed():
            yield relative(f"training, rows of {length}", in_turn(candidates, repeats))


def own(lengths: list[int], repeats: int) -> Iterator[Row]:
    """The same of modules of one's own, beside dense masks."""
    for length in lengths:
        names = ("plain", *OWN, "dense fire", "dense fox")
        candidates = {name: step_of(name, length) for name in names}
        with flushed():
            yield relative(f"own modules, rows of {length}", in_turn(candidates, repeats))


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

        models = {k: model_of(Run(encoding=v, **size)).eval() for k, v in ENCODINGS.items()}
        candidates: dict[str, Callable[[], object]] = {"plain": plain}
        for name, model in models.items():
            candidates[name] = lambda model=model, rows=rows: token_losses(model, rows, last=1)
        with flushed():
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
    *parts: Literal["training", "own", "evaluation", "memory"],
    lengths: str = "128,512,2048",
    evaluated: str = "1024,8192",
    repeats: int = 5,
) -> Iterator[Row]:
    """Measure some parts, all where none is named."""
    torch.set_num_threads(1)
    asked = parts or ("training", "own", "evaluation", "memory")
    if "training" in asked:
        yield from training([int(n) for n in lengths.split(",")], repeats)
    if "own" in asked:
        yield from own([int(n) for n in lengths.split(",")], repeats)
    if "evaluation" in asked:
        yield from evaluation([int(n) for n in evaluated.split(",")], repeats)
    if "memory" in asked:
        yield memory(int(lengths.split(",")[-1]))


if __name__ == "__main__":
    program(main)
