"""The prover's functions are total: what a certificate prints has the formula's value at every n.

A reader of the prover's terms with the prover's values, `ln x = 0` for x <= 0, `Rpower x y =
exp (y ln x)` and `/ 0 = 0`, is held against the float64 table of the formula.
"""

import itertools
import math
import re
from contextlib import nullcontext
from fractions import Fraction

import numpy as np
import pytest
import sympy

from farfield import check_convergence, encoding
from farfield.theory.certificates import NoCertificate
from farfield.theory.certificates.prover_forms import Form, coq_name, form, without_roots
from farfield.theory.certificates.totality import has_values, total
from farfield.theory.functions.nodes import Lookup, Root, n

LENGTH = 40


class Prover:
    """Evaluates a term of the prover at one n, as the prover's own functions do."""

    def __init__(self, text, values):
        self.tokens = re.findall(r"[A-Za-z_][\w.']*|\d+|=>|\S", text)
        self.values = values
        self.at = 0

    def accept(self, *tokens):
        if self.at < len(self.tokens) and self.tokens[self.at] in tokens:
            self.at += 1
            return self.tokens[self.at - 1]
        return ""

    def expect(self, token):
        assert self.accept(token), (token, self.tokens[self.at :])

    def term(self):
        if self.accept("if"):
            condition = self.condition()
            self.expect("then")
            first = self.term()
            self.expect("else")
            second = self.term()
            return first if condition else second
        value = self.product()
        while op := self.accept("+", "-"):
            other = self.product()
            value = value + other if op == "+" else value - other
        return value

    def product(self):
        value = self.signed()
        while op := self.accept("*", "/"):
            other = self.signed()
            value = value * other if op == "*" else value * inverse(other)
        return value

    def signed(self):
        if self.accept("-"):
            return -self.signed()
        if self.accept("/"):
            return inverse(self.signed())
        base = self.applied()
        return float(base) ** int(self.atom()) if self.accept("^") else base

    def applied(self):
        name = self.tokens[self.at]
        if name in FUNCTIONS:
            self.at += 1
            count, function = FUNCTIONS[name]
            return function(*(self.atom() for _ in range(count)))
        if self.accept("nth"):
            place = int(self.atom())
            self.expect("[")
            entries = [self.term()]
            while self.accept(";"):
                entries.append(self.term())
            self.expect("]")
            tail = self.atom()
            return entries[place] if place < len(entries) else tail
        if self.accept("sum_n_m"):
            for token in ("(", "fun", "i'", "=>"):
                self.expect(token)
            begin, sums = self.at, []
            end = begin + body(self.tokens[begin:])
            self.at = end + 1
            low, high = int(self.atom()), int(self.atom())
            after = self.at
            for k in range(low, high + 1):
                self.at, self.values = begin, {**self.values, "i'": k}
                sums.append(self.term())
            self.at = after
            return math.fsum(sums)
        return self.atom()

    def atom(self):
        if self.accept("("):
            value = self.term()
            self.expect(")")
            return value
        token = self.tokens[self.at]
        self.at += 1
        return int(token) if token.isdigit() else {**NAMES, **self.values}[token]

    def condition(self):
        if self.accept("("):
            value = self.condition()
            self.expect(")")
            return value
        name = self.tokens[self.at]
        self.at += 1
        if name == "negb":
            return not self.condition()
        if name in ("andb", "orb"):
            both = self.condition(), self.condition()
            return all(both) if name == "andb" else any(both)
        a, b = self.atom(), self.atom()
        return {"Rltb": a < b, "Rleb": a <= b, "Reqb": a == b}[name]


def body(tokens):
    """How many tokens a bracket has before it closes."""
    depth = 0
    for k, token in enumerate(tokens):
        depth += (token == "(") - (token == ")")
        if depth < 0:
            return k
    raise AssertionError(tokens)


def ln(x):
    return math.log(x) if x > 0 else 0.0


def inverse(x):
    return 1 / x if x else 0.0


