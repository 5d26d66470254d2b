"""A store of runs: one folder a training, named by its key, that no crash leaves half-written.

    <store>/<key>/weights.safetensors
    <store>/<key>/training.json             written last: a folder without it is unfinished
    <store>/<key>/measurement-<key>.json

Every file is written beside its place and then renamed into it. A process that works in a folder
holds its lock, which the system releases when the process dies. A folder that cannot be read is
set aside, never deleted. Reading needs no torch: a listing opens no more of a run than its JSON.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farfield.theory.answers.answer import Label, Result, Status
from farfield.theory.answers.blocks import Block, facts, note, sentence, table
from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.answers.notation import shortened
from farfield.theory.answers.number import listed, plural
from farfield.validation.json_files import CorruptFile, read_json, unrecorded


def commit() -> str | None:
    """The commit that this package is a checkout of; None where it is none, or is changed."""

    def said(*words: str) -> str:
        git = ["git", "-C", str(Path(__file__).resolve().parent), *words]
        return subprocess.check_output(git, stderr=subprocess.DEVNULL, text=True).strip()

    try:
        changed = said("status", "--porcelain", "--untracked-files=no")
        return None if changed else said("rev-parse", "HEAD")
    except (OSError, subprocess.CalledProcessError):
        return None


def began(folder: Path, predictions: str | None) -> dict[str, Any]:
    """When a run began, at which commit, and which predictions were registered; of one that is
    resumed, the first time.

    Args:
        folder: of the run.
        predictions: their SHA-256, None for none.
    """
    with contextlib.suppress(CorruptFile):
        if (said := read_json(folder / "asked.json").get("began")) is not None:
            return dict(said)
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"time": now, "commit": commit(), "predictions": predictions}


class InUse(Exception):
    """Another process works on this run."""


@dataclass(frozen=True)
class Store:
    """The folder that holds the runs; made when first written to."""

    root: Path

    def __init__(self, root: str | os.PathLike[str]) -> None:
        object.__setattr__(self, "root", Path(root).expanduser())

    def folder(self, key: str) -> Path:
        """Where the run with this key is."""
        return self.root / key

    def folders(self) -> list[Path]:
        """Those of all runs.

        Raises:
            InputError: there is no such store.
        """
        try:
            with os.scandir(self.root) as found:
                return [Path(e.path) for e in found if not e.name.startswith(".") and e.is_dir()]
        except OSError as error:
            raise InputError(
                f"runs folder {str(self.root)!r} cannot be read: {error.strerror}; accepted: a "
                "folder that training has written"
            ) from None

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Raises InputError unless the folder is there, or can be made, and takes files."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.root):
                yield
        except OSError as error:
            raise InputError(
                f"runs folder {str(self.root)!r} cannot be written to: {error.strerror}; accepted: "
                "a folder that may be made and written to"
            ) from None

    def held(self, key: str) -> bool:
        """Whether a process works on a run at this moment."""
        try:
            with contextlib.ExitStack() as now:
                if (self.root / f"{key}.lock").exists():
                    now.enter_context(self.locked(key))
                return False
        except InUse:
            return True

    @contextlib.contextmanager
    def locked(self, key: str, waiting: Callable[[], None] | None = None) -> Iterator[Path]:
        """The folder of a run, held by this process alone.

        Calls `waiting` before it waits for another process; without one it does not wait.

        Raises:
            InputError: the store cannot be written to.
            InUse: another process holds it.
        """
        from filelock import FileLock, Timeout  # comes with torch; reading runs needs neither

        folder, lock = self.folder(key), FileLock(self.root / f"{key}.lock")
        with self.writing():
            try:
                lock.acquire(timeout=0)
            except Timeout:
                if waiting is None:
                    raise InUse(key) from None
                waiting()
                lock.acquire()
        try:
            folder.mkdir(exist_ok=True)
            for left_by_a_kill in folder.glob(".partial-*"):
                left_by_a_kill.unlink()
            yield folder
        finally:
            lock.release()

    def set_aside(self, key: str) -> Path:
        """Rename the folder of a corrupted run so that the run can be made again."""
        places = (self.root / f"{key}.corrupt-{number}" for number in itertools.count(1))
        place = next(place for place in places if not place.exists())
        os.replace(self.folder(key), place)
        self.folder(key).mkdir()
        return place


def stored(
    folder: Path,
    measurements: Sequence[str] | None = None,
    labels: dict[str, str | None] | None = None,
) -> dict[str, Any]:
    """The result of a finished run, read from its folder; `train_and_measure` says what it holds.

    Args:
        folder: of the run.
        measurements: names of the files, without ending, in the order wanted; None takes all.
        labels: of encoding and preset; None takes those that it was trained with.

    Raises:
        CorruptFile: a file is missing, or was changed later.
    """
    training = read_json(folder / "training.json")
    described, labels = training["configuration"], labels or training.get("labels", {})
    if measurements is None:
        measurements = [path.stem for path in sorted(folder.glob("measurement-*.json"))]
    named = {"name": labels.get("encoding"), "dialect": labels.get("dialect")}
    return {
        "schema": described["schema"],
        "key": folder.name,
        "encoding": {**named, **described["encoding"]},
        "seed": described["seed"],
        "preset": {"name": labels.get("preset"), **described["preset"]},
        "text": training["text"],
        "training": {k: v for k, v in training.items() if k not in ("configuration", "text")},
        "measurements": [read_json(folder / f"{name}.json") for name in measurements],
    }


def finished_run(store: Store, key: str) -> Path:
    """The folder of the one finished run whose key begins with these digits.

    Raises:
        InputError: there is none, or several.
    """
    refuse(
        not re.fullmatch("[0-9a-f]{0,16}", key),
        f"run {key[:60]!r} is no key; accepted: its first digits, 0 to 9 and a to f; a model's own "
        "folder is given with --model",
    )
    named = [p for p in store.folders() if p.name.startswith(key) and "." not in p.name]
    finished = [p for p in named if (p / "training.json").exists()]
    if len(finished) == 1:
        return finished[0]
    raise InputError(
        f"run {key!r} names {'several' if finished else 'no'} finished runs in "
        f"{str(store.root)!r}; accepted: the digits of a key"
    )


# -- runs, listed and shown -----------------------------------------------------------------------


Run = dict[str, Any]
"""One run, as a line of a listing: None where nothing readable says so.

