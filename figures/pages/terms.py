"""What the pages say of their terms, and where the papers appeared."""

from __future__ import annotations

from farfield.theory.answers.notation import words

VERDICT = words(
    "does the sum of exp(bias) over all distances converge? [Q, Theorem 0.4] and its converse "
    "(ours): exactly then a fixed window approximates full attention, uniformly over inputs, in "
    "one layer. Not a statement about perplexity."
)
CERTIFIED = "Certified: by rigorous ball arithmetic."
PAPERS = words(
    "[Q] Qin et al., Exploring Transformer Extrapolation, AAAI 2024. [S] Sun et al., A "
    "Length-Extrapolatable Transformer, ACL 2023. [C] Chi et al., Dissecting Transformer Length "
    "Extrapolation via the Lens of Receptive Field Analysis, ACL 2023."
)
