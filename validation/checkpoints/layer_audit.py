"""What each layer of a model does with positions: what it sees and what it keeps in a cache.

For each layer: whether a window is ever enough, in how long a row the layer can single out one key,
how far it reaches through depth.

Read from the configuration, with bounds by the weights where they are given. No torch.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from farfield.theory.answers.answer import Code, Label, Reason, Status
from farfield.theory.answers.blocks import Block, note, sentence, table
from farfield.theory.answers.number import count, listed, plural, runs
from farfield.theory.convergence import check_convergence
from farfield.theory.windowability import Windowable, of_support
from farfield.validation.checkpoints.configured import (
    Attention,
    Folder,
    HeadBounds,
    ModelSize,
    Temper,
)
from farfield.validation.checkpoints.folder import UNCHECKED

GIVEN = "as given"
Proved = Sequence[tuple[HeadBounds, ...] | None]
"""Bounds of the heads of each layer; None for a layer whose bounds are not known."""
STATE = "a state of fixed size in place of attention"


@dataclass(frozen=True)
class LayerAudit:
    """Layers that are alike.

    Fields:
        layers: from 1.
        encoding: its name; `state` where there is no attention.
        keys: that a query sees at most, its own included; None for all before it.
        chunked: whether these are those of a chunk, not the nearest.
        windowable: whether a window is ever enough for them, by which theorem.
        logit_bound: of every logit in a row of the training length, position included, where there
            is no additive bias. It is None where a bias or a window makes it of no use.
        bound_from: where that is from: as given, a soft cap, the gains of the weights.
        longest: keys that a query sees at most if `logit_bound` allows one of them half of its
            attention. It is infinite where it allows that at any length, None where no bound is
            known.
        growth: None unless logits grow with the position. Then their factor at the end of that
            row, the factor that would keep the log-odds of one key, and the length from which.
        sink: whether there is a learned constant in each denominator.
        cached: keys that one of them holds of a row of the training length.
        bytes: that one of them takes for it in 16 bits.
    """

    layers: tuple[int, ...]
    encoding: str
    keys: int | None
    chunked: bool
    windowable: Windowable
    logit_bound: float | None = None
    bound_from: str = ""
    longest: float | None = None
    growth: tuple[float, float, float] | None = None
    sink: bool = False
    cached: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class LayerKeys:
    """Keys that the layers of a model hold in a row of one length.

    Fields:
        length: of the row.
        keys: over all layers, each at most as many as it sees.
        bytes: of keys and values in 16 bits.
        share: of what they would take if every layer saw all.
    """

    length: int
    keys: int
    bytes: int
    share: float


def layers_of(
    folder: Folder,
    row: int,
    *,
    logit_bound: float | None = None,
    proved: Proved = (),
) -> tuple[LayerAudit, ...]:
    """The layers of a model, those that are alike together, in the order of their first.

    Args:
        folder: what a folder says of its model.
        row: the length of a row.
        logit_bound: of every logit, where neither a soft cap nor weights bound it; None where
            nobody gave one.
        proved: bounds by the weights, as `norms.weight_bounds` gives them; none if not read.
    """
    alike: dict[Any, list[int]] = {}
    for k, a in enumerate(folder.attention):
        kept = dataclasses.replace(a, encoding=None, scale=1.0, gains=None, sink=None)
        known = bool(proved) and proved[k] is not None
        alike.setdefault((id(a.encoding), kept, a.gains is None, a.sink is None, known), []).append(
            k
        )
    verdicts = {id(e): check_convergence(e).windowable for e in folder.encodings}
    found = []
    for own in alike.values():
        a = folder.attention[own[0]]
        heads = [h for k in own for h in (proved[k] if proved else None) or ()]
        verdict = verdicts.get(id(a.encoding), _STATE)
        one = _layer(folder, a, verdict, row, logit_bound, heads or None)
        found.append(dataclasses.replace(one, layers=tuple(k + 1 for k in own)))
    return tuple(found)


_STATE, _UNCHECKED = (
    Windowable(None, status=status, label=None, reason=Reason(code, why))
    for status, code, why in (
        (Status.OUT_OF_SCOPE, Code.NOT_SOFTMAX, STATE),
        (Status.UNKNOWN, Code.NOT_COVERED, UNCHECKED),
    )
)


def _layer(
    folder: Folder,
    a: Attention,
    verdict: Windowable,
    row: int,
    given: float | None,
    proved: Sequence[HeadBounds] | None,
) -> LayerAudit:
    name = "state" if a.encoding is None else a.encoding.name
    held = held_by(a, row)
    bare = LayerAudit(
        (),
        name,
        a.local,
        a.chunk is not None,
        verdict,
        sink=a.sink is not None,
        cached=held,
        bytes=2 * folder.shape.cached * held,
    )
    if not folder.checked:
        return dataclasses.replace(bare, windowable=_UNCHECKED)
    if a.local is not None:
        return dataclasses.replace(bare, windowable=of_support(a.local, name, "window-support"))
    if a.encoding is None or a.biased:
        return bare
    bound, origin, why = bound_of(a, given, proved)
    longest = None if bound is None else longest_row(bound, a.temper)
    growth = None
    if a.temper is not None:
        times = a.temper.at(row - 1)
        bound = None if bound is None else bound * times
        if times > 1 and a.temper.floor > 2:
            growth = (times, math.log(row - 1) / math.log(a.temper.floor - 1), a.temper.floor)
    hypotheses = verdict.hypotheses
    if a.flat:  # whatever becomes of other logits, some inputs have none
        hypotheses = ("keys that are alike have one logit, however it is scaled",)
    elif why:
        hypotheses = (why, *hypotheses[1:])
    if a.sink is not None:
        hypotheses += ("a constant in the denominator changes no limit",)
    verdict = dataclasses.replace(verdict, hypotheses=hypotheses)
    return dataclasses.replace(
        bare,
        windowable=verdict,
        logit_bound=bound,
        bound_from=origin,
        longest=longest,
        growth=growth,
    )


def bound_of(
    a: Attention, given: float | None, proved: Sequence[HeadBounds] | None
) -> tuple[float | None, str, str]:
    """The least bound of every logit of a layer, where it is from, and why it holds."""
    known = [] if given is None else [(given, GIVEN, "")]
    if a.cap is not None:
        why = f"a soft cap keeps every logit within {a.cap:g}, for every input"
        known = [(a.cap, "the soft cap", why)]
    if a.bound is not None:
        known = [(a.bound[0], a.bound[1], f"{a.bound[1]}, so every logit is bounded")]
    if proved is not None:
        most = max(h.logit for h in proved)
        how = "the gains of queries and keys" if a.gains else "the norms of the weights"
        known.append((most, how, f"every logit is within {most:.4g}, by {how}"))
    return min(known) if known else (None, "not measured", "")


def longest_row(bound: float, temper: Temper | None = None) -> float:
    """Keys that a query sees at most, where logits within a bound can give one of them half of its
    attention: `log(N - 1) <= 2 beta`, with a beta that grows with the position.

    With growth `1 + s log(1 + k)` on the k-th stretch of `floor` positions, the condition fails
    from some stretch on if `2 beta s < 1`. Else no length is proved to be too long.

    >>> longest_row(4), longest_row(0), longest_row(1000)
    (2981.0, 2.0, inf)
    >>> longest_row(4, Temper(0.1, 512, 1)), longest_row(5, Temper(0.1, 512, 1))
    (3427334.0, inf)
    """

    def at(k: float) -> float:
        power = 2 * bound * (1 if temper is None else 1 + temper.slope * math.log1p(k))
        return math.floor(1 + math.exp(power) * (1 + 1e-12)) if power < 700 else math.inf

    if temper is None or not temper.slope:
        return float(at(0))
    if 2 * bound * temper.slope >= 1:
        return math.inf

    def some(k: int) -> bool:
        return k * temper.floor - temper.first + 1 <= at(k)

    low, high = 0, 1
    while some(high):
        low, high = high, 2 * high
        if high * temper.floor > 1e300:
            return math.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if some(middle) else (low, middle)
    return float(min((low + 1) * temper.floor - temper.first, at(low)))


def reach(attention: Sequence[Attention]) -> tuple[float, ...]:
    """Input tokens that the output of each layer depends on at most: `1 + sum (w - 1)` over windows
    of w keys. Chunks of one width above each other reach no further than one.

    >>> from farfield.theory.encodings import encoding
    >>> reach([Attention(encoding("rope"), window=4096)] * 32)[-1]
    131041.0
    >>> reach([Attention(encoding("rope"), chunk=8192)] * 3)
    (8192.0, 8192.0, 8192.0)
    """
    found, far = [], 1.0
    for k, a in enumerate(attention):
        alike = a.chunk is not None and all(b.chunk == a.chunk for b in attention[:k])
        far = max(far, a.chunk or 0) if alike else far + (a.local or math.inf) - 1
        found.append(float(far))
    return tuple(found)


def held_by(a: Attention, length: int) -> int:
    """Keys of a row that a layer keeps."""
    return min(a.local or length, length) if a.held else 0


def widest(folder: Folder, layers: Sequence[LayerAudit]) -> dict[str, Any]:
    """Of a model without biases: keys that are enough for every layer, as the fields
    `sliding_window`, `status`, `label` and `reason` of an answer.

    Args:
        folder: what a folder says of its model.
        layers: as `layers_of` gives them.
    """

    attending = [k for k in layers if k.windowable.status is not Status.OUT_OF_SCOPE]
    unsure = next((k for k in attending if k.windowable.value is None), None)
    free = next((k for k in attending if not k.windowable.value), None)
    status, width = Status.OUT_OF_SCOPE, None
    if folder.no_claim:
        reason = Reason(Code.NOT_COVERED, folder.no_claim)
    elif not attending:
        reason = Reason(Code.NOT_SOFTMAX, f"each layer has {STATE}")
    elif unsure is not None:
        status = Status.UNKNOWN
        reason = unsure.windowable.reason or Reason(Code.NOT_COVERED, UNCHECKED)
    elif free is not None:
        status, width = Status.INFINITE, math.inf
        why = f"layer {free.layers[0]} sees all keys, and its logits are bounded"
        reason = Reason(Code.BOUNDED_LOGITS, why)
    else:
        width = max(k.keys or 0 for k in attending)
        return {"sliding_window": width, "status": Status.EXACT, "label": Label.THEOREM}
    label = None if width is None else Label.THEOREM
    return {"sliding_window": width, "status": status, "label": label, "reason": reason}


def cache_of(attention: Sequence[Attention], size: ModelSize, length: int) -> LayerKeys:
    """What a row of so many tokens takes."""
    keys = sum(held_by(a, length) for a in attention)
    held = sum(a.held for a in attention)
    return LayerKeys(length, keys, 2 * size.cached * keys, keys / max(1, length * held))


def layer_blocks(
    layers: Sequence[LayerAudit],
    reaches: Sequence[float],
    caches: Sequence[LayerKeys],
    *,
    unread: bool,
) -> Iterator[Block]:
    """The sentences about the layers.

    Args:
        layers: as `layers_of` gives them.
        reaches: as `reach` gives them.
        caches: of several lengths, the entries' own first.
        unread: whether the weights of queries and keys were not read.
    """
    row = caches[0].length
    header = ["layers", "positions", "sees", "safe window", "logits within"]
    header.append("cache, each")
    rows = [
        (
            which(k.layers, len(reaches)),
            k.encoding + " + sink" * k.sink,
            _sees(k),
            _word(k),
            f"{k.logit_bound:.4g}" if k.logit_bound is not None else k.bound_from,
            size_text(k.bytes) if k.cached else "no keys",
        )
        for k in layers
    ]
    yield table(header, rows, f"What each layer sees, and what it keeps of {keys_text(row)} tokens")
    if all(k.windowable.status is not Status.UNKNOWN for k in layers):
        yield _depth(layers, reaches)
        yield from _to_keep(layers, len(reaches), row)
    yield from _half(layers, len(reaches), row, unread=unread)
    if any(k.windowable.value is False for k in layers):
        yield note(
            "What a window costs on a text: {command}.",
            command="farfield perplexity --model FOLDER --length 4096 --window 1024",
        )
    for k in layers:
        if k.keys is None and k.windowable.hypotheses:
            yield note(
                "{layers}, by {name}: {where}.",
                layers=_named(k.layers, len(reaches)),
                name=k.windowable.theorem,
                where="; ".join(k.windowable.hypotheses),
            )
    if caches[-1].keys:
        ends = (caches[0], caches[-1])
        sizes = [f"{size_text(c.bytes)} at {keys_text(c.length)} tokens" for c in ends]
        share = f", {caches[-1].share:.1%} of full attention" if caches[-1].share < 1 else ""
        yield note("Cache in 16 bits: {sizes}{share}.", sizes=listed(sizes), share=share)


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


def _named(layers: Sequence[int], of: int) -> str:
    """Layers as the subject of a sentence.

    >>> _named([1, 2, 3], 3), _named([4, 8, 12, 16], 16), _named([2], 3)
    ('All layers', 'Every 4th layer from 4', 'Layer 2')
    """
    said = which(layers, of)
    if said == "all":
        return "All layers"
    if " from " in said:
        return said.replace(" from ", " layer from ").capitalize()
    return f"Layer{'s' * (len(layers) > 1)} {said}"


def _to_keep(layers: Sequence[LayerAudit], of: int, row: int) -> Iterator[Block]:
    """Which cache to set, where some layers need less than others."""
    held = [k for k in layers if k.cached]
    if len({k.cached for k in held}) < 2:
        return
    parts = []
    for k in held:
        width = keys_text(k.keys)
        whose = f"the {width} nearest keys" if k.keys and k.cached < row else "all keys"
        if k.chunked and k.cached < row:
            whose = f"the keys of the chunk, at most {width},"
        parts.append(f"{whose} in {_named(k.layers, of).lower()}")
    yield sentence("A cache that changes no output keeps {parts}.", "theorem", parts=listed(parts))


def _half(layers: Sequence[LayerAudit], of: int, row: int, *, unread: bool) -> Iterator[Block]:
    """The rows in which layers that see all can single out one key."""
    need = math.log(max(1, row - 1))
    alike: dict[Any, list[int]] = {}
    for k in layers:
        if k.bound_from and row > 2:
            alike.setdefault((k.logit_bound, k.bound_from, k.longest, k.growth), []).extend(
                k.layers
            )
    for (bound, origin, longest, growth), own in alike.items():
        times, even, floor = growth or (1.0, 1.0, 1.0)
        within = "logits within {bound} ({origin})" + " before they grow" * (growth is not None)
        if bound is None:
            said = "half of the attention on one of {row} keys takes an advantage of {need} nats; "
            said += (
                "{option} may bound the logits." if unread else "no bound of the logits is known."
            )
        elif longest < row:
            said = f"with {within}, no head puts half of its attention on one key once it sees "
            said += "more than {longest} keys; {row} keys take {enough} or more."
        else:
            said = f"{within} allow half of the attention on one key, at the length of {{row}} too."
        if growth is not None:
            said += " The logits of the last of {row} tokens are multiplied by {times}; {even} "
            said += "would keep the log-odds that one of {floor} keys has."
        yield sentence(
            "{layers}: " + said,
            Label.THEOREM if bound is None else Label.CERTIFIED,
            layers=_named(sorted(own), of),
            row=keys_text(row),
            need=f"{need:.4g}",
            option="--bounds weights",
            enough=f"{need / 2 / times:.4g}",
            bound="unknown" if bound is None else f"{bound / times:.4g}",
            origin=origin,
            longest=keys_text(longest),
            times=f"{times:.4g}",
            even=f"{even:.4g}",
            floor=keys_text(floor),
        )


def _sees(k: LayerAudit) -> str:
    if k.windowable.status is Status.OUT_OF_SCOPE:
        return "all, by its state"
    if k.keys is None:
        return "all"
    return f"its chunk of {keys_text(k.keys)}" if k.chunked else f"nearest {keys_text(k.keys)}"


def _word(k: LayerAudit) -> str:
    unsaid = {Status.OUT_OF_SCOPE: "no claim", Status.UNKNOWN: "not known"}
    if k.windowable.status in unsaid and k.windowable.value is None:
        return unsaid[k.windowable.status]
    if k.windowable.condition is not None:
        return f"if {k.windowable.condition}"
    if not k.windowable.value:
        return "never"
    return "some" if k.keys is None else keys_text(k.keys)


def _depth(layers: Sequence[LayerAudit], reaches: Sequence[float]) -> Block:
    if math.isfinite(reaches[-1]):
        return sentence(
            "Through depth, the last output depends on the nearest {tokens} at most.",
            "theorem",
            tokens=plural(int(reaches[-1]), "token"),
        )
    first = next(k for k, r in enumerate(reaches, 1) if not math.isfinite(r))
    below = "" if first == 1 else f"; the layers below reach {keys_text(reaches[first - 2])} tokens"
    return sentence(
        "Through depth, the last output may depend on every token: layer {first} sees all{below}.",
        "theorem",
        first=first,
        below=below,
    )


def keys_text(value: float | None) -> str:
    """A number of keys, every digit of one that a row may have.

    >>> keys_text(8192), keys_text(10485760), keys_text(math.inf)
    ('8192', '10,485,760', 'infinite')
    """
    return f"{int(value):,}" if value is not None and 10**7 <= value < 10**12 else count(value)


def size_text(bytes: int) -> str:
    """Bytes in a few characters."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if bytes >= size:
            return f"{bytes / size:.1f} {unit}"
    return f"{bytes} bytes"
