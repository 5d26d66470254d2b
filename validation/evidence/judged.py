"""Rules that forecast, judged: on the cases of a registration, and on printed results.

A rule is right where it says beforehand whether perplexity holds. Beside its score on all cases
stands that on cases *near* its threshold, within a factor of two, so that easy cases cannot carry
it, and beside every rule the null: the answer that is more often right whatever the case. Its size
is judged by R^2 of the log ratio, as forecast, and with the one constant fitted without the family.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farfield.theory.encodings import Encoding, encoding
from farfield.validation.evidence.told import told
from farfield.validation.forms import FORMS
from farfield.validation.harness.measures.evidence import Evidence
from farfield.validation.harness.measures.extrapolation import TOLERANCE
from farfield.validation.harness.measures.statistics import proportion
from farfield.validation.published import PrintedNumber, table
from farfield.validation.reference.committed import Row
from farfield.validation.reference.registration import (
    REGISTRATIONS,
    USUAL,
    Registration,
    identity,
    titled,
)
from farfield.validation.reference.table import LAST, Model
from farfield.validation.reference.trials import left_out, slope, trials
from farfield.validation.rules import ORDER_LOSS, RULES, Calibrated, Case, case

LIMIT = math.log1p(TOLERANCE)
NEAR = 2.0  # a quantity within this factor of its threshold is near


@dataclass(frozen=True)
class Said:
    """What one rule said of one case, and what came out."""

    name: str
    family: str
    quantity: float
    threshold: float
    holds: bool
    forecast: float
    loss: float

    @property
    def right(self) -> bool:
        """Whether it holds exactly if the rule says so."""
        return self.holds == (self.loss < LIMIT)

    @property
    def near(self) -> bool:
        """Whether the quantity is near the threshold."""
        ends = sorted((abs(self.quantity), abs(self.threshold)))
        return ends[0] > 0 and ends[1] < NEAR * ends[0]


def said(registration: Registration) -> dict[str, list[Said]]:
    """By rule, every case of a registration that has a result and was forecast before it."""
    outcomes = registration.outcomes()
    found: dict[str, list[Said]] = {}
    for part in (registration.predictions, *registration.added):
        for c in part["cases"]:
            outcome = outcomes.get(identity(c))
            if outcome is None:
                continue
            for rule, forecast in c["forecasts"].items():
                found.setdefault(rule, []).append(
                    Said(
                        titled(c),
                        str(c["family"]).split()[0],
                        forecast["quantity"],
                        part["rules"][rule]["threshold"],
                        forecast["holds"],
                        forecast["log_ratio"],
                        outcome.loss,
                    )
                )
    return found


def judge(registration: Registration) -> Evidence | None:
    """Every rule on what it was registered for; None before there is a result."""
    by_rule = said(registration)
    if not by_rule:
        return None
    later = {name for part in registration.added for name in part["rules"]}
    first = {rule: rows for rule, rows in by_rule.items() if rule not in later}
    leading = max(first, key=lambda rule: _share(first[rule]))
    return _scored(
        "registration",
        by_rule,
        by_rule["majority"],
        title=registration.plan.title,
        leading=leading,
        wrong=[s.name for s in first[leading] if not s.right],
        later={r: len(by_rule[r]) for r in (*RULES, *FORMS) if r in later and r in by_rule},
    )


def _scored(
    key: str, by_rule: Mapping[str, Sequence[Said]], every: Sequence[Said], **more: Any
) -> Evidence:
    """How often each rule is right, the best first, beside the better constant answer."""
    held = sum(s.loss < LIMIT for s in every)
    null = max(held, len(every) - held)
    return told(
        key,
        len(every),
        {rule: sum(s.right for s in rows) for rule, rows in by_rule.items()} | {"null": null},
        (
            ("rule", "right", "95 %", "near the threshold", "R² of the size", "without the family"),
            *(_row(rule, by_rule[rule]) for rule in _ordered(by_rule)),
        ),
        tuple(dict.fromkeys(s.name for s in every)),
        held=held,
        **more,
    )


def _ordered(by_rule: Mapping[str, Sequence[Said]]) -> list[str]:
    return sorted(by_rule, key=lambda rule: -_share(by_rule[rule]))


def _share(rows: Sequence[Said]) -> float:
    return sum(s.right for s in rows) / len(rows)


def _row(rule: str, rows: Sequence[Said]) -> tuple[str, ...]:
    right, near = sum(s.right for s in rows), [s for s in rows if s.near]
    low, high = proportion(right, len(rows))
    loss, quantity, forecast = (
        np.array([getattr(s, what) for s in rows]) for what in ("loss", "quantity", "forecast")
    )
    return (
        rule,
        f"{right} of {len(rows)}",
        f"{low:.0%} to {high:.0%}",
        f"{sum(s.right for s in near)} of {len(near)}" if near else "none",
        _r2(loss, forecast),
        _r2(loss, left_out(quantity, loss, [s.family for s in rows])),
    )


def _r2(loss: np.ndarray, forecast: np.ndarray) -> str:
    spread = float(((loss - loss.mean()) ** 2).sum())
    if not spread or not np.isfinite(forecast).all():
        return "none"
    return f"{1 - float(((loss - forecast) ** 2).sum()) / spread:.2f}"


def law(later: Sequence[Said]) -> Evidence:
    """The law behind a forecast, on every trial, each forecast without its family.

    Args:
        later: what was said of the trials that came out after the law was written down.
    """
    known = [t for t in trials() if t.steps == USUAL["steps"]]
    loss, value = np.array([t.loss for t in known]), np.array([t.value for t in known])
    constant = slope(value, loss)
    without = left_out(value, loss, [t.family for t in known])
    missed = (without < LIMIT) != (loss < LIMIT)
    unseen = _r2(*(np.array([getattr(s, what) for s in later]) for what in ("loss", "forecast")))
    return told(
        "law",
        len(known),
        {
            "slope": constant,
            "R2": float(_r2(loss, constant * value)),
            "left out": float(_r2(loss, without)),
            "right": int((~missed).sum()),
            "later": len(later),
            "later right": sum(s.right for s in later),
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
    yield law([s for r in REGISTRATIONS for s in said(r).get(ORDER_LOSS, [])])
    yield outside(numbers)


# -- printed results ------------------------------------------------------------------------------

LAYERS = {"chi2023": 12, "sun2023": 24}
HEADS = {"chi2023": 12, "sun2023": 16}


TABLES = ("chi2023_table1", "chi2023_table4", "chi2023_table3", "sun2023_table2", "sun2023_table6")
_READ: Mapping[str, Callable[[str, int], Encoding]] = {
    "ALiBi": lambda variant, heads: _alibi(variant, heads),
    "Alibi": lambda variant, heads: _alibi(variant, heads),
    "Windowed": lambda variant, heads: encoding("window", w=int(variant.partition("=")[2])),
    "Sandwich": lambda variant, heads: encoding("sandwich", heads=heads),
    "Sandwich_Smoothed": lambda variant, heads: encoding("sandwich_smoothed", heads=heads),
}


def _alibi(variant: str, heads: int) -> Encoding:
    name, _, value = variant.partition("=")
    if name == "h":  # the same slope 2^-h in every head
        return encoding(f"-n/{2 ** int(value)}")
    if name == "delta" and int(value):
        return encoding("alibi", heads=heads, dialect="shift", delta=int(value))
    return encoding("alibi", heads=heads)


def printed() -> Iterator[tuple[Model, Case]]:
    """The models of the printed tables whose bias has no learned part, and what a rule sees."""
    for name in TABLES:
        groups: dict[tuple[str, str, str], list[PrintedNumber]] = {}
        for cell in table(name):
            if cell.encoding in _READ and cell.metric == "perplexity":
                groups.setdefault((cell.dataset, cell.encoding, cell.variant), []).append(cell)
        for (dataset, kind, variant), cells in groups.items():
            paper, trained = cells[0].paper, cells[0].train_length
            assert trained is not None
            by_length = {c.eval_length: c.value for c in cells if c.eval_length and c.value}
            ratios = {n: {0: p / by_length[trained]} for n, p in by_length.items()}
            name = f"{kind} {variant}".strip() + f", {dataset}"
            model = Model(name, trained=trained, ratio={LAST: ratios})
            found = _READ[kind](variant, HEADS[paper])
            yield model, case(found, trained, max(by_length), LAYERS[paper])


def outside(numbers: Row) -> Evidence:
    """The rules, with the numbers that they were registered with, on printed results.

    Args:
        numbers: the rules of a registration, each with threshold and slope.
    """
    by_rule: dict[str, list[Said]] = {}
    for m, its_case in printed():
        for rule, its in numbers.items():
            c = Calibrated(rule, its["threshold"], its["slope"])
            quantity = c.rule.quantity(its_case)
            by_rule.setdefault(rule, []).append(
                Said(
                    m.name,
                    m.name.partition(" ")[0],
                    quantity,
                    c.threshold,
                    c.holds(quantity),
                    c.log_ratio(quantity),
                    m.loss,
                )
            )
    best, *_ = _ordered(by_rule)
    every = by_rule[best]
    return _scored("outside", by_rule, every, tolerance=TOLERANCE, best=best, order=ORDER_LOSS)
