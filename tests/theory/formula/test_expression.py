"""The reader of formulas: every feature of its grammar, every bad input it must refuse; domains."""

import pickle
import re

import mpmath
import pytest
import sympy

from farfield import check_convergence, encoding
from farfield.theory.formula.bounded_nodes import (
    MAX_DEPTH,
    MAX_LENGTH,
    MAX_TOKENS,
    TooLarge,
    rebuilt,
)
from farfield.theory.formula.grammar import read
from farfield.theory.formula.parameters import DOMAINS, interval, parameter, sign_domain
from farfield.theory.formula.sympy_expressions import as_expression
from farfield.theory.functions.nodes import n
from farfield.theory.values import enclose

R = sympy.Rational


K = sympy.Symbol("k", positive=True, integer=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-log(1+n)", -sympy.log(1 + n)),
        ("-ln(1+n)", -sympy.log(1 + n)),
        ("n^2", n**2),
        ("-n**2", -(n**2)),
        ("2^-n", 2**-n),
        ("n**-1", 1 / n),
        ("2**3**2*n", 512 * n),
        ("-2**2*n", -4 * n),
        ("--n", n),
        ("+n", n),
        ("n/2/3", n / 6),
        ("n-1-2", n - 3),
        ("0.1*n", n / 10),
        ("1e-3*n", n / 1000),
        (".5*n", n / 2),
        ("3.*n", 3 * n),
        ("12E2*n", 1200 * n),
        ("|n-2|", sympy.Abs(n - 2)),
        ("|n|", n),
        ("Abs(n-2)", sympy.Abs(n - 2)),
        ("\u22122*n", -2 * n),
        ("2\u00d7n", 2 * n),
        ("2\u00b7n", 2 * n),
        ("\u03c0*n", sympy.pi * n),
        ("E*n+EulerGamma", sympy.E * n + sympy.EulerGamma),
        ("Catalan*n-GoldenRatio", sympy.Catalan * n - sympy.GoldenRatio),
        ("sqrt(n)", sympy.sqrt(n)),
        ("arctan(n)+atan(n)", 2 * sympy.atan(n)),
        ("digamma(n)", sympy.polygamma(0, n)),
        ("polygamma(2, n)", sympy.polygamma(2, n)),
        ("  - n  ", -n),
        ("\t-n\n", -n),
        ("Sum(k, (k, 1, 3))*n", 6 * n),
        ("Sum(k*n, (k, 3, 1))+n", n),
        ("log(n+2, n+3)", sympy.log(n + 2) / sympy.log(n + 3)),
        ("Heaviside(n+1)*n", n * sympy.Heaviside(n + 1, R(1, 2), evaluate=False)),
        (
            "Product(1-1/k^2, (k, 2, n))",
            sympy.exp(sympy.Sum(sympy.log(K - 1) + sympy.log(K + 1) - 2 * sympy.log(K), (K, 2, n))),
        ),
        (
            "where(~(n<3), n, 0)",
            sympy.Piecewise((n, sympy.Not(n < 3, evaluate=False)), (0, True), evaluate=False),
        ),
        ("Product(k^41-1, (k, 2, n))", sympy.exp(sympy.Sum(sympy.log(K**41 - 1), (K, 2, n)))),
        ("beta(Max(n, 2), 1)*beta(n)", read("beta(Max(n, 2), 1)") * parameter("beta") * n),
    ],
)
def test_reads(text, expected):
    assert read(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "sin(n)",
        "cos(n)",
        "tan(1/n)",
        "cot(n)",
        "sec(n)",
        "csc(n)",
        "asin(1/n)",
        "acos(1/n)",
        "atan(n)",
        "acot(n)",
        "sinh(n)",
        "cosh(n)",
        "tanh(n)",
        "coth(n)",
        "asinh(n)",
        "acosh(n+1)",
        "atanh(1/n)",
        "Abs(n-2)",
        "sign(n-2)",
        "floor(n/3)",
        "ceiling(n/3)",
        "frac(n/3)",
        "Min(n, 7)",
        "Max(n, 7)",
        "Mod(n, 7)",
        "Heaviside(n-3)",
        "Heaviside(n-3, 1)",
        "gamma(n)",
        "loggamma(n)",
        "digamma(n)",
        "polygamma(3, n)",
        "factorial(n)",
        "binomial(2*n, n)",
        "log(n, 2)",
        "cbrt(n)",
        "sech(n)",
        "acoth(n)",
        "Product(1 - 1/k**2, (k, 2, n))",
        "Product(k, (k, 1, 5))",
        "Sum(1/k, (k, n, 2*n))",
        "harmonic(n)",
        "LambertW(n)",
        "erf(n)",
        "erfc(n)",
        "exp(-n)",
        "Piecewise((n, n < 3), (2*n, n <= 5), (3*n, True))",
        "Piecewise((0, n < 3), (-oo, True))",
        "Sum(1/k, (k, 1, n))",
        "Piecewise((n, (n > 3) & (n < 9)), (0, True))",
        "Piecewise((n, 3 < n < 9), (0, True))",
        "Piecewise((n, And(n > 3, Not(Eq(n, 5)))), (n**2, Or(n < 2, n != 5)), (1, True))",
    ],
)
def test_reads_what_it_prints_and_evaluates_it(text):
    e = read(text)
    value = enclose(e, 64, {n: 7})
    assert value is not None or text.endswith("(-oo, True))")
    again = enclose(read(str(e)), 64, {n: 7})
    assert value is again is None or value.overlaps(again)


