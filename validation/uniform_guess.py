"""The warning about a model that knows no more than a uniform guess, the same for every verb."""

from __future__ import annotations

import math
from collections.abc import Iterator

from farfield.theory.answers.answer import Label
from farfield.theory.answers.blocks import Block, sentence

BYTES = 256
"""Symbols of a text of bytes."""

NEARLY, HARDLY = 0.97, 0.7
"""Shares of the loss of a uniform guess above which a model has not learned, or hardly."""


def uniform_guess(nats: float, symbols: int) -> str:
    """A warning about a model by its loss; empty where it has learned.

    Args:
        nats: its mean loss a token.
        symbols: of its vocabulary.

    >>> uniform_guess(5.567, 256)
    'the model has not learned: its loss of 5.567 nats a token is that of a uniform guess (5.545)'
    >>> uniform_guess(4.5, 256)[:50], uniform_guess(1.3, 256)
    ('the model has hardly learned: its loss is 4.500 na', '')
    """
    guess = math.log(max(symbols, 1))
    if symbols < 2:  # of a vocabulary that is not known
        return ""
    if nats > NEARLY * guess:
        return (
            f"the model has not learned: its loss of {nats:.3f} nats a token is that of a uniform "
            f"guess ({guess:.3f})"
        )
    if nats > HARDLY * guess:
        return (
            f"the model has hardly learned: its loss is {nats:.3f} nats a token, that of a uniform "
            f"guess {guess:.3f}"
        )
    return ""


def warned(guess: str) -> Iterator[Block]:
    """The sentence for an answer, where there is something to say."""
    if guess:
        yield sentence("{guess}.", Label.MEASURED, guess=guess[0].upper() + guess[1:])
