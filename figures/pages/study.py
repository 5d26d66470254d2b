"""The page of a study: the formulas asked about, their place, the measurements, and the
catalogue."""

from __future__ import annotations

import dataclasses
import math
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from farfield.figures.document import (
    Columns,
    Fold,
    Item,
    KeyNumbers,
    Number,
    Section,
    Tiles,
    about,
    page,
    write_page,
)
from farfield.figures.pages import pictures
from farfield.figures.pages.commands import command
from farfield.figures.pages.pictures import named
from farfield.figures.pages.terms import MEASURED, PAPERS, THEORY
from farfield.numerics.leak import Leak
from farfield.numerics.price import Reach, head_prices
from farfield.numerics.receptive_field import ReceptiveField
from farfield.numerics.windows.question import Window
from farfield.theory.answers.answer import Label
from farfield.theory.answers.blocks import (
    Block,
    Curve,
    Facts,
    Formula,
    Ladder,
    Sentence,
    Steps,
    Table,
    note,
    sentence,
    table,
)
from farfield.theory.answers.notation import (
    Latex,
    StyledWord,
    Text,
    as_text,
    expression_line,
    shortened,
    terminal,
    words,
)
from farfield.theory.answers.number import count, decimal, plural
from farfield.theory.answers.writers.svg import power
from farfield.theory.convergence import Convergence, Verdict
from farfield.theory.encodings import CATALOGUE, Encoding
from farfield.validation.results import LAST, WHOLE
from farfield.validation.study.place import PLACE_EPS
from farfield.validation.study.prediction import (
    LOGIT_BOUND,
    ROWS,
    WINDOW_ERRORS,
    Prediction,
)
from farfield.validation.study.study import Study
from farfield.validation.table_cells import field_text, reach_text, share_text


def write_study(s: Study, folder: str | os.PathLike[str]) -> Path:
    """Write `index.html` and `study.json` of a study into a folder; returns the page's path.

    Raises:
        InputError: the folder cannot be written to.
    """
    place = write_page(study_page(s), folder)
    s.save(folder)
    return place


def study_page(s: Study) -> str:
    """The page of a study as HTML text."""
    asked = s.about(asked=True)
    alone = len(asked) == 1
    sections = []
    for e in asked:
        p = e.prediction
        title = words("How far {it} sees", it="it" if alone else terminal(named(p)))
        parts: list[Item] = list(reach(p))
        if not alone:
            drawn = len(set(p.encoding.biases)) > 1  # in the lead it is one line
            first = head(p, drawn)
            match parts:
                case [Columns(told, shown), *others] if not drawn:
                    more = [i for tiles in others if isinstance(tiles, Tiles) for i in tiles.items]
                    first, parts = Columns([*first.left, *told], [*shown, *more]), []
            parts = [first, *parts]
        if parts:
            sections.append(Section(title, parts))
    if s.place is not None:
        sections.append(Section(words("Place among the catalogue"), list(_place(s))))
    sections += measured(s)
    return page(_title(s), list(_lead(s)), sections, {**THEORY, **MEASURED}, [PAPERS])


def measured(s: Study) -> list[Section]:
    """What trained models measured; nothing without them."""
    if not s.trained:
        return []
    return [
        Section(
            words("What trained models lost"),
            [*(b for e in s.trained for b in e.blocks())],
        ),
        Section(words("Measurements"), list(_measurements(s))),
        Section(words("How the models were trained"), list(_settings(s))),
    ]


def _title(s: Study) -> Text:
    found: Text = ()
    for k, e in enumerate(s.about(asked=True)):
        found += words(", " if k else "Study of ") + named(e.prediction)
    return found


def _lead(s: Study) -> Iterator[Item]:
    """The answer and its picture."""
    asked = s.about(asked=True)
    if len(asked) == 1:
        yield head(asked[0].prediction)
        return
    yield s.lead()
    drawn = [
        (terminal(named(e.prediction)), e.prediction.encoding, k)
        for k, e in enumerate(asked)
        if e.prediction.row_fields
    ]
    if drawn:
        told = [e.prediction for e in asked]
        rows = [(terminal(named(p)), verdict_text(p.convergence), *cells(p)) for p in told]
        header = ("encoding", "verdict", "TRF(1/100)", "leak", "window")
        yield Columns(
            [
                table(header, rows, numeric=(2, 3, 4)),
                note(
                    "Leak: beyond {m} tokens in a row of {n}. Window: for an error of 1/100.",
                    m=s.lengths[0],
                    n=s.lengths[-1],
                ),
            ],
            [pictures.kept_share(drawn)],
        )


