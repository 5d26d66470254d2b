"""The register of functions: each record complete, and all its rules one function."""

import itertools
import math
from contextlib import nullcontext

import mpmath
import numpy as np
import pytest
import sympy
import torch
from flint import acb, arb, arb_series, ctx, fmpq

from farfield.numerics.enclosures.compiled import compile_complex, compile_real
from farfield.numerics.enclosures.tails import UNIT, TailEnclosure, Unproved, level, tail_enclosure
from farfield.numerics.search import Unrecognised
from farfield.numerics.summation.analytic_bias import half_line
from farfield.theory.algebra.exceptions import NotReal, OrderTooLow, Undecided
from farfield.theory.answers.errors import InputError
from farfield.theory.coefficients.signs import Context
from farfield.theory.formula.grammar import read
from farfield.theory.functions import gamma, lambert
from farfield.theory.functions.balls import Undefined, Undetermined, precision, to_arb
from farfield.theory.functions.nodes import OpaqueRational, evaluated_if_small, is_small, n
from farfield.theory.functions.record import (
    ARITHMETICS,
    Function,
    needs_of,
    records,
    register,
    unproved_needs,
)
from farfield.theory.transseries.expansion import transseries
from farfield.theory.transseries.scale import term_expression
from farfield.theory.values import compile_ball, enclose, tabulate
from farfield.validation.harness.bias import evaluate

R = sympy.Rational
X = sympy.Symbol("x", real=True)
ALL = {r.name: r for r in records()}
READ = {name: r for name, r in ALL.items() if r.names}
INNER = {name: r for name, r in ALL.items() if not r.names}
POINTS = (R(1, 3), R(3, 4), R(7, 5), R(5, 2), R(9, 2), R(23, 2), -R(1, 3), -R(7, 4))
FIRST = {  # the first argument of functions of two
    "polygamma": (0, 2),
}
SECOND = {"binomial": (3,), "Mod": (3, R(2, 5)), "Heaviside": (R(1, 2),), "Min": (1,), "Max": (1,)}

LINE = sorted({s * x for x in (*POINTS, R(0), R(1), R(2), R(8, 3)) for s in (-1, 1)})
SELDOM = ("tan", "sec", "Mod")  # undefined where no rational number is, or of the modulus 0


def calls(record):
    """The function at x, with its other arguments."""
    if record.name in FIRST:
        return [record.node(R(k), X, evaluate=False) for k in FIRST[record.name]]
    if record.name in SECOND:
        return [record.node(X, R(k), evaluate=False) for k in SECOND[record.name]]
    return [record.node(X, evaluate=False)]


def values(e, points=POINTS, bits=160):
    """(point, ball) where the function is real."""
    found = [(x, enclose(e, bits, {X: x})) for x in points]
    return [(x, ball) for x, ball in found if ball is not None]


@pytest.mark.parametrize("name", READ)
def test_balls_agree_with_mpmath(name):
    for e in calls(READ[name]):
        seen = 0
        for x, ball in values(e):
            exact = sympy.N(e.func(*(a.xreplace({X: x}) for a in e.args)), 40)
            with precision(160):
                assert abs(ball - arb(str(exact))) < fmpq(1, 10**30) * (1 + abs(ball)), (e, x)
            seen += 1
        assert seen >= 2


@pytest.mark.parametrize("name", READ)
def test_reductions_are_identities(name):
    record = READ[name]
    for reduction in (record.elementary, record.asymptotic):
        for e in calls(record):
            reduced = None if reduction is None else reduction(*e.args)
            for x, ball in values(e, [p for p in POINTS if p > 0]) if reduced is not None else ():
                other = enclose(reduced, 160, {X: x})
                if other is not None:  # a remainder function stays in the right half plane
                    assert ball.overlaps(other) and other.rad() < 1e-20, (e, x)


