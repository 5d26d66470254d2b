"""The reader of formulas: every feature of its grammar, every bad input it must refuse; domains."""

import pickle

import mpmath
import pytest
import sympy

from farfield import check_convergence, encoding
from farfield.theory.formula.bounded_nodes import MAX_DEPTH, MAX_LENGTH, MAX_TOKENS
from farfield.theory.formula.grammar import read
from farfield.theory.formula.parameters import DOMAINS, interval, parameter, sign_domain
from farfield.theory.formula.sympy_expressions import as_expression
from farfield.theory.functions.nodes import n
from farfield.theory.values import enclose

R = sympy.Rational


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


BAD = {
    "": "empty",
    "   ": "empty",
    "-log(1+\u2603*n)": "'\u2603' is not part of a formula",
    "n" + "+1" * MAX_LENGTH: "characters",
    "n+" * 500_000 + "n": "characters",
    "-2 * lg(n)": "column 6",
    "-n#2": "'#' is not part of a formula; a comment begins with #",
    "-n/8#": "'#' is not part of a formula; a comment begins with #",
    **dict.fromkeys(("-n%", "-n % ", "n%"), "nothing stands behind %"),
    **dict.fromkeys(
        ("-log n - log 2", "-log 2n", "-sqrt 2*n", r"-\log 2"),
        r"\w+ 2 has no brackets; write \w+\(...\)",
    ),
    **dict.fromkeys(
        ("-W(n)", "-a(n)", "-pi(n)", "-phi(n)", "-K(n+1)", "-C(n, 2)", "lambda m: -b(m)"),
        r"may mean a function .* or a product",
    ),
    r"-\mu(n)": r"may mean a function .* or a product",
    "(" * (MAX_DEPTH + 1) + "n" + ")" * (MAX_DEPTH + 1): "nested deeper",
    "n" + "**n" * (MAX_DEPTH + 1): "nested deeper",
    "+n" * MAX_TOKENS: "symbols",
    "__import__('os').system('echo hi')*n": "'_' is not part of a formula|unknown|_",
    "n.__class__": "expected a method",
    "n.system('x')": "not part of a formula|unknown function",
    "n; import os": "';' is not part of a formula",
    "lambda n: lambda m: n": "lambda",
    "lambda a, b: a": "no name for the distance",
    "f(x, y) = x": "no name for the distance",
    "eval(n)": "unknown function 'eval'",
    "9**9**9**9*n": "bits",
    "2**(10**6)*n": "bits",
    "1e999999*n": "digits",
    "(2*n)**9999": "constant factor of more than 12000 bits",
    "1" * 1001 + "*n": "digits",
    "Log(1+n)": "did you mean 'log'",
    "sine(n)": "did you mean 'sin'",
    "-log(1+x)": "did you mean n for x",
    "log(1+x*y)": "write n for the distance",
    "exp": "write exp(...)",
    "n*log": "write log(...)",
    "I*n": "function or constant",
    "log(-1)*n": "real",
    "sqrt(-2)*n": "real",
    "(-1)**(1/2)*n": "real",
    "acos(2)*n": "real",
    "1/0*n": "zero",
    "n/(1-1)": "zero",
    "0**-1+n": "zero",
    "log(0)+n": "undefined",
    "gamma(-1)+n": "undefined",
    "tan(pi/2)+n": "undefined",
    "zeta(1)*n": "zeta is the zeta function, which is left out",
    "-log(besseli(0, n))": "besseli is a Bessel function, which is left out",
    "-li(n)": "left out",
    "Ei(-n)": "left out",
    "Si(n)*n": "left out",
    "E1(n)": "left out",
    "erfi(1/n)-n": "left out",
    "oo": "infinite",
    "-oo": "infinite",
    "oo-oo+n": "undefined",
    "sin(oo)*n": "infinity",
    **dict.fromkeys(
        ("(i-j)/(i-j-|i-j|)", "log(|i-j|-(i-j))*(i-j-|i-j|)"), "infinite or undefined for all n"
    ),
    "n 2": r"write \* for a product",
    "1/2n": r"may mean \(a/b\)\*c or a/\(b\*c\)",
    "log n^2": "may mean",
    "log2n(n)": "unknown function 'log2n'; the nearest of",
    "clp(n)": "unknown function 'clp'; the nearest of",
    "round(n/2)": "may mean floor",
    "sinc(n)": "may mean",
    r"-\gamma(1+n)": "may mean",
    "-(i-j)*i": "alone",
    "-oo*(n>4)": "product with infinity",
    "clip(n)*oo": "infinity",
    "a if n else b": "expected a condition",
    "n if n < 3": "expected else",
    r"-\frac{1}{": "ends here",
    r"-\frac{n^12}{2}": "column 10: an exponent of several digits needs braces",
    r"\begin{cases} n & n < 3": "end of the cases|next case",
    r"\undefined{n}": "not part of a formula",
    "n+": "ends here",
    "*n": "cannot stand here",
    "(n": "expected '\\)'",
    "n)": "unexpected '\\)'",
    "|n": "expected '\\|'",
    "sin(n, 2)": "takes 1 argument",
    "log()": "takes 1 to 2 argument",
    "harmonic(n, 1/2)": "argument",
    "Mod(n)": "takes 2 argument",
    "Mod(n, 0)": "modulus 0",
    "n<3": "unexpected '<'",
    "Piecewise((n, n))": "condition",
    "Piecewise(n)": "expected",
    "Sum(k, (k, 1, 10**6))*n": "terms|more than",
    "Sum(k, (n, 1, 3))": "index",
    "Sum(k, (k, 1, n/2))": "integers",
    "Sum(k)": "expected Sum",
    "polygamma(n, 2)": "order",
    "polygamma(21, n)": "order",
    "exp(exp(exp(10)))*n": "evaluated|beyond",
    "binomial(10**8, 5*10**7)-n": "beyond 2",
    "gamma(10**8)*n": "beyond 2",
    "floor(exp(exp(20)))*n": "evaluated|beyond",
    "Piecewise((n, " + "(" * 70 + "n<3" + ")" * 70 + "), (0, True))": "nested deeper",
    "Piecewise((n, " + "~" * 70 + "(n<3)), (0, True))": "nested deeper",
    "cot(n**(10**6)+1)": "exponent beyond",
    "sin((((n+1)**9+1)**9+1)**9)": "degree beyond 100",
    "n__x": "single underscores",
    "a" * 33 + "*n": "32 characters",
}


