"""The kernels of the GPU path by numbers, on a machine without a GPU, beside the specification.

    make sm90    # after the sizes; `python benchmarks/sm90_numbers.py --only rope` takes some rows

Inductor writes the kernels of an H100 from fake tensors, as in `sm90.py`. Triton's interpreter runs
their source in NumPy, on tensors of the processor that the fake ones stand for. So the templates of
FlexAttention, the biases and masks put into them, the lists of blocks and the layouts of queries
and keys are checked by numbers. Races, shared memory and the accuracy of the hardware are not.

A row is the attention of a layer: queries, keys and values from a residual, rotated and scaled, the
kernel, and the gradients of all that has one; of a module of one's own, a chunk of queries. It
gives the largest differences from `materialised` in float64, relative to the largest entry, in
units of the precision: 2^-23, or 2^-7 in bfloat16. Rows that are altered on purpose are faults
where the numbers do not show it.
"""

from __future__ import annotations

import functools
import os
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported

import numpy as np
import sm90
import torch
import triton.language as tl
from side_by_side import Row, program
from torch import Tensor, nn
from torch._inductor.codecache import PyCodeCache
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.nn.attention.flex_attention import BlockMask
from triton.language.extra import libdevice
from triton.runtime import interpreter
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

from farfield.numerics.masks import CAUSAL, Mask
from farfield.validation.harness.attention import _of_pairs, block_mask, materialised
from farfield.validation.harness.model import Layer, Prepared, Transformer
from farfield.validation.harness.runs import model_of
from farfield.validation.harness.settings import Run

ALLOWED = {torch.float32: 32, torch.bfloat16: 4}
BATCH = HEADS = 2
LENGTH = 256
FLOOR = 1e-3  # of the largest gradient: a smaller one is compared with this
ROWS = 64  # of a program at least, in kernels that are no templates
CASES: dict[str, Any] = {
    **sm90.CASES,
    "logarithm": "-log(1+n)",
    "table that ends": "Piecewise((-n, n < 40), (-oo, True))",
    "buckets": {"mechanism": "t5", "sinks": True},
    "rope and window": {"mechanism": "rope", "window": 48},
    "two windows": {"mechanism": "0", "window": 100},
}
MASKS = {
    "": CAUSAL,
    "first keys": Mask(window=100, sinks=4),
    "blockwise": Mask(bca=64),
}
HALF = torch.bfloat16
Case = tuple[str, str, int, int, torch.dtype, bool]  # kind, mask, size, length, type, learns
OWN = ("fire", "forget gate")
PLAIN = tuple(kind for kind in CASES if kind not in OWN)
SHORT = ("formula", "learned", "rope and window")
EVERY: list[Case] = [
    *((kind, "", 16, LENGTH, HALF, True) for kind in PLAIN),
    *((kind, "", 16, 64, HALF, learns) for kind in OWN for learns in (True, False)),
    *((kind, "blockwise", 16, LENGTH, HALF, True) for kind in ("learned", "two windows")),
    *((kind, "first keys", 16, LENGTH, HALF, True) for kind in ("formula", "buckets")),
    *((kind, "", 16, n, HALF, True) for n in (64, 300, 512, 1000) for kind in SHORT),
    *(
        (kind, "", 16, n, torch.float32, False)
        for n in (64, 300)
        for kind in ("formula", "table", "learned", "rope and window", "window and sinks")
    ),
    *(
        (kind, "", size, LENGTH, torch.float32, True)
        for size in (16, 64)
        for kind in ("formula", "table", "buckets", "rope and window")
    ),
    *((kind, "", size, LENGTH, HALF, True) for size in (64, 128) for kind in PLAIN),
    *((kind, "", size, 64, HALF, True) for size in (64, 128) for kind in OWN),
]

# -- fake tensors that stand for real ones --------------------------------------------------------

MODE = FakeTensorMode(allow_non_fake_inputs=True)
REAL: dict[int, tuple[Tensor, Tensor]] = {}  # by the storage of the fake tensor, which is kept too


def fake_of(real: Tensor) -> Tensor:
    """A tensor on the device that stands for a real one."""
    with MODE:
        fake = torch.empty_strided(real.shape, real.stride(), dtype=real.dtype, device="cuda")
    REAL[fake.untyped_storage()._cdata] = real, fake
    return fake.requires_grad_(real.requires_grad)


def real_of(fake: Tensor) -> Tensor:
    """What it, or a view of it, stands for; a KeyError where something else was computed on it."""
    real, _ = REAL[fake.untyped_storage()._cdata]
    offset = real.storage_offset() + fake.storage_offset()
    return real.as_strided(fake.size(), fake.stride(), offset)


