"""A study: what the theory predicts of encodings, and what trained models measure, together.

`study` asks about one idea for a bias and places it among the catalogue; `survey` does the same
for any list of encodings. Without training neither needs torch.
"""

from __future__ import annotations

import dataclasses
import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from farfield.theory.answers.answer import InputError, Label, Result, Status, plain
from farfield.theory.answers.blocks import Block, Curve, Line, Sentence, note, sentence, table
from farfield.theory.answers.notation import words
from farfield.theory.answers.number import listed, plural
from farfield.theory.convergence import Verdict
from farfield.theory.encodings import CATALOGUE, Encoding, encoding
from farfield.theory.encodings.head_lists import is_table
from farfield.validation.harness.configuration import Configuration, variants
from farfield.validation.harness.corpus import corpus as read_text
from farfield.validation.harness.plan import parse_plan
from farfield.validation.harness.presets import Preset
from farfield.validation.harness.presets import preset as named_preset
from farfield.validation.harness.store import Store
from farfield.validation.json_files import writable_folder, write
from farfield.validation.labels import label_of
from farfield.validation.optional import require_torch
from farfield.validation.progress import Progress, about, silent
from farfield.validation.study.place import Place, place
from farfield.validation.study.prediction import Prediction, predict

BASELINES = tuple(entry.name for entry in CATALOGUE.values() if entry.baseline)


@dataclass(frozen=True)
class Studied:
    """One encoding of a study: its prediction, and its run where it was trained."""

    prediction: Prediction
    run: Mapping[str, Any] | None = None

    def measurement(self, bca: bool = False) -> Mapping[str, Any] | None:
        """The measurements with causal attention, or with blockwise causal attention."""
        for m in (self.run or {}).get("measurements", ()):
            if (m["inference"]["bca"] is not None) is bca:
                return dict(m)
        return None

    def blocks(self) -> Iterator[Block]:
        """What the trained model lost, in a sentence; nothing where none was trained."""
        if (m := self.measurement()) is not None:
            length, ratio, low, high = last_token_ratio(m)
            yield sentence(
                "{name}, trained: perplexity at {length} tokens is {ratio} times that at the "
                "training length ({low} to {high}).",
                Label.MEASURED,
                name=self.prediction.name,
                length=length,
                ratio=f"{ratio:.3f}",
                low=f"{low:.3f}",
                high=f"{high:.3f}",
            )


def last_token_ratio(measurement: Mapping[str, Any]) -> tuple[int, float, float, float]:
    """(length, ratio, low, high) of the last-token perplexity at the longest length."""
    rows = [p for p in measurement["perplexity"] if p["protocol"] == "last token"]
    row = max(rows, key=lambda p: p["length"])
    return row["length"], row["ratio"], row["ratio_low"], row["ratio_high"]


def _line(e: Studied, bca: bool, measurement: Mapping[str, Any], place: int) -> Line:
    """The ratio of last-token perplexity by length, in the colour of the verdict."""
    rows = [p for p in measurement["perplexity"] if p["protocol"] == "last token"]
    x, y = zip(*sorted((float(p["length"]), p["ratio"]) for p in rows), strict=True)
    verdict = Verdict.CONVERGES if bca else e.prediction.convergence.verdict
    return Line(e.prediction.name + " + BCA" * bca, x, y, str(verdict), place)


def _row(name: str, measurement: Mapping[str, Any]) -> tuple[str, ...]:
    """Ratio with its interval, and the receptive fields of attention, bias and gradient."""
    _, ratio, low, high = last_token_ratio(measurement)
    field = measurement["attention"][0]
    fields = f"{field['tokens']:.1f}", f"{field['trf']:.1f}", str(measurement["gradient"]["tokens"])
    return name, f"{ratio:.3f}", f"{low:.3f} to {high:.3f}", *fields


