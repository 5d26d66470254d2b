"""The audit of a model: for every layer whether a window is ever enough, for every head with a bias
how far it can see.

Only the configuration is read, and the weights that are the encoding; where bounds of the weights
are asked for, those of queries, keys and values too. No torch. Numbers are those of the theory, on
the formula or table that the folder holds: certified. Rotations and absolute positions are decided
by theorems on bounded logits.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import sympy

from farfield.numerics.windows.question import SCOPE, read_bounds
from farfield.theory.answers.answer import Answer, Code, InputError, Label, Status, deciding_head
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
from farfield.theory.answers.errors import refuse
from farfield.theory.answers.names import one_of
from farfield.theory.answers.notation import Text, code, words
from farfield.theory.answers.number import count, inside, listed, natural, plural, runs
from farfield.theory.encodings import encoding
from farfield.theory.functions.nodes import Lookup
from farfield.validation.checkpoints.configured import RUN, Folder, HeadBounds
from farfield.validation.checkpoints.folder import describe
from farfield.validation.checkpoints.layer_audit import (
    LayerAudit,
    LayerKeys,
    cache_of,
    layer_blocks,
    layers_of,
    reach,
    widest,
)
from farfield.validation.checkpoints.norms import weight_bounds
from farfield.validation.defaults import DTYPES, EPS, TRAINED
from farfield.validation.optional import library

if TYPE_CHECKING:
    from farfield.validation.checkpoints.head_audit import Head

FRAME = 10**9
"""The widest window that is drawn."""

BOUNDS = {
    "given": "for logits and values within the bounds of the table",
    "weights": "for every text, by the norms of the weights",
}


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
        measured: on a text, what windows its heads have there.
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
    heads: tuple[Head, ...] = ()
    sliding_window: float | None = None
    note: str = ""
    layers_alike: tuple[LayerAudit, ...] = ()
    reach: tuple[float, ...] = ()
    caches: tuple[LayerKeys, ...] = ()
    measured: Answer | None = None

    def blocks(self) -> Sequence[Block]:
        return (*self.what(), *self.by_layer(), *self.fields_by_head(), *self.windows())

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
        if self.measured is not None:
            yield from (b for b in self.measured.blocks() if isinstance(b, Sentence))

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
            Status.UNKNOWN: "; whether a window serves every head is not known: {why}.",
        }.get(
            self.status,
            "; {setting} = {width} keeps the output of every head within {error}, {hypothesis}.",
        )
        width = count(int(self)) if self.status is Status.EXACT else ""
        if not self.heads:
            said, width = self._of_layers(), plural(int(self), "key") if width else ""
        terms = {"width": width, "error": self.error, "hypothesis": self.hypothesis}
        return (*size, *words(said, setting="sliding_window", why=self.reason, **terms))

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
            more = " than the training length has" * (int(self) > self.trained)
            return said + (
                "every layer with attention sees at most {width}"
                + f", more{more}" * bool(more)
                + ", and keys beyond may be dropped: set {setting} = "
                + count(self.sliding_window)
                + "."
            )
        if not local and not state:
            return "; every layer sees every key, and no window is safe for every input."
        return said + "no window of those that see every key is safe for every input."

    @property
    def _broken(self) -> bool:
        """Whether the text exceeds a bound that is to hold for every text."""
        return self.reason is not None and self.reason.code is Code.BROKEN_BOUND

    def by_layer(self) -> Iterator[Block]:
        """Whether a window is ever enough, layer by layer, and which keys of a row to keep."""
        if not self.reach:
            return iter(())
        unread = self.bounds == "given" and self.family != RUN
        return layer_blocks(self.layers_alike, self.reach, self.caches, unread=unread)

    def fields_by_head(self) -> Iterator[Block]:
        """How far each head sees: a curve, and the first columns of its numbers."""
        if not self.heads:
            return
        if (drawn := self._curve()) is not None:
            yield drawn
        yield self.by_head().first(4 + len(self.eps))
        yield note(
            "One line a head. Receptive fields in tokens, exact integers, certified; infinite "
            "where the series diverges. The page has fields of rows, leaks beyond {trained} and "
            "horizons of floating-point types.",
            trained=plural(self.trained, "token"),
        )

    def by_head(self) -> Table:
        """Every number of each head."""
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
        alike: dict[Any, list[Head]] = {}
        for h in self.heads:  # layers that differ in their bounds alone stand together
            seen = (h.head, h.bias, h.verdict, h.receptive_fields, h.row_fields, h.leaks)
            alike.setdefault(seen, []).append(h)
        rows = [
            (
                runs(sorted({k for h in group for k in h.layers})),
                group[0].head,
                _typeset(group[0].bias),
                group[0].verdict,
                *group[0].cells(),
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
            and not self._broken
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
        if not self.heads or self._broken:
            return
        if self.assumed:
            yield sentence(
                "Nobody measured these logits and values: {text} measures them on a text, "
                "{weights} proves bounds.",
                text=code("`farfield window --model FOLDER`"),
                weights=code("`farfield audit FOLDER --bounds weights`"),
            )
        rows = [
            (
                runs(h.layers),
                h.head,
                count(h.window),
                f"{h.logit_bound:.4g}",
                f"{h.value_bound:.4g}",
            )
            for h in self.heads
        ]
        header = ("layers", "head", "window", "logits within", "values within")
        yield table(header, rows, numeric=tuple(range(1, len(header))))
        for reason in dict.fromkeys(h.reason for h in self.heads if h.reason is not None):
            yield note("Where there is none: {why}.", why=reason)
        yield note(
            "Keys that keep the output of a head within {error} in norm: {scope}; {bounds}. The "
            "whole model is another question, which a measurement answers.",
            error=self.error,
            scope=SCOPE,
            bounds=BOUNDS[self.bounds],
        )


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
    text: Any = None,
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
        text: a file, a folder or a `Corpus`, on which the windows of heads with a bias are
            measured as well.

    Raises:
        InputError: as `folder.describe`, and as `loading.load` where there is a text; a bad
            argument.
    """
    one_of(bounds, "bounds", BOUNDS)
    folder = describe(model)
    m, origin, ends = folder.trained, "by the configuration", folder.longest
    if trained is not None:
        m, origin = natural(trained, "trained"), "as given"
    elif m is None:
        m, origin = TRAINED, "assumed: the configuration names none"
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
    shares = tuple(inside(e, "eps", "(0, 1)") for e in eps)
    if not shares:
        raise InputError("eps is empty; accepted: one or more numbers in (0, 1)")
    budget = inside(error, "error", "(0, oo)")
    assumed = bounds == "given" and None in (logit_bound, value_bound)
    logit, value = read_bounds(*(1 if b is None else b for b in (logit_bound, value_bound)))
    hypothesis = BOUNDS[bounds]
    if bounds == "given":
        hypothesis = f"if its logits stay within {logit} and its values within {value}"
        hypothesis += ", which nobody measured" if assumed else ""
    content = None if logit_bound is None else float(logit)
    proved = weight_bounds(folder) if bounds == "weights" else []
    layers = layers_of(folder, m, logit_bound=content, proved=proved)
    biased = any(a.biased for a in folder.attention)
    measured = None if text is None else _measured(folder, budget, bounds, text, biased)
    found = Audit(
        folder.name,
        folder.kind,
        folder.shape.layers,
        folder.shape.heads,
        folder.shape.head_size,
        *_named(folder, bounds),
        m,
        origin,
        tuple(sorted(tested)),
        shares,
        DTYPES,
        budget,
        bounds,
        hypothesis,
        assumed,
        note=folder.note,
        layers_alike=layers,
        reach=reach(folder.attention),
        caches=tuple(
            cache_of(folder.attention, folder.shape, length)
            for length in dict.fromkeys((m, *sorted(tested)))
        ),
        measured=measured,
        label=Label.THEOREM,
    )
    if not biased:
        return dataclasses.replace(found, **widest(folder, layers))
    from farfield.validation.checkpoints.head_audit import audited  # its sums are not always needed

    given = [(HeadBounds(float(logit), float(value)),) * folder.shape.heads] * folder.shape.layers
    asked = {"trained": m, "lengths": found.lengths, "eps": shares, "dtypes": DTYPES}
    heads, windows = audited(folder, proved or given, budget, **asked)
    found = dataclasses.replace(
        found, heads=tuple(heads), reason=None if measured is None else measured.reason
    )
    if found._broken:
        return dataclasses.replace(found, status=Status.UNKNOWN, label=None)
    worst = deciding_head(windows, lambda w: w.width)
    uncertain = assumed and worst.label is Label.CERTIFIED
    return dataclasses.replace(
        found,
        sliding_window=worst.width,
        status=worst.status,
        label=Label.APPROXIMATE if uncertain else worst.label,
        reason=worst.reason,
    )


