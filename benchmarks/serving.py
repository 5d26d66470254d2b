"""What a certified window saves: a model with each head in its window against full attention.

    python benchmarks/serving.py [4096 16384 32768] [--error 1e-2] [--threads N]

One model (2 layers, width 128, 8 ALiBi heads, initial weights), one text. Windows are certified for
bounds from its weights. The routes run in turn in one process; speed is tokens a second of
processor time, which other work on the machine disturbs less than wall time; memory is the growth
of the peak of a fresh process. Each route's largest change of the last residual against full
attention is printed beside it, as a check that they compute the same. A dense bias, one matrix of
all pairs a head, is run where it fits 2 GiB. The windows are bands of queries and keys.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import torch
from side_by_side import Row, fresh, in_turn, peak, program
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from farfield.numerics.windows.window import certified_window
from farfield.theory.encodings import encoding
from farfield.validation.harness.attention import attention
from farfield.validation.harness.model import Layer, Prepared, Transformer
from farfield.validation.harness.runs import model_of
from farfield.validation.harness.settings import settle

TEXT = np.random.default_rng(0).integers(0, 250, 1 << 16).astype(np.int64)
SHAPE = settle("demo", {"encoding": "alibi", "layers": 2})
ALIBI = encoding("alibi", heads=SHAPE.heads)
DENSE_LIMIT = 2 << 30
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
Route = Callable[[Layer, Tensor, Tensor, Tensor, Prepared], Tensor]


def certified_widths(model: Transformer, error: str) -> list[list[int]]:
    """A window for each layer and head, from the norms of the weights.

    Behind a LayerNorm with gain g and shift 0, an input is g z with |z| <= sqrt(D), of mean 0. So
    |q.k| is at most D |A^T B|, and |v| at most sqrt(D) |C|, of the projections times g without
    their mean; what is added to all keys of a row, and to all values, changes no difference.
    """
    found = []
    for layer in model.layers:
        assert isinstance(layer, Layer) and not layer.ln_attn.bias.any()
        gain = layer.ln_attn.weight.double()
        each = (layer.qkv_proj.weight.double() * gain).unflatten(0, (3, SHAPE.heads, -1))
        query, key, value = (each - each.mean(-1, keepdim=True)).detach()
        size, added = key.shape[1], layer.qkv_proj.bias
        assert added is None or not added.any()
        logits = len(gain) / math.sqrt(size) * torch.linalg.matrix_norm(query.mT @ key, 2)
        values = math.sqrt(len(gain)) * torch.linalg.matrix_norm(value, 2)
        windows = [
            certified_window(ALIBI.head(h), error, _above(logit), _above(value))
            for h, (logit, value) in enumerate(
                zip(logits.tolist(), values.tolist(), strict=True), 1
            )
        ]
        found.append([w.sliding_window for w in windows])
    return found


def _above(bound: float) -> Fraction:
    """A fraction that is not below a norm, its rounding within a millionth."""
    return Fraction(math.ceil(bound * (1 + 1e-6) * 2**20), 2**20)


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

    def certified(_: Layer, q: Tensor, k: Tensor, v: Tensor, given: Prepared) -> Tensor:
        nonlocal turn
        turn += 1
        return attention(q, k, v, cut[(turn - 1) % len(cut)])

    found: dict[str, Route] = {
        "full": lambda _, q, k, v, given: attention(q, k, v, bias),
        "certified windows": certified,
        "no bias, fused": lambda _, q, k, v, given: attention(q, k, v),
    }
    if dense and 4 * SHAPE.heads * length**2 <= DENSE_LIMIT:
        mask = torch.empty(SHAPE.heads, length, length, device=device)
        for start in range(0, length, 256):  # built without a second matrix
            gap = distance[start : start + 256, None] - distance
            mask[:, start : start + 256] = bias[:, gap.clamp(min=0)].masked_fill(gap < 0, -math.inf)
        found["dense bias"] = lambda _, q, k, v, given: scaled_dot_product_attention(
            q, k, v, attn_mask=mask[None]
        )
    return found


def run(model: Transformer, length: int, route: Route) -> Tensor:
    with torch.no_grad():
        tokens = torch.from_numpy(TEXT[None, :length]).to(model.device)
        return model.hidden(model.embed(tokens), attend=route)


def clock() -> float:
    """Processor seconds, on a GPU wall seconds after all its work."""
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()


def compare(length: int, error: str) -> Iterator[Row]:
    model = model_of(SHAPE).eval().to(DEVICE)
    widths = certified_widths(model, error)
    for layer, each in enumerate(widths, 1):
        yield {"layer": str(layer), "windows": ", ".join(map(str, each))}
    repeats = {4096: 5, 16_384: 2}.get(length, 1 if DEVICE.type == "cpu" else 5)
    outputs: dict[str, Tensor] = {}

    def kept(name: str, route: Route) -> Callable[[], None]:
        return lambda: outputs.update({name: run(model, length, route)})

    found = {name: kept(name, route) for name, route in routes(length, widths, DEVICE).items()}
    seconds = in_turn(found, repeats, clock)
    for name, typical in seconds.items():
        change = (outputs[name] - outputs["full"]).norm(dim=-1) / outputs["full"].norm(dim=-1)
        yield {
            f"{length} tokens": name,
            "tokens a second": length / typical,
            "speed": seconds["full"] / typical,
            "MiB": fresh(grown, name, length, error) if DEVICE.type == "cpu" else None,
            "last residual changes by": float(change.max()),
        }


def grown(route: str, length: int, error: str) -> float:
    """Run one route; the growth of the peak in MiB."""
    torch.set_num_threads(1)
    model = model_of(SHAPE).eval()
    widths = certified_widths(model, error)
    for chosen in routes(600, widths, model.device).values():  # thread buffers and code
        run(model, 600, chosen)
    before = peak()
    run(model, length, routes(length, widths, model.device, route == "dense bias")[route])
    return (peak() - before) / 1024


def main(*lengths: int, error: str = "1e-2", threads: int = 1) -> Iterator[Row]:
    """What a certified window saves, against full attention.

    Args:
        lengths: of rows in tokens; 4096, 16384 and 32768 if none.
        error: the budget of the windows.
        threads: of torch.
    """
    torch.set_num_threads(threads)
    where = torch.cuda.get_device_name() if DEVICE.type == "cuda" else "CPU"
    yield {"machine": f"torch {torch.__version__}, {where}", "threads": threads}
    for length in lengths or (4096, 16_384, 32_768):
        yield from compare(length, error)


if __name__ == "__main__":
    program(main)
