"""What is known of a function stands in its record: hardly any other file names it."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ROOMS = ("theory", "numerics", "validation", "figures", "interface")
NAMES = (
    "LambertW",
    "erfi",
    "erfcx",
    "polygamma",
    "loggamma",
    "harmonic",
    "asinh",
    "Ei",
    "Si",
)


def code(source):
    """The names and texts of a module, without its comments and its docstrings."""
    prose = {
        (node.value.lineno, node.value.col_offset)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME or (
            token.type == tokenize.STRING and token.start not in prose
        ):
            yield token.string


@pytest.fixture(scope="module")
def modules():
    files = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    assert len(files) > 200
    sources = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in files}
    return {
        place: " ".join(code(source))
        for place, source in sources.items()
        if any(name in source for name in NAMES)
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_function_is_named_in_two_files_at_most(modules, name):
    word = re.compile(rf"(?<![A-Za-z0-9]){name}(?![A-Za-z0-9])")
    found = [path for path, text in modules.items() if word.search(text)]
    assert any(path.startswith("theory/functions/") for path in found)
    assert len(found) <= 2, found


def test_prose_does_not_count():
    text = '''"""Of erfi."""\n# erfi\ndef f():\n    "erfi"\n    return "x" + erfc\n'''
    assert "erfi" not in " ".join(code(text)) and "erfc" in " ".join(code(text))
