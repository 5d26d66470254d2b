"""Verbs of the far field (foresee, mend): what a trained model loses on longer rows, what helps."""

from __future__ import annotations

from typing import Any

import farfield
from farfield.options import Count, CountOrNone, Output
from farfield.output import ask, reading
from farfield.theory.answers.errors import refuse


def foresee(
    model: str,
    *,
    runs: str = "runs",
    to: Count,
    text: str | None = None,
    length: CountOrNone = None,
    blame: bool = False,
    quick: bool = False,
    device: str | None = None,
    dtype: str | None = None,
    output: Output = Output(),
) -> int:
    """What does a trained model lose on longer rows? Foreseen from short ones.

    Args:
        model: a folder, a GGUF file, a name in the hub's cache, or the folder or key of a run.
        runs: folder where runs are kept.
        to: tokens of the longest row, as 4096 or 1M.
        text: a file or folder to read.
        length: tokens of the rows that are read; the training length if not given, at most 1024.
        blame: which layer's far keys, positions alone, or keys of another text cause it, and what
            far text gives.
        quick: ask the gap probe alone: what positions cost a model whose positions are rotations.
        device: of torch, as cuda; the CPU if not given.
        dtype: float32, bfloat16 or float16; that of the weights where the device multiplies it.
    """
    from farfield.validation.models.folder import place_of
    from farfield.validation.optional import require_torch

    require_torch("foresee")
    place = place_of(model, runs)
    how: dict[str, Any] = {"to": to, "length": length, "device": device, "dtype": dtype}
    if quick:
        refuse(blame, "--quick asks positions alone: no --blame")
    else:
        how["causes"] = blame
    return ask(
        "foresee",
        lambda step: (farfield.gap_probe if quick else farfield.foresee)(
            place, text, progress=step, **how
        ),
        output,
        opening=reading(str(place), text),
    )


def mend(
    model: str,
    *,
    runs: str = "runs",
    to: Count,
    text: str | None = None,
    length: CountOrNone = None,
    keys: CountOrNone = None,
    measure: bool = False,
    quick: bool = False,
    minutes: float | None = None,
    needles: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    out: str = "out/mend",
    output: Output = Output(),
) -> int:
    """Which change at inference helps a trained model on longer rows, and what does it cost?

    Args:
        model: a folder, a GGUF file, a name in the hub's cache, or the folder or key of a run.
        runs: folder where runs are kept.
        to: tokens of the row, as 4096 or 1M.
        text: a file or folder to read.
        length: tokens of the rows that are read; the training length if not given, at most 1024.
        keys: tokens that a query may see at most.
        quick: ask the gap probe alone: short rows, and nothing about windows.
        measure: read real rows, also where their forecast is cheaper.
        minutes: time that reading may take; that of eight long rows if not given.
        needles: a file of needles, a JSON object a line with context, question and answer.
        device: of torch, as cuda; the CPU if not given.
        dtype: float32, bfloat16 or float16; that of the weights where the device multiplies it.
        out: folder where numbers are kept; a stopped search goes on from it.
    """
    from farfield.validation.models.folder import place_of
    from farfield.validation.optional import require_torch

    require_torch("mend")
    place = place_of(model, runs)
    how: dict[str, Any] = {"to": to, "length": length, "keys": keys, "measure": measure or None}
    how |= {"folder": out, "quick": quick, "minutes": minutes, "needles": needles}
    how |= {"device": device, "dtype": dtype}
    return ask(
        "mend",
        lambda step: farfield.mend(place, text, progress=step, **how),
        output,
        opening=reading(str(place), text, out),
    )
