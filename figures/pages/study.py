"""The page of a study: what was asked about, its place, what was measured, and the catalogue."""

from __future__ import annotations

import dataclasses
import os
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

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
from farfield.figures.pages.pictures import LONG, named
from farfield.figures.pages.terms import MEASURED, PAPERS, THEORY, definitions
from farfield.theory.answers.answer import Label
from farfield.theory.answers.blocks import (
    Block,
    Curve,
    Ladder,
    Note,
    Sentence,
    Steps,
    Table,
    note,
    sentence,
    table,
)
from farfield.theory.answers.notation import Latex, Term, Text, as_text, terminal, words
from farfield.theory.answers.wording import count, decimal, listed, plural
from farfield.theory.verdicts import Convergence, Verdict
from farfield.validation.short import field_text, reach_text, share_text
from farfield.validation.study.findings import findings, last_token_ratio
from farfield.validation.study.place import PLACE_EPS
from farfield.validation.study.prediction import ADVANTAGE, LOGIT_BOUND, Prediction
from farfield.validation.study.study import Study

HEADS = 4
"""Values of heads beyond which their ends are shown."""


def write_study(s: Study, folder: str | os.PathLike[str]) -> Path:
    """Write `index.html` and `study.json` of a study into a folder; returns the page's path.

    Raises:
        InputError: the folder cannot be written to.
    """
    place = write_page(study_page(s), folder)
    s.save(folder)
    return place


def study_page(s: Study, chapters: Sequence[Section] = ()) -> str:
    """The page of a study as HTML text.

    Args:
        s: the study.
        chapters: what stands between its proofs and the definitions.
    """
    asked, others = s.about(asked=True), s.about(asked=False)
    alone = len(asked) == 1
    sections = []
    for e in asked:
        p = e.prediction
        title = words("How far it sees") if alone else named(p)
        parts: list[Item] = [] if alone else [head(p)]
        parts += reach(p)
        if parts:
            sections.append(Section(title, parts))
    if s.place is not None:
        sections.append(Section(words("Place among the catalogue"), list(_place(s))))
    if s.trained:
        came_true = [f.blocks()[0] for f in findings(s.entries)]
        sections += [
            Section(words("What the theory predicted, and what came true"), came_true),
            Section(words("Measurements"), list(_measurements(s))),
        ]
    if others:
        sections.append(Section(words("Theory: verdicts and receptive fields"), list(_theory(s))))
        proofs = [_proof(e.prediction) for e in others]
        sections.append(Section(words("Proofs"), proofs))
    terms = {**THEORY, **MEASURED} if s.trained else THEORY
    defined: list[Item] = [definitions(terms), *_settings(s), Note(PAPERS)]
    sections += [*chapters, Section(words("What the words mean"), defined)]
    return page(_title(s), list(_lead(s)), sections, terms)


def _title(s: Study) -> Text:
    asked = s.about(asked=True)
    if not asked:
        return words("{title}", title=s.title)
    found: Text = ()
    for k, e in enumerate(asked):
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
        rows = [_summary(e.prediction) for e in asked]
        header = ("encoding", "verdict", "TRF(1/100)", "leak", "window")
        yield Columns(
            [
                table(header, rows, numeric=(2, 3, 4)),
                note(
                    "Leak: beyond {m} tokens in a row of {n}. Window: for an error of 1/100.",
                    m=s.lengths[0],
                    n=s.lengths[-1],
                ),
                *_without_numbers(s),
            ],
            [pictures.kept_share(drawn)],
        )
    elif not asked and any(e.prediction.row_fields for e in s.entries):
        yield Columns(
            [
                _tally(s),
                note(
                    "A window can replace full attention in one layer if and only if the series "
                    "converges. That says nothing about perplexity."
                ),
            ],
            [pictures.catalogue(s)],
        )


# -- the head -------------------------------------------------------------------------------------


