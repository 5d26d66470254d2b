"""Receptive fields and resolutions of trained models beside those of their biases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from farfield.numerics.resolution import attention_resolution
from farfield.validation.evidence.sentences import Evidence
from farfield.validation.evidence.statements import groups
from farfield.validation.evidence.told import told
from farfield.validation.reference.observations import assumed_bias
from farfield.validation.reference.table import Model
from farfield.validation.repeated import rank_correlation


def receptive_fields(found: Sequence[Model]) -> Iterator[Evidence]:
    """TRF against the attention ERF and the gradient ERF."""
    biased = [o for o in found if o.biased]
    every = {"all with an additive bias": biased}
    every |= {name: [o for o in biased if o.label in runs] for name, runs in groups().items()}
    rows: list[tuple[str, ...]] = [("encodings", "TRF", "ERF", "Spearman's rho", "95 %", "n")]
    numbers: dict[str, Any] = {}
    for group, members in every.items():
        if len(members) < 4:
            continue
        for eps in (0.1, 0.05, 0.01):
            fraction = f"1/{round(1 / eps)}"
            for trf, values in (
                (
                    f"finite-row TRF({eps:g}), registered",
                    [o.registered("row_trf", fraction) for o in members],
                ),
                (f"TRF({eps:g}) of the series", [o.registered("trf", fraction) for o in members]),
            ):
                for erf, target in (
                    (f"attention ERF({eps:g})", [o.erf[eps] for o in members]),
                    ("gradient ERF(0.99)", [o.gradient for o in members]),
                ):
                    if len(set(values)) < 2:
                        continue
                    r = rank_correlation(values, target)
                    numbers[f"{group}; {trf}; {erf}"] = (r.rho, r.rho_low, r.rho_high)
                    rows.append(
                        (
                            group,
                            trf,
                            erf,
                            f"{r.rho:.2f}",
                            f"{r.rho_low:.2f} to {r.rho_high:.2f}",
                            str(r.n),
                        )
                    )
    first = "all with an additive bias; finite-row TRF(0.01), registered; "
    yield told(
        "receptive fields",
        len(biased),
        numbers,
        tuple(rows),
        tuple(o.runs for o in biased),
        attention=numbers[first + "attention ERF(0.01)"],
        gradient=numbers[first + "gradient ERF(0.99)"],
        layers=found[0].layers,
    )
    yield from _heads(biased)


def _heads(biased: Sequence[Model]) -> Iterator[Evidence]:
    eps = 0.05
    pairs: list[tuple[float, float]] = []
    rows: list[tuple[str, ...]] = [("encoding", "Spearman's rho over layers and heads", "n")]
    within = {}
    for o in biased:
        erf = np.atleast_2d(o.heads["heads"][eps])
        trf = np.broadcast_to(o.heads["trf_heads"][eps], erf.shape)
        pairs += zip(trf.ravel(), erf.ravel(), strict=True)
        if len(set(trf.ravel())) > 2:
            r = rank_correlation(trf.ravel().tolist(), erf.ravel().tolist())
            within[o.label] = r.rho
            rows.append((o.label, r.rho_text(), str(r.n)))
    r = rank_correlation([a for a, _ in pairs], [b for _, b in pairs], resamples=500)
    yield told(
        "heads",
        r.n,
        {"all": (r.rho, r.rho_low, r.rho_high), **within},
        tuple(rows),
        tuple(o.runs for o in biased),
        eps=eps,
        rank=r,
    )


def resolutions(found: Sequence[Model]) -> Iterator[Evidence]:
    """Measured R(s) of trained models beside the theory's, with and without BCA."""
    length = 256  # of the measured scores
    reach = max(n for o in found for n in o.last)
    measured = {o.name: o.resolution for o in found if o.resolution is not None}
    theory = {}
    for o in found:
        if o.biased and o.name in measured:
            value = attention_resolution(assumed_bias(o.label, o.trained), length).value
            if value is not None:
                theory[o.name] = value
    if len(theory) < 4:
        return
    r = rank_correlation([*theory.values()], [measured[name] for name in theory])
    yield told(
        "resolution",
        r.n,
        {"rho": (r.rho, r.rho_low, r.rho_high), "measured": measured},
        (
            ("encoding", "measured R", "R of the bias", "ratio of perplexity"),
            *(
                (
                    o.name,
                    f"{o.resolution:.3g}",
                    f"{theory[o.name]:.3g}" if o.name in theory else "-",
                    f"{o.last[reach]:.3f}",
                )
                for o in found
                if o.resolution is not None
            ),
        ),
        tuple(o.runs for o in found),
        rank=r,
        length=length,
    )
