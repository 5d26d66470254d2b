"""Enclosures of a formula: complex balls, power series of balls, bounds of whole tails."""
