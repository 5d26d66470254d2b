"""Files of normal projects load as Python loads them, and leave nothing behind."""

import io
import sys

import pytest

from farfield.theory.encodings.python_files import import_of, load

DATACLASS = """
from __future__ import annotations
from dataclasses import dataclass, fields

@dataclass
class Bias:
    rate: float = 2.0
    def __call__(self, n: int) -> float:
        return -self.rate * n
"""


def written(folder, **texts):
    for name, text in texts.items():
        place = folder / f"{name.replace('__', '/')}.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder


def test_a_dataclass_with_postponed_annotations_has_its_module(tmp_path):
    made = load(written(tmp_path, mine=DATACLASS) / "mine.py").Bias
    assert made(3.0)(2) == -6 and sys.modules[made.__module__].Bias is made


def test_a_module_beside_the_file_is_found_and_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    folder = written(tmp_path, mine="from helper import RATE", helper="RATE = 3")
    path = [*sys.path]
    assert load(folder / "mine.py").RATE == 3 and sys.path == path
    assert not list(tmp_path.rglob("__pycache__")) and not sys.dont_write_bytecode


def test_projects_with_modules_of_one_name_keep_their_own(tmp_path):
    for rate in (3, 4):
        folder = tmp_path / f"p{rate}"
        written(folder, mine="import helper\nRATE = helper.RATE", helper=f"RATE = {rate}")
        assert rate == load(folder / "mine.py").RATE
    assert load(tmp_path / "p3" / "mine.py").RATE == 3


def test_a_file_elsewhere_with_no_module_of_its_name_beside_leaves_it_loaded(tmp_path):
    for name in ("one", "two"):
        written(tmp_path / name, **{f"only_{name}": "X = 1"})
    first = load(tmp_path / "one" / "only_one.py")
    load(tmp_path / "two" / "only_two.py")
    assert load(tmp_path / "one" / "only_one.py") is first


@pytest.mark.parametrize("marked", [True, False])
def test_relative_imports_are_of_the_files_package(tmp_path, marked):
    inner = "from .consts import X\nfrom ..top import Y\ndef bias(n): return X * n + Y"
    written(tmp_path / "outer", inner__mod=inner, inner__consts="X = -2", top="Y = 5")
    if marked:
        for folder in ("outer", "outer/inner"):
            (tmp_path / folder / "__init__.py").write_text("")
    assert load(tmp_path / "outer" / "inner" / "mod.py").bias(3) == -1


def test_what_a_function_imports_is_its_own_and_may_end_nothing(tmp_path, monkeypatch):
    """A module of the same name at the top is another one; one that exits is the call's matter."""
    for name, text in {
        "inner/__init__.py": "",
        "inner/near.py": "X = 2\n",
        "inner/deep.py": "X = 3\n",
        "near.py": "raise SystemExit('another module was run')\n",
        "leaves.py": "import sys\nsys.exit('it ended')\n",
        "inner/mine.py": "def bias(n):\n    from .near import X\n    return -X * n\n"
        "def other(n):\n    if n < 0:\n        import leaves\n    return -n\n"
        "def third(n):\n    def one():\n        def two():\n            from .deep import X\n"
        "            return X\n        return two()\n    return one() * n\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    mine = load(tmp_path / "inner" / "mine.py")
    monkeypatch.delitem(sys.modules, "inner.near", raising=False)
    import_of(mine.bias)
    import_of(mine.other)
    import_of(mine.third)
    assert sys.modules["inner.deep"].X == 3, "in a function inside a function"
    assert sys.modules["inner.near"].X == 2 and "near" not in sys.modules


def test_a_changed_file_is_read_again_and_an_unchanged_one_is_not(tmp_path):
    file = written(tmp_path, mine="X = 1; TAKEN = object()") / "mine.py"
    first = load(file)
    assert load(file) is first
    file.write_text("X = 2")
    assert load(file).X == 2


@pytest.mark.parametrize("name", ["math", "numpy", "inspect", "bias-v2", "a b"])
def test_a_file_may_have_any_name_also_that_of_a_library(tmp_path, name):
    file, known = tmp_path / f"{name}.py", sys.modules.get(name)
    file.write_text("X = 7")
    assert load(file).X == 7 and (known is None or sys.modules[name] is known)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("\n1/0\n", "line 2: ZeroDivisionError: division by zero"),
        ("import nothing_of_this_name", "line 1: ModuleNotFoundError: No module named 'nothing"),
        ("x = 1\ndef (", "mine.py, line 2: invalid syntax"),
        ("x = 1\0", "mine.py: source code string cannot contain null bytes"),
        ("raise ValueError", "line 1: ValueError; accepted: a file that can be imported"),
        ("import sys\nsys.exit(3)", "line 2: SystemExit: 3"),
        ("def f(): raise ValueError('odd\\nmore')\n\nf()", "line 1: ValueError: odd;"),
    ],
)
def test_what_a_file_raises_is_one_line_with_its_line(refusal, tmp_path, text, why):
    assert why in refusal("", load, written(tmp_path, mine=text) / "mine.py")
    assert "mine" not in sys.modules


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("import builtins; builtins.abs = None", "abs"),
        ("import builtins; del builtins.callable", "callable"),
        ("import builtins; del builtins.max", "max"),
        ("sys.stdout.close()", "standard output"),
    ],
)
def test_a_file_leaves_python_whole(refusal, tmp_path, monkeypatch, text, lost):
    """A lower depth of calls is put back."""
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    depth = sys.getrecursionlimit()
    folder = written(tmp_path, mine=f"import sys; sys.setrecursionlimit(500)\n{text}")
    refusal(f"takes {lost} from Python", load, folder / "mine.py")
    assert abs(-1) == max(1, 0) and callable(abs) and sys.getrecursionlimit() == depth


def test_streams_are_put_back(tmp_path):
    before = sys.stdout, sys.stderr
    load(written(tmp_path, mine="import sys; sys.stdout = sys.stderr = None") / "mine.py")
    assert (sys.stdout, sys.stderr) == before


def test_what_is_no_file_is_refused(refusal, tmp_path):
    refusal("there is no file", load, tmp_path / "none.py")


def test_a_package_with_the_name_of_a_loaded_one_is_refused(refusal, tmp_path):
    folder = written(tmp_path, json__decoder="X = 1")
    (folder / "json" / "__init__.py").touch()
    taken = r"ImportError: the name json.decoder belongs to .*decoder.py; accepted"
    refusal(taken, load, folder / "json" / "decoder.py")
