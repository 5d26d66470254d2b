"""Exact statements about a bias formula: read it, decide it, enclose it.

Everything here takes an expression in the distance ``n``, never the name of an encoding, and
answers with a proof or with a rigorous ball. Nothing is rounded without an enclosure.  The
catalogue of encodings is the one place that knows names.  This room imports SymPy, python-flint
and NumPy, and no other room.
"""