@pytest.mark.parametrize("name", ALL)
def test_complex_balls_extend_real_ones(name):
    """At real points the same value; on a box all values in it, where it says it is analytic."""
    for e in calls(ALL[name]):
        try:
            program = compile_complex(e, X)
        except Unrecognised as why:
            assert "no enclosure off the real line" in str(why)
            continue
        for x, ball in values(e):
            with precision(160):
                at = program(acb(arb(fmpq(x.p, x.q))), False)
                assert at.real.overlaps(ball), (e, x)
            with precision(64):
                box = acb(arb(fmpq(x.p, x.q), 1e-2), arb(0, 1e-2))
                on_box = program(box, True)
                inside = program(acb(arb(fmpq(x.p, x.q)) + 0.005, arb(-0.004)), False)
            if on_box.is_finite():
                assert on_box.real.overlaps(ball) and on_box.overlaps(inside), (e, x)


SLOPES = {  # where the real part is r or more, and |z| times the size far out
    "binet": (lambda r: 1 / (12 * r**2), 0.1667),
    "psi_rest": (lambda r: 1 / (2 * r**2) + 1 / (6 * r**3), 1.0001),
    "erfcx": (lambda r: 1 / (arb.pi().sqrt() * r**2), 0.5642),
}


@pytest.mark.parametrize("name", SLOPES)
@pytest.mark.parametrize("centre", [acb(2), acb(9, 3), acb(200, 70), acb(10**9, 10**8)])
def test_a_remainder_on_a_wide_ball_holds_what_it_is_at_points(name, centre):
    """Its slope is bounded, as the corners of balls of three widths tell."""
    rule = ALL[name].complex_ball
    corners = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
    with precision(80):
        for width in (abs(centre).lower() * w for w in (arb(2) ** -40, arb("0.01"), arb("0.1"))):
            wide = arb(0, width)
            whole = rule(True, centre + acb(wide, wide if centre.imag else arb(0)))
            for a, b in corners:
                point = centre + acb(a * width, b * width if centre.imag else 0)
                assert whole.is_finite() and whole.contains(rule(True, point.mid()).mid())
            r = (centre.real - width).lower()
            slope, size = SLOPES[name][0](r), acb(wide, wide if centre.imag else arb(0)).rad()
            spread = whole.real.rad() / (size * slope)
            assert float(spread) == pytest.approx(1, rel=1e-3)
        far = abs(rule(True, acb(arb(2) ** 200))).upper() * arb(2) ** 200
        assert far < SLOPES[name][1]


def test_the_taylor_series_of_erfcx_around_a_ball_holds_those_around_its_points():
    """Its k-th coefficient is at most 1/(sqrt(pi) x^(k+1)), so that of its slope is known."""
    before, ctx.cap = ctx.cap, 4
    try:
        for centre, radius in ((2, 0.5), (9, 0.01), (200, 20)):
            whole, *inside = (
                READ["erfcx"].series(arb_series([x, 1]))
                for x in (arb(centre, radius), arb(centre - radius), arb(centre + radius))
            )
            for k in range(4):
                assert all(whole[k].contains(series[k].mid()) for series in inside)
                slope = (k + 1) / (math.sqrt(math.pi) * (centre - radius) ** (k + 2))
                assert float(whole[k].rad()) == pytest.approx(radius * slope, rel=1e-6)
    finally:
        ctx.cap = before


@pytest.mark.parametrize(
    ("name", "inside", "leading", "size"),
    [
        ("binet", "s", 0.17, "1/s"),
        ("psi_rest", "s", 1, "1/s"),
        ("psi_slope", "s", 2, "1/s**2"),
        ("omega_rest", "s", 2.7, "log(s)/s"),
        ("erfcx", "s", 1 / math.sqrt(math.pi), "1/s"),
        ("sin", "s", 1, "1"),
        ("cos", "s**2", 1, "1"),
        ("atan", "s", 1.6, "1"),
    ],
)
def test_what_a_tail_leaves_is_no_larger_than_was_proved(name, inside, leading, size):
    s = sympy.Symbol("s", positive=True)
    e = READ.get(name, ALL[name]).node(sympy.sympify(inside, {"s": s}))
    with precision(64):
        half = half_line(arb(20))
        found = tail_enclosure(e, s, TailEnclosure(half, {level(1): fmpq(1)}))
        sizes = [float(abs(acb(c)).upper()) for c in found.terms.values()]
        assert max(sizes) == pytest.approx(leading, rel=1e-6)
        largest = max(float(half.log_value(m)) for m in found.terms)
        assert largest == pytest.approx(float(sympy.log(sympy.sympify(size).subs("s", 20))))
        assert all(acb(c).imag == 0 for c in found.terms.values())


