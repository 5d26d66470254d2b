"""A user's Python file `FILE.py:NAME`: its import, objects of its classes, its errors, its changes.

The module has a name in `sys.modules`, as dataclasses and compilers need. A file of a package, or
one with relative imports, is loaded as `package.module`. Nothing stays on `sys.path`, and no
bytecode is written.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import dis
import importlib
import importlib.util
import inspect
import os
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType, TracebackType
from typing import Any

from farfield.theory.answers.errors import InputError
from farfield.theory.answers.notation import listed
from farfield.theory.encodings.head_lists import is_table

_TEXT = "__loaded_text__"
_BUILTINS = vars(builtins)
MOST_FUNCTIONS = 128
"""Functions that are looked through for what they import when they run."""


def load(path: str | Path) -> ModuleType:
    r"""The module of a Python file. A file whose text has not changed is not run again.

    Args:
        path: of a `.py` file.

    Raises:
        InputError: there is no such file, or it raises; with the file's own line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "mine.py"
    ...     _ = file.write_text("from helper import RATE\ndef bias(n): return -RATE * n\n")
    ...     _ = (Path(folder) / "helper.py").write_text("RATE = 2\n")
    ...     load(file).bias(3)
    -6
    """
    file = Path(os.path.realpath(os.path.expanduser(str(path).replace("\0", ""))))
    if file.suffix != ".py" or not file.is_file():
        raise InputError(f"there is no file {str(path)!r}; accepted: a file of Python, FILE.py")
    try:
        text = file.read_bytes()
        root, name = _place(file, ast.parse(text, str(file)))
        known = sys.modules.get(name)
        if known is not None and vars(known).get(_TEXT) == (str(file), text):
            return known
        sys.modules.pop(name, None)
        with _importable(root), _whole():
            module = _executed(file, name)
    except SyntaxError as error:
        at = "" if error.lineno is None else f", line {error.lineno}"
        raise InputError(f"{error.filename or file}{at}: {error.msg}") from None
    except (Exception, SystemExit) as error:  # whatever the code of a user raises
        raise InputError(f"{raised(error, file)}; accepted: a file that can be imported") from None
    _mark(module)
    return module


HEADS, SIZE = 8, 64
"""Of a class that wants them, where nothing is said."""


def handed(target: str, heads: int | None = None, size: int | None = None) -> Any:
    """What `named` finds; a class is built.

    Raises:
        InputError: as `named`; or the class raises.
    """
    found = named(target)
    return built(found, heads, size) if isinstance(found, type) else found


def named(target: str) -> Any:
    """What `FILE.py:NAME` names, or the only object that `FILE.py` holds.

    Raises:
        InputError: no such file or name, with what the file holds; or the file raises.
    """
    file, _, name = (target, "", "") if target.endswith(".py") else target.rpartition(":")
    module = load(file)
    names = held(module)
    if not name and len(names) != 1:
        said = f"{file} holds {listed(names, 12) or 'no function, class or array'}"
        raise InputError(f"{said}; accepted: {file}:{names[0] if names else 'NAME'}")
    found: Any = module
    try:
        for part in (name or names[0]).split("."):
            found = getattr(found, part)
    except AttributeError:
        said = f"{file} has no {name!r}; it holds {listed(names, 12) or 'nothing to ask about'}"
        raise InputError(f"{said}; accepted: a function, a class or an array") from None
    return found


def held(module: ModuleType) -> list[str]:
    """The names of a module's own functions, classes and arrays."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (
            getattr(value, "__module__", None) == module.__name__
            if callable(value)
            else hasattr(value, "__array__")
            or (isinstance(value, (list, tuple)) and is_table(value))
        )
    ]


def built(kind: type, heads: int | None = None, size: int | None = None) -> Any:
    """An object of a user's class, made as `Class()`, `Class(heads)` or `Class(heads, size)`.

    Raises:
        InputError: it wants something else, or raises.
    """
    accepted = (
        "Class(), Class(heads), Class(heads, size), or an object of the file, NAME = Class(...)"
    )
    try:
        given = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):
        given = ()  # type: ignore[assignment]
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    wanted = [p.name for p in given if p.default is p.empty and p.kind in plain]
    values: list[int] = [heads or HEADS, size or SIZE][: len(wanted)]
    if len(wanted) == 1 and re.search("size|dim|width|d_|channels", wanted[0]):
        values = [size or SIZE]
    if len(wanted) > 2:
        raise InputError(f"{kind.__name__} takes {', '.join(wanted)}; accepted: {accepted}")
    try:
        return kind(*values)
    except (Exception, SystemExit) as error:  # whatever the code of a user raises
        file = getattr(sys.modules.get(kind.__module__), "__file__", "")
        called = f"{kind.__name__}({', '.join(map(str, values))})"
        raise InputError(f"{called}, {raised(error, file or '')}; accepted: {accepted}") from None


