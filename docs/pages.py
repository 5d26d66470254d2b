"""What the site needs beyond Sphinx: docstrings as they are written here, formulas as MathML, and
the page of theorems, written from the theorems themselves.

A docstring is plain text with single backticks around code, formulas in indented blocks and
examples; `|x|`, `x_` and a lone `*` mean themselves, where reStructuredText would read markup.
"""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

SECTION = re.compile(r"^\s*(Args|Returns|Raises|Fields|Yields|Note|Example|Examples):\s*$")
ESSAY = "how-far-does-it-see.html"
BULLET = re.compile(r"^(\s*)([*-]|\d+\.)\s")


def plain(line: str) -> str:
    """The line with what is no markup here escaped, code in backticks left alone."""
    bullet = BULLET.match(line)
    start = bullet.end() if bullet else 0
    parts = line[start:].split("`")
    if len(parts) % 2 == 0:  # an unpaired backtick
        parts = [line[start:].replace("`", r"\`")]
    for k in range(0, len(parts), 2):
        parts[k] = re.sub(r"(\\)(?!`)", r"\\\\", parts[k])
        parts[k] = parts[k].replace("*", r"\*").replace("|", r"\|")
        parts[k] = re.sub(r"_(?![A-Za-z0-9])", r"\_", parts[k])
    return line[:start] + "`".join(parts)


def as_written(lines: list[str]) -> list[str]:
    r"""A docstring in reStructuredText that shows what is written.

    >>> print(*as_written(["With", "", "    |x_1| = 2 * y", "", "and |z|."]), sep="/")
    With//:://    |x_1| = 2 * y//and \|z\|.
    """
    out: list[str] = []
    block = example = listed = False
    section = False
    for line in lines:
        bare = line.strip()
        if not bare:
            example = False
            out.append("")
            continue
        indented = line.startswith("    ")
        if not indented:
            section = bool(SECTION.match(line))
            listed = bool(BULLET.match(line)) or (listed and line.startswith(" "))
            block = False
        if bare.startswith(">>>"):
            example = True
        after_gap = bool(out) and not out[-1].strip()
        if indented and not section and not block and not example and not listed and after_gap:
            out += ["::", ""]
            block = True
        out.append(line if block or example or SECTION.match(line) else plain(line))
    return out


