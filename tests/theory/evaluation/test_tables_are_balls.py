"""Every entry of a table is the ball of its formula, to 1e-12: also where a part of the formula
leaves the range of floats, or cancels."""

import math
import random
from functools import partial

import numpy as np
import pytest
import sympy
from flint import arb

from farfield import InputError, encoding, layered_receptive_field
from farfield.theory.evaluation.real_balls import PLAIN
from farfield.theory.evaluation.vectorised import (
    Arrays,
    Floats,
    _known,
    _NumPy,
    _power,
    _product,
    require_memory,
)
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import precision
from farfield.theory.functions.nodes import Lookup, n
from farfield.theory.functions.record import Program, records
from farfield.theory.values import enclose, tabulate

SHAPES = (
    "-softplus({x})",
    "-log(1+exp({x}))",
    "-log(1+{x})",
    "-{x}-2*log(1+{x})",
    "-log(cosh({x}))",
    "log(1-tanh({x}))",
    "-loggamma({x}+1)",
    "loggamma({x}+6)-loggamma({x}+12)",
    "-log(factorial({x}))",
    "-log(binomial(2*({x}),{x}))",
    "-log(2^({x})+1)",
    "log(erfc({x}))",
    "log(exp(-({x}))+exp(-({x})/9))",
    "logsigmoid(-({x}))",
    "-logaddexp({x},sqrt({x}))",
    "-({x})^(7/10)",
    "-log(1+({x})^2)",
    "-sqrt(1+({x})^2)+1",
    "-sqrt(({x})^2+{x}+1)+({x})",
    "-tanh({x})",
    "-erf({x})",
    "-atan({x})*log(2+({x}))",
    "cos({x})-log(1+{x})",
    "sin(({x})^2/7)",
    "-asinh({x})",
    "-expm1(-({x}))/({x}+1)",
    "-1/(1+exp(5-({x})))",
    "gamma({x}+1/2)/gamma({x}+1)",
    "-floor({x})-Mod({x},7)",
    "-Max({x},20)+Min({x},1000)",
    "where({x}<7,-({x}),-7*log({x}))",
    "-LambertW({x})",
    "-digamma({x}+1)-harmonic({x})",
    "log(sinh({x}+1)/cosh({x}))",
    "-abs(sin({x}))^(1/3)",
)
ARGUMENTS = ("n", "n/3", "n/9+1/7", "sqrt(n)", "3*log(1+n)", "n*log(2+n)/5")
SCALES = ("1", "1/50", "1/5000", "pi", "7", "1/3")
DISTANCES = (0, 1, 2, 5, 19, 45, 88, 171, 200, 355, 711, 1200, 3000, 16384, 10**5, 2**30, 2**40)


def simple(draw):
    """A formula of a shape that people write."""
    scale, shape, x = draw.choice(SCALES), draw.choice(SHAPES), draw.choice(ARGUMENTS)
    return f"({shape.format(x=x)})*({scale})"


LEAVES = ("n", "n+1", "n/7", "3", "1/3", "pi", "sqrt(n+2)", "log(n+2)", "1/(n+1)")
UNARY = (
    "exp({0})",
    "exp(-({0}))",
    "log({0})",
    "log(1+exp({0}))",
    "sqrt({0})",
    "tanh({0})",
    "cosh({0})",
    "erf({0})",
    "erfc({0})",
    "sin({0})",
    "atan({0})",
    "abs({0})",
    "floor({0})",
    "loggamma({0})",
    "gamma({0})",
    "softplus({0})",
    "asinh({0})",
    "({0})^2",
    "({0})^(-1)",
)
BINARY = ("({0})+({1})", "({0})-({1})", "({0})*({1})", "({0})/({1})", "Min({0},{1})", "({0})^({1})")


def tree(draw, depth=4):
    """A random formula."""
    if not depth or draw.random() < 0.15:
        return draw.choice(LEAVES)
    if draw.random() < 0.5:
        return draw.choice(UNARY).format(tree(draw, depth - 1))
    return draw.choice(BINARY).format(tree(draw, depth - 1), tree(draw, depth - 1))


