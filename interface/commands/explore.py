"""The verb of the explorer: a notebook in the browser of one's own machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from farfield.options import Formula
from farfield.output import print_error, print_out
from farfield.theory.answers.errors import InputError, refuse


def explore(*formula: Formula, port: int = 2718, edit: bool = False, headless: bool = False) -> int:
    """A formula answered as it is typed, its parameters on sliders; in a browser, offline.

    Args:
        formula: to start with, one.
        port: on the loopback address.
        edit: open a copy of the notebook, farfield_explorer.py in this folder, for changes.
        headless: print the address and open no browser.
    """
    import shutil
    import webbrowser
    from importlib.resources import as_file, files

    from farfield.validation.optional import require

    refuse(len(formula) > 1, "the explorer takes one formula; farfield compare takes several")
    require("marimo", "the explorer", "explore")
    require_port(port)
    try:
        webbrowser.get()
    except webbrowser.Error:
        headless = True
        print_error("farfield: no browser was found; open the address in one")
    with as_file(files("farfield.figures.explorer").joinpath("app.py")) as app:
        notebook = app
        if edit:
            notebook = Path("farfield_explorer.py")
            if not notebook.exists():
                shutil.copy(app, notebook)
    print_out(f"http://127.0.0.1:{port}   (Ctrl-C ends it)")
    sys.stdout.flush()
    mode = ["--quiet", "edit" if edit else "run", str(notebook), *["--headless"] * headless]
    address = ["--host", "127.0.0.1", "--port", str(port), "--no-token"]
    begin = ["--", f"--formula={formula[0]}"] if formula else []
    os.execv(sys.executable, [sys.executable, "-m", "marimo", *mode, *address, *begin])


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
