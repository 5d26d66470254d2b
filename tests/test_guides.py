"""What the glossary and the guide for contributors name is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TERMS = re.findall(r"^\| ([^|`]+) \| .* \| `([^`|]+)` \|$", GLOSSARY, re.MULTILINE)


def test_every_term_has_a_room_that_exists():
    assert len(TERMS) > 40
    missing = [
        f"{term}: {room}"
        for term, room in TERMS
        if not ((ROOT / room).is_dir() or (ROOT / f"{room}.py").is_file())
    ]
    assert missing == []


def test_terms_are_in_order_and_told_once():
    names = [term.lower() for term, _ in TERMS]
    assert len(names) == len(set(names))
    own, code = (part.count("\n| ") for part in GLOSSARY.split("## Words of the code"))
    parts = names[: own - 1], names[own - 1 :]
    assert len(parts[1]) == code - 1 and all(part == sorted(part) for part in parts)


def test_every_room_of_theory_and_numerics_has_a_term():
    rooms = {
        f"{top}/{path.name}"
        for top in ("theory", "numerics")
        for path in (ROOT / top).iterdir()
        if (path / "__init__.py").exists()
    }
    rooms.discard("theory/formal")  # the theorems of `certificates`, as the prover reads them
    told = {"/".join(room.split("/")[:2]) for _, room in TERMS}
    assert rooms - told == set()


@pytest.mark.parametrize(
    "place",
    sorted(
        set(re.findall(r"`((?:theory|numerics|validation|figures|tests|docs)/[\w./]+)`", GUIDE))
    ),
)
def test_the_guide_names_what_is_there(place):
    assert (ROOT / place).exists()


def test_the_guide_answers_the_five_questions():
    for heading in (
        "To add an encoding",
        "To add a function",
        "To add a figure",
        "To mend a wrong verdict",
        "Where a new idea goes",
    ):
        assert f"\n## {heading}\n" in GUIDE
