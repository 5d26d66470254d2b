"""A formula that is no text: a SymPy expression in symbols of its own, a Python function.

A function is called once, with a distance that records each operation. The result is text that the
grammar reads, so whatever NumPy, torch or SymPy calls a function, the grammar knows or refuses.
Nothing is sampled, and no value is guessed.
"""

from __future__ import annotations

import inspect
import itertools
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import sympy
from sympy import Expr, S, Symbol

from farfield.theory.answers.errors import InputError
from farfield.theory.answers.number import MAX_BITS, exact
from farfield.theory.formula.bounded_nodes import rebuilt
from farfield.theory.formula.conditions import ENDED, ended
from farfield.theory.formula.finite_sums import sum_of_sympy
from farfield.theory.formula.grammar import OF_ROWS, read
from farfield.theory.formula.parameters import domain_of, parameter
from farfield.theory.functions.nodes import Lookup, n
from farfield.theory.functions.record import Refused, record_of
from farfield.theory.relations import BY_SIGN, SIX

_BUILT = (
    sympy.Add,
    sympy.Mul,
    sympy.Pow,
    sympy.Symbol,
    sympy.Rational,
    sympy.Piecewise,
    sympy.Tuple,
    sympy.Sum,
    sympy.NumberSymbol,
    Lookup,
    sympy.core.relational.Relational,
    sympy.logic.boolalg.Boolean,
    type(S.Infinity),
    type(S.NegativeInfinity),
)
_ALMOST_N = Symbol("n", integer=True, positive=True).assumptions0  # true of all distances but 0


def as_expression(f: Any, domains: Mapping[str, str] | None = None) -> Expr:
    """A SymPy expression or a Python function of the distance, in the project's own symbols.

    In a SymPy expression the symbol called n, or else the only symbol, becomes the distance; other
    symbols become parameters of the domain said (else of what they assume; else positive), floats
    the decimals they print as.

    Raises:
        InputError: for anything that the reader of formulas would not have built; several symbols,
            none called n; a distance that SymPy took for negative, even or the like; a parameter
            that it took for complex; integers that Python does not write.

    >>> as_expression(-sympy.log(1 + sympy.Symbol("x")))
    -log(n + 1)
    """
    if callable(f) and not isinstance(f, (sympy.Basic, type)):
        f = traced(f)
    if hasattr(f, "item") and getattr(f, "ndim", None) == 0:
        f = exact(f, "formula")
    if isinstance(f, str):  # as it was traced
        return read(f, domains)
    if not isinstance(f, (sympy.Basic, int, float)) or isinstance(f, bool):
        raise InputError(
            "a formula is text, a SymPy expression or a function of the distance, "
            f"not {type(f).__name__}"
        )
    expr = sympy.sympify(f)
    if not isinstance(expr, Expr) or expr.has(sympy.MatrixExpr):
        raise InputError(f"{str(f)[:40]!r} is not a formula with a number at each distance")
    if any(max(abs(x.p), x.q).bit_length() > MAX_BITS for x in expr.atoms(sympy.Rational)):
        raise InputError(f"the formula has a number of more than {MAX_BITS} bits")
    said = dict(domains or {})
    swap: dict[Any, Expr] = {x: exact(x) for x in expr.atoms(sympy.Float)}
    distance = _distance(expr, f)
    for symbol in expr.free_symbols:
        if symbol == distance:
            swap[symbol] = n
        else:
            swap[symbol] = parameter(symbol.name, said.get(symbol.name) or domain_of(symbol))
    try:
        expr = _as_read(expr.xreplace({k: v for k, v in swap.items() if k != v}))
    except Refused as wrong:
        raise InputError(f"a part of {str(f)[:40]!r} {wrong}") from None
    for node in sympy.preorder_traversal(expr):
        record = record_of(node.func)
        if not isinstance(node, _BUILT) and not (record and record.names):
            raise InputError(f"{type(node).__name__} in {str(f)[:40]!r} is not part of a formula")
    if expr.has(S.NaN, S.ComplexInfinity, S.ImaginaryUnit):
        raise InputError(f"formula {str(f)[:40]!r} is not real or undefined")
    return expr


