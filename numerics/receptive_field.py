r"""The theoretical receptive field: how many of the nearest keys hold all but eps of B.

    TRF(eps) = min { j >= 0 : T_j < eps B }                                     [Q, Eq. 22]
    finite-row TRF(eps, N) = min { j : B_N - B_j < eps B_N }                    (ours)

`T_j` falls as j grows, so an integer j is the answer as soon as balls prove `T_j < eps B` and
`T_{j-1} >= eps B`. The search between is free to guess: Newton's method on `log T` against j and
against `log j`, in turns, with bisection. An exact tie `T_j = eps B` cannot be seen by balls; it
is settled exactly for rational terms, for geometric series and for hypergeometric ones that
telescope, otherwise the answer is a bracket.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy
from flint import arb, ctx, fmpq
from sympy import Expr

from farfield.numerics.budget import until
from farfield.numerics.outcomes import Unreachable, Unrecognised
from farfield.numerics.summation.families import Geometric
from farfield.numerics.summation.normal_form import sign
from farfield.numerics.summation.series import Series, series
from farfield.numerics.summation.telescoping import share
from farfield.theory.encodings import Encoding, encoding
from farfield.theory.functions.balls import Undefined, precision, rational, to_arb
from farfield.theory.results import InputError, Result, exact
from farfield.theory.values import tabulate

EXTRA_BITS = 256
COARSE_BITS = 64
MAX_EPS_BITS = 4_096
MAX_LENGTH = 10**15
MAX_STEPS = 40
MAX_VERDICTS = 512
MAX_FLOAT_LENGTH = 2 * 10**7
BLOCKWISE = "blockwise causal attention is not a function of the distance alone"


@dataclass(frozen=True)
class Exact:
    """The integer itself, certified by two ball comparisons."""

    tokens: int


@dataclass(frozen=True)
class Enclosure:
    """The `depth`-fold logarithm of an integer too large to write lies in [low, high]."""

    depth: int
    low: float
    high: float


@dataclass(frozen=True)
class Bracket:
    """The integer lies in [low, high]; `high` is None where no upper bound was reached."""

    low: int
    high: int | None


Answer = Exact | Enclosure | Bracket
Grid = tuple[sympy.Rational, ...]


@dataclass(frozen=True)
class ReceptiveField(Result):
    """A theoretical receptive field.

    Fields:
        formula: the bias, None where several heads are aggregated.
        eps: the share of the mass that is left out, exact.
        length: keys in the row for the finite-row TRF, None for the whole series.
        tokens: the integer, the worst head's; None where a head diverges or has no exact answer.
        answer: `Exact`, `Enclosure` or `Bracket`; None where there is none.
        total: B (of the row, if `length` is given) as a ball.
        verdict: what is known of the exp-series (`converges`, `diverges`, ...).
        heads: one result a head where there are several, else empty.
        aggregation: `worst head` where there are several heads.
        asymptotics: TRF(eps) as eps -> 0, in LaTeX, where it is known.
        reason: why `tokens` is None.
        label: `certified`; `approximate` where only float64 sums were in reach; `none` where there
            is no answer, but for a series that diverges.
    """

    formula: Expr | None
    eps: sympy.Rational
    length: int | None = None
    tokens: int | None = None
    answer: Answer | None = None
    total: Any = field(default=None, compare=False)
    verdict: str = "converges"
    heads: tuple[ReceptiveField, ...] = ()
    aggregation: str | None = None
    asymptotics: str | None = None
    reason: str = ""
    label: str = "certified"

    def text(self) -> str:
        row = f", row of {self.length} keys" if self.length else ""
        head = f" ({self.aggregation} of {len(self.heads)})" if self.heads else ""
        label = f"  [{self.label}]" if self.answer else ""
        eps = str(self.eps)
        eps = eps if len(eps) <= 40 else f"about {self.eps.evalf(4)}"
        lines = [f"TRF({eps}{row}) = {self._answer_text()}{head}{label}"]
        if self.reason:
            lines.append(f"  {self.reason}")
        if self.heads:
            each = ", ".join(h._answer_text() for h in self.heads)
            lines.append(f"  by head: {each}")
        if self.formula is not None:
            lines.insert(1, f"  p(n) = {self.formula}")
        if self.total is not None:
            lines.append(f"  B = {_ball_text(self.total)}")
        return "\n".join(lines)

    def _answer_text(self) -> str:
        if isinstance(self.answer, Exact):
            digits = str(sympy.Integer(self.answer.tokens))
            shown = digits if len(digits) <= 60 else f"{digits[:12]}...{digits[-6:]}"
            return f"{shown} tokens" + (f" ({len(digits)} digits)" if len(digits) > 60 else "")
        if isinstance(self.answer, Enclosure):
            return f"exp^{self.answer.depth}([{self.answer.low!r}, {self.answer.high!r}]) tokens"
        if isinstance(self.answer, Bracket):
            if self.answer.high is None:
                return f"at least {self.answer.low} tokens"
            return f"between {self.answer.low} and {self.answer.high} tokens"
        return "infinite" if self.verdict == "diverges" and self.length is None else "unknown"

    def _repr_latex_(self) -> str | None:
        return None if self.asymptotics is None else f"${self.asymptotics}$"


def _ball_text(ball: Any) -> str:
    return str(ball) if isinstance(ball, fmpq) else str(ball.str(20))


def theoretical_receptive_field(
    f: Any, eps: Any, *, length: Any = None, budget_s: float = 60.0, **values: Any
) -> Any:
    """The theoretical receptive field [Q, Eq. 22] of a bias, an exact integer.

    Args:
        f: a formula in `n`, a SymPy expression, a name of the catalogue or an `Encoding`.
        eps: the share of the mass left out, 0 < eps < 1, read exactly; or a sequence of them.
        length: a number of keys, for the finite-row TRF, which exists for divergent series too.
        budget_s: seconds after which the best bracket is returned.
        **values: parameters and options, as `farfield.theory.encodings.encoding` takes them.

    Returns:
        A `ReceptiveField`; a tuple of them where `eps` is a sequence.

    Raises:
        InputError: eps outside (0, 1); free parameters; terms that are undefined or infinite.

    >>> theoretical_receptive_field("-2*log(1+n)", "0.01").tokens
    61
    >>> theoretical_receptive_field("alibi", "1/10").tokens
    590
    >>> theoretical_receptive_field("-log(1+n)", "1/10", length=1000).tokens
    473
    """
    subject = resolve(f, values)
    row = None if length is None else natural(length, "length")
    many = isinstance(eps, Iterable) and not isinstance(eps, (str, bytes))
    grid = tuple(_eps(e) for e in (eps if many else (eps,)))
    results = _of_encoding(subject, grid, row, time.monotonic() + _seconds(budget_s))
    return results if many else results[0]


def resolve(f: Any, values: dict[str, Any]) -> Encoding:
    """The encoding that is meant, with a value for every parameter."""
    subject = encoding(f, **values)
    if subject.free:
        names = ", ".join(p.name for p in subject.free)
        raise InputError(
            f"{subject.name[:60]} has free parameters: give values for {names}, or write its "
            "formula with numbers"
        )
    return subject


def natural(value: Any, what: str, least: int = 1) -> int:
    """An integer from `least` to MAX_LENGTH."""
    number = exact(value, what)
    if not number.is_Integer or not least <= number <= MAX_LENGTH:
        raise InputError(f"{what} {value!r} must be an integer from {least} to 10^15")
    return int(number)


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise InputError(f"budget_s {str(value)[:40]} must be a number of seconds, at least 0")
    return float(value)


def _eps(value: Any) -> sympy.Rational:
    wanted = "eps must be a number with 0 < eps < 1, such as 1/100"
    try:
        eps = exact(value, "eps")
    except ValueError as error:
        text = str(error) if isinstance(error, InputError) else "eps has too many digits"
        raise InputError(f"{text}; {wanted}") from None
    if not 0 < eps < 1:
        shown = str(value) if int(abs(eps.p)).bit_length() < 200 else "given"
        raise InputError(f"eps {shown[:40]} is outside (0, 1); {wanted}")
    if int(eps.q).bit_length() > MAX_EPS_BITS:
        raise InputError(f"eps has a denominator of more than {MAX_EPS_BITS} bits; {wanted}")
    return eps


def _of_encoding(
    subject: Encoding, grid: Grid, length: int | None, deadline: float
) -> tuple[ReceptiveField, ...]:
    if subject.bca is not None or not subject.biases:
        verdict, reason = "out_of_scope", subject.out_of_scope or ""
        if subject.bca is not None:
            verdict = "converges"
            reason = f"{BLOCKWISE}; every row sees at most {2 * subject.bca} keys"
        return tuple(
            ReceptiveField(None, e, length, verdict=verdict, reason=reason, label="none")
            for e in grid
        )
    known = {b: _of_bias(b, grid, length, deadline) for b in dict.fromkeys(subject.biases)}
    return tuple(_worst(tuple(known[b][i] for b in subject.biases)) for i in range(len(grid)))


def _worst(heads: tuple[ReceptiveField, ...]) -> ReceptiveField:
    if len(heads) == 1:
        return heads[0]
    open_heads = [h for h in heads if h.answer is None]
    if open_heads:
        bad = next((h for h in open_heads if h.verdict == "diverges"), open_heads[0])
        names = ", ".join(str(i + 1) for i, h in enumerate(heads) if h.answer is None)
        worst = ReceptiveField(
            None, bad.eps, bad.length, verdict=bad.verdict, label=bad.label,
            reason=f"head {names}: {bad.reason}",
        )  # fmt: skip
    else:
        worst = max(heads, key=lambda h: _bounds(h.answer)[1])
        low = max(_bounds(h.answer)[0] for h in heads)
        if not isinstance(worst.answer, Exact) and _bounds(worst.answer)[0] < low:
            rivals = [h.tokens or 0 for h in heads]
            if isinstance(worst.answer, Bracket):
                answer = Bracket(max(*rivals, worst.answer.low), worst.answer.high)
                worst = dataclasses.replace(worst, answer=answer)
    label = "approximate" if any(h.label == "approximate" for h in heads) else worst.label
    return ReceptiveField(
        None, worst.eps, worst.length, worst.tokens, worst.answer, worst.total, worst.verdict,
        heads, "worst head", worst.asymptotics, worst.reason, label,
    )  # fmt: skip


def _bounds(answer: Answer | None) -> tuple[float, float]:
    """Lower and upper bound of log(1 + tokens), to order the heads."""
    if isinstance(answer, Exact):
        return (math.log(1 + answer.tokens),) * 2
    if isinstance(answer, Enclosure):
        return answer.low, answer.high
    if isinstance(answer, Bracket):
        high = math.inf if answer.high is None else math.log(1 + answer.high)
        return math.log(1 + answer.low), high
    return math.inf, math.inf


def _of_bias(
    bias: Expr, grid: Grid, length: int | None, deadline: float
) -> tuple[ReceptiveField, ...]:
    s = series(bias)
    if length is None:
        verdict, reason = verdict_of(s)
        if reason:
            label = "certified" if verdict == "diverges" else "none"
            return tuple(
                ReceptiveField(bias, e, verdict=verdict, reason=reason, label=label) for e in grid
            )
    kept = s if length is None else s.truncated(length)
    compare = _Comparison(kept)
    with until(deadline):
        return tuple(_solved(compare, bias, e, length, deadline) for e in grid)


_VERDICTS: dict[Expr, str] = {}


def verdict_of(s: Series) -> tuple[str, str]:
    """The verdict on the series, and why there are no certified sums; empty if there are."""
    if s.converges:
        return "converges", ""
    verdict = "diverges"
    if s.converges is None:
        from farfield.theory.convergence import check_convergence

        verdict = _VERDICTS.get(s.bias) or str(check_convergence(s.bias).verdict)
        if verdict in ("converges", "diverges") and len(_VERDICTS) < MAX_VERDICTS:
            _VERDICTS[s.bias] = verdict
    if verdict == "diverges":
        return verdict, (
            "the exp-series diverges: no finite number of keys holds a share of its mass"
        )
    if verdict == "converges":
        return verdict, f"the exp-series converges, but has no certified sum yet: {s.gap}"
    return verdict, f"the exp-series is {verdict.replace('_', ' ')}"


def _solved(
    compare: _Comparison, bias: Expr, eps: sympy.Rational, length: int | None, deadline: float
) -> ReceptiveField:
    verdict = "converges" if length is None else "finite row"
    try:
        bits = compare.series.first_bits
        at_precision(lambda: compare.total(ctx.prec), bits)
        answer, reason = _search(compare, eps, deadline)
        total = compare.totals[max(compare.totals)]
    except Unreachable as why:
        if length is None:
            return ReceptiveField(bias, eps, length, verdict=verdict, reason=str(why), label="none")
        return _by_floats(bias, eps, length, str(why))
    tokens = answer.tokens if isinstance(answer, Exact) else None
    return ReceptiveField(
        bias, eps, length, tokens, answer, total, verdict,
        asymptotics=None if length else _asymptotics(compare.series), reason=reason,
    )  # fmt: skip


def _asymptotics(s: Series) -> str | None:
    kernel = s.last.kernel
    if kernel is None or s.support is not None:
        return None
    return None if isinstance(kernel, Geometric) and len(s.stretches) > 1 else kernel.asymptotics()


def at_precision(value: Callable[[], Any], bits: int) -> Any:
    """The value at `bits` bits or, where that is too few to define it, at up to 16 times more."""
    for factor in (1, 4, 16):
        with precision(bits * factor):
            try:
                result = value()
            except (Undefined, ZeroDivisionError):
                continue
            if isinstance(result, fmpq) or result.is_finite():
                return result
    raise Unreachable(f"a sum is not enclosed at {16 * bits} bits")


# -- the search -----------------------------------------------------------------------------------


class _Tie(Exception):
    """Balls do not decide T_j < eps B; the argument tells how near they are."""


def bits_for(j: int) -> int:
    """A precision that decides T_j < eps B but for an unlucky eps: terms are about T_j/j."""
    return 64 * (1 + (j.bit_length() + 32) // 64)


@dataclass
class _Comparison:
    """T_j against eps B; the totals are kept for each precision."""

    series: Series
    totals: dict[int, Any] = field(default_factory=dict)

    def total(self, bits: int) -> Any:
        """B at the precision `bits`, which must be at work."""
        if bits not in self.totals:
            self.totals[bits] = self.series.total()
        return self.totals[bits]

    def below(self, j: int, eps: sympy.Rational) -> tuple[bool, Any, Any]:
        """Whether T_j < eps B, proved; with T_j and eps B at the precision that decided it."""
        bits = max(bits_for(j), 0 if self.series.last.end is None else self.series.first_bits)
        last, near = bits + EXTRA_BITS, ""
        while bits <= last:
            with precision(bits):
                try:
                    goal = rational(eps) * self.total(bits)
                    tail = self.series.tail(j)
                except (Undefined, ZeroDivisionError):
                    bits *= 2
                    continue
                except Unreachable as why:
                    if not near:
                        raise
                    raise _Tie(f"{near}; {why}") from None
                if tail < goal or tail >= goal:
                    return bool(tail < goal), tail, goal
                gap = (abs(to_arb(tail - goal)) / to_arb(goal)).upper().mid()
                near = f"eps B differ by at most {gap.str(2, radius=False)} of them"
            tied = self._geometric_tie(j, eps)
            if tied is None and bits > bits_for(j):
                tied = self._telescoped(j, eps)
            if tied is not None:
                return tied, tail, goal
            bits *= 2
        raise _Tie(f"{near or 'eps B are not enclosed'}, as far as known")

    def _telescoped(self, j: int, eps: sympy.Rational) -> bool | None:
        """By the exact T_j/B of a hypergeometric series from 0 that telescopes."""
        if len(self.series.stretches) > 1 or self.series.last.end is not None:
            return None
        exact_share = share(self.series.bias)
        found = None if exact_share is None else exact_share(j)
        return None if found is None else bool(found < rational(eps))

    def _geometric_tie(self, j: int, eps: sympy.Rational) -> bool | None:
        """T_j/B = e^{alpha j} exactly, for a geometric series from 0."""
        s = self.series.last
        if len(self.series.stretches) > 1 or s.end is not None:
            return None
        if not isinstance(s.kernel, Geometric) or j.bit_length() > 64:
            return None
        try:
            return sign(s.kernel.alpha * j - sympy.log(eps)) < 0
        except Unrecognised:
            return None


def _search(compare: _Comparison, eps: sympy.Rational, deadline: float) -> tuple[Answer, str]:
    """The least j with T_j < eps B; T_0 = B is never below, as eps < 1."""
    s = compare.series
    low, high, step, vast, most = 0, s.support, 0, False, s.max_bits
    guesses = foreseen = _foreseen(compare, eps) or [1]
    while high is None or high - low > 1:
        if time.monotonic() > deadline:
            return Bracket(low + 1, high), "the time budget was spent"
        if high is None and low.bit_length() > COARSE_BITS and not vast:
            if _beyond(s, eps):
                return _enclosure(s, eps, 1 << most)
            vast = True
        if high is None and low.bit_length() > most:
            return Bracket(low + 1, None), _beyond_reason(most)
        j = foreseen[0] if step == 0 else _choose(guesses, low, high, step)
        try:
            below, tail, goal = compare.below(j, eps)
        except _Tie as near:
            return _tied(compare, eps, j, low, high, str(near))
        low, high = (low, j) if below else (j, high)
        guesses = _newton(s, j, tail, goal)
        if foreseen[0] in (low, high):
            guesses += foreseen[1:]
        step += 1
    return Exact(high), ""


def _foreseen(compare: _Comparison, eps: sympy.Rational) -> list[int]:
    """The kernel's own guess of the answer, and its neighbour."""
    s = compare.series

    def goal(bits: int) -> Any:
        with precision(bits):
            return to_arb(rational(eps) * compare.total(bits))

    if s.last.kernel is None or s.last.end is not None:
        return []
    try:
        guess = s.last.kernel.foresee(goal)
    except (Undefined, ZeroDivisionError, Unreachable):
        return []
    return [] if guess is None else [guess, guess - 1]


