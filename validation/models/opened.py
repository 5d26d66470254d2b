"""A model opened with its weights: device, memory, scores and attention under windows of layers.

The model stays the library's, and so do its masks, biases and rotations. A layer is narrowed where
the library hands it its mask. Nothing is downloaded, unpickled, or run from the folder: weights are
safetensors, architectures the library's own, computed in float32 whatever their type on disk. A run
of ours is opened by its harness, with the same interface.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from farfield.numerics.masks import CAUSAL, Mask
from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.answers.names import one_of
from farfield.validation.harness.model import Transformer
from farfield.validation.harness.runs import load
from farfield.validation.models.configuration import quiet, transformers
from farfield.validation.models.gguf_files import gguf_network
from farfield.validation.models.library_network import LibraryNetwork, rotations
from farfield.validation.models.network import Network, TrainedNetwork
from farfield.validation.models.observed import attends, layer_of
from farfield.validation.models.outline import RUN, ModelOutline
from farfield.validation.models.streamed import blocks, held, skeleton, streamed
from farfield.validation.models.weights import require_finite, require_weights
from farfield.validation.optional import first_line

_FLOATS = 60  # a token takes this many times the width while the gradient of a layer is made


class Opened:
    """A model of the library, opened.

    Args:
        model: what its folder says.
        network: of the library, with its weights.
    """

    def __init__(self, model: ModelOutline, network: Any) -> None:
        self.model, self.network = model, network.eval().requires_grad_(False)
        self.length, self.vocabulary = model.trained or 0, model.vocabulary
        self.view, self.tried = CAUSAL, False
        self.held: int | None = None
        """Bytes at most of a model that is read one layer at a time; None for one in memory."""
        self.attentions = dict(_attentions(network, model))
        for module in self.attentions.values():
            module.register_forward_pre_hook(self._narrowed, with_kwargs=True, prepend=True)
        for block in blocks(network, len(model.layers)):
            block.forward = functools.partial(self._sparing, block.forward)

    def embed(self, tokens: Tensor) -> Tensor:
        """The input embedding of tokens, shape (batch, length, width)."""
        embedded: Tensor = self.network.get_input_embeddings()(tokens.to(self.device))
        return embedded

    def hidden(self, embedded: Tensor, view: Mask = CAUSAL, *, last: int = 0) -> Tensor:
        """Scores of the next token, shape (batch, length, vocabulary), from input embeddings; with
        `last`, of this many last tokens. The library gives no hidden state by one name for all
        types.

        Raises:
            InputError: rows longer than the model's table of positions; a view that its layers
                cannot take.
        """
        _require_positions(self.model, embedded.shape[1])
        self._require(view)
        self.view = view  # a backward pass may have left another one
        named = inspect.signature(self.network.forward).parameters
        more = {"logits_to_keep": last} if last and "logits_to_keep" in named else {}
        try:
            out = self.network(inputs_embeds=embedded, use_cache=False, **more).logits
        finally:
            self.view = CAUSAL
        return out[:, -last:]

    @functools.cached_property
    def apart(self) -> LibraryNetwork:
        """Its queries and keys at positions of one's own choice.

        Raises:
            InputError: as `LibraryNetwork`.
        """
        return LibraryNetwork(self.model, self.network, self.attentions)

    def logits(self, hidden: Tensor) -> Tensor:
        """The scores, which `hidden` has already."""
        return hidden

    def weights(self, tokens: Tensor) -> Iterator[tuple[int, Tensor]]:
        """The attention of each layer that attends on one row of tokens, (heads, rows, keys)."""
        by_layer: dict[int, Tensor] = {}

        def look(layer: int, module: Any, args: Any, out: Any) -> None:
            for part in out:
                if isinstance(part, Tensor) and part.shape[2:] == (length, length):
                    by_layer[layer] = part[0]

        length = tokens.shape[-1]
        with ExitStack() as stack, _attending(self.network, "eager"), torch.no_grad():
            for layer, module in self.attentions.items():
                hook = module.register_forward_hook(functools.partial(look, layer))
                stack.callback(hook.remove)
            self.network(tokens[None], use_cache=False)
        if not by_layer:
            raise _no_hook(self.model)
        yield from sorted(by_layer.items())

    def _require(self, view: Mask) -> None:
        """Raise InputError unless each layer that a view narrows can be, which is tried once."""
        if view == CAUSAL:
            return
        attending = [k for k, layer in enumerate(self.model.layers) if layer.attends]
        if not attending or any(k not in self.attentions for k in attending):
            raise _no_hook(self.model)
        if not self.tried:
            self._try()

    @torch.no_grad()
    def _try(self) -> None:
        """Under windows of one key, the first token must not matter for the last one."""
        self.tried = True  # this asks for scores itself
        if any(layer.state != 0 for layer in self.model.layers):
            return
        tokens = torch.ones(2, 8, dtype=torch.long)
        tokens[1, 0] = 2 % self.model.vocabulary
        one, other = self.hidden(self.embed(tokens.to(self.device)), Mask(1), last=1)
        if not torch.equal(one, other):
            self.tried = False
            raise _no_hook(self.model)

    def _narrowed(self, module: Any, args: Any, kwargs: Any) -> Any:
        """The arguments of an attention, its mask narrowed by the view in force."""
        if self.view == CAUSAL:
            return None
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
        arguments = bound.arguments
        mask, hidden = arguments.get("attention_mask"), next(iter(arguments.values()))
        at = torch.arange(hidden.shape[1], device=hidden.device)
        seen = torch.as_tensor(self.view.sees(at[:, None], at))[None, None]
        if mask is None:
            arguments["attention_mask"] = seen
        elif mask.dim() != 4:
            raise _no_hook(self.model)
        elif mask.dtype == torch.bool:  # true where a key is seen, in MPT where it is not
            arguments["attention_mask"] = mask & seen if mask[0, 0, 0, 0] else mask | ~seen
        else:
            least = torch.finfo(mask.dtype).min
            arguments["attention_mask"] = mask.masked_fill(~seen, least)
        return bound.args, bound.kwargs

    def _sparing(self, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A layer whose activations are made again in the backward pass, under the same view."""
        if not torch.is_grad_enabled():
            return forward(*args, **kwargs)
        view = self.view

        def again(*args: Any, **kwargs: Any) -> Any:
            self.view = view
            return forward(*args, **kwargs)

        return checkpoint(again, *args, use_reentrant=False, preserve_rng_state=False, **kwargs)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.network.parameters()).device


