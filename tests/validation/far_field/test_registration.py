"""What is said of the registered models is what their files say."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[3]
EXPERIMENTS = ROOT / "experiments"
JUDGE, SECOND, ROTARY = (
    runpy.run_path(str(EXPERIMENTS / name / "judge.py"))
    for name in ("far_field", "far_field_2", "rotary")
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


def test_the_results_of_the_second_are_those_of_the_files():
    kept = (EXPERIMENTS / "far_field_2" / "results.md").read_text(encoding="utf-8")
    assert "\n".join(SECOND["markdown"]()) + "\n" == kept


def test_what_was_measured_is_what_was_forecast():
    """The same weights, none that is not in the plan, and no threshold reached on a part."""
    said, measured = (SECOND["lines"](f"{name}.jsonl") for name in ("forecasts", "measured"))
    assert measured and measured.keys() <= said.keys() <= SECOND["planned"]().keys()
    assert all(line["weights"] == said[label]["weights"] for label, line in measured.items())
    some = [dict(x) for x in SECOND["cases"]()]
    rows = list(SECOND["judged"](SECOND["with_nulls"](some), False))
    assert rows and all(row.endswith("| not all is read |") for row in rows)


def test_the_nulls_of_the_second_are_those_that_it_names():
    """By hand, of three models whose loss doubles its distance from a level."""
    every = [
        {"label": x, "family": f, "text": "code", "steps": 300, "to": to, "measured": m}
        | {"short": (r2, r4)}
        for x, f, to, m, r2, r4 in (
            ("a", "x", 1024, 0.55, 0.2, 0.4),
            ("b", "x", 1024, 0.3, 0.1, 0.2),
            ("c", "y", 1024, 1.0, 0.5, 0.7),
        )
    ]
    first = SECOND["with_nulls"](every)[0]["nulls"]
    assert first["the loss at 4 times stays"] == 0.4 and first["constant"] == 0.65
    assert first["nearest model"] == 0.3 and abs(first["last octave"] - 0.8) < 1e-12
    q = min(
        (k / 100 for k in range(201)),
        key=lambda q: (0.2 + 0.1 * (q + q * q) - 0.3) ** 2 + (0.7 + 0.2 * (q + q * q) - 1) ** 2,
    )
    assert abs(first["fitted decay"] - (0.4 + 0.2 * (q + q * q))) < 1e-12


def test_the_page_of_the_far_field_says_the_numbers_of_the_files():
    """Its table of repairs; sentences of README and findings are records, and counted as such."""
    text = " ".join((ROOT / "docs" / "far_field.md").read_text(encoding="utf-8").split())
    rows = [line for line in JUDGE["told"]() if line.startswith("|")]
    assert rows and [line for line in rows if line not in text] == []


def test_the_page_of_rotary_models_says_the_numbers_of_the_files():
    text = " ".join((ROOT / "docs" / "rotary.md").read_text(encoding="utf-8").split())
    assert [line for line in ROTARY["told"]() if line not in text] == []


def test_every_measured_model_was_forecast():
    said, measured = (
        {line["run"] for line in JUDGE["lines"](name)}
        for name in ("forecasts.jsonl", "measured.jsonl")
    )
    assert measured and measured <= said
