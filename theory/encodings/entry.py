"""One row of the catalogue: it holds everything that the project knows of an encoding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sympy import Expr

from farfield.theory.answers.answer import Reason
from farfield.theory.encodings.encoding import Parameter

Values = Mapping[str, Expr]


@dataclass(frozen=True)
class Example:
    """The head that represents an encoding where many are compared: its title, and how it is
    made."""

    title: str
    options: Mapping[str, Any] = field(default_factory=dict)
    head: int = 1


@dataclass(frozen=True)
class Entry:
    """One row of the catalogue.

    Args:
        name: what it is called.
        source: where it stands.
        formula: the bias from the options; None where it is not additive.
        parameters: those of the formula, or a function of the options.
        values: the parameters of head `h` of `heads`; None: they stay symbolic.
        dialects: the accepted ones, the first being the default.
        options: keyword arguments with their defaults, beside `dialect`.
        needs: options that only some dialects read; given with another they are refused.
        per_head: whether a head has values of its own, or a function of the dialect.
        mechanism: `bias`, or how a model applies it.
        out_of_scope: the hypothesis of [Q, Theorem 0.4] that fails.
        note: further facts for a reader.
        title: how it is written in prose; the name where nothing is said.
        aliases: other names in papers.
        trained: options with which it is trained on rows of a length, where defaults do not do.
        tables: of an encoding whose formula is a table: the options that give this many parameters.
            Its tables go by one name, since each training length has its own.
        examples: heads that represent it where many are compared.
        baseline: whether a study trains it beside the encodings asked about.
        stands_for: the entry that this additive surrogate replaces; empty for all others.
    """

    name: str
    source: str
    formula: Callable[..., Expr] | None = None
    parameters: tuple[Parameter, ...] | Callable[..., tuple[Parameter, ...]] = ()
    values: Callable[..., Values] | None = None
    dialects: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    per_head: Callable[[str | None], bool] | bool = False
    mechanism: str = "bias"
    out_of_scope: Reason | None = None
    note: str = ""
    title: str = ""
    aliases: tuple[str, ...] = ()
    trained: Callable[[int], Mapping[str, Any]] = lambda length: {}
    tables: Callable[[int], Iterable[Mapping[str, Any]]] | None = None
    examples: tuple[Example, ...] = ()
    baseline: bool = False
    stands_for: str = ""
