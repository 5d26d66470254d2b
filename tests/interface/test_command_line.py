"""The verbs as a user calls them: answers, exit codes, one clear line for bad input."""

import io
import json
import re
import shlex
import subprocess
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

import farfield
from farfield.cli import GROUPS, VERBS, _complain, _default, _require_known, application
from farfield.help import EXAMPLES, Help


def test_settings_reach_the_encoding(run):
    assert "the nearest 16 tokens" in run("trf", "window", "--set", "w=16", "--eps", "1/100")[1]
    assert "exactly if" not in run("check", "kerple_log", "--set", "r1=6/5")[1]
    code, out, _ = run("check", "-r*n**q", "--assume", "q=real", "--json")
    assert code == 0 and json.loads(out)["condition"] == "q > 0"
    heads = run("trf", "-m*n", "--set", "m=1/2,1/256", "--eps", "0.1", "--json")[1]
    assert [h["tokens"] for h in json.loads(heads)["heads"]] == [5, 590]


def test_exit_codes_follow_the_verdict(run):
    assert run("check", "-n", "--expect", "converges")[::2] == (0, "")
    code, out, _ = run("check", "-log(1+n)", "--budget", "1e-9")
    assert code == 1 and "undecided" in out and "budget" in out


def test_a_list_in_each_form_and_what_is_no_text(run, tmp_path):
    listed = tmp_path / "biases.txt"
    lines = ("-n/8", "-log(x)", "-(a+b^2-1)*log(1+n)")
    listed.write_text("# biases\n" + "\n\n".join(lines), encoding="utf-8")
    asked = ("check", "--file", str(listed), "--assume", "b=real", "--expect", "converges")
    code, out, err = run(*asked)
    assert code == 2 and err.splitlines() == [
        "farfield: -(a+b^2-1)*log(1+n): expected converges, found conditional"
    ]
    first, second, third = out.splitlines()
    assert first == "converges     -n/8" and third.endswith("a > 2 − b²")
    assert second.startswith("error         -log(x)   ") and "no n, the distance" in second
    assert run(*asked, "--ascii")[1].splitlines()[2].endswith("   a > 2 - b^2")
    code, out, err = run(*asked[:-2], "--csv")
    assert code == 2 and [row[:4] for row in out.splitlines()] == ["bias", "-n/8", "-(a+"]
    assert err.startswith("farfield: -log(x): ") and "no n, the distance" in err
    assert run(*asked[:-2], "--latex")[2] == err
    told = run(*asked[:-2], "--json")[1]
    found = json.loads(told)
    assert told == json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    assert [row.get("given", row["formula"]) for row in found] == [*lines]
    assert [row.get("verdict") for row in found] == ["converges", None, "conditional"]
    listed.write_text("-n\n-n/2\n")
    assert run(*asked[:3])[0] == 0 and run(*asked[:3], "--csv")[0] == 0
    listed.write_bytes(b"\xff-n")
    assert "is not text in UTF-8" in run(*asked[:3])[2]


def test_a_list_from_standard_input(run, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("-n\n-sqrt(n)\n"))
    code, out, _ = run("check", "--file", "-")
    assert code == 0 and [x.split()[0] for x in out.splitlines()] == ["converges"] * 2


def test_options_go_to_the_formulas_that_have_them(run, complaint):
    given = ("compare", "kerple-log", "-a*n", "alibi", "--head", "1", "--json")
    values = ("--set", "r1=6/5", "--set", "r2=1", "--set", "a=2")
    found = json.loads(run(*given, *values)[1])
    assert [row[0] for row in found["rows"]] == ["-2*n", "alibi, head 1", "kerple_log"]
    assert "they have: " in complaint(*given, *values, "--set", "b=1")


def test_help_names_every_verb_and_option(run):
    for words in ((), ("--help",)):
        code, out, _ = run(*words)
        assert code == 0 and {"check", "trf", "study", "papers"} <= set(out.split())
    assert run("--version")[1].strip() == farfield.__version__
    said = " ".join(out.split())
    assert "How far can a positional encoding see? A bias is a formula in n" in said
    assert said.endswith("docs/reference/commands.md: an answer of each.")
    assert "demo An idea beside ALiBi and no bias" in said, "each verb with its first sentence"
    shown = [word for title, paths in GROUPS.items() for word in (title, *map(name_of, paths))]
    listed = re.findall(r"^(?:╭─ (.+?) ─|│ ([a-z]+) )", out, re.MULTILINE)
    assert ["".join(words) for words in listed] == shown and {*EXAMPLES} == {"", *VERBS}
    assert [word for word in shown if word not in GROUPS] == [*VERBS]
    assert "farfield" in run("completion", "bash")[1]
    assert (application().name, application().help_flags) == (("farfield",), ("--help",))


def name_of(path):
    return path.partition(".")[2]


@pytest.mark.parametrize("verb", ["check", "study", "measure", "design"])
def test_the_help_of_a_verb_has_examples_first_and_folds_what_many_share(run, verb):
    code, short, _ = run("help", verb)
    _, whole, err = run(verb, "--help-all")
    assert err == "" and not re.search("--no-(?!open)|--empty-|default: (None|False)", whole)
    assert "╭─ Options ─" in short and (verb != "measure" or "[default: 64, 256]" in whole)
    assert code == 0 and short.index(f"    farfield {EXAMPLES[verb][0]}") < short.index("╭─")
    assert "╭─ The answer" in whole and "╭─ The answer" not in short and "--json" in short
    assert short.index("--json") > short.rindex("╰─") and len(short) < len(whole)