@dataclass(frozen=True, repr=False)
class Study(Result):
    """Predictions and measurements of several encodings; see `study`.

    Fields:
        entries: one an encoding.
        preset: architecture and schedule of the models; its length is the training length.
        corpus: the text they were trained on, None without training.
        title: of the page.
        asked: names of the entries the question was about; the others are baselines.
        place: these among the catalogue.
    """

    entries: tuple[Studied, ...]
    preset: Preset
    corpus: Mapping[str, Any] | None = None
    title: str = "Study"
    asked: tuple[str, ...] = ()
    place: Place | None = None

    @property
    def lengths(self) -> tuple[int, ...]:
        """Training length and tested lengths, in tokens."""
        return (self.preset.length, 4 * self.preset.length, 16 * self.preset.length)

    @property
    def trained(self) -> tuple[Studied, ...]:
        """The entries with a run."""
        return tuple(e for e in self.entries if e.run is not None)

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
        said = words("{what}; ", what=plural(len(self.entries), "encoding"))
        parts = [(v, names[v]) for v in Verdict if v in names]
        for k, (verdict, found) in enumerate(parts):
            said += words(
                "{verdict}: {names}{end}",
                verdict=verdict,
                names=listed(found),
                end="." if k == len(parts) - 1 else "; ",
            )
        if self.trained:
            said += words(
                " A model of {layers}, {width} wide, was trained with each of {trained} of them on "
                "rows of {length} tokens and measured on up to {longest}.",
                layers=plural(self.preset.layers, "layer"),
                width=self.preset.width,
                trained=len(self.trained),
                length=self.preset.length,
                longest=self.lengths[-1],
            )
        return Sentence(said)

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
        first = self.bounds() if self._broken() else []
        return [*first, *(asked or [self.lead()]), *others, *placed, *self.measured()]

    def measured(self) -> list[Block]:
        """What trained models lost, on which text, and whether a bound is broken; nothing without
        any."""
        found = [
            (e, bca, m)
            for e in self.entries
            for bca in (False, True)
            if (m := e.measurement(bca)) is not None
        ]
        if not found:
            return []
        said = [block for e in self.trained for block in e.blocks()]
        lines = [_line(e, bca, m, k) for k, (e, bca, m) in enumerate(found)]
        drawn = Curve(
            "Last-token perplexity relative to the training length. Flat is extrapolation; one "
            "seed. Green: the series converges; orange: it diverges.",
            "context length (tokens)",
            f"perplexity / perplexity at {self.preset.length}",
            tuple(lines),
            True,
            True,
            posts=(("trained on", float(self.preset.length)),),
        )
        header = ("encoding", "ratio", "95 %", "attention ERF", "TRF of the rows", "gradient ERF")
        rows = [_row(line.name, m) for line, (_, _, m) in zip(lines, found, strict=True)]
        p, corpus = self.preset, self.corpus or {}
        return [
            *said,
            drawn,
            table(header, rows, "Measured", numeric=tuple(range(1, len(header)))),
            note(
                "Preset {name}: {layers}, width {width}, {heads}, {steps} steps of {batch} rows of "
                "{length} tokens, seed {seed}, on bytes of {text}.",
                name=p.name,
                layers=plural(p.layers, "layer"),
                width=p.width,
                heads=plural(p.heads, "head"),
                steps=p.steps,
                batch=p.batch,
                length=p.length,
                seed=(self.trained[0].run or {})["seed"],
                text=corpus.get("source", "a text"),
            ),
            *self.bounds(),
        ]

    def bounds(self) -> list[Block]:
        """Whether the bounds of the attention ERF hold on the trained models; nothing without."""
        found = [m["bounds"] for e in self.entries if (m := e.measurement()) is not None]
        violations = sum(b["violations"] for b in found)
        if not found:
            return []
        return [
            sentence(
                "The bounds of the attention ERF by the TRF (two-sided, and Jensen's), which hold "
                "for every model, were checked {checks} times on sampled rows: {said}.",
                Label.MEASURED,
                checks=f"{sum(b['checks'] for b in found):,}",
                said=f"{violations} are VIOLATED" if violations else "none is violated",
            )
        ]

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
        """Unknown where a verdict is not known, or a measured row breaks a bound; else exact."""
        open_ = any(e.prediction.convergence.status is Status.UNKNOWN for e in self.entries)
        return Status.UNKNOWN if open_ or self._broken() else Status.EXACT

    def _broken(self) -> bool:
        measured = filter(None, (e.measurement() for e in self.entries))
        return any(m["bounds"]["violations"] for m in measured)


