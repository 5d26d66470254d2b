"""The one renderer of pages: a study as self-contained HTML, without scripts or network.

Formulas are MathML, figures inline SVG. The page follows the reader's light or dark scheme, fits
a phone (wide tables scroll within themselves) and prints.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

from farfield.figures import measured, predicted
from farfield.figures.style import svg
from farfield.numerics.receptive_field import ReceptiveField
from farfield.theory.answers.mathml import math, proof_html
from farfield.theory.convergence import Convergence, Verdict
from farfield.validation.runs import write
from farfield.validation.study import (
    PLACE_EPS,
    TOLERANCE,
    Entry,
    Prediction,
    Study,
    findings,
    last_token_ratio,
    tokens_text,
    writable_folder,
)

STYLE = """
:root{color-scheme:light dark;--ink:#1a1b1c;--paper:#fdfdfc;--soft:#5c6066;--line:#d9dbde;
--panel:#f3f4f4;--yes:#00684a;--no:#a33d00;--open:#5b4b9a}
@media (prefers-color-scheme:dark){:root{--ink:#e6e6e4;--paper:#17181a;--soft:#a5a9af;
--line:#3a3d41;--panel:#202225;--yes:#5fc9a2;--no:#f0965a;--open:#b0a4f0}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:76rem;padding:1.2rem 1rem 4rem;background:var(--paper);
color:var(--ink);font:16px/1.55 system-ui,sans-serif;overflow-wrap:break-word}
h1{font-size:1.7rem;line-height:1.2;margin:.4rem 0 .6rem}
h2{font-size:1.25rem;margin:2.4rem 0 .6rem;border-bottom:1px solid var(--line)}
h3{font-size:1rem;margin:1.2rem 0 .3rem}
p,li{max-width:48rem}.soft{color:var(--soft);font-size:.92rem}
nav ul{padding-left:1.1rem}a{color:inherit}
.wide{overflow-x:auto;margin:.6rem 0 1rem;
background:linear-gradient(90deg,var(--paper) 40%,transparent) left/3rem 100% no-repeat local,
linear-gradient(270deg,var(--paper) 40%,transparent) right/3rem 100% no-repeat local,
linear-gradient(90deg,var(--soft),transparent) left/.7rem 100% no-repeat,
linear-gradient(270deg,var(--soft),transparent) right/.7rem 100% no-repeat}
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}
th,td{padding:.28rem .6rem;text-align:right;border-bottom:1px solid var(--line);
white-space:nowrap;vertical-align:top}
th:first-child,td:first-child{text-align:left}th{font-weight:600;vertical-align:bottom}
td.left,th.left{text-align:left}td.left{white-space:normal;min-width:7rem;max-width:24rem}
.converges{color:var(--yes);font-weight:600}.diverges{color:var(--no);font-weight:600}
.conditional,.undecided,.out_of_scope{color:var(--open);font-weight:600}
td>span{white-space:nowrap}td.left>span.soft{white-space:normal}
.label{font-size:.75rem;border:1px solid var(--line);border-radius:.6rem;padding:.05rem .5rem;
color:var(--soft);white-space:nowrap}
figure{margin:1rem 0;overflow:hidden}figure svg{max-width:100%;height:auto}
figure.column svg{width:28rem}
figcaption{color:var(--soft);font-size:.88rem;max-width:48rem}
details{margin:.35rem 0;border:1px solid var(--line);border-radius:.3rem;background:var(--panel)}
summary{cursor:pointer;padding:.35rem .7rem}details>div{padding:.1rem .8rem .6rem;overflow-x:auto}
code{font-size:.88em}math{font-size:1.02em}
ol,section>p{overflow-x:auto;overflow-y:hidden;padding-bottom:.1rem}
@media(max-width:30rem){th,td{padding:.28rem .35rem}td.left{min-width:5rem;max-width:9rem}}
@media print{details>div{display:block}body{max-width:none}}
"""


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], caption: str, left: Sequence[int] = (),
    title: str = "",
) -> str:  # fmt: skip
    """A table of ready HTML cells that scrolls within itself; columns in `left` align left. It is
    read out by its title, or by the first sentence of the caption."""

    def cells(row: Sequence[str], tag: str) -> str:
        scope = ' scope="col"' if tag == "th" else ""
        return "".join(
            f"<{tag}{scope}{' class=left' if i in left else ''}>{c}</{tag}>"
            for i, c in enumerate(row)
        )

    body = "".join(f"<tr>{cells(r, 'td')}</tr>" for r in rows)
    label = title or caption.split(".")[0]
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(label)}"><table>'
        f"<thead><tr>{cells(head, 'th')}</tr></thead><tbody>{body}</tbody></table></div>"
        f"<p class=soft>{caption}</p>"
    )


def document(title: str, lead: str, sections: Sequence[tuple[str, str]]) -> str:
    """A page from (heading, HTML) sections, with a table of contents."""
    contents = "".join(f'<li><a href="#s{i}">{escape(h)}</a></li>' for i, (h, _) in
                       enumerate(sections, 1))  # fmt: skip
    body = "".join(
        f'<section id="s{i}"><h2>{escape(h)}</h2>{content}</section>'
        for i, (h, content) in enumerate(sections, 1)
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>"
        f"<header><h1>{escape(title).replace('-', '-&NoBreak;')}</h1>{lead}</header>"
        f"<nav aria-label=Contents><ul>{contents}</ul></nav><main>{body}</main></body></html>\n"
    )


# -- a study --------------------------------------------------------------------------------------


def write_page(s: Study, folder: str | os.PathLike[str]) -> Path:
    """Write `index.html` and `study.json` of a study into a folder; returns the page's path.

    Raises:
        InputError: the folder cannot be written to.
    """
    place = writable_folder(folder) / "index.html"
    content = study_page(s).encode()
    s.save(folder)
    write(place, content)
    return place


def study_page(s: Study) -> str:
    """The page of a study as HTML text."""
    trained = [e for e in s.entries if e.run is not None]
    sections = [(e.prediction.name, _subject(s, e)) for e in s.entries if _asked(s, e)]
    if s.place is not None:
        sections.append(("Place among the catalogue", _place(s)))
    if trained:
        sections += [
            ("What the theory predicted, and what came true", _findings(s)),
            ("Measurements", _measurements(s) + _figures(s)),
        ]
    others = [e for e in s.entries if not _asked(s, e)]
    if others or len(s.entries) > 1:
        sections.append(("Theory: verdicts and receptive fields", _theory(s)))
    if others:
        sections.append(("Proofs", _proofs(others)))
    if s.claims:
        sections.append(("Claims of the three papers", _claims(s)))
    sections.append(("What the numbers are", _definitions(s)))
    return document(s.title, _lead(s, trained), sections)


def _lead(s: Study, trained: Sequence[Entry]) -> str:
    verdicts = [e.prediction.convergence.verdict for e in s.entries]
    counts = ", ".join(
        f"{v.value.replace('_', ' ')} {verdicts.count(v)}" for v in Verdict if v in verdicts
    )
    many = "encoding" if len(verdicts) == 1 else "encodings"
    lead = f"<p>{len(verdicts)} {many}: {counts}."
    if trained:
        lead += (
            f" A model of {s.preset.layers} layers, {s.preset.width} wide, was trained with each "
            f"of {len(trained)} of them on rows of {s.preset.length} tokens and measured on up to "
            f"{s.lengths[-1]}."
        )
    return lead + "</p>"


def _asked(s: Study, e: Entry) -> bool:
    return e.prediction.name in s.asked


def _subject(s: Study, e: Entry) -> str:
    """All that the theory says of one encoding that was asked about."""
    p = e.prediction
    c = p.convergence
    label = ' <span class="label">theorem</span>' if c.converges is not None else ""
    parts = [f"<p>{_formula(p)}</p>", f"<p>{_verdict(c)}{label}</p>", _proof(c)]
    if p.missing:
        parts.append(f"<p>{escape(p.missing[0].upper() + p.missing[1:])}.</p>")
    rows: list[list[str]] = []
    for f in p.receptive_fields:
        rows.append([f"TRF({f.eps})", "whole series", tokens_text(f), *_detail(f)])
    for f in p.row_fields:
        row = f"row of {p.row_length} keys"
        rows.append([f"TRF({f.eps})", row, tokens_text(f), *_detail(f)])
    for k in p.leaks:
        by = ", ".join(_percent(h.value) for h in k.heads)
        rows.append(["leak", f"{k.trained} to {k.evaluated}", _percent(k.value), by, k.label])
    for h in p.horizons:
        by = ", ".join(_count(g.tokens) for g in h.heads) or escape(h.reason)
        rows.append(["dtype horizon", h.dtype, _count(h.tokens), by, _label(h)])
    if (r := p.resolution) is not None:
        by = ", ".join(f"{h.value:.3g}" for h in r.heads if h.value is not None)
        where = f"row of {r.length} tokens, scale {r.scale}"
        rows.append(["attention resolution", where, _number(r.value), by, r.label])
        limit = [_number(r.limit), escape(r.reason), "" if r.limit is None else r.label]
        rows.append(["attention resolution", "limit of long rows", *limit])
    if (d := p.layered) is not None:
        of = f"{d.layers} layers, mixing {d.mixing}, row of {d.length} tokens"
        rows.append(["layered receptive field", of, _count(d.tokens), escape(d.reason), d.label])
    if p.windowless and rows:
        rows.append(["certified window", "", "none", "the series diverges", "theorem"])
    for w in p.windows:
        of = f"error ≤ {w.error}, |logits| ≤ {w.logit_bound}, ‖values‖ ≤ {w.value_bound}"
        by = ", ".join(_count(h.width) for h in w.heads) or escape(w.reason)
        rows.append(["certified window", of, _count(w.width), by, w.label if w.width else ""])
    if rows:
        caption = (
            "TRF, leak, horizon, window: the worst head of several; resolution: their mean. The "
            "window is that of one layer in exact arithmetic, before the output projection."
        )
        head = ["quantity", "of", "value", "by head, or why not", "label"]
        parts.append(table(head, rows, caption, (1, 3, 4)))
    asymptotics = next((f.asymptotics for f in p.receptive_fields if f.asymptotics), None)
    if asymptotics:
        parts.append(f"<p>As eps → 0, TRF(eps) behaves as {convert(asymptotics)}.</p>")
    return "".join(parts)


def _detail(f: ReceptiveField) -> tuple[str, str]:
    """The cells of the heads, or of the reason, and of the label."""
    return ", ".join(map(tokens_text, f.heads)) or escape(f.reason), _label(f)


def _label(answer: Any) -> str:
    known = getattr(answer, "answer", answer.tokens) is not None or not answer.reason
    return str(answer.label) if known else ""


def _count(tokens: int | None) -> str:
    if tokens is None:
        return "none"
    return str(tokens) if tokens < 10**7 else f"{float(tokens):.2e}"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.6g}"


def _place(s: Study) -> str:
    assert s.place is not None
    own = list(dict.fromkeys(r.asked for r in s.place.relations))
    words = {(r.asked, r.reference): r.words() for r in s.place.relations}
    head = ["encoding", "bias", "verdict", *(f"TRF({e})" for e in PLACE_EPS)]
    head += [f"tail of {escape(name)}" for name in own]
    rows = []
    for r in s.place.ranks:
        name = f"<strong>{escape(r.name)}</strong>" if r.asked else escape(r.name)
        bias = escape(r.bias) if len(r.bias) < 60 else "…"
        verdict = f'<span class="{r.verdict.value}">{r.verdict.value.replace("_", " ")}</span>'
        tails = [words.get((a, r.name), "") for a in own]
        fields = map(tokens_text, r.receptive_fields)
        rows.append([name, f"<code>{bias}</code>", verdict, *fields, *tails])
    caption = (
        f"One reference head of each additive encoding, those that need the fewest keys at eps = "
        f"{PLACE_EPS[-1]} first; at a larger eps the order is often another. Series that diverge "
        "stand at the end. Exact integers, certified. The last columns: is the tail of the widest "
        "head lighter or heavier than that of the line, and up to which eps that is the order of "
        "the receptive fields too; certified."
    )
    last = range(len(head) - len(own), len(head))
    parts = [table(head, rows, caption, (1, 2, *last))]
    for name, draw, caption in (
        ("biases", predicted.biases, "The bias against its value at distance 0, thick: asked "
         "about; of several heads the one that falls slowest."),
        ("reach", predicted.fields, "TRF(eps) of the whole series, certified at 15 values of eps, "
         "worst head; only encodings whose series converges."),
    ):  # fmt: skip
        parts.append(_figure(svg(draw(s), name), caption))
    return "".join(parts)


def _figure(picture: str, caption: str) -> str:
    return (
        f'<figure role="img" aria-label="{escape(caption)}">{picture}'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def _findings(s: Study) -> str:
    items = "".join(
        f'<li>{escape(f.sentence)} <span class="label">{escape(f.label)}</span></li>'
        for f in findings(s)
    )
    return f"<ul>{items}</ul>"


def _verdict(c: Convergence) -> str:
    text = c.verdict.value.replace("_", " ")
    if c.heads:
        same = sum(h.verdict is c.verdict for h in c.heads)
        if same < len(c.heads):
            text += f" ({same} of {len(c.heads)} heads)"
    if c.verdict is Verdict.CONDITIONAL:
        text += f": {math(c.condition)}"
    return f'<span class="{c.verdict.value}">{text}</span>'


def _percent(x: float | None) -> str:
    if x is None:
        return ""
    if 0 < x < 1e-5:
        return "&lt; 0.001 %"
    return f"{100 * x:.3g} %" if x < 0.9995 or x == 1 else "&gt; 99.9 %"


def _measurements(s: Study) -> str:
    rows = []
    lengths = s.lengths
    for e in s.entries:
        for bca in (False, True):
            m = e.measurement(bca)
            if m is None:
                continue
            p = e.prediction
            by = {(r["protocol"], r["length"]): r for r in m["perplexity"]}
            last = [by.get(("last token", n)) for n in lengths]
            whole = [by.get(("non-overlapping", n)) for n in lengths]
            _, ratio, low, high = last_token_ratio(m)
            field, gradient = m["attention"][0], m["gradient"]
            rows.append([
                escape(p.name) + (" + BCA" if bca else ""),
                "converges: bounded support" if bca else _verdict(p.convergence),
                _percent(p.longest_leak) if not bca else "",
                *(f"{r['perplexity']:.2f}" if r else "" for r in last),
                f"{ratio:.3f} <span class=soft>[{low:.3f}, {high:.3f}]</span>",
                *(f"{r['perplexity']:.2f}" if r else "" for r in whole),
                f"{field['trf']:.1f}" if p.encoding.biases and not bca else "",
                f"{field['tokens']:.1f}",
                _count(p.layered.tokens) if p.layered is not None and not bca else "",
                f"{gradient['tokens']}",
                _percent(gradient["mass"]),
            ])  # fmt: skip
    eps = next(m["attention"][0]["eps"] for e in s.entries if (m := e.measurement()))
    head = [
        "encoding", "verdict", f"leak {lengths[0]}→{lengths[-1]}",
        *(f"last token {n}" for n in lengths), "ratio [95 %]",
        *(f"non-overl. {n}" for n in lengths), f"TRF({eps:g}) of the rows",
        f"attention ERF({eps:g})", "layered TRF", "gradient ERF(0.99)",
        f"gradient mass in {lengths[0]}",
    ]  # fmt: skip
    corpus = s.corpus or {}
    source = escape(str(corpus.get("source", "a text")))
    caption = (
        f"Perplexities by context length, two protocols; one seed, bytes of {source} (SHA-256 "
        f" <code>{str(corpus.get('sha256', ''))[:16]}…</code>). Ratio: last-token "
        f"perplexity at {lengths[-1]} over that at {lengths[0]}, paired on the same targets. "
        "Verdict: theorem; leak and TRF: certified or float64; layered TRF: approximate, "
        "a prediction of the gradient ERF; the rest: measured."
    )
    return table(head, rows, caption, left=(0, 1))


def _figures(s: Study) -> str:
    fields = next(m["attention"] for e in s.entries if (m := e.measurement()))
    eps = ", ".join(f"{f['eps']:g}" for f in fields)
    parts: tuple[tuple[str, Callable[[Study], Any], str], ...] = (
        ("curves", measured.perplexity_curves,
         "Last-token perplexity relative to the training length. Flat is extrapolation; one seed."),
        ("fields", measured.trf_against_erf,
         "Receptive field of the bias alone against that of the trained model's attention, at "
         f"eps = {eps} (joined), rows of {fields[0]['length']} tokens, means over heads. On the "
         "grey line they agree."),
        ("predictors", measured.predictors,
         "Two predictors of extrapolation: the leak, computed before training, and the gradient "
         "mass on the training length, measured."),
    )  # fmt: skip
    return "".join(_figure(svg(draw(s), name), caption) for name, draw, caption in parts)


def _field(tokens: int | None) -> str:
    if tokens is None:
        return "∞"
    return f"{tokens:,}".replace(",", "\u202f") if tokens < 10**15 else f"{tokens:.3e}"


def _theory(s: Study) -> str:
    first = s.entries[0].prediction
    head = ["encoding", "bias", "verdict"]
    eps = [str(f.eps) for e in s.entries for f in e.prediction.receptive_fields][:3]
    head += [f"TRF({e})" for e in eps]
    head += [f"TRF({e}), row of {first.row_length}" for e in eps]
    head += [f"leak to {n}" for n in s.lengths[1:]]
    rows = []
    for e in s.entries:
        p = e.prediction
        known = [_field(f.tokens) for f in p.receptive_fields]
        if not known:
            verdict = p.convergence.verdict
            known = ["∞" if verdict is Verdict.DIVERGES and p.row_fields else "–"] * len(eps)
        rows.append([
            escape(p.name), _formula(p), _verdict(p.convergence), *known,
            *([_field(f.tokens) for f in p.row_fields] or ["–"] * len(eps)),
            *([_percent(k.value) for k in p.leaks] or ["–"] * 2),
        ])  # fmt: skip
    caption = (
        "TRF(eps): the least number of nearest keys that hold all but a share eps of the prior "
        "mass; worst head of several. Infinite where the series diverges; then the finite-row "
        "TRF still tells how far a row sees. Leak: share of a row's prior mass beyond "
        f"{first.trained} tokens. Exact integers with ball arithmetic behind them; – where the "
        "encoding is not additive or has parameters without a value."
    )
    return table(head, rows, caption, left=(1, 2))


def _formula(p: Prediction) -> str:
    formula = p.encoding.formula
    if formula is None:
        return f"<span class=soft>{escape(str(p.encoding.mechanism).replace('_', ' '))}</span>"
    if len(str(formula)) > 160:
        said = textwrap.shorten(p.encoding.note or "a long formula", 60, placeholder=" …")
        return f"<span class=soft>{escape(said)}</span>"
    return math(formula)


def _proofs(entries: Sequence[Entry]) -> str:
    out = []
    for e in entries:
        c = e.prediction.convergence
        label = ' <span class="label">theorem</span>' if c.converges is not None else ""
        out.append(
            f"<details><summary>{escape(e.prediction.name)}: {_verdict(c)}{label}</summary>"
            f"<div>{_proof(c)}</div></details>"
        )
    return "".join(out)


def _proof(c: Convergence) -> str:
    inner = ""
    if c.reason:
        inner += f"<p>{escape(c.reason)}.</p>"
    if c.assumptions:
        inner += "<p>Assuming: " + escape(", ".join(f"{k} {d}" for k, d in c.assumptions)) + ".</p>"
    if c.heads:
        inner += table(
            ["head", "bias", "verdict"],
            [[str(h), math(r.formula) if len(str(r.formula)) < 160 else "…", _verdict(r)]
             for h, r in enumerate(c.heads, 1)],
            "One verdict a head; the proof below is that of the first such head.", left=(1, 2),
        )  # fmt: skip
    if c.proof.steps and c.verdict is not Verdict.OUT_OF_SCOPE:
        inner += proof_html(c.proof)
    return inner + f"<p class=soft>So: {escape(c.implication)}.</p>"


CLAIM_COLOURS = {"confirmed": "converges", "refuted": "diverges", "corrected": "diverges"}


def _claims(s: Study) -> str:
    """The ledger, a table a paper."""
    by_paper: dict[str, list[Any]] = {}
    for claim in s.claims:
        by_paper.setdefault(claim.paper, []).append(claim)  # type: ignore[attr-defined]
    parts = []
    for paper, found in by_paper.items():
        rows = []
        for c in found:
            verdict = str(c.verdict)
            colour = CLAIM_COLOURS.get(verdict, "undecided")
            more = f"<br><em>{escape(c.corrected or c.reason)}</em>"
            rows.append([
                f"<code>{escape(c.id.partition('.')[2])}</code>", escape(c.place),
                f'<span class="{colour}">{verdict.replace("_", " ")}</span>',
                escape(c.label), escape(c.statement) + more * bool(c.corrected or c.reason),
            ])  # fmt: skip
        verdicts = [str(c.verdict) for c in found]
        counts = ", ".join(
            f"{verdicts.count(v)} {v.replace('_', ' ')}" for v in dict.fromkeys(verdicts)
        )
        head = ["claim", "where", "verdict", "evidence", "statement; what holds, or why not"]
        parts.append(table(head, rows, f"{paper}: {counts}. Each verdict is computed by its check; "
                           f"again: farfield claims --paper {paper}", (1, 2, 3, 4)))  # fmt: skip
    return "".join(parts)


VERDICT = (
    "does the sum of exp(bias) over all distances converge? [Q, Theorem 0.4] and its converse "
    "(ours): exactly then a fixed window approximates full attention, uniformly over inputs, in "
    "one layer. Not a statement about perplexity."
)


def _definitions(s: Study) -> str:
    rows = (
        ("verdict", VERDICT),
        ("TRF(eps)", "min { j ≥ 0 : T_j &lt; eps B }, T_j the tail of the series, B its sum "
         "[Q, Eq. 22]; the finite-row TRF uses the sums of a row."),
        ("leak", "1 − B_m/B_n: prior mass of a row of n tokens beyond the m trained on (ours)."),
        ("attention ERF(eps)", "per query row the least number of nearest keys that hold more than "
         "1 − eps of the attention mass; mean over sampled rows, heads, layers [Q, after Eq. 21]."),
        ("gradient ERF(0.99)", "the shortest suffix with more than 99 % of the summed norms of the "
         "input gradient of the log-probability of the next token [C, 5.1; the scalar is our "
         "choice]."),
        ("last token", "each target predicted from exactly so many tokens, the same targets at "
         "every length [C, 3.4]."),
        ("non-overlapping", "segments of that length, all tokens scored [S]."),
        ("BCA", "blockwise causal attention at inference, blocks of half the training length "
         "[S, 3.3]."),
        ("tolerance", f"a model extrapolates here if the last-token ratio is below "
         f"{1 + TOLERANCE:.2f} (Definition 0.1 of [Q], one-sided)."),
    )  # fmt: skip
    items = "".join(f"<h3>{escape(k)}</h3><p>{v}</p>" for k, v in rows)
    sources = (
        "<p class=soft>[Q] Qin et al., Exploring Transformer Extrapolation, AAAI 2024. [S] Sun et "
        "al., A Length-Extrapolatable Transformer, ACL 2023. [C] Chi et al., Dissecting "
        "Transformer Length Extrapolation via the Lens of Receptive Field Analysis, ACL 2023.</p>"
    )
    run = next((e.run for e in s.entries if e.run), None)
    if run is None:
        return items + sources
    where = run["training"]["environment"]
    settings = (
        f"<h3>settings</h3><p>Preset {escape(str(s.preset.name))}: {s.preset.layers} layers, width "
        f"{s.preset.width}, {s.preset.heads} heads, {s.preset.steps} steps of {s.preset.batch} "
        f"rows of {s.preset.length} tokens, AdamW {s.preset.learning_rate:g}, seed {run['seed']}; "
        f"Python {escape(where['python'])}, torch {escape(where['torch'])}, "
        f"{escape(str(where['machine']))}, {where['cores']} cores.</p>"
    )
    return items + settings + sources
