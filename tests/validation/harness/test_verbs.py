"""The verbs that train: every setting is an option, progress is told, bad input is one line."""

import json
import linecache

import pytest

import farfield
from farfield.validation.harness.settings import PRESETS

FADING = """
from torch import nn
class Fading(nn.Module):
    def __init__(self, heads, size):
        super().__init__()
    def forward(self, q, k, i, j):
        return -(i[:, None] - j).abs() / 4.0
"""


def test_a_training_tells_how_far_it_is_and_what_was_measured(run, text, tmp_path, monkeypatch):
    for name in ("LOG_S", "SILENT_S", "_Lines.wait"):
        monkeypatch.setattr(f"farfield.progress_bar.{name}", 0.005)
    shared = ("--preset", "tiny", "--runs", tmp_path / "runs", "--text", text)
    code, out, err = run("train", "rope", "-n/4", *shared)
    assert code == 0 and "rope: train (loss " in err
    for said in ("held out ", " tokens/s", " s left)"):
        assert said in err
    assert "trained in 30 steps to a loss of" in out and "BCA" in out
    again = json.loads(run("train", "rope", "-n/4", *shared, "--json")[1])
    assert [one["lines"][0]["label"] for one in again] == ["rope", "-n/4"]
    same = [
        farfield.train(f, preset="tiny", store=tmp_path / "runs", text=text).to_dict()
        for f in ("rope", "-n/4")
    ]
    assert same == again  # the runs are the same, so nothing is trained again
    code, out, _ = run("runs", tmp_path / "runs", "--json")
    listed = json.loads(out)["runs"]
    assert {one["key"] for one in listed} == {one["lines"][0]["run"] for one in again}
    assert all(one["state"] == "finished" and one["steps"] == 30 for one in listed)
    assert [one["label"] for one in listed] == ["-n/4", "rope"]
    (_, shown, _) = run(
        "runs", again[0]["lines"][0]["run"][:9], "--runs", tmp_path / "runs", "--json"
    )
    assert json.loads(shown) == again[0]


def test_each_setting_is_an_option(run, text, tmp_path):
    own = tmp_path / "mine.py"
    own.write_text(FADING)
    preset = tmp_path / "mine.toml"
    preset.write_text("measure = { blocks = 2, last_tokens = 3, row_length = 40 }\n")
    sizes = {"layers": 1, "width": 16, "heads": 2, "length": 12, "steps": 7, "lr": 0.01, "batch": 3}
    options = [part for name, value in sizes.items() for part in (f"--{name}", value)]
    more = ("--precision", "bfloat16", "--tested", "12,24", "--window", 5, "--seed", 3)
    place = ("--runs", tmp_path / "runs", "--text", text, "--log", tmp_path / "log.jsonl")
    bias = ("--bias", f"{own}:Fading", "--preset", preset)
    code, out, err = run("train", *bias, *options, *more, *place, "--json")
    assert code == 0, err
    line = json.loads(out)["lines"][0]
    told = {"layers": 1, "width": 16, "heads": 2, "trained": 12, "steps": 7, "learning_rate": 0.01}
    assert {name: line[name] for name in told} == told
    assert (line["batch"], line["seed"], line["mechanism"]) == (3, 3, "module")
    masks = {(one["mask"], one["length"]) for one in json.loads(out)["lines"] if "low" in one}
    assert masks == {("", 12), ("", 24), ("window 5", 12), ("window 5", 24)}
    assert json.loads((tmp_path / "log.jsonl").read_text())["step"] == 7
    asked = json.loads(next((tmp_path / "runs").glob("*/run.json")).read_text())
    assert asked["precision"] == "bfloat16"


