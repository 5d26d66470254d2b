"""From a goal to an encoding: which parameters of a family meet a target."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import sympy
from sympy import Expr, Interval, Rational, Symbol
from sympy.core.relational import Relational

from farfield.numerics.design.designs import Design, Designs
from farfield.numerics.design.family import Family, read_family
from farfield.numerics.design.line import Endpoint, FeasibleInterval, Infeasible, ParameterLine
from farfield.numerics.design.order import support_step, tail_order
from farfield.numerics.design.rationals import simplest
from farfield.numerics.design.scan import scanned
from farfield.numerics.design.targets import (
    TARGETS,
    Quantity,
    Target,
    options,
    quantity,
    read_targets,
)
from farfield.theory.algebra.budget import budget, until
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.answers.answer import Answer, Code, InputError, Label, Reason, Status
from farfield.theory.answers.notation import expression_line
from farfield.theory.answers.number import exact, natural, seconds
from farfield.theory.convergence import Verdict, check_convergence
from farfield.theory.encodings import CATALOGUE

COSTS = ("leak", "horizon", "window")
NEAR_BEST = Rational(1, 1_000)
MAX_HEADS = 1_024
Notice = Callable[..., None]


def design(
    family: Any,
    *,
    parameter: str | None = None,
    heads: int | None = None,
    budget_s: float = 10,
    optimise: str | None = None,
    values: Mapping[str, Any] | None = None,
    dialect: str | None = None,
    assumptions: Mapping[str, str] | None = None,
    notice: Notice | None = None,
    **targets: Any,
) -> Design | Designs:
    """The parameters of a family of biases that meet a target: an exact interval (ours).

    Args:
        family: a formula in `n` with one free parameter, a name of the catalogue (its formula with
            one free parameter a head), an `Encoding`; or a list of them, to be ranked.
        parameter: the name of the free parameter, where others have no value.
        heads: so many heads, one value each; then a target is a pair, spaced geometrically, or a
            list of one target a head.
        budget_s: seconds; whatever is open after them stays unknown.
        optimise: a quantity by which several families are ranked, and whose best value the interval
            allows is taken: `leak` and `window` the less, the others the more the better.
        values: of the other parameters, and options of the encoding; keywords that name no option
            of a target are values too.
        dialect: variant of an encoding of the catalogue.
        assumptions: domains of parameters: positive (the default), real, [0, 2), ...
        notice: called as `notice(stage, done, total)`.
        **targets: `trf` with `eps` (and `length`), `leak` with `trained` (and `tested`),
            `window` with `error`, `logit_bound`, `value_bound` (and `sinks`, `row`, `temper`),
            `layered` with `layers` (and `mixing`, `q`, `length`), `reach` with `advantage` (and
            `share`, `length`), `horizon` with `dtype` (and `flush_to_zero`), `resolution` (with
            `scale`, `length`), `forecast` (the quantity of `farfield.forecast`, for heads that are
            alike) with `trained`, `tested` (and `layers`). A number means: leak and forecast at
            most, resolution and reach at least, the others equal; a text such as `">=1024"` or
            `">=64, <=128"` says otherwise.

    Returns:
        A `Design`; of several families `Designs`.

    Raises:
        InputError: a target that no parameter meets, with the range that can be met; targets that
            contradict each other; a series that diverges for every parameter; no free parameter or
            several; numbers out of range.

    >>> found = design("alibi", trf=512, eps="1/100")
    >>> found.value, found.achieved, [float(x) for x in found.low]
    (1/111, 512, [0.0089944730195, 0.0089944730196])
    >>> design("window", layered=202, layers=12).nearest
    (201, 206)
    >>> design("-a*log(1+n)", trf=(16, 256), heads=3).values
    (17/7, 155/78, 44/25)
    """
    asked = {name: targets.pop(name) for name in TARGETS if targets.get(name) is not None}
    targets = {name: value for name, value in targets.items() if value is not None}
    if "evaluated" in targets:
        former = "design(evaluated=...) is design(tested=...)"
        warnings.warn(former, DeprecationWarning, stacklevel=2)
        targets.setdefault("tested", targets.pop("evaluated"))
    if not asked:
        raise InputError(f"a design needs a target; accepted: {', '.join(TARGETS)}")
    budget = seconds(budget_s)
    goal = _Targets.read(asked, targets, heads, optimise, notice or (lambda *_: None))
    own = {**targets, **(values or {})}
    if isinstance(family, (list, tuple)):
        families = [_read(f, parameter, dialect, own, assumptions) for f in family]
        with until(time.monotonic() + budget):
            return goal.ranked(families)
    found = read_family(family, parameter, dialect=dialect, values=own, assumptions=assumptions)
    with until(time.monotonic() + budget):
        return goal.of(found)


def _read(
    family: Any,
    parameter: str | None,
    dialect: str | None,
    values: Mapping[str, Any],
    assumptions: Mapping[str, str] | None,
) -> Family:
    """One of several families, with those of the values and domains that it has a name for."""
    entry = CATALOGUE.get(family) if isinstance(family, str) else None
    known = {*re.findall(r"[A-Za-z_][A-Za-z0-9_]*", str(getattr(family, "formula", family)))}
    if entry is not None:
        own = entry.parameters if isinstance(entry.parameters, tuple) else ()
        known = {*entry.options, *(p.name for p in own)}
    return read_family(
        family,
        parameter if parameter in known else None,
        dialect=dialect if entry is not None and dialect in entry.dialects else None,
        values={k: v for k, v in values.items() if k in known},
        assumptions={k: v for k, v in (assumptions or {}).items() if k in known},
    )


@dataclass(frozen=True)
class _Targets:
    """The question about a family: targets of one head, or of each of several.

    Args:
        heads: the targets of each head.
        several: whether several heads were asked for.
        said: the targets in words.
        quantities: those of the targets.
        costs: quantities reported head by head.
        together: those reported for all heads together.
        best: the quantity to be optimised, and the sign of what is better.
        notice: called as stages begin.
    """

    heads: tuple[tuple[Target, ...], ...]
    several: bool
    said: tuple[str, ...]
    quantities: tuple[Quantity, ...]
    costs: tuple[Quantity, ...]
    together: tuple[Quantity, ...]
    best: Quantity | None
    notice: Notice

    @classmethod
    def read(
        cls,
        asked: Mapping[str, Any],
        given: dict[str, Any],
        heads: int | None,
        optimise: str | None,
        notice: Notice,
    ) -> _Targets:
        """The goal that is meant; options of its quantities are taken out of `given`."""
        if heads is not None and not 1 <= natural(heads, "heads") <= MAX_HEADS:
            raise InputError(f"heads {heads}: accepted is a number from 1 to {MAX_HEADS}")
        each = {name: _by_head(name, value, heads) for name, value in asked.items()}
        counts = {len(v) for v in each.values() if v is not None} | ({heads} if heads else set())
        if len(counts) > 1:
            raise InputError(f"targets for {sorted(counts)} heads are given; they must agree")
        count = counts.pop() if counts else 1
        several = heads is not None or any(v is not None for v in each.values())
        wholes = [name for name, kind in TARGETS.items() if not kind.per_head]
        if several and (whole := next((name for name in wholes if name in asked), None)):
            raise InputError(f"a {whole} is of all heads together; accepted: without heads")
        together = [
            k
            for k in wholes
            if "leak" not in asked  # there the test length is that of the leak
            and all(given.get(o) is not None for o, must in options(TARGETS[k]).items() if must)
        ]
        named = [*asked, *([optimise] if optimise else []), *(COSTS if several else ()), *together]
        chosen = {name: quantity(name, given) for name in dict.fromkeys(named)}
        for name in {k for q in chosen for k in options(TARGETS[q])}:
            given.pop(name, None)
        targets = [
            tuple(
                t
                for name, value in asked.items()
                for t in read_targets(chosen[name], (each[name] or [value] * count)[h])
            )
            for h in range(count)
        ]
        said = [
            str(a) if a == b else f"{a} to {b.limit}"
            for a, b in zip(targets[0], targets[-1], strict=True)
        ]
        return cls(
            tuple(targets),
            several,
            tuple(said),
            tuple(chosen[k] for k in asked),
            tuple(chosen[k] for k in COSTS if k not in asked) if several else (),
            tuple(chosen[k] for k in together),
            chosen[optimise] if optimise else None,
            notice,
        )

    def of(self, family: Family) -> Design:
        """The design of one family."""
        self.notice(f"order of {family.name}"[:40], 0, 1)
        asked = _FamilyRequest(family, self)
        found = []
        for h, targets in enumerate(self.heads):
            self.notice("searching", h, len(self.heads))
            found.append(asked.design(targets))
        if not self.several:
            (one,) = found
            return replace(one, together=self._together(family, one.values)) if one.values else one
        worst = next((d for d in found if d.value is None), found[0])
        given = tuple(d.value for d in found if d.value is not None)
        whole = len(given) == len(found)
        approximate = any(d.label is Label.APPROXIMATE for d in found)
        return replace(
            found[0],
            targets=self.said,
            low=None,
            high=None,
            closed=(False, False),
            value=None,
            values=given if whole else (),
            encoding=family.encoding(given) if whole else None,
            achieved=tuple(d.achieved for d in found),
            nearest=None,
            monotone=all(d.monotone for d in found),
            call=family.call(given) if whole else "",
            costs=tuple(self._costs(d) for d in found) if whole else (),
            together=self._together(family, given) if whole else (),
            heads=tuple(found),
            status=worst.status,
            reason=worst.reason,
            label=Label.APPROXIMATE if approximate and worst.label else worst.label,
        )

    def _together(self, family: Family, values: Sequence[Rational]) -> tuple[Answer, ...]:
        return tuple(q.answer(family.encoding(values)) for q in self.together)

    def _costs(self, head: Design) -> dict[str, Any]:
        assert head.encoding is not None
        self.notice("costs", 0, 1)
        return {q.brief(): _known(q, head.encoding.biases[0]) for q in self.costs}

    def ranked(self, families: Sequence[Family]) -> Designs:
        """The designs of several families, the best first."""
        found: list[tuple[Design, float | None]] = []
        for family in families:
            try:
                one = self.of(family)
            except InputError as why:
                one = Design(
                    family.name,
                    str(family.parameter),
                    self.said,
                    subject=family.name,
                    reason=Reason(Code.NEVER, str(why)),
                )
            score = None
            if self.best is not None and one.value is not None:
                score = _known(self.best, family.at(one.value))
            found.append((one, score))
        way = 1 if self.best is None else self.best.better

        def rank(pair: tuple[Design, float | None]) -> tuple[bool, bool, float]:
            one, score = pair
            return not one.values, score is None, 0 if score is None else -way * score

        found.sort(key=rank)
        first = found[0][0]
        optimise = None
        if self.best is not None:
            optimise = f"{'most' if way > 0 else 'least'} {self.best.brief()}"
        unknown = next((d for d, _ in found if d.status is Status.UNKNOWN), None)
        shown = first if first.values or unknown is None else unknown
        return Designs(
            tuple(d for d, _ in found),
            optimise,
            tuple(s for _, s in found),
            first.family if first.values else None,
            status=shown.status,
            label=shown.label,
            reason=shown.reason,
            subject=", ".join(f.name for f in families),
        )


def _by_head(name: str, value: Any, heads: int | None) -> list[Any] | None:
    """A target a head: a list as it is, a pair spaced geometrically; None for one of all heads."""
    if isinstance(value, str):
        listed = re.split(r"[,:]", value)
        if len(listed) < 2 or re.search("[<>=]", value):
            return None
        value = listed
    if not isinstance(value, (list, tuple)):
        return None
    if not value or (heads is not None and len(value) not in (2, heads)):
        raise InputError(
            f"{name} has {len(value)} targets for {heads} heads; accepted: a pair, spaced "
            "geometrically, or one a head"
        )
    if heads is None or len(value) == heads:
        return list(value)
    whole = TARGETS[name].integer
    first, last = (Rational(natural(v, name)) if whole else exact(v, name) for v in value)
    if not (first > 0 and last > 0):
        raise InputError(f"{name} from {first} to {last}: accepted are positive numbers")
    ratio = float(last / first) ** (1 / (heads - 1)) if heads > 1 else 1.0
    between = [float(first) * ratio**h for h in range(1, heads - 1)]
    return [first, *(round(x) if whole else f"{x:.6g}" for x in between), last][:heads]


def _known(asked: Quantity, bias: Expr) -> float | None:
    try:
        return asked.number(bias)
    except (InputError, Unreachable):
        return None


@dataclass(frozen=True)
class _FamilyRequest:
    """One family and one goal; what does not depend on the limits is found once."""

    family: Family
    goal: _Targets

    @cached_property
    def _convergence(self) -> tuple[Verdict, Any]:
        """The verdict over the domain and the parameters, as a set, with a convergent series."""
        family = self.family
        low, high, closed_low, closed_high = family.ends
        domain = Interval(low, high, not closed_low, not closed_high)
        if not any(q.whole for q in self.goal.quantities) or self._step:
            return Verdict.CONVERGES, domain
        found = check_convergence(
            family.formula, assumptions={str(family.parameter): family.domain}
        )
        if found.verdict is not Verdict.CONDITIONAL:
            return found.verdict, domain
        where = _solutions(found.condition, family.parameter)
        return (Verdict.UNDECIDED if where is None else found.verdict), (
            domain if where is None else where.intersect(domain)
        )

    @cached_property
    def _step(self) -> str | None:
        return support_step(self.family.formula, self.family.parameter)

    @cached_property
    def _axes(self) -> tuple[ParameterLine, ...]:
        """Where parameters are sought."""
        family = self.family
        low, high, *closed = family.ends
        if self._step is not None:
            ends = (closed[0], closed[1])
            return (ParameterLine(family, 1, low, high, closed=ends, step=self._step),)
        verdict, where = self._convergence
        parts = where.args if isinstance(where, sympy.Union) else (where,)
        lines = []
        for part in parts:
            if not isinstance(part, Interval):
                continue
            order = tail_order(family.formula, family.parameter, part.start, part.end)
            outer = (part.start == low, part.end == high)
            held = (not part.left_open and outer[0], not part.right_open and outer[1])
            lines.append(ParameterLine(family, order, part.start, part.end, outer, held))
        if verdict is Verdict.DIVERGES or not lines:
            raise InputError(self._diverges())
        return tuple(lines)

    def _diverges(self) -> str:
        family = self.family
        said = f"the series of {family.name} diverges for every {family.parameter}"
        if family.fixed:
            found = check_convergence(family.whole)
            if found.verdict is Verdict.CONDITIONAL:
                said += f" with these values; it converges if {expression_line(found.condition)}"
        return f"{said}: no number of tokens holds a share of it; a row has one, with length"

    def design(self, targets: tuple[Target, ...]) -> Design:
        """The design for targets of one head."""
        family = self.family
        verdict, where = self._convergence
        conditional = verdict is Verdict.CONDITIONAL
        blank = Design(
            family.name,
            str(family.parameter),
            tuple(map(str, targets)),
            tuple(q.brief() for q in self.goal.quantities),
            subject=family.name,
            condition=_words(where, family.parameter) if conditional else None,
        )
        try:
            return self._found(blank, targets)
        except Unreachable as why:
            spent = time.monotonic() > budget().deadline
            reason = Reason(Code.BUDGET if spent else Code.NO_ENCLOSURE, str(why))
            return replace(blank, status=Status.UNKNOWN, label=None, reason=reason)

    def _found(self, blank: Design, targets: tuple[Target, ...]) -> Design:
        axis, p, a = self._axes[0], self.family.formula, self.family.parameter
        ordered = (
            len(self._axes) == 1
            and axis.order is not None
            and all(t.quantity.ordered(p, a) for t in targets)
        )
        if not ordered:
            found, undecided = _first_sampled(self._axes, targets)
            done = self._met(blank, targets, found, False)
            return replace(done, reason=Reason(Code.UNDECIDED, undecided)) if undecided else done
        for t in targets:
            if t.relation == "=" and axis.step is None and t.quantity.skips(p, int(t.limit)):
                return self._unreached(blank, axis, t)
        try:
            found = axis.region(targets)
        except Infeasible as none:
            if none.low.event.target == none.high.event.target:
                ends = (none.low.outside, none.high.outside)
                return self._between(blank, none.low.event.target, ends, none.proved)
            if not none.proved:
                raise Unreachable(f"{none} could not be told apart") from None
            raise InputError(_contradiction(self.family, none)) from None
        if self._convergence[0] is Verdict.UNDECIDED and axis.order:
            heavy = found.low if axis.order < 0 else found.high
            if heavy is None:
                raise Unreachable(f"for which {a} the series converges is not decided")
        if self.goal.best is not None and self.goal.best.ordered(p, a):
            found = replace(found, value=_best(found, axis, self.goal.best))
        done = self._met(blank, targets, found, True)
        if axis.open_ends:
            said = f"beyond the {a} that were tried, up to 2^64, nothing is proved"
            done = replace(done, reason=Reason(Code.UNDECIDED, said))
        return done

    def _met(
        self, blank: Design, targets: tuple[Target, ...], found: FeasibleInterval, monotone: bool
    ) -> Design:
        if found.value is None:
            raise Unreachable("no rational was found between the ends")
        bias, kinds = self.family.at(found.value), self.goal.quantities
        reached = {q.name: q.number(bias) for q in kinds}
        approximate = any(q.approximate for q in kinds)
        return replace(
            blank,
            low=found.low,
            high=None if found.high is None else found.high[::-1],
            closed=found.closed,
            value=found.value,
            values=(found.value,),
            encoding=self.family.encoding([found.value]),
            achieved=reached if len(kinds) > 1 else reached[kinds[0].name],
            monotone=monotone,
            call=self.family.call([found.value]),
            label=Label.APPROXIMATE if approximate else Label.CERTIFIED,
        )

    def _unreached(self, blank: Design, axis: ParameterLine, target: Target) -> Design:
        """No parameter reaches the number: what is reached on both sides of where it would be."""
        edge = axis.edge(next(target.events()))
        if not isinstance(edge, Endpoint):
            raise InputError(
                f"{target} is met by no {axis.family.parameter} of "
                f"{axis.family.name}: {axis.reached(target.quantity)}"
            )
        return self._between(blank, target, (edge.outside, edge.inside), True)

    def _between(
        self, blank: Design, target: Target, ends: tuple[Rational, Rational], proved: bool
    ) -> Design:
        near = sorted(target.quantity.number(self.family.at(a)) or 0 for a in ends)
        said = f"{target.quantity.words()} jumps from {near[0]} to {near[1]}"
        return replace(
            blank,
            nearest=(int(near[0]), int(near[1])),
            monotone=True,
            status=Status.EXACT if proved else Status.UNKNOWN,
            label=Label.CERTIFIED if proved else None,
            reason=Reason(Code.NEVER if proved else Code.TIE, said),
        )


def _first_sampled(
    axes: Sequence[ParameterLine], targets: tuple[Target, ...]
) -> tuple[FeasibleInterval, str]:
    why = Unreachable("no parameter was tried")
    for axis in axes:
        try:
            return scanned(axis, targets)
        except Unreachable as none:
            why = none
    raise why


def _contradiction(family: Family, none: Infeasible) -> str:
    a, low, high = family.parameter, none.low, none.high
    return (
        f"no {a} of {family.name} meets both {low.event.target}, which needs {a} "
        f"{'>=' if low.contained else '>'} {float(low.outside):.6g}, and {high.event.target}, "
        f"which needs {a} {'<=' if high.contained else '<'} {float(high.outside):.6g}"
    )


def _best(found: FeasibleInterval, axis: ParameterLine, best: Quantity) -> Rational | None:
    """The simplest value within a thousandth of the end at which a quantity is best."""
    assert axis.order is not None
    up = axis.order * best.grows * best.better > 0
    end, other = (found.high, found.low) if up else (found.low, found.high)
    if end is None:
        return found.value
    if axis.step is not None:
        return Rational(sympy.ceiling(end[1]) if axis.step == "ceiling" else sympy.floor(end[1]))
    reach = end[1] - (1 if up else -1) * abs(end[1]) * NEAR_BEST
    if other is not None:
        reach = max(reach, other[1]) if up else min(reach, other[1])
    low, high = sorted((reach, end[1]))
    return simplest(low, high, True, True)


def _solutions(condition: Any, a: Symbol) -> Any:
    """The parameters that meet a condition, as a set; None where it is not solved for them."""
    parts = condition.atoms(Relational)
    if any(p.lhs != a or p.rhs.free_symbols or p.has(sympy.Eq, sympy.Ne) for p in parts):
        return None
    return condition.as_set()


def _words(where: Any, a: Symbol) -> str:
    """The parameters with a convergent series, as `1 < a`."""
    x = Symbol(a.name, real=True)
    return expression_line(where.as_relational(x), unicode=False)
