"""The door of every public question: a bug is one honest line there, and a traceback in tests."""

import inspect
import pickle
import subprocess
import sys
from unittest.mock import Mock

import pytest

import farfield
from farfield.theory.algebra.exceptions import Undecided
from farfield.theory.answers.errors import InternalError, guarded

QUESTIONS = [name for name in farfield.__all__ if inspect.isfunction(getattr(farfield, name))]
METHODS = {
    farfield.Encoding: ("bias", "slopes", "tensor", "score_mod", "block_mask"),
    farfield.Convergence: ("at", "certificate"),
}
DOORS = [getattr(farfield, name) for name in QUESTIONS]
DOORS += [getattr(kind, name) for kind, names in METHODS.items() for name in names]
ERRORS = (ValueError, OverflowError, IndexError, MemoryError, RecursionError, KeyError, Undecided)


def fails(*given, **options):
    raise IndexError("a seeded\nbug")


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__qualname__)
def test_a_bug_is_one_line_and_a_traceback_where_it_is_asked_for(monkeypatch, door):
    inner = inspect.unwrap(door)
    monkeypatch.setattr(inner, "__code__", fails.__code__)
    monkeypatch.setattr(inner, "__kwdefaults__", None)
    with pytest.raises(IndexError, match="a seeded"):
        door("-n")
    monkeypatch.delenv("FARFIELD_TRACEBACK")
    with pytest.raises(farfield.InputError) as told:
        door("-n")
    assert str(told.value).startswith("internal error, IndexError: a seeded bug; FARFIELD_TRACE")
    assert type(told.value.__cause__) is IndexError


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(
    "place, question",
    [
        ("theory.decision.cells.explore", lambda: farfield.check_convergence("-n")),
        ("theory.encodings.construction.read", lambda: farfield.encoding("-n")),
        ("theory.evaluation.vectorised._fill", lambda: farfield.encoding("-n").bias([1])),
        ("numerics.questions.series", lambda: farfield.leak("-n", 8)),
        (
            "numerics.comparison.limit_of_difference",
            lambda: farfield.compare_tails("-n", "-2*n"),
        ),
    ],
)
def test_whatever_is_raised_inside_stays_inside(monkeypatch, place, question, error):
    monkeypatch.delenv("FARFIELD_TRACEBACK")
    monkeypatch.setattr(f"farfield.{place}", Mock(side_effect=error("a seeded bug")))
    try:
        found = question()
    except farfield.InputError as why:
        assert type(why) is InternalError and type(why.__cause__) is error
    else:  # what is not decided is an answer
        assert found.status == "unknown" and error is Undecided


class Sizes(dict):
    """Settings whose names are attributes, as many configurations are; `shape` is none of them."""

    def __getattr__(self, name):
        return self[name]

    def __call__(self, n):
        return -n / 4


def test_code_of_the_users_own_that_raises_is_no_bug(monkeypatch, refusal):
    monkeypatch.delenv("FARFIELD_TRACEBACK")
    line = inspect.getsourcelines(Sizes.__getattr__)[1] + 1
    why = rf"^test_guard.py, line {line}: what was given raises KeyError: 'ndim'; accepted: "
    refusal(why, farfield.encoding, Sizes())


SEEDED = """
from flint import fmpq
from numpy.random import default_rng
questions = [lambda: fmpq(1) / 0, lambda: default_rng(0).choice(-1)]
"""


def test_what_compiled_libraries_raise_beneath_farfield_is_a_bug(monkeypatch):
    """Frames of compiled code name a file beside no package, or no module."""
    monkeypatch.delenv("FARFIELD_TRACEBACK")
    scope = {"__name__": "farfield.seeded"}
    exec(SEEDED, scope)
    for question in scope["questions"]:
        with pytest.raises(InternalError, match=r"^internal error, "):
            guarded(question)()


def test_what_is_no_bug_is_told_as_it_is(monkeypatch):
    monkeypatch.delenv("FARFIELD_TRACEBACK")
    calls = {
        "leak": lambda: farfield.leak("-n"),
        "apply": lambda: farfield.apply(model="runs/none"),  # whose function another one wraps
        "check": farfield.check,  # by the name that was typed
        "Encoding.bias": farfield.encoding("-n").bias,
    }
    for name, call in calls.items():
        with pytest.raises(TypeError, match=rf"^{name}\(\) missing 1 required positional argument"):
            call()
    with pytest.raises(farfield.InputError) as told:
        farfield.leak("-m", 8)
    assert type(told.value) is not InternalError


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_guarded_question_is_one_object(name):
    question = getattr(farfield, name)
    assert getattr(farfield, name) is question and question.__doc__
    assert pickle.loads(pickle.dumps(question)) is question


WITHOUT_TORCH = """
from importlib.machinery import PathFinder
found = PathFinder.find_spec
PathFinder.find_spec = lambda name, *a, **o: None if name == "torch" else found(name, *a, **o)
import farfield
for name in ("foresee", "mend", "blame", "gap_probe", "runs", "audit"):
    try:
        getattr(farfield, name)("abc", **{"runs": "."} if name == "audit" else {})
    except farfield.InputError as error:
        print(error)
print(farfield.check_convergence("-n").verdict)
"""


def test_without_torch_a_question_that_needs_it_says_so():
    given = [sys.executable, "-c", WITHOUT_TORCH]
    done = subprocess.run(given, capture_output=True, text=True, check=True)
    *told, verdict = done.stdout.splitlines()
    assert (len(told), verdict) == (6, "converges"), done
    assert all("needs torch, which is not installed" in line for line in told)
