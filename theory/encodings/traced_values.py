"""What a traced program computes with: symbolic numbers, and `math`, NumPy and torch for them.

While a function runs, versions that take such values replace `math`, `numpy`, `torch` and a few
builtins. Each operation and function is one row: how the expression is made, and what the program
computes.
"""

from __future__ import annotations

import builtins
import contextlib
import dis
import functools
import math
import operator
import sys
import types
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
import sympy
from sympy import Expr, S

from farfield.theory.encodings.branches import MARK, ROUNDING, NotTraced, Path, Slot
from farfield.theory.encodings.families import shortest_decimal
from farfield.theory.encodings.layouts import LEAST
from farfield.theory.functions.nodes import n
from farfield.theory.relations import BY_SYMBOL, SIX

LIBRARIES = ("math", "numpy", "torch", "jax")
_INFINITE = (S.Infinity, S.NegativeInfinity, S.NaN)
_KNOWN = {math.pi: sympy.pi, 2 * math.pi: 2 * sympy.pi, math.e: S.Exp1}


def _class(_: object) -> type:
    """The class of a value, for farfield and for libraries that hand it back; the program, and all
    else that it calls, would take another way than with a number."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") == "abc":
        frame = frame.f_back
    assert frame is not None
    if MARK in frame.f_globals:  # an operator between it and a tensor asks too
        known = _step(frame).startswith(("BINARY", "COMPARE"))
    else:
        library = home(frame.f_globals)
        known = library in READERS or (library, frame.f_code.co_name) in _OPERATORS
    if not known:
        raise NotTraced("the class of the distance")
    return Symbolic


def home(names: dict[str, Any]) -> str:
    """The library whose code runs with these global names."""
    return str(names.get("__name__")).partition(".")[0]


def _step(frame: types.FrameType) -> str:
    """The instruction that a frame carries out."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]]


READERS = {"farfield", "sympy", *LIBRARIES}
_OPERATORS = {("fractions", "forward"), ("fractions", "reverse")}
"""Of fractions, which leave an operator to what they do not know; their constructor raises."""


class Symbolic:
    """A value of the program that depends on the distance."""

    __slots__ = ("expr", "given", "path", "slot")

    __class__ = property(_class)

    __array_ufunc__ = None  # NumPy's own numbers leave an operator to it

    __iter__ = None

    def __init__(self, expr: Expr, slot: Slot | Any, path: Path, given: bool = False) -> None:
        self.expr, self.slot, self.path, self.given = expr, slot, path, given

    def __bool__(self) -> bool:
        return not compared("==", self, 0)

    def __index__(self) -> int:
        """Its value at the first distance of the path, which keeps the distances that share it."""
        start = self.path.start()
        value = self.path.value(self.slot, start) if isinstance(self.slot, Slot) else self.slot
        if isinstance(value, (bool, int, np.integer)) and not self.expr.free_symbols - {n}:
            compared("==", self, int(value))
            return int(value)
        raise NotTraced("a position or a fraction as an index")

    def __float__(self) -> float:
        raise NotTraced("the distance is handed to code that is not followed")

    def __repr__(self) -> str:
        raise NotTraced("the distance as text")

    def __copy__(self) -> Symbolic:
        return Symbolic(self.expr, self.slot, self.path, self.given)

    def __deepcopy__(self, memo: object) -> Symbolic:
        return self.__copy__()  # on the same path

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise NotTraced("the distance is stored")

    def _sympy_(self) -> Expr:
        return self.expr

    def __hash__(self) -> int:
        frame = sys._getframe(1)
        if MARK not in frame.f_globals:
            raise TypeError("unhashable type: 'Symbolic'")  # SymPy's caches pass it by
        if _step(frame).startswith(("STORE", "CALL")):  # a dictionary of the program would keep it
            raise NotTraced("the distance is stored")
        return hash(operator.index(self))

    def __getitem__(self, key: object) -> Symbolic:
        _asked(self, "an index")
        keys = key if isinstance(key, tuple) else (key,)
        if all(k is None or k is Ellipsis or k == slice(None) for k in keys):
            return self
        raise NotTraced("the distance as an array")

    def __setitem__(self, key: object, value: object) -> None:
        if key:
            changed = lifted(value, self.path)
            self.expr, self.slot = changed.expr, changed.slot

    def __getattr__(self, name: str) -> Any:
        if not (name.startswith("__") or hasattr(0, name)):
            _asked(self, name)
        if name in _SAME:
            return lambda *args, **options: self.__copy__()
        if name in _TYPES:
            return lambda *args, **options: _typed(self, name, *args, *options.values())
        if name in ("dtype", "device", "shape", "ndim", "T"):
            return {"shape": (), "ndim": 0, "T": self, "dtype": _float32()}.get(name)
        if name in FUNCTIONS and name not in ("min", "max", "sum"):
            return functools.partial(_called, name, self.path, self)
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotTraced(f"{name} of the distance")


