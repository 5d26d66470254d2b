"""Who extrapolates: verdict, leak, registered rank and coverage rule as forecasts."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence

from farfield.validation.evidence.sentences import Evidence
from farfield.validation.evidence.told import told
from farfield.validation.extrapolation import LIMIT, TOLERANCE, holds
from farfield.validation.reference.observations import PLAIN
from farfield.validation.reference.table import LAST, WHOLE, Model
from farfield.validation.repeated import (
    area_under_curve,
    proportion,
    rank_correlation,
    rank_gain,
)

RANK = "registered rank (layered mass beyond the training length)"


LEAK = "leak, mean of heads"


def verdicts(found: Sequence[Model]) -> Iterator[Evidence]:
    """Verdict against Definition 0.1, as a confusion table, for each protocol and reach."""
    far = max(n for o in found for n in o.whole)
    reach = max(n for o in found for n in o.last)
    longer = [(WHOLE, reach), (WHOLE, far)] if far != reach else []
    for protocol, longest in [(LAST, reach), *longer]:
        counted = [o for o in found if longest in o.ratios(protocol)]
        rises = [[r - 1 for n, r in o.ratios(protocol).items() if n <= longest] for o in counted]
        printed = [holds(row, both_ways=True) for row in rises]
        one_sided = [holds(row) for row in rises]
        said = [o.prediction["extrapolates"] for o in counted]
        outcomes: dict[str, dict[bool, list[str]]] = {}
        for o, kept in zip(counted, one_sided, strict=True):
            named = f"{o.name} {o.ratios(protocol)[longest]:.2f}"
            outcomes.setdefault(_kind(o), {True: [], False: []})[kept].append(named)
        right = sum(map(operator.eq, one_sided, said))
        yield told(
            "verdict",
            len(counted),
            {
                "printed": sum(map(operator.eq, printed, said)),
                "one-sided": right,
                "interval": proportion(right, len(counted)),
                "tolerance": TOLERANCE,
            },
            (
                ("verdict", "extrapolates", "fails"),
                *(
                    (kind, *("; ".join(by[kept]) or "none" for kept in (True, False)))
                    for kind, by in outcomes.items()
                ),
            ),
            tuple(o.runs for o in counted),
            times=longest // found[0].trained,
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
    fails = [x >= LIMIT for x in loss]
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
    fails = [x >= LIMIT for x in loss]
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
