"""Certificates without the prover: their statements, their structure, the reader, bad input.

What the prover says of them is checked by `make formal` and `make formal-random`.
"""

import dataclasses
import itertools
import math
import random
import re
from collections import Counter
from contextlib import nullcontext, suppress
from fractions import Fraction

import mpmath
import pytest
import sympy
from battery import BATTERY
from formal.certified import FOLDER, certified

from farfield import InputError, check_convergence, encoding
from farfield.theory.certificates import Certifiable, NoCertificate, certificate
from farfield.theory.certificates import prover as prover_module
from farfield.theory.certificates.certificate import regenerated
from farfield.theory.certificates.constants import (
    _bounds,
    _check,
    _digits_of,
    _follows,
    _in_parts,
    _is_arithmetic,
    _is_simple,
    kept_roots,
    logarithm,
    root,
)
from farfield.theory.certificates.source import relation, statement
from farfield.theory.encodings import CATALOGUE
from farfield.theory.functions.nodes import Root, n

SERIES = "ex_series (fun n => exp (p n))"


# -- statements -----------------------------------------------------------------------------------

STATEMENTS = {  # formula -> the definition, the theorem
    "-2*log(1+n)": ("-2 * ln (INR n + 1)", SERIES),
    "-log(1+n)": ("- ln (INR n + 1)", f"~ {SERIES}"),
    "-log(n)-log(log(n))": (
        "if andb (Rltb 0 (INR n)) (Rltb 0 (ln (INR n))) then Finite (- ln (INR n) - "
        "ln (ln (INR n))) else m_infty",
        f"~ {SERIES}",
    ),
    "-r1*n^r2": (
        "- r1 * power (INR n) r2",
        f"0 < r1 -> 0 < r2 -> {SERIES}",
    ),
    "-n/256": ("-1 / 256 * INR n", SERIES),
    "-r1*log(1+r2*n)": ("- r1 * ln (r2 * INR n + 1)", f"0 < r1 -> 0 < r2 -> ({SERIES} <-> r1 > 1)"),
    "-sqrt(n+1)+sqrt(n)-log(n+1)": (
        "power (INR n) (1 / 2) - Rpower (INR n + 1) (1 / 2) - ln (INR n + 1)",
        f"~ {SERIES}",
    ),
    "cos(n)-pi": ("cos (INR n) - PI", f"~ {SERIES}"),
    "Piecewise((0,n<512),(-oo,True))": ("if Rltb (INR n) 512 then Finite 0 else m_infty", SERIES),
    "-log(1+n^2)": ("- ln (INR n ^ 2 + 1)", SERIES),
}


@pytest.mark.parametrize("formula", STATEMENTS)
def test_the_definition_is_the_formula_and_the_theorem_its_verdict(formula):
    found = check_convergence(formula).certificate()
    defined, verdict = STATEMENTS[formula]
    said = " ".join(found.source.split())
    assert f": {'Rbar' if 'm_infty' in defined else 'R'} := {defined}. " in said
    assert found.statement == f"Theorem verdict : {verdict}."
    assert said.count(" ".join(found.statement.split())) == 1


A, C = sympy.symbols("a c", positive=True)
B = sympy.Symbol("b", real=True)


@pytest.mark.parametrize(
    ("domain", "assumed"),
    [
        ("positive", "0 < b -> "),
        ("nonnegative", "0 <= b -> "),
        ("[1, 3)", "1 <= b -> b < 3 -> "),
        ("(-1, 3]", "-1 < b -> b <= 3 -> "),
        ("real", ""),
    ],
)
def test_the_theorem_assumes_what_the_domain_says(domain, assumed):
    claim = Certifiable(-B * sympy.log(n + 1), {"b": domain}, B > 1)
    body = f"{SERIES} <-> b > 1"
    assert statement(claim) == f"Theorem verdict : {assumed}{f'({body})' if assumed else body}."
    always = dataclasses.replace(claim, condition=sympy.true)
    assert statement(always) == f"Theorem verdict : {assumed}{SERIES}."


