"""What a training costs: floating-point operations a token, and hours at a rate.

Counted are the products of the model [Chowdhery et al., PaLM, App. B], and of the attention only
the half that causality leaves. Let `d` be the width, `L` the layers, `n` the training length and
`V` the vocabulary. In the forward pass a token takes:

    24 L d^2          four projections of the attention, and an MLP four times as wide
    2 L d (n + 1)     scores and values of (n + 1)/2 keys on average
    2 d V             scores of the next token

Training takes three times that, once forward and twice backward. Softmax, norms, biases and the
optimiser are left out, as usual; so is what is computed twice to save memory.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from farfield.theory.answers.answer import InputError, Label, Result
from farfield.theory.answers.blocks import Block, sentence, table
from farfield.validation.harness.corpus import BYTES
from farfield.validation.harness.presets import Preset, preset

GPT2 = 50_257  # entries of the tokeniser of GPT-2, which [S] names; those of [Q], [C] are of a kind


def flops_a_token(model: Preset, vocabulary: int = BYTES) -> int:
    """Floating-point operations of the products for one token of training.

    Args:
        model: architecture and training length.
        vocabulary: different tokens.

    >>> flops_a_token(preset("paper:chi2023"), GPT2) / 1e6
    769.55904
    """
    d, layers, n = model.width, model.layers, model.length
    return 3 * (24 * layers * d**2 + 2 * layers * d * (n + 1) + 2 * d * vocabulary)


def tokens(model: Preset) -> int:
    """Tokens of a whole training.

    >>> tokens(preset("paper:chi2023"))
    819200000
    """
    return model.steps * model.batch * model.length


def hours(model: Preset, rate: float, vocabulary: int = BYTES) -> float:
    """Hours of a whole training at a rate of so many floating-point operations a second.

    Raises:
        InputError: the rate is not positive.

    >>> round(hours(preset("paper:chi2023"), 0.4 * 312e12, GPT2), 2)
    1.4
    """
    if not 0 < rate < math.inf:
        raise InputError(f"rate {rate!r}: accepted is a number of operations a second above 0")
    return flops_a_token(model, vocabulary) * tokens(model) / rate / 3600


_WIDE = dataclasses.replace(preset("paper:qin2024"), layers=12, width=768, heads=12)

# Every model whose perplexity or receptive field a paper shows, once.
REPLICATION: tuple[tuple[str, str, Preset, int], ...] = (
    ("qin2024", "8 encodings on WikiText-103", preset("paper:qin2024"), 8),
    ("qin2024", "8 encodings on 3 texts, 12 layers of 768", _WIDE, 24),
    ("chi2023", "7 encodings, 3 texts, 5 seeds", preset("paper:chi2023"), 105),
    ("chi2023", "16 slopes and windows on 2 texts", preset("paper:chi2023"), 32),
    ("chi2023", "5 models of other lengths", preset("paper:chi2023"), 5),
    ("sun2023", "4 encodings and 2 ablations", preset("paper:sun2023"), 6),
)


@dataclass(frozen=True, repr=False)
class Replication(Result):
    """What it takes to train the models of the three papers again.

    Fields:
        rate: floating-point operations a second of one GPU, as assumed or measured.
        rows: paper, models, runs, hours a run, hours of all; computed from the rate.
    """

    rate: float
    rows: tuple[tuple[str, str, int, float, float], ...]

    @property
    def hours(self) -> float:
        """GPU hours of all."""
        return sum(row[-1] for row in self.rows)

    def blocks(self) -> Sequence[Block]:
        rows = [
            (paper, what, runs, f"{one:.1f}", f"{whole:.0f}")
            for paper, what, runs, one, whole in self.rows
        ]
        return (
            sentence(
                "The models of the three papers take {hours} GPU hours at {rate} TFLOP/s a GPU: "
                "computed, not run.",
                Label.APPROXIMATE,
                hours=f"{self.hours:.0f}",
                rate=f"{self.rate / 1e12:.3g}",
            ),
            table(("paper", "models", "runs", "hours a run", "GPU hours"), rows, numeric=(2, 3, 4)),
        )


def replication(rate: float) -> Replication:
    """GPU hours of a full replication of the three papers; training alone, without measuring.

    Args:
        rate: floating-point operations a second that a GPU does in training, above 0.

    Raises:
        InputError: the rate is not positive.
    """
    rows = []
    for paper, what, model, runs in REPLICATION:
        one = hours(model, rate, GPT2)
        rows.append((paper, what, runs, one, runs * one))
    return Replication(rate, tuple(rows))
