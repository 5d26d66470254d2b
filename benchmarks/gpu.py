"""What only a GPU can measure, in one command of at most nine minutes, with torch and NumPy alone.

    make gpu                                              # both of the following
    python benchmarks/gpu.py --prepare out/gpu.npz        # on any machine that has farfield
    python benchmarks/gpu.py out/gpu.npz --out out/gpu    # on the GPU: this file, the model's three
    python benchmarks/gpu.py out/gpu.npz speed            # some of the parts
    python benchmarks/gpu.py out/gpu.npz --tables         # what is measured, and what is not

`slice`: some steps of `paper:chi2023`; `base`: the preset of that name, trained and measured;
`windows`: certified windows as a block mask, the speed-up measured and the one that the blocks
predict; `exactness`: FlexAttention against the float64 specification, outputs and gradients, for
every bias of the catalogue in float32 and bfloat16; `speed`: tokens a second and memory of the
kernel with a bias as a table and as a formula, beside the same kernel and fused attention without.

Each part is a process with a budget of its own. Each row goes to OUT/rows.jsonl as it is measured,
and the same command again measures the rows that are missing; a training continues from its last
checkpoint. `--prepare FILE --tiny` makes small shapes, which `--device cpu` runs in seconds.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import importlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

ROOT = Path(__file__).parents[1]
BUDGETS = {"slice": 60, "base": 240, "windows": 60, "exactness": 80, "speed": 100}  # seconds
ROUNDOFF = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-9}
LOGIT, ALLOWED = 3.0, "1/100"  # the largest logit of `windows` before rounding, its error
WARMED = 3  # steps of a training that are not timed
KEPT = 30.0  # seconds between checkpoints
Row = dict[str, Any]
Rows = Iterator[tuple[str, Callable[[], Row]]]


def model_files() -> SimpleNamespace:
    """The model and its attention, which need torch alone, without the package around them."""
    package = ModuleType("model_files")
    package.__path__ = [str(ROOT / "validation" / "harness")]
    sys.modules.setdefault("model_files", package)
    names = ("attention", "mechanism", "model")
    return SimpleNamespace(**{n: importlib.import_module(f"model_files.{n}") for n in names})


FILES = model_files()
flexible, fused, materialised = (
    getattr(FILES.attention, name) for name in ("flexible", "fused", "materialised")
)


# -- what any machine prepares --------------------------------------------------------------------


def prepare(path: Path, tiny: bool, text: str | None) -> None:
    """Write biases, windows, schedules and a text: all that needs farfield."""
    from farfield.numerics.windows.window import certified_window
    from farfield.theory.encodings import encoding, encodings
    from farfield.validation.harness.corpus import corpus
    from farfield.validation.harness.positional import LearnedBias, additive_bias
    from farfield.validation.harness.presets import preset
    from farfield.validation.harness.store import commit
    from farfield.validation.harness.training import learning_rate
    from farfield.validation.json_files import recorded
    from farfield.validation.models.head_audit import upwards

    given = {"window": {"w": 30}, "alibi_log": {"m": 2}}  # encodings without a value of their own
    arrays: dict[str, np.ndarray] = {}

    def bias(place: str, name: str, heads: int, length: int) -> bool:
        found = encoding(name, **given.get(name, {}))
        if found.num_heads > 1:
            found = encoding(name, heads=heads, **given.get(name, {}))
        torch.manual_seed(0)
        module = additive_bias(found, heads)
        arrays[f"{place}/{name}"] = module(length).detach().float().numpy()
        return isinstance(module, LearnedBias)

    def schedule(name: str, steps: int | None = None) -> Row:
        shape = preset(name)
        rates = [learning_rate(step, shape) for step in range(steps or shape.steps)]
        return recorded(shape) | {"rates": rates}

    asked: Row = {"tiny": tiny, "commit": commit()}
    heads, size, lengths = (2, 8, [64, 128]) if tiny else (16, 64, [4096, 16_384, 1024, 65_536])
    asked["speed"] = {"heads": heads, "size": size, "lengths": lengths}
    for name in ("alibi", "type1"):
        bias("speed", name, heads, max(lengths))
    heads, length, size = (2, 40, 8) if tiny else (4, 500, 64)
    learned = {
        name: bias("exactness", name, heads, length)
        for name in encodings()
        if encoding(name, **given.get(name, {})).biases
    }
    asked["exactness"] = {"heads": heads, "size": size, "length": length, "learned": learned}
    heads, size, lengths = (8, 8, [256, 512]) if tiny else (16, 64, [4096, 16_384, 65_536])
    bias("windows", "alibi", heads, max(lengths))
    logit, value = (upwards(x * (1 + 2.0**-6)) for x in (LOGIT, 1.0))  # rounded to bfloat16
    found = certified_window(encoding("alibi", heads=heads), ALLOWED, logit, value)
    asked["windows"] = {"size": size, "lengths": lengths, "widths": [h.width for h in found.heads]}
    name, vocabulary = ("tiny", 256) if tiny else ("paper:chi2023", 50_257)
    whole, steps = preset(name), 8 if tiny else 20 + WARMED
    cost = {"tokens": whole.tokens, "operations": whole.operations(vocabulary)}
    asked["slice"] = schedule(name, steps) | {"vocabulary": vocabulary, **cost}
    text_of = np.random.default_rng(0).integers(0, vocabulary, 1_000_000)
    arrays["slice/text"] = text_of.astype(np.uint8 if vocabulary <= 256 else np.uint16)
    source, name = corpus(text), "tiny" if tiny else "base"
    asked["base"] = schedule(name) | {"vocabulary": 256, "text_sha256": source.sha256}
    asked["base"]["tested"] = [preset(name).length << k for k in (0, 2, 4)]
    bias("base", "type1", preset(name).heads, max(asked["base"]["tested"]))
    arrays["base/text"], arrays["base/held out"] = source.train, source.held_out
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, asked=np.array(json.dumps(asked)), **arrays)


@dataclass(frozen=True)
class Setup:
    """What was prepared, where it runs, and where rows and checkpoints go."""

    file: Path
    out: Path
    device: torch.device

    @property
    def gpu(self) -> bool:
        return self.device.type == "cuda"

    @functools.cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        with np.load(self.file, allow_pickle=False) as found:
            return dict(found)

    @functools.cached_property
    def asked(self) -> Row:
        return json.loads(str(self.arrays["asked"]))

    @functools.cached_property
    def name(self) -> str:
        """Of what was prepared and the device: rows of another name are no answers."""
        digest = hashlib.sha256()
        for name, array in sorted(self.arrays.items()):
            digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
        return f"{digest.hexdigest()[:12]} {self.device.type}"

    def table(self, place: str) -> Tensor:
        return torch.from_numpy(self.arrays[place]).to(self.device)

    def sample(self, shape: tuple[int, ...], dtype: torch.dtype) -> list[Tensor]:
        """Queries, keys, values and the gradient of the output."""
        generator = torch.Generator().manual_seed(0)
        return [torch.randn(shape, generator=generator).to(self.device, dtype) for _ in range(4)]


# -- time -----------------------------------------------------------------------------------------


def mark(setup: Setup) -> Any:
    """A moment: of the device's own clock where it is a GPU."""
    if not setup.gpu:
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def between(setup: Setup, first: Any, last: Any) -> float:
    """Seconds from one moment to another."""
    if not setup.gpu:
        return float(last - first)
    torch.cuda.synchronize(setup.device)
    return float(first.elapsed_time(last)) / 1000