@contextmanager
def _attending(network: Any, name: str) -> Iterator[None]:
    """The library's model with another attention, by its name, for a while."""
    before = network.config._attn_implementation
    network.set_attn_implementation(name)
    try:
        yield
    finally:
        network.set_attn_implementation(before)


def _require_positions(model: ModelOutline, length: int) -> None:
    refuse(
        model.longest is not None and length > model.longest,
        f"model {model.name!r} has positions for {model.longest} tokens, {length} are asked "
        "for; accepted: rows up to that length",
    )


def _no_hook(model: ModelOutline) -> InputError:
    return InputError(
        f"model {model.name!r} ({model.kind}) has an attention that cannot be narrowed or looked "
        "at; accepted: its perplexity and its gradient, with every key that it sees"
    )


def _attentions(network: Any, model: ModelOutline) -> Iterator[tuple[int, Any]]:
    """The innermost attention of each layer that attends, by the layer's number from 0."""
    attending = {k for k, layer in enumerate(model.layers) if layer.attends}
    for module in network.modules():
        if attends(module) and (layer := layer_of(module)) in attending:
            yield layer, module


# -- loading -------------------------------------------------------------------------------------


def network_of(opened: Opened | OpenedRun) -> Network:
    """What may be asked of an opened model.

    Raises:
        InputError: as the two networks.
    """
    return TrainedNetwork(opened.network) if isinstance(opened, OpenedRun) else opened.apart


