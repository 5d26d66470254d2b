"""The questions asked of an encoding or a model where nothing is said."""

EPS = ("1/10", "1/100", "1/1000")
"""Shares of mass left outside a receptive field."""

DTYPES = ("fp16", "bf16", "fp32")
"""Floating-point types whose horizon is printed."""

TRAINED = 2048
"""The training length of a model where its configuration names none."""
