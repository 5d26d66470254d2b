"""Results of runs, as the measured exhibits read them: the committed ones, or those of a folder.

A result is what `train_and_measure` returns, in JSON form. Committed results are those of
`farfield.validation.reference`; a folder of runs is read as the store keeps them. Results of
another schema are refused, never guessed at. A run goes by the label that the plan of the
reference runs gives its encoding. Behind it stands how it was run at inference, if not causally:
`rope + BCA` with blockwise causal attention, `xpos + window 64` with a sliding window.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import CATALOGUE
from farfield.validation.harness.configuration import SCHEMA, describe
from farfield.validation.harness.plan import PlannedEncoding
from farfield.validation.harness.store import stored
from farfield.validation.json_files import CorruptFile
from farfield.validation.labels import options_of
from farfield.validation.reference.registration import FIRST

Run = Mapping[str, Any]
MODE = " + "
BCA = f"{MODE}BCA"
PRESET = "small"
"""Of the reference runs."""


def reference() -> tuple[Run, ...]:
    """The committed results; none where there are none.

    Raises:
        InputError: results of another schema, or a file that is no JSON text.
    """
    with as_file(files("farfield.validation").joinpath("reference")) as folder:
        return _committed(folder)


@cache
def _committed(folder: Path) -> tuple[Run, ...]:
    paths = sorted(folder.rglob("*.json"), key=lambda p: (len(p.parts), p.name))
    each = (run for p in paths for run in _runs(p.read_text(encoding="utf-8"), p.name))
    return tuple(run for run in each if _on_text(run))


def _runs(text: str, name: str) -> list[Run]:
    """The runs in a file: one run, a list of them, or an object that holds them as `runs`."""
    try:
        content = json.loads(text)
    except ValueError:
        raise InputError(f"results {name!r} are no JSON text; make them again") from None
    if isinstance(content, dict) and "runs" in content:
        content = content["runs"]
    runs = content if isinstance(content, list) else [content]
    runs = [r for r in runs if isinstance(r, dict) and "measurements" in r]
    for run in runs:
        _current(run.get("schema"), name)
    return runs


def _current(schema: Any, name: str) -> None:
    if schema != SCHEMA:
        raise InputError(
            f"results {name!r} have schema {schema!r}; this version reads {SCHEMA}; make them "
            "again with `farfield train`"
        )


def of_store(folder: str | os.PathLike[str]) -> tuple[Run, ...]:
    """The finished runs of a folder, without the corrupted ones.

    Raises:
        InputError: no such folder; results of another schema.
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError(f"runs folder {str(folder)!r} does not exist; `farfield train` makes one")
    found = []
    for record in sorted(root.glob("*/training.json")):
        try:
            run = _stored(record.parent)
        except CorruptFile:
            continue
        if run["measurements"] and _on_text(run):
            found.append(run)
    return tuple(found)


def _on_text(run: Run) -> bool:
    """Whether a run is measured by perplexity: those on tasks belong to no figure of a paper."""
    return all("perplexity" in m for m in run["measurements"])


def _stored(folder: Path) -> Run:
    run = stored(folder)
    _current(run["schema"], f"{folder.name}/training.json")
    for m in run["measurements"]:
        _current(m["settings"]["schema"], f"{folder.name}/measurement")
    return run


# -- what a run is called -------------------------------------------------------------------------


def subject(label: str) -> PlannedEncoding:
    """The encoding that a label names: one of the plan, or another member of the same family.

    >>> dict(subject("alibi shift -3").options)
    {'name': 'alibi', 'dialect': 'shift', 'delta': -3}
    """
    label = label.partition(MODE)[0]
    planned = (s for sweep in FIRST.plan.sweeps for s in sweep.encodings if s.label == label)
    return next(planned, None) or PlannedEncoding(label, options_of(label))


def bears(run: Run, label: str) -> bool:
    """Whether a run is of the encoding that a label names: by its own label, or by its formulas."""
    own, entry = run["encoding"], CATALOGUE.get(run["encoding"]["name"])
    if "label" in own:
        return bool(own["label"] == label)
    if entry is not None and entry.tables is not None:  # of any number of buckets
        return entry.name == label
    return (own["mechanism"], own["sha256"]) == _formulas(label, run["preset"]["heads"])


@cache
def _formulas(label: str, heads: int) -> tuple[str, str]:
    """Mechanism and formulas of the encoding that a label names, as a result has them."""
    described = describe(subject(label).encoding(heads))
    return described["mechanism"], described["sha256"]


def command(label: str, *, length: int | None = None, options: str = "") -> str:
    """The command that trains and measures an encoding as the reference runs do.

    >>> command("alibi shift 2")
    'farfield train alibi --dialect shift --set delta=2 --preset small --runs runs'
    """
    given = dict(subject(label).options)
    parts = ["farfield train", given.pop("name")]
    if "dialect" in given:
        parts.append(f"--dialect {given.pop('dialect')}")
    parts += [f"--set {k}={v}" for k, v in given.items()]
    parts.append(f"--preset {PRESET}")
    parts += [f"--length {length}"] if length is not None else []
    return " ".join([*parts, *([options] if options else []), "--runs runs"])


