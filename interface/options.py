"""Options that several verbs share, each group a dataclass: cyclopts makes flags of its fields."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from farfield.help import FOLDED
from farfield.theory.answers.errors import InputError, refuse

if TYPE_CHECKING:
    from farfield.theory.encodings import Encoding

Formula = Annotated[str, Parameter(allow_leading_hyphen=True)]
"""A formula in `n` or a name of the catalogue; it may begin with a minus."""

Formulas = Annotated[tuple[str, ...], Parameter(allow_leading_hyphen=True)]
"""Formulas of an option that is given once for each."""

Listed = Annotated[str, Parameter(allow_leading_hyphen=True)]
"""A file, or `-` for standard input."""


def _count(least: int) -> Parameter:
    """A whole number as people write it: 4096, or 4k."""

    def read(_: Any, given: Sequence[Any]) -> int:
        from farfield.theory.answers.number import natural

        return natural(given[0].value, given[0].keyword or "the number", least)

    return Parameter(converter=read)


Opened = Annotated[bool, Parameter(name="--open", negative="--no-open")]
"""Whether a page is opened in a browser."""

Count = Annotated[int, _count(1)]
"""A number of tokens or the like, from 1; `4k` is 4096."""

CountOrNone = Annotated[int | None, _count(1)]

CountFrom0 = Annotated[int, _count(0)]

NUMBER = r"[-+]?[\d.,_]*[1-9][\d.,_]*[kKmM%]?"
"""A number other than 0, with a unit that people write."""

MEANT = {"eps": "error", "error": "eps", "users": "rows", "batch_size": "rows"}
"""What an option of one verb, or of another tool, is called in another verb."""

LOST_DOLLAR = r"e?h(imBHs?|B?c|uB[cs]?)(?![A-Za-z0-9_(])|e?hB(?=\\)|e?h(m?u?B|im)[^$]*\$$"
"""What a shell makes of `$-` at the beginning of a formula in double quotes: its own options."""

CODE = r"\S+\.py(:[\w.]+)?"
"""A user's own function or module, in a file."""

_RESERVED = ("heads", "head", "dialect", "tail", "bca", "values", "name", "assumptions")


_FORMULA, _ANSWER = map(Group.create_ordered, FOLDED)