@pytest.mark.parametrize(
    ("name", "least"),
    [("binet", 1), ("psi_rest", 1), ("psi_slope", 1), ("erfcx", 1), ("omega_rest", 8)],
)
def test_a_tail_is_told_from_the_argument_on_where_its_bound_is_proved(name, least):
    s = sympy.Symbol("s", positive=True)
    for start, proved in ((least - 0.05, False), (least + 0.05, True)):
        where = TailEnclosure(half_line(arb(start)), {level(1): fmpq(1)})
        with precision(64), nullcontext() if proved else pytest.raises(Unproved):
            tail_enclosure(ALL[name].node(s), s, where)


def test_an_arctangent_in_the_right_half_plane_is_near_a_right_angle():
    """|atan(z) - pi/2| < 0.56 where Re z > 0, |z| > 2."""
    s = sympy.Symbol("s", positive=True)
    for start, proved in ((1.9, False), (2.7, True)):
        beyond = {level(1): fmpq(1), UNIT: acb(arb(0), arb(0, 1))}
        where = TailEnclosure(half_line(arb(start)), beyond)
        with precision(64), nullcontext() if proved else pytest.raises(Unproved):
            (c,) = tail_enclosure(sympy.atan(s), s, where).terms.values()
            right = acb(arb.pi() / 2) + acb(arb(0, 0.56), arb(0, 0.56))
            assert c.contains(right) and c.real.rad() < 0.75 and c.imag.rad() < 0.65


@pytest.mark.parametrize("name", ["binet", "psi_rest", "psi_slope", "omega_rest"])
def test_a_remainder_is_told_right_of_0_alone(name):
    for z in (acb(arb(1, 1)), acb(-3), acb(0, 2), acb(-70, 30)):
        assert not ALL[name].complex_ball(True, z).is_finite()
    for z in (acb(arb(2, 1), 2), acb(arb(100, 20), 5)):
        assert ALL[name].complex_ball(True, z).is_finite()


@pytest.mark.parametrize(
    ("name", "box", "is_analytic"),
    [
        ("atan", (arb(0.5, 0.4), arb(2, 0.1)), True),
        ("atan", (arb(-0.5, 0.4), arb(-2, 0.1)), True),
        ("atan", (arb(0, 0.1), arb(0, 0.5)), True),
        ("atan", (arb(0.5, 0.5), arb(2, 0.1)), False),
        ("atan", (arb(-0.5, 0.5), arb(2, 0.1)), False),
        ("atan", (arb(0, 0.1), arb(0, 1)), False),
        ("atan", (arb(0, 0.1), arb(1.5, 0.1)), False),
        ("asin", (arb(0, 0.5), arb(0, 0.1)), True),
        ("asin", (arb(2), arb(1)), True),
        ("acos", (arb(2, 0.5), arb(0, 0.1)), False),
        ("acos", (arb(0, 1), arb(0, 0.1)), False),
        ("log", (arb(-1, 0.1), arb(0, 0.1)), False),
        ("log", (arb(-1, 0.1), arb(1, 0.1)), True),
        ("log1p", (arb(-2, 0.1), arb(0, 0.1)), False),
        ("log1p", (arb(-1.5, 1), arb(0, 0.1)), False),
        ("log1p", (arb(0, 0.5), arb(0, 0.1)), True),
    ],
)
def test_across_a_cut_nothing_is_analytic(name, box, is_analytic):
    assert ALL[name].complex_ball(True, acb(*box)).is_finite() is is_analytic
    assert ALL[name].complex_ball(False, acb(*box)).real.is_finite() or not box[0] < -1
    whole = ALL[name].complex_ball(False, acb(box[0].mid(), box[1].mid()))
    assert whole.is_finite()