# -- the head -------------------------------------------------------------------------------------


def head(p: Prediction, drawn: bool = True) -> Columns:
    """An encoding at a glance, below its name: formula, verdict, numbers, and a picture.

    Args:
        p: the predictions for the encoding.
        drawn: whether the share that the nearest tokens keep is drawn.
    """
    name = "The bias" if p.encoding.biases else terminal(named(p))
    found = dataclasses.replace(p.convergence, subject=name)
    said, *others = found.blocks()
    told = named(p) == as_text(p.encoding.formula or "")  # the heading is the formula
    shut = (Steps, Ladder, Table, Formula) if told else (Steps, Ladder, Table)
    kept = [b for b in others if not isinstance(b, shut)]
    left: list[Item] = [
        *p.opening(name),
        said,
        *(b for b in kept if isinstance(b, Formula)),
        *head_numbers(p),
        *(b for b in kept if not isinstance(b, Formula)),
    ]
    heads = p.convergence.heads
    near = sum(h.verdict is Verdict.CONVERGES for h in heads)
    if 0 < near < len(heads):
        left.append(
            note(
                "{far} of {all} heads have no window, so the layer has none. "
                "Models whose other heads stay local can hold their perplexity all the same.",
                far=len(heads) - near,
                all=len(heads),
            )
        )
    if p.missing:
        left.append(note("{missing}.", missing=p.missing))
    if 0 < len(p.encoding.free) <= pictures.MOST:
        values = " ".join(f"--set {q.name}=2" for q in p.encoding.free)
        again = _code(command("study", p.encoding, values))
        left.append(note("For example: {command}.", command=again))
    surrogates = [e.name for e in CATALOGUE.values() if e.stands_for == p.encoding.name]
    if surrogates:
        left.append(
            note(
                "{command} is the study of that surrogate.",
                command=StyledWord(f"farfield study {surrogates[0]}", "code"),
            )
        )
    if not p.row_fields:
        never = p.convergence.windowable.theorem == "bounded-logits"
        drawing = pictures.bounded_share() if never else pictures.settings_share(p)
        return Columns(left, [*([drawing] if drawing else []), *_why(found)])
    shares = pictures.kept_share([(terminal(named(p)), p.encoding, 0)])
    return Columns(left, [shares] * drawn)


def head_numbers(p: Prediction) -> Iterator[Item]:
    """The numbers that the page begins with; none where there is no additive bias."""
    if p.row_fields:
        field = next(iter(p.receptive_fields[1:2]), None)
        window = next(iter(p.windows[-1:]), None)
        mixed = len({h.verdict for h in p.convergence.heads}) > 1
        found = key_numbers(
            p.encoding, field, p.row_fields[1], p.leaks[-1], window, p.reaches[0], mixed=mixed
        )
        yield KeyNumbers(list(found))


def key_numbers(
    e: Encoding,
    field: ReceptiveField | None,
    row: ReceptiveField,
    lost: Leak,
    window: Window | None,
    far: Reach,
    mixed: bool = False,
) -> Iterator[Number]:
    """Receptive field, leak, window and reach, each with the command that computes it.

    Args:
        e: the encoding.
        field: of the whole series; None where that was not asked, since it diverges.
        row: the receptive field in a row.
        lost: the leak beyond the training length.
        window: certified; None where that was not asked, since no head has one.
        far: the reach in a row.
        mixed: whether some heads converge and others do not.
    """
    worst, best = (" (worst head)", " (best head)") if e.num_heads > 1 else ("", "")
    sights = kept = ""
    if mixed:
        nearest = min(row.heads, key=lambda h: math.inf if h.tokens is None else h.tokens)
        least = min((h.value for h in lost.heads if h.value is not None), default=None)
        sights = f"{field_text(nearest)} to {field_text(row)}"
        kept = "" if least is None else f"{share_text(least)} to {share_text(lost.value)}"
    ends = field is not None and field.tokens != math.inf
    whole = f"nearest keys hold 99\u00a0% of the whole{worst}"
    in_row = f"{field_text(row)} in a row of {row.length}{worst}"
    in_heads = f"nearest keys hold 99\u00a0% of a row of {row.length}, by head"
    range_ = ", by head" if kept else worst
    yield Number(
        (about("trf", f"TRF({row.eps})"),),
        as_text(sights or (field_text(field) if field else "infinite")),
        as_text(in_heads if sights else whole if ends else in_row),
        (field or row).label,
        command("trf", e, f"--eps {row.eps}"),
    )
    yield Number(
        (about("leak", "leak"),),
        as_text(kept or share_text(lost.value)),
        as_text(f"of a row of {lost.tested} beyond {lost.trained} trained on{range_}"),
        lost.label,
        command("trf", e, f"--trained {lost.trained} --tested {lost.tested}"),
    )
    again = command("window", e, f"--error {WINDOW_ERRORS[-1]} --logit-bound {LOGIT_BOUND}")
    width = math.inf if window is None else window.width
    said = f"keys for an error of {WINDOW_ERRORS[-1]}, logits within {LOGIT_BOUND}"
    yield Number(
        (about("window", "window"),),
        as_text("none" if width == math.inf else count(width)),
        as_text(f"the series diverges{worst}" if width == math.inf else said),
        window.label if window else "theorem",
        again,
    )
    yield Number(
        (about("reach", "reach"),),
        as_text(reach_text(far)),
        as_text(f"with an advantage of {far.advantage} nats, in a row of {far.length}{best}"),
        far.label,
        command("reach", e, f"--advantage {far.advantage} --length {far.length}"),
    )


