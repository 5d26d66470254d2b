"""Hyperbolic functions and their inverses."""

from __future__ import annotations

import sympy

from farfield.theory.functions.balls import real
from farfield.theory.functions.record import Function

FUNCTIONS = (
    Function(
        node=sympy.sinh,
        names=("sinh",),
        total=True,
        odd=True,
        elementary=lambda z: (sympy.exp(z) - sympy.exp(-z)) / 2,
        logarithm=lambda z: z + sympy.log(1 - sympy.exp(-2 * z)) - sympy.log(2),
        ball=real("sinh"),
        array=lambda xp, x: xp.sinh(x),
    ),
    Function(
        node=sympy.cosh,
        names=("cosh",),
        total=True,
        elementary=lambda z: (sympy.exp(z) + sympy.exp(-z)) / 2,
        logarithm=lambda z: abs(z) + sympy.log(1 + sympy.exp(-2 * abs(z))) - sympy.log(2),
        ball=real("cosh"),
        array=lambda xp, x: xp.cosh(x),
    ),
    Function(
        node=sympy.tanh,
        names=("tanh",),
        total=True,
        odd=True,
        elementary=lambda z: (1 - sympy.exp(-2 * z)) / (1 + sympy.exp(-2 * z)),
        complement=lambda z: 2 / (1 + sympy.exp(2 * z)),
        ball=real("tanh"),
        array=lambda xp, x: xp.tanh(x),
    ),
    Function(
        node=sympy.coth,
        names=("coth",),
        complement=lambda z: 2 / (1 - sympy.exp(2 * z)),
        elementary=lambda z: (1 + sympy.exp(-2 * z)) / (1 - sympy.exp(-2 * z)),
        ball=real("coth"),
        array=lambda xp, x: 1 / xp.tanh(x),
    ),
    Function(
        node=sympy.asinh,
        names=("asinh", "arcsinh"),
        total=True,
        odd=True,
        elementary=lambda z: sympy.log(z + sympy.sqrt(z**2 + 1)),
        ball=real("asinh"),
        array=lambda xp, x: xp.asinh(x),
    ),
    Function(
        node=sympy.acosh,
        names=("acosh", "arccosh"),
        domain=lambda x: (x - 1, 0),
        elementary=lambda z: sympy.log(z + sympy.sqrt(z**2 - 1)),
        ball=real("acosh"),
        array=lambda xp, x: xp.acosh(x),
    ),
    Function(
        node=sympy.atanh,
        names=("atanh", "arctanh"),
        domain=lambda x: (1 - x**2, 1),
        elementary=lambda z: (sympy.log(1 + z) - sympy.log(1 - z)) / 2,
        ball=real("atanh"),
        array=lambda xp, x: xp.atanh(x),
    ),
)
