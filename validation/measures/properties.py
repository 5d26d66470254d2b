"""Properties of a model as such: order variance, translation invariance, causality, batches.

Each is a number: the largest change of the scores that should not change (or should), as a share
of the largest score. They hold for weights as they are, trained or not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from farfield.theory.results import InputError, Result
from farfield.validation.models.attention import Path
from farfield.validation.models.model import Transformer
from farfield.validation.settings.visibility import CAUSAL, Visibility


@dataclass(frozen=True)
class Properties(Result):
    """What `properties` found, as shares of the largest score.

    Fields:
        order: change of the last score when the tokens before it are permuted [S, Eq. 1]; a model
            that knows an order has it above rounding.
        translation: change when the text stands at other positions [S, Eq. 2].
        causality: change of a score when later tokens are others; 0 up to rounding.
        batch: change when the text is alone in its batch; 0 up to rounding.
        offsets: positions before the text that were tried for the translation.
        tolerance: a change below counts as none.
    """

    order: float
    translation: float
    causality: float
    batch: float
    offsets: tuple[int, ...]
    tolerance: float

    @property
    def order_variant(self) -> bool:
        """Whether the order of the tokens before it decides the last score."""
        return self.order > self.tolerance

    @property
    def translation_invariant(self) -> bool:
        """Whether the scores are the same wherever the text stands."""
        return self.translation <= self.tolerance

    def text(self) -> str:
        said = {True: "yes", False: "no"}
        return (
            f"order variance: {said[self.order_variant]} ({self.order:.1e}); translation "
            f"invariance: {said[self.translation_invariant]} ({self.translation:.1e}, offsets "
            f"{', '.join(map(str, self.offsets))}); changes by later tokens {self.causality:.1e}, "
            f"by the batch {self.batch:.1e} [measured]"
        )


def properties(
    model: Transformer,
    tokens: Tensor,
    *,
    offsets: Sequence[int] = (1, 7, 64),
    permutations: int = 3,
    seed: int = 0,
    tolerance: float | None = None,
    visible: Visibility = CAUSAL,
) -> Properties:
    """Order variance, translation invariance, causality and batch invariance of a model.

    [S, Eq. 1] asks for `f(P(X)) != P(f(X))`, which a causal mask alone gives; what is measured is
    the last score, which sees all tokens, under permutations of those before it. [S, Eq. 2] is
    taken literally: masked padding before and after the text.

    Args:
        model: the model; in float64 the numbers are sharpest.
        tokens: int64, shape (texts, length), at least 2 texts of at least 3 tokens.
        offsets: tokens of padding before the text, tried one after the other.
        permutations: how many are drawn.
        seed: of the permutations.
        tolerance: a change below counts as none; None takes 1e-9 for float64, 1e-3 else.
        visible: which keys a query sees.

    Raises:
        InputError: too few texts or tokens, or a learned absolute encoding knows too few
            positions for the offsets.

    >>> from farfield.theory.encodings import encoding
    >>> from farfield.validation.settings.presets import preset
    >>> from farfield.validation.models.model import initialised
    >>> model = initialised(encoding("alibi"), preset("tiny"), 0).double()
    >>> found = properties(model, torch.arange(24).view(2, 12))
    >>> found.order_variant, found.translation_invariant
    (True, True)
    """
    texts, length = tokens.shape
    if texts < 2 or length < 3:
        raise InputError(
            f"{texts} texts of {length} tokens; accepted: at least 2 texts of at least 3 tokens"
        )
    if tolerance is None:
        tolerance = 1e-9 if model.embedding.weight.dtype == torch.float64 else 1e-3
    with torch.no_grad():
        scores = model(tokens, visible)
        largest = scores.abs().max().item()

        def change(other: Tensor, of: Tensor) -> float:
            return (other - of).abs().max().item() / largest

        generator = torch.Generator().manual_seed(seed)
        order = 0.0
        for _ in range(permutations):
            before = torch.randperm(length - 1, generator=generator).to(tokens.device)
            permuted = torch.cat([tokens[:, before], tokens[:, -1:]], 1)
            order = max(order, change(model(permuted, visible)[:, -1], scores[:, -1]))
        vocabulary = len(model.embedding.weight)
        middle = length // 2
        later = torch.cat([tokens[:, :middle], (tokens[:, middle:] + 1) % vocabulary], 1)
        return Properties(
            order=order,
            translation=max(
                change(padded(model, tokens, offset, 3, visible), scores) for offset in offsets
            ),
            causality=change(model(later, visible)[:, :middle], scores[:, :middle]),
            batch=change(torch.cat([model(t[None], visible) for t in tokens]), scores),
            offsets=tuple(offsets),
            tolerance=tolerance,
        )


def padded(
    model: Transformer, tokens: Tensor, before: int, after: int, visible: Visibility = CAUSAL
) -> Tensor:
    """`f(X_pad, M_pad)[i : i + n]` of [S, Eq. 2]: scores of a text between masked padding.

    Args:
        model: the model.
        tokens: int64, shape (texts, length).
        before: tokens of padding before the text.
        after: tokens of padding after it.
        visible: which keys a query sees; windows and blocks move with the text.

    Returns:
        Shape (texts, length, vocabulary).

    Raises:
        InputError: a learned absolute encoding knows too few positions.
    """
    length = tokens.shape[1]
    row = torch.nn.functional.pad(tokens, (before, after))
    position = torch.arange(row.shape[1], device=tokens.device)
    within = (position >= before) & (position < before + length)
    seen = visible.sees(position[:, None] - before, position - before)
    seen = (seen & within) | torch.eye(len(position), dtype=torch.bool, device=tokens.device)
    path = _masked(seen)
    hidden = model.hidden(model.embed(row), visible, path)
    return model.logits(hidden)[:, before : before + length]


def _masked(seen: Tensor) -> Path:
    def path(
        query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, visible: Visibility
    ) -> Tensor:
        position = torch.arange(len(seen), device=query.device)
        scores = query @ key.mT / math.sqrt(query.shape[-1])
        if bias is not None:
            scores = scores + bias[:, (position[:, None] - position).clamp(min=0)]
        return scores.masked_fill(~seen, -math.inf).softmax(-1) @ value

    return path
