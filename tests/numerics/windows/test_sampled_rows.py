"""Bounds from a sample of the dropped keys: they hold as often as they say, and never cost."""

import numpy as np
import pytest

from farfield.numerics.windows.row_bound import window_certificate
from farfield.numerics.windows.sampled_rows import dropped_weight, sampled_certificate

POPULATIONS = {
    "equal": lambda random: np.full(300, 0.5),
    "rare": lambda random: (random.random(300) < 0.01).astype(float),
    "uniform": lambda random: random.random(300),
    "skewed": lambda random: np.minimum(1, random.lognormal(-4, 1.5, 300)),
}


@pytest.mark.parametrize("samples", (20, 150, 290))
@pytest.mark.parametrize("kind", POPULATIONS)
def test_the_weight_is_bounded_as_often_as_it_says(kind, samples):
    random, delta, failed = np.random.default_rng(3), 0.2, 0
    for _ in range(400):
        weights = POPULATIONS[kind](random)
        drawn = random.permutation(weights)[:samples]
        failed += dropped_weight(drawn, len(weights), 1.0, delta) < weights.sum()
    assert failed <= 400 * delta


def test_the_inequality_is_the_printed_one():
    """Bardenet and Maillard 2015, Theorem 4.3, by hand for four numbers of ten."""
    sample, log = np.array([0.0, 0.2, 0.4, 0.6]), np.log(5 / 0.05)
    deviation = np.sqrt(np.mean((sample - 0.3) ** 2))
    ratio = 1 - 3 / 10
    expected = 0.3 + deviation * np.sqrt(2 * ratio * log / 4) + (7 / 3 + 3 / 2**0.5) * log / 4
    assert dropped_weight(sample, 10, 1.0, 0.05) == pytest.approx(10 * expected)
    more = np.tile(sample, 2)
    late = 0.3 + deviation * np.sqrt(2 * (1 - 8 / 10) * (1 + 1 / 8) * log / 8)
    late += (7 / 3 + 3 / 2**0.5) * log / 8
    assert dropped_weight(more, 10, 1.0, 0.05) == pytest.approx(10 * late)


def rows(seed, n=400, size=8):
    random = np.random.default_rng(seed)
    q, k, v = random.normal(size=(3, n, size))
    return q, k, v / np.linalg.norm(v, axis=1, keepdims=True)


def change(q, k, v, row, window, sinks):
    """How far the output of a row moves, and its dropped weight over the kept one."""
    weights = np.exp(k[: row + 1] @ q[row] / np.sqrt(q.shape[1]))
    kept = np.zeros(row + 1, bool)
    kept[max(0, row - window + 1) :] = kept[:sinks] = True
    whole = weights @ v[: row + 1] / weights.sum()
    part = weights[kept] @ v[: row + 1][kept] / weights[kept].sum()
    return np.linalg.norm(whole - part), weights[~kept].sum() / weights[kept].sum()


@pytest.mark.parametrize("seed", range(3))
def test_the_output_moves_by_no_more(seed):
    q, k, v = rows(seed)
    found = sampled_certificate(q, k, window=64, sinks=4, error=1, samples=64, seed=seed)
    moved = np.array([change(q, k, v, row, 64, 4)[0] for row in range(len(q))])
    assert (moved > found.bound + 1e-9).mean() <= found.delta
    worst = window_certificate(q, k, window=64, sinks=4, error=1)
    assert (found.bound <= worst.bound).all() and (found.bound < worst.bound).any()
    assert found.worst == worst.share <= found.share


def test_if_all_are_drawn_the_weight_is_that_of_the_dropped_keys():
    q, k, v = rows(0, 120)
    found = sampled_certificate(q, k, window=32, sinks=2, error=1, samples=120)
    for row in (40, 80, 119):
        outside = change(q, k, v, row, 32, 2)[1]
        assert found.bound[row] == pytest.approx(2 * outside / (1 + outside))
    assert (found.bound[:34] == 0).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e3, 1e160])
def test_keys_that_overflow_leave_the_worst_case(size):
    q, k, _ = (size * x for x in rows(0, 60))
    asked = {"window": 8, "error": 2}
    found, worst = sampled_certificate(q, k, samples=8, **asked), window_certificate(q, k, **asked)
    assert (found.bound[:16] <= worst.bound[:16]).all()  # here all dropped keys are drawn
    np.testing.assert_array_equal(found.bound[16:], worst.bound[16:])
    assert found.bound.max() == 2 and found.share == found.worst == 1


@pytest.mark.filterwarnings("error")
def test_a_kept_key_whose_product_overflows_on_the_way_leaves_the_worst_case():
    """All products are 0.91e308, but the sum of the first two terms of the last one is infinite."""
    q, k = np.ones((3, 3)) * 0.7e154, np.array([[1, 0, 0], [1, 0, 0], [1, 1, -1]]) * 1.3e154
    found = sampled_certificate(q, k, window=1, error=1, scale=1)
    assert found.bound.tolist() == [0, 2, 2]


@pytest.mark.parametrize(("scale", "factor", "error"), [(None, 0.5, 5.95), ("1/8", 0.125, 5.8)])
def test_of_equal_logits_the_bound_is_that_of_the_longest_dropped_key(scale, factor, error):
    """Whichever keys are drawn; the sinks and the window have longer ones."""
    random, window, sinks, count = np.random.default_rng(2), 5, 2, 60
    q, k = np.tile([3.0, 0, 0, 0], (160, 1)), np.full((160, 4), 0.25)
    k[:, 1] = random.uniform(1, 2, 160).cumsum() / 80
    k[:sinks, 1] = 9
    asked = {"window": window, "sinks": sinks, "scale": scale, "error": error, "value_bound": 3}
    found = sampled_certificate(q, k, samples=count, delta="1/20", **asked)
    worst, bounds = window_certificate(q, k, **asked), np.zeros(160)
    for row in range(window + sinks, 160):
        norms = np.linalg.norm(k[sinks : row - window + 1], axis=1)
        weights = np.full(len(norms), 1 / (window + sinks))
        largest = np.exp(3 * factor * norms.max() - 0.75 * factor) / (window + sinks)
        outside = dropped_weight(weights[:count], len(norms), largest, 0.05)
        bounds[row] = min(6 * outside / (1 + outside), worst.bound[row])
    assert found.bound == pytest.approx(bounds, rel=1e-12) and (bounds < worst.bound).sum() > 80
    within = bounds[window + sinks :] <= error
    assert found.share == within.mean() and 0 < found.share < 1
    assert (found.samples, found.delta, found.sinks, found.window) == (60, 0.05, sinks, window)


def test_the_seed_draws_the_keys_and_two_are_enough():
    q, k, _ = rows(1, 300)
    asked = {"window": 8, "error": 1, "value_bound": 100}
    one, same, other = (
        sampled_certificate(q, k, samples=200, seed=s, **asked).bound for s in (0, 0, 1)
    )
    assert (one == same).all() and (one != other).any()
    assert sampled_certificate(q, k, samples=2, **asked).samples == 2
    assert sampled_certificate(q[:9], k[:9], **asked | {"window": 9}).share == 1
