"""A Python function of the distance as an exact formula: it is run once for each path through it.

The function runs on a symbolic distance, once for each set of distances on which it takes the same
branches (`branches`). It runs as a copy, in whose globals the libraries take symbolic values
(`traced_values`); the module that it is from is not touched. What it returns on each path is a
piece of the formula. Before an answer is given, the formula and the program are held against each
other at the edges, at powers of two and where a rounding may go either way.
"""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import functools
import math
import sys
import types
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import sympy
from sympy import Expr, S

from farfield.theory.algebra.door import Interrupted, after, watched
from farfield.theory.encodings.branches import (
    MARK,
    PATHS,
    PROBED,
    ROUNDING,
    Domain,
    NotTraced,
    Path,
    Raised,
    powers,
    program_frame,
)
from farfield.theory.encodings.layouts import LEAST
from farfield.theory.encodings.program_state import state, used
from farfield.theory.encodings.traced_values import (
    BUILTINS,
    LIBRARIES,
    Captured,
    Condition,
    Library,
    Symbolic,
    lifted,
    symbolic,
)
from farfield.theory.functions.nodes import n
from farfield.theory.values import tabulate

KEY, BATCH, HEAD = sympy.symbols("key batch head", integer=True, nonnegative=True)
SCORE = sympy.Symbol("score", real=True)
TRACE_S, PATIENCE = 3.0, 2
KEYS, HEADS = (0, 7, 12_345), 8
AT_SCORE = 0.375
SINGLE = 4e-6  # tensors of integers become those of float32
CLOSE = {"float32": SINGLE, "bfloat16": 0.0, "float16": 0.0}
"""Relatively, of a program's value and its formula's; of what is rounded to a half, nothing is."""
TIES = 12_000
"""Distances at which a rounding may go either way, and the program is held against its formula."""
SKIPPED = 8
"""Distances at which a program may raise, as `1/n` does at 0."""
ANYWHERE = {*range(256), *(PROBED * k // 128 + k * k % 127 for k in range(128))}
"""Distances at which a program is held against its formula, whatever it looks like."""
T = TypeVar("T")
_RAISED = (ArithmeticError, AssertionError, ValueError, LookupError)


class Untraced(Exception):
    """A program has no formula here: why, with its line."""


@dataclass(frozen=True)
class Piece:
    """What a program returns on a set of distances, and the tape that says it in floats."""

    domain: Domain
    formula: Expr
    path: Path
    slot: Any


def traced(f: Any, kind: str, head: int | None = 0) -> Expr:
    """The formula of a program, of all distances.

    Args:
        f: a function, or an object that is called.
        kind: its arguments, one letter each: `n` the distance, `m` less the distance, `q` and `k`
            positions, `b` and `h` batch and head, `s` the score, to which a bias may be added.
        head: the head, from 0; None for all heads, where their formulas are one.

    Raises:
        Untraced: a path has no formula here, or the program differs from its formula.

    >>> import math
    >>> traced(lambda n: 0.0 if n < 4096 else -math.inf, "n")
    Piecewise((0, n < 4096), (-oo, True))
    >>> traced(lambda q, k: -min(q - k, 1024) / 64, "qk")
    Piecewise((-n/64, n < 1025), (-16, True))
    """
    before = None
    with contextlib.suppress(NotTraced):  # whose reason is told below
        before = state(f)
    try:  # constants as their digits read; where the program differs, their binary values
        return _formula(f, kind, head, False)
    except Untraced as why:
        if "gives" not in str(why):
            raise
        _require_same(f, before)  # what changes in its first calls alone would be what it becomes
        return _formula(f, kind, head, True)


def _formula(f: Any, kind: str, head: int | None, binary: bool) -> Expr:
    try:
        pieces = _in_time(lambda: _explored(f, kind, head, binary))
        with contextlib.suppress(Untraced):  # what a first call makes and keeps
            _in_time(partial(_run, f, kind, head, 0, KEYS[0], ""))
        before = state(f)
    except NotTraced as why:
        raise Untraced(str(why)) from None
    _compare(f, kind, head, pieces)
    _require_same(f, before)
    return pieced(pieces)


def _require_same(f: Any, before: list[Any] | None) -> None:
    """That calls of the program have changed nothing that it holds."""
    try:
        same = state(f) == before
    except NotTraced as why:  # what it holds has grown
        raise Untraced(str(why)) from None
    if not same:
        raise Untraced("its calls change what it holds")


def _in_time(call: Callable[[], T]) -> T:
    """A call of the program, or of SymPy about it, that ends."""
    late = after(TRACE_S, PATIENCE)
    try:
        value = watched(late, call)
        if not late():  # else the program may have caught what ends it
            return value
    except Interrupted:
        pass
    raise Untraced(f"it was not followed within {TRACE_S:g} s")


def pieced(pieces: Sequence[Piece]) -> Expr:
    """Pieces as one formula, neighbours that agree put together."""
    merged: list[tuple[Domain, Expr]] = []
    pieces = [p for p in pieces if p.formula is not S.NaN]
    alone = [p for p in pieces if p.domain.low == p.domain.high and p.formula.has(n)]
    pieces = [
        replace(p, formula=p.formula.xreplace({n: sympy.Integer(p.domain.low)}))
        if p in alone
        else p
        for p in pieces
    ]
    ordered = sorted(
        pieces, key=lambda p: (p.domain.period, sorted(p.domain.residues), p.domain.low)
    )
    for domain, formula in ((p.domain, p.formula) for p in ordered):
        if merged and _agree(*merged[-1], formula):
            last = merged[-1][0]
            if last.high == domain.low - 1 and last == dataclasses.replace(
                domain, low=last.low, high=last.high
            ):
                merged[-1] = (dataclasses.replace(domain, low=last.low), formula)
                continue
        merged.append((domain, formula))
    if len(merged) == 1:
        return merged[0][1]
    plain = all(domain.period == 1 for domain, _ in merged)
    merged.sort(key=lambda p: (p[0].high is None, p[0].high or 0, len(p[0].residues)))
    conditions = [
        dataclasses.replace(domain, low=0 if plain else domain.low).condition()
        for domain, _ in merged[:-1]
    ]
    cases = [(e, c) for (_, e), c in zip(merged, conditions, strict=False)]
    return sympy.Piecewise(*cases, (merged[-1][1], S.true), evaluate=False)


def _agree(domain: Domain, value: Expr, formula: Expr) -> bool:
    """Whether a piece may be written as the one that follows it."""
    if value == formula or domain.low != domain.high or value.has(n):
        return bool(value == formula)
    return bool(formula.xreplace({n: sympy.Integer(domain.low)}) == value)


# -- all paths ------------------------------------------------------------------------------------


def _explored(f: Any, kind: str, head: int | None, binary: bool) -> list[Piece]:
    waiting, pieces, splits = [Domain()], list[Piece](), Counter[int]()
    kinds = set[bool]()
    while waiting:
        if len(pieces) >= PATHS:
            line, times = splits.most_common(1)[0]
            loop = "a loop over the distance" if times > PATHS // 2 else f"over {PATHS} paths"
            raise NotTraced(f"{loop} (line {line})")
        path = Path(waiting.pop(), splits, _line, binary)
        program = _Copies(path)
        try:
            result = _single(program.of(f)(*_arguments(kind, head, path)))
            kinds.add(_is_truth(result))
            value = _result(lifted(result, path), kind, masks=_is_truth(result))
        except _RAISED as error:
            value = Symbolic(S.NaN, Raised(error), path)
        except NotTraced as why:
            path.refusal = why
        except (KeyboardInterrupt, Interrupted):
            raise
        except BaseException as error:  # whatever a program raises
            raise NotTraced(f"{type(error).__name__}: {error}") from error
        if (refusal := path.refusal) is not None:
            reason, where = str(refusal), _raising_line(refusal)
            raise NotTraced(reason if "(line" in reason else f"{reason}{where}") from None
        pieces.append(Piece(path.domain, value.expr, path, value.slot))
        waiting += reversed(path.waiting)
    if True in kinds and kind != "bhqk" and (len(kinds) > 1 or kind not in ("qk", "hqk")):
        raise NotTraced("True or False where a number is due")
    return pieces


def _is_truth(result: Any) -> bool:
    """Whether a value of the program, or of a path, is True or False: that of a mask."""
    if isinstance(result, Symbolic):
        return isinstance(result, Condition)
    return isinstance(result, bool) or str(getattr(result, "dtype", "")).endswith("bool")


def _single(result: Any) -> Any:
    return result[0] if isinstance(result, (list, tuple)) and len(result) == 1 else result


def _arguments(kind: str, head: int | None, path: Path) -> list[Any]:
    distance: Any = Symbolic(n, path.distance(), path)
    key: Any = Symbolic(KEY, path.written(lambda: KEYS[1]), path)
    values = {
        "n": distance,
        "m": -distance,
        "k": key,
        "q": key + distance,
        "b": Symbolic(BATCH, path.written(lambda: 0), path),
        "h": Symbolic(HEAD, path.written(lambda: 0), path) if head is None else head,
        "s": Symbolic(SCORE, path.written(lambda: AT_SCORE), path),
    }
    given = [values[letter] for letter in kind]
    return [Symbolic(x.expr, x.slot, path, True) if isinstance(x, Symbolic) else x for x in given]


def _result(value: Any, kind: str, *, masks: bool) -> Symbolic:
    """What a path returns as a bias: a mask's True is 0, a score is left out."""
    if masks or kind == "bhqk":
        hidden = -math.inf if not value else 0.0
        return lifted(hidden, value.path)
    expr = value.expr
    if "s" in kind and expr not in (S.Infinity, S.NegativeInfinity, S.NaN):
        value = value - Symbolic(SCORE, value.path.written(lambda: AT_SCORE), value.path)
        expr = sympy.expand(value.expr)
    if KEY in expr.free_symbols:  # what depends on the query alone, a softmax does not see
        query = sympy.Symbol("query", integer=True, nonnegative=True)
        parts = sympy.Add.make_args(sympy.expand(expr.xreplace({KEY: query - n})))
        kept = [p for p in parts if p.has(n)]
        if any(p.has(query) for p in kept) or len(kept) == len(parts):
            raise NotTraced("the value depends on the positions")
        raise NotTraced("rows differ by a constant each")
    for symbol, name in ((BATCH, "batch"), (HEAD, "head")):
        if symbol in expr.free_symbols:
            raise NotTraced(f"the value depends on the {name}")
    if SCORE in expr.free_symbols:
        raise NotTraced("the value depends on the score in another way than by a sum")
    return Symbolic(expr, value.slot, value.path)


def _line() -> int:
    """The line of the program that is running."""
    frame = program_frame()
    return 0 if frame is None else frame.f_lineno


def _raising_line(error: BaseException) -> str:
    step, line = error.__traceback__, 0
    while step is not None:
        line = step.tb_lineno if MARK in step.tb_frame.f_globals else line
        step = step.tb_next
    return f" (line {line})" if line else ""


class _Copies:
    """Copies of a program's functions, in whose globals the libraries take symbolic values."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.functions: dict[types.FunctionType, types.FunctionType] = {}
        self.names: dict[int, dict[str, Any]] = {}

    def of(self, x: Any) -> Any:
        """The stand-in for a value of the program."""
        if isinstance(x, partial):
            given = {k: self.of(v) for k, v in x.keywords.items()}
            return partial(self.of(x.func), *map(self.of, x.args), **given)
        if isinstance(x, types.MethodType):
            return partial(self.of(x.__func__), x.__self__)
        if isinstance(x, (types.MethodWrapperType, types.WrapperDescriptorType)):
            raise NotTraced("a method of numbers")
        if isinstance(x, type):
            return symbolic(x, self.path)
        if isinstance(x, functools._lru_cache_wrapper):
            return self.of(x.__wrapped__)
        if isinstance(x, types.FunctionType):
            home = (x.__module__ or "").partition(".")[0]
            return symbolic(x, self.path) if home in LIBRARIES else self._copied(x)
        torch: Any = sys.modules.get("torch")
        if torch is not None and isinstance(x, torch.Tensor) and x.numel() > 1:
            return Captured(x)
        call = vars(type(x)).get("__call__")
        if isinstance(call, types.FunctionType):
            home = (call.__module__ or "").partition(".")[0]
            return symbolic(x, self.path) if home in LIBRARIES else partial(self._copied(call), x)
        return symbolic(x, self.path)

    def _copied(self, f: types.FunctionType) -> types.FunctionType:
        if f not in self.functions:
            cells = tuple(types.CellType() for _ in f.__closure__ or ())
            names = self.names.setdefault(id(f.__globals__), self._builtins())
            copy = types.FunctionType(f.__code__, names, f.__name__, None, cells)
            self.functions[f] = copy
            for name in used(f.__code__) & f.__globals__.keys() - names.keys():
                names[name] = self.of(f.__globals__[name])
            copy.__defaults__ = tuple(map(self.of, f.__defaults__ or ()))
            copy.__kwdefaults__ = {k: self.of(v) for k, v in (f.__kwdefaults__ or {}).items()}
            for new, old in zip(cells, f.__closure__ or (), strict=True):
                new.cell_contents = self.of(old.cell_contents)
        return self.functions[f]

    def _builtins(self) -> dict[str, Any]:
        replaced: dict[str, Any] = {x: Library(getattr(builtins, x), self.path) for x in BUILTINS}
        replaced["__import__"] = lambda *a, **o: symbolic(__import__(*a, **o), self.path)
        return {"__builtins__": vars(builtins) | replaced, MARK: self.path}


# -- the program and its formula, held against each other -----------------------------------------


def _compare(f: Any, kind: str, head: int | None, pieces: Sequence[Piece]) -> None:
    """Raise Untraced where the program's value, its tape and its formula differ."""
    keys = KEYS if "k" in kind else KEYS[:1]
    ends = {x for p in pieces for x in (p.domain.low, p.path.start())}  # a high is before a low
    for piece in pieces:
        known = {*powers(PROBED), *_around(ends), *_ties(piece.formula)}
        places = sorted(k for k in known | ANYWHERE if piece.domain.has(k))
        if not places:
            continue
        if piece.formula is S.NaN and max(places) < SKIPPED:
            continue  # as 1/n at 0: the first terms of a series decide nothing
        if piece.formula is S.NaN:
            error = piece.slot.error if isinstance(piece.slot, Raised) else ValueError("nan")
            raise Untraced(f"it raises {type(error).__name__} ({error}) at distance {places[0]}")
        ours = tabulate(piece.formula, np.array(places))
        at = [
            (k, key, formula)
            for k, formula in zip(places, ours, strict=True)
            for key in (keys if k in known else keys[k % len(keys) :][:1])
        ]
        theirs = _in_time(partial(_run_all, f, kind, head, at, piece.path.asks))
        for (k, _, formula), (value, slack) in zip(at, theirs, strict=True):
            if not _close(value, formula, slack):
                raise Untraced(f"at distance {k} the program gives {value}, its formula {formula}")


def _run_all(
    f: Any, kind: str, head: int | None, at: Sequence[tuple[int, int, float]], asks: str
) -> list[tuple[float, float]]:
    return [_run(f, kind, head, k, key, asks) for k, key, _ in at]


def _around(ends: set[int]) -> set[int]:
    return {x + s for x in ends for s in (-1, 0, 1) if x + s >= 0}


def _ties(formula: Expr) -> set[int]:
    """Distances at which a rounded value is an integer, near and far."""
    parts = (r for e in formula.atoms(*ROUNDING, sympy.Mod) for r in e.atoms(sympy.Rational))
    shares = {int(r.q if r.q < PROBED else sympy.Rational(repr(float(r))).q) for r in parts}
    bases = {int(e.args[0]) for e in formula.atoms(sympy.log) if e.args[0].is_Integer}
    logs = {b**k + s for b in bases if b < PROBED for k in range(21) for s in (-1, 0, 1)}
    return {k for k in logs if 0 <= k <= PROBED} | {
        step * j
        for step in shares
        if 1 < step < PROBED
        for j in (*range(1, 64), *range(64, PROBED // step, PROBED // step // TIES + 1))
    }


def _run(
    f: Any, kind: str, head: int | None, distance: int, key: int, asks: str
) -> tuple[float, float]:
    """The program itself, on plain numbers, or on tensors where it takes no others; and how near
    the type of its value is. One that asks what only tensors have, and takes a number too, may do
    something else with it."""
    values: dict[str, float] = {"n": distance, "m": -distance, "q": key + distance, "k": key}
    values |= {"b": 0, "h": distance % HEADS if head is None else head, "s": AT_SCORE}
    given = [values[letter] for letter in kind]
    torch: Any = sys.modules.get("torch")
    ways: list[Callable[[Any], Any]] = [lambda v: v]
    if torch is not None:
        ways += [
            lambda v: torch.tensor(v) if isinstance(v, int) else torch.tensor(v).double(),
            lambda v: torch.tensor(v, dtype=torch.float64),
        ]
    why: Exception | None = None
    for way in ways:
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                result = _single(f(*map(way, given)))
            break
        except (TypeError, AttributeError, NotImplementedError) as error:
            why = why or error
        except (KeyboardInterrupt, Interrupted):
            raise
        except BaseException as error:
            raise Untraced(f"it raises {type(error).__name__} ({error}) at {distance}") from None
    else:
        raise Untraced(f"it raises {type(why).__name__} ({why}) at {distance}")
    if asks and way is ways[0]:
        raise Untraced(f"it takes a number, and asks for {asks}, which a number does not have")
    of = str(getattr(result, "dtype", "")).rpartition(".")[2]
    slack = CLOSE.get(of, SINGLE if hasattr(result, "detach") else 1e-9)
    try:
        value = float(result.item() if hasattr(result, "item") else result)
    except OverflowError:
        raise Untraced(f"it gives a whole number beyond all floats at {distance}") from None
    if kind == "bhqk" or _is_truth(result):
        return 0.0 if value else -math.inf, slack
    return value - AT_SCORE if "s" in kind else value, slack


def _close(theirs: float, formula: float, slack: float) -> bool:
    if theirs != formula and (theirs < LEAST[1] or theirs == LEAST[0]):
        theirs = -math.inf
    if math.isnan(theirs) or math.isinf(theirs) or math.isinf(formula):
        return theirs == formula
    return bool(abs(theirs - formula) <= slack * max(1.0, abs(formula)))
