"""What a store of runs holds, a line for each run; and one run for a reader.

Reading needs no torch, and no run is opened for more than its JSON.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from farfield.theory.answers.answer import InputError, Label, Result
from farfield.theory.answers.blocks import Block, facts, note, sentence, table
from farfield.theory.answers.notation import shortened
from farfield.theory.answers.number import listed, plural
from farfield.validation.harness.store import Store
from farfield.validation.json_files import CorruptFile, read_json, unrecorded

LAST = "last token"
"""The protocol that listings show."""

STATES = ("finished", "failed", "unfinished", "corrupted", "set aside")
_HEADER = (
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
_NUMERIC = ("length", "seed", "steps", "loss")


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
    note: str = ""

    def row(self) -> tuple[Any, ...]:
        """The cells of a listing."""
        return (
            self.key,
            self.state,
            self.encoding,
            None if self.formula is None else shortened(self.formula, 24),
            self.preset,
            self.length,
            self.seed,
            self.steps,
            None if self.loss is None else f"{self.loss:.3f}",
            longest((view, length, ratio) for view, by, length, ratio in self.ratios if by == LAST),
            self.note,
        )

    def blocks(self) -> Sequence[Block]:
        of = f" of {self.encoding}" if self.encoding else ""
        why = f": {self.note}" if self.note else ""
        said = sentence(
            "Run {key}{of} is {state}{why}.", key=self.key, of=of, state=self.state, why=why
        )
        return said, listing([self])


def listing(runs: Sequence[Run]) -> Block:
    """The table of some runs, without the columns that are empty in all of them."""
    rows = [run.row() for run in runs]
    used = [k for k in range(len(_HEADER)) if any(row[k] not in (None, "") for row in rows)]
    header = [_HEADER[k] for k in used]
    numeric = tuple(at for at, name in enumerate(header) if name in _NUMERIC)
    return table(header, [[row[k] for k in used] for row in rows], numeric=numeric)


@dataclass(frozen=True, repr=False)
class Inventory(Result):
    """The runs of a store, newest last."""

    runs: tuple[Run, ...]

    def blocks(self) -> Sequence[Block]:
        if not self.runs:
            return (sentence("no runs"),)
        states = [r.state for r in self.runs]
        counts = [f"{states.count(state)} {state}" for state in STATES if state in states]
        runs = plural(len(states), "run")
        said = sentence("{runs}: {counts}.", Label.MEASURED, runs=runs, counts=listed(counts))
        return said, listing(self.runs)


@dataclass(frozen=True, repr=False)
class Trained(Result):
    """A run as `train_and_measure` gave it back, for a reader.

    Fields:
        run: the result in JSON form.
    """

    run: dict[str, Any]

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
    how = f"inference: {m['inference']['label']}"
    if "recall" in m:
        found = m["recall"]
        header = ("row", "distance", "right", "attention on the answer", "standard error", "rows")
        names = ("length", "distance", "accuracy", "attention", "error", "rows")
        each = [[f"{p[k]:.3g}" for k in names] for p in found["points"]]
        yield table(header, each, how, numeric=range(6))
        yield note(
            "The attention is that of layer {layer}, head {head}, which has the most of all.",
            layer=found["layer"],
            head=found["head"],
        )
        return
    columns = ("protocol", "tokens", "perplexity", "ratio to the training length, 95 %", "targets")
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
    yield table(columns, rows, how, numeric=(1, 2, 4))
    g, b = m["gradient"], m["bounds"]
    fields = [
        (
            f"attention ERF({a['eps']:g})",
            f"{a['tokens']:.1f}, spread {a['spread']:.1f}",
            f"TRF of the same rows {a['trf']:.1f}",
            f"{a['segments']} x {a['rows']} rows a head",
        )
        for a in m["attention"]
    ] + [
        (
            f"gradient ERF({g['share']:g})",
            f"{g['tokens']} ({g['tokens_low']:.0f} to {g['tokens_high']:.0f})",
            f"mass in the training length {g['mass']:.3f}",
            f"{g['segments']} segments, 95 %",
        )
    ]
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
    found = []
    for folder in _folders(store):
        with contextlib.suppress(FileNotFoundError):  # removed or set aside meanwhile
            found.append(run_of(folder))
    return Inventory(tuple(sorted(found, key=lambda run: (run.modified, run.key))))


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
    if not re.fullmatch("[0-9a-f]{0,16}", key):
        hint = "; a model's own folder is given with --model" if "/" in key else ""
        raise InputError(
            f"run {key[:60]!r} is no key; accepted: its first digits, 0 to 9 and a to f{hint}"
        )
    found = [p for p in _folders(store) if p.name.startswith(key) and "." not in p.name]
    finished = [p for p in found if (p / "training.json").exists()]
    if len(finished) == 1:
        return finished[0]
    wrong = "names several finished runs" if finished else "names no finished run"
    raise InputError(f"run {key!r} {wrong} in {str(store.root)!r}; accepted: the digits of a key")


def run_of(folder: Path) -> Run:
    """The run in a folder, as far as its JSON says."""
    with os.scandir(folder) as files:
        times = {file.name: file.stat().st_mtime for file in files}
    modified = max(times.values()) if times else folder.stat().st_mtime
    run = Run(folder.name, "unfinished", modified=modified)
    finished = "training.json" in times
    try:
        if ".corrupt-" in folder.name:
            return replace(run, state="set aside")
        if not finished and "asked.json" not in times:
            return run
        record = read_json(folder / ("training.json" if finished else "asked.json"))
        described = record["configuration"]
        heads = described["encoding"]["heads"]
        run = replace(
            run,
            **_labels(record),
            formula=heads[0].replace("**", "^") if heads else None,
            length=described["preset"]["length"],
            seed=described["seed"],
        )
        if finished:
            done, losses = record["steps"], record["losses"]
            run = replace(run, state="finished", ratios=tuple(_ratios(folder, times)))
        elif "checkpoint.json" in times:
            checkpoint = read_json(folder / "checkpoint.json")
            done, losses = checkpoint["step"], checkpoint["record"]["losses"]
        else:
            return run
        return replace(run, steps=done, loss=losses[-1][1] if losses else None)
    except CorruptFile as error:
        return replace(run, state="corrupted", note=str(error))
    except (KeyError, TypeError, IndexError):
        return replace(run, state="corrupted", note="written by another version")


def _labels(record: dict[str, Any]) -> dict[str, Any]:
    """The names of encoding and preset, or what a run without names says of itself."""
    labels = record.get("labels")
    if labels is not None:
        dialect = labels["dialect"]
        encoding = labels["encoding"] + (f" ({dialect})" if dialect else "")
        return {"encoding": encoding, "preset": labels["preset"]}
    described, preset = record["configuration"]["encoding"], record["configuration"]["preset"]
    shown = described["heads"][0] if described["heads"] else described["mechanism"]
    return {"encoding": shown[:20], "preset": f"{preset['layers']}x{preset['width']}"}


def _ratios(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, str, int, float]]:
    for name in sorted(n for n in names if n.startswith("measurement-") and n.endswith(".json")):
        measurement = read_json(folder / name)
        for p in measurement.get("perplexity", ()):
            yield measurement["inference"]["label"], p["protocol"], p["length"], float(p["ratio"])
