"""Every verb as a function of the package, options as text and back: `farfield.papers("fig6")`.

A function takes what its verb takes, by the same names and with the same defaults. Several values
of an option are a list, parameters of a formula are keywords of their own. It returns what the verb
would print: an answer, or a list of them.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from numbers import Real
from typing import Any, get_args, get_origin, get_type_hints

from farfield.commands import goals, training
from farfield.options import CODE, MEANT, Kept, Output, Subject
from farfield.theory.answers.errors import InputError, guarded, refuse
from farfield.theory.answers.names import closest
from farfield.theory.answers.number import natural


def function(path: str, name: str, *, objects: bool = False) -> Callable[..., Any]:
    """The verb at `MODULE.VERB` of `farfield.commands` as a function that returns its answers.

    Args:
        path: of the verb.
        name: of the function, as it is typed.
        objects: whether formulas may be objects, as functions, arrays and modules are.
    """
    module, _, of = path.partition(".")
    command = getattr(import_module(f"farfield.commands.{module}"), of)
    signature = inspect.signature(command)
    hints = get_type_hints(command)
    groups = {
        p.name: hints[p.name] for p in signature.parameters.values() if is_dataclass(p.default)
    }

    shown = {
        parameter: extra.name[-1].removeprefix("--")
        for parameter, hint in get_type_hints(command, include_extras=True).items()
        for extra in getattr(hint, "__metadata__", ())
        if getattr(extra, "name", None)
    }
    aliases = {alias: parameter for parameter, alias in shown.items()}

    @functools.wraps(command)
    def verb(*given: Any, **options: Any) -> Any:
        kept = Kept()
        called: dict[str, Any] = {}
        options = _counted(options, command)
        for group, kind in groups.items():
            if kind is not Output:
                known = {f.name for f in fields(kind)}
                chosen = {k: options.pop(k) for k in tuple(options) if k in known}
                values = get_type_hints(kind)
                called[group] = kind(**{k: _typed(v, values[k]) for k, v in chosen.items()})
        options = {aliases.get(k, k): value for k, value in options.items()}
        others = {k: options.pop(k) for k in tuple(options) if k in signature.parameters}
        called |= {
            k: _text(k, v) if hints[k] is str else _typed(v, hints[k]) for k, v in others.items()
        }
        if "ranges" in signature.parameters:  # of parameters, as a="0.01:1"
            ranged = [k for k, v in options.items() if isinstance(v, str) and ":" in v]
            given += tuple(word for k in ranged for word in (f"--{k}", options.pop(k)))
        if options:
            if "subject" not in groups:
                known_names = sorted({*signature.parameters} - {*groups})
                unknown = next(iter(options))
                raise InputError(f"{name} has no option {unknown}; {closest(unknown, known_names)}")
            subject = called["subject"]
            called["subject"] = Subject(
                **{f.name: getattr(subject, f.name) for f in fields(Subject)}
                | {"set": (*subject.set, *_pairs(options))}
            )
        if "output" in groups:
            called["output"] = kept
        try:
            signature.bind(*given, **called)
        except TypeError as error:
            raise InputError(f"{name}: {error}; accepted: {name}{verb.__signature__}") from None  # type: ignore[attr-defined]
        command(*_texts(name, given, signature, objects), **called)
        found = kept.answers
        return found[0] if len(found) == 1 else found

    verb.__signature__ = _flat(signature, hints, groups, shown)  # type: ignore[attr-defined]
    verb.__module__, verb.__name__, verb.__qualname__ = "farfield", name, name
    return guarded(verb)


OF_AN_ENCODING = ("heads", "dialect", "tail", "bca")

PASSED: Mapping[str, Sequence[str]] = {
    "options": OF_AN_ENCODING,
    "values": OF_AN_ENCODING,
    "targets": (*(f.name for f in fields(goals.Goal)), "heads", "dialect"),
    "settings": training.SETTINGS,
}
"""Options of verbs that public functions take among their keywords, by the name of these."""

SEVERAL = ("compare", "plot", "study", "train")
"""Verbs to which a list is several ideas; to the others it is one formula a head."""


def joined(public: Callable[..., Any], path: str, name: str) -> Callable[..., Any]:
    """A public function that takes every option of its verb too.

    Where an option is the verb's alone, or the bias is `FILE.py:NAME`, the verb answers.

    Args:
        public: the function.
        path: of the verb, as of `function`.
        name: of both, as it is typed.
    """
    verb, answer = function(path, name, objects=True), guarded(public, name)
    signature = inspect.signature(public)
    own = signature.parameters.values()
    places = [p.name for p in own if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][1:]
    several = [p.name for p in own if p.default == ()]  # a text of these has commas
    known = {p.name for p in own if p.kind is not p.VAR_KEYWORD}
    keywords = next((p.name for p in own if p.kind is p.VAR_KEYWORD), "")
    options_of: Mapping[str, inspect.Parameter] = verb.__signature__.parameters  # type: ignore[attr-defined]
    added = [p for k, p in options_of.items() if p.kind is p.KEYWORD_ONLY and k not in known]
    alone = {p.name for p in added} - {*PASSED.get(keywords, ())}

    @functools.wraps(public)
    def asked(*given: Any, **options: Any) -> Any:
        for typed in {*options} - known - {*options_of}:
            meant = MEANT.get(typed, typed)
            refuse(meant in known, f"{name} has no option {typed}; did you mean {meant}?")
        options = _counted(options, inspect.unwrap(verb))
        ideas = given[:1]
        if name in SEVERAL:
            lists = isinstance(given[0] if given else None, list | tuple)
            ideas = (*given[0], *given[1:]) if lists else given
        code = "formulas" in options_of and any(
            isinstance(idea, str) and re.fullmatch(CODE, idea) for idea in ideas
        )
        text = any(isinstance(options.get(k), str) for k in several)
        if not (code or text or alone & {*options}):
            return answer(*given, **options)
        if "assume" not in options and (assumed := options.pop("assumptions", None)):
            options["assume"] = assumed
        for typed in {*options} & known - {*options_of}:
            raise InputError(f"{name}: {typed} goes without options of the command line alone")
        if name not in SEVERAL:
            refuse(
                len(given) > 1 + len(places),
                f"{name} has {len(given)} values before its options; accepted: "
                f"{' and '.join(['a bias', *places])}, all else by its name",
            )
            options = dict(zip(places, given[1:], strict=False)) | options
        return verb(*ideas, **options)

    order = sorted([*own, *added], key=lambda p: p.kind)
    asked.__signature__ = signature.replace(parameters=order)  # type: ignore[attr-defined]
    asked.__module__ = "farfield"
    return asked


def _texts(
    name: str, given: Sequence[Any], signature: inspect.Signature, objects: bool
) -> Iterator[Any]:
    """What a verb was given, numbers and paths as text; a first formula may be an object, and with
    `objects` every formula.

    Raises:
        InputError: another argument is no text.
    """
    kinds = [p for p in signature.parameters.values() if p.kind is not p.KEYWORD_ONLY]
    for place, value in enumerate(given):
        parameter = kinds[min(place, len(kinds) - 1)]
        formula = parameter.annotation == "Formula"
        if not formula or (parameter.kind is parameter.VAR_POSITIONAL and not objects):
            value = _text(name, value)
        yield value


def _text(name: str, value: Any) -> str:
    """A number, a path or a text, as text."""
    text = isinstance(value, str | os.PathLike | Real) and not isinstance(value, bool)
    refuse(not text, f"{name} takes text, such as a name; not {type(value).__name__}")
    return str(value)


def _flat(
    signature: inspect.Signature,
    hints: Mapping[str, Any],
    groups: Mapping[str, Any],
    shown: Mapping[str, str],
) -> inspect.Signature:
    """The signature with each group of options taken apart, by the names of the command line."""
    positional = [
        p.replace(name=shown.get(p.name, p.name))
        for p in signature.parameters.values()
        if p.name not in groups
    ]
    options = [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default)
        for name, kind in groups.items()
        if kind is not Output
        for f in fields(hints[name])
    ]
    order = sorted([*positional, *options], key=lambda p: p.kind)
    return signature.replace(parameters=order, return_annotation=Any)


def _typed(value: Any, hint: Any) -> Any:
    """A value of Python as the command line would have read it.

    >>> _typed([1, "1/2"], tuple[str, ...]), _typed(0.01, str | None), _typed({"a": 2}, tuple[str])
    (('1', '1/2'), '0.01', ('a=2',))
    >>> _typed(None, str | None), _typed(True, bool | str), _typed(8, int)
    (None, True, 8)
    """
    kinds = [get_origin(hint), *get_args(hint)]
    if tuple in kinds:
        if isinstance(value, Mapping):
            return tuple(_pairs(value))
        several = value if isinstance(value, list | tuple) else [value]
        return tuple(_typed(one, str) for one in several)
    if isinstance(value, list | tuple) and str in kinds:
        return ",".join(map(str, value))
    refuse(
        not isinstance(value, str | os.PathLike | Real | Mapping | None),
        f"{type(value).__name__} is no value of an option; accepted: a text, a number, a list",
    )
    numbers = isinstance(value, Real) and not isinstance(value, bool)
    return str(value) if numbers and (hint is str or str in kinds) else value


def _counted(options: Mapping[str, Any], command: Callable[..., Any]) -> dict[str, Any]:
    """Options in which a text is a count, as 4k is 4096, with their number.

    Raises:
        InputError: another text.
    """
    hints = get_type_hints(command)
    for kind in tuple(hints.values()):
        hints |= get_type_hints(kind) if is_dataclass(kind) else {}
    counts = {name for name, hint in hints.items() if int in (hint, *get_args(hint))}
    return {
        name: natural(value, name, 0) if name in counts and isinstance(value, str) else value
        for name, value in options.items()
    }


def _pairs(values: Mapping[str, Any]) -> Iterator[str]:
    """NAME=VALUE of each, commas between heads."""
    for name, value in values.items():
        several = value if isinstance(value, list | tuple) else [value]
        yield f"{name}={','.join(map(str, several))}"