def rewrite(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Replace the lines of a docstring before they are read."""
    lines[:] = as_written(lines)


def inline_math(self: Any, node: nodes.Element) -> None:
    """A formula in a line, as MathML."""
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def display_math(self: Any, node: nodes.Element) -> None:
    """A formula of its own, as MathML."""
    self.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def theorems_page(app: Any) -> None:
    """Write the page of theorems."""
    from farfield.theory.formal.index import proving
    from farfield.theory.theorems import theorems

    parts = [
        "# Theorems and proofs",
        "`farfield prove NAME` prints each theorem. The tests check the identities, inequalities "
        "and limits in the proofs for all values of their symbols; steps in words are arguments "
        "for a reader. A [prover](checked.md) has checked many of the theorems from the axioms. "
        "*Ours* marks the theorems that are in none of the three papers.",
    ]
    for name, theorem in theorems().items():
        links = ", ".join(f"[{s.name}](#{checked_anchor(s)})" for s in proving(name))
        checked = f"Checked by the prover: {links}." if links else "Not checked by the prover."
        parts += [
            f"({name})=\n## {theorem.title}",
            f"*{theorem.source}* · `farfield prove {name}`",
            checked,
            "```{raw} html\n"
            f"<p>Let {escape(theorem.hypotheses)}. <em>Then {escape(theorem.statement)}.</em></p>\n"
            "```",
            proof(name),
        ]
    _written(Path(app.srcdir) / "theory" / "theorems.md", parts)


def proof(name: str) -> str:
    """The proof of a theorem, as it is written for the page."""
    return (Path(__file__).parent / "theory" / "proofs" / f"{name}.md").read_text(encoding="utf-8")


def checked_anchor(statement: Any) -> str:
    """Where the page of checked statements has one."""
    return "checked-" + statement.place.lower().replace(".", "-").replace("_", "-")


def checked_page(app: Any) -> None:
    """Write the page of the statements that the prover has checked, as it prints them."""
    from itertools import groupby

    from farfield.theory.formal.index import definitions, proving, statements
    from farfield.theory.theorems import theorems

    unchecked = (f"[{t.title}](#{name})" for name, t in theorems().items() if not proving(name))
    parts = [
        "# Checked by a prover",
        "These statements are theorems of Rocq (Coq) 8.16 with Coquelicot, in `theory/formal/`. "
        "`make formal` compiles them, has the kernel's own checker read the result, and fails on "
        "an open proof and on any axiom beyond the four of the classical reals (`sig_not_dec`, "
        "`sig_forall_dec`, `functional_extensionality_dep`, `classic`); `Numbers`, which computes "
        "with intervals, also rests on the prover's machine integers. Statements stand here as the "
        "prover prints them, definitions as they are written there.",
        f"Not checked: {', '.join(unchecked)}.",
    ]
    for file, group in groupby(statements(), lambda s: s.file):
        title = "The verdicts of the catalogue" if file == "catalogue" else file
        parts.append(f"## {title}")
        if file == "catalogue":
            parts.append(
                "Each is the theorem of the encoding's own certificate, its parameters left free, "
                "as `farfield check NAME --certificate FILE.v` writes one."
            )
        elif defined := "\n\n".join(definitions(file)):
            parts.append(f"```coq\n{defined}\n```")
        for s in group:
            where = "".join(f" · [{name}](#{name})" for name in s.proves)
            where += f" · [item {s.item}](windows.md)" if s.item else ""
            parts += [
                f"({checked_anchor(s)})=\n### `{s.name}`{where}",
                escape(s.says, quote=False).replace("_", "\\_").replace("*", "\\*"),
                f"```coq\n{s.printed}\n```",
            ]
    _written(Path(app.srcdir) / "theory" / "checked.md", parts)


def exhibits_pages(app: Any) -> None:
    """Write the papers' figures and tables, a page a paper, and the list of them."""
    from farfield.figures.document import Picture, piece
    from farfield.figures.gallery import PAPERS, draw, exhibits
    from farfield.figures.pages.gallery import said_of
    from farfield.theory.answers.notation import code, html
    from farfield.theory.answers.writers.html import stylesheet

    gallery = draw()
    source = Path(app.srcdir)
    (source / "exhibits").mkdir(exist_ok=True)
    index = [
        "# Figures and tables of the papers",
        "`farfield figures` draws them all, with the data of each as CSV; `farfield figures ID` "
        "draws one. *Theory* is computed exactly from the formulas, *schematic* drawn from the "
        "masks and biases that the models use, *published* prints the paper's numbers beside what "
        "is computed of them, *measured* comes from the committed reference results. A measured "
        "one without results is missing, with the command that makes them; it is not drawn.",
        "```{toctree}\n:hidden:\n" + "\n".join(f"exhibits/{p}" for p in PAPERS) + "\n```",
    ]
    style = f"```{{raw}} html\n<style>{stylesheet()}</style>\n```"
    for paper, module in PAPERS.items():
        citation = module.CITATION
        shown = [e for e in exhibits() if e.id.startswith(paper)]
        rows = [
            f"| [`{e.id}`](#{_anchor(e.id)}) | {e.kind} | {escape(e.title)} |"
            if e.id in gallery.drawn
            else f"| `{e.id}` | missing | {escape(e.title)} |"
            for e in shown
        ]
        index += [f"## {citation}", "| id | kind | shows |\n|---|---|---|\n" + "\n".join(rows)]
        parts = [f"# {citation}", style]
        for e in (e for e in shown if e.id in gallery.drawn):
            drawn = gallery.drawn[e.id].items(e.title, _anchor(e.id), e.kind)
            items = [replace(i, narrow="") if isinstance(i, Picture) else i for i in drawn]
            content = f'<div class="farfield">{piece([*items, *said_of(e)])}</div>'
            parts += [
                f"({_anchor(e.id)})=\n## {e.title}",
                f"`farfield figures {e.id}`",
                "```{raw} html\n" + re.sub(r"\n+", "\n", content) + "\n```",
            ]
        absent = [e for e in shown if e.id in gallery.missing]
        if absent:
            parts.append("## Missing: not measured yet")
            for e in absent:
                why = f"<p>{html(code(gallery.missing[e.id]))}</p>"
                parts.append(f"`{e.id}`: {e.title}.\n\n```{{raw}} html\n{why}\n```")
        _written(source / "exhibits" / f"{paper}.md", parts)
    _written(source / "exhibits.md", index)


def atlas_pages(app: Any) -> None:
    """Write the atlas, a page an encoding and a family of models, so that the search finds them."""
    from farfield.figures.document import occurring, piece
    from farfield.figures.pages.atlas import INDEX, TERMS, sheets
    from farfield.theory.answers.notation import terminal
    from farfield.theory.encodings import CATALOGUE
    from farfield.validation.atlas import atlas

    place = Path(app.srcdir) / "atlas"
    place.mkdir(exist_ok=True)
    found = sheets(atlas())
    others = "\n".join(name for name in found if name in CATALOGUE)
    for name, sheet in found.items():
        alone = [] if name in (*CATALOGUE, INDEX) else ["---\norphan: true\n---"]
        parts = [*alone, f"# {terminal(sheet.title)}"]
        if name == INDEX:
            parts.append(f"```{{toctree}}\n:hidden:\n{others}\n```")
        for title, items in (((), sheet.lead), *((s.title, s.items) for s in sheet.sections)):
            content = re.sub(r"\n+", "\n", piece(items))
            parts += [f"## {terminal(title)}"] if title else []
            parts.append(f'```{{raw}} html\n<div class="farfield">{content}</div>\n```')
        everything = [*sheet.lead, *(item for s in sheet.sections for item in s.items)]
        told = re.sub(r"\n+", "\n", piece([], occurring(everything, TERMS)))
        parts.append(f'```{{raw}} html\n<div class="farfield">{told}</div>\n```')
        _written(place / f"{name}.md", parts)


def pages_style(app: Any) -> None:
    """Write the style and the script of farfield's pages, the style for their parts alone."""
    from farfield.figures.document import environment

    def source(name: str) -> str:
        return environment().get_template(name).render()

    static = Path(app.srcdir) / "_static"
    own = source("style.css").replace(".farfield ", "& ")
    _written(static / "pages.css", [source("blocks.css"), ".farfield {", own, "}"])
    _written(static / "page.js", [source("page.js")])


def _anchor(name: str) -> str:
    return "exhibit-" + name.replace(".", "-")


def results_page(app: Any) -> None:
    """Write the answers that the committed reference results give."""
    from farfield.figures.law import law_curve, mixture_curve
    from farfield.figures.style import svg
    from farfield.validation.evidence import competing, judged, mixtures
    from farfield.validation.evidence.questions import answers
    from farfield.validation.evidence.summary import summary
    from farfield.validation.reference.registration import FIRST
    from farfield.validation.reference.table import results

    found = results()
    planned = sum(len(s.encodings) * len(s.seeds) * len(s.lengths) for s in FIRST.plan.sweeps)
    parts = [
        "# Results: does the theory predict?",
        "What the theory says of each encoding was written down, with the plan of the runs, before "
        "the first of them, but most encodings had been piloted: SHA-256 "
        f"`{FIRST.digest[:16]}` of `predictions.json`, which carries "
        f"`{FIRST.predictions['plan_sha256'][:16]}` of `plan.toml`. Each result carries the first, "
        "put there when the result was collected. The evidence of the order is the order of the "
        "commits. "
        f"{len(found)} of {planned} planned runs are finished. `make reference` makes them all, "
        "`python -m farfield.validation.evidence answers` prints this page.",
    ]
    if found:
        parts += [_setting(found[0]), "\n".join(f"* {sentence}" for sentence in summary())]
    parts += [
        "## The law at finite length",
        "Convergence has no scale and asks for every head. Further registrations ask which heads "
        "must be local and where each shape of a bias breaks. A registered rule spoke of "
        "every case before the first run. A rule that came later spoke of the cases that were "
        "still open.",
        "The *order loss* is a regression on small models, found and not derived, the fifth form "
        "in twelve hours: $1 - \\varrho / (\\varrho + 1/4) + (Q \\log(1 + \\varrho_R))^2 / 5$. Its "
        "first part is the order that a long row lacks. There $\\varrho$ is the mean over heads of "
        "resolution on a row of the training length $L$ times $1 - $ leak, times $L^2$. Its second "
        "part is what is drowned in it. There $Q$ is the leak of the heads weighted by their "
        "resolution, and $\\varrho_R$ their resolution so weighted, times $L^2$. For windows that "
        "are flat inside, it is the mass that depth carries beyond $L$. The form before it had "
        "R² = .95 on 54 cases when it was written down, and .08 on the 43 that came next.",
        "The order loss depends on how a bias is written, and a head that sees only itself counts "
        "as perfect order. `farfield forecast` rests on the *kernel order loss*, "
        "$\\frac{1/4}{\\varrho' + 1/4} M + (Q'' \\log(1 + \\varrho''))^2 / 5$. A step between two "
        "neighbours counts by what the lesser of them gets, $\\min(P_i, P_{i+1}) |P_i - P_{i+1}|$, "
        "in $\\varrho'$ without the step from the query's own key. $M$ is the layered mass beyond "
        "$L$.",
        "512 targets judge each registered case. With them 24 of the first 116 trials lie within "
        "1.96 standard errors of 5 %, so they decide nothing. The runs of the addendum of 22 "
        "November 2026 are also measured on 4,096 targets, on 2,048 at length 256.",
    ]
    parts += _figure(
        svg(law_curve(), "law"),
        "*Every trial: the ratio of its perplexity at the worst length against its order loss, by "
        "family. The line is the fitted slope. Perplexity holds below the dashed line; 24 of the "
        "first 116 trials are too near to it to say.*",
    )
    for answer in (*judged.answers(), *competing.answers()):
        parts += _answer(answer)
    if why := mixtures.answer():
        parts += _answer(why) + _figure(
            svg(mixture_curve(), "mixtures"),
            "*The ratio of perplexity at 16 times the training length by the number of local heads "
            "of eight, the others without bias.* What is proved of such models stands on the page "
            "[Local heads beside free ones](theory/mixtures.md).",
        )
    for length in (64, 128):
        given = answers(length=length)
        if given:
            runs = "; ".join(run.replace(f", length {length}, seeds", "") for run in given[0].runs)
            parts += [f"## Training length {length}", f"Encodings and their seeds: {runs}."]
        for answer in given:
            parts += _answer(answer)
            if len(answer.runs) < len(given[0].runs):
                parts.append(f"Of these runs the {len(answer.runs)} with an additive bias.")
    _written(Path(app.srcdir) / "results.md", parts)


def _figure(drawn: str, words: str) -> list[str]:
    """A drawing and what it shows; a blank line would end the HTML."""
    one = re.sub(r"\n+", "\n", drawn)
    return [f"```{{raw}} html\n<figure>{one}</figure>\n```", words]


def _answer(answer: Any) -> list[str]:
    parts = [f"### {answer.question}", f"{answer.sentence} *{answer.label}, n = {answer.n}*"]
    if answer.table:
        head, *rows = answer.table
        lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
        lines += ["| " + " | ".join(map(escape, row)) + " |" for row in rows]
        parts.append("\n".join(lines))
    return parts


def _setting(run: Any) -> str:
    preset, text, machine = run["preset"], run["text"], run["training"]["environment"]
    return (
        f"Models of {preset['layers']} layers, {preset['width']} wide, {preset['heads']} heads, "
        f"{preset['steps']} steps of {preset['batch'] * preset['length']} bytes of "
        f"{text['source']} (SHA-256 `{text['sha256'][:16]}`); torch {machine['torch']} on "
        f"{machine['cores']} cores of {machine['machine']}. Perplexities are ratios to that at the "
        "training length, geometric means over seeds."
    )


PAPERS = {
    "qin2024": "Qin et al., Exploring Transformer Extrapolation",
    "sun2023": "Sun et al., A Length-Extrapolatable Transformer",
    "chi2023": "Chi et al., Dissecting Transformer Length Extrapolation",
}
SHORT = {"[Q]": "Qin et al.", "[S]": "Sun et al.", "[C]": "Chi et al."}


def claims_pages(app: Any) -> None:
    """Write the ledger of claims, a page a paper by its sections, and what covers each section."""
    from farfield.validation.claims import RANGE, Verdict, claims, sections, words
    from farfield.validation.claims.claim import TOLERANCE

    decided = {c.id: c for c in claims()}
    source = Path(app.srcdir) / "theory"
    (source / "claims").mkdir(exist_ok=True)
    reading = words.__doc__.partition("\n\n")[2].strip()
    for key, name in SHORT.items():
        reading = reading.replace(key, name).replace(key[:-1] + ",", f"[{name},")
    parts = [
        "# What the three papers claim, checked",
        f"{len(decided)} sentences of the papers, each with the data and the computation that "
        "judge it. A verdict is what its check returns: *confirmed*; *corrected*, where the "
        "sentence fails and what holds instead was checked too; *refuted*; *not robust*, where the "
        f"verdict is not the same at every tolerance from {RANGE[0]:.0%} to {RANGE[-1]:.0%} (it is "
        f"{TOLERANCE:.0%} where one is needed); *not testable*, where the data that would decide "
        "it are not at hand. `farfield claims ID` makes any of them again.",
        "How words are read:",
        reading,
        "```{toctree}\n:hidden:\n" + "\n".join(f"claims/{p}" for p in PAPERS) + "\n```",
    ]
    for paper, title in PAPERS.items():
        found = [c for c in decided.values() if c.paper == paper]
        counts = {v: sum(c.verdict is v for c in found) for v in Verdict}
        said = ", ".join(f"{n} {_spoken(v)}" for v, n in counts.items() if n)
        rows = []
        page = [f"# {title}", f"{len(found)} entries: {said}."]
        for section, (checks, passages) in sections(paper).items():
            links = ", ".join(
                f'<a href="claims/{paper}.html#{c.id}">{escape(c.id.partition(".")[2])}</a> '
                f"({_spoken(decided[c.id].verdict)})"
                for c in checks
            )
            left = "<br>".join(f"“{escape(p.quote)}”: {_named(p.why)}" for p in passages)
            rows.append(f"<tr><td>{escape(section)}</td><td>{links}</td><td>{left}</td></tr>")
            page += [f"## {section}", *(_entry(decided[c.id]) for c in checks)]
            if left:
                page.append(f"```{{raw}} html\n<p>Without an entry:<br>{left}</p>\n```")
        _written(source / "claims" / f"{paper}.md", page)
        head = "<tr><th>section</th><th>entries</th><th>without an entry, and why</th></tr>"
        table = f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"
        parts += [
            f"## {title}",
            f"{len(found)} entries: {said}; [by section](claims/{paper}.md).",
            f'```{{raw}} html\n<div class="words">{table}</div>\n```',
        ]
    _written(source / "claims.md", parts)


def _spoken(verdict: Any) -> str:
    return str(verdict).replace("_", " ")


def _named(text: str) -> str:
    """Text in which papers have their names."""
    shown = escape(text)
    for key, name in SHORT.items():
        shown = shown.replace(key, name)
    return shown


def _entry(claim: Any) -> str:
    """One entry, all that a reader who disagrees needs."""
    from farfield.theory.formal.index import carrying
    from farfield.validation.claims.claim import shown

    rows = claim.particulars() | {name: shown(value) for name, value in claim.evidence.items()}
    rows["again"] = claim.command
    shown_rows = {_named(k): _named(v) for k, v in rows.items() if v}
    if statements := carrying(claim.id):
        shown_rows["checked by a prover"] = ", ".join(
            f'<a href="../checked.html#{checked_anchor(s)}">{escape(s.place)}</a>'
            for s in statements
        )
    facts = "".join(f"<dt>{k}</dt><dd>{v}</dd>" for k, v in shown_rows.items())
    where = ", ".join(filter(None, (claim.place, claim.kind, claim.label)))
    content = (
        f'<div class="claim" id="{claim.id}"><p><strong>{escape(claim.id.partition(".")[2])}: '
        f'{_spoken(claim.verdict)}</strong> <span class="label">{escape(where)}</span></p>'
        f"<blockquote>{escape(claim.quote)}</blockquote><dl>{facts}</dl></div>"
    )
    return "```{raw} html\n" + re.sub(r"\s*\n\s*", " ", content) + "\n```"


def _written(place: Path, parts: list[str]) -> None:
    text = "\n\n".join(parts) + "\n"
    if not place.exists() or place.read_text(encoding="utf-8") != text:
        place.write_text(text, encoding="utf-8")


def essay_is_current(app: Any) -> None:
    """Warn where the committed essay is not what farfield computes now."""
    from sphinx.util.logging import getLogger

    from farfield.figures.essay import essay

    if (Path(app.srcdir) / ESSAY).read_text(encoding="utf-8") != essay():
        getLogger(__name__).warning("%s is out of date: python docs/picture.py", ESSAY)


def setup(app: Any) -> dict[str, Any]:
    """Connect to Sphinx; docstrings are rewritten before their sections are read."""
    app.connect("autodoc-process-docstring", rewrite, priority=100)
    app.connect("builder-inited", theorems_page)
    app.connect("builder-inited", checked_page)
    app.connect("builder-inited", exhibits_pages)
    app.connect("builder-inited", atlas_pages)
    app.connect("builder-inited", pages_style)
    app.connect("builder-inited", results_page)
    app.connect("builder-inited", claims_pages)
    app.connect("builder-inited", essay_is_current)
    app.add_html_math_renderer("mathml", (inline_math, None), (display_math, None))
    return {"version": "1", "parallel_read_safe": True}
