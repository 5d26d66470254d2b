"""The kernel of a GPU is the specification; what `make gpu` runs, on a CPU in small shapes."""

import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

from farfield.validation.harness.data import Text
from farfield.validation.harness.runs import model_of
from farfield.validation.harness.settings import Run
from farfield.validation.harness.train import scorer

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
TEXT = Text("words", *(np.frombuffer(b"the cat sat on the mat. " * n, np.uint8) for n in (90, 30)))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is visible")
@pytest.mark.parametrize("size", [16, 64, 128])
@pytest.mark.parametrize("encoding", ["alibi", "-floor(n/3)", "kerple_log", "t5", "rope", "nope"])
def test_the_kernel_of_a_gpu_is_the_specification(size, encoding):
    """In bfloat16; the model is compiled whole, so where the kernel does not run this fails."""
    shape = {"layers": 2, "heads": 2, "width": 2 * size, "length": 512}
    asked = Run(encoding=encoding, precision="bfloat16", **shape)
    model = model_of(asked).cuda()
    scores = scorer(model, model, asked)
    tokens = torch.from_numpy(TEXT.batch(0, 0, 2, 512)[0]).cuda()
    logits = scores(tokens)
    logits.square().mean().backward()
    grads = [p.grad.clone() for p in model.parameters()]
    exact = model_of(asked).double()
    wanted = exact(tokens.cpu())
    wanted.square().mean().backward()
    assert (logits.cpu().double() - wanted).abs().max() < 0.05 * wanted.abs().max()
    for grad, p in zip(grads, exact.parameters(), strict=True):
        assert (grad.cpu().double() - p.grad).norm() < 0.05 * p.grad.norm() + 1e-6


def test_the_benchmark_of_a_gpu_runs_on_a_processor(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    measured = runpy.run_path(str(BENCHMARKS / "gpu.py"))
    for name in measured["MECHANISMS"]:
        row = measured["measured"](f"exactness: {name}, 16", "cpu", tmp_path, 0)
        assert row["faults"] == 0 and row["logits"] < 1e-5 and row["gradients"] < 1e-4
    assert measured["measured"]("speed: fire, 32", "cpu", tmp_path, 0)["tokens/s"] > 0
