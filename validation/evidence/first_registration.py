"""The first registration: does the theory predict, and how much of that is more than a null answer?

Every answer has a number, an interval, the number of encodings behind it, and their runs. The
predictions were hashed before the first run (`farfield.validation.reference`). Most encodings had
been piloted (`UNSEEN` names the others). A number that was fitted says so: it was fitted on one
half of the encodings and judged on the other, over many splits.
"""

from __future__ import annotations

import math
import operator
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from farfield.theory.answers.names import one_of
from farfield.validation.evidence import fields
from farfield.validation.evidence.told import Evidence, told
from farfield.validation.extrapolation import LIMIT, TOLERANCE, holds
from farfield.validation.reference.committed import HERE, Row
from farfield.validation.reference.first import PLAIN, blind, longest, observations
from farfield.validation.reference.table import LAST, WHOLE, Model, results
from farfield.validation.repeated import (
    area_under_curve,
    proportion,
    rank_correlation,
    rank_gain,
)

RANK = "registered rank (layered mass beyond the training length)"
LEAK, VERDICT = "leak, mean of heads", "verdict (0 or 1)"
LEAST = 5  # encodings below which nothing is concluded


def verdict(found: Sequence[Model]) -> Iterator[Evidence]:
    """Verdict against Definition 0.1, as a confusion table, for each protocol and reach."""
    far, reach = max(n for o in found for n in o.ratios(WHOLE)), longest(found)
    asked = [(LAST, reach), *([(WHOLE, reach), (WHOLE, far)] if far != reach else [])]
    for protocol, most in asked:
        counted = [o for o in found if most in o.ratios(protocol)]
        rises = [[r - 1 for n, r in o.ratios(protocol).items() if n <= most] for o in counted]
        kept, said = [holds(row) for row in rises], [o.prediction["extrapolates"] for o in counted]
        printed = [holds(row, both_ways=True) for row in rises]
        outcomes: dict[str, dict[bool, list[str]]] = {}
        for o, one in zip(counted, kept, strict=True):
            named = f"{o.name} {o.ratios(protocol)[most]:.2f}"
            outcomes.setdefault(_kind(o), {True: [], False: []})[one].append(named)
        right = sum(map(operator.eq, kept, said))
        yield told(
            "verdict",
            counted,
            {
                "printed": sum(map(operator.eq, printed, said)),
                "one-sided": right,
                "interval": proportion(right, len(counted)),
                "tolerance": TOLERANCE,
            },
            outcomes.items(),
            times=most // found[0].trained,
            longest=most,
            protocol=protocol,
        )


def _kind(o: Model) -> str:
    verdict = str(o.prediction["verdict"]).replace("_", " ")
    return "bounded support (BCA)" if o.mask else verdict


def _better(found: Sequence[bool]) -> int:
    """How often the better constant answer is right."""
    return max(sum(found), len(found) - sum(found))


def _weights(o: Model) -> frozenset[str]:
    """The models of an encoding, by the hash of their weights."""
    return frozenset(
        run["training"]["weights_sha256"]
        for run in results()
        if (run["encoding"]["label"], run["preset"]["length"]) == (o.label, o.trained)
    )


def verdicts(found: Sequence[Model]) -> Evidence:
    """The verdict beside a constant answer; which rows were blind, which are one model."""
    additive, unseen = [o for o in found if o.biased], [o for o in found if blind(o)]
    said = {
        (
            o.prediction["extrapolates"],
            round(o.prediction["layered"]["beyond"], 6),
            o.prediction["layered"]["tokens"],
        )
        for o in found
    }

    def right(some: Sequence[Model]) -> int:
        return sum(o.holds() == o.prediction["extrapolates"] for o in some)

    numbers = {
        "right": right(found),
        "null": _better([o.holds() for o in found]),
        "additive": right(additive),
        "additive null": _better([o.holds() for o in additive]),
        "unseen": right(unseen),
        "models": len(set(map(_weights, found))),
        "values": len(said),
    }
    sizes = {"additive": len(additive), "unseen": len(unseen)}
    return told("referee verdicts", found, numbers, (), **sizes)


def referee(found: Sequence[Model]) -> Iterator[Evidence]:
    """The answers that qualify the others."""
    yield verdicts(found)
    yield fields.fields(found)
    yield from fields.paired(found)
    yield from fields.spread(found)


