"""The general path: each way to put a kernel together, against its own terms."""

import numpy as np
import pytest
from flint import arb, fmpq
from sympy import Symbol, atan, exp

from farfield import encoding, theoretical_receptive_field
from farfield.numerics.enclosures.tails import TailEnclosure, level
from farfield.numerics.search import Unrecognised
from farfield.numerics.summation import integral, methods
from farfield.numerics.summation.analytic_bias import Sector, half_line, read_bias
from farfield.numerics.summation.bounded import Envelope, StepsKernel, by_steps
from farfield.numerics.summation.integral import TailIntegral, without_tiny
from farfield.numerics.summation.kernel import terms
from farfield.numerics.summation.methods import _linear_in_waves, find
from farfield.numerics.summation.series import Series, _SetUp, _with_kernel
from farfield.numerics.summation.superpolynomial import SuperpolynomialSum, superpolynomial_kernel
from farfield.theory.formula.grammar import read
from farfield.theory.functions.balls import precision, to_arb
from farfield.theory.functions.nodes import n
from farfield.theory.values import enclose

KINDS = {
    "-2*floor(log(n+1)/log(2))": StepsKernel,
    "-3*floor(log(n+2)/log(3))-1": StepsKernel,
    "-n/9-Mod(n,3)": 3,
    "-2*log(n+1)-frac(n/4)": 4,
    "-2*log(n+1)*(1+sin(pi*n/2)**2)": 4,
    "-4*log(n+2)-log(n+2)*sin(n**2)": Envelope,
    "-5*log(n+2)+log(n+2)*cos(n**2)/2": Envelope,
    "-4*log(n+2)-log(n+2)*sin(n**2)*cos(n)/4": Envelope,  # its product of waves is a sum
}


def summed(text, start=0):
    """The sum on n >= start."""
    p = read(text)
    return Series(p, tuple(_with_kernel(start, None, p, _SetUp())))


@pytest.mark.parametrize("text", KINDS)
@pytest.mark.parametrize("start", [0, 5])
def test_differences_of_tails_are_sums_of_terms(text, start, short_envelopes):
    kernel = summed(text, start)
    with precision(96):
        term = terms(read(text))
        for a, b in ((start, start + 1), (start, start + 30), (start + 11, start + 200)):
            between = sum((term(i) for i in range(a, b)), arb(0))
            gap = to_arb(kernel.tail(a)) - to_arb(kernel.tail(b))
            assert gap.overlaps(between) and gap.rad() < 1e-3 * between, (a, b)


@pytest.mark.parametrize(
    "text", ["-n**2/9-n", "-loggamma(n+1)", "-n/9-Mod(n,3)", "-n/40-frac(n/2)"]
)
def test_rows_are_sums_of_terms_however_long(text):
    kernel = summed(text)
    with precision(96):
        term = terms(read(text))
        for a, b in ((0, 1), (0, 9), (2, 18), (5, 300)):
            row = sum((term(i) for i in range(a, b)), arb(0))
            found = to_arb(kernel.truncated(b).tail(a))
            assert found.overlaps(row) and found.rad() < 1e-20 * row, (a, b)
        whole, row = to_arb(kernel.tail(3)), to_arb(kernel.truncated(10**6).tail(3))
        assert row.overlaps(whole) and row.rel_accuracy_bits() > 80


@pytest.mark.parametrize("base", [2, 3, 10])
def test_steps_of_a_logarithm_in_closed_form(base):
    """-2 floor(log_b(n + 1)) log b: the sum over the steps is sum (b - 1) b^v b^{-2v} = b."""
    kernel = find(read(f"-2*log({base})*floor(log(n+1)/log({base}))"), 0)
    with precision(96):
        assert to_arb(kernel.tail(0)).overlaps(arb(base)), kernel.tail(0)