@pytest.mark.parametrize(
    ("condition", "shown"),
    [
        ((A > 1) & (B < 2), r"a > 1 /\ b < 2"),
        ((A > 1) | (B <= 2), r"b <= 2 \/ a > 1"),
        (sympy.Ne(B, 2) & ((A >= 1) | (B < 0)), r"(a >= 1 \/ b < 0) /\ b <> 2"),
        (sympy.Eq(B, 2) | ((A > 1) & (B < 0)), r"(a > 1 /\ b < 0) \/ b = 2"),
    ],
)
def test_a_condition_as_a_proposition(condition, shown):
    assert relation(condition) == shown


@pytest.mark.parametrize(
    ("heads", "count", "verdicts", "formula"),  # None: each head has one of its own
    [
        (encoding("alibi", heads=2), 2, [SERIES, SERIES], encoding("alibi").formula),
        (encoding("-n"), 0, [SERIES], -n),
        (["-n/4", "0", "0"], 2, [SERIES, f"~ {SERIES}"], None),
        (["0", "0"], 0, [f"~ {SERIES}"], None),
    ],
)
def test_heads_that_differ_have_a_theorem_each(heads, count, verdicts, formula):
    found = check_convergence(heads).certificate()
    stated = [f"Theorem verdict : {each}." for each in verdicts]
    assert found.statement.splitlines() == stated and " ".join(stated) in repr(found)
    modules = re.findall(r"^Module (\w+)\.$", found.source, re.M)
    spelled = re.findall(r"(Head_.): the exp-series of p", found.source)
    assert modules == spelled == [f"Head_{k}" for k in range(1, count + 1)]
    assert found.formula == formula


# -- the catalogue --------------------------------------------------------------------------------


def test_every_bias_of_the_catalogue_has_its_committed_certificate():
    written = {name: found.source for name, found in certified()}
    there = {f.stem: f.read_text(encoding="utf-8") for f in FOLDER.glob("*.v")}
    assert written == there
    biases = {name for name in CATALOGUE if encoding(name).formula is not None}
    assert biases <= set(there)
    assert "(ex_series (fun n => exp (p n)) <-> r1 > 1)." in there["kerple_log"]


# -- structure ------------------------------------------------------------------------------------


def structure(source):
    """Every theorem has one proof, closed; with parameters the cases are those that are used."""
    words = Counter(re.findall(r"^\s*(Theorem|Proof|Qed|Section|End|Definition)\b", source, re.M))
    assert words["Theorem"] == words["Proof"] == words["Qed"] > 0
    assert not re.search(r"\b(Admitted|admit|Axiom|Parameter|Hypothesis|Abort)\b", source)
    assert source.startswith("(** The exp-series of p(n) = ")
    for part in re.split(r"^Module ", source, flags=re.M):
        cases = re.findall(r"^Theorem (case_\d+)", part, re.M)
        assert cases == [f"case_{k}" for k in range(1, len(cases) + 1)]
        assert set(cases) == set(re.findall(r"apply (case_\d+)", part))


def test_cases_that_the_domain_excludes_are_contradictions():
    """Of a in [1, 2] neither a <= 1/2 nor a < 1."""
    found = check_convergence("-Max(a,1/2)*log(n+1)", assumptions={"a": "[1, 2]"})
    assert found.certificate().source.count("{ exfalso. contrary. }") == 3


@pytest.mark.parametrize("count", [6, pytest.param(40, marks=pytest.mark.slow)])
def test_random_formulas_are_certified_as_they_were_decided(altered, count):
    cases = [altered.certified(*given) for given in altered.formulas(count, seed=7)]
    decided = [c for c in cases if c.result is not None]
    written = [c for c in decided if c.certificate is not None]
    assert len(decided) >= 0.75 * count and len(written) >= 0.95 * len(decided)
    for c in written:
        structure(c.certificate.source)
        stated, again = regenerated(c.certificate.source)
        assert again == c.certificate.source
        assert [*map(statement, stated.values())] == [c.certificate.statement]
        wanted = {"converges": SERIES, "diverges": f"~ {SERIES}", "conditional": "<->"}[c.verdict]
        assert wanted in c.certificate.statement
        assert c.verdict != "converges" or "~" not in c.certificate.statement