def _asked(x: Symbolic, name: str) -> None:
    """Note what the program asks of a value that is a number where it is called with numbers."""
    if x.given and home(sys._getframe(2).f_globals) != "farfield":
        x.path.asks = name


def _given(*values: object) -> bool:
    """Whether values are what the program is called with, or numbers of its own: what Python makes
    of them is a number too. What a library makes of them, as `torch.as_tensor`, is not."""
    return all(
        v.given if isinstance(v, Symbolic) else type(v) in (bool, int, float) for v in values
    )


def _made_of(value: Symbolic, *values: object) -> Symbolic:
    """What Python makes of values."""
    value.given |= _given(*values)
    return value


_SAME = {
    *("type_as", "copy", "clone", "detach", "item"),
    *("contiguous", "cpu", "cuda", "unsqueeze", "squeeze", "expand", "view", "reshape"),
}
_WIDE, _WHOLE = {"float", "double", "float32", "float64"}, {"int", "long", "int32", "int64"}
_TYPES = {"to", "astype", "type", "float", "double", "int", "long"}
_DEVICES = ("cpu", "cuda", "mps")


def _typed(x: Symbolic, *kinds: Any) -> Symbolic:
    """A value in other types: floats keep it, integers cut it, small ones are not followed."""
    for kind in kinds:
        kind = kind.real if isinstance(kind, Library) else kind
        is_type = isinstance(kind, (str, type)) or type(kind).__name__ == "dtype"
        name = getattr(kind, "__name__", str(kind)).rpartition(".")[2] if is_type else "to"
        if name in _WHOLE:
            x = FUNCTIONS["int"](x.path, x)
        elif name in _WIDE:
            x = applied(lambda path, e: e, float, x.path, x)
        elif name not in _TYPES and not name.startswith(_DEVICES):
            raise NotTraced(f"the distance as {name}")
    return Symbolic(x.expr, x.slot, x.path)


def _float32() -> object:
    return getattr(sys.modules.get("torch"), "float32", np.float32)


def lifted(value: Any, path: Path) -> Symbolic:
    """A number of the program as a value with an expression."""
    if isinstance(value, Symbolic):
        return value
    if isinstance(value, sympy.Expr) and value.free_symbols <= {n}:  # SymPy's own functions
        return Symbolic(value, path.written(sympy.lambdify(n, value), path.distance()), path)
    if isinstance(value, Fraction):
        return Symbolic(sympy.Rational(value.numerator, value.denominator), value, path)
    kind = str(getattr(value, "dtype", "float64")).rpartition(".")[2]
    if hasattr(value, "item"):
        if math.prod(value.shape) != 1:
            raise NotTraced(f"an array of shape {tuple(value.shape)}")
        value = value.item()
    if not isinstance(value, (bool, int, float)):
        raise NotTraced(f"a value of type {type(value).__name__}")
    return Symbolic(_exact(value, kind, path), value, path)


def _exact(value: Any, kind: str, path: Path) -> Expr:
    """A constant: as its digits read, 0.1 as 1/10, or as its binary value."""
    if value == LEAST[0] or value < LEAST[1]:
        return S.NegativeInfinity
    if not isinstance(value, float):
        return sympy.Integer(int(value))
    if value in _KNOWN or -value in _KNOWN:
        return _KNOWN.get(value) or -_KNOWN[-value]
    if not math.isfinite(value):
        return sympy.sympify(value)
    return (
        sympy.Rational(*value.as_integer_ratio()) if path.binary else shortest_decimal(value, kind)
    )