TRAPS = (
    "log(2*sqrt({x}+2)-sqrt({x}+3)-sqrt({x}+1))",
    "(1+1/({x}+1)^2)^(({x})^2)",
    "sign(sin(exp({x}/20)))",
    "where(cos(({x})^3)>0,-({x}),-2*({x}))",
    "tanh(10^6*sin(({x})^4))",
    "Max(0,10^6*sin(exp({x}/9)))",
    "(-1)^floor(({x})^3)",
    "(-1)^floor(2^({x})+1)",
    "floor(exp({x}/50))",
    "frac(({x})*10^7/7)",
    "sin(pi*({x})^5)",
    "exp(({x}+1/3)^2-({x})^2-2*({x})/3)",
    "log(1+exp(-({x})))*exp({x})",
    "erf({x})-tanh({x})",
    "sqrt(({x})^2+1)-({x})",
    "ceiling(log({x}+1)/log(3))",
    "abs(sin(({x})^2))/(sin(({x})^2)+1/10^5)",
    "where(floor({x}/3)%2==0,-({x})/7,-inf)",
    "exp({x})/exp({x}-1/3)",
    "(exp({x}))^(1/3)*exp(-({x})/3)",
    "log(exp({x}+1/3)-exp({x}))",
    "exp(-({x}))*exp({x})",
    "(({x})/7)^(1/50)",
)


def trap(draw):
    """A formula whose float loses a sign, a small part or its range, at powers of two above all."""
    return f"({draw.choice(TRAPS).format(x=draw.choice(ARGUMENTS))})*({draw.choice(SCALES)})"


def ball(e, at):
    """Its value, where it is settled: a ball that is narrow enough to compare with."""
    for bits in (100, 400, 1600, 5000):
        found = enclose(e, bits, {n: at})
        with precision(bits):
            if found is not None and found.rad() < (1 + abs(found)) * arb(2) ** -50:
                return found
    return None


def wrong(e, distances):
    """The entries of a table that are not the ball: (distance, entry, ball)."""
    found = []
    for at, entry in zip(distances, tabulate(e, distances), strict=True):
        exact = ball(e, int(at))
        if exact is None:
            continue
        with precision(200):
            if abs(exact) > arb(10) ** 300:
                right = math.isinf(entry) and (entry > 0) == bool(exact > 0)
                right |= bool(abs(exact - arb(entry)) < abs(exact) * 1e-12)
            else:
                right = math.isfinite(entry) and bool(
                    abs(exact - arb(entry)) < 1e-12 * max(1.0, abs(entry))
                )
        if not right:
            found.append((int(at), entry, exact))
    return found


def failures(make, count, seed):
    """Formulas of a generator with wrong entries."""
    draw, found = random.Random(seed), {}
    for _ in range(count):
        text = make(draw)
        try:
            e = read(text)
        except InputError:  # what the reader refuses has no table
            continue
        at = {*draw.sample(DISTANCES, 5), *(draw.randrange(4000) for _ in range(3))}
        at = sorted({*at, *(2 ** draw.randrange(2, 20) + k for k in (-1, 0, 1))})
        if not e.is_number and (bad := wrong(e, np.array(at))):
            found[text] = bad
    return found


@pytest.mark.parametrize(
    ("make", "count", "seed"),
    [
        (simple, 100, 1),
        (tree, 30, 2),
        (trap, 45, 5),
        pytest.param(simple, 2400, 3, marks=pytest.mark.slow),
        pytest.param(tree, 600, 4, marks=pytest.mark.slow),
        pytest.param(trap, 900, 6, marks=pytest.mark.slow),
    ],
)
def test_every_entry_is_the_ball(make, count, seed):
    assert not failures(make, count, seed)


