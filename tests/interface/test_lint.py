"""`farfield lint FILE.py:NAME`: the finding that matters, the report, the verdict, a picture."""

import json
import re

import pytest

CODE = """
import numpy as np

def rising(q, k):
    return (q - k) / 8

def alibi(score, b, h, q, k):
    return score + (k - q) / 2 ** (h + 1)

def blocks(q, k):
    return -(q // 64 - k // 64)

def clipped(n):
    return np.array([-float(x) / 8 - (x % 3) ** 2 for x in n]) if np.ndim(n) else 1 / 0

class Bias:
    def __call__(self, n):
        return -2 * np.log1p(n)

slopes = [0.5, 0.25, 0.125]

def ends(n):
    raise SystemExit(3)

def huge(n):
    return 10**400

class Ends:
    def __init__(self, heads, size):
        raise SystemExit

endless = [float("inf"), 0.0]
"""


@pytest.fixture
def file(tmp_path):
    found = tmp_path / "code.py"
    found.write_text(CODE)
    return found


@pytest.mark.parametrize(
    ("name", "code", "first", "last"),
    [
        ("rising", 0, "rising: rises with distance", "the series diverges"),
        ("alibi", 0, "alibi: falls with distance: linear", "all 8 heads converges"),
        ("blocks", 0, "blocks: depends on the positions themselves", ""),
        (
            "clipped",
            0,
            "clipped: rises and falls with distance: no known family",
            "known up to distance 4095",
        ),
        ("Bias", 0, "Bias: falls with distance: logarithmic", "the series converges"),
        ("slopes", 0, "the array: falls with distance: linear", "all 3 heads converges"),
    ],
)
def test_the_first_line_is_the_finding_and_the_verdict_follows(run, file, name, code, first, last):
    got, out, _ = run("lint", f"{file}:{name}")
    assert got == code and out.startswith(first) and last in " ".join(out.split())


def test_a_file_with_one_bias_needs_no_name(run, tmp_path):
    (tmp_path / "one.py").write_text("def falling(n):\n    return -n / 8\n")
    for target in ("one.py", "one.py:falling"):
        assert run("lint", tmp_path / target)[1].startswith("falling: falls with distance: linear")
    (tmp_path / "two.py").write_text("def f(n):\n    return -n\n\n\nh = [0.5, 1.0]\n")
    assert run("lint", tmp_path / "two.py")[1].count("farfield lint ") == 2


def test_the_report_as_json_and_the_picture(run, file, tmp_path):
    picture = tmp_path / "bias.svg"
    code, out, _ = run("lint", f"{file}:alibi", "--heads", "4", "--out", str(picture), "--json")
    found, verdict = json.loads(out)
    assert code == 0 and (found["kind"], verdict["verdict"]) == ("BiasInspection", "converges")
    assert (found["heads"], found["origin"], found["direction"]) == (4, "traced", "falls")
    assert found["formulas"] == ["-n/2", "-n/4", "-n/8", "-n/16"]
    assert picture.read_text().startswith("<") and "head 4" in picture.read_text()
    rows = picture.with_suffix(".csv").read_text().splitlines()
    assert rows[:2] == ["head,distance,bias", "1,0,0"] and len(rows) == 1 + 4 * 512


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("code", "accepted is FILE.py:NAME"),
        ("code.py", "there is no file"),
        ("nothing.py:f", "there is no file"),
        ("FILE:nothing", "has no 'nothing'; it holds rising, alibi"),
        ("FILE:np", "not a formula|accepted"),
        ("FILE:ends", "ends gives no bias"),
        ("FILE:huge", "it gives int, no real numbers"),
        ("FILE:Ends", r"Ends\(8, 64\), .*SystemExit; accepted"),
        ("FILE:endless", "it gives NaN or inf, called with an array of"),
        ("\0.py:f", "there is no file"),
    ],
)
def test_bad_input_is_one_line(complaint, file, target, why):
    assert re.search(why, complaint("lint", target.replace("FILE", str(file))))


def test_a_file_without_a_bias_and_a_link_to_itself_are_refused_in_a_line(complaint, tmp_path):
    (tmp_path / "empty.py").write_text("from math import pi\n")
    (tmp_path / "loop.py").symlink_to("loop.py")
    assert "empty.py holds no function, class" in complaint("lint", f"{tmp_path}/empty.py")
    assert "there is no file" in complaint("lint", f"{tmp_path}/loop.py:bias")
