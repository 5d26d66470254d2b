"""Code of a run's own encoding, task or optimiser: its definition, its copies, whether it raised.

A class is named `FILE.py:Class`. What decides it is its definition with all that this uses in the
file, and the files beside it if it imports from them; comments and other classes do not. The folder
of a run has copies of these files, and the run reads them there.
"""

from __future__ import annotations

import ast
import hashlib
import linecache
import symtable
import textwrap
import traceback
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from farfield.theory.answers.errors import InputError
from farfield.theory.files import write

SOURCE = "source"
"""The folder of copies within that of a run."""


class Own(NamedTuple):
    """A class or function of a user's file, and the SHA-256 of what it is made of."""

    path: str
    name: str
    sha256: str


def own(spec: str) -> Own:
    """What `FILE.py:NAME` names.

    Raises:
        InputError: a file cannot be read, or is no Python.
    """
    path, _, name = spec.rpartition(":")
    (main, *beside), parts = trees(path), []
    for part in _used(main, name):
        parts.append(ast.unparse(part))
        if any((Path(path).parent / f"{x}.py").is_file() for x in _imported(part)):
            parts += map(ast.unparse, beside)
    return Own(path, name, hashlib.sha256("\n".join(parts).encode()).hexdigest())


def files(path: str | Path) -> list[Path]:
    """The file, and those of its folder that it imports, or that these import."""
    found = [Path(path)]
    for file in found:
        names = sorted(_imported(_parsed(file)))
        beside = (file.parent / f"{name}.py" for name in names)
        found += [x for x in beside if x.is_file() and x not in found]
    return found


def trees(path: str | Path) -> list[ast.Module]:
    """The same as Python reads them."""
    return [_parsed(file) for file in files(path)]


def keep(path: str | Path, home: Path) -> None:
    """Copy them into the folder of a run, where they are not yet."""
    for file in files(path):
        kept = home / SOURCE / file.name
        if not kept.exists():
            kept.parent.mkdir(exist_ok=True)
            write(kept, file.read_bytes())


def kept(spec: str, home: Path) -> str:
    """The same code by its copy in the folder of a run, if there is one."""
    path, _, name = spec.rpartition(":")
    copy = home / SOURCE / Path(path).name
    return f"{copy}:{name}" if copy.is_file() else spec


def spec_of(code: type, folder: Path) -> str:
    """A class as `FILE.py:NAME`; one of a notebook or of a function is written into the folder.

    What it uses goes with it: modules and their names by imports, other functions and classes by
    their source, numbers and text as they are.

    Raises:
        InputError: its source is not known, or it uses what cannot be written so.
    """
    file = _functions(code)[0].__code__.co_filename
    if Path(file).is_file() and code.__qualname__ == code.__name__:
        return f"{file}:{code.__name__}"
    text = "\n\n".join(_texts(code, {})) + "\n"
    path = folder / f"{code.__name__}_{hashlib.sha256(text.encode()).hexdigest()[:8]}.py"
    folder.mkdir(parents=True, exist_ok=True)
    write(path, text.encode())
    return f"{path}:{code.__name__}"


def _functions(of: type | FunctionType) -> list[FunctionType]:
    """It, or the methods of a class, of which there is one at least."""
    found = [x for x in (of, *vars(of).values()) if isinstance(x, FunctionType)]
    if not found:
        why = f"{of.__name__} has no method of its own; accepted: a torch module's class"
        raise InputError(why)
    return found


def _texts(of: Any, done: dict[str, Any]) -> Iterator[str]:
    """The sources of what a class or function uses, then its own; what names mean goes into
    `done`."""
    source, scope = _definition(of), _scope(of)
    done[of.__name__] = of
    names = dict.fromkeys(x.id for x in ast.walk(source) if isinstance(x, ast.Name))
    outside = _globals(ast.unparse(source)) & scope.keys()
    for name in (name for name in names if name in outside):
        if name not in done:
            done[name] = scope[name]
            yield from _written(name, of, done)
        elif not _alike(done[name], scope[name]):
            said = f"{of.__name__} uses {name}, which means something else where it is used too"
            raise InputError(f"{said}; accepted: a class in a file")
    yield ast.unparse(source)