@pytest.mark.parametrize(
    ("formula", "at", "right"),
    [
        ("-softplus(n)/5000", 711, -0.1422),
        ("-log(1+exp(n/3))/50", 3000, -20),
        ("-log(cosh(n))/64", 711, -11.0985),
        ("-loggamma(n+1)/500", 171, -1.4234),
        ("loggamma(n+6)-loggamma(n+12)", 200, -32.0394),
        ("log(factorial(n))*(-1/500)", 200, -1.72646),
        ("-log(binomial(2*n,n))/60", 800, -18.4187),
        ("-log(2^n+1)/30", 3000, -69.3147),
        ("log(1-tanh(n))/50", 50, -1.98614),
        ("log(1-tanh(n/3))", 45, -29.3069),
        ("log(erfc(n/9))/1000", 300, -1.11519),
        ("log(exp(-n)+exp(-n/9))/50", 10000, -22.2222),
        ("1/(1-sigmoid(n))-exp(n)", 40, 1),
        ("cos(n/3)", 2**40, 0.615365),
        ("cos(n/3)", 3 * 2**39, 0.207360),
        ("sin(n)", 2**41 - 5, 0.853626),
        ("floor(gamma(sqrt(n+2))^(1/(n+1)))", 2**30, 1),
        ("(-1)^(n*10^15+n)", 19, -1),
        ("(-1)^(2^n+1)", 53, -1),
        ("(-1)^floor(n*10^15/7)", 100, -1),
        ("(-1)^(n*(n+1)/2)", 2**27 + 1, -1),
        ("cos(pi*n*(n+1)/2)", 2**27 + 1, -1),
        ("where((-1)^(n^4)<0,-n,0)", 9743, -9743),
        ("where(cos(pi*n^5)>0,0,-1)", 5001, -1),
        ("sign(sin(exp(n)))", 49, -1),
        ("where(cos(n^5)>0,-n,-2*n)", 2197, -4394),
        ("where(sin(n^4)>0,-1,-2)", 99991, -1),
        ("log(log(1+exp(-n)))", 8193, -8193),
        ("sin(n*10^115)", 7, 0.383162),
        ("sin(n+10^115)", 7, -0.939712),
    ],
)
def test_parts_beyond_the_range_of_floats(formula, at, right):
    """Values by hand, at 60 digits."""
    row = encoding(formula).bias([0, 1, at])[0]
    assert row[-1] == pytest.approx(right, rel=1e-4)
    assert not wrong(read(formula), np.array([1, 2, at, at + 1, 2 * at]))


@pytest.mark.parametrize(
    ("formula", "right"),
    [
        ("2*floor(n/2)-n-sqrt(2)", -math.sqrt(2)),
        ("2*floor(n/2)-n+1/4", 0.25),
        ("Max(n,5)-n-pi", -math.pi),
        ("abs(n-5)-n+1/3", -14 / 3),
        ("where(n<64,n,n)-(n+sqrt(2))", -math.sqrt(2)),
        ("2*floor(n/2)+3*floor(n/3)-5*floor(n/5)-n", lambda n: n % 5 - n % 2 - n % 3),
    ],
)
def test_a_sum_that_cancels_keeps_what_its_partial_sums_round_off(formula, right):
    at = [10**6, 10**9, 10**15, 2**53 - 2]
    exact = [right(n) for n in at] if callable(right) else [right] * 4
    assert tabulate(read(formula), at) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("modulus", [2, 3, 8])
@pytest.mark.parametrize("last", [7, 130])
def test_a_sum_of_masked_terms_is_masked_where_all_of_them_are(modulus, last):
    one = f"where((n%{modulus}==1)&(n<={last}),-log(1+n)^2,-inf)"
    two = f"where((n%{modulus}==0)|(n<4),-n/2-frac(n/{modulus}),-inf)"
    at = np.arange(300)
    first, other = tabulate(read(one), at), tabulate(read(two), at)
    total = tabulate(read(f"log(exp({one})+exp({two}))"), at)
    assert np.allclose(total, np.logaddexp(first, other), rtol=1e-12) and np.isneginf(total).any()


def test_a_wave_at_what_vanishes_is_left_to_floats(monkeypatch):
    monkeypatch.setattr(Floats, "by_balls", lambda self, e, at, **how: np.full(at.shape, math.nan))
    assert tabulate(read("1-cos(exp(-exp(exp(n))))"), [13, 20]).tolist() == [0, 0]
    assert np.isfinite(tabulate(read("cos(exp(-n/4))-1"), range(3000))).all()
    assert np.isfinite(tabulate(read("-sqrt(n)*log(n+1)"), range(3000))).all()


def test_other_forms_are_asked_before_long_balls_and_a_proof_comes_last():
    short, long = [80, 320, 1280], [5120, 20480, 5120]
    for text, each in (("-n", short + long), ("1-tanh(n)", 2 * short + 2 * long)):
        assert [bits for _, bits in Floats(PLAIN)._attempts(read(text))] == each