@pytest.mark.slow
def test_most_of_the_battery_is_certified():
    """150 of 217; what residue classes or special functions decide has no certificate."""
    written = 0
    for entry in BATTERY:
        with suppress(InputError):
            found = check_convergence(entry["expr"], assumptions=entry["params"] or None)
            written += bool(found.certificate().source)
    assert written >= 150


# -- a file follows from its words ----------------------------------------------------------------

ALTERED = (
    "-2*log(1+n)",
    "-r1*log(1+r2*n)",
    "-n/256-log(n+2)",
    "-a*n^b",
    "cos(n)-pi*log(n+1)",
    "Piecewise((0,n<512),(-oo,True))",
)


@pytest.mark.parametrize(
    "kind", ["verdict", "coefficient", "argument", "condition", "rung", "term"]
)
def test_an_altered_file_is_not_what_its_words_give(altered, kind):
    made = 0
    for formula in ALTERED:
        source = check_convergence(formula).certificate().source
        for seed in range(4):
            other = altered.MUTATIONS[kind](source, random.Random(seed))
            if other not in (None, source):
                made += 1
                assert regenerated(other)[1] == source
    assert made >= 2


# -- bounds of constants --------------------------------------------------------------------------

BOUNDED = {  # formula -> the constants whose bounds it needs
    "-n*(log(2)-1/2)": "ln 2",
    "-n*(log(3)-1.0986)": "ln 3",
    "-n*(exp(1/2)-1)": "exp (1 / 2)",
    "-n*(exp(4)-54.5)": "exp 4",
    "n*(e-3)": "exp 1",
    "-n*(sqrt(2)-1.41421356237)": "Rpower 2 (1 / 2)",
    "-n*(3^(2/3)-2)": "Rpower 3 (2 / 3)",
    "-n/log(2)+n": "ln 2, / ln 2",
    "-n*(1/log(1.5)-2)": "ln 2, ln 3, / (- ln 2 + ln 3)",
    "-n/(sqrt(2)+sqrt(3))-n": "Rpower 2 (1 / 2), Rpower 3 (1 / 2), "
    "/ (Rpower 2 (1 / 2) + Rpower 3 (1 / 2))",
    "-n*(1/pi-0.2)": "/ PI",
    "-n*(log(2)-0.69314718)": "",  # too close for what the prover's tactics enclose
    "-n*(1/log(3)-0.9102)": "",
    "-n*(1/log(3)-0.910239)": "",
    "-n/log(1.001)": "",
    "-n/(1+log(2)*log(3))+n": "",
}


def value(constant, names):
    """A constant of a certificate in Python, with values for its logarithms and powers."""
    text = constant.removeprefix("/ ")
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, f"({names[name]!r})")
    shown = eval(text, {"PI": math.pi, "Fraction": Fraction})
    return 1 / shown if constant.startswith("/ ") else shown


@pytest.mark.parametrize("formula", BOUNDED)
def test_bounds_of_constants_hold_and_those_of_inverses_follow(refusal, formula):
    needed = [each for each in BOUNDED[formula].split(", ") if each]
    if not needed:
        refusal("is not enclosed closely enough", check_convergence(formula).certificate)
        return
    source = check_convergence(formula).certificate().source
    found = re.findall(r"assert \((\S+ / \d+) < (.*) < (\d+ / \d+)\) by between", source)
    assert sorted(name for _, name, _ in found) == sorted(needed)
    bounds = {name: [Fraction(end.replace(" ", "")) for end in (a, b)] for a, name, b in found}
    exact = {name: python(name) for name in bounds if not name.startswith("/ ")}
    for name, (low, high) in bounds.items():
        assert low < value(name, exact) < high
        if name.startswith("/ ") and "PI" not in name:  # each corner of what is known of its parts
            for ends in itertools.product(*(bounds[inner] for inner in exact)):
                assert low < value(name, dict(zip(exact, ends, strict=True))) < high


LN2, LN3, LN12 = map(sympy.log, (2, 3, 12))
PI, HALF, LARGE, SPLIT = (
    sympy.pi,
    sympy.Rational(1, 2),
    2 * (10**9 + 7),
    "split_log 12 (2 * 2 * 3); ",
)
VALUE = "apply Rpower_value; [constant | logs; {}constant]"


