"""The catalogue, and what a user adds to it.

An `Encoding` is a bias formula with the values of each head; proofs, receptive fields, tables and
tensors are its views. Everything the project knows of a published encoding is a field of its
`Entry`: formula, parameters with domains and learned ranges, dialects and their options, display
name, mechanism, how it is trained. No other module knows a name.
"""

from farfield.theory.encodings.catalogue import (
    CATALOGUE,
    Entry,
    encodings,
    of_mechanism,
    surrogate_of,
)
from farfield.theory.encodings.catalogue_formulas import alibi_slope, t5_bucket_starts
from farfield.theory.encodings.construction import encoding
from farfield.theory.encodings.encoding import LISTED, Encoding, Parameter

__all__ = [
    "CATALOGUE",
    "LISTED",
    "Encoding",
    "Entry",
    "Parameter",
    "alibi_slope",
    "encoding",
    "encodings",
    "of_mechanism",
    "surrogate_of",
    "t5_bucket_starts",
]