@pytest.mark.parametrize(
    ("text", "at", "values"),
    [
        ("-exp(exp(n))", [1, 800], [-math.exp(math.e), -math.inf]),
        ("-n+where(n<5,0,-oo)", [4, 5], [-4, -math.inf]),
        ("1-exp(2^n)", [200, 1000], [-math.inf, -math.inf]),
        ("exp(1-exp(2^n))-n", [200], [-200]),
        ("Max(1-exp(exp(n)),-30)", [10**6], [-30]),
        ("-n", [2**53 + 1, 2**62 + 1], [-(2.0**53), -(2.0**62)]),
        ("n%2", [2**53 + 1, 2**62], [1, 0]),
    ],
)
def test_what_is_beyond_floats_is_rounded_or_minus_infinity(text, at, values):
    assert tabulate(read(text), at).tolist() == values


def test_a_table_larger_than_the_memory_is_refused_at_once(refusal):
    refusal("fits into the memory", encoding("-n").bias, range(10**15))
    refusal("table of 999,999,999,999,999,999 numbers", require_memory, 10**18 - 1)
    refusal(r"table of more than 10\^18 numbers", require_memory, 10**18)


class Plain(Arrays):
    """The rules that NumPy and torch share, in one row of floats."""

    def constant(self, e):
        return bool(e) if e in (True, False) else float(e)

    def lacking(self, name, why):
        return NotImplementedError(f"{name}: {why}")


@pytest.mark.parametrize(
    "text",
    [
        "log(exp(-n)+exp(-n/9)+exp(-n/3))",
        "log(exp(n)+2*exp(n/2)+3)-log(5+exp(n))",
        "log(cosh(n))-softplus(n)/3",
        "where((n<5)&(n>1),-n,where((n==0)|(n>=700),1/3,-2*n))",
        "where(~(n<5),sqrt(n),n^2)+abs(n-7)-sign(n-3)",
        "-Max(n,4)*Min(n,9)+erf(n/9)",
        "log(exp(where(n<5,-oo,-n))+2*exp(where(n<9,-oo,-n/3)))",
        "Heaviside(n-7,1/3)-Heaviside(9-n)",
        "Piecewise((1,n<3),(n,n<7),(-n,True))",
    ],
)
def test_one_row_has_the_same_values(text):
    e, at = read(text), np.arange(1500)
    with np.errstate(all="ignore"):
        row = Program(e, Plain(_NumPy()), (n,))(at.astype(float))
    assert row == pytest.approx(tabulate(e, at), rel=1e-12, abs=1e-12)


def test_what_a_namespace_lacks_is_told():
    with pytest.raises(NotImplementedError):
        Program(Lookup(n, sympy.Tuple(1, 2), sympy.S(3)), Plain(np), (n,))(np.arange(3.0))
    for record in (record for record in records() if record.array is None):
        with pytest.raises(NotImplementedError, match=f"{record.name}: {record.lacks['array']}"):
            Program(record.node(n), Plain(np), (n,))


def test_an_entry_is_the_same_in_any_company():
    """Which distances are asked beside it, and what was tabulated before, does not matter much."""
    formula, at = read("-log(1+n)-abs(sin(n^2))/(n+1)"), np.arange(300)
    alone = np.array([tabulate(formula, [int(k)])[0] for k in at])
    assert np.abs(tabulate(formula, at) - alone).max() < 1e-13


def test_what_follows_from_tables_agrees_with_what_is_proved():
    bias = "-softplus(n)/2000"
    assert layered_receptive_field(bias, 1, mixing="1", q="9/10", length=4000).tokens == 3012
    even = "where((-1)^(n^4)>0,-n/20000,-inf)"
    assert layered_receptive_field(even, 1, mixing="1", q="1/2", length=20000).tokens == 7597


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("acos(1-1/(2+n^2))", lambda k: math.sqrt(2 / (2 + k * k))),
        ("acosh(1+1/(2+n^2))", lambda k: math.sqrt(2 / (2 + k * k))),
        ("asin(1-1/(2+n^2))", lambda k: math.pi / 2 - math.sqrt(2 / (2 + k * k))),
        ("atanh(1-1/(2+n^2))", lambda k: math.log(3 + 2 * k * k) / 2),
        (
            "log(erfc((n+1)/50))-n/9",
            lambda k: -(((k + 1) / 50) ** 2) - math.log((k + 1) / 50 * math.sqrt(math.pi)) - k / 9,
        ),
    ],
)
def test_an_exact_argument_that_no_ball_holds_exactly_may_need_more_bits(text, value):
    """At 80 bits the ball of 1 - 1e-30 reaches over 1, and that of erfc(2e13) is one around 0."""
    at = [10**9, 10**12, 10**15]
    found = tabulate(read(text), at)
    np.testing.assert_allclose(found, [value(k) for k in at], rtol=1e-11)