def timed(call: Callable[[], object], setup: Setup) -> tuple[float, float | None]:
    """Median seconds of five calls after two, which compile, with nothing left in the cache of a
    GPU; and the MiB that one takes there."""
    call(), call()
    used, cache = None, torch.empty(2**28 if setup.gpu else 0, dtype=torch.uint8)
    cache = cache.to(setup.device)
    if setup.gpu:
        torch.cuda.synchronize(setup.device)
        torch.cuda.reset_peak_memory_stats(setup.device)
        held = torch.cuda.memory_allocated(setup.device)
        call()
        used = (torch.cuda.max_memory_allocated(setup.device) - held) / 2**20
    seconds = []
    for _ in range(5):
        cache.zero_()
        first = mark(setup)
        call()
        seconds.append(between(setup, first, mark(setup)))
    return median(seconds), used


# -- exactness ------------------------------------------------------------------------------------


def exactness(setup: Setup) -> Rows:
    """The largest error relative to the largest entry, in units of roundoff.

    Fused attention without a bias is the control. FlexAttention has no backward pass on a CPU, so
    gradients come from `toeplitz` there.
    """
    asked = setup.asked["exactness"]
    for dtype in ROUNDOFF:
        inputs = setup.sample((2, asked["heads"], asked["length"], asked["size"]), dtype)
        kind = str(dtype).removeprefix("torch.")
        yield f"{kind}, no bias, fused", lambda i=inputs: compared(stock, i, None, False)
        for name, learned in asked["learned"].items():
            bias = setup.table(f"exactness/{name}")
            yield (
                f"{kind}, {name}",
                lambda i=inputs, b=bias, t=learned: kernel_error(setup, i, b, t),
            )


