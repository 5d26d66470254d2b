"""One idea, one name: no class of the product is called as another is."""

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("theory", "numerics", "validation", "figures", "interface")

CLASS = r"^ *class (\w+)|^(\w+) = enum\.\w+\("  # an enumeration may be a line
TWICE = {"Verdict"}  # of a series and of a claim: their name is the style in which pages show them


def classes():
    """The files in which each class is defined, by its name."""
    found = defaultdict(list)
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            for name in re.findall(CLASS, file.read_text(), re.MULTILINE):
                found["".join(name)].append(str(file.relative_to(ROOT)))
    return found


def test_no_class_is_called_as_another():
    found = classes()
    assert len(found) > 300
    assert {name for name, files in found.items() if len(files) > 1} == TWICE, found


def test_a_module_is_found_by_its_name():
    """No room has a name twice, and two rooms share one only where both speak of one thing."""
    rooms = defaultdict(list)
    for room in ROOMS:
        for file in (ROOT / room).rglob("*.py"):
            if file.name not in ("__init__.py", "__main__.py"):
                rooms[file.stem].append(room)
    twice = {name: tuple(where) for name, where in rooms.items() if len(where) > 1}
    papers = {"qin2024", "sun2023", "chi2023"}  # their figures, their claims
    assert twice == dict.fromkeys(papers, ("validation", "figures"))
