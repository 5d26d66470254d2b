"""Biases that oscillate: the rules on waves that decide their series (`rules`, `exponents`), what
they look at (`swing`), phases and extrema. A bias without waves never enters.
"""