def head(p: Prediction) -> Item:
    """An encoding at a glance: formula, verdict, three numbers, and the bias as a picture."""
    found = dataclasses.replace(p.convergence, subject=terminal(named(p)))
    said, *others = found.blocks()
    kept = [b for b in others if not isinstance(b, (Steps, Ladder, Table))]
    left: list[Item] = [
        *p.opening(terminal(named(p))),
        said,
        *kept[:1],
        *head_numbers(p),
        *kept[1:],
    ]
    if p.missing:
        left.append(note("{missing}.", missing=p.missing))
    if not p.row_fields:
        return Columns(left, list(_why(found)))
    return Columns(left, [pictures.kept_share([(terminal(named(p)), p.encoding, 0)])])


def head_numbers(p: Prediction) -> Iterator[Item]:
    """The numbers that the page begins with; none where there is no additive bias."""
    if not p.row_fields:
        return
    field = next(iter(p.receptive_fields[1:2]), None)
    own, row = p.encoding, p.row_fields[1]
    worst = " (worst head)" if own.num_heads > 1 else ""
    yield KeyNumbers(
        [
            Number(
                (about("trf", f"TRF({row.eps})"),),
                as_text("infinite" if field is None else field_text(field)),
                words("nearest keys hold 99\u00a0% of the whole{worst}", worst=worst)
                if field is not None
                else words(
                    "{row} in a row of {n}{worst}", row=field_text(row), n=p.row_length, worst=worst
                ),
                row.label if field is None else field.label,
                command("trf", own, f"--eps {row.eps}"),
            ),
            Number(
                (about("leak", "leak"),),
                as_text(share_text(p.longest_leak)),
                words(
                    "of a row of {n} beyond {m} trained on{worst}",
                    n=p.row_length,
                    m=p.trained,
                    worst=worst,
                ),
                p.leaks[-1].label,
                command("leak", own, f"--trained {p.trained} --evaluated {p.row_length}"),
            ),
            _window_number(p),
            Number(
                (about("reach", "reach"),),
                as_text(reach_text(p.reaches[0])),
                words(
                    "with an advantage of {g} nats, in a row of {n}{best}",
                    g=ADVANTAGE,
                    n=p.row_length,
                    best=" (best head)" if worst else "",
                ),
                p.reaches[0].label,
                command("reach", own, f"--advantage {ADVANTAGE} --length {p.row_length}"),
            ),
        ]
    )


def _window_number(p: Prediction) -> Number:
    name = (about("window", "window"),)
    if not p.windows:
        again = command("window", p.encoding, f"--error 1/100 --logit-bound {LOGIT_BOUND}")
        return Number(name, as_text("none"), words("the series diverges"), "theorem", again)
    w = p.windows[-1]
    return Number(
        name,
        as_text(count(w.width)),
        words(
            "keys for an error of {error}, logits within {bound}",
            error=str(w.error),
            bound=LOGIT_BOUND,
        ),
        w.label,
        command("window", p.encoding, f"--error {w.error} --logit-bound {LOGIT_BOUND}"),
    )


def _why(c: Convergence) -> Iterator[Block]:
    """The proof, folded to the step that decides, and its ladder."""
    yield from (b for b in c.blocks() if isinstance(b, (Steps, Ladder)))


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
        rows = [b for b in found.blocks() if isinstance(b, Table)]
        told.append(Fold(words("Each of {n} heads", n=len(p.convergence.heads)), rows))
    forms = [f.asymptotics for f in p.receptive_fields if f.asymptotics is not None]
    if forms:
        told.append(note("As `eps -> 0`, `TRF(eps)` behaves as {form}.", form=Latex(forms[0])))
    told += [
        _numbers(p),
        note(
            "Windows: for all inputs whose logits stay within {bound} and values within 1; one "
            "head, one layer, exact arithmetic.",
            bound=LOGIT_BOUND,
        ),
    ]
    curves = (pictures.tail(p), pictures.price(p), pictures.window_curve(p))
    yield Columns(told, [*climbed, *(c for c in curves if c is not None)])


