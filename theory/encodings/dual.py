"""Values with the formula that made them: a distance is handed to a function of NumPy or torch.

Each operation is done on the values, by the library itself; so nothing that a function asks of its
argument is out of the way. Beside them goes a text of the grammar, as long as every operation and
every argument of it is one that the grammar has. Else the text ends and the values go on.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy

from farfield.theory.formula.grammar import read
from farfield.theory.relations import BY_SIGN, SIX

SUM, PRODUCT, POWER, ATOM = 1, 2, 3, 4
_CONSTANTS = {math.pi: "pi", -math.pi: "-pi", 2 * math.pi: "(2*pi)", math.e: "E"}
_OPERATORS = {
    "add": ("+", SUM),
    "sub": ("-", SUM),
    "mul": ("*", PRODUCT),
    "truediv": ("/", PRODUCT),
    "floordiv": ("//", PRODUCT),
    "mod": ("%", PRODUCT),
    "pow": ("**", POWER),
    "and": ("&", SUM),
    "or": ("|", SUM),
}
_INFIX = {
    **{f"__{name}__": sign for name, (sign, _) in _OPERATORS.items()},
    **{name: sign for name, (sign, _) in _OPERATORS.items()},
    **{relation.ufunc: relation.sign for relation in SIX},
    **{relation.name.lower(): relation.sign for relation in SIX},
    "logical_and": "&",
    "bitwise_and": "&",
    "logical_or": "|",
    "bitwise_or": "|",
}
_BINDS = dict(_OPERATORS.values())
_SAME = {
    *("float", "double", "half", "to", "astype", "type", "type_as", "copy", "clone", "detach"),
    *("contiguous", "cpu", "unsqueeze", "squeeze", "expand", "view", "reshape", "asarray", "array"),
    *("as_tensor", "tensor", "float32", "float64", "float16"),
}
"""Calls that may change no value; one that does ends the text."""
_ALONE = ("min", "max", "amin", "amax", "where")
"""Names that mean something else with one argument alone."""


_BOUNDS = ("min", "max", "a_min", "a_max")
Args = tuple[object, ...]


def floats(value: Any) -> np.ndarray:
    """Numbers of NumPy, torch or JAX as float64."""
    for name in ("detach", "cpu", "double"):
        value = getattr(value, name, lambda value=value: value)()
    return np.asarray(value, dtype=np.float64)


class Dual:
    """Values, the text of their formula (None where there is none), and how tightly it binds."""

    __array_priority__ = 1000

    def __init__(self, value: Any, text: str | None, binds: int = ATOM) -> None:
        self.value, self.binds = value, binds
        self.text = None if text is None or len(text) > 10_000 else text

    def _sympy_(self) -> sympy.Expr:
        return read(self.text or "")

    def __array__(self, *args: object, **options: object) -> np.ndarray:
        return self.value.__array__(*args, **options)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *args: object, **options: object
    ) -> object:
        name = ufunc.__name__ if method == "__call__" else ""
        return _applied(getattr(ufunc, method), name, args, options)

    def __array_function__(
        self, func: Callable[..., object], types: object, args: Args, options: dict[str, object]
    ) -> object:
        return _applied(func, func.__name__, args, options)

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., object],
        types: object,
        args: Args = (),
        options: dict[str, object] | None = None,
    ) -> object:
        name = func.__name__.removeprefix("special_")
        if name.startswith("__r") and name.strip("_")[1:] in _OPERATORS:
            back = name.strip("_")[1:]
            return _applied(lambda a, b: func(b, a), back, args[::-1], options or {})
        return _applied(func, name.strip("_"), args, options or {})

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.value, name)
        if not callable(attribute):
            return attribute

        def method(*args: object, **options: object) -> object:
            call = lambda value, *rest, **more: getattr(value, name)(*rest, **more)  # noqa: E731
            return _applied(call, name, (self, *args), options)

        return method

    def __getitem__(self, key: object) -> Dual:
        keys = key if isinstance(key, tuple) else (key,)
        whole = all(k is None or k is Ellipsis or k == slice(None) for k in map(_plain, keys))
        return Dual(self.value[_plain(key)], self.text if whole else None, self.binds)

    def __setitem__(self, key: object, value: object) -> None:
        self.value[_plain(key)] = _plain(value)
        held, other = (_text(x, SUM) for x in (key, value))
        traced = isinstance(key, Dual) and None not in (held, other, self.text)
        self.text, self.binds = f"where({held}, {other}, {self.text})" if traced else None, ATOM

    def __hash__(self) -> int:
        return id(self)


def _operator(name: str, back: bool) -> Callable[[Dual, object], object]:
    """A Python operator; `back` where the dual is on the right."""
    call = getattr(operator, name if name not in ("and", "or") else f"{name}_")

    def apply(self: Dual, other: object) -> object:
        if isinstance(other, sympy.Basic):
            return NotImplemented if back else call(self._sympy_(), other)
        return _applied(call, name, (other, self) if back else (self, other), {})

    return apply


def _whole(call: Callable[..., object], name: str = "") -> Callable[[Dual], object]:
    """A function of all values: with a name it has a text, without one it is no array."""
    return lambda self: _applied(call, name, (self,), {}) if name else call(self.value)


for _name in (*_OPERATORS, *(relation.name.lower() for relation in SIX)):
    setattr(Dual, f"__{_name}__", _operator(_name, False))
    if _name in _OPERATORS:
        setattr(Dual, f"__r{_name}__", _operator(_name, True))
for _name in ("neg", "abs", "invert"):
    setattr(Dual, f"__{_name}__", _whole(getattr(operator, _name), _name))
for _call in (bool, float, len, iter):
    setattr(Dual, f"__{_call.__name__}__", _whole(_call))


def _plain(value: Any) -> Any:
    """A value without its formula, also in lists."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value))
    return value.value if isinstance(value, Dual) else value


