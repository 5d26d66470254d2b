"""The theorems as a prover checks them: Rocq (Coq) 8.16 with Coquelicot.

A file is named by its theorem, a statement reads as the documentation writes it, the comment above
says it in words. `Sums` and `Attention` are what all rest on: partial sums and tails, and the exact
error of a row of attention when only some of its keys are kept. The decision ladder goes from
`Rules` over `IteratedLogarithms` to `Ladder`; `Monomials`, `Expansions` and `Verdicts` make the
verdict on a single formula a matter of finitely many inequalities between constants, which is what
certificates (`farfield.theory.certificates`) use. `catalogue/` holds the certificates of the
catalogue, `Numbers` what needs interval arithmetic and hence further axioms.

`index.toml` lists every theorem; `statements.json` holds them as the prover prints them. `check` is
what `make formal` runs.
"""
