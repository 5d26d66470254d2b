"""The empirical receptive field of any model: ours, a run of a store, or a model from outside.

`receptive_field` measures; here the question is asked as a user asks it, and the answer carries its
interval, its curve and its definition.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import sympy

from farfield.theory.answers.answer import Answer, Code, InputError, Label, Reason, Status
from farfield.theory.answers.blocks import Block, facts, note, sentence, table
from farfield.theory.answers.names import one_of
from farfield.theory.answers.number import inside, listed, natural, share
from farfield.validation.checkpoints.configured import Folder
from farfield.validation.checkpoints.folder import describe
from farfield.validation.checkpoints.loading import OutsideModel, load
from farfield.validation.checkpoints.measured.segments import tokens_of
from farfield.validation.harness.corpus import Corpus, corpus, samples_of
from farfield.validation.harness.measures.receptive_fields import (
    Bounds,
    attention_rows,
    gradient_shares,
    powers,
    resampled,
    share_within,
    shortest_suffix,
)
from farfield.validation.harness.mechanism import CAUSAL, Visibility
from farfield.validation.harness.model import Transformer
from farfield.validation.progress import Progress, silent
from farfield.validation.table_cells import sampled

KINDS = ("gradient", "attention")
_TOKENS = 8192  # of gradients at a time, unless one segment has more
_SEGMENTS = {"gradient": 32, "attention": 8}
_LENGTH = {"gradient": 1024, "attention": 512}
_DEFINITION = {
    "gradient": (
        "shortest suffix with more than q of the summed norms of the gradient at the input "
        "embeddings of the log-probability of the observed next token at the last position"
    ),
    "attention": (
        "least number of nearest keys that hold more than 1 - eps of a row's attention; mean over "
        "rows evenly spaced in the second half of a segment, heads, layers, segments"
    ),
}


@dataclass(frozen=True, repr=False)
class EmpiricalReceptiveField(Answer):
    """How far a model looks back, measured.

    Fields:
        model: its name.
        method: `gradient` or `attention`.
        threshold: q of the gradient, eps of the attention.
        tokens: the receptive field.
        interval: its 95 % bootstrap interval over the segments; None for a single one.
        curve: pairs (tokens, share of the gradient or attention on the nearest so many tokens) at
            powers of two, means over the segments.
        training_length: tokens that the model was trained on, None if it is not known.
        mass_in_training_length, mass_interval: the share on the nearest so many tokens; None
            where the training length is not known or not shorter than the segments.
        length, segments: tokens of a segment, and segments.
        text_source: what was read.
        visible: which keys a query saw, in words; empty for all before it.
        heads: for attention, the mean of each head, one tuple a layer.
        trf: for attention, the finite-row TRF of the bias alone on the same rows; None for a model
            without one.
        bounds: for attention, logit and value ranges, and the theoretical bounds on every row.
        definition: in words.
        label: `measured`. Where a measured row breaks a bound, nothing is known: the status is
            `unknown`, the code of the reason `broken_bound`.
    """

    VALUE: ClassVar[str] = "tokens"

    model: str
    method: str
    threshold: float
    tokens: float
    interval: tuple[float, float] | None
    curve: tuple[tuple[int, float], ...]
    training_length: int | None
    mass_in_training_length: float | None
    mass_interval: tuple[float, float] | None
    length: int
    segments: int
    text_source: str
    visible: str = ""
    heads: tuple[tuple[float, ...], ...] = ()
    trf: float | None = None
    bounds: Bounds | None = None
    definition: str = ""

    def _blocks(self) -> Iterator[Block]:
        digits = 0 if self.method == "gradient" else 1
        eps = 1 - self.threshold if self.method == "gradient" else self.threshold
        said = "the nearest {tokens} tokens{between} hold all but {eps}, measured on {sampled}."
        if self.reason is not None:
            said = "how far it looks is not known: {why}."
        yield sentence(
            "{model}{seen}: by its {method}, " + said,
            self.label,
            why=self.reason,
            model=self.model,
            seen=f" under {self.visible}" if self.visible else "",
            method=self.method,
            tokens=f"{self.tokens:.{digits}f}",
            between=_between(self.interval, f".{digits}f"),
            eps=share(sympy.Rational(eps).limit_denominator(10**9)),
            sampled=sampled(self.segments, self.length),
        )
        points = [point for point in self.curve if point[1] < 0.99995] or list(self.curve[:1])
        yield table(
            ("nearest tokens", "share"), [(n, f"{s:.4g}") for n, s in points], numeric=(0, 1)
        )
        b, mass = self.bounds, self.mass_in_training_length
        yield facts(
            **{
                f"share within the training length of {self.training_length}": None
                if mass is None
                else f"{mass:.4g}{_between(self.mass_interval, '.4g')}",
                "TRF of the bias alone on the same rows": None
                if self.trf is None
                else f"{self.trf:.1f} tokens",
                "by head": None
                if not self.heads
                else "; ".join(listed([f"{h:.1f}" for h in layer]) for layer in self.heads),
                "logits": None
                if b is None
                else f"|q.k|/sqrt(d) up to {b.logit_bound:.3g}, range of a "
                f"row up to {b.range_max:.3g} (median {b.range_median:.3g}), maxima over these "
                "rows",
                "values": None if b is None else f"||v|| up to {b.value_bound:.3g}",
                "bounds by theory": None
                if b is None
                else f"{b.violations} of {b.checks} comparisons failed",
                "text": self.text_source,
            }
        )
        yield note("{definition}.", definition=self.definition)


def empirical_receptive_field(
    model: Any,
    text: Any = None,
    *,
    kind: str = "gradient",
    q: Any = "99/100",
    eps: Any = "1/100",
    length: int | None = None,
    segments: int | None = None,
    rows: int = 32,
    visible: Visibility = CAUSAL,
    progress: Progress = silent,
) -> EmpiricalReceptiveField:
    """How far a model looks back on a text: by its input gradient, or by its attention.

    Args:
        model: a folder with a Hugging Face causal model (safetensors; never remote code), the
            folder of a finished run, what `folder.describe` says of one, or a loaded model.
        text: a file or folder, a `Corpus`, an array of tokens; None takes the source code of the
            standard library. Of a corpus the held-out part is read.
        kind: `gradient` [C, 5.1; the scalar is our choice] or `attention` [Q, after Eq. 21].
        q: share of the gradient, between 0 and 1.
        eps: share of the attention that may stay outside, between 0 and 1.
        length: tokens a segment; 1024 for the gradient and 512 for the attention if not given.
        segments: how many, evenly spaced; 32 and 8 if not given.
        rows: for attention, query rows a head and segment.
        visible: which keys a query sees.
        progress: told how many segments are read.

    Memory is linear in the length. For the gradient of a model from outside it holds the
    activations of one layer at a time.

    Raises:
        InputError: the folder is no model that is known here, its weights are pickled,
            incomplete or not finite, it is too large for the memory; the text is too short; a bad
            argument.

    >>> from farfield.theory.encodings import encoding
    >>> from farfield.validation.harness.presets import preset
    >>> from farfield.validation.harness.positional import initialised
    >>> model = initialised(encoding("window", w=4), preset("tiny"), 0)
    >>> tokens = np.arange(500, dtype=np.uint8) % 97
    >>> found = empirical_receptive_field(model, tokens, q="0.999999", length=64, segments=2)
    >>> found.tokens <= 2 * (4 - 1) + 1  # the exact reach of two layers
    True
    """
    one_of(kind, "kind", KINDS)
    name, given = ("q", q) if kind == "gradient" else ("eps", eps)
    threshold = inside(given, name, "(0, 1)")
    size = natural(_LENGTH[kind] if length is None else length, "length")
    count = natural(_SEGMENTS[kind] if segments is None else segments, "segments")
    rows = natural(rows, "rows")
    model, name, tokens, source = _opened(model, text, size)
    part = float(threshold)
    trained, points = model.length, powers(size)
    asked = trained is not None and trained < size
    bounds, trf = None, None
    heads: tuple[tuple[float, ...], ...] = ()
    interval: tuple[float, float] | None
    samples = samples_of(tokens, count, size)
    step = max(1, _TOKENS // size)

    def done(segments: int) -> None:
        progress("segments", segments, len(samples))

    if kind == "gradient":
        parts = []
        for start in range(0, len(samples), step):
            parts.append(gradient_shares(model, samples[start : start + step], visible))
            done(start + len(parts[-1]))
        curves = np.concatenate(parts)
        found: float
        found, *ends = shortest_suffix(curves, part)
        interval = (ends[0], ends[1]) if len(samples) > 1 else None
        shares = np.stack([share_within(curves, p) for p in (*points, trained or 1)], -1)
    else:
        measured = attention_rows(
            model,
            tokens,
            thresholds=(part,),
            length=size,
            segments=count,
            rows=rows,
            visible=visible,
            within=(*points, trained or 1),
            progress=done,
        )
        erf = measured.erf[:, 0]
        found, interval = float(erf.mean()), _interval(erf.mean((0, 2, 3)).numpy())
        shares, bounds = measured.shares, measured.bounds
        heads = tuple(map(tuple, erf.mean((1, 3)).tolist()))
        trf = None if model.bias is None else float(measured.trf.mean())
    if not np.isfinite(shares).all():
        raise InputError(
            f"{name}: its {kind} on this text is not finite, or 0 everywhere; accepted: a model "
            "whose weights and activations are finite"
        )
    means, weight = shares.mean(0), dict[str, Any](label=Label.MEASURED)
    if bounds is not None and bounds.violations:
        why = f"{bounds.violations} of {bounds.checks} comparisons with its bounds failed"
        weight = {"status": Status.UNKNOWN, "reason": Reason(Code.BROKEN_BOUND, why), "label": None}
    return EmpiricalReceptiveField(
        name,
        kind,
        part,
        found,
        interval,
        tuple((p, float(s)) for p, s in zip(points, means[:-1], strict=True)),
        trained,
        float(means[-1]) if asked else None,
        _interval(shares[:, -1]) if asked else None,
        size,
        len(shares),
        source,
        "" if visible == CAUSAL else str(visible),
        heads,
        trf,
        bounds,
        _DEFINITION[kind],
        subject=name,
        **weight,
    )


def _between(interval: tuple[float, float] | None, kind: str) -> str:
    return "" if interval is None else f" ({interval[0]:{kind}} to {interval[1]:{kind}})"


def _interval(values: np.ndarray) -> tuple[float, float] | None:
    if len(values) < 2:
        return None
    low, high = np.quantile(resampled(values), (0.025, 0.975))
    return float(low), float(high)


def _opened(
    model: Any, text: Any, size: int
) -> tuple[Transformer | OutsideModel, str, np.ndarray, str]:
    """The model, its name, the tokens to read and what they are."""
    if isinstance(model, str | os.PathLike | Folder):
        folder = describe(model)
        model = load(folder, tokens=size)
    elif isinstance(model, OutsideModel):
        folder = model.folder
    elif isinstance(model, Transformer):
        folder = None
    else:
        raise InputError(
            f"model {type(model).__name__!r}: accepted are a folder and a loaded model"
        )
    name = "the model" if folder is None else folder.name
    if isinstance(text, np.ndarray):
        if text.ndim != 1 or text.dtype.kind not in "iu":
            raise InputError("the text has to be a one-dimensional array of tokens")
        vocabulary = folder.shape.vocabulary if folder else len(model.embedding.weight)
        if text.size and not 0 <= int(text.min()) <= int(text.max()) < vocabulary:
            raise InputError(f"the text has tokens outside 0 to {vocabulary - 1}")
        return model, name, text, f"{len(text)} tokens"
    read = text if isinstance(text, Corpus) else corpus(text)
    read = read if folder is None else tokens_of(folder, read)
    return model, name, read.held_out, read.source
