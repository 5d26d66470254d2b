"""Every example of every help is run, in a folder that has what it names; rows of 64k are of 4k."""

import re
import shlex

import pytest

from farfield.cli import VERBS
from farfield.help import EXAMPLES

LINES = [re.sub("  .*", "", line) for verb in VERBS for line in EXAMPLES[verb]]

DEAR = (
    r"^demo|64k|nope|--train |^figures$|^papers$|^claims |^claims$|--model|\^b|fig6|sandwich|zsh"
    r"|^train|--what trf|^(measure|erf|perplexity)"
)
"""Examples that train, read or decide for long: they run with the slow tests."""

CODES = {"sweep plan.toml --engine ray --address auto": 2}
"""Exit codes other than 0: no cluster is here."""

NAMED = {
    "MODEL_FOLDER": "model",
    "FILE": "text.txt",
    "BEFORE": "model",
    "AFTER": "model",
    "FILE.py:Class": "model.py:Class",
    "64k": "4k",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory, saved_bloom):
    """A folder with a model, a text, a plan, a run and a file of Python."""
    folder = tmp_path_factory.mktemp("examples")
    saved_bloom(folder / "model", n_layer=1, n_head=2)
    (folder / "config.json").write_text((folder / "model" / "config.json").read_text())
    (folder / "text.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 2000)
    (folder / "plan.toml").write_text('[[runs]]\npreset = "tiny"\nencoding = ["alibi"]\n')
    (folder / "model.py").write_text(
        "def bias(n):\n    return -n / 8\n\n"
        "def score_mod(score, b, h, q, k):\n    return score - (q - k) / 8\n\n"
        "from torch import nn\n\nclass Class(nn.Module):\n"
        "    def forward(self, q, k, i, j):\n        return -(i[:, None] - j)[None] / 8.0\n"
    )
    return folder


def marked(line):
    slow = (pytest.mark.slow, pytest.mark.timeout(3600))
    return pytest.param(line, marks=slow) if re.search(DEAR, line) else line


@pytest.mark.parametrize("line", [marked(line) for line in LINES])
def test_an_example_of_the_help_does_what_it_says(line, place, monkeypatch, run):
    monkeypatch.chdir(place)
    monkeypatch.setattr("os.execv", lambda path, words: None)  # the explorer does not return
    monkeypatch.setattr("webbrowser.open", lambda page: True)
    if line.startswith("runs"):
        run("sweep", "plan.toml")
    code, out, err = run(*(NAMED.get(word, word) for word in shlex.split(line)))
    assert code == CODES.get(line, 0), err
    assert out.strip() if code == 0 else "\nfarfield: " in err
