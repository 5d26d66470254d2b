"""Biases of a model: fixed tables, learned formulas on torch tensors, modules; block masks of them.

A bias with fixed parameters is the float64 table of its formula, rounded once. A bias with learned
parameters is the same formula evaluated on tensors, so that gradients reach the parameters. Layers
that are alike share one bias, as in KERPLE.

A module of your own, `FILE.py:Class`, is made as `Class(heads, size)`, `size` that of a head, one a
layer. It is called as `module(q, k, i, j)` and returns the term to add to the logits; or it has a
method `factor(i)` that multiplies them (`farfield.validation.harness.model.Transformer`). A module
of two arguments is called with lengths, `module(keys, keys)`, or with positions, `module(i, j)`.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sympy
import torch
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention.flex_attention import BlockMask

from farfield.numerics.masks import Mask
from farfield.theory.answers.errors import InputError, refuse
from farfield.theory.encodings import Encoding, Parameter
from farfield.theory.encodings.python_files import built, load
from farfield.theory.encodings.sampling import ways_of_two
from farfield.theory.evaluation.vectorised import Arrays, Lacking, require_memory
from farfield.theory.formula.bounded_nodes import valued
from farfield.theory.functions.nodes import n
from farfield.theory.functions.record import value
from farfield.validation.harness import attention
from farfield.validation.harness.attention import ScoreMod, bias_of_pairs, table_score
from farfield.validation.harness.model import DistanceBias, adds, reach_of
from farfield.validation.harness.own import Own, whose
from farfield.validation.harness.settings import ModelSettings

EXACT = 1e-5  # how far tensors may be from the table, relatively above 1
MARGIN = 0.01  # how far a learned parameter keeps from an open end of its domain, as in KERPLE
SMOOTH = (sympy.Add, sympy.Mul, sympy.Pow, sympy.log, sympy.exp)


# -- a formula on tensors -------------------------------------------------------------------------


class _Torch:
    """The names of the array API standard in torch, and its special functions."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def minimum(self, a: Any, b: Any) -> Tensor:
        return torch.minimum(*_tensors(a, b))

    def maximum(self, a: Any, b: Any) -> Tensor:
        return torch.maximum(*_tensors(a, b))

    def pow(self, base: Any, exponent: Any) -> Any:
        """A power, without a slope at base 0, where one may be infinite."""
        if not isinstance(base, Tensor):
            return base**exponent
        zero, plain = base == 0, exponent.detach() if isinstance(exponent, Tensor) else exponent
        return torch.where(zero, base.detach() ** plain, torch.where(zero, 1.0, base) ** exponent)

    def log(self, x: Any) -> Tensor:
        """A logarithm without a slope at 0, where it is -inf."""
        return torch.where(x == 0, -math.inf, torch.where(x == 0, 1.0, x).log())

    def special(self, name: str) -> Callable[..., Any]:
        function = getattr(torch.special, name, None)
        if function is None:
            raise Lacking
        return function


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
        table = torch.cat(torch.broadcast_tensors(*columns), 1)
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
    """`p(n)` for n = 0 .. length - 1, a formula a head, shape (heads, length), computed in float64.

    Gradients reach the values, a tensor of shape (heads,) for each symbol.
    """
    like = next(iter(values.values()))
    exact = {symbol: value.double() for symbol, value in values.items()}
    distance = torch.arange(length, dtype=torch.float64, device=like.device)
    alike = len(set(formulas)) == 1  # one pass serves all heads
    rows = []
    for heads in [slice(None)] if alike else [slice(h, h + 1) for h in range(len(formulas))]:
        at = {symbol: value[heads, None] for symbol, value in exact.items()}
        bias = evaluate(formulas[heads][0], {**at, n: distance[None]})
        row = torch.as_tensor(bias, dtype=distance.dtype, device=distance.device)
        rows.append((row if row.ndim else row.reshape(1, 1)).expand(-1, length))
    return torch.cat(rows).expand(len(formulas), length).to(like.dtype)


# -- modules --------------------------------------------------------------------------------------


