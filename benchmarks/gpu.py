"""What only a GPU can measure, in one command of at most nine minutes.

    make gpu                                      # python benchmarks/gpu.py --out out/gpu
    python benchmarks/gpu.py exactness speed      # some of the parts
    python benchmarks/gpu.py --tables             # what is measured, and what is not
    python benchmarks/gpu.py --device cpu --tiny  # the same code on a CPU, on small shapes

`slice`: some steps of `paper:chi2023`; `base`: the preset of that name, trained and measured;
`windows`: certified windows as a block mask, the speed-up measured and the one that the blocks
predict; `exactness`: FlexAttention against the float64 specification, outputs and gradients, for
every bias of the catalogue in float32 and bfloat16; `speed`: its tokens a second and memory against
itself without a bias, and against fused attention.

Each part is a process of its own and writes OUT/PART.json when it is finished, with machine,
versions, command and commit; a part that is there is skipped. What the minutes cut off begins again
with the same command, a training from its last checkpoint.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from scaling import sliced
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from farfield.numerics.windows.certified import certified_window
from farfield.theory.encodings import encoding, encodings
from farfield.validation.checkpoints.head_window import upwards
from farfield.validation.files import CorruptFile, read_json, recorded, write_json
from farfield.validation.harness.attention import flexible, fused, materialised
from farfield.validation.harness.configuration import Configuration
from farfield.validation.harness.experiment import chosen_device, environment, train_and_measure
from farfield.validation.harness.measures.cost import GPT2
from farfield.validation.harness.positional import LearnedBias, additive_bias
from farfield.validation.harness.presets import preset
from farfield.validation.harness.reading import corpus
from farfield.validation.harness.store import Store

ROOT = Path(__file__).parents[1]
GIVEN = {"window": {"w": 30}, "alibi_log": {"m": 2}}  # encodings without a value of their own
ROUNDOFF = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-9}
LONGEST = 4.0  # seconds of one pass; a length that would take longer is left out
Row = dict[str, Any]


@dataclass(frozen=True)
class Setup:
    """Where it runs, whether on small shapes, and on what text."""

    device: torch.device
    tiny: bool
    out: Path
    text: str | None = None

    @property
    def gpu(self) -> bool:
        return self.device.type == "cuda"

    def asked(self) -> Row:
        return {"device": self.device.type, "tiny": self.tiny}


def bias_of(name: str, heads: int, length: int, setup: Setup) -> tuple[Tensor, bool]:
    """The bias of an encoding on the device, and whether models learn it."""
    given = GIVEN.get(name, {})
    per_head = {} if encoding(name, **given).num_heads == 1 else {"heads": heads}
    torch.manual_seed(0)
    module = additive_bias(encoding(name, **given, **per_head), heads)
    return module(length).detach().to(setup.device, torch.float32), isinstance(module, LearnedBias)


def sample(shape: tuple[int, ...], dtype: torch.dtype, setup: Setup) -> list[Tensor]:
    """Queries, keys, values and the gradient of the output."""
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).to(setup.device, dtype) for _ in range(4)]


# -- exactness ------------------------------------------------------------------------------------


def exactness(setup: Setup) -> Iterator[Row]:
    """Largest error over largest entry, in units of roundoff; fused attention without a bias and
    a gradient by the other path of a CPU, which has no backward pass of the kernel, beside them."""
    heads, length, size = (2, 40, 8) if setup.tiny else (4, 500, 64)
    names = [name for name in encodings() if encoding(name, **GIVEN.get(name, {})).biases]
    for dtype, unit in ROUNDOFF.items():
        inputs = sample((2, heads, length, size), dtype, setup)
        yield {"encoding": "no bias, fused"} | compared(stock, inputs, None, False, unit)
        for name in names:
            bias, learned = bias_of(name, heads, length, setup)
            found = compared(flexible if setup.gpu else fused, inputs, bias, learned, unit)
            if not setup.gpu:
                with torch.no_grad():
                    output = flexible(*inputs[:3], bias)
                found["output"] = error(output, materialised(*wide(inputs[:3]), bias), unit)
            yield {"encoding": name} | found


def stock(query: Tensor, key: Tensor, value: Tensor, bias: None) -> Tensor:
    return scaled_dot_product_attention(query, key, value, is_causal=True)


def wide(tensors: list[Tensor]) -> list[Tensor]:
    return [x.double() for x in tensors]


def error(found: Tensor, exact: Tensor, unit: float) -> float:
    """The largest error, in units of roundoff of the largest entry."""
    return float((found.double() - exact).abs().max() / exact.abs().max() / unit)


def compared(
    path: Callable[..., Tensor],
    inputs: list[Tensor],
    bias: Tensor | None,
    learned: bool,
    unit: float,
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
    errors = {
        name: error(found.detach(), exact.detach(), unit)
        for name, found, exact in zip(names, *results, strict=False)
    }
    return {"type": str(inputs[0].dtype).removeprefix("torch."), **errors}


# -- speed ----------------------------------------------------------------------------------------


def speed(setup: Setup) -> Iterator[Row]:
    """Forward, and forward and backward, in bfloat16; as many tokens in all at each length."""
    heads, size, lengths = 16, 64, [1024 << k for k in range(7)]
    if setup.tiny:
        heads, size, lengths = 2, 8, [64, 128]
    dtype = torch.bfloat16 if setup.gpu else torch.float32
    kernel, before = flexible if setup.gpu else fused, dict[tuple[str, bool], float]()
    for length in lengths:
        inputs = sample((lengths[-1] // length, heads, length, size), dtype, setup)
        for name in ("none", "none, same kernel", "type1", "alibi", "kerple_log"):
            plain = name.startswith("none")
            bias, learned = (None, False) if plain else bias_of(name, heads, length, setup)
            row: Row = {"tokens": length, "bias": name}
            for backward, what in ((False, "forward"), (True, "both")):
                if before.get((name, backward), 0) > LONGEST / 2:
                    continue
                path = stock if name == "none" else kernel
                spent, used = timed(step(path, inputs, bias, learned, backward), setup)
                before[name, backward] = spent
                row[f"{what}, tokens a second"] = lengths[-1] / spent
                row[f"{what}, MiB"] = used
            yield row


def step(
    path: Callable[..., Tensor],
    inputs: list[Tensor],
    bias: Tensor | None,
    learned: bool,
    backward: bool,
) -> Callable[[], object]:
    """One pass of a path, to be timed."""
    *leaves, weight = (x.detach().requires_grad_(backward) for x in inputs)
    table = None if bias is None else bias.detach().requires_grad_(backward and learned)
    wanted = [*leaves, table] if backward and learned else leaves

    def run() -> object:
        output = path(*leaves, table)
        return torch.autograd.grad(output, wanted, weight) if backward else output

    return run


def timed(call: Callable[[], object], setup: Setup) -> tuple[float, float | None]:
    """Median seconds of five calls after two, which compile, and MiB that one takes on a GPU."""

    def once() -> float:
        wait(setup)
        began = time.perf_counter()
        call()
        wait(setup)
        return time.perf_counter() - began

    once(), once()
    used = None
    if setup.gpu:
        torch.cuda.reset_peak_memory_stats(setup.device)
        held = torch.cuda.memory_allocated(setup.device)
        once()
        used = (torch.cuda.max_memory_allocated(setup.device) - held) / 2**20
    return median(once() for _ in range(5)), used


def wait(setup: Setup) -> None:
    if setup.gpu:
        torch.cuda.synchronize(setup.device)


# -- windows --------------------------------------------------------------------------------------


def windows(setup: Setup) -> Iterator[Row]:
    """ALiBi with each head in its certified window, for the bounds of these very inputs."""
    heads, size, lengths = 16, 64, [4096, 16_384, 65_536]
    if setup.tiny:
        heads, size, lengths = 8, 8, [256, 512]
    dtype = torch.bfloat16 if setup.gpu else torch.float32
    kernel, allowed = flexible if setup.gpu else fused, "1/100"
    for length in lengths:
        query, key, value, _ = sample((1, heads, length, size), dtype, setup)
        query, key = (unit_rows(x) * math.sqrt(3 * math.sqrt(size)) for x in (query, key))
        value = unit_rows(value)
        norms = [float(x.double().norm(dim=-1).max()) for x in (query, key, value)]
        logit = norms[0] * norms[1] / math.sqrt(size)
        window = certified_window(
            encoding("alibi", heads=heads), allowed, upwards(logit), upwards(norms[2])
        )
        bias, _ = bias_of("alibi", heads, length, setup)
        widths = [h.width for h in window.heads]
        beyond = torch.arange(length) >= torch.tensor(widths)[:, None]
        cut = bias.masked_fill(beyond.to(setup.device), -math.inf)
        with torch.no_grad():
            far = kernel(query, key, value, cut).double() - kernel(query, key, value, bias).double()
        full, some = (
            timed(step(kernel, [query, key, value, value], p, False, False), setup)[0]
            for p in (bias, cut)
        )
        blocks = -(-length // 128)
        kept = sum(int(np.asarray(h.block_mask(length, 128)).sum()) for h in window.heads)
        yield {
            "tokens": length,
            "windows": f"{min(widths)} to {max(widths)}",
            "full, tokens a second": length / full,
            "windows, tokens a second": length / some,
            "measured speed-up": full / some,
            "predicted by blocks": heads * blocks * (blocks + 1) / 2 / kept,
            "largest change": float(far.norm(dim=-1).max()),
            "certified in exact arithmetic": allowed,
        }


def unit_rows(x: Tensor) -> Tensor:
    return (x.double() / x.double().norm(dim=-1, keepdim=True)).to(x.dtype)


# -- models ---------------------------------------------------------------------------------------


def slice_(setup: Setup) -> Iterator[Row]:
    """A few steps of `paper:chi2023`, and what the whole run would take at that rate."""
    name, vocabulary = ("tiny", 256) if setup.tiny else ("paper:chi2023", GPT2)
    shape = dataclasses.replace(preset(name), steps=8 if setup.tiny else 23)
    if not setup.gpu:
        shape = dataclasses.replace(shape, precision="float32")
    yield {"preset": name} | sliced(preset(name), shape, vocabulary, setup.device)


def base(setup: Setup) -> Iterator[Row]:
    """The preset `base`, trained from the text and measured as every run is."""
    chosen = preset("tiny" if setup.tiny else "base")
    configuration = Configuration(encoding("-2*log(1+n)"), corpus(setup.text), chosen)
    store = Store(setup.out / "runs")
    result = train_and_measure(configuration, store, device=setup.device.type)
    training = result["training"]
    for found in result["measurements"][0]["perplexity"]:
        yield {
            "preset": chosen.name,
            "run": result["key"],
            "training, tokens a second": training["tokens"] / training["seconds"],
            "last loss": training["losses"][-1][1],
            "protocol": found["protocol"],
            "tokens": found["length"],
            "perplexity": found["perplexity"],
            "measuring, seconds": result["measurements"][0]["seconds"],
        }


PARTS: dict[str, Callable[[Setup], Iterator[Row]]] = {
    "slice": slice_,
    "base": base,
    "windows": windows,
    "exactness": exactness,
    "speed": speed,
}


# -- parts as files -------------------------------------------------------------------------------


def known(part: str, setup: Setup) -> Row | None:
    """What a part has written for this device and these shapes, if it has."""
    path = setup.out / f"{part}.json"
    try:
        found = read_json(path) if path.exists() else None
    except CorruptFile:
        return None
    return found if found is not None and found["asked"] == setup.asked() else None


def measure(part: str, setup: Setup) -> None:
    """Run one part and write its file."""
    began = time.perf_counter()
    rows = [recorded(row) for row in PARTS[part](setup)]
    found = {
        "part": part,
        "label": "measured",
        "asked": setup.asked(),
        "command": command(part, setup),
        "commit": commit(),
        "environment": environment(setup.device),
        "seconds": round(time.perf_counter() - began, 1),
        "rows": rows,
    }
    write_json(setup.out / f"{part}.json", found)


def command(part: str, setup: Setup) -> str:
    tiny = " --tiny" if setup.tiny else ""
    return f"python benchmarks/gpu.py {part} --device {setup.device.type}{tiny}"


def commit() -> str | None:
    """The commit of the working tree, with a mark where files have changed since."""
    asked = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=40", "--dirty"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
    except OSError:  # no git here
        return None
    return done.stdout.strip() or None


def tables(parts: list[str], setup: Setup) -> str:
    """The results as Markdown; a part without says so, and how it is measured."""
    lines = []
    for part in parts:
        found = known(part, setup)
        lines += [f"## {part}", ""]
        if found is None:
            lines += [f"*not measured*: `{command(part, setup)}`", ""]
            continue
        where = found["environment"]
        machine = where.get("gpu") or f"CPU, {where['cpu_capability']}"
        columns = list(dict.fromkeys(name for row in found["rows"] for name in row))
        lines += [
            f"{machine}, torch {where['torch']}, {found['seconds']} s [measured]; "
            f"`{found['command']}` at {found['commit']}",
            "",
            f"| {' | '.join(columns)} |",
            f"|{'---|' * len(columns)}",
            *(f"| {' | '.join(shown(row.get(c)) for c in columns)} |" for row in found["rows"]),
            "",
        ]
    return "\n".join(lines)


def shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


def main(args: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all if none")
    parser.add_argument("--out", type=Path, default=Path("out/gpu"))
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--text", help="file or folder that `base` trains on")
    parser.add_argument("--tiny", action="store_true", help="small shapes, seconds on a CPU")
    parser.add_argument("--tables", action="store_true", help="print results, measure nothing")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(args)
    if wrong := set(given.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(wrong))}; accepted: {', '.join(PARTS)}")
    parts = given.parts or list(PARTS)
    setup = Setup(torch.device(given.device), given.tiny, given.out, given.text)
    if given.inside:
        measure(given.parts[0], setup)
        return 0
    if not given.tables:
        try:
            chosen_device(given.device)
        except ValueError as lacking:  # no GPU
            print(lacking, file=sys.stderr)
            given.tables = True
        else:
            given.out.mkdir(parents=True, exist_ok=True)
            run(parts, setup, sys.argv[1:] if args is None else args, given.minutes)
    print(tables(parts, setup))
    return int(any(known(part, setup) is None for part in parts))


def run(parts: list[str], setup: Setup, args: list[str], minutes: float) -> None:
    """Each part that has no file, in a process of its own, until the minutes are over."""
    end = time.monotonic() + 60 * minutes
    options = [a for a in args if a not in PARTS]
    for part in parts:
        left = end - time.monotonic()
        if known(part, setup) is not None or left <= 0:
            continue
        print(f"{part} ...", file=sys.stderr, flush=True)
        try:
            again = [sys.executable, __file__, part, "--inside", *options]
            done = subprocess.run(again, check=False, timeout=left)
        except subprocess.TimeoutExpired:
            print(f"{part} was cut off; the same command continues", file=sys.stderr)
            return
        if done.returncode:
            print(f"{part} failed", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