@pytest.mark.parametrize(
    ("text", "at", "value"),
    [
        ("Piecewise((n, n < 3), (2*n, n <= 5), (3*n, True))", (2, 5, 6), (2, 10, 18)),
        ("Piecewise((1, 2 < n < 5), (0, True))", (2, 3, 5), (0, 1, 0)),
        ("Piecewise((1, n > 2 and n != 4), (0, True))", (3, 4, 5), (1, 0, 1)),
        ("where(n < 3 | n > 6 & n < 9, 1, 0)", (2, 3, 6, 7, 9), (1, 0, 0, 1, 0)),
        ("where(n < 2 or n == 4 or n > 6, 1, 0)", (1, 2, 4, 7), (1, 0, 1, 1)),
        ("where(not n < 3 and (n < 6 or n > 8), 1, 0)", (2, 3, 6, 9), (0, 1, 0, 1)),
        ("where(~(n < 3) & ((n < 6) | (n > 8)), 1, 0)", (2, 3, 6, 9), (0, 1, 0, 1)),
        ("where(True, n, 0) + where(False, n, 1) + where(n >= 4, 1, 0)", (2, 4), (3, 6)),
        ("0^2*n + 0^0", (3,), (1,)),
        ("Mod(n, 7)", (6, 7, 15), (6, 0, 1)),
        ("Mod(n, 5/2)", (2, 5, 4), (2, 0, R(3, 2))),
        ("floor(n/3)+ceiling(n/3)", (3, 4), (2, 3)),
        ("frac(n/4)", (4, 7), (0, R(3, 4))),
        ("Heaviside(n-3)", (2, 3, 4), (0, R(1, 2), 1)),
        ("Heaviside(n-3, 1)", (2, 3, 4), (0, 1, 1)),
        ("sign(n-3)", (2, 3, 4), (-1, 0, 1)),
        ("Sum(k**2, (k, 0, n))", (0, 3), (0, 14)),
        ("(-1)**n", (4, 7), (1, -1)),
        ("factorial(n)", (0, 5), (1, 120)),
        ("binomial(n, 2)", (2, 5), (1, 10)),
        ("Min(n, 4)-Max(n, 2)", (1, 3, 9), (-1, 0, -5)),
    ],
)
def test_means_what_it_says(text, at, value):
    e = read(text)
    for t, v in zip(at, value, strict=True):
        ball = enclose(e, 64, {n: t})
        exact = enclose(sympy.sympify(v), 64)
        assert ball.overlaps(exact) and ball.rad() < 1e-12


