"""Formulas as papers print them, with what a page, HTML or a PDF leaves around them."""

import pytest

from farfield import check_convergence, encoding
from farfield.theory.formula.conditions import reprinted
from farfield.theory.formula.grammar import read
from farfield.theory.formula.reading import indexed

PRINTED = rf"""
-\lambda_h |i-j|  ->  -lambda_h*n
-λ_h (i-j)  ->  -lambda_h*n
-\beta_1 (i-j)^{{\beta_2}}  ->  -beta1*n^beta2
-α_1 n - α₂ n²  ->  -alpha1*n - alpha2*n^2
\mathrm{{PE}}(i,j) = -\beta_1 \log(1 + \beta_2(i - j))  ->  -beta1*log(1+beta2*n)
\log_e(1+n)  ->  log(1+n)
−r_1⋅log{chr(0x2061)}(1+r_2|i−j|)  ->  -r1*log(1+r2*n)
−r_1{chr(0x200B)}log(1+r_2∣i−j∣)  ->  -r1*log(1+r2*n)
\mathbf{{B}}_{{i,j}} = -m|i-j|  ->  -m*n
\mathbf{{B}}_{{ij}} = -m|i-j|  ->  -m*n
b_{{m,n}} = -s(m-n)  ->  -s*n
-m^{{(h)}}|i-j|  ->  -m_h*n
-\mathrm{{m}}_h n  ->  -m_h*n
-\alpha\Delta  ->  -alpha*n
-Δ/8  ->  -n/8
-\Delta n  ->  -Delta*n
-10^9\,\mathbf{{1}}[i-j \ge w]  ->  -10^9*where(n >= w, 1, 0)
\mathbb{{1}}_{{n < 8}} - n  ->  where(n < 8, 1, 0) - n
\begin{{cases}}-m(i-j)&i\ge j\\-\infty&i<j\end{{cases}}  ->  Piecewise((-m*n, n>=0), (-oo, n<0))
\begin{{cases}}0&\text{{if}}\,i-j<w\\ -\infty &\text{{else}}\end{{cases}}  ->  where(n < w, 0, -oo)
\sum_{{k=0}}^{{3}}\cos(n/10^{{k}}) - 4  ->  Sum(cos(n/10**k), (k, 0, 3)) - 4
2\prod_{{k=1}}^{{3}} (n+k) - n  ->  2*(n+1)*(n+2)*(n+3) - n
-n^2/3  ->  -(n*n)/3
-2*log(1+n^2/3)  ->  -2*log(1+(n*n)/3)
-self.bias_p*torch.log(1+self.bias_a*n)  ->  -bias_p*log(1+bias_a*n)
def f(q, k): return -(q-k)/8  ->  -n/8
"""


@pytest.mark.parametrize("line", PRINTED.strip().splitlines())
def test_is_read_as_printed(line):
    written, meant = line.split("  ->  ")
    assert read(written) == read(meant)


@pytest.mark.parametrize(
    ("printed", "typed"),
    [
        ("-(n mod 5)*n", "-Mod(n , 5)*n"),
        ("-floor(n mod 5) + 1", "-floor(Mod(n , 5)) + 1"),
        ("((n + 1) mod (a + 2))", "((n + 1) mod (a + 2))"),
        ("-(((n mod 7) + 2) mod 5)", "-Mod((Mod(n , 7) + 2) , 5)"),
        ("n mod 5", "n mod 5"),
        ("n mod 5) + (n", "n mod 5) + (n"),
        ("(n mod 5", "(n mod 5"),
        ("mod(n, 5) - n", "mod(n, 5) - n"),
        ("{0 for n < 3; -n otherwise}/2", "Piecewise((0, n < 3), (-n, True))/2"),
        (
            "1 + {a for n = 3; b for n >= 7; 0 otherwise }",
            "1 + Piecewise((a, n == 3), (b, n >= 7), (0, True))",
        ),
        (
            "{0 for n != 3; {1 for n <= 5; 2 otherwise} otherwise}",
            "Piecewise((0, n != 3), (Piecewise((1, n <= 5), (2, True)), True))",
        ),
        ("0 for n < 3; -n otherwise}", "0 for n < 3; -n otherwise}"),
        (r"\frac{n mod 5}{2}", r"\frac{n mod 5}{2}"),
    ],
)
def test_what_is_printed_is_typed_again(printed, typed):
    assert reprinted(printed) == typed


