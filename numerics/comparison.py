r"""Comparing two tails: which is lighter, and from which eps on its receptive field is smaller.

With u_j = T_j/B of `a` and v_j = T_j/B of `b`, TRF_a(eps) <= TRF_b(eps) for every eps up to

    eps* = min { v_j : u_j > v_j }    (1 if there is none),

and for no eps just above it (ours). Let a be lighter. Beyond some M every j has u_j <= v_j: from
a_t/A <= b_t/B for all t >= M. That M is certified by a bound of p_a - p_b + log(B_b/B_a), the
j below it are compared by balls, from the far end, where the first j with u_j > v_j gives eps*.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import sympy
from flint import acb, arb, fmpq
from sympy import Expr, S

from farfield.numerics.enclosures.tails import UNIT, TailEnclosure, Unproved, level, tail_enclosure
from farfield.numerics.outcomes import Unrecognised
from farfield.numerics.receptive_field import (
    at_precision,
    obstacle,
    out_of_reach,
    resolve,
    theoretical_receptive_field,
)
from farfield.numerics.summation.analytic_bias import half_line, read_bias
from farfield.numerics.summation.kernel import number
from farfield.numerics.summation.series import Series, series
from farfield.theory.algebra.outcomes import Unreachable
from farfield.theory.answers.answer import Answer, Code, InputError, Label, Reason, Status
from farfield.theory.answers.blocks import Block, Formula, Sentence, facts, sentence, table
from farfield.theory.answers.notation import expression_line, shortened, words
from farfield.theory.answers.wording import decimal
from farfield.theory.decision.differences import limit_of_difference
from farfield.theory.encodings import Encoding
from farfield.theory.functions.balls import Undefined, outward, precision, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.proofs import Proof, Step

BITS = 192  # of the balls that compare sums
MAX_INDEX = 400_000  # terms compared one by one before a proved M
MAX_DOUBLINGS = 22  # of an M that is tried: 2^22


@dataclass(frozen=True, repr=False)
class Comparison(Answer):
    """Two tails compared.

    Fields:
        formulas: the two biases, a and b.
        names: what they were called.
        lighter: "a" or "b", "neither" where the tails are equal; None where the test says nothing.
        limit: lim (p_a - p_b).
        crossover: eps*, up to which the lighter one has the smaller TRF, as a float.
        enclosure: floats around eps*.
        index: the last j with u_j > v_j, None if there is none (then eps* = 1).
        proof: what carried the decision.
    """

    VALUE: ClassVar[str] = "crossover"

    formulas: tuple[Expr, Expr]
    names: tuple[str, str]
    lighter: str | None = None
    limit: Expr | None = None
    crossover: float | None = None
    enclosure: tuple[float, float] | None = None
    index: int | None = None
    proof: Proof = field(default_factory=lambda: Proof(""))

    def blocks(self) -> Sequence[Block]:
        return tuple(self._blocks())

    def _blocks(self) -> Iterator[Block]:
        first, second = (shortened(name, 60) for name in self.names)
        light, heavy = (first, second) if self.lighter == "a" else (second, first)
        if self.lighter is None:
            said = "Which of {a} and {b} has the lighter tail is not known: {why}."
        elif self.lighter == "neither":
            said = "The tails of {a} and {b} are equal, and so are their receptive fields."
        elif self.crossover is None:
            said = (
                "{light} has a lighter tail than {heavy}, so a smaller receptive field for "
                "every small enough eps."
            )
        elif self.crossover == 1:
            said = (
                "{light} has a lighter tail than {heavy}, and a receptive field no larger at "
                "any eps."
            )
        else:
            said = (
                "{light} has a lighter tail than {heavy}: its receptive field is no larger for "
                "any eps up to {crossover}."
            )
        yield Sentence(
            words(
                said,
                a=first,
                b=second,
                light=light,
                heavy=heavy,
                why=str(self.reason),
                crossover=decimal(self.crossover, 10),
            ),
            self.label,
        )
        for name, formula in zip("ab", self.formulas, strict=True):
            yield Formula(words("`p_" + name + "(n)`"), formula)
        limit = None if self.limit is None else expression_line(self.limit)
        order = None
        if self.crossover is not None:
            order = "at every j" if self.index is None else f"from j = {self.index + 1} on"
        yield facts(
            **{
                "limit of the difference": limit,
                "normalised tail of the lighter is smaller": order,
                "why": None if self.reason is None or self.lighter is None else str(self.reason),
            }
        )
        yield self.proof.block()


@dataclass(frozen=True, repr=False)
class Ranking(Answer):
    """Several tails, the lightest first.

    Fields:
        rows: name, formula, verdict, and TRF(1/100) as it is written, the lightest tail first.
        pairs: the comparison of each row with the next, as far as both have a tail.
    """

    VALUE: ClassVar[str] = "rows"

    rows: tuple[tuple[str, Expr, str, str], ...]
    pairs: tuple[Comparison, ...] = ()

    def blocks(self) -> Sequence[Block]:
        names = [shortened(row[0], 40) for row in self.rows if row[2] == "converges"]
        others = len(self.rows) - len(names)
        said = "From the lightest tail to the heaviest: {names}{rest}."
        if not names:
            said = "None of these series converges, so none has a tail to compare."
        rest = (
            f"; {others} more have no tail, since their series does not converge" if others else ""
        )
        few = names if len(names) <= 6 else [*names[:3], "…", *names[-3:]]
        upto = {id_of(pair): decimal(pair.crossover, 6) for pair in self.pairs}
        rows = [
            (name, expression_line(formula), verdict, field, upto.get((name, after[0]), ""))
            for (name, formula, verdict, field), after in zip(
                self.rows, (*self.rows[1:], ("",)), strict=True
            )
        ]
        header = ("bias", "p(n)", "series", "TRF(1/100)", "below the next for eps up to")
        return (
            sentence(said, self.label, names="; ".join(few), rest=rest),
            table(header, rows),
        )


def id_of(pair: Comparison) -> tuple[str, str]:
    """The names of a pair, the lighter first."""
    return pair.names if pair.lighter != "b" else (pair.names[1], pair.names[0])


def compare_tails(
    a: Any,
    b: Any,
    *more: Any,
    values_a: dict[str, Any] | None = None,
    values_b: dict[str, Any] | None = None,
) -> Comparison | Ranking:
    """Decide which of two biases has the lighter tail [Q, Theorem 0.5], with the crossover (ours).

    Args:
        a: a formula in `n`, a SymPy expression, a name of the catalogue or an `Encoding`.
        b: the other one.
        more: further ones; they, and each different head, make a `Ranking`.
        values_a: parameters and options of `a`.
        values_b: parameters and options of `b`.

    Returns:
        A `Comparison` of two biases, or a `Ranking` of several.

    Raises:
        InputError: no bias that is a function of the distance alone; free parameters; of two
            biases, one whose series diverges or is undecided.

    >>> result = compare_tails("-(log(1+n))^2", "-2*log(1+n)")
    >>> result.lighter, round(result.crossover, 10)
    ('a', 0.2400911227)
    >>> [row[0] for row in compare_tails("-2*log(1+n)", "-n", "-log(1+n)").rows]
    ['-n', '-2*log(1+n)', '-log(1+n)']
    """
    subjects = [
        resolve(a, values_a or {}),
        resolve(b, values_b or {}),
        *(resolve(f, {}) for f in more),
    ]
    each = [(head.name, p) for s in subjects for head, p in _heads(s)]
    if len(each) > 2:
        return _ranked(each)
    (name_a, p), (name_b, q) = each
    return _compared(p, q, (name_a, name_b))


def _heads(subject: Encoding) -> Iterator[tuple[Encoding, Expr]]:
    """The different heads of an encoding, one each."""
    if reason := out_of_reach(subject):
        raise InputError(f"{subject.name} has no tail to compare: {reason}")
    first = {bias: h for h, bias in reversed(list(enumerate(subject.biases, 1)))}
    for bias, h in sorted(first.items(), key=lambda item: item[1]):
        yield (subject if len(first) == 1 else subject.one_head(h)), bias


def _ranked(each: Sequence[tuple[str, Expr]]) -> Ranking:
    """Insertion by pairwise comparison: a tail that cannot be compared keeps its place at the end
    of those that can."""
    light: list[tuple[str, Expr, Series]] = []
    without: list[tuple[str, Expr, str, str]] = []
    for name, p in each:
        s = series(p)
        if reason := obstacle(s):
            verdict = "diverges" if reason.code is Code.DIVERGES else "no enclosure"
            field = "infinite" if reason.code is Code.DIVERGES else "unknown"
            without.append((name, p, verdict, field))
            continue
        at = len(light)
        while at and _compared(p, light[at - 1][1], (name, light[at - 1][0])).lighter == "a":
            at -= 1
        light.insert(at, (name, p, s))
    pairs = tuple(
        _compared(p, q, (one, other)) for (one, p, _), (other, q, _) in itertools.pairwise(light)
    )
    rows = tuple(
        (name, p, "converges", theoretical_receptive_field(p, "1/100").value_text())
        for name, p, _ in light
    )
    unknown = any(pair.lighter is None for pair in pairs)
    return Ranking(
        (*rows, *without),
        pairs,
        status=Status.UNKNOWN if unknown else Status.EXACT,
        label=None if unknown else Label.CERTIFIED,
        reason=Reason(Code.NO_LIMIT, "two neighbours could not be compared") if unknown else None,
    )


def _compared(p: Expr, q: Expr, names: tuple[str, str]) -> Comparison:
    """By proportion, by support, by the limit of p_a - p_b; at a finite limit by the sums."""
    left, right = _convergent(p, names[0]), _convergent(q, names[1])
    steps = [Step("compared", {"a": p, "b": q})]
    finite, gap = _by_support(left, right), sympy.expand(p - q)
    if not gap.has(n):
        steps.append(Step("difference", {"limit": gap}))
        proof = Proof("the terms are proportional: equal receptive fields", tuple(steps))
        return Comparison((p, q), names, "neither", gap, proof=proof)
    if finite is not None:
        limit, lighter = (-S.Infinity if finite == "a" else S.Infinity), finite
        steps.append(Step("supports", {"a": str(left.support), "b": str(right.support)}))
        if finite == "neither":
            limit = S.Zero
    else:
        limit = limit_of_difference(p, q)
        if limit is None:
            why = "p_a - p_b has no limit, or none that is decided"
            return _unknown((p, q), names, steps, why)
        steps.append(Step("difference", {"limit": limit}))
        lighter = {S.NegativeInfinity: "a", S.Infinity: "b"}.get(limit, "")
        if not lighter:
            found = _by_sums(left, right, limit)
            if found is None:
                why = "the terms agree in the limit, to all digits tried: ratio 1"
                return _unknown((p, q), names, steps, why, limit)
            lighter = found
            steps.append(Step("ratio", {"limit": limit, "relation": "<" if found == "a" else ">"}))
    return _with_crossover((p, q), names, left, right, lighter, limit, steps)


def _unknown(
    formulas: tuple[Expr, Expr],
    names: tuple[str, str],
    steps: list[Step],
    why: str,
    limit: Expr | None = None,
) -> Comparison:
    """An answer that is open, with the steps that were tried."""
    proof = Proof("nothing follows from this test", tuple(steps))
    return Comparison(
        formulas,
        names,
        None,
        limit,
        proof=proof,
        status=Status.UNKNOWN,
        label=None,
        reason=Reason(Code.NO_LIMIT, why),
    )


def _convergent(p: Expr, name: str) -> Series:
    """The series of a bias that has tails; bad input where it has none."""
    s = series(p)
    if reason := obstacle(s):
        raise InputError(f"{shortened(name, 60)} has no tail to compare: {reason}")
    return s


def _by_support(a: Series, b: Series) -> str | None:
    """The one whose weights end first; None where neither ends."""
    if a.support is None and b.support is None:
        return None
    if a.support == b.support:
        return "neither"
    return "a" if a.support is not None and a.support < (b.support or a.support + 1) else "b"


def _by_sums(a: Series, b: Series, x: Expr) -> str | None:
    """Whether e^x B_b/B_a is below 1 ("a") or above."""
    for bits in (128, 512):
        with precision(bits):
            ratio = number(x).exp() * to_arb(b.total()) / to_arb(a.total())
            if ratio < 1:
                return "a"
            if ratio > 1:
                return "b"
    return None


def _with_crossover(
    formulas: tuple[Expr, Expr],
    names: tuple[str, str],
    left: Series,
    right: Series,
    lighter: str,
    limit: Expr,
    steps: list[Step],
) -> Comparison:
    """The answer with the last index at which the heavier tail is not yet heavier."""
    claim = f"{lighter} has the lighter tail" if lighter != "neither" else "equal supports"
    if lighter == "neither":
        return Comparison(formulas, names, lighter, limit, proof=Proof(claim, tuple(steps)))
    light, heavy = (left, right) if lighter == "a" else (right, left)
    try:
        m = _settled(light, heavy)
        index, crossover = _last_against(light, heavy, m)
    except (Unreachable, Unrecognised, Undefined) as why:
        reason = Reason(Code.NO_ENCLOSURE, f"the crossover was not located: {why}")
        proof = Proof(claim, tuple(steps))
        return Comparison(formulas, names, lighter, limit, proof=proof, reason=reason)
    steps.append(Step("dominated", {"index": m}))
    steps.append(Step("crossover", {"index": "none" if index is None else index}))
    claim = f"{claim}; its receptive field is the smaller one for all eps up to eps*"
    return Comparison(
        formulas,
        names,
        lighter,
        limit,
        float(crossover.mid()),
        outward(crossover),
        index,
        Proof(claim, tuple(steps)),
    )


def _settled(light: Series, heavy: Series) -> int:
    """An M with a_t/A <= b_t/B for all t >= M, a the light one."""
    if light.support is not None:
        return light.support
    start = max(light.last.start, heavy.last.start, 2)
    difference = read_bias(light.last.bias - heavy.last.bias)
    ratio = at_precision(lambda: to_arb(heavy.total()).log() - to_arb(light.total()).log(), BITS)
    for k in range(MAX_DOUBLINGS):
        m = start << k
        with precision(128):
            where = half_line(arb(m).log())
            try:
                variable = TailEnclosure(where, {level(1): fmpq(1)})
                shift = TailEnclosure(where, {UNIT: acb(to_arb(ratio))})
                if (tail_enclosure(difference.in_s, difference.s, variable) + shift).negative():
                    return m
            except Unproved:
                continue
    raise Unreachable("no point is proved beyond which the terms keep their order")


def _last_against(light: Series, heavy: Series, m: int) -> tuple[int | None, arb]:
    """The last j < m with u_j > v_j, and eps* = min { v_j : u_j > v_j } = v at that j.

    v falls as j grows, so the last such j has the least v_j.
    """
    if m > MAX_INDEX:
        raise Unreachable(f"{m} terms would have to be compared one by one")
    with precision(BITS):
        a, b = to_arb(light.total()), to_arb(heavy.total())
        u, v = to_arb(light.tail(m)) / a, to_arb(heavy.tail(m)) / b
        for j in range(m - 1, 0, -1):
            u += to_arb(light.term(j)) / a
            v += to_arb(heavy.term(j)) / b
            if u > v:
                return j, v
            if not u <= v:
                raise Unreachable(f"the tails agree at {j} to all digits tried")
    return None, arb(1)
