"""Settings as users write them: frozen records that refuse a wrong value in one line."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import field
from typing import Annotated, Any, TypeVar, dataclass_transform

from pydantic import ConfigDict, Field, StrictFloat, ValidationError
from pydantic.dataclasses import dataclass

from farfield.theory.answers.answer import InputError

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
    first = error.errors()[0]
    if isinstance(own := first.get("ctx", {}).get("error"), InputError):
        return str(own)
    name, *rest = first["loc"]
    names = [name if isinstance(name, str) else dataclasses.fields(kind)[name].name, *rest]
    named = first["type"] in ("missing", "missing_argument", "unexpected_keyword_argument")
    value = "" if named else f" {first['input']!r}"
    why = first["msg"].replace("Input should be", "accepted is")
    return f"{kind.__name__.strip('_').lower()}: {'.'.join(map(str, names))}{value}; {why}"
