from fractions import Fraction

import numpy as np
import pytest
import torch

from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding, encodings
from farfield.validation.harness.mechanism import Turn
from farfield.validation.harness.model import Rotation, sinusoid
from farfield.validation.harness.positional import FixedBias, LearnedBias, additive_bias

LENGTH = 150
FIXED = [name for name in encodings() if (e := encoding(name)).biases and not e.free]
LEARNED = {
    "kerple_log": encoding("kerple_log"),
    "kerple_power": encoding("kerple_power"),
    "t5": encoding("t5"),
    "t5_scaled": encoding("t5", dialect="scaled", buckets=8, max_distance=20),
    "bam": encoding("bam"),
    "formula": encoding("-a*log(1+n) - Piecewise((b*n, n < 9), (9*b, True)) + sin(c*n)/10"),
    "per head": encoding("-a*n", heads=8),
    "half fixed": encoding("kerple_log", r2=[1, 2, 3, 4, 5, 6, 7, 8]),
}


def learned(e, seed=0, heads=8):
    torch.manual_seed(seed)
    return LearnedBias(e, heads).double()


@pytest.mark.parametrize("name", FIXED)
def test_fixed_bias_is_the_table(name):
    e = encoding(name)
    bias = additive_bias(e, 8)
    assert torch.equal(bias(40), torch.from_numpy(e.bias(np.arange(40))))
    assert torch.equal(bias(LENGTH)[:, :40], bias(40))
    assert isinstance(bias, FixedBias)


@pytest.mark.parametrize("name", LEARNED)
def test_learned_bias_is_the_same_formula(name):
    """Put the drawn values into the formula and tabulate it: the two views agree."""
    e = LEARNED[name]
    bias = learned(e)
    found = bias(LENGTH).detach().numpy()
    assert found.shape == (8, LENGTH)
    drawn = {n: bias.values[n].tolist() for n in bias.values}
    for h in range(8):
        formula = e.head(h + 1 if e.num_heads > 1 else 1)
        values = {p.symbol: Fraction(drawn[p.name][h]) for p in e.free}
        expected = encoding(formula.subs(values)).bias(np.arange(LENGTH))[0]
        np.testing.assert_allclose(found[h], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", LEARNED)
def test_gradients_of_learned_biases(name):
    bias = learned(LEARNED[name], heads=8)
    names = [n for n in bias.values if bias.values[n].requires_grad]
    for n in names:  # away from the clamps, where the formula is differentiable on both sides
        bias.values[n].data.uniform_(0.3, 0.9)

    def by_values(*values):
        return torch.func.functional_call(
            bias, {f"values.{n}": v for n, v in zip(names, values, strict=True)}, (7,)
        )

    values = tuple(bias.values[n].detach().clone().requires_grad_() for n in names)
    if name != "bam":  # |n - mu|: torch.where of a kink is tested by value only
        assert torch.autograd.gradcheck(by_values, values)
    gradients = torch.autograd.grad(by_values(*values).square().sum(), values)
    assert all(torch.isfinite(g).all() for g in gradients)
    assert all((g != 0).any() for g in gradients[:4])


def test_every_bucket_gathers_its_distances():
    """The gradient of the sum of a T5 bias counts the distances of each bucket."""
    bias = learned(encoding("t5"), heads=1)
    bias(128).sum().backward()
    counts = [int(bias.values[f"b{k}"].grad) for k in range(32)]
    starts = [*range(16), 16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113, 128]
    assert counts == np.diff(starts).tolist()


def test_projection_to_clamps_and_domains():
    bias = learned(encoding("kerple_power"))
    bias.values["r1"].data.fill_(-5)
    bias.values["r2"].data.fill_(9)
    bias.project()
    assert bias.values["r1"].tolist() == [0.01] * 8
    assert bias.values["r2"].tolist() == [2.0] * 8
    negative = learned(encoding("c*n", assumptions={"c": "negative"}))
    assert (negative.values["c"] < 0).all()
    negative.values["c"].data.fill_(1)
    negative.project()
    assert (negative.values["c"] < 0).all()


def test_each_head_has_its_own_values_in_the_reference_interval():
    values = learned(encoding("kerple_log"), heads=64).values
    assert len(set(values["r1"].tolist())) == 64
    assert 1 < values["r1"].max() <= 2 and values["r2"].max() <= 1


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("log(n)", "no real number at distance 0"),
        ("where(n<1,-oo,-n)", "-inf at distance 0"),
        ("exp(n)**30", "inf at distance"),
        ("1/(n-3)", "at distance 3"),
    ],
)
def test_a_bias_that_no_model_can_take(formula, message):
    with pytest.raises(InputError, match=message):
        FixedBias(encoding(formula))(40)


def test_what_cannot_be_learned():
    with pytest.raises(InputError, match="m is not learned and has no value"):
        additive_bias(encoding("alibi_log"), 8)
    with pytest.raises(InputError, match=r"LambertW.*has no differentiable form"):
        additive_bias(encoding("-a*LambertW(n)"), 8)(4)


@pytest.mark.parametrize("decay", [False, True])
def test_rotated_scores_depend_on_the_distance_alone(decay):
    size, length = 8, 40
    query, key = torch.randn(2, size, dtype=torch.float64)
    rotation = Rotation(size, Turn(decay=decay))
    rotation.reach(length, torch.device("cpu"))
    q, k = rotation(*(x.expand(1, 1, length, size) for x in (query, key)))
    scores = q[0, 0] @ k[0, 0].T
    for distance in (0, 1, 17):
        along = scores.diagonal(-distance)
        torch.testing.assert_close(along, along[:1].expand(length - distance))


@pytest.mark.parametrize("decay", [False, True])
def test_rotated_score_of_equal_pairs_is_the_surrogate(decay):
    """[S, Eq. 10, Algorithm 1]: one pair of (1, 0) for each frequency gives the sum g[n]."""
    size, length = 16, 60
    ones = torch.cat([torch.ones(size // 2), torch.zeros(size // 2)]).double()
    rotation = Rotation(size, Turn(decay=decay))
    rotation.reach(length, torch.device("cpu"))
    q, k = rotation(*(ones.expand(1, 1, length, size),) * 2)
    name = "xpos_surrogate" if decay else "rope_surrogate"
    g = encoding(name, d=size, a=1).bias(range(length))[0]
    np.testing.assert_allclose((q[0, 0] @ k[0, 0].T)[-1].flip(-1), g, atol=1e-12)


def test_sinusoid_has_the_wanted_size():
    assert sinusoid(50, 16, 0.02).square().mean().sqrt() == pytest.approx(0.02)
