"""The runner of the benchmarks.

A benchmark is a function that yields rows, mappings from column to cell. Its arguments are the
options of its command. `program` prints the rows as they come, `--record FILE` writes them as JSON,
`--against CHECKOUT` has the Python of another checkout do the same, and prints each number here
over the one there. Ratios of medians of processor time are what other work on the machine disturbs
least.
"""

from __future__ import annotations

import json
import runpy
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import cyclopts

import farfield

Row = dict[str, Any]
Tokens = Annotated[str, cyclopts.Parameter(show=False, allow_leading_hyphen=True)]


def program(measure: Callable[..., Iterable[Row]], faults: str = "") -> None:
    """Run a benchmark as the command line asks; it fails where the column of faults is not 0."""
    app = cyclopts.App(default_command=measure)

    @app.meta.default
    def asked(*tokens: Tokens, record: Path | None = None, against: Path | None = None) -> None:
        """Print the rows of a benchmark.

        Args:
            tokens: its own options.
            record: a file for its rows.
            against: another checkout, whose environment is its `.venv`.
        """
        said = " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *tokens])
        _, given, _ = app.parse_args(tokens)
        rows = [*printed(measure(*given.args, **given.kwargs))]
        if record is not None:
            told = rows[0] if len(rows) == 1 else {"rows": rows}
            whole = {"command": said, "version": farfield.__version__, **told}
            record.write_text(json.dumps(whole, indent=2) + "\n")
        if against is not None:
            list(printed(ratios(rows, against, tokens)))
        sys.exit(int(any(row.get(faults) for row in rows)))

    app.meta()


def printed(rows: Iterable[Row]) -> Iterator[Row]:
    """Rows as they come, printed below the names of their columns."""
    columns: list[str] = []
    for row in rows:
        for line in [row.values()] if list(row) == columns else [row, row.values()]:
            name, *cells = (f"{c:,.4g}" if isinstance(c, float) else str(c) for c in line)
            wide = zip(cells, [*row][1:], strict=True)
            print(f"{name:<40}", *(f"{c:>{max(len(k), 9)}}" for c, k in wide), flush=True)
        columns = list(row)
        yield row


def ratios(rows: Iterable[Row], there: Path, tokens: Iterable[str]) -> Iterator[Row]:
    """The numbers of rows over those that another checkout measures, of rows that begin alike."""
    with tempfile.TemporaryDirectory() as folder:
        kept, python = Path(folder, "rows.json"), there / ".venv" / "bin" / "python"
        command = [python, sys.argv[0], *tokens, "--record", kept]
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
        found = json.loads(kept.read_text())
    others = {next(iter(row.values())): row for row in found.get("rows", [found])}
    for row in rows:
        name = next(iter(row.values()))
        other = others.get(name, {})
        numbers = {k: v for k, v in row.items() if isinstance(v, float) and other.get(k)}
        yield {f"over {there}": name, **{k: v / other[k] for k, v in numbers.items()}}


def in_turn(
    candidates: dict[str, Callable[[], object]],
    repeats: int,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Median seconds of each candidate, all run in turn; the first round is dropped."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(repeats + 1):
        for name, candidate in candidates.items():
            seconds[name].append(timed(candidate, clock)[1])
    return {name: statistics.median(each[1:]) for name, each in seconds.items()}


def timed(
    call: Callable[[], Any], clock: Callable[[], float] = time.process_time
) -> tuple[Any, float]:
    """What a call returns, and its seconds."""
    began = clock()
    return call(), clock() - began


def fresh(
    function: Callable[..., Any],
    *given: Any,
    by: Iterable[str] = (sys.executable,),
    env: Mapping[str, str] | None = None,
) -> Any:
    """What a function of the program returns in a fresh process."""
    command = [*by, __file__, sys.argv[0], function.__name__, json.dumps(given)]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def peak() -> int:
    """The most KiB this process has held; not `ru_maxrss`, which begins at the parent's."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if "VmHWM" in line).split()[1])


if __name__ == "__main__":
    file, name, arguments = sys.argv[1:]
    returned = runpy.run_path(file)[name](*json.loads(arguments))
    if returned is not None:
        print(json.dumps(returned))
