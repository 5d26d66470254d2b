"""The audit of a model: which layer keeps what, how many bytes that is, and what may be set.

The library's code runs without weights. Of weights, those that are a bias are read.
"""

from __future__ import annotations

import dataclasses
import math
import os
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
from farfield.theory.answers.notation import Text, code, listed, words
from farfield.theory.answers.number import SHARES, count, inside, natural, plural, runs
from farfield.validation.models.cache import (
    RowCache,
    Serving,
    bytes_of,
    bytes_text,
    longest,
    row_cache,
    serving_of,
)
from farfield.validation.models.folder import describe
from farfield.validation.models.outline import RUN, LayerOutline, ModelOutline, alike, keys_text

if TYPE_CHECKING:
    from farfield.validation.models.head_audit import Head

TRAINED = 2048
"""The training length of a model where its configuration names none."""


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
        keeper: whose cache it is.
        caches: what a row of the training length, and of each other, takes on one device; empty
            where there is no cache.
        rows: how many rows are served together.
        budget: bytes of a cache that were given; None without.
        longest: tokens of the longest rows that fit into them, so many together; infinite where
            all do.
        reach: input tokens that the last output depends on at most, through depth.
        trained: the training length, and `trained_from`: where it is from.
        asked: the first of the lengths that were asked for; None where none was.
        sliding_window: keys that are enough for every layer; infinite where one sees all and no
            window is enough, None where that is not known.
        eps: shares of the receptive fields of the heads.
        error: the budget of their windows.
        hypothesis: under which the windows are enough, in words; `assumed`: whether it rests on
            bounds that nobody gave or measured.
        heads: one entry a head with a bias, or a layer and head where layers differ.
        source: where the formula or table of a bias is from.
        notes: further remarks.
        measurable: whether a window can be measured on a text.
        label: `theorem` for what the library's code was seen to do; `certified` for windows under
            bounds that were given; `approximate` for assumed bounds, and where a configuration or
            a header says what was not seen.
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
    keeper: str = ""
    rows: int = 1
    asked: int | None = None
    budget: int | None = None
    longest: float | None = None
    sliding_window: float | None = None
    eps: tuple[sympy.Rational, ...] = ()
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
    def head_count(self) -> int:
        """Heads of a layer, the most."""
        return max((k.layer.heads for k in self.kinds), default=0)

    @property
    def cache(self) -> RowCache | None:
        """What a row of the asked length takes, or of the training length; None without a cache."""
        asked = self.asked or self.trained
        return next((c for c in self.caches if c.length == asked), None)

    @property
    def requests(self) -> int | None:
        """Rows of the asked length that fit into the budget together; None without one."""
        each = self.cache.reserved if self.cache else 0
        return int(self.budget // each) if self.budget and each else None

    def blocks(self) -> Sequence[Block]:
        return (*self.what(), *self.by_layer(), *self.by_head())

    def what(self) -> Iterator[Block]:
        """What may be set, in a sentence, and what the cache takes."""
        yield Sentence(self._first(), self.label)
        if self.cache is not None:
            yield from self._bytes(self.cache)
            named = f"{plural(self.trained, 'token')}, {self.trained_from}"
            yield facts(training_length=named, source=self.source or None)
        for line in self.notes:
            yield note("{note}.", note=line[0].upper() + line[1:])

    def fields(self) -> dict[str, Any]:
        """The fields in their JSON form; a layer names the numbers of a token that it keeps."""
        fields = super().fields()
        for kind in fields["kinds"]:
            for name in ("cached", "indexed"):
                if not kind["layer"][name]:
                    del kind["layer"][name]
        return fields

    def _first(self) -> Text:
        layers = [k for kind in self.kinds for k in [kind.layer] * len(kind.layers)]
        text = "{model} ({family})"
        text += f", {plural(len(layers), 'layer')}: " if layers else ": "
        text += self._set(layers)
        if self.cache is not None and (self.asked or self.rows > 1):
            text += f"; {plural(self.rows, 'row')} of {keys_text(self.cache.length)} tokens "
            text += f"{'take' if self.rows > 1 else 'takes'} "
            text += bytes_text(self.rows * self.cache.least)
        return words(
            text + ".",
            model=self.model,
            family=self.family,
            setting=code("sliding_window"),
            width=count(self.sliding_window),
            error=self.error,
            why=self.reason or "",
        )

    def _set(self, layers: Sequence[LayerOutline]) -> str:
        """What may be set, or why nothing may."""
        useless = (self.sliding_window or 0) > self.trained
        match self.status:
            case Status.EXACT if self.heads and useless:
                return (
                    f"a window of {{width}} keys, more than its rows of {self.trained} tokens, is "
                    "useless; none below is known to keep every head within {error}, "
                    f"{self.hypothesis}"
                )
            case Status.EXACT if self.heads:
                return (
                    "{setting} = {width} keeps the output of every head within {error}, "
                    f"{self.hypothesis}"
                )
            case Status.EXACT if useless:
                return (
                    "every layer with attention sees at most {width} keys, more than its rows of "
                    f"{self.trained} tokens have, so this window is useless"
                )
            case Status.EXACT:
                return (
                    "every layer with attention sees at most {width} keys; set {setting} = "
                    "{width}, no output changes"
                )
            case Status.INFINITE:
                return "no window serves every head" if self.heads else self._mixed(layers)
            case Status.OUT_OF_SCOPE:
                return "{why}"
        return "no number is given, since {why}"

    def _mixed(self, layers: Sequence[LayerOutline]) -> str:
        """Where layers see all: how many, and that none may be narrowed unmeasured."""
        near = Counter((o.width, o.keeps) for o in layers if o.width is not None)
        free = sum(o.attends and o.width is None for o in layers)
        state = sum(not o.attends and o.state != 0 for o in layers)
        parts = [
            f"{n} {'keep' if keeps is None else 'see'} {keys_text(width)} keys"
            for (width, keeps), n in near.items()
        ]
        parts += [f"{free} keep all"] * bool(free) + [f"{state} keep a state"] * bool(state)
        drops = {o.keeps for o in layers if o.keeps is not None and o.keeps < math.inf}
        if drops:
            kept = listed([keys_text(keeps) for keeps in sorted(drops)])
            return f"a row read at once sees every key, and the cache keeps the nearest {kept}"
        if len(parts) == 1:
            return "every layer keeps every key, and a narrower window changes the output"
        return f"{listed(parts)}; a narrower window changes the output"

    def _bytes(self, first: RowCache) -> Iterator[Block]:
        kept = "" if self.serving.ranks == 1 else f" on each of {self.serving.ranks} devices"
        states = f", {bytes_text(first.indexer)} of an indexer's keys" if first.indexer else ""
        states += f", and {bytes_text(first.states)} of states" if first.states else ""
        states += ", and states of a size that is not known" if first.states is None else ""
        yield sentence(
            "Cache: {least} at {length} tokens, numbers of {dtype}{kept}{states}; {keeper} keeps "
            "these keys. In pages of {page} tokens it takes {paged}, or {whole} where an engine "
            "keeps whole rows in every layer.",
            self.cache_label,
            least=bytes_text(first.least),
            length=keys_text(first.length),
            dtype=self.serving.dtype,
            kept=kept,
            states=states,
            keeper=self.keeper,
            page=self.serving.page,
            paged=bytes_text(first.paged),
            whole=bytes_text(first.whole),
        )
        if self.rows > 1:
            yield sentence(
                "{rows} of {length} tokens: {least}, in pages {paged}.",
                self.cache_label,
                rows=plural(self.rows, "row"),
                length=keys_text(first.length),
                least=bytes_text(self.rows * (first.least + first.indexer + (first.states or 0))),
                paged=bytes_text(self.rows * first.reserved),
            )
        if self.budget is None:
            return
        longest, each = self.longest, "the longest row" if self.rows == 1 else "the longest of "
        each += "" if self.rows == 1 else f"{self.rows} rows"
        far = "a row of any length fits" if self.rows == 1 else "rows of any length fit"
        if longest is not None and longest != math.inf:
            far = f"{keys_text(longest)} tokens are {each}"
        yield sentence(
            "Within {budget}: {far}, and {requests} of {length} tokens fit together.",
            self.cache_label,
            budget=bytes_text(self.budget),
            far=far,
            requests=plural(self.requests or 0, "row"),
            length=keys_text(first.length),
        )

    @property
    def cache_label(self) -> Label:
        """How the bytes are known: seen in the library's code, or said."""
        seen = all(kind.layer.observed for kind in self.kinds if kind.layer.attends)
        return Label.THEOREM if seen else Label.APPROXIMATE

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
                "shared" if kind.layer.shares else bytes_text(kind.token),
                bytes_text(kind.row),
            )
            for kind in self.kinds
        ]
        length = keys_text(self.trained)
        header = ("layers", "how many", "sees", "positions", "heads", "a token", "a row, each")
        caption = f"What each layer sees, and what it keeps of {length} tokens"
        yield table(header, rows, caption, numeric=(1,))
        if math.isfinite(self.reach):
            yield sentence(
                "Through depth, the last output depends on the nearest {tokens} at most.",
                self.cache_label,
                tokens=plural(int(self.reach), "token"),
            )
        if len(self.caches) > 1:
            cells = [
                (keys_text(c.length), f"{c.keys:,}", *map(bytes_text, (c.least, c.paged, c.whole)))
                for c in self.caches
            ]
            yield table(("tokens", "keys", "least", "paged", "whole rows"), cells, numeric=(0, 1))
        if self.measurable and self.status is Status.INFINITE:
            yield note(
                "What a window costs on a text: {command}.",
                command=code(f"`farfield window --model {self.subject} --text FILE --loss 1%`"),
            )

    def by_head(self) -> Iterator[Block]:
        """How far each head sees, and its certified window."""
        if not self.heads:
            return
        from farfield.validation.table_cells import field_text

        verdicts = [h.verdict for h in self.heads]
        counts = [
            f"{k} of {len(verdicts)} {str(v).removesuffix('s') if k > 1 else v}"
            for v, k in Counter(verdicts).items()
        ]
        yield sentence("Heads: {counts}.", Label.THEOREM, counts=listed(counts))
        if self.assumed:
            yield sentence("Nobody measured these logits and values.")
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
            "layer, exact arithmetic, before the output projection; for logits and values within "
            "the bounds of the table. The whole model is another question, which a measurement "
            "answers.",
            error=self.error,
        )


