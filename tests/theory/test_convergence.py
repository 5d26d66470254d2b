"""Verdicts: the battery, its disguises, the catalogue, generated series, and laws of series."""

import itertools
import random

import pytest
import sympy
from battery import BATTERY
from hypothesis import given, settings
from hypothesis import strategies as st
from proof_checker.checker import check_proof

from farfield import Verdict, check_convergence, encoding, encodings
from farfield.theory import convergence
from farfield.theory.first_terms import skipped_terms
from farfield.theory.formula.grammar import read
from farfield.theory.formula.parameters import interval, parameter

each = pytest.mark.parametrize("case", BATTERY, ids=lambda case: case["id"])
GRID = [
    sympy.Rational(x)
    for x in ["-2", "-1", "-1/2", "0", "1/5", "1/3", "1/2", "2/3", "1", "3/2", "2", "3"]
]


def condition_of(text, domains):
    """A reference condition, written in Python's syntax, as a SymPy Boolean."""
    names = {k: parameter(k, d) for k, d in domains.items()}
    known = {
        "Eq": sympy.Eq,
        "Ne": sympy.Ne,
        "log": sympy.log,
        "exp": sympy.exp,
        "E": sympy.E,
        "sqrt": sympy.sqrt,
        "pi": sympy.pi,
        "Abs": sympy.Abs,
    }
    return sympy.sympify(eval(text, {"__builtins__": {}}, names | known))


def points(domains):
    """All rational points of the grid that lie in the domains, their boundaries included."""
    return itertools.product(
        *([x for x in GRID if x in interval(domain)] for domain in domains.values())
    )


def differences(found, wanted, domains):
    """The points of the grid where two conditions disagree."""
    symbols = [parameter(k, d) for k, d in domains.items()]
    for point in points(domains):
        at = dict(zip(symbols, point, strict=True))
        if bool(sympy.sympify(found).subs(at)) != bool(sympy.sympify(wanted).subs(at)):
            yield at


def assert_right(result, case, domains):
    assert result.verdict.value == case["verdict"], (result.formula, result.reason)
    if result.verdict is Verdict.CONDITIONAL:
        names = dict(zip(case["params"], domains, strict=True))
        wanted = case["condition"]
        for old, new in names.items():
            wanted = sympy.sympify(
                condition_of(wanted, case["params"]) if wanted is case["condition"] else wanted
            ).subs(parameter(old, case["params"][old]), parameter(new, domains[new]))
        assert not list(differences(result.condition, wanted, domains)), result.condition


@each
def test_battery(case):
    domains = case["params"] or {}
    result = check_convergence(case["expr"], assumptions=domains)
    assert_right(result, case, domains)
    assert result.proof.steps and result.label == "theorem"


@pytest.mark.sampled(12)
@each
def test_battery_in_three_disguises(case, series):
    rng = random.Random(case["id"])
    domains = case["params"] or {}
    fresh = dict(zip(domains, ("zeta_1", "v", "kappa", "w2"), strict=False))
    renamed = {fresh[k]: d for k, d in domains.items()}
    for _ in range(3):
        text = series.disguised(series.renamed(case["expr"], fresh), rng)
        result = check_convergence(text, assumptions=renamed)
        if result.verdict is Verdict.UNDECIDED:
            assert text in OPEN, (text, result.reason)
            continue
        assert_right(result, case, renamed)


OPEN = {
    "((2*log(sqrt((n+7)+1)-sqrt((n+7))))*(log(6)/(log(2)+log(3))))"
    "*(sqrt(5+2*sqrt(6))/(sqrt(2)+sqrt(3)))"  # whether log(6) sqrt(5+2 sqrt(6)) is its denominator
}
"""Disguises whose constants are not told apart: two zeros, of logarithms and of roots, in one."""


