"""Results of runs, as the measured exhibits read them: the committed ones, or those of a folder.

A result is what `train_and_measure` returns, in JSON form. Committed results are the files of
`farfield.validation/reference`; a folder of runs is read as the store keeps them. Results of
another schema are refused, never guessed at.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from farfield.theory.encodings import Encoding
from farfield.theory.results import InputError
from farfield.validation.configuration import SCHEMA, describe
from farfield.validation.runs import CorruptRun, stored

Run = Mapping[str, Any]


def reference() -> tuple[Run, ...]:
    """The committed results; none where there are none."""
    folder = files("farfield.validation").joinpath("reference")
    if not folder.is_dir():
        return ()
    found: list[Run] = []
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        if file.name.endswith(".json"):
            found += _runs(json.loads(file.read_text(encoding="utf-8")), file.name)
    return tuple(found)


def _runs(content: Any, name: str) -> list[Run]:
    """The runs in a file: one run, a list of them, or an object that holds them as `runs`."""
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
        except CorruptRun:
            continue
        if run["measurements"]:
            found.append(run)
    return tuple(found)


def _stored(folder: Path) -> Run:
    run = stored(folder)
    _current(run["schema"], f"{folder.name}/training.json")
    for m in run["measurements"]:
        _current(m["settings"]["schema"], f"{folder.name}/measurement")
    return run


def causal(run: Run) -> Mapping[str, Any]:
    """The measurement with causal attention; the first one where there is none."""
    for m in run["measurements"]:
        if m["inference"]["bca"] is None and m["inference"]["window"] is None:
            return dict(m)
    return dict(run["measurements"][0])


def matches(run: Run, wanted: Encoding | str) -> bool:
    """Whether a run is of this encoding, by its formula; or of any variant of this name."""
    if isinstance(wanted, str):
        return bool(run["encoding"]["name"] == wanted)
    own = describe(wanted)
    if own["mechanism"] != run["encoding"]["mechanism"]:
        return False
    return bool(own["sha256"] == run["encoding"]["sha256"])


def setting(run: Run) -> tuple[Any, ...]:
    """What two runs must share to stand in one figure: architecture, schedule, length, text."""
    preset = {k: v for k, v in run["preset"].items() if k != "name"}
    return (*sorted(preset.items()), run["text"]["sha256"])


def together(runs: Iterable[Run], wanted: Iterable[Encoding | str]) -> list[Run]:
    """The wanted runs of the one setting that has the most of them."""
    asked = list(wanted)
    groups: dict[Any, list[Run]] = {}
    for run in runs:
        if any(matches(run, w) for w in asked):
            groups.setdefault(setting(run), []).append(run)
    if not groups:
        return []
    return max(groups.values(), key=lambda g: (sum(any(matches(r, w) for r in g) for w in asked),
                                               len(g)))  # fmt: skip


def conditions(runs: Iterable[Run]) -> str:
    """What a caption must say of measurements: model, data, seeds."""
    found = list(runs)
    preset, text = found[0]["preset"], found[0]["text"]
    seeds = sorted({r["seed"] for r in found})
    many = f"seeds {', '.join(map(str, seeds))}" if len(seeds) > 1 else "one seed, so no spread"
    return (
        f"Measured: {preset['layers']} layers, {preset['width']} wide, {preset['heads']} heads, "
        f"{preset['steps']} steps of {preset['batch']} rows of {preset['length']} tokens on "
        f"{text['source']}; {many}."
    )
