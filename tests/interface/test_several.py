"""Several formulas are several ideas in every verb; numbers and what is missing, as people type."""

import json
import random
import string

import pytest

from farfield.cli import _names
from farfield.options import Subject
from farfield.theory.encodings import encoding


@pytest.fixture
def run(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return run


EACH = {  # a verb with its options: what its answer calls the subject
    "check": (),
    "trf": ("--eps", "1%"),
    "trf --trained 4k": (),
    "reach": ("--advantage", "3"),
    "window": ("--error", "1%", "--logit-bound", "1"),
    "resolution": ("--length", "1k"),
    "forecast": ("--trained", "64", "--tested", "1k"),
}


@pytest.mark.parametrize("verb", EACH)
def test_several_formulas_are_several_ideas(run, verb):
    formulas = ("-n/4", "alibi", "[-n/4; 0 x7]")
    code, out, _ = run(*verb.split(), *formulas, *EACH[verb], "--json")
    answers = json.loads(out)
    alone = [json.loads(run(*verb.split(), f, *EACH[verb], "--json")[1]) for f in formulas]
    assert code in (0, 1) and len(answers) == 3
    for several, one in zip(answers, alone, strict=True):
        assert {k: v for k, v in several.items() if k != "proof"} == {
            k: v for k, v in one.items() if k != "proof"
        }
    assert [a.get("num_heads") or len(a["heads"]) for a in answers[1:]] == [8, 8]
    text = run(*verb.split(), *formulas, *EACH[verb])[1]
    assert all(name in text for name in ("-n/4", "alibi", "one head -n/4, seven without bias"))


def test_names_and_pages_take_several_too(run):
    assert len(json.loads(run("atlas", "alibi", "nope", "--json")[1])) == 2
    assert len(json.loads(run("design", "-a*n", "-a*log(1+n)", "--trf", "1k", "--json")[1])) == 2
    assert run("plot", "-n/8", "[-n/4; 0 x7]", "--length", "1k", "--out", "p.svg")[0] == 0


def test_a_missed_expectation_is_told_of_each(run):
    code, _, err = run("check", "-n", "-log(1+n)", "--expect", "converges")
    assert code == 1 and "-log(1+n): expected converges, found diverges" in err


def test_one_percent_and_4k_are_numbers_everywhere(run):
    for typed, plain in (
        (("trf", "-n/400", "--eps", "1%", "--length", "4k"), ("1/100", "4096")),
        (("trf", "-n/400", "--eps", "0.5 %", "--length", "2K"), ("1/200", "2048")),
        (("trf", "-n/400", "--trained", "1k", "--evaluated", "32k"), ("1024", "32768")),
        (("design", "-a*n", "--leak", "<=1%", "--trained", "2k"), ("<=1/100", "2048")),
        (("check", "alibi", "--bca", "4k"), ("4096",)),
    ):
        values = iter(plain)
        exact = [next(values) if a[-1] in "%kK" and a[0] in "0123456789<" else a for a in typed]
        assert run(*typed)[:2] == run(*exact)[:2] and exact != [*typed]


def test_a_file_of_numbers_is_a_table_and_a_file_as_a_formula_says_so(run, tmp_path):
    (tmp_path / "column.txt").write_text("# measured\n0\n-1\n-2\n")
    (tmp_path / "row.txt").write_text("0, -1, -2")
    (tmp_path / "both.txt").write_text("0 -1\n1 -2\n")
    asked = ("--tail", "cut", "--expect", "diverges")
    code, out, err = expected = run("check", "[0, -1, -2]", *asked)
    said = "table of 3 values, masked beyond: the series converges"
    assert said in " ".join(out.split()) and "expected diverges" in err and code == 1
    for name in ("column.txt", "row.txt"):
        assert run("check", "--file", name, *asked) == expected
    exact = run("check", "[0, -1, -2]", "--tail", "cut", "--csv")
    assert run("check", "--file", "row.txt", "--tail", "cut", "--csv") == exact
    assert "one number a line" in run("check", "--file", "both.txt")[2]
    assert "farfield check --file column.txt" in run("check", "column.txt")[2]


def test_a_head_of_one_formula_is_none_of_another(run):
    assert run("check", "-n", "alibi", "--head", "2")[0] == 0


def test_an_option_of_one_encoding_is_none_of_another():
    found = Subject(set=("d_bar=32",)).read_each(("sandwich", "-n"))
    assert found == [encoding("sandwich", d_bar=32), encoding("-n")] != found[:1]


def test_infinite_terms_come_first(run):
    first = run("check", "-log(n)")[1].splitlines()[0]
    assert "undefined or infinite at n = 0" in first


NUMBERS = ("4096", "0.5", "1/2", "-3", "2^-8", "1e-3", "500000", "log(2)", "pi/4", "4k", "1%")
NAMES = ("sliding_window", "slope", "m", "gamma", "rope_theta", "b", "hidden", "p", "bias")


@pytest.mark.parametrize("seed", range(3))
def test_a_name_and_its_number_are_no_formula(complaint, seed):
    """As people copy them from settings, or type after --set: every verb says how it is spelled."""
    draw = random.Random(seed)
    for verb in draw.sample(sorted(EACH), 3):
        pairs = [f"{draw.choice(NAMES)}={draw.choice(NUMBERS)}" for _ in range(2)]
        apart = draw.choice([" ", ", ", "; "])
        for typed in ([pairs[0]], ["-n/4", pairs[1]], [f"[{pairs[0]}; 0]"], [apart.join(pairs)]):
            if "(" in typed[0] and apart in typed[0]:
                continue
            err = complaint(*verb.split(), *typed, *EACH[verb])
            assert "is no formula in n" in err and "--set" in err, typed
    for typed, hint in (
        (("window=4096",), "write window --set w=4096"),
        (("sliding_window = 64",), "write window --set w=64"),
        (("n=64",), "n is the distance"),
        (("-a*log(1+b*n)", "--set", "a=3", "b=0.5"), "--set b=0.5"),
        (("a=3 b=0.5",), "--set a=3 --set b=0.5"),
    ):
        assert hint in complaint("check", *typed), typed


@pytest.mark.parametrize(
    "typed",
    ["p(n) = 0", "p = -n/8", "B_{i,j} = -|i-j|", "lambda n: 4", "b = clip(-n, min=-9)", "0", "n"],
)
def test_a_heading_before_a_bias_is_one_still(run, typed):
    assert run("check", typed)[0] == 0


def test_a_short_flag_is_no_formula(run, complaint):
    """Any letter but n, alone, with a value and before one, wherever it stands, with the options
    that begin so; -h is help and -V the version."""
    begin = {name[2] for name in _names("trf") if name.startswith("--")}
    for letter in set(string.ascii_letters) - {*"nhV"}:
        for typed in ([f"-{letter}"], [f"-{letter}=1%"], ["-n", f"-{letter}", "1%"]):
            said = complaint("trf", *typed)
            assert f"-{letter} is no option, and no formula" in said
            assert ("did you mean" in said) is (letter.lower() in begin)
    assert "did you mean --eps" in run("trf", "-n", "-e", "1%")[2]
    assert run("trf", "-h")[1] == run("help", "trf")[1] == run("trf", "--help")[1] != ""
    assert run("-h")[1] == run("help")[1] == run("--help")[1]
    assert run("-V")[1] == run("--version")[1] and run("trf", "-n")[0] == 0


def test_the_rows_of_several_answers_name_their_bias(run):
    out = run("trf", "-n/8", "-n/4", "--csv")[1].splitlines()
    assert out[0] == "bias,mass left out,tokens" and out[1:4:2] == ["-n/8,10 %,19", "-n/8,0.1 %,56"]
    assert out[4:] == ["-n/4,10 %,10", "-n/4,1 %,19", "-n/4,0.1 %,28"]
    assert "\nalibi,1 %,1179," in run("trf", "alibi", "-n/4", "--csv")[1]
    assert "% alibi\n" in run("trf", "alibi", "-n/4", "--latex")[1]
    decided = run("check", "-n/8", "alibi", "--heads", "1", "--csv")[1].splitlines()
    assert decided[0] == "bias,p(n),series,converges if", "it names the bias already"
    assert [row[:5] for row in decided[1:]] == ["-n/8,", "alibi"]
    assert "-n/4,price," in run("reach", "-n/8", "-n/4", "--distance", "9", "--csv")[1]