BAD = {  # the text, and what the message about it says
    "": "the formula is empty; expected a bias in the distance n, as -log(1+n)",
    "   ": "the formula is empty; expected a bias in the distance n, as -log(1+n)",
    "-log(1+\u2603*n)": "column 8: '☃' is not part of a formula",
    "n" + "+1" * MAX_LENGTH: "the formula has 20001 characters; at most 10000 are read",
    "n+" * 500_000 + "n": "the formula has 1000001 characters; at most 10000 are read",
    "-2 * lg(n)": "column 6: lg may mean log(x)/log(2) or log(x)/log(10); write which",
    "-n#2": "column 3: '#' is not part of a formula; a comment begins with # behind a blank, and "
    "goes to the end of its line",
    "-n/8#": "column 5: '#' is not part of a formula; a comment begins with # behind a blank, and "
    "goes to the end of its line",
    "-n%": "column 3: nothing stands behind %; expected the divisor of a remainder",
    "-n % ": "column 4: nothing stands behind %; expected the divisor of a remainder",
    "n // ": "column 3: nothing stands behind //; expected the divisor of a rounded quotient",
    "n%": "column 2: nothing stands behind %; expected the divisor of a remainder",
    "-log n - log 2": "column 10: log 2 has no brackets; write log(...), which shows where the "
    "argument ends",
    "-log 2n": "column 2: log 2 has no brackets; write log(...), which shows where the argument "
    "ends",
    "-sqrt 2*n": "column 2: sqrt 2 has no brackets; write sqrt(...), which shows where the "
    "argument ends",
    r"-\log 2": "column 2: log 2 has no brackets; write log(...), which shows where the argument "
    "ends",
    "-W(n)": "column 2: W(n) may mean a function W of n, or a product; write W*(n) for a product",
    "-a(n)": "column 2: a(n) may mean a function a of n, or a product; write a*(n) for a product",
    "-pi(n)": "column 2: pi(n) may mean a function pi of n, or a product; write pi*(n) for a "
    "product",
    "-phi(n)": "column 2: phi(n) may mean a function phi of n, or a product; write phi*(n) for a "
    "product",
    "-K(n+1)": "column 2: K(...) may mean a function K of ..., or a product; write K*(...) for a "
    "product",
    "-C(n, 2)": "column 2: C(...) may mean a function C of ..., or a product; write C*(...) for a "
    "product",
    "lambda m: -b(m)": "column 12: b(m) may mean a function b of m, or a product; write b*(m) for "
    "a product",
    r"-\mu(n)": "column 2: mu(n) may mean a function mu of n, or a product; write mu*(n) for a "
    "product",
    "(" * (MAX_DEPTH + 1)
    + "n"
    + ")" * (MAX_DEPTH + 1): "column 61: the formula is nested deeper than 60",
    "n" + "**n" * (MAX_DEPTH + 1): "column 181: the formula is nested deeper than 60",
    "+n" * MAX_TOKENS: "the formula has more than 4000 symbols",
    "__import__('os').system('echo hi')*n": 'column 12: "\'" is not part of a formula',
    "n.__class__": "column 3: expected a method such as .log(), found '__class__'",
    "n.system('x')": 'column 10: "\'" is not part of a formula',
    "n; import os": "column 2: ';' is not part of a formula; several heads need brackets, [-n/4; 0 "
    "x7]",
    "lambda n: lambda m: n": "column 19: unexpected ':'",
    "lambda a, b: a": "column 1: 'a, b' is no name for the distance; one is accepted",
    "f(x, y) = x": "column 1: 'x, y' is no name for the distance; one is accepted",
    "eval(n)": "column 1: unknown function 'eval'; the nearest of 38: ceiling, binomial, Heaviside",
    "9**9**9**9*n": "column 4: is a number of more than 12000 bits",
    "2**(10**6)*n": "column 1: is a number of more than 12000 bits",
    "1e999999*n": "column 1: a number of more than 1000 digits",
    "(2*n)**9999": "column 1: has a constant factor of more than 12000 bits",
    "1" * 1001 + "*n": "column 1: a number of more than 1000 digits",
    r"n\frac{1}23": "column 11: unexpected '3'; write * for a product",
    r"n\frac1234": "column 9: unexpected '34'; write * for a product",
    "clip()*n": "column 1: clip takes a value, a least and a greatest one",
    "clamp(min=1)+n": "column 1: clamp takes a value, a least and a greatest one",
    "Log(1+n)": "column 1: unknown function 'Log'; did you mean 'log'?",
    "sine(n)": "column 1: unknown function 'sine'; did you mean 'sin'?",
    "-log(1+x)": "formula '-log(1+x)' has no n, the distance; did you mean n for x?",
    "log(1+x*y)": "formula 'log(1+x*y)' has no n, the distance; write n for the distance",
    "exp": "column 1: exp is a function here; write exp(...)",
    "n*log": "column 3: log is a function here; write log(...)",
    "I*n": "column 1: 'I' is the name of a function or constant, not of a parameter",
    "log(-1)*n": "column 1: is not a real number",
    "sqrt(-2)*n": "column 1: is not a real number",
    "(-1)**(1/2)*n": "column 1: is not a real number",
    "acos(2)*n": "column 1: is not a finite real number that can be evaluated",
    "acos(1+1/10^30)*n": "column 1: is not a finite real number that can be evaluated",
    "1/0*n": "column 3: is undefined (a division by zero)",
    "n/(1-1)": "column 3: is undefined (a division by zero)",
    "0**-1+n": "column 1: is undefined (a division by zero)",
    "log(0)+n": "column 1: is undefined (a division by zero, or a singular point)",
    "gamma(-1)+n": "column 1: is undefined (a division by zero, or a singular point)",
    "tan(pi/2)+n": "column 1: is undefined (a division by zero, or a singular point)",
    "zeta(1)*n": "column 1: zeta is the zeta function, which is left out: no published encoding "
    "has one",
    "-log(besseli(0, n))": "column 6: besseli is a Bessel function, which is left out: no "
    "published encoding has one",
    "-li(n)": "column 2: li is the logarithmic integral, which is left out: no published encoding "
    "has one",
    "Ei(-n)": "column 1: Ei is an exponential integral, which is left out: no published encoding "
    "has one",
    "Si(n)*n": "column 1: Si is a sine or cosine integral, which is left out: no published "
    "encoding has one",
    "E1(n)": "column 1: E1 is an exponential integral, which is left out: no published encoding "
    "has one",
    "erfi(1/n)-n": "column 1: erfi is the imaginary error function, which is left out: no "
    "published encoding has one",
    "oo": "formula 'oo' is infinite or undefined for all n",
    "-oo": "formula '-oo' is infinite or undefined for all n",
    "oo-oo+n": "column 1: is undefined (a division by zero, or a singular point)",
    "sin(oo)*n": "column 1: sin of infinity",
    "(i-j)/(i-j-|i-j|)": "formula '(i-j)/(i-j-|i-j|)' is infinite or undefined for all n",
    "log(|i-j|-(i-j))*(i-j-|i-j|)": "formula 'log(|i-j|-(i-j))*(i-j-|i-j|)' is infinite or "
    "undefined for all n",
    "n 2": "column 3: unexpected '2'; write * for a product",
    "1/2n": "column 4: '1/2n' may mean (a/b)*c or a/(b*c); write the product with * and brackets",
    "log n^2": "column 1: log n^2 may mean log(n^2) or log(n)^2; write it with brackets",
    "log2n(n)": "column 1: unknown function 'log2n'; the nearest of 38: log, loggamma, sign",
    "clp(n)": "column 1: unknown function 'clp'; the nearest of 38: ceiling, sec, log",
    "round(n/2)": "column 1: round may mean floor(x + 1/2), or the even neighbour of a half; write "
    "which",
    "sinc(n)": "column 1: sinc may mean sin(x)/x or sin(pi*x)/(pi*x); write which",
    r"-\gamma(1+n)": "column 2: \\gamma( may mean \\gamma times the bracket or a function; write "
    "\\gamma \\cdot ( or \\Gamma(",
    "-(i-j)*i": "column 3: i beside i - j: a bias is a function of the distance alone, which is i "
    "- j or n; give a parameter or a length another name",
    "-oo*(n>4)": "column 1: a product with infinity; write where(n > 64, -oo, 0) or the like",
    "clip(n)*oo": "column 1: a product with infinity; write where(n > 64, -oo, 0) or the like",
    "a if n else b": "column 6: expected a condition such as n < 16 or True",
    "n if n < 3": "column 11: expected else: value if condition else value",
    r"-\frac{1}{": "column 11: the formula ends here; expected a number, a name, a function or a "
    "bracket",
    r"-\frac{n^12}{2}": "column 10: an exponent of several digits needs braces: ^{...}",
    r"\begin{cases} n & n < 3": "column 24: expected the next case or the end of the cases",
    r"\undefined{n}": "column 1: '\\undefined' is not part of a formula",
    "n+": "column 3: the formula ends here; expected a number, a name, a function or a bracket",
    "*n": "column 1: '*' cannot stand here; expected a number, a name, a function or a bracket",
    "(n": "column 3: expected ')', found the end of the formula",
    "n)": "column 2: unexpected ')'",
    "|n": "column 3: expected '|', found the end of the formula",
    "sin(n, 2)": "column 1: sin takes 1 argument(s), 2 given",
    "log()": "column 1: log takes 1 to 2 argument(s), 0 given",
    "harmonic(n, 1/2)": "column 1: harmonic takes 1 argument(s), 2 given",
    "Mod(n)": "column 1: Mod takes 2 argument(s), 1 given",
    "Mod(n, 0)": "column 1: has modulus 0",
    "n<3": "column 2: unexpected '<'",
    "Piecewise((n, n))": "column 15: expected a condition such as n < 16 or True",
    "Piecewise(n)": "column 11: expected '(', found 'n'",
    "Sum(k, (k, 1, 10**6))*n": "column 1: sums of more than 1000 terms",
    "Sum(k, (n, 1, 3))": "column 9: expected the name of the summation index",
    "Sum(k, (k, 1, n/2))": "column 1: the bounds of a sum must be integers for every n",
    "Sum(k)": "column 6: expected Sum(f, (k, a, b))",
    "polygamma(n, 2)": "column 1: needs an order from 0 to 20",
    "polygamma(21, n)": "column 1: needs an order from 0 to 20",
    "exp(exp(exp(10)))*n": "column 1: is not a finite real number that can be evaluated",
    "binomial(10**8, 5*10**7)-n": "column 1: is a constant beyond 2**100000",
    "gamma(10**8)*n": "column 1: is a constant beyond 2**100000",
    "floor(exp(exp(20)))*n": "column 7: is a constant beyond 2**100000",
    "Piecewise((n, "
    + "(" * 70
    + "n<3"
    + ")" * 70
    + "), (0, True))": "column 74: the formula is nested deeper than 60",
    "Piecewise((n, "
    + "~" * 70
    + "(n<3)), (0, True))": "column 75: the formula is nested deeper than 60",
    "cot(n**(10**6)+1)": "column 5: has an exponent beyond 10000",
    "sin((((n+1)**9+1)**9+1)**9)": "column 5: is a nested power of a degree beyond 100",
    "10^3000*10^3000*n": "column 1: is a number of more than 12000 bits",
    "-nan*(i-j)/8": "column 2: nan may mean no number, or a parameter; write another letter",
    "n mod 5": "column 3: mod 5 has no brackets",
    "Piecewise((1, Not(n < 3, n < 4)), (0, True))": "column 15: Not takes 1 argument(s)",
    "Piecewise((1, Eq(n)), (0, True))": "column 15: Eq takes 2 argument(s)",
    "Sum(k < 3, (k, 1, 3))*n": "column 7: unexpected '<'",
    "Sum(Sum(k, (k, 1, 2)), (k, 1, 3))*n": "column 13: k is the index of a sum around this one; "
    "take another name",
    "n.float(": "column 3: the bracket of .float( is not closed",
    "n.to(int)": "column 3: .to(int) may round its argument; write floor(...) where it does",
    "n.max()": "column 3: it takes the max of a row; maximum(a, b) is the max of two",
    "log^2": "column 6: expected the argument of log in brackets",
    "log^(pi)(n)": "column 6: log^... takes a positive power, as log^2(n); write another outside",
    "log^(a)(n)": "column 6: log^... takes a positive power, as log^2(n); write another outside",
    "-log n^": "column 2: log n^... may mean log(n^...) or log(n)^...; write it with brackets",
    "-n.log": "column 4: expected a method such as .log(), found 'log'",
    "Sum(x_k*k, (k, 1, 3))*n": "column 5: x_k changes with the index k; write its formula instead",
    "log^0(n)": "column 5: log^... takes a positive power, as log^2(n); write another outside",
    "log(n, base=2)": "column 1: log takes no argument 'base' by name",
    "log_3(n)": "column 1: a logarithm to base 3 is written log(...)/log(3)",
    "f(n+1)": "column 1: f is no function; write a product as f*(...)",
    "clip(n, 1, 2, 3)": "column 1: clip takes a value, a least and a greatest one",
    "clip(n, lo=1)": "column 1: clip takes a value, a least and a greatest one",
    r"-\sqrt[1]{n}": "column 8: the index of a root is a whole number from 2",
    r"-\sqrt[a]{n}": "column 8: the index of a root is a whole number from 2",
    r"-\frac{n}x": "column 10: expected a group in braces",
    r"\begin{cases} n & n < 3 \begin{cases}": "column 25: expected the next case or the end of the "
    "cases",
    r"\begin{cases} n & n < 3 \\ 2 & \text{otherwise} x \end{cases}": "column 49: expected the "
    "next case or the end of the cases",
    "-beta(n": "column 8: expected ')', found the end of the formula",
    "polygamma n": "column 1: polygamma takes 2 arguments; write polygamma(...)",
    "-log n(1+n)": "column 2: log n(1 may mean log(n(1) or log(n)(1; write it with brackets",
    "sin n cos n": "column 1: sin n cos may mean sin(n cos) or sin(n) cos; write it with brackets",
    r"\log n 2": "column 8: unexpected '2'; write * for a product",
    "-n*[1]": "column 4: '[' cannot stand here; expected a number, a name, a function or a bracket",
    "n__x": "column 1: 'n__x' is not a name for a parameter; accepted: letters, digits and single "
    "underscores, beginning with a letter, 32 characters at most",
    "a" * 33 + "*n": "column 1: 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' is not a name for a parameter; "
    "accepted: letters, digits and single underscores, beginning with a letter, 32 characters "
    "at most",
}