FUNCTIONS = {
    "INR": (1, float),
    "Finite": (1, float),
    "ln": (1, ln),
    "exp": (1, math.exp),
    "Rtrigo_def.exp": (1, math.exp),
    "cos": (1, math.cos),
    "sin": (1, math.sin),
    "Rabs": (1, abs),
    "Int_part": (1, math.floor),
    "IZR": (1, float),
    "Rpower": (2, lambda x, y: math.exp(y * ln(x))),
    "power": (2, lambda x, y: math.exp(y * ln(x)) if x else float(y == 0)),
    "Rmax": (2, max),
    "Rmin": (2, min),
}
NAMES = {"PI": math.pi, "m_infty": -math.inf}


def in_the_prover(source, values):
    """The definition of p of a certificate, at the first n."""
    text = " ".join(
        re.search(r"Definition p \(n : nat\) : \w+ := (.*?)\.\s", source, re.S)[1].split()
    )
    return np.array([Prover(text, {**values, "n": k}).term() for k in range(LENGTH)])


# Each function and operator that is printed, with arguments that are 0, negative or undefined at
# some n; the last three begin where the formula has no value.
FAITHFUL = [
    "-sqrt(n)",
    "-n^(3/2)",
    "-r1*n^r2",
    "-2/n",
    "-log(n)",
    "-log(n)-log(log(n))",
    "-n*log(n)",
    "-sqrt(n+1)+sqrt(n)-log(n)",
    "-2*log(n)/(1+n)-log(n+1)",
    "-log(n^2-3*n+1)",
    "-(n-5)^(1/2)",
    "-a*log(log(n))^(1/3)",
    "-n^(-1/2)-n",
    "-abs(n-3)^(1/2)-n/4",
    "-Max(a,b)*log(1+n)",
    "-Min(a,2)*log(n)",
    "-Max(n,a)",
    "-where(n<3,0,log(n-2)*2)",
    "-where(n>=1,2*log(n),0)",
    "where(n<9,-sqrt(n),-oo)",
    "where(n<4,-n,-oo)-log(n)",
    "where(n<3,-n,where(n<6,-oo,-2*log(n)))",
    "-E*log(n)",
    "-2*log(sqrt(n+1)-sqrt(n))-5*log(n+1)",
    "cos(2*pi*n/3)-4*log(n+1)",
    "-log(n+pi)^2",
    "-n/(1+sqrt(n))",
    "-n+2*sin(n)",
    "-where((n<3)&(n>1),0,2)*log(n+1)",
    "-Sum(log(n+k),(k,1,3))",
    "log((n+1)^(1/3)-n^(1/3))*4",
    "where(n<5,1,0)-2*log(n+1)",
    "-2*log(log(n))^(1/3)*log(n+1)+where(n<w,0,-oo)",
    "-exp(-n)-2*log(n+1)",
    "-log(n)-2*log(log(n)-log(log(n)))",
    "-log(n)-log(log(log(n)))",
    "n*log(1-log(n)/n)",
    "-n-log(n-10)",
    "where(n<7,0,-log(n-4))-2*log(n+1)",
    "-2*log(n+1)-n^2/(n-3)",
    "-log(n)^a*log(n+1)",
    "-2*asinh(n)",
    "-acosh(n)",
    "-100*tanh(n/100)",
    "-log(sinh(log(n)))",
    "-2*floor(log(n+2))-ceiling(n/7)",
    "-frac(n/3)-2*log(n+1)",
    "-8*Heaviside(n-8)-2*log(n+1)",
    "-n*sin(1/(n+1))*log(n+2)-2*exp(1/(n+1))",
]


