"""Verbs that write pages (study, atlas, papers, figures, claims)."""

from __future__ import annotations

import itertools
import re
import shutil
import sys
import webbrowser
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.types import NonNegativeInt

from farfield.options import CountOrNone, Formula, Kept, Opened, Output, Subject, lengths, pairs
from farfield.output import print_out, speaks_unicode, write_answers, write_rows
from farfield.progress_bar import progress
from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.answers.names import one_of


def study(
    *formulas: Formula,
    subject: Subject = Subject(),
    train: bool = False,
    baseline: tuple[str, ...] = (),
    preset: str = "demo",
    trained: CountOrNone = None,
    tested: str | None = None,
    text: str | None = None,
    seed: NonNegativeInt = 0,
    runs: str | None = None,
    out: str | None = None,
    page: bool = False,
    opened: Opened = False,
    output: Output = Output(),
) -> int:
    """Everything farfield can say about a bias; --page writes it, --train measures it too.

    Args:
        formulas: formulas in n, or names of the catalogue.
        train: train and measure small models (needs torch).
        baseline: what to train beside it (repeatable); alibi and nope if not given.
        preset: architecture and schedule.
        trained: training length in tokens, as 64 or 4k; the preset's if not given.
        tested: context lengths in tokens, as 8k,32k; 4 and 16 times --trained if not given.
        text: a file or folder to train on.
        seed: of the models.
        runs: folder where runs are kept; OUT/runs if not given.
        page: write a page with everything; so do --out, --open and --train.
        opened: open the page in a browser.
        out: folder of the page; named after the formula and its options if not given.
    """
    from farfield.validation.json_files import writable_folder
    from farfield.validation.study.study import BASELINES
    from farfield.validation.study.study import study as examine

    refuse(
        not train and (baseline or text or runs), "--baseline, --text and --runs belong to --train"
    )
    subjects = subject.read_each(formulas)
    names = (
        f if isinstance(f, str) else f"{_name(f)} {s.name}"
        for f, s in zip(formulas, subjects, strict=True)
    )
    folder = Path(out or f"out/study/{folder_name(tuple(names), subject)}")
    if wanted := page or opened or train or out is not None:
        writable_folder(folder)
    after = "\n--page writes a page with everything, --proof prints it"
    with subject.within_budget():
        with progress("study") as step:
            result = examine(
                subjects,
                train=train,
                preset=preset,
                trained=trained,
                tested=() if tested is None else lengths(tested),
                baselines=baseline or BASELINES,
                text=text,
                store=runs or folder / "runs",
                seed=seed,
                notice=step,
            )
        if wanted:
            from farfield.figures.answer_pages import write_study

            place = write_study(result, folder)
            after = f"\npage: {place}"
    if opened:
        webbrowser.open(place.resolve().as_uri())
    return write_answers(result, output, after)


def _name(idea: Any) -> str:
    """What tells an object of Python from others of the same formula, alike in each process."""
    return str(getattr(idea, "__name__", type(idea).__name__ if callable(idea) else idea))


def folder_name(formulas: tuple[str, ...], subject: Subject = Subject()) -> str:
    """A folder's name for formulas: readable, and unlike for unlike formulas or options.

    >>> folder_name(("alibi",)), folder_name(("-2*log(1+n)",))
    ('alibi', '2-log-1-n-d6815888')
    >>> folder_name(("window",), Subject(set=("w=16",)))
    'window-w-16-ba7f69ff'
    """
    import hashlib
    import re

    given = (f"{k}={v}" for k, v in asdict(replace(subject, budget=None, set=())).items() if v)
    text = " ".join([*formulas, *subject.set, *given])
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-") or "formula"
    if re.fullmatch(r"[a-z][a-z0-9_]*", text):
        return text
    return f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


INDEX = "theory/encodings/index.txt"
NAMED = 3  # files of a drawing that are named one by one


def atlas(
    *names: Formula,
    subject: Subject = Subject(),
    listing: Annotated[bool, Parameter(name="--list")] = False,
    page: bool = False,
    out: str = "out/atlas",
    output: Output = Output(),
) -> int:
    """All that is known of an encoding; without a name, the catalogue.

    Args:
        names: of encodings, in any case, or formulas in n.
        listing: dialects, options and parameters alone.
        page: write a page of each, too.
        out: folder of the pages.
    """
    refuse(not names and subject.given(), "options describe one encoding; name it")
    refuse(page and (listing or not names), "a page is that of an encoding; name one")
    if listing or not names:
        return _catalogue(names, subject, output)
    from farfield.figures.answer_pages import write_entry
    from farfield.validation.atlas import entry
    from farfield.validation.json_files import writable_folder

    subjects = subject.read_each(names)
    folders = [writable_folder(f"{out}/{folder_name((name,), subject)}") for name in names * page]
    with subject.within_budget(), progress("atlas"):
        found = [entry(one) for one in subjects]
        places = [write_entry(*pair) for pair in zip(found, folders, strict=False)]
    return write_answers(found, output, *(f"page: {place}" for place in places))


def _catalogue(names: Sequence[str], subject: Subject, output: Output) -> int:
    """Encodings with their dialects, options and parameters, or the list of all of them."""
    if not names and output.is_text and speaks_unicode(output):
        lines = files("farfield").joinpath(INDEX).read_text(encoding="utf-8").rstrip()
        wide = max(map(len, lines.splitlines()))
        if not sys.stdout.isatty() or wide <= shutil.get_terminal_size().columns:
            print_out(lines)
            return 0
    from farfield.theory.encodings.listing import catalogue, of_entry

    if names:
        return write_answers([of_entry(one) for one in subject.read_each(names)], output)
    every = catalogue()
    return write_answers(tuple(every.encodings) if output.json else every, output)


