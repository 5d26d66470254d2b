"""Small bugs: what they are, where they may stand in a room, and those that change nothing.

A bug is a comparison with another border, a constant one off, a branch taken away, an argument left
out, two arguments in each other's place, the other operator. `mutants.toml` lists bugs that change
nothing, or move a bound of work alone, each with its line and the reason. The order of what `min`
and `max` compare, and `strict`, which watches what is so, are left as they are.
"""

from __future__ import annotations

import ast
import bisect
import itertools
import random
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Add,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum"}


@dataclass(frozen=True)
class Mutant:
    """A bug: the text between two offsets of a file, and what takes its place."""

    file: str
    line: str  # the text of the line where it begins
    lines: range  # from the first of its statement
    start: int
    end: int
    was: str
    now: str


def parts(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes whose value a program sees: no annotation, decorator, assertion or message, and
    nothing that a checker of types alone reads."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list") or isinstance(node, ast.Assert):
            continue
        for child in value if isinstance(value, list) else [value]:
            strict = isinstance(child, ast.keyword) and child.arg == "strict"
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr) and not strict:
                yield from parts(child)


def replaced(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in place of a node."""
    match node:
        case ast.Compare(left, [op], [right]) if type(op) in OTHER:
            yield ast.Compare(left, [OTHER[type(op)]()], [right])
        case ast.BinOp(left, op, right) if type(op) in OTHER:
            yield ast.BinOp(left, OTHER[type(op)](), right)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(OTHER[type(op)](), values)
            yield from (ast.BoolOp(op, values[:k] + values[k + 1 :]) for k in range(len(values)))
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() as value):
            yield ast.Constant(value + 1)
        case ast.Constant(float() as value):
            yield ast.Constant(value * 1.5 + (value == 0))
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield operand
        case ast.IfExp(_, yes, no):
            yield from (yes, no)
        case ast.Slice(low, high, step) if high is not None:
            yield ast.Slice(low, ast.BinOp(high, ast.Add(), ast.Constant(1)), step)
        case ast.Name(str() as name, context) if name in NAMES:
            yield ast.Name(NAMES[name], context)
        case ast.Call(f, given, named):
            for k in (k for k in range(len(named)) if named[k].arg != "strict"):
                yield ast.Call(f, given, named[:k] + named[k + 1 :])
            same = isinstance(f, ast.Name) and f.id in ("min", "max") and not named
            if len(given) > 1 and not any(isinstance(x, ast.Starred) for x in given[:2]) | same:
                yield ast.Call(f, [given[1], given[0], *given[2:]], named)
            if len(named) > 1 and named[0].arg and named[1].arg:
                values = [named[1].value, named[0].value, *(each.value for each in named[2:])]
                other = [ast.keyword(k.arg, value) for k, value in zip(named, values, strict=True)]
                yield ast.Call(f, given, other)


def mutants(file: str) -> Iterator[Mutant]:
    """All bugs of a file."""
    source = (ROOT / file).read_bytes()
    starts = [0, *itertools.accumulate(map(len, source.splitlines(keepends=True)))]
    tree = ast.parse(source)
    statements = sorted(node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt))
    for node in parts(tree):
        truths = (True, False) if isinstance(node, (ast.If, ast.While)) else ()
        choices = [(node.test, ast.Constant(truth)) for truth in truths]
        for old, new in [*choices, *((node, new) for new in replaced(node))]:
            if ast.dump(old) == ast.dump(new):  # two arguments that are alike
                continue
            start = starts[old.lineno - 1] + old.col_offset
            end = starts[old.end_lineno - 1] + old.end_col_offset
            now = ast.unparse(ast.fix_missing_locations(new))
            now = now if isinstance(new, (ast.Slice, ast.Constant)) else f"({now})"
            first = statements[bisect.bisect(statements, old.lineno) - 1]
            lines = range(first, old.end_lineno + 1)
            text = source.splitlines()[old.lineno - 1].decode().strip()
            yield Mutant(file, text, lines, start, end, source[start:end].decode(), now)


def drawn(room: str, count: int, seed: int) -> list[Mutant]:
    """Bugs of a folder or a file that may change something, drawn by a seed.

    Raises:
        ValueError: a line of `mutants.toml` about these files is the line of no bug.
    """
    listed = tomllib.loads(Path(__file__).with_name("mutants.toml").read_text())["equivalent"]
    same = {(each["file"], each["line"], each["was"], each["now"]) for each in listed}
    paths = [ROOT / room] if room.endswith(".py") else sorted((ROOT / room).rglob("*.py"))
    files = [str(path.relative_to(ROOT)) for path in paths]
    bugs = [bug for file in files for bug in mutants(file) if bug.was != bug.now]
    keys = [(bug.file, bug.line, bug.was, bug.now) for bug in bugs]
    if lost := {key for key in same if key[0] in files} - {*keys}:
        raise ValueError(f"mutants.toml has a bug that cannot be made: {min(lost)}")
    left = [bug for bug, key in zip(bugs, keys, strict=True) if key not in same]
    return random.Random(seed).sample(left, min(count, len(left)))
