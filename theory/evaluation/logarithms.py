"""Other forms of a node that neither overflow nor cancel: logarithms of sums, log1p, expm1.

`log(1 + exp(n))` overflows from n = 710 on, `log(gamma(n))` from 172. The logarithm of an
exponential, a power, a product, or a function whose record tells it is taken without its argument;
a sum with such terms gives a `LogSum`. Arrays of NumPy and torch take these forms.
"""

from __future__ import annotations

from functools import lru_cache

import sympy
from sympy import Expr, S

from farfield.theory.functions.elementary import expm1, log1p
from farfield.theory.functions.nodes import n
from farfield.theory.functions.record import record_of

STEEP = 6
"""Higher powers of a distance below 2^20 leave the range of float32."""


class LogSum(sympy.Function):
    """`LogSum(c1, l1, c2, l2, ...)` is log(c1 exp(l1) + c2 exp(l2) + ...)."""


@lru_cache(maxsize=4096)
def logarithm(e: Expr) -> Expr | None:
    """The logarithm of a part that may leave the range of floats; None for other parts.

    >>> logarithm(n * sympy.exp(3 * n)), logarithm(1 + sympy.exp(n)), logarithm(1 + n)
    (3*n + log(n), LogSum(1, 0, 1, n), None)
    """
    if not e.free_symbols:
        return None
    if (form := uncancelled(e)) is not None:
        return logarithm(form)
    if e.is_Add:
        terms = [_split(term) for term in e.args]
        steep = [x for c, size in terms if size is not None for x in (c, size)]
        flat = sympy.Add(*(c for c, size in terms if size is None))
        return LogSum(*([] if flat == 0 else [flat, S.Zero]), *steep) if steep else None
    if e.is_Mul:
        factor, size = _split(e)
        return None if size is None else size + sympy.log(factor)
    if e.is_Pow:
        base, exponent = e.args
        size = logarithm(base)
        steep = exponent.has(n) or (exponent.is_number and abs(exponent) > STEEP)
        if size is None and steep and base.is_nonnegative:
            size = sympy.log(base)
        return None if size is None else exponent * size
    record = record_of(e.func)
    return None if record is None or record.logarithm is None else record.logarithm(*e.args)


def _split(term: Expr) -> tuple[Expr, Expr | None]:
    """The factors that stay in range, and the logarithm of the others if there are any."""
    pairs = [(factor, logarithm(factor)) for factor in sympy.Mul.make_args(term)]
    sizes = [size for _, size in pairs if size is not None]
    flat = sympy.Mul(*(factor for factor, size in pairs if size is None))
    return flat, sympy.Add(*sizes) if sizes else None


@lru_cache(maxsize=4096)
def within_range(e: Expr) -> Expr | None:
    """Another form of a node that does not leave the range of floats, or cancel, where it may.

    >>> within_range(sympy.log(1 + sympy.exp(n))), within_range(1 / (1 + sympy.exp(n)))
    (LogSum(1, 0, 1, n), exp(-LogSum(1, 0, 1, n)))
    """
    if e.is_Add:
        return accurate(e)
    if isinstance(e, sympy.log):
        return logarithm(e.args[0])
    if not e.is_Pow or isinstance(e.base, sympy.exp):
        return None
    decays = e.exp.is_negative and e.base.is_positive and logarithm(e.base) is not None
    return sympy.exp(logarithm(e), evaluate=False) if decays else None


@lru_cache(maxsize=4096)
def accurate(e: Expr) -> Expr | None:
    """Another form of a node whose terms cancel so fast that no precision keeps the difference, or
    None: balls take it, and arrays that of a sum.

    >>> accurate(sympy.log(1 + sympy.exp(-n))), accurate(sympy.exp(sympy.exp(-n)) - 1)
    (log1p(exp(-n)), expm1(exp(-n)))
    """
    if isinstance(e, sympy.log):
        constant, rest = e.args[0].as_coeff_Add()
        return log1p(rest) if constant == 1 and logarithm(rest) is not None else None
    if not e.is_Add:
        return None
    constant, rest = e.as_coeff_Add()
    factor, f = rest.as_coeff_Mul()
    if isinstance(f, (sympy.exp, sympy.cos)) and constant == -factor and logarithm(f.args[0]):
        (x,) = f.args
        if isinstance(f, sympy.exp):
            return factor * expm1(x)
        half = sympy.sin(x / 2)  # of a sine that may be 0 floats have a product, but no power
        return sympy.Mul(-2 * factor, half, half, evaluate=False)
    return uncancelled(e)


@lru_cache(maxsize=4096)
def uncancelled(e: Expr) -> Expr | None:
    """c - c f for an f that tends to 1 so fast that no precision keeps the difference, or None.

    >>> uncancelled(1 - sympy.tanh(n)), uncancelled(1 - sympy.erf(n))
    (2/(exp(2*n) + 1), erfc(n))
    """
    constant, rest = e.as_coeff_Add()
    factor, f = rest.as_coeff_Mul()
    if constant == 0 or abs(constant) != abs(factor) or not f.free_symbols:
        return None
    if f.is_Pow and f.exp == -1 and factor == -constant:
        return constant * (f.base - 1) * f
    record = record_of(f.func)
    if record is None or record.complement is None:
        return None
    (x,) = f.args
    return constant * record.complement(x if factor == -constant else -x)
