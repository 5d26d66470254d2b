"""The GPU path compiled for an H100 on a machine without one: shared memory, stages, spills.

    make sm90    # makes an environment with the CUDA build of torch, several GB, and runs this

Fake tensors on `cuda:0` go through Dynamo, AOTAutograd, Inductor and Triton down to machine code;
nothing is launched. So sizes are facts and speeds are not known. Each row is a kernel of attention
of a model under bfloat16, forward or backward; of a module of one's own, all kernels of a chunk of
queries. A fault is a kernel that needs more shared memory than a block has, one that spills to the
stack, one with other stages than were asked for, or a case that has not both kernels, whatever the
compiler said. A layer without a bias takes torch's own attention, which asks for a driver.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import triton
from side_by_side import Row, program
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention.flex_attention import BlockMask

from farfield.numerics.masks import CAUSAL, Mask
from farfield.validation.harness.attention import _of_pairs, block_mask
from farfield.validation.harness.model import Prepared
from farfield.validation.harness.runs import model_of
from farfield.validation.harness.settings import Run

SHARED = 232_448  # bytes of a block of an H100
GALLERY = Path(__file__).resolve().parents[1] / "docs" / "gallery"
CASES: dict[str, Any] = {
    "formula": "alibi",
    "table": "-floor(n/3)",
    "learned": "kerple_log",
    "buckets": "t5",
    "scale": {"mechanism": "alibi", "scale": {"form": "1 + a log", "heads": [2]}},
    "rope and bias": {"mechanism": "rope", "bias": "-n/4"},
    "window and sinks": {"mechanism": "-n/4", "window": 48, "sinks": True},
    "fire": f"{GALLERY}/fire.py:Fire",
    "forget gate": f"{GALLERY}/forget_gate.py:ForgetGate",
}
LENGTH = 512
OTHERS: list[tuple[str, dict[str, Any]]] = [  # of heads of 64
    *(("formula", {"length": length}) for length in (64, 256, 1000)),
    *(("learned", {"mask": mask}) for mask in (Mask(window=100), Mask(bca=64))),
    *((kind, {"learns": False}) for kind in ("formula", "table", "fire")),
]
GUARD = """
#include <c10/core/impl/DeviceGuardImplInterface.h>
using namespace c10;
struct Guard : impl::NoOpDeviceGuardImpl<DeviceType::CUDA> {
  Stream getStream(Device) const noexcept override {
    return Stream(Stream::DEFAULT, Device(DeviceType::CUDA, 0)); }
  Stream getNewStream(Device, int) const override { return getStream(getDevice()); }
  Stream exchangeStream(Stream) const noexcept override { return getStream(getDevice()); }
  Device getDevice() const override { return Device(DeviceType::CUDA, 0); }
  Device exchangeDevice(Device) const override { return getDevice(); }
  void synchronizeDevice(const DeviceIndex) const override {}
};
static Guard guard;
extern "C" void pretend() {
  impl::device_guard_impl_registry[(int)DeviceType::CUDA].store(&guard); }
"""
NAMES = [  # of the driver that torch and Triton look for
    "cuDevicePrimaryCtxGetState",
    "cuCtxGetCurrent",
    "cuCtxGetLimit",
    "cuCtxSetCurrent",
    "cuCtxSetLimit",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuDriverGetVersion",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuFuncSetCacheConfig",
    "cuGetErrorString",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuPointerGetAttribute",
]
DRIVER = "\n".join(f'extern "C" int {name}(...) {{ return 0; }}' for name in NAMES)
COUNT = """
namespace c10::cuda { signed char device_count() noexcept { return 1; }
  bool hasPrimaryContext(signed char) { return false; } }
