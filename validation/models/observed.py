"""What the library's own code does with positions and caches: built without weights, and run.

A network is built on the device `meta`, where tensors have shapes and no content. A short row goes
through it with the library's default cache, and shows of each layer:

* what it keeps: the tensors of the cache, and where they stop growing;
* its heads: those of the attention that was called;
* which keys a query sees: the mask functions of the library, asked at chosen places;
* how queries turn: the inverse frequencies that the rotations compute.

The run decides no value. Where code looks at a number of the row, it finds 0: such a look may
choose a scaling or a message, and no shape. Some code hides a mask or a rotation. Its layer is
marked as not observed, and the configuration is believed.
"""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
import math
import re
import sys
import types
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from farfield.validation.models.outline import LayerOutline, Rotary
from farfield.validation.optional import first_line

SHORT, LONG = 6, 1 << 17
"""Tokens of the row, and of another one for layers that choose keys."""

_NAME = "farfield_observed"
_KEYS, _INDEX = ("keys", "values"), ("indexer_keys", "idx_keys")
_STATES = ("conv_states", "recurrent_states")
_FAR = 3 << 40  # a place so far that no window begins before it


class _Enough(Exception):
    """A long row has shown how many keys are chosen."""


class NotObserved(Exception):
    """The library's code does not run without weights, with the reason in words."""


# -- a run without values ------------------------------------------------------------------------


class _Zeros(TorchDispatchMode):
    """Numbers of tensors without content are 0 where code looks at them."""

    def __torch_dispatch__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = func.overloadpacket.__name__, kwargs or {}
        given = args[0] if args else None
        if isinstance(given, Tensor) and given.device.type == "meta":
            if name == "_local_scalar_dense":
                return torch.zeros((), dtype=given.dtype).item()
            if name == "nonzero":
                return given.new_empty((0, given.dim()), dtype=torch.long)
            if name == "index":
                kept = [_all_of(index) for index in args[1]]
                return func(given, kept, *args[2:], **kwargs)
            if name == "_to_copy" and str(kwargs.get("device") or "meta") == "cpu":
                return torch.zeros(given.shape, dtype=kwargs.get("dtype") or given.dtype)
        return func(*args, **kwargs)


def _all_of(index: Any) -> Any:
    """An index of every entry in place of a mask of one axis, whose numbers are not known."""
    masks = isinstance(index, Tensor) and index.dtype == torch.bool and index.dim() == 1
    return torch.arange(len(index), device=index.device) if masks else index


@dataclass
class _Call:
    """One call of an attention: its shapes, its mask, and what its logits are multiplied by."""

    layer: int | None
    heads: int
    key_heads: int
    size: int
    rows: int
    keys: int
    mask: Any
    scaling: float | None
    cap: float | None
    sink: bool


