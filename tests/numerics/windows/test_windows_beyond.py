"""Windows beyond Toeplitz biases: random rows never exceed a bound, and some come close to it."""

import itertools
import math

import numpy as np
import pytest

from farfield import certified_window, encoding, leak, window_certificate, window_error
from farfield.numerics.masks import Mask

RNG = np.random.default_rng(7)


def softmax(logits):
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def moved(logits, values, kept):
    """How far the output of a row moves when only the kept keys stay."""
    full = softmax(logits) @ values
    part = softmax(np.where(kept, logits, -np.inf)) @ values
    return float(np.linalg.norm(full - part))


def rows(count, beta, worst):
    """Random content logits and unit values by distance, or those of the worst case."""
    for _ in range(count):
        i = int(RNG.integers(2, 60))
        j = int(RNG.integers(1, i))
        x = RNG.uniform(-beta, beta, i)
        v = RNG.normal(size=(i, 2))
        v /= np.linalg.norm(v, axis=1, keepdims=True)
        if worst:
            x = np.where(np.arange(i) < j, -beta, beta)
            v = np.where(np.arange(i) < j, 1.0, -1.0)[:, None] * np.array([[1.0, 0.0]])
        yield i, j, x, v


def largest_error(p, width, beta):
    """The worst error of a row, from its definition: 2 T / (T + e^{-2 beta} B)."""
    weights = np.exp(p - p.max())
    inside, outside = weights[:width].sum(), weights[width:].sum()
    return 2 * outside / (outside + math.exp(-2 * beta) * inside)


@pytest.mark.parametrize("worst", [False, True])
def test_the_error_of_a_row_is_a_maximum(worst):
    for i, j, x, v in rows(60, 1.5, worst):
        p = RNG.normal(size=i).cumsum()
        bound = window_error(encoding(values=p, tail="cut"), j, "3/2", 1).value
        assert bound == pytest.approx(largest_error(p, j, 1.5))
        found = moved(x + p, v, np.arange(i) < j)
        assert found <= bound * (1 + 1e-9)
        if worst:
            assert found == pytest.approx(bound, rel=1e-9)


def test_first_keys_in_answers_and_masks(refusal):
    found = certified_window("-n/2", "1/100", 1, 1, sinks=4)
    assert window_error("-n/2", 15, 1, 1, sinks=1).sinks == 1
    i, k = np.arange(96)[:, None], np.arange(96)
    kept = (k <= i) & ((i - k < 15) | (k < 4))
    blocks = kept.reshape(6, 16, 6, 16).any((1, 3))
    np.testing.assert_array_equal(found.block_mask(96, 16), blocks)
    np.testing.assert_array_equal(found.block_mask(96, 1), kept)
    refusal("sinks 16 are more than the window of 15", window_error, "-n/2", 15, 1, 1, sinks=16)


def test_the_worst_head_tells_the_error():
    found = window_error("alibi", 100, 1, 1)
    assert found.value == max(h.value for h in found.heads) > min(h.value for h in found.heads)
    both = window_error(["-n*(3+sin(n**3))+n*sin(n**2)", "-log(1+n)"], 100, 1, 1)
    assert (both.value, both.label) == (2, "theorem") and both.heads[0].value != 2


def test_errors_where_there_is_no_bias():
    for name in ("rope", "xpos", "learned", "cope", "ssmax"):
        found = window_error(name, 100, 1, 3)
        assert found.value == 6 and found.label == "theorem"
        assert found.reason.code == "bounded_logits"
    width = certified_window("stick_breaking", "1/10", 1, 1).width
    low, high = (window_error("stick_breaking", w, 1, 1).value for w in (width, width - 1))
    assert low <= 0.1 < high
    for name in ("fox", "dape"):
        assert window_error(name, 100, 1, 1).reason.code == "missing_bound"
    for found in (window_error("dape", 100, 1, 1), certified_window("dape", "1/10", 1, 1)):
        assert "F is learned" in str(found.reason)


def test_no_window_belongs_to_blockwise_attention_whatever_the_mechanism():
    for name in ("rope", "alibi", "stick_breaking"):
        blocks = encoding(name, bca=8)
        for found in (window_error(blocks, 9, 1, 1), certified_window(blocks, "1/10", 1, 1)):
            assert (found.status, found.reason.code) == ("out_of_scope", "bounded_support")


