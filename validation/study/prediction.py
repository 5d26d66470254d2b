"""What the theory says of one encoding: verdict, receptive fields, leaks, windows, with labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sympy

from farfield.numerics.depth import LayeredReceptiveField, layered_receptive_field
from farfield.numerics.horizon import Horizon, dtype_horizon
from farfield.numerics.leak import Leak, leak
from farfield.numerics.price import Reach, reach
from farfield.numerics.receptive_field import ReceptiveField, theoretical_receptive_field
from farfield.numerics.resolution import Resolution, attention_resolution
from farfield.numerics.windows.question import SCOPE, Window
from farfield.numerics.windows.window import certified_window
from farfield.theory.answers.answer import Answer, Label, Result
from farfield.theory.answers.blocks import Block, note, table
from farfield.theory.answers.notation import Latex, listed
from farfield.theory.answers.number import SHARES, count, decimal
from farfield.theory.convergence import Convergence, Verdict, check_convergence
from farfield.theory.encodings import Encoding
from farfield.validation.forecast import Forecast, forecast
from farfield.validation.study.beside_rows import EPS as BESIDE
from farfield.validation.study.beside_rows import BesideRows, beside_rows
from farfield.validation.table_cells import (
    DTYPES,
    field_text,
    reach_text,
    share_text,
    size_text,
)

WINDOW_ERRORS, LOGIT_BOUND, VALUE_BOUND = ("1/10", "1/100"), 1, 1
ADVANTAGE = 7
"""Nats of logit, whose reach is printed: about what a head that retrieves was measured to have."""


@dataclass(frozen=True, repr=False)
class Prediction(Result):
    """What the theory says of one encoding, before any training.

    Fields:
        name: of the encoding in the study, with its variant.
        convergence: the verdict with its proof.
        receptive_fields: the TRF at each of `SHARES` where the series converges, else empty.
        row_fields: the finite-row TRF at each of `SHARES` for rows of `row_length` tokens.
        reaches: the distances that an advantage of `ADVANTAGE` nats reaches, in a row of
            `row_length` tokens and, where the series converges, in every row.
        leaks: the prior mass beyond `trained` tokens for rows of each tested length.
        horizons: the dtype horizon in each of `DTYPES`.
        resolution: the attention resolution of a row of `trained` tokens, at scale 1.
        windows: the certified window at each of `WINDOW_ERRORS`, logits within `LOGIT_BOUND`,
            values within `VALUE_BOUND`; empty where every head diverges, since none has one.
        layered: the predicted gradient ERF of a model of `layers` layers, approximate.
        forecast: what the nearest trained models lost at `row_length` tokens.
        beside: the field beside the training rows, with the measured loss, and a design that would
            fit.
        missing: why a number is absent.
    """

    name: str
    encoding: Encoding
    convergence: Convergence
    receptive_fields: tuple[ReceptiveField, ...] = ()
    row_fields: tuple[ReceptiveField, ...] = ()
    reaches: tuple[Reach, ...] = ()
    leaks: tuple[Leak, ...] = ()
    horizons: tuple[Horizon, ...] = ()
    resolution: Resolution | None = None
    windows: tuple[Window, ...] = ()
    layered: LayeredReceptiveField | None = None
    forecast: Forecast | None = None
    beside: BesideRows = dataclasses.field(kw_only=True)
    layers: int = 4
    trained: int = 64
    row_length: int = 1024
    missing: str = ""

    @property
    def drawable(self) -> bool:
        """Whether it is a bias with values at every distance, which can be drawn and ranked."""
        return bool(self.row_fields) and self.encoding.seen is None

    @property
    def windowless(self) -> bool:
        """Whether no head has a certified window, since every series diverges."""
        heads = self.convergence.heads or (self.convergence,)
        return all(h.verdict is Verdict.DIVERGES for h in heads)

    @property
    def longest_leak(self) -> float | None:
        """The leak to the longest test length."""
        return self.leaks[-1].value if self.leaks else None

    def blocks(self) -> Sequence[Block]:
        _, *proof = dataclasses.replace(self.convergence, subject=self.name).blocks()
        return (*self.sentences(), *proof, *self._numbers())

    def sentences(self) -> tuple[Block, ...]:
        """The verdict, the field beside the training rows with what models lost, and the reach."""
        verdict = dataclasses.replace(self.convergence, subject=self.name).blocks()[0]
        seen = self.encoding.seen is not None
        fields = [f for f in self.row_fields if seen and f.eps == sympy.Rational(BESIDE)]
        numbers = [*fields, *self.reaches[:1]]
        said = [dataclasses.replace(a, subject=self.name).blocks()[0] for a in numbers]
        return (verdict, *self.beside.blocks(), *said)

    def numbers(self) -> tuple[Any, ...]:
        """Name, verdict, TRF(1/100), leak and window: a line beside other encodings."""
        if self.encoding.seen is not None:
            tokens = f"{field_text(self.row_fields[1])} in rows of {self.row_length}"
            return self.name, self.convergence.verdict, tokens, "", ""
        field = self.receptive_fields[1] if self.receptive_fields else None
        window = count(self.windows[0].width) if self.windows else "none"
        diverges = self.convergence.verdict is Verdict.DIVERGES
        far = field_text(field) if field else size_text(None, diverges)
        leak = share_text(self.longest_leak)
        return self.name, self.convergence.verdict, far, leak, window

    def _numbers(self) -> Iterator[Block]:
        if self.missing:
            yield note("{missing}.", missing=self.missing)
        if not self.row_fields:
            return
        header = ("quantity", "of", "value", "by head, or why not", "label")
        yield table(header, list(self._rows()), numeric=(2,))
        yield note(
            "TRF, leak, horizon, window: the worst head of several; reach: the one that reaches "
            "farthest, half of the attention on the key; resolution: their mean. "
            "Windows: logits within {logit}, values within {value}; {scope}.",
            scope=SCOPE,
            logit=LOGIT_BOUND,
            value=VALUE_BOUND,
        )
        forms = [f.asymptotics for f in self.receptive_fields if f.asymptotics is not None]
        if forms:
            yield note("As `eps -> 0`, `TRF(eps)` behaves as {form}.", form=Latex(forms[0]))

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        """Quantity, of what, value, the same by head or why there is none, label."""
        for field, named, text in ROWS:
            for found in getattr(self, field):
                yield *named(found), text(found), *_detail(found, map(text, found.heads))
        if (r := self.resolution) is not None:
            name, of = "attention resolution", f"row of {r.length} tokens, scale {r.scale}"
            yield name, of, decimal(r.value), *_detail(r, [decimal(h.value, 3) for h in r.heads])
            label = None if r.limit is None else r.label
            yield name, "limit of long rows", decimal(r.limit), _detail(r, ())[0], label
        if (m := self.layered) is not None:
            of = f"{m.layers} layers, row of {m.length} tokens"
            yield "layered receptive field", of, count(m.tokens), *_detail(m, ())
        if (g := self.forecast) is not None:
            value = None if g.ratio is None else decimal(g.ratio, 4)
            near = f"{len(g.nearest)} nearest trained cases, {'' if g.near else 'not '}near"
            why = near if g.reason is None else str(g.reason)
            yield "perplexity ratio, others", f"{g.trained} to {g.tested}", value, why, g.label
        if self.windowless:
            yield "certified window", "", "none", "the series diverges", Label.THEOREM
        for w in self.windows:
            detail = _detail(w, [count(h.width) for h in w.heads])
            yield "certified window", f"error ≤ {w.error}", count(w.width), *detail


def _in_the_rows_seen(base: Prediction, length: int, tested: Sequence[int]) -> Prediction:
    """Of a bias that is known in rows of `length` keys alone: its numbers in such rows."""
    subject, rows = base.encoding, [n for n in tested if n <= length]
    return dataclasses.replace(
        base,
        row_length=length,
        row_fields=theoretical_receptive_field(subject, SHARES, length=length),
        reaches=(reach(subject, ADVANTAGE, length=length),),
        leaks=tuple(leak(subject, base.trained, n) for n in rows if n > base.trained),
    )


def _of_row(length: int | None) -> str:
    return "whole series" if length is None else f"row of {length} keys"


ROWS: Sequence[tuple[str, Callable[[Any], tuple[str, str]], Callable[[Any], Any]]] = (
    ("receptive_fields", lambda f: (f"TRF({f.eps})", _of_row(None)), field_text),
    ("row_fields", lambda f: (f"TRF({f.eps})", _of_row(f.length)), field_text),
    ("leaks", lambda k: ("leak", f"{k.trained} to {k.tested}"), lambda k: share_text(k.value)),
    ("reaches", lambda a: (f"reach of {a.advantage} nats", _of_row(a.length)), reach_text),
    ("horizons", lambda d: ("dtype horizon", d.dtype), lambda d: count(d.tokens)),
)
"""The fields with several answers: of each the quantity, what it is of, and its text."""


def _detail(found: Answer, heads: Iterable[str]) -> tuple[str, Label | None]:
    """The cells of the heads, or of the reason, and of the label."""
    reason = "" if found.reason is None else str(found.reason)
    return listed([*heads], 4) or reason, found.label


def predict(
    subject: Encoding,
    name: str | None = None,
    *,
    trained: int = 64,
    tested: Sequence[int] = (256, 1024),
    layers: int = 4,
) -> Prediction:
    """Verdict, receptive fields and leak of one encoding.

    Args:
        subject: the encoding.
        name: how to call it; its own name if not given.
        trained: training length in tokens.
        tested: test lengths in tokens.
        layers: of the model whose gradient ERF is predicted.

    >>> from farfield.theory.encodings import encoding
    >>> found = predict(encoding("type1"))
    >>> found.receptive_fields[1].tokens, found.layers, [(x.trained, x.tested) for x in found.leaks]
    (61, 4, [(64, 256), (64, 1024)])
    """
    convergence = check_convergence(subject)
    row_length = max(tested)
    base = Prediction(
        name or subject.name,
        subject,
        convergence,
        beside=BesideRows(name or subject.name, trained),
        trained=trained,
        row_length=row_length,
        layers=layers,
    )
    if subject.seen is not None:
        return _in_the_rows_seen(base, subject.seen.distance + 1, tested)
    if not subject.biases or subject.bca is not None:
        why = "Receptive field and leak are defined for additive biases only"
        return dataclasses.replace(base, missing=why)
    if subject.free:
        wanted = ", ".join(p.name for p in subject.free[:4])
        return dataclasses.replace(base, missing=f"TRF and leak need values for {wanted}")
    fields: tuple[ReceptiveField, ...] = ()
    if convergence.verdict is Verdict.CONVERGES:
        fields = theoretical_receptive_field(subject, SHARES)
    rows = (row_length, *((None,) if fields else ()))
    windows: tuple[Window, ...] = ()
    if not base.windowless:
        windows = tuple(
            certified_window(subject, error, LOGIT_BOUND, VALUE_BOUND) for error in WINDOW_ERRORS
        )
    near = forecast(subject, trained=trained, tested=row_length, layers=layers)
    whole = next((f for f in fields if f.eps == sympy.Rational(BESIDE)), None)
    beside = beside_rows(subject, name, trained=trained, tested=row_length, field=whole, near=near)
    return dataclasses.replace(
        base,
        receptive_fields=fields,
        row_fields=theoretical_receptive_field(subject, SHARES, length=row_length),
        reaches=tuple(reach(subject, ADVANTAGE, length=n) for n in rows),
        leaks=tuple(leak(subject, trained, length) for length in tested),
        horizons=tuple(dtype_horizon(subject, kind) for kind in DTYPES),
        resolution=attention_resolution(subject, trained),
        layered=layered_receptive_field(subject, layers, length=row_length),
        windows=windows,
        forecast=near,
        beside=beside,
    )