def test_residues_are_those_of_the_integers():
    factorial, binomial = READ["factorial"].residue, READ["binomial"].residue
    for modulus in range(1, 14):
        for a in range(13):
            assert factorial(a, modulus) == math.factorial(a) % modulus
            for b in range(-2, 15):
                exact = math.comb(a, b) if b >= 0 else 0
                assert binomial(a, b, modulus) == exact % modulus
    assert factorial(10_000, 10**6) == 0 == factorial(10**6, 10_000)
    assert binomial(20_000, 10_000, 7) == math.comb(20_000, 10_000) % 7
    assert binomial(1 << 65_535, 16, 7) == math.comb(1 << 65_535, 16) % 7
    bits = gamma.MOST_BITS // 10
    assert binomial(1 << bits - 1, 10, 7) == math.comb(1 << bits - 1, 10) % 7
    assert binomial(10**5, 10**5 - 2, 7) == math.comb(10**5, 2) % 7
    for residue, numbers in [
        (factorial, (-1, 5)),
        (factorial, (10_001, 10_001)),
        (binomial, (-1, 2, 5)),
        (binomial, (10**5, 10_001, 5)),
        (binomial, (1 << bits, 10, 7)),
    ]:
        with pytest.raises(Undetermined):
            residue(*numbers)


@pytest.mark.parametrize("k", [0, 1, 4, -2, R(1, 2), -R(1, 2)])
def test_binomials_of_any_bottom_are_those_of_gamma(k):
    for x in (*POINTS, R(6)):
        right = sympy.N(sympy.binomial(x, k), 40)
        assert (
            abs(float(enclose(sympy.binomial(X, k, evaluate=False), 160, {X: x}) - right)) < 1e-15
        )


def test_derivatives_of_lamberts_function_are_polynomials_over_powers():
    """x^j W^(j) = p_j(w)/(1 + w)^(2 j - 1) at w = W(x)."""
    w, numerator = sympy.LambertW(X), [0, 1]
    for j in range(1, 5):
        for x in (R(1, 3), R(7, 2)):
            exact = sympy.N((X**j * w.diff(X, j)).xreplace({X: x}), 30)
            at = sympy.N(w.xreplace({X: x}), 30)
            found = sum(c * at**k for k, c in enumerate(numerator)) / (1 + at) ** (2 * j - 1)
            assert abs(found - exact) < 1e-20 * abs(exact)
        numerator = lambert._next_numerator(numerator, j)


@pytest.mark.parametrize("s", [acb(10, 2.9), acb(65), acb(30, -57), acb(100, 50), acb(10**9)])
def test_a_rest_of_omega_has_as_many_digits_as_are_asked(s):
    """v = -log(1 + (v - log s)/s)."""
    with precision(2000):
        v = ALL["omega_rest"].complex_ball(True, s)
        assert max(v.real.rad(), v.imag.rad()) < arb(2) ** -1980
        assert v.overlaps(-((v - s.log()) / s).log1p())


@pytest.mark.parametrize("s", [acb(10, 4), acb(10, -20), acb(30, 50), acb(arb(30, 1), arb(3, 0.9))])
def test_a_rest_of_omega_is_told_on_one_branch(s):
    """LambertW(e^s) is another one from |Im s| = pi on."""
    assert not ALL["omega_rest"].complex_ball(True, s).is_finite()


@pytest.mark.parametrize("name", ALL)
def test_power_series_have_the_value_and_the_slope(name):
    for e in calls(ALL[name]):
        try:
            program, value = compile_real(e, X), compile_complex(e, X)
        except Unrecognised:
            continue
        for x, ball in values(e):
            with precision(200):
                before, ctx.cap = ctx.cap, 3
                try:
                    series = program(arb_series([fmpq(x.p, x.q), 1]))
                finally:
                    ctx.cap = before
                h = arb(2) ** -60
                steps = [value(acb(arb(fmpq(x.p, x.q)) + k * h), False).real for k in (1, -1)]
                slope = (steps[0] - steps[1]) / (2 * h)
                if not series[1].is_finite():
                    continue
                assert series[0].overlaps(ball), (e, x)
                assert abs(series[1] - slope) < 1e-25 * (1 + abs(slope)), (e, x)
                if name in INNER or name == "erfcx":  # their derivatives are ours, not SymPy's
                    at = compile_complex(e.diff(X), X)(acb(arb(fmpq(x.p, x.q))), False)
                    assert abs(at - slope) < 1e-25 * (1 + abs(slope)), (e, x)


