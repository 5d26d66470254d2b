"""Generation with a cache of keys and values, whole or truncated to the most recent tokens.

A cache of `w` tokens is a sliding window: every layer of every token sees the `w` most recent keys,
its own included, at a cost of `w` a token [C, App. B]. Keys are cached before their rotation and
rotated at their distance from the query, so rotary angles, xPos scales and biases are those of the
relative positions however long the text becomes. Absolute encodings count on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from farfield.theory.answers.answer import InputError
from farfield.validation.models.model import Transformer
from farfield.validation.models.positional import rows_of


@dataclass(frozen=True)
class Cache:
    """What a model remembers of a text.

    Args:
        tokens: how many the text has.
        keys, values: of each layer, shape (batch, heads, kept, head size); keys not rotated.
    """

    tokens: int = 0
    keys: tuple[Tensor, ...] = ()
    values: tuple[Tensor, ...] = ()


@torch.no_grad()
def extend(
    model: Transformer, tokens: Tensor, cache: Cache | None = None, width: int | None = None
) -> tuple[Tensor, Cache]:
    """Scores after each of some new tokens, given what is cached of those before.

    Args:
        model: the model.
        tokens: int64, shape (batch, new), at least one.
        cache: of the tokens before; None at the beginning.
        width: keys that a query sees, its own included; None for all.

    Returns:
        Scores, shape (batch, new, vocabulary), and the cache with the new tokens.

    Raises:
        InputError: a position beyond those that a learned absolute encoding knows.
    """
    cache = cache or Cache()
    x, new = model.embed(tokens, cache.tokens), tokens.shape[1]
    keys: list[Tensor] = []
    values: list[Tensor] = []
    mask: Tensor | None = None

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        nonlocal mask
        layer = len(keys)
        if cache.tokens:
            key = torch.cat([cache.keys[layer], key], -2)
            value = torch.cat([cache.values[layer], value], -2)
        kept = key.shape[-2]
        keys.append(key if width is None else key[:, :, kept - min(kept, width - 1) :])
        values.append(value if width is None else value[:, :, kept - min(kept, width - 1) :])
        if mask is None:
            mask = _mask(model, new, kept, width).to(query)
        own = rows_of(mask, layer, query.shape[1])[None]
        if model.rotation is not None:
            query, key = model.rotation(query, key)
        return scaled_dot_product_attention(query, key, value, attn_mask=own)

    for layer in model.layers:
        x = layer(x, attend)
    return model.logits(model.norm(x)), Cache(cache.tokens + new, tuple(keys), tuple(values))


def _mask(model: Transformer, new: int, kept: int, width: int | None) -> Tensor:
    """The bias between the last `new` of `kept` tokens and all of them, -inf where unseen."""
    position = torch.arange(kept)
    distance = position[kept - new :, None] - position
    seen = distance >= 0 if width is None else (distance >= 0) & (distance < width)
    table = model.bias_table(kept)
    table = torch.zeros(1, kept, dtype=torch.float64) if table is None else table
    return table[:, distance.clamp(min=0)].masked_fill(~seen, -math.inf)


def generate(
    model: Transformer,
    prompt: np.ndarray,
    count: int,
    *,
    width: int | None = None,
    temperature: float = 0.0,
    seed: int = 0,
) -> np.ndarray:
    """Continue a text token by token.

    Args:
        model: the model.
        prompt: tokens, one-dimensional, at least one.
        count: tokens to generate.
        width: of the cache in tokens; None keeps everything.
        temperature: 0 takes the likeliest token; otherwise scores are divided by it and drawn from.
        seed: of the draws.

    Returns:
        The new tokens, int64, shape (count,).

    Raises:
        InputError: an empty prompt, a width below 1, a negative temperature, or a text longer than
            a learned absolute encoding knows.

    >>> from farfield.theory.encodings import encoding
    >>> from farfield.validation.settings.presets import preset
    >>> from farfield.validation.models.model import initialised
    >>> model = initialised(encoding("alibi"), preset("tiny"), 0)
    >>> len(generate(model, np.array([72, 105]), 5, width=4))
    5
    """
    if len(prompt) == 0 or (width is not None and width < 1) or temperature < 0:
        raise InputError(
            f"prompt of {len(prompt)} tokens, width {width}, temperature {temperature}; accepted: "
            "a prompt of at least one token, a width from 1, a temperature from 0"
        )
    random = torch.Generator().manual_seed(seed)
    given = torch.from_numpy(np.asarray(prompt, dtype=np.int64))[None].to(model.device)
    found: list[int] = []
    cache: Cache | None = None
    while len(found) < count:
        scores, cache = extend(model, given, cache, width)
        last = scores[0, -1].double().cpu()
        if temperature == 0:
            token = int(last.argmax())
        else:
            token = int(torch.multinomial((last / temperature).softmax(-1), 1, generator=random))
        found.append(token)
        given = torch.tensor([[token]], device=model.device)
    return np.array(found, dtype=np.int64)
