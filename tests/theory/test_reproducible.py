"""Verdict, condition and proof do not depend on hashes, nor on what was asked before."""

import json
import os
import subprocess
import sys

import pytest
from battery import BATTERY

SCRIPT = """
import json, sys
from farfield import check_convergence
for text, domains in json.load(sys.stdin):
    found = check_convergence(text, assumptions=domains or None)
    print(text, found.verdict, found.condition, found.proof.text().replace(chr(10), " | "))
"""


def answers(cases, seed):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONHASHSEED": str(seed)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


DISGUISED = """
-log(1+n)*floor(2*sin(1)^2+2*cos(1)^2)*sqrt(2)
-(floor(2*sin(1)^2+2*cos(1)^2)+sqrt(2))*log(1+n)
-floor(sin(1)^2+cos(1)^2)*sqrt(2)*log(n+1)*a
-(frac(sqrt(2)*sqrt(8))+sqrt(2))*(sqrt(2)*a-1)*log(1+n)
-(ceil(log(8)/log(2))+sqrt(2))*log(1+n)
-(2+sin(n)+cos(2*n))*log(1+n)
-(sin(n)+cos(2*n)+3)*log(1+n)
"""
"""Constants whose signs rest on other constants, and swings whose bounds are kept."""


@pytest.mark.parametrize("step", [90, pytest.param(1, marks=pytest.mark.slow)])
def test_answers_are_the_same_under_any_hash_seed_and_in_any_order(step):
    cases = [(case["expr"], case["params"]) for case in BATTERY[::step]]
    cases += [(f, {}) for f in DISGUISED.split()]
    first, other = answers(cases, 0), answers([*reversed(cases), *cases], 31_337)
    assert len(first) == len(cases) and other == [*reversed(first), *first]