@pytest.mark.parametrize("name", ALL)
def test_tails_enclose_what_balls_say_further_out(name):
    """f(s) on s >= S, f(1/s) and f(1 + 1/s), at points of the half-line."""
    record, seen = ALL[name], 0
    s = sympy.Symbol("s", positive=True)
    for call in calls(record):
        for inner in (s, 1 / s, 1 + 1 / s, 1 / (9 * s)):
            e = call.xreplace({X: inner})
            for log_x in (12, 40):
                with precision(128):
                    where = half_line(arb(log_x))
                    variable = TailEnclosure(where, {level(1): fmpq(1)})
                    try:
                        found = tail_enclosure(e, s, variable)
                    except (Unproved, Unrecognised):
                        continue
                    for at in (log_x, log_x + 3, 9 * log_x):
                        there = half_line(arb(at))
                        total = acb(0)
                        for m, c in found.terms.items():
                            size = there.log_value(m).exp()
                            total += (c if isinstance(c, acb) else acb(arb(c))) * size
                        exact = enclose(e, 128, {s: fmpq(at)})
                        if exact is None:
                            continue
                        assert total.real.overlaps(exact), (e, at)
                        seen += 1
    assert seen or record.lacks.get("tail") or record.reduced, name


@pytest.mark.parametrize("name", READ)
def test_expansions_approach_what_balls_say(name):
    """|f(g(n)) - its expansion| <= C times the remainder, C not growing."""
    record, seen = READ[name], 0
    for call in calls(record):
        for inner in ("n", "log(n)", "-log(n)", "2+1/n", "1/2-1/n", "1/n", "1/n-1/2", "-n"):
            e = call.xreplace({X: sympy.sympify(inner, {"n": n})})
            ratios = []
            try:
                g = transseries(e, Context())
            except (Undecided, NotReal, OrderTooLow):
                continue
            total = sympy.Add(*(term_expression(m, c) for m, c in g.terms))
            rest = 0 if g.remainder is None else term_expression(g.remainder)
            if total.free_symbols - {n}:
                continue  # a bounded shift
            for at in (10**9, 10**13, 10**17):
                with precision(4000):
                    try:
                        gap = abs(to_arb(compile_ball(e - total)({n: fmpq(at)})))
                        size = to_arb(compile_ball(sympy.sympify(rest))({n: fmpq(at)}))
                        ratios.append(0.0 if gap.contains(0) else float(gap / size))
                    except (Undefined, ZeroDivisionError):
                        continue
            seen += len(ratios)
            assert not ratios or (max(ratios) < 1e6 and ratios[-1] < 8 * (ratios[0] + 1)), (e, g)
    assert seen >= 3 or record.branch is not None or record.lacks.get("expansion"), name


@pytest.mark.parametrize("name", READ)
def test_floats_and_tensors_are_balls_rounded(name):
    record = READ[name]
    at = np.arange(1, 40)
    for call in calls(record):
        for inner in (n / 4 + R(1, 3), R(1, 3) - n / 45, 1 / (n + 1)):
            e = call.xreplace({X: inner})
            exact = np.array(
                [
                    math.nan if (b := enclose(e, 200, {n: int(t)})) is None else float(b.mid())
                    for t in at
                ]
            )
            real = ~np.isnan(exact)
            if record.branch is None:  # on the edge of its domain a float may be outside
                real &= abs(tabulate(inner, at)) > 1e-12
            with np.errstate(all="ignore"):
                assert tabulate(e, at)[real] == pytest.approx(exact[real], rel=2e-12, abs=1e-14), e
            try:
                tensor = evaluate(e, {n: torch.tensor(at, dtype=torch.float64)})
            except InputError as why:
                assert record.name in str(why)
                continue
            floats = np.broadcast_to(torch.as_tensor(tensor).numpy(), at.shape)
            if record.jumps:  # floats alone do not tell on which side of a jump they are
                turns = tabulate(record.period(*call.args)[0].xreplace({X: inner}), at)
                turns = turns / float(record.period(*call.args)[1])
                real &= abs(turns - np.rint(turns)) > 1e-9
            elif name in ("sign", "Heaviside"):
                real &= abs(tabulate(inner, at)) > 1e-12
            elif name == "zeta":  # torch knows it above 1 only
                real &= tabulate(inner, at) > 1
            assert floats[real] == pytest.approx(exact[real], rel=2e-12, abs=1e-14), e