def _definition(of: Any) -> ast.AST:
    """The definition of a class or function, by its lines in the file or cell that it is from."""
    code = _functions(of)[0].__code__
    tree = ast.parse(textwrap.dedent("".join(linecache.getlines(code.co_filename))))
    found = [
        x
        for x in ast.walk(tree)
        if isinstance(x, ast.ClassDef | ast.FunctionDef)
        and x.name == of.__name__
        and min(y.lineno for y in (x, *x.decorator_list)) <= code.co_firstlineno
        and code.co_firstlineno <= (x.end_lineno or 0)
    ]
    if not found:
        raise InputError(f"the source of {of.__name__} is not known; accepted: a class in a file")
    return found[-1]


def _written(name: str, of: Any, done: dict[str, Any]) -> Iterator[str]:
    """A name that a class or function uses, as Python that gives it its value."""
    value = done[name]
    if isinstance(value, ModuleType):
        yield f"import {value.__name__} as {name}"
    elif getattr(value, "__module__", of.__module__) != of.__module__:
        yield f"from {value.__module__} import {value.__name__} as {name}"
    elif isinstance(value, FunctionType | type):
        yield from _texts(value, done)
    elif isinstance(value, int | float | str | tuple):
        yield f"{name} = {value!r}"
    else:
        kind = type(value).__name__
        raise InputError(f"{of.__name__} uses {name}, a {kind}; accepted: a class in a file")


def _alike(one: Any, other: Any) -> bool:
    """Whether two values of a name are one, as 3 and 3.0 are not."""
    return one is other or (type(one) is type(other) and one == other)


def _scope(of: type | FunctionType) -> dict[str, Any]:
    """What the names of a class or function mean: globals, bases, variables of the function that
    it was made in."""
    functions = _functions(of)
    scope = dict(functions[0].__globals__)
    scope |= {x.__name__: x for x in getattr(of, "__bases__", ()) if x.__module__ == of.__module__}
    for function in functions:
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        scope |= {name: cell.cell_contents for name, cell in cells if name != "__class__"}
    return scope


def _globals(text: str) -> set[str]:
    """The names of a source that are no parameters or variables of its functions and classes."""
    tables = [symtable.symtable(text, "", "exec")]
    for table in tables:
        tables += table.get_children()
    return {x.get_name() for table in tables for x in table.get_symbols() if x.is_global()}


def whose(error: BaseException, codes: list[Own]) -> str | None:
    """What code of the user's own raised: its name, its last line that was run, and the error;
    None if none of it took part.

    >>> whose(ValueError("not mine"), [])
    """
    at = {str(f.resolve()): code for code in codes for f in reversed(files(code.path))}
    steps = [s for s in traceback.extract_tb(error.__traceback__) if s.filename in at]
    if not steps:
        return None
    last, said = steps[-1], str(error).strip().splitlines() or [""]
    code = at[last.filename]
    where = f"{Path(last.filename).name}:{code.name}, line {last.lineno}"
    return f"{where}: {type(error).__name__}: {said[0][:120]}"


def _parsed(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_bytes())
    except OSError as error:
        raise InputError(f"{str(file)!r} cannot be read: {error.strerror}") from None
    except (SyntaxError, ValueError) as error:
        raise InputError(f"{str(file)!r} is no Python: {error}") from None


def _imported(tree: ast.AST) -> Iterator[str]:
    """The first parts of the names of modules that are imported there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (x.name.partition(".")[0] for x in node.names)


def _used(tree: ast.Module, name: str) -> list[ast.stmt]:
    """The statements of a file that a name is made of; all of them if it is not found."""
    binding = defaultdict[str, list[ast.stmt]](list)
    for part in tree.body:
        for bound in _bound(part):
            binding[bound].append(part)
    asked, used = [name], set[ast.stmt]()
    for wanted in asked:
        for part in binding[wanted]:
            if part not in used:
                used.add(part)
                asked += [x.id for x in ast.walk(part) if isinstance(x, ast.Name)]
    return [part for part in tree.body if part in used or not used]


def _bound(part: ast.stmt) -> Iterator[str]:
    """The names that a statement binds."""
    if isinstance(part, ast.ClassDef | ast.FunctionDef):
        yield part.name
        return
    for node in ast.walk(part):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.partition(".")[0]
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
