"""The table of results: one reader, plain columns, nothing half read."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from polars import col

from farfield.theory.encodings import encoding
from farfield.validation.harness.runs import run
from farfield.validation.harness.settings import Measure, settle
from farfield.validation.papers.trained_models import named
from farfield.validation.prior import Prior, prior
from farfield.validation.results import (
    COMMITTED,
    LAST,
    NEEDED,
    SCHEMA,
    WHOLE,
    perplexities,
    results,
)

ROOT = Path(__file__).parents[2]


def test_every_line_has_what_it_needs_and_is_measured_once():
    table = results()
    assert dict(zip(table.columns, table.dtypes, strict=True)).keys() == SCHEMA.keys()
    assert not any(table[name].null_count() for name in NEEDED)
    place = ["experiment", "run", "mask", "protocol", "length", "distance", "eps", "step"]
    assert not table.select(place).is_duplicated().any()


def test_the_prior_of_a_line_is_that_of_its_formula():
    table = results().drop_nulls("order").unique("formula", maintain_order=True)
    assert len(table) > 80
    for row in table.iter_rows(named=True):
        bias = encoding(row["formula"]).bias(np.arange(row["length"]))
        if row["mask"]:
            bias[:, int(row["mask"].removeprefix("window ")) :] = -np.inf
        found = prior(bias, row["trained"], row["layers"])
        assert found == pytest.approx([row[name] for name in Prior._fields], abs=1e-6), row["label"]


def test_ratios_are_those_of_the_perplexities_on_the_same_targets():
    rows = results().filter(protocol=LAST)
    home = rows.filter(col("length") == col("trained"))
    by = ["experiment", "run", "mask"]
    both = rows.join(home.select(*by, home="nats"), on=by)
    far = both.filter(col("length") > col("trained"))
    assert np.allclose(far["ratio"].log(), far["nats"] - far["home"], atol=1e-4) and len(far) > 700


def test_what_is_measured_unless_it_is_told_is_what_the_committed_runs_have():
    usual, rows = Measure(), results().filter(experiment="floors")
    targets = {p: {*found["targets"]} for (p,), found in rows.group_by("protocol")}
    assert targets[LAST] == {usual.last_tokens}
    assert targets["non-overlapping"] == {usual.blocks * max(rows["length"])}
    assert targets["attention"] == {usual.row_segments}
    assert targets["gradient"] == {usual.gradient_segments}
    assert {*rows.filter(protocol="attention")["eps"]} == {*usual.thresholds}
    shares = rows.filter(protocol="gradient")["eps"].drop_nulls()
    assert [*shares.unique()] == pytest.approx([1 - usual.share])


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A folder of runs: a bias of two kinds of heads, a learned one, a rotation, two layers."""
    folder = tmp_path_factory.mktemp("runs")
    measure = {"lengths": [16, 40], "row_length": 40, "blocks": 3, "last_tokens": 6}
    layers = {"label": "both", "layers": ["0", {"mechanism": "rope", "window": 8}]}
    for asked in ("[-n/4; 0 x7]", "kerple_log", "rope", "nope", layers):
        more = {"windows": [24], "bca": [8]} if asked == "nope" else {}
        run(settle("tiny", {"encoding": asked, "measure": {**measure, **more}}), folder)
    return folder


def test_runs_of_a_store_are_the_same_table_by_folder_and_by_csv(refusal, store, tmp_path):
    table = results(str(store))
    file = tmp_path / "mine.csv"
    file.write_text(table.write_csv(), encoding="utf-8")
    assert results(str(file)).equals(table) and table["run"].n_unique() == 5
    protocols = {LAST, "non-overlapping", "attention", "gradient", "training", "held out"}
    assert {*table["protocol"]} == protocols and not any(
        table[name].null_count() for name in NEEDED
    )
    copy = tmp_path / "copy"
    shutil.copytree(store, copy)
    damaged = next(copy.glob("*/measured-*.json"))
    damaged.write_text(damaged.read_text()[:-7])
    refusal(r"measured-.*.json is not readable", results, str(copy))


