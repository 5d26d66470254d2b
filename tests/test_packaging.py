"""What a user installs: the tracked modules, all below ``farfield``, light to import."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS = PROJECT["tool"]["setuptools"]["package-dir"]  # package -> folder at the root
ROOMS = ["theory", "numerics", "validation", "figures", "interface"]


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


PIP, OFFLINE = (sys.executable, "-m", "pip"), ("--no-deps", "--no-index")


def built(source, folder):
    """The wheel of a source, built into a folder without any other package."""
    run(*PIP, "wheel", *OFFLINE, "--no-build-isolation", "-w", folder, source)
    (wheel,) = folder.glob("*.whl")
    return wheel


def installed_name(path):
    """``theory/files.py`` -> ``farfield/theory/files.py``."""
    room, rest = path.split("/", 1)
    return "farfield/" + ("" if room == "interface" else room + "/") + rest


@pytest.fixture(scope="module")
def tracked():
    """The files of the rooms in the last commit."""
    return run("git", "ls-tree", "-r", "--name-only", "HEAD", *ROOMS, cwd=ROOT).splitlines()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of the last commit, built where no earlier build can leave a module behind."""
    folder = tmp_path_factory.mktemp("wheel")
    run("git", "archive", "--output", folder / "source.tar", "HEAD", cwd=ROOT)
    with tarfile.open(folder / "source.tar") as archive:
        archive.extractall(folder / "source", filter="data")
    return built(folder / "source", folder)


def test_rooms_are_the_declared_folders():
    assert sorted(FOLDERS.values()) == sorted(ROOMS)


def test_every_tracked_package_is_declared(tracked):
    folders = {str(Path(installed_name(path)).parent) for path in tracked if path.endswith(".py")}
    packages = {folder.replace("/", ".") for folder in folders}
    assert packages == set(PROJECT["tool"]["setuptools"]["packages"])


def test_wheel_holds_the_tracked_files_and_nothing_else(wheel, tracked):
    names = zipfile.ZipFile(wheel).namelist()
    info = f"farfield-{PROJECT['project']['version']}.dist-info"
    assert {name.split("/")[0] for name in names} == {"farfield", info}
    shipped = [name for name in names if not name.startswith(info)]
    assert sorted(shipped) == sorted(map(installed_name, tracked))


@pytest.mark.slow
def test_a_source_archive_makes_the_same_wheel(wheel, tmp_path):
    """`sdist` holds all that a wheel is built from."""
    with tarfile.open(wheel.parent / "source.tar") as archive:
        archive.extractall(tmp_path / "source", filter="data")
    build = "from setuptools.build_meta import build_sdist; print(build_sdist('.'))"
    run(sys.executable, "-c", build, cwd=tmp_path / "source")
    (packed,) = (tmp_path / "source").glob("farfield-*.tar.gz")
    both = wheel, built(packed, tmp_path)
    ours, theirs = (zipfile.ZipFile(path).namelist() for path in both)
    assert {*ours} == {*theirs}


def test_the_version_is_the_same_everywhere():
    import farfield

    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    (cited,) = re.findall(r"^version: (.+)$", citation, re.MULTILINE)
    (wheel,) = re.findall(r"farfield-([\d.]+)-py3", (ROOT / "README.md").read_text("utf-8"))
    assert wheel == farfield.__version__
    newest = re.search(r"^## (\d+\.\d+\.\d+)", (ROOT / "docs/changes.md").read_text("utf-8"), re.M)
    assert {PROJECT["project"]["version"], cited} == {farfield.__version__}
    assert newest is not None and newest[1] == farfield.__version__


def test_an_installed_wheel_works_elsewhere(wheel, tmp_path):
    run(*PIP, "install", *OFFLINE, "--quiet", "--target", tmp_path, wheel)
    rooms = ", ".join(sorted(FOLDERS))
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import {rooms}; "
    where = run(sys.executable, "-c", code + "print(farfield.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(tmp_path)
    asked = (
        f"{code}from farfield.__main__ import main; sys.argv[1:] = ['check', '--', '-n']; main()"
    )
    assert "converges" in run(sys.executable, "-c", asked, cwd=tmp_path)
    assert (tmp_path / "bin" / "farfield").is_file()


def test_the_contracts_of_imports_can_fail(tmp_path):
    """An import inside a function counts; a module without a layer fails."""
    package = tmp_path / "house"
    for name, text in (("", ""), ("low", "def f():\n    import house.high\n"), ("high", "")):
        (package / name).mkdir(parents=True, exist_ok=True)
        (package / name / "__init__.py").write_text(text)
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("[tool.importlinter]")[1]
    settings, first = lines.split("[[tool.importlinter.contracts]]")[:2]
    layers = re.sub(r"layers = \[.*\]", 'layers = ["high", "low"]', first, flags=re.DOTALL)
    text = f"[tool.importlinter]{settings}[[tool.importlinter.contracts]]{layers}"
    (tmp_path / "pyproject.toml").write_text(text.replace("farfield", "house"))
    checked = {}
    for what in ("upwards", "fine", "homeless"):
        if what == "fine":
            (package / "low" / "__init__.py").write_text("")
        if what == "homeless":
            (package / "cellar.py").write_text("")
        done = subprocess.run(
            ["lint-imports", "--no-cache"],
            cwd=tmp_path,
            capture_output=True,
            env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        )
        checked[what] = done.returncode == 0
    assert checked == {"upwards": False, "fine": True, "homeless": False}


@pytest.mark.parametrize(
    ("gap", "allowed", "passes"),
    [
        ("skip", [], False),
        ("skip", ["no such device"], True),
        ("xfail", [], False),
        ("xfail", ["test_it.py::test_gap"], True),
    ],
)
def test_a_gap_that_is_not_allowed_fails_the_run(tmp_path, allowed, passes, gap):
    (tmp_path / "pyproject.toml").write_text(
        f"[tool.farfield]\nallowed_skips = {allowed}\n[tool.pytest.ini_options]\n"
    )
    (tmp_path / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text())
    (tmp_path / "test_it.py").write_text(
        f"import pytest\ndef test_gap(): pytest.{gap}('no such device')\ndef test_fine(): pass\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"],
        cwd=tmp_path,
        capture_output=True,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert (done.returncode == 0) == passes