def _as_read(e: Any) -> Any:
    """Rebuild functions of several arguments with the constructors of the grammar, and sums by
    SymPy's convention."""
    args = tuple(map(_as_read, e.args))
    if isinstance(e, sympy.Piecewise) and ended(e.args):
        raise InputError(f"{str(e)[:40]!r}: {ENDED}")
    if isinstance(e, sympy.Sum):
        return sum_of_sympy(e.func(*args))
    record = record_of(e.func) if len(args) > 1 else None
    if record is not None and record.build is not None:
        return record.build(*args)
    return e if args == e.args else rebuilt(e.func, args)


def _distance(expr: Expr, f: Any) -> Symbol | None:
    """The symbol of the distance."""
    symbols = sorted(expr.free_symbols, key=lambda s: str(s.name))
    for one, other in itertools.pairwise(symbols):
        if one.name == other.name != "n":
            raise InputError(
                f"formula {str(f)[:40]!r} has two symbols of SymPy called {one.name}; "
                "accepted: one of each name"
            )
    named = [s for s in symbols if s.name == "n"] or symbols
    if len(named) > 1:
        names = ", ".join(str(s.name) for s in named)
        raise InputError(
            f"formula {str(f)[:40]!r} has several symbols that may be the distance: {names}; "
            "accepted: one called n, or a single symbol"
        )
    for symbol in named:
        for name, value in symbol.assumptions0.items():
            if value not in (_ALMOST_N.get(name), n.assumptions0.get(name)):
                raise InputError(
                    f"formula {str(f)[:40]!r}: SymPy took {symbol.name} for "
                    f"{'' if value else 'not '}{name.replace('_', ' ')}; accepted: a symbol "
                    "without assumptions, integer, real, positive or nonnegative"
                )
    return named[0] if named else None


# -- Python functions -----------------------------------------------------------------------------

SUM, PRODUCT, POWER, ATOM = 1, 2, 3, 4
CONSTANTS = {math.pi: "pi", -math.pi: "-pi", 2 * math.pi: "(2*pi)", math.e: "E"}
OTHERWISE = "accepted: arithmetic and the functions of NumPy, torch or SymPy; or a table, values="
_OPERATORS = {
    "add": ("+", SUM),
    "sub": ("-", SUM),
    "mul": ("*", PRODUCT),
    "truediv": ("/", PRODUCT),
    "floordiv": ("//", PRODUCT),
    "mod": ("%", PRODUCT),
    "pow": ("**", POWER),
}
_UFUNCS = {
    **{relation.ufunc: relation.sign for relation in SIX},
    "logical_and": "&",
    "bitwise_and": "&",
    "logical_or": "|",
    "bitwise_or": "|",
}
_CASTS = (
    *("float", "double", "half", "float16", "float32", "float64", "to", "astype", "type"),
    *("type_as", "asarray", "array", "as_tensor", "tensor", "copy", "clone", "detach"),
    *("contiguous", "cpu", "unsqueeze", "squeeze", "expand", "view", "reshape"),
)
"""What leaves each number as it is, unless a type among its arguments rounds it."""
_KEEPS = re.compile(r"float|double|half|^[<>=]?f[248]$|cpu|cuda|mps|device|format|^-?\d+$")
"""A type that does not round, a device, a layout, or a length of a shape, as each is printed."""
_OF_A_ROW = ("min", "max", "amin", "amax")
_ENDS = ("min", "max", "a_min", "a_max")
_SHAPES = ("shape", "ndim", "T", "size", "dtype", "device", "item", "tolist")