def compared(symbol: str, a: Any, b: Any) -> bool:
    """Whether a relation holds on the path, which keeps the distances with this answer."""
    if not any(isinstance(x, Symbolic) for x in (a, b)):
        return bool(BY_SYMBOL[symbol].holds(a, b))
    path = a.path if isinstance(a, Symbolic) else b.path
    left, right = lifted(a, path), lifted(b, path)
    if not any(isinstance(x.slot, Slot) for x in (left, right)):
        return bool(BY_SYMBOL[symbol].holds(left.slot, right.slot))
    difference = _added(path, left.expr, -right.expr)
    if difference is S.NaN:  # of two infinite values
        return bool(BY_SYMBOL[symbol].holds(left.expr, right.expr))
    return path.decide(BY_SYMBOL[symbol], difference, left.slot, right.slot)


class Condition(Symbolic):
    """A comparison, decided when its truth is asked for; as a number 1 or 0."""

    __slots__ = ("ask",)

    def __init__(self, ask: Callable[[], bool], path: Path, given: bool = False) -> None:
        self.ask, self.path, self.given = functools.cache(ask), path, given

    def __getattr__(self, name: str) -> Any:
        if name in ("expr", "slot"):
            return sympy.Integer(self.ask()) if name == "expr" else self.ask()
        return super().__getattr__(name)

    def __bool__(self) -> bool:
        return self.ask()

    def __and__(self, other: object) -> Condition:
        return Condition(lambda: self.ask() and bool(other), self.path, _given(self, other))

    def __or__(self, other: object) -> Condition:
        return Condition(lambda: self.ask() or bool(other), self.path, _given(self, other))

    def __xor__(self, other: object) -> Condition:
        return Condition(lambda: self.ask() != bool(other), self.path, _given(self, other))

    def __invert__(self) -> Condition:
        return Condition(lambda: not self.ask(), self.path, self.given)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__


# -- what operations make of expressions ----------------------------------------------------------


def _added(path: Path, a: Expr, b: Expr) -> Expr:
    for one, other in ((a, b), (b, a)):
        if one in _INFINITE and other not in _INFINITE:
            return one
    return a + b


def _multiple(path: Path, a: Expr, b: Expr) -> Expr:
    product = a * b
    if product.is_Mul and product.has(*_INFINITE):  # which is nothing where the distance is 0
        raise NotTraced("an infinite multiple of the distance")
    return product


def _quotient(path: Path, a: Expr, b: Expr) -> Expr:
    if b.is_zero:
        raise ZeroDivisionError("division by zero")
    return S.Zero if b in _INFINITE and a not in _INFINITE else a / b


def _rounded(rounding: Any, e: Expr) -> Expr:
    """A rounded value, where floor(floor(x)/m) is floor(x/m)."""
    factor, rest = e.as_coeff_Mul()
    if isinstance(rest, rounding) and factor > 0 and (1 / factor).is_Integer:
        return rounding(factor * rest.args[0])
    return rounding(e)


def _remainder(path: Path, a: Expr, b: Expr) -> Expr:
    if not (b.is_Rational and b > 0):
        raise NotTraced("a remainder by what is no positive number")
    share = math.lcm(int(b.q), *(int(c.q) for c in a.expand().atoms(sympy.Rational)))
    if (share * a).is_integer:
        return sympy.Mod(share * a, share * b) / share
    return a - b * sympy.floor(a / b)


def _low_bits(path: Path, a: Expr, b: Expr) -> Expr:
    if not (b.is_Integer and b >= 0 and (b & (b + 1)) == 0 and a.is_integer):
        raise NotTraced("bits of the distance")
    return sympy.Mod(a, b + 1)


def _shifted(path: Path, a: Expr, b: Expr) -> Expr:
    if not (b.is_Integer and b >= 0):
        raise NotTraced("a shift by the distance")
    return _rounded(sympy.floor, a / 2**b)


OPERATORS: dict[str, tuple[Callable[[Path, Expr, Expr], Expr], Callable[..., Any]]] = {
    "add": (_added, operator.add),
    "sub": (lambda p, a, b: _added(p, a, -b), operator.sub),
    "mul": (_multiple, operator.mul),
    "truediv": (_quotient, operator.truediv),
    "floordiv": (lambda p, a, b: _rounded(sympy.floor, _quotient(p, a, b)), operator.floordiv),
    "mod": (_remainder, operator.mod),
    "pow": (lambda p, a, b: a**b, operator.pow),
    "and": (_low_bits, operator.and_),
    "rshift": (_shifted, operator.rshift),
}


