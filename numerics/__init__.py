"""Certified numbers from the theory: sums, receptive fields, leaks, dtype horizons.

A formula comes from ``farfield.theory``; this room turns it into numbers that carry an enclosure,
and into integers that two ball comparisons decide. Where the balls cannot decide, the answer is a
bracket or None with its reason, never a guess.

The path of a formula: `normal_form` recognises it through identities, `kernels` sums it in closed
form or by Euler-Maclaurin with a proved remainder; what is in no family `general` sums: `analytic`
biases, `waves`, residue classes, steps. `sums` puts the stretches of a formula together,
`telescoping` settles exact ties, `receptive_field`, `leak` and `horizon` ask their questions of the
sums. A new family is one more kernel; nothing else knows the families. The room imports ``theory``
and, beyond that room's libraries, SciPy and mpmath.
"""