@pytest.mark.parametrize(
    ("text", "start", "held"),
    [
        ("-2*floor(log(n)/log(2))", 1, True),
        ("-2*floor(log(n)/log(2))", 0, False),
        ("-2*floor(log(n+3)/log(2))", 0, True),
        ("-floor(log(n+1)/log(5/2))", 0, False),
        ("2*floor(-log(n+1)/log(2))", 0, False),
        ("-floor(log(n+1)+1/log(2))", 0, False),
        ("-floor(log(n+1/2)/log(2))", 1, False),
        ("-2*floor(sqrt(n+1)/log(2))", 0, False),
        ("-n/2", 0, False),
    ],
)
def test_steps_are_those_of_a_logarithm_to_a_whole_base(text, start, held):
    p = read(text)
    if held:
        kernel = by_steps(p, start)
        with precision(96):
            row = sum(map(terms(p), range(start + 2, start + 40)), arb(0))
            assert (kernel.tail(start + 2) - kernel.tail(start + 40)).overlaps(row)
    else:
        with pytest.raises(Unrecognised, match="no steps"):
            by_steps(p, start)


@pytest.mark.parametrize(("rate", "held"), [("1", False), ("log(3)", False), ("1.1", True)])
def test_steps_converge_where_weights_fall_faster_than_steps_lengthen(rate, held):
    assert by_steps(read(f"-{rate}*floor(log(n+1)/log(3))"), 0).converges is held


def test_an_envelope_lies_between_its_two_biases(short_envelopes):
    kernel = find(read("-4*log(n-2)-log(n-2)*sin(n**2)"), 4)  # from 4 on: no term 2 is asked for
    with precision(64):
        assert to_arb(kernel.tail(4) - kernel.tail(5)).overlaps(arb(2) ** -(4 + arb(16).sin()))
        far = kernel.first + 5
        middle = to_arb(kernel.tail(far))
        assert to_arb(kernel.low.tail(far)) <= middle.upper()
        assert middle.lower() <= to_arb(kernel.high.tail(far))


@pytest.mark.parametrize(
    "text", ["-(sin(n)**2+cos(n)**2)*n", "-n+sin(n)*cos(n)", "-n+sin(n)**3", "-n+cos(n)*cos(2*n)"]
)
def test_products_of_waves_become_sums(text):
    found = _linear_in_waves(read(text))
    for at in (0, 1, 17, 10**6):
        with precision(128):
            assert abs(enclose(found - read(text), 128, {n: fmpq(at)})) < 1e-25


def test_waves_of_a_formula_of_too_many_operations_are_left(monkeypatch):
    p = read("-n+sin(n)**3")
    for most, left in ((p.count_ops(), False), (p.count_ops() - 1, True)):
        monkeypatch.setattr(methods, "MAX_OPERATIONS", most)
        assert (_linear_in_waves(p) == p) is left


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("n*sin(n)", "diverges"),
        ("-n*Abs(sin(n))", None),
        ("-floor(sin(n)*n)", None),
        ("-n+sin(n)*frac(n*sqrt(2))", "not linear in its oscillations"),
        ("-n+frac(n*sqrt(2))**2", "not linear in its oscillations"),
        ("-2*log(n+1)+erf(n)+sin(n)", "erf has no bounds at infinity"),
    ],
)
def test_what_is_not_proved_is_refused(text, why):
    with pytest.raises(Unrecognised, match=why):
        kernel = find(read(text), 0)
        if not kernel.converges:
            raise Unrecognised("the series diverges")


@pytest.mark.parametrize(
    ("formula", "tokens"),
    [
        ("-n*(1+sin(n)/2)/2000", 14118),
        ("-n+Mod(n,64)", 64),
    ],
)
def test_waves_too_dense_to_sum_are_enclosed(formula, tokens):
    """Summed one by one as far as a bound of what swings matters."""
    weights = np.exp(encoding(formula).bias(np.arange(400_000))[0])
    tails = np.cumsum(weights[::-1])[::-1]
    assert int(np.argmax(tails < tails[0] / 100)) == tokens
    assert theoretical_receptive_field(formula, "1/100").tokens == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("where(n%2==0,min(-sqrt(n)*5,-n/20),-inf)", 1),  # 5 sqrt(2 k) is k/10 at 5000
        ("min(-n/150,-sqrt(n))", 13),  # they cross at 22,500
        ("max(log(exp(-n/5)+exp(-n/7)/20),log(exp(-n/3)+exp(-n/200)/20))", 382),  # equal at 0
    ],
)
def test_a_choice_is_settled_where_its_parts_are_equal_or_cross_late(text, tokens):
    weights = np.exp(encoding(text).bias(np.arange(20_000))[0].astype(np.longdouble))
    left = 1 - np.cumsum(weights) / weights.sum()
    assert theoretical_receptive_field(text, "1/10").tokens == tokens == 1 + np.argmax(left < 0.1)


