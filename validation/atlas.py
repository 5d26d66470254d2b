"""The atlas: what farfield knows of each encoding and of each family of models."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from farfield.theory.answers.answer import InputError, Result, plain
from farfield.theory.answers.blocks import Block, note
from farfield.theory.answers.number import listed
from farfield.theory.convergence import Convergence
from farfield.theory.formal.checked_statements import Statement, proving, statements
from farfield.validation.harness.mechanism import trainable
from farfield.validation.harness.settings import settle
from farfield.validation.models.audit import Audit, audit
from farfield.validation.models.transformers_config import architectures
from farfield.validation.papers.claim import Claim
from farfield.validation.papers.ledger import checks, claims
from farfield.validation.progress import Progress, silent
from farfield.validation.study.study import Study, catalogue, demo_encodings, save, survey

CHOSEN = {"falcon": {"alibi": True}}
"""Settings with which the atlas shows a family, where its usual ones show less."""


@dataclass(frozen=True, repr=False)
class ModelFamily:
    """A family of models, as the library has it where nothing is set.

    Fields:
        name: its `model_type`.
        settings: those that are not the usual ones.
        audit: of the configuration; None where the encoding is in the weights.
        reason: why there is no audit.
    """

    name: str
    settings: dict[str, Any]
    audit: Audit | None = None
    reason: str = ""

    def has(self, encoding: str) -> bool:
        """Whether its layers have an encoding of the catalogue."""
        names = "t5" if self.audit is None else self.audit.encoding
        return bool(re.search(rf"(?<![a-z0-9]){re.escape(encoding)}(?![a-z0-9])", names))


@dataclass(frozen=True, repr=False)
class Atlas(Result):
    """The catalogue with everything known of each entry, and the families of models.

    Fields:
        study: of the catalogue.
        claims: the ledger of the papers; empty where it was not asked for.
        families: of models.
    """

    study: Study
    claims: tuple[Claim, ...] = ()
    families: tuple[ModelFamily, ...] = ()

    def claims_about(self, name: str) -> list[Claim]:
        """The claims that speak of an encoding of the catalogue."""
        return [c for c in self.claims if name in c.about]

    def unnamed(self) -> list[Claim]:
        """The claims that speak of no encoding."""
        return [c for c in self.claims if not c.about]

    def blocks(self) -> Sequence[Block]:
        measured = [block for e in self.study.entries for block in e.blocks()]
        verdicts = [str(claim.verdict) for claim in self.claims]
        counts = [f"{verdicts.count(v)} {v.replace('_', ' ')}" for v in dict.fromkeys(verdicts)]
        decided = note("Claims of the papers: {counts}.", counts=listed(counts))
        return [self.study.lead(), *measured, *([decided] if counts else [])]

    def fields(self) -> dict[str, Any]:
        return self.study.fields() | {"claims": plain(self.claims)}

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write `study.json` into a folder, which is made if need be.

        Raises:
            InputError: the folder cannot be written to.
        """
        return save(self, folder)


def checked(name: str, convergence: Convergence) -> list[Statement]:
    """The statements, checked by a prover, on which the verdict about an encoding rests.

    >>> from farfield.theory.convergence import check_convergence
    >>> [s.place for s in checked("alibi", check_convergence("alibi"))]
    ['catalogue.alibi']
    """
    own = [s for s in statements() if s.file == "catalogue" and s.name == name]
    theorem = convergence.windowable.theorem
    return own or list(proving(theorem) if theorem else ())


def family_pages() -> tuple[ModelFamily, ...]:
    """Each family of causal models with the audit of its configuration, where that has numbers."""
    found = []
    with TemporaryDirectory() as place:
        for name in sorted({*architectures()["causal"], "t5"}):
            settings = CHOSEN.get(name, {})
            folder = Path(place) / name
            folder.mkdir()
            config = {"model_type": name, **settings}
            (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
            try:
                known = audit(folder)
            except InputError:
                if name == "t5":
                    why = "its table is in the weights of a model"
                    found.append(ModelFamily(name, settings, None, why))
                continue
            if known.kinds:
                found.append(ModelFamily(name, settings, known))
    return tuple(found)


def atlas(
    *,
    train: bool = False,
    every: bool = False,
    ledger: bool = True,
    preset: str = "demo",
    text: str | os.PathLike[str] | None = None,
    store: str | os.PathLike[str] = "runs",
    seed: int = 0,
    notice: Progress | None = None,
) -> Atlas:
    """Study the whole catalogue, those that are trained first.

    Args:
        train: whether to train models (needs torch; minutes).
        every: train every trainable encoding, not those of the demonstration alone.
        ledger: whether to decide the claims of the papers too.
        preset: architecture and schedule.
        text: a file or folder to train on; the standard library's sources if None.
        store: folder of the runs; a finished run is never repeated.
        seed: of the weights and the order of the text.
        notice: told how far it is.

    Raises:
        InputError: as `farfield.validation.study.study.survey`.
    """
    demo = dict(demo_encodings())
    known = {encoding.name for encoding in demo.values()}
    length = settle(preset, {"encoding": "nope"}).length
    others = {n: e for n, e in catalogue(length) if e.name not in known}
    subjects = demo | others
    chosen = [n for n, e in subjects.items() if n in demo or (every and trainable(e))]
    chosen.sort(key=lambda name: name not in demo)
    order = {name: k for k, name in enumerate(chosen if train else ())}
    found = survey(
        sorted(subjects.items(), key=lambda pair: order.get(pair[0], len(order))),
        train=chosen if train else (),
        preset_name=preset,
        text=text,
        store=store,
        seed=seed,
        notice=notice,
        title="Atlas of positional encodings",
    )
    models = family_pages()
    if not ledger:
        return Atlas(found, (), models)
    told, done, count = notice or silent, itertools.count(1), len(checks())
    judged = claims(notice=lambda c: told("claims of the papers", next(done), count, c.id))
    return Atlas(found, tuple(judged), models)
