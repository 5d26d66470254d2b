"""The recipes of CONTRIBUTING, followed as they are written, in a copy of the package."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import farfield

ROOT = Path(__file__).resolve().parents[1]


def recipe(title):
    """The code and the commands of a section."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = re.split(r"\n## ", text.split(f"## {title}\n")[1])[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    return code, re.findall(r"^    (python .*)$", section, re.MULTILINE)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A package of links, but for the files that the recipes change."""
    place = tmp_path_factory.mktemp("copy")
    package = place / "farfield"
    shutil.copytree(
        Path(farfield.__file__).parent,
        package,
        copy_function=lambda source, copied: os.symlink(os.path.realpath(source), copied),
    )
    (place / "theory").symlink_to(package / "theory")

    def edit(name, change):
        path = package / name
        text = path.read_text(encoding="utf-8")
        path.unlink()
        path.write_text(change(text), encoding="utf-8")

    entry, (listing,) = recipe("To add an encoding")
    edit(
        "theory/encodings/catalogue.py",
        lambda text: text.replace("\n)\n\nCATALOGUE", f"\n{entry.rstrip()},\n)\n\nCATALOGUE"),
    )
    edit("theory/encodings/index.txt", lambda text: "")
    record, _ = recipe("To add a function")
    edit("theory/functions/error.py", lambda text: f"{text}\n\n{record}")
    run(place, "bash", "-c", listing)
    return place


def run(place, *command):
    """What a command says with the copy in place of the package."""
    environment = os.environ | {"PYTHONPATH": str(place), "OMP_NUM_THREADS": "1"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        command, cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout[-3000:] + done.stderr[-3000:]
    return done


def test_the_recipes_give_what_they_promise(copy):
    assert " root " in run(copy, "farfield", "atlas", "--list").stdout
    asked = ("check", "root", "-n/8 - dawson(n)", "--set", "m=1")
    found = run(copy, sys.executable, "-m", "farfield", *asked)
    assert "converges" in found.stdout
    assert found.returncode == 1 and "this rule to come" in found.stdout


@pytest.mark.slow
def test_what_the_recipes_add_passes_the_laws(copy):
    tests = ROOT / "tests" / "theory"
    found = run(
        copy,
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"),
        *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-o", "addopts="),
        str(tests / "encodings" / "test_encodings.py"),
        str(tests / "functions" / "test_laws.py"),
        *("-k", "root or dawson or shown_at_once"),
    )
    passed = int(re.search(r"(\d+) passed", found.stdout)[1])
    assert found.returncode == 0 and passed >= 10, found.stdout[-3000:]