# -- runs of one encoding -------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """The runs of one encoding in one setting, one a seed, and how they were run at inference.

    Fields:
        label: of the encoding, with the inference behind it where it was not causal.
        runs: in the order of their seeds.
        measurements: one of each run.
    """

    label: str
    runs: tuple[Run, ...]
    measurements: tuple[Mapping[str, Any], ...]

    @property
    def length(self) -> int:
        """The training length in tokens."""
        return int(self.runs[0]["preset"]["length"])

    @property
    def seeds(self) -> tuple[int, ...]:
        """Of the runs."""
        return tuple(run["seed"] for run in self.runs)

    def perplexity(self, protocol: str) -> dict[int, dict[int, float]]:
        """Perplexity by tested length and seed.

        The length far beyond was scored on other targets than the training length. It is given as
        its ratio, paired on its own targets, times the perplexity at the training length.
        """

        def read(m: Mapping[str, Any]) -> dict[int, float]:
            rows = [p for p in m["perplexity"] if p["protocol"] == protocol]
            base: dict[str, Any] = next((p for p in rows if p["length"] == self.length), {})
            return {
                p["length"]: p["perplexity"]
                if not base or p.get("targets") == base.get("targets")
                else p["ratio"] * base["perplexity"]
                for p in rows
            }

        return self.by_seed(read)

    def by_seed(
        self, read: Callable[[Mapping[str, Any]], Mapping[Any, float]]
    ) -> dict[Any, dict[int, float]]:
        """What is read of each measurement, by its key and seed, in the order of the keys."""
        each = dict(zip(self.seeds, map(read, self.measurements), strict=True))
        keys = sorted({x for by in each.values() for x in by})
        return {x: {seed: by[x] for seed, by in each.items() if x in by} for x in keys}


def setting(run: Run) -> tuple[Any, ...]:
    """What runs must share to stand together: architecture, schedule, length, text, vocabulary."""
    preset = {k: v for k, v in run["preset"].items() if k != "name"}
    return (*sorted(preset.items()), run["text"]["sha256"], run["text"].get("vocabulary", 0))


def beyond(m: Mapping[str, Any], trained: int) -> bool:
    """Whether a measurement goes beyond the training length."""
    return any(p["length"] > trained for p in m["perplexity"])


def settings(
    runs: Iterable[Run], wanted: Sequence[str], fits: Callable[[Any, int], bool] = beyond
) -> list[list[Sample]]:
    """The wanted samples of each setting, that with the most of them first, then the shorter
    training length.

    Args:
        runs: what there is.
        wanted: labels.
        fits: which measurements count, by themselves and their training length; the first does.
    """
    groups: dict[Any, list[Run]] = {}
    for run in runs:
        groups.setdefault(setting(run), []).append(run)
    found = [_samples(group, wanted, fits) for group in groups.values()]
    return sorted((f for f in found if f), key=lambda f: (-len(f), f[0].length))


def _samples(
    runs: Sequence[Run], wanted: Sequence[str], fits: Callable[[Any, int], bool]
) -> list[Sample]:
    grouped: dict[str, dict[int, tuple[Run, Mapping[str, Any]]]] = {}
    for asked in wanted:
        base, _, mode = asked.partition(MODE)
        for run in sorted(runs, key=lambda r: r["seed"]):
            for m in run["measurements"] if bears(run, base) else ():
                if _mode(m["inference"]) == mode and fits(m, run["preset"]["length"]):
                    grouped.setdefault(asked, {}).setdefault(run["seed"], (run, m))
    return [
        Sample(name, *(tuple(column) for column in zip(*by_seed.values(), strict=True)))
        for name, by_seed in grouped.items()
    ]


def _mode(inference: Mapping[str, Any]) -> str:
    parts = ["BCA"] if inference["bca"] is not None else []
    parts += [f"window {inference['window']}"] if inference["window"] is not None else []
    return " ".join(parts)


def conditions(samples: Sequence[Sample]) -> str:
    """What a caption must say of measurements: model, data, seeds."""
    run = samples[0].runs[0]
    preset, text = run["preset"], run["text"]
    lengths = sorted({s.length for s in samples})
    by_seeds: dict[tuple[int, ...], list[str]] = {}
    for s in samples:
        name = s.label if len(lengths) == 1 else f"{s.label} ({s.length})"
        by_seeds.setdefault(s.seeds, []).append(name)
    if len(by_seeds) == 1:
        (seeds,) = by_seeds
        many = _seeds(seeds) if len(seeds) > 1 else f"one seed ({seeds[0]}), so no spread"
    else:
        many = "; ".join(f"{_seeds(k)}: {', '.join(v)}" for k, v in by_seeds.items())
    return (
        f"Measured: preset {preset['name']}, {preset['layers']} layers, {preset['width']} wide, "
        f"{preset['heads']} heads, {preset['steps']} steps of {preset['batch'] * preset['length']} "
        f"tokens in rows of {' or '.join(map(str, lengths))}, on {text['source']} (SHA-256 "
        f"{text['sha256'][:12]}); {many}."
    )


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"
