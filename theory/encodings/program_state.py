"""What a program does beside computing with values, where a symbol answers otherwise than a number.

A symbol stands for a number where the program computes and compares. It does not where the program
asks which object it holds, catches what only a symbol raises, or changes from call to call. Such a
program is not followed.
"""

from __future__ import annotations

import builtins
import contextlib
import dis
import functools
import gc
import itertools
import random
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from farfield.theory.encodings.branches import NotTraced
from farfield.theory.encodings.python_files import codes
from farfield.theory.encodings.traced_values import READERS

HELD = 20_000
"""Objects of a program that are looked at."""
_METHODS = {name for name, x in vars(int).items() if isinstance(x, types.WrapperDescriptorType)}
_IDENTITIES = {"is_", "is_not", "getsizeof", "__sizeof__"}
_MATCHES = {"CHECK_EXC_MATCH", "CHECK_EG_MATCH"}
_HANDLED = {*_MATCHES, "WITH_EXCEPT_START", "RERAISE", "POP_EXCEPT"}
"""What a handler of errors does first: the last of these where it ends them, whatever they are."""
_CATCHABLE = {  # errors that a symbol does not raise where a number raises none
    name
    for name, x in vars(builtins).items()
    if isinstance(x, type) and issubclass(x, BaseException)
    if not any(issubclass(error, x) for error in (TypeError, AttributeError))
}
_CALLED = {"__call__", "__getitem__", "__getattr__", *_METHODS} - {"__eq__", "__hash__", "__repr__"}
_DRAWING = (random.Random, np.random.Generator, np.random.BitGenerator)
_PLAIN = (int, float, complex, str, bytes, bytearray, type(None))


def state(f: Any) -> list[Any]:
    """What a program reaches and may change, and what random generators are at.

    Raises:
        NotTraced: one of its functions does what a symbol cannot follow, or it reaches more than
            20,000 objects.

    >>> calls = []
    >>> count = lambda n: calls.append(n) or -n
    >>> count.__module__ = "mine"  # as of a file of one's own
    >>> before, _ = state(count), count(3)
    >>> state(count) == before
    False
    """
    found, waiting, seen = list[Any](), [f], dict[int, tuple[int, Any]]()
    names, homes = set(_CALLED), list[dict[str, Any]]()  # of modules and classes
    while waiting and len(seen) < HELD:
        x = waiting.pop()
        if type(x) in _PLAIN:
            found.append(repr(x))
            continue
        found.append(seen.get(id(x), (-1,))[0])
        own = not _is_library(x)
        hushes = x is contextlib.suppress or x is contextlib.ExitStack
        if hushes or (own and isinstance(x, type) and hasattr(x, "__exit__")):
            raise NotTraced(f"errors may be suppressed (by {x.__name__})")
        if id(x) in seen or not own:
            continue
        seen[id(x)] = len(seen), x  # which keeps it: no other gets its address
        if isinstance(x, types.FunctionType):
            if reason := unfollowed(x.__code__):
                raise NotTraced(f"{reason} (in {x.__name__})")
            new = used(x.__code__) - names
            names |= new
            waiting += [of[k] for of in homes for k in sorted(new & of.keys())]
        if isinstance(x, (type, types.ModuleType)):
            homes.append(dict(vars(x)))
            waiting += [homes[-1][k] for k in sorted(names & homes[-1].keys())]
            waiting += x.__bases__ if isinstance(x, type) else ()
        else:
            waiting += _held(x)
    if waiting:
        raise NotTraced(f"it reaches more than {HELD:,} objects")
    torch: Any = sys.modules.get("torch")
    drawn = None if torch is None else torch.get_rng_state().numpy().tobytes()
    of_numpy = np.random.get_state(legacy=False)["state"]
    return [*found, random.getstate(), of_numpy["key"].tobytes(), of_numpy["pos"], drawn]


def _is_library(x: Any) -> bool:
    """Whether a function, a class or a module is none of the user's own."""
    if not isinstance(x, (type, types.FunctionType, types.ModuleType)):
        return False
    return _known(x.__name__ if isinstance(x, types.ModuleType) else x.__module__)


def _known(module: object) -> bool:
    name = str(module).partition(".")[0]
    file = str(getattr(sys.modules.get(name), "__file__", None))
    installed = name in {*READERS, *sys.stdlib_module_names} or "site-packages" in file
    return installed and name != "__main__"


def _held(x: Any) -> list[Any]:
    """What an object holds."""
    torch: Any = sys.modules.get("torch")
    if isinstance(x, types.FunctionType):
        names = sorted(used(x.__code__) & x.__globals__.keys())
        reached = [x.__globals__[k] for k in names]
        return [*reached, x.__closure__, x.__defaults__, x.__kwdefaults__, x.__dict__]
    if isinstance(x, functools._lru_cache_wrapper):
        return [x.__wrapped__]
    if isinstance(x, (np.ndarray, np.generic)):
        return [x.tobytes()]
    if torch is not None and isinstance(x, torch.Tensor):
        return [x._version]
    if isinstance(x, (Iterator, *_DRAWING)) and _known(type(x).__module__):
        with contextlib.suppress(TypeError):  # generators say where they are
            return [*x.__reduce_ex__(2)]
    frame = x.gi_frame if isinstance(x, types.GeneratorType) else None
    named = x.__dict__ if type(x).__dictoffset__ else None
    return [type(x), frame and frame.f_lasti, named, *gc.get_referents(x)]


@functools.cache
def unfollowed(code: types.CodeType) -> str:
    """What a function does that a symbol cannot follow; empty where it does nothing such.

    >>> unfollowed((lambda n, x=7777: n is x).__code__)
    'the identity of a value'
    >>> unfollowed((lambda n, x=None: n if x is None else x).__code__)
    ''
    """
    names = used(code)
    words = names | {c for c in code.co_consts if isinstance(c, str)}
    steps = [s for one in codes(code) for s in dis.get_instructions(one)]
    pairs = [(a.opname, a.argval, b.opname) for a, b in itertools.pairwise(steps)]
    caught = (_caught(steps[:k]) for k, s in enumerate(steps) if s.opname in _MATCHES)
    if names & {"suppress", "ExitStack"} or not all(classes <= _CATCHABLE for classes in caught):
        return "errors of all kinds are caught"
    ends = (next(s.opname for s in steps[k:] if s.opname in _HANDLED) for k in _handlers(steps))
    if "POP_EXCEPT" in ends or any(a + b == "PUSH_EXC_INFOPOP_TOP" for a, _, b in pairs):
        return "errors of all kinds are caught"
    if words & _METHODS:
        return "a method of numbers"
    alone = any(b == "IS_OP" and (a, of) != ("LOAD_CONST", None) for a, of, b in pairs)
    return "the identity of a value" if alone or words & _IDENTITIES else ""


def _handlers(steps: list[dis.Instruction]) -> list[int]:
    """Where handlers of errors begin."""
    return [k for k, step in enumerate(steps) if step.opname == "PUSH_EXC_INFO"]


def _caught(steps: list[dis.Instruction]) -> set[str]:
    """The names of the classes that are on the stack after the last step, "" for others."""
    *before, last = steps
    loads = before[len(before) - last.argval :] if last.opname == "BUILD_TUPLE" else [last]
    return {s.argval if s.opname == "LOAD_GLOBAL" else "" for s in loads}


def used(code: types.CodeType) -> set[str]:
    """The names that a function may read, those of the functions inside it too."""
    return {name for one in codes(code) for name in one.co_names}
