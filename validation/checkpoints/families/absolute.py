"""What a configuration says of learned absolute positions."""

from __future__ import annotations

from farfield.theory.encodings import encoding, of_mechanism
from farfield.validation.checkpoints.family import Attention, Description, ModelSize


def learned(size: ModelSize, longest: int) -> Description:
    """A model whose table of positions is added to the embeddings: no row is longer than it."""
    attention = Attention(encoding(of_mechanism("learned_absolute").name))
    note = f"a table of {longest} positions, with which every row ends"
    return Description(size, (attention,) * size.layers, longest, note, longest=longest)
