"""The independent check of proofs."""
