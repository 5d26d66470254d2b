r"""Attention resolution [S, Eq. 4] of biases, surrogates and measured scores.

    R(s) = sum_{i=0}^{N} x_i (x_i - x_{i+1}) / (sum_{i=0}^{N} x_i)^2,  x_i = e^{s_i}.

A row of T tokens has the scores `s_0 .. s_{T-1}` [S, Eq. 13], so the sum ends at `N = T - 2` and
`s_{N+1} = s_{T-1}`. A window of w tokens makes `s_n = -oo` from w on: then the sum ends at w - 1
and `x_w = 0`. Blockwise causal attention is a window of half + 1 to 2 half tokens, according to
the place of the row in its block. R is the mean over the rows of a block (ours: [S] does not say).

With `Q = sum x_i^2` and `C = sum x_i x_{i+1}`, `R = (Q - C) / B^2` is three exp-series: of `2 p`,
of `p(n) + p(n+1)` and of `p`. Long rows of a bias are summed by the kernels of the room `summation`
where those know them; rows of up to `MAX_BALLS` terms, also of given scores, term by term in balls;
other rows in float64 (`approximate`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import sympy
from flint import arb, fmpq
from sympy import Expr, S

from farfield.numerics.arrays import ROUNDOFF, floats
from farfield.numerics.float_rows import bias_row, resolution_curve, windowed_curve
from farfield.numerics.masks import CAUSAL, Mask
from farfield.numerics.questions import (
    BUDGET_S,
    Cases,
    Diverging,
    Fields,
    HeadAnswer,
    numeric,
    per_head,
    reason_of,
    resolve,
    summed,
    unknown,
)
from farfield.numerics.search import at_precision, to_digits
from farfield.numerics.summation.series import Series, exp_series, series
from farfield.theory.algebra.door import check_time
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.answers.answer import (
    Code,
    InputError,
    Label,
    Reason,
    deciding_head,
)
from farfield.theory.answers.notation import expression_line, words
from farfield.theory.answers.number import decimal, exact, natural
from farfield.theory.decision.engine import bounded_above
from farfield.theory.first_terms import skipped_terms
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.values import compile_ball, tabulate

BITS = 128  # of balls of limits and short rows
FIRST_TERMS = 4_096  # of a sum over neighbours, one by one
MAX_BALLS = 20_000  # terms of a row in balls; longer ones in float64, approximate
MAX_FLOATS = 5 * 10**6  # tokens of a mask that is read
MAX_SCORE = 1e300  # beyond it a score times its scale is no float


@dataclass(frozen=True, repr=False)
class Resolution(HeadAnswer):
    """The attention resolution of a row.

    Fields:
        formula: the bias, None for measured scores and for several heads.
        length: tokens of the row; None for the limit of ever longer rows.
        scale: the factor that multiplied the bias or the scores; R depends on it.
        mask: `none`, `window W` or `bca HALF`.
        last: the score used as `s_{N+1}`, in words.
        value: R; the mean of the heads; None where it is not known.
        enclosure: floats around it, where it is certified or of up to 20,000 given scores.
        bounds: for a non-increasing row `((P_0^2 - P_{N+1}^2)/2, P_0 (P_0 - P_{N+1}))`, else
            (None, sum P_i^2): theorems (ours), rounded outward from float64.
        limit: R of ever longer rows under the same mask; None where it is not known.
        heads: one answer a head where there are several; their mean speaks for all.
        rows: least and greatest R of the rows of a block under a bca mask.
        label: `certified`; `theorem` for the limit 0 of a divergent series; `approximate` for
            float64; `measured` for given scores.
    """

    OUTSIDE = "there is no bias by distance whose resolution to ask for: {why}."

    length: int | None
    scale: Expr
    mask: str
    last: str = "none"
    value: float | None = None
    enclosure: tuple[float, float] | None = None
    bounds: tuple[float | None, float] | None = None
    limit: float | None = None
    rows: tuple[float, float] | None = None

    def _cases(self) -> Cases:
        return (
            (self.value is None, "the attention resolution {where} is not known."),
            (
                self.value == 0 and self.length is None,
                "as rows grow, the attention resolution tends to 0.",
            ),
            (True, "the attention resolution {where} is {value}{mean}."),
        )

    def _values(self) -> dict[str, object]:
        scores: dict[str, object] = (
            {} if self.subject or self.formula is not None else {"subject": "the scores"}
        )
        return scores | {
            "where": "as rows grow" if self.length is None else f"in a row of {self.length} tokens",
            "value": decimal(self.value, 10),
            "mean": f", the mean of {len(self.heads)} heads" if self.heads else "",
        }

    def _facts(self) -> dict[str, object]:
        low, high = self.bounds or (None, None)
        bounds = None if high is None else words("`R <= sum P_i^2` = {high}", high=decimal(high))
        if low is not None:
            template = "{low} `<= R <=` {high}, of a non-increasing row"
            bounds = words(template, low=decimal(low), high=decimal(high))
        rows = self.rows
        return {
            "scale": expression_line(self.scale),
            "mask": None if self.mask == "none" else self.mask,
            "after_the_row": self.last,
            "bounds": bounds,
            "limit": None if None in (self.length, self.limit) else decimal(self.limit, 10),
            "rows_of_a_block": rows and f"from {decimal(rows[0])} to {decimal(rows[1])}",
        } | super()._facts()


def read_mask(mask: object) -> Mask:
    """The mask a user wrote: None, `"window 128"`, `"bca 512"`, or such a pair.

    >>> read_mask("bca 512")
    Mask(window=None, bca=512, sinks=0, reach=None)
    """
    if mask is None:
        return CAUSAL
    wanted = 'accepted: None, "window 128", "bca 512"'
    parts = mask.replace(":", " ").split() if isinstance(mask, str) else mask
    if not isinstance(parts, (list, tuple)) or len(parts) != 2 or parts[0] not in ("window", "bca"):
        raise InputError(f"mask {mask!r} is not known; {wanted}")
    kind, size = parts
    tokens = natural(size, f"the mask's {kind}")
    if tokens > MAX_FLOATS:
        raise InputError(f"the mask's {kind} of {tokens} tokens; at most {MAX_FLOATS} are read")
    return Mask(window=tokens) if kind == "window" else Mask(bca=tokens)


def read_scale(scale: object) -> Expr:
    """A positive constant: a number, or an expression such as `"1/sqrt(64)"`."""
    if scale is None:
        return S.One
    if isinstance(scale, str) and "sqrt" in scale:
        value = read(scale)
    elif isinstance(scale, Expr) and not isinstance(scale, sympy.Float):
        value = scale
    else:
        value = exact(scale, "scale")
    if value.free_symbols or not value.is_positive:
        raise InputError(f"scale {scale!r} must be a positive number, such as 1, 1/32, 1/sqrt(64)")
    return value


def attention_resolution(
    f: object,
    length: object = None,
    *,
    scale: object = None,
    mask: object = None,
    budget_s: float = BUDGET_S,
    **values: object,
) -> Resolution:
    """The attention resolution of a bias or of measured scores (equation 4 of [S]).

    Args:
        f: a formula in `n`, a SymPy expression, a name of the catalogue or an `Encoding`. For RoPE
            and xPos their surrogates are taken. Or scores `s_0, s_1, ...`: a one-dimensional
            array of at least two finite numbers.
        length: tokens T of the row, at least 2: the sum ends at `N = T - 2`. None: the limit of
            ever longer rows, or all scores of an array.
        scale: a positive factor of the scores; 1 where nothing is said. For a surrogate `1/32`
            (the mean over d/2 = 32 planes) and `1/sqrt(64)` are the other readings of [S].
        mask: None, `"window W"` or `"bca HALF"`, in tokens.
        budget_s: seconds; whatever is open after them stays unknown.
        **values: parameters and options, as `farfield.theory.encodings.encoding` takes them.

    Raises:
        InputError: scores that are not finite, too few, or not one-dimensional; a length below 2
            or beyond the scores; a scale that is not positive; free parameters.

    >>> attention_resolution("-2*log(1+n)").value
    0.292871879797...
    >>> attention_resolution([1.0, 0.5, 0.0]).last
    'the last score given, s_2'
    """
    factor, hidden = read_scale(scale), read_mask(mask)
    if _is_scores(f):
        if values:
            raise InputError(f"measured scores have no parameters; {', '.join(values)} given")
        return _of_scores(f, length, factor, hidden)
    tokens = None if length is None else natural(length, "length", 2)
    subject = resolve(f, values, tokens)
    if subject.bca is not None:
        if hidden != CAUSAL:
            raise InputError(f"the encoding has a mask, bca {subject.bca}; mask {mask!r} besides")
        hidden = Mask(bca=subject.bca)
    _mask_fits(hidden, tokens)
    return per_head(
        subject,
        Resolution(None, tokens, factor, str(hidden) or "none"),
        lambda p: _of_bias(p, tokens, factor, hidden),
        _mean,
        outside=lambda given: None if given.biases else given.out_of_scope,
        budget_s=budget_s,
    )


def _is_scores(f: object) -> bool:
    """A list or array of numbers, told from text, formula and encoding."""
    return isinstance(f, np.ndarray) or (
        isinstance(f, Iterable)
        and not isinstance(f, (str, Expr))
        and hasattr(f, "__len__")
        and not any(isinstance(x, (str, Expr)) for x in f)
    )


def _mask_fits(mask: Mask, tokens: int | None) -> None:
    if mask.bca is not None and tokens is not None and tokens < 2 * mask.bca:
        raise InputError(
            f"length {tokens} is shorter than the two blocks of {mask}; accepted: a length of at "
            f"least {2 * mask.bca}, or none"
        )


def _mean(heads: tuple[Resolution, ...]) -> Resolution:
    """The heads' mean; it is only as certain as the least certain head."""
    worst = deciding_head(heads, lambda h: h.label is Label.APPROXIMATE)
    low, high = (_mean_of([h.enclosure and h.enclosure[i] for h in heads]) for i in (0, 1))
    enclosure = None
    if low is not None and high is not None:
        enclosure = (math.nextafter(low, -math.inf), math.nextafter(high, math.inf))
    return replace(
        worst,
        formula=None,
        last=heads[0].last,
        value=_mean_of([h.value for h in heads]),
        enclosure=enclosure,
        bounds=None,
        limit=_mean_of([h.limit for h in heads]),
        rows=None,
        heads=heads,
    )