class FixedBias(DistanceBias):
    """The bias of an encoding whose parameters have values: its float64 table.

    >>> from farfield.theory.encodings import encoding
    >>> FixedBias(encoding("-n/4")).table(3)
    tensor([[ 0.0000, -0.2500, -0.5000]], dtype=torch.float64)
    """

    def __init__(self, encoding: Encoding) -> None:
        super().__init__()
        self.encoding = encoding
        self.longest = np.empty((encoding.num_heads, 0))
        self.functions: dict[torch.device, ScoreMod | None] = {}

    def table(self, length: int) -> Tensor:
        """`p(n)` in float64, shape (heads or 1, length).

        Raises:
            InputError: a value that no attention can take, with its head and distance.
        """
        if self.longest.shape[1] < length:
            require_memory(self.encoding.num_heads * length)
            table = self.encoding.bias(np.arange(length))
            bad = np.isnan(table) | (table == np.inf)
            bad[:, 0] |= ~np.isfinite(table[:, 0])
            if bad.any():
                unreal = np.isnan(table)
                head, at = np.argwhere(unreal if unreal.any() else bad)[0]
                what = "has no value that 20,480 bits tell"
                raise InputError(
                    f"the bias {self.encoding.head(head + 1)} "
                    f"{what if unreal.any() else f'is {table[head, at]}'} at distance {at}; a "
                    "model takes finite values, and -oo from distance 1"
                )
            self.longest = table
        return torch.from_numpy(self.longest[:, :length])

    def score_mod(self, device: torch.device) -> ScoreMod | None:
        """The formula as a score function, where heads differ in numbers alone and it is smooth.

        It looks nothing up: a table costs a kernel more shared memory than a formula. It is the
        same function at each call, so that a compiled model is compiled once.
        """
        if device not in self.functions:
            self.functions[device] = self._by_formula(device)
        return self.functions[device]

    def _by_formula(self, device: torch.device) -> ScoreMod | None:
        numbers: dict[sympy.Symbol, list[float]] = {}
        formula = _common(self.encoding.biases, numbers)
        if formula is None or not all(
            isinstance(part, SMOOTH) or not part.args for part in sympy.preorder_traversal(formula)
        ):
            return None

        def plainly(distance: Tensor, *values: Tensor) -> Tensor:
            result = evaluate(formula, {**dict(zip(numbers, values, strict=True)), n: distance})
            return torch.as_tensor(result, dtype=distance.dtype)

        far = torch.cat([torch.arange(1024), 2 ** torch.arange(10, 21)])
        single, double = (
            plainly(
                far[None].to(kind),
                *(torch.tensor(v, dtype=kind)[:, None] for v in numbers.values()),
            )
            for kind in (torch.float32, torch.float64)
        )
        if not torch.allclose(single.double(), double, 1e-4, 1e-4):
            return None  # float32 does not hold it
        traced = make_fx(plainly)(*(torch.tensor(1.0) for _ in range(1 + len(numbers))))
        values = [torch.tensor(each, device=device) for each in numbers.values()]

        def add(score: Tensor, batch: Tensor, head: Tensor, i: Tensor, j: Tensor) -> Tensor:
            distance = (i - j).clamp(min=0).float()
            return score + traced(distance, *(v[head] for v in values))

        return add


def _common(formulas: Sequence[Any], numbers: dict[sympy.Symbol, list[float]]) -> Any:
    """One formula for all heads, a new symbol where they have different numbers; None for none."""
    first = formulas[0]
    if all(formula == first for formula in formulas):
        return first
    if all(formula.is_number for formula in formulas):
        symbol = sympy.Dummy(f"head{len(numbers)}", real=True)
        numbers[symbol] = [float(formula) for formula in formulas]
        return symbol
    if len({(formula.func, len(formula.args)) for formula in formulas}) > 1:
        return None
    parts = [_common(each, numbers) for each in zip(*(f.args for f in formulas), strict=True)]
    return None if None in parts else first.func(*parts)


