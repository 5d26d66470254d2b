"""The catalogue: every relative positional encoding as one formula, of which the rest are views.

An encoding is a bias formula in the distance `n` with parameters, the values of the parameters in
each head, and its source. An encoding outside the theorem's scope (not additive, not a function
of the distance alone, content-dependent) names the hypothesis that fails.

To add one, add one entry to `_CATALOGUE`: nothing else knows the names.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
import sympy
from sympy import Expr, Integer, Rational, S, Symbol

from farfield.theory.expression import Lookup, as_expression, n, parameter
from farfield.theory.results import InputError, Result, exact
from farfield.theory.tables import tabulate

DEFAULT_HEADS = 8


@dataclass(frozen=True)
class Parameter:
    """A parameter of a bias: its domain and, where it is learned, its reference initialisation.

    `init` is the interval of a uniform distribution, `clamp` the bounds (None: no bound) that
    the reference code enforces at every forward pass.
    """

    name: str
    domain: str = "positive"
    learned: bool = False
    init: tuple[float, float] = (0.0, 1.0)
    clamp: tuple[float | None, float | None] = (None, None)

    @property
    def symbol(self) -> Symbol:
        return parameter(self.name, self.domain)


@dataclass(frozen=True)
class Encoding(Result):
    """One bias formula with its heads; everything else in the project is a view of it.

    Fields:
        name, dialect, source: what it is called, which variant, where it stands.
        formula: the bias in `n` and its parameters; None where the encoding is not additive.
        parameters: those the formula has, in order.
        biases: the bias of each head, fixed values substituted; empty where there is no formula.
        mechanism: `bias`, or how a model applies it (`rotation`, `rotation_decay`, `sinusoidal`,
            `learned_absolute`, `content`).
        out_of_scope: the hypothesis of [Q, Theorem 0.4] that fails; None where it applies.
        bca: half-width in tokens of blockwise causal attention [S, 3.3], None without.
    """

    name: str
    formula: Expr | None
    biases: tuple[Expr, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    dialect: str | None = None
    source: str = "user formula"
    mechanism: str = "bias"
    out_of_scope: str | None = None
    bca: int | None = None
    note: str = ""

    @property
    def num_heads(self) -> int:
        """How many heads the formula has values for; 1 where all heads share it."""
        return max(1, len(self.biases))

    @property
    def free(self) -> tuple[Parameter, ...]:
        """The parameters that have no value yet in some head (learned ones, as a rule)."""
        names = {s.name for b in self.biases for s in b.free_symbols}
        return tuple(p for p in self.parameters if p.name in names)

    def head(self, h: int) -> Expr:
        """The bias of head `h`, counted from 1, as an expression in `n`.

        >>> encoding("alibi").head(1)
        -n/2
        """
        if not self.biases:
            raise InputError(f"{self.name} has no additive bias: {self.out_of_scope}")
        if not 1 <= h <= self.num_heads:
            raise InputError(f"{self.name} has heads 1 to {self.num_heads}; {h} was asked for")
        return self.biases[h - 1]

    def bias(self, distances: Any) -> np.ndarray:
        """The bias as float64, shape `(num_heads, len(distances))`, -inf where it masks.

        Raises InputError while a parameter has no value.

        >>> encoding("alibi").bias([0, 1, 2])[0].tolist()
        [0.0, -0.5, -1.0]
        """
        return np.stack([tabulate(self.head(h + 1), distances) for h in range(self.num_heads)])

    def slopes(self) -> np.ndarray:
        """The slopes of an ALiBi bias `-m n + constant`, float64, shape `(num_heads,)`, for kernels
        that take them (`alibi_slopes` of FlashAttention, in float32).

        Raises InputError where a head is not linear in the distance, or has no values.

        >>> encoding("alibi", heads=4).slopes().tolist()
        [0.25, 0.0625, 0.015625, 0.00390625]
        """
        found = []
        for h in range(1, self.num_heads + 1):
            slope = -sympy.diff(self.head(h), n)
            if not slope.is_number or self.head(h).has(Lookup, sympy.Piecewise):
                raise InputError(f"{self.name}, head {h} is no ALiBi bias -m*n: {self.head(h)}")
            found.append(float(slope))
        return np.array(found)

    # What torch takes lives with torch, in validation; imported by name, so that this room is not
    # above that one and stays light.

    def tensor(self, length: int, **options: Any) -> Any:
        """The bias at distances 0 .. length - 1 as a torch tensor; see `exports.bias_tensor`."""
        return _exports().bias_tensor(self, length, **options)

    def score_mod(self, length: int, **options: Any) -> Any:
        """The score function of FlexAttention for texts up to this length; see
        `exports.score_mod`."""
        return _exports().score_mod(self, length, **options)

    def block_mask(self, length: int, **options: Any) -> Any:
        """The block mask of FlexAttention for a text of this length; see `exports.block_mask`."""
        return _exports().block_mask(self, length, **options)

    def latex(self) -> str:
        """The formula in LaTeX.

        >>> print(encoding("kerple_power").latex())
        - n^{r_{2}} r_{1}
        """
        return "" if self.formula is None else sympy.latex(self.formula)

    def text(self) -> str:
        dialect = f" ({self.dialect})" if self.dialect else ""
        lines = [f"{self.name}{dialect}: {self.formula_text()}"]
        if self.num_heads > 1:
            lines.append(f"  heads: {self.num_heads}")
        if self.out_of_scope:
            lines.append(f"  out of scope: {self.out_of_scope}")
        if self.bca:
            lines.append(f"  blockwise causal attention, half = {self.bca} tokens")
        return "\n".join([*lines, f"  source: {self.source}", *([self.note] if self.note else [])])

    def formula_text(self) -> str:
        """The formula as plain text, `-` where there is none."""
        return "-" if self.formula is None else str(self.formula)


def _exports() -> Any:
    try:
        return import_module("farfield.validation.exports")
    except ImportError:
        raise InputError(
            "a view for torch needs torch, which is not installed; install it with "
            "pip install 'farfield[train]'"
        ) from None


# -- entries --------------------------------------------------------------------------------------

Values = Mapping[str, Expr]


@dataclass(frozen=True)
class Entry:
    """One row of the catalogue.

    `formula` maps the options to the bias; `values` gives the parameters of head `h` of `heads`
    (none: they stay symbolic); `options` are the keyword arguments with their defaults, of which
    `dialect` is one; `dialects` the accepted dialects, the first being the default.
    """

    name: str
    source: str
    formula: Callable[..., Expr] | None = None
    parameters: tuple[Parameter, ...] | Callable[..., tuple[Parameter, ...]] = ()
    values: Callable[..., Values] | None = None
    dialects: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    per_head: Callable[[str | None], bool] | bool = False
    mechanism: str = "bias"
    out_of_scope: str | None = None
    note: str = ""


def alibi_slope(h: int, heads: int, dialect: str = "press") -> Expr:
    """The slope of head `h` (from 1), exact. `press` is the original code's rule, `geometric`
    [C, Eq. 3]; they differ only where `heads` is no power of two.

    >>> alibi_slope(1, 8), alibi_slope(9, 12), alibi_slope(9, 12, "geometric")
    (1/2, sqrt(2)/2, 1/64)
    """
    if dialect == "geometric" or heads & (heads - 1) == 0:
        return Integer(2) ** Rational(-8 * h, heads)
    closest = 1 << (heads.bit_length() - 1)
    if h <= closest:
        return Integer(2) ** Rational(-8 * h, closest)
    return Integer(2) ** Rational(-8 * (2 * (h - closest) - 1), 2 * closest)


def _alibi_values(
    h: int, heads: int, dialect: str, delta: Any = 0, slope_exponent: Any = 0
) -> Values:
    if dialect == "equal":
        return {"m": Integer(2) ** -exact(slope_exponent, "slope_exponent")}
    if dialect == "shift":
        return {"m": Integer(2) ** -(Rational(8 * h, heads) + exact(delta, "delta"))}
    return {"m": alibi_slope(h, heads, dialect)}


def _slope(h: int, heads: int, dialect: str) -> Values:
    return {"k": alibi_slope(h, heads)} if dialect == "code" else {}


def _natural(value: Any, what: str, least: int = 1) -> int:
    number = exact(value, what)
    if not number.is_Integer or number < least or number > 10**9:
        raise InputError(f"{what} {value!r} must be an integer from {least} to 10^9")
    return int(number)


def _sandwich(dialect: str, d_bar: Any, d_model: Any, heads: int) -> Expr:
    size = (
        2 * (_natural(d_model, "d_model") // heads)
        if dialect == "code"
        else (_natural(d_bar, "d_bar", 2))
    )
    if size % 2 or not 2 <= size <= 4096:
        raise InputError(f"d_bar {size} must be even, from 2 to 4096")
    i = Symbol("i", integer=True, nonnegative=True)
    first = 0 if dialect == "appendix" else 1
    constant = Rational(size, 2) + (Rational(1, 10**4) if dialect == "code" else 0)
    waves = sympy.Sum(
        sympy.cos(n / Integer(10000) ** (2 * i / Integer(size))),
        (i, first, first + size // 2 - 1),
    )
    return (waves - constant) / parameter("c")


def _scale_values(h: int, heads: int, **_: Any) -> Values:
    return {"c": Rational(8 * h, heads)}


def t5_bucket_starts(buckets: int, max_distance: int) -> list[int]:
    """The least distance of each bucket of the causal T5 rule, in exact integer arithmetic.

    >>> t5_bucket_starts(32, 128)[16:]
    [16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]
    """
    near = buckets // 2
    far = buckets - near
    starts = list(range(near))
    distance = near
    for k in range(far):  # floor(log(t/near)/log(max/near) * far) >= k
        while distance**far * near**k < max_distance**k * near**far:
            distance += 1
        starts.append(distance)
    return starts


def _t5(dialect: str, buckets: Any, max_distance: Any, d_head: Any, heads: int) -> Expr:
    count, far = _natural(buckets, "buckets", 2), _natural(max_distance, "max_distance", 2)
    if count % 2 or count > 512 or far <= count // 2 or far > 10**6:
        raise InputError(
            f"buckets {count} and max_distance {far}: the buckets must be an even number up to "
            "512, the distance greater than half of it and at most 10^6"
        )
    starts = t5_bucket_starts(count, far)
    factor = sympy.sqrt(_natural(d_head, "d_head")) if dialect == "scaled" else S.One
    symbols = [factor * parameter(f"b{k}", "real") for k in range(count)]
    table = [symbols[sum(s <= t for s in starts) - 1] for t in range(starts[-1])]
    return Lookup(n, sympy.Tuple(*table), symbols[-1])


def _t5_parameters(buckets: Any, **_: Any) -> tuple[Parameter, ...]:
    count = _natural(buckets, "buckets", 2)
    return tuple(Parameter(f"b{k}", "real", True, (0.0, 0.0)) for k in range(min(count, 512)))


def _surrogate(
    dialect: str, d: Any, gamma: Any, base: Any, theta: Any, decay: bool, heads: int
) -> Expr:
    size = _natural(d, "d", 2)
    if size % 2 or size > 4096:
        raise InputError(f"d {size} must be even, from 2 to 4096")
    half = size // 2
    softness, period = exact(gamma, "gamma"), exact(base, "base")
    if softness < 0 or period <= 0:
        raise InputError("gamma must be >= 0 and base > 0")
    total = S.Zero
    for i in range(half + (1 if dialect == "printed" else 0)):
        wave = sympy.cos(n * exact(theta, "theta") ** Rational(-2 * i, size))
        if decay:
            zeta = (Rational(i, half) + softness) / (1 + softness)
            at_once = sympy.Piecewise((S.One, n < 1), (S.Zero, S.true))  # 0**n
            wave = wave * (zeta ** (n / period) if zeta else at_once)
        total = total + wave
    return parameter("a", "real") * total


_LOG1 = sympy.log(1 + n)
_K = parameter("k")
_R1, _R2 = parameter("r1"), parameter("r2")
_M = parameter("m")


def _code(dialect: str | None) -> bool:
    return dialect == "code"


def _by_dialect(paper: Expr, code: Expr) -> Callable[..., Expr]:
    return lambda dialect, heads: code if dialect == "code" else paper


def _k_parameter(dialect: str, heads: int) -> tuple[Parameter, ...]:
    return (Parameter("k"),) if dialect == "code" else ()


_QIN_CODE = "Qin et al. 2024, AAAI; dialect code: their public implementation"
_NOT_TOEPLITZ = "not a function of the distance alone"
_ABSOLUTE = "absolute: added to the embeddings, " + _NOT_TOEPLITZ
_ROTATION = "not additive: the logit is not content plus a bias, but a rotation of it"
_NOT_SOFTMAX = "not a softmax with bounded logits"
_CONTENT = "content-dependent: the bias depends on the tokens, not on the distance alone"

_ROWS = (
    Entry("nope", "no positional encoding", lambda heads: S.Zero),
    Entry(
        "window", "Chi et al. 2023, Section 3.3; Qin et al. 2024, Eq. 7 (inclusive: Eq. 8)",
        lambda dialect, heads: sympy.Piecewise(
            (S.Zero, n < parameter("w") if dialect == "exclusive" else n <= parameter("w")),
            (S.NegativeInfinity, S.true),
        ),
        (Parameter("w"),), dialects=("exclusive", "inclusive"),
        note="exclusive: w tokens, distances 0 to w-1; inclusive: w+1 tokens",
    ),
    Entry(
        "alibi", "Press et al. 2022; Chi et al. 2023, Eq. 3 (geometric)",
        lambda heads, **_: -_M * n, (Parameter("m"),), _alibi_values,
        ("press", "geometric", "shift", "equal"), {"delta": 0, "slope_exponent": 0}, True,
        note="shift: 2^-(8h/H + delta); equal: 2^-slope_exponent for every head",
    ),
    Entry(
        "kerple_log", "Chi et al. 2022 (KERPLE); Qin et al. 2024",
        lambda heads: -_R1 * sympy.log(1 + _R2 * n),
        (Parameter("r1", learned=True, init=(0, 2), clamp=(0.01, None)),
         Parameter("r2", learned=True, init=(0, 1), clamp=(0.01, None))),
    ),
    Entry(
        "kerple_power", "Chi et al. 2022 (KERPLE); Qin et al. 2024",
        lambda heads: -_R1 * n**_R2,
        (Parameter("r1", learned=True, init=(0, 1), clamp=(0.01, None)),
         Parameter("r2", learned=True, init=(0, 2), clamp=(0.01, 2))),
    ),
    Entry(
        "sandwich", "Chi et al. 2023, Eq. 6 (equation), Appendix E (appendix); Qin et al. (code)",
        _sandwich, (Parameter("c"),), _scale_values, ("appendix", "equation", "code"),
        {"d_bar": 128, "d_model": 512}, True,
        note="appendix keeps the constant that the printed code leaves out, so that p(0) = 0",
    ),
    Entry(
        "sandwich_smoothed", "Chi et al. 2023, Section 5.3, the printed log fit at c = 8",
        lambda heads: -(Rational(33, 40) * _LOG1 + Rational(4, 5)) * 8 / parameter("c"),
        (Parameter("c"),), _scale_values, per_head=True,
        note="the scaling from c = 8 to the other heads is an assumption of this project",
    ),
    Entry(
        "type1", _QIN_CODE, _by_dialect(-2 * _LOG1, -sympy.log(1 + (_K * n) ** 2)),
        _k_parameter, _slope, ("paper", "code"), per_head=_code,
    ),
    Entry(
        "type2", _QIN_CODE, _by_dialect(-(_LOG1**2), -(sympy.log(3 + _K * n) ** 2)),
        _k_parameter, _slope, ("paper", "code"), per_head=_code,
    ),
    Entry(
        "example1", _QIN_CODE, _by_dialect(-_LOG1, -sympy.log(1 + _K * n)),
        _k_parameter, _slope, ("paper", "code"), per_head=_code,
    ),
    Entry(
        "example2", _QIN_CODE,
        _by_dialect(
            -sympy.log(n + 3) - sympy.log(sympy.log(n + 3)),
            -sympy.log(3 + _K * n) - sympy.log(sympy.log(3 + _K * n)),
        ),
        _k_parameter, _slope, ("paper", "code"), per_head=_code,
        note="the paper's sum begins at 3; shifted here to be finite from n = 0",
    ),
    Entry(
        "t5", "Raffel et al. 2020, causal buckets; scaled: times sqrt(d_head)",
        _t5, _t5_parameters, dialects=("plain", "scaled"),
        options={"buckets": 32, "max_distance": 128, "d_head": 64},
        note="scale buckets and max_distance down when the training length is short",
    ),
    Entry(
        "bam", "Bianchessi et al. 2025 (Bayesian attention mechanism)",
        lambda heads: -sympy.exp(parameter("s", "real"))
        * (sympy.Abs(n - parameter("mu", "real")) + parameter("eps")) ** parameter("beta", "real"),
        (Parameter("s", "real", True, (0, 0)), Parameter("mu", "real", True, (0, 0)),
         Parameter("eps", init=(1e-5, 1e-5)), Parameter("beta", "real", True, (0, 1))),
    ),
    Entry("alibi_log", "ALiBi in log distance", lambda heads: -_M * _LOG1, (Parameter("m"),)),
    Entry(
        "rope_surrogate", "Sun et al. 2023, Eq. 10 and Algorithm 1 with zeta = 1",
        lambda dialect, d, theta, heads: _surrogate(dialect, d, 0, 1, theta, False, heads),
        (Parameter("a", "real"),), lambda h, heads, **_: {"a": S.One}, ("code", "printed"),
        {"d": 64, "theta": 10000},
        note="the score of RoPE for constant content, read as an additive bias of scale a",
    ),
    Entry(
        "xpos_surrogate", "Sun et al. 2023, Eq. 10, 12 (printed) and Algorithm 1 (code)",
        lambda dialect, d, gamma, base, theta, heads: _surrogate(
            dialect, d, gamma, base, theta, True, heads
        ),
        (Parameter("a", "real"),), lambda h, heads, **_: {"a": S.One}, ("code", "printed"),
        {"d": 64, "gamma": "2/5", "base": 512, "theta": 10000},
        note="the score of xPos for constant content, read as an additive bias of scale a",
    ),
    *(
        Entry(name, source, mechanism=mechanism, out_of_scope=reason)
        for name, source, mechanism, reason in (
            ("sinusoidal", "Vaswani et al. 2017", "sinusoidal", _ABSOLUTE),
            ("learned", "learned absolute positions", "learned_absolute", _ABSOLUTE),
            ("rope", "Su et al. 2021", "rotation", _ROTATION + "; see rope_surrogate"),
            ("xpos", "Sun et al. 2023", "rotation_decay",
             _ROTATION + ", with decay; see xpos_surrogate"),
            ("rope_pi", "Chen et al. 2023 (position interpolation)", "rotation_rescaled",
             _ROTATION + ", rescaled"),
            ("rope_ntk", "NTK-aware rescaling of RoPE", "rotation_rescaled",
             _ROTATION + ", rescaled"),
            ("yarn", "Peng et al. 2023", "rotation_rescaled",
             _ROTATION + ", rescaled; the logits are rescaled too"),
            ("fire", "Li et al. 2024", "content",
             _NOT_TOEPLITZ + ": normalised by the query position"),
            ("fox", "Lin et al. 2025 (forgetting transformer)", "content",
             _CONTENT + "; ALiBi is the constant case"),
            ("cable", "context-aware biases for length extrapolation", "content",
             _CONTENT + "; ALiBi is the constant case"),
            ("cope", "Golovneva et al. 2024", "content", _CONTENT),
            ("dape", "Zheng et al. 2024", "content", _CONTENT),
            ("stick_breaking", "Tan et al. 2024", "content",
             _NOT_SOFTMAX + ": weights by stick breaking"),
            ("ssmax", "Nakanishi 2025", "content",
             _NOT_SOFTMAX + ": the scale grows with the row length"),
        )
    ),
)  # fmt: skip
_CATALOGUE: dict[str, Entry] = {row.name: row for row in _ROWS}


def encodings() -> tuple[str, ...]:
    """The names in the catalogue, in its order.

    >>> encodings()[:4]
    ('nope', 'window', 'alibi', 'kerple_log')
    """
    return tuple(_CATALOGUE)


def dialects(name: str) -> tuple[str, ...]:
    """The dialects of an encoding of the catalogue, the default first; empty where it has one form.

    >>> dialects("t5"), dialects("nope")
    (('plain', 'scaled'), ())
    """
    return _CATALOGUE[name].dialects


def encoding(
    name: Any = None,
    *,
    heads: int | None = None,
    dialect: str | None = None,
    values: Any = None,
    tail: str = "constant",
    bca: int | None = None,
    assumptions: Mapping[str, str] | None = None,
    **given: Any,
) -> Encoding:
    """An encoding from the catalogue, from a user's formula, or from a table of values.

    Args:
        name: a name of the catalogue (see `encodings`), a formula in `n`, or a SymPy expression.
        heads: number of heads of a per-head formula (8 where nothing is said).
        dialect: which variant of the formula; the entry's first where nothing is said.
        values: instead of a name, a table of the bias at distances 0, 1, ...; shape `(length,)`
            or `(heads, length)`, finite or -inf.
        tail: past the table, `constant` (its last value) or `cut` (masked).
        bca: half-width in tokens of blockwise causal attention at inference [S, 3.3].
        assumptions: domains of parameters without a value: positive (the default), nonnegative,
            negative, nonpositive, real, or an interval such as `[0, 2)`.
        **given: values of parameters (one number, or one a head) and options of the entry
            (`delta`, `slope_exponent`, `d_bar`, `buckets`, `max_distance`, `d`, `gamma`, ...).

    Raises:
        InputError: unknown names (with the nearest known one), values outside their domain,
            options that the encoding does not have.

    >>> encoding("alibi").num_heads, encoding("-log(1+n)").num_heads
    (8, 1)
    >>> encoding("kerple_log", r1="6/5", r2=1).head(1)
    -6*log(n + 1)/5
    """
    if heads is not None and not (isinstance(heads, int) and 1 <= heads <= 1024):
        raise InputError(f"heads {heads!r} must be an integer from 1 to 1024")
    if bca is not None:
        bca = _natural(bca, "bca")
    if values is not None:
        if name is not None or given or dialect:
            raise InputError("a table of values takes no name, dialect or parameters beside it")
        return dataclasses.replace(_from_table(values, tail), bca=bca)
    if isinstance(name, Encoding):
        if dialect or given or heads or assumptions:
            raise InputError("an Encoding is complete: it takes no further options")
        return name if bca is None else dataclasses.replace(name, bca=bca)
    if isinstance(name, str) and name in _CATALOGUE:
        built = _from_entry(_CATALOGUE[name], heads, dialect, given)
        built = _assuming(built, assumptions or {})
    else:
        if dialect is not None:
            raise InputError(f"a formula has no dialect; {dialect!r} was given")
        built = _from_formula(name, heads, given, assumptions or {})
    return built if bca is None else dataclasses.replace(built, bca=bca)


def _from_entry(
    entry: Entry, heads: int | None, dialect: str | None, given: dict[str, Any]
) -> Encoding:
    if dialect is not None and dialect not in entry.dialects:
        accepted = ", ".join(entry.dialects) or "none"
        raise InputError(f"{entry.name} has no dialect {dialect!r}; accepted: {accepted}")
    dialect = dialect or (entry.dialects[0] if entry.dialects else None)
    chosen = {"dialect": dialect} if dialect else {}
    options = dict(entry.options)
    for key in [k for k in given if k in options]:
        options[key] = given.pop(key)
    _options_fit(entry, dialect, options)
    per_head = entry.per_head(dialect) if callable(entry.per_head) else entry.per_head
    if entry.formula is None:
        if given:
            raise InputError(f"{entry.name} has no parameters; {', '.join(given)} given")
        return Encoding(
            entry.name, None, source=entry.source, dialect=dialect, mechanism=entry.mechanism,
            out_of_scope=entry.out_of_scope, note=entry.note,
        )  # fmt: skip
    parameters = entry.parameters
    if callable(parameters):
        parameters = parameters(heads=1, **chosen, **options)
    count = _count(heads, parameters, given, DEFAULT_HEADS if per_head else 1)
    formula = entry.formula(heads=count, **chosen, **options)
    biases = []
    default = entry.values
    for h in range(1, count + 1):
        own = dict(default(h, count, **chosen, **options)) if default else {}
        own |= _head_values(entry.name, parameters, given, h)
        biases.append(_substitute(formula, parameters, own))
    return Encoding(
        entry.name, formula, tuple(biases), parameters, dialect, entry.source, note=entry.note
    )


def _options_fit(entry: Entry, dialect: str | None, options: dict[str, Any]) -> None:
    """`delta` without `dialect="shift"` would be ignored silently: refuse it."""
    wants = {"delta": "shift", "slope_exponent": "equal", "d_model": "code"}
    if entry.name == "t5":
        wants["d_head"] = "scaled"
    for key, needed in wants.items():
        if key in options and options[key] != entry.options[key] and dialect != needed:
            raise InputError(f"{entry.name}: {key} needs dialect={needed!r}, not {dialect!r}")
    if dialect == "code" and options.get("d_bar", 128) != entry.options.get("d_bar", 128):
        raise InputError(f"{entry.name}: dialect 'code' takes d_model, not d_bar")


def _assuming(e: Encoding, assumptions: Mapping[str, str]) -> Encoding:
    """The encoding with other domains for its free parameters."""
    if not assumptions:
        return e
    free = {p.name: p for p in e.free}
    for name in assumptions:
        if name not in free:
            has = ", ".join(free) or "none"
            raise InputError(f"{e.name} has no free parameter {name!r}; free parameters: {has}")
    swap = {free[k].symbol: parameter(k, d) for k, d in assumptions.items()}
    parameters = tuple(
        dataclasses.replace(p, domain=assumptions.get(p.name, p.domain)) for p in e.parameters
    )
    assert e.formula is not None
    biases = tuple(b.xreplace(swap) for b in e.biases)
    return dataclasses.replace(
        e, formula=e.formula.xreplace(swap), biases=biases, parameters=parameters
    )


def _from_formula(
    source: Any, heads: int | None, given: dict[str, Any], domains: Mapping[str, str]
) -> Encoding:
    if source is None:
        raise InputError("an encoding needs a name, a formula or a table of values")
    text = source.strip() if isinstance(source, str) else None
    if text is not None and re.fullmatch(r"[A-Za-z][A-Za-z0-9_ -]*", text) and text != "n":
        close = difflib.get_close_matches(text.lower(), _CATALOGUE, 1, 0.5)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(_CATALOGUE)}"
        raise InputError(f"{text[:40]!r} is neither an encoding nor a formula in n; {hint}")
    formula = as_expression(source, domains)
    parameters = tuple(
        Parameter(s.name, domains.get(s.name, _domain_of(s)), True)
        for s in sorted(formula.free_symbols - {n}, key=lambda s: str(s.name))
    )
    count = _count(heads, parameters, given, 1)
    biases = tuple(
        _substitute(formula, parameters, _head_values("the formula", parameters, given, h))
        for h in range(1, count + 1)
    )
    return Encoding(text or str(source), formula, biases, parameters)


def _domain_of(symbol: Symbol) -> str:
    for domain in ("positive", "nonnegative", "negative", "nonpositive"):
        if getattr(symbol, f"is_{domain}"):
            return domain
    return "real"


def _from_table(values: Any, tail: str) -> Encoding:
    if tail not in ("constant", "cut"):
        raise InputError(f"tail {tail!r} is not known; accepted: constant, cut")
    try:
        table = np.atleast_2d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        raise InputError("a table of values must hold numbers") from None
    if table.ndim != 2 or not table.size or np.isnan(table).any() or (table == np.inf).any():
        raise InputError("a table of values has shape (length,) or (heads, length), finite or -inf")
    biases = []
    for row in table:
        entries = [
            S.NegativeInfinity if v == -np.inf else Rational(*float(v).as_integer_ratio())
            for v in row
        ]
        end = entries[-1] if tail == "constant" else S.NegativeInfinity
        biases.append(Lookup(n, sympy.Tuple(*entries), end))
    return Encoding("table", biases[0], tuple(biases), source=f"table of {table.shape[1]} values")


def _count(
    heads: int | None, parameters: Sequence[Parameter], given: Mapping[str, Any], default: int
) -> int:
    lengths = {len(v) for v in given.values() if isinstance(v, (list, tuple, np.ndarray))}
    if len(lengths) > 1:
        raise InputError(f"parameters are given for {sorted(lengths)} heads; they must agree")
    if lengths and heads is not None and {heads} != lengths:
        raise InputError(f"parameters are given for {lengths.pop()} heads, heads={heads}")
    if lengths:
        return lengths.pop()
    fixed = parameters and all(p.name in given for p in parameters)
    return heads or (1 if fixed else default)


def _head_values(
    name: str, parameters: Sequence[Parameter], given: Mapping[str, Any], h: int
) -> dict[str, Expr]:
    own: dict[str, Expr] = {}
    known = {p.name: p for p in parameters}
    for key, value in given.items():
        if key not in known:
            close = difflib.get_close_matches(key, known, 1, 0.5)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            has = ", ".join(known) or "none"
            raise InputError(f"{name} has no parameter or option {key!r}{hint} (parameters: {has})")
        if isinstance(value, (list, tuple, np.ndarray)):
            value = value[h - 1]
        number = value if isinstance(value, Expr) and value.is_number else exact(value, key)
        domain = known[key].domain
        test = {"positive": number > 0, "nonnegative": number >= 0, "negative": number < 0,
                "nonpositive": number <= 0}.get(domain, True)  # fmt: skip
        if not bool(test):
            raise InputError(f"{key} = {number} is outside its domain ({domain})")
        own[key] = number
    return own


def _substitute(formula: Expr, parameters: Sequence[Parameter], own: Values) -> Expr:
    symbols = {p.name: p.symbol for p in parameters}
    bias = formula.xreplace({symbols[k]: v for k, v in own.items()})
    return bias.replace(_constant_sum, _written_out) if bias.has(sympy.Sum) else bias


def _constant_sum(e: Any) -> bool:
    return isinstance(e, sympy.Sum) and all(x.is_Integer for x in e.limits[0][1:])


def _written_out(e: Any) -> Expr:
    index, low, high = e.limits[0]
    return sympy.Add(*(e.function.xreplace({index: Integer(k)}) for k in range(low, high + 1)))
