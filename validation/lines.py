"""The runs of a store as lines of the table of results, in the columns of
`farfield.validation.results`."""

from __future__ import annotations

import functools
import itertools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from farfield.numerics.resolution import attention_resolution
from farfield.theory.answers.errors import InputError
from farfield.theory.encodings import encoding
from farfield.validation.harness.configuration import SCHEMA
from farfield.validation.harness.store import Store, stored
from farfield.validation.json_files import CorruptFile, unrecorded
from farfield.validation.prior import prior


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
        if schema != SCHEMA:
            raise InputError(
                f"run {run['key']!r} has schema {schema!r}; this version reads "
                f"{SCHEMA}; make it "
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