@dataclass
class _Watch:
    """What a run showed.

    Fields:
        masks: each mask with the library's function that makes it.
        calls: of attention.
        given: the masks that modules of a layer were handed, by layer.
        turned: by layer the rotation that turned its queries; None where it is not known which.
        outputs: of the modules that make rotations.
        picks: by layer how many keys, or blocks of keys, are chosen, and of how many.
        tables: learned or fixed positions that were looked up, with their rows.
        relative: whether a bias by distance was looked up.
        held: whether a module holds a table of positions of its own.
        scaled: layers whose attention was handed a factor of its own for each position.
        tokens: of the last row.
        alike: whether layers that choose keys choose as many.
        rotations: each rotation that was read, by its module.
        layer, attending: what runs now.
    """

    masks: list[tuple[Tensor, Any]] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    given: dict[int, Any] = field(default_factory=dict)
    turned: dict[int, Any] = field(default_factory=dict)
    outputs: list[tuple[Tensor, Any]] = field(default_factory=list)
    picks: dict[int, tuple[int, int]] = field(default_factory=dict)
    tables: list[int | None] = field(default_factory=list)
    relative: bool = False
    held: bool = False
    scaled: set[int] = field(default_factory=set)
    tokens: int = SHORT
    alike: bool = True
    rotations: dict[Any, tuple[Rotary, float, bool]] = field(default_factory=dict)
    layer: int | None = None
    attending: bool = False

    def mask_of(self, mask: Any) -> Any:
        """The function that made a mask; None for none, False for a mask of other code."""
        if mask is None:
            return None
        for made, function in reversed(self.masks):
            if mask is made or getattr(mask, "_base", None) is made:
                return function
        return False

    def make_mask(self, kind: torch.dtype | None) -> Callable[..., Tensor]:
        """A function in place of the library's that makes masks of one kind."""

        def mask(
            batch_size: int,
            q_length: Any,
            kv_length: Any,
            *_: Any,
            mask_function: Any = None,
            dtype: torch.dtype = torch.float32,
            **more: Any,
        ) -> Tensor:
            shape = batch_size, 1, int(q_length), int(kv_length)
            made = torch.empty(shape, dtype=kind or dtype, device="meta")
            self.masks.append((made, mask_function or _causal))
            return made

        return mask

    def attend(
        self,
        module: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Any = None,
        **more: Any,
    ) -> tuple[Tensor, None]:
        """A function in place of the library's attention."""
        made = self.mask_of(attention_mask)
        if query.shape[1] % key.shape[1]:
            raise NotObserved(f"{key.shape[1]} heads of keys do not divide {query.shape[1]} heads")
        if made is None and not more.get("is_causal", getattr(module, "is_causal", True)):
            made = _both
        self.calls.append(
            _Call(
                layer=layer_of(module),
                heads=query.shape[1],
                key_heads=key.shape[1],
                size=query.shape[-1],
                rows=query.shape[2],
                keys=key.shape[2],
                mask=made or (_causal if made is None else False),
                scaling=more.get("scaling"),
                cap=more.get("softcap"),
                sink=more.get("s_aux") is not None,
            )
        )
        shape = query.shape[0], query.shape[2], query.shape[1], value.shape[-1]
        return value.new_empty(shape), None

    def choose(self, scores: Tensor, k: Any, dim: int = -1, *args: Any, **more: Any) -> Any:
        """In place of `topk`, which chooses keys or blocks of them where a layer attends."""
        if self.attending and self.layer is not None:
            self.picks[self.layer] = (int(k), scores.shape[dim])
            if self.tokens > SHORT and self.alike:
                raise _Enough
        return torch._VF.topk(scores, int(k), dim, *args, **more)

    def turn(self, *args: Any) -> None:
        """A call of a function that turns queries and keys."""
        if self.layer is None:
            return
        flat = [x for a in args for x in (a if isinstance(a, tuple | list) else (a,))]
        for tensor in (x for x in flat if isinstance(x, Tensor)):
            for made, name in reversed(self.outputs):
                base = made if made._base is None else made._base
                if tensor is made or tensor._base is base:
                    self.turned[self.layer] = name
                    return
        self.turned.setdefault(self.layer, None)


def _causal(batch: Any, head: Any, query: Tensor, key: Tensor) -> Tensor:
    return key <= query


def _both(batch: Any, head: Any, query: Tensor, key: Tensor) -> Tensor:
    return (key >= 0) & (query >= 0)


# -- the network ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Observed:
    """What a run without weights showed of a model.

    Fields:
        layers: each of them, additive biases apart.
        cached: whether the library keeps a cache.
        table: rows of a table of positions that was looked up; None without one.
        encoded: whether it has keys of another model's output too.
    """

    layers: tuple[LayerOutline, ...]
    cached: bool
    table: int | None
    encoded: bool