def applied(
    make: Callable[..., Expr], call: Callable[..., Any], path: Path, *args: Any
) -> Symbolic:
    """An operation on values: its expression, and its place on the tape."""
    values = [lifted(a, path) for a in args]
    if not any(isinstance(v.slot, Slot) for v in values):
        return Symbolic(
            make(path, *(v.expr for v in values)), call(*(v.slot for v in values)), path
        )
    slot = path.written(call, *(v.slot for v in values))
    return Symbolic(make(path, *(v.expr for v in values)), slot, path)


def _binary(name: str, swapped: bool) -> Callable[[Symbolic, object], Any]:
    make, call = OPERATORS[name]

    def operate(self: Symbolic, other: object) -> Any:
        if name == "and" and isinstance(other, Condition):
            return other & self
        below = self if swapped else other
        if name in _DIVIDES and isinstance(below, Symbolic) and compared("==", below, 0):
            raise ZeroDivisionError("division by zero")
        if name == "pow":
            _has_power(*((other, self) if swapped else (self, other)))
        values = (other, self) if swapped else (self, other)
        return _made_of(applied(make, call, self.path, *values), *values)

    return operate


def _has_power(a: Any, b: Any) -> None:
    if not isinstance(a, Symbolic):
        return
    whole = b.expr.is_integer if isinstance(b, Symbolic) else b % 1 == 0
    if not whole and compared("<", a, 0):
        raise NotTraced("a root of a negative number")
    if not isinstance(b, Symbolic) and b < 0 and compared("==", a, 0):
        raise ZeroDivisionError("0.0 cannot be raised to a negative power")


def _refused(*given: object) -> NoReturn:
    raise NotTraced("bits of the distance")


_DIVIDES = ("truediv", "floordiv", "mod")
for _name in ("or", "ror", "xor", "rxor", "lshift", "rlshift", "matmul", "rmatmul", "invert"):
    setattr(Symbolic, f"__{_name}__", _refused)  # a program may catch a TypeError
for _name in OPERATORS:
    setattr(Symbolic, f"__{_name}__", _binary(_name, False))
    setattr(Symbolic, f"__r{_name}__", _binary(_name, True))
for _relation in SIX:
    setattr(
        Symbolic,
        f"__{_relation.name.lower()}__",
        lambda a, b, symbol=_relation.symbol: Condition(
            lambda: compared(symbol, a, b), a.path, _given(a, b)
        ),
    )
_ALONE: dict[str, Callable[..., Any]] = {
    "neg": lambda a: _made_of(applied(lambda p, e: -e, operator.neg, a.path, a), a),
    "pos": lambda a: a,
    "int": Symbolic.__index__,
    "round": lambda a, digits=None: FUNCTIONS["round"](a.path, a, digits),
    "abs": lambda a: FUNCTIONS["abs"](a.path, a),
    "trunc": lambda a: FUNCTIONS["int"](a.path, a),
    "floor": lambda a: FUNCTIONS["floor"](a.path, a),
    "ceil": lambda a: FUNCTIONS["ceil"](a.path, a),
}
for _name, _call in _ALONE.items():
    setattr(Symbolic, f"__{_name}__", _call)


# -- functions of the libraries -------------------------------------------------------------------


def _row(make: Callable[..., Expr], call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda path, *args, **options: applied(make, call, path, *args)


def _least(symbol: str) -> Callable[..., Any]:
    def choose(path: Path, *args: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], Symbolic):
            raise NotTraced("the least or largest of all distances")
        each = args if len(args) > 1 else tuple(args[0])
        return functools.reduce(lambda x, y: y if compared(symbol, y, x) else x, each)

    return choose


def _clipped(path: Path, x: Any, low: Any = None, high: Any = None, **ends: Any) -> Any:
    low = next((v for v in (low, ends.get("min"), ends.get("a_min")) if v is not None), None)
    high = next((v for v in (high, ends.get("max"), ends.get("a_max")) if v is not None), None)
    x = x if low is None else FUNCTIONS["maximum"](path, x, low)
    return x if high is None else FUNCTIONS["minimum"](path, x, high)


