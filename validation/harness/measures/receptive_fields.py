"""Empirical receptive fields of a model, by attention mass and by input gradient; its scores.

The attention receptive field asks, row by row, how many of the nearest keys hold all but `eps` of
the attention. The gradient one asks how much of the text the last prediction depends on, through
all layers. Both are one function, `tokens`, of tail sums in float64: a threshold as small as 1e-17
is met exactly, where `1 - cumulative sum` would round to 0.

The expected score `s[n]` is the mean of the scores between tokens at distance `n`: content logits
divided by the root of the head size, plus the bias [S, Eq. 13 and 4]. Memory is linear in the
length.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from farfield.numerics.resolution import attention_resolution
from farfield.theory.answers.errors import refuse
from farfield.validation.harness.attention import LogitTransform, diagonals, with_hook
from farfield.validation.harness.corpus import samples_of
from farfield.validation.harness.measures.perplexity import LanguageModel
from farfield.validation.harness.mechanism import CAUSAL, Visibility
from farfield.validation.harness.model import layer_bias

_SLACK = 1e-9  # of a logarithm, so that exact ties are no violation
_RESAMPLES = 1000
_CHUNK = 256  # queries whose scores are held at a time


@dataclass(frozen=True)
class AttentionRows:
    """Every sampled row of every head, before any mean.

    Args:
        erf: attention ERF, shape (layers, thresholds, segments, heads, rows).
        trf: finite-row TRF of the bias alone, shape (thresholds, heads, rows); the mean of the
            layers where they see unlike keys.
        shares: attention mass on the nearest `within` tokens, mean over layers, heads and rows,
            float64, shape (segments, len(within)).
        within: numbers of tokens.
        bounds: the bounds checked on every row.
    """

    erf: Tensor
    trf: Tensor
    shares: np.ndarray
    within: tuple[int, ...]
    bounds: Bounds


@dataclass(frozen=True)
class Bounds:
    """Checks of the theoretical bounds on measured rows; they hold for every model.

    With `lam` the logit range of a row, `TRF_i(eps e^lam) <= ERF_i(eps) <= TRF_i(eps e^-lam)`, and
    by Jensen's inequality `ERF_i(eps) <= TRF_i(eps e^-g)`, `g` the largest logit less the mean
    weighted by `exp(bias)`.

    Args:
        checks: comparisons made, three a row and threshold.
        lower, upper, jensen: how many failed.
        informative: share of the rows where Jensen's bound is shorter than the row.
        range_median, range_max: of `lam` over the rows.
        logit_bound, value_bound: the largest `|q.k|/sqrt(d)` of the rows and `||v||` of the
            segments, as measured: a maximum over data, no proof.
    """

    checks: int
    lower: int
    upper: int
    jensen: int
    informative: float
    range_median: float
    range_max: float
    logit_bound: float | None = None
    value_bound: float | None = None

    @property
    def violations(self) -> int:
        """Failed comparisons of all three kinds."""
        return self.lower + self.upper + self.jensen


@dataclass(frozen=True)
class AttentionField:
    """Attention ERF of a model at one threshold, measured, beside the TRF of the same rows.

    Args:
        eps: the threshold.
        tokens: mean over segments and rows, then heads, then layers.
        spread: standard deviation of the row values over everything.
        heads: mean over segments and rows, one list of heads a layer.
        trf: the finite-row TRF of the bias alone (all equal where the encoding is not additive),
            averaged in the same way.
        trf_heads: the same, one value a head.
        length, segments, rows: tokens of a segment, segments, rows a head and segment.
        averaged: how, in words.
    """

    eps: float
    tokens: float
    spread: float
    heads: tuple[tuple[float, ...], ...]
    trf: float
    trf_heads: tuple[float, ...]
    length: int
    segments: int
    rows: int
    averaged: str = (
        "mean over rows and segments, then heads, then layers; "
        "rows evenly spaced in the second half of a segment"
    )


def tail_sums(weights: Tensor) -> Tensor:
    """`T_j = sum_{t >= j} w_t` along the last axis."""
    return weights.flip(-1).cumsum(-1).flip(-1)


def tokens(tails: Tensor, log_eps: Tensor | float) -> Tensor:
    """`min { j >= 0 : T_j < eps T_0 }`, the length of the nearest part that holds all but `eps`.

    Args:
        tails: float64 tail sums, nearest first, shape (..., length); `T_length = 0`.
        log_eps: natural logarithm of `eps`; `eps >= 1` is allowed and gives 0 above 1.

    Returns:
        int64, shape (...); the whole support where `eps` is too small for float64.

    >>> tokens(tail_sums(torch.tensor([0.5, 0.25, 0.25, 0.0], dtype=torch.float64)), math.log(0.3))
    tensor(2)
    """
    log_eps = torch.as_tensor(log_eps, dtype=torch.float64)[..., None]
    threshold = log_eps.clamp(max=700).exp() * tails[..., :1]
    return ((tails >= threshold) & (tails > 0)).sum(-1)


def attention_receptive_field(
    model: LanguageModel,
    text: np.ndarray,
    *,
    thresholds: tuple[float, ...] = (0.1, 0.05, 0.01),
    length: int = 512,
    segments: int = 2,
    rows: int = 32,
    visible: Visibility = CAUSAL,
) -> tuple[tuple[AttentionField, ...], Bounds]:
    """Attention ERF of every layer and head: `min { j : C_ij > (1 - eps) C_ii }` [Q, after Eq. 21].

    `C_ij` is the sum of `exp(logit + bias)` over the `j` nearest keys of row `i`, in float64. It
    comes from the model's queries and keys, a soft cap of theirs, and the float64 bias. A learned
    constant in the denominator is no key: it has no part.

    Args:
        model: the model.
        text: of bytes or tokens, one-dimensional.
        thresholds: the `eps`, each between 0 and 1.
        length: tokens a segment.
        segments: how many, evenly spaced in the text.
        rows: query rows a head and segment, evenly spaced in the second half.
        visible: which keys a query sees.

    Returns:
        One `AttentionField` a threshold, and the bounds checked on every row.

    Raises:
        InputError: the text is too short, or the encoding knows less than `length`.
    """
    found = attention_rows(
        model,
        text,
        thresholds=thresholds,
        length=length,
        segments=segments,
        rows=rows,
        visible=visible,
    )
    erf, trf = found.erf, found.trf
    fields = tuple(
        AttentionField(
            eps=eps,
            tokens=erf[:, k].mean().item(),
            spread=erf[:, k].std().item(),
            heads=tuple(map(tuple, erf[:, k].mean((1, 3)).tolist())),
            trf=trf[k].mean().item(),
            trf_heads=tuple(trf[k].mean(-1).tolist()),
            length=length,
            segments=erf.shape[2],
            rows=erf.shape[4],
        )
        for k, eps in enumerate(thresholds)
    )
    return fields, found.bounds


@torch.no_grad()
def attention_rows(
    model: LanguageModel,
    text: np.ndarray,
    *,
    thresholds: tuple[float, ...],
    length: int,
    segments: int,
    rows: int,
    visible: Visibility = CAUSAL,
    within: tuple[int, ...] = (),
    progress: Callable[[int], None] | None = None,
) -> AttentionRows:
    """The rows behind `attention_receptive_field`, a segment and a layer at a time.

    Memory holds the sampled rows of one layer, never a matrix of all pairs. `within` asks for the
    mass on so many nearest tokens, and `progress` is called with the number of segments done.
    """
    at = torch.linspace(length // 2, length - 1, min(rows, length - length // 2)).long().unique()
    keys_at = at[:, None] - torch.arange(length)  # row, distance
    bias = model.bias_table(length)
    bias = torch.zeros(1, length, dtype=torch.float64) if bias is None else bias
    log_eps = torch.tensor(thresholds, dtype=torch.float64).log()[:, None, None, None]
    beyond = torch.tensor([w < length for w in within], dtype=torch.float64)
    found: list[tuple[Tensor, ...]] = []  # one a segment and layer

    @functools.lru_cache
    def prior(visible: Visibility, layer: int, heads: int) -> tuple[Tensor, Tensor, Tensor]:
        """Which keys are seen, the bias on them, its tails: of the layers that see so."""
        seen = (keys_at >= 0) & visible.sees(at[:, None], keys_at)
        log_b = layer_bias(bias, layer, heads)[:, None].masked_fill(~seen, -math.inf)
        return seen, log_b, tail_sums((log_b - log_b.amax(-1, keepdim=True)).exp())

    def measure(
        query: Tensor, key: Tensor, value: Tensor, visible: Visibility, weighting: LogitTransform
    ) -> None:
        heads = query.shape[1]  # layers without a bias of their own share the first one's
        own = len(found) % (len(bias) // heads) if len(bias) > heads else 0
        seen, log_b, b_tails = prior(visible, own, heads)
        scores = (query[:, :, at].double() @ key.double().transpose(-2, -1)).cpu()
        scores = weighting.content(scores / math.sqrt(query.shape[-1]))
        logits = scores.gather(-1, keys_at.clamp(min=0).expand(*scores.shape[:2], -1, -1))
        weights = logits + log_b
        tails = tail_sums((weights - weights.amax(-1, keepdim=True)).exp())
        erf = tokens(tails, log_eps)
        outside = tails[..., [min(w, length - 1) for w in within]] / tails[..., :1]
        counted = log_b > -math.inf
        largest = (logits.masked_fill(~counted, 0).abs().amax(), value.double().norm(dim=-1).amax())
        highest = logits.masked_fill(~counted, -math.inf).amax(-1)
        gap = highest - logits.masked_fill(~counted, math.inf).amin(-1)
        mean = (log_b.softmax(-1) * logits).sum(-1)
        lower = tokens(b_tails, log_eps + gap + _SLACK)
        upper = tokens(b_tails, log_eps - gap - _SLACK)
        jensen = tokens(b_tails, log_eps - (highest - mean) - _SLACK)
        found.append(
            (
                erf.double(),
                tokens(b_tails, log_eps[:, 0]).double(),
                1 - (outside * beyond).mean((0, 1, 2)),
                gap.flatten(),
                torch.stack([(lower > erf).sum(), (erf > upper).sum(), (erf > jensen).sum()]),
                (jensen < seen.sum(-1)).double().mean(),
                torch.stack([bound.cpu() for bound in largest]),
            )
        )

    count = _look(measure, model, samples_of(text, segments, length), visible, progress)
    erfs, trfs, shares, gaps, failed, informative, largest = map(
        torch.stack, zip(*found, strict=True)
    )
    erf = (
        erfs.unflatten(0, (count, -1)).squeeze(3).permute(1, 2, 0, 3, 4)
    )  # layer, eps, segment, head, row
    trf = trfs[0] if prior.cache_info().currsize == 1 else trfs.mean(0)
    bounds = Bounds(
        checks=3 * erf.numel(),
        **dict(zip(("lower", "upper", "jensen"), failed.sum(0).tolist(), strict=True)),
        informative=informative.mean().item(),
        range_median=gaps.median().item(),
        range_max=gaps.max().item(),
        logit_bound=largest[:, 0].max().item(),
        value_bound=largest[:, 1].max().item(),
    )
    masses = shares.unflatten(0, (count, -1)).mean(1).numpy()
    return AttentionRows(erf, trf.expand(-1, erf.shape[3], -1), masses, within, bounds)


def _look(
    look: Callable[..., None],
    model: LanguageModel,
    rows: np.ndarray,
    visible: Visibility,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Show every layer to `look`, a segment at a time, which bounds the memory; their number."""
    for done, sample in enumerate(torch.from_numpy(rows[:, :-1]).split(1), 1):
        model.hidden(model.embed(sample.to(model.device)), visible, with_hook(look))
        if progress is not None:
            progress(done)
    return len(rows)