def observe(config: Any) -> Observed:
    """Build a model of the library without weights, and run it.

    Args:
        config: of the library.

    Raises:
        NotObserved: its code does not run so, or keeps something of a form that is not known.
    """
    import transformers

    text = config.get_text_config(decoder=True)
    causal = transformers.AutoModelForCausalLM
    ways = [(text, transformers.AutoModel), (text, causal), (config, transformers.AutoModel)]
    ways += [(config, causal), (config, transformers.AutoModelForImageTextToText)]
    failures = list[Exception]()
    for given, auto in ways:
        for attention, values in itertools.product((_NAME, "eager"), (nullcontext, _Zeros)):
            watch = _Watch()
            try:
                with warnings.catch_warnings(), _watching(watch), values():
                    warnings.simplefilter("ignore")
                    with torch.device("meta"):
                        network = auto.from_config(given, attn_implementation=attention).eval()
                    caches = _run(network, watch)
            except NotObserved:
                raise
            except Exception as error:  # whatever the library raises
                failures.append(error)
                if "Unrecognized configuration" in str(error):
                    break
                continue
            return _read(text, network, watch, caches)
    apart = ("Unrecognized configuration", _NAME)  # other ways than the one that fits
    fitting = [e for e in failures if not any(text in str(e) for text in apart)]
    raise NotObserved(f"the library stops on it: {first_line((fitting or failures)[0], 120)}")


@contextmanager
def _watching(watch: _Watch) -> Iterator[None]:
    """The library's masks and attention are those of a watch, for a while."""
    from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS as masks

    AttentionInterface.register(_NAME, watch.attend)
    AttentionMaskInterface.register(_NAME, watch.make_mask(torch.bool))
    masks["eager"] = watch.make_mask(None)
    warn = PreTrainedModel.warn_if_padding_and_no_attention_mask
    PreTrainedModel.warn_if_padding_and_no_attention_mask = lambda *args: None
    top, checks = torch.topk, torch.distributions.Distribution._validate_args
    torch.distributions.Distribution.set_default_validate_args(False)
    torch.topk, torch.Tensor.topk = watch.choose, lambda *a, **more: watch.choose(*a, **more)
    try:
        with torch.no_grad():
            yield
    finally:
        del masks["eager"], torch.Tensor.topk
        torch.topk = top
        torch.distributions.Distribution.set_default_validate_args(checks)
        PreTrainedModel.warn_if_padding_and_no_attention_mask = warn


class _Kept(NamedTuple):
    """What a layer of the cache keeps: its heads of keys, numbers a token, those for an indexer,
    numbers of states, and the keys at which it stops growing; None where it never does."""

    heads: int = 0
    cached: int = 0
    indexed: int = 0
    state: int = 0
    stops: int | None = None


def _run(network: Any, watch: _Watch) -> list[_Kept] | None:
    """What each layer of the cache holds after a short row and one token more; None for none."""
    with suppress(Exception):  # others run as they are
        network.set_experts_implementation("batched_mm")
    with ExitStack() as stack, torch.device("meta"):
        _hook(network, watch, stack)
        cache = _cache(_row(network, SHORT))
        if cache is None:
            return None
        held, calls = [_held(layer) for layer in cache.layers], [*watch.calls]
        if watch.picks or any(call.mask is False for call in calls):
            _choices(network, watch, any(kept.state for kept in held))
        watch.calls = calls
    return held


def _choices(network: Any, watch: _Watch, states: bool) -> None:
    """Let a watch see how many keys are chosen of a long row, which layers that are alike share."""
    before, watch.picks = watch.picks, {}
    watch.tokens = LONG >> 3 if states else LONG
    watch.alike = not getattr(network.config, "is_heterogeneous", False)
    with suppress(_Enough):
        _row(network, watch.tokens)
    if watch.picks and watch.alike:
        (choice,) = watch.picks.values()
        layers = [*before] or [call.layer or 0 for call in watch.calls]
        watch.picks = dict.fromkeys(layers, choice)


def _row(network: Any, tokens: int) -> Any:
    """The output of a row of tokens."""
    row = torch.zeros(1, tokens, dtype=torch.long)
    more = {}
    if getattr(network.config, "is_encoder_decoder", False):
        more, row = {"decoder_input_ids": row}, torch.zeros(1, tokens + 3, dtype=torch.long)
    with suppress(TypeError, ValueError):
        return network(input_ids=row, use_cache=True, **more)
    return network(input_ids=row, **more)


def _cache(out: Any) -> Any:
    """The cache of an output, of the decoder's own keys; None without one."""
    named = (getattr(out, name, None) for name in ("cache", "past_key_values", "cache_params"))
    cache = next((each for each in named if each is not None), None)
    cache = getattr(cache, "self_attention_cache", cache)
    states = getattr(out, "state", None)
    if states is not None or (cache is not None and not hasattr(cache, "layers")):
        raise NotObserved("it keeps a state of a form that is not known here")
    return cache


