"""Random targets over the families of the catalogue: every end of every interval checked.

    python benchmarks/design.py [--count 200] [--seed 0] [--record design.json]

A goal is drawn with its family, one target or two; the answer is checked by the public functions of
its quantities: they must meet the goal at the value, at both inner rationals and at random
rationals between them, and miss it at both outer ones and at random rationals beyond. What a design
calls impossible must be missed at random parameters, what it calls the nearest must be reached on
both sides of a jump. Each design has the ten seconds that a user has; what is not known by then is
counted by itself. Prints what is wrong, and the times; each goal is drawn from its number alone.
"""

from __future__ import annotations

import json
import random
import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cyclopts
from sympy import Rational

import farfield
from farfield.numerics.design.family import Family, read_family
from farfield.numerics.design.targets import TARGETS
from farfield.theory.answers.errors import InputError
from farfield.theory.relations import BY_SIGN

FAMILIES: tuple[tuple[str, dict[str, Any], str | None], ...] = (
    ("alibi", {}, None),
    ("alibi_log", {}, None),
    ("window", {}, None),
    ("window", {}, "inclusive"),
    ("kerple_log", {"r2": 1}, None),
    ("kerple_log", {"r2": "1/2"}, None),
    ("kerple_log", {"r1": 2}, None),
    ("kerple_log", {"r1": "3/2"}, None),
    ("kerple_power", {"r1": 1}, None),
    ("kerple_power", {"r1": "1/2"}, None),
    ("kerple_power", {"r2": "1/2"}, None),
    ("kerple_power", {"r2": "3/2"}, None),
    ("sandwich_smoothed", {}, None),
    ("type1", {}, "code"),
    ("type2", {}, "code"),
    ("bam", {"s": 0, "mu": 0, "eps": "1e-5"}, None),
    ("bam", {"beta": "1/2", "mu": 0, "eps": "1e-5"}, None),
    ("bam", {"beta": "1/2", "mu": 0, "s": 0}, None),
)
"""Name, values of the other parameters, dialect; every family of the catalogue whose series
converges for some values."""

ROWS: tuple[tuple[str, dict[str, Any], str | None], ...] = (
    ("example1", {}, "code"),
    ("example2", {}, "code"),
    ("alibi", {}, None),
    ("kerple_log", {"r2": 1}, None),
    ("sandwich_smoothed", {}, None),
)
"""Families that are asked for the receptive field and the leak of a row."""


def meets(answer: Any, target: str) -> bool:
    """Whether a number meets a target such as `=512` or `<=1/100`; of an enclosed one its bounds.
    What a series has that diverges, infinitely many tokens or a leak of 1, meets none; a horizon
    that never comes is beyond every number."""
    relation, limit = re.fullmatch(r"([<>=]+)(.*)", target).groups()  # type: ignore[union-attr]
    holds = BY_SIGN["==" if relation == "=" else relation].holds
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


def _number(reached: Callable[[str, Rational], Any], quantity: str, a: Rational) -> int | None:
    try:
        return int(reached(quantity, a))
    except (InputError, ArithmeticError, ValueError):
        return None


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
    began = time.perf_counter()
    try:
        found = farfield.design(
            family.given,
            values={k: v for k, v in family.fixed.items() if k != "dialect"},
            dialect=family.fixed.get("dialect"),
            **targets,
            **given,
        )
    except InputError as why:
        found, said = None, str(why)
    seconds = time.perf_counter() - began

    def reached(quantity: str, a: Rational) -> Any:
        kind = TARGETS[quantity]  # its `ask` is the public function
        return kind.ask(family.at(a), **{k: v for k, v in given.items() if k in kind.options})

    def met(a: Rational) -> bool:
        return all(meets(reached(quantity, a), target) for quantity, target in targets.items())

    if found is None:
        tried = [Rational(str(round(2 ** rng.uniform(-12, 6), 6))) for _ in range(6)]
        inside = [a for a in tried if a > 0 and _in_reach(met, a)]
        return [f"{said}: but {a} meets it" for a in inside], seconds, "impossible"
    if found.nearest is not None:
        ((quantity, target),) = targets.items()
        limit, near = int(target.lstrip("=")), found.nearest
        faults = [] if near[0] < limit < near[1] else [f"{limit} is not between {near}"]
        tried = [Rational(str(round(2 ** rng.uniform(-12, 6), 6))) for _ in range(6)]
        values = [v for a in tried if (v := _number(reached, quantity, a)) is not None]
        faults += [f"{v} is between {near}" for v in values if near[0] < v < near[1]]
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
    faults += [f"{a} meets it, and is outside" for a in outside if _in_reach(met, a)]
    return faults, seconds, "met" if found.monotone else "sampled"


def _in_reach(met: Callable[[Rational], bool], a: Rational) -> bool:
    try:
        return met(a)
    except InputError:
        return False


def run(count: int, seed: int) -> dict[str, Any]:
    """Check so many goals; how many ended how, how many were wrong, and the seconds of a design."""
    ends = ("met", "sampled", "nearest", "impossible", "unknown")
    times, kinds, faults, several = list[float](), dict.fromkeys(ends, 0), 0, 0
    for k in range(count):
        rng = random.Random(f"{seed} {k}")
        (name, values, dialect), asked = goal(rng)
        family = read_family(name, values=values, dialect=dialect)
        found, seconds, kind = wrong(rng, family, asked)
        times.append(seconds)
        several += len(asked[0]) > 1
        kinds[kind.partition(":")[0]] += 1
        if found or kind.startswith("unknown") or seconds > 2:
            targets = " ".join(f"{q}{t}" for q, t in asked[0].items())
            print(
                f"{k:4} {seconds:6.2f} s  {name} {values} {dialect or ''} {targets} {asked[1]}: "
                f"{kind} {'; '.join(found)}",
                flush=True,
            )
        faults += bool(found)
    print(
        f"{count} goals, {several} of two targets, {faults} wrong; {kinds}; seconds: median "
        f"{statistics.median(times):.3f}, most {max(times):.2f}"
    )
    return {"goals": count, "of two targets": several, "wrong": faults, **kinds}


def main(*, count: int = 200, seed: int = 0, record: Path | None = None) -> None:
    """Random targets over the families of the catalogue.

    Args:
        count: of goals.
        seed: of them all.
        record: a file for the counts.
    """
    result = run(count, seed)
    if record is not None:
        command = f"python benchmarks/design.py --count {count} --seed {seed}"
        kept = {"command": command, "version": farfield.__version__, "seed": seed, **result}
        record.write_text(json.dumps(kept, indent=2) + "\n")
    sys.exit(int(result["wrong"] > 0))


if __name__ == "__main__":
    cyclopts.run(main)
