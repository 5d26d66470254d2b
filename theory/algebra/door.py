"""The door to SymPy: its functions under a clock; budgets, deadlines, interrupted threads."""

from __future__ import annotations

import ctypes
import functools
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar
from weakref import WeakSet

import mpmath
import sympy
from sympy import Basic, Expr
from sympy.core.cache import clear_cache
from sympy.core.parameters import global_parameters
from sympy.simplify.fu import TR8

from farfield.theory.algebra.exceptions import OutOfTime, Undecided
from farfield.theory.answers.errors import InputError
from farfield.theory.answers.notation import beginning

R = TypeVar("R")

STEP_S = 0.04  # how late a call may be ended
AGAIN_S = 0.5  # where an exception was lost, as in a finaliser, it is raised again
IDLE_S = 5.0  # after which no one looks any more
PATIENCE = 10  # times the processor time of a step that may pass on a machine with other work
FEW = 1_000  # a denominator of an exponent up to which SymPy draws any root in no time
GUARD_BITS = 240  # of the argument of a function that SymPy evaluates
FAINT = 2.0**-120  # a value of it that rounding may have made
SPLIT = 1 << 15  # SymPy splits off smaller primes


# -- the clock of a question -----------------------------------------------------------------------


@dataclass(frozen=True)
class Budget:
    """What a question may take.

    Fields:
        deadline: of `time.monotonic`.
        withdrawn: whether every caller has gone; None where that cannot be.
    """

    deadline: float = math.inf
    withdrawn: Callable[[], bool] | None = None

    def spent(self) -> bool:
        """Whether the question must end now; any thread may ask."""
        late = time.monotonic() > self.deadline
        return late or (self.withdrawn is not None and self.withdrawn())


UNLIMITED = Budget()
_BUDGET: ContextVar[Budget] = ContextVar("budget", default=UNLIMITED)


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """The computation inside gives up with `OutOfTime` at that time of `time.monotonic`."""
    with _within(replace(budget(), deadline=min(deadline, budget().deadline))):
        yield


def seconds(budget_s: object) -> float:
    """A budget of time; a billion seconds represent all that is more.

    Raises:
        InputError: no number, or a negative one.

    >>> seconds(2), seconds(math.inf)
    (2.0, 1000000000.0)
    """
    if isinstance(budget_s, bool) or not isinstance(budget_s, (int, float)) or not budget_s >= 0:
        given = beginning(repr(budget_s), 40)
        raise InputError(f"budget {given}; accepted: a number of seconds, at least 0")
    return float(min(budget_s, 1e9))


@contextmanager
def within(budget_s: object) -> Iterator[None]:
    """A time in which a question is answered.

    Raises:
        InputError: a budget that is no number of seconds, or a negative one.
    """
    with until(time.monotonic() + seconds(budget_s)):
        yield


@contextmanager
def share_of_time(part: float) -> Iterator[None]:
    """A share of the time that is left."""
    check_time()
    now = time.monotonic()
    with until(now + part * (budget().deadline - now)):
        yield
    check_time()


@contextmanager
def unless(withdrawn: Callable[[], bool]) -> Iterator[None]:
    """The computation inside gives up with `OutOfTime` once that is true, in any thread."""
    outer = budget().withdrawn
    either = withdrawn if outer is None else lambda: outer() or withdrawn()
    with _within(replace(budget(), withdrawn=either)):
        yield


def after(seconds: float, patience: float | None = None) -> Callable[[], bool]:
    """Whether the current thread has worked for so many seconds from now on; any thread may ask.

    The processor time counts, so other programs on the machine change no answer. Where the thread
    waits or sleeps, `patience` times as many seconds end the step: `PATIENCE`, if None.
    """
    worked, begun = _thread_clock(), time.monotonic()
    end, early, late = worked() + seconds, begun + seconds, begun + (patience or PATIENCE) * seconds

    def spent() -> bool:
        now = time.monotonic()  # a thread never works longer than that, and it is faster to ask
        return now > early and (worked() > end or now > late)

    return spent