def _mean_of(values: Sequence[float | None]) -> float | None:
    """The mean where every value is known."""
    finite = [v for v in values if v is not None]
    return math.fsum(finite) / len(values) if len(finite) == len(values) else None


# -- biases ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Row:
    """The scores of one row, in floats and in balls.

    Args:
        floats: count -> the first scores, shape (count,).
        weights: count -> exp of the first scores as balls, up to a common factor: R does not
            change, and no term is out of range.
        bias: the formula that all of them follow; None for given scores.
    """

    floats: Callable[[int], np.ndarray]
    weights: Callable[[int], list[arb]]
    bias: Expr | None = None


def _of_bias(p: Expr, tokens: int | None, scale: Expr, mask: Mask) -> Fields:
    """The resolution of one row, or of all rows as they grow, under the mask."""
    bias = p if scale == 1 else scale * p
    if tabulate(bias, np.arange(1))[0] == -np.inf:
        raise InputError("b_0 = exp(p(0)) must be positive, and the bias is -oo at n = 0")
    row = _Row(partial(bias_row, bias), partial(_terms, bias), bias)
    if mask.bca is not None:
        fields = _of_blocks(row, mask.bca)
        return fields | {"limit": fields.get("value")}
    cut = mask.window is not None and (tokens is None or mask.window <= tokens - 1)
    terms = mask.window if cut else None if tokens is None else tokens - 1
    if terms is None:
        fields = _limit(bias)
        return fields | {"limit": fields.get("value"), "last": "the limit"}
    fields = _finite(row, terms, cut)
    whole = fields if cut else _limit(bias) if mask.window is None else {}
    return fields | {
        "last": "-oo, masked" if cut else f"p({terms}) at the scale",
        "bounds": _bounds(row.floats(terms + 1), terms, cut) if terms <= MAX_FLOATS else None,
        "limit": whole.get("value"),
    }