@pytest.mark.parametrize("count", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_generated_series(series, count):
    seed = 20_261
    rng = random.Random(seed)
    undecided = []
    for _ in range(count):
        text, converges = series.random_series(rng)
        result = check_convergence(text)
        assert result.converges in (converges, None), (seed, text)
        undecided += [text] if result.converges is None else []
    assert len(undecided) <= count / 50, undecided


DIVERGENT = {"nope", "sandwich", "example1", "example2", "t5", "rope_surrogate", "xpos_surrogate"}
CONDITION = {"kerple_log": "r1 > 1", "bam": "beta > 0", "alibi_log": "m > 1"}
CONVERGENT = {"window", "alibi", "kerple_power", "type1", "type2"}


@pytest.mark.parametrize("name", [k for k in encodings() if encoding(k).formula is not None])
def test_catalogue(name):
    result = check_convergence(name)
    if name in CONDITION:
        assert (result.verdict, str(result.condition)) == (Verdict.CONDITIONAL, CONDITION[name])
    elif name == "sandwich_smoothed":  # converges iff c < 6.6, c = 1 .. 8
        assert [h.converges for h in result.heads] == [True] * 6 + [False] * 2
        assert result.verdict is Verdict.DIVERGES
    else:
        assert name in DIVERGENT | CONVERGENT
        assert result.converges is (name in CONVERGENT)
        assert {h.converges for h in result.heads} <= {name in CONVERGENT}


# -- laws -----------------------------------------------------------------------------------------

SIMPLE = (
    "-log(n+2)",
    "-2*log(n+2)",
    "-n/7",
    "-log(n+3)-log(log(n+3))",
    "-log(n+3)-2*log(log(n+3))",
    "-sqrt(n)+log(n+1)",
    "-log(n+1)*(2+sin(n))",
    "-log(n+3)*(5/2+cos(n))",
    "-LambertW(n)",
    "-log(log(n+3))**2",
    "-log(n+3)**2/3",
    "-harmonic(n)",
    "-log(n+1)*atan(n)",
    "n**(1/3)-n**(1/2)",
    "-floor(2*log(n+1))",
    "-(Mod(n,3)+1)*log(n+1)",
    "-log(n**2+1)/2-log(log(n+2))",
)
formulas = st.sampled_from(SIMPLE)


@settings(max_examples=20)
@given(formulas, st.integers(1, 50))
def test_a_shift_of_the_index_changes_nothing(text, k):
    shifted = (
        text.replace("n", f"(n+{k})")
        .replace(f"si(n+{k})", "sin")
        .replace(f"ata(n+{k})", "atan")
        .replace(f"harmo(n+{k})ic", "harmonic")
    )
    assert check_convergence(shifted).verdict is check_convergence(text).verdict


@settings(max_examples=20)
@given(formulas, st.sampled_from(("sin(n)", "cos(n**2)", "3*atan(n)", "1/(n+1)", "frac(n/3)")))
def test_a_bounded_term_changes_nothing(text, bounded):
    assert check_convergence(f"{text}+{bounded}").verdict is check_convergence(text).verdict


@settings(max_examples=20)
@given(st.integers(1, 99), st.integers(1, 99), st.sampled_from((1, 2)))
def test_a_factor_of_n_inside_logs_changes_nothing(p, q, c):
    text = f"-log({p}*n/{q}+2)-{c}*log(log({q}*n/{p}+3))"
    assert check_convergence(text).converges is (c == 2)


@settings(max_examples=20)
@given(formulas)
def test_exp_of_log_changes_nothing(text):
    assert check_convergence(f"log(exp({text}))").verdict is check_convergence(text).verdict


@settings(max_examples=20)
@given(formulas, st.sampled_from(("log(log(n+3))", "sqrt(n)", "1/(n+1)", "2+sin(n)", "|sin(n)|")))
def test_where_a_series_converges_a_smaller_one_does(text, positive):
    smaller = check_convergence(f"{text}-({positive})").converges
    assert not (check_convergence(text).converges and smaller is False)


# -- conditions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "domains", "shown"),
    [
        ("-r1*log(1+r2*n)", {}, "r1 > 1"),
        (
            "-a*log(n+1)-b*log(log(n+3))",
            {"a": "real", "b": "real"},
            "(a > 1) | (Eq(a, 1) & (b > 1))",
        ),
        ("-(n**a-n**b)", {}, "a > b"),
        ("-a*log(n+1)", {"a": "[0, 2)"}, "a > 1"),
        ("-a*log(n+1)", {"a": "(-1, 1]"}, "False"),
        ("-a*log(n+1)", {"a": "(1, 3)"}, "True"),
        ("-a*log(n+1)", {"a": "[1, 3)"}, "a > 1"),
        ("-log(n)*(a**2-a)", {"a": "real"}, "(a > 1/2 + sqrt(5)/2) | (a < 1/2 - sqrt(5)/2)"),
        (
            "-a*n-b*log(n+1)-c*log(log(n+2))",
            dict.fromkeys("abc", "nonnegative"),
            "(a > 0) | (b > 1) | (Eq(b, 1) & (c > 1))",
        ),
        ("-a*log(n)+b*log(n)**2", {"a": "real", "b": "real"}, "(b < 0) | (Eq(b, 0) & (a > 1))"),
        ("-n**a*log(n)**b", {"a": "nonnegative", "b": "real"}, "(a > 0) | (b > 1)"),
        ("-a*log(n+1)/log(1+L)", {}, "a > log(L + 1)"),
        ("-(a+1/sqrt(log(n)))*log(n)", {"a": "real"}, "a >= 1"),
        ("-m*n", {"m": "real"}, "m > 0"),
        ("-r*n**q", {"r": "real", "q": "real"}, "(q > 0) & (r > 0)"),
        ("-log(n+1)*(a+b*sin(n))", {}, "a > b + 1"),
        ("log(a)*log(n+1)", {}, "a < exp(-1)"),
        ("-sqrt(a)*n", {"a": "real"}, "a > 0"),
        ("-n/a", {"a": "real"}, "a > 0"),
        ("-log(a)*log(n)", {"a": "positive"}, "a > E"),
        ("-a*b*log(n+1)", {"a": "positive", "b": "positive"}, "a*b - 1 > 0"),
        ("-log(n)*(a+sin(n))-log(log(n))", {"a": "real"}, "a >= 2"),
        ("-Min(a*log(n),b*log(n))", {"a": "positive", "b": "positive"}, "(a > 1) & (b > 1)"),
        ("-a*log(n)-(2-a)*2*log(log(n))", {"a": "real"}, "a >= 1"),
        ("-(a+(-1)**n)*log(n)", {"a": "real"}, "a > 2"),
        ("-(a**2+b**2)*log(n+1)", {"a": "real", "b": "real"}, "a**2 + b**2 - 1 > 0"),
        ("-sqrt(a)*log(1+n)", {"a": "positive"}, "a > 1"),
        ("-a^(1/3)*log(1+n)", {"a": "positive"}, "a > 1"),
        ("-exp(a)*log(1+n)", {"a": "real"}, "a > 0"),
        ("-exp(-a)*log(1+n)", {"a": "real"}, "a < 0"),
        ("-(2-sqrt(a))*log(1+n)", {"a": "positive"}, "a < 1"),
        ("-(exp(a)-1)*log(1+n)", {"a": "real"}, "a > log(2)"),
        ("-a*log(1+n)-Mod(n,64)", {}, "a > 1"),
    ],
)
def test_conditions_are_shown_in_their_simplest_form(text, domains, shown):
    assert str(check_convergence(text, assumptions=domains).condition) == shown


