"""The verb of the explorer: a notebook in the browser of one's own machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from farfield.options import Formula, Kept, Output
from farfield.output import OK, print_error, print_out
from farfield.theory.answers.errors import InputError, refuse


def explore(*formula: Formula, port: int = 2718, headless: bool = False) -> int:
    """A formula answered as it is typed, its parameters on sliders; in a browser, offline.

    Args:
        formula: to start with, one.
        port: on the loopback address.
        headless: print the address and open no browser.
    """
    import webbrowser
    from importlib.resources import as_file, files

    _require(formula, port)
    try:
        webbrowser.get()
    except webbrowser.Error:
        headless = True
        print_error("farfield: no browser was found; open the address in one")
    print_out(f"http://127.0.0.1:{port}   (Ctrl-C ends it)")
    sys.stdout.flush()
    with as_file(files("farfield.figures.explorer").joinpath("app.py")) as app:
        os.execv(sys.executable, _command(app, formula, port, headless))


@dataclass(frozen=True)
class ExplorerCell:
    """The explorer in a cell of a notebook; it ends with the notebook, or by `stop`.

    Fields:
        address: of its page.
        process: that serves the page.
    """

    address: str
    process: subprocess.Popen[bytes]

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait()

    def _repr_html_(self) -> str:
        return f'<iframe src="{self.address}" width="100%" height="720" title="explorer"></iframe>'


def cell(*formula: Formula, port: int = 2718, output: Output = Output()) -> int:
    """The explorer in a cell of a notebook: a formula on sliders, answered as it changes.

    Args:
        formula: to start with.
        port: on the loopback address.
    """
    import atexit
    from importlib.resources import as_file, files

    _require(formula, port)
    with as_file(files("farfield.figures.explorer").joinpath("app.py")) as app:
        process = subprocess.Popen(_command(app, formula, port, headless=True))
    atexit.register(process.terminate)
    assert isinstance(output, Kept), "it is no verb of the command line"
    output.answers.append(ExplorerCell(f"http://127.0.0.1:{port}", process))
    return OK


def _command(notebook: Path, formula: Sequence[str], port: int, headless: bool) -> list[str]:
    """The words that start the explorer."""
    start = [sys.executable, "-m", "marimo", "--quiet", "run", str(notebook)]
    address = ["--host", "127.0.0.1", "--port", str(port), "--no-token"]
    begin = ["--", f"--formula={formula[0]}"] if formula else []
    return [*start, *["--headless"] * headless, *address, *begin]


def _require(formula: Sequence[str], port: int) -> None:
    """Refuse several formulas, a port that another program has, or a machine without marimo.

    Raises:
        InputError: with what to type.
    """
    from farfield.validation.optional import require

    refuse(len(formula) > 1, "the explorer takes one formula; farfield compare takes several")
    require("marimo", "the explorer", "explore")
    require_port(port)


def require_port(port: int) -> None:
    """Refuse a port that is no port, or that another program has.

    Raises:
        InputError: with what would do.
    """
    import socket

    refuse(not 1024 <= port <= 65535, f"--port {port}: accepted are ports from 1024 to 65535")
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError as error:
            raise InputError(
                f"--port {port} cannot be had ({error.strerror}); give another one"
            ) from None
