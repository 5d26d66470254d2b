"""The picture of the forecasts: what was foreseen of each model, and what was measured.

python experiments/far_field_2/picture.py    # docs/_static/far-field*.svg
"""

from judge import HERE, NULLS, cases, with_nulls

from farfield.figures.style import COLOURS, SOFT, house, new_figure, picture_file

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
STATIC = HERE.parents[1] / "docs" / "_static"
TITLE = "What short rows say of long ones:", "loss foreseen and measured"
SHOWN = dict(
    zip(
        NULLS[:3],
        ("as at 4 times the length", "a fitted decay", "as the nearest other model"),
        strict=True,
    )
)
"""The nulls of the picture, and what they are called there."""


def draw(file, title, **sizes):
    """Forecasts with their intervals against measurements, the nulls behind them."""
    every = with_nulls(list(cases()))
    with house():
        figure, panels = new_figure(**sizes)
        for panel, to in zip(panels, (1024, 4096), strict=True):
            at = [c for c in every if c["to"] == to]
            measured = [c["measured"] for c in at]
            ends = [min(measured) - 0.1, max(measured) + 0.3]
            panel.plot(ends, ends, color=SOFT, linewidth=0.8)
            for marker, (null, name) in zip(MARKERS[1:], SHOWN.items(), strict=False):
                look = {"markersize": 4, "fillstyle": "none", "label": name}
                panel.plot(measured, [c["nulls"][null] for c in at], marker, color=SOFT, **look)
            panel.errorbar(
                measured,
                [c["said"] for c in at],
                yerr=[c["half"] for c in at],
                fmt="o",
                color=COLOURS[0],
                markersize=5,
                linewidth=0.8,
                label="far field, a model a point",
            )
            panel.set(
                xlim=ends,
                ylim=[ends[0], 1.9 * ends[1]],
                title=f"{to // 64} times the training length",
                xlabel="measured log ratio of perplexity",
                ylabel="foreseen",
            )
        figure.suptitle(title, fontweight="bold")
        panels[0].legend(loc="upper left")
        (STATIC / file).write_text(picture_file(figure, "far-field"), encoding="utf-8")


if __name__ == "__main__":
    draw("far-field.svg", " ".join(TITLE), height=3.9, width=7.6, columns=2)
    draw("far-field-narrow.svg", "\n".join(TITLE), height=6.6, width=3.7, rows=2)
