r"""Expressions as they are printed: on a line, in ASCII, in LaTeX; texts in each medium."""

import re

import pytest
import sympy
from sympy import Rational, S, Symbol, Tuple

from farfield.theory.answers.answer import Status
from farfield.theory.answers.notation import (
    Latex,
    Math,
    StyledWord,
    _mathml,
    as_text,
    beginning,
    code,
    enumeration,
    expression_latex,
    expression_line,
    html,
    in_a_cell,
    latex,
    listed,
    shortened,
    signed,
    terminal,
    words,
)
from farfield.theory.functions.nodes import Lookup, n

A, X, K = Symbol("a", positive=True), Symbol("x", real=True), Symbol("k")
BETWEEN = sympy.And(n > 1, n < 3)
PIECES = sympy.Piecewise((n, n < 3), (-n, n < 7), (0, True), evaluate=False)
CASES = r"\begin{cases} n & \text{for}\: n < 3 \\- n & \text{for}\: n < 7 \\0 & \text{otherwise} "


@pytest.mark.parametrize(
    ("e", "line", "ascii", "tex"),
    [
        (n**10, "n¹⁰", "n^10", "n^{10}"),
        (n**-2, "1/n²", "1/n^2", r"\frac{1}{n^{2}}"),
        (1 / sympy.sqrt(n), "1/√n", "1/sqrt(n)", r"\frac{1}{\sqrt{n}}"),
        (n ** Rational(3, 2), "n^(3/2)", "n^(3/2)", "n^{3/2}"),
        (sympy.cbrt(n), "n^(1/3)", "n^(1/3)", r"\sqrt[3]{n}"),
        (n**-A, "n^(−a)", "n^(-a)", "n^{- a}"),
        ((n + 1) ** A, "(n + 1)^a", "(n + 1)^a", r"\left(n + 1\right)^{a}"),
        ((n + 1) ** 2, "(n + 1)²", "(n + 1)^2", r"\left(n + 1\right)^{2}"),
        (A ** (n**2), "a^(n²)", "a^(n^2)", "a^{n^{2}}"),
        (sympy.sqrt(n + 1), "√(n + 1)", "sqrt(n + 1)", r"\sqrt{n + 1}"),
        (sympy.sqrt(2), "√2", "sqrt(2)", r"\sqrt{2}"),
        (A * sympy.sqrt(n), "a·√n", "a*sqrt(n)", r"a \sqrt{n}"),
        (1 / (n + 1), "1/(n + 1)", "1/(n + 1)", r"\frac{1}{n + 1}"),
        (-2 * n / 3, "−2·n/3", "-2*n/3", r"- \frac{2 n}{3}"),
        (n - Rational(1, 3), "n − 1/3", "n - 1/3", r"n - \frac{1}{3}"),
        (sympy.exp(-n / 2), "exp(−n/2)", "exp(-n/2)", r"e^{- \frac{n}{2}}"),
        (S.Exp1, "E", "E", "e"),
        (sympy.exp(2), "exp(2)", "exp(2)", "e^{2}"),
        (sympy.exp(-2), "exp(−2)", "exp(-2)", "e^{-2}"),
        (sympy.pi / 2, "π/2", "pi/2", r"\frac{\pi}{2}"),
        (S.Infinity, "∞", "oo", r"\infty"),
        (S.NegativeInfinity, "−∞", "-oo", r"-\infty"),
        (sympy.Abs(n - 3), "|n − 3|", "|n - 3|", r"\left|{n - 3}\right|"),
        (sympy.floor(n / 2), "⌊n/2⌋", "floor(n/2)", r"\left\lfloor{\frac{n}{2}}\right\rfloor"),
        (sympy.ceiling(n / 2), "⌈n/2⌉", "ceiling(n/2)", r"\left\lceil{\frac{n}{2}}\right\rceil"),
        (S.true, "always", "always", r"\text{True}"),
        (S.false, "never", "never", r"\text{False}"),
        (Symbol("b1"), "b₁", "b1", "b_{1}"),
        (Symbol("m_12"), "m₁₂", "m_12", "m_{12}"),
        (Symbol("alpha"), "α", "alpha", r"\alpha"),
        (sympy.Max(n, A, 3), "max(3, a, n)", "max(3, a, n)", r"\max\left(3, a, n\right)"),
        (sympy.Min(n, 2), "min(2, n)", "min(2, n)", r"\min\left(2, n\right)"),
        (sympy.Mod(n, 3), "(n mod 3)", "(n mod 3)", r"n \bmod 3"),
        (sympy.Mod(n + 1, 3), "((n + 1) mod 3)", "((n + 1) mod 3)", r"\left(n + 1\right) \bmod 3"),
        (sympy.factorial(n), "n!", "n!", "n!"),
        (sympy.factorial(n + 1), "(n + 1)!", "(n + 1)!", r"\left(n + 1\right)!"),
        (sympy.Sum(K**2, (K, 1, n)), "Σ_(k=1..n) k²", "sum_(k=1..n) k^2", r"\sum_{k=1}^{n} k^{2}"),
        (n < 3, "n < 3", "n < 3", "n < 3"),
        (n >= 3, "n ≥ 3", "n >= 3", r"n \geq 3"),
        (sympy.Eq(n, 3), "n = 3", "n = 3", "n = 3"),
        (sympy.Ne(n, 3), "n ≠ 3", "n != 3", r"n \neq 3"),
        (BETWEEN, "n > 1 and n < 3", "n > 1 and n < 3", r"n > 1 \text{ and } n < 3"),
        (
            sympy.Not(BETWEEN, evaluate=False),
            "not (n > 1 and n < 3)",
            "not (n > 1 and n < 3)",
            r"\neg \left(n > 1 \text{ and } n < 3\right)",
        ),
        (
            sympy.Or(n < 1, BETWEEN),
            "(n > 1 and n < 3) or n < 1",
            "(n > 1 and n < 3) or n < 1",
            r"n > 1 \text{ and } n < 3 \text{ or } n < 1",
        ),
        (
            PIECES,
            "{n for n < 3; −n for n < 7; 0 otherwise}",
            "{n for n < 3; -n for n < 7; 0 otherwise}",
            CASES + r"\end{cases}",
        ),
        (
            Lookup(n, Tuple(1, 2), -n),
            "table[n; 2 values, then −n]",
            "table[n; 2 values, then -n]",
            r"T\left[n\right]",
        ),
    ],
    ids=str,
)
def test_an_expression_in_each_notation(e, line, ascii, tex):
    assert (expression_line(e), expression_line(e, unicode=False)) == (line, ascii)
    assert expression_latex(e) == tex