ORDER = [(48, 100), (1000, 200), (5, 400)]  # a place, and bits
REMAINDER = [(48, 10), (48, 10, 200), (3000, 7)]  # a place, half of the order, an end
SECTORS = {  # sector, orders, log2 of remainders; panels, log2 of rests and of an integral's radius
    "-2*log(1+n)-1/(n+2)": (
        (1, 0.5, 32, [15, 13, 0], [-97.98, -97.98, -159.66]),
        (60.997, 1, -85.42, [3.75, 14.25, 63.75], [-3.82, -14.25, -63.75]),
        [-46.32, -108.18, -88.68, -88.58],
    ),
    "-sqrt(n+1)": (
        (1, 0.5, 32, [15, 13, 0], [-95.59, -95.59, -191.22]),
        (60.997, 8, -132.42, [3.75, 10.125, 13.969], [-2.85, -147.86, -1065.66]),
        [-720.59, -1857.2, -88.52, -86.78],
    ),
    "-log(n+20)-2*log(log(n+20))": (
        (2, 0.5, 16384, [15, 13, 0], [-97.77, -97.77, -154.91]),
        (4.111, 1, -82.63, [1.322, 2.657, 4.155], [-3.22, -5.31, -8.31]),
        [-4.75, -5.91, -89.1, -89.09],
    ),
    "-log(n+3)-log(log(n+3))-2*log(log(log(n+3)))": (
        (3, 0.5, 1 << 32, [15, 13, 0], [-95.61, -95.61, -154.01]),
        (1.414, 1, -85.38, [0.279, 0.977, 1.424], [-1.99, -4.61, -7.0]),
        [-1.79, -2.10, -89.29, -89.5],
    ),
}


def log2(ball):
    return float((ball.log() / arb(2).log()).mid())


@pytest.mark.parametrize("text", SECTORS)
def test_bounds_of_a_sum_on_a_sector_are_no_wider_than_they_were(text):
    """A bound that is too small is found by the laws above, one that is too large here alone."""
    sector, panels, sizes = SECTORS[text]
    kernel = find(read(text))
    s, a = kernel.sector, kernel.area
    with precision(96):
        near, form = [log2(s.remainder(*x)) for x in REMAINDER], a._far_form(64)
        assert (a.depth, s.theta, s.first, [s.order(*x) for x in ORDER]) == sector[:4]
        assert near == pytest.approx(sector[4], abs=0.02)
        edges = [a._edge(k) for k in (0, 7, 40)]
        found = float(a._far_since(64)), form[0].count_ops(), log2(form[1])
        assert found == pytest.approx(panels[:3], abs=0.02)
        assert [float(e.t) for e in edges] == pytest.approx(panels[3], abs=1e-3)
        assert [float(e.height) for e in edges] == pytest.approx(panels[4], abs=0.01)
        areas = [a.beyond(a.to_t(arb(x))) for x in (60, 2000)]
        rests = [log2(a.rest(a._edge(k).t, arb(2) ** -900)) for k in (20, 50)]
        wide = [log2(x.rad() / x.mid()) for x in areas]
        assert [*rests, *wide] == pytest.approx(sizes, abs=0.02)


