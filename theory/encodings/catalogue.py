"""The catalogue: an entry for each relative positional encoding, and for those that are no bias.

An encoding outside the theorem's scope (not additive, not a function of the distance alone,
content-dependent) names the hypothesis that fails. To add one, add one entry: no other module knows
the names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy
from sympy import Expr, Rational, S

from farfield.theory.answers.answer import Code, Reason
from farfield.theory.encodings.catalogue_formulas import (
    alibi_values,
    sandwich,
    scale_values,
    slope,
    surrogate,
    t5,
    t5_parameters,
    t5_tables,
)
from farfield.theory.encodings.encoding import Parameter
from farfield.theory.formula.parameters import parameter
from farfield.theory.functions.nodes import n

Values = Mapping[str, Expr]


@dataclass(frozen=True)
class Example:
    """The head that represents an encoding where many are compared: its title, and how it is
    made."""

    title: str
    options: Mapping[str, Any] = field(default_factory=dict)
    head: int = 1


@dataclass(frozen=True)
class Entry:
    """One row of the catalogue.

    Args:
        name: what it is called.
        source: where it stands.
        formula: the bias from the options; None where it is not additive.
        parameters: those of the formula, or a function of the options.
        values: the parameters of head `h` of `heads`; None: they stay symbolic.
        dialects: the accepted ones, the first being the default.
        options: keyword arguments with their defaults, beside `dialect`.
        needs: options that only some dialects read; given with another they are refused.
        per_head: whether a head has values of its own, or a function of the dialect.
        mechanism: `bias`, or how a model applies it.
        out_of_scope: the hypothesis of [Q, Theorem 0.4] that fails.
        note: further facts for a reader.
        title: how it is written in prose; the name where nothing is said.
        aliases: other names in papers.
        trained: options with which it is trained on rows of a length, where defaults do not do.
        tables: of an encoding whose formula is a table: the options that give this many parameters.
            Its tables go by one name, since each training length has its own.
        examples: heads that represent it where many are compared.
        baseline: whether a study trains it beside the encodings asked about.
        stands_for: the entry that this additive surrogate replaces; empty for all others.
    """

    name: str
    source: str
    formula: Callable[..., Expr] | None = None
    parameters: tuple[Parameter, ...] | Callable[..., tuple[Parameter, ...]] = ()
    values: Callable[..., Values] | None = None
    dialects: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    per_head: Callable[[str | None], bool] | bool = False
    mechanism: str = "bias"
    out_of_scope: Reason | None = None
    note: str = ""
    title: str = ""
    aliases: tuple[str, ...] = ()
    trained: Callable[[int], Mapping[str, Any]] = lambda length: {}
    tables: Callable[[int], Iterable[Mapping[str, Any]]] | None = None
    examples: tuple[Example, ...] = ()
    baseline: bool = False
    stands_for: str = ""


_LOG1 = sympy.log(1 + n)
_K, _M, _R1, _R2 = (parameter(name) for name in ("k", "m", "r1", "r2"))


def _code(dialect: str | None) -> bool:
    return dialect == "code"


def _by_dialect(paper: Expr, code: Expr) -> Callable[..., Expr]:
    """A formula that differs between the paper and its code."""
    return lambda dialect, heads: code if dialect == "code" else paper


def _k_parameter(dialect: str, heads: int) -> tuple[Parameter, ...]:
    """k is learned in the code alone."""
    return (Parameter("k"),) if dialect == "code" else ()


def _one(h: int, heads: int, **options: object) -> dict[str, Expr]:
    """The code fixes a = 1 in every head."""
    return {"a": S.One}


def _qin(name: str, title: str, paper: Expr, code: Expr, note: str = "") -> Entry:
    """An entry of Qin et al., whose public code has a slope a head inside the argument."""
    source = "Qin et al. 2024, AAAI; dialect code: their public implementation"
    return Entry(
        name,
        source,
        _by_dialect(paper, code),
        _k_parameter,
        slope,
        ("paper", "code"),
        per_head=_code,
        note=note,
        title=title,
        examples=(Example(title),),
    )


def _outside(
    name: str,
    title: str,
    source: str,
    mechanism: str,
    code: Code,
    why: str,
    aliases: tuple[str, ...] = (),
) -> Entry:
    """An entry that is no additive bias: its mechanism, and why no series decides it."""
    return Entry(
        name,
        source,
        mechanism=mechanism,
        out_of_scope=Reason(code, why),
        title=title,
        aliases=aliases,
    )


_NOT_TOEPLITZ = "not a function of the distance alone"
_ABSOLUTE = f"absolute: added to the embeddings, {_NOT_TOEPLITZ}"
_ROTATION = "not additive: it rotates queries and keys instead of adding a bias"
_NOT_SOFTMAX = "not a softmax with bounded logits"
_CONTENT = "content-dependent: the bias depends on the tokens, not on the distance alone"

_ROWS = (
    Entry(
        "nope",
        "no positional encoding",
        lambda heads: S.Zero,
        title="NoPE",
        examples=(Example("NoPE"),),
        baseline=True,
    ),
    Entry(
        "window",
        "Chi et al. 2023, Section 3.3; Qin et al. 2024, Eq. 7 (inclusive: Eq. 8)",
        lambda dialect, heads: sympy.Piecewise(
            (S.Zero, n < parameter("w") if dialect == "exclusive" else n <= parameter("w")),
            (S.NegativeInfinity, S.true),
        ),
        (Parameter("w"),),
        dialects=("exclusive", "inclusive"),
        note="exclusive: w tokens, distances 0 to w-1; inclusive: w+1 tokens",
        trained=lambda length: {"w": max(1, length // 4)},
        title="Window",
        aliases=("windowed attention", "window attention", "sliding window"),
        examples=(Example("window of 64", {"w": 64}),),
    ),
    Entry(
        "alibi",
        "Press et al. 2022; Chi et al. 2023, Eq. 3 (geometric)",
        lambda heads, **_: -_M * n,
        (Parameter("m", zero=True),),
        alibi_values,
        ("press", "geometric", "shift", "equal"),
        {"delta": 0, "slope_exponent": 0},
        {"delta": ("shift",), "slope_exponent": ("equal",)},
        True,
        note="shift: 2^-(8h/H + delta); equal: 2^-slope_exponent for every head",
        title="ALiBi",
        examples=(Example("ALiBi, slope 1/2"), Example("ALiBi, slope 1/256", head=8)),
        baseline=True,
    ),
    Entry(
        "kerple_log",
        "Chi et al. 2022 (KERPLE); Qin et al. 2024",
        lambda heads: -_R1 * sympy.log(1 + _R2 * n),
        (
            Parameter("r1", learned=True, init=(0, 2), clamp=(0.01, None)),
            Parameter("r2", learned=True, init=(0, 1), clamp=(0.01, None)),
        ),
        title="KERPLE-log",
        aliases=("KERPLE",),
        examples=(Example("KERPLE-log 6/5, 1", {"r1": "6/5", "r2": 1}),),
    ),
    Entry(
        "kerple_power",
        "Chi et al. 2022 (KERPLE); Qin et al. 2024",
        lambda heads: -_R1 * n**_R2,
        (
            Parameter("r1", learned=True, init=(0, 1), clamp=(0.01, None)),
            Parameter("r2", learned=True, init=(0, 2), clamp=(0.01, 2)),
        ),
        title="KERPLE-power",
        examples=(Example("KERPLE-power 1, 1/2", {"r1": 1, "r2": "1/2"}),),
    ),
    Entry(
        "sandwich",
        "Chi et al. 2023, Eq. 6 (equation), Appendix E (appendix); Qin et al. (code)",
        sandwich,
        (Parameter("c"),),
        scale_values,
        ("appendix", "equation", "code"),
        {"d_bar": 128, "d_model": 512},
        {"d_model": ("code",), "d_bar": ("appendix", "equation")},
        True,
        note="appendix keeps the constant that the printed code leaves out, so that p(0) = 0; code "
        "takes d_model, not d_bar",
        title="Sandwich",
        examples=(Example("Sandwich, c = 8", head=8),),
    ),
    Entry(
        "sandwich_smoothed",
        "Chi et al. 2023, Section 5.3, the printed log fit at c = 8",
        lambda heads: -(Rational(33, 40) * _LOG1 + Rational(4, 5)) * 8 / parameter("c"),
        (Parameter("c"),),
        scale_values,
        per_head=True,
        note="the scaling from c = 8 to the other heads is an assumption of this project",
        title="Sandwich smoothed",
        examples=(Example("Sandwich smoothed, c = 1"),),
    ),
    _qin("type1", "Type 1", -2 * _LOG1, -sympy.log(1 + (_K * n) ** 2)),
    _qin("type2", "Type 2", -(_LOG1**2), -(sympy.log(3 + _K * n) ** 2)),
    _qin("example1", "Example 1", -_LOG1, -sympy.log(1 + _K * n)),
    _qin(
        "example2",
        "Example 2",
        -sympy.log(n + 3) - sympy.log(sympy.log(n + 3)),
        -sympy.log(3 + _K * n) - sympy.log(sympy.log(3 + _K * n)),
        "the paper's sum begins at 3; shifted here to be finite from n = 0",
    ),
    Entry(
        "t5",
        "Raffel et al. 2020, causal buckets; scaled: times sqrt(d_head)",
        t5,
        t5_parameters,
        dialects=("plain", "scaled"),
        options={"buckets": 32, "max_distance": 128, "d_head": 64},
        needs={"d_head": ("scaled",)},
        note="scale buckets and max_distance down when the training length is short",
        trained=lambda length: {
            "buckets": min(32, 2 * max(1, length // 8)),
            "max_distance": min(128, max(2, length // 2)),
        },
        tables=t5_tables,
        title="T5",
    ),
    Entry(
        "bam",
        "Bianchessi et al. 2025 (Bayesian attention mechanism)",
        lambda heads: (
            -sympy.exp(parameter("s", "real"))
            * (sympy.Abs(n - parameter("mu", "real")) + parameter("eps"))
            ** parameter("beta", "real")
        ),
        (
            Parameter("s", "real", True, (0, 0)),
            Parameter("mu", "real", True, (0, 0)),
            Parameter("eps", init=(1e-5, 1e-5)),
            Parameter("beta", "real", True, (0, 1)),
        ),
        title="BAM",
    ),
    Entry(
        "alibi_log",
        "ALiBi in log distance",
        lambda heads: -_M * _LOG1,
        (Parameter("m"),),
        trained=lambda length: {"m": 2},
        title="ALiBi in log distance",
    ),
    Entry(
        "rope_surrogate",
        "Sun et al. 2023, Eq. 10 and Algorithm 1 with zeta = 1",
        lambda dialect, d, theta, heads: surrogate(dialect, d, 0, 1, theta, False, heads),
        (Parameter("a", "real"),),
        _one,
        ("code", "printed"),
        {"d": 64, "theta": 10000},
        note="the score of RoPE for constant content, read as an additive bias of scale a",
        title="RoPE surrogate",
        stands_for="rope",
    ),
    Entry(
        "xpos_surrogate",
        "Sun et al. 2023, Eq. 10, 12 (printed) and Algorithm 1 (code)",
        lambda dialect, d, gamma, base, theta, heads: surrogate(
            dialect, d, gamma, base, theta, True, heads
        ),
        (Parameter("a", "real"),),
        _one,
        ("code", "printed"),
        {"d": 64, "gamma": "2/5", "base": 512, "theta": 10000},
        note="the score of xPos for constant content, read as an additive bias of scale a",
        title="xPos surrogate",
        stands_for="xpos",
    ),
    _outside(
        "sinusoidal",
        "Sinusoidal",
        "Vaswani et al. 2017",
        "sinusoidal",
        Code.NOT_TOEPLITZ,
        _ABSOLUTE,
    ),
    _outside(
        "learned",
        "Learned",
        "learned absolute positions",
        "learned_absolute",
        Code.NOT_TOEPLITZ,
        _ABSOLUTE,
    ),
    _outside(
        "rope",
        "RoPE",
        "Su et al. 2021",
        "rotation",
        Code.NOT_ADDITIVE,
        _ROTATION + "; its additive surrogate is rope_surrogate",
        ("Rotary", "rotary position embedding"),
    ),
    _outside(
        "xpos",
        "xPos",
        "Sun et al. 2023",
        "rotation_decay",
        Code.NOT_ADDITIVE,
        _ROTATION + ", with decay; its additive surrogate is xpos_surrogate",
    ),
    *(
        _outside(name, title, source, mechanism, code, why)
        for name, title, source, mechanism, code, why in (
            (
                "rope_pi",
                "RoPE, interpolated",
                "Chen et al. 2023 (position interpolation)",
                "rotation_rescaled",
                Code.NOT_ADDITIVE,
                _ROTATION + ", rescaled",
            ),
            (
                "rope_ntk",
                "RoPE, NTK-aware",
                "NTK-aware rescaling of RoPE",
                "rotation_rescaled",
                Code.NOT_ADDITIVE,
                _ROTATION + ", rescaled",
            ),
            (
                "yarn",
                "YaRN",
                "Peng et al. 2023",
                "rotation_rescaled",
                Code.NOT_ADDITIVE,
                _ROTATION + ", rescaled; the logits are rescaled too",
            ),
            (
                "fire",
                "FIRE",
                "Li et al. 2024",
                "row_dependent",
                Code.NOT_TOEPLITZ,
                _NOT_TOEPLITZ + ": normalised by the query position",
            ),
            (
                "fox",
                "FoX",
                "Lin et al. 2025 (forgetting transformer)",
                "gated_decay",
                Code.CONTENT_DEPENDENT,
                _CONTENT + "; ALiBi is the constant case",
            ),
            (
                "cable",
                "CABLE",
                "context-aware biases for length extrapolation",
                "gated_decay",
                Code.CONTENT_DEPENDENT,
                _CONTENT + "; ALiBi is the constant case",
            ),
            (
                "cope",
                "CoPE",
                "Golovneva et al. 2024",
                "interpolated",
                Code.CONTENT_DEPENDENT,
                _CONTENT,
            ),
            (
                "longrope",
                "LongRoPE",
                "Ding et al. 2024",
                "rotation_rescaled",
                Code.NOT_ADDITIVE,
                _ROTATION + ", rescaled by a factor a dimension",
            ),
            (
                "hope",
                "HoPE",
                "hyperbolic rotary positional encoding, 2025",
                "scaled_content",
                Code.NOT_ADDITIVE,
                "not additive: it scales the content logit by a factor that falls with distance",
            ),
            (
                "harope",
                "HARoPE",
                "head-wise adaptive rotary encoding, 2025",
                "rotation_rescaled",
                Code.NOT_ADDITIVE,
                _ROTATION + ", after a learned linear map a head",
            ),
            (
                "path",
                "PaTH",
                "Yang et al. 2025 (accumulated Householder products)",
                "contractions",
                Code.CONTENT_DEPENDENT,
                "content-dependent: maps of the tokens between query and key act on the key",
            ),
            (
                "wavelet",
                "Wavelet",
                "Oka et al. 2025 (wavelet-based positional representation)",
                "relative_vectors",
                Code.CONTENT_DEPENDENT,
                "content-dependent: the query is multiplied by a vector of the distance",
            ),
            ("dape", "DAPE", "Zheng et al. 2024", "mixed_heads", Code.CONTENT_DEPENDENT, _CONTENT),
            (
                "stick_breaking",
                "Stick breaking",
                "Tan et al. 2024",
                "stick_breaking",
                Code.NOT_SOFTMAX,
                _NOT_SOFTMAX + ": weights by stick breaking",
            ),
            (
                "ssmax",
                "SSMax",
                "Nakanishi 2025",
                "row_scaled",
                Code.NOT_SOFTMAX,
                _NOT_SOFTMAX + ": the scale grows with the row length",
            ),
        )
    ),
)

CATALOGUE: dict[str, Entry] = {row.name: row for row in _ROWS}
"""Every entry by its name, in the order in which they are listed."""


def encodings() -> tuple[str, ...]:
    """The names in the catalogue, in its order.

    >>> encodings()[:4]
    ('nope', 'window', 'alibi', 'kerple_log')
    """
    return tuple(CATALOGUE)


def of_mechanism(mechanism: str) -> Entry:
    """The first entry that a model applies in this way.

    >>> of_mechanism("rotation").title
    'RoPE'
    """
    return next(e for e in _ROWS if e.mechanism == mechanism)


def surrogate_of(name: str) -> Entry | None:
    """The additive surrogate of an entry, None where it has none.

    >>> surrogate_of("rope").name
    'rope_surrogate'
    """
    return next((e for e in _ROWS if e.stands_for == name), None)


def usual_values(name: str, parameters: Iterable[str]) -> dict[str, str]:
    """Values of these parameters in the first example of an entry that has them all.

    >>> usual_values("kerple_log", ["r1", "r2"]), usual_values("-a*n", ["a"])
    ({'r1': '6/5', 'r2': '1'}, {})
    """
    names = tuple(parameters)
    for example in CATALOGUE[name].examples if name in CATALOGUE else ():
        if names and {*names} <= {*example.options}:
            return {k: str(example.options[k]) for k in names}
    return {}
