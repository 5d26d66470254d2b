"""Every verb and every public name has a place in the reference, with an example that runs; what
the glossary and the guide for contributors name is there."""

import contextlib
import inspect
import io
import re
import shlex
from pathlib import Path

import pytest

import farfield
from farfield.cli import VERBS, main

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
COMMANDS = (REFERENCE / "commands.md").read_text(encoding="utf-8")
NAMES = "".join(page.read_text(encoding="utf-8") for page in sorted(REFERENCE.glob("*.md")))


def examples():
    """(command, the answer that the page shows) of every example."""
    found = re.findall(r"^    \$ farfield (.+)\n((?:    (?!\$ ).+\n)+)", COMMANDS, re.MULTILINE)
    return {command: " ".join(shown.split()) for command, shown in found}


def test_every_example_runs_and_begins_as_the_page_says(workplace, monkeypatch):
    monkeypatch.chdir(workplace)
    monkeypatch.setenv("COLUMNS", "96")
    for command, shown in examples().items():
        said = io.StringIO()
        with contextlib.redirect_stdout(said), pytest.raises(SystemExit) as stop:
            main(shlex.split(command))
        assert stop.value.code == 0, command
        assert shown.endswith(" ..."), command
        assert " ".join(said.getvalue().split()).startswith(shown.removesuffix(" ...")), command


def test_every_verb_has_an_example():
    verbs = {*VERBS}
    assert {command.split()[0] for command in examples()} == verbs
    assert set(re.findall(r"^### (\w+)$", COMMANDS, re.MULTILINE)) == verbs


ELSEWHERE = {  # what needs a prover or a model: a page whose example runs, and what it calls
    "verify_certificate": ("tests/theory/certificates/test_received.py", "verify_certificate("),
    "ReceivedCertificate": ("tests/theory/certificates/test_received.py", "verify_certificate("),
    "EmpiricalReceptiveField": ("docs/serve.md", "empirical_receptive_field("),
    "Audit": ("docs/serve.md", "audit("),
    "audit": ("docs/serve.md", "audit("),
    "empirical_receptive_field": ("docs/serve.md", "empirical_receptive_field("),
    "SmallestWindow": ("docs/serve.md", "smallest_window("),
    "smallest_window": ("docs/serve.md", "smallest_window("),
    "Foresight": ("docs/far_field.md", "foresee("),
    "TrainedRun": ("docs/train.md", "farfield.train("),
    "train": ("docs/train.md", "farfield.train("),
    "foresee": ("docs/far_field.md", "foresee("),
    "blame": ("docs/far_field.md", "blame("),
    "Mending": ("docs/far_field.md", "mend("),
    "mend": ("docs/far_field.md", "mend("),
    "GapProbe": ("docs/rotary.md", "gap_probe("),
    "gap_probe": ("docs/rotary.md", "gap_probe("),
}


@pytest.mark.parametrize("name", farfield.__all__)
def test_every_public_name_has_a_place_and_an_example(name):
    places = re.findall(rf"^\.\. auto\w+:: (?:farfield\.)?(?:\w+\.)*{name}$", NAMES, re.MULTILINE)
    assert len(places) == 1
    if name in ELSEWHERE:
        page, call = ELSEWHERE[name]
        assert call in (ROOT / page).read_text(encoding="utf-8")
    elif inspect.isfunction(getattr(farfield, name)):
        assert ">>> " in getattr(farfield, name).__doc__  # which the doctests run
    else:
        assert any(name in example for example in re.findall(r"```python\n(.*?)```", NAMES, re.S))


@pytest.mark.parametrize("word", ["rope", "rotary", "install", "mixture", "order loss", "rung"])
def test_a_heading_or_a_term_has_what_people_search_for(word):
    docs = REFERENCE.parent
    headings = "".join(
        "".join(re.findall(r"^#+ .*\n", page.read_text(encoding="utf-8"), re.MULTILINE))
        for page in docs.glob("*.md")
    )
    glossary = (docs / "glossary.md").read_text(encoding="utf-8")
    terms = " ".join(re.findall(r"^\| ([^|]+) \|", glossary, re.MULTILINE))
    assert word in f"{headings} {terms}".lower()


# -- the glossary and the guide --------------------------------------------------------------------

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