@pytest.mark.parametrize("text", BAD, ids=lambda t: t[:24] or "empty")
def test_bad_input_is_refused_in_one_line(refusal, text):
    assert len(refusal(BAD[text], read, text)) < 700


LIMITS = {  # the last formula of its kind that is read, and the first that is not
    "n" + " " * 9_999: "n" + " " * 10_000,
    "(" * 59 + "n" + ")" * 59: "(" * 60 + "n" + ")" * 60,
    "n" + "+1" * 1_999: "n" + "+1" * 2_000,
    "1" * 1_000 + "*n": "1" * 1_001 + "*n",
    "1e1000*n": "1e1001*n",
    "1e-1000*n": "1e-1001*n",
    "3^6000*n": "3^6001*n",
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


@pytest.mark.parametrize(
    "bad",
    [
        sympy.I * n,
        sympy.airyai(n),
        sympy.Derivative(sympy.log(n), n),
        sympy.zoo * n,
        None,
        True,
        sympy.Integral(n, n),
        ["n"],
        -sympy.Symbol("a", complex=True) * n,
        -sympy.Symbol("a", imaginary=True) * n,
        -sympy.Symbol("a", positive=False) * n,
    ],
)
def test_sympy_expressions_beyond_the_grammar_are_refused(refusal, bad):
    refusal("", as_expression, bad)


def test_integers_that_python_does_not_write_are_refused(refusal):
    for factor in (7**9000, sympy.Rational(1, 7**9000)):
        refusal("more than 12000 bits", as_expression, -factor * n)


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