def test_a_condition_can_be_evaluated(refusal):
    result = check_convergence("-a*log(n+1)-b*log(log(n+3))")
    at = (("1.2", 1), (1, "1.0"), (1, "1.000001"))
    assert [result.at(a=a, b=b) for a, b in at] == [True, False, True]
    assert str(result.at(a=1)) == "b > 1" and check_convergence("-log(n+1)").at() is False
    for values, message in (
        ({"c": 1}, "no parameter 'c'"),
        ({"a": -1}, "outside its domain"),
        ({"a": 7**9000}, "more than 12000 bits"),
        ({"a": sympy.Rational(1, 7**9000)}, "more than 12000 bits"),
        ({"a": "x"}, "not a rational"),
    ):
        refusal(message, result.at, **values)


def test_a_value_must_be_what_a_formula_may_hold(refusal):
    large = sympy.Integer(7) ** 9000  # more digits than Python writes
    for value in (int(large), 1 / large, sympy.airyai(1), sympy.I, sympy.zoo, sympy.nan):
        refusal("", check_convergence, "-a*n", a=value)
    assert check_convergence("-a*n", a=sympy.Float("0.1")).verdict == "converges"


@pytest.mark.parametrize(
    ("asked", "options", "read_off", "wanted"),
    [
        ("alibi", {"bca": 8}, lambda found: found.support, 16),
        ("-n/8", {"budget_s": 0}, lambda found: found.at(), None),
        ("-n/8", {"budget_s": 0}, lambda found: found.fields()["condition"], None),
        ("-n/8", {"budget_s": 0}, lambda found: found.remarks, ()),
        ("-a*log(n+1)", {}, lambda found: found.fields()["condition"], "a > 1"),
        ("rope", {}, lambda found: found.proof.claim, "nothing follows from the theorem"),
        ("rope", {}, lambda found: [step.rule for step in found.proof.steps], ["scope"]),
        (["-n/4", "0", "0"], {}, lambda found: [*found.claims()], ["Head_1", "Head_2"]),
        (
            "-r1*log(1+r2*n)",
            {"assumptions": {"r2": "nonnegative"}},
            lambda found: found.assumptions,
            (("r1", "positive"), ("r2", "nonnegative")),
        ),
    ],
)
def test_what_a_verdict_holds(asked, options, read_off, wanted):
    assert read_off(check_convergence(asked, **options)) == wanted