def _choose(guesses: list[int], low: int, high: int | None, step: int) -> int:
    """A guess inside the bracket; every fifth step, or without one, the middle."""
    if high is None:
        far = max(16, low * low)
        fit = [g for g in guesses if g > low]
        return min(max(fit), far) if fit else far
    fit = [g for g in guesses if low < g < high]
    if not fit:
        fit = [low + 1] if low in guesses else [high - 1] if high in guesses else []
    if fit and step % 5 != 4:
        return fit[step % len(fit)]
    return math.isqrt(low * high) if low and high > 4 * low else (low + high) // 2


def _newton(s: Series, j: int, tail: Any, goal: Any) -> list[int]:
    """Where log T, taken as linear in j and as linear in log j, meets the goal."""
    with precision(128 + j.bit_length()):
        try:
            density = to_arb(s.term(j))
        except Undefined:
            return []
        if not (density > 0 and tail > 0):
            return []
        move = (to_arb(tail) / to_arb(goal)).log() * to_arb(tail) / density
        guesses = []
        for x in (arb(j) + move, arb(j) * (move / max(j, 1)).exp()):
            if x.is_finite() and x > 0 and x < arb(2) ** (2 * s.max_bits):
                guesses.append(int(x.mid().ceil().unique_fmpz()))
        return guesses


