"""Pages of the papers' figures and tables, with the sentences on each; an index to look over."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from farfield.figures.document import Columns, Item, Picture, Section, Sheet, Thumbs, folded
from farfield.figures.exhibit import Drawing
from farfield.figures.index import INDEX, PAPERS, Exhibit
from farfield.theory.answers.blocks import Facts, note, table
from farfield.theory.answers.notation import StyledWord, as_text, code, words

if TYPE_CHECKING:
    from farfield.validation.papers.claim import Claim

TITLE = "Figures and tables, recomputed"
ROWS = 8
"""Of a long table that are shown at once."""


def index_sheet(
    summary: Sequence[Item],
    shown: Mapping[str, str],
    missing: Mapping[str, str],
    claims: Mapping[str, Sequence[Claim]],
    before: Collection[str] = (),
) -> Sheet:
    """The index: each paper's figures in small, its tables, and those that are missing.

    Args:
        summary: how much was drawn, and agrees.
        shown: the figures as inline SVG, empty for a table, of all that were drawn.
        missing: why an exhibit has none.
        claims: the sentences of the papers on each.
        before: exhibits that were drawn at another time, and have a page.
    """
    lead = note(
        "A figure without results is listed as missing. Each comes with its data as CSV. A dot "
        "is a sentence of the paper on its figure: green where it holds as printed, orange where "
        "it is wrong, violet where it needs a correction or is not decided."
    )
    sections = [Section((), [*summary, lead])]
    for paper, cited in PAPERS.items():
        exhibits = [e for e in INDEX.values() if e.paper == paper]
        cards = [_card(e, svg, claims.get(e.id, ())) for e in exhibits if (svg := shown.get(e.id))]
        lists, former = (
            [(StyledWord(_number(e), f"to {e.id}.html"), e.title) for e in exhibits if e.id in ids]
            for ids in ([k for k, svg in shown.items() if not svg], before)
        )
        absent = [(e.id, e.title, code(missing[e.id])) for e in exhibits if e.id in missing]
        items: list[Item] = [Thumbs(cards)] * bool(cards)
        items += [table(("table", "shows"), lists)] * bool(lists)
        items += [table(("page", "shows"), former, "Drawn before")] * bool(former)
        items += [table(("missing", "shows", "why"), absent, "Not measured yet")] * bool(absent)
        sections += [Section(words("{paper}", paper=cited), items)] * bool(items)
    return Sheet(words(TITLE), sections)


def _card(e: Exhibit, svg: str, claims: Sequence[Claim]) -> Item:
    """A figure in small, with the link to its page and a dot for each verdict on it."""
    dots = tuple(StyledWord("●", c.verdict.value.replace("_", "-")) for c in claims)
    link = StyledWord(e.title, f"to {e.id}.html")
    caption = words("{link} {id} {dots}", link=link, id=_number(e), dots=dots)
    return Picture(svg, caption, e.title, e.kind)


def _number(e: Exhibit) -> str:
    """The number that the paper gives it; empty for one of no paper."""
    match = re.match(r"(fig|table)(.*)", e.id.partition(".")[2])
    if match is None:
        return ""
    return {"fig": "Figure ", "table": "Table "}[match[1]] + match[2].replace("-", ", ")


def heading(e: Exhibit) -> str:
    """Paper, year and number of an exhibit, with what it shows.

    >>> heading(INDEX["qin2024.fig6"])
    'Qin et al. 2024, Figure 6: Theoretical receptive fields'
    """
    if not _number(e):
        return e.title
    authors = PAPERS[e.paper].partition(", ")[0]
    return f"{authors} {e.paper[-4:]}, {_number(e)}: {e.title}"


def exhibit_sheet(
    e: Exhibit,
    drawing: Drawing,
    svg: str,
    claims: Sequence[Claim],
    settings: Mapping[str, object] | None = None,
) -> Sheet:
    """The page of an exhibit, with the sentences of its paper beside the figure, or below the
    table.

    Args:
        e: which.
        drawing: the drawn exhibit.
        svg: its figure for a page.
        claims: the sentences on it.
        settings: its settings, with the values that it was drawn with.
    """
    home = note("{index}", index=StyledWord(TITLE, "to index.html"))
    again = note(
        "{again} draws it again. Its data: {data}.",
        again=StyledWord(f"farfield figures {e.id}", "code"),
        data=StyledWord(f"{e.id}.csv", f"to {e.id}.csv"),
    )
    more: list[Item] = []
    if settings:
        some = " ".join(f"{name}={value}" for name, value in settings.items())
        more = [
            note(
                "To change it: {command}.",
                command=StyledWord(f"farfield figures {e.id} --set {some}", "code"),
            )
        ]
    first, *items = folded(drawing.items(e.title, svg, e.kind), ROWS)
    claimed = [item for c in claims for item in _claimed(c)]
    if claimed:
        claimed[:0] = [note("{of}", of=StyledWord("What the paper says", "strong"))]
    if claimed and isinstance(first, Picture):
        first, claimed = Columns([first], claimed), []
    return Sheet(
        words("{title}", title=heading(e)),
        [Section((), [home, first, *items, *claimed, again, *more])],
    )


def _claimed(c: Claim) -> tuple[Item, Item]:
    """The words of the paper, our reading of them, and the verdict on that reading."""
    why = c.because or c.corrected or c.reason
    verdict = words(
        "{verdict}{why} {again}",
        verdict=c.verdict,
        why=f": {why}" * bool(why),
        again=StyledWord(c.command, "command"),
    )
    read = as_text("read here as"), as_text(c.statement)
    return note("“{quote}”", quote=c.quote), Facts((read, (as_text("verdict"), verdict)))