# -- what the result says -------------------------------------------------------------------------


def test_skipped_terms_are_those_at_which_a_need_fails_in_integers():
    rng, holds = random.Random(5), {"log": lambda x: x > 0, "sqrt": lambda x: x >= 0}
    for function, need in [*holds.items(), ("1/", lambda x: x != 0)] * 12:
        places = {*range(-4, rng.choice((8, 300, 4000)))} - {0}  # SymPy splits sqrt(n*(n - 3))
        low, high = sorted(rng.sample(sorted(places), 2))
        factor = rng.randint(1, 5)
        p = read(f"-{function}({factor}*(n-({low}))*(n-({high})))-2*n")
        values = [factor * (t - low) * (t - high) for t in range(4096)]
        assert skipped_terms(p) == tuple(t for t, x in enumerate(values) if not need(x)), p


@pytest.mark.parametrize(
    ("text", "first", "least", "most"),  # the first distances, and how many there are
    [
        ("-log(log(n))", (0, 1), 2, 2),
        ("-2*log(1+n)", (), 0, 0),
        ("-exp(exp(exp(n)))", (), 0, 0),  # too large for a float, and not undefined
        ("-(n-2)^n", (), 0, 0),
        ("-(n-2)^(n+1)-n", (), 0, 0),
        ("log(1-tanh(log(n)/2))", (0,), 1, 1),
        ("-log(n-2)-1/(n-3)-sqrt(n-1)", (0, 1, 2, 3), 4, 4),
        ("log(cos(pi*n/128))", (64, 65, 66), 2001, 4096),
        ("-n*log(sin(n)+Mod(n,2))", (0, 4, 6, 10), 901, 4096),
        ("-n*log(n-20)", tuple(range(21)), 21, 21),
        ("-2*log(n-7)", tuple(range(8)), 8, 8),
        ("-1/(n-4094)-n", (4094,), 1, 1),
        ("-1/(n-4095)-n", (), 0, 0),
    ],
)
def test_skipped_terms(text, first, least, most):
    found = check_convergence(text)
    assert found.skipped_terms == skipped_terms(read(text))
    assert found.skipped_terms[: len(first)] == first
    assert least <= len(found.skipped_terms) <= most
    told = least > 10 and found.verdict != "undecided"
    assert ("and further distances" in " ".join(str(found).split())) is told