@pytest.mark.parametrize("text", BAD, ids=lambda t: t[:24] or "empty")
def test_bad_input_is_refused_in_one_line(refusal, text):
    error = refusal("", read, text)
    assert BAD[text] in error and len(error) < 700


LIMITS = {  # the last formula of its kind that is read, and the first that is not
    "n" + " " * 9_999: "n" + " " * 10_000,
    "(" * 59 + "n" + ")" * 59: "(" * 60 + "n" + ")" * 60,
    "n" + "+1" * 1_999: "n" + "+1" * 2_000,
    "1" * 1_000 + "*n": "1" * 1_001 + "*n",
    "1e1000*n": "1e1001*n",
    "1e-1000*n": "1e-1001*n",
    "3^6000*n": "3^6001*n",
    "3^-6000*n": "3^-6001*n",
    "(1/3)^6000*n": "(1/3)^6001*n",
    "(n/2)^6000": "(n/2)^6001",
    "(n/2)^(n-500000)": "(n/2)^(n-500001)",
    "(n+1)^-10000": "(n+1)^-10001",
    "(2*n)^6000": "(2*n)^6001",
    "(2*n)^(n+500000)": "(2*n)^(n+500001)",
    "(n+1)^10000": "(n+1)^10001",
    "((n+1)^25+1)^4": "((n+1)^101+1)^1",
    "n-exp(69314)": "n-exp(69315)",
    "Sum(k,(k,1,1000))*n": "Sum(k,(k,1,1001))*n",
    "Product(n+k,(k,0,999))": "Product(n+k,(k,0,1000))",
    "polygamma(20,n+1)": "polygamma(21,n+1)",
    "log^99(n+1)": "log^100(n+1)",
    "a" * 32 + "*n": "a" * 33 + "*n",
}


