"""The table of results: one reader, plain columns, nothing half read."""

import re
from pathlib import Path

import numpy as np
import pytest
from polars import col

from farfield.cli import main
from farfield.theory.answers.answer import InputError
from farfield.theory.encodings import encoding
from farfield.validation.prior import Prior, prior
from farfield.validation.results import COMMITTED, LAST, NEEDED, SCHEMA, results

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


def test_runs_of_a_store_are_the_same_table_by_folder_and_by_csv(tmp_path, capsys):
    folder = tmp_path / "runs"
    asked = ["train", "[-n/4; 0 x7]", "--preset", "tiny", "--runs", str(folder)]
    for args in (asked, ["runs", "--runs", str(folder), "--csv"]):
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main(args)
        assert not stop.value.code
    file = tmp_path / "mine.csv"
    file.write_text(capsys.readouterr().out, encoding="utf-8")
    table = results(str(folder))
    assert results(str(file)).equals(table) and table["run"].n_unique() == 1
    assert {"last token", "attention", "gradient", "training"} <= {*table["protocol"]}
    (damaged,) = folder.glob("*/training.json")
    damaged.write_text(damaged.read_text().replace("tiny", "tinny"))
    with pytest.raises(InputError, match=r"training.json has changed since it was written"):
        results(str(folder))


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
def test_a_damaged_file_is_one_line_with_its_path_and_row(tmp_path, alter, message):
    rows = results().filter(trained=64).head(2).write_csv().splitlines()
    file = tmp_path / "mine.csv"
    file.write_text("\n".join(alter(rows)) + "\n")
    with pytest.raises(InputError, match=message) as error:
        results(str(file))
    assert "mine.csv" in str(error.value) and "\n" not in str(error.value)


def test_no_module_reads_the_experiments():
    rooms = ("theory", "numerics", "validation", "figures", "interface")
    sources = [p for room in rooms for p in (ROOT / room).rglob("*.py")]
    readers = [p for p in sources if re.search(r"[\"'/]experiments[\"'/]", p.read_text("utf-8"))]
    assert [p.name for p in readers if "README" not in p.read_text("utf-8")] == []
    assert COMMITTED.stat().st_size < 400_000
