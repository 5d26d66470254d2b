"""The classes `Result` and `Answer`: status, label, reason; several heads put together as one.

The *status* says how much is known, the *label* how much it weighs:

* `theorem`      proved for all n by the argument in its proof;
* `certified`    numbers enclosed by rigorous ball arithmetic;
* `approximate`  a model or an estimate, with no bound;
* `forecast`     from rules that were judged on trained models;
* `measured`     read off a trained model or off data;

it is None where nothing is known. A *reason* has a code, by which a program decides, and a
sentence, for a reader: no sentence is ever read to decide something. For several heads an answer
has one answer a head, and `deciding_head` is the one rule that says which speaks for all.

The JSON form is versioned (`SCHEMA`): its keys are the names of the fields. Expressions are
written as text that farfield reads back. Infinities and values that are no number become null.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, TypeVar

from farfield.theory.answers.blocks import Block, Sentence
from farfield.theory.answers.errors import InputError as InputError
from farfield.theory.answers.notation import shortened, terminal
from farfield.theory.views import view

SCHEMA = 2
LINE = 200


class Status(enum.StrEnum):
    """How much is known of a value."""

    EXACT = "exact"
    ENCLOSED = "enclosed"
    INFINITE = "infinite"
    UNKNOWN = "unknown"
    OUT_OF_SCOPE = "out_of_scope"


class Label(enum.StrEnum):
    """How much an answer weighs."""

    THEOREM = "theorem"
    CERTIFIED = "certified"
    APPROXIMATE = "approximate"
    FORECAST = "forecast"
    MEASURED = "measured"


class Code(enum.StrEnum):
    """Why an answer is not a plain number, by a word that a program may rely on."""

    DIVERGES = "diverges"
    UNDECIDED = "undecided"
    CONDITIONAL = "conditional"
    BUDGET = "budget"
    NO_ENCLOSURE = "no_enclosure"
    TIE = "tie"
    TOO_LARGE = "too_large"
    NEVER = "never"
    BOUNDED_SUPPORT = "bounded_support"
    TRIVIAL_BUDGET = "trivial_budget"
    NOT_ADDITIVE = "not_additive"
    NOT_TOEPLITZ = "not_toeplitz"
    CONTENT_DEPENDENT = "content_dependent"
    NOT_SOFTMAX = "not_softmax"
    NO_LIMIT = "no_limit"
    BEYOND_EVIDENCE = "beyond_evidence"
    SETTINGS_DISAGREE = "settings_disagree"
    NOT_COVERED = "not_covered"
    BEYOND_SEEN = "beyond_seen"
    MISSING_BOUND = "missing_bound"
    BOUNDED_LOGITS = "bounded_logits"
    NO_WEIGHT = "no_weight"
    ONLY_KEY = "only_key"
    NOT_PROVED = "not_proved"
    BROKEN_BOUND = "broken_bound"


@dataclasses.dataclass(frozen=True)
class Reason:
    """Why something is as it is: a code to decide by, a sentence to read."""

    code: Code
    sentence: str

    def __post_init__(self) -> None:
        Code(self.code)  # no other word, and no sentence in its place

    def __str__(self) -> str:
        return self.sentence


@dataclasses.dataclass(frozen=True)
class Seen:
    """How far a bias was looked at: the last distance, and the last position of a query."""

    distance: int
    query: int | None = None


def plain(value: object) -> Any:
    """The JSON form of a value: dataclasses by field, enums and expressions as text.

    >>> from fractions import Fraction
    >>> plain({"eps": Fraction(1, 100), "tokens": 61, "limit": math.inf})
    {'eps': '1/100', 'tokens': 61, 'limit': None}
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
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (tuple, list, set, frozenset)):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value)


