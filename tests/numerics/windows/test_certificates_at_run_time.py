"""Certificates at run time hold for the exact error of every row, in every float type."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from flint import arb, fmpq

from farfield import window_certificate
from farfield.numerics.arrays import floats
from farfield.numerics.windows import row_bound
from farfield.theory.functions.balls import precision

ROWS, SIZE = 8, 3
TYPES = (np.float64, np.float32, np.float16, torch.bfloat16, torch.float32)
CLASSES = ("ordinary", "parallel", "huge", "mixed", "tiny", "ties", "zeros")


def drawn(rng, kind):
    """A query and keys of one class, float64."""
    q, k = rng.normal(size=(2, ROWS, SIZE))
    if kind in ("parallel", "ties"):  # every logit is the bound of the dropped ones
        k = np.repeat(rng.normal(size=(1, SIZE)), ROWS, 0)
        q = k * rng.uniform(0.5, 2, size=(ROWS, 1)) if kind == "parallel" else k
        if rng.random() < 0.5:
            q, k = np.rint(q * 4), np.rint(k * 4)
    if kind in ("parallel", "huge"):
        power = rng.uniform(0, 300)
        q, k = q * 10.0**power, k * 10.0 ** rng.uniform(-power, min(power, 300 - power) + 1)
    if kind == "mixed":
        q, k = (x * 10.0 ** rng.uniform(-290, 290, size=(ROWS, 1)) for x in (q, k))
    if kind == "tiny":
        q, k = q * 10.0 ** rng.uniform(-323, -150), k * 10.0 ** rng.uniform(-323, 300)
    if kind == "zeros":
        q, k = (x * (rng.random((ROWS, 1)) < 0.5) for x in (q, k))
    return q, k


def as_type(x, dtype):
    """The array in a type, clipped to its range, and the same numbers in float64."""
    if isinstance(dtype, torch.dtype):
        most = torch.finfo(dtype).max
        given = torch.tensor(np.clip(x, -most, most)).to(dtype)
        given = torch.nan_to_num(given, posinf=most, neginf=-most)
        return given, given.double().numpy()
    most = np.finfo(dtype).max
    given = np.clip(x, -float(most), float(most)).astype(dtype)
    return given, given.astype(np.float64)


def worst(q, k, row, window, sinks, scale):
    """2 T/(T + Z) of one row, the exact worst case over values, as a ball."""
    kept = {*range(sinks), *range(row - window + 1, row + 1)}
    for bits in (192, 1024, 9000):
        with precision(bits):
            ours, keys = q[row].tolist(), k[: row + 1].tolist()
            logits = [scale * sum(arb(x) * key[i] for i, x in enumerate(ours)) for key in keys]
            top = logits[int(np.argmax([float(x.mid()) for x in logits]))]
            weights = [(x - top).exp() for x in logits]
            outside = sum((w for j, w in enumerate(weights) if j not in kept), arb(0))
            found = 2 * outside / sum(weights, arb(0))
        if found.is_finite() and found.rad() < arb(2) ** -80:
            return found
    raise AssertionError("the truth is not known")


def violations(count, seed):
    """Rows whose bound is below the truth, of `count` that drop keys; how many are certified."""
    rng, seen, wrong, certified = np.random.default_rng(seed), 0, [], 0
    while seen < count:
        kind, dtype = rng.choice(CLASSES), TYPES[rng.integers(len(TYPES))]
        (given_q, q), (given_k, k) = (as_type(x, dtype) for x in drawn(rng, kind))
        window, sinks = int(rng.integers(1, 4)), int(rng.integers(0, 3))
        power = int(rng.integers(-3, 3))
        error = Fraction(int(rng.integers(1, 20)), 10)
        found = window_certificate(
            given_q, given_k, window=window, sinks=sinks, error=error, scale=Fraction(2) ** power
        )
        dropping = range(window + sinks, ROWS)
        assert np.isfinite(found.bound).all() and not found.bound[: window + sinks].any()
        assert found.share == found.certified[window + sinks :].mean()
        for row in dropping:
            truth = worst(q, k, row, window, sinks, arb(2) ** power)
            budget = arb(error.numerator) / error.denominator
            certified += bool(found.certified[row])
            if truth > arb(found.bound[row]) or (found.certified[row] and truth > budget):
                wrong.append((kind, dtype, found.bound[row], truth))
        seen += len(dropping)
    return wrong, certified / seen


@pytest.mark.timeout(3_000)
@pytest.mark.parametrize(
    ("rows", "seed"), [(4_000, 1), pytest.param(10**6, 2, marks=pytest.mark.slow)]
)
def test_no_bound_is_below_the_truth(rows, seed):
    wrong, certified = violations(rows, seed)
    assert not wrong and certified > 0.1


@pytest.mark.parametrize("slack", [0, 1e-3])
def test_the_bound_is_that_of_the_longest_key_that_is_dropped(monkeypatch, slack):
    """Also where the margin of the gap is no longer small."""
    q, k = np.random.default_rng(3).normal(size=(2, 300, 4))
    if slack:
        monkeypatch.setattr(row_bound, "TINY", slack)
        monkeypatch.setattr(row_bound, "_margin", lambda size, m, reach: (size + m + reach) * slack)
    row, key = np.ogrid[:300, :300]
    kept = (key <= row) & ((key > row - 7) | (key < 2))
    dropped = (key <= row) & ~kept
    norms = np.linalg.norm(k, axis=1)
    weight = np.where(kept, np.exp(q @ k.T / 2), 0).sum(axis=1)
    longest = np.where(dropped, norms, 0).max(axis=1)
    reach = np.linalg.norm(q, axis=1) * np.maximum.accumulate(norms) / 2
    scales = 2.0 ** (np.frexp(np.abs(q).max(axis=1))[1] + np.frexp(np.abs(k).max())[1] - 1)
    margin = slack * (4 + 9 + reach + 4 * (1 + scales))
    weight /= np.exp(np.linalg.norm(q, axis=1) * longest / 2 + margin)  # e^G
    right = 6 * dropped.sum(axis=1) / (dropped.sum(axis=1) + weight)
    found = window_certificate(q, k, window=7, sinks=2, error=1, value_bound=3)
    assert found.bound == pytest.approx(right, rel=1e-9)


def test_the_margin_is_three_times_what_rounding_takes():
    """Higham 3.1 for a product of vectors and one of norms, and the log-sum-exp of the keys."""
    for size, kept, reach in ((1, 1, 0.0), (4, 900, 3.5), (128, 7, 1e3)):
        roundings = (size + 8) * reach + (size + 8) * reach + (kept + 1600)
        assert row_bound._margin(size, kept, reach) == pytest.approx(3 * 2.0**-53 * roundings)


@pytest.mark.parametrize(("products", "share"), [(20 * 4, 1), (20 * 4 - 1, 16 / 17)])
def test_open_rows_are_decided_while_their_products_last(monkeypatch, products, share):
    """Of equal keys 17 are kept and 17 dropped in row 33: its bound is the budget."""
    same = np.repeat([[1.0, 3.0, -2.0, 7.0]], 34, 0)
    monkeypatch.setattr(row_bound, "MAX_PRODUCTS", products)  # 12 + 5 kept, the longest, 33 // 16
    found = window_certificate(same, same, window=12, sinks=5, error=1, scale=1)
    assert found.share == pytest.approx(share) and (found.bound[33] == 1) == (share == 1)


@pytest.mark.parametrize("power", [10**300, Fraction(1, 10**300)])
def test_numbers_at_the_ends_of_the_range_are_read(refusal, power):
    ask = {"query": [[1.0]], "keys": [[1.0]], "window": 1}
    found = window_certificate(**ask, error=power, value_bound=power, scale=power)
    assert found.error == float(power) and found.share == 1
    beyond = power * (10 if power > 1 else Fraction(1, 10))
    refusal("from 1e-300 to 1e300", window_certificate, **ask, error=beyond)


def test_a_budget_that_the_bound_passes_within_a_float_is_not_kept():
    budget = Fraction(1, 3) - Fraction(1, 10**30)
    one = window_certificate(
        [[1.0], [1.0]], [[1.0], [1.0]], window=1, error=budget, value_bound="1/3"
    )
    assert one.certified.tolist() == [True, False] and one.bound[1] == pytest.approx(1 / 3)


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_the_longest_of_the_dropped_keys_are_told_once_each(size):
    lengths = [[9, 9], [3, 4], [5, 0], [0, -5], [0, 5], [4.9999999, 0], [4.9999, 0], [9, 9], [9, 9]]
    keys = np.array(lengths) * size
    rows = row_bound._HeadRows(keys, keys, 2, 1, fmpq(1), fmpq(2))
    longest = np.array([[0, 5], [3, 4], [4.9999999, 0], [5, 0]]) * size
    np.testing.assert_array_equal(rows.longest(8), longest)
    nothing = row_bound._HeadRows(keys * 0, keys * 0, 2, 1, fmpq(1), fmpq(2))
    assert nothing.longest(8).tolist() == [[0, 0]]


def test_every_row_keeps_a_budget_of_twice_the_values():
    vast = np.full((5, 2), 1e200)
    found = window_certificate(vast, -vast, window=2, error="2/3", value_bound="1/3", scale=1)
    assert found.bound[2:] == pytest.approx(2 / 3) and found.certified.all()


def test_huge_equal_keys_are_not_certified_and_ties_are():
    for size in (1e8, 1e10, 1e20, 1e150):
        x = np.random.default_rng(0).normal(size=(1, 4)) * size
        same = np.repeat(x, 3, 0)
        open_ = window_certificate(same, same, window=2, error="1/2", scale=1)
        assert open_.bound[2] >= 2 / 3 and not open_.certified[2] and open_.share == 0
        tie = window_certificate(same, same, window=1, error=1, scale=1)
        assert tie.bound.tolist() == [0, 1, pytest.approx(4 / 3)] and tie.share == 0.5
    vast = np.full((5, 2), 1e200)
    found = window_certificate(vast, vast, window=2, error="1/10", scale=1)
    assert found.bound[2] == pytest.approx(2 / 3) and found.share == 0


@pytest.mark.timeout(60)
def test_rows_that_floats_leave_open_are_decided_within_bounded_work():
    signs = np.where(np.arange(300) % 2, 1.0, -1.0)[:, None]
    for keys in (signs, signs * (1 + np.arange(300)[:, None] * 1e-12)):
        found = window_certificate(-30 * keys, keys, window=1, error="1.99999999999999999", scale=1)
        assert found.share == 0 and found.bound.max() == 2


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.ones((3, 2)) * 1j, "complex128"),
        (torch.ones(3, 2) * 1j, "complex64"),
        (np.ma.masked_array(np.ones((3, 2)), mask=np.eye(3, 2)), "masked"),
        ([["1", "2"]], "text"),
        ([[b"1", b"2"]], "text"),
        ([[2**53 + 1]], "2\\^53"),
        ([[-(2**53) - 1]], "2\\^53"),
        (np.array([[2**53 + 1]], np.uint64), "2\\^53"),
        (np.array([["2020-01-01"]], dtype="datetime64"), "datetime64"),
        ([[10**400, 1]], "no numbers of a float64"),
        ([[2**60 + 1, 1]], "2\\^53"),
        ([[None]], "no numbers"),
        ([[1], [2, 3]], "no numbers"),
        ([[True]], "bool"),
        (np.full((2, 2), np.nan), "not finite"),
        (np.ones((2, 2), dtype=np.longdouble), "float128|longdouble"),
    ],
)
def test_arrays_that_are_no_float64_are_refused(refusal, bad, message):
    refusal(message, window_certificate, bad, bad, window=1, error=1)


def test_every_integer_up_to_the_border_is_read():
    whole = floats([2**53, -(2**53)], "keys", "an array")
    assert whole.dtype == np.float64 and whole.tolist() == [2**53, -(2**53)]
    assert floats([], "keys", "an array").shape == (0,)
    assert floats(torch.tensor([3]), "keys", "an array").tolist() == [3]