SAID = words(
    "As `n -> oo`, `rho_0^12 = {e} <= sum b_10 != 3`, {w} & {fraction} 50 % of {x}… ~ 3² √ ∞ α",
    e=n / 2,
    w=StyledWord("yes no", "verdict"),
    fraction=Latex(r"\frac{1}{n}"),
    x="a_b{c}^#<>$",
)


LINES = (
    r"\left\lfloor\frac{n}{2}\right\rfloor",
    r"\sqrt{n+1}\, \log n",
    r"2\,n",
    r"\frac{\frac{1}{2}}{n+1}",
    r"\exp\left(-\zeta+\pi\right)",
    r"\varepsilon^{12} \sim  3",
)
BEFORE = (
    *("<mo>=</mo>", "<mo>&#x0002B;</mo>", '<mo stretchy="false">&#x00028;</mo>'),
    *("<mi>n</mi>", "<mo>&#x00029;</mo>", "<mo>]</mo>", "<mo>&#x0007C;</mo>"),
)
CUT = ["…", "…", "0…", "0…9", "01…9", "0123…6789", "0123456789"]
MARKED = (
    'As M, M, <span class="verdict yes-no">yes no</span> &amp; M 50 % of '
    "a_b{c}^#&lt;&gt;$… ~ 3² √ ∞ α"
)
MIXED = words("{a} `{a}` `{b}` {c}", a=("x", Math(("y",))), b="n^2", c=None)
STYLES = (("c<d", "code"), ("s", "strong"), ("l", "to a&b"), ("run x", "command"))
POWERS = "1e-05 2.5e+10 1.0e-3 a1e-5 12e+3 1e-05x"
LONG = Symbol("abcdefghi") + n**2 / 4  # sixteen characters
MINUS, PREFIX = "<mo>&#x02212;</mo>", '<mo form="prefix">&#x02212;</mo>'


def ascii(text):
    return terminal(text, unicode=False)


def plainly(*sources):
    return [terminal((Latex(source),)) for source in sources], [ascii((Latex(x),)) for x in sources]


def brackets(source):
    """Those of a formula, tall ones as capitals."""
    found = re.findall(r'<mo( stretchy="false")?>&#x0002([89]);', _mathml(source))
    return "".join(("ab" if flat else "AB")[side == "9"] for flat, side in found)


