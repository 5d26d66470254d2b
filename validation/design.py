"""The forecast as a target of a design: what a model loses beyond its training length.

A forecast belongs to trained models, a design to formulas; here the one is made a quantity of the
other, and `design` is the function that knows it.

>>> found = design("-a*n", forecast="<=1/10", trained=64, tested=1024, budget_s=60)
>>> found.achieved <= 0.1, found.together[0].label
(True, <Label.FORECAST: 'forecast'>)
"""

from __future__ import annotations

import functools
from typing import Any

from sympy import Expr, Symbol

from farfield.numerics.design import solve
from farfield.numerics.design.designs import Design, Designs
from farfield.numerics.design.targets import MUST, TARGETS, Quantity
from farfield.theory.answers.errors import InputError
from farfield.theory.answers.number import natural
from farfield.validation.forecast import forecast, outside
from farfield.validation.reference.registration import USUAL


def _ordered(asked: Quantity, p: Expr, a: Symbol) -> bool:
    """Heavier tails leak more and resolve less or more: no order is proved.

    Raises:
        InputError: no forecast is possible at these lengths and this depth.
    """
    own = asked.options
    m, n, layers = (natural(own[k], "a length") for k in ("trained", "tested", "layers"))
    if why := outside(m, n, layers, USUAL["steps"]):
        raise InputError(f"a target on forecast is not possible: {why}")
    return False


FORECAST = Quantity(
    "forecast",
    forecast,
    {"trained": MUST, "tested": MUST, "layers": 4},
    lambda own: f"forecast of {own['trained']} to {own['tested']} bytes, its quantity",
    lambda _: "forecast",
    ordered=_ordered,
    relation="<=",
    integer=False,
    better=-1,
    approximate=True,
    per_head=False,
    keys="",
    value="value",
)
"""The quantity that a forecast rests on, of a model whose heads are alike, in float64."""

KNOWN = TARGETS | {"forecast": FORECAST}
"""Every quantity that a target may speak of."""


@functools.wraps(solve.design)
def design(*given: Any, **options: Any) -> Design | Designs:
    """As `numerics.design.solve.design`, with the forecast among the quantities."""
    return solve.design(*given, **{"known": KNOWN, **options})
