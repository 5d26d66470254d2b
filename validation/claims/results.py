"""Results of trained models, as the checks of experiments read them.

A result is what `train_and_measure` returns, in JSON form: in a study, alone, in a list, or as the
`runs` of an object. Those given with `using` are read, else the reference results. Without any, a
check says with which command they are made. Runs that differ in their seed alone make one `Model`;
of several settings (preset, training length) the one with the most encodings is read, since
perplexities of two settings do not compare.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any

from farfield.theory.answers.errors import InputError
from farfield.theory.convergence import check_convergence
from farfield.validation.claims.claim import Missing
from farfield.validation.claims.series_verdicts import of_layer
from farfield.validation.progress import Progress
from farfield.validation.reference.committed import Row
from farfield.validation.reference.table import Model, grouped, results

Named = tuple[str, Any]
HOW = (
    "no results of trained models; `farfield atlas --train --out out/demo` makes them (needs the "
    "pip install '.[train]'), then add --results out/demo/study.json, or run with --fresh"
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
    """Results from a file: the `study.json` of an atlas, or runs.

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
            f"{str(path)!r} holds no result of a trained model; accepted: the study.json of an "
            "atlas that trained, or runs"
        )
    return Path(path).name, content


def fresh(
    preset: str = "demo", store: str | Path = "out/claims/runs", notice: Progress | None = None
) -> Named:
    """Train and measure the models of the demonstration, and Sandwich; a finished run is kept.

    Raises:
        InputError: torch is missing, or the preset unknown.
    """
    from farfield.theory.encodings import encoding
    from farfield.validation.study.study import demo_encodings, survey

    subjects = (*demo_encodings(), ("sandwich", encoding("sandwich")))
    names = [name for name, _ in subjects]
    study = survey(subjects, train=names, preset_name=preset, store=store, notice=notice)
    return f"fresh run of preset {preset}", study.to_dict()


def runs_of(content: Any) -> tuple[Row, ...]:
    """The runs in the content of a file; those of a study go by the names of its predictions."""
    if isinstance(content, dict) and "entries" in content:
        found: list[Any] = [
            {"name": e["prediction"]["name"], **e["run"]}
            for e in content["entries"]
            if e.get("run")
        ]
    else:
        held = content.get("runs", [content]) if isinstance(content, dict) else content
        found = held if isinstance(held, list) else []
    return tuple(
        r
        for r in found
        if isinstance(r, dict) and "measurements" in r and "encoding" in r and r["measurements"]
    )


def models(*, trained: int | None = None, folder: str = "") -> tuple[Model, ...]:
    """The models of one setting, with every mask of inference that was measured.

    Args:
        trained: only models of this training length; None takes the setting with most encodings.
        folder: of the reference results: "" the registered runs, `further/windows` and others.

    Raises:
        Missing: there are no such results.
    """
    given = _GIVEN.get()
    if given is not None and folder:
        raise Missing(f"the results given do not hold the runs of {folder}")
    found = _committed(folder) if given is None else _judged(given)
    settings: dict[str, list[Model]] = {}
    for model in found:
        if trained in (None, model.trained):
            settings.setdefault(model.scale, []).append(model)
    if not settings:
        raise Missing(HOW)
    most: list[Model] = max(settings.values(), key=len)
    return tuple(most)


@lru_cache(maxsize=16)
def _committed(folder: str) -> tuple[Model, ...]:
    return _judged([(f"validation/reference/{folder}".rstrip("/"), {"runs": [*results(folder)]})])


def _judged(sources: Sequence[Named]) -> tuple[Model, ...]:
    """The models of some sources, each with the verdict on its heads."""
    return tuple(
        dataclasses.replace(model, verdict=_verdict(model))
        for source, content in sources
        for model in grouped(runs_of(content), source)
    )


def _verdict(model: Model) -> str:
    """The registered verdict of a reference run, which may not hold its formula in full; else that
    on the formulas of the heads."""
    if model.encoding.get("registered"):
        from farfield.validation.reference.registration import FIRST

        for p in FIRST.predictions["encodings"]:
            if (p["label"], p["length"], p["bca"]) == (model.label, model.trained, False):
                return str(p["verdict"])
    return _decided(model.encoding["mechanism"], tuple(model.encoding["heads"]))


@lru_cache(maxsize=256)
def _decided(mechanism: str, heads: tuple[str, ...]) -> str:
    """The verdict on the formulas of the heads; of a layer, as soon as one head diverges."""
    if mechanism != "bias":
        return "out_of_scope"
    try:
        return of_layer(str(check_convergence(text).verdict) for text in dict.fromkeys(heads))
    except InputError:
        return "undecided"