def _numbers(p: Prediction) -> Table:
    """Every number with the command that computes it; the heads' own where there are several."""
    rows = list(_rows(p))
    extra = ("by head, or why not",) if any(r[4] for r in rows) else ()
    return table(
        ("quantity", "of", "value", *extra, "weight"),
        [
            (about(key, name), of, value, *((detail,) if extra else ()), _weight(label, again))
            for key, name, of, value, detail, label, again in rows
        ],
        numeric=(2,),
    )


def _weight(label: str | None, again: str) -> Text:
    shown = ((label, "label"), (again, "command"))
    return tuple(Term(word, kind) for word, kind in shown if word)


def _rows(p: Prediction) -> Iterator[tuple[str, str, str, str, str, Any, str]]:
    """Term, quantity, of what, value, the same by head or why there is none, label, command."""
    own = p.encoding

    def detail(found: Any, heads: Sequence[str]) -> tuple[str, Any]:
        why = "" if found.reason is None else str(found.reason)
        return listed(heads, HEADS) or why, found.label

    for f in p.receptive_fields:
        yield (
            "trf",
            f"TRF({f.eps})",
            "whole series",
            field_text(f),
            *detail(f, [field_text(h) for h in f.heads]),
            command("trf", own, f"--eps {f.eps}"),
        )
    for f in p.row_fields:
        yield (
            "trf",
            f"TRF({f.eps})",
            f"row of {p.row_length} keys",
            field_text(f),
            *detail(f, [field_text(h) for h in f.heads]),
            command("trf", own, f"--eps {f.eps} --length {p.row_length}"),
        )
    for w in p.windows:
        yield (
            "window",
            "window",
            f"error ≤ {w.error}",
            count(w.width),
            *detail(w, [count(h.width) for h in w.heads]),
            command("window", own, f"--error {w.error} --logit-bound {LOGIT_BOUND}"),
        )
    for k in p.leaks:
        yield (
            "leak",
            "leak",
            f"{k.trained} to {k.evaluated}",
            share_text(k.value),
            *detail(k, [share_text(h.value) for h in k.heads]),
            command("leak", own, f"--trained {k.trained} --evaluated {k.evaluated}"),
        )
    for a in p.reaches:
        length = "" if a.length is None else f" --length {a.length}"
        yield (
            "reach",
            f"reach of {a.advantage} nats",
            "whole series" if a.length is None else f"row of {a.length} keys",
            reach_text(a),
            *detail(a, [reach_text(h) for h in a.heads]),
            command("reach", own, f"--advantage {a.advantage}{length}"),
        )
    for d in p.horizons:
        yield (
            "horizon",
            "dtype horizon",
            d.dtype,
            count(d.tokens),
            *detail(d, [count(h.tokens) for h in d.heads]),
            command("leak", own, f"--dtype {d.dtype}"),
        )
    if (r := p.resolution) is not None:
        yield (
            "resolution",
            "attention resolution",
            f"row of {r.length} tokens",
            decimal(r.value),
            *detail(r, [decimal(h.value, 3) for h in r.heads]),
            command("resolution", own, f"--length {r.length}"),
        )
        yield (
            "resolution",
            "attention resolution",
            "limit of long rows",
            decimal(r.limit),
            "" if r.reason is None else str(r.reason),
            None if r.limit is None else r.label,
            command("resolution", own),
        )
    if (g := p.forecast) is not None and g.ratio is not None:
        yield (
            "forecast",
            "ratio of perplexity",
            f"{g.trained} to {g.tested}",
            f"{g.ratio:.3f}",
            "",
            g.label,
            command("forecast", own, f"--trained {g.trained} --tested {g.tested}"),
        )
    if (m := p.layered) is not None:
        yield (
            "layered",
            "layered receptive field",
            plural(m.layers, "layer"),
            count(m.tokens),
            *detail(m, []),
            command("trf", own, f"--layers {m.layers} --length {m.length}"),
        )


