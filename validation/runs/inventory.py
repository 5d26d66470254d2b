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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farfield.theory.results import InputError, Result
from farfield.validation.files import CorruptFile, read_json, write
from farfield.validation.runs.store import Store

_INDEX = ".runs.json"
_LINE = ("state", "encoding", "preset", "seed", "steps", "loss", "ratios", "note")
_RECENT = 2.0  # seconds in which a file can change twice and bear the same time
STATES = ("finished", "unfinished", "corrupted", "set aside")


@dataclass(frozen=True)
class Run(Result):
    """One run of a store.

    Fields:
        key: the name of its folder.
        state: one of `STATES`; an unfinished run is resumed from its checkpoint.
        encoding, preset, seed: what was trained; None where nothing readable says so.
        steps: done, and in the checkpoint where the run is unfinished.
        loss: the last mean training loss, in nats a token.
        ratios: measured perplexity ratios to the training length by inference, protocol, length.
        modified: seconds since the epoch.
        size: bytes on disk.
        note: what is wrong, in words.
    """

    key: str
    state: str
    encoding: str | None = None
    preset: str | None = None
    seed: int | None = None
    steps: int = 0
    loss: float | None = None
    ratios: tuple[tuple[str, str, int, float], ...] = ()
    modified: float = 0.0
    size: int = 0
    note: str = ""

    def text(self) -> str:
        seed = "" if self.seed is None else f"seed {self.seed}"
        line = (
            f"{self.key:<26} {self.state:<10} {self.encoding or '':<20} {self.preset or '':<14} "
            f"{seed:<8} {self.steps:>6} steps"
        )
        if self.loss is not None:
            line += f"  loss {self.loss:.3f} nats"
        kept = [r for r in self.ratios if r[1] == "last token"]
        for view in dict.fromkeys(r[0] for r in kept):
            _, _, length, ratio = max((r for r in kept if r[0] == view), key=lambda r: r[2])
            line += f"  {view}: perplexity x{ratio:.3f} at {length} [measured]"
        return (line + (f"  {self.note}" if self.note else "")).rstrip()


@dataclass(frozen=True)
class Inventory(Result):
    """The runs of a store, newest last, or what there are none of."""

    runs: tuple[Run, ...]
    none: str = "no runs"

    def text(self) -> str:
        return "\n".join(map(str, self.runs)) or self.none


@dataclass(frozen=True)
class Comparison(Result):
    """Runs side by side: the settings in which they differ, and their measurements.

    Fields:
        keys: of the runs.
        differences: pairs (setting, values), one value a run, None where it has none.
        ratios: pairs (inference, protocol, length) and the perplexity ratios, one a run.
    """

    keys: tuple[str, ...]
    differences: tuple[tuple[str, tuple[Any, ...]], ...]
    ratios: tuple[tuple[tuple[str, str, int], tuple[float | None, ...]], ...]

    def text(self) -> str:
        rows: list[list[str]] = [["", *self.keys]]
        rows += [[name, *map(_short, values)] for name, values in self.differences]
        for (view, protocol, length), values in self.ratios:
            shown = ("" if v is None else f"{v:.4f}" for v in values)
            rows.append([f"ratio, {protocol} {length}, {view} [measured]", *shown])
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        padded = ("  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) for r in rows)
        return "\n".join(line.rstrip() for line in padded)


@dataclass(frozen=True)
class Trained(Result):
    """A run as `train_and_measure` gave it back, for a reader.

    Fields:
        run: the result in JSON form.
    """

    run: dict[str, Any]

    def text(self) -> str:
        run = _floats(self.run)
        training, text = run["training"], run["text"]
        lines = [
            f"{run['encoding']['name']}, seed {run['seed']}, preset {run['preset']['name']}: run "
            f"{run['key']}",
            f"  text: {text['source']}, SHA-256 {text['sha256'][:16]}",
            f"  training: {training['steps']} steps, {training['tokens']:,} tokens, loss "
            f"{training['losses'][-1][1]:.3f} nats a token, {training['seconds']:.0f} s [measured]",
        ]
        for name, values in training["learned"].items():
            lines.append(f"  learned {name}: {', '.join(f'{v:.3g}' for v in values)} [measured]")
        for m in run["measurements"]:
            lines.append(f"  inference: {m['inference']['label']}")
            lines += [
                f"    perplexity, {p['protocol']}, {p['length']} tokens: {p['perplexity']:.3f}, "
                f"x{p['ratio']:.4f} ({p['ratio_low']:.4f} to {p['ratio_high']:.4f}) of that at "
                f"{p['base']} [measured, {p['targets']} targets, 95 %]"
                for p in m["perplexity"]
            ]
            lines += [
                f"    attention ERF({a['eps']:g}): {a['tokens']:.1f} tokens, spread "
                f"{a['spread']:.1f}; TRF of the same rows: {a['trf']:.1f} [measured, "
                f"{a['segments']} x {a['rows']} rows a head]"
                for a in m["attention"]
            ]
            g = m["gradient"]
            lines.append(
                f"    gradient ERF({g['share']:g}): {g['tokens']} tokens ({g['tokens_low']:.0f} to "
                f"{g['tokens_high']:.0f}), mass in the training length {g['mass']:.3f} [measured, "
                f"{g['segments']} segments, 95 %]"
            )
            b = m["bounds"]
            lines.append(
                f"    bounds of the attention ERF: {b['violations']} violated of {b['checks']:,} "
                "[theorem, checked on data]"
            )
        return "\n".join([*lines, *(f"  note: {note}" for note in run["notes"])])


def inventory(store: Store) -> Inventory:
    """Every run of a store, as it is now, whoever writes to it.

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


def compare(store: Store, keys: Sequence[str]) -> Comparison:
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
    return Comparison(
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
    try:
        head, _, content = (store.root / _INDEX).read_bytes().partition(b"\n")
        if head.decode() == _index_head(content):
            return {name: (line[0], line[1]) for name, line in json.loads(content).items()}
    except (OSError, UnicodeDecodeError):
        pass
    return {}


def _write_index(store: Store, lines: dict[str, tuple[str, dict[str, Any]]]) -> None:
    content = json.dumps(lines, separators=(",", ":")).encode()
    with contextlib.suppress(InputError):  # a store that is read-only is listed all the same
        write(store.root / _INDEX, f"{_index_head(content)}\n".encode() + content)


def _index_head(content: bytes) -> str:
    return f"{' '.join(_LINE)} {hashlib.sha256(content).hexdigest()}"


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
            labels, losses = _labels(record), record["losses"]
            return dataclasses.replace(
                run,
                state="finished",
                encoding=labels["encoding"],
                preset=labels["preset"],
                seed=record["configuration"]["seed"],
                steps=record["steps"],
                loss=losses[-1][1] if losses else None,
                ratios=tuple(_ratios(folder)),
            )
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
        for p in measurement["perplexity"]:
            yield measurement["inference"]["label"], p["protocol"], p["length"], float(p["ratio"])


def _floats(value: Any) -> Any:
    """A result with its infinite and undefined numbers, which are text in JSON."""
    if isinstance(value, dict):
        return {name: _floats(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_floats(inner) for inner in value]
    return float(value) if value in ("nan", "inf", "-inf") else value


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(inner, f"{prefix}.{name}" if prefix else name)
    elif isinstance(value, list):
        yield prefix, json.dumps(value)
    else:
        yield prefix, value


def _short(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= 40 else text[:37] + "..."
