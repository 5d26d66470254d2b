"""What the site needs beyond Sphinx: docstrings as they are written here, formulas as MathML, and
the page of theorems, written from the theorems themselves.

A docstring is plain text with single backticks around code, formulas in indented blocks and
examples. `|x|`, `x_` and a lone `*` mean themselves, where reStructuredText would read markup.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

from farfield.theory.answers.notation import signed

SECTION = re.compile(r"^\s*(Args|Returns|Raises|Fields|Yields|Note|Example|Examples):\s*$")
ESSAY = "how-far-does-it-see.html"
AROUND = {
    "index": "Documentation",
    "tutorial": "Five minutes",
    "papers": "The papers' figures and claims",
    "findings": "What was found",
}
"""Pages of the site that the essay leads to, beside it."""
NAMED = "<mi>(?:log|exp|sin|cos)</mi>"
BAR = '<mo(?: stretchy="false")?>(&#x0002F;|&#x0007C;|&#x02016;)<'
THIN = '<mspace width="0.17em"/>'
LONG = 280
"""Characters from which the values of an entry are folded."""
EMPHASIS = re.compile(r"(?<!\w)(\*{1,2}[A-Za-z][^*]*\*{1,2})(?!\w)|\*")
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
        parts[k] = EMPHASIS.sub(lambda m: m[1] or r"\*", parts[k]).replace("|", r"\|")
        parts[k] = re.sub(r"_(?![A-Za-z0-9])", r"\_", parts[k])
    return line[:start] + "`".join(parts)


def as_written(lines: list[str]) -> list[str]:
    r"""A docstring in reStructuredText that shows what is written, emphasis apart.

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


def without_blank_ends(app: Any, name: str, source: list[str]) -> None:
    r"""Examples end with a blank line, which doctests need and a reader does not."""
    source[0] = re.sub(r"(^```python\n.*?)\n+```$", r"\1\n```", source[0], flags=re.M | re.S)


def mathml(latex: str, display: str = "inline") -> str:
    """A formula as MathML, with the spaces that LaTeX sets: around `log`, a sign, `/` and bars."""
    made = convert(latex, display=display).replace("<mo>&#x0221E;</mo>", "<mi>&#x0221E;</mi>")
    made = signed(re.sub(BAR, r'<mo stretchy="false" lspace="0" rspace="0">\1<', made))
    made = re.sub(rf"({NAMED})(?=<m(?!o stretchy))", rf"\1{THIN}", made)
    return re.sub(rf"(</m(?:i|n|sub|sup|frac|row)>)(?={NAMED})", rf"\1{THIN}", made)


