"""Who extrapolates: verdict, leak, registered rank and coverage rule as forecasts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from farfield.validation.evidence.told import told
from farfield.validation.harness.measures.evidence import Evidence
from farfield.validation.harness.measures.extrapolation import TOLERANCE, holds
from farfield.validation.harness.measures.statistics import (
    area_under_curve,
    proportion,
    rank_correlation,
    rank_gain,
)
from farfield.validation.reference.observations import PLAIN
from farfield.validation.reference.table import Model

RANK = "registered rank (layered mass beyond the training length)"


LEAK = "leak, mean of heads"


def verdicts(found: Sequence[Model]) -> Iterator[Evidence]:
    """Verdict against Definition 0.1, as a confusion table, for each protocol and reach."""
    trained = found[0].trained
    far = max(n for o in found for n in o.whole)
    reach = max(n for o in found for n in o.last)
    for protocol, longest in (
        ("last token", reach),
        ("non-overlapping", reach),
        ("non-overlapping", far),
    ):
        rows: dict[tuple[str, str], list[str]] = {}
        right = {"printed": 0, "one-sided": 0}
        counted = []
        for o in found:
            ratios = o.last if protocol == "last token" else o.whole
            tested = {n: r for n, r in ratios.items() if n <= longest}
            if longest not in tested:
                continue
            printed = holds([r - 1 for r in tested.values()], both_ways=True)
            one_sided = holds(r - 1 for r in tested.values())
            said = o.prediction["extrapolates"]
            right["printed"] += printed == said
            right["one-sided"] += one_sided == said
            outcome = "extrapolates" if one_sided else "fails"
            rows.setdefault((_kind(o), outcome), []).append(f"{o.name} {tested[longest]:.2f}")
            counted.append(o)
        if protocol == "non-overlapping" and longest == far == reach:
            continue
        n = len(counted)
        low, high = proportion(right["one-sided"], n)
        kinds = dict.fromkeys(kind for kind, _ in rows)
        outcomes = ("extrapolates", "fails")
        cells = [
            [kind, *("; ".join(rows.get((kind, o), ["none"])) for o in outcomes)] for kind in kinds
        ]
        table = (("verdict", *outcomes), *map(tuple, cells))
        yield told(
            "verdict",
            n,
            {**right, "interval": (low, high), "tolerance": TOLERANCE},
            table,
            tuple(o.runs for o in counted),
            times=longest // trained,
            longest=longest,
            protocol=protocol,
        )


def _kind(o: Model) -> str:
    if o.mask:
        return "bounded support (BCA)"
    return str(o.prediction["verdict"]).replace("_", " ")


def forecasts(found: Sequence[Model]) -> Iterator[Evidence]:
    """Rank correlations of what was registered with the loss in extrapolation."""
    reach = max(n for o in found for n in o.last)
    loss = [math.log(o.last[reach]) for o in found]
    predictors: dict[str, list[float]] = {
        RANK: [o.prediction["layered"]["beyond"] for o in found],
        "leak, worst head": [o.leak(reach) for o in found],
        LEAK: [o.leak(reach, worst=False) for o in found],
        "verdict (0 or 1)": [float(not o.prediction["extrapolates"]) for o in found],
        PLAIN: [o.registered("row_trf") for o in found],
    }
    ranked = {name: rank_correlation(values, loss) for name, values in predictors.items()}
    verdict = predictors["verdict (0 or 1)"]
    leak = predictors[LEAK]
    gain, low, high = rank_gain(leak, verdict, loss)
    fails = [x >= math.log(1 + TOLERANCE) for x in loss]
    table = (
        ("predictor", "Spearman's rho", "95 %", "Kendall's tau", "AUC of failing"),
        *(
            (
                name,
                f"{r.rho:.2f}",
                f"{r.rho_low:.2f} to {r.rho_high:.2f}",
                f"{r.tau:.2f}",
                f"{area_under_curve(predictors[name], fails):.2f}",
            )
            for name, r in ranked.items()
        ),
    )
    best = max(ranked, key=lambda name: ranked[name].rho)
    better = "better" if low > 0 else "worse" if high < 0 else "not distinguishably better or worse"
    yield told(
        "forecast",
        len(found),
        {name: (r.rho, r.rho_low, r.rho_high) for name, r in ranked.items()}
        | {"gain": (gain, low, high)},
        table,
        tuple(o.runs for o in found),
        reach=reach,
        best=best,
        ranked={"best": ranked[best], "leak": ranked[LEAK], "verdict": ranked["verdict (0 or 1)"]},
        better=better,
    )


def coverage(found: Sequence[Model]) -> Iterator[Evidence]:
    """Chi et al.'s rule against the gradient mass, as predictors of the loss."""
    reach = max(n for o in found for n in o.last)
    loss = [math.log(o.last[reach]) for o in found]
    fails = [x >= math.log(1 + TOLERANCE) for x in loss]
    covered = [o.gradient <= o.trained for o in found]
    right = sum(c != f for c, f in zip(covered, fails, strict=True))
    low, high = proportion(right, len(found))
    field = rank_correlation([o.gradient for o in found], loss)
    mass = rank_correlation([-o.mass for o in found], loss)
    gain, gain_low, gain_high = rank_gain(
        [-o.mass for o in found], [o.gradient for o in found], loss
    )
    strict = [o.name for o, c, f in zip(found, covered, fails, strict=True) if not c and not f]
    loose = [o.name for o, c, f in zip(found, covered, fails, strict=True) if c and f]
    yield told(
        "coverage",
        len(found),
        {
            "right": right,
            "strict": len(strict),
            "lenient": len(loose),
            "interval": (low, high),
            "gradient ERF": (field.rho, field.rho_low, field.rho_high),
            "mass": (mass.rho, mass.rho_low, mass.rho_high),
            "gain": (gain, gain_low, gain_high),
        },
        (
            ("encoding", "gradient ERF", "mass within", "ratio"),
            *(
                (o.name, f"{o.gradient:.0f}", f"{o.mass:.3f}", f"{o.last[reach]:.3f}")
                for o in sorted(found, key=lambda o: -o.mass)
            ),
        ),
        tuple(o.runs for o in found),
        reach=reach,
        strict=strict,
        lenient=loose,
        field=field,
        mass=mass,
    )