def kernel_error(setup: Setup, inputs: list[Tensor], bias: Tensor, learned: bool) -> Row:
    """Errors of the kernel; of a learned bias, whose sums have no fixed order on a GPU, the largest
    of three runs."""
    if setup.gpu:
        found = [compared(flexible, inputs, bias, learned) for _ in range(3 if learned else 1)]
        return {name: max(row[name] for row in found) for name in found[0]}
    row = compared(fused, inputs, bias, learned)
    with torch.no_grad():
        output, exact = flexible(*inputs[:3], bias), materialised(*wide(inputs[:3]), bias)
    return row | {"output": error(output, exact, ROUNDOFF[inputs[0].dtype])}


def stock(query: Tensor, key: Tensor, value: Tensor, bias: None) -> Tensor:
    return scaled_dot_product_attention(query, key, value, is_causal=True)


def wide(tensors: list[Tensor]) -> list[Tensor]:
    return [x.double() for x in tensors]


def error(found: Tensor, exact: Tensor, unit: float) -> float:
    """The largest error, in units of roundoff of the largest entry."""
    return float((found.double() - exact).abs().max() / exact.abs().max() / unit)


def compared(
    path: Callable[..., Tensor], inputs: list[Tensor], bias: Tensor | None, learned: bool
) -> Row:
    """Errors of outputs and gradients of a path against the specification."""
    results = []
    for attend, cast in ((path, list), (materialised, wide)):
        *leaves, weight = (x.detach().requires_grad_() for x in cast(inputs))
        table = bias
        if bias is not None and learned:
            leaves.append(table := cast([bias])[0].detach().requires_grad_())
        output = attend(*leaves[:3], table)
        results.append([output, *torch.autograd.grad((output * weight).sum(), leaves)])
    names = ("output", "query", "key", "value", "bias")
    return {
        name: error(found.detach(), exact.detach(), ROUNDOFF[inputs[0].dtype])
        for name, found, exact in zip(names, *results, strict=False)
    }


# -- speed ----------------------------------------------------------------------------------------