def test_a_plan_is_run_and_what_failed_is_told(run, text, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text("[[runs]]\npreset = 'tiny'\nencoding = ['alibi', 'nope']\nlr = [1e-3, 1e30]\n")
    shared = ("sweep", plan, "--text", text, "--runs", tmp_path / "runs")
    code, out, err = run(*shared)
    assert code == 1 and out.startswith("4 runs: 2 failed, 2 finished.")
    assert "alibi, seed 0: the loss is" in out
    assert "1 of 4, alibi, seed 0: finished" in err and "2 of 4, alibi, seed 0: failed" in err
    plan.write_text("[[runs]]\npreset = 'tiny'\nencoding = ['alibi', 'nope']\nlr = 1e-3\n")
    code, out, _ = run(*shared, "--json")
    assert code == 0 and {one["state"] for one in json.loads(out)["runs"]} == {"finished"}


def test_the_help_names_every_preset(run):
    words = {word.strip(".,") for word in run("train", "-h")[1].split()}
    assert {*PRESETS} <= words and "--heads" in words


WRONG = {
    "device 'tpu' is not known": ("--device", "tpu"),
    "accepted is a width that is an even multiple": ("--width", 100),
    "lr -1.0; accepted is greater than 0": ("--lr", -1),
    "layers 1000000000; accepted is less than or equal to 2000": ("--layers", 10**9),
    "there is no file 'none.py'; accepted: a file of Python": (
        "--protocol",
        "none.py:f,b.py:g",
    ),
    "output folder '/dev/null'": ("--runs", "/dev/null"),
    "'/nowhere' does not exist": ("--text", "/nowhere"),
    "--tested 'x' is not a number": ("--tested", "4,x"),
    "too short": ("--tested", "1000000000"),
    "no file 'none.py'; accepted: a file of Python": ("--bias", "none.py:Own"),
    "log '/nowhere/log.csv' cannot be written": ("--log", "/nowhere/log.csv", "--steps", 1),
}


@pytest.mark.parametrize("said", WRONG)
def test_what_cannot_be_trained_is_one_line(complaint, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said in complaint("train", "alibi", "--preset", "tiny", *WRONG[said])
    assert not list(tmp_path.rglob("weights*"))


@pytest.mark.parametrize(
    "line, said",
    [
        ("encoding = 'fox'", "runs[1]: fox cannot be trained here"),
        (
            "encoding = '1/n'",
            "runs[1]: the bias 1/n has no value that 20,480 bits tell at distance 0; a",
        ),
        ("encoding = 'nope'\nlength = 4000000", "runs[1]: file words.txt is too short"),
        ("encoding = 'nope'\nlrr = 3", "runs[1]: 'lrr' is no setting; did you mean lr?"),
    ],
)
def test_a_plan_that_cannot_be_run_leaves_the_store_as_it_was(
    complaint, line, said, text, tmp_path
):
    plan = tmp_path / "plan.toml"
    plan.write_text(f"[[runs]]\nencoding = 'alibi'\npreset = 'tiny'\n[[runs]]\n{line}\n")
    assert said in complaint("sweep", plan, "--text", text, "--runs", tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
    complaint("runs", "--runs", tmp_path / "runs")


CELL = """
import torch
from torch import nn

RATE = 0.25

def slope(i, j):
    return -RATE * (i[:, None] - j)

class Sloped(nn.Module):
    def __init__(self, heads, size):
        super().__init__()
        assert (heads, size) == (4, 6)

    def forward(self, q, k, i, j):
        return slope(i, j) + torch.zeros(1)
"""


def test_a_class_of_a_notebook_trains_with_one_set_of_sizes(text, tmp_path):
    cell, scope = "<cell 1>", {"__name__": "__main__"}
    linecache.cache[cell] = len(CELL), None, CELL.splitlines(keepends=True), cell
    exec(compile(CELL, cell, "exec"), scope)
    sizes = {"preset": "tiny", "text": text, "steps": 3, "heads": 4, "width": 24}
    ideas = (scope["Sloped"], "-n/4", ["-n/4", 0, 0, "-n"])
    trained = [farfield.train(f, store=tmp_path, **sizes) for f in ideas]
    assert [one.lines[0]["label"] for one in trained][:2] == ["Sloped", "-n/4"]
    fields = [[x["trf"] for x in one.lines if x["protocol"] == "attention"] for one in trained]
    assert fields[0] == fields[1] != fields[2]
    losses = [x.lines[0]["nats"] for x in trained]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    (copy,) = tmp_path.glob("*/source/*.py")
    assert "RATE = 0.25" in copy.read_text() and "import torch" in copy.read_text()


GATE = """import torch

class Gate(torch.nn.Module):
    def __init__(self, heads, size):
        super().__init__()
        self.gate = torch.nn.Linear(size, 1)

    def forward(self, q, k, i, j):
        kept = torch.nn.functional.logsigmoid(self.gate(k)).squeeze(-1).cumsum(-1)
        return kept[:, :, None, :] * (i[:, None] >= j)
"""


def test_of_several_trainings_one_that_breaks_leaves_the_others(run, text, tmp_path):
    """And a class that reads the content is trained where no theory covers it."""
    path = tmp_path / "mine.py"
    path.write_text(FADING.replace("return -", "return 1 / (len(j) < 5) - ") + GATE)
    shared = ("--preset", "tiny", "--text", text, "--steps", 2, "--runs", tmp_path / "runs")
    code, out, err = run("train", f"{path}:Gate", "-n/4", "--bias", f"{path}:Fading", *shared)
    assert code == 2 and "Gate, seed 0" in out and "-n/4, seed 0" in out
    assert run("check", f"{path}:Gate")[0] == 2
    assert "mine.py:Fading, line 7: ZeroDivisionError" in err and "Traceback" not in err