def test_examples_and_folded_options_are_plain_text_on_a_terminal():
    shown = Console(force_terminal=True, file=io.StringIO(), width=99)
    folded = SimpleNamespace(title="The answer", entries=[SimpleNamespace(names=("--json", "-1"))])
    Help("forecast", False).render_description(shown, None, "")
    Help("forecast", False)(shown, None, folded)
    *examples, empty, said = shown.file.getvalue().splitlines()[-4:]
    assert examples == [f"    farfield {line}" for line in EXAMPLES["forecast"]] and empty == ""
    assert said == "The answer, with --help-all: --json"


@pytest.mark.parametrize("line", [(verb, line) for verb in VERBS for line in EXAMPLES[verb]])
def test_every_example_of_the_help_is_a_line_that_the_verb_takes(line):
    verb, example = line[0], shlex.split(re.sub("  .*", "", line[1]))
    app = application()
    _require_known(example)
    app.parse_args(example, exit_on_error=False, print_error=False)
    assert example[0] == verb


FORMER = {
    ("leak", "-n", "--trained", "8", "--evaluated", "32"): "trf -n --trained 8 --tested 32",
    ("leak", "-n/2", "--dtype=bf16"): "trf -n/2 --dtype=bf16",
    ("encodings",): "atlas --list",
    ("encodings", "alibi"): "atlas --list alibi",
    ("design", "-a*n", "--leak", "1/100", "--trained", "8", "--evaluated=32"): "design '-a*n' "
    "--leak 1/100 --trained 8 --tested=32",
}


@pytest.mark.parametrize("words", FORMER, ids=" ".join)
def test_former_words_answer_as_todays_and_say_so(run, words):
    code, out, err = run(*words)
    assert err == f"farfield: this command is now: farfield {FORMER[words]}\n"
    assert (code, out, "") == run(*shlex.split(FORMER[words])) and out
    assert words[0] == "design" or words[0] not in run("--help")[1].split()


def test_the_help_shows_defaults_that_say_something():
    shown = [(("64", "256"), "64, 256"), (16, "16"), (1, "1"), (0, "0")]
    assert [(value, _default(value)) for value, _ in shown] == shown
    assert {_default(value) for value in (None, False, True, ())} == {None}


def test_a_complaint_keeps_its_words_whole_on_a_terminal(run, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    piped = run("check", "-n", "--nosuch")[2]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    shown = run("check", "-n", "--nosuch")[2]
    assert piped.count("\n") == 1 and max(map(len, shown.splitlines())) <= 60
    assert shown.split() == piped.split()
    _complain(f"{'x' * 70} {'y-' * 35} z", 2)
    assert capsys.readouterr().err.split("\n")[1:-1] == ["x" * 70, "y-" * 35, "z"]


HEAVY = {"torch", "matplotlib", "scipy"}
LINES = {  # in this order in one process, and what none of them has imported
    "figures --list": HEAVY | {"sympy", "numpy", "flint"},
    "figures --format bmp": HEAVY | {"sympy", "numpy", "flint"},
    "report --formt x": HEAVY | {"sympy", "numpy", "flint"},
    "--help": HEAVY | {"sympy", "numpy", "flint"},
    "atlas --list": HEAVY | {"sympy", "numpy", "flint"},
    "check -log(1+n)": HEAVY | {"numpy", "farfield.theory.encodings.inspection"},
}


def test_what_a_line_does_not_need_is_not_imported():
    code = (
        "import contextlib, sys\nfrom farfield.cli import main\n"
        f"for line, absent in {LINES}.items():\n    with contextlib.suppress(SystemExit):\n"
        "        main(line.split())\n    print(line, sorted(absent & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    told = {*done.stdout.splitlines()}
    assert {f"{line} []" for line in LINES} <= told, done.stderr[-300:]


@pytest.mark.parametrize("budget", ["0.001", "0.1"])
@pytest.mark.parametrize("formula", ["[-n/5; 0 x7]", "-n*Abs(sin(n))"])
def test_a_budget_that_is_spent_leaves_gaps_in_a_study(run, tmp_path, formula, budget):
    code, _, err = run("study", formula, "--budget", budget, "--out", str(tmp_path / "page"))
    assert code in (0, 1) and "farfield:" not in err
    assert (tmp_path / "page" / "index.html").stat().st_size > 10_000


def test_a_budget_without_room_for_any_answer_is_one_line(complaint, tmp_path):
    place = tmp_path / "plane.svg"
    formula = "-a*log(7+n)*log(log(9+n))"  # of no other test: what is decided is remembered
    call = ("map", formula, "--a", "0.1:3", "--out", place, "--budget", "1e-6")
    assert "budget" in complaint(*call) and not place.exists()


def test_trf_of_several_eps_is_one_table(run):
    """The answer at the first share in a sentence, every share in a row, what is alike once."""
    code, out, _ = run("trf", "alibi", "--eps", "0.1", "--eps", "0.01")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert code == 0 and out.count("sum:") == 1
    assert "10 % 590 5, 10, 19, 37, 74, 148, 295, 590" in lines
    assert "1 % 1179 10, 19, 37, 74, 148, 295, 590, 1179" in lines
    said = " ".join(run("trf", "-log(1+n)")[1].split())
    assert said.count("no number of nearest tokens holds all but 10 %, 1 %, 0.1 % of the mass") == 1
