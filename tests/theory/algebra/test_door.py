"""The door to SymPy: a budget that is kept, failures that are meant, bugs that escape."""

import ast
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import mpmath
import numpy as np
import pytest
import sympy
from sympy.core.parameters import global_parameters

from farfield import check_convergence, encoding, theoretical_receptive_field
from farfield.theory.algebra import door
from farfield.theory.algebra.door import budget, check_time, unless, until
from farfield.theory.algebra.exceptions import Undecided, Unreachable
from farfield.theory.functions import elementary, lambert
from farfield.theory.functions.balls import precision
from farfield.theory.functions.nodes import n

ROOT = Path(__file__).resolve().parents[3]
X = sympy.Symbol("x")


class Endless(sympy.Function):
    """A function that SymPy never finishes to evaluate, as far as a budget is concerned."""

    entered = 0

    @classmethod
    def eval(cls, x):
        cls.entered += 1
        while x != x + 1:
            try:
                x = sympy.expand((x + 1) ** 2) - x**2 - 2 * x
            except Exception:  # nothing that SymPy catches stops the interruption
                continue


def endless():
    return door.supervised(Endless, X)


def test_a_call_that_never_ends_is_ended():
    for _ in range(3):
        with pytest.raises(Unreachable, match="time budget"), until(time.monotonic() + 0.05):
            endless()
    assert Endless.entered >= 3 and not door.inside()
    assert door.expand((X + 1) ** 2) == X**2 + 2 * X + 1


def test_a_debugger_ends_after_an_interruption():
    """Python 3.11 never ends a call under a tracer while a cleared exception is looked for."""
    program = f"""
import sys, time
from farfield.theory.algebra import door
sys.settrace(lambda *event: None)
for call in (lambda: time.sleep({2 * door.STEP_S}), lambda: [0 for _ in range(10**9)]):
    try:
        door.watched(lambda: True, call)
    except door.Interrupted:
        pass
    (lambda: None)()
print("ended")
"""
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert found.stdout == "ended\n"


def test_in_every_thread_and_only_there():
    ended, undisturbed = [], []

    def hopeless():
        with until(time.monotonic() + 0.1):
            try:
                endless()
            except Unreachable:
                ended.append(threading.current_thread().name)

    def quick():
        total = 0
        while len(ended) < 4:
            with until(time.monotonic() + 60):
                total += door.expand((X + 1) ** 3).coeff(X)
        undisturbed.append(total % 3)

    threads = [threading.Thread(target=f) for f in (hopeless,) * 4 + (quick,) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ended)) == 4 and undisturbed == [0, 0]


def test_what_a_call_had_changed_is_put_back():
    def changing():
        global_parameters.evaluate = False
        global_parameters.exp_is_pow = True
        mpmath.mp.prec = 999
        while True:
            sympy.expand((X + 1) ** 2)

    before = mpmath.mp.prec
    with pytest.raises(Unreachable), until(time.monotonic() + 0.05):
        door.supervised(changing)
    assert global_parameters.evaluate and not global_parameters.exp_is_pow
    assert mpmath.mp.prec == before and X + X == 2 * X


def test_no_time_is_left_for_another_call():
    with until(time.monotonic() - 1):
        with pytest.raises(Unreachable):
            check_time()
        with pytest.raises(Unreachable):
            door.factor(X**2 - 1)
    check_time()
    with until(time.monotonic() + 9), until(time.monotonic() + 99):
        assert budget().deadline < time.monotonic() + 10


def test_a_question_that_is_withdrawn_ends_wherever_it_is():
    withdrawn, ended = threading.Event(), []

    def hopeless():
        with pytest.raises(Unreachable), unless(withdrawn.is_set), until(time.monotonic() + 600):
            endless()
        with pytest.raises(Unreachable), unless(withdrawn.is_set):
            check_time()
        check_time()
        ended.append(True)

    entered = Endless.entered
    thread = threading.Thread(target=hopeless)
    thread.start()
    while Endless.entered == entered:
        time.sleep(0.01)
    withdrawn.set()
    thread.join(60)
    assert ended


def test_processor_time_ends_a_step_and_waiting_does_not(monkeypatch):
    monkeypatch.setattr(door, "PATIENCE", 10**9)
    spent, seen = door.after(0.02), list[bool]()
    time.sleep(0.05)
    assert not spent()
    begin = time.thread_time()
    while time.thread_time() < begin + 0.03:
        pass
    thread = threading.Thread(target=lambda: seen.append(spent()))
    thread.start()
    thread.join(60)
    assert spent() and seen == [True]
    monkeypatch.setattr(door, "PATIENCE", 1)
    late = door.after(0.02)
    time.sleep(0.03)
    assert late()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_may_ask_for_the_time_of_its_parent():
    spent = door.after(3600)
    child = os.fork()
    if not child:
        try:
            os._exit(spent())
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_limit_within_a_limit_keeps_both():
    outer, inner = threading.Event(), threading.Event()
    for event in (outer, inner):
        with unless(outer.is_set), unless(inner.is_set):
            check_time()
            event.set()
            with pytest.raises(Unreachable):
                check_time()
            event.clear()


def test_what_sympy_raises_is_undecided():
    with pytest.raises(Undecided, match=r"the algebra failed \(PolynomialError\)"):
        door.polynomial(sympy.Piecewise((X, X > 0), (1, True)), X)
    with pytest.raises(Undecided, match="TypeError"):
        door.supervised(lambda: bool(sympy.Integer(0) < sympy.zoo))


