"""The rows of the README and of the findings, counted again from the committed files."""

import functools
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from farfield.theory.answers.notation import terminal
from farfield.theory.encodings import encoding
from farfield.validation.results import LAST, results
from farfield.validation.study.demo import row
from farfield.validation.study.prediction import predict
from farfield.validation.study.study import Studied

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "experiments/findings"))

import measures  # noqa: E402
from page_rows import NEEDED, RECORDS, checked, findings, records  # noqa: E402

WHOLE = {name: {**record, "pages": list(record["pages"])} for name, record in records().items()}


@functools.cache
def counted():
    """The findings, counted once."""
    return checked(ROOT)


def test_every_row_is_on_its_pages_as_it_is_counted():
    answer = counted()
    assert answer.missing == () and "ok as counted" not in answer.text()
    assert f"{len(WHOLE)} findings: {len(WHOLE)} as counted" in answer.text()


def test_every_row_of_the_tables_is_a_record():
    """A row that somebody writes by hand has no count behind it."""
    for page in ("README.md", "docs/findings.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        begin = text.index("## What was found") if page == "README.md" else 0
        rows = [line for line in text[begin:].splitlines() if line.startswith("| ")]
        known = [f.row for f in counted().findings if page in f.pages]
        heads = [row for row in rows if not any(row.startswith(own) for own in known)]
        assert all("null" in row for row in heads), heads
        assert len(rows) - len(heads) == len(known)


def copy(tmp_path):
    """The pages and files that the rows stand on and are counted from."""
    files = {record["file"] for record in WHOLE.values()}
    for name in ("README.md", "docs/findings.md", *files, *measures.BESIDE):
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(
    ("was", "now", "name"),
    [
        ("84 of 127 cases", "85 of 127 cases", "convergence"),  # the answer
        ("144 of 151 cases", "145 of 151 cases", "nearest"),
        ("| 151 cases; 92", "| 152 cases; 92", "nearest"),  # n
        ("92 to 100 %", "95 to 100 %", "nearest"),  # the interval
        ("| a constant: 86 |", "| a constant: 80 |", "nearest"),  # the null
        ("some 250 choices", "some 25 choices", "nearest"),  # what was decided afterwards
        ("0.105 and 0.221", "0.05 and 0.07", "far-field"),
        ("85 of 94 intervals", "85 of 90 intervals", "far-field-elsewhere"),
        ('always "holds": 70', 'always "holds": 83', "convergence"),
        ("each without its own family", "", "nearest"),  # the sentence
    ],
)
def test_an_altered_row_is_found(tmp_path, was, now, name):
    root = copy(tmp_path)
    page = root / "docs/findings.md"
    text = page.read_text(encoding="utf-8")
    assert was in text
    page.write_text(text.replace(was, now), encoding="utf-8")
    assert ("docs/findings.md", name) in checked(root, {name: WHOLE[name]}).missing


@pytest.mark.parametrize("field", ["answer", "n", "interval", "null", "decided"])
def test_an_altered_record_is_found(field):
    altered = WHOLE["nearest"] | {field: WHOLE["nearest"][field] + " and more"}
    assert len(checked(ROOT, {"nearest": altered}).missing) == 1 + (field != "decided")


@pytest.mark.parametrize(
    "names", [("far-field-first", "mend"), ("far-field", "far-field-elsewhere")]
)
def test_altered_data_are_found(tmp_path, names):
    root = copy(tmp_path)
    file = root / WHOLE[names[0]]["file"]
    lines = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")
    missing = {name for _, name in checked(root, {name: WHOLE[name] for name in names}).missing}
    assert missing == {*names}


@pytest.mark.parametrize("field", NEEDED)
def test_a_record_without_a_field_is_not_printed(refusal, tmp_path, field):
    lines = RECORDS.read_text(encoding="utf-8")
    nearest = lines[lines.index("[nearest]") : lines.index("[far-field]")]
    file = tmp_path / "records.toml"
    file.write_text(nearest.replace(f"\n{field} = ", "\nelsewhere = "))
    refusal(f"'nearest' has no {field}", records, file)


def test_a_number_that_is_not_counted_is_refused(refusal):
    altered = WHOLE["nearest"] | {"answer": "{nothing} of it"}
    refusal("'nothing', which is not counted", list, findings(ROOT, {"nearest": altered}))


# -- the demonstration ---------------------------------------------------------------------------

IDEA, FITTED = "-sqrt(n)*log(1+n)/50", "-sqrt(n)*log(1+n)*3/19"


def demonstrated(name):
    """An entry of the demonstration, from its committed lines."""
    table = results(str(ROOT / "experiments/demo/results.csv")).filter(label=name)
    theory = predict(encoding(name), name, trained=64, tested=(128, 256, 512), layers=2)
    return Studied(theory).with_lines(table.to_dicts())


def test_the_first_table_is_what_the_demonstration_measured():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = {cells[0]: cells[1:] for cells in map(str.split, text.splitlines()) if len(cells) == 7}
    for name in (IDEA, "nope", "alibi"):
        cells = row(demonstrated(name))
        assert shown[name] == [*cells[1:-1], *cells[-1].split()], name
    whole = " ".join(text.split())
    fitted = row(demonstrated(FITTED))[-1]
    assert f"the same demo measures {fitted}" in whole
    told = [
        " ".join(terminal(b.text).split()) for b in demonstrated(IDEA).prediction.beside.blocks()
    ]
    assert told[0] in whole and told[1] in whole and told[-1].partition(", by")[0] in whole
    widest = demonstrated("alibi").prediction.beside.field.tokens
    assert f"ALiBi's widest head has a field of {widest} tokens" in whole


# -- the counts themselves ------------------------------------------------------------------------


def test_the_field_of_a_bias_is_that_of_its_formula():
    """Against the certified integers, on rows of 1,024."""
    from farfield.numerics.receptive_field import theoretical_receptive_field

    for formula in ("[-2*log(1+n)]", "[-n/4; 0 x7]", "[-sqrt(n)]"):
        case = {"formula": formula, "length": 1024, "trained": 64, "mask": ""}
        exact = theoretical_receptive_field(formula, "1/100", length=1024)
        heads = [h.tokens for h in exact.heads or (exact,)]
        assert (64 * measures.fields(case)).tolist() == heads
    assert measures.fields(case | {"mask": "window 5"}).tolist() == [5 / 64]


def test_a_threshold_is_the_least_of_the_best():
    quantity, holds = np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, True, False, False])
    assert measures.threshold(quantity, holds) == 2.5
    assert measures.threshold(quantity, ~holds & False) == 0.5