@pytest.mark.parametrize(
    ("write", "given", "wanted"),
    [
        (
            terminal,
            SAID,
            "As n → ∞, ρ₀¹² = n/2 ≤ Σ b₁₀ ≠ 3, yes no & 1/n 50 % of a_b{c}^#<>$… ~ 3² √ ∞ α",
        ),
        (
            ascii,
            SAID,
            "As n -> oo, rho_0^12 = n/2 <= sum b_10 != 3, yes no & 1/n 50 % of a_b{c}^#<>$… "
            "~ 3² √ ∞ α",
        ),
        (
            latex,
            SAID,
            r"As $n \to \infty$, $\rho _ 0 ^ {12} = {\frac{n}{2}} \le \sum b _ {10} \ne 3$, "
            r"yes no \& $\frac{1}{n}$ 50 \% of a\_b\{c\}\^{}\#$<$$>$\$\ldots{} \~{} "
            r"3\textsuperscript{2} $\surd$ $\infty$ $\alpha$",
        ),
        (
            latex,
            words("`log(n) mod floor abc 12 theta {y} % # & $`", y=sympy.sqrt(n)),
            r"$\log ( n ) \operatorname{mod} \operatorname{floor} \text{abc} {12} \theta "
            r"{\sqrt{n}} \% \# \& \$$",
        ),
        (
            latex,
            words("`exp lim inf min max sin cos`"),
            r"$\exp \lim \inf \min \max \sin \cos$",
        ),
        (lambda text: re.sub("<math.*?</math>", "M", html(text)), SAID, MARKED),
        (
            lambda text: re.findall('label="(.*?)"', html(text)),
            SAID,
            ["n → ∞", "ρ₀¹² = n/2 ≤ Σ b₁₀ ≠ 3", "1/n"],
        ),
        (
            lambda styles: html(tuple(StyledWord(*each) for each in styles)),
            STYLES,
            '<code>c&lt;d</code><strong>s</strong><a href="a&amp;b">l</a>'
            '<details class="again"><summary>command</summary><code>run x</code></details>',
        ),
        (
            html,
            (StyledWord("out of scope", "label"), POWERS),
            '<span class="label out-of-scope">out of scope</span>10<sup>−5</sup> '
            "2.5·10<sup>10</sup> 1.0·10<sup>−3</sup> a1e-5 12e+3 1e-05x",
        ),
        (code, "a `b` c", ("a ", StyledWord("b", "code"), " c")),
        (as_text, 3, ("3",)),
        (as_text, n / 2, (Math((n / 2,)),)),
        (as_text, Status.OUT_OF_SCOPE, (StyledWord("out of scope", "status"),)),
        (latex, words("`ab x 1.5 {a}`", a="b c"), r"$\text{ab} x 1.5 b c$"),
        (lambda x: [len(beginning("x" * k)) for k in x], (60, 61), [60, 60]),
        (beginning, "x" * 61, "x" * 57 + "..."),
        (as_text, ("a",), ("a",)),
        (as_text, Math(("a",)), (Math(("a",)),)),
        (terminal, MIXED, "xy xy n² None"),
        (terminal, (Latex("n", "said"),), "said"),
        (
            lambda x: plainly(*x),
            LINES,
            (
                ["⌊n/2⌋", "sqrt(n+1)·log n", "2·n", "(1/2)/(n+1)", "exp(-ζ+π)", "ε^(12) ∼ 3"],
                [
                    "floor(n/2)",
                    "sqrt(n+1)*log n",
                    "2*n",
                    "(1/2)/(n+1)",
                    "exp(-zeta+pi)",
                    "eps^(12) ~ 3",
                ],
            ),
        ),
        (lambda x: [shortened("0123456789", k) for k in x], (0, 1, 2, 3, 4, 9, 10), CUT),
        (lambda x: [len(shortened("x" * k)) for k in x], (99, 100, 101), [99, 100, 100]),
        (
            lambda x: [beginning("0123456789", k) for k in x],
            (3, 9, 10),
            ["...", "012345...", "0123456789"],
        ),
        (
            lambda x: [listed(range(6), k) for k in x],
            (6, 5, 4, 3, 1),
            ["0, 1, 2, 3, 4, 5", "0, 1, …, 4, 5", "0, 1, …, 4, 5", "0, …, 5", "…"],
        ),
        (lambda x: ["…" in listed(range(k)) for k in x], (12, 13), [False, True]),
        (lambda x: [enumeration(k) for k in x], ("a", "ab", "abc"), ["a", "a and b", "a, b and c"]),
        (
            lambda x: [terminal(in_a_cell(LONG, k)) for k in x],
            (16, 15, 4, 3),
            ["abcdefghi + n²/4", "abcdefg… + n²/4", "ab…4", "a…4"],
        ),
        (
            lambda x: [in_a_cell(LONG, k)[0] for k in x],
            (16, 15, 3),
            [Math((LONG,)), Latex(expression_latex(LONG), "abcdefg… + n²/4"), "a…4"],
        ),
        (brackets, expression_latex(sympy.log(n + 1)), "ab"),
        (brackets, expression_latex(sympy.log(Rational(1, 2) + sympy.log(n) / n)), "AabB"),
        (brackets, r"\left(\frac{1}{2}\right) + \left(n\right)", "ABab"),
        (brackets, r"\left(\left(x\right)\frac{1}{n}\right) ) + \left(n\right)", "AabBbab"),
        (lambda x: [signed(k + MINUS) == k + PREFIX for k in x], BEFORE, [True] * 3 + [False] * 4),
        (lambda x: ["0.167em" in _mathml(k) for k in x], (r"2 \log n", r"+ \log n"), [True, False]),
    ],
)
def test_a_text_in_each_medium(write, given, wanted):
    assert write(given) == wanted


def test_a_line_is_as_long_as_it_may_be():
    assert shortened("x" * 100) == "x" * 100 and len(shortened("x" * 101)) == 100
    assert terminal(words("`b_3` and `x^12`")) == "b₃ and x¹²"
