"""Verdicts on the series of a bias, their proofs checked independently."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from farfield.numerics.checking.checker import check_proof
from farfield.numerics.checking.numbers import ProofError
from farfield.theory.convergence import Convergence, Verdict, check_convergence
from farfield.theory.encodings import Encoding, encoding
from farfield.validation.claims.claim import Missing


@lru_cache(maxsize=64)
def decided(bias: Any, **options: Any) -> Convergence:
    """The verdict on a bias, the proofs of its first and last head checked independently.

    Raises:
        Missing: the independent check finds a step of a proof false.
    """
    found = check_convergence(bias, **options)
    heads = found.heads or (found,)
    for head in (*heads[:1], *heads[1:][-1:]):
        try:
            if head.verdict in (Verdict.CONVERGES, Verdict.DIVERGES, Verdict.CONDITIONAL):
                check_proof(head)
        except ProofError as why:
            raise Missing(f"the proof of the verdict fails its independent check: {why}") from None
    return found


def by_head(bias: Any, **options: Any) -> list[str]:
    """The verdict on each head of a bias."""
    found = decided(bias, **options)
    return [str(h.verdict) for h in found.heads or (found,)]


def of_layer(verdicts: Iterable[str]) -> str:
    """The verdict on a layer: it diverges as soon as one head does.

    >>> of_layer(["converges", "diverges"])
    'diverges'
    """
    found, order = set(verdicts), ("diverges", "undecided", "conditional", "converges")
    return next((v for v in order if v in found), "undecided")


def verdict_of_layer(bias: Encoding | None) -> str:
    """The verdict on all heads of a bias; empty where there is none."""
    return "" if bias is None else of_layer(by_head(bias))


def falling(name: str) -> bool:
    """Whether every head of an encoding weights each key more than the one before it."""
    return bool((np.diff(encoding(name).bias(np.arange(1024))) < 0).all())
