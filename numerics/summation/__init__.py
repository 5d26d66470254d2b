"""Certified sums of exp-series behind one protocol (`kernel`): the tail of a stretch as a ball.

    series           the distances cut into stretches, each summed by the kernel of its formula
    methods          the ordered list of methods: which one sums a formula is decided there alone
    families         closed forms, and Euler-Maclaurin with an integral in closed form
    monotone         functions with a completely monotone derivative
    analytic         analytic terms of no family (`analytic_bias`, `integral`; `superpolynomial`)
    bounded          steps, residue classes, oscillations between two bounds
    euler_maclaurin  the formula itself, once
    kept_sums        caches of partial sums; sums are values, so caching changes no result

With `FARFIELD_TRACE=1` a sum prints which method it takes, and why.
"""
