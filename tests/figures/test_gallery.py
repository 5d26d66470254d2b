"""The papers' figures and tables: complete, exact, the same bytes each time, nothing invented."""

import functools
import json
import math
import re
from dataclasses import replace
from html import unescape
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from matplotlib.figure import Figure
from polars import DataFrame

from farfield.figures.document import page, piece
from farfield.figures.exhibit import Data, NoResults, seen
from farfield.figures.exhibit_pages import exhibit_sheet, index_sheet
from farfield.figures.gallery import (
    UNPRINTED,
    Gallery,
    _changed,
    agreement,
    claims_on,
    draw,
    named,
    recompute,
    settings_of,
)
from farfield.figures.index import INDEX, KINDS
from farfield.figures.papers import chi2023, sun2023
from farfield.figures.papers.measured_figures import (
    _growths,
    by_length,
    cumulative_gradient,
    perplexity,
)
from farfield.figures.papers.measured_samples import conditions, first, samples, settings
from farfield.figures.papers.measured_tables import _command, measured_table
from farfield.figures.papers.printed_tables import _extrapolates, _rounded, _shown
from farfield.figures.style import FORMATS, rendered
from farfield.numerics.receptive_field import theoretical_receptive_field
from farfield.numerics.resolution import attention_resolution
from farfield.theory.answers.blocks import note
from farfield.theory.answers.notation import terminal
from farfield.theory.encodings import encoding
from farfield.theory.encodings.head_lists import notation
from farfield.validation.harness.runs import run as train
from farfield.validation.harness.settings import settle
from farfield.validation.papers import tables
from farfield.validation.papers.claim import Verdict
from farfield.validation.papers.tables import curve
from farfield.validation.results import LAST, SCHEMA, WHOLE, results


@functools.cache
def usual(name):
    """A figure or table as it is drawn without settings."""
    return recompute(INDEX[name])


def column(drawing, name, **where):
    """The cells of a column in the rows whose other columns have these values."""
    names = drawing.data.columns
    keep = [
        row for row in drawing.data.rows if all(row[names.index(k)] == v for k, v in where.items())
    ]
    return [row[names.index(name)] for row in keep]


def test_every_figure_and_result_table_of_the_papers_is_listed():
    wanted = {
        f"{r['paper']}.fig{r['figure']}"
        + (f"-{r['panel']}" if r["panel"] in ("left", "right") else "")
        for r in tables.rows("figures")
    }
    numbered = {
        n.replace("_", ".")
        for n in tables.names()
        if "table" in n and "eval_length" in tables.rows(n)[0]
    }
    wanted |= {f"farfield.{figure}" for figure in ("mixtures", "levels", "hold-and-use")}
    others = {"sun2023.table1", "sun2023.table3"}  # without numbers; no scores of trained models
    wanted |= numbered | {f"{n}-measured" for n in numbered - others}
    assert set(INDEX) == wanted
    assert {e.kind for e in INDEX.values()} == set(KINDS)


def test_curves_are_the_formulas():
    theta = 10000.0 ** (-2 * np.arange(32) / 64)
    for name, line, n, values in (
        ("qin2024.fig7", "exp(p(n))", 3, [1 / 16, np.exp(-(np.log(4) ** 2))]),
        ("qin2024.fig2", "window of 32", 31, [1]),
        ("qin2024.fig2", "window of 32", 32, [0]),
        ("sun2023.fig2", "rope", 0, [1]),
        ("sun2023.fig2", "rope", 100, [np.cos(100 * theta).mean()]),
        ("chi2023.fig9", "bias", 0, [0]),
        ("chi2023.fig9", "printed fit", 0, [-0.8]),
        ("chi2023.fig10", "d_bar 64", 0, [0]),
    ):
        assert column(usual(name), line, n=n) == pytest.approx(values), name


def test_numbers_that_a_paper_prints_of_a_figure_are_beside_ours():
    places = (r["section"] for r in tables.rows("chi2023_erf"))
    figures = {n for place in places for n in re.findall(r"\(Figure (\d+)\)", place)}
    assert figures == {n for n in figures if INDEX[f"chi2023.fig{n}"].options["beside"]}
    drawn = {n: usual(f"chi2023.fig{n}") for n in ("4", "8", "9")}
    silent = {n for n, drawing in drawn.items() if UNPRINTED in drawing.caption}
    assert silent == {n for n, drawing in drawn.items() if drawing.beside is None} == {"8"}
    printed = {"alibi": "LeX"}
    grown = _growths(printed, {"alibi": {64: {0: 5.0}, 128: {0: 4.0}}}, 64)
    assert grown.rows[0][2:4] == ((f"{25.53 / 26.59:.3g}",), ("0.8",))