* `key`: the name of its folder; `state`: `finished`, `unfinished` (it is resumed from its
  checkpoint), `corrupted`, `set aside`, and `failed` in the sweep that tried it;
* `encoding`, `preset`, `length`, `seed`: the model, on rows of `length` tokens; `formula`, the bias
  of its first head, tells variants of one encoding apart;
* `steps`: done, and in the checkpoint where the run is unfinished; `loss`: the last mean training
  loss, in nats a token;
* `ratios`: of each way of inference, the longest length and the perplexity of the last token there,
  as a ratio to that at the training length; `note`: the defect, in words.
"""


@dataclass(frozen=True, repr=False)
class Inventory(Result):
    """Runs: those of a store, newest last, or those of a plan in its order."""

    runs: tuple[Run, ...]

    def _blocks(self) -> Iterator[Block]:
        states = [run["state"] for run in self.runs]
        counts = [f"{states.count(state)} {state}" for state in sorted({*states})]
        said, label = plural(len(states), "run"), Label.MEASURED
        yield sentence("{said}: {counts}.", label, said=said, counts=listed(counts or ["none"]))
        lines = [{k: _cell(k, v) for k, v in run.items()} for run in self.runs]
        used = list(dict.fromkeys(k for line in lines for k, cell in line.items() if cell))
        numeric = [at for at, k in enumerate(used) if k in ("length", "seed", "steps", "loss")]
        if lines:
            cells = [[line.get(k) for k in used] for line in lines]
            yield table(used, cells, numeric=numeric)


def _cell(column: str, value: Any) -> str:
    if column == "ratios":
        return "; ".join(f"{view}: x{ratio:.3f} at {n}" for view, n, ratio in value)
    if value is None or isinstance(value, str):
        return shortened(value or "", 24) if column == "formula" else value or ""
    return f"{value:.3f}" if column == "loss" else str(value)


def inventory(store: Store) -> Inventory:
    """Every run of a store as it is now, also while others write.

    Raises:
        InputError: there is no such store.

    >>> import tempfile
    >>> inventory(Store(tempfile.mkdtemp())).runs
    ()
    """
    found = []
    for folder in store.folders():
        with contextlib.suppress(FileNotFoundError):  # removed or set aside meanwhile
            found.append((folder.stat().st_mtime, folder.name, run_of(folder)))
    return Inventory(tuple(run for *_, run in sorted(found, key=lambda one: one[:2])))


def run_of(folder: Path) -> Run:
    """The run in a folder, as far as its JSON says."""
    aside = ".corrupt-" in folder.name
    run: Run = {"key": folder.name, "state": "set aside" if aside else "unfinished"}
    finished, kept = (folder / "training.json").exists(), folder / "checkpoint.json"
    place = folder / ("training.json" if finished else "asked.json")
    if aside or not place.exists():
        return run
    try:
        record = progress = read_json(place)
        if not finished and kept.exists():
            checkpoint = read_json(kept)
            progress = {**checkpoint["record"], "steps": checkpoint["step"]}
        described = record["configuration"]
        heads, shape = described["encoding"]["heads"], described["preset"]
        labels = record.get("labels") or {
            "encoding": described["encoding"]["mechanism"],
            "preset": f"{shape['layers']}x{shape['width']}",
        }
        return run | {
            "state": "finished" if finished else "unfinished",
            "encoding": labels["encoding"]
            + (f" ({labels['dialect']})" if labels.get("dialect") else ""),
            "formula": heads[0].replace("**", "^") if heads else None,
            "preset": labels["preset"],
            "length": shape["length"],
            "seed": described["seed"],
            "steps": progress.get("steps", 0),
            "loss": progress["losses"][-1][1] if progress.get("losses") else None,
            "ratios": list(_ratios(folder)) if finished else [],
        }
    except CorruptFile as error:
        return run | {"state": "corrupted", "note": str(error)}
    except (KeyError, TypeError, IndexError):
        return run | {"state": "corrupted", "note": "written by another version"}


def _ratios(folder: Path) -> Iterator[tuple[str, int, float]]:
    for path in sorted(folder.glob("measurement-*.json")):
        measured = read_json(path)
        of = [p for p in measured.get("perplexity", ()) if p["protocol"] == "last token"]
        for p in sorted(of, key=lambda p: int(p["length"]))[-1:]:
            yield measured["inference"]["label"], p["length"], float(p["ratio"])


@dataclass(frozen=True, repr=False)
class Trained(Result):
    """A run as `train_and_measure` gave it back, for a reader.

    Fields:
        run: the result in JSON form.
    """

    run: dict[str, Any]

    @property
    def status(self) -> Status:
        """Unknown where a measured row breaks a bound; else exact."""
        return Status.UNKNOWN if self._violations() else Status.EXACT

    def _violations(self) -> int:
        found = unrecorded(self.run)["measurements"]
        return sum(m["bounds"]["violations"] for m in found if "bounds" in m)

    def _blocks(self) -> Iterator[Block]:
        run = unrecorded(self.run)
        if failed := self._violations():
            said = "{run}: {failed} comparisons break bounds that are to hold for every model."
            yield sentence(said, Label.MEASURED, run=run["key"], failed=failed)
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
        yield facts(
            run=run["key"],
            text=f"{text['source']}, SHA-256 {text['sha256'][:16]}",
            tokens=f"{training['tokens']:,}",
            seconds=f"{training['seconds']:.0f}",
            **{
                f"learned {name}": listed([f"{v:.3g}" for v in values])
                for name, values in training["learned"].items()
            },
        )
        for m in run["measurements"]:
            yield from _measured(m, f"inference: {m['inference']['label']}")
        for said in run["notes"]:
            yield note("{said}", said=said)


def _measured(m: dict[str, Any], how: str) -> Iterator[Block]:
    """Tables of one measurement: perplexities, then receptive fields; or what a task found."""
    if (found := m.get("recall")) is not None:
        yield _records(
            found["points"],
            how,
            length="row",
            distance="",
            accuracy="right",
            rows="",
            attention="attention on the answer",
            error="standard error",
        )
        said = "The attention is shown for layer {layer}, head {head}, which puts the most there."
        yield note(said, layer=found["layer"], head=found["head"])
        return
    yield _records(
        m["perplexity"],
        how,
        protocol="",
        length="tokens",
        perplexity="",
        ratio="ratio to the training length",
        ratio_low="from (95 %)",
        ratio_high="to",
        targets="",
    )
    yield _records(
        m["attention"],
        "attention: the nearest keys that hold all but eps",
        eps="",
        tokens="",
        spread="",
        trf="TRF of the same rows",
        segments="",
        rows="rows a head",
    )
    yield _records(
        [m["gradient"]],
        "the nearest tokens that hold a share of the gradient",
        share="",
        tokens="",
        tokens_low="from (95 %)",
        tokens_high="to",
        mass="share in the training length",
        segments="",
    )
    said = "Bounds of the attention ERF by the theorem: {violations} violated of {checks}."
    yield note(said, violations=m["bounds"]["violations"], checks=f"{m['bounds']['checks']:,}")


def _records(records: Sequence[dict[str, Any]], caption: str, **columns: str) -> Block:
    """A table with a line a record, and a column a field that is named, under this heading."""
    lines = [
        [f"{v:.5g}" if isinstance(v := record[name], float) else v for name in columns]
        for record in records
    ]
    numeric = [at for at, cell in enumerate(lines[0]) if cell != records[0].get("protocol")]
    return table([said or name for name, said in columns.items()], lines, caption, numeric=numeric)
