"""Formulas: read from a user's text, safely, into expressions in the distance `n`."""
