"""The torch views of a positional encoding: the bias of a model, and the model with it.

A bias with fixed parameters is the float64 table of its formula, rounded once to the type of the
model. A bias with learned parameters is the same formula evaluated on tensors, so that gradients
reach the parameters: one set a head, shared by all layers.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import sympy
import torch
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import Encoding, Parameter
from farfield.theory.evaluation.fold import value
from farfield.theory.evaluation.vectorised import Arrays, Lacking
from farfield.theory.functions.nodes import Lookup, n
from farfield.validation.harness.attention import ScoreMod
from farfield.validation.harness.corpus import BYTES
from farfield.validation.harness.layers import LayerPlan
from farfield.validation.harness.mechanism import LayerMechanism, Turn
from farfield.validation.harness.model import Transformer
from farfield.validation.harness.presets import Preset
from farfield.validation.harness.trainable import require_values

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
        self.project()

    @torch.no_grad()
    def project(self) -> None:
        """Move each learned value to the nearest one allowed; training does so at every step."""
        for name, bound in self.bounds.items():
            if self.values[name].requires_grad:
                self.values[name].clamp_(*bound)

    def forward(self, length: int) -> Tensor:
        """`p(n)` for n = 0 .. length - 1 in the type of the parameters, shape (heads, length)."""
        values = {self.symbols[name]: value for name, value in self.values.items()}
        return learned_rows(self.formulas, values, length)

    def function(self, layer: int) -> ScoreMod | None:
        """The formula as a score function of FlexAttention, whose gradients are one number a head
        and parameter. It is None where heads have unlike formulas, or one that looks values up."""
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

        traced = make_fx(plainly)(*(torch.tensor(1.0) for _ in range(1 + len(symbols))))
        values = list(self.values.values())

        def add(score: Tensor, batch: Tensor, head: Tensor, i: Tensor, j: Tensor) -> Tensor:
            distance = (i - j).clamp(min=0).float()
            return score + traced(distance, *(v[head] for v in values))

        return add


class LayeredBias(nn.Module):
    """The biases of layers that differ; some have none."""

    def __init__(self, encodings: Sequence[Encoding | None], heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.layers = nn.ModuleList(
            nn.Identity() if e is None else additive_bias(e, heads) for e in encodings
        )

    def forward(self, length: int) -> Tensor:
        """The rows of all layers, 0 where there is no bias, shape (layers * heads, length)."""
        rows = [
            torch.zeros(1, length) if isinstance(layer, nn.Identity) else layer(length)
            for layer in self.layers
        ]
        device = next((r.device for r in rows if r.requires_grad), torch.device("cpu"))
        exact = any(r.dtype == torch.float64 for r in rows)
        kind = torch.float64 if exact else torch.float32
        return torch.cat([r.to(device, kind).expand(self.heads, -1) for r in rows])

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
    own = parameter.interval
    lows = [float(own.inf) + (0 if own.inf in own else _MARGIN)]
    highs = [float(own.sup) - (0 if own.sup in own else _MARGIN)]
    if parameter.clamp[0] is not None:
        lows.append(float(parameter.clamp[0]))
    if parameter.clamp[1] is not None:
        highs.append(float(parameter.clamp[1]))
    return max(lows), min(highs)


# -- a SymPy formula on tensors -------------------------------------------------------------------


class _Torch:
    """The names of the array API standard in torch, and its special functions."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def minimum(self, a: Any, b: Any) -> Tensor:
        return torch.minimum(*_tensors(a, b))

    def maximum(self, a: Any, b: Any) -> Tensor:
        return torch.maximum(*_tensors(a, b))

    def pow(self, base: Any, exponent: Any) -> Any:
        return base**exponent

    def special(self, name: str) -> Callable[..., Any]:
        found = getattr(torch.special, name, None)
        if found is None:
            raise Lacking
        return found


