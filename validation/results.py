"""Results as one table: a line a measurement of a run, with the verdict and prior of its encoding.

`results()` is the committed table, `results("runs")` the same of a folder of runs, and
`results("mine.csv")` of a file that `farfield runs --csv` wrote; each is a polars data frame.
Figures, claims, findings and `forecast` filter it. `by_seed` and `perplexities` read the values of
models that differ in their seed alone. The committed lines come from the registered runs of
`experiments/`, whose README says what was registered when.

Columns of the run, the same in all its lines:

* `experiment`: the registration, or `runs`; `run`: its key; `label`: of the encoding; `family`:
  the kind of encoding it belongs to; `mechanism`: `bias`, `rotation` and others; `formula`: of the
  heads, as `encoding` reads it, null where there is no bias; `verdict`: on its series, of
  committed lines where one was registered;
* `preset`, `layers`, `heads`, `width`, `trained` (the training length), `batch` (rows a step),
  `steps`, `learning_rate`, `seed`, `text` (its source), `text_sha256` (12 digits), `seconds` (of
  one processor, for training);
* `mask`: `""`, `BCA`, `window 64`: what attention saw when it was measured.

Columns of the measurement. Each line has a `protocol` and a `length`, the tokens of its row:

* `last token`, `non-overlapping`: `nats` a token over `targets` tokens; `ratio` of the perplexity
  to that at the training length, with its 95 % interval `low` to `high`. Beyond the training
  length also what the formula makes of the row: `order`, `beyond`, `drowned`, `local` (`prior`),
  and the `order_loss` of the registered law, where it spoke of the case;
* `attention`: the tokens `erf` that hold all but `eps` of it, and `trf` of the same rows;
* `gradient`: the tokens `erf` that hold all but `eps` of it, or the share `gradient` that the
  nearest `distance` tokens hold. `gradient by token`: the share of 4 tokens from `distance` on;
* `scores`: the attention `resolution` of the mean expected scores. Of these three `targets` counts
  segments;
* `training`: the loss in `nats` at a `step` (of committed runs those of `first`);
* `recall`: on a task, `accuracy` and mean `attention` of the answer that stands `distance` back.
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars
from polars import DataFrame, col, when

from farfield.theory.answers.errors import InputError
from farfield.theory.convergence import check_convergence
from farfield.theory.encodings import Encoding
from farfield.validation.harness.settings import Hybrid

COMMITTED = Path(__file__).with_name("results.parquet")
TOLERANCE = 0.05
"""The relative increase of perplexity that still counts as none, as in Definition 0.1 [Q]. That
speaks of any length and of either direction; here the length is beyond that of training, and a
lower perplexity is no fault."""
LAST, WHOLE = "last token", "non-overlapping"
"""The protocols of perplexity."""
_COLUMNS = {
    str: "experiment run label family mechanism formula verdict preset text text_sha256 mask "
    "protocol",
    int: "layers heads width trained batch steps seed length distance step targets",
    float: "learning_rate seconds eps nats ratio low high erf trf gradient resolution accuracy "
    "attention order beyond drowned local order_loss",
}
SCHEMA: dict[str, type] = {name: kind for kind, v in _COLUMNS.items() for name in v.split()}
"""The columns with their types."""

SETTING = (
    *("layers", "heads", "width", "trained", "batch", "steps", "learning_rate", "text_sha256"),
)
"""What models must share to stand together."""
NEEDED = ("run", "label", "mask", "protocol", "layers", "heads", "trained", "seed", "length")
"""The columns that no line lacks."""


def results(source: str | None = None) -> DataFrame:
    """The table of results.

    Args:
        source: a folder of runs, or a CSV file of results; None for the committed table.

    Raises:
        InputError: no such folder or file; a run or a line that is damaged or of another kind. The
            message names it, and nothing is read of the others.

    >>> asked = {"label": "1 head 1/4", "trained": 64, "mask": "", "length": 1024}
    >>> results().filter(**asked, experiment="heads_and_shapes", protocol="last token")["ratio"]
    shape: (3,)
    Series: 'ratio' [f64]
    [
        1.03705
        1.03109
        1.00952
    ]
    """
    if source is None:
        return _committed()
    if not source.endswith(".csv"):
        found = polars.DataFrame([*_of_store(source)], SCHEMA)
        return found.sort("label", "seed", maintain_order=True)
    return _of_csv(source)


@functools.cache
def _committed() -> DataFrame:
    return polars.read_parquet(COMMITTED)


def by_seed(lines: DataFrame, protocol: str, x: str, y: str) -> dict[Any, dict[int, float]]:
    """What a protocol measured, by x and seed, in the order of x.

    Args:
        lines: of models that differ in their seed alone.
        protocol: of the lines that count.
        x: a column.
        y: another one; lines without one of the two do not count.
    """
    values: dict[Any, dict[int, float]] = {}
    known = lines.filter(protocol=protocol).drop_nulls([x, y])
    for at, seed, value in known.sort(x, "seed").select(x, "seed", y).iter_rows():
        values.setdefault(at, {})[seed] = value
    return values


def perplexities(lines: DataFrame, protocol: str) -> dict[int, dict[int, float]]:
    """Perplexity by tested length and seed.

    A length may have been scored on other targets than the training length. Its perplexity is then
    its `ratio`, which is paired on its own targets, times the perplexity at the training length.

    Args:
        lines: of models that differ in their seed alone.
        protocol: `LAST` or `WHOLE`.

    >>> of = {"label": "alibi", "experiment": "first", "trained": 64, "mask": ""}
    >>> {n: round(v[0], 3) for n, v in perplexities(results().filter(**of), WHOLE).items()}
    {64: 4.574, 128: 4.469, 256: 4.421, 512: 4.398, 1024: 4.39, 9216: 4.395}
    """
    scored = lines.filter(protocol=protocol)
    home = scored.filter(col("length") == col("trained"))
    home = home.select("seed", home_nats="nats", home_targets="targets")
    same = col("home_targets").is_null() | (col("home_targets") == col("targets"))
    nats = when(same).then("nats").otherwise(col("ratio").log() + col("home_nats"))
    both = scored.join(home, on="seed", how="left").with_columns(perplexity=nats.exp())
    return by_seed(both, protocol, "length", "perplexity")


def _of_store(folder: str) -> Iterator[dict[str, Any]]:
    """The rows of the finished runs of a folder, and what the theory says of their encodings."""
    from farfield.validation.harness.mechanism import read
    from farfield.validation.harness.runs import listed, rows_of

    for one in listed(folder):
        asked = one.run  # what is no run is refused, finished or not
        if one.state == "finished":
            rows, subject = rows_of(one.home), None
            if not isinstance(asked.encoding, Hybrid) and rows[0]["mechanism"] != "module":
                subject = read(asked.encoding, asked.heads)
            yield from with_theory(rows, subject if isinstance(subject, Encoding) else None)


def with_theory(
    rows: Iterable[Mapping[str, Any]], subject: Encoding | None
) -> Iterator[dict[str, Any]]:
    """The rows of a run with the verdict on its encoding; and `prior` beyond the training length,
    where that is a bias without learned parameters and no blocks change what keys are seen.

    Args:
        rows: as `harness.runs.run` returns them.
        subject: the encoding of all layers; None where they differ, or for a module.
    """
    from farfield.validation.prior import prior  # loads scipy

    verdict = None if subject is None else str(check_convergence(subject).verdict)
    bias = subject if subject is not None and subject.biases else None
    for row in rows:
        far = row["protocol"] in (LAST, WHOLE) and row["length"] > row["trained"]
        if bias is None or bias.free or not far or row["mask"] == "BCA":
            yield {**row, "verdict": verdict}
            continue
        keys = bias.bias(np.arange(row["length"]))
        if row["mask"]:
            keys[:, int(row["mask"].removeprefix("window ")) :] = -np.inf
        found = prior(keys, row["trained"], row["layers"])
        yield {**row, "verdict": verdict, **found._asdict()}


def _of_csv(file: str) -> DataFrame:
    try:
        with open(file, encoding="utf-8", newline="") as text:
            header, *rows = csv.reader(text)
    except (OSError, ValueError, csv.Error) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no table of text"
        raise InputError(f"results {file!r} cannot be read: {why}") from None
    if missing := [name for name in SCHEMA if name not in header]:
        raise InputError(
            f"results {file!r}, row 1: no column {missing[0]}; accepted: a file that "
            "`farfield runs --csv` wrote"
        )
    for at, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise InputError(
                f"results {file!r}, row {at} has {len(row)} cells; accepted: {len(header)}"
            )
    cells = polars.DataFrame(rows, dict.fromkeys(header, str), orient="row")
    cells = cells.with_columns(polars.exclude("mask").replace("", None))
    table = cells.select(col(name).cast(kind, strict=False) for name, kind in SCHEMA.items())
    for name, kind in SCHEMA.items():
        lost = table[name].is_null()
        if name not in NEEDED:
            lost &= cells[name].is_not_null()
        for at in lost.arg_true()[:1]:
            wanted = {str: "a text", int: "a whole number", float: "a number"}[kind]
            raise InputError(
                f"results {file!r}, row {at + 2}: {name} is {cells[name][at]!r}; accepted: {wanted}"
            )
    return table
