"""What of the papers does not reproduce: their statements beside the reference results.

The statements are data (`statements.toml`): a text, runs, and what their loss must be.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from farfield.validation.evidence.sentences import Evidence
from farfield.validation.evidence.told import told
from farfield.validation.extrapolation import holds
from farfield.validation.reference.committed import HERE
from farfield.validation.reference.table import Model


@lru_cache
def _read() -> Mapping[str, Any]:
    return tomllib.loads((HERE / "statements.toml").read_text(encoding="utf-8"))


def groups() -> Mapping[str, Sequence[str]]:
    """Encodings that a paper shows together, by the name of the group."""
    return {group["name"]: group["runs"] for group in _read()["group"]}


def unreproduced(found: Sequence[Model]) -> Iterator[Evidence]:
    """Statements of the papers beside the numbers here, those that fail first."""
    reach = max(n for o in found for n in o.last)
    ratios = {o.name: o.last[reach] for o in found}
    times = reach // found[0].trained
    checks = [
        (
            said["text"].format(run=run, reach=times),
            f"{run}: ratio {ratios[run]:.3f}",
            _true(said, ratios[run], ratios),
        )
        for said in _read()["statement"]
        for run in said["runs"]
        if run in ratios
    ]
    checks.sort(key=lambda c: c[2])
    yield told(
        "not reproduced",
        len(checks),
        {statement: ok for statement, _, ok in checks},
        (
            ("statement", "measured", "holds here"),
            *((s, m, "yes" if ok else "no") for s, m, ok in checks),
        ),
        tuple(o.runs for o in found),
        failed=sum(not ok for *_, ok in checks),
        layers=found[0].layers,
        trained=found[0].trained,
    )


def _true(said: Mapping[str, Any], ratio: float, ratios: Mapping[str, float]) -> bool:
    """Whether a statement holds for a run; against a run that is not there it does not."""
    if "ratio" in said:
        return holds([ratio - 1]) == (said["ratio"] == "holds")
    bound = said.get("below", said.get("above"))
    if isinstance(bound, str):
        if bound not in ratios:
            return False
        bound = ratios[bound]
    return bool(ratio < bound if "below" in said else ratio > bound)