POWERS = itertools.product(("-r*n^q", "-r*(n+1)*log(n+1)^q"), ("3/2", "0", "-1"))  # of 0, too


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("formula", "given"), [*((f, {}) for f in FAITHFUL), *((f, {"q": q}) for f, q in POWERS)]
)
def test_the_definition_has_the_formulas_value_at_every_n(formula, given):
    real = dict.fromkeys(given, "real") or None
    found = check_convergence(formula, assumptions=real)
    names = [name for name, _ in found.assumptions]
    values = dict(zip(names, ("3/2", "7/4", "5/2"), strict=False)) | given
    table = encoding(formula, assumptions=real, **values).bias(np.arange(LENGTH))[0]
    wanted = np.where(np.isfinite(table), table, -np.inf)  # a term without a value is left out
    shown = in_the_prover(
        found.certificate().source, {k: float(sympy.Rational(v)) for k, v in values.items()}
    )
    np.testing.assert_allclose(shown, wanted, rtol=1e-12, atol=1e-12)


def scale(exponents, at):
    """`n^a0 (log n)^a1 (log log n)^a2` at a distance, of the exponents as they are printed."""
    powers = [float(Fraction(e.replace(" ", ""))) for e in exponents.split("; ") if e]
    logs = (at, math.log(at), math.log(math.log(at)))
    return math.prod(x**a for x, a in zip(logs, powers, strict=False))


EXPANDED = re.compile(
    r"expands \(fun n : nat => (.*?)\) \[(.*)\] (?:exactly|\(Some \[(.*?)\]\))\) by"
)


@pytest.mark.parametrize(
    "formula",
    [
        "-2*log(n+1)-exp(-n)",
        "-2*log(n+1)*cos(1/(n+1))+sin(n)/2",
        "-n*sin(1/(n+1))*log(n+2)*2",
        "-3*log(n+2)^(3/2)/(2+1/log(n+2))",
        "-(2*n+1)^(1/3)+n^2/(n+1)-n",
        "-2*log(3*n+2)-log(log(5*n+7))",
        "-Max(n,2*log(n+1))-abs(3-n)",
        "-sqrt(n+1)*(n+2)^2/(1+n)^2+exp(1/(n+1))",
        "-where(n<3,0,where(n>5,2,n))*log(n+1)",
    ],
)
def test_what_is_said_of_each_part_holds_far_out(formula):
    """Its terms leave out no more than a multiple of the remainder."""
    source = " ".join(check_convergence(formula).certificate().source.split())
    found = [*filter(None, map(EXPANDED.match, source.split("assert (")))]
    for (part, terms, rest), at in itertools.product((x.groups() for x in found), (10**3, 10**5)):
        each = re.findall(r"\(([^,]*), \[(.*?)\]\)", terms)
        sizes = [Prover(c, {}).term() * scale(e, at) for c, e in each]
        gap = abs(Prover(part, {"n": at}).term() - sum(sizes))
        left_out = 0.0 if rest is None else scale(rest, at)
        assert gap <= 50 * left_out + 1e-9 * max([1, *map(abs, sizes)]), (part, terms, rest)
    assert len(found) >= 2
    facts = re.findall(r"assert \(eventually \(fun n : nat => ([^=]*?) < (.*?)\)\) by", source)
    for (low, high), at in itertools.product(facts, (10**3, 10**5)):
        assert Prover(low, {"n": at}).term() < Prover(high, {"n": at}).term()
    assert len(facts) == formula.count("Max") + formula.count("where")
    assert "Rpower_value" not in source


def test_a_root_of_a_constant_has_the_value_that_is_said():
    source = check_convergence("-2*(8*n+1)^(1/3)-sqrt(9*n+4)").certificate().source
    found = re.findall(r"assert \((Rpower [^=]*) = (\d)\) by", " ".join(source.split()))
    values = {value: Prover(power, {}).term() for power, value in found}
    assert values == pytest.approx({"2": 2, "3": 3})


REFUSED = [
    "-(n-5)^a",  # 25 at n = 0 for a = 2, and no value for a = 1/2
    "-where(log(n)<3,n,2*n)",
    "-(-2)^n*n",
    "-n-exp(where(n<4,0,-oo))",
    "-log(a-1)*n",
]


@pytest.mark.parametrize("formula", REFUSED)
def test_what_cannot_be_printed_faithfully_is_refused(formula):
    with pytest.raises(NoCertificate, match="no certificate for this form"):
        total(encoding(formula).formula)