def audit(
    model: Any,
    *,
    trained: Any = None,
    lengths: Sequence[Any] = (),
    rows: Any = 1,
    cache_dtype: str = "bf16",
    tensor_parallel: Any = 1,
    page: Any = 16,
    budget: str | None = None,
    eps: Sequence[Any] = SHARES,
    error: Any = "1/1000",
    logit_bound: Any = None,
    value_bound: Any = None,
) -> Audit:
    """Which layer of a model keeps what, how many bytes that is, and which window may be set.

    Args:
        model: a folder of the library transformers, a GGUF file, a finished run, or what `describe`
            says.
        trained: the training length in tokens; None takes the configuration's.
        lengths: of other rows.
        rows: how many rows are served together.
        cache_dtype: of the cache's numbers, one of `cache.BITS`.
        tensor_parallel: devices over which heads are spread.
        page: tokens of a page.
        budget: bytes of a cache on one device, as `24GiB`.
        eps: shares for the receptive fields of a bias, exact.
        error: budget of the certified windows of a bias.
        logit_bound: of |q.k|/sqrt(d); 1 if not given, which is assumed.
        value_bound: of ||v||, in the same way.

    Raises:
        InputError: as `describe`; a bad argument.
    """
    outline = describe(model)
    m, tested, origin = _rows(outline, trained, lengths)
    serving = serving_of(outline, cache_dtype, tensor_parallel, page)
    layers, limit = outline.layers, None if budget is None else bytes_of(budget)
    together = natural(rows, "rows")
    kept = bool(layers) and outline.cached
    plain = Audit(
        model=outline.name,
        family=outline.kind,
        kinds=_kinds(layers, m, serving),
        serving=serving,
        keeper=outline.keeper,
        caches=tuple(row_cache(layers, n, serving) for n in dict.fromkeys((m, *tested)) if kept),
        rows=together,
        asked=tested[0] if tested else None,
        trained=m,
        trained_from=origin,
        reach=reach(layers),
        error=inside(error, "error", "(0, oo)"),
        budget=limit,
        longest=None if limit is None else longest(layers, limit / together, serving),
        notes=outline.notes,
        measurable=_measurable(outline),
        subject=str(model) if isinstance(model, str | os.PathLike) else outline.name,
    )
    if outline.biased:
        return _with_heads(plain, outline, eps, (logit_bound, value_bound))
    return dataclasses.replace(plain, **({"label": plain.cache_label} | _widest(outline)))