def test_printed_tables_keep_the_print_and_compute_the_rest():
    heads, t5 = encoding("alibi", heads=16), {"encoding": "T5", "dataset": "ArXiv"}
    blocked = {"variant": "attention=BCA", "encoding": "RoPE"}
    for name, cell, where, shown in (
        ("chi2023.table3", "8192", t5, "6.74 ± 0.9†"),
        ("chi2023.table3", "verdict", t5, "diverges"),
        ("chi2023.table1", "within 5%", {"variant": "w=100"}, "yes"),
        ("chi2023.table1", "within 5%", {"variant": "w=120"}, "no"),
        ("chi2023.table1", "leak to 8192", {"variant": "w=120"}, "0"),
        ("sun2023.table5", "verdict", blocked, "converges"),
        *(
            ("sun2023.table3", f"{n}, position part", {"model": "Alibi"}, f"{r.value:.3g}")
            for n in (1024, 2048)
            for r in [attention_resolution(heads, n)]
        ),
    ):
        assert column(usual(name), cell, **where) == [shown], (name, cell)


def test_cells_of_printed_tables():
    """A row extrapolates where what is printed from its training length on stays within 5 %."""
    cells = tables.table("chi2023_table3")
    (first, *_), marked = cells, next(c for c in cells if c.std and c.marker)
    row = {n: replace(first, printed=x) for n, x in ((8, "9"), (16, "4"), (32, "4.2"), (64, "3"))}
    assert _extrapolates(row, 64) == (None, None) == _extrapolates({}, 1)
    assert _extrapolates(row, 32) == (3 / 4.2, True) == _extrapolates(row, 17)
    assert _extrapolates(row, 16) == (1.05, False) and _extrapolates(row, 8) == (4.2 / 9, True)
    assert _extrapolates(row | {64: replace(first, printed="no")}, 32) == (None, None)
    mark = {"dagger": "†", "star": "*"}[marked.marker]
    assert _shown(marked) == f"{marked.printed} ± {marked.std:g}{mark}" and _shown(None) == ""
    assert _shown(replace(marked, std=None, marker="")) == marked.printed
    values = (None, 0.0, 9e-13, 1e-12, 1.234e-12, 0.12345)
    assert [*map(_rounded, values)] == [None, "0", "< 1e-12", "1e-12", "1.23e-12", "0.123"]


def test_one_figure_with_its_data(tmp_path):
    gallery = draw(["qin2024.fig2"], tmp_path / "new")
    files = {p.name: p.read_text() for p in (tmp_path / "new").iterdir()}
    assert set(files) == {"qin2024.fig2.svg", "qin2024.fig2.csv"} and len(gallery.files) == 2
    assert files["qin2024.fig2.csv"].splitlines()[0].startswith("n,window of 32")
    assert ">distance n (tokens)<" in files["qin2024.fig2.svg"], "text stays text"
    shown = usual("qin2024.fig2")._repr_html_()
    assert shown.startswith("<figure") and shown.count("<svg") == 1, "in a notebook"
    assert "How it was made" not in shown and usual("qin2024.fig2").made
    printed = usual("sun2023.table4")
    assert printed.figure is None and printed._repr_html_() == piece(printed.items())
    twice = usual("qin2024.fig2"), recompute(INDEX["qin2024.fig2"])
    made, again = (
        [rendered(drawn.figure, kind, "x", "what it is") for kind in FORMATS] for drawn in twice
    )
    assert made == again, "the same bytes each time"
    assert int.from_bytes(made[[*FORMATS].index("png")][16:20]) == 680, "200 pixels an inch"
    for file in made:
        assert b"what it is" in file and not re.search(b"Date|dc:date|Software|Producer", file)


NAMES = ["qin2024.fig2", "sun2023.table4", "chi2023.fig12"]


