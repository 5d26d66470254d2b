"""The bounds of `docs/theory/mixtures.md`, on random rows and on rows that attain them."""

import numpy as np
import pytest

from farfield import encoding

V = 1.5


def head(logits, values):
    weights = np.exp(logits - logits.max())
    return weights @ values / weights.sum()


def rows(seed, count=200):
    """Random sizes, bounds, logits within them and values within V."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        size, beta = int(random.integers(2, 200)), random.uniform(0, 3)
        logits = beta * random.uniform(-1, 1, size).round(int(random.integers(0, 3)))
        values = random.normal(size=(size, 3))
        values *= V * random.uniform(0, 1, (size, 1)) / np.linalg.norm(values, axis=1)[:, None]
        yield random, size, beta, logits, values


def test_a_free_head_has_no_order_and_one_key_says_little():
    for random, size, beta, logits, values in rows(1):
        order = random.permutation(size)
        np.testing.assert_allclose(head(logits[order], values[order]), head(logits, values))
        moved = np.linalg.norm(head(logits, values) - head(logits[:-1], values[:-1]))
        assert moved <= 2 * V / (1 + (size - 1) * np.exp(-2 * beta)) * (1 + 1e-12)


@pytest.mark.parametrize("formula", ["-n/4", "-2*log(1+n)", "-sqrt(n)"])
def test_a_local_head_keeps_the_order_of_its_keys(formula):
    bias = encoding(formula).bias(np.arange(400))[0]
    b = np.exp(bias)
    for random, size, _, _, values in rows(2):
        n = int(random.integers(0, size - 1))
        swapped = values.copy()
        swapped[[n, n + 1]] = values[[n + 1, n]]
        told = np.linalg.norm(head(bias[:size], values) - head(bias[:size], swapped))
        least = (b[n] - b[n + 1]) * np.linalg.norm(values[n] - values[n + 1]) / b.sum()
        assert told >= least * (1 - 1e-9) - 1e-13


@pytest.mark.parametrize("size", [10, 100, 1000])
def test_what_free_heads_add_settles(size):
    random, beta = np.random.default_rng(3), 0.7
    choices = np.array([[beta, V], [-beta, V], [beta, -V], [-beta, 0.0]])
    weights = np.exp(choices[:, 0])
    mu = weights @ choices[:, 1] / weights.sum()
    drawn = choices[random.integers(0, len(choices), (2000, size))]
    found = [head(row[:, 0], row[:, 1]) for row in drawn]
    error = np.sqrt(np.mean((np.array(found) - mu) ** 2))
    bound = 2 * V * np.exp(2 * beta) / np.sqrt(size)
    assert bound / 12 < error < bound  # it falls as the bound does


def test_a_sample_of_other_keys_is_within_its_bound_and_stops_falling():
    """Both the cell and the pool are draws of one law; the pool does not grow with the cell."""
    random, beta, pool, bound = np.random.default_rng(0), 1.0, 40, []
    for cell in (40, 400, 4000):
        off = []
        for _ in range(200):
            (x, v), (y, u) = (
                (random.uniform(-beta, beta, n), random.choice([-1.0, 1.0], n))
                for n in (cell, pool)
            )
            near = random.uniform(-beta, beta, 3), random.choice([-1.0, 1.0], 3)
            w, drawn, kept = np.exp(x), cell / pool * np.exp(y), np.exp(near[0])
            whole = (w @ v + kept @ near[1]) / (w.sum() + kept.sum())
            off.append((drawn @ u + kept @ near[1]) / (drawn.sum() + kept.sum()) - whole)
        error = np.sqrt(np.mean(np.square(off)))
        bound.append((error, 2 * np.exp(2 * beta) * (pool**-0.5 + cell**-0.5)))
    assert all(error <= most for error, most in bound)
    assert bound[2][0] > 0.6 * bound[1][0]  # ten times the keys, and the pool is what it was