@Parameter(name="*", group=_FORMULA)
@dataclass(frozen=True, kw_only=True)
class Subject:
    """Which encoding is meant, and how long may be thought about it."""

    set: tuple[str, ...] = ()
    "NAME=VALUE of a parameter or an option of the encoding; commas between heads (repeatable)."
    assume: tuple[str, ...] = ()
    "NAME=DOMAIN of a parameter: positive, real, [0, 2), ... (repeatable)."
    heads: int | None = None
    "number of heads of an encoding that has values for each."
    head: int | None = None
    "only this head, counted from 1."
    dialect: str | None = None
    "variant of an encoding of the catalogue."
    tail: str | None = None
    "how a table of values continues: constant, linear or cut; unknown if not given."
    bca: CountOrNone = None
    "half-width in tokens of blockwise causal attention."
    budget: float | None = None
    "time limit in seconds; an answer that is open then is unknown."

    def given(self) -> bool:
        """Whether any of these options was said."""
        return self != Subject()

    def seconds(self, unless: float) -> float:
        """The budget, or the usual one."""
        return unless if self.budget is None else self.budget

    def read(
        self, formula: str, wide: int | None = None, *, alone: bool = True, code: bool = True
    ) -> Encoding:
        """The encoding that is meant.

        Args:
            formula: or a name.
            wide: heads of a model; an encoding with values for each has as many, unless `heads` or
                the formula says how many.
            code: whether `FILE.py:NAME` is a user's own code, which is imported.
            alone: whether no other formula is asked about, whose head `head` may be.

        Raises:
            InputError: no formula, unknown names, values outside their domain, no such head.
        """
        from farfield.theory.encodings import LISTED, encoding

        refuse(
            isinstance(formula, str) and re.match(LOST_DOLLAR, formula),
            f"{str(formula)[:40]!r} begins with what a shell makes of $-; write the formula "
            "between single quotes, as '$-2\\log(1+n)$', or without dollars",
        )
        values: dict[str, Any] = {
            name: value.split(",") if "," in value else value
            for name, value in pairs(self.set, "--set").items()
        }
        assumptions = pairs(self.assume, "--assume")
        if taken := sorted({*values} & {*_RESERVED}):
            raise InputError(
                f"--set {taken[0]}=...: use the option --{taken[0]} where there is one"
            )
        given: Any = formula
        if code and isinstance(formula, str) and re.fullmatch(CODE, formula):
            from farfield.theory.encodings.python_files import handed

            given = handed(formula, self.heads)
        try:
            found = encoding(
                given,
                heads=self.heads,
                dialect=self.dialect,
                tail=self.tail,
                bca=self.bca,
                assumptions=assumptions or None,
                **values,
            )
        except InputError as error:
            refuse(
                _is(os.path.isdir, formula),
                f"{formula!r} is a folder, and no formula; a model is asked by farfield audit "
                f"{formula}, or farfield window --model {formula}",
            )
            if not _is(os.path.isfile, formula):
                raise
            raise InputError(
                f"{formula!r} is a file; the formulas in it are decided by farfield check --file "
                f"{formula} (as a formula: {error})"
            ) from None
        if self.head is not None and found.num_heads > 1:
            return found.one_head(self.head)
        refuse(
            alone and (self.head or 1) > 1,
            f"--head {self.head}: {str(formula)[:40]} has one head; leave the option out",
        )
        if self.heads is None and found.num_heads not in (1, wide or found.num_heads):
            return found if found.source == LISTED else replace(self, heads=wide).read(formula)
        return found

    def restricted_to(self, formula: Any) -> Subject:
        """These options as far as they concern one formula of several, or an object."""
        from farfield.theory.encodings.head_lists import as_list, is_table

        taken = _option_names(formula)
        values = as_list(formula) if isinstance(formula, str) else formula
        table = hasattr(values, "__array__") or (
            isinstance(values, list | tuple) and is_table(values)
        )
        tail = self.tail if table or re.fullmatch(CODE, str(formula)) else None
        return replace(
            self, set=_naming(taken, self.set), assume=_naming(taken, self.assume), tail=tail
        )

    def read_each(self, formulas: Sequence[str], wide: int | None = None) -> list[Encoding]:
        """The encodings that are meant; of several, each takes the options that name what it has.

        Args:
            formulas: or names.
            wide: as of `read`.

        Raises:
            InputError: as `read`; an option that concerns none of them; no formula.
        """
        refuse(
            not formulas,
            "give a formula in n, as -log(1+n), or a name of the catalogue, as alibi; several "
            "are several ideas, and [-n/4; 0 x7] is one formula a head",
        )
        if len(formulas) == 1:
            return [self.read(formulas[0], wide)]
        for word in map(str, formulas):
            refuse(
                re.fullmatch(NUMBER, word),
                f"{word!r} is a number beside formulas; write the option that it belongs to before "
                f"it, as {'--eps' if re.search('[.%]', word) else '--length'} {word}",
            )
        taken = set().union(*map(_option_names, formulas))
        for option, given in (("--set", self.set), ("--assume", self.assume)):
            for name in pairs(given, option):
                if name not in taken:
                    known = ", ".join(sorted(taken)) or "none"
                    raise InputError(
                        f"{option} {name}=...: none of the formulas has it; they have: {known}"
                    )
        each = [self.restricted_to(formula) for formula in formulas]
        refuse(
            self.tail is not None and not any(options.tail for options in each),
            f"--tail {self.tail}: none of the formulas is a table of values, such as [0, -1, -2]",
        )
        return [
            options.read(formula, wide, alone=False)
            for options, formula in zip(each, formulas, strict=True)
        ]

    @contextmanager
    def within_budget(self) -> Iterator[None]:
        """A time limit: answers that are open after `budget` become unknown."""
        from farfield.theory.algebra.door import within

        if self.budget is None:
            yield
            return
        with within(self.budget):
            yield