def traced(f: Callable[..., Any]) -> Any:
    """The text (or SymPy expression) that a function of the distance computes.

    Raises:
        InputError: where it takes several arguments, branches on the distance, asks for its shape
            or value, or returns no expression.

    >>> traced(lambda n: -0.5 * n**2)
    '(-0.5)*n**2'
    """
    name = getattr(f, "__name__", type(f).__name__)
    try:
        wanted = [
            p
            for p in inspect.signature(f).parameters.values()
            if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):  # a ufunc, a function written in C
        wanted = [None]  # type: ignore[list-item]
    if len(wanted) != 1:
        raise InputError(f"{name} takes {len(wanted)} arguments; accepted: one, the distance")
    try:
        value = f(Traced("n"))
    except InputError:
        raise
    except RecursionError:
        raise InputError(f"{name} cannot be traced: it does not end; {OTHERWISE}") from None
    except Exception as error:  # whatever a user's function raises on a value it did not expect
        said = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise InputError(f"{name} cannot be traced: {said}; {OTHERWISE}") from None
    if isinstance(value, sympy.Basic):
        return value
    return _text(value, SUM)


class Traced:
    """A distance or a function of the distance, as text, and how tightly it binds."""

    def __init__(self, text: str, binds: int = ATOM) -> None:
        if len(text) > 10_000:
            raise InputError("the function writes a formula of more than 10000 characters")
        self._text, self._binds = text, binds

    def __repr__(self) -> str:
        return self._text

    def _sympy_(self) -> Any:
        return read(self._text)

    def __neg__(self) -> Traced:
        return Traced(f"-{_text(self, POWER)}", SUM)

    def __pos__(self) -> Traced:
        return self

    def __abs__(self) -> Traced:
        return _called("abs", self)

    def __invert__(self) -> Traced:
        return Traced(f"~({self._text})")

    def __and__(self, other: Any) -> Traced:
        return _infix("&", self, other, SUM)

    def __or__(self, other: Any) -> Traced:
        return _infix("|", self, other, SUM)

    def __getitem__(self, key: Any) -> Traced:
        if all(k in (None, Ellipsis) or k == slice(None) for k in _each(key)):
            return self
        _refuse(f"it takes a part of its argument, [{key}]")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Traced:
        if method != "__call__":
            _refuse(f"np.{ufunc.__name__}.{method}")
        _require_plain(ufunc.__name__, options)
        if ufunc.__name__ in _UFUNCS:
            first, second = inputs
            return _infix(_UFUNCS[ufunc.__name__], first, second, SUM)
        if ufunc.__name__ in ("logical_not", "invert"):
            return Traced(f"~({_text(inputs[0], SUM)})")
        return _called(ufunc.__name__, *inputs)

    def __array_function__(
        self, func: Any, types: Any, args: tuple[Any, ...], options: dict[str, Any]
    ) -> Traced:
        if func.__name__ in _OF_A_ROW:
            _refuse(f"it takes the {func.__name__} of a row")
        return _called(func.__name__, *args, **options)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), options: Any = None
    ) -> Any:
        name = func.__name__.strip("_").removeprefix("special_")
        if func.__name__.endswith("_") and not func.__name__.startswith("_"):
            _refuse(f"it changes its argument, by {func.__name__}")
        if name in _OPERATORS or name.removeprefix("r") in _OPERATORS:
            back = name not in _OPERATORS
            sign, binds = _OPERATORS[name.removeprefix("r") if back else name]
            first, second = args[::-1] if back else args
            _require_plain(name, options or {})
            return _infix(sign, first, second, binds)
        return _called(name, *args, **(options or {}))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in _SHAPES:
            if name.startswith("__"):
                raise AttributeError(name)
            _refuse(f"it asks for .{name} of its argument")
        if name in ("min", "max"):
            _refuse(OF_ROWS.format(name=name))
        return lambda *args, **options: _called(name, self, *args, **options)

    def __bool__(self) -> NoReturn:
        _refuse(f"it branches on {self._text}; write np.where or torch.where")

    def __float__(self) -> NoReturn:
        _refuse(f"it asks for the value of {self._text}; write np.log, torch.log or the like")

    __int__ = __index__ = __complex__ = __float__

    def __len__(self) -> NoReturn:
        _refuse("it asks for the length of its argument")

    def __iter__(self) -> NoReturn:
        _refuse("it goes through its argument")

    def __hash__(self) -> int:
        return id(self)


def _operator(sign: str, binds: int, back: bool) -> Callable[[Traced, Any], Traced]:
    """A Python operator that writes its formula; `back` where the traced side is the right one."""

    def apply(self: Traced, other: Any) -> Traced:
        return _infix(sign, other, self, binds) if back else _infix(sign, self, other, binds)

    return apply


