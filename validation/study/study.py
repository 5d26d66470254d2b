"""A study: what the theory predicts of encodings, and what trained models measure, together.

`study` asks about one idea for a bias and places it among the catalogue; `survey` does the same
for any list of encodings. Without training neither needs torch.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farfield.theory.answers.answer import InputError, Label, Result, Status
from farfield.theory.answers.blocks import (
    Block,
    Curve,
    Line,
    Note,
    Sentence,
    Table,
    note,
    sentence,
    table,
    written,
)
from farfield.theory.answers.names import one_of
from farfield.theory.answers.notation import StyledWord, listed, words
from farfield.theory.answers.number import plural
from farfield.theory.answers.writers.svg import COLOURS
from farfield.theory.convergence import Verdict
from farfield.theory.encodings import CATALOGUE, Encoding, encoding
from farfield.theory.encodings.head_lists import is_table
from farfield.validation.harness.mechanism import with_encoding
from farfield.validation.harness.settings import Run, settle
from farfield.validation.json_files import writable_folder, write
from farfield.validation.optional import require_torch
from farfield.validation.progress import Progress, about, silent
from farfield.validation.results import LAST
from farfield.validation.study.place import Place, place
from farfield.validation.study.prediction import Prediction, predict
from farfield.validation.uniform_guess import BYTES, uniform_guess

SIZES = ("layers", "width", "heads", "steps", "batch", "length")
"""Settings that a study names beside what was measured."""

BASELINES = tuple(entry.name for entry in CATALOGUE.values() if entry.baseline)


@dataclass(frozen=True)
class Studied:
    """One encoding of a study: its prediction, and the measurements of its trained model, as lines
    of the table of results."""

    prediction: Prediction
    lines: tuple[Mapping[str, Any], ...] = ()

    def with_lines(self, lines: Sequence[Mapping[str, Any]]) -> Studied:
        """The same with its measurements, which join the prediction."""
        measured = dataclasses.replace(self, lines=tuple(lines))
        if not lines:
            return measured
        joined = dataclasses.replace(self.prediction.beside, lost=measured.lost())
        return Studied(dataclasses.replace(self.prediction, beside=joined), measured.lines)

    def measured(self, protocol: str, bca: bool = False) -> list[Mapping[str, Any]]:
        """The lines of a protocol, with causal or with blockwise causal attention."""
        mask = "BCA" if bca else ""
        return [x for x in self.lines if (x["protocol"], x["mask"]) == (protocol, mask)]

    def lost(self, bca: bool = False) -> tuple[int, float, float, float, float]:
        """Length, ratio, its interval, and nats, of the last token at the longest length."""
        far = max(self.measured(LAST, bca), key=lambda line: int(line["length"]))
        return far["length"], far["ratio"], far["low"], far["high"], far["nats"]

    def field(self, protocol: str, bca: bool = False) -> Mapping[str, Any]:
        """The line of a protocol with the tokens that hold 99 %."""
        found = (x for x in self.measured(protocol, bca) if x.get("eps"))
        return next(x for x in found if math.isclose(x["eps"], 0.01))

    def curve(self, bca: bool, place: int) -> Line:
        """The ratio of last-token perplexity by length with its intervals, in a colour of its own;
        the verdict is the mark of its points."""
        lines = sorted(self.measured(LAST, bca), key=lambda line: int(line["length"]))
        verdict = Verdict.CONVERGES if bca else self.prediction.convergence.verdict
        return Line(
            self.prediction.name + " + BCA" * bca,
            tuple(float(line["length"]) for line in lines),
            tuple(line["ratio"] for line in lines),
            place,
            place // len(COLOURS),
            verdict=str(verdict),
            bars=tuple((line["low"], line["high"]) for line in lines),
        )

    def row(self, bca: bool) -> tuple[str, ...]:
        """Name, ratio with its interval, and the tokens that hold 99 % of attention, bias and
        gradient."""
        _, ratio, low, high, nats = self.lost(bca)
        field, gradient = (self.field(kind, bca) for kind in ("attention", "gradient"))
        fields = f"{field['erf']:.1f}", f"{field['trf']:.1f}", f"{gradient['erf']:g}"
        name = self.prediction.name + " + BCA" * bca
        return name, f"{ratio:.3f}", f"{low:.3f} to {high:.3f}", f"{nats:.3f}", *fields

    def blocks(self) -> Iterator[Block]:
        """What the trained model lost, in a sentence."""
        length, ratio, low, high, nats = self.lost()
        yield sentence(
            "{name}, trained: perplexity at {length} tokens is {ratio} times that at the "
            "training length ({low} to {high}), a loss of {nats} nats a token.",
            Label.MEASURED,
            name=self.prediction.name,
            length=length,
            ratio=f"{ratio:.3f}",
            low=f"{low:.3f}",
            high=f"{high:.3f}",
            nats=f"{nats:.2f}",
        )


@dataclass(frozen=True, repr=False)
class Study(Result):
    """Predictions and measurements of several encodings; see `study`.

    Fields:
        entries: one an encoding.
        settings: of the models, as a run has them, but for the encoding.
        asked: names of the entries the question was about; the others are baselines.
        place: these among the catalogue.
    """

    entries: tuple[Studied, ...]
    settings: Mapping[str, Any]
    asked: tuple[str, ...] = ()
    place: Place | None = None

    @property
    def lengths(self) -> tuple[int, ...]:
        """Training length and tested lengths, in tokens."""
        length = self.settings["length"]
        return (length, *tested_lengths(length, self.settings["measure"]["lengths"]))

    @property
    def trained(self) -> tuple[Studied, ...]:
        """The entries whose model was trained."""
        return tuple(e for e in self.entries if e.lines)

    def about(self, *, asked: bool) -> tuple[Studied, ...]:
        """The entries that the question was about, or the others."""
        return tuple(e for e in self.entries if (e.prediction.name in self.asked) is asked)

    def lead(self) -> Sentence:
        """The subjects of the study, in a sentence."""
        names: dict[Verdict, list[str]] = {}
        for e in self.entries:
            p = e.prediction
            title = p.encoding.title if p.name == p.encoding.name else ""
            names.setdefault(p.convergence.verdict, []).append(title or p.name)
        text = words("{what}; ", what=plural(len(self.entries), "encoding"))
        parts = [(v, names[v]) for v in Verdict if v in names]
        for k, (verdict, found) in enumerate(parts):
            text += words(
                "{verdict}: {names}{end}",
                verdict=verdict,
                names=listed(found),
                end="." if k == len(parts) - 1 else "; ",
            )
        if self.trained:
            text += words(
                " A model of {layers}, {width} wide, was trained with each of {trained} of them on "
                "rows of {length} tokens and measured on up to {longest}.",
                layers=plural(self.settings["layers"], "layer"),
                width=self.settings["width"],
                trained=len(self.trained),
                length=self.settings["length"],
                longest=self.lengths[-1],
            )
        return Sentence(text)

    def blocks(self) -> Sequence[Block]:
        asked = [b for e in self.about(asked=True) for b in e.prediction.blocks()]
        others = [
            sentence(
                "{name}: {verdict}.",
                e.prediction.convergence.label,
                name=e.prediction.name,
                verdict=e.prediction.convergence.verdict,
            )
            for e in self.about(asked=False)
        ]
        placed = self.place.blocks() if self.place else ()
        return [*(asked or [self.lead()]), *others, *placed, *self.measured()]

    def text(self, *, details: bool = False, unicode: bool = True, **terminal: Any) -> str:
        """The answer in short for a terminal; with `details`, all blocks."""
        blocks = self.blocks() if details else self.brief()
        return written(blocks, details=details, unicode=unicode, **terminal)

    def brief(self) -> list[Block]:
        """What trained models lost, the theorem, how far the bias sees, its place; a screenful."""
        predictions = [e.prediction for e in self.about(asked=True)]
        measured = [b for b in self.measured() if isinstance(b, (Table, Note))]
        sentences = [sentence for p in predictions for sentence in p.sentences()] or [self.lead()]
        if len(predictions) > 1:
            sentences = [self.lead()]
        placed = [self.place.said()] if self.place else []
        return [*measured, *sentences, *placed, *self.numbers()]

    def numbers(self) -> list[Block]:
        """A line of numbers an encoding; nothing where none has any."""
        header = ("encoding", "series", "TRF, 99 %", f"leak to {self.lengths[-1]}", "window, 1/10")
        rows = [e.prediction.numbers() for e in self.entries if e.prediction.row_fields]
        return [table(header, rows, numeric=(2, 3, 4))] * bool(rows)

    def measured(self) -> list[Block]:
        """What trained models lost, and what they and their text are; nothing without any."""
        found = [
            (e, bca) for e in self.entries for bca in (False, True) if e.measured("gradient", bca)
        ]
        if not found:
            return []
        first = found[0][0].lines[0]
        length = self.settings["length"]
        lines = tuple(e.curve(bca, k) for k, (e, bca) in enumerate(found))
        drawn = Curve(
            "Perplexity of the last token over that at the training length. Flat is extrapolation. "
            "Bars: 95 % over targets, one seed. Filled points: the series converges; open: it "
            "diverges; crosses: no such verdict.",
            f"context length (tokens), trained on {length}",
            f"perplexity / perplexity at {length}",
            lines,
            True,
            True,
            at=tuple(sorted({n for line in lines for n in line.x})),
        )
        fields = ("attention ERF, 99 %", "TRF of the rows, 99 %", "gradient ERF, 99 %")
        far = f"nats at {self.lengths[-1]}"
        header = ("encoding", "ratio", "95 %, targets", far, *fields)
        rows = [e.row(bca) for e, bca in found]
        return [
            *(b for e in self.trained if e.prediction.name not in self.asked for b in e.blocks()),
            drawn,
            table(header, rows, "Measured", numeric=tuple(range(1, len(header)))),
            *self._untrained(),
            note(
                "A field is a mean over heads and queries, each of whole tokens, so it may have a "
                "fraction."
            ),
            note(
                "Preset {preset}: {layers} layers, width {width}, {heads} heads, {steps} steps of "
                "{batch} rows of {length} tokens, seed {seed}, on {text} (SHA-256 {sha}).",
                sha=first["text_sha256"],
                **{k: first[k] for k in ("preset", "seed", "text")},
                **{k: self.settings[k] for k in SIZES},
            ),
        ]

    def _untrained(self) -> Iterator[Block]:
        """A warning, where a model predicts bytes hardly better than chance."""
        losses = [x["nats"] for e in self.trained for x in e.measured(LAST)[:1]]
        if losses and (guess := uniform_guess(max(losses), BYTES)):
            yield note(
                "Of the one that learned least: {guess}. What these models show says little of "
                "trained ones; {more} trains longer.",
                guess=guess,
                more=StyledWord("--preset demo", "code"),
            )

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write `study.json` into a folder, which is made if need be.

        Raises:
            InputError: the folder cannot be written to.
        """
        place = writable_folder(folder) / "study.json"
        write(place, self.to_json(1).encode())
        return place

    @property
    def status(self) -> Status:
        """Unknown where a verdict is not known; else exact."""
        open_ = any(e.prediction.convergence.status is Status.UNKNOWN for e in self.entries)
        return Status.UNKNOWN if open_ else Status.EXACT


