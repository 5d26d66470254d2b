"""What `train` hands to the harness: the run that was asked for, under its name."""

from pathlib import Path

import pytest

import farfield
from farfield.theory.encodings import encoding
from farfield.validation.harness.settings import settle
from farfield.validation.study.one_run import train

OWN = """
from torch import nn

class Slope(nn.Module):
    def __init__(self, heads):
        super().__init__()

    def forward(self, q, k, i, j):
        return 0 * (i[:, None] - j).float()
"""


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """A training that is asked for and not begun: its run, its folder, how."""
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    each = []

    def run(whole, store, **how):
        each.append((whole, store, how))
        return ()

    monkeypatch.setattr("farfield.validation.harness.runs.run", run)
    return each


def test_a_run_has_the_name_of_its_idea_unless_it_is_given_one(refusal, asked):
    ideas = {"own.py:Slope": "Slope", "-n/8": "-n/8", "alibi": "alibi", "[-n/4; 0 x7]": None}
    for idea, label in ideas.items():
        for f in (idea, encoding(idea)) if ":" not in idea else (idea,):
            train(f, preset="tiny", store="s")
            assert label in (None, asked[-1][0].name)
    train("own.py:Slope", preset="tiny", store="s", label="mine")
    assert (asked[-1][0].name, asked[-1][0].encoding) == ("mine", "own.py:Slope")
    made = []
    with pytest.MonkeyPatch.context() as patch:
        spec_of = lambda kind, folder: made.append((kind, folder)) or "own.py:Slope"  # noqa: E731
        patch.setattr("farfield.validation.study.one_run.spec_of", spec_of)
        train(int, preset="tiny", store="s")
    assert made == [(int, Path("s/own"))] and asked[-1][0].encoding == "own.py:Slope"
    refusal("3 heads, the model has", train, encoding("alibi", heads=3), preset="tiny", store="s")
    refusal("cannot be trained", train, {"values": [0, -1]}, preset="tiny", store="s")
    whole = settle("tiny", {"encoding": "nope", "steps": 3})
    train(whole, preset="base", store="s")
    assert asked[-1][0] is whole


def test_settings_and_places_reach_the_run_under_their_names(asked):
    said = []
    settings = {"seed": 5, "length": 24, "layers": 3, "steps": 7, "lr": 0.25}
    farfield.train("-n/8", preset="tiny", store="runs/x", device="cpu", log="l.csv", **settings)
    whole, store, how = asked[-1]
    assert {k: getattr(whole, k) for k in settings} == settings and whole.preset == "tiny"
    assert (store, how["device"], how["log"]) == ("runs/x", "cpu", "l.csv")
    train("-n/8", notice=said.append)
    whole, store, how = asked[-1]
    assert (whole.preset, store, how["device"], how["log"]) == ("demo", "runs", "auto", None)
    assert how["progress"] == said.append
