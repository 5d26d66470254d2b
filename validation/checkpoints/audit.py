"""The audit of a model: for every layer whether a window is ever enough, for every head with a bias
how far it can see.

Only the configuration is read, and the weights that are the encoding; where bounds of the weights
are asked for, those of queries, keys and values too. No torch. Numbers are those of the theory, on
the formula or table that the folder holds: certified. Rotations and absolute positions are decided
by theorems on bounded logits; the numbers of a rotation's surrogate are given where asked for.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import sympy

from farfield.numerics.horizon import dtype_horizon
from farfield.numerics.leak import Leak, leak
from farfield.numerics.receptive_field import ReceptiveField, theoretical_receptive_field
from farfield.numerics.windows.question import MAX_LOGIT, SCOPE
from farfield.theory.answers.answer import (
    Answer,
    Code,
    InputError,
    Label,
    Reason,
    Status,
    decisive,
)
from farfield.theory.answers.blocks import (
    Block,
    Curve,
    Line,
    Sentence,
    Table,
    facts,
    note,
    sentence,
    table,
)
from farfield.theory.answers.notation import Text, shortened, words
from farfield.theory.answers.number import exact, natural
from farfield.theory.answers.wording import count, listed, plural, runs
from farfield.theory.convergence import check_convergence
from farfield.theory.encodings import Encoding, encoding
from farfield.theory.functions.nodes import Lookup
from farfield.theory.verdicts import Verdict
from farfield.validation.checkpoints.folder import UNCHECKED, Folder, describe
from farfield.validation.checkpoints.head_window import HeadBounds, head_window
from farfield.validation.checkpoints.layers import (
    STATE,
    LayerAudit,
    LayerKeys,
    Proved,
    cache_of,
    keys_text,
    layer_blocks,
    layers_of,
    reach,
    size_text,
)
from farfield.validation.checkpoints.norms import weight_bounds
from farfield.validation.checkpoints.reaches import farthest
from farfield.validation.checkpoints.run import RUN
from farfield.validation.checkpoints.surrogate import Surrogate, surrogate_of
from farfield.validation.short import field_text, share_text
from farfield.validation.usual import DTYPES, EPS, TRAINED

FRAME = 10**9
"""The widest window that is drawn."""

BOUNDS = {
    "given": "for logits and values within the bounds of the table",
    "weights": "for every text, by the norms of the weights",
}


@dataclass(frozen=True)
class HeadAudit:
    """One head, or the same head of several layers.

    Fields:
        layers: from 1, those that have this bias and these bounds.
        head: from 1.
        bias: the formula, or the table's size and range.
        verdict: of the exp-series.
        receptive_fields: TRF at each `eps` of the audit.
        row_fields: the finite-row TRF of a row of the longest length.
        leaks: prior mass beyond the training length, for a row of each length; None if unknown,
            the least positive float where it is less than that.
        horizons: distance from which weights round to 0 in each of `DTYPES`; infinite if never.
        logit_bound, value_bound: for which the window is certified.
        window: keys that are enough for the error budget; infinite where none are, None where that
            is not known.
        reason: why the window is no number.
        farthest: in rows of the training length or longer, the farthest key that can have half of
            the attention while logits stay within `logit_bound`; -1 where none can, None where that
            is not known, or nobody gave or measured the bound.
    """

    layers: tuple[int, ...]
    head: int
    bias: str
    verdict: Verdict
    receptive_fields: tuple[ReceptiveField, ...]
    row_fields: tuple[ReceptiveField, ...]
    leaks: tuple[float | None, ...]
    horizons: tuple[float | None, ...]
    logit_bound: float
    value_bound: float
    window: float | None = None
    reason: Reason | None = None
    farthest: int | None = None


@dataclass(frozen=True, repr=False)
class Audit(Answer):
    """What a model's positional encoding is and how far it sees; see `audit`.

    Fields:
        model, family, layers, head_count, head_size: what was audited.
        encoding, source: the name of the encoding, and where its formula or table is from.
        trained: the training length in tokens, and `trained_from`: where it is from.
        lengths, eps, dtypes: of the numbers.
        error: the budget of the windows, and `bounds`: `given` or `weights`.
        hypothesis: under which the windows are enough, in words.
        assumed: whether it rests on bounds that nobody gave or measured.
        heads: one entry a head, or a layer and head where layers differ.
        sliding_window: the widest window; infinite where a head or layer has none, None where it
            is not known.
        layers_alike: whether a window is ever enough for each layer, those that are alike together.
        reach: input tokens that the output of each layer depends on at most, through depth.
        caches: keys that a row of the training length, and of each other, takes.
        surrogate: for rotations.
        note: what the configuration says beyond the formula.
        label: `certified` for bounds that were given or proved, `approximate` for assumed ones;
            `theorem` where the series of a head diverges.
    """

    VALUE: ClassVar[str] = "sliding_window"

    model: str
    family: str
    layers: int
    head_count: int
    head_size: int
    encoding: str
    source: str
    trained: int
    trained_from: str
    lengths: tuple[int, ...]
    eps: tuple[sympy.Rational, ...]
    dtypes: tuple[str, ...]
    error: sympy.Rational
    bounds: str
    hypothesis: str
    assumed: bool
    heads: tuple[HeadAudit, ...] = ()
    sliding_window: float | None = None
    surrogate: Surrogate | None = None
    note: str = ""
    layers_alike: tuple[LayerAudit, ...] = ()
    reach: tuple[float, ...] = ()
    caches: tuple[LayerKeys, ...] = ()

    def blocks(self) -> Sequence[Block]:
        return (
            *self.what(),
            *self.by_layer(),
            *self.fields_by_head(),
            *self.windows(),
            *self.stand_in(),
        )

    def what(self) -> Iterator[Block]:
        """What the encoding is, the answer in a sentence first."""
        yield Sentence(self._first(), self.label)
        yield facts(
            source=self.source,
            training_length=f"{plural(self.trained, 'token')}, {self.trained_from}",
        )
        if self.heads:
            verdicts = [h.verdict for h in self.heads]
            counts = [
                f"{k} of {len(verdicts)} {str(v).removesuffix('s') if k > 1 else v}"
                for v, k in Counter(verdicts).items()
            ]
            yield sentence("Heads: {counts}.", Label.THEOREM, counts=listed(counts))
        if self.note:
            yield note("{note}.", note=self.note[0].upper() + self.note[1:])

    def _first(self) -> Text:
        attending = self.status is not Status.OUT_OF_SCOPE
        size = words(
            "{model} ({family}): {layers}" + " of {heads} of {size}, {encoding}" * attending,
            model=self.model,
            family=self.family,
            layers=plural(self.layers, "layer"),
            heads=plural(self.head_count, "head"),
            size=self.head_size,
            encoding=self.encoding,
        )
        said = {
            Status.INFINITE: "; no window serves every head.",
            Status.UNKNOWN: "; whether a window serves every head is not known.",
        }.get(
            self.status,
            "; {setting} = {width} keeps the output of every head within {error}, {hypothesis}.",
        )
        width = count(int(self)) if self.status is Status.EXACT else ""
        if not self.heads:
            said, width = self._of_layers(), plural(int(self), "key") if width else ""
        terms = {"width": width, "error": self.error, "hypothesis": self.hypothesis}
        return (*size, *words(said, setting="sliding_window", **terms))

    def _of_layers(self) -> str:
        """Where there is no bias: which layers are local, which see all, and what follows."""
        if self.status is Status.OUT_OF_SCOPE:
            return f"; no positional claim is made: {self.reason}."
        widths = dict.fromkeys(count(k.keys) for k in self.layers_alike if k.keys is not None)
        local, free, state = (
            sum(len(k.layers) for k in self.layers_alike if kind(k))
            for kind in (
                lambda k: k.keys is not None,
                lambda k: k.keys is None and not _state(k),
                _state,
            )
        )
        parts = [
            words.format(n)
            for n, words in (
                (local, f"{{}} local ({' or '.join(widths)} keys)"),
                (free, "{} that see every key"),
                (state, "{} with a state"),
            )
            if n
        ]
        said = f"; layers: {listed(parts)}; " if len(parts) > 1 else "; "
        if self.status is Status.UNKNOWN:
            return f"{said}{self.reason}."
        if self.status is Status.EXACT:
            return said + (
                "every layer with attention sees at most {width}, and keys beyond may be dropped: "
                "set {setting} = " + count(self.sliding_window) + "."
            )
        if not local and not state:
            return "; every layer sees every key, and no window is safe for every input."
        kept = self.caches[0]
        return said + (
            "no window of those that see every key is safe for every input; the cache of a row of "
            f"{keys_text(kept.length)} takes {size_text(kept.bytes)} in 16 bits, "
            f"{kept.keys / (kept.length * self.layers):.1%} of what attention in every layer would."
        )

    def by_layer(self) -> Iterator[Block]:
        """Whether a window is ever enough, layer by layer, and what is to be kept of a row."""
        return layer_blocks(self.layers_alike, self.reach, self.caches) if self.reach else iter(())

    def fields_by_head(self) -> Iterator[Block]:
        """How far each head sees: a curve, and a table."""
        if not self.heads:
            return
        if (drawn := self._curve()) is not None:
            yield drawn
        yield self._table()
        yield note(
            "One line a head. Receptive fields and horizons in tokens, exact integers; the leak is "
            "the share of a row's prior mass beyond {trained}; certified. Infinite where the "
            "series diverges: the receptive field of a finite row then still tells how far it "
            "sees.",
            trained=plural(self.trained, "token"),
        )

    def _table(self) -> Table:
        last = self.lengths[-1]
        header = (
            "layers",
            "head",
            "bias",
            "series",
            *(f"TRF({e})" for e in self.eps),
            *(f"TRF({e}), row of {last}" for e in self.eps),
            *(f"leak to {n}" for n in self.lengths),
            *(f"{d} horizon" for d in self.dtypes),
        )
        alike: dict[Any, list[HeadAudit]] = {}
        for h in self.heads:  # layers that differ in their bounds alone stand together
            seen = (h.head, h.bias, h.verdict, h.receptive_fields, h.row_fields, h.leaks)
            alike.setdefault(seen, []).append(h)
        rows = [
            (
                runs(sorted({k for h in group for k in h.layers})),
                group[0].head,
                _typeset(group[0].bias),
                group[0].verdict,
                *map(field_text, group[0].receptive_fields),
                *map(field_text, group[0].row_fields),
                *map(share_text, group[0].leaks),
                *map(count, group[0].horizons),
            )
            for group in alike.values()
        ]
        return table(header, rows, numeric=(1, *range(4, len(header))))

    def _curve(self) -> Curve | None:
        """Windows and receptive fields by head; None where no head has a window to draw."""
        shown = [
            h
            for h in self.heads
            if h.window is not None
            and h.window <= FRAME
            and (h.receptive_fields[-1].tokens or FRAME) < FRAME
        ]
        if not shown:
            return None
        first = {h.head: h for h in reversed(shown)}
        heads = sorted(first)
        widest = {k: max(float(h.window or 0) for h in shown if h.head == k) for k in heads}
        fields = [float(first[k].receptive_fields[-1].tokens or 0) for k in heads]
        x = tuple(map(float, heads))
        return Curve(
            "Certified window, the widest over layers, and receptive field of each head whose "
            f"window has at most {FRAME:,} tokens.",
            "head",
            "tokens",
            (
                Line("window", x, tuple(widest.values())),
                Line(f"TRF({self.eps[-1]})", x, tuple(fields)),
            ),
            log_y=True,
            marks=(("trained on", float(self.trained)),),
        )

    def windows(self) -> Iterator[Block]:
        """The certified windows."""
        if not self.heads:
            return
        if self.assumed:
            yield sentence(
                "Nobody measured these logits and values: {text} measures them on a text, "
                "{weights} proves bounds.",
                text="farfield window --model FOLDER",
                weights="farfield audit FOLDER --bounds weights",
            )
        reaching = any(h.farthest is not None for h in self.heads)
        rows = [
            (
                runs(h.layers),
                h.head,
                count(h.window),
                *([_far(h.farthest)] if reaching else ()),
                f"{h.logit_bound:.4g}",
                f"{h.value_bound:.4g}",
            )
            for h in self.heads
        ]
        far = ["farthest for half"] if reaching else []
        header = ("layers", "head", "window", *far, "logits within", "values within")
        yield table(header, rows, numeric=tuple(range(1, len(header))))
        if reaching:
            yield note(
                "Farthest for half: in rows of {row} keys or more, no key farther back gets half "
                "of the attention; {bounds}.",
                row=self.trained,
                bounds=BOUNDS[self.bounds],
            )
        for reason in dict.fromkeys(h.reason for h in self.heads if h.reason is not None):
            yield note("Where there is none: {why}.", why=reason)
        yield note(
            "Keys that keep the output of a head within {error} in norm: {scope}; {bounds}. The "
            "whole model is another question, which a measurement answers.",
            error=self.error,
            scope=SCOPE,
            bounds=BOUNDS[self.bounds],
        )

    def stand_in(self) -> Iterator[Block]:
        """The additive surrogate of a rotation."""
        if self.surrogate is not None:
            yield from self.surrogate.blocks(self.trained)


def audit(
    model: Any,
    *,
    trained: Any = None,
    lengths: Sequence[Any] = (),
    eps: Sequence[Any] = EPS,
    error: Any = "1/1000",
    bounds: str = "given",
    logit_bound: Any = None,
    value_bound: Any = None,
    surrogate: bool = False,
) -> Audit:
    """The per-head audit of a model on this machine.

    Args:
        model: a folder that `folder.describe` knows, or what it says of one.
        trained: the training length in tokens; None takes the configuration's.
        lengths: of rows at inference, each at least the training length; 2, 4 and 16 times it if
            none is given.
        eps: shares for the receptive fields, exact.
        error: budget of the certified windows.
        bounds: `given` takes the two numbers; `weights` computes them from the weights of each
            layer and head.
        logit_bound: of |q.k|/sqrt(d), where bounds are given; 1 if not, which is assumed.
        value_bound: of ||v||, in the same way.
        surrogate: whether the numbers of a rotation's additive surrogate are given, in seconds.

    Raises:
        InputError: as `folder.describe`; a bad argument.
    """
    if bounds not in BOUNDS:
        raise InputError(f"bounds {bounds!r} are not known; accepted: {', '.join(BOUNDS)}")
    folder = model if isinstance(model, Folder) else describe(model)
    known, origin = folder.trained, "by the configuration"
    if trained is not None:
        known, origin = natural(trained, "trained"), "as given"
    elif known is None:
        known, origin = TRAINED, "assumed: the configuration names none"
    m, ends = known, folder.longest
    tested = tuple(natural(n, "length") for n in lengths)
    tested = tested or ((2 * m, 4 * m, 16 * m) if ends is None else (max(m, ends),))
    if min(tested) < m:
        raise InputError(
            f"length {min(tested)}: accepted are lengths from {m}, the training length"
        )
    if ends is not None and max(tested) > ends:
        raise InputError(
            f"length {max(tested)}: accepted are lengths up to {ends}, where the rows of "
            f"{folder.name!r} end"
        )
    shares = tuple(exact(e, "eps") for e in eps)
    if not shares or not all(0 < e < 1 for e in shares):
        raise InputError("eps: accepted are numbers between 0 and 1")
    budget = exact(error, "error")
    assumed = bounds == "given" and None in (logit_bound, value_bound)
    logit, value = (
        exact(1 if given is None else given, name)
        for name, given in (("logit_bound", logit_bound), ("value_bound", value_bound))
    )
    hypothesis = BOUNDS[bounds]
    if bounds == "given":
        hypothesis = f"if its logits stay within {logit} and its values within {value}"
        hypothesis += ", which nobody measured" if assumed else ""
    if budget <= 0 or value <= 0 or not 0 <= logit <= MAX_LOGIT:
        raise InputError(
            f"error {budget}, logit_bound {logit}, value_bound {value}: accepted are a positive "
            f"error, logits from 0 to {MAX_LOGIT} and positive values"
        )
    ordered = tuple(sorted(tested))
    content = None if logit_bound is None else float(logit)
    proved = weight_bounds(folder) if bounds == "weights" else []
    named, source = _named(folder, bounds)
    lengths = tuple(dict.fromkeys((m, *ordered)))
    found = Audit(
        folder.name,
        folder.kind,
        folder.shape.layers,
        folder.shape.heads,
        folder.shape.head_size,
        named,
        source,
        m,
        origin,
        ordered,
        shares,
        DTYPES,
        budget,
        bounds,
        hypothesis,
        assumed,
        note=folder.note,
        layers_alike=layers_of(folder, m, logit_bound=content, proved=proved),
        reach=reach(folder.attention),
        caches=tuple(cache_of(folder.attention, folder.shape, length) for length in lengths),
        label=Label.THEOREM,
    )
    turned = next((a.surrogate() for a in folder.attention if surrogate and not a.window), None)
    if turned is not None:
        found = dataclasses.replace(
            found, surrogate=surrogate_of(turned, folder.shape.head_size, m, found.lengths, shares)
        )
    if not any(a.biased for a in folder.attention):
        return _without_heads(found, folder)
    limits = [(HeadBounds(float(logit), float(value)),) * folder.shape.heads] * folder.shape.layers
    return _with_heads(folder, found, proved or limits)


def _named(folder: Folder, bounds: str) -> tuple[str, str]:
    """The names of the positional encodings, and where they are from."""
    counts = Counter(a.encoding.name for a in folder.attention if a.encoding is not None)
    names = [name if len(counts) == 1 else f"{n} {name}" for name, n in counts.items()]
    sources = list(dict.fromkeys(e.source for e in folder.encodings))
    tables = any(bias.has(Lookup) for e in folder.encodings for bias in e.biases)
    unread = folder.kind != RUN and bounds == "given" and not tables
    whole = ["of config.json alone, no weights were read"] * unread
    return listed(names) or "no attention", "; ".join((*sources, *whole))


def _without_heads(a: Audit, folder: Folder) -> Audit:
    """The answer of a model without biases: the widest of its layers."""
    attending = [k for k in a.layers_alike if k.windowable.status is not Status.OUT_OF_SCOPE]
    why = folder.no_claim or ("" if attending else f"each layer has {STATE}")
    if why:
        reason = Reason(Code.NOT_COVERED if folder.no_claim else Code.NOT_SOFTMAX, why)
        return dataclasses.replace(a, status=Status.OUT_OF_SCOPE, label=None, reason=reason)
    unknown = next((k for k in attending if k.windowable.value is None), None)
    if unknown is not None or not folder.checked:
        own = None if unknown is None else unknown.windowable.reason
        reason = own or Reason(Code.NOT_COVERED, UNCHECKED)
        return dataclasses.replace(a, status=Status.UNKNOWN, label=None, reason=reason)
    free = [k for k in attending if not k.windowable.value]
    if not free:
        return dataclasses.replace(a, sliding_window=max(k.keys or 0 for k in attending))
    said = f"layer {free[0].layers[0]} sees all keys, and its logits are bounded"
    return dataclasses.replace(
        a,
        sliding_window=math.inf,
        status=Status.INFINITE,
        reason=Reason(Code.BOUNDED_LOGITS, said),
    )


def _with_heads(folder: Folder, a: Audit, limits: Proved) -> Audit:
    """Layers that share a bias and its bounds share their entries."""
    groups: dict[tuple[int, tuple[HeadBounds, ...]], list[int]] = {}
    each: dict[int, Encoding] = {}
    for layer, (attention, limit) in enumerate(zip(folder.attention, limits, strict=True), 1):
        if limit is None or attention.encoding is None or not attention.biased:
            continue
        each[id(attention.encoding)] = attention.encoding
        groups.setdefault((id(attention.encoding), limit), []).append(layer)
    known = a.bounds == "weights" or not a.assumed
    theory = {k: list(_theory(x, folder.shape.heads, a)) for k, x in each.items()}
    entries, windows = [], []
    for (which, limit), layers in groups.items():
        subject = each[which]
        for entry, bound in zip(theory[which], limit, strict=True):
            window = head_window(_bias(subject, entry.head), bound, a.error)
            windows.append(window)
            entries.append(
                dataclasses.replace(
                    entry,
                    layers=tuple(layers),
                    logit_bound=bound.logit,
                    value_bound=bound.value,
                    window=window.width,
                    reason=window.reason,
                    farthest=farthest(_bias(subject, entry.head), 2 * bound.logit, a.trained)
                    if known
                    else None,
                )
            )
    worst = decisive(windows, lambda w: w.width)
    return dataclasses.replace(
        a,
        heads=tuple(entries),
        sliding_window=worst.width,
        status=worst.status,
        label=Label.APPROXIMATE if a.assumed and worst.label is Label.CERTIFIED else worst.label,
        reason=worst.reason,
    )


def _far(farthest: int | None) -> str:
    return "none" if farthest == -1 else count(farthest)


def _state(layer: LayerAudit) -> bool:
    return layer.windowable.status is Status.OUT_OF_SCOPE


def _bias(subject: Encoding, head: int) -> sympy.Expr:
    return subject.head(head if subject.num_heads > 1 else 1)


def _theory(subject: Encoding, heads: int, a: Audit) -> Iterator[HeadAudit]:
    """What the theory says of each head."""
    verdict = check_convergence(subject)
    fields = theoretical_receptive_field(subject, a.eps)
    rows = theoretical_receptive_field(subject, a.eps, length=a.lengths[-1])
    leaks = [leak(subject, a.trained, n) for n in a.lengths]
    horizons = [dtype_horizon(subject, d) for d in a.dtypes]

    def of(answer: Any, h: int) -> Any:
        return answer.heads[h % len(answer.heads)] if answer.heads else answer

    for h in range(heads):
        yield HeadAudit(
            (),
            h + 1,
            bias_text(_bias(subject, h + 1)),
            of(verdict, h).verdict,
            tuple(of(f, h) for f in fields),
            tuple(of(f, h) for f in rows),
            tuple(_above(of(k, h)) for k in leaks),
            tuple(of(d, h).tokens for d in horizons),
            0.0,
            0.0,
        )


def _above(found: Leak) -> float | None:
    """The leak; where it is too small for a float, the float above it."""
    if found.value == 0 and found.enclosure is not None:
        return found.enclosure[1]
    return found.value


def _typeset(bias: str) -> Any:
    """A bias as mathematics where its text is a formula."""
    try:
        return encoding(bias).formula
    except InputError:
        return bias


def bias_text(bias: sympy.Expr) -> str:
    """A bias in a few characters.

    >>> from farfield.theory.encodings import encoding
    >>> bias_text(encoding("alibi").head(1)), bias_text(encoding(values=[0, -1, -3]).head(1))
    ('-n/2', 'table of 3 values, from -3 to 0')
    >>> bias_text(encoding("alibi", heads=16).head(1))
    '-sqrt(2)*n/2'
    """
    if isinstance(bias, Lookup):
        finite = [float(v) for v in (*bias.args[1].args, bias.args[2]) if v.is_finite]
        return (
            f"table of {len(bias.args[1].args)} values, from {min(finite):.4g} to {max(finite):.4g}"
        )
    text = str(bias)
    return text if len(text) <= 40 else f"{shortened(str(bias.evalf(6)), 60)} (6 digits)"
