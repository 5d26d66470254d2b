"""What the theory predicted of trained models, and whether it came true, in words.

Every sentence is computed from the numbers of a study's runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from farfield.theory.convergence import Verdict
from farfield.validation.evidence.told import Evidence, told
from farfield.validation.extrapolation import TOLERANCE, holds
from farfield.validation.repeated import rank_correlation
from farfield.validation.study.prediction import Prediction


@dataclass(frozen=True)
class Studied:
    """One encoding of a study: its prediction, and its run where it was trained."""

    prediction: Prediction
    run: Mapping[str, Any] | None = None

    def measurement(self, bca: bool = False) -> Mapping[str, Any] | None:
        """What was measured with causal attention, or with blockwise causal attention."""
        for m in (self.run or {}).get("measurements", ()):
            if (m["inference"]["bca"] is not None) is bca:
                return dict(m)
        return None


def last_token_ratio(measurement: Mapping[str, Any]) -> tuple[int, float, float, float]:
    """(length, ratio, low, high) of the last-token perplexity at the longest length."""
    rows = [p for p in measurement["perplexity"] if p["protocol"] == "last token"]
    row = max(rows, key=lambda p: p["length"])
    return row["length"], row["ratio"], row["ratio_low"], row["ratio_high"]


def findings(entries: Sequence[Studied]) -> tuple[Evidence, ...]:
    """What the theory predicted and whether it came true, in words."""
    measured = [(e, m) for e in entries if (m := e.measurement()) is not None]
    if not measured:
        return ()
    found = [_by_verdict(measured), _out_of_scope(measured), *_ranks(measured), _bounds(measured)]
    return tuple(f for f in found if f is not None)


Measured = list[tuple[Studied, Mapping[str, Any]]]


def _by_verdict(measured: Measured) -> Evidence | None:
    table: dict[str, dict[str, list[str]]] = {}
    length = 0
    for e, m in measured:
        verdict = e.prediction.convergence.verdict
        if verdict not in (Verdict.CONVERGES, Verdict.DIVERGES):
            continue
        length, ratio, *_ = last_token_ratio(m)
        kept = "kept" if holds([ratio - 1]) else "lost"
        table.setdefault(verdict, {"kept": [], "lost": []})[kept].append(
            f"{e.prediction.name} {ratio:.3f}"
        )
    if not table:
        return None
    empty: dict[str, list[str]] = {"kept": [], "lost": []}
    c, d = (table.get(v, empty) for v in (Verdict.CONVERGES, Verdict.DIVERGES))
    right = len(c["kept"]) + len(d["lost"])
    total = sum(len(v) for row in table.values() for v in row.values())
    return told(
        "study verdict",
        total,
        {"table": table, "right": right},
        length=length,
        tolerance=TOLERANCE,
        converge=c,
        diverge=d,
    )


def _out_of_scope(measured: Measured) -> Evidence | None:
    numbers: dict[str, float] = {}
    ratios = []
    for e, m in measured:
        if e.prediction.convergence.verdict is not Verdict.OUT_OF_SCOPE:
            continue
        name = e.prediction.name
        length, ratio, *_ = last_token_ratio(m)
        blocked = e.measurement(bca=True)
        again = None if blocked is None else last_token_ratio(blocked)[1]
        numbers |= {name: ratio} | ({} if again is None else {f"{name} + bca": again})
        ratios.append((name, ratio, length, again))
    return told("study scope", len(ratios), numbers, ratios=ratios) if ratios else None


def _ranks(measured: Measured) -> Iterator[Evidence | None]:
    """Leak, finite-row TRF and gradient, each against the measurement that it should rank."""
    ratio = "the last-token perplexity ratio"
    leaks = [
        (share, last_token_ratio(m)[1])
        for e, m in measured
        if (share := e.prediction.longest_leak) is not None
    ]
    yield _ranked(
        leaks, "the leak from the training length to the longest test length (worst head)", ratio
    )
    fields = [m["attention"][0] for e, m in measured if e.prediction.encoding.biases]
    for eps in sorted({f["eps"] for f in fields}):
        yield _ranked(
            [(f["trf"], f["tokens"]) for f in fields],
            f"the finite-row TRF({eps:g}) (mean over heads and the measured rows)",
            "the attention ERF of the trained models",
        )
    masses = [(m["gradient"]["mass"], last_token_ratio(m)[1]) for _, m in measured]
    yield _ranked(masses, "the share of the input gradient on the training length", ratio)


def _ranked(pairs: Sequence[tuple[float, float]], one: str, other: str) -> Evidence | None:
    """Spearman's rank correlation, its p-value exact to 8 pairs; None for too few values."""
    columns = [list(column) for column in zip(*pairs, strict=True)]
    if len(pairs) < 3 or min(len(set(column)) for column in columns) < 2:
        return None
    found = rank_correlation(*columns, resamples=200)
    return told("study rank", found.n, {"rho": found.rho, "p": found.p}, one=one, other=other)


def _bounds(measured: Measured) -> Evidence:
    checks = sum(m["bounds"]["checks"] for _, m in measured)
    violations = sum(m["bounds"]["violations"] for _, m in measured)
    return told("study bounds", checks, {"checks": checks, "violations": violations})
