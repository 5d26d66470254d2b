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
        """The measurements with causal attention, or with blockwise causal attention."""
        for m in (self.run or {}).get("measurements", ()):
            if (m["inference"]["bca"] is not None) is bca:
                return dict(m)
        return None


def last_token_ratio(measurement: Mapping[str, Any]) -> tuple[int, float, float, float]:
    """(length, ratio, low, high) of the last-token perplexity at the longest length."""
    rows = [p for p in measurement["perplexity"] if p["protocol"] == "last token"]
    row = max(rows, key=lambda p: p["length"])
    return row["length"], row["ratio"], row["ratio_low"], row["ratio_high"]


Measured = list[tuple[Studied, Mapping[str, Any]]]


def findings(entries: Sequence[Studied]) -> tuple[Evidence, ...]:
    """What the theory predicted and whether it came true, in words."""
    measured = [(e, m) for e in entries if (m := e.measurement()) is not None]
    return tuple(_findings(measured)) if measured else ()


def _findings(measured: Measured) -> Iterator[Evidence]:
    yield from _by_verdict(measured)
    yield from _out_of_scope(measured)
    yield from _ranks(measured)
    checks, violations = (
        sum(m["bounds"][k] for _, m in measured) for k in ("checks", "violations")
    )
    yield told("study bounds", (), {"checks": checks, "violations": violations}, n=checks)


def _by_verdict(measured: Measured) -> Iterator[Evidence]:
    """Who extrapolates, among those that converge and those that diverge."""
    table: dict[str, dict[str, list[str]]] = {}
    length = 0
    for e, m in measured:
        if (verdict := e.prediction.convergence.verdict) in (Verdict.CONVERGES, Verdict.DIVERGES):
            length, ratio, *_ = last_token_ratio(m)
            of = table.setdefault(verdict, {"kept": [], "lost": []})
            of["kept" if holds([ratio - 1]) else "lost"].append(f"{e.prediction.name} {ratio:.3f}")
    if table:
        empty: dict[str, list[str]] = {"kept": [], "lost": []}
        c, d = (table.get(v, empty) for v in (Verdict.CONVERGES, Verdict.DIVERGES))
        yield told(
            "study verdict",
            (),
            {"table": table, "right": len(c["kept"]) + len(d["lost"])},
            n=sum(len(names) for row in table.values() for names in row.values()),
            length=length,
            tolerance=TOLERANCE,
            converge=c,
            diverge=d,
        )


def _out_of_scope(measured: Measured) -> Iterator[Evidence]:
    """The ratio of each encoding that the theorem does not speak of, with and without BCA."""
    ratios = []
    for e, m in measured:
        if e.prediction.convergence.verdict is Verdict.OUT_OF_SCOPE:
            length, ratio, *_ = last_token_ratio(m)
            blocked = e.measurement(bca=True)
            again = None if blocked is None else last_token_ratio(blocked)[1]
            ratios.append((e.prediction.name, ratio, length, again))
    if ratios:
        masked = {f"{name} + bca": again for name, *_, again in ratios if again is not None}
        numbers = {name: ratio for name, ratio, *_ in ratios} | masked
        yield told("study scope", (), numbers, ratios, n=len(ratios))


def _ranks(measured: Measured) -> Iterator[Evidence]:
    """Leak, finite-row TRF and gradient, each against the measurement that it should rank."""
    ratio, ratios = "the last-token perplexity ratio", [last_token_ratio(m)[1] for _, m in measured]
    leaks = [e.prediction.longest_leak for e, _ in measured]
    fields = [m["attention"][0] for e, m in measured if e.prediction.encoding.biases]
    asked = [
        (
            "the leak from the training length to the longest test length (worst head)",
            ratio,
            [(share, r) for share, r in zip(leaks, ratios, strict=True) if share is not None],
        ),
        *(
            (
                f"the finite-row TRF({eps:g}) (mean over heads and the measured rows)",
                "the attention ERF of the trained models",
                [(f["trf"], f["tokens"]) for f in fields],
            )
            for eps in sorted({f["eps"] for f in fields})
        ),
        (
            "the share of the input gradient on the training length",
            ratio,
            [(m["gradient"]["mass"], r) for (_, m), r in zip(measured, ratios, strict=True)],
        ),
    ]
    for one, other, pairs in asked:
        columns = [list(column) for column in zip(*pairs, strict=True)]
        if len(pairs) >= 3 and min(len(set(column)) for column in columns) > 1:
            found = rank_correlation(*columns, resamples=200)
            numbers = {"rho": found.rho, "p": found.p}
            yield told("study rank", (), numbers, n=found.n, one=one, other=other)
