"""The catalogue and what a user adds to it."""

from farfield.theory.encodings.catalogue import (
    Encoding,
    Entry,
    Parameter,
    alibi_slope,
    encoding,
    encodings,
    t5_bucket_starts,
)

__all__ = [
    "Encoding",
    "Entry",
    "Parameter",
    "alibi_slope",
    "encoding",
    "encodings",
    "t5_bucket_starts",
]
