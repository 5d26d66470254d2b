"""The door to SymPy: its functions under supervision (see the room's description)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import sympy
from sympy.concrete import gosper
from sympy.core.cache import clear_cache
from sympy.core.parameters import global_parameters
from sympy.simplify.fu import TR8

from farfield.theory.algebra.budget import UNLIMITED, budget, check_time
from farfield.theory.algebra.outcomes import OutOfTime, Undecided
from farfield.theory.algebra.watch import Interrupted, inside, watched

OURS = str(Path(__file__).parents[2])
FAILURES = (
    ArithmeticError,
    AttributeError,
    LookupError,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
    sympy.PolynomialError,
    sympy.polys.polyerrors.BasePolynomialError,
)
"""What SymPy raises on expressions it cannot handle, and Python on those nested too deeply."""


def supervised(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """What SymPy answers to a call.

    Raises:
        Undecided: SymPy raised something.
        OutOfTime: the time of the question at hand is spent.
    """
    check_time()
    limits = budget()
    if limits == UNLIMITED or inside():
        return _answered(call, args, options)
    parameters = (
        global_parameters.evaluate,
        global_parameters.distribute,
        global_parameters.exp_is_pow,
        mpmath.mp.prec,
    )
    try:
        return watched(limits.spent, lambda: _answered(call, args, options))
    except Interrupted:
        _put_back(*parameters)
        raise OutOfTime from None


def _answered(call: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What the call returns; what SymPy itself raises is undecided, what we raise passes."""
    try:
        return call(*args, **options)
    except FAILURES as why:
        if _is_ours(why):
            raise
        raise Undecided(f"the algebra failed ({type(why).__name__})") from why


def _is_ours(why: BaseException) -> bool:
    """Whether an exception was raised by code of this project, not by SymPy."""
    trace = why.__traceback__
    assert trace is not None
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_code.co_filename.startswith(OURS)


def _put_back(evaluate: bool, distribute: bool, exp_is_pow: bool, bits: int) -> None:
    """The state that an interrupted call may have left changed."""
    global_parameters.evaluate = evaluate
    global_parameters.distribute = distribute
    global_parameters.exp_is_pow = exp_is_pow
    mpmath.mp.prec = bits
    clear_cache()


def _through(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call as other rooms see it: every use is counted and supervised."""

    @functools.wraps(call)
    def supervise(*args: Any, **options: Any) -> Any:
        return supervised(call, *args, **options)

    return supervise


apart = _through(sympy.apart)
cancel = _through(sympy.cancel)
degree = _through(sympy.degree)
diff = _through(sympy.diff)
expand = _through(sympy.expand)
expand_func = _through(sympy.expand_func)
expand_log = _through(sympy.expand_log)
expand_mul = _through(sympy.expand_mul)
expand_multinomial = _through(sympy.expand_multinomial)
expand_trig = _through(sympy.expand_trig)
factor = _through(sympy.factor)
factor_terms = _through(sympy.factor_terms)
factorrat = _through(sympy.factorrat)
fraction = _through(sympy.fraction)
gammasimp = _through(sympy.gammasimp)
gosper_term = _through(gosper.gosper_term)
hypersimp = _through(sympy.hypersimp)
polynomial = _through(sympy.Poly)
powsimp = _through(sympy.powsimp)
products_to_sums = _through(TR8)
simplify = _through(sympy.simplify)
solve = _through(sympy.solve)
together = _through(sympy.together)


def rewritten(e: Any, function: Any) -> Any:
    """e in terms of another function."""
    return supervised(e.rewrite, function)


def replaced(e: Any, swap: dict[Any, Any]) -> Any:
    """e with some parts replaced, and evaluated anew."""
    return supervised(e.xreplace, swap)


def assumed(e: Any, fact: str) -> bool | None:
    """Whether SymPy knows a fact of e: `positive`, `zero`, `integer`, ...; None if it does not."""
    return supervised(getattr, e, "is_" + fact)
