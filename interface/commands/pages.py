"""Verbs that write pages: a study of one idea, the catalogue, the figures and claims of papers."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

from cyclopts import Parameter
from cyclopts.types import NonNegativeInt

from farfield.exits import exit_code
from farfield.options import Formula, Output, Subject
from farfield.output import emit, say, tell
from farfield.progress import progress
from farfield.theory.answers.errors import InputError


def study(
    *formulas: Formula, subject: Subject = Subject(), train: bool = False,
    baseline: tuple[str, ...] = (), preset: str = "demo", text: str | None = None,
    seed: NonNegativeInt = 0, runs: str | None = None, out: str | None = None,
    output: Output = Output(),
) -> int:  # fmt: skip
    """All that is known of an idea for a bias: theory, place, page; measured with --train.

    Args:
        formulas: formulas in n, or names of the catalogue.
        train: train and measure small models (needs torch).
        baseline: what to train beside it (repeatable); alibi and nope if not given.
        preset: architecture and schedule.
        text: a file or folder to train on.
        seed: of the models.
        runs: folder where runs are kept; OUT/runs if not given.
        out: folder of the page; named after the formula if not given.
    """
    from farfield.figures.pages.study import write_study
    from farfield.validation.files import writable_folder
    from farfield.validation.study.study import BASELINES
    from farfield.validation.study.study import study as examine

    if not formulas:
        raise InputError("give a formula, or several")
    if not train and (baseline or text or runs):
        raise InputError("--baseline, --text and --runs belong to --train")
    several = len(formulas) > 1
    subjects = [(subject.about(f) if several else subject).read(f) for f in formulas]
    folder = writable_folder(out or f"out/study/{folder_name(formulas)}")
    with progress("study") as step:
        result = examine(
            subjects, train=train, preset=preset, baselines=baseline or BASELINES, text=text,
            store=runs or folder / "runs", seed=seed, notice=step,
        )  # fmt: skip
    page = write_study(result, folder)
    emit(result, output)
    if not output.json:
        say(f"\npage: {page}")
    return exit_code(e.prediction.convergence for e in result.entries)


def folder_name(formulas: tuple[str, ...]) -> str:
    """A folder's name for formulas: readable, and unlike for unlike formulas.

    >>> folder_name(("alibi",)), folder_name(("-2*log(1+n)",))
    ('alibi', '2-log-1-n-dd01b8c5')
    """
    import hashlib
    import re

    text = " ".join(formulas)
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-") or "formula"
    if re.fullmatch(r"[a-z][a-z0-9_]*", text):
        return text
    return f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def report(
    *, train: bool = False, every: Annotated[bool, Parameter(name="--all")] = False,
    preset: str = "demo", text: str | None = None, seed: NonNegativeInt = 0,
    runs: str | None = None, claims: Annotated[bool, Parameter(negative="--no-claims")] = True,
    out: str = "out/report", output: Output = Output(),
) -> int:  # fmt: skip
    """Theory of the whole catalogue, beside models trained and measured; one page.

    Args:
        train: train and measure small models too (needs torch).
        every: train every trainable encoding, not those of the demo.
        preset: architecture and schedule.
        text: a file or folder to train on.
        seed: of the models.
        runs: folder where runs are kept; OUT/runs if not given.
        claims: the claims of the three papers as a chapter.
        out: folder of the page.
    """
    from farfield.figures.pages.report import write_report
    from farfield.validation.files import writable_folder
    from farfield.validation.report import report as examine

    if not train and (every or text or runs):
        raise InputError("--all, --text and --runs belong to --train")
    folder = writable_folder(out)
    with progress("report") as step:
        result = examine(
            train=train, every=every, ledger=claims, preset=preset, text=text, seed=seed,
            store=runs or folder / "runs", notice=step,
        )  # fmt: skip
    page = write_report(result, folder)
    code = emit(result, output)
    if not output.json:
        say(f"page: {page}")
    return code


def figures(
    *names: str, listing: Annotated[bool, Parameter(name="--list")] = False,
    kind: Annotated[str, Parameter(name="--format")] = "svg", runs: str | None = None,
    out: str = "out/figures", output: Output = Output(),
) -> int:  # fmt: skip
    """Every figure and table of the three papers, or those named; CSV beside each.

    Args:
        names: of figures and tables, as qin2024.fig6, fig6, or a paper.
        listing: name the figures and tables.
        kind: svg, png or pdf.
        runs: folder with runs to draw the measured ones from.
        out: folder of the files.
    """
    kinds = ("svg", "png", "pdf")
    if kind not in kinds:
        raise InputError(f"--format {kind!r}: accepted: {', '.join(kinds)}")
    from farfield.figures.gallery import draw, exhibits
    from farfield.figures.pages.gallery import save

    if listing:
        for e in exhibits():
            say(f"{e.id:<20} {e.kind:<10} {e.title}")
        return 0
    from farfield.validation.files import writable_folder

    writable_folder(out)
    with progress("figures"):
        gallery = save(draw(names, runs=runs), out, kind, page=not names)
    if names and gallery.missing:
        raise InputError("; ".join(f"{name}: {why}" for name, why in gallery.missing.items()))
    code = emit(gallery, output)
    if not output.json:
        for drawing in gallery.drawn.values() if len(names) == 1 else ():
            say(drawing.caption)
        say(f"{len(gallery.files)} files in {out}")
    return code


def claims(
    identifier: str | None = None, /, *, paper: str | None = None, kind: str | None = None,
    verdict: str | None = None, results: tuple[str, ...] = (), fresh: bool = False,
    preset: str = "demo", output: Output = Output(),
) -> int:  # fmt: skip
    """The claims of the three papers, decided one by one; one in full with its ID.

    Args:
        identifier: of a claim.
        paper: qin2024, sun2023 or chi2023.
        kind: proof, certified number, printed tables, experiment, ...
        verdict: confirmed, corrected, refuted, not_testable or not_robust.
        results: results of trained models, as the study.json of a report (repeatable).
        fresh: train and measure models for them (needs torch).
        preset: with --fresh, how large.
    """
    from farfield.validation.claims import checks, claim
    from farfield.validation.claims import claims as decide
    from farfield.validation.claims.results import fresh as fresh_study
    from farfield.validation.claims.results import read_results, using

    if identifier is not None and (paper or kind or verdict):
        raise InputError("--paper, --kind and --verdict select from the ledger; leave out the id")
    studies = [read_results(path) for path in results]
    if fresh:
        with progress("fresh models") as step:
            studies.append(fresh_study(preset, notice=step))
    with using(*studies) if studies else nullcontext():
        if identifier is not None:
            found = claim(identifier)
            return emit([found] if output.json else found, output)
        with progress("deciding claims") as step:
            count = len(checks(paper, kind))
            decided = decide(paper, kind, lambda c: step(c.id, 1, count))
    shown = [c for c in decided if verdict in (None, c.verdict.value)]
    if output.json:
        return emit(shown, output)
    from farfield.theory.answers.notation import shortened

    for c in shown:
        say(f"{c.verdict.value:<13} {c.id:<40} {shortened(c.statement, 70)}")
    totals: dict[str, int] = {}
    for c in decided:
        totals[c.verdict.value] = totals.get(c.verdict.value, 0) + 1
    say(f"{len(decided)} claims: " + ", ".join(f"{n} {v}" for v, n in sorted(totals.items())))
    return 0


def explore(
    *formulas: Formula, port: int = 2718, edit: bool = False, headless: bool = False
) -> int:
    """Formulas answered as they are typed, their parameters on sliders; in a browser, offline.

    Args:
        formulas: what it begins with.
        port: on the loopback address.
        edit: open a copy of the notebook, farfield_explorer.py in this folder, for changes.
        headless: open no browser, say the address alone.
    """
    import os
    import shutil
    import sys
    import webbrowser
    from importlib.resources import as_file, files
    from importlib.util import find_spec
    from pathlib import Path

    if find_spec("marimo") is None:
        raise InputError("this needs marimo; install it with pip install 'farfield[explore]'")
    require_port(port)
    try:
        webbrowser.get()
    except webbrowser.Error:
        headless = True
        tell("farfield: no browser was found; open the address in one")
    with as_file(files("farfield.figures.explorer").joinpath("app.py")) as app:
        notebook = app
        if edit:
            notebook = Path("farfield_explorer.py")
            if not notebook.exists():
                shutil.copy(app, notebook)
    say(f"http://127.0.0.1:{port}   (Ctrl-C ends it)")
    sys.stdout.flush()
    mode = ["--quiet", "edit" if edit else "run", str(notebook), *["--headless"] * headless]
    address = ["--host", "127.0.0.1", "--port", str(port), "--no-token"]
    begin = ["--", f"--formulas={';'.join(formulas)}"] if formulas else []
    os.execv(sys.executable, [sys.executable, "-m", "marimo", *mode, *address, *begin])


def require_port(port: int) -> None:
    """Refuse a port that is no port, or that another program has.

    Raises:
        InputError: with what would do.
    """
    import socket

    if not 1024 <= port <= 65535:
        raise InputError(f"--port {port}: accepted are ports from 1024 to 65535")
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError as error:
            raise InputError(
                f"--port {port} cannot be had ({error.strerror}); give another one"
            ) from None
