"""Results of trained models, as the checks of experiments read them.

A result is what `train_and_measure` returns, in JSON form: in a study, alone, in a list, or as the
`runs` of an object. Those given with `using` are read, else the reference results. Without any, a
check says with which command they are made. Runs that differ in their seed alone make one `Model`;
of several settings (preset, training length) the one with the most encodings is read, since
perplexities of two settings do not compare.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from farfield.theory.answers.errors import InputError
from farfield.validation.claims.claim import Finding, Missing
from farfield.validation.claims.words import increase
from farfield.validation.progress import Progress

Row = Mapping[str, Any]
Named = tuple[str, Any]
HOW = (
    "no results of trained models; `farfield report --train --out out/demo` makes them (needs the "
    "extra farfield[train]), then add --results out/demo/study.json, or run with --fresh"
)
LAST, WHOLE = "last token", "non-overlapping"
_GIVEN: ContextVar[tuple[Named, ...] | None] = ContextVar("results", default=None)


@dataclass(frozen=True)
class Model:
    """The runs of one encoding in one setting, one a seed; numbers are means over them.

    Fields:
        name: label of the encoding, with ` + BCA` or ` + window W` where inference used it.
        verdict: on the exp-series of its heads.
        trained: tokens of the training length.
        scale: of the models, in words.
        source: where the runs come from.
        seeds: of the runs.
        perplexity: by protocol, length and seed.
        gradient, mass: gradient ERF, and the share of the gradient in the training length.
        curve: share of the gradient on the most recent tokens, by their number.
        erf, trf: attention ERF and finite-row TRF by eps; trf empty where there is no bias.
        scores: mean expected scores by distance and seed, as far as both are seen.
        losses: of training by step and seed.
        seconds: processor time of training by seed.
    """

    name: str
    verdict: str = ""
    trained: int = 64
    scale: str = ""
    source: str = ""
    seeds: tuple[int, ...] = (0,)
    perplexity: Mapping[str, Mapping[int, Mapping[int, float]]] = field(default_factory=dict)
    gradient: float = math.nan
    mass: float = math.nan
    curve: Mapping[int, float] = field(default_factory=dict)
    erf: Mapping[float, float] = field(default_factory=dict)
    trf: Mapping[float, float] = field(default_factory=dict)
    scores: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    losses: Mapping[int, Mapping[int, float]] = field(default_factory=dict)
    seconds: Mapping[int, float] = field(default_factory=dict)

    @property
    def mask(self) -> str:
        """What inference used beside the encoding, empty for none."""
        return self.name.partition(" + ")[2]

    def mean(self, protocol: str = LAST, most: int | None = None) -> dict[int, float]:
        """Perplexity by length, geometric means over seeds."""
        return {
            n: math.exp(float(np.mean([math.log(p) for p in by_seed.values()])))
            for n, by_seed in sorted(self.perplexity.get(protocol, {}).items())
            if most is None or n <= most
        }

    def increase(self, protocol: str = LAST) -> float:
        """The largest relative increase of perplexity beyond the training length."""
        return increase(self.mean(protocol), self.trained)


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


@lru_cache(maxsize=8)
def _committed(folder: str) -> tuple[Named, ...]:
    from farfield.validation.reference.committed import HERE
    from farfield.validation.reference.results import results

    found = (
        [json.loads(p.read_text(encoding="utf-8")) for p in sorted((HERE / folder).glob("*.json"))]
        if folder
        else results()
    )
    source = f"validation/reference/{folder}".rstrip("/")
    return ((source, {"runs": list(found)}),) if found else ()


def models(*, trained: int | None = None, folder: str = "") -> tuple[Model, ...]:
    """The models of one setting, with every mask of inference that was measured.

    Args:
        trained: only models of this training length; None takes the setting with most encodings.
        folder: of the reference results: "" the registered runs, `further/windows` and others.

    Raises:
        Missing: there are no such results.
    """
    given = _GIVEN.get()
    if given is None:
        return _committed_models(folder, trained)
    if folder:
        raise Missing(f"the results given do not hold the runs of {folder}")
    return _grouped(given, trained)


@lru_cache(maxsize=16)
def _committed_models(folder: str, trained: int | None) -> tuple[Model, ...]:
    return _grouped(_committed(folder), trained)


def _grouped(sources: tuple[Named, ...], trained: int | None) -> tuple[Model, ...]:
    settings: dict[str, dict[tuple[str, str], list[tuple[Row, Row]]]] = {}
    for source, content in sources:
        for run in runs_of(content):
            for measurement in run["measurements"]:
                if trained in (None, run["preset"]["length"]):
                    name = run["name"] + _mask(measurement["inference"])
                    group = settings.setdefault(_scale(run["preset"]), {})
                    group.setdefault((source, name), []).append((run, measurement))
    if not settings:
        raise Missing(HOW)
    best = max(settings.items(), key=lambda item: len(item[1]))
    return tuple(_model(name, source, best[0], group) for (source, name), group in best[1].items())


def _mask(inference: Row) -> str:
    window = inference.get("window")
    return " + BCA" * (inference["bca"] is not None) + (f" + window {window}" if window else "")


def _scale(preset: Row) -> str:
    name = preset.get("name") or "a preset of its own"
    wide = f", {preset['width']} wide, {preset['heads']} heads" if "width" in preset else ""
    return f"{name}: {preset['layers']} layers{wide}, trained on {preset['length']} tokens"


def _model(name: str, source: str, scale: str, group: list[tuple[Row, Row]]) -> Model:
    seeds = [run["seed"] for run, _ in group]
    perplexity: dict[str, dict[int, dict[int, float]]] = {}
    fields: dict[str, dict[float, list[float]]] = {"tokens": {}, "trf": {}}
    curves: dict[int, list[float]] = {}
    losses: dict[int, dict[int, float]] = {}
    scores = {}
    biased = group[0][0]["encoding"]["mechanism"] == "bias"
    for run, m in group:
        for p in m["perplexity"]:
            by_length = perplexity.setdefault(p["protocol"], {})
            by_length.setdefault(p["length"], {})[run["seed"]] = p["perplexity"]
        for f in m["attention"]:
            for key in ("tokens", "trf") if biased else ("tokens",):
                fields[key].setdefault(f["eps"], []).append(f[key])
        for tokens, share in m["gradient"].get("curve", ()):
            curves.setdefault(tokens, []).append(share)
        for step, loss in run.get("training", {}).get("losses", ()):
            losses.setdefault(step, {})[run["seed"]] = loss
        known = m.get("scores", {}).get("scores", ())
        scores[run["seed"]] = tuple(known[: known.index(None) if None in known else None])
    first = group[0][0]
    return Model(
        name,
        _verdict(first),
        first["preset"]["length"],
        scale,
        source,
        tuple(seeds),
        perplexity,
        float(np.mean([m["gradient"]["tokens"] for _, m in group])),
        float(np.mean([m["gradient"]["mass"] for _, m in group])),
        {k: float(np.mean(v)) for k, v in curves.items()},
        {k: float(np.mean(v)) for k, v in fields["tokens"].items()},
        {k: float(np.mean(v)) for k, v in fields["trf"].items()},
        scores,
        losses,
        {
            run["seed"]: run["training"]["cpu_seconds"]
            for run, _ in group
            if "cpu_seconds" in run.get("training", {})
        },
    )


def _verdict(run: Row) -> str:
    """The registered verdict of a reference run, which may not hold its formula in full; else that
    on the formulas of the heads."""
    encoding, length = run["encoding"], run["preset"]["length"]
    if "registered" in run:
        from farfield.validation.reference.predictions import predictions

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


# -- what checks of several papers say of models --------------------------------------------------


def all_models() -> dict[str, tuple[Model, ...]]:
    """The data of a check that reads all models."""
    return {"models": models()}


def named(found: tuple[Model, ...], *names: str) -> dict[str, Model]:
    """Those of some models that have these names."""
    return {m.name: m for m in found if m.name in names}


def of_models(
    found: Iterable[Model],
    evidence: Mapping[str, Any],
    holds: bool | None,
    corrected: str = "",
    corrected_holds: bool = False,
    reason: str = "the results do not hold the models",
) -> Finding:
    """A finding on models, with what every such finding names."""
    group = list(found)
    more = {
        "seeds": {m.name: len(m.seeds) for m in group},
        "results": sorted({m.source for m in group}),
    }
    scales = "; ".join(sorted({m.scale for m in group}))
    found_in = {**evidence, **more}
    return Finding(holds, found_in, corrected, corrected_holds, reason, len(group), scales)