class LearnedBias(DistanceBias):
    """The bias of an encoding with learned parameters: its formula on tensors.

    Each free parameter is a tensor of shape (heads,), drawn uniformly from the interval of its
    reference initialisation; `project` keeps it within its clamps and its domain.
    """

    def __init__(self, encoding: Encoding, heads: int) -> None:
        super().__init__()
        every = range(1, heads + 1)
        self.formulas = [encoding.head(h if encoding.num_heads > 1 else 1) for h in every]
        self.bounds = {p.name: _bounds(p) for p in encoding.free}
        self.symbols = {p.name: p.symbol for p in encoding.free}
        self.values = nn.ParameterDict()
        for parameter in encoding.free:
            drawn = torch.empty(heads).uniform_(*parameter.init)
            if self.bounds[parameter.name][1] <= 0:
                drawn = -drawn
            self.values[parameter.name] = nn.Parameter(drawn, requires_grad=parameter.learned)
        self.encoding, self.checked = encoding, 0
        self.project()

    def table(self, length: int) -> Tensor:
        """`p(n)` in the type of the parameters, shape (heads, length).

        Raises:
            InputError: tensors do not hold the formula at the values it begins with, or its
                gradient.
        """
        values = {self.symbols[name]: value for name, value in self.values.items()}
        if length > self.checked:
            self._check({s: v.detach().requires_grad_() for s, v in values.items()}, length)
            self.checked = length
        return learned_rows(self.formulas, values, length)

    @property
    def fixed(self) -> Encoding:
        """The encoding with the values that the parameters have now, exactly, one a head."""
        values = {self.symbols[name]: value.tolist() for name, value in self.values.items()}
        biases = tuple(
            valued(formula, {s: sympy.Rational(each[h]) for s, each in values.items()})
            for h, formula in enumerate(self.formulas)
        )
        return dataclasses.replace(self.encoding, biases=biases, source="values learned in a run")

    @torch.enable_grad()
    def _check(self, values: dict[sympy.Symbol, Tensor], length: int) -> None:
        """Compare the rows with the table, and look for gradients that are not finite."""
        rows = learned_rows(self.formulas, values, length)
        right = FixedBias(self.fixed).table(length)
        shown = rows.detach().to(right)
        off = ~((shown - right).abs() <= EXACT * right.abs().clamp(min=1)) & (shown != right)

        def lost(count: int) -> bool:
            first = learned_rows(self.formulas, values, count)
            total = torch.where(first.isfinite(), first, 0).sum()
            slopes = torch.autograd.grad(total, list(values.values()), allow_unused=True)
            return not all(g is None or bool(g.isfinite().all()) for g in slopes)

        if off.any():
            head, at = off.nonzero()[0].tolist()
            what = f"at distance {at} is {right[head, at]:.7g}, by tensors {shown[head, at]:.7g}"
        elif lost(length):
            head, at = 0, bisect.bisect_left(range(1, length), True, key=lost)
            what = f"has a gradient at distance {at} that is not finite"
        else:
            return
        raise InputError(
            f"the bias {self.formulas[head]} {what}; accepted are its parameters as numbers, or a "
            "form in which no part overflows or cancels"
        )

    @torch.no_grad()
    def project(self) -> None:
        for name, bound in self.bounds.items():
            if self.values[name].requires_grad:
                self.values[name].clamp_(*bound)


def _bounds(parameter: Parameter) -> tuple[float, float]:
    """The narrower of clamp and domain, kept off the open ends of the domain."""
    domain, ends = parameter.interval, (-math.inf, math.inf)
    low, high = (
        end if c is None else float(c) for c, end in zip(parameter.clamp, ends, strict=True)
    )
    closed = [MARGIN * (end not in domain) for end in (domain.inf, domain.sup)]
    return max(low, float(domain.inf) + closed[0]), min(high, float(domain.sup) - closed[1])


def own_module(source: Own, heads: int, size: int) -> nn.Module:
    """The module of a user's class, for a layer with this many heads of this size.

    It is called once on a few tokens, so that what it cannot do is said before the first step.

    Raises:
        InputError: the file does not run, has no such module, or the module raises or gives what is
            no bias; with the line of the user's file.
    """
    where = f"{Path(source.path).name}:{source.name}"
    try:
        made = getattr(load(source.path), source.name)
        made = built(made, heads, size) if isinstance(made, type) else made(heads, size)
        refuse(
            not isinstance(made, nn.Module),
            f"{where} is no torch module; accepted is a subclass of nn.Module",
        )
        made, found = _as_called(made, heads, size)
    except InputError:
        raise
    except (Exception, SystemExit) as error:  # of the user's code, whatever it is
        said = whose(error, [source]) or f"{where}: {type(error).__name__}: {error}"
        raise InputError(
            f"{said}; accepted is a torch module that is made as Class(heads, size) and called as "
            "module(q, k, i, j), module(q_len, k_len) or module(i, j), or has a method factor(i)"
        ) from None
    for given, shape in found:
        refuse(
            not isinstance(given, Tensor),
            f"{where} gives {type(given).__name__}; accepted: a tensor that fits {shape}",
        )
        fits = _broadcasts(given, shape)
        refuse(
            not fits or bool(given.isnan().any()),
            f"{where} gives {'NaN' if fits else f'shape {tuple(given.shape)}'} for {heads} heads "
            f"and a few tokens; accepted are numbers whose shape broadcasts to {shape}",
        )
    return made