def run(call: Callable[[list[Any]], tuple[Any, ...]], given: list[Any]) -> tuple[Any, ...]:
    """What Inductor wrote for the device, on the real tensors that its arguments stand for."""
    with unset_fake_temporarily(), torch.no_grad():
        results = call([real_of(x) if isinstance(x, Tensor) else x for x in given])
    given.clear()
    return tuple(fake_of(x) if isinstance(x, Tensor) else x for x in results)


def interpreting() -> None:
    """The modules that Inductor loads run so; their kernels are not compiled."""
    load, launch = PyCodeCache.load_by_key_path, CachingAutotuner.run

    def loaded(*args: Any, **options: Any) -> Any:
        module = load(*args, **options)
        if hasattr(module, "empty_strided_cuda"):
            module.empty_strided_cuda = module.empty_strided_cpu
            module.call = functools.partial(run, module.call)
        return module

    def launched(self: Any, *args: Any, **options: Any) -> Any:
        for config in self.configs:  # a row a program would take most of the time
            wider = {name: max(x, ROWS) for name, x in config.kwargs.items() if name == "XBLOCK"}
            config.kwargs.update(wider)
        return launch(self, *args, **options)

    PyCodeCache.load_by_key_path, CachingAutotuner.run = staticmethod(loaded), launched


# -- what the interpreter lacks -------------------------------------------------------------------


def numbers(handle: TensorHandle) -> np.ndarray:
    """The numbers of a block; the interpreter keeps bfloat16 as the bits."""
    if handle.dtype.scalar != tl.bfloat16:
        return handle.data
    return (handle.data.astype(np.uint32) << 16).view(np.float32)


def cast(_: InterpreterBuilder, handle: TensorHandle, kind: Any, *__: object) -> TensorHandle:
    """To another type, to the nearest; the interpreter cuts bfloat16 off."""
    data, kind = numbers(handle), kind.scalar
    if kind != tl.bfloat16:
        return TensorHandle(data.astype(interpreter._get_np_dtype(kind)), kind)
    nearest = torch.tensor(data.astype(np.float32)).bfloat16().view(torch.int16).numpy()
    return TensorHandle(nearest.view(np.uint16), kind)


def product(_: InterpreterBuilder, a: Any, b: Any, c: Any, *__: object) -> TensorHandle:
    """A product of matrices, added up in the type of the sum."""
    sums = np.matmul(numbers(a), numbers(b), dtype=c.data.dtype) + c.data
    return TensorHandle(sums, c.dtype.scalar)


def by_torch(name: str, *args: Any) -> tl.tensor:
    """A function of libdevice, by torch's of that name."""
    given = [interpreter.interpreter_semantic.to_tensor(x) for x in args]
    data = getattr(torch, name)(*(torch.tensor(numbers(x.handle)) for x in given)).numpy()
    kind = tl.int1 if data.dtype == bool else given[0].dtype
    shapes = [tl.block_type(kind, list(data.shape)) for x in given if x.type.is_block()]
    return tl.tensor(TensorHandle(data, kind), [*shapes, kind][0])


