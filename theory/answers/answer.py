"""What every public answer of farfield is: a frozen dataclass that prints, renders and serialises.

A result carries its own `label`, the weight of what it says:

* `theorem`      proved for all n by the argument in its proof,
* `certified`    numbers enclosed by rigorous ball arithmetic,
* `approximate`  a model or an estimate, with no bound,
* `measured`     read off a trained model or off data.

The JSON form is versioned (`SCHEMA`); expressions are written as the text that the reader of
formulas takes back, numbers as JSON numbers, everything else as its text.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
from fractions import Fraction
from typing import Any

import sympy

SCHEMA = 1


class InputError(ValueError):
    """What was given, what is wrong with it, what is accepted: one line, fit for a user to read."""


def plain(value: Any) -> Any:
    """The JSON form of a value: dataclasses by field, enums and expressions as text.

    >>> plain({"eps": Fraction(1, 100), "tokens": 61})
    {'eps': '1/100', 'tokens': 61}
    """
    if isinstance(value, Result):
        return {"kind": type(value).__name__} | value.fields()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (tuple, list, set, frozenset)):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value)


@dataclasses.dataclass(frozen=True)
class Result:
    """Base of the public results: `str()` for a terminal, `to_json()` for a machine."""

    def text(self) -> str:
        """The answer in plain text, a few lines, complete enough to stand alone."""
        raise TypeError(f"{type(self).__name__} has no text form")

    def __str__(self) -> str:
        return self.text()

    def fields(self) -> dict[str, Any]:
        """The fields in their JSON form."""
        return {f.name: plain(getattr(self, f.name)) for f in dataclasses.fields(self)}

    def to_dict(self) -> dict[str, Any]:
        """The fields with the kind of the result and the version of the schema."""
        return {"schema": SCHEMA, "kind": type(self).__name__} | self.fields()

    def to_json(self, indent: int | None = 2) -> str:
        """The result as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def _repr_html_(self) -> str:
        from farfield.theory.answers.mathml import result_html

        return result_html(self)


def exact(value: Any, what: str = "number") -> sympy.Rational:
    """The rational number a user wrote: `"1/2"`, `"0.01"`, `Fraction`, an int, a SymPy rational.

    A float is read as the decimal the user sees (its shortest text), never as its binary value.

    Raises:
        InputError: when it is no finite rational number, or has more than 1000 digits.

    >>> exact(0.1), exact("1e-3"), exact("6/5")
    (1/10, 1/1000, 6/5)
    """
    wanted = "accepted: a rational number such as 1/2, 0.01, 1e-3, Fraction(1, 2)"
    if isinstance(value, bool) or value is None:
        raise InputError(f"{what} {value!r} is not a number; {wanted}")
    if isinstance(value, sympy.Float):
        value = float(value)
    if isinstance(value, sympy.Rational):
        return value
    text = str(value).strip().replace("\N{MINUS SIGN}", "-")
    shown = text if len(text) <= 40 else text[:37] + "..."
    mantissa, _, exponent = text.lower().partition("e")
    digits = sum(c.isdigit() for c in mantissa)
    if digits > 1000 or (exponent.lstrip("+-").isdigit() and abs(int(exponent[:8])) > 1000):
        raise InputError(f"{what} {shown} has more than 1000 digits; {wanted}")
    try:
        fraction = Fraction(text.replace(" ", ""))
    except (ValueError, ZeroDivisionError):
        raise InputError(f"{what} {shown!r} is not a rational number; {wanted}") from None
    return sympy.Rational(fraction.numerator, fraction.denominator)