def study(
    f: Any,
    *,
    train: bool = False,
    preset: str = "demo",
    trained: int | None = None,
    tested: Sequence[int] = (),
    baselines: Sequence[Any] = BASELINES,
    text: str | os.PathLike[str] | None = None,
    store: str | os.PathLike[str] = "runs",
    seed: int = 0,
    notice: Progress | None = None,
) -> Study:
    """Answer every question about an idea for a bias: theory and, if asked, a measurement.

    Verdict with proof, receptive fields and their asymptotics, leak, dtype horizons, attention
    resolution, and the place among the catalogue. With `train`, small models are
    trained with it and with each baseline, on the same text and seed. Their measurements are
    compared with the predictions.

    Args:
        f: a formula in `n`, a name of the catalogue, an `Encoding`, or a sequence of them.
        train: whether to train models (needs torch; minutes).
        preset: architecture and schedule.
        trained: training length in tokens; the preset's if None.
        tested: context lengths in tokens; 4 and 16 times the training length if none.
        baselines: what to train beside it, as `f`.
        text: a file or folder to train on; the standard library's sources if None.
        store: folder of the runs; a finished run is never repeated.
        seed: of the weights and the order of the text.
        notice: called as `notice(stage, done, total)`.

    Raises:
        InputError: no encoding, or one that cannot be read or trained; torch missing.

    >>> s = study("-2*log(1+n)")
    >>> print(s.entries[0].prediction.receptive_fields[1].tokens, s.asked)
    61 ('-2*log(1+n)',)
    """
    ideas = named_encodings(f)
    if not ideas:
        raise InputError("a study needs at least one formula or encoding")
    extra = named_encodings(baselines) if train else ()
    known = {name for name, _ in ideas}
    subjects = (*ideas, *(pair for pair in extra if pair[0] not in known))
    result = survey(
        subjects,
        train=[name for name, _ in subjects] if train else (),
        preset_name=preset,
        length=trained,
        tested=tested,
        text=text,
        store=store,
        seed=seed,
        notice=notice,
    )
    names = tuple(name for name, _ in ideas)
    (notice or silent)("place among the catalogue", 0, 1)
    found = place([e.prediction for e in result.entries if e.prediction.name in names])
    return dataclasses.replace(result, asked=names, place=found)