def test_a_page_of_drawings_is_whole_although_a_run_before_was_stopped(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        draw(NAMES, tmp_path, notice=Mock(side_effect=[None, KeyboardInterrupt]))
    first = {p.name for p in tmp_path.iterdir()}
    assert "qin2024.fig2.svg" in first and "index.html" not in first
    assert not list(tmp_path.glob(".partial*"))
    said = str(draw(NAMES, tmp_path))
    pages = {p.stem: p.read_text(encoding="utf-8") for p in tmp_path.glob("*.html")}
    assert set(pages) == {"index", "qin2024.fig2", "sun2023.table4"}
    index, figure, table = (pages[name] for name in sorted(pages))
    assert index.count("<svg") == 1 and "Not measured yet" in index
    assert figure.count("<svg") == 1 and "26.59" in table
    assert "2 of 3 exhibits drawn, 1 missing" in said
    assert "farfield train" in said and "qin2024.no-effect" in said, "what differs, what to run"


def test_a_part_drawn_again_leaves_the_index_whole(tmp_path):
    """What was drawn before, maybe from other results, is named apart and not shown."""
    draw(NAMES[:2], tmp_path)
    said = str(draw(["chi2023.fig1", "chi2023.fig2"], tmp_path, kind="png"))
    assert "2 of 2 exhibits drawn" in said
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    for name in (*NAMES[:2], "chi2023.fig1", "chi2023.fig2"):
        assert f'href="{name}.html"' in index
    assert "2 of 2 exhibits drawn, 0 missing" in index and "Drawn before" in index
    assert index.count("<svg") == 2, "of the figures drawn now, whatever the format of their files"


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        (
            (1, 1, 1),
            "3 sentences on them 1 holds as printed, 1 is wrong or needs a correction, 1 is",
        ),
        (
            (2, 0, 3),
            "5 sentences on them 2 hold as printed, 0 are wrong or need a correction, 3 are",
        ),
        (
            (0, 2, 0),
            "2 sentences on them 0 hold as printed, 2 are wrong or need a correction, 0 are",
        ),
    ],
)
def test_sentences_are_counted_once_by_their_verdicts(counts, told):
    kinds = zip(("holds_as_printed", "wrong", "cannot_be_tested"), counts, strict=True)
    each = [SimpleNamespace(id=f"{v} {k}", verdict=v) for v, count in kinds for k in range(count)]
    said = terminal(agreement({"one": each, "another": each[:1]}).text)
    assert said == f"Of {told} not decided."


def said(sheet):
    """The words of a page, each link and code with where it leads and what it is."""
    shown = re.sub("(?s)<svg.*?</svg>|<script.*?</script>|<style.*?</style>", "", page(sheet))
    shown = re.sub(r'<a href="([^"]*)">|<(code)>', r" [\1\2] ", shown.partition("</h1>")[2])
    shown = " ".join(unescape(re.sub("<[^>]*>", " ", shown)).split())
    return shown.partition(" Made by farfield.")[0]


CLAIMS = [
    SimpleNamespace(
        quote=f"quote {k}",
        statement="s > 1",
        verdict=Verdict(v),
        command="farfield papers x",
        **dict(zip(("because", "corrected", "reason"), why, strict=True)),
    )
    for k, (v, why) in enumerate(
        [
            ("holds_as_printed", ("because", "corrected", "reason")),
            ("wrong", ("", "corrected", "reason")),
            ("needs_a_correction", ("", "", "reason")),
            ("cannot_be_tested", ("", "", "")),
        ]
    )
]
READ, AGAIN = "read here as s > 1 verdict", "command [code] farfield papers x"
OF_PAPER = (
    f"What the paper says “quote 0” {READ} holds as printed : because {AGAIN} "
    f"“quote 1” {READ} wrong : corrected {AGAIN} "
    f"“quote 2” {READ} needs a correction : reason {AGAIN} "
    f"“quote 3” {READ} cannot be tested {AGAIN}"
)


