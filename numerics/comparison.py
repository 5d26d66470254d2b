r"""Comparing tails: which is lighter, from which eps on its field is smaller; blocks of one period.

Let u_j = T_j/B of `a` and v_j = T_j/B of `b`. Then `TRF_a(eps) <= TRF_b(eps)` for every eps up to

    eps* = min { v_j : u_j > v_j }    (1 if there is none),

and for no eps just above it (ours). Let a be lighter. Beyond some M every j has u_j <= v_j, by the
terms, or by blocks of them where residue classes have formulas of their own (below).
Bounds of the differences of the biases certify that M. The j below it are compared by balls, from
the far end, in stretches: u and v fall. The first j with u_j > v_j gives eps*.

Blocks
------
Let a and b have formulas of their own in the residue classes modulo m; m = 1 is one formula. For
j = m k + i their tails are sums over k' >= k of the blocks

    a_i(k') = sum_{0 <= d < m} exp(p_a(m k' + i + d)),    b_i(k') likewise.

So a_i(k')/A <= b_i(k')/B for all k' >= k gives T_j/A <= T_j/B for these tails of a and b (ours; for
m = 1 it is [Q, Theorem 0.5]). Whichever classes are the heavy ones, one block holds a term of each.
The terms of a block are taken relative to one formula that none of them outgrows, the pivot: the
quotient of two blocks tends to a quotient of sums of exponentials of limits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import ClassVar

import sympy
from flint import acb, arb, fmpq
from sympy import Expr, Rational, S

from farfield.numerics.enclosures.tails import UNIT, TailEnclosure, Unproved
from farfield.numerics.questions import (
    BUDGET_S,
    FINITE_ROW,
    Fields,
    chosen,
    diverges,
    obstacle,
    out_of_reach,
    reason_of,
    resolve,
    unknown,
)
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.search import Unrecognised, at_precision, decide
from farfield.numerics.summation.analytic_bias import Bias, read_bias
from farfield.numerics.summation.kernel import number
from farfield.numerics.summation.series import Series, series
from farfield.theory.algebra import door
from farfield.theory.algebra.door import check_time, share_of_time, unhurried, within
from farfield.theory.algebra.exceptions import OutOfTime, Unreachable
from farfield.theory.answers.answer import Answer, Code, InputError, Label, Reason, Status
from farfield.theory.answers.blocks import (
    Block,
    Formula,
    Note,
    Sentence,
    facts,
    note,
    sentence,
    table,
)
from farfield.theory.answers.errors import refuse
from farfield.theory.answers.notation import (
    Text,
    enumeration,
    expression_line,
    listed,
    shortened,
    words,
)
from farfield.theory.answers.number import LEAST, SHARES, at_most, decimal, share, without_noun
from farfield.theory.decision.differences import limit_of_difference
from farfield.theory.encodings import Encoding, encoding
from farfield.theory.functions.balls import Undefined, outward, precision, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.proofs import Proof, Step

EPS = tuple(map(Rational, SHARES))
"""Shares of the mass left out at which receptive fields are shown."""
BITS = 192  # of the balls that compare sums
CROSSOVER_SHARE = 0.75  # of the time that is left: the rest is for the receptive fields
MAX_DOUBLINGS = 22  # of an M that is tried: 2^22


@dataclass(frozen=True, repr=False)
class Comparison(Answer):
    """Two tails compared.

    Fields:
        formulas: the two biases, a and b.
        names: the name of each, as it was given.
        lighter: "a" or "b", "neither" where the tails are equal; None where the test says nothing,
            where residue classes disagree for ever, or both series diverge. One that diverges is
            the heavier, with reason code `diverges`.
        limit: lim (p_a - p_b).
        crossover: eps*, up to which the lighter one has the smaller TRF, as a float.
        enclosure: floats around eps*.
        log_crossover: floats around log eps*, where eps* is below 1e-300; else None.
        index: the last j with u_j > v_j, None if there is none (then eps* = 1).
        proof: the steps of the decision.
        receptive_fields: of a and of b, TRF(1/10), TRF(1/100) and TRF(1/1000) as they are written.
    """

    VALUE: ClassVar[str] = "crossover"

    formulas: tuple[Expr, Expr]
    names: tuple[str, str]
    lighter: str | None = None
    limit: Expr | None = None
    crossover: float | None = None
    enclosure: tuple[float, float] | None = None
    log_crossover: tuple[float, float] | None = None
    index: int | None = None
    proof: Proof = field(default_factory=lambda: Proof(""))
    receptive_fields: tuple[tuple[str, ...], ...] = ()

    def _blocks(self) -> Iterator[Block]:
        first, second = (shortened(name, 60) for name in self.names)
        if self.receptive_fields:
            yield Sentence(self._reaches(first, second), Label.CERTIFIED)
            columns = zip(EPS, *self.receptive_fields, strict=True)
            rows = [(share(eps), *map(without_noun, each)) for eps, *each in columns]
            yield table(("mass left out", "tokens of a", "tokens of b"), rows)
        for name, formula in zip("ab", self.formulas, strict=True):
            yield Formula(words("`p_" + name + "(n)`"), formula)
        limit = None if self.limit is None else expression_line(self.limit)
        order = "at every j" if self.index is None else f"from j = {self.index + 1} on"
        is_ordered = self.crossover is not None and self.reason is None
        yield facts(
            **{
                "limit of the difference": limit,
                "normalised tail of the lighter is smaller": order if is_ordered else None,
                "why": None if self.reason is None or self.lighter is None else str(self.reason),
            }
        )
        yield Sentence(self._order(first, second), self.label)
        yield self.proof.block()

    def _reaches(self, first: str, second: str) -> Text:
        """The receptive fields of both, in one sentence."""
        parts = []
        for name, fields in zip((first, second), self.receptive_fields, strict=True):
            parts.append(f"{name} needs {enumeration([*map(without_noun, dict.fromkeys(fields))])}")
        one = {*self.receptive_fields[0]} == {"1 token"}
        template = f"To hold all but {{shares}} of the mass, {{a}} token{'s' * (not one)}; {{b}}."
        return words(template, shares=enumeration([*map(share, EPS)]), a=parts[0], b=parts[1])

    def _order(self, first: str, second: str) -> Text:
        """Which tail is lighter, and up to which eps that decides."""
        light, heavy = (first, second) if self.lighter == "a" else (second, first)
        diverges = self.reason is not None and self.reason.code is Code.DIVERGES
        cases = (
            (
                self.lighter is None and diverges,
                "Neither of {a} and {b} has a tail to compare, since both series diverge.",
            ),
            (
                self.lighter is None and self.status is Status.EXACT,
                "Neither of {a} and {b} has the lighter tail: {why}.",
            ),
            (
                self.lighter is None,
                "Which of {a} and {b} has the lighter tail is not known: {why}.",
            ),
            (
                self.lighter == "neither" and self.reason is not None,
                "Neither of {a} and {b} has the lighter tail: {why}, so their receptive fields are "
                "equal for every small enough eps.",
            ),
            (
                self.lighter == "neither",
                "The tails of {a} and {b} are equal, and so are their receptive fields.",
            ),
            (diverges, "{light} has the lighter tail, since the series of {heavy} diverges."),
            (
                self.crossover is None,
                "{light} has a lighter tail than {heavy}, so a smaller receptive field for every "
                "small enough eps.",
            ),
            (
                self.crossover == 1,
                "{light} has a lighter tail than {heavy}, and a receptive field no larger at any "
                "eps.",
            ),
            (
                True,
                "{light} has a lighter tail than {heavy}: its receptive field is no larger for "
                "any eps up to {crossover}.",
            ),
        )
        return words(
            chosen(cases),
            a=first,
            b=second,
            light=light,
            heavy=heavy,
            why=str(self.reason),
            crossover=self.reached(10),
        )

    def reached(self, digits: int = 3) -> str:
        """A number that eps* is no less than, as it is written."""
        if self.log_crossover is not None:
            return f"exp(-{-math.floor(self.log_crossover[0])})"
        return at_most(self.enclosure[0], digits) if self.enclosure else "unknown"


@dataclass(frozen=True, repr=False)
class Ranking(Answer):
    """Several tails, the lightest first.

    Fields:
        rows: name, formula, verdict, and TRF(1/10), TRF(1/100), TRF(1/1000) as they are written,
            the lightest tail first.
        pairs: the comparison of each row with the next, as far as both have a tail.
        left_out: name of what could not be compared, with the reason.
    """

    VALUE: ClassVar[str] = "rows"

    rows: tuple[tuple[str, Expr, str, tuple[str, ...]], ...]
    pairs: tuple[Comparison, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()

    def blocks(self) -> Sequence[Block]:
        left_out = [
            note("{name} is left out: {why}.", name=shortened(name, 60), why=why)
            for name, why in self.left_out
        ]
        return (*self._compared(), *left_out)

    def _compared(self) -> Sequence[Block]:
        """The sentence about those that were compared."""
        with_tail = [row for row in self.rows if row[2] == "converges"]
        others = len(self.rows) - len(with_tail)
        rest = f"; {others} without a certified sum" if others else ""
        names = _few([shortened(row[0], 40) for row in with_tail])
        fields = [(shortened(name, 40), without_noun(at[1])) for name, _, _, at in with_tail]
        reach = _few([f"{name}: {tokens}" for name, tokens in fields])
        if not with_tail:
            text = "None of these series has a certified sum, so none has a tail to compare."
            return (sentence(text, self.label), self._table())
        return (
            sentence(
                "The nearest tokens that hold all but {eps} of the mass: {reach}{rest}.",
                self.label,
                eps=share(EPS[1]),
                reach=reach,
                rest=rest,
            ),
            self._table(),
            sentence("From the lightest tail to the heaviest: {names}.", self.label, names=names),
            *self._crossings(),
        )

    def _table(self) -> Block:
        rows = [(name, p, verdict, *fields) for name, p, verdict, fields in self.rows]
        fields = [f"TRF({share(eps)})" for eps in EPS]
        return table(("bias", "p(n)", "series", *fields), rows)

    def _crossings(self) -> Iterator[Note]:
        """At which eps the fields of two neighbours have the order of their tails."""
        for pair in self.pairs:
            names = pair.names[::-1] if pair.lighter == "b" else pair.names
            light, heavy = (shortened(name, 40) for name in names)
            if pair.lighter == "neither":
                yield note("The tails of {light} and {heavy} are equal.", light=light, heavy=heavy)
            elif pair.crossover != 1:
                yield note(
                    "For every eps {which}, {light} has no larger a field than {heavy}.",
                    light=light,
                    heavy=heavy,
                    which="that is small enough"
                    if pair.enclosure is None
                    else f"up to {pair.reached()}",
                )
        if any(p.crossover == 1 and p.lighter != "neither" for p in self.pairs):
            yield note("Of all other neighbours the first has no larger a field at any eps.")


def _few(parts: list[str]) -> str:
    """Up to six parts, or the first and last three."""
    return "; ".join(parts if len(parts) <= 6 else [*parts[:3], "…", *parts[-3:]])


def compare_tails(
    a: object = None,
    b: object = None,
    /,
    *more: object,
    values_a: dict[str, object] | None = None,
    values_b: dict[str, object] | None = None,
    budget_s: float = BUDGET_S,
    **parameters: object,
) -> Comparison | Ranking:
    """Decide which of two biases has the lighter tail [Q, Theorem 0.5], with the crossover (ours).

    Args:
        a: a formula in `n`, a SymPy expression, a name of the catalogue or an `Encoding`; or a
            list of all of them, alone.
        b: the other one.
        more: further ones; they, and each different head, make a `Ranking`. Of three or more, one
            that cannot be compared is left out, and named with its reason.
        values_a: parameters and options of `a`.
        values_b: parameters and options of `b`.
        budget_s: seconds; whatever is open after them stays unknown.
        parameters: refused, as no bias has them alone.

    Returns:
        A `Comparison` of two biases, or a `Ranking` of several.

    Raises:
        InputError: no bias that is a function of the distance alone; free parameters.

    >>> result = compare_tails("-(log(1+n))^2", "-2*log(1+n)")
    >>> result.lighter, round(result.crossover, 10)
    ('a', 0.2400911227)
    >>> [row[0] for row in compare_tails("-2*log(1+n)", "-n", "-log(1+n)").rows]
    ['-n', '-2*log(1+n)', '-log(1+n)']
    >>> compare_tails(["-n", "-2*log(1+n)", "rope"]).left_out[0][0]
    'rope'
    """
    # The names of the two may be those of parameters too.
    a, b = (parameters.pop(k, None) if f is None else f for k, f in (("a", a), ("b", b)))
    for name, value in parameters.items():
        raise InputError(
            f"{name}={value!r} is of no bias alone; accepted: values_a={{{name!r}: {value!r}}}, "
            "values_b=..., and budget_s="
        )
    alone = list(a) if isinstance(a, list | tuple) else [a]
    several = alone if b is None else [a, b, *more]
    refuse(
        len(several) < 2,
        "one bias has nothing to be compared with; accepted: two or more, or a list of them",
    )
    values = itertools.chain((values_a or {}, values_b or {}), itertools.repeat({}))
    given = list(zip(several, values, strict=False))
    each: list[tuple[Encoding, Expr]] = []
    left_out: list[tuple[str, str]] = []
    for f, options in given:
        try:
            each += _heads(resolve(f, options))
        except InputError as error:
            if len(given) == 2:
                raise
            left_out.append((str(getattr(f, "name", f)), str(error)))
    refuse(len(each) < 2, "; ".join(f"{name}: {why}" for name, why in left_out))
    with within(budget_s):
        if len(each) > 2 or left_out:
            return replace(_ranked([(e.name, p) for e, p in each]), left_out=tuple(left_out))
        (one, p), (other, q) = each
        comparison = _compared(p, q, (one.name, other.name))
        return replace(comparison, receptive_fields=tuple(_fields(bias) for bias in (p, q)))


def _fields(p: Expr) -> tuple[str, ...]:
    """The receptive fields of a bias, as they are written; where there is none, of a row too."""
    with unhurried():  # it was read before, as a part of what was given
        subject = encoding(p)
    return tuple(
        field.value_text()
        if field.finite is None
        else f"{field.head_text()} ({field.finite.head_text()} in a row of {FINITE_ROW})"
        for field in theoretical_receptive_field(subject, EPS)
    )


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
    light: list[tuple[str, Expr]] = []
    without: list[tuple[str, Expr, str, tuple[str, ...]]] = []
    for name, p in each:
        if reason := _obstacle(p):
            verdict = "diverges" if reason.code is Code.DIVERGES else "no enclosure"
            without.append((name, p, verdict, _fields(p)))
            continue
        at = len(light)
        while at and _compared(p, light[at - 1][1], (name, light[at - 1][0])).lighter == "a":
            at -= 1
        light.insert(at, (name, p))
    pairs = tuple(
        _compared(p, q, (one, other)) for (one, p), (other, q) in itertools.pairwise(light)
    )
    rows = tuple((name, p, "converges", _fields(p)) for name, p in light)
    fields: Fields = {"label": Label.CERTIFIED}
    if any(p.lighter is None for p in pairs) or any(row[2] != "diverges" for row in without):
        fields = unknown(Reason(Code.NO_LIMIT, "two of them could not be compared"))
    return Ranking((*rows, *without), pairs, **fields)


def _obstacle(p: Expr) -> Reason | None:
    """Why a bias has no tail to compare; None where it has one."""
    try:
        return obstacle(series(p, diverges))
    except OutOfTime as why:
        return reason_of(why)


def _compared(p: Expr, q: Expr, names: tuple[str, str]) -> Comparison:
    """Two tails; a series that diverges is heavier than every one that converges."""
    steps = [Step("compared", {"a": p, "b": q})]
    try:
        fields = _order_of_tails(p, q, names, steps)
    except OutOfTime as why:
        fields = unknown(reason_of(why))
    claim = fields.pop("claim", "nothing follows from this test")
    return Comparison((p, q), names, proof=Proof(claim, tuple(steps)), **fields)


def _order_of_tails(p: Expr, q: Expr, names: tuple[str, str], steps: list[Step]) -> Fields:
    """By divergence, proportion or support; else by the limits of p_a - p_b, and by sums where
    these are finite."""
    reasons = _obstacle(p), _obstacle(q)
    for name, reason in zip(names, reasons, strict=True):
        if reason is not None and reason.code is not Code.DIVERGES:
            return unknown(Reason(reason.code, f"{shortened(name, 60)}: {reason}"))
    if any(reasons):
        return _by_divergence(names, reasons)
    left, right = series(p, diverges), series(q, diverges)
    difference = sympy.expand(p - q)
    gap = proportion(left, right) if difference.has(n) else difference
    if gap is not None:
        steps.append(Step("difference", {"limit": gap}))
        claim = "the terms are proportional: equal receptive fields"
        return {"claim": claim, "lighter": "neither", "limit": gap}
    if (left.support, right.support) != (None, None):
        return _by_support(left, right, steps)
    return _by_limits(left, right, steps)


def _by_divergence(names: tuple[str, str], reasons: tuple[Reason | None, Reason | None]) -> Fields:
    """A series that diverges is the heavier one; two of them have no order."""
    which = [shortened(x, 60) for x, reason in zip(names, reasons, strict=True) if reason]
    divergence = f"the exp-series of {' and of '.join(which)} diverges"
    fields: Fields = {
        "claim": divergence,
        "label": Label.THEOREM,
        "reason": Reason(Code.DIVERGES, divergence),
    }
    if None not in reasons:
        return fields
    lighter = "a" if reasons[0] is None else "b"
    return fields | {"lighter": lighter, "crossover": 1.0, "enclosure": (1.0, 1.0)}


def _by_support(left: Series, right: Series, steps: list[Step]) -> Fields:
    """The one whose weights end first is the lighter one."""
    ends = left.support, right.support
    steps.append(Step("supports", {"a": str(ends[0]), "b": str(ends[1])}))
    if ends[0] == ends[1]:
        return {
            "claim": "equal supports",
            "lighter": "neither",
            "reason": Reason(Code.BOUNDED_SUPPORT, f"both end before n = {ends[0]}"),
        }
    first, second = (math.inf if end is None else end for end in ends)
    lighter, limit = ("a", -S.Infinity) if first < second else ("b", S.Infinity)
    return {"limit": limit} | _with_crossover(left, right, lighter, steps)


def _by_limits(left: Series, right: Series, steps: list[Step]) -> Fields:
    """The one whose blocks are in the end the lighter ones, at every residue."""
    try:
        blocks = tuple(period_blocks(left, right))
        sides = [block.lighter(left, right) for block in blocks]
    except NoLimit as why:
        return unknown(Reason(Code.NO_LIMIT, str(why)))
    except Unreachable as why:
        return unknown(reason_of(why))
    _tell(blocks, sides, (left, right), steps)
    limit: Fields = {"limit": _limit(blocks[0])} if len(blocks) == 1 else {}
    lighter = {*sides} - {"neither"}
    if lighter in ({"a"}, {"b"}):
        apart = [block for block, side in zip(blocks, sides, strict=True) if side != "neither"]
        return limit | _with_crossover(left, right, str(*lighter), steps, apart)
    disagreement = Reason(Code.NO_LIMIT, _disagreement(sides))
    return {"reason": disagreement} if lighter == {"a", "b"} else limit | unknown(disagreement)


def _limit(block: PeriodBlock) -> Expr:
    """lim (p_a - p_b), of series with one formula each."""
    ((_, x),), ((_, y),) = block.terms
    return x - y


def _tell(
    blocks: Sequence[PeriodBlock],
    sides: Sequence[str | None],
    both: tuple[Series, Series],
    steps: list[Step],
) -> None:
    """The steps by which blocks decide."""
    signs = {"a": "<", "b": ">", "neither": "="}
    if len(blocks) == 1:
        limit = _limit(blocks[0])
        steps.append(Step("difference", {"limit": limit}))
        if limit.is_finite and sides[0]:
            steps.append(Step("ratio", {"limit": limit, "relation": signs[sides[0]]}))
        return
    steps.append(Step("blocks", {"period": len(blocks)}))
    for block, side in zip(blocks, sides, strict=True):
        with precision(64):
            quotient = block.quotient(*both)
        values = {"residue": block.residue, "quotient": decimal(float(quotient.mid()))}
        if side is not None:
            steps.append(Step("block", values | {"relation": signs[side]}))


def _disagreement(sides: Sequence[str | None]) -> str:
    """Which residues of j have a lighter, which b, and which are not decided."""
    if len(sides) == 1:
        return "the terms agree in the limit, to all digits tried: ratio 1"
    phrases = {"a": "smaller for a", "b": "smaller for b", None: "the same to all digits tried"}
    places = {side: [i for i, s in enumerate(sides) if s == side] for side in phrases}
    parts = ", ".join(f"{phrases[k]} at j = {listed(at)}" for k, at in places.items() if at)
    return f"modulo {len(sides)}, the normalised tail from j on is in the end {parts}"


def _with_crossover(
    left: Series, right: Series, lighter: str, steps: list[Step], order: Sequence[PeriodBlock] = ()
) -> Fields:
    """The last index at which the heavier tail is not yet heavier, and eps* there; `order` are the
    blocks that are not equal."""
    fields: Fields = {"claim": f"{lighter} has the lighter tail", "lighter": lighter}
    light, heavy = (left, right) if lighter == "a" else (right, left)
    equal = order[0].period if order and order[0].residue else None
    try:
        with share_of_time(CROSSOVER_SHARE):
            end = light.support
            m = _settled(light, heavy, lighter, order) if end is None else end
            index, crossover = _last_against(light, heavy, m, equal)
    except (Unreachable, Unrecognised, Undefined) as why:
        code = Code.BUDGET if isinstance(why, OutOfTime) else Code.NO_ENCLOSURE
        return fields | {"reason": Reason(code, f"the crossover was not located: {why}")}
    steps.append(Step("dominated", {"index": m}))
    steps.append(Step("crossover", {"index": "none" if index is None else index}))
    with precision(BITS):
        log = outward(crossover.log()) if crossover < arb(LEAST) else None
    return {
        "claim": f"{fields['claim']}; its receptive field is the smaller one up to eps*",
        "lighter": lighter,
        "crossover": float(crossover.mid()),
        "enclosure": outward(crossover),
        "log_crossover": log,
        "index": index,
    }


def _settled(light: Series, heavy: Series, lighter: str, order: Sequence[PeriodBlock]) -> int:
    """An M with u_j <= v_j for all j >= M, from the order of the blocks from there on."""
    period, side = order[0].period, 0 if lighter == "a" else 1
    starts = (s.first for s in (*light.last, *heavy.last))
    start = max(2, *(-(-at // period) for at in starts))
    ratio = at_precision(lambda: to_arb(light.total()) / to_arb(heavy.total()), BITS)
    for k in range(MAX_DOUBLINGS):
        with precision(128), suppress(Unproved):
            if all(block.dominated(side, ratio, start << k) for block in order):
                return period * (start << k)
    raise Unreachable("no point is proved beyond which the terms keep their order")


def _last_against(
    light: Series, heavy: Series, m: int, equal: int | None
) -> tuple[int | None, arb]:
    """The last j < m with u_j > v_j, and eps* = min { v_j : u_j > v_j } = v at that j.

    v falls as j grows, so the last such j has the least v_j. u falls too: where u_i <= v_k, no j
    from i to k has u_j > v_j. At the multiples of `equal` they are equal.
    """
    with precision(BITS):
        a, b = to_arb(light.total()), to_arb(heavy.total())
        last, size = m - 1, 1
        while last > 0:
            check_time()
            first = max(1, last - size + 1)
            u, v = to_arb(light.tail(first)) / a, to_arb(heavy.tail(last)) / b
            if u <= v or (first == last and equal and last % equal == 0):
                last, size = first - 1, 2 * size
            elif first < last:
                size = (last - first + 1) // 2
            elif u > v:
                return last, v
            else:
                raise Unreachable(f"the tails agree at {last} to all digits tried")
    return None, arb(1)


# -- blocks of one period --------------------------------------------------------------------------

Terms = tuple[tuple[Expr, Expr], ...]
Limit = Callable[[Expr, Expr], Expr]


class NoLimit(Exception):
    """A difference of two biases has no limit, or none that is decided."""


@dataclass(frozen=True)
class PeriodBlock:
    """The terms of two series, a and b, at period k + residue + d, 0 <= d < period.

    `terms` holds for each series the formulas in k that have weight, and the limits of their
    differences from the pivot, -oo or finite.
    """

    period: int
    residue: int
    pivot: Expr
    terms: tuple[Terms, Terms]

    @property
    def proportional(self) -> bool:
        """Whether the quotient of the two sums is proved to be the same at every k."""
        gaps = (door.expand(f - self.pivot) for each in self.terms for f, _ in each)
        return not any(gap.has(n) for gap in gaps)

    def quotient(self, a: Series, b: Series) -> arb:
        """lim a_i(k)/A over b_i(k)/B: 0 where a_i vanishes beside b_i, infinite where b_i does."""
        above, below = map(_weight, self.terms)
        if below == 0:
            return arb.pos_inf()
        return arb(0) if above == 0 else above / below * _ratio(b, a)

    def lighter(self, a: Series, b: Series) -> str | None:
        """The series whose normalised tail is the smaller one at all large j of this residue;
        "neither" where they are equal, None where that is not decided."""

        def proved() -> str | None:
            quotient = self.quotient(a, b)
            return "a" if quotient < 1 else "b" if quotient > 1 else None

        side = decide(proved, (128, 512))
        if side is None and self.residue == 0 and _whole(a, b) and self.proportional:
            return "neither"  # the quotient of the totals is that of the blocks, as k = 0 is one
        return side

    def dominated(self, light: int, ratio: arb, k: int) -> bool:
        """Whether the normalised block of a (`light` 0) or b (1) is proved to be at most the other
        one from k on; `ratio` is the total of the light series over the other's total."""
        small, great = self.terms[light], self.terms[1 - light]
        room = ratio * sum((self._value(f, k).lower() for f, x in great if x.is_finite), arb(0))
        room -= sum((self._value(f, k).upper() for f, x in small if x.is_finite), arb(0))
        vanishing = [f for f, x in small if not x.is_finite]
        if not room > 0:
            return False
        least = acb((room.lower() / max(1, len(vanishing))).log())
        each = (_difference(f, self.pivot).real(arb(k).log()) for f in vanishing)
        return all((g + TailEnclosure(g.where, {UNIT: -least})).negative() for g in each)

    def _value(self, f: Expr, k: int) -> arb:
        """exp(f - pivot) from k on, where that has a finite limit."""
        g = _difference(f, self.pivot).real(arb(k).log())
        rest = TailEnclosure(g.where, {m: c for m, c in g.terms.items() if m is not UNIT})
        constant = g.terms.get(UNIT, fmpq(0))
        limit = constant.real if isinstance(constant, acb) else arb(constant)
        return (limit + rest.small().real).exp()