@pytest.mark.parametrize("m", [2, 5])
def test_the_last_part_of_a_remainder_is_an_integral(m, monkeypatch):
    """Of (theta x)^-2m ((1 - theta) x)^-1/2 from x = 48 e^30.125 on, where no more is taken."""
    monkeypatch.setattr(Sector, "_sup", lambda *_: arb(-(10**6)))
    sector = find(read("-2*log(1+n)-1/(n+2)")).sector
    with precision(96):
        theta, x = arb(sector.theta), 48 * arb("30.125").exp()
        wanted = theta ** (-2 * m) * (x - theta * x) ** -arb("0.5") * x ** (1 - 2 * m)
        assert log2(sector.remainder(48, m)) == pytest.approx(log2(wanted / (2 * m - arb("0.5"))))


def test_a_rest_that_is_too_wide_is_bounded_farther_out(monkeypatch):
    rests, plain = [arb(2) ** 40], TailIntegral.rest

    def wide(self, t, goal):
        return goal * rests.pop() if rests else plain(self, t, goal)

    monkeypatch.setattr(TailIntegral, "rest", wide)
    area = find(read("-2*log(1+n)-1/(n+2)")).area
    with precision(96):
        assert area.beyond(area.to_t(arb(60))).rel_accuracy_bits() > 80 and not rests


@pytest.mark.parametrize(("depth", "h", "t"), [(1, "-n", 1), (4, "-n-2", -1)])
def test_a_rest_is_no_less_than_its_integral(depth, h, t):
    """int_t^oo e^h = 1/e. No rate bounds it by e^{-ct}/c where the logarithm t is below 0."""
    area = TailIntegral(Symbol("s"), read(h), depth, n, read(h))
    assert area.rest(arb(t), arb(0)) >= arb(-1).exp()


@pytest.mark.parametrize(("goal", "kept"), [(0.9, 2), (1.5, 2), (3, 0)])
def test_what_is_tiny_is_left_out_where_all_of_it_is_below_the_goal(goal, kept, monkeypatch):
    """Two functions of about exp(-40), of which each or both are below the goal."""
    t = Symbol("t")
    h, far = atan(exp(-t)) + exp(-t) - t, TailEnclosure(half_line(arb(40)), {level(1): fmpq(1)})
    size = arb(-40).exp()
    with precision(64):
        form, loss = without_tiny(h, t, far, size * goal)
        assert form == (h if kept else -t)
        assert (loss == 0) if kept else (2 * size < loss < 5 * size)
        for most, left in ((h.count_ops(), False), (h.count_ops() - 1, True)):
            monkeypatch.setattr(integral, "MAX_OPERATIONS", most)
            assert (without_tiny(h, t, far, size * 3) == (h, 0)) is left


def test_a_guess_is_the_least_place_below_the_goal():
    kernel = find(read("-n**2/90-n/9"))
    with precision(64):
        for j in range(40):
            assert [kernel.guess(kernel.tail(j) * c) for c in (1, arb("1.001"))] == [j + 1, j]


SUMS = {  # log2 of the relative radius of T_0, T_100, T_100000 at 64 and 192 bits; terms summed
    "-2*log(1+n)-1/(n+2)": ([-83.16, -79.31, -88.57, -209.85, -203.03, -218.08], 48),
    "-sqrt(n+1)": ([-81.35, -74.52, 115.17, -209.19, -198.45, -198.26], 48),
    "-log(n+20)-2*log(log(n+20))": ([-81.2, -82.51, -89.04, -206.81, -206.12, -220.63], 48),
    "-2*log(n+1)+sin(log(n+1))": ([-84.21, -79.82, -88.49, -212.0, -203.64, -218.92], 48),
    "-log(3+n)^2": ([-87.74, -69.31, -72.44, -219.46, -193.92, -191.73], 48),
    "-n^(3/10)/2": ([-82.17, -83.06, -87.28, -207.0, -206.58, -213.89], 48),
    "-3/2*log(n+1)-atan(n)": ([-83.43, -80.77, -88.92, -209.57, -204.42, -219.33], 48),
    "-n**2/9-n": ([-94.4, -85.0, -63.15, -222.59, -213.0, -191.15], 165),
    "-loggamma(n+1)": ([-95.72, -86.99, -63.83, -223.54, -214.99, -191.83], 165),
    "-n/log(n+20)": ([-93.14, -89.31, -63.84, -221.09, -217.31, -191.84], 1025),
    "-4*log(n+2)-log(n+2)*sin(n**2)": ([-22.46, -9.3, 0.0, -22.46, -9.3, 0.0], 4096),
    "-n/50+frac(n*sqrt(2))": ([-60.08, -57.21, -1.11, -60.08, -57.21, -1.11], 2048),
}


