"""The report: the catalogue studied, small models trained, the claims of the papers decided."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farfield.theory.answers.answer import Result, plain
from farfield.theory.answers.blocks import Block, note
from farfield.theory.answers.wording import listed
from farfield.validation.claims import Claim, checks, claims
from farfield.validation.harness.presets import preset as named
from farfield.validation.harness.trainable import trainable
from farfield.validation.progress import Progress, silent
from farfield.validation.study.findings import findings
from farfield.validation.study.study import Study, catalogue, demo_encodings, save, survey


@dataclass(frozen=True, repr=False)
class Report(Result):
    """The catalogue with what was predicted and measured, and the ledger of claims.

    Fields:
        study: of the catalogue.
        claims: the ledger; empty where it was not asked for.
    """

    study: Study
    claims: tuple[Claim, ...] = ()

    def blocks(self) -> Sequence[Block]:
        came_true = [f.blocks()[0] for f in findings(self.study.entries)]
        verdicts = [str(claim.verdict) for claim in self.claims]
        counts = [f"{verdicts.count(v)} {v.replace('_', ' ')}" for v in dict.fromkeys(verdicts)]
        decided = note("Claims of the papers: {counts}.", counts=listed(counts))
        return [self.study.lead(), *came_true, *([decided] if counts else [])]

    def fields(self) -> dict[str, Any]:
        return self.study.fields() | {"claims": plain(self.claims)}

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write `study.json` into a folder, which is made if need be.

        Raises:
            InputError: the folder cannot be written to.
        """
        return save(self, folder)


def report(
    *,
    train: bool = False,
    every: bool = False,
    ledger: bool = True,
    preset: str = "demo",
    text: str | os.PathLike[str] | None = None,
    store: str | os.PathLike[str] = "runs",
    seed: int = 0,
    notice: Progress | None = None,
) -> Report:
    """Study the whole catalogue, those that are trained first.

    Args:
        train: whether to train models (needs torch; minutes).
        every: train every trainable encoding, not those of the demonstration alone.
        ledger: whether to decide the claims of the papers too (half a minute).
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
    others = {n: e for n, e in catalogue(named(preset).length) if e.name not in known}
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
        title="Relative positional encodings: theory and measurement",
    )
    if not ledger:
        return Report(found)
    told, done, count = notice or silent, itertools.count(1), len(checks())
    judged = claims(notice=lambda c: told("claims of the papers", next(done), count, c.id))
    return Report(found, tuple(judged))