def _applied(
    call: Callable[..., object], name: str, args: Args, options: dict[str, object]
) -> object:
    """What a function gives: its values, and its text where the grammar has all of it."""
    value = call(*_plain(args), **{k: _plain(v) for k, v in options.items()})
    if not hasattr(value, "dtype"):
        return value
    first = args[0] if args else None
    if name in _SAME and isinstance(first, Dual):
        same = np.array_equal(floats(value).ravel(), floats(first.value).ravel())
        return Dual(value, first.text if same else None, first.binds)
    text, binds = _written(name, args, options) or (None, ATOM)
    return Dual(value, text, binds)


def _written(name: str, args: Args, options: dict[str, object]) -> tuple[str, int] | None:
    """The text of a call, and how it binds; None where an argument is not understood."""
    ends: dict[str, object] = {}
    if name in ("clip", "clamp"):
        ends = dict(zip(("min", "max"), args[1:], strict=False))
        ends |= {k.removeprefix("a_"): v for k, v in options.items() if k in _BOUNDS}
        args, options = args[:1], {k: v for k, v in options.items() if k not in _BOUNDS}
    elif len(args) < 2 and name in _ALONE:
        return None
    ends = {k: _text(v, SUM) for k, v in ends.items() if v is not None}
    given = [_text(a, SUM) for a in args]
    if options or None in (*given, *ends.values()):
        return None
    if name in ("invert", "logical_not", "bitwise_not"):
        return f"~({given[0]})", ATOM
    if (sign := _INFIX.get(name)) is not None and len(args) == 2:
        if sign in BY_SIGN or sign in "&|":
            return f"({given[0]} {sign} {given[1]})", ATOM
        binds, power = _BINDS[sign], sign == "**"
        return f"{_text(args[0], binds + power)}{sign}{_text(args[1], binds + (not power))}", binds
    return f"{name}({', '.join([*map(str, given), *(f'{k}={v}' for k, v in ends.items())])})", ATOM


def _text(value: Any, binds: int) -> str | None:
    """A value as text that binds at least so tightly; None where it has none."""
    if isinstance(value, Dual):
        if value.text is None:
            return None
        return value.text if value.binds >= binds else f"({value.text})"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, sympy.Basic):
        return f"({value})"
    if hasattr(value, "item") and hasattr(value, "dtype"):
        if math.prod(value.shape) != 1 or value.ndim > 1:
            return None
        value = value.detach() if hasattr(value, "detach") else value
        single = "float32" in str(value.dtype) and hasattr(value, "numpy")
        value = value.numpy().reshape(())[()] if single else value if value.ndim == 0 else value[0]
        value = value.item() if hasattr(value, "detach") else value
    if isinstance(value, str) or not hasattr(value, "__float__"):
        return None
    text = _CONSTANTS.get(value) or str(value).replace("inf", "oo")
    if "nan" in text or "j" in text:
        return None
    return text if binds <= SUM or not text.startswith("-") else f"({text})"
