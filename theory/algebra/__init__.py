"""Algebra by SymPy, and the few exceptions by which a question of the engine ends."""