def repaired() -> None:
    """The interpreter with bfloat16 and with libdevice, in a quarter of the time."""
    InterpreterBuilder.cast_impl = InterpreterBuilder.create_fp_to_fp = cast
    InterpreterBuilder.create_dot = product
    for name in [x for x in vars(libdevice) if x[0] != "_" and hasattr(torch, x)]:
        setattr(libdevice, name, functools.partial(by_torch, name))
    plain = interpreter.InterpreterOptions(sanitize_overflow=False)
    interpreter.interpreter_builder.options = plain
    interpreter._patch_lang(types.SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    # Once, and not at each function that a kernel calls.
    interpreter._patch_lang = lambda _: types.SimpleNamespace(restore=lambda: None)


# -- a row ----------------------------------------------------------------------------------------

Attended = Callable[..., Tensor]


def model_with(kind: str, size: int, length: int) -> Transformer:
    """A model of one layer, whose sinks are not 0."""
    case = CASES[kind]
    encoding = {"label": kind, "layers": [case]} if isinstance(case, dict) else case
    shape = {"heads": HEADS, "width": HEADS * size, "length": length, "layers": 1}
    torch.manual_seed(0)
    model = model_of(Run(encoding=encoding, **shape)).train()
    if model.layers[0].sinks is not None:
        nn.init.normal_(model.layers[0].sinks)
    return model


def attended(layer: Layer, x: Tensor, given: Prepared, attend: Attended | None) -> Tensor:
    """The attention of a layer on a residual."""
    q, k, v = layer.qkv(x)
    if attend is None:
        return layer.attend(q, k, v, given)
    return attend(q, k, v, given.bias, given.mask, layer.sinks)


def on_device(model: Transformer) -> None:
    """Its parameters in place, each by a tensor on the device that stands for it."""
    for module in model.modules():
        for name, parameter in list(module._parameters.items()):
            if parameter is not None:
                module._parameters[name] = nn.Parameter(fake_of(parameter.detach()))


def leaves(model: Transformer, table: Any) -> dict[str, Tensor]:
    """What has a gradient: the weights of queries, keys and values, the sinks, a learned table."""
    layer = model.layers[0]
    found = {"weights": layer.qkv_proj.weight, "sinks": layer.sinks, "table": table}
    return {k: x for k, x in found.items() if isinstance(x, Tensor) and x.requires_grad}


def compared(
    right: list[Tensor],
    path: Callable[[], Tensor],
    ours: list[Tensor],
    gradient: Tensor | None,
) -> list[float]:
    """Largest differences of the output and of gradients, relative to the largest entry."""
    with MODE, torch.set_grad_enabled(gradient is not None):
        found = [torch.compile(path, fullgraph=True, dynamic=False)()]
        if gradient is not None:
            with unset_fake_temporarily():  # in the layout of the output, or it would be copied
                alike = torch.empty_strided(found[0].shape, found[0].stride(), dtype=found[0].dtype)
                alike.copy_(gradient)
            found += torch.autograd.grad(found[0], ours, fake_of(alike))
    return apart([real_of(x) for x in found], right)


def with_gradients(output: Tensor, leaves: list[Tensor], gradient: Tensor | None) -> list[Tensor]:
    """An output and its gradients, computed as they are."""
    if gradient is None:
        return [output]
    return [output, *torch.autograd.grad(output, leaves, gradient.to(output.dtype))]


def apart(found: list[Tensor], wanted: list[Tensor]) -> list[float]:
    """Largest differences, each relative to the largest entry."""
    largest = [x.double().abs().max() for x in wanted]
    least = FLOOR * max(largest[1:], default=0.0)
    differences = []
    for one, other, most in zip(found, wanted, largest, strict=True):
        assert one.shape == other.shape and bool(one.isfinite().all())
        far = (one.double() - other.double()).abs().max()
        differences.append(float(far / max(most, least)))
    return differences


def of_layer(case: Case, alter: Callable[[Prepared], Prepared]) -> dict[str, float]:
    """The attention of a layer beside `materialised`."""
    kind, mask, size, length, precision, learns = case
    model, exact = (model_with(kind, size, length) for _ in range(2))
    block_mask.cache_clear()  # what is faked below is not for the next case
    plain, fused = (model.prepare(length, MASKS[mask], flex=flex)[0] for flex in (False, True))
    table = plain.bias  # a learned one is made outside of what is compiled: a leaf here
    if table is not None:
        table = table.detach().requires_grad_(table.requires_grad)
    learned = table is not None and table.requires_grad
    fused = alter(fused._replace(bias=table) if learned else fused)
    if not isinstance(fused.mask, BlockMask):  # torch's own attention takes what has no mask
        fused = fused._replace(mask=block_mask(fused.mask, length))
    x = torch.randn(BATCH, length, HEADS * size)
    low = precision == HALF
    gradient = torch.randn(BATCH, HEADS, length, size).to(precision) if learns else None
    wide = None if table is None else table.detach().double().requires_grad_(learned)
    given = Prepared(wide, plain.mask)
    right = attended(exact.double().layers[0], x.double(), given, materialised)
    on_device(model)
    fused, start = sm90.faked(fused, fake_of), fake_of(x)
    ours = leaves(model, fused.bias)
    with torch.autocast("cuda", torch.bfloat16, enabled=low):
        far = compared(
            with_gradients(right, list(leaves(exact, wide).values()), gradient),
            lambda: attended(model.layers[0], start, fused, None),
            list(ours.values()),
            gradient,
        )
    return dict(zip(["output", *ours], far, strict=False))


def of_module(case: Case, alter: Callable[[Prepared], Prepared]) -> dict[str, float]:
    """A chunk of queries of a module of one's own, beside the same in float64.

    Sums over all pairs may cancel. So a difference counts in units of the error that torch's own
    float32 makes of the same, where this is more than the precision.
    """
    kind, mask, size, length, _, learns = case
    model, exact = (model_with(kind, size, length) for _ in range(2))
    given = [torch.randn(BATCH, HEADS, length, size).requires_grad_(learns) for _ in "qkv"]
    gradient = torch.randn(BATCH, HEADS, length, size) if learns else None
    own, bias = model.bias_of[0], exact.double().bias_of[0]
    assert own is not None and bias is not None
    seen, i = alter(Prepared(own, MASKS[mask])).mask, torch.arange(length)
    names = [name for name, p in bias.named_parameters() if p.requires_grad]

    def parameters(of: nn.Module) -> list[Tensor]:
        return [of.get_parameter(name) for name in names]

    right = with_gradients(
        materialised(*(x.double() for x in given), bias, MASKS[mask]),
        [*given, *parameters(bias)],
        gradient,
    )
    plain = _of_pairs(*given, own, MASKS[mask], None, i)
    rounded = apart(with_gradients(plain, [*given, *parameters(own)], gradient), right)
    on_device(model)
    fakes, at = [fake_of(x) for x in given], fake_of(i)
    far = compared(
        right,
        lambda: _of_pairs(*fakes, own, seen, None, at),
        [*fakes, *parameters(own)],
        gradient,
    )
    eps = torch.finfo(torch.float32).eps
    output, *others = (x * eps / max(eps, y) for x, y in zip(far, rounded, strict=True))
    return {"output": output} | ({"gradients": max(others)} if learns else {})


def named(case: Case, altered: str) -> str:
    """A row by its name."""
    kind, mask, size, length, _, learns = case
    said = [f"{size}", kind, mask, f"rows of {length}", "" if learns else "no gradient", altered]
    return ", ".join(filter(None, said))


def row_of(
    case: Case, altered: str = "", alter: Callable[[Prepared], Prepared] = lambda given: given
) -> Row:
    """A row; a fault where a difference is beyond what is allowed, or where what was altered is
    not seen."""
    own = case[0] in OWN  # it is given and gives float32
    precision = torch.float32 if own else case[4]
    began = time.process_time()
    torch._dynamo.reset()
    REAL.clear()
    name = named(case, altered)
    try:
        found = (of_module if own else of_layer)(case, alter)
    except Exception as error:  # whatever a compiler says
        return {"heads of": f"{name}: {type(error).__name__}: {error}"[:300], "faults": 1}
    worst = {k: x / torch.finfo(precision).eps for k, x in found.items()}
    beyond = not max(worst.values()) <= ALLOWED[precision]
    return {
        "heads of": name,
        "type": str(precision)[6:],
        "output": worst.pop("output"),
        "gradients": max(worst.values(), default=0.0),
        "seconds": time.process_time() - began,
        "faults": int(beyond != bool(altered)),
    }


# -- faults made on purpose -----------------------------------------------------------------------


def shifted(given: Prepared) -> Prepared:
    """The table one distance off."""
    assert isinstance(given.bias, Tensor)
    table = given.bias.detach().roll(1, -1).requires_grad_(given.bias.requires_grad)
    return given._replace(bias=table)


def blocks(given: Prepared, **changes: Callable[[Tensor], Tensor]) -> Prepared:
    """Lists of blocks that were changed."""
    assert isinstance(given.mask, BlockMask)
    for name, change in changes.items():
        setattr(given.mask, name, change(getattr(given.mask, name).clone()))
    return given


def one_less(counts: Tensor) -> Tensor:
    """The last row of blocks lists one block less."""
    counts[..., -1] -= 1
    return counts


def without_a_block_of_queries(given: Prepared) -> Prepared:
    """The backward list alone: the first keys are not seen by the last queries."""
    first = {"full_q_num_blocks": lambda x: torch.cat([x[..., :1] - 1, x[..., 1:]], -1)}
    return blocks(given, **first)


ALTERED: list[tuple[str, Case, Callable[[Prepared], Prepared]]] = [
    ("a table one distance off", ("learned", "", 16, LENGTH, HALF, True), shifted),
    (
        "a block of keys left out",
        ("logarithm", "", 16, LENGTH, HALF, True),
        lambda given: blocks(given, full_kv_num_blocks=one_less),
    ),
    (
        "a block of queries left out, backward",
        ("logarithm", "", 16, LENGTH, HALF, True),
        without_a_block_of_queries,
    ),
    (
        "a window",
        ("fire", "", 16, 64, HALF, True),
        lambda given: given._replace(mask=Mask(window=48)),
    ),
]


def main(only: str = "", length: int = 0) -> Iterator[Row]:
    """A row for each case.

    Args:
        only: rows with this in their name.
        length: rows of this many tokens alone; 0 for all.
    """
    sm90.pretend()
    interpreting()
    repaired()
    every = [(case, said, alter) for said, case, alter in ALTERED]
    every += [(case, "", lambda given: given) for case in EVERY]
    for case, said, alter in every:
        if only in named(case, said) and length in (0, case[3]):
            yield row_of(case, said, alter)


if __name__ == "__main__":
    if "SM90" not in os.environ:
        sm90.with_a_driver()
    program(main, faults="faults")
