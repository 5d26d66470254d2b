"""The names of `farfield.theory.answers`, while modules move."""

from farfield.theory.answers.answer import InputError, Result, exact, plain

__all__ = ["InputError", "Result", "exact", "plain"]
