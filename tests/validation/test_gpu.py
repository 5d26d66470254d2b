"""What `make gpu` runs, on a CPU in small shapes: the first run on a GPU is not its first."""

import importlib.util
import json
import shlex
import sys
from pathlib import Path

import pytest
import torch

from farfield.theory.encodings import encodings
from farfield.validation.files import read_json
from farfield.validation.harness.attention import toeplitz

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def gpu():
    """The module benchmarks/gpu.py, which finds its neighbours beside it."""
    spec = importlib.util.spec_from_file_location("gpu", BENCHMARKS / "gpu.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        patch.setitem(sys.modules, "gpu", module)  # where dataclasses look up annotations
        spec.loader.exec_module(module)
        yield module


@pytest.fixture(scope="module")
def setup(gpu, tmp_path_factory):
    out = tmp_path_factory.mktemp("gpu")
    (out / "text").write_bytes(bytes(range(32, 120)) * 400)
    return gpu.Setup(torch.device("cpu"), True, out, str(out / "text"))


def test_every_bias_has_values(gpu, setup):
    for name in encodings():
        if gpu.encoding(name).biases:
            bias, _ = gpu.bias_of(name, 4, 40, setup)
            assert bias.shape in ((1, 40), (4, 40)) and bool((bias[:, 0] > -torch.inf).all())


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_a_bias_of_each_kind_is_compared_with_the_specification(gpu, setup, monkeypatch):
    """One row for all heads, a row a head, a support, learned values."""
    biases = ["nope", "alibi", "window", "kerple_log"]
    monkeypatch.setattr(gpu, "encodings", lambda: [*biases, "rope"])
    rows = list(gpu.exactness(setup))
    for kind in ("float32", "bfloat16"):
        found = [row for row in rows if row["type"] == kind]
        assert [row["encoding"] for row in found] == ["no bias, fused", *biases]
        for row in found:
            assert 0 < row["output"] < 32 and 0 < row["key"] < 128
    assert {row["encoding"] for row in rows if "bias" in row} == {"kerple_log"}


def test_the_comparison_notices_a_bias_in_half_precision(gpu, setup):
    bias, learned = gpu.bias_of("alibi", 2, 300, setup)
    inputs = gpu.sample((1, 2, 300, 8), torch.float32, setup)

    def rounded(q, k, v, p):
        return toeplitz(q, k, v, p.bfloat16().float() + 0)

    exact, coarse = (
        gpu.compared(path, inputs, bias / 3, learned, 2.0**-24)["output"]
        for path in (toeplitz, rounded)
    )
    assert exact < 32 and coarse > 1000


def test_windows_within_their_error_and_their_blocks(gpu, setup):
    for row in gpu.windows(setup):
        assert 0 < row["largest change"] <= 0.01
        assert row["measured speed-up"] > 0
        tokens, low = row["tokens"], int(row["windows"].split()[0])
        blocks = tokens // 128
        most = blocks * (blocks + 1) / 2 / min(blocks, blocks + low // 128)
        assert 1 <= row["predicted by blocks"] <= most


def test_all_parts_write_and_are_not_repeated(gpu, setup, capsys, monkeypatch):
    args = ["--device", "cpu", "--tiny", "--out", str(setup.out)]
    monkeypatch.setattr(
        gpu, "PARTS", {name: gpu.PARTS[name] for name in ("speed", "slice", "base")}
    )
    for part in gpu.PARTS:
        gpu.measure(part, setup)
    before = {path.name: path.read_bytes() for path in setup.out.glob("*.json")}
    assert gpu.main(args) == 0
    said = capsys.readouterr()
    assert said.err == "" and "not measured" not in said.out
    for part in gpu.PARTS:
        path = setup.out / f"{part}.json"
        assert before[path.name] == path.read_bytes()
        found = read_json(path)
        assert found["part"] == part and found["label"] == "measured" and found["rows"]
        assert found["command"] in said.out and found["environment"]["torch"] == torch.__version__
    rates = json.dumps(read_json(setup.out / "speed.json")["rows"])
    assert rates.count("both, tokens a second") == 10
    (setup.out / "slice.json").write_text("{}")  # damaged: measured again
    assert gpu.known("slice", setup) is None
    assert gpu.main([*args, "--minutes", "0"]) == 1
    assert "*not measured*: `python benchmarks/gpu.py slice" in capsys.readouterr().out


def test_a_part_in_a_process_of_its_own(gpu, tmp_path, capsys):
    args = ["speed", "--device", "cpu", "--tiny", "--out", str(tmp_path)]
    assert gpu.main(args) == 0
    assert read_json(tmp_path / "speed.json")["asked"] == {"device": "cpu", "tiny": True}
    assert gpu.main(["speed", "--device", "cpu", "--out", str(tmp_path), "--tables"]) == 1
    assert "*not measured*" in capsys.readouterr().out  # small shapes stand for no others


def test_the_documentation_tells_every_part(gpu):
    told = (BENCHMARKS.parent / "docs" / "scaling.md").read_text(encoding="utf-8")
    for part in gpu.PARTS:
        assert f"`python benchmarks/gpu.py {part}`" in told


def test_without_a_gpu_the_tables_say_how(gpu, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu.main(["--out", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert said.err.count("\n") == 1 and "no GPU" in said.err
    commands = [line.split("`")[1] for line in said.out.splitlines() if "not measured" in line]
    assert len(commands) == len(gpu.PARTS) == 5
    for part, line in zip(gpu.PARTS, commands, strict=True):
        assert shlex.split(line)[:3] == ["python", "benchmarks/gpu.py", part]
    with pytest.raises(SystemExit):
        gpu.main(["sped"])