@pytest.mark.parametrize("last", LIMITS, ids=lambda t: t[:24])
def test_limits_of_what_is_read(refusal, last):
    assert read(last).has(n)
    refusal("", read, LIMITS[last])


@pytest.mark.parametrize("place", [0, 29, 30, 31, 69, 70, 71, 99])
def test_an_error_shows_thirty_characters_on_each_side(refusal, place):
    text = "1+" * 50
    text = f"{text[:place]}\u2603{text[place + 1 :]}"
    shown = "..." * (place > 30) + text[max(0, place - 30) : place + 30] + "..." * (place < 70)
    refusal(f"^formula '{re.escape(shown)}', column {place + 1}: ", read, text)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    [
        "harmonic(10**9)*n",
        "binomial(10**4, 5000)-n",
        "floor(exp(exp(3)))*n",
        "gamma(10**3)*n",
        "factorial(1000)-n",
        "loggamma(10**9)*n",
        "(n+1)**10000",
        "exp(1000*n)",
        "Mod(10**500, 7)*n",
        "cos(10**300)*n",
        "LambertW(10**100)*n",
        "erf(10**3)*n",
        "digamma(10**12)*n",
        "((n+1)**9+1)**9",
        "sin(cos(tan(1)))**n",
        "exp(log(2)*10**4)*n",
    ],
)
def test_heavy_constants_are_read_without_evaluating_them(text):
    assert read(text).has(n)