def _tied(
    compare: _Comparison, eps: sympy.Rational, j: int, low: int, high: int | None, near: str
) -> tuple[Answer, str]:
    reason = f"T_{j} and {near}: {j} if T_{j} is less, otherwise {j + 1}"
    try:
        if not compare.below(j - 1, eps)[0] and compare.below(j + 1, eps)[0]:
            return Bracket(j, j + 1), reason
    except _Tie:
        pass
    below = _decided(compare, eps, low, j, False)
    above = _decided(compare, eps, j, high, True)
    return Bracket(1 + (below or 0), above), f"at {j} T_j and {near}"


def _decided(
    compare: _Comparison, eps: sympy.Rational, low: int, high: int | None, want: bool
) -> int | None:
    """By halves, the nearest end of what balls decide: the largest j seen with T_j >= eps B
    (`want` False, from the decided `low` up), or the least with T_j < eps B."""

    def proved(j: int) -> bool:
        try:
            return compare.below(j, eps)[0] == want
        except (_Tie, Unreachable):
            return False

    if want and high is None:
        high = 2 * low + 1
        for _ in range(MAX_STEPS):
            if proved(high):
                break
            low, high = high, high * high
            if high.bit_length() > compare.series.max_bits:
                return None
    assert high is not None
    for _ in range(MAX_STEPS):
        if high - low <= 1:
            break
        middle = math.isqrt(low * high) if low and high > 4 * low else (low + high) // 2
        if proved(middle) is want:
            high = middle
        else:
            low = middle
    return high if want else low


