"""The papers' printed tables: schema, completeness, known numbers."""

from fractions import Fraction

import pytest

from farfield.validation.papers.tables import curve, curves, names, rows, table

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
            assert abs(c.exact / c.place) == int(c.exact / c.place)
        else:
            assert c.printed in ("yes", "no", "double_yes", "double_no")
        assert c.eval_length is None or c.eval_length % 256 == 0


def test_known_numbers():
    assert curve("sun2023_table2", "LeX") == {
        256: 33.18,
        512: 29.11,
        1024: 26.59,
        2048: 25.53,
        4096: 25.07,
        8192: 24.89,
    }
    (cell,) = (
        c
        for c in table("chi2023_table3")
        if (c.dataset, c.encoding, c.eval_length) == ("GitHub", "ALiBi", 512)
    )
    assert (cell.value, cell.std, cell.marker, cell.place) == (
        2.83,
        0.11,
        "dagger",
        Fraction(1, 100),
    )
    (steps,) = (c for c in table("chi2023_table7") if c.encoding == "Train Steps")
    assert steps.printed == "50,000" and steps.value is None
    fields = [c for c in table("chi2023_erf") if c.metric == "ERF"]
    assert [(c.variant, c.marker, c.value) for c in fields[2:4]] == [
        ("w=100", "<", 512),
        ("w=120", "=", 768),
    ]
    assert curve("chi2023_table2", "ALiBi", "delta=6", "ArXiv")[2048] == 4.4
    shifted = curves("chi2023_table1", "chi2023_table4", variant=("delta=-3", "delta=8"))
    assert [*shifted] == [f"{d} delta={k}" for d in ("ArXiv", "OpenWebText2") for k in (-3, 8)]
    assert all([*c] == [512, 1024, 2048, 4096, 8192] for c in shifted.values())


def test_bad_names(refusal):
    refusal("printed table 'sun' is not known", rows, "sun")
    refusal("no table of numbers", table, "figures")
