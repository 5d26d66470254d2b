"""The papers' figures and tables: complete, exact, the same bytes each time, nothing invented."""

import json

import numpy as np
import pytest

from farfield.figures import chi2023, printed, qin2024, sun2023, trained
from farfield.figures.exhibit import KINDS, Data, Missing
from farfield.figures.gallery import draw, exhibit, exhibits, gallery_page, save
from farfield.figures.results import of_store, reference, together
from farfield.figures.style import FORMATS, rendered
from farfield.theory.encodings import encoding
from farfield.theory.results import InputError
from farfield.validation import published
from farfield.validation.configuration import describe
from farfield.validation.runs import write_json

QUICK = ("qin2024.fig1-right", "qin2024.fig2", "qin2024.fig7", "sun2023.fig3", "chi2023.fig1",
         "chi2023.fig3", "chi2023.fig8", "qin2024.table1", "sun2023.table4")  # fmt: skip


def column(drawing, name, **where):
    """The cells of a column in the rows whose other columns have these values."""
    names = drawing.data.columns
    keep = [
        row for row in drawing.data.rows
        if all(row[names.index(k)] == v for k, v in where.items())
    ]  # fmt: skip
    return [row[names.index(name)] for row in keep]


def test_every_figure_and_result_table_of_the_papers_is_listed():
    wanted = {
        f"{r['paper']}.fig{r['figure']}" + (f"-{r['panel']}" if r["panel"] in ("left", "right")
                                            else "")
        for r in published.rows("figures")
    }  # fmt: skip
    wanted |= {n.replace("_", ".") for n in published.names() if "table" in n and
               set(published.rows(n)[0]) == set(published.COLUMNS)}  # fmt: skip
    ids = [e.id for e in exhibits()]
    assert set(ids) == wanted and len(ids) == len(set(ids))
    assert {e.kind for e in exhibits()} == set(KINDS)


def test_receptive_fields_are_the_certified_integers():
    drawing = qin2024.fig6()
    for name, expected in (("type1", [6, 61, 608]), ("type2", [4, 9, 15])):
        where = {"encoding": name, "row": None}
        eps, tokens = (column(drawing, k, **where) for k in ("eps", "tokens"))
        rows = dict(zip(eps, tokens, strict=True))
        assert [rows[e] for e in (qin2024.EPS[3], qin2024.EPS[7], qin2024.EPS[11])] == expected
    where = {"encoding": "alibi", "row": None, "eps": qin2024.EPS[3]}
    assert column(drawing, "tokens", **where, head=8) == [590]
    assert not column(drawing, "tokens", encoding="sandwich", row=None)  # diverges
    assert max(column(drawing, "tokens", encoding="sandwich", row=qin2024.ROW)) <= qin2024.ROW
    for said in ("eps from", "means over heads", f"row of {qin2024.ROW}", "finite-row"):
        assert said in drawing.caption


def test_schematics_are_drawn_from_the_masks():
    keys = column(qin2024.fig1_right(), "keys", mode="sliding window")
    assert keys == [1, 2, 3] + 9 * [4]
    first = column(sun2023.fig3(), "first key", phase="inference")
    assert first == [0] * 6 + [3] * 3 + [6] * 3  # block before the query's own
    assert column(chi2023.fig1(), "bias", query=3) == [-1, -0.5, 0]
    assert column(chi2023.fig2(), "bias", query=3) == [-np.inf, 0, 0]
    assert column(chi2023.fig3(), "first context token", **{"context length": 3}) == [
        -2, -1, 0, 1, 2
    ]  # fmt: skip


def test_curves_are_the_formulas():
    assert column(qin2024.fig7(), "exp(p(n))", n=3) == pytest.approx(
        [1 / 16, np.exp(-(np.log(4) ** 2))]
    )
    assert column(qin2024.fig2(), "window of 32", n=32) == [1]
    assert column(qin2024.fig2(), "window of 32", n=33) == [0]
    g = sun2023.fig2()
    assert column(g, "rope", n=0) == [1]
    theta = 10000.0 ** (-2 * np.arange(32) / 64)
    assert column(g, "rope", n=100) == pytest.approx([np.cos(100 * theta).mean()])
    row = chi2023.fig9()
    assert column(row, "bias", n=0) == pytest.approx([0])
    assert column(row, "printed fit", n=0) == [-0.8]
    assert column(chi2023.fig10(), "d_bar 64", n=0) == pytest.approx([0])


def test_printed_tables_keep_the_print_and_compute_the_rest():
    table3 = printed.perplexities("chi2023_table3")
    assert column(table3, "8192", encoding="T5", dataset="ArXiv") == ["6.74 ± 0.9†"]
    assert column(table3, "verdict", encoding="T5", dataset="ArXiv") == ["diverges"]
    table1 = printed.perplexities("chi2023_table1")
    assert column(table1, "within 5%", variant="w=100") == ["yes"]
    assert column(table1, "within 5%", variant="w=120") == ["no"]
    assert column(table1, "leak to 8192", variant="w=120") == ["0"]
    resolution = printed.sun2023_table3()
    assert column(resolution, "same direction", model="Roformer") == ["yes"]
    assert column(printed.perplexities("sun2023_table5"), "verdict",
                  variant="attention=BCA", encoding="RoPE") == ["converges"]  # fmt: skip


