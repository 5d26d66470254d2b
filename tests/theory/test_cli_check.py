"""`farfield check` and `farfield atlas --list`: exit codes, lists, JSON, bad input in one line."""

import io
import json

import pytest

from farfield import check_convergence, cli
from farfield.theory.answers.blocks import in_colour


@pytest.fixture
def farfield(monkeypatch, capsys):
    """Run the command line in this process; (exit code, standard output, standard error)."""

    def run(*args, stdin=None):
        if stdin is not None:
            monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as end:
            cli.main(list(args))
        said = capsys.readouterr()
        return end.value.code, said.out, said.err

    return run


def test_a_list(farfield, tmp_path):
    listed = tmp_path / "biases.txt"
    listed.write_text("# biases\n-n/8\n\n-log(1+n)\n-log(x)\n-a*log(1+n)\n", encoding="utf-8")
    code, out, err = farfield("check", "--file", str(listed))
    lines = out.splitlines()
    assert code == 2 and err == "" and len(lines) == 4
    assert lines[0].split()[0] == "converges" and lines[1].split()[0] == "diverges"
    assert lines[2].startswith("error") and "no n, the distance" in lines[2]
    assert lines[3].split()[0] == "conditional" and "a > 1" in lines[3]
    rows = json.loads(farfield("check", "--file", str(listed), "--json")[1])
    assert [r.get("verdict", "error") for r in rows] == [
        "converges",
        "diverges",
        "error",
        "conditional",
    ]


def test_a_list_from_standard_input(farfield):
    code, out, _ = farfield("check", "--file", "-", stdin="-n\n-sqrt(n)\n")
    assert code == 0 and [x.split()[0] for x in out.splitlines()] == ["converges"] * 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "or a list of them with --file"),
        (("-log(1+n)", "--file", "x"), "or a list of them with --file"),
        (("--file", "/nowhere/list"), "cannot read"),
        (("--file", "-"), "holds no formula"),
        (("-log(x)",), "no n, the distance"),
        (("",), "empty"),
        (("alibbi",), "did you mean 'ALiBi'"),
        (("__import__('os')",), "formula"),
        (("log(-n)",), "not real"),
        (("-a*n", "--assume", "a"), "expected NAME=DOMAIN"),
        (("-a*n", "--assume", "a=[2,1]"), "empty interval"),
        (("-a*n", "--assume", "a=real", "--assume", "a=positive"), "twice"),
        (("-a*n", "--assume", "a=[0, 1)", "--set", "a=2"), "outside its domain"),
        (("-a*n", "--assume", "log=real"), "name of a function"),
        (("-a*n", "--assume", "n=real"), "distance"),
        (("-a*n", "--set", "a=-1"), "outside its domain"),
        (("-n", "--budget", "-1"), "a number of seconds, at least 0"),
        (("-n", "--budget", "x"), "is not known; accepted: a number"),
        (("-n", "--heads", "0"), "from 1 to 1024"),
        (("-n", "--dialect", "press"), "no dialect"),
        (("alibi", "--dialect", "presss"), "accepted: press"),
        (
            ("alibi", "--hed", "8"),
            "check has no option --hed; did you mean --head? the nearest of 19: ",
        ),
        (
            ("alibi", "--colour=64"),
            "no option --colour; a parameter is written --set colour=64; the nearest of ",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(farfield, args, message):
    code, out, err = farfield("check", *args, stdin="")
    assert code == 2 and out == "" and message in err
    assert err.count("\n") == 1 and "Traceback" not in err


@pytest.mark.parametrize("width", [60, 80, 100])
def test_lines_are_as_wide_as_the_terminal(width):
    text = check_convergence("-log(1+n)").text(details=True, width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "".join(text.split()) == "".join(
        check_convergence("-log(1+n)").text(details=True).split()
    )


def test_a_verdict_has_a_colour_on_a_terminal_alone(monkeypatch):
    answer = check_convergence("-log(1+n)")
    assert "\033[1;33mdiverges\033[0m" in answer.text(colour=True) and "\033" not in answer.text()
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert in_colour()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not in_colour()
