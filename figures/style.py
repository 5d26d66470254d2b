"""House style: colours, marks, ticks, labels, SVG; the same bytes for the same data.

A line has a colour of its own, and the mark of its points shows the verdict on its series. Green
and orange areas and words show a verdict too. Each line has its name beside it. Text stays text.
`svg` returns a figure as inline SVG: its identifiers are salted, so that several figures live in
one page, and its ink is `currentColor`, so that it follows the page's light or dark scheme.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogFormatter, NullFormatter

from farfield.theory.answers.writers.svg import COLOURS as COLOURS
from farfield.theory.answers.writers.svg import NO as NO
from farfield.theory.answers.writers.svg import SOFT as SOFT
from farfield.theory.answers.writers.svg import YES as YES
from farfield.theory.answers.writers.svg import power_of_ten
from farfield.theory.convergence import Verdict
from farfield.theory.encodings import CATALOGUE

INK = "#1a1b1c"
"""The colour of text, axes and grids: in a page it becomes the colour of the text around it."""

MARKS_SAY = (
    "Filled points: the series converges; open: it diverges; crosses: no verdict without what was "
    "learned, or no series."
)
LINES = ("-", "--", "-.", ":")
COLUMN = 3.4
"""Width of one column of a paper, in inches."""

STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "axes.grid": True,
    "grid.color": INK,
    "grid.alpha": 0.15,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.6,
    "lines.markersize": 6,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "path.simplify_threshold": 0.8,
    "svg.fonttype": "none",
    "figure.constrained_layout.use": True,
}


COLUMN_STYLE: Any = {
    **STYLE,
    "font.size": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.6,
    "axes.linewidth": 0.7,
    "image.interpolation": "nearest",
}
"""The same at the sizes of a figure one column wide."""


@contextmanager
def house(column: bool = False) -> Iterator[None]:
    """Draw within the house style, for a page or for one column of a paper."""
    with mpl.rc_context(COLUMN_STYLE if column else STYLE):
        yield


def new_figure(
    height: float, width: float = COLUMN, rows: int = 1, columns: int = 1
) -> tuple[Figure, Any]:
    """A figure with its panels as an array (or the only panel), sizes in inches, without any global
    state; call within `house()`."""
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns)


def told_apart(place: int, verdict: Verdict | None) -> tuple[str, dict[str, Any]]:
    """Colour and look of the line at a place of a figure, from 0, the verdict as its mark."""
    turn, place = divmod(place, len(COLOURS))
    look: dict[str, Any] = {"linestyle": LINES[turn % len(LINES)], "marker": "x"}
    if verdict in (Verdict.CONVERGES, Verdict.DIVERGES):
        look |= {"marker": "o", "fillstyle": "full" if verdict is Verdict.CONVERGES else "none"}
    return COLOURS[place], look


def plain_ticks(axis: Any, ticks: Sequence[float]) -> None:
    """Ticks of a logarithmic axis in plain numbers."""
    axis.set_ticks(list(ticks))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def powers(figure: Figure) -> None:
    """Powers of ten in signs of their own, no smaller than the rest, on logarithmic axes."""
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        if isinstance(axis.get_major_formatter(), LogFormatter):
            axis.set_major_formatter(FuncFormatter(lambda x, _: power_of_ten(x)))


def round_numbers(low: float, high: float) -> list[float]:
    """Round numbers within a range of positive numbers, at least three if four digits allow it.

    >>> round_numbers(4, 30), round_numbers(4.1, 4.9)
    ([5.0, 10.0, 20.0], [4.2, 4.4, 4.6, 4.8])
    """
    found: list[float] = []
    for digits in (
        (10, 20, 50),
        (10, 20, 30, 40, 50, 60, 80),
        range(10, 100, 5),
        range(10, 100, 2),
        range(100, 1000, 5),
        range(1000, 10000, 5),
    ):
        scale = 10.0 ** (len(str(digits[0])) - 1)
        found = [m * 10.0**e / scale for e in range(-6, 8) for m in digits]
        found = [x for x in found if low <= x <= high]
        if len(found) >= 3:
            return found
    return found


def spoken(label: str) -> str:
    """What a label of a run is called in a figure.

    >>> spoken("alibi shift -3"), spoken("rope + BCA")
    ('ALiBi shift −3', 'RoPE + BCA')
    """
    name, space, rest = label.partition(" ")
    entry = CATALOGUE.get(name)
    return (entry.title if entry else name) + space + rest.replace("-", "\u2212")


def svg(figure: Figure, name: str) -> str:
    """The figure as inline SVG; `name` salts its identifiers."""
    return inline(rendered(figure, "svg", name).decode())


@lru_cache(maxsize=1)
def inline(drawn: str) -> str:
    """An SVG file of a figure as a part of a page, in the colours of the page."""
    for what, instead in _SMALLER:
        drawn = what.sub(instead, drawn)
    themed = {"yes": YES, "no": NO, "soft": SOFT} | {f"c{k}": c for k, c in enumerate(COLOURS)}
    for variable, colour in themed.items():
        drawn = drawn.replace(colour, f"var(--{variable}, {colour})")
    return drawn.replace(INK, "currentColor").strip()


SCHEMES = """
svg { color: #1a1b1c; --paper: #fdfdfc; --yes: #00684a; --no: #a33d00; --soft: #565a60;
  --c0: #0072b2; --c1: #6a5fe0; --c2: #a9518a; font-family: system-ui, sans-serif; }
.ground { fill: #fdfdfc; }
@media (prefers-color-scheme: dark) {
  svg { color: #e6e6e4; --paper: #17181a; --yes: #5fc9a2; --no: #f0965a; --soft: #b0b4ba;
    --c0: #5eb3ec; --c1: #aaa2fa; --c2: #e39ac4; }
  .ground { fill: #17181a; }
}
"""
"""The colours of a picture that is a file by itself, in the reader's scheme."""


def picture_file(figure: Figure, name: str) -> str:
    """The figure as an SVG file that follows the reader's light or dark scheme, unlike `rendered`,
    whose ground is white."""
    head, _, rest = svg(figure, name).partition(">")
    ground = '<rect width="100%" height="100%" rx="12" class="ground"/>'
    return f'{head} xmlns="http://www.w3.org/2000/svg"><style>{SCHEMES}</style>{ground}{rest}\n'


_NUMBER = re.compile(r"-?\d+\.\d+")


def _tenth(number: re.Match[str]) -> str:
    return f"{float(number[0]):.1f}".removesuffix(".0")


_SMALLER: Any = tuple(
    (re.compile(what), instead)
    for what, instead in (
        ("(?s)^.*?(?=<svg)", ""),
        ("(?s)<metadata>.*?</metadata>", ""),
        (r"\s+", " "),
        (' xmlns(:xlink)?="[^"]*"| version="1.1"| type="text/css"|xlink:(?=href)', ""),
        ('(?<=<g) id="[^"]*"', ""),
        (r' transform="rotate\(-?0 [^"]*"', ""),
        (" font-family: [^;]*;", ""),  # that of the page
        (r' (?:d|x|y)="[^"]*"', lambda part: _NUMBER.sub(_tenth, part[0])),
        (r"(?<=\d|\") ?([MLz]) ", r"\1"),
        ('<path d="[^"]*" style="fill: (none|#ffffff)"/>', ""),
        (r"(?<=>) (?=<)", ""),
        *(("<g>((?:(?!</?g[ >]).)*)</g>", r"\1"),)
        * 8,  # groups of nothing in common, inner ones first
    )
)
"""What a page can do without."""


FORMATS = ("svg", "png", "pdf")


def rendered(figure: Figure, kind: str, name: str, description: str = "") -> bytes:
    """The figure as a file of one of `FORMATS`, the same bytes each time.

    Args:
        figure: what to render.
        kind: the format.
        name: salts the identifiers of an SVG.
        description: kept in the file's metadata.
    """
    metadata: dict[str, Any] = {
        "png": {"Software": None, "Description": description},
        "svg": {"Date": None, "Creator": None, "Description": description},
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None, "Subject": description},
    }[kind]
    buffer = io.BytesIO()
    style = COLUMN_STYLE if figure.get_size_inches()[0] == COLUMN else STYLE  # ticks depend on it
    salted: Any = {**style, "svg.hashsalt": name, "pdf.fonttype": 42}
    with mpl.rc_context(salted):
        powers(figure)
        figure.savefig(buffer, format=kind, metadata=metadata, dpi=200, facecolor="white")
    return buffer.getvalue()