def _beyond_reason(bits: int) -> str:
    return f"the answer has more than {bits} bits"


def _beyond(s: Series, eps: sympy.Rational) -> bool:
    """Whether the answer is proved to lie beyond 2^max_bits, by int_j^oo <= T_j."""
    kernel = s.last.kernel
    with precision(256):
        try:
            lower = kernel.integral(arb(2) ** s.max_bits) if kernel is not None else arb(0)
            return bool(lower >= rational(eps) * s.total())
        except Unreachable:
            return False


def _enclosure(s: Series, eps: sympy.Rational, low: int) -> tuple[Answer, str]:
    """log TRF for an answer beyond low = 2^max_bits, from int_j^oo <= T_j <= int_j^oo + b_j."""
    kernel, reason = s.last.kernel, _beyond_reason(s.max_bits)
    assert kernel is not None
    with precision(256):
        goal = rational(eps) * s.total()
        far_out = kernel.far(goal)
        if far_out is not None:
            depth, y = far_out
            down, up = float(y.lower()), float(y.upper())
            return Enclosure(depth, math.nextafter(down, -1), math.nextafter(up, math.inf)), reason

        def side(at: arb) -> int:
            """-1: TRF > e^at is proved; 1: TRF <= e^at + 1; 0: neither."""
            x = at.exp()
            if kernel.integral(x) + kernel.density(x) < goal:
                return 1
            return -1 if kernel.integral(x + 1) >= goal else 0

        try:
            near, far = arb(low).log().mid(), arb(low).log().mid() * 2
            while side(far) < 1:
                near, far = (far if side(far) < 0 else near), far * 2
                if far > 2**60:
                    return Bracket(low + 1, None), reason
            for _ in range(64):
                middle = ((near + far) / 2).mid()
                where = side(middle)
                if where == 0:
                    break
                near, far = (middle, far) if where < 0 else (near, middle)
        except Unreachable:
            return Bracket(low + 1, None), reason
        down, up = math.nextafter(float(near), 0), math.nextafter(float(far), math.inf)
        return Enclosure(1, down, math.nextafter(up, math.inf)), reason


