r"""Biases that depend on the row (ours).

A row of i keys has logits `x + p_i(n)`, content `|x| <= beta_i` free. Keeping its j nearest keys,
the worst error is exactly (a maximum over inputs):

    2 V T / (T + e^{-2 beta_i} B),    B = sum_{n<j} e^{p_i(n)},    T = sum_{j<=n<i} e^{p_i(n)}.

Such an encoding is windowable exactly if the supremum over rows `i > j` of `e^{2 beta_i} T/B` tends
to 0. That is decided for two kinds: `f(psi(n)/psi(i))`, as FIRE has it, never (`normalised-bias`);
`s(i) p(n)` with content scaled by c(i), as SSMax has it, by the limits of s and c and the
exp-series of `t p` (`scaled-bias`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import sympy
from flint import arb, fmpq
from sympy import Expr, Integer, Rational, S, Symbol

from farfield.numerics.float_rows import bias_row
from farfield.numerics.heads import BUDGET_S, within
from farfield.theory.algebra.exceptions import OutOfTime
from farfield.theory.answers.answer import Code, InputError, Label, Reason, Status
from farfield.theory.answers.number import natural
from farfield.theory.convergence import Verdict, check_convergence
from farfield.theory.decision.differences import limit_of_difference
from farfield.theory.encodings import encoding
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import Undefined, precision, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.mechanisms import CONTENT, VALUES
from farfield.theory.values import compile_ball
from farfield.theory.windowability import Windowable, of_mechanism

MAX_ROW = 10**7  # keys of a row that is tabulated
NEAR = tuple(fmpq(1, 1 << k) for k in (1, 4, 16, 64))
"""Ends of the stretches [0, d] on which a function is tried to be bounded."""


class RowBias:
    """A bias that depends on the row: `p_i(n)` for a row of i keys."""

    def row(self, keys: object) -> Expr:
        """The bias of a row, a formula in the distance `n`.

        Args:
            keys: of the row, i, at least 1.

        Raises:
            InputError: a row in which it is not defined.
        """
        raise NotImplementedError

    def bias(self, keys: object) -> np.ndarray:
        """The bias of a row at distances 0 .. i - 1, float64, shape (i,)."""
        count = natural(keys, "keys")
        if count > MAX_ROW:
            raise InputError(f"a row of {count} keys; at most {MAX_ROW} are tabulated")
        return bias_row(self.row(count), count)

    @property
    def windowable(self) -> Windowable:
        """Whether one window matches full attention to any accuracy you ask for, in all rows."""
        try:
            with within(BUDGET_S):
                return self._windowable()
        except OutOfTime as why:
            return _unknown(str(self), str(why))

    def _windowable(self) -> Windowable:
        raise NotImplementedError


@dataclass(frozen=True)
class NormalisedBias(RowBias):
    """A bias of the normalised distance, `f(psi(n)/psi(max(i, L)))` in a row of i keys, as FIRE has
    it (Li et al. 2024, Eq. 6).

    Args:
        f: a formula in `x`, the normalised distance.
        normaliser: psi, a formula in `n`, at least 0, growing without bound; `log(1+n)` is FIRE's.
        threshold: the length L in tokens below which rows are normalised alike.

    Raises:
        InputError: formulas that cannot be read, or have other symbols.

    >>> fire = NormalisedBias("-4*x", "log(1+n/2)", threshold=64)
    >>> fire.row(64), fire.bias(1024).round(3)[[0, 1, 1023]]
    (-4*log(n/2 + 1)/log(33), array([ 0.  , -0.26 , -3.999]))
    >>> fire.windowable.value, fire.windowable.theorem
    (False, 'normalised-bias')
    """

    f: str
    normaliser: str = "log(1+n)"
    threshold: int = 1

    def __post_init__(self) -> None:
        natural(self.threshold, "threshold")
        _in_one(self.f, "x", "f")
        _in_one(self.normaliser, "n", "normaliser")

    def row(self, keys: object) -> Expr:
        length = Integer(max(natural(keys, "keys"), int(self.threshold)))
        psi = _in_one(self.normaliser, "n", "normaliser")
        whole = psi.subs(n, length)
        if not whole.is_positive:
            raise InputError(f"normaliser {self.normaliser} must be positive at {length} tokens")
        return _in_one(self.f, "x", "f").xreplace({_X: psi / whole})

    def _windowable(self) -> Windowable:
        psi = _in_one(self.normaliser, "n", "normaliser")
        if limit_of_difference(psi, S.Zero) is not S.Infinity:
            return _unknown(str(self), "the normaliser is not proved to grow without bound")
        if not _bounded_near_zero(_in_one(self.f, "x", "f")):
            return _unknown(str(self), "f is not proved to be bounded near 0")
        return of_mechanism("row_dependent", str(self))


@dataclass(frozen=True)
class ScaledBias(RowBias):
    """A bias whose scale depends on the row: logits `c(i) x + s(i) p(n)` in a row of i keys.

    Args:
        formula: the bias p(n), without free parameters.
        scale: s, of the bias, a formula in `i`; positive.
        content: c, of the content logits, a formula in `i`; positive. Equal to `scale` where whole
            logits are scaled, as SSMax prints it; with `scale="1"` the query alone is scaled.

    Raises:
        InputError: formulas that cannot be read, or have other symbols.

    >>> scaled = ScaledBias("-log(1+n)/2", scale="log(i)", content="log(i)")
    >>> scaled.windowable.value                      # though the exp-series diverges
    True
    >>> ScaledBias("-n/8", content="log(i)").windowable.value      # the query scaled, of ALiBi
    False
    >>> ScaledBias("-n/8", scale="1+log(1+floor(i/8192))/10").windowable.value
    True
    """

    formula: str
    scale: str = "1"
    content: str = "1"

    def __post_init__(self) -> None:
        subject = encoding(self.formula)
        if subject.formula is None or subject.free or subject.num_heads > 1:
            raise InputError(f"{self.formula!r}: accepted is a bias p(n) without free parameters")
        for name in ("scale", "content"):
            _in_one(getattr(self, name), "i", name)

    @property
    def _bias(self) -> Expr:
        return encoding(self.formula).biases[0]

    def row(self, keys: object) -> Expr:
        count = natural(keys, "keys")
        factor = _in_one(self.scale, "i", "scale").xreplace({_I: Integer(count)})
        if not factor.is_nonnegative:
            raise InputError(f"scale {self.scale} is not 0 or more in a row of {count}")
        return factor * self._bias

    def _windowable(self) -> Windowable:
        subject = str(self)
        s, c = (_in_one(getattr(self, k), "i", k).xreplace({_I: n}) for k in ("scale", "content"))
        ends = {k: limit_of_difference(e, S.Zero) for k, e in (("scale", s), ("content", c))}
        for name, end in ends.items():
            if end is None or not end.is_extended_nonnegative:
                return _unknown(subject, f"the {name} is not proved to have a limit, 0 or more")
        value, why = self._decided(s, c, ends["scale"], ends["content"])
        if value is None:
            return _unknown(subject, why)
        hypotheses = (f"{CONTENT}, before it is scaled", why, VALUES)
        return Windowable(
            value, None, "scaled-bias", hypotheses, label=Label.THEOREM, subject=subject
        )

    def _decided(self, s: Expr, c: Expr, scale: Expr, content: Expr) -> tuple[bool | None, str]:
        """Whether it is windowable, and the case of `scaled-bias`, or what is missing."""
        p = self._bias
        falls = limit_of_difference(p, S.Zero)
        if falls is not S.NegativeInfinity:
            return None, "p is not proved to fall without bound"
        if p.has(S.NegativeInfinity):
            return None, "p masks some keys"
        if content is S.Infinity and scale is not S.Infinity:
            return False, "the content grows with the row, the bias does not"
        if scale is S.Zero:
            return False, "the bias fades as rows grow"
        if content is S.Infinity:
            ratio = limit_of_difference(sympy.log(c), sympy.log(s))
            if ratio is None:
                return None, "whether the content outgrows the bias is not decided"
            if ratio is S.Infinity:
                return False, "the content outgrows the bias"
        if scale is S.Infinity:
            quick = limit_of_difference(sympy.log(s), sympy.log(sympy.log(n + 2)))
            if quick is not None and quick is not S.NegativeInfinity:
                return True, "the bias is scaled by log(i) or more"
            if _converges(p, None):
                return True, "the scale grows, and the exp-series of t p converges for large t"
            return None, "whether the scale grows fast enough for p is not decided"
        constant = not s.has(n)
        beside = Rational(0 if constant else 1, 10**6)
        near = {_converges(p, scale * (1 + way * beside)) for way in (-1, 1)}
        if len(near) != 1 or None in near:
            return None, f"the exp-series of t p is not decided for t around {scale}"
        if near == {True}:
            return (
                True,
                f"the exp-series of t p converges for t around {scale}, the limit of scales",
            )
        return False, f"the exp-series of t p diverges for t around {scale}, the limit of scales"


_X, _I = Symbol("x", nonnegative=True), Symbol("i", positive=True)
_T = Symbol("t", positive=True)


def _in_one(text: object, name: str, what: str) -> Expr:
    """A formula in one symbol."""
    if not isinstance(text, str):
        raise InputError(f"{what} is text, a formula in {name}, not {type(text).__name__}")
    symbol = {"x": _X, "i": _I, "n": n}[name]
    named = name != "n" and re.search(rf"\b{name}\b", text)
    formula = read(
        text, {name: "nonnegative" if name == "x" else "positive"} if named else None, name
    )
    strange = sorted(s.name for s in formula.free_symbols - {symbol})
    if strange:
        raise InputError(f"{what} {text[:40]!r} has {strange[0]}; accepted: a formula in {name}")
    return formula


def _bounded_near_zero(f: Expr) -> bool:
    """Whether a function is proved bounded on some [0, d]: its ball there is finite."""
    value = compile_ball(f)
    with precision(64):
        for d in NEAR:
            try:
                if to_arb(value({_X: arb(0).union(arb(d))})).is_finite():
                    return True
            except Undefined:
                continue
    return False


def _converges(p: Expr, t: Expr | None) -> bool | None:
    """Whether the exp-series of t p converges; t None: for all large t."""
    convergence = check_convergence((_T if t is None else t) * p)
    if convergence.verdict in (Verdict.CONVERGES, Verdict.DIVERGES):
        return convergence.verdict is Verdict.CONVERGES
    if convergence.verdict is Verdict.CONDITIONAL and t is None:
        return (
            isinstance(convergence.condition, (sympy.Gt, sympy.Ge))
            and convergence.condition.lhs == _T
        )
    return None


def _unknown(subject: str, why: str) -> Windowable:
    return Windowable(
        None,
        status=Status.UNKNOWN,
        label=None,
        reason=Reason(Code.MISSING_BOUND, why),
        subject=subject,
    )
