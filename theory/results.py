"""The names of `farfield.theory.answers`, while modules move."""

from farfield.theory.answers.answer import InputError, Label, Result, plain
from farfield.theory.answers.number import exact

__all__ = ["InputError", "Label", "Result", "exact", "plain"]
