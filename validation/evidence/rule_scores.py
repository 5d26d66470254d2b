"""Rules that forecast, judged: on the cases of a registration, and on printed results.

A rule is right where it forecasts whether perplexity holds. It has a score on all cases, and one on
cases *near* its threshold, within a factor of two, so that easy cases cannot carry it. Every rule
is compared with the null: the answer that is more often right whatever the case. Its size is judged
by R^2 of the log ratio, as forecast, and with the one constant fitted without the family.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from farfield.validation.evidence.sentences import Evidence
from farfield.validation.evidence.told import told
from farfield.validation.extrapolation import LIMIT, TOLERANCE
from farfield.validation.forms import FORMS
from farfield.validation.published import bias_of, columns, curve, table
from farfield.validation.reference.committed import Row
from farfield.validation.reference.known_cases import left_out, slope, trials
from farfield.validation.reference.registration import (
    REGISTRATIONS,
    USUAL,
    Identity,
    Registration,
    identity,
    titled,
)
from farfield.validation.reference.table import LAST, Model
from farfield.validation.repeated import proportion
from farfield.validation.rules import ORDER_LOSS, RULES, Calibrated, Case, case

NEAR = 2.0  # a quantity within this factor of its threshold is near


@dataclass(frozen=True)
class Outcome:
    """One case: its predictions, made before its runs, and its result.

    Fields:
        name, family: of the case.
        said: by rule, its `quantity` and `threshold`, whether perplexity `holds`, and `log_ratio`.
        loss: the measured log ratio, the largest of any length.
        named: what identifies it.
        further: the log ratio on further targets, its standard error, and how many models have it.
    """

    name: str
    family: str
    said: Mapping[str, Row]
    loss: float
    named: Row = field(default_factory=dict)
    further: tuple[float, float, int] = (math.nan, math.nan, 0)

    def right(self, rule: str) -> bool:
        """Whether perplexity holds exactly if the rule says so."""
        return bool(self.said[rule]["holds"] == (self.loss < LIMIT))

    def near(self, rule: str) -> bool:
        """Whether the quantity is near the threshold."""
        low, high = sorted(abs(self.said[rule][end]) for end in ("quantity", "threshold"))
        return bool(low > 0 and high < NEAR * low)


def outcomes(registration: Registration) -> list[Outcome]:
    """The cases of a registration that have results, in the order of its predictions."""
    said: dict[Identity, tuple[Row, dict[str, Row]]] = {}
    for part in (registration.predictions, *registration.added):
        for c in part["cases"]:
            for rule, forecast in c["forecasts"].items():
                numbers = {**forecast, "threshold": part["rules"][rule]["threshold"]}
                said.setdefault(identity(c), (c, {}))[1][rule] = numbers
    came_out, further = registration.outcomes(), _further(registration)
    return [
        Outcome(
            titled(c),
            str(c["family"]).split()[0],
            rules,
            came_out[name].loss,
            c,
            further.get(name, (math.nan, math.nan, 0)),
        )
        for name, (c, rules) in said.items()
        if name in came_out
    ]


def _further(registration: Registration) -> dict[Identity, tuple[float, float, int]]:
    """By case, the largest log ratio on further targets, with its error and the count of models."""
    runs: dict[Identity, list[Mapping[int, tuple[float, float]]]] = {}
    for run in registration.results():
        for m in run["measurements"]:
            named = {**m["inference"], **run["preset"], "label": run["encoding"]["label"]}
            if rows := run.get("more_targets", {}).get(m["inference"]["label"]):
                longer = {p["length"]: _log(p) for p in rows if p["length"] > p["base"]}
                runs.setdefault(identity(named), []).append(longer)
    return {
        name: (*max(mean([run[n] for run in found]) for n in found[0]), len(found))
        for name, found in runs.items()
    }


def _log(p: Row) -> tuple[float, float]:
    """The logarithm of a ratio, and its standard error."""
    width = math.log(p["ratio_high"]) - math.log(p["ratio_low"])
    return math.log(p["ratio"]), width / (2 * 1.959964)


def mean(runs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The mean over models, which share their targets: their errors do not average out."""
    losses, errors = np.array(runs).T
    return float(losses.mean()), float(errors.mean())


