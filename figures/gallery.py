"""The gallery: exhibits, found by name, drawn and written one by one; those without results."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farfield.figures.document import Sheet, page
from farfield.figures.exhibit import Drawing, NoResults, told
from farfield.figures.exhibit_pages import exhibit_sheet, index_sheet
from farfield.figures.index import INDEX, PAPERS, Exhibit
from farfield.figures.style import FORMATS, inline, rendered, svg
from farfield.theory.answers.answer import InputError, Result
from farfield.theory.answers.blocks import Block, Sentence, sentence, table
from farfield.theory.answers.names import closest, one_of
from farfield.theory.answers.notation import code
from farfield.theory.answers.number import inside, natural, plural
from farfield.validation.json_files import writable_folder, write

if TYPE_CHECKING:
    from polars import DataFrame

    from farfield.validation.papers.claim import Check, Claim

AGREES, DIFFERS = ("holds_as_printed",), ("needs_a_correction", "wrong")
OPEN = ("depends_on_the_tolerance", "not_seen_at_this_scale", "cannot_be_tested")
"""Verdicts on the papers' sentences."""
UNPRINTED = "The paper prints no number of this figure to compare with."
OWN_MODELS = (
    "These are the models of farfield's registrations: the runs that were given are not drawn."
)


LONGEST, LEAST = 65_536, 10**12
"""Most tokens, and the inverse of the least share, that a figure is drawn for."""


def recompute(
    e: Exhibit, known: DataFrame | None = None, settings: Mapping[str, object] | None = None
) -> Drawing:
    """Draw an exhibit.

    Args:
        e: one of the index.
        known: the results that a measured one is drawn from; None for the committed ones.
        settings: its settings that are changed, by name, as `{"eps": "1/500"}`.

    Raises:
        InputError: a setting that it does not have, or a value that it does not take.
        NoResults: a measured one that has none among them.

    >>> recompute(INDEX["qin2024.fig2"], settings={"window": 8}).data.columns[1]
    'window of 8'
    """
    function = _function(e)
    given: tuple[Any, ...] = (e.id, *e.encodings) if e.draw else ()
    if e.draw and e.kind == "measured":
        from farfield.validation.results import results

        given = (results() if known is None else known, *given)
    drawn: Drawing = function(*given, **e.options, **_read(e, settings or {}))
    more = [drawn.caption]
    if known is not None and e.kind == "measured":
        from farfield.figures.papers.measured_samples import not_learned

        more += [OWN_MODELS if e.paper == "farfield" else not_learned(known)]
    if e.paper != "farfield" and drawn.figure is not None and drawn.beside is None:
        more += [UNPRINTED]
    return replace(drawn, caption=told(*more))


def _function(e: Exhibit) -> Callable[..., Drawing]:
    """The function that draws an exhibit."""
    place, _, name = (e.draw or e.id.replace("-", "_")).partition(".")
    function: Callable[..., Drawing] = getattr(
        import_module(f"farfield.figures.papers.{place}"), name
    )
    return function


def settings_of(e: Exhibit) -> dict[str, Any]:
    """What can be changed of an exhibit, with what it is drawn with.

    >>> settings_of(INDEX["qin2024.fig6"])
    {'eps': Fraction(1, 1000), 'length': 1024}
    """
    if e.draw:  # from results or from printed numbers
        return {}
    parameters = inspect.signature(_function(e)).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def _read(e: Exhibit, settings: Mapping[str, object]) -> dict[str, Any]:
    """Settings as the function of an exhibit takes them."""
    known, read = settings_of(e), dict[str, Any]()
    for name, value in settings.items():
        if name not in known:
            has = ", ".join(f"{k}={v}" for k, v in known.items())
            has = f"accepted: {has}" if has else "it shows results as they are"
            raise InputError(f"{e.id} has no setting {name[:40]!r}; {has}")
        if isinstance(known[name], Fraction):
            given = inside(value, name, "(0, 1/2)")
            if given.q > LEAST * given.p:
                raise InputError(f"{name} = {given}: a figure has at least 1/10^12")
            read[name] = Fraction(int(given.p), int(given.q))
        else:
            read[name] = natural(value, name, 2, LONGEST)
    return read


