"""The page of a study: what was asked about, its place, what was measured, and the catalogue."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from farfield.figures.document import Fold, Item, Picture, Section, page, write_page
from farfield.figures.pages import plots
from farfield.figures.pages.terms import PAPERS, VERDICT
from farfield.figures.style import svg
from farfield.theory.answers.blocks import Facts, Note, note, table
from farfield.theory.answers.notation import Term, Text, as_text, words
from farfield.theory.answers.wording import count
from farfield.theory.verdicts import Convergence, Verdict
from farfield.validation.measures.extrapolation import TOLERANCE
from farfield.validation.short import field_text, share_text
from farfield.validation.study.findings import findings, last_token_ratio
from farfield.validation.study.prediction import Prediction
from farfield.validation.study.study import Study

LONG = 160
"""Characters beyond which a formula is told by its note."""


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
    sections = [Section(e.prediction.name, e.prediction.blocks()) for e in asked]
    if s.place is not None:
        sections.append(Section("Place among the catalogue", [*s.place.blocks(), *_reach(s)]))
    if s.trained:
        came_true = [f.blocks()[0] for f in findings(s.entries)]
        sections += [
            Section("What the theory predicted, and what came true", came_true),
            Section("Measurements", [*_measurements(s), *_measured_figures(s)]),
        ]
    if others or len(s.entries) > 1:
        sections.append(Section("Theory: verdicts and receptive fields", list(_theory(s))))
    if others:
        proofs = [_proof(e.prediction) for e in others]
        sections.append(Section("Proofs", proofs))
    sections += [*chapters, Section("What the numbers are", list(_definitions(s)))]
    return page(s.title, [s.lead()], sections)


def _proof(p: Prediction) -> Fold:
    title = (*words("{name}: ", name=p.name), *_verdict(p.convergence))
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


# -- figures --------------------------------------------------------------------------------------


def _reach(s: Study) -> Iterator[Item]:
    yield _picture(
        svg(plots.biases(s), "biases"), "The bias by distance",
        "The bias against its value at distance 0, thick: asked about; of several heads the one "
        "that falls slowest.",
    )  # fmt: skip
    yield _picture(
        svg(plots.fields(s), "reach"), "Receptive fields by eps",
        "TRF(eps) of the whole series, certified at 15 values of eps, worst head; only encodings "
        "whose series converges.",
    )  # fmt: skip


def _measured_figures(s: Study) -> Iterator[Item]:
    fields = next(m.numbers["attention"] for m in plots.measured(s))
    eps = ", ".join(f"{f['eps']:g}" for f in fields)
    yield _picture(
        svg(plots.perplexity_curves(s), "curves"), "Perplexity by context length",
        "Last-token perplexity relative to the training length. Flat is extrapolation; one seed.",
    )  # fmt: skip
    yield _picture(
        svg(plots.trf_against_erf(s), "fields"), "Predicted and measured receptive fields",
        "Receptive field of the bias alone against that of the trained model's attention, at eps "
        f"= {eps} (joined), rows of {fields[0]['length']} tokens, means over heads. On the grey "
        "line they agree.",
    )  # fmt: skip
    yield _picture(
        svg(plots.predictors(s), "predictors"), "Predictors of extrapolation",
        "Two predictors of extrapolation: the leak, computed before training, and the gradient "
        "mass on the training length, measured.",
    )  # fmt: skip


def _picture(drawn: str, alt: str, caption: str) -> Picture:
    return Picture(drawn, as_text(caption), alt)


# -- tables ---------------------------------------------------------------------------------------


def _measurements(s: Study) -> Iterator[Item]:
    """What was measured, a line an encoding and way to run it."""
    lengths = s.lengths
    eps = plots.measured(s)[0].numbers["attention"][0]["eps"]
    header = (
        "encoding", "verdict", f"leak {lengths[0]}→{lengths[-1]}",
        *(f"last token {n}" for n in lengths), "ratio [95 %]",
        *(f"non-overl. {n}" for n in lengths), f"TRF({eps:g}) of the rows",
        f"attention ERF({eps:g})", "layered TRF", "gradient ERF(0.99)",
        f"gradient mass in {lengths[0]}",
    )  # fmt: skip
    rows = [_measured_row(m, lengths) for m in plots.measured(s)]
    yield table(header, rows, "Measurements", numeric=tuple(range(2, len(header))))
    corpus = s.corpus or {}
    yield note(
        "Perplexities by context length, two protocols; one seed, bytes of {source} (SHA-256 "
        "{sha}…). Ratio: last-token perplexity at {longest} over that at {trained}, paired on the "
        "same targets. Verdict: theorem; leak and TRF: certified or float64; layered TRF: "
        "approximate, a prediction of the gradient ERF; the rest: measured.",
        source=corpus.get("source", "a text"),
        sha=Term(str(corpus.get("sha256", ""))[:16], "code"),
        longest=lengths[-1], trained=lengths[0],
    )  # fmt: skip


def _measured_row(m: plots.Measured, lengths: Sequence[int]) -> tuple[Any, ...]:
    p, numbers = m.prediction, m.numbers
    by = {(r["protocol"], r["length"]): f"{r['perplexity']:.2f}" for r in numbers["perplexity"]}
    _, ratio, low, high = last_token_ratio(numbers)
    field, gradient = numbers["attention"][0], numbers["gradient"]
    bounded = words("{verdict}: bounded support", verdict=Verdict.CONVERGES)
    layered = "" if m.bca or p.layered is None else count(p.layered.tokens)
    return (
        m.name, bounded if m.bca else _verdict(p.convergence),
        "" if m.bca else _share(p.longest_leak),
        *(by.get(("last token", n), "") for n in lengths), f"{ratio:.3f} [{low:.3f}, {high:.3f}]",
        *(by.get(("non-overlapping", n), "") for n in lengths),
        f"{field['trf']:.1f}" if p.encoding.biases and not m.bca else "",
        f"{field['tokens']:.1f}", layered, gradient["tokens"], _share(gradient["mass"]),
    )  # fmt: skip


def _theory(s: Study) -> Iterator[Item]:
    """Verdicts and receptive fields, a line an encoding."""
    first = s.entries[0].prediction
    eps = next((fs for e in s.entries if (fs := e.prediction.receptive_fields)), ())
    shares = [str(f.eps) for f in eps]
    header = (
        "encoding", "bias", "verdict", *(f"TRF({e})" for e in shares),
        *(f"TRF({e}), row of {first.row_length}" for e in shares),
        *(f"leak to {n}" for n in s.lengths[1:]),
    )  # fmt: skip
    rows = [_theory_row(e.prediction, len(shares)) for e in s.entries]
    yield table(header, rows, "Verdicts and receptive fields", numeric=tuple(range(3, len(header))))
    yield note(
        "TRF(eps): the least number of nearest keys that hold all but a share eps of the prior "
        "mass; worst head of several. Infinite where the series diverges; then the finite-row TRF "
        "still tells how far a row sees. Leak: share of a row's prior mass beyond {trained} "
        "tokens. Exact integers with ball arithmetic behind them; – where the encoding is not "
        "additive or has parameters without a value.", trained=first.trained,
    )  # fmt: skip


def _theory_row(p: Prediction, shares: int) -> tuple[Any, ...]:
    none = ["–"] * shares
    whole = [field_text(f) for f in p.receptive_fields] or none
    if not p.receptive_fields and p.row_fields and p.convergence.verdict is Verdict.DIVERGES:
        whole = ["infinite"] * shares
    return (
        p.name, _formula(p), _verdict(p.convergence), *whole,
        *([field_text(f) for f in p.row_fields] or none),
        *([_share(k.value) for k in p.leaks] or ["–"] * 2),
    )  # fmt: skip


# -- definitions ----------------------------------------------------------------------------------


def _definitions(s: Study) -> Iterator[Item]:
    rows = {
        "verdict": VERDICT,
        "TRF(eps)": words(
            "`min { j >= 0 : T_j < eps*B }`, `T_j` the tail of the series, `B` its sum "
            "[Q, Eq. 22]; the finite-row TRF uses the sums of a row."
        ),
        "leak": words(
            "`1 - B_m/B_n`: prior mass of a row of `n` tokens beyond the `m` trained on (ours)."
        ),
        "attention ERF(eps)": words(
            "per query row the least number of nearest keys that hold more than 1 − eps of the "
            "attention mass; mean over sampled rows, heads, layers [Q, after Eq. 21]."
        ),
        "gradient ERF(0.99)": words(
            "the shortest suffix with more than 99 % of the summed norms of the input gradient of "
            "the log-probability of the next token [C, 5.1; the scalar is our choice]."
        ),
        "last token": words(
            "each target predicted from exactly so many tokens, the same targets at every length "
            "[C, 3.4]."
        ),
        "non-overlapping": words("segments of that length, all tokens scored [S]."),
        "BCA": words(
            "blockwise causal attention at inference, blocks of half the training length [S, 3.3]."
        ),
        "tolerance": words(
            "a model extrapolates here if the last-token ratio is below {ratio} (Definition 0.1 of "
            "[Q], one-sided).", ratio=f"{1 + TOLERANCE:.2f}",
        ),
    }  # fmt: skip
    if s.trained:
        rows["settings"] = _settings(s)
    yield Facts(tuple((words(name), said) for name, said in rows.items()))
    yield Note(PAPERS)


def _settings(s: Study) -> Text:
    run = s.trained[0].run
    assert run is not None
    where = run["training"]["environment"]
    p = s.preset
    return words(
        "Preset {name}: {layers} layers, width {width}, {heads} heads, {steps} steps of {batch} "
        "rows of {length} tokens, AdamW {rate}, seed {seed}; Python {python}, torch {torch}, "
        "{machine}, {cores} cores.",
        name=p.name, layers=p.layers, width=p.width, heads=p.heads, steps=p.steps, batch=p.batch,
        length=p.length, rate=f"{p.learning_rate:g}", seed=run["seed"], python=where["python"],
        torch=where["torch"], machine=where["machine"], cores=where["cores"],
    )  # fmt: skip