REFUSED = {
    r"\sum_{k=0}^{3}\cos(\theta_k n)": "theta_k changes with the index k",
    "-a_1*n - a1": "are one name",
    "-log_softmax(n)": "unknown function 'log_softmax'",
    r"-n\,\mathbb{1} n": "expected the condition of the indicator",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_meant_is_refused(refusal, text):
    refusal(REFUSED[text], read, text)


BEHIND = {
    r"-r_1 \log(1 + r_2 n), \quad r_1, r_2 > 0": {"r1": "positive", "r2": "positive"},
    r"-r_1 n^{r_2}, r_1 > 0, 0 < r_2 \le 2": {"r1": "positive", "r2": "(0, 2]"},
    r"n \log \gamma, \quad \gamma \in (0, 1)": {"gamma": "(0, 1)"},
    r"-m(i-j), \quad j \le i": {"m": "positive"},
    "-a*n with a >= 1": {"a": "[1, oo)"},
    "-a*n, 2 < a": {"a": "(2, oo)"},
    "-a*n where a < 1": {"a": "(-oo, 1)"},
    "-a*n^b, a <= 0, b < 0": {"a": "nonpositive", "b": "negative"},
    "-a*n^b, for -1/2 < a <= 3/4, and b >= 0": {"a": "(-1/2, 3/4]", "b": "nonnegative"},
    "-a*n, 2 <= a <= 3.5": {"a": "[2, 3.5]"},
    "-a*n^b, a > 1, b in [0, 1)": {"a": "(1, oo)", "b": "[0, 1)"},
    "-a*n^b, 1 < a, b < 3": {"a": "(1, 3)", "b": "(1, 3)"},
    r"n \log \gamma, \gamma \in [1, \infty)": {"gamma": "[1, oo)"},
    "-where(n < 4, a, b) - Max(a, n), a > 2": {"a": "(2, oo)", "b": "positive"},
    "-a*n**p, a and p > 0, n >= 0": {"a": "positive", "p": "positive"},
}


@pytest.mark.parametrize("text", BEHIND)
def test_conditions_behind_a_formula_are_its_assumptions(text):
    found = encoding(text)
    assert {p.name: p.domain for p in found.parameters} == BEHIND[text]


@pytest.mark.parametrize("behind", ["1 < a, b in [0, 1)", "0 < a, b > 1", "0 < a and b >= 1"])
def test_a_bound_is_never_dropped(refusal, behind):
    refusal(
        f"'{behind[:5]}.+' has two lower bounds; write each bound behind its parameter",
        encoding,
        f"-a*log(1 + n) - b*log(2 + n), {behind}",
    )


def test_an_assumption_that_is_printed_decides(refusal):
    assert check_convergence(r"-r_1\log(1+n), \quad r_1 > 1").converges
    assert check_convergence(r"-r_1\log(1+n), \quad 0 < r_1 \le 1").converges is False
    assert str(check_convergence(r"-r_1\log(1+n), \quad r_1 > 0").condition) == "r1 > 1"
    refusal("outside its domain", encoding, "-a*n, a > 2", a=1)
    refusal("two domains of a", encoding, "-a*n, a > 0, a < 0")


@pytest.mark.parametrize("spelled", ["r_1", "r_{1}", "r₁", "r1"])
def test_a_parameter_has_one_name_in_every_spelling(refusal, spelled):
    latex = rf"-{spelled} \cdot n" if spelled != "r1" else "-r1*n"
    for name in ("r_1", "r1"):
        assert encoding(latex, **{name: 2}).head(1) == read("-2*n")
    assert encoding(r"-m_h \cdot n", m_h=2).biases == encoding("-m_h*n", m_h=2).biases
    assert indexed("m", "_{h}") == indexed("m", "ₕ") == indexed("m", "^{(h)}") == "m_h"
    refusal("one parameter", encoding, "-r_1*n", r_1=1, r1=2)


REMARKS = {
    "gamma^n": "the weight itself",
    "exp(-n^2/2048)": "the weight itself",
    "1/(1+n^2)": "the weight itself",
    "1/(n-1/2)^2": "write log(1/(n - 1/2)^2)",  # log(n - 1/2) has no value at n = 0
    "1/(1+n)^2": r"write -2\*log\(n \+ 1\)",
    "log(1+n)": r"If a sign is lost, write -\(log\(n \+ 1\)\)",
    "n + 1": "grows with the distance",
    "-8*n/L": "row's length",
    "-log(1+n)/log(seq_len)": "row's length",
    "where(n<64, 0, -1e9)": r"Piecewise\(\(0, n < 64\), \(-oo, True\)\), and its series converges",
    "-1e4*(n >= 64)": "and its series converges",
    "where(n<64, -a*n, -1e9)": "Piecewise((-a*n, n < 64), (-oo, True)).",
    "-n/8 if n >= 0 else n/4": "keys in the past",
    "where(n<0,-1,-n)": "keys in the past",
    "where(0>n,-1,-n)": "keys in the past",
}


@pytest.mark.parametrize("text", REMARKS)
def test_what_a_formula_may_mean_besides_is_said_beside_the_verdict(text):
    found = check_convergence(text)
    assert any(REMARKS[text].replace("\\", "") in said for said in found.remarks)
    assert found.remarks[0] in " ".join(found.text(width=10_000).split())


@pytest.mark.parametrize(
    "text",
    ["-n/8", "-log(1+n)", "where(n<64, 0, -oo)", "3", "where(n>=0, -n, -oo)", "sin(n)", "0"],
)
def test_a_plain_formula_has_no_remark(text):
    assert check_convergence(text).remarks == ()


NAMES = {
    "sliding_window": "window",
    "Sliding Window": "window",
    "kerple": "kerple_log",
    "ALiBi": "alibi",
    "kerple-log": "kerple_log",
    "Type 1": "type1",
    "T5": "t5",
    "RoPE, interpolated": "rope_pi",
    "Kerple Power": "kerple_power",
    "xpos": "xpos",
    "HoPE": "hope",
    "hope": "hope",
    "LongRoPE": "longrope",
    "HARoPE": "harope",
    "PaTH": "path",
    "wavelet": "wavelet",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_people_use_is_known(name):
    assert encoding(name).name == NAMES[name]


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("window 4096", "window --set w=4096"),
        ("window(4096)", "window --set w=4096"),
        ("sliding window 64", "window --set w=64"),
        ("alibi 12 heads", "alibi --heads 12"),
        ("alibi 12", "alibi --heads 12"),  # its slopes are those of the heads
        ("gaussian", "-n^2/(2*sigma^2)"),
        ("RetNet", "write n*log(31/32)"),
        ("Mamba-2", "n*log(gamma)"),
        ("gla", "n*log(gamma)"),
        ("ntk", "rope_ntk"),
    ],
)
def test_a_name_with_a_number_is_refused_with_what_to_type(refusal, text, typed):
    assert typed in refusal("", encoding, text)
