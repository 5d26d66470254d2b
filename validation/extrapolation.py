"""Definition 0.1 [Q]: does a model extrapolate, as printed and one-sided.

As printed, perplexities at all tested lengths beyond the training length differ from that at the
training length by less than a tolerance, in either direction: a model that gains from a longer
context fails it. One-sided, only an increase counts. The paper says "any n"; that `n` is beyond
the training length is our reading.
"""

from __future__ import annotations

from collections.abc import Iterable

TOLERANCE = 0.05
"""The relative change of perplexity that still counts as none, wherever nothing else is said."""


def holds(
    changes: Iterable[float], tolerance: float = TOLERANCE, *, both_ways: bool = False
) -> bool:
    """Whether perplexity holds: no relative change exceeds the tolerance.

    Args:
        changes: of the perplexity beyond the training length.
        tolerance: above 0.
        both_ways: as the definition is printed; otherwise an increase alone counts.

    >>> holds([-0.1, 0.01]), holds([-0.1, 0.01], both_ways=True)
    (True, False)
    """
    return all((abs(change) if both_ways else change) < tolerance for change in changes)