def _measured(
    folder: Folder, error: sympy.Rational, bounds: str, text: Any, biased: bool
) -> Answer:
    """What the windows of the loaded model do on a text: those of the audit where its bounds are by
    the weights, else those of bounds measured on the text."""
    refuse(
        not biased,
        f"a text measures the windows of heads with a bias, and {folder.name!r} has none; "
        "accepted: no text. What a window costs is what farfield perplexity --window measures",
    )
    library("torch", "a model on a text", "hf")
    from farfield.validation.checkpoints.measured.windows import model_window

    return model_window(
        folder, error, bounds="weights" if bounds == "weights" else "text", text=text
    )


def _named(folder: Folder, bounds: str) -> tuple[str, str]:
    """The names of the positional encodings, and where they are from."""
    counts = Counter(a.encoding.name for a in folder.attention if a.encoding is not None)
    names = [name if len(counts) == 1 else f"{n} {name}" for name, n in counts.items()]
    biased = any(a.biased for a in folder.attention)
    tables = any(bias.has(Lookup) for e in folder.encodings for bias in e.biases)
    unread = folder.kind != RUN and bounds == "given" and not tables
    sources = dict.fromkeys(e.source for e in folder.encodings if biased or not unread)
    whole = ["config.json alone, no weights were read"] * unread
    return listed(names) or "no attention", "; ".join((*sources, *whole))


def _state(layer: LayerAudit) -> bool:
    return layer.windowable.status is Status.OUT_OF_SCOPE


def _typeset(bias: str) -> Any:
    """A bias as mathematics where its text is a formula."""
    try:
        return encoding(bias).formula
    except InputError:
        return bias
