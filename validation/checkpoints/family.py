"""What a family of models is: which configurations are its own, and what they say of positions.

A family is one file of `families`. It reads `config.json` alone, without torch and without the
library that wrote it, and describes what the attention of each layer does with positions. Where its
models are measured too, an `Opening` says where the library keeps their layers, and how their
attention goes through a path of ours. To add a family, write its file and name it in
`families/__init__`; a test holds its description against the library's own configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from farfield.theory.encodings import Encoding, encoding, of_mechanism, surrogate_of
from farfield.validation.checkpoints.guarded import Config

if TYPE_CHECKING:
    from torch import Tensor, nn

THETA = 10_000
"""The base of a rotation's angles, where nothing is said."""

Attend = Callable[["Tensor", "Tensor", "Tensor", float], "Tensor"]
"""Called as `attend(query, key, value, scale)`, shapes (batch, heads, length, size)."""

Tables = Callable[[str], np.ndarray]
"""Reads a tensor of the folder by its name, in float64."""


@dataclass(frozen=True)
class ModelSize:
    """The size of a model (of the decoder, if there are two parts)."""

    layers: int
    heads: int
    head_size: int
    width: int
    vocabulary: int
    key_heads: int | None = None
    "Heads of keys and values, which groups of queries share; None for as many as of queries."


def shape(
    config: Config,
    *,
    layers: int,
    heads: int,
    width: int,
    vocabulary: int,
    head_size: int | None = None,
    key_heads: int | None = None,
) -> ModelSize:
    """The size of a model whose heads share its width, unless they have a size of their own.

    Raises:
        InputError: the heads do not divide the width, or the heads of keys not those of queries.
    """
    if key_heads is not None and heads % key_heads:
        raise config.wrong(
            f"{key_heads} heads of keys for {heads} of queries", "a number that divides the latter"
        )
    if head_size is None and width % heads:
        raise config.wrong(
            f"{heads} heads for a width of {width}", "a number of heads that divides the width"
        )
    return ModelSize(layers, heads, head_size or width // heads, width, vocabulary, key_heads)


@dataclass(frozen=True)
class Gains:
    """Queries and keys that a norm makes: the tensors that bound every logit of a layer.

    Args:
        query, key: names of their gains, as the folder holds them.
        scale: what logits are multiplied with.
        offset: added to a gain.
    """

    query: str
    key: str
    scale: float
    offset: float = 0.0

    @classmethod
    def of(cls, name: str, layer: int, scale: float, offset: float = 0.0) -> Gains:
        """Those of a layer, counted from 0, from a name with `layer` and `which`."""
        query, key = (name.format(layer=layer, which=k) for k in ("q", "k"))
        return cls(query, key, scale, offset)


@dataclass(frozen=True)
class Attention:
    """What the attention of one layer does with positions, and what becomes of its logits.

    Args:
        encoding: its positional encoding with its values, or one that is out of scope.
        turned: of a rotation, how many dimensions are rotated, and the base of their angles.
        window: keys that a query sees at most, its own included; None for all before it.
        factor: what a rescaled rotation multiplies the logits with.
        cap: of a soft cap `cap tanh(logit/cap)` of the whole logit; None without.
        gains: of the norms of queries and keys; None without.
        sink: the tensor of a learned constant in each denominator; None without.
    """

    encoding: Encoding
    turned: tuple[int, float] | None = None
    window: int | None = None
    factor: float = 1.0
    cap: float | None = None
    gains: Gains | None = None
    sink: str | None = None

    def surrogate(self) -> Encoding | None:
        """Of a rotation, the additive surrogate of the dimensions that are rotated, at its base
        and not rescaled."""
        if self.turned is None:
            return None
        plain = surrogate_of(self.encoding.name) or surrogate_of(of_mechanism("rotation").name)
        assert plain is not None
        return encoding(plain.name, d=self.turned[0], theta=self.turned[1])


@dataclass(frozen=True)
class Description:
    """What a configuration says of a model.

    Args:
        shape: its size.
        attention: of each layer.
        trained: the training length in tokens that it names; None if it does not.
        note: what it says beyond the formulas.
        longest: the row that its table of positions ends with; None where there is none.
    """

    shape: ModelSize
    attention: tuple[Attention, ...]
    trained: int | None = None
    note: str = ""
    longest: int | None = None


@dataclass(frozen=True)
class Projections:
    """How queries, keys and values of a layer come from its normalised input; tensors in float64.

    Args:
        gain, shift: of the norm, shape (width,).
        centred: whether the norm takes the mean away first (LayerNorm).
        query, key, value: weights, shape (heads, head size, width), and biases, (heads, head size).
        scale: what logits are multiplied with.
        clip: bound that every query, key and value entry is clamped to, or None.
        norm: the module that makes the normalised input.
    """

    gain: Tensor
    shift: Tensor
    centred: bool
    query: tuple[Tensor, Tensor]
    key: tuple[Tensor, Tensor]
    value: tuple[Tensor, Tensor]
    scale: float
    clip: float | None
    norm: nn.Module


@dataclass(frozen=True)
class Opening:
    """How a network of the library is measured.

    Args:
        body, layers, attention: where they are: in the network (names joined by dots), in its
            body, in a layer.
        forward: of the attention, called as `forward(module, attend, hidden, ...)`, where the
            library has no hook of its own; None takes the library's hook.
        projections: of a layer, called as `projections(layer, shape)`; None where they are of no
            use, since no bias is added.
        arguments: what the body must be called with besides, from the embedded tokens.
        finished: what becomes of the scores of the vocabulary at last, called with the network.
    """

    body: str
    layers: str
    attention: str
    forward: Callable[..., Any] | None = None
    projections: Callable[[Any, ModelSize], Projections] | None = None
    arguments: Callable[[Tensor], Mapping[str, Any]] = field(default=lambda embedded: {})
    finished: Callable[[Any, Tensor], Tensor] = field(default=lambda network, scores: scores)


@dataclass(frozen=True)
class ModelFamily:
    """One family of models.

    Args:
        kinds: the values of `model_type` that are its own.
        describe: a description from a configuration; the second argument reads a tensor of the
            folder by its name, for encodings that are tables in the weights.
        opening: how its models are measured; None where they can only be described.
    """

    kinds: tuple[str, ...]
    describe: Callable[[Config, Tables], Description]
    opening: Opening | None = None


def split(joined: Any, shaped: Callable[[Tensor], Any]) -> Iterator[tuple[Tensor, Tensor]]:
    """Weights and biases of queries, keys and values from one matrix for all three.

    Args:
        joined: the module that holds it.
        shaped: takes the rows apart, heads first; biases like weights.
    """
    weight = joined.weight.detach().double()
    bias = joined.bias
    bias = weight.new_zeros(len(weight)) if bias is None else bias.detach().double()
    yield from zip(shaped(weight), shaped(bias), strict=True)


def normalised(
    norm: Any, parts: Iterator[tuple[Tensor, Tensor]], scale: float, *, clip: float | None = None
) -> Projections:
    """The projections of a layer whose input a LayerNorm makes."""
    gain = norm.weight.detach().double()
    shift = gain.new_zeros(len(gain)) if norm.bias is None else norm.bias.detach().double()
    query, key, value = parts
    return Projections(gain, shift, True, query, key, value, scale, clip, norm)
