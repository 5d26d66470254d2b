"""The audit of a model: which layer keeps what, how many bytes that is, and what may be set.

Only the configuration is read, and the weights that are a bias; where bounds by the weights are
asked for, those of queries, keys and values too. No torch, unless a text is given.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import sympy

from farfield.theory.answers.answer import (
    Answer,
    Code,
    InputError,
    Label,
    Reason,
    Status,
    deciding_head,
)
from farfield.theory.answers.blocks import (
    Block,
    Sentence,
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
from farfield.validation.defaults import EPS, TRAINED
from farfield.validation.models.cache import (
    RowCache,
    Serving,
    bytes_of,
    longest,
    row_cache,
    serving_of,
    size_text,
)
from farfield.validation.models.folder import describe
from farfield.validation.models.layers import RUN, LayerOutline, ModelOutline, keys_text
from farfield.validation.models.transformers_config import architectures
from farfield.validation.table_cells import field_text

if TYPE_CHECKING:
    from farfield.validation.models.head_audit import Head

BOUNDS = {
    "given": "for logits and values within the bounds of the table",
    "weights": "for every text, by the norms of the weights",
}


@dataclass(frozen=True)
class Kind:
    """Layers that are alike.

    Fields:
        layers: from 1.
        layer: what each of them does and keeps.
        token, row: bytes that one token, and a row of the training length, takes in each of them.
    """

    layers: tuple[int, ...]
    layer: LayerOutline
    token: float
    row: float


@dataclass(frozen=True, repr=False)
class Audit(Answer):
    """What a model keeps, layer by layer, and which window may be set; see `audit`.

    Fields:
        model, family: its name and its `model_type`.
        kinds: layers that are alike, together.
        serving: the type of the cache's numbers, devices, and the tokens of a page.
        caches: what a row of the training length, and of each other, takes on one device.
        budget: bytes of a cache that were given; None without.
        longest: tokens of the longest row that fits into them; infinite where every row does.
        reach: input tokens that the last output depends on at most, through depth.
        trained: the training length, and `trained_from`: where it is from.
        sliding_window: keys that are enough for every layer; infinite where one sees all and no
            window is enough, None where that is not known.
        eps: shares of the receptive fields of the heads.
        error: the budget of their windows, and `bounds`: `given` or `weights`.
        hypothesis: under which the windows are enough, in words; `assumed`: whether it rests on
            bounds that nobody gave or measured.
        heads: one entry a head with a bias, or a layer and head where layers differ.
        source: where the formula or table of a bias is from.
        notes: further remarks.
        measurable: whether a window can be measured on a text.
        label: `theorem` for what follows from the widths of the layers; `certified` for bounds
            that were given or proved, `approximate` for assumed ones.
    """

    VALUE: ClassVar[str] = "sliding_window"

    model: str
    family: str
    kinds: tuple[Kind, ...]
    serving: Serving
    caches: tuple[RowCache, ...]
    trained: int
    trained_from: str
    reach: float
    error: sympy.Rational
    budget: int | None = None
    longest: float | None = None
    sliding_window: float | None = None
    eps: tuple[sympy.Rational, ...] = ()
    bounds: str = "given"
    hypothesis: str = ""
    assumed: bool = False
    heads: tuple[Head, ...] = ()
    source: str = ""
    notes: tuple[str, ...] = ()
    measurable: bool = False

    @property
    def encoding(self) -> str:
        """The names of the positional encodings of the catalogue that its layers have."""
        names = {"rotation": "rope", "none": "nope", "absolute": "learned_absolute"}
        each = dict.fromkeys(
            k.layer.encoding.name if k.layer.encoding else names.get(k.layer.positions, "")
            for k in self.kinds
            if k.layer.attends
        )
        return listed([name for name in each if name]) or "no attention"

    @property
    def requests(self) -> int | None:
        """Rows of the training length that fit into the budget; None without one."""
        each = self.caches[0].reserved if self.caches and self.budget else 0
        return int((self.budget or 0) // each) if each else None

    @property
    def head_count(self) -> int:
        """Heads of a layer, the most."""
        return max((k.layer.heads for k in self.kinds), default=0)

    def blocks(self) -> Sequence[Block]:
        return (*self.what(), *self.by_layer(), *self.by_head())

    def what(self) -> Iterator[Block]:
        """What may be set, in a sentence, and what the cache takes."""
        yield Sentence(self._first(), self.label)
        if self.caches:
            yield from self._bytes()
            named = f"{plural(self.trained, 'token')}, {self.trained_from}"
            yield facts(training_length=named, source=self.source or None)
        for line in self.notes:
            yield note("{note}.", note=line[0].upper() + line[1:])

    def _first(self) -> Text:
        layers = [k for kind in self.kinds for k in [kind.layer] * len(kind.layers)]
        text = "{model} ({family})"
        text += f", {plural(len(layers), 'layer')}: " if layers else ": "
        width = ""
        if self.heads and self.status is Status.EXACT:
            text += "{setting} = {width} keeps the output of every head within {error}, "
            text, width = text + self.hypothesis, count(self.sliding_window)
        elif self.status is Status.EXACT:
            more = " than the training length has" * (int(self) > self.trained)
            text += "every layer with attention sees at most {width} keys"
            text += f", more{more}" * bool(more) + "; set {setting} = {width}, no output changes"
            width = count(self.sliding_window)
        elif self.status is Status.INFINITE and not self.heads:
            text += self._mixed(layers)
        elif self.status is Status.INFINITE:
            text += "no window serves every head"
        else:
            text += "no number is given, since {why}"
        return words(
            text + ".",
            model=self.model,
            family=self.family,
            setting=code("sliding_window"),
            width=width,
            error=self.error,
            why=self.reason or "",
        )

    def _mixed(self, layers: Sequence[LayerOutline]) -> str:
        """Where layers see all: how many, and that none may be narrowed unmeasured."""
        near = Counter(o.width for o in layers if o.attends and o.width is not None)
        free = sum(o.attends and o.width is None for o in layers)
        state = sum(not o.attends and o.state != 0 for o in layers)
        parts = [f"{n} keep {keys_text(w)} keys" for w, n in near.items()]
        parts += [f"{free} keep all"] * bool(free) + [f"{state} keep a state"] * bool(state)
        if len(parts) == 1:
            return "every layer keeps every key, and a narrower window changes the output"
        return f"{listed(parts)}; a narrower window changes the output"

    def _bytes(self) -> Iterator[Block]:
        first = self.caches[0]
        kept = "" if self.serving.ranks == 1 else f" on each of {self.serving.ranks} devices"
        states = f", {size_text(first.indexer)} of an indexer's keys" if first.indexer else ""
        states += f", and {size_text(first.states)} of states" if first.states else ""
        states += ", and states of a size that is not known" if first.states is None else ""
        yield sentence(
            "Cache: {least} at {length} tokens in {dtype}{kept}{states}. In pages of {page} tokens "
            "it takes {paged}, or {whole} where an engine keeps whole rows in every layer.",
            Label.THEOREM,
            least=size_text(first.least),
            length=keys_text(first.length),
            dtype=self.serving.dtype,
            kept=kept,
            states=states,
            page=self.serving.page,
            paged=size_text(first.paged),
            whole=size_text(first.whole),
        )
        if self.budget is None:
            return
        longest, far = self.longest, ""
        if longest is not None and longest != math.inf:
            far = f"{keys_text(longest)} tokens are the longest row"
        yield sentence(
            "Within {budget}: {far}, and {requests} of {length} tokens fit together.",
            Label.THEOREM,
            budget=size_text(self.budget),
            far=far or "a row of any length fits",
            requests=plural(self.requests or 0, "row"),
            length=keys_text(first.length),
        )

    def by_layer(self) -> Iterator[Block]:
        """A table by kind of layer, and how far the last output reaches through depth."""
        if not self.kinds:
            return
        total = sum(len(kind.layers) for kind in self.kinds)
        rows = [
            (
                which(kind.layers, total),
                len(kind.layers),
                kind.layer.sees,
                kind.layer.mechanism,
                kind.layer.shape,
                "shared" if kind.layer.shares else size_text(kind.token),
                size_text(kind.row),
            )
            for kind in self.kinds
        ]
        length = keys_text(self.caches[0].length)
        header = ("layers", "how many", "sees", "positions", "heads", "a token", "a row, each")
        caption = f"What each layer sees, and what it keeps of {length} tokens"
        yield table(header, rows, caption, numeric=(1,))
        if math.isfinite(self.reach):
            yield sentence(
                "Through depth, the last output depends on the nearest {tokens} at most.",
                Label.THEOREM,
                tokens=plural(int(self.reach), "token"),
            )
        if len(self.caches) > 1:
            cells = [
                (keys_text(c.length), f"{c.keys:,}", *map(size_text, (c.least, c.paged, c.whole)))
                for c in self.caches
            ]
            yield table(("tokens", "keys", "least", "paged", "whole rows"), cells, numeric=(0, 1))
        if self.measurable and self.status is Status.INFINITE:
            yield note(
                "What a window costs on a text: {command}.",
                command=code("`farfield window --model FOLDER --text FILE --loss 1%`"),
            )

    def by_head(self) -> Iterator[Block]:
        """How far each head sees, and its certified window."""
        if not self.heads:
            return
        verdicts = [h.verdict for h in self.heads]
        counts = [
            f"{k} of {len(verdicts)} {str(v).removesuffix('s') if k > 1 else v}"
            for v, k in Counter(verdicts).items()
        ]
        yield sentence("Heads: {counts}.", Label.THEOREM, counts=listed(counts))
        if self.assumed:
            yield sentence(
                "Nobody measured these logits and values: {weights} proves bounds.",
                weights=code("`farfield audit FOLDER --bounds weights`"),
            )
        header = ("layers", "head", "bias", "series", *(f"TRF({e})" for e in self.eps))
        header += ("window", "logits within", "values within")
        rows = [
            (
                runs(h.layers),
                h.head,
                _typeset(h.bias),
                h.verdict,
                *map(field_text, h.receptive_fields),
                count(h.window),
                f"{h.logit_bound:.4g}",
                f"{h.value_bound:.4g}",
            )
            for h in self.heads
        ]
        yield table(header, rows, numeric=(1, *range(4, len(header))))
        for reason in dict.fromkeys(h.reason for h in self.heads if h.reason is not None):
            yield note("Where there is none: {why}.", why=reason)
        yield note(
            "Receptive fields in tokens, exact integers, certified; infinite where the series "
            "diverges. A window keeps the output of a head within {error} in norm: one head, one "
            "layer, exact arithmetic, before the output projection; {bounds}. The whole model is "
            "another question, which a measurement answers.",
            error=self.error,
            bounds=BOUNDS[self.bounds],
        )


def audit(
    model: Any,
    *,
    trained: Any = None,
    lengths: Sequence[Any] = (),
    cache_dtype: str = "bf16",
    tensor_parallel: Any = 1,
    page: Any = 16,
    budget: str | None = None,
    eps: Sequence[Any] = EPS,
    error: Any = "1/1000",
    bounds: str = "given",
    logit_bound: Any = None,
    value_bound: Any = None,
    text: Any = None,
) -> Audit:
    """Which layer of a model keeps what, how many bytes that is, and which window may be set.

    Args:
        model: a folder of the library transformers, a finished run, or what `describe` says.
        trained: the training length in tokens; None takes the configuration's.
        lengths: of other rows, each at least the training length.
        cache_dtype: of the cache's numbers, one of `cache.BITS`.
        tensor_parallel: devices over which heads are spread.
        page: tokens of a page.
        budget: bytes of a cache on one device, as `24GiB`.
        eps: shares for the receptive fields of a bias, exact.
        error: budget of the certified windows of a bias.
        bounds: of a bias: `given` takes the two numbers; `weights` proves them by the norms.
        logit_bound: of |q.k|/sqrt(d); 1 if not given, which is assumed.
        value_bound: of ||v||, in the same way.
        text: with bounds of the weights, what the model reads while its logits are held to them.

    Raises:
        InputError: as `describe`; a bad argument.
    """
    one_of(bounds, "bounds", BOUNDS)
    outline = describe(model)
    (m, *tested), origin = _rows(outline, trained, lengths)
    serving = serving_of(outline, cache_dtype, tensor_parallel, page)
    layers, limit = outline.layers, None if budget is None else bytes_of(budget)
    plain = Audit(
        model=outline.name,
        family=outline.kind,
        kinds=_kinds(layers, m, serving),
        serving=serving,
        caches=tuple(row_cache(layers, n, serving) for n in (m, *tested) if layers),
        trained=m,
        trained_from=origin,
        reach=reach(layers),
        error=inside(error, "error", "(0, oo)"),
        budget=limit,
        longest=None if limit is None else longest(layers, limit, serving),
        notes=outline.notes,
        measurable=_measurable(outline),
        label=Label.THEOREM,
    )
    if outline.biased or bounds == "weights":
        return _with_heads(plain, outline, eps, bounds, (logit_bound, value_bound), text)
    return dataclasses.replace(plain, **_widest(outline))


def _rows(outline: ModelOutline, trained: Any, lengths: Sequence[Any]) -> tuple[list[int], str]:
    """The training length and the other lengths of rows; where the first is from."""
    m, origin = outline.trained or TRAINED, outline.trained_from
    if trained is not None:
        m, origin = natural(trained, "trained"), "as given"
    elif outline.trained is None:
        origin = "assumed: the configuration names none"
    tested = sorted({natural(n, "length") for n in lengths})
    refuse(
        tested and tested[0] < m,
        f"length {tested and tested[0]}: accepted are lengths from {m}, the training length",
    )
    refuse(
        tested and outline.longest is not None and tested[-1] > outline.longest,
        f"length {tested and tested[-1]}: accepted are lengths up to {outline.longest}, where the "
        f"rows of {outline.name!r} end",
    )
    return list(dict.fromkeys((m, *tested))), origin


def _kinds(layers: Sequence[LayerOutline], row: int, serving: Serving) -> tuple[Kind, ...]:
    alike: dict[Any, list[int]] = {}
    for at, layer in enumerate(layers, 1):
        key = (id(layer.encoding), dataclasses.replace(layer, encoding=None))
        alike.setdefault(key, []).append(at)
    return tuple(
        Kind(
            tuple(group),
            layers[group[0] - 1],
            serving.token(layers[group[0] - 1]),
            row_cache([layers[group[0] - 1]], row, serving).least,
        )
        for group in alike.values()
    )


def _measurable(outline: ModelOutline) -> bool:
    """Whether `farfield window --model` takes the folder."""
    if outline.kind == RUN:
        return True
    whole = (outline.path / "config.json").is_file() and any(
        outline.path.glob("model*.safetensors")
    )
    causal = outline.kind in architectures().get("causal", {})
    return whole and causal and not outline.values.get("quantization_config")


def _widest(outline: ModelOutline) -> dict[str, Any]:
    """Of a model without biases: keys that are enough for every layer, as the fields
    `sliding_window`, `status`, `label` and `reason` of an answer."""
    attending = [layer for layer in outline.layers if layer.attends]
    if outline.unknown or not attending:
        why = outline.unknown or "its layers keep states, and no keys"
        status = Status.UNKNOWN if outline.unknown else Status.OUT_OF_SCOPE
        codes = {Status.UNKNOWN: Code.NOT_COVERED, Status.OUT_OF_SCOPE: Code.NOT_SOFTMAX}
        return {"status": status, "label": None, "reason": Reason(codes[status], why)}
    if any(layer.width is None for layer in attending):
        at = next(k for k, o in enumerate(outline.layers, 1) if o.attends and o.width is None)
        reason = Reason(Code.BOUNDED_LOGITS, f"layer {at} sees all keys")
        return {"sliding_window": math.inf, "status": Status.INFINITE, "reason": reason}
    return {"sliding_window": max(layer.width or 0 for layer in attending), "status": Status.EXACT}


def _with_heads(
    plain: Audit,
    outline: ModelOutline,
    eps: Sequence[Any],
    bounds: str,
    pair: tuple[Any, Any],
    text: Any,
) -> Audit:
    """The audit of a model with a bias: its heads, and their certified windows."""
    from farfield.numerics.windows.question import read_bounds
    from farfield.validation.models.head_audit import heads_of
    from farfield.validation.models.norms import HeadBounds, weight_bounds

    shares = tuple(inside(e, "eps", "(0, 1)") for e in eps)
    refuse(
        not shares,
        "eps is empty; accepted: one or more numbers in (0, 1)",
    )
    logit, value = read_bounds(*(1 if b is None else b for b in pair))
    assumed = bounds == "given" and None in pair
    hypothesis = BOUNDS[bounds]
    if bounds == "given":
        hypothesis = f"if its logits stay within {logit} and its values within {value}"
        hypothesis += " (assumed, not measured)" if assumed else ""
        limits = [(HeadBounds(float(logit), float(value)),) * o.heads for o in outline.layers]
    else:
        limits = weight_bounds(outline)
    heads, windows = heads_of(outline, limits, plain.error, shares)
    worst = deciding_head(windows, lambda w: w.width)
    uncertain = assumed and worst.label is Label.CERTIFIED
    sources = dict.fromkeys(o.encoding.source for o in outline.layers if o.encoding is not None)
    whole = dataclasses.replace(
        plain,
        eps=shares,
        bounds=bounds,
        hypothesis=hypothesis,
        assumed=assumed,
        heads=tuple(heads),
        source="; ".join(sources),
        sliding_window=worst.width,
        status=worst.status,
        label=Label.APPROXIMATE if uncertain else worst.label,
        reason=worst.reason,
    )
    if bounds == "given" or text is None:
        return whole
    from farfield.validation.models.empirical import broken

    why = broken(outline, limits, text)
    if why is None:
        return whole
    reason = Reason(Code.BROKEN_BOUND, why)
    return dataclasses.replace(
        whole, sliding_window=None, status=Status.UNKNOWN, label=None, reason=reason
    )


def reach(layers: Sequence[LayerOutline]) -> float:
    """Input tokens that the last output depends on at most: `1 + sum (w - 1)` over windows of w
    keys. Chunks of one width above each other reach no further than one.

    >>> reach([LayerOutline(width=4096)] * 32)
    131041.0
    >>> reach([LayerOutline(width=8192, chunked=True)] * 3)
    8192.0
    """
    far = 1.0
    for at, layer in enumerate(layers):
        if not layer.attends and layer.state == 0:
            continue
        if not layer.attends or layer.state != 0 or layer.width is None:
            return math.inf
        alike = layer.chunked and all(o.width == layer.width and o.chunked for o in layers[:at])
        far = max(far, float(layer.width)) if alike else far + layer.width - 1
    return far


def which(layers: Sequence[int], of: int) -> str:
    """Layers in words, where a pattern repeats.

    >>> which([1, 2, 3], 3), which([2, 4, 6, 8], 8), which([1, 2, 4, 5, 7, 8, 10, 11], 12)
    ('all', 'every 2nd from 2', 'all but every 3rd from 3')
    """
    if len(layers) == of:
        return "all"
    others = [k for k in range(1, of + 1) if k not in {*layers}]
    for named, prefix in ((list(layers), ""), (others, "all but ")):
        steps = {b - a for a, b in itertools.pairwise(named)}
        if len(named) > 3 and len(steps) == 1 and (step := steps.pop()) > 1:
            ending = {2: "nd", 3: "rd"}.get(step, "th")
            return f"{prefix}every {step}{ending} from {named[0]}"
    return runs(layers)


def _typeset(bias: str) -> Any:
    """A bias as mathematics where its text is a formula."""
    try:
        return encoding(bias).formula
    except InputError:
        return bias
