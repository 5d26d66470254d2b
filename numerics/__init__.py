"""Certified numbers from the theory: sums, tails, receptive fields, leaks.

A formula and its closed forms or bounds come from ``farfield.theory``; this room turns them into
numbers that carry an enclosure, and into integers that two ball comparisons decide.  Where the
balls cannot decide, the answer is None, never a guess.  It imports ``theory`` and, beyond that
room's libraries, SciPy and mpmath.
"""
