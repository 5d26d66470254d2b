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


def marked(line):
    slow = (pytest.mark.slow, pytest.mark.timeout(3600))
    return pytest.param(line, marks=slow) if re.search(DEAR, line) else line


@pytest.mark.parametrize("line", [marked(line) for line in LINES])
def test_an_example_of_the_help_does_what_it_says(line, workplace, monkeypatch, run):
    monkeypatch.chdir(workplace)
    monkeypatch.setattr("os.execv", lambda path, words: None)  # the explorer does not return
    monkeypatch.setattr("webbrowser.open", lambda page: True)
    if line.startswith("runs"):
        run("sweep", "plan.toml")
    code, out, err = run(*(NAMED.get(word, word) for word in shlex.split(line)))
    assert code == CODES.get(line, 0), err
    assert out.strip() if code == 0 else "\nfarfield: " in err
