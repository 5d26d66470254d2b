"""Small bugs are put into a copy of the product, one at a time: each time a test must fail.

    python benchmarks/mutants.py validation/harness --count 100 --seed 1

`bugs.py` says what a bug is. A room is a folder or a file. Each test file runs once without a bug,
under coverage.py. For a bug the tests that run its line are run, in one process: first the module's
examples, then those of the test files that name what it defines, then those of the room. If none
fails, the same files run whole, for a value may be kept from one test to the next. Each bug is
printed with its place and the test that finds it. mutmut and cosmic-ray do not serve here: both
take the module's name from its path, or mutate files in place, and neither leaves arguments out.
"""

from __future__ import annotations

import collections
import functools
import math
import multiprocessing
import os
import pickle
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import coverage
import pytest
from bugs import ROOT, Mutant, drawn
from side_by_side import Row, program

ROOMS = ("figures", "numerics", "theory", "validation")  # beside `interface`, which is the package
WAIT = 15  # times the limit, on a machine with other work
HEAVY = (
    "cyclopts",
    "flint",
    "hypothesis",
    "matplotlib.figure",
    "numpy",
    "pydantic",
    "scipy.optimize",
    "scipy.special",
    "sympy",
    "torch",
    "transformers",
)
TEXT = functools.cache(Path.read_text)


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


class Lines:
    """A plugin of pytest: the tests that run each line of a room, "" for what the import runs, and
    the seconds of processor time of each test."""

    def __init__(self, room: Path) -> None:
        self.files = [room] if room.suffix else [*room.rglob("*.py")]
        self.seconds: dict[str, float] = {}
        self.coverage = coverage.Coverage(data_file=None, include=[*map(str, self.files)])
        self.coverage.start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.coverage.switch_context(nodeid)
        self.seconds[nodeid] = -time.process_time()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.seconds[nodeid] += time.process_time()

    def save(self, path: Path) -> None:
        self.coverage.stop()
        data = self.coverage.get_data()
        found = {str(file): data.contexts_by_lineno(str(file)) for file in self.files}
        path.write_bytes(pickle.dumps((self.seconds, found)))


class First:
    """A plugin of pytest: writes down the test that fails."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.path.write_text(report.nodeid)


def _run(folder: Path, tests: list[str], limit_s: int, room: str) -> None:
    """Tests in the copy, in a process of its own, whose exit code is that of pytest; with a room,
    what they run of it."""
    spent, sys.dont_write_bytecode = math.ceil(time.process_time()), True
    resource.setrlimit(resource.RLIMIT_CPU, (spent + limit_s, spent + limit_s))
    for name in [name for name in sys.modules if name.partition(".")[0] == "farfield"]:
        del sys.modules[name]  # of the installed package, which the runner has imported
    os.chdir(folder)
    os.environ["PYTHONPATH"] = sys.path[0] = str(folder / "package")
    del sys.modules["__main__"].__file__  # a process that a test starts would run this file
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    lines = [Lines(folder / room)] if room else []
    plugins = [*lines, First(folder / "failed")]
    options = ["-x", "-q", "-p", "no:cacheprovider", "--doctest-modules"]
    code = pytest.main([*options, *tests], plugins=plugins)
    if code == pytest.ExitCode.USAGE_ERROR:  # the file cannot be read, or its test has another name
        files = {test.partition("::")[0] for test in tests}
        code = pytest.main([*options, *files], plugins=plugins)
    for each in lines:
        each.save(folder / "lines")
    os._exit(code)


def fails(
    folder: Path, tests: list[str], limit_s: int, room: str = ""
) -> tuple[bool | None, float]:
    """Whether a test fails, None where the time is over before; and the seconds of processor time
    of them all, infinite where they wait for what does not come."""
    before = sum(os.times()[2:4])
    arguments = (folder, tests, limit_s, room)
    process = multiprocessing.get_context("fork").Process(target=_run, args=arguments)
    process.start()
    process.join(WAIT * limit_s)
    waits = process.is_alive()
    process.kill()
    process.join()
    seconds = math.inf if waits else sum(os.times()[2:4]) - before
    code = process.exitcode or 0
    return (None if code < 0 else code not in (0, 5)), seconds  # 5: all its tests are slow


@dataclass(frozen=True)
class Clean:
    """A test file that has run without a bug: the seconds of the file and of each of its tests, and
    the tests that run each line."""

    seconds: dict[str, float]
    tests: dict[str, dict[int, list[str]]]

    def of(self, file: Path, lines: range) -> list[str]:
        """The tests that run a line of some."""
        found = self.tests.get(str(file), {})
        return sorted({test for line in lines for test in found.get(line, ())})


def clean(folder: Path, test: str, room: str, limit_s: int) -> Clean:
    """A test file without a bug; one that fails, or does not end, runs no line."""
    failed, _ = fails(folder, [test], 4 * limit_s, room)
    if failed is not False:
        print(f"{test} fails without a bug, and is left out", file=sys.stderr)
        return Clean({}, {})
    seconds, lines = pickle.loads((folder / "lines").read_bytes())
    return Clean(seconds | {test: sum(seconds.values())}, lines)


def finder(folder: Path, mutant: Mutant, clean_runs: dict[str, Clean], limit_s: int) -> str:
    """The test that finds a bug, of files that have run without it; empty where none does."""
    path, left = folder / mutant.file, float(limit_s)
    reached = {test: each.of(path, mutant.lines) for test, each in clean_runs.items()}
    files = [test for test, tests in reached.items() if tests]
    # what the import runs concerns the whole file
    near = [t for f in files for t in ([f] if "" in reached[f] else reached[f])]
    usual = collections.ChainMap(*(clean_runs[f].seconds for f in files))
    source = path.read_bytes()
    for tests in [near] if near == files else [near, files]:
        if left <= 0 or not files:
            break
        (folder / "failed").write_text("an import")
        path.write_bytes(source[: mutant.start] + mutant.now.encode() + source[mutant.end :])
        failed, seconds = fails(folder, tests, math.ceil(left))
        path.write_bytes(source)
        left -= seconds
        if failed:
            return (folder / "failed").read_text()
        if failed is None and 3 * sum(usual[test] for test in tests) < seconds:
            return "no end"
    return ""


def main(room: str, *, count: int = 20, seed: int = 1, limit_s: int = 120) -> Iterator[Row]:
    """The bugs that no test finds.

    Args:
        room: a folder of the product, or a file.
        count: of bugs that are drawn.
        seed: of the draw.
        limit_s: seconds of processor time for the tests of one bug; a bug that is not found until
            then survives. Tests that do not end within them, though they take less than a third
            without the bug, find it.
    """
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    [*map(__import__, HEAVY)]
    killed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        copy(folder)
        ran = functools.cache(lambda test: clean(folder, test, room, limit_s))
        bugs = drawn(room, count, seed)
        for mutant in bugs:
            clean_runs = {test: ran(test) for test in tests_of(mutant.file, room)}
            by = finder(folder, mutant, clean_runs, limit_s)
            killed += bool(by)
            place = f"{mutant.file}:{mutant.lines[0]}: {mutant.was}  ->  {mutant.now}"
            yield {"found by": by or "nothing", "bug": place}
    yield {"found by": f"{killed} of {len(bugs)}", "bug": f"{room}, seed {seed}"}


if __name__ == "__main__":
    program(main)
