"""House style: one look for every figure, the same bytes for the same data.

An encoding keeps its colour, marker and line everywhere. Text stays text. `svg` returns a figure
as inline SVG: its identifiers carry a prefix, so that several figures live in one page, and its
ink is `currentColor`, so that it follows the page's light or dark scheme.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from farfield.theory.encodings import encodings

INK = "#1a1b1c"
"""The colour of text, axes and grids: in a page it becomes the colour of the text around it."""

_FIRST = ("alibi", "type1", "type2", "example1", "window", "nope", "rope", "sinusoidal")
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a6ff0", "#8c6d31")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
_LINES = ("-", "--", "-.", ":")

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
    "svg.fonttype": "none",
    "figure.constrained_layout.use": True,
}


@contextmanager
def house() -> Iterator[None]:
    """Draw within the house style."""
    with mpl.rc_context(STYLE):
        yield


def new_figure(width: float = 5.4, height: float = 3.6) -> tuple[Figure, Any]:
    """A figure of one panel, in inches, without any global state; call within `house()`."""
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def look(name: str) -> dict[str, Any]:
    """Colour, marker and line style of an encoding, the same in every figure."""
    base = name.split(" ")[0]
    order = [*_FIRST, *(k for k in encodings() if k not in _FIRST)]
    i = order.index(base) if base in order else sum(map(ord, base))
    turn, place = divmod(i, len(_COLOURS))
    return {
        "color": _COLOURS[place],
        "marker": _MARKERS[(place + turn) % len(_MARKERS)],
        "linestyle": _LINES[turn % len(_LINES)],
    }


def svg(figure: Figure, name: str) -> str:
    """The figure as inline SVG; `name` salts and prefixes its identifiers."""
    buffer = io.StringIO()
    salted: Any = {**STYLE, "svg.hashsalt": name}
    with mpl.rc_context(salted):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = text.replace("url(#", f"url(#{name}-").replace('xlink:href="#', f'xlink:href="#{name}-')
    text = text.replace('href="#' + name + "-" + name + "-", 'href="#' + name + "-")
    return text.replace(INK, "currentColor").strip()


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, SVG or PDF by the ending of its name, the same bytes each time."""
    metadata: dict[str, Any] = {"Software": None} if path.suffix == ".png" else {"Date": None}
    if path.suffix == ".pdf":
        metadata = {"CreationDate": None}
    salted: Any = {**STYLE, "svg.hashsalt": path.stem}
    with mpl.rc_context(salted):
        figure.savefig(path, metadata=metadata, dpi=160, facecolor="white")