ALPHA = sympy.Symbol("a", positive=True)


@pytest.mark.parametrize(
    ("formula", "value", "where"),  # None: as it is, everywhere
    [
        ("-log(n+1)", None, None),
        ("-n^2", None, None),
        ("where(n<3,0,n)", None, None),
        ("-sqrt(n)", None, None),
        ("where(n<3,0,-oo)", "0", n < 3),
        ("-log(n)", None, n > 0),
        ("-1/n", None, sympy.Ne(n, 0)),
        ("-log(log(n))", None, (n > 0) & (sympy.log(n) > 0)),
        ("-(n+1)^(a-2)", None, None),
        ("-n^a", None, None),
        ("-n^(a-2)", None, (n > 0) | sympy.Ge(ALPHA - 2, 0, evaluate=False)),
    ],
)
def test_a_total_formula_is_left_alone_and_totals_are_total(formula, value, where):
    bias = encoding(formula).formula
    assert total(bias) == (
        sympy.S(value) if value else bias,
        sympy.true if where is None else where,
    )
    with nullcontext() if where is None else pytest.raises(NoCertificate):
        has_values(bias)


def test_what_a_sum_needs_it_needs_from_its_first_term_on():
    formula = sympy.Sum(sympy.log(n + K), (K, 1, 3))
    assert total(formula) == (formula, True)
    with pytest.raises(NoCertificate, match="has no value unless"):
        total(formula.func(formula.function, (K, 0, 3)))


def test_what_is_rounded_stays_as_it_is_written():
    whole = total(sympy.ceiling(n / 2 + 1, evaluate=False))
    assert whole == (-sympy.floor(-n / 2 - 1, evaluate=False), True)


def test_a_mask_between_pieces_leaves_them_as_they_are():
    formula = pieces((-n, n < 3), (-sympy.oo, n < 5), (-n, True))
    assert total(formula) == (pieces((-n, n < 3), (-n, True)), (n >= 5) | (n < 3))


K = sympy.Symbol("k", integer=True, positive=True)
TABLE = "nth n [1; 2] (ln (INR n)) - ln (INR n)"
A, X = sympy.Symbol("a", positive=True), sympy.Symbol("x", real=True)
HALF, E, PI = sympy.Rational(1, 2), sympy.E, sympy.pi


def pieces(*given):
    return sympy.Piecewise(*given, evaluate=False)


def table(index):
    return Lookup(index, sympy.Tuple(1, 2), -n)