def resampled(values: np.ndarray) -> np.ndarray:
    """Means over segments drawn with replacement, shape (resamples, ...), from one seed."""
    generator = np.random.default_rng(0)
    picks = generator.integers(len(values), size=(_RESAMPLES, len(values)))
    counts = np.stack([np.bincount(pick, minlength=len(values)) for pick in picks])
    means: np.ndarray = counts @ values / len(values)
    return means


def powers(length: int) -> tuple[int, ...]:
    """1, 2, 4, ... up to the length.

    >>> powers(9)
    (1, 2, 4, 8)
    """
    return tuple(1 << k for k in range(length.bit_length()))


def share_within(curves: np.ndarray, length: int) -> np.ndarray:
    """The share on the nearest `length` tokens of each curve, shape (segments,).

    >>> share_within(np.array([[0.5, 0.25, 0.25]]), 2)
    array([0.75])
    """
    return curves[:, :length].sum(1)


@dataclass(frozen=True)
class GradientField:
    """Gradient ERF of a model, measured, and the gradient mass within the training length.

    Args:
        share: the `q` of the definition.
        tokens, tokens_low, tokens_high: of the mean curve, with a 95 % bootstrap interval.
        training_length: tokens the model was trained on.
        mass, mass_low, mass_high: share of the sum on the last `training_length` tokens, with a
            95 % bootstrap interval over the segments.
        curve: pairs (tokens, share on the last so many tokens) at powers of two.
        length, segments: tokens of a segment, and segments.
        scalar: whose gradient it is.
    """

    share: float
    tokens: int
    tokens_low: float
    tokens_high: float
    training_length: int
    mass: float
    mass_low: float
    mass_high: float
    curve: tuple[tuple[int, float], ...]
    length: int
    segments: int
    scalar: str = "log-probability of the observed next byte at the last position"