def open_model(
    model: ModelOutline,
    *,
    tokens: int = 1024,
    device: Any = None,
    dtype: Any = None,
    by_layer: bool = False,
) -> Opened | OpenedRun:
    """The model of a folder or a GGUF file, in evaluation mode.

    A model that was opened already is copied. One that does not fit into memory is read one layer
    at a time, in each pass anew.

    Args:
        model: what its folder says.
        tokens: the longest row it will be given; enters the estimate of the memory.
        device: of torch, as cuda or cuda:1; None for the CPU, or where a live model is.
        dtype: one of `TYPES`; None for float32, or that of a live model.
        by_layer: whether to read one layer at a time in any case.

    Raises:
        InputError: a device that is not there, a type that is not known; weights are pickled,
            missing, misshapen, damaged, not finite, or not those of a model in floating point; it
            is no causal language model of the library; the memory is too small for it.
    """
    place, kind = openable(model, device, dtype)
    if model.kind == RUN:
        run = load(model.path)[0]
        return OpenedRun(model, run.to(device=place, dtype=kind))
    if model.network is None:
        return _from_files(model, tokens, place, kind or torch.float32, by_layer)
    network = copy.deepcopy(model.network)  # hooks stay here
    return _finite(Opened(model, _moved(network, place, kind)))


def openable(
    model: ModelOutline, device: Any = None, dtype: Any = None
) -> tuple[torch.device | None, torch.dtype | None]:
    """The device and the type that a model is opened with, before a text or a weight is read.

    Raises:
        InputError: as `open_model`, where that takes no weight to see.
    """
    place, kind = placed(device, dtype)
    if model.kind == RUN:
        return place, kind
    packed = model.path.suffix == ".gguf"
    if model.unknown or not (packed or model.causal):
        why = model.unknown or "it is no causal language model"
        raise InputError(
            f"model {model.name!r} ({model.kind}) can only be audited: {why}; accepted: causal "
            "language models of the library transformers"
        )
    transformers()
    if model.network is None and not packed:
        require_weights(model)
    return place, kind


def _moved(network: Any, place: torch.device | None, kind: torch.dtype | None) -> Any:
    """A model on a device and in a type; frequencies of rotations keep theirs, since rounding them
    turns far keys by whole angles."""
    kept = [(m, dict(m.named_buffers(recurse=False))) for _, _, m in rotations(network)]
    network = network.to(device=place, dtype=kind)
    for module, buffers in kept:
        module._buffers.update({name: x.to(place) for name, x in buffers.items()})
    return network


def _from_files(
    model: ModelOutline, tokens: int, place: torch.device | None, kind: torch.dtype, by_layer: bool
) -> Opened:
    """A model in memory where it fits, else one layer at a time."""
    packed = model.path.suffix == ".gguf"
    empty = skeleton(model)
    numbers = sum(x.numel() for x in (*empty.parameters(), *empty.buffers()))
    whole = (4 if packed else kind.itemsize) * numbers
    rows, free = _activations(model, tokens), available(place)
    if not by_layer and (free is None or whole + rows <= free):
        return _finite(Opened(model, _network(model, empty.config, kind, place)))
    most = held(model, empty, kind) + rows
    refuse(
        free is not None and most > free,
        f"model {model.name!r} takes about {(whole + rows) >> 20:,} MiB with rows of {tokens} "
        f"tokens, {most >> 20:,} MiB with one layer at a time, {max(0, free or 0) >> 20:,} MiB are "
        "free; accepted: a smaller model, or shorter rows",
    )
    opened = Opened(model, streamed(model, empty, kind, place))
    opened.held = most
    return opened


def _finite(opened: Opened) -> Opened:
    """Raise InputError for a model with weights that are not finite."""
    for name, weight in opened.network.named_parameters():
        require_finite(opened.model, name, weight)
    return opened


TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
"""Types that a model may be computed in, by name."""


def placed(device: Any, dtype: Any) -> tuple[torch.device | None, torch.dtype | None]:
    """A device and a type of torch by their names; None where none is named.

    Raises:
        InputError: a device that is not there, or a type that is not known.
    """
    if dtype is not None:
        one_of(str(dtype).removeprefix("torch."), "dtype", (*TYPES,))
    kind = None if dtype is None else TYPES[str(dtype).removeprefix("torch.")]
    try:
        place = None if device is None else torch.empty(0, device=device).device
        if place is not None and place.type == "meta":
            raise RuntimeError("it holds no numbers")
    except (RuntimeError, AssertionError) as error:
        raise InputError(
            f"device {device!r}: {first_line(error, 120)}; accepted: cpu, or a device that torch "
            "finds on this machine"
        ) from None
    try:
        one = torch.ones(2, 2, device=place, dtype=kind)
        one @ one
    except (RuntimeError, TypeError) as error:
        raise InputError(
            f"dtype {dtype!r}: {first_line(error, 120)}; accepted on {device!r}: float32"
        ) from None
    return place, kind


