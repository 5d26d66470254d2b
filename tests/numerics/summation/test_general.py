"""The general path: each way to put a kernel together, against its own terms."""

import numpy as np
import pytest
from flint import arb, fmpq

from farfield import encoding, theoretical_receptive_field
from farfield.numerics.search import Unrecognised
from farfield.numerics.summation.bounded import Envelope, StepsKernel
from farfield.numerics.summation.kernel import terms
from farfield.numerics.summation.methods import _linear_in_waves, find
from farfield.numerics.summation.series import Series, _SetUp, _with_kernel
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
}


def summed(text, start=0):
    """The sum on n >= start."""
    p = read(text)
    return Series(p, tuple(_with_kernel(start, None, p, _SetUp())))


@pytest.mark.parametrize("text", KINDS)
def test_the_way_that_is_found(text):
    found, kind = summed(text), KINDS[text]
    assert found.period == kind if isinstance(kind, int) else isinstance(found.kernel, kind)


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


def test_a_residue_class_that_diverges_makes_the_sum_diverge():
    assert summed("-n/9-Mod(n,3)").converges
    assert summed("-2*log(n+1)*sin(pi*n/2)**2").converges is False


def test_an_envelope_lies_between_its_two_biases(short_envelopes):
    kernel = find(read("-4*log(n+2)-log(n+2)*sin(n**2)"), 0)
    with precision(64):
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


@pytest.mark.parametrize("text", ["n*sin(n)", "-n*Abs(sin(n))", "-floor(sin(n)*n)"])
def test_what_is_not_proved_is_refused(text):
    with pytest.raises(Unrecognised):
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