@pytest.mark.parametrize(
    ("biases", "is_family"),
    [
        ([f"-{k}*n/3" for k in range(1, 9)], True),
        ([f"-{k}*n/3" for k in range(1, 9)] * 2, True),
        ([f"{k}*log(log(n+3))" for k in range(1, 9)], True),
        ([f"-{k}*n/3" for k in range(1, convergence.FAMILY)], False),
        ([f"-{k}*n/3" for k in range(1, convergence.FAMILY + 1)], True),
        ([f"-{k}*log(n+1)/4" for k in range(1, 9)], False),  # from 1 on they converge
        ([f"-{k}*n*log(n+1)^a" for k in range(1, 9)], False),
        ([*(f"-{k}*n/3" for k in range(1, 8)), "-sqrt(n)"], False),
        ([*(f"-{k}*n/3" for k in range(1, 8)), "n/3"], False),
        ([f"{k}*log(-n)" for k in range(1, 9)], False),
    ],
)
def test_a_family_is_told_by_its_shares(biases, is_family):
    read_biases = tuple(map(read, biases))
    found = convergence._in_one_family(read_biases)
    assert {*found} == ({*read_biases} if is_family else set())
    for bias, answer in list(found.items())[::3]:
        alone = check_convergence(bias)
        assert (answer.verdict, answer.condition) == (alone.verdict, alone.condition)
        assert answer.skipped_terms == alone.skipped_terms
        assert str(answer.proof) == str(alone.proof)


@pytest.mark.timeout(60)
def test_a_budget_holds():
    result = check_convergence("-log(gamma(gamma(gamma(n)+sin(n))+sin(3)))*log(n)", budget_s=0.05)
    assert result.verdict in (Verdict.UNDECIDED, Verdict.CONVERGES)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    [
        "-sec(harmonic(10**6))-n",
        "-digamma((10**6)**2)-n",
        "-cot(n**(10**4)+1)",
        "-harmonic(10**9)*n",
        "-acot((pi/n)**digamma(10**6))",
        "-loggamma(2*10**6+csch(n))",
        "-erfc(n-pi)**(ceiling(10**6)*Piecewise((10**6,1/3<3),(1/3,True)))",
        "-Piecewise((sin(n),harmonic(1/3)-2/a<3),(harmonic(1/3)-2/a,True))",
        "-n**(10**4)-gamma(n)**(10**4)",
        "-(n+1)**999*log(n)",
        "-binomial(10**4,5000)*log(n)",
        "-sin(((n+1)**9+1)**9)",
        "-exp(exp(exp(exp(n))))+exp(exp(exp(exp(n+1))))",
        "-Piecewise((n,2**(10**6/a)<3),(2*n,True))",
        "-Piecewise((n,a**1000<3+a),(2*n,True))",
        "-n*polygamma(3,Piecewise((n,10**6<3),(10**6,True)))",
        "-(10**6/n)**Abs(10**6)",
        "-(10**6)**Piecewise((n,n<3),(10**6,a<3),(a,True))",
        "-floor(10**6*Max(n,10**9)**(1/3))",
        "-Sum(1/(k**40+k+1)**9,(k,1,n))",
        "-log(Product(1+k**60/(k**60+1),(k,1,n)))",
    ],
)
def test_heavy_formulas_do_not_hang(text):
    check_convergence(text, budget_s=0.3)


@pytest.mark.parametrize("text", ["exp(-n/64)", "1/(1+n)", "log(log(n))", "n", "where(n<9,0,-1e9)"])
def test_a_spent_budget_is_an_answer(text):
    """Remarks and skipped terms take their time from the question, too."""
    assert check_convergence(text, budget_s=0).skipped_terms is None


