"""Certified sums of exp-series behind one protocol (`kernel`): the tail of a stretch as a ball.

    series           the distances cut into stretches, each summed by the kernel of its formula
    recognition      which family it is, by `normal_form`; else `general` puts it together
    families         closed forms, and Euler-Maclaurin with an integral in closed form
    monotone         completely monotone terms, the integral by quadrature
    analytic         analytic terms of no family (`analytic_bias`, `integral`), or `light` ones
    oscillatory      sums with waves, growing waves and rotations
    euler_maclaurin  the formula itself, once
    telescoping      exact shares, which settle ties
    memory           what is remembered of a sum: sums are values, a question never changes them

A new way to sum is one more kernel; nothing else knows them. What the constants cost is measured by
`benchmarks/constants.py`.
"""