def _tensors(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    like = a if isinstance(a, Tensor) else b
    return torch.as_tensor(a, dtype=like.dtype), torch.as_tensor(b, dtype=like.dtype)


class Tensors(Arrays):
    """Tensors, differentiable in the values of the symbols."""

    def constant(self, e: sympy.Expr) -> float:
        return float(e)

    def look_up(self, at: Any, *entries: Any) -> Any:
        like = next(e for e in entries if isinstance(e, Tensor))
        columns = [e if isinstance(e, Tensor) else like.new_full((1, 1), e) for e in entries]
        table = torch.cat(torch.broadcast_tensors(*columns), -1)
        return table[..., at[0].long().clamp(max=len(entries) - 1)]

    def lacking(self, name: str, why: str) -> Exception:
        return InputError(
            f"{name} has no differentiable form here; accepted with learned parameters: Piecewise, "
            "Min, Max, and functions that torch knows, such as exp, log and erf"
        )


_TENSORS = Tensors(_Torch())


def evaluate(expression: Any, values: Mapping[sympy.Symbol, Tensor]) -> Any:
    """A SymPy expression on tensors, differentiable in them.

    The tensors of the symbols broadcast. A `Lookup` needs its distance to have one row and its
    values one column. The result is a float where no symbol occurs.

    Raises:
        InputError: a function has no differentiable form here.

    >>> evaluate(-2 * sympy.log(1 + n), {n: torch.tensor([0.0, 1.0])})
    tensor([-0.0000, -1.3863])
    """
    return value(expression, _TENSORS, dict(values))


def learned_rows(
    formulas: Sequence[Any], values: Mapping[sympy.Symbol, Tensor], length: int
) -> Tensor:
    """`p(n)` for n = 0 .. length - 1, a formula a head, shape (heads, length).

    Gradients reach the values, a tensor of shape (heads,) for each symbol.
    """
    like = next(iter(values.values()))
    distance = torch.arange(length, dtype=like.dtype, device=like.device)
    alike = len(set(formulas)) == 1  # one pass serves all heads
    rows = []
    for heads in [slice(None)] if alike else [slice(h, h + 1) for h in range(len(formulas))]:
        at = {symbol: value[heads, None] for symbol, value in values.items()}
        found = evaluate(formulas[heads][0], {**at, n: distance[None]})
        row = torch.as_tensor(found, dtype=distance.dtype, device=distance.device)
        rows.append((row if row.ndim else row.reshape(1, 1)).expand(-1, length))
    return torch.cat(rows).expand(len(formulas), length)


# -- a model with an encoding ---------------------------------------------------------------------


def transformer(
    encoding: Encoding,
    preset: Preset,
    vocabulary: int = BYTES,
    layers: Sequence[LayerPlan] = (),
) -> Transformer:
    """A model with one encoding in all layers, or with layers of their own.

    Args:
        encoding: one of `trainable.TRAINABLE` mechanisms.
        preset: architecture; its `length` is all that a learned absolute encoding knows.
        vocabulary: number of different tokens.
        layers: of a hybrid, one a layer; the encoding then says nothing.

    >>> from farfield.theory.encodings import encoding
    >>> from farfield.validation.harness.presets import preset
    >>> transformer(encoding("type1"), preset("tiny")).bias_table(2)
    tensor([[ 0.0000, -1.3863]], dtype=torch.float64)
    """
    if layers:
        kept = [_scaled(layer.mechanism, preset.length) for layer in layers]
        own = [layer.encoding for layer in layers]
        return Transformer(
            preset, kept, vocabulary, functools.partial(LayeredBias, own, preset.heads)
        )
    kind = encoding.mechanism
    turn = Turn(decay=kind == "rotation_decay") if kind.startswith("rotation") else None
    same = [LayerMechanism(biased=kind == "bias", turn=turn)] * preset.layers
    bias = functools.partial(additive_bias, encoding, preset.heads) if kind == "bias" else None
    return Transformer(preset, same, vocabulary, bias, kind)


def _scaled(mechanism: LayerMechanism, length: int) -> LayerMechanism:
    """With the training length in its scale, where that has none."""
    if mechanism.scale is None or mechanism.scale.length is not None:
        return mechanism
    scale = dataclasses.replace(mechanism.scale, length=length)
    return dataclasses.replace(mechanism, scale=scale)


def initialised(
    encoding: Encoding,
    preset: Preset,
    seed: int,
    vocabulary: int = BYTES,
    layers: Sequence[LayerPlan] = (),
) -> Transformer:
    """A model with initial weights drawn from a seed, whatever torch's own random state is.

    The token embedding, the matrices and learned absolute vectors are normal with the preset's
    deviations, the last matrix of each residual branch smaller by sqrt(2 layers).
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return transformer(encoding, preset, vocabulary, layers)
