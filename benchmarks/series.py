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
from fractions import Fraction
from pathlib import Path
from typing import Any

BATTERY = Path(__file__).resolve().parents[1] / "tests" / "data" / "battery.jsonl"

ZEROS = (
    "sin(n)**2+cos(n)**2-1",
    "log(n*(n+1))-log(n)-log(n+1)",
    "cosh(n)-sinh(n)-exp(-n)",
    "asinh(n)-log(n+sqrt(n**2+1))",
    "sqrt(n+1)-sqrt(n)-1/(sqrt(n+1)+sqrt(n))",
    "loggamma(n+2)-loggamma(n+1)-log(n+1)",
    "atan(n)+atan(1/n)-pi/2",
    "digamma(n+1)-digamma(n)-1/n",
    "(n+1)**3-n**3-3*n**2-3*n-1",
    "sqrt(2)*sqrt(3)-sqrt(6)",
    "log(6)-log(2)-log(3)",
    "4*atan(1/5)-atan(1/239)-pi/4",
    "sin(2*n)-2*sin(n)*cos(n)",
    "erf(n)+erfc(n)-1",
    "log(exp(n)+1)-n-log(1+exp(-n))",
    "tanh(log(n))-(n**2-1)/(n**2+1)",
    "harmonic(n)-digamma(n+1)-EulerGamma",
)
ONES = (
    "(sqrt(5+2*sqrt(6))/(sqrt(2)+sqrt(3)))",
    "(2-sin(1)**2-cos(1)**2)",
    "(GoldenRatio**2-GoldenRatio)",
    "(log(6)/(log(2)+log(3)))",
    "(sin(n)**2+cos(n)**2)",
    "((cosh(n)-sinh(n))*exp(n))",
    "(log(n**2)/(2*log(n)))",
    "(sqrt(n**2+2*n+1)/(n+1))",
    "(cosh(1)**2-sinh(1)**2)",
    "(4*atan(1)/pi)",
    "(n*(n+1)/(n**2+n))",
)
BOUNDED = (
    "sin(n)",
    "cos(n**2)",
    "1/n",
    "exp(-n)",
    "frac(n/3)",
    "atan(n)",
    "erf(n)/2",
    "tanh(n)",
    "cos(sqrt(n))",
    "(-1)**n",
    "floor(sqrt(n))-sqrt(n)",
    "log(n)/n",
    "log(n+1)-log(n)",
    "harmonic(n)-log(n)",
    "3*sin(n)*cos(3*n)",
    "n**(1/log(n))",
    "sign(sin(n))",
)


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
            text = f"({text})+({rng.choice(ZEROS)})"
        elif kind == 1:
            text = f"({text})*{rng.choice(ONES)}"
        elif kind == 2:
            text = f"({text})+({rng.choice(BOUNDED)})"
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
