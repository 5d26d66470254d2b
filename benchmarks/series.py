"""Formulas whose verdict is known: disguises of given ones, and random ones composed on a scale.

A disguise keeps the verdict by an argument that does not need the engine: an identity, a bounded
term, a shift of the index, another name for a parameter. A random formula is composed of
monomials n^a (log n)^b (log log n)^c (log log log n)^d with rational coefficients, where the
ladder of logarithms is read off from exponents alone (`verdict_on_scale`), and then disguised.
"""

from __future__ import annotations

import json
import random
import re
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

BATTERY = Path(__file__).resolve().parents[1] / "tests" / "data" / "battery.jsonl"

CASES = tomllib.loads(Path(__file__).with_name("cases.toml").read_text(encoding="utf-8"))


def battery() -> list[dict[str, Any]]:
    """The cases with proven verdicts: `expr`, `params`, `verdict`, `condition`, `why`, `family`."""
    return [json.loads(line) for line in BATTERY.read_text(encoding="utf-8").splitlines()]


def shifted(text: str, k: int) -> str:
    """The formula at n + k: the series loses or gains finitely many terms."""
    return re.sub(r"\bn\b", f"(n+{k})", text)


def renamed(text: str, names: dict[str, str]) -> str:
    """The formula with other names for its parameters."""
    return re.sub(r"[A-Za-z_]\w*", lambda m: names.get(m.group(), m.group()), text)


def disguised(text: str, rng: random.Random) -> str:
    """The formula under one to three random changes that keep the verdict.

    A factor that is identically 1 and a term that is identically 0 are exact; a bounded term
    multiplies the terms of the series by what stays between two positive constants.
    """
    for _ in range(rng.randint(1, 3)):
        kind = rng.randrange(5)
        if kind == 0:
            text = f"({text})+({rng.choice(CASES['zeros'])})"
        elif kind == 1:
            text = f"({text})*{rng.choice(CASES['ones'])}"
        elif kind == 2:
            text = f"({text})+({rng.choice(CASES['bounded'])})"
        elif kind == 3:
            text = shifted(text, rng.randint(1, 9))
        else:
            text = f"log(exp({text}))" if "exp(-" not in text else f"-(-({text}))"
    return text


# -- composed on a scale --------------------------------------------------------------------------

Exponents = tuple[Fraction, ...]  # of n, log n, log log n, log log log n
LOGS = ("n", "log(n)", "log(log(n))", "log(log(log(n)))")


def verdict_on_scale(rho: dict[Exponents, Fraction]) -> bool:
    """Whether sum exp(-rho) converges, for rho = sum c n^a (log n)^b ...: the ladder, read off
    from the exponents in lexicographic order."""
    rho = {e: c for e, c in rho.items() if c}
    for k in range(1, 10):
        scale = tuple(Fraction(int(i == k)) for i in range(max(4, k + 1)))
        lead = max((_padded(e, len(scale)) for e in rho), default=None)
        if lead is None or lead < scale:
            return False
        c = rho[lead[:4]]
        if lead > scale or c != 1:
            return c > (0 if lead > scale else 1)
        del rho[lead[:4]]
    raise AssertionError("nine rungs of a scale with four logarithms")


def _padded(e: Exponents, length: int) -> Exponents:
    return e + (Fraction(0),) * (length - len(e))


def random_series(rng: random.Random) -> tuple[str, bool]:
    """(formula, whether its exp-series converges): near the border more often than not."""
    rho: dict[Exponents, Fraction] = {}
    if rng.random() < 0.8:  # a tie on the first rungs, then something else
        for k in range(1, rng.randint(1, 3) + 1):
            rho[_unit(k)] = Fraction(1)
    for _ in range(rng.randint(1, 3)):
        rho[_random_exponents(rng)] = Fraction(rng.randint(-6, 6), rng.choice((1, 1, 2, 3, 10)))
    terms = [_monomial(e, c, rng) for e, c in rho.items() if c]
    rng.shuffle(terms)
    text = "-(" + "+".join(terms or ["0*n"]) + ")"
    return disguised(text, rng), verdict_on_scale(rho)


def _unit(k: int) -> Exponents:
    return tuple(Fraction(int(i == k)) for i in range(4))


def _random_exponents(rng: random.Random) -> Exponents:
    choices = (-1, -1, 0, 0, 0, Fraction(1, 2), 1, 1, 2, Fraction(-1, 2), Fraction(1, 3))
    return (
        Fraction(rng.choice((0, 0, 0, 0, -1, Fraction(1, 2), 1, 2))),
        *(Fraction(rng.choice(choices)) for _ in range(3)),
    )


def _monomial(e: Exponents, c: Fraction, rng: random.Random) -> str:
    factors = [f"({c})"]
    for base, power in zip(LOGS, e, strict=True):
        if not power:
            continue
        inside = base.replace("n", f"n+{rng.randint(0, 5)}") if e[0] <= 0 else base
        style = rng.randrange(3)
        if power == 1 and style < 2:
            factors.append(f"({inside})")
        elif style == 0:
            factors.append(f"exp(({power})*log({inside}))")
        else:
            factors.append(f"({inside})**({power})")
    return "*".join(factors)