_BLOCKS = Reason(Code.BOUNDED_SUPPORT, "mean over the rows of a block beyond the first")


def _certified(ball: arb) -> Fields:
    """The ball's middle with its ends rounded outward; unknown where they are far apart."""
    fields = numeric(ball)
    if math.isinf(fields.get("value", 0.0)):
        return unknown(Reason(Code.TOO_LARGE, "it is too large for a float64"))
    return fields if "value" in fields else unknown(fields["reason"])


def _shifted(bias: Expr) -> Expr:
    """p(n) + p(n + 1)."""
    return bias + bias.subs(n, n + 1)


def _limit(bias: Expr) -> Fields:
    """(sum b_n^2 - sum b_n b_(n+1))/B^2; 0 where the series diverges and p is bounded above."""
    try:
        s = summed(bias)
        return _certified(to_arb(at_precision(lambda: _limit_ball(bias, s), BITS)))
    except Diverging:
        reason = "the exp-series diverges and p is "
        if not skipped_terms(bias) and bounded_above(bias):
            why = Reason(Code.DIVERGES, reason + "bounded above")
            return {"value": 0.0, "enclosure": (0.0, 0.0), "label": Label.THEOREM, "reason": why}
        return unknown(Reason(Code.NO_LIMIT, reason + "not known to be bounded above"))
    except Unreachable as why:
        return unknown(reason_of(why))