def papers(
    *words: str,
    changes: Annotated[tuple[str, ...], Parameter(name="--set")] = (),
    out: str = "out/figures",
    output: Output = Output(),
) -> int:
    """The three papers: what holds, by section; with a name one claim, figure, table or theorem.

    Args:
        words: a paper, a claim, a figure or table, as chi2023 figure 3, a theorem, the word
            theorems, which lists them, or an encoding of the catalogue, for the papers' sentences
            on it.
        changes: NAME=VALUE of what a figure is drawn with, as eps=1/500 (repeatable).
        out: folder of a figure and its data.
    """
    from farfield.figures.gallery import named
    from farfield.figures.index import INDEX as EXHIBITS
    from farfield.theory.answers.names import closest
    from farfield.theory.theorems import theorems
    from farfield.validation.papers.claim import CHECKS
    from farfield.validation.papers.ledger import PAPERS, Decided, claim

    settings = tuple(word for word in words if "=" in word)
    name = " ".join(word for word in words if "=" not in word) or None
    if name is None or name in (*PAPERS, *CHECKS):
        return claims(name, output=output)
    if name == "theorems":
        rows = [(t.name, f"{t.title}  [{t.source}]") for t in theorems().values()]
        return write_rows(("name", "theorem"), rows, output)
    if name in theorems():
        return write_answers(theorems()[name], output)
    entry = re.sub(r"\W+", "_", name.lower())
    about = [check.id for check in CHECKS.values() if entry in check.about]
    if about:
        with progress("deciding claims"):
            found = tuple(map(claim, about))
        return write_answers(found if output.json else Decided(found), output)
    try:
        named(name)
    except InputError:
        every = [*PAPERS, *CHECKS, *EXHIBITS, *theorems()]
        said = f"{name[:40]!r} is no paper, claim, figure, table or theorem; {closest(name, every)}"
        raise InputError(said) from None
    return figures(name, changes=(*changes, *settings), out=out, output=output)


def figures(
    *names: str,
    listing: Annotated[bool, Parameter(name="--list")] = False,
    changes: Annotated[tuple[str, ...], Parameter(name="--set")] = (),
    kind: Annotated[str, Parameter(name="--format")] = "svg",
    runs: str | None = None,
    out: str = "out/figures",
    output: Output = Output(),
) -> int:
    """Every figure and table of the three papers, or those named; CSV beside each.

    Args:
        names: of figures and tables, as qin2024.fig6, fig6, or a paper.
        listing: name the figures and tables.
        changes: NAME=VALUE of what one figure is drawn with, as eps=1/500 (repeatable).
        kind: svg, png or pdf.
        runs: folder with runs to draw the measured ones from.
        out: folder of the files.
    """
    one_of(kind, "--format", ("svg", "png", "pdf"))
    from farfield.figures.index import INDEX

    if listing:
        rows = [(e.id, e.kind, e.title) for e in INDEX.values()]
        return write_rows(("name", "kind", "title"), rows, output)
    from farfield.figures.gallery import draw, named
    from farfield.theory.answers.blocks import Sentence, columns, written

    settings = pairs([*changes, *(name for name in names if "=" in name)], "--set")
    names = tuple(name for name in names if "=" not in name)

    count = len({e.id for name in names for e in named(name)}) or len(INDEX)
    asks = isinstance(output, Kept) and out == "out/figures"  # for a drawing, not for files
    with progress("figures") as step:
        done = itertools.count(1)
        gallery = draw(
            names,
            None if asks else out,
            kind=kind,
            runs=runs,
            settings=settings,
            notice=lambda id: step(id, next(done), count),
        )
    refuse(
        names and not gallery.drawn,
        "; ".join(f"{name}: {why}" for name, why in gallery.missing.items()),
    )
    alone = []
    if len(gallery.drawn) == 1:
        (drawing,) = gallery.drawn.values()
        told = [b for b in drawing.blocks() if b is drawing.beside or isinstance(b, Sentence)]
        alone = [written(told, width=columns())]
    if asks and len(gallery.drawn) == 1:
        return write_answers([*gallery.drawn.values()], output)
    count = len(gallery.files)
    if count <= NAMED:
        where = ["written: " + ", ".join(gallery.files)] * bool(count)
    else:
        where = [f"{count} files in {out}"]
    index = [f"index: {path}" for path in gallery.files if path.endswith("index.html")]
    return write_answers(gallery, output, *alone, *where, *index)


def claims(
    name: str | None = None,
    /,
    *,
    kind: str | None = None,
    verdict: str | None = None,
    output: Output = Output(),
) -> int:
    """The claims of the three papers, decided one by one; one in full with its ID.

    Args:
        name: of a claim; or a paper, qin2024, sun2023 or chi2023.
        kind: proof, certified number, printed tables, experiment, ...
        verdict: wrong, needs_a_correction, depends_on_the_tolerance, holds_as_printed,
            not_seen_at_this_scale or cannot_be_tested.
    """
    from farfield.validation.papers.ledger import PAPERS, Decided, checks, claim, verdict_of
    from farfield.validation.papers.ledger import claims as decide

    if name is not None and name not in PAPERS:
        refuse(kind or verdict, "--kind and --verdict select from the ledger; leave out the id")
        found = claim(name)
        return write_answers((found,) if output.json else found, output)
    wanted = None if verdict is None else verdict_of(verdict)
    with progress("deciding claims") as step:
        count = len(checks(name, kind))
        done = itertools.count(1)

        def judged(c: Any) -> None:
            step("", next(done), count, f"{c.id}: {c.verdict.words}")

        decided = decide(name, kind, judged)
    shown = tuple(c for c in decided if wanted in (None, c.verdict))
    return write_answers(shown if output.json else Decided(shown), output)
