"""Which code of a user's own decides a run: what a name uses, in its file and beside it; and a
cluster that is made up, which is handed each run once."""

import ast
import inspect
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from farfield.theory.encodings.python_files import load
from farfield.validation.harness import runs as engines
from farfield.validation.harness.bias import own_module
from farfield.validation.harness.own import files, keep, kept, own, spec_of, whose
from farfield.validation.harness.settings import settle

MAIN = """
import math
from beside import base
from . import sibling

SIZE = 3
UNUSED = 4

def slope(x):
    return SIZE * math.sqrt(x)

class Bias:
    def value(self, x):
        return slope(x)

class Other:
    def value(self, x):
        return base(x) + UNUSED
"""


@pytest.fixture
def folder(tmp_path):
    texts = {"main": MAIN, "beside": "import deeper\nbase = abs\n", "deeper": "import json\n"}
    for name, text in texts.items() | {("sibling", "b = 2\n"), ("alone", "c = 3\n")}:
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


SEED = 7
TOLD = [1]


def half(x):
    return x / 2


def nothing(x): ...


def changed(folder, file, was, now):
    path = folder / f"{file}.py"
    path.write_text(path.read_text().replace(was, now, 1))
    return own(f"{folder}/main.py:Bias").sha256, own(f"{folder}/main.py:Other").sha256


def test_a_name_is_decided_by_what_it_uses_and_by_files_beside_it_where_it_imports_them(folder):
    bias, other = changed(folder, "main", "nothing", "nothing")
    assert bias != other and (own(f"{folder}/main.py:Bias").name, len(bias)) == ("Bias", 64)
    for file, was, now, of_bias, of_other in (
        ("main", "UNUSED = 4", "UNUSED = 4  # a comment", False, False),
        ("main", "SIZE = 3", "SIZE = 5", True, False),
        ("main", "UNUSED = 4", "UNUSED = 6", False, True),
        ("main", "return slope(x)", "return 2 * slope(x)", True, False),
        ("deeper", "import json", "import ast", False, True),
        ("sibling", "b = 2", "b = 7", False, True),
        ("alone", "c = 3", "c = 9", False, False),
    ):
        before = changed(folder, "main", "nothing", "nothing")
        after = changed(folder, file, was, now)
        differ = tuple(x != y for x, y in zip(before, after, strict=True))
        assert differ == (of_bias, of_other), (file, was)


def test_files_are_those_that_are_imported_and_copies_are_read_in_their_place(
    refusal, folder, tmp_path
):
    names = [file.name for file in files(folder / "main.py")]
    assert names == ["main.py", "beside.py", "sibling.py", "deeper.py"]
    home, spec = tmp_path / "run", f"{folder}/main.py:Bias"
    home.mkdir()
    assert kept(spec, home) == spec
    keep(folder / "main.py", home)
    assert {file.name for file in (home / "source").iterdir()} == {*names}
    (folder / "main.py").write_text("changed = 1\n")
    keep(folder / "main.py", home)
    assert kept(spec, home) == f"{home}/source/main.py:Bias"
    assert (home / "source/main.py").read_text() == MAIN
    for text, said in (("class (", "is no Python"), (None, "cannot be read: No such file")):
        (folder / "main.py").unlink() if text is None else (folder / "main.py").write_text(text)
        refusal(said, own, spec)


def test_a_class_of_a_function_is_written_with_what_it_uses(tmp_path):
    class Twice:
        def value(self, x):
            return settle, half(x), MAIN, nothing(x)

    spec = spec_of(Twice, tmp_path / "own")
    (written,) = (tmp_path / "own").iterdir()
    assert spec == f"{written}:Twice" and written.name.startswith("Twice_")
    text = written.read_text()
    assert "from farfield.validation.harness.settings import settle as settle" in text
    assert text.index("def half(x):") < text.index("class Twice:")
    assert f"MAIN = {MAIN!r}" in text and "def nothing(x):\n    ..." in text
    assert spec_of(Twice, tmp_path / "own") == spec and len([*(tmp_path / "own").iterdir()]) == 1


