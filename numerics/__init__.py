"""Certified numbers from the theory: sums, receptive fields, leaks, dtype horizons.

A formula comes from ``farfield.theory``; this room turns it into numbers that carry an enclosure,
and into integers that two ball comparisons decide. Where the balls cannot decide, the answer is a
bracket or None with its reason, never a guess.

The path of a formula: `summation` cuts it into stretches and sums each as a ball, from the bounds
in `enclosures`. `receptive_field` and the modules beside it, one a question, ask those sums.
`checking` reads proofs again without the engine that wrote them. The room imports ``theory`` and,
beyond that room's libraries, SciPy.
"""
