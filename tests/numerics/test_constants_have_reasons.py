"""A tuning constant says what it bounds: beside it, above it, or in a text below it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONSTANT = re.compile(r"^_?([A-Z][A-Z_]+) = (?:[\d(\"-].*\d|\d.*|fmpq\(.*|.*Rational\(.*)")


def unexplained(text):
    lines = text.splitlines()
    for before, line, after in zip(["", *lines], lines, [*lines[1:], ""], strict=False):
        found = CONSTANT.match(line)
        reason = "#" in line or before.startswith("#") or after.startswith('"""')
        if found and not reason:
            yield found.group(1)


@pytest.mark.parametrize("room", ["", "summation", "enclosures", "windows"])
def test_every_constant_has_its_reason(room):
    folder = ROOT / "numerics" / room
    files = sorted(folder.rglob("*.py") if room else folder.glob("*.py"))
    assert files
    found = {f.name: bare for f in files if (bare := list(unexplained(f.read_text("utf-8"))))}
    assert found == {}


def test_one_without_would_be_found():
    assert list(unexplained("MAX = 3\n")) == ["MAX"]
    assert not list(unexplained("MAX = 3  # of them\n# Of those.\nMOST = (1, 2)\n"))
    assert not list(unexplained('FEW = 3\n"""Of these."""\n'))
