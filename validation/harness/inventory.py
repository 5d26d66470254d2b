"""What a store of runs holds: a line for each run, runs side by side, and what may be removed.

Reading needs no torch, and no run is opened for more than its JSON. A listing opens only the runs
that changed since the last one: `<store>/.runs.json` keeps the lines of the others, each with the
names, sizes and times of its files, which must still be the same.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farfield.theory.answers.answer import InputError, Label, Result
from farfield.theory.answers.blocks import Block, facts, note, sentence, table
from farfield.theory.answers.notation import shortened
from farfield.theory.answers.wording import listed, plural
from farfield.validation.files import CorruptFile, read_json, recorded, unrecorded, write_json
from farfield.validation.harness.store import Store

_INDEX = ".runs.json"
_LINE = (
    "state",
    "encoding",
    "formula",
    "preset",
    "length",
    "seed",
    "steps",
    "loss",
    "ratios",
    "note",
)
LAST = "last token"
"""The protocol that listings show."""

_RECENT = 2.0  # seconds in which a file can change twice and bear the same time
STATES = ("finished", "unfinished", "corrupted", "set aside")
HEADER = (
    "run",
    "state",
    "encoding",
    "first head",
    "preset",
    "length",
    "seed",
    "steps",
    "loss",
    "perplexity",
    "note",
)
_NUMERIC = (5, 6, 7, 8)


def longest(ratios: Iterable[tuple[str, int, float]]) -> str:
    """Ratios as a cell: of each way of inference that at the longest length.

    >>> longest([("causal", 64, 1.0), ("causal", 256, 1.25), ("window 8", 64, 1.5)])
    'causal: x1.250 at 256; window 8: x1.500 at 64'
    """
    last = {view: (ratio, length) for view, length, ratio in sorted(ratios, key=lambda r: r[1])}
    return "; ".join(f"{view}: x{ratio:.3f} at {n}" for view, (ratio, n) in last.items())


@dataclass(frozen=True, repr=False)
class Run(Result):
    """One run of a store.

    Fields:
        key: the name of its folder.
        state: one of `STATES`; an unfinished run is resumed from its checkpoint.
        encoding, preset, length, seed: the model, on rows of `length` tokens; None where
            nothing readable says so.
        formula: the bias of the first head, which tells variants of one encoding apart.
        steps: done, and in the checkpoint where the run is unfinished.
        loss: the last mean training loss, in nats a token.
        ratios: measured perplexity ratios to the training length by inference, protocol, length.
        modified: seconds since the epoch.
        size: bytes on disk.
        note: the defect, in words.
    """

    key: str
    state: str
    encoding: str | None = None
    formula: str | None = None
    preset: str | None = None
    length: int | None = None
    seed: int | None = None
    steps: int = 0
    loss: float | None = None
    ratios: tuple[tuple[str, str, int, float], ...] = ()
    modified: float = 0.0
    size: int = 0
    note: str = ""

    def row(self) -> tuple[Any, ...]:
        """The cells of a listing."""
        ratios = [(view, length, ratio) for view, by, length, ratio in self.ratios if by == LAST]
        loss = None if self.loss is None else f"{self.loss:.3f}"
        formula = None if self.formula is None else shortened(self.formula, 24)
        return (
            self.key,
            self.state,
            self.encoding,
            formula,
            self.preset,
            self.length,
            self.seed,
            self.steps,
            loss,
            longest(ratios),
            self.note,
        )

    def blocks(self) -> Sequence[Block]:
        trained = f" of {self.encoding}" if self.encoding else ""
        first = sentence(
            "Run {key}{trained} is {state}{note}.",
            key=self.key,
            trained=trained,
            state=self.state,
            note=f": {self.note}" * bool(self.note),
        )
        return first, table(HEADER, [self.row()], numeric=_NUMERIC)


@dataclass(frozen=True, repr=False)
class Inventory(Result):
    """The runs of a store, newest last, or what there are none of."""

    runs: tuple[Run, ...]
    none: str = "no runs"

    def blocks(self) -> Sequence[Block]:
        if not self.runs:
            return (sentence("{none}", none=self.none),)
        states = [r.state for r in self.runs]
        counts = [f"{states.count(state)} {state}" for state in STATES if state in states]
        rows = [run.row() for run in self.runs]
        used = [k for k in range(len(HEADER)) if any(row[k] not in (None, "") for row in rows)]
        return (
            sentence(
                "{runs}: {counts}.",
                Label.MEASURED,
                runs=plural(len(states), "run"),
                counts=listed(counts),
            ),
            table(
                [HEADER[k] for k in used],
                [[row[k] for k in used] for row in rows],
                numeric=tuple(at for at, k in enumerate(used) if k in _NUMERIC),
            ),
        )


@dataclass(frozen=True, repr=False)
class RunComparison(Result):
    """Runs side by side: the settings in which they differ, and their measurements.

    Fields:
        keys: of the runs.
        differences: pairs (setting, values), one value a run, None where it has none.
        ratios: pairs (inference, protocol, length) and the perplexity ratios, one a run.
    """

    keys: tuple[str, ...]
    differences: tuple[tuple[str, tuple[Any, ...]], ...]
    ratios: tuple[tuple[tuple[str, str, int], tuple[float | None, ...]], ...]

    def blocks(self) -> Sequence[Block]:
        settings = [name for name, _ in self.differences]
        rows: list[tuple[str | None, ...]]
        rows = [(name, *map(_short, values)) for name, values in self.differences]
        for (view, protocol, length), values in self.ratios:
            shown = (None if v is None else f"{v:.4f}" for v in values)
            rows.append((f"ratio, {protocol} {length}, {view}", *shown))
        return (
            sentence(
                "{runs} that differ in {settings}.",
                Label.MEASURED,
                runs=plural(len(self.keys), "run"),
                settings=listed(settings) or "nothing",
            ),
            table(("", *self.keys), rows),
        )


@dataclass(frozen=True, repr=False)
class Trained(Result):
    """A run as `train_and_measure` gave it back, for a reader.

    Fields:
        run: the result in JSON form.
    """

    run: dict[str, Any]

    def blocks(self) -> Sequence[Block]:
        return tuple(self._blocks())

    def _blocks(self) -> Iterator[Block]:
        run = unrecorded(self.run)
        training, text = run["training"], run["text"]
        yield sentence(
            "{name}, seed {seed}, preset {preset}: trained in {steps} steps to a loss of {loss} "
            "nats a token.",
            Label.MEASURED,
            name=run["encoding"]["name"],
            seed=run["seed"],
            preset=run["preset"]["name"],
            steps=training["steps"],
            loss=f"{training['losses'][-1][1]:.3f}",
        )
        learned = {
            f"learned {name}": listed([f"{v:.3g}" for v in values])
            for name, values in training["learned"].items()
        }
        source = f"{text['source']}, SHA-256 {text['sha256'][:16]}"
        yield facts(
            run=run["key"],
            text=source,
            tokens=f"{training['tokens']:,}",
            seconds=f"{training['seconds']:.0f}",
            **learned,
        )
        for m in run["measurements"]:
            yield from _measured(m)
        for said in run["notes"]:
            yield note("{said}", said=said)


def _measured(m: dict[str, Any]) -> Iterator[Block]:
    """Tables of one measurement: perplexities, then receptive fields; or what a task found."""
    if "recall" in m:
        found = m["recall"]
        header = ("row", "distance", "right", "attention on the answer", "rows")
        each = [
            (
                p["length"],
                p["distance"],
                f"{p['accuracy']:.2f}",
                f"{p['attention']:.3f}, standard error {p['error']:.3f}",
                p["rows"],
            )
            for p in found["points"]
        ]
        yield table(header, each, f"inference: {m['inference']['label']}", numeric=(0, 1, 2, 4))
        yield note(
            "The attention is that of layer {layer}, head {head}, which has the most of all.",
            layer=found["layer"],
            head=found["head"],
        )
        return
    rows = [
        (
            p["protocol"],
            p["length"],
            f"{p['perplexity']:.3f}",
            f"{p['ratio']:.4f} ({p['ratio_low']:.4f} to {p['ratio_high']:.4f})",
            p["targets"],
        )
        for p in m["perplexity"]
    ]
    header = ("protocol", "tokens", "perplexity", "ratio to the training length, 95 %", "targets")
    yield table(header, rows, f"inference: {m['inference']['label']}", numeric=(1, 2, 4))
    fields = [
        (
            f"attention ERF({a['eps']:g})",
            f"{a['tokens']:.1f}, spread {a['spread']:.1f}",
            f"TRF of the same rows {a['trf']:.1f}",
            f"{a['segments']} x {a['rows']} rows a head",
        )
        for a in m["attention"]
    ]
    g, b = m["gradient"], m["bounds"]
    fields.append(
        (
            f"gradient ERF({g['share']:g})",
            f"{g['tokens']} ({g['tokens_low']:.0f} to {g['tokens_high']:.0f})",
            f"mass in the training length {g['mass']:.3f}",
            f"{g['segments']} segments, 95 %",
        )
    )
    yield table(("receptive field", "tokens", "beside it", "measured on"), fields)
    yield note(
        "Bounds of the attention ERF by the theorem: {violations} violated of {checks}.",
        violations=b["violations"],
        checks=f"{b['checks']:,}",
    )


def inventory(store: Store) -> Inventory:
    """Every run of a store as it is now, also while others write.

    Raises:
        InputError: there is no such store.

    >>> import tempfile
    >>> print(inventory(Store(tempfile.mkdtemp())))
    no runs
    """
    index = _read_index(store)
    kept: dict[str, tuple[str, dict[str, Any]]] = {}
    found, now = [], time.time()
    for folder in _folders(store):
        try:
            modified, size, seen = _files(folder)
            line = index.get(folder.name)
            if line is None or line[0] != seen:
                run = _run(folder)
                line = seen, {name: getattr(run, name) for name in _LINE}
        except FileNotFoundError:  # removed or set aside meanwhile
            continue
        if now - modified > _RECENT:
            kept[folder.name] = line
        fields = {**line[1], "ratios": tuple(map(tuple, line[1]["ratios"]))}
        found.append(Run(key=folder.name, modified=modified, size=size, **fields))
    if kept != index:
        _write_index(store, kept)
    return Inventory(tuple(sorted(found, key=lambda run: (run.modified, run.key))))


def compare(store: Store, keys: Sequence[str]) -> RunComparison:
    """Finished runs side by side.

    Args:
        store: the store.
        keys: two or more, each as many first digits of a key as make it unique.

    Raises:
        InputError: a key names no finished run, or several.
    """
    folders = [finished_run(store, key) for key in keys]
    settings, ratios = [], []
    for folder in folders:
        try:
            record = read_json(folder / "training.json")
            ratios.append({r[:3]: r[3] for r in _ratios(folder)})
        except CorruptFile as error:
            raise InputError(f"run {folder.name} cannot be compared: {error}") from None
        settings.append(dict(_flat({**record["configuration"], **_labels(record)})))
    names = dict.fromkeys(name for each in settings for name in each)
    rows = ((name, tuple(each.get(name) for each in settings)) for name in names)
    return RunComparison(
        tuple(folder.name for folder in folders),
        tuple((name, values) for name, values in rows if len(set(map(str, values))) > 1),
        tuple(
            (place, tuple(each.get(place) for each in ratios))
            for place in dict.fromkeys(place for each in ratios for place in each)
        ),
    )


def prunable(store: Store, older_than_days: float = 0.0) -> tuple[Run, ...]:
    """The runs that are unfinished, corrupted or set aside, and not changed for some days."""
    latest = time.time() - 86_400 * older_than_days
    runs = inventory(store).runs
    return tuple(run for run in runs if run.state != "finished" and run.modified <= latest)


def prune(store: Store, runs: Sequence[Run]) -> tuple[Run, ...]:
    """Remove runs; those that another process holds, or has finished meanwhile, stay.

    Returns:
        The runs that were removed.
    """
    from filelock import FileLock, Timeout

    removed = []
    for run in runs:
        key = run.key.partition(".")[0]
        with contextlib.suppress(Timeout), FileLock(store.root / f"{key}.lock", timeout=0):
            if _run(store.folder(run.key)).state == run.state:
                shutil.rmtree(store.folder(run.key))
                removed.append(run)
    return tuple(removed)


def _files(folder: Path) -> tuple[float, int, str]:
    """When a folder was last changed, its size, and a hash of the names, sizes and times."""
    with os.scandir(folder) as entries:
        files = sorted((e.name, e.stat()) for e in entries if e.is_file())
    times = [(name, found.st_size, found.st_mtime_ns) for name, found in files]
    seen = hashlib.blake2b(repr(times).encode(), digest_size=8).hexdigest()
    modified = max((found.st_mtime for _, found in files), default=None)
    size = sum(found.st_size for _, found in files)
    return folder.stat().st_mtime if modified is None else modified, size, seen


def _read_index(store: Store) -> dict[str, tuple[str, dict[str, Any]]]:
    """The lines of the last listing; none where there was none, or not by this version."""
    with contextlib.suppress(CorruptFile):
        found = read_json(store.root / _INDEX)
        if found.get("fields") == list(_LINE):
            return {name: tuple(line) for name, line in unrecorded(found["runs"]).items()}
    return {}


def _write_index(store: Store, lines: dict[str, tuple[str, dict[str, Any]]]) -> None:
    with contextlib.suppress(InputError):  # a store that is read-only is listed all the same
        write_json(store.root / _INDEX, {"fields": list(_LINE), "runs": recorded(lines)})


def _folders(store: Store) -> list[Path]:
    try:
        with os.scandir(store.root) as found:
            return [Path(e.path) for e in found if not e.name.startswith(".") and e.is_dir()]
    except OSError as error:
        raise InputError(
            f"runs folder {str(store.root)!r} cannot be read: {error.strerror}; accepted: a folder "
            "that training has written"
        ) from None


def finished_run(store: Store, key: str) -> Path:
    """The folder of the one finished run whose key begins with these digits.

    Raises:
        InputError: there is none, or several.
    """
    found = [p for p in _folders(store) if p.name.startswith(key) and "." not in p.name]
    finished = [p for p in found if (p / "training.json").exists()]
    if len(finished) == 1:
        return finished[0]
    wrong = "names several finished runs" if finished else "names no finished run"
    raise InputError(f"run {key!r} {wrong} in {str(store.root)!r}; accepted: the digits of a key")


def _run(folder: Path) -> Run:
    modified, size, _ = _files(folder)
    run = Run(folder.name, "unfinished", modified=modified, size=size)
    if ".corrupt-" in folder.name:
        return dataclasses.replace(run, state="set aside")
    try:
        if (folder / "training.json").exists():
            record = read_json(folder / "training.json")
            losses = record["losses"]
            return dataclasses.replace(
                _asked(run, record),
                state="finished",
                steps=record["steps"],
                loss=losses[-1][1] if losses else None,
                ratios=tuple(_ratios(folder)),
            )
        if (folder / "asked.json").exists():
            run = _asked(run, read_json(folder / "asked.json"))
        if (folder / "checkpoint.json").exists():
            checkpoint = read_json(folder / "checkpoint.json")
            losses = checkpoint["record"]["losses"]
            return dataclasses.replace(
                run, steps=checkpoint["step"], loss=losses[-1][1] if losses else None
            )
    except CorruptFile as error:
        return dataclasses.replace(run, state="corrupted", note=str(error))
    except (KeyError, TypeError, IndexError):
        note = "written by another version"
        return dataclasses.replace(run, state="corrupted", note=note)
    return run


def _asked(run: Run, record: dict[str, Any]) -> Run:
    """A run with what its record says was asked for."""
    labels, described = _labels(record), record["configuration"]
    heads = described["encoding"]["heads"]
    return dataclasses.replace(
        run,
        encoding=labels["encoding"],
        preset=labels["preset"],
        seed=described["seed"],
        length=described["preset"]["length"],
        formula=heads[0].replace("**", "^") if heads else None,
    )


def _labels(record: dict[str, Any]) -> dict[str, str]:
    """The names of encoding and preset, or what a run without names says of itself."""
    labels = record.get("labels")
    if labels is not None:
        dialect = labels["dialect"]
        encoding = labels["encoding"] + (f" ({dialect})" if dialect else "")
        return {"encoding": encoding, "preset": labels["preset"]}
    described, preset = record["configuration"]["encoding"], record["configuration"]["preset"]
    shown = described["heads"][0] if described["heads"] else described["mechanism"]
    return {"encoding": shown[:20], "preset": f"{preset['layers']}x{preset['width']}"}


def _ratios(folder: Path) -> Iterator[tuple[str, str, int, float]]:
    for path in sorted(folder.glob("measurement-*.json")):
        measurement = read_json(path)
        for p in measurement.get("perplexity", ()):
            yield measurement["inference"]["label"], p["protocol"], p["length"], float(p["ratio"])


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(inner, f"{prefix}.{name}" if prefix else name)
    elif isinstance(value, list):
        yield prefix, json.dumps(value)
    else:
        yield prefix, value


def _short(value: Any) -> str:
    return "" if value is None else shortened(str(value), 40)
