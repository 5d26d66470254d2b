"""The independent check of proofs: the reader of formulas and the balls are all it shares.

    checker      the steps of a proof in order, cell by cell
    bounds       steps that compare p with another formula
    growth       a comparator of growth of its own, for the rungs of the ladder
    numbers      balls and tables, with the exact test of zero that one is given
    check_state  the state of a check, and how it reads a step
    stops        exceptions: the proof is false, or open

A contract of `make lint` and a test forbid it every module of the engine.
"""