def forecast(found: Sequence[Model]) -> Iterator[Evidence]:
    """Rank correlations of what was registered with the loss in extrapolation."""
    reach = longest(found)
    loss = [math.log(o.last[reach]) for o in found]
    predictors: dict[str, list[float]] = {
        RANK: [o.prediction["layered"]["beyond"] for o in found],
        "leak, worst head": [o.leak(reach) for o in found],
        LEAK: [o.leak(reach, worst=False) for o in found],
        VERDICT: [float(not o.prediction["extrapolates"]) for o in found],
        PLAIN: [o.registered("row_trf") for o in found],
    }
    ranked = {name: rank_correlation(values, loss) for name, values in predictors.items()}
    gain = rank_gain(predictors[LEAK], predictors[VERDICT], loss)
    fails = [x >= LIMIT for x in loss]
    best = max(ranked, key=lambda name: ranked[name].rho)
    yield told(
        "forecast",
        found,
        {name: r.spearman for name, r in ranked.items()} | {"gain": gain},
        [(name, r, area_under_curve(predictors[name], fails)) for name, r in ranked.items()],
        reach=reach,
        best=best,
        ranked={"best": ranked[best], "leak": ranked[LEAK], "verdict": ranked[VERDICT]},
    )


def coverage(found: Sequence[Model]) -> Iterator[Evidence]:
    """Chi et al.'s rule against the gradient mass, as predictors of the loss."""
    reach = longest(found)
    loss, mass = [math.log(o.last[reach]) for o in found], [-o.mass for o in found]
    gradient = [o.gradient for o in found]
    covered = [
        (o.name, o.gradient <= o.trained, x >= LIMIT) for o, x in zip(found, loss, strict=True)
    ]
    right = sum(inside != fails for _, inside, fails in covered)
    strict = [name for name, inside, fails in covered if not inside and not fails]
    loose = [name for name, inside, fails in covered if inside and fails]
    ranks = {"field": rank_correlation(gradient, loss), "mass": rank_correlation(mass, loss)}
    yield told(
        "coverage",
        found,
        {
            "right": right,
            "strict": len(strict),
            "lenient": len(loose),
            "interval": proportion(right, len(found)),
            "gradient ERF": ranks["field"].spearman,
            "mass": ranks["mass"].spearman,
            "gain": rank_gain(mass, gradient, loss),
        },
        sorted(found, key=lambda o: -o.mass),
        reach=reach,
        strict=strict,
        lenient=loose,
        **ranks,
    )


@cache
def statements() -> Mapping[str, Any]:
    """What the papers say of runs, as data: a text, runs, and what their loss must be. Groups are
    encodings that a paper shows together."""
    return tomllib.loads((HERE / "statements.toml").read_text(encoding="utf-8"))


def unreproduced(found: Sequence[Model]) -> Iterator[Evidence]:
    """Statements of the papers beside the numbers here, those that fail first."""
    reach = longest(found)
    ratios, times = {o.name: o.last[reach] for o in found}, reach // found[0].trained
    checks = [
        (said["text"].format(run=run, reach=times), run, ratio, _true(said, ratio, ratios))
        for said in statements()["statement"]
        for run in said["runs"]
        if (ratio := ratios.get(run)) is not None
    ]
    checks.sort(key=operator.itemgetter(3))
    yield told(
        "not reproduced",
        found,
        {statement: ok for statement, *_, ok in checks},
        checks,
        n=len(checks),
        failed=sum(not ok for *_, ok in checks),
        layers=found[0].layers,
        trained=found[0].trained,
    )


def _true(said: Mapping[str, Any], ratio: float, ratios: Mapping[str, float]) -> bool:
    """Whether a statement holds for a run; against a run that is not there it does not."""
    if "ratio" in said:
        return holds([ratio - 1]) == (said["ratio"] == "holds")
    given = said.get("below", said.get("above"))
    bound = ratios.get(given, math.nan) if isinstance(given, str) else given
    return bool(ratio < bound if "below" in said else ratio > bound)


QUESTIONS: Mapping[str, Callable[[Sequence[Model]], Iterable[Evidence]]] = {
    "verdict": verdict,
    "referee": referee,
    "forecast": forecast,
    "receptive fields": lambda found: fields.receptive_fields(
        found, {group["name"]: group["runs"] for group in statements()["group"]}
    ),
    "depth": fields.depth,
    "coverage": coverage,
    "resolution": fields.resolutions,
    "not reproduced": unreproduced,
}


def answers(
    results: Sequence[Row] | None = None, length: int = 64, *, only: Sequence[str] = ()
) -> tuple[Evidence, ...]:
    """The answers that the results at a training length allow; none where there are too few.

    Args:
        results: committed results in JSON form; None takes those of this package.
        length: the training length in tokens.
        only: names among `QUESTIONS`; none given takes all.

    Raises:
        InputError: a name that is not among them.
    """
    for name in only:
        one_of(name, "question", QUESTIONS)
    found = observations(results, length)
    if len(found) < LEAST:
        return ()
    return tuple(a for name in only or QUESTIONS for a in QUESTIONS[name](found))
