"""What the numbers of a study mean, seen: the bias against the critical one, the tail against the
share that is left out, the error of a window against its width, the place among the catalogue;
and, of trained models, predictions against measurements."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import sympy

from farfield.numerics.leak import leak
from farfield.numerics.price import head_prices
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.windows.window import window_error
from farfield.theory.algebra.budget import Budget, budget, unhurried
from farfield.theory.answers.blocks import Curve, Line, Weight
from farfield.theory.answers.notation import Text, as_text, shortened, terminal, words
from farfield.theory.answers.number import runs
from farfield.theory.convergence import Verdict
from farfield.theory.encodings import CATALOGUE, Encoding, encoding
from farfield.theory.formula.parameters import interval
from farfield.validation.defaults import EPS
from farfield.validation.study.place import references
from farfield.validation.study.prediction import (
    ADVANTAGE,
    LOGIT_BOUND,
    VALUE_BOUND,
    WINDOW_ERRORS,
    Prediction,
)
from farfield.validation.study.study import Studied, Study
from farfield.validation.table_cells import reach_text

SHARES = tuple(Fraction(k, 10**e) for e in range(1, 6) for k in (5, 2, 1))
HORIZON = 4096
FRAME = 1e7
"""The greatest receptive field that is drawn."""
LONG = 160
"""Characters beyond which a formula is told by its note."""
LEAST = 1e-8
"""The least weight that is drawn."""
WIDTHS = tuple(round(2 ** (k / 2)) for k in (0, *range(2, 29)))
NEAREST = 64
"""Tokens whose share is drawn as the text grows."""
LENGTHS = tuple(round(NEAREST * 10 ** (k / 10)) for k in (*range(25), *range(27, 73, 3)))
"""Of that text; fewer where it is long, since shares change slowly there."""
MOST = 4
"""The most parameters of an encoding that is drawn at some values of them."""
SHORT = 20_000
"""The longest text whose keys are summed one by one."""
GREY = (("ALiBi 1/64", "-n/64"), ("no bias", "0"))
"""Biases that everyone knows, drawn behind others."""


def name_of(e: Encoding) -> Text:
    """What an encoding is called: its formula, where it has no other name."""
    own = e.source == encoding("0").source
    if own and e.formula is not None and len(str(e.formula)) <= LONG:
        return as_text(e.formula)
    return as_text((e.title or e.name).replace(" -", " −"))


def named(p: Prediction) -> Text:
    """What an encoding is called in a study, where one may stand in several variants."""
    return name_of(p.encoding) if p.name == p.encoding.name else as_text(p.name)


def _name(p: Prediction) -> str:
    return shortened(terminal(named(p)), 40)


# -- one encoding ---------------------------------------------------------------------------------


def table_of(e: Encoding, distances: np.ndarray) -> np.ndarray:
    """The biases at some thousands of distances, in float64, also where no time is left."""
    with unhurried():
        return e.bias(distances)


def weights(subject: Encoding, name: str, last: float = HORIZON, **look: Any) -> Iterator[Line]:
    """exp(p(n) - p(0)) by n + 1 up to the last n; of several heads the one that falls slowest."""
    n = np.unique(np.geomspace(1, last, 120).astype(int))
    rows = table_of(subject, np.concatenate([[0], n]))
    row = rows[int(np.argmax(rows[:, -1] - rows[:, 0]))]
    values = np.exp(np.clip(row[1:] - row[0], -745, 80))
    kept = int(np.flatnonzero(values > LEAST / 100)[-1]) + 2 if (values > LEAST / 100).any() else 1
    x, y = n[:kept] + 1.0, np.maximum(values[:kept], LEAST / 1000)
    yield Line(name, tuple(x.tolist()), tuple(y.tolist()), **look)


def against_critical(shown: Sequence[tuple[str, Encoding]]) -> Curve:
    """The weight of the prior against the critical one, 1/(n + 1).

    Args:
        shown: names and encodings, every parameter with a value.
    """
    lines = [
        line
        for k, (name, e) in enumerate(shown)
        for line in weights(e, shortened(name, 40), colour=k, weight=Weight.STRONG)
    ]
    asked = {e.name for _, e in shown}
    exact = any(np.allclose(np.array(line.y) * line.x, 1) for line in lines)
    for title, name, head in references():
        if CATALOGUE[name].baseline and name not in asked:
            lines += weights(head, title, weight=Weight.CONTEXT)
    x = (2.0, HORIZON + 1.0)
    name = "exactly critical" if exact else "critical 1/n"
    lines.append(Line(name, x, (1 / x[0], 1 / x[1]), "ink", 1))
    several = any(e.num_heads > 1 for _, e in shown)
    return Curve(
        "A curve that stays clearly below the dashed line converges; near it, the proof decides. "
        "Drawn is the weight of a token at distance n, relative to the current token."
        + several
        * " Of several heads the one that falls slowest.",
        "n + 1 (tokens)",
        "exp(p(n) − p(0))",
        tuple(lines),
        True,
        True,
        frame=(LEAST, max(2.0, *(max(line.y) for line in lines))),
    )


def kept_share(shown: Sequence[tuple[str, Encoding, int | str]]) -> Curve:
    """The share of the mass that the nearest 64 tokens keep as the text grows.

    Args:
        shown: names and encodings, every parameter with a value, each with its colour: a place in
            the palette or a verdict.
    """
    several = any(e.num_heads > 1 for _, e, _ in shown)
    alone = len(shown) == 1 and len(set(shown[0][1].biases)) > 1
    if alone:
        shown, several = list(_each_head(shown[0][1], shown[0][2])), False
    own = {e.biases for _, e, _ in shown}
    with unhurried():
        grey = [(name, encoding(formula), None) for name, formula in GREY]
    known = [(name, e, None) for name, e, _ in grey if e.biases not in own]
    lines = []
    for name, e, colour in (*known, *shown):
        if len(points := _kept(e, budget())) > 1:
            x, y = zip(*points, strict=True)
            weight = Weight.CONTEXT if colour is None else Weight.PLAIN
            lines.append(Line(shortened(name, 40), x, y, colour, weight=weight))
    least = min((line.y[-1] for line in lines if line.weight is Weight.PLAIN), default=0)
    lines = [
        replace(line, weight=Weight.STRONG)
        if line.weight is Weight.PLAIN and (not alone or line.y[-1] == least)
        else line
        for line in lines
    ]
    return Curve(
        f"The share of the attention that the nearest {NEAREST} tokens keep as the text grows, all "
        "contents alike. It levels off above 0: a window is enough. It falls to 0: none is."
        + several * " Of several heads the one that keeps least."
        + alone * " Bold: the head that keeps least.",
        "length of the text (tokens)",
        f"share of the nearest {NEAREST}",
        tuple(lines),
        True,
        frame=(0.0, 1.0),
    )


def _each_head(e: Encoding, colour: int | str) -> Iterator[tuple[str, Encoding, int | str]]:
    """Every bias of an encoding with the heads that have it."""
    for bias in dict.fromkeys(e.biases):
        heads = [h for h, own in enumerate(e.biases, 1) if own == bias]
        noun = "head" if len(heads) == 1 else "heads"
        with unhurried():
            alone = encoding(bias)
        yield f"{noun} {runs(heads)}", alone, colour


@lru_cache(maxsize=64)
def _kept(e: Encoding, limits: Budget) -> tuple[tuple[float, float], ...]:
    """The length of a text, and the share of its mass that the nearest tokens keep: summed in
    float64 while the text is short, certified from there on, as far as the limits allow."""
    short = [n for n in LENGTHS if n <= SHORT]
    biases = table_of(e, np.arange(short[-1]))
    masses = np.exp(biases - biases.max(axis=1, keepdims=True)).cumsum(axis=1)
    shares = (masses[:, NEAREST - 1, None] / masses[:, np.array(short) - 1]).min(axis=0)
    lost = [(n, leak(e, NEAREST, n).value) for n in LENGTHS[len(short) :]]
    points = [*zip(short, shares, strict=True), *((n, 1 - x) for n, x in lost if x is not None)]
    return tuple((float(n), float(share)) for n, share in points)


def bounded_share() -> Curve:
    """The most that windows can keep of the attention while logits stay within 1."""
    lines, windows = [], (64, 1024, 16384)
    for width in windows:
        n = np.geomspace(width, LENGTHS[-1], 160)
        kept = width / (width + (n - width) * math.exp(-2 * LOGIT_BOUND))
        points = (float(NEAREST), *n.tolist()), (1.0, *kept.tolist())
        lines.append(Line(f"window of {width:,}", *points, "diverges", 0, Weight.STRONG, False))
    return Curve(
        "A wider window loses later, but it loses: its share of the attention falls to 0, so no "
        "window is ever enough. Drawn is the most that a window can keep, for every input whose "
        f"logits stay within {LOGIT_BOUND}.",
        "length of the text (tokens)",
        "share that the window keeps, at most",
        tuple(lines),
        True,
        posts=tuple((f"window of {width:,}", float(width)) for width in windows),
        frame=(0.0, 1.0),
    )


def settings_share(p: Prediction) -> Curve | None:
    """The share that the nearest tokens keep at some values of the parameter that decides, the
    others at 1; None where an encoding has no parameters, or very many."""
    e, c = p.encoding, p.convergence
    if not e.biases or not 0 < len(e.free) <= MOST:
        return None
    asked = {str(s) for s in getattr(c.condition, "free_symbols", ())}
    moved = next((q for q in e.free if q.name in asked), e.free[0])
    shown: list[tuple[str, Encoding, int | str]] = []
    for value in (Fraction(k, 2) for k in (-2, 0, 1, 2, 4)):
        if (exact := sympy.Rational(value)) in interval(moved.domain):
            values: dict[str, Any] = {q.name: "1" for q in e.free} | {moved.name: str(value)}
            verdict = "converges" if c.at(**values) else "diverges"
            name = terminal(words("{name} = {value}", name=sympy.Symbol(moved.name), value=exact))
            put = {q.symbol: sympy.Rational(values[q.name]) for q in e.free}
            fixed = tuple(b.xreplace(put) for b in e.biases)
            shown.append((name, replace(e, biases=fixed), verdict))
    drawn, others = kept_share(shown), len(e.free) > 1
    return replace(drawn, title=drawn.title + " All other parameters are 1." * others)


def _fields(subject: Encoding) -> Iterator[tuple[float, float]]:
    """(TRF(eps), eps) from the largest eps on, up to the first beyond the frame."""
    for eps in SHARES:
        tokens = theoretical_receptive_field(subject, eps).tokens
        if tokens is None or tokens == math.inf:
            return
        yield float(min(tokens, 10**12)), float(eps)
        if tokens > FRAME:
            return


def tail(p: Prediction) -> Curve | None:
    """The share left outside by the number of nearest keys; None where nothing is left to draw."""
    points = [(max(1.0, x), y) for x, y in _fields(p.encoding)]
    if len(points) < 2:
        return None
    x, y = zip(*points, strict=True)
    named = [
        (f"TRF({f.eps}) = {f.tokens}", float(f.tokens))
        for f in p.receptive_fields
        if f.tokens is not None and 1 <= f.tokens < FRAME
    ]
    return Curve(
        "The share of the mass that the nearest keys leave outside; where it falls to ε stands "
        "TRF(ε), certified at each point" + (", worst head." if p.encoding.num_heads > 1 else "."),
        "nearest keys (tokens)",
        "share left outside, ε",
        (Line("", x, y, 0, weight=Weight.STRONG),),
        True,
        True,
        marks=tuple((f"ε = {e}", float(Fraction(e))) for e in EPS),
        posts=tuple(named),
    )


def price(p: Prediction) -> Curve | None:
    """The price of each distance of a row, with what an advantage reaches and the receptive field
    on the same axis."""
    prices = head_prices(table_of(p.encoding, np.arange(p.row_length))).min(axis=0)
    n = np.unique(np.concatenate([[0], np.geomspace(1, p.row_length - 1, 150).astype(int)]))
    kept = n[np.isfinite(prices[n])]
    if len(kept) < 2:
        return None
    posts = [
        (f"reach, {reach_text(r)}", r.farthest + 1.0)
        for r in p.reaches[:1]
        if r.farthest is not None
    ]
    posts += [
        (f"TRF({f.eps}) = {f.tokens}", float(f.tokens))
        for f in p.row_fields[1:2]
        if f.tokens is not None
    ]
    line = Line(
        "", tuple((kept + 1.0).tolist()), tuple(prices[kept].tolist()), 0, weight=Weight.STRONG
    )
    return Curve(
        f"The price of a distance in a row of {p.row_length} keys: the logit advantage that half "
        "of the attention on its key costs. What lies under the line of an advantage can still be "
        "used; what lies beyond the receptive field can hardly disturb."
        + (" Cheapest head." if p.encoding.num_heads > 1 else ""),
        "n + 1 (tokens)",
        "price (nats)",
        (line,),
        True,
        marks=((f"advantage {ADVANTAGE}", float(ADVANTAGE)),),
        posts=tuple(posts),
        frame=(min(0.0, *line.y), 1.1 * max(ADVANTAGE, *line.y)),
    )


def window_curve(p: Prediction) -> Curve | None:
    """The worst-case error of a window by its width; None where there is no window."""
    if not any(w.width is not None and math.isfinite(w.width) for w in p.windows):
        return None
    points = []
    for width in WIDTHS:
        value = window_error(p.encoding, width, LOGIT_BOUND, VALUE_BOUND).value
        if value is None or value < 1e-6:
            break
        points.append((float(width), float(value)))
    if len(points) < 2:
        return None
    x, y = zip(*points, strict=True)
    posts = tuple(
        (f"{w.width} keys", float(w.width))
        for w in p.windows
        if w.width is not None and w.width <= 2 * WIDTHS[-1]
    )
    return Curve(
        "The greatest error of the output that any input within the bounds can have when the "
        "nearest keys alone are kept, certified; the windows are the least that keep the budgets.",
        "window (keys)",
        "error of the output",
        (Line("", x, y, 0, weight=Weight.STRONG),),
        True,
        True,
        posts=posts,
        marks=tuple((f"error {e}", float(Fraction(e))) for e in WINDOW_ERRORS),
    )


# -- among the catalogue --------------------------------------------------------------------------


def _others(s: Study) -> Iterator[tuple[str, Encoding, bool]]:
    """The reference heads of the catalogue that were not asked about, and whether each is next to
    one that was in the order of the receptive fields: these alone are named beside their lines."""
    own = {e.prediction.encoding.biases for e in s.about(asked=True)}
    ranks = s.place.ranks if s.place else ()
    near = {r.name for pair in pairwise(ranks) for r in pair if any(x.asked for x in pair)}
    for title, _, subject in references():
        if subject.biases not in own:
            yield title, subject, title in near


def biases(s: Study) -> Curve:
    """Those asked about among the reference heads of the catalogue."""
    lines = [
        line
        for k, e in enumerate(s.about(asked=True))
        if e.prediction.row_fields
        for line in weights(
            e.prediction.encoding, _name(e.prediction), colour=k, weight=Weight.STRONG
        )
    ]
    decided = {r.name: str(r.verdict) for r in s.place.ranks} if s.place else {}
    last = max((line.x[-1] - 1 for line in lines), default=HORIZON)
    for title, subject, told in _others(s):
        look = {"colour": decided.get(title), "told": told, "weight": Weight.CONTEXT}
        lines += weights(subject, title, last, **look)
    return Curve(
        "Your bias (bold) among the catalogue, next to its neighbours in rank. Green: the series "
        "converges; orange: it diverges. A line under the pointer tells its name.",
        "n + 1 (tokens)",
        "exp(p(n) − p(0))",
        tuple(lines),
        True,
        True,
        frame=(LEAST, 2.0),
    )


def fields(s: Study) -> Curve | None:
    """Receptive fields by eps; None where none is known, as where no time was left."""
    lines: list[tuple[str, Encoding, dict[str, Any]]] = []
    for k, e in enumerate(s.about(asked=True)):
        p = e.prediction
        if p.row_fields and p.convergence.verdict is Verdict.CONVERGES:
            lines.append((_name(p), p.encoding, {"colour": k, "weight": Weight.STRONG}))
    lines += [
        (title, subject, {"weight": Weight.CONTEXT, "told": told})
        for title, subject, told in _others(s)
    ]
    drawn = []
    for name, subject, look in lines:
        if points := [(eps, max(0.7, tokens)) for tokens, eps in _fields(subject)]:
            x, y = zip(*points, strict=True)
            drawn.append(Line(name, x, y, **look))
    if not drawn:
        return None
    return Curve(
        "TRF(ε) of the whole series, certified at 15 values of ε, worst head; only encodings whose "
        "series converges. The order at one ε need not be that at another.",
        "ε, share of the mass left outside",
        "TRF(ε) in tokens",
        tuple(drawn),
        True,
        True,
        frame=(0.7, FRAME),
        falls=True,
    )


# -- of trained models ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """One measurement of a study: its encoding, whether attention is blockwise, its place among
    them, and whether it was asked about."""

    prediction: Prediction
    bca: bool
    found: Studied
    place: int
    asked: bool

    def lines(self, protocol: str) -> list[Mapping[str, Any]]:
        """What a protocol measured."""
        return self.found.measured(protocol, self.bca)

    @property
    def name(self) -> str:
        """As a legend has it."""
        return _name(self.prediction) + " + BCA" * self.bca

    @property
    def look(self) -> dict[str, Any]:
        """Blue where it was asked about, else the colour of the verdict; a dash by its place."""
        verdict = Verdict.CONVERGES if self.bca else self.prediction.convergence.verdict
        return {"colour": 0 if self.asked else str(verdict), "dash": self.place}


def measured(s: Study) -> Sequence[Measured]:
    """The measurements, in the order of the study."""
    every = [
        (e.prediction, bca, e)
        for e in s.entries
        for bca in (False, True)
        if e.measured("gradient", bca)
    ]
    return [Measured(*m, k, m[0].name in s.asked) for k, m in enumerate(every)]


def perplexity_curves(s: Study, protocol: str = "last token") -> Curve:
    """Perplexity over that at the training length, by context length, one curve an encoding."""
    lines = []
    for m in measured(s):
        rows = sorted((p["length"], p["ratio"]) for p in m.lines(protocol))
        x, y = zip(*rows, strict=True)
        lines.append(Line(m.name, tuple(map(float, x)), y, **m.look))
    return Curve(
        "Last-token perplexity relative to the training length. Flat is extrapolation; one seed.",
        "context length (tokens)",
        f"perplexity / perplexity at {s.settings['length']}",
        tuple(lines),
        True,
        True,
        posts=(("trained on", float(s.settings["length"])),),
    )


def trf_against_erf(s: Study) -> Curve | None:
    """Finite-row TRF of the bias against the attention ERF of the trained model, each threshold."""
    lines = []
    rows: list[Mapping[str, Any]] = []
    for m in measured(s):
        if not m.bca and m.prediction.encoding.biases:
            rows = m.lines("attention")
            x, y = (tuple(float(f[k]) for f in rows) for k in ("trf", "erf"))
            lines.append(Line(m.name, x, y, **m.look))
    if not lines:
        return None
    values = [v for line in lines for v in (*line.x, *line.y) if v > 0]
    ends = (min(values), max(values))
    lines.append(Line("equal", ends, ends, weight=Weight.CONTEXT))
    return Curve(
        "Receptive fields of the bias alone and of the trained model's attention, at ε = "
        f"{', '.join(format(f['eps'], 'g') for f in rows)} (joined), rows of "
        f"{rows[0]['length']} tokens, means over heads. On the grey line they agree.",
        "finite-row TRF (tokens), from the formula",
        "attention ERF (tokens), measured",
        tuple(lines),
        True,
        True,
    )
