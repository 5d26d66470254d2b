"""One formula, three evaluators: SymPy with mpmath, rigorous balls, and the float64 table agree."""

import threading

import numpy as np
import pytest
import sympy
from flint import arb, ctx, fmpq

from farfield import encoding
from farfield.theory.encodings import CATALOGUE as _CATALOGUE
from farfield.theory.evaluation import real_balls
from farfield.theory.evaluation.logarithms import (
    LogSum,
    accurate,
    logarithm,
    uncancelled,
    within_range,
)
from farfield.theory.evaluation.real_balls import PLAIN, _parity
from farfield.theory.evaluation.residues import _integer, residue
from farfield.theory.evaluation.vectorised import _from_limits, _gathered, _logarithm
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import NoValue, Undefined, Undetermined, precision
from farfield.theory.functions.elementary import expm1, log1p
from farfield.theory.functions.nodes import Lookup, n
from farfield.theory.values import compile_ball, enclose, tabulate

IF = sympy.Piecewise((n, sympy.ITE(n < 3, n > 1, n > 5)), (-n, True), evaluate=False)
DISTANCES = (0, 1, 2, 7, 16, 63, 113, 500, 4095)
VALUES = {
    "window": {"w": 16},
    "kerple_log": {"r1": "6/5", "r2": 3},
    "kerple_power": {"r1": 2, "r2": "1/3"},
    "alibi_log": {"m": "3/2"},
    "bam": {"s": "1/2", "mu": "7/2", "eps": "1e-5", "beta": "2/3"},
    "t5": {f"b{k}": f"-{k * k}/7" for k in range(32)},
}
DIALECTS = [
    (name, dialect)
    for name, entry in _CATALOGUE.items()
    if entry.formula is not None
    for dialect in entry.dialects or (None,)
]


def close(ball, exact, tolerance):
    with precision(200):
        return bool(abs(ball - arb(str(exact))) < tolerance * (1 + abs(ball)))


def by_mpmath(e, at):
    """The value by SymPy and mpmath, the way that balls and tables do not take."""
    e = e.replace(Lookup, lambda k, table, tail: Lookup(sympy.Integer(at), table, tail))
    value = e.subs(n, at)
    return value if value.is_infinite else sympy.N(value, 30)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "dialect"), DIALECTS)
def test_expression_ball_and_table_agree(name, dialect):
    e = encoding(name, dialect=dialect, **VALUES.get(name, {}))
    for h in {1, e.num_heads}:
        formula = e.head(h)
        table = tabulate(formula, np.array(DISTANCES))
        for t, shown in zip(DISTANCES, table, strict=True):
            exact = by_mpmath(formula, t)
            ball = enclose(formula, 128, {n: t})
            if exact == -sympy.oo:
                assert shown == -np.inf and ball < 0 and not ball.is_finite()
                continue
            assert close(ball, exact, 1e-20)
            assert shown == pytest.approx(float(ball.mid()), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("formula", "at", "value"),
    [
        ("floor(log(n)/log(2))", 8, 3),
        ("floor(sqrt(n))", 10**20, 10**10),
        ("ceiling(log(n)/log(2))", 8, 3),
        ("floor(log(n)/log(10))", 1000, 3),
        ("floor(log(n)/log(10))", 999, 2),
        ("sign(n-3)", 3, 0),
        ("frac(log(n)/log(2))", 8, 0),
        ("mod(log(n)/log(2),3)", 8, 0),
        ("3*frac((2^n)/3)", 10**8, 1),
        ("floor((2^n)/3)", 10**8, None),  # more digits than a ball has
        *((IF, at, value) for at, value in ((1, -1), (2, 2), (3, -3), (5, -5), (6, 6))),
        ("sign(sqrt(n)*sqrt(n+2)-sqrt(n**2+2*n))", 3, None),  # no proof of 0
    ],
)
def test_a_jump_is_decided_by_an_exact_zero_test(formula, at, value):
    e = read(formula) if isinstance(formula, str) else formula
    assert enclose(e, 64, {n: at}) == value
    assert value is None or at > 2**20 or tabulate(e, [at]) == [value]