def named_encodings(f: Any) -> tuple[tuple[str, Encoding], ...]:
    """Pairs of a name and an encoding, of one or several; numbered where names repeat.

    >>> [name for name, _ in named_encodings(["alibi", "-n", "alibi"])]
    ['alibi', '-n', 'alibi (2)']
    """
    many = isinstance(f, (list, tuple)) and not is_table(f)
    pairs: dict[str, Encoding] = {}
    for subject in map(encoding, f if many else (f,)):
        base = subject.name + (f" {subject.dialect}" if _unusual(subject) else "")
        name, count = base, 1
        while name in pairs:
            count += 1
            name = f"{base} ({count})"
        pairs[name] = subject
    return tuple(pairs.items())


def _unusual(subject: Encoding) -> bool:
    if subject.dialect is None:
        return False
    return subject.dialect != encoding(subject.name).dialect


def tested_lengths(trained: int, measured: Sequence[int]) -> tuple[int, ...]:
    """Context lengths beyond the training length, the farthest last; 4 and 16 times it if none.

    >>> tested_lengths(64, ()), tested_lengths(64, (64, 512))
    ((256, 1024), (512,))
    """
    return tuple(n for n in measured if n > trained) or (4 * trained, 16 * trained)


def survey(
    subjects: Sequence[tuple[str, Encoding]],
    *,
    train: Sequence[str] = (),
    preset_name: str = "demo",
    length: int | None = None,
    tested: Sequence[int] = (),
    text: str | os.PathLike[str] | None = None,
    store: str | os.PathLike[str] = "runs",
    seed: int = 0,
    notice: Progress | None = None,
) -> Study:
    """Predict every encoding, and train a small model for those named.

    Args:
        subjects: pairs of a name and an encoding.
        train: names of those to train; rotations are measured with blockwise causal attention too.
        preset_name: architecture and schedule (`demo`, `tiny`, ...).
        length: training length in tokens; the preset's if None.
        tested: context lengths in tokens; the preset's if none.
        text: a file or folder to train on; the standard library's sources if None.
        store: folder of the runs; a finished run is never repeated.
        seed: of the weights and the order of the text.
        notice: called as `notice(stage, done, total)`.

    Raises:
        InputError: a name to train that no subject has, an encoding that cannot be trained, a text
            that is too short, a folder that cannot be written to, torch missing.
    """
    subject_names = [name for name, _ in subjects]
    for name in train:
        one_of(name, "train", subject_names)
    said: dict[str, Any] = {
        "encoding": "nope",
        "seed": seed,
        **({} if text is None else {"text": str(text)}),
        **({} if length is None else {"length": length}),
        **({"measure": {"lengths": list(tested)}} if tested else {}),
    }
    usual = settle(preset_name, said)
    if tested and max(tested) <= usual.length:
        raise InputError(
            f"tested = {max(tested)} must be above the training length, {usual.length} tokens"
        )
    lengths = tested_lengths(usual.length, usual.measure.lengths)
    runs, entries = dict[str, Run](), []
    if train:  # everything that can be wrong is found before the first step
        require_torch()
        from farfield.validation.harness.runs import job_of, run  # needs torch

        runs = {
            name: with_encoding(usual, name, subject) for name, subject in subjects if name in train
        }
        for asked in runs.values():
            job_of(asked)
        writable_folder(store)
    for name, subject in subjects:
        progress = about(name, notice)
        progress("theory", 0, 1)
        prediction = predict(
            subject, name, trained=usual.length, tested=lengths, layers=usual.layers
        )
        lines = run(runs[name], store, progress=progress) if name in runs else []
        entries.append(Studied(prediction).with_lines(lines))
        progress("done", 1, 1)
    named = {"encoding", "label", "family", "task"}
    return Study(tuple(entries), usual.model_dump(exclude=named))
