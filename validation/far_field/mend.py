"""Which change at inference helps a trained model on long rows, and what does it cost?

Each candidate has its forecast at the length, by one stage, the loss of short rows under it, the
keys that it keeps, and how likely far needles are found again. The best few may be measured on real
rows. Every number is written down as it is made, so that a stopped search goes on.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from farfield.theory.answers.answer import Answer, Label, Status
from farfield.theory.answers.blocks import Block, facts, note, sentence, table
from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.answers.number import natural
from farfield.theory.encodings import Encoding, encoding
from farfield.validation.far_field import recall
from farfield.validation.far_field.foresee import (
    USUAL,
    ModelOnText,
    Ratio,
    Settings,
    ratio_of,
    reach_of,
    subject_of,
)
from farfield.validation.far_field.network import losses
from farfield.validation.far_field.repairs import Repair, Repaired, candidates
from farfield.validation.harness.data import samples
from farfield.validation.json_files import CorruptFile, read_json, write_json
from farfield.validation.progress import Progress, silent

BEST = 3  # that are measured
REAL = 16  # rows


@dataclass(frozen=True)
class Mended:
    """A change and what is said of it.

    Fields:
        repair: in words.
        log_ratio: forecast at `to`, to the unchanged model on short rows.
        short: log ratio on short rows themselves: what the change costs there.
        keys: that a query sees at most.
        recall: the probability of a token of a far needle, by distance.
        measured: log ratio on real rows with half its 95 % interval; None where it was not asked.
    """

    repair: str
    log_ratio: float
    short: float
    keys: int
    recall: tuple[recall.FarRecall, ...]
    measured: tuple[float, float] | None = None


@dataclass(frozen=True, repr=False, kw_only=True)
class Mending(Answer):
    """Changes of a model at inference, the best forecast first.

    Fields:
        to, length: tokens of the row that is asked about, and of the rows that were read.
        rows: each change, no change among them.
        best: the first, by forecast, or by measurement where there is one.
        encoding: of each layer under it, as text; None for a layer without a bias.
        window: keys that it leaves, None for all.
        source: the text.
    """

    VALUE: ClassVar[str] = "log_ratio"

    to: int
    length: int
    log_ratio: float
    rows: tuple[Mended, ...]
    best: str
    encoding: tuple[str | None, ...]
    window: int | None
    source: str = ""

    def _blocks(self) -> Iterator[Block]:
        plain = next(row for row in self.rows if row.repair == "none")
        yield sentence(
            "{model} at {to} tokens: {best} changes the log ratio from {plain} to {value}.",
            self.label,
            model=self.subject,
            to=self.to,
            best=self.best if self.best != "none" else "no change is best; it",
            plain=f"{plain.log_ratio:.3f}",
            value=f"{self.log_ratio:.3f}",
        )
        found = [f"recall at {r.distance}" for r in plain.recall]
        yield table(
            ("change", "log ratio", "measured", f"at {self.length}", "keys", *found),
            [
                (
                    row.repair,
                    f"{row.log_ratio:.3f}",
                    "" if row.measured is None else "{:.3f} ± {:.3f}".format(*row.measured),
                    f"{row.short:.3f}",
                    row.keys,
                    *(f"{r.probability:.1%}" for r in row.recall),
                )
                for row in self.rows
            ],
            numeric=(1, 2, 3, 4, *range(5, 5 + len(found))),
        )
        yield facts(text=self.source)
        yield note(
            "Recall: how likely the model says a token of a sequence that it has seen so many "
            "tokens before. A graft or a window gives up what is far: the loss does not show it."
        )


class Book:
    """Numbers that are made once and kept in a file."""

    def __init__(self, place: Path) -> None:
        self.place, self.kept = place, dict[str, list[float]]()
        if place.is_file():
            try:
                self.kept = {k: v for k, v in read_json(place).items() if isinstance(v, list)}
            except CorruptFile as error:
                raise InputError(f"{place}: {error}; accepted: remove it") from None

    def of(self, name: str, make: Callable[[], Sequence[float]]) -> np.ndarray:
        """The numbers of this name."""
        if name not in self.kept:
            self.kept[name] = [float(x) for x in make()]
            self.place.parent.mkdir(parents=True, exist_ok=True)
            write_json(self.place, self.kept)
        return np.array(self.kept[name])


def mend(
    model: Any,
    text: Any = None,
    *,
    to: Any,
    keys: Any = None,
    length: Any = None,
    settings: Settings = USUAL,
    measure: bool = False,
    folder: str | os.PathLike[str] = "out/mend",
    progress: Progress = silent,
) -> Mending:
    """Changes at inference for rows of `to` tokens, each with its forecast and its cost.

    Args:
        model: a folder of a finished run, or of the library transformers.
        text: a file or a folder; None takes the text of the run, or the standard library's code.
        to: tokens of the row.
        length: of the rows that are read, as of `foresee`.
        settings: how much is read, and how.
        keys: that a query may see at most; None for no limit.
        measure: whether the best three are measured on real rows, beside no change.
        folder: where numbers are written down; a search that was stopped goes on from there.
        progress: called as `progress(stage, done, total)`.

    Raises:
        InputError: as `foresee`; no candidate keeps so few keys.
    """
    subject = subject_of(model, text, length, settings)
    far = reach_of(subject, to)
    most = far if keys is None else natural(keys, "keys")
    asked = [Repair(), *(r for r in candidates(subject.length) if kept_keys(r, far) <= most)]
    refuse(
        len(asked) == 1,
        f"no change keeps at most {most} keys; the least keeps {subject.length // 2}",
    )
    book = Book(Path(folder) / _file_name(subject, far))
    rows: list[tuple[Repair, Mended]] = []
    for done, repair in enumerate(asked, 1):
        rows.append((repair, _forecast(subject, repair, far, book)))
        progress("repairs", done, len(asked))
    rows.sort(key=lambda row: row[1].log_ratio)
    if measure:
        rows = _with_real_rows(subject, rows, far, book, progress)
    within = [row for row in rows if kept_keys(row[0], far) <= most]
    tried = [row for row in within if row[1].measured is not None] or within
    repair, best = min(tried, key=lambda row: (row[1].measured or (row[1].log_ratio,))[0])
    return Mending(
        status=Status.ENCLOSED,
        label=Label.MEASURED if measure else Label.FORECAST,
        subject=subject.name,
        to=far,
        length=subject.length,
        log_ratio=best.log_ratio if best.measured is None else best.measured[0],
        rows=tuple(row for _, row in rows),
        best=best.repair,
        encoding=tuple(_formula(repair, at, e) for at, e in enumerate(subject.encodings, 1)),
        window=repair.window,
        source=subject.source,
    )


def _formula(repair: Repair, layer: int, trained: Encoding | None) -> str | None:
    """The bias of a layer under a change, as `encoding` reads it."""
    if trained is None and repair.graft is None:
        return None
    changed = encoding("0") if trained is None else trained
    if not repair.layers or layer in repair.layers:
        changed = repair.encoding(changed)
    each = [str(bias) for bias in changed.biases]
    return each[0] if len(each) == 1 else f"[{'; '.join(each)}]"


def kept_keys(repair: Repair, to: int) -> int:
    """Keys that a query at the end of a row sees."""
    return to if repair.window is None else min(to, repair.window + repair.sinks)


def _forecast(subject: ModelOnText, repair: Repair, to: int, book: Book) -> Mended:
    changed, one = Repaired(subject.network, repair), subject.settings.check

    def loss() -> Sequence[float]:
        found = subject.ratios([to], one, changed)
        return [*found[to], *found[subject.length]]

    far, short = np.split(book.of(repair.name, loss), 2)
    near = []
    for distance in recall.distances(subject.length, to):

        def probability(distance: int = distance) -> Sequence[float]:
            return [recall.foreseen(changed, subject.groups, to, distance, one).probability]

        found = book.of(f"{repair.name}, needle {distance}", probability)
        near.append(recall.FarRecall(distance, float(found[0])))
    keys = kept_keys(repair, to)
    return Mended(repair.name, float(far.mean()), float(short.mean()), keys, tuple(near))


def _with_real_rows(
    subject: ModelOnText,
    rows: list[tuple[Repair, Mended]],
    to: int,
    book: Book,
    progress: Progress,
) -> list[tuple[Repair, Mended]]:
    """The best few and no change, measured on real rows."""
    long = torch.from_numpy(samples(subject.text, REAL, to))
    last, network = subject.settings.last, subject.network

    def real(change: Repair, tokens: torch.Tensor) -> list[float]:
        tokens = tokens.clone()
        if subject.bos is not None:
            tokens[:, 0] = subject.bos
        changed = Repaired(network, change)
        return [float(losses(changed, row[None], last).mean()) for row in tokens]

    base = book.of("real rows, short", lambda: real(Repair(), long[:, -subject.length - 1 :]))
    chosen = [row for row in rows[:BEST] if row[1].repair != "none"]
    chosen += [row for row in rows if row[1].repair == "none"]
    measured: dict[str, Ratio] = {}
    for done, (repair, row) in enumerate(chosen, 1):

        def ask(change: Repair = repair) -> list[float]:
            return real(change, long)

        each = book.of(f"real rows, {row.repair}", ask) - base
        measured[row.repair] = ratio_of(to, each, each)
        progress("real rows", done, len(chosen))
    results = []
    for repair, row in rows:
        ratio = measured.get(row.repair)
        if ratio is not None:
            half = (ratio.interval[1] - ratio.interval[0]) / 2
            values = {**vars(row), "measured": (ratio.main, half)}
            row = Mended(**values)
        results.append((repair, row))
    return results


def _file_name(subject: ModelOnText, to: int) -> str:
    """A name that changes with the model, the rows and the settings."""
    stamp = hashlib.sha256(json.dumps([to, str(subject.settings), subject.bos]).encode())
    stamp.update(subject.groups.numpy().tobytes())
    stamp.update(subject.stamp.encode())
    safe = "".join(c if c.isalnum() else "-" for c in subject.name).strip("-")
    return f"{safe}-{stamp.hexdigest()[:16]}.json"