def _why(c: Convergence) -> Iterator[Block]:
    """The proof, folded to the step that decides, and its ladder."""
    for b in c.blocks():
        if isinstance(b, Steps) and c.verdict is Verdict.CONDITIONAL:
            yield dataclasses.replace(b, deciding=-1)  # a step decides one case of several
        elif isinstance(b, (Steps, Ladder)):
            yield b


# -- how far it sees ------------------------------------------------------------------------------


def reach(p: Prediction) -> Iterator[Item]:
    """The proof and the numbers, each beside its picture."""
    if not p.row_fields:
        return
    found = dataclasses.replace(p.convergence, subject=p.name)
    proof = [b for b in _why(found) if isinstance(b, Steps)]
    climbed = [b for b in _why(found) if isinstance(b, Ladder)]
    told: list[Item] = [*proof]
    if p.convergence.heads:
        told.append(Fold(words("Each of {n} heads", n=len(p.convergence.heads)), [_by_head(p)]))
    forms = [f.asymptotics for f in p.receptive_fields if f.asymptotics is not None]
    if forms:
        told.append(note("As `eps -> 0`, `TRF(eps)` behaves as {form}.", form=Latex(forms[0])))
    told += [
        *_numbers(p),
        note(
            "Windows: for all inputs whose logits stay within {bound} and values within 1; one "
            "head, one layer, exact arithmetic.",
            bound=LOGIT_BOUND,
        ),
    ]
    drawn = [c for c in (pictures.tail(p), pictures.price(p), pictures.window_curve(p)) if c]
    yield Columns(told, [*climbed, *drawn[:1]])
    if drawn[1:]:
        yield Tiles(drawn[1:])


NUMBERS: Sequence[Mapping[str, Any]] = tomllib.loads(
    (files(__package__) / "numbers.toml").read_text(encoding="utf-8")
)["number"]
VALUES: Mapping[str, Callable[[Any], str | None]] = {
    **{field: text for field, _, text in ROWS},
    "windows": lambda w: count(w.width),
    "resolution": lambda r: decimal(r.value, 3),
    "limit": lambda r: None if r.limit is None else decimal(r.limit, 3),
    "forecast": lambda g: None if g.ratio is None else f"{g.ratio:.3f}",
    "layered": lambda m: count(m.tokens),
}
"""The text of an answer, by its field."""


def _told(
    p: Prediction, by_eps: bool
) -> Iterator[tuple[Text, list[str], list[Any], tuple[Text, Text]]]:
    """Quantity, values, their answers, and the name with the command: a line a field where its
    answers are by eps, else a line an answer."""
    for n in (n for n in NUMBERS if n.get("by_eps", False) is by_eps):
        value, found = VALUES[n.get("value", n["field"])], getattr(p, n["field"])
        every = found if isinstance(found, tuple) else (found,)
        known = [a for a in every if a is not None and value(a) is not None]
        for own in [known] * bool(known) if by_eps else [[a] for a in known]:
            last = own[-1]
            length = getattr(last, "length", None)
            given = {
                "of": f"row of {length} keys" if length else "whole series",
                "row": f" --length {length}" if length else "",
                "bound": LOGIT_BOUND,
                "layers": plural(p.layers, "layer"),
            }
            said, options = (n[k].format(last, **given) for k in ("name", "options"))
            again = command(n["verb"], p.encoding, options.strip())
            values = [value(a) or "" for a in own]
            yield _term(n["term"], said, own), values, own, (as_text(said), _code(again))


