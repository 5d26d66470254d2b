"""A text whose needs are known: documents of 1,024 symbols, each with a distribution of its own.

Every second symbol repeats the one eight places before, which a layer with 16 keys can see. The
others are drawn from the distribution of the document, a few of 64 symbols. A model learns it from
all that it has read of the document: the more keys, the better.

    python experiments/windows/symbols.py > symbols.txt
"""

import sys

import numpy as np

DOCUMENTS, LENGTH, BACK, SYMBOLS = 4_000, 1_024, 8, 64


def symbols(seed: int = 0) -> bytes:
    """The text, 4 MB."""
    rng, parts = np.random.default_rng(seed), []
    for _ in range(DOCUMENTS):
        drawn = rng.choice(SYMBOLS, LENGTH, p=rng.dirichlet(np.full(SYMBOLS, 0.1)))
        for at in np.flatnonzero(rng.random(LENGTH) < 0.5):
            drawn[at] = drawn[max(0, at - BACK)]
        parts.append((drawn + 40).astype(np.uint8).tobytes())
    return b"".join(parts)


if __name__ == "__main__":
    sys.stdout.buffer.write(symbols())