def import_of(f: Any) -> None:
    """Import what a function imports when it runs: outside of any limit, so that it is whole."""
    kinds = (FunctionType, MethodType)
    call = f if isinstance(f, kinds) else vars(type(f)).get("__call__")
    waiting, seen = [getattr(call, "__func__", call)], set[object]()
    while waiting:
        one = waiting.pop()
        if not isinstance(one, FunctionType) or one in seen or len(seen) > MOST_FUNCTIONS:
            continue
        seen.add(one)
        for code in codes(one.__code__):
            steps = [s for s in dis.get_instructions(code) if s.opname != "EXTENDED_ARG"]
            for level, step in zip(steps, steps[2:], strict=False):
                if step.opname == "IMPORT_NAME":  # of a name, from as many packages above
                    name, home = "." * level.argval + step.argval, one.__globals__
                    with contextlib.suppress(Exception, SystemExit):  # the call itself will say it
                        importlib.import_module(name, home.get("__package__"))
            waiting += [one.__globals__.get(name) for name in code.co_names]


def codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of the functions inside it, however deep.

    >>> [one.co_name for one in codes((lambda n: [lambda k: k + n]).__code__)]
    ['<lambda>', '<lambda>']
    """
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from codes(inner)


def raised(error: BaseException, file: str | Path) -> str:
    """What a user's code raised on one line, with the last line of its file that was run."""
    said = str(error).strip().splitlines() or [""]
    line, step = None, error.__traceback__
    while isinstance(step, TracebackType):
        if step.tb_frame.f_code.co_filename == str(file):
            line = step.tb_lineno
        step = step.tb_next
    at = "" if line is None else f", line {line}"
    return f"{file}{at}: {type(error).__name__}{f': {said[0][:120]}' if said[0] else ''}"


def _place(file: Path, tree: ast.Module) -> tuple[Path, str]:
    """The folder to import from, and the module's name: dotted in a package."""
    up = max((x.level for x in ast.walk(tree) if isinstance(x, ast.ImportFrom)), default=0)
    whole = file.stem == "__init__"
    root, parts = file.parent, [] if whole else [file.stem]
    depth = up if whole else up + 1
    while ((root / "__init__.py").is_file() or 1 < depth > len(parts)) and root != root.parent:
        parts, root = [root.name, *parts], root.parent
    if len(parts) > 1 or whole:
        return root, ".".join(parts)
    other = f"{file.stem}_{zlib.crc32(str(file).encode()):08x}"
    for name in (file.stem, other):
        if getattr(sys.modules.get(name), "__file__", None) == str(file):
            return root, name
    taken = file.stem in sys.modules or file.stem in sys.stdlib_module_names
    return root, other if taken or _installed(file.stem) else file.stem


def _installed(name: str) -> bool:
    """Whether the name belongs to something that is installed."""
    with contextlib.suppress(ImportError, ValueError, AttributeError):
        return "." not in name and importlib.util.find_spec(name) is not None
    return False


@contextlib.contextmanager
def _whole() -> Iterator[None]:
    """While a file loads that may take from Python what all later work needs: the depth of calls is
    put back, and so are the streams, and functions before the file is refused."""
    functions = {name: f for name, f in _BUILTINS.items() if callable(f)}
    output, errors, depth, is_whole = sys.stdout, sys.stderr, sys.getrecursionlimit(), callable
    try:
        yield
    finally:  # of functions only `is_whole` is sure to be there
        lost = [name for name in functions if not is_whole(_BUILTINS.get(name))]
        _BUILTINS.update({name: functions[name] for name in lost})
        sys.setrecursionlimit(max(depth, sys.getrecursionlimit()))
    if lost or getattr(output, "closed", False):
        raise ImportError(f"it takes {lost[0] if lost else 'standard output'} from Python")
    sys.stdout, sys.stderr = output, errors


@contextlib.contextmanager
def _importable(root: Path) -> Iterator[None]:
    """While a file of this folder loads: modules beside it come first, and leave no bytecode."""
    beside = {p.stem for p in root.iterdir() if p.suffix == ".py" or p.is_dir()}
    before = dict(sys.modules)
    aside = {
        name: module
        for name, module in before.items()
        if name.partition(".")[0] in beside and _elsewhere(module, root)
    }
    for name in aside:
        del sys.modules[name]
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    sys.path.insert(0, str(root))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.dont_write_bytecode = written
        with contextlib.suppress(ValueError):
            sys.path.remove(str(root))
        for name, module in [*sys.modules.items()]:
            file = getattr(module, "__file__", None)
            if name not in before and file and Path(file).is_relative_to(root):
                _mark(module)
        sys.modules.update({k: m for k, m in aside.items() if _TEXT not in vars(m)})


def _mark(module: ModuleType) -> None:
    file = Path(str(module.__file__))
    setattr(module, _TEXT, (str(file), file.read_bytes() if file.is_file() else b""))


def _elsewhere(module: ModuleType, root: Path) -> bool:
    """Whether a module belongs to another project, or its text has changed since it was loaded."""
    file = getattr(module, "__file__", None)
    if file is None:
        return False
    if loaded := vars(module).get(_TEXT):
        now = Path(file).read_bytes() if Path(file).is_file() else b""
        return not Path(file).is_relative_to(root) or loaded != (file, now)
    installed = {"site-packages", "dist-packages"} & {*Path(file).parts}
    inside = any(Path(file).is_relative_to(folder) for folder in (root, sys.base_prefix))
    return not (installed or inside)


def _executed(file: Path, name: str) -> ModuleType:
    """The module, run once."""
    if "." in name or file.stem == "__init__":
        module = importlib.import_module(name)
        other = getattr(module, "__file__", None)
        if other != str(file):
            raise ImportError(f"the name {name} belongs to {other}")
        return module
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module
