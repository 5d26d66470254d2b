"""What is said of the registered models is what their files say."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
JUDGES = {
    name: runpy.run_path(str(ROOT / "experiments" / name / "judge.py"))
    for name in (
        "far_field",
        "far_field_2",
        "rotary",
        "rotary_2",
        "rotary_3",
        "rotary_4",
        "rotary_5",
    )
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name == "rotary_2"))
        for name, judge in JUDGES.items()
        if "markdown" in judge
    ],
)
def test_the_results_are_those_of_the_files(name):
    kept = (ROOT / "experiments" / name / "results.md").read_text(encoding="utf-8")
    assert "\n".join(JUDGES[name]["markdown"]()) + "\n" == kept


def test_the_page_of_the_far_field_says_the_numbers_of_the_files():
    """Its table of repairs; sentences of README and findings are records, and counted as such."""
    text = " ".join((ROOT / "docs" / "far_field.md").read_text(encoding="utf-8").split())
    rows = [line for line in JUDGES["far_field"]["told"]() if line.startswith("|")]
    assert rows and [line for line in rows if line not in text] == []


def test_the_page_of_rotary_models_says_the_numbers_of_the_files():
    text = " ".join((ROOT / "docs" / "rotary.md").read_text(encoding="utf-8").split())
    assert [line for line in JUDGES["rotary"]["told"]() if line not in text] == []