def _rows(
    outline: ModelOutline, trained: Any, lengths: Sequence[Any]
) -> tuple[int, list[int], str]:
    """The training length, the other lengths of rows, and where the first is from."""
    m, origin = outline.trained or TRAINED, outline.trained_from
    if trained is not None:
        m, origin = natural(trained, "trained"), "as given"
    elif outline.trained is None:
        origin = "assumed: the configuration names none"
    tested = [natural(n, "length") for n in lengths]
    refuse(
        outline.longest is not None and max(tested, default=0) > outline.longest,
        f"length {max(tested, default=0)}: accepted are lengths up to {outline.longest}, where the "
        f"rows of {outline.name!r} end",
    )
    return m, tested, origin


def _kinds(layers: Sequence[LayerOutline], row: int, serving: Serving) -> tuple[Kind, ...]:
    return tuple(
        Kind(
            layers=tuple(group),
            layer=(layer := layers[group[0] - 1]),
            token=serving.token(layer),
            row=row_cache([layer], row, serving).least,
        )
        for group in alike(layers, lambda layer: (id(layer.encoding), layer)).values()
    )


def _measurable(outline: ModelOutline) -> bool:
    """Whether `farfield window --model` takes the folder."""
    if outline.kind == RUN:
        return True
    whole = (outline.path / "config.json").is_file() and any(
        outline.path.glob("model*.safetensors")
    )
    return whole and outline.causal and not outline.values.get("quantization_config")


