"""Directions that are safe at one seed: which encodings keep their perplexity at 16 times the
training length, and which lose it. About two minutes a model on two quiet cores."""

import dataclasses

import pytest

from farfield.theory.encodings import encoding
from farfield.validation.harness.configuration import Configuration
from farfield.validation.harness.corpus import corpus
from farfield.validation.harness.experiment import train_and_measure
from farfield.validation.harness.mechanism import Visibility
from farfield.validation.harness.presets import Measurement, preset
from farfield.validation.harness.store import Store

LAST = Measurement(
    lengths=(64, 1024),
    blocks=8,
    last_tokens=1024,
    row_length=512,
    row_segments=1,
    rows=16,
    gradient_segments=8,
)
CASES = {  # last-token perplexity at 1024 tokens over that at 64, from and to
    "rope": (3, None),
    "rope + bca": (0.995, 1.005),
    "window 64": (1.5, None),
    "example1": (1.1, None),
    "type1": (None, 1.03),
    "window 16": (0.995, 1.005),
}


def made(name):
    base, _, width = name.partition(" ")
    return encoding(base, w=int(width)) if width else encoding(base)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_directions(tmp_path):
    small = dataclasses.replace(preset("small"), measurement=LAST)
    text, found, masses, violations = corpus(), {}, {}, 0
    for name in ("rope", "window 64", "example1", "type1", "window 16"):
        views = (Visibility(), Visibility(bca=32)) if name == "rope" else ()
        configuration = Configuration(made(name), text, small, inference=views)
        for m in train_and_measure(configuration, Store(tmp_path))["measurements"]:
            label = name if m["inference"]["bca"] is None else f"{name} + bca"
            (last,) = (
                p for p in m["perplexity"] if (p["protocol"], p["length"]) == ("last token", 1024)
            )
            found[label], masses[label] = last["ratio"], m["gradient"]["mass"]
            violations += m["bounds"]["violations"]
    for name, (low, high) in CASES.items():
        assert low is None or found[name] > low, found
        assert high is None or found[name] < high, found
    assert violations == 0
    assert masses["window 16"] == pytest.approx(1) and masses["rope"] < 0.5, masses