def _held(layer: Any) -> _Kept:
    """What a layer of the library's cache keeps."""
    heads, numbers = 0, dict.fromkeys((_KEYS, _INDEX, _STATES), 0)
    for name, value in vars(layer).items():
        parts = value.values() if isinstance(value, dict) else value
        parts = parts if isinstance(value, dict | list | tuple) else [value]
        for part in parts:
            if not isinstance(part, Tensor) or part.dim() < 2 or not part.numel():
                continue
            of = next((names for names in numbers if name in names), None)
            if of is None or (of is _INDEX and part.shape[-2] != SHORT):
                raise NotObserved(f"its cache keeps {name}, of a form that is not known here")
            numbers[of] += part.numel() if of is _STATES else part.numel() // part.shape[-2]
            heads = part.shape[1] if name == "keys" else heads
    return _Kept(heads, numbers[_KEYS], numbers[_INDEX], numbers[_STATES], _stops(layer))


def _stops(layer: Any) -> int | None:
    """Keys at which a layer of a cache stops growing, a query's own included; None where it grows
    with every token."""
    if not isinstance(keys := getattr(layer, "keys", None), Tensor) or not keys.numel():
        return None
    more = [
        part.new_empty((*part.shape[:2], LONG << 8, part.shape[3])) for part in (keys, layer.values)
    ]
    probe = copy.copy(layer)
    probe.update(*more)
    kept: int = probe.keys.shape[-2]
    return None if kept > LONG << 8 else kept + 1


# -- what a run notes ----------------------------------------------------------------------------


def _hook(network: Any, watch: _Watch, stack: ExitStack) -> None:
    """Let a network tell a watch which layer runs, with which mask, and what turns."""
    homes = set()
    for module, layer, innermost in _numbered(network):
        homes.add(sys.modules[type(module).__module__])
        enter = functools.partial(_enter, watch, layer, innermost)
        hook = module.register_forward_pre_hook(enter, with_kwargs=True, prepend=True)
        stack.callback(hook.remove)
        if innermost:
            hook = module.register_forward_hook(lambda *_: setattr(watch, "attending", False))
            stack.callback(hook.remove)
    for name, module in network.named_modules():
        if note := _positions_note(name.rpartition(".")[2], module, watch):
            stack.callback(module.register_forward_hook(note, with_kwargs=True).remove)
    for home in homes:
        for name, given in [*vars(home).items()]:
            if name.startswith("apply_") and "rot" in name and callable(given):
                setattr(home, name, functools.partial(_turning, watch, given))
                stack.callback(setattr, home, name, given)


def _numbered(network: Any) -> Iterator[tuple[Any, int, bool]]:
    """The modules of each layer, the layer's number from 0, and whether it is its innermost
    attention; attentions that know no number are counted."""
    named = {name: module for name, module in network.named_modules() if attends(module)}
    outer = {name for name in named if any(other.startswith(f"{name}.") for other in named)}
    order = itertools.count()
    for name, module in network.named_modules():
        innermost, layer = name in named and name not in outer, layer_of(module)
        if layer is not None or innermost:
            yield module, next(order) if layer is None else layer, innermost


def _positions_note(name: str, module: Any, watch: _Watch) -> Callable[..., None] | None:
    """What a watch notes of each call of a module that makes positions, by the module's own name;
    None for other modules."""
    tensors = [held for held, x in vars(module).items() if isinstance(x, Tensor)]
    tensors += [held for held, _ in module.named_buffers(recurse=False)]
    watch.held |= any(re.search("pos_enc|pos_emb|embed_pos", held) for held in tensors)
    if _frequencies(module):
        return functools.partial(_note_rotation, watch)
    if not re.search(r"pos(_|ition|emb|$)|wpe|relative", name):
        return None
    relative = "position_embed" not in name and re.search("relative|bias", name)
    rows = getattr(module, "num_embeddings", None)
    return functools.partial(_note_table, watch, rows, bool(relative))


