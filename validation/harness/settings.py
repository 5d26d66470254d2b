"""Settings as users write them: frozen records that refuse a wrong value in one line."""

from __future__ import annotations

import functools
from dataclasses import field
from typing import Annotated, Any, TypeVar, dataclass_transform

from pydantic import ConfigDict, Field, StrictFloat, ValidationError
from pydantic.dataclasses import dataclass

from farfield.theory.answers.answer import InputError
from farfield.theory.answers.names import nearest

Kind = TypeVar("Kind", bound=type)
Natural = Annotated[int, Field(ge=0, strict=True)]
Count = Annotated[int, Field(ge=1, strict=True)]
Counts = tuple[Count, ...]
Share = Annotated[StrictFloat, Field(gt=0, lt=1)]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def settings(kind: Kind) -> Kind:
    """A frozen dataclass that checks its fields as it is made, by their annotations.

    It raises InputError with the field, the value, and the accepted values. Lists become tuples.
    """
    made: Any = dataclass(frozen=True, config=ConfigDict(extra="forbid"))(kind)
    make = made.__init__

    @functools.wraps(make)
    def checked(self: Any, *args: Any, **given: Any) -> None:
        try:
            make(self, *args, **given)
        except ValidationError as error:
            raise InputError(_line(made, error)) from None

    made.__init__ = checked
    return made


def _line(kind: Any, error: ValidationError) -> str:
    """The first thing that is wrong: whose it is, its place, its value, and what is accepted."""
    each = error.errors()
    first = next((e for e in each if e["type"] == "unexpected_keyword_argument"), each[0])
    known = [f.alias or name for name, f in kind.__pydantic_fields__.items()]
    of = kind.__name__.strip("_").lower()
    names = [known[p] if at == 0 and isinstance(p, int) else p for at, p in enumerate(first["loc"])]
    place = ".".join(map(str, names))
    own = first.get("ctx", {}).get("error")
    if first["type"] == "unexpected_keyword_argument":
        near = nearest(place, known, 0.6)
        hint = f"did you mean {near}? " if near else ""
        return f"{of}: {place!r} is not known; {hint}accepted: {', '.join(known)}"
    if first["type"].startswith("missing"):
        return f"{of}: {place} is missing"
    if isinstance(own, InputError):
        said = str(own).removeprefix(f"{names[0]}: ") if names else str(own)
        return f"{of}: {place}: {said}" if place else said
    why = first["msg"].replace("Input should be", "accepted is").replace("valid tuple", "list")
    why = why.replace("an instance of", "a").replace("a valid dictionary", "a table")
    why = why.replace("Tuple should have", "accepted is").partition(" after")[0]
    return f"{of}: {place} {first['input']!r:.60}; {why}"
