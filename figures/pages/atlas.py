"""The atlas as pages: an index to search, one page an encoding, one page a family of models.

Each page has a permanent name, `alibi.html` or `model-falcon.html`, beside the index.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from farfield.figures.document import Fold, Heading, Item, Section, Sheet, page
from farfield.figures.pages.audit import audit_sections
from farfield.figures.pages.study import cells, head, measured, reach, verdict_text
from farfield.figures.pages.terms import MEASURED, PAPERS, THEORY
from farfield.theory.answers.blocks import facts, note, sentence, table
from farfield.theory.answers.notation import (
    StyledWord,
    as_text,
    expression_line,
    shortened,
    terminal,
    words,
)
from farfield.theory.answers.number import count, listed, plural
from farfield.theory.convergence import Verdict as Series
from farfield.theory.encodings import CATALOGUE, Encoding
from farfield.theory.encodings.listing import of_entry
from farfield.validation.atlas import Atlas, ModelFamily, checked
from farfield.validation.json_files import writable_folder, write
from farfield.validation.papers.claim import Claim, Verdict, brief
from farfield.validation.study.prediction import Prediction

ORDER = (
    Verdict.REFUTED,
    Verdict.NOT_ROBUST,
    Verdict.CORRECTED,
    Verdict.CONFIRMED,
    Verdict.NOT_TESTABLE,
)
"""The verdicts, what a reader looks for first."""
TERMS = {**THEORY, **MEASURED}
INDEX = "index"


def write_atlas(a: Atlas, folder: str | os.PathLike[str]) -> Path:
    """Write the pages and `study.json` into a folder; returns the path of the index.

    Raises:
        InputError: the folder cannot be written to.
    """
    place = writable_folder(folder)
    for name, s in sheets(a).items():
        content = page(s.title, s.lead, s.sections, TERMS, [PAPERS])
        write(place / f"{name}.html", content.encode())
    a.save(folder)
    return place / f"{INDEX}.html"


def sheets(a: Atlas) -> dict[str, Sheet]:
    """The pages by name, the index first."""
    found = {INDEX: _index(a)}
    for e in a.study.entries:
        found[e.prediction.encoding.name] = _encoding(a, e.prediction)
    return found | {_address(f): _family(f) for f in a.families}


def _address(f: ModelFamily) -> str:
    return f"model-{f.name}"


def _link(address: str, name: str) -> StyledWord:
    return StyledWord(name, f"to {address}.html")


def _title(name: str) -> str:
    return CATALOGUE[name].title or name


# -- the index ------------------------------------------------------------------------------------


def _index(a: Atlas) -> Sheet:
    predictions = [e.prediction for e in a.study.entries]
    by = {v: sum(p.convergence.verdict is v for p in predictions) for v in Series}
    lead: list[Item] = [
        sentence(
            "A window can replace full attention in one layer exactly where the series of the "
            "bias converges. Of {all} encodings {yes} converge, {no} diverge, and {maybe} converge "
            "under a condition. {others} are no biases in the distance. Theorems of their own "
            "decide {decided} of these.",
            all=len(predictions),
            yes=by[Series.CONVERGES],
            no=by[Series.DIVERGES],
            maybe=by[Series.CONDITIONAL],
            others=by[Series.OUT_OF_SCOPE],
            decided=sum(
                p.convergence.verdict is Series.OUT_OF_SCOPE
                and p.convergence.windowable.value is not None
                for p in predictions
            ),
        )
    ]
    first = next(p for p in predictions if p.row_fields)
    rows = sorted((_row(a, p) for p in predictions), key=lambda row: terminal(row[0]).lower())
    header = (
        "encoding",
        "bias",
        "verdict",
        "TRF(1/100)",
        f"leak to {first.row_length}",
        "window",
        "forecast",
        "claims",
        "families",
    )
    sections = [
        Section(
            words("Encodings"),
            [
                table(header, rows, numeric=tuple(range(3, 9))),
                note(
                    "TRF(1/100): the nearest tokens that hold 99 % of the weight. Leak: the share "
                    "of a row beyond {m} tokens. Window: the keys that keep the output within "
                    "1/100. Forecast: the ratio of perplexity from {m} to {n} tokens, empty beyond "
                    "the evidence. Of several heads the worst. Never and always: decided by a "
                    "theorem that needs no series.",
                    m=first.trained,
                    n=first.row_length,
                ),
            ],
        ),
        Section(words("Families of models"), list(_families(a.families))),
        *measured(a.study),
    ]
    if a.claims:
        others = a.unnamed()
        told = Fold(words("{n} claims", n=len(others)), list(ledger(others)))
        sections.append(Section(words("Claims that name no encoding"), [told]))
    return Sheet(words("Atlas of positional encodings"), lead, sections)


def _row(a: Atlas, p: Prediction) -> tuple[Any, ...]:
    own = p.encoding.name
    claims = len(a.claims_about(own))
    families = sum(f.has(own) for f in a.families)
    ratio = None if p.forecast is None else p.forecast.ratio
    return (
        as_text(_link(own, _title(own))),
        _bias(p.encoding),
        verdict_text(p.convergence),
        *cells(p),
        "" if ratio is None else f"{ratio:.3f}",
        claims or "",
        families or "",
    )


def _bias(e: Encoding) -> str:
    """The bias on one line: with its values, where it has one head."""
    if not e.biases:
        return ""
    alone = e.num_heads == 1 and not e.free
    return shortened(expression_line(e.biases[0]) if alone else e.formula_text(), 32)


def _families(families: Sequence[ModelFamily]) -> Iterator[Item]:
    header = ("family", "encoding", "heads", "trained on", "sliding_window", "the library")
    rows: list[tuple[Any, ...]] = []
    for f in sorted(families, key=lambda f: f.name):
        name = _link(_address(f), f.name)
        if f.audit is None:
            rows.append((name, "t5", "", "", "", f.reason))
            continue
        width = f.audit.sliding_window
        rows.append(
            (
                name,
                f.audit.encoding,
                f.audit.head_count,
                f.audit.trained,
                {None: "", math.inf: "none"}.get(width, count(width)),
                "; ".join(f.audit.notes),
            )
        )
    told = words("{n} families, as their library configures them", n=len(rows))
    yield Fold(told, [table(header, rows, numeric=(2, 3, 4))])


# -- an encoding ----------------------------------------------------------------------------------


def _encoding(a: Atlas, p: Prediction) -> Sheet:
    own = p.encoding.name
    entry = CATALOGUE[own]
    told: dict[str, list[Item]] = {
        "How far it sees": list(reach(p)),
        "Forecast, and its evidence": list(p.forecast.blocks()) if p.forecast else [],
        "Checked by a prover": list(_proofs(p)),
        "What papers say": list(ledger(a.claims_about(own))),
        "In models": list(_models(a, own)),
        "In farfield": [
            facts(
                name=StyledWord(own, "code"),
                also=listed(entry.aliases) or None,
                source=entry.source,
                note=entry.note or None,
                python=StyledWord(f'farfield.encoding("{own}")', "code"),
            ),
            *of_entry(p.encoding).blocks()[-1:],
        ],
    }
    related = [e.name for e in CATALOGUE.values() if own in (e.stands_for,)]
    related += [entry.stands_for] if entry.stands_for else []
    if related:
        links = (part for name in related for part in (", ", _link(name, _title(name))))
        told["In farfield"].append(note("See {links}.", links=tuple(links)[1:]))
    sections = [Section(words(title), items) for title, items in told.items() if items]
    home = note("{index}", index=_link(INDEX, "Atlas of positional encodings"))
    return Sheet(words("{name}", name=_title(own)), [home, head(p)], sections)


def _proofs(p: Prediction) -> Iterator[Item]:
    """The statements on which the verdict rests, and how the prover prints them."""
    for s in checked(p.encoding.name, p.convergence):
        yield sentence("{says}", "theorem", says=s.says)
        printed = StyledWord(" ".join(s.printed.split()), "code")
        yield Fold(as_text(StyledWord(s.place, "code")), [note("{said}", said=printed)])


def _models(a: Atlas, name: str) -> Iterator[Item]:
    """Families that have an encoding, and what their libraries do with it."""
    found = [f for f in a.families if f.has(name)]
    if not found:
        return
    links = tuple(part for f in found for part in (", ", _link(_address(f), f.name)))[1:]
    yield note(
        "{count}: {links}.",
        count="1 family" if len(found) == 1 else f"{len(found)} families",
        links=links,
    )
    biased = [(f.name, f.audit) for f in found if f.audit is not None and f.audit.heads]
    for told in dict.fromkeys(said for _, own in biased for said in own.notes):
        names = [name for name, own in biased if told in own.notes]
        yield note("{names}: {told}.", names=listed(names), told=told)


def ledger(claims: Sequence[Claim]) -> Iterator[Item]:
    """Claims by paper and verdict, the refuted in sight, the others folded."""
    header = ("claim", "where", "evidence", "statement", "what holds, or why not")
    for paper in dict.fromkeys(c.paper for c in claims):
        own = [c for c in claims if c.paper == paper]
        verdicts = [v for v in ORDER if any(c.verdict is v for c in own)]
        counts = [f"{sum(c.verdict is v for c in own)} {_word(v)}" for v in verdicts]
        name = f"{paper[:-4].capitalize()} et al. {paper[-4:]}"
        yield Heading(words("{paper}: {counts}", paper=name, counts=listed(counts)))
        for verdict in verdicts:
            rows = [
                (
                    StyledWord(c.id.removeprefix(f"{paper}."), "code"),
                    ", ".join(filter(None, (c.section, c.place))),
                    None if c.label is None else StyledWord(c.label, "label"),
                    c.statement,
                    c.corrected or c.reason or brief(c.evidence),
                )
                for c in own
                if c.verdict is verdict
            ]
            told = (StyledWord(_word(verdict), "verdict"), f": {plural(len(rows), 'claim')}")
            found = table(header, rows, _word(verdict))
            yield found if verdict is Verdict.REFUTED else Fold(told, [found])


def _word(verdict: Verdict) -> str:
    return verdict.replace("_", " ")


# -- a family -------------------------------------------------------------------------------------


def _family(f: ModelFamily) -> Sheet:
    uses = [name for name in CATALOGUE if f.has(name)]
    links = tuple(part for name in uses for part in (", ", _link(name, _title(name))))[1:]
    settings = ", ".join(f"{k} = {v}" for k, v in f.settings.items())
    lead: list[Item] = [
        note("{index}", index=_link(INDEX, "Atlas of positional encodings")),
        note(
            "Family {name}, as transformers reads a configuration in which "
            + ("only {settings} is set" if settings else "nothing is set")
            + ". Encoding: {links}.",
            name=StyledWord(f.name, "code"),
            settings=StyledWord(settings, "code"),
            links=links or "none",
        ),
    ]
    if f.audit is None:
        why = sentence("No audit without a model: {why}.", why=f.reason)
        return Sheet(words("{name} models", name=f.name), [*lead, why], [])
    answer, sections = audit_sections(f.audit)
    return Sheet(words("{name} models", name=f.name), [*lead, *answer], sections)
