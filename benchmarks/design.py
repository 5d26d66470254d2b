"""Random targets over the families of the catalogue: every end of every interval checked.

    python benchmarks/design.py --count 200 --seed 0 [--record benchmarks/design.json]

A goal is drawn with its family, one target or two; the answer is checked by the public functions of
its quantities: they must meet the goal at the value, at both inner rationals and at random
rationals between them, and miss it at both outer ones and at random rationals beyond. What a design
calls impossible must be missed at random parameters, what it calls the nearest must be reached on
both sides of a jump. Each design has the ten seconds that a user has; what is not known by then is
counted by itself. Prints what is wrong, and the times; each goal is drawn from its number alone.
"""

from __future__ import annotations

import random
import re
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from series import CASES
from side_by_side import Row, program, timed
from sympy import Rational

import farfield
from farfield.numerics.design.family import Family, read_family
from farfield.numerics.design.targets import TARGETS
from farfield.theory.answers.errors import InputError
from farfield.theory.relations import BY_SYMBOL

FAMILIES, ROWS = (
    [(name, values, dialect or None) for name, values, dialect in CASES[kind]]
    for kind in ("families", "rows")
)


def meets(answer: Any, target: str) -> bool:
    """Whether a number meets a target such as `=512` or `<=1/100`; of an enclosed one its bounds.
    What a series has that diverges, infinitely many tokens or a leak of 1, meets none; a horizon
    that never comes is beyond every number."""
    relation, limit = re.fullmatch(r"([<>=]+)(.*)", target).groups()  # type: ignore[union-attr]
    holds = BY_SYMBOL["==" if relation == "=" else relation].holds
    ends = answer.span()
    diverges = answer.reason is not None and answer.reason.code == "diverges"
    return not (ends is None or diverges) and all(bool(holds(x, Rational(limit))) for x in ends)