@pytest.mark.parametrize(
    ("ask", "given", "wanted"),
    [
        (logarithm, (sympy.S(12),), (LN12, "")),
        (logarithm, (sympy.Rational(12, 5),), (LN12 - sympy.log(5), f"logs; {SPLIT}constant")),
        (
            logarithm,
            (sympy.Rational(4, 3),),
            (2 * LN2 - LN3, "logs; split_log 4 (2 * 2); constant"),
        ),
        (logarithm, (sympy.Rational(2, 3),), (LN2 - LN3, "logs; constant")),
        (logarithm, (HALF,), (-LN2, "logs; constant")),
        (logarithm, (B * (B - 1),), (sympy.log(B) + sympy.log(B - 1), "logs; constant")),
        (logarithm, (sympy.Rational(LARGE, 3),), (sympy.log(LARGE) - LN3, "logs; constant")),
        (logarithm, (sympy.S(3),), (LN3, "")),
        (logarithm, (sympy.S.One,), (0, "")),
        (logarithm, (Root(2, HALF),), (LN2 / 2, "logs; constant")),
        (logarithm, (Root(12, HALF),), (LN12 / 2, f"logs; {SPLIT}constant")),
        (logarithm, (Root(4, 2 * HALF / 3),), (2 * LN2 / 3, "logs; split_log 4 (2 * 2); constant")),
        *((_is_simple, (e,), True) for e in (A * B, A**3 * C, A * B - 1, B**2 + A, 1 / A - 1)),
        *((_is_simple, (e,), True) for e in (A**B - 1, A**B * B - 1, 1 / A - B / A)),
        *((_is_arithmetic, (e,), True) for e in (A + B / 2, A * B**-2 - 1)),
        *((_is_arithmetic, (e,), False) for e in (HALF**B, sympy.sqrt(2) * A, PI * A, LN2 - A)),
        *((_is_simple, (e,), False) for e in (B**3, A * B * C - 1, 1 / A - 1 / C, 1 / B - 1)),
        (root, (sympy.S(4), HALF), (2, VALUE.format("split_log 4 (2 * 2); "))),
        (root, (sympy.S(12), HALF), (2 * Root(3, HALF), VALUE.format(SPLIT))),
        (root, (sympy.S(2), HALF), (Root(2, HALF), "")),
        (root, (sympy.S.One, HALF), (1, "")),
        (root, (sympy.S(2), A), (Root(2, A), "")),
        (root, (PI, HALF), (Root(PI, HALF), "")),
        (kept_roots, (sympy.sqrt(6) + sympy.pi**2,), Root(6, HALF) + sympy.pi**2),
        (lambda *g: [*_digits_of(*g)], (1 / LN2 - 1, 1), [(LN2, 2), (1 / LN2, 2), (LN2, 4)]),
        (lambda *g: [*_digits_of(*g)], (LN2 - HALF, 1), [(LN2, 2)]),
        (
            lambda *g: [*_digits_of(*g)],
            (1 / LN2 - sympy.Rational(1442695, 10**6), 1),
            [(LN2, 12), (1 / LN2, 12), (LN2, 6)],
        ),
        (lambda *g: [*_digits_of(*g)], (A / LN2 - 1, 0), [(LN2, 0), (1 / LN2, 0)]),
    ],
)
def test_a_constant_is_split_into_primes(ask, given, wanted):
    assert ask(*given) == wanted


@pytest.mark.parametrize(
    ("e", "s", "facts", "why"),  # None: the prover's arithmetic finds the sign
    [
        (B**3 - 1, 1, [], "a product of many parameters"),
        (B**3 - 1, 1, [(B**3 - 1, 1)], None),
        (B**2 - 1, 1, [], None),
        (LN12 - 2 * LN2 - LN3, 0, [], None),
        (LN2 * LN3 - LN3 / 2, 0, [], "is 0 by more than arithmetic"),
        (LN2 * LN3 - LN3 / 2, 1, [], None),
        (sympy.Max(A, B), 1, [], "the sign of Max"),
    ],
)
def test_the_sign_of_a_constant_is_one_that_the_prover_finds(e, s, facts, why):
    with nullcontext() if why is None else pytest.raises(NoCertificate, match=why):
        _check(e, s, facts)