@pytest.mark.timeout(120)
def test_random_formulas_neither_crash_nor_hang(fuzz):
    rng = random.Random(11)
    fuzz.fuzz_reader(1200, rng)
    fuzz.fuzz_engine(40, rng)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("-log(x)", {}, "no n, the distance"),
        ("-a*n", {"assumptions": {"a": "huge"}}, "accepted: positive"),
        ("-a*n", {"assumptions": {"a": "[2, 1]"}}, "empty interval"),
        ("-a*n", {"assumptions": {"b": "real"}}, "does not contain"),
        ("-a*n", {"assumptions": {"a": "real"}, "a": 2}, "given a value and an assumption"),
        ("-a*n", {"budget_s": -1}, "a number of seconds, at least 0"),
        ("-a*n", {"budget_s": "1"}, "a number of seconds, at least 0"),
        ("log(-n)", {}, "not real for large n"),
        ("sqrt(2-n)", {}, "not real for large n"),
        ("(-n)**(1/3)", {}, "not real for large n"),
        ("acos(n)", {}, "not real for large n"),
        ("1/(n-n)", {}, "division by zero"),
        ("log(-1-sin(n)**2)", {}, "not real for large n"),
        ("-(-2)**a*n", {}, "not real for large n"),
    ],
)
def test_bad_input(refusal, text, options, message):
    refusal(message, check_convergence, text, **options)


@pytest.mark.parametrize("name", ["alibi", "sandwich", "sandwich_smoothed"])
def test_heads_of_one_family_are_decided_as_each_alone(name):
    """Once with the factor as a parameter: verdict, rules and values are those of a single head."""
    for h, found in enumerate(check_convergence(name).heads[::3]):
        alone = check_convergence(encoding(name).head(1 + 3 * h))
        assert (found.verdict, found.condition) == (alone.verdict, alone.condition)
        assert [s.rule for s in found.proof.steps] == [s.rule for s in alone.proof.steps]
        assert [s.text for s in found.proof.steps] == [s.text for s in alone.proof.steps]
        check_proof(found)


# -- periodic parts of any length, and rates of terms that swing -----------------------------------

LONG = [
    ("-Mod(n,64)", "diverges"),
    ("-n+Mod(n,64)", "converges"),
    ("sin(n*pi/7)*sin(n*pi/5)", "diverges"),
    ("-n/8+sin(n*pi/7)*sin(n*pi/11)", "converges"),
    ("-log(1+n)-Mod(n,100)/100", "diverges"),
    ("-2*log(1+n)+Mod(n,64)", "converges"),
    ("(-1)^n*Mod(n,64)", "diverges"),
    ("Mod(n,10^9)", "diverges"),
    ("-n*(1+Mod(n,64))", "converges"),
    ("-n*Mod(n,64)", "diverges"),  # by its residue class 0
    ("-Mod(n,64)*log(1+n)", "diverges"),
    ("-(1+Mod(n,64))*log(1+n)", "diverges"),
    ("-(11/10+Mod(n,64))*log(1+n)", "converges"),
    ("sqrt(Mod(n,51))-n^(1/2)", "converges"),
    # the least exponent on the integers is above 1, that on the reals below
    ("-log(1+n)*(2+1001/1000*sin(pi*n/31))", "converges"),
    ("-log(1+n)*(2+11/10*sin(pi*n/101))", "diverges"),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("formula", "verdict"), LONG)
def test_a_long_period_is_decided(formula, verdict):
    found = check_convergence(formula, budget_s=60)
    assert found.verdict == verdict
    check_proof(found)  # raises where a step is false


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("-log(1+n)*(1+sin(n)/2)", ""),
        ("-log(1+n)*(1+sin(n))", ""),
        ("-log(1+n)*(3/2+sin(n))", ""),
        ("-log(1+n)*(2+9/10*sin(n))", ""),
        ("cos(n)+cos(2*n)", ""),
        ("rope_surrogate", ""),
        ("(-1)^n*Mod(n,64)", ""),
        ("-2*log(1+n)+sin(n)", "about like 1/n^2"),  # up to bounded factors
        ("-n*(1+sin(n)/2)", "faster than any power"),
        ("-2*log(1+n)", "about like 1/n^2"),
        ("-sqrt(log(1+n))", "more slowly than any power"),
    ],
)
def test_a_rate_is_told_of_terms_not_of_a_bound(formula, said):
    sentence = check_convergence(formula).text(unicode=False).split("p(n)")[0]
    assert ("its terms" in sentence) == bool(said) and said in sentence