def layer_of(module: Any) -> int | None:
    """The number, from 0, of the layer that a module of the library knows to be part of."""
    number = getattr(module, "layer_idx", getattr(module, "layer_id", None))
    return number if isinstance(number, int) else None


def attends(module: Any) -> bool:
    """Whether a module is an attention that is handed a mask."""
    named = "ttention" in type(module).__name__ or "Attn" in type(module).__name__
    return named and "attention_mask" in inspect.signature(module.forward).parameters


def _enter(watch: _Watch, layer: int, attends: bool, module: Any, args: Any, named: Any) -> None:
    watch.layer = layer
    if attends:
        watch.attending = True
        with suppress(TypeError):
            bound = inspect.signature(module.forward).bind(*args, **named).arguments
            if any("scal" in name and isinstance(x, Tensor) for name, x in bound.items()):
                watch.scaled.add(layer)
            mask = watch.mask_of(bound.get("attention_mask"))
            watch.given.setdefault(layer, _causal if mask is None else mask)


def _note_rotation(watch: _Watch, module: Any, args: Any, named: Any, out: Any) -> None:
    kind = named.get("layer_type") or next((a for a in args if isinstance(a, str)), "")
    for tensor in out if isinstance(out, tuple | list) else [out]:
        watch.outputs.append((tensor, (module, kind)))


def _note_table(watch: _Watch, rows: int | None, relative: bool, *_: Any) -> None:
    watch.relative = watch.relative or relative
    if not relative:
        watch.tables.append(rows)


def _turning(watch: _Watch, given: Any, *args: Any, **named: Any) -> Any:
    watch.turn(*args, *named.values())
    return given(*args, **named)


def _frequencies(module: Any) -> list[str]:
    """The names of the inverse frequencies of a module."""
    names = (name for name, _ in module.named_buffers(recurse=False))
    return [name for name in names if name.endswith("inv_freq") and "original" not in name]


# -- what was seen -------------------------------------------------------------------------------


def pattern(function: Any) -> tuple[int | None, bool, bool] | None:
    """What a mask function lets a far query see: how many keys, all told, whether on both sides,
    and whether in chunks; None where it is neither a window, nor a chunk, nor everything.

    Args:
        function: of the library, of (batch, head, query, key).

    >>> from transformers.masking_utils import sliding_window_causal_mask_function as window
    >>> pattern(window(4096)), pattern(_causal), pattern(_both)
    ((4096, False, False), (None, False, False), (None, True, False))
    """
    edge = functools.partial(_edge, _with_values(function))
    try:
        back, ahead = edge(_FAR, -1), edge(_FAR, 1)
        if back is None or ahead is None:
            return None if back != ahead and ahead != 0 else (None, ahead is None, False)
        if all(edge(_FAR + k, -1) == back for k in (1, back, back + 1)):
            return back + ahead + 1, ahead > 0, False
        return None if ahead else _chunk(edge, _FAR - back)
    except Exception:  # whatever the library's function raises where it is asked out of place
        return None


def _edge(function: Any, query: int, step: int) -> int | None:
    """The last distance that a query sees back (step -1) or ahead (1); None where it sees every
    one, -1 where none.

    Raises:
        ValueError: it sees keys behind others that it does not see.
    """

    def sees(distances: Sequence[int]) -> list[bool]:
        batch, rows = torch.zeros(1, 1, dtype=torch.long), torch.full((1, len(distances)), query)
        keys = torch.tensor([[query + step * d for d in distances]])
        seen = torch.as_tensor(function(batch, batch, rows, keys))
        return list(seen.expand(1, len(distances))[0].tolist())

    far = sorted({0, 1, 2, 3, *(k << e for e in range(1, 40) for k in (1, 3)), _FAR})
    seen = sees(far)
    if seen != sorted(seen, reverse=True):
        raise ValueError
    if all(seen) or not seen[0]:
        return None if seen[0] else -1
    low, high = far[seen.index(False) - 1], far[seen.index(False)]
    return low + bisect_left(range(low + 1, high), True, key=lambda d: not sees([d])[0])