def test_bounds_of_an_inverse_follow_from_close_ones_of_the_constant():
    found = set()
    for q, digits, known in itertools.product(range(2, 40), (1, 2, 3), (1, 2, 3, 4)):
        constant = sympy.log(q)
        (low, high), ends = _bounds(1 / constant, digits), _bounds(constant, known)
        within = tuple(all(side(1 / end) for end in ends) for side in (low.__lt__, high.__gt__))
        assert _follows(1 / constant, digits, {constant: known}) == all(within)
        found.add(within)
    assert len(found) == 4


def python(name):
    """The value of a logarithm, an exponential or a power of a certificate."""
    kind, *rest = name.split(" ", 1)
    if kind == "Rpower":
        base, _, exponent = rest[0].partition(" ")
        return int(base) ** float(Fraction(exponent[1:-1].replace(" ", "")))
    inner = Fraction(rest[0].strip("()").replace(" ", ""))
    return (math.log if kind == "ln" else math.exp)(inner)


def missed(x, size):
    """How far the 64th power of the cubic of e^-y, y = x/64, is from e^-x, relative to it, times
    e^size; that of e^y misses less."""
    y = x / 64
    cubic = 1 - y + y**2 / 2 - y**3 / 6
    return ((mpmath.exp(-y) / cubic) ** 64 - 1) * mpmath.exp(size)


@pytest.mark.parametrize("function", [sympy.exp, sympy.log])
def test_the_digits_that_the_tactic_finds_are_those_of_its_cubic(function):
    with mpmath.workdps(30):
        for k in range(1, 10):
            error = lambda x: missed(x, x if function is sympy.exp else 0)  # noqa: E731
            border = mpmath.findroot(
                lambda x, k=k, error=error: mpmath.log(error(x)) + k * mpmath.log(10), 2.5 / k
            )
            slack = border / 64 / 16  # a fourth of y, of what grows like y^4
            for factor, found in ((1.001, False), (1 - slack - 0.001, True)):
                x = sympy.Rational(str(border * factor))
                given = x if function is sympy.exp else sympy.Rational(str(mpmath.exp(x)))
                assert _in_parts(function(given), k) == found
    refused = (sympy.exp(-1), sympy.exp(64), sympy.log(sympy.Rational(1, 2)), sympy.exp(sympy.pi))
    refused += (sympy.log(1 + sympy.Rational(1, 10**20)), sympy.log(sympy.pi))  # a float of 0
    assert not any(_in_parts(c, 0) for c in refused)


# -- wrong verdicts -------------------------------------------------------------------------------


@pytest.mark.parametrize("formula", [f for f in ALTERED if "b" not in f and "r1" not in f])
def test_a_wrong_verdict_has_no_certificate(formula):
    (claim,) = check_convergence(formula).claims().values()
    wrong = dataclasses.replace(claim, condition=sympy.Not(claim.condition))
    with pytest.raises((RuntimeError, NoCertificate)):
        certificate(claim.formula, {None: wrong})


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "formula",
    [
        "-Max(a,b)*log(1+n)",
        "-Min(a,b)*log(1+n)",
        "-Max(a,2)*log(1+n)",
        "-Min(a,2)*log(n)",
        "-Max(a,b)*n",
        "-Max(2,3)*log(n+1)",
        "-a*Max(b,1)*log(n+1)",
        "-Max(a,b)*Min(a,b)*log(n+1)",
        "-log(n+Max(a,1))*2",
        "-Max(a,b,c)*log(n+1)",
        "-Max(a,Min(b,2))*log(1+n)",
        "-n^Max(a,b)",
        "-abs(a-b)*log(n+1)",
        "where(n<Max(a,3),0,-oo)",
        "-Max(a*n,Min(b*n,n))",
        "-Max(a,log(2))*log(n+1)",
    ],
)
def test_the_larger_of_parameters_is_certified_or_refused(formula):
    """That such a file compiles is checked by `make formal`, which draws of the same family."""
    for domain in ("positive", "real"):
        domains = {"a": domain} if "a" in formula.replace("Max", "") else None
        found = check_convergence(formula, assumptions=domains)
        if found.verdict == "undecided" or found.reason is not None:
            continue
        try:
            source = found.certificate().source
        except InputError as refused:
            assert str(refused).startswith("no certificate for this form: ")
            assert "\n" not in str(refused)
        else:
            structure(source)