def _absolute(path: Path, x: Any) -> Any:
    return x if compared(">=", x, 0) else -x


def _truncated(path: Path, x: Any) -> Any:
    x = lifted(x, path)
    rounding = ROUNDING[0] if x.expr.is_integer or compared(">=", x, 0) else ROUNDING[1]
    return applied(lambda p, e: e if e.is_integer else _rounded(rounding, e), int, path, x)


def _nearest(path: Path, x: Any, ndigits: Any = None) -> Any:
    """Python's rounding: a half goes to the even neighbour."""
    x = lifted(x, path)
    if ndigits:
        return FUNCTIONS["round"](path, x * 10**ndigits) / 10**ndigits
    if x.expr.is_integer:
        return x
    half = sympy.expand(x.expr + S.Half)
    slope = sympy.diff(half, n)
    tie = False
    if slope.is_Rational and half.free_symbols <= {n}:
        both = applied(
            lambda p, e: _remainder(p, e, sympy.Integer(2)), lambda v: (v + 0.5) % 2, path, x
        )
        both.expr = _remainder(path, half, sympy.Integer(2))
        tie = compared("==", both, 1)
    return applied(lambda p, e: sympy.floor(half) - int(tie), round, path, x)


def _signum(path: Path, x: Any) -> int:
    return 0 if compared("==", x, 0) else 1 if compared(">", x, 0) else -1


def _log(base: Expr) -> Callable[..., Expr]:
    return lambda path, e, *more: sympy.log(e) / sympy.log(more[0] if more else base)


_SMOOTH: dict[str, tuple[Callable[..., Expr], Callable[..., Any]]] = {
    "log": (_log(S.Exp1), np.log),
    "log2": (_log(S(2)), np.log2),
    "log10": (_log(S(10)), np.log10),
    "log1p": (lambda p, e: sympy.log(1 + e), np.log1p),
    "exp": (lambda p, e: sympy.exp(e), np.exp),
    "exp2": (lambda p, e: 2**e, np.exp2),
    "expm1": (lambda p, e: sympy.exp(e) - 1, np.expm1),
    "sqrt": (lambda p, e: sympy.sqrt(e), np.sqrt),
    "rsqrt": (lambda p, e: 1 / sympy.sqrt(e), lambda x: 1 / np.sqrt(x)),
    "square": (lambda p, e: e**2, np.square),
    "reciprocal": (lambda p, e: 1 / e, lambda x: 1.0 / x),
    "negative": (lambda p, e: -e, operator.neg),
    "neg": (lambda p, e: -e, operator.neg),
    "sigmoid": (lambda p, e: 1 / (1 + sympy.exp(-e)), lambda x: 1 / (1 + np.exp(-x))),
    "softplus": (lambda p, e: sympy.log(1 + sympy.exp(e)), lambda x: np.logaddexp(0, x)),
    "logsigmoid": (lambda p, e: -sympy.log(1 + sympy.exp(-e)), lambda x: -np.logaddexp(0, -x)),
    "hypot": (lambda p, a, b: sympy.sqrt(a**2 + b**2), np.hypot),
    "floor": (lambda p, e: _rounded(sympy.floor, e), math.floor),
    "ceil": (lambda p, e: _rounded(sympy.ceiling, e), math.ceil),
    "erf": (lambda p, e: sympy.erf(e), math.erf),
    "erfc": (lambda p, e: sympy.erfc(e), math.erfc),
    "sin": (lambda p, e: sympy.sin(e), np.sin),
    "cos": (lambda p, e: sympy.cos(e), np.cos),
    "tanh": (lambda p, e: sympy.tanh(e), np.tanh),
    "sinh": (lambda p, e: sympy.sinh(e), np.sinh),
    "cosh": (lambda p, e: sympy.cosh(e), np.cosh),
    "atan": (lambda p, e: sympy.atan(e), np.arctan),
    "asinh": (lambda p, e: sympy.asinh(e), np.arcsinh),
}
_GUARDS = {
    **dict.fromkeys(("log", "log2", "log10", "rsqrt"), (">", 0)),
    **{"log1p": (">", -1), "sqrt": (">=", 0), "reciprocal": ("!=", 0)},
}
"""Arguments of which a function is no finite real number fail these."""


