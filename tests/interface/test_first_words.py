"""Whoever starts long work hears at once what is read, how to stop it, and how it goes on."""

import pytest

import farfield

WORK = {
    "foresee MODEL --to 4k": ("foresee", "nothing is kept"),
    "foresee MODEL --to 4k --quick": ("gap_probe", "nothing is kept"),
    "mend MODEL --to 4k --out kept": ("mend", "goes on from kept"),
    "window --model MODEL --out kept": ("smallest_window", "goes on from kept"),
    "measure .": ("empirical_receptive_field", "nothing is kept"),
    "erf .": ("empirical_receptive_field", "nothing is kept"),
    "perplexity MODEL --length 64": (
        "validation.models.perplexities.model_perplexity",
        "nothing is kept",
    ),
    "train -n/8 alibi --runs kept": (
        "validation.study.one_run.train",
        "2 models of 4 layers, 400 steps on",
    ),
    "sweep plan.toml --runs kept": ("validation.harness.runs.local", "goes on from kept"),
}


@pytest.mark.parametrize("line", WORK)
def test_the_first_line_comes_before_the_work(line, run, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "MODEL").mkdir()
    for folder in (tmp_path, tmp_path / "MODEL"):
        (folder / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "plan.toml").write_text('[[runs]]\npreset = "tiny"\nencoding = ["alibi"]\n')
    place, told = WORK[line]

    def work(*given, **options):
        raise farfield.InputError(f"before it: {capsys.readouterr().err}")

    monkeypatch.setattr(f"farfield.{place}", work)
    first = run(*line.split())[2].partition("before it: ")[2].splitlines()[0]
    words = line.split()
    read = next((word for word in words if word in ("MODEL", ".")), "")
    assert first.startswith(f"{words[0]}: ") and told in first and "Ctrl-C stops it" in first
    assert read in first
