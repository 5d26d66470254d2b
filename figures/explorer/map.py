"""Where the parameters make a series converge: a map with the exact boundary in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from html import escape

import sympy

from farfield.figures.document import Picture
from farfield.theory.answers.notation import words
from farfield.theory.answers.writers.svg import VERDICTS, tick
from farfield.theory.verdicts import Convergence, Verdict

CELLS = 33
SIZE, LEFT, BELOW = 300, 60, 44


def parameter_map(
    c: Convergence, steps: Mapping[str, Sequence[Fraction]], here: Mapping[str, Fraction]
) -> Picture | None:
    """The first two parameters by verdict, the others as they stand; None without a condition.

    Args:
        c: the verdict for all values.
        steps: values of each parameter.
        here: where the sliders stand.
    """
    if c.verdict is not Verdict.CONDITIONAL or c.condition in (None, True, False):
        return None
    names = [n for n in steps if n in {s.name for s in sympy.sympify(c.condition).free_symbols}][:2]
    if not names:
        return None
    across = _thinned(steps[names[0]])
    upwards = _thinned(steps[names[1]]) if len(names) > 1 else (None,)
    wide = SIZE / len(across)
    high = SIZE / len(upwards) if len(names) > 1 else 60.0
    tall = high * len(upwards)
    parts = []
    for i, a in enumerate(across):
        for j, b in enumerate(upwards):
            values = {**here, names[0]: a, **({names[1]: b} if b is not None else {})}
            found = c.at(**values)
            if isinstance(found, bool):
                name = "converges" if found else "diverges"
                parts.append(
                    f'<rect x="{LEFT + i * wide:.1f}" y="{10 + tall - (j + 1) * high:.1f}" '
                    f'width="{wide + 0.3:.1f}" height="{high + 0.3:.1f}" fill="{VERDICTS[name]}" '
                    'opacity="0.35"/>'
                )

    def place(values: Sequence[Fraction | None], value: Fraction) -> float:
        known = [v for v in values if v is not None]
        return (min(range(len(known)), key=lambda k: abs(known[k] - value)) + 0.5) / len(known)

    x = LEFT + SIZE * place(across, here[names[0]])
    y = 10 + tall * (1 - place(upwards, here[names[1]])) if len(names) > 1 else 10 + tall / 2
    parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="currentColor"/>')
    for part, value in ((0.0, across[0]), (1.0, across[-1])):
        parts.append(
            f'<text x="{LEFT + SIZE * part:.0f}" y="{tall + 28:.0f}" text-anchor="middle">'
            f"{tick(float(value))}</text>"
        )
    parts.append(f'<text x="{LEFT + SIZE / 2:.0f}" y="{tall + 28:.0f}" text-anchor="middle">'
                 f"{escape(names[0])}</text>")  # fmt: skip
    if len(names) > 1:
        for part, label in ((1.0, tick(float(steps[names[1]][0]))), (0.5, names[1]),
                            (0.0, tick(float(steps[names[1]][-1])))):  # fmt: skip
            parts.append(
                f'<text x="{LEFT - 8}" y="{16 + (tall - 8) * part:.0f}" text-anchor="end">'
                f"{escape(label)}</text>"
            )
    drawn = (
        f'<svg viewBox="0 0 {LEFT + SIZE + 20} {tall + BELOW:.0f}" font-size="13" '
        f'fill="currentColor" style="max-width:26rem">{"".join(parts)}</svg>'
    )
    said = words("Green: the series converges, exactly if {condition}. The dot: here.",
                 condition=c.condition)  # fmt: skip
    return Picture(drawn, said, f"Where {' and '.join(names)} make the series converge", c.label)


def _thinned(values: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """At most so many of the values, both ends among them."""
    if len(values) <= CELLS:
        return tuple(values)
    return tuple(values[round(k * (len(values) - 1) / (CELLS - 1))] for k in range(CELLS))
