"""Measurements of a `LanguageModel`: losses, perplexities, attention and gradient fields, recall.

*Perplexity* has three protocols, each on the same targets at every length. *Non-overlapping*: a
text is cut into segments of the length, and every token of a segment is predicted [S]. *Last
token*: every target is predicted from exactly as many tokens as the length says [C, 3.4].
*Sliding window*: a window of the length moves by a stride, and the tokens new in it are scored.

The *attention* receptive field asks, row by row, how many of the nearest keys hold all but `eps` of
the attention. Beside it stands the theoretical field of the bias alone on the same row. The
*gradient* one asks how much of the text the last prediction depends on, through all layers.

Memory is linear in the length: one row at a time if need be, scores of the vocabulary for a part of
its positions, sampled queries a few heads at a time.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from farfield.numerics.masks import CAUSAL, Mask
from farfield.theory.answers.errors import refuse
from farfield.validation.harness.attention import bias_of_pairs, flushed
from farfield.validation.harness.bias import table_of
from farfield.validation.harness.data import NOT_ASKED, InductionRows, OwnRows, samples
from farfield.validation.harness.model import Layer, Prepared, Transformer

TOKENS = 8_192  # a forward pass, unless one row has more
PASS = 1 << 25  # scores of a forward pass, unless one row has more
SCORES = 1 << 22  # scores held at a time, where the model gives them for a part of its positions
NATS = 300  # beyond every model that has learned anything
NORMAL = 1.959964  # two-sided 95 %
RESAMPLES = 1000


class LanguageModel(Protocol):
    """What is measured: a `Transformer`, or another model with its interface."""

    length: int
    vocabulary: int

    @property
    def device(self) -> torch.device: ...
    def embed(self, tokens: Tensor) -> Tensor: ...
    def hidden(self, x: Tensor, view: Mask = ..., /, *, last: int = 0) -> Tensor: ...
    def logits(self, hidden: Tensor) -> Tensor: ...


# -- perplexity -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Perplexity:
    """Perplexity at a length of the context, and its ratio to that at the `base` length.

    Fields:
        protocol, length: by which, with how many tokens of context.
        nats, perplexity: mean loss a target, and its exponential.
        error: standard error of `nats` over rows.
        targets: tokens predicted.
        base: the training length where it is among the lengths, or the shortest.
        ratio, low, high: to the perplexity there, with its 95 % interval, paired over the rows.
    """

    protocol: str
    length: int
    nats: float
    perplexity: float
    error: float
    targets: int
    base: int
    ratio: float
    low: float
    high: float


Sums = tuple[np.ndarray, np.ndarray]
"""Of each row, the sum of the nats of its targets, and the sum of their weights."""


@flushed()
@torch.no_grad()
def token_losses(
    model: LanguageModel,
    rows: np.ndarray,
    view: Mask = CAUSAL,
    last: int = 0,
    precision: str = "float32",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> np.ndarray:
    """Nats of each target of rows (rows, length + 1), or of the `last` ones; float64.

    With the precision `bfloat16`, products are rounded so, but for the scores of the vocabulary.

    Raises:
        InputError: one is not finite, or beyond all that a model gives that has learned anything.
    """
    length, results = rows.shape[1] - 1, list[Tensor]()
    size = max(1, min(TOKENS // length, PASS // ((last or length) * model.vocabulary)))
    for part in torch.from_numpy(rows).split(size):
        part = part.to(model.device)
        with torch.autocast(part.device.type, torch.bfloat16, enabled=precision == "bfloat16"):
            hidden = model.hidden(model.embed(part[:, :-1]), view, last=last)
        targets = part[:, 1:][:, -hidden.shape[1] :]
        at = max(1, SCORES // (len(part) * model.vocabulary))
        losses = [
            nats_of(model.logits(h), t).cpu()
            for h, t in zip(hidden.split(at, 1), targets.split(at, 1), strict=True)
        ]
        results.append(torch.cat(losses, 1))
        progress(min(len(results) * size, len(rows)), len(rows))
        refuse(
            not results[-1].max() < NATS,
            f"the loss of the model on this text is NaN, infinite, or beyond {NATS} nats a token; "
            "accepted: a model whose weights and activations are finite",
        )
    return torch.cat(results).numpy()


def nats_of(scores: Tensor, targets: Tensor) -> Tensor:
    """Nats of each target (rows, length) from scores (rows, length, vocabulary), in float64.

    >>> nats_of(torch.zeros(1, 1, 4), torch.tensor([[2]])).exp()
    tensor([[4.]], dtype=torch.float64)
    """
    return cross_entropy(scores.double().transpose(1, 2), targets, reduction="none")


def perplexities(
    model: LanguageModel,
    text: np.ndarray,
    lengths: Sequence[int],
    *,
    count: int = 64,
    last: int = 0,
    view: Mask = CAUSAL,
    first: int | None = None,
    precision: str = "float32",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Perplexity]:
    """Perplexity of the same targets at each length, those of `count` rows of the longest one.

    Args:
        model: a model.
        text: of bytes or tokens, one-dimensional, longer than the longest length.
        lengths: of the context, in tokens. A row whose length is no multiple of a shorter one ends
            with a shorter segment.
        count: of rows, evenly spaced.
        last: 0 scores all targets of a row without overlap; 1 the last one; a stride those that
            are new in a window.
        view: which keys a query sees.
        first: the token that takes the place of the first of each segment; None for none.
        precision: as of `token_losses`.
        progress: called with how much is done, and of how much.

    Raises:
        InputError: the text is too short; the stride is longer than the shortest length; as
            `token_losses`.
    """
    refuse(
        not 0 <= last <= min(lengths),
        f"stride {last} with windows of {min(lengths)} tokens; accepted is a stride from 1 to the "
        "shortest length",
    )
    longest, sums = max(lengths), list[Sums]()
    rows = samples(text, count, longest)
    for done, length in enumerate(lengths):
        starts = [longest - length] if last else range(0, longest, length)
        losses = []
        for at, start in enumerate(starts):
            segments = led(rows[:, start : start + length + 1], first)
            told = functools.partial(_told, progress, done * len(starts) + at, len(starts), lengths)
            losses.append(token_losses(model, segments, view, last, precision, told))
        nats = np.concatenate(losses, 1)
        sums.append((nats.sum(1), np.full(len(nats), float(nats.shape[1]))))
    names = {0: "non-overlapping", 1: "last token"}
    return compared(names.get(last, f"sliding window, stride {last}"), lengths, sums, model.length)


def _told(
    progress: Callable[[int, int], None],
    before: int,
    starts: int,
    lengths: Sequence[int],
    done: int,
    rows: int,
) -> None:
    """Report the rows of a segment, in tokens of a row of each length."""
    longest = max(lengths)
    progress(longest * (before * rows + done) // (starts * rows), longest * len(lengths))


Rows = TypeVar("Rows", np.ndarray, Tensor)


def led(rows: Rows, first: int | None) -> Rows:
    """Rows that begin with a first token, in place of their own."""
    if first is None:
        return rows
    changed = rows + 0  # a copy of these rows, and not of the text that they are a view of
    changed[:, 0] = first
    return changed


def compared(
    protocol: str, lengths: Sequence[int], sums: Sequence[Sums], trained: int
) -> list[Perplexity]:
    """The perplexity at each length beside that at the training length, or at the shortest one."""
    base, results = trained if trained in lengths else min(lengths), []
    for length, (nats, weights) in zip(lengths, sums, strict=True):
        mean, rest = _centred(nats, weights)
        level = mean, math.exp(min(mean, NATS)), _error(rest), round(float(weights.sum()))
        ratios = ratio_of((nats, weights), sums[lengths.index(base)])
        results.append(Perplexity(protocol, length, *level, base, *ratios))
    return results


def ratio_of(of: Sums, to: Sums) -> tuple[float, float, float]:
    """The ratio of two perplexities on the same targets, with its 95 % interval, paired by rows.

    >>> one = np.full(4, 1.0)
    >>> [round(x, 3) for x in ratio_of((one + np.log(2), one), (one, one))]
    [2.0, 2.0, 2.0]
    >>> weights = np.arange(1.0, 5)  # rows with the same mean have no spread
    >>> [round(x, 3) for x in ratio_of((weights * np.log(2), weights), (0 * one, one))]
    [2.0, 2.0, 2.0]
    """
    (mean, rest), (other, far) = _centred(*of), _centred(*to)
    log, spread = mean - other, NORMAL * _error(rest - far)
    ratio, low, high = (math.exp(min(x, NATS)) for x in (log, log - spread, log + spread))
    return ratio, low, high


def _centred(nats: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
    """A ratio of sums over rows, and what each row adds to its error."""
    mean = float(nats.sum() / weights.sum())
    return mean, (nats - mean * weights) / weights.mean()


def _error(values: np.ndarray) -> float:
    """The standard error of a mean of independent values, infinite for a single one."""
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.inf


# -- the attention receptive field ----------------------------------------------------------------


class AttentionField(NamedTuple):
    """Tokens that hold all but `eps` of the attention, measured, beside the theory of the rows.

    Args:
        eps: the threshold.
        erf: mean over segments and rows, then heads, then layers.
        trf: of the bias alone on the same rows, averaged in the same way; NaN where a module of the
            user's own gives a bias of more than the distance in these rows.
    """

    eps: float
    erf: float
    trf: float


def tail_sums(weights: Tensor) -> Tensor:
    """`T_j = sum_{t >= j} w_t` along the last axis, nearest first."""
    return weights.flip(-1).cumsum(-1).flip(-1)


def field(tails: Tensor, log_eps: Tensor | float) -> Tensor:
    """`min { j >= 0 : T_j < eps T_0 }`, how many of the nearest hold all but `eps`.

    Args:
        tails: float64 tail sums, shape (..., length); `T_length = 0`.
        log_eps: logarithm of `eps`; `eps > 1` gives 0.

    >>> field(tail_sums(torch.tensor([0.5, 0.25, 0.25, 0.0], dtype=torch.float64)), math.log(0.3))
    tensor(2)
    """
    log_eps = torch.as_tensor(log_eps, dtype=torch.float64)[..., None]
    threshold = log_eps.exp() * tails[..., :1]
    return ((tails >= threshold) & (tails > 0)).sum(-1)


def second_half(length: int, rows: int) -> Tensor:
    """So many rows of a segment at most, evenly spaced in its second half.

    >>> second_half(8, 3), second_half(7, 9), second_half(8, 1)
    (tensor([4, 5, 7]), tensor([3, 4, 5, 6]), tensor([4]))
    """
    return torch.linspace(length // 2, length - 1, min(rows, length - length // 2)).long().unique()


@flushed()
@torch.no_grad()
def attention_field(
    model: Transformer,
    text: np.ndarray,
    *,
    thresholds: Sequence[float],
    length: int,
    segments: int,
    rows: int,
    mask: Mask = CAUSAL,
) -> list[AttentionField]:
    """Attention ERF of every layer and head: `min { j : C_ij > (1 - eps) C_ii }` [Q, after Eq. 21].

    `C_ij` is the sum of `exp(logit + bias)` over the `j` nearest keys of row `i`, in float64. A
    learned sink is no key. A bias that depends on the content counts as content.

    Args:
        model: a model.
        text: of bytes or tokens.
        thresholds: the `eps`, each between 0 and 1.
        length: tokens a segment.
        segments: evenly spaced in the text.
        rows: query rows a head and segment, evenly spaced in the second half.
        mask: which keys a query sees.
    """
    at = second_half(length, rows)
    log_eps = torch.tensor(thresholds, dtype=torch.float64).log()[:, None, None]
    layers: list[Tensor] = []  # shape (2, eps, heads, rows)

    def look(layer: Layer, q: Tensor, k: Tensor, v: Tensor, given: Prepared) -> Tensor:
        prepared = given
        if isinstance(prepared.bias, nn.Module):
            table = table_of(prepared.bias, q[:1], k[:1], at.to(q.device))
            prepared = prepared if table is None else prepared._replace(bias=table)
        some = torch.arange(q.shape[1]).split(max(1, SCORES // (len(at) * length)))
        parts = [_row_fields(q[0], k[0], prepared, at, heads.tolist(), log_eps) for heads in some]
        layers.append(torch.cat(parts, 2))
        return layer.attend(q, k, v, given)

    for row in torch.from_numpy(samples(text, segments, length)[:, :-1]):
        model.hidden(model.embed(row[None].to(model.device)), mask, attend=look)
    erf, trf = torch.stack(layers).mean((0, 3, 4)).tolist()
    return [AttentionField(*each) for each in zip(thresholds, erf, trf, strict=True)]


def _row_fields(
    q: Tensor, k: Tensor, prepared: Prepared, at: Tensor, heads: list[int], log_eps: Tensor
) -> Tensor:
    """Fields of sampled rows of some heads, measured and of the bias alone: float64, shape
    (2, eps, heads, rows); NaN for a bias of more than the distance.

    Rows are computed on the processor, nearest key first.
    """
    bias, mask = prepared.bias, prepared.mask
    assert isinstance(mask, Mask)
    i, j = at.to(k.device), torch.arange(k.shape[-2], device=k.device)
    scores = q[heads][:, i].double() @ k[heads].double().mT / math.sqrt(q.shape[-1])
    table = torch.zeros(1, len(j))
    if isinstance(bias, nn.Module):
        added = bias_of_pairs(bias, q[None, :, i], k[None], i, j).double()[0]
        scores = scores + (added[heads] if len(added) > 1 else added)
    elif isinstance(bias, Tensor):
        table = bias[heads if len(bias) > 1 else [0]].cpu()
    keys = at[:, None] - torch.arange(len(j))
    content = scores.cpu().gather(-1, keys.clamp(min=0).expand(len(heads), -1, -1))
    seen = (keys >= 0) & mask.sees(at[:, None], keys)
    prior = table.double()[:, None].masked_fill(~seen, -math.inf)
    measured, alone = (
        field(tail_sums((x - x.amax(-1, keepdim=True)).exp()), log_eps).double()
        for x in (content + prior, prior)
    )
    if isinstance(bias, nn.Module):
        alone = torch.full_like(alone, math.nan)
    return torch.stack([measured, alone.expand_as(measured)])


# -- the gradient receptive field -----------------------------------------------------------------


class GradientField(NamedTuple):
    """Tokens of the shortest suffix with more than a share of the input gradient, with a 95 %
    bootstrap interval over segments; and the share of the last 1, 2, 4, ... tokens, the training
    length among them."""

    tokens: int
    low: float
    high: float
    curve: list[tuple[int, float]]


def gradient_field(
    model: LanguageModel,
    text: np.ndarray,
    *,
    share: float,
    length: int,
    segments: int,
    mask: Mask = CAUSAL,
) -> GradientField:
    """Gradient ERF of the last prediction [C, 5.1], `s_m = ||g_m|| / sum ||g||`.

    `g_m` is the gradient, at input embedding `m`, of the log-probability of the observed next
    token; [C] does not name the scalar, this is our choice. Curves of segments are averaged.
    """
    curves = gradient_shares(model, samples(text, segments, length), mask)
    tokens, low, high = suffix(curves, 1 - share)
    powers = sorted({min(model.length, length), *(1 << k for k in range(length.bit_length()))})
    curve = [(p, float(curves[:, :p].sum(1).mean())) for p in powers]
    return GradientField(tokens, low, high, curve)


def suffix(curves: np.ndarray, eps: float) -> tuple[int, float, float]:
    """Tokens of the shortest suffix with more than `1 - eps` of the mean of curves, nearest token
    first, and the ends of their 95 % bootstrap interval over the curves."""
    mean, drawn = (torch.from_numpy(np.asarray(x)) for x in (curves.mean(0), resampled(curves)))
    low, high = np.quantile(field(tail_sums(drawn), math.log(eps)).numpy(), (0.025, 0.975))
    return int(field(tail_sums(mean), math.log(eps))), float(low), float(high)


def resampled(values: np.ndarray) -> np.ndarray:
    """Means over entries of the first axis drawn with replacement, from one seed."""
    picks = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
    counts = np.stack([np.bincount(pick, minlength=len(values)) for pick in picks])
    means: np.ndarray = counts @ values / len(values)
    return means


@flushed()
def gradient_shares(model: LanguageModel, rows: np.ndarray, view: Mask = CAUSAL) -> np.ndarray:
    """`s_m` of each segment, nearest token first; float64, shape (segments, length).

    The rows are int64, shape (segments, length + 1), their last column the observed next tokens.
    """

    def shares(part: Tensor) -> Tensor:  # nothing of a pass is kept for the next
        x = model.embed(part[:, :-1]).detach().requires_grad_()
        logits = model.logits(model.hidden(x, view, last=1)[:, -1])
        chosen = logits.log_softmax(-1).gather(-1, part[:, -1:])
        (gradient,) = torch.autograd.grad(chosen.sum(), x)
        norms = gradient.double().norm(dim=-1).flip(-1).cpu()
        return norms / norms.sum(-1, keepdim=True)

    parts = torch.from_numpy(rows).to(model.device).split(max(1, TOKENS // (rows.shape[1] - 1)))
    return torch.cat([shares(part) for part in parts]).numpy()


# -- tasks ----------------------------------------------------------------------------------------


@flushed()
@torch.no_grad()
def answers(
    model: LanguageModel, rows: OwnRows, length: int, *, count: int, mask: Mask = CAUSAL
) -> dict[str, float]:
    """Of held-out rows of a task: the targets, their nats, and the share of right answers."""
    tokens, targets = (torch.from_numpy(x).to(model.device) for x in rows.held(count, length))
    nats, right, asked = 0.0, 0, int((targets != NOT_ASKED).sum())
    step = max(1, min(TOKENS, PASS // model.vocabulary) // length)
    for x, y in zip(tokens.split(step), targets.split(step), strict=True):
        logits = model.logits(model.hidden(model.embed(x), mask)).double().flatten(0, 1)
        nats += cross_entropy(logits, y.flatten(), ignore_index=NOT_ASKED, reduction="sum").item()
        right += int((logits.argmax(-1) == y.flatten()).sum())
    return {"targets": asked, "nats": nats / asked, "accuracy": right / asked}


class Recall(NamedTuple):
    """Of the rows that were asked at a distance in rows of a length: the share of right answers,
    and the mean attention on the key of the answer, of the head that has the most."""

    length: int
    distance: int
    accuracy: float
    attention: float


@flushed()
@torch.no_grad()
def recall(
    model: Transformer,
    rows: InductionRows,
    lengths: Sequence[int],
    *,
    distances: Sequence[int] = (),
    count: int = 96,
    mask: Mask = CAUSAL,
) -> list[Recall]:
    """Ask a model that was trained on the task, at every length and distance.

    Args:
        model: a model.
        rows: of the task.
        lengths: of the rows, in tokens; the first decides the head whose attention is reported.
        distances: from the query to the key of the answer; none given takes 8, evenly spaced in
            their logarithm.
        count: rows at each length and distance.
        mask: which keys a query sees.
    """
    asked: list[tuple[int, int, float, Tensor]] = []
    for length in lengths:
        spaced = {round(x) for x in np.geomspace(3, length - 2, 8)} if length > 5 else {1}
        for distance in [d for d in sorted(distances or spaced) if 1 <= d <= length - 2]:
            tokens = torch.from_numpy(rows.probe(0, count, length, distance)).to(model.device)
            right, heads = [], []
            for part in tokens.split(max(1, 2 * TOKENS // length)):
                layers: list[Tensor] = []
                look = functools.partial(_on_key, layers, length - 1 - distance)
                hidden = model.hidden(model.embed(part[:, :-1]), mask, attend=look)
                right.append(model.logits(hidden[:, -1]).argmax(1) == part[:, -1])
                heads.append(torch.cat(layers, 1))
            accuracy = torch.cat(right).double().mean().item()
            asked.append((length, distance, accuracy, torch.cat(heads).mean(0)))
    first = torch.stack([heads for length, _, _, heads in asked if length == lengths[0]])
    chosen = int(first.mean(0).argmax())
    return [Recall(n, far, right, heads[chosen].item()) for n, far, right, heads in asked]


def _on_key(
    layers: list[Tensor],
    key: int,
    layer: Layer,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    prepared: Prepared,
) -> Tensor:
    """Attend, and note the last query's attention on a key, shape (batch, heads)."""
    marked = torch.zeros(*k.shape[:3], 1, device=k.device, dtype=v.dtype)
    marked[:, :, key] = 1
    layers.append(layer.attend(q[:, :, -1:], k, marked.expand_as(v), prepared)[..., 0, 0].double())
    return layer.attend(q, k, v, prepared)