@pytest.mark.parametrize(
    ("formula", "at"),
    [
        ("log(n)", 0),
        ("1/n", 0),
        ("log(log(n))", 1),
        ("sqrt(n-5)", 2),
        ("asin(n)", 3),
        ("loggamma(n)", 0),
        ("gamma(n)", 0),
        ("acosh(n)", 0),
        ("log(1-exp(n))", 0),
        ("log(1-exp(n))", 4),
        ("log(1+exp(1/n)*cos(n))", 9),
        ("(1-exp(n))^(1/3)", 3),
        ("LambertW(-exp(n-4))", 4),
        (sympy.Piecewise((n, n > 3), (-n, n < 1)), 2),
    ],
)
def test_what_is_undefined_has_no_ball_and_no_number(formula, at):
    e = read(formula) if isinstance(formula, str) else formula
    assert enclose(e, 64, {n: at}) is None
    assert not np.isfinite(tabulate(e, [at])[0])


def test_rational_arithmetic_stays_exact():
    value = compile_ball(read("n**3/7-Mod(n,10)+floor(n/3)"))
    assert value({n: fmpq(10**30 + 1)}) == fmpq((10**30 + 1) ** 3, 7) - 1 + (10**30 + 1) // 3


def test_more_precision_gives_a_smaller_ball_inside_the_larger():
    e = read("exp(sin(n))*loggamma(n+1/3)-sqrt(3)*erf(n/100)")
    coarse, fine = enclose(e, 53, {n: 77}), enclose(e, 500, {n: 77})
    assert coarse.contains(fine) and fine.rad() < 1e-120 < coarse.rad()