def _limit_ball(bias: Expr, s: Series) -> arb:
    """The limit by three certified sums; products one by one where they have no series."""
    squares = series(2 * bias)
    total = to_arb(s.total())
    try:
        products = exp_series(_shifted(bias)).total()
    except Unreachable:
        products = _neighbours(s, squares)
    return (to_arb(squares.total()) - to_arb(products)) / total**2


def _neighbours(s: Series, squares: Series) -> arb:
    """sum x_i x_{i+1}: the first terms one by one; of the rest, it is at most `sqrt(Q_M Q_{M+1})`
    (Cauchy-Schwarz), and at least 0, or `Q_{M+1}` where the terms fall from M on."""
    x = [to_arb(s.term(i)) for i in range(FIRST_TERMS + 1)]
    inner = sum((a * b for a, b in itertools.pairwise(x)), arb(0))
    here, after = to_arb(squares.tail(FIRST_TERMS)), to_arb(squares.tail(FIRST_TERMS + 1))
    since = s.last[0].falls_from() if s.kernel is not None else None
    falls = since is not None and since <= FIRST_TERMS
    low, high = (after if falls else arb(0)), (here * after).sqrt()
    return inner + low.union(high)


def _finite(row: _Row, terms: int, cut: bool) -> Fields:
    """R of `x_0 .. x_{terms-1}`, with `x_terms` or, if cut, 0 after them."""
    if terms <= MAX_BALLS:
        try:
            return _certified(to_digits(lambda: _direct(row.weights(terms + 1), cut), BITS))
        except Unreachable as why:
            return unknown(reason_of(why))
    try:
        if row.bias is not None:
            parts = [exp_series(q) for q in (row.bias, 2 * row.bias, _shifted(row.bias))]

            def closed() -> arb:
                b, q = (to_arb(part.partial(terms)) for part in parts[:2])
                c = to_arb(parts[2].partial(terms - 1 if cut else terms))
                return (q - c) / b**2

            return _certified(to_digits(closed, BITS + 2 * terms.bit_length()))
    except (Unreachable, ValueError):
        check_time()
        if terms > MAX_FLOATS:
            reason = f"{terms} terms would have to be summed one by one"
            return unknown(Reason(Code.NO_ENCLOSURE, reason))
    scores = row.floats(terms + 1)
    if cut:
        scores[terms] = -np.inf
    return {"value": float(resolution_curve(scores)[-1]), "label": Label.APPROXIMATE}


def _direct(x: list[arb], cut: bool) -> arb:
    """The same of one row and the weight after it, term by term."""
    *_, (gained, last, total) = _windows(x[:-1])
    return (gained + last * (last - (0 if cut else x[-1]))) / total**2


def _terms(bias: Expr, count: int) -> list[arb]:
    """exp(p(n)) for n < count."""
    weight = compile_ball(sympy.exp(bias))
    return [to_arb(weight({n: fmpq(i)})) for i in range(count)]


