"""The picture of the README and of the documentation's home, and the essay.

    python docs/picture.py

writes `docs/_static/farfield.svg` and `docs/how-far-does-it-see.html`. Every number in them is
computed when they are made.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

import farfield
from farfield.figures.essay import write_essay
from farfield.figures.pages.pictures import kept_share
from farfield.theory.answers.notation import expression_line
from farfield.theory.answers.writers.html import stylesheet
from farfield.theory.answers.writers.svg import WIDE, drawn

FILE = Path(__file__).parent / "_static" / "farfield.svg"
ESSAY = Path(__file__).parent / "how-far-does-it-see.html"
FORMULAS = ("-2*log(1+n)", "-log(1+n)")
EPS, ERROR = "1/100", "1/10"
WIDTH, HEIGHT, LEFT = 1140, 470, 425
INK = """
svg { color: #1a1b1c; --paper: #fdfdfc; --yes: #00684a; --no: #a33d00; font-family: system-ui,
  sans-serif; }
.ground { fill: #fdfdfc; }
@media (prefers-color-scheme: dark) {
  svg { color: #e6e6e4; --paper: #17181a; --yes: #5fc9a2; --no: #f0965a; --c0: #5eb3ec; }
  .ground { fill: #17181a; }
}
"""


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


def picture() -> str:
    """The picture as SVG text."""
    rows, y = [], 78
    for formula in FORMULAS:
        for text, colour, size in told(formula):
            rows.append(
                f'<text x="24" y="{y}" font-size="{size}" fill="{colour}">{escape(text)}</text>'
            )
            y += round(size * 1.75)
        y += 34
    shown = [
        (expression_line(e.formula), e, str(farfield.check_convergence(e).verdict))
        for e in map(farfield.encoding, FORMULAS)
    ]
    curve = drawn(kept_share(shown), WIDE)
    curve = re.sub(
        r"<svg ",
        f'<svg x="{LEFT}" y="24" width="{WIDTH - LEFT - 10}" height="{HEIGHT - 40}" ',
        curve,
        count=1,
    )
    style = stylesheet().replace(".farfield ", "")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'fill="currentColor"><title>What farfield says of two biases</title>'
        f"<style>{style}{INK}</style>"
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="12" class="ground"/>'
        f"{''.join(rows)}{curve}</svg>\n"
    )


if __name__ == "__main__":
    FILE.write_text(picture(), encoding="utf-8")
    write_essay(ESSAY)
