"""Small bugs are put into a copy of the product, one at a time: each time a test must fail.

    python benchmarks/mutants.py validation/harness --count 100 --seed 1

A bug is a comparison with another border, a constant one off, a branch taken away, an argument left
out, two arguments in each other's place, the other operator. A room is a folder or a file. The
module's examples run first, then the test files that name what it defines, then those of the room,
until one fails or the time is over. Each bug is printed with its place and the test file that finds
it; `mutants.toml` lists bugs that change nothing, each with the reason; the order of what `min` and
`max` compare, and `strict`, which watches what is so, are left as they are. mutmut and cosmic-ray
do not serve here: both take the module's name from its path, or mutate files in place, and neither
leaves arguments out.
"""

from __future__ import annotations

import ast
import collections
import functools
import itertools
import math
import multiprocessing
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from side_by_side import Row, program

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("figures", "numerics", "theory", "validation")  # beside `interface`, which is the package
WAIT = 20  # times the limit, on a machine with other work
HEAVY = ("flint", "hypothesis", "matplotlib.figure", "numpy", "scipy.special", "sympy", "torch")
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
TEXT = functools.cache(Path.read_text)
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum"}


@dataclass(frozen=True)
class Mutant:
    """A bug: the text between two offsets of a file, and what takes its place."""

    file: str
    line: int
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
    for node in parts(ast.parse(source)):
        truths = (True, False) if isinstance(node, (ast.If, ast.While)) else ()
        choices = [(node.test, ast.Constant(truth)) for truth in truths]
        for old, new in [*choices, *((node, new) for new in replaced(node))]:
            if ast.dump(old) == ast.dump(new):  # two arguments that are alike
                continue
            start = starts[old.lineno - 1] + old.col_offset
            end = starts[old.end_lineno - 1] + old.end_col_offset
            now = ast.unparse(ast.fix_missing_locations(new))
            now = now if isinstance(new, (ast.Slice, ast.Constant)) else f"({now})"
            yield Mutant(file, old.lineno, start, end, source[start:end].decode(), now)


def copy(folder: Path) -> None:
    """The files of the repository, and the package as it installs, by links."""
    listed = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT)
    for name in listed.decode().splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    package = folder / "package" / "farfield"
    package.mkdir(parents=True)
    for path in [*(folder / "interface").iterdir(), *(folder / room for room in ROOMS)]:
        (package / path.name).symlink_to(path)


def tests_of(file: str, room: str) -> list[str]:
    """The module, for its examples, and the test files of a room and those near, the nearest first:
    with the rarest of the names that the module defines, its own among them."""
    text = (ROOT / file).read_text()
    defined = {Path(file).stem, *re.findall(r"^ *(?:def|class) ([A-Za-z]\w{3,})", text, re.M)}
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    near = {p: defined.intersection(re.findall(r"\w+", f"{p.name[5:]} {TEXT(p)}")) for p in files}
    often = collections.Counter(name for names in near.values() for name in names)
    beside = ROOT / "tests" / room
    folder = next(each for each in (beside, *beside.parents) if each.is_dir())
    score = {p: sum(1 / often[k] for k in near[p]) * (1 + (folder in p.parents)) for p in files}
    files.sort(key=lambda p: (-score[p], len(TEXT(p))))
    kept = [p for k, p in enumerate(files) if folder in p.parents or k < 6 < 20 * score[p]]
    examples = Path("package/farfield", file.removeprefix("interface/"))
    return [str(examples), *(str(p.relative_to(ROOT)) for p in kept)]


def _run(folder: Path, test: str, limit_s: int) -> None:
    """A test file in the copy, in a process of its own; its exit code is that of pytest."""
    import pytest

    spent, sys.dont_write_bytecode = math.ceil(time.process_time()), True
    resource.setrlimit(resource.RLIMIT_CPU, (spent + limit_s, spent + limit_s))
    for name in [name for name in sys.modules if name.partition(".")[0] == "farfield"]:
        del sys.modules[name]  # of the installed package, which the runner has imported
    os.chdir(folder)
    os.environ["PYTHONPATH"] = sys.path[0] = str(folder / "package")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os._exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--doctest-modules", test]))


def fails(folder: Path, test: str, limit_s: int) -> tuple[bool | None, float]:
    """Whether a test file fails, None where the time is over before; and its seconds."""
    before = sum(os.times()[2:4])
    process = multiprocessing.get_context("fork").Process(target=_run, args=(folder, test, limit_s))
    process.start()
    process.join(WAIT * limit_s)
    process.kill()
    process.join()
    seconds, code = sum(os.times()[2:4]) - before, process.exitcode or 0
    return (None if code < 0 else code not in (0, 5)), seconds  # 5: all its tests are slow


def main(room: str, *, count: int = 20, seed: int = 1, limit_s: int = 120) -> Iterator[Row]:
    """The bugs that no test finds.

    Args:
        room: a folder of the product, or a file.
        count: of bugs that are drawn.
        seed: of the draw.
        limit_s: seconds of processor time for the tests of one bug; a bug that is not found until
            then survives. A test file that ends within a third of them without the bug, and not
            with it, finds it.
    """
    known = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["equivalent"]
    same = {(each["file"], each["was"], each["now"]) for each in known}
    files = [ROOT / room] if room.endswith(".py") else sorted((ROOT / room).rglob("*.py"))
    bugs = [m for f in files for m in mutants(str(f.relative_to(ROOT)))]
    bugs = [m for m in bugs if (m.file, m.was, m.now) not in same and m.was != m.now]
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    [*map(__import__, HEAVY)]
    killed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        copy(folder)
        clean = functools.cache(lambda test: fails(folder, test, limit_s))
        for mutant in random.Random(seed).sample(bugs, min(count, len(bugs))):
            path, left, by = folder / mutant.file, float(limit_s), ""
            source = path.read_bytes()
            bug = source[: mutant.start] + mutant.now.encode() + source[mutant.end :]
            for test in tests_of(mutant.file, room):
                if not by and left > 0:
                    path.write_bytes(bug)
                    failed, seconds = fails(folder, test, math.ceil(left))
                    path.write_bytes(source)
                    left -= seconds
                    if failed is not False and clean(test)[0] is False:  # not one that fails anyway
                        by = test if failed or 3 * clean(test)[1] < seconds else ""
            killed += bool(by)
            place = f"{mutant.file}:{mutant.line}: {mutant.was}  ->  {mutant.now}"
            yield {"found by": by or "nothing", "bug": place}
    yield {"found by": f"{killed} of {min(count, len(bugs))}", "bug": f"{room}, seed {seed}"}


if __name__ == "__main__":
    program(main)
