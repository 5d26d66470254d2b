"""Our own trained models, drawn: mixtures of heads, levels of loss, which hold and use far keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from polars import col

from farfield.figures.charts import Named, Panel, charted
from farfield.figures.exhibit import Data, Drawing
from farfield.figures.style import COLOURS, INK, spoken
from farfield.validation.results import LAST, TOLERANCE, results

HOLDS = 1 + TOLERANCE
GREY = "#888888"
USUAL = {"trained": 64, "layers": 4, "width": 128, "steps": 1000}
"""Of the models of the registrations."""
LEARNED = 0.9
"""Mean accuracy at the training length from which a model has learned its task."""
SAME_BIAS = {
    "no bias": "nope",
    "ALiBi": "alibi",
    "KERPLE": "kerple_log",
    "T5": "t5",
    "all local 1/2": "8 heads 1/2",
    "all local 1/4": "alibi equal 2",
}
"""What the language models call the biases of a task, where the two registrations differ."""


def _points(x: Any, y: Any, **look: Any) -> Named:
    """Points that are not joined and have no name."""
    ink = look.pop("colour", INK)
    return Named("", x, y, ink, {"marker": "o", "markersize": 4, "linestyle": "none", **look})


SLOPES = {"1/2": "8 heads 1/2", "1/4": "alibi equal 2", "1/16": "alibi equal 4"}
"""Of the local heads, with the case in which all are local."""
HEADS = 8


def mixed(slope: str) -> dict[int, tuple[float, int]]:
    """The greatest mean ratio of perplexity at any length, and the count of models, by the number
    of local heads of eight. All local heads have one slope, the others no bias."""
    lines = results().filter(
        col("order_loss").is_not_null(), mask="", protocol=LAST, **USUAL
    )  # of the registrations, the last one that has a label
    means = lines.group_by("experiment", "label", "length", maintain_order=True).agg(
        col("ratio").log().mean().exp().alias("ratio"), col("seed").n_unique().alias("seeds")
    )
    cases = means.group_by("experiment", "label", maintain_order=True).agg(
        col("ratio", "seeds").max()
    )
    known = {label: (ratio, seeds) for _, label, ratio, seeds in cases.iter_rows()}
    names = {k: f"{k} head{'s' * (k > 1)} {slope}" for k in range(1, HEADS)}
    names = {0: "nope", **names, HEADS: SLOPES[slope]}
    return {k: known[name] for k, name in names.items() if name in known}


def mixtures() -> Drawing:
    """The ratio of perplexity by the number of local heads of eight, a line a slope."""
    ratios = {s: {k: ratio for k, (ratio, _) in mixed(s).items()} for s in SLOPES}
    lines = [
        Named(f"slope {s}", [*found], [*found.values()], colour, {"marker": "o"})
        for (s, found), colour in zip(ratios.items(), COLOURS, strict=False)
    ]
    rows = tuple((s, k, y) for s, found in ratios.items() for k, y in found.items())
    highest = max(y for *_, y in rows)
    axes = {"xlabel": "local heads of eight", "xticks": [0, 1, 2, 4, 8], "xlim": (-0.2, 8.05)}
    axes |= {"yscale": "log", "ylabel": "ratio of perplexity (log)", "ylim": (0.9, 1.05 * highest)}
    return Drawing(
        Data(("slope", "local heads", "ratio of perplexity"), rows),
        f"One local head of eight is enough: slope 1/4 takes the ratio of perplexity at 16 times "
        f"the training length from {ratios['1/4'][0]:.2f} to {ratios['1/4'][1]:.2f}. The other "
        f"heads have no bias. Perplexity holds below the grey line ({HOLDS:g}).",
        charted(2.6, Panel(lines, axes, y=[1, 1.05, 1.2, 1.5], level=[HOLDS])),
    )


class Level(NamedTuple):
    """Models that differ in their seed: mean loss in nats a byte on rows of the training length and
    of 16 times that, and how many they are."""

    label: str
    steps: int
    seeds: int
    home: float
    far: float


def level_cases() -> list[Level]:
    """Every bias or mechanism trained on rows of 64 bytes of code, at width 128 in 4 layers."""
    lines = results().filter(
        col("text").str.starts_with("source code"),
        trained=64,
        layers=4,
        width=128,
        mask="",
        protocol=LAST,
    )
    home, far = (lines.filter(length=n).select("run", "nats") for n in (64, 1024))
    both = home.join(far, on="run", suffix="_far")
    models = lines.unique("run", maintain_order=True).select("run", "label", "steps")
    means = (
        models.join(both, on="run")
        .group_by("label", "steps", maintain_order=True)
        .agg(col("run").len().alias("seeds"), col("nats").mean(), col("nats_far").mean())
    )
    return sorted(Level(*row) for row in means.iter_rows())


def best_of(levels: Sequence[Level]) -> list[Level]:
    """Those that no other beats on both lengths, by their loss on short rows."""
    found: list[Level] = []
    for case in sorted(levels, key=lambda level: (level.home, level.far)):
        if not found or case.far < found[-1].far:
            found.append(case)
    return found


def levels() -> Drawing:
    """Loss on rows of 64 against loss on rows of 1,024, a point a bias: which one to take."""
    every = level_cases()
    short, long = (
        [case for case in every if (case.steps > 1000) is longer] for longer in (False, True)
    )
    front = best_of(short)
    ends = [min(c.home for c in every) - 0.08, max(c.home for c in every) + 0.05]
    top = max(c.far for c in every) + 0.1
    others = [c for c in short if c not in front]
    named = [c for c in short if c in front or c.label in LEVELS_NAMED]
    points = [
        _points([c.home for c in others], [c.far for c in others], colour=GREY, alpha=0.8),
        _points([c.home for c in front], [c.far for c in front]),
        _points([c.home for c in long], [c.far for c in long], fillstyle="none"),
    ]
    names = [Named(spoken(c.label), [c.home], [c.far]) for c in named]
    later = [c for c in long if c.label in LATER_NAMED]
    names += [Named(f"{spoken(c.label)}, {c.steps:,} steps", [c.home], [c.far]) for c in later]
    axes: dict[str, Any] = {"xlim": ends, "ylim": (ends[0], top)}
    axes |= {"xlabel": "loss on rows of 64 (nats a byte)"}
    axes |= {"ylabel": "loss on rows of 1,024 (nats a byte)"}
    same = Named("", ends, ends, GREY, {"linewidth": 0.8})
    return Drawing(
        Data(
            ("label", "steps", "models", "loss on rows of 64", "loss on rows of 1,024"),
            tuple(tuple(case) for case in every),
        ),
        f"After 1,000 steps none of {len(short)} biases and mechanisms has a lower loss at both "
        f"lengths than {' or '.join(spoken(c.label) for c in front)}, drawn in ink. On the grey "
        "line a long row costs nothing. Circles: models of 4,000 steps.",
        charted(4.2, Panel([same, *points, *names], axes)),
        made=f"Means over seeds, {sum(c.seeds for c in every)} models of 4 layers, 8 heads and "
        "width 128, trained on rows of 64 bytes of source code. The last byte of a row is scored. "
        "Which is best was read off the same models, so the order of close ones is chance.",
    )


LEVELS_NAMED = ("rope", "sinusoidal", "t5", "nope", "1 head 1/4", "example1", "window 32")
"""Points that a reader looks for, beside the best."""
LATER_NAMED = ("ALiBi", "1 head 1/4", "slope 1/32", "no bias")
"""The same of models that learned longer."""


class Both(NamedTuple):
    """What a mechanism does far beyond the training length of 64: how far its models hold their
    loss, and how well they use keys beyond that length.

    Fields:
        label: of the mechanism, with the number of layers and heads where these are not usual.
        seeds: how many models of the task.
        learned: whether they have learned their task at the training length.
        used: their mean accuracy on the longest row, at the distances beyond the training length.
        ratio: of perplexity on the longest row, of language models with the same biases; None
            where none was measured.
    """

    label: str
    seeds: int
    learned: bool
    used: float
    ratio: float | None


def both() -> list[Both]:
    """Every mechanism whose models were trained on the induction task in rows of 64: those of 2
    layers, and deeper ones where language models have the same biases."""
    table = results().filter(trained=64, mask="")
    texts = table.filter(
        col("experiment").is_in(("first", "heads_and_shapes", "hold_and_use")), protocol=LAST
    )
    ratios = texts.group_by("label", "layers", "length").agg(col("ratio").log().mean().exp())
    known = {
        (label.removeprefix("English: "), layers, length): ratio
        for label, layers, length, ratio in ratios.iter_rows()
    }
    tasks = table.filter(text="task induction", protocol="recall")
    found = []
    for (label, layers, heads), lines in tasks.group_by(
        "label", "layers", "heads", maintain_order=True
    ):
        longest = lines["length"].max()
        home = float(np.mean(lines.filter(length=64)["accuracy"].to_numpy()))
        far = lines.filter(col("distance") > 64, length=longest)["accuracy"].to_numpy()
        ratio = known.get((SAME_BIAS.get(label, label), 4, longest))
        if layers == 2 or ratio is not None:
            more = [f"layers {layers}"] * (layers != 2) + [f"heads {heads}"] * (heads != 4)
            name, seeds = ", ".join([label, *more]), lines["seed"].n_unique()
            found.append(Both(name, seeds, home >= LEARNED, float(np.mean(far)), ratio))
    return found


def _short(label: str) -> str:
    """The name of a mechanism in the picture: its layers in brackets, windows of rotary layers."""
    label = label.replace(" rotary", "").replace(", layers 4", " (4)")
    return label.replace("1 head 1", "1 local head").replace(", heads 8", " of 8")


def hold_and_use() -> Drawing:
    """How well keys beyond the training length are used, against how far the loss holds."""
    found = sorted(both(), key=lambda b: -b.used)
    with_loss = {b: b.ratio for b in found if b.ratio is not None}
    learned = [b for b in found if b.learned]
    aside = [b for b in learned if b.ratio is None]
    look: Any = {"marker": "o", "clip_on": False}
    points = [
        Named(
            _short(b.label) * b.learned,
            [ratio],
            [b.used],
            look=look if b.learned else look | {"fillstyle": "none"},
            told=False,
        )
        for b, ratio in with_loss.items()
    ]
    named = [p for p in points if p.name]
    columns = {
        0.14: [p for p in named if p.x[0] <= HOLDS],
        0.88: [p for p in named if p.x[0] > HOLDS],
    }
    axes = {
        "xscale": "log",
        "xlim": (0.96, 1.2 * max(with_loss.values())),
        "ylim": (-0.06, 1.04),
        "xlabel": "perplexity ratio (log)",
        "ylabel": "right answers beyond the training length",
    }
    well = [b for b in learned if b.used >= 0.5]
    known = {b.label: b.ratio for b in well if b.ratio is not None}
    held = [label for label, ratio in known.items() if ratio <= HOLDS]
    return Drawing(
        Data(
            ("mechanism", "models", "learned", "used", "ratio of perplexity"),
            tuple((b.label, b.seeds, str(b.learned).lower(), b.used, b.ratio) for b in found),
        ),
        f"{len(well)} of the {len(learned)} mechanisms that learned their task still answer most "
        f"questions beyond the training length, on rows of 16 times that length. The loss was "
        f"measured for {len(known)} of these; it holds for "
        f"{'all of them' if len(held) == len(known) else '; '.join(held) or 'none'}. Hollow: "
        "mechanisms that did not learn the task at home, so they say nothing of far keys. The loss "
        "holds left of the grey line. Windows are those of rotary layers; (4): four layers.",
        charted(4, Panel(points, axes, (1, 1.5, 2), upright=[HOLDS], columns=columns)),
        made="Answers: models of 2 layers (of 4 where a name says so) and 4 heads that repeat what "
        "once followed a token. Loss: language models of 4 layers and 8 heads with the same "
        "biases, as many heads local. "
        f"Hollow: {'; '.join(b.label for b in with_loss if not b.learned)}. Right answers of those "
        f"whose loss was not measured: {'; '.join(f'{b.label} {b.used:.2f}' for b in aside)}.",
    )
