"""Small trained models that the tests of the far field share."""

import pytest

from farfield.validation.harness.runs import job_of, run
from farfield.validation.harness.settings import settle


@pytest.fixture(scope="package")
def trained(tmp_path_factory):
    """The folder of a run, by its encoding."""
    store = tmp_path_factory.mktemp("runs")

    def folder(encoding):
        asked = settle("tiny", {"encoding": encoding, "steps": 1})
        run(asked, store, device="cpu")
        return store / job_of(asked).key

    return folder
