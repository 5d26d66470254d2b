"""Speed and memory of the harness against the best stock routes, each interleaved with its rival.

    python benchmarks/harness.py [training] [evaluation] [gradient] [inference] [--threads N]

Every comparison runs its candidates in turn in one process and reports ratios of medians of
processor time, which other work on the machine disturbs less than wall time; memory is the growth
of the peak of a fresh process. The stock route of a bias is one mask of shape (1, 1, n, n), built
once and shared by the heads where the bias allows it.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
import torch
from side_by_side import Row, fresh, in_turn, peak, program
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

from farfield.theory.encodings import encoding
from farfield.validation.harness.attention import toeplitz
from farfield.validation.harness.measures.perplexity import perplexities
from farfield.validation.harness.measures.receptive_fields import gradient_shares
from farfield.validation.harness.model import Transformer
from farfield.validation.harness.positional import initialised
from farfield.validation.harness.presets import preset
from farfield.validation.harness.training import batch, optimiser

TEXT = np.random.default_rng(0).integers(0, 250, 200_000).astype(np.uint8)


class Plain(nn.Module):
    """A model of the same size of torch's own layers, with learned positions: what a rival is."""

    def __init__(self, width: int, heads: int, layers: int, length: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(256, width), nn.Embedding(length, width)
        sizes = {"nhead": heads, "dim_feedforward": 4 * width, "activation": "gelu"}
        layer = nn.TransformerEncoderLayer(
            width, **sizes, dropout=0, batch_first=True, norm_first=True
        )
        norm = nn.LayerNorm(width, bias=False)
        self.layers = nn.TransformerEncoder(layer, layers, norm, enable_nested_tensor=False)
        self.head = nn.Linear(width, 256, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        x = self.tokens(tokens) + self.places(torch.arange(length))
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        return self.head(self.layers(x, mask=mask, is_causal=True))


def stock(query: Tensor, key: Tensor, value: Tensor, bias: Tensor, visible: object) -> Tensor:
    """A learned bias the usual way: a mask that asks for a gradient."""
    position = torch.arange(query.shape[2])
    distance = position[:, None] - position
    mask = bias[:, distance.clamp(min=0)].masked_fill(distance < 0, -math.inf)
    return scaled_dot_product_attention(query, key, value, attn_mask=mask[None])


def relative(what: str, seconds: dict[str, float]) -> Iterator[Row]:
    """The candidates of a comparison, with the speed of each relative to the first."""
    first = next(iter(seconds.values()))
    for name, each in seconds.items():
        yield {what: name, "cpu ms": 1e3 * each, "speed": first / each}


def training(repeats: int = 15) -> Iterator[Row]:
    """Training steps with each kind of bias against the same model with none."""
    for length, size in ((64, 32), (128, 16), (512, 4)):
        shape = dataclasses.replace(preset("demo"), length=length, batch=size)
        inputs, targets = batch(TEXT, shape, 0, 0)

        def step(model: nn.Module, forward: Callable[[Tensor], Tensor]) -> Callable[[], None]:
            optimise = optimiser(model, shape)  # noqa: B023

            def run() -> None:
                loss = cross_entropy(forward(inputs).flatten(0, 1), targets.flatten())  # noqa: B023
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimise.step()
                if isinstance(model, Transformer):
                    model.project()
                optimise.zero_grad()

            return run

        names = ("nope", "alibi", "type1", "kerple_log", "t5", "rope")
        models = {name: initialised(encoding(name), shape, 0).train() for name in names}
        candidates = {name: step(model, model) for name, model in models.items()}
        learned = initialised(encoding("kerple_log"), shape, 0).train()
        candidates["kerple_log, stock"] = step(learned, lambda x, m=learned: m(x, path=stock))
        plain = Plain(shape.width, shape.heads, shape.layers, length)
        candidates["plain model"] = step(plain, plain)
        seconds = in_turn(candidates, repeats)
        yield from relative(f"training step, {size} rows of {length}", seconds)


def evaluation(repeats: int = 3) -> Iterator[Row]:
    """Long contexts against one dense mask; memory in fresh processes."""
    length = 9216
    position = torch.arange(length)
    distance = position[:, None] - position
    type1, alibi = (
        torch.from_numpy(encoding(name).bias(range(length))).float() for name in ("type1", "alibi")
    )
    mask = type1[:, distance.clamp(min=0)].masked_fill(distance < 0, -math.inf)[None]
    for size in (16, 64):
        q, k, v = torch.randn(3, 1, 8, length, size)
        candidates = {
            "dense": lambda: scaled_dot_product_attention(q, k, v, attn_mask=mask),  # noqa: B023
            "type1": lambda: toeplitz(q, k, v, type1),  # noqa: B023
            "alibi": lambda: toeplitz(q, k, v, alibi),  # noqa: B023
            "no bias": lambda: scaled_dot_product_attention(q, k, v, is_causal=True),  # noqa: B023
        }
        seconds = in_turn(candidates, repeats)
        yield from relative(f"{length} tokens, head width {size}", seconds)
    for size in (16, 64):
        used = {route: fresh(grown, route, length, size) for route in ("dense", "type1", "alibi")}
        for route, each in used.items():
            share = each / used["dense"]
            yield {f"memory, head width {size}": route, "extra MiB": each, "of the dense": share}
    for route in ("type1", "alibi", "model"):
        yield {"memory at 32768 tokens": route, "extra MiB": fresh(grown, route, 32_768, 16)}


def gradient() -> Iterator[Row]:
    """The gradient receptive field at 8192 tokens, against a forward and backward pass."""
    rows = TEXT[None, :8193].astype(np.int64)
    x, y = torch.from_numpy(rows[:, :-1]), torch.from_numpy(rows[:, 1:])
    for name in ("type1", "alibi", "kerple_log"):
        model = initialised(encoding(name), preset("demo"), 0).eval()
        candidates = {
            "field": lambda m=model: gradient_shares(m, rows),
            "pass": lambda m=model: cross_entropy(m(x)[0], y[0]).backward(),
        }
        seconds = in_turn(candidates, 2)
        yield {
            "gradient field, 8192 tokens, 4 layers": name,
            "of a pass": seconds["field"] / seconds["pass"],
            "pass s": seconds["pass"],
            "extra MiB": fresh(grown, f"gradient {name}", 8192, 16),
        }


def inference() -> Iterator[Row]:
    """Sliding-window inference against non-overlapping inference, as [Q, Table 1].

    In a window that moves by one token every token is encoded as often as the window is long;
    without overlap once. A time does not depend on the weights.
    """
    model = initialised(encoding("alibi"), preset("demo"), 0).eval()
    ratios = {}
    for window in (16, 32, 64, 128, 258, 512):
        count = 16_384 // window
        candidates = {
            name: lambda s=stride: perplexities(model, TEXT, (window,), count, s)  # noqa: B023
            for name, stride in (("sliding", 1), ("whole", window))
        }
        seconds = in_turn(candidates, 3)
        ratios[str(window)] = seconds["sliding"] * window / seconds["whole"]  # a scored token
    for name, ratio in (ratios | {"mean": statistics.mean(ratios.values())}).items():
        yield {"sliding-window inference, window": name, "times slower": ratio}


def grown(route: str, length: int, size: int) -> float:
    """Run one route; the growth of the peak in MiB."""
    torch.set_num_threads(1)
    name = route.split()[-1] if route not in ("dense", "model") else "type1"
    table = torch.from_numpy(
        encoding(name, **({"r1": 1, "r2": 1} if "kerple" in name else {})).bias(range(length))
    ).float()
    q, k, v = torch.randn(3, 1, 8, length, size)
    model = initialised(encoding(name), preset("demo"), 0).eval()
    for few in (64, 600):  # thread buffers and code, before the measurement
        toeplitz(q[:, :, :few], k[:, :, :few], v[:, :, :few], table[:, :few])
    model(torch.zeros(1, 64, dtype=torch.long)).sum().backward()
    before = peak()
    with torch.no_grad():
        if route == "dense":
            position = torch.arange(length, dtype=torch.int32)
            mask = torch.empty(1, 1, length, length)
            for start in range(0, length, 256):  # built without a second matrix
                distance = position[start : start + 256, None] - position
                part = table[0, distance.clamp(min=0)].masked_fill(distance < 0, -math.inf)
                mask[0, 0, start : start + 256] = part
            scaled_dot_product_attention(q, k, v, attn_mask=mask)
        elif route == "model":
            model.hidden(model.embed(torch.zeros(1, length, dtype=torch.long)))
        elif not route.startswith("gradient"):
            toeplitz(q, k, v, table)
    if route.startswith("gradient"):
        gradient_shares(model, TEXT[None, : length + 1].astype(np.int64))
    return (peak() - before) / 1024


PARTS = {f.__name__: f for f in (training, evaluation, gradient, inference)}


def main(
    *parts: Literal["training", "evaluation", "gradient", "inference"], threads: int = 1
) -> Iterator[Row]:
    """Speed and memory of the harness against the best stock routes.

    Args:
        parts: all but `inference` if none.
        threads: of torch.
    """
    torch.set_num_threads(threads)
    kind = torch.backends.cpu.get_cpu_capability()
    yield {"machine": f"torch {torch.__version__}, {kind}", "threads": threads}
    for part in parts or ("training", "evaluation", "gradient"):
        yield from PARTS[part]()


if __name__ == "__main__":
    program(main)
