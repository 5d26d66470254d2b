"""Receptive fields and resolutions of trained models beside those of their biases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from farfield.numerics.resolution import attention_resolution
from farfield.validation.evidence.statements import groups
from farfield.validation.harness.measures.evidence import Evidence
from farfield.validation.harness.measures.statistics import rank_correlation
from farfield.validation.reference.observations import assumed_bias
from farfield.validation.reference.table import Model


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
    a, g = (numbers[first + kind] for kind in ("attention ERF(0.01)", "gradient ERF(0.99)"))
    yield Evidence(
        "Does the theoretical receptive field predict the measured ones across encodings?",
        f"Finite-row TRF(0.01) ranks the attention ERF(0.01) with rho = {a[0]:.2f} ({a[1]:.2f} to "
        f"{a[2]:.2f}) and the gradient ERF through {found[0].layers} layers with rho = {g[0]:.2f} "
        f"({g[1]:.2f} to {g[2]:.2f}). An infinite TRF is the highest rank.",
        len(biased),
        numbers,
        tuple(rows),
        tuple(o.runs for o in biased),
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
            rows.append((o.label, f"{r.rho:.2f} ({r.rho_low:.2f} to {r.rho_high:.2f})", str(r.n)))
    r = rank_correlation([a for a, _ in pairs], [b for _, b in pairs], resamples=500)
    yield Evidence(
        "Does it predict them head by head?",
        f"Over every layer and head of every encoding, finite-row TRF({eps:g}) of the trained bias "
        f"against attention ERF({eps:g}): rho = {r.rho_text()}. Heads are not independent, so the "
        "interval is too narrow; the table has the encodings one by one.",
        r.n,
        {"all": (r.rho, r.rho_low, r.rho_high), **within},
        tuple(rows),
        tuple(o.runs for o in biased),
    )


def resolutions(found: Sequence[Model]) -> Iterator[Evidence]:
    """Measured R(s) of trained models beside the theory's, with and without BCA."""
    length = 256  # of the measured scores
    pairs, rows = [], [("encoding", "measured R", "R of the bias", "ratio of perplexity")]
    reach = max(n for o in found for n in o.last)
    for o in found:
        if o.resolution is None:
            continue
        value = None
        if o.biased:
            value = attention_resolution(assumed_bias(o.label, o.trained), length).value
            if value is not None:
                pairs.append((value, o.resolution))
        rows.append(
            (
                o.name,
                f"{o.resolution:.3g}",
                "-" if value is None else f"{value:.3g}",
                f"{o.last[reach]:.3f}",
            )
        )
    if len(pairs) < 4:
        return
    r = rank_correlation([a for a, _ in pairs], [b for _, b in pairs])
    by = {o.name: o.resolution for o in found if o.resolution is not None}
    masked = [
        f"{label} {by[label]:.3g} without, {by[label + ' + BCA']:.3g} with"
        for label in by
        if label + " + BCA" in by
    ]
    yield Evidence(
        "Does the measured attention resolution follow the theory, with and without BCA?",
        f"Across additive biases, rho = {r.rho_text()} between R of the bias and R of the measured "
        f"scores over {length} tokens. Blockwise causal attention: {'; '.join(masked)}.",
        r.n,
        {"rho": (r.rho, r.rho_low, r.rho_high), "measured": by},
        tuple(rows),
        tuple(o.runs for o in found),
    )