@pytest.mark.parametrize("text", SUMS)
def test_sums_are_enclosed_as_finely_as_they_were(text, short_envelopes):
    sizes, terms = SUMS[text]
    kernel, found = find(read(text)), []
    for bits in (64, 192):
        with precision(bits):
            balls = [to_arb(kernel.tail(j)) for j in (0, 100, 10**5)]
            found += [log2(ball.rad() / ball.mid()) for ball in balls]
    assert found == pytest.approx(sizes, abs=0.05)
    summed = kernel._base(64)[0] if hasattr(kernel, "_base") else len(kernel._sums()[64][1])
    assert summed == terms


RESTS = {  # log2 of the rest beyond 16 and 200; where it is below 2^-72, 2^-308 of T_0, T_30
    "-n**2/9-n": ([-27.62, -6305.41], [64, 94]),
    "-loggamma(n+1)": ([-37.47, -1175.47], [64, 94]),
    "-n*log(n+2)": ([-58.14, -1446.35], [64, 94]),
    "-5*sqrt(n)": ([-25.17, -92.58], [128, 4126]),
}


@pytest.mark.parametrize("text", RESTS)
def test_the_rest_of_a_direct_sum_is_no_wider_than_it_was(text):
    kernel, (rests, ends) = find(read(text)), RESTS[text]
    assert [log2(kernel.rest(y)) for y in (16, 200)] == pytest.approx(rests, abs=0.02)
    assert [kernel._end(j, j + 64, bits)[0] for j, bits in ((0, 64), (30, 300))] == ends
    assert all(kernel.rest(y) > kernel.tail(y) for y in range(2, 20))


@pytest.mark.parametrize("end", [1, 2, 3, 18, 300, 10**12])
def test_a_row_of_terms_that_fall_fast_is_as_precise_as_its_tail(end):
    """Beyond 10^12 more terms count than are summed one by one."""
    p = read("-5*sqrt(n)")
    with precision(96):
        row, term = find(p).between(0, end), terms(p)
        assert row.overlaps(sum(map(term, range(min(end, 3_000))), arb(0)) + arb(0, 1e-100))
        assert row.rel_accuracy_bits() > 90


def test_a_row_is_its_tail_less_the_rest_beyond(monkeypatch):
    """With a rest as fine as the tail itself, near and beyond the precision."""
    p = read("-n**2/5-n")
    kernel, term = find(p), terms(p)

    def rest(self, y, shares=()):
        with precision(300):
            return sum(map(term, range(y, y + 40)), arb(0)) * arb("1.01")

    monkeypatch.setattr(SuperpolynomialSum, "rest", rest)
    for b in range(1, 40):
        with precision(300):
            row = sum(map(term, range(b)), arb(0))
        with precision(64):
            assert kernel.between(0, b).overlaps(row), b


@pytest.mark.parametrize(
    ("text", "bias", "j"),
    [
        ("-n*log(n+1)", lambda n: -n * np.log(n + 1), 10**9),
        ("-log(n+1000)^3", lambda n: -(np.log(n + 1000) ** 3), 500_000),
    ],
)
def test_a_tail_far_out_is_the_sum_of_the_terms_that_count(text, bias, j):
    """All but e^-50 of it are 60,000 terms: a bound of the rest that is a little looser would ask
    for more terms than are summed."""
    kernel, places = superpolynomial_kernel(read_bias(read(text)), 0, 1 << 16), np.arange(60_000.0)
    with precision(64):
        share = float(kernel.tail(j) / terms(read(text))(j))
    assert share == pytest.approx(np.exp(bias(j + places) - bias(j)).sum(), rel=1e-4)
