"""A model of the library transformers as a network of the far field: its attention is hooked.

The library runs its own layers. Its attention hook hands over queries and keys as they are turned
at their own positions. They are turned back, and turned again wherever they are placed.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from farfield.theory.answers.errors import refuse
from farfield.validation.harness.bias import FixedBias
from farfield.validation.models.network import (
    Attend,
    DistanceTable,
    Grouped,
    Keep,
    kept,
    scores_at,
)
from farfield.validation.models.outline import ModelOutline
from farfield.validation.optional import library

HOOK = "farfield_far"
CLOSE = {torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 0.15}
"""How far scores may lie from the library's own by their type, as root mean squares and a share of
their spread or of 1: each rounds its layers in an order of its own."""
TURNS = ("default", "linear", "yarn", "llama3", "dynamic", "longrope")
"""Rotations of the library that are known here; the last two change with the length of a row."""


class LibraryNetwork:
    """A model of the library, opened.

    Raises:
        InputError: a layer without keys, or whose keys cannot be had at other positions.
    """

    def __init__(self, model: ModelOutline, network: Any, attentions: Mapping[int, Any]) -> None:
        self.model, self.network, self.attentions = model, network, attentions
        self.trained = model.trained or 1024
        self.longest, self.depth = model.longest, len(model.layers)
        self.grouped: Grouped | None = None
        self.device, self.end = next(network.parameters()).device, 0
        self.scaling, self.sinks = dict[int, float](), dict[int, Tensor | None]()
        self.caps = dict[int, float | None]()
        self.attend: Attend | None = None
        each = {k: layer.encoding for k, layer in enumerate(model.layers) if layer.encoding}
        self.tables = {k: DistanceTable(FixedBias(e).table, e) for k, e in each.items()}
        self.takes = inspect.signature(self.network.forward).parameters
        self.turns = [module for _, _, module in rotations(self.network)]
        self._require()
        transformers = library("transformers", "a model from outside", "hf")
        transformers.AttentionInterface.register(HOOK, _hooked)
        masks = transformers.masking_utils.ALL_MASK_ATTENTION_FUNCTIONS
        transformers.AttentionMaskInterface.register(HOOK, masks["sdpa"])
        for layer, module in self.attentions.items():
            module.far_field = (self, layer)
        self._try()

    def _require(self) -> None:
        model, layers = self.model, self.model.layers
        start = f"model {model.name!r} ({model.kind})"
        bare = next((k for k, layer in enumerate(layers, 1) if not layer.attends), None)
        refuse(
            bare is not None,
            f"{start} has no keys in layer {bare}; accepted are models whose layers all attend",
        )
        kinds = {layer.rotation.kind for layer in layers if layer.rotation is not None}
        absolute = any(layer.positions == "absolute" for layer in layers)
        refuse(
            any(layer.chunked or layer.picks or layer.shares for layer in layers)
            or len(self.attentions) < self.depth
            or not kinds <= {*TURNS}
            or (bool(kinds) and len(self.turns) != 1)
            or ((absolute or bool(kinds)) and "position_ids" not in self.takes),
            f"{start} has an attention whose keys cannot be had at other positions; accepted are "
            "causal layers with no positions, biases by distance, rotations, windows and sinks",
        )

    def _try(self) -> None:
        """Compare a short row, placed further on, with the library's own."""
        at = torch.arange(12)
        tokens = 7919 * (at[None] + 1) % self.model.vocabulary  # the first ones may be special
        here = scores_at(self, tokens, at, 12)
        with torch.no_grad():
            own = self.network(tokens.to(self.device), use_cache=False).logits
        refuse(
            len(self.scaling) < self.depth or _apart(here, own) > CLOSE[own.dtype],
            f"model {self.model.name!r} ({self.model.kind}) has an attention that is not known "
            "here; accepted are models that ask the library's attention hook",
        )

    def scores(self, tokens: Tensor, positions: Tensor, keep: Keep, attend: Attend) -> Tensor:
        """As `Network.scores`."""
        keeps = "logits_to_keep" in self.takes
        tokens = tokens.to(self.device)
        more: dict[str, Any] = {"input_ids": tokens} | ({"logits_to_keep": keep} if keeps else {})
        self.end, self.at = int(positions[-1]), positions.to(tokens.device)
        self.turns = [module for _, _, module in rotations(self.network)]
        if "position_ids" in self.takes:
            more["position_ids"] = self.at[None].expand(len(tokens), -1)
        if self.turns and not self.tables and "attention_mask" in self.takes:
            more["attention_mask"] = self.at.new_ones(len(tokens), 1, 1, 1)  # the hook has its own
        before, self.attend = self.network.config._attn_implementation, attend
        closed = [m for m in self.attentions.values() if hasattr(m, "_reshape")]  # no hook there
        try:
            if not closed:
                self.network.set_attn_implementation(HOOK)
            for module in closed:
                module.forward = functools.partial(_unhooked, module)
            scores: Tensor = self.network(use_cache=False, **more).logits
        finally:
            self.attend = None
            for module in closed:
                del module.forward
            if not closed:
                self.network.set_attn_implementation(before)
        return scores if keeps else kept(scores, keep)

    def query(self, layer: int, q: Tensor, i: Tensor) -> Tensor:
        """As `Network.query`."""
        return self._turned(layer, q, i, None) * self.scaling[layer]

    def key(self, layer: int, k: Tensor, j: Tensor, end: int) -> Tensor:
        """As `Network.key`."""
        return self._turned(layer, k, j, end)

    def bias(self, layer: int, i: Tensor, j: Tensor) -> Tensor:
        """As `Network.bias`."""
        outline, n = self.model.layers[layer], i[:, None] - j
        added = torch.zeros(1, 1, 1, device=n.device)
        if layer in self.tables:
            added = self.tables[layer].at(n.clamp(min=0))
        return added.masked_fill((n < 0) | (n >= (outline.width or math.inf)), -math.inf)

    def content(self, layer: int) -> None:
        """As `Network.content`; no layer of the library that is read here has such a bias."""

    def sink(self, layer: int) -> Tensor | None:
        """As `Network.sink`."""
        return self.sinks.get(layer)

    def cap(self, layer: int) -> float | None:
        """As `Network.cap`."""
        return self.caps[layer]

    def _turned(
        self, layer: int, x: Tensor, at: Tensor, end: int | None, back: bool = False
    ) -> Tensor:
        """Vectors turned at their positions, or turned back, in a row that ends at `end`, or at the
        last of them; in float32, since they are turned more than once."""
        rotation = self.model.layers[layer].rotation
        if not self.turns or rotation is None:
            return x
        kinds = getattr(self.network.config, "layer_types", None)
        (rotary,) = self.turns
        takes = "layer_type" in inspect.signature(rotary.forward).parameters
        more = {"layer_type": kinds[layer]} if takes and kinds else {}
        whole = at if end is None else torch.cat([at, at.new_full((1,), end)])
        y = x.float()
        cos, sin = (part[:, : len(at)] for part in rotary(y, whole[None], **more))
        if back:
            square = cos[:, :1, :1] ** 2 + sin[:, :1, :1] ** 2  # of the factor that YaRN turns with
            cos, sin = cos / square, -sin / square
        apply = sys.modules[type(self.attentions[layer]).__module__].apply_rotary_pos_emb
        size = rotation.size
        part = y[..., :size]
        return torch.cat([apply(part, part, cos, sin)[0], y[..., size:]], -1).to(x.dtype)

    def mixed(
        self,
        layer: int,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        scaling: float,
        sinks: Tensor | None = None,
        cap: float | None = None,
    ) -> Tensor:
        """What the attention of a layer gives, (rows, heads, length, size)."""
        assert self.attend is not None
        self.scaling[layer], self.caps[layer], self.sinks[layer] = scaling, cap, sinks
        q, k = (self._turned(layer, x, self.at, self.end, True) for x in (q, k))
        return self.attend(layer, q, k, v)


def rotations(network: nn.Module) -> Iterator[tuple[nn.Module, str, nn.Module]]:
    """The rotary modules of a model of the library, each with its parent and its name there."""
    for parent in network.modules():
        for name, module in parent.named_children():
            if hasattr(module, "rope_type") and hasattr(module, "config"):
                yield parent, name, module


def _apart(here: Tensor, own: Tensor) -> float:
    """The root mean square of differences of scores, as a share of their spread or of 1."""
    difference = (here.float() - own.float()).square().mean().sqrt()
    return float(difference / own.float().std().clamp(min=1))


def _hooked(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Any,
    scaling: float | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """The library's attention hook."""
    network, layer = module.far_field
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    mixed = network.mixed(layer, query, key, value, scaling, s_aux, softcap)
    return mixed.transpose(1, 2), None


def _unhooked(module: Any, hidden: Tensor, residual: Tensor, *args: Any, **more: Any) -> Any:
    """The forward of BLOOM's attention, which computes its own softmax."""
    network, layer = module.far_field
    q, k, v = module._reshape(module.query_key_value(hidden))
    mixed = network.mixed(layer, q, k, v, module.inv_norm_factor)
    return module.dense(mixed.transpose(1, 2).flatten(2)) + residual, None
