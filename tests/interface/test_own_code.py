"""Code of one's own is handed over in one way to every command."""

import json
import subprocess
import sys

import pytest

import farfield

CODE = """
from __future__ import annotations
import math
from dataclasses import dataclass
import torch
from torch import nn
from rates import RATE

def window(n):
    return 0.0 if n < 4096 else -math.inf

@dataclass
class Plain:
    rate: float = RATE
    def __call__(self, n: int) -> float:
        return -self.rate * n

class Lengths(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.slopes = nn.Parameter(2.0 ** -torch.arange(1, heads + 1))
    def forward(self, q_len, k_len):
        away = torch.arange(q_len)[:, None] - torch.arange(k_len)
        return -self.slopes[:, None, None] * away.abs()

class Own(nn.Module):
    def __init__(self, heads, size):
        super().__init__()
        self.slopes = nn.Parameter(2.0 ** -torch.arange(1, heads + 1))
    def forward(self, q, k, i, j):
        return -self.slopes[:, None, None] * (i[:, None] - j)

class Vectors(Lengths):
    def forward(self, i, j):
        return -self.slopes[:, None, None] * (i[:, None] - j).clamp(min=0)

class Flat(Own):
    def forward(self, q, k, i, j):
        return -self.slopes[:, None, None] * (i - j)

class Content(nn.Module):
    def __init__(self, heads, size):
        super().__init__()
        self.w = nn.Parameter(torch.ones(heads))
    def forward(self, q, k, i, j):
        return (q @ k.transpose(-1, -2)) / 8

class Strange:
    def __init__(self, a, b, c):
        self.a = a

table = [0.0, -1.0, -2.0, -4.0]
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "rates.py").write_text("RATE = 0.5")
    found = tmp_path / "mine.py"
    found.write_text(CODE)
    return found


def test_lint_lists_what_a_file_holds(run, file):
    code, out, _ = run("lint", str(file))
    names = ("window", "Plain", "Lengths", "Own", "Vectors", "Flat", "Content", "Strange", "table")
    assert code == 0 and out.split("\n")[:-1] == [f"farfield lint {file}:{name}" for name in names]


@pytest.mark.parametrize(
    ("name", "verdict", "how"),
    [
        ("window", "converges", "a distance"),
        ("Plain", "converges", "a distance"),
        ("Lengths", "undecided", "two lengths"),
        ("Own", "undecided", "queries, keys and positions"),
        ("Vectors", "undecided", "vectors of positions i and j"),
        ("table", "undecided", "an array of table"),
    ],
)
def test_lint_and_check_call_it_alike(run, file, name, verdict, how):
    code, out, _ = run("lint", f"{file}:{name}", "--json")
    linted, decided = json.loads(out)
    assert code == 0, "the question was what it is"
    _, out, _ = run("check", f"{file}:{name}", "--json")
    checked = json.loads(out)
    assert linted["how"] == how and decided["verdict"] == checked["verdict"] == verdict
    assert (checked["reason"] or {}).get("code") in (None, "beyond_seen")


def test_other_verbs_take_it(run, complaint, file):
    for (verb, name, *more), answer in {
        ("trf", "window", "--eps", "1/100"): "4056",
        ("compare", "Plain", "-2*log(1+n)"): "-n/2",
        ("check", "table", "--tail", "constant"): "diverges",
    }.items():
        code, out, _ = run(verb, f"{file}:{name}", *more)
        assert code == 0 and answer in out, verb
    told = complaint("compare", f"{file}:table", "-n")
    assert "no tail to compare: known up to distance 3" in told


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("Strange", "Strange takes a, b, c; accepted: Class(), Class(heads), Class(heads, size)"),
        ("Flat", "called with queries, keys and positions, 512: it gives shape (8, 1, 512)"),
        ("none", "has no 'none'; it holds window, Plain, Lengths"),
    ],
)
def test_what_cannot_be_called_gets_the_list_of_what_can(complaint, file, target, why):
    for verb in ("lint", "check"):
        assert why in complaint(verb, f"{file}:{target}")


def test_content_is_named_and_a_list_of_formulas_runs_no_code(run, file, tmp_path):
    code, out, _ = run("lint", f"{file}:Content")
    assert code == 0 and "depends on the queries, keys and positions" in out
    formulas = tmp_path / "formulas.txt"
    formulas.write_text(f"-n\n{file}:window\n")
    code, out, err = run("check", "--file", str(formulas))
    assert code == 2 or "is neither" in out + err or "formula" in out + err
    assert "4096" not in out


FRESH = """
def softcap(scores):
    import torch
    return 50 * torch.tanh(scores / 50)

def ssmax(score, b, h, q_idx, kv_idx):
    import torch
    return score * torch.log(q_idx + 1.0)
"""


@pytest.mark.slow
def test_what_a_function_imports_is_whole(tmp_path):
    """In a process that has not loaded torch: its import is not cut by the limit of a call."""
    (tmp_path / "fresh.py").write_text(FRESH)
    code = (
        "import contextlib\nfrom farfield.cli import main\nfor name in ('softcap', 'ssmax'):\n"
        "    with contextlib.suppress(SystemExit):\n"
        f"        main(['lint', {str(tmp_path / 'fresh.py')!r} + ':' + name])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    told = " ".join(done.stdout.split())
    assert "a bounded function" in told and "grows with the row" in told, done.stderr


def test_a_study_of_values_has_the_numbers_of_the_rows_seen(run, tmp_path):
    (tmp_path / "own.py").write_text("import numpy as np\n\nvalues = -np.arange(512.0) / 8\n")
    code, out, _ = run("study", f"{tmp_path}/own.py:values", "--out", str(tmp_path / "page"))
    said = " ".join(out.split())
    assert code == 1 and said.count("up to distance 511") == 1
    whole = farfield.trf("-n/8", 0.01, length=512).tokens
    assert f"the nearest {whole} tokens hold all but 1 % of the mass of a row of 512 keys" in said
    assert f"{whole} in rows of 512" in said and "is number" not in said
    rows = run("study", f"{tmp_path}/own.py:values", "--csv")[1]
    same = farfield.leak("-n/8", 64, 256).value
    assert f"leak,64 to 256,{same:.3g}" in rows and "64 to 1024" not in rows
    assert (tmp_path / "page" / "index.html").is_file()
    known = run("atlas", f"{tmp_path}/own.py:values")[1]
    assert (
        known.startswith("table of 512 values: values up to distance 511.")
        and known.count("; tail=") == 1
    )


def test_lint_of_values_says_once_how_far_they_are_known(run, file):
    code, out, _ = run("lint", f"{file}:table")
    assert code == 0 and out.count("known up to distance") == 1