FORMS = [  # a part, as the prover has it: a word of its own, an operator, brackets where needed
    (sympy.S(-3), "-3"),
    (-HALF, "-1 / 2"),
    (K, "INR k"),
    (E + PI, "exp 1 + PI"),
    (n - 1, "INR n - 1"),
    (-n - 1, "- INR n - 1"),
    (n - A + 1, "- a + INR n + 1"),
    (-2 * n, "-2 * INR n"),
    (n / 2, "1 / 2 * INR n"),
    (-n * (n + 1), "- (INR n * (INR n + 1))"),
    (-A * n, "- a * INR n"),
    (-(A + 1) * n, "(- a - 1) * INR n"),
    (A * (n + 1), "a * (INR n + 1)"),
    (A * (X - 1) / 2, "1 / 2 * a * (x - 1)"),
    (-A * X, "- (x * a)"),
    (A / X, "a / x"),
    (1 / A, "/ a"),
    (n / (n + 1), "INR n / (INR n + 1)"),
    (1 / (n + 1), "/ (INR n + 1)"),
    (-1 / (n + 1), "-1 / (INR n + 1)"),
    (1 / (n * (n + 1)), "/ INR n / (INR n + 1)"),
    (n / (n + 1) ** 2, "INR n / (INR n + 1) ^ 2"),
    (n * sympy.log(n + 1) / (A * (n + 2)), "/ a * INR n * ln (INR n + 1) / (INR n + 2)"),
    (-(n**2), "- INR n ^ 2"),
    (A**-2, "/ a ^ 2"),
    (sympy.sqrt(n), "power (INR n) (1 / 2)"),
    (sympy.sqrt(n + 1), "Rpower (INR n + 1) (1 / 2)"),
    (sympy.sqrt(A), "Rpower a (1 / 2)"),
    (n**-A, "/ power (INR n) a"),
    ((n + 1) ** A, "Rpower (INR n + 1) a"),
    (A**n, "Rpower a (INR n)"),
    (A**-n, "Rpower a (- INR n)"),
    (Root(2, HALF), "Rpower 2 (1 / 2)"),
    (sympy.log(n + 1) ** 2, "ln (INR n + 1) ^ 2"),
    (sympy.exp(-n / A), "exp (-1 / a * INR n)"),
    (3 * sympy.cos(n), "3 * cos (INR n)"),
    (sympy.sin(n / 3), "sin (1 / 3 * INR n)"),
    (sympy.floor(n / 2), "IZR (Int_part (1 / 2 * INR n))"),
    (sympy.Abs(n - 3), "Rabs (INR n - 3)"),
    (sympy.Max(n, A), "Rmax a (INR n)"),
    (sympy.Min(n, 3), "Rmin 3 (INR n)"),
    (
        pieces((n, n < 3), (n + 1, n <= 9), (2 * n, True)),
        "if Rltb (INR n) 3 then INR n else if Rleb (INR n) 9 then INR n + 1 else 2 * INR n",
    ),
    (1 + pieces((n, n > 3), (A, True)), "(if Rltb 3 (INR n) then INR n else a) + 1"),
    (table(n), "nth n [1; 2] (- INR n)"),
    (
        sympy.Sum(sympy.log(n + K) * X, (K, 1, 3)),  # a counter that no parameter is called
        "sum_n_m (fun i' => x * ln (INR i' + INR n)) 1 3",
    ),
    (
        sympy.Sum(sympy.sqrt(n + K + 1) + sympy.sqrt(n + K), (K, 0, 3)),  # which is 0 at first
        "sum_n_m (fun i' => power (INR i' + INR n) (1 / 2) + Rpower (INR i' + INR n + 1) (1 / 2)) "
        "0 3",
    ),
    (pieces((0, sympy.Ne(n, 3)), (1, True)), "if negb (Reqb (INR n) 3) then 0 else 1"),
    (
        pieces((0, (n > 1) & (n < 3)), (1, True)),
        "if andb (Rltb 1 (INR n)) (Rltb (INR n) 3) then 0 else 1",
    ),
    (
        pieces((0, (n < 1) | (n >= 7)), (1, True)),
        "if orb (Rleb 7 (INR n)) (Rltb (INR n) 1) then 0 else 1",
    ),
    (
        pieces((0, sympy.Not((n > 1) & (n < 3), evaluate=False)), (1, True)),
        "if negb (andb (Rltb 1 (INR n)) (Rltb (INR n) 3)) then 0 else 1",
    ),
]


@pytest.mark.parametrize(("e", "shown"), FORMS, ids=lambda x: str(x)[:40])
def test_a_part_is_printed_with_its_value(e, shown):
    assert form(e).show() == shown
    for place in (0, 1, 2, 3, 7, 12):
        values = {"n": place, "a": 1.5, "x": -0.75, "k": 2}
        at = {n: place, A: sympy.Rational(3, 2), X: sympy.Rational(-3, 4), K: 2}
        wanted = (
            without_roots(e).subs(at).doit() if e != table(n) else [1, 2, *[-place] * 11][place]
        )
        if math.isfinite(wanted := complex(wanted).real):
            assert Prover(shown, values).term() == pytest.approx(wanted)


LOG, SUM, PRODUCT = map(form, (sympy.log(n), n + 1, A * n))