for _name, (_sign, _binds) in _OPERATORS.items():
    setattr(Traced, f"__{_name}__", _operator(_sign, _binds, False))
    setattr(Traced, f"__r{_name}__", _operator(_sign, _binds, True))
for _relation in SIX:
    setattr(Traced, f"__{_relation.name.lower()}__", _operator(_relation.sign, ATOM, False))


def _infix(sign: str, left: Any, right: Any, binds: int) -> Traced:
    """Two operands and a sign, with brackets where the sides bind less tightly."""
    if sign in BY_SIGN or sign in "&|":
        return Traced(f"({_text(left, SUM)} {sign} {_text(right, SUM)})")
    power = sign == "**"
    text = f"{_text(left, binds + power)}{sign}{_text(right, binds + (not power))}"
    return Traced(text, binds)


def _called(name: str, *args: Any, **options: Any) -> Traced:
    """A function, or a method of the distance, by its name."""
    if name in _CASTS:
        for value in (*args[1:], *options.values()):
            if not _keeps(value):
                _refuse(f"it rounds its argument, by {name}; write np.floor or torch.floor")
        return args[0] if isinstance(args[0], Traced) else Traced(_text(args[0], ATOM))
    if name in _OF_A_ROW and not (len(args) == 2 and _is_array(args[1])):
        _refuse(OF_ROWS.format(name=name.removeprefix("a")))
    kept = {}
    if name in ("clip", "clamp"):
        kept = {k: v for k, v in options.items() if k in _ENDS and v is not None}
        if len(args) > 1 and args[1] is None:
            args, kept = args[:1], kept | {"max": args[2]}
        if len(args) > 2 and args[2] is None:
            args = args[:2]
    _require_plain(name, {k: v for k, v in options.items() if k not in kept})
    given = [_text(a, SUM) for a in args] + [f"{k}={_text(v, SUM)}" for k, v in kept.items()]
    return Traced(f"{name}({', '.join(given)})")


def _require_plain(name: str, options: Mapping[str, Any]) -> None:
    """Refuse an argument by name that may change the value, which is any but a type of floats."""
    for key, value in options.items():
        if value is not None and key != "casting" and not (key == "dtype" and _keeps(value)):
            _refuse(f"it calls {name} with {key}={str(value)[:20]}")


def _keeps(value: Any) -> bool:
    """Whether an argument of a cast leaves numbers as they are.

    >>> import numpy as np
    >>> [_keeps(v) for v in (None, np.float32, "f4", 64, int, "int32", Traced("n"))]
    [True, True, True, True, False, False, False]
    """
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, (tuple, list)):
        return all(map(_keeps, value))
    said = value if isinstance(value, (type, Traced)) else getattr(value, "dtype", value)
    return _KEEPS.search(str(said).lower()) is not None and not isinstance(value, Traced)


def _is_array(value: Any) -> bool:
    return isinstance(value, Traced) or hasattr(value, "ndim")


def _text(value: Any, binds: int) -> str:
    """A value as text that binds at least so tightly."""
    if isinstance(value, Traced):
        return value._text if value._binds >= binds else f"({value._text})"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, sympy.Basic):
        return f"({value})"
    if hasattr(value, "item"):
        if getattr(value, "ndim", 0) != 0:
            _refuse(f"it uses an array of shape {tuple(value.shape)}")
        detached = getattr(value, "detach", lambda: value)()
        value = getattr(detached, "numpy", lambda: detached)()
        value = value[()] if hasattr(value, "ndim") else value
    if isinstance(value, str) or not hasattr(value, "__float__"):
        _refuse(f"it returns or uses {type(value).__name__} {str(value)[:40]!r}")
    text = CONSTANTS.get(value) or str(value).replace("inf", "oo")
    if "nan" in text or "j" in text:
        _refuse(f"it uses {text}")
    return text if binds <= SUM or not text.startswith("-") else f"({text})"


def _each(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _refuse(why: str) -> NoReturn:
    raise InputError(f"the function cannot be traced: {why}; {OTHERWISE}")