def _network(
    model: ModelOutline, config: Any, kind: torch.dtype, place: torch.device | None
) -> Any:
    """The library's model of a folder or a GGUF file, its weights those of the files."""
    if model.path.suffix == ".gguf":
        return _moved(gguf_network(model), place, kind)
    hf = transformers()
    with quiet(hf):
        try:
            network, report = hf.AutoModelForCausalLM.from_pretrained(
                model.path,
                config=config,
                local_files_only=True,
                use_safetensors=True,
                trust_remote_code=False,
                dtype=kind,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # they are reported, and refused below
            )
        except Exception as error:  # whatever the library raises
            raise InputError(
                f"model {model.name!r}: the library transformers stops on its weights "
                f"({first_line(error, 120)}); accepted: a model that it runs"
            ) from None
    for names, wrong in (("missing_keys", "lacks"), ("mismatched_keys", "has misshapen")):
        tensors = sorted(str(x if isinstance(x, str) else x[0]) for x in report.get(names) or ())
        if tensors:
            more = f" and {len(tensors) - 1} more" if len(tensors) > 1 else ""
            raise InputError(
                f"model {model.name!r} {wrong} tensor {tensors[0]!r}{more}; accepted: weights that "
                "fit config.json"
            )
    return network.to(device=place)


def _activations(model: ModelOutline, tokens: int) -> int:
    """Bytes beside the weights that a row takes."""
    heads = max((layer.heads for layer in model.layers), default=1)
    width, layers = model.width, len(model.layers)
    own = max(4 * tokens * width * (_FLOATS + layers), 80 * tokens * heads * 32)
    return own + 8 * tokens * model.vocabulary


def available(place: torch.device | None = None) -> int | None:
    """Bytes of memory that are free on a device; None where the system does not say."""
    if place is not None and place.type == "cuda":
        return int(torch.cuda.mem_get_info(place)[0])
    limits, meminfo = [], Path("/proc/meminfo")
    if meminfo.exists():
        lines = dict(line.split(":") for line in meminfo.read_text().splitlines())
        limits.append(int(lines["MemAvailable"].split()[0]) << 10)
    limit, used = (Path("/sys/fs/cgroup") / f"memory.{k}" for k in ("max", "current"))
    if limit.exists() and used.exists() and (text := limit.read_text().strip()) != "max":
        limits.append(int(text) - int(used.read_text()))
    return min(limits, default=None)


class OpenedRun:
    """A run of ours, with the interface of `Opened`; the only place that calls its model."""

    def __init__(self, model: ModelOutline, network: Transformer) -> None:
        self.model, self.network = model, network.requires_grad_(False)
        self.length, self.vocabulary = network.length, network.vocabulary
        self.logits, self.device = network.logits, network.device
        self.held: int | None = None

    def embed(self, tokens: Tensor) -> Tensor:
        """As `Opened.embed`."""
        _require_positions(self.model, tokens.shape[1])
        return self.network.embed(tokens)

    def hidden(self, embedded: Tensor, view: Mask = CAUSAL, *, last: int = 0) -> Tensor:
        """The last residual, under a view; not compiled, since each view would be compiled anew."""
        prepared = self.network.prepare(embedded.shape[1], view)
        return self.network.hidden(embedded, prepared=prepared, last=last)

    @torch.no_grad()
    def weights(self, tokens: Tensor) -> Iterator[tuple[int, Tensor]]:
        """As `Opened.weights`."""
        layers: list[Tensor] = []

        def look(layer: Any, q: Tensor, k: Tensor, v: Tensor, prepared: Any) -> Tensor:
            each = torch.eye(k.shape[2], dtype=v.dtype, device=v.device)
            layers.append(layer.attend(q, k, each.expand(*k.shape[:2], -1, -1), prepared)[0])
            attended: Tensor = layer.attend(q, k, v, prepared)
            return attended

        self.network.hidden(self.embed(tokens[None]), attend=look)
        yield from enumerate(layers)