def test_a_certificate_keeps_the_budget_of_the_question(refusal):
    late = dataclasses.replace(check_convergence("-log(1+n)"), budget_s=0.0)
    refusal("budget", late.certificate)


# -- bad input ------------------------------------------------------------------------------------

BAD = {
    "-loggamma(n+1)": "no certificate for this form",
    "-exp(sqrt(log(n+1)))": "no certificate for this form",
    "-LambertW(n+1)": "no certificate for this form",
    "-2*log(n+1)+(-1)^n": "no certificate for this form",
    "-2*log(n+1)-(3/2)^(n/9)": "no certificate for this form",
    "-2*log(n+1)-(1/2)^(a*n)": "no certificate for this form",
    "-2*log(n+1)-exp(n)": "no certificate for this form",
    "-2*log(n+1)*exp(1/(n+1)+1)": "no certificate for this form",
    "-2*log(n+1)-exp(-sqrt(log(n+1)))": "no certificate for this form",
    "-2*log(n+1)-exp(-floor(log(n+1)))": "no certificate for this form",
    "-2*log(n+1)-(pi/4)^n": "no certificate for this form",
    "-2*log(n+1)-Mod(n,3)": "no certificate for this form",
    "-log(1+n)^2/(1+sin(n)^2)": "no certificate for this form",
    "-Max(a,log(2))*log(n+1) --assume a=[1,2]": "irrational constants exclude",
    "-Max(a,b)*Min(a,b)*log(n+1)": "no certificate for this form: the sign of a*b - 1",
    "rope": "no certificate: the verdict is out_of_scope; accepted: converges, diverges, cond",
    "-n --verify": "no prover: coqc is not on the path; accepted: Rocq (Coq) 8.16",
    "--file formulas.txt": "--certificate goes with one formula",
}


@pytest.mark.parametrize("formula", BAD)
def test_no_certificate_is_one_line(complaint, tmp_path, monkeypatch, formula):
    monkeypatch.setenv("PATH", str(tmp_path))
    place = tmp_path / "c.v"
    assert BAD[formula] in complaint("check", *formula.split(), "--certificate", place)
    assert "--verify" in formula or not place.exists()


def test_an_undecided_verdict_has_none(refusal):
    found = check_convergence("-log(n+1)-abs(sin(n))*log(n+1)/n^sin(n)", budget_s=2)
    refusal("no certificate: the verdict is undecided", found.certificate)


def test_a_condition_that_cannot_be_stated_has_none():
    claim = Certifiable(-A * sympy.log(n + 1), {"a": "positive"}, sympy.zeta(3) < A)
    with pytest.raises(NoCertificate, match="no certificate for this form"):
        certificate(claim.formula, {None: claim})
    with pytest.raises(NoCertificate, match=r"the condition .* cannot be stated"):
        relation(sympy.Contains(A, sympy.Interval(0, 1)))


def test_the_file_and_what_is_said_of_it(run, tmp_path):
    place = tmp_path / "kerple.v"
    code, out, err = run("check", "kerple_log", "--certificate", str(place))
    assert code == 0 and err == f"farfield: {place}: certificate written\n" and out
    assert place.read_text() == check_convergence("kerple_log").certificate().source


def test_the_prover_is_asked_and_its_answer_is_told(run, some_prover, tmp_path):
    some_prover(stale="Certificate")
    place = str(tmp_path / "c.v")
    code, out, err = run("check", "-n", "--certificate", place, "--verify")
    assert code == 0 and "checked by the prover" in err and out
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == len(prover_module.closure(prover_module.MODULES)) + 1
    some_prover(code=1, stale="Certificate")
    code, _, err = run("check", "-log(1+n)", "--certificate", place, "--verify")
    assert code == 1 and "the prover rejects" in err and "line 7: Error: No." in err
    assert len((tmp_path / "calls").read_text().splitlines()) == len(calls) + 1