@pytest.mark.timeout(60)
def test_a_condition_is_not_evaluated_by_folding(refusal):
    nested = "Piecewise((10**6, n < 3), (n, True))"
    for inside in (f"digamma({nested})", f"harmonic({nested})+n"):
        refusal(
            "condition on a function of a Piecewise",
            read,
            f"Piecewise((n, {inside} < 3), (2*n, True))",
        )
    assert read(f"Piecewise((n, 2*{nested} < 3), (2*n, True))").has(n)
    refusal(
        "cannot be evaluated",
        read,
        "Piecewise((1, Piecewise((sin(n), floor(pi) < 3), (3, True)) < 3), (n, True))",
    )


def test_a_parameter_is_positive_unless_said_otherwise():
    (a,) = read("-a*n").free_symbols - {n}
    assert a == parameter("a") and a.is_positive
    (b,) = read("-a*n", {"a": "real"}).free_symbols - {n}
    assert b.is_positive is None and b.is_real


@pytest.mark.parametrize(
    ("domain", "sign", "ends"),
    [
        ("[0, 2)", "nonnegative", (0, 2, True, False)),
        ("(0, oo)", "positive", (0, sympy.oo, False, False)),
        ("(-oo, 0]", "nonpositive", (-sympy.oo, 0, False, True)),
        ("(0, 2]", "positive", (0, 2, False, True)),
        ("[-1, -1/2]", "negative", (-1, R(-1, 2), True, True)),
        ("(-1, 1)", "real", (-1, 1, False, False)),
        ("[0.1, 0.1]", "positive", (R(1, 10), R(1, 10), True, True)),
        ("real", "real", (-sympy.oo, sympy.oo, False, False)),
    ],
)
def test_domains(domain, sign, ends):
    assert sign_domain(domain) == sign
    own = interval(domain)
    assert (own.inf, own.sup, own.inf in own, own.sup in own) == ends


