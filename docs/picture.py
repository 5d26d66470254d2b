"""The picture of the README and of the documentation's home, that of a design, and the essay.

    python docs/picture.py

writes the pictures in `docs/_static`, each also for a phone, and `docs/how-far-does-it-see.html`.
Every number in them is computed when they are made, or measured in the committed runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from html import escape
from pathlib import Path
from textwrap import wrap

from essay import write_essay

import farfield
from farfield.figures.papers.farfield import HOLDS, SLOPES, mixed
from farfield.figures.priors import kept_share
from farfield.figures.style import SCHEMES
from farfield.theory.answers.blocks import Curve, Ladder, Line, Weight
from farfield.theory.answers.notation import expression_line
from farfield.theory.answers.writers.html import stylesheet
from farfield.theory.answers.writers.svg import NARROW, WIDE, Shape, climbed, drawn

STATIC = Path(__file__).parent / "_static"
ESSAY = Path(__file__).parent / "how-far-does-it-see.html"
FORMULAS = ("-2*log(1+n)", "-log(1+n)")
EPS, ERROR = "1/100", "1/10"
TITLE = "How much of the attention the nearest 64 tokens keep, as the text grows"
MEANING = "Levels off above 0: a window is enough. Falls to 0: none is."
WIDTH, LEFT, TOP, HIGH = 1000, 400, 92, 416
HERO = Shape("wide", WIDTH - LEFT - 10, 400, 15, 58)
ACROSS = 360
"""Width of the picture on a phone."""
PHONE = Shape("wide", ACROSS - 8, 300, 12, 46)
IDEA = "-log(1+n)^(3/2)"
DESIGN, GOAL = "-153/91*log(1+n)", 512
SHARES = tuple(Fraction(k, 10**e) for e in range(1, 6) for k in (5, 3, 2, 1))


def told(formula: str) -> list[tuple[str, str, int]]:
    """What farfield says of a formula: text, colour, size of each line."""
    verdict = farfield.check_convergence(formula)
    colour = {"converges": "var(--yes)", "diverges": "var(--no)"}[verdict.verdict.value]
    lines = [
        (f"p(n) = {expression_line(farfield.encoding(formula).formula)}", "currentColor", 24),
        (f"its series {verdict.verdict}  [{verdict.label}]", colour, 18),
    ]
    if verdict.converges:
        field = farfield.theoretical_receptive_field(formula, EPS)
        window = farfield.certified_window(formula, ERROR, 1, 1)
        lines += [
            (
                f"99 % of its mass: the nearest {field.tokens} tokens  [{field.label}]",
                "currentColor",
                15,
            ),
            (f"a window of {window.width} keys keeps the output", "currentColor", 15),
            (f"within {ERROR} of full attention  [{window.label}]", "currentColor", 15),
        ]
    else:
        lines += [
            ("no window is ever enough: the share outside", "currentColor", 15),
            ("any window tends to 1", "currentColor", 15),
        ]
    return lines


def picture(narrow: bool = False) -> str:
    """The picture as SVG text, beside its words or on a phone below them."""
    left, y = (14, 30) if narrow else (24, 44)
    heading = [(part, "currentColor", 21) for part in wrap(TITLE, 36 if narrow else WIDTH)]
    heading += [(MEANING, "currentColor", 15)]
    rows = []
    for lines in (heading, *map(told, FORMULAS)):
        for text, colour, size in lines:
            size = max(11, round(0.7 * size)) if narrow else size
            weight = ' font-weight="600"' if text in TITLE else ""
            rows.append(
                f'<text x="{left}" y="{y}" font-size="{size}" fill="{colour}"{weight}>'
                f"{escape(text)}</text>"
            )
            y += round(size * 1.75)
        y += 10 if narrow else 28
    shown = [
        (expression_line(e.formula), e, str(farfield.check_convergence(e).verdict))
        for e in map(farfield.encoding, FORMULAS)
    ]
    curve = kept_share(shown)
    if narrow:
        return framed(on_phone(curve), (4, y, ACROSS - 8), (ACROSS, y + 320), rows)
    return framed(drawn(curve, HERO), (LEFT, TOP, WIDTH - LEFT - 10), (WIDTH, TOP + HIGH), rows)


def fields() -> Curve:
    """A design, its neighbour and ALiBi: how many tokens hold all but a share."""
    lines = []
    named = {DESIGN: "the design", "-2*log(1+n)": "−2 log(1+n)"}
    named |= {f"-n/{k}": f"ALiBi, slope 1/{k}" for k in (16, 256)}
    for formula, name in named.items():
        e = farfield.encoding(formula)
        found = farfield.theoretical_receptive_field(e, SHARES)
        x, y = tuple(map(float, SHARES)), tuple(max(1.0, float(f.tokens)) for f in found)
        mine = formula == DESIGN
        weight = Weight.STRONG if mine else Weight.CONTEXT
        lines.append(Line(name, x, y, 0 if mine else None, weight=weight))
    return Curve(
        "Receptive fields by the share left outside.",
        "ε, share of the mass left outside",
        "TRF(ε) in tokens",
        tuple(lines),
        True,
        True,
        posts=((f"ε = {EPS}", float(Fraction(EPS))),),
        marks=((f"{GOAL} tokens", float(GOAL)),),
        falls=True,
    )


def idea() -> Curve:
    """The share that the nearest tokens keep under the idea of the tutorial."""
    return kept_share([("the idea", farfield.encoding(IDEA), 0)])


def mixture() -> Curve:
    """The measured ratio of perplexity by the number of local heads of eight."""
    lines = []
    for place, slope in enumerate(SLOPES):
        x, y = zip(*((float(k), ratio) for k, (ratio, _) in mixed(slope).items()), strict=True)
        weight = Weight.STRONG if slope == "1/4" else Weight.CONTEXT
        lines.append(Line(f"slope {slope}", x, y, "ink", (place + 1) * (slope != "1/4"), weight))
    return Curve(
        "The ratio of perplexity at 16 times the training length, by local heads of eight.",
        "local heads of eight",
        "perplexity ratio, 64 to 1,024 bytes",
        tuple(lines),
        marks=((f"holds: {HOLDS:g}", HOLDS),),
        frame=(0.95, max(v for line in lines for v in line.y)),
        at=tuple(sorted({v for line in lines for v in line.x})),
    )


def ladder() -> str:
    """The proof of a tie, for the example that shows one."""
    blocks = farfield.check_convergence("-log(1+n) - 2*log(log(n+3))").blocks()
    (climb,) = (b for b in blocks if isinstance(b, Ladder))
    return framed(climbed(climb, NARROW), (10, 10, 340), (360, 190), [])


def on_phone(curve: Curve) -> str:
    """A curve for a phone, with names that its margin has room for."""
    lines = (
        replace(line, name=line.name.replace(", slope", "").replace("(n + 1)", "(n+1)"))
        for line in curve.lines
    )
    return drawn(replace(curve, lines=tuple(lines)), PHONE)


def framed(
    curve: str, place: tuple[int, int, int], size: tuple[int, int], rows: Sequence[str]
) -> str:
    """A curve at its place (left, top, width) on a ground of its own, with texts beside it."""
    (x, y, width), (wide, high) = place, size
    curve = curve.replace(' style="display:none"', "")
    curve = curve.replace(
        "<svg ", f'<svg x="{x}" y="{y}" width="{width}" height="{high - y - 16}" ', 1
    )
    style = stylesheet().replace(".farfield ", "")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" '
        f'fill="currentColor"><title>What farfield says</title><style>{style}{SCHEMES}</style>'
        f'<rect width="{wide}" height="{high}" rx="12" class="ground"/>'
        f"{''.join(rows)}{curve}</svg>\n"
    )


def pictures() -> dict[str, str]:
    """The texts of the pictures, by their files."""
    found = {
        "farfield.svg": picture(),
        "farfield-narrow.svg": picture(True),
        "ladder.svg": ladder(),
    }
    for name, curve in (("fields", fields()), ("idea", idea()), ("mixture", mixture())):
        found[f"{name}.svg"] = framed(drawn(curve, WIDE), (10, 10, 740), (760, 450), [])
        found[f"{name}-narrow.svg"] = framed(on_phone(curve), (4, 4, ACROSS - 8), (ACROSS, 320), [])
    return found


if __name__ == "__main__":
    for name, text in pictures().items():
        (STATIC / name).write_text(text, encoding="utf-8")
    write_essay(ESSAY)
