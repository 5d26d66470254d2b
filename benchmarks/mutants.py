"""Small bugs are put into a copy of the product, one at a time: each time a test must fail.

    python benchmarks/mutants.py validation/harness --count 100 --seed 1

A bug is a comparison with another border, a constant one off, a branch taken away, an argument left
out, two arguments in each other's place, the other operator. A room is a folder or a file. The test
files that import the module run first, then those of the room, until one fails or the time is over.
Whatever survives is printed with its place; `mutants.toml` lists bugs that change nothing, each
with the reason. mutmut and cosmic-ray do not serve here: both take the module's name from its path,
or mutate files in place, and neither leaves arguments out.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
import multiprocessing
import os
import random
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

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.was}  ->  {self.now}"


def parts(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes whose value a program sees: no annotation, decorator, assertion or message."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list") or isinstance(node, ast.Assert):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
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
            for k in range(len(named)):
                yield ast.Call(f, given, named[:k] + named[k + 1 :])
            if len(given) > 1 and not any(isinstance(x, ast.Starred) for x in given[:2]):
                yield ast.Call(f, [given[1], given[0], *given[2:]], named)
            if len(named) > 1 and named[0].arg and named[1].arg:
                one, two = named[:2]
                pair = [ast.keyword(one.arg, two.value), ast.keyword(two.arg, one.value)]
                yield ast.Call(f, given, [*pair, *named[2:]])


def mutants(file: str) -> Iterator[Mutant]:
    """All bugs of a file."""
    source = (ROOT / file).read_bytes()
    starts = [0, *itertools.accumulate(map(len, source.splitlines(keepends=True)))]
    for node in parts(ast.parse(source)):
        tests = [node.test] if isinstance(node, (ast.If, ast.While)) else []
        choices = [(test, ast.Constant(truth)) for test in tests for truth in (True, False)]
        for old, new in [*choices, *((node, new) for new in replaced(node))]:
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


def tests_of(file: str, room: str) -> tuple[list[str], list[str]]:
    """The test files that import a module, those named like it first, and those of its room."""
    parts = Path(file.removeprefix("interface/")).with_suffix("").parts
    module = ".".join(["farfield", *parts]).removesuffix(".__init__")
    names = {path: path.read_text() for path in sorted((ROOT / "tests").rglob("test_*.py"))}
    stem = Path(file).stem.strip("_")
    near = [p for p, text in names.items() if module in text or stem in p.stem]
    near.sort(key=lambda p: (stem not in p.stem, len(names[p])))
    folder = ROOT / "tests" / room.removesuffix(".py")
    while not folder.is_dir():
        folder = folder.parent
    beside = [p for p in names if folder in p.parents and p not in near]
    beside.sort(key=lambda p: len(names[p]))
    return [str(p.relative_to(ROOT)) for p in near], [str(p.relative_to(ROOT)) for p in beside]


def _run(folder: Path, files: list[str], limit_s: int) -> None:
    """Tests in the copy, in a process of their own; its exit code is that of pytest."""
    import pytest

    spent = math.ceil(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (spent + limit_s, spent + limit_s))
    for name in [name for name in sys.modules if name.partition(".")[0] == "farfield"]:
        del sys.modules[name]  # of the installed package, which the runner has imported
    os.chdir(folder)
    os.environ["PYTHONPATH"] = sys.path[0] = str(folder / "package")
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
        os._exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *files]))


def fails(folder: Path, files: list[str], limit_s: int) -> bool | None:
    """Whether a test fails; None where the time is over before."""
    process = multiprocessing.get_context("fork").Process(
        target=_run, args=(folder, files, limit_s)
    )
    process.start()
    process.join(WAIT * limit_s)
    if process.is_alive():
        process.kill()
    process.join()
    return None if (process.exitcode or 0) < 0 else bool(process.exitcode)


def main(room: str, *, count: int = 20, seed: int = 1, limit_s: int = 60) -> Iterator[Row]:
    """The bugs that no test finds.

    Args:
        room: a folder of the product, or a file.
        count: of bugs that are drawn.
        seed: of the draw.
        limit_s: seconds of processor time for the tests of one bug, those near it and those of
            its room each; a bug that is not found until then survives.
    """
    known = tomllib.loads(Path(__file__).with_suffix(".toml").read_text()).get("equivalent", [])
    same = {(each["file"], each["was"], each["now"]) for each in known}
    given = ROOT / room
    files = [given] if given.is_file() else sorted(given.rglob("*.py"))
    drawn = [m for f in files for m in mutants(str(f.relative_to(ROOT)))]
    drawn = [m for m in drawn if (m.file, m.was, m.now) not in same and m.was != m.now]
    drawn = random.Random(seed).sample(drawn, min(count, len(drawn)))
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    for name in HEAVY:
        __import__(name)
    killed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        copy(folder)
        clean = functools.cache(lambda tests: fails(folder, list(tests), limit_s))
        for mutant in drawn:
            path, found = folder / mutant.file, False
            source = path.read_bytes()
            bug = source[: mutant.start] + mutant.now.encode() + source[mutant.end :]
            for tests in filter(None, tests_of(mutant.file, room)):
                if not found and not clean(tuple(tests)):  # tests that fail anyway tell nothing
                    path.write_bytes(bug)
                    found = fails(folder, tests, limit_s) is True
                    path.write_bytes(source)
            killed += found
            if not found:
                yield {"bug": "survives", "place": str(mutant)}
    yield {"bug": "killed", "place": f"{killed} of {len(drawn)} in {room}, seed {seed}"}


if __name__ == "__main__":
    program(main)