def _thread_clock() -> Callable[[], float]:
    """The processor time of the current thread, or of the process where a system has no such clock
    for other threads, or where the thread is that of a parent process."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.process_time
    clock = time.pthread_getcpuclockid(threading.get_ident())

    def worked() -> float:
        try:
            return time.clock_gettime(clock)
        except OSError:
            return time.process_time()

    return worked


@contextmanager
def unhurried() -> Iterator[None]:
    """The computation inside is short, and has its own bounds: a spent budget does not end it."""
    with _within(UNLIMITED):
        yield


@contextmanager
def _within(limits: Budget) -> Iterator[None]:
    token = _BUDGET.set(limits)
    try:
        yield
    finally:
        _BUDGET.reset(token)


def budget() -> Budget:
    """The deadline of the question at hand."""
    return _BUDGET.get()


def check_time() -> None:
    """OutOfTime once the time budget is spent."""
    if _BUDGET.get().spent():
        raise OutOfTime


# -- the thread that ends late calls --------------------------------------------------------------


class Interrupted(BaseException):
    """The time of the call that a thread is inside is spent."""


class _CallSlot:
    """The slot of one thread: whether a watched call is active, what ends it, when it was
    interrupted."""

    __slots__ = ("__weakref__", "inside", "lock", "raised", "spent", "thread")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside, self.raised = False, 0.0
        self.spent: Callable[[], bool] = lambda: False
        self.thread = threading.get_ident()


class _Watcher:
    """The slots of all threads, and the thread that checks them while a call is active."""

    def __init__(self) -> None:
        self.slots: WeakSet[_CallSlot] = WeakSet()
        self.local = threading.local()
        self.thread: threading.Thread | None = None

    def slot(self) -> _CallSlot:
        """The slot of the current thread."""
        current = getattr(self.local, "slot", None)
        if current is None:
            current = self.local.slot = _CallSlot()
            self.slots.add(current)
        return current

    def start(self) -> None:
        """Start the thread that checks the slots."""
        self.thread = threading.Thread(target=self._look, name="farfield-watch", daemon=True)
        self.thread.start()

    def _look(self) -> None:
        """Interrupt calls past their deadline; return once none was active for IDLE_S seconds."""
        seen = time.monotonic()
        while True:
            time.sleep(STEP_S)
            now = time.monotonic()
            for slot in list(self.slots):
                with slot.lock:
                    if not slot.inside:
                        continue
                    seen = now
                    if now > slot.raised + AGAIN_S and slot.spent():
                        slot.raised = now
                        _set_exception(slot.thread, Interrupted)
            if now > seen + IDLE_S:
                # Cleared before the final check: a call that starts later starts a new thread.
                self.thread = None
                if not any(slot.inside for slot in list(self.slots)):
                    return
                self.thread = threading.current_thread()


_WATCHER = _Watcher()
os.register_at_fork(after_in_child=lambda: _WATCHER.__init__())  # type: ignore[misc]


def _set_exception(thread: int, exception: type[BaseException]) -> None:
    """Make an exception pending in a thread."""
    value = ctypes.py_object(exception)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), value)


def inside() -> bool:
    """Whether the current thread is inside a watched call."""
    return _WATCHER.slot().inside


def watched(spent: Callable[[], bool], call: Callable[[], R]) -> R:
    """The value of a call.

    Args:
        spent: whether the call must end; asked in another thread.
        call: what is called.

    Raises:
        Interrupted: once it must end, wherever the call may be.
    """
    slot = _WATCHER.slot()
    slot.spent, slot.raised, slot.inside = spent, 0.0, True
    try:
        if _WATCHER.thread is None:
            _WATCHER.start()
        return call()
    finally:
        try:  # no call and no jump back before the note: nothing can be delivered here
            with slot.lock:
                slot.inside = False
            if slot.raised:
                # An exception may be pending. It is raised here, not cleared: Python 3.11 goes on
                # looking for one that is cleared, and never ends where a debugger sees each line.
                _set_exception(slot.thread, Interrupted)
                while True:
                    pass
        except Interrupted:
            pass


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


# -- the door -------------------------------------------------------------------------------------


def supervised(call: Callable[..., R], *args: object, **options: object) -> R:
    """What SymPy answers to a call.

    Raises:
        Undecided: SymPy raised something.
        OutOfTime: the time of the question at hand is spent.
    """
    limits = _BUDGET.get()
    if limits.spent():
        raise OutOfTime
    if limits is UNLIMITED or inside():
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


def _answered(call: Callable[..., R], args: tuple[object, ...], options: dict[str, object]) -> R:
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


def _through(call: Callable[..., R]) -> Callable[..., R]:
    """A function of SymPy, every use of it supervised.

    >>> from farfield.theory.algebra import door
    >>> door.factor(sympy.Symbol("x") ** 2 - 1)
    (x - 1)*(x + 1)
    """
    return functools.partial(supervised, call)


cancel = _through(sympy.cancel)
degree = _through(sympy.degree)
diff = _through(sympy.diff)
expand = _through(sympy.expand)
expand_log = _through(sympy.expand_log)
expand_mul = _through(sympy.expand_mul)
expand_multinomial = _through(sympy.expand_multinomial)
factor = _through(sympy.factor)
factor_terms = _through(sympy.factor_terms)
factorrat = _through(sympy.factorrat)
fraction = _through(sympy.fraction)
polynomial = _through(sympy.Poly)
powsimp = _through(sympy.powsimp)
products_to_sums = _through(TR8)
simplify = _through(sympy.simplify)
solve = _through(sympy.solve)
together = _through(sympy.together)


def raised(base: Expr, exponent: Expr) -> Expr:
    """base^exponent, of rationals prime by prime where the denominator q of the exponent is large:
    SymPy would form 1111^q to draw one root of 5^5*1111.

    >>> raised(sympy.Integer(135), sympy.Rational(7_200_001, 10**7))
    9*3**(1600003/10000000)*5**(7200001/10000000)
    """
    rational = base.is_Rational and base > 0 and exponent.is_Rational
    if not rational or exponent.q <= FEW:
        return base**exponent
    primes = sympy.factorrat(base, limit=SPLIT)
    return sympy.Mul(*(prime ** (k * exponent) for prime, k in primes.items()))


def rewritten(e: Basic, function: type[Basic]) -> Basic:
    """e in terms of another function."""
    return supervised(e.rewrite, function)


def replaced(e: Basic, swap: dict[Basic, Basic]) -> Basic:
    """e with some parts replaced, and evaluated anew."""
    return supervised(e.xreplace, swap)


def assumed(e: object, fact: str) -> bool | None:
    """Whether SymPy knows a fact of e: `positive`, `zero`, `integer`, ...; None if it does not."""
    return supervised(getattr, e, "is_" + fact)


def known_sign(e: object) -> int | None:
    """The sign of e that SymPy knows from the domains of its symbols; None if it does not.

    >>> a = sympy.Symbol("a", positive=True)
    >>> known_sign(1 + a), known_sign(1 - a)
    (1, None)
    """
    return supervised(_sign_by_domains, e)


def _sign_by_domains(e: Basic) -> int | None:
    return 1 if e.is_positive else -1 if e.is_negative else 0 if e.is_zero else None


# -- errors of SymPy 1.14, mended for the process -------------------------------------------------


def _doubt(owner: type[Expr], fact: str, wrong: Callable[[Expr, bool], bool]) -> None:
    """Make a fact of nodes unknown where SymPy may be wrong."""
    of_sympy = getattr(owner, f"_eval_is_{fact}")

    def known(e: Expr) -> bool | None:
        value = of_sympy(e)
        return None if value is not None and wrong(e, value) else value

    owner._prop_handler[fact] = known
    setattr(owner, f"_eval_is_{fact}", known)


def _doubtful_quotient(e: Expr, integer: bool) -> bool:
    """It weighs powers of 2 alone: n*(2*n + 4)/86 is no integer, and (2*n + 4)/3 may be one."""
    q = int(e.args[0].q) if e.args[0].is_Rational else 1
    return q & (q - 1) > 0 if integer else q % 2 == 1 and bool(e.free_symbols)


_doubt(sympy.Mul, "integer", _doubtful_quotient)
# It takes powers of irrational numbers for irrational: sqrt(2)^2.
_doubt(sympy.Pow, "rational", lambda e, value: not value and bool(e.base.free_symbols))
# It forgets that atan(0) = asin(0) = acos(1) = 0.
_doubt(sympy.atan, "rational", lambda e, value: not (value or e.args[0].is_nonzero))
_doubt(sympy.asin, "rational", lambda e, value: not (value or e.args[0].is_nonzero))
_doubt(sympy.acos, "rational", lambda e, value: not (value or (e.args[0] - 1).is_nonzero))


def _forgets_infinity(e: Expr, _: bool) -> bool:
    """It takes what is no negative number for 0 or more: Piecewise((1/2, n > 3), (-oo, True))."""
    signs = (t.is_finite or t.is_extended_nonnegative or t.is_extended_nonpositive for t in e.args)
    return not all(signs)


def _unless_an_argument(fact: str) -> Callable[[Expr, bool], bool]:
    """The same of the greatest and the least: what is not known of an argument, infinity among it,
    is not known of them."""
    return lambda e, value: not (value or any(getattr(t, fact) for t in e.args))


_doubt(sympy.Mul, "extended_positive", _forgets_infinity)
_doubt(sympy.Mul, "extended_negative", _forgets_infinity)
_doubt(sympy.Max, "negative", _unless_an_argument("is_extended_nonnegative"))
_doubt(sympy.Max, "nonpositive", _unless_an_argument("is_extended_positive"))
_doubt(sympy.Min, "positive", _unless_an_argument("is_extended_nonpositive"))
_doubt(sympy.Min, "nonnegative", _unless_an_argument("is_extended_negative"))


def _with_guard_bits(owner: type[Expr]) -> None:
    """It rounds arguments to two bits for a sign: loggamma(1 + 10^-7) and acos(1 - 10^-7) were 0. A
    small value, or 0, may be rounding alone unless twice the bits give nearly the same."""
    of_sympy = owner._eval_evalf

    def valued(e: Expr, bits: int) -> Expr | None:
        value = of_sympy(e, bits + GUARD_BITS)
        if value is None or not (value.is_Float or value == 0) or abs(value) > FAINT:
            return value
        finer = of_sympy(e, bits + 2 * GUARD_BITS)
        return finer if finer is not None and 2 * abs(finer - value) < abs(value) else None

    owner._eval_evalf = valued


for _owner in [f for f in vars(sympy).values() if isinstance(f, type)]:
    if issubclass(_owner, sympy.Function) and "_eval_evalf" in vars(_owner):  # in its own way
        _with_guard_bits(_owner)