# -- several encodings ----------------------------------------------------------------------------


def _summary(p: Prediction) -> tuple[Any, ...]:
    field = next(iter(p.receptive_fields[1:2]), None)
    return (
        named(p),
        _verdict(p.convergence),
        field_text(field) if field else "infinite" if p.row_fields else "",
        _share(p.longest_leak),
        count(p.windows[-1].width) if p.windows else "none" if p.row_fields else "",
    )


def _without_numbers(s: Study) -> Iterator[Item]:
    """One line for those that have none."""
    why: dict[str, list[str]] = {}
    for e in s.entries:
        if e.prediction.missing:
            why.setdefault(e.prediction.missing, []).append(terminal(named(e.prediction)))
    for reason, names in why.items():
        yield note("{reason}: {names}.", reason=reason, names=listed(names, 30))


def _tally(s: Study) -> Table:
    """Which encodings have which verdict."""
    by: dict[Verdict, list[str]] = {}
    for e in s.entries:
        by.setdefault(e.prediction.convergence.verdict, []).append(terminal(named(e.prediction)))
    rows = [(v, len(by[v]), ", ".join(by[v])) for v in Verdict if v in by]
    return table(("verdict", "encodings", "which"), rows, numeric=(1,))


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
        "Among {count} by the number of keys that hold all but {eps}, the fewest first, {own}.",
        Label.CERTIFIED,
        count=f"{len(s.place.ranks)} biases",
        eps=PLACE_EPS[-1],
        own=own,
    )
    yield Tiles([pictures.biases(s), pictures.fields(s)])
    yield Fold(words("The whole order, and the tails compared"), [ranks, said])


def _theory(s: Study) -> Iterator[Item]:
    """Verdicts and receptive fields, a line an encoding; those without numbers in one line."""
    entries = [e.prediction for e in s.entries]
    numbers = [p for p in entries if p.row_fields]
    if numbers:
        first = numbers[0]
        header = (
            "encoding",
            "bias",
            "verdict",
            "TRF(1/100)",
            f"in a row of {first.row_length}",
            f"leak to {first.row_length}",
            "perplexity, forecast",
        )
        rows = [
            (
                named(p),
                "" if named(p) == _formula(p) else _formula(p),
                _verdict(p.convergence),
                field_text(p.receptive_fields[1]) if p.receptive_fields else "infinite",
                field_text(p.row_fields[1]),
                _share(p.longest_leak),
                _ratio(p),
            )
            for p in numbers
        ]
        yield table(header, rows, numeric=(3, 4, 5, 6))
        yield note(
            "Perplexity, forecast: its expected ratio from {m} to {n} tokens, from trained models; "
            "empty where they do not reach.",
            m=first.trained,
            n=first.row_length,
        )
        more = [
            (
                named(p),
                *([field_text(f) for f in p.receptive_fields] or ["infinite"] * 3),
                *(field_text(f) for f in p.row_fields),
                *(_share(k.value) for k in p.leaks),
            )
            for p in numbers
        ]
        every = (
            "encoding",
            *(f"TRF({f.eps})" for f in first.row_fields),
            *(f"TRF({f.eps}) of a row" for f in first.row_fields),
            *(f"leak to {k.evaluated}" for k in first.leaks),
        )
        yield Fold(
            words("At every ε and length"),
            [table(every, more, numeric=tuple(range(1, len(every))))],
        )
    rest = [(named(p), _verdict(p.convergence)) for p in entries if not p.row_fields]
    if rest:
        yield Fold(
            words("{k} without receptive fields", k=len(rest)),
            [table(("encoding", "verdict"), rest)],
        )
        yield from _without_numbers(s)


