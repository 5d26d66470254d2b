"""Powers whose exponent oscillates, and multiples of |sin n|: against rules derived by hand.

For v = c + sum of waves with least value lo and kappa = sum 1/e over the orders of their minima:

* sum n^-r exp(-A n^v): converges for lo > 0 or r > 1; for lo < 0 only if r > 1; for lo = 0 the
  phases with n^(v - lo) = O(1) have the share (log n)^-kappa, so it converges iff r > 1, or r = 1
  and kappa > 1.
* sum n^-r exp(-A log(n)^v): lo > 1 converges; at lo = 1 the share is (log n log log n)^-kappa and
  the terms are n^-(r + A); for lo < 1 it is sum n^-r but for r = 1, which exp(-A log(n)^lo) makes
  converge if lo > 0; at lo = 0 the share is only (log log n)^-kappa.
"""

import random
from fractions import Fraction

import numpy as np
import pytest

from farfield.numerics.checking.checker import check_proof
from farfield.numerics.checking.numbers import ProofError
from farfield.theory.convergence import check_convergence

WAVES = {  # phase-independent waves on [0, 1] with a minimum 0 of order e
    "(1+sin({w}*n))/2": Fraction(1, 2),
    "(1-cos({w}*n))/2": Fraction(1, 2),
    "Abs(sin({w}*n))": Fraction(1),
    "frac({w}*n)": Fraction(1),
    "sin({w}*n/2)^2": Fraction(1, 2),
}
TURNS = {"frac": ("sqrt(5)", "sqrt(7)", "2*sqrt(11)"), "": ("1", "sqrt(2)", "2*sqrt(3)", "3/2")}
SLOW = ("(1+sin(sqrt(n)))/2", "(1+cos(n^(2/3)))/2", "(1+sin(3*log(n+1)))/2")


def formula(rng):
    """A random formula and whether its series converges."""
    waves, kappa = [], Fraction(0)
    if rng.random() < 0.2:
        waves, kappa = [f"{rng.choice((1, 2))}*{rng.choice(SLOW)}"], Fraction(1, 2)
    else:
        units = set()
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
            kind = rng.choice(list(WAVES))
            turn = rng.choice(TURNS["frac" if "frac" in kind else ""])
            unit = "1" if "sqrt" not in turn else turn[turn.index("sqrt") :]
            if unit in units:
                continue
            units.add(unit)
            waves.append(f"{rng.choice(('1', '1/2', '2', '5/3'))}*{kind.format(w=f'({turn})')}")
            kappa += WAVES[kind]
    low = rng.choice(
        (
            Fraction(0),
            Fraction(0),
            Fraction(1),
            Fraction(1),
            Fraction(1, 2),
            Fraction(3, 2),
            Fraction(-1, 3),
        )
    )
    a = rng.choice((Fraction(1), Fraction(1), Fraction(1, 2), Fraction(3)))
    r = rng.choice((Fraction(0), Fraction(0), Fraction(1), Fraction(1, 2), Fraction(2)))
    base = rng.choice(("(n+1)", "log(n+2)", "sqrt(n+1)"))
    text = f"-({a})*{base}^({low}+{'+'.join(waves)})" + (f"-({r})*log(n+1)" if r else "")
    if base == "log(n+2)":
        if low > 1:
            return text, True
        if low < 1:
            return text, r > 1 or (r == 1 and low > 0)
        return text, r + a > 1 or (r + a == 1 and kappa > 1)
    if low > 0:
        return text, True
    return text, r > 1 or (r == 1 and low == 0 and kappa > 1)


SEEDS = [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 10))]


@pytest.mark.parametrize("seed", SEEDS)
def test_none_of_500_random_formulas_is_wrong(seed):
    rng = random.Random(seed)
    for k in range(50):
        text, converges = formula(rng)
        found = check_convergence(text)
        if found.verdict == "undecided":
            assert "log(n+2)^(1+" in text and "sin(3*log(n+1))" in text  # slow, and at the edge
            continue
        assert found.verdict == ("converges" if converges else "diverges"), text
        if k % 10 == 0:
            check_proof(found)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "text, verdict",
    [
        ("-n^8*Abs(sin(n))", "converges"),
        ("-n^7*Abs(sin(n))+n^(1/2)", "converges"),
        ("-n^13*sin(n)^2", "converges"),
        ("-n^20*Abs(sin(n))^3", "converges"),
        ("-n^13*(1-cos(n))", "converges"),
        ("-n^8*Abs(cos(n/2))", "converges"),
        ("-n^(11/10)*Abs(sin(pi*sqrt(2)*n))", "converges"),
        ("-n*Abs(sin(pi*sqrt(2)*n))", "diverges"),
        ("-n*Abs(sin(n))", "diverges"),
        ("-exp(n*sin(n))", "diverges"),
        ("-n^2*Abs(sin(n))", "undecided"),
        ("-n^6*Abs(sin(n))", "undecided"),
        ("-n^12*sin(n)^2", "undecided"),
        ("-n^8*Abs(sin(n+1))", "undecided"),
        ("-n^8*Abs(sin(n))+n^2", "undecided"),
    ],
)
def test_multiples_of_sines_as_far_as_irrationality_measures_go(text, verdict):
    found = check_convergence(text)
    assert found.verdict == verdict
    if verdict != "undecided":
        check_proof(found)


@pytest.mark.parametrize(
    "text, condition",
    [
        ("-r*n^(a+b*sin(n))", lambda r, a, b: a > b),
        ("-n^(a+b*cos(log(n+1)))", lambda a, b: a > b),
        ("-log(n+2)^(2+a*sin(n))", lambda a: a < 1),
        ("-a*log(n+2)^(2+sin(n))", lambda a: a > 1),
    ],
)
def test_parameters_in_the_exponent(text, condition):
    found = check_convergence(text)
    assert found.verdict == "conditional"
    names = sorted(p.name for p in found.condition.free_symbols)
    all_names = condition.__code__.co_varnames
    rng = np.random.default_rng(0)
    for _ in range(20):
        values = {name: Fraction(int(rng.integers(1, 9)), 4) for name in all_names}
        holds = found.condition.subs({s: values[s.name] for s in found.condition.free_symbols})
        assert bool(holds) == condition(**values), (names, values)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "text, rule, false",
    [
        ("-n^(1+sin(n))", "least exponent", "-1-2*sqrt(n)*(1+sin(n))"),
        ("-n^8*Abs(sin(n))", "distance", "-n^9"),
        ("-n^(2+sin(n))", "upper bound", "-n^(3/2)"),
        ("-log(n)-n^(Abs(sin(n))+1-cos(sqrt(2)*n))", "tangent", "-n^2"),
    ],
)
def test_a_false_step_is_found(text, rule, false):
    document = check_convergence(text).to_dict()
    check_proof(document)
    step = next(s for s in document["proof"]["steps"] if s["rule"] == rule)
    step["values"]["bound"] = false
    with pytest.raises(ProofError):
        check_proof(document)


def test_blocks_of_terms_show_the_share_of_the_least_exponents():
    """sum over [N, 2N] of exp(-n^(1 + sin n))/N falls like (log N)^(-1/2), as the proof says."""
    shares = []
    for k in (14, 17, 20, 22):
        x = np.arange(2.0**k, 2.0 ** (k + 1))
        shares.append(np.exp(-(x ** (1 + np.sin(x)))).mean() * np.sqrt(k))
    assert max(shares) < 1.1 * min(shares)