@Parameter(name="*", group=_ANSWER)
@dataclass(frozen=True, kw_only=True)
class Output:
    """How the answer is written."""

    json: bool = False
    "JSON instead of text."
    latex: bool = False
    "the rows as a LaTeX table (needs booktabs)."
    csv: bool = False
    "the rows as CSV."
    proof: bool = False
    "the proof as well, or what was tried."
    ascii: bool = False
    "plain ASCII output."

    @property
    def is_text(self) -> bool:
        """Whether a reader gets it, as text."""
        return not (self.json or self.latex or self.csv)

    def __post_init__(self) -> None:
        forms = [f"--{form}" for form in ("json", "latex", "csv") if getattr(self, form)]
        refuse(
            len(forms) > 1,
            f"{' and '.join(forms)} are several forms of one answer; accepted: one of them",
        )
        refuse(
            (self.latex or self.csv) and (self.proof or self.ascii),
            "--latex and --csv write rows, --proof and --ascii a text; accepted: one of the two",
        )


@dataclass(frozen=True, kw_only=True)
class Kept(Output):
    """Keeps the answers of a verb that is called as a function; nothing is written."""

    answers: list[Any] = field(default_factory=list)

    @property
    def is_text(self) -> bool:
        """Nobody reads it as text."""
        return False


def own_class(formula: object) -> str:
    """`FILE.py:Class` where a formula is a class of a file, which is trained itself; else empty."""
    if not isinstance(formula, str) or not re.fullmatch(CODE, formula):
        return ""
    from farfield.theory.encodings.python_files import named

    found = named(formula)
    place = formula if ":" in formula else f"{formula}:{getattr(found, '__name__', '')}"
    return place if isinstance(found, type) else ""


def own_module(formula: Any, found: Encoding) -> Any:
    """The module that is trained itself, a class or `FILE.py:Class`; None for a formula."""
    if found.seen is None or not isinstance(formula, str):
        return None if found.seen is None else formula
    return formula if ":" in formula else f"{formula}:{found.name}"  # of the only one in it


def lengths(text: str) -> list[int]:
    """Context lengths as `--tested` takes them.

    >>> lengths("8k,32k")
    [8192, 32768]
    """
    from farfield.theory.answers.number import natural

    return [natural(part, "--tested") for part in text.split(",")]


def pairs(given: Sequence[str], option: str) -> dict[str, str]:
    """NAME=VALUE as a mapping.

    Raises:
        InputError: a text that is no pair, or a name given twice.
    """
    from farfield.theory.formula.reading import canonical

    found: dict[str, str] = {}
    domain = option == "--assume"
    for item in given:
        name, equals, value = (part.strip() for part in item.partition("="))
        refuse(
            not equals or not name or not value,
            f"{option} {item!r}: expected NAME={'DOMAIN' if domain else 'VALUE'}, as {option} "
            f"r1={'real' if domain else '6/5'}",
        )
        name = canonical(name)
        refuse(name in found, f"{option} gives {name!r} twice")
        found[name] = value
    return found


def _is(kind: Callable[[str], bool], text: object) -> bool:
    """Whether a text is the name of a file or a folder."""
    return isinstance(text, str) and kind(text)


def _option_names(formula: Any) -> set[str]:
    """The names of the parameters and options that an encoding has; an object has none."""
    from farfield.theory.encodings import CATALOGUE, encoding

    if not isinstance(formula, str):
        return set()
    try:
        found = encoding(formula)
    except InputError:  # said when the formula is read
        return {*re.findall(r"[A-Za-z]\w*", formula)}
    entry = CATALOGUE.get(found.name)
    return {*(p.name for p in found.parameters), *(entry.options if entry else ())}


def _naming(taken: set[str], given: Sequence[str]) -> tuple[str, ...]:
    """The pairs of the names that are taken."""
    return tuple(item for item in given if {*pairs([item], "")} <= taken)