@pytest.mark.parametrize(
    ("op", "args", "shown"),
    [
        ("plus", (LOG, SUM), "ln (INR n) + (INR n + 1)"),
        ("minus", (SUM, SUM), "INR n + 1 - (INR n + 1)"),
        ("mult", (PRODUCT, PRODUCT), "a * INR n * (a * INR n)"),
        ("div", (PRODUCT, PRODUCT), "a * INR n / (a * INR n)"),
        ("mult", (SUM, SUM), "(INR n + 1) * (INR n + 1)"),
        ("opp", (form(-n),), "- - INR n"),
        ("inv", (form(1 / (n + 1)),), "/ / (INR n + 1)"),
        ("opp", (PRODUCT,), "- (a * INR n)"),
        ("inv", (PRODUCT,), "/ (a * INR n)"),
        *((op, (LOG,), f"{op} (ln (INR n))") for op in ("ln", "exp", "cos", "sin")),
        ("abs", (LOG,), "Rabs (ln (INR n))"),
        ("floor", (LOG,), "IZR (Int_part (ln (INR n)))"),
        ("finite", (LOG,), "Finite (ln (INR n))"),
        ("rpower", (LOG, LOG), "Rpower (ln (INR n)) (ln (INR n))"),
        ("power0", (LOG, LOG), "power (ln (INR n)) (ln (INR n))"),
        ("max", (LOG, LOG), "Rmax (ln (INR n)) (ln (INR n))"),
        ("min", (LOG, LOG), "Rmin (ln (INR n)) (ln (INR n))"),
        ("lt", (LOG, LOG), "Rltb (ln (INR n)) (ln (INR n))"),
        ("le", (LOG, LOG), "Rleb (ln (INR n)) (ln (INR n))"),
        ("eq", (LOG, LOG), "Reqb (ln (INR n)) (ln (INR n))"),
        ("minus", (form(Lookup(n, sympy.Tuple(1, 2), sympy.log(n))), LOG), TABLE),
    ],
)
def test_a_term_is_in_brackets_where_it_binds_less_tightly(op, args, shown):
    assert Form(op, args, n).show() == shown


@pytest.mark.parametrize(
    ("e", "why"),
    [
        (sympy.Max(n, A, 3), "only two are compared"),
        (sympy.Max(sympy.Min(n, 3), A), "cases within cases: Min"),
        (sympy.Min(sympy.Max(n, 3), A), "cases within cases: Max"),
        (sympy.Abs(sympy.Abs(n - 3) - 2), "cases within cases: Abs"),
        (pieces((n, n < 3), (0, n > 4)), "whose last condition is not True"),
        (pieces((n, sympy.Max(n, A) < 3), (0, True)), "cases within cases: Max"),
        (pieces((n, sympy.ITE(n < 3, n > 1, n > 2)), (0, True)), "the condition ITE"),
        (table(n + 1), r"a table at n \+ 1 instead of n"),
        (sympy.Sum(sympy.log(n + K), (K, 1, n)), "only sums between natural numbers"),
        (sympy.Sum(sympy.log(n + K), (K, -1, 3)), "only sums between natural numbers"),
        (sympy.Sum(sympy.log(n + K), (K, A, 3)), "only sums between natural numbers"),
        (sympy.Sum(sympy.log(n + K * X), (K, 1, 3), (X, 1, 3)), "only sums between natural"),
        (
            sympy.Sum(1 + sympy.Sum(sympy.log(n + K * X), (X, 1, 2)), (K, 1, 3)),
            "a sum within a sum",
        ),
        (sympy.tan(n), "tan.n. has none of the functions covered"),
    ],
    ids=str,
)
def test_a_part_without_a_form_is_named(e, why):
    with pytest.raises(NoCertificate, match=f"no certificate for this form: .*{why}"):
        form(e)


def test_names_of_parameters_are_none_of_the_provers():
    kept, primed = ("a", "ab", "z9", "alpha", "slope", "r12"), ("abc", "n", "p", "le", "A", "sum")
    assert [*map(coq_name, kept)] == [*kept]
    assert [*map(coq_name, primed)] == [f"{name}'" for name in primed]
