"""What people type or paste is read as they mean it, or refused; never as something else."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy
import torch

from farfield import InputError, encoding
from farfield.theory.encodings.traced_values import _SAME, FUNCTIONS
from farfield.theory.formula.grammar import read
from farfield.theory.formula.sympy_expressions import as_expression
from farfield.theory.functions.record import SPELLINGS

WRITTEN = r"""
-log1p(n)  ->  -log(1+n)
-np.log1p(n)  ->  -log(1+n)
-numpy.log(1 + n)  ->  -log(1+n)
-math.log(1+n)  ->  -log(1+n)
-torch.log1p(n)  ->  -log(1+n)
-jnp.sqrt(n)  ->  -sqrt(n)
-sp.log(1+n)**2  ->  -log(1+n)**2
-log2(1+n)  ->  -log(1+n)/log(2)
-log10(1 + n)  ->  -log(1+n)/log(10)
-expm1(n)  ->  1-exp(n)
-relu(n - 16)  ->  -Max(n-16,0)
-n-softplus(0)  ->  -n-log(2)
log(sigmoid(-n))  ->  log(1/(1+exp(n)))
-softplus(n)  ->  -log(1+exp(n))
-clip(n, 0, 128)  ->  -Min(Max(n,0),128)
-clamp(n, max=64)  ->  -Min(n,64)
torch.clamp(-n, min=-64)  ->  Max(-n,-64)
where(n < 64, 0, -oo)  ->  Piecewise((0, n<64), (-oo, True))
np.where(n<=16, 0, -log(n))  ->  Piecewise((0, n<=16), (-log(n), True))
-(n % 64)  ->  -Mod(n,64)
-log(n!)  ->  -log(factorial(n))
-n!/n  ->  -factorial(n)/n
2log(1+n)  ->  2*log(1+n)
-3n  ->  -3*n
-2 log(1+n)  ->  -2*log(1+n)
-0.5n - 2 log(1+n)  ->  -n/2-2*log(1+n)
-n^2  ->  -n**2
-n²  ->  -n**2
-½n  ->  -n/2
-½ n  ->  -n/2
-√n  ->  -sqrt(n)
-√(1+n)  ->  -sqrt(1+n)
-α·log(1+β·n)  ->  -alpha*log(1+beta*n)
-λn  ->  -lambda*n
-|i-j|  ->  -n
-|i - j|/8  ->  -n/8
-(i-j)  ->  -n
-0.1*(i - j)  ->  -n/10
-log(1+i-j)  ->  -log(1+n)
-log(1+|i-j|)  ->  -log(1+n)
-m*|j-i|  ->  -m*n
p(n) = -log(1+n)  ->  -log(1+n)
b(n) = -n/8  ->  -n/8
f(x) = -log(1+x)  ->  -log(1+n)
p(t) = -t/2  ->  -n/2
-n if n < 64 else -64 - log(n)  ->  Piecewise((-n, n<64), (-64-log(n), True))
0 if n < 64 else -oo  ->  Piecewise((0, n<64), (-oo, True))
-\log(1+n)  ->  -log(1+n)
$-\log(1+n)$  ->  -log(1+n)
$$-\frac{n}{8}$$  ->  -n/8
-\frac{1}{2}\log(1+n)  ->  -log(1+n)/2
-r_1\log\left(1+r_2 n\right)  ->  -r1*log(1+r2*n)
-\sqrt{n}  ->  -sqrt(n)
-\sqrt{1+n}  ->  -sqrt(1+n)
-n^{1.5}  ->  -n**(3/2)
-\ln(1+n)  ->  -log(1+n)
-\ln\left(1+n\right)^2  ->  -log(1+n)**2
-2\cdot n  ->  -2*n
-\alpha n^{\beta}  ->  -alpha*n**beta
-\beta\log(1+\gamma n)  ->  -beta*log(1+gamma*n)
-gamma*n  ->  -gamma*n
-beta*log(1+n)  ->  -beta*log(1+n)
-lambda*n  ->  -lambda*n
-zeta*n  ->  -zeta*n
-n*ln(2)  ->  -n*log(2)
-e^(n/8)  ->  -exp(n/8)
-log^2(1+n)  ->  -log(1+n)**2
-(log(1+n))^2  ->  -log(1+n)**2
lambda n: -np.log1p(n)  ->  -log(1+n)
lambda x: -x/8  ->  -n/8
-1e-3 n  ->  -n/1000
-n**.5  ->  -sqrt(n)
−log(1+n)  ->  -log(1+n)
-4/h * n  ->  -4*n/h
-2^(-3) n  ->  -n/8
-2^{-3} n  ->  -n/8
float("-inf") if n >= 64 else 0  ->  Piecewise((-oo, n>=64),(0, True))
-np.inf if n >= 64 else 0  ->  Piecewise((-oo, n>=64),(0, True))
-np.floor(n/8)  ->  -floor(n/8)
-⌊n/8⌋  ->  -floor(n/8)
-(n//8)  ->  -floor(n/8)
(-n)//8  ->  floor(-n/8)
-min(n, 64)  ->  -Min(n,64)
-np.minimum(n, 64)  ->  -Min(n,64)
-max(0, n-16)  ->  -Max(0,n-16)
-abs(n)  ->  -n
-np.abs(n)/8  ->  -n/8
-n.log()  ->  -log(n)
-(1+n).log()  ->  -log(1+n)
-(n+1).float().log()  ->  -log(1+n)
\begin{cases} 0 & n < 9 \\ -\infty & \text{otherwise}\end{cases}  ->  where(n<9, 0, -oo)
\begin{cases} -n & \text{if } n \le 8 \\ -8 & \text{else} \end{cases}  ->  where(n<=8, -n, -8)
-n \log n  ->  -n*log(n)
-n log n  ->  -n*log(n)
-\tfrac12 n  ->  -n/2
\text{bias}(n) = -n  ->  -n
p_n = -\log(1+n)  ->  -log(1+n)
b_{i-j} = -|i-j|  ->  -n
-\log{(1+n)}  ->  -log(1+n)
-\log_2(1+n)  ->  -log(1+n)/log(2)
-\exp(-n)  ->  -exp(-n)
-e^{-n/8}  ->  -exp(-n/8)
-\lvert i-j\rvert  ->  -n
-\left|i-j\right| / 8  ->  -n/8
-log(1 + n/8)  # KERPLE  ->  -log(1+n/8)
-n*2**-8  ->  -n/256
-1.5*log(1+n) + cos(n)  ->  -3*log(1+n)/2+cos(n)
-log(1+n),  ->  -log(1+n)
"-log(1+n)"  ->  -log(1+n)
−½·n²  ->  -n**2/2
-n^{2}/(2\sigma^{2})  ->  -n**2/(2*sigma**2)
-\log\log(3+n)  ->  -log(log(3+n))
-log(n)^2  ->  -log(n)**2
-log n - 2 log log n  ->  -log(n)-2*log(log(n))
-exp(−n)  ->  -exp(-n)
-5log(n+1)  ->  -5*log(1+n)
- n / 2 ** h  ->  -n/2**h
-sqrt(n+1) + 1  ->  1-sqrt(n+1)
-1/2 n  ->  -n/2
-1e9*(n >= 64)  ->  -10**9*Piecewise((1, n>=64),(0, True))
\Gamma(n+1)  ->  gamma(n+1)
def f(n): return -np.log1p(n)  ->  -log(1+n)
B_{i,j} = -m\,|i-j|  ->  -m*n
-m(i-j)  ->  -m*n
-β(1+n)  ->  -beta*(1+n)
-n(n+1)  ->  -n*(n+1)
-2π(n+1)  ->  -2*pi*(n+1)
-log₂(1+n)  ->  -log(1+n)/log(2)
"""


@pytest.mark.parametrize("line", WRITTEN.strip().splitlines())
def test_is_read_as_meant(line: str) -> None:
    written, meant = line.split("  ->  ")
    assert read(written) == read(meant)


def test_numbers_and_functions_of_sympy_are_read_too() -> None:
    assert encoding(np.log1p).formula == encoding(lambda n: sympy.log(1 + n)).formula
    assert encoding(lambda n: n - sympy.log(1 + n)).origin == "traced"
    half = torch.tensor(-0.5)
    assert as_expression(half) == sympy.Rational(-1, 2)


ARGUMENTS: list[Callable[..., Any]] = [
    lambda n, t: (-n).add(n, alpha=0.5),
    lambda n, t: t.add(-n, n, alpha=0.5),
    lambda n, t: t.sub(0 * n, n, alpha=0.125),
    lambda n, t: t.rsub(n, 0 * n, alpha=0.125),
    lambda n, t: t.logit(t.sigmoid(-n / 8), eps=1e-6),
    lambda n, t: -t.nn.functional.softplus(n / 8 - 2, beta=0.25),
    lambda n, t: -t.div(n, 8, rounding_mode="floor"),
    lambda n, t: -(4 * t.log(1 + n)).type_as(t.tensor(1)),
    lambda n, t: -(n / 2).type(t.LongTensor),
    lambda n, t: -(n / 2).to(dtype=t.uint8),
    lambda n, t: -(n - n.min()) / 8,
    lambda n, t: n.mul_(-0.5),
    lambda n, t: t.zeros(len(n)).add_(-n),
]


@pytest.mark.parametrize("f", ARGUMENTS)
def test_an_argument_that_the_grammar_does_not_have_is_never_dropped(f: Callable[..., Any]) -> None:
    found = encoding(lambda n: f(n, torch))
    values = f(torch.arange(64, dtype=torch.float64), torch).double().numpy()
    assert np.allclose(found.bias(range(64))[0], values, rtol=1e-5)


def test_a_function_of_the_whole_row_is_no_bias_by_distance(refusal) -> None:
    assert encoding(lambda d: -8 * d / d.max()).mechanism == "row_dependent"
    assert encoding(lambda d: -8 * d / np.max(np.asarray(d))).mechanism == "row_dependent"
    assert encoding(lambda d: d.max() - d).resembles == "-n"  # a constant a row is no bias
    refusal("", encoding, lambda d: -torch.max(d, dim=0))


KEYWORDS: list[tuple[str, Any]] = [
    *(("alpha", 0.5), ("beta", 0.25), ("eps", 1e-6), ("threshold", 3), ("negative_slope", 0.1)),
    *(("approximate", "tanh"), ("decimals", 1), ("rounding_mode", "floor"), ("order", 2)),
    *(("axis", 0), ("dim", 0), ("keepdim", True), ("keepdims", True), ("initial", 9), ("n", 3)),
    *(("where", np.array(False)), ("out", np.zeros(3)), ("dtype", int), ("dtype", "int8")),
    *(("dtype", np.bool_), ("base", 2), ("weight", 0.5), ("value", 2), ("inplace", True)),
    *(("a_min", 5), ("max", 2), ("lower", 0.1), ("scale", 3), ("p", 2), ("dtype", np.float64)),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2, 3))])
def test_no_argument_by_name_is_dropped(seed: int) -> None:
    """Every function that is traced, as NumPy's, torch's and a method, with a name at random: it is
    refused, or the bias is what the library computes."""
    rng = np.random.default_rng(seed)
    named = sorted({*SPELLINGS, *FUNCTIONS, *_SAME, "rsub"})
    at, refused, kept = np.arange(1.0, 9.0), 0, 0
    for name in named:
        ours = [getattr(place, name, None) for place in (np, torch, torch.nn.functional)]
        for call in (*filter(callable, ours), None):
            key, value = KEYWORDS[rng.integers(len(KEYWORDS))]
            more = (2.0,) * (SPELLINGS[name].least - 1 if name in SPELLINGS else 0)

            def f(n: Any, call: Any = call, more: Any = more, name: str = name) -> Any:
                how = {key: value}  # noqa: B023
                return getattr(n, name)(*more, **how) if call is None else call(n, *more, **how)

            try:
                found = encoding(f)
            except InputError as error:
                assert "\n" not in str(error)
                refused += 1
                continue
            of_numpy = hasattr(at, name) if call is None else call is ours[0]
            try:
                real = np.asarray(f(at if of_numpy else torch.from_numpy(at)), float)
            except (TypeError, AttributeError, ValueError):  # no function of theirs takes that
                continue
            if found.mechanism != "bias" or real.shape != at.shape:
                continue  # a number for the whole row is a constant, which is no bias
            table, kept = found.bias(range(1, 9))[0], kept + 1
            finite = np.isfinite(real)
            np.testing.assert_allclose(table[finite], real[finite], err_msg=f"{name} {key}")
    assert refused > 200 and kept > 0


WITHOUT_A_BIAS: list[tuple[Callable[..., Any], str]] = [
    (lambda n: None, "gives NoneType, no real numbers"),
    (lambda n: 1 / 0 * n, "division by zero"),
    (lambda n: n.shape[0] * n, "depends on the positions"),
    (lambda n: np.log(-n), "gives NaN or inf"),
    (lambda n: np.random.rand(len(n)), "differs from call to call"),
    (lambda a, b, c, d, e, f: a, "takes 6 arguments"),
    (lambda n: (lambda f: f(f))(lambda f: f(f)), "recursion"),
]


@pytest.mark.parametrize(("f", "why"), WITHOUT_A_BIAS)
def test_a_function_without_a_bias_is_refused_in_one_line(
    refusal, f: Callable[..., Any], why: str
) -> None:
    assert len(refusal(why, encoding, f)) < 800


@pytest.mark.parametrize("word", ["relu", "log", "softplus"])
def test_a_function_alone_is_no_encoding(refusal, word: str) -> None:
    refusal(rf"write {word}\(n\)", encoding, word)


def test_what_is_read_otherwise_than_typed_is_shown_as_read() -> None:
    assert encoding(r"-\log(1+n)").name == "-log(n + 1)"
    assert encoding(lambda n: -n / 8).name == "-n/8"
    assert encoding("-n/8").name == "-n/8"
