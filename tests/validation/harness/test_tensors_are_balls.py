"""A learned bias on tensors, and its gradients, are the formula's own: to 1e-5 and 1e-4."""

import random

import pytest
import sympy
import torch

from farfield.theory.answers.errors import InputError
from farfield.theory.encodings import encoding
from farfield.theory.functions.nodes import n
from farfield.theory.values import enclose
from farfield.validation.harness.positional import LearnedBias, _row_and_slopes, evaluate

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
    "-a*log(besseli(0,{x}))",
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
DISTANCES = (0, 1, 2, 7, 88, 100, 200, 711, 1023, 5000, 2**20)


def errors(text, draw):
    """Where rows, computed in float64 from parameters in float32, are off."""
    formula = encoding(text).head(1)
    symbols = sorted(formula.free_symbols - {n}, key=str)
    values = [torch.tensor([draw.uniform(0.2, 0.9)]) for _ in symbols]
    at = {s: sympy.Rational(v.item()) for s, v in zip(symbols, values, strict=True)}

    def by_tensors(distance, *parameters):
        return evaluate(formula, {n: distance, **dict(zip(symbols, parameters, strict=True))})

    row, *slopes = _row_and_slopes(by_tensors, torch.tensor(DISTANCES).double(), values)
    right, found = encoding(formula.xreplace(at)).bias(DISTANCES)[0], []
    for k, distance in enumerate(DISTANCES):
        shown = row[0, k].item()
        if not abs(shown - right[k]) <= 1e-5 * max(1, abs(right[k])):
            found.append(("value", distance, shown, right[k]))
        for s, slope in zip(symbols, slopes, strict=True):
            ball = enclose(sympy.diff(formula, s), 300, {n: distance, **at})
            exact = slope[0, k].item() if ball is None else float(ball.mid())
            if not abs(slope[0, k].item() - exact) <= 1e-4 * max(1, abs(exact)):
                found.append((s, distance, slope[0, k].item(), exact))
    return found


@pytest.mark.parametrize(("count", "seed"), [(25, 1), pytest.param(100, 2, marks=pytest.mark.slow)])
def test_values_and_gradients_are_the_formulas_own(count, seed):
    draw = random.Random(seed)
    texts = [draw.choice(SHAPES).format(x=draw.choice(ARGUMENTS)) for _ in range(count)]
    assert not {text: bad for text in texts if (bad := errors(text, draw))}


@pytest.mark.parametrize(
    "text",
    [
        "-(n/a)^b",
        "-log(1+(n/a)^b)",
        "-a*softplus(n-b)",
        "-a*log(cosh(b*n))",
        "log(a*exp(-b*n)+(1-a)*exp(-c*n))",
    ],
)
def test_learned_biases_train_from_the_first_step(text):
    torch.manual_seed(0)
    bias = LearnedBias(encoding(text), 4)
    row = bias(1024)
    row.sum().backward()
    assert row.isfinite().all() and row[:, -1].max() < -1
    assert all(v.grad.isfinite().all() and (v.grad != 0).all() for v in bias.values.values())


def test_what_tensors_do_not_hold_is_refused_with_its_distance():
    with pytest.raises(InputError, match=r"at distance 1\d .*accepted are"):
        LearnedBias(encoding("a*log(1-tanh(n)^2)"), 1)(64)
    with pytest.raises(InputError, match="gradient at distance 0 that is not finite"):
        LearnedBias(encoding("-acos(1/(1+a*n))"), 1)(8)