def _ratio(p: Prediction) -> str:
    """The forecast ratio of perplexity."""
    ratio = None if p.forecast is None else p.forecast.ratio
    return "" if ratio is None else f"{ratio:.3f}"


def _proof(p: Prediction) -> Fold:
    title = (*named(p), *words(": "), *_verdict(p.convergence))
    return Fold(title, p.convergence.blocks(), p.convergence.label)


def _verdict(c: Convergence) -> Text:
    """The verdict, of how many heads, and the condition on which it depends."""
    said = as_text(c.verdict)
    same = sum(h.verdict is c.verdict for h in c.heads)
    if same < len(c.heads):
        said += words(" ({same} of {heads} heads)", same=same, heads=len(c.heads))
    if c.verdict is Verdict.CONDITIONAL:
        said += words(": {condition}", condition=c.condition)
    return said


def _formula(p: Prediction) -> Text:
    formula = p.encoding.formula
    if formula is None:
        return as_text(str(p.encoding.mechanism).replace("_", " "))
    if len(str(formula)) > LONG:
        note = p.encoding.note or "a long formula"
        return as_text(textwrap.shorten(note, 60, placeholder=" …"))
    return as_text(formula)


def _share(x: float | None) -> str:
    return "" if x is None else share_text(x)


# -- measurements ---------------------------------------------------------------------------------


def _measurements(s: Study) -> Iterator[Item]:
    """What was measured, a line an encoding and way to run it."""
    lengths = s.lengths
    shown = pictures.measured(s)
    eps = shown[0].numbers["attention"][0]["eps"]
    drawn = [pictures.perplexity_curves(s), pictures.trf_against_erf(s), *pictures.predictors(s)]
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
            (r["protocol"], r["length"]): f"{r['perplexity']:.2f}" for r in m.numbers["perplexity"]
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
    corpus = s.corpus or {}
    yield note(
        "One seed, bytes of {source} (SHA-256 {sha}…). Verdict: theorem; leak and TRF: certified "
        "or float64; layered TRF: approximate, a prediction of the gradient ERF; the rest: "
        "measured.",
        source=corpus.get("source", "a text"),
        sha=Term(str(corpus.get("sha256", ""))[:16], "code"),
    )


def _measured_row(m: pictures.Measured) -> tuple[Any, ...]:
    p, numbers = m.prediction, m.numbers
    _, ratio, low, high = last_token_ratio(numbers)
    field, gradient = numbers["attention"][0], numbers["gradient"]
    bounded = words("{verdict}: bounded support", verdict=Verdict.CONVERGES)
    layered = "" if m.bca or p.layered is None else count(p.layered.tokens)
    return (
        m.name,
        bounded if m.bca else _verdict(p.convergence),
        "" if m.bca else _share(p.longest_leak),
        f"{ratio:.3f}",
        f"{low:.3f} to {high:.3f}",
        f"{field['trf']:.1f}" if p.encoding.biases and not m.bca else "",
        f"{field['tokens']:.1f}",
        layered,
        gradient["tokens"],
        _share(gradient["mass"]),
    )


def _settings(s: Study) -> Iterator[Sentence]:
    """How the models were trained."""
    if not s.trained:
        return
    run = s.trained[0].run
    assert run is not None
    where = run["training"]["environment"]
    p = s.preset
    yield Sentence(
        words(
            "Preset {name}: {layers} layers, width {width}, {heads} heads, {steps} steps of "
            "{batch} rows of {length} tokens, AdamW {rate}, seed {seed}; Python {python}, torch "
            "{torch}, {machine}, {cores} cores.",
            name=p.name,
            layers=p.layers,
            width=p.width,
            heads=p.heads,
            steps=p.steps,
            batch=p.batch,
            length=p.length,
            rate=f"{p.learning_rate:g}",
            seed=run["seed"],
            python=where["python"],
            torch=where["torch"],
            machine=where["machine"],
            cores=where["cores"],
        )
    )
