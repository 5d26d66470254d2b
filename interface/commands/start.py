"""Verbs to start with (demo, cite, doctor): an idea in theory and trained, what is installed."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from farfield.options import Formula, Opened, Output, Subject, own_module
from farfield.output import OK, print_out, write_answers, write_rows
from farfield.progress_bar import progress


def demo(
    formula: Formula = "-sqrt(n)*log(1+n)/50",
    /,
    *,
    bias: Formula | None = None,
    subject: Subject = Subject(),
    out: str = "out/demo",
    opened: Opened = True,
    output: Output = Output(),
) -> int:
    """An idea beside ALiBi and no bias: theory, then three small trained models.

    Args:
        formula: in n, a name of the catalogue, or a torch module of your own, FILE.py:Class.
        bias: the same as FORMULA.
        out: folder of the page and the runs; it resumes after an interruption.
        opened: open the page in a browser at the end, where a terminal shows the answer.
    """
    import webbrowser

    from farfield.figures.answer_pages import write_study
    from farfield.validation.json_files import writable_folder
    from farfield.validation.study.demo import COLUMNS, LEGEND, demonstration, predicted, row

    formula = formula if bias is None else bias
    folder, idea = writable_folder(out), subject.read(formula)
    widths = (max(8, min(28, len(idea.name))), 9, 7, 7, 8)

    def show(cells: Sequence[str]) -> None:
        if output.is_text:
            padded = (f"{cell:<{width}}" for cell, width in zip(cells, (*widths, 0), strict=False))
            print_out("  ".join(padded).rstrip())
            sys.stdout.flush()

    shown: set[str] = set()
    with progress("demo") as step:
        for result in demonstration(
            idea, folder / "runs", module=own_module(formula, idea), notice=step
        ):
            page = write_study(result, folder)
            if not result.trained:
                for entry in result.entries:
                    show([predicted(entry)])
                show([f"page, written again after each model: {page}"])
                show(COLUMNS)
            for entry in result.trained:
                if entry.prediction.name not in shown:
                    shown.add(entry.prediction.name)
                    show(row(entry))
    if not output.is_text:
        return write_answers(result, output)
    show([LEGEND])
    for entry in result.about(asked=True):
        if beside := entry.prediction.beside.text():
            show([beside])
    if sys.stdout.isatty() and opened:
        webbrowser.open(page.resolve().as_uri())
    return OK


def cite(*names: str, output: Output = Output()) -> int:
    """What to cite: BibTeX of farfield, or of what the catalogue holds.

    Args:
        names: of encodings, as alibi; farfield if none is given.
    """
    from farfield.theory.encodings.references import cite as entries

    return write_answers(entries(*names), output)


EXTRAS = {"torch": "train", "transformers": "hf", "ray": "cluster", "marimo": "explore"}
"""Libraries that some verbs need, and the extra that brings each."""

PROGRAMS = {"prover": ("coqc",), "browser": ("chromium", "chromium-browser", "google-chrome")}
"""Programs that some targets of make need."""


def doctor(*, output: Output = Output()) -> int:
    """What is installed here: versions, extras, processors, prover, browser, free disk."""
    import os
    import platform
    import shutil
    from importlib.metadata import PackageNotFoundError, version

    from farfield.validation.optional import lacking

    def installed(package: str) -> str:
        try:
            return version(package)
        except PackageNotFoundError:
            return f"not installed: pip install {' '.join(lacking(EXTRAS[package]))}"

    programs = (
        (name, next(filter(None, map(shutil.which, names)), f"not here: {' or '.join(names)}"))
        for name, names in PROGRAMS.items()
    )
    rows = [
        *((name, version(name)) for name in ("farfield", "sympy", "python-flint", "numpy")),
        ("Python", platform.python_version()),
        *((name, installed(name)) for name in EXTRAS),
        ("processors", str(os.cpu_count())),
        *programs,
        ("free disk", f"{shutil.disk_usage('.').free / 2**30:.1f} GiB"),
    ]
    return write_rows(("what", "here"), rows, output)