@pytest.mark.parametrize(
    ("name", "settings", "title", "rest"),
    [
        (
            "chi2023.fig3",
            {"length": 8, "d": 2},
            "Chi et al. 2023, Figure 3: The last-token protocol",
            "{of} How it was made {made} {again} To change it: [code] farfield figures "
            "chi2023.fig3 --set length=8 d=2 .",
        ),
        (
            "qin2024.table1",
            None,
            "Qin et al. 2024, Table 1: Relative inference time",
            "{table} How it was made {made} {of} {again}",
        ),
        (
            "farfield.levels",
            {},
            "Loss on short rows against loss on long rows",
            "{of} How it was made {made} {again}",
        ),
    ],
)
def test_a_page_has_the_drawing_the_sentences_and_what_draws_it_again(name, settings, title, rest):
    e, drawing = INDEX[name], usual(name)
    shown = exhibit_sheet(e, drawing, "<svg></svg>", CLAIMS, settings)
    again = f"[code] farfield figures {name} draws it again. Its data: [{name}.csv] {name}.csv ."
    rows = [drawing.data.columns, *drawing.data.rows]
    told = rest.format(
        of=OF_PAPER,
        made=drawing.made,
        again=again,
        table=" ".join(str(c) for row in rows for c in row),
    )
    first = f"[index.html] Figures and tables, recomputed {drawing.caption} {e.kind}"
    assert terminal(shown.title) == title and said(shown) == f"{first} {told}"


def test_an_index_has_figures_tables_and_what_is_missing_or_was_drawn_before():
    drawn = {
        "chi2023.fig3": "<svg></svg>",
        "chi2023.table2-measured": "",
        "farfield.levels": "<svg></svg>",
    }
    missing = {"chi2023.fig4": "why `so`", "qin2024.fig3": "no runs"}
    sheet = index_sheet([note("lead")], drawn, missing, {"chi2023.fig3": CLAIMS}, ["qin2024.fig2"])
    ours, qin, chi = (terminal(s.title) for s in sheet.sections[1:])
    assert [terminal(s.title) for s in sheet.sections[:1]] == [""] and ours.startswith("What the")
    assert said(sheet).partition("decided. ")[2] == (
        f"{ours} [farfield.levels.html] Loss on short rows against loss on long rows measured "
        f"{qin} Drawn before page shows [qin2024.fig2.html] Figure 2 {INDEX['qin2024.fig2'].title} "
        f"Not measured yet missing shows why qin2024.fig3 {INDEX['qin2024.fig3'].title} no runs "
        f"{chi} [chi2023.fig3.html] The last-token protocol Figure 3 ● ● ● ● schematic table shows "
        "[chi2023.table2-measured.html] Table 2, measured Failed cases fixed by longer training, "
        "measured Not measured yet missing shows why chi2023.fig4 Cumulative gradient, windows why "
        "[code] so"
    )
    dots = re.findall('<span class="([a-z-]*) ●">', page(sheet))
    assert dots == [c.verdict.replace("_", "-") for c in CLAIMS]
    assert claims_on("farfield.levels") == ()


CHANGES = {
    "qin2024.fig1-right": {"tokens": 7, "window": 3},
    "qin2024.fig2": {"window": 8, "length": 20},
    "qin2024.fig6": {"eps": "1/70", "length": 512},
    "qin2024.fig7": {"length": 16},
    "sun2023.fig2": {"length": 100, "d": 32},
    "sun2023.fig3": {"length": 10},
    "chi2023.fig8": {"length": 3, "d_bar": 64, "c": 4},
    "chi2023.fig10": {"length": 2, "c": 2},
}
"""What is changed of each figure that can be."""


@pytest.mark.parametrize("name", CHANGES)
def test_each_setting_of_a_figure_changes_its_data(name):
    for setting, value in CHANGES[name].items():
        assert recompute(INDEX[name], settings={setting: value}).data != usual(name).data, setting


def test_every_setting_is_changed():
    assert {e.id: {*found} for e in INDEX.values() if (found := settings_of(e))} == {
        name: {*settings} for name, settings in CHANGES.items()
    }
    for name in ("qin2024.fig2", "qin2024.fig6"):  # of several figures the one that has them all
        assert _changed(named("qin2024"), CHANGES[name]) == INDEX[name]


def test_a_changed_figure_has_the_numbers_of_its_setting(tmp_path):
    files = draw(["fig6"], tmp_path, settings={"eps": "1/70", "length": "2k"}).files
    assert [Path(f).name for f in files] == [
        "qin2024.fig6_eps-1-70_length-2k.svg",
        "qin2024.fig6_eps-1-70_length-2k.csv",
    ]
    rows = [row.split(",") for row in Path(files[1]).read_text().splitlines()]
    last = {(r[0], r[2], r[4]): int(r[5]) for r in rows[1:] if r[3] == "1/70"}
    for (name, head), length in product((("type1", "1"), ("alibi", "8")), ("", "2048")):
        bias = encoding(name).head(int(head))
        field = theoretical_receptive_field(bias, "1/70", length=int(length or 0) or None)
        assert last[name, length, head] == field.tokens


