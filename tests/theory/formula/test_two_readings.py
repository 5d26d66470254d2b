"""What may mean two things is refused with both; what has one meaning is read."""

import pytest
import sympy

from farfield import encoding
from farfield.theory.formula.grammar import read

REFUSED = {  # the text: the column and both readings, as the message says them
    "-n^1/2": (2, "n^(1/2)", "(n^1)/2"),
    "-log(1+n)^1/2": (2, "log(1+n)^(1/2)", "(log(1+n)^1)/2"),
    "-(1+n)^3/2": (2, "(1+n)^(3/2)", "((1+n)^3)/2"),
    "-log(1+n)^3/2": (2, "log(1+n)^(3/2)", "(log(1+n)^3)/2"),
    "-n ^ 3 / 4": (2, "n^(3/4)", "(n^3)/4"),
    "n^-1/2": (1, "n^(-1/2)", "(n^-1)/2"),
    "-n^-3/2": (2, "n^(-3/2)", "(n^-3)/2"),
    "-n^a/2": (2, "n^(a/2)", "(n^a)/2"),
    "-n^1/a": (2, "n^(1/a)", "(n^1)/a"),
    "-n**1/2": (2, "n**(1/2)", "(n**1)/2"),
    "-(1+n)**-1/4": (2, "(1+n)**(-1/4)", "((1+n)**-1)/4"),
    "$-n^1/2$": (3, "n^(1/2)", "(n^1)/2"),
    "2^n/2": (1, "2^(n/2)", "(2^n)/2"),
    "-2^-n/8": (2, "2^(-n/8)", "(2^-n)/8"),
    "e^-n/64": (1, "e^(-n/64)", "(e^-n)/64"),
    "e^-n/a": (1, "e^(-n/a)", "(e^-n)/a"),
    "-n^3/5": (2, "n^(3/5)", "(n^3)/5"),
    "-a/2 n": (6, "(a/b)*c", "a/(b*c)"),
    "\u2212n % 64": (1, "(-n) % 64", "-(n % 64)"),
    "\u2013n % 64": (1, "(-n) % 64", "-(n % 64)"),
    "-n^1.0/2": (2, "n^(1.0/2)", "(n^1.0)/2"),
    "-n^3/2.0": (2, "n^(3/2.0)", "(n^3)/2.0"),
    "-n^1//2": (2, "n^(1//2)", "(n^1)//2"),
    "-n^a/b": (2, "n^(a/b)", "(n^a)/b"),
    "-e^-n^2/8": (2, "e^(-n^2/8)", "(e^-n^2)/8"),
    "-exp^-n/8": (2, "exp^(-n/8)", "(exp^-n)/8"),
    "-e^-n*8": (2, "e^(-n*8)", "(e^-n)*8"),
    "-1e*n": (2, "1*e", "power of ten"),
    "-1e3f*n": (2, "single precision", "1e3*f"),
    "-log a n": (2, "log(a n)", "log(a) n"),
    "e^-2*n": (1, "e^(-2*n)", "(e^-2)*n"),
    "e^-2n": (1, "e^(-2*n)", "(e^-2)*n"),
    "e^-a n": (1, "e^(-a*n)", "(e^-a)*n"),
    "-2^2n": (2, "2^(2*n)", "(2^2)*n"),
    "-n^2a": (2, "n^(2*a)", "(n^2)*a"),
    "-n^2log(n)": (2, "n^(2*log(...))", "(n^2)*log(...)"),
    "-n^a(1+n)": (2, "n^(a*(...))", "(n^a)*(...)"),
    "-1/2n": (5, "(a/b)*c", "a/(b*c)"),
    "-n/2a": (5, "(a/b)*c", "a/(b*c)"),
    "log n/2": (1, "log(n/2)", "log(n)/2"),
    "-sqrt n*2": (2, "sqrt(n*2)", "sqrt(n)*2"),
    r"\log n/2": (1, "log(n/2)", "log(n)/2"),
    "log n^2": (1, "log(n^2)", "log(n)^2"),
    "-log^3/2(1+n)": (6, "log^(3/2)(...)", "quotient"),
    r"-\log^{(2)} n": (8, "power", "applied again"),
    "-n!!": (2, "double factorial", "(x!)!"),
    "-0x10*n": (2, "0x10 may mean a hexadecimal number (16)", "0*x10"),
    "-0b101*n": (2, "binary number (5)", "0*b101"),
    "-0o17*n": (2, "octal number (15)", "0*o17"),
    "-0b12*n": (2, "binary number (no such number)", "0*b12"),
    "-0.0n": (2, "heads of a list", "a product"),
    "-9e5e*n": (2, "9e5*e", "9e5e-3"),
    "-(n)%2": (1, "(-(n)) % 2", "-((n) % 2)"),
    "-1.f*n": (2, "single precision", "1.*f"),
    "2^3(1+n)": (1, "2^(3*(...))", "(2^3)*(...)"),
    "-e^n^2*3": (2, "e^(n^2*3)", "(e^n^2)*3"),
    "0 x7": (1, "[-n/4; 0 x7]", "a product"),
    "-0n": (2, "heads of a list", "a product"),
    "-0.1f*n": (2, "single precision", "0.1*f"),
    "-2j*n": (2, "imaginary", "2*j"),
    "-e1*n": (2, "1e1", "a parameter"),
    "-logn*n": (2, "log(n)", "a parameter"),
    "-log2n - n": (2, "log2(n)", "a parameter"),
    "-n % 64": (1, "(-n) % 64", "-(n % 64)"),
    "-n // 8": (1, "(-n) // 8", "-(n // 8)"),
    "1 - -2*n//a": (5, "(-2*n) // a", "-(2*n // a)"),
    "-2*n % 3": (1, "(-2*n) % 3", "-(2*n % 3)"),
    "1 - -n % a": (5, "(-n) % a", "-(n % a)"),
    "1% n": (1, "1/100", "remainder"),
    "-5%*n": (2, "5/100", "remainder"),
    "-n*50 % 7": (4, "50/100", "remainder"),
    "-4k*n": (2, "4 thousand", "4*k"),
    "-{n/2}": (2, "brackets", "fractional part"),
    "2{n} - n": (2, "brackets", "fractional part"),
    "-log(2, n+1)": (2, "log(2, n+1) may mean log(n + 1)/log(2)", "or log(2)/log(n + 1)"),
    "-np.log(b, n+1)": (5, "log(n + 1)/log(b)", "log(b)/log(n + 1)"),
    "-(10).log(n+2)": (7, "log(n + 2)/log(10)", "log(10)/log(n + 2)"),
    "-log n+1": (2, "log(n+1)", "log(n)+1"),
    "-sqrt n-1": (2, "sqrt(n-1)", "sqrt(n)-1"),
    "-(m-n)/8": (3, "distance n", "parameter"),
    "-Max(n-m, 0)": (8, "distance n", "parameter"),
    "-|m-n+1|": (3, "distance n", "parameter"),
    "-(q-k)*n": (3, "distance n", "parameter"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_two_meanings_are_refused_with_both(refusal, text):
    column, *readings = REFUSED[text]
    error = refusal(rf"column {column}: ", read, text)
    assert all(reading in error for reading in readings)
    assert text in error.replace("\\\\", "\\")


def test_a_formula_of_two_lines_is_refused_in_one(refusal):
    refusal(r"^formula '5\\n % n', column 1: 5  % may mean 5/100, or the remain", read, "5\n % n")


@pytest.mark.parametrize("text", [t for t, (_, one, _) in REFUSED.items() if "^(" in one])
def test_both_readings_that_a_message_says_can_be_typed(text):
    one, other = (reading.replace("(...)", "(1+n)") for reading in REFUSED[text][1:])
    if "log^" not in one:
        assert read(f"0*n + {one}") != read(f"0*n + {other}")


READ = {  # the text: what it means, in a text that can be read in one way
    "-n^(1/2)": "-sqrt(n)",
    "-n^{1/2}": "-sqrt(n)",
    r"$-n^{1/2}$": "-sqrt(n)",
    r"-\sqrt{n}": "-sqrt(n)",
    r"-\frac{n^3}{2}": "-(n*n*n)/2",
    r"-\log(1+n)^3/2": "-(log(1+n)^3)/2",
    "-(1+n)**3/2": "-((1+n)**3)/2",
    "-n^2/2": "-(n*n)/2",
    "-n^2/3": "-(n*n)/3",
    "-n^2/512": "-(n*n)/512",
    "-(n-40)^2/9": "-((n-40)*(n-40))/9",
    "-n^3/8": "-(n*n*n)/8",
    "-n²/3": "-(n*n)/3",
    "-n^0.5/2": "-sqrt(n)/2",
    "-10^-3*n": "-n/1000",
    "(-1)^n/2 - n": "((-1)^n)/2 - n",
    "-n^2 log(n)": "-(n*n)*log(n)",
    "-n^2(1+n)": "-(n*n)*(1+n)",
    "2e^-n": "2*exp(-n)",
    "-1.5e-3n": "-3*n/2000",
    "-log n - n/8": "-log(n) - n/8",
    "-1/2 n": "-n/2",
    "-log_2(1+n)": "-log(1+n)/log(2)",
    "-log_10(1+n)": "-log10(1+n)",
    r"-\log_2(1+n)": "-log2(1+n)",
    r"-\log^{3/2}(1+n)": "-log(1+n)^(3/2)",
    r"-\log^{2}(1+n)": "-log(1+n)^2",
    "-log^(3/2)(1+n)": "-log(1+n)^(3/2)",
    "-m*n": "-n*m",
    "-q*n^k": "-(n^k)*q",
    "-a*n - m*log(1+n)": "-n*a - log(1+n)*m",
    "1 - n % 64": "1 - Mod(n, 64)",
    "1 - n//2": "1 - floor(n/2)",
    "-(n % 64)": "-Mod(n, 64)",
    "(-n) % 64": "Mod(-n, 64)",
    "-log n + 1": "1 - log(n)",
    r"-\log n+1": "1 - log(n)",
    r"-{\frac{n}{2}}": "-n/2",
    "-n^{1/2}/8": "-sqrt(n)/8",
    "-4*k*n": "-k*n*4",
    "-n/8  # of the paper": "-n/8",
    "((n < 3) | (n > 9)) - n": "where(n < 3 or n > 9, 1, 0) - n",
    "-float(n)/8": "-n/8",
    "clip(n, low=1, high=9)": "Min(9, Max(1, n))",
    "clip(n, -oo, 9)": "Min(n, 9)",
    "clip(n, 2, oo)": "Max(n, 2)",
    r"-\sqrt[3]{n}": "-cbrt(n)",
    r"-\sqrt[2]{n}": "-sqrt(n)",
    "-|n*(|n-3|)|": "-Abs(n*Abs(n-3))",
    r"\begin{cases} n & n < 3 \\ 2, & \text{otherwise} \\ \end{cases}": "where(n < 3, n, 2)",
    "-sin cos n": "-sin(cos(n))",
    "-(1+n)*(n < 3)": "-(n+1)*where(n < 3, 1, 0)",
    "((n < 3) + 1)*n": "(where(n < 3, 1, 0) + 1)*n",
    "1/2 (1+n)": "n/2 + 1/2",
    "-2e^n": "-2*exp(n)",
    "-2e**n": "-2*exp(n)",
    "-n^2**3/4": "-(n^8)/4",
    "-n^a/7": "-(n^a)/7",
    "-n^a/1e999": "-(n^a)/1e999",
    "-(1+n)^n/64": "-((1+n)^n)/64",
    "-e^-n*(1+n)": "-exp(-n)*(1+n)",
    "-log{1+n}": "-log(1+n)",
    "-(1+n)k": "-(1+n)*k",
    "-n^5/6": "-(n^5)/6",
    "-n^3/1": "-n*n*n",
    "-n^3/2.5": "-(n*n*n)*2/5",
    "-n^1.5/2": "-n*sqrt(n)/2",
    "-n^a/n": "-(n^a)*(1/n)",
    "-n^a/log(1+n)": "-(n^a)*(1/log(1+n))",
    "-2^-n*8": "-(1/2)^(n-3)",
    "-e^-n*log(1+n)": "-exp(-n)*log(1+n)",
    "e^-n log(1+n)": "exp(-n)*log(1+n)",
    "-e^-2 (1+n)": "-exp(-2)*(1+n)",
    "-n^2 a": "-(n*n)*a",
    "n^2 if n < 3 else 0": "where(n < 3, n*n, 0)",
    "-3f*n": "-f*3*n",
    "-0.5 f*n": "-f*n/2",
    "-4 k*n": "-4*k*n",
    "-log(a, 2)*n": "-log(a)*n/log(2)",
    "-log n +1": "1 - log(n)",
    "-log n+ 1": "1 - log(n)",
    "-(n if n < 9 else 9)": "-where(n < 9, n, 9)",
    "-log^99(1+n)": "-log(1+n)^99",
    "-log^(1/3)(1+n)": "-log(1+n)^(1/3)",
}


@pytest.mark.parametrize("text", READ)
def test_one_meaning_is_read(text):
    assert sympy.expand(read(text) - read(READ[text])) == 0


DISTANCE = [
    *(f"-|{q}-{k}|/8" for q, k in ("mn", "nm", "ij", "ji", "qk", "kq", "ts")),
    *(f"-abs({q}-{k})/8" for q, k in ("mn", "ij", "qk")),
    r"-\lvert i-j \rvert/8",
    r"-\left| m - n \right| / 8",
    "-|m − n|/8",
    "-np.abs(m - n)/8",
    "-(m - n).abs()/8",
    "-(i-j)/8",
    "(j-i)/8",
    "-(q-k)/8",
    "(k - q)/8",
    "-(q_idx - kv_idx)/8",
    "-torch.abs(kv_idx - q_idx)/8",
    "b_{m-n} = -|m-n|/8",
    "b(q, k) = -|q-k|/8",
    "lambda i, j: -abs(i - j)/8",
    "-(2*i - 2*j)/16",
    "-sqrt((q - k)*(q - k))/8",
]


@pytest.mark.parametrize("text", DISTANCE)
def test_a_query_less_its_key_is_the_distance(text):
    assert read(text) == read("-n/8")


def test_a_position_is_a_parameter_where_that_is_said_and_nothing_else_remains(refusal):
    assert read("-|m-n|/8", {"m": "positive"}).has(sympy.Abs)
    assert read("-Max(n-m, 0)", {"m": "positive"}).has(sympy.Max)
    assert read("-e1*n", {"e1": "positive"}).free_symbols != read("-n").free_symbols
    assert read("p(t) = -|t-s|", {}).has(sympy.Abs)  # the heading says that t is the distance
    assert read("-|j-i+1|") == read("-|1-n|") and read("-|j-i|") == read("-n")
    assert len(read("-(m-n)^2/8 - n").free_symbols) == 2  # no function of m - n: m is a parameter
    for text in ("-|m-n|/8 - m", "-|i-j| - i", "-m*i - m*j", "-|q-k|*q", "-|i-j|/n", "-n*|m-n|"):
        refusal(r"beside . - .: a bias is a function of the distance", read, text)


@pytest.mark.parametrize("name", ["nan", "NaN", "None", "infinity", "zoo", "i", "j"])
def test_the_name_of_something_else_is_no_parameter_unless_it_is_said(refusal, name):
    refusal(f"{name} may mean .*, or a parameter", encoding, f"-{name}*n/8")
    assert len(encoding(f"-{name}*n/8", assumptions={name: "positive"}).free) == 1


@pytest.mark.parametrize(
    "text",
    ["Piecewise((1, n < 3))", "Piecewise((1, n < 3), (2, 5 < n < 9))", "Piecewise((1, i - j < 3))"],
)
def test_pieces_that_end_are_refused_with_a_distance_that_has_no_value(refusal, text):
    refusal(r"column 1: no value is given for large n.*\(value, True\)", read, text)
    rest = ", (n, n > 4))".replace("n", "i - j" if "j" in text else "n")
    assert read(text.removesuffix(")") + rest).has(sympy.Piecewise)


@pytest.mark.parametrize(
    "text", ["-n # slope", "# f(x) = 2\n-n", "-n #50\\% $a$", "lambda n: -n # #", "-n\t#; 0"]
)
def test_a_comment_says_nothing_of_the_formula(text):
    assert read(text) == read("-n")
    assert encoding(f"[{text}\n; 0] # two heads").biases == encoding("[-n; 0]").biases


@pytest.mark.parametrize(
    "text", [r"-\{n\}", r"-\left\{n\right\}", r"-\lbrace n\rbrace", r"-n\{2\}"]
)
def test_printed_braces_are_two_readings_but_around_arguments(refusal, text):
    assert text in refusal("fractional part", read, text), "backslashes are shown as given"
    assert read(r"-\log\left\{1+n\right\}") == read(r"-\log\{1+n\}") == read("-log(1+n)")


def test_a_factor_stays_one():
    assert read("-m(1 + n)") == read("-m*(1 + n)")
    assert read("-4k*n", {"k": "positive"}) == read("-4*n*k") and read("-10x10*n").free_symbols
    assert read("-A*(n)") == read("-A(n)", {"A": "positive"}) == read("-A*n")