# -- float64 --------------------------------------------------------------------------------------


def _by_floats(bias: Expr, eps: sympy.Rational, length: int, why: str) -> ReceptiveField:
    """The finite-row TRF from float64 sums: labelled approximate, None too near to a threshold."""
    if length > MAX_FLOAT_LENGTH:
        return ReceptiveField(bias, eps, length, verdict="finite row", reason=why, label="none")
    values = tabulate(bias, np.arange(length)).astype(np.longdouble)
    with np.errstate(over="ignore"):
        weights = np.exp(values)
    if np.isnan(values).any():
        at = int(np.argmax(np.isnan(values)))
        raise InputError(f"the bias is undefined or infinite at n = {at}")
    if not np.isfinite(weights).all():
        return ReceptiveField(bias, eps, length, verdict="finite row", reason=why, label="none")
    tails = np.append(np.cumsum(weights[::-1])[::-1], 0)
    goal = tails[0] * np.longdouble(eps.p) / np.longdouble(eps.q)
    j = int(np.argmax(tails < goal))
    margin = min(goal - tails[j], tails[j - 1] - goal) / tails[0]
    if not margin > 1e-11:
        return ReceptiveField(
            bias, eps, length, verdict="finite row", answer=Bracket(max(1, j - 1), j + 1),
            reason="too near to a threshold for float64 sums", label="approximate",
        )  # fmt: skip
    return ReceptiveField(
        bias, eps, length, j, Exact(j), arb(float(tails[0]), float(tails[0]) * 1e-9), "finite row",
        reason=f"{why}; float64 sums", label="approximate",
    )  # fmt: skip
