"""Results of runs, as the measured exhibits read them: the committed ones, or those of a folder.

A result is what `train_and_measure` returns, in JSON form. Committed results are those of
`farfield.validation.reference`; a folder of runs is read as the store keeps them. Results of
another schema are refused, never guessed at. A run goes by the label that the plan of the
reference runs gives its encoding. Behind it stands how it was run at inference, if not causally:
`rope + BCA` with blockwise causal attention, `xpos + window 64` with a sliding window. A sample is
the runs of one such label in one setting, one a seed, each with its measurement.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import CATALOGUE
from farfield.validation.harness.configuration import SCHEMA, describe
from farfield.validation.harness.plan import PlannedEncoding
from farfield.validation.harness.store import Store, stored
from farfield.validation.json_files import CorruptFile
from farfield.validation.labels import options_of
from farfield.validation.reference.committed import HERE
from farfield.validation.reference.registration import FIRST

Run = Mapping[str, Any]
Sample = Sequence[tuple[Run, Mapping[str, Any]]]
"""Runs in the order of their seeds, with their measurements."""
MODE = " + "
BCA = f"{MODE}BCA"
PRESET = "small"
"""Of the reference runs."""


@cache
def reference(folder: Path = HERE) -> tuple[Run, ...]:
    """The committed results of a folder and those below it; none where there are none.

    Raises:
        InputError: results of another schema.
    """
    paths = sorted(folder.rglob("*.json"), key=lambda p: (len(p.parts), p.name))
    each = ((p.name, json.loads(p.read_text(encoding="utf-8"))) for p in paths)
    return tuple(_read((name, run) for name, run in each if "measurements" in run))


def of_store(folder: str | os.PathLike[str]) -> tuple[Run, ...]:
    """The finished runs of a folder, without the corrupted ones.

    Raises:
        InputError: no such folder; results of another schema.
    """
    found = []
    for place in sorted(Store(folder).folders()):
        with suppress(CorruptFile):
            found.append((place.name, stored(place)))
    return tuple(run for run in _read(found) if run["measurements"])


def _read(found: Iterable[tuple[str, Run]]) -> Iterator[Run]:
    """The runs that are measured by perplexity: those on tasks belong to no figure of a paper."""
    for name, run in found:
        own = (m["settings"]["schema"] for m in run["measurements"] if "settings" in m)
        for schema in (run["schema"], *own):
            if schema != SCHEMA:
                raise InputError(
                    f"results {name!r} have schema {schema!r}; this version reads {SCHEMA}; make "
                    "them again with `farfield train`"
                )
        if all("perplexity" in m for m in run["measurements"]):
            yield run


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


def first(found: Mapping[str, Sample]) -> tuple[Run, Mapping[str, Any]]:
    """A run of some samples and its measurement, which tell what all of them share."""
    return next(iter(found.values()))[0]


def length_of(sample: Sample) -> int:
    """The training length in tokens."""
    return int(sample[0][0]["preset"]["length"])


def by_seed(
    sample: Sample, read: Callable[[Mapping[str, Any]], Mapping[Any, Any]]
) -> dict[Any, dict[int, Any]]:
    """What is read of each measurement, by its key and seed, in the order of the keys."""
    each = {run["seed"]: read(m) for run, m in sample}
    keys = sorted({x for by in each.values() for x in by})
    return {x: {seed: by[x] for seed, by in each.items() if x in by} for x in keys}


def perplexities(sample: Sample, protocol: str) -> dict[int, dict[int, float]]:
    """Perplexity by tested length and seed.

    The length far beyond was scored on other targets than the training length. It is given as
    its ratio, paired on its own targets, times the perplexity at the training length.
    """
    length = length_of(sample)

    def read(m: Mapping[str, Any]) -> dict[int, float]:
        rows = [p for p in m["perplexity"] if p["protocol"] == protocol]
        base: dict[str, Any] = next((p for p in rows if p["length"] == length), {})
        return {
            p["length"]: p["perplexity"]
            if not base or p.get("targets") == base.get("targets")
            else p["ratio"] * base["perplexity"]
            for p in rows
        }

    return by_seed(sample, read)


def setting(run: Run) -> tuple[Any, ...]:
    """What runs must share to stand together: architecture, schedule, length, text, vocabulary."""
    preset = {k: v for k, v in run["preset"].items() if k != "name"}
    return (*sorted(preset.items()), run["text"]["sha256"], run["text"].get("vocabulary", 0))


def beyond(m: Mapping[str, Any], length: int) -> bool:
    """Whether a measurement goes beyond the training length."""
    return any(p["length"] > length for p in m["perplexity"])


def settings(
    runs: Iterable[Run], wanted: Sequence[str], fits: Callable[[Any, int], bool] = beyond
) -> list[dict[str, Sample]]:
    """The wanted samples of each setting by label, that with the most of them first, then the
    shorter training length.

    Args:
        runs: what there is.
        wanted: labels.
        fits: which measurements count, by themselves and their training length; the first does.
    """
    groups: dict[Any, list[Run]] = {}
    for run in runs:
        groups.setdefault(setting(run), []).append(run)
    found = [
        {label: own for label in wanted if (own := _sample(group, label, fits))}
        for group in groups.values()
    ]
    return sorted(filter(None, found), key=lambda f: (-len(f), first(f)[0]["preset"]["length"]))


def _sample(runs: Sequence[Run], label: str, fits: Callable[[Any, int], bool]) -> Sample:
    base, _, mode = label.partition(MODE)
    found: dict[int, tuple[Run, Mapping[str, Any]]] = {}
    for run in sorted(runs, key=lambda r: int(r["seed"])):
        for m in run["measurements"] if bears(run, base) else ():
            if _mode(m["inference"]) == mode and fits(m, run["preset"]["length"]):
                found.setdefault(run["seed"], (run, m))
    return tuple(found.values())


def _mode(inference: Mapping[str, Any]) -> str:
    parts = {"BCA": inference["bca"], f"window {inference['window']}": inference["window"]}
    return " ".join(name for name, value in parts.items() if value is not None)


def conditions(found: Sequence[tuple[str, Sample]]) -> str:
    """What a caption must say of measurements, by label: model, data, seeds."""
    run, _ = found[0][1][0]
    preset, text = run["preset"], run["text"]
    lengths = sorted({length_of(own) for _, own in found})
    by_seeds: dict[tuple[int, ...], list[str]] = {}
    for label, own in found:
        name = label if len(lengths) == 1 else f"{label} ({length_of(own)})"
        by_seeds.setdefault(tuple(run["seed"] for run, _ in own), []).append(name)
    told = {f"seed{'s' * (len(k) > 1)} {', '.join(map(str, k))}": v for k, v in by_seeds.items()}
    many = "; ".join(f"{seeds}: {', '.join(v)}" for seeds, v in told.items())
    if len(by_seeds) == 1:
        ((seeds,), (said,)) = by_seeds, told
        many = said if len(seeds) > 1 else f"one seed ({seeds[0]}), so no spread"
    return (
        f"Measured: preset {preset['name']}, {preset['layers']} layers, {preset['width']} wide, "
        f"{preset['heads']} heads, {preset['steps']} steps of {preset['batch'] * preset['length']} "
        f"tokens in rows of {' or '.join(map(str, lengths))}, on {text['source']} (SHA-256 "
        f"{text['sha256'][:12]}); {many}."
    )
