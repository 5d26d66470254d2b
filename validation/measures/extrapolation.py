"""Definition 0.1 [Q]: does a model extrapolate, as printed and one-sided.

As printed, perplexities at all tested lengths beyond the training length differ from that at the
training length by less than a tolerance, in either direction: a model that gains from a longer
context fails it. One-sided, only an increase counts. The paper says "any n"; that `n` is beyond
the training length is our reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from farfield.theory.answers.answer import InputError, Label, Result
from farfield.theory.answers.blocks import Block, sentence, table

TOLERANCE = 0.05
"""The relative change of perplexity that still counts as none, wherever nothing else is said."""
_FIRST = ("last token", "sliding window", "non-overlapping")  # the sharper protocol first


@dataclass(frozen=True, repr=False)
class Extrapolation(Result):
    """The verdicts of Definition 0.1 on measured perplexities by one protocol.

    Fields:
        protocol: of the perplexities.
        trained: tokens of the training length, the base of the changes.
        tolerance: the relative change that still counts as none.
        printed: whether no change exceeds the tolerance.
        one_sided: whether no increase exceeds it.
        changes: pairs (length, relative change of the perplexity) beyond the training length.
    """

    protocol: str
    trained: int
    tolerance: float
    printed: bool
    one_sided: bool
    changes: tuple[tuple[int, float], ...]

    def blocks(self) -> Sequence[Block]:
        said = {True: "extrapolates", False: "does not"}
        return (
            sentence(
                "By the {protocol} protocol it {one} one-sided and {printed} as printed, at a "
                "tolerance of {tolerance}.",
                Label.MEASURED,
                protocol=self.protocol,
                printed=said[self.printed],
                one=said[self.one_sided],
                tolerance=f"{self.tolerance:.0%}",
            ),
            table(
                ("length", "change of perplexity"),
                [(length, f"{change:+.1%}") for length, change in self.changes],
                numeric=(0, 1),
            ),
        )


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


def definition(
    perplexities: Sequence[Any], trained: int, tolerance: float = TOLERANCE
) -> tuple[Extrapolation, ...]:
    """Definition 0.1 for each protocol, the sharper one first.

    Args:
        perplexities: `Perplexity` objects, or their JSON forms.
        trained: the training length in tokens, which must be among the lengths.
        tolerance: above 0.

    Raises:
        InputError: a protocol was not measured at the training length, or nowhere beyond.

    >>> rows = [
    ...     {"protocol": "last token", "length": n, "perplexity": p}
    ...     for n, p in ((64, 4.0), (256, 3.6), (1024, 3.7))
    ... ]
    >>> [(d.printed, d.one_sided) for d in definition(rows, 64)]
    [(False, True)]
    """
    if not tolerance > 0:
        raise InputError(f"tolerance {tolerance}: accepted is a number above 0")
    by_protocol: dict[str, dict[int, float]] = {}
    for row in perplexities:
        p = row if isinstance(row, Mapping) else vars(row)
        by_protocol.setdefault(p["protocol"], {})[p["length"]] = p["perplexity"]
    results = []
    for protocol, measured in by_protocol.items():
        beyond = sorted(length for length in measured if length > trained)
        if trained not in measured or not beyond:
            raise InputError(
                f"Definition 0.1 needs the perplexity at the training length {trained} and beyond; "
                f"{protocol} was measured at {sorted(measured)}"
            )
        changes = tuple((n, measured[n] / measured[trained] - 1) for n in beyond)
        only = [change for _, change in changes]
        printed = holds(only, tolerance, both_ways=True)
        one_sided = holds(only, tolerance)
        results.append(Extrapolation(protocol, trained, tolerance, printed, one_sided, changes))
    return tuple(sorted(results, key=lambda r: _FIRST.index(r.protocol.partition(",")[0])))
