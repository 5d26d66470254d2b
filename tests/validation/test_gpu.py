"""What `make gpu` runs, on a CPU in small shapes: the first run on a GPU is not its first."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from farfield.theory.encodings import encoding, encodings

ROOT = Path(__file__).parents[2]
CARRIED = (
    "benchmarks/gpu.py",
    *(f"validation/harness/{n}.py" for n in ("attention", "mechanism", "model")),
)
REFUSES = """
import sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        frame, callers = sys._getframe(1), []
        while frame is not None:
            callers.append(frame.f_globals.get("__name__", "").partition(".")[0])
            frame = frame.f_back
        first = name.partition(".")[0]
        if first in {"farfield", "flint", "pydantic", "scipy"}:
            raise ImportError(f"{name} is refused here")
        if first == "sympy" and "torch" not in callers:  # torch itself needs it
            raise ImportError(f"{name} is refused here")

sys.meta_path.insert(0, Refused())
"""


@pytest.fixture(scope="module")
def gpu():
    """The module benchmarks/gpu.py, which finds its neighbours beside it."""
    spec = importlib.util.spec_from_file_location("gpu", ROOT / "benchmarks" / "gpu.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        patch.setitem(sys.modules, "gpu", module)  # where dataclasses look up annotations
        spec.loader.exec_module(module)
        yield module


@pytest.fixture(scope="module")
def elsewhere(gpu, tmp_path_factory):
    """A machine with torch and NumPy, the files that are carried there, and what it measures."""
    place = tmp_path_factory.mktemp("gpu")
    (place / "text").write_bytes(bytes(range(32, 120)) * 400)
    assert (
        gpu.main(["--prepare", str(place / "tiny.npz"), "--tiny", "--text", f"{place}/text"]) == 0
    )
    for name in CARRIED:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, place / name)
    (place / "alone").mkdir()
    (place / "alone" / "sitecustomize.py").write_text(REFUSES)
    command = [sys.executable, "benchmarks/gpu.py", "tiny.npz", *gpu.PARTS, "--inside"]
    done = subprocess.run(
        [*command, "--device", "cpu", "--out", "out"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(place / "alone")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture
def setup(gpu, elsewhere, tmp_path):
    """What was measured there, in a folder of its own."""
    shutil.copytree(elsewhere / "out", tmp_path / "out")
    return gpu.Setup(elsewhere / "tiny.npz", tmp_path / "out", torch.device("cpu"))


def found(gpu, setup, part):
    return {r["row"]: r["found"] for r in gpu.rows(setup) if r["part"] == part and r["row"]}


@pytest.mark.slow
def test_the_environment_refuses_what_it_should(elsewhere):
    for wrong in ("farfield", "sympy"):
        code = f"import {wrong}"
        env = {**os.environ, "PYTHONPATH": str(elsewhere / "alone")}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
        assert done.returncode == 1 and f"{wrong} is refused here" in done.stderr


def test_every_part_measures_elsewhere(gpu, setup, capsys):
    args = [str(setup.file), "--device", "cpu", "--out", str(setup.out)]
    before = (setup.out / "rows.jsonl").read_bytes()
    assert gpu.main(args) == 0
    said = capsys.readouterr()
    assert said.err == "" and "not measured" not in said.out and said.out.count("[measured]") == 5
    assert (setup.out / "rows.jsonl").read_bytes() == before
    names = {n for n in encodings() if encoding(n, **{"window": {"w": 3}}.get(n, {})).biases}
    exact = found(gpu, setup, "exactness")
    for kind in ("float32", "bfloat16"):
        assert {f"{kind}, {n}" for n in (*names, "no bias, fused")} <= set(exact)
    assert all(0 < row["output"] < 32 and 0 < row["key"] < 128 for row in exact.values())
    assert {n.split(", ")[1] for n, r in exact.items() if "bias" in r} >= {"kerple_log", "t5"}
    speed = found(gpu, setup, "speed")
    assert {"none, fused, 64", "none, same kernel, 64", "log, learned table, 128"} <= set(speed)
    assert set(found(gpu, setup, "base")) == {
        "training",
        *(f"perplexity {n}" for n in (16, 64, 256)),
    }


def test_windows_within_their_error_and_their_blocks(gpu, setup):
    windows = found(gpu, setup, "windows")
    for tokens, row in windows.items():
        assert 0 < row["largest change"] <= 0.01 and row["measured speed-up"] > 0
        blocks, low = int(tokens) // 128, int(row["windows"].split()[0])
        most = blocks * (blocks + 1) / 2 / min(blocks, blocks + low // 128)
        assert 1 <= row["predicted by blocks"] <= most
    assert len(windows) == 2


def test_what_was_cut_off_is_measured_and_nothing_else(gpu, setup, monkeypatch, capsys):
    """The last line is torn, and the rows of one part are gone."""
    place = setup.out / "rows.jsonl"
    lines = [line for line in place.read_text().splitlines() if '"part": "windows"' not in line]
    kept = "\n".join(lines)[:-20]
    place.write_text(kept)
    assert not gpu.whole("windows", setup) and not gpu.whole("speed", setup)
    args = [str(setup.file), "windows", "--device", "cpu", "--out", str(setup.out), "--tables"]
    assert gpu.main(args) == 1 and "*not measured*: `python benchmarks" in capsys.readouterr().out
    gpu.measure("windows", setup)
    monkeypatch.setattr(gpu, "passes", None)
    gpu.measure("speed", setup)  # its rows are there, the line that ends them is not
    monkeypatch.setattr(gpu, "train", None)
    gpu.measure("base", setup)
    assert place.read_text().startswith(kept) and gpu.whole("windows", setup)
    assert gpu.whole("speed", setup) and len(place.read_text().splitlines()) == len(lines) + 4
    place.write_text(place.read_text().replace(setup.name, "other cpu"))
    assert gpu.rows(setup) == []


def test_a_training_continues_from_its_checkpoint(gpu, setup, tmp_path, monkeypatch):
    bias = lambda: gpu.Table(setup.table("base/type1"))  # noqa: E731
    kept, plain = tmp_path / "kept.pt", gpu.train(setup, "base", bias)
    monkeypatch.setattr(gpu, "KEPT", 0.0)
    saves, save = [], torch.save

    def killed(state, place):
        save(state, place)
        saves.append(place)
        if len(saves) == 12:
            raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        gpu.train(setup, "base", bias, kept)
    again = gpu.train(setup, "base", bias, kept)
    assert again.loss == plain.loss and len(saves) == 12 + 30 - 11
    for a, b in zip(again.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_the_comparison_notices_a_bias_in_half_precision(gpu, setup):
    bias = setup.table("speed/alibi")
    inputs = setup.sample((1, 2, 128, 8), torch.float32)

    def rounded(q, k, v, p):
        return gpu.fused(q, k, v, p.bfloat16().float())

    exact, coarse = (
        gpu.compared(path, inputs, bias / 3, False)["output"] for path in (gpu.fused, rounded)
    )
    assert exact < 32 and coarse > 1000


def test_formulas_are_their_tables(gpu, setup):
    position = torch.arange(64)
    at = (torch.arange(2)[:, None, None], position[:, None], position)
    distance = (position[:, None] - position).clamp(min=0)
    for name, (bias, _) in gpu.controls(setup, 64).items():
        if name.endswith("formula"):
            head, query, key = at
            made = bias(torch.zeros(2, 64, 64), 0, head, query, key)
            table = setup.table(f"speed/{'alibi' if name.startswith('alibi') else 'type1'}")
            expected = table[:, distance].expand_as(made)
            torch.testing.assert_close(made, expected, rtol=1e-6, atol=1e-6)


def test_the_documentation_tells_every_part(gpu):
    told = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
    for part in gpu.PARTS:
        assert f"`python benchmarks/gpu.py out/gpu.npz {part}`" in told
    assert all(Path(name).name in told for name in CARRIED)


def test_without_a_gpu_the_tables_say_how(gpu, setup, capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu.main([str(setup.file), "--out", str(setup.out)]) == 1
    said = capsys.readouterr()
    assert said.err.count("\n") == 1 and "no GPU" in said.err
    assert said.out.count("*not measured*: `python benchmarks/gpu.py") == len(gpu.PARTS) == 5
    for wrong in (["nowhere.npz"], [str(setup.file), "sped"]):
        with pytest.raises(SystemExit):
            gpu.main(wrong)
    assert "accepted" in capsys.readouterr().err