def test_runs_of_a_store_say_what_the_theory_says_of_them(store):
    """In the words of the committed table, so that both can be filtered alike."""
    table = results(str(store))
    told = {row[0]: row for row in table.select("label", "formula", "mechanism", "verdict").rows()}
    assert told["[-n/4; 0 x7]"][1:] == ("[-n/4; 0 x7]", "bias", "diverges")
    assert told["kerple_log"][1:] == ("[-r1*log(n*r2 + 1)]", "bias", "conditional")
    assert told["rope"][1:] == (None, "rotation", "out_of_scope")
    assert told["nope"][1:] == ("[0]", "bias", "diverges")
    assert told["both"][1:] == (None, "layers", None)
    of = results().filter(experiment="first").unique("label")
    for label in ("kerple_log", "rope", "nope"):
        (row,) = of.filter(label=label).select("label", "formula", "mechanism", "verdict").rows()
        assert row == told[label]
    prior = table.drop_nulls("order").select("label", "mask", "protocol", "length").unique()
    assert {*prior.rows()} == {
        (label, mask, protocol, 40)
        for label, mask in (("[-n/4; 0 x7]", ""), ("nope", ""), ("nope", "window 24"))
        for protocol in (LAST, "non-overlapping")
    }
    (window,) = table.filter(mask="window 24", protocol=LAST, length=40)["beyond"]
    (whole,) = table.filter(label="nope", mask="", protocol=LAST, length=40)["beyond"]
    assert 0 < window < whole < 1


@pytest.mark.parametrize(
    ("alter", "message"),
    [
        (lambda rows: ["a,b", "1,2"], "row 1: no column experiment"),
        (lambda rows: [*rows, rows[1].replace(",64,", ",x64,", 1)], "row 4: .* is 'x64'"),
        (lambda rows: [*rows, rows[1][:40]], "row 4 has .* cells; accepted: 41"),
        (lambda rows: [*rows, rows[1] + ",1,2,3"], "row 4 has 44 cells; accepted: 41"),
        (lambda rows: [*rows, rows[1].replace("alibi", "", 1)], "row 4: label is None"),
        (lambda rows: ["\0"], "row 1: no column"),
        (lambda rows: [""], "row 1: no column"),
    ],
)
def test_a_damaged_file_is_one_line_with_its_path_and_row(refusal, tmp_path, alter, message):
    rows = results().filter(trained=64).head(2).write_csv().splitlines()
    file = tmp_path / "mine.csv"
    file.write_text("\n".join(alter(rows)) + "\n")
    assert "mine.csv" in refusal(message, results, str(file))


def test_no_module_reads_the_experiments():
    rooms = ("theory", "numerics", "validation", "figures", "interface")
    sources = [p for room in rooms for p in (ROOT / room).rglob("*.py")]
    readers = [p for p in sources if re.search(r"[\"'/]experiments[\"'/]", p.read_text("utf-8"))]
    assert [p.name for p in readers if "README" not in p.read_text("utf-8")] == []
    assert COMMITTED.stat().st_size < 400_000


def test_a_length_scored_on_other_targets_has_its_ratio_times_the_perplexity_at_home():
    """The same for claims and figures: both read perplexities here."""
    models = results().filter(experiment="first", label="alibi", trained=64, mask="")
    by_length = perplexities(models, WHOLE)
    for length, seeds in by_length.items():
        lines = models.filter(protocol=WHOLE, length=length)
        for seed, ratio in lines.select("seed", "ratio").iter_rows():
            assert seeds[seed] == pytest.approx(ratio * by_length[64][seed], rel=1e-5), length
    (model,) = named("alibi")
    geometric = np.exp(np.log([*by_length[9216].values()]).mean())
    assert model.perplexity(WHOLE)[9216] == pytest.approx(geometric)
    far = models.filter(protocol=WHOLE, length=9216)["nats"].exp()
    assert min(far) > 1.03 * geometric  # the level on the other targets is another one