def named(name: str) -> tuple[Exhibit, ...]:
    """The exhibits that a name means: one by its id, all of a paper, those of one number.

    Raises:
        InputError: there is none; the message names the nearest.

    >>> [e.id for e in named("Figure 6")], [e.id for e in named("qin2024.fig1")]
    (['qin2024.fig6', 'chi2023.fig6'], ['qin2024.fig1-left', 'qin2024.fig1-right'])
    >>> [e.id for e in named("chi2023 figure 3")]
    ['chi2023.fig3']
    """
    spelling = re.sub(r"fig(ure)?\.?\s*(?=\d)", "fig", name.strip().lower())
    spelling = re.sub(r"^(\w+\d{4})\s+", r"\1.", spelling).replace(" ", "")
    every = tuple(INDEX.values())
    if exact := tuple(e for e in every if e.id == spelling):
        return exact
    if found := tuple(e for e in every if spelling in _spellings(e)):
        return found
    known = closest(name, [*PAPERS, *(e.id for e in every)])
    raise InputError(f"figure {name[:40]!r} is not known; {known}; --list names them")


def _spellings(e: Exhibit) -> tuple[str, ...]:
    """The paper, the id without its part, and both without the paper."""
    whole = e.id.partition("-")[0]
    return e.paper, whole, e.id.partition(".")[2], whole.partition(".")[2]


@dataclass(frozen=True, repr=False)
class Gallery(Result):
    """The exhibits that were drawn, and those missing.

    Fields:
        drawn: the drawing of each exhibit, by id.
        missing: why an exhibit has none, and the command that changes it, by id.
        said: the sentences of the papers on each of them, decided, by id.
        files: the files written.
    """

    drawn: dict[str, Drawing]
    missing: dict[str, str]
    said: Mapping[str, Sequence[Claim]] = field(default_factory=dict)
    files: tuple[str, ...] = ()

    def blocks(self) -> Sequence[Block]:
        rows = [(k, INDEX[k].kind, INDEX[k].title, *self._counts(k)) for k in self.drawn]
        wide = 6 if self.said else 3
        against = {
            c.id: (k, c.id, c.statement, c.verdict)
            for k in reversed(self.drawn)
            for c in self.said.get(k, ())
            if c.verdict in DIFFERS
        }
        missing = [(k, code(why)) for k, why in self.missing.items()]
        tables = (
            (
                ("id", "kind", "shows", "agrees", "does not", "open")[:wide],
                rows,
                (3, 4, 5)[: wide - 3],
            ),
            (("exhibit", "claim", "read here as", "verdict"), [*against.values()][::-1], ()),
            (("missing", "why"), missing, ()),
        )
        return (
            sentence(
                "{drawn} of {all} drawn, {missing} missing.",
                drawn=len(self.drawn),
                all=plural(len(self.drawn) + len(missing), "exhibit"),
                missing=len(missing),
            ),
            *([agreement(self.said)] if self.said else []),
            *(table(header, cells, numeric=numeric) for header, cells, numeric in tables if cells),
        )

    def index(self, shown: Mapping[str, str], before: Collection[str] = ()) -> Sheet:
        """The page of all, as of `index_sheet`."""
        sentences = [b for b in self.blocks() if isinstance(b, Sentence)]
        return index_sheet(sentences, shown, self.missing, self.said, before)

    def _counts(self, name: str) -> list[Any]:
        verdicts = [c.verdict for c in self.said.get(name, ())]
        kinds = (AGREES, DIFFERS, OPEN) if self.said else ()
        return [sum(v in kind for v in verdicts) or "" for kind in kinds]

    def fields(self) -> dict[str, Any]:
        return {
            "drawn": {
                k: {"kind": INDEX[k].kind, "title": INDEX[k].title, "caption": d.caption}
                for k, d in self.drawn.items()
            },
            "missing": dict(self.missing),
            "said": {k: {c.id: str(c.verdict) for c in own} for k, own in self.said.items()},
            "files": list(self.files),
        }


def agreement(said: Mapping[str, Sequence[Claim]]) -> Sentence:
    """How many of the papers' sentences agree with the drawings."""
    every = {c.id: c.verdict for claims in said.values() for c in claims}.values()
    agree, differ, open_ = (sum(v in kind for v in every) for kind in (AGREES, DIFFERS, OPEN))
    return sentence(
        "Of {all} on them {agree} {hold} as printed, {differ} {are_wrong} a correction, "
        "{open} {are_open} not decided.",
        all=plural(len(every), "sentence"),
        agree=agree,
        hold="holds" if agree == 1 else "hold",
        differ=differ,
        are_wrong="is wrong or needs" if differ == 1 else "are wrong or need",
        open=open_,
        are_open="is" if open_ == 1 else "are",
    )