@pytest.mark.parametrize("domain", ["[2, 1]", "(1, 1)", "[1, 1)", "big", "[a, 2]", "[0 2]", ""])
def test_bad_domains(refusal, domain):
    refusal(r"assumption|interval", read, "-a*n", {"a": domain})


@pytest.mark.parametrize("name", ["n", "log", "pi", "e", "I", "Piecewise", "1a", "a b", "a__b", ""])
def test_bad_names_of_parameters(refusal, name):
    refusal(r"name|distance|ambiguous", parameter, name)


def test_an_assumption_must_concern_the_formula(refusal):
    refusal("'b', which formula '-a\\*n' does not contain", read, "-a*n", {"b": "real"})


def test_sympy_expressions_come_in_the_projects_symbols():
    x, k = sympy.symbols("n k")
    e = as_expression(-k * x + 0.1 * sympy.log(x + 1))
    assert e == -parameter("k") * n + sympy.log(n + 1) / 10
    negative = sympy.Symbol("k", negative=True)
    assert as_expression(negative * x) == parameter("k", "negative") * n
    wide = sympy.Symbol("k", extended_nonnegative=True)
    assert as_expression(wide * x) == parameter("k", "nonnegative") * n
    of_any_kind = sympy.Symbol("k", complex=True)
    assert as_expression(of_any_kind * x, {"k": "real"}) == parameter("k", "real") * n
    assert as_expression(2.5) == R(5, 2) and as_expression(3) == 3