def test_sinks_may_fill_the_row_and_the_window():
    assert certified_window("-n", "1/10", 1, 1, row=4, sinks=4).sinks == 4
    assert window_error("-n", 4, 1, 1, sinks=4, sink_weight=0).sinks == 4


def test_sinks_weigh_beside_the_least_inside_and_the_most_outside():
    beta, weight, q = 0.5, 3, math.exp(-0.5)
    outside, inside = math.exp(beta) * q**6, math.exp(-beta) * (1 - q**6)
    found = window_error("-n/2", 6, "1/2", 2, sinks=4, sink_weight=weight).value
    assert found == pytest.approx(4 * outside / (outside + inside + weight * (1 - q)))


def test_bounded_logits_need_windows_as_long_as_the_row():
    for beta, eta in ((0.5, 0.5), (1.0, 0.1)):
        for i in (20, 200):
            found = certified_window("rope", str(eta), str(beta), 1, row=i)
            j = found.width
            assert largest_error(np.zeros(i), j, beta) <= eta
            assert j == 1 or largest_error(np.zeros(i), j - 1, beta) > eta
        assert certified_window("rope", str(eta), str(beta), 1).width == math.inf


@pytest.mark.parametrize(
    ("name", "options", "error", "width"),
    [
        ("window", {"w": 20}, "1/10", 19),
        ("nope", {"row": 20}, "1/10", 19),
        ("rope", {"row": 20}, "1/10", 19),
        ("rope", {"row": 21}, "1/10", 20),
        ("fox", {"gate": "1/2"}, "1/16", 5),
        ("stick_breaking", {}, "1/8", 3),
        ("stick_breaking", {}, "1/9", 4),
    ],
)
def test_without_content_an_error_may_equal_its_budget(name, options, error, width):
    """Then sums and shares are rational, and compared as such."""
    own = {"w": options["w"]} if "w" in options else {}
    asked = {k: v for k, v in options.items() if k not in own}
    assert certified_window(encoding(name, **own), error, 0, 1, **asked).width == width


def test_logits_that_grow_need_windows_that_grow(refusal):
    widths = []
    for i in (64, 256, 1024):
        found = certified_window("-n/4", "1/10", 1, 1, row=i, temper="1/4")
        scaled = math.log(i) / 4
        p = -np.arange(i) / 4
        bound = [largest_error(p, j, scaled) for j in (found.width, found.width - 1)]
        assert bound[0] <= 0.1 * (1 + 1e-9) < bound[1] * (1 + 1e-6)
        widths.append(found.width)
    assert widths[0] < widths[1] < widths[2]
    m, c, eta = 0.25, 0.5, 0.1 / 1.9  # the closed form for ALiBi
    i = 1024
    closed = math.log((eta + i**c) / (eta + math.exp(-m * i) * i**c)) / m
    assert widths[2] == math.ceil(closed)
    refusal("give row", certified_window, "-n", "1/10", 1, 1, temper=1)


@pytest.mark.parametrize(
    ("name", "options", "rule", "claim"),
    [
        ("-n/2", {}, "window", "15 keys are enough, and necessary"),
        ("-n/2", {"error": 2}, "window", "one key is enough"),
        ("-log(1+n)", {}, "window", "there is none"),
        (
            "rope",
            {"error": "1/10", "row": 1000},
            "bounded logits",
            "993 keys are enough in a row of 1000, and necessary",
        ),
        (
            "stick_breaking",
            {"error": "1/10"},
            "stick breaking",
            "8 keys are enough, and necessary in long rows",
        ),
    ],
)
def test_the_proof_of_a_window_says_how_many_keys_are_enough(name, options, rule, claim):
    found = certified_window(name, **{"error": "1/100"} | options)
    assert (found.proof.steps[0].rule, found.proof.claim) == (rule, claim)
    assert {found.subject, window_error(name, 9, 1, 1).subject} == {encoding(name).name}


@pytest.mark.parametrize(("temper", "scale"), [(None, 1), ("1/4", 0.25), (2, 2)])
def test_a_scalable_softmax_scales_by_the_logarithm_of_the_row(temper, scale):
    """Without a number the scale is log i itself."""
    i, beta, eta = 64, 0.25, 1.9
    found = certified_window("ssmax", "19/10", "1/4", 1, row=i, temper=temper).width
    errors = [largest_error(np.zeros(i), j, beta * scale * math.log(i)) for j in (found, found - 1)]
    assert errors[0] <= eta < errors[1]