Given = list[tuple[Tensor, tuple[int, ...]]]


class OfTwo(nn.Module):
    """A module of two arguments, lengths or positions, called with queries and keys.

    The way is `lengths`, `positions` (shapes (queries, 1) and (1, keys)) or `rows` (shapes
    (queries,) and (keys,)).
    """

    def __init__(self, own: nn.Module, way: str) -> None:
        super().__init__()
        self.own, self.way = own, way
        if hasattr(own, "factor"):
            self.factor = own.factor

    def forward(self, q: Tensor, k: Tensor, i: Tensor, j: Tensor) -> Tensor:
        """The bias of queries at `i` and keys at `j`."""
        if self.way == "lengths":
            whole: Tensor = self.own(k.shape[2], k.shape[2])
            return whole[..., i, :]
        pairs: Tensor = self.own(i[:, None], j[None]) if self.way == "positions" else self.own(i, j)
        return pairs


def _as_called(module: nn.Module, heads: int, size: int) -> tuple[nn.Module, Given]:
    """The module in the first way of calling it that gives a bias, and its bias of a few tokens."""
    ways = ways_of_two(module) if adds(module) else ()
    if not ways:
        return module, _tried(module, heads, size)
    for way in ways:
        with contextlib.suppress(Exception):  # it is meant otherwise
            found = _tried(OfTwo(module, way), heads, size)
            if all(_broadcasts(*each) for each in found):
                return OfTwo(module, way), found
    return OfTwo(module, "rows"), _tried(OfTwo(module, "rows"), heads, size)


def _broadcasts(given: Tensor, shape: tuple[int, ...]) -> bool:
    return given.ndim <= len(shape) and all(
        a in (1, b) for a, b in zip(given.shape[::-1], shape[::-1], strict=False)
    )


@torch.no_grad()
def _tried(module: nn.Module, heads: int, size: int) -> Given:
    """What it gives for a few tokens, and the shape that this is to broadcast to."""
    found = Given()
    with torch.random.fork_rng(devices=[]):
        count = 4 + (heads == 4)  # a dimension of tokens is none of heads
        at, content = torch.arange(count), torch.ones(1, heads, count, size)
        if adds(module):
            found.append((module(content, content, at, at), (1, heads, count, count)))
        if factor := getattr(module, "factor", None):
            found.append((factor(at), (heads, count)))
    return found


def table_of(bias: nn.Module, q: Tensor, k: Tensor, i: Tensor) -> Tensor | None:
    """`p(n)`, shape (heads, length), of a module of the user's own whose bias at these queries, the
    last of the row among them, depends on the distance alone; else None."""
    j = torch.arange(k.shape[2], device=k.device)
    found, other = (bias_of_pairs(bias, *x, i, j)[0] for x in ((q[:, :, i], k), (-q[:, :, i], -k)))
    table = found[:, -1].flip(-1)
    wanted = torch.where(j <= i[:, None], table[:, (i[:, None] - j).clamp(min=0)], 0)
    alike = (torch.where(j <= i[:, None], x, 0) for x in (found, other))
    return table if all(torch.allclose(x, wanted, 1e-5, 1e-5) for x in alike) else None


