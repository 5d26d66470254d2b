"""Biases that oscillate: the rules on waves that decide their series (`wave_rules`), what
they look at (`leading_wave`), phases and extrema. A bias without waves never enters.
"""