extern "C" int cudaGetDeviceCount(int* n) { *n = 1; return 0; }
"""
PROPERTIES = types.SimpleNamespace(
    name="NVIDIA H100 80GB HBM3",
    major=9,
    minor=0,
    multi_processor_count=132,
    warp_size=32,
    total_memory=80 << 30,
    max_threads_per_multi_processor=2048,
    max_threads_per_block=1024,
    regs_per_multiprocessor=65_536,
    shared_memory_per_block=49_152,
    L2_cache_size=50 << 20,
    shared_memory_per_block_optin=SHARED,
    shared_memory_per_multiprocessor=233_472,
    gcnArchName="",
    is_integrated=0,
    is_multi_gpu_board=0,
)


def with_a_driver() -> None:
    """Begin this program again with a driver that does nothing, which is made first."""
    folder = Path(tempfile.mkdtemp())
    include = [f"-I{Path(torch.__file__).parent}/include", "-std=c++17", "-shared", "-fPIC"]
    for name, source in (("libcuda.so.1", DRIVER), ("count.so", COUNT), ("guard.so", GUARD)):
        (folder / "source.cpp").write_text(source)
        command = ["g++", *include, str(folder / "source.cpp"), "-o", str(folder / name)]
        subprocess.run(command, check=True)
    told = {
        "SM90": str(folder),
        "LD_LIBRARY_PATH": f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}",
        "LD_PRELOAD": str(folder / "count.so"),
        "TRITON_LIBCUDA_PATH": str(folder),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
    }
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **told})


class Driver:
    """What Triton asks of a driver before it compiles."""

    binary_ext = "cubin"
    utils = types.SimpleNamespace(
        get_device_properties=lambda *_: {"max_shared_mem": SHARED, "multiprocessor_count": 132}
    )

    def get_current_target(self) -> object:
        return triton.backends.compiler.GPUTarget("cuda", 90, 32)

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cuda", 0)

    def __getattr__(self, name: str) -> Callable[..., object]:
        return lambda *_, **__: 0


def pretend() -> None:
    """Make torch and Triton believe in an H100."""
    ctypes.CDLL(f"{Path(torch.__file__).parent}/lib/libc10.so", ctypes.RTLD_GLOBAL)
    ctypes.CDLL(f"{os.environ['SM90']}/guard.so").pretend()
    state = torch.zeros(16, dtype=torch.uint8)
    answers = {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "is_initialized": True,
        "get_device_capability": (9, 0),
        "get_device_properties": PROPERTIES,
        "get_device_name": PROPERTIES.name,
        "is_bf16_supported": True,
        "get_rng_state": state,
        "_exchange_device": 0,
        "_maybe_exchange_device": 0,
        **dict.fromkeys(
            ("_lazy_init", "synchronize", "set_device", "set_rng_state", "manual_seed_all")
        ),
    }
    from torch._dynamo.device_interface import CudaInterface

    inner = {"get_compute_capability": 90, "get_raw_stream": 0, "is_triton_capable": True}
    inner |= {"raise_if_triton_unavailable": None, "exchange_device": 0, "maybe_exchange_device": 0}
    for name, value in answers.items():
        setattr(torch.cuda, name, lambda *_, value=value, **__: value)
        if hasattr(torch.cuda.random, name):
            setattr(torch.cuda.random, name, getattr(torch.cuda, name))
    for name, value in (answers | inner).items():
        for kind in (CudaInterface, CudaInterface.Worker):
            if hasattr(kind, name):
                setattr(kind, name, staticmethod(lambda *_, value=value, **__: value))
    for name in ("getDevice", "exchangeDevice", "maybeExchangeDevice", "getCurrentRawStream"):
        setattr(torch._C, f"_cuda_{name}", lambda *_: 0)
    torch._C._cuda_setDevice = torch._C._cuda_synchronize = lambda *_: None
    torch.accelerator.is_available = lambda: False
    torch._subclasses.fake_tensor.init_gpu_context = lambda *_: None  # it would take a real tensor
    triton.runtime.driver.set_active(Driver())
    import torch._functorch.config as functorch
    import torch._inductor.config as inductor
    from torch._inductor.fx_passes import fuse_attention, pad_mm

    fuse_attention._sfdp_init = pad_mm._pad_mm_init = lambda *_, **__: None
    inductor.joint_graph_constant_folding = inductor.shape_padding = False
    inductor.use_static_cuda_launcher = inductor.fx_graph_cache = False
    functorch.force_non_lazy_backward_lowering = True


@contextlib.contextmanager
def compiling(kernels: list[Any]) -> Iterator[None]:
    """Kernels are compiled and listed, with the stages that were asked for, and never loaded."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    def precompile(self: Any, *_: object, **__: object) -> None:
        self.compile_results = [self._precompile_config(c) for c in self.configs]
        self.launchers = [None]
        asked = [c.num_stages for c in self.configs]
        each = zip(self.compile_results, asked, strict=True)
        kernels.extend((self.fn.__name__, r.kernel, stages) for r, stages in each)

    with mock.patch.object(CachingAutotuner, "precompile", precompile):
        yield


def faked(x: Any, fake_of: Callable[[Tensor], Tensor]) -> Any:
    """What is prepared on the processor, as it would be on the device."""
    if isinstance(x, Tensor):
        return fake_of(x)
    if isinstance(x, BlockMask):
        for name, value in vars(x).items():
            setattr(x, name, faked(value, fake_of))
    elif isinstance(x, types.FunctionType):
        for cell in x.__closure__ or ():
            cell.cell_contents = faked(cell.cell_contents, fake_of)
    elif type(x) in (list, Prepared):
        each = [faked(y, fake_of) for y in x]
        return each if type(x) is list else Prepared(*each)
    return x


