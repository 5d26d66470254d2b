"""Models of trained runs, as the checks of experiments read them from the committed results.

Runs that differ in their seed alone make one `Model`. Of several settings (preset, training length)
the one with the most encodings is read, since perplexities of two settings do not compare.
"""

from __future__ import annotations

import dataclasses
from functools import lru_cache

from farfield.theory.answers.errors import InputError
from farfield.theory.convergence import check_convergence
from farfield.validation.claims.series_verdicts import of_layer
from farfield.validation.reference.registration import FIRST
from farfield.validation.reference.table import Model, grouped, results


def models(*, trained: int | None = None, folder: str = "") -> tuple[Model, ...]:
    """The models of one setting, with every mask of inference that was measured.

    Args:
        trained: only models of this training length; None takes the setting with most encodings.
        folder: of the reference results: "" the registered runs, `further/windows` and others.
    """
    settings: dict[str, list[Model]] = {}
    for model in _judged(folder):
        if trained in (None, model.trained):
            settings.setdefault(model.scale, []).append(model)
    most: list[Model] = max([[], *settings.values()], key=len)
    return tuple(most)


@lru_cache(maxsize=16)
def _judged(folder: str) -> tuple[Model, ...]:
    """The models of a folder, each with the verdict on its heads: the registered one, since a
    committed result may not hold its formula in full, or else that on the formulas."""
    said = {
        (p["label"], p["length"]): str(p["verdict"])
        for p in FIRST.predictions["encodings"]
        if not p["bca"]
    }
    found = grouped(results(folder), f"validation/reference/{folder}".rstrip("/"))
    return tuple(
        dataclasses.replace(
            model, verdict=said.get((model.label, model.trained)) or _decided(model)
        )
        for model in found
    )


def _decided(model: Model) -> str:
    """The verdict on the formulas of the heads; of a layer, as soon as one head diverges."""
    if model.encoding["mechanism"] != "bias":
        return "out_of_scope"
    try:
        heads = dict.fromkeys(model.encoding["heads"])
        return of_layer(str(check_convergence(text).verdict) for text in heads)
    except InputError:
        return "undecided"