def _weight(terms: Terms) -> arb:
    """The limit of a sum of terms relative to the pivot; an exact 0 where all of them vanish."""
    return sum((number(x).exp() for _, x in terms if x.is_finite), arb(0))


def _ratio(a: Series, b: Series) -> arb:
    """A/B."""
    return to_arb(a.total()) / to_arb(b.total())


@lru_cache(maxsize=512)
def _difference(f: Expr, pivot: Expr) -> Bias:
    return read_bias(f - pivot)


def proportion(a: Series, b: Series) -> Expr | None:
    """p_a - p_b, where that is one constant on all residue classes; None where it is not."""
    period, gaps = math.lcm(a.period, b.period), set[Expr]()
    for r in range(period if _whole(a, b) else 0):
        p, q = a.eventual(period, r), b.eventual(period, r)
        if p != q or p is not S.NegativeInfinity:
            gaps.add(door.expand(p - q))
    gap = gaps.pop() if len(gaps) == 1 else n
    return None if gap.has(n, S.Infinity, S.NegativeInfinity) else gap


def _whole(a: Series, b: Series) -> bool:
    """Whether the formulas of large distances hold from 0 on."""
    return all(s.start == 0 for each in (a, b) for s in each.stretches)


def period_blocks(a: Series, b: Series) -> Iterator[PeriodBlock]:
    """The blocks of two series that do not end, one a residue.

    Raises:
        NoLimit: two formulas have no limit of their difference, or none that is decided.
    """
    period, limit_of = math.lcm(a.period, b.period), cache(limit_of_difference)
    each = [[s.eventual(period, r) for r in range(2 * period)] for s in (b, a)]
    pivot = next(f for f in each[0] if f is not S.NegativeInfinity)

    def limit(f: Expr, pivot: Expr) -> Expr:
        value = S.Zero if f == pivot else limit_of(f, pivot)
        if value is None:
            at = f" on the blocks from {i} modulo {period}" if period > 1 else ""
            raise NoLimit(f"p_a - p_b has no limit, or none that is decided{at}")
        return value

    for i in range(period):
        theirs, ours = (
            [f for f in formulas[i : i + period] if f is not S.NegativeInfinity]
            for formulas in each
        )
        pivot = _heaviest([*theirs, *ours], pivot, limit)
        terms = (tuple((f, limit(f, pivot)) for f in part) for part in (ours, theirs))
        yield PeriodBlock(period, i, pivot, (next(terms), next(terms)))


def _heaviest(formulas: Sequence[Expr], pivot: Expr, limit: Limit) -> Expr:
    """A formula that none of these outgrows, and that not all of them fall behind."""
    heaviest = pivot
    for f in formulas:
        if limit(f, heaviest) is S.Infinity:
            heaviest = f
    if all(limit(f, heaviest) is S.NegativeInfinity for f in formulas):
        return _heaviest(formulas, formulas[0], limit)
    return heaviest