def test_balls_refuse_to_be_evaluated_inside():
    def ball():
        with precision(64):
            return None

    with until(time.monotonic() + 9), pytest.raises(AssertionError, match="inside the algebra"):
        door.supervised(ball)


BUGS = {
    "theory.coefficients.signs.sign_factors": "-(a*b-1)*log(n)",
    "theory.transseries.arithmetic.normalised": "-log(n)*exp(1/n)",
    "theory.transseries.scale._limit": "-log(n)",
    "theory.transseries.waves.bounded": "-(2+sin(n))*log(n)",
    "theory.decision.cells.sign_key": "-a*log(n)",
    "theory.coefficients.zeros._bfmss": "-(sqrt(7+2*sqrt(10))-sqrt(2)-sqrt(5))*n-log(n)",
    "theory.decision.engine._cycle": "-(2+(-1)**n)*log(n)",
}


@pytest.mark.parametrize("place", BUGS)
@pytest.mark.parametrize("error", [AttributeError, TypeError, ValueError, ZeroDivisionError])
def test_a_bug_of_ours_is_a_traceback(monkeypatch, place, error):
    def seeded(*args, **options):
        raise error("a seeded bug")

    monkeypatch.setattr(f"farfield.{place}", seeded)
    with pytest.raises(error, match="a seeded bug"):
        check_convergence(BUGS[place])


def test_a_bug_within_what_sympy_calls_is_a_traceback(monkeypatch):
    monkeypatch.setattr(lambert, "S", None)
    with pytest.raises(AttributeError, match="Exp1"):
        check_convergence("-(LambertW(7*exp(7))-7)*n-log(n)")
    monkeypatch.setattr(elementary, "expm1", None)
    with pytest.raises(TypeError, match="not callable"):
        door.diff(elementary.expm1_rest(X), X)


HEAVY = {
    "apart",
    "cancel",
    "diff",
    "expand",
    "expand_func",
    "expand_log",
    "expand_mul",
    "expand_multinomial",
    "expand_trig",
    "factor",
    "factor_terms",
    "factorrat",
    "fraction",
    "gammasimp",
    "limit",
    "numer",
    "Poly",
    "powsimp",
    "simplify",
    "solve",
    "together",
}
ROOMS = [
    "theory/coefficients",
    "theory/transseries",
    "theory/decision",
    "numerics/enclosures",
    "numerics/summation",
]


@pytest.mark.parametrize("room", ROOMS)
def test_there_is_one_door(room):
    """What may take long is called through the door alone."""
    for module in sorted((ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            for part in [node.func, *node.args] if isinstance(node, ast.Call) else []:
                called = ast.unparse(part)
                assert called.removeprefix("sympy.") not in HEAVY or called in HEAVY, f"{module}"


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("-135^0.7200001*log(1+n)", {}),
        ("-(a*n)^b", {"a": "3471875/8388608", "b": "6039797/8388608"}),
        ("-(a*n+1)^b", {"a": "135/8388607", "b": "0.7200001"}),
        ("-2*log(2+135*n)^b", {"b": "1.7200001"}),
    ],
)
def test_powers_with_long_exponents_are_numbers(text, values):
    """SymPy forms integers of millions of digits where a base has a repeated prime."""
    bias = encoding(text, **values)
    assert check_convergence(bias).verdict == "converges"
    assert theoretical_receptive_field(bias, "1/10").status == "exact"
    assert np.isfinite(bias.bias([1, 100])).all()


PIECES = [
    sympy.Piecewise((most, where), (-sympy.oo, True))
    for most in (sympy.Rational(1, 2), -sympy.Rational(1, 2), 0, n, -n)
    for where in (n < 3, sympy.Eq(sympy.Mod(n, 2), 0))
]
SIGNS = ("positive", "negative", "nonnegative", "nonpositive")


@pytest.mark.parametrize("first", PIECES, ids=str)
def test_a_sign_that_is_known_holds_where_minus_infinity_may_stand(first):
    made = [-first, -2 * first, first * sympy.cos(n), sympy.Max(first, sympy.cos(n))]
    for second in PIECES:
        made += [sympy.Max(first, second), sympy.Min(-first, -second), first - second]
    for e in made:
        for k in range(5):
            value = e.subs(n, k)
            facts = [f"is_extended_{sign}" for sign in SIGNS]
            facts += [f"is_{sign}" for sign in SIGNS if value.is_finite]
            for fact in facts:
                assert getattr(e, fact) in (None, getattr(value, fact)), (e, fact, k)


@pytest.mark.parametrize(("places", "known"), [(7, True), (30, True), (100, None)])
def test_no_number_of_a_sign_is_taken_for_zero(places, known):
    """SymPy rounds the arguments of most functions to few bits before it asks for a sign."""
    small = sympy.Rational(1, 10**places)
    above = sympy.loggamma(2 + small), sympy.acosh(1 + small), sympy.loggamma(1 - small)
    assert [x.is_positive for x in above] == [known] * 3
    assert not any(x.is_zero for x in (*above, sympy.acos(1 - small), sympy.loggamma(1 + small)))
    assert not sympy.harmonic(small).is_extended_negative
    with mpmath.workdps(120):
        zero = mpmath.findroot(mpmath.digamma, 1.46) * 10**places
        below, above = (
            sympy.Rational(int(end(zero))) * small for end in (mpmath.floor, mpmath.ceil)
        )
    assert sympy.polygamma(0, below).is_positive is (known and False)
    assert sympy.polygamma(0, above).is_positive is known