@pytest.mark.parametrize(
    ("names", "settings", "said"),
    [
        (["qin2024.fig6"], {"e": 1}, "has no setting 'e'; accepted: eps=1/1000, length=1024"),
        (["qin2024.fig6"], {"eps": 2}, "eps"),
        (["qin2024.fig6"], {"eps": "1e-30"}, "at least"),
        (["qin2024.fig6"], {"length": "1M"}, "65536"),
        (["chi2023.table1"], {"eps": "1/2"}, "it shows results as they are"),
        (
            ["qin2024", "sun2023", "chi2023"],
            {"length": 8},
            r"one figure; 7 are named: qin2024.fig2, qin2024.fig6, qin2024.fig7, sun2023.fig2 \.",
        ),
    ],
)
def test_a_setting_that_is_none_is_refused(refusal, names, settings, said):
    refusal(said, draw, names, settings=settings)


def test_without_results_nothing_is_drawn(tmp_path):
    for e in (e for e in INDEX.values() if e.kind == "measured" and e.paper != "farfield"):
        with pytest.raises(NoResults, match=r"to make|easure yours"):
            recompute(e, table())
    with pytest.raises(NoResults, match="--set delta=6"):
        recompute(INDEX["chi2023.table2-measured"], table())
    gallery = draw(["qin2024.fig4"], tmp_path / "out", runs=tmp_path)
    assert not gallery.files and not gallery.drawn
    assert "no runs of type1, example1, example2; to make them" in gallery.missing["qin2024.fig4"]


def test_results_are_those_that_were_given_or_a_sentence_says_which():
    every = recompute(INDEX["farfield.levels"], table(run("alibi")))
    assert "the runs that were given are not drawn" in every.caption
    assert "given" not in recompute(INDEX["farfield.levels"]).caption


def test_a_measured_figure_is_drawn_again_from_other_results(tmp_path):
    names, runs = ["qin2024.fig4", "chi2023.fig1"], tmp_path / "runs.csv"
    table(run("type1"), run("example1")).write_csv(runs)
    draw(names, tmp_path / "out")
    again = draw(names, tmp_path / "out", runs=runs)
    assert {row[2] for row in again.drawn[names[0]].data.rows} == {16, 32, 64, 1584}


def test_encodings_of_ones_own_are_drawn_beside_those_of_the_paper():
    """Runs of another setting, or of a paper's encoding under another name, are none of them."""
    paper = run("type1")
    mine = [{**row, "label": "mine", "formula": "-n/99"} for row in run("-n/99")]
    module = [{**row, "label": "Steps", "formula": None, "run": "steps"} for row in paper]
    renamed = [{**row, "label": "a", "run": "other", "seed": 1} for row in run("type1", seed=1)]
    runs = table(paper, mine, module, renamed, run("-n/98", length=64))
    drawing = perplexity(runs, "qin2024.fig4", "type1", "example1")
    assert list(dict.fromkeys(row[0] for row in drawing.data.rows)) == ["type1", "mine", "Steps"]
    many = [[{**r, "label": f"own {k}", "run": f"o{k}"} for r in module] for k in range(5)]
    drawing = perplexity(table(paper, *many), "qin2024.fig4", "type1")
    assert "Among the runs too, not drawn: own 4." in drawing.made


@pytest.mark.parametrize(("nats", "said"), [(5.54, True), (4.9, True), (3.0, False), (1.6, False)])
def test_models_that_did_not_learn_are_named(nats, said):
    poor = [{**row, "nats": nats} for row in run("example1")]
    drawing = recompute(INDEX["qin2024.fig4"], table(run("type1"), poor))
    assert ("Not learned, or hardly: Example 1;" in drawing.caption) == said
    tokens = [{**row, "text": "file mine.npy"} for row in poor]
    drawing = recompute(INDEX["qin2024.fig4"], table(run("type1"), tokens))
    assert "hardly" not in drawing.caption, "of a larger vocabulary a loss says nothing"