def _chunk(edge: Callable[[int, int], int | None], begin: int) -> tuple[int, bool, bool] | None:
    """The size of the chunks, one of which begins there, as `pattern` says it; None for none."""

    def reaches_back(distance: int) -> bool:
        return edge(begin + distance, -1) == distance

    size = 1
    while reaches_back(size):
        size *= 2
        if size > LONG << 8:
            return None
    size = bisect_left(range(size), True, key=lambda n: not reaches_back(n))
    places = ((begin + k * size + n, n) for k in (0, 1, 2) for n in (0, size - 1))
    return (size, False, True) if all(edge(at, -1) == n for at, n in places) else None


def _with_values(function: Any) -> Any:
    """A mask function whose rows have no padding, where the run without content has no number."""
    if isinstance(function, tuple):
        return tuple(map(_with_values, function))
    if isinstance(function, Tensor):
        return torch.zeros(function.shape, dtype=function.dtype)
    if not isinstance(function, types.FunctionType):
        return function
    cells = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        held = cell.cell_contents
        if not isinstance(held, Tensor) or name == "left_padding":
            held = _with_values(held)
        cells.append(types.CellType(held))
    code, named = function.__code__, function.__name__
    return types.FunctionType(
        code, function.__globals__, named, function.__defaults__, tuple(cells)
    )


def _read(config: Any, network: Any, watch: _Watch, held: list[_Kept] | None) -> Observed:
    """What a watch saw, layer by layer."""
    calls, kept = _calls(watch, len(held or ())), dict(enumerate(held or ()))
    if not calls and not watch.given and not any(map(any, kept.values())):
        raise NotObserved("its layers call no attention of the library, and keep nothing by name")
    known = {*kept, *calls} if held is not None else {*calls, *watch.given}
    count = 1 + max(known, default=-1)
    if not getattr(network.config, "is_encoder_decoder", False):
        count = max(count, getattr(config, "num_hidden_layers", None) or 0)
    layers, tables, seen = list[LayerOutline](), _own_patterns(network), functools.cache(pattern)
    for at in range(count):
        (of, call), numbers = calls.get(at, (at, None)), kept.get(at, _Kept())
        if not numbers.cached and call is None and (held is not None or at not in watch.given):
            layers.append(LayerOutline(attends=False, state=numbers.state))
            continue
        mask = call.mask if call is not None and call.mask else watch.given.get(of, False)
        view = tables.get(of) or (seen(mask) if mask else None)
        shares = held is not None and not numbers.cached
        layers.append(_attending(config, watch, of, call, numbers, view, shares))
    crossed = any(call.rows == SHORT != call.keys for call in watch.calls)
    return Observed(tuple(layers), held is not None, _table(watch, network), crossed)


def _calls(watch: _Watch, kept: int) -> dict[int, tuple[int, _Call]]:
    """The first call of each layer with a whole row, and the layer's own number.

    Layers may run twice, each time with keys of their own in a cache of so many layers.
    """
    own = [call for call in watch.calls if call.rows == call.keys == SHORT]
    places = [at if call.layer is None else call.layer for at, call in enumerate(own)]
    twice = len(own) == kept > len({*places})
    calls = dict[int, tuple[int, _Call]]()
    for at, (place, call) in enumerate(zip(places, own, strict=True)):
        calls.setdefault(at if twice else place, (place, call))
    return calls


def _attending(
    config: Any,
    watch: _Watch,
    of: int,
    call: _Call | None,
    kept: _Kept,
    view: tuple[int | None, bool, bool] | None,
    shares: bool,
) -> LayerOutline:
    """A layer with softmax attention.

    Args:
        config: of the model.
        watch: of its run.
        of: the layer's own number.
        call: of its attention; None where it calls another one than the library's.
        kept: in the cache.
        view: as `pattern` says it; None where that is not known.
        shares: whether it has no cache of its own.
    """
    width, both, chunked = view or (None, False, False)
    heads = call.heads if call else getattr(config, "num_attention_heads", None) or kept.heads or 1
    keys = kept.heads or (call.key_heads if call else heads)
    size = call.size if call else kept.cached // (2 * keys)
    rotation, turned, known = _rotation(config, watch, of, call)
    limit = math.inf if kept.stops is None else kept.stops
    layer = LayerOutline(
        width=width,
        both_sides=both,
        chunked=chunked,
        picks=_picks(watch, of, call),
        heads=heads,
        key_heads=keys,
        head_size=size or getattr(config, "hidden_size", 0) // heads,
        cached=kept.cached,
        indexed=kept.indexed,
        state=kept.state,
        keeps=None if limit == (width or math.inf) or not kept.cached else limit,
        shares=shares,
        positions=_positions(watch, of, call),
        rotation=rotation,
        sink=bool(call and call.sink),
        cap=call.cap if call else None,
        scale=_rounded(turned * _factor(call)),
        observed=view is not None and known,
    )
    grows = "a function of i" if of in watch.scaled else ""
    return replace(layer, temper=_temper(config, layer) or grows)