def _code(text: str) -> Text:
    return as_text(StyledWord(text, "code"))


def _numbers(p: Prediction) -> Iterator[Item]:
    """Every number with the command that computes it, and why where there is none."""
    eps = [str(f.eps) for f in p.row_fields]
    fields, others = (list(_told(p, by_eps)) for by_eps in (True, False))
    yield table(
        ("tokens, by ε", *eps),
        [(term, *values, *[""] * (len(eps) - len(values))) for term, values, *_ in fields],
        "Certified, unless a line says otherwise",
        numeric=tuple(range(1, len(eps) + 1)),
    )
    yield table(
        ("quantity", "value"),
        [(term, *values) for term, values, *_ in others],
        "Certified, unless a line says otherwise",
        numeric=(1,),
    )
    again = tuple(line[-1] for line in (*fields, *others))
    yield Fold(words("Commands that compute them again"), [Facts(again)])
    answers = [a for *_, found, _ in (*fields, *others) for a in found]
    for why in dict.fromkeys(str(a.reason) for a in answers if a.reason is not None):
        yield note("Infinite, or without a value: {why}.", why=why)


def _term(key: str, name: str, found: Sequence[Any]) -> Text:
    """A quantity, with the weight of its numbers where that is another than the table's."""
    labels = dict.fromkeys(a.label for a in found if a.label not in (None, Label.CERTIFIED))
    marks = (part for label in labels for part in (" ", StyledWord(label, "label")))
    return (about(key, name), *marks)


def _by_head(p: Prediction) -> Table:
    """What each head sees: verdict, receptive fields, leak, prices of distances, reach, window."""
    n, e = p.row_length, p.encoding
    prices = head_prices(pictures.table_of(e, np.arange(n)))
    distances = (p.trained, n - 1)
    whole = [f.heads for f in p.receptive_fields]
    header = (
        "head",
        "bias",
        "series",
        *(f"TRF({f.eps})" for f in p.receptive_fields),
        *(f"TRF({f.eps}) of {n} keys" for f in p.row_fields),
        f"leak to {n}",
        *(f"price of {d}" for d in distances),
        about("reach", "reach"),
        *(about("window", f"window, {w.error}") for w in p.windows),
    )
    rows = [
        (
            h + 1,
            shortened(expression_line(e.biases[h]), 32),
            verdict,
            *(field_text(heads[h]) for heads in whole),
            *(field_text(f.heads[h]) for f in p.row_fields),
            share_text(p.leaks[-1].heads[h].value),
            *(decimal(float(prices[h, d]), 3) for d in distances),
            reach_text(p.reaches[0].heads[h]),
            *(count(w.heads[h].width) for w in p.windows),
        )
        for h, verdict in enumerate(c.verdict for c in p.convergence.heads)
    ]
    return table(
        header,
        rows,
        f"Prices in nats, in a row of {n} keys, computed in float64",
        numeric=(0, *range(3, len(header))),
    )


# -- several encodings ----------------------------------------------------------------------------


def cells(p: Prediction) -> tuple[str, str, str]:
    """The receptive field, the leak and the window of an encoding; empty where it is no bias."""
    if not p.row_fields:
        return "", "", ""
    field = field_text(p.receptive_fields[1]) if p.receptive_fields else "infinite"
    width = count(p.windows[-1].width) if p.windows else "none"
    return field, share_text(p.longest_leak), width


def _place(s: Study) -> Iterator[Item]:
    assert s.place is not None
    _, ranks, said = s.place.blocks()
    title = {e.prediction.name: named(e.prediction) for e in s.entries}
    own: Text = ()
    for k, rank in enumerate(s.place.ranks, 1):
        if rank.asked:
            own += words(
                "{comma}{name} is number {k}", comma=", " if own else "", name=title[rank.name], k=k
            )
    yield sentence(
        "{own} of {count}, ranked by how few tokens hold all but {eps} of the weight.",
        Label.CERTIFIED,
        count=f"{len(s.place.ranks)} biases",
        eps=power(float(PLACE_EPS[-1])),
        own=own,
    )
    yield Tiles([c for c in (pictures.biases(s), pictures.fields(s)) if c])
    yield Fold(words("The whole order, and the tails compared"), [ranks, said])


