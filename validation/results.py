"""Results as one table: a line for what was measured of a run at a length, in plain columns.

`results()` is the committed table, `results("runs")` the same of a folder of runs, and
`results("mine.csv")` of a file that `farfield runs --csv` wrote; each is a polars data frame.
Figures, claims and `forecast` filter and group it, and nothing else reads results. The committed
lines come from the registered runs of `experiments/`, whose README says what was registered when.

Columns of the run, the same in all its lines:

* `experiment`: the registration, or `runs`; `run`: its key; `label`: of the encoding; `family`:
  the kind of encoding it belongs to; `mechanism`: `bias`, `rotation` and others; `formula`: of the
  heads, as `encoding` reads it, null where there is no bias; `verdict`: on its series, where one
  was registered;
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
* `training`: the loss in `nats` at a `step`;
* `recall`: on a task, `accuracy` and mean `attention` of the answer that stands `distance` back.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from farfield.numerics.resolution import attention_resolution
from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding
from farfield.validation.harness import configuration
from farfield.validation.harness.store import Store, stored
from farfield.validation.json_files import CorruptFile, unrecorded
from farfield.validation.prior import prior

if TYPE_CHECKING:
    from polars import DataFrame

COMMITTED = Path(__file__).with_name("results.parquet")
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
    import polars

    if source is None:
        return _committed()
    if not source.endswith(".csv"):
        return polars.DataFrame([*of_store(source)], SCHEMA)
    return _of_csv(source)


@functools.cache
def _committed() -> DataFrame:
    import polars

    return polars.read_parquet(COMMITTED)


def _of_csv(file: str) -> DataFrame:
    from polars import col, exceptions, read_csv

    try:
        text = read_csv(file, infer_schema=False)
    except (OSError, exceptions.PolarsError) as error:
        why = str(error).splitlines()[0]
        raise InputError(f"results {file!r} cannot be read: {why}") from None
    if missing := [name for name in SCHEMA if name not in text.columns]:
        raise InputError(
            f"results {file!r}, row 1: no column {missing[0]}; accepted: a file that "
            "`farfield runs --csv` wrote"
        )
    table = text.select(col(name).cast(kind, strict=False) for name, kind in SCHEMA.items())
    for name, kind in SCHEMA.items():
        lost = table[name].is_null()
        if name not in NEEDED:
            lost &= text[name].is_not_null()
        for row in lost.arg_true()[:1]:
            shown = repr(text[name][row]) if text[name][row] else "missing"
            wanted = {str: "a text", int: "a whole number", float: "a number"}[kind]
            raise InputError(
                f"results {file!r}, row {row + 2}: {name} is {shown}; accepted: {wanted}"
            )
    return table


def of_store(folder: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """The lines of the finished runs of a folder.

    Raises:
        InputError: no such folder; a run that is damaged, or of another version.
    """
    for place in sorted(Store(folder).folders()):
        if (place / "training.json").exists() and ".corrupt-" not in place.name:
            try:
                yield from lines(unrecorded(stored(place)))
            except CorruptFile as why:
                raise InputError(f"runs folder {str(folder)!r}: {why}") from None


def lines(run: Mapping[str, Any], **more: Any) -> Iterator[dict[str, Any]]:
    """The lines of a run as the harness stores it.

    Args:
        run: what `train_and_measure` returns.
        **more: columns of the run that it does not say.

    Raises:
        InputError: it is of another version.
    """
    own, preset, text = run["encoding"], run["preset"], run["text"]
    for schema in (run["schema"], *(m["settings"]["schema"] for m in run["measurements"])):
        if schema != configuration.SCHEMA:
            raise InputError(
                f"run {run['key']!r} has schema {schema!r}; this version reads "
                f"{configuration.SCHEMA}; make it "
                "again with `farfield train`"
            )
    dialect = f" ({own['dialect']})" if own.get("dialect") else ""
    names = ("layers", "heads", "width", "batch", "steps", "learning_rate")
    run_columns = {
        "experiment": "runs",
        "run": run["key"],
        "label": f"{own['name']}{dialect}",
        "mechanism": own["mechanism"],
        "formula": listing(own["heads"]) or None,
        "preset": preset["name"],
        "trained": preset["length"],
        "seed": run["seed"],
        "text": text["source"],
        "text_sha256": text["sha256"][:12],
        "seconds": run["training"].get("cpu_seconds"),
        **{name: preset[name] for name in names},
        **more,
    }
    fixed = own["mechanism"] == "bias" and not any(p["learned"] for p in own["parameters"])
    bias = run_columns["formula"] if fixed else None
    for step, loss in run["training"].get("losses", ()):
        trained = {"protocol": "training", "length": preset["length"], "step": step, "nats": loss}
        yield {**run_columns, "mask": "", **trained}
    for m in run["measurements"]:
        seen = m["inference"]
        mask = "BCA" if seen["bca"] else "" if seen["label"] == "causal" else seen["label"]
        for line in _measured(m, run_columns, bias):
            yield {**run_columns, "mask": mask, **line}


def _measured(
    m: Mapping[str, Any], run: Mapping[str, Any], bias: str | None
) -> Iterator[dict[str, Any]]:
    """What one measurement of a run says, a line each; `bias` is its formula where it is fixed."""
    trained, same = run["trained"], ("length", "eps", "trf", "distance", "accuracy", "attention")
    for p in m.get("perplexity", ()):
        nats, interval = math.log(p["perplexity"]), (p["ratio"], p["ratio_low"], p["ratio_high"])
        ratios = dict(zip(("ratio", "low", "high"), interval, strict=True))
        line = {"protocol": p["protocol"], "length": p["length"], "targets": p["targets"]}
        yield {**line, "nats": nats, **ratios, **_prior(run, bias, p["length"], m["inference"])}
    for f in m.get("attention", ()):
        line = {"protocol": "attention", "targets": f["segments"]}
        yield {**line, "erf": f["tokens"], **_of(f, same)}
    if (g := m.get("gradient")) is not None:
        line = {"protocol": "gradient", "length": g["length"], "targets": g["segments"]}
        yield {**line, "eps": round(1 - g["share"], 9), "erf": g["tokens"]}
        yield from ({**line, "distance": n, "gradient": share} for n, share in g["curve"])
    scores = m.get("scores", {}).get("scores", ())
    for n in (trained, 2 * trained):
        half = m["inference"]["bca"]
        known = [s for s in scores[:n] if s is not None and math.isfinite(s)]
        if len(scores) >= n and (half or len(known) == n):
            padded = np.array([*known, *[0.0] * (n - len(known))])
            blocks = f"bca {half}" if half and n > 2 * half else None
            value = attention_resolution(padded, mask=blocks).value
            line = {"protocol": "scores", "length": n, "targets": m["scores"]["segments"]}
            yield {**line, "resolution": value}
    for p in m.get("recall", {}).get("points", ()):
        yield {"protocol": "recall", **_of(p, same)}


def _of(record: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: record[name] for name in names if name in record}


def _prior(
    run: Mapping[str, Any], bias: str | None, length: int, seen: Mapping[str, Any]
) -> dict[str, float]:
    """What a fixed bias makes of a row beyond the training length; nothing where blocks or sinks
    change what keys are seen."""
    masked = any(value for name, value in seen.items() if name not in ("window", "label"))
    if bias is None or masked or length <= run["trained"]:
        return {}
    row = _row(bias, length)
    if seen["window"]:
        row = np.where(np.arange(length) < seen["window"], row, -np.inf)
    return prior(row, run["trained"], run["layers"])._asdict()


@functools.lru_cache(maxsize=8)
def _row(formula: str, length: int) -> np.ndarray:
    """The bias of the heads on a row."""
    return encoding(formula).bias(np.arange(length))


def listing(heads: Sequence[str]) -> str:
    """The formulas of some heads as one text.

    >>> listing(["-n/4", "0", "0"]), listing(["-n"])
    ('[-n/4; 0 x2]', '[-n]')
    """
    counts = [(head, len([*same])) for head, same in itertools.groupby(heads)]
    return f"[{'; '.join(f'{h} x{k}' if k > 1 else h for h, k in counts)}]" if heads else ""
