"""Results of trained models, as the checks of experiments read them.

Studies (`farfield.validation.study`) in JSON: those given with `using`, else those committed in
`validation/reference/`. Without any, a check says with which command they are made.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.resources import files
from pathlib import Path
from typing import Any

from farfield.theory.results import InputError
from farfield.validation.claims.claim import Missing

Row = Mapping[str, Any]
Notice = Callable[[str, str, int, int, str], None]
HOW = (
    "no results of trained models; `farfield report --train --out out/demo` makes them (needs the "
    "extra farfield[train]), then add --results out/demo/study.json, or run with --fresh"
)
_GIVEN: ContextVar[tuple[tuple[str, Row], ...] | None] = ContextVar("results", default=None)


@contextmanager
def using(*studies: tuple[str, Row]) -> Iterator[None]:
    """Let the checks read these studies, each with the name of its source."""
    token = _GIVEN.set(studies)
    try:
        yield
    finally:
        _GIVEN.reset(token)


def read_study(path: str | Path) -> tuple[str, Row]:
    """A study from its file.

    Raises:
        InputError: the file cannot be read, or holds no study.
    """
    try:
        study = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "is no JSON text"
        raise InputError(f"cannot read the results {str(path)!r}: {why}") from None
    if not _is_study(study):
        raise InputError(f"{str(path)!r} holds no study; accepted: the study.json of a report")
    return Path(path).name, study


def fresh(
    preset: str = "demo", store: str | Path = "out/claims/runs", notice: Notice | None = None
) -> tuple[str, Row]:
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


def _is_study(value: Any) -> bool:
    return isinstance(value, dict) and value.get("kind") == "Study" and "entries" in value


def _committed() -> tuple[tuple[str, Row], ...]:
    folder = files("farfield.validation").joinpath("reference")
    if not folder.is_dir():
        return ()
    texts = ((f.name, f.read_text(encoding="utf-8")) for f in sorted(folder.iterdir(), key=str)
             if f.name.endswith(".json"))  # fmt: skip
    parsed = ((name, json.loads(text)) for name, text in texts)
    return tuple((f"validation/reference/{name}", s) for name, s in parsed if _is_study(s))


def finding_of(what: str) -> tuple[Row, ...]:
    """One row a trained model: `last_token` ratios or attention and gradient receptive fields.

    Raises:
        Missing: there are no results that hold them.
    """
    given = _GIVEN.get()
    make = {"last_token": _last_token, "attention_field": _attention, "gradient_field": _gradient}
    found = []
    for source, study in _committed() if given is None else given:
        for entry in study["entries"]:
            measured = [m for m in (entry.get("run") or {}).get("measurements", ())
                        if m["inference"]["bca"] is None]  # fmt: skip
            if measured:
                row = make[what](measured[0])
                prediction = entry["prediction"]
                verdict = prediction["convergence"]["verdict"]
                found.append(
                    {"source": source, "name": prediction["name"], "verdict": verdict} | row
                )
    if not found:
        raise Missing(HOW)
    return tuple(found)


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
