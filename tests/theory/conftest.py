import pytest

from farfield.theory.coefficients.signs import Context


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
def series(program):
    """The module benchmarks/series.py: formulas whose verdict is known."""
    return program("benchmarks/series.py")


@pytest.fixture(scope="session")
def fuzz(program):
    """The module benchmarks/fuzz.py: random input."""
    return program("benchmarks/fuzz.py")


@pytest.fixture(scope="session")
def altered(program):
    """The module benchmarks/certificates.py: random formulas, and ways to alter a certificate."""
    return program("benchmarks/certificates.py")