def _own_patterns(network: Any) -> dict[int | None, tuple[int | None, bool, bool]]:
    """What attentions let a query see by tables of their own, by layer."""
    patterns = dict[int | None, tuple[int | None, bool, bool]]()
    for module in (each for each in network.modules() if layer_of(each) is not None):
        for name, table in module.named_buffers(recurse=False):
            square = table.dim() > 1 and table.shape[-1] == table.shape[-2] > 1
            if not square or table.dtype != torch.bool or table.numel() > LONG << 9:
                continue
            setattr(module, name, torch.zeros(table.shape, dtype=torch.bool))
            network._init_weights(module)
            row = getattr(module, name).reshape(-1, *table.shape[-2:])[0, -1]
            seen = int(row.sum())
            if seen and bool(row[-seen:].all()):
                width = None if seen == len(row) else seen
                patterns.setdefault(layer_of(module), (width, False, False))
    return patterns


def _picks(watch: _Watch, layer: int, call: _Call | None) -> int | None:
    """How many keys are chosen for a query of a layer, or of the last one below that chooses."""
    below = [k for k in watch.picks if k <= layer]
    if not below or (layer not in watch.picks and (call is None or call.mask is not False)):
        return None
    count, among = watch.picks[max(below)]
    picks = count * max(1, watch.tokens // among)
    return picks if picks < watch.tokens else None


def _positions(watch: _Watch, layer: int, call: _Call | None) -> str:
    if layer in watch.turned:
        return "rotation"
    if watch.relative:
        return "bias"
    if watch.tables or watch.held:
        return "absolute"
    return "none" if call is not None and call.mask is not False else ""


def _table(watch: _Watch, network: Any) -> int | None:
    """Rows of the table of positions that was looked up, or that its attention holds."""
    rows = [rows for rows in watch.tables if rows]
    for module in network.modules():
        if watch.turned and isinstance(held := getattr(module, "embed_positions", None), Tensor):
            rows.append(held.shape[0])
    return min(rows, default=None)


def _source(config: Any, watch: _Watch, layer: int) -> Any:
    """The module that makes the rotation of a layer, and the kind of layer it is asked for."""
    if watch.turned[layer] is not None:
        return watch.turned[layer]
    made = list(
        {(id(module), kind): (module, kind) for _, (module, kind) in watch.outputs}.values()
    )
    kinds = getattr(config, "layer_types", None) or ()
    alike = [each for each in made if layer < len(kinds) and each[1] == kinds[layer]]
    return made[0] if len(made) == 1 else alike[0] if len(alike) == 1 else None


def _angles(module: Any, kind: str) -> tuple[list[float], float] | None:
    """The inverse frequencies of a rotation, computed by the library, and its attention scaling."""
    try:
        made = type(module)(config=module.config)
        named = [name for name in _frequencies(made) if name.startswith(kind)] or _frequencies(made)
        scaling = getattr(made, named[0].replace("inv_freq", "attention_scaling"), 1.0)
        return getattr(made, named[0]).double().tolist(), float(scaling)
    except Exception:  # whatever the library raises; the rotation is then not observed
        return None


def _rotation(
    config: Any, watch: _Watch, layer: int, call: _Call | None
) -> tuple[Rotary | None, float, bool]:
    """How a layer turns its queries, what that multiplies its logits with, and whether it was
    observed."""
    if layer not in watch.turned:
        return None, 1.0, True
    source = _source(config, watch, layer)
    key = (id(source[0]), source[1], None if call is None else call.scaling) if source else None
    if key in watch.rotations:
        return watch.rotations[key]
    found = _angles(*source) if source else None
    if found is None:
        size = getattr(config, "rotary_dim", None)
        return (Rotary(size, 10_000.0) if size else None), 1.0, False
    angles, scaling = found
    if not all(map(math.isfinite, angles)):
        raise NotObserved("the angles of its rotation are not finite")
    rope = _rope(config, layer, *source)
    kind = rope.get("rope_type") or rope.get("type") or "default"
    longest = getattr(config, "max_position_embeddings", None)
    original = rope.get("original_max_position_embeddings") or longest
    factor = rope.get("factor") or (longest / original if longest and original else 1.0)
    made = Rotary(
        size=2 * sum(map(bool, angles)),
        base=_base(angles, rope.get("rope_theta"), kind),
        kind=kind,
        scale=_rounded(scaling**2 * (_factor(call) if "mscale_all_dim" in rope else 1.0)),
        note=SCALINGS.get(kind, "the angles are rescaled").format(factor=factor, original=original),
    )
    watch.rotations[key] = made, scaling**2, True
    return watch.rotations[key]


def _rope(config: Any, layer: int, module: Any, kind: str) -> dict[str, Any]:
    """The settings of a rotation: of a kind of layer, where each kind has its own."""
    rope: dict[str, Any] = getattr(module.config, "rope_parameters", None) or {}
    if not any(isinstance(part, dict) for part in rope.values()):
        return rope
    kinds = getattr(config, "layer_types", None) or ()
    return rope.get(kind or (kinds[layer] if layer < len(kinds) else "")) or {}


def _base(angles: Sequence[float], said: float | None, kind: str) -> float:
    """The base of the angles as the configuration says it, or as they show where they show another
    one; rescaled angles show none."""
    turning = sorted((a for a in angles if a), reverse=True)
    base = float(said or 0)
    if len(turning) < 2 or kind in ("yarn", "longrope"):
        return base
    shown = [(turning[0] / turning[1]) ** n for n in (len(angles), len(angles) - 0.5)]
    return base if base and any(abs(x / base - 1) < 1e-3 for x in shown) else shown[0]


SCALINGS = {
    "default": "",
    "linear": "all angles divided by {factor:g}",
    "dynamic": "the base grows with rows beyond the training length, factor {factor:g}",
    "yarn": "slow angles divided by {factor:g}",
    "longrope": "each angle divided by a number of its own, another one beyond {original} tokens",
    "llama3": "slow angles divided by {factor:g}",
    "proportional": "a part of the angles of the whole head turns",
}
"""The effect of each rescaling that the library knows, in words."""


def _rounded(scale: float) -> float:
    return 1.0 if abs(scale - 1) < 1e-6 else scale


def _factor(call: _Call | None) -> float:
    """What an attention multiplies logits with beside 1/sqrt(head size); 1 where that was not
    seen."""
    return call.scaling * math.sqrt(call.size) if call and call.scaling else 1.0


def _temper(config: Any, layer: LayerOutline) -> str:
    """The factor of the logits of a query in place i, from 1, as the configuration says."""
    rope = getattr(config, "rope_parameters", None) or {}
    if getattr(config, "attn_temperature_tuning", None) and layer.rotation is None:
        return f"1 + {config.attn_scale:g} log(1 + floor(i/{config.floor_scale:g}))"
    floor = getattr(config, "log_scaling_n_floor", None)
    if floor is not None and layer.width is None:
        return f"1 + {config.log_scaling_alpha:g} log(max(1, i/{floor:g}))"
    if (beta := rope.get("llama_4_scaling_beta")) and config.model_type in _TEMPERED:
        length = rope["original_max_position_embeddings"]
        return f"1 + {beta:g} log(1 + floor((i - 1)/{length:g}))"
    return ""


_TEMPERED = ("ministral3", "mistral4")  # types that read `llama_4_scaling_beta`
