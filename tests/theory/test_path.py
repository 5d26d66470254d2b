"""The way of a formula from text to printed answer: at most 21 modules, drawn in CONTRIBUTING.md.

`python tests/theory/test_path.py` traces it and prints the drawing.
"""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"
FORMULA = "-r1*log(1+r2*n)"
ROOM = "farfield.theory."
MOST = 21
MOST_OF_A_FIELD = 24
SIMPLEST = "-log(1+n)"
MOST_CALLS = 600


def crossed(ask):
    """Each module that a question enters, in order, with the module that first called it."""
    callers = {}

    def ours(frame):
        inside = frame.f_globals.get("__name__", "").startswith("farfield")
        return inside and frame.f_code.co_name != "<module>"

    def enter(frame, event, _):
        if event == "call" and ours(frame):
            caller = frame.f_back
            while caller is not None and not ours(caller):
                caller = caller.f_back
            above = None if caller is None else caller.f_globals["__name__"]
            callers.setdefault(frame.f_globals["__name__"], above)

    sys.setprofile(enter)
    try:
        ask()
    finally:
        sys.setprofile(None)
    return callers


def drawn(callers, above=None, depth=0):
    """The modules, a line each, below the one that called them first."""
    for module, caller in callers.items():
        if caller == above:
            yield "  " * depth + module.removeprefix(ROOM)
            yield from drawn(callers, module, depth + 1)


def drawing():
    from farfield.theory.convergence import check_convergence

    return list(drawn(crossed(lambda: str(check_convergence(FORMULA)))))


def of_a_field():
    """The modules that a receptive field crosses, in any room."""
    from farfield.numerics.receptive_field import theoretical_receptive_field

    return list(crossed(lambda: str(theoretical_receptive_field("-2*log(1+n)", eps="1/100"))))


def own_calls():
    """How many calls of functions of ours a verdict takes, printed; not those of comprehensions."""
    from farfield.theory.convergence import check_convergence

    count, begun = 0, []

    def enter(frame, event, _):
        nonlocal count
        ours = frame.f_globals.get("__name__", "").startswith("farfield")
        if event == "call" and ours and not frame.f_code.co_name.startswith("<"):
            resumed = any(frame is one for one in begun)
            count += not resumed
            if frame.f_code.co_flags & inspect.CO_GENERATOR and not resumed:
                begun.append(frame)

    sys.setprofile(enter)
    try:
        str(check_convergence(SIMPLEST))
    finally:
        sys.setprofile(None)
    return count


def asked(what):
    """The lines that this file prints in a process of its own."""
    return subprocess.run(
        [sys.executable, __file__, what], capture_output=True, text=True, check=True, timeout=120
    ).stdout.splitlines()


def test_a_verdict_takes_few_calls():
    (count,) = asked("calls")
    assert 0 < int(count) <= MOST_CALLS


def test_a_receptive_field_crosses_few_modules():
    modules = asked("field")
    assert "farfield.numerics.field_search" in modules and len(modules) <= MOST_OF_A_FIELD


def test_the_drawing_in_contributing_is_the_path_that_a_formula_takes():
    """Traced in a process of its own, in which nothing is remembered from another question."""
    traced = asked("drawing")
    page = CONTRIBUTING.read_text(encoding="utf-8")
    found = re.search(r"<!-- path -->\n\n(.*?)\n\n<!-- end -->", page, re.DOTALL)
    assert found is not None
    shown = [line.removeprefix("    ").partition("  # ")[0] for line in found[1].splitlines()]
    assert [line.rstrip() for line in shown] == traced
    assert len(traced) == len({line.strip() for line in traced}) <= MOST


def test_the_tree_in_contributing_is_the_trace():
    ask = "from farfield import check_convergence; check_convergence('-log(1+n)')"
    traced = subprocess.run(
        [sys.executable, "-c", ask],
        env=os.environ | {"FARFIELD_TRACE": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    page = CONTRIBUTING.read_text(encoding="utf-8")
    tree = re.search(r"<!-- tree -->\n\n(.*?)\n\n<!-- end tree -->", page, re.DOTALL)
    assert tree is not None and traced.stdout == ""
    assert [
        line.removeprefix("    ") for line in tree[1].splitlines()
    ] == traced.stderr.splitlines()


if __name__ == "__main__":
    printed = {"calls": lambda: [own_calls()], "field": of_a_field, "drawing": drawing}
    print(*printed[(*sys.argv[1:], "drawing")[0]](), sep="\n")
