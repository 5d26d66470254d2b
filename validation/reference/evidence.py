"""Does the theory predict? Answers computed from the committed reference results.

Every answer has a number, an interval, the number of encodings it stands on, and their runs. The
predictions were registered before the first run (`farfield.validation.reference`), so nothing here
is tuned after the fact, except where an answer says that a number was fitted: then it was fitted
on one half of the encodings and judged on the other, over many splits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from farfield.theory.answers.answer import InputError
from farfield.validation.measures.evidence import Evidence
from farfield.validation.measures.statistics import interval_text, percent_text
from farfield.validation.reference.committed import Row
from farfield.validation.reference.depth import REGISTERED, depth
from farfield.validation.reference.fields import receptive_fields, resolutions
from farfield.validation.reference.losses import LEAK, RANK, coverage, forecasts, verdicts
from farfield.validation.reference.observations import PLAIN, Observation, observations
from farfield.validation.reference.statements import unreproduced

LEAST = 5  # encodings below which nothing is concluded

QUESTIONS: Mapping[str, Callable[[Sequence[Observation]], Iterable[Evidence]]] = {
    "verdict": verdicts,
    "forecast": forecasts,
    "receptive fields": receptive_fields,
    "depth": depth,
    "coverage": coverage,
    "resolution": resolutions,
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
    unknown = [name for name in only if name not in QUESTIONS]
    if unknown:
        raise InputError(f"question {unknown[0]!r}; accepted: {', '.join(QUESTIONS)}")
    found = observations(results, length)
    if len(found) < LEAST:
        return ()
    return tuple(a for name in only or QUESTIONS for a in QUESTIONS[name](found))


def summary(results: Sequence[Row] | None = None, length: int = 64) -> tuple[str, ...]:
    """Three sentences for a reader in a hurry; none where there are too few results."""
    found = observations(results, length)
    if len(found) < LEAST:
        return ()
    verdict, forecast, layers, rule_of = (
        next(iter(QUESTIONS[name](found))) for name in ("verdict", "forecast", "depth", "coverage")
    )
    right, rule, n = verdict.numbers, rule_of.numbers, len(found)
    reach = max(n for o in found for n in o.last)
    layered, plain = layers.numbers[REGISTERED], layers.numbers[PLAIN]
    return (
        f"Read as a forecast of extrapolation to {reach // length} times the training length, the "
        f"verdict is right for {right['one-sided']} of {n} encodings "
        f"({percent_text(right['interval'])}); the rank "
        "registered beforehand, by the layered mass beyond the training length, orders the losses "
        f"with rho = {interval_text(forecast.numbers[RANK])}, the leak with "
        f"{interval_text(forecast.numbers[LEAK])}.",
        "The layered receptive field, from the formula alone, is the gradient receptive field of "
        f"the trained models within a factor of {layered['factor']:.2f} on average (rho = "
        f"{layered['rho']:.2f}, {layers.n} encodings), the receptive field of one layer within "
        f"{plain['factor']:.2f}.",
        "Chi et al.'s rule, that the training length must cover the gradient receptive field, is "
        f"right for {rule['right']} of {n} ({percent_text(rule['interval'])}), too strict for "
        f"{rule['strict']} and too lenient for {rule['lenient']}; the gradient mass within the "
        f"training length orders the losses with rho = {interval_text(rule['mass'])}, the gradient "
        f"receptive field with {interval_text(rule['gradient ERF'])}.",
    )
