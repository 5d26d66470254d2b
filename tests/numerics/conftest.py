"""Fixtures of the room."""

import pytest

from farfield.numerics.summation.series import _series


@pytest.fixture
def short_envelopes(monkeypatch):
    """Bounds of an oscillation take over after 1,024 terms, not after 16,384."""
    monkeypatch.setattr("farfield.numerics.summation.bounded.DIRECT", 1 << 10)
    monkeypatch.setattr("farfield.numerics.summation.bounded.MOST_DIRECT", 1 << 12)
    _series.cache_clear()
    yield
    _series.cache_clear()
