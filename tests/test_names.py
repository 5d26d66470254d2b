"""One idea, one name: no class of the product is called as another is."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("theory", "numerics", "validation", "figures", "interface")

TWICE = {"Verdict"}  # of a series and of a claim: their name is the style in which pages show them


def classes():
    """The files in which each class is defined, by its name."""
    found = defaultdict(list)
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(f"{file.relative_to(ROOT)}:{node.lineno}")
    return found


def test_no_class_is_called_as_another():
    found = classes()
    assert len(found) > 300
    assert {name for name, files in found.items() if len(files) > 1} == TWICE, found