def draw(rng: random.Random) -> tuple[Any, str, str, dict[str, Any]]:
    """A family, a quantity, a target and the options of the quantity."""
    options: dict[str, Any]
    row = rng.random() < 0.1
    family = rng.choice(ROWS if row else FAMILIES)
    size = round(2 ** rng.uniform(0, 14))
    if row:
        length = rng.choice((256, 1000, 4096))
        if rng.random() < 0.5:
            options = {"eps": rng.choice(("1/10", "1/100")), "length": length}
            return family, "trf", f"{rng.choice(('=', '<=', '>='))}{1 + size % length}", options
        options = {"trained": length // 4, "tested": length}
        return family, "leak", f"{rng.choice(('<=', '>'))}1/{rng.randint(2, 1000)}", options
    match rng.choice(("trf", "trf", "trf", "leak", "window", "horizon", "layered", "resolution")):
        case "trf":
            eps = rng.choice(("1/10", "1/100", "1/1000", f"1/{rng.randint(2, 10**6)}"))
            return family, "trf", f"{rng.choice(('=', '=', '<=', '>='))}{size}", {"eps": eps}
        case "leak":
            limit = f"1/{round(2 ** rng.uniform(1, 30))}"
            return family, "leak", f"{rng.choice(('<=', '>='))}{limit}", {"trained": size}
        case "window":
            options = {
                "error": rng.choice(("1/10", "1/100", "1/1000")),
                "logit_bound": rng.choice((0, 1, "5/2")),
                "value_bound": 1,
            }
            return family, "window", f"{rng.choice(('=', '<='))}{size}", options
        case "horizon":
            options = {"dtype": rng.choice(("fp16", "bf16", "fp32"))}
            return family, "horizon", f"{rng.choice(('=', '>='))}{size}", options
        case "layered":
            return family, "layered", f"={1 + size % 512}", {"layers": rng.choice((2, 4))}
    return family, "resolution", f">=1/{round(2 ** rng.uniform(1, 12))}", {}


Goal = tuple[dict[str, str], dict[str, Any]]
"""Targets by quantity, and the options of all."""


def goal(rng: random.Random) -> tuple[Any, Goal]:
    """A family and what is asked of it: one target, or two of different quantities."""
    family, quantity, target, options = draw(rng)
    asked = {quantity: target}
    if family in FAMILIES and rng.random() < 0.2:
        _, other, also, more = next(d for d in iter(lambda: draw(rng), None) if d[0] in FAMILIES)
        if other not in asked:
            asked, options = {**asked, other: also}, {**options, **more}
    return family, (asked, options)


def wrong(rng: random.Random, family: Family, asked: Goal) -> tuple[list[str], float, str]:
    """What is wrong with the answer to one goal, the seconds it took, and what it was."""
    targets, given = asked
    values = {k: v for k, v in family.fixed.items() if k != "dialect"}

    def designed() -> Any:
        options = {"values": values, "dialect": family.fixed.get("dialect")}
        try:
            return farfield.design(family.given, **options, **targets, **given)
        except InputError as why:
            return str(why)

    def reached(quantity: str, a: Rational) -> Any:
        kind = TARGETS[quantity]  # its `ask` is the public function
        return kind.ask(family.at(a), **{k: v for k, v in given.items() if k in kind.options})

    def met(a: Rational) -> bool:
        return all(meets(reached(quantity, a), target) for quantity, target in targets.items())

    def anywhere(ask: Callable[[Rational], Any]) -> Iterator[tuple[Rational, Any]]:
        """What is answered at random parameters within the domain."""
        for a in [Rational(str(round(2 ** rng.uniform(-12, 6), 6))) for _ in range(6)]:
            with suppress(InputError, ArithmeticError, ValueError):
                yield a, ask(a)

    found, seconds = timed(designed, time.perf_counter)
    if isinstance(found, str):
        inside = [a for a, is_met in anywhere(met) if a > 0 and is_met]
        return [f"{found}: but {a} meets it" for a in inside], seconds, "impossible"
    if found.nearest is not None:
        ((quantity, target),) = targets.items()
        limit, (low, high) = int(target.lstrip("=")), found.nearest
        faults = [] if low < limit < high else [f"{limit} is not between {found.nearest}"]
        numbers = (v for _, v in anywhere(lambda a: int(reached(quantity, a))))
        faults += [f"{v} is between {found.nearest}" for v in numbers if low < v < high]
        return faults, seconds, "nearest"
    if found.value is None:
        return [], seconds, f"unknown: {found.reason}"
    low, high = found.low, found.high and found.high[::-1]
    inside = [found.value, *(end[1] for end in (low, high) if end)]
    outside = [end[0] for end in (low, high) if end]
    if found.monotone:
        first, last = (end[1] if end else found.value for end in (low, high))
        inside += [first + (last - first) * Rational(rng.randint(0, 999), 999) for _ in range(2)]
        for end, way, most in ((low, -1, 999), (high, 1, 2000)):
            if end:
                outside.append(end[0] + way * abs(end[0]) * Rational(rng.randint(1, most), 1000))
    faults = [f"{a} misses it" for a in inside if not met(a)]
    for a in outside:
        with suppress(InputError):
            faults += [f"{a} meets it, and is outside"] * met(a)
    return faults, seconds, "met" if found.monotone else "sampled"


def run(count: int, seed: int) -> Row:
    """Check so many goals: how many ended how, and how many were wrong."""
    kinds = dict.fromkeys(("met", "sampled", "nearest", "impossible", "unknown"), 0)
    times, faults, several = list[float](), 0, 0
    for k in range(count):
        rng = random.Random(f"{seed} {k}")
        (name, values, dialect), asked = goal(rng)
        family = read_family(name, values=values, dialect=dialect)
        found, seconds, kind = wrong(rng, family, asked)
        times.append(seconds)
        several += len(asked[0]) > 1
        kinds[kind.partition(":")[0]] += 1
        faults += bool(found)
        if found or kind.startswith("unknown") or seconds > 2:
            told = f"{name} {values} {dialect or ''} {asked}: {kind} {'; '.join(found)}"
            print(f"{k:4} {seconds:6.2f} s  {told}", flush=True)
    print(f"seconds: median {statistics.median(times):.3f}, most {max(times):.2f}")
    return {"seed": seed, "goals": count, "of two targets": several, "wrong": faults, **kinds}


def main(*, count: int = 200, seed: int = 0) -> Iterator[Row]:
    """Random targets over the families of the catalogue.

    Args:
        count: of goals.
        seed: of them all.
    """
    yield run(count, seed)


if __name__ == "__main__":
    program(main, "wrong")