def test_a_budget_of_twice_the_values_is_met_by_one_key():
    for name, wide in (("rope", 64), ("fire", None)):
        assert certified_window(name, 6, 1, 3, row=64).width == 1
        assert certified_window(name, 6, 1, 3).width == 1
        assert certified_window(name, 5, 3, 3, row=64).width == wide
        assert certified_window(name, 5, 3, 3).width == math.inf
    least = str(certified_window("rope", "1/10", 1, 1).reason)
    assert "in rows of 8.389 j keys and more" in least  # 1 + e^2
    learned = certified_window("fire", 5, 3, 3, row=64).reason
    assert (learned.code, "is learned" in str(learned)) == ("missing_bound", True)


def test_gates_below_one_are_an_alibi():
    """The bound of the mass outside is `gated_ratio` of theory/formal/GatedDecay.v."""
    gamma, found = 0.8, certified_window("fox", "1/10", 1, 1, gate="4/5").width
    alibi = [
        2 * r / (r + math.exp(-2)) for r in (gamma**j / (1 - gamma**j) for j in (found, found - 1))
    ]
    assert alibi[0] <= 0.1 < alibi[1]
    assert certified_window("fox", "1/10", 1, 1, gate=1).width == math.inf
    assert certified_window("fox", "1/10", 1, 1).reason.code == "missing_bound"


def test_stick_breaking_uses_up_the_stick():
    """By `stick_window_error` of theory/formal/StickBreaking.v, with values of norm 1."""
    assert certified_window("stick_breaking", "99/100", 1, 1).width == 1
    assert certified_window("stick_breaking", 3, 1, 3).width == 1
    found = certified_window("stick_breaking", "1/10", 1, 1).width
    survive = 1 / (1 + math.exp(-1))
    assert survive**found <= 0.1 < survive ** (found - 1)


def test_on_average_the_leak_bounds_from_below():
    """Over all orders of a row's logits, of any size; with equality without a bias."""
    orders = [list(order) for order in itertools.permutations(range(5))]
    for bias in ("-n/2", "-2*log(1+n)", "0*n"):
        for scale in (0.5, 3.0, 20.0):
            x = RNG.normal(scale=scale, size=5)
            p = encoding(bias).bias(np.arange(5))[0]
            for width in range(1, 5):
                prior = leak(bias, width, 5).value
                mass = np.mean([softmax(x[order] + p)[width:].sum() for order in orders])
                assert mass >= prior * (1 - 1e-12)
                assert bias != "0*n" or mass == pytest.approx(prior)
    rising = [softmax(np.array([1.0, -1.0])[o] + [0, 3])[1] for o in ([0, 1], [1, 0])]
    assert np.mean(rising) < softmax(np.array([0, 3.0]))[1]  # a bias that rises: below


def test_a_certificate_certifies_a_strong_window():
    q, k = np.eye(4)[np.zeros((2, 50), int)]  # equal keys: every logit is the bound
    k[0] *= 30  # a sink that all queries see
    strong = window_certificate(q, k, window=10, sinks=1, error="1/10", scale=1)
    assert strong.share == 1 and strong.bound.max() < 1e-9
    assert window_certificate(q, k, window=10, sinks=0, error="1/10", scale=1).share == 0


@pytest.mark.parametrize("window", [None, 1, 3, 8])
@pytest.mark.parametrize("bca", [None, 1, 4])
@pytest.mark.parametrize("sinks", [0, 2])
def test_a_mask_is_all_that_is_set(window, bca, sinks):
    kept = sinks if window else 0
    mask, pairs = Mask(window, bca, kept), list(itertools.product(range(20), range(20)))

    def seen(i, j, width):
        near = window is None or i - j < window or j < kept
        return j <= i and near and i - j < width and (bca is None or j // bca >= i // bca - 1)

    for width in (None, 2, 8, 30):
        inside = mask.within(width)
        assert [inside.sees(*p) for p in pairs] == [seen(*p, width or 20) for p in pairs]
    assert kept or all(
        mask.first(i) == min(j for j in range(20) if seen(i, j, 20)) for i in range(20)
    )
