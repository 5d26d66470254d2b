"""Tables of the words in formulas that no record spells: constants, library names, ambiguous ones.

Constants, comparisons and connectives; and what libraries call what the grammar can already write,
each a formula in its arguments. Its body is read by the grammar itself, so that every guard applies
to it. A name that libraries use for different things is `AMBIGUOUS`: it is refused, with what it
may mean.
"""

from __future__ import annotations

import sympy
from sympy import Basic, Expr, S

from farfield.theory.relations import SIX

CONSTANTS: dict[str, Expr] = {
    "pi": S.Pi,
    "E": S.Exp1,
    "EulerGamma": S.EulerGamma,
    "GoldenRatio": S.GoldenRatio,
    "Catalan": S.Catalan,
    "e": S.Exp1,
    "oo": S.Infinity,
    "inf": S.Infinity,
    "infty": S.Infinity,
    "Infinity": S.Infinity,
}
CONDITIONS: dict[str, type[Basic]] = {
    **{relation.name: relation.kind for relation in SIX},
    "And": sympy.And,
    "Or": sympy.Or,
    "Not": sympy.Not,
}
CALLED = {
    "Piecewise",
    "Sum",
    "Product",
    "Indicator",
    "True",
    "False",
    "and",
    "or",
    "not",
    *CONDITIONS,
}
RESERVED = {*CONSTANTS, *CALLED, "I"}
SYNONYMS: dict[str, str] = {  # head: body
    "ln(x)": "log(x)",
    "log1p(x)": "log(1 + x)",
    "log2(x)": "log(x)/log(2)",
    "log10(x)": "log(x)/log(10)",
    "log_2(x)": "log(x)/log(2)",
    "log_10(x)": "log(x)/log(10)",
    "exp2(x)": "2**x",
    "expm1(x)": "exp(x) - 1",
    "sqrt(x)": "x**(1/2)",
    "cbrt(x)": "x**(1/3)",
    "rsqrt(x)": "1/x**(1/2)",
    "sech(x)": "1/cosh(x)",
    "csch(x)": "1/sinh(x)",
    "acoth(x)": "atanh(1/x)",
    "square(x)": "x**2",
    "reciprocal(x)": "1/x",
    "power(x, y)": "x**y",
    "pow(x, y)": "x**y",
    "float_power(x, y)": "x**y",
    "add(x, y)": "x + y",
    "subtract(x, y)": "x - y",
    "multiply(x, y)": "x*y",
    "divide(x, y)": "x/y",
    "true_divide(x, y)": "x/y",
    "floor_divide(x, y)": "x//y",
    "div(x, y)": "x/y",
    "mul(x, y)": "x*y",
    "clamp_min(x, y)": "Max(x, y)",
    "clamp_max(x, y)": "Min(x, y)",
    "silu(x)": "x/(1 + exp(-x))",
    "elu(x)": "Max(x, 0) + Min(exp(x) - 1, 0)",
    "negative(x)": "-x",
    "neg(x)": "-x",
    "positive(x)": "x",
    "trunc(x)": "sign(x)*floor(Abs(x))",
    "fix(x)": "sign(x)*floor(Abs(x))",
    "hypot(x, y)": "(x**2 + y**2)**(1/2)",
    "relu(x)": "Max(x, 0)",
    "ReLU(x)": "Max(x, 0)",
    "sigmoid(x)": "1/(1 + exp(-x))",
    "logistic(x)": "1/(1 + exp(-x))",
    "expit(x)": "1/(1 + exp(-x))",
    "softplus(x)": "log(1 + exp(x))",
    "logsigmoid(x)": "-log(1 + exp(-x))",
    "log_sigmoid(x)": "-log(1 + exp(-x))",
    "log_expit(x)": "-log(1 + exp(-x))",
    "logit(x)": "log(x) - log(1 - x)",
    "logaddexp(x, y)": "log(exp(x) + exp(y))",
    "logaddexp2(x, y)": "log(2**x + 2**y)/log(2)",
    "beta(x, y)": "gamma(x)*gamma(y)/gamma(x + y)",
}
AMBIGUOUS: dict[str, str] = {
    "sinc": "sin(x)/x or sin(pi*x)/(pi*x)",
    "round": "floor(x + 1/2), or the even neighbour of a half",
    "rint": "floor(x + 1/2), or the even neighbour of a half",
    "fmod": "Mod(x, y) for x >= 0; below zero libraries differ",
    "lg": "log(x)/log(2) or log(x)/log(10)",
    "gelu": "x*(1 + erf(x/sqrt(2)))/2, or its approximation by tanh",
}