def by_rule(found: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """The cases of which each rule spoke."""
    rules = dict.fromkeys(rule for o in found for rule in o.said)
    return {rule: [o for o in found if rule in o.said] for rule in rules}


def judge(registration: Registration) -> Evidence | None:
    """Every rule on what it was registered for; None before there is a result."""
    found = outcomes(registration)
    if not found:
        return None
    later = {name for part in registration.added for name in part["rules"]}
    spoken = by_rule(found)
    leading = max((rule for rule in spoken if rule not in later), key=lambda r: _share(r, spoken))
    return _scored(
        "registration",
        found,
        title=registration.plan.title,
        leading=leading,
        wrong=[o.name for o in spoken[leading] if not o.right(leading)],
        later={r: len(spoken[r]) for r in (*RULES, *FORMS) if r in later and r in spoken},
    )


def _scored(key: str, found: Sequence[Outcome], **more: Any) -> Evidence:
    """How often each rule is right, the best first, beside the better constant answer."""
    spoken = by_rule(found)
    ordered = sorted(spoken, key=lambda rule: -_share(rule, spoken))
    held = sum(o.loss < LIMIT for o in found)
    null = max(held, len(found) - held)
    return told(
        key,
        len(found),
        {rule: _right(rule, rows) for rule, rows in spoken.items()} | {"null": null},
        (
            ("rule", "right", "95 %", "near the threshold", "R² of the size", "without the family"),
            *(_row(rule, spoken[rule]) for rule in ordered),
        ),
        tuple(dict.fromkeys(o.name for o in found)),
        held=held,
        best=ordered[0],
        **more,
    )


def _right(rule: str, found: Sequence[Outcome]) -> int:
    return sum(o.right(rule) for o in found)


def _share(rule: str, spoken: Mapping[str, Sequence[Outcome]]) -> float:
    return _right(rule, spoken[rule]) / len(spoken[rule])


def _row(rule: str, found: Sequence[Outcome]) -> tuple[str, ...]:
    right, near = _right(rule, found), [o for o in found if o.near(rule)]
    low, high = proportion(right, len(found))
    loss = np.array([o.loss for o in found])
    quantity, forecast = (
        np.array([o.said[rule][what] for o in found]) for what in ("quantity", "log_ratio")
    )
    return (
        rule,
        f"{right} of {len(found)}",
        f"{low:.0%} to {high:.0%}",
        f"{_right(rule, near)} of {len(near)}" if near else "none",
        _r2(loss, forecast),
        _r2(loss, left_out(quantity, loss, [o.family for o in found])),
    )


def _r2(loss: np.ndarray, forecast: np.ndarray) -> str:
    spread = float(((loss - loss.mean()) ** 2).sum())
    if not spread or not np.isfinite(forecast).all():
        return "none"
    return f"{1 - float(((loss - forecast) ** 2).sum()) / spread:.2f}"


def law(later: Sequence[Outcome]) -> Evidence:
    """The law behind a forecast, on every trial, each forecast without its family.

    Args:
        later: the cases that came out after the law was written down.
    """
    known = [t for t in trials() if t.steps == USUAL["steps"]]
    loss, value = np.array([t.loss for t in known]), np.array([t.value for t in known])
    constant = slope(value, loss)
    without = left_out(value, loss, [t.family for t in known])
    missed = (without < LIMIT) != (loss < LIMIT)
    measured = np.array([o.loss for o in later])
    unseen = _r2(measured, np.array([o.said[ORDER_LOSS]["log_ratio"] for o in later]))
    return told(
        "law",
        len(known),
        {
            "slope": constant,
            "R2": float(_r2(loss, constant * value)),
            "left out": float(_r2(loss, without)),
            "right": int((~missed).sum()),
            "later": len(later),
            "later right": _right(ORDER_LOSS, later),
            "later R2": unseen,
        },
        (
            ("trial", "family", "order loss", "log ratio", "forecast without the family"),
            *(
                (t.name, t.family, f"{t.value:.3f}", f"{t.loss:+.3f}", f"{x:+.3f}")
                for t, x in sorted(zip(known, without, strict=True), key=lambda tx: tx[0].value)
            ),
        ),
        tuple(t.name for t in known),
        wrong=[t.name for t, wrong in zip(known, missed, strict=True) if wrong],
        tolerance=TOLERANCE,
    )


def registered_rules() -> Collection[str]:
    """The rules that spoke before the first run."""
    found: Collection[str] = REGISTRATIONS[0].predictions["rules"].keys()
    return found


def answers() -> Iterator[Evidence]:
    """What the further registrations say, the outside test last."""
    numbers: dict[str, Row] = {}
    for registration in REGISTRATIONS:
        if judged := judge(registration):
            yield judged
        for part in (registration.predictions, *registration.added):
            if not FORMS.keys() & part["rules"].keys():  # as they were before the forms
                numbers |= part["rules"]
    yield law([o for r in REGISTRATIONS for o in outcomes(r) if ORDER_LOSS in o.said])
    yield outside(numbers)


# -- printed results ------------------------------------------------------------------------------

LAYERS = {"chi2023": 12, "sun2023": 24}
TABLES = ("chi2023_table1", "chi2023_table4", "chi2023_table3", "sun2023_table2", "sun2023_table6")


def printed() -> Iterator[tuple[Model, Case]]:
    """The models of the printed tables whose bias has no learned part, and what a rule sees."""
    for name in TABLES:
        for (dataset, kind, variant), cells in columns(table(name)).items():
            found, trained = bias_of(cells[0]), cells[0].train_length
            if found is None or trained is None:
                continue
            by_length = curve(cells)
            ratios = {n: {0: p / by_length[trained]} for n, p in by_length.items()}
            title = f"{kind} {variant}".strip() + f", {dataset}"
            model = Model(title, trained=trained, ratio={LAST: ratios})
            yield model, case(found, trained, max(by_length), LAYERS[cells[0].paper])


def outside(numbers: Row) -> Evidence:
    """The rules, with the numbers that they were registered with, on printed results.

    Args:
        numbers: the rules of a registration, each with threshold and slope.
    """
    rules = [
        Calibrated(RULES[name], its["threshold"], its["slope"], RULES[name].given(()))
        for name, its in numbers.items()
    ]
    found = []
    for m, its_case in printed():
        said = {c.rule.name: {**c.says(its_case), "threshold": c.threshold} for c in rules}
        found.append(Outcome(m.name, m.name.partition(" ")[0], said, m.loss))
    return _scored("outside", found, tolerance=TOLERANCE, order=ORDER_LOSS)
