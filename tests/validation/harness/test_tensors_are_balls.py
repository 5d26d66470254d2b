"""A learned bias on tensors, and its gradients, are the formula's own: to 1e-5 and 1e-4."""

import math
import random

import pytest
import sympy
import torch

from farfield.theory.encodings import encoding
from farfield.theory.formula.bounded_nodes import valued
from farfield.theory.functions.nodes import n
from farfield.theory.values import enclose
from farfield.validation.harness.attention import table_score
from farfield.validation.harness.bias import _TENSORS, FixedBias, LearnedBias, evaluate

SHAPES = (
    "-({x})^b",
    "-log(1+({x})^b)",
    "-a*softplus({x}-b)",
    "-a*log(cosh({x}))",
    "log(a*exp(-{x})+(1-a)*exp(-b*n))",
    "-a*log(1+exp({x}))",
    "-a*log(1+b*{x})",
    "-sqrt(b*({x}))",
    "-a*sqrt(1+({x})^2)",
    "-a*loggamma({x}+b)",
    "-b*log(gamma({x}+1))",
    "-a*log(binomial(2*({x}),{x}))",
    "log(sigmoid(b-{x}))",
    "-a/(1+exp(b-{x}))",
    "-a*tanh({x})",
    "-a*atan({x})-b*log(1+n)",
    "-logaddexp({x},b)",
    "-b*log(1+({x})^8)",
    "log(1-tanh({x}))*b",
    "log(erfc({x}))*a",
    "-b*(1-exp(-({x})))",
    "-a*log(2^({x})+b)",
    "-n/(a+({x})^b)",
    "-a*asinh({x})",
    "-Min({x},b*n,200)",
)
ARGUMENTS = ("n", "n/a", "a*n", "sqrt(n)", "a*log(1+n)", "n^b")
BITS = (300, 6000)  # of balls: where 1 - tanh(x) cancels, as many as it loses
DISTANCES = (0, 1, 2, 7, 88, 100, 200, 711, 1023, 5000, 2**20)


def errors(text, draw):
    """Where values and slopes by tensors, of parameters in float32, are off."""
    formula = encoding(text).head(1)
    symbols = sorted(formula.free_symbols - {n}, key=str)
    at = {s: torch.tensor(draw.uniform(0.2, 0.9)).item() for s in symbols}
    exact = {s: sympy.Rational(v) for s, v in at.items()}
    distance = torch.tensor(DISTANCES).double()
    leaves = [torch.full_like(distance, at[s]).requires_grad_() for s in symbols]  # one a distance
    row = evaluate(formula, {n: distance, **dict(zip(symbols, leaves, strict=True))})
    slopes = torch.autograd.grad(row.sum(), leaves)
    right, off = encoding(valued(formula, exact)).bias(DISTANCES)[0], []
    for k, place in enumerate(DISTANCES):
        shown = row[k].item()
        if not abs(shown - right[k]) <= 1e-5 * max(1, abs(right[k])):
            off.append(("value", place, shown, right[k]))
        for s, slope in zip(symbols, slopes, strict=True):
            balls = (enclose(sympy.diff(formula, s), bits, {n: place, **exact}) for bits in BITS)
            ball = next((x for x in balls if x is not None and x.rel_accuracy_bits() > 30), None)
            true = slope[k].item() if ball is None else float(ball.mid())
            if not abs(slope[k].item() - true) <= 1e-4 * max(1, abs(true)):
                off.append((s, place, slope[k].item(), true))
    return off


def failures(count, seed):
    """Formulas of a generator that are off, with where."""
    draw = random.Random(seed)
    texts = [draw.choice(SHAPES).format(x=draw.choice(ARGUMENTS)) for _ in range(count)]
    return {text: off for text in texts if (off := errors(text, draw))}


@pytest.mark.parametrize(("count", "seed"), [(20, 1), pytest.param(100, 2, marks=pytest.mark.slow)])
def test_values_and_gradients_are_the_formulas_own(count, seed):
    assert not failures(count, seed)


@pytest.mark.parametrize(
    "text",
    [
        "-(n/a)^b",
        "-log(1+(n/a)^b)",
        "-a*softplus(n-b)",
        "-a*log(cosh(b*n))",
        "log(a*exp(-b*n)+(1-a)*exp(-c*n))",
        "log(a*exp(where(n<8,-b*n,-inf))+exp(where(n%4==0,-c*n,-inf)))",
    ],
)
def test_learned_biases_train_from_the_first_step(text):
    torch.manual_seed(0)
    bias = LearnedBias(encoding(text), 4)
    row = bias.table(1024)
    row[row > -torch.inf].sum().backward()
    assert not row.isnan().any() and row[:, -4].isfinite().all() and row[:, -1].max() < -1
    assert all(v.grad.isfinite().all() and (v.grad != 0).all() for v in bias.values.values())


def test_what_tensors_do_not_hold_is_refused_with_its_distance(refusal):
    for text, said in (
        ("a*log(1-tanh(n)^2)", r"at distance 1\d .*accepted are"),
        ("-a*lambertw(n)", "LambertW has no differentiable form here; accepted"),
        ("-acos(1/(1+a*n))", "gradient at distance 0 that is not finite"),
        ("-acos(1/(1+a*(n-3)^2))", "gradient at distance 3 that is not finite"),
    ):
        refusal(said, LearnedBias(encoding(text), 1).table, 64)


@pytest.mark.parametrize("exponent", [-1, 0.5, 1.5, 2, torch.tensor(0.5, requires_grad=True)])
def test_a_power_has_no_slope_at_zero(exponent):
    base = torch.tensor([0.0, 4.0], requires_grad=True)
    found, e = _TENSORS.xp.pow(base, exponent), torch.as_tensor(exponent).item()
    assert found.tolist() == [0.0 if e > 0 else math.inf, 4.0**e]
    found.sum().backward()
    assert base.grad.tolist() == [0.0, e * 4.0 ** (e - 1)]


def test_the_least_and_the_largest_of_a_tensor_and_a_number_keep_its_type():
    x, xp = torch.tensor([1.0, 3.0], dtype=torch.float64), _TENSORS.xp
    for pair in ((x, 2.0), (2.0, x)):
        assert (xp.minimum(*pair).tolist(), xp.maximum(*pair).tolist()) == ([1, 2], [2, 3])
        assert xp.minimum(*pair).dtype == xp.maximum(*pair).dtype == torch.float64


def test_each_head_has_a_formula_of_its_own():
    row = LearnedBias(encoding("[-a*n; -log(1+n)/a; -2*a*n; -3]"), 4)
    a = row.values["a"].detach()
    wanted = [-a[0], -math.log(2) / a[1], -2 * a[2], -3]
    assert row.table(2)[:, 1].tolist() == pytest.approx([float(x) for x in wanted])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("exp(exp(n))", "^the bias .* is inf at distance 7; a model takes finite values, and -oo"),
        ("where(n<1,-oo,0)", " is -inf at distance 0; "),
        ("where(n<3,exp(exp(n+7)),1/(n-5))", " has no value that 20,480 bits tell at distance 5; "),
    ],
)
def test_a_table_that_no_attention_takes_is_refused_at_its_first_entry(text, said, refusal):
    refusal(said, FixedBias(encoding(text)).table, 8)


def test_a_table_of_one_head_is_that_of_each():
    score = table_score(torch.tensor([[0.0, -1.0, -2.0]]))
    assert score(torch.tensor(0.5), *map(torch.tensor, (0, 3, 5, 4))) == -0.5