def run(name, seed=0, ratio=1.0, length=16, modes=(None,), **options):
    """The rows of a small run: `ratio` is that of every length beyond the training."""
    subject = encoding(name, **options)
    columns = {
        "experiment": "runs",
        "run": f"{name} {options} {length} {seed}",
        "label": name,
        "mechanism": subject.mechanism,
        "formula": notation([str(b) for b in subject.biases]) if subject.biases else None,
        "seed": seed,
        "trained": length,
        "text": "a text",
        "text_sha256": "0" * 12,
        **{"layers": 2, "width": 32, "heads": 8, "steps": 30, "batch": 8, "learning_rate": 0.002},
    }
    asked = [(p, k * length, 5 + seed / 100, 100) for p in (WHOLE, LAST) for k in (1, 2, 4)]
    asked.append((WHOLE, 99 * length, 70 / ratio, 30))
    rows = []
    for bca in modes:
        for protocol, tokens, level, targets in asked:
            high = ratio if tokens > length else 1.0
            line = {"protocol": protocol, "length": tokens, "targets": targets}
            spread = {"ratio": high, "low": high, "high": high}
            rows.append({**line, "nats": math.log(level * high), **spread})
        line = {"protocol": "gradient", "length": 2, "eps": 0.01, "targets": 2 + seed}
        rows += [{**line, "erf": 2}, *({**line, "distance": d, "gradient": d / 2} for d in (1, 2))]
        for row in rows:
            row.setdefault("mask", "BCA" if bca else "")
    return [{**columns, **row} for row in rows]


def table(*runs):
    """The table of some runs."""
    return DataFrame([line for one in runs for line in one], SCHEMA)


def test_settings_that_are_alike_stay_in_the_order_of_the_table():
    batches = range(9, 0, -1)
    alike = ([{**line, "batch": k, "run": f"{k}"} for line in run("type1")] for k in batches)
    found = settings(table(*alike), ["type1"])
    assert [first(samples)["batch"] for samples in found] == [*batches]


def test_sentences_that_differ_are_in_the_order_of_their_exhibits():
    kinds = {"a": "wrong", "b": "needs_a_correction", "c": "holds_as_printed"}
    wrong, other, right = (SimpleNamespace(id=k, statement=k, verdict=v) for k, v in kinds.items())
    places = "sun2023.table1", "sun2023.table2"
    said = {places[0]: [wrong, right], places[1]: [other]}
    _, _, drawn, differ = Gallery(dict.fromkeys(places), {}, said).blocks()
    cells = [[terminal(cell) for cell in row] for row in (*drawn.rows, *differ.rows)]
    assert [row[3:] for row in cells[:2]] == [["1", "1", ""], ["", "1", ""]]
    assert [row[:2] for row in cells[2:]] == [[places[0], "a"], [places[1], "b"]]


def test_measured_figures_follow_the_results_and_say_what_lacks():
    runs = table(run("type1"), run("type1", seed=1), run("example1", ratio=3.0))
    for trained, said in ((16, True), (2000, False)):
        below = samples(runs.with_columns(trained=trained), ["type1"], "x", shorter=not said)
        assert ("Lines are means over seeds" in below[1]) == said
    lengths = [*range(1, 13)]
    panels = [by_length([], {*lengths[:k]}, 1, "x") for k in (6, 7, 12)]
    assert [panel.x for panel in panels] == [lengths[:6], lengths[:7:2], lengths[::3]]
    assert [panel.axes["xlim"] for panel in panels] == [(None, k) for k in (6, 7, 12)]
    drawing = perplexity(runs, "qin2024.fig4", "type1", "example1", "example2")
    assert column(drawing, "perplexity", encoding="example1", length=64) == [15.0]
    assert len(column(drawing, "perplexity", encoding="type1", length=64)) == 2
    for said in (
        "Not among the runs: example2;",
        "1 or 2 seeds each",
        "2 layers",
        "a text (SHA-256 000000000000)",
        "farfield train example2",
    ):
        assert said in drawing.made
    shares = cumulative_gradient(runs, "chi2023.fig4", "type1", "example1")
    assert "mean over 2 or 3 segments of 2 tokens" in shares.made
    one = conditions([("a sample of one line", runs.head(1))])
    assert "2 layers" in one and one.endswith("one seed, so no spread.")