OMEGA = sympy.LambertW(sympy.exp(X))
REMAINDERS = {
    "log1p": sympy.log(1 + X),
    "log1p_rest": sympy.log(1 + X) - X,
    "expm1": sympy.exp(X) - 1,
    "expm1_rest": sympy.exp(X) - 1 - X,
    "sin_rest": sympy.sin(X) - X,
    "cos_rest": sympy.cos(X) - 1,
    "psi_rest": sympy.digamma(X) - sympy.log(X),
    "psi_slope": sympy.trigamma(X) - 1 / X,
    "omega_rest": OMEGA - X + sympy.log(X),
    "binet": sympy.loggamma(X) - (X - R(1, 2)) * sympy.log(X) + X - sympy.log(2 * sympy.pi) / 2,
}


@pytest.mark.parametrize("name", INNER)
def test_a_remainder_is_the_difference_that_it_names(name):
    difference = sympy.lambdify(X, REMAINDERS[name], "mpmath")
    for x in (R(1, 10**6), R(1, 9), R(1, 8), R(1, 3), R(7, 2), R(63), R(65), R(10**4)):
        with mpmath.workdps(60):
            exact = difference(mpmath.mpf(x.p) / x.q)
        ball = enclose(INNER[name].node(X), 100, {X: x})
        with precision(200):
            assert abs(ball - arb(exact)) < abs(ball) * fmpq(1, 10**22)


@pytest.mark.parametrize("name", [*READ, "log1p", "log1p_rest"])
def test_where_a_function_is_not_real_no_rule_has_a_value(name):
    """Of exact arguments, and of those that only balls hold."""
    for e in calls(ALL[name]):
        for x in (-R(7, 2), -R(3), -R(4, 3), -R(1, 2), R(1, 2), R(5, 2)):
            if sympy.N(REMAINDERS.get(name, e).xreplace({X: x})).is_real:
                continue
            for inner in (x + 4 - n, x * sympy.exp(n - 4)):
                at = e.xreplace({X: inner})
                assert enclose(at, 100, {n: 4}) is None, (at, x)
                assert ALL[name].array is None or not np.isfinite(tabulate(at, [4])[0]), (at, x)
            if ALL[name].series is not None:
                program = compile_real(e, X)
                with precision(100):
                    point = arb(fmpq(x.p, x.q))
                    assert not program(point).is_finite(), (e, x)
                    assert not program(arb_series([point, 1]))[0].is_finite(), (e, x)


