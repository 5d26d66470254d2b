"""The page of an audit: what a model's positional encoding is, head by head."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from farfield.figures.pages.study import VERDICT, document, table
from farfield.figures.style import INK, house, new_figure, svg
from farfield.validation.files import writable_folder, write
from farfield.validation.outside.audit import BOUNDS, Audit, spans
from farfield.validation.outside.windows import keys_text
from farfield.validation.short import share_text

FRAME = 10**9
"""The widest window that is drawn."""


def write_audit(a: Audit, folder: str | os.PathLike[str]) -> Path:
    """Write `index.html` and `audit.json` into a folder; returns the page's path.

    Raises:
        InputError: the folder cannot be written to.
    """
    place = writable_folder(folder)
    write(place / "audit.json", a.to_json().encode())
    write(place / "index.html", audit_page(a).encode())
    return place / "index.html"


def audit_page(a: Audit) -> str:
    """The page as HTML text."""
    sections = [("What the encoding is", _encoding(a))]
    if a.heads:
        sections.append(("How far each head sees", _figure(a) + _heads(a)))
        sections.append(("Certified windows", _windows(a)))
    if a.surrogate is not None:
        sections.append(("The additive surrogate", _surrogate(a)))
    sections.append(("What the numbers are", _definitions(a)))
    return document(f"Audit of {a.model}", f"<p>{escape(a.headline)}.</p>", sections)


def _encoding(a: Audit) -> str:
    parts = [f"<p>Source: {escape(a.source)}.</p>"]
    if a.note:
        parts.append(f"<p>{escape(a.note[0].upper() + a.note[1:])}.</p>")
    parts.append(f"<p>Training length: {a.trained} tokens ({escape(a.trained_from)}).</p>")
    if a.out_of_scope:
        parts.append(
            f'<p><span class="out_of_scope">out of scope</span>: {escape(a.out_of_scope)} '
            f'<span class="label">{a.label}</span></p>'
        )
    if a.heads:
        verdicts = [h.verdict for h in a.heads]
        counts = ", ".join(
            f'<span class="{v}">{v.replace("_", " ")}</span> {verdicts.count(v)} of {len(verdicts)}'
            for v in dict.fromkeys(verdicts)
        )
        parts.append(f'<p>Heads: {counts} <span class="label">theorem</span></p>')
    return "".join(parts)


def _heads(a: Audit) -> str:
    head = [
        "layers", "head", "bias", "verdict", *(f"TRF({e})" for e in a.eps),
        *(f"TRF({e}), row of {a.lengths[-1]}" for e in a.eps),
        *(f"leak to {n}" for n in a.lengths), *(f"{d} horizon" for d in a.dtypes),
    ]  # fmt: skip
    rows, seen = [], set()
    for h in a.heads:
        shown = (
            h.head, h.bias, h.verdict, h.receptive_fields, h.row_fields, h.leaks, h.horizons
        )  # fmt: skip
        if shown in seen:  # layers that differ in their bounds alone
            continue
        seen.add(shown)
        layers = sorted({k for other in a.heads if _same(h, other) for k in other.layers})
        rows.append([
            spans(layers), str(h.head), f"<span>{escape(h.bias)}</span>",
            f'<span class="{h.verdict}">{h.verdict.replace("_", " ")}</span>',
            *h.receptive_fields, *h.row_fields, *(escape(share_text(x)) for x in h.leaks),
            *map(keys_text, h.horizons),
        ])  # fmt: skip
    caption = (
        "One line a head. Receptive fields and horizons in tokens, exact integers; the leak is the "
        f"share of a row's prior mass beyond {a.trained} tokens; certified. Infinite where the "
        "series diverges: the receptive field of a finite row then still tells how far it sees."
    )
    return table(head, rows, caption, left=(2, 3))


def _same(a: object, b: object) -> bool:
    names = (
        "head", "bias", "verdict", "receptive_fields", "row_fields", "leaks", "horizons"
    )  # fmt: skip
    return all(getattr(a, n) == getattr(b, n) for n in names)


def _windows(a: Audit) -> str:
    rows = [
        [
            spans(h.layers), str(h.head), keys_text(h.window),
            f"{h.logit_bound:.4g}", f"{h.value_bound:.4g}",
        ]
        for h in a.heads
    ]  # fmt: skip
    widest = a.sliding_window
    lead = (
        f"<p>Widest: <strong>{keys_text(widest)}</strong> tokens, the value for a setting such as "
        "<code>sliding_window</code>.</p>"
        if widest is not None
        else "<p>No window serves all heads.</p>"
    )
    caption = (
        f"Keys that keep the output of a head within {a.error} in norm, before the output "
        f"projection, one layer, exact arithmetic; {BOUNDS[a.bounds]}. The whole model is another "
        "question: <code>farfield window --model</code> measures it."
    )
    head = ["layers", "head", "window", "logits within", "values within"]
    why = "".join(
        f"<p>Where there is none: {escape(reason)}.</p>"
        for reason in dict.fromkeys(h.reason for h in a.heads if h.reason)
    )
    return lead + why + table(head, rows, caption)


def _figure(a: Audit) -> str:
    figure = windows_figure(a)
    if figure is None:
        return ""
    caption = (
        "Certified window (dots, one a layer where they differ) and theoretical receptive field "
        f"at eps = {a.eps[-1]} (bars) of each head whose window has at most {FRAME:,} tokens; "
        "dashed, the training length."
    )
    return (
        f'<figure role="img" aria-label="{escape(caption)}">{svg(figure, "windows")}'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def windows_figure(a: Audit) -> Figure | None:
    """Windows and receptive fields by head; None where no head has a window within the frame."""
    shown = [
        h
        for h in a.heads
        if h.window is not None and h.window <= FRAME and h.receptive_fields[-1].isdigit()
    ]
    if not shown:
        return None
    with house():
        figure, axes = new_figure(6.4, 3.4)
        fields = {h.head: int(h.receptive_fields[-1]) for h in shown}
        axes.bar(list(fields), list(fields.values()), color="#0072b2", alpha=0.35, width=0.7)
        axes.plot(
            [h.head for h in shown], [h.window for h in shown], "o", color="#d55e00", markersize=4
        )
        axes.axhline(a.trained, color=INK, linestyle="--", linewidth=1)
        axes.set(yscale="log", xlabel="head", ylabel="tokens")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        return figure


def _surrogate(a: Audit) -> str:
    s = a.surrogate
    assert s is not None
    rows = [
        [f"TRF({e}), row of {a.lengths[-1]} keys", str(t), s.label]
        for e, t in zip(a.eps, s.row_fields, strict=True)
    ]
    rows += [
        [f"leak from {a.trained} to {n}", share_text(x), s.label]
        for n, x in zip(a.lengths, s.leaks, strict=True)
    ]
    lead = (
        f"<p>Where queries and keys are all ones, the logit is <code>{escape(s.bias)}</code> with "
        f"a = {escape(s.scale)}, a function of the distance alone. Its exp-series "
        f'<span class="{s.verdict}">{s.verdict}</span> <span class="label">theorem</span>. This is '
        "the surrogate, not the model: with other queries and keys a rotation gives other "
        "logits.</p>"
    )
    return lead + table(["quantity", "value", "label"], rows, "In float64.", left=(2,))


def _definitions(a: Audit) -> str:
    rows = (
        ("verdict", VERDICT),
        ("TRF(eps)", "the least number of nearest keys that hold all but a share eps of the prior "
         "mass, of the whole series or of one row [Q, Eq. 22]."),
        ("leak", f"prior mass of a row beyond the training length of {a.trained} tokens (ours)."),
        ("horizon", "the distance from which on weights round to 0 in a floating-point type, "
         "relative to that of the query's own key (ours)."),
        ("certified window", "keys that are provably enough for the error budget, for all inputs "
         "within the bounds; no smaller window can be guaranteed (ours)."),
    )  # fmt: skip
    return "".join(f"<h3>{k}</h3><p>{escape(v)}</p>" for k, v in rows) + (
        "<p class=soft>[Q] Qin et al., Exploring Transformer Extrapolation, AAAI 2024. Certified: "
        "by rigorous ball arithmetic.</p>"
    )