def kernels_of(
    case: Any, size: int, length: int = LENGTH, mask: Mask = CAUSAL, learns: bool = True
) -> tuple[list[Any], str]:
    """All kernels of a model of one layer, or of a chunk of a module of one's own; and what ended
    their compilation before the first launch."""
    shape = {"layers": 1, "heads": 8, "width": 8 * size, "length": length}
    encoding = {"label": "layer", "layers": [case]} if isinstance(case, dict) else case
    model = model_of(Run(encoding=encoding, **shape)).train()
    block_mask.cache_clear()  # what is faked below is not for the next case
    prepared = model.prepare(length, mask, flex=True)
    own, mode, kernels = prepared[0].bias, FakeTensorMode(allow_non_fake_inputs=True), list[Any]()

    def fake_of(x: Tensor) -> Tensor:
        with mode:
            return torch.empty(x.shape, dtype=x.dtype, device="cuda", requires_grad=x.requires_grad)

    for module in model.modules():
        for name, parameter in list(module._parameters.items()):
            if parameter is not None:
                module._parameters[name] = nn.Parameter(fake_of(parameter.detach()))
    torch._dynamo.reset()
    with mode, compiling(kernels), torch.set_grad_enabled(learns):
        try:
            if isinstance(own, nn.Module):
                q, k, v = (torch.empty(4, 8, length, size, device="cuda") for _ in range(3))
                i = torch.arange(length, device="cuda")
                given = (x.requires_grad_(learns) for x in (q, k, v))
                torch.compile(_of_pairs, fullgraph=True, dynamic=False)(*given, own, mask, None, i)
            else:
                tokens = torch.zeros(4, length, dtype=torch.long, device="cuda")
                prepared = faked(prepared, fake_of)
                with torch.autocast("cuda", torch.bfloat16):
                    torch.compile(model, fullgraph=True)(tokens, prepared=prepared)
        except torch.AcceleratorError:  # the first launch: there is nothing to launch on
            return kernels, ""
        except Exception as error:  # whatever a compiler says
            return kernels, f"{type(error).__name__}: {error}".splitlines()[0]
    return kernels, "nothing was launched"


def rows_of(
    name: str, kind: str, kernels: list[Any], why: str, learns: bool = True
) -> Iterator[Row]:
    """A row a kernel of attention, forward and backward."""
    own = ".py:" in CASES[kind]
    chosen = kernels if own else [k for k in kernels if "_tem_" in k[0]]
    ways = {"backward" if "backward" in k[0] else "forward" for k in chosen}
    lacks = {"forward", "backward"} - ways if learns else {"forward"} - ways
    if lacks or why:
        yield {"heads of": f"{name}: no {' and '.join(sorted(lacks))}; {why}"[:150], "faults": 1}
    for each, kernel, asked in chosen:
        registers, stack = resources(kernel)
        shared, stages = kernel.metadata.shared, kernel.metadata.num_stages
        way = "backward" if "backward" in each else "forward"
        faults = int(shared > SHARED) + int(stack > 0) + int(stages != asked)
        if not own or faults:
            cells = {"shared": shared, "stages": stages, "registers": registers, "stack": stack}
            yield {"heads of": f"{name}, {way}", **cells, "faults": faults}
    if own:
        yield {"heads of": f"{name}, {len(chosen)} kernels of a chunk", "faults": 0}


def resources(kernel: Any) -> tuple[int, int]:
    """Registers and bytes of stack of a thread."""
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.asm["cubin"])
        file.flush()
        command = [str(tool), "--dump-resource-usage", file.name]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    registers, stack = re.search(r"REG:(\d+) STACK:(\d+)", told).groups()
    return int(registers), int(stack)


def main(*sizes: int, kinds: str = "") -> Iterator[Row]:
    """A row for each kernel of attention, by head size and bias.

    Args:
        sizes: of heads; 16, 64 and 128 if none is given.
        kinds: of biases, with commas; all of them, and other rows and masks, if none is given.
    """
    pretend()
    for size in sizes or (16, 64, 128):
        for kind in kinds.split(",") if kinds else CASES:
            yield from rows_of(f"{size}, {kind}", kind, *kernels_of(CASES[kind], size))
    for kind, how in OTHERS if not kinds else []:
        told = ", ".join(f"{k} {v}" for k, v in how.items())
        found = kernels_of(CASES[kind], 64, **how)
        yield from rows_of(f"64, {kind}, {told}", kind, *found, learns=how.get("learns", True))


if __name__ == "__main__":
    if "SM90" not in os.environ:
        with_a_driver()
    program(main, faults="faults")
