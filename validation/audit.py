"""The audit of a model: for every layer and head what its bias is, and how far it can see.

Only the configuration is read, and the weights that are the encoding; the model is loaded only
where windows are asked for bounds of its weights. Numbers are those of the theory, on the formula
or table that the folder holds: certified. For rotations there are none; the surrogate's are given.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from farfield.numerics.horizon import dtype_horizon
from farfield.numerics.leak import Leak, leak
from farfield.numerics.receptive_field import natural, theoretical_receptive_field
from farfield.numerics.windows.toeplitz import MAX_LOGIT
from farfield.theory.convergence import check_convergence
from farfield.theory.encodings import Encoding
from farfield.theory.functions.nodes import Lookup
from farfield.theory.results import InputError, Result, exact
from farfield.validation.model_window import HeadBounds, keys_text, weight_bounds, window_of
from farfield.validation.outside import CAUSAL_FAMILIES, Folder, describe, load
from farfield.validation.study import DTYPES, EPS, tokens_text

_LONGEST = 1 << 22  # of a surrogate's rows, which are summed in float64
_ASSUMED = 2048  # the training length where the configuration names none


@dataclass(frozen=True)
class HeadAudit:
    """One head, or the same head of several layers.

    Fields:
        layers: from 1, those that have this bias and these bounds.
        head: from 1.
        bias: the formula, or the table's size and range.
        verdict: of the exp-series.
        receptive_fields: TRF at each `eps` of the audit; None where the series diverges.
        row_fields: the finite-row TRF of a row of the longest length.
        leaks: prior mass beyond the training length, for a row of each length; None if unknown,
            the least positive float where it is less than that.
        horizons: distance from which weights round to 0 in each of `DTYPES`; None if never.
        logit_bound, value_bound: for which the window is certified.
        window: keys that are enough for the error budget; None if there is no window.
        reason: why something is None.
    """

    layers: tuple[int, ...]
    head: int
    bias: str
    verdict: str
    receptive_fields: tuple[str, ...]
    row_fields: tuple[str, ...]
    leaks: tuple[float | None, ...]
    horizons: tuple[int | None, ...]
    logit_bound: float
    value_bound: float
    window: int | None
    reason: str = ""


@dataclass(frozen=True)
class Surrogate:
    """The additive surrogate of a rotation: the logits of queries and keys of all ones.

    Fields:
        bias, scale: the formula, and its scale `2/sqrt(head size)`.
        verdict: of its exp-series, proved.
        row_fields, leaks: as of a head, in float64: approximate.
    """

    bias: str
    scale: str
    verdict: str
    row_fields: tuple[int, ...]
    leaks: tuple[float, ...]
    label: str = "approximate"


@dataclass(frozen=True)
class Audit(Result):
    """What a model's positional encoding is and how far it sees; see `audit`.

    Fields:
        model, family, layers, head_count, head_size: what was audited.
        encoding, source: the name of the encoding, and where its formula or table is from.
        out_of_scope: the hypothesis that fails, None if none does.
        trained: the training length in tokens, and `trained_from`: where it is from.
        lengths, eps, dtypes: of the numbers.
        error: the budget of the windows, and `bounds`: `given` or `weights`.
        heads: one entry a head, or a layer and head where layers differ.
        surrogate: for rotations.
        note: what the configuration says beyond the formula.
        label: `certified`; `theorem` where the encoding is out of scope.
    """

    model: str
    family: str
    layers: int
    head_count: int
    head_size: int
    encoding: str
    source: str
    out_of_scope: str | None
    trained: int
    trained_from: str
    lengths: tuple[int, ...]
    eps: tuple[sympy.Rational, ...]
    dtypes: tuple[str, ...]
    error: sympy.Rational
    bounds: str
    heads: tuple[HeadAudit, ...] = ()
    surrogate: Surrogate | None = None
    note: str = ""
    label: str = "certified"

    @property
    def sliding_window(self) -> int | None:
        """The widest window, None where a head has none."""
        widths = [h.window for h in self.heads if h.window is not None]
        return max(widths) if widths and len(widths) == len(self.heads) else None

    @property
    def headline(self) -> str:
        """The model in one line."""
        return (
            f"{self.model} ({self.family}): {self.layers} layers of {self.head_count} heads of "
            f"{self.head_size}, {self.encoding}"
        )

    def text(self) -> str:
        lines = [self.headline, f"  source: {self.source}"]
        lines += [f"  note: {self.note}"] if self.note else []
        lines.append(f"  training length {self.trained} tokens ({self.trained_from})")
        if self.out_of_scope:
            lines.append(f"  out of scope: {self.out_of_scope}  [{self.label}]")
        if (s := self.surrogate) is not None:
            fields = ", ".join(
                f"TRF({e}) = {f}" for e, f in zip(self.eps, s.row_fields, strict=True)
            )
            leaks = ", ".join(
                f"to {n}: {x:.3g}" for n, x in zip(self.lengths, s.leaks, strict=True)
            )
            lines += [
                f"  surrogate at scale {s.scale}: {s.verdict}  [theorem]",
                f"    row of {self.lengths[-1]} keys: {fields}  [{s.label}]",
                f"    leak from {self.trained} {leaks}  [{s.label}]",
            ]
        if self.heads:
            lines += _columns([list(self.header()), *map(list, self.rows())])
            lines.append(
                f"  [{self.label}; windows: error <= {self.error} of a head's output, "
                f"{BOUNDS[self.bounds]}, exact arithmetic]"
            )
            lines += [f"  {reason}" for reason in dict.fromkeys(h.reason for h in self.heads if
                                                                h.reason)]  # fmt: skip
        return "\n".join(lines)

    def header(self) -> tuple[str, ...]:
        """The names of the columns of `rows`."""
        last = self.lengths[-1]
        return (
            "layer", "head", "bias", "verdict", *(f"TRF({e})" for e in self.eps),
            *(f"TRF({e}), row of {last}" for e in self.eps),
            *(f"leak to {n}" for n in self.lengths), *(f"{d} horizon" for d in self.dtypes),
            "window",
        )  # fmt: skip

    def rows(self) -> Iterator[tuple[str, ...]]:
        """One line a head, as text."""
        for h in self.heads:
            yield (
                spans(h.layers), str(h.head), h.bias, h.verdict, *h.receptive_fields,
                *h.row_fields, *map(share_text, h.leaks),
                *map(keys_text, h.horizons), keys_text(h.window),
            )  # fmt: skip


BOUNDS = {
    "given": "for the logit and value bounds given",
    "weights": "for bounds from the norms of the weights",
}


def audit(
    model: Any,
    *,
    trained: Any = None,
    lengths: Sequence[Any] = (),
    eps: Sequence[Any] = EPS,
    error: Any = "1/1000",
    bounds: str = "given",
    logit_bound: Any = 1,
    value_bound: Any = 1,
) -> Audit:
    """The per-head audit of a model on this machine.

    Args:
        model: a folder that `outside.describe` knows, or what it says of one.
        trained: the training length in tokens; None takes the configuration's.
        lengths: of rows at inference, each at least the training length; 2, 4 and 16 times it if
            none is given.
        eps: shares for the receptive fields, exact.
        error: budget of the certified windows.
        bounds: `given` takes the two numbers; `weights` computes them from the weights of each
            layer and head, which loads the model.
        logit_bound: of |q.k|/sqrt(d), where bounds are given.
        value_bound: of ||v||, where bounds are given.

    Raises:
        InputError: as `outside.describe`; a bad argument.
    """
    if bounds not in BOUNDS:
        raise InputError(f"bounds {bounds!r} are not known; accepted: {', '.join(BOUNDS)}")
    folder = model if isinstance(model, Folder) else describe(model)
    known, origin = folder.trained, "by the configuration"
    if trained is not None:
        known, origin = natural(trained, "trained"), "as given"
    elif known is None:
        known, origin = _ASSUMED, "assumed: the configuration names none"
    m = known
    tested = tuple(natural(n, "length") for n in lengths) or (2 * m, 4 * m, 16 * m)
    if min(tested) < m:
        raise InputError(
            f"length {min(tested)}: accepted are lengths from {m}, the training length"
        )
    shares = tuple(exact(e, "eps") for e in eps)
    if not shares or not all(0 < e < 1 for e in shares):
        raise InputError("eps: accepted are numbers between 0 and 1")
    budget = exact(error, "error")
    logit, value = exact(logit_bound, "logit_bound"), exact(value_bound, "value_bound")
    if budget <= 0 or value <= 0 or not 0 <= logit <= MAX_LOGIT:
        raise InputError(
            f"error {budget}, logit_bound {logit}, value_bound {value}: accepted are a positive "
            f"error, logits from 0 to {MAX_LOGIT} and positive values"
        )
    first = folder.encodings[0]
    unread = folder.family in CAUSAL_FAMILIES and bounds == "given"
    found = Audit(
        folder.name, folder.family, folder.layers, folder.heads, folder.head_size, first.name,
        first.source + ("; of config.json alone, no weights were read" if unread else ""),
        first.out_of_scope, m, origin, tuple(sorted(tested)), shares, DTYPES, budget,
        bounds, note=folder.note,
        label="certified" if first.biases else "theorem",
    )  # fmt: skip
    if folder.surrogate is not None:
        if max(tested) > _LONGEST:
            raise InputError(
                f"length {max(tested)}: accepted for a rotation are lengths up to {_LONGEST}"
            )
        found = dataclasses.replace(found, surrogate=_surrogate(folder, found))
    if not first.biases:
        return found
    fixed = HeadBounds(float(logit), float(value))
    limits: list[tuple[HeadBounds, ...]] = [(fixed,) * folder.heads] * folder.layers
    if bounds == "weights":
        limits = list(weight_bounds(folder, load(folder)))
    return dataclasses.replace(found, heads=tuple(_heads(folder, found, limits)))


def _heads(folder: Folder, a: Audit, limits: list[tuple[HeadBounds, ...]]) -> Iterator[HeadAudit]:
    """Layers that share a bias and its bounds share their entries."""
    one = len(folder.encodings) == 1
    groups: dict[Any, list[int]] = {}
    for layer in range(folder.layers):
        groups.setdefault((0 if one else layer, limits[layer]), []).append(layer + 1)
    known: dict[int, list[HeadAudit]] = {}
    for (which, limit), layers in groups.items():
        subject = folder.encodings[which]
        if which not in known:
            known[which] = list(_theory(subject, folder.heads, a))
        for entry, bound in zip(known[which], limit, strict=True):
            bias = subject.head(entry.head if subject.num_heads > 1 else 1)
            width, why = window_of(bias, bound, a.error)
            yield dataclasses.replace(
                entry, layers=tuple(layers), logit_bound=bound.logit, value_bound=bound.value,
                window=width, reason=why,
            )  # fmt: skip


def _theory(subject: Encoding, count: int, a: Audit) -> Iterator[HeadAudit]:
    verdict = check_convergence(subject)
    fields = theoretical_receptive_field(subject, list(a.eps))
    rows = theoretical_receptive_field(subject, list(a.eps), length=a.lengths[-1])
    leaks = [leak(subject, a.trained, n) for n in a.lengths]
    horizons = [dtype_horizon(subject, d) for d in a.dtypes]

    def of(result: Any, h: int) -> Any:
        return result.heads[h % len(result.heads)] if result.heads else result

    for h in range(count):
        bias = subject.head(h + 1 if subject.num_heads > 1 else 1)
        yield HeadAudit(
            (), h + 1, words(bias), str(of(verdict, h).verdict),
            tuple(tokens_text(of(f, h)) for f in fields),
            tuple(tokens_text(of(f, h)) for f in rows),
            tuple(_above(of(k, h)) for k in leaks), tuple(of(d, h).tokens for d in horizons),
            0.0, 0.0, None,
        )  # fmt: skip


def _above(found: Leak) -> float | None:
    """The leak; where it is too small for a float, the float above it."""
    if found.value == 0 and found.enclosure is not None:
        return found.enclosure[1]
    return found.value


def share_text(x: float | None) -> str:
    """A share in a few characters.

    >>> share_text(0.25), share_text(5e-324), share_text(None)
    ('0.25', '< 1e-300', '?')
    """
    if x is None:
        return "?"
    return "< 1e-300" if 0 < x < 1e-300 else f"{x:.3g}"


def _surrogate(folder: Folder, a: Audit) -> Surrogate:
    """At the scale of a logit: queries and keys of all ones give `2 sum cos / sqrt(head size)`."""
    made = folder.surrogate
    assert made is not None and made.formula is not None
    symbol = made.parameters[0].symbol
    bias = made.head(1)
    scale = 2 / sympy.sqrt(folder.head_size)
    values = made.bias(np.arange(a.lengths[-1]))[0] * float(scale)
    b = np.exp(values - values.max())
    partial = np.cumsum(b)
    total = partial[-1]
    tails = total - np.concatenate([[0.0], partial])
    return Surrogate(
        f"{symbol}*sum of cos(n theta_i), {len(bias.args) or 1} angles", str(scale),
        str(check_convergence(made).verdict),
        tuple(int(np.argmax(tails < float(e) * total)) for e in a.eps),
        tuple(float(1 - partial[a.trained - 1] / partial[n - 1]) for n in a.lengths),
    )  # fmt: skip


def words(bias: sympy.Expr) -> str:
    """A bias in a few characters.

    >>> from farfield.theory.encodings import encoding
    >>> words(encoding("alibi").head(1)), words(encoding(values=[0, -1, -3]).head(1))
    ('-n/2', 'table of 3 values, from -3 to 0')
    >>> words(encoding("alibi", heads=16).head(1))
    '-sqrt(2)*n/2'
    """
    if isinstance(bias, Lookup):
        finite = [float(v) for v in (*bias.args[1].args, bias.args[2]) if v.is_finite]
        return (
            f"table of {len(bias.args[1].args)} values, from {min(finite):.4g} to {max(finite):.4g}"
        )
    text = str(bias)
    if len(text) <= 40:
        return text
    text = str(bias.evalf(6))
    return (text if len(text) <= 60 else f"{text[:57]}...") + " (6 digits)"


def spans(layers: Sequence[int]) -> str:
    """Layers as spans.

    >>> spans((1, 2, 3, 5))
    '1-3, 5'
    """
    found: list[list[int]] = []
    for layer in layers:
        if found and layer == found[-1][1] + 1:
            found[-1][1] = layer
        else:
            found.append([layer, layer])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def _columns(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [
        "  " + "  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