def test_a_parameter_or_a_variable_is_no_global_of_its_name(refusal, tmp_path):
    class Inner:
        def value(self, folder, changed=half):
            MAIN = [Lost / 2 for Lost in sorted(changed(folder))]
            return MAIN, lambda pytest: pytest + SEED

    written = Path(spec_of(Inner, tmp_path).removesuffix(":Inner"))
    *used, _ = ast.parse(written.read_text()).body
    assert [ast.unparse(part) for part in used] == [inspect.getsource(half).strip(), "SEED = 7"]

    class Outer:
        def value(self, folder):
            return [folder for _ in files(folder)], (lambda: folder)(), TOLD

    refusal("Outer uses TOLD, a list", spec_of, Outer, tmp_path)
    exec("class Typed:\n    def value(self): ...", typed := {})
    refusal("the source of Typed is not known", spec_of, typed["Typed"], tmp_path)
    refusal("Bare has no method of its own", spec_of, type("Bare", (), {}), tmp_path)


RATE = 3


def thirds(x):
    return x / RATE


def made_deeper():
    def inner():
        class Own: ...

        return Own

    return inner


def made_in_a_function():
    RATE, unseen = 5, [7]

    def half(x):
        return x / 2

    class Base(torch.nn.Module):
        def forward(self, q, k, i, j):
            return half(-(i[:, None] - j) * RATE)

    class Unseen(torch.nn.Module):
        def forward(self, q, k, i, j):
            return unseen

    class Own(Base):
        def forward(self, q, k, i, j):
            return RATE * super().forward(q, k, i, j)

    class Both(torch.nn.Module):
        def forward(self, q, k, i, j):
            return RATE * thirds(j)

    return Base, Own, Unseen, Both


def made_in_another():
    class Own: ...

    return Own


def test_what_a_function_holds_goes_with_the_class_that_it_makes(refusal, tmp_path):
    """Its variables, not the globals of their names; its functions and base classes too."""
    base, derived, unseen, both = made_in_a_function()
    i = torch.arange(3)
    for made, factor in ((base, 2.5), (derived, 12.5)):
        path, name = spec_of(made, tmp_path).rsplit(":", 1)
        written = getattr(load(path), name)()
        assert torch.equal(written(None, None, i, i), -factor * (i[:, None] - i))
    refusal("Unseen uses unseen, a list", spec_of, unseen, tmp_path)
    refusal(r"thirds uses RATE, which means something else", spec_of, both, tmp_path)


def test_an_error_is_that_of_the_code_that_raised_it(refusal, tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text("def f(x):\n    x = x + 1\n    return x / 0\n")
    scope, code = {}, own(f"{path}:f")
    exec(compile(path.read_text(), str(path), "exec"), scope)
    for call, said in ((scope["f"], "wrong.py:f, line 3: ZeroDivisionError"), (len, None)):
        with pytest.raises((ZeroDivisionError, TypeError)) as error:
            call(1)
        told = whose(error.value, [code])
        assert told is said is None or told.startswith(said)
    refusal(r"^wrong.py:f: TypeError: f\(\) takes 1 .*; accepted is", own_module, code, 2, 8)


class Lost(Exception):
    """A machine went away."""


def test_a_cluster_is_handed_each_run_and_what_is_lost_is_told(refusal, monkeypatch, tmp_path):
    each = [settle("tiny", {"encoding": "nope", "seed": k}) for k in range(3)]

    def get(ready):
        if ready[0] == 1:
            raise Lost("a machine")
        return [ready[1:]]

    ray = Mock(get=get, wait=lambda waiting, num_returns: (waiting[-num_returns:], waiting[:-1]))
    ray.exceptions.RayError = Lost
    remote = ray.remote.return_value.return_value.remote
    remote.side_effect = lambda asked, place, device: (asked.seed, place, device)
    of_ray = {("ray", "--engine ray", "cluster"): ray}
    monkeypatch.setattr(engines, "library", lambda *names: of_ray[names])
    for gpus, device in ((0, "cpu"), (0.5, "cuda")):
        ray.reset_mock()
        found = engines.on_ray(each, tmp_path, address="a", cpus=2, gpus=gpus)
        done = {asked.seed: rows for asked, rows in found}
        place = str(tmp_path.resolve())
        assert done == {0: [(place, device)], 1: "lost by Ray: a machine", 2: [(place, device)]}
        ray.init.assert_called_with(address="a", ignore_reinit_error=True, log_to_driver=False)
        ray.remote.assert_called_with(num_cpus=2, num_gpus=gpus, max_retries=3)
        ray.remote.return_value.assert_called_with(engines.attempt)
        ray.shutdown.assert_called_once_with()
    ray.init.side_effect = ConnectionError("nobody there")
    refusal(
        "no cluster at address 'nowhere': nobody there",
        list,
        engines.on_ray(each, tmp_path, address="nowhere", cpus=1, gpus=0),
    )
