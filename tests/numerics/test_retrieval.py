"""The forecast of retrieval: closed forms without noise, the pilot's setting, bad input."""

import json

import numpy as np
import pytest

from farfield.numerics.float_rows import head_prices
from farfield.numerics.retrieval import retrieval_curve
from farfield.theory.answers.errors import InputError
from farfield.theory.encodings import encoding

RNG = np.random.default_rng(3)
TARGET, OTHERS, NEAR = RNG.normal(8, 1, 50), RNG.normal(0, 1, (50, 60)), RNG.normal(1, 1, (50, 3))


@pytest.mark.parametrize("bias", ["0", "-n/32", "-2*log(1+n)"])
def test_level_others_give_the_logistic_of_advantage_less_price(bias):
    distances = [0, 1, 60, 1000]
    found = retrieval_curve([6.0], [[0.0, 0.0]], bias, length=1024, distances=distances)
    prices = head_prices(encoding(bias).bias(np.arange(1024)))[0, distances]
    assert np.allclose(found.attention, 1 / (1 + np.exp(prices - 6)), rtol=1e-12)
    assert found.label == "forecast" and max(found.error) < 1e-15


def test_rows_are_resampled_from_their_own_values():
    """Two kinds of rows whose logits differ by a constant: attention does not see it."""
    target, others = np.array([6.0, 106.0]), np.array([[0.0, 0.0], [100.0, 100.0]])
    found = retrieval_curve(target, others, "0", length=64, distances=8)
    assert found.attention[0] == pytest.approx(1 / (1 + 63 * np.exp(-6)), rel=1e-12)


def test_against_a_loop():
    bias, length, at = encoding("-n/16").bias(np.arange(256))[0], 256, (0, 1, 2, 3, 100, 255)
    found = retrieval_curve(
        TARGET, OTHERS, "-n/16", near=NEAR, length=length, distances=at, draws=4000, seed=5
    )
    rng, sums = np.random.default_rng(9), np.zeros(len(at))
    for _ in range(4000):
        i = rng.integers(len(TARGET))
        row = rng.choice(OTHERS[i], length)
        row[:3] = NEAR[i][::-1]
        for k, n in enumerate(at):
            x = row.copy()
            x[n] = TARGET[i]
            w = np.exp(x + bias)
            sums[k] += w[n] / w.sum()
    spread = np.array(found.error)
    assert (np.abs(sums / 4000 - found.attention) <= 6 * spread + 1e-3).all()


def test_the_same_seed_draws_the_same_rows():
    ask = {"near": NEAR, "length": 300, "distances": [5, 200], "draws": 64}
    one, two = (retrieval_curve(TARGET, OTHERS, "0", **ask, seed=s) for s in (1, 1))
    assert one == two and one != retrieval_curve(TARGET, OTHERS, "0", **ask, seed=2)
    data = json.loads(one.to_json())
    assert data["distances"] == [5, 200] and len(data["attention"]) == 2


def test_what_has_no_bias_by_distance_is_out_of_scope():
    assert retrieval_curve([1.0], [[0.0]], "rope", length=8, distances=[1]).attention is None


@pytest.mark.parametrize(
    "change, said",
    [
        ({"others": OTHERS[:7]}, "have shapes"),
        ({"near": NEAR[:7]}, "have shapes"),
        ({"target": TARGET[:, None]}, "shape"),
        ({"target": np.full(50, np.nan)}, "finite"),
        ({"others": [["a"]]}, "array of numbers"),
        ({"others": np.empty((50, 0))}, "at least one"),
        ({"distances": [64]}, "outside a row"),
        ({"distances": [-1]}, "whole number from 0"),
        ({"distances": []}, "empty"),
        ({"length": 10**9}, "too many"),
        ({"draws": 0}, "whole number from 1"),
        ({"f": "alibi"}, "8 heads"),
    ],
)
def test_bad_input_is_one_line(change, said):
    ask = {"target": TARGET, "others": OTHERS, "f": "0", "near": NEAR, "distances": [5]} | change
    with pytest.raises(InputError, match=said) as error:
        retrieval_curve(**({"length": 64} | ask))
    assert "\n" not in str(error.value)
