"""Heads and tables: one notation, one meaning; what may mean two things is refused with both."""

from fractions import Fraction

import numpy as np
import pytest
import sympy

from farfield import check_convergence, encoding
from farfield.theory.encodings.head_lists import as_list, is_table, worded

MIXTURE = encoding(["-n/4", *["0"] * 7])
TABLE = encoding(np.array([0.0, -1.0, -2.0]))


@pytest.mark.parametrize(
    "text",
    [
        "[-n/4; 0 x7]",
        "[-n/4, 0 x7]",
        " [ -n/4 ;0 ×7 ] ",
        "[-n/4; 0 x 7]",
        "[-n/4; 0 x0000000007]",
        "[−n/4; 0 x3; 0 x4]",
        "[-0.25n; nope x7]",
        "[-n/4; 0; 0; 0; 0; 0; 0; 0]",
        ["-n/4", "0 x7"],
        ["-n/4", 0, 0, "0 x5"],
        (lambda n: -n / 4, "0 x7"),
        (encoding("-n/4"), *["nope"] * 7),
    ],
)
def test_heads_have_one_notation(text):
    found = encoding(text)
    assert found.biases == MIXTURE.biases and found.source == MIXTURE.source
    assert encoding(found.formula_text()).biases == found.biases


@pytest.mark.parametrize(
    "table",
    [
        [0, -1, -2],
        (0, -1.0, -2),
        [Fraction(0), np.float64(-1), sympy.Integer(-2)],
        "[0, -1, -2]",
        "[0,-1.0,−2e0]",
        "[0, -2/2, -4/2]",
    ],
)
def test_numbers_are_a_table(table):
    assert encoding(table).known == TABLE.known != ()
    assert encoding(table, tail="cut").biases == encoding(values=[0, -1, -2], tail="cut").biases


@pytest.mark.parametrize("rows", ["[0, -1; 0, -2]", "[[0, -1], [0, -2]]", [[0, -1], [0, -2]]])
def test_rows_of_numbers_are_heads_of_a_table(rows):
    assert encoding(rows).known == encoding(values=np.array([[0, -1], [0, -2]])).known != ()


@pytest.mark.parametrize("text", ["[0 x8]", "[0; 0; 0; 0; 0; 0; 0; 0]", "[0; 0 x7]"])
def test_zeros_are_heads_without_bias(text):
    assert encoding(text).biases == (sympy.Integer(0),) * 8


def test_the_sentence_says_what_a_table_and_a_mixture_are():
    constant, cut = (check_convergence([0, -1, -2.0], tail=tail) for tail in ("constant", "cut"))
    assert (constant.verdict.value, cut.verdict.value) == ("diverges", "converges")
    assert "table of 3 values, constant beyond" in str(constant)
    assert "table of 3 values, masked beyond" in str(cut)
    assert MIXTURE.name == "one head -n/4, seven without bias"
    assert encoding("[-m*n; 0 x7]", m="1/16").name == "one head -n/16, seven without bias"
    assert encoding("-m*n", m=["1/4", *[0] * 7]).name == "one head -n/4, seven without bias"
    assert encoding("-m*n", m="1/4").name == "-n/4" and encoding("-m*n").name == "-m*n"


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("[0; -1; -2]", ("[0, -1, -2]", "heads")),
        ("[-n/4; 0×7]", ("0 x7", "(0)*7")),
        ("[-n/4; 0x7]", ("0 x7", "(0)*7")),
        ("[-n/4; 0*7]", ("0 x7", "(0)*7")),
        ("[7 x -n/4; 0]", ("-n/4 x7", "7*x")),
        ("[1e400]", ("finite numbers",)),
        ("[-n/4; [0 x7]]", ("give it alone",)),
        ("[[-n]; 0]", ("give it alone",)),
        ("[-n; [0]]", ("give it alone",)),
        ("[[-n]; [0]; 0]", ("give it alone",)),
        ("[-n x-1]", ("no count of heads",)),
        ("[-n; 0 x1.5]", ("no count of heads",)),
        ("[0 x -2]", ("no count of heads",)),
        ("[-n/4; 0 ×.5]", ("no count of heads",)),
        ("-n/4; 0", ("[-n/4; 0 x7]",)),
        ("[-n × 2; 0]", ("-n x2", "(-n)*2")),
        ("[-n; 0, 0]", ("; and ,",)),
        ("[-n/4; ]", ("nothing between",)),
        ("[]", ("nothing between",)),
        ("[-n/4; 0 x7", ("']'",)),
        ("[-n/4; 0 x0]", ("1 to 4096",)),
        ("[-n/4; 0 x99999999999999]", ("1 to 4096",)),
        ("[alibi; 0]", ("no bias of one head",)),
        ("[rope]", ("no bias of one head",)),
        ("[0, -1, x]", ("formula in n",)),
        ("[0, -1; 0]", ("each row alike",)),
        ([0, float("nan")], ("finite numbers and -inf",)),
        ([0, float("inf")], ("finite numbers and -inf",)),
        ([[0, -1], [0]], ("each row alike",)),
        ([], ("0 formulas",)),
        ([True, False], ("not bool",)),
    ],
)
def test_what_is_no_list_of_heads_is_refused_with_what_would_be(refusal, text, readings):
    assert all(reading in refusal("", encoding, text) for reading in readings)