def gradient_receptive_field(
    model: LanguageModel,
    text: np.ndarray,
    *,
    share: float = 0.99,
    length: int = 1024,
    segments: int = 32,
    visible: Visibility = CAUSAL,
) -> GradientField:
    """Gradient ERF: the shortest suffix with more than `share` of the input gradient [C, 5.1].

    `s_m = ||g_m|| / sum ||g||`, `g_m` the gradient at input embedding `m` of the log-probability of
    the observed next byte at the last position. [C] does not name the scalar; this is our choice.
    The `share` is between 0 and 1; the curves of the segments are averaged.
    """
    curves = gradient_shares(model, samples_of(text, segments, length), visible)
    mass = share_within(curves, model.length)
    suffix, low, high = shortest_suffix(curves, share)
    mass_low, mass_high = np.quantile(resampled(mass), (0.025, 0.975))
    return GradientField(
        share=share,
        tokens=suffix,
        tokens_low=low,
        tokens_high=high,
        training_length=model.length,
        mass=float(mass.mean()),
        mass_low=float(mass_low),
        mass_high=float(mass_high),
        curve=tuple((p, float(share_within(curves, p).mean())) for p in powers(length)),
        length=length,
        segments=len(curves),
    )


def gradient_shares(
    model: LanguageModel, rows: np.ndarray, visible: Visibility = CAUSAL, tokens_a_pass: int = 8192
) -> np.ndarray:
    """`s_m` of each segment, nearest token first; float64, shape (segments, length).

    The rows are int64, shape (segments, length + 1); their last column holds the observed next
    bytes. `tokens_a_pass` bounds the memory.
    """
    trained = [p for p in model.parameters() if p.requires_grad]
    step = max(1, tokens_a_pass // (rows.shape[1] - 1))

    def shares(part: Tensor) -> Tensor:  # nothing of a pass is kept for the next
        embedded = model.embed(part[:, :-1]).requires_grad_()
        logits = model.logits(model.hidden(embedded, visible, last=1)[:, -1])
        chosen = logits.log_softmax(-1).gather(-1, part[:, -1:])
        (gradient,) = torch.autograd.grad(chosen.sum(), embedded)
        norms = gradient.double().norm(dim=-1).flip(-1).cpu()
        return norms / norms.sum(-1, keepdim=True)

    for parameter in trained:
        parameter.requires_grad_(False)
    try:
        parts = torch.from_numpy(rows).to(model.device).split(step)
        return torch.cat([shares(part) for part in parts]).numpy()
    finally:
        for parameter in trained:
            parameter.requires_grad_(True)


def shortest_suffix(curves: np.ndarray, share: float) -> tuple[int, float, float]:
    """Tokens of the shortest suffix with more than `share` of the mean curve, and the ends of their
    95 % bootstrap interval over the segments.

    The curves are nearest token first, each with sum 1; float64, shape (segments, length).

    >>> shortest_suffix(np.array([[0.5, 0.25, 0.25]]), 0.7)
    (2, 2.0, 2.0)
    """
    log_eps = math.log1p(-share)
    lengths = tokens(tail_sums(torch.from_numpy(resampled(curves))), log_eps).numpy()
    low, high = np.quantile(lengths, (0.025, 0.975))
    mean = torch.from_numpy(curves.mean(0))
    return int(tokens(tail_sums(mean), log_eps)), float(low), float(high)


# -- the expected score --------------------------------------------------------------------------


@dataclass(frozen=True)
class ExpectedScores:
    """Measured scores by distance, and the attention resolution they give.

    Args:
        scores: `s[n]` for n = 0 .. length - 1, mean over segments, heads and layers; None at
            distances where the bias is -oo or no key is visible.
        layers: the same of each layer.
        resolution: `R(s)` of the mean; None where a score is missing between others.
        layer_resolutions: of each layer; [S] averages over layers.
        length, segments: tokens of a segment, and segments.
        scale: what the logits were multiplied by.
    """

    scores: tuple[float | None, ...]
    layers: tuple[tuple[float | None, ...], ...]
    resolution: float | None
    layer_resolutions: tuple[float | None, ...]
    length: int
    segments: int
    scale: str = "1/sqrt(head size)"


@torch.no_grad()
def expected_scores(
    model: LanguageModel,
    text: np.ndarray,
    *,
    length: int = 1024,
    segments: int = 4,
    visible: Visibility = CAUSAL,
) -> ExpectedScores:
    """Mean score at each distance over all pairs of tokens [S, Eq. 13].

    A segment has `length` tokens, at least 2. The segments are evenly spaced in the text. Only
    pairs count whose key is visible.

    Raises:
        InputError: the text is too short, or the encoding knows less than `length`.
    """
    refuse(length < 2, f"a segment of {length} tokens; accepted are at least 2")
    table = model.bias_table(length)
    sums: list[Tensor] = []
    counts = torch.zeros(length, dtype=torch.float64)

    def look(
        query: Tensor, key: Tensor, value: Tensor, visible: Visibility, weighting: LogitTransform
    ) -> None:
        total, counted = torch.zeros(length, dtype=torch.float64), torch.zeros_like(counts)
        scale = 1 / math.sqrt(query.shape[-1])
        for start in range(0, length, _CHUNK):
            stop = min(start + _CHUNK, length)
            at = torch.arange(stop - 1, start - 1, -1)  # in reverse, so that a diagonal is a sum
            seen = visible.sees(at[:, None], torch.arange(stop)).to(query.device)
            logits = query[:, :, at].double() @ key[:, :, :stop].double().mT * scale
            logits = logits.mean((0, 1)) * seen
            for into, matrix in ((total, logits), (counted, seen.double())):
                into[:stop] += diagonals(matrix[None])[0, :stop].flip(-1).cpu()
        sums.append(total)
        counts.copy_(counted)

    count = _look(look, model, samples_of(text, segments, length), visible)
    content = torch.stack(sums).unflatten(0, (count, -1)).mean(0) / counts
    scores = content
    if table is not None:
        heads = [layer.heads for layer in model.layers]
        scores = content + torch.stack([layer_bias(table, *at).mean(0) for at in enumerate(heads)])
    mean, *each = [
        tuple(v if math.isfinite(v) else None for v in row)
        for row in (scores.mean(0).tolist(), *scores.tolist())
    ]
    found = tuple(map(_resolution, each))
    return ExpectedScores(mean, tuple(each), _resolution(mean), found, length, count)


def _resolution(scores: tuple[float | None, ...]) -> float | None:
    """R of scores that may end before the row does, as those of a window."""
    known = tuple(score for score in scores if score is not None)
    if known != scores[: len(known)] or len(known) < 2:
        return None
    window = None if len(known) == len(scores) else f"window {len(known)}"
    padded = known if window is None else (*known, 0.0)
    return attention_resolution(np.array(padded), mask=window).value
