"""What is said of the registered models is what their files say."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[3]
EXPERIMENTS = ROOT / "experiments"
JUDGE, ROTARY = (
    runpy.run_path(str(EXPERIMENTS / name / "judge.py")) for name in ("far_field", "rotary")
)


def test_the_results_of_settings_are_those_of_the_files():
    folder = EXPERIMENTS / "rotary_2"
    judge = runpy.run_path(str(folder / "judge.py"))
    assert (folder / "results.md").read_text(encoding="utf-8") == "\n".join(
        judge["markdown"]()
    ) + "\n"


def test_the_results_are_those_of_the_files():
    kept = (ROOT / "experiments" / "far_field" / "results.md").read_text(encoding="utf-8")
    assert "\n".join(JUDGE["markdown"]()) + "\n" == kept


def test_the_findings_say_the_numbers_of_the_files():
    pages = [ROOT / "docs" / name for name in ("findings.md", "far_field.md")]
    text = " ".join(" ".join(page.read_text(encoding="utf-8") for page in pages).split())
    assert [line for line in JUDGE["told"]() if line not in text] == []


def test_the_page_of_rotary_models_says_the_numbers_of_the_files():
    text = " ".join((ROOT / "docs" / "rotary.md").read_text(encoding="utf-8").split())
    assert [line for line in ROTARY["told"]() if line not in text] == []
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert next(ROTARY["told"]()) in readme


def test_every_measured_model_was_forecast():
    said, measured = (
        {line["run"] for line in JUDGE["lines"](name)}
        for name in ("forecasts.jsonl", "measured.jsonl")
    )
    assert measured and measured <= said