def test_the_far_length_is_drawn_by_its_ratio():
    drawing = perplexity(table(run("type1", ratio=1.2)), "x", "type1")
    assert column(drawing, "perplexity", length=99 * 16) == [6.0]  # 5 * 1.2, not 70
    assert "At 1584 tokens (99 times the training length) other targets" in drawing.made


def test_runs_of_another_setting_do_not_mix():
    runs = table(run("type1"), run("alibi"), run("type2", length=64))
    kept, other = settings(runs, ("type1", "type2", "alibi"))
    assert [*kept] == ["type1", "alibi"] and first(kept)["trained"] == 16
    assert [*other] == ["type2"] and first(other)["trained"] == 64


@pytest.mark.parametrize(
    ("expected", "options"),
    [
        ("alibi", {"name": "alibi"}),
        ("alibi shift -3", {"name": "alibi", "dialect": "shift", "delta": -3}),
        ("alibi equal 4", {"name": "alibi", "dialect": "equal", "slope_exponent": 4}),
        ("window 32", {"name": "window", "w": 32}),
        ("window 24", {"name": "window", "w": 24}),  # not in the plan
        ("alibi shift 6", {"name": "alibi", "dialect": "shift", "delta": 6}),
        ("t5", {"name": "t5", "buckets": 8, "max_distance": 16}),
        ("rope", {"name": "rope"}),
    ],
)
def test_a_run_of_a_store_has_the_label_of_its_formulas(expected, options):
    (found,) = settings(table(run(**options), run("-n/7")), (expected, "type2"))
    assert [*found] == [expected]


def test_variants_and_inference_are_told_apart():
    runs = table(
        run("window", w=16),
        run("window", w=32),
        run("alibi"),
        run("xpos", modes=(None, 8)),
        run("alibi", dialect="shift", delta=8),
    )
    (found,) = settings(
        runs, ("window 16", "window 32", "alibi shift 8", "xpos + BCA", "alibi + BCA")
    )
    assert [*found] == ["window 16", "window 32", "alibi shift 8", "xpos + BCA"]
    drawing = recompute(INDEX["chi2023.fig4"], runs)
    assert {r[0] for r in drawing.data.rows} == {"window 16", "window 32"}
    assert "Not among the runs: window 64" in drawing.made


def test_commands_name_verbs_and_options_that_exist(run):
    known = {*re.findall("--[a-z]+", run("train", "--help")[1])}
    for label, more in (
        ("alibi", ""),
        ("alibi + BCA", " --bca 32"),
        ("rope + BCA", ""),  # measured with it in any case
        ("xpos + window 64", " --window 64"),
    ):
        base = label.partition(" ")[0]
        wanted = f"`farfield train {base} --preset small --length 64{more} --runs runs`"
        assert _command(label, 64) == wanted and {*re.findall("--[a-z]+", wanted)} <= known


def test_windows_shorter_than_the_training_length_are_measured_and_drawn(tmp_path):
    asked = {"encoding": "alibi", "measure": {"lengths": [4, 16]}}
    train(settle("tiny", asked), tmp_path)
    drawing = draw(["qin2024.fig1-left"], runs=tmp_path).drawn["qin2024.fig1-left"]
    stored = results(str(tmp_path)).drop_nulls("ratio")
    rows = stored.select("protocol", "length", "nats").iter_rows()
    measured = {(protocol, n): np.exp(nats) for protocol, n, nats in rows}
    for protocol, mode in (
        ("last token", "sliding window"),
        ("non-overlapping", "nonoverlapping window"),
    ):
        assert column(drawing, "perplexity", mode=mode) == pytest.approx(
            [measured[protocol, n] for n in (4, 16)]
        )


ROWS = (("Sandwich", "", "sandwich"), ("Rotary", "", "rope"), ("T5", "", "t5"))
TABLE = {"factors": {"512": 1}, "protocol": "last token"}
AGAIN = "chi2023.table3-measured"


