"""Who extrapolates: verdict, leak, registered rank and coverage rule as forecasts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

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
        yield Evidence(
            f"Does the verdict say who extrapolates to {longest // trained} times the training "
            f"length ({protocol} perplexity, {longest} tokens)?",
            f"One-sided (no increase of {TOLERANCE:.0%} or more at any tested length) the verdict "
            f"is right for {right['one-sided']} of {n} ({low:.0%} to {high:.0%}), as printed (no "
            f"change either way) for {right['printed']} of {n}.",
            n,
            {**right, "interval": (low, high), "tolerance": TOLERANCE},
            table,
            tuple(o.runs for o in counted),
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
    yield Evidence(
        f"Which prediction ranks the loss at {reach} tokens (last token) best, and is the leak, "
        "which has a size, better than the verdict, which has none?",
        f"Best is the {best}, rho = {ranked[best].rho_text()}. The leak (mean of heads) has rho = "
        f"{ranked[LEAK].rho_text()}, the verdict {ranked['verdict (0 or 1)'].rho_text()}: "
        f"the leak is {better}, by {gain:+.2f} ({low:+.2f} to {high:+.2f}).",
        len(found),
        {name: (r.rho, r.rho_low, r.rho_high) for name, r in ranked.items()}
        | {"gain": (gain, low, high)},
        table,
        tuple(o.runs for o in found),
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
    yield Evidence(
        "Chi et al.: an encoding extrapolates if its gradient ERF(0.99) is covered by the training "
        "length. Is the rule right, and is the gradient mass within the training length better?",
        f"The rule is right for {right} of {len(found)} ({low:.0%} to {high:.0%}); too strict for "
        f"{', '.join(strict) or 'none'}, too lenient for {', '.join(loose) or 'none'}. Ranks of "
        f"the loss at {reach} tokens: gradient ERF rho = {field.rho_text()}, lack of mass within "
        f"the training length rho = {mass.rho_text()}, {gain:+.2f} ({gain_low:+.2f} to "
        f"{gain_high:+.2f}).",
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
    )
