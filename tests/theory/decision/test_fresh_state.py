"""No answer leaves a state behind: each equals that of a process that was asked nothing before.

`python tests/theory/decision/test_fresh_state.py SEED COUNT` answers each question in a process of
its own.
"""

import json
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import sympy

from farfield import check_convergence, compare_tails, theoretical_receptive_field
from farfield.figures.parameter_map import holds
from farfield.theory.formula import grammar

LONG = 600
"""Seconds for each question, so that a busy machine changes no answer."""
POSITIVE = sympy.Symbol("a", positive=True)


def field(formula):
    found = theoretical_receptive_field(formula, "1/100", budget_s=LONG)
    return str(found), found.status


def compared(a, b):
    found = compare_tails(a, b, budget_s=LONG)
    return found.lighter, found.crossover, found.proof.text()


def verdict(formula):
    found = check_convergence(formula, budget_s=LONG)
    return found.fields() | {"proof": found.proof.text()}


def a_question(draw):
    """A random question whose answer needs signs of numbers, parameters or remainders."""
    k, a, b = draw.randint(2, 9), draw.choice((2, 3, 5)), draw.choice((7, 11, 13))
    shift = f"log({k}+n+1/(n+{a}))"
    whole = f"floor({a}*sin({k})^2+{a}*cos({k})^2)"
    return draw.choice(
        (
            lambda: compared(f"-Max({shift},n/{b})", f"-{a}*log(1+n)"),
            lambda: compared(f"-Min({a}*{shift},n/{b})", f"-n/{k}"),
            lambda: compared(f"-n-floor(n/{b})", f"-{a}*log({k}+n)"),
            lambda: compared(f"Piecewise((-n,Eq(Mod(n,{a}),0)),(-{k}*n-1,True))", f"-{b}*n"),
            lambda: compared(f"-{a}*log({k}+n)", f"-{a}*log({b}+n)"),
            lambda: verdict(f"-a*{shift}+log(log(n+{b}))"),
            lambda: verdict(f"-log({k}+n)*{whole}"),
            lambda: verdict(f"-log(n+{k})*(1+sin({b}*n)/{a})"),
            lambda: verdict(f"-sqrt(n)*(1+cos({k}*n))"),
            lambda: verdict(f"n/(log(n+{k})-1)-n/(log(n+{k})-1+1/n)-2*log(n)"),
            lambda: verdict(f"-(sqrt({a})+sqrt({b}))*log(n+{k})"),
            lambda: verdict(f"-{a}*log(log(n-{k}))"),
            lambda: str(check_convergence(f"-b*log({k}+n)/log({b})").at(b=a)),
            lambda: str(holds(sympy.log(POSITIVE) > k, {"a": sympy.sqrt(a)})),
            lambda: field(f"-{a}*log(1+n)-log({k}+n)"),
            lambda: field(f"-{k}*n/{b}-sin({a}*n)"),
            lambda: field(f"-floor(n/{a})*{whole}/{b}"),
        )
    )


def questions(seed, count):
    draw = random.Random(seed)
    return [a_question(draw) for _ in range(count)]


def said(question):
    return json.loads(json.dumps(question(), default=str))


def alone(question):
    """The answer of a process of its own."""
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            with os.fdopen(write, "w") as out:
                json.dump(question(), out, default=str)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answered:
        text = answered.read()
    os.wait()
    return json.loads(text)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("seed", "distinct", "asked"), [(1, 6, 12), pytest.param(2, 200, 2000, marks=pytest.mark.slow)]
)
def test_what_was_asked_before_changes_no_answer(monkeypatch, seed, distinct, asked):
    """In one thread in any order, and in four at once."""
    monkeypatch.setattr(grammar, "READ_S", LONG)
    fresh = json.loads(
        subprocess.run(
            [sys.executable, __file__, str(seed), str(distinct)],
            capture_output=True,
            check=True,
            text=True,
        ).stdout
    )
    assert None not in fresh
    each, draw = questions(seed, distinct), random.Random(seed)
    order = [draw.randrange(distinct) for _ in range(asked)]
    assert [said(each[k]) for k in order] == [fresh[k] for k in order]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda k: said(each[k]), order)) == [fresh[k] for k in order]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(3))
def test_no_work_is_left_over(monkeypatch, seed):
    """Enough for each question alone, and spent by a few of them together."""
    monkeypatch.setattr("farfield.theory.coefficients.signs.MAX_WORK", 100)
    each = questions(seed, 8)
    first = [said(question) for question in each]
    assert all(said(question) == one for question, one in [*zip(each, first, strict=True)] * 4)


if __name__ == "__main__":
    grammar.READ_S = LONG
    print(json.dumps([alone(question) for question in questions(*map(int, sys.argv[1:]))]))
