"""The independent check of proofs: the reader of formulas and the balls are all it shares.

    checker     the steps of a proof in order, cell by cell
    step_rules  the table of rules: what each says of the bias, as a relation to refute
    growth      a comparator of growth of its own, for the rungs of the ladder
    numbers     balls and tables, with the exact test of zero that one is given; false, open

A test forbids it every module of the engine.
"""
