"""Results of trained models, as the checks of experiments read them.

A result is what `train_and_measure` returns, in JSON form: in a study, alone, in a list, or as the
`runs` of an object. Those given with `using` are read, else the reference results. Without any, a
check says with which command they are made. Runs of one encoding that differ in their seed alone
are averaged; of several settings (preset, training length) the one with the most encodings is read,
since perplexities of two settings do not compare.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from farfield.theory.results import InputError
from farfield.validation.claims.claim import Missing

Row = Mapping[str, Any]
Named = tuple[str, Any]
Notice = Callable[[str, str, int, int, str], None]
HOW = (
    "no results of trained models; `farfield report --train --out out/demo` makes them (needs the "
    "extra farfield[train]), then add --results out/demo/study.json, or run with --fresh"
)
_GIVEN: ContextVar[tuple[Named, ...] | None] = ContextVar("results", default=None)


@contextmanager
def using(*results: Named) -> Iterator[None]:
    """Let the checks read these results, each with the name of its source."""
    token = _GIVEN.set(results)
    try:
        yield
    finally:
        _GIVEN.reset(token)


def read_results(path: str | Path) -> Named:
    """Results from a file: the `study.json` of a report, or runs.

    Raises:
        InputError: the file cannot be read, or holds no result.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "is no JSON text"
        raise InputError(f"cannot read the results {str(path)!r}: {why}") from None
    if not runs_of(content):
        raise InputError(
            f"{str(path)!r} holds no result of a trained model; accepted: the study.json of a "
            "report that trained, or runs"
        )
    return Path(path).name, content


def fresh(
    preset: str = "demo", store: str | Path = "out/claims/runs", notice: Notice | None = None
) -> Named:
    """Train and measure the models of the demonstration, and Sandwich; a finished run is kept.

    Raises:
        InputError: torch is missing, or the preset unknown.
    """
    from farfield.theory.encodings import encoding
    from farfield.validation.study import demo_encodings, survey

    subjects = (*demo_encodings(), ("sandwich", encoding("sandwich")))
    names = [name for name, _ in subjects]
    study = survey(subjects, train=names, preset_name=preset, store=store, notice=notice)
    return f"fresh run of preset {preset}", study.to_dict()


def runs_of(content: Any) -> tuple[Row, ...]:
    """The runs in the content of a file, each with a `name`."""
    if isinstance(content, dict) and "entries" in content:
        found = [
            {"name": e["prediction"]["name"], **e["run"]}
            for e in content["entries"]
            if e.get("run")
        ]
    else:
        held = content.get("runs", [content]) if isinstance(content, dict) else content
        found = [
            {"name": r["encoding"].get("label") or _label(r["encoding"]), **r}
            for r in (held if isinstance(held, list) else [])
            if isinstance(r, dict) and "measurements" in r and "encoding" in r
        ]
    return tuple(r for r in found if r["measurements"])


def _label(encoding: Row) -> str:
    dialect = encoding.get("dialect")
    return f"{encoding['name']} ({dialect})" if dialect else str(encoding["name"])


def _committed() -> tuple[Named, ...]:
    from farfield.validation.reference import results

    runs = results()
    return (("validation/reference", {"runs": list(runs)}),) if runs else ()


def finding_of(what: str) -> tuple[Row, ...]:
    """One row an encoding, all of one setting: `last_token` ratios, attention or gradient fields.

    Each has `name`, `verdict`, `setting`, `seeds` and `source`.

    Raises:
        Missing: there are no results that hold them.
    """
    given = _GIVEN.get()
    make = {"last_token": _last_token, "attention_field": _attention, "gradient_field": _gradient}
    settings: dict[str, dict[tuple[str, str], list[dict[str, Any]]]] = {}
    for source, content in _committed() if given is None else given:
        for run in runs_of(content):
            inference = ((m, m["inference"]) for m in run["measurements"])
            causal = [m for m, i in inference if i["bca"] is None and i.get("window") is None]
            if causal:
                setting = _setting(run["preset"])
                row = {"source": source, "name": run["name"], "setting": setting}
                row |= {"verdict": _verdict(run)} | make[what](causal[0])
                if run["encoding"]["mechanism"] != "bias" and "trf" in row:
                    row["trf"] = None  # of no bias
                group = settings.setdefault(setting, {})
                group.setdefault((source, run["name"]), []).append(row)
    if not settings:
        raise Missing(HOW)
    return tuple(_averaged(rows) for rows in max(settings.values(), key=len).values())


def _setting(preset: Row) -> str:
    name = preset.get("name") or "a preset of its own"
    return f"{name}: {preset['layers']} layers, {preset['length']} tokens"


def _verdict(run: Row) -> str:
    """The registered verdict of a reference run, which may not hold its formula in full; else that
    on the formulas of the heads."""
    encoding, length = run["encoding"], run["preset"]["length"]
    if "registered" in run:
        from farfield.validation.reference import predictions

        for p in predictions()["encodings"]:
            if (p["label"], p["length"], p["bca"]) == (run["name"], length, False):
                return str(p["verdict"])
    return _decided(encoding["mechanism"], tuple(encoding["heads"]))


@lru_cache(maxsize=256)
def _decided(mechanism: str, heads: tuple[str, ...]) -> str:
    """The verdict on the formulas of the heads; of a layer, as soon as one head diverges."""
    from farfield.theory.convergence import check_convergence

    if mechanism != "bias":
        return "out_of_scope"
    try:
        found = {str(check_convergence(text).verdict) for text in dict.fromkeys(heads)}
    except InputError:
        return "undecided"
    order = ("diverges", "undecided", "conditional", "converges")
    return next((v for v in order if v in found), "undecided")


def _averaged(rows: list[dict[str, Any]]) -> Row:
    """The mean over seeds of every number that is not the same in all of them."""
    first = dict(rows[0])
    for key, value in first.items():
        if isinstance(value, (int, float)) and any(r[key] != value for r in rows):
            first[key] = float(np.mean([r[key] for r in rows]))
    return first | {"seeds": len(rows)}


def _last_token(measurement: Row) -> dict[str, Any]:
    rows = [p for p in measurement["perplexity"] if p["protocol"] == "last token"]
    row = max(rows, key=lambda p: p["length"])
    return {"length": row["length"], "ratio": row["ratio"]}


def _attention(measurement: Row) -> dict[str, Any]:
    field = measurement["attention"][0]
    return {"eps": field["eps"], "trf": field["trf"], "erf": field["tokens"]}


def _gradient(measurement: Row) -> dict[str, Any]:
    field = measurement["gradient"]
    return {"tokens": field["tokens"], "mass": field["mass"],
            "training_length": field["training_length"]} | _last_token(measurement)  # fmt: skip
