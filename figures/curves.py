"""The measured figures of the papers, at the scale of the runs there are.

Each asks for the encodings of the printed figure, draws those that were trained in one setting,
and says which of them are not among the runs. Without any, it is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from farfield.figures.exhibit import Data, Drawing, Exhibit, NoResults
from farfield.figures.line_names import Named, name_lines
from farfield.figures.samples import (
    MODE,
    Run,
    Sample,
    command,
    conditions,
    reference,
    settings,
    subject,
)
from farfield.figures.style import (
    INK,
    LINES,
    house,
    new_figure,
    of_verdict,
    plain_ticks,
    round_numbers,
    spoken,
    told_apart,
)
from farfield.theory.answers.answer import InputError
from farfield.theory.answers.number import listed
from farfield.theory.convergence import Verdict, check_convergence
from farfield.validation.claims.gradients import STEP, gradients
from farfield.validation.extrapolation import TOLERANCE


def samples(runs: Sequence[Run], wanted: Sequence[str], figure: str) -> list[Sample]:
    """The curves of a figure: the wanted samples of the one setting that has the most of them.

    Args:
        runs: what there is.
        wanted: labels, as `settings` takes them.
        figure: the id.

    Raises:
        NoResults: none of the wanted encodings was trained; the message names the command.
    """
    found = settings(runs, wanted)
    if not found:
        raise NoResults(f"no runs of {', '.join(wanted)}; {how(wanted, figure)}")
    return found[0]


def how(wanted: Sequence[str], figure: str, options: str = "") -> str:
    """The commands that make the runs of a figure, and then the figure."""
    labels = list(dict.fromkeys(w.partition(MODE)[0] for w in wanted))
    known = [f"`{command(name, options=options)}`" for name in labels]
    commands = "; ".join(known if len(known) <= 3 else [known[0], "and so for the others"])
    return f"to make them: {commands}; `farfield figures {figure} --runs runs`"


def bands(found: Sequence[Sample]) -> str:
    """What lines and bands are, where there are bands."""
    several = any(len(s.runs) > 1 for s in found)
    return " Lines are means over seeds, bands from the least to the greatest." * several


def kept(curves: Curves, trained: int) -> str:
    """Which perplexities hold from the training length to the longest row, which rise, and by
    which factor."""
    said: dict[bool, list[str]] = {True: [], False: []}
    for s, values in curves:
        ratio = float(np.mean(values[max(values)])) / float(np.mean(values[trained]))
        stays = ratio <= 1 + TOLERANCE
        said[stays].append(spoken(s.label) if stays else f"{spoken(s.label)} {ratio:.3g}-fold")
    longest = max(n for _, values in curves for n in values)
    parts = [f"hold for {listed(said[True])}"] * bool(said[True])
    parts += [f"rise for {listed(said[False])}"] * bool(said[False])
    return f"From {trained} to {longest} tokens perplexities {'; they '.join(parts)}."


def absent(found: Sequence[Sample], wanted: Sequence[str], options: str = "") -> str:
    """A sentence on what the printed figure shows and the runs do not hold."""
    names = [w for w in wanted if w not in {s.label for s in found}]
    if not names:
        return ""
    commands = dict.fromkeys(f"`{command(name, options=options)}`" for name in names)
    return f" Not among the runs: {', '.join(names)}; to make them: {'; '.join(commands)}."


HEADS = 8
COLOURS_SAY = "Green: the series converges; orange: it diverges; grey: no such verdict."
Curves = list[tuple[Sample, Mapping[float, Sequence[float]]]]


def _calm(curves: Curves) -> Curves:
    """The curves that would lie on each other below one that rises far above them."""
    means = [[float(np.mean(v)) for v in values.values()] for _, values in curves]
    least = min(map(min, means))
    flat = [curve for curve, m in zip(curves, means, strict=True) if max(m) < 1.5 * least]
    return flat if 1 < len(flat) < len(curves) and max(map(max, means)) > 2 * least else []


def _draw(
    axes: Any, curves: Curves, order: Sequence[str], apart: Sequence[float] = ()
) -> list[Named]:
    """Means over seeds by x, with a band from the least to the greatest; returns what to name.

    Args:
        axes: where.
        curves: values over seeds by x, of each sample.
        order: the labels of the whole figure, in which a line has its place.
        apart: values of x that were measured otherwise, to which no line is drawn.
    """
    lines = []
    for sample, values in curves:
        points = [
            p for k, v in values.items() for p in [(np.nan, [np.nan])] * (k in apart) + [(k, v)]
        ]
        x, ink = [k for k, _ in points], colour_of(sample.label)
        line = Named(spoken(sample.label), x, [float(np.mean(v)) for _, v in points], ink)
        style = told_apart(order.index(sample.label)) | {"color": ink, "clip_on": False}
        axes.plot(x, line.y, label=line.name, **style)
        if len(sample.runs) > 1:
            low, high = ([f(v) for _, v in points] for f in (min, max))
            axes.fill_between(x, low, high, color=ink, alpha=0.18, linewidth=0)
        lines.append(line)
    return lines


@cache
def colour_of(label: str) -> str:
    """The colour of the verdict on the series of an encoding; with a window or blockwise attention
    its support is bounded, so that it converges."""
    base, _, mode = label.partition(MODE)
    if mode:
        return of_verdict(Verdict.CONVERGES)
    with suppress(InputError):  # a run of a formula of one's own
        return of_verdict(check_convergence(subject(base).encoding(HEADS)).verdict)
    return of_verdict(None)


def perplexity(
    runs: Sequence[Run],
    *,
    figure: str,
    wanted: Sequence[str],
    protocol: str = "non-overlapping",
    printed: str = "",
) -> Drawing:
    """Perplexity by context length, the mean over seeds with its range."""
    found = samples(runs, wanted, figure)
    curves: Curves = []
    rows: list[tuple[Any, ...]] = []
    for s in found:
        values = s.perplexity(protocol)
        curves.append((s, {n: list(by.values()) for n, by in values.items()}))
        rows += [(s.label, seed, n, v) for n, by in values.items() for seed, v in by.items()]
    calm = _calm(curves)
    shown = {row[2] for row in rows}
    with house(column=True):
        drawn, panels = new_figure(4.4 if calm else 2.8, rows=2 if calm else 1)
        named = []
        for axes, some in zip(np.atleast_1d(panels), (curves, calm), strict=False):
            lines = _draw(axes, some, [s.label for s in found], _far(found))
            _lengths(axes, shown, found[0].length)
            axes.set_ylabel("perplexity (log)")
            low = [spoken(s.label) for s, _ in calm] if some is curves else []
            named.append((axes, [line for line in lines if line.name not in low]))
        axes.set_xlabel("context length (tokens, log)")
        name_lines(drawn, *named)
    below = " Below: those that stay flat, on a scale of their own." * bool(calm)
    return Drawing(
        Data(("encoding", "seed", "length", "perplexity"), tuple(rows)),
        f"{kept(curves, found[0].length)} {COLOURS_SAY} Upright: the training length.{below}",
        drawn,
        made=f"{conditions(found)}{bands(found)} Protocol: {protocol}.{_elsewhere(found)}{printed}"
        f"{absent(found, wanted)}",
    )


def _far(found: Sequence[Sample]) -> list[int]:
    """The lengths that were scored on a text of their own."""
    rows = [
        p
        for s in found
        for m in s.measurements
        for p in m["perplexity"]
        if p["protocol"] == "non-overlapping"
    ]
    base = {p.get("targets") for p in rows if p["length"] == found[0].length}
    return sorted({p["length"] for p in rows if p.get("targets") not in base})


def _elsewhere(found: Sequence[Sample]) -> str:
    """A sentence on those lengths."""
    if not (far := _far(found)):
        return ""
    return (
        f" At {', '.join(map(str, far))} tokens other targets were scored, so no line goes there: "
        "drawn is the ratio on these times the perplexity at the training length."
    )


def _lengths(axes: Any, lengths: set[int], trained: int) -> None:
    """Both axes logarithmic, the training length marked."""
    axes.axvline(trained, color="#888888", linewidth=0.8, zorder=0)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(right=max(lengths))
    shown = sorted(lengths)
    plain_ticks(axes.xaxis, shown if len(shown) < 7 else shown[:: len(shown) // 6 + 1])
    plain_ticks(axes.yaxis, round_numbers(*axes.get_ylim()))


_WINDOWS = "--tested 8,16,32,64"
"""The lengths, up to that of the reference runs, that the figure of windows needs."""


def _shorter(m: Mapping[str, Any], trained: int) -> bool:
    return any(p["length"] < trained for p in m["perplexity"])


def windows(runs: Sequence[Run], *, figure: str, wanted: Sequence[str]) -> Drawing:
    """Perplexity of sliding and of non-overlapping windows no longer than the training length."""
    modes = {"last token": "sliding window", "non-overlapping": "nonoverlapping window"}
    groups = settings(runs, wanted, _shorter)
    if not groups:
        raise NoResults(
            f"no runs of {', '.join(wanted)} with windows shorter than the training length; "
            + how(wanted, figure, _WINDOWS)
        )
    found = groups[0]
    rows: list[tuple[Any, ...]] = []
    lines: list[Named] = []
    with house(column=True):
        drawn, axes = new_figure(2.8)
        for k, s in enumerate(found):
            for (protocol, mode), dash in zip(modes.items(), LINES, strict=False):
                values = {n: by for n, by in s.perplexity(protocol).items() if n <= s.length}
                rows += [
                    (s.label, mode, seed, n, v)
                    for n, by in values.items()
                    for seed, v in by.items()
                ]
                means = [float(np.mean(list(by.values()))) for by in values.values()]
                name = f"{spoken(s.label)}, {mode.removesuffix(' window')}"
                line = Named(name, [*values], means, colour_of(s.label))
                style = told_apart(k) | {"linestyle": dash, "clip_on": False}
                axes.plot(line.x, line.y, label=line.name, color=line.colour, **style)
                lines.append(line)
        _lengths(axes, {row[3] for row in rows}, found[0].length)
        axes.set(xlabel="inference window (tokens, log)", ylabel="perplexity (log)")
        name_lines(drawn, (axes, lines))
    better = [a <= b for one, two in _by_mode(lines) for a, b in zip(one.y, two.y, strict=True)]
    return Drawing(
        Data(("encoding", "mode", "seed", "window", "perplexity"), tuple(rows)),
        f"Sliding windows have the lower perplexity in {sum(better)} of {len(better)} cases. "
        "Solid: sliding windows, scored at their last token (stride 1). Dashed: windows that do "
        f"not overlap, scored at every token. {COLOURS_SAY}",
        drawn,
        made=f"{conditions(found)} The targets of the two differ; those of sliding windows are "
        "sampled. The paper lists windows of 16 to 512 tokens and does not name the "
        f"data.{absent(found, wanted, _WINDOWS)}",
    )


def _by_mode(lines: Sequence[Named]) -> Sequence[tuple[Named, Named]]:
    """The sliding and the nonoverlapping line of each encoding."""
    return list(zip(lines[::2], lines[1::2], strict=True))


def cumulative_gradient(
    runs: Sequence[Run],
    *,
    figure: str,
    wanted: Sequence[str],
    printed: str = "",
    every_length: bool = False,
) -> Drawing:
    """Share of the input gradient on the nearest tokens, by their number."""
    found = samples(runs, wanted, figure)
    if every_length:  # the printed figure has one curve a training length
        found = [s for group in settings(runs, wanted) for s in group if _same(s, found[0])]
    curves: Curves = []
    rows: list[tuple[Any, ...]] = []
    for s in sorted(found, key=lambda s: s.length) if every_length else found:
        measured = [m["gradient"]["curve"] for m in s.measurements]
        curves.append((s, {p[0]: [c[k][1] for c in measured] for k, p in enumerate(measured[0])}))
        rows += [
            (s.label, s.length, seed, tokens, share)
            for seed, curve in zip(s.seeds, measured, strict=True)
            for tokens, share in curve
        ]
    with house(column=True):
        drawn, axes = new_figure(2.8)
        lines = _draw(axes, curves, [s.label for s, _ in curves])
        if len({s.label for s in found}) < len(found):
            own = [f"{spoken(s.label)}, trained on {s.length}" for s, _ in curves]
            lines = [replace(line, name=name) for line, name in zip(lines, own, strict=True)]
            for line, name, dash in zip(axes.lines, own, LINES, strict=False):
                line.set(label=name, linestyle=dash)
        for length in {s.length for s in found}:
            axes.axvline(length, color="#888888", linewidth=0.8, zorder=0)
        axes.set_xscale("log", base=2)
        axes.set_xlim(right=max(curves[0][1]))
        plain_ticks(axes.xaxis, [t for t in curves[0][1] if t.bit_length() % 2])  # type: ignore[attr-defined]
        axes.set(xlabel="nearest tokens (log)", ylabel="cumulative gradient share", ylim=(0, 1.02))
        name_lines(drawn, (axes, lines))
    gradient = found[0].measurements[0]["gradient"]
    return Drawing(
        Data(("encoding", "trained", "seed", "nearest tokens", "gradient share"), tuple(rows)),
        f"Within the training length lies a share of the gradient of {_within(curves)}. Upright: "
        f"the training length. {COLOURS_SAY}",
        drawn,
        made=f"{conditions(found)}{bands(found)} Gradient of the {gradient['scalar']}, mean over "
        f"{gradient['segments']} segments of {gradient['length']} tokens. The print shows the sum "
        f"from the first position on, at position 2048.{printed}{absent(found, wanted)}",
    )


def _within(curves: Curves) -> str:
    """Share of the gradient on the tokens of the training length, of each encoding."""
    several = len({s.length for s, _ in curves}) > 1
    shares = [
        f"{np.mean(values[s.length]):.0%} for {spoken(s.label)}" + f" ({s.length})" * several
        for s, values in curves
        if s.length in values
    ]
    return listed(shares, 20)


def gradient_by_position(
    runs: Sequence[Run], *, figure: str, wanted: Sequence[str], printed: str = ""
) -> Drawing:
    """The cumulative gradient from the first position on, token by token as the print has it.

    The runs keep it at powers of two only; models of the reference runs that were measured at every
    few tokens stand in `claims/gradients.json`. Where there are none, the curve of the runs.
    """
    found = [g for g in gradients() if g["name"] in wanted]
    committed = {run["key"] for run in reference()} <= {run.get("key") for run in runs}
    if not found or not committed:
        return cumulative_gradient(
            runs, figure=figure, wanted=wanted, printed=printed, every_length=True
        )
    lengths = sorted({g["trained"] for g in found})
    rows: list[tuple[Any, ...]] = []
    with house(column=True):
        drawn, (whole, near) = new_figure(4.2, rows=2)
        lines: dict[Any, list[Named]] = {whole: [], near: []}
        for k, length in enumerate(lengths):
            models = [g for g in found if g["trained"] == length]
            shares = np.cumsum([g["shares"][::-1] for g in models], axis=1)
            position = STEP * np.arange(1, shares.shape[1] + 1)
            rows += [
                (g["name"], length, g["seed"], int(p), float(share))
                for g, curve in zip(models, shares, strict=True)
                for p, share in zip(position, curve, strict=True)
            ]
            for axes, end in ((whole, position[-1]), (near, 2 * lengths[-1])):
                p, *parts = (a[position <= end] for a in (position, *shares))
                line = Named(f"trained on {length}", p, np.mean(parts, 0))
                axes.plot(p, line.y, label=line.name, color=INK, linestyle=LINES[k])
                band = {"alpha": 0.18, "linewidth": 0, "color": INK}
                axes.fill_between(p, np.min(parts, 0), np.max(parts, 0), **band)
                axes.axvline(length, color=INK, linewidth=0.7, linestyle=":")
                lines[axes].append(line)
        for axes, end in ((whole, position[-1]), (near, 2 * lengths[-1])):
            axes.set(xlim=(0, end), ylim=(0, 1.02), ylabel="cumulative gradient")
            axes.set_xticks(np.linspace(0, end, 5))
        near.set_xlabel("position in the row (tokens)")
        name_lines(drawn, *lines.items())
    jumps = ", ".join(
        f"{np.mean([_within_jump(g) for g in found if g['trained'] == n]):.0%} where that is {n}"
        for n in lengths
    )
    return Drawing(
        Data(("encoding", "trained", "seed", "position", "cumulative gradient"), tuple(rows)),
        f"Near the training length, within an eighth of it, lies a share of the gradient of "
        f"{jumps}. Dotted: the training length; below: the positions around it.",
        drawn,
        made=f"Measured: {found[0]['scale'].partition(', trained')[0]}; trained on "
        f"{' and '.join(map(str, lengths))} tokens, {len(found)} models of the reference runs, the "
        f"gradient in steps of {STEP} tokens, rows of {position[-1]}, predicting the last."
        f"{printed}",
    )


def _within_jump(g: Mapping[str, Any]) -> float:
    """Share of the gradient within an eighth of the training length of it, from the first token."""
    shares, n = g["shares"][::-1], g["trained"]
    return float(sum(s for k, s in enumerate(shares) if abs(STEP * (k + 1) - n) <= n / 8))


def _same(s: Sample, other: Sample) -> bool:
    """Whether two samples differ in the training length alone."""
    a, b = s.runs[0], other.runs[0]
    kept = ("layers", "width", "heads", "steps")
    return a["text"]["sha256"] == b["text"]["sha256"] and all(
        a["preset"][k] == b["preset"][k] for k in kept
    )


def attention_fields(runs: Sequence[Run], *, figure: str, wanted: Sequence[str]) -> Drawing:
    """Attention ERF of trained models by eps, over the row length."""
    found = samples(runs, wanted, figure)
    curves: Curves = []
    rows: list[tuple[Any, ...]] = []
    for s in found:
        fields = [m["attention"] for m in s.measurements]
        rows += [
            (s.label, seed, f["eps"], f["length"], f["tokens"], f["trf"])
            for seed, measured in zip(s.seeds, fields, strict=True)
            for f in measured
        ]
        shares = {
            f["eps"]: [m[k]["tokens"] / f["length"] for m in fields]
            for k, f in enumerate(fields[0])
        }
        curves.append((s, dict(sorted(shares.items(), reverse=True))))
    least = min(curves[0][1])
    with house(column=True):
        drawn, axes = new_figure(2.8)
        lines = _draw(axes, curves, [s.label for s in found])
        axes.set(xscale="log", yscale="log", xlabel="eps (log)")
        axes.set(xlim=(max(curves[0][1]), least), ylabel="attention ERF / row length (log)")
        plain_ticks(axes.xaxis, sorted(curves[0][1]))
        plain_ticks(axes.yaxis, round_numbers(*axes.get_ylim()))
        name_lines(drawn, (axes, lines))
    field = found[0].measurements[0]["attention"][0]
    needs = [f"{np.mean(values[least]):.0%} for {spoken(s.label)}" for s, values in curves]
    return Drawing(
        Data(("encoding", "seed", "eps", "row", "attention ERF", "TRF of the rows"), tuple(rows)),
        f"All but {least:g} of the attention needs a share of the {field['length']} tokens of "
        f"{listed(needs, 20)}. {COLOURS_SAY}",
        drawn,
        made=f"{conditions(found)}{bands(found)} Attention ERF, {field['averaged']}. The paper "
        f"does not say its eps grid, normalisation or aggregation.{absent(found, wanted)}",
    )


def repeated(runs: Sequence[Run], *, first: str) -> Drawing:
    """A figure whose repeat on another text is printed; the reference runs have one text."""
    raise NoResults(
        f"the repeat of {first} on a second text; to make it: `farfield train ... --text FILE "
        f"--runs other`; `farfield figures {first} --runs other`"
    )


def measured(
    draw: Callable[..., Drawing], name: str, wanted: Sequence[str], **options: Any
) -> Exhibit:
    """The exhibit of a measured figure.

    Args:
        draw: one of this module's.
        name: the id.
        wanted: labels of the encodings, as `settings` takes them.
        options: of `draw`.
    """
    return Exhibit(name, partial(draw, figure=name, wanted=wanted, **options))
