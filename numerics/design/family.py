"""A family of biases: a formula in `n` with one free parameter on its domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy
from sympy import Expr, S, Symbol

from farfield.theory.algebra.door import unhurried
from farfield.theory.answers.answer import InputError
from farfield.theory.answers.notation import listed, shortened
from farfield.theory.answers.number import exact
from farfield.theory.encodings import CATALOGUE, Encoding, encoding
from farfield.theory.formula.parameters import interval, parameter


@dataclass(frozen=True)
class Family:
    """A bias with one free parameter.

    Args:
        given: a name of the catalogue, a formula or an expression.
        formula: in `n` and the parameter alone, the values of all others put in.
        parameter: the symbol of the free one.
        domain: where it lives, as `positive` or `[0, 2)`.
        fixed: values of the other parameters and options of the encoding.
        whole: the formula before these values were put in.
        default: the domain of the parameter where nothing is assumed.
    """

    given: str | Expr
    formula: Expr
    parameter: Symbol
    domain: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    whole: Expr = S.Zero
    default: str = "positive"

    @property
    def name(self) -> str:
        """What the user calls it."""
        return str(self.given)

    @property
    def interval(self) -> sympy.Set:
        """The domain as a set."""
        return interval(self.domain)

    def at(self, value: Expr) -> Expr:
        """The bias where the parameter has this value.

        >>> read_family("kerple_log", values={"r2": 1}).at(sympy.Integer(2))
        -2*log(n + 1)
        """
        return self.formula.xreplace({self.parameter: value})

    def encoding(self, values: Sequence[Expr]) -> Encoding:
        """The encoding with one value a head."""
        with unhurried():
            if self._takes(values):
                return encoding(self.given, **self._options(list(values)))
            return encoding([self.at(v) for v in values])

    def _takes(self, values: Sequence[Expr]) -> bool:
        """Whether the given text takes these values of its parameter, without an assumption."""
        domain = interval(self.default)
        return isinstance(self.given, str) and all(v in domain for v in values)

    def call(self, values: Sequence[Expr]) -> str:
        """The Python that makes the encoding.

        >>> read_family("alibi").call([sympy.Rational(1, 4), sympy.Rational(1, 8)])
        'encoding("alibi", m=["1/4", "1/8"])'
        """
        if not self._takes(values):
            return f"encoding({_written([str(self.at(v)) for v in values])})"
        options = self._options([str(v) for v in values])
        written = "".join(f", {name}={_written(value)}" for name, value in options.items())
        return f'encoding("{self.given}"{written})'

    def _options(self, values: list[object]) -> dict[str, Any]:
        return {**self.fixed, self.parameter.name: values if len(values) > 1 else values[0]}


def _written(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_written, value)) + "]"
    return str(value) if isinstance(value, int) else f'"{value}"'


def read_family(
    given: Any,
    chosen: str | None = None,
    *,
    dialect: str | None = None,
    values: Mapping[str, Any] | None = None,
    assumptions: Mapping[str, str] | None = None,
) -> Family:
    """The family a user means.

    Args:
        given: a formula, a SymPy expression, an `Encoding`, or a name of the catalogue: then its
            formula with one free parameter a head.
        chosen: the name of the parameter that is free.
        dialect: variant of an encoding of the catalogue.
        values: of the other parameters, and options of the encoding.
        assumptions: domains of parameters: positive (the default), real, [0, 2), ...

    Raises:
        InputError: no additive bias, no free parameter or several, names that are not known.

    >>> read_family("sandwich_smoothed").parameter
    c
    """
    domains, fixed = dict(assumptions or {}), dict(values or {})
    options = fixed | ({} if dialect is None else {"dialect": dialect})
    named = isinstance(given, str) and given in CATALOGUE  # its own domains may be replaced
    subject = encoding(given, assumptions=None if named else domains or None, **options)
    label = shortened(subject.name, 60)
    if subject.formula is None:
        why = subject.out_of_scope or "each of its heads has a formula of its own"
        raise InputError(f"{label} is no family of biases: {why}")
    formula = subject.formula.replace(sympy.Sum, lambda *args: sympy.Sum(*args).doit())
    if isinstance(given, Encoding) and subject.free:
        formula = subject.biases[0]
    parameters = {p.name: p for p in subject.parameters if p.symbol in formula.free_symbols}
    if strange := sorted({*domains, *([chosen] if chosen else [])} - {*parameters}):
        has = ", ".join(parameters) or "none"
        raise InputError(f"{label} has no parameter {strange[0]!r}; parameters: {has}")
    free = [name for name in parameters if name not in fixed]
    if len(free) != 1 or chosen not in (None, free[0]):
        raise InputError(_count_is_wrong(subject, free, chosen, fixed))
    swap = {parameters[k].symbol: exact(v, k) for k, v in fixed.items() if k in parameters}
    sought = parameters[free[0]]
    domain = domains.get(sought.name, sought.domain)
    symbol = parameter(sought.name, domain)
    return Family(
        given if not isinstance(given, Encoding) else formula.xreplace(swap),
        formula.xreplace(swap | {sought.symbol: symbol}),
        symbol,
        domain,
        options,
        formula,
        sought.domain if named else "positive",
    )


def _count_is_wrong(
    subject: Encoding, free: Sequence[str], chosen: str | None, fixed: Mapping[Any, object]
) -> str:
    label = shortened(subject.name, 60)
    if chosen in fixed:
        return f"{label}: {chosen} is to be found, and has the value {fixed[chosen]}; leave it out"
    if not free:
        entry = CATALOGUE.get(subject.name)
        dialects = f" (dialects: {', '.join(entry.dialects)})" if entry and entry.dialects else ""
        scaled = "-a*n" if entry else f"c*({label})"
        return (
            f"{label} has no free parameter{dialects}; accepted: a formula with one, as {scaled}, "
            "whose value is sought"
        )
    others = [name for name in free if name != (chosen or free[0])]
    has = "free parameters" if subject.free else "parameters with values"
    meant = "fix the others" if subject.free else "give the formula, and values of the others"
    return (
        f"{label} has {len(free)} {has} ({listed(free, 6)}); one is sought, {meant}: "
        f"{others[0]}=1 in Python, --set {others[0]}=1 on the command line"
    )
