"""The papers' printed tables: schema, completeness, known numbers."""

from fractions import Fraction

import pytest

from farfield.validation.papers.tables import curves, names, rows, table

COLUMNS = (
    "paper,table,dataset,encoding,variant,train_length,eval_length,metric,value"
    ",std,marker,bold,note"
)
RESULT_TABLES = {
    "qin2024_table1": 3,
    "sun2023_table1": 12,
    "sun2023_table2": 48,
    "sun2023_table3": 10,
    "sun2023_table4": 8,
    "sun2023_table5": 18,
    "sun2023_table6": 40,
    "chi2023_table1": 85,
    "chi2023_table2": 12,
    "chi2023_table3": 105,
    "chi2023_table4": 85,
    "chi2023_table5": 18,
}
OTHERS = {
    "sun2023_table7": 13,
    "chi2023_table6": 6,
    "chi2023_table7": 10,
    "chi2023_erf": 37,
    "figures": 24,
}


def test_every_file_is_known():
    assert set(names()) == set(RESULT_TABLES) | set(OTHERS)
    assert all(len(rows(name)) == count for name, count in OTHERS.items())


@pytest.mark.parametrize("name", sorted(RESULT_TABLES))
def test_schema(name):
    cells = table(name)
    assert len(cells) == RESULT_TABLES[name] and ",".join(rows(name)[0]) == COLUMNS
    spots = {
        (c.dataset, c.encoding, c.variant, c.train_length, c.eval_length, c.metric) for c in cells
    }
    assert len(spots) == len(cells)
    for c in cells:
        assert (c.paper, c.table) == tuple(name.replace("_table", ",Table ").split(","))
        assert c.marker in ("", "dagger", "star") and c.metric and c.encoding
        if c.metric in ("perplexity", "resolution", "relative_time"):
            assert c.value is not None and c.value > 0 and c.exact == Fraction(c.printed)
            assert c.exact / c.place == int(c.printed.replace(".", ""))
        else:
            assert c.printed in ("yes", "no", "double_yes", "double_no") and c.value is None
        assert c.eval_length is None or c.eval_length % 256 == 0


@pytest.mark.parametrize(
    ("field", "accepted"),
    [("encoding", ("ALiBi", "T5")), ("dataset", "ArXiv"), ("variant", ""), ("variant", "delta=8")],
)
def test_curves_are_the_numbers_of_rows_that_have_a_length(field, accepted):
    key = ("paper", "table", "dataset", "encoding", "variant", "metric")
    given = [row for name in RESULT_TABLES for row in rows(name) if row["eval_length"]]
    given = [r for r in given if r[field] in ([accepted], accepted)[field == "encoding"]]
    wanted = {(*filter(None, map(r.get, key)), r["eval_length"]): r["value"] for r in given}
    found = curves(*RESULT_TABLES, by=" ".join(key), **{field: accepted})
    told = {(column, n): value for column, each in found.items() for n, value in each.items()}
    assert told == {(" ".join(k), int(n)): float(value) for (*k, n), value in wanted.items()}
    few = curves("chi2023_table3", where=lambda cell: cell.value > 100)
    assert few and all(value > 100 for column in few.values() for value in column.values())


def test_bad_names(refusal):
    refusal("printed table 'sun' is not known", rows, "sun")
    refusal("no table of numbers", table, "figures")