def verdict_text(c: Convergence) -> Text:
    """The verdict, of how many heads, and the condition on which it depends; where there is no
    series, what another theorem says of windows."""
    if c.verdict is Verdict.OUT_OF_SCOPE and c.windowable.value is not None:
        return as_text(StyledWord("always" if c.windowable.value else "never", "verdict"))
    said = as_text(c.verdict)
    same = sum(h.verdict is c.verdict for h in c.heads)
    if same < len(c.heads):
        said += words(" ({same} of {heads} heads)", same=same, heads=len(c.heads))
    if c.verdict is Verdict.CONDITIONAL:
        said += words(": {condition}", condition=c.condition)
    return said


def _share(x: float | None) -> str:
    return "" if x is None else share_text(x)


# -- measurements ---------------------------------------------------------------------------------


def _measurements(s: Study) -> Iterator[Item]:
    """The measurements, a line an encoding and way to run it."""
    lengths = s.lengths
    shown = pictures.measured(s)
    eps = shown[0].lines("attention")[0]["eps"]
    drawn = [pictures.perplexity_curves(s), pictures.trf_against_erf(s)]
    yield Tiles([c for c in drawn if isinstance(c, Curve)])
    yield table(
        (
            "encoding",
            "verdict",
            f"leak to {lengths[-1]}",
            about("ratio", "ratio"),
            "95 %",
            f"TRF({eps:g}) of the rows",
            about("erf", f"attention ERF({eps:g})"),
            about("layered", "layered TRF"),
            about("gradient", "gradient ERF(0.99)"),
            f"gradient mass in {lengths[0]}",
        ),
        [_measured_row(m) for m in shown],
        "What was measured",
        numeric=tuple(range(2, 10)),
    )
    header = (
        "encoding",
        *(f"last token {n}" for n in lengths),
        *(f"non-overlapping {n}" for n in lengths),
    )
    rows = []
    for m in shown:
        by = {
            (r["protocol"], r["length"]): f"{math.exp(r['nats']):.2f}"
            for protocol in (LAST, WHOLE)
            for r in m.lines(protocol)
        }
        rows.append(
            (
                m.name,
                *(by.get(("last token", n), "") for n in lengths),
                *(by.get(("non-overlapping", n), "") for n in lengths),
            )
        )
    yield Fold(
        words("Perplexities by context length, two protocols"),
        [table(header, rows, numeric=tuple(range(1, len(header))))],
    )
    line = shown[0].found.lines[0]
    yield note(
        "One seed, bytes of {source} (SHA-256 {sha}…). Verdict: theorem; leak and TRF: certified "
        "or float64; layered TRF: approximate, a prediction of the gradient ERF; the rest: "
        "measured.",
        source=line["text"],
        sha=StyledWord(line["text_sha256"], "code"),
    )


def _measured_row(m: pictures.Measured) -> tuple[Any, ...]:
    p, (field, *_), (gradient, *curve) = m.prediction, m.lines("attention"), m.lines("gradient")
    _, ratio, low, high = m.found.lost(m.bca)
    near = next((x["gradient"] for x in curve if x["distance"] == x["trained"]), None)
    bounded = words("{verdict}: bounded support", verdict=Verdict.CONVERGES)
    layered = "" if m.bca or p.layered is None else count(p.layered.tokens)
    return (
        m.name,
        bounded if m.bca else verdict_text(p.convergence),
        "" if m.bca else _share(p.longest_leak),
        f"{ratio:.3f}",
        f"{low:.3f} to {high:.3f}",
        f"{field['trf']:.1f}" if p.encoding.biases and not m.bca else "",
        f"{field['erf']:.1f}",
        layered,
        gradient["erf"],
        _share(near),
    )


def _settings(s: Study) -> Iterator[Sentence]:
    """How the models were trained."""
    yield Sentence(
        words(
            "Preset {preset}: {layers} layers, width {width}, {heads} heads, {steps} steps of "
            "{batch} rows of {length} tokens, AdamW {lr}, seed {seed}.",
            **{k: v for k, v in s.settings.items() if isinstance(v, str | int | float)},
        )
    )
