"""One idea, one name: no class is called as another is, and scripts ask for names that exist."""

import ast
import pkgutil
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("theory", "numerics", "validation", "figures", "interface")

CLASS = r"^ *class (\w+)|^(\w+) = enum\.\w+\("  # an enumeration may be a line
OTHERS = ("docs", "benchmarks", "experiments")
"""Scripts that no other test imports."""
OLDER = "experiments/windows/run.py"  # its README names the commit at which it runs
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


def known(name):
    """Whether a dotted name is a module of the package or stands in one."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def missing(text):
    """Names of the package that a script imports, or reads of its modules, and that are not."""
    nodes = [*ast.walk(ast.parse(text))]
    imports = [
        x for x in nodes if isinstance(x, ast.ImportFrom) and f"{x.module}.".startswith("farfield.")
    ]
    found = [(n.asname or n.name, f"{x.module}.{n.name}") for x in imports for n in x.names]
    lost = [whole for _, whole in found if not known(whole)]  # and modules are imported
    modules = {name: whole for name, whole in found if whole in sys.modules}
    read = [x for x in nodes if isinstance(x, ast.Attribute) and isinstance(x.value, ast.Name)]
    asked = [f"{modules[x.value.id]}.{x.attr}" for x in read if x.value.id in modules]
    return lost + [name for name in asked if not known(name)]


def test_scripts_ask_the_package_for_names_that_exist():
    assert missing("from farfield.theory.encodings import nope, listing\nlisting.no") == [
        "farfield.theory.encodings.nope",
        "farfield.theory.encodings.listing.no",
    ]
    files = (file for room in OTHERS for file in sorted((ROOT / room).rglob("*.py")))
    scripts = [str(file.relative_to(ROOT)) for file in files]
    assert len(scripts) > 30 and OLDER in scripts
    lost = {name: missing((ROOT / name).read_text("utf-8")) for name in scripts}
    assert {name: some for name, some in lost.items() if some and name != OLDER} == {}
