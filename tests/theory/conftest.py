import importlib.util
import json
import sys
from pathlib import Path

import pytest

from farfield.theory.coefficients.signs import Context

ROOT = Path(__file__).resolve().parents[2]


def load(name):
    sys.path.append(str(ROOT / "benchmarks"))  # where they find each other
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # where dataclasses look
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True, scope="session")
def unhurried():
    """No clock of reading or following decides a test on a busy machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("farfield.theory.formula.grammar.READ_S", 60)
        patch.setattr("farfield.theory.encodings.tracing.TRACE_S", 60)
        yield


@pytest.fixture
def context():
    """What one decision carries along."""
    return Context()


@pytest.fixture(scope="session")
def series():
    """The module benchmarks/series.py: formulas whose verdict is known."""
    return load("series")


@pytest.fixture(scope="session")
def fuzz():
    """The module benchmarks/fuzz.py: random input."""
    return load("fuzz")


@pytest.fixture(scope="session")
def altered():
    """The module benchmarks/certificates.py: random formulas, and ways to alter a certificate."""
    return load("certificates")


def cases():
    lines = (ROOT / "tests" / "data" / "battery.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def pytest_generate_tests(metafunc):
    """A test that takes `case` runs for each series of the battery."""
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", cases(), ids=lambda c: c["id"])
