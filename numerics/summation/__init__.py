"""Certified sums of exp-series behind one protocol (`kernel`): the tail of a stretch as a ball.

    series     the distances cut into stretches, each summed by the kernel of its formula
    methods    the ordered list of methods: which one sums a formula is decided there alone
    kernel     the protocol, the normal form of a formula, and the families with closed forms
    analytic   analytic terms of no family (`analytic_bias`, `integral`; `superpolynomial`)
    bounded    steps, residue classes, oscillations between two bounds
    kept_sums  caches of partial sums; sums are values, so caching changes no result

`complete_monotonicity` proves where terms fall. With `FARFIELD_TRACE=1` a sum prints which method
it takes, and why.
"""