def test_a_measured_table_has_the_growth_in_print_beside_ours():
    runs = [run("sandwich", ratio=0.9), run("rope", length=64, ratio=9.0)]
    runs += [run("rope", seed=s, ratio=1.4 + s / 10) for s in range(2)]
    drawing = measured_table(table(*runs), AGAIN, rows=ROWS, **TABLE)
    where = {"dataset": "ArXiv", "encoding": "Rotary", "trained": 16}
    cells = curve("chi2023_table3", "Rotary", dataset="ArXiv")
    multiples, growths = (column(drawing, k, **where) for k in ("multiple", "printed"))
    printed = dict(zip(multiples, growths, strict=True))
    assert printed == {n // 512: v / cells[512] for n, v in cells.items() if n > 512}
    assert column(drawing, "measured", **where) == [
        *(pytest.approx((5 * 1.4 + 5.01 * 1.5) / (5 + 5.01)) for _ in (2, 4)),
        *(None, None),
    ]
    ends = [column(drawing, name, **where)[0] for name in ("least", "greatest", "seeds")]
    assert ends == [pytest.approx(1.4), pytest.approx(1.5), 2]
    shown = {row[:4]: row[4:] for row in drawing.table.rows}
    assert shown["Rotary", "ArXiv", "RoPE", 16][1] == "1.45 (2)"  # 64 is not mixed in
    assert "farfield train t5" in drawing.made and "Not measured: T5;" in drawing.made
    written = page(exhibit_sheet(INDEX[AGAIN], drawing, "", ()))
    assert "1.45\u00a0(2)" in written and "<code>farfield train t5" in written


def test_a_table_with_rows_of_two_training_lengths():
    runs = table(
        run("alibi", length=64, dialect="shift", delta=6, ratio=1.4),
        run("window", length=32, w=64),
        run("window", length=64, w=64, ratio=9.0),
    )
    drawing = recompute(INDEX["chi2023.table2-measured"], runs)
    where = {"dataset": "ArXiv", "trained": 64, "multiple": 2}
    assert column(drawing, "measured", encoding="ALiBi", **where) == pytest.approx([1.4])
    where = {"dataset": "ArXiv", "trained": 32, "multiple": 4}
    assert column(drawing, "measured", encoding="Windowed", **where) == pytest.approx([1.0])


def test_one_row_is_no_table():
    with pytest.raises(NoResults, match="fewer than two"):
        measured_table(table(run("sandwich")), AGAIN, rows=ROWS, **TABLE)


def test_nothing_is_half_written(refusal, tmp_path):
    """A folder or a format that will not do is refused before any work."""
    (tmp_path / "file").write_text("x")
    refusal(
        "output folder", draw, ["qin2024.fig2"], tmp_path / "file" / "inside", notice=pytest.fail
    )
    refusal(
        "format 'gif'", draw, ["qin2024.fig2"], tmp_path / "new", kind="gif", notice=pytest.fail
    )
    assert not (tmp_path / "new").exists()


def test_data_are_rectangular():
    with pytest.raises(ValueError, match="2 cells"):
        Data(("a",), ((1, 2),))
    assert json.loads(draw(["chi2023.fig3"]).to_json())["drawn"]["chi2023.fig3"]["kind"]
    whole = (("-1", "x", None, "≤ 3 a", "of 14 letters:"), ("", "2", None, "~5", "of more letters"))
    shown = Data(("a", "b", "c", "d", "e"), whole).table("t")
    assert shown.numeric == (0, 2) and [*map(terminal, shown.header)] == ["a", "b", "d", "e"]
    assert [terminal(row[3]) for row in shown.rows] == [
        "of\u00a014\u00a0letters:",
        "of more letters",
    ]


def test_a_figure_is_told_by_its_named_lines_with_their_ends():
    figure = Figure()
    above, below = figure.subplots(2)
    above.set_ylabel("p")
    for x, y, name in (([0, 1], [1, 2], "a"), ([0], [1], "dot"), ([0, 2], [1, 1], "_none")):
        above.plot(x, y, label=name)
    assert seen(figure) == "p by x: a from 1 at 0 to 2 at 1."
    below.set_xlabel("n")
    below.plot([0, 1, 2], [1, 2, 4], label="b")
    assert seen(figure) == "p by n: a from 1 at 0 to 2 at 1.  by n: b from 1 at 0 to 4 at 2."


def test_a_drawing_is_json():
    """Integers of NumPy are numbers there, a bias of minus infinity is null."""
    rows = json.loads(chi2023.fig2().to_json())["rows"]
    assert rows[0] == [1, 1, 0.0] and rows[-5] == [5, 1, None]
    assert json.loads(sun2023.fig3().to_json())["rows"][0] == ["training", 0, 0, 0]