def smooth(name: str, real: Any, path: Path, *args: Any) -> Any:
    """A function of one rule, computed as the program computes it."""
    make, call = _SMOOTH[name]
    if isinstance(real, np.ufunc) or real is vars(math).get(name, 0):
        call = real
    x = lifted(args[0], path)
    if name in _GUARDS and not compared(_GUARDS[name][0], x, _GUARDS[name][1]):
        with np.errstate(all="ignore"):
            value = call(path.value(x.slot, path.start()), *args[1:])
        if math.isfinite(value) or x.expr.has(n):
            raise NotTraced(f"{name} where it has no value")
        return Symbolic(sympy.sympify(float(value)), float(value), path)
    return applied(make, call, path, *args)


_OF_OPERATORS = {
    **{name: name for name in ("add", "sub", "mul", "pow")},
    **{"subtract": "sub", "multiply": "mul", "divide": "truediv", "true_divide": "truediv"},
    **{"div": "truediv", "floor_divide": "floordiv", "remainder": "mod", "fmod": "mod"},
    **{"mod": "mod", "power": "pow", "float_power": "pow", "bitwise_right_shift": "rshift"},
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        name: lambda path, *args, name=name, **_: smooth(name, None, path, *args)
        for name in _SMOOTH
    },
    **{name: _row(*OPERATORS[of]) for name, of in _OF_OPERATORS.items()},
    **{
        r.ufunc: lambda path, a, b, symbol=r.symbol, **_: Condition(
            lambda: compared(symbol, a, b), path
        )
        for r in SIX
    },
    **{
        r.name.lower(): lambda path, a, b, symbol=r.symbol: Condition(
            lambda: compared(symbol, a, b), path
        )
        for r in SIX
    },
    "abs": _absolute,
    "int": _truncated,
    "round": _nearest,
    "sign": _signum,
    "min": _least("<"),
    "max": _least(">"),
    "clip": _clipped,
    "where": lambda path, c, a, b: a if c else b,
    "masked_fill": lambda path, x, c, value: value if c else x,
    "relu": lambda path, x, **_: x if compared(">", x, 0) else 0,
    "logical_and": lambda path, a, b: bool(a) and bool(b),
    "logical_or": lambda path, a, b: bool(a) or bool(b),
    "logical_not": lambda path, a: not a,
    "isinf": lambda path, x: lifted(x, path).expr in _INFINITE[:2],
    "isnan": lambda path, x: lifted(x, path).expr is S.NaN,
    "isfinite": lambda path, x: lifted(x, path).expr not in _INFINITE,
    "zeros_like": lambda path, x, **_: 0.0,
    "ones_like": lambda path, x, **_: 1.0,
    "full_like": lambda path, x, value, **_: value,
    "new_zeros": lambda path, x, *_, **__: lifted(0, path),
    "new_ones": lambda path, x, *_, **__: lifted(1, path),
    "new_full": lambda path, x, shape, value, **_: lifted(value, path),
    "new_tensor": lambda path, x, value, **_: lifted(value, path),
    "divmod": lambda path, a, b: (a // b, a % b),
    "isinstance": lambda path, x, kinds: _isinstance(x, kinds),
    "ndim": lambda path, x: 0,
    "sum": lambda path, values, start=0: functools.reduce(operator.add, values, start),
    **{
        name: lambda path, x, *kinds, name=name, **_: _typed(lifted(x, path), name, *kinds)
        for name in ("float", "float64", "double", "int64", "float32")
    },
    **{
        name: lambda path, x, *kinds, **_: _typed(lifted(x, path), *kinds)
        for name in ("tensor", "asarray", "array", "as_tensor")
    },
    **{
        name: lambda path, x, *_, **__: lifted(x, path).__copy__()
        for name in ("clone", "deepcopy", "atleast_1d", "squeeze", "copy")
    },
}
FUNCTIONS |= {
    alias: FUNCTIONS[name]
    for name, aliases in {
        "min": ("minimum", "fmin"),
        "max": ("maximum", "fmax"),
        "sigmoid": ("expit",),
        "abs": ("fabs", "absolute"),
        "int": ("trunc", "fix"),
        "clip": ("clamp",),
        "atan": ("arctan",),
        "asinh": ("arcsinh",),
        "round": ("rint", "around"),
        "logical_and": ("bitwise_and",),
        "logical_or": ("bitwise_or",),
        "logical_not": ("bitwise_not",),
    }.items()
    for alias in aliases
}
BUILTINS = (
    "id",
    "min",
    "max",
    "abs",
    "int",
    "float",
    "round",
    "pow",
    "divmod",
    "isinstance",
    "sum",
    "type",
)