@pytest.mark.parametrize("name", READ)
def test_facts(name):
    """Domain, range, direction, branches and known values are those of the balls."""
    record = READ[name]
    for e in calls(record):
        found = values(e)
        if record.domain is not None:
            quantity, least = record.domain(*e.args)
            for x in LINE:  # at the edge there is a value, or none
                if enclose(quantity, 64, {X: x}) == 0:
                    fact = "positive" if enclose(e, 64, {X: x}) is None else "nonnegative"
                    assert [*needs_of(e)] == [(quantity, fact)], (e, x)
            for x in POINTS:
                ball = enclose(quantity, 64, {X: x})
                if ball < 0 or (ball == 0 and least > 0):
                    assert enclose(e, 64, {X: x}) is None, (e, x)
        if record.range is not None:
            low, high = (enclose(end, 64) for end in record.range(*e.args))
            assert all(low <= ball <= high for _, ball in found)
        line = [enclose(e, 160, {X: x}) for x in LINE]
        defined = all(ball is not None for ball in line)
        if record.domain is None and name not in SELDOM:
            assert record.total is defined
        assert record.odd is (
            defined
            and all(a.overlaps(-b) for a, b in zip(line, reversed(line), strict=True))
            and all(a < b for a, b in itertools.pairwise(line))
        )
        for x, ball in found:
            args = [a.xreplace({X: x}) for a in e.args]
            if record.logarithm is not None and ball > 0:
                logarithm = enclose(record.logarithm(*args), 100)
                with precision(100):  # of gamma it is told right of 0
                    assert (logarithm is None and x < 3) or logarithm.overlaps(ball.log()), (e, x)
            if record.complement is not None:
                assert enclose(record.complement(*args), 160).overlaps(1 - ball), (e, x)
        for x, ball in values(e, LINE) if record.branch is not None else ():
            args = [a.xreplace({X: x}) for a in e.args]
            assert enclose(record.branch(Numbers, *args), 160).overlaps(ball), (e, x)


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("-log(1+n)", []),
        ("-log(n)", [("n", "positive")]),
        ("n*log(n-2)", [("n-2", "positive")]),
        ("1/(n-3)", [("n-3", "nonzero")]),
        ("-(n-4)^-2", [("n-4", "nonzero")]),
        ("(n-3)^2", []),
        ("sqrt(n-2)", [("n-2", "nonnegative")]),
        ("(n-5)^(2/3)", [("n-5", "nonnegative")]),
        ("(n-5)^(-2/3)", [("n-5", "positive")]),
        ("-log(n)*sqrt(n-1)", [("n-1", "nonnegative"), ("n", "positive")]),
        ("1/log(n)", [("log(n)", "nonzero"), ("n", "positive")]),
        ("acosh(n)", [("n-1", "nonnegative")]),
        ("-exp(-n)-pi*n-E*n-cos(n)-erf(n)-a*n-n^a-n^n", []),
        ("-tan(n)", None),
        ("-Mod(n,3)", None),
        ("where(n<3,0,-n)", None),
        ("(n-2)^n", None),
        ("n^(a-2)", None),
    ],
)
def test_what_a_formula_needs_for_a_value(text, needs):
    found = unproved_needs(read(text))
    assert found == (None if needs is None else [(read(x), fact) for x, fact in needs])


def test_what_is_small_is_evaluated_and_nothing_else():
    whole = sympy.Integer
    for value, small in [(100, True), (-100, True), (101, False), (R(1, 100), True)]:
        assert is_small(sympy.sympify(value)) is small
    assert not is_small(R(1, 101)) and not is_small(sympy.pi) and is_small(whole(900), 900)
    gamma_of, log_gamma = (
        evaluated_if_small(sympy.gamma, large_opaque=True),
        evaluated_if_small(sympy.loggamma, of_numbers=False),
    )
    assert gamma_of(whole(5)) == 24 and gamma_of(n + 1) == sympy.gamma(n + 1)
    assert isinstance(gamma_of(whole(101)).args[0], OpaqueRational)
    assert OpaqueRational(R(101)) == OpaqueRational(R(101)) != OpaqueRational(R(103))
    assert OpaqueRational(R(101)) != sympy.pi
    assert gamma_of(sympy.sqrt(2)).args == (sympy.sqrt(2),)
    assert log_gamma(whole(1)).args == (1,) and log_gamma(whole(101)).args == (101,)
    choose = evaluated_if_small(sympy.binomial)
    assert choose(whole(5), whole(2)) == 10 and choose(n, whole(2)).args == (n, 2)
    assert choose(whole(101), whole(2)).args == (101, 2)


class Numbers:
    """How branches are taken at rational numbers."""

    sign = staticmethod(lambda e: int(sympy.sign(e)))
    floor = staticmethod(sympy.floor)
    difference = staticmethod(lambda x, y: int(sympy.sign(x - y)))


def test_every_record_says_what_it_lacks():
    for record in records():
        for arithmetic in ARITHMETICS:
            why = record.lacks.get(arithmetic)
            assert why is None or (len(why) > 10 and getattr(record, arithmetic) is None)
    every = dict.fromkeys(ARITHMETICS, abs)
    for rules, why in (
        ({"tail": None}, "for tail there is neither"),
        ({"lacks": {"tail": "none yet"}}, "for tail there is two of a rule, a reason and"),
        ({"tail": None, "elementary": abs, "lacks": {"tail": "none yet"}}, "for tail there is two"),
    ):
        with pytest.raises(TypeError, match=why):
            Function(node=sympy.airyai, names=("airyai",), **{**every, **rules})
    with pytest.raises(TypeError, match="spelled 'log'"):
        register(READ["log"])