@dataclasses.dataclass(frozen=True, repr=False)
class Result:
    """What can be shown and written: blocks for a reader, fields for a machine."""

    def blocks(self) -> Sequence[Block]:
        """What it says, the first block in one plain sentence."""
        return tuple(self._blocks())

    def _blocks(self) -> Iterable[Block]:
        """The blocks, one after the other."""
        raise TypeError(f"{type(self).__name__} says nothing")

    def text(self, *, details: bool = False, unicode: bool = True, **terminal: Any) -> str:
        """The blocks for a terminal; with `details`, proofs as well.

        `width` and `colour` are those of `writers.terminal.written`.
        """
        from farfield.theory.answers.blocks import written

        return written(self.blocks(), details=details, unicode=unicode, **terminal)

    def __str__(self) -> str:
        return self.text()

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        cls.__repr__ = Result.__repr__  # type: ignore[method-assign]  # dataclass writes its own

    def __repr__(self) -> str:
        first, name = self.blocks()[0], type(self).__name__
        if not isinstance(first, Sentence):
            raise TypeError(f"{name} does not begin with a sentence")
        return f"<{name}: {shortened(terminal(first.text), LINE - len(name) - 4)}>"

    def fields(self) -> dict[str, Any]:
        """The fields in their JSON form."""
        return {f.name: plain(getattr(self, f.name)) for f in dataclasses.fields(self)}

    def to_dict(self) -> dict[str, Any]:
        """The fields with the kind of the result and the version of the schema."""
        return {"schema": SCHEMA, "kind": type(self).__name__} | self.fields()

    def to_json(self, indent: int | None = 2) -> str:
        """The result as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def table_blocks(self) -> Sequence[Block]:
        """The blocks whose tables are its rows."""
        return self.blocks()

    def latex(self) -> str:
        """Its rows as LaTeX: a `tabular` with the rules of booktabs.

        Raises:
            InputError: it has none.
        """
        from farfield.theory.answers.writers.tables import latex_tables

        return latex_tables(self.table_blocks())

    def csv(self) -> str:
        """Its rows as CSV, as a reader sees them.

        Raises:
            InputError: it has none.
        """
        from farfield.theory.answers.writers.tables import csv_tables

        return csv_tables(self.table_blocks())

    def to_polars(self) -> Any:
        """The rows of its first table as a data frame of Polars; numbers are numbers.

        Raises:
            InputError: it has none.
        """
        import io

        import polars

        first = self.csv().partition("\n\n")[0]
        return polars.read_csv(io.StringIO(first), infer_schema_length=None)

    def plot(self) -> Any:
        """Its curve as a figure of matplotlib.

        Raises:
            InputError: it has none.
        """
        return view("plot")(self)

    def _repr_html_(self) -> str:
        from farfield.theory.answers.writers.html import notebook

        return notebook(self.blocks())


@dataclasses.dataclass(frozen=True, repr=False, kw_only=True)
class Answer(Result):
    """A public answer.

    Fields:
        status: what is known.
        label: its weight; None where nothing is known.
        reason: why the value is no plain number, or None.
        subject: what the question was about, as it was given.
        origin: how the bias is known: `formula`, `traced` or `tabulated`; empty without a bias.
        seen: of a tabulated bias, how far it was looked at.
    """

    VALUE: ClassVar[str] = "value"

    status: Status = Status.EXACT
    label: Label | None = Label.CERTIFIED
    reason: Reason | None = None
    subject: str = dataclasses.field(default="", compare=False)
    origin: str = dataclasses.field(default="", compare=False)
    seen: Seen | None = dataclasses.field(default=None, compare=False)

    def __post_init__(self) -> None:
        answered = self.status not in (Status.UNKNOWN, Status.OUT_OF_SCOPE)
        if answered != (self.label is not None):
            raise TypeError(f"label {self.label} of an answer with status {self.status}")

    def span(self) -> tuple[Any, Any] | None:
        """Bounds that hold the value, equal where it is known; None where nothing is."""
        value = getattr(self, self.VALUE)
        return None if value is None else (value, value)

    def __int__(self) -> int:
        value = self._exact_value()
        if value == math.inf:
            raise OverflowError(f"{self!r} is infinite: it is no integer")
        return int(value)

    def __float__(self) -> float:
        return float(self._exact_value())

    def _exact_value(self) -> Any:
        """The value where it is exact, for the conversions a person expects; else ValueError."""
        value = getattr(self, self.VALUE)
        if value is None:
            raise ValueError(f"{self!r} has no exact value: {self.reason or 'nothing is known'}")
        return value

    def __lt__(self, other: object) -> bool:
        return self._below(other, strict=True)

    def __le__(self, other: object) -> bool:
        return self._below(other, strict=False)

    def __gt__(self, other: object) -> bool:
        return not self._below(other, strict=False)

    def __ge__(self, other: object) -> bool:
        return not self._below(other, strict=True)

    def _below(self, other: object, *, strict: bool) -> bool:
        """Whether all of ours lies below all of theirs; ValueError where the spans overlap."""
        if isinstance(other, Answer):
            if type(other) is not type(self):
                raise TypeError(f"{type(self).__name__} and {type(other).__name__} have no order")
            theirs = other.span()
        else:
            theirs = (other, other)
        ours = self.span()
        never = (math.inf, math.inf)
        vast = Status.ENCLOSED in (self.status, getattr(other, "status", None))  # yet finite
        if vast and never in (ours, theirs):
            return theirs == never
        if ours is not None and theirs is not None:
            if ours[1] < theirs[0] or (not strict and ours[1] <= theirs[0]):
                return True
            if theirs[1] < ours[0] or (strict and theirs[1] <= ours[0]):
                return False
        raise ValueError(f"the order of {self!r} and {other!r} is not known")


A = TypeVar("A", bound=Answer)
B = TypeVar("B")


def of_each_head(biases: Sequence[B], ask: Callable[[B], A]) -> tuple[A, ...]:
    """One answer a head; equal biases are asked once."""
    answers = {bias: ask(bias) for bias in dict.fromkeys(biases)}
    return tuple(answers[bias] for bias in biases)


def deciding_head(
    heads: Sequence[A],
    size: Callable[[A], object],
    settles: Callable[[A], bool] = lambda head: head.status is Status.INFINITE,
) -> A:
    """The head that speaks for all: one that settles the question, else one that is not known,
    else the largest.

    Args:
        heads: at least one answer.
        size: what the known ones are ordered by.
        settles: whether a head decides for all, whatever the others are.
    """

    def rank(head: A) -> tuple[bool, bool, Any]:
        unknown = head.status in (Status.UNKNOWN, Status.OUT_OF_SCOPE)
        return settles(head), unknown, 0 if unknown or settles(head) else size(head)

    return max(heads, key=rank)


def folded(
    heads: Sequence[A],
    size: Callable[[A], object],
    settles: Callable[[A], bool] = lambda head: head.status is Status.INFINITE,
) -> A:
    """One answer for all heads: the only one, else the decisive one without its formula, with all
    heads."""
    if len(heads) == 1:
        return heads[0]
    worst = deciding_head(heads, size, settles)
    return dataclasses.replace(worst, formula=None, heads=tuple(heads))  # type: ignore[call-arg]