NO_KIND = "a formula is text, a SymPy expression, a function, a module or an array, not "
COMPLEX = "SymPy may take a for complex, or says only what it is not; accepted: "


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (sympy.I * n, "ImaginaryUnit in 'I*n' is not part of a formula"),
        (sympy.airyai(n), "airyai in 'airyai(n)' is not part of a formula"),
        (sympy.Derivative(sympy.log(n), n), "Derivative in 'Derivative(log(n), n)' is not part"),
        (sympy.zoo * n, "ComplexInfinity in 'zoo*n' is not part of a formula"),
        (None, f"{NO_KIND}NoneType"),
        (True, f"{NO_KIND}bool"),
        (["n"], f"{NO_KIND}list"),
        (sympy.Matrix([n]), f"{NO_KIND}MutableDenseMatrix"),
        (sympy.true, "'True' is not a formula with a number at each distance"),
        (n < 3, "'n < 3' is not a formula with a number at each distance"),
        (sympy.Piecewise((n, n < 3)), "'Piecewise((n, n < 3))': no value is given for large n"),
        (
            sympy.Symbol("k", positive=True) * sympy.Symbol("k", real=True) * n,
            "formula 'k*k*n' has two symbols of SymPy called k; accepted: one of each name",
        ),
        (-sympy.Symbol("a", complex=True) * n, COMPLEX),
        (-sympy.Symbol("a", imaginary=True) * n, COMPLEX),
        (-sympy.Symbol("a", positive=False) * n, COMPLEX),
    ],
)
def test_sympy_expressions_beyond_the_grammar_are_refused(refusal, bad, message):
    assert message in refusal("", as_expression, bad)


def test_integers_that_python_does_not_write_are_refused(refusal):
    for factor in (7**9000, sympy.Rational(1, 7**9000)):
        refusal("more than 12000 bits", as_expression, -factor * n)


def test_a_part_that_the_reader_refuses_is_built_without_evaluating_it():
    assert rebuilt(sympy.Mod, (n, sympy.S.Zero)).args == (n, 0)
    assert rebuilt(sympy.Pow, (sympy.S.Zero, sympy.S.NegativeOne)) is sympy.zoo
    with pytest.raises(TooLarge):
        rebuilt(sympy.Pow, (sympy.Integer(2), sympy.Integer(10**6)))


def test_a_held_number_stays_what_it_is():
    e = read("n*digamma(10**6)/13")
    assert str(e) == "n*polygamma(0, 1000000)/13" == str(pickle.loads(pickle.dumps(e)))
    assert e == read("digamma(10**6)*n/13") != read("digamma(10**6+1)*n/13")
    found = enclose(read("digamma(10**6)*log(2)"), 64)
    assert float(found) == pytest.approx(float(mpmath.digamma(10**6) * mpmath.log(2)), rel=1e-15)


@pytest.mark.parametrize(
    "symbol",
    [
        sympy.Symbol("x"),
        sympy.Symbol("k", integer=True),
        sympy.Symbol("n", integer=True),
        sympy.Symbol("k", integer=True, positive=True),
        sympy.Symbol("t", nonnegative=True),
        sympy.Symbol("n", positive=True),
        sympy.Symbol("d", real=True),
    ],
)
def test_a_single_symbol_is_the_distance(symbol):
    assert as_expression(-2 * sympy.log(1 + symbol)) == -2 * sympy.log(1 + n)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            -sympy.Symbol("a") * sympy.log(1 + sympy.Symbol("x")),
            "several symbols that may be the distance: a, x",
        ),
        (
            sympy.Symbol("n") * sympy.Symbol("n", real=True),
            "several symbols that may be the distance: n, n",
        ),
        (-(sympy.Symbol("n", negative=True) ** 2), "took n for"),
        (-sympy.Symbol("x", even=True), "took x for even"),
    ],
)
def test_nothing_is_answered_about_another_formula(refusal, given, message):
    refusal(message, as_expression, given)


VALUES = (-3, -1, "-1/2", 0, "1/2", 1, "3/2", 2, "5/2", 7)
INTERVALS = ("[0, 2)", "(0, 2]", "[1, oo)", "(-oo, 1)", "[-1, 1]", "(1/2, 3/2)", "[2, 2]")


@pytest.mark.parametrize("domain", (*DOMAINS, *INTERVALS))
def test_the_same_values_are_accepted_everywhere(refusal, domain):
    found = check_convergence("-a^2*n-n", assumptions={"a": domain})
    for value in VALUES:
        inside = sympy.Rational(value) in interval(domain)
        for ask in (
            lambda v=value: encoding("-a^2*n-n", assumptions={"a": domain}, a=v),
            lambda v=value: found.at(a=v),
        ):
            if inside:
                ask()
                continue
            refusal("outside its domain", ask)
