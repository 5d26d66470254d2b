"""Answers as pages: a study, an audit, an entry of the atlas; drawings beside the words.

What draws priors is imported where it draws: the page of an audit takes half of the time without.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from farfield.figures.document import Section, Sheet, folded, laid_out, page
from farfield.theory.answers.answer import Result
from farfield.theory.answers.blocks import Block
from farfield.theory.answers.notation import Text, as_text, terminal, words
from farfield.validation.json_files import writable_folder, write

if TYPE_CHECKING:
    from farfield.validation.atlas import AtlasEntry
    from farfield.validation.models.audit import Audit
    from farfield.validation.study.prediction import Prediction
    from farfield.validation.study.study import Study


def write_study(s: Study, folder: str | os.PathLike[str]) -> Path:
    """Write `index.html` and `study.json` of a study into a folder; returns the page's path.

    Raises:
        InputError: the folder cannot be written to.
    """
    return _written(study_sheet(s), s, folder, "study")


def write_audit(a: Audit, folder: str | os.PathLike[str]) -> Path:
    """The same of an audit, with `audit.json`."""
    return _written(audit_sheet(a), a, folder, "audit")


def write_entry(e: AtlasEntry, folder: str | os.PathLike[str]) -> Path:
    """The same of an entry of the atlas, with `entry.json`."""
    return _written(entry_sheet(e), e, folder, "entry")


def _written(sheet: Sheet, found: Result, folder: str | os.PathLike[str], name: str) -> Path:
    place = writable_folder(folder)
    write(place / "index.html", page(sheet).encode())
    write(place / f"{name}.json", found.to_json(1).encode())
    return place / "index.html"


def audit_sheet(a: Audit) -> Sheet:
    """The page of an audit."""
    return Sheet(
        words("Audit of {model}", model=a.model), [Section((), folded(laid_out(a.blocks())))]
    )


def entry_sheet(e: AtlasEntry) -> Sheet:
    """The page of an entry of the atlas."""
    from farfield.figures.priors import name_of

    blocks = laid_out(e.blocks(), list(_drawn(e.prediction)))
    return Sheet(name_of(e.prediction.encoding), [Section((), folded(blocks))])


def study_sheet(s: Study) -> Sheet:
    """The page of a study."""
    return Sheet(_title(s), list(_study(s)))


def _title(s: Study) -> Text:
    return words("Study of ") + _listed([_named(e.prediction) for e in s.about(asked=True)])


def _listed(names: Sequence[Text]) -> Text:
    return sum((((", ",) if k else ()) + name for k, name in enumerate(names)), ())


def _named(p: Prediction) -> Text:
    """What a study calls an encoding, which may have several variants."""
    from farfield.figures.priors import name_of

    return name_of(p.encoding) if p.name == p.encoding.name else as_text(p.name)


def _study(s: Study) -> Iterator[Section]:
    """The idea, or several of them in a section each; their place; the measurements."""
    from farfield.figures.priors import against_critical

    predictions = [e.prediction for e in s.about(asked=True)]
    if len(predictions) == 1:
        yield Section((), folded(laid_out(predictions[0].blocks(), list(_drawn(*predictions)))))
    else:
        yield Section((), laid_out([s.lead(), *s.numbers()], list(_drawn(*predictions))))
        for p in predictions:
            yield Section(_named(p), folded(laid_out(p.blocks()), shown=0))
    if s.place is not None:
        shown = [(terminal(_named(p)), p.encoding) for p in predictions if p.drawable]
        among = against_critical(shown, s.place.ranks)
        ranked = folded(laid_out(s.place.blocks(), [among]))
        yield Section(words("Place among the known encodings"), ranked)
    if measured := s.measured():
        yield Section(words("What trained models lost"), laid_out(measured))


def _drawn(*predictions: Prediction) -> Iterator[Block]:
    """The share that the nearest tokens keep, of those that have a bias with all its values; the
    weights of those that are known in a table, as far as it goes."""
    from farfield.figures.priors import against_critical, kept_share

    known = [(terminal(_named(p)), p.encoding) for p in predictions if p.row_fields]
    whole = [(name, e) for name, e in known if e.seen is None]
    if whole:
        yield kept_share([(name, e, k) for k, (name, e) in enumerate(whole)])
    if tables := [(name, e) for name, e in known if e.seen is not None]:
        yield against_critical(tables)
