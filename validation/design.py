"""The forecast as a target of a design: what a model loses beyond its training length.

A forecast belongs to trained models, a design to formulas; here the one is made a quantity of the
other, and `design` is the function that knows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flint import arb
from sympy import Expr, Rational, Symbol

from farfield.numerics.design.solve import design as design
from farfield.numerics.design.targets import Quantity, registered
from farfield.theory.algebra.exceptions import Unreachable
from farfield.theory.answers.errors import InputError
from farfield.theory.answers.number import natural
from farfield.theory.encodings import Encoding
from farfield.validation.forecast import Forecast, forecast, outside
from farfield.validation.reference.registration import USUAL


@registered
@dataclass(frozen=True)
class Forecasted(Quantity):
    """The quantity that a forecast rests on, of a model whose heads are alike, in float64.

    >>> found = design("-a*n", forecast="<=1/10", trained=64, tested=1024)
    >>> found.achieved <= 0.1, found.together[0].label
    (True, <Label.FORECAST: 'forecast'>)
    """

    name = "forecast"
    relation = "<="
    integer = False
    better = -1
    approximate = True
    per_head = False
    keys = ""

    trained: Any
    tested: Any
    layers: Any = 4

    def phrase(self) -> str:
        return f"forecast of {self.trained} to {self.tested} bytes, its quantity"

    def brief(self) -> str:
        return "forecast"

    def ordered(self, p: Expr, a: Symbol) -> bool:
        """Heavier tails leak more and resolve less or more: no order is proved.

        Raises:
            InputError: no forecast is possible at these lengths and this depth.
        """
        m, n, layers = (natural(v, "a length") for v in (self.trained, self.tested, self.layers))
        if why := outside(m, n, layers, USUAL["steps"]):
            raise InputError(f"a target on forecast is not possible: {why}")
        return False

    def answer(self, bias: Expr | Encoding) -> Forecast:
        return forecast(bias, trained=self.trained, tested=self.tested, layers=self.layers)

    def number(self, bias: Expr) -> float | None:
        return self.answer(bias).value

    def within(self, bias: Expr, limit: Rational, strict: bool = False) -> bool:
        value = self._value(bias)
        return value < limit if strict else value <= limit

    def gauge(self, bias: Expr, limit: Rational) -> Any:
        return arb(self._value(bias) - float(limit))

    def _value(self, bias: Expr) -> float:
        found = self.answer(bias)
        if found.value is None or found.holds is None:
            raise Unreachable(str(found.reason))
        return found.value
