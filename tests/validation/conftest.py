import random

import pytest
import torch

from farfield.validation.configuration import Measurement, Preset
from farfield.validation.corpus import corpus

torch.set_num_threads(1)  # the tests share the cores

SMALL = Preset(
    "small", layers=2, width=32, heads=4, length=12, batch=4, steps=12, warmup=2,
    measurement=Measurement(
        lengths=(12, 40), blocks=3, last_tokens=6, row_length=30, row_segments=2, rows=5,
        gradient_segments=3,
    ),
)  # fmt: skip


@pytest.fixture(scope="session")
def small():
    return SMALL


@pytest.fixture(scope="session")
def text(tmp_path_factory):
    """A corpus of made-up words, 60 kB."""
    words = random.Random(0).choices(
        [w * k for w in ("def ", "return", "\n    ", "(x)", "=") for k in (1, 2)], k=12_000
    )
    path = tmp_path_factory.mktemp("text") / "words.txt"
    path.write_text("".join(words))
    return corpus(path)
