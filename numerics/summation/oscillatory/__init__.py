"""Oscillatory sums: waves of constant or growing amplitude, functions of a rotation."""