@pytest.mark.parametrize("name", QUICK)
def test_the_same_bytes_each_time(name, tmp_path):
    one, two = exhibit(name).draw(), exhibit(name).draw()
    assert one.data == two.data and one.caption == two.caption
    if one.figure is not None:
        for kind in FORMATS:
            first = rendered(one.figure, kind, name, one.caption)
            assert first == rendered(two.figure, kind, name, two.caption), kind


def test_one_figure_with_its_data(tmp_path):
    gallery = save(draw(["qin2024.fig2"]), tmp_path / "new", "svg", page=False)
    files = {p.name: p.read_text() for p in (tmp_path / "new").iterdir()}
    assert set(files) == {"qin2024.fig2.svg", "qin2024.fig2.csv"} and len(gallery.files) == 2
    assert files["qin2024.fig2.csv"].splitlines()[0].startswith("n,window of 32")
    assert ">distance n (tokens)<" in files["qin2024.fig2.svg"], "text stays text"


def test_a_page_of_drawings():
    page = gallery_page(draw(["qin2024.fig2", "sun2023.table4", "qin2024.fig1-left"]))
    assert page.count("<svg") == 1 and "26.59" in page and "Missing: not measured yet" in page


def test_without_results_nothing_is_drawn():
    for e in trained.EXHIBITS:
        with pytest.raises(Missing):
            e.draw(())
    gallery = draw(["qin2024.fig3"])
    if "qin2024.fig3" in gallery.missing:  # until results are committed
        assert "farfield train" in gallery.missing["qin2024.fig3"]


def run(name, seed=0, ratio=1.0, length=16):
    """A result as the store keeps it, small."""
    subject = encoding(name)
    perplexity = [
        {"protocol": "non-overlapping", "length": n, "perplexity": 5 * ratio ** (n > length)}
        for n in (length, 4 * length)
    ]
    return {
        "schema": 1,
        "encoding": {"name": name, "dialect": None, **describe(subject)},
        "seed": seed,
        "preset": {"name": "tiny", "layers": 2, "width": 32, "heads": 8, "length": length,
                   "steps": 30, "batch": 8},
        "text": {"source": "a text", "sha256": "0" * 64},
        "measurements": [{"inference": {"bca": None, "window": None}, "perplexity": perplexity}],
    }  # fmt: skip


def test_measured_figures_follow_the_results_and_say_what_lacks():
    runs = [run("type1"), run("type1", seed=1), run("example1", ratio=3.0)]
    drawing = trained.perplexity(
        runs, figure="qin2024.fig4", wanted=("type1", "example1", "example2")
    )
    assert column(drawing, "perplexity", encoding="example1", length=64) == [15.0]
    assert len(column(drawing, "perplexity", encoding="type1", length=64)) == 2
    assert "Not among the runs: example2." in drawing.caption and "seeds 0, 1" in drawing.caption
    assert "2 layers" in drawing.caption and "a text" in drawing.caption


def test_runs_of_another_setting_do_not_mix():
    runs = [run("type1"), run("alibi"), run("type2", length=64)]
    kept = together(runs, [encoding(k) for k in ("type1", "type2", "alibi")])
    assert [r["encoding"]["name"] for r in kept] == ["type1", "alibi"]


def test_results_of_an_older_schema_are_refused(tmp_path):
    folder = tmp_path / "runs" / "0123"
    folder.mkdir(parents=True)
    described = {"schema": 0, "encoding": {}, "preset": {}, "seed": 0}
    write_json(folder / "training.json", {"configuration": described, "text": {}})
    with pytest.raises(InputError, match=r"schema 0; this version reads 1"):
        draw(["qin2024.fig3"], runs=tmp_path / "runs")
    with pytest.raises(InputError, match="does not exist"):
        of_store(tmp_path / "nowhere")


def test_committed_results_are_readable():
    assert isinstance(reference(), tuple)


@pytest.mark.parametrize(("name", "near"), [("qin2024.fgi6", "qin2024.fig6"), ("x", "--list")])
def test_unknown_figures(name, near):
    with pytest.raises(InputError, match=near):
        draw([name])


def test_nothing_is_half_written(tmp_path):
    (tmp_path / "file").write_text("x")
    gallery = draw(["qin2024.fig2"])
    with pytest.raises(InputError, match="output folder"):
        save(gallery, tmp_path / "file" / "inside")
    with pytest.raises(InputError, match="format 'gif'"):
        save(gallery, tmp_path / "new", "gif")
    assert not (tmp_path / "new").exists()


def test_a_drawing_shows_itself_in_a_notebook():
    shown = qin2024.fig2()._repr_html_()
    assert shown.startswith("<figure>") and "<svg" in shown


def test_data_are_rectangular():
    with pytest.raises(ValueError, match="2 cells"):
        Data(("a",), ((1, 2),))
    assert json.loads(draw(["chi2023.fig3"]).to_json())["drawn"]["chi2023.fig3"]["kind"]
