"""The words of the grammar that are no functions: constants, comparisons, connectives."""

from __future__ import annotations

from typing import Any

import sympy
from sympy import Expr, S

CONSTANTS: dict[str, Expr] = {
    "pi": S.Pi,
    "E": S.Exp1,
    "EulerGamma": S.EulerGamma,
    "GoldenRatio": S.GoldenRatio,
    "Catalan": S.Catalan,
    "e": S.Exp1,
    "oo": S.Infinity,
    "inf": S.Infinity,
    "infty": S.Infinity,
    "Infinity": S.Infinity,
}
RELATIONS: dict[str, Any] = {
    "<": sympy.Lt,
    "<=": sympy.Le,
    ">": sympy.Gt,
    ">=": sympy.Ge,
    "==": sympy.Eq,
    "!=": sympy.Ne,
}
CONDITIONS: dict[str, Any] = {
    "Eq": sympy.Eq,
    "Ne": sympy.Ne,
    "Lt": sympy.Lt,
    "Le": sympy.Le,
    "Gt": sympy.Gt,
    "Ge": sympy.Ge,
    "And": sympy.And,
    "Or": sympy.Or,
    "Not": sympy.Not,
}
CALLED = {"Piecewise", "Sum", "Product", "True", "False", "and", "or", "not", *CONDITIONS}
RESERVED = {*CONSTANTS, *CALLED, "I"}