def require_same(
    folder: str | os.PathLike[str], subjects: Sequence[Encoding], *, train: bool
) -> None:
    """See that a folder holds no study yet, or one of the same question with no more in it.

    Raises:
        InputError: writing there would lose the study of another question, or measurements.
    """
    place = Path(folder) / "study.json"
    if not place.exists():
        return
    other = "accepted are another folder (--out), or --replace"
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
        asked = [
            e["prediction"]["encoding"]
            for e in found["entries"]
            if e["prediction"]["name"] in found["asked"]
        ]
        trained = any(e["run"] is not None for e in found["entries"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{str(place)!r} is no study of this version; {other}") from None
    if [e["biases"] for e in asked] != [plain(s.biases) for s in subjects]:
        names = listed([e["name"] for e in asked], 3)
        raise InputError(f"{str(place)!r} is a study of {names}; {other}")
    if trained and not train:
        raise InputError(f"{str(place)!r} has measurements, which --train would keep; {other}")


def demo_encodings() -> tuple[tuple[str, Encoding], ...]:
    """The encodings of the demonstration (`demo.toml`), by name."""
    text = files("farfield.validation.study").joinpath("demo.toml").read_text(encoding="utf-8")
    (sweep,) = parse_plan(tomllib.loads(text)).sweeps
    return tuple((subject.label, encoding(**subject.options)) for subject in sweep.encodings)


def catalogue(length: int = 64) -> tuple[tuple[str, Encoding], ...]:
    """Every encoding of the catalogue, with the options a model of this training length needs.

    >>> dict(catalogue())["window 16"].head(1)
    Piecewise((0, n < 16), (-oo, True))
    """
    every = ({"name": e.name, **e.trained(length)} for e in CATALOGUE.values())
    return tuple((label_of(options), encoding(**options)) for options in every)


def study(
    f: Any,
    *,
    train: bool = False,
    preset: str = "demo",
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
        preset: architecture and schedule; its length is the training length of the leak.
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
    asked = named_encodings(f)
    if not asked:
        raise InputError("a study needs at least one formula or encoding")
    extra = named_encodings(baselines) if train else ()
    known = {name for name, _ in asked}
    subjects = (*asked, *(pair for pair in extra if pair[0] not in known))
    result = survey(
        subjects,
        train=[name for name, _ in subjects] if train else (),
        preset_name=preset,
        text=text,
        store=store,
        seed=seed,
        title=f"Study of {', '.join(n for n, _ in asked)}",
        notice=notice,
    )
    names = tuple(name for name, _ in asked)
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


def survey(
    subjects: Sequence[tuple[str, Encoding]],
    *,
    train: Sequence[str] = (),
    preset_name: str = "demo",
    text: str | os.PathLike[str] | None = None,
    store: str | os.PathLike[str] = "runs",
    seed: int = 0,
    title: str = "Study",
    notice: Progress | None = None,
) -> Study:
    """Predict every encoding, and train a small model for those named.

    Args:
        subjects: pairs of a name and an encoding.
        train: names of those to train; RoPE is measured with blockwise causal attention too.
        preset_name: architecture and schedule (`demo`, `tiny`, ...).
        text: a file or folder to train on; the standard library's sources if None.
        store: folder of the runs; a finished run is never repeated.
        seed: of the weights and the order of the text.
        title: of the page.
        notice: called as `notice(stage, done, total)`.

    Raises:
        InputError: an encoding that cannot be trained, a text that is too short, a folder that
            cannot be written to, torch missing.
    """
    chosen = named_preset(preset_name)
    unknown = sorted(set(train) - {name for name, _ in subjects})
    if unknown:
        raise InputError(f"{unknown[0]!r} is not among the encodings of the study")
    lengths = (4 * chosen.length, 16 * chosen.length)
    corpus, configurations = None, {}
    if train:  # everything that can be wrong is found before the first step
        corpus = read_text(text)
        for name, subject in subjects:
            if name in train:
                configurations[name] = Configuration(
                    subject, corpus, chosen, seed, inference=variants(subject, chosen.length)
                )
        require_torch()
        writable_folder(store)
    entries = []
    for name, subject in subjects:
        progress = about(name, notice)
        progress("theory", 0, 1)
        prediction = predict(
            subject, name, trained=chosen.length, tested=lengths, layers=chosen.layers
        )
        run = None
        if name in configurations:
            from farfield.validation.harness.experiment import train_and_measure  # needs torch

            run = train_and_measure(configurations[name], Store(store), progress)
        entries.append(Studied(prediction, run))
        progress("done", 1, 1)
    described = corpus.describe() if corpus else None
    return Study(tuple(entries), chosen, described, title)
