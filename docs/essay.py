"""The essay "How far does it see?": one page on which a reader moves the things themselves.

Curves are drawn by the page in float64, and say so. Verdicts, conditions, receptive fields, proofs,
measured ratios and the verdicts on the papers are computed here and written into the page.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, FileSystemLoader
from markupsafe import Markup

from farfield.figures.document import environment, typeset
from farfield.figures.papers.farfield import HEADS, SLOPES, mixed
from farfield.numerics.receptive_field import ReceptiveField, theoretical_receptive_field
from farfield.theory.answers.blocks import Ladder, Steps
from farfield.theory.answers.notation import Latex, html
from farfield.theory.answers.writers.svg import NARROW, WIDE, climbed
from farfield.theory.convergence import check_convergence
from farfield.validation.json_files import write
from farfield.validation.papers.claim import Verdict, of_sentence
from farfield.validation.papers.ledger import by_sentence, claims, plain_sentences

EPS = Fraction(1, 100)
TEXTS = (
    ("-n/8", "−n/8", r"-n/8"),
    ("-2*log(1+n)", "−2 log(1+n)", r"-2 \log(1+n)"),
    ("-log(1+n)", "−log(1+n)", r"-\log(1+n)"),
)
"""Biases under which a text fades: each as a formula, as a line of text and in LaTeX."""
RATES = tuple(Fraction(k, 20) for k in range(10, 41))
"""Values of r on the slider of -r log(1+n)."""
LADDERS = (
    ("-log(1+n)", "−log(1+n)", r"-\log(1+n)"),
    ("-2*log(1+n)", "−2 log(1+n)", r"-2 \log(1+n)"),
    (
        "-log(1+n)-log(log(n+3))",
        "−log(1+n) − log log(n+3)",
        r"-\log(1+n)-\log \log(n+3)",
    ),
    (
        "-log(1+n)-2*log(log(n+3))",
        "−log(1+n) − 2 log log(n+3)",
        r"-\log(1+n)-2 \log \log(n+3)",
    ),
    (
        "-log(1+n)-log(log(n+3))-log(log(log(n+16)))",
        "−log(1+n) − log log(n+3) − log log log(n+16)",
        r"-\log(1+n)-\log \log(n+3)-\log \log \log(n+16)",
    ),
    ("-log(1+n)^(11/10)", "−log(1+n)^1.1", r"-\log(1+n)^{1.1}"),
)


def held(field: ReceptiveField) -> str:
    """How many tokens hold 99 % of the mass, in words.

    >>> held(theoretical_receptive_field("-2*log(1+n)", EPS))
    '61 tokens hold 99 %'
    >>> held(theoretical_receptive_field("-log(1+n)", EPS))
    'no number of tokens ever holds 99 %'
    >>> held(theoretical_receptive_field("-21/20*log(1+n)", EPS))
    'about 10^39.8 tokens hold 99 %, too many to be of use'
    """
    if field.tokens == math.inf:
        return "no number of tokens ever holds 99 %"
    if field.tokens is not None:
        return f"{field.tokens:,} tokens hold 99 %"
    return f"about 10^{field.answer.low / math.log(10):.1f} tokens hold 99 %, too many to be of use"


def _decided(formula: str) -> dict[str, Any]:
    """The verdict on a formula and its receptive field."""
    verdict, field = check_convergence(formula), theoretical_receptive_field(formula, EPS)
    tokens = field.tokens if field.tokens not in (None, math.inf) else None
    return {"verdict": str(verdict.verdict), "held": held(field), "tokens": tokens}


def _ladders() -> Iterator[dict[str, Any]]:
    """The proof of each formula as a picture and as steps."""
    for formula, name, latex in LADDERS:
        verdict = check_convergence(formula)
        blocks = verdict.blocks()
        (ladder,) = (b for b in blocks if isinstance(b, Ladder))
        (steps,) = (b for b in blocks if isinstance(b, Steps))
        yield {
            "name": name,
            "latex": latex,
            "verdict": str(verdict.verdict),
            "wide": Markup(climbed(ladder, WIDE)),
            "narrow": Markup(climbed(ladder, NARROW)),
            "steps": [Markup(html(step.words())) for step in steps.steps],
        }


def _tex(source: str, spoken: str) -> Markup:
    """LaTeX as MathML, with the words that a screen reader says."""
    return Markup(html((Latex(source, spoken),)))


def _heads() -> dict[str, dict[int, tuple[float, int]]]:
    """Measured ratios and seeds, by the slope of the local heads and by their number."""
    return {
        s: {k: (round(ratio, 3), seeds) for k, (ratio, seeds) in mixed(s).items()} for s in SLOPES
    }


def _claims() -> list[dict[str, str]]:
    """What the papers say, a sentence each, and whether it holds."""
    return [
        {
            "id": c.id,
            "paper": c.paper,
            "verdict": str(c.verdict),
            "quote": c.quote,
            "where": ", ".join(filter(None, (c.section, c.place))),
            "read": c.statement,
            "said": c.because or c.corrected or c.reason,
        }
        for c in (of_sentence(readings) for readings in by_sentence(claims()).values())
    ]


def contents() -> Mapping[str, Any]:
    """All that farfield tells the page."""
    return {
        "texts": [
            {"formula": f, "name": name, "latex": latex} | _decided(f) for f, name, latex in TEXTS
        ],
        "rates": [{"r": float(r)} | _decided(f"-({r})*log(1+n)") for r in RATES],
        "condition": str(check_convergence("-r*log(1+n)").condition),
        "heads": _heads(),
        "claims": _claims(),
    }


def essay() -> str:
    """The page, whole: styles, script and data inside it, nothing asked of another host."""
    answers = contents()
    data = json.dumps(answers, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    around = environment()
    places = FileSystemLoader(Path(__file__).with_name("_essay")), around.loader
    template = around.overlay(loader=ChoiceLoader(places)).get_template("essay.html")
    whole = template.render(
        data=Markup(data),
        tex=_tex,
        texts=answers["texts"],
        ladders=list(_ladders()),
        counts=Counter(claim["verdict"] for claim in answers["claims"]),
        verdicts=list(Verdict),
        plain=len(plain_sentences()),
        condition=answers["condition"],
        slopes=SLOPES,
        heads=range(HEADS),
        total=len(answers["claims"]),
    )
    return typeset(whole)


def write_essay(path: str | os.PathLike[str]) -> Path:
    """Write the essay to a file; returns its path.

    Raises:
        InputError: the file cannot be written.
    """
    write(Path(path), essay().encode())
    return Path(path)
