"""What a certified window saves: a model with each head in its window against full attention.

    python benchmarks/serving.py [4096 16384 32768] [--error 1e-2] [--threads N]

One model (2 layers, width 128, 8 ALiBi heads, initial weights), one text. Windows are certified for
bounds from its weights. The routes run in turn in one process; speed is tokens a second of
processor time, which other work on the machine disturbs less than wall time; memory is the growth
of the peak of a fresh process. Each route's largest change of the last residual against full
attention is printed beside it, as a check that they compute the same. A dense bias, one matrix of
all pairs a head, is run where it fits 2 GiB. On a CPU the windows are bands of queries and keys; on
a GPU `fused` is FlexAttention, and they are its block mask.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from harness import peak
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from farfield.numerics.windows.window import certified_window
from farfield.theory.encodings import encoding
from farfield.validation.checkpoints.configured import Attention, ModelSize
from farfield.validation.checkpoints.head_audit import upwards
from farfield.validation.checkpoints.norms import bounds_of, projections
from farfield.validation.checkpoints.run import PROJECTS
from farfield.validation.harness.attention import fused
from farfield.validation.harness.model import Transformer
from farfield.validation.harness.positional import initialised
from farfield.validation.harness.presets import preset
from farfield.validation.harness.visibility import CAUSAL

TEXT = np.random.default_rng(0).integers(0, 250, 1 << 16).astype(np.int64)
SHAPE = dataclasses.replace(preset("demo"), layers=2)
ALIBI = encoding("alibi", heads=SHAPE.heads)
DENSE_LIMIT = 2 << 30
Route = Callable[[Tensor, Tensor, Tensor, Tensor | None, object], Tensor]


def certified_widths(model: Transformer, error: str) -> list[list[int]]:
    """A window for each layer and head, from the norms of the weights."""
    found = []
    s, tensors = SHAPE, model.state_dict()
    size = ModelSize(s.layers, s.heads, s.width // s.heads, s.width, 256, s.heads, 2 * s.width)
    attention = Attention(ALIBI, scale=size.head_size**-0.5)

    def read(name: str) -> np.ndarray | None:
        return tensors[name].double().numpy() if name in tensors else None

    for layer in range(SHAPE.layers):
        bounds = bounds_of(projections(size, PROJECTS, layer, read), attention)
        windows = [
            certified_window(ALIBI.head(h), error, upwards(b.logit), upwards(b.value))
            for h, b in enumerate(bounds, 1)
        ]
        found.append([w.sliding_window for w in windows])
    return found


def routes(
    length: int, widths: list[list[int]], device: torch.device, dense: bool = True
) -> dict[str, Route]:
    """The attention of one layer after the other by each route."""
    bias = torch.from_numpy(ALIBI.bias(np.arange(length))).float().to(device)
    distance = torch.arange(length, device=device)
    cut = [
        bias.masked_fill(distance >= torch.tensor(w, device=device)[:, None], -math.inf)
        for w in widths
    ]
    turn = 0

    def certified(q: Tensor, k: Tensor, v: Tensor, *_: object) -> Tensor:
        nonlocal turn
        turn += 1
        return fused(q, k, v, cut[(turn - 1) % len(cut)], CAUSAL)

    def no_bias(q: Tensor, k: Tensor, v: Tensor, *_: object) -> Tensor:
        return scaled_dot_product_attention(q, k, v, is_causal=True)

    found: dict[str, Route] = {
        "full": lambda q, k, v, *_: fused(q, k, v, bias, CAUSAL),
        "certified windows": certified,
        "no bias, fused": no_bias,
    }
    if dense and 4 * SHAPE.heads * length**2 <= DENSE_LIMIT:
        mask = torch.empty(SHAPE.heads, length, length, device=device)
        for start in range(0, length, 256):  # built without a second matrix
            gap = distance[start : start + 256, None] - distance
            mask[:, start : start + 256] = bias[:, gap.clamp(min=0)].masked_fill(gap < 0, -math.inf)
        found["dense bias"] = lambda q, k, v, *_: scaled_dot_product_attention(
            q, k, v, attn_mask=mask[None]
        )
    return found


def run(model: Transformer, length: int, route: Route) -> Tensor:
    with torch.no_grad():
        tokens = torch.from_numpy(TEXT[None, :length]).to(model.device)
        return model.hidden(model.embed(tokens), CAUSAL, route)


def clock(device: torch.device) -> float:
    """Processor seconds, on a GPU wall seconds after all its work."""
    if device.type == "cuda":
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()


def compare(length: int, error: str, device: torch.device) -> None:
    model = initialised(ALIBI, SHAPE, 0).eval().to(device)
    widths = certified_widths(model, error)
    shown = "; ".join(", ".join(map(str, layer)) for layer in widths)
    candidates = routes(length, widths, device)
    repeats = {4096: 5, 16_384: 2}.get(length, 1 if device.type == "cpu" else 5)
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    outputs: dict[str, Tensor] = {}
    for _ in range(repeats):
        for name, route in candidates.items():
            began = clock(device)
            outputs[name] = run(model, length, route)
            seconds[name].append(clock(device) - began)
    print(f"{length} tokens; windows by layer: {shown}")
    base = statistics.median(seconds["full"])
    for name, each in seconds.items():
        typical = statistics.median(each)
        change = (outputs[name] - outputs["full"]).norm(dim=-1) / outputs["full"].norm(dim=-1)
        used = memory(name, length, error) if device.type == "cpu" else float("nan")
        print(
            f"  {name:<18} {length / typical:9.0f} tokens/s  x{base / typical:5.2f}  "
            f"{used:6.0f} MiB  last residual changes by {change.max():.1e}"
        )


def memory(route: str, length: int, error: str) -> float:
    """MiB by which the peak of a fresh process grows while one route runs once."""
    command = [sys.executable, __file__, "--measure", json.dumps([route, length, error])]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure(route: str, length: int, error: str) -> None:
    model = initialised(ALIBI, SHAPE, 0).eval()
    widths = certified_widths(model, error)
    for chosen in routes(600, widths, model.device).values():  # thread buffers and code
        run(model, 600, chosen)
    before = peak()
    run(model, length, routes(length, widths, model.device, route == "dense bias")[route])
    print((peak() - before) / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lengths", nargs="*", type=int, default=[4096, 16_384, 32_768])
    parser.add_argument("--error", default="1e-2")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    if given.measure:
        measure(*json.loads(given.measure))
        return
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    where = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    print(f"torch {torch.__version__}, {where}, {given.threads} threads, error {given.error}")
    for length in given.lengths:
        compare(length, given.error, device)


if __name__ == "__main__":
    main()