def draw(
    names: Iterable[str] = (),
    folder: str | os.PathLike[str] | None = None,
    *,
    kind: str = "svg",
    runs: str | os.PathLike[str] | None = None,
    settings: Mapping[str, object] | None = None,
    notice: Callable[[str], None] | None = None,
) -> Gallery:
    """Draw the named exhibits, or all of them; those without results are listed as missing.

    Args:
        names: ids of exhibits, of papers, or numbers such as `fig6`; all of them if none is given.
        folder: where each figure is written as soon as it is drawn, with its data as CSV, and with
            pages where there are several. Nothing is written if None.
        kind: `svg`, `png` or `pdf`.
        runs: a folder of runs, or a CSV file of results, to draw the measured ones from; the
            committed results if None.
        settings: the settings of one figure that are changed, by name; its files have the changes
            in their names.
        notice: called with each id before it is drawn.

    Raises:
        InputError: a name that is not known; results that cannot be read; an unknown format; a
            folder that cannot be written to; settings of several figures.
    """
    one_of(kind, "format", FORMATS)
    wanted = {e.id: e for name in names for e in named(name)}
    chosen = list(wanted.values()) or list(INDEX.values())
    if settings:
        chosen = [_changed(chosen, settings)]
    several = len(chosen) > 1
    place, known = None if folder is None else writable_folder(folder), None
    if runs is not None:
        from farfield.validation.results import results

        known = results(os.fspath(runs))
    drawn, missing, written = dict[str, Drawing](), dict[str, str](), list[Path]()
    claims: dict[str, Sequence[Claim]] = {}
    pairs = [(name, str(value)) for name, value in (settings or {}).items()]
    for e in chosen:
        if notice is not None:
            notice(e.id)
        try:
            drawn[e.id] = recompute(e, known, settings)
        except NoResults as why:
            missing[e.id] = str(why)
            continue
        claims |= {e.id: claims_on(e.id)} if several else {}
        if place is not None:
            stem = re.sub(r"[^\w.-]+", "-", "_".join([e.id, *map("-".join, pairs)]))
            written += _written(place / stem, e, drawn[e.id], kind, claims.get(e.id))
    found = Gallery(drawn, missing, claims)
    if place is not None and several:
        written.append(place / "index.html")
        write(written[-1], page(_index(place, found, kind)).encode())
    return replace(found, files=tuple(map(str, written)))


def _index(place: Path, found: Gallery, kind: str) -> Sheet:
    """The page of the exhibits that were drawn; others that the folder has pages of, drawn before
    and maybe from other results, are named apart."""
    asked = {*found.drawn, *found.missing}
    before = [k for k in INDEX if k not in asked and (place / f"{k}.html").exists()]
    shown = {k: _thumb(place, k, found.drawn[k], kind) for k in INDEX if k in found.drawn}
    return found.index(shown, before)


def _changed(chosen: Sequence[Exhibit], settings: Mapping[str, object]) -> Exhibit:
    """The one figure that settings are of."""
    able = [e for e in chosen if settings.keys() <= settings_of(e).keys()]
    able = able or [e for e in chosen if settings_of(e)] or list(chosen)
    if len(able) > 1:
        ids = ", ".join(e.id for e in able[:4])
        raise InputError(f"settings belong to one figure; {len(able)} are named: {ids} ...")
    return able[0]


def _thumb(place: Path, name: str, drawing: Drawing, kind: str) -> str:
    """The figure for the index, from its file where that is an SVG; empty for a table."""
    if drawing.figure is None:
        return ""
    if kind == "svg":
        return inline((place / f"{name}.svg").read_text(encoding="utf-8"))
    return svg(drawing.figure, name)


def _written(
    stem: Path, e: Exhibit, drawing: Drawing, kind: str, claims: Sequence[Claim] | None
) -> Iterator[Path]:
    """The files of an exhibit, which begin with `stem`: figure, data and, where claims are handed
    in, its page."""
    content = {}
    if drawing.figure is not None:
        content[kind] = rendered(drawing.figure, kind, e.id, drawing.caption)
    content["csv"] = drawing.data.csv().encode()
    if claims is not None:
        vector = inline(content["svg"].decode()) if "svg" in content else ""
        content["html"] = page(exhibit_sheet(e, drawing, vector, claims, settings_of(e))).encode()
    for ending, data in content.items():
        file = stem.with_name(f"{stem.name}.{ending}")
        write(file, data)
        yield file


def claims_on(identifier: str) -> tuple[Claim, ...]:
    """The sentences of a paper on an exhibit, decided."""
    paper, _, exhibit = identifier.removesuffix("-measured").partition(".")
    if paper == "farfield":
        return ()
    from farfield.validation.papers.ledger import checks  # an exhibit of ours has none

    return tuple(_decided(c) for c in checks(paper) if exhibit in c.exhibits)


@cache
def _decided(check: Check) -> Claim:
    return check.run()
