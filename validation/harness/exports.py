"""An encoding as the kernels of others take it: a tensor, a score function, a block mask.

Each is one more view of the formula: the float64 table of `Encoding.bias`, or the formula on
tensors where parameters are learned, rounded once to the type of the scores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import Encoding
from farfield.validation.harness.attention import ScoreMod, blocks
from farfield.validation.harness.corpus import BYTES
from farfield.validation.harness.layers import LayerPlan
from farfield.validation.harness.mechanism import Turn
from farfield.validation.harness.positional import FixedBias, learned_rows
from farfield.validation.harness.presets import Preset
from farfield.validation.harness.visibility import Visibility


def bias_tensor(
    encoding: Encoding,
    length: int,
    *,
    dtype: torch.dtype = torch.float32,
    device: Any = "cpu",
    values: Mapping[str, Tensor] | None = None,
) -> Tensor:
    """`p(n)` for n = 0 .. length - 1, shape (heads, length), -inf where the encoding masks.

    Args:
        encoding: an additive one.
        length: of the table, in tokens.
        dtype: of the result; float32 at least, since bfloat16 rounds distances above 256.
        device: of the result.
        values: a tensor of shape (heads,) for each parameter without a value; gradients reach it.

    Raises:
        InputError: there is no additive bias; a parameter has no value; a bad length or shape.

    >>> from farfield.theory.encodings import encoding
    >>> bias_tensor(encoding("-r*n"), 3, values={"r": torch.tensor([1.0, 0.5])})
    tensor([[-0.0000, -1.0000, -2.0000],
            [-0.0000, -0.5000, -1.0000]])
    """
    if not isinstance(length, int) or length < 1:
        raise InputError(f"length {length!r}: accepted is a whole number of tokens from 1")
    if dtype not in (torch.float32, torch.float64):
        raise InputError(f"dtype {dtype}: accepted are float32 and float64")
    encoding.head(1)  # refuses what has no bias
    given = dict(values or {})
    names = {p.name for p in encoding.free}
    if names != set(given):
        wanted = ", ".join(sorted(names)) or "none"
        raise InputError(f"{encoding.name} needs values of {wanted}; given: {', '.join(given)}")
    if not names:
        return FixedBias(encoding)(length).to(device, dtype)
    shapes = {tuple(v.shape) if isinstance(v, Tensor) else type(v).__name__ for v in given.values()}
    heads = next(iter(given.values())).shape[0] if all(len(s) == 1 for s in shapes) else 0
    if len(shapes) > 1 or heads < 1 or encoding.num_heads not in (1, heads):
        known = "" if encoding.num_heads == 1 else f" of {encoding.num_heads} heads"
        raise InputError(
            f"{encoding.name}: values of shapes {', '.join(map(str, shapes))}; accepted are "
            f"tensors of one shape (heads,){known}"
        )
    exact = {p.symbol: given[p.name].to(device, dtype) for p in encoding.free}
    formulas = [encoding.head(1 + h % encoding.num_heads) for h in range(heads)]
    return learned_rows(formulas, exact, length)


def score_mod(
    encoding: Encoding,
    length: int,
    *,
    dtype: torch.dtype = torch.float32,
    device: Any = "cpu",
    values: Mapping[str, Tensor] | None = None,
) -> ScoreMod:
    """The score function of FlexAttention that adds `p(query - key)`; causal where it is finite.

    The arguments are those of `bias_tensor`. A query before the key keeps its score: the block
    mask carries causality. If `values` require a gradient, build this function anew at every step:
    it holds the autograd graph of its table.

    >>> from farfield.theory.encodings import encoding
    >>> add = score_mod(encoding("alibi"), 8)
    >>> zero, head = torch.tensor(0.0), torch.tensor(0)
    >>> add(zero, head, head, torch.tensor(5), torch.tensor(3))
    tensor(-1.)
    """
    table = bias_tensor(encoding, length, dtype=dtype, device=device, values=values)
    finite = table > -math.inf
    filled = table.masked_fill(~finite, 0.0)
    rows = len(table)

    def add(score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        row = head if rows > 1 else head * 0
        distance = (query - key).clamp(min=0)
        return torch.where(finite[row, distance], score + filled[row, distance], -math.inf)

    return add


def block_mask(
    encoding: Encoding,
    length: int,
    *,
    widths: int | Sequence[int] | None = None,
    sinks: int = 0,
    heads: int | None = None,
    block: int = 128,
    device: Any = "cpu",
) -> BlockMask:
    """FlexAttention's block mask: causal, within the support of the bias, within given windows.

    Args:
        encoding: an additive one, with its `bca` if it has one.
        length: of the text, in tokens.
        widths: keys to keep, the query's own included: one number, or one a head, as the widths
            of a `certified_window` and of its heads.
        sinks: the first keys, which every query sees as well, within the support; at most as many
            as the least width.
        heads: of the model, where the encoding has fewer and widths are given for each.
        block: side of the blocks that a kernel may skip.
        device: of the mask.

    Returns:
        A `torch.nn.attention.flex_attention.BlockMask`.

    Raises:
        InputError: no additive bias, a bad length or width.

    >>> from farfield.theory.encodings import encoding
    >>> block_mask(encoding("alibi"), 256, widths=100).to_dense()[0, 0]
    tensor([[1, 0],
            [1, 1]], dtype=torch.int32)
    """
    each = [widths] if isinstance(widths, int) else list(widths or ())
    for width in each:
        if not isinstance(width, int | np.integer) or width < 1:
            raise InputError(f"width {width!r}: accepted is a whole number of tokens from 1")
    if not isinstance(sinks, int) or not 0 <= sinks <= min(each, default=0):
        raise InputError(
            f"sinks {sinks!r} with widths {each[:4]}: accepted are at most as many as the least of "
            "them"
        )
    own = max(len(each), encoding.num_heads, heads or 1)
    for count, what in ((len(each), "widths"), (encoding.num_heads, "heads of the encoding")):
        if count not in (0, 1, own):
            raise InputError(f"{count} {what}, {own} heads: accepted are 1 and {own}")
    seen = torch.ones(1, length) if encoding.free else bias_tensor(encoding, length) > -math.inf
    reach = (torch.arange(1, length + 1) * seen).amax(-1).int().tolist()
    return blocks(
        Visibility(bca=encoding.bca),
        length,
        reach=() if min(reach) == length else tuple(reach),
        widths=tuple(map(int, each)),
        sinks=sinks,
        device=device,
        block=block,
    )


def transformers_configuration(
    layers: Sequence[LayerPlan], preset: Preset, vocabulary: int = BYTES
) -> dict[str, Any]:
    """A hybrid as a configuration of transformers: the content of `config.json` for SmolLM3.

    This class turns some layers and leaves others without positions, each in a sliding window or
    in none. Its layers have other norms and another MLP than those of this harness: the
    configuration has the positions and the sizes, for a training of its own.

    Args:
        layers: one a layer, as `read_layers` gives them.
        preset: width, heads and training length.
        vocabulary: different tokens.

    Raises:
        InputError: the class has no such layer; the line names it.

    >>> from farfield.validation.harness.layers import read_layers
    >>> from farfield.validation.harness.presets import preset
    >>> local, free = {"mechanism": "rope", "window": 16, "base": 500.0}, "0"
    >>> found = transformers_configuration(read_layers([local, free], 4), preset("recall"))
    >>> found["no_rope_layers"], found["layer_types"], found["sliding_window"]
    ([1, 0], ['sliding_attention', 'full_attention'], 16)
    """
    each = [layer.mechanism for layer in layers]
    turns = {turn for m in each if (turn := m.turn) is not None}
    windows = {m.window for m in each} - {None}
    for at, (layer, m) in enumerate(zip(layers, each, strict=True), 1):
        whole = m.turn is None or (m.turn.share == 1 and not m.turn.decay)
        if layer.encoding is not None or m.sinks or m.scale is not None or not whole:
            raise InputError(
                f"layer {at}: accepted are rotations of whole heads and layers without positions, "
                "with a window or without one; no bias, no sinks, no scale"
            )
    if len(turns) > 1 or len(windows) > 1:
        raise InputError("layers: accepted are one base and scaling, and one window, for all")
    turn, (window,) = next(iter(turns), Turn()), windows or (None,)
    rotation: dict[str, Any] = {"rope_theta": turn.base, "rope_type": "default"}
    if turn.scaling != 1:
        rotation |= {"rope_type": "linear", "factor": turn.scaling}
    return {
        "model_type": "smollm3",
        "architectures": ["SmolLM3ForCausalLM"],
        "num_hidden_layers": len(layers),
        "hidden_size": preset.width,
        "intermediate_size": 4 * preset.width,
        "num_attention_heads": preset.heads,
        "num_key_value_heads": preset.heads,
        "vocab_size": vocabulary,
        "max_position_embeddings": preset.length,
        "rope_parameters": rotation,
        "no_rope_layers": [int(m.turn is not None) for m in each],
        "layer_types": [
            "full_attention" if m.window is None else "sliding_attention" for m in each
        ],
        "use_sliding_window": window is not None,
        "sliding_window": window,
        **dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id")),
        "tie_word_embeddings": preset.embedding_spread is None,
    }
