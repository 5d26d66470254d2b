"""What a training costs: floating-point operations a token.

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

from farfield.validation.harness.corpus import BYTES
from farfield.validation.harness.presets import Preset

GPT2 = 50_257  # entries of the tokeniser of GPT-2, which [S] names; those of [Q], [C] are of a kind


def flops_a_token(model: Preset, vocabulary: int = BYTES) -> int:
    """Floating-point operations of the products for one token of training.

    Args:
        model: architecture and training length.
        vocabulary: different tokens.

    >>> from farfield.validation.harness.presets import preset
    >>> flops_a_token(preset("paper:chi2023"), GPT2) / 1e6
    769.55904
    """
    d, layers, n = model.width, model.layers, model.length
    return 3 * (24 * layers * d**2 + 2 * layers * d * (n + 1) + 2 * d * vocabulary)


def tokens(model: Preset) -> int:
    """Tokens of a whole training.

    >>> from farfield.validation.harness.presets import preset
    >>> tokens(preset("paper:chi2023"))
    819200000
    """
    return model.steps * model.batch * model.length