def test_a_tail_belongs_to_a_table_and_a_table_takes_nothing_else(refusal):
    for given, options in (("-n", {"tail": "cut"}), ([0, -1], {"heads": 8}), ([0], {"m": 1})):
        refusal("table", encoding, given, **options)


@pytest.mark.parametrize("given", ["-n/8 + alibi", "-window*n", "-fire*n", ["-T5*n", "0"]])
def test_a_name_of_the_catalogue_is_no_parameter_unless_that_is_said(refusal, given):
    name = next(w for w in ("alibi", "window", "fire", "T5") if w in str(given))
    refusal(rf"column \d+: {name} may mean the encoding .* parameter", encoding, given)
    assert encoding(given, **{name: 2}).num_heads == (2 if isinstance(given, list) else 1)
    if isinstance(given, str):
        assert encoding(given, assumptions={name: "positive"}).free


def test_a_value_and_a_domain_of_one_parameter_agree_or_are_refused(refusal):
    assert encoding("alibi", m="-1/4", assumptions={"m": "real"}).head(1) == encoding("n/4").head(1)
    assert encoding("-m*n", m=["1/4", 0], assumptions={"m": "nonnegative"}).num_heads == 2
    assert encoding(["-m*n", "0"], m="-1", assumptions={"m": "real"}).head(1) == encoding("n").head(
        1
    )
    refusal(r"m = 3 is outside its domain", encoding, "-m*n", m=3, assumptions={"m": "[0, 2)"})


@pytest.mark.parametrize(
    "text", ["-n/log(n)", "-n-1/(1+log(n)^2)", "-log(n)", "-n-min(log(n),0)", "-1/(n-3)^2"]
)
def test_a_table_has_no_value_where_the_formula_has_none(text):
    row = encoding(text).bias(np.arange(40))[0]
    undefined = check_convergence(text).skipped_terms
    assert undefined and not np.isfinite(row[list(undefined)]).any()
    assert (row[list(undefined)] != -np.inf).all()  # no mask either
    assert np.isfinite(np.delete(row, undefined)).all()


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("[0 x4096]", ["0"] * 4096),
        ("[-n; 0 x4095]", ["-n", *["0"] * 4095]),
        ("[Max(n, 2); {n; 2} x2; [n]]", None),
        ("[Max(n, 2), where(n < 3, 0, -n)]", ["Max(n, 2)", "where(n < 3, 0, -n)"]),
        ("[Max(n; 2); 0]", ["Max(n; 2)", "0"]),
        (
            "[0, -inf, -oo, -infinity, -∞, −inf, -1/4, +2]",
            [0, *[-sympy.oo] * 5, sympy.Rational(-1, 4), 2],
        ),
        ("[0, inf, +oo]", [0, sympy.oo, sympy.oo]),
        ("[0, -1; 0, -2]", [[0, -1], [0, -2]]),
        ("[[0, -1], [0, -2]]", [[0, -1], [0, -2]]),
        ("[0]", ["0"]),
        ("[0, 0]", [0, 0]),
        ("[0; 0]", ["0", "0"]),
        ("[-3]", [-3]),
        ("[-n] # one head", ["-n"]),
        ("-n", None),
    ],
)
def test_a_list_is_its_parts(refusal, text, items):
    if items is None and text.startswith("["):
        refusal("has a list among its heads", as_list, text)
    else:
        found = as_list(text)
        assert found == items


def test_a_list_of_too_many_heads_is_refused(refusal):
    for text in ("[0 x4097]", "[-n; 0 x4096]", "[-n; 0 x0]"):
        refusal("accepted: 1 to 4096 heads", as_list, text)


def test_heads_are_worded_by_their_runs():
    assert worded(["0"] * 10) == "ten heads without bias"
    assert worded(["0"] * 11) == "11 heads without bias"
    assert worded(["-n"] * 2 + ["0"] + ["-n"]) == "two heads -n, one without bias, one -n"
    assert worded(["-n", "0", "-n", "0", "0"]) == "[-n; 0; -n; 0 x2]"
    assert encoding(["-n", "nope"]).name == "one head -n, one without bias"


@pytest.mark.parametrize(
    ("given", "is_one"),
    [
        (
            [0, -1.5, Fraction(1, 2), np.float64(2), np.array(3.0), sympy.Integer(2), -sympy.oo],
            True,
        ),
        ([[0, 1], (2, 3)], True),
        ([], False),
        ([[]], False),
        ([0, "1"], False),
        ([0, True], False),
        ([0, np.array([1.0])], False),
        ([sympy.Symbol("n")], False),
        ([1j], False),
    ],
)
def test_numbers_alone_are_a_table(given, is_one):
    assert is_table(given) is is_one
