"""The torch views of a positional encoding: tables, score functions, and models with it.

A bias with fixed parameters is the float64 table of its formula, rounded once to the type of the
model. A bias with learned parameters is the same formula evaluated on tensors, so that gradients
reach the parameters: one set a head, shared by all layers. `bias_tensor`, `score_mod` and
`block_mask` are the same views for the kernels of others.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy
import torch
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx

from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.encodings import Encoding, Parameter
from farfield.theory.functions.nodes import Lookup, n
from farfield.validation.compact.bias import bias_tensor as bias_tensor
from farfield.validation.compact.bias import block_mask as block_mask
from farfield.validation.compact.bias import score_mod as score_mod
from farfield.validation.compact.formula import evaluate as evaluate
from farfield.validation.compact.formula import learned_rows as learned_rows
from farfield.validation.harness.attention import ScoreMod
from farfield.validation.harness.configuration import LayerPlan, require_values
from farfield.validation.harness.mechanism import LayerMechanism, Turn
from farfield.validation.harness.model import Transformer
from farfield.validation.harness.presets import Preset

_EXACT = 1e-5  # how far tensors may be from the table, relatively above 1
_MARGIN = 0.01  # how far a learned parameter keeps from an open end of its domain, as in KERPLE


class FixedBias(nn.Module):
    """The bias of an encoding whose parameters have values: its float64 table."""

    def __init__(self, encoding: Encoding) -> None:
        super().__init__()
        self.encoding = encoding
        self.known = np.empty((encoding.num_heads, 0))

    @torch.compiler.disable
    def forward(self, length: int) -> Tensor:
        """`p(n)` for n = 0 .. length - 1 in float64, shape (heads or 1, length)."""
        if self.known.shape[1] < length:
            table = self.encoding.bias(np.arange(length))
            bad = np.isnan(table) | (table == np.inf)
            bad[:, 0] |= ~np.isfinite(table[:, 0])
            if bad.any():
                unreal = np.isnan(table)
                head, at = np.argwhere(unreal if unreal.any() else bad)[0]
                value = "no real number" if unreal.any() else table[head, at]
                raise InputError(
                    f"the bias {self.encoding.head(head + 1)} is {value} at distance {at}; a model "
                    "takes finite values, and -oo from distance 1"
                )
            self.known = table
        return torch.from_numpy(self.known[:, :length])


class LearnedBias(nn.Module):
    """The bias of an encoding with learned parameters: its formula on tensors.

    Each free parameter is a tensor of shape (heads,), drawn uniformly from the interval of its
    reference initialisation; `project` keeps it within its clamps and its domain.
    """

    def __init__(self, encoding: Encoding, heads: int) -> None:
        super().__init__()
        require_values(encoding)
        every = range(1, heads + 1)
        self.formulas = [encoding.head(h if encoding.num_heads > 1 else 1) for h in every]
        self.bounds = {p.name: _bounds(p) for p in encoding.free}
        self.values = nn.ParameterDict()
        for parameter in encoding.free:
            drawn = torch.empty(heads).uniform_(*parameter.init)
            if self.bounds[parameter.name][1] <= 0:
                drawn = -drawn
            self.values[parameter.name] = nn.Parameter(drawn, requires_grad=parameter.learned)
        self.symbols = {p.name: p.symbol for p in encoding.free}
        self.encoding, self.checked = encoding, 0
        self.project()

    @torch.no_grad()
    def project(self) -> None:
        """Move each learned value to the nearest one allowed; training does so at every step."""
        for name, bound in self.bounds.items():
            if self.values[name].requires_grad:
                self.values[name].clamp_(*bound)

    def forward(self, length: int) -> Tensor:
        """`p(n)` for n = 0 .. length - 1 in the type of the parameters, shape (heads, length).

        Raises InputError where tensors do not hold the formula at the values it begins with, or
        its gradient.
        """
        values = {self.symbols[name]: value for name, value in self.values.items()}
        if length > self.checked:
            self._check({s: v.detach().requires_grad_() for s, v in values.items()}, length)
            self.checked = length
        return learned_rows(self.formulas, values, length)

    @torch.compiler.disable
    @torch.enable_grad()
    def _check(self, values: dict[sympy.Symbol, Tensor], length: int) -> None:
        """Compare the rows with the table, and look for gradients that are not finite."""
        rows = learned_rows(self.formulas, values, length)
        numbers = {s: [sympy.Rational(x) for x in v.tolist()] for s, v in values.items()}
        biases = tuple(
            formula.xreplace({s: each[h] for s, each in numbers.items()})
            for h, formula in enumerate(self.formulas)
        )
        right = FixedBias(dataclasses.replace(self.encoding, biases=biases))(length)
        shown = rows.detach().to(right)
        off = ~((shown - right).abs() <= _EXACT * right.abs().clamp(min=1)) & (shown != right)

        def lost(at: Any) -> bool:
            slopes = torch.autograd.grad(
                torch.where(rows.isfinite(), rows, 0)[:, at].sum(),
                list(values.values()),
                retain_graph=True,
                allow_unused=True,
            )
            return not all(g is None or bool(g.isfinite().all()) for g in slopes)

        if off.any():
            head, at = off.nonzero()[0].tolist()
            what = f"at distance {at} is {right[head, at]:.7g}, by tensors {shown[head, at]:.7g}"
        elif lost(slice(None)):
            head, at = 0, next(at for at in range(length) if lost(slice(at, at + 1)))
            what = f"has a gradient at distance {at} that is not finite"
        else:
            return
        raise InputError(
            f"the bias {self.formulas[head]} {what}; accepted are its parameters as numbers, or a "
            "form in which no part overflows or cancels"
        )

    def function(self, layer: int) -> ScoreMod | None:
        """The formula as a score function of FlexAttention, whose gradients are one number a head
        and parameter. It is None where heads have unlike formulas, or one that looks values up or
        that float32 does not hold."""
        del layer  # all have the same
        return self._function

    @functools.cached_property
    def _function(self) -> ScoreMod | None:
        formula = self.formulas[0]
        if len(set(self.formulas)) > 1 or formula.has(Lookup):
            return None
        symbols = [self.symbols[name] for name in self.values]

        def plainly(distance: Tensor, *values: Tensor) -> Tensor:
            found = evaluate(formula, {**dict(zip(symbols, values, strict=True)), n: distance})
            return torch.as_tensor(found, dtype=distance.dtype)

        far, own = torch.cat([torch.arange(1024), 2 ** torch.arange(10, 21)]), self.values.values()
        single, double = (
            _row_and_slopes(plainly, far.to(kind), [v.detach().to(kind) for v in own])
            for kind in (torch.float32, torch.float64)
        )
        if not all(
            torch.allclose(a.double(), b, 1e-4, 1e-4) for a, b in zip(single, double, strict=True)
        ):
            return None
        traced = make_fx(plainly)(*(torch.tensor(1.0) for _ in range(1 + len(symbols))))
        values = list(self.values.values())

        def add(score: Tensor, batch: Tensor, head: Tensor, i: Tensor, j: Tensor) -> Tensor:
            distance = (i - j).clamp(min=0).float()
            return score + traced(distance, *(v[head] for v in values))

        return add


def _row_and_slopes(
    formula: Callable[..., Tensor], distance: Tensor, values: Sequence[Tensor]
) -> list[Tensor]:
    """A formula at each distance, and its derivative by each of its values."""
    wide = [
        v.to(distance)[:, None].expand(-1, len(distance)).clone().requires_grad_() for v in values
    ]
    row = formula(distance[None], *wide)
    return [row, *torch.autograd.grad(row.sum(), wide, allow_unused=True, materialize_grads=True)]


class LayeredBias(nn.Module):
    """The biases of layers that differ; some have none."""

    def __init__(self, encodings: Sequence[Encoding | None], heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.layers = nn.ModuleList(
            nn.Identity() if e is None else additive_bias(e, heads) for e in encodings
        )

    def forward(self, length: int) -> Tensor:
        """The rows of all layers, 0 where there is no bias, float64, shape (layers * heads,
        length)."""
        rows = [
            torch.zeros(1, length) if isinstance(layer, nn.Identity) else layer(length)
            for layer in self.layers
        ]
        device = next((r.device for r in rows if r.requires_grad), torch.device("cpu"))
        return torch.cat([r.to(device, torch.float64).expand(self.heads, -1) for r in rows])

    def function(self, layer: int) -> ScoreMod | None:
        """The score function of one layer, None where its bias is a table or it has none."""
        found: ScoreMod | None = getattr(self.layers[layer], "function", lambda _: None)(layer)
        return found

    @property
    def values(self) -> dict[str, Tensor]:
        """The learned parameters, by layer and name."""
        learned = (k for k in enumerate(self.layers, 1) if isinstance(k[1], LearnedBias))
        return {f"layer {at} {name}": v for at, b in learned for name, v in b.values.items()}

    def project(self) -> None:
        """Move each learned value to the nearest one allowed."""
        for layer in self.layers:
            getattr(layer, "project", lambda: None)()


def additive_bias(encoding: Encoding, heads: int) -> FixedBias | LearnedBias:
    """The module that gives the bias of an additive encoding in a model with this many heads."""
    return LearnedBias(encoding, heads) if encoding.free else FixedBias(encoding)


def _bounds(parameter: Parameter) -> tuple[float, float]:
    """The narrower of clamp and domain, kept off the open ends of the domain."""
    own, ends = parameter.interval, (-math.inf, math.inf)
    low, high = (
        end if c is None else float(c) for c, end in zip(parameter.clamp, ends, strict=True)
    )
    closed = [_MARGIN * (end not in own) for end in (own.inf, own.sup)]
    return max(low, float(own.inf) + closed[0]), min(high, float(own.sup) - closed[1])


# -- a model with an encoding ---------------------------------------------------------------------


def transformer(
    encoding: Encoding,
    preset: Preset,
    vocabulary: int = 256,
    layers: Sequence[LayerPlan] = (),
) -> Transformer:
    """A model with one encoding in all layers, or with layers of their own.

    Args:
        encoding: one of `configuration.TRAINABLE` mechanisms.
        preset: architecture; its `length` is all that a learned absolute encoding knows.
        vocabulary: number of different tokens.
        layers: of a hybrid, one a layer; the encoding then says nothing.

    >>> from farfield.theory.encodings import encoding
    >>> from farfield.validation.harness.presets import preset
    >>> transformer(encoding("type1"), preset("tiny")).bias_table(2)
    tensor([[ 0.0000, -1.3863]], dtype=torch.float64)
    """
    if layers:
        each, own = [x.mechanism for x in layers], [x.encoding for x in layers]
        biases = functools.partial(LayeredBias, own, preset.heads)
        return Transformer(preset, each, vocabulary, biases)
    kind = encoding.mechanism
    turn = Turn(decay=kind == "rotation_decay") if kind.startswith("rotation") else None
    same = [LayerMechanism(biased=kind == "bias", turn=turn)] * preset.layers
    bias = functools.partial(additive_bias, encoding, preset.heads) if kind == "bias" else None
    return Transformer(preset, same, vocabulary, bias, kind)


def initialised(
    encoding: Encoding,
    preset: Preset,
    seed: int,
    vocabulary: int = 256,
    layers: Sequence[LayerPlan] = (),
) -> Transformer:
    """A model with initial weights drawn from a seed, whatever torch's own random state is.

    The token embedding, the matrices and learned absolute vectors are normal with the preset's
    deviations, the last matrix of each residual branch smaller by sqrt(2 layers).
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return transformer(encoding, preset, vocabulary, layers)


def transformers_configuration(
    layers: Sequence[LayerPlan], preset: Preset, vocabulary: int = 256
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

    >>> from farfield.validation.harness.configuration import read_layers
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
        refuse(
            layer.encoding is not None or m.sinks or m.scale is not None or not whole,
            f"layer {at}: accepted are rotations of whole heads and layers without positions, "
            "with a window or without one; no bias, no sinks, no scale",
        )
    refuse(
        len(turns) > 1 or len(windows) > 1,
        "layers: accepted are one base and scaling, and one window, for all",
    )
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