def _widest(outline: ModelOutline) -> dict[str, Any]:
    """Keys that are enough for every layer without a bias, as the fields `sliding_window`,
    `status`, `label` and `reason` of an answer."""
    attending = [layer for layer in outline.layers if layer.attends]
    if outline.unknown:
        reason = Reason(Code.NOT_COVERED, outline.unknown)
        return {"status": Status.UNKNOWN, "label": None, "reason": reason}
    if why := _scope(outline, attending):
        reason = Reason(Code.NOT_SOFTMAX, why)
        return {"status": Status.OUT_OF_SCOPE, "label": None, "reason": reason}
    bare = {k: o.width for k, o in enumerate(outline.layers, 1) if o.attends and o.encoding is None}
    if at := next((k for k, width in bare.items() if width is None), None):
        reason = Reason(Code.BOUNDED_LOGITS, f"layer {at} sees all keys")
        return {"sliding_window": math.inf, "status": Status.INFINITE, "reason": reason}
    return {"sliding_window": max(filter(None, bare.values()), default=0), "status": Status.EXACT}


def _scope(outline: ModelOutline, attending: Sequence[LayerOutline]) -> str:
    """Why a window of the past is no question to a model; empty where it is one."""
    if any(layer.both_sides for layer in attending):
        return "there is no cache, and no window of the past: every token sees tokens after it"
    if not outline.cached:
        return "the library keeps no cache of it: each token is computed from the whole row"
    return "" if attending else "its layers keep states, and no keys"


def _with_heads(
    plain: Audit, outline: ModelOutline, eps: Sequence[Any], pair: tuple[Any, Any]
) -> Audit:
    """The audit of a model with a bias: its heads, and their certified windows."""
    from farfield.numerics.windows.question import read_bounds
    from farfield.validation.models.head_audit import heads_of

    shares = tuple(inside(e, "eps", "(0, 1)") for e in eps)
    refuse(
        not shares,
        "eps is empty; accepted: one or more numbers in (0, 1)",
    )
    logit, value = read_bounds(*(1 if b is None else b for b in pair))
    assumed = None in pair
    hypothesis = f"if its logits stay within {logit} and its values within {value}"
    hypothesis += " (assumed, not measured)" if assumed else ""
    heads, windows = heads_of(outline, logit, value, plain.error, shares)
    worst = deciding_head(windows, lambda w: w.width)
    uncertain = assumed and worst.label is Label.CERTIFIED
    sources = dict.fromkeys(o.encoding.source for o in outline.layers if o.encoding is not None)
    rest = _widest(outline)
    answered: dict[str, Any] = {
        "sliding_window": worst.width and max(worst.width, rest.get("sliding_window", 0)),
        "status": worst.status,
        "label": Label.APPROXIMATE if uncertain else worst.label,
        "reason": worst.reason,
    }
    return dataclasses.replace(
        plain,
        eps=shares,
        hypothesis=hypothesis,
        assumed=assumed,
        heads=tuple(heads),
        source="; ".join(sources),
        **(answered if rest["status"] is Status.EXACT else {"label": plain.cache_label} | rest),
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
        if not layer.attends or layer.state != 0 or layer.width is None or layer.both_sides:
            return math.inf
        alike = layer.chunked and all(o.width == layer.width and o.chunked for o in layers[:at])
        far = max(far, float(layer.width)) if alike else far + layer.width - 1
    return far


def which(layers: Sequence[int], of: int) -> str:
    """Layers in words, where a pattern repeats up to the last layer.

    >>> which([1, 2, 3], 3), which([2, 4, 6, 8], 8), which([1, 2, 4, 5, 7, 8, 10, 11], 12)
    ('all', 'every 2nd from 2', 'all but every 3rd from 3')
    """
    if len(layers) == of:
        return "all"
    others = [k for k in range(1, of + 1) if k not in {*layers}]
    for named, prefix in (([*layers], ""), (others, "all but ")):
        step = named[1] - named[0] if len(named) > 3 else 1
        if step > 1 and named == [*range(named[0], of + 1, step)]:
            ending = {2: "nd", 3: "rd"}.get(step, "th")
            return f"{prefix}every {step}{ending} from {named[0]}"
    return runs(layers)


def _typeset(bias: str) -> Any:
    """A bias as mathematics where its text is a formula."""
    from farfield.theory.encodings import encoding

    try:
        return encoding(bias).formula
    except InputError:
        return bias