def test_a_power_of_0_is_that_of_its_exponent():
    found = tabulate(read("floor(n/9)^Max(0,sin(n))"), range(12))
    assert found.tolist() == [k > 8 or math.sin(k) <= 0 for k in range(12)]


@pytest.mark.parametrize(("bits", "values"), [(18_000, [1, 0.5]), (30_000, [math.nan] * 2)])
def test_what_20480_bits_do_not_tell_has_no_value(bits, values):
    """(log(n + d) - log(n))/d for d = 2^-bits."""
    many = sympy.Integer(2) ** bits
    found = tabulate(many * (sympy.log(n + 1 / many) - sympy.log(n)), [1, 2])
    np.testing.assert_allclose(found, values)


INF, NAN, NEAR = math.inf, math.nan, 1 + 2.0**-11  # within what is trusted of 1


def rows(first, second=None):
    """One value, and what it is disturbed to."""
    return np.array([[first], [first if second is None else second]], float)


@pytest.mark.parametrize(
    ("rule", "parts", "value"),
    [
        (_known, (rows(1, NEAR),), 1),
        (_known, (rows(1, 1 + 2.0**-10),), 1),
        (_known, (rows(1, 1 + 2.0**-9),), NAN),
        (_known, (rows(-1e5, -1e5 - 50),), -1e5),
        (_known, (rows(0, 1e-281),), 0),
        (_known, (rows(0, 1e-279),), NAN),
        (_known, (rows(INF),), INF),
        (partial(_known, turns=True), (rows(1e5, 1e5 + 50),), NAN),
        (partial(_known, turns=True), (rows(2.0**-12, 2.0**-11),), 2.0**-12),
        (partial(_known, turns=True), (rows(0, 2.0**-10),), 0),
        (_power, (rows(-2), rows(3), False), -8),
        (_power, (rows(-2), rows(3, 3.001), False), NAN),
        (_power, (rows(-2), rows(INF), False), NAN),
        (_power, (rows(2), rows(3, 3.001), False), 8),
        (_power, (rows(0), rows(-1), False), NAN),
        (_power, (rows(0), rows(0), False), 1),
        (_power, (rows(0), rows(2), False), 0),
        (_power, (rows(INF), rows(0.5), False), NAN),
        (_power, (rows(INF), rows(-1), False), 0),
        (_power, (rows(INF), rows(1), False), INF),
        (_power, (rows(0), -1.0, False), NAN),
        (_power, (rows(-2), 3.0, False), -8),
        (_power, (rows(4.0**-500), 0.5, False), 2.0**-500),
        (_power, (rows(0, 1e-290), 0.5, True), NAN),
        (_product, (rows(INF), rows(0.5)), NAN),
        (_product, (rows(INF), rows(1)), INF),
        (_product, (rows(3), rows(0.5)), 1.5),
    ],
)
def test_a_float_that_is_not_known_is_undefined(rule, parts, value):
    with np.errstate(all="ignore"):
        found = rule(*parts)
    np.testing.assert_array_equal(found[0], [value])


@pytest.mark.parametrize(
    ("index", "value"),
    [(0, 5), (2, 7), (3, 9), (99, 9), (-1, NAN), (1.5, NAN), (NAN, NAN)],
)
def test_a_table_is_looked_up_at_natural_numbers(index, value):
    entries = [*map(rows, (5, 6, 7, 9))]
    with np.errstate(all="ignore"):
        found = Floats(PLAIN).look_up(rows(index), *entries)
    np.testing.assert_array_equal(found[0], [value])


@pytest.mark.parametrize(
    ("number", "exact"),
    [("1/4", True), ("-7", True), ("0", True), ("1/3", False), ("pi", False), ("2**53+1", False)],
)
def test_a_constant_is_exact_where_it_is_a_float(number, exact):
    first, second = Floats(PLAIN).constant(sympy.sympify(number))[:, 0]
    assert bool(first == second) is exact
    assert first == float(sympy.sympify(number)) and abs(second - first) <= 2.0**-42 * abs(first)