def modules(model: ModelSettings) -> list[nn.Module | None]:
    """The bias of each layer; layers with the same encoding share one, each has an `Own`."""
    shared: dict[int, nn.Module] = {}
    heads, sources = model.heads, [layer.bias for layer in model.layers]
    for source in sources:
        if isinstance(source, Encoding) and id(source) not in shared:
            shared[id(source)] = LearnedBias(source, heads) if source.free else FixedBias(source)
    return [
        own_module(source, heads, model.width // heads)
        if isinstance(source, Own)
        else shared.get(id(source))
        for source in sources
    ]


# -- the views that kernels of others take --------------------------------------------------------


def bias_tensor(
    encoding: Encoding,
    length: int,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
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
    refuse(
        not isinstance(length, int) or length < 1,
        f"length {length!r}: accepted is a whole number of tokens from 1",
    )
    refuse(
        dtype not in (torch.float32, torch.float64),
        f"dtype {dtype}: accepted are float32 and float64",
    )
    encoding.head(1)  # refuses what has no bias
    values, names = dict(values or {}), {p.name for p in encoding.free}
    refuse(
        names != set(values),
        f"{encoding.name} needs values of {', '.join(sorted(names)) or 'none'}; given: "
        f"{', '.join(values)}",
    )
    if not names:
        return FixedBias(encoding).table(length).to(device, dtype)
    shapes = {
        tuple(v.shape) if isinstance(v, Tensor) else type(v).__name__ for v in values.values()
    }
    shape = next(iter(shapes))
    heads = shape[0] if len(shapes) == 1 and isinstance(shape, tuple) and len(shape) == 1 else 0
    fitting = "" if encoding.num_heads == 1 else f" of {encoding.num_heads} heads"
    refuse(
        heads < 1 or encoding.num_heads not in (1, heads),
        f"{encoding.name}: values of shapes {', '.join(map(str, shapes))}; accepted are tensors of "
        f"one shape (heads,){fitting}",
    )
    exact = {p.symbol: values[p.name].to(device, dtype) for p in encoding.free}
    formulas = [encoding.head(1 + h % encoding.num_heads) for h in range(heads)]
    return learned_rows(formulas, exact, length)


def score_mod(
    encoding: Encoding,
    length: int,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
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
    return table_score(bias_tensor(encoding, length, dtype=dtype, device=device, values=values))


def block_mask(
    encoding: Encoding,
    length: int,
    *,
    widths: float | Sequence[float] | None = None,
    sinks: int = 0,
    heads: int | None = None,
    block: int = 128,
    device: torch.device | str = "cpu",
) -> BlockMask:
    """FlexAttention's block mask: causal, within the support of the bias, within given windows.

    Args:
        encoding: an additive one, with its `bca` if it has one.
        length: of the text, in tokens.
        widths: keys to keep, the query's own included: one number, or one a head, as the widths
            of a `certified_window` and of its heads; infinite where all are kept.
        sinks: the first keys, which every query sees as well, within the support; at most as many
            as the least width.
        heads: of the model, where the encoding has fewer and widths are given for each.
        block: side of the blocks that a kernel may skip.
        device: of the mask.

    Raises:
        InputError: no additive bias, a bad length or width.

    >>> from farfield.theory.encodings import encoding
    >>> block_mask(encoding("alibi"), 256, widths=100).to_dense()[0, 0]
    tensor([[1, 0],
            [1, 1]], dtype=torch.int32)
    """
    each = [widths] if isinstance(widths, int | float) else list(() if widths is None else widths)
    each = [length if width == math.inf else width for width in each]
    for width in each:
        refuse(
            not isinstance(width, int | np.integer) or width < 1,
            f"width {width!r}: accepted is a whole number of tokens from 1",
        )
    refuse(
        not isinstance(sinks, int) or not 0 <= sinks <= min(each, default=0),
        f"sinks {sinks!r} with widths {each[:4]}: accepted are at most as many as the least of "
        "them",
    )
    rows = max(len(each), encoding.num_heads, heads or 1)
    for count, what in ((len(each), "widths"), (encoding.num_heads, "heads of the encoding")):
        refuse(
            count not in (0, 1, rows), f"{count} {what}, {rows} heads: accepted are 1 and {rows}"
        )
    reach = () if encoding.free else reach_of(bias_tensor(encoding, length))
    mask = Mask(int(max(each)) if each else None, encoding.bca, sinks)
    return attention.block_mask(mask, length, reach, device, block, tuple(map(int, each)))
