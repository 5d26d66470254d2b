"""Finite sums and products: `Sum(f, (k, a, b))`.

The body is read again for each k where the bounds are numbers, so that every guard applies; a
product whose end is no number becomes exp(Sum(log(f))). In text a sum whose end lies before its
beginning has no terms. In a SymPy expression it is minus the terms between (Karr's convention).
"""

from __future__ import annotations

from collections.abc import Callable

import sympy
from sympy import Expr, Integer, Symbol

from farfield.theory.algebra import door
from farfield.theory.formula.bounded_nodes import MAX_SUM_TERMS, steep
from farfield.theory.formula.reading import Reading
from farfield.theory.formula.vocabulary import CONSTANTS
from farfield.theory.functions.record import SPELLINGS, Refused


def finite_sum(p: Reading, column: int, kind: str) -> Expr:
    """A `Sum` or `Product`, after its name."""
    p.expect("(")
    begin = p.position
    end = _end_of_body(p, kind)
    p.position = end + 1
    p.expect("(")
    index = _index(p)
    p.expect(",")
    low = p.sum()
    p.expect(",")
    high = p.sum()
    p.expect(")")
    p.expect(")")
    after, outer = p.position, p.bound

    def body(value: Expr) -> Expr:
        p.position, p.bound = begin, outer | {index: value}
        read = p.sum()
        if p.position != end:
            p.fail(p.column, f"unexpected {p.token[1]!r}")
        return read

    result = _summed(p, column, kind, index, low, high, body)
    p.bound, p.position = outer, after
    return result


def typeset_sum(p: Reading, column: int, kind: str) -> Expr:
    r"""`\sum_{k=0}^{31}` and the product behind it, after its name."""
    p.accept_name("_")
    p.expect("{")
    index = _index(p)
    p.expect("=")
    low = p.sum()
    p.expect("}")
    p.expect("^")
    high = p.exponent()
    begin, outer = p.position, p.bound

    def body(value: Expr) -> Expr:
        p.position, p.bound = begin, outer | {index: value}
        return p.product()

    body(low)  # where the body ends, of a sum without terms too
    result = _summed(p, column, kind, index, low, high, body)
    p.bound = outer
    return result


def _summed(
    p: Reading,
    column: int,
    kind: str,
    index: str,
    low: Expr,
    high: Expr,
    body: Callable[[Expr], Expr],
) -> Expr:
    """The sum or product of what the body reads at each value of the index."""
    if low.is_Integer and high.is_Integer:
        count = max(int(high - low) + 1, 0)
        p.sum_terms += count
        if p.sum_terms > MAX_SUM_TERMS:
            p.fail(column, f"sums of more than {MAX_SUM_TERMS} terms")
        terms = [body(Integer(int(low) + i)) for i in range(count)]
        result = p.build(column, sympy.Add if kind == "Sum" else sympy.Mul, *terms)
    else:
        positive = bool((low - 1).is_nonnegative)
        k = Symbol(index, integer=True, positive=True if positive else None)
        term = body(k)
        if not (low.is_integer and high.is_integer):
            p.fail(column, "the bounds of a sum must be integers for every n")
        if kind == "Sum":
            result = sympy.Sum(term, (k, low, high))
        else:
            term = term if steep(term) else door.factor(term)
            logs = door.expand_log(sympy.log(term), force=True)
            result = sympy.exp(sympy.Sum(logs, (k, low, high)))
    return result


def sum_of_sympy(e: sympy.Sum) -> Expr:
    """A sum as SymPy means it: `Sum(f, (k, 5, 2))` is `-f(3) - f(4)`.

    Raises:
        Refused: the bounds are no integers, or are in order at some n and reversed at others.

    >>> k = Symbol("k")
    >>> sum_of_sympy(sympy.Sum(k, (k, 5, 2))), sum_of_sympy(sympy.Sum(k, (k, 3, 4)))
    (-7, Sum(k, (k, 3, 4)))
    """
    (index, low, high), *others = e.limits
    if others:
        raise Refused("is a sum over several indices; accepted: one index a sum")
    if not (low.is_integer and high.is_integer):
        raise Refused(f"has bounds {low} and {high}; accepted: integers for every n")
    numbers = low.is_Integer and high.is_Integer
    if numbers and abs(high - low) > MAX_SUM_TERMS:
        raise Refused(f"is a sum of more than {MAX_SUM_TERMS} terms")
    if (high - low + 1).is_nonnegative:
        return e
    if not numbers:
        raise Refused(
            f"has bounds {low} and {high}; where they are reversed, SymPy means minus the terms "
            "between; accepted: bounds in order for every n, or text, where such a sum is empty"
        )
    between = range(int(high) + 1, int(low))
    return -sympy.Add(*(e.function.xreplace({index: Integer(k)}) for k in between))


def _end_of_body(p: Reading, kind: str) -> int:
    """The place of the comma that ends the body."""
    place, depth = p.position, 0
    while True:
        token, value, where = p.tokens[place]
        if token == "end" or (depth == 0 and value == ")"):
            p.fail(where, f"expected {kind}(f, (k, a, b))")
        if depth == 0 and value == ",":
            return place
        depth += (value == "(") - (value == ")")
        place += 1


def _index(p: Reading) -> str:
    """The name of the summation index."""
    token, index, where = p.next()
    if token != "name" or index == "n" or index in SPELLINGS or index in CONSTANTS:
        p.fail(where, "expected the name of the summation index")
    if index in p.bound:
        p.fail(where, f"{index} is the index of a sum around this one; take another name")
    return index