def inline_math(self: Any, node: nodes.Element) -> None:
    """A formula in a line, as MathML."""
    self.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def display_math(self: Any, node: nodes.Element) -> None:
    """A formula of its own, as MathML."""
    self.body.append(f'<div class="math">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def theorems_page(app: Any) -> None:
    """Write the page of theorems."""
    from farfield.theory.formal.checked_statements import proving
    from farfield.theory.theorems import theorems

    parts = [
        "# Theorems and proofs",
        "These theorems decide farfield's answers. Each has its proof here; `farfield papers NAME` "
        "prints what it says and what has checked it. *Ours* marks the theorems that are in none "
        "of the three papers. A [proof assistant](checked.md) has checked many of them from the "
        "axioms. The tests check every identity, inequality and limit in the proofs for all values "
        "of their symbols; steps in words are arguments for a reader.",
    ]
    for name, theorem in theorems().items():
        links = ", ".join(f"[{s.name}](#{checked_anchor(s)})" for s in proving(name))
        checked = f"Checked by the prover: {links}." if links else "Not checked by the prover."
        parts += [
            f"({name})=\n## {theorem.title}",
            "```{raw} html\n"
            f"<p>Let {printed(theorem.hypotheses)}. "
            f"<strong>Then</strong> {printed(theorem.statement)}.</p>\n"
            "<details><summary>Proof and source</summary>\n```",
            f"*{theorem.source}* · `farfield papers {name}` · {checked}",
            proof(name),
            "```{raw} html\n</details>\n```",
        ]
    _written(Path(app.srcdir) / "theory" / "theorems.md", parts)


GREEK = ["beta", "delta", "eps", "eta", "lambda", "oo", "pi", "psi", "rho"]
GREEK += ["sigma", "theta", "zeta"]
SCRIPTED = re.compile(
    r"(?<![A-Za-z_'])(?:(?P<greek>" + "|".join(GREEK) + r")|(?P<name>[A-Za-z]+))"
    r"(?P<scripts>(?:[_^](?:\{[^}]*\}|-?\w+))*)(?!\w|'\w|, Eq)"
)


def printed(text: str) -> str:
    """A statement as HTML, its symbols as MathML.

    >>> printed("a row, j >= 1 and -L").replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "")
    'a row, <math display="inline"><mrow><mi>j</mi></mrow></math> ≥ 1 and \
−<math display="inline"><mrow><mi>L</mi></mrow></math>'
    """

    def symbol(found: re.Match[str]) -> str:
        name, scripts = found["greek"] or found["name"], found["scripts"]
        after = found.string[found.end() :].lstrip()[:1]
        article = name == "a" and not scripts and after not in {",", "&", "/"}
        if article or (found["name"] and len(name) > 1 and not scripts):
            return found[0]
        latex = {"eps": r"\varepsilon", "oo": r"\infty"}.get(name, "\\" + name)
        latex = latex if found["greek"] else name if len(name) == 1 else rf"\mathrm{{{name}}}"
        scripts = re.sub(r"([_^])(-?\w+)", r"\1{\2}", scripts)
        scripts = re.sub(rf"(?<![a-z\\])({'|'.join(GREEK)})(?![a-z])", r"\\\1 ", scripts)
        return mathml(latex + scripts.replace(r"\eps", r"\varepsilon"))

    said = re.sub(
        r"(?<![\w^{])-(?=[\w(])|(?<=\b[a-z1])-(?=[\dq])| - ", lambda m: m[0].replace("-", "−"), text
    ).replace(" .. ", " … ")
    said = re.sub(r"\bsum(?= [a-z][_^]| \(|_)", "Σ", said).replace("prod_", "Π_")
    said = escape(said.replace("<=", "≤").replace(">=", "≥").replace("->", "→"), quote=False)
    said = re.sub(r"(?<=[ΣΠ])_(?:\{([^}]*)\}|(\w))", r"<sub>\1\2</sub>", said)
    said = re.sub(r"(?<=\))\^(?:\{([^}]*)\}|(\w))", r"<sup>\1\2</sup>", said)
    return re.sub(r"(</math>|</sup>)(?=[),.;:\]])", "\\1\u2060", SCRIPTED.sub(symbol, said))


def proof(name: str) -> str:
    """The proof of a theorem, as it is written for the page."""
    return (Path(__file__).parent / "theory" / "proofs" / f"{name}.md").read_text(encoding="utf-8")


def checked_anchor(statement: Any) -> str:
    """Where the page of checked statements has one."""
    return "checked-" + statement.place.lower().replace(".", "-").replace("_", "-")


def checked_page(app: Any) -> None:
    """Write the statements that the prover has checked, as it prints them, a page a file."""
    from itertools import groupby

    from farfield.theory.formal.checked_statements import definitions, proving, statements
    from farfield.theory.theorems import theorems

    unchecked = (f"[{t.title}](#{name})" for name, t in theorems().items() if not proving(name))
    parts = [
        "# Checked by a prover",
        "A proof assistant accepts a proof only if every step follows from the axioms. It has "
        "accepted these statements, theorems of Rocq (Coq) 8.16 with Coquelicot in "
        "`theory/formal/`. `make formal` compiles them, has the kernel's own checker read the "
        "result, and fails on an open proof and on any axiom beyond the four of the classical "
        "reals (`sig_not_dec`, `sig_forall_dec`, `functional_extensionality_dep`, `classic`); "
        "`Numbers`, which computes with intervals, also rests on the prover's machine integers. "
        "Each statement is printed by the prover, each definition is copied from its file.",
        f"Not checked: {', '.join(unchecked)}.",
    ]
    folder = Path(app.srcdir) / "theory" / "checked"
    folder.mkdir(exist_ok=True)
    by_file = {file: list(group) for file, group in groupby(statements(), lambda s: s.file)}
    for file, group in by_file.items():
        title = "The verdicts of the catalogue" if file == "catalogue" else file
        page = [f"# {title}"]
        if file == "catalogue":
            page.append(
                "Each is the theorem of the encoding's own certificate, its parameters left free, "
                "as `farfield check NAME --certificate FILE.v` writes one."
            )
        elif defined := "\n\n".join(definitions(file)):
            page += ["## Definitions", f"```coq\n{defined}\n```"]
        for s in group:
            where = "".join(f" · [{name}](#{name})" for name in s.proves)
            where += f" · [item {s.item}](../windows.md)" if s.item else ""
            page += [
                f"({checked_anchor(s)})=\n## `{s.name}`{where}",
                escape(s.says, quote=False).replace("_", "\\_").replace("*", "\\*"),
                f"```coq\n{s.printed}\n```",
            ]
        _written(folder / f"{file}.md", page)
        parts.append(f"* [{title}](checked/{file}.md): {len(group)} statements")
    parts.append("```{toctree}\n:hidden:\n" + "\n".join(f"checked/{f}" for f in by_file) + "\n```")
    _written(folder.with_suffix(".md"), parts)


def exhibits_pages(app: Any) -> None:
    """Write the figures and tables, a page each, and the index to look over."""
    from farfield.figures.exhibit_pages import exhibit_sheet
    from farfield.figures.gallery import draw
    from farfield.figures.index import INDEX
    from farfield.figures.style import svg

    found = draw()
    shown = {k: svg(d.figure, k) if d.figure else "" for k, d in found.drawn.items()}
    pages = {k: exhibit_sheet(INDEX[k], d, shown[k], found.said[k]) for k, d in found.drawn.items()}
    _sheets(Path(app.srcdir) / "exhibits", {"index": found.index(shown), **pages})


CHOSEN = {"falcon": {"alibi": True}}
"""Settings with which the atlas shows a family, where its usual ones show less."""


def atlas_pages(app: Any) -> None:
    """Write the atlas, a page an encoding and a family of models, so that the search finds them."""
    from farfield.figures.answer_pages import audit_sheet, entry_sheet
    from farfield.theory.encodings import CATALOGUE, encoding
    from farfield.validation.atlas import entry

    every = (encoding(e.name, **e.trained(64)) for e in CATALOGUE.values())
    entries = {e.name: entry(e) for e in every}
    families = dict(_families())
    pages = {name: entry_sheet(e) for name, e in entries.items()}
    pages |= {f"model-{name}": audit_sheet(a) for name, a in families.items()}
    _sheets(Path(app.srcdir) / "atlas", {"index": _atlas_index(entries, families), **pages})


def _families() -> Iterator[tuple[str, Any]]:
    """Each family of causal models with the audit of its configuration, where that has numbers."""
    from farfield.theory.answers.answer import InputError
    from farfield.validation.models.audit import audit
    from farfield.validation.models.configuration import architectures

    with TemporaryDirectory() as place:
        for name in sorted(architectures()["causal"]):
            folder = Path(place) / name
            folder.mkdir()
            config = {"model_type": name, **CHOSEN.get(name, {})}
            (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
            with suppress(InputError):
                if (found := audit(folder)).kinds:
                    yield name, replace(found, model=name)


def _atlas_index(entries: dict[str, Any], families: dict[str, Any]) -> Any:
    """The index: verdict, numbers and claims of every encoding, and the families of models."""
    from farfield.figures.document import Fold, Section, Sheet
    from farfield.theory.answers.blocks import note, table
    from farfield.theory.answers.notation import StyledWord, shortened, words
    from farfield.validation.table_cells import field_text, share_text

    rows = []
    for name, e in sorted(entries.items()):
        p = e.prediction
        link = StyledWord(p.encoding.title or name, f"to {name}.html")
        field = p.receptive_fields[1] if p.receptive_fields else None
        cells = field_text(field) if field else "infinite" * bool(p.row_fields)
        leak = "" if p.longest_leak is None else share_text(p.longest_leak)
        bias = shortened(p.encoding.formula_text(), 40) if p.encoding.biases else ""
        rows.append((link, bias, p.convergence.verdict, cells, leak, len(e.claims) or ""))
    header = ("encoding", "bias", "verdict", "TRF(1/100)", "leak, 64 to 1024", "claims")
    models = [
        (StyledWord(name, f"to model-{name}.html"), a.encoding, a.head_count or "", a.trained)
        for name, a in families.items()
    ]
    told = note(
        "TRF(1/100): the nearest tokens that hold 99 % of the weight. Leak: the share of a row of "
        "1,024 beyond 64 tokens. Of several heads the worst. {command} writes such a page of any "
        "encoding.",
        command=StyledWord("farfield atlas NAME --page", "code"),
    )
    families_table = table(("family", "encoding", "heads", "trained on"), models, numeric=(2, 3))
    sections = [
        Section((), [table(header, rows, numeric=(3, 4, 5)), told]),
        Section(words("Families of models"), [Fold((f"all {len(models)}",), [families_table])]),
    ]
    return Sheet(words("Atlas of positional encodings"), sections)


def _sheets(place: Path, found: dict[str, Any]) -> None:
    """Write pages that farfield makes, an index and what it lists; pages of before go."""
    from farfield.figures.document import piece
    from farfield.theory.answers.notation import terminal

    place.mkdir(exist_ok=True)
    for page in place.glob("*.md"):
        if page.stem not in found:
            page.unlink()
    for name, sheet in found.items():
        parts = [f"# {terminal(sheet.title)}"]
        if name == "index":
            others = "\n".join(other for other in found if other != name)
            parts.append(f"```{{toctree}}\n:hidden:\n{others}\n```")
        for section in sheet.sections:
            parts += [f"## {terminal(section.title)}"] * bool(section.title)
            parts.append(_html(piece(section.items)))
        _written(place / f"{name}.md", parts)


def _html(content: str) -> str:
    """A part of farfield's own pages; a blank line would end it."""
    return '```{raw} html\n<div class="farfield">' + re.sub(r"\n+", "\n", content) + "</div>\n```"


def pages_style(app: Any) -> None:
    """Write the style and the script of farfield's pages, the style for their parts alone."""
    from farfield.figures.document import environment, math_font

    def source(name: str) -> str:
        return environment().get_template(name).render()

    static = Path(app.srcdir) / "_static"
    own = source("style.css").replace(".farfield ", "& ")
    _written(static / "pages.css", [math_font(), source("blocks.css"), ".farfield {", own, "}"])
    _written(static / "page.js", [source("page.js")])


def findings_pictures(app: Any, name: str, source: list[str]) -> None:
    """Put the exhibits of our own results where the page of findings names them."""
    from farfield.figures.document import piece
    from farfield.figures.gallery import named, recompute

    def drawn(marker: re.Match[str]) -> str:
        (exhibit,) = named(marker[1])
        items = recompute(exhibit).items(exhibit.title, kind="measured")
        return _html(piece(items))

    if name == "findings":
        source[0] = re.sub(r"<!-- (farfield\.\S+) -->", drawn, source[0])


PAPERS = {
    "qin2024": "Qin et al., Exploring Transformer Extrapolation",
    "sun2023": "Sun et al., A Length-Extrapolatable Transformer",
    "chi2023": "Chi et al., Dissecting Transformer Length Extrapolation",
}
SHORT = {"[Q]": "Qin et al.", "[S]": "Sun et al.", "[C]": "Chi et al."}


def claims_pages(app: Any) -> None:
    """Write the ledger of claims, a page a paper by its sections, and what covers each section."""
    from farfield.validation.papers import words
    from farfield.validation.papers.claim import RANGE, TOLERANCE
    from farfield.validation.papers.ledger import (
        by_sentence,
        claims,
        counted,
        own_models,
        plain_sentences,
        said,
        sections,
    )

    claimed, plain = claims(), len(plain_sentences())
    decided = {c.id: c for c in claimed}
    source = Path(app.srcdir) / "theory"
    (source / "claims").mkdir(exist_ok=True)
    reading = words.__doc__.partition("\n\n")[2].strip()
    for key, name in SHORT.items():
        reading = reading.replace(key, name).replace(key[:-1] + ",", f"[{name},")
    parts = [
        "# What the three papers claim, checked",
        f"Of {len(by_sentence(claimed)) + plain} sentences of the papers: "
        f"{said(counted(claimed, plain))}. {plain} of those that hold do so plainly and have no "
        f"entry. {own_models(claimed)}",
        "An entry has the words of the paper, our reading of them, and the verdict on that "
        "reading, with the data and the computation behind it. A sentence with several readings "
        "has several entries and counts once, by the strictest. *Needs a correction*: the reading "
        "fails, and what holds instead was checked too. *Depends on the tolerance*: the verdict is "
        f"not the same at every tolerance from {RANGE[0]:.0%} to {RANGE[-1]:.0%} (it is "
        f"{TOLERANCE:.0%} where one is needed). *Not seen at this scale*: our own small models do "
        "not show it. `farfield claims ID` makes any entry again.",
        "```{raw} html\n<details><summary>How words are read</summary>\n```",
        reading,
        "```{raw} html\n</details>\n```",
        "```{toctree}\n:hidden:\n" + "\n".join(f"claims/{p}" for p in PAPERS) + "\n```",
    ]
    for paper, title in PAPERS.items():
        found = [c for c in decided.values() if c.paper == paper]
        held = sum(key == paper for key, _ in plain_sentences())
        counts = (
            f"{len(by_sentence(found)) + held} sentences: {said(counted(found, held))}. {held} of "
            "those that hold have no entry."
        )
        rows = []
        page = [f"# {title}", counts]
        for section, checks in sections(paper).items():
            links = ", ".join(
                f'<a href="claims/{paper}.html#{c.id}">{escape(c.id.partition(".")[2])}</a> '
                f"({_verdict(decided[c.id])})"
                for c in checks
            )
            if checks:
                rows.append(f"<tr><td>{escape(section)}</td><td>{links}</td></tr>")
                page += [f"## {section}", *(_entry(decided[c.id]) for c in checks)]
        _written(source / "claims" / f"{paper}.md", page)
        head = "<tr><th>section</th><th>entries</th></tr>"
        table = f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"
        parts += [
            f"## {title}",
            f"{counts} [The page of the paper](claims/{paper}.md) has the entries by section.",
            f'```{{raw}} html\n<div class="farfield words">{table}</div>\n```',
        ]
    _written(source / "claims.md", parts)


def _verdict(claim: Any) -> str:
    """The verdict in its colour."""
    said = claim.verdict.words
    return f'<span class="verdict {said.replace(" ", "-")}">{said}</span>'


def _named(text: str) -> str:
    """Text in which papers have their names."""
    shown = escape(text)
    for key, name in SHORT.items():
        shown = shown.replace(key, name)
    return shown


def _entry(claim: Any) -> str:
    """One entry, all that a reader who disagrees needs, behind its sentence and verdict."""
    from farfield.theory.formal.checked_statements import carrying
    from farfield.validation.papers.claim import shown

    rows = claim.particulars() | {name: shown(value) for name, value in claim.evidence.items()}
    rows["again"] = claim.command
    shown_rows = {_named(k): _named(v) for k, v in rows.items() if v and v not in ("[]", "")}
    if statements := carrying(claim.id):
        shown_rows["checked by a prover"] = ", ".join(
            f'<a href="../checked/{s.file}.html#{checked_anchor(s)}">{escape(s.place)}</a>'
            for s in statements
        )
    facts = "".join(f"<dt>{k}</dt><dd>{_folded(v)}</dd>" for k, v in shown_rows.items())
    where = ", ".join(filter(None, (claim.place, claim.kind, claim.label)))
    content = (
        f'<details class="farfield claim"><summary>“{escape(claim.quote)}” {_verdict(claim)}'
        f'</summary><div id="{claim.id}"><p><strong>{escape(claim.id.partition(".")[2])}</strong> '
        f'<span class="label">{escape(where)}</span></p><dl>{facts}</dl></div></details>'
    )
    return "```{raw} html\n" + re.sub(r"\s*\n\s*", " ", content) + "\n```"


def _folded(said: str) -> str:
    """A long list of values behind its beginning."""
    if len(said) < LONG or "<" in said:
        return said
    return f"<details><summary>{said[: LONG // 2].rpartition(',')[0]}, …</summary>{said}</details>"


def _written(place: Path, parts: list[str]) -> None:
    text = "\n\n".join(parts) + "\n"
    if not place.exists() or place.read_text(encoding="utf-8") != text:
        place.write_text(text, encoding="utf-8")


def leveled_captions(app: Any, page: str, template: str, context: Any, doctree: Any) -> None:
    """Say the level of the navigation's headings, which its theme leaves out."""
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace(
        'role="heading"', 'role="heading" aria-level="2"'
    )


def essay_is_current(app: Any) -> None:
    """Warn where the committed essay is not what farfield computes now."""
    from essay import essay
    from sphinx.util.logging import getLogger

    if (Path(app.srcdir) / ESSAY).read_text(encoding="utf-8") != essay():
        getLogger(__name__).warning("%s is out of date: python docs/picture.py", ESSAY)


def essay_links(app: Any, error: Exception | None) -> None:
    """Link the essay of the site, which is a file by itself elsewhere, with the pages around it."""
    place = Path(app.outdir) / ESSAY
    if error is None and place.exists():
        text = place.read_text(encoding="utf-8")
        links = " · ".join(f'<a href="{file}.html">{name}</a>' for file, name in AROUND.items())
        place.write_text(text.replace("</footer>", f"<p>{links}</p></footer>"), encoding="utf-8")


REACHABLE = {
    '<aside class="sidebar-drawer': '<aside aria-label="All pages" class="sidebar-drawer',
    '<aside class="toc-drawer': '<aside aria-label="This page" class="toc-drawer',
    "<pre>": '<pre tabindex="0">',
    '<div class="math">': '<div tabindex="0" class="math">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<div id="search-results">': '<h1>Search</h1>\n<div id="search-results" role="status">',
}
"""Tags of the theme, as readers without eyes or without a mouse need them."""


def reachable(app: Any, error: Exception | None) -> None:
    """Tell the side bars apart by a name, and let the keyboard scroll long lines of code."""
    for page in () if error else Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for tag, instead in REACHABLE.items():
            text = text.replace(tag, instead)
        page.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, Any]:
    """Connect to Sphinx; docstrings are rewritten before their sections are read."""
    app.connect("autodoc-process-docstring", rewrite, priority=100)
    app.connect("source-read", without_blank_ends)
    app.connect("builder-inited", theorems_page)
    app.connect("builder-inited", checked_page)
    app.connect("builder-inited", exhibits_pages)
    app.connect("builder-inited", atlas_pages)
    app.connect("builder-inited", pages_style)
    app.connect("source-read", findings_pictures)
    app.connect("builder-inited", claims_pages)
    app.connect("html-page-context", leveled_captions, priority=900)
    app.connect("builder-inited", essay_is_current)
    app.connect("build-finished", essay_links)
    app.connect("build-finished", reachable)
    app.add_html_math_renderer("mathml", (inline_math, None), (display_math, None))
    return {"version": "1", "parallel_read_safe": True}
