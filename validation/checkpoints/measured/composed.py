"""The whole model with fewer keys against the whole model, measured on segments of a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from farfield.validation.harness.attention import Path, fused
from farfield.validation.harness.measures.receptive_fields import LanguageModel, resampled
from farfield.validation.harness.visibility import CAUSAL, Visibility
from farfield.validation.progress import Progress

View = Visibility | Callable[[], Path]
"""Which keys are seen: by a rule for all heads, or by what makes a path that leaves keys out."""


@dataclass(frozen=True)
class Composed:
    """The whole model with its windows against the whole model without, measured.

    Fields:
        windows: which.
        nats, nats_full: mean loss in nats a token.
        ratio, ratio_low, ratio_high: of the perplexities, with a 95 % bootstrap interval over the
            segments, None for a single one.
        largest: the largest change of the log-probability of an observed token.
        relative: the largest change of a last residual, relative to its norm.
        tokens: scored.
    """

    windows: str
    nats: float
    nats_full: float
    ratio: float
    ratio_low: float | None
    ratio_high: float | None
    largest: float
    relative: float
    tokens: int

    def row(self) -> tuple[str, ...]:
        """The cells of a table."""
        between = (
            "" if self.ratio_low is None else f" ({self.ratio_low:.6f} to {self.ratio_high:.6f})"
        )
        return (
            self.windows,
            f"{self.ratio:.6f}{between}",
            f"within {self.largest:.3g}",
            f"within {self.relative:.2g} of its norm",
        )


@torch.no_grad()
def composed(
    model: LanguageModel, rows: np.ndarray, views: Mapping[str, View], progress: Progress
) -> tuple[Composed, ...]:
    """One result a view, in their order.

    Args:
        model: the model.
        rows: int64, shape (segments, length + 1).
        views: by its name in a table.
        progress: told how many are done.
    """
    full = [_scored(model, row, CAUSAL) for row in rows] if views else []
    found = []
    for done, (name, view) in enumerate(views.items(), 1):
        kept = [_scored(model, row, view) for row in rows]
        progress("the whole model", done, len(views))
        before, after = (np.stack([losses for losses, _ in each]) for each in (full, kept))
        relative = max(
            float(((a - b).norm(dim=-1) / b.norm(dim=-1)).max())
            for (_, a), (_, b) in zip(kept, full, strict=True)
        )
        ratios = np.exp(resampled((after - before).mean(1)))
        several = len(rows) > 1
        low, high = map(float, np.quantile(ratios, (0.025, 0.975))) if several else (None, None)
        found.append(
            Composed(
                name,
                float(after.mean()),
                float(before.mean()),
                float(np.exp((after - before).mean())),
                low,
                high,
                float(np.abs(after - before).max()),
                relative,
                after.size,
            )
        )
    return tuple(found)


def _scored(model: LanguageModel, row: np.ndarray, view: View) -> tuple[np.ndarray, Tensor]:
    """Losses of a segment in nats, and its last residuals."""
    visible, path = (view, fused) if isinstance(view, Visibility) else (CAUSAL, view())
    tokens = torch.from_numpy(row).to(model.device)
    hidden = model.hidden(model.embed(tokens[None, :-1]), visible, path)[0]
    losses = [
        cross_entropy(model.logits(part).double(), target, reduction="none")
        for part, target in zip(hidden.split(512), tokens[1:].split(512), strict=True)
    ]
    return torch.cat(losses).cpu().numpy(), hidden.double().cpu()
