"""Small trained models that the tests of the far field share."""

import math

import pytest
import torch

from farfield.validation.harness.runs import job_of, run
from farfield.validation.harness.settings import settle
from farfield.validation.models.network import kept


@pytest.fixture(scope="package")
def trained(tmp_path_factory):
    """The folder of a run, by its encoding."""
    store = tmp_path_factory.mktemp("runs")

    def folder(encoding):
        asked = settle("tiny", {"encoding": encoding, "steps": 1})
        run(asked, store, device="cpu")
        return store / job_of(asked).key

    return folder


class Copier:
    """Two layers that say what followed a token: the first looks at the key before, the second
    finds the key that stands behind the same token."""

    trained, longest, depth, grouped = 64, None, 2, None

    def __init__(self, sharpness):
        draws = torch.Generator().manual_seed(0)
        each = torch.randn(600, 32, generator=draws)
        self.embedding, self.sharpness = each / each.norm(dim=-1, keepdim=True), sharpness

    def scores(self, tokens, positions, keep, attend):
        x = self.embedding[tokens][:, None]
        before = attend(0, 0 * x, 0 * x, x)
        copied = attend(1, self.sharpness * x, before, x)
        return 20 * kept(copied[:, 0], keep) @ self.embedding.T

    def query(self, layer, q, i):
        return q

    def key(self, layer, k, j, end):
        return k

    def bias(self, layer, i, j):
        n = i[:, None] - j
        bias = -50.0 * (n - 1).abs() if layer == 0 else torch.where(n > 0, 0.0, -math.inf)
        return bias.masked_fill(n < 0, -math.inf)[None]

    def sink(self, layer):
        return None

    def cap(self, layer):
        return None

    def content(self, layer):
        return None


@pytest.fixture
def copier():
    """A network that copies, by its sharpness."""
    return Copier
