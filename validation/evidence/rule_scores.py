"""Rules and forms that forecast, judged: on the cases of a registration, and on printed results.

A rule is right where it forecasts whether perplexity holds. It has a score on all cases, and one on
cases *near* its threshold, within a factor of two, so that easy cases cannot carry it. Every rule
is compared with the null: the answer that is more often right whatever the case. Its size is judged
by R^2 of the log ratio, as forecast, and with the one constant fitted without the family.

The forms that compete are judged on the further targets of the cases that were open when they were
written down. A case is *decided* where its log ratio lies at least two standard errors from the
logarithm of the tolerance; `reference/README.md` says beforehand how the forms are judged.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from farfield.theory.answers.number import plural
from farfield.validation.evidence.told import Evidence, told
from farfield.validation.extrapolation import LIMIT, TOLERANCE
from farfield.validation.published import bias_of, columns, curve, table
from farfield.validation.reference.committed import Row
from farfield.validation.reference.known_cases import left_out, slope, trials
from farfield.validation.reference.registration import (
    REGISTRATIONS,
    USUAL,
    Identity,
    Registration,
    identity,
    numbers,
    titled,
)
from farfield.validation.reference.table import LAST, Model
from farfield.validation.repeated import proportion
from farfield.validation.rules import ORDER_LOSS, RULES, case, forecasts

NEAR = 2.0  # a quantity within this factor of its threshold is near


def outcomes(registration: Registration) -> list[Model]:
    """The cases of a registration that have results, in the order of its predictions.

    The `prediction` of each identifies it. Its `forecasts` were registered before its runs: by rule
    the `quantity` and `threshold`, whether perplexity `holds`, and `log_ratio`.
    """
    said: dict[Identity, dict[str, Any]] = {}
    for part in registration.parts:
        for c in part["cases"]:
            spoken = said.setdefault(identity(c), {**c, "forecasts": {}})["forecasts"]
            for rule, forecast in c["forecasts"].items():
                spoken[rule] = {**forecast, "threshold": part["rules"][rule]["threshold"]}
    came_out = registration.outcomes()
    return [
        replace(came_out[name], name=titled(c), prediction=c)
        for name, c in said.items()
        if name in came_out
    ]


def is_right(m: Model, rule: str) -> bool:
    """Whether perplexity holds exactly if the rule says so."""
    return bool(m.forecasts[rule]["holds"] == m.holds())


def is_near(m: Model, rule: str) -> bool:
    """Whether the quantity is near the threshold."""
    low, high = sorted(abs(m.forecasts[rule][end]) for end in ("quantity", "threshold"))
    return bool(low > 0 and high < NEAR * low)


def by_rule(found: Sequence[Model]) -> dict[str, list[Model]]:
    """The cases of which each rule spoke."""
    rules = dict.fromkeys(rule for o in found for rule in o.forecasts)
    return {rule: [o for o in found if rule in o.forecasts] for rule in rules}


def judge(registration: Registration) -> Evidence | None:
    """Every rule on what it was registered for; None before there is a result."""
    found = outcomes(registration)
    if not found:
        return None
    later = {name for part in registration.parts[1:] for name in part["rules"]}
    spoken = by_rule(found)
    leading = max((rule for rule in spoken if rule not in later), key=lambda r: _share(r, spoken))
    return _scored(
        "registration",
        found,
        title=registration.plan.title,
        leading=leading,
        wrong=[o.name for o in spoken[leading] if not is_right(o, leading)],
        later={r: len(spoken[r]) for r in (*RULES, *FORMS) if r in later and r in spoken},
    )


def _scored(key: str, found: Sequence[Model], **more: Any) -> Evidence:
    """How often each rule is right, the best first, beside the better constant answer."""
    spoken = by_rule(found)
    ordered = sorted(spoken, key=lambda rule: -_share(rule, spoken))
    held = sum(o.holds() for o in found)
    return told(
        key,
        [o.name for o in found],
        {rule: _right(rule, said) for rule, said in spoken.items()}
        | {"null": max(held, len(found) - held)},
        [_row(rule, spoken[rule]) for rule in ordered],
        held=held,
        best=ordered[0],
        **more,
    )


def _right(rule: str, found: Sequence[Model]) -> int:
    return sum(is_right(o, rule) for o in found)


def _share(rule: str, spoken: Mapping[str, Sequence[Model]]) -> float:
    return _right(rule, spoken[rule]) / len(spoken[rule])


def _row(rule: str, found: Sequence[Model]) -> Row:
    """How often a rule is right, near its threshold too, and how well its size fits."""
    near = [o for o in found if is_near(o, rule)]
    loss = np.array([o.loss for o in found])
    quantity, forecast = (
        np.array([o.forecasts[rule][what] for o in found]) for what in ("quantity", "log_ratio")
    )
    families = [o.prediction["family"].split()[0] for o in found]
    return {
        "rule": rule,
        "right": (right := _right(rule, found)),
        "of": len(found),
        "interval": proportion(right, len(found)),
        "near": len(near),
        "near_right": _right(rule, near),
        "size": _r2(loss, forecast),
        "without": _r2(loss, left_out(quantity, loss, families)),
    }


def _r2(loss: np.ndarray, forecast: np.ndarray) -> str:
    spread = float(((loss - loss.mean()) ** 2).sum())
    if not spread or not np.isfinite(forecast).all():
        return "none"
    return f"{1 - float(((loss - forecast) ** 2).sum()) / spread:.2f}"


def law(later: Sequence[Model]) -> Evidence:
    """The law behind a forecast, on every trial, each forecast without its family.

    Args:
        later: the cases that came out after the law was written down.
    """
    known = [t for t in trials() if t["steps"] == USUAL["steps"]]
    loss, value = (np.array([t[what] for t in known]) for what in ("loss", "value"))
    constant = slope(value, loss)
    without = left_out(value, loss, [t["family"] for t in known])
    missed = (without < LIMIT) != (loss < LIMIT)
    measured = np.array([o.loss for o in later])
    unseen = _r2(measured, np.array([o.forecasts[ORDER_LOSS]["log_ratio"] for o in later]))
    return told(
        "law",
        [t["name"] for t in known],
        {
            "slope": constant,
            "R2": float(_r2(loss, constant * value)),
            "left out": float(_r2(loss, without)),
            "right": int((~missed).sum()),
            "later": len(later),
            "later right": _right(ORDER_LOSS, later),
            "later R2": unseen,
        },
        sorted(zip(known, without, strict=True), key=lambda pair: float(pair[0]["value"])),
        wrong=[t["name"] for t, wrong in zip(known, missed, strict=True) if wrong],
        tolerance=TOLERANCE,
    )


def registered_rules() -> Collection[str]:
    """The rules that spoke before the first run."""
    found: Collection[str] = REGISTRATIONS[0].predictions["rules"].keys()
    return found


def answers() -> Iterator[Evidence]:
    """What the further registrations say, the outside test last."""
    yield from filter(None, map(judge, REGISTRATIONS))
    yield law([o for r in REGISTRATIONS for o in outcomes(r) if ORDER_LOSS in o.forecasts])
    yield outside()


# -- the forms that compete -----------------------------------------------------------------------

SEEN = ("slope 1/32, steps 4000", "1 head 1/4, steps 4000")
"""Cases that had been measured before the forms were written down."""
LAWS = (
    "law",
    "mended",
    "absolute",
    "mended, absolute",
    "depth",
    "mended, times steps",
    "mended, steps by leak",
    "mended, steps by reach",
)
"""The forms that are a law of the formula; `reference/README.md` has each."""
FORMS = (*LAWS, "constant", "nearest")
"""All of them, with two nulls."""
DECIDED = 2.0  # standard errors from the tolerance
PARTS = (
    ("four times the steps", "steps", 4000),
    ("8 layers", "layers", 8),
    ("training length 256", "length", 256),
    ("training length 128", "length", 128),
    ("twice the width", "width", 256),
)


def open_cases() -> tuple[Model, ...]:
    """Every case that the forms predicted and that was measured on further targets."""
    return tuple(
        o
        for r in REGISTRATIONS
        for o in outcomes(r)
        if o.further[-1] and {*FORMS} <= o.forecasts.keys()
    )


def tally(found: Sequence[Model]) -> dict[str, Any]:
    """How the forms did on the cases that no one had seen.

    Returns:
        `tests`: how many cases those are; `decided`: how many of them are, of which `hold`; `null`:
        how often the better constant answer is right. By form, `right`: on how many of the decided
        it was on the right side; `off`: the mean absolute error of its log ratio over all tests.
    """
    tests = [o for o in found if o.name not in SEEN]
    losses, errors = (np.array([o.further[k] for o in tests]) for k in (0, 1))
    said = {form: np.array([o.forecasts[form]["log_ratio"] for o in tests]) for form in FORMS}
    clear, held = abs(losses - LIMIT) >= DECIDED * errors, losses < LIMIT
    hold = int(held[clear].sum())
    return {
        "tests": len(tests),
        "decided": int(clear.sum()),
        "hold": hold,
        "null": max(hold, int(clear.sum()) - hold),
        "right": {form: int(((said[form] <= LIMIT) == held)[clear].sum()) for form in FORMS},
        "off": {
            form: float(np.abs(said[form] - losses).mean()) if tests else math.nan for form in FORMS
        },
    }


def competing() -> Iterator[Evidence]:
    """For each part that has results, which form was right."""
    every = open_cases()
    for words, what, value in PARTS:
        if found := [o for o in every if o.prediction[what] == value]:
            yield compared(words, found)


def compared(words: str, found: Sequence[Model]) -> Evidence:
    """Which form was right about some cases, told in words."""
    of = tally(found)
    measured = [f"{loss:+.3f} ± {error:.3f}" for loss, error, _ in (o.further for o in found)]
    rows = [
        *(
            (
                form,
                f"{of['right'][form]} of {of['decided']}",
                f"{of['off'][form]:.3f}",
                *(f"{o.forecasts[form]['log_ratio']:+.3f}" for o in found),
            )
            for form in sorted(FORMS, key=lambda form: of["off"][form])
        ),
        ("measured", "", "", *measured),
        ("on the registered 512", "", "", *(f"{o.loss:+.3f}" for o in found)),
    ]
    answer = told(
        "competing",
        [f"{o.name}, {plural(o.further[2], 'seed')}" for o in found],
        {name: of[name] for name in ("right", "off", "decided", "hold")},
        words=words,
        cases=plural(of["decided"], "decided case"),
        best=max(FORMS, key=lambda form: (of["right"][form], -of["off"][form])),
        null=of["null"],
        undecided=of["tests"] - of["decided"],
        seen=[(o.name, *o.further[:2]) for o in found if o.name in SEEN],
    )
    return replace(answer, table=(("form", "right", "mean error", *(o.name for o in found)), *rows))


# -- printed results ------------------------------------------------------------------------------

LAYERS = {"chi2023": 12, "sun2023": 24}
TABLES = ("chi2023_table1", "chi2023_table4", "chi2023_table3", "sun2023_table2", "sun2023_table6")


def printed() -> Iterator[Model]:
    """The models of the printed tables whose bias has no learned part, with what the rules say by
    the numbers that they were registered with."""
    rules = numbers()
    for name in TABLES:
        for (dataset, kind, variant), cells in columns(table(name)).items():
            found, trained = bias_of(cells[0]), cells[0].train_length
            if found is None or trained is None:
                continue
            by_length = curve(cells)
            said = forecasts(rules, case(found, trained, max(by_length), LAYERS[cells[0].paper]))
            for rule, its in said.items():
                its["threshold"] = rules[rule]["threshold"]
            yield Model(
                f"{kind} {variant}".strip() + f", {dataset}",
                trained=trained,
                ratio={LAST: {n: {0: p / by_length[trained]} for n, p in by_length.items()}},
                prediction={"family": kind, "forecasts": said},
            )


def outside() -> Evidence:
    """The rules, with the numbers that they were registered with, on printed results."""
    return _scored("outside", [*printed()], tolerance=TOLERANCE, order=ORDER_LOSS)