def test_intervals_cover_a_mean_that_is_known():
    draws = np.random.default_rng(1).normal(size=(400, 6))
    inside = [abs(m) <= half for m, half in map(measures.student, draws)]
    assert 0.92 < np.mean(inside) < 0.98
    of = np.repeat(np.arange(20), 5)
    same = np.repeat(np.random.default_rng(2).normal(size=20), 5)
    wide, narrow = measures.resampled(list(same), list(of)), measures.resampled(list(same))
    assert wide[1] - wide[0] > 1.7 * (narrow[1] - narrow[0])  # 5 equal values are one


def test_levels_and_growths_belong_together():
    """Growth is the ratio of the two levels that stand beside it, to their rounding."""
    shapes = measures.shapes(ROOT)
    for name in measures.SHAPES:
        levels = float(shapes[f"{name} nats"]) - float(shapes[f"{name} home"])
        assert abs(np.log(float(shapes[name])) - levels) < 0.02


def train():
    """What docs/train.md says of the task and of English, from the same counts."""

    def found(label, layers=2):
        return measures.share(measures.answers(label, layers))

    def loses(label):
        lines = results().filter(label=label, protocol=LAST, length=1024, trained=64, mask="")
        return f"{100 * np.expm1(lines['ratio'].log().mean()):.1f} %"

    turns, window = "English: {} and free in turn{}", "window 16 rotary"
    return [
        ('"local, then free" finds {} of', found("local, then free")),
        ("window of 4 finds {} (", found("window 4 rotary, then free")),
        ("window of 16 {} (", found(f"{window}, then free")),
        ("below a free layer finds {},", found("ALiBi, then free")),
        ("Two layers then find {} in", found("local, then free, log")),
        ("in place of {}. Four", found("local, then free")),
        ("windows of 16 find {} in", found(f"{window} and free in turn, log", 4)),
        ("in place of {}.", found(f"{window} and free in turn", 4)),
        ("in turn lose {} of", loses(turns.format("local", ""))),
        ("windows of 16 they lose {},", loses(turns.format(window, ""))),
        ("scaled logits too {} (", loses(turns.format(window, ", log"))),
    ]


def test_the_numbers_of_the_guide_to_training_are_those_of_the_table():
    text = " ".join((ROOT / "docs/train.md").read_text(encoding="utf-8").split())
    assert [line for line in (a.format(b) for a, b in train()) if line not in text] == []