def _windows(x: list[arb]) -> Iterator[tuple[arb, arb, arb]]:
    """sum x_i (x_i - x_{i+1}) before the last term, this term, and sum x_i, of the first 1, 2, ...
    terms."""
    gained, total = arb(0), arb(0)
    for new, after in itertools.zip_longest(x, x[1:], fillvalue=arb(0)):
        total += new
        yield gained, new, total
        gained += new * (new - after)


def _of_blocks(row: _Row, half: int) -> Fields:
    """Blockwise causal attention: rows see half + 1 to 2 half keys, in equal shares."""
    each = windowed_curve(row.floats(2 * half))[half:]
    if 2 * half <= MAX_BALLS:
        fields = _certified(to_digits(lambda: _block_mean(row.weights(2 * half)), BITS))
    else:
        fields = {"value": float(each.mean()), "label": Label.APPROXIMATE}
    span = (float(each.min()), float(each.max()))
    return {"reason": _BLOCKS} | fields | {"last": "-oo, masked", "rows": span}


def _block_mean(x: list[arb]) -> arb:
    """The mean over the rows of the second block, each from the one before."""
    half = len(x) // 2
    rows = itertools.islice(_windows(x), half, None)
    return sum(((gained + new * new) / total**2 for gained, new, total in rows), arb(0)) / half


# -- scores in float64 ----------------------------------------------------------------------------


def _bounds(scores: np.ndarray, terms: int, cut: bool) -> tuple[float | None, float]:
    """The theorem's bounds; the lower one only for a non-increasing row."""
    s = scores[: terms + 1].copy()
    if cut:
        s[terms] = -np.inf
    slack = ROUNDOFF * (64 + 8 * terms)  # e^-x x is at most 1/e: exponents add no more
    with np.errstate(over="ignore"):
        weight = np.exp(s - s[:-1].max())
    share = weight / weight[:-1].sum()
    top, last = float(share[0]), float(share[-1])
    if (s[1:] <= s[:-1]).all():
        low = (top**2 - last**2) / 2 - slack * top
        return max(0.0, low), min(1.0, top * (top - last) + slack * top)
    return None, min(1.0, float((share[:-1] ** 2).sum()) + slack)


def _scores(given: object) -> np.ndarray:
    """A list of finite numbers as float64; others are refused with the reason."""
    wanted = "a one-dimensional list of at least two finite numbers"
    s = floats(given, "the list of scores", wanted)
    if s.ndim != 1:
        raise InputError(f"the scores have shape {s.shape}; accepted: {wanted}")
    if len(s) < 2:
        raise InputError(f"{len(s)} score(s) given: s_(N+1) must exist; accepted: {wanted}")
    bad = np.flatnonzero(~np.isfinite(s))
    if len(bad):
        raise InputError(f"score s_{bad[0]} is {s[bad[0]]}; accepted: {wanted}")
    return s


def _of_scores(given: object, length: object, scale: Expr, mask: Mask) -> Resolution:
    """The resolution of given scores, which are taken to be exact."""
    s, factor = _scores(given), float(scale)
    if (np.abs(s) > MAX_SCORE / factor).any():
        raise InputError(f"scores times scale {scale} exceed {MAX_SCORE:g}; accepted: smaller ones")
    tokens = len(s) if length is None else natural(length, "length", 2)
    if tokens > len(s):
        raise InputError(f"length {tokens} needs scores up to s_{tokens - 1}; {len(s)} given")
    _mask_fits(mask, tokens)
    multiplied, top = compile_ball(scale), float(s[:tokens].max())

    def weights(count: int) -> list[arb]:
        c = to_arb(multiplied({}))
        return [((arb(x) - top) * c).exp() for x in s[:count].tolist()]

    row = _Row(lambda count: s[:count] * factor, weights)
    cut = mask.window is not None and mask.window < tokens
    terms = mask.window if cut and mask.window is not None else tokens - 1
    if mask.bca is not None:
        fields = _of_blocks(row, mask.bca)
    else:
        bounds = _bounds(row.floats(terms + 1), terms, cut)
        last = "-oo, masked" if cut else f"the last score given, s_{tokens - 1}"
        fields = _finite(row, terms, cut) | {"bounds": bounds, "last": last}
    label = Label.MEASURED if "value" in fields else None
    return replace(
        Resolution(None, tokens, scale, str(mask) or "none"), **fields | {"label": label}
    )
