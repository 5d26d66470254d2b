"""The list of every exhibit of the three papers, and the files they are written to.

Everything is rendered before the first file is written, and each file takes its place whole, so
that a failure leaves nothing half-written.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape

from farfield.figures import curves as trained
from farfield.figures import printed_tables as printed
from farfield.figures import remeasured as analogues
from farfield.figures.exhibit import Drawing, Exhibit, Missing, in_html
from farfield.figures.pages.study import document, table
from farfield.figures.papers import chi2023, qin2024, sun2023
from farfield.figures.samples import of_store, reference
from farfield.figures.style import FORMATS, rendered, svg
from farfield.theory.answers.answer import InputError, Result
from farfield.validation.files import writable_folder, write

PAPERS = {
    "qin2024": "Qin et al., Exploring Transformer Extrapolation, AAAI 2024",
    "sun2023": "Sun et al., A Length-Extrapolatable Transformer, ACL 2023",
    "chi2023": "Chi et al., Dissecting Transformer Length Extrapolation via the Lens of Receptive "
    "Field Analysis, ACL 2023",
}


def exhibits() -> tuple[Exhibit, ...]:
    """Every figure and table of the papers, in the order of the papers.

    >>> [e.id for e in exhibits()][:2]
    ['qin2024.fig1-left', 'qin2024.fig1-right']
    """
    found = (
        *qin2024.EXHIBITS, *sun2023.EXHIBITS, *chi2023.EXHIBITS, *printed.EXHIBITS,
        *trained.EXHIBITS, *analogues.EXHIBITS,
    )  # fmt: skip
    return tuple(sorted(found, key=_place))


def _place(e: Exhibit) -> tuple[int, bool, int, str]:
    paper, _, rest = e.id.partition(".")
    number = "".join(c for c in rest.partition("-")[0] if c.isdigit())
    return list(PAPERS).index(paper), rest.startswith("table"), int(number), rest


def exhibit(name: str) -> Exhibit:
    """The exhibit with this id.

    Raises:
        InputError: there is none; the message names the nearest.
    """
    known = {e.id: e for e in exhibits()}
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name.lower(), known, 1, 0.6)
    hint = f"did you mean {close[0]!r}?" if close else "`farfield figures --list` names them"
    raise InputError(f"figure {name[:40]!r} is not known; {hint}")


@dataclass(frozen=True)
class Gallery(Result):
    """What was drawn and what is missing.

    Fields:
        drawn: the drawing of each exhibit that has one, by id.
        missing: why an exhibit has none, and the command that changes it, by id.
        files: what was written.
    """

    drawn: dict[str, Drawing]
    missing: dict[str, str]
    files: tuple[str, ...] = ()

    def text(self) -> str:
        known = {e.id: e for e in exhibits()}
        lines = [f"{k:<20} {known[k].kind:<10} {known[k].title}" for k in self.drawn]
        lines += [f"{k:<20} {'missing':<10} {why}" for k, why in self.missing.items()]
        return "\n".join(lines)

    def fields(self) -> dict[str, object]:
        known = {e.id: e for e in exhibits()}
        return {
            "drawn": {
                k: {"kind": known[k].kind, "title": known[k].title, "caption": d.caption}
                for k, d in self.drawn.items()
            },
            "missing": dict(self.missing),
            "files": list(self.files),
        }


def draw(
    names: Iterable[str] = (), *, runs: str | os.PathLike[str] | None = None,
    notice: Callable[[str], None] | None = None,
) -> Gallery:  # fmt: skip
    """Draw the named exhibits, or all of them; those without results are listed as missing.

    Args:
        names: ids of exhibits, all of them if none is given.
        runs: a folder of runs to draw the measured ones from; the committed results if None.
        notice: called with each id before it is drawn.

    Raises:
        InputError: a name that is not known; results of another schema.
    """
    chosen = [exhibit(name) for name in dict.fromkeys(names)] or list(exhibits())
    measured = any(e.kind == "measured" for e in chosen)
    results = () if not measured else reference() if runs is None else of_store(runs)
    drawn, missing = {}, {}
    for e in chosen:
        if notice is not None:
            notice(e.id)
        try:
            drawn[e.id] = e.draw(results) if e.kind == "measured" else e.draw()
        except Missing as why:
            missing[e.id] = str(why)
    return Gallery(drawn, missing)


def save(
    gallery: Gallery, folder: str | os.PathLike[str], kind: str = "svg", page: bool = True
) -> Gallery:
    """Write each figure, its data as CSV, and a page of them all.

    Args:
        gallery: what to write.
        folder: where; made if need be.
        kind: `svg`, `png` or `pdf`.
        page: whether to write `index.html` too.

    Raises:
        InputError: an unknown format; a folder that cannot be written to.
    """
    if kind not in FORMATS:
        raise InputError(f"format {kind!r} is not known; accepted: {', '.join(FORMATS)}")
    content: dict[str, bytes] = {}
    for name, drawing in gallery.drawn.items():
        if drawing.figure is not None:
            content[f"{name}.{kind}"] = rendered(drawing.figure, kind, name, drawing.caption)
        content[f"{name}.csv"] = drawing.data.csv().encode()
    if page:
        content["index.html"] = gallery_page(gallery).encode()
    place = writable_folder(folder)
    for file, data in content.items():
        write(place / file, data)
    return Gallery(gallery.drawn, gallery.missing, tuple(str(place / f) for f in content))


def gallery_page(gallery: Gallery) -> str:
    """The drawings with their captions as one page of HTML."""
    sections = []
    for paper, citation in PAPERS.items():
        shown = [e for e in exhibits() if e.id.startswith(paper)]
        parts = [
            f'<h3 id="{e.id}">{e.id}: {escape(e.title)}</h3>{in_page(e, gallery.drawn[e.id])}'
            for e in shown if e.id in gallery.drawn
        ]  # fmt: skip
        absent = [(e, gallery.missing[e.id]) for e in shown if e.id in gallery.missing]
        if absent:
            rows = [[e.id, escape(e.title), in_html(why)] for e, why in absent]
            parts.append("<h3>Missing: not measured yet</h3>")
            parts.append(
                table(["figure", "shows", "why"], rows, "Nothing is drawn without results.", (1, 2))
            )
        if parts:
            sections.append((citation, "".join(parts)))
    lead = (
        f"<p>{len(gallery.drawn)} figures and tables recomputed, {len(gallery.missing)} missing. "
        "The data of each stand beside it as CSV.</p>"
    )
    return document("Figures and tables of three papers, recomputed", lead, sections)


def in_page(e: Exhibit, drawing: Drawing) -> str:
    """A drawing with its caption as HTML, without a heading."""
    caption = f'{in_html(drawing.caption)} <span class="label">{e.kind}</span>'
    if drawing.figure is None:
        shown = drawing.table
        rows = [["" if v is None else escape(str(v)) for v in row] for row in shown.rows]
        words = [k for k, cell in enumerate(shown.rows[0]) if isinstance(cell, str)][:2]
        return table(list(map(escape, shown.columns)), rows, caption, words, e.title)
    alt = escape(f"{e.title}. {drawing.caption}")
    picture = svg(drawing.figure, e.id.replace(".", "-"))
    return (
        f'<figure class="column" role="img" aria-label="{alt}">{picture}'
        f"<figcaption>{caption}</figcaption></figure>"
    )
