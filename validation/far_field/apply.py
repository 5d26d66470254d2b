"""A setting on the live model: the library generates with what `mend` advises.

Rotations are changed by the library's own module. Everything else stands in its attention
interface, and the library's cache stays as it is: it holds keys as they are turned at their own
positions, and turning them further by the difference puts them anywhere. So a generated token sees
what it would see in a whole row.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch import Tensor

from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.answers.number import natural
from farfield.validation.far_field.mend import Mending
from farfield.validation.far_field.rotary import applied, settings_of
from farfield.validation.models.joined_attention import joined
from farfield.validation.models.library_network import rotations
from farfield.validation.models.network import QUERIES
from farfield.validation.models.repairs import Repair, candidates
from farfield.validation.optional import library

NAME = "farfield_applied"
_FIXED = ("default", "linear", "yarn", "llama3")  # rotations that do not change with the row


@contextmanager
def apply(model: Any, setting: Any, *, to: Any = None) -> Iterator[Any]:
    """A live model of the library transformers under a setting; its own come back at the end.

    Args:
        model: of the library.
        setting: an answer of `mend`, whose best change it is; or the name of a setting, as `YaRN 2`
            or `Self-Extend, groups of 3 from 2046`.
        to: tokens of the longest row, where a name is given.

    Yields:
        The model. Its `generate` and its forward pass give what a whole row under the setting
        gives. Rows are not padded, and the cache is one that grows.

    Raises:
        InputError: no such setting; a text that is cut, which the caller does; no live model of the
            library, or one whose rotations change with the row.

    >>> import torch
    >>> from transformers import LlamaConfig, LlamaForCausalLM
    >>> small = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2}
    >>> model = LlamaForCausalLM(LlamaConfig(**small, vocab_size=9, num_hidden_layers=1,
    ...     max_position_embeddings=16))
    >>> with apply(model, "Self-Extend, groups of 4 from 4", to=48) as extended:
    ...     extended.generate(torch.arange(9)[None], max_new_tokens=3, eos_token_id=None).shape
    torch.Size([1, 12])
    """
    repair = _setting(model, setting, to)
    refuse(repair.cut is not None, f"{repair.name}: cut the tokens before the model reads them")
    turning = [module for _, _, module in rotations(model)]
    moves = repair.group is not None or (repair.in_cache and repair.window is not None)
    fixed = all(str(getattr(module, "rope_type", None)) in _FIXED for module in turning)
    refuse(
        moves and (len(turning) != 1 or not fixed),
        f"{repair.name} moves keys in the cache; accepted are models with one rotation that does "
        "not change with the row",
    )
    before = model.config._attn_implementation
    transformers = library("transformers", "a live model", "hf")
    with applied(model, repair):
        plain = not (moves or repair.window or repair.scale or repair.graft)
        if plain:
            yield model
            return
        trained = model.config.max_position_embeddings
        applying = _Applied(repair, trained, turning[0] if moves else None)
        transformers.AttentionInterface.register(NAME, applying.attention)
        masks = transformers.masking_utils.ALL_MASK_ATTENTION_FUNCTIONS
        transformers.AttentionMaskInterface.register(NAME, masks["sdpa"])
        try:
            model.set_attn_implementation(NAME)
            yield model
        finally:
            model.set_attn_implementation(before)


def _setting(model: Any, setting: Any, to: Any) -> Repair:
    """The change that is meant."""
    if isinstance(setting, Repair):
        return setting
    config: Any = getattr(model, "config", None)
    refuse(
        config is None or not hasattr(model, "set_attn_implementation"),
        f"{type(model).__name__} is no live model; accepted: one of the library transformers",
    )
    name = setting.best if isinstance(setting, Mending) else str(setting)
    far = setting.to if isinstance(setting, Mending) else to
    trained = config.max_position_embeddings
    known = [Repair(), *candidates(trained)]
    if far is not None and list(rotations(model)):
        known += settings_of(config, trained, natural(far, "to"))
    match = next((repair for repair in known if repair.name == name), None) or _grouped(name)
    if match is None:
        names = ", ".join(repr(repair.name) for repair in known[1:])
        raise InputError(f"setting {name!r}; accepted with to={far}: {names}")
    return match


def _grouped(name: str) -> Repair | None:
    """Self-Extend with any groups, by its name."""
    words = name.replace(",", "").split()
    numbers = [int(word) for word in words if word.isdecimal()]
    fits = len(numbers) == 2 and all(numbers)
    repair = Repair(group=(numbers[0], numbers[1])) if fits else Repair()
    return repair if repair.group and repair.name == name else None


Part: TypeAlias = tuple[Tensor, Tensor, Tensor, Tensor, slice]
"""Queries, the keys and values that they meet, a bias, and the places of these keys."""


class _Applied:
    """What the attention of a model does under a change."""

    def __init__(self, repair: Repair, trained: int, rotary: Any) -> None:
        self.repair, self.trained, self.rotary = repair, trained, rotary
        self.turn: Any = None

    def attention(
        self,
        module: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        scaling: float | None = None,
        softcap: float | None = None,
        s_aux: Tensor | None = None,
        position_ids: Tensor | None = None,
        **_: Any,
    ) -> tuple[Tensor, None]:
        """The library's attention hook; keys stand at the places 0, 1 and so on of the cache."""
        refuse(softcap is not None, "this model bounds its logits; accepted are plain ones")
        refuse(
            position_ids is not None
            and getattr(module, "layer_idx", 0) == 0
            and not bool((position_ids[:, -1] + 1 == key.shape[2]).all()),
            "the last position is not the last place of the cache; accepted are rows without "
            "padding, and a cache that grows with them",
        )
        self.turn = getattr(sys.modules[type(module).__module__], "apply_rotary_pos_emb", None)
        count, first = query.shape[2], key.shape[2] - query.shape[2]
        at = torch.arange(key.shape[2], device=key.device)
        query = query * (query.shape[-1] ** -0.5 if scaling is None else scaling)
        if self.repair.scale:
            grown = ((at[first:] + 1).float().log() / math.log(self.trained)).clamp(min=1)
            query = query * grown[:, None].to(query)
        mixed = list[Tensor]()
        for begin in range(0, count, QUERIES):
            rows = slice(begin, min(begin + QUERIES, count))
            parts = self._parts(query[:, :, rows], key, value, at[first:][rows], at)
            if mask is not None and mask.dtype == torch.bool:
                seen = mask[:, :, rows]
                parts = [
                    (a, b, c, bias.masked_fill(~seen[..., keys], -math.inf), keys)
                    for a, b, c, bias, keys in parts
                ]
            mixed.append(joined([part[:4] for part in parts], s_aux))
        return torch.cat(mixed, 2).transpose(1, 2), None

    def _parts(self, q: Tensor, k: Tensor, v: Tensor, i: Tensor, j: Tensor) -> list[Part]:
        """What queries at `i` meet of keys and values at `j`: a part for each kind of positions."""
        last, repair = int(i[-1]) + 1, self.repair
        if repair.group is not None:
            return self._in_groups(q, k, v, i, j[:last], *repair.group)
        if repair.window is not None:
            return self._in_window(q, k, v, i, j[:last], repair.window)
        every = slice(0, last)
        return [(q, k[:, :, every], v[:, :, every], self._bias(i, j[every]), every)]

    def _in_groups(
        self, q: Tensor, k: Tensor, v: Tensor, i: Tensor, j: Tensor, size: int, width: int
    ) -> list[Part]:
        """Keys nearer than the width at their own positions, those beyond at those of groups."""
        near, far = slice(max(0, int(i[0]) - width + 1), len(j)), slice(0, max(0, len(j) - width))
        parts = [(q, k[:, :, near], v[:, :, near], _seen(i, j[near], 0, width), near)]
        moved = self._moved(q, i // size + width - width // size - i)
        keys = self._moved(k[:, :, far], j[far] // size - j[far])
        parts.append((moved, keys, v[:, :, far], _seen(i, j[far], width, math.inf), far))
        return parts

    def _in_window(
        self, q: Tensor, k: Tensor, v: Tensor, i: Tensor, j: Tensor, width: int
    ) -> list[Part]:
        """Keys of the window, and first keys that it does not hold."""
        near, sinks = slice(max(0, int(i[0]) - width + 1), len(j)), self.repair.sinks
        bias = self._bias(i, j[near]).masked_fill(i[:, None] - j[near] >= width, -math.inf)
        parts = [(q, k[:, :, near], v[:, :, near], bias, near)]
        first = slice(0, min(sinks, len(j)))
        if self.repair.in_cache:
            q = self._moved(q, i.clamp(max=width + sinks - 1) - i)
        beyond = _seen(i, j[first], width, math.inf)
        parts.append((q, k[:, :, first], v[:, :, first], beyond, first))
        return parts

    def _bias(self, i: Tensor, j: Tensor) -> Tensor:
        """What a graft adds, and -inf where a key is not seen."""
        bias = _seen(i, j, 0, math.inf)
        if self.repair.graft is not None:
            rate, start = self.repair.graft
            bias = bias - rate * ((i[:, None] - j).clamp(min=start) / start).log()
        return bias

    def _moved(self, x: Tensor, by: Tensor) -> Tensor:
        """Vectors that are turned already, turned further by some positions."""
        assert self.turn is not None
        cos, sin = (y / self.rotary.attention_scaling for y in self.rotary(x.float(), by[None]))
        size = cos.shape[-1]
        part = x[..., :size].float()
        turned = self.turn(part, part, cos, sin)[0].to(x.dtype)
        return torch.cat([turned, x[..., size:]], -1)


def _seen(i: Tensor, j: Tensor, low: float, high: float) -> Tensor:
    """0 where a key lies at a distance from `low` on and below `high`, else -inf."""
    n = (i[:, None] - j)[None, None]
    return torch.zeros(n.shape, device=i.device).masked_fill(
        (n < max(0, low)) | (n >= high), -math.inf
    )
