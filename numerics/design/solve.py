"""From a goal to an encoding: which parameters of a family meet a target."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sympy
from sympy import Basic, Expr, Rational, Symbol
from sympy.core.relational import Relational

from farfield.numerics.design.designs import Design, Pair
from farfield.numerics.design.family import Family, read_family
from farfield.numerics.design.line import Fields, ParameterLine, scanned
from farfield.numerics.design.order import support_step, tail_order
from farfield.numerics.design.rationals import simplest
from farfield.numerics.design.targets import (
    TARGETS,
    Quantity,
    Target,
    quantity,
    read_targets,
)
from farfield.theory.algebra.door import budget, seconds, until
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.answers.answer import Code, InputError, Label, Reason, Status
from farfield.theory.answers.notation import expression_line
from farfield.theory.answers.number import exact, natural
from farfield.theory.convergence import Verdict, check_convergence

COSTS = ("leak", "horizon", "window")
NEAR_BEST = Rational(1, 1_000)
MAX_HEADS = 1_024
Notice = Callable[..., None]


def design(
    family: object,
    *,
    parameter: str | None = None,
    heads: int | None = None,
    budget_s: float = 10,
    optimise: str | None = None,
    values: Mapping[str, object] | None = None,
    dialect: str | None = None,
    assumptions: Mapping[str, str] | None = None,
    notice: Notice | None = None,
    **targets: object,
) -> Design:
    """The parameters of a family of biases that meet a target: an exact interval (ours).

    Args:
        family: a formula in `n` with one free parameter, a name of the catalogue (its formula with
            one free parameter a head), or an `Encoding`.
        parameter: the name of the free parameter, where others have no value.
        heads: this many heads, one value each; then a target is a pair, spaced geometrically, or a
            list of one target a head.
        budget_s: seconds; whatever is open after them stays unknown.
        optimise: a quantity whose best value the interval allows is taken: `leak` and `window` the
            less, the others the more the better.
        values: of the other parameters, and options of the encoding; keywords that name no option
            of a target are values too.
        dialect: variant of an encoding of the catalogue.
        assumptions: domains of parameters: positive (the default), real, [0, 2), ...
        notice: called as `notice(stage, done, total)`.
        **targets: `trf` with `eps` (and `length`), `leak` with `trained` (and `tested`),
            `window` with `error`, `logit_bound`, `value_bound` (and `sinks`, `row`, `temper`),
            `layered` with `layers` (and `mixing`, `q`, `length`), `reach` with `advantage` (and
            `share`, `length`), `horizon` with `dtype` (and `flush_to_zero`), `resolution` (with
            `scale`, `length`). A number means: leak at most, resolution and reach at least, the
            others equal; a text such as `">=1024"` or `">=64, <=128"` says otherwise.

    Returns:
        A `Design`.

    Raises:
        InputError: a target that no parameter meets, with the range that can be met; targets that
            contradict each other; a series that diverges for every parameter; no free parameter or
            several; numbers out of range.

    >>> answer = design("alibi", trf=512, eps="1/100")
    >>> answer.value, answer.achieved, [float(x) for x in answer.low]
    (1/111, 512, [0.0089944730195, 0.0089944730196])
    >>> design("window", layered=202, layers=12).nearest
    (201, 206)
    >>> design("-a*log(1+n)", trf=(16, 256), heads=3).values
    (17/7, 155/78, 44/25)
    """
    asked = {name: targets.pop(name) for name in TARGETS if targets.get(name) is not None}
    targets = {name: value for name, value in targets.items() if value is not None}
    if "evaluated" in targets:
        warnings.warn(
            "design(evaluated=...) is design(tested=...)", DeprecationWarning, stacklevel=4
        )
        targets.setdefault("tested", targets.pop("evaluated"))
    if not asked:
        raise InputError(f"a design needs a target, as trf=512; accepted: {', '.join(TARGETS)}")
    deadline = time.monotonic() + seconds(budget_s)
    goal = _goal(asked, targets, heads, optimise, notice or (lambda *_: None))
    fixed = {**targets, **(values or {})}
    if isinstance(family, (list, tuple)):
        raise InputError(f"a design is of one family; {len(family)} were given")
    read = read_family(family, parameter, dialect=dialect, values=fixed, assumptions=assumptions)
    with until(deadline):
        return _of(goal, read)


# -- what is asked --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Goal:
    """The question about a family.

    Args:
        heads: the targets of each head.
        several: whether several heads were asked for.
        costs: quantities reported head by head.
        best: the quantity to be optimised.
        notice: called as stages begin.
    """

    heads: Sequence[tuple[Target, ...]]
    several: bool
    costs: Sequence[Quantity]
    best: Quantity | None
    notice: Notice

    def words(self) -> tuple[str, ...]:
        """The targets, from the first head's to the last one's."""
        ends = zip(self.heads[0], self.heads[-1], strict=True)
        return tuple(str(a) if a == b else f"{a} to {b.number}" for a, b in ends)


def _goal(
    asked: Mapping[str, object],
    given: dict[str, object],
    heads: int | None,
    optimise: str | None,
    notice: Notice,
) -> _Goal:
    """The goal that is meant; options of its quantities are taken out of `given`."""
    if heads is not None and not 1 <= natural(heads, "heads") <= MAX_HEADS:
        raise InputError(f"heads {heads}: accepted is a number from 1 to {MAX_HEADS}")
    each = {name: _by_head(TARGETS[name], value, heads) for name, value in asked.items()}
    counts = {len(v) for v in each.values() if v is not None} | ({heads} if heads else set())
    if len(counts) > 1:
        raise InputError(f"targets for {sorted(counts)} heads are given; they must agree")
    costs = [name for name in COSTS if counts and name not in asked]
    named = dict.fromkeys((*asked, *([optimise] if optimise else ()), *costs))
    chosen = {name: quantity(name, given) for name in named}
    for option in {k for name in chosen for k in TARGETS[name].options}:
        given.pop(option, None)
    count = max(counts, default=1)
    targets = [
        tuple(
            target
            for name, value in asked.items()
            for target in read_targets(chosen[name], (each[name] or [value] * count)[h])
        )
        for h in range(count)
    ]
    return _Goal(
        targets,
        bool(counts),
        [chosen[name] for name in costs],
        chosen[optimise] if optimise else None,
        notice,
    )


def _by_head(asked: Quantity, value: object, heads: int | None) -> list[Any] | None:
    """A target a head: a list as it is, a pair spaced geometrically; None for one of all heads."""
    name, whole = asked.name, asked.integer
    if isinstance(value, str):
        listed = re.split(r"[,:]", value)
        if len(listed) < 2 or re.search("[<>=]", value):
            return None
        value = listed
    if not isinstance(value, (list, tuple)):
        return None
    if not value or (heads is not None and len(value) not in (2, heads)):
        raise InputError(
            f"{name} has {len(value)} targets{f' for {heads} heads' if heads else ''}; accepted: a "
            "pair, spaced geometrically, or one a head"
        )
    if heads is None or len(value) == heads:
        return list(value)
    first, last = (Rational(natural(v, name)) if whole else exact(v, name) for v in value)
    if not (first > 0 and last > 0):
        raise InputError(f"{name} from {first} to {last}: accepted are positive numbers")
    parts = (Rational(h, heads - 1) for h in range(1, heads - 1))
    between = [(first * (last / first) ** part).evalf(30) for part in parts]
    return [first, *(round(x) if whole else str(x.evalf(6)) for x in between), last][:heads]


# -- a family -------------------------------------------------------------------------


def _of(goal: _Goal, family: Family) -> Design:
    """The design of one family."""
    goal.notice(f"order of {family.name}"[:40], 0, 1)
    search, designs = _ParameterSearch.of(family, goal), list[Design]()
    for h, targets in enumerate(goal.heads):
        goal.notice("searching", h, len(goal.heads))
        designs.append(search.design(targets))
    return _of_heads(goal, family, designs) if goal.several else designs[0]


def _of_heads(goal: _Goal, family: Family, designs: Sequence[Design]) -> Design:
    """The design of several heads, from that of each."""
    worst = next((d for d in designs if d.value is None), designs[0])
    whole = Design(
        designs[0].family,
        designs[0].parameter,
        goal.words(),
        designs[0].quantities,
        achieved=tuple(d.achieved for d in designs),
        monotone=all(d.monotone for d in designs),
        condition=designs[0].condition,
        heads=tuple(designs),
        subject=designs[0].subject,
        status=worst.status,
        reason=worst.reason,
        label=worst.label,
    )
    values = tuple(d.value for d in designs if d.value is not None)
    if len(values) < len(designs):
        return whole
    goal.notice("costs", 0, 1)
    designed = family.encoding(values)
    return replace(
        whole,
        values=values,
        encoding=designed,
        call=family.call(values),
        costs=tuple({q.header(): _cost(q, bias) for q in goal.costs} for bias in designed.biases),
    )


def _cost(asked: Quantity, bias: Expr) -> Any:
    try:
        return asked.number(bias)
    except (InputError, Unreachable):
        return None


# -- one head -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ParameterSearch:
    """Where the parameters of a family are sought.

    Args:
        family: the family; `goal`: what it is asked for.
        lines: the intervals with a convergent series, where that matters.
        condition: where the series converges, if not everywhere.
        undecided: whether it is not known where.
    """

    family: Family
    goal: _Goal
    lines: Sequence[ParameterLine]
    condition: str | None = None
    undecided: bool = False

    @classmethod
    def of(cls, family: Family, goal: _Goal) -> _ParameterSearch:
        """The search in a family; InputError where its series diverges throughout."""
        p, a, where, condition = family.formula, family.parameter, family.interval, None
        verdict, step = Verdict.CONVERGES, support_step(p, a)
        if step is None and any(t.quantity.whole for t in goal.heads[0]):
            convergence = check_convergence(p, assumptions={str(a): family.domain})
            verdict = convergence.verdict
            solved = (
                _solutions(convergence.condition, a) if verdict is Verdict.CONDITIONAL else None
            )
            if solved is not None:
                where, x = solved.intersect(where), Symbol(a.name, real=True)
                condition = expression_line(where.as_relational(x), unicode=False)
            elif verdict is Verdict.CONDITIONAL:
                verdict = Verdict.UNDECIDED
        lines = [
            ParameterLine(family, q, 1 if step else tail_order(p, a, q.start, q.end), step)
            for q in (where.args if isinstance(where, sympy.Union) else (where,))
            if isinstance(q, sympy.Interval)
        ]
        if verdict is not Verdict.DIVERGES and isinstance(where, sympy.FiniteSet) and where.args:
            alone = ", ".join(map(str, where.args))
            raise InputError(f"{a} can be {alone} alone; accepted: an interval to seek it in")
        if verdict is Verdict.DIVERGES or not lines:
            reason = f"the series of {family.name} diverges for every {a}"
            other = check_convergence(family.whole) if family.fixed else None
            if other is not None and other.verdict is Verdict.CONDITIONAL:
                reason += " with these values; it converges if "
                reason += expression_line(other.condition)
            raise InputError(
                f"{reason}: no tokens hold a share of an infinite sum; a row has a field, with "
                "length"
            )
        return cls(family, goal, lines, condition, verdict is Verdict.UNDECIDED)

    def design(self, targets: tuple[Target, ...]) -> Design:
        """The design for targets of one head."""
        family, kinds = self.family, list(dict.fromkeys(t.quantity for t in targets))
        blank = Design(
            family.name,
            str(family.parameter),
            tuple(map(str, targets)),
            tuple(q.header() for q in kinds),
            subject=family.name,
            condition=self.condition,
        )
        ordered = len(self.lines) == 1 and self.lines[0].order is not None
        ordered = ordered and all(q.ordered(q, family.formula, family.parameter) for q in kinds)
        try:
            read = (self._ordered if ordered else self._scanned)(targets)
            if isinstance(read, dict):
                return replace(blank, **read)
            (low, high), closed, value, unproved = read
            if value is None:
                raise Unreachable("no rational was found between the ends")
            reached = {q.name: q.number(family.at(value)) for q in kinds}
        except Unreachable as why:
            spent = time.monotonic() > budget().deadline
            reason = Reason(Code.BUDGET if spent else Code.NO_ENCLOSURE, str(why))
            return replace(blank, status=Status.UNKNOWN, label=None, reason=reason)
        return replace(
            blank,
            low=low,
            high=None if high is None else high[::-1],
            closed=closed,
            value=value,
            values=(value,),
            encoding=family.encoding([value]),
            achieved=reached if len(kinds) > 1 else reached[kinds[0].name],
            monotone=ordered,
            call=family.call([value]),
            label=_label(kinds),
            reason=Reason(Code.UNDECIDED, unproved) if unproved else None,
        )

    def _scanned(self, targets: Sequence[Target]) -> Fields:
        """Where no order is proved."""
        why = Unreachable("no parameter was tried")
        for line in self.lines:
            try:
                return scanned(line, [bound for t in targets for bound in t.bounds()])
            except Unreachable as none:
                why = none
        raise why

    def _ordered(self, targets: Sequence[Target]) -> Fields | dict[str, Any]:
        """Where the tails are ordered: the exact interval; the fields of an answer without one.

        Raises:
            InputError: no parameter meets the targets, with the range that can be met.
            Unreachable: what could not be decided.
        """
        (line,) = self.lines
        bounds = [bound for t in targets for bound in t.bounds()]
        sides = [[b for b in bounds if line.upwards(b) is up] for up in (True, False)]
        ends = [line.edge(side, up) for side, up in zip(sides, (True, False), strict=True)]
        closed = [
            line.contains(side, end) if end else whole
            for side, end, whole in zip(sides, ends, line.closed, strict=True)
        ]
        low, high = ends
        if low and high and low[1] > high[1]:
            return self._unmet(line, targets, sides, (low, high), closed)
        unproved = ""
        if line.order and any(
            end is None and any(not b.trivial for b in side)
            for side, end in zip(sides, ends, strict=True)
        ):
            a = self.family.parameter
            unproved = f"beyond the {a} that were tried, up to 2^64, nothing is proved"
        for k in (0, 1):
            if ends[k] is None and (end := line.convergent(k)) is not None:
                ends[k], closed[k] = end, False
        return (ends[0], ends[1]), (closed[0], closed[1]), self._value(line, ends, closed), unproved

    def _value(
        self, line: ParameterLine, ends: Sequence[Pair | None], closed: Sequence[bool]
    ) -> Rational | None:
        """The simplest value between the ends, or near the end at which a quantity is best."""
        p, a, best = self.family.formula, self.family.parameter, self.goal.best
        if self.undecided and line.order and ends[line.order == 1] is None:
            raise Unreachable(f"for which {a} the series converges is not decided")
        if best and best.ordered(best, p, a) and (near := _best(ends, line, best)) is not None:
            return near
        whole = line.part.start, line.part.end
        inner = [end[1] if end else x for end, x in zip(ends, whole, strict=True)]
        return simplest(*inner, *closed)

    def _unmet(
        self,
        line: ParameterLine,
        targets: Sequence[Target],
        sides: Sequence[Sequence[Target]],
        ends: tuple[Pair, Pair],
        closed: Sequence[bool],
    ) -> dict[str, Any]:
        """Where the ends cross no parameter meets the targets: a number that is jumped over, or two
        targets that contradict each other."""
        p, a, (low, high) = self.family.formula, self.family.parameter, ends
        proved = bool(low[0] >= high[0] or line.step or any(t.skipped(p) for t in targets))
        least, most = (line.binding(side, end)[0] for side, end in zip(sides, ends, strict=True))
        if str(least) == str(most):
            return self._nearest(least.quantity, (low[0], high[0]), proved=proved)
        if not proved:
            raise Unreachable(f"{least} and {most} could not be told apart")
        raise InputError(
            f"no {a} of {self.family.name} meets both {least}, which needs {a} "
            f"{'>=' if closed[0] else '>'} {float(low[0]):.6g}, and {most}, which needs {a} "
            f"{'<=' if closed[1] else '<'} {float(high[0]):.6g}"
        )

    def _nearest(self, asked: Quantity, ends: Pair, *, proved: bool) -> dict[str, Any]:
        """No parameter reaches a number: the values reached on both sides of the place where it
        would be."""
        answers = (asked.answer(self.family.at(a)) for a in ends)
        near = sorted(int(least) for least, _ in map(asked.span, answers))
        reason = f"{asked.words()} jumps from {near[0]} to {near[1]}"
        return {
            "nearest": (near[0], near[1]),
            "monotone": True,
            "status": Status.EXACT if proved else Status.UNKNOWN,
            "label": _label([asked]) if proved else None,
            "reason": Reason(Code.NEVER if proved else Code.TIE, reason),
        }


def _label(kinds: Sequence[Quantity]) -> Label:
    """Approximate where one of the quantities is a model in float64."""
    return Label.APPROXIMATE if any(q.approximate for q in kinds) else Label.CERTIFIED


def _best(ends: Sequence[Pair | None], line: ParameterLine, best: Quantity) -> Rational | None:
    """The simplest value within a thousandth of the end at which a quantity is best."""
    up = line.order == best.grows * best.better
    end, other = ends[up], ends[not up]
    if end is None:
        return None
    if line.step is not None:
        return line.rounded(end[1])
    near = [end[1] - (1 if up else -1) * abs(end[1]) * NEAR_BEST, *(other[1:] if other else ())]
    reach = max(near) if up else min(near)
    return simplest(min(reach, end[1]), max(reach, end[1]), True, True)


def _solutions(condition: Basic, a: Symbol) -> Any:
    """The parameters that meet a condition, as a set; None where it is not solved for them."""
    parts = condition.atoms(Relational)
    if any(p.lhs != a or p.rhs.free_symbols or p.has(sympy.Eq, sympy.Ne) for p in parts):
        return None
    return condition.as_set()