def formula(name: str, values: list[Tensor]) -> Callable[..., Tensor]:
    """A bias as a score function, with one number a head and parameter."""

    def add(score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        distance = (query - key).clamp(min=0).float()
        if name == "alibi":
            return score - values[0][head] * distance
        return score - values[0][head] * torch.log1p(values[1][head] * distance)

    return add


def controls(setup: Setup, length: int) -> dict[str, tuple[Any, list[Tensor]]]:
    """What is compared: a bias as the kernel takes it, and what is learned of it."""
    heads = setup.asked["speed"]["heads"]
    alibi, type1 = (setup.table(f"speed/{name}")[:, :length] for name in ("alibi", "type1"))
    slopes = [-alibi[:, 1].clone()]
    log = [torch.full((heads,), v, device=setup.device) for v in (2.0, 1.0)]
    asks = [[x.clone().requires_grad_() for x in log], [type1.clone().requires_grad_()]]
    return {
        "none, fused": (None, []),
        "none, same kernel": (None, []),
        "alibi, table": (alibi, []),
        "alibi, formula": (formula("alibi", slopes), []),
        "log, table": (type1, []),
        "log, formula": (formula("log", log), []),
        "log, learned formula": (formula("log", asks[0]), asks[0]),
        "log, learned table": (asks[1][0], asks[1]),
    }


def speed(setup: Setup) -> Rows:
    """Forward, and forward and backward, in bfloat16; as many tokens in all at each length."""
    asked = setup.asked["speed"]
    lengths, whole = asked["lengths"], max(asked["lengths"])
    for length in lengths:
        shape = (whole // length, asked["heads"], length, asked["size"])
        inputs = setup.sample(shape, torch.bfloat16 if setup.gpu else torch.float32)
        for name, (bias, learned) in controls(setup, length).items():
            path = flexible if name != "none, fused" else stock
            if not setup.gpu and (callable(bias) and not isinstance(bias, Tensor)):
                continue  # the kernel has no backward pass on a CPU
            path = fused if path is flexible and not setup.gpu else path
            yield (
                f"{name}, {length}",
                lambda p=path, i=inputs, b=bias, t=learned: passes(setup, p, i, b, t),
            )


def passes(
    setup: Setup,
    path: Callable[..., Tensor],
    inputs: list[Tensor],
    bias: Any,
    learned: list[Tensor],
) -> Row:
    """Tokens a second and MiB of a forward pass, and of one with its backward pass."""
    *leaves, weight = (x.detach().requires_grad_() for x in inputs)
    row: Row = {}
    tokens = len(inputs[0]) * inputs[0].shape[2]
    for what, call in (
        ("forward", lambda: path(*leaves, bias)),
        ("both", lambda: torch.autograd.grad(path(*leaves, bias), [*leaves, *learned], weight)),
    ):
        spent, used = timed(call, setup)
        row |= {f"{what}, tokens a second": tokens / spent, f"{what}, MiB": used}
    return row


# -- windows --------------------------------------------------------------------------------------


def windows(setup: Setup) -> Rows:
    """ALiBi with each head in its certified window, for bounds that these inputs keep."""
    for length in setup.asked["windows"]["lengths"]:
        yield str(length), functools.partial(window_row, setup, length)


@torch.no_grad()
def window_row(setup: Setup, length: int) -> Row:
    """Both ways at one length, in blocks that are seen and blocks that are not."""
    asked = setup.asked["windows"]
    widths, size = asked["widths"], asked["size"]
    query, key, value, _ = setup.sample((1, len(widths), length, size), torch.float32)
    root = math.sqrt(LOGIT * math.sqrt(size))
    dtype = torch.bfloat16 if setup.gpu else torch.float32
    query, key, value = (
        (x / x.norm(dim=-1, keepdim=True) * scale).to(dtype)
        for x, scale in ((query, root), (key, root), (value, 1.0))
    )
    norms = [float(x.double().norm(dim=-1).max()) for x in (query, key, value)]
    bound = 1 + 2.0**-6
    assert norms[0] * norms[1] / math.sqrt(size) <= LOGIT * bound and norms[2] <= bound
    bias = setup.table("windows/alibi")[:, :length]
    some = tuple(min(width, length) for width in widths)
    masks = [FILES.attention.CAUSAL] * 2
    near = torch.tensor(some, device=setup.device)[:, None]
    cut = bias.masked_fill(torch.arange(length, device=setup.device) >= near, -math.inf)
    biases, block = [bias, cut], 128
    if setup.gpu:
        blocks = functools.partial(FILES.attention.blocks, masks[0], length, device=setup.device)
        masks, biases = [blocks(), blocks(widths=some)], [bias, bias]
    calls = [
        functools.partial(flexible if setup.gpu else fused, query, key, value, b, m)
        for b, m in zip(biases, masks, strict=True)
    ]
    far = calls[1]().double() - calls[0]().double()
    full, less = (timed(call, setup)[0] for call in calls)
    count = -(-length // block)
    kept = sum(
        min(at + 1, (width + block - 2) // block + 1) for width in some for at in range(count)
    )
    return {
        "windows": f"{min(some)} to {max(some)}",
        "full, tokens a second": length / full,
        "windows, tokens a second": length / less,
        "measured speed-up": full / less,
        "predicted by blocks": len(some) * count * (count + 1) / 2 / kept,
        "largest change": float(far.norm(dim=-1).max()),
        "certified in exact arithmetic": ALLOWED,
    }


# -- models ---------------------------------------------------------------------------------------


class Table(nn.Module):
    """A bias with fixed values, as the model takes it."""

    def __init__(self, values: Tensor) -> None:
        super().__init__()
        self.values = values.cpu()

    def forward(self, length: int) -> Tensor:
        return self.values[:, :length]


class Kerple(nn.Module):
    """The bias `-r1 log(1 + r2 n)` with learned values, as a table and as a score function."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.r1, self.r2 = (nn.Parameter(torch.rand(heads) + 0.1) for _ in range(2))

    def forward(self, length: int) -> Tensor:
        distance = torch.arange(length, device=self.r1.device)
        return -self.r1[:, None] * torch.log1p(self.r2[:, None] * distance)

    def function(self, layer: int) -> Callable[..., Tensor]:
        return formula("log", [self.r1, self.r2])

    @torch.no_grad()
    def project(self) -> None:
        for value in (self.r1, self.r2):
            value.clamp_(min=0.01)


@dataclass(frozen=True)
class Trained:
    """A model, the loss at its end, and seconds of the steps that were timed here."""

    model: Any
    loss: float
    steps: int
    seconds: float


def train(
    setup: Setup, part: str, bias: Callable[[], nn.Module], kept: Path | None = None
) -> Trained:
    """Train as the harness does: the same model, batches and schedule, in a loop of its own."""
    asked, text = SimpleNamespace(**setup.asked[part]), setup.arrays[f"{part}/text"]
    torch.manual_seed(0)
    mechanism = FILES.mechanism.LayerMechanism(biased=True)
    each = [mechanism] * asked.layers
    model = FILES.model.Transformer(asked, each, asked.vocabulary, bias).to(setup.device).train()
    if setup.gpu:
        model.compile(fullgraph=True)
    given = model.given(asked.length, flex=setup.gpu)
    groups = [
        {"params": [p for p in model.parameters() if (p.ndim >= 2) is large], "weight_decay": w}
        for large, w in ((True, asked.weight_decay), (False, 0.0))
    ]
    settings = {"betas": tuple(asked.betas), "eps": asked.epsilon, "fused": True}
    optimise = torch.optim.AdamW(groups, lr=asked.learning_rate, **settings)
    first, loss, steps = 0, torch.zeros(()), len(asked.rates)
    if kept is not None and kept.exists():
        state = torch.load(kept, map_location=setup.device, weights_only=True)
        model.load_state_dict(state["model"])
        optimise.load_state_dict(state["optimiser"])
        first, loss = state["step"], state["loss"]
    due, start = time.monotonic() + KEPT, None
    half = torch.autocast("cuda", torch.bfloat16) if setup.gpu else nullcontext()
    for step in range(first, steps):
        if step == first + WARMED:
            start = mark(setup)
        random = np.random.default_rng([0, step])
        at = random.integers(len(text) - asked.length, size=asked.batch)
        rows = torch.from_numpy(text[at[:, None] + np.arange(asked.length + 1)].astype(np.int64))
        rows = (rows.pin_memory() if setup.gpu else rows).to(setup.device, non_blocking=True)
        loss = torch.zeros((), device=setup.device)
        for part_rows in rows.split(asked.batch // asked.parts):
            if not setup.gpu:
                given = model.given(asked.length)
            with half:
                scores = model(part_rows[:, :-1], *given)
            found = cross_entropy(scores.float().flatten(0, 1), part_rows[:, 1:].flatten())
            (found / asked.parts).backward()
            loss += found.detach() / asked.parts
        nn.utils.clip_grad_norm_(model.parameters(), asked.clip)
        for group in optimise.param_groups:
            group["lr"] = asked.rates[step]
        optimise.step()
        model.project()
        optimise.zero_grad()
        if kept is not None and (step + 1 == steps or time.monotonic() > due):
            state = {"model": model.state_dict(), "optimiser": optimise.state_dict()}
            torch.save(state | {"step": step + 1, "loss": loss}, kept.with_suffix(".partial"))
            os.replace(kept.with_suffix(".partial"), kept)
            due = time.monotonic() + KEPT
    seconds = math.nan if start is None else between(setup, start, mark(setup))
    return Trained(model.eval(), float(loss), max(0, steps - first - WARMED), seconds)


def slice_(setup: Setup) -> Rows:
    """A few steps of `paper:chi2023`, and what the whole run would take at that rate."""
    asked = setup.asked["slice"]

    def run() -> Row:
        if setup.gpu:
            torch.cuda.reset_peak_memory_stats(setup.device)
        done = train(setup, "slice", lambda: Kerple(asked["heads"]))
        used = torch.cuda.max_memory_allocated(setup.device) / 2**20 if setup.gpu else None
        rate = done.steps * asked["batch"] * asked["length"] / done.seconds
        n = 8192 if setup.gpu else 512
        matrix = setup.sample((n, n), torch.bfloat16 if setup.gpu else torch.float32)[0]
        product = 2 * n**3 / timed(lambda: matrix @ matrix, setup)[0]
        return {
            "preset": asked["name"],
            "steps": done.steps,
            "tokens a second": rate,
            "MiB": used,
            "operations a second": rate * asked["operations"],
            "of a matrix product": product,
            "hours of the whole run": asked["tokens"] / rate / 3600,
        }

    yield "steps", run


def base(setup: Setup) -> Rows:
    """The preset `base`, trained on the prepared text; perplexity of the same last tokens after
    contexts of each length, as [C, 3.4]."""
    asked = setup.asked["base"]

    @functools.cache
    def trained() -> Trained:
        table = setup.table("base/type1")
        kept = setup.out / f"base {setup.name}.pt"
        return train(setup, "base", lambda: Table(table), kept)

    def run() -> Row:
        done = trained()
        rate = done.steps * asked["batch"] * asked["length"] / done.seconds
        return {"preset": asked["name"], "training, tokens a second": rate, "last loss": done.loss}

    @torch.no_grad()
    def measured(length: int) -> Row:
        model, text = trained().model, setup.arrays["base/held out"]
        longest, nats = max(asked["tested"]), []
        starts = np.linspace(0, len(text) - longest - 1, 512).astype(np.int64) + longest - length
        for start in np.array_split(starts, -(-512 * length // 8192)):
            rows = torch.from_numpy(text[start[:, None] + np.arange(length + 1)].astype(np.int64))
            rows = rows.to(setup.device)
            scores = model.logits(model.hidden(model.embed(rows[:, :-1]), last=1)[:, 0])
            nats.append(cross_entropy(scores.double(), rows[:, -1], reduction="none"))
        return {"tokens": length, "perplexity": math.exp(float(torch.cat(nats).mean()))}

    yield "training", run
    for length in asked["tested"]:
        yield f"perplexity {length}", functools.partial(measured, length)


PARTS: dict[str, Callable[[Setup], Rows]] = {
    "slice": slice_,
    "base": base,
    "windows": windows,
    "exactness": exactness,
    "speed": speed,
}


# -- rows, as they are measured -------------------------------------------------------------------


def rows(setup: Setup) -> list[Row]:
    """What was measured with this file on this kind of device; a line that was cut off is none."""
    found = []
    place = setup.out / "rows.jsonl"
    for line in place.read_text(encoding="utf-8").splitlines() if place.exists() else ():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if row["of"] == setup.name:
            found.append(row)
    return found


def measure(part: str, setup: Setup) -> None:
    """Measure the rows of a part that are not there, and a last one that says it is whole."""
    known = {(row["part"], row["row"]) for row in rows(setup)}
    machine = torch.cuda.get_device_name(setup.device) if setup.gpu else "CPU"
    where = {"machine": machine, "torch": torch.__version__, "commit": setup.asked["commit"]}

    def write(name: str, found: Row) -> None:
        line = {"of": setup.name, "part": part, "row": name, **where, "found": found}
        with (setup.out / "rows.jsonl").open("a", encoding="utf-8") as file:
            file.write(f"\n{json.dumps(line)}")

    for name, run in PARTS[part](setup):
        if (part, name) not in known:
            write(name, run())
    if (part, "") not in known:
        write("", {})


def whole(part: str, setup: Setup) -> bool:
    """Whether every row of a part is there."""
    return any((row["part"], row["row"]) == (part, "") for row in rows(setup))


def tables(parts: list[str], setup: Setup) -> str:
    """The results as Markdown; a part without says so, and how it is measured."""
    lines = []
    for part in parts:
        found = [row for row in rows(setup) if row["part"] == part and row["row"]]
        lines += [f"## {part}", ""]
        if not whole(part, setup):
            missing = "the rest is " * bool(found) + "*not measured*"
            lines += [f"{missing}: `python benchmarks/gpu.py {setup.file} {part}`", ""]
        if not found:
            continue
        columns = list(dict.fromkeys(name for row in found for name in row["found"]))
        lines += [
            f"{found[0]['machine']}, torch {found[0]['torch']}, at {found[0]['commit']} [measured]",
            "",
            f"| | {' | '.join(columns)} |",
            f"|---|{'---|' * len(columns)}",
        ]
        for row in found:
            cells = (shown(row["found"].get(column)) for column in columns)
            lines.append(f"| {row['row']} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


def main(args: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path, help="what --prepare has written")
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all if none")
    parser.add_argument(
        "--prepare", type=Path, metavar="FILE", help="write the file; needs farfield"
    )
    parser.add_argument("--tiny", action="store_true", help="with --prepare: small shapes")
    parser.add_argument("--text", help="with --prepare: file or folder that `base` trains on")
    parser.add_argument("--out", type=Path, default=Path("out/gpu"))
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--minutes", type=float, default=sum(BUDGETS.values()) / 60)
    parser.add_argument("--tables", action="store_true", help="print results, measure nothing")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(args)
    if given.prepare is not None:
        prepare(given.prepare, given.tiny, given.text)
        return 0
    if given.file is None or not given.file.is_file():
        parser.error(f"no file {given.file}; accepted: one that --prepare FILE has written")
    if wrong := set(given.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(wrong))}; accepted: {', '.join(PARTS)}")
    setup = Setup(given.file, given.out, torch.device(given.device))
    given.out.mkdir(parents=True, exist_ok=True)
    parts = given.parts or list(PARTS)
    if given.inside:
        for part in parts:
            measure(part, setup)
        return 0
    if setup.gpu and not torch.cuda.is_available():
        print("torch sees no GPU here; accepted: --device cpu, or another machine", file=sys.stderr)
    elif not given.tables:
        run(parts, setup, given.minutes)
    print(tables(parts, setup))
    return int(not all(whole(part, setup) for part in parts))


def run(parts: list[str], setup: Setup, minutes: float) -> None:
    """Each part that is not whole, in a process of its own with its share of the minutes."""
    for part in parts:
        if whole(part, setup):
            continue
        print(f"{part} ...", file=sys.stderr, flush=True)
        again = [sys.executable, __file__, str(setup.file), part, "--inside"]
        again += ["--out", str(setup.out), "--device", setup.device.type]
        budget = BUDGETS[part] * 60 * minutes / sum(BUDGETS.values())
        try:
            done = subprocess.run(again, check=False, timeout=budget)
        except subprocess.TimeoutExpired:
            print(f"{part} was cut off; the same command continues", file=sys.stderr)
        else:
            if done.returncode:
                print(f"{part} failed", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
