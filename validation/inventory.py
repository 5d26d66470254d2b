"""Lists of runs for a reader: one run with its measurements, and many in a table."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from farfield.theory.answers.answer import Label, Result
from farfield.theory.answers.blocks import Block, facts, note, sentence, table
from farfield.theory.answers.notation import listed
from farfield.theory.answers.number import plural
from farfield.validation.results import LAST, WHOLE
from farfield.validation.uniform_guess import BYTES, uniform_guess, warned

Line = Mapping[str, Any]
"""What was measured of a run at a length, in the columns of the table of results."""

TABLES = {
    "perplexity": ((WHOLE, LAST), ("protocol", "mask", "length", "nats", "ratio", "low", "high")),
    "the nearest keys that hold all but eps of the attention, mean over heads and queries": (
        ("attention",),
        ("mask", "length", "eps", "erf", "trf"),
    ),
    "the nearest tokens that hold all but eps of the gradient": (
        ("gradient",),
        ("mask", "length", "eps", "erf"),
    ),
    "recall": (("recall",), ("mask", "length", "distance", "accuracy", "attention")),
}
"""Of each table its protocols and its columns."""


@dataclass(frozen=True, repr=False)
class TrainedRun(Result):
    """A trained model and its measurements.

    Fields:
        lines: in the columns of the table of results.
    """

    lines: tuple[Line, ...]

    @property
    def subject(self) -> str:
        """The label of its encoding."""
        return str(summary(self.lines)["label"])

    def _blocks(self) -> Iterator[Block]:
        told = summary(self.lines)
        guess = told.pop("guess", "")
        yield sentence(
            "{name}, seed {seed}, preset {preset}: trained in {steps} steps to a loss of {loss} "
            "nats a token.",
            Label.MEASURED,
            name=told["label"],
            **{k: _cell(v) for k, v in told.items() if k != "label"},
        )
        yield from warned(guess)
        line = self.lines[0]
        text = f"{line['text']}, SHA-256 {line['text_sha256']}"
        yield facts(run=told["key"], text=text, seconds=f"{line['seconds']:.0f}")
        for caption, (protocols, columns) in TABLES.items():
            found = [x for x in self.lines if x["protocol"] in protocols]
            if rows := [x for x in found if all(name in x for name in columns)]:
                yield _listing(rows, columns, caption)


@dataclass(frozen=True, repr=False)
class RunList(Result):
    """Runs: those of a folder, or those of a plan in its order.

    Fields:
        runs: of each its `key`, `state` (`finished`, `unfinished`, `failed`), `label`, `preset`,
            `trained` (tokens of a training row), `seed`, `steps` done, and of a finished one the
            last `loss` and the `ratio` of the last token's perplexity at the longest `length`;
            `note` says why it failed, and `guess` that a model has not learned.
    """

    runs: tuple[Line, ...]

    def _blocks(self) -> Iterator[Block]:
        states = [run["state"] for run in self.runs]
        counts = [f"{states.count(state)} {state}" for state in sorted({*states})]
        said = plural(len(states), "run")
        yield sentence(
            "{said}: {counts}.", Label.MEASURED, said=said, counts=listed(counts or ["none"])
        )
        columns = dict.fromkeys(name for run in self.runs for name in run if name not in TOLD)
        if self.runs:
            yield _listing(self.runs, list(columns))
        guesses = [run for run in self.runs if "guess" in run]
        if guesses:
            worst = max(guesses, key=lambda run: float(run["loss"]))
            yield note(
                "{said} learned little or nothing. Of {label}: {guess}.",
                said=f"{len(guesses)} of {plural(len(self.runs), 'run')}",
                label=worst["label"],
                guess=str(worst["guess"]),
            )
        for run in self.runs:
            if "note" in run:
                yield note("{label}: {note}.", label=run["label"], note=run["note"])


TOLD = ("note", "guess")
"""What a list of runs says below its table."""


def summary(lines: Sequence[Line]) -> dict[str, Any]:
    """A finished run as a line of an inventory."""
    first, trained = lines[0], [x for x in lines if x["protocol"] == "training"]
    names = ("label", "preset", "trained", "seed", "steps")
    row = {"key": first["run"], "state": "finished", **{name: first[name] for name in names}}
    row["loss"] = trained[-1]["nats"]
    in_bytes = not re.search(r"^task |\.npy$", str(first["text"]))
    if in_bytes and (guess := uniform_guess(row["loss"], BYTES)):
        row["guess"] = guess
    last = [x for x in lines if x["protocol"] == LAST and x["mask"] == ""]
    if last:
        far = max(last, key=lambda x: int(x["length"]))
        row |= {"length": far["length"], "ratio": far["ratio"]}
    return row


def _listing(rows: Sequence[Line], columns: Sequence[str], caption: str = "") -> Block:
    shown = [name for name in columns if any(row.get(name) not in (None, "") for row in rows)]
    cells = [[_cell(row.get(name)) for name in shown] for row in rows]
    numeric = [
        at
        for at, column in enumerate(zip(*cells, strict=True))
        if all(x == "" or x[0].isdigit() or x[0] == "-" for x in column)
    ]
    return table(shown, cells, caption, numeric=numeric)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else str(value)
    return "" if value is None else str(value)
