"""Does the theory predict? Answers computed from the committed reference results.

Every answer has a number, an interval, the number of encodings behind it, and their runs. The
predictions were registered before the first run (`farfield.validation.reference`), so nothing here
is tuned after the fact, except where an answer says that a number was fitted: then it was fitted
on one half of the encodings and judged on the other, over many splits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from farfield.theory.answers.names import one_of
from farfield.validation.evidence import first_registration
from farfield.validation.evidence.fields import receptive_fields, resolutions
from farfield.validation.evidence.layered_fields import depth
from farfield.validation.evidence.losses import coverage, forecasts, verdicts
from farfield.validation.evidence.sentences import Evidence
from farfield.validation.evidence.statements import unreproduced
from farfield.validation.reference.committed import Row
from farfield.validation.reference.observations import observations
from farfield.validation.reference.table import Model

LEAST = 5  # encodings below which nothing is concluded

QUESTIONS: Mapping[str, Callable[[Sequence[Model]], Iterable[Evidence]]] = {
    "verdict": verdicts,
    "referee": first_registration.referee,
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
    for name in only:
        one_of(name, "question", QUESTIONS)
    found = observations(results, length)
    if len(found) < LEAST:
        return ()
    return tuple(a for name in only or QUESTIONS for a in QUESTIONS[name](found))