_ENDS = {"min", "max", "a_min", "a_max"}
_OPTIONS = {"clip": _ENDS, "clamp": _ENDS, "round": {"ndigits"}, "sum": {"start"}}


def _called(name: str, path: Path, *args: Any, **options: Any) -> Any:
    """A function by its name; an option that is not understood ends the trace."""
    given = {k: v for k, v in options.items() if k not in ("dtype", "device") and v is not None}
    if strange := given.keys() - _OPTIONS.get(name, set()):
        raise NotTraced(f"{name} with {min(strange)}=")
    value = FUNCTIONS[name](path, *args, **given)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    value = lifted(value, path) if number or hasattr(value, "item") else value
    kind = options.get("dtype")
    return value if kind is None else _typed(lifted(value, path), kind)


def _isinstance(x: Any, kinds: Any) -> bool:
    each = [
        k.real if isinstance(k, Library) else k
        for k in (kinds if isinstance(kinds, tuple) else (kinds,))
    ]
    if isinstance(x, Symbolic):  # at the first distance of the path, as it is of a value
        x = x.path.value(x.slot, x.path.start()) if isinstance(x.slot, Slot) else x.slot
    return isinstance(x, tuple(each))


class Captured:
    """A tensor that a program holds: an index that depends on the distance takes its values."""

    def __init__(self, real: Any) -> None:
        self.real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def __len__(self) -> int:
        return len(self.real)

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        plain = tuple(operator.index(k) if isinstance(k, Symbolic) else k for k in keys)
        found = self.real[plain if isinstance(key, tuple) else plain[0]]
        return Captured(found) if found.numel() > 1 else found


class Library:
    """A module or function of a library that takes symbolic values too."""

    def __init__(self, real: Any, path: Path) -> None:
        self.real, self.path = real, path

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.real, name)
        known = callable(found) and (name in FUNCTIONS or not isinstance(found, type))
        return Library(found, self.path) if known or isinstance(found, types.ModuleType) else found

    def __call__(self, *args: Any, **options: Any) -> Any:
        given = (*args, *options.values())
        flat = [y for x in given for y in (x if isinstance(x, (list, tuple)) else [x])]
        name = getattr(self.real, "__name__", "").removeprefix("special_")
        if name in ("isinstance", "sum") or any(isinstance(x, Symbolic) for x in flat):
            if name not in FUNCTIONS:
                raise NotTraced(f"{name} of the distance has no formula here")
            two = len(args) == 2 and not isinstance(args[1], int) and name != "sum"
            whole = self.real is not getattr(builtins, name, None) and not two
            if whole and name in ("min", "max", "sum"):
                raise NotTraced(f"{name} of all distances")
            if name in _SMOOTH and not options:
                return smooth(name, self.real, self.path, *args)
            value = _called(name, self.path, *args, **options)
            of_python = self.real is getattr(builtins, name, None) and isinstance(value, Symbolic)
            return _made_of(value, *args) if of_python else value
        with contextlib.suppress(TypeError):
            return self._real(args, options)
        if name in FUNCTIONS:  # as torch.exp2 of a plain number
            return _called(name, self.path, *args, **options)
        return self._real(args, options)

    def _real(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        plainly = [x.real if isinstance(x, Library) else x for x in args]
        return self.real(
            *plainly,
            **{
                k: getattr(v, "real", v) if isinstance(v, Library) else v
                for k, v in options.items()
            },
        )


def symbolic(x: Any, path: Path) -> Any:
    """The stand-in for a library, or for a function of one, while a program runs."""
    if isinstance(x, types.ModuleType):
        return Library(x, path) if x.__name__.partition(".")[0] in LIBRARIES else x
    name = getattr(x, "__name__", "")
    homes = (sys.modules.get(m) for m in LIBRARIES)
    if callable(x) and any(home is not None and x is getattr(home, name, None) for home in homes):
        return Library(x, path)
    return x
