"""Does the theory predict? Answers computed from the committed reference results.

Every answer has a number, an interval, the number of encodings it stands on, and their runs. The
predictions were registered before the first run (`farfield.validation.reference`), so nothing here
is tuned after the fact, except where an answer says that a number was fitted: then it was fitted
on one half of the encodings and judged on the other, over many splits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from farfield.theory.answers.answer import InputError
from farfield.theory.answers.wording import plural
from farfield.validation.evidence import judged, mixtures, referee
from farfield.validation.evidence.depth import depth
from farfield.validation.evidence.fields import receptive_fields, resolutions
from farfield.validation.evidence.losses import coverage, forecasts, verdicts
from farfield.validation.evidence.statements import unreproduced
from farfield.validation.harness.measures.evidence import Evidence
from farfield.validation.harness.measures.extrapolation import TOLERANCE
from farfield.validation.reference.committed import Row
from farfield.validation.reference.observations import Observation, observations
from farfield.validation.reference.trials import trials
from farfield.validation.rules import ORDER_LOSS

LEAST = 5  # encodings below which nothing is concluded

QUESTIONS: Mapping[str, Callable[[Sequence[Observation]], Iterable[Evidence]]] = {
    "verdict": verdicts,
    "referee": referee.referee,
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


def summary() -> tuple[str, ...]:
    """What a reader in a hurry should know, in sentences: the law, then the first registration."""
    rules, *_, size, outside = judged.answers()
    numbers, law = rules.numbers, size.numbers
    chosen = max(judged.registered_rules(), key=lambda rule: numbers[rule])
    found = {length: observations(length=length) for length in (64, 128)}
    verdict, fields = (
        {length: _first(q, o) for length, o in found.items()} for q in ("referee", "fields")
    )
    first, second = verdict[64], verdict[128]
    layered, plain = fields[64][referee.LAYERED], fields[64][referee.PLAIN_ROW]
    named = {t.name: t for t in trials()}
    local = named["1 head 1/4"]
    layer = max(math.expm1(named[f"layer {k} of 1/4"].loss) for k in (1, 4))
    why = mixtures.answer()
    assert why is not None, "mixtures.json is committed"
    return (
        "Which heads must be local? Not all: one head of slope 1/4 beside seven without any bias "
        f"loses {math.expm1(local.loss):.1%} at 16 times the training length ({local.seeds} "
        f"seeds); all heads of the first or the last layer of four alone, {layer:.1%}. "
        f'The rule "{chosen}", registered before the runs, '
        f"is right for {numbers[chosen]} of {rules.n} finished cases, convergence of every head "
        f"for {numbers['verdict']}, the better constant answer for {numbers['null']}.",
        f"Why? Without that head the loss grows by {why.numbers['silence local, long']:.2f} nats "
        f"there ({plural(why.numbers['seeds'], 'seed')}), without the seven by "
        f"{why.numbers['silence free, long']:.2f}; another text in place of all that lies beyond "
        f"the training length changes it by {why.numbers['foreign']:.2f}: perplexity is flat "
        "because the model hardly looks.",
        f"By how much? The logarithm of the ratio is {law['slope']:.2f} times the order loss, what "
        "a row beyond the training length lacks of the order that the heads had and what is "
        f"drowned in it: R² = {law['left out']:.2f} on {size.n} cases, each forecast without its "
        f"family, {law['right']} of them on the right side of {TOLERANCE:.0%}. Of the "
        f"{law['later']} that came out after that was written down, the forecast of that time is "
        f"right for {law['later right']} (R² = {law['later R2']}).",
        f"At which scale? At this one: of {outside.n} printed models of 162M parameters and more, "
        f"trained on 512 and 1,024 tokens, the order loss is right for "
        f"{outside.numbers[ORDER_LOSS]}, a constant answer for {outside.numbers['null']}, "
        f"Chi et al.'s coverage for {outside.numbers['coverage']}; where the evidence ends, "
        "nothing is forecast.",
        f"Convergence alone, the papers' criterion: {first['right']} of {len(found[64])} encodings "
        f"trained on 64 bytes (constant answer {first['null']}; {first['unseen']} of the "
        f"{len(referee.UNSEEN)} that no pilot had shown), {second['right']} of {len(found[128])} "
        f"on 128 (constant answer {second['null']}).",
        "The layered receptive field, from the formula alone, is the gradient receptive field of "
        f"the trained models within a factor of {layered:.2f} ({fields[64]['unseen']:.2f} where no "
        f"pilot had shown it), the field of one layer on the same row within {plain:.2f}.",
    )


def _first(part: str, found: Sequence[Observation]) -> Mapping[str, Any]:
    """The numbers of the referee's answer on verdicts or on fields."""
    answer = {"referee": referee.verdicts, "fields": referee.fields}[part]
    return answer(found).numbers
