"""The GPU path compiled for an H100 on a machine without one: shared memory, stages, spills.

    make sm90    # makes an environment with the CUDA build of torch, several GB, and runs this

Fake tensors on `cuda:0` go through Dynamo, AOTAutograd, Inductor and Triton down to machine code;
nothing is launched. So sizes are facts and speeds are not known. Each row is a kernel of attention
of a model under bfloat16, forward or backward. A fault is a kernel that needs more shared memory
than a block has, one that spills to the stack, one with other stages than were asked for, or a
model that is not one graph.
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

from farfield.validation.harness.bias import model_of
from farfield.validation.harness.model import Prepared
from farfield.validation.harness.settings import PRESETS, Run

SHARED = 232_448  # bytes of a block of an H100
ENCODINGS = {"formula": "alibi", "table": "-floor(n/3)", "learned": "kerple_log", "buckets": "t5"}
LENGTH = 512
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


def faked(x: Any, mode: FakeTensorMode) -> Any:
    """What is prepared on the processor, as it would be on the device."""
    if isinstance(x, Tensor):
        with mode:
            return torch.empty(x.shape, dtype=x.dtype, device="cuda", requires_grad=x.requires_grad)
    if isinstance(x, BlockMask):
        for name, value in vars(x).items():
            setattr(x, name, faked(value, mode))
    elif isinstance(x, types.FunctionType):
        for cell in x.__closure__ or ():
            cell.cell_contents = faked(cell.cell_contents, mode)
    elif type(x) in (list, Prepared):
        each = [faked(y, mode) for y in x]
        return each if type(x) is list else Prepared(*each)
    return x


def kernels_of(encoding: str, size: int) -> list[Any]:
    """All kernels of a model, forward and backward."""
    shape = {"layers": 1, "heads": 8, "width": 8 * size, "length": LENGTH}
    model = model_of(Run(encoding=encoding, **shape)).train()
    prepared = model.prepare(LENGTH, flex=True)
    mode, kernels = FakeTensorMode(allow_non_fake_inputs=True), list[Any]()
    prepared = faked(prepared, mode)
    for module in model.modules():
        for name, parameter in list(module._parameters.items()):
            if parameter is not None:
                module._parameters[name] = nn.Parameter(faked(parameter.detach(), mode))
    torch._dynamo.reset()
    with mode, compiling(kernels), torch.autocast("cuda", torch.bfloat16):
        tokens = torch.zeros(4, LENGTH, dtype=torch.long, device="cuda")
        with contextlib.suppress(RuntimeError):  # the first launch: there is nothing to launch on
            torch.compile(model, fullgraph=True)(tokens, prepared=prepared)
    return kernels


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


def main(*sizes: int) -> Iterator[Row]:
    """A row for each kernel of attention, by head size (those of the presets) and bias."""
    pretend()
    known = {p["width"] // p["heads"] for p in PRESETS.values()}
    for size in sizes or sorted(size for size in known if size >= 16):
        for kind, encoding in ENCODINGS.items():
            kernels = kernels_of(encoding, size)
            attention = [k for k in kernels if "_tem_" in k[0]]
            if not attention:
                yield {"heads of": f"{size}, {kind}, no kernel", "faults": 1}
            for name, kernel, asked in attention:
                registers, stack = resources(kernel)
                shared, stages = kernel.metadata.shared, kernel.metadata.num_stages
                way = "backward" if "backward" in name else "forward"
                faults = int(shared > SHARED) + int(stack > 0) + int(stages != asked)
                yield {
                    "heads of": f"{size}, {kind}, {way}",
                    "shared": shared,
                    "stages": stages,
                    "registers": registers,
                    "stack": stack,
                    "faults": faults,
                }


if __name__ == "__main__":
    if "SM90" not in os.environ:
        with_a_driver()
    program(main, faults="faults")