def test_precision_is_restored_and_safe_in_threads():
    before = ctx.prec
    e, seen = read("exp(-log(n+1)*pi)"), []

    def work(bits):
        for _ in range(30):
            seen.append(enclose(e, bits, {n: 9}).rel_accuracy_bits() - bits)

    threads = [threading.Thread(target=work, args=(b,)) for b in (64, 512)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ctx.prec == before and max(seen) < 8 and min(seen) > -16
    with pytest.raises(Undefined), precision(99):
        compile_ball(sympy.log(n))({n: fmpq(0)})
    assert ctx.prec == before


def test_a_table_needs_numbers(refusal):
    refusal("free parameters: give values for a", tabulate, read("-a*n"), [1])
    for bad in ([-1], [0.5], [[1]]):
        refusal("integers >= 0", tabulate, -n, bad)
    assert tabulate(-n, []).shape == (0,)


@pytest.mark.parametrize(
    ("formula", "modulus", "at", "remainder"),
    [
        (n * (n + 1) / 2, 7, 10**9, 10**9 * (10**9 + 1) // 2 % 7),  # each half is no integer
        (2**n - 3 * n, 7, 10**9, (pow(2, 10**9, 7) - 3 * 10**9) % 7),
        (sympy.factorial(n) + 5, 7, 10**9, 5),
    ],
)
def test_remainders_by_those_of_the_parts(formula, modulus, at, remainder):
    assert residue(formula, modulus, PLAIN, (n,))(at) == remainder


def test_the_parity_of_what_a_ball_does_not_tell_is_open():
    with pytest.raises(Undetermined):
        _integer(arb(1))
    with pytest.raises(Undetermined):
        _integer(fmpq(1, 2))
    assert [_parity(1, arb(k, 0.1)) for k in (0, 1)] == [1, -1]
    with pytest.raises(Undetermined):
        _parity(1, arb(1, 2))
    with pytest.raises(NoValue):
        _parity(2, arb(0.5, 0.1))


EXP, LOG, TINY = sympy.exp, sympy.log, sympy.exp(-n)
SIXTH = 6 * n**5 + 45 * n**4 + 140 * n**3 + 225 * n**2 + 186 * n + 63  # (n + 2)^6 - (n + 1)^6


def gathered(terms):
    """A sum as one quotient; None where it stays as it is."""
    total = sympy.Add(*terms)
    return None if (form := _gathered(*map(sympy.sympify, terms))) == total else form


@pytest.mark.parametrize(
    ("ask", "e", "form"),  # None: it stays as it is
    [
        (logarithm, n**6, None),
        (logarithm, n**7, 7 * LOG(n)),
        (logarithm, n**-7, -7 * LOG(n)),
        (logarithm, n**n, n * LOG(n)),
        (logarithm, sympy.Pow(2, n), n * LOG(2)),
        (logarithm, (n - 5) ** 7, None),
        (logarithm, EXP(n) ** 2 + 3, LogSum(3, 0, 1, 2 * n)),
        (logarithm, sympy.pi, None),
        (uncancelled, 1 - sympy.tanh(n), 2 / (EXP(2 * n) + 1)),
        (uncancelled, 3 + 3 * sympy.tanh(n), 6 / (EXP(-2 * n) + 1)),
        (uncancelled, 1 - 2 * sympy.tanh(n), None),
        (uncancelled, 1 - 1 / (1 + TINY), TINY / (1 + TINY)),
        (uncancelled, 1 + 1 / (1 + TINY), None),
        (uncancelled, 1 - n, None),
        (accurate, LOG(1 + TINY), log1p(TINY)),
        (accurate, LOG(2 + TINY), None),
        (accurate, LOG(1 + n), None),
        (accurate, 2 * EXP(TINY) - 2, 2 * expm1(TINY)),
        (accurate, 2 * EXP(TINY) - 1, None),
        (accurate, EXP(1 / n) - 1, None),
        (accurate, sympy.cos(n) - 1, None),
        (accurate, sympy.sin(TINY) - 1, None),
        (_logarithm, n, LOG(n)),
        (_logarithm, 1 + EXP(n), n + log1p(TINY)),
        (_logarithm, 1 + TINY, log1p(TINY)),
        (_logarithm, 2 + EXP(n), n + log1p(2 * TINY)),
        (_logarithm, 2 - EXP(n), LOG(2 - EXP(n))),  # negative far out
        (_logarithm, 2 + EXP(1 / (n - 10**9)), LOG(2 + EXP(1 / (n - 10**9)))),  # of no size there
        (_from_limits, sympy.acos(sympy.tanh(n)), 2 * sympy.atan(TINY)),
        (_from_limits, -sympy.asin(sympy.tanh(n)), 2 * sympy.atan(TINY) - sympy.pi / 2),
        (_from_limits, sympy.acosh(1 + TINY), log1p(TINY + sympy.sqrt(TINY * (2 + TINY)))),
        (_from_limits, sympy.atanh(sympy.tanh(n)), n),
        (_from_limits, sympy.sinh(n) - sympy.cosh(n), -TINY),
        (_from_limits, sympy.frac(n / 3), n / 3 - sympy.floor(n / 3)),
        (gathered, (1, -n / (n + TINY)), 1 / (n * EXP(n) + 1)),
        (gathered, (1, -1 / (1 + TINY)), 1 / (EXP(n) + 1)),
        (_from_limits, sympy.coth(n) - 1, 2 / (EXP(2 * n) - 1)),
        (_from_limits, sympy.tanh(n), 1 - 2 / (EXP(2 * n) + 1)),
        (_from_limits, sympy.sinh(n), EXP(n) / 2 - TINY / 2),
        (_from_limits, sympy.cosh(n), EXP(n) / 2 + TINY / 2),
        (_from_limits, 1 - sympy.erf(n), sympy.erfc(n)),
        (gathered, (1, -(n**n) / (1 + n**n)), 1 / (1 + n**n)),
        (gathered, (1, *(-1 / (n + k) for k in range(30))), None),  # too long
        (gathered, (n, TINY), None),  # nothing cancels
        (gathered, (1, -sympy.tanh(n)), None),
        (gathered, (sympy.sqrt(1 + n**2), -n), 1 / (sympy.sqrt(1 + n**2) + n)),
        (_from_limits, EXP(TINY), 1 + expm1(TINY)),
        (gathered, (1, -((1 + n) ** 6) / (2 + n) ** 6), SIXTH / (n + 2) ** 6),
        (gathered, (1, -((1 + n) ** 7) / (2 + n) ** 7), None),  # too high
        (within_range, LOG(n), None),
        (within_range, 1 / EXP(n), None),
        (within_range, 1 / (3 - EXP(n)), None),  # which has no logarithm
        (within_range, (1 + EXP(n)) ** 2, None),
        (within_range, (1 + n) ** -2, None),
    ],
    ids=lambda x: getattr(x, "__name__", None) or str(x),
)
def test_another_form_is_taken_where_floats_leave_their_range_or_cancel(ask, e, form):
    assert ask(e) == form


def test_a_sum_has_at_most_so_many_terms(monkeypatch):
    k = sympy.Symbol("k", integer=True)
    total = compile_ball(sympy.Sum(k, (k, 1, n)))
    with precision(64), pytest.raises(Undefined, match="a sum of more than 100000 terms"):
        total({n: fmpq(10**9)})
    monkeypatch.setattr(real_balls, "MAX_LOOP", 10)
    assert total({n: fmpq(10)}) == 55
    with precision(64), pytest.raises(Undefined, match="a sum of more than 10 terms"):
        total({n: fmpq(11)})
